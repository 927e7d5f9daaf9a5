//! The gateway's port for carriers over QUIC. Who begins a connection is a stranger until its key
//! is known: strangers have a few places, for seconds ([`crate::seats`]), and beyond some of them
//! only who receives at its address gets one (RFC 9000 §8.1.2).

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::BytesMut;
use quinn_proto::crypto::HandshakeTokenKey;
use quinn_proto::{
    ConnectionEvent, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, Incoming,
    ServerConfig,
};
use relay::{CarrierId, Input, Role};
use ring::hkdf;
use tokio::sync::{mpsc, watch};

use super::congestion::{Control, Seen};
use super::line::Line;
use super::wire::{FromDoor, Over, Wire};
use super::{FIRST_ROUND_TRIP, KIND, endpoint_config, transport};
use crate::actor::{Message, Queue};
use crate::carrier::Carriers;
use crate::carrier::looks::{Admission, Looks};
use crate::carrier::udp::{Datagram, PeerPlace, Socket};
use crate::keys::PublicKey;
use crate::metrics::Metrics;
use crate::rarely::Rarely;
use crate::refusals::Refusals;
use crate::seats::{Doing, Seat, Seats, Source};
use crate::tls;
use crate::trust::Trust;

/// Strangers at once, of which so many may not have shown that they receive at their address.
const MAX_STRANGERS: usize = 64;
const MAX_UNPROVEN: usize = 16;
/// Handshakes that are looked at in a second: each costs several times what one over burst does.
const MAX_LOOKS: u32 = 128;
/// Datagrams that wait for a connection's task; one more is as good as lost.
const MAX_WAITING: usize = 1024;
/// How metrics call the bound on strangers.
const STRANGERS: &str = "first flights over QUIC";
/// What came to the port and is not read, as metrics call it: what the transport can make nothing
/// of; what it answers without a connection, such as that it knows none; handshakes whose beginning
/// is answered with a token.
const UNREADABLE: &str = "unreadable";
const UNKNOWN: &str = "unknown connection";
const WITHOUT_TOKEN: &str = "without a token";

/// What a connection's task says to the door.
enum FromTask {
    /// It is no stranger any more, or never will be anything else; where it is, if it is a peer.
    Known(Option<SocketAddr>),
    /// It is over.
    Ended(ConnectionHandle),
}

/// See the module.
pub(crate) struct Door {
    shared: Shared,
    socket: Arc<Socket>,
    endpoint: Arc<Mutex<Endpoint>>,
    token_key: Arc<dyn HandshakeTokenKey>,
    strangers: Arc<Seats<Source>>,
    /// How many there are.
    strange: usize,
    looks: Looks,
    dropped: Rarely,
    tasks: BTreeMap<ConnectionHandle, Task>,
    said: (mpsc::UnboundedSender<FromTask>, mpsc::UnboundedReceiver<FromTask>),
}

/// A connection's task.
struct Task {
    events: mpsc::Sender<ConnectionEvent>,
    /// Gives it a socket of its own.
    own: watch::Sender<Option<Arc<Socket>>>,
    /// Where the edge was last.
    place: PeerPlace,
}

/// What every connection's task has.
#[derive(Clone)]
struct Shared {
    carriers: Carriers,
    known: Arc<Seats<String>>,
    next: Arc<AtomicU64>,
    refusals: Arc<Refusals>,
    metrics: Arc<Metrics>,
}

