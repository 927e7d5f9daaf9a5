//! A TCP transfer packet by packet: what the decision is judged by, and knows nothing of.
//!
//! One sender with CUBIC (RFC 9438), selective acknowledgements, a tail loss probe (RFC 8985 §7) and
//! a retransmission timeout (RFC 6298, floor 200 ms as Linux has), over a link that loses packets
//! after they took their airtime. The connection is kept alive between messages, so that the window
//! and the smoothed round trip of one are those with which the next begins.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Random;

/// Payload and header of a packet in bytes.
const SEGMENT: f64 = 1448.0;
const HEADER: f64 = 52.0;
/// Packets acknowledged behind one that is missing, before it counts as lost.
const REORDERING: u64 = 3;
/// CUBIC's C and β (RFC 9438 §4).
const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 0.7;
/// Linux's least timeout.
const LEAST_TIMEOUT_S: f64 = 0.2;
/// A link's queue in packets.
const QUEUE_PACKETS: f64 = 1000.0;

/// A link, both ways alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// Name for a person.
    pub name: &'static str,
    /// Bit/s.
    pub rate_bps: f64,
    /// Seconds each way.
    pub delay_s: f64,
    /// Share of packets lost, each way.
    pub loss: f64,
}

/// A connection that is kept alive.
#[derive(Clone, Debug)]
pub struct Connection {
    network: Network,
    window: f64,
    threshold: f64,
    /// CUBIC: window at the last loss, and when that was.
    most: f64,
    since: f64,
    smoothed: f64,
    variation: f64,
    clock: f64,
    sent: u64,
    resent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Acknowledged { packet: u64 },
    Timer { armed: u64 },
}

/// By time, then by number: a run is the same each time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct At(f64, u64, Event);

impl Eq for At {}

impl PartialOrd for At {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for At {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

/// What a transfer was like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// Seconds from the first byte's leaving to the last one's arrival.
    pub seconds: f64,
    /// Seconds between the arrivals of the first packet and of the last.
    pub spread_s: f64,
    /// Whether the window never held the sender back.
    pub unbroken: bool,
}

/// A transfer under way.
struct Run<'a> {
    of: &'a mut Connection,
    random: &'a mut Random,
    events: BinaryHeap<Reverse<At>>,
    numbered: u64,
    now: f64,
    link_free: f64,
    count: u64,
    /// Per packet: 0 not sent, 1 under way, 2 lost and to be sent again, 3 acknowledged.
    state: Vec<u8>,
    arrived: Vec<bool>,
    next: u64,
    flying: u64,
    highest: u64,
    recovery_until: u64,
    armed: u64,
    backoff: f64,
    probed: bool,
    missing: u64,
    first_arrival: f64,
    last_arrival: f64,
    unbroken: bool,
}

impl Connection {
    /// A connection that was just opened.
    #[must_use]
    pub fn new(network: Network) -> Self {
        let rtt = 2.0 * network.delay_s + 0.001;
        Self {
            network,
            window: 10.0,
            threshold: f64::INFINITY,
            most: 0.0,
            since: 0.0,
            smoothed: rtt,
            variation: rtt / 2.0,
            clock: 0.0,
            sent: 0,
            resent: 0,
        }
    }

    /// The same connection over another link.
    pub fn change(&mut self, network: Network) {
        self.network = network;
    }

    /// Congestion window in packets.
    #[must_use]
    pub fn window(&self) -> f64 {
        self.window
    }

    /// Smoothed round trip in seconds.
    #[must_use]
    pub fn smoothed_s(&self) -> f64 {
        self.smoothed
    }

    /// Packets sent and, of these, sent again.
    #[must_use]
    pub fn counters(&self) -> (u64, u64) {
        (self.sent, self.resent)
    }

