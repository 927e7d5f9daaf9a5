//! The message that this side sends: its body is cut into blocks, which are encoded one at a time.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use codec::Options;
use proto::exchange::MAX_BLOCK_BYTES;

use crate::api::Message;
use crate::bounds::BLOCK_PAUSE;
use crate::recipient::Recipient;

/// Encoded blocks ahead of the path.
const MAX_BLOCKS: usize = 2;

/// A block cut from the body, to be encoded.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) bytes: Bytes,
    /// The message ends with it, and so does the coding: not where trailers follow.
    pub(crate) end: bool,
}

/// The block that is being encoded, as it was.
#[derive(Debug)]
pub(crate) struct InWork {
    number: u64,
    /// When its encoding was ordered.
    pub(crate) ordered: Duration,
    pub(crate) plain: Bytes,
    /// It ends the message.
    pub(crate) end: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Sending {
    /// What is known of it, once it has begun.
    message: Option<Message>,
    /// Codec of the body; final once `settled`.
    pub(crate) options: Option<Options>,
    settled: bool,
    /// Blocks go as they are, whatever the head has named, until that is found to pay.
    pub(crate) uncoded: bool,
    /// A block has gone through the codec: others may go through the same context.
    has_context: bool,
    /// The next of these begins one anew.
    anew: bool,
    open: BytesMut,
    flush_at: Duration,
    /// The body is whole; whether trailers follow it.
    ended: Option<bool>,
    cut_end: bool,
    in_work: Option<InWork>,
    next_block: u64,
    /// Blocks that are ready and have not left.
    ready: usize,
    /// Trailers follow, and nobody was told that they may go.
    trailers_due: bool,
}

impl Sending {
    /// The message begins.
    pub(crate) fn begin(&mut self, now: Duration, message: Message) {
        self.flush_at = now + BLOCK_PAUSE;
        if message.end {
            self.ended = Some(false);
        }
        self.message = Some(message);
    }

    fn has_head(&self) -> bool {
        self.message.is_some()
    }

    /// Bytes that precede the body.
    pub(crate) fn head_len(&self) -> usize {
        self.message.as_ref().map_or(0, |message| message.head_bytes)
    }

    /// Media type, with parameters.
    pub(crate) fn media(&self) -> Option<&str> {
        self.message.as_ref()?.media.as_deref()
    }

    /// Media type, without parameters.
    pub(crate) fn media_type(&self) -> Option<&str> {
        self.media().map(|media| media.split(';').next().unwrap_or(media).trim())
    }

    /// The body has a content coding of its sender's.
    pub(crate) fn is_coded(&self) -> bool {
        self.message.as_ref().is_some_and(|message| message.coded)
    }

    /// Who gets it, where that is no peer.
    pub(crate) fn recipient(&self) -> Option<&Arc<Recipient>> {
        self.message.as_ref()?.recipient.as_ref()
    }

    /// Length of the body, where it was said beforehand.
    pub(crate) fn said_length(&self) -> Option<u64> {
        self.message.as_ref()?.length
    }

    /// The message as it was before anything was sent; all of its body is here.
    pub(crate) fn rewind(&mut self, body: &Bytes) {
        let before = std::mem::take(self);
        // What is still being encoded must not be taken for what will be.
        let (message, next_block) = (before.message, before.next_block);
        let ended = before.ended.or(Some(false));
        *self = Self { message, next_block, ended, open: body[..].into(), ..Self::default() };
    }

    pub(crate) fn push(&mut self, now: Duration, bytes: &[u8]) {
        self.open.extend_from_slice(bytes);
        self.flush_at = now + BLOCK_PAUSE;
    }

    /// The body is whole.
    pub(crate) fn end(&mut self, trailers: bool) {
        self.ended.get_or_insert(trailers);
    }

    /// When the open block, or the head that waits for one, goes though it is not full.
    pub(crate) fn wake_at(&self) -> Option<Duration> {
        let head_waits = self.options.is_none() && self.has_head();
        let block_waits = !self.open.is_empty() && self.ready == 0;
        let can_cut = self.in_work.is_none() && !self.cut_end;
        (can_cut && (head_waits || block_waits)).then_some(self.flush_at)
    }

    /// What the message goes in is to be chosen now.
    pub(crate) fn is_choice_due(&self, now: Duration) -> bool {
        let urgent = self.message.as_ref().is_some_and(|message| message.urgent);
        let due = self.has_head() && (urgent || now >= self.flush_at);
        self.options.is_none() && (due || self.can_cut(now))
    }

