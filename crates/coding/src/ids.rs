//! What exchanges and paths are called.

use std::fmt;

use codec::dictionary;

/// An exchange's 128-bit id: the edge's instance and a number that it counts up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId {
    /// Drawn at random when the edge started.
    pub instance: u64,
    /// Counted up from 1 by the edge.
    pub number: u64,
}

/// In hexadecimal, as events and a person have it, the same at both ends: eight digits for the edge
/// and eight or more for the number. The edge's are of a hash, for without keys who has the
/// instance is that edge.
impl fmt::Display for ExchangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash =
            dictionary::Id::of(&[b"exchange".as_slice(), &self.instance.to_be_bytes()].concat());
        let [a, b, c, d, ..] = hash.short();
        let edge = u64::from(u32::from_be_bytes([a, b, c, d]));
        let len = (u64::BITS - self.number.leading_zeros()).div_ceil(4).max(8) as usize;
        let mut digits = [0; 24];
        write_hex(edge, &mut digits[..8]);
        write_hex(self.number, &mut digits[8..8 + len]);
        f.write_str(std::str::from_utf8(&digits[..8 + len]).unwrap_or_default())
    }
}

/// The last digits of a number, as many as there is room for. A name stands in every event, and the
/// formatter takes ten times as long.
fn write_hex(number: u64, into: &mut [u8]) {
    for (at, digit) in into.iter_mut().rev().enumerate() {
        *digit = b"0123456789abcdef"[(number >> (4 * at) & 0xf) as usize];
    }
}

/// A path to a peer for as long as the peer stays connected over it; never used twice. What both
/// ends hold (bases of deltas, names of dictionaries) is agreed on each path anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_eight_digits_for_the_edge_and_eight_or_more_for_the_number() {
        let name = |instance, number| ExchangeId { instance, number }.to_string();
        let hash = dictionary::Id::of(&[b"exchange".as_slice(), &7_u64.to_be_bytes()].concat());
        let edge = hash.to_string()[..8].to_owned();
        for (number, digits) in [
            (0, "00000000"),
            (0x1a, "0000001a"),
            (0xffff_ffff, "ffffffff"),
            (0x1_0000_0000, "100000000"),
            (u64::MAX, "ffffffffffffffff"),
        ] {
            assert_eq!(name(7, number), format!("{edge}{digits}"));
        }
    }
}
