//! Both ends of a connection, without sockets.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use proto::carrier::Piece;
use proto::exchange::Role;
use proto::urgency::Urgency;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{ClientConfig, ConnectionError, DatagramEvent, Endpoint, ServerConfig};

use super::congestion::{Control, Seen};
use super::line::Line;
use super::{endpoint_config, transport};
use crate::carrier::udp::{Datagram, PeerPlace};
use crate::keys::testing::Pair;
use crate::tls;

/// A round trip of the link.
const ROUND_TRIP: Duration = Duration::from_millis(100);
/// Datagrams of a link that takes this much at once are lost beyond.
const MAX_UNDER_WAY: usize = 4000;

/// What both sides keep over connections.
struct Sides {
    pair: Pair,
    client: Arc<QuicClientConfig>,
    server: Arc<QuicServerConfig>,
}

impl Sides {
    fn new(name: &str) -> Self {
        let pair = Pair::new(name);
        let client = tls::quic_client_config(&pair.edge).unwrap();
        let server = tls::quic_server_config(&pair.gateway).unwrap();
        Self { pair, client, server }
    }

    fn connect(&self) -> World {
        let seen = [Arc::new(Seen::default()), Arc::new(Seen::default())];
        let times = (ROUND_TRIP, Duration::from_secs(600));
        let config =
            |role, seen| Arc::new(transport(role, Control::Cubic.counting(seen, None), times));
        let mut server = ServerConfig::with_crypto(Arc::clone(&self.server) as _);
        server.transport_config(config(Role::Gateway, &seen[1]));
        let of_gateway = Arc::new(endpoint_config(&self.pair.gateway).unwrap());
        let gateway = Endpoint::new(of_gateway, Some(Arc::new(server)), false, None);
        let of_edge = Arc::new(endpoint_config(&self.pair.edge).unwrap());
        let mut edge = Endpoint::new(of_edge, None, false, None);
        let mut client = ClientConfig::new(Arc::clone(&self.client) as _);
        client.transport_config(config(Role::Edge, &seen[0]));
        let now = Instant::now();
        let connected = edge.connect(now, client, place(2), "longwire.invalid").unwrap();
        let edge = Line::new(now, connected, Arc::new(Mutex::new(edge)), Arc::clone(&seen[0]));
        World {
            now,
            edge,
            gateway: None,
            endpoint: Arc::new(Mutex::new(gateway)),
            seen,
            under_way: VecDeque::new(),
            bytes_at_once: usize::MAX,
            received: [Vec::new(), Vec::new()],
        }
    }
}

