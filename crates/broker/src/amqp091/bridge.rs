//! The exchange `amq.topic` as the bridge to what other protocols publish and subscribe to.
//!
//! The adapter has one session for all of its queues, with the filters that their bindings come to.
//! What comes to it goes through the exchange as what is published here does, and is acknowledged
//! when the queues have it. What is published here goes to its queues at once and to the core
//! besides, as this session's own, which does not come back to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fault::Fault;
use super::host::Client;
use super::names::{filter_of, topic_of};
use super::queue::Message;
use super::routing::BRIDGE;
use super::translate::{self, REPLY_TOPIC};
use crate::core::{Accepted, Opening};
use crate::event::Drop;
use crate::ids::{ClientKey, ConnectionId, Protocol, SessionId};
use crate::outputs::Context;
use crate::publication::{Grade, Publication};
use crate::refusal::Refusal;
use crate::session::{RetainHandling, Subscription};

/// What stands for a connection of the session; no shell gives this number.
pub(crate) const BRIDGE_CONNECTION: ConnectionId = ConnectionId(u64::MAX);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Bridge {
    session: Option<SessionId>,
    /// Filters, and how many bindings need each.
    filters: BTreeMap<String, usize>,
    /// Answers to queues are subscribed to.
    has_replies: bool,
}

impl Bridge {
    pub(super) fn session(&self) -> Option<SessionId> {
        self.session
    }

    /// The session, which is opened if it is not.
    fn open(&mut self, context: &mut Context<'_>) -> Result<SessionId, Refusal> {
        if let Some(session) = self.session {
            return Ok(session);
        }
        let settings = context.core.settings();
        let opening = Opening {
            client: ClientKey { protocol: Protocol::Amqp091, name: BRIDGE.into() },
            connection: BRIDGE_CONNECTION,
            user: None,
            clean: false,
            // What came while it was not written is given again after a restart.
            expiry: settings.max_session_expiry,
            window: settings.max_inflight,
            will: None,
        };
        let session = context.core.open(context.now, opening)?.session;
        self.session = Some(session);
        let stale: Vec<Arc<str>> = context
            .core
            .filters(session)
            .filter(|filter| !self.filters.contains_key(&***filter))
            .cloned()
            .collect();
        for filter in stale {
            context.core.unsubscribe(session, &filter);
        }
        Ok(session)
    }

    fn subscribe(&mut self, context: &mut Context<'_>, filter: String) -> Result<(), Refusal> {
        let session = self.open(context)?;
        let subscription = Subscription {
            no_local: true,
            as_published: true,
            handling: RetainHandling::Never,
            ..Subscription::new(filter, Grade::AtLeastOnce)
        };
        context.core.subscribe_unchecked(session, subscription).map(|_| ())
    }

    /// A queue or an exchange is bound to the bridge.
    pub(super) fn bind(&mut self, context: &mut Context<'_>, pattern: &str) -> Result<(), Fault> {
        let Some(filter) = filter_of(pattern) else { return Ok(()) };
        if let Some(count) = self.filters.get_mut(&filter) {
            *count += 1;
            return Ok(());
        }
        self.subscribe(context, filter.clone())?;
        self.filters.insert(filter, 1);
        Ok(())
    }

    /// A binding to the bridge is gone.
    pub(super) fn unbind(&mut self, context: &mut Context<'_>, pattern: &str) {
        let Some(filter) = filter_of(pattern) else { return };
        let Some(count) = self.filters.get_mut(&filter) else { return };
        *count -= 1;
        if *count == 0 {
            self.filters.remove(&filter);
            if let Some(session) = self.session {
                context.core.unsubscribe(session, &filter);
            }
        }
    }

    /// Gives a message to the core. `None` if it has no topic, or one that nothing is published
    /// to, which is counted.
    pub(super) fn publish(
        &mut self,
        context: &mut Context<'_>,
        client: &Client,
        message: &Message,
        is_confirmed: bool,
    ) -> Result<Option<Accepted>, Fault> {
        let Some(topic) = topic_of(&message.key) else {
            let publication =
                Publication::new(Protocol::Amqp091, &*message.key, message.body.clone());
            context.core.tell_dropped(&publication, None, Drop::Unmappable);
            return Ok(None);
        };
        let (properties, body) = (&message.properties, &message.body);
        let mut publication =
            translate::publication(context.now, topic, properties, body, is_confirmed);
        let details = publication.details.as_ref();
        let reply_to = details.and_then(|details| details.reply_to.as_deref());
        let is_reply = reply_to.is_some_and(|topic| topic.starts_with(REPLY_TOPIC));
        if is_reply && !self.has_replies {
            self.subscribe(context, format!("{REPLY_TOPIC}#"))?;
            self.has_replies = true;
        }
        publication.publisher = self.session;
        let (user, name) = (client.user.as_deref(), &*client.name);
        match context.core.publish_as(context.now, user, name, publication) {
            Ok(accepted) => Ok(Some(accepted)),
            Err(Refusal::TopicName { .. }) => Ok(None),
            Err(refusal) => Err(refusal.into()),
        }
    }
}
