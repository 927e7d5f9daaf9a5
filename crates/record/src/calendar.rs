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

/// Reads what [`day`] and [`utc`] write, also without the seconds, or with a T between and a Z
/// behind: seconds since 1970. None for anything else, and for what was before.
#[must_use]
pub fn parse(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00"));
    let number = |text: &str, digits: usize| {
        let plain = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| text.parse::<u64>().ok()).flatten()
    };
    let mut parts = date.split('-');
    let [year, month, day] = [4, 2, 2].map(|digits| number(parts.next()?, digits));
    let (year, month, day) = (year?, month?, day?);
    let mut clock = time.split(':');
    let (hours, minutes) = (number(clock.next()?, 2)?, number(clock.next()?, 2)?);
    let seconds = clock.next().map_or(Some(0), |text| number(text, 2))?;
    let ends = parts.next().is_none() && clock.next().is_none();
    // A day that a month does not have comes out as another.
    let days = days(year, month, day).filter(|days| self::date(*days) == (year, month, day));
    let fits = ends && hours < 24 && minutes < 60 && seconds < 60;
    fits.then(|| Some(days? * SECONDS_OF_DAY + hours * 3600 + minutes * 60 + seconds))?
}

const SECONDS_OF_DAY: u64 = 86_400;

/// Days from 1970-01-01 to a day of the Gregorian calendar; see [`date`].
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = if month <= 2 { year.checked_sub(1)? } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let month = (month + 9) % 12;
    let of_year = (153 * month + 2) / 5 + day.checked_sub(1)?;
    let of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    (era * 146_097 + of_era).checked_sub(719_468)
}

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

    #[test]
    fn what_is_printed_is_read() {
        for unix_s in (0..8_000_000_000).step_by(40_000_001) {
            assert_eq!(parse(&utc(unix_s)), Some(unix_s));
            assert_eq!(parse(&day(unix_s)), Some(unix_s - unix_s % SECONDS_OF_DAY));
        }
        assert_eq!(parse("2026-11-21T00:01:02Z"), Some(1_795_219_262));
        assert_eq!(parse("2026-11-21 00:01"), Some(1_795_219_260));
        for text in [
            "",
            "2026",
            "2026-13-01",
            "2026-02-29",
            "2026-00-10",
            "2026-01-00",
            "1969-12-31",
            "2026-11-21 24:00",
            "2026-11-21 00:60",
            "2026-11-21 1:00",
            "2026-11-21 00:00:00:00",
            "2026-11-21-1",
            "26-11-21",
            "2026-11-21 +1:00",
            "0000-01-01",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