    /// The body ends with trailers.
    pub(crate) fn has_trailers(&self) -> bool {
        self.ended == Some(true)
    }

    /// All is to be sent anew, the body as it is: that is ready.
    pub(crate) fn anew(&mut self) {
        self.settle(Options::IDENTITY);
        (self.ready, self.in_work, self.cut_end) = (1, None, true);
    }

    /// Bytes at hand and whether they are all: what a choice goes by.
    pub(crate) fn at_hand(&self) -> (&[u8], bool) {
        (&self.open, self.ended.is_some())
    }

    /// Whether [`Sending::cut`] would give a block.
    fn can_cut(&self, now: Duration) -> bool {
        let room = self.in_work.is_none() && self.ready < MAX_BLOCKS && !self.cut_end;
        let full = self.open.len() >= MAX_BLOCK_BYTES;
        // What goes uncoded gains nothing by waiting for more.
        let identity = self.uncoded || self.options == Some(Options::IDENTITY);
        let waited = identity || now >= self.flush_at;
        let due = !self.open.is_empty() && self.ready == 0 && waited;
        room && self.has_head() && (full || due || self.ended.is_some())
    }

    /// The next block, when one is full, is due, or is the last.
    pub(crate) fn cut(&mut self, now: Duration) -> Option<Cut> {
        if !self.can_cut(now) {
            return None;
        }
        let len = self.open.len().min(MAX_BLOCK_BYTES);
        let bytes = self.open.split_to(len).freeze();
        let last = self.ended.is_some() && self.open.is_empty();
        self.cut_end = last;
        self.trailers_due = last && self.has_trailers();
        // A content coding ends before the trailers.
        let end = last && (!self.has_trailers() || self.recipient().is_some());
        Some(Cut { bytes, end })
    }

    /// Notes that a block is being encoded; returns its number.
    pub(crate) fn begin_work(&mut self, ordered: Duration, plain: Bytes, end: bool) -> u64 {
        let number = self.next_block;
        self.next_block += 1;
        self.in_work = Some(InWork { number, ordered, plain, end });
        number
    }

    /// The block whose encoding is done.
    pub(crate) fn take_work(&mut self, number: u64) -> Option<InWork> {
        self.in_work.take_if(|work| work.number == number)
    }

    /// No block will be cut any more.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut_end
    }

    /// No block is left to encode, or ever will be.
    pub(crate) fn is_encoded(&self) -> bool {
        let left_alone = self.uncoded && !self.has_context;
        self.in_work.is_none() && (left_alone || self.cut_end || self.options.is_none())
    }

    /// A context has begun in which further blocks may go.
    pub(crate) fn has_context(&self) -> bool {
        self.has_context
    }

    /// The next block that goes through the codec begins a context, in place of one that there was.
    pub(crate) fn begin_context(&mut self) {
        self.anew = self.has_context;
    }

    /// The next block that goes through the codec takes the place of a context: not for every peer.
    pub(crate) fn begins_anew(&self) -> bool {
        self.anew
    }

    /// The codec is final, the head may go.
    pub(crate) fn settle(&mut self, options: Options) {
        self.options = Some(options);
        self.settled = true;
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }

    /// A block is ready; whether it begins a context anew. An empty one only carries the end.
    pub(crate) fn block(&mut self, decoded_len: usize, coded: bool, end: bool) -> Option<bool> {
        self.has_context |= coded;
        (decoded_len > 0 || end).then(|| {
            self.ready += 1;
            coded && std::mem::take(&mut self.anew)
        })
    }

    /// A block has left.
    pub(crate) fn departed(&mut self) {
        self.ready = self.ready.saturating_sub(1);
    }

    /// Behind the blocks that are ready the trailers may go; once.
    pub(crate) fn take_trailers(&mut self) -> bool {
        self.in_work.is_none() && std::mem::take(&mut self.trailers_due)
    }

    /// Nothing more will be sent; what is held is dropped.
    pub(crate) fn stop(&mut self) {
        self.open.clear();
        (self.cut_end, self.trailers_due) = (true, false);
        (self.in_work, self.ready) = (None, 0);
        self.ended.get_or_insert(false);
    }

    /// Bytes held here.
    pub(crate) fn held_bytes(&self) -> usize {
        self.open.len()
    }
}
