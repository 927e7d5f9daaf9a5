//! Dates and durations of XML Schema, as far as terminations need them (XML Schema Part 2 §3.2.6,
//! §3.2.7 and appendix E).

use std::time::Duration;

/// Longest text of a date or duration.
const MAX_TEXT_BYTES: usize = 64;
/// Seconds of a day.
const DAY_S: i64 = 86_400;
/// Years that sums may reach.
const MAX_YEARS: i64 = 1_000_000;
/// The last second that is written, the end of the year 9999.
const MAX_UNIX_S: i64 = 253_402_300_799;

/// A time that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// A moment, in milliseconds since 1970.
    At(i64),
    /// So long from now.
    For {
        /// Years and months.
        months: i64,
        /// The rest, in milliseconds.
        ms: i64,
    },
}

impl Until {
    /// Reads `AbsoluteOrRelativeTimeType` (WS-BaseNotification 1.3, `InitialTerminationTime`).
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.len() > MAX_TEXT_BYTES || !text.is_ascii() {
            return None;
        }
        if text.starts_with(['P', '-']) { duration(text) } else { date_time(text).map(Self::At) }
    }

    /// The moment in milliseconds since 1970, if now is `now_ms`.
    #[must_use]
    pub(crate) fn resolve(self, now_ms: i64) -> i64 {
        match self {
            Self::At(at_ms) => at_ms,
            Self::For { months, ms } => add_months(now_ms, months).saturating_add(ms),
        }
    }
}

/// Days since 1970 of a day of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that leap days are their last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of a number of days since 1970.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days(next_year, next, 1) - days(year, month, 1)
}

/// XML Schema Part 2, appendix E: a day that the month does not have is its last.
fn add_months(at_ms: i64, months: i64) -> i64 {
    if months == 0 {
        return at_ms;
    }
    let day_ms = DAY_S * 1000;
    let (year, month, day) = date(at_ms.div_euclid(day_ms));
    let month = year.saturating_mul(12).saturating_add(month - 1).saturating_add(months);
    // Far beyond what is written, and far from what overflows.
    let month = month.clamp(-12 * MAX_YEARS, 12 * MAX_YEARS);
    let (year, month) = (month.div_euclid(12), month.rem_euclid(12) + 1);
    let day = day.min(days_of_month(year, month));
    days(year, month, day) * day_ms + at_ms.rem_euclid(day_ms)
}

/// Takes digits, at least `least`; the value and the rest.
fn digits(text: &str, least: usize) -> Option<(i64, &str)> {
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    if digits.len() < least || digits.len() > 12 {
        return None;
    }
    Some((digits.parse().ok()?, rest))
}

/// Exactly two digits in a range.
fn two(text: &str, from: i64, to: i64) -> Option<(i64, &str)> {
    let (digits, rest) = text.split_at_checked(2)?;
    let (value, empty) = self::digits(digits, 2)?;
    (empty.is_empty() && (from..=to).contains(&value)).then_some((value, rest))
}

/// A fraction of a second in milliseconds, if there is one.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(rest) = text.strip_prefix('.') else { return Some((0, text)) };
    let end = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, rest) = rest.split_at_checked(end)?;
    if digits.is_empty() {
        return None;
    }
    let mut ms = 0;
    for at in 0..3 {
        ms = ms * 10 + digits.as_bytes().get(at).map_or(0, |digit| i64::from(digit - b'0'));
    }
    Some((ms, rest))
}

