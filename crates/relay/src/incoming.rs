//! The half of an exchange that comes from the carrier: pieces become blocks, blocks are decoded
//! one at a time, and the local side gets them within its credit.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use codec::dictionary::Kept;
use codec::infoset::Vocabulary;
use proto::bhttp;
use proto::stream::{BLOCK_CREDIT_BYTES, Data, MAX_BLOCK_BYTES};

use crate::api::{Cause, CauseKind};
use crate::config::INITIAL_CREDIT_BYTES;

/// An encoded block may be this much larger than a decoded one.
const MAX_EXPANSION_BYTES: usize = 1024;

/// Contexts in which the blocks of a half may be decoded, one behind the other: beginning one is
/// work that a byte must not ask for.
pub(crate) const MAX_CONTEXTS: usize = 16;

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
    fn credit(&self) -> u64 {
        let whole = if self.bytes.is_empty() { 0 } else { BLOCK_CREDIT_BYTES };
        self.bytes.len() as u64 + whole
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// Codec of the body, from the head.
    pub(crate) options: codec::Options,
    pub(crate) headed: bool,
    partial: BytesMut,
    blocks: VecDeque<Block>,
    pub(crate) working: bool,
    pub(crate) next_block: u64,
    /// Contexts that blocks began.
    contexts: usize,
    decoded: VecDeque<Bytes>,
    /// What the delta is told by.
    pub(crate) base: Option<Arc<Kept>>,
    /// What an infoset is read with.
    pub(crate) vocabulary: Option<Arc<Vocabulary>>,
    /// Length of the body that is being read so.
    reads: Option<usize>,
    /// Length of the body that cannot be read and was asked for as it is.
    awaits_plain: Option<usize>,
    /// The body is to be kept, if it is a single block.
    pub(crate) keeps: bool,
    body: Option<Bytes>,
    local_credit: u64,
    ended: Option<bhttp::Fields>,
    /// The half ended with its head: the local side was told so with it.
    pub(crate) ended_with_head: bool,
    /// The local side has everything.
    pub(crate) finished: bool,
    window: u64,
    consumed: u64,
}

impl Incoming {
    /// A half whose head has not come.
    pub(crate) fn new() -> Self {
        Self {
            options: codec::Options::IDENTITY,
            headed: false,
            partial: BytesMut::new(),
            blocks: VecDeque::new(),
            working: false,
            next_block: 0,
            contexts: 0,
            decoded: VecDeque::new(),
            base: None,
            vocabulary: None,
            reads: None,
            awaits_plain: None,
            keeps: false,
            body: None,
            local_credit: 0,
            ended: None,
            ended_with_head: false,
            finished: false,
            window: INITIAL_CREDIT_BYTES,
            consumed: 0,
        }
    }

    /// Codec of the body; the level is the sender's and not told.
    pub(crate) fn codec_name(&self) -> String {
        let label = self.options.label();
        label.split_once(':').map_or(label.clone(), |(name, _)| name.to_owned())
    }

