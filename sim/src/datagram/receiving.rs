//! Messages that come: put together from fragments, and read once what is before each was read.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use proto::Error;
use proto::stream::MAX_PAYLOAD_BYTES;

use super::MAX_AHEAD;
use super::packet::MAX_FRAGMENT_BYTES;

/// Most fragments of a message: a whole frame, and padding behind it.
const MAX_FRAGMENTS: u64 = (MAX_PAYLOAD_BYTES / MAX_FRAGMENT_BYTES) as u64 + 2;
/// The greeting, which everything else waits for.
const FIRST: u64 = 1;

/// A message that is not read.
#[derive(Debug)]
struct Message {
    after: u64,
    count: u64,
    fragments: BTreeMap<u64, Bytes>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Receiving {
    /// All below were read.
    below: u64,
    /// Those above that were.
    read: BTreeSet<u64>,
    open: BTreeMap<u64, Message>,
}

impl Receiving {
    pub(super) fn new() -> Self {
        Self { below: FIRST, read: BTreeSet::new(), open: BTreeMap::new() }
    }

    fn is_read(&self, message: u64) -> bool {
        message < self.below || self.read.contains(&message)
    }

    /// A fragment came, perhaps again. Errors: what no sender of ours sends.
    pub(super) fn push(
        &mut self,
        (message, after): (u64, u64),
        (place, count): (u64, u64),
        bytes: Bytes,
    ) -> Result<(), Error> {
        if self.is_read(message) {
            return Ok(());
        }
        if message >= self.below + MAX_AHEAD {
            let limit = self.below + MAX_AHEAD;
            return Err(Error::Limit { what: "the number of a message", value: message, limit });
        }
        if count > MAX_FRAGMENTS || place >= count || after >= message {
            return Err(Error::Peer { what: "a fragment out of its message", value: place });
        }
        let new = || Message { after, count, fragments: BTreeMap::new() };
        let open = self.open.entry(message).or_insert_with(new);
        if (open.after, open.count) != (after, count) {
            return Err(Error::Peer { what: "two shapes of message", value: message });
        }
        open.fragments.entry(place).or_insert(bytes);
        Ok(())
    }

    /// The next message that is whole and has its turn.
    pub(super) fn next(&mut self) -> Option<BytesMut> {
        let may = |(number, message): &(&u64, &Message)| {
            let whole = message.fragments.len() as u64 == message.count;
            let greeted = **number == FIRST || self.is_read(FIRST);
            whole && greeted && (message.after == 0 || self.is_read(message.after))
        };
        let number = self.open.iter().find(may).map(|(number, _)| *number)?;
        let message = self.open.remove(&number)?;
        self.read.insert(number);
        while self.read.remove(&self.below) {
            self.below += 1;
        }
        let mut bytes = BytesMut::new();
        message.fragments.values().for_each(|piece| bytes.extend_from_slice(piece));
        Some(bytes)
    }
}
