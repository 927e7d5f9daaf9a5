//! Moments as results print them.

/// A moment in UTC: `2026-11-21 03:04:05`.
#[must_use]
pub fn utc(unix_s: u64) -> String {
    let second = unix_s % SECONDS_OF_DAY;
    let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
    format!("{} {hours:02}:{minutes:02}:{seconds:02}", day(unix_s))
}

/// A day in UTC: `2026-11-21`.
#[must_use]
pub fn day(unix_s: u64) -> String {
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
    fn moments_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(951_782_399), "2000-02-28 23:59:59");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(utc(4_107_542_400), "2100-03-01 00:00:00");
        assert_eq!(utc(1_795_219_200), "2026-11-21 00:00:00");
    }
}
