//! One client: its channels, and what its methods do (AMQP 0.9.1 §1.5 to §1.9).

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proto::amqp091::machine::{Publish, Server};
use proto::amqp091::{Method, ReplyCode};

use super::channel::{Channel, Confirms, Mode, Settlement, Step, Unacked, Verdict};
use super::fault::Fault;
use super::host::{Client, Host, QueueId};
use super::queue::{ConsumerId, Entry};
use crate::event::Drop;
use crate::ids::{ConnectionId, Protocol, SessionId, Ticket};
use crate::outputs::Context;
use crate::publication::Publication;

/// See the module.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) server: Server,
    pub(super) client: Client,
    pub(super) session: Option<SessionId>,
    pub(super) certified: Option<Arc<str>>,
    pub(super) channels: BTreeMap<u16, Channel>,
}

impl Connection {
    pub(super) fn new(id: ConnectionId, server: Server, certified: Option<Arc<str>>) -> Self {
        let client = Client { connection: id, user: None, name: "".into() };
        Self { server, client, session: None, certified, channels: BTreeMap::new() }
    }

    /// Hands out what is to be sent.
    pub(super) fn flush(&mut self, context: &mut Context<'_>) {
        let bytes = self.server.take_transmit();
        if !bytes.is_empty() {
            context.outputs.append(self.client.connection, &bytes);
        }
    }

    /// Refuses a method.
    pub(super) fn refuse(&mut self, channel: u16, fault: &Fault, ids: (u16, u16)) {
        self.server.close_channel(channel, fault.code, &fault.text, ids);
    }

    /// A channel is closed: its consumers go, and what they have goes back.
    pub(super) fn close_channel(
        &mut self,
        context: &mut Context<'_>,
        host: &mut Host,
        number: u16,
    ) {
        let Some(mut channel) = self.channels.remove(&number) else { return };
        let tags: Vec<Arc<str>> = channel.consumers().map(|(tag, _)| tag.clone()).collect();
        for tag in tags {
            self.cancel(context, host, number, &mut channel, &tag);
        }
        let all = Settlement { tag: 0, multiple: true, verdict: Verdict::Requeue };
        for unacked in channel.settle(&all).unwrap_or_default() {
            host.give_back(&unacked.queue, unacked.entry);
        }
    }

    /// All of it goes.
    pub(super) fn close(&mut self, context: &mut Context<'_>, host: &mut Host) {
        while let Some(number) = self.channels.keys().next().copied() {
            self.close_channel(context, host, number);
        }
        host.remove_exclusive(context, self.client.connection);
    }

    /// A consumer goes; whether there was one.
    fn cancel(
        &mut self,
        context: &mut Context<'_>,
        host: &mut Host,
        number: u16,
        channel: &mut Channel,
        tag: &str,
    ) -> bool {
        let Some(consumer) = channel.remove_consumer(tag) else { return false };
        let id =
            ConsumerId { connection: self.client.connection, channel: number, tag: tag.into() };
        let Some(queue) = host.queue_mut(&consumer.queue) else { return true };
        let was = queue.remove_consumer(context.now, &id);
        if was && queue.auto_delete && queue.consumers.is_empty() {
            host.remove_queue(context, &consumer.queue.name);
        } else {
            host.refresh(&consumer.queue);
            host.set_ready(&consumer.queue);
        }
        true
    }

    /// A message came.
    pub(super) fn published(
        &mut self,
        context: &mut Context<'_>,
        host: &mut Host,
        publish: Publish,
    ) {
        let number = publish.channel;
        let Some(channel) = self.channels.get_mut(&number) else { return };
        let result = match &mut channel.mode {
            Mode::Transaction(_) => channel.add_step(Step::Publish(publish)),
            _ => self.publish(context, host, &publish),
        };
        if let Err(fault) = result {
            self.refuse(number, &fault, (60, 40));
        }
    }

