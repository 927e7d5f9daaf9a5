//! What strangers can make happen as often as they like is told now and then, with how often it
//! was: a log is no place to be filled from outside.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// At least so long from one line to the next.
const PAUSE: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Default)]
pub(crate) struct Rarely(Mutex<RarelyState>);

#[derive(Default)]
struct RarelyState {
    reported: Option<Instant>,
    since: u64,
}

impl Rarely {
    /// Notes that it happened. `Some`: now it is to be told, with how often it was since the last
    /// time.
    pub(crate) fn note(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.since += 1;
        if state.reported.is_some_and(|reported| now < reported + PAUSE) {
            return None;
        }
        state.reported = Some(now);
        Some(std::mem::take(&mut state.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_a_line_now_and_then() {
        let (rarely, start) = (Rarely::default(), Instant::now());
        let reported: Vec<u64> =
            (0..25_000).filter_map(|ms| rarely.note(start + Duration::from_millis(ms))).collect();
        assert_eq!(reported, [1, 10_000, 10_000]);
    }
}
