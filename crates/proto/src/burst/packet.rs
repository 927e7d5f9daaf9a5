//! Byte layout of the datagrams: a number, then chunks until the end, integers as in RFC 9000 §16.
//!
//! | type | | behind it |
//! | --- | --- | --- |
//! | 0x01 + m + a | SYMBOL | generation; if a, how far before it the one is that is read first |
//! | | | length of the generation; if m, how many symbols it has and which this is; the symbol |
//! | 0x08 | ACK | greatest number; delay in units of 2^6 µs; how many further ranges |
//! | | | length of the first range; for each further one the gap before it and its length |
//! | 0x09 | PROBE | nothing: an ACK, please |
//!
//! Bits: m = 2, the generation has more than one symbol; a = 4, another has to be read before it.
//! Lengths of ranges and gaps are one less than the numbers in them (RFC 9000 §19.3.1).

use std::time::Duration;

use bytes::Bytes;

use super::code::Shape;
use crate::{Error, varint};

const SYMBOL: u8 = 0x01;
const MORE: u8 = 0x02;
const AFTER: u8 = 0x04;
const ACK: u8 = 0x08;
const PROBE: u8 = 0x09;
/// Units of the delay in an ACK, as a power of two of microseconds.
const DELAY_LOG: u32 = 6;
/// Most ranges that an ACK names, and most that are read of one.
pub(super) const MAX_RANGES: usize = 32;
/// What all in a datagram is, where it cannot be read.
const WHAT: &str = "a datagram";

/// A symbol of a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    pub(super) generation: u64,
    /// The generation that has to be read before this one; 0 for none.
    pub(super) after: u64,
    pub(super) shape: Shape,
    /// Which it is; below the number of source symbols a piece of the generation itself.
    pub(super) index: usize,
    pub(super) bytes: Bytes,
}

impl Symbol {
    /// Bytes that it takes in a datagram.
    pub(super) fn wire_len(&self) -> usize {
        let mut numbers = vec![self.generation, self.shape.length as u64];
        if self.after > 0 {
            numbers.push(self.generation - self.after);
        }
        if self.shape.count > 1 {
            numbers.extend([self.shape.count as u64, self.index as u64]);
        }
        1 + numbers.into_iter().map(varint::encoded_len).sum::<usize>() + self.bytes.len()
    }
}

/// Numbers of datagrams that came, the greatest range first, each from its first to its last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ack {
    /// How long ago the greatest came.
    pub(super) delay: Duration,
    pub(super) ranges: Vec<(u64, u64)>,
}

/// What is in a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Chunk {
    Symbol(Symbol),
    Ack(Ack),
    Probe,
}

/// Writes a datagram.
#[derive(Debug)]
pub(super) struct Writer {
    out: Vec<u8>,
    most: usize,
}

impl Writer {
    /// One of this number, of no more bytes than `most`.
    pub(super) fn new(number: u64, most: usize) -> Self {
        let mut out = Vec::with_capacity(most);
        varint::encode(number, &mut out);
        Self { out, most }
    }

    /// Bytes that may be added.
    pub(super) fn room_bytes(&self) -> usize {
        self.most.saturating_sub(self.out.len())
    }

    pub(super) fn push(&mut self, chunk: &Chunk) {
        let out = &mut self.out;
        match chunk {
            Chunk::Symbol(symbol) => {
                let Shape { length, count } = symbol.shape;
                let more = if count > 1 { MORE } else { 0 };
                let after = if symbol.after > 0 { AFTER } else { 0 };
                out.push(SYMBOL | more | after);
                varint::encode(symbol.generation, out);
                if symbol.after > 0 {
                    varint::encode(symbol.generation - symbol.after, out);
                }
                varint::encode(length as u64, out);
                if count > 1 {
                    varint::encode(count as u64, out);
                    varint::encode(symbol.index as u64, out);
                }
                out.extend_from_slice(&symbol.bytes);
            }
            Chunk::Ack(ack) => {
                let Some(((first, last), further)) = ack.ranges.split_first() else { return };
                out.push(ACK);
                varint::encode(*last, out);
                let delay = ack.delay.as_micros() >> DELAY_LOG;
                varint::encode(u64::try_from(delay).unwrap_or(varint::MAX), out);
                varint::encode(further.len() as u64, out);
                varint::encode(last - first, out);
                let mut below = *first;
                for (first, last) in further {
                    // At least one number is between two ranges.
                    varint::encode(below - last - 2, out);
                    varint::encode(last - first, out);
                    below = *first;
                }
            }
            Chunk::Probe => out.push(PROBE),
        }
    }

