//! Connections of clients: accepted within a bound, served as HTTP/1, closed in order, or reset
//! where a client must not take what it has for the whole.

use std::convert::Infallible;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use decide::estimate::Estimate;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};

use crate::edge::ClientBody;
use crate::run;

/// Largest head of a request, in bytes; as much as may cross the link.
const MAX_HEAD_BYTES: usize = proto::bhttp::MAX_HEAD_BYTES;
/// Most fields of a request.
const MAX_FIELDS: usize = proto::bhttp::MAX_FIELDS;
/// How long a client may take to send a head, or let its connection idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Idle time before the kernel asks whether a client is still there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);

/// Who answers requests.
pub(crate) trait Answer: Send + Sync + 'static {
    /// Answers one; what goes wrong before the answer's head becomes an answer too.
    fn answer(
        &self,
        request: Request<Incoming>,
        connection: Arc<Connection>,
    ) -> impl Future<Output = Response<ClientBody>> + Send;
}

/// A client's connection.
pub(crate) struct Connection {
    /// A second descriptor: hyper owns the first when the connection has to be reset.
    pub(crate) socket: OwnedFd,
    /// An answer broke off: what came of it must not look whole.
    pub(crate) broken: Arc<AtomicBool>,
    /// Held while a tunnel runs, for the connection's task has ended by then.
    pub(crate) alive: mpsc::Sender<()>,
    /// What is known of the path to the client, where somebody wants to know.
    pub(crate) path: Mutex<Option<Estimate>>,
    /// Address of the client, without the port: as much as is known of who asks.
    pub(crate) client: String,
}

/// A listener with what each of its connections needs.
pub(crate) struct Front<A> {
    pub(crate) answers: Arc<A>,
    /// True once connections that idle are to close.
    pub(crate) closed: watch::Receiver<bool>,
    pub(crate) alive: mpsc::Sender<()>,
}

impl<A> Clone for Front<A> {
    fn clone(&self) -> Self {
        let Self { answers, closed, alive } = self;
        Self { answers: Arc::clone(answers), closed: closed.clone(), alive: alive.clone() }
    }
}

impl<A: Answer> Front<A> {
    /// Accepts clients for ever, `most` at once.
    pub(crate) async fn accept(self, listener: TcpListener, most: usize) {
        let permits = Arc::new(Semaphore::new(most));
        // With all permits out, clients wait in the listener's backlog.
        while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
            let stream = loop {
                match listener.accept().await {
                    Ok((stream, _)) => break stream,
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a client");
                        tokio::time::sleep(run::ACCEPT_PAUSE).await;
                    }
                }
            };
            let front = self.clone();
            tokio::spawn(async move {
                front.serve(stream).await;
                drop(permit);
            });
        }
    }

    /// Serves one client's connection to its end.
    async fn serve(self, stream: TcpStream) {
        let Self { answers, mut closed, alive } = self;
        // Without these options answers are only slower, and the dead stay longer.
        let _ = stream.set_nodelay(true);
        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_IDLE);
        let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
        let Ok(socket) = stream.as_fd().try_clone_to_owned() else { return };
        let (broken, path) = (Arc::default(), Mutex::default());
        let Ok(client) = stream.peer_addr().map(|address| address.ip().to_string()) else { return };
        let ours = Arc::new(Connection { socket, broken, alive, path, client });
        let service = service_fn(|request| {
            let (answers, ours) = (Arc::clone(&answers), Arc::clone(&ours));
            async move { Ok::<_, Infallible>(answers.answer(request, ours).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_header_size(MAX_HEAD_BYTES)
            .max_headers(MAX_FIELDS)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut connection = std::pin::pin!(connection);
        let result = tokio::select! {
            result = connection.as_mut() => result,
            () = async { drop(closed.wait_for(|closed| *closed).await) } => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = result {
            tracing::debug!(%error, "a client's connection ended");
            if ours.broken.load(Ordering::Relaxed) {
                // The client must not take what it has for the whole.
                let _ = SockRef::from(&ours.socket).set_linger(Some(Duration::ZERO));
            }
        }
    }
}
