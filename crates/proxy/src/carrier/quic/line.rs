//! One end of a connection, without its socket and its clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use proto::carrier::Piece;
use proto::exchange::Role;
use proto::quic::CONTROL_STREAM;
use proto::urgency::Urgency;
use quinn_proto::{
    Connection, ConnectionError, ConnectionEvent, ConnectionHandle, DatagramEvent, Dir,
    EcnCodepoint, Endpoint, EndpointEvent, Event, ReadError, Side, StreamEvent, StreamId, Transmit,
    VarInt, WriteError,
};
use rustls_pki_types::CertificateDer;

use super::MAX_STREAMS;
use super::congestion::Seen;
use crate::carrier::udp::Datagram;

/// Bytes beyond the congestion window that the transport holds, so that it never waits for more:
/// of what is least urgent, and so much more of each urgency above.
const AHEAD_BYTES: u64 = 4096;
const MORE_URGENT_BYTES: u64 = 4096;
/// Most bytes that are remembered of what left with 0-RTT, to be sent again where the gateway does
/// not take it.
const MAX_EARLY_BYTES: usize = 2 << 20;

/// What waits to be written on a stream.
#[derive(Debug)]
struct Waiting {
    /// The most urgent of it: what is before that has to go first.
    urgency: Urgency,
    pieces: VecDeque<Piece>,
}

/// See the module.
pub(super) struct Line {
    connection: Connection,
    handle: ConnectionHandle,
    endpoint: Arc<Mutex<Endpoint>>,
    seen: Arc<Seen>,
    /// By stream.
    waiting: BTreeMap<u64, Waiting>,
    /// Streams that have something to read.
    readable: BTreeSet<u64>,
    /// Edge: streams that were opened. Gateway: streams that the edge opened.
    opened: u64,
    accepted: u64,
    /// Edge: what left ahead of the handshake's end, while it may have to be sent again.
    early: Option<Vec<Piece>>,
    early_bytes: usize,
    /// The last write met the bound on what the transport holds.
    blocked: Option<u64>,
    given_at: Instant,
    lost: Option<ConnectionError>,
}

