//! The sending side: what is under way, what is lost, when to send again.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use decide::estimate::Transport;

use super::cubic::Cubic;
use super::{ACK_BYTES, SEGMENT_BYTES, Segment};

/// Linux's least timeout (`TCP_RTO_MIN`) and longest (`TCP_RTO_MAX`).
const MIN_TIMEOUT_S: f64 = 0.2;
const MAX_TIMEOUT_S: f64 = 120.0;
/// Segments delivered behind one that is missing, before it counts as lost (RFC 6675).
const DUPLICATES: usize = 3;
/// How long the least round trip is remembered (Linux: `tcp_min_rtt_wlen`).
const MIN_RTT_S: f64 = 300.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentState {
    Waiting,
    Flying,
    Lost,
    Delivered,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    bytes: u32,
    state: SegmentState,
    /// Number of its last transmission.
    transmission: u64,
    sent_s: f64,
    /// Of the rate's samples (Linux: `tcp_rate.c`).
    delivered: u64,
    delivered_s: f64,
    first_sent_s: f64,
    app_limited: bool,
}

/// Where things stood before a timeout that may have been needless.
#[derive(Clone, Debug)]
struct Undo {
    cubic: Cubic,
    /// Transmissions from here on came after it.
    transmission: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// Segments that seem missing count as lost (RFC 8985 §6.2).
    Reordering,
    /// A probe for the loss of the last (RFC 8985 §7).
    Probe,
    Timeout,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) cubic: Cubic,
    /// Segments that the receiver takes at once.
    pub(super) credit: f64,
    /// Number of the first slot.
    base: u64,
    slots: VecDeque<Slot>,
    /// Number of the first segment never sent.
    next: u64,
    flying: usize,
    lost: BTreeSet<u64>,
    /// Delivered, with one before them that is not.
    beyond: usize,
    /// Transmissions in order, to find what is missing.
    order: VecDeque<(u64, u64)>,
    transmissions: u64,
    latest: u64,
    recovery_end: Option<u64>,
    undo: Option<Undo>,
    timer: Option<(f64, Timer)>,
    probed: bool,
    backoff: f64,
    srtt_s: f64,
    variation_s: f64,
    least_rtt_s: (f64, f64),
    last_sent_s: f64,
    first_sent_s: f64,
    delivered: u64,
    delivered_s: f64,
    app_limited: u64,
    /// Bytes a second, and whether the sender held it back.
    rate: (f64, bool),
    most_flying: usize,
    limited: bool,
    limited_round: u64,
    /// Segments sent, those sent again, and those of them that were there already.
    pub(super) counters: (u64, u64, u64),
    /// Payload sent, that sent again too.
    bytes_out: u64,
}

impl Sender {
    /// A connection whose handshake took `rtt_s`, to a receiver that takes `credit` segments at
    /// once.
    pub(super) fn new(rtt_s: f64, credit: f64) -> Self {
        Self {
            cubic: Cubic::new(),
            credit,
            base: 0,
            slots: VecDeque::new(),
            next: 0,
            flying: 0,
            lost: BTreeSet::new(),
            beyond: 0,
            order: VecDeque::new(),
            transmissions: 0,
            latest: 0,
            recovery_end: None,
            undo: None,
            timer: None,
            probed: false,
            backoff: 1.0,
            srtt_s: rtt_s,
            variation_s: rtt_s / 2.0,
            least_rtt_s: (rtt_s, 0.0),
            last_sent_s: 0.0,
            first_sent_s: 0.0,
            delivered: 0,
            delivered_s: 0.0,
            app_limited: 0,
            rate: (0.0, true),
            most_flying: 0,
            limited: false,
            limited_round: 0,
            counters: (0, 0, 0),
            bytes_out: 0,
        }
    }