    /// Lets time pass: the window falls back as after idling (RFC 2861).
    pub fn idle(&mut self, seconds: f64) {
        self.clock += seconds;
        let timeout = self.timeout();
        let mut left = seconds;
        while left > timeout && self.window > 10.0 {
            self.threshold = self.threshold.max(0.75 * self.window);
            self.window = (self.window / 2.0).max(10.0);
            left -= timeout;
        }
    }

    fn timeout(&self) -> f64 {
        self.smoothed + (4.0 * self.variation).max(LEAST_TIMEOUT_S)
    }

    /// Sends so many bytes.
    pub fn send(&mut self, bytes: f64, random: &mut Random) -> Transfer {
        let count = (bytes / SEGMENT).ceil().max(1.0);
        let last = bytes - (count - 1.0) * SEGMENT;
        let packets = crate::decision::whole(count);
        let now = self.clock;
        let mut run = Run {
            of: self,
            random,
            events: BinaryHeap::new(),
            numbered: 0,
            now,
            link_free: now,
            count: packets,
            state: vec![0; crate::decision::index(packets)],
            arrived: vec![false; crate::decision::index(packets)],
            next: 0,
            flying: 0,
            highest: 0,
            recovery_until: 0,
            armed: 0,
            backoff: 1.0,
            probed: false,
            missing: packets,
            first_arrival: 0.0,
            last_arrival: 0.0,
            unbroken: true,
        };
        run.fill(last);
        while run.missing > 0 {
            let Some(Reverse(At(at, _, event))) = run.events.pop() else { break };
            run.now = at;
            match event {
                Event::Acknowledged { packet } => run.acknowledged(packet),
                Event::Timer { armed } if armed == run.armed => run.timer(),
                Event::Timer { .. } => continue,
            }
            run.fill(last);
        }
        let transfer = Transfer {
            seconds: run.last_arrival - now,
            spread_s: run.last_arrival - run.first_arrival,
            unbroken: run.unbroken,
        };
        let end = run.last_arrival + run.of.network.delay_s;
        self.clock = end;
        transfer
    }
}

