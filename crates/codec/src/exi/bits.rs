//! Bits and bytes of a stream: n-bit and Unsigned integers and characters (EXI §7.1).

use super::text::{Text, special};

/// What stops a reader inside; the decoder adds the codec's name and the offset. Two words, for a
/// reference to a text is one: so results come back in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The input ends inside an event.
    Short,
    /// Not what EXI allows.
    Bad(&'static &'static str),
    /// A limit, by name.
    Limit(&'static &'static str),
}

/// What characters above 0x7f have set.
const HIGH: u64 = 0x8080_8080_8080_8080;
/// Eight blanks.
const BLANKS: u64 = 0x2020_2020_2020_2020;

/// ⌈log2(count)⌉: bits of an n-bit integer that tells `count` things apart.
#[inline]
pub(crate) fn width(count: usize) -> u32 {
    if count < 2 { 0 } else { usize::BITS - (count - 1).leading_zeros() }
}

/// Writes bits, most significant first, or whole bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer {
    /// Whole bytes.
    pub(crate) out: Vec<u8>,
    acc: u64,
    /// Bits of `acc` that are not out, below 32.
    used: u32,
    aligned: bool,
}

impl Writer {
    pub(crate) fn new(aligned: bool) -> Self {
        Self { aligned, ..Self::default() }
    }

    #[inline(always)]
    fn push(&mut self, value: u32, bits: u32) {
        debug_assert!(bits <= 32 && (bits == 32 || u64::from(value) < 1 << bits));
        self.acc = self.acc << bits | u64::from(value);
        self.used += bits;
        if self.used >= 32 {
            self.flush();
        }
    }

    /// The first 32 of the bits that are not out.
    fn flush(&mut self) {
        self.used -= 32;
        #[expect(clippy::cast_possible_truncation, reason = "the upper bits are out")]
        self.out.extend_from_slice(&((self.acc >> self.used) as u32).to_be_bytes());
    }

    /// n-bit Unsigned Integer (EXI §7.1.9): in bytes, least first, where streams are aligned.
    #[inline(always)]
    pub(crate) fn bits(&mut self, value: u32, bits: u32) {
        if self.aligned { self.whole(value, bits) } else { self.push(value, bits) }
    }

    fn whole(&mut self, value: u32, bits: u32) {
        if bits > 8 {
            let bytes = value.to_le_bytes();
            self.out.extend_from_slice(&bytes[..bits.div_ceil(8) as usize]);
        } else if bits > 0 {
            #[expect(clippy::cast_possible_truncation, reason = "eight bits at most")]
            self.out.push(value as u8);
        }
    }

    #[inline]
    pub(crate) fn byte(&mut self, value: u8) {
        if self.aligned {
            self.out.push(value);
        } else {
            self.push(u32::from(value), 8);
        }
    }

    /// Unsigned Integer (EXI §7.1.6).
    #[inline(always)]
    pub(crate) fn unsigned(&mut self, value: u64) {
        if value < 0x80 {
            #[expect(clippy::cast_possible_truncation, reason = "below 0x80")]
            self.byte(value as u8);
        } else {
            self.long_unsigned(value);
        }
    }

    fn long_unsigned(&mut self, mut value: u64) {
        while value >= 0x80 {
            #[expect(clippy::cast_possible_truncation, reason = "seven bits are wanted")]
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        #[expect(clippy::cast_possible_truncation, reason = "below 0x80")]
        self.byte(value as u8);
    }

    /// Characters of a string by code point (EXI §7.1.10), without the length; `ascii` says that
    /// they are below 0x80.
    #[inline]
    pub(crate) fn chars(&mut self, text: &str, ascii: bool) {
        if ascii {
            self.bytes(text.as_bytes());
        } else {
            text.chars().for_each(|c| self.unsigned(u64::from(u32::from(c))));
        }
    }

    /// Bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        if self.aligned {
            return self.out.extend_from_slice(bytes);
        }
        let (eights, rest) = bytes.as_chunks::<8>();
        for eight in eights {
            let word = u64::from_be_bytes(*eight);
            // What was there is up to 31 bits; as many of the word take their place.
            let whole = self.acc << (63 - self.used) << 1 | word >> self.used;
            self.out.extend_from_slice(&whole.to_be_bytes());
            self.acc = word;
        }
        let (fours, rest) = rest.as_chunks::<4>();
        for four in fours {
            self.push(u32::from_be_bytes(*four), 32);
        }
        for &byte in rest {
            self.push(u32::from(byte), 8);
        }
    }

    /// Length in characters plus `extra`, and the characters.
    pub(crate) fn string(&mut self, text: &str, extra: u64) {
        let ascii = text.is_ascii();
        let length = if ascii { text.len() } else { text.chars().count() };
        self.unsigned(length as u64 + extra);
        self.chars(text, ascii);
    }

    /// Whole bytes that are ready go to `out`.
    pub(crate) fn drain(&mut self, out: &mut Vec<u8>) {
        if out.is_empty() {
            std::mem::swap(out, &mut self.out);
        } else {
            out.append(&mut self.out);
        }
    }

    /// Zeros up to the next byte.
    pub(crate) fn align(&mut self) {
        let fill = self.used.wrapping_neg() % 8;
        self.push(0, fill);
        while self.used > 0 {
            self.used -= 8;
            #[expect(clippy::cast_possible_truncation, reason = "the upper bits are out")]
            self.out.push((self.acc >> self.used) as u8);
        }
    }
}

