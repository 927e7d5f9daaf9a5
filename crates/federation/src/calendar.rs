//! Times of TOML (RFC 3339) as seconds since 1970, and back.

use toml::value::{Datetime, Offset};

const DAY_S: i64 = 86_400;
/// The years that a profile may name.
const YEARS: std::ops::RangeInclusive<u16> = 2000..=2199;

/// Seconds since 1970; `None` where it names no moment: it needs a date, a time and an offset.
pub(crate) fn seconds(time: &Datetime) -> Option<u64> {
    let (date, clock) = (time.date?, time.time?);
    let offset_s = match time.offset? {
        Offset::Z => 0,
        Offset::Custom { minutes } => i64::from(minutes) * 60,
    };
    if !YEARS.contains(&date.year) {
        return None;
    }
    let days = days(i64::from(date.year), i64::from(date.month), i64::from(date.day));
    let within = i64::from(clock.hour) * 3600
        + i64::from(clock.minute) * 60
        + i64::from(clock.second.unwrap_or(0));
    u64::try_from(days * DAY_S + within - offset_s).ok()
}

/// As RFC 3339 has it, in UTC and whole seconds.
pub(crate) fn text(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    let (days_since, within) = (seconds.div_euclid(DAY_S), seconds.rem_euclid(DAY_S));
    // The day of the year in years that begin in March, so that a leap day is the last.
    let shifted = days_since + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute, second) = (within / 3600, within / 60 % 60, within % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Days since 1970 of a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let march_month = (month + 9) % 12;
    let of_year = (153 * march_month + 2) / 5 + day - 1;
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * 146_097 + of_era - 719_468
}
