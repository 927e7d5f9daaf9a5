//! Bodies in blocks (RFC 7959): put together from what comes in order, and cut into slices.

use bytes::Bytes;

use super::block::{BERT, Block, MAX_NUM, MAX_SZX};
use super::option;
use super::{Code, Content};

/// Largest body that is put together, in bytes.
pub const MAX_BODY_BYTES: usize = 1 << 20;

/// Why a block of a request's body is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its length does not fit what it says of itself.
    Malformed,
    /// What should stand before it is not there (RFC 7959 §2.9.2).
    Incomplete,
    /// The body is, or says that it is, over this many bytes (RFC 7959 §2.9.3).
    TooLarge(usize),
}

impl Refusal {
    /// The response: 4.00, 4.08, or 4.13 with Size1.
    #[must_use]
    pub fn response(self) -> Content {
        match self {
            Self::Malformed => Content::new(Code::BAD_REQUEST),
            Self::Incomplete => Content::new(Code::REQUEST_ENTITY_INCOMPLETE),
            Self::TooLarge(limit) => {
                let limit = u32::try_from(limit).unwrap_or(u32::MAX);
                let response = Content::new(Code::REQUEST_ENTITY_TOO_LARGE);
                response.with_uint(option::SIZE1, limit)
            }
        }
    }
}

/// A body that comes in blocks, each behind the one before.
#[derive(Debug)]
pub struct Assembly {
    bytes: Vec<u8>,
    max_bytes: usize,
}

impl Assembly {
    /// Takes at most so many bytes.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self { bytes: Vec::new(), max_bytes }
    }

    /// Bytes so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is nothing so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Adds a block; whether the body is whole with it. Block 0 begins anew. The block that came
    /// last may come again, as its sender cannot know that it did (RFC 7959 §2.5).
    ///
    /// `size` is what the sender says of the whole: a hint, which refuses what is too large as soon
    /// as it is known, and nothing is believed or reserved because of it.
    pub fn push(
        &mut self,
        block: Block,
        payload: &[u8],
        size: Option<u32>,
    ) -> Result<bool, Refusal> {
        if !block.is_length(payload.len()) {
            return Err(Refusal::Malformed);
        }
        if block.num == 0 {
            self.bytes.clear();
        }
        let offset = block.offset();
        let end = offset.saturating_add(payload.len());
        let announced = size.and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
        if end.max(announced) > self.max_bytes {
            return Err(Refusal::TooLarge(self.max_bytes));
        }
        if offset == self.bytes.len() {
            self.bytes.extend_from_slice(payload);
        } else if self.bytes.get(offset..) != Some(payload) {
            return Err(Refusal::Incomplete);
        }
        Ok(!block.more)
    }

    /// The body.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes.into()
    }
}

/// The bytes of a body that a block asks for, and the block that they are. `None` behind its end,
/// and where the number of a block of this size cannot be said.
#[must_use]
pub fn slice(body: &Bytes, asked: Block) -> Option<(Block, Bytes)> {
    let szx = asked.szx.min(MAX_SZX);
    let asked = asked.resized(szx)?;
    let offset = asked.offset();
    let is_inside = offset < body.len() || (offset == 0 && body.is_empty());
    if !is_inside || asked.num > MAX_NUM {
        return None;
    }
    let end = offset.saturating_add(asked.size_bytes()).min(body.len());
    let block = Block { more: end < body.len(), ..asked };
    Some((block, body.slice(offset..end)))
}

/// The same over a reliable transport, where one message may have several blocks of 1024 bytes
/// (BERT, RFC 8323 §6): as many as there are in `max_bytes`, and one at least.
#[must_use]
pub fn slice_within(body: &Bytes, asked: Block, max_bytes: usize) -> Option<(Block, Bytes)> {
    if asked.szx < BERT {
        return slice(body, asked);
    }
    let (block, _) = slice(body, asked)?;
    let (offset, unit) = (block.offset(), block.size_bytes());
    let len = (max_bytes / unit).max(1).saturating_mul(unit);
    let end = offset.saturating_add(len).min(body.len());
    let block = Block { num: block.num, more: end < body.len(), szx: BERT };
    Some((block, body.slice(offset..end)))
}

