//! From the text of a value to what is coded (EXI §7.1, XML Schema Part 2 §3).

mod canonical;

use super::{
    bits::{Writer, width},
    grammar::{Coding, Datatype, DatatypeId, DateTime, WhiteSpace},
};
pub(crate) use canonical::{Form, value};

/// Longest run of digits that is taken as a number: converting long ones takes quadratic time.
pub(crate) const MAX_DIGITS: usize = 4096;

/// A value that its datatype allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Typed<'a> {
    /// String, with its characters if they are restricted.
    Text(&'a str),
    /// n-bit integer.
    Bits(u32, u32),
    Integer {
        negative: bool,
        digits: &'a str,
    },
    Unsigned(&'a str),
    Decimal {
        negative: bool,
        whole: &'a str,
        fraction: &'a str,
    },
    Float {
        mantissa: i64,
        exponent: i64,
    },
    Date(Parts<'a>),
    Hex(&'a str),
    Base64(&'a str),
    List(&'a str, DatatypeId),
}

/// Parts of a date or time as they are coded (EXI §7.1.8).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Parts<'a> {
    pub(crate) year: Option<i64>,
    pub(crate) month_day: Option<u32>,
    pub(crate) time: Option<u32>,
    pub(crate) fraction: &'a str,
    pub(crate) zone: Option<u32>,
}

/// White space of XML.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether all is white space. Most of it are the blanks of indentation.
#[inline]
pub(crate) fn is_blank(bytes: &[u8]) -> bool {
    if bytes.first().is_some_and(|&first| !is_space(first)) {
        return false;
    }
    let (eights, rest) = bytes.as_chunks::<8>();
    let blank = |eight: &[u8; 8]| *eight == [b' '; 8] || eight.iter().all(|&byte| is_space(byte));
    // From the end, where texts that begin with a line feed differ.
    rest.iter().all(|&byte| is_space(byte)) && eights.iter().rev().all(blank)
}

fn trim(text: &str) -> &str {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) if is_space(*first) || is_space(*last) => {
            text.trim_matches(|c: char| c.is_ascii() && is_space(c as u8))
        }
        _ => text,
    }
}

/// Items of a list.
pub(crate) fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_ascii() && is_space(c as u8)).filter(|item| !item.is_empty())
}

/// Normalises white space of a string (XML Schema Part 2 §4.3.6), if it has to change.
pub(crate) fn normalise(text: &str, white_space: WhiteSpace) -> Option<String> {
    match white_space {
        WhiteSpace::Preserve => None,
        WhiteSpace::Replace => text
            .bytes()
            .any(|b| is_space(b) && b != b' ')
            .then(|| text.replace(['\t', '\n', '\r'], " ")),
        WhiteSpace::Collapse => {
            // A blank is right only behind something that is none, and not at the end.
            let mut after_space = true;
            let right = text.bytes().all(|byte| {
                let space = is_space(byte);
                let right = !space || (byte == b' ' && !after_space);
                after_space = space;
                right
            });
            let right = right && (!after_space || text.is_empty());
            (!right).then(|| items(text).collect::<Vec<_>>().join(" "))
        }
    }
}

/// Whether white space around and between values of this coding does not matter to [`parse`].
pub(crate) fn takes_space(coding: &Coding) -> bool {
    !matches!(coding, Coding::String | Coding::Restricted(_) | Coding::Enumeration { .. })
}

