//! Values of which there is only one form (Canonical EXI 1.0 §4.5).

use super::{Parts, SPECIAL, Typed, parse};
use crate::exi::{
    bits::width,
    grammar::{Coding, Datatype, DatatypeId},
};

/// Which form of a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// That of the document.
    Given,
    /// The canonical one.
    Canonical {
        /// Whether dates are those of Coordinated Universal Time.
        utc: bool,
    },
}

/// The value of `text`, or `None` if `datatype` does not allow it.
#[inline]
pub(crate) fn value<'a>(
    types: &[Datatype],
    datatype: DatatypeId,
    text: &'a str,
    form: Form,
) -> Option<Typed<'a>> {
    match form {
        Form::Given => parse(types, datatype, text),
        Form::Canonical { utc } => canonical_value(types, datatype, text, utc),
    }
}

fn canonical_value<'a>(
    types: &[Datatype],
    datatype: DatatypeId,
    text: &'a str,
    utc: bool,
) -> Option<Typed<'a>> {
    let value = parse(types, datatype, text)?;
    Some(match (value, types.get(datatype as usize).map(|found| &found.coding)) {
        (Typed::Bits(at, _), Some(Coding::Enumeration { values, item })) => {
            let first = first_alike(types, values, *item, at, utc);
            Typed::Bits(first, width(values.len()))
        }
        (value, _) => canonical(value, utc),
    })
}

/// The first of the enumerated values that means what the one at `at` means (§4.5.2).
fn first_alike(types: &[Datatype], values: &[String], item: DatatypeId, at: u32, utc: bool) -> u32 {
    let Some(given) = values.get(at as usize) else { return at };
    let meant = |text| match parse(types, item, text)? {
        Typed::Text(_) | Typed::List(..) | Typed::Hex(_) | Typed::Base64(_) => None,
        value => Some(canonical(value, utc)),
    };
    let wanted = meant(given);
    let first =
        values.iter().position(|one| one == given || (wanted.is_some() && meant(one) == wanted));
    first.and_then(|first| u32::try_from(first).ok()).unwrap_or(at)
}

