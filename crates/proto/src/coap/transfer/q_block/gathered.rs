//! A body of which blocks come in any order.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{MAX_PAYLOADS, blocks_of, set_of};
use crate::coap::{Block, MAX_BODY_BYTES, Refusal};

/// What a block takes beside its bytes, about.
const BLOCK_OVERHEAD_BYTES: usize = 64;

/// See the module.
#[derive(Debug)]
pub(super) struct Gathered {
    size: usize,
    szx: u8,
    /// At most as many as the body has.
    blocks: BTreeMap<u32, Bytes>,
    bytes: usize,
    /// The first that is missing, or how many there are.
    next: u32,
    /// The greatest number so far.
    highest: u32,
}

impl Gathered {
    /// A body of so many bytes, of which there is nothing yet; too large over [`MAX_BODY_BYTES`].
    pub(super) fn new(size: u32, szx: u8) -> Result<Self, Refusal> {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > MAX_BODY_BYTES {
            return Err(Refusal::TooLarge(MAX_BODY_BYTES));
        }
        Ok(Self { size, szx, blocks: BTreeMap::new(), bytes: 0, next: 0, highest: 0 })
    }

    /// Whether a message speaks of this body: of its size, in blocks of the same size.
    pub(super) fn is_of(&self, size: u32, szx: u8) -> bool {
        usize::try_from(size) == Ok(self.size) && szx == self.szx
    }

    pub(super) fn szx(&self) -> u8 {
        self.szx
    }

    /// Blocks of the whole.
    pub(super) fn total(&self) -> u32 {
        blocks_of(self.size, self.szx)
    }

    /// How many of the first blocks are there without a gap.
    pub(super) fn through(&self) -> u32 {
        self.next
    }

    pub(super) fn is_whole(&self) -> bool {
        self.next == self.total()
    }

    /// What it takes of memory, about.
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes + self.blocks.len() * BLOCK_OVERHEAD_BYTES
    }

    /// Takes a block; whether it is new. One that came before is left out, whatever it has. Refuses
    /// one whose place, length or end is not that of this body (RFC 9177 §4.6: its size is exact).
    pub(super) fn put(&mut self, block: Block, payload: &Bytes) -> Result<bool, Refusal> {
        let (offset, unit) = (block.offset(), block.size_bytes());
        let rest = self.size.checked_sub(offset).ok_or(Refusal::Malformed)?;
        let is_inside = block.szx == self.szx && block.num < self.total();
        if !is_inside || payload.len() != rest.min(unit) || block.more != (rest > unit) {
            return Err(Refusal::Malformed);
        }
        if self.blocks.contains_key(&block.num) {
            return Ok(false);
        }
        self.bytes += payload.len();
        self.blocks.insert(block.num, payload.clone());
        self.highest = self.highest.max(block.num);
        while self.blocks.contains_key(&self.next) {
            self.next += 1;
        }
        Ok(true)
    }

    /// The first blocks below `end` that are missing, at most as many as a set has.
    pub(super) fn missing_below(&self, end: u32) -> Vec<u32> {
        let all = self.next..end.min(self.total());
        let missing = all.filter(|num| !self.blocks.contains_key(num));
        missing.take(usize::try_from(MAX_PAYLOADS).unwrap_or(usize::MAX)).collect()
    }

    /// What to ask for where nothing has come for a while: what is missing of the sets that have
    /// begun, or else of the next one (RFC 9177 §7.2).
    pub(super) fn due(&self) -> Vec<u32> {
        let begun = (set_of(self.highest) + 1) * MAX_PAYLOADS;
        let missing = self.missing_below(begun);
        match missing.is_empty() {
            true => self.missing_below(begun + MAX_PAYLOADS),
            false => missing,
        }
    }

    /// The body, of which all blocks are there.
    pub(super) fn into_bytes(self) -> Bytes {
        let mut body = Vec::with_capacity(self.bytes);
        self.blocks.values().for_each(|block| body.extend_from_slice(block));
        body.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(num: u32, more: bool) -> Block {
        Block { num, more, szx: 0 }
    }

    #[test]
    fn blocks_in_any_order_make_a_body() {
        let mut gathered = Gathered::new(16 * 12 + 3, 0).unwrap();
        assert_eq!((gathered.total(), gathered.due()), (13, (0..10).collect()));
        for num in [12, 3, 0, 1, 2, 10, 4, 5, 6, 8, 9] {
            let len = if num == 12 { 3 } else { 16 };
            let payload = Bytes::from(vec![u8::try_from(num).unwrap(); len]);
            assert_eq!(gathered.put(block(num, num < 12), &payload), Ok(true));
            assert_eq!(gathered.put(block(num, num < 12), &Bytes::from(vec![9; len])), Ok(false));
        }
        assert_eq!((gathered.through(), gathered.highest), (7, 12));
        assert_eq!((gathered.missing_below(10), gathered.due()), (vec![7], vec![7, 11]));
        for num in [11, 7] {
            assert!(!gathered.is_whole());
            let payload = Bytes::from(vec![u8::try_from(num).unwrap(); 16]);
            assert_eq!(gathered.put(block(num, true), &payload), Ok(true));
        }
        assert!(gathered.is_whole());
        let body = gathered.into_bytes();
        assert_eq!(body.len(), 195);
        assert!((0..13_u8).all(|num| body[usize::from(num) * 16] == num));
    }

    #[test]
    fn a_set_that_has_not_begun_is_asked_for_whole() {
        let mut gathered = Gathered::new(16 * 30, 0).unwrap();
        let payload = Bytes::from_static(&[0; 16]);
        (0..10).for_each(|num| assert_eq!(gathered.put(block(num, true), &payload), Ok(true)));
        assert_eq!(gathered.due(), (10..20).collect::<Vec<_>>());
    }

    #[test]
    fn blocks_that_lie_about_the_body_are_refused() {
        let mut gathered = Gathered::new(40, 0).unwrap();
        let bytes = |len: usize| Bytes::from(vec![0; len]);
        for (block, len) in [
            (block(0, true), 15),
            (block(0, false), 16),
            (block(2, true), 8),
            (block(2, false), 16),
            (block(3, false), 0),
            (Block { num: 0, more: true, szx: 1 }, 32),
            (block(0xf_ffff, false), 16),
        ] {
            assert_eq!(gathered.put(block, &bytes(len)), Err(Refusal::Malformed), "{block:?}");
        }
        assert_eq!((gathered.held_bytes(), gathered.through()), (0, 0));
        assert!(gathered.put(block(2, false), &bytes(8)).unwrap());
        let most = u32::try_from(MAX_BODY_BYTES).unwrap();
        assert!(Gathered::new(most, 0).is_ok());
        assert!(matches!(Gathered::new(most + 1, 6), Err(Refusal::TooLarge(_))));
        let mut empty = Gathered::new(0, 6).unwrap();
        let none = Block { num: 0, more: false, szx: 6 };
        assert_eq!((empty.total(), empty.put(none, &Bytes::new())), (1, Ok(true)));
        assert!(empty.is_whole());
    }
}
