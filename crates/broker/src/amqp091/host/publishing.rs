//! A message comes, and finds its queues.

use std::collections::BTreeSet;
use std::sync::Arc;

use proto::amqp091::machine::Publish;
use proto::amqp091::{Properties, ReplyCode};

use super::{Client, Host, Slot, forget, tell_dropped};
use crate::access::Action;
use crate::amqp091::deaths::Reason;
use crate::amqp091::fault::Fault;
use crate::amqp091::queue::{Entry, Message, Pushed};
use crate::amqp091::routing::BRIDGE;
use crate::amqp091::storing;
use crate::amqp091::translate::{REPLY_KEY, ttl_of};
use crate::event::Drop;
use crate::ids::{Protocol, Ticket};
use crate::outputs::Context;

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::amqp091) struct Published {
    /// Whether it goes to somebody.
    pub(in crate::amqp091) is_routed: bool,
    /// Whether a queue had no room.
    pub(in crate::amqp091) is_refused: bool,
    /// It may be confirmed once this is written.
    pub(in crate::amqp091) ticket: Ticket,
}

/// Where a message goes.
pub(super) struct Found {
    pub(super) queues: BTreeSet<Arc<str>>,
    /// It goes to other protocols too.
    pub(super) is_bridged: bool,
}

impl Host {
    /// Takes a message. What is refused here has done nothing.
    pub(in crate::amqp091) fn publish(
        &mut self,
        context: &mut Context<'_>,
        client: &Client,
        publish: &Publish,
        is_confirmed: bool,
    ) -> Result<Published, Fault> {
        let properties = Properties::decode(&publish.properties)
            .map_err(|error| Fault::new(ReplyCode::SyntaxError, error.to_string()))?;
        if publish.is_immediate {
            return Err(Fault::new(ReplyCode::NotImplemented, "immediate is not done here"));
        }
        // Whoever gave no name that was checked may give any.
        if let (Some(name), Some(user)) = (properties.user_id, client.user.as_deref())
            && name != user
        {
            return Err(Fault::precondition(format!("user-id '{name}' is not who sent it")));
        }
        let (exchange, key) = self.address(publish);
        self.check_publish(context, client, exchange, key)?;
        let ttl = ttl_of(&properties).map_err(Fault::precondition)?;
        let message = Arc::new(Message {
            exchange: exchange.into(),
            key: key.into(),
            properties: publish.properties.clone(),
            body: publish.body.clone(),
            persistent: properties.delivery_mode == Some(2),
            priority: properties.priority.unwrap_or(0),
            ttl,
        });
        let found = self.find_queues(&message);
        let mut published = Published { is_routed: false, is_refused: false, ticket: Ticket(0) };
        if found.is_bridged {
            let accepted = self.bridge.publish(context, client, &message, is_confirmed)?;
            published.is_routed = accepted.is_some_and(|accepted| accepted.receivers > 0);
            published.ticket = accepted.map_or(Ticket(0), |accepted| accepted.ticket);
        }
        for queue in &found.queues {
            match self.push(context, queue, &message) {
                Some(ticket) => published.ticket = published.ticket.max(ticket),
                None => published.is_refused = true,
            }
            published.is_routed = true;
        }
        self.bury(context);
        if !published.is_routed && !publish.is_mandatory && !found.is_bridged {
            // Nobody learns of it otherwise.
            tell_dropped(context, exchange, &Entry::unqueued(message), Drop::Unmappable);
        }
        Ok(published)
    }