/// A `dateTime` in milliseconds since 1970; without a zone it is UTC.
fn date_time(text: &str) -> Option<i64> {
    let (year, rest) = digits(text, 4)?;
    if year > 9999 {
        return None;
    }
    let (month, rest) = two(rest.strip_prefix('-')?, 1, 12)?;
    let (day, rest) = two(rest.strip_prefix('-')?, 1, days_of_month(year, month))?;
    let (hour, rest) = two(rest.strip_prefix('T')?, 0, 24)?;
    let (minute, rest) = two(rest.strip_prefix(':')?, 0, 59)?;
    let (second, rest) = two(rest.strip_prefix(':')?, 0, 59)?;
    let (ms, rest) = fraction(rest)?;
    if hour == 24 && (minute, second, ms) != (0, 0, 0) {
        return None;
    }
    let zone_minutes = match rest {
        "" | "Z" => 0,
        _ => {
            let sign = match rest.as_bytes().first() {
                Some(b'+') => 1,
                Some(b'-') => -1,
                _ => return None,
            };
            let (hours, rest) = two(rest.get(1..)?, 0, 14)?;
            let (minutes, rest) = two(rest.strip_prefix(':')?, 0, 59)?;
            if !rest.is_empty() {
                return None;
            }
            sign * (hours * 60 + minutes)
        }
    };
    let seconds = days(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second;
    Some((seconds - zone_minutes * 60) * 1000 + ms)
}

/// A `duration`.
fn duration(text: &str) -> Option<Until> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let text = text.strip_prefix('P')?;
    let (of_date, of_time) = match text.split_once('T') {
        Some((_, "")) => return None,
        Some((date, time)) => (date, time),
        None => (text, ""),
    };
    if of_date.is_empty() && of_time.is_empty() {
        return None;
    }
    let (mut months, mut ms) = (0_i64, 0_i64);
    parts(of_date, &[('Y', 12), ('M', 1), ('D', 0)], |unit, value, _| {
        match unit {
            0 => ms = ms.saturating_add(value.saturating_mul(DAY_S * 1000)),
            unit => months = months.saturating_add(value.saturating_mul(unit)),
        };
    })?;
    parts(of_time, &[('H', 3600), ('M', 60), ('S', 1)], |unit, value, thousandths| {
        ms = ms.saturating_add(value.saturating_mul(unit * 1000)).saturating_add(thousandths);
    })?;
    let sign = if negative { -1 } else { 1 };
    Some(Until::For { months: sign * months, ms: sign * ms })
}

/// Numbers with the given letters behind them, in that order; only `S` has a fraction.
fn parts(mut text: &str, units: &[(char, i64)], mut take: impl FnMut(i64, i64, i64)) -> Option<()> {
    let mut units = units.iter();
    while !text.is_empty() {
        let (value, rest) = digits(text, 1)?;
        let (ms, behind) = fraction(rest)?;
        let letter = behind.chars().next()?;
        let (_, unit) = units.find(|(name, _)| *name == letter)?;
        if letter != 'S' && behind.len() < rest.len() {
            return None;
        }
        take(*unit, value, ms);
        text = behind.get(1..)?;
    }
    Some(())
}

/// A moment as `dateTime` in UTC, with milliseconds where there are any.
#[must_use]
pub(crate) fn format(unix_ms: i64) -> String {
    let seconds = unix_ms.div_euclid(1000).clamp(0, MAX_UNIX_S);
    let ms = unix_ms.rem_euclid(1000);
    let (year, month, day) = date(seconds.div_euclid(DAY_S));
    let of_day = seconds.rem_euclid(DAY_S);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let head = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if ms == 0 { format!("{head}Z") } else { format!("{head}.{ms:03}Z") }
}

/// A duration as milliseconds, as far as they can be counted.
#[must_use]
pub(crate) fn to_ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn examples() {
        let now = date_time("2026-01-31T00:00:00Z").unwrap();
        for (text, at) in [
            ("2026-11-27T23:36:07Z", "2026-11-27T23:36:07Z"),
            ("2026-11-27T23:36:07.25+01:00", "2026-11-27T22:36:07.250Z"),
            ("2026-11-27T23:36:07", "2026-11-27T23:36:07Z"),
            ("2024-02-29T24:00:00Z", "2024-03-01T00:00:00Z"),
            ("PT1M", "2026-01-31T00:01:00Z"),
            ("P1M", "2026-02-28T00:00:00Z"),
            ("P1Y2M3DT4H5M6.5S", "2027-04-03T04:05:06.500Z"),
            ("PT0.25S", "2026-01-31T00:00:00.250Z"),
            ("-PT1S", "2026-01-30T23:59:59Z"),
        ] {
            let until = Until::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(format(until.resolve(now)), at, "{text}");
        }
        for text in [
            "",
            "P",
            "PT",
            "P1",
            "P1S",
            "PT1D",
            "1",
            "2026-13-01T00:00:00Z",
            "P1M1Y",
            "tomorrow",
            "2026-02-29T00:00:00Z",
            "2026-01-01T24:00:01Z",
            "2026-01-01T00:00:00+15:00",
            "PT.5S",
            "P1.5D",
            "PT1.S",
            "2026-01-01",
            "20260-01-01T00:00:00Z",
            "P9999999999999D",
        ] {
            assert_eq!(Until::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_moment_is_read_as_it_was_written(ms in 0..=MAX_UNIX_S * 1000) {
            prop_assert_eq!(Until::parse(&format(ms)), Some(Until::At(ms)));
        }

        #[test]
        fn any_text_is_read_without_overflow(
            text in "[-PYMDTHS0-9.:Z+]{0,30}",
            now in 0..1_i64 << 42,
        ) {
            if let Some(until) = Until::parse(&text) {
                let _ = format(until.resolve(now));
            }
        }
    }
}
