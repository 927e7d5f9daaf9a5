//! The erasure code of a generation: of its source symbols and as many repair symbols as one likes,
//! any that are as many as the source symbols restore it (Reed–Solomon).

use bytes::{Bytes, BytesMut};

use super::MAX_GENERATION_BYTES;
use crate::Error;

/// Most source symbols of a generation.
pub(super) const MAX_SOURCE: usize = 160;
/// Repair symbols of one with a single source symbol, all of them copies; of others, beside twice
/// the number of source symbols.
const MIN_REPAIR: usize = 8;

/// How a generation is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Bytes of all of it.
    pub(super) length: usize,
    /// Source symbols.
    pub(super) count: usize,
}

impl Shape {
    /// A generation of this length in symbols of no more bytes than `most`.
    pub(super) fn new(length: usize, most: usize) -> Self {
        // Symbols have an even length.
        Self { length, count: length.div_ceil(most & !1).max(1) }
    }

    /// One that a peer has announced.
    pub(super) fn of_peer(length: u64, count: u64) -> Result<Self, Error> {
        let limit = MAX_GENERATION_BYTES as u64;
        if length == 0 || length > limit {
            let what = "the length of a generation";
            return Err(Error::Limit { what, value: length, limit });
        }
        if count == 0 || count > MAX_SOURCE as u64 || count > length {
            let (what, limit) = ("the number of symbols", length.min(MAX_SOURCE as u64));
            return Err(Error::Limit { what, value: count, limit });
        }
        let small = |value| usize::try_from(value).unwrap_or(0);
        Ok(Self { length: small(length), count: small(count) })
    }

    /// Bytes of each symbol: the last source symbol is filled up with zeros, unless it is the only
    /// one.
    pub(super) fn symbol_bytes(self) -> usize {
        match self.count {
            1 => self.length,
            count => self.length.div_ceil(count).next_multiple_of(2),
        }
    }

    fn repair(self) -> usize {
        2 * (self.count - 1) + MIN_REPAIR
    }

    /// Symbols that there are, repair among them.
    pub(super) fn symbols(self) -> usize {
        self.count + self.repair()
    }

    /// The source symbols.
    pub(super) fn cut(self, bytes: &Bytes) -> Vec<Bytes> {
        if self.count == 1 {
            return vec![bytes.clone()];
        }
        let each = self.symbol_bytes();
        let piece = |at: usize| {
            let (from, to) = (bytes.len().min(at * each), bytes.len().min((at + 1) * each));
            if to - from == each {
                return bytes.slice(from..to);
            }
            let mut filled = BytesMut::zeroed(each);
            filled[..to - from].copy_from_slice(&bytes[from..to]);
            filled.freeze()
        };
        (0..self.count).map(piece).collect()
    }

    /// The repair symbols of these source symbols.
    pub(super) fn repair_of(self, source: &[Bytes]) -> Vec<Bytes> {
        if self.count == 1 {
            return vec![source.first().cloned().unwrap_or_default(); self.repair()];
        }
        let made = reed_solomon_simd::encode(self.count, self.repair(), source);
        // Only a shape that does not fit the symbols fails, and this one was made for them.
        made.map_or_else(|_| Vec::new(), |made| made.into_iter().map(Bytes::from).collect())
    }

    /// All of the generation by symbols with their indices, as many different ones as there are
    /// source symbols at least.
    pub(super) fn restore<'a>(
        self,
        symbols: impl Iterator<Item = (usize, &'a Bytes)> + Clone,
    ) -> Result<BytesMut, Error> {
        let mut whole = BytesMut::with_capacity(self.count * self.symbol_bytes());
        let source = symbols.clone().filter(|(index, _)| *index < self.count);
        if self.count == 1 {
            symbols.take(1).for_each(|(_, bytes)| whole.extend_from_slice(bytes));
        } else if source.clone().count() == self.count {
            source.for_each(|(_, bytes)| whole.extend_from_slice(bytes));
        } else {
            let repair = symbols.filter(|(index, _)| *index >= self.count);
            let repair = repair.map(|(index, bytes)| (index - self.count, bytes));
            let restored =
                reed_solomon_simd::decode(self.count, self.repair(), source.clone(), repair);
            let restored = restored.map_err(|_| Error::Peer {
                what: "symbols that restore no generation",
                value: self.count as u64,
            })?;
            let mut source = source.peekable();
            for at in 0..self.count {
                match source.next_if(|(index, _)| *index == at) {
                    Some((_, bytes)) => whole.extend_from_slice(bytes),
                    None => whole.extend_from_slice(restored.get(&at).map_or(&[], |one| one)),
                }
            }
        }
        whole.truncate(self.length);
        Ok(whole)
    }
}

/// How many symbols more than `needed` to send, so that the least time is lost, as is expected: by
/// sending them, each of which takes `symbol_s`, or by what it takes to hear that too few came and
/// to send more, `penalty_s`. `loss` is the share of symbols that get lost, each by itself.
pub(super) fn repairs(
    needed: usize,
    most: usize,
    loss: f64,
    symbol_s: f64,
    penalty_s: f64,
) -> usize {
    let mut best = (f64::INFINITY, 0);
    for more in 0..=most {
        let spent = more as f64 * symbol_s;
        if spent >= best.0 {
            break;
        }
        let cost = spent + too_few(needed, more, loss) * penalty_s;
        if cost < best.0 {
            best = (cost, more);
        }
    }
    best.1
}

/// The probability that of `needed + more` symbols more than `more` get lost.
fn too_few(needed: usize, more: usize, loss: f64) -> f64 {
    let sent = needed + more;
    let mut exactly = (1.0 - loss).powi(i32::try_from(sent).unwrap_or(i32::MAX));
    let mut no_more = exactly;
    for lost in 1..=more {
        exactly *= (sent - lost + 1) as f64 / lost as f64 * loss / (1.0 - loss);
        no_more += exactly;
    }
    (1.0 - no_more).max(0.0)
}