impl Run<'_> {
    fn push(&mut self, at: f64, event: Event) {
        self.numbered += 1;
        self.events.push(Reverse(At(at, self.numbered, event)));
    }

    /// Sends what the window lets out: what was lost first.
    fn fill(&mut self, last: f64) {
        while (self.flying as f64) < self.of.window.floor().max(1.0) {
            let again = self.lost();
            let packet = match again {
                Some(packet) => packet,
                None if self.next < self.count => {
                    self.next += 1;
                    self.next - 1
                }
                None => return,
            };
            self.transmit(packet, last);
        }
        if self.next < self.count {
            let queued = self.link_free > self.now;
            self.unbroken &= queued;
        }
    }

    fn lost(&self) -> Option<u64> {
        let from = crate::decision::index(self.next);
        // Few are lost at once, and they are near the end of what was sent.
        let found = self.state[..from].iter().rposition(|&state| state == 2)?;
        Some(found as u64)
    }

    fn transmit(&mut self, packet: u64, last: f64) {
        let at = crate::decision::index(packet);
        let network = self.of.network;
        let payload = if packet + 1 == self.count { last } else { SEGMENT };
        let airtime = 8.0 * (payload + HEADER) / network.rate_bps;
        self.of.sent += 1;
        self.of.resent += u64::from(self.state[at] == 2);
        self.state[at] = 1;
        self.flying += 1;
        let full =
            self.link_free - self.now > QUEUE_PACKETS * 8.0 * (SEGMENT + HEADER) / network.rate_bps;
        if !full {
            self.link_free = self.link_free.max(self.now) + airtime;
            if !self.chance(network.loss) {
                self.arrive(at, packet, self.link_free + network.delay_s);
            }
        }
        self.arm();
    }

    fn arrive(&mut self, at: usize, packet: u64, when: f64) {
        if !std::mem::replace(&mut self.arrived[at], true) {
            self.missing -= 1;
            self.last_arrival = self.last_arrival.max(when);
            if self.first_arrival == 0.0 {
                self.first_arrival = when;
            }
        }
        // An acknowledgement that is lost is made good by the next; that of the last is not needed
        // for our measure but for the sender's peace.
        if !self.chance(self.of.network.loss) || packet + 3 < self.count {
            self.push(when + self.of.network.delay_s, Event::Acknowledged { packet });
        }
    }

    fn chance(&mut self, share: f64) -> bool {
        (self.random.below(1 << 32) as f64) < share * (1_u64 << 32) as f64
    }

    fn arm(&mut self) {
        self.armed += 1;
        let probe = 2.0 * self.of.smoothed + if self.flying == 1 { 0.2 } else { 0.002 };
        let timeout = self.of.timeout() * self.backoff;
        let wait = if self.probed { timeout } else { probe.min(timeout) };
        self.push(self.now.max(self.link_free) + wait, Event::Timer { armed: self.armed });
    }

    fn acknowledged(&mut self, packet: u64) {
        let at = crate::decision::index(packet);
        if self.state[at] == 3 {
            return;
        }
        if self.state[at] == 1 {
            self.flying -= 1;
        }
        self.state[at] = 3;
        self.backoff = 1.0;
        self.probed = false;
        self.highest = self.highest.max(packet + 1);
        self.round_trip();
        self.grow();
        let from = crate::decision::index(self.highest.saturating_sub(REORDERING));
        let back = from.saturating_sub(64);
        for at in back..from {
            if self.state[at] == 1 {
                self.lose(at);
            }
        }
        if self.flying > 0 {
            self.arm();
        }
    }

    /// A packet counts as lost: once a round trip that makes the window smaller.
    fn lose(&mut self, at: usize) {
        self.state[at] = 2;
        self.flying -= 1;
        if at as u64 >= self.recovery_until {
            self.recovery_until = self.next;
            let of = &mut *self.of;
            of.most = of.window;
            of.since = self.now;
            of.window = (of.window * CUBIC_BETA).max(2.0);
            of.threshold = of.window;
        }
    }

    fn round_trip(&mut self) {
        let network = self.of.network;
        let queued = (self.link_free - self.now).max(0.0);
        let sample = 2.0 * network.delay_s + queued + 8.0 * (SEGMENT + HEADER) / network.rate_bps;
        let of = &mut *self.of;
        of.variation = 0.75 * of.variation + 0.25 * (of.smoothed - sample).abs();
        of.smoothed = 0.875 * of.smoothed + 0.125 * sample;
    }

    fn grow(&mut self) {
        let of = &mut *self.of;
        if of.window < of.threshold {
            of.window += 1.0;
            return;
        }
        let t = self.now - of.since;
        let k = (of.most * (1.0 - CUBIC_BETA) / CUBIC_C).cbrt();
        let cubic = CUBIC_C * (t + of.smoothed - k).powi(3) + of.most;
        let reno = of.most * CUBIC_BETA + 0.53 * t / of.smoothed;
        let target = cubic.max(reno).clamp(of.window, 1.5 * of.window);
        of.window += ((target - of.window) / of.window).max(0.01 / of.window);
    }

    /// A probe first; after that, everything counts as lost.
    fn timer(&mut self) {
        let open = (0..crate::decision::index(self.next)).rev().find(|&at| self.state[at] == 1);
        let Some(open) = open else { return };
        if !std::mem::replace(&mut self.probed, true) {
            self.state[open] = 2;
            self.flying -= 1;
            return;
        }
        for at in 0..crate::decision::index(self.next) {
            if self.state[at] == 1 {
                self.state[at] = 2;
            }
        }
        self.flying = 0;
        self.backoff = (self.backoff * 2.0).min(64.0);
        let of = &mut *self.of;
        of.most = of.window;
        of.since = self.now;
        of.threshold = (of.window * CUBIC_BETA).max(2.0);
        of.window = 1.0;
        self.recovery_until = self.next;
    }
}
