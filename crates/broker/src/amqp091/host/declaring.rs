//! Exchanges, queues and bindings come and go (AMQP 0.9.1 §1.6, §1.7).

use std::sync::Arc;

use proto::amqp091::{ReplyCode, Table};

use super::publishing::allowed;
use super::{Client, Host, QueueId, Slot, forget, forget_number};
use crate::access::Action;
use crate::amqp091::arguments::Arguments;
use crate::amqp091::fault::Fault;
use crate::amqp091::names::filter_of;
use crate::amqp091::queue::Queue;
use crate::amqp091::routing::{
    BRIDGE, Binding, Exchange, Kind, MAX_BINDINGS, MAX_EXCHANGES, Target, sorted,
};
use crate::amqp091::storing;
use crate::amqp091::translate::wants_retained;
use crate::ids::{ConnectionId, Protocol};
use crate::outputs::Context;

/// Names that begin so are the server's own.
const RESERVED: &str = "amq.";

/// An exchange that is wished for.
pub(in crate::amqp091) struct DeclareExchange<'a> {
    pub(in crate::amqp091) name: &'a str,
    pub(in crate::amqp091) kind: &'a str,
    pub(in crate::amqp091) passive: bool,
    pub(in crate::amqp091) durable: bool,
    pub(in crate::amqp091) auto_delete: bool,
    pub(in crate::amqp091) internal: bool,
    pub(in crate::amqp091) arguments: Table<'a>,
}

/// A queue that is wished for.
pub(in crate::amqp091) struct DeclareQueue<'a> {
    /// Empty: the server gives it a name.
    pub(in crate::amqp091) name: &'a str,
    pub(in crate::amqp091) passive: bool,
    pub(in crate::amqp091) durable: bool,
    pub(in crate::amqp091) exclusive: bool,
    pub(in crate::amqp091) auto_delete: bool,
    pub(in crate::amqp091) arguments: Table<'a>,
}

/// A queue that is there.
pub(in crate::amqp091) struct Declared {
    pub(in crate::amqp091) name: Arc<str>,
    pub(in crate::amqp091) messages: usize,
    pub(in crate::amqp091) consumers: usize,
}

fn differs(what: &str, name: &str, argument: &str) -> Fault {
    Fault::precondition(format!("inequivalent arg '{argument}' for {what} '{name}'"))
}

impl Host {
    pub(in crate::amqp091) fn declare_exchange(
        &mut self,
        context: &mut Context<'_>,
        wish: &DeclareExchange<'_>,
    ) -> Result<(), Fault> {
        let name = wish.name;
        let known = self.exchanges.get(name);
        if wish.passive {
            let is_there = known.is_some() || name.is_empty();
            return if is_there { Ok(()) } else { Err(Fault::no_exchange(name)) };
        }
        let Some(kind) = Kind::of_name(wish.kind) else {
            let text = format!("unknown exchange type '{}'", wish.kind);
            return Err(Fault::new(ReplyCode::CommandInvalid, text));
        };
        let alternate = wish.arguments.get("alternate-exchange");
        let alternate = alternate.as_ref().and_then(|name| name.as_text()).map(Arc::<str>::from);
        if let Some(known) = known {
            for (same, argument) in [
                (known.kind == kind, "type"),
                (known.durable == wish.durable, "durable"),
                (known.auto_delete == wish.auto_delete, "auto_delete"),
                (known.internal == wish.internal, "internal"),
                (known.alternate == alternate, "alternate-exchange"),
            ] {
                if !same {
                    return Err(differs("exchange", name, argument));
                }
            }
            return Ok(());
        }
        if name.is_empty() || name.starts_with(RESERVED) {
            return Err(Fault::access(format_args!("exchange name '{name}'")));
        }
        if self.exchanges.len() >= MAX_EXCHANGES {
            return Err(Fault::bound("exchanges", MAX_EXCHANGES));
        }
        let mut exchange = Exchange::new(kind, wish.durable, wish.auto_delete, wish.internal);
        exchange.alternate = alternate;
        if wish.durable {
            let (key, value) = (storing::key_of_exchange(name), storing::of_exchange(&exchange));
            context.core.journal.keep(Protocol::Amqp091, key, Some(value));
        }
        self.exchanges.insert(name.into(), exchange);
        Ok(())
    }

