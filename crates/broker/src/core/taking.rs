//! Clients get what waits for them, and acknowledge it.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use super::publishing::leaves;
use super::{Core, Deadline, federating};
use crate::change::Change;
use crate::event::Drop;
use crate::forms::For;
use crate::ids::{SessionId, Ticket};
use crate::publication::{Grade, Publication};
use crate::retained::Step;
use crate::session::{Again, Entry, Flying, Phase, Turn, Walk};

/// A publication to be given to a client.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// What.
    pub publication: Arc<Publication>,
    /// How often it may arrive.
    pub grade: Grade,
    /// Whether it is given as a retained message.
    pub retain: bool,
    /// It was given over another connection before.
    pub repeated: bool,
    /// The number under which it is acknowledged; `None` for grade 0.
    pub handle: Option<NonZeroU16>,
    /// What the client calls the subscriptions by which it comes.
    pub identifiers: Option<Box<[u32]>>,
}

/// What a client is to be given.
#[derive(Clone, Debug)]
pub enum Next {
    /// A publication.
    Publish(Delivery),
    /// Word that the number of a message of grade 2, which it has, is free (MQTT 5 §4.3.3).
    Release(NonZeroU16),
}

/// What is under way under a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outstanding {
    /// A message of this grade was sent.
    Sent(Grade),
    /// A message of grade 2 that the client has.
    Received,
}

impl Core {
    /// Takes the next thing for a session's client; `None` if there is nothing, or the client's
    /// window is full, or the next has to be written to the store first.
    pub fn take(&mut self, now: Duration, id: SessionId) -> Option<Next> {
        let done = self.journal.done();
        loop {
            let session = self.sessions.get_mut(id)?;
            // The client may take fewer at once than over its last connection.
            if session.inflight.has_again()
                && session.inflight.len_sent() >= usize::from(session.window)
            {
                return None;
            }
            let must_wait = match session.inflight.next_again(done) {
                Again::Send(handle, flying) => {
                    let next = again(handle, flying);
                    return Some(given(self, id, next));
                }
                Again::Wait => true,
                Again::Nothing => false,
            };
            walk(self, now, id);
            let session = self.sessions.get_mut(id)?;
            let turn = session.queue.turn(now);
            if let Turn::NotBefore(at) = turn {
                self.timers.set(Deadline::Drain(id), Some(at));
            }
            let entry = session.queue.front(turn).filter(|entry| {
                let has_room = session.inflight.len() < usize::from(session.window);
                // Behind what waits for the store others get their numbers, to be written with it.
                entry.grade == Grade::AtMostOnce && !must_wait
                    || has_room && (!must_wait || waits(entry))
            });
            let Some(entry) = entry else {
                if must_wait {
                    self.journal.block(id);
                }
                return None;
            };
            let publication = entry.publication.clone();
            let federation = self.settings.federation.as_deref();
            let why = if publication.is_expired(now) {
                Some(Drop::Expired)
            } else if federating::may_leave(federation, now, session, &publication.topic) {
                None
            } else {
                Some(Drop::Refused)
            };
            if let Some(why) = why {
                let entry = session.queue.pop(turn)?;
                leaves(self, id, &entry, why);
                continue;
            }
            session.queue.left(turn, now);
            let entry = session.queue.pop(turn)?;
            self.total_bytes = self.total_bytes.saturating_sub(entry.size_bytes());
            if let Some(delivery) = fly(self, id, entry) {
                return Some(given(self, id, Next::Publish(delivery)));
            }
        }
    }

    /// Whether there may be something to take later without anything happening: a search among the
    /// retained messages goes on.
    #[must_use]
    pub fn has_more(&self, id: SessionId) -> bool {
        self.sessions.get(id).is_some_and(|session| {
            // What is to be sent again goes on with the next acknowledgement.
            let goes_on = !session.queue.has_live() && !session.inflight.has_again();
            goes_on && !session.walks.is_empty()
        })
    }

    /// Whether the next thing to take has to be written to the store first.
    #[must_use]
    pub fn waits(&self, id: SessionId) -> bool {
        self.sessions.get(id).is_some_and(|session| session.inflight.has_again())
    }

    /// What is under way under a number.
    #[must_use]
    pub fn outstanding(&self, id: SessionId, handle: u16) -> Option<Outstanding> {
        let flying = self.sessions.get(id)?.inflight.get(handle)?;
        Some(match (&flying.entry, flying.phase) {
            (Some(entry), Phase::Sent) => Outstanding::Sent(entry.grade),
            _ => Outstanding::Received,
        })
    }

