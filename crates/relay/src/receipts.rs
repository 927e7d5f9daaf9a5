//! How long halves take on their way, and what the link is like: the transport's own counters, and
//! receipts from the peer.
//!
//! A half's time on the network runs from when its first piece of body is given to the carrier to
//! when its receipt is here, less what the receiver waited for its decoder at the end, less half a
//! round trip for the receipt's own way, or half of what is left where that is less. Both ends of
//! that are on this side's clock and the rest are differences on the peer's, so that an offset
//! between the two never enters.

use std::time::Duration;

use decide::Arm;
use decide::estimate::{self, Estimate, Transport};
use decide::models::{Seen, Subject};
use decide::network::Path;
use decide::outcome::{Parts, Split};
use decide::policy::Observation;
use proto::stream::Receipt;
use record::decision as facts;
use record::event::Fact;

use crate::Relay;
use crate::along::Word;
use crate::api::{CarrierId, ExchangeId, Output};
use crate::choice::{Choice, expected_parts, told_parts, told_split};
use crate::course::{Course, Part};
use crate::exchange::Exchange;

/// The transport's counters are read no more often than this for each carrier, but for what came
/// together.
const MEASURE_PAUSE: Duration = Duration::from_millis(10);
/// Halves of a carrier whose receipt may still come; beyond it the oldest is given up.
const MAX_AWAITED: usize = 256;
/// Halves that arrived and wait for the counters; a peer tells of no more in one packet.
const MAX_TOOK: usize = 32;
/// Peers whose path is remembered while they are away.
const MAX_PATHS: usize = 64;
/// Halves of fewer bytes on the wire, all uncoded, fit in a packet: each teaches too little to be
/// worth a receipt.
const MIN_RECEIPT_BYTES: u64 = decide::ONE_PACKET_BYTES;
/// Of such halves the first have one all the same, and then those whose number is a power of two:
/// where no others come, nothing else shows a slow link that is taken for a fast one.
const FIRST_SHORT: u64 = 8;
/// A half whose sender had nothing to send for more than this share of its time tells nothing of
/// the network.
const MAX_IDLE_SHARE: f64 = 0.1;
/// Events about what a carrier's peer said and was ignored: beyond it they are not told.
const MAX_TOLD: u32 = 16;
/// Of the longest body that came of late, one part in so many is forgotten with each that comes.
const LONGEST_FADES: u64 = 32;
/// In events.
const RECEIPT: &str = "receipt";
/// A link that is said to be faster, a terabit a second, or longer, was not measured.
const MAX_BYTES_PER_S: u64 = 125_000_000_000;
const MAX_ROUND_TRIP: Duration = Duration::from_secs(600);
/// A time below this is none that clocks on two machines tell.
const MIN_S: f64 = 1e-6;

/// A half on its way out, as this side saw it leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    /// When its first piece of body was given to the carrier.
    pub(crate) first: Duration,
    /// Bytes that the carrier had been given before it.
    before: u64,
    /// Counters of the carrier's transport before it.
    counters: Transport,
    /// How long it had nothing to send though more was to come, or no credit for it.
    idle: Duration,
    idle_since: Option<Duration>,
}

/// A half that has left and whose receipt is not here.
#[derive(Debug)]
pub(crate) struct Awaited {
    id: ExchangeId,
    choice: Box<Choice>,
    departure: Departure,
    /// Bytes that the carrier was given from its first piece to its last, others' between included,
    /// and its head's where that did not lead.
    carried: u64,
    /// What the network was expected to take for the bytes that there are.
    network_s: f64,
    /// What it was encoded in has been learned from.
    learned: bool,
}

/// A half that arrived, until the transport's next counters say whether some of it was sent again:
/// what waited for that came all at once, which is no rate of any link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    bytes: f64,
    seconds: f64,
    /// It was at hand.
    at_once: bool,
    train: estimate::Receipt,
    path: Path,
    /// The transport's counters before it.
    before: Transport,
}

impl Took {
    /// Windows that it took, as the counters behind it tell.
    fn windows(&self, now: &Transport) -> f64 {
        let segment_bytes = now.segment_bytes_since(&self.before).min(self.path.segment_bytes);
        Path { segment_bytes: segment_bytes.max(1.0), ..self.path }.windows(self.bytes)
    }
}