    pub(in crate::amqp091) fn delete_exchange(
        &mut self,
        context: &mut Context<'_>,
        name: &str,
        if_unused: bool,
    ) -> Result<(), Fault> {
        if name.is_empty() || name.starts_with(RESERVED) {
            return Err(Fault::access(format_args!("exchange '{name}'")));
        }
        // What is not there is deleted, as RabbitMQ has it.
        let Some(exchange) = self.exchanges.get(name) else { return Ok(()) };
        if if_unused && !exchange.bindings().is_empty() {
            return Err(Fault::precondition(format!("exchange '{name}' in use")));
        }
        self.remove_exchange(context, name);
        Ok(())
    }

    fn remove_exchange(&mut self, context: &mut Context<'_>, name: &str) {
        let Some(exchange) = self.exchanges.remove(name) else { return };
        if exchange.durable {
            context.core.journal.keep(Protocol::Amqp091, storing::key_of_exchange(name), None);
        }
        for binding in exchange.bindings() {
            self.forget_binding(context, name, exchange.durable, binding);
        }
        self.remove_target(context, &Target::Exchange(name.into()));
    }

    /// Takes out all bindings that lead to what is gone, and exchanges that go with them.
    fn remove_target(&mut self, context: &mut Context<'_>, target: &Target) {
        let mut gone = Vec::new();
        for (name, exchange) in self.exchanges.iter_mut() {
            let unbound = exchange.unbind_all(target);
            if !unbound.is_empty() {
                gone.push((name.clone(), exchange.durable, unbound));
            }
        }
        for (source, durable, unbound) in gone {
            for binding in unbound {
                if *source == *BRIDGE {
                    self.bridge.unbind(context, &binding.key);
                }
                self.forget_binding(context, &source, durable, &binding);
            }
            self.delete_if_done(context, &source);
        }
    }

    fn delete_if_done(&mut self, context: &mut Context<'_>, name: &str) {
        let is_done = |exchange: &Exchange| exchange.auto_delete && exchange.bindings().is_empty();
        if self.exchanges.get(name).is_some_and(is_done) {
            self.remove_exchange(context, name);
        }
    }

    pub(in crate::amqp091) fn declare_queue(
        &mut self,
        context: &mut Context<'_>,
        client: &Client,
        wish: &DeclareQueue<'_>,
    ) -> Result<Declared, Fault> {
        let arguments = || Arguments::decode(wish.arguments).map_err(Fault::precondition);
        if let Some(slot) = self.queues.get_mut(wish.name) {
            let queue = &mut slot.queue;
            check_owner(queue.exclusive, client, wish.name)?;
            if !wish.passive {
                let name = wish.name;
                for (same, argument) in [
                    (queue.durable == wish.durable, "durable"),
                    (queue.exclusive.is_some() == wish.exclusive, "exclusive"),
                    (queue.auto_delete == wish.auto_delete, "auto_delete"),
                    (queue.arguments == arguments()?, "arguments"),
                ] {
                    if !same {
                        return Err(differs("queue", name, argument));
                    }
                }
            }
            queue.used = context.now;
            let (messages, consumers) = (queue.len(), queue.consumers.len());
            let id = self.id_of(wish.name).ok_or_else(|| Fault::no_queue(wish.name))?;
            self.refresh(&id);
            return Ok(Declared { name: id.name, messages, consumers });
        }
        if wish.passive {
            return Err(Fault::no_queue(wish.name));
        }
        if wish.name.starts_with(RESERVED) {
            return Err(Fault::access(format_args!("queue name '{}'", wish.name)));
        }
        let max = context.core.settings().max_sessions;
        if self.queues.len() >= max {
            return Err(Fault::bound("queues", max));
        }
        let name = match wish.name {
            "" => self.make_name("amq.gen-"),
            name => name.into(),
        };
        let exclusive = wish.exclusive.then_some(client.connection);
        let queue =
            Queue::new(context.now, wish.durable, exclusive, wish.auto_delete, arguments()?);
        // What goes with its connection does not outlive the process either.
        let is_stored = wish.durable && exclusive.is_none();
        if is_stored {
            let arguments = sorted(wish.arguments);
            let value = storing::of_queue(wish.auto_delete, &arguments);
            context.core.journal.keep(Protocol::Amqp091, storing::key_of_queue(&name), Some(value));
        }
        self.insert_queue(name.clone(), queue, is_stored);
        Ok(Declared { name, messages: 0, consumers: 0 })
    }

