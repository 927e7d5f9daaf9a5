//! Exchanges, queues and their messages: all that is not of one connection.

mod declaring;
mod letters;
mod publishing;
mod restoring;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::arguments;
use super::bridge::Bridge;
use super::deaths::Reason;
use super::queue::{Bounds, ConsumerId, Entry, Queue};
use super::routing::Exchanges;
use super::storing;
use crate::event::Drop;
use crate::ids::{ConnectionId, Protocol};
use crate::outputs::Context;
use crate::publication::Publication;
use crate::settings::Overflow;

pub(super) use declaring::{DeclareExchange, DeclareQueue};
pub(super) use publishing::allowed;

/// A queue, and which of those that had its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueueId {
    pub(super) name: Arc<str>,
    incarnation: u64,
}

/// For whom something is done.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) connection: ConnectionId,
    pub(super) user: Option<Arc<str>>,
    /// The name of its session.
    pub(super) name: Arc<str>,
}

/// A queue with what the host knows of it.
#[derive(Debug)]
struct Slot {
    queue: Queue,
    incarnation: u64,
    /// When it is looked at next.
    due: Option<Duration>,
    /// It is in the store.
    is_stored: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Host {
    pub(super) exchanges: Exchanges,
    queues: BTreeMap<Arc<str>, Slot>,
    due: BTreeSet<(Duration, Arc<str>)>,
    /// Queues that go with their connection.
    exclusive: BTreeSet<(ConnectionId, Arc<str>)>,
    /// Of all queues.
    held_bytes: usize,
    /// Number of the last name that was made up, or queue declared.
    last: u64,
    /// Queues that have something for their consumers.
    ready: BTreeSet<Arc<str>>,
    /// Consumers whose queue has gone.
    cancelled: VecDeque<ConsumerId>,
    /// Messages that queues do not keep, on their way.
    dead: VecDeque<(QueueId, Entry, Reason)>,
    pub(super) bridge: Bridge,
}

impl Host {
    pub(super) fn queue(&self, name: &str) -> Option<&Queue> {
        self.queues.get(name).map(|slot| &slot.queue)
    }

    /// The queue that this was; another of its name is another.
    pub(super) fn queue_mut(&mut self, id: &QueueId) -> Option<&mut Queue> {
        let slot = self.queues.get_mut(&id.name)?;
        (slot.incarnation == id.incarnation).then_some(&mut slot.queue)
    }

    pub(super) fn id_of(&self, name: &str) -> Option<QueueId> {
        let (name, slot) = self.queues.get_key_value(name)?;
        Some(QueueId { name: name.clone(), incarnation: slot.incarnation })
    }

    /// A name that nobody has.
    pub(super) fn make_name(&mut self, prefix: &str) -> Arc<str> {
        loop {
            self.last += 1;
            let name = format!("{prefix}{:016x}", self.last);
            if !self.queues.contains_key(name.as_str()) {
                return name.into();
            }
        }
    }

    /// Those that have something for their consumers.
    pub(super) fn next_ready(&mut self) -> Option<QueueId> {
        while let Some(name) = self.ready.pop_first() {
            if let Some(id) = self.id_of(&name) {
                return Some(id);
            }
        }
        None
    }

    pub(super) fn set_ready(&mut self, id: &QueueId) {
        if let Some(queue) = self.queue_mut(id)
            && queue.len() > 0
            && !queue.consumers.is_empty()
        {
            self.ready.insert(id.name.clone());
        }
    }

    pub(super) fn next_cancelled(&mut self) -> Option<ConsumerId> {
        self.cancelled.pop_front()
    }

