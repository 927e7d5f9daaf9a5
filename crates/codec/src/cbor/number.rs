//! Numbers whose text is to come back.

use std::borrow::Cow;

use proto::cbor::{Encoder, Head, Major, Slice, TAG_BIGNUM, TAG_DECIMAL, TAG_NEGATIVE_BIGNUM};

use crate::Error;

use super::{malformed, over, scan::is_number};

/// Tag of embedded JSON in a byte string (IANA registry of CBOR tags).
pub(super) const TAG_JSON: u64 = 262;
/// Most digits behind the point; with more a power of ten is shown.
const PLACES: i64 = 64;
/// Longest text that a double is tried for: sign, 17 digits, point and power.
const FLOAT_TEXT: usize = 25;
/// A bignum of 128 bits, a decimal fraction around it, and their heads.
const ITEM_BYTES: usize = 48;

/// The shortest item that `text`, a number of JSON, comes back from, into `put`.
pub(super) fn encode(text: &str, mut put: impl FnMut(&[u8])) {
    let mut rooms = [[0; ITEM_BYTES]; 2];
    let [first, second] = &mut rooms;
    let candidates = [whole_or_decimal(text, first), float(text, second)];
    let best = candidates.iter().zip([1, 0]).filter_map(|(len, tie)| Some(((*len)?, tie))).min();
    match best {
        Some((len, tie)) => put(rooms.get(1 - tie).and_then(|room| room.get(..len)).unwrap_or(&[])),
        None => {
            put(&proto::cbor::head(Major::Tag, TAG_JSON));
            put(&proto::cbor::head(Major::Bytes, text.len() as u64));
            put(text.as_bytes());
        }
    }
}

