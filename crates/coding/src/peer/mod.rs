//! What is agreed with a peer over a path: receipts, bases, dictionaries, schemas, names.

mod bases;
mod names;
mod offers;
mod processor;
mod receipts;
mod schemas;

use std::time::Duration;

use proto::exchange::Part;
use record::event::Fact;

pub(crate) use processor::arms_of;
pub(crate) use schemas::find as find_schema;

use super::core::{Core, Key};
use super::path::Path;
use super::path::piggyback::{Waiting, patience};

/// A path with all that is shared.
#[derive(Debug)]
pub(crate) struct Peer<'a> {
    pub(crate) now: Duration,
    pub(crate) core: &'a mut Core,
    pub(crate) path: &'a mut Path,
}

impl Peer<'_> {
    /// Sends a control message.
    pub(crate) fn send(&mut self, part: Part) {
        self.core.control(self.path.id, part);
    }

    /// What the peer said is not used.
    pub(crate) fn ignore(&mut self, what: &'static str, reason: &str) {
        self.core.ignored(self.path.id, what, reason);
    }

    fn event(&mut self, fact: Fact) {
        self.core.event(fact);
    }

    /// Sends a control message with the next part, or alone after a round trip: nothing that comes
    /// before that could have known of it.
    pub(crate) fn piggyback(&mut self, one: Waiting) {
        let key = Key::Piggyback(self.path.id);
        if self.path.piggyback.push(one) {
            self.send_waiting();
        } else if !self.core.timers.is_set(key) {
            let wait = patience(self.path.estimate().rtt_s().value);
            self.core.timers.set(key, Some(self.now + wait));
        }
    }

    /// Nothing waits to be piggybacked from here on.
    pub(crate) fn flush(&mut self) {
        self.path.piggyback.flush();
        self.send_waiting();
    }

    /// Sends what waits to be piggybacked.
    pub(crate) fn send_waiting(&mut self) {
        self.core.timers.set(Key::Piggyback(self.path.id), None);
        for part in self.path.piggyback.take(self.now) {
            self.send(part);
        }
    }
}