/// The value of `text`, or `None` if `datatype` does not allow it.
pub(crate) fn parse<'a>(
    types: &[Datatype],
    datatype: DatatypeId,
    text: &'a str,
) -> Option<Typed<'a>> {
    match &types.get(datatype as usize)?.coding {
        Coding::String | Coding::Restricted(_) => Some(Typed::Text(text)),
        Coding::Boolean => match trim(text) {
            "0" | "false" => Some(Typed::Bits(0, 1)),
            "1" | "true" => Some(Typed::Bits(1, 1)),
            _ => None,
        },
        Coding::BooleanPattern => {
            let at = ["false", "0", "true", "1"].iter().position(|&form| form == trim(text))?;
            Some(Typed::Bits(u32::try_from(at).ok()?, 2))
        }
        Coding::Integer => {
            let (negative, digits) = integer(trim(text))?;
            Some(Typed::Integer { negative, digits })
        }
        Coding::Unsigned => {
            let (negative, digits) = integer(trim(text))?;
            (!negative).then_some(Typed::Unsigned(digits))
        }
        &Coding::Bounded { lower, bits } => {
            let (negative, digits) = integer(trim(text))?;
            let size: i128 = digits.parse().ok()?;
            let distance = if negative { -size } else { size }.checked_sub(lower)?;
            let distance = u32::try_from(distance).ok()?;
            (u64::from(distance) < 1 << bits).then_some(Typed::Bits(distance, u32::from(bits)))
        }
        Coding::Decimal => decimal(trim(text)),
        Coding::Float => float(trim(text)),
        Coding::DateTime(kind) => date_time(*kind, trim(text)).map(Typed::Date),
        Coding::Hex => {
            let text = trim(text);
            let valid = text.len().is_multiple_of(2) && text.bytes().all(|b| b.is_ascii_hexdigit());
            valid.then_some(Typed::Hex(text))
        }
        Coding::Base64 => super::datatype::is_base64(text).then_some(Typed::Base64(text)),
        Coding::Enumeration { values, item } => {
            let at = enumerated(types, values, *item, text)?;
            Some(Typed::Bits(u32::try_from(at).ok()?, width(values.len())))
        }
        Coding::List(item) => {
            let valid = items(text).all(|one| parse(types, *item, one).is_some());
            valid.then_some(Typed::List(text, *item))
        }
    }
}

/// Which of the enumerated values: by its text, else by its value.
fn enumerated(
    types: &[Datatype],
    values: &[String],
    item: DatatypeId,
    text: &str,
) -> Option<usize> {
    if let Some(at) = values.iter().position(|value| value == text) {
        return Some(at);
    }
    let space = types.get(item as usize).map_or(WhiteSpace::Preserve, |one| one.white_space);
    let text = normalise(text, space).unwrap_or_else(|| text.to_owned());
    let same = values.iter().position(|value| *value == text);
    same.or_else(|| {
        let value = canonical(parse(types, item, &text)?)?;
        values.iter().position(|one| {
            parse(types, item, one).and_then(canonical).is_some_and(|one| one == value)
        })
    })
}

/// What can be compared; strings were compared already.
fn canonical(value: Typed<'_>) -> Option<Typed<'_>> {
    match value {
        Typed::Text(_) | Typed::List(..) | Typed::Hex(_) | Typed::Base64(_) => None,
        Typed::Float { mut mantissa, mut exponent } => {
            while mantissa != 0 && mantissa % 10 == 0 {
                (mantissa, exponent) = (mantissa / 10, exponent + 1);
            }
            Some(Typed::Float { mantissa, exponent })
        }
        other => Some(other),
    }
}

/// Takes the sign off a number: whether it is negative.
fn sign(text: &str) -> Option<(bool, &str)> {
    Some(match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    })
}

/// Where the digits at the begin end.
fn digits_end(text: &str) -> usize {
    text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len())
}

/// Sign and digits without zeros in front ("0" for zero, which has no sign).
fn integer(text: &str) -> Option<(bool, &str)> {
    let (negative, digits) = sign(text)?;
    if digits.is_empty() || digits_end(digits) < digits.len() {
        return None;
    }
    let digits = significant(digits);
    (digits.len() <= MAX_DIGITS).then_some((negative && digits != "0", digits))
}

fn significant(digits: &str) -> &str {
    let zeros = digits.bytes().take_while(|&byte| byte == b'0').count();
    if zeros == digits.len() { "0" } else { &digits[zeros..] }
}

/// Digits behind a point, without zeros at the end.
fn fraction(digits: &str) -> &str {
    let zeros = digits.bytes().rev().take_while(|&byte| byte == b'0').count();
    &digits[..digits.len() - zeros]
}

