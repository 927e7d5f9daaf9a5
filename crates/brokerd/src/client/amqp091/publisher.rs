//! Messages to an exchange, with confirms where somebody wants to know.

use std::collections::{BTreeMap, VecDeque};

use broker::amqp091_key;
use bytes::Bytes;
use proto::amqp091::Method;
use proto::amqp091::client::{Closed, Output};
use tokio::sync::mpsc;

use super::{EXCHANGE, Next, Talk, message};
use crate::client::{Message, Published, Settings, Target};
use crate::error::Error;

/// Messages that a publisher has open at once; further ones wait with who makes them.
const MAX_OPEN: usize = 1000;
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
        if is_over && publisher.published.ended() == publisher.last_key {
            publisher.talk.leave().await?;
            return Ok(publisher.published);
        }
        let has_room = !is_over
            && publisher.open.len() < MAX_OPEN
            && publisher.talk.line.leaves.len() < MAX_UNWRITTEN_BYTES;
        tokio::select! {
            message = messages.recv(), if has_room => match message {
                Some(message) => publisher.take(message),
                None => is_over = true,
            },
            next = publisher.talk.next() => publisher.heard(next).await?,
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
    last_key: u64,
    // bound: MAX_OPEN.
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
                self.open.insert(self.last_key, open);
                self.waiting.push_back(self.last_key);
            }
            Err(why) => self.published.fail(why),
        }
    }

    /// Sends what waits, while the channel is open and there is room.
    fn pump(&mut self) {
        // What comes back does not say which message it was: with one under way it is known.
        let is_single = self.exchange.is_some();
        while self.talk.client.is_open()
            && self.talk.line.leaves.len() < MAX_UNWRITTEN_BYTES
            && self.talk.client.held_bytes() < MAX_UNWRITTEN_BYTES
            && (!is_single || self.tags.is_empty())
        {
            let Some(key) = self.waiting.pop_front() else { return };
            if let Err(why) = self.send(key) {
                self.open.remove(&key);
                self.published.fail(why);
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
            self.open.remove(&key);
            self.published.accepted += 1;
        }
        Ok(())
    }

    async fn heard(&mut self, next: Next) -> Result<(), Error> {
        match next {
            Next::Said(Output::Method(payload)) => match Method::decode(&payload) {
                Ok(Method::BasicAck { delivery_tag, multiple }) => {
                    for key in self.ended(delivery_tag, multiple) {
                        // One that came back has had its end.
                        if self.open.remove(&key).is_some() {
                            self.published.accepted += 1;
                        }
                    }
                }
                Ok(Method::BasicNack { delivery_tag, multiple, .. }) => {
                    for key in self.ended(delivery_tag, multiple) {
                        self.fail(key, "the broker does not take it (nack)");
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
                    keys.into_iter().for_each(|key| self.fail(key, &text));
                }
            }
            Next::Said(Output::ChannelClosed(code, text)) => {
                let text = format!("the broker refuses it: {code} {text}");
                for key in std::mem::take(&mut self.tags).into_values() {
                    self.fail(key, &text);
                }
                self.confirms = false;
                self.talk.client.reopen();
            }
            Next::Said(Output::Closed(closed)) => self.lost(Some(&closed)).await?,
            Next::Broken => self.lost(None).await?,
            Next::Said(_) | Next::Written => {}
        }
        Ok(())
    }

    fn fail(&mut self, key: u64, why: &str) {
        if self.open.remove(&key).is_some() {
            self.published.fail(why.to_owned());
        }
    }

    /// The keys of what has its end by a number of the broker's.
    fn ended(&mut self, tag: u64, multiple: bool) -> Vec<u64> {
        if !multiple {
            return self.tags.remove(&tag).into_iter().collect();
        }
        let left = self.tags.split_off(&tag.saturating_add(1));
        std::mem::replace(&mut self.tags, left).into_values().collect()
    }

    /// The connection is over: what has no end is sent again over another.
    async fn lost(&mut self, closed: Option<&Closed>) -> Result<(), Error> {
        self.talk.lost(closed).await?;
        self.tags.clear();
        self.confirms = false;
        self.waiting = self.open.keys().copied().collect();
        Ok(())
    }
}
