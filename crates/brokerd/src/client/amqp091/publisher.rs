//! Messages to an exchange, with confirms where somebody wants to know.

use std::collections::{BTreeMap, VecDeque};

use broker::amqp091_key;
use bytes::Bytes;
use proto::amqp091::Method;
use proto::amqp091::client::{Closed, Output};
use tokio::sync::mpsc;

use super::{EXCHANGE, Next, Talk, message, refusal};
use crate::client::pending::Pending;
use crate::client::{Message, Published, Settings, Target, UNKNOWN_END};
use crate::error::Error;

/// Bytes that wait to be written, beyond which no further message is taken.
const MAX_UNWRITTEN_BYTES: usize = 64 << 10;

/// See [`crate::client::publish`].
pub(in crate::client) async fn publish(
    target: &Target,
    settings: &Settings,
    mut messages: mpsc::Receiver<Message>,
) -> Result<Published, Error> {
    let mut publisher = Publisher {
        talk: Talk::new(target, settings)?,
        exchange: settings.exchange.clone(),
        published: Published::default(),
        pending: Pending::new(settings.retry),
        last_key: 0,
        open: BTreeMap::new(),
        waiting: VecDeque::new(),
        tags: BTreeMap::new(),
        last_tag: 0,
        confirms: false,
    };
    let mut is_over = false;
    publisher.talk.connect().await?;
    loop {
        publisher.pump();
        let is_written = publisher.talk.unwritten_bytes() == 0;
        // What leaves last can be refused, too, as long as the connection is there.
        if is_over && publisher.pending.is_empty() && is_written {
            if let Some(why) = publisher.talk.leave().await? {
                publisher.published.fail_late(why);
            }
            return Ok(publisher.published);
        }
        let has_room = !is_over
            && publisher.pending.has_room()
            && publisher.talk.unwritten_bytes() < MAX_UNWRITTEN_BYTES;
        let late_at = publisher.pending.late_at(&publisher.talk.line);
        let late = publisher.talk.line.sleep_until(late_at.unwrap_or_default());
        tokio::select! {
            message = messages.recv(), if has_room => match message {
                Some(message) => publisher.take(message),
                None => is_over = true,
            },
            next = publisher.talk.next() => publisher.heard(next).await?,
            () = late, if late_at.is_some() => {
                publisher.pending.late(&publisher.talk.line, &target.address)?;
                publisher.lost(Some(&Closed::Silent)).await?;
            }
        }
    }
}

/// A message without its end.
struct Open {
    key: String,
    properties: Bytes,
    payload: Bytes,
    is_confirmed: bool,
}

struct Publisher<'a> {
    talk: Talk<'a>,
    /// One that was named: what it has no queue for comes back.
    exchange: Option<String>,
    published: Published,
    pending: Pending,
    last_key: u64,
    // bound: that of `pending`.
    open: BTreeMap<u64, Open>,
    /// Those of the above that have not left.
    waiting: VecDeque<u64>,
    /// Those that have, by the numbers that the broker knows them by.
    tags: BTreeMap<u64, u64>,
    last_tag: u64,
    /// The broker confirms what comes over the channel.
    confirms: bool,
}

