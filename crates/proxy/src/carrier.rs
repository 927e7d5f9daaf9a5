//! Connections between edge and gateway: TCP, plain or under TLS 1.3, two tasks' worth of copying
//! between a socket and the actor.
//!
//! Bytes wait in the queue of a carrier only as far as the relay's transmit window reaches: it
//! gives more once it heard that the kernel took the last.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::Pin;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use proto::coap::Code;
use proto::kinds::Kind;
use proto::stream::Frame;
use relay::{CarrierId, DialFailure, Input};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::actor::{Handle, Message, Queue};
use crate::keys::{Identity, PublicKey};
use crate::metrics::Metrics;
use crate::origin::Stream;
use crate::seats::{Doing, Seat, Seats, Source};
use crate::socket::{self, Ahead};
use crate::tls;
use crate::trust::{Trust, Trusting};

pub(crate) mod datagram;
mod dial;
mod looks;
pub(crate) mod plain;
pub(crate) mod quic;
pub(crate) mod udp;

/// Most bytes read at a time.
const READ_BYTES: usize = 16 * 1024;
/// Most bytes given to the kernel (and to TLS) at a time: what `Sent` then acknowledges.
const WRITE_BYTES: usize = 16 * 1024;
/// Plain bytes TLS may hold before it has written them.
const TLS_BUFFER_BYTES: usize = 2 * WRITE_BYTES;
/// How long a carrier that closes waits for the other side to close too, from when its last bytes
/// got on. A packet takes seconds on slow links.
const CLOSE_PATIENCE: Duration = Duration::from_secs(4);
/// The same in all: what carrier and kernel hold takes half a minute at 9.6 kbit/s, and who takes a
/// byte now and then must not hold it for ever.
const MAX_CLOSE_PATIENCE: Duration = Duration::from_secs(60);
/// How long who connects may say nothing: whoever is in earnest begins with its handshake.
const SILENT_PATIENCE: Duration = Duration::from_secs(3);
/// Most bytes of what a peer says first that are kept before it is whole: a HELLO has a hundred or
/// so, with room for what later versions add.
const MAX_GREETING_BYTES: usize = 4096;

/// Said where a side without keys meets one that has some.
const SPEAKS_TLS: &str = "the other side speaks TLS: give --key and --peer here too";
/// How long reading the other side's last bytes may take where nothing can be written: they are
/// here already.
const LAST_BYTES_PATIENCE: Duration = Duration::from_millis(200);

/// How often it is looked how much the kernel should hold.
const ADJUST_PAUSE: Duration = Duration::from_millis(500);

/// How the two sides know each other.
#[derive(Clone, Debug)]
pub enum Security {
    /// Not at all; `anywhere` lifts the restriction to loopback addresses.
    Insecure {
        /// `--insecure-plain`.
        anywhere: bool,
    },
    /// By pinned keys.
    Keys(Arc<Identity>),
}

impl Security {
    /// Whether carriers may be bound to or dialled at an address.
    pub(crate) fn permits(&self, address: SocketAddr) -> bool {
        match self {
            Self::Insecure { anywhere } => *anywhere || address.ip().to_canonical().is_loopback(),
            Self::Keys(_) => true,
        }
    }

    /// What to say when it does not.
    pub(crate) fn refusal(&self, address: SocketAddr) -> String {
        format!(
            "without keys only loopback addresses are used, and {address} is none: give \
             --key FILE --peer FILE (longwire keygen makes them) or --insecure-plain"
        )
    }

    /// Fingerprint of this side's own key, where it has one.
    #[must_use]
    pub fn fingerprint(&self) -> Option<String> {
        match self {
            Self::Insecure { .. } => None,
            Self::Keys(identity) => Some(identity.key.fingerprint()),
        }
    }
}

/// Times of carriers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Bound on resolving and connecting; and on the handshake.
    pub(crate) dial: Duration,
    /// What is not acknowledged for so long never will be.
    pub(crate) peer: Duration,
    /// How long a carrier idles before its peer is asked for a sign of life.
    pub(crate) keepalive: Duration,
}

impl Times {
    pub(crate) fn new(dial: Duration, relay: &relay::Config) -> Self {
        Self { dial, peer: relay.peer_timeout, keepalive: relay.keepalive }
    }
}

/// How a carrier ended, and what that says where it had not come up.
struct Ended {
    failure: DialFailure,
    /// One line.
    reason: String,
}

impl Ended {
    fn unreachable(reason: String) -> Self {
        Self { failure: DialFailure::Unreachable, reason }
    }
}

