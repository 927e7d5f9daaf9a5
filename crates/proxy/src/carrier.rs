//! Connections between edge and gateway: TCP, plain or under TLS 1.3, two tasks' worth of copying
//! between a socket and the actor.
//!
//! Bytes wait in the queue of a carrier only as far as the relay's transmit window reaches: it
//! gives more once it heard that the kernel took the last.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use proto::stream::Frame;
use relay::{CarrierId, Input};
use rustls_pki_types::ServerName;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::actor::{Handle, Message};
use crate::keys::{Identity, PublicKey};
use crate::metrics::Metrics;
use crate::origin::Stream;
use crate::seats::{Doing, Seat, Seats, Source};
use crate::trust::{Trust, Trusting};
use crate::{socket, tls};

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
/// How long it may take from there until it is known and has said HELLO: a handshake of 1 kB each
/// way, with a packet lost, at 9.6 kbit/s over a satellite.
const GREETING_PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes of what a peer says first that are kept before it is whole: a HELLO has a hundred or
/// so, with room for what later versions add.
const MAX_GREETING_BYTES: usize = 4096;

/// Said where a side without keys meets one that has some.
const SPEAKS_TLS: &str = "the other side speaks TLS: give --key and --peer here too";

/// How the two sides know each other.
#[derive(Clone, Debug)]
pub enum Security {
    /// Not at all; `anywhere` lifts the restriction to loopback addresses.
    Plain {
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
            Self::Plain { anywhere } => *anywhere || address.ip().to_canonical().is_loopback(),
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
            Self::Plain { .. } => None,
            Self::Keys(identity) => Some(identity.key.fingerprint()),
        }
    }
}

/// What every carrier of a process shares.
#[derive(Clone)]
pub(crate) struct Carriers {
    trust: Trusting,
    congestion: Option<String>,
    /// Bound on resolving, connecting and the handshake together.
    timeout: Duration,
    handle: Handle,
    metrics: Arc<Metrics>,
    /// Dropped with the last task of the last carrier.
    _alive: mpsc::Sender<()>,
}

impl Carriers {
    /// The receiver ends when all carriers and all clones of this have.
    pub(crate) fn new(
        trust: Trusting,
        congestion: Option<String>,
        timeout: Duration,
        handle: Handle,
        metrics: Arc<Metrics>,
    ) -> (Self, mpsc::Receiver<()>) {
        let (alive, ended) = mpsc::channel(1);
        (Self { trust, congestion, timeout, handle, metrics, _alive: alive }, ended)
    }

    /// Edge: connects to the gateway at `address` (`HOST:PORT`) and runs the carrier to its end.
    pub(crate) async fn dial(self, carrier: CarrierId, address: String) {
        let reason = match tokio::time::timeout(self.timeout, self.connect(&address)).await {
            Ok(Ok(stream)) => self.dialled(carrier, &address, stream).await,
            Ok(Err(error)) => format!("cannot reach the gateway {address}: {error}"),
            Err(_) => {
                let waited = self.timeout.as_secs_f64();
                format!("cannot reach the gateway {address}: no connection within {waited} s")
            }
        };
        tracing::debug!(carrier = carrier.0, reason, "carrier ended");
        self.handle.send(Message::Input(Input::CarrierDown { carrier, reason })).await;
    }

