//! Connections of clients: accepted within a bound, served as HTTP/1, closed in order, or reset
//! where a client must not take what it has for the whole. When all places are taken, connections
//! that say nothing, idle or are slow with a head yield to new ones ([`crate::seats`]).

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use decide::estimate::Estimate;
use http::header::{self, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use proto::http1::{Fault, RequestHead};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::access::{self, Access, Counted, Way};
use crate::descriptors;
use crate::edge::{ClientBody, Refusal};
use crate::http1::{Line, LineStream, Shared, add_surplus};
use crate::metrics::Metrics;
use crate::parting::Parting;
use crate::run;
use crate::seats::{Seat, Seats, Source};
use seated::{Occupied, Seated};

mod seated;

/// Largest head of a request for the library, in bytes: one that fits may grow by escapes.
const MAX_HEAD_BYTES: usize = 4 * proto::http1::MAX_HEAD_BYTES;
/// How long a client may take to send a head, or let its connection idle, where `idle_timeout` is
/// longer.
const MAX_HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Idle time before the kernel asks whether a client is still there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// The same for one that has ended its direction: most such have gone.
const ENDED_KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
/// How long a client that has ended its direction behind a request is not asked whether it is still
/// there: most answers come before that.
const ENDED_PATIENCE: Duration = Duration::from_secs(1);
/// A client that has gone answers this with a reset, one that waits ignores it (RFC 9110 §15.2).
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// How long a connection is read and dropped behind its last answer, so that the client is not
/// reset before it has read that (RFC 9112 §9.6), and how long it may be silent meanwhile.
const LINGER: Duration = Duration::from_secs(10);
const LINGER_SILENCE: Duration = Duration::from_secs(2);

/// How metrics call the bound on how long a client takes nothing: by its setting.
const STALLED: &str = "idle_timeout";

/// Who answers requests.
pub(crate) trait Answer: Send + Sync + 'static {
    /// Answers one; what goes wrong before the answer's head becomes an answer too.
    fn answer(
        &self,
        request: Request<Incoming>,
        connection: Arc<Connection>,
    ) -> impl Future<Output = Response<ClientBody>> + Send;

    /// Whether some answers' heads have a style of their own.
    fn styles(&self) -> bool;

    /// A client's connection has ended of which something may be kept.
    fn ended(&self, connection: &Connection) -> impl Future<Output = ()> + Send;
}

/// The head of a request as it was sent, among the extensions of the request.
pub(crate) type Sent = Arc<RequestHead>;

/// A client's connection.
pub(crate) struct Connection {
    /// No other of this process has the same number.
    pub(crate) number: u64,
    pub(crate) socket: Shared,
    /// Where requests come from and interim answers go to.
    pub(crate) line: Arc<Line>,
    /// An answer broke off: what came of it must not look whole.
    pub(crate) broken: Arc<AtomicBool>,
    /// Held while a tunnel runs, for the connection's task has ended by then.
    pub(crate) alive: mpsc::Sender<()>,
    /// What is known of the path to the client, where somebody wants to know.
    pub(crate) path: Mutex<Option<Estimate>>,
    /// Address of the client, without the port: as much as is known of who asks.
    pub(crate) client: String,
    /// Origins towards which the client has authenticated its connection: no other client's
    /// requests go where its requests to these go.
    bound: Mutex<BTreeSet<String>>,
}

impl Connection {
    /// The client authenticates its connection towards an origin.
    pub(crate) fn bind(&self, origin: &str) {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if bound.len() < MAX_BOUND || bound.contains(origin) {
            bound.insert(origin.to_owned());
        }
    }