/// Digits of a number as an integer, with its sign, and the power of ten they are to be taken by.
fn parse(text: &str) -> Option<(bool, u128, i64, bool)> {
    let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (digits, power) = match rest.split_once('e') {
        Some((digits, power)) => (digits, power.parse::<i64>().ok()?),
        None => (rest, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut value: u128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        let digit = u128::from(char::from(digit).to_digit(10)?);
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    let power = power.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    Some((negative, value, power, whole.len() == rest.len()))
}

/// As an integer or a decimal fraction, if the text comes back from it.
fn whole_or_decimal(text: &str, room: &mut [u8]) -> Option<usize> {
    let (negative, value, power, whole) = parse(text)?;
    if negative && value == 0 {
        return None;
    }
    let mut encoder = Encoder::new(Slice::new(room));
    if !whole {
        let mut shown = String::new();
        show(negative, value, power, &mut shown);
        if shown != text {
            return None;
        }
        encoder.tag(TAG_DECIMAL).ok()?;
        encoder.array(2).ok()?;
        encoder.integer(power).ok()?;
    }
    // RFC 8949 §3.4.3: of what fits no integer, the bytes; a negative one is −1 − n.
    let argument = if negative { value - 1 } else { value };
    match u64::try_from(argument) {
        Ok(argument) if negative => encoder.negative(argument).ok()?,
        Ok(argument) => encoder.unsigned(argument).ok()?,
        Err(_) => {
            encoder.tag(if negative { TAG_NEGATIVE_BIGNUM } else { TAG_BIGNUM }).ok()?;
            let bytes = argument.to_be_bytes();
            let skip = usize::try_from(argument.leading_zeros() / 8).ok()?;
            encoder.bytes(bytes.get(skip..)?).ok()?;
        }
    }
    Some(encoder.into_sink().len())
}

/// As a float, if its value is exactly the text's double and shows as the text.
fn float(text: &str, room: &mut [u8]) -> Option<usize> {
    if text.len() > FLOAT_TEXT {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    if !value.is_finite() || format!("{value:?}") != text {
        return None;
    }
    let mut encoder = Encoder::new(Slice::new(room));
    encoder.float(value).ok()?;
    Some(encoder.into_sink().len())
}

/// The text of a decimal fraction: with a point for up to 64 places, else with a power of ten.
fn show(negative: bool, value: u128, power: i64, out: &mut String) {
    if negative {
        out.push('-');
    }
    let digits = value.to_string();
    if !(-PLACES..0).contains(&power) {
        out.push_str(&digits);
        out.push('e');
        out.push_str(&power.to_string());
        return;
    }
    let places = usize::try_from(-power).unwrap_or(0);
    let padded = format!("{digits:0>width$}", width = places + 1);
    let (whole, fraction) = padded.split_at(padded.len() - places);
    out.push_str(whole);
    out.push('.');
    out.push_str(fraction);
}

/// The text of a float; what is not finite is `null` (RFC 8949 §6.1).
pub(super) fn show_float(value: f64) -> String {
    if value.is_finite() { format!("{value:?}") } else { "null".to_owned() }
}

/// The text of the number with one of the four tags that `input` begins with, and its length;
/// `None` while it is not complete.
pub(super) fn decode(input: &[u8], offset: u64) -> Result<Option<(String, usize)>, Error> {
    let mut cursor = Cursor { input, at: 0, offset };
    let Some(tag) = cursor.head()? else { return Ok(None) };
    let mut out = String::new();
    match tag.argument {
        TAG_DECIMAL => {
            let Some(pair) = cursor.head()? else { return Ok(None) };
            if pair.major != Major::Array || (!pair.is_indefinite() && pair.argument != 2) {
                return Err(cursor.odd("a decimal fraction is an array of two"));
            }
            let Some(power) = cursor.head()? else { return Ok(None) };
            let Some((negative, power)) = integer(power) else {
                return Err(cursor.odd("the power of a decimal fraction is an integer"));
            };
            let power = i64::try_from(power).ok().filter(|power| *power < i64::MAX);
            let power = power.ok_or_else(|| over("power of ten over 63 bits"))?;
            let Some((minus, value)) = cursor.value()? else { return Ok(None) };
            if pair.is_indefinite() {
                let Some(end) = cursor.head()? else { return Ok(None) };
                if !is_break(end) {
                    return Err(cursor.odd("a decimal fraction is an array of two"));
                }
            }
            show(minus, value, if negative { -power } else { power }, &mut out);
        }
        TAG_JSON => {
            let Some(text) = cursor.bytes()? else { return Ok(None) };
            let text = str::from_utf8(&text).ok().filter(|text| is_number(text));
            out.push_str(text.ok_or_else(|| cursor.odd("embedded JSON that is no number"))?);
        }
        _ => {
            cursor.at = 0;
            let Some((minus, value)) = cursor.value()? else { return Ok(None) };
            out.push_str(if minus { "-" } else { "" });
            out.push_str(&value.to_string());
        }
    }
    Ok(Some((out, cursor.at)))
}

/// Sign and size of an integer.
fn integer(head: Head) -> Option<(bool, u128)> {
    match head.major {
        Major::Unsigned => Some((false, u128::from(head.argument))),
        Major::Negative => Some((true, u128::from(head.argument) + 1)),
        _ => None,
    }
}

/// The end of what has an indefinite length (RFC 8949 §3.2.1).
fn is_break(head: Head) -> bool {
    head.major == Major::Simple && head.is_indefinite()
}

struct Cursor<'a> {
    input: &'a [u8],
    at: usize,
    offset: u64,
}

impl<'a> Cursor<'a> {
    fn odd(&self, what: &str) -> Error {
        malformed(self.offset + self.at as u64, what)
    }

    fn head(&mut self) -> Result<Option<Head>, Error> {
        let rest = self.input.get(self.at..).unwrap_or_default();
        let head = Head::take(rest);
        let head = head.map_err(|e| super::item_error(e, self.offset + self.at as u64))?;
        self.at += head.map_or(0, |head| usize::from(head.len));
        Ok(head)
    }

    /// A byte string no longer than the longest number, in one piece or in chunks
    /// (RFC 8949 §3.2.3).
    fn bytes(&mut self) -> Result<Option<Cow<'a, [u8]>>, Error> {
        let Some(head) = self.head()? else { return Ok(None) };
        if head.major != Major::Bytes {
            return Err(self.odd("a byte string is due"));
        }
        if !head.is_indefinite() {
            return Ok(self.piece(head, 0)?.map(Cow::Borrowed));
        }
        // Empty chunks count as well: how many are looked at again with each part must be bounded.
        let (begin, mut whole) = (self.at, Vec::new());
        loop {
            let Some(head) = self.head()? else { return Ok(None) };
            if is_break(head) {
                return Ok(Some(Cow::Owned(whole)));
            }
            if head.major != Major::Bytes || head.is_indefinite() {
                return Err(self.odd("a chunk of another type"));
            }
            let Some(piece) = self.piece(head, self.at - begin)? else { return Ok(None) };
            whole.extend_from_slice(piece);
        }
    }

    /// The bytes behind the head of a byte string, where `before` of the same number came already.
    fn piece(&mut self, head: Head, before: usize) -> Result<Option<&'a [u8]>, Error> {
        let room = super::scan::MAX_NUMBER.checked_sub(before);
        let len = usize::try_from(head.argument).ok().filter(|len| room >= Some(*len));
        let len = len.ok_or_else(|| over("a number is too long"))?;
        let bytes = self.input.get(self.at..self.at + len);
        self.at += bytes.map_or(0, <[u8]>::len);
        Ok(bytes)
    }

    /// An integer or a bignum.
    fn value(&mut self) -> Result<Option<(bool, u128)>, Error> {
        let Some(head) = self.head()? else { return Ok(None) };
        if let Some(value) = integer(head) {
            return Ok(Some(value));
        }
        let negative = match (head.major, head.argument) {
            (Major::Tag, TAG_BIGNUM) => false,
            (Major::Tag, TAG_NEGATIVE_BIGNUM) => true,
            _ => return Err(self.odd("an integer is due")),
        };
        let Some(bytes) = self.bytes()? else { return Ok(None) };
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let digits = bytes.get(zeros..).unwrap_or_default();
        if digits.len() > 16 {
            return Err(over("a bignum over 128 bits"));
        }
        let value = digits.iter().fold(0, |value: u128, byte| value << 8 | u128::from(*byte));
        let value = if negative { value.checked_add(1) } else { Some(value) };
        let value = value.ok_or_else(|| over("a bignum over 128 bits"))?;
        Ok(Some((negative, value)))
    }
}
