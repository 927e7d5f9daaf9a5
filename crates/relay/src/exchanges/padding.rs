//! Blocks of messages in which a stranger's text and a secret may meet take no length of their own
//! on the carrier, but one of a few steps, and which one is chance: see [`Padding`].
//!
//! The chance is a hash of the block's bytes, with a key that ends with the process: who has the
//! same message sent again sees the same length again, and learns nothing by it.

use codec::dictionary::Id;
use proto::exchange::{Data, Padding};

/// The block that is leaving, so far.
#[derive(Debug, Default)]
pub(crate) struct Block(Option<Id>);

impl Block {
    /// A piece leaves; by what its block is padded, if it ends it. `key` is known to nobody else.
    pub(crate) fn note(&mut self, key: u64, piece: &Data) -> Option<Padding> {
        let before = self.0.map_or([0; 32], |hash| hash.0);
        let hash = Id::of(&[&key.to_be_bytes()[..], &before, &piece.bytes].concat());
        self.0 = Some(hash);
        piece.block_end?;
        self.0 = None;
        let [a, b, c, d, ..] = hash.0;
        Some(Padding::new([[a, b], [c, d]].map(u16::from_be_bytes)))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn the_same_block_is_padded_the_same_way_and_the_key_says_which() {
        let block = |key: u64, text: &str, cut: usize| {
            let (head, tail) = text.split_at(cut);
            let mut block = Block::default();
            let pieces = [(head, None), (tail, Some(900))].map(|(text, block_end)| {
                let (uncoded, anew, end) = (false, false, block_end.is_some());
                let bytes = Bytes::copy_from_slice(text.as_bytes());
                Data { exchange: 7, block_end, uncoded, anew, end, padding: None, bytes }
            });
            let [None, Some(padding)] = pieces.map(|piece| block.note(key, &piece)) else {
                panic!("padding goes behind a block")
            };
            assert_eq!((900 + padding.behind(900, 4)) % Padding::STEP_BYTES, 0);
            padding
        };
        let texts = (0..200).map(|length| "a".repeat(length)).collect::<Vec<_>>();
        assert!(texts.iter().all(|text| block(1, text, 0) == block(1, text, 0)));
        assert!(texts.iter().any(|text| block(1, text, 0) != block(2, text, 0)), "by the key");
        assert!(
            texts.iter().any(|text| block(1, text, 0) != block(1, &texts[7], 0)),
            "by the text"
        );
    }
}