    /// When something is due.
    pub(super) fn wake_at(&self) -> Option<Duration> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Does what is due by now.
    pub(super) fn wake(&mut self, context: &mut Context<'_>) {
        while let Some((at, name)) = self.due.first().cloned() {
            if at > context.now {
                break;
            }
            self.due.pop_first();
            let Some(slot) = self.queues.get_mut(&name) else { continue };
            slot.due = None;
            if slot.queue.expires_at().is_some_and(|at| at <= context.now) {
                self.remove_queue(context, &name);
                continue;
            }
            let Some(id) = self.id_of(&name) else { continue };
            self.expire(context, &id);
            self.refresh(&id);
        }
        self.bury(context);
    }

    /// Takes what is of no use any more from the head of a queue.
    pub(super) fn expire(&mut self, context: &mut Context<'_>, id: &QueueId) {
        let now = context.now;
        while let Some(entry) = self.queue_mut(id).and_then(|queue| queue.pop_expired(now)) {
            self.held_bytes = self.held_bytes.saturating_sub(entry.message.size_bytes());
            self.dead.push_back((id.clone(), entry, Reason::Expired));
        }
    }

    /// Sets when a queue is looked at next.
    pub(super) fn refresh(&mut self, id: &QueueId) {
        let Some(slot) = self.queues.get_mut(&id.name) else { return };
        let due = slot.queue.due();
        if due != slot.due {
            if let Some(before) = slot.due {
                self.due.remove(&(before, id.name.clone()));
            }
            slot.due = due;
            if let Some(due) = due {
                self.due.insert((due, id.name.clone()));
            }
        }
    }

    /// Takes the next message of a queue for a consumer.
    pub(super) fn take(&mut self, context: &mut Context<'_>, id: &QueueId) -> Option<Entry> {
        self.expire(context, id);
        let entry = self.queue_mut(id)?.pop();
        self.refresh(id);
        entry
    }

    /// A message that was taken is done with.
    pub(super) fn finish(&mut self, context: &mut Context<'_>, id: &QueueId, entry: &Entry) {
        let Some(queue) = self.queue_mut(id) else { return };
        queue.release(entry);
        self.held_bytes = self.held_bytes.saturating_sub(entry.message.size_bytes());
        forget(context, &id.name, entry);
    }

    /// A message that was taken is not wanted.
    pub(super) fn reject(&mut self, id: &QueueId, entry: Entry) {
        let Some(queue) = self.queue_mut(id) else { return };
        queue.release(&entry);
        self.held_bytes = self.held_bytes.saturating_sub(entry.message.size_bytes());
        self.dead.push_back((id.clone(), entry, Reason::Rejected));
    }

    /// A message that was taken goes back to its place.
    pub(super) fn give_back(&mut self, id: &QueueId, entry: Entry) {
        let Some(queue) = self.queue_mut(id) else { return };
        queue.give_back(Entry { redelivered: true, ..entry });
        self.refresh(id);
        self.set_ready(id);
    }

    /// Bounds of queues that have none of their own.
    fn bounds(context: &Context<'_>) -> Bounds {
        let settings = context.core.settings();
        Bounds {
            max_length: settings.max_queued,
            max_bytes: settings.max_queued_bytes,
            overflow: match settings.overflow {
                Overflow::Oldest => arguments::Overflow::DropHead,
                Overflow::Newest => arguments::Overflow::Reject,
            },
        }
    }
}

/// The store may forget a message.
fn forget(context: &mut Context<'_>, queue: &str, entry: &Entry) {
    if entry.is_stored {
        forget_number(context, queue, entry.position.number);
    }
}

fn forget_number(context: &mut Context<'_>, queue: &str, number: u64) {
    context.core.journal.keep(Protocol::Amqp091, storing::key_of_message(queue, number), None);
}

/// Tells that a message has ended without delivery.
fn tell_dropped(context: &mut Context<'_>, queue: &str, entry: &Entry, why: Drop) {
    let topic = format!("{queue}/{}", entry.message.key);
    let publication = Publication::new(Protocol::Amqp091, topic, entry.message.body.clone());
    context.core.tell_dropped(&publication, None, why);
}
