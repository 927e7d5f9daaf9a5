//! Scheduler of a carrier: which exchange's part is sent next.
//!
//! The more urgent one goes first (RFC 9218 §10). Among those of the same urgency, messages that
//! have sent little get every other slot, so that a short message passes the long ones and yet
//! cannot starve them. Within each of the two groups the scheduler is round-robin, by number. Those
//! whose answer is of use until a deadline go before all of their urgency that have none, the
//! earliest deadline first.

use std::collections::BTreeSet;
use std::time::Duration;

use proto::urgency::Urgency;

/// A message that has sent no more than this counts as short, in bytes.
pub(crate) const SHORT_BYTES: u64 = 8 * 1024;

/// See the module; holds each exchange of the carrier at most once.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// By urgency.
    levels: [Level; Urgency::COUNT],
}

/// Exchanges of one urgency.
#[derive(Debug, Default)]
struct Level {
    by_deadline: BTreeSet<(Duration, u64)>,
    short: Ring,
    long: Ring,
    short_went: bool,
}

#[derive(Debug, Default)]
struct Ring {
    waiting: BTreeSet<u64>,
    last: u64,
}

impl Ring {
    fn next(&mut self) -> Option<u64> {
        let after = self.last.checked_add(1).and_then(|from| self.waiting.range(from..).next());
        let number = after.or_else(|| self.waiting.first()).copied()?;
        self.waiting.remove(&number);
        self.last = number;
        Some(number)
    }
}

impl Level {
    fn next(&mut self) -> Option<u64> {
        if let Some((_, number)) = self.by_deadline.pop_first() {
            return Some(number);
        }
        let long_first = self.short_went && !self.long.waiting.is_empty();
        self.short_went = !long_first && !self.short.waiting.is_empty();
        let ring = if self.short_went { &mut self.short } else { &mut self.long };
        ring.next()
    }

    fn is_empty(&self) -> bool {
        self.by_deadline.is_empty() && self.short.waiting.is_empty() && self.long.waiting.is_empty()
    }
}

impl Schedule {
    /// An exchange has something to send, of which it sent `sent_bytes` so far, and which is of use
    /// until `deadline`.
    pub(crate) fn offer(
        &mut self,
        number: u64,
        urgency: Urgency,
        sent_bytes: u64,
        deadline: Option<Duration>,
    ) {
        self.remove(number);
        let Some(level) = self.levels.get_mut(usize::from(urgency.get())) else { return };
        if let Some(deadline) = deadline {
            level.by_deadline.insert((deadline, number));
            return;
        }
        let ring = if sent_bytes <= SHORT_BYTES { &mut level.short } else { &mut level.long };
        ring.waiting.insert(number);
    }

    /// The exchange has nothing to send any more.
    pub(crate) fn remove(&mut self, number: u64) {
        for level in &mut self.levels {
            level.by_deadline.retain(|(_, one)| *one != number);
            level.short.waiting.remove(&number);
            level.long.waiting.remove(&number);
        }
    }

    /// How urgent the exchange is that sends next; none where nobody waits.
    pub(crate) fn urgency(&self) -> Option<Urgency> {
        let first = self.levels.iter().position(|level| !level.is_empty())?;
        Urgency::new(first as u64)
    }

    /// Takes the number of the exchange that sends next; none where nobody waits.
    pub(crate) fn next(&mut self) -> Option<u64> {
        self.levels.iter_mut().find_map(Level::next)
    }

    /// Whether no exchange has anything to send.
    pub(crate) fn is_empty(&self) -> bool {
        self.levels.iter().all(Level::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_messages_get_every_other_slot_and_starve_no_other() {
        let mut schedule = Schedule::default();
        (1..=3).for_each(|number| schedule.offer(number, Urgency::DEFAULT, SHORT_BYTES + 1, None));
        (7..=9).for_each(|number| schedule.offer(number, Urgency::DEFAULT, 0, None));
        schedule.offer(8, Urgency::DEFAULT, 10, None);
        let order: Vec<_> = std::iter::from_fn(|| schedule.next()).collect();
        assert_eq!(order, [7, 1, 8, 2, 9, 3]);
        assert!(schedule.is_empty());
    }

    #[test]
    fn each_exchange_gets_its_slot() {
        let mut schedule = Schedule::default();
        let order: Vec<_> = (0..7)
            .filter_map(|_| {
                (1..=3).for_each(|number| schedule.offer(number, Urgency::DEFAULT, 0, None));
                schedule.next()
            })
            .collect();
        assert_eq!(order, [1, 2, 3, 1, 2, 3, 1]);
        schedule.remove(2);
        assert_eq!((schedule.next(), schedule.next()), (Some(3), None));
    }

    #[test]
    fn what_is_more_urgent_goes_before_all_that_is_less() {
        let mut schedule = Schedule::default();
        let urgency = |value| Urgency::new(value).unwrap();
        for (number, value) in [(1, 7), (2, 3), (3, 0), (4, 3), (5, 0)] {
            schedule.offer(number, urgency(value), 0, None);
        }
        // It became more urgent.
        schedule.offer(1, urgency(2), 0, None);
        let order: Vec<_> = std::iter::from_fn(|| schedule.next()).collect();
        assert_eq!(order, [3, 5, 1, 2, 4]);
        assert!(schedule.is_empty());
    }

    #[test]
    fn of_one_urgency_the_earliest_deadline_goes_first() {
        let mut schedule = Schedule::default();
        let at = |seconds| Some(Duration::from_secs(seconds));
        schedule.offer(1, Urgency::DEFAULT, 0, None);
        schedule.offer(2, Urgency::DEFAULT, 0, at(9));
        schedule.offer(3, Urgency::DEFAULT, 1 << 20, at(3));
        schedule.offer(4, Urgency::FIRST, 0, None);
        schedule.offer(5, Urgency::DEFAULT, 0, at(1));
        schedule.offer(5, Urgency::DEFAULT, 0, at(12));
        let order: Vec<_> = std::iter::from_fn(|| schedule.next()).collect();
        assert_eq!(order, [4, 3, 2, 5, 1]);
    }
}
