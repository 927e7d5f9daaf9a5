//! How fast datagrams leave, and how many may be under way: by what rate the path delivers, with no
//! queue that is longer than it takes to see that (after BBR), whatever is lost by chance. Of a
//! path that nobody shares the rate is said, and nothing has to be found.

use std::collections::VecDeque;
use std::time::Duration;

use super::FULL_BYTES;
use super::sent::{Datagram, Least, Sent};

/// Datagrams that may leave before anything is known, and while the rate is being found.
const FIRST_WINDOW: usize = 10;
/// And under way at least, later.
const MIN_USUAL_WINDOW: usize = 4;
/// Both are fewer, but two, on a path that takes longer for them.
const WINDOW_TAKES: Duration = Duration::from_millis(200);
const MIN_WINDOW: usize = 2;
/// Most bytes under way.
const MAX_WINDOW_BYTES: usize = 4 << 20;
/// The greatest rate of so many round trips counts.
const MEMORY_ROUNDS: u64 = 10;
/// While the rate is being found: it can double in a round trip (2 / ln 2).
const STARTUP_GAIN: f64 = 2.89;
/// The rate is found once it has not grown by this in so many rounds.
const GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// From then on, by round trips: more, to see whether there is more; less, so that the queue that
/// made goes; as it is. And what may be under way, of what the path holds: in the second so little
/// that what gets lost then is lost by chance.
const CYCLE: [(f64, f64); 8] = [
    (1.25, 2.0),
    (0.75, 0.7),
    (1.0, 2.0),
    (1.0, 2.0),
    (1.0, 2.0),
    (1.0, 2.0),
    (1.0, 2.0),
    (1.0, 2.0),
];
/// Where none of late was as short as those before, so little is under way for so long that the
/// path's own round trip shows.
const EMPTY: Duration = Duration::from_millis(200);
/// And no more often than this.
const EMPTY_PAUSE: Duration = Duration::from_secs(10);
/// Of what the path holds no more than this is under way where no queue of ours can be.
const QUIET_SHARE: f64 = 0.75;
/// Where a datagram takes longer than this, each that waits on the path is in the way of what is
/// urgent.
const SLOW: Duration = Duration::from_millis(25);
/// There datagrams wait for less than so many times what one takes, or this.
const SLOW_QUEUE: f64 = 0.2;
const MIN_QUEUE: Duration = Duration::from_millis(50);
/// Round trips vary by so much on some paths: only where datagrams wait for longer, the path is
/// seen to be slower.
const VARIES: Duration = Duration::from_millis(400);
/// While they wait for longer than they should, fewer leave.
const SLOW_GAIN: f64 = 0.75;
/// What may be under way, of what a path holds that nobody shares: acknowledgements wait.
const OWN_WINDOW: f64 = 2.0;
/// A rate is seen over so long at least.
const MIN_SAMPLE: Duration = Duration::from_micros(100);
/// So much may leave at once, in time.
const QUANTUM: Duration = Duration::from_millis(1);

/// Acknowledgements that are remembered, to see how far apart the path puts datagrams.
const TRAIN_ACKS: usize = 12;
/// So many datagrams at least are looked at for that.
const TRAIN: u64 = 5;
/// They were sent closer together than they arrived if it was by this.
const CLOSER: f64 = 1.15;
/// Share of a new figure in what is believed of the rate by trains.
const NEW_SHARE: f64 = 0.25;

/// Bytes as a whole number.
fn whole(bytes: f64) -> usize {
    let whole = Duration::try_from_secs_f64(bytes).map_or(u64::MAX, |bytes| bytes.as_secs());
    usize::try_from(whole).unwrap_or(usize::MAX)
}

/// How far apart the path puts datagrams that left together: its rate, however few there were.
#[derive(Debug, Default)]
struct Trains {
    /// What each of the last acknowledgements said.
    acks: VecDeque<Arrival>,
    rate: Option<f64>,
}

/// The greatest datagram of an acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    number: u64,
    sent_at: Duration,
    /// When the acknowledgement came, less what the peer waited with it.
    came_at: Duration,
    /// Bytes that had arrived with it.
    delivered: u64,
    /// See [`Datagram::pauses`].
    pauses: u64,
}

