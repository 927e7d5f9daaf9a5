//! The message that goes from the local side to the carrier: its head, and encoded blocks that
//! leave in pieces as the peer's credit allows.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use proto::bhttp;
use proto::exchange::{Data, Head, Part, Role};

use crate::config::{LOCAL_WINDOW_BYTES, MAX_REQUEST_BYTES};
use crate::http::with_length;
use crate::outcomes::Log;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// The head in binary HTTP, kept for as long as it may have to be sent again.
    head: Bytes,
    head_sent: bool,
    /// What the head names, once it may go.
    options: Option<codec::Options>,
    had_body: bool,
    /// Bytes of the body, as its head says.
    said_bytes: Option<u64>,
    ended: Option<bhttp::Fields>,
    /// Whole blocks, or what is left of the first.
    blocks: VecDeque<Data>,
    /// Behind the blocks the trailers may go.
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
    /// What is sent is kept, to be sent again.
    pub(crate) fn keep(&mut self) {
        self.kept = Some(BytesMut::new());
    }

    /// It will not be sent again.
    pub(crate) fn drop_kept(&mut self) {
        (self.kept, self.kept_head) = (None, None);
    }

    pub(crate) fn set_head(&mut self, head: Bytes, end: bool) {
        self.head = head;
        if end {
            self.ended = Some(Vec::new());
        }
    }

    /// So many bytes of body are to come.
    pub(crate) fn say_length(&mut self, bytes: Option<u64>) {
        self.said_bytes = bytes;
    }

    pub(crate) fn is_head_sent(&self) -> bool {
        self.head_sent
    }

    /// No byte of body came or will come: the message may be sent again from its head alone.
    pub(crate) fn is_bodyless(&self) -> bool {
        !self.had_body && self.ended.as_ref().is_some_and(Vec::is_empty)
    }

    /// Bytes of the body, where its head says so or all of it is here.
    pub(crate) fn length(&self) -> Option<u64> {
        let kept = self.kept.as_ref().map(|kept| kept.len() as u64);
        match self.is_bodyless() {
            true => Some(0),
            false => kept.filter(|_| self.ended.is_some()).or(self.said_bytes),
        }
    }

    /// What was sent may be sent again from here.
    pub(crate) fn can_go_again(&self) -> bool {
        self.is_bodyless() || (self.kept.is_some() && self.ended.is_some())
    }

    /// The local side was not even asked for body.
    pub(crate) fn is_untouched(&self) -> bool {
        self.granted == 0 && !self.had_body
    }

    /// It goes by what both ends of the carrier hold, or as an infoset: elsewhere that alone may be
    /// of no use.
    pub(crate) fn is_bound(&self) -> bool {
        self.options.is_some_and(|options| !options.stands_alone())
    }

    /// The message as it was before anything was sent, where it [can](Self::can_go_again) be; its
    /// body.
    pub(crate) fn rewind(&mut self) -> Bytes {
        let before = std::mem::take(self);
        let body = before.kept.as_ref().map(|kept| Bytes::copy_from_slice(kept));
        let body = body.unwrap_or_default();
        let ended = before.ended.or_else(|| Some(Vec::new()));
        let head = before.kept_head.unwrap_or(before.head);
        let (had_body, held, kept) = (before.had_body, body.len() as u64, before.kept);
        *self = Self { head, had_body, ended, held, kept, ..Self::default() };
        body
    }

    /// The local side handed over some of the body.
    pub(crate) fn note(&mut self, bytes: &[u8]) {
        self.had_body = true;
        if self.kept.as_ref().is_some_and(|kept| kept.len() + bytes.len() > MAX_REQUEST_BYTES) {
            self.kept = None;
        }
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(bytes);
        }
        self.granted = self.granted.saturating_sub(bytes.len() as u64);
        self.held += bytes.len() as u64;
    }

    pub(crate) fn end(&mut self, trailers: bhttp::Fields) {
        self.ended.get_or_insert(trailers);
    }

    /// The body has another length than the head says.
    pub(crate) fn set_length(&mut self, role: Role, len: usize) {
        if let Some(head) = with_length(role == Role::Edge, &self.head, len) {
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
        let block_end = Some(body.len() as u64);
        let (uncoded, anew, end, padding) = (true, false, true, None);
        let bytes = body;
        self.push_block(Data { exchange: 0, block_end, uncoded, anew, end, padding, bytes });
    }

    /// What [`Outgoing::anew`] made ready, as it would be sent.
    pub(crate) fn as_log(&mut self, number: u64) -> Log {
        let mut log = Log::default();
        while let Some(part) = self.next_part(number, u64::MAX, usize::MAX) {
            log.push(&part, part.content_len());
        }
        log
    }

    /// A block that is ready begins a context anew: not for every peer.
    pub(crate) fn begins_anew(&self) -> bool {
        self.blocks.iter().any(|block| block.anew)
    }

    /// The codec is final, the head may go.
    pub(crate) fn settle(&mut self, options: codec::Options) {
        self.options = Some(options);
    }

    /// A block is ready for the carrier. An empty one only carries the end.
    pub(crate) fn push_block(&mut self, block: Data) {
        self.blocks.push_back(block);
    }

    /// Behind the blocks the trailers may go.
    pub(crate) fn trailers_may_go(&mut self) {
        self.trailers_due = true;
    }

    /// Whether a part waits, leaving the peer's credit aside.
    pub(crate) fn is_ready(&self) -> bool {
        let more = !self.head_sent || !self.blocks.is_empty() || self.trailers_due;
        self.options.is_some() && !self.finished && more
    }

    /// The next part within the peer's `credit` and `most` bytes of piece.
    pub(crate) fn next_part(&mut self, number: u64, credit: u64, most: usize) -> Option<Part> {
        if !self.is_ready() {
            return None;
        }
        if !self.head_sent {
            return Some(self.head_part(number));
        }
        let Some(block) = self.blocks.front_mut() else {
            self.trailers_due = false;
            self.finished = true;
            return Some(Part::Trailers(number, self.ended.clone().unwrap_or_default()));
        };
        let piece = block.split_piece(credit, most)?;
        if let Some(decoded_len) = piece.block_end {
            self.blocks.pop_front();
            self.held = self.held.saturating_sub(decoded_len);
        }
        self.finished |= piece.end;
        Some(Part::Data(Data { exchange: number, ..piece }))
    }

    fn head_part(&mut self, number: u64) -> Part {
        self.head_sent = true;
        // A body that turned out empty ends with the head.
        let only = self.blocks.len() == 1
            && self.blocks.front().is_some_and(|block| block.end && block.block_end == Some(0));
        if only {
            self.blocks.clear();
            self.finished = true;
        }
        let options = self.options.unwrap_or(codec::Options::IDENTITY);
        Part::Head(Head {
            exchange: number,
            codec: options.codec.number(),
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
        self.blocks.clear();
        self.trailers_due = false;
        self.finished = true;
        self.ended.get_or_insert_default();
    }

    /// Bytes held here, decoded or encoded.
    pub(crate) fn held_bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, BytesMut::len)
            + self.blocks.iter().map(|block| block.bytes.len()).sum::<usize>()
    }
}
