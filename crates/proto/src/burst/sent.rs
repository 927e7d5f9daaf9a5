//! Datagrams under way: which arrived, which are lost, how long they take (as RFC 9002 finds it
//! out), and what share of them gets lost.

use std::collections::BTreeMap;
use std::time::Duration;

use super::packet::Ack;
use super::receiving::MAX_DELAY;

/// A datagram is lost once one was acknowledged that left so many later (RFC 9002 §6.1.1).
const REORDERED: u64 = 3;
/// Or this much of a round trip later (RFC 9002 §6.1.2).
const LATE: f64 = 9.0 / 8.0;
/// Least time that is told apart.
const GRANULARITY: Duration = Duration::from_millis(1);
/// A round trip where none was seen.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(500);
/// The wait for an acknowledgement doubles up to this, where a round trip takes no longer: so much
/// may be sent where nothing is known of a path (RFC 8085 §3.1.2), and a link that is up again must
/// not wait for longer.
const MAX_WAIT: Duration = Duration::from_secs(3);
/// The least round trip is that of the last one to two periods: each so long, or so many round
/// trips as they are now, for a queue of ours must not pass for the path.
const ROUND_TRIP_PERIOD: Duration = Duration::from_secs(5);
const ROUND_TRIP_PERIODS: u32 = 10;
/// Of so many datagrams the losses count.
const MEMORY: f64 = 200.0;
/// What is believed of losses before any datagram was seen: this share, as if of so many.
const PRIOR_LOSS: f64 = 0.01;
const PRIOR: f64 = 10.0;

/// A symbol: of which generation, in how many source symbols that was cut, and its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Which {
    pub(super) generation: u64,
    pub(super) count: usize,
    pub(super) index: usize,
}

/// A datagram under way.
#[derive(Debug)]
pub(super) struct Datagram {
    pub(super) number: u64,
    pub(super) at: Duration,
    pub(super) bytes: usize,
    /// It is so long that a path may swallow it for that (see `lengths`).
    pub(super) long: bool,
    pub(super) symbols: Vec<Which>,
    /// The greatest number that it acknowledged, if any.
    pub(super) acknowledged: Option<u64>,
    /// Bytes that had arrived when it left, and when the last of them did.
    pub(super) delivered: (u64, Duration),
    /// When the last that had arrived by then left.
    pub(super) first_at: Duration,
    /// There was too little to send for the path to show its rate.
    pub(super) app_limited: bool,
    /// How often nothing more had been there to be sent before.
    pub(super) pauses: u64,
    /// So little was under way when it left that the path had no queue of ours.
    pub(super) quiet: bool,
}

/// The round trip.
#[derive(Debug, Default)]
pub(super) struct RoundTrip {
    pub(super) latest: Duration,
    smoothed: Option<Duration>,
    variation: Duration,
    least: Least,
}

/// The least of late.
#[derive(Debug, Default)]
pub(super) struct Least {
    /// Since when, the least since then, and of the time before.
    since: Duration,
    now: Option<Duration>,
    before: Option<Duration>,
}

impl Least {
    /// One more, in periods that are so long by now.
    pub(super) fn saw(&mut self, now: Duration, one: Duration, period: Duration) {
        if now >= self.since + period {
            (self.since, self.before) = (now, self.now.take());
        }
        self.now = Some(self.now.map_or(one, |least| least.min(one)));
    }

    /// The least of this period and the one before.
    pub(super) fn get(&self) -> Option<Duration> {
        [self.now, self.before].into_iter().flatten().min()
    }
}

impl RoundTrip {
    fn seen(&mut self, now: Duration, sample: Duration, delay: Duration) {
        self.latest = sample;
        self.least.saw(now, sample, self.period());
        let least = self.least().unwrap_or(sample);
        let adjusted = if sample >= least + delay { sample - delay } else { sample };
        match &mut self.smoothed {
            None => {
                self.smoothed = Some(adjusted);
                self.variation = adjusted / 2;
            }
            Some(smoothed) => {
                let apart = smoothed.abs_diff(adjusted);
                self.variation = (self.variation * 3 + apart) / 4;
                *smoothed = (*smoothed * 7 + adjusted) / 8;
            }
        }
    }

