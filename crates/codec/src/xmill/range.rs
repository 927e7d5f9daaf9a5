//! The range coder: what a model expects becomes bytes, and back, by one and the same code.
//!
//! G. N. N. Martin, "Range encoding" (1979), with 64-bit arithmetic: an interval of at least 2^32
//! after each step, four bytes at a time, carries walked back into what is already written.

/// Cumulative shares of sixteen symbols in 1/32768; the first is 0, the end of the last implied.
pub(super) type Shares = [u16; 16];
/// Bits of the whole of [`Shares`].
pub(super) const SHARE_BITS: u32 = 15;
/// Bits of the whole of a binary chance.
pub(super) const CHANCE_BITS: u32 = 16;
/// Bytes that a decoder may ask for behind the end: what it reads ahead.
const AHEAD_BYTES: usize = 8;

/// Either direction: an encoder gets what to code and returns it, a decoder returns what it read.
pub(super) trait Coder {
    /// Whether symbols come out of the coder instead of going in.
    const DECODES: bool;

    /// A bit that is set with `chance` of 65536, which is neither 0 nor all.
    fn bit(&mut self, bit: bool, chance: u32) -> bool;

    /// A symbol below 16.
    fn nibble(&mut self, symbol: usize, shares: &Shares) -> usize;

    /// Whether more was read than an encoder would have written.
    #[inline(always)]
    fn is_beyond(&self) -> bool {
        false
    }
}

/// Writes behind what `out` already has.
pub(super) struct RangeEncoder<'a> {
    out: &'a mut Vec<u8>,
    low: u64,
    range: u64,
}

impl<'a> RangeEncoder<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, low: 0, range: u64::MAX }
    }

    #[inline(always)]
    fn narrow(&mut self, start: u64, size: u64) {
        let (low, carry) = self.low.overflowing_add(start);
        if carry {
            self.carry();
        }
        (self.low, self.range) = (low, size);
        if size < 1 << 32 {
            self.shift();
        }
    }

    /// Apart from the rest, for what is foreseen well needs four bytes seldom.
    #[inline(never)]
    fn shift(&mut self) {
        self.out.extend_from_slice(&self.low.to_be_bytes()[..4]);
        (self.low, self.range) = (self.low << 32, self.range << 32);
    }

    #[cold]
    fn carry(&mut self) {
        for byte in self.out.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }

    /// Writes the fewest bytes that name a number of the interval; a decoder adds zeros.
    pub(super) fn finish(mut self) {
        for bytes in 1..=4_usize {
            let rest = u64::MAX >> (8 * bytes);
            let (up, carry) = self.low.overflowing_add(rest);
            let number = up & !rest;
            if number.wrapping_sub(self.low) < self.range {
                if carry {
                    self.carry();
                }
                self.low = number;
                self.out.extend_from_slice(&number.to_be_bytes()[..bytes]);
                return;
            }
        }
    }
}

impl Coder for RangeEncoder<'_> {
    const DECODES: bool = false;

    #[inline(always)]
    fn bit(&mut self, bit: bool, chance: u32) -> bool {
        let split = (self.range >> CHANCE_BITS).wrapping_mul(u64::from(chance));
        let other = u64::from(bit).wrapping_sub(1);
        self.narrow(split & other, split ^ (split ^ self.range.wrapping_sub(split)) & other);
        bit
    }

    #[inline(always)]
    fn nibble(&mut self, symbol: usize, shares: &Shares) -> usize {
        let unit = self.range >> SHARE_BITS;
        let start = unit * u64::from(shares[symbol & 15]);
        let end =
            if symbol == 15 { self.range } else { unit * u64::from(shares[(symbol & 15) + 1]) };
        self.narrow(start, end - start);
        symbol
    }
}

/// Reads a slice; behind its end come zeros.
pub(super) struct RangeDecoder<'a> {
    input: &'a [u8],
    at: usize,
    code: u64,
    range: u64,
}

impl<'a> RangeDecoder<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        let mut this = Self { input, at: 0, code: 0, range: u64::MAX };
        let high = this.four();
        this.code = high << 32 | this.four();
        this
    }

    fn four(&mut self) -> u64 {
        let at = self.at;
        self.at += 4;
        if let Some(four) = self.input.get(at..at + 4).and_then(|four| four.first_chunk::<4>()) {
            return u64::from(u32::from_be_bytes(*four));
        }
        let mut four = [0; 4];
        if let Some(rest) = self.input.get(at..) {
            four[..rest.len()].copy_from_slice(rest);
        }
        u64::from(u32::from_be_bytes(four))
    }

    #[inline(always)]
    fn narrow(&mut self, start: u64, size: u64) {
        self.code = self.code.wrapping_sub(start);
        self.range = size;
        if size < 1 << 32 {
            self.shift();
        }
    }

    /// Apart from the rest, as in the encoder.
    #[inline(never)]
    fn shift(&mut self) {
        self.code = self.code << 32 | self.four();
        self.range <<= 32;
    }

    /// Whether all of the input was needed.
    pub(super) fn is_used_up(&self) -> bool {
        self.at >= self.input.len() && !self.is_beyond()
    }
}

impl Coder for RangeDecoder<'_> {
    const DECODES: bool = true;

    #[inline(always)]
    fn bit(&mut self, _: bool, chance: u32) -> bool {
        let split = (self.range >> CHANCE_BITS).wrapping_mul(u64::from(chance));
        // By arithmetic, also where a bit is expected: a branch taken wrongly throws away what was
        // begun behind it, slots that are on their way from the memory with it.
        let bit = self.code < split;
        let other = u64::from(bit).wrapping_sub(1);
        let size = split ^ (split ^ self.range.wrapping_sub(split)) & other;
        self.narrow(split & other, size);
        bit
    }

    #[inline(always)]
    fn nibble(&mut self, _: usize, shares: &Shares) -> usize {
        let unit = self.range >> SHARE_BITS;
        let share = (self.code / unit).min((1 << SHARE_BITS) - 1) as i16;
        let mut below = 0_i16;
        for &start in shares {
            below = below.wrapping_add(i16::from(start.cast_signed() <= share));
        }
        // The first share is 0, so that at least one lies below.
        let symbol = (usize::from(below.cast_unsigned()) - 1) & 15;
        let start = unit * u64::from(shares[symbol]);
        let end = if symbol == 15 { self.range } else { unit * u64::from(shares[symbol + 1]) };
        self.narrow(start, end - start);
        symbol
    }

    #[inline(always)]
    fn is_beyond(&self) -> bool {
        self.at > self.input.len() + AHEAD_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EVEN: Shares = [
        0, 2048, 4096, 6144, 8192, 10240, 12288, 14336, 16384, 18432, 20480, 22528, 24576, 26624,
        28672, 30720,
    ];

    proptest! {
        #[test]
        fn symbols_come_back(
            symbols in prop::collection::vec((0_usize..16, any::<bool>(), 1_u32..65536), 0..400)
        ) {
            let mut out = vec![255; 3];
            let mut encoder = RangeEncoder::new(&mut out);
            for &(symbol, bit, chance) in &symbols {
                encoder.nibble(symbol, &EVEN);
                encoder.bit(bit, chance);
            }
            encoder.finish();
            prop_assert_eq!(&out[..3], &[255; 3]);
            let mut decoder = RangeDecoder::new(&out[3..]);
            for &(symbol, bit, chance) in &symbols {
                prop_assert_eq!(decoder.nibble(0, &EVEN), symbol);
                prop_assert_eq!(decoder.bit(false, chance), bit);
            }
            prop_assert!(decoder.is_used_up());
        }
    }
}