    pub(super) fn insert_queue(&mut self, name: Arc<str>, queue: Queue, is_stored: bool) {
        self.last += 1;
        let incarnation = self.last;
        if let Some(owner) = queue.exclusive {
            self.exclusive.insert((owner, name.clone()));
        }
        let slot = Slot { queue, incarnation, due: None, is_stored };
        self.queues.insert(name.clone(), slot);
        self.refresh(&QueueId { name, incarnation });
    }

    /// The queue, if this client may use it.
    pub(in crate::amqp091) fn usable(&self, client: &Client, name: &str) -> Result<QueueId, Fault> {
        let queue = self.queue(name).ok_or_else(|| Fault::no_queue(name))?;
        check_owner(queue.exclusive, client, name)?;
        self.id_of(name).ok_or_else(|| Fault::no_queue(name))
    }

    /// Deletes a queue; how many messages it had.
    pub(in crate::amqp091) fn delete_queue(
        &mut self,
        context: &mut Context<'_>,
        client: &Client,
        name: &str,
        if_unused: bool,
        if_empty: bool,
    ) -> Result<usize, Fault> {
        // What is not there is deleted, as RabbitMQ has it.
        let Some(queue) = self.queue(name) else { return Ok(0) };
        check_owner(queue.exclusive, client, name)?;
        if if_unused && !queue.consumers.is_empty() {
            return Err(Fault::precondition(format!("queue '{name}' in use")));
        }
        if if_empty && queue.len() > 0 {
            return Err(Fault::precondition(format!("queue '{name}' not empty")));
        }
        Ok(self.remove_queue(context, name))
    }

    pub(in crate::amqp091) fn remove_queue(
        &mut self,
        context: &mut Context<'_>,
        name: &str,
    ) -> usize {
        let Some((name, slot)) = self.queues.remove_entry(name) else { return 0 };
        let mut queue = slot.queue;
        if let Some(due) = slot.due {
            self.due.remove(&(due, name.clone()));
        }
        self.held_bytes = self.held_bytes.saturating_sub(queue.held_bytes());
        let all = queue.purge();
        for entry in &all {
            forget(context, &name, entry);
        }
        for number in queue.stored() {
            forget_number(context, &name, *number);
        }
        if let Some(owner) = queue.exclusive {
            self.exclusive.remove(&(owner, name.clone()));
        }
        if slot.is_stored {
            context.core.journal.keep(Protocol::Amqp091, storing::key_of_queue(&name), None);
        }
        self.cancelled.extend(queue.consumers);
        self.remove_target(context, &Target::Queue(name));
        all.len()
    }

    /// A connection is gone, and the queues with it that were its own.
    pub(in crate::amqp091) fn remove_exclusive(
        &mut self,
        context: &mut Context<'_>,
        connection: ConnectionId,
    ) {
        let first = (connection, Arc::from(""));
        let of = self.exclusive.range(first..).take_while(|(owner, _)| *owner == connection);
        let gone: Vec<Arc<str>> = of.map(|(_, name)| name.clone()).collect();
        for name in gone {
            self.remove_queue(context, &name);
        }
    }

