//! Which method does what.

use proto::amqp091::{Method, ReplyCode, Table};

use super::channel::{Mode, Settlement, Step, Verdict};
use super::connection::Connection;
use super::fault::Fault;
use super::host::{DeclareExchange, DeclareQueue, Host, QueueId, allowed};
use super::queue::ConsumerId;
use super::routing::{Binding, Target};
use crate::access::Action;
use crate::outputs::Context;

/// A method on a channel of a connection.
pub(super) struct Call<'a, 'b> {
    pub(super) context: &'a mut Context<'b>,
    pub(super) host: &'a mut Host,
    pub(super) connection: &'a mut Connection,
    pub(super) channel: u16,
}

impl Call<'_, '_> {
    /// Does what a method says, and answers.
    pub(super) fn run(mut self, method: &Method<'_>) {
        if !self.connection.is_open(self.channel) {
            return;
        }
        let (class, _) = method.ids();
        let result = match class {
            proto::amqp091::method::EXCHANGE => self.exchange(method),
            proto::amqp091::method::QUEUE => self.queue(method),
            proto::amqp091::method::BASIC => self.basic(method),
            _ => self.channel(method),
        };
        if let Err(fault) = result {
            self.connection.refuse(self.channel, &fault, method.ids());
        }
    }

    fn answer(&mut self, no_wait: bool, method: &Method<'_>) {
        if !no_wait {
            self.connection.server.send(self.channel, method);
        }
    }

    fn channel(&mut self, method: &Method<'_>) -> Result<(), Fault> {
        let number = self.channel;
        let done = match *method {
            Method::ChannelFlow { active: true } => Method::ChannelFlowOk { active: true },
            // Consumers are held back by basic.qos, as with RabbitMQ.
            Method::ChannelFlow { active: false } => {
                return Err(Fault::new(ReplyCode::NotImplemented, "active=false"));
            }
            Method::ChannelFlowOk { .. } => return Ok(()),
            Method::ConfirmSelect { no_wait } => {
                self.connection.set_mode(number, true)?;
                self.answer(no_wait, &Method::ConfirmSelectOk {});
                return Ok(());
            }
            Method::TxSelect {} => {
                self.connection.set_mode(number, false)?;
                Method::TxSelectOk {}
            }
            Method::TxCommit {} => {
                self.connection.commit(self.context, self.host, number)?;
                Method::TxCommitOk {}
            }
            Method::TxRollback {} => {
                let channel = self.connection.channels.get_mut(&number);
                if channel.and_then(|channel| channel.take_steps()).is_none() {
                    return Err(Fault::precondition("channel is not transactional"));
                }
                Method::TxRollbackOk {}
            }
            _ => return Err(no_place()),
        };
        self.answer(false, &done);
        Ok(())
    }

    fn exchange(&mut self, method: &Method<'_>) -> Result<(), Fault> {
        let (context, client) = (&mut *self.context, self.connection.client.clone());
        match *method {
            Method::ExchangeDeclare {
                exchange,
                kind,
                passive,
                durable,
                auto_delete,
                internal,
                no_wait,
                arguments,
            } => {
                let (name, topic) = (exchange, format!("amqp091/exchange/{exchange}"));
                if !passive {
                    allowed(context, &client, Action::Publish, &topic)?;
                }
                let wish = DeclareExchange {
                    name,
                    kind,
                    passive,
                    durable,
                    auto_delete,
                    internal,
                    arguments,
                };
                self.host.declare_exchange(context, &wish)?;
                self.answer(no_wait, &Method::ExchangeDeclareOk {});
            }
            Method::ExchangeDelete { exchange, if_unused, no_wait } => {
                let topic = format!("amqp091/exchange/{exchange}");
                allowed(context, &client, Action::Publish, &topic)?;
                self.host.delete_exchange(context, exchange, if_unused)?;
                self.answer(no_wait, &Method::ExchangeDeleteOk {});
            }
            Method::ExchangeBind { destination, source, routing_key, no_wait, arguments } => {
                let target = Target::Exchange(destination.into());
                let binding = Binding::new(target, routing_key, arguments);
                self.host.bind(context, &client, source, binding)?;
                self.answer(no_wait, &Method::ExchangeBindOk {});
            }
            Method::ExchangeUnbind { destination, source, routing_key, no_wait, arguments } => {
                let target = Target::Exchange(destination.into());
                let binding = Binding::new(target, routing_key, arguments);
                self.host.unbind(context, &client, source, &binding)?;
                self.answer(no_wait, &Method::ExchangeUnbindOk {});
            }
            _ => return Err(no_place()),
        }
        Ok(())
    }

