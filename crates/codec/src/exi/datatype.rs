//! Values on the wire (EXI §7.1): written from [`Typed`], read to text.

use super::{
    bits::{Fault, Reader, Writer, is_xml, width},
    grammar::DateTime,
    lexical::{MAX_DIGITS, Parts, SPECIAL, Typed, is_space, write_digits, write_reversed},
    text::Text,
};

/// Whether white space and groups of four are as base64Binary has them.
pub(crate) fn is_base64(text: &str) -> bool {
    let mut count = 0;
    let mut pads = 0;
    for byte in text.bytes().filter(|&byte| !is_space(byte)) {
        match byte {
            b'=' => pads += 1,
            _ if pads > 0 || sextet(byte).is_none() => return false,
            _ => {}
        }
        count += 1;
    }
    count % 4 == 0 && pads <= 2
}

fn sextet(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

fn write_base64(text: &str, to: &mut Writer) {
    let count = text.bytes().filter(|&b| sextet(b).is_some()).count();
    to.unsigned(count as u64 * 3 / 4);
    let (mut acc, mut bits) = (0u32, 0);
    for six in text.bytes().filter_map(sextet) {
        acc = (acc << 6 | six) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            to.byte((acc >> bits & 0xff) as u8);
        }
    }
}

fn nibble(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        _ => byte.wrapping_sub(b'A').wrapping_add(10),
    }
}

/// Writes a value that is neither a string nor a list.
pub(crate) fn write(value: &Typed<'_>, to: &mut Writer) {
    match *value {
        Typed::Bits(value, bits) => to.bits(value, bits),
        Typed::Integer { negative, digits } => {
            to.bits(u32::from(negative), 1);
            write_digits(digits, negative, to);
        }
        Typed::Unsigned(digits) => write_digits(digits, false, to),
        Typed::Decimal { negative, whole, fraction } => {
            to.bits(u32::from(negative), 1);
            write_digits(whole, false, to);
            write_reversed(fraction, to);
        }
        Typed::Float { mantissa, exponent } => {
            write_integer(mantissa, to);
            write_integer(exponent, to);
        }
        Typed::Date(parts) => write_date(&parts, to),
        Typed::Hex(text) => {
            to.unsigned(text.len() as u64 / 2);
            for two in text.as_bytes().chunks_exact(2) {
                to.byte(nibble(two[0]) << 4 | nibble(two[1]));
            }
        }
        Typed::Base64(text) => write_base64(text, to),
        Typed::Text(_) | Typed::List(..) => {}
    }
}

/// Integer (EXI §7.1.5).
fn write_integer(value: i64, to: &mut Writer) {
    to.bits(u32::from(value < 0), 1);
    to.unsigned(if value < 0 { (-1 - value).unsigned_abs() } else { value.unsigned_abs() });
}

/// Date-Time (EXI §7.1.8).
fn write_date(parts: &Parts<'_>, to: &mut Writer) {
    if let Some(year) = parts.year {
        write_integer(year - 2000, to);
    }
    if let Some(month_day) = parts.month_day {
        to.bits(month_day, 9);
    }
    if let Some(time) = parts.time {
        to.bits(time, 17);
        to.bits(u32::from(!parts.fraction.is_empty()), 1);
        if !parts.fraction.is_empty() {
            write_reversed(parts.fraction, to);
        }
    }
    to.bits(u32::from(parts.zone.is_some()), 1);
    if let Some(zone) = parts.zone {
        to.bits(zone, 11);
    }
}

/// Characters of a restricted set (EXI §7.1.10.1).
pub(crate) fn write_restricted(set: &[char], text: &str, to: &mut Writer) {
    let bits = width(set.len() + 1);
    for c in text.chars() {
        match set.binary_search(&c) {
            Ok(at) => to.bits(u32::try_from(at).unwrap_or_default(), bits),
            Err(_) => {
                to.bits(u32::try_from(set.len()).unwrap_or_default(), bits);
                to.unsigned(u64::from(u32::from(c)));
            }
        }
    }
}