    /// Binds a queue or an exchange.
    pub(in crate::amqp091) fn bind(
        &mut self,
        context: &mut Context<'_>,
        client: &Client,
        source: &str,
        binding: Binding,
    ) -> Result<(), Fault> {
        let is_target_stored = self.check_ends(client, source, &binding)?;
        let topic = match filter_of(&binding.key).filter(|_| source == BRIDGE) {
            Some(filter) => filter,
            None => format!("amqp091/exchange/{source}"),
        };
        allowed(context, client, Action::Subscribe, &topic)?;
        let known = self.exchanges.get_mut(source).ok_or_else(|| Fault::no_exchange(source))?;
        if known.bindings().contains(&binding) {
            return Ok(());
        }
        if known.bindings().len() >= MAX_BINDINGS {
            return Err(Fault::bound("bindings of an exchange", MAX_BINDINGS));
        }
        if source == BRIDGE {
            self.bridge.bind(context, &binding.key)?;
        }
        if known.durable && is_target_stored {
            let key = storing::key_of_binding(source, &binding);
            let value = storing::of_binding(source, &binding);
            context.core.journal.keep(Protocol::Amqp091, key, Some(value));
        }
        known.bind(binding.clone());
        let arguments = Table::decode(&binding.arguments).unwrap_or_default();
        if let (Target::Queue(queue), true) = (&binding.target, wants_retained(arguments))
            && source == BRIDGE
        {
            self.give_retained(context, queue, &binding.key);
        }
        Ok(())
    }

    /// Whether the target of a binding outlives the process.
    fn check_ends(&self, client: &Client, source: &str, binding: &Binding) -> Result<bool, Fault> {
        let is_target_stored = match &binding.target {
            Target::Queue(name) => {
                self.usable(client, name)?;
                self.queues.get(name).is_some_and(|slot| slot.is_stored)
            }
            Target::Exchange(name) if name.is_empty() => {
                return Err(Fault::access("the default exchange"));
            }
            Target::Exchange(name) => {
                let target = self.exchanges.get(name).ok_or_else(|| Fault::no_exchange(name))?;
                target.durable
            }
        };
        match source {
            "" => Err(Fault::access("the default exchange")),
            _ => Ok(is_target_stored),
        }
    }

    /// Takes a binding out; one that is not there is gone.
    pub(in crate::amqp091) fn unbind(
        &mut self,
        context: &mut Context<'_>,
        client: &Client,
        source: &str,
        binding: &Binding,
    ) -> Result<(), Fault> {
        self.check_ends(client, source, binding)?;
        let known = self.exchanges.get_mut(source).ok_or_else(|| Fault::no_exchange(source))?;
        if known.unbind(binding) {
            let durable = known.durable;
            if source == BRIDGE {
                self.bridge.unbind(context, &binding.key);
            }
            self.forget_binding(context, source, durable, binding);
            self.delete_if_done(context, source);
        }
        Ok(())
    }

    fn forget_binding(
        &mut self,
        context: &mut Context<'_>,
        source: &str,
        is_source_durable: bool,
        binding: &Binding,
    ) {
        if is_source_durable {
            let key = storing::key_of_binding(source, binding);
            context.core.journal.keep(Protocol::Amqp091, key, None);
        }
    }
}

fn check_owner(exclusive: Option<ConnectionId>, client: &Client, name: &str) -> Result<(), Fault> {
    match exclusive {
        Some(owner) if owner != client.connection => {
            let text = format!("queue '{name}' is of another connection alone");
            Err(Fault::new(ReplyCode::ResourceLocked, text))
        }
        _ => Ok(()),
    }
}
