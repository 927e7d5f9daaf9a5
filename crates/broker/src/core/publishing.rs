//! A publication comes, and finds whom it is for.

use std::sync::Arc;
use std::time::Duration;

use super::{Core, drop_event};
use crate::change::Change;
use crate::event::{Drop, Event};
use crate::filter::check_name;
use crate::ids::{Protocol, SessionId, Ticket};
use crate::index::Subscriber;
use crate::publication::{Grade, Publication};
use crate::refusal::Refusal;
use crate::rules::Verdict;
use crate::session::Entry;
use crate::settings::Overflow;

/// A publication was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Its number.
    pub id: u64,
    /// Sessions that it was queued for.
    pub receivers: usize,
    /// It may be acknowledged once this is written.
    pub ticket: Ticket,
}

/// How one session gets a publication.
pub(super) struct Addressed {
    pub(super) grade: Grade,
    pub(super) retain: bool,
    pub(super) identifiers: Option<Box<[u32]>>,
    pub(super) shared: Option<Arc<str>>,
    pub(super) conflate: bool,
}

impl Core {
    /// Takes a publication for all who have subscribed to its topic.
    ///
    /// # Errors
    /// The topic, the client's rules, a bound, or the end of the broker.
    pub fn publish(
        &mut self,
        now: Duration,
        publication: Publication,
    ) -> Result<Accepted, Refusal> {
        if self.is_closing {
            return Err(Refusal::Closing);
        }
        if publication.protocol != Protocol::Broker {
            let session = publication.publisher.and_then(|id| self.sessions.get(id));
            let user = session.and_then(|session| session.user.as_deref());
            let name = session.map_or("", |session| &session.key.name);
            self.check_publish(user, name, &publication)?;
        }
        self.accept(now, publication)
    }

    /// The same for a client that is not who has the session that it is published by.
    ///
    /// # Errors
    /// As [`Core::publish`].
    pub fn publish_as(
        &mut self,
        now: Duration,
        user: Option<&str>,
        client: &str,
        publication: Publication,
    ) -> Result<Accepted, Refusal> {
        if self.is_closing {
            return Err(Refusal::Closing);
        }
        self.check_publish(user, client, &publication)?;
        self.accept(now, publication)
    }

    fn accept(&mut self, now: Duration, mut publication: Publication) -> Result<Accepted, Refusal> {
        self.last_id += 1;
        publication.id = self.last_id;
        let verdict = self.settings.rules.apply(now, &mut self.passages, &mut publication);
        self.counts.published += 1;
        self.counts.published_bytes += publication.payload.len() as u64;
        let conflate = match verdict {
            Verdict::Passes { conflate } => conflate,
            Verdict::Blocked => return Ok(self.ends_here(&publication, Drop::Blocked)),
            Verdict::Thinned => return Ok(self.ends_here(&publication, Drop::Thinned)),
        };
        if publication.is_expired(now) {
            return Ok(self.ends_here(&publication, Drop::Expired));
        }
        let publication = Arc::new(publication);
        let before = self.journal.ticket();
        let retained = self.retain(&publication)?;
        let receivers = self.distribute(&publication, conflate, retained);
        let (id, ticket) = (publication.id, self.journal.ticket());
        self.events.push_back(Event::Published {
            id,
            topic: publication.topic.clone(),
            protocol: publication.protocol,
            bytes: publication.payload.len(),
            receivers,
        });
        let ticket = if self.journal.is_durable() { ticket.max(before) } else { Ticket(0) };
        Ok(Accepted { id, receivers, ticket })
    }

    /// What a client may be refused for, before anything is done.
    pub(super) fn check_publish(
        &self,
        user: Option<&str>,
        client: &str,
        publication: &Publication,
    ) -> Result<(), Refusal> {
        check_name(&publication.topic).map_err(|what| Refusal::TopicName { what })?;
        let (bytes, limit) = (publication.size_bytes(), self.settings.max_message_bytes);
        if bytes > limit {
            return Err(Refusal::TooLarge { bytes, limit });
        }
        if !self.settings.access.may_publish(user, client, &publication.topic) {
            return Err(Refusal::NotAuthorized);
        }
        if publication.retain && !publication.payload.is_empty() {
            self.check_retained(publication)?;
        }
        Ok(())
    }