/// Reads what [`Writer`] writes. Behind the end come zeros, and [`Reader::over`] says so: thus the
/// inner path has no results to look at. The position is all its state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    data: &'a [u8],
    /// How many bits there are.
    end: usize,
    /// Position in bits.
    pub(crate) at: usize,
    aligned: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(data: &'a [u8], at: usize, aligned: bool) -> Self {
        Self { data, end: data.len().saturating_mul(8), at, aligned }
    }

    /// Whether more was read than there is.
    #[inline]
    pub(crate) fn over(&self) -> bool {
        self.at > self.end
    }

    /// Bits that are left.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.end.saturating_sub(self.at)
    }

    /// The next 64 bits but for up to seven at the end.
    #[inline]
    fn window(&self) -> u64 {
        let byte = self.at >> 3;
        let word = match self.data.get(byte..byte + 8) {
            Some(&[a, b, c, d, e, f, g, h]) => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            _ => self.tail(byte),
        };
        word << (self.at & 7)
    }

    #[cold]
    fn tail(&self, byte: usize) -> u64 {
        let rest = self.data.get(byte..).unwrap_or_default();
        let mut word = [0; 8];
        word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        u64::from_be_bytes(word)
    }

    #[inline]
    fn take(&mut self, bits: u32) -> u32 {
        if bits == 0 {
            return 0;
        }
        let value = self.window() >> (64 - bits);
        self.at += bits as usize;
        #[expect(clippy::cast_possible_truncation, reason = "at most 32 bits")]
        return value as u32;
    }

    /// n-bit Unsigned Integer of at most 32 bits.
    #[inline(always)]
    pub(crate) fn bits(&mut self, bits: u32) -> u32 {
        if self.aligned { self.bits_in_bytes(bits) } else { self.take(bits) }
    }

    fn bits_in_bytes(&mut self, bits: u32) -> u32 {
        let bytes = bits.div_ceil(8);
        self.take(bytes * 8).swap_bytes().checked_shr(32 - bytes * 8).unwrap_or(0)
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> u8 {
        #[expect(clippy::cast_possible_truncation, reason = "eight bits")]
        return self.take(8) as u8;
    }

    /// Unsigned Integer below 2^63.
    #[inline]
    pub(crate) fn unsigned(&mut self) -> Result<u64, Fault> {
        let first = self.byte();
        if first < 0x80 { Ok(u64::from(first)) } else { self.more_unsigned(first) }
    }

    #[inline(never)]
    fn more_unsigned(&mut self, first: u8) -> Result<u64, Fault> {
        let mut value = u64::from(first & 0x7f);
        for shift in (7..63).step_by(7) {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Fault::Bad(&"an integer of more than 63 bits"))
    }

    /// A length in items, which nobody may trust.
    #[inline]
    pub(crate) fn length(&mut self) -> Result<usize, Fault> {
        usize::try_from(self.unsigned()?).map_err(|_| Fault::Short)
    }

    /// The next 64 bits, all of them.
    #[inline(always)]
    fn eight(&self) -> u64 {
        let (byte, shift) = (self.at >> 3, self.at & 7);
        let rest = self.data.get(byte..).unwrap_or_default();
        match (rest.first_chunk(), rest.get(8)) {
            (Some(first), Some(&last)) => {
                u64::from_be_bytes(*first) << shift | (u64::from(last) << shift) >> 8
            }
            // Nothing is behind them: a shift brings zeros.
            _ => self.tail(byte) << shift,
        }
    }

    /// Appends `count` characters in UTF-8, and says whether XML has them as they are.
    pub(crate) fn chars(&mut self, count: usize, to: &mut Text) -> Result<bool, Fault> {
        if count > self.left() / 8 {
            return Err(Fault::Short);
        }
        to.room(count);
        let begin = to.len();
        let mut left = count;
        let mut odd = 0;
        loop {
            let mut word = self.eight();
            // Eight characters below 0x80 at once, the usual case.
            while left >= 8 && word & HIGH == 0 {
                to.put(word.to_be_bytes(), 8);
                odd |= special(word);
                self.at += 64;
                left -= 8;
                word = self.eight();
            }
            if left == 0 {
                break;
            }
            let ascii = (word & HIGH).leading_zeros() as usize / 8;
            let taken = left.min(ascii);
            if taken > 0 {
                to.put(word.to_be_bytes(), taken);
                let mask = u64::MAX << (64 - taken * 8);
                odd |= special(word & mask | BLANKS & !mask);
                self.at += taken * 8;
                left -= taken;
            }
            if left > 0 {
                odd |= self.long_char(to)?;
                left -= 1;
                to.room(left);
            }
        }
        if odd != 0 && to.since(begin).iter().any(|&byte| is_control(byte)) {
            return Err(NO_CHARACTER);
        }
        Ok(odd == 0)
    }

    /// Appends a character of several bytes, as a rule one from 0x80 on; else the answer is not 0.
    fn long_char(&mut self, to: &mut Text) -> Result<u64, Fault> {
        let code = self.unsigned()?;
        let c = u32::try_from(code).ok().and_then(char::from_u32);
        let c = c.filter(|&c| is_xml(c)).ok_or(NO_CHARACTER)?;
        let mut eight = [0; 8];
        let length = c.encode_utf8(&mut eight).len();
        to.room(length);
        to.put(eight, length);
        Ok(u64::from(code < 0x80))
    }

    /// A string of `length` bytes as they are.
    pub(crate) fn bytes(&mut self, length: usize, to: &mut Vec<u8>) -> Result<(), Fault> {
        if length > self.left() / 8 {
            return Err(Fault::Short);
        }
        if self.at & 7 == 0 {
            let begin = self.at >> 3;
            to.extend_from_slice(self.data.get(begin..begin + length).unwrap_or_default());
            self.at += length * 8;
        } else {
            to.extend((0..length).map(|_| self.byte()));
        }
        Ok(())
    }

    /// Length and characters.
    pub(crate) fn string(&mut self, to: &mut Text) -> Result<bool, Fault> {
        let length = self.length()?;
        self.chars(length, to)
    }

    /// To the next byte.
    pub(crate) fn align(&mut self) {
        self.at = self.at.div_ceil(8) * 8;
    }
}

