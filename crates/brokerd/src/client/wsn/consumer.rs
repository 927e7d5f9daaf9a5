//! A consumer that listens: the broker posts messages to an address that nobody else knows.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use broker::wsn_client::{Notified, read_messages};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::client::Target;
use crate::error::Error;
use crate::moving::{NoBody, collect};
use crate::store::random;

/// Longest body of a Notify, in bytes.
const MAX_BODY_BYTES: usize = 16 << 20;
/// Connections at once.
const MAX_CONNECTIONS: usize = 64;
/// Posts that wait until their messages are handed on.
const MAX_WAITING: usize = 16;
/// How long a head may take, and a body until it comes.
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
    let mut seats = Seats::default();
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
        if !seats.have_room() {
            continue;
        }
        let is_busy = Arc::new(AtomicBool::new(false));
        let (path, sender, busy) = (path.clone(), sender.clone(), is_busy.clone());
        let task = tokio::spawn(async move { serve(stream, &path, &sender, &busy).await });
        seats.0.push_back((is_busy, task.abort_handle()));
    }
}

/// Connections, the oldest first: whether it is one of a broker that posts, and how it is ended.
// bound: MAX_CONNECTIONS.
#[derive(Default)]
struct Seats(VecDeque<(Arc<AtomicBool>, AbortHandle)>);

impl Seats {
    /// Whether there is room for one more: where there is none, the oldest that does nothing makes
    /// it, so that nobody keeps the broker out by connecting.
    fn have_room(&mut self) -> bool {
        self.0.retain(|(_, task)| !task.is_finished());
        if self.0.len() < MAX_CONNECTIONS {
            return true;
        }
        let idle = self.0.iter().position(|(is_busy, _)| !is_busy.load(Ordering::Relaxed));
        let idle = idle.and_then(|at| self.0.remove(at));
        idle.is_some_and(|(_, task)| {
            task.abort();
            true
        })
    }
}

async fn serve(stream: TcpStream, path: &str, sender: &mpsc::Sender<Posted>, is_busy: &AtomicBool) {
    let service = service_fn(|request: Request<Incoming>| async move {
        // Who knows the path is the broker, or was told it by it.
        is_busy.store(request.uri().path() == path, Ordering::Relaxed);
        let answer = answer(request, path, sender).await;
        is_busy.store(false, Ordering::Relaxed);
        Ok::<_, std::convert::Infallible>(answer)
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
    let body = match collect(request.into_body(), MAX_BODY_BYTES, PATIENCE).await {
        Ok(body) => body,
        Err(NoBody::TooLong) => {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, "the body is over 16 MiB");
        }
        Err(NoBody::TooSlow) => {
            return plain(StatusCode::REQUEST_TIMEOUT, "the body comes below 256 bytes a second");
        }
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