    fn check_retained(&self, publication: &Publication) -> Result<(), Refusal> {
        let old = self.retained.get(&publication.topic);
        let topics = self.retained.len() + usize::from(old.is_none());
        if topics > self.settings.max_retained {
            let limit = self.settings.max_retained as u64;
            return Err(Refusal::Quota { what: "max_retained", limit });
        }
        let freed = old.map_or(0, |old| old.size_bytes());
        let bytes = (self.retained.bytes() + publication.size_bytes()).saturating_sub(freed);
        if bytes > self.settings.max_retained_bytes {
            let limit = self.settings.max_retained_bytes as u64;
            return Err(Refusal::Quota { what: "max_retained_bytes", limit });
        }
        Ok(())
    }

    /// It becomes the topic's present value, or, empty, ends the one that there is (MQTT 5
    /// §3.3.1.3). Whether the store has it.
    fn retain(&mut self, publication: &Arc<Publication>) -> Result<bool, Refusal> {
        if !publication.retain {
            return Ok(false);
        }
        let topic = publication.topic.clone();
        let is_kept = self.journal.is_durable() && publication.protocol != Protocol::Broker;
        if publication.payload.is_empty() {
            if self.retained.remove(&topic).is_some() && is_kept {
                self.journal.add(Change::Cleared { topic });
            }
            return Ok(false);
        }
        // A rule may have made it a retained one.
        self.check_retained(publication)?;
        if is_kept {
            self.journal.add(Change::Message(publication.clone()));
            self.journal.add(Change::Retained { topic, message: publication.id });
        }
        self.retained.set(publication.clone());
        Ok(is_kept)
    }

    fn distribute(
        &mut self,
        publication: &Arc<Publication>,
        conflate: bool,
        mut is_stored: bool,
    ) -> usize {
        let hits = self.index.find(&publication.topic);
        let mut receivers = 0;
        let mut rest = hits.own.as_slice();
        while let Some(first) = rest.first() {
            let session = first.session;
            let count = rest.iter().take_while(|hit| hit.session == session).count();
            let (own, others) = rest.split_at(count);
            rest = others;
            let is_own = publication.publisher == Some(session);
            let addressed = address(publication, own, is_own, conflate);
            if let Some(addressed) = addressed {
                receivers +=
                    usize::from(self.queue_once(session, publication, addressed, &mut is_stored));
            }
        }
        for share in &hits.shares {
            let Some(member) = self.member_of(&share.members) else { continue };
            let Some(mut addressed) = address(publication, &[member], false, conflate) else {
                continue;
            };
            addressed.shared = Some(share.of.clone());
            let queued = self.queue_once(member.session, publication, addressed, &mut is_stored);
            receivers += usize::from(queued);
        }
        receivers
    }

    /// One of a group, those with a connection before the others, by turns.
    pub(super) fn member_of(&mut self, members: &[Subscriber]) -> Option<Subscriber> {
        self.turn = self.turn.wrapping_add(1);
        let start = self.turn.checked_rem(members.len())?;
        let in_turn = || members.iter().cycle().skip(start).take(members.len());
        let is_there = |member: &&Subscriber| {
            let session = self.sessions.get(member.session);
            session.is_some_and(|session| session.connection.is_some() && !session.is_asleep)
        };
        in_turn().find(is_there).or_else(|| in_turn().next()).copied()
    }

    fn queue_once(
        &mut self,
        session: SessionId,
        publication: &Arc<Publication>,
        addressed: Addressed,
        is_stored: &mut bool,
    ) -> bool {
        let keeps = addressed.grade > Grade::AtMostOnce
            && self.sessions.get(session).is_some_and(|session| session.stored);
        if keeps && !*is_stored {
            *is_stored = true;
            self.journal.add(Change::Message(publication.clone()));
        }
        self.queue_for(session, publication, addressed)
    }

    /// Queues a publication for a session; whether there was room.
    pub(super) fn queue_for(
        &mut self,
        id: SessionId,
        publication: &Arc<Publication>,
        addressed: Addressed,
    ) -> bool {
        let is_kept = self.settings.queue_grade_0;
        let access = &self.settings.access;
        let Some(session) = self.sessions.get_mut(id) else { return false };
        let (user, name) = (session.user.as_deref(), &*session.key.name);
        if !session.is_trusted && !access.may_receive(user, name, &publication.topic) {
            return false;
        }
        if session.connection.is_none() && addressed.grade == Grade::AtMostOnce && !is_kept {
            return false;
        }
        let stored = session.stored && addressed.grade > Grade::AtMostOnce;
        let entry = Entry {
            number: session.next_number(),
            publication: publication.clone(),
            grade: addressed.grade,
            retain: addressed.retain,
            stored,
            identifiers: addressed.identifiers,
            shared: addressed.shared,
            conflate: addressed.conflate,
        };
        if !self.make_room(id, &entry) {
            return false;
        }
        self.add_entry(id, entry);
        true
    }

