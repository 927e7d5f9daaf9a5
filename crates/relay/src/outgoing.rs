//! The half of an exchange that goes from the local side to the carrier: pieces of body become
//! blocks, blocks are encoded, encoded blocks leave in pieces as the peer's credit allows.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use proto::bhttp;
use proto::stream::{Data, Frame, Head, MAX_BLOCK_BYTES, Role};

use crate::carrier::encoded_len;
use crate::config::{BLOCK_PAUSE, LOCAL_WINDOW_BYTES, MAX_REQUEST_BYTES};
use crate::infoset::with_length;
use crate::outcomes::Log;

/// Encoded blocks held ahead of the carrier.
const MAX_BLOCKS: usize = 2;

/// A block cut from the body, to be encoded.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) bytes: Bytes,
    /// The body ends with it.
    pub(crate) end: bool,
    /// The coding ends with it: not where trailers follow.
    pub(crate) last: bool,
}

/// The block that is being encoded, as it was.
#[derive(Debug)]
pub(crate) struct InWork {
    number: u64,
    /// When its encoding was ordered.
    pub(crate) ordered: Duration,
    pub(crate) plain: Bytes,
    /// It ends the half, and the coding.
    pub(crate) end: bool,
    pub(crate) last: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// The head in binary HTTP, kept for as long as it may have to be sent again.
    head: Bytes,
    head_sent: bool,
    /// Codec of the body; final once `settled`.
    pub(crate) options: Option<codec::Options>,
    settled: bool,
    /// Blocks go as they are, whatever the head has named, until that is found to pay.
    pub(crate) uncoded: bool,
    /// A block has gone through the codec: others may go through the same context.
    has_context: bool,
    /// The next of these begins one anew.
    anew: bool,
    open: BytesMut,
    had_body: bool,
    flush_at: Duration,
    ended: Option<bhttp::Fields>,
    cut_end: bool,
    in_work: Option<InWork>,
    next_block: u64,
    /// Whole blocks, or what is left of the first.
    blocks: VecDeque<Data>,
    trailers_due: bool,
    /// Everything is with the carrier.
    pub(crate) finished: bool,
    granted: u64,
    held: u64,
    /// Edge: all of the body so far, while that is little, to be sent again; and the head that
    /// belongs to it, where another went.
    kept: Option<BytesMut>,
    kept_head: Option<Bytes>,
}

impl Outgoing {
    /// A half whose head is not there yet.
    pub(crate) fn new() -> Self {
        Self {
            head: Bytes::new(),
            head_sent: false,
            options: None,
            settled: false,
            uncoded: false,
            has_context: false,
            anew: false,
            open: BytesMut::new(),
            had_body: false,
            flush_at: Duration::ZERO,
            ended: None,
            cut_end: false,
            in_work: None,
            next_block: 0,
            blocks: VecDeque::new(),
            trailers_due: false,
            finished: false,
            granted: 0,
            held: 0,
            kept: None,
            kept_head: None,
        }
    }

    /// What is sent is kept, to be sent again.
    pub(crate) fn keep(&mut self) {
        self.kept = Some(BytesMut::new());
    }

    /// It will not be sent again.
    pub(crate) fn drop_kept(&mut self) {
        (self.kept, self.kept_head) = (None, None);
    }

    pub(crate) fn set_head(&mut self, now: Duration, head: Bytes, end: bool) {
        self.head = head;
        self.flush_at = now + BLOCK_PAUSE;
        if end {
            self.ended = Some(Vec::new());
        }
    }

    pub(crate) fn is_head_sent(&self) -> bool {
        self.head_sent
    }

    pub(crate) fn has_head(&self) -> bool {
        !self.head.is_empty()
    }

    pub(crate) fn head_len(&self) -> usize {
        self.head.len()
    }

    /// No byte of body came or will come: the half may be sent again from its head alone.
    pub(crate) fn is_bodyless(&self) -> bool {
        !self.had_body && self.ended.as_ref().is_some_and(Vec::is_empty)
    }

    /// What was sent may be sent again from here.
    pub(crate) fn can_go_again(&self) -> bool {
        self.is_bodyless() || (self.kept.is_some() && self.ended.is_some())
    }

    /// The local side was not even asked for body.
    pub(crate) fn is_untouched(&self) -> bool {
        self.granted == 0 && !self.had_body
    }

