//! One connection: its exchanges, its timers, and bounds on what a peer may take.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::answer::plain;
use super::{Activity, Chunking, Pieces, Settings, Site, Watch, Watched};

/// Largest request content, in bytes; a SOAP request has about 250.
const MAX_REQUEST_BYTES: usize = 64 * 1024;
/// Least that hyper lets its own buffer be bounded by, in bytes; smaller heads are bounded apart.
const MIN_HYPER_BUFFER_BYTES: usize = 8192;

/// Serves a connection to its end, which is after the exchange under way when `stopping` says so.
pub(super) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    site: Arc<dyn Site>,
    stopping: watch::Receiver<bool>,
) {
    // The same socket once more: hyper owns the other.
    let socket = match stream.as_fd().try_clone_to_owned() {
        Ok(socket) => socket,
        Err(error) => return tracing::warn!(%peer, %error, "no descriptor for the connection"),
    };
    if converse(stream, peer, site, stopping).await == End::MidAnswer {
        // The end is to be a reset: an answer that is not whole must not look as if it were, even
        // where the connection's end is what ends it.
        let _ = SockRef::from(&socket).set_linger(Some(Duration::ZERO));
    }
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// As HTTP has it, or at a timeout between answers.
    Clean,
    /// At a timeout while an answer was under way.
    MidAnswer,
}

/// Serves what comes over a stream; at its end the stream is dropped.
pub(crate) async fn converse<S>(
    stream: S,
    peer: SocketAddr,
    site: Arc<dyn Site>,
    mut stopping: watch::Receiver<bool>,
) -> End
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (settings, activity) = (*site.settings(), Arc::new(Activity::new()));
    let mut watch = Watch::new(Arc::clone(&activity), settings.timeouts);
    let watched = Watched::new(stream, settings.tcp_buffer_bytes, Arc::clone(&activity));
    let service_activity = Arc::clone(&activity);
    let service = service_fn(move |request| {
        let (site, activity) = (Arc::clone(&site), Arc::clone(&service_activity));
        async move { Ok::<_, Infallible>(handle(&*site, &activity, peer, request).await) }
    });
    let mut connection = pin!(builder(&settings).serve_connection(TokioIo::new(watched), service));
    // An error means that the server is gone: the end as well.
    let mut stopped = pin!(async { stopping.wait_for(|&stopping| stopping).await.is_ok() });
    let mut draining = false;
    loop {
        tokio::select! {
            biased;
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(%peer, %error, "connection ended");
                }
                return End::Clean;
            }
            _ = stopped.as_mut(), if !draining => {
                draining = true;
                connection.as_mut().graceful_shutdown();
            }
            expiry = watch.expiry() => {
                tracing::debug!(%peer, ?expiry, "connection timed out");
                return if activity.is_answering() { End::MidAnswer } else { End::Clean };
            }
        }
    }
}

/// HTTP without timers of its own: the watch has them all.
fn builder(settings: &Settings) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .header_read_timeout(None)
        .max_header_size(settings.header_buffer_bytes)
        .max_buf_size(settings.header_buffer_bytes.max(MIN_HYPER_BUFFER_BYTES));
    builder
}

async fn handle(
    site: &dyn Site,
    activity: &Arc<Activity>,
    peer: SocketAddr,
    request: Request<Incoming>,
) -> Response<Pieces> {
    let (parts, body) = request.into_parts();
    let content = match site.wants_body(&parts) {
        true => read(body, activity).await,
        false => Ok(Bytes::new()),
    };
    activity.answers();
    let response = match content {
        Ok(content) => site.answer(&parts, &content),
        Err(refusal) => *refusal,
    };
    let (status, method, target) = (response.status().as_u16(), &parts.method, &parts.uri);
    let bytes = response.body().len();
    tracing::info!(%peer, %method, %target, status, bytes, "answered");
    framed(response, site.settings(), activity)
}

/// The answer with its content in pieces and its end told as the settings say (RFC 9112 §6.3).
fn framed(
    mut response: Response<Bytes>,
    settings: &Settings,
    activity: &Arc<Activity>,
) -> Response<Pieces> {
    if settings.chunking != Chunking::Off {
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    if settings.chunking == Chunking::Close && !response.body().is_empty() {
        // Answers of HTTP/1.0 end so; in HTTP/1.1 hyper would put the content into chunks.
        *response.version_mut() = Version::HTTP_10;
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let sized = settings.chunking == Chunking::Off;
    response
        .map(|content| Pieces::new(content, settings.send_buffer_bytes, sized, activity.clone()))
}

/// The request's content within its bounds, or the answer that refuses it and ends the connection.
async fn read(body: Incoming, activity: &Activity) -> Result<Bytes, Box<Response<Bytes>>> {
    let refuse = |status, line: &str| {
        let mut response = plain(status, line);
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        Box::new(response)
    };
    let too_large = || {
        let line = format!("request content over {MAX_REQUEST_BYTES} bytes; send a shorter one");
        refuse(StatusCode::PAYLOAD_TOO_LARGE, &line)
    };
    if body.size_hint().lower() > MAX_REQUEST_BYTES as u64 {
        return Err(too_large());
    }
    activity.awaits_content();
    // The watch is in this task: when it finds the content late, it has this polled again.
    let late = poll_fn(|_| if activity.is_late() { Poll::Ready(()) } else { Poll::Pending });
    let collected = tokio::select! {
        biased;
        collected = Limited::new(body, MAX_REQUEST_BYTES).collect() => collected,
        () = late => {
            let line = "the request's content took too long; send it sooner";
            return Err(refuse(StatusCode::REQUEST_TIMEOUT, line));
        }
    };
    match collected {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => {
            Err(refuse(StatusCode::BAD_REQUEST, "the request's content ended early; send it whole"))
        }
    }
}
