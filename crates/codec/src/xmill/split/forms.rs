//! Numbers and dates as texts, and what they count.

use super::bytes::Input;
use crate::xmill::outline::Broken;

/// Digits of a number, so that it fits with its sign.
pub(super) const DIGITS: usize = 18;
/// Days of a month in a year that has no 29th of February.
const DAYS: [u8; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Digits before the point, 0 for as few as it takes; digits behind it.
    Decimal { width: u8, places: u8 },
    /// `2026-11-21` (XML Schema part 2, §3.2.9 without a zone): days.
    Date,
    /// `2026-11-21T19:22:00` (§3.2.7 without fraction and zone): seconds.
    DateTime,
}

impl Form {
    const DATE: u8 = 30;
    const DATE_TIME: u8 = 31;

    pub(super) fn put(self, out: &mut Vec<u8>) {
        match self {
            Self::Decimal { width, places } => out.extend([width, places]),
            Self::Date => out.push(Self::DATE),
            Self::DateTime => out.push(Self::DATE_TIME),
        }
    }

    pub(super) fn take(input: &mut Input<'_>) -> Result<Self, Broken> {
        match input.byte()? {
            Self::DATE => Ok(Self::Date),
            Self::DATE_TIME => Ok(Self::DateTime),
            width if usize::from(width) <= DIGITS => {
                let places = input.byte()?;
                if usize::from(places) > DIGITS {
                    Err(Broken::Unknown)
                } else {
                    Ok(Self::Decimal { width, places })
                }
            }
            _ => Err(Broken::Unknown),
        }
    }

    /// The form that a text has.
    pub(super) fn of(text: &[u8]) -> Option<Self> {
        if date(text).is_some() {
            return Some(Self::Date);
        }
        if date_time(text).is_some() {
            return Some(Self::DateTime);
        }
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        let whole = digits.iter().position(|&byte| byte == b'.').unwrap_or(digits.len());
        let places = digits.len().saturating_sub(whole + 1);
        let padded = whole > 1 && digits.first() == Some(&b'0');
        let [width, places] = [if padded { whole } else { 0 }, places]
            .map(|count| u8::try_from(count).unwrap_or(u8::MAX));
        Some(Self::Decimal { width, places })
    }

    /// What a text of this form counts; `None` if it is of another form.
    pub(super) fn read(self, text: &[u8]) -> Option<i64> {
        let number = match self {
            Self::Date => date(text)?,
            Self::DateTime => date_time(text)?,
            Self::Decimal { places, .. } => decimal(text, usize::from(places))?,
        };
        let mut back = Vec::with_capacity(text.len());
        self.write(number, &mut back);
        (back == text).then_some(number)
    }

    /// Writes a number; what is out of the form's range comes out as something else.
    pub(super) fn write(self, number: i64, out: &mut Vec<u8>) {
        match self {
            Self::Date => put_date(number, out),
            Self::DateTime => {
                put_date(number.div_euclid(86_400), out);
                let second = number.rem_euclid(86_400);
                for (mark, count) in
                    [(b'T', second / 3600), (b':', second / 60 % 60), (b':', second % 60)]
                {
                    out.push(mark);
                    put_digits(count.unsigned_abs(), 2, out);
                }
            }
            Self::Decimal { width, places } => {
                if number < 0 {
                    out.push(b'-');
                }
                let (number, unit) = (number.unsigned_abs(), 10_u64.pow(u32::from(places)));
                put_digits(number / unit, usize::from(width.max(1)), out);
                if places > 0 {
                    out.push(b'.');
                    put_digits(number % unit, usize::from(places), out);
                }
            }
        }
    }
}

pub(super) fn put_digits(mut number: u64, width: usize, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    while number > 0 || digits.len() - at < width {
        at -= 1;
        digits[at] = b"0123456789"[usize::try_from(number % 10).unwrap_or(0)];
        number /= 10;
    }
    out.extend_from_slice(&digits[at..]);
}

pub(super) fn digits(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > DIGITS || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |number, byte| number * 10 + i64::from(byte - b'0')))
}

/// A number with so many digits behind the point, as a count of its last digit.
fn decimal(text: &[u8], places: usize) -> Option<i64> {
    let (minus, text) = text.strip_prefix(b"-").map_or((1, text), |text| (-1, text));
    if places == 0 {
        return Some(digits(text)? * minus);
    }
    let point = text.len().checked_sub(places + 1)?;
    if text[point] != b'.' || text.len() > DIGITS + 1 {
        return None;
    }
    let whole = digits(&text[..point])? * 10_i64.pow(u32::try_from(places).ok()?);
    Some((whole + digits(&text[point + 1..])?) * minus)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days from the first of March of the year 0, where leap days end a year.
fn date(text: &[u8]) -> Option<i64> {
    let [y @ .., b'-', m1, m2, b'-', d1, d2] = text else { return None };
    let (year, month, day) = (digits(y)?, digits(&[*m1, *m2])?, digits(&[*d1, *d2])?);
    let most = *DAYS.get(usize::try_from(month).ok()?.checked_sub(1)?)?;
    let leap = i64::from(month == 2 && is_leap(year));
    if y.len() != 4 || day < 1 || day > i64::from(most) + leap {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(year * 365 + leaps + (153 * month + 2) / 5 + day - 1)
}

fn put_date(days: i64, out: &mut Vec<u8>) {
    // Four hundred years have 146097 days (the proleptic Gregorian calendar of XML Schema).
    let (age, days) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (days - days / 1460 + days / 36_524 - days / 146_096) / 365;
    let days = days - (365 * year + year / 4 - year / 100);
    let month = (5 * days + 2) / 153;
    let day = days - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    put_digits((age * 400 + year).rem_euclid(10_000).unsigned_abs(), 4, out);
    for count in [month, day] {
        out.push(b'-');
        put_digits(count.unsigned_abs(), 2, out);
    }
}

fn date_time(text: &[u8]) -> Option<i64> {
    let [day @ .., b'T', h1, h2, b':', m1, m2, b':', s1, s2] = text else { return None };
    let (hour, minute) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
    let second = digits(&[*s1, *s2])?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(date(day)? * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_an_age_comes_back() {
        for days in -60..146_200 {
            let mut text = Vec::new();
            put_date(days, &mut text);
            assert_eq!(date(&text), Some(days), "{}", String::from_utf8_lossy(&text));
        }
    }
}