    /// The queue that is meant; none named is the one that the channel declared last
    /// (AMQP 0.9.1 §1.7.2.3).
    fn named(&self, queue: &str) -> Result<QueueId, Fault> {
        let channel = self.connection.channels.get(&self.channel);
        let last = channel.and_then(|channel| channel.last_queue.clone());
        let name = match (queue, last) {
            ("", Some(last)) => last,
            ("", None) => return Err(Fault::no_queue("")),
            (queue, _) => queue.into(),
        };
        self.host.usable(&self.connection.client, &name)
    }

    fn binding(&self, queue: &str, key: &str, arguments: Table<'_>) -> Result<Binding, Fault> {
        let name = self.named(queue)?.name;
        // AMQP 0.9.1 §1.7.2.3: neither named means the queue's name for both.
        let key = if queue.is_empty() && key.is_empty() { &*name } else { key };
        Ok(Binding::new(Target::Queue(name.clone()), key, arguments))
    }

    fn queue(&mut self, method: &Method<'_>) -> Result<(), Fault> {
        let client = self.connection.client.clone();
        match *method {
            Method::QueueDeclare { no_wait, .. } => self.declare(method, no_wait)?,
            Method::QueueBind { queue, exchange, routing_key, no_wait, arguments } => {
                let binding = self.binding(queue, routing_key, arguments)?;
                self.host.bind(self.context, &client, exchange, binding)?;
                self.answer(no_wait, &Method::QueueBindOk {});
            }
            Method::QueueUnbind { queue, exchange, routing_key, arguments } => {
                let binding = self.binding(queue, routing_key, arguments)?;
                self.host.unbind(self.context, &client, exchange, &binding)?;
                self.answer(false, &Method::QueueUnbindOk {});
            }
            Method::QueuePurge { queue, no_wait } => {
                let name = self.named(queue)?.name;
                let message_count = count(self.host.purge(self.context, &name));
                self.answer(no_wait, &Method::QueuePurgeOk { message_count });
            }
            Method::QueueDelete { queue, if_unused, if_empty, no_wait } => {
                let name = match self.named(queue) {
                    Ok(id) => id.name,
                    Err(fault) if fault.code == ReplyCode::NotFound => queue.into(),
                    Err(fault) => return Err(fault),
                };
                let deleted =
                    self.host.delete_queue(self.context, &client, &name, if_unused, if_empty)?;
                let message_count = count(deleted);
                self.answer(no_wait, &Method::QueueDeleteOk { message_count });
            }
            _ => return Err(no_place()),
        }
        Ok(())
    }

    fn declare(&mut self, method: &Method<'_>, no_wait: bool) -> Result<(), Fault> {
        let &Method::QueueDeclare {
            queue: name,
            passive,
            durable,
            exclusive,
            auto_delete,
            arguments,
            ..
        } = method
        else {
            return Err(no_place());
        };
        let client = self.connection.client.clone();
        if !passive && !name.is_empty() {
            let topic = format!("amqp091/queue/{name}");
            allowed(self.context, &client, Action::Subscribe, &topic)?;
        }
        let wish = DeclareQueue { name, passive, durable, exclusive, auto_delete, arguments };
        let declared = self.host.declare_queue(self.context, &client, &wish)?;
        if let Some(channel) = self.connection.channels.get_mut(&self.channel) {
            channel.last_queue = Some(declared.name.clone());
        }
        let answer = Method::QueueDeclareOk {
            queue: &declared.name,
            message_count: count(declared.messages),
            consumer_count: count(declared.consumers),
        };
        self.answer(no_wait, &answer);
        Ok(())
    }

    fn basic(&mut self, method: &Method<'_>) -> Result<(), Fault> {
        match *method {
            Method::BasicQos { prefetch_size, prefetch_count, global } => {
                self.qos(prefetch_size, prefetch_count, global)
            }
            Method::BasicConsume { .. } => self.consume(method),
            Method::BasicCancel { consumer_tag, no_wait } => {
                let (context, host) = (&mut *self.context, &mut *self.host);
                self.connection.cancel_by_client(context, host, self.channel, consumer_tag);
                self.answer(no_wait, &Method::BasicCancelOk { consumer_tag });
                Ok(())
            }
            // What we have cancelled, and did not ask an answer of.
            Method::BasicCancelOk { .. } => Ok(()),
            Method::BasicGet { queue, no_ack } => {
                let id = self.named(queue)?;
                self.may_read(&id)?;
                let (context, host) = (&mut *self.context, &mut *self.host);
                self.connection.get(context, host, self.channel, &id, no_ack)
            }
            Method::BasicAck { delivery_tag: tag, multiple } => {
                self.settle(Settlement { tag, multiple, verdict: Verdict::Ack })
            }
            Method::BasicReject { delivery_tag: tag, requeue } => {
                self.settle(Settlement { tag, multiple: false, verdict: verdict(requeue) })
            }
            Method::BasicNack { delivery_tag: tag, multiple, requeue } => {
                self.settle(Settlement { tag, multiple, verdict: verdict(requeue) })
            }
            Method::BasicRecover { requeue } | Method::BasicRecoverAsync { requeue } => {
                self.recover(method, requeue)
            }
            _ => Err(no_place()),
        }
    }

