//! A publication comes, and finds whom it is for.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Core, federating, watching};
use crate::change::Change;
use crate::event::{Drop, Event};
use crate::explain::Before;
use crate::federation::Party;
use crate::filter::check_name;
use crate::ids::{Principal, Protocol, SessionId, Ticket};
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
        mut publication: Publication,
    ) -> Result<Accepted, Refusal> {
        if self.is_closing {
            return Err(Refusal::Closing);
        }
        self.telling.trails.set_now(now);
        if publication.protocol != Protocol::Broker {
            let session = publication.publisher.and_then(|id| self.sessions.get(id));
            if let Some(session) = session
                && publication.principal == Principal::UNSAID
            {
                publication.principal = session.principal;
            }
            let user = session.and_then(|session| session.user.as_deref());
            let name = session.map_or("", |session| &session.key.name);
            let is_trusted = session.is_some_and(|session| session.is_trusted);
            let checked = check_publish(self, (!is_trusted).then_some((user, name)), &publication);
            if let Err(refusal) = checked {
                return Err(refused(self, publication, refusal));
            }
        }
        let party = federating::party_of(self, &publication);
        accept(self, now, party, publication)
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
        self.telling.trails.set_now(now);
        if let Err(refusal) = check_publish(self, Some((user, client)), &publication) {
            return Err(refused(self, publication, refusal));
        }
        let party = federating::party_of_user(self, user);
        accept(self, now, party, publication)
    }

    /// How many subscriptions a topic leads to, a group that shares one counted once.
    pub fn subscribers(&mut self, topic: &Arc<str>) -> usize {
        let hits = self.index.find(topic);
        hits.own.as_slice().len() + hits.shares.len()
    }
}

/// Takes what came from another member of a mesh, whose rules have let it in, as
/// [`Core::publish`] does.
pub(crate) fn publish_of_mesh(
    core: &mut Core,
    now: Duration,
    publication: Publication,
) -> Result<Accepted, Refusal> {
    if core.is_closing {
        return Err(Refusal::Closing);
    }
    core.telling.trails.set_now(now);
    if let Err(refusal) = check_publish(core, None, &publication) {
        return Err(refused(core, publication, refusal));
    }
    // The rate was measured where it came in; the rest of the profile holds here too.
    accept(core, now, Some(Party::Mesh), publication)
}

fn accept(
    core: &mut Core,
    now: Duration,
    party: Option<Party>,
    mut publication: Publication,
) -> Result<Accepted, Refusal> {
    core.last_id += 1;
    publication.id = core.last_id;
    let before = begins_to_follow(core, &publication);
    let verdict = if publication.protocol == Protocol::Mesh {
        // The rules of the member where it came in have changed it.
        Verdict::Passes { conflate: core.settings.rules.conflates(&publication.topic) }
    } else {
        core.settings.rules.apply(now, &mut core.passages, &mut publication)
    };
    if before.is_some() {
        follow(core, &mut publication, before);
    }
    let is_newest = match (&party, verdict) {
        (Some(party), Verdict::Passes { .. }) => {
            federating::admit(core, now, party, &mut publication)
                .inspect_err(|refusal| tell_refused(core, &publication, refusal))?
        }
        _ => false,
    };
    core.telling.counts.published += 1;
    core.telling.counts.published_bytes += publication.payload.len() as u64;
    let conflate = match verdict {
        Verdict::Passes { conflate } => conflate || is_newest,
        Verdict::Blocked => return Ok(ends_here(core, &publication, Drop::Blocked)),
        Verdict::Thinned => return Ok(ends_here(core, &publication, Drop::Thinned)),
    };
    if publication.is_expired(now) {
        return Ok(ends_here(core, &publication, Drop::Expired));
    }
    let publication = Arc::new(publication);
    let before = core.journal.ticket();
    let retained = retain(core, &publication)
        .inspect_err(|refusal| tell_refused(core, &publication, refusal))?;
    let receivers = distribute(core, &publication, conflate, retained);
    watching::published(core, &publication);
    if publication.is_followed {
        core.telling.trails.unwanted(publication.id);
    }
    let (id, ticket) = (publication.id, core.journal.ticket());
    core.telling.events.push_back(Event::Published {
        id,
        topic: publication.topic.clone(),
        protocol: publication.protocol,
        bytes: publication.payload.len(),
        receivers,
    });
    let ticket = if core.journal.is_durable() { ticket.max(before) } else { Ticket(0) };
    Ok(Accepted { id, receivers, ticket })
}

