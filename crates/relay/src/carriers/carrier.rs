//! A connection to the other relay, as the relay keeps it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use codec::dictionary::Id;
use coding::PathId;
use coding::api::Wire;
use decide::estimate::{Estimate, Transport};
use proto::carrier::{self, Abilities, Setup};
use proto::control::Allowed;
use proto::exchange::{Part, Role};
use proto::heads::Sharing;
use proto::kinds::{self, Kind};
use proto::urgency::Urgency;

use super::heads::Heads;
use super::pulse::Pulse;
use super::schedule::Schedule;
use crate::config::{
    Config, INITIAL_CREDIT_BYTES, MAX_BACKLOG_BYTES, PIECE_BYTES, TRANSMIT_WINDOW_BYTES,
};
use crate::ids::{CarrierId, CarrierKind};

/// The coding's name of a carrier, and the other way round: a carrier is one path to a peer.
pub(crate) fn path_of(carrier: CarrierId) -> PathId {
    PathId(carrier.0)
}

/// The carrier of a path.
pub(crate) fn carrier_of(path: PathId) -> CarrierId {
    CarrierId(path.0)
}

/// A machine that knows the rate of its path gets what leaves within so long.
const AHEAD_MS: u64 = 100;
/// A link is slow on which a packet takes longer than 30 ms, in bit/s.
const SLOW_BPS: f64 = 400e3;
/// What a probe takes on a carrier, about.
const PROBE_BYTES: usize = 6;

/// Parts of an answer that is sent again after its carrier broke.
pub(crate) type Replay = VecDeque<Part>;

/// The next part of a replay within the peer's `credit` and `most` bytes of piece.
pub(crate) fn next_part(replay: &mut Replay, credit: u64, most: usize) -> Option<Part> {
    let Some(Part::Data(data)) = replay.front_mut() else { return replay.pop_front() };
    let piece = data.split_piece(credit, most)?;
    if data.bytes.is_empty() {
        replay.pop_front();
    }
    Some(Part::Data(piece))
}

/// What is known of a carrier's path.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// What is believed of its round trip and rate, in bit/s, once something is.
    pub(crate) rtt: Option<Duration>,
    pub(crate) rate_bps: Option<f64>,
    /// When the transport's counters were asked for last.
    pub(crate) at: Option<Duration>,
    /// The transport's last counters; none where it never reported any.
    pub(crate) counters: Option<Transport>,
}

/// Bytes given to the shell and not yet taken by the transport.
#[derive(Debug, Default)]
struct InFlight {
    bytes: usize,
    /// Of these, bytes of a transport's streams, by their urgency.
    of: [usize; Urgency::COUNT],
}

impl InFlight {
    fn of_mut(&mut self, urgency: Urgency) -> &mut usize {
        &mut self.of[usize::from(urgency.get())]
    }

