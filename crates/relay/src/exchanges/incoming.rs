//! The message that comes from the carrier: the local side gets its body within its credit, and the
//! peer gets credit for what was read.

use std::collections::VecDeque;

use bytes::Bytes;
use codec::Options;
use proto::bhttp;

use crate::config::INITIAL_CREDIT_BYTES;

/// How far what was decoded last has been delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Delivery {
    /// All of it.
    #[default]
    Done,
    /// It has just come.
    Fresh,
    /// It waits for the local side.
    Waits,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// Codec of the body, from the head.
    options: Options,
    pub(crate) headed: bool,
    decoded: VecDeque<Bytes>,
    delivery: Delivery,
    local_credit: u64,
    ended: Option<bhttp::Fields>,
    /// The message ended with its head: that was reported to the local side with it.
    pub(crate) ended_with_head: bool,
    /// All of it was decoded.
    pub(crate) whole: bool,
    /// The local side has everything.
    pub(crate) finished: bool,
    window: u64,
    consumed: u64,
}

impl Default for Incoming {
    fn default() -> Self {
        Self {
            options: Options::IDENTITY,
            headed: false,
            decoded: VecDeque::new(),
            delivery: Delivery::Done,
            local_credit: 0,
            ended: None,
            ended_with_head: false,
            whole: false,
            finished: false,
            window: INITIAL_CREDIT_BYTES,
            consumed: 0,
        }
    }
}

impl Incoming {
    /// Codec of the body; the level is the sender's and not sent.
    pub(crate) fn codec_name(&self) -> String {
        let label = self.options.label();
        label.split_once(':').map_or(label.clone(), |(name, _)| name.to_owned())
    }

    /// Whether the peer has sent its last piece.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    pub(crate) fn set_head(&mut self, options: Options, end: bool) {
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

    /// Decoded bytes wait for the local side.
    pub(crate) fn waits(&self) -> bool {
        !self.decoded.is_empty() && self.local_credit == 0
    }

    pub(crate) fn push_decoded(&mut self, bytes: Bytes) {
        self.decoded.push_back(bytes);
        self.delivery = Delivery::Fresh;
    }

    pub(crate) fn add_local_credit(&mut self, bytes: u64) {
        self.local_credit = self.local_credit.saturating_add(bytes);
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

    /// Where that is news: whether all that was decoded is delivered now, or waits.
    pub(crate) fn delivered(&mut self) -> Option<bool> {
        let all = self.decoded.is_empty();
        let now = if all { Delivery::Done } else { Delivery::Waits };
        (std::mem::replace(&mut self.delivery, now) != now).then_some(all)
    }

    /// The trailers, once, when everything else is delivered.
    pub(crate) fn take_end(&mut self) -> Option<bhttp::Fields> {
        if self.finished || !self.whole || !self.decoded.is_empty() {
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

    /// So many bytes of credit were used up and read.
    pub(crate) fn consume(&mut self, bytes: u64) {
        self.consumed += bytes;
    }

    /// Enough was consumed for new credit to be worth a part.
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

    /// Bytes held here.
    pub(crate) fn held_bytes(&self) -> usize {
        self.decoded.iter().map(Bytes::len).sum()
    }
}