impl Trains {
    /// `may_fall`: nothing held back what was sent, so that a lower rate is the path's.
    fn saw(&mut self, new: Arrival, may_fall: bool) {
        // Between two of a train there was always more to be sent.
        let is_older =
            |one: &&Arrival| new.number >= one.number + TRAIN && new.pauses == one.pauses;
        if let Some(old) = self.acks.iter().rev().find(is_older).copied() {
            let came = new.came_at.saturating_sub(old.came_at);
            let left = new.sent_at.saturating_sub(old.sent_at);
            let delivered = new.delivered.saturating_sub(old.delivered) as f64;
            if came >= MIN_SAMPLE && delivered > 0.0 {
                // What is acknowledged together came no faster than it left.
                let seen = delivered / came.max(left).as_secs_f64();
                // Those that came no faster than they left say that the path takes no less.
                let is_spread = came > left.mul_f64(CLOSER);
                self.rate = match self.rate {
                    Some(rate) if is_spread && (may_fall || seen > rate) => {
                        Some(rate + (seen - rate) * NEW_SHARE)
                    }
                    None if is_spread => Some(seen),
                    // Acknowledgements that waited for each other seem to say more.
                    rate => rate.map(|rate| rate.max(seen.min(rate * GROWTH))),
                };
            }
        }
        if self.acks.back().is_none_or(|last| last.number < new.number) {
            self.acks.push_back(new);
        }
        if self.acks.len() > TRAIN_ACKS {
            self.acks.pop_front();
        }
    }
}

/// How long datagrams wait on the path: what a round trip takes over the least of late, but for
/// what each takes by its own length.
#[derive(Debug, Default)]
struct Waits {
    now: Duration,
    least: Least,
}

impl Waits {
    /// A datagram that takes so long by itself was there and acknowledged in a round trip.
    fn saw(&mut self, now: Duration, round_trip: Duration, takes: Duration, period: Duration) {
        let rest = round_trip.saturating_sub(takes);
        self.least.saw(now, rest, period);
        self.now = self.least.get().map_or(Duration::ZERO, |least| rest - least);
    }
}

/// What the rate is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// It is being found.
    Startup,
    /// The queue that finding it has made goes.
    Drain,
    /// It is known, and looked after in cycles.
    Steady,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Pace {
    /// Bytes a second that the path carries, where that was said.
    own: Option<f64>,
    mode: Mode,
    /// Bytes that arrived, and when the last did.
    delivered: (u64, Duration),
    /// Rounds: one ends when a datagram arrives that left after the one before had ended.
    rounds: u64,
    round_from: u64,
    /// Rates that were seen, by round, bytes a second: the greatest first, each later one less.
    rates: VecDeque<(u64, f64)>,
    best_before: f64,
    full_rounds: u32,
    cycle: usize,
    trains: Trains,
    waits: Waits,
    /// Until so many bytes have arrived, too little was sent for the path to show its rate.
    limited_until: Option<u64>,
    /// When the last that has arrived left.
    last_arrived_at: Duration,
    /// Until then little is under way.
    empty_until: Duration,
    /// The next datagram leaves no sooner.
    next_at: Duration,
}

impl Pace {
    /// `own`: bytes a second that the path carries, where nobody shares it.
    pub(super) fn new(own: Option<u64>) -> Self {
        Self {
            own: own.map(|rate| rate as f64),
            mode: if own.is_some() { Mode::Steady } else { Mode::Startup },
            delivered: (0, Duration::ZERO),
            rounds: 0,
            round_from: 0,
            rates: VecDeque::new(),
            best_before: 0.0,
            full_rounds: 0,
            cycle: 2,
            trains: Trains::default(),
            waits: Waits::default(),
            limited_until: Some(0),
            last_arrived_at: Duration::ZERO,
            empty_until: Duration::ZERO,
            next_at: Duration::ZERO,
        }
    }

    /// What a datagram that leaves now has to remember: bytes that had arrived, when the last of
    /// them did, and when that one left; or now, where nothing is under way.
    pub(super) fn delivered(&self, now: Duration, sent: &Sent) -> ((u64, Duration), Duration) {
        match sent.bytes {
            0 => ((self.delivered.0, now), now),
            _ => (self.delivered, self.last_arrived_at),
        }
    }

    /// Bytes a second that the path delivers, once that was seen: in a round trip, and of datagrams
    /// that left together.
    pub(super) fn rate(&self) -> Option<f64> {
        if self.own.is_some() {
            return self.own;
        }
        let in_round = self.rates.front().map(|(_, rate)| *rate);
        [in_round, self.trains.rate].into_iter().flatten().reduce(f64::max)
    }

