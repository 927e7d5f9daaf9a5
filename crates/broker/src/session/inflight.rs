//! What a session has been sent and has not acknowledged yet.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU16;

use super::queue::Entry;

/// How far a message of grade 1 or 2 has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It was sent.
    Sent,
    /// The client has it, and is to be told that its number is free (MQTT 5 §4.3.3).
    Received,
}

/// A message under way.
#[derive(Debug)]
pub(crate) struct Flying {
    /// In which order they were sent.
    pub(crate) order: u64,
    /// How far it is.
    pub(crate) phase: Phase,
    /// The message; `None` once the client has it.
    pub(crate) entry: Option<Entry>,
    /// Its number in the store, for what is left of it when the message is gone.
    pub(crate) number: u64,
    /// It is in the store.
    pub(crate) stored: bool,
}

/// See the module; bounded by the client's window.
#[derive(Debug, Default)]
pub(crate) struct Inflight {
    flying: BTreeMap<u16, Flying>,
    last: u16,
    order: u64,
    /// What is to be sent again since the connection is a new one.
    again: VecDeque<u16>,
}

impl Inflight {
    /// How many are under way.
    pub(crate) fn len(&self) -> usize {
        self.flying.len()
    }

    /// One that is under way.
    pub(crate) fn get(&self, handle: u16) -> Option<&Flying> {
        self.flying.get(&handle)
    }

    /// One leaves: the number that it is known by; `None` if all are in use.
    pub(crate) fn begin(&mut self, entry: Entry) -> Option<NonZeroU16> {
        let handle = self.free_handle()?;
        self.restore(handle, Phase::Sent, entry.number, entry.stored, Some(entry));
        Some(handle)
    }

    /// One is under way, as the store has it or a connection before had.
    pub(crate) fn restore(
        &mut self,
        handle: NonZeroU16,
        phase: Phase,
        number: u64,
        stored: bool,
        entry: Option<Entry>,
    ) {
        self.order += 1;
        let flying = Flying { order: self.order, phase, entry, number, stored };
        self.flying.insert(handle.get(), flying);
    }

    /// The client has it: what is left is to tell it that the number is free.
    pub(crate) fn receive(&mut self, handle: u16) -> Option<&Flying> {
        let flying = self.flying.get_mut(&handle)?;
        flying.phase = Phase::Received;
        flying.entry = None;
        Some(flying)
    }

    /// It is done with.
    pub(crate) fn end(&mut self, handle: u16) -> Option<Flying> {
        self.flying.remove(&handle)
    }

    /// All that is under way is to be sent again, in the order in which it was.
    pub(crate) fn repeat(&mut self) {
        let mut handles: Vec<(u64, u16)> =
            self.flying.iter().map(|(handle, flying)| (flying.order, *handle)).collect();
        handles.sort_unstable();
        self.again = handles.into_iter().map(|(_, handle)| handle).collect();
    }

    /// The next to be sent again.
    pub(crate) fn next_again(&mut self) -> Option<(NonZeroU16, &Flying)> {
        while let Some(handle) = self.again.pop_front() {
            if self.flying.contains_key(&handle) {
                return NonZeroU16::new(handle).zip(self.flying.get(&handle));
            }
        }
        None
    }

    /// Whether anything is to be sent again.
    pub(crate) fn has_again(&self) -> bool {
        !self.again.is_empty()
    }

    /// All, in the order in which they were sent.
    pub(crate) fn drain(&mut self) -> Vec<Flying> {
        let mut all: Vec<Flying> = std::mem::take(&mut self.flying).into_values().collect();
        all.sort_by_key(|flying| flying.order);
        self.again.clear();
        all
    }

    fn free_handle(&mut self) -> Option<NonZeroU16> {
        if self.flying.len() >= usize::from(u16::MAX) {
            return None;
        }
        loop {
            self.last = self.last.wrapping_add(1).max(1);
            if !self.flying.contains_key(&self.last) {
                return NonZeroU16::new(self.last);
            }
        }
    }
}