    /// The least of late: the path may have become another.
    pub(super) fn least(&self) -> Option<Duration> {
        self.least.get()
    }

    /// How long a least one counts, once or twice.
    pub(super) fn period(&self) -> Duration {
        ROUND_TRIP_PERIOD.max(self.expected().saturating_mul(ROUND_TRIP_PERIODS))
    }

    /// Whether none of this while was as short as those before: what is under way may be in their
    /// way.
    pub(super) fn is_unsure(&self, now: Duration) -> bool {
        let Least { since, now: least, before } = self.least;
        let is_longer = least.zip(before).is_some_and(|(now, before)| now > before.mul_f64(1.05));
        is_longer && now >= since + self.period() / 2
    }

    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// What a round trip takes, about.
    pub(super) fn expected(&self) -> Duration {
        self.smoothed.unwrap_or(FIRST_ROUND_TRIP)
    }

    /// After this, with what the peer waits before it acknowledges, one is overdue.
    fn patience(&self) -> Duration {
        match self.smoothed {
            None => FIRST_ROUND_TRIP * 2,
            Some(smoothed) => smoothed + (self.variation * 4).max(GRANULARITY) + MAX_DELAY,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Sent {
    next: u64,
    under_way: BTreeMap<u64, Datagram>,
    pub(super) bytes: usize,
    greatest: Option<u64>,
    pub(super) round_trip: RoundTrip,
    /// Of all, and of those that met no queue of ours.
    losses: Losses,
    quiet_losses: Losses,
    /// Waits in vain in a row.
    pub(super) timeouts: u32,
    /// Datagrams that left, and that were lost.
    pub(super) left: u32,
    pub(super) lost_ones: u32,
    /// When the last one left.
    last_at: Duration,
    /// How often nothing more was there to be sent.
    pub(super) pauses: u64,
}

/// Lost ones and all, the older the less they count.
#[derive(Debug)]
pub(super) struct Losses {
    lost: f64,
    seen: f64,
}

impl Default for Losses {
    fn default() -> Self {
        Self { lost: PRIOR_LOSS * PRIOR, seen: PRIOR }
    }
}

impl Losses {
    pub(super) fn share(&self) -> f64 {
        self.lost / self.seen
    }

    pub(super) fn saw(&mut self, is_lost: bool) {
        let kept = 1.0 - 1.0 / MEMORY;
        self.lost = self.lost * kept + f64::from(u8::from(is_lost));
        self.seen = self.seen * kept + 1.0;
    }

    /// One that counted as lost came after all.
    pub(super) fn was_late(&mut self) {
        self.lost = (self.lost - 1.0).max(0.0);
    }
}

/// What an acknowledgement, or the lack of one, says.
#[derive(Debug, Default)]
pub(super) struct Feedback {
    /// Those that arrived for the first time, in order.
    pub(super) arrived: Vec<Datagram>,
    /// The greatest that was acknowledged, if it is the last of these, and what the peer waited.
    pub(super) greatest: Option<(u64, Duration)>,
    pub(super) lost: Vec<Datagram>,
}

impl Sent {
    pub(super) fn new() -> Self {
        Self {
            next: 1,
            under_way: BTreeMap::new(),
            bytes: 0,
            greatest: None,
            round_trip: RoundTrip::default(),
            losses: Losses::default(),
            quiet_losses: Losses::default(),
            timeouts: 0,
            left: 0,
            lost_ones: 0,
            last_at: Duration::ZERO,
            pauses: 0,
        }
    }

    /// The number of the next datagram.
    pub(super) fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// Whether a number was given to a datagram.
    pub(super) fn was_sent(&self, number: u64) -> bool {
        number < self.next
    }

    /// A datagram leaves that is to be acknowledged.
    pub(super) fn leaves(&mut self, datagram: Datagram) {
        self.left = self.left.saturating_add(1);
        self.bytes += datagram.bytes;
        self.last_at = datagram.at;
        self.under_way.insert(datagram.number, datagram);
    }

    /// Share of datagrams that get lost, as is believed.
    pub(super) fn loss(&self) -> f64 {
        self.losses.share()
    }

    /// The same of those that get lost by chance, and not since too many were sent.
    pub(super) fn chance_loss(&self) -> f64 {
        self.quiet_losses.share().min(self.loss())
    }

    fn saw(&mut self, is_quiet: bool, is_lost: bool) {
        self.losses.saw(is_lost);
        if is_quiet {
            self.quiet_losses.saw(is_lost);
        }
    }

    /// The peer has these.
    pub(super) fn acknowledged(&mut self, now: Duration, ack: &Ack) -> Feedback {
        let mut feedback = Feedback::default();
        let Some((_, greatest)) = ack.ranges.first() else { return feedback };
        if self.greatest.is_none_or(|before| *greatest > before) {
            self.greatest = Some(*greatest);
        }
        for (first, last) in ack.ranges.iter().rev() {
            let numbers: Vec<u64> = self.under_way.range(first..=last).map(|(at, _)| *at).collect();
            for number in numbers {
                let Some(datagram) = self.under_way.remove(&number) else { continue };
                self.bytes -= datagram.bytes;
                self.saw(datagram.quiet, false);
                self.timeouts = 0;
                if number == *greatest {
                    feedback.greatest = Some((number, ack.delay));
                    let took = now.saturating_sub(datagram.at);
                    self.round_trip.seen(now, took, ack.delay);
                }
                feedback.arrived.push(datagram);
            }
        }
        feedback.lost = self.find_lost(now);
        feedback
    }

    /// How long after a later one was acknowledged a datagram counts as lost.
    fn late(&self) -> Duration {
        let longest = self.round_trip.expected().max(self.round_trip.latest);
        longest.mul_f64(LATE).max(GRANULARITY)
    }

    /// Those that are lost by now, since later ones arrived.
    pub(super) fn find_lost(&mut self, now: Duration) -> Vec<Datagram> {
        let Some(greatest) = self.greatest else { return Vec::new() };
        let late = self.late();
        let is_lost = |(number, datagram): &(&u64, &Datagram)| {
            **number + REORDERED <= greatest || datagram.at + late <= now
        };
        let lost: Vec<u64> =
            self.under_way.range(..greatest).filter(is_lost).map(|(number, _)| *number).collect();
        let lost = lost.into_iter().filter_map(|number| self.under_way.remove(&number));
        let lost: Vec<Datagram> = lost.collect();
        for datagram in &lost {
            self.bytes -= datagram.bytes;
            self.lost_ones = self.lost_ones.saturating_add(1);
            self.saw(datagram.quiet, true);
        }
        lost
    }

    /// When the next one counts as lost for its age, if some later one arrived.
    fn lost_at(&self) -> Option<Duration> {
        let late = self.late();
        let (_, oldest) = self.under_way.range(..self.greatest?).next()?;
        Some(oldest.at + late)
    }

    /// When no acknowledgement has come though one should have.
    fn overdue_at(&self) -> Option<Duration> {
        let patience = self.round_trip.patience();
        let doubled = patience.saturating_mul(1 << self.timeouts.min(16)).min(MAX_WAIT);
        (!self.under_way.is_empty()).then(|| self.last_at + patience.max(doubled))
    }

    /// When to look again whether something is lost or overdue.
    pub(super) fn wake_at(&self) -> Option<Duration> {
        self.lost_at().or_else(|| self.overdue_at())
    }

    /// Nothing was acknowledged though it should have been: the peer is to be asked.
    pub(super) fn is_overdue(&mut self, now: Duration) -> bool {
        let is = self.lost_at().is_none() && self.overdue_at().is_some_and(|at| at <= now);
        if is {
            self.timeouts = self.timeouts.saturating_add(1);
        }
        is
    }
}
