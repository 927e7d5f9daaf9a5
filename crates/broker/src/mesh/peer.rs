//! What a member knows of another: what waits for it, what it has, what it wants.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::wire::Writer;
use crate::ids::ConnectionId;
use crate::publication::{Grade, Publication};

/// Something that is to arrive whatever becomes of the topic's state.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    /// 0: it is no state.
    pub(super) stamp: u64,
    pub(super) publication: Arc<Publication>,
    /// It was given to a connection of the peer's present life.
    pub(super) was_sent: bool,
}

/// What waits for a member, by its place in the log.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: BTreeMap<u64, Waiting>,
    bytes: usize,
}

impl Queue {
    /// How many, and their bytes.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.waiting.len(), self.bytes)
    }

    pub(super) fn push(&mut self, seq: u64, waiting: Waiting) {
        self.bytes += waiting.publication.size_bytes();
        self.waiting.insert(seq, waiting);
    }

    pub(super) fn remove(&mut self, seq: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(&seq)?;
        self.bytes = self.bytes.saturating_sub(waiting.publication.size_bytes());
        Some(waiting)
    }

    /// The oldest goes.
    pub(super) fn pop(&mut self) -> Option<(u64, Waiting)> {
        let seq = *self.waiting.keys().next()?;
        self.remove(seq).map(|waiting| (seq, waiting))
    }

    /// The first behind a place.
    pub(super) fn after(&mut self, seq: u64) -> Option<(u64, &mut Waiting)> {
        let (seq, waiting) = self.waiting.range_mut(seq.saturating_add(1)..).next()?;
        Some((*seq, waiting))
    }

    /// Those up to a place go.
    pub(super) fn take_up_to(&mut self, seq: u64) -> Vec<(u64, Waiting)> {
        let places: Vec<u64> = self.waiting.range(..=seq).map(|(seq, _)| *seq).collect();
        places.into_iter().filter_map(|seq| Some((seq, self.remove(seq)?))).collect()
    }

    /// Those that fit go.
    pub(super) fn take_if(&mut self, goes: impl Fn(&Waiting) -> bool) -> Vec<(u64, Waiting)> {
        let fits = self.waiting.iter().filter(|(_, waiting)| goes(waiting));
        let places: Vec<u64> = fits.map(|(seq, _)| *seq).collect();
        places.into_iter().filter_map(|seq| Some((seq, self.remove(seq)?))).collect()
    }
}

impl Waiting {
    /// It is lost with the connection.
    pub(super) fn is_fleeting(&self) -> bool {
        self.publication.grade == Grade::AtMostOnce
    }
}

/// How far a member has got another's states of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Behind which place it has asked for them.
    pub(super) named: u64,
    /// Up to which they were sent.
    pub(super) sent: u64,
}

/// What has been counted of a peer since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    pub(super) dropped: u64,
    pub(super) repairs: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Peer {
    pub(super) queue: Queue,
    /// Its present life; 0: it was never met.
    pub(super) life: u64,
    /// Up to where its log was taken, and up to where that is on disk.
    pub(super) received: u64,
    pub(super) claimed: u64,
    /// Up to where it has this one's log for good.
    pub(super) acked: u64,
    /// Up to where publications, and states, of this one's log are not to be sent over this
    /// connection any more.
    pub(super) sent: u64,
    pub(super) sent_states: u64,
    /// What it wants, by its own number.
    pub(super) filters: BTreeSet<Arc<str>>,
    pub(super) interest: u64,
    /// The first part of all that it wants, until the rest has come.
    pub(super) staged: Option<BTreeSet<Arc<str>>>,
    /// States that it has, as it has said itself.
    pub(super) held: BTreeMap<Writer, u64>,
    /// States of others that it wants from this one, and up to where they were sent.
    pub(super) wants: BTreeMap<Writer, Wanted>,
    /// States that it gets again, since those of both sides differ.
    pub(super) repairs: BTreeMap<Writer, u64>,
    /// When its states were last compared as a whole.
    pub(super) compared_at: Option<Duration>,
    /// The connection over which it is known.
    pub(super) link: Option<ConnectionId>,
    /// When it is dialled next.
    pub(super) dial_at: Option<Duration>,
    pub(super) failures: u32,
    pub(super) counted: Counted,
}
