//! A connection with its socket and its clock.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proto::carrier::Piece;
use quinn_proto::{ConnectionError, ConnectionEvent};
use relay::{CarrierId, Input};
use tokio::sync::{mpsc, watch};

use super::congestion::Seen;
use super::line::Line;
use crate::actor::Message;
use crate::carrier::Carriers;
use crate::carrier::udp::{Datagram, Socket};
use crate::metrics::Metrics;

/// How long a connection that closes waits for what it sent to be acknowledged, from when its last
/// bytes got on; and in all.
const CLOSE_PATIENCE: Duration = Duration::from_secs(4);
const MAX_CLOSE_PATIENCE: Duration = Duration::from_secs(60);
/// Longest round trip for which the end of a connection is said again.
const MAX_HEARING: Duration = Duration::from_secs(2);

/// What a connection at a gateway has of the port's reader.
pub(super) struct FromDoor {
    /// Datagrams that came for it.
    pub(super) events: mpsc::Receiver<ConnectionEvent>,
    /// A socket of its own, once the port is read no more.
    pub(super) own: watch::Receiver<Option<Arc<Socket>>>,
}

/// What there is to do next.
enum Happened {
    Piece(Piece),
    /// The relay closes the carrier.
    NoMore,
    /// Time has passed, or datagrams came.
    Else,
    /// The socket is of no use any more.
    Unreachable(io::Error),
}

/// See the module.
pub(super) struct Wire {
    pub(super) line: Line,
    pub(super) seen: Arc<Seen>,
    socket: Arc<Socket>,
    /// The socket is this connection's alone.
    is_own: bool,
    room: Vec<Vec<u8>>,
    from_door: Option<FromDoor>,
    metrics: Arc<Metrics>,
    buffer: Vec<u8>,
    /// Errors of the socket in a row.
    failures: u32,
    /// What does not let datagrams leave, and when another socket was last tried for it.
    stuck: Option<io::Error>,
    moved: Option<Instant>,
}

/// What a connection's task hears of the port's reader.
enum Said {
    Event(ConnectionEvent),
    Own(Arc<Socket>),
    /// There is nobody.
    Gone,
}

impl FromDoor {
    async fn next(&mut self) -> Said {
        let event = tokio::select! {
            biased;
            event = self.events.recv() => event,
            _ = self.own.wait_for(Option::is_some) => None,
        };
        match event {
            Some(event) => Said::Event(event),
            None => self.own.borrow().clone().map_or(Said::Gone, Said::Own),
        }
    }
}

/// Whether an error of sending says that there is no way from this address any more.
fn has_no_way(error: &io::Error) -> bool {
    let errors = [libc::EINVAL, libc::EADDRNOTAVAIL, libc::ENETUNREACH, libc::EHOSTUNREACH];
    error.raw_os_error().is_some_and(|error| errors.contains(&error))
}

/// Whether an error of sending may be about several datagrams at once alone.
fn is_of_many(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|error| [libc::EINVAL, libc::EMSGSIZE].contains(&error))
}

/// Buffers of a socket that one peer sends to.
const OWN_BUFFERS: usize = 2;
/// Datagrams that leave at once at most: a kernel takes no more than 64 KiB.
const MAX_SEGMENTS: usize = 10;
/// Pause between two tries to find another way.
const MOVE_PAUSE: Duration = Duration::from_secs(1);
/// Errors of an edge's socket in a row: what is on the way may say so of one datagram as well.
const MAX_FAILURES: u32 = 3;

impl Wire {
    /// At an edge: with a socket of its own, which is connected.
    pub(super) fn own(line: Line, seen: Arc<Seen>, socket: Socket, metrics: Arc<Metrics>) -> Self {
        let room = socket.room(OWN_BUFFERS);
        Self { is_own: true, room, ..Self::with(line, seen, Arc::new(socket), metrics) }
    }

    /// At a gateway, with the port's.
    pub(super) fn of_port(
        line: Line,
        seen: Arc<Seen>,
        socket: Arc<Socket>,
        from_door: FromDoor,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self { from_door: Some(from_door), ..Self::with(line, seen, socket, metrics) }
    }

    fn with(line: Line, seen: Arc<Seen>, socket: Arc<Socket>, metrics: Arc<Metrics>) -> Self {
        Self {
            line,
            seen,
            socket,
            is_own: false,
            room: Vec::new(),
            from_door: None,
            metrics,
            buffer: Vec::new(),
            failures: 0,
            stuck: None,
            moved: None,
        }
    }

    fn is_edge(&self) -> bool {
        self.line.connection().side().is_client()
    }

