//! The frames of an exchange that wait for a transaction.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::stream::Frame;

/// Most bytes of frames in a response; a longer frame goes alone.
const MAX_RESPONSE_BYTES: usize = 64 << 10;
/// So many bytes of an answer do not wait for more.
const ENOUGH_BYTES: usize = 8 << 10;
/// Nor does anything for longer.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub(super) struct Gathered {
    frames: VecDeque<Bytes>,
    bytes: usize,
    /// When the first came.
    since: Duration,
}

impl Gathered {
    /// Nothing yet.
    pub(super) fn new(now: Duration) -> Self {
        Self { frames: VecDeque::new(), bytes: 0, since: now }
    }

    /// One frame more, and perhaps padding that goes with it.
    pub(super) fn push(&mut self, frame: &Frame, padding: Option<usize>) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        padding.map(Frame::Padding).into_iter().for_each(|padding| padding.encode(&mut bytes));
        self.bytes += bytes.len();
        self.frames.push_back(bytes.into());
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// When it waits for its rest no longer.
    pub(super) fn due(&self) -> Duration {
        if self.bytes >= ENOUGH_BYTES { self.since } else { self.since + MAX_PAUSE }
    }

    /// All of it.
    pub(super) fn into_bytes(mut self) -> Bytes {
        self.take_within(usize::MAX)
    }

    /// As much as a response takes, and whether that is all.
    pub(super) fn take(&mut self, now: Duration) -> (Bytes, bool) {
        let taken = self.take_within(MAX_RESPONSE_BYTES);
        self.since = now;
        (taken, self.frames.is_empty())
    }

    fn take_within(&mut self, most: usize) -> Bytes {
        let mut taken = BytesMut::new();
        while let Some(frame) = self.frames.front()
            && (taken.is_empty() || taken.len() + frame.len() <= most)
        {
            taken.extend_from_slice(frame);
            self.frames.pop_front();
        }
        self.bytes -= taken.len();
        taken.freeze()
    }
}