fn decimal(text: &str) -> Option<Typed<'_>> {
    let (negative, rest) = sign(text)?;
    let (whole, behind) = rest.split_at(digits_end(rest));
    let behind = match behind.as_bytes() {
        [] => behind,
        [b'.', ..] => &behind[1..],
        _ => return None,
    };
    if digits_end(behind) < behind.len() || (whole.is_empty() && behind.is_empty()) {
        return None;
    }
    let (whole, fraction) = (significant(whole), fraction(behind));
    let short = whole.len() <= MAX_DIGITS && fraction.len() <= MAX_DIGITS;
    let negative = negative && (whole != "0" || !fraction.is_empty());
    short.then_some(Typed::Decimal { negative, whole, fraction })
}

/// Exponent that means "not a number of the usual kind" (EXI §7.1.4).
pub(crate) const SPECIAL: i64 = -(1 << 14);

fn float(text: &str) -> Option<Typed<'_>> {
    match text {
        "INF" => return Some(Typed::Float { mantissa: 1, exponent: SPECIAL }),
        "-INF" => return Some(Typed::Float { mantissa: -1, exponent: SPECIAL }),
        "NaN" => return Some(Typed::Float { mantissa: 0, exponent: SPECIAL }),
        _ => {}
    }
    let (number, power) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, "0"),
    };
    let (minus, power) = integer(power)?;
    let power: i64 = power.parse().ok()?;
    let mut exponent = if minus { -power } else { power };
    let Typed::Decimal { negative, whole, fraction } = decimal(number)? else { return None };
    let mut mantissa: i64 = 0;
    let mut full = false;
    for (at, digit) in whole.bytes().chain(fraction.bytes()).enumerate() {
        let more = (!full)
            .then(|| mantissa.checked_mul(10)?.checked_add(i64::from(digit - b'0')))
            .flatten();
        full = more.is_none();
        mantissa = more.unwrap_or(mantissa);
        // Digits beyond 63 bits are beyond what a double can tell apart.
        match (full, at < whole.len()) {
            (true, true) => exponent = exponent.checked_add(1)?,
            (false, false) => exponent = exponent.checked_sub(1)?,
            _ => {}
        }
    }
    if mantissa == 0 {
        exponent = 0;
    }
    let mantissa = if negative { -mantissa } else { mantissa };
    (exponent.abs() < 1 << 14).then_some(Typed::Float { mantissa, exponent })
}

/// Reads a text from its begin.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn eat(&mut self, what: u8) -> Option<()> {
        let found = self.0.as_bytes().first() == Some(&what);
        found.then(|| self.0 = &self.0[1..])
    }

    /// Digits, at least `least`.
    fn digits(&mut self, least: usize, most: usize) -> Option<&'a str> {
        let count = self.0.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        (count >= least).then_some(digits)
    }

    fn two(&mut self, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
        let [tens, ones, ..] = *self.0.as_bytes() else { return None };
        if !tens.is_ascii_digit() || !ones.is_ascii_digit() {
            return None;
        }
        self.0 = &self.0[2..];
        let value = u32::from(tens - b'0') * 10 + u32::from(ones - b'0');
        range.contains(&value).then_some(value)
    }
}

