//! What the store has is what the broker holds.

use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use super::publishing::leaves;
use super::subscribing::subscriber;
use super::{Core, Deadline, watching};
use crate::change::Change;
use crate::event::Drop;
use crate::filter::{check_filter, shared};
use crate::ids::{ClientKey, SessionId};
use crate::publication::Publication;
use crate::session::{Entry, Granted, Phase, Session, Subscription};

/// What has been read so far.
#[derive(Default)]
struct Reading {
    messages: BTreeMap<u64, Arc<Publication>>,
    entries: BTreeMap<(SessionId, u64), Waiting>,
}

/// An entry of a session, and how far it is.
struct Waiting {
    entry: Entry,
    flying: Option<(NonZeroU16, Phase)>,
}

impl Core {
    /// Takes what a store has kept, before anything else comes. Sessions are without a connection
    /// from `now` on. Returns how many changes named what the store does not have; these do
    /// nothing.
    pub fn restore(&mut self, now: Duration, changes: impl IntoIterator<Item = Change>) -> usize {
        let mut reading = Reading::default();
        let mut unknown = 0;
        for change in changes {
            if apply(self, now, &mut reading, change).is_none() {
                unknown += 1;
            }
        }
        let mut superseded = Vec::new();
        for ((id, number), Waiting { entry, flying }) in reading.entries {
            let Some(session) = self.sessions.get_mut(id) else { continue };
            match flying {
                None => {
                    self.total_bytes += entry.size_bytes();
                    superseded.extend(session.queue.push(entry).into_iter().map(|old| (id, old)));
                }
                Some((handle, Phase::Received)) => {
                    session.inflight.restore(handle, Phase::Received, number, true, None);
                }
                Some((handle, phase)) => {
                    session.inflight.restore(handle, phase, number, true, Some(entry));
                }
            }
        }
        for (id, old) in superseded {
            leaves(self, id, &old, Drop::Superseded);
        }
        unknown
    }
}

fn apply(core: &mut Core, now: Duration, reading: &mut Reading, change: Change) -> Option<()> {
    match change {
        Change::Message(publication) => {
            core.last_id = core.last_id.max(publication.id);
            reading.messages.insert(publication.id, publication);
        }
        Change::Session { client, user, expiry } => {
            restore_session(core, now, client, user, expiry)
        }
        Change::SessionEnded { client } => {
            let id = core.sessions.find(&client)?;
            reading.entries.retain(|(of, _), _| *of != id);
            core.end(now, id);
            core.telling.events.clear();
        }
        Change::Subscribed { client, subscription } => {
            restore_subscription(core, core.sessions.find(&client)?, &subscription)?;
        }
        Change::Unsubscribed { client, filter } => {
            core.unsubscribe(core.sessions.find(&client)?, &filter);
        }
        Change::Queued { .. } => restore_entry(core, reading, change)?,
        Change::Flying { client, number, handle, received } => {
            let id = core.sessions.find(&client)?;
            let phase = if received { Phase::Received } else { Phase::Sent };
            let waiting = reading.entries.get_mut(&(id, number))?;
            waiting.flying = Some((NonZeroU16::new(handle)?, phase));
        }
        Change::Done { client, number } => {
            reading.entries.remove(&(core.sessions.find(&client)?, number))?;
        }
        Change::Inbound { client, handle, open } => {
            let id = core.sessions.find(&client)?;
            let inbound = &mut core.sessions.get_mut(id)?.inbound;
            if open {
                inbound.insert(handle)
            } else {
                inbound.remove(&handle)
            };
        }
        Change::Retained { message, .. } => {
            core.retained.set(reading.messages.get(&message)?.clone());
        }
        Change::Cleared { topic } => {
            core.retained.remove(&topic);
        }
        Change::Kept { protocol, key, value: Some(value) } => {
            core.journal.restore_kept(protocol, key, Some(value));
        }
        Change::Kept { protocol, key, value: None } => {
            core.journal.restore_kept(protocol, key, None);
        }
    }
    Some(())
}

fn restore_session(
    core: &mut Core,
    now: Duration,
    client: ClientKey,
    user: Option<Arc<str>>,
    expiry: Duration,
) {
    let id = core
        .sessions
        .find(&client)
        .unwrap_or_else(|| core.sessions.insert(Session::new(client, user.clone(), expiry)));
    if let Some(session) = core.sessions.get_mut(id) {
        session.expiry = expiry;
        session.user = user;
        session.stored = true;
    }
    core.timers.set(Deadline::End(id), Some(now.saturating_add(expiry)));
}

fn restore_subscription(core: &mut Core, id: SessionId, subscription: &Subscription) -> Option<()> {
    let (group, filter) = match shared(&subscription.filter).ok()? {
        Some((group, filter)) => (Some(group), filter),
        None => (None, subscription.filter.as_str()),
    };
    check_filter(filter).ok()?;
    let granted = Granted {
        grade: subscription.grade,
        no_local: subscription.no_local,
        as_published: subscription.as_published,
        identifier: subscription.identifier,
    };
    let full: Arc<str> = subscription.filter.as_str().into();
    let subscriptions = &mut core.sessions.get_mut(id)?.subscriptions;
    let is_new = !subscriptions.contains(&full);
    subscriptions.insert(full, granted);
    if is_new {
        watching::wanted(core, filter);
    }
    core.index.insert(filter, group, subscriber(id, granted));
    Some(())
}

fn restore_entry(core: &mut Core, reading: &mut Reading, change: Change) -> Option<()> {
    let Change::Queued { client, number, message, grade, retain, identifiers, shared } = change
    else {
        return None;
    };
    let id = core.sessions.find(&client)?;
    let publication = reading.messages.get(&message)?.clone();
    let conflate = core.settings.rules.conflates(&publication.topic);
    let session = core.sessions.get_mut(id)?;
    session.last_number = session.last_number.max(number);
    let entry =
        Entry { number, publication, grade, retain, stored: true, identifiers, shared, conflate };
    reading.entries.insert((id, number), Waiting { entry, flying: None });
    Some(())
}
