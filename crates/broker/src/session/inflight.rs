//! What a session has been sent and has not acknowledged yet.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU16;

use super::queue::Entry;
use crate::ids::Ticket;

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
    /// It may leave when this is written: a client that got a message of grade 2 under a number
    /// that the broker has forgotten would take the next one under it for the same.
    after: Ticket,
    /// It was sent before.
    pub(crate) repeated: bool,
}

/// What is to be sent of what is under way.
#[derive(Debug)]
pub(crate) enum Again<'a> {
    /// This, under that number.
    Send(NonZeroU16, &'a mut Flying),
    /// It has to be written first.
    Wait,
    /// Nothing.
    Nothing,
}

/// See the module; bounded by the client's window.
#[derive(Debug, Default)]
pub(crate) struct Inflight {
    flying: BTreeMap<u16, Flying>,
    last: u16,
    order: u64,
    /// What is to be sent: again since the connection is a new one, or once it is written.
    again: VecDeque<u16>,
}

impl Inflight {
    /// How many are under way.
    pub(crate) fn len(&self) -> usize {
        self.flying.len()
    }

    /// How many of them were sent over this connection.
    pub(crate) fn len_sent(&self) -> usize {
        self.flying.len().saturating_sub(self.again.len())
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

    /// One leaves once something is written.
    pub(crate) fn begin_after(&mut self, entry: Entry, after: Ticket) -> Option<NonZeroU16> {
        let handle = self.begin(entry)?;
        if let Some(flying) = self.flying.get_mut(&handle.get()) {
            flying.after = after;
            flying.repeated = false;
        }
        self.again.push_back(handle.get());
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
        let (order, after, repeated) = (self.order, Ticket(0), true);
        let flying = Flying { order, phase, entry, number, stored, after, repeated };
        self.flying.insert(handle.get(), flying);
    }

    /// The numbers of those that the client has and that are not done with.
    pub(crate) fn received(&self) -> impl Iterator<Item = u16> {
        let all = self.flying.iter();
        all.filter(|(_, flying)| flying.phase == Phase::Received).map(|(handle, _)| *handle)
    }

    /// Those that were sent and that the client does not say it has, by their numbers.
    pub(crate) fn sent(&self) -> impl Iterator<Item = (u16, &Entry)> {
        let all = self.flying.iter().filter(|(_, flying)| flying.phase == Phase::Sent);
        all.filter_map(|(handle, flying)| Some((*handle, flying.entry.as_ref()?)))
    }

    /// The client has it: what is left is to tell it that the number is free, once that is written.
    /// A client that was told so would take the message for a new one.
    pub(crate) fn receive(&mut self, handle: u16, after: Ticket) -> Option<&Flying> {
        let flying = self.flying.get_mut(&handle)?;
        flying.phase = Phase::Received;
        flying.entry = None;
        flying.after = if flying.stored { after } else { Ticket(0) };
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

    /// The next to be sent of what is under way, where the store is so far.
    pub(crate) fn next_again(&mut self, done: Ticket) -> Again<'_> {
        let gone = |handle: &u16| !self.flying.contains_key(handle);
        while self.again.front().is_some_and(gone) {
            self.again.pop_front();
        }
        let Some(handle) = self.again.front().copied() else { return Again::Nothing };
        match (NonZeroU16::new(handle), self.flying.get_mut(&handle)) {
            (Some(number), Some(flying)) if flying.after <= done => {
                self.again.pop_front();
                Again::Send(number, flying)
            }
            (_, Some(_)) => Again::Wait,
            (_, None) => Again::Nothing,
        }
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
