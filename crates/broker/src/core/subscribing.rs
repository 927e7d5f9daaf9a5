//! Clients subscribe.

use std::sync::Arc;
use std::time::Duration;

use super::{Core, federating, watching};
use crate::change::Change;
use crate::filter::{check_filter, overlap, shared};
use crate::ids::SessionId;
use crate::index::Subscriber;
use crate::publication::Grade;
use crate::refusal::Refusal;
use crate::session::{Granted, RetainHandling, Subscription, Walk};

/// Filters whose retained messages are still to be given, for one session: more subscriptions at
/// once than that wait with those of the first.
const MAX_WALKS: usize = 100_000;

impl Core {
    /// Subscribes a session; an earlier subscription to the same filter is replaced. Retained
    /// messages come as [`Core::take`] is called.
    ///
    /// # Errors
    /// The filter, the client's rules, or a bound.
    pub fn subscribe(
        &mut self,
        now: Duration,
        id: SessionId,
        subscription: Subscription,
    ) -> Result<Grade, Refusal> {
        let (_, filter) = parts(&subscription)?;
        let Some(session) = self.sessions.get(id) else { return Err(Refusal::Closing) };
        let (user, name) = (session.user.as_deref(), &*session.key.name);
        if !self.settings.access.may_subscribe(user, name, filter) {
            return Err(Refusal::NotAuthorized);
        }
        federating::may_subscribe(self, now, id, filter)?;
        add_subscription(self, id, subscription, false)
    }

    /// The same for a session of an adapter's own, which sees itself to who may get what comes.
    ///
    /// # Errors
    /// The filter, or a bound.
    pub fn subscribe_unchecked(
        &mut self,
        id: SessionId,
        subscription: Subscription,
    ) -> Result<Grade, Refusal> {
        add_subscription(self, id, subscription, true)
    }

    /// Ends a subscription; whether there was one.
    pub fn unsubscribe(&mut self, id: SessionId, filter: &str) -> bool {
        let Some(session) = self.sessions.get_mut(id) else { return false };
        let Some(full) = session.subscriptions.remove(filter) else { return false };
        session.walks.retain(|walk| *walk.filter != *full);
        if session.stored {
            let client = session.key.clone();
            self.journal.add(Change::Unsubscribed { client, filter: full.clone() });
        }
        let bare = shared(&full).ok().flatten().map_or(&*full, |(_, filter)| filter);
        watching::unwanted(self, bare);
        match shared(&full) {
            Ok(Some((group, filter))) => self.index.remove(filter, Some(group), id),
            _ => self.index.remove(&full, None, id),
        }
    }

    /// Whether somebody has subscribed to some topic of a filter.
    #[must_use]
    pub fn wants(&self, filter: &str) -> bool {
        self.sessions.iter().any(|(_, session)| {
            session.subscriptions.filters().any(|full| match shared(full) {
                Ok(Some((_, own))) => overlap(own, filter),
                _ => overlap(full, filter),
            })
        })
    }

    /// The filters that a session has subscribed to.
    pub fn filters(&self, id: SessionId) -> impl Iterator<Item = &Arc<str>> {
        self.sessions.get(id).into_iter().flat_map(|session| session.subscriptions.filters())
    }
}

fn add_subscription(
    core: &mut Core,
    id: SessionId,
    subscription: Subscription,
    is_trusted: bool,
) -> Result<Grade, Refusal> {
    let (group, filter) = parts(&subscription)?;
    let settings = &core.settings;
    let Some(session) = core.sessions.get_mut(id) else { return Err(Refusal::Closing) };
    session.is_trusted |= is_trusted;
    let full: Arc<str> = subscription.filter.as_str().into();
    let is_new = !session.subscriptions.contains(&full);
    if is_new && session.subscriptions.len() >= settings.max_subscriptions {
        let limit = settings.max_subscriptions as u64;
        return Err(Refusal::Quota { what: "max_subscriptions", limit });
    }
    let granted = Granted {
        grade: subscription.grade,
        no_local: subscription.no_local,
        as_published: subscription.as_published,
        identifier: subscription.identifier,
    };
    session.subscriptions.insert(full, granted);
    // Shared subscriptions get nothing that is retained (MQTT 5 §4.8.2).
    let wants = match subscription.handling {
        RetainHandling::Always => true,
        RetainHandling::IfNew => is_new,
        RetainHandling::Never => false,
    };
    if wants {
        // One that is under way begins anew.
        session.walks.retain(|walk| *walk.filter != *filter);
    }
    if wants && group.is_none() && session.walks.len() < MAX_WALKS {
        session.walks.push(Walk { filter: filter.into(), granted, after: None });
    }
    core.index.insert(filter, group, subscriber(id, granted));
    let stored = session.stored.then(|| session.key.clone());
    if is_new {
        watching::wanted(core, filter);
    }
    if let Some(client) = stored {
        core.journal.add(Change::Subscribed { client, subscription: subscription.clone() });
    }
    core.poke(id);
    Ok(granted.grade)
}

/// The group, if it is a shared one, and the filter.
fn parts(subscription: &Subscription) -> Result<(Option<&str>, &str), Refusal> {
    let split = shared(&subscription.filter).map_err(|what| Refusal::TopicFilter { what })?;
    let (group, filter) = match split {
        Some((group, filter)) => (Some(group), filter),
        None => (None, subscription.filter.as_str()),
    };
    check_filter(filter).map_err(|what| Refusal::TopicFilter { what })?;
    Ok((group, filter))
}

/// What the index holds of a subscription.
pub(super) fn subscriber(session: SessionId, granted: Granted) -> Subscriber {
    let Granted { grade, no_local, as_published, identifier } = granted;
    Subscriber { session, grade, no_local, as_published, identifier }
}