    /// How long so many bytes take to leave, as far as is known.
    fn takes(&self, bytes: usize) -> Option<Duration> {
        Duration::try_from_secs_f64(bytes as f64 / self.rate()?.max(1.0)).ok()
    }

    /// Whether datagrams wait on a slow path for longer than they should.
    fn waits(&self) -> bool {
        let full = self.takes(FULL_BYTES).unwrap_or(Duration::ZERO);
        self.is_slow() && self.waits.now > full.mul_f64(SLOW_QUEUE).max(MIN_QUEUE)
    }

    /// Whether less leaves for that than the path may take, whose round trips may only vary.
    fn holds_back(&self) -> bool {
        self.waits() && self.waits.now <= VARIES
    }

    /// Whether the path is known to be so slow that each datagram counts, whatever is in it.
    fn is_slow(&self) -> bool {
        self.mode != Mode::Startup && self.takes(FULL_BYTES).is_some_and(|full| full > SLOW)
    }

    fn gain(&self) -> f64 {
        if self.waits() {
            return SLOW_GAIN;
        }
        match self.mode {
            _ if self.own.is_some() => 1.0,
            Mode::Startup => STARTUP_GAIN,
            Mode::Drain => 1.0 / STARTUP_GAIN,
            Mode::Steady => CYCLE[self.cycle].0,
        }
    }

    /// Bytes that may be under way.
    fn window(&self, now: Duration, sent: &Sent) -> usize {
        // What waits so long is either too much for a slow path, or says nothing of its rate: with
        // few under way more is there to be sent than leaves, and the rate shows.
        let is_late = self.own.is_none() && self.waits.now > VARIES;
        let first = if is_late { MIN_WINDOW } else { FIRST_WINDOW } * FULL_BYTES;
        let Some((rate, least)) = self.rate().zip(sent.round_trip.least()) else { return first };
        // Without a train, a low rate says only that little was sent.
        let is_known = self.own.or(self.trains.rate).is_some() || is_late;
        let leaves = is_known.then(|| whole(rate * WINDOW_TAKES.as_secs_f64()));
        let takes = |most: usize| {
            let most = most * FULL_BYTES;
            leaves.map_or(most, |bytes| bytes.clamp(MIN_WINDOW * FULL_BYTES, most))
        };
        if now < self.empty_until {
            return takes(MIN_USUAL_WINDOW) / 2;
        }
        let gain = match self.mode {
            _ if self.own.is_some() => OWN_WINDOW,
            Mode::Startup => STARTUP_GAIN,
            Mode::Drain => 1.0,
            Mode::Steady => CYCLE[self.cycle].1,
        };
        let holds = rate * least.as_secs_f64() * gain;
        let least = if self.mode == Mode::Startup { FIRST_WINDOW } else { MIN_USUAL_WINDOW };
        whole(holds).clamp(takes(least), MAX_WINDOW_BYTES)
    }

    /// Whether so little is under way that the path has no queue of ours.
    pub(super) fn is_quiet(&self, sent: &Sent) -> bool {
        let Some((rate, least)) = self.rate().zip(sent.round_trip.least()) else { return true };
        (sent.bytes as f64) < rate * least.as_secs_f64() * QUIET_SHARE
    }

    /// Whether a datagram may leave now.
    pub(super) fn may_leave(&self, now: Duration, sent: &Sent) -> bool {
        now >= self.next_at && sent.bytes < self.window(now, sent)
    }

    /// When that may be so again, where only the pace holds it back.
    pub(super) fn next_at(&self, now: Duration, sent: &Sent) -> Option<Duration> {
        let is_emptied = (now < self.empty_until).then_some(self.empty_until);
        (sent.bytes < self.window(now, sent)).then_some(self.next_at).or(is_emptied)
    }

    /// Whether what leaves now says no more of the path's rate than that it is no less.
    pub(super) fn is_limited(&self) -> bool {
        self.limited_until.is_some() || self.holds_back()
    }

    /// Nothing more is there to be sent; `sent` is under way.
    pub(super) fn runs_dry(&mut self, sent: &Sent) {
        self.limited_until = Some(self.delivered.0 + sent.bytes as u64);
    }