    pub(super) fn finish(self) -> Bytes {
        self.out.into()
    }
}

/// Reads a datagram: its number, and what is in it. Errors: what no sender of ours sends.
pub(super) fn decode(datagram: &Bytes) -> Result<(u64, Vec<Chunk>), Error> {
    let mut rest = &datagram[..];
    let number = varint::decode(&mut rest, WHAT)?;
    let mut chunks = Vec::new();
    while let Some((&kind, behind)) = rest.split_first() {
        rest = behind;
        chunks.push(match kind {
            PROBE => Chunk::Probe,
            ACK => Chunk::Ack(decode_ack(&mut rest)?),
            _ if kind & !(MORE | AFTER) == SYMBOL => {
                Chunk::Symbol(decode_symbol(kind, datagram, &mut rest)?)
            }
            _ => {
                let value = u64::from(kind);
                return Err(Error::Peer { what: "unknown type of a chunk", value });
            }
        });
    }
    Ok((number, chunks))
}

fn decode_symbol(kind: u8, datagram: &Bytes, rest: &mut &[u8]) -> Result<Symbol, Error> {
    let generation = varint::decode(rest, WHAT)?;
    let mut after = 0;
    if kind & AFTER != 0 {
        let before = varint::decode(rest, WHAT)?;
        let is_before = |after: &u64| before > 0 && *after > 0;
        after = generation.checked_sub(before).filter(is_before).ok_or(Error::Peer {
            what: "a generation behind none that is before it",
            value: generation,
        })?;
    }
    let length = varint::decode(rest, WHAT)?;
    let (count, index) = match kind & MORE {
        0 => (1, 0),
        _ => (varint::decode(rest, WHAT)?, varint::decode(rest, WHAT)?),
    };
    let shape = Shape::of_peer(length, count)?;
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    if index >= shape.symbols() {
        let (value, limit) = (index as u64, shape.symbols() as u64 - 1);
        return Err(Error::Limit { what: "the index of a symbol", value, limit });
    }
    let (bytes, behind) =
        rest.split_at_checked(shape.symbol_bytes()).ok_or(Error::Truncated { what: "a symbol" })?;
    *rest = behind;
    Ok(Symbol { generation, after, shape, index, bytes: datagram.slice_ref(bytes) })
}

fn decode_ack(rest: &mut &[u8]) -> Result<Ack, Error> {
    let absurd = |value| Error::Peer { what: "a range of numbers below 0", value };
    let mut last = varint::decode(rest, WHAT)?;
    let delay = varint::decode(rest, WHAT)?;
    let further = varint::decode(rest, WHAT)?;
    if further >= MAX_RANGES as u64 {
        let limit = MAX_RANGES as u64 - 1;
        return Err(Error::Limit { what: "the number of ranges", value: further, limit });
    }
    let mut ranges = Vec::new();
    for at in 0..=further {
        if at > 0 {
            let gap = varint::decode(rest, WHAT)?;
            last = last.checked_sub(gap.saturating_add(2)).ok_or(absurd(gap))?;
        }
        let length = varint::decode(rest, WHAT)?;
        let first = last.checked_sub(length).ok_or(absurd(length))?;
        ranges.push((first, last));
        last = first;
    }
    let delay = Duration::from_micros(delay.saturating_mul(1 << DELAY_LOG));
    Ok(Ack { delay, ranges })
}