    fn qos(&mut self, size: u32, count: u16, global: bool) -> Result<(), Fault> {
        if size > 0 {
            return Err(Fault::new(ReplyCode::NotImplemented, "prefetch_size is not done here"));
        }
        let Some(channel) = self.connection.channels.get_mut(&self.channel) else {
            return Ok(());
        };
        // As RabbitMQ has it: of each consumer that comes, or of the whole channel.
        match global {
            true => channel.prefetch_all = count,
            false => channel.prefetch_each = count,
        }
        for (_, consumer) in channel.consumers() {
            self.host.set_ready(&consumer.queue);
        }
        self.answer(false, &Method::BasicQosOk {});
        Ok(())
    }

    fn may_read(&self, id: &QueueId) -> Result<(), Fault> {
        let topic = format!("amqp091/queue/{}", id.name);
        // Whoever may have declared it may read it: names that the server gave are in no rule.
        match self.host.queue(&id.name).is_some_and(|queue| queue.exclusive.is_some()) {
            true => Ok(()),
            false => allowed(self.context, &self.connection.client, Action::Subscribe, &topic),
        }
    }

    fn consume(&mut self, method: &Method<'_>) -> Result<(), Fault> {
        let &Method::BasicConsume {
            queue, consumer_tag, no_local, no_ack, exclusive, no_wait, ..
        } = method
        else {
            return Err(no_place());
        };
        if no_local {
            return Err(Fault::new(ReplyCode::NotImplemented, "no_local is not done here"));
        }
        let id = self.named(queue)?;
        self.may_read(&id)?;
        let Some(channel) = self.connection.channels.get_mut(&self.channel) else {
            return Ok(());
        };
        if channel.consumer(consumer_tag).is_some() {
            let text = format!("attempt to reuse consumer tag '{consumer_tag}'");
            return Err(Fault::new(ReplyCode::NotAllowed, text));
        }
        let Some(consumed) = self.host.queue_mut(&id) else { return Ok(()) };
        if consumed.is_alone || (exclusive && !consumed.consumers.is_empty()) {
            return Err(Fault::access(format_args!("queue '{}' in exclusive use", id.name)));
        }
        let tag = match consumer_tag {
            "" => channel.make_tag(),
            tag => tag.into(),
        };
        consumed.is_alone = exclusive;
        consumed.consumers.push_back(ConsumerId {
            connection: self.connection.client.connection,
            channel: self.channel,
            tag: tag.clone(),
        });
        channel.add_consumer(tag.clone(), id.clone(), no_ack);
        self.host.refresh(&id);
        self.host.set_ready(&id);
        self.answer(no_wait, &Method::BasicConsumeOk { consumer_tag: &tag });
        Ok(())
    }

    fn settle(&mut self, settlement: Settlement) -> Result<(), Fault> {
        if let Some(channel) = self.connection.channels.get_mut(&self.channel)
            && matches!(channel.mode, Mode::Transaction(_))
        {
            return channel.add_step(Step::Settle(settlement));
        }
        self.connection.settle(self.context, self.host, self.channel, settlement)
    }

    /// AMQP 0.9.1 §1.8.3.16: all that is not acknowledged goes back to its queue. To give it to the
    /// same consumer again is not done here, as with RabbitMQ.
    fn recover(&mut self, method: &Method<'_>, requeue: bool) -> Result<(), Fault> {
        if !requeue {
            return Err(Fault::new(ReplyCode::NotImplemented, "requeue=false"));
        }
        let all = Settlement { tag: 0, multiple: true, verdict: Verdict::Requeue };
        self.connection.settle(self.context, self.host, self.channel, all)?;
        let is_async = matches!(method, Method::BasicRecoverAsync { .. });
        self.answer(is_async, &Method::BasicRecoverOk {});
        Ok(())
    }
}

fn no_place() -> Fault {
    Fault::new(ReplyCode::CommandInvalid, "this method has no place here")
}

fn verdict(requeue: bool) -> Verdict {
    match requeue {
        true => Verdict::Requeue,
        false => Verdict::Reject,
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
