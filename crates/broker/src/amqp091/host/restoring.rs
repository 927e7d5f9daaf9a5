//! What other protocols publish, and what the store has.

use std::sync::Arc;

use bytes::Bytes;
use proto::amqp091::Table;

use super::Host;
use crate::amqp091::arguments::Arguments;
use crate::amqp091::names::{filter_of, key_of};
use crate::amqp091::queue::{Message, Queue};
use crate::amqp091::routing::{BRIDGE, Pattern};
use crate::amqp091::storing::{self, Record};
use crate::amqp091::translate::{self, REPLY_TOPIC};
use crate::core::{Delivery, Next, convert_for, tell_dropped_for, tell_sent, tell_unchosen};
use crate::event::Drop;
use crate::explain::Sent;
use crate::ids::SessionId;
use crate::outputs::Context;
use crate::publication::{Grade, Publication};

/// Queues that are told of by name.
const MAX_NAMED: usize = 8;

/// Tells which queues have taken a publication that is followed.
fn tell_queues(
    context: &mut Context<'_>,
    session: SessionId,
    publication: &Publication,
    queues: &[Arc<str>],
) {
    if !publication.is_followed || queues.is_empty() {
        return;
    }
    let named = queues.iter().take(MAX_NAMED).map(|queue| &**queue).collect::<Vec<_>>().join(", ");
    let to = match queues.len().saturating_sub(MAX_NAMED) {
        0 => format!("queues: {named}"),
        more => format!("queues: {named} and {more} others"),
    };
    let sent = Sent { protocol: "AMQP 0.9.1", to: Some(to), ..Sent::default() };
    tell_sent(context.core, publication, session, sent);
}

impl Host {
    /// Takes what waits for the bridge.
    pub(in crate::amqp091) fn receive(&mut self, context: &mut Context<'_>) {
        let Some(session) = self.bridge.session() else { return };
        while let Some(next) = context.core.take(context.now, session) {
            match next {
                Next::Publish(delivery) => {
                    let queues = self.arrive(context, &delivery);
                    // Before it is done with: which is what is told last.
                    tell_queues(context, session, &delivery.publication, &queues);
                    if let Some(handle) = delivery.handle {
                        context.core.finish(session, handle.get(), false);
                    }
                }
                Next::Release(handle) => {
                    context.core.finish(session, handle.get(), false);
                }
            }
        }
        self.bury(context);
    }

    /// Puts a message into the queues that it is for; which have taken it.
    fn arrive(&mut self, context: &mut Context<'_>, delivery: &Delivery) -> Vec<Arc<str>> {
        let publication = &delivery.publication;
        if let Some(queue) = publication.topic.strip_prefix(REPLY_TOPIC) {
            let message = message(context, publication, "", queue, false);
            if let Some(id) = self.id_of(queue) {
                return self.push_all(context, publication, vec![id.name], &message);
            }
        } else if let Some(key) = key_of(&publication.topic) {
            let message = message(context, publication, BRIDGE, &key, publication.retain);
            let queues = self.find_queues(&message).queues.into_iter().collect();
            return self.push_all(context, publication, queues, &message);
        }
        let session = self.bridge.session();
        let detail = format_args!("its topic is no routing key of at most 255 bytes");
        tell_dropped_for(context.core, publication, session, Drop::Unmappable, detail);
        Vec::new()
    }

    /// Puts a message into these queues; which have taken it. Where all are full it is told that
    /// nobody has: each queue has counted what it dropped.
    fn push_all(
        &mut self,
        context: &mut Context<'_>,
        publication: &Publication,
        mut queues: Vec<Arc<str>>,
        message: &Arc<Message>,
    ) -> Vec<Arc<str>> {
        let had_any = !queues.is_empty();
        queues.retain(|queue| self.push(context, queue, message).is_some());
        if let Some(session) = self.bridge.session().filter(|_| had_any && queues.is_empty()) {
            tell_unchosen(context.core, publication, session, Drop::QueueFull.name());
        }
        queues
    }

    /// Gives a queue that is bound what is retained.
    pub(super) fn give_retained(
        &mut self,
        context: &mut Context<'_>,
        queue: &Arc<str>,
        pattern: &str,
    ) {
        let Some(filter) = filter_of(pattern) else { return };
        let pattern = Pattern::new(pattern);
        let max = context.core.settings().max_queued;
        let session = self.bridge.session();
        for mut publication in context.core.retained_for(context.now, &filter, max) {
            let Some(key) = key_of(&publication.topic).filter(|key| pattern.fits(key)) else {
                continue;
            };
            if let Some(session) = session {
                publication = convert_for(context.core, session, &publication);
            }
            let message = message(context, &publication, BRIDGE, &key, true);
            self.push(context, queue, &message);
        }
        self.bury(context);
    }

    /// Takes what the store has kept; how many records were none.
    pub(in crate::amqp091) fn restore(
        &mut self,
        context: &mut Context<'_>,
        records: impl IntoIterator<Item = (Arc<str>, Bytes)>,
    ) -> usize {
        let (mut bindings, mut messages, mut unknown) = (Vec::new(), Vec::new(), 0);
        for (key, value) in records {
            match storing::decode(&key, &value) {
                Some(Record::Exchange { name, exchange }) => self.exchanges.insert(name, exchange),
                Some(Record::Queue { name, auto_delete, arguments }) => {
                    let table = Table::decode(&arguments).unwrap_or_default();
                    let known = Arguments::decode(table).unwrap_or_default();
                    let queue = Queue::new(context.now, true, None, auto_delete, known);
                    self.insert_queue(name, queue, true);
                }
                Some(Record::Binding { source, binding }) => bindings.push((source, binding)),
                Some(Record::Message { queue, number, message, deadline }) => {
                    messages.push((queue, number, message, deadline));
                }
                None => unknown += 1,
            }
        }
        for (source, binding) in bindings {
            let Some(exchange) = self.exchanges.get_mut(&source) else { continue };
            let key = binding.key.clone();
            if exchange.bind(binding) && *source == *BRIDGE {
                // It was let in before; what the core refuses now is only not bridged.
                let _ = self.bridge.bind(context, &key);
            }
        }
        for (name, number, message, deadline) in messages {
            let Some(id) = self.id_of(&name) else { continue };
            self.held_bytes += message.size_bytes();
            if let Some(queue) = self.queue_mut(&id) {
                queue.restore(number, message, deadline, true);
            }
            self.refresh(&id);
        }
        unknown
    }
}

/// A publication as a message of an exchange.
fn message(
    context: &Context<'_>,
    publication: &Publication,
    exchange: &str,
    key: &str,
    is_retained: bool,
) -> Arc<Message> {
    let details = publication.details.as_ref();
    let ttl = publication.deadline.map(|deadline| deadline.saturating_sub(context.now));
    Arc::new(Message {
        exchange: exchange.into(),
        key: key.into(),
        properties: translate::properties(context.now, publication, is_retained),
        body: publication.payload.clone(),
        persistent: publication.grade > Grade::AtMostOnce,
        priority: details.and_then(|details| details.priority).unwrap_or(0),
        ttl,
    })
}