/// A half on its way in, as this side saw it come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrival {
    /// When its first piece of body came, and how much the carrier had brought with it.
    first: Option<(Duration, u64)>,
    last: Duration,
    last_received: u64,
    wire_bytes: u64,
    coded: bool,
    decode: Duration,
    /// How long decoded bytes waited for the local side.
    waited: Duration,
    waits_since: Option<Duration>,
    told: bool,
}

impl Arrival {
    /// A piece came, with which the carrier has brought `received` bytes in all.
    pub(crate) fn note(&mut self, now: Duration, received: u64, len: usize, coded: bool) {
        self.first.get_or_insert((now, received));
        (self.last, self.last_received) = (now, received);
        self.wire_bytes += len as u64;
        self.coded |= coded && len > 0;
    }

    /// A block was decoded.
    pub(crate) fn decoded(&mut self, cpu: Duration) {
        self.decode += cpu;
    }

    /// Its receipt is another's to send.
    pub(crate) fn told(&mut self) {
        self.told = true;
    }

    /// Whether decoded bytes wait for the local side.
    pub(crate) fn waits(&mut self, now: Duration, waits: bool) {
        if !waits {
            let since = self.waits_since.take();
            self.waited += since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        } else if self.waits_since.is_none() {
            self.waits_since = Some(now);
        }
    }

    /// The receipt, once, where there is something to tell. `short` counts the carrier's halves
    /// that fit in a packet uncoded.
    pub(crate) fn receipt(
        &mut self,
        now: Duration,
        exchange: u64,
        short: &mut u64,
    ) -> Option<Receipt> {
        self.waits(now, false);
        let (first, received) = self.first.filter(|_| !self.told)?;
        self.told = true;
        if !self.coded && self.wire_bytes < MIN_RECEIPT_BYTES {
            *short += 1;
            if *short > FIRST_SHORT && !short.is_power_of_two() {
                return None;
            }
        }
        let spread = self.last.saturating_sub(first);
        let bytes = self.last_received.saturating_sub(received);
        Some(Receipt {
            exchange,
            bytes,
            // What came apart took some time, if too little to tell.
            spread: if bytes > 0 { spread.max(Duration::from_micros(1)) } else { spread },
            decode: self.decode,
            tail: now.saturating_sub(self.last),
            held_up: self.waited > (now.saturating_sub(first)) / 8,
        })
    }
}

impl Relay {
    /// Asks for the transport's counters, unless they were read just now.
    pub(crate) fn measure(&mut self, now: Duration, id: CarrierId) {
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        if carrier.measured_at.is_none_or(|at| now >= at + MEASURE_PAUSE) {
            carrier.measured_at = Some(now);
            self.outputs.push_back(Output::Measure { carrier: id });
        }
    }

    pub(crate) fn transport(&mut self, now: Duration, id: CarrierId, transport: Transport) {
        if let Err(why) = possible(&transport) {
            return self.ignore(now, id, "link", why);
        }
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        carrier.counters = Some(transport);
        carrier.delivered(now, transport.backlog_bytes);
        carrier.estimate.transport(transport);
        for took in carrier.took.drain(..) {
            let whole = took.before.retransmitted == transport.retransmitted;
            let (windows, train) = (took.windows(&transport), took.train);
            let unbroken = train.unbroken && whole;
            let told = carrier.estimate.receipt(&estimate::Receipt { unbroken, windows, ..train });
            let at_once = took.at_once && windows <= 1.0;
            carrier.estimate.took(took.bytes, took.seconds, at_once && whole && !told);
        }
        self.notice_jump(id);
    }

    fn notice_jump(&mut self, id: CarrierId) {
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        if carrier.estimate.jumps() != carrier.jumps {
            carrier.jumps = carrier.estimate.jumps();
            let peer = carrier.peer_id;
            self.policy.observe(&Observation::PathChanged { peer });
        }
    }

    /// What is known of the path to a peer that connects.
    pub(crate) fn path_of(&mut self, peer: &str) -> Estimate {
        let at = self.paths.iter().position(|(name, _)| name == peer);
        let known = at.and_then(|at| self.paths.remove(at));
        let mut estimate = known.map_or_else(|| self.config.estimate(), |(_, known)| known);
        estimate.reconnected();
        estimate
    }

    /// Keeps what is known of the path to a peer that is gone.
    pub(crate) fn keep_path(&mut self, peer: &str, estimate: Estimate) {
        self.paths.retain(|(name, _)| name != peer);
        if self.paths.len() >= MAX_PATHS {
            self.paths.pop_front();
        }
        self.paths.push_back((peer.to_owned(), estimate));
    }