    /// Whether the peer has sent everything.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some() && self.awaits_plain.is_none()
    }

    /// Something of the body has come.
    pub(crate) fn has_body(&self) -> bool {
        self.next_block > 0
            || self.body.is_some()
            || !(self.partial.is_empty() && self.blocks.is_empty() && self.decoded.is_empty())
    }

    /// The base that the delta names which has just come; errors: what is no delta.
    pub(crate) fn named_base(&self) -> Result<Option<[u8; 8]>, Cause> {
        let Some(block) = self.blocks.back().filter(|block| !block.uncoded) else {
            return Ok(None);
        };
        let Some(id) = block.bytes.get(1..).and_then(|rest| rest.first_chunk()) else {
            return Err(corrupt("a delta that is too short to name its base".to_owned()));
        };
        if !block.last || self.blocks.len() > 1 || self.next_block > 0 {
            return Err(corrupt("a delta that is not the whole of its body".to_owned()));
        }
        Ok(Some(*id))
    }

    /// The block that has just come, of a half that goes as an infoset; errors: one that is not
    /// the whole of it.
    pub(crate) fn whole_infoset(&self) -> Result<Option<&Bytes>, Cause> {
        let of_infoset = self.options.is_infoset();
        let Some(block) = self.blocks.back().filter(|block| of_infoset && !block.uncoded) else {
            return Ok(None);
        };
        if !block.last || self.blocks.len() > 1 || self.next_block > 0 {
            return Err(corrupt("an infoset that is not the whole of its body".to_owned()));
        }
        Ok(Some(&block.bytes))
    }

    /// What came cannot be read: the body will come as it is.
    pub(crate) fn await_plain(&mut self) {
        let unread = self.blocks.pop_back().map(|block| block.decoded_len);
        self.awaits_plain = unread.or(self.reads.take());
    }

    pub(crate) fn is_awaiting_plain(&self) -> bool {
        self.awaits_plain.is_some()
    }

    /// The body came as it is; nothing happens where nobody asked for it.
    pub(crate) fn push_plain(&mut self, bytes: Bytes) -> Result<bool, Cause> {
        let Some(decoded_len) = self.awaits_plain.take() else { return Ok(false) };
        if bytes.len() != decoded_len {
            let len = bytes.len();
            return Err(corrupt(format!("a body of {len} bytes after one of {decoded_len}")));
        }
        let bytes = Bytes::copy_from_slice(&bytes);
        let (first, last, uncoded) = (false, false, true);
        self.blocks.push_back(Block { bytes, decoded_len, first, last, uncoded });
        Ok(true)
    }

    /// The body, once, where it was a single block and is to be kept.
    pub(crate) fn take_body(&mut self) -> Option<Bytes> {
        std::mem::take(&mut self.keeps).then(|| self.body.take()).flatten()
    }

    pub(crate) fn set_head(&mut self, options: codec::Options, end: bool) {
        self.headed = true;
        self.options = options;
        self.ended_with_head = end;
        if end {
            self.ended = Some(Vec::new());
        }
    }

    pub(crate) fn end(&mut self, trailers: bhttp::Fields) {
        self.ended.get_or_insert(trailers);
    }

    /// Takes a piece; credit was checked by the carrier's machine.
    pub(crate) fn push(&mut self, data: Data) -> Result<(), Cause> {
        let len = self.partial.len() + data.bytes.len();
        if len > MAX_BLOCK_BYTES + MAX_EXPANSION_BYTES {
            let limit = MAX_BLOCK_BYTES + MAX_EXPANSION_BYTES;
            return Err(corrupt(format!("a block of over {limit} encoded bytes")));
        }
        let Some(decoded_len) = data.block_end else {
            self.partial.extend_from_slice(&data.bytes);
            return Ok(());
        };
        self.partial.extend_from_slice(&data.bytes);
        // A copy of its own size: pieces share the buffer that they were read into, and a byte
        // that waits here would hold all of that.
        let bytes = Bytes::copy_from_slice(&std::mem::take(&mut self.partial));
        let uncoded = data.uncoded || self.options.codec == 0;
        let decoded_len = usize::try_from(decoded_len).unwrap_or(usize::MAX);
        if uncoded && bytes.len() != decoded_len {
            return Err(corrupt(format!(
                "an uncoded block of {} bytes that says {decoded_len}",
                bytes.len()
            )));
        }
        let first = !uncoded && (self.contexts == 0 || data.anew);
        self.contexts += usize::from(first);
        if self.contexts > MAX_CONTEXTS {
            return Err(corrupt(format!("a body in over {MAX_CONTEXTS} contexts")));
        }
        let last = data.end && !uncoded;
        self.blocks.push_back(Block { bytes, decoded_len, first, last, uncoded });
        if data.end {
            self.end(Vec::new());
        }
        Ok(())
    }

    /// Passes the next blocks on that go as they are, until there is something to deliver.
    pub(crate) fn pass_uncoded(&mut self) {
        while !self.working && self.decoded.is_empty() {
            let Some(block) = self.blocks.pop_front_if(|block| block.uncoded) else { return };
            self.consumed += block.credit();
            self.push_decoded(block.bytes);
        }
    }

    /// All before it is delivered, and the block that is next has to be decoded.
    pub(crate) fn needs_decoder(&self) -> bool {
        let is_next = !self.working && self.decoded.is_empty();
        is_next && self.blocks.front().is_some_and(|block| !block.uncoded)
    }

    /// The next block to decode.
    pub(crate) fn next_work(&mut self) -> Option<Block> {
        if !self.needs_decoder() {
            return None;
        }
        let block = self.blocks.pop_front()?;
        self.consumed += block.credit();
        self.working = true;
        self.reads = self.vocabulary.is_some().then_some(block.decoded_len);
        Some(block)
    }

    /// No block is left to decode, or ever will be.
    pub(crate) fn is_decoded(&self) -> bool {
        !self.working && (!self.headed || self.has_ended() && self.blocks.is_empty())
    }

    /// All of the half is here and decoded.
    pub(crate) fn is_whole(&self) -> bool {
        self.has_ended() && !self.working && self.blocks.is_empty() && self.partial.is_empty()
    }

    /// Decoded bytes wait for the local side.
    pub(crate) fn waits(&self) -> bool {
        !self.decoded.is_empty() && self.local_credit == 0
    }

    /// Decoded bytes that wait.
    pub(crate) fn decoded_bytes(&self) -> u64 {
        self.decoded.iter().map(|bytes| bytes.len() as u64).sum()
    }

    pub(crate) fn push_decoded(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        if self.keeps {
            // A second block shows that it is not all.
            self.keeps = self.body.is_none();
            self.body = Some(bytes.clone()).filter(|_| self.keeps);
        }
        self.decoded.push_back(bytes);
    }

    pub(crate) fn add_local_credit(&mut self, bytes: u64) {
        self.local_credit = self.local_credit.saturating_add(bytes);
    }

    /// Whether [`Incoming::deliver`] would give a piece.
    pub(crate) fn can_deliver(&self) -> bool {
        self.local_credit > 0 && !self.decoded.is_empty()
    }

    /// The next piece for the local side, within its credit.
    pub(crate) fn deliver(&mut self) -> Option<Bytes> {
        let credit = usize::try_from(self.local_credit).unwrap_or(usize::MAX);
        let front = self.decoded.front_mut().filter(|_| credit > 0)?;
        let bytes =
            if front.len() <= credit { self.decoded.pop_front()? } else { front.split_to(credit) };
        self.local_credit -= bytes.len() as u64;
        Some(bytes)
    }

    /// The trailers, once, when everything else is delivered.
    pub(crate) fn take_end(&mut self) -> Option<bhttp::Fields> {
        let drained = !self.working && self.blocks.is_empty() && self.decoded.is_empty();
        if self.finished || !drained || !self.partial.is_empty() || self.awaits_plain.is_some() {
            return None;
        }
        let trailers = self.ended.clone()?;
        self.finished = true;
        Some(trailers)
    }

    /// Bytes that the peer may have on their way to here or waiting here.
    pub(crate) fn window(&self) -> u64 {
        if self.finished { 0 } else { self.window }
    }

    /// A carrier was found that it may come over, where nothing of it has come yet.
    pub(crate) fn opened(&mut self) {
        (self.window, self.consumed) = (INITIAL_CREDIT_BYTES, 0);
    }

    /// Enough was consumed for new credit to be worth a frame.
    pub(crate) fn wants_credit(&self) -> bool {
        self.ended.is_none() && self.consumed >= self.window / 4
    }

    /// Credit to give the peer: what was consumed, and growth or shrinking towards `target`.
    pub(crate) fn credit_due(&mut self, target: u64) -> Option<u64> {
        let outstanding = self.window.saturating_sub(self.consumed);
        let due = target.checked_sub(outstanding).filter(|due| *due > 0)?;
        self.window = target;
        self.consumed = 0;
        Some(due)
    }

    /// The peer ended the half amid a block.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.ended.is_some() && !self.partial.is_empty()
    }

    /// Bytes held here, encoded or decoded.
    pub(crate) fn held_bytes(&self) -> usize {
        self.partial.len()
            + self.blocks.iter().map(|block| block.bytes.len()).sum::<usize>()
            + self.decoded.iter().map(Bytes::len).sum::<usize>()
    }
}

fn corrupt(reason: String) -> Cause {
    Cause { kind: CauseKind::Corrupt, reason }
}
