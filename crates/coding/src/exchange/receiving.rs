//! The message that comes: pieces become blocks, blocks are decoded one at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use codec::Options;
use codec::dictionary::Kept;
use codec::infoset::SchemaContext;
use proto::exchange::{BLOCK_CREDIT_BYTES, MAX_BLOCK_BYTES};

use crate::api::{Fault, Piece};

/// An encoded block may be this much larger than a decoded one.
const MAX_EXPANSION_BYTES: usize = 1024;

/// Contexts in which the blocks of a message may be decoded, one behind the other: beginning one is
/// work that a byte must not ask for.
pub const MAX_CONTEXTS: usize = 16;

/// A whole block as it came.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) bytes: Bytes,
    pub(crate) decoded_len: usize,
    /// A context begins with it.
    pub(crate) first: bool,
    /// The coding ends with it.
    pub(crate) last: bool,
    uncoded: bool,
}

impl Block {
    /// What its pieces took of the credit.
    pub(crate) fn credit(&self) -> u64 {
        let whole = if self.bytes.is_empty() { 0 } else { BLOCK_CREDIT_BYTES };
        self.bytes.len() as u64 + whole
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Receiving {
    /// Codec of the body, from the head; none before that came.
    options: Option<Options>,
    partial: BytesMut,
    blocks: VecDeque<Block>,
    working: bool,
    next_block: u64,
    /// Contexts that blocks began.
    contexts: usize,
    /// What the delta is encoded against.
    pub(crate) base: Option<Arc<Kept>>,
    /// What an infoset is read with.
    pub(crate) schema_context: Option<Arc<SchemaContext>>,
    /// Length of the body that is being read so.
    reads: Option<usize>,
    /// Length of the body that cannot be read and was asked for as it is.
    awaits_identity: Option<usize>,
    /// The body is to be kept, if it is a single block.
    pub(crate) keeps: bool,
    body: Option<Bytes>,
    ended: bool,
    /// What was decoded last has not been delivered.
    pub(crate) undelivered: bool,
    /// Bytes that were decoded.
    pub(crate) decoded_bytes: u64,
    /// It was told that all is decoded.
    reported: bool,
}

impl Default for Receiving {
    fn default() -> Self {
        Self {
            options: None,
            partial: BytesMut::new(),
            blocks: VecDeque::new(),
            working: false,
            next_block: 0,
            contexts: 0,
            base: None,
            schema_context: None,
            reads: None,
            awaits_identity: None,
            keeps: false,
            body: None,
            ended: false,
            undelivered: false,
            decoded_bytes: 0,
            reported: false,
        }
    }
}

impl Receiving {
    /// What the body goes in.
    pub(crate) fn options(&self) -> Options {
        self.options.unwrap_or(Options::IDENTITY)
    }

    /// The head has come.
    pub(crate) fn is_headed(&self) -> bool {
        self.options.is_some()
    }

    /// Whether the peer has sent everything.
    fn has_ended(&self) -> bool {
        self.ended && self.awaits_identity.is_none()
    }

    /// Something of the body has come.
    pub(crate) fn has_body(&self) -> bool {
        self.next_block > 0
            || self.decoded_bytes > 0
            || !(self.partial.is_empty() && self.blocks.is_empty())
    }

    /// The base that the delta names which has just come.
    ///
    /// # Errors
    /// What is no delta.
    pub(crate) fn named_base(&self) -> Result<Option<[u8; 8]>, Fault> {
        let Some(block) = self.blocks.back().filter(|block| !block.uncoded) else {
            return Ok(None);
        };
        let Some(id) = block.bytes.get(1..).and_then(|rest| rest.first_chunk()) else {
            return Err(Fault::corrupt("a delta that is too short to name its base"));
        };
        if !block.last || self.blocks.len() > 1 || self.next_block > 0 {
            return Err(Fault::corrupt("a delta that is not the whole of its body"));
        }
        Ok(Some(*id))
    }

    /// The block that has just come, of a message that goes as an infoset.
    ///
    /// # Errors
    /// One that is not the whole of it.
    pub(crate) fn whole_infoset(&self) -> Result<Option<&Bytes>, Fault> {
        let of_infoset = self.options().is_infoset();
        let Some(block) = self.blocks.back().filter(|block| of_infoset && !block.uncoded) else {
            return Ok(None);
        };
        if !block.last || self.blocks.len() > 1 || self.next_block > 0 {
            return Err(Fault::corrupt("an infoset that is not the whole of its body"));
        }
        Ok(Some(&block.bytes))
    }

    /// What came cannot be read: the body will come as it is.
    pub(crate) fn await_identity(&mut self) {
        let unread = self.blocks.pop_back().map(|block| block.decoded_len);
        self.awaits_identity = unread.or(self.reads.take());
    }

    pub(crate) fn is_awaiting_identity(&self) -> bool {
        self.awaits_identity.is_some()
    }

    /// The body came as it is; nothing happens where nobody asked for it.
    ///
    /// # Errors
    /// A body of another length.
    pub(crate) fn push_identity(&mut self, bytes: &Bytes) -> Result<bool, Fault> {
        let Some(decoded_len) = self.awaits_identity.take() else { return Ok(false) };
        if bytes.len() != decoded_len {
            let len = bytes.len();
            let reason = format!("a body of {len} bytes after one of {decoded_len}");
            return Err(Fault::corrupt(reason));
        }
        let bytes = Bytes::copy_from_slice(bytes);
        let (first, last, uncoded) = (false, false, true);
        self.blocks.push_back(Block { bytes, decoded_len, first, last, uncoded });
        Ok(true)
    }

    /// The body, once, where it was a single block and is to be kept.
    pub(crate) fn take_body(&mut self) -> Option<Bytes> {
        std::mem::take(&mut self.keeps).then(|| self.body.take()).flatten()
    }

    pub(crate) fn expect(&mut self, options: Options, end: bool) {
        self.options = Some(options);
        self.ended |= end;
    }

    /// The body ended behind its last block.
    ///
    /// # Errors
    /// An end amid a block.
    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        self.ended = true;
        match self.partial.is_empty() {
            true => Ok(()),
            false => Err(Fault::corrupt("trailers amid a block")),
        }
    }

    /// Takes a piece, whose credit was checked; whether a block is whole now.
    ///
    /// # Errors
    /// What no sender may send.
    pub(crate) fn push(&mut self, piece: &Piece) -> Result<bool, Fault> {
        let len = self.partial.len() + piece.bytes.len();
        if len > MAX_BLOCK_BYTES + MAX_EXPANSION_BYTES {
            let limit = MAX_BLOCK_BYTES + MAX_EXPANSION_BYTES;
            return Err(Fault::corrupt(format!("a block of over {limit} encoded bytes")));
        }
        let Some(decoded_len) = piece.block_end else {
            self.partial.extend_from_slice(&piece.bytes);
            return Ok(false);
        };
        // A copy of its own size: pieces share the buffer that they were read into, and a byte
        // that waits here would hold all of that.
        let bytes = match self.partial.is_empty() {
            true => Bytes::copy_from_slice(&piece.bytes),
            false => {
                let mut whole = Vec::with_capacity(len);
                whole.extend_from_slice(&std::mem::take(&mut self.partial));
                whole.extend_from_slice(&piece.bytes);
                Bytes::from(whole)
            }
        };
        let uncoded = piece.uncoded || self.options().is_identity();
        let decoded_len = usize::try_from(decoded_len).unwrap_or(usize::MAX);
        if uncoded && bytes.len() != decoded_len {
            let len = bytes.len();
            let reason = format!("an uncoded block of {len} bytes that says {decoded_len}");
            return Err(Fault::corrupt(reason));
        }
        let first = !uncoded && (self.contexts == 0 || piece.anew);
        self.contexts += usize::from(first);
        if self.contexts > MAX_CONTEXTS {
            return Err(Fault::corrupt(format!("a body in over {MAX_CONTEXTS} contexts")));
        }
        let last = piece.end && !uncoded;
        self.blocks.push_back(Block { bytes, decoded_len, first, last, uncoded });
        self.ended |= piece.end;
        Ok(true)
    }

    /// The next block, if it goes as it is and what is before it was delivered.
    pub(crate) fn next_uncoded(&mut self) -> Option<Block> {
        let is_next = !self.working && !self.undelivered;
        is_next.then(|| self.blocks.pop_front_if(|block| block.uncoded)).flatten()
    }

    /// All before it is delivered, and the block that is next has to be decoded.
    pub(crate) fn needs_decoder(&self) -> bool {
        let is_next = !self.working && !self.undelivered;
        is_next && self.blocks.front().is_some_and(|block| !block.uncoded)
    }

    /// The next block to decode, with its number.
    pub(crate) fn next_work(&mut self) -> Option<(u64, Block)> {
        if !self.needs_decoder() {
            return None;
        }
        let block = self.blocks.pop_front()?;
        self.working = true;
        self.reads = self.schema_context.is_some().then_some(block.decoded_len);
        let number = self.next_block;
        self.next_block += 1;
        Some((number, block))
    }

    /// Whether it is the block that is being decoded, which it is no more.
    pub(crate) fn take_work(&mut self, number: u64) -> bool {
        let is_it = self.working && number + 1 == self.next_block;
        self.working &= !is_it;
        is_it
    }

    /// No block is left to decode, or ever will be.
    pub(crate) fn is_decoded(&self) -> bool {
        !self.working && (!self.is_headed() || self.has_ended() && self.blocks.is_empty())
    }

    /// All of the message is here and decoded.
    pub(crate) fn is_whole(&self) -> bool {
        self.has_ended() && !self.working && self.blocks.is_empty() && self.partial.is_empty()
    }

    /// All of the message is here and decoded, and nobody was told.
    pub(crate) fn is_whole_at_last(&mut self) -> bool {
        self.is_whole() && !std::mem::replace(&mut self.reported, true)
    }

    /// Notes decoded bytes, which are some.
    pub(crate) fn note_decoded(&mut self, bytes: &Bytes) {
        if self.keeps {
            // A second block shows that it is not all.
            self.keeps = self.body.is_none();
            self.body = Some(bytes.clone()).filter(|_| self.keeps);
        }
        self.undelivered = true;
        self.decoded_bytes += bytes.len() as u64;
    }

    /// Bytes held here.
    pub(crate) fn held_bytes(&self) -> usize {
        self.partial.len() + self.blocks.iter().map(|block| block.bytes.len()).sum::<usize>()
    }
}