    /// A piece of body is given to the carrier.
    pub(crate) fn departs(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId) {
        let Some(carrier) = self.carriers.get(&carrier) else { return };
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let departure = exchange.departure.get_or_insert(Departure {
            first: now,
            before: carrier.transmitted,
            counters: carrier.counters.unwrap_or_default(),
            idle: Duration::ZERO,
            idle_since: None,
        });
        if let Some(since) = departure.idle_since.take() {
            departure.idle += now.saturating_sub(since);
        }
        if !exchange.outgoing.finished && !exchange.outgoing.is_ready() {
            departure.idle_since = Some(now);
        }
    }

    /// It is a half's turn, and the credit is too little for it.
    pub(crate) fn waits_for_credit(&mut self, now: Duration, id: ExchangeId) {
        let exchange = self.exchanges.get_mut(&id);
        if let Some(departure) = exchange.and_then(|exchange| exchange.departure.as_mut()) {
            departure.idle_since.get_or_insert(now);
        }
    }

    /// All of a half is with the carrier: its receipt is awaited.
    pub(crate) fn departed(&mut self, now: Duration, carrier_id: CarrierId, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let (Some(choice), Some(departure)) = (exchange.choice.take(), exchange.departure) else {
            return;
        };
        let Choice { subject, plain_bytes, coded_bytes, .. } = *choice;
        if !exchange.guard.foreign {
            self.habits.note(subject.class, plain_bytes as f64, subject.head_share);
        }
        self.shadows.earn(now.saturating_sub(departure.first) + choice.encode);
        let Some(carrier) = self.carriers.get_mut(&carrier_id) else { return };
        let network_s = self.policy.network_s(&choice.path, coded_bytes as f64);
        let carried =
            (carrier.transmitted + carrier.queued as u64).saturating_sub(departure.before);
        let learned = !carrier.sends_receipts;
        let mut awaited = Awaited { id, choice, departure, carried, network_s, learned: false };
        if learned {
            // Who knows whether a receipt comes: this much is known already.
            awaited.learn(&mut *self.policy, None);
        }
        if carrier.awaited.len() >= MAX_AWAITED {
            let oldest = carrier.awaited.pop_first();
            oldest.into_iter().for_each(|(_, mut old)| old.learn(&mut *self.policy, None));
        }
        carrier.awaited.insert(id.number, awaited);
    }

    /// Tells the peer of a half that is received and decoded.
    pub(crate) fn acknowledge(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        if !exchange.incoming.is_whole() {
            return;
        }
        if self.keep_received(id) {
            return;
        }
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Some(carrier) = exchange.carrier() else { return };
        let Some(state) = self.carriers.get_mut(&carrier) else { return };
        // However short it came: the next may come as it is.
        let bytes = exchange.meter.received_body_bytes + exchange.incoming.decoded_bytes();
        if let Some(receipt) = exchange.arrival.receipt(now, id.number, &mut state.short) {
            state.longest = bytes.max(state.longest - state.longest / LONGEST_FADES);
            self.send_along(now, carrier, Word::Receipt(receipt, now));
        }
    }

    /// The peer sent a receipt.
    pub(crate) fn receipt(&mut self, now: Duration, carrier_id: CarrierId, content: &[u8]) {
        let receipt = match Receipt::decode(content) {
            Ok(receipt) => receipt,
            Err(error) => return self.ignore(now, carrier_id, RECEIPT, &error.to_string()),
        };
        let Some(carrier) = self.carriers.get_mut(&carrier_id) else { return };
        // Whatever it says, the half is there.
        carrier.sent.arrived(receipt.exchange);
        carrier.texts.arrived(receipt.exchange);
        // Of a half that nobody remembers there is nothing to learn.
        let Some(awaited) = carrier.awaited.remove(&receipt.exchange) else { return };
        carrier.sends_receipts = true;
        let elapsed = now.saturating_sub(awaited.departure.first);
        let sent = carrier.transmitted.saturating_sub(awaited.departure.before);
        if let Err(why) = credible(&receipt, elapsed, sent) {
            let mut awaited = awaited;
            awaited.learn(&mut *self.policy, None);
            return self.ignore(now, carrier_id, RECEIPT, why);
        }
        self.arrived(now, carrier_id, awaited, &receipt);
        self.measure(now, carrier_id);
    }