    /// Whether it has authenticated its connection towards an origin.
    pub(crate) fn is_bound(&self, origin: &str) -> bool {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner).contains(origin)
    }

    fn is_bound_anywhere(&self) -> bool {
        !self.bound.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// Most origins that one connection is authenticated towards; requests to others are sent over
/// connections that nobody uses again.
const MAX_BOUND: usize = 64;
/// Numbers of connections.
static CONNECTIONS: AtomicU64 = AtomicU64::new(1);

/// A listener with what each of its connections needs.
pub(crate) struct Front<A> {
    pub(crate) answers: Arc<A>,
    /// Connections that idle close when the side ends, others behind their answer.
    pub(crate) parting: Parting,
    pub(crate) alive: mpsc::Sender<()>,
    pub(crate) metrics: Arc<Metrics>,
    /// Of requests, unless they take another.
    pub(crate) way: Way,
    /// How long a client may take nothing of what there is for it.
    pub(crate) idle_timeout: Duration,
}

impl<A> Clone for Front<A> {
    fn clone(&self) -> Self {
        let Self { answers, parting, alive, metrics, way, idle_timeout } = self;
        let (answers, metrics) = (Arc::clone(answers), Arc::clone(metrics));
        let (parting, alive, way) = (parting.clone(), alive.clone(), *way);
        Self { answers, parting, alive, metrics, way, idle_timeout: *idle_timeout }
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
        let Some(connection) = self.connection(stream) else { return };
        let mut parting = self.parting.clone();
        let line = Arc::clone(&connection.line);
        let seated = Seated::new(connection.socket.clone(), &seat, self.idle_timeout);
        let doing = seated.doing();
        let stream = LineStream::new(seated, Arc::clone(&line), self.answers.styles());
        let front = &self;
        let service = service_fn(|request| {
            let (connection, occupied) = (Arc::clone(&connection), Occupied::begin(&doing));
            async move {
                let socket = connection.socket.clone();
                let answer = front.serve_one(request, connection).await?;
                // Who ends its direction behind a request wants the answer, but of one without an
                // end it has had enough: browsers and tools leave event streams so.
                let media = answer.headers().get(header::CONTENT_TYPE);
                let endless = media.is_some_and(|media| relay::is_endless(media.as_bytes()));
                let unwanted = endless.then_some(async move { socket.has_ended().await });
                Ok::<_, io::Error>(answer.map(|body| occupied.with(body, unwanted)))
            }
        });
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.idle_timeout.min(MAX_HEAD_TIMEOUT))
            .half_close(true)
            .max_header_size(MAX_HEAD_BYTES)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let result = {
            let mut serving = std::pin::pin!(serving);
            tokio::select! {
                result = serving.as_mut() => result,
                _ = parting.said() => {
                    serving.as_mut().graceful_shutdown();
                    serving.await
                }
                () = seat.lost() => {
                    tracing::debug!("a client's connection yields to a new one");
                    if doing.is_stuck() {
                        connection.socket.reset_on_close();
                    }
                    return;
                }
            }
        };
        if let Err(error) = result {
            tracing::debug!(%error, "a client's connection ended");
        }
        if connection.is_bound_anywhere() {
            self.answers.ended(&connection).await;
        }
        if doing.has_stalled() {
            self.metrics.count_limit(STALLED);
        }
        if connection.broken.load(Ordering::Relaxed) || doing.is_stuck() {
            // The client must not take what it has for the whole.
            connection.socket.reset_on_close();
        } else if line.is_amid_body() {
            linger(connection.socket.clone()).await;
        }
    }

    fn connection(&self, stream: TcpStream) -> Option<Arc<Connection>> {
        // Without these options answers are only slower, and the dead stay longer.
        let _ = stream.set_nodelay(true);
        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_IDLE);
        let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
        let client = stream.peer_addr().ok()?.ip().to_string();
        Some(Arc::new(Connection {
            number: CONNECTIONS.fetch_add(1, Ordering::Relaxed),
            socket: Shared::new(stream),
            line: Arc::default(),
            broken: Arc::default(),
            alive: self.alive.clone(),
            path: Mutex::default(),
            client,
            bound: Mutex::default(),
        }))
    }

    /// Answers one request; the error is that nobody is there any more.
    async fn serve_one(
        &self,
        mut request: Request<Incoming>,
        connection: Arc<Connection>,
    ) -> io::Result<Response<Counted<ClientBody>>> {
        let (socket, line) = (connection.socket.clone(), Arc::clone(&connection.line));
        let head = line.take_head().map(|head| {
            let head = head?;
            add_surplus(&head.surplus(), request.headers_mut())?;
            Ok(head)
        });
        match head {
            Some(Ok(head)) => drop(request.extensions_mut().insert::<Sent>(Arc::new(head))),
            Some(Err(fault)) => {
                access::unreadable(&self.metrics, self.way, &connection.client, &fault);
                let refused = closing(refuse(fault, &connection.broken));
                return Ok(refused.map(|body| Counted::answer(body, None)));
            }
            None => return Err(io::Error::other("a request without a head")),
        }
        let access = Access::begin(&self.metrics, self.way, &connection.client, &mut request);
        let may_ask = request.version() == Version::HTTP_11;
        let broken = Arc::clone(&connection.broken);
        let answer = tokio::select! {
            biased;
            answer = self.answers.answer(request, connection) => answer,
            () = client_gone(&socket, &line, may_ask) => {
                return Err(io::Error::new(io::ErrorKind::ConnectionReset, "the client went away"));
            }
        };
        line.drained().await;
        let answer = match line.fault() {
            Some(fault) => closing(refuse(fault, &broken)),
            None => answer,
        };
        // The rest of a request that was not done is not waited for (RFC 9112 §9.3).
        let is_done = answer.status().is_success() || answer.status().is_informational();
        let binds = crate::origin::answer_binds(answer.headers());
        let ends = line.is_amid_body() && !is_done && !binds;
        Ok(access.answered(if ends { closing(answer) } else { answer }))
    }
}

/// The answer to what is no request.
fn refuse(fault: Fault, broken: &Arc<AtomicBool>) -> Response<ClientBody> {
    let Fault { status, reason } = fault;
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let refusal = Refusal { status, error: "http_request_error", reason };
    refusal.into_response().map(|body| ClientBody::new(body, Arc::clone(broken)))
}

/// The last answer of its connection.
fn closing(mut answer: Response<ClientBody>) -> Response<ClientBody> {
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// Resolves when the client has gone. One that has ended its direction may still wait for the
/// answer (RFC 9112 §9.6), and is asked.
async fn client_gone(socket: &Shared, line: &Line, may_ask: bool) {
    tokio::select! {
        () = socket.is_reset() => return,
        () = socket.has_ended() => {}
    }
    let keepalive =
        TcpKeepalive::new().with_time(ENDED_KEEPALIVE_IDLE).with_interval(ENDED_KEEPALIVE_IDLE);
    let _ = SockRef::from(socket).set_tcp_keepalive(&keepalive);
    if may_ask {
        tokio::select! {
            () = socket.is_reset() => return,
            // sleep: what is waited for is that nothing happens.
            () = tokio::time::sleep(ENDED_PATIENCE) => line.interim(CONTINUE),
        }
    }
    socket.is_reset().await;
}

/// Reads on, for a while, what a client sends behind its last answer.
async fn linger(mut socket: Shared) {
    if socket.shutdown().await.is_err() {
        return;
    }
    let reading = async {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let read = tokio::time::timeout(LINGER_SILENCE, socket.read(&mut buffer)).await;
            if !matches!(read, Ok(Ok(1..))) {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(LINGER, reading).await;
}