    async fn connect(&self, address: &str) -> io::Result<TcpStream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in tokio::net::lookup_host(address).await? {
            let security = &self.trust.now().security;
            if !security.permits(address) {
                last = io::Error::other(security.refusal(address));
                continue;
            }
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn dialled(&self, carrier: CarrierId, address: &str, stream: TcpStream) -> String {
        let trust = self.trust.now();
        let Some(connector) = &trust.client else {
            let socket = stream_fd(&stream);
            return self.run(carrier, address, &socket, stream, Bytes::new(), &|| {}).await;
        };
        let fd = stream_fd(&stream);
        // Not sent: the name of a peer is its key's.
        let Ok(name) = ServerName::try_from("longwire.invalid") else {
            return "no server name".to_owned();
        };
        let handshake = connector.connect_with(name, stream, |connection| {
            connection.set_buffer_limit(Some(TLS_BUFFER_BYTES));
        });
        match tokio::time::timeout(self.timeout, handshake).await {
            Ok(Ok(stream)) => {
                let (peer, key) = peer(&trust, stream.get_ref().1.peer_certificates());
                tokio::select! {
                    reason = self.run(carrier, &peer, &fd, stream, Bytes::new(), &|| {}) => reason,
                    why = self.trust.lost(key) => format!("cut off: {why}"),
                }
            }
            Ok(Err(error)) => {
                let why = tls::explain(&error, trust.identity());
                format!("no TLS with the gateway {address}: {why}")
            }
            Err(_) => format!("no TLS with the gateway {address}: it does not answer"),
        }
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
        tokio::time::timeout(GREETING_PATIENCE, greeting).await.unwrap_or_else(|_| {
            let waited = GREETING_PATIENCE.as_secs();
            Err(format!("no handshake and HELLO within {waited} s"))
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
        let Greeted { peer, key, socket, stream, first } = greeted;
        let Some((seat, _)) = seats.try_take(&peer) else {
            tracing::warn!(peer, "refused a carrier: too many are connected");
            return;
        };
        seat.note(Doing::Busy);
        let closes = || seat.note(Doing::Silent);
        let reason = tokio::select! {
            reason = self.run(carrier, &peer, &socket, stream, first, &closes) => reason,
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
        carrier: CarrierId,
        peer: &str,
        socket: &io::Result<OwnedFd>,
        stream: S,
        first: Bytes,
        closes: &(dyn Fn() + Sync),
    ) -> String {
        let prepared = match socket {
            Ok(fd) => socket::prepare_carrier(fd.as_fd(), self.congestion.as_deref())
                .and_then(|congestion| Ok((congestion, fd.try_clone()?))),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        let (congestion, watched) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return format!("cannot set up the carrier's socket: {error}"),
        };
        let guard = self.metrics.watch_carrier(carrier, peer, watched);
        let address = address_of(socket);
        tracing::info!(carrier = carrier.0, peer, address, congestion, "carrier connected");
        // bound: the relay's transmit window, and its bound on the backlog of a carrier.
        let (queue, waiting) = mpsc::unbounded_channel();
        let peer = peer.to_owned();
        self.handle.send(Message::CarrierUp { carrier, peer, queue }).await;
        if !first.is_empty() {
            self.handle.send(Message::Input(Input::Received { carrier, bytes: first })).await;
        }
        let (reader, writer) = tokio::io::split(stream);
        let mut read = std::pin::pin!(self.read(carrier, reader));
        let reason = tokio::select! {
            reason = &mut read => reason,
            result = self.write(carrier, writer, waiting) => match result {
                Err(error) => format!("writing: {}", self.explain(&error)),
                Ok(()) => {
                    closes();
                    // It may take longer only where somebody holds it up.
                    let closing = self.closes(carrier, read);
                    let _ = tokio::time::timeout(MAX_CLOSE_PATIENCE, closing).await;
                    "closed by this side".to_owned()
                }
            },
        };
        drop(guard);
        reason
    }

    /// Waits for the other side to close as well, as long as the last bytes get on: to close at
    /// once would reset the connection under them as soon as anything came.
    async fn closes(&self, carrier: CarrierId, mut read: Pin<&mut impl Future<Output = String>>) {
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

    async fn read<R: AsyncRead>(&self, carrier: CarrierId, reader: R) -> String {
        let mut reader = std::pin::pin!(reader);
        let mut buffer = BytesMut::new();
        let mut is_first = true;
        loop {
            buffer.reserve(READ_BYTES);
            match reader.read_buf(&mut buffer).await {
                Ok(0) => return "closed by the other side".to_owned(),
                Ok(_) => {
                    if std::mem::take(&mut is_first) && tls::is_record(&buffer) {
                        return SPEAKS_TLS.to_owned();
                    }
                    let bytes = buffer.split().freeze();
                    self.handle.send(Message::Input(Input::Received { carrier, bytes })).await;
                }
                Err(error) => return format!("reading: {}", self.explain(&error)),
            }
        }
    }

    /// Ends well when the actor has closed the queue and all is written.
    async fn write<W: AsyncWrite>(
        &self,
        carrier: CarrierId,
        writer: W,
        mut waiting: mpsc::UnboundedReceiver<Bytes>,
    ) -> io::Result<()> {
        let mut writer = std::pin::pin!(writer);
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
            while !bytes.is_empty() {
                let chunk = bytes.split_to(bytes.len().min(WRITE_BYTES));
                writer.write_all(&chunk).await?;
                writer.flush().await?;
                let sent = Input::Sent { carrier, bytes: chunk.len() };
                self.handle.send(Message::Input(sent)).await;
            }
        }
        writer.shutdown().await
    }
}

/// An edge that is known, and has begun to say HELLO.
pub(crate) struct Greeted {
    peer: String,
    key: Option<PublicKey>,
    socket: io::Result<OwnedFd>,
    stream: Box<dyn Stream>,
    /// What it has said so far.
    first: Bytes,
}

impl Greeted {
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
            match Frame::take(&mut first.clone()) {
                Ok(Some(_)) => {
                    return Ok(Self { peer, key, socket, stream, first: first.freeze() });
                }
                Ok(None) if first.len() <= MAX_GREETING_BYTES => {}
                Ok(None) => {
                    return Err(format!("its HELLO is over {MAX_GREETING_BYTES} bytes"));
                }
                Err(error) => return Err(format!("it says no HELLO: {error}")),
            }
        }
    }
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
