//! Figures as people read them.

use record::demo::Time;

/// Seconds with about three digits, without the unit.
pub(super) fn seconds(seconds: f64) -> String {
    let decimals = match seconds {
        s if s < 0.9995 => 3,
        s if s < 9.995 => 2,
        s if s < 99.95 => 1,
        _ => 0,
    };
    format!("{seconds:.decimals$}")
}

/// A time without the unit: `2.83`, `> 41.0` for one that was cut off, `unknown` for one that never
/// began, `failed`.
pub(super) fn time(time: Time) -> String {
    match time {
        Time::Seconds(exact) => seconds(exact),
        Time::MoreThan(0.0) => "unknown".to_string(),
        Time::MoreThan(least) => format!("> {}", seconds(least)),
        Time::Never => "failed".to_string(),
    }
}

/// Bytes in thousands with one decimal: `41.2 KB`.
pub(super) fn kilobytes(bytes: f64) -> String {
    format!("{:.1} KB", bytes / 1000.0)
}

/// A factor with two or three digits.
pub(super) fn factor(factor: f64) -> String {
    let decimals = match factor {
        f if f < 0.995 => 2,
        f if f < 99.5 => 1,
        _ => 0,
    };
    format!("{factor:.decimals$}")
}

/// A share of 0 to 1 in per cent.
pub(super) fn per_cent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A moment in UTC: `2026-11-21 03:04:05`.
pub(super) fn utc(unix_s: u64) -> String {
    let second = unix_s % SECONDS_OF_DAY;
    let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
    format!("{} {hours:02}:{minutes:02}:{seconds:02}", day(unix_s))
}

/// A day in UTC: `2026-11-21`.
pub(crate) fn day(unix_s: u64) -> String {
    let (year, month, day) = date(unix_s / SECONDS_OF_DAY);
    format!("{year:04}-{month:02}-{day:02}")
}

const SECONDS_OF_DAY: u64 = 86_400;

/// Year, month and day of the Gregorian calendar, `days` after 1970-01-01. Years are counted from
/// March, so that a leap day is the last of its year.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    const DAYS_FROM_YEAR_0: u64 = 719_468;
    let days = days + DAYS_FROM_YEAR_0;
    let (era, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / (DAYS_OF_400_YEARS - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (400 * era + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_about_three_digits() {
        let shown = [0.0123, 0.0996, 1.234, 9.996, 41.04, 123.4].map(seconds);
        assert_eq!(shown, ["0.012", "0.100", "1.23", "10.0", "41.0", "123"]);
        assert_eq!([0.5, 0.996, 2.04, 123.4].map(factor), ["0.50", "1.0", "2.0", "123"]);
        let times = [Time::MoreThan(41.04), Time::MoreThan(0.0), Time::Never, Time::Seconds(2.0)];
        assert_eq!(times.map(time), ["> 41.0", "unknown", "failed", "2.00"]);
        assert_eq!(kilobytes(41_249.0), "41.2 KB");
    }

    #[test]
    fn moments_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(951_782_399), "2000-02-28 23:59:59");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(utc(4_107_542_400), "2100-03-01 00:00:00");
        assert_eq!(utc(1_795_219_200), "2026-11-21 00:00:00");
    }
}
