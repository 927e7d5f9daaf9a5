//! Variable-length integers (RFC 9000 §16): two bits of length, then 6, 14, 30 or 62 bits of value.
//!
//! Longer forms than needed are accepted, as the RFC allows.

use crate::Error;

/// The greatest value that fits, 2^62 − 1.
pub const MAX: u64 = (1 << 62) - 1;

/// Appends `value` in its shortest form. Values over [`MAX`] are a caller's fault and saturate:
/// counters of that size do not occur, and a silent wrap would be worse.
pub fn encode(value: u64, out: &mut Vec<u8>) {
    let value = value.min(MAX);
    let bytes = value.to_be_bytes();
    match value {
        0..=0x3f => out.push(bytes[7]),
        0x40..=0x3fff => out.extend([bytes[6] | 0x40, bytes[7]]),
        0x4000..=0x3fff_ffff => out.extend([bytes[4] | 0x80, bytes[5], bytes[6], bytes[7]]),
        _ => {
            out.push(bytes[0] | 0xc0);
            out.extend(&bytes[1..]);
        }
    }
}

/// Bytes that [`encode`] will use for `value`.
#[must_use]
pub fn encoded_len(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Takes one integer off the front of `input`; `None` while it is incomplete.
pub fn take(input: &mut &[u8]) -> Option<u64> {
    let first = *input.first()?;
    let len = 1_usize << (first >> 6);
    let (bytes, rest) = input.split_at_checked(len)?;
    let value = bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    *input = rest;
    let value_bits = 8 * len - 2;
    Some(value & (u64::MAX >> (64 - value_bits)))
}

/// As [`take`], where an incomplete integer is an error naming `what`.
pub fn decode(input: &mut &[u8], what: &'static str) -> Result<u64, Error> {
    take(input).ok_or(Error::Truncated { what })
}

/// A length and that many bytes; a length beyond the input is an error naming `what`.
pub fn decode_bytes<'a>(input: &mut &'a [u8], what: &'static str) -> Result<&'a [u8], Error> {
    let len = decode(input, what)?;
    let len = usize::try_from(len).map_err(|_| Error::Truncated { what })?;
    let (bytes, rest) = input.split_at_checked(len).ok_or(Error::Truncated { what })?;
    *input = rest;
    Ok(bytes)
}

/// Appends a length and the bytes.
pub fn encode_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    encode(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000 §A.1, table 4 and the text below it.
    #[test]
    fn the_examples_of_the_rfc() {
        let examples: [(&[u8], u64); 5] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in examples {
            let mut input = bytes;
            assert_eq!(take(&mut input), Some(value));
            assert!(input.is_empty());
            if bytes.len() == encoded_len(value) {
                let mut out = Vec::new();
                encode(value, &mut out);
                assert_eq!(out, bytes);
            }
        }
    }

    #[test]
    fn an_incomplete_integer_takes_nothing() {
        let mut input: &[u8] = &[0xc2, 0x19];
        assert_eq!(take(&mut input), None);
        assert_eq!(input.len(), 2);
    }

    proptest::proptest! {
        #[test]
        fn what_is_encoded_decodes(value in 0..=MAX) {
            let mut out = Vec::new();
            encode(value, &mut out);
            proptest::prop_assert_eq!(out.len(), encoded_len(value));
            let mut input = out.as_slice();
            proptest::prop_assert_eq!(take(&mut input), Some(value));
        }
    }
}