fn canonical(value: Typed<'_>, utc: bool) -> Typed<'_> {
    match value {
        Typed::Float { mantissa, exponent } => float(mantissa, exponent),
        Typed::Date(parts) => Typed::Date(date(parts, utc)),
        other => other,
    }
}

/// §4.5.4: no zero at the end of a mantissa.
fn float<'a>(mut mantissa: i64, mut exponent: i64) -> Typed<'a> {
    let last = (1 << 14) - 1;
    while exponent != SPECIAL && exponent < last && mantissa != 0 && mantissa % 10 == 0 {
        (mantissa, exponent) = (mantissa / 10, exponent + 1);
    }
    Typed::Float { mantissa, exponent }
}

/// The zone of Coordinated Universal Time (EXI §7.1.8).
const UTC: i64 = 14 * 64;

/// §4.5.5: no hour 24 and, if wanted, no zone but UTC. Seconds stay as they are.
fn date(parts: Parts<'_>, utc: bool) -> Parts<'_> {
    let time = i64::from(parts.time.unwrap_or_default());
    let (mut minutes, seconds) = (time / 4096 * 60 + time / 64 % 64, time % 64);
    let zone = i64::from(parts.zone.unwrap_or_default()) - UTC;
    let shifts = utc && parts.zone.is_some() && zone != 0;
    if !shifts && minutes < 24 * 60 {
        return parts;
    }
    if shifts {
        // Division that goes towards zero keeps hours and minutes of one sign.
        minutes -= zone / 64 * 60 + zone % 64;
    }
    let days = minutes.div_euclid(24 * 60);
    minutes = minutes.rem_euclid(24 * 60);
    let mut day = Day::of(&parts);
    day.add(days);
    let small = |value: i64| u32::try_from(value).unwrap_or_default();
    Parts {
        year: parts.year.map(|_| day.year),
        month_day: parts.month_day.map(|old| {
            // Of months and days alone the other part is not there.
            let month = if old >= 32 { day.month * 32 } else { 0 };
            small(month + if old % 32 > 0 { day.day } else { 0 })
        }),
        time: parts.time.map(|_| small((minutes / 60 * 64 + minutes % 60) * 64 + seconds)),
        zone: if shifts { Some(small(UTC)) } else { parts.zone },
        ..parts
    }
}

/// A day of the calendar (XML Schema Part 2 §E).
struct Day {
    year: i64,
    month: i64,
    day: i64,
}

impl Day {
    /// The day of a date, whose missing parts are those of a January in a leap year.
    fn of(parts: &Parts<'_>) -> Self {
        let month_day = i64::from(parts.month_day.unwrap_or_default());
        let mut found = Self {
            year: parts.year.unwrap_or(2000),
            month: (month_day / 32).max(1),
            day: (month_day % 32).max(1),
        };
        found.day = found.day.min(found.length());
        found
    }

    fn length(&self) -> i64 {
        let leap = self.year % 400 == 0 || (self.year % 100 != 0 && self.year % 4 == 0);
        match self.month {
            4 | 6 | 9 | 11 => 30,
            2 if leap => 29,
            2 => 28,
            _ => 31,
        }
    }

    /// A day sooner or later, which is all that a zone makes.
    fn add(&mut self, days: i64) {
        self.day += days;
        if self.day < 1 {
            self.go_to_month(self.month - 1);
            self.day += self.length();
        } else if self.day > self.length() {
            self.day -= self.length();
            self.go_to_month(self.month + 1);
        }
    }

    fn go_to_month(&mut self, month: i64) {
        self.year = self.year.saturating_add((month - 1).div_euclid(12));
        self.month = (month - 1).rem_euclid(12) + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exi::{grammar::DateTime, lexical::date_time};

    /// A date in the form that another has.
    fn is(kind: DateTime, given: &str, utc: bool, expected: &str) {
        let parse = |text: &'static str| date_time(kind, text).unwrap();
        let given = date(parse(String::from(given).leak()), utc);
        assert_eq!(given, parse(String::from(expected).leak()), "{expected}");
    }

    #[test]
    fn dates_are_those_of_the_recommendation() {
        // Canonical EXI 1.0 §D.4, and what goes over the ends of months and years.
        use DateTime as D;
        is(D::DateTime, "2015-08-11T24:00:00-07:30", false, "2015-08-12T00:00:00-07:30");
        is(D::DateTime, "2015-08-11T24:00:00-07:30", true, "2015-08-12T07:30:00Z");
        is(D::DateTime, "2012-06-30T23:59:60-06:00", false, "2012-06-30T23:59:60-06:00");
        is(D::DateTime, "2012-06-30T23:59:60-06:00", true, "2012-07-01T05:59:60Z");
        is(D::DateTime, "2016-02-28T24:00:00", false, "2016-02-29T00:00:00");
        is(D::DateTime, "1999-12-31T23:30:00.5-01:00", true, "2000-01-01T00:30:00.5Z");
        is(D::DateTime, "2000-03-01T00:10:00+14:00", true, "2000-02-29T10:10:00Z");
        is(D::DateTime, "2000-01-01T00:00:00+00:30", true, "1999-12-31T23:30:00Z");
        is(D::DateTime, "2000-01-01T01:00:00", true, "2000-01-01T01:00:00");
        is(D::Time, "24:00:00", false, "00:00:00");
        is(D::Time, "01:00:00+02:00", true, "23:00:00Z");
        is(D::YearMonth, "2000-01+02:00", true, "1999-12Z");
        is(D::Day, "---05+02:00", true, "---04Z");
    }

    #[test]
    fn floats_are_those_of_the_recommendation() {
        // Canonical EXI 1.0 §D.3.
        for (given, mantissa, exponent) in [
            ("123.012300", 1_230_123, -4),
            ("0.00", 0, 0),
            ("-0.00", 0, 0),
            ("1.0", 1, 0),
            ("-1230.01", -123_001, -2),
            ("0.1230", 123, -3),
            ("12300", 123, 2),
            ("12.0", 12, 0),
            ("120E-1", 12, 0),
            ("1.2E1", 12, 0),
            ("INF", 1, SPECIAL),
            ("NaN", 0, SPECIAL),
        ] {
            let value = canonical(crate::exi::lexical::float(given).unwrap(), false);
            assert_eq!(value, Typed::Float { mantissa, exponent }, "{given}");
        }
    }
}