    /// Takes a message, returns it where it goes to nobody, and confirms it.
    fn publish(
        &mut self,
        context: &mut Context<'_>,
        host: &mut Host,
        publish: &Publish,
    ) -> Result<(), Fault> {
        let Some(channel) = self.channels.get_mut(&publish.channel) else { return Ok(()) };
        let confirm = match &mut channel.mode {
            Mode::Confirm(confirms) => Some(confirms.next()),
            _ => None,
        };
        let published = host.publish(context, &self.client, publish, confirm.is_some())?;
        if publish.is_mandatory && !published.is_routed {
            self.give_back(context, publish);
        }
        let Some(number) = confirm else { return Ok(()) };
        if published.is_refused {
            let nack = Method::BasicNack { delivery_tag: number, multiple: false, requeue: false };
            self.server.send(publish.channel, &nack);
            return Ok(());
        }
        if let Some(Channel { mode: Mode::Confirm(confirms), .. }) =
            self.channels.get_mut(&publish.channel)
        {
            confirms.wait(number, published.ticket);
        }
        Ok(())
    }

    /// AMQP 0.9.1 §1.8.3.8: a mandatory message without a queue comes back.
    fn give_back(&mut self, context: &mut Context<'_>, publish: &Publish) {
        let (reply_code, name) = ReplyCode::NoRoute.parts();
        let method = Method::BasicReturn {
            reply_code,
            reply_text: name,
            exchange: &publish.exchange,
            routing_key: &publish.routing_key,
        };
        let (properties, body) = (&publish.properties, &publish.body);
        // It came in frames of this connection, so that it fits them.
        if self.server.send_content(publish.channel, &method, properties, body).is_err() {
            let topic = publish.routing_key.as_str();
            let publication = Publication::new(Protocol::Amqp091, topic, body.clone());
            context.core.tell_dropped(&publication, self.session, Drop::TooLarge);
        }
    }

    /// Confirms what is written; whether something still waits.
    pub(super) fn confirm(&mut self, committed: Ticket) -> bool {
        let mut is_waiting = false;
        for (number, channel) in &mut self.channels {
            let Mode::Confirm(confirms) = &mut channel.mode else { continue };
            if let Some((delivery_tag, multiple)) = confirms.take(committed) {
                self.server.send(*number, &Method::BasicAck { delivery_tag, multiple });
            }
            is_waiting |= confirms.is_waiting();
        }
        is_waiting
    }

    /// The client has said what becomes of messages.
    pub(super) fn settle(
        &mut self,
        context: &mut Context<'_>,
        host: &mut Host,
        number: u16,
        settlement: Settlement,
    ) -> Result<(), Fault> {
        let Some(channel) = self.channels.get_mut(&number) else { return Ok(()) };
        let settled = channel.settle(&settlement)?;
        for Unacked { queue, entry, .. } in settled {
            match settlement.verdict {
                Verdict::Ack => host.finish(context, &queue, &entry),
                Verdict::Reject => host.reject(&queue, entry),
                Verdict::Requeue => host.give_back(&queue, entry),
            }
        }
        host.bury(context);
        // There is room for more now.
        for (_, consumer) in channel.consumers() {
            host.set_ready(&consumer.queue);
        }
        Ok(())
    }

    /// Gives a message to a consumer; whether it has it.
    pub(super) fn deliver(
        &mut self,
        context: &mut Context<'_>,
        host: &mut Host,
        consumer: &ConsumerId,
        queue: &QueueId,
        entry: Entry,
    ) {
        let Some(channel) = self.channels.get_mut(&consumer.channel) else {
            return host.give_back(queue, entry);
        };
        let no_ack = channel.consumer(&consumer.tag).is_none_or(|consumer| consumer.no_ack);
        let delivery_tag = channel.next_tag();
        let message = &entry.message;
        let method = Method::BasicDeliver {
            consumer_tag: &consumer.tag,
            delivery_tag,
            redelivered: entry.redelivered,
            exchange: &message.exchange,
            routing_key: &message.key,
        };
        let (properties, body) = (&message.properties, &message.body);
        let sent = self.server.send_content(consumer.channel, &method, properties, body);
        if sent.is_err() {
            return self.too_large(context, host, queue, entry);
        }
        if no_ack {
            host.finish(context, queue, &entry);
        } else {
            channel.hold(delivery_tag, queue.clone(), Some(consumer.tag.clone()), entry);
        }
        self.flush(context);
    }

    /// Its properties do not fit a frame of this client.
    fn too_large(
        &mut self,
        context: &mut Context<'_>,
        host: &mut Host,
        queue: &QueueId,
        entry: Entry,
    ) {
        let message = &entry.message;
        let publication = Publication::new(Protocol::Amqp091, &*message.key, message.body.clone());
        context.core.tell_dropped(&publication, self.session, Drop::TooLarge);
        host.reject(queue, entry);
    }