/// What every carrier of a process shares.
#[derive(Clone)]
pub(crate) struct Carriers {
    trust: Trusting,
    congestion: Option<String>,
    /// See [`relay::Config::own_bytes_per_s`].
    own_bytes_per_s: Option<u64>,
    times: Times,
    /// Edge: where the gateway was found last.
    resolved: Arc<Mutex<Vec<SocketAddr>>>,
    /// Edge: which of these is tried first.
    next_address: Arc<AtomicUsize>,
    /// Edge: the gateways that were met over QUIC, by their addresses.
    met: Arc<Mutex<BTreeMap<SocketAddr, quic::Met>>>,
    handle: Handle,
    metrics: Arc<Metrics>,
    /// Dropped with the last task of the last carrier.
    _alive: mpsc::Sender<()>,
}

impl Carriers {
    /// The receiver ends when all carriers and all clones of this have.
    pub(crate) fn new(
        trust: Trusting,
        (congestion, own_bytes_per_s): (Option<String>, Option<u64>),
        times: Times,
        handle: Handle,
        metrics: Arc<Metrics>,
    ) -> (Self, mpsc::Receiver<()>) {
        let (alive, ended) = mpsc::channel(1);
        let (resolved, next_address, met) = (Arc::default(), Arc::default(), Arc::default());
        (
            Self {
                trust,
                congestion,
                own_bytes_per_s,
                times,
                resolved,
                next_address,
                met,
                handle,
                metrics,
                _alive: alive,
            },
            ended,
        )
    }

    /// Whether the two sides know each other by keys.
    pub(crate) fn has_keys(&self) -> bool {
        self.trust.now().identity().is_some()
    }

    /// The congestion control that is wanted, and the rate of a link that nobody shares.
    fn sending(&self) -> (Option<&str>, Option<u64>) {
        (self.congestion.as_deref(), self.own_bytes_per_s)
    }

    /// Gateway: finds out who connected, by its key where there are keys, and what it says first.
    /// Until then it has its place among strangers alone. The error is one line.
    pub(crate) async fn greet(
        &self,
        seat: &Seat<Source>,
        address: SocketAddr,
        stream: TcpStream,
    ) -> Result<Greeted, String> {
        let greeting = async {
            let spoken = tokio::time::timeout(SILENT_PATIENCE, stream.readable()).await;
            if !matches!(spoken, Ok(Ok(()))) {
                return Err(format!("it said nothing for {} s", SILENT_PATIENCE.as_secs()));
            }
            seat.note(Doing::Speaking);
            let socket = stream_fd(&stream);
            let trust = self.trust.now();
            let Some(acceptor) = &trust.server else {
                // Its port is another each time that it comes back.
                let peer = address.ip().to_canonical().to_string();
                return Greeted::new((peer, None), socket, Box::new(stream)).await;
            };
            let handshake = acceptor.accept_with(stream, |connection| {
                connection.set_buffer_limit(Some(TLS_BUFFER_BYTES));
            });
            let explain = |error| tls::explain(&error, trust.identity());
            let stream = handshake.await.map_err(explain)?;
            let peer = peer(&trust, stream.get_ref().1.peer_certificates());
            Greeted::new(peer, socket, Box::new(stream)).await
        };
        // A handshake of 1 kB each way, with a packet lost, takes seconds on slow links.
        let patience = self.times.dial;
        tokio::time::timeout(patience, greeting).await.unwrap_or_else(|_| {
            let waited = patience.as_secs_f64();
            Err(format!("no handshake and HELLO within {waited} s (hello_timeout)"))
        })
    }

    /// Gateway: runs the carrier of an edge that is known to its end. Those that close have their
    /// place until one more is wanted.
    pub(crate) async fn serve(
        self,
        carrier: CarrierId,
        greeted: Greeted,
        seats: &Arc<Seats<String>>,
    ) {
        let Greeted { peer, key, kind, socket, stream, first } = greeted;
        let Some((seat, _)) = seats.try_take(&peer) else {
            tracing::warn!(peer, "refused a carrier: too many are connected");
            return;
        };
        seat.note(Doing::Busy);
        let closes = || seat.note(Doing::Silent);
        let named = (carrier, kind);
        let reason = tokio::select! {
            ended = self.run(named, &peer, &socket, stream, first, &closes) => ended.reason,
            () = seat.lost() => "closed by this side at once".to_owned(),
            why = self.trust.lost(key) => format!("cut off: {why}"),
        };
        tracing::debug!(carrier = carrier.0, peer, reason, "carrier ended");
        self.handle.send(Message::Input(Input::CarrierDown { carrier, reason })).await;
    }