const NO_CHARACTER: Fault = Fault::Bad(&"not a character of XML");

fn is_control(byte: u8) -> bool {
    byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r')
}

/// Char of XML 1.0, production 2, as far as it is not already one of Unicode's.
#[inline]
pub(crate) fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{fffd}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::{super::text::Span, *};

    #[test]
    fn what_is_written_is_read() {
        for aligned in [false, true] {
            let mut writer = Writer::new(aligned);
            let text = "Ein längerer Text, mit 𝄞 und mehr als sieben Zeichen";
            for bits in 0..=32u32 {
                writer.bits(u32::try_from((1u64 << bits) - 1).unwrap(), bits);
                writer.unsigned((1u64 << bits) + 5);
                writer.string(text, 2);
            }
            writer.align();
            let mut reader = Reader::new(&writer.out, 0, aligned);
            for bits in 0..=32u32 {
                assert_eq!(u64::from(reader.bits(bits)), (1u64 << bits) - 1);
                assert_eq!(reader.unsigned(), Ok((1u64 << bits) + 5));
                let length = reader.length().unwrap() - 2;
                let mut read = Text::default();
                assert_eq!(reader.chars(length, &mut read), Ok(true));
                assert_eq!(read.get(Span::new(0, read.len()).unwrap()), text.as_bytes());
            }
            reader.align();
            assert_eq!(reader.left(), 0);
            assert!(!reader.over());
            reader.byte();
            assert!(reader.over());
        }
    }

    #[test]
    fn widths_are_those_of_the_recommendation() {
        assert_eq!([0, 1, 2, 3, 4, 5, 256, 257].map(width), [0, 0, 1, 2, 2, 3, 8, 9]);
    }
}