    /// The client has a message of grade 2, whose number is to be freed; whether it was sent one.
    pub fn received(&mut self, id: SessionId, handle: u16) -> bool {
        let after = self.journal.open_ticket();
        let Some(session) = self.sessions.get_mut(id) else { return false };
        if let Some(entry) = session.inflight.get(handle).and_then(|it| it.entry.as_ref())
            && entry.publication.is_followed
        {
            self.telling.trails.acknowledged(entry.publication.id, &session.key);
        }
        let Some(flying) = session.inflight.receive(handle, after) else { return false };
        if flying.stored {
            let (client, number) = (session.key.clone(), flying.number);
            self.journal.add(Change::Flying { client, number, handle, received: true });
        }
        true
    }

    /// A message is done with; whether there was one. With `refused` the client wants it not.
    pub fn finish(&mut self, id: SessionId, handle: u16, refused: bool) -> bool {
        let Some(session) = self.sessions.get_mut(id) else { return false };
        let Some(flying) = session.inflight.end(handle) else { return false };
        let client = session.key.clone();
        if flying.stored {
            let (client, number) = (client, flying.number);
            self.journal.add(Change::Done { client, number });
        }
        match &flying.entry {
            Some(entry) if refused => {
                self.tell_dropped(&entry.publication, Some(id), Drop::Refused);
            }
            Some(entry) if entry.publication.is_followed => {
                let key = self.sessions.get(id).map(|session| &session.key);
                let trails = &mut self.telling.trails;
                key.into_iter().for_each(|key| trails.acknowledged(entry.publication.id, key));
            }
            _ => {}
        }
        self.poke(id);
        true
    }

    /// A message that was given goes back to the queue, to be given again before the others of its
    /// urgency that come later; whether there was one.
    pub fn give_back(&mut self, id: SessionId, handle: u16) -> bool {
        let Some(session) = self.sessions.get_mut(id) else { return false };
        let Some(flying) = session.inflight.end(handle) else { return false };
        if let Some(entry) = flying.entry {
            self.total_bytes += entry.size_bytes();
            if entry.publication.is_followed {
                self.telling.trails.returned(entry.publication.id, &session.key);
            }
            session.queue.push_front(entry);
        }
        self.poke(id);
        true
    }

    /// A client has sent a message of grade 2 under a number: whether it is new, and the ticket
    /// with which it may be acknowledged. `None` if there is no such session.
    pub fn inbound(&mut self, id: SessionId, handle: u16) -> Option<(bool, Ticket)> {
        let session = self.sessions.get_mut(id)?;
        let is_new = session.inbound.insert(handle);
        if is_new && session.stored {
            let client = session.key.clone();
            self.journal.add(Change::Inbound { client, handle, open: true });
        }
        Some((is_new, self.journal.ticket()))
    }

    /// The client frees the number; whether it was in use.
    pub fn release(&mut self, id: SessionId, handle: u16) -> bool {
        let Some(session) = self.sessions.get_mut(id) else { return false };
        let was = session.inbound.remove(&handle);
        if was && session.stored {
            let client = session.key.clone();
            self.journal.add(Change::Inbound { client, handle, open: false });
        }
        was
    }

    /// Whether a number of a message of grade 2 is in use.
    #[must_use]
    pub fn has_inbound(&self, id: SessionId, handle: u16) -> bool {
        self.sessions.get(id).is_some_and(|session| session.inbound.contains(&handle))
    }

    /// How many numbers a client has in use.
    #[must_use]
    pub fn inbound_len(&self, id: SessionId) -> usize {
        self.sessions.get(id).map_or(0, |session| session.inbound.len())
    }
}

/// The peer has lost what it held of a session: numbers of both sides mean nothing to it any more.
/// What it has not acknowledged is given to it again.
pub(crate) fn peer_forgot(core: &mut Core, id: SessionId) {
    let Some(session) = core.sessions.get(id) else { return };
    let inbound: Vec<u16> = session.inbound.iter().copied().collect();
    let received: Vec<u16> = session.inflight.received().collect();
    for handle in inbound {
        core.release(id, handle);
    }
    for handle in received {
        core.finish(id, handle, false);
    }
}