    /// Exchange and key; answers to a topic go to the default exchange under a key that says so.
    fn address<'a>(&self, publish: &'a Publish) -> (&'a str, &'a str) {
        let (exchange, key) = (publish.exchange.as_str(), publish.routing_key.as_str());
        match key.strip_prefix(REPLY_KEY) {
            Some(topic) if exchange.is_empty() && !self.queues.contains_key(key) => (BRIDGE, topic),
            _ => (exchange, key),
        }
    }

    fn check_publish(
        &self,
        context: &Context<'_>,
        client: &Client,
        exchange: &str,
        key: &str,
    ) -> Result<(), Fault> {
        if exchange.is_empty() {
            let topic = format!("amqp091/queue/{key}");
            return allowed(context, client, Action::Publish, &topic);
        }
        let known = self.exchanges.get(exchange).ok_or_else(|| Fault::no_exchange(exchange))?;
        if known.internal {
            return Err(Fault::access(format_args!("internal exchange '{exchange}'")));
        }
        if exchange == BRIDGE {
            return Ok(());
        }
        allowed(context, client, Action::Publish, &format!("amqp091/exchange/{exchange}"))
    }

    pub(super) fn find_queues(&self, message: &Message) -> Found {
        if message.exchange.is_empty() {
            let queue = self.queues.get_key_value(&message.key).map(|(name, _)| name.clone());
            return Found { queues: queue.into_iter().collect(), is_bridged: false };
        }
        let properties = Properties::decode(&message.properties).unwrap_or_default();
        let routed = self.exchanges.route(&message.exchange, &message.key, properties.headers);
        let mut queues = routed.queues;
        queues.retain(|queue| self.queues.contains_key(queue));
        Found { queues, is_bridged: routed.is_bridged }
    }

    /// Puts a message into a queue; `None` if it has no room, else the ticket of what was written.
    pub(in crate::amqp091) fn push(
        &mut self,
        context: &mut Context<'_>,
        name: &Arc<str>,
        message: &Arc<Message>,
    ) -> Option<Ticket> {
        let bounds = Self::bounds(context);
        let id = self.id_of(name)?;
        let size_bytes = message.size_bytes();
        let Slot { queue, is_stored, .. } = self.queues.get_mut(name)?;
        let is_kept = *is_stored && message.persistent && context.core.journal.is_durable();
        let is_full = self.held_bytes + size_bytes > context.core.settings().max_total_bytes;
        let pushed = match is_full {
            true => Pushed::Refused { to_dead_letters: false },
            false => queue.push(context.now, message, &bounds, is_kept),
        };
        match pushed {
            Pushed::Taken { entry, dropped } => {
                self.held_bytes += size_bytes;
                for old in dropped {
                    self.held_bytes = self.held_bytes.saturating_sub(old.message.size_bytes());
                    self.dead.push_back((id.clone(), old, Reason::MaxLength));
                }
                if is_kept {
                    let key = storing::key_of_message(name, entry.position.number);
                    let value = storing::of_message(&entry);
                    context.core.journal.keep(Protocol::Amqp091, key, Some(value));
                }
                self.refresh(&id);
                self.set_ready(&id);
                Some(if is_kept { context.core.journal.ticket() } else { Ticket(0) })
            }
            Pushed::Refused { to_dead_letters } => {
                let entry = Entry::unqueued(message.clone());
                match to_dead_letters {
                    true => self.dead.push_back((id, entry, Reason::MaxLength)),
                    false => tell_dropped(context, name, &entry, Drop::QueueFull),
                }
                None
            }
        }
    }

    /// Takes out all that waits in a queue; how many there were.
    pub(in crate::amqp091) fn purge(&mut self, context: &mut Context<'_>, name: &str) -> usize {
        let Some(id) = self.id_of(name) else { return 0 };
        let Some(queue) = self.queue_mut(&id) else { return 0 };
        let all = queue.purge();
        for entry in &all {
            self.held_bytes = self.held_bytes.saturating_sub(entry.message.size_bytes());
            forget(context, name, entry);
        }
        self.refresh(&id);
        all.len()
    }
}

/// Whether the operator's rules allow it.
pub(in crate::amqp091) fn allowed(
    context: &Context<'_>,
    client: &Client,
    action: Action,
    topic: &str,
) -> Result<(), Fault> {
    let access = &context.core.settings().access;
    let (user, name) = (client.user.as_deref(), &client.name);
    let may = match action {
        Action::Publish => access.may_publish(user, name, topic),
        // What a queue is given is not looked at again.
        Action::Subscribe => access.may_subscribe_whole(user, name, topic),
    };
    match may {
        true => Ok(()),
        false => Err(Fault::access(format_args!("'{topic}'"))),
    }
}