impl Door {
    /// One with this socket. `known` are the places of carriers, and `next` their next number, of
    /// all kinds. Errors: there are no keys, or no randomness.
    pub(crate) fn new(
        socket: Arc<Socket>,
        carriers: Carriers,
        (known, next): (Arc<Seats<String>>, Arc<AtomicU64>),
        refusals: Arc<Refusals>,
        metrics: Arc<Metrics>,
    ) -> io::Result<Self> {
        let trust = carriers.trust.now();
        let config = trust.identity().and_then(endpoint_config);
        let config = config.ok_or_else(|| io::Error::other("carriers over QUIC need keys"))?;
        let may_find_mtu = !socket.may_fragment();
        let token_key = token_key().ok_or_else(|| io::Error::other("no randomness"))?;
        let server = server_config(&trust, &token_key);
        let endpoint = Endpoint::new(Arc::new(config), server.map(Arc::new), may_find_mtu, None);
        let endpoint = Arc::new(Mutex::new(endpoint));
        // bound: two for each connection that there was, of which there are so many.
        let said = mpsc::unbounded_channel();
        let (strangers, strange, tasks) = (Seats::new(MAX_STRANGERS), 0, BTreeMap::new());
        let (looks, dropped) = (Looks::new(Instant::now(), MAX_LOOKS), Rarely::default());
        let shared = Shared { carriers, known, next, refusals, metrics };
        Ok(Self {
            shared,
            socket,
            endpoint,
            token_key,
            strangers,
            strange,
            looks,
            dropped,
            tasks,
            said,
        })
    }

    /// A datagram came to the port that is one of QUIC.
    pub(crate) async fn came(&mut self, datagram: Datagram) {
        while let Ok(said) = self.said.1.try_recv() {
            match said {
                FromTask::Known(peer) => {
                    self.strange = self.strange.saturating_sub(1);
                    peer.into_iter().for_each(|address| self.looks.know(address));
                }
                FromTask::Ended(handle) => {
                    // Another may have its number already.
                    if self.tasks.get(&handle).is_some_and(|task| task.events.is_closed()) {
                        self.tasks.remove(&handle);
                    }
                }
            }
        }
        let Datagram { place, ecn, bytes } = datagram;
        let ecn = ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
        let (mut answer, now) = (Vec::new(), Instant::now());
        let data = BytesMut::from(&bytes[..]);
        let event = {
            let mut endpoint = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner);
            endpoint.handle(now, place.address, place.to, ecn, data, &mut answer)
        };
        match event {
            None => self.shared.metrics.count_refused(UNREADABLE),
            Some(DatagramEvent::Response(transmit)) => {
                self.shared.metrics.count_refused(UNKNOWN);
                self.socket.send(place, &answer[..transmit.size]).await;
            }
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                self.shared.metrics.count_datagram(false, bytes.len(), place.address);
                if let Some(task) = self.tasks.get_mut(&handle) {
                    task.place = place;
                    // One for which there is no room is as good as lost.
                    let _ = task.events.try_send(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.shared.metrics.count_datagram(false, bytes.len(), place.address);
                self.begins(now, place, incoming).await;
            }
        }
    }