/// What a publication is before rules change it, if what becomes of it is to be remembered.
fn begins_to_follow(core: &mut Core, publication: &Publication) -> Option<Before> {
    let settings = &core.settings.explain;
    if publication.protocol == Protocol::Broker
        || !core.telling.trails.follows(settings, &publication.topic)
    {
        return None;
    }
    let rule = core.settings.rules.of(&publication.topic).map(|rule| rule.filter.clone());
    Some(Before { topic: publication.topic.clone(), grade: publication.grade, rule })
}

/// What becomes of a publication is remembered from now on.
fn follow(core: &mut Core, publication: &mut Publication, before: Option<Before>) {
    publication.is_followed = true;
    let publisher = publication.publisher.and_then(|id| core.sessions.get(id));
    let publisher = publisher.map(|session| &session.key);
    core.telling.trails.begin(&core.settings.explain, publication, publisher, before);
}

/// A publication is refused, which is remembered under a number of its own.
fn refused(core: &mut Core, mut publication: Publication, refusal: Refusal) -> Refusal {
    if begins_to_follow(core, &publication).is_some() {
        core.last_id += 1;
        publication.id = core.last_id;
        follow(core, &mut publication, None);
        tell_refused(core, &publication, &refusal);
    }
    refusal
}

fn tell_refused(core: &mut Core, publication: &Publication, refusal: &Refusal) {
    if publication.is_followed {
        let trails = &mut core.telling.trails;
        trails.ended(publication.id, None, "refused-by-broker", format_args!("{refusal}"));
    }
}

/// What a client, by its user and name, may be refused for, before anything is done; `None`: a
/// session of the broker's own.
pub(super) fn check_publish(
    core: &Core,
    client: Option<(Option<&str>, &str)>,
    publication: &Publication,
) -> Result<(), Refusal> {
    check_name(&publication.topic).map_err(|what| Refusal::TopicName { what })?;
    let (bytes, limit) = (publication.size_bytes(), core.settings.max_message_bytes);
    if bytes > limit {
        return Err(Refusal::TooLarge { bytes, limit });
    }
    if let Some((user, client)) = client
        && !core.settings.access.may_publish(user, client, &publication.topic)
    {
        return Err(Refusal::NotAuthorized);
    }
    if publication.retain && !publication.payload.is_empty() {
        check_retained(core, publication)?;
    }
    Ok(())
}

fn check_retained(core: &Core, publication: &Publication) -> Result<(), Refusal> {
    let old = core.retained.get(&publication.topic);
    let topics = core.retained.len() + usize::from(old.is_none());
    if topics > core.settings.max_retained {
        let limit = core.settings.max_retained as u64;
        return Err(Refusal::Quota { what: "max_retained", limit });
    }
    let freed = old.map_or(0, |old| old.size_bytes());
    let bytes = (core.retained.bytes() + publication.size_bytes()).saturating_sub(freed);
    if bytes > core.settings.max_retained_bytes {
        let limit = core.settings.max_retained_bytes as u64;
        return Err(Refusal::Quota { what: "max_retained_bytes", limit });
    }
    Ok(())
}

/// It becomes the topic's present value, or, empty, ends the one that there is (MQTT 5
/// §3.3.1.3). Whether the store has it.
fn retain(core: &mut Core, publication: &Arc<Publication>) -> Result<bool, Refusal> {
    if !publication.retain {
        return Ok(false);
    }
    let topic = publication.topic.clone();
    let is_kept = core.journal.is_durable() && publication.protocol != Protocol::Broker;
    if publication.payload.is_empty() {
        if core.retained.remove(&topic).is_some() && is_kept {
            core.journal.add(Change::Cleared { topic });
        }
        return Ok(false);
    }
    // A rule may have made it a retained one.
    check_retained(core, publication)?;
    if is_kept {
        core.journal.add(Change::Message(publication.clone()));
        core.journal.add(Change::Retained { topic, message: publication.id });
    }
    core.retained.set(publication.clone());
    Ok(is_kept)
}