/// What requests for blocks of one body have in common (RFC 7959 §2.4, §2.5, RFC 9175 §3.3): the
/// method and the options of the cache key, with Request-Tag, without those of blocks; of FETCH
/// also a body that is not in blocks.
#[must_use]
pub fn key_of(request: &Content) -> Vec<u8> {
    const BESIDE: [option::Number; 8] = [
        option::BLOCK1,
        option::BLOCK2,
        option::Q_BLOCK1,
        option::Q_BLOCK2,
        option::OBSERVE,
        option::SIZE1,
        option::SIZE2,
        option::NO_RESPONSE,
    ];
    let mut key = vec![request.code.0];
    for (number, value) in request.options() {
        let is_beside = !option::is_unsafe(number) && option::is_no_cache_key(number);
        if !is_beside && !BESIDE.contains(&number) {
            key.extend_from_slice(&number.to_be_bytes());
            key.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_be_bytes());
            key.extend_from_slice(value);
        }
    }
    // RFC 8132 §2.1: what FETCH asks for is in its body; that of one in blocks has a Request-Tag.
    let is_block =
        [option::BLOCK1, option::Q_BLOCK1].into_iter().any(|it| request.first(it).is_some());
    if request.code == Code::FETCH && !is_block {
        key.extend_from_slice(&request.payload);
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(num: u32, more: bool, szx: u8) -> Block {
        Block { num, more, szx }
    }

    /// RFC 7959 §3.2: a body in blocks of 128 bytes, whose size changes on the way.
    #[test]
    fn blocks_in_order_make_a_body() {
        let mut assembly = Assembly::new(1000);
        assert_eq!(assembly.push(block(0, true, 3), &[1; 128], Some(160)), Ok(false));
        assert_eq!(assembly.push(block(4, true, 1), &[2; 32], None), Ok(false));
        assert_eq!(assembly.push(block(4, true, 1), &[2; 32], None), Ok(false));
        assert_eq!(assembly.push(block(5, false, 1), &[3; 5], None), Ok(true));
        assert_eq!(assembly.push(block(5, false, 1), &[3; 5], None), Ok(true));
        assert_eq!(assembly.into_bytes().len(), 165);
    }

    #[test]
    fn blocks_that_do_not_fit_are_refused() {
        let mut assembly = Assembly::new(100);
        assert_eq!(assembly.push(block(1, true, 0), &[0; 16], None), Err(Refusal::Incomplete));
        assert_eq!(assembly.push(block(0, true, 0), &[0; 15], None), Err(Refusal::Malformed));
        assert_eq!(assembly.push(block(0, true, 0), &[0; 17], None), Err(Refusal::Malformed));
        assert_eq!(assembly.push(block(0, false, 0), &[0; 17], None), Err(Refusal::Malformed));
        let too_large = Err(Refusal::TooLarge(100));
        assert_eq!(assembly.push(block(0, true, 0), &[0; 16], Some(101)), too_large);
        assert_eq!(assembly.push(block(0, true, 0), &[0; 16], Some(u32::MAX)), too_large);
        // Who says too little is not believed either.
        for num in 0..6 {
            assert_eq!(assembly.push(block(num, true, 0), &[0; 16], Some(16)), Ok(false));
        }
        assert_eq!(assembly.push(block(6, true, 0), &[0; 16], None), too_large);
        assert_eq!(assembly.push(block(0xf_ffff, false, 6), &[0; 16], None), too_large);
        assert_eq!(assembly.push(block(3, true, 0), &[9; 16], None), Err(Refusal::Incomplete));
        let response = Refusal::TooLarge(100).response();
        assert_eq!((response.code, response.uint(option::SIZE1)), (Code::new(4, 13), Some(100)));
    }

    /// RFC 7959 §3.1.
    #[test]
    fn a_body_is_cut_as_it_is_asked_for() {
        let body = Bytes::from((0..=255).collect::<Vec<u8>>()).slice(..200);
        let (first, bytes) = slice(&body, block(0, false, 6)).unwrap();
        assert_eq!((first, bytes.len()), (block(0, false, 6), 200));
        let (first, bytes) = slice(&body, block(0, false, 2)).unwrap();
        assert_eq!((first, bytes.len()), (block(0, true, 2), 64));
        let (last, bytes) = slice(&body, block(3, false, 2)).unwrap();
        assert_eq!((last, &bytes[..]), (block(3, false, 2), &body[192..]));
        assert_eq!(slice(&body, block(4, false, 2)), None);
        assert!(slice(&Bytes::new(), block(0, false, 0)).is_some());
        assert_eq!(slice(&Bytes::new(), block(1, false, 0)), None);
    }

    #[test]
    fn keys_tell_bodies_apart_and_keep_blocks_together() {
        let get = Content::new(Code::GET).with(option::URI_PATH, b"a");
        let same = |other: Content| key_of(&other) == key_of(&get);
        assert!(same(get.clone().with(option::BLOCK2, &[0x16]).with(option::SIZE2, b"")));
        assert!(same(get.clone().with(option::ECHO, b"x").with(option::OBSERVE, b"")));
        assert!(!same(get.clone().with(option::REQUEST_TAG, b"x")));
        assert!(!same(get.clone().with(option::URI_QUERY, b"x")));
        assert!(!same(get.clone().with(option::URI_PATH, b"")));
        let mut put = get.clone();
        put.code = Code::PUT;
        assert!(!same(put));
    }
}
