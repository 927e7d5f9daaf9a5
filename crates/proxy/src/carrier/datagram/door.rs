//! The gateway's socket for carriers over UDP.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use proto::sealed::{CONNECTION_BYTES, FIRST_MESSAGE_BYTES, Granted, Inside, Packet, TOKEN_BYTES};
use relay::{CarrierId, Input};
use tokio::sync::{mpsc, watch};

use super::firsts::{Firsts, Fresh};
use super::noise::{Dialled, Resets};
use super::seal::Refused;
use super::session::{Came, Session};
use super::tokens::Tokens;
use super::{CLOSES, MAX_WAITING, kind_of};
use crate::actor::{Message, Queue};
use crate::carrier::Carriers;
use crate::carrier::looks::Admission;
use crate::carrier::udp::{Datagram, PeerPlace, Socket};
use crate::keys::{Identity, PublicKey};
use crate::metrics::Metrics;
use crate::rarely::Rarely;
use crate::refusals::Refusals;
use crate::seats::{Doing, Seat, Seats};

/// Buffers of a socket that one edge sends to.
const OWN_BUFFERS: usize = 2;
/// First messages that were not looked at, as metrics call them.
const STRANGERS: &str = "first messages over UDP";
/// What is not read that came to the port, as metrics call it, beside [`Refused`]: of a connection
/// that is not known; first messages that are answered with a token, that are not to this side's
/// key, of a key that is no peer's, and that are not new; a handshake with nothing behind it.
const UNKNOWN: &str = "unknown connection";
const WITHOUT_TOKEN: &str = "without a token";
const NOT_OURS: &str = "to another key";
const STRANGER: &str = "unknown key";
const NOT_NEW: &str = "not new";
const NOTHING: &str = "nothing in it";

/// A session, and the carrier that it is.
struct Entry {
    session: Mutex<Session>,
    /// The door's, or one of its own once the door is closed.
    socket: Mutex<Arc<Socket>>,
    carrier: CarrierId,
    metrics: Arc<Metrics>,
    over: watch::Sender<bool>,
}