/// Characters of a restricted set; says whether XML has them as they are.
pub(crate) fn read_restricted(
    set: &[char],
    count: usize,
    from: &mut Reader,
    to: &mut Text,
) -> Result<bool, Fault> {
    // One bit each is the least that a set needs.
    if count > from.left() {
        return Err(Fault::Short);
    }
    let bits = width(set.len() + 1);
    let mut plain = true;
    for _ in 0..count {
        let code = from.bits(bits) as usize;
        let c = match set.get(code) {
            Some(&c) => c,
            None if code == set.len() => {
                let c = u32::try_from(from.unsigned()?).ok().and_then(char::from_u32);
                c.filter(|&c| is_xml(c)).ok_or(Fault::Bad(&"not a character of XML"))?
            }
            None => return Err(Fault::Bad(&"no character has this number")),
        };
        plain &= c >= ' ' && !matches!(c, '&' | '<' | '>' | '"');
        to.push(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Ok(plain)
}

/// Appends a number in decimal.
#[inline]
pub(crate) fn decimal(value: u64, to: &mut Vec<u8>) {
    if value < 10 {
        to.push(b'0' + (value % 10) as u8);
    } else {
        long_decimal(value, to);
    }
}

fn long_decimal(mut value: u64, to: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut length = 0;
    // Two at a time, from the last.
    for pair in digits.rchunks_exact_mut(2) {
        let two = (value % 100) as u8;
        value /= 100;
        pair.copy_from_slice(&[b'0' + two / 10, b'0' + two % 10]);
        length += 2;
        if value == 0 {
            length -= usize::from(two < 10);
            break;
        }
    }
    to.extend_from_slice(digits.get(digits.len() - length..).unwrap_or_default());
}

fn padded(value: u64, width: usize, to: &mut Vec<u8>) {
    if width == 4 && value < 10_000 {
        let digit = |at: u64| b'0' + (value / at % 10) as u8;
        return to.extend_from_slice(&[digit(1000), digit(100), digit(10), digit(1)]);
    }
    let digits = value.checked_ilog10().map_or(1, |log| log as usize + 1);
    to.extend(std::iter::repeat_n(b'0', width.saturating_sub(digits)));
    decimal(value, to);
}

/// An Unsigned integer of any length, plus one if `plus_one`, in decimal.
pub(crate) fn read_digits(
    plus_one: bool,
    from: &mut Reader,
    to: &mut Vec<u8>,
) -> Result<(), Fault> {
    let begin = *from;
    if let Ok(value) = from.unsigned() {
        decimal(value + u64::from(plus_one), to);
        return Ok(());
    }
    *from = begin;
    // Limbs to the base 10^9, least first, from the most significant group on.
    let mut groups = Vec::new();
    loop {
        let byte = from.byte();
        groups.push(byte & 0x7f);
        if byte < 0x80 {
            break;
        }
        if groups.len() * 2 > MAX_DIGITS {
            return Err(Fault::Limit(&"digits of a number"));
        }
    }
    let mut limbs: Vec<u64> = vec![0];
    let mut shift_in = |factor: u64, add: u64| {
        let mut carry = add;
        for limb in &mut limbs {
            let sum = *limb * factor + carry;
            *limb = sum % 1_000_000_000;
            carry = sum / 1_000_000_000;
        }
        if carry > 0 {
            limbs.push(carry);
        }
    };
    groups.iter().rev().for_each(|&group| shift_in(128, u64::from(group)));
    shift_in(1, u64::from(plus_one));
    decimal(limbs.last().copied().unwrap_or_default(), to);
    for &limb in limbs.iter().rev().skip(1) {
        padded(limb, 9, to);
    }
    Ok(())
}

/// Digits behind a point, which come in reverse.
fn read_fraction(from: &mut Reader, to: &mut Vec<u8>) -> Result<(), Fault> {
    let begin = to.len();
    read_digits(false, from, to)?;
    to[begin..].reverse();
    Ok(())
}

/// Integer below 2^63 in size.
fn read_integer(from: &mut Reader) -> Result<i64, Fault> {
    let negative = from.bits(1) == 1;
    let value = i64::try_from(from.unsigned()?).unwrap_or(i64::MAX);
    Ok(if negative { -1 - value } else { value })
}

/// Integer of any length.
pub(crate) fn read_any_integer(from: &mut Reader, to: &mut Vec<u8>) -> Result<(), Fault> {
    let negative = from.bits(1) == 1;
    if negative {
        to.push(b'-');
    }
    read_digits(negative, from, to)
}

/// n-bit integer from `lower`.
pub(crate) fn read_bounded(lower: i128, bits: u32, from: &mut Reader, to: &mut Vec<u8>) {
    let value = lower.saturating_add(i128::from(from.bits(bits)));
    if value < 0 {
        to.push(b'-');
    }
    match u64::try_from(value.unsigned_abs()) {
        Ok(size) => decimal(size, to),
        Err(_) => to.extend_from_slice(value.unsigned_abs().to_string().as_bytes()),
    }
}

/// Decimal (EXI §7.1.3).
pub(crate) fn read_decimal(from: &mut Reader, to: &mut Vec<u8>) -> Result<(), Fault> {
    if from.bits(1) == 1 {
        to.push(b'-');
    }
    read_digits(false, from, to)?;
    to.push(b'.');
    read_fraction(from, to)
}

/// Float (EXI §7.1.4): mantissa and exponent as they are.
pub(crate) fn read_float(from: &mut Reader, to: &mut Vec<u8>) -> Result<(), Fault> {
    let mantissa = read_integer(from)?;
    let exponent = read_integer(from)?;
    if exponent == SPECIAL {
        let name: &[u8] = match mantissa {
            1 => b"INF",
            -1 => b"-INF",
            _ => b"NaN",
        };
        to.extend_from_slice(name);
        return Ok(());
    }
    if exponent.abs() >= 1 << 14 {
        return Err(Fault::Bad(&"an exponent of more than 14 bits"));
    }
    if mantissa < 0 {
        to.push(b'-');
    }
    decimal(mantissa.unsigned_abs(), to);
    if exponent != 0 {
        to.push(b'E');
        if exponent < 0 {
            to.push(b'-');
        }
        decimal(exponent.unsigned_abs(), to);
    }
    Ok(())
}

/// A text of few bytes before it is appended at once.
struct Short {
    bytes: [u8; 24],
    length: usize,
}

impl Short {
    #[inline]
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    #[inline]
    fn two(&mut self, value: u32) {
        self.push(b'0' + (value / 10 % 10) as u8);
        self.push(b'0' + (value % 10) as u8);
    }

    fn append(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self.bytes.get(..self.length).unwrap_or_default());
    }
}

/// Date-Time (EXI §7.1.8).
pub(crate) fn read_date(kind: DateTime, from: &mut Reader, to: &mut Vec<u8>) -> Result<(), Fault> {
    use DateTime as D;
    if matches!(kind, D::Year | D::YearMonth | D::Date | D::DateTime) {
        let year = read_integer(from)?.saturating_add(2000);
        if year < 0 {
            to.push(b'-');
        }
        padded(year.unsigned_abs(), 4, to);
    }
    let mut short = Short { bytes: [0; 24], length: 0 };
    if kind == D::DateTime {
        put_day_and_time(from.bits(9), from.bits(17), to);
    } else if !matches!(kind, D::Year | D::Time) {
        let month_day = from.bits(9);
        let dashes = match kind {
            D::YearMonth | D::Date | D::DateTime => 1,
            D::Month | D::MonthDay => 2,
            _ => 3,
        };
        (0..dashes).for_each(|_| short.push(b'-'));
        if kind != D::Day {
            short.two(month_day / 32);
        }
        if matches!(kind, D::Date | D::DateTime | D::MonthDay) {
            short.push(b'-');
        }
        if !matches!(kind, D::YearMonth | D::Month) {
            short.two(month_day % 32);
        }
    }
    if kind == D::Time {
        let time = from.bits(17);
        short.two(time / 4096);
        short.push(b':');
        short.two(time / 64 % 64);
        short.push(b':');
        short.two(time % 64);
        short.append(to);
        short.length = 0;
    }
    if matches!(kind, D::DateTime | D::Time) && from.bits(1) == 1 {
        to.push(b'.');
        read_fraction(from, to)?;
    }
    if from.bits(1) == 1 {
        put_zone(from.bits(11), &mut short);
    }
    short.append(to);
    Ok(())
}

/// What stands behind the year of dateTime, the usual kind.
fn put_day_and_time(month_day: u32, time: u32, to: &mut Vec<u8>) {
    let parts = [month_day / 32, month_day % 32, time / 4096, time / 64 % 64, time % 64];
    let mut text = *b"-00-00T00:00:00";
    for (place, part) in text.chunks_exact_mut(3).zip(parts) {
        // Each is below 64.
        place[1] = b'0' + (part / 10 % 10) as u8;
        place[2] = b'0' + (part % 10) as u8;
    }
    to.extend_from_slice(&text);
}

fn put_zone(zone: u32, to: &mut Short) {
    let size = zone.abs_diff(14 * 64);
    if size == 0 {
        return to.push(b'Z');
    }
    to.push(if zone < 14 * 64 { b'-' } else { b'+' });
    to.two(size / 64);
    to.push(b':');
    to.two(size % 64);
}

/// base64Binary and hexBinary (EXI §7.1.1).
pub(crate) fn read_binary(hex: bool, from: &mut Reader, to: &mut Vec<u8>) -> Result<(), Fault> {
    let length = from.length()?;
    let mut bytes = Vec::new();
    from.bytes(length, &mut bytes)?;
    if hex {
        let digits = b"0123456789ABCDEF";
        to.extend(
            bytes.iter().flat_map(|b| [digits[usize::from(b >> 4)], digits[usize::from(b & 15)]]),
        );
        return Ok(());
    }
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for three in bytes.chunks(3) {
        let word = three.iter().fold(0u32, |sum, &b| sum << 8 | u32::from(b));
        let word = word << (8 * (3 - three.len()));
        for at in 0..4 {
            let letter = letters[(word >> (18 - 6 * at) & 63) as usize];
            to.push(if at > three.len() { b'=' } else { letter });
        }
    }
    Ok(())
}
