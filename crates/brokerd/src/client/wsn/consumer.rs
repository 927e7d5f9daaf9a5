//! A consumer that listens: the broker posts messages to an address that nobody else knows.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use broker::wsn_client::{Notified, read_messages};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::client::Target;
use crate::error::Error;
use crate::store::random;

/// Longest body of a Notify, in bytes.
const MAX_BODY_BYTES: usize = 16 << 20;
/// Connections at once.
const MAX_CONNECTIONS: usize = 64;
/// Posts that wait until their messages are handed on.
const MAX_WAITING: usize = 16;
/// How long a head, and a body, may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause after an accept failed for want of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Messages of a POST, which is answered when they were handed on.
pub(super) struct Posted {
    pub(super) messages: Vec<Notified>,
    pub(super) is_done: oneshot::Sender<()>,
}

/// A listener.
pub(super) struct Consumer {
    /// Where the broker posts to.
    pub(super) url: String,
    posts: mpsc::Receiver<Posted>,
}

impl Consumer {
    /// Listens at an address, or at one that the broker can reach as this machine reaches it.
    ///
    /// # Errors
    /// What cannot be bound.
    pub(super) async fn listen(target: &Target, at: Option<SocketAddr>) -> Result<Self, Error> {
        let own = own_address(target).await;
        let at = match (at, own) {
            (Some(at), _) => at,
            (None, Some(own)) => SocketAddr::new(own, 0),
            (None, None) => {
                let text = format!("{}: the name has no address", target.address);
                return Err(Error::System(text));
            }
        };
        let broken = |error| Error::System(format!("cannot listen on {at}: {error}"));
        let listener = TcpListener::bind(at).await.map_err(broken)?;
        let bound = listener.local_addr().map_err(broken)?;
        let shown = match own {
            Some(own) if bound.ip().is_unspecified() => SocketAddr::new(own, bound.port()),
            _ => bound,
        };
        let path = format!("/{:016x}{:016x}", random()?, random()?);
        let (sender, posts) = mpsc::channel(MAX_WAITING);
        let url = format!("http://{shown}{path}");
        tokio::spawn(accept(listener, path.into(), sender));
        Ok(Self { url, posts })
    }

    /// The next messages.
    pub(super) async fn next(&mut self) -> Option<Posted> {
        self.posts.recv().await
    }
}

/// The address by which this machine reaches the broker.
async fn own_address(target: &Target) -> Option<IpAddr> {
    let to = tokio::net::lookup_host(&target.address).await.ok()?.next()?;
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).await.ok()?;
    // Nothing is sent: the system says which of its addresses it would be.
    socket.connect(to).await.ok()?;
    socket.local_addr().ok().map(|own| own.ip())
}

/// Accepts for as long as somebody takes messages.
async fn accept(listener: TcpListener, path: Arc<str>, sender: mpsc::Sender<Posted>) {
    let seats = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = sender.closed() => return,
        };
        let Ok((stream, _)) = accepted else {
            // sleep: nobody is told when there are descriptors again.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // A broker that is turned away tries again.
        let Ok(seat) = seats.clone().try_acquire_owned() else { continue };
        let (path, sender) = (path.clone(), sender.clone());
        tokio::spawn(async move {
            serve(stream, &path, &sender).await;
            drop(seat);
        });
    }
}

async fn serve(stream: TcpStream, path: &str, sender: &mpsc::Sender<Posted>) {
    let service = service_fn(|request: Request<Incoming>| async move {
        Ok::<_, std::convert::Infallible>(answer(request, path, sender).await)
    });
    // What is wrong with a connection is for the broker to say, which tries again.
    let _ = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(
    request: Request<Incoming>,
    path: &str,
    sender: &mpsc::Sender<Posted>,
) -> Response<Full<Bytes>> {
    if request.uri().path() != path {
        return plain(StatusCode::NOT_FOUND, "there is nothing here");
    }
    if request.method() != Method::POST {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "only POST");
    }
    let body = Limited::new(request.into_body(), MAX_BODY_BYTES).collect();
    let body = match tokio::time::timeout(PATIENCE, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => return plain(StatusCode::PAYLOAD_TOO_LARGE, "the body is over 16 MiB"),
        Err(_) => return plain(StatusCode::REQUEST_TIMEOUT, "the body took over 30 s"),
    };
    let messages = match read_messages(&body) {
        Ok(messages) => messages,
        Err(why) => return plain(StatusCode::BAD_REQUEST, &why),
    };
    let (is_done, done) = oneshot::channel();
    let is_taken = sender.send(Posted { messages, is_done }).await.is_ok() && done.await.is_ok();
    match is_taken {
        true => plain(StatusCode::ACCEPTED, ""),
        false => plain(StatusCode::SERVICE_UNAVAILABLE, "nobody takes messages any more"),
    }
}

fn plain(status: StatusCode, what: &str) -> Response<Full<Bytes>> {
    let text = if what.is_empty() { String::new() } else { format!("{what}\n") };
    let mut answer = Response::new(Full::from(text));
    *answer.status_mut() = status;
    let kind = header::HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}