impl Line {
    pub(super) fn new(
        now: Instant,
        (handle, connection): (ConnectionHandle, Connection),
        endpoint: Arc<Mutex<Endpoint>>,
        seen: Arc<Seen>,
    ) -> Self {
        // At a gateway nothing that left has to leave again: it is under way in any case.
        let early = (connection.side().is_client() && connection.has_0rtt()).then(Vec::new);
        let has_early = early.is_some();
        let mut line = Self {
            connection,
            handle,
            endpoint,
            seen,
            waiting: BTreeMap::new(),
            readable: BTreeSet::new(),
            opened: 0,
            accepted: 0,
            early,
            early_bytes: 0,
            blocked: None,
            given_at: now,
            lost: None,
        };
        if has_early {
            line.open(CONTROL_STREAM);
        }
        line
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    fn endpoint(&self) -> MutexGuard<'_, Endpoint> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A datagram that the endpoint took for this connection.
    pub(super) fn came(&mut self, event: ConnectionEvent) {
        self.connection.handle_event(event);
    }

    /// A datagram that came to a socket of its own.
    pub(super) fn came_to_own(&mut self, now: Instant, datagram: Datagram) {
        let Datagram { place, ecn, bytes } = datagram;
        let ecn = ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
        let mut answer = Vec::new();
        let bytes = BytesMut::from(&bytes[..]);
        let event = self.endpoint().handle(now, place.address, place.to, ecn, bytes, &mut answer);
        if let Some(DatagramEvent::ConnectionEvent(handle, event)) = event
            && handle == self.handle
        {
            self.came(event);
        }
    }

    /// The side's own address has changed (RFC 9000 §9.2).
    pub(super) fn moved(&mut self) {
        self.connection.local_address_changed();
    }

    /// Takes note of the time, where that is due ([`Line::due`]): there may be something to send.
    pub(super) fn wake(&mut self, now: Instant) {
        if self.connection.poll_timeout().is_some_and(|at| at <= now) {
            self.connection.handle_timeout(now);
        }
        self.heed_all(now);
    }

    /// Takes note of what happened.
    pub(super) fn heed_all(&mut self, now: Instant) {
        while let Some(event) = self.connection.poll() {
            self.heed(event);
        }
        while let Some(event) = self.connection.poll_endpoint_events() {
            let answer = self.endpoint().handle_event(self.handle, event);
            answer.into_iter().for_each(|event| self.connection.handle_event(event));
        }
        let idle = now.saturating_duration_since(self.given_at);
        self.seen.note(now, &self.connection, self.blocked, idle);
    }

    fn heed(&mut self, event: Event) {
        match event {
            Event::Connected => {
                if let Some(early) = self.early.take()
                    && !self.connection.accepted_0rtt()
                {
                    // The transport has forgotten all that left.
                    self.opened = 0;
                    early.into_iter().rev().for_each(|piece| self.push_front(piece));
                }
                // The gateway may say HELLO first.
                self.open(CONTROL_STREAM);
            }
            Event::ConnectionLost { reason } => self.lost = Some(reason),
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                while let Some(id) = self.connection.streams().accept(Dir::Bi) {
                    self.accepted = self.accepted.max(id.index() + 1);
                    self.readable.insert(id.index());
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => {
                self.readable.insert(id.index());
            }
            _ => {}
        }
    }

    /// Why the connection is over, once it is.
    pub(super) fn lost(&self) -> Option<&ConnectionError> {
        self.lost.as_ref()
    }

    /// Who the peer is, once that is known: at a gateway from the first flight on where the
    /// handshake is one of 0-RTT.
    pub(super) fn peer(&self) -> Option<Vec<CertificateDer<'static>>> {
        let knows = !self.connection.is_handshaking() || self.connection.has_0rtt();
        let identity = self.connection.crypto_session().peer_identity().filter(|_| knows)?;
        identity.downcast::<Vec<CertificateDer<'static>>>().ok().map(|list| *list)
    }

    /// The handshake is over.
    pub(super) fn is_connected(&self) -> bool {
        !self.connection.is_handshaking() && self.lost.is_none()
    }

    fn id(&self, stream: u64) -> StreamId {
        StreamId::new(Side::Client, Dir::Bi, stream)
    }

    fn role(&self) -> Role {
        if self.connection.side().is_client() { Role::Edge } else { Role::Gateway }
    }

    /// What has come on a stream, in order, and whether that is all.
    pub(super) fn received(&mut self) -> Option<(u64, Bytes, bool)> {
        loop {
            let stream = *self.readable.first()?;
            let id = self.id(stream);
            let mut stream_of = self.connection.recv_stream(id);
            let Ok(mut chunks) = stream_of.read(true) else {
                self.readable.remove(&stream);
                continue;
            };
            let next = chunks.next(usize::MAX);
            let _ = chunks.finalize();
            match next {
                Ok(Some(chunk)) => return Some((stream, chunk.bytes, false)),
                Ok(None) => {
                    self.readable.remove(&stream);
                    return Some((stream, Bytes::new(), true));
                }
                Err(ReadError::Blocked | ReadError::Reset(_)) => {
                    self.readable.remove(&stream);
                }
            }
        }
    }

    /// The relay gives bytes for a stream.
    pub(super) fn push(&mut self, piece: Piece) {
        self.joined_by(&piece).push_back(piece);
    }

    fn push_front(&mut self, piece: Piece) {
        self.joined_by(&piece).push_front(piece);
    }

    /// What waits on the stream of a piece, as urgent as with that.
    fn joined_by(&mut self, piece: &Piece) -> &mut VecDeque<Piece> {
        let waiting = self.waiting.entry(piece.stream);
        let waiting =
            waiting.or_insert(Waiting { urgency: piece.urgency, pieces: VecDeque::new() });
        // An end alone makes what is before it no more urgent.
        if !piece.bytes.is_empty() {
            waiting.urgency = waiting.urgency.min(piece.urgency);
        }
        &mut waiting.pieces
    }

    /// Nothing waits to be written.
    pub(super) fn is_written(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What was written has been acknowledged, the end of the first stream too.
    pub(super) fn is_delivered(&mut self) -> bool {
        self.waiting.is_empty() && self.connection.streams().send_streams() == 0
    }

    /// Gives the transport what it takes now, the most urgent first: bytes by urgency.
    pub(super) fn write(&mut self, now: Instant) -> Vec<(Urgency, usize)> {
        let mut order: Vec<(Urgency, u64)> =
            self.waiting.iter().map(|(stream, waiting)| (waiting.urgency, *stream)).collect();
        order.sort_unstable();
        let mut sent: BTreeMap<Urgency, usize> = BTreeMap::new();
        self.blocked = None;
        for (urgency, stream) in order {
            self.write_stream(stream, urgency, &mut sent);
        }
        let bytes: usize = sent.values().sum();
        if bytes > 0 {
            self.given_at = now;
            self.seen.gave(now, bytes);
        }
        sent.into_iter().collect()
    }

    fn write_stream(&mut self, stream: u64, urgency: Urgency, sent: &mut BTreeMap<Urgency, usize>) {
        if !self.open(stream) {
            return;
        }
        let more = (Urgency::COUNT as u64 - 1 - u64::from(urgency.get())) * MORE_URGENT_BYTES;
        let window = self.connection.congestion_state().window() + AHEAD_BYTES + more;
        self.connection.set_send_window(window);
        let id = self.id(stream);
        let Some(mut waiting) = self.waiting.remove(&stream) else { return };
        while let Some(piece) = waiting.pieces.front_mut() {
            let mut to = self.connection.send_stream(id);
            // RFC 9218 has the most urgent lowest, the transport highest.
            if !piece.bytes.is_empty() {
                let _ = to.set_priority(-i32::from(waiting.urgency.get()));
            }
            let taken = match to.write(&piece.bytes) {
                _ if piece.bytes.is_empty() => 0,
                Ok(taken) => taken,
                Err(WriteError::Blocked) => {
                    self.blocked = Some(window);
                    break;
                }
                // The peer reads no more of it, so that nothing is of use there.
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => piece.bytes.len(),
            };
            *sent.entry(piece.urgency).or_default() += taken;
            let bytes = piece.bytes.split_to(taken);
            let (urgency, fin) = (piece.urgency, piece.fin && piece.bytes.is_empty());
            if fin {
                let _ = to.finish();
            }
            if self.early.is_some() {
                self.remember(Piece { stream, urgency, fin, bytes });
            }
            if waiting.pieces.front().is_some_and(|piece| piece.bytes.is_empty()) {
                waiting.pieces.pop_front();
            }
        }
        if let Some(urgency) = waiting.pieces.iter().map(|piece| piece.urgency).min() {
            waiting.urgency = urgency;
            self.waiting.insert(stream, waiting);
        }
    }

    /// What left ahead of the handshake's end: beyond what an edge may send there is nothing.
    fn remember(&mut self, piece: Piece) {
        self.early_bytes += piece.bytes.len();
        if let Some(early) = self.early.as_mut().filter(|_| self.early_bytes <= MAX_EARLY_BYTES) {
            early.push(piece);
        }
    }

    /// Whether a stream is open to be written on.
    fn open(&mut self, stream: u64) -> bool {
        if self.role() == Role::Gateway {
            return true;
        }
        while self.opened <= stream {
            if self.connection.streams().open(Dir::Bi).is_none() {
                return false;
            }
            self.opened += 1;
        }
        true
    }

    /// Ends all streams: nothing follows from this side.
    pub(super) fn finish(&mut self) {
        for stream in 0..self.opened.max(self.accepted) {
            // Most are over.
            let id = self.id(stream);
            let _ = self.connection.send_stream(id).finish();
        }
    }

    /// It is known who the edge is: it may have as many streams as it needs.
    pub(super) fn admit(&mut self) {
        self.connection.set_max_concurrent_streams(Dir::Bi, VarInt::from_u32(MAX_STREAMS));
    }

    /// Forgets the connection at once: what still comes of it is of one that is not known.
    pub(super) fn forget(self) {
        if !self.connection.is_drained() {
            self.endpoint().handle_event(self.handle, EndpointEvent::drained());
        }
    }

    /// Closes the connection: what was not acknowledged is lost.
    pub(super) fn close(&mut self, now: Instant, reason: &str) {
        self.connection.close(now, VarInt::from_u32(0), Bytes::copy_from_slice(reason.as_bytes()));
    }

    /// Nothing more leaves, nor is anything that comes of use.
    pub(super) fn is_drained(&self) -> bool {
        self.connection.is_drained()
    }

    /// When [`Line::wake`] is due.
    pub(super) fn due(&mut self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    /// Datagrams of one length, so many at most, for the socket.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        most: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.connection.poll_transmit(now, most, buffer)
    }
}