    /// Takes note of the time, and sends what there is to send.
    async fn flush(&mut self) {
        self.line.wake(Instant::now());
        let most = self.socket.max_segments().min(MAX_SEGMENTS);
        loop {
            self.buffer.clear();
            let transmit = self.line.transmit(Instant::now(), most, &mut self.buffer);
            let Some(transmit) = transmit else { break };
            let contents = &self.buffer[..transmit.size];
            let size = transmit.segment_size.unwrap_or(transmit.size).max(1);
            let to = transmit.destination;
            contents
                .chunks(size)
                .for_each(|datagram| self.metrics.count_datagram(true, datagram.len(), to));
            let ecn = transmit.ecn.and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8));
            let (segment_size, src_ip) = (transmit.segment_size, transmit.src_ip);
            let sent = quinn_udp::Transmit { destination: to, ecn, contents, segment_size, src_ip };
            // What cannot be sent is as good as lost.
            match self.send(&sent).await {
                Ok(()) => self.stuck = None,
                Err(error) if self.is_edge() && has_no_way(&error) => self.stuck = Some(error),
                Err(_) => {}
            }
        }
        // What is due by now is woken for: it may have something to send.
        self.line.heed_all(Instant::now());
    }

    /// Sends datagrams of one length: at once, or each by itself where the kernel does not take
    /// them together. On a path whose packets have become shorter it cuts a datagram into pieces,
    /// and refuses several at once as it does what can never leave.
    async fn send(&self, sent: &quinn_udp::Transmit<'_>) -> io::Result<()> {
        let all = sent.contents;
        let size = sent.segment_size.unwrap_or(all.len()).max(1);
        match self.socket.transmit(sent).await {
            Err(error) if size < all.len() && is_of_many(&error) => {}
            sent => return sent,
        }
        for contents in all.chunks(size) {
            let one = quinn_udp::Transmit { contents, segment_size: None, ..*sent };
            self.socket.transmit(&one).await?;
        }
        Ok(())
    }

    /// Waits for something, and takes it.
    async fn wait(&mut self, pieces: Option<&mut mpsc::UnboundedReceiver<Piece>>) -> Happened {
        let rests = self.moved.is_some_and(|at| at.elapsed() < MOVE_PAUSE);
        if let Some(error) = self.stuck.take_if(|_| !rests) {
            return Happened::Unreachable(error);
        }
        let due = self.line.due().map(tokio::time::Instant::from_std);
        let piece = async {
            match pieces {
                Some(pieces) => pieces.recv().await,
                None => std::future::pending().await,
            }
        };
        let from_door = async {
            match &mut self.from_door {
                Some(from_door) => from_door.next().await,
                None => std::future::pending().await,
            }
        };
        let socket = Arc::clone(&self.socket);
        let came = async {
            match self.is_own {
                true => socket.try_receive(&mut self.room).await,
                false => std::future::pending().await,
            }
        };
        let time = async {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            piece = piece => piece.map_or(Happened::NoMore, Happened::Piece),
            said = from_door => match said {
                Said::Event(event) => {
                    self.line.came(event);
                    Happened::Else
                }
                Said::Own(socket) => {
                    (self.room, self.socket) = (socket.room(OWN_BUFFERS), socket);
                    (self.is_own, self.from_door) = (true, None);
                    Happened::Else
                }
                Said::Gone => {
                    self.from_door = None;
                    Happened::Unreachable(io::Error::other("its port went to another process"))
                }
            },
            came = came => self.take(came),
            () = time => Happened::Else,
        }
    }

    fn take(&mut self, came: io::Result<Vec<Datagram>>) -> Happened {
        match came {
            Ok(datagrams) => {
                self.failures = 0;
                for datagram in datagrams {
                    let (bytes, from) = (datagram.bytes.len(), datagram.place.address);
                    self.metrics.count_datagram(false, bytes, from);
                    self.line.came_to_own(Instant::now(), datagram);
                }
                Happened::Else
            }
            Err(error) => {
                self.failures += 1;
                let is_refused = error.kind() == io::ErrorKind::ConnectionRefused;
                match self.failures >= MAX_FAILURES {
                    _ if !self.line.is_connected() => return Happened::Unreachable(error),
                    true if is_refused => return Happened::Unreachable(error),
                    true if self.is_edge() => self.stuck = Some(error),
                    _ => {}
                }
                Happened::Else
            }
        }
    }

    /// An edge's socket is replaced, where there is another: its address may be another.
    pub(super) fn move_to(&mut self, socket: Option<Socket>) {
        (self.failures, self.moved) = (0, Some(Instant::now()));
        if let Some(socket) = socket {
            self.socket = Arc::new(socket);
            self.line.moved();
        }
    }

    /// Goes on until `done` gives something. Errors: the connection is over, and why.
    pub(super) async fn until<T>(
        &mut self,
        mut done: impl FnMut(&mut Line) -> Option<T>,
    ) -> Result<T, Over> {
        loop {
            self.flush().await;
            if let Some(reason) = self.line.lost() {
                return Err(Over::Lost(reason.clone()));
            }
            if let Some(what) = done(&mut self.line) {
                return Ok(what);
            }
            if let Happened::Unreachable(error) = self.wait(None).await {
                return Err(Over::Unreachable(error));
            }
        }
    }

    /// Carries what the relay gives, and gives it what comes, until the handshake is over, where
    /// that is asked for. Errors: either side closes.
    pub(super) async fn run(
        &mut self,
        carriers: &Carriers,
        carrier: CarrierId,
        pieces: &mut mpsc::UnboundedReceiver<Piece>,
        until_connected: bool,
    ) -> Result<(), Over> {
        loop {
            self.flush().await;
            while let Some((stream, bytes, fin)) = self.line.received() {
                let input = Input::Stream { carrier, stream, bytes, fin };
                carriers.handle.send(Message::Input(input)).await;
            }
            for (urgency, bytes) in self.line.write(Instant::now()) {
                let input = Input::StreamSent { carrier, urgency, bytes };
                carriers.handle.send(Message::Input(input)).await;
            }
            self.flush().await;
            if let Some(reason) = self.line.lost() {
                return Err(Over::Lost(reason.clone()));
            }
            if until_connected && self.line.is_connected() {
                return Ok(());
            }
            match self.wait(Some(pieces)).await {
                Happened::Piece(piece) => {
                    self.line.push(piece);
                    // What waits together leaves together.
                    while let Ok(piece) = pieces.try_recv() {
                        self.line.push(piece);
                    }
                }
                Happened::NoMore => return Err(Over::Closing),
                Happened::Else => {}
                Happened::Unreachable(error) => return Err(Over::Unreachable(error)),
            }
        }
    }

    /// The relay has closed the carrier: what it gave before is written and acknowledged, as long
    /// as it gets on; then the connection is closed.
    pub(super) async fn close(&mut self, reason: &str) {
        let _ = tokio::time::timeout(MAX_CLOSE_PATIENCE, self.deliver()).await;
        self.end(reason).await;
    }

    async fn deliver(&mut self) {
        let (mut finished, mut before) = (false, u64::MAX);
        let mut patience = tokio::time::Instant::now() + CLOSE_PATIENCE;
        loop {
            self.line.write(Instant::now());
            if self.line.is_written() && !std::mem::replace(&mut finished, true) {
                self.line.finish();
            }
            self.flush().await;
            if self.line.lost().is_some() || self.line.is_delivered() {
                return;
            }
            let left = self.seen.transport().backlog_bytes;
            let now = tokio::time::Instant::now();
            if left != before {
                (before, patience) = (left, now + CLOSE_PATIENCE);
            }
            // What still comes is read by nobody.
            while self.line.received().is_some() {}
            let waited = tokio::time::timeout_at(patience, self.wait(None)).await;
            if matches!(waited, Err(_) | Ok(Happened::Unreachable(_))) {
                return;
            }
        }
    }

    /// Closes the connection, and says so again, for a round trip, where the other side has not
    /// heard it.
    pub(super) async fn end(&mut self, reason: &str) {
        self.line.close(Instant::now(), reason);
        let heard = self.line.connection().rtt().min(MAX_HEARING);
        let _ = tokio::time::timeout(heard, self.drain()).await;
    }

    /// Says once more, at most, that it is closed, and forgets it.
    pub(super) async fn forget(mut self) {
        self.flush().await;
        self.line.forget();
    }

    /// Goes on until nothing that may still come needs an answer (RFC 9000 §10.2).
    pub(super) async fn drain(&mut self) {
        loop {
            self.flush().await;
            if self.line.is_drained() || matches!(self.wait(None).await, Happened::Unreachable(_)) {
                return;
            }
        }
    }
}

/// Why a connection is over.
#[derive(Debug)]
pub(super) enum Over {
    /// The relay closes the carrier.
    Closing,
    /// The transport says so.
    Lost(ConnectionError),
    /// The host says that nobody is there.
    Unreachable(io::Error),
    /// This side does not want the other any more.
    Cut(String),
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closing => f.write_str("closed by this side"),
            Self::Lost(ConnectionError::ApplicationClosed(_)) => {
                f.write_str("closed by the other side")
            }
            Self::Lost(error) => error.fmt(f),
            Self::Unreachable(error) => write!(f, "UDP: {error}"),
            Self::Cut(why) => f.write_str(why),
        }
    }
}