    /// Takes a message; gives the number of its first segment and of the one behind its last.
    pub(super) fn write(&mut self, now_s: f64, bytes: u64) -> (u64, u64) {
        let idle_s = now_s - self.last_sent_s;
        if self.flying == 0 && self.lost.is_empty() && idle_s > 0.0 {
            self.cubic.idle(idle_s / self.timeout_s(), idle_s);
        }
        let first = self.base + self.slots.len() as u64;
        let mut left = bytes.max(1);
        while left > 0 {
            let bytes = left.min(u64::from(SEGMENT_BYTES));
            left -= bytes;
            self.slots.push_back(Slot {
                bytes: u32::try_from(bytes).unwrap_or(SEGMENT_BYTES),
                state: SegmentState::Waiting,
                transmission: 0,
                sent_s: 0.0,
                delivered: 0,
                delivered_s: 0.0,
                first_sent_s: 0.0,
                app_limited: false,
            });
        }
        (first, self.base + self.slots.len() as u64)
    }

    pub(super) fn timer_s(&self) -> Option<f64> {
        self.timer.map(|(at_s, _)| at_s)
    }

    fn timeout_s(&self) -> f64 {
        self.srtt_s + (4.0 * self.variation_s).max(MIN_TIMEOUT_S)
    }

    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        let at = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.slots.get_mut(at)
    }

    /// The next segment to leave, if the window lets it.
    pub(super) fn poll(&mut self, now_s: f64) -> Option<Segment> {
        let end = self.base + self.slots.len() as u64;
        let flying = self.flying as f64;
        let open = flying < self.cubic.window.floor().max(1.0);
        let ready = !self.lost.is_empty() || self.next < end;
        if !(open && ready && flying < self.credit) {
            self.note_limit(ready && !open, end);
            return None;
        }
        let number = self.lost.pop_first().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        self.flying += 1;
        self.transmit(now_s, number)
    }

    /// Whether the window or the application holds the sender back (Linux: `tcp_cwnd_validate`,
    /// `tcp_rate_check_app_limited`).
    fn note_limit(&mut self, limited: bool, end: u64) {
        if self.base >= self.limited_round || self.flying > self.most_flying || limited {
            self.most_flying = self.flying;
            self.limited = limited;
            self.limited_round = self.next;
        }
        if self.next >= end && !limited {
            self.app_limited = (self.delivered + self.flying as u64).max(1);
        }
    }

    fn transmit(&mut self, now_s: f64, number: u64) -> Option<Segment> {
        if self.flying <= 1 {
            (self.first_sent_s, self.delivered_s) = (now_s, now_s);
        }
        self.transmissions += 1;
        let (transmission, delivered) = (self.transmissions, self.delivered);
        let (delivered_s, first_sent_s) = (self.delivered_s, self.first_sent_s);
        let app_limited = self.app_limited > 0;
        let slot = self.slot(number)?;
        let again = slot.transmission > 0;
        *slot = Slot {
            bytes: slot.bytes,
            state: SegmentState::Flying,
            transmission,
            sent_s: now_s,
            delivered,
            delivered_s,
            first_sent_s,
            app_limited,
        };
        let bytes = slot.bytes;
        self.order.push_back((transmission, number));
        self.counters.0 += 1;
        self.bytes_out += u64::from(bytes);
        self.counters.1 += u64::from(again);
        self.last_sent_s = now_s;
        self.arm(now_s);
        Some(Segment { number, transmission, bytes: bytes + ACK_BYTES, sent_s: now_s, received: 0 })
    }

    fn arm(&mut self, now_s: f64) {
        if self.flying == 0 && self.lost.is_empty() {
            self.timer = None;
            return;
        }
        let timeout_s = (self.timeout_s() * self.backoff).min(MAX_TIMEOUT_S);
        let quiet = self.recovery_end.is_none() && self.beyond == 0 && !self.probed;
        let alone_s = if self.flying == 1 { MIN_TIMEOUT_S } else { 0.002 };
        let probe_s = 2.0 * self.srtt_s + alone_s;
        let (wait_s, timer) = if quiet && probe_s < timeout_s {
            (probe_s, Timer::Probe)
        } else {
            (timeout_s, Timer::Timeout)
        };
        self.timer = Some((now_s + wait_s, timer));
    }

    /// The timer's moment has come; gives a probe to send.
    pub(super) fn wake(&mut self, now_s: f64) -> Option<Segment> {
        match self.timer.take_if(|(at_s, _)| *at_s <= now_s)? {
            (_, Timer::Reordering) => {
                self.find_missing(now_s, true);
                self.arm(now_s);
                None
            }
            (_, Timer::Probe) => {
                self.probed = true;
                if self.next < self.base + self.slots.len() as u64 {
                    self.next += 1;
                    self.flying += 1;
                    return self.transmit(now_s, self.next - 1);
                }
                let flying = |slot: &Slot| slot.state == SegmentState::Flying;
                let Some(at) = self.slots.iter().rposition(flying) else {
                    self.arm(now_s);
                    return None;
                };
                self.transmit(now_s, self.base + at as u64)
            }
            (_, Timer::Timeout) => {
                self.time_out(now_s);
                None
            }
        }
    }

    fn time_out(&mut self, now_s: f64) {
        if self.backoff <= 1.0 {
            let transmission = self.transmissions + 1;
            self.undo = Some(Undo { cubic: self.cubic.clone(), transmission });
            self.cubic.time_out();
        }
        self.cubic.window = 1.0;
        for (number, slot) in (self.base..).zip(&mut self.slots) {
            if slot.state == SegmentState::Flying {
                slot.state = SegmentState::Lost;
                self.lost.insert(number);
            }
        }
        self.flying = 0;
        self.order.clear();
        self.recovery_end = Some(self.next);
        self.backoff *= 2.0;
        self.arm(now_s);
    }

    /// What the receiver has told: numbers and transmissions that arrived, in order; `echo_s` is
    /// when that left which made it tell (the timestamps of RFC 7323).
    pub(super) fn acknowledged(
        &mut self,
        now_s: f64,
        echo_s: f64,
        arrivals: impl Iterator<Item = (u64, u64)>,
    ) {
        let (mut fresh, mut newest) = (0_u32, None::<Slot>);
        for (number, transmission) in arrivals {
            let front = number == self.base;
            let start = self.undo.as_ref().map(|undo| undo.transmission);
            let Some(slot) = self.slot(number).filter(|slot| slot.state != SegmentState::Delivered)
            else {
                self.counters.2 += 1;
                continue;
            };
            let before = std::mem::replace(&mut slot.state, SegmentState::Delivered);
            let slot = *slot;
            fresh += 1;
            match before {
                SegmentState::Flying => self.flying -= 1,
                _ => {
                    self.lost.remove(&number);
                }
            }
            self.beyond += 1;
            self.delivered += 1;
            if slot.transmission == transmission {
                self.latest = self.latest.max(transmission);
                if newest.is_none_or(|newest| newest.transmission < transmission) {
                    newest = Some(slot);
                }
            }
            if front && start.is_some_and(|start| transmission < start) {
                self.needless();
            }
        }
        while self.slots.front().is_some_and(|slot| slot.state == SegmentState::Delivered) {
            self.slots.pop_front();
            self.base += 1;
            self.beyond -= 1;
        }
        if fresh > 0 {
            self.round_trip(now_s, now_s - echo_s);
            self.progress(now_s, f64::from(fresh), newest);
        }
    }

    /// The timeout was needless: what counted as lost was under way (RFC 4015).
    fn needless(&mut self) {
        let Some(undo) = self.undo.take() else { return };
        self.cubic = undo.cubic;
        self.recovery_end = None;
        for number in std::mem::take(&mut self.lost) {
            if let Some(slot) = self.slot(number) {
                slot.state = SegmentState::Flying;
                self.flying += 1;
            }
        }
        let flying =
            (self.base..).zip(&self.slots).filter(|(_, slot)| slot.state == SegmentState::Flying);
        let mut order: Vec<_> = flying.map(|(number, slot)| (slot.transmission, number)).collect();
        order.sort_unstable();
        self.order = order.into();
    }

    fn progress(&mut self, now_s: f64, fresh: f64, newest: Option<Slot>) {
        self.backoff = 1.0;
        self.probed = false;
        self.delivered_s = now_s;
        if let Some(slot) = newest {
            self.sample(now_s, &slot);
            self.first_sent_s = slot.sent_s;
        }
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        self.find_missing(now_s, false);
        if self.recovery_end.is_some_and(|end| self.base >= end) {
            (self.recovery_end, self.undo) = (None, None);
        }
        let few = self.cubic.window < 2.0 * self.most_flying as f64;
        let limited = if self.cubic.slow_start() { few } else { self.limited };
        if limited && (self.recovery_end.is_none() || self.cubic.slow_start()) {
            self.cubic.grow(fresh, now_s, self.srtt_s);
        }
        if !matches!(self.timer, Some((_, Timer::Reordering))) {
            self.arm(now_s);
        }
    }

    fn round_trip(&mut self, now_s: f64, sample_s: f64) {
        self.variation_s = 0.75 * self.variation_s + 0.25 * (self.srtt_s - sample_s).abs();
        self.srtt_s = 0.875 * self.srtt_s + 0.125 * sample_s;
        let (least_s, since_s) = self.least_rtt_s;
        if sample_s <= least_s || now_s - since_s > MIN_RTT_S {
            self.least_rtt_s = (sample_s, now_s);
        }
        self.cubic.round_trip(sample_s, self.least_rtt_s.0, self.base, self.next);
    }

    /// A sample of the rate (Linux: `tcp_rate_gen`).
    fn sample(&mut self, now_s: f64, slot: &Slot) {
        let interval_s = (now_s - slot.delivered_s).max(slot.sent_s - slot.first_sent_s);
        if interval_s < self.least_rtt_s.0 * 0.999 {
            return;
        }
        let bytes = (self.delivered - slot.delivered) as f64 * f64::from(SEGMENT_BYTES);
        let rate = bytes / interval_s;
        if !slot.app_limited || rate >= self.rate.0 {
            self.rate = (rate, slot.app_limited);
        }
    }

    /// What left before something that arrived, and did not arrive, is lost.
    fn find_missing(&mut self, now_s: f64, sure: bool) {
        let sure = sure || self.recovery_end.is_some() || self.beyond >= DUPLICATES;
        while let Some(&(transmission, number)) = self.order.front() {
            if transmission >= self.latest {
                break;
            }
            let missing = self.slot(number).is_some_and(|slot| {
                slot.state == SegmentState::Flying && slot.transmission == transmission
            });
            if missing && !sure {
                let wait_s = self.least_rtt_s.0 / 4.0;
                self.timer = Some((now_s + wait_s, Timer::Reordering));
                return;
            }
            self.order.pop_front();
            if missing {
                self.lose(number);
            }
        }
    }

    fn lose(&mut self, number: u64) {
        if let Some(slot) = self.slot(number) {
            slot.state = SegmentState::Lost;
        }
        self.flying -= 1;
        self.lost.insert(number);
        if self.recovery_end.is_none() {
            self.recovery_end = Some(self.next);
            self.cubic.lose();
        }
    }

    /// What Linux tells in TCP_INFO.
    pub(super) fn transport(&self, now_s: f64) -> Transport {
        let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let (sent, again, duplicates) = self.counters;
        let left = self.slots.iter().filter(|slot| slot.state != SegmentState::Delivered);
        Transport {
            rtt: Duration::from_secs_f64(self.srtt_s),
            min_rtt: Duration::from_secs_f64(self.least_rtt_s.0),
            delivered_bytes_per_s: crate::decision::whole(self.rate.0),
            app_limited: self.rate.1,
            segments_out: small(sent),
            bytes_out: self.bytes_out,
            timeouts: 0,
            retransmitted: small(again),
            duplicates: small(duplicates),
            window_segments: small(crate::decision::whole(self.cubic.window)),
            threshold_segments: small(crate::decision::whole(self.cubic.threshold)),
            // Its receiver takes whatever comes.
            receiver_window_bytes: 0,
            segment_bytes: SEGMENT_BYTES,
            idle: Duration::from_secs_f64((now_s - self.last_sent_s).max(0.0)),
            backlog_bytes: left.map(|slot| u64::from(slot.bytes)).sum(),
            repairs: false,
            lockstep: false,
            incoming_loss_ppm: None,
        }
    }
}