    /// basic.get (AMQP 0.9.1 §1.8.3.10).
    pub(super) fn get(
        &mut self,
        context: &mut Context<'_>,
        host: &mut Host,
        number: u16,
        queue: &QueueId,
        no_ack: bool,
    ) -> Result<(), Fault> {
        let Some(channel) = self.channels.get_mut(&number) else { return Ok(()) };
        if !no_ack && !channel.has_room_to_get() {
            return Err(Fault::new(ReplyCode::ResourceError, "too much is not acknowledged"));
        }
        let entry = host.take(context, queue);
        host.bury(context);
        if let Some(used) = host.queue_mut(queue) {
            used.used = context.now;
        }
        host.refresh(queue);
        let Some(entry) = entry else {
            self.server.send(number, &Method::BasicGetEmpty {});
            return Ok(());
        };
        let left = host.queue_mut(queue).map_or(0, |queue| queue.len());
        let delivery_tag = channel.next_tag();
        let message = &entry.message;
        let method = Method::BasicGetOk {
            delivery_tag,
            redelivered: entry.redelivered,
            exchange: &message.exchange,
            routing_key: &message.key,
            message_count: u32::try_from(left).unwrap_or(u32::MAX),
        };
        let (properties, body) = (&message.properties, &message.body);
        if self.server.send_content(number, &method, properties, body).is_err() {
            self.server.send(number, &Method::BasicGetEmpty {});
            self.too_large(context, host, queue, entry);
        } else if no_ack {
            host.finish(context, queue, &entry);
        } else {
            channel.hold(delivery_tag, queue.clone(), None, entry);
        }
        Ok(())
    }

    /// A consumer's queue has gone.
    pub(super) fn cancelled(&mut self, consumer: &ConsumerId) {
        let Some(channel) = self.channels.get_mut(&consumer.channel) else { return };
        if channel.remove_consumer(&consumer.tag).is_some() && self.server.peer().has_cancel_notify
        {
            let cancel = Method::BasicCancel { consumer_tag: &consumer.tag, no_wait: true };
            self.server.send(consumer.channel, &cancel);
        }
    }

    pub(super) fn cancel_by_client(
        &mut self,
        context: &mut Context<'_>,
        host: &mut Host,
        number: u16,
        tag: &str,
    ) {
        let Some(mut channel) = self.channels.remove(&number) else { return };
        self.cancel(context, host, number, &mut channel, tag);
        self.channels.insert(number, channel);
    }

    /// Commits a transaction: all that it has, in order.
    pub(super) fn commit(
        &mut self,
        context: &mut Context<'_>,
        host: &mut Host,
        number: u16,
    ) -> Result<(), Fault> {
        let steps = self.channels.get_mut(&number).and_then(Channel::take_steps);
        let steps = steps.ok_or_else(|| Fault::precondition("channel is not transactional"))?;
        for step in steps {
            match step {
                Step::Publish(publish) => self.publish(context, host, &publish)?,
                Step::Settle(settlement) => self.settle(context, host, number, settlement)?,
            }
        }
        Ok(())
    }

    /// Sets how a channel publishes; a channel has one way only.
    pub(super) fn set_mode(&mut self, number: u16, is_confirm: bool) -> Result<(), Fault> {
        let Some(channel) = self.channels.get_mut(&number) else { return Ok(()) };
        match (&channel.mode, is_confirm) {
            (Mode::Plain, true) => channel.mode = Mode::Confirm(Confirms::default()),
            (Mode::Plain, false) => channel.mode = Mode::Transaction(Vec::new()),
            (Mode::Confirm(_), true) | (Mode::Transaction(_), false) => {}
            (Mode::Confirm(_), false) => {
                return Err(Fault::precondition("cannot switch from confirm to tx mode"));
            }
            (Mode::Transaction(_), true) => {
                return Err(Fault::precondition("cannot switch from tx to confirm mode"));
            }
        }
        Ok(())
    }

    /// The payload of a method whose channel is open, else nothing.
    pub(super) fn is_open(&self, number: u16) -> bool {
        self.channels.contains_key(&number) && self.server.is_open(number)
    }
}

/// Bytes of a method frame, which has been read before.
pub(super) fn method_of(payload: &Bytes) -> Option<Method<'_>> {
    Method::decode(payload).ok()
}