    /// Somebody begins a connection.
    async fn begins(&mut self, now: Instant, place: PeerPlace, incoming: Incoming) {
        let is_there = incoming.remote_address_validated();
        let is_full = !is_there && self.strange >= MAX_UNPROVEN;
        let admission = match is_full {
            true => Admission::Retry,
            false => self.looks.admit(now, place.address, is_there),
        };
        match admission {
            Admission::Look => {}
            Admission::Retry => return self.retry(place, incoming).await,
            Admission::Drop => {
                self.too_many(now);
                let mut endpoint = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner);
                return endpoint.ignore(incoming);
            }
        }
        let mut answer = Vec::new();
        let trust = self.shared.carriers.trust.now();
        let seen = Arc::new(Seen::default());
        let server = server_config(&trust, &self.token_key).map(|mut server| {
            let times = &self.shared.carriers.times;
            let times = (FIRST_ROUND_TRIP, times.keepalive + times.peer);
            let control = self.shared.carriers.quic_control(&seen);
            let transport = transport(Role::Gateway, control, times);
            server.transport_config(Arc::new(transport));
            Arc::new(server)
        });
        let seat = self.strangers.try_take(&Source::of(place.address.ip()));
        let (Some(server), Some((seat, dropped))) = (server, seat) else {
            let mut endpoint = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner);
            return endpoint.ignore(incoming);
        };
        if dropped {
            self.too_many(now);
        }
        let accepted = {
            let mut endpoint = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner);
            endpoint.accept(incoming, now, &mut answer, Some(server))
        };
        let connected = match accepted {
            Ok(connected) => connected,
            Err(error) => {
                if let Some(transmit) = error.response {
                    self.socket.send(place, &answer[..transmit.size]).await;
                }
                return;
            }
        };
        let handle = connected.0;
        let line = Line::new(now, connected, Arc::clone(&self.endpoint), Arc::clone(&seen));
        let (events, coming) = mpsc::channel(MAX_WAITING);
        let (own, given) = watch::channel(None);
        let from_door = FromDoor { events: coming, own: given };
        let metrics = Arc::clone(&self.shared.metrics);
        let wire = Wire::of_port(line, seen, Arc::clone(&self.socket), from_door, metrics);
        self.tasks.insert(handle, Task { events, own, place });
        self.strange += 1;
        let (shared, said) = (self.shared.clone(), self.said.0.clone());
        tokio::spawn(async move {
            let mut wire = wire;
            let met = shared.meet(&mut wire, place.address, seat).await;
            // What is sent with 0-RTT can be played back, from anywhere.
            let is_there = met.is_some() && wire.line.is_connected();
            // The door may have gone.
            let _ = said.send(FromTask::Known(is_there.then_some(place.address)));
            if let Some((peer, key)) = met {
                wire.line.admit();
                shared.serve(&mut wire, place.address, peer, key).await;
                drop(shared);
                wire.drain().await;
            }
            // Who is not known has no place a moment longer.
            wire.forget().await;
            let _ = said.send(FromTask::Ended(handle));
        });
    }

    /// A stranger is not looked at, or another gets its place.
    fn too_many(&self, now: Instant) {
        self.shared.metrics.count_limit(STRANGERS);
        if let Some(times) = self.dropped.note(now) {
            tracing::warn!(limit = STRANGERS, times, "limit reached");
        }
    }

    /// Somebody is to show that it receives at its address.
    async fn retry(&self, place: PeerPlace, incoming: Incoming) {
        self.shared.metrics.count_refused(WITHOUT_TOKEN);
        let mut answer = Vec::new();
        let transmit = {
            let mut endpoint = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner);
            match endpoint.retry(incoming, &mut answer) {
                Ok(transmit) => transmit,
                Err(error) => {
                    endpoint.ignore(error.into_incoming());
                    return;
                }
            }
        };
        self.socket.send(place, &answer[..transmit.size]).await;
    }
}

/// However it closes, the carriers that there are go on.
impl Drop for Door {
    fn drop(&mut self) {
        let Ok(local) = self.socket.socket.local_addr() else { return };
        for task in self.tasks.values().filter(|task| !task.events.is_closed()) {
            match Socket::beside(local, task.place) {
                Ok(socket) => drop(task.own.send_replace(Some(Arc::new(socket)))),
                Err(error) => tracing::warn!(%error, "a carrier over QUIC ends with its port"),
            }
        }
    }
}

impl Shared {
    /// Finds out who begins a connection, in time; else the connection is closed.
    async fn meet(
        &self,
        wire: &mut Wire,
        address: SocketAddr,
        stranger: Seat<Source>,
    ) -> Option<(String, Option<PublicKey>)> {
        let patience = self.carriers.times.dial;
        let meeting = wire.until(|line| line.peer());
        let met = tokio::select! {
            met = tokio::time::timeout(patience, meeting) => met,
            // It is counted where its place went to another.
            () = stranger.lost() => {
                wire.line.close(Instant::now(), "there are too many");
                return None;
            }
        };
        let trust = self.carriers.trust.now();
        let admitted = match (met, trust.identity()) {
            (Ok(Ok(certificates)), Some(identity)) => {
                let key = tls::peer_key(Some(&certificates));
                identity.admit(key).map(|name| (name.to_owned(), key))
            }
            (Ok(Err(over)), _) => Err(over.to_string()),
            (Ok(Ok(_)), None) => Err("this side has no keys any more".to_owned()),
            (Err(_), _) => {
                let waited = patience.as_secs_f64();
                Err(format!("no handshake within {waited} s (hello_timeout)"))
            }
        };
        match admitted {
            Ok(admitted) => Some(admitted),
            Err(why) => {
                if let Some(suppressed) = self.refusals.tell(address.ip(), Instant::now()) {
                    tracing::warn!(%address, why, suppressed, "refused a carrier over QUIC");
                }
                wire.line.close(Instant::now(), "refused");
                None
            }
        }
    }

