//! Texts of messages that went as an infoset: the peer may ask for them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use codec::Options;

/// Bytes of texts whose receipt is awaited: they may have to be sent.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// The same, in messages.
const MAX_TEXTS: usize = 64;

/// Texts on their way to a peer, which may ask for them; and what it could not read.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    open: BTreeMap<u64, Text>,
    bytes: usize,
    /// By service, codec and level; until the path is new.
    pub(crate) unread: BTreeSet<(usize, u64, i8)>,
    /// The schema that the peer has for a service, where none is named here: what it sent last.
    pub(crate) adopted: BTreeMap<usize, [u8; 8]>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) text: Bytes,
    pub(crate) at: Duration,
    pub(crate) service: usize,
    pub(crate) options: Options,
}

impl Texts {
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.open.len() < MAX_TEXTS && self.bytes + bytes <= MAX_TEXT_BYTES
    }

    pub(crate) fn is_read(&self, service: usize, options: Options) -> bool {
        !self.unread.contains(&(service, options.codec.number(), options.level))
    }

    /// The peer has got what it lacked.
    pub(crate) fn read_again(&mut self, service: usize, options: Options) {
        self.unread.remove(&(service, options.codec.number(), options.level));
    }

    /// A message has left.
    pub(crate) fn left(&mut self, exchange: u64, text: Text) {
        self.arrived(exchange);
        self.bytes += text.text.len();
        self.open.insert(exchange, text);
    }

    /// A message has arrived, or is given up.
    pub(crate) fn arrived(&mut self, exchange: u64) {
        self.take(exchange);
    }

    pub(crate) fn take(&mut self, exchange: u64) -> Option<Text> {
        let text = self.open.remove(&exchange)?;
        self.bytes -= text.text.len();
        Some(text)
    }

    /// Messages that left before `since` are not waited for any more.
    pub(crate) fn expire(&mut self, since: Duration) {
        let late = self.open.iter().filter(|(_, one)| one.at < since);
        for exchange in late.map(|(&exchange, _)| exchange).collect::<Vec<_>>() {
            self.arrived(exchange);
        }
    }
}