/// A message is given to the client's adapter, in the form that the operator wants it to leave in.
fn given(core: &mut Core, id: SessionId, mut next: Next) -> Next {
    let Next::Publish(delivery) = &mut next else { return next };
    if core.settings.forms.is_empty() && !delivery.publication.is_followed {
        return next;
    }
    let Some(session) = core.sessions.get(id) else { return next };
    let receiver = For::client(&session.key, session.user.as_deref());
    let converted = core.form_cache.convert(&core.settings.forms, receiver, &delivery.publication);
    let mut unchanged = None;
    if let Some(converted) = converted {
        delivery.publication = converted.publication;
        unchanged = converted.unchanged;
    }
    let (publication, how) = (&delivery.publication, (delivery.grade, delivery.retain));
    if publication.is_followed {
        let trails = &mut core.telling.trails;
        trails.given(publication, &session.key, how, unchanged.as_deref());
    }
    next
}

/// A message leaves for the client; `None` if it has to be written first under which number.
fn fly(core: &mut Core, id: SessionId, entry: Entry) -> Option<Delivery> {
    core.telling.counts.delivered += 1;
    core.telling.counts.delivered_bytes += entry.publication.payload.len() as u64;
    if entry.grade == Grade::AtMostOnce {
        return Some(delivery_of(entry));
    }
    let session = core.sessions.get_mut(id)?;
    let (number, stored) = (entry.number, entry.stored);
    let mut given = delivery(&entry, None, false);
    let waits = waits(&entry);
    let handle = if waits {
        session.inflight.begin_after(entry, core.journal.open_ticket())?
    } else {
        session.inflight.begin(entry)?
    };
    given.handle = Some(handle);
    if stored {
        let (client, handle) = (session.key.clone(), handle.get());
        core.journal.add(Change::Flying { client, number, handle, received: false });
    }
    (!waits).then_some(given)
}

/// Puts the next retained messages into the queue, if it is empty.
fn walk(core: &mut Core, now: Duration, id: SessionId) {
    loop {
        let (access, federation) = (&core.settings.access, core.settings.federation.as_deref());
        let Some(session) = core.sessions.get_mut(id) else { return };
        if session.walks.is_empty() || session.queue.has_live() {
            return;
        }
        let Some(Walk { filter, granted, after }) = session.walks.first_mut() else { return };
        match core.retained.step(now, filter, after.as_ref()) {
            Step::Found(publication) => {
                *after = Some(publication.topic.clone());
                let granted = *granted;
                let (user, name) = (session.user.as_deref(), &*session.key.name);
                if !session.is_trusted && !access.may_receive(user, name, &publication.topic)
                    || !federating::may_leave(federation, now, session, &publication.topic)
                {
                    continue;
                }
                let entry = Entry {
                    number: session.next_number(),
                    grade: publication.grade.min(granted.grade),
                    publication,
                    retain: true,
                    stored: false,
                    identifiers: (granted.identifier > 0).then(|| Box::from([granted.identifier])),
                    shared: None,
                    conflate: false,
                };
                core.total_bytes += entry.size_bytes();
                session.queue.push(entry);
                return;
            }
            // The rest of a long search is for the next time, after others.
            Step::More(topic) => {
                *after = Some(topic);
                return;
            }
            Step::End => {
                session.walks.remove(0);
            }
        }
    }
}

/// Whether a message has to be written with its number before it leaves.
fn waits(entry: &Entry) -> bool {
    entry.stored && entry.grade == Grade::ExactlyOnce
}

/// What is sent of what is under way.
fn again(handle: NonZeroU16, flying: &mut Flying) -> Next {
    let repeated = std::mem::replace(&mut flying.repeated, true);
    match (&flying.entry, flying.phase) {
        (Some(entry), Phase::Sent) => Next::Publish(delivery(entry, Some(handle), repeated)),
        _ => Next::Release(handle),
    }
}

fn delivery(entry: &Entry, handle: Option<NonZeroU16>, repeated: bool) -> Delivery {
    Delivery {
        publication: entry.publication.clone(),
        grade: entry.grade,
        retain: entry.retain,
        repeated,
        handle,
        identifiers: entry.identifiers.clone(),
    }
}

fn delivery_of(entry: Entry) -> Delivery {
    Delivery {
        publication: entry.publication,
        grade: entry.grade,
        retain: entry.retain,
        repeated: false,
        handle: None,
        identifiers: entry.identifiers,
    }
}
