//! Changes on their way to the disk: one batch at a time, and what may be done when it is there.

use super::change::{Change, Ticket};

/// Changes that wait, and the batch that is written.
#[derive(Debug)]
pub(super) struct Journal<T> {
    changes: Vec<Change>,
    after: Vec<T>,
    written: Option<(Ticket, Vec<T>)>,
    last: Ticket,
}

/// What there is to do.
pub(super) enum Next<T> {
    /// Write these.
    Write(Ticket, Vec<Change>),
    /// Nothing has to be written before these.
    Now(Vec<T>),
    /// A batch is being written, or there is nothing.
    Nothing,
}

impl<T> Journal<T> {
    pub(super) fn new() -> Self {
        Self { changes: Vec::new(), after: Vec::new(), written: None, last: 0 }
    }

    pub(super) fn change(&mut self, change: Change) {
        // bound: each change is of an input, whose answers the shell waits for, or of a bounded
        // table's entry.
        self.changes.push(change);
    }

    /// Whether a batch is being written.
    pub(super) fn is_writing(&self) -> bool {
        self.written.is_some()
    }

    /// Something that is done when all changes until now are on the disk.
    pub(super) fn after(&mut self, what: T) {
        self.after.push(what);
    }

    /// A batch is on the disk: what may be done now.
    pub(super) fn persisted(&mut self, ticket: Ticket) -> Vec<T> {
        match self.written.take() {
            Some((expected, after)) if expected == ticket => after,
            other => {
                self.written = other;
                Vec::new()
            }
        }
    }

    /// The next batch.
    pub(super) fn next(&mut self) -> Next<T> {
        if self.written.is_some() {
            return Next::Nothing;
        }
        if self.changes.is_empty() {
            return match self.after.is_empty() {
                true => Next::Nothing,
                false => Next::Now(std::mem::take(&mut self.after)),
            };
        }
        self.last += 1;
        self.written = Some((self.last, std::mem::take(&mut self.after)));
        Next::Write(self.last, std::mem::take(&mut self.changes))
    }
}
