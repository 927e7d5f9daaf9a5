//! When the link is out.

use crate::Error;
use crate::units::{format_duration, parse_duration};
use std::fmt;
use std::time::Duration;

/// Most single windows of one direction.
pub const MAX_OUTAGE_WINDOWS: usize = 1_000;

/// Most repeating outages of one direction.
pub const MAX_OUTAGE_CYCLES: usize = 16;

/// What is understood.
pub(crate) const EXPECTED: &str =
    "outages since the link's start (like '10 s..15 s, every 60 s for 5 s') or none";

/// Times at which nothing gets through: `10 s..15 s, 60 s..61 s, every 5 min for 20 s`.
///
/// Windows count from the caller's epoch and do not include their end. A repeating outage begins
/// at each multiple of its period, the first time after one whole period. The sender does not
/// notice: a packet that is being sent at any moment of an outage is lost and has used its
/// airtime. What had left before still arrives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outages {
    /// In order of time, apart from each other.
    windows: Vec<(Duration, Duration)>,
    /// Period and length.
    cycles: Vec<(Duration, Duration)>,
}

impl Outages {
    /// None.
    pub const NONE: Self = Self { windows: Vec::new(), cycles: Vec::new() };

    /// Reads the text that [`Outages`] shows; `none` for none. Windows that overlap become one.
    ///
    /// # Errors
    /// [`Error::Value`] for a text of another form, a window that does not end after it begins, a
    /// repeating outage not shorter than its period, more than [`MAX_OUTAGE_WINDOWS`] windows or
    /// [`MAX_OUTAGE_CYCLES`] repeating outages.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut outages = Self::NONE;
        if text.trim() == "none" {
            return Ok(outages);
        }
        for part in text.split(',').map(str::trim) {
            outages.add(part).map_err(|expected| Error::Value {
                value: part.to_owned(),
                expected: format!("{EXPECTED}: {expected}"),
            })?;
        }
        outages.merge();
        Ok(outages)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.windows.is_empty() && self.cycles.is_empty()
    }

    /// Whether an outage meets the time from `start` up to `finish` (the instant itself, when they
    /// are the same).
    #[must_use]
    pub fn meet(&self, start: Duration, finish: Duration) -> bool {
        let last = finish.saturating_sub(Duration::from_nanos(1)).max(start);
        let begun = self.windows.partition_point(|(from, _)| *from <= last);
        let in_window = begun > 0 && start < self.windows[begun - 1].1;
        in_window
            || self.cycles.iter().any(|(period, length)| cycle_meets(*period, *length, start, last))
    }

    fn add(&mut self, part: &str) -> Result<(), String> {
        let duration = |text: &str| parse_duration(text).map_err(|error| error.to_string());
        if let Some(cycle) = part.strip_prefix("every ") {
            let (period, length) =
                cycle.split_once(" for ").ok_or("a repeating outage is 'every 60 s for 5 s'")?;
            let (period, length) = (duration(period)?, duration(length)?);
            if length.is_zero() || length >= period {
                return Err("it must last longer than 0 and less than its period".to_owned());
            }
            if self.cycles.len() == MAX_OUTAGE_CYCLES {
                return Err(format!("at most {MAX_OUTAGE_CYCLES} repeat"));
            }
            self.cycles.push((period, length));
        } else {
            let (from, until) = part.split_once("..").ok_or("a window is '10 s..15 s'")?;
            let (from, until) = (duration(from)?, duration(until)?);
            if from >= until {
                return Err("a window must end after it begins".to_owned());
            }
            if self.windows.len() == MAX_OUTAGE_WINDOWS {
                return Err(format!("at most {MAX_OUTAGE_WINDOWS} windows"));
            }
            self.windows.push((from, until));
        }
        Ok(())
    }

    fn merge(&mut self) {
        self.windows.sort_unstable();
        self.windows.dedup_by(|next, kept| {
            let touches = next.0 <= kept.1;
            if touches {
                kept.1 = kept.1.max(next.1);
            }
            touches
        });
    }
}

/// `last` is the last instant of interest, not before `start`.
fn cycle_meets(period: Duration, length: Duration, start: Duration, last: Duration) -> bool {
    let period_ns = period.as_nanos().max(1);
    let turn = last.as_nanos() / period_ns;
    turn > 0 && start.as_nanos() < turn * period_ns + length.as_nanos()
}

impl fmt::Display for Outages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return f.write_str("none");
        }
        let mut separator = "";
        for (from, until) in &self.windows {
            write!(f, "{separator}{}..{}", format_duration(*from), format_duration(*until))?;
            separator = ", ";
        }
        for (period, length) in &self.cycles {
            let (period, length) = (format_duration(*period), format_duration(*length));
            write!(f, "{separator}every {period} for {length}")?;
            separator = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    fn outages(text: &str) -> Outages {
        Outages::parse(text).unwrap()
    }

    #[test]
    fn windows_are_sorted_and_merged() {
        let some = outages("60 s..61 s,  10 s..15 s, 14 s..16 s , every 60 s for 5 s");
        assert_eq!(some.to_string(), "10 s..16 s, 60 s..61 s, every 60 s for 5 s");
        assert_eq!(outages(&some.to_string()), some);
        assert_eq!(outages("none").to_string(), "none");
        assert!(outages("none").is_none() && !some.is_none());
    }

    #[test]
    fn a_window_meets_what_is_sent_in_it() {
        let some = outages("10 ms..20 ms, 30 ms..40 ms");
        let cases = [
            (0, 10, false),
            (0, 11, true),
            (0, 50, true),
            (10, 10, true),
            (19, 19, true),
            (20, 20, false),
            (20, 30, false),
            (21, 29, false),
            (39, 60, true),
            (40, 60, false),
        ];
        for (start, finish, expected) in cases {
            assert_eq!(some.meet(ms(start), ms(finish)), expected, "{start}..{finish}");
        }
    }

    #[test]
    fn a_cycle_begins_after_its_first_period() {
        let some = outages("every 60 s for 5 s");
        let cases = [
            (0, 1, false),
            (0, 60, false),
            (0, 61, true),
            (60, 60, true),
            (64, 64, true),
            (65, 65, false),
            (65, 120, false),
            (65, 121, true),
            (66, 700, true),
            (3604, 3605, true),
            (3605, 3606, false),
        ];
        for (start, finish, expected) in cases {
            let (start, finish) = (Duration::from_secs(start), Duration::from_secs(finish));
            assert_eq!(some.meet(start, finish), expected, "{start:?}..{finish:?}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "10 s",
            "10 s..",
            "15 s..10 s",
            "10 s..10 s",
            "1 s..2 s,",
            "every 60 s",
            "every 5 s for 5 s",
            "every 5 s for 0 s",
            "every 0 s for 0 s",
            "10..20",
        ] {
            let message = Outages::parse(text).unwrap_err().to_string();
            assert!(message.contains("10 s..15 s"), "{text:?}: {message}");
        }
    }

    #[test]
    fn the_number_of_outages_is_bounded() {
        let windows: Vec<String> =
            (0..=MAX_OUTAGE_WINDOWS).map(|i| format!("{} s..{} s", 2 * i, 2 * i + 1)).collect();
        assert!(Outages::parse(&windows[1..].join(",")).is_ok());
        assert!(Outages::parse(&windows.join(",")).unwrap_err().to_string().contains("1000"));
        let cycles = vec!["every 9 s for 1 s"; MAX_OUTAGE_CYCLES + 1];
        assert!(Outages::parse(&cycles.join(",")).unwrap_err().to_string().contains("16"));
    }
}
