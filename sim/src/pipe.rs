//! A reliable ordered byte pipe: what TCP makes of a link, where loss shows as delay.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::Random;

/// A queue of datagrams that is longer takes no more.
const MAX_QUEUE: Duration = Duration::from_secs(3);
/// One in so many datagrams comes twice, and one in so many late, by so much at most.
const DOUBLED_ONCE_IN: u64 = 30;
const LATE_ONCE_IN: u64 = 8;
const MAX_LATE_MS: u64 = 400;

/// One direction.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    rate_bps: u64,
    delay: Duration,
    /// Once in so many segments one is lost, which holds everything back.
    loss_once_in: u64,
    free_at: Duration,
    last_arrival: Duration,
    /// Of a pipe that has many streams, when the last bytes of each arrive.
    arrivals: BTreeMap<u64, Duration>,
    /// What has left and not arrived: when it does, and how much it is.
    under_way: VecDeque<(Duration, usize)>,
    /// Nothing gets through between these.
    outage: Option<(Duration, Duration)>,
}

impl Pipe {
    pub(crate) fn new(random: &mut Random) -> Self {
        let rates = [9_600, 250_000, 2_000_000, 100_000_000];
        let at = usize::try_from(random.below(4)).unwrap_or(0);
        Self {
            rate_bps: rates[at],
            delay: Duration::from_millis(random.below(600)),
            loss_once_in: 5 + random.below(200),
            free_at: Duration::ZERO,
            last_arrival: Duration::ZERO,
            arrivals: BTreeMap::new(),
            under_way: VecDeque::new(),
            outage: None,
        }
    }

    /// Nothing gets through for a while.
    pub(crate) fn goes_down(&mut self, from: Duration, until: Duration) {
        self.outage = Some((from, until));
    }

    /// When somebody who sends something now, and again as TCP does until it gets through, is
    /// through: the pause doubles, so that it may be as long again as the outage was.
    fn through_at(&self, sent: Duration) -> Duration {
        let Some((from, until)) = self.outage else { return sent };
        let (mut at, mut pause) = (sent, Duration::from_secs(1) + self.delay * 2);
        while at >= from && at < until {
            at += pause;
            pause *= 2;
        }
        at
    }

    /// When a datagram arrives: not at all, once or twice. It may be before others that left first.
    pub(crate) fn carry_datagram(
        &mut self,
        now: Duration,
        bytes: usize,
        random: &mut Random,
    ) -> Vec<Duration> {
        let airtime = bytes as u64 * 8 * 1_000_000_000 / self.rate_bps;
        let is_down = self.outage.is_some_and(|(from, until)| (from..until).contains(&now));
        if is_down || self.free_at > now + MAX_QUEUE {
            return Vec::new();
        }
        self.free_at = self.free_at.max(now) + Duration::from_nanos(airtime);
        if random.once_in(self.loss_once_in) {
            return Vec::new();
        }
        let copies = if random.once_in(DOUBLED_ONCE_IN) { 2 } else { 1 };
        let mut arrives = || {
            let late = if random.once_in(LATE_ONCE_IN) { random.below(MAX_LATE_MS) } else { 0 };
            self.free_at + self.delay + Duration::from_millis(late)
        };
        let arrivals: Vec<_> = (0..copies).map(|_| arrives()).collect();
        self.last_arrival = self.last_arrival.max(self.free_at + self.delay);
        arrivals
    }

    /// When bytes of a stream have left the sender, and when they arrive: each stream keeps its
    /// order, and what is lost of one holds back no other.
    pub(crate) fn carry_piece(
        &mut self,
        now: Duration,
        stream: u64,
        bytes: usize,
        random: &mut Random,
    ) -> (Duration, Duration) {
        let airtime = bytes as u64 * 8 * 1_000_000_000 / self.rate_bps;
        self.free_at = self.free_at.max(now) + Duration::from_nanos(airtime);
        let mut arrives = self.through_at(self.free_at) + self.delay;
        if random.once_in(self.loss_once_in) || random.once_in(LATE_ONCE_IN) {
            arrives += self.delay * 2 + Duration::from_millis(random.below(MAX_LATE_MS));
        }
        let last = self.arrivals.entry(stream).or_default();
        *last = (*last).max(arrives);
        let arrives = *last;
        self.last_arrival = self.last_arrival.max(arrives);
        self.under_way.push_back((self.last_arrival, bytes));
        (self.free_at, arrives)
    }

    /// Bytes that the other end has not acknowledged.
    pub(crate) fn under_way(&mut self, now: Duration) -> u64 {
        while self.under_way.front().is_some_and(|(arrives, _)| *arrives <= now) {
            self.under_way.pop_front();
        }
        self.under_way.iter().map(|(_, bytes)| *bytes as u64).sum()
    }

    /// When what was sent so far has arrived.
    pub(crate) fn last_arrival(&self) -> Duration {
        self.last_arrival
    }

    /// When `bytes` have left the sender, and when they arrive.
    pub(crate) fn carry(
        &mut self,
        now: Duration,
        bytes: usize,
        random: &mut Random,
    ) -> (Duration, Duration) {
        let airtime = bytes as u64 * 8 * 1_000_000_000 / self.rate_bps;
        self.free_at = self.free_at.max(now) + Duration::from_nanos(airtime);
        let mut arrival = self.through_at(self.free_at) + self.delay;
        if random.once_in(self.loss_once_in) {
            arrival += self.delay * 2 + Duration::from_millis(200);
        }
        self.last_arrival = self.last_arrival.max(arrival);
        self.under_way.push_back((self.last_arrival, bytes));
        (self.free_at, self.last_arrival)
    }
}
