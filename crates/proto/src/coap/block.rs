//! The value of a block option: which block of a body, whether more follow, how large they are
//! (RFC 7959 §2.2, RFC 9177 §4.1).

use super::Uint;
use super::option;
use crate::Error;

/// Greatest number of a block: 20 bits.
pub const MAX_NUM: u32 = 0xf_ffff;
/// The size exponent that stands for BERT (RFC 8323 §6), and is reserved over datagrams.
pub const BERT: u8 = 7;
/// Greatest size exponent of a datagram's block: 1024 bytes.
pub const MAX_SZX: u8 = 6;
/// What a block of BERT consists of, in bytes.
const BERT_UNIT_BYTES: usize = 1024;

/// Which part of a body a message carries or asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The number of the block, from 0, in blocks of its size.
    pub num: u32,
    /// Whether more follow; in a request for a response's block without meaning, and false.
    pub more: bool,
    /// The exponent: blocks have 2^(szx + 4) bytes, except [`BERT`].
    pub szx: u8,
}

impl Block {
    /// The value of an option of at most three bytes. `allows_bert`: over a reliable transport.
    ///
    /// A size exponent of 7 is the peer's error elsewhere; RFC 7959 §2.2 asks to answer 4.00.
    pub fn decode(value: &[u8], allows_bert: bool) -> Result<Self, Error> {
        let what = "a block option in more than three bytes";
        let bits = option::uint(value).filter(|_| value.len() <= 3);
        let bits = bits.ok_or(Error::Peer { what, value: value.len() as u64 })?;
        let szx = u8::try_from(bits & 7).unwrap_or(BERT);
        if szx == BERT && !allows_bert {
            return Err(Error::Peer { what: "reserved block size exponent", value: 7 });
        }
        Ok(Self { num: bits >> 4, more: bits & 8 != 0, szx })
    }

    /// The option's bytes; refuses a number over [`MAX_NUM`] and an exponent over [`BERT`].
    pub fn encode(self) -> Result<Uint, Error> {
        if self.num > MAX_NUM {
            let (value, limit) = (self.num.into(), MAX_NUM.into());
            return Err(Error::Limit { what: "number of a block", value, limit });
        }
        if self.szx > BERT {
            return Err(Error::Caller { what: "a block size exponent over 7" });
        }
        Ok(Uint::new(self.num << 4 | u32::from(self.more) << 3 | u32::from(self.szx)))
    }

    /// Bytes of a block of this size; of BERT's unit, of which a message may have several.
    #[must_use]
    pub fn size_bytes(self) -> usize {
        if self.szx >= BERT { BERT_UNIT_BYTES } else { 16 << self.szx }
    }

    /// Where in the body the block begins.
    #[must_use]
    pub fn offset(self) -> usize {
        usize::try_from(self.num).unwrap_or(usize::MAX).saturating_mul(self.size_bytes())
    }

    /// Whether a payload of `len` bytes can be this block: one before the last is full, of BERT a
    /// multiple of 1024 bytes; the last is at most full (RFC 7959 §2.2, RFC 8323 §6).
    #[must_use]
    pub fn is_length(self, len: usize) -> bool {
        let size = self.size_bytes();
        match (self.szx >= BERT, self.more) {
            (true, true) => len > 0 && len.is_multiple_of(size),
            (true, false) => true,
            (false, true) => len == size,
            (false, false) => len <= size,
        }
    }

    /// The block of size `szx` that begins where this one does, if it does begin one.
    #[must_use]
    pub fn resized(self, szx: u8) -> Option<Self> {
        let other = Self { num: 0, more: self.more, szx };
        let offset = self.offset();
        if !offset.is_multiple_of(other.size_bytes()) {
            return None;
        }
        let num = u32::try_from(offset / other.size_bytes()).ok()?;
        (num <= MAX_NUM).then_some(Self { num, ..other })
    }

    /// The greatest exponent whose blocks have at most `bytes`; 0 where not even those of 16 fit.
    #[must_use]
    pub fn szx_for(bytes: usize) -> u8 {
        (0..=MAX_SZX).rev().find(|szx| 16 << szx <= bytes).unwrap_or(0)
    }
}
