//! A client goes, and its session ends.

use std::time::Duration;

use super::notes::forget_notes;
use super::publishing::{Addressed, identifiers};
use super::publishing::{leaves, member_of, queue_once};
use super::session_of;
use super::{Core, Deadline, federating, watching};
use crate::change::Change;
use crate::event::{Drop, Event};
use crate::filter::shared;
use crate::ids::{ConnectionId, Protocol, SessionId};
use crate::session::{Entry, Will};

impl Core {
    /// A connection has ended. With `orderly` the client said so, and its will is of no use;
    /// `expiry` replaces what was said at the opening. Does nothing if the session has another
    /// connection by now.
    pub fn close(
        &mut self,
        now: Duration,
        id: SessionId,
        connection: ConnectionId,
        orderly: bool,
        expiry: Option<Duration>,
    ) {
        let max = self.settings.max_session_expiry;
        let Some(session) = session_of(self, id, connection) else { return };
        session.connection = None;
        session.is_asleep = false;
        if let Some(expiry) = expiry {
            session.expiry = expiry.min(max);
        }
        if orderly {
            session.will = None;
        }
        let (expiry, client) = (session.expiry, session.key.clone());
        let delay = session.will.as_ref().map(|will| will.delay.min(expiry));
        if session.key.protocol != Protocol::Bridge {
            // A bridge does not subscribe again, so that it goes on where it was.
            session.walks.clear();
        }
        self.telling.counts.connected = self.telling.counts.connected.saturating_sub(1);
        self.tell(Event::Closed { client, orderly });
        if expiry.is_zero() {
            self.end(now, id);
            return;
        }
        self.timers.set(Deadline::End(id), Some(now.saturating_add(expiry)));
        match delay {
            Some(delay) if delay.is_zero() => will_is_due(self, now, id),
            Some(delay) => self.timers.set(Deadline::Will(id), Some(now.saturating_add(delay))),
            None => {}
        }
        drop_grade_0(self, id);
    }

    /// Ends a session with all that it holds, its will published first if it has one.
    pub fn end(&mut self, now: Duration, id: SessionId) {
        will_is_due(self, now, id);
        self.timers.set(Deadline::End(id), None);
        self.timers.set(Deadline::Will(id), None);
        self.timers.set(Deadline::Drain(id), None);
        let Some(mut session) = self.sessions.remove(id) else { return };
        if session.connection.is_some() {
            self.telling.counts.connected = self.telling.counts.connected.saturating_sub(1);
        }
        for filter in session.subscriptions.filters() {
            let bare = shared(filter).ok().flatten().map_or(&**filter, |(_, filter)| filter);
            watching::unwanted(self, bare);
            match shared(filter) {
                Ok(Some((group, filter))) => self.index.remove(filter, Some(group), id),
                _ => self.index.remove(filter, None, id),
            };
        }
        let flying = session.inflight.drain();
        // What is under way is not counted among what waits any more.
        self.total_bytes = self.total_bytes.saturating_sub(session.queue.bytes());
        let mut left: Vec<Entry> = flying.into_iter().filter_map(|flying| flying.entry).collect();
        left.extend(session.queue.drain());
        for entry in left {
            if !hand_over(self, &entry) {
                let (client, why) = (Some(session.key.clone()), Drop::SessionEnded);
                self.telling.dropped(&entry.publication, client, why, format_args!(""));
            } else if entry.publication.is_followed {
                let (id, why) = (entry.publication.id, Drop::SessionEnded.name());
                let detail = format_args!("it goes to another of its group");
                self.telling.trails.ended(id, Some(&session.key), why, detail);
            }
        }
        // Behind what names the same messages for others: the store forgets those that nothing
        // names.
        if session.stored {
            self.journal.add(Change::SessionEnded { client: session.key.clone() });
            forget_notes(self, &session);
        }
        self.tell(Event::Ended { client: session.key });
    }
}

/// The client has been away for its will's delay, or its session ends.
pub(super) fn will_is_due(core: &mut Core, now: Duration, id: SessionId) {
    let will = core.sessions.get_mut(id).and_then(|session| session.will.take());
    if let Some(will) = will {
        publish_will(core, now, id, *will);
    }
}

pub(super) fn publish_will(core: &mut Core, now: Duration, id: SessionId, will: Will) {
    let mut publication = will.publication;
    publication.publisher = Some(id);
    publication.deadline = will.expiry.map(|expiry| now.saturating_add(expiry));
    // What it may be refused for was looked at when the client came.
    let result = core.publish(now, publication);
    if let Err(refusal) = result {
        let protocol = core.client(id).map_or(Protocol::Broker, |key| key.protocol);
        let why = format!("a will was not published: {refusal}");
        core.tell(Event::Refused { protocol, connection: None, why });
    }
}

/// What was shared goes to another member of the group.
fn hand_over(core: &mut Core, entry: &Entry) -> bool {
    let Some(of) = entry.shared.clone() else { return false };
    let hits = core.index.find(&entry.publication.topic);
    let share = hits.shares.iter().find(|share| share.of == of);
    let Some(share) = share else { return false };
    let members = federating::who_may(core, &share.members, &entry.publication.topic);
    let Some(member) = member_of(core, &members) else { return false };
    let grade = entry.publication.grade.min(member.grade);
    let addressed = Addressed {
        grade,
        retain: entry.retain,
        identifiers: identifiers(&[member]),
        shared: Some(of),
        conflate: entry.conflate,
    };
    let mut is_stored = entry.stored;
    queue_once(core, member.session, &entry.publication, addressed, &mut is_stored);
    true
}

/// Messages of grade 0 do not wait for who is gone, unless the operator wants that.
fn drop_grade_0(core: &mut Core, id: SessionId) {
    if core.settings.queue_grade_0 {
        return;
    }
    let Some(session) = core.sessions.get_mut(id) else { return };
    let keeps_state = session.keeps_state();
    let waiting: Vec<Entry> = session.queue.drain().collect();
    let mut superseded = Vec::new();
    for entry in waiting {
        if entry.grade.get() > 0 || keeps_state && entry.publication.retain {
            superseded.extend(session.queue.push(entry));
        } else {
            core.total_bytes = core.total_bytes.saturating_sub(entry.size_bytes());
            let (client, why) = (Some(session.key.clone()), Drop::SessionEnded);
            let detail = format_args!("its connection has ended, and QoS 0 does not wait");
            core.telling.dropped(&entry.publication, client, why, detail);
        }
    }
    for old in superseded {
        leaves(core, id, &old, Drop::Superseded);
    }
}