fn place(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

struct World {
    now: Instant,
    edge: Line,
    gateway: Option<Line>,
    endpoint: Arc<Mutex<Endpoint>>,
    seen: [Arc<Seen>; 2],
    /// When it arrives, whether at the gateway, and what.
    under_way: VecDeque<(Instant, bool, Vec<u8>)>,
    bytes_at_once: usize,
    /// By side: stream, bytes, end.
    received: [Vec<(u64, Bytes, bool)>; 2],
}

impl World {
    /// Everything that both have to do now.
    fn act(&mut self) {
        for at_gateway in [false, true] {
            let line = if at_gateway { self.gateway.as_mut() } else { Some(&mut self.edge) };
            let Some(line) = line else { continue };
            line.wake(self.now);
            let is_known = !at_gateway || line.peer().is_some();
            while let Some(came) = is_known.then(|| line.received()).flatten() {
                self.received[usize::from(at_gateway)].push(came);
            }
            line.write(self.now);
            let mut buffer = Vec::new();
            while let Some(transmit) = line.transmit(self.now, 1, &mut buffer) {
                let bytes = buffer[..transmit.size].to_vec();
                let all: usize = self.under_way.iter().map(|(_, _, bytes)| bytes.len()).sum();
                if all < self.bytes_at_once {
                    self.under_way.push_back((self.now + ROUND_TRIP / 2, !at_gateway, bytes));
                }
                buffer.clear();
            }
            line.heed_all(self.now);
        }
    }

    fn deliver(&mut self, at_gateway: bool, bytes: Vec<u8>) {
        let datagram = Datagram {
            place: PeerPlace { address: place(1 + u16::from(!at_gateway)), to: None },
            ecn: None,
            bytes,
        };
        if !at_gateway {
            return self.edge.came_to_own(self.now, datagram);
        }
        if let Some(line) = &mut self.gateway {
            return line.came_to_own(self.now, datagram);
        }
        let (mut endpoint, mut answer) = (self.endpoint.lock().unwrap(), Vec::new());
        let data = BytesMut::from(&datagram.bytes[..]);
        let event = endpoint.handle(self.now, place(1), None, None, data, &mut answer);
        let Some(DatagramEvent::NewConnection(incoming)) = event else { return };
        let Ok(connected) = endpoint.accept(incoming, self.now, &mut answer, None) else { return };
        drop(endpoint);
        let (endpoint, seen) = (Arc::clone(&self.endpoint), Arc::clone(&self.seen[1]));
        self.gateway = Some(Line::new(self.now, connected, endpoint, seen));
    }

    /// Time goes on until `done`, or for a minute.
    fn until(&mut self, mut done: impl FnMut(&Self) -> bool) -> bool {
        let end = self.now + Duration::from_secs(60);
        loop {
            self.act();
            if done(self) {
                return true;
            }
            let gateway = self.gateway.as_mut().and_then(Line::due);
            let due = self.edge.due().into_iter().chain(gateway);
            let arrives = self.under_way.front().map(|(at, ..)| *at);
            match due.chain(arrives).min().filter(|at| *at < end) {
                Some(at) => self.now = self.now.max(at),
                None => return false,
            }
            while self.under_way.front().is_some_and(|(at, ..)| *at <= self.now) {
                let Some((_, at_gateway, bytes)) = self.under_way.pop_front() else { break };
                self.deliver(at_gateway, bytes);
            }
        }
    }

    /// What has come on a stream at a side.
    fn came(&self, at_gateway: bool, stream: u64) -> (Vec<u8>, bool) {
        let all = self.received[usize::from(at_gateway)].iter().filter(|one| one.0 == stream);
        let mut whole = (Vec::new(), false);
        for (_, bytes, fin) in all {
            assert!(!whole.1, "bytes behind the end");
            whole.0.extend_from_slice(bytes);
            whole.1 |= *fin;
        }
        whole
    }
}

fn piece(stream: u64, urgency: u64, bytes: &[u8], fin: bool) -> Piece {
    let urgency = Urgency::new(urgency).unwrap();
    Piece { stream, urgency, fin, bytes: Bytes::copy_from_slice(bytes) }
}

#[test]
fn what_is_written_arrives_and_both_know_whom_they_have() {
    let sides = Sides::new("quic-arrives");
    let mut world = sides.connect();
    assert!(world.until(|world| world.edge.is_connected()));
    let peer = world.edge.peer();
    assert_eq!(tls::peer_name(&sides.pair.edge, peer.as_deref()), "gateway");
    world.edge.push(piece(1, 3, b"question", true));
    assert!(world.until(|world| world.came(true, 1).1));
    assert_eq!(world.came(true, 1).0, b"question");
    let gateway = world.gateway.as_mut().unwrap();
    let peer = gateway.peer();
    assert_eq!(tls::peer_name(&sides.pair.gateway, peer.as_deref()), "edge");
    let answer = vec![7; 100_000];
    gateway.push(piece(1, 3, &answer, true));
    assert!(world.until(|world| world.came(false, 1).1));
    assert_eq!(world.came(false, 1).0, answer);
    let transport = world.seen[1].transport();
    assert!(transport.delivered_bytes_per_s > 0, "{transport:?}");
    assert!(transport.rtt >= ROUND_TRIP && transport.rtt < 2 * ROUND_TRIP, "{transport:?}");
}

#[test]
fn who_is_not_in_the_peer_file_is_refused() {
    let (sides, others) = (Sides::new("quic-ours"), Sides::new("quic-theirs"));
    let mixed = Sides { pair: sides.pair, client: others.client, server: sides.server };
    let mut world = mixed.connect();
    assert!(world.until(|world| world.edge.lost().is_some()));
    // The edge looks first.
    assert!(matches!(world.edge.lost(), Some(ConnectionError::TransportError(_))));
    assert!(world.gateway.as_ref().is_none_or(|line| line.peer().is_none()));
}

/// Makes one connection, and another that goes on with its session.
fn again(sides: &Sides, other: &Sides) -> World {
    let mut world = sides.connect();
    assert!(world.until(|world| world.edge.is_connected()));
    world.edge.push(piece(0, 0, b"hello", false));
    // The gateway gives tickets.
    assert!(world.until(|world| world.came(true, 0).0 == b"hello"));
    world.until(|_| false);
    let mut world = other.connect();
    assert!(world.edge.connection().has_0rtt());
    world.edge.push(piece(0, 0, b"hello", false));
    world.edge.push(piece(1, 3, b"a safe request", true));
    let began = world.now;
    assert!(world.until(|world| world.came(true, 1).1));
    assert_eq!(world.came(true, 0).0, b"hello");
    assert_eq!(world.came(true, 1).0, b"a safe request");
    let took = world.now - began;
    let taken = took <= ROUND_TRIP;
    let gateway = world.gateway.as_mut().unwrap();
    gateway.push(piece(0, 0, b"welcome", false));
    gateway.push(piece(1, 3, b"an answer", true));
    assert!(world.until(|world| world.edge.is_connected()));
    assert_eq!(world.edge.connection().accepted_0rtt(), taken, "{took:?}");
    world.until(|_| false);
    world
}

#[test]
fn with_a_session_the_first_flight_has_the_request() {
    let sides = Sides::new("quic-early");
    let world = again(&sides, &sides);
    assert!(world.edge.connection().accepted_0rtt());
    // What the gateway said before the handshake's end came once.
    assert_eq!(world.came(false, 0).0, b"welcome");
    assert_eq!(world.came(false, 1), (b"an answer".to_vec(), true));
    let peer = world.gateway.as_ref().and_then(Line::peer);
    assert_eq!(tls::peer_name(&sides.pair.gateway, peer.as_deref()), "edge");
}

#[test]
fn what_a_gateway_does_not_take_early_is_sent_again() {
    let sides = Sides::new("quic-late");
    // It has started again, and knows no session.
    let server = tls::quic_server_config(&sides.pair.gateway).unwrap();
    let other = Sides { pair: Pair::new("quic-unused"), client: Arc::clone(&sides.client), server };
    let world = again(&sides, &other);
    assert!(!world.edge.connection().accepted_0rtt());
}

#[test]
fn what_is_urgent_passes_what_waits() {
    let sides = Sides::new("quic-urgent");
    let mut world = sides.connect();
    assert!(world.until(|world| world.edge.is_connected()));
    world.bytes_at_once = MAX_UNDER_WAY;
    world.edge.push(piece(1, 5, &vec![1; 1_000_000], true));
    let some = |world: &World| world.came(true, 1).0.len() > 20_000;
    assert!(world.until(some));
    let began = world.now;
    world.edge.push(piece(2, 0, b"flash", true));
    assert!(world.until(|world| world.came(true, 2).1));
    assert!(world.now - began < 4 * ROUND_TRIP, "{:?}", world.now - began);
    assert!(!world.came(true, 1).1, "the other one is under way");
    // What the transport holds of it is little more than the path takes.
    let held = world.seen[0].transport().backlog_bytes;
    assert!(held < 60_000, "{held}");
}