impl Publisher<'_> {
    /// A message is to go.
    fn take(&mut self, message: Message) {
        self.last_key += 1;
        let key = amqp091_key(&message.topic).ok_or_else(|| {
            format!("the topic {}: its routing key has over 255 bytes", message.topic)
        });
        let made = key.and_then(|key| Ok((key, message::encode(&message)?)));
        match made {
            Ok((key, properties)) => {
                let (payload, is_confirmed) = (message.payload, message.qos > 0);
                let open = Open { key, properties, payload, is_confirmed };
                self.pending.begin(self.talk.line.now(), self.last_key, open.payload.len());
                self.open.insert(self.last_key, open);
                self.waiting.push_back(self.last_key);
            }
            Err(why) => self.published.fail(why),
        }
    }

    /// Sends what waits, while the channel is open and there is room.
    fn pump(&mut self) {
        while let Some(key) = self.pending.left(&self.talk.line) {
            self.open.remove(&key);
            self.published.accepted += 1;
        }
        // What comes back does not say which message it was: with one under way it is known.
        let is_single = self.exchange.is_some();
        while self.talk.client.is_open()
            && self.talk.unwritten_bytes() < MAX_UNWRITTEN_BYTES
            && (!is_single || self.tags.is_empty())
        {
            let Some(key) = self.waiting.pop_front() else { return };
            if let Err(why) = self.send(key) {
                self.end(key, Err(why));
            }
        }
    }

    fn send(&mut self, key: u64) -> Result<(), String> {
        let Some(open) = self.open.get(&key) else { return Ok(()) };
        let words = |error: proto::Error| format!("it cannot be sent: {error}");
        let client = &mut self.talk.client;
        if open.is_confirmed && !self.confirms {
            client.send(&Method::ConfirmSelect { no_wait: true }).map_err(words)?;
            (self.confirms, self.last_tag) = (true, 0);
        }
        let publish = Method::BasicPublish {
            exchange: self.exchange.as_deref().unwrap_or(EXCHANGE),
            routing_key: &open.key,
            mandatory: self.exchange.is_some() && self.confirms,
            immediate: false,
        };
        client.send_content(&publish, &open.properties, &open.payload).map_err(words)?;
        if self.confirms {
            self.last_tag += 1;
            self.tags.insert(self.last_tag, key);
        } else {
            let bytes = self.talk.client.unsent_bytes() as u64;
            self.pending.leaves_with(self.talk.line.appended() + bytes, key);
        }
        Ok(())
    }

    async fn heard(&mut self, next: Next) -> Result<(), Error> {
        match next {
            Next::Said(Output::Method(payload)) => match Method::decode(&payload) {
                Ok(Method::BasicAck { delivery_tag, multiple }) => {
                    for key in self.ended(delivery_tag, multiple) {
                        // One that came back has had its end.
                        self.end(key, Ok(()));
                    }
                }
                Ok(Method::BasicNack { delivery_tag, multiple, .. }) => {
                    for key in self.ended(delivery_tag, multiple) {
                        self.end(key, Err("the broker does not take it (nack)".to_owned()));
                    }
                }
                _ => {}
            },
            Next::Said(Output::Message(message)) => {
                if let Ok(Method::BasicReturn { reply_code, reply_text, .. }) =
                    Method::decode(&message.method)
                {
                    let text = format!("the broker gives it back: {reply_code} {reply_text}");
                    let keys: Vec<u64> = self.tags.values().copied().collect();
                    keys.into_iter().for_each(|key| self.end(key, Err(text.clone())));
                }
            }
            Next::Said(Output::ChannelClosed(code, text)) => {
                let text = refusal(code, &text);
                let mut keys = self.pending.stayed();
                keys.extend(std::mem::take(&mut self.tags).into_values());
                if keys.is_empty() {
                    // It was for something that nobody acknowledges, and has left.
                    self.published.fail_late(text.clone());
                }
                keys.into_iter().for_each(|key| self.end(key, Err(text.clone())));
                self.confirms = false;
                self.talk.client.reopen();
            }
            Next::Said(Output::Closed(closed)) => self.lost(Some(&closed)).await?,
            Next::Lost => self.lost(None).await?,
            Next::Said(_) | Next::Written => {}
        }
        Ok(())
    }

    /// A message has its end, if it had none.
    fn end(&mut self, key: u64, end: Result<(), String>) {
        self.open.remove(&key);
        if self.pending.end(self.talk.line.now(), key) {
            self.published.end(end);
        }
    }

    /// The keys of what has its end by a number of the broker's.
    fn ended(&mut self, tag: u64, multiple: bool) -> Vec<u64> {
        if multiple && tag == 0 {
            // AMQP 0.9.1 §1.8.3.13: all of them.
            return std::mem::take(&mut self.tags).into_values().collect();
        }
        if !multiple {
            return self.tags.remove(&tag).into_iter().collect();
        }
        let left = self.tags.split_off(&tag.saturating_add(1));
        std::mem::replace(&mut self.tags, left).into_values().collect()
    }

    /// The connection is over: what has no end is sent again over another, as far as it may.
    async fn lost(&mut self, closed: Option<&Closed>) -> Result<(), Error> {
        for key in self.pending.stayed() {
            self.end(key, Err(UNKNOWN_END.to_owned()));
        }
        self.talk.lost(closed).await?;
        self.tags.clear();
        self.confirms = false;
        self.waiting = self.open.keys().copied().collect();
        Ok(())
    }
}
