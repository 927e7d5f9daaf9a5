//! Blocks of messages in which a stranger's text and a secret may meet take no length of their own
//! on the carrier, but one of a few steps, and which one is chance.
//!
//! Who guesses a secret right saves a byte or two, and sees that. A step alone hides it only from
//! who cannot choose the length of the rest: else a guess is put where one byte less is a step
//! less. So before it is rounded up, a length grows by a sum of two chances, which is a triangle:
//! near its ends it is rare, so that no length is told from the next one by being possible at all.
//! For two lengths that differ by up to two bytes the observer gains at most a hundredth of a bit
//! ([`STEP_BYTES`]); whoever can have a hundred such messages sent gains one bit.
//!
//! The chance is a hash of the block's bytes, with a key that ends with the process: who has the
//! same message sent again sees the same length again, and learns nothing by it.

use codec::dictionary::Id;
use proto::stream::{Data, Frame, MIN_PADDING_BYTES};

/// Lengths are multiples of this. A block grows by it and a half on average, and by no more than
/// three of them; the bits that an observer gains fall with its square.
const STEP_BYTES: usize = 24;

/// What a block that is leaving has on the carrier so far.
#[derive(Debug, Default)]
pub(crate) struct Block {
    bytes: usize,
    hash: Option<Id>,
}

impl Block {
    /// A piece leaves; what goes behind it, if it ends its block. `key` is known to nobody else.
    pub(crate) fn note(&mut self, key: u64, piece: &Data) -> Option<Frame> {
        self.bytes += piece.wire_len();
        let before = self.hash.map_or([0; 32], |hash| hash.0);
        let hash = Id::of(&[&key.to_be_bytes()[..], &before, &piece.bytes].concat());
        self.hash = Some(hash);
        piece.block_end?;
        let chance = |at: usize| {
            let bytes = hash.0.get(at..at + 2).unwrap_or_default();
            bytes.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)) % STEP_BYTES
        };
        let padding = padded(self.bytes, [chance(0), chance(2)]) - self.bytes;
        *self = Self::default();
        Some(Frame::Padding(padding))
    }
}

/// The length that a block of so many bytes gets.
fn padded(bytes: usize, chances: [usize; 2]) -> usize {
    (bytes + MIN_PADDING_BYTES + chances[0] + chances[1]).next_multiple_of(STEP_BYTES)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;

    use super::*;

    /// How probable each length is of a block with so many bytes.
    fn law(bytes: usize) -> BTreeMap<usize, f64> {
        let mut law = BTreeMap::new();
        for a in 0..STEP_BYTES {
            for b in 0..STEP_BYTES {
                let weight = 1.0 / (STEP_BYTES * STEP_BYTES) as f64;
                *law.entry(padded(bytes, [a, b])).or_insert(0.0) += weight;
            }
        }
        law
    }

    /// Bits that one length tells of which of two that are equally probable was padded.
    fn bits(one: usize, other: usize) -> f64 {
        let (one, other) = (law(one), law(other));
        let part =
            |p: f64, q: f64| if p > 0.0 { p / 2.0 * (2.0 * p / (p + q)).log2() } else { 0.0 };
        let all = one.keys().chain(other.keys()).copied();
        let all: std::collections::BTreeSet<_> = all.collect();
        all.iter().fold(0.0, |sum, length| {
            let p = one.get(length).copied().unwrap_or(0.0);
            let q = other.get(length).copied().unwrap_or(0.0);
            sum + part(p, q) + part(q, p)
        })
    }

    #[test]
    fn a_hundred_messages_tell_a_bit_whatever_lengths_an_attacker_chooses() {
        for saved in [1, 2] {
            let most = (300..300 + 4 * STEP_BYTES).map(|length| bits(length, length + saved));
            let most = most.fold(0.0, f64::max);
            assert!(100.0 * most <= 1.0, "{saved} bytes: {} bits in 100 messages", 100.0 * most);
            assert!(most > 0.0, "the test can tell lengths apart");
        }
    }

    #[test]
    fn a_block_grows_by_a_step_and_a_half_and_a_few_bytes() {
        let grown = |length: usize| {
            law(length).iter().map(|(padded, p)| (*padded - length) as f64 * p).sum::<f64>()
        };
        let lengths = 300..300 + STEP_BYTES;
        let mean = lengths.clone().map(grown).sum::<f64>() / lengths.len() as f64;
        assert!((mean - 38.5).abs() < 0.1, "{mean}");
        let most = lengths.map(|length| padded(length, [STEP_BYTES - 1; 2]) - length).max();
        assert!(most <= Some(3 * STEP_BYTES + MIN_PADDING_BYTES), "{most:?}");
    }

    #[test]
    fn the_same_block_has_the_same_length_and_all_are_in_steps() {
        let block = |key: u64, text: &str, cut: usize| {
            let (head, tail) = text.split_at(cut);
            let mut block = Block::default();
            let mut sent = 0;
            for (text, end) in [(head, None), (tail, Some(900))] {
                let piece = Data {
                    exchange: 7,
                    block_end: end,
                    uncoded: false,
                    anew: false,
                    end: end.is_some(),
                    bytes: Bytes::copy_from_slice(text.as_bytes()),
                };
                let mut bytes = Vec::new();
                Frame::Data(piece.clone()).encode(&mut bytes);
                assert_eq!(bytes.len(), piece.wire_len());
                if let Some(padding) = block.note(key, &piece) {
                    padding.encode(&mut bytes);
                }
                sent += bytes.len();
            }
            assert_eq!(sent % STEP_BYTES, 0, "{text}");
            sent
        };
        let texts = (0..200).map(|length| "a".repeat(length)).collect::<Vec<_>>();
        assert!(texts.iter().all(|text| block(1, text, 0) == block(1, text, 0)));
        assert!(texts.iter().any(|text| block(1, text, 0) != block(2, text, 0)), "by the key");
        for text in &texts {
            assert!(block(1, text, text.len() / 2) > text.len());
        }
    }
}
