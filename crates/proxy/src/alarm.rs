//! A state that lasts, such as a gateway that is away: told when it begins or gets another cause,
//! then ever more rarely, and when it is over. What tries again all the time would fill the log.

use std::time::{Duration, Instant};

/// From the first line to the next about the same; each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
/// The longest: whoever looks at a day of the log finds it.
const MAX_PAUSE: Duration = Duration::from_secs(3600);
/// Another cause is told after so long: two may take turns.
const OTHER_PAUSE: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Default)]
pub(crate) struct Alarm(Option<Raised>);

struct Raised {
    since: Instant,
    reported: Instant,
    pause: Duration,
    times: u64,
    why: String,
}

/// How often it was, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lasting {
    pub(crate) times: u64,
    pub(crate) since: Duration,
}

impl Alarm {
    /// It is so, or still: `Some` where that is to be told.
    pub(crate) fn raise(&mut self, now: Instant, why: &str) -> Option<Lasting> {
        let Some(raised) = &mut self.0 else {
            let (since, reported) = (now, now);
            let why = why.to_owned();
            self.0 = Some(Raised { since, reported, pause: FIRST_PAUSE, times: 1, why });
            return Some(Lasting { times: 1, since: Duration::ZERO });
        };
        raised.times += 1;
        let quiet = now.saturating_duration_since(raised.reported);
        let is_due = quiet >= raised.pause;
        if !is_due && (raised.why == why || quiet < OTHER_PAUSE) {
            return None;
        }
        if is_due {
            raised.pause = (raised.pause * 2).min(MAX_PAUSE);
        }
        (raised.reported, raised.why) = (now, why.to_owned());
        let since = now.saturating_duration_since(raised.since);
        Some(Lasting { times: raised.times, since })
    }

    /// It is over; `Some` where it was so.
    pub(crate) fn clear(&mut self, now: Instant) -> Option<Lasting> {
        let Raised { since, times, .. } = self.0.take()?;
        Some(Lasting { times, since: now.saturating_duration_since(since) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_reported_at_its_beginning_its_changes_and_its_end() {
        let (mut alarm, start) = (Alarm::default(), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let reported: Vec<u64> =
            (0..3600).step_by(4).filter(|s| alarm.raise(at(*s), "away").is_some()).collect();
        assert_eq!(reported, [0, 60, 180, 420, 900, 1860]);
        assert!(alarm.raise(at(3600), "refused").is_some());
        assert_eq!(alarm.raise(at(3604), "away"), None);
        let over = alarm.clear(at(3605)).unwrap();
        assert_eq!(over, Lasting { times: 902, since: Duration::from_secs(3605) });
        assert_eq!(alarm.clear(at(3606)), None);
    }
}