fn distribute(
    core: &mut Core,
    publication: &Arc<Publication>,
    conflate: bool,
    mut is_stored: bool,
) -> usize {
    let hits = core.index.find(&publication.topic);
    let mut receivers = 0;
    let mut rest = hits.own.as_slice();
    while let Some(first) = rest.first() {
        let session = first.session;
        let count = rest.iter().take_while(|hit| hit.session == session).count();
        let (own, others) = rest.split_at(count);
        rest = others;
        let is_own = publication.publisher == Some(session);
        let addressed = address(publication, own, is_own, conflate);
        match addressed {
            Some(addressed) => {
                let queued = queue_once(core, session, publication, addressed, &mut is_stored);
                receivers += usize::from(queued);
            }
            None => not_for(core, session, publication, NotFor::Own),
        }
    }
    for share in &hits.shares {
        let members = federating::who_may(core, &share.members, &publication.topic);
        let Some(member) = member_of(core, &members) else { continue };
        let Some(mut addressed) = address(publication, &[member], false, conflate) else {
            continue;
        };
        addressed.shared = Some(share.of.clone());
        let queued = queue_once(core, member.session, publication, addressed, &mut is_stored);
        receivers += usize::from(queued);
    }
    receivers
}

/// One of a group, those with a connection before the others, by turns.
pub(super) fn member_of(core: &mut Core, members: &[Subscriber]) -> Option<Subscriber> {
    core.turn = core.turn.wrapping_add(1);
    let start = core.turn.checked_rem(members.len())?;
    let in_turn = || members.iter().cycle().skip(start).take(members.len());
    let is_there = |member: &&Subscriber| {
        let session = core.sessions.get(member.session);
        session.is_some_and(|session| session.connection.is_some() && !session.is_asleep)
    };
    in_turn().find(is_there).or_else(|| in_turn().next()).copied()
}

/// Queues a publication for a session, written to the store first where that is needed and it is
/// not there.
pub(super) fn queue_once(
    core: &mut Core,
    session: SessionId,
    publication: &Arc<Publication>,
    addressed: Addressed,
    is_stored: &mut bool,
) -> bool {
    let keeps = addressed.grade > Grade::AtMostOnce
        && core.sessions.get(session).is_some_and(|session| session.stored);
    if keeps && !*is_stored {
        *is_stored = true;
        core.journal.add(Change::Message(publication.clone()));
    }
    queue_for(core, session, publication, addressed)
}

/// Queues a publication for a session; whether there was room.
fn queue_for(
    core: &mut Core,
    id: SessionId,
    publication: &Arc<Publication>,
    addressed: Addressed,
) -> bool {
    let is_kept = core.settings.queue_grade_0;
    let (access, federation) = (&core.settings.access, core.settings.federation.as_deref());
    let Some(session) = core.sessions.get_mut(id) else { return false };
    let (user, name) = (session.user.as_deref(), &*session.key.name);
    if !session.is_trusted && !access.may_receive(user, name, &publication.topic) {
        not_for(core, id, publication, NotFor::Access);
        return false;
    }
    if !federating::may_receive(federation)(&session.key, user, &publication.topic) {
        not_for(core, id, publication, NotFor::Federation);
        return false;
    }
    let is_away = session.connection.is_none();
    // A topic's state, and its end, are not lost to another broker.
    let is_kept = is_kept || session.keeps_state() && publication.retain;
    if is_away && addressed.grade == Grade::AtMostOnce && !is_kept {
        not_for(core, id, publication, NotFor::Away);
        return false;
    }
    if publication.is_followed {
        let (grade, retain) = (addressed.grade, addressed.retain);
        core.telling.trails.waits(publication.id, &session.key, grade, retain);
    }
    // Nor may an older state come behind a newer one.
    let is_merged = is_away && session.keeps_state() || session.queue.has_backlog();
    let stored = session.stored && addressed.grade > Grade::AtMostOnce;
    let entry = Entry {
        number: session.next_number(),
        publication: publication.clone(),
        grade: addressed.grade,
        retain: addressed.retain,
        stored,
        identifiers: addressed.identifiers,
        shared: addressed.shared,
        conflate: addressed.conflate || is_merged && publication.retain,
    };
    if !make_room(core, id, &entry) {
        return false;
    }
    add_entry(core, id, entry);
    true
}

