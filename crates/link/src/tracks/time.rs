//! Instants as RFC 3339 writes them.

use std::time::Duration;

/// Reads `2026-11-28T07:00:00.5Z` as the time since 1970; none for another form, a date that the
/// calendar does not have, or one before 1970.
pub(super) fn parse_instant(text: &str) -> Option<Duration> {
    let (date, clock) = text.trim().split_once(['T', 't', ' '])?;
    let mut parts = date.splitn(3, '-');
    let mut next = |digits: usize| number(parts.next()?, digits);
    let (year, month, day) = (next(4)?, next(2)?, next(2)?);
    let zone = clock.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = clock.split_at(zone);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = clock.splitn(3, ':');
    let mut next = || number(parts.next()?, 2);
    let (hour, minute, second) = (next()?, next()?, next()?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of_month = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    // A second of 60 is a leap second.
    if !(1..=days_of_month).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second
        - zone_s(zone)?;
    let whole = Duration::from_secs(u64::try_from(seconds).ok()?);
    Some(whole + Duration::from_nanos(nanos(fraction)?))
}

fn number(text: &str, digits: usize) -> Option<i64> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// Digits after the point, those beyond a nanosecond cut.
fn nanos(fraction: &str) -> Option<u64> {
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nine: String = fraction.chars().chain(std::iter::repeat('0')).take(9).collect();
    nine.parse().ok()
}

/// Seconds that a zone is ahead.
fn zone_s(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("Z") {
        return Some(0);
    }
    let (sign, rest) = zone.split_at_checked(1)?;
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes) = (number(hours, 2)?, number(minutes, 2)?);
    let ahead = hours * 3_600 + minutes * 60;
    (hours < 24 && minutes < 60).then_some(if sign == "-" { -ahead } else { ahead })
}

/// Days of the Gregorian calendar, counted in years that begin with March, so that the leap day
/// is a year's last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let march_year = if month <= 2 { year - 1 } else { year };
    let march_month = (month + 9) % 12;
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    let leap_days = march_year / 4 - march_year / 100 + march_year / 400;
    march_year * 365 + leap_days + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_those_of_the_calendar() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:00:00Z", 951_825_600),
            ("2026-11-28T07:00:00+01:00", 1_795_845_600),
            ("2026-11-28T01:00:00-05:00", 1_795_845_600),
            ("2100-03-01 00:00:00z", 4_107_542_400),
        ] {
            assert_eq!(parse_instant(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        let tenths = Duration::from_millis(1_500);
        assert_eq!(parse_instant("1970-01-01T00:00:01.5Z"), Some(tenths));
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "",
            "2026-11-28",
            "2026-13-01T00:00:00Z",
            "2025-02-29T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "2026-11-28T24:00:00Z",
            "2026-11-28T07:00:00",
            "2026-11-28T07:00Z",
            "1969-12-31T23:59:59Z",
            "2026-11-28T07:00:00.1x Z",
            "2026-11-28T07:00:00+25:00",
            "+026-11-28T07:00:00Z",
        ] {
            assert_eq!(parse_instant(text), None, "{text}");
        }
    }
}