    /// A half has arrived: what it took is learned and told.
    fn arrived(
        &mut self,
        now: Duration,
        carrier_id: CarrierId,
        mut awaited: Awaited,
        receipt: &Receipt,
    ) {
        let Some(carrier) = self.carriers.get_mut(&carrier_id) else { return };
        let departure = awaited.departure;
        let elapsed_s = now.saturating_sub(departure.first).as_secs_f64();
        let back_s = carrier.estimate.rtt_s().value / 2.0;
        // Its way back is no longer than the half's own, whatever is believed of the round trip.
        let both_s = elapsed_s - receipt.tail.as_secs_f64();
        let network_s = (both_s - back_s).max(both_s / 2.0).max(MIN_S);
        let idle_s = departure.idle.as_secs_f64();
        // Over a long path what its sender paused for is little of a half's time, and all the same
        // most of the time between its first piece and its last.
        let steady_for = |seconds| !receipt.held_up && idle_s <= MAX_IDLE_SHARE * seconds;
        let steady = steady_for(elapsed_s);
        let path = awaited.choice.path;
        let bytes = awaited.carried as f64;
        let train = estimate::Receipt {
            bytes: receipt.bytes,
            spread: receipt.spread,
            unbroken: steady_for(receipt.spread.as_secs_f64()),
            windows: path.windows(bytes),
        };
        if carrier.counters.is_none() {
            // Its transport tells nothing.
            carrier.estimate.receipt(&train);
        } else {
            let at_once = steady_for((network_s - back_s).max(0.0));
            let before = departure.counters;
            let took = Took { bytes, seconds: network_s, at_once, train, path, before };
            // What the counters say now belongs to all that came together.
            if carrier.took.is_empty() {
                carrier.measured_at = None;
            }
            if carrier.took.len() < MAX_TOOK {
                carrier.took.push(took);
            }
        }
        let decode_s =
            (awaited.choice.arm != Arm::IDENTITY).then_some(receipt.decode.as_secs_f64());
        awaited.learn(&mut *self.policy, decode_s);
        if steady && carrier.estimate.is_still(&path) {
            let observation = Observation::Network { path: &path, bytes, seconds: network_s };
            self.policy.observe(&observation);
        }
        self.notice_jump(carrier_id);
        if let Some(outcome) = awaited.outcome(self.config.encoding.arms(), network_s, receipt) {
            let (exchange, direction) = (awaited.id.to_string(), self.direction());
            self.event(now, Fact::Outcome { exchange, direction, outcome });
        }
    }

    /// What a peer said is not used, and told if it was not said too often.
    pub(crate) fn ignore(&mut self, now: Duration, carrier: CarrierId, what: &str, reason: &str) {
        let Some(carrier) = self.carriers.get_mut(&carrier) else { return };
        carrier.ignored = carrier.ignored.saturating_add(1);
        if carrier.ignored <= MAX_TOLD {
            let (what, reason) = (what.to_owned(), reason.to_owned());
            self.event(now, Fact::Ignored { what, reason });
        }
    }

    /// The receipts of a carrier that is gone will not come.
    pub(crate) fn give_up_receipts(&mut self, awaited: impl Iterator<Item = Awaited>) {
        awaited.for_each(|mut awaited| awaited.learn(&mut *self.policy, None));
    }
}

/// Whether any link can be so; what a transport does not know it tells as 0.
fn possible(transport: &Transport) -> Result<(), &'static str> {
    if transport.delivered_bytes_per_s > MAX_BYTES_PER_S {
        Err("it is said to deliver more than any link carries")
    } else if transport.rtt.max(transport.min_rtt) > MAX_ROUND_TRIP && !transport.rtt.is_zero() {
        Err("it is said to have a longer round trip than any link")
    } else {
        Ok(())
    }
}

/// Whether a receipt can be true of a half that left `elapsed` ago, since when the carrier was
/// given `sent` bytes.
fn credible(receipt: &Receipt, elapsed: Duration, sent: u64) -> Result<(), &'static str> {
    // The peer's clock may run a little faster.
    let most = elapsed + elapsed / 64 + Duration::from_millis(1);
    if receipt.bytes > sent {
        Err("it tells of more bytes than were sent")
    } else if receipt.bytes > 0 && receipt.spread.is_zero() {
        Err("it tells of bytes that came in no time")
    } else if receipt.spread + receipt.tail > most {
        Err("it tells of a longer time than has passed")
    } else if receipt.decode > most {
        Err("it tells of decoding longer than has passed")
    } else {
        Ok(())
    }
}