    /// Runs the carrier of an edge that is known to its end.
    async fn serve(
        &self,
        wire: &mut Wire,
        address: SocketAddr,
        peer: String,
        key: Option<PublicKey>,
    ) {
        let Some((seat, _)) = self.known.try_take(&peer) else {
            tracing::warn!(peer, "refused a carrier: too many are connected");
            return wire.end("too many are connected").await;
        };
        seat.note(Doing::Busy);
        let carrier = CarrierId(self.next.fetch_add(1, Ordering::Relaxed));
        // bound: the relay's transmit window of each urgency, and its bound on a carrier's backlog.
        let (queue, mut pieces) = mpsc::unbounded_channel();
        let kind = KIND.name;
        let congestion = Control::named(self.carriers.congestion.as_deref()).name();
        tracing::info!(carrier = carrier.0, peer, %address, kind, congestion, "carrier connected");
        let guard = self.metrics.watch_transport(carrier, &peer, Arc::clone(&wire.seen));
        let queue = Queue::Streams(queue);
        self.carriers.handle.send(Message::CarrierUp { carrier, kind, peer, queue }).await;
        let running = async {
            // Where its first flight said who it is, it has to show that it is there.
            let connecting = wire.run(&self.carriers, carrier, &mut pieces, true);
            match tokio::time::timeout(self.carriers.times.dial, connecting).await {
                Ok(Ok(())) => wire.run(&self.carriers, carrier, &mut pieces, false).await.err(),
                Ok(Err(over)) => Some(over),
                Err(_) => Some(Over::Cut("its handshake did not end in time".to_owned())),
            }
        };
        let over = tokio::select! {
            over = running => over,
            () = seat.lost() => Some(Over::Cut("closed by this side at once".to_owned())),
            why = self.carriers.trust.lost(key) => Some(Over::Cut(format!("cut off: {why}"))),
        };
        let over = over.unwrap_or(Over::Closing);
        match &over {
            Over::Closing => {
                seat.note(Doing::Silent);
                tokio::select! {
                    () = wire.close("closed") => {}
                    () = seat.lost() => {}
                }
            }
            Over::Cut(reason) => wire.end(reason).await,
            Over::Lost(_) => {}
            Over::Unreachable(_) => wire.line.close(Instant::now(), "unreachable"),
        }
        drop((guard, seat));
        let reason = over.to_string();
        tracing::debug!(carrier = carrier.0, reason, "carrier ended");
        self.carriers.handle.send(Message::Input(Input::CarrierDown { carrier, reason })).await;
    }
}

/// Of new connections, by what holds now; `None` without keys.
fn server_config(trust: &Trust, token_key: &Arc<dyn HandshakeTokenKey>) -> Option<ServerConfig> {
    let crypto = trust.quic_server.clone()?;
    Some(ServerConfig::new(crypto, Arc::clone(token_key)))
}

/// Makes the tokens by which who receives at an address shows it.
fn token_key() -> Option<Arc<dyn HandshakeTokenKey>> {
    let random = ring::rand::SystemRandom::new();
    let secret: [u8; 64] = ring::rand::generate(&random).ok()?.expose();
    let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]);
    Some(Arc::new(salt.extract(&secret)))
}