impl Entry {
    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn socket(&self) -> Arc<Socket> {
        Arc::clone(&self.socket.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends a datagram, as far as one may be sent to where the edge is.
    async fn send(&self, datagram: &[u8]) {
        let sealed = self.session().seal(datagram);
        if let Some((place, sealed)) = sealed {
            self.send_sealed(place, &sealed).await;
        }
    }

    async fn send_sealed(&self, place: PeerPlace, sealed: &[u8]) {
        self.metrics.count_datagram(true, sealed.len(), place.address);
        self.socket().send(place, sealed).await;
    }

    /// The carrier is over.
    async fn close(&self) {
        for _ in 0..CLOSES {
            self.send(&Inside::Close.encode()).await;
        }
        self.over.send_replace(true);
    }

    /// What an edge sent that has a session, and that is for the relay. Errors: it is not read.
    async fn came(&self, place: PeerPlace, datagram: &[u8]) -> Result<Option<Input>, Refused> {
        let came = self.open(place, datagram);
        let came = came.inspect_err(|refused| self.metrics.count_refused(refused.why()))?;
        self.metrics.count_datagram(false, datagram.len(), place.address);
        if let Some(answer) = came.answer {
            self.send_sealed(place, &answer).await;
        }
        let carrier = self.carrier;
        Ok(match came.inside {
            Some(Inside::Datagram(bytes)) => Some(Input::Datagram { carrier, bytes }),
            Some(Inside::Close) => {
                Some(Input::CarrierDown { carrier, reason: "closed by the other side".to_owned() })
            }
            Some(Inside::Challenge(_) | Inside::Response(_)) | None => None,
        })
    }

    fn open(&self, place: PeerPlace, datagram: &[u8]) -> Result<Came, Refused> {
        let (packet, head) = Packet::decode(datagram).map_err(|_| Refused::Unreadable)?;
        match packet {
            Packet::First { number, .. } => {
                self.session().open_early(place, datagram, head, number)
            }
            Packet::Data { number, .. } => {
                let random = ring::rand::SystemRandom::new();
                let drawn = ring::rand::generate(&random).map_err(|_| Refused::Unreadable)?;
                self.session().open(place, datagram, (head, number), drawn.expose())
            }
            _ => Err(Refused::Unreadable),
        }
    }

    /// The door closes, and another process may have its port: what the edge sends from where it is
    /// comes to a socket of its own from here on.
    fn take_leave(self: &Arc<Self>, carriers: &Carriers) -> io::Result<()> {
        let place = self.session().place();
        let local = self.socket().socket.local_addr()?;
        let own = Arc::new(Socket::beside(local, place)?);
        *self.socket.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&own);
        let (entry, carriers, mut over) =
            (Arc::clone(self), carriers.clone(), self.over.subscribe());
        tokio::spawn(async move {
            let mut room = own.room(OWN_BUFFERS);
            loop {
                let came = tokio::select! {
                    came = own.receive(&mut room) => came,
                    _ = over.wait_for(|over| *over) => return,
                };
                for Datagram { place, bytes, .. } in came {
                    if let Ok(Some(input)) = entry.came(place, &bytes).await {
                        carriers.handle.send(Message::Input(input)).await;
                    }
                }
            }
        });
        Ok(())
    }
}

/// How a connection is named.
type Connection = [u8; CONNECTION_BYTES];

/// The sessions that there are.
#[derive(Default)]
struct Sessions {
    /// By their first message.
    begun: HashMap<[u8; FIRST_MESSAGE_BYTES], Arc<Entry>>,
    by_connection: HashMap<Connection, Arc<Entry>>,
}

/// See the module.
pub(crate) struct Door {
    carriers: Carriers,
    /// Names of the kinds that are taken.
    kinds: Vec<&'static str>,
    socket: Arc<Socket>,
    known: Arc<Seats<String>>,
    next: Arc<AtomicU64>,
    refusals: Arc<Refusals>,
    /// What is told of datagrams that are nobody's.
    noise: Refusals,
    dropped: Rarely,
    metrics: Arc<Metrics>,
    tokens: Tokens,
    sessions: Sessions,
    firsts: Firsts,
    /// Carriers that ended.
    ended: (mpsc::UnboundedSender<Connection>, mpsc::UnboundedReceiver<Connection>),
}

impl Door {
    /// One with this socket, for the kinds of these names. `known` are the places of carriers, and
    /// `next` their next number, of all kinds.
    pub(crate) fn new(
        socket: Arc<Socket>,
        (carriers, kinds): (Carriers, Vec<&'static str>),
        (known, next): (Arc<Seats<String>>, Arc<AtomicU64>),
        refusals: Arc<Refusals>,
        metrics: Arc<Metrics>,
    ) -> io::Result<Self> {
        let tokens = Tokens::new(Instant::now());
        let tokens = tokens.ok_or_else(|| io::Error::other("no randomness"))?;
        let sessions = Sessions::default();
        // bound: one for each carrier that there was, which has a place until it is taken.
        let ended = mpsc::unbounded_channel();
        Ok(Self {
            carriers,
            kinds,
            socket,
            known,
            next,
            refusals,
            noise: Refusals::default(),
            dropped: Rarely::default(),
            metrics,
            tokens,
            sessions,
            firsts: Firsts::default(),
            ended,
        })
    }

    /// A datagram came to the port that is one of these.
    pub(crate) async fn came(&mut self, place: PeerPlace, datagram: &[u8]) {
        while let Ok(connection) = self.ended.1.try_recv() {
            self.sessions.end(connection);
        }
        let Ok((packet, head)) = Packet::decode(datagram) else {
            self.metrics.count_refused(Refused::Unreadable.why());
            return self.tell(place, Refused::Unreadable.why());
        };
        let entry = match packet {
            Packet::First { message, .. } => self.sessions.begun.get(message),
            Packet::Data { connection, .. } => self.sessions.by_connection.get(&connection),
            _ => return self.metrics.count_refused(Refused::Unreadable.why()),
        };
        if let Some(entry) = entry.map(Arc::clone) {
            match entry.came(place, datagram).await {
                Ok(input) => {
                    if let Some(input) = input {
                        self.carriers.handle.send(Message::Input(input)).await;
                    }
                }
                // Links double what they carry.
                Err(Refused::Repeated) => {}
                Err(refused) => self.tell(place, refused.why()),
            }
        } else if let Packet::First { token, message, number, .. } = packet {
            self.first(place, datagram, (head, number), (message, token)).await;
        } else if let Packet::Data { connection, .. } = packet {
            self.metrics.count_refused(UNKNOWN);
            self.reset(place, datagram.len(), connection).await;
        }
    }

    /// Says that a datagram was dropped, of one source now and then.
    fn tell(&self, place: PeerPlace, why: &str) {
        let address = place.address;
        if let Some(suppressed) = self.noise.tell(address.ip(), Instant::now()) {
            tracing::warn!(%address, why, suppressed, "dropped a datagram of no edge");
        }
    }

    /// An edge means a connection that is not known. What says so is no longer than what came.
    async fn reset(&mut self, place: PeerPlace, came_bytes: usize, connection: Connection) {
        let trust = self.carriers.trust.now();
        let resets = trust.identity().and_then(Resets::new);
        let Some(resets) = resets.filter(|_| self.tokens.may_reset(Instant::now())) else { return };
        let reset = Packet::Reset { token: &resets.token(connection) }.head();
        if reset.len() < came_bytes {
            self.socket.send(place, &reset).await;
        }
    }

    /// Somebody dials who has no session.
    async fn first(
        &mut self,
        place: PeerPlace,
        datagram: &[u8],
        (head, number): (usize, u32),
        (message, token): (&[u8; FIRST_MESSAGE_BYTES], Option<&[u8; TOKEN_BYTES]>),
    ) {
        let now = Instant::now();
        let (admission, has_token) = self.tokens.admit(now, place.address, token);
        match admission {
            Admission::Look => {}
            Admission::Retry => return self.retry(now, place, message).await,
            Admission::Drop => return self.too_many(now),
        }
        let trust = self.carriers.trust.now();
        let Some(identity) = trust.identity() else { return };
        let known = self.read(identity, place, (message, token), now);
        let Some((dialled, peer, key)) = known else { return };
        let (point, at_us) = (dialled.point, dialled.said.at_us);
        match self.firsts.admit(point, at_us, has_token, now) {
            Fresh::Unknown => return self.retry(now, place, message).await,
            Fresh::No => return self.metrics.count_refused(NOT_NEW),
            Fresh::Yes => {}
        }
        let Some(connection) = self.sessions.free_connection() else { return };
        let Some(resets) = Resets::new(identity) else { return };
        let granted = Granted { connection, reset: resets.token(connection) };
        let session = Session::new(dialled, *message, granted, place, has_token);
        let Some(mut session) = session else { return };
        let came = session.open_early(place, datagram, head, number);
        let Ok(Came { inside: Some(Inside::Datagram(bytes)), .. }) = came else {
            // A first message can be copied, what is sealed behind it not be made.
            self.metrics.count_refused(came.err().map_or(NOTHING, Refused::why));
            return self.tell(place, NOTHING);
        };
        let kind = kind_of(&bytes).name;
        if !self.kinds.contains(&kind) {
            let why = "carriers of its kind are not taken";
            return tracing::warn!(peer, kind, why, "refused a carrier over UDP");
        }
        let Some((seat, _)) = self.known.try_take(&peer) else {
            tracing::warn!(peer, "refused a carrier: too many are connected");
            return;
        };
        self.firsts.accept(point, at_us, now);
        self.tokens.know(place.address);
        let over = watch::Sender::new(false);
        let carrier = CarrierId(self.next.fetch_add(1, Ordering::Relaxed));
        let (socket, session) = (Mutex::new(Arc::clone(&self.socket)), Mutex::new(session));
        let metrics = Arc::clone(&self.metrics);
        let entry = Arc::new(Entry { session, socket, carrier, metrics, over });
        self.sessions.begun.insert(*message, Arc::clone(&entry));
        self.sessions.by_connection.insert(connection, Arc::clone(&entry));
        let (queue, waiting) = mpsc::channel(MAX_WAITING);
        let address = place.address;
        tracing::info!(carrier = carrier.0, peer, %address, kind, "carrier connected");
        let queue = Queue::Datagrams(queue);
        self.carriers.handle.send(Message::CarrierUp { carrier, kind, peer, queue }).await;
        self.carriers.handle.send(Message::Input(Input::Datagram { carrier, bytes })).await;
        let serving = serve(self.carriers.clone(), entry, waiting, seat, key);
        let ended = self.ended.0.clone();
        tokio::spawn(async move {
            serving.await;
            // The door may have gone.
            let _ = ended.send(connection);
        });
    }

    /// A first message is not looked at.
    fn too_many(&self, now: Instant) {
        self.metrics.count_limit(STRANGERS);
        if let Some(times) = self.dropped.note(now) {
            tracing::warn!(limit = STRANGERS, times, "limit reached");
        }
    }

    /// Who dials, by its first message; what is nobody's is counted and told.
    fn read(
        &self,
        identity: &Identity,
        place: PeerPlace,
        (message, token): (&[u8; FIRST_MESSAGE_BYTES], Option<&[u8; TOKEN_BYTES]>),
        now: Instant,
    ) -> Option<(Dialled, String, PublicKey)> {
        // A token that is none is no part of the handshake that the edge means.
        let Some(dialled) = Dialled::new(identity, message, token) else {
            self.metrics.count_refused(NOT_OURS);
            self.tell(place, NOT_OURS);
            return None;
        };
        match identity.admit_x25519(&dialled.point) {
            Ok((peer, key)) => Some((dialled, peer.to_owned(), key)),
            Err(why) => {
                self.metrics.count_refused(STRANGER);
                if let Some(suppressed) = self.refusals.tell(place.address.ip(), now) {
                    let address = place.address;
                    tracing::warn!(%address, why, suppressed, "refused a carrier over UDP");
                }
                None
            }
        }
    }

    async fn retry(&self, now: Instant, place: PeerPlace, message: &[u8; FIRST_MESSAGE_BYTES]) {
        self.metrics.count_refused(WITHOUT_TOKEN);
        let token = self.tokens.make(now, place.address);
        if let Some(beginning) = message.first_chunk() {
            self.socket.send(place, &Packet::Retry { beginning, token: &token }.head()).await;
        }
    }
}

/// However it closes, the carriers that there are go on.
impl Drop for Door {
    fn drop(&mut self) {
        while let Ok(connection) = self.ended.1.try_recv() {
            self.sessions.end(connection);
        }
        for entry in self.sessions.by_connection.values() {
            if let Err(error) = entry.take_leave(&self.carriers) {
                let carrier = entry.carrier.0;
                tracing::warn!(carrier, %error, "a carrier over UDP ends with its port");
                entry.over.send_replace(true);
            }
        }
    }
}

impl Sessions {
    /// A name that no connection has.
    fn free_connection(&self) -> Option<Connection> {
        let random = ring::rand::SystemRandom::new();
        // One in four thousand million is taken for each that there is.
        (0..16).find_map(|_| {
            let drawn: [u8; 4] = ring::rand::generate(&random).ok()?.expose();
            (!self.by_connection.contains_key(&drawn)).then_some(drawn)
        })
    }

    fn end(&mut self, connection: Connection) {
        if let Some(entry) = self.by_connection.remove(&connection) {
            let first = entry.session().first;
            self.begun.remove(&first);
        }
    }
}

/// Sends what the relay has for an edge, until it closes the carrier.
async fn serve(
    carriers: Carriers,
    entry: Arc<Entry>,
    mut waiting: mpsc::Receiver<Bytes>,
    seat: Seat<String>,
    key: PublicKey,
) {
    seat.note(Doing::Busy);
    let sending = async {
        while let Some(datagram) = waiting.recv().await {
            entry.send(&datagram).await;
        }
        "closed by this side".to_owned()
    };
    let mut over = entry.over.subscribe();
    let reason = tokio::select! {
        reason = sending => reason,
        () = seat.lost() => "closed by this side at once".to_owned(),
        why = carriers.trust.lost(Some(key)) => format!("cut off: {why}"),
        _ = over.wait_for(|over| *over) => "its port went to another process".to_owned(),
    };
    entry.close().await;
    let carrier = entry.carrier;
    tracing::debug!(carrier = carrier.0, reason, "carrier ended");
    carriers.handle.send(Message::Input(Input::CarrierDown { carrier, reason })).await;
}
