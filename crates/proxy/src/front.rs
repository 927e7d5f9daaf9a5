//! Connections of clients: accepted within a bound, served as HTTP/1, closed in order, or reset
//! where a client must not take what it has for the whole. When all places are taken, connections
//! that say nothing, idle or are slow with a head yield to new ones ([`crate::seats`]).

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
use tokio::sync::{mpsc, watch};

use crate::access::{self, Access, Way};
use crate::descriptors;
use crate::edge::ClientBody;
use crate::metrics::Metrics;
use crate::run;
use crate::seats::{Seat, Seats, Source};
use seated::{Occupied, Seated};

mod seated;

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
    pub(crate) metrics: Arc<Metrics>,
    /// Of requests, unless they take another.
    pub(crate) way: Way,
}

impl<A> Clone for Front<A> {
    fn clone(&self) -> Self {
        let Self { answers, closed, alive, metrics, way } = self;
        let (answers, metrics) = (Arc::clone(answers), Arc::clone(metrics));
        Self { answers, closed: closed.clone(), alive: alive.clone(), metrics, way: *way }
    }
}

impl<A: Answer> Front<A> {
    /// Accepts clients for ever, `most` at once; while all are served, more wait.
    pub(crate) async fn accept(self, listener: TcpListener, most: usize) {
        let seats = Seats::new(most);
        loop {
            descriptors::wait_for_room(&listener, &self.metrics, || seats.drop_one()).await;
            match listener.accept().await {
                Ok((stream, address)) => {
                    let (seat, _) = seats.take(&Source::of(address.ip())).await;
                    tokio::spawn(self.clone().serve(stream, Arc::new(seat)));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a client");
                    // Where descriptors have run out, this gives some back.
                    seats.drop_one();
                    tokio::time::sleep(run::ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Serves one client's connection until it ends or its place goes to another.
    async fn serve(self, stream: TcpStream, seat: Arc<Seat<Source>>) {
        let Self { answers, mut closed, alive, metrics, way } = self;
        // Without these options answers are only slower, and the dead stay longer.
        let _ = stream.set_nodelay(true);
        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_IDLE);
        let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
        let Ok(socket) = stream.as_fd().try_clone_to_owned() else { return };
        let (broken, path) = (Arc::default(), Mutex::default());
        let Ok(client) = stream.peer_addr().map(|address| address.ip().to_string()) else { return };
        let ours = Arc::new(Connection { socket, broken, alive, path, client });
        let seated = Seated::new(stream, &seat);
        let doing = seated.doing();
        let service = service_fn(|mut request| {
            let (answers, ours) = (Arc::clone(&answers), Arc::clone(&ours));
            let occupied = Occupied::begin(&doing);
            let access = Access::begin(&metrics, way, &ours.client, &mut request);
            async move {
                let answer = access.answered(answers.answer(request, ours).await);
                Ok::<_, Infallible>(answer.map(|body| occupied.with(body)))
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_header_size(MAX_HEAD_BYTES)
            .max_headers(MAX_FIELDS)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(seated), service)
            .with_upgrades();
        let mut connection = std::pin::pin!(connection);
        let result = tokio::select! {
            result = connection.as_mut() => result,
            () = async { drop(closed.wait_for(|closed| *closed).await) } => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            () = seat.lost() => {
                tracing::debug!("a client's connection yields to a new one");
                if doing.is_stuck() {
                    let _ = SockRef::from(&ours.socket).set_linger(Some(Duration::ZERO));
                }
                return;
            }
        };
        if let Err(error) = result {
            tracing::debug!(%error, "a client's connection ended");
            access::unreadable(&metrics, way, &ours.client, &error);
            if ours.broken.load(Ordering::Relaxed) {
                // The client must not take what it has for the whole.
                let _ = SockRef::from(&ours.socket).set_linger(Some(Duration::ZERO));
            }
        }
    }
}