    /// Copies until either side closes, behind what came `first`; says why in one line. `closes`
    /// hears when only the last bytes are waited for.
    async fn run<S: AsyncRead + AsyncWrite>(
        &self,
        (carrier, kind): (CarrierId, &'static str),
        peer: &str,
        socket: &io::Result<OwnedFd>,
        stream: S,
        first: Bytes,
        closes: &(dyn Fn() + Sync),
    ) -> Ended {
        let prepared = match socket {
            Ok(fd) => socket::prepare_carrier(fd.as_fd(), self.sending(), &self.times)
                .and_then(|congestion| Ok((congestion, fd.try_clone()?, fd.try_clone()?))),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        let (congestion, watched, written) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                return Ended::unreachable(format!("cannot set up the carrier's socket: {error}"));
            }
        };
        let guard = self.metrics.watch_carrier(carrier, peer, watched);
        let address = address_of(socket);
        tracing::info!(carrier = carrier.0, peer, address, congestion, kind, "carrier connected");
        // bound: the relay's transmit window, and its bound on the backlog of a carrier.
        let (queue, waiting) = mpsc::unbounded_channel();
        let peer = peer.to_owned();
        let queue = Queue::Bytes(queue);
        self.handle.send(Message::CarrierUp { carrier, kind, peer, queue }).await;
        if !first.is_empty() {
            self.handle.send(Message::Input(Input::Received { carrier, bytes: first })).await;
        }
        let (reader, writer) = tokio::io::split(stream);
        let mut read = std::pin::pin!(self.read(carrier, reader));
        let ended = tokio::select! {
            ended = &mut read => ended,
            result = self.write(carrier, &written, writer, waiting) => match result {
                Err(error) => self.broke(&error, read).await,
                Ok(()) => {
                    closes();
                    // It may take longer only where somebody holds it up.
                    let closing = self.closes(carrier, read);
                    let _ = tokio::time::timeout(MAX_CLOSE_PATIENCE, closing).await;
                    Ended::unreachable("closed by this side".to_owned())
                }
            },
        };
        drop(guard);
        ended
    }

    /// Nothing can be written any more. Why may stand in what the other side wrote before.
    async fn broke(&self, error: &io::Error, read: Pin<&mut impl Future<Output = Ended>>) -> Ended {
        match tokio::time::timeout(LAST_BYTES_PATIENCE, read).await {
            Ok(ended) if ended.failure == DialFailure::Refused => ended,
            _ => Ended::unreachable(format!("writing: {}", self.explain(error))),
        }
    }

    /// Waits for the other side to close as well, as long as the last bytes get on: to close at
    /// once would reset the connection under them as soon as anything came.
    async fn closes(&self, carrier: CarrierId, mut read: Pin<&mut impl Future<Output = Ended>>) {
        let mut before = self.metrics.under_way(Some(carrier));
        while tokio::time::timeout(CLOSE_PATIENCE, &mut read).await.is_err() {
            let now = self.metrics.under_way(Some(carrier));
            if now.left_bytes == 0 || now == before {
                return;
            }
            before = now;
        }
    }

    fn explain(&self, error: &io::Error) -> String {
        tls::explain(error, self.trust.now().identity())
    }

    async fn read<R: AsyncRead>(&self, carrier: CarrierId, reader: R) -> Ended {
        let mut reader = std::pin::pin!(reader);
        let mut buffer = BytesMut::new();
        let mut is_first = true;
        loop {
            buffer.reserve(READ_BYTES);
            match reader.read_buf(&mut buffer).await {
                Ok(0) => return Ended::unreachable("closed by the other side".to_owned()),
                Ok(_) => {
                    if std::mem::take(&mut is_first) && tls::is_record(&buffer) {
                        let (failure, reason) = (DialFailure::Refused, SPEAKS_TLS.to_owned());
                        return Ended { failure, reason };
                    }
                    let bytes = buffer.split().freeze();
                    self.handle.send(Message::Input(Input::Received { carrier, bytes })).await;
                }
                Err(error) => {
                    let failure = dial::failure_of(&error);
                    let reason = format!("reading: {}", self.explain(&error));
                    return Ended { failure, reason };
                }
            }
        }
    }

    /// Ends well when the actor has closed the queue and all is written.
    async fn write<W: AsyncWrite>(
        &self,
        carrier: CarrierId,
        socket: &OwnedFd,
        writer: W,
        mut waiting: mpsc::UnboundedReceiver<Bytes>,
    ) -> io::Result<()> {
        let mut writer = std::pin::pin!(writer);
        let mut ahead = self.own_bytes_per_s.and_then(Ahead::of);
        let mut adjusted: Option<Instant> = None;
        let mut gathered = BytesMut::with_capacity(WRITE_BYTES);
        while let Some(mut bytes) = waiting.recv().await {
            // Small pieces that wait together leave together.
            while bytes.len() < WRITE_BYTES
                && let Ok(more) = waiting.try_recv()
            {
                gathered.clear();
                gathered.extend_from_slice(&bytes);
                gathered.extend_from_slice(&more);
                bytes = gathered.split().freeze();
            }
            if adjusted.is_none_or(|at| at.elapsed() >= ADJUST_PAUSE) {
                adjusted = Some(Instant::now());
                let seen = || socket::tcp_info(socket).map_or(0, |info| info.delivered_bytes_per_s);
                ahead = Ahead::of(self.own_bytes_per_s.unwrap_or_else(seen));
            }
            while !bytes.is_empty() {
                let room = await_room(socket, ahead).await;
                let chunk = bytes.split_to(bytes.len().min(room));
                writer.write_all(&chunk).await?;
                writer.flush().await?;
                let sent = Input::Sent { carrier, bytes: chunk.len() };
                self.handle.send(Message::Input(sent)).await;
            }
        }
        writer.shutdown().await
    }
}