    /// The half as it was before anything was sent, where it [can](Self::can_go_again) be.
    pub(crate) fn rewind(&mut self) {
        let before = std::mem::replace(self, Self::new());
        let open = before.kept.clone().unwrap_or_default();
        let ended = before.ended.or_else(|| Some(Vec::new()));
        let head = before.kept_head.unwrap_or(before.head);
        // What is still being encoded must not be taken for what will be.
        let (next_block, had_body) = (before.next_block, before.had_body);
        let (held, kept) = (open.len() as u64, before.kept);
        *self = Self { head, open, had_body, ended, next_block, held, kept, ..Self::new() };
    }

    pub(crate) fn push(&mut self, now: Duration, bytes: &[u8]) {
        self.had_body = true;
        if self.kept.as_ref().is_some_and(|kept| kept.len() + bytes.len() > MAX_REQUEST_BYTES) {
            self.kept = None;
        }
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(bytes);
        }
        self.granted = self.granted.saturating_sub(bytes.len() as u64);
        self.held += bytes.len() as u64;
        self.open.extend_from_slice(bytes);
        self.flush_at = now + BLOCK_PAUSE;
    }

    pub(crate) fn end(&mut self, trailers: bhttp::Fields) {
        self.ended.get_or_insert(trailers);
    }

    /// When the open block, or the head that waits for one, goes though it is not full.
    pub(crate) fn wake_at(&self) -> Option<Duration> {
        let head_waits = self.options.is_none() && self.has_head();
        let block_waits = !self.open.is_empty() && self.blocks.is_empty();
        let can_cut = self.in_work.is_none() && !self.cut_end;
        (can_cut && (head_waits || block_waits)).then_some(self.flush_at)
    }

    /// The head cannot wait for a block any longer.
    pub(crate) fn head_is_due(&self, now: Duration) -> bool {
        self.options.is_none() && self.has_head() && now >= self.flush_at
    }

    /// The body ends with trailers.
    pub(crate) fn has_trailers(&self) -> bool {
        self.ended.as_ref().is_some_and(|trailers| !trailers.is_empty())
    }

    /// The body has another length than the head says.
    pub(crate) fn set_length(&mut self, role: Role, len: usize) {
        if let Some(head) = with_length(role, &self.head, len) {
            let before = std::mem::replace(&mut self.head, head);
            if self.kept.is_some() {
                self.kept_head.get_or_insert(before);
            }
        }
    }

    /// All is to be sent anew, the body as it is.
    pub(crate) fn anew(&mut self, body: Bytes) {
        (self.head_sent, self.finished) = (false, false);
        self.settle(codec::Options::IDENTITY);
        self.blocks.clear();
        let len = body.len();
        self.push_block(body, len, false, true);
    }

    /// What [`Outgoing::anew`] made ready, as it would be sent.
    pub(crate) fn as_log(&mut self, number: u64) -> Log {
        let mut log = Log::default();
        while let Some(frame) = self.next_frame(number, u64::MAX, usize::MAX) {
            log.push(&frame, encoded_len(&frame));
        }
        log
    }

    /// Bytes at hand and whether they are all: what a choice goes by.
    pub(crate) fn at_hand(&self) -> (&[u8], bool) {
        (&self.open, self.ended.is_some())
    }

    /// Whether [`Outgoing::cut`] would give a block.
    pub(crate) fn can_cut(&self, now: Duration) -> bool {
        let room = self.in_work.is_none() && self.blocks.len() < MAX_BLOCKS && !self.cut_end;
        let full = self.open.len() >= MAX_BLOCK_BYTES;
        // What goes uncoded gains nothing by waiting for more.
        let plain = self.uncoded || self.options == Some(codec::Options::IDENTITY);
        let waited = plain || now >= self.flush_at;
        let due = !self.open.is_empty() && self.blocks.is_empty() && waited;
        room && self.has_head() && (full || due || self.ended.is_some())
    }

    /// The next block, when one is full, is due, or is the last.
    pub(crate) fn cut(&mut self, now: Duration) -> Option<Cut> {
        if !self.can_cut(now) {
            return None;
        }
        let len = self.open.len().min(MAX_BLOCK_BYTES);
        let bytes = self.open.split_to(len).freeze();
        let end = self.ended.is_some() && self.open.is_empty();
        self.cut_end = end;
        let trailers = self.ended.as_ref().is_some_and(|trailers| !trailers.is_empty());
        self.trailers_due = end && trailers;
        Some(Cut { bytes, end: end && !trailers, last: end && !trailers })
    }

    /// Notes that a block is being encoded; returns its number.
    pub(crate) fn begin_work(
        &mut self,
        ordered: Duration,
        plain: Bytes,
        end: bool,
        last: bool,
    ) -> u64 {
        let number = self.next_block;
        self.next_block += 1;
        self.in_work = Some(InWork { number, ordered, plain, end, last });
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

    /// Of what is still to be sent, something begins a context anew: not for every peer.
    pub(crate) fn begins_anew(&self) -> bool {
        self.anew || self.blocks.iter().any(|block| block.anew)
    }

    /// The codec is final, the head may go.
    pub(crate) fn settle(&mut self, options: codec::Options) {
        self.options = Some(options);
        self.settled = true;
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }

    /// A block is ready for the carrier. An empty one only carries the end.
    pub(crate) fn push_block(&mut self, bytes: Bytes, decoded_len: usize, coded: bool, end: bool) {
        self.has_context |= coded;
        if decoded_len > 0 || end {
            let block_end = Some(decoded_len as u64);
            let (uncoded, anew) = (!coded, coded && std::mem::take(&mut self.anew));
            self.blocks.push_back(Data { exchange: 0, block_end, uncoded, anew, end, bytes });
        }
    }

    /// Whether a frame waits, leaving the peer's credit aside.
    pub(crate) fn is_ready(&self) -> bool {
        self.settled
            && !self.finished
            && (!self.head_sent
                || !self.blocks.is_empty()
                || (self.trailers_due && self.in_work.is_none()))
    }

    /// The next frame within the peer's `credit` and `most` bytes of piece.
    pub(crate) fn next_frame(&mut self, number: u64, credit: u64, most: usize) -> Option<Frame> {
        if !self.is_ready() {
            return None;
        }
        if !self.head_sent {
            return Some(self.head_frame(number));
        }
        let Some(block) = self.blocks.front_mut() else {
            self.trailers_due = false;
            self.finished = true;
            return Some(Frame::Trailers(number, self.ended.clone().unwrap_or_default()));
        };
        let piece = block.split_piece(credit, most)?;
        if let Some(decoded_len) = piece.block_end {
            self.blocks.pop_front();
            self.held = self.held.saturating_sub(decoded_len);
        }
        self.finished |= piece.end;
        Some(Frame::Data(Data { exchange: number, ..piece }))
    }

    fn head_frame(&mut self, number: u64) -> Frame {
        self.head_sent = true;
        // A body that turned out empty ends with the head.
        let only = self.blocks.len() == 1
            && self.blocks.front().is_some_and(|block| block.end && block.block_end == Some(0));
        if only {
            self.blocks.clear();
            self.finished = true;
        }
        let options = self.options.unwrap_or(codec::Options::IDENTITY);
        Frame::Head(Head {
            exchange: number,
            codec: options.codec,
            window_log: options.window_log,
            end: only,
            head: self.head.clone(),
        })
    }

    /// Further bytes the local side may hand over, in steps worth an action.
    pub(crate) fn grant(&mut self) -> Option<u64> {
        let room = LOCAL_WINDOW_BYTES.saturating_sub(self.granted + self.held);
        if self.ended.is_some() || room < LOCAL_WINDOW_BYTES / 4 {
            return None;
        }
        self.granted += room;
        Some(room)
    }

    /// Nothing more will be sent; what is held is dropped.
    pub(crate) fn stop(&mut self) {
        // A body that was still to come is lost with what is held.
        if self.ended.is_none() {
            self.had_body = true;
            self.drop_kept();
        }
        self.open.clear();
        self.blocks.clear();
        self.trailers_due = false;
        self.cut_end = true;
        self.in_work = None;
        self.finished = true;
        self.ended.get_or_insert_default();
    }

    /// Bytes held here, decoded or encoded.
    pub(crate) fn held_bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, BytesMut::len)
            + self.open.len()
            + self.blocks.iter().map(|block| block.bytes.len()).sum::<usize>()
    }
}
