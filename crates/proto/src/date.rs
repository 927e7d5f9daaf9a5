//! Dates as HTTP writes them (RFC 9110 §5.6.7, IMF-fixdate), and seconds.

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY_S: i64 = 86_400;
/// Days of 400 years, and from 0000-03-01 to 1970-01-01.
const ERA_DAYS: i64 = 146_097;
const EPOCH_DAYS: i64 = 719_468;
/// No date of four digits is so far from 1970.
const MAX_S: i64 = 1 << 40;

/// Days since 1970 of a day in the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH_DAYS
}

/// Seconds since 1970; `None` of what [`written`] would write otherwise.
pub(crate) fn read(text: &[u8]) -> Option<i64> {
    let text = str::from_utf8(text).ok().filter(|text| text.len() == 29)?;
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let month = MONTHS.iter().position(|name| Some(*name) == text.get(8..11))?;
    let month = i64::try_from(month).ok()? + 1;
    let date = days(number(12, 16)?, month, number(5, 7)?);
    let time = number(17, 19)? * 3600 + number(20, 22)? * 60 + number(23, 25)?;
    let seconds = date * DAY_S + time;
    (written(seconds).as_deref() == Some(text)).then_some(seconds)
}

/// As HTTP writes it; `None` beyond the years 0 to 9999.
pub(crate) fn written(seconds: i64) -> Option<String> {
    if !(-MAX_S..MAX_S).contains(&seconds) {
        return None;
    }
    let (day, time) = (seconds.div_euclid(DAY_S), seconds.rem_euclid(DAY_S));
    let shifted = day + EPOCH_DAYS;
    let (era, of_era) = (shifted.div_euclid(ERA_DAYS), shifted.rem_euclid(ERA_DAYS));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = (shifted_month + 2) % 12;
    let year = year_of_era + era * 400 + i64::from(month < 2);
    if !(0..=9999).contains(&year) {
        return None;
    }
    let weekday = DAYS.get(usize::try_from(day.rem_euclid(7)).ok()?)?;
    let name = MONTHS.get(usize::try_from(month).ok()?)?;
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    Some(format!("{weekday}, {date:02} {name} {year:04} {hour:02}:{minute:02}:{second:02} GMT"))
}
