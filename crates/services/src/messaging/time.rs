//! Times as text (RFC 3339), in Coordinated Universal Time, to the millisecond.

use std::time::Duration;

/// Days of an era of 400 years of the Gregorian calendar.
const ERA_DAYS: u64 = 146_097;
/// Days from 1 March of the year 0 to 1 January 1970.
const EPOCH_DAYS: u64 = 719_468;
/// Seconds of a day; Unix time has no leap seconds.
const DAY_S: u64 = 86_400;
/// The first moment that has more than four digits of a year, in seconds since 1970.
pub(crate) const MAX_TIME_S: u64 = 253_402_300_800;

/// A time since 1970 as text, such as `2026-03-14T06:00:00.250Z`; without the fraction where it is
/// zero. Beyond the year 9999 it is the last moment of that year.
pub(crate) fn format(time: Duration) -> String {
    let seconds = time.as_secs().min(MAX_TIME_S - 1);
    let (year, month, day) = date(seconds / DAY_S);
    let of_day = seconds % DAY_S;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let fraction = match time.subsec_millis() {
        0 => String::new(),
        ms => format!(".{ms:03}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Reads a time of the form of RFC 3339 §5.6, with any zone; what is finer than a millisecond is
/// cut off. `None` where it is of another form, no time, or before 1970.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<u64> {
        let digits = text.get(from..to)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let is_at = |at: usize, any: &[u8]| bytes.get(at).is_some_and(|byte| any.contains(byte));
    let marks = is_at(4, b"-") && is_at(7, b"-") && is_at(10, b"Tt");
    if !marks || !is_at(13, b":") || !is_at(16, b":") {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1..=12).contains(&month) || day == 0 || day > days_of(year, month) {
        return None;
    }
    // A leap second counts as the one before (RFC 3339 §5.7).
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (ms, zone) = fraction(text.get(19..)?)?;
    let days = days(year, month, day).checked_sub(EPOCH_DAYS)?;
    let seconds = days * DAY_S + hour * 3600 + minute * 60 + second.min(59);
    let seconds = i64::try_from(seconds).ok()?.checked_sub(offset_s(zone)?)?;
    let seconds = u64::try_from(seconds).ok().filter(|&seconds| seconds < MAX_TIME_S)?;
    Some(Duration::from_secs(seconds) + Duration::from_millis(ms))
}

/// Milliseconds of a fraction, and the zone that follows it.
fn fraction(text: &str) -> Option<(u64, &str)> {
    let Some(rest) = text.strip_prefix('.') else { return Some((0, text)) };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, zone) = rest.split_at(end);
    if digits.is_empty() || digits.len() > 9 {
        return None;
    }
    let ms: String = digits.chars().chain("000".chars()).take(3).collect();
    Some((ms.parse().ok()?, zone))
}

/// Seconds that a zone is ahead of UTC.
fn offset_s(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let is_pair = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_pair(hours) || !is_pair(minutes) {
        return None;
    }
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Days of a month.
fn days_of(year: u64, month: u64) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1 March of the year 0, where years begin in March so that the leap day is last.
fn days(year: u64, month: u64, day: u64) -> u64 {
    // January and February belong to the year before.
    let year = if month > 2 { year } else { year.saturating_sub(1) };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year
}

/// The date of a day since 1970: the inverse of [`days`].
fn date(day: u64) -> (u64, u64, u64) {
    let day = day + EPOCH_DAYS;
    let (era, of_era) = (day / ERA_DAYS, day % ERA_DAYS);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times_are_read_and_written() {
        for (text, ms) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59.999Z", 951_868_799_999),
            ("2026-03-14T06:00:00Z", 1_773_468_000_000),
            ("2100-03-01T00:00:00Z", 4_107_542_400_000),
            ("9999-12-31T23:59:59Z", 253_402_300_799_000),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(ms)), "{text}");
            assert_eq!(format(Duration::from_millis(ms)), text);
        }
        assert_eq!(parse("1970-01-01t02:00:00.5+02:00"), Some(Duration::from_millis(500)));
        assert_eq!(parse("1969-12-31T22:00:00-02:00"), None, "days before 1970 are not read");
        assert_eq!(parse("1970-01-01T00:00:00.1239999z"), Some(Duration::from_millis(123)));
    }

    #[test]
    fn each_day_of_five_centuries_comes_back() {
        for day in 0..180_000 {
            let time = Duration::from_secs(day * DAY_S + 3723);
            assert_eq!(parse(&format(time)), Some(time));
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2026-03-14",
            "2026-03-14T06:00:00",
            "2026-02-29T06:00:00Z",
            "2026-13-01T06:00:00Z",
            "2026-03-00T06:00:00Z",
            "2026-03-14T24:00:00Z",
            "2026-03-14T06:60:00Z",
            "2026-03-14T06:00:61Z",
            "2026-03-14T06:00:00.Z",
            "2026-03-14T06:00:00+2:00",
            "2026-03-14T06:00:00Zx",
            "20é6-03-14T06:00:00Z",
            "+026-03-14T06:00:00Z",
            "1970-01-01T00:00:00+00:01",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
