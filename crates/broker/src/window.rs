//! How many bytes may be on their way to a peer that is far away.
//!
//! Sockets, proxies and modems hold far more than a slow link carries in a second, and what they
//! hold cannot be merged, expire or be overtaken any more. So the peer is asked now and then
//! (PINGREQ), and its answer says that all before has arrived. From how long that took follows how
//! much may be on its way.

use std::collections::VecDeque;
use std::time::Duration;

/// What may be on its way at first, at least and at most, in bytes.
const FIRST_BYTES: usize = 1 << 10;
const MIN_BYTES: usize = 512;
const MAX_BYTES: usize = 1 << 20;
/// How much longer than the shortest an answer may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Answers that are waited for, and times that are kept.
const MAX_ASKED: usize = 8;
const MAX_TIMES: usize = 16;

/// See the module.
#[derive(Debug)]
pub(crate) struct Window {
    bytes: usize,
    /// What has left and is not known to have arrived.
    under_way: usize,
    /// Answers that are to come, in order: to questions of its own, and of others.
    asked: VecDeque<Option<Question>>,
    /// How long the last answers took.
    took: VecDeque<Duration>,
}

/// The peer was asked.
#[derive(Debug)]
struct Question {
    /// What is known to have arrived when it answers.
    bytes: usize,
    /// What of that has not left.
    waiting: usize,
    /// When all of it had left.
    left_at: Option<Duration>,
}

impl Default for Window {
    fn default() -> Self {
        let (asked, took) = (VecDeque::new(), VecDeque::new());
        Self { bytes: FIRST_BYTES, under_way: 0, asked, took }
    }
}

impl Window {
    /// Whether more may be written while so many bytes wait.
    pub(crate) fn has_room(&self, waiting: usize) -> bool {
        self.under_way + waiting < self.bytes
    }

    /// Whether the peer is to be asked now, behind so many bytes that wait; it is, then.
    pub(crate) fn ask(&mut self, waiting: usize) -> bool {
        let bytes = self.under_way + waiting;
        let asks =
            self.question().is_none() && self.asked.len() < MAX_ASKED && bytes >= self.bytes / 2;
        if asks {
            self.asked.push_back(Some(Question { bytes, waiting, left_at: None }));
        }
        asks
    }

    /// The peer is asked by somebody else.
    pub(crate) fn pinged(&mut self) {
        // Who answers none of so many is given up soon.
        if self.asked.len() < MAX_ASKED {
            self.asked.push_back(None);
        }
    }

    fn question(&mut self) -> Option<&mut Question> {
        self.asked.iter_mut().flatten().next()
    }

    /// Bytes have left.
    pub(crate) fn left(&mut self, now: Duration, bytes: usize) {
        self.under_way += bytes;
        if let Some(question) = self.question() {
            question.waiting = question.waiting.saturating_sub(bytes);
            if question.waiting == 0 {
                question.left_at.get_or_insert(now);
            }
        }
    }

    /// The peer has answered.
    pub(crate) fn answered(&mut self, now: Duration) {
        if matches!(self.asked.front(), Some(Some(Question { left_at: None, .. }))) {
            // It cannot be the answer to what has not left.
            return;
        }
        let Some(Some(Question { bytes, left_at: Some(left_at), .. })) = self.asked.pop_front()
        else {
            return;
        };
        self.under_way = self.under_way.saturating_sub(bytes);
        let took = now.saturating_sub(left_at);
        self.took.push_back(took);
        if self.took.len() > MAX_TIMES {
            self.took.pop_front();
        }
        let quickest = self.took.iter().min().copied().unwrap_or(took);
        let limit = quickest + PATIENCE;
        if took > limit {
            let share = bytes as u128 * limit.as_micros() / took.as_micros();
            self.bytes = usize::try_from(share).unwrap_or(MAX_BYTES).max(MIN_BYTES);
        } else if took < limit / 2 {
            self.bytes = (self.bytes * 2).min(MAX_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Publications of 100 bytes without end over a link with a queue without bound: how long the
    /// last answer took, and bytes that were carried in the last half.
    fn over(bytes_per_s: f64, round_trip: f64) -> (f64, f64) {
        let mut window = Window::default();
        let (mut now, mut free_at, mut answer_at) = (0.0, 0.0, None::<f64>);
        let (mut took, mut asked_at, mut carried) = (0.0, 0.0, 0.0);
        let time = Duration::from_secs_f64;
        while now < 200.0 {
            while window.has_room(0) {
                window.left(time(now), 100);
                free_at = f64::max(free_at, now) + 100.0 / bytes_per_s;
                if now > 100.0 {
                    carried += 100.0;
                }
                if window.ask(2) {
                    window.left(time(now), 2);
                    (asked_at, answer_at) = (now, Some(free_at + round_trip));
                }
            }
            let Some(at) = answer_at.take() else { panic!("it waits for ever") };
            now = f64::max(now, at);
            took = now - asked_at;
            window.answered(time(now));
        }
        (took, carried / (100.0 * bytes_per_s))
    }

    #[test]
    fn a_slow_link_holds_about_a_second_and_is_filled() {
        for (rate, round_trip) in [(1200.0, 0.2), (300.0, 1.0), (60_000.0, 0.6), (125_000.0, 0.01)]
        {
            let (took, share) = over(rate, round_trip);
            assert!(took < 2.0 + 2.0 * round_trip, "{rate}: {took} s");
            assert!(share > 0.7, "{rate}: {share} of what it carries");
        }
    }

    #[test]
    fn an_answer_to_nothing_changes_nothing() {
        let mut window = Window::default();
        window.answered(Duration::from_secs(1));
        window.left(Duration::from_secs(1), FIRST_BYTES);
        assert!(!window.has_room(0));
        assert!(window.ask(2) && !window.ask(2), "one question at a time");
        // All of it had left before it was asked for, and it arrived.
        window.left(Duration::from_secs(1), 2);
        window.answered(Duration::from_secs(2));
        assert!(window.has_room(0));
    }

    #[test]
    fn the_answer_to_another_question_is_not_taken_for_its_own() {
        let mut window = Window::default();
        let at = Duration::from_secs;
        window.pinged();
        window.left(at(1), FIRST_BYTES);
        assert!(window.ask(2));
        window.left(at(1), 2);
        window.answered(at(2));
        assert!(!window.has_room(0), "that was the other's");
        window.answered(at(4));
        assert!(window.has_room(0));
    }
}
