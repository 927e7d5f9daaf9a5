//! What members want of each other: the filters of each one's clients, as a numbered whole of which
//! only changes are sent while both are there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::keeping;
use super::machine::Mesh;
use super::sending::{self, MAX_UNSENT_BYTES};
use super::wire::{Frame, MAX_FRAME_FILTERS, Wrong};
use crate::ids::{ConnectionId, SessionId};
use crate::index::{Index, Subscriber};
use crate::publication::Grade;

/// Filters that one member is told of; a member that has more wants everything.
const MAX_FILTERS: usize = 10_000;
/// Bytes of these, and of one of them, with the same consequence.
const MAX_BYTES: usize = 1 << 20;
const MAX_FILTER_BYTES: usize = 4 << 10;
/// A member that wants everything for that says what it wants again under this share of the bounds,
/// so that one filter that comes and goes does not change all.
const AGAIN: (usize, usize) = (9, 10);
/// Bytes of filters in one frame.
const MAX_FRAME_BYTES: usize = 64 << 10;
/// Times a second that a member is told of changes; those of more wait and are told as their sum.
const MAX_SAID: u32 = 16;
const EVERYTHING: &str = "#";
const TOO_MANY: Wrong = "an interest of more than 10,000 filters";

/// What the clients here want.
#[derive(Debug)]
pub(super) struct Own {
    filters: BTreeSet<Arc<str>>,
    /// What they take, and how many of them are too long to be said.
    bytes: usize,
    long: usize,
    /// They are too many to be said.
    is_many: bool,
    /// Of what is said to others.
    version: u64,
}

impl Own {
    /// Nobody wants anything. The numbers begin where no earlier run of this member has, so that
    /// none of them says two things.
    pub(super) fn new(first: u64) -> Self {
        let version = (first >> 1).max(1);
        Self { filters: BTreeSet::new(), bytes: 0, long: 0, is_many: false, version }
    }

    /// A filter is wanted, or no more; whether that is news.
    fn set(&mut self, filter: &Arc<str>, is_wanted: bool) -> bool {
        let has_changed = match is_wanted {
            true => self.filters.insert(filter.clone()),
            false => self.filters.remove(filter),
        };
        if !has_changed {
            return false;
        }
        let long = usize::from(filter.len() > MAX_FILTER_BYTES);
        (self.bytes, self.long) = match is_wanted {
            true => (self.bytes + filter.len(), self.long + long),
            false => (self.bytes.saturating_sub(filter.len()), self.long.saturating_sub(long)),
        };
        let (part, of) = if self.is_many { AGAIN } else { (1, 1) };
        let is_over = |sum: usize, max: usize| sum > max / of * part;
        self.is_many = self.long > 0
            || is_over(self.filters.len(), MAX_FILTERS)
            || is_over(self.bytes, MAX_BYTES);
        true
    }

    /// What others are told.
    fn said(&self) -> BTreeSet<Arc<str>> {
        if self.is_many {
            return BTreeSet::from([EVERYTHING.into()]);
        }
        self.filters.clone()
    }
}

/// What a member was not told yet over its connection.
#[derive(Debug, Default)]
pub(super) struct Unsaid {
    /// Filters that it takes for the opposite.
    // bound: what was said and what is to be said, each of which is bounded.
    changed: BTreeMap<Arc<str>, bool>,
    /// All is to be said.
    is_all: bool,
    /// How often something was said since the last tick.
    said: u32,
}

impl Unsaid {
    fn note(&mut self, filter: &Arc<str>, is_wanted: bool) {
        // What goes back to what was said needs no word.
        if self.changed.remove(filter).is_none() && !self.is_all {
            self.changed.insert(filter.clone(), is_wanted);
        }
    }

    fn is_nothing(&self) -> bool {
        !self.is_all && self.changed.is_empty()
    }

    /// Another second has begun.
    pub(super) fn tick(&mut self) {
        self.said = 0;
    }
}

/// What the others want.
#[derive(Debug, Default)]
pub(super) struct Remote {
    index: Index,
}

impl Remote {
    /// Members that want a topic, by their numbers.
    pub(super) fn find(&mut self, topic: &Arc<str>) -> Vec<usize> {
        let hits = self.index.find(topic);
        let mut found: Vec<usize> =
            hits.own.as_slice().iter().map(|hit| hit.session.index()).collect();
        found.dedup();
        found
    }

    pub(super) fn add(&mut self, peer: usize, filter: &str) {
        let Ok(number) = u32::try_from(peer) else { return };
        let grade = Grade::ExactlyOnce;
        let session = SessionId(number);
        let (no_local, as_published, identifier) = (false, true, 0);
        let subscriber = Subscriber { session, grade, no_local, as_published, identifier };
        self.index.insert(filter, None, subscriber);
    }

    fn remove(&mut self, peer: usize, filter: &str) {
        let Ok(number) = u32::try_from(peer) else { return };
        self.index.remove(filter, None, SessionId(number));
    }
}

/// A filter is wanted here, or no more.
pub(super) fn changes(mesh: &mut Mesh, now: Duration, filter: Arc<str>, is_wanted: bool) {
    if filter.starts_with('$') {
        return;
    }
    let was_many = mesh.own.is_many;
    let has_changed = mesh.own.set(&filter, is_wanted);
    let is_many = mesh.own.is_many;
    if !has_changed || was_many && is_many {
        return;
    }
    mesh.own.version += 1;
    let linked: Vec<ConnectionId> = mesh.peers.iter().filter_map(|peer| peer.link).collect();
    for id in linked {
        let Some(link) = mesh.links.get_mut(&id) else { continue };
        if was_many == is_many {
            link.unsaid.note(&filter, is_wanted);
        } else {
            (link.unsaid.is_all, link.unsaid.changed) = (true, BTreeMap::new());
        }
        say(mesh, now, id);
    }
}

