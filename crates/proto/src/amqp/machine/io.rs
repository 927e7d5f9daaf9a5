//! What all parts of a connection write to.

use std::collections::VecDeque;

use super::settings::{Counts, MAX_DESCRIPTION_BYTES, Output};
use crate::amqp::frame::{self, Kind};
use crate::amqp::performative::{ErrorInfo, Performative};
use crate::amqp::types::Symbol;

/// See the module.
#[derive(Debug)]
pub(super) struct Io {
    /// Bytes for the peer.
    pub(super) wire: Vec<u8>,
    /// Bounded by what one input can do.
    pub(super) outputs: VecDeque<Output>,
    /// Longest frame that the peer takes, in bytes.
    pub(super) max_frame_bytes: usize,
    pub(super) counts: Counts,
    /// A frame that the peer does not take was not written.
    pub(super) is_overlong: bool,
}

impl Io {
    pub(super) fn send(&mut self, channel: u16, performative: &Performative) {
        self.send_with(channel, performative, &[]);
    }

    /// With a payload behind it, which has to fit.
    pub(super) fn send_with(&mut self, channel: u16, performative: &Performative, payload: &[u8]) {
        let before = self.wire.len();
        frame::encode(&mut self.wire, Kind::Amqp, channel, |out| {
            performative.encode(out);
            out.extend_from_slice(payload);
        });
        if self.wire.len() - before > self.max_frame_bytes {
            self.wire.truncate(before);
            self.is_overlong = true;
        }
    }

    pub(super) fn say(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    pub(super) fn misused(&mut self) {
        self.counts.misused += 1;
    }
}

/// What a frame of the peer ends.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// The connection.
    Connection(ErrorInfo),
    /// The session that it came in.
    Session(ErrorInfo),
    /// The link with this handle of the peer.
    Link(u32, ErrorInfo),
}

impl Fault {
    pub(super) fn connection(condition: Symbol, what: &str) -> Self {
        Self::Connection(ErrorInfo::new(condition, what))
    }

    pub(super) fn session(condition: Symbol, what: &str) -> Self {
        Self::Session(ErrorInfo::new(condition, what))
    }
}

/// Words that the peer or the application has said, at a length that fits any frame.
pub(super) fn shortened(error: Option<ErrorInfo>) -> Option<ErrorInfo> {
    let mut error = error?;
    error.info.clear();
    if let Some(text) = error.description.as_mut()
        && let Some(end) = (0..=MAX_DESCRIPTION_BYTES).rev().find(|at| text.is_char_boundary(*at))
    {
        text.truncate(end);
    }
    Some(error)
}