impl Awaited {
    /// What the half became, for the models; once without and once with the peer's part of it. Of
    /// one that did not go as it began the first block is told, for how slow an encoder is may be
    /// why it turned, and what it mostly went in: the rest is a mixture.
    fn learn(&mut self, policy: &mut dyn decide::policy::Policy, decode_s: Option<f64>) {
        let again = std::mem::replace(&mut self.learned, true);
        let choice = &self.choice;
        let tells = choice.arm != Arm::IDENTITY && choice.decision.is_some();
        if !tells || again && (decode_s.is_none() || choice.has_turned()) {
            return;
        }
        if choice.has_turned() {
            self.learn_first(policy);
            return self.learn_part(policy, decode_s);
        }
        let subject = Subject { bytes: choice.plain_bytes as f64, ..choice.subject };
        let encode_s = (!again).then_some(choice.encode.as_secs_f64());
        let seen = Seen { bytes: choice.coded_bytes as f64, encode_s, decode_s };
        policy.observe(&Observation::Encoding { subject: &subject, arm: choice.arm, seen: &seen });
        if !again {
            self.learn_beside(policy, &subject);
        }
    }

    fn learn_first(&self, policy: &mut dyn decide::policy::Policy) {
        let choice = &self.choice;
        let Some(first) = choice.tried.iter().find(|one| one.arm == choice.arm) else { return };
        let bytes = choice.first_bytes as f64;
        let encode_s = Some(first.encode_s * bytes);
        let seen = Seen { bytes: first.share * bytes, encode_s, decode_s: None };
        let subject = Subject { bytes, ..choice.subject };
        policy.observe(&Observation::Encoding { subject: &subject, arm: first.arm, seen: &seen });
    }

    fn learn_part(&self, policy: &mut dyn decide::policy::Policy, decode_s: Option<f64>) {
        let choice = &self.choice;
        let all_bytes = choice.plain_bytes;
        let part = choice.course.as_ref().and_then(|course| course.mostly(all_bytes));
        let Some(Part { arm, plain_bytes, coded_bytes, encode }) = part else { return };
        let subject = Subject { bytes: plain_bytes as f64, ..choice.subject };
        let share = plain_bytes as f64 / all_bytes as f64;
        let seen = Seen {
            bytes: coded_bytes as f64,
            encode_s: Some(encode.as_secs_f64()),
            decode_s: decode_s.map(|all| share * all),
        };
        policy.observe(&Observation::Encoding { subject: &subject, arm, seen: &seen });
    }

    /// What the first block alone was encoded in beside it would have left of a longer body as much
    /// more or less than of that as what was sent did: long bodies repeat themselves, for all.
    fn learn_beside(&self, policy: &mut dyn decide::policy::Policy, subject: &Subject) {
        let choice = &self.choice;
        let first = choice.tried.iter().find(|one| one.arm == choice.arm && one.share > 0.0);
        let Some(first) = first.filter(|_| choice.plain_bytes > choice.first_bytes) else { return };
        let grown = choice.coded_bytes as f64 / subject.bytes / first.share;
        let Some(one) = choice.beside.filter(|one| one.arm != choice.arm) else { return };
        let encode_s = Some(one.encode_s * subject.bytes);
        let seen = Seen { bytes: one.share * grown * subject.bytes, encode_s, decode_s: None };
        policy.observe(&Observation::Encoding { subject, arm: one.arm, seen: &seen });
    }

    /// The event's content; none where nothing had been expected.
    fn outcome(
        &self,
        arms: &[codec::Options],
        network_s: f64,
        receipt: &Receipt,
    ) -> Option<facts::Outcome> {
        let choice = &self.choice;
        let candidate = choice.expected(choice.arm)?;
        let expected = expected_parts(candidate);
        let actual = Parts {
            encode_s: choice.encode.as_secs_f64(),
            network_s,
            decode_s: receipt.decode.as_secs_f64(),
            wait_s: choice.waited.as_secs_f64(),
            bytes: choice.coded_bytes as f64,
        };
        let split = Split::new(&expected, &actual, self.network_s);
        let arm = arms.get(choice.arm.0)?;
        Some(facts::Outcome {
            encoding: arm.label(),
            body_bytes: choice.plain_bytes,
            expected: told_parts(&expected),
            actual: told_parts(&actual),
            split: told_split(&split),
            turns: choice.course.as_ref().map(Course::turns).unwrap_or_default(),
        })
    }
}

impl Exchange {
    /// A block from the peer was decoded.
    pub(crate) fn note_decoded(&mut self, cpu: Duration) {
        self.meter.codec += cpu;
        self.arrival.decoded(cpu);
    }
}
