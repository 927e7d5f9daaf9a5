//! Which block of a body leaves next, and when (RFC 9177 §7.2).

use std::collections::BTreeSet;
use std::time::Duration;

use super::{MAX_NON_RETRANSMIT, MAX_PAYLOADS, set_of};

/// A body of which blocks leave, without the body.
#[derive(Debug)]
pub(super) struct Outgoing {
    total: u32,
    /// The first that has not left yet.
    next: u32,
    /// Those below this may leave for the first time.
    open: u32,
    /// Those that are to leave again; some of those that have left.
    again: BTreeSet<u32>,
    /// How many may leave again before the next pause.
    repeats_left: u32,
    /// How many have left again.
    repeated: u32,
    /// Between sets, and until when the present one is.
    pause: Duration,
    resumes_at: Option<Duration>,
}

impl Outgoing {
    /// A body of so many blocks, with so long between its sets.
    pub(super) fn new(total: u32, pause: Duration) -> Self {
        Self {
            total,
            next: 0,
            open: MAX_PAYLOADS,
            again: BTreeSet::new(),
            repeats_left: MAX_PAYLOADS,
            repeated: 0,
            pause,
            resumes_at: None,
        }
    }

    /// One whose first set leaves no sooner than this.
    pub(super) fn not_before(mut self, at: Duration) -> Self {
        (self.open, self.resumes_at) = (0, Some(at));
        self
    }

    /// The next block that leaves now: those that were asked for first, each in order.
    pub(super) fn take(&mut self) -> Option<u32> {
        if let Some(num) = self.again.first().copied().filter(|_| self.repeats_left > 0) {
            self.again.remove(&num);
            (self.repeats_left, self.repeated) = (self.repeats_left - 1, self.repeated + 1);
            return Some(num);
        }
        let num = self.next;
        let may_leave = num < self.open.min(self.total);
        may_leave.then(|| {
            self.next += 1;
            num
        })
    }

    /// Blocks have left by `left_at`: then there is a pause, unless there is nothing more.
    pub(super) fn rest(&mut self, left_at: Duration) {
        let has_more = self.next < self.total || !self.again.is_empty();
        self.resumes_at = has_more.then(|| left_at + self.pause);
    }

    /// When there is something to do.
    pub(super) fn resumes_at(&self) -> Option<Duration> {
        self.resumes_at
    }

    /// The pause is over, or the peer says that it has all of the set.
    pub(super) fn resume(&mut self) {
        self.resumes_at = None;
        self.repeats_left = MAX_PAYLOADS;
        if self.next >= self.open {
            self.open = (set_of(self.next) + 1) * MAX_PAYLOADS;
        }
    }

    /// The peer has all below `through`; whether the next set may leave because of that.
    pub(super) fn confirm(&mut self, through: u32) -> bool {
        self.again.retain(|num| *num >= through);
        let is_due = through == self.next && self.next < self.total;
        if is_due {
            self.resume();
        }
        is_due
    }

    /// The peer misses these. Those that have not left yet, or that there are not, do not count.
    pub(super) fn ask(&mut self, numbers: &[u32]) {
        self.again.extend(numbers.iter().filter(|num| **num < self.next));
    }

    /// How many have left for the first time.
    pub(super) fn sent(&self) -> u32 {
        self.next
    }

    pub(super) fn is_sent(&self) -> bool {
        self.next >= self.total && self.again.is_empty()
    }

    /// Whether the peer has had more repeated than one that follows the rules would.
    pub(super) fn is_exhausted(&self) -> bool {
        self.repeated >= self.total.saturating_mul(MAX_NON_RETRANSMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_millis(2500);

    fn all(outgoing: &mut Outgoing) -> Vec<u32> {
        std::iter::from_fn(|| outgoing.take()).collect()
    }

    #[test]
    fn sets_leave_one_by_one() {
        let mut outgoing = Outgoing::new(23, PAUSE);
        assert_eq!(all(&mut outgoing), (0..10).collect::<Vec<_>>());
        outgoing.rest(PAUSE);
        assert_eq!((outgoing.resumes_at(), outgoing.sent()), (Some(PAUSE * 2), 10));
        assert!(!outgoing.confirm(9));
        assert_eq!(all(&mut outgoing), []);
        assert!(outgoing.confirm(10));
        assert_eq!(all(&mut outgoing), (10..20).collect::<Vec<_>>());
        assert!(!outgoing.confirm(10), "what was said before says nothing new");
        outgoing.resume();
        assert_eq!(all(&mut outgoing), [20, 21, 22]);
        outgoing.rest(PAUSE);
        assert_eq!((outgoing.resumes_at(), outgoing.is_sent()), (None, true));
        assert!(!outgoing.confirm(23));
    }

    /// RFC 9177 figures 5 and 6: the missing ones first, then the rest of the set.
    #[test]
    fn what_is_missing_leaves_first() {
        let mut outgoing = Outgoing::new(13, PAUSE);
        assert_eq!(all(&mut outgoing).len(), 10);
        outgoing.resume();
        assert_eq!((outgoing.take(), outgoing.take()), (Some(10), Some(11)));
        outgoing.ask(&[1, 9, 12, 50]);
        assert_eq!(all(&mut outgoing), [1, 9, 12]);
    }

    #[test]
    fn a_storm_of_questions_gets_a_set_a_pause_and_an_end() {
        let mut outgoing = Outgoing::new(12, PAUSE);
        let mut sent = all(&mut outgoing).len();
        outgoing.resume();
        sent += all(&mut outgoing).len();
        assert_eq!(sent, 12);
        let everything: Vec<u32> = (0..12).collect();
        let mut pauses = 0;
        while !outgoing.is_exhausted() {
            for _ in 0..100 {
                outgoing.ask(&everything);
                sent += all(&mut outgoing).len();
            }
            outgoing.rest(Duration::ZERO);
            assert!(outgoing.resumes_at().is_some());
            outgoing.resume();
            pauses += 1;
        }
        assert!(sent <= 12 * 5 + 10 && pauses >= 4, "{sent} in {pauses}");
    }
}