    fn add_entry(&mut self, id: SessionId, entry: Entry) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if entry.stored {
            self.journal.add(Change::Queued {
                client: session.key.clone(),
                number: entry.number,
                message: entry.publication.id,
                grade: entry.grade,
                retain: entry.retain,
                identifiers: entry.identifiers.clone(),
                shared: entry.shared.clone(),
            });
        }
        self.total_bytes += entry.size_bytes();
        let old = session.queue.push(entry);
        if !session.is_ready && session.connection.is_some() && !session.is_asleep {
            session.is_ready = true;
            self.ready.push_back(id);
        }
        if let Some(old) = old {
            self.leaves(id, &old, Drop::Superseded);
        }
    }

    /// Sees to the bounds of a session's queue; whether the entry may be queued.
    fn make_room(&mut self, id: SessionId, entry: &Entry) -> bool {
        let (max, max_bytes) = (self.settings.max_queued, self.settings.max_queued_bytes);
        let max_total = self.settings.max_total_bytes;
        let bytes = entry.size_bytes();
        loop {
            let total = self.total_bytes;
            let Some(session) = self.sessions.get_mut(id) else { return false };
            let queue = &session.queue;
            let fits = queue.len() < max && queue.bytes() + bytes <= max_bytes;
            if fits && total + bytes <= max_total {
                return true;
            }
            let victim = match self.settings.overflow {
                Overflow::Oldest => session.queue.pop_least(),
                Overflow::Newest => None,
            };
            let Some(victim) = victim else {
                let (client, why) = (Some(session.key.clone()), Drop::QueueFull);
                drop_event(&mut self.events, &mut self.counts, &entry.publication, client, why);
                return false;
            };
            self.leaves(id, &victim, Drop::QueueFull);
        }
    }

    /// An entry leaves a session's queue without having been given to the client.
    pub(super) fn leaves(&mut self, id: SessionId, entry: &Entry, why: Drop) {
        self.total_bytes = self.total_bytes.saturating_sub(entry.size_bytes());
        let client = self.sessions.get(id).map(|session| session.key.clone());
        if let (true, Some(client)) = (entry.stored, client.clone()) {
            self.journal.add(Change::Done { client, number: entry.number });
        }
        drop_event(&mut self.events, &mut self.counts, &entry.publication, client, why);
    }

    fn ends_here(&mut self, publication: &Publication, why: Drop) -> Accepted {
        drop_event(&mut self.events, &mut self.counts, publication, None, why);
        Accepted { id: publication.id, receivers: 0, ticket: Ticket(0) }
    }
}

/// How a session gets a publication that several of its subscriptions fit: once, at the highest
/// grade of them, with all their identifiers (MQTT 5 §3.3.4).
fn address(
    publication: &Publication,
    hits: &[Subscriber],
    is_own: bool,
    conflate: bool,
) -> Option<Addressed> {
    let wanted = || hits.iter().filter(|hit| !(is_own && hit.no_local));
    let grade = wanted().map(|hit| hit.grade).max()?;
    let retain = publication.retain && wanted().any(|hit| hit.as_published);
    let own: Option<Box<[u32]>> = if hits.iter().any(|hit| hit.identifier > 0) {
        Some(wanted().map(|hit| hit.identifier).filter(|number| *number > 0).collect())
    } else {
        None
    };
    Some(Addressed {
        grade: grade.min(publication.grade),
        retain,
        identifiers: own.filter(|own| !own.is_empty()),
        shared: None,
        conflate,
    })
}

/// What the client calls these subscriptions.
pub(super) fn identifiers(hits: &[Subscriber]) -> Option<Box<[u32]>> {
    let own: Box<[u32]> = hits.iter().map(|hit| hit.identifier).filter(|id| *id > 0).collect();
    (!own.is_empty()).then_some(own)
}