    /// A datagram leaves; `loss` is the share that gets lost by chance.
    pub(super) fn left(&mut self, now: Duration, bytes: usize, loss: f64) {
        // What is lost takes its time as well: the rate is of what arrives, or of what leaves.
        let lost = if self.own.is_some() { 0.0 } else { loss };
        let Some(rate) = self.rate().map(|rate| rate / (1.0 - lost)) else { return };
        let takes = Duration::try_from_secs_f64(bytes as f64 / (rate * self.gain()).max(1.0));
        let takes = takes.unwrap_or(Duration::ZERO);
        self.next_at = self.next_at.max(now.saturating_sub(QUANTUM)) + takes;
    }

    /// A datagram leaves that only acknowledges, whatever the pace: on a slow path it takes its
    /// time as well, but holds back the next no longer than one that is full.
    pub(super) fn acknowledged(&mut self, now: Duration, bytes: usize, loss: f64) {
        if !self.is_slow() {
            return;
        }
        let most = now + self.takes(FULL_BYTES).unwrap_or(Duration::ZERO);
        let most = self.next_at.max(most);
        self.left(now, bytes, loss);
        self.next_at = self.next_at.min(most);
    }

    /// Datagrams arrived, the oldest first; `sent` is what is still under way. The last is the
    /// greatest that was acknowledged where `greatest` is its number, with what the peer waited.
    /// `may_fall`: that few arrived is for the rate of the path, and not since it swallows some.
    pub(super) fn arrived(
        &mut self,
        now: Duration,
        datagrams: &[Datagram],
        greatest: Option<(u64, Duration)>,
        may_fall: bool,
        sent: &Sent,
    ) {
        for datagram in datagrams {
            let (before, since) = datagram.delivered;
            self.delivered = (self.delivered.0 + datagram.bytes as u64, now);
            if before >= self.round_from {
                self.rounds += 1;
                self.round_from = self.delivered.0;
                self.round_ends(datagram.app_limited);
            }
            self.limited_until = self.limited_until.filter(|until| *until >= self.delivered.0);
            // What is acknowledged together came no faster than it left.
            let left = datagram.at.saturating_sub(datagram.first_at);
            let took = now.saturating_sub(since).max(left).max(MIN_SAMPLE).as_secs_f64();
            self.last_arrived_at = self.last_arrived_at.max(datagram.at);
            let rate = (self.delivered.0 - before) as f64 / took;
            let is_more = self.rates.front().is_some_and(|(_, best)| rate >= *best);
            if is_more || !datagram.app_limited {
                self.rates.retain(|(_, seen)| *seen > rate);
                self.rates.push_back((self.rounds, rate));
            }
        }
        if let Some(((number, delay), datagram)) = greatest.zip(datagrams.last()) {
            let round_trip = now.saturating_sub(datagram.at).saturating_sub(delay);
            let takes = self.takes(datagram.bytes).unwrap_or(Duration::ZERO);
            self.waits.saw(now, round_trip, takes, sent.round_trip.period());
            let (sent_at, pauses, delivered) = (datagram.at, datagram.pauses, self.delivered.0);
            let came_at = now.saturating_sub(delay);
            let may_fall = may_fall && !self.holds_back();
            self.trains.saw(Arrival { number, sent_at, came_at, delivered, pauses }, may_fall);
        }
        let oldest = self.rounds.saturating_sub(MEMORY_ROUNDS);
        while self.rates.len() > 1 && self.rates.front().is_some_and(|(at, _)| *at < oldest) {
            self.rates.pop_front();
        }
        if self.mode == Mode::Drain && sent.bytes <= self.window(now, sent) {
            self.mode = Mode::Steady;
        }
        let is_due = now >= self.empty_until + EMPTY_PAUSE;
        if is_due && self.mode == Mode::Steady && sent.round_trip.is_unsure(now) {
            self.empty_until = now + EMPTY + sent.round_trip.expected();
        }
    }

    /// A round trip is over, at whose end more was there to be sent, or not.
    fn round_ends(&mut self, app_limited: bool) {
        match self.mode {
            Mode::Startup => {
                let best = self.rates.front().map_or(0.0, |(_, rate)| *rate);
                if best >= self.best_before * GROWTH {
                    (self.best_before, self.full_rounds) = (best, 0);
                } else if !app_limited {
                    self.full_rounds += 1;
                }
                if self.full_rounds >= FULL_ROUNDS {
                    self.mode = Mode::Drain;
                }
            }
            Mode::Drain => {}
            Mode::Steady => self.cycle = (self.cycle + 1) % CYCLE.len(),
        }
    }
}