    /// Bytes that leave before others as urgent as this.
    fn ahead_of(&self, urgency: Urgency) -> usize {
        self.of[..=usize::from(urgency.get())].iter().sum()
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Carrier {
    /// Name of the peer.
    pub(crate) peer: String,
    pub(crate) machine: kinds::Carrier,
    pub(crate) kind: CarrierKind,
    /// What carriers of its kind can do.
    pub(crate) abilities: Abilities,
    /// Bytes given to the shell and not yet taken by the kernel.
    in_flight: InFlight,
    /// Bytes of parts given to the machine since it was last drained.
    pub(crate) queued: usize,
    /// How heads cross.
    pub(crate) heads: Heads,
    /// Exchanges with a part to send.
    pub(crate) schedule: Schedule,
    /// Exchanges that use this carrier.
    pub(crate) exchanges: BTreeSet<u64>,
    /// Answers to send again, before what else their exchange has to send. At most one for each
    /// flow that a QUERY opened.
    pub(crate) replays: BTreeMap<u64, Replay>,
    /// Requests that went out (edge) or came while new ones were taken (gateway).
    pub(crate) requests: u64,
    /// The peer wants no new exchanges.
    pub(crate) going_away: bool,
    pub(crate) measured: Measured,
    /// Bytes given to a machine that counts what has arrived.
    given: u64,
    /// Bytes given to the shell, and bytes that came.
    pub(crate) transmitted: u64,
    pub(crate) received: u64,
    /// How often something that the peer sent was ignored.
    pub(crate) ignored: u32,
    /// Gateway: exchanges that the edge heard here were in vain: it may send them again.
    pub(crate) released: BTreeSet<u64>,
    /// Whether the peer still answers.
    pub(crate) pulse: Pulse,
    /// Edge: what the gateway lets it reach, once announced.
    pub(crate) allowed: Option<Arc<Allowed>>,
}

impl Carrier {
    pub(crate) fn new(
        config: &Config,
        (kind, made): (CarrierKind, Kind),
        peer: String,
        codecs: Vec<u64>,
    ) -> Self {
        let machine = (made.make)(Setup {
            role: config.role,
            instance: config.instance,
            initial_credit: INITIAL_CREDIT_BYTES,
            max_exchanges: (config.max_exchanges + config.max_tunnels) as u64,
            codecs,
            max_window_log: codec::MAX_WINDOW_LOG,
            own_bytes_per_s: config.own_bytes_per_s,
        });
        let own_bps = config.own_bytes_per_s.map(|rate| 8.0 * rate as f64);
        Self {
            peer,
            machine,
            kind,
            abilities: made.abilities,
            in_flight: InFlight::default(),
            queued: 0,
            heads: Heads::new(config.role),
            schedule: Schedule::default(),
            exchanges: BTreeSet::new(),
            replays: BTreeMap::new(),
            requests: 0,
            going_away: false,
            measured: Measured { rate_bps: own_bps, ..Measured::default() },
            given: 0,
            transmitted: 0,
            received: 0,
            ignored: 0,
            released: BTreeSet::new(),
            pulse: Pulse::default(),
            allowed: None,
        }
    }

    /// Whether the peer takes blocks that begin a context anew.
    pub(crate) fn takes_anew(&self) -> bool {
        self.machine.peer().is_some_and(|peer| peer.anew)
    }

    /// Whether the peer supports parallel carriers of one edge.
    pub(crate) fn allows_parallel(&self) -> bool {
        self.machine.peer().is_some_and(|peer| peer.parallel)
    }

    /// Whether the peer knows that questions are numbered.
    pub(crate) fn counts(&self) -> bool {
        self.machine.peer().is_some_and(|peer| peer.counts)
    }

    /// What it has carried and what waits, as it is reported to the coding.
    pub(crate) fn wire(&self) -> Wire {
        let (in_flight, queued) = (self.under_way(), self.queued);
        let idle = self.schedule.is_empty() && in_flight == 0 && queued == 0;
        Wire { transmitted: self.transmitted, in_flight, queued, idle }
    }

    /// Takes what is believed of its path.
    pub(crate) fn note_estimate(&mut self, estimate: &Estimate) {
        let rtt = Some(estimate.rtt_s()).filter(|figure| figure.weight > 0.0);
        self.measured.rtt = rtt.and_then(|figure| Duration::try_from_secs_f64(figure.value).ok());
        let rate = Some(estimate.rate_bps()).filter(|figure| figure.weight > 0.0);
        self.measured.rate_bps = rate.map_or(self.measured.rate_bps, |figure| Some(figure.value));
    }

    /// Instance of the peer, once it said HELLO.
    pub(crate) fn peer_instance(&self) -> Option<u64> {
        self.machine.peer().map(|peer| peer.instance)
    }

    /// Whether the peer can take a new exchange, with those that were promised a place.
    pub(crate) fn has_room(&self) -> bool {
        let Some(peer) = self.machine.peer() else { return false };
        let open = self.machine.open_exchanges();
        // Some of those on it are open, and some of those open have left it.
        let taken =
            || open + self.exchanges.iter().filter(|one| !self.machine.is_open(**one)).count();
        let is_less = |taken: usize| (taken as u64) < peer.max_exchanges;
        !self.going_away && (is_less(open + self.exchanges.len()) || is_less(taken()))
    }

    /// Whether an answer may go over it, of which so many bytes of body are known.
    pub(crate) fn takes(&self, endless: bool, body_bytes: u64) -> bool {
        self.abilities.max_answer_bytes.is_none_or(|most| !endless && body_bytes <= most)
    }

    /// Nothing is left of an exchange that could be sent.
    pub(crate) fn forget(&mut self, number: u64) {
        self.exchanges.remove(&number);
        self.replays.remove(&number);
        self.schedule.remove(number);
    }

    /// What a message and its answer take at least, by what was seen; zero where nothing was.
    pub(crate) fn least_round_trip(&self) -> Duration {
        self.measured.counters.map_or(Duration::ZERO, |counters| counters.min_rtt)
    }

    /// A part as it crosses.
    pub(crate) fn pack(&mut self, part: Part, sharing: &Sharing<Id>) -> Part {
        match self.machine.peer().is_some_and(|peer| peer.packs) {
            true => self.heads.pack(part, sharing),
            false => part,
        }
    }

    /// Whether the link is so slow that each packet on it is in the way of what is urgent.
    pub(crate) fn is_slow(&self) -> bool {
        self.measured.rate_bps.is_some_and(|rate| rate < SLOW_BPS)
    }

    /// Whether what is urgent passes all that was given to the carrier: it keeps no queue in front
    /// of the link.
    pub(crate) fn has_no_queue(&self, config: &Config) -> bool {
        config.own_bytes_per_s.is_some() || self.machine.measured().is_some()
    }

    /// Bytes as urgent as this that may be given to the carrier now.
    pub(crate) fn room_bytes(&self, urgency: Urgency) -> usize {
        let Some(measured) = self.machine.measured() else {
            // What is more urgent passes what waits for other streams.
            let ahead = match self.abilities.ordered {
                true => self.in_flight.bytes,
                false => self.in_flight.ahead_of(urgency),
            };
            return self.window_bytes().saturating_sub(ahead + self.queued);
        };
        // What has left waits for nothing but to be acknowledged. What has not waits here, where
        // what is urgent passes it.
        let ahead = measured.bytes_per_s.saturating_mul(AHEAD_MS) / 1000;
        let window = usize::try_from(ahead).unwrap_or(usize::MAX);
        let window = match measured.bytes_per_s {
            0 => TRANSMIT_WINDOW_BYTES,
            _ => window.clamp(PIECE_BYTES, TRANSMIT_WINDOW_BYTES),
        };
        let unsent = window.saturating_sub(self.machine.unsent_bytes(urgency));
        unsent.min(MAX_BACKLOG_BYTES.saturating_sub(self.machine.held_bytes()))
    }

    /// Bytes that a transport may be given ahead: on a slow link few, so that what is urgent need
    /// not wait behind them.
    fn window_bytes(&self) -> usize {
        let ahead = self.measured.rate_bps.map(|rate| rate / 8.0 * AHEAD_MS as f64 / 1000.0);
        let ahead = ahead.and_then(|bytes| Duration::try_from_secs_f64(bytes).ok());
        let ahead = ahead.map_or(u64::MAX, |bytes| bytes.as_secs());
        let ahead = usize::try_from(ahead).unwrap_or(usize::MAX);
        ahead.clamp(PIECE_BYTES, TRANSMIT_WINDOW_BYTES)
    }

    /// Most bytes of a body that leave at once, alone or beside others.
    pub(crate) fn piece_bytes(&self) -> usize {
        if self.schedule.is_empty() { TRANSMIT_WINDOW_BYTES } else { PIECE_BYTES }
    }

    /// Bytes that were given away and have not arrived, as far as is known.
    pub(crate) fn under_way(&self) -> usize {
        self.in_flight.bytes + self.machine.held_bytes()
    }

    /// Whether what is of no exchange crosses, from a side of this role.
    pub(crate) fn has_control(&self, from: Role) -> bool {
        self.abilities.control && (from == Role::Edge || self.abilities.gateway_first)
    }

    /// Whether both sides can agree on what they hold.
    pub(crate) fn may_agree(&self) -> bool {
        self.has_control(Role::Edge) && self.has_control(Role::Gateway)
    }

    /// Gives the machine a part.
    pub(crate) fn send(&mut self, now: Duration, part: Part, urgency: Urgency) {
        self.heads.note_end(&part);
        let bytes = self.machine.wire_len(&part);
        self.queued += bytes;
        self.given += bytes as u64;
        self.machine.handle_input(now, carrier::Input::Send(part, urgency));
    }

    /// So many bytes leave.
    pub(crate) fn left(&mut self, bytes: usize) {
        self.queued = 0;
        self.in_flight.bytes += bytes;
        self.transmitted += bytes as u64;
        self.pulse.left(self.transmitted);
    }

    /// So many bytes leave for a stream of the transport.
    pub(crate) fn piece_left(&mut self, urgency: Urgency, bytes: usize) {
        self.left(bytes);
        *self.in_flight.of_mut(urgency) += bytes;
    }

    /// The transport took so many bytes for a stream.
    pub(crate) fn piece_sent(&mut self, now: Duration, urgency: Urgency, bytes: usize) {
        let of = self.in_flight.of_mut(urgency);
        *of = of.saturating_sub(bytes);
        self.sent(now, bytes);
    }

    /// The kernel took so many bytes. Where it reports no more, they count as delivered.
    pub(crate) fn sent(&mut self, now: Duration, bytes: usize) {
        self.in_flight.bytes = self.in_flight.bytes.saturating_sub(bytes);
        if self.measured.counters.is_none() {
            self.delivered(now, 0);
        }
    }

    /// So many bytes of what the kernel took are not yet acknowledged.
    pub(crate) fn delivered(&mut self, now: Duration, backlog_bytes: u64) {
        let left = self.in_flight.bytes as u64 + backlog_bytes;
        self.pulse.delivered(now, self.sent_in_all().saturating_sub(left));
    }

    /// Bytes of which it shows how many have arrived: of a machine that counts them itself, what it
    /// was given.
    pub(crate) fn sent_in_all(&self) -> u64 {
        match self.machine.measured() {
            Some(_) => self.given,
            None => self.transmitted,
        }
    }

    /// Asks the peer for a sign of life.
    pub(crate) fn probe(&mut self, now: Duration, number: u64) {
        if self.machine.peer().is_some() {
            self.queued += PROBE_BYTES;
            self.given += PROBE_BYTES as u64;
            self.machine.handle_input(now, carrier::Input::Probe(number));
        }
    }

    pub(crate) fn receive(&mut self, now: Duration, bytes: Bytes) {
        self.received += bytes.len() as u64;
        self.machine.handle_input(now, carrier::Input::Bytes(bytes));
    }

    /// Bytes came on a stream of the transport.
    pub(crate) fn receive_piece(&mut self, now: Duration, stream: u64, bytes: Bytes, fin: bool) {
        self.received += bytes.len() as u64;
        self.machine.handle_input(now, carrier::Input::Stream { stream, bytes, fin });
    }

    /// A datagram came; one that is longer than any of its kind says nothing. Whether it was taken.
    pub(crate) fn receive_datagram(&mut self, now: Duration, bytes: Bytes) -> bool {
        let most = self.abilities.max_datagram_bytes.unwrap_or(0);
        let is_taken = bytes.len() <= most;
        if is_taken {
            self.received += bytes.len() as u64;
            self.machine.handle_input(now, carrier::Input::Datagram(bytes));
        }
        is_taken
    }

    /// A datagram left. What leaves again, or beside what was given, is no progress.
    pub(crate) fn datagram_left(&mut self, now: Duration, bytes: usize) {
        self.transmitted += bytes as u64;
        self.pulse.left(self.given);
        self.delivered(now, self.machine.held_bytes() as u64);
    }

    pub(crate) fn wake(&mut self, now: Duration) {
        self.machine.handle_input(now, carrier::Input::Wake);
    }
}
