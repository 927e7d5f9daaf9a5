//! Changes on their way to the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::compact::compact;
use crate::change::Change;
use crate::ids::{Protocol, SessionId, Ticket};

/// Collects changes while others are being written, so that one commit serves many.
#[derive(Debug)]
pub(crate) struct Journal {
    is_durable: bool,
    changes: Vec<Change>,
    /// The ticket of what is collected.
    open: Ticket,
    /// The ticket that is being written.
    writing: Option<Ticket>,
    done: Ticket,
    /// Sessions whose next message waits for the store.
    blocked: Vec<SessionId>,
    /// Records of adapters that the store had.
    kept: BTreeMap<(Protocol, Arc<str>), Bytes>,
}

impl Journal {
    /// One that collects, or one that forgets.
    pub(crate) fn new(is_durable: bool) -> Self {
        Self {
            is_durable,
            changes: Vec::new(),
            open: Ticket(1),
            writing: None,
            done: Ticket(0),
            blocked: Vec::new(),
            kept: BTreeMap::new(),
        }
    }

    /// Whether anything is kept.
    pub(crate) fn is_durable(&self) -> bool {
        self.is_durable
    }

    /// Adds a change.
    pub(crate) fn add(&mut self, change: Change) {
        if self.is_durable {
            self.changes.push(change);
        }
    }

    /// Keeps a record of an adapter, or keeps it no more.
    pub(crate) fn keep(&mut self, protocol: Protocol, key: Arc<str>, value: Option<Bytes>) {
        self.add(Change::Kept { protocol, key, value });
    }

    /// The store had a record of an adapter, or had it no more.
    pub(crate) fn restore_kept(&mut self, protocol: Protocol, key: Arc<str>, value: Option<Bytes>) {
        match value {
            Some(value) => self.kept.insert((protocol, key), value),
            None => self.kept.remove(&(protocol, key)),
        };
    }

    /// The records of an adapter that the store had, once.
    pub(crate) fn take_kept(&mut self, protocol: Protocol) -> Vec<(Arc<str>, Bytes)> {
        let (own, others) = std::mem::take(&mut self.kept)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|((of, _), _)| *of == protocol);
        self.kept = others;
        own.into_iter().map(|((_, key), value)| (key, value)).collect()
    }

    /// The ticket of what was added last.
    pub(crate) fn ticket(&self) -> Ticket {
        if self.changes.is_empty() { self.writing.unwrap_or(self.done) } else { self.open }
    }

    /// The ticket of what is added next.
    pub(crate) fn open_ticket(&self) -> Ticket {
        self.open
    }

    /// What is to be written, if anything is and nothing is being written: the ticket and the
    /// changes, none where these have come to nothing.
    pub(crate) fn next_batch(&mut self) -> Option<(Ticket, Vec<Change>)> {
        if self.writing.is_some() || self.changes.is_empty() {
            return None;
        }
        let ticket = self.open;
        self.writing = Some(ticket);
        self.open = Ticket(ticket.0 + 1);
        let mut changes = std::mem::take(&mut self.changes);
        compact(&mut changes);
        Some((ticket, changes))
    }

    /// Changes up to a ticket are written.
    pub(crate) fn committed(&mut self, ticket: Ticket) {
        if self.writing.is_some_and(|writing| writing <= ticket) {
            self.writing = None;
            self.done = self.done.max(ticket);
        }
    }

    /// What has been written.
    pub(crate) fn done(&self) -> Ticket {
        self.done
    }

    /// A session waits for the store.
    pub(crate) fn block(&mut self, session: SessionId) {
        if !self.blocked.contains(&session) {
            self.blocked.push(session);
        }
    }

    /// Those that waited.
    pub(crate) fn take_blocked(&mut self) -> Vec<SessionId> {
        std::mem::take(&mut self.blocked)
    }
}