/// Waits until more may be given to the kernel: how many bytes.
async fn await_room(socket: &OwnedFd, ahead: Option<Ahead>) -> usize {
    let Some(ahead) = ahead else { return WRITE_BYTES };
    loop {
        match socket::unsent(socket).map_or(Ok(WRITE_BYTES), |unsent| ahead.room(unsent)) {
            Ok(room) => return room.min(WRITE_BYTES),
            // sleep: what is before it takes so long to leave, and the kernel does not say when.
            Err(pause) => tokio::time::sleep(pause).await,
        }
    }
}

/// An edge that is known, and has begun to say HELLO.
pub(crate) struct Greeted {
    peer: String,
    key: Option<PublicKey>,
    kind: &'static str,
    socket: io::Result<OwnedFd>,
    stream: Box<dyn Stream>,
    /// What it has said so far.
    first: Bytes,
}

impl Greeted {
    /// The name of the carrier's kind.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// Reads until the first frame is whole; what it is worth, the relay sees.
    async fn new(
        (peer, key): (String, Option<PublicKey>),
        socket: io::Result<OwnedFd>,
        mut stream: Box<dyn Stream>,
    ) -> Result<Self, String> {
        let mut first = BytesMut::new();
        loop {
            let read = stream.read_buf(&mut first).await;
            if read.map_err(|error| format!("reading: {}", tls::words(&error)))? == 0 {
                return Err("it closed before its HELLO".to_owned());
            }
            if tls::is_record(&first) {
                return Err(SPEAKS_TLS.to_owned());
            }
            let (kind, begun) = begins(&first);
            match begun {
                Ok(true) => {
                    let (kind, first) = (kind.name, first.freeze());
                    return Ok(Self { peer, key, kind, socket, stream, first });
                }
                Ok(false) if first.len() <= MAX_GREETING_BYTES => {}
                Ok(false) => {
                    return Err(format!("its HELLO is over {MAX_GREETING_BYTES} bytes"));
                }
                Err(error) => return Err(format!("it says no HELLO: {error}")),
            }
        }
    }
}

/// The kind of a carrier over TCP that begins so, and whether its first message is whole: a HELLO,
/// or the CSM of a connection of CoAP (RFC 8323 §5.3).
fn begins(first: &BytesMut) -> (Kind, Result<bool, proto::Error>) {
    match coap_begins(first) {
        Some(is_whole) => (Kind::COAP_TCP, Ok(is_whole)),
        None => (Kind::STREAM, Frame::take(&mut first.clone()).map(|frame| frame.is_some())),
    }
}

/// Whether the CSM is whole with which a connection of CoAP begins: it has options, no token and no
/// extended length (RFC 8323 §3.2). `None` where something else begins.
fn coap_begins(first: &[u8]) -> Option<bool> {
    const MAX_SHORT_BYTES: u8 = 12;
    let (length, code) = (first.first()? >> 4, first.get(1));
    let is_ours = (1..=MAX_SHORT_BYTES).contains(&length) && first.first()? & 0x0f == 0;
    let is_csm = code.is_none_or(|code| *code == Code::CSM.0);
    (is_ours && is_csm).then(|| first.len() >= 2 + usize::from(length))
}

/// Of the other side.
fn address_of(socket: &io::Result<OwnedFd>) -> Option<String> {
    let address = SockRef::from(socket.as_ref().ok()?).peer_addr().ok()?;
    address.as_socket().map(|address| address.to_string())
}

/// Name and key of the peer at the other end of a finished handshake.
fn peer(
    trust: &Trust,
    certificates: Option<&[rustls_pki_types::CertificateDer<'_>]>,
) -> (String, Option<PublicKey>) {
    let key = tls::peer_key(certificates);
    let name = trust.identity().map(|identity| tls::peer_name(identity, certificates));
    (name.unwrap_or_default(), key)
}

fn stream_fd(stream: &TcpStream) -> io::Result<OwnedFd> {
    stream.as_fd().try_clone_to_owned()
}