/// Says what has changed, where there is room and it is not said too often.
pub(super) fn say(mesh: &mut Mesh, now: Duration, id: ConnectionId) {
    let version = mesh.own.version;
    let Some(link) = mesh.links.get_mut(&id) else { return };
    let has_room = link.unsent_bytes < MAX_UNSENT_BYTES && link.unsaid.said < MAX_SAID;
    if link.unsaid.is_nothing() || !has_room {
        return;
    }
    link.unsaid.said += 1;
    let is_all = std::mem::take(&mut link.unsaid.is_all);
    let changed = std::mem::take(&mut link.unsaid.changed);
    let bytes: usize = changed.keys().map(|filter| filter.len()).sum();
    if is_all || changed.len() > MAX_FRAME_FILTERS || bytes > MAX_FRAME_BYTES {
        return say_all(mesh, now, id);
    }
    let (mut add, mut remove) = (Vec::new(), Vec::new());
    for (filter, is_wanted) in changed {
        if is_wanted { add.push(filter) } else { remove.push(filter) }
    }
    let (whole, more) = (false, false);
    sending::send(mesh, now, id, &Frame::Interest { version, whole, more, add, remove });
}

/// A member has come that knows the interest up to a number.
pub(super) fn greet(mesh: &mut Mesh, now: Duration, id: ConnectionId, known: u64) {
    if known != mesh.own.version {
        say_all(mesh, now, id);
    }
}

fn say_all(mesh: &mut Mesh, now: Duration, id: ConnectionId) {
    let all: Vec<Arc<str>> = mesh.own.said().into_iter().collect();
    let version = mesh.own.version;
    let mut pieces = vec![Vec::new()];
    let mut bytes = 0;
    for filter in all {
        bytes += filter.len();
        match pieces.last_mut() {
            Some(piece) if piece.len() < MAX_FRAME_FILTERS && bytes <= MAX_FRAME_BYTES => {
                piece.push(filter);
            }
            _ => {
                bytes = filter.len();
                pieces.push(vec![filter]);
            }
        }
    }
    let last = pieces.len() - 1;
    for (at, add) in pieces.into_iter().enumerate() {
        let remove = Vec::new();
        let frame = Frame::Interest { version, whole: at == 0, more: at < last, add, remove };
        sending::send(mesh, now, id, &frame);
    }
}

/// A member says what it wants.
pub(super) fn take(mesh: &mut Mesh, at: usize, frame: Frame) -> Result<(), Wrong> {
    let Frame::Interest { version, whole, more, add, remove } = frame else { return Ok(()) };
    if add.iter().any(|filter| filter.starts_with('$')) {
        return Err("an interest in topics that begin with $, which stay with their broker");
    }
    let Some(peer) = mesh.peers.get_mut(at) else { return Ok(()) };
    if whole {
        peer.staged = Some(BTreeSet::new());
    }
    let (mut added, mut gone) = (add, remove);
    if let Some(mut staged) = peer.staged.take() {
        staged.extend(added);
        if staged.len() > MAX_FILTERS {
            return Err(TOO_MANY);
        }
        // What goes out meanwhile goes by what was wanted before.
        if more {
            peer.staged = Some(staged);
            return Ok(());
        }
        gone = peer.filters.difference(&staged).cloned().collect();
        added = staged.into_iter().collect();
    }
    for filter in gone {
        remove_filter(mesh, at, &filter);
    }
    for filter in added {
        add_filter(mesh, at, filter)?;
    }
    let name = mesh.name(at);
    if let Some(peer) = mesh.peers.get_mut(at) {
        peer.interest = version;
    }
    mesh.keep(keeping::interest(&name, version));
    Ok(())
}

fn add_filter(mesh: &mut Mesh, at: usize, filter: Arc<str>) -> Result<(), Wrong> {
    let Some(peer) = mesh.peers.get_mut(at) else { return Ok(()) };
    if !peer.filters.insert(filter.clone()) {
        return Ok(());
    }
    if peer.filters.len() > MAX_FILTERS {
        peer.filters.remove(&filter);
        return Err(TOO_MANY);
    }
    mesh.remote.add(at, &filter);
    let name = mesh.name(at);
    mesh.keep(keeping::filter(&name, &filter));
    Ok(())
}

fn remove_filter(mesh: &mut Mesh, at: usize, filter: &Arc<str>) {
    let Some(peer) = mesh.peers.get_mut(at) else { return };
    if peer.filters.remove(filter) {
        mesh.remote.remove(at, filter);
        let name = mesh.name(at);
        mesh.drop_record(keeping::filter_key(&name, filter));
    }
}

/// Nothing is known of what a member wants any more, which has begun another life.
pub(super) fn forget(mesh: &mut Mesh, at: usize) {
    let Some(peer) = mesh.peers.get_mut(at) else { return };
    peer.interest = 0;
    peer.staged = None;
    let all: Vec<Arc<str>> = peer.filters.iter().cloned().collect();
    all.iter().for_each(|filter| remove_filter(mesh, at, filter));
}