fn date_time(kind: DateTime, text: &str) -> Option<Parts<'_>> {
    use DateTime as D;
    let mut at = Cursor(text);
    let mut parts = Parts::default();
    if matches!(kind, D::Year | D::YearMonth | D::Date | D::DateTime) {
        let negative = at.eat(b'-').is_some();
        let year: i64 = at.digits(4, 15)?.parse().ok()?;
        parts.year = Some(if negative { -year } else { year });
    }
    let dashes = match kind {
        D::YearMonth | D::Date | D::DateTime => 1,
        D::Month | D::MonthDay => 2,
        D::Day => 3,
        D::Year | D::Time => 0,
    };
    (0..dashes).try_for_each(|_| at.eat(b'-'))?;
    parts.month_day = match kind {
        D::Year | D::Time => None,
        D::YearMonth | D::Month => Some(at.two(1..=12)? * 32),
        D::Day => Some(at.two(1..=31)?),
        D::Date | D::DateTime | D::MonthDay => {
            let month = at.two(1..=12)?;
            at.eat(b'-')?;
            Some(month * 32 + at.two(1..=31)?)
        }
    };
    if kind == D::Month && at.0.starts_with("--") {
        // The form of the first edition of XML Schema, "--MM--".
        at.0 = &at.0[2..];
    }
    if kind == D::DateTime {
        at.eat(b'T')?;
    }
    if matches!(kind, D::DateTime | D::Time) {
        let hours = at.two(0..=24)?;
        at.eat(b':')?;
        let minutes = at.two(0..=59)?;
        at.eat(b':')?;
        parts.time = Some((hours * 64 + minutes) * 64 + at.two(0..=60)?);
        if at.eat(b'.').is_some() {
            parts.fraction = fraction(at.digits(1, MAX_DIGITS)?);
        }
    }
    parts.zone = zone(&mut at)?;
    at.0.is_empty().then_some(parts)
}

/// Zone of time, coded with an offset of 14 hours; the outer `None` is a fault.
#[expect(clippy::option_option, reason = "no zone is a valid one")]
fn zone(at: &mut Cursor<'_>) -> Option<Option<u32>> {
    if at.0.is_empty() {
        return Some(None);
    }
    if at.eat(b'Z').is_some() {
        return Some(Some(14 * 64));
    }
    let negative = at.eat(b'-').is_some();
    if !negative {
        at.eat(b'+')?;
    }
    let hours = at.two(0..=14)?;
    at.eat(b':')?;
    let offset = hours * 64 + at.two(0..=59)?;
    (offset <= 14 * 64).then_some(Some(if negative { 14 * 64 - offset } else { 14 * 64 + offset }))
}

/// Digits as an Unsigned integer, less one if `less_one` (EXI §7.1.5).
pub(crate) fn write_digits(digits: &str, less_one: bool, to: &mut Writer) {
    // So many always fit.
    if digits.len() <= 19 {
        let add = |sum: u64, digit: u8| sum.wrapping_mul(10).wrapping_add(u64::from(digit & 15));
        return to.unsigned(digits.bytes().fold(0, add) - u64::from(less_one));
    }
    write_big(digits.bytes().map(|b| b - b'0'), less_one, to);
}

/// Digits in reverse as an Unsigned integer: what is behind a decimal point.
pub(crate) fn write_reversed(digits: &str, to: &mut Writer) {
    let digits = digits.bytes().rev().map(|b| b - b'0');
    if digits.len() <= 19 {
        return to.unsigned(digits.fold(0, |sum, digit| sum * 10 + u64::from(digit)));
    }
    write_big(digits, false, to);
}

/// Schoolbook conversion to groups of seven bits, least first.
fn write_big(digits: impl Iterator<Item = u8>, less_one: bool, to: &mut Writer) {
    // Limbs of 28 bits, least first: four groups each.
    let mut limbs: Vec<u64> = Vec::new();
    for digit in digits {
        let mut carry = u64::from(digit);
        for limb in &mut limbs {
            let sum = *limb * 10 + carry;
            *limb = sum & 0xfff_ffff;
            carry = sum >> 28;
        }
        if carry > 0 {
            limbs.push(carry);
        }
    }
    if less_one {
        for limb in &mut limbs {
            if *limb > 0 {
                *limb -= 1;
                break;
            }
            *limb = 0xfff_ffff;
        }
    }
    let mut groups: Vec<u8> = limbs
        .iter()
        .flat_map(|limb| [0, 7, 14, 21].map(|shift| (limb >> shift & 0x7f) as u8))
        .collect();
    while groups.len() > 1 && groups.last() == Some(&0) {
        groups.pop();
    }
    let last = groups.len().saturating_sub(1);
    for (at, group) in groups.iter().enumerate() {
        to.byte(group | if at < last { 0x80 } else { 0 });
    }
}