/// Why a publication does not wait for a session whose subscriptions it fits, which is no drop.
#[derive(Clone, Copy)]
enum NotFor {
    /// It is its own, and the subscription says no-local.
    Own,
    /// Its user may not receive it.
    Access,
    /// The federation's profile has it for others.
    Federation,
    /// It has no connection, and what may be lost does not wait for it.
    Away,
}

/// Remembers why a session is passed over.
fn not_for(core: &mut Core, id: SessionId, publication: &Publication, why: NotFor) {
    let Some(session) = core.sessions.get(id).filter(|_| publication.is_followed) else { return };
    let why = match why {
        NotFor::Own => ("own", "its subscription wants nothing of its own"),
        NotFor::Access => ("not-authorized", "its user may not receive this topic"),
        NotFor::Federation => {
            ("not-in-profile", "no flow of the federation has it for this client")
        }
        NotFor::Away => ("away", "it has no connection, and QoS 0 does not wait"),
    };
    let (id, grade) = (publication.id, publication.grade);
    core.telling.trails.passes_over(id, &session.key, grade, why);
}

fn add_entry(core: &mut Core, id: SessionId, entry: Entry) {
    let newer = entry.publication.id;
    let Some(session) = core.sessions.get_mut(id) else { return };
    if entry.stored {
        core.journal.add(Change::Queued {
            client: session.key.clone(),
            number: entry.number,
            message: entry.publication.id,
            grade: entry.grade,
            retain: entry.retain,
            identifiers: entry.identifiers.clone(),
            shared: entry.shared.clone(),
        });
    }
    core.total_bytes += entry.size_bytes();
    let superseded = session.queue.push(entry);
    if !session.is_ready && session.connection.is_some() && !session.is_asleep {
        session.is_ready = true;
        core.ready.push_back(id);
    }
    for old in superseded {
        leaves_for(core, id, &old, Drop::Superseded, format_args!("by publication {newer}"));
    }
}

/// Sees to the bounds of a session's queue; whether the entry may be queued.
fn make_room(core: &mut Core, id: SessionId, entry: &Entry) -> bool {
    let (max, max_bytes) = (core.settings.max_queued, core.settings.max_queued_bytes);
    let max_total = core.settings.max_total_bytes;
    let bytes = entry.size_bytes();
    loop {
        let total = core.total_bytes;
        let Some(session) = core.sessions.get_mut(id) else { return false };
        let queue = &session.queue;
        let (bound, limit) = if queue.len() >= max {
            ("max_queued", max)
        } else if queue.bytes() + bytes > max_bytes {
            ("max_queued_bytes", max_bytes)
        } else if total + bytes > max_total {
            ("max_total_bytes", max_total)
        } else {
            return true;
        };
        let victim = match core.settings.overflow {
            Overflow::Oldest => session.queue.pop_least(),
            Overflow::Newest => None,
        };
        let Some(victim) = victim else {
            let (client, why) = (Some(session.key.clone()), Drop::QueueFull);
            let detail = format_args!("{bound} = {limit}");
            core.telling.dropped(&entry.publication, client, why, detail);
            return false;
        };
        let newer = entry.publication.id;
        let detail = format_args!("{bound} = {limit}: room for publication {newer}");
        leaves_for(core, id, &victim, Drop::QueueFull, detail);
    }
}

/// An entry leaves a session's queue without having been given to the client.
pub(super) fn leaves(core: &mut Core, id: SessionId, entry: &Entry, why: Drop) {
    leaves_for(core, id, entry, why, format_args!(""));
}

/// The same with what there is to say of it.
fn leaves_for(
    core: &mut Core,
    id: SessionId,
    entry: &Entry,
    why: Drop,
    detail: fmt::Arguments<'_>,
) {
    core.total_bytes = core.total_bytes.saturating_sub(entry.size_bytes());
    let client = core.sessions.get(id).map(|session| session.key.clone());
    if let (true, Some(client)) = (entry.stored, client.clone()) {
        core.journal.add(Change::Done { client, number: entry.number });
    }
    core.telling.dropped(&entry.publication, client, why, detail);
}

fn ends_here(core: &mut Core, publication: &Publication, why: Drop) -> Accepted {
    core.telling.dropped(publication, None, why, format_args!(""));
    Accepted { id: publication.id, receivers: 0, ticket: Ticket(0) }
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
