//! A queue that is bound by patterns, and what comes of it.

use std::pin::Pin;

use broker::amqp091_pattern;
use bytes::Bytes;
use proto::amqp091::client::{Message as Came, Output};
use proto::amqp091::{Method, Table, TableBuf, Value};

use super::message::{self, RETAIN};
use super::{EXCHANGE, Next, Talk, refusal};
use crate::client::{Event, Message, Settings, Take, Taken, Target, Wish};
use crate::error::Error;

/// Messages on the way at once.
const PREFETCH: u16 = 100;
/// The one consumer.
const CONSUMER: &str = "longwire";
/// There is no such queue.
const NOT_FOUND: u16 = 404;

/// See [`crate::client::subscribe`].
pub(in crate::client) async fn subscribe(
    target: &Target,
    settings: &Settings,
    wish: &Wish,
    take: &mut Take<'_>,
    mut end: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), Error> {
    let mut subscriber = Subscriber {
        talk: Talk::new(target, settings)?,
        wish,
        exchange: settings.exchange.as_deref().unwrap_or(EXCHANGE),
        patterns: patterns(wish)?,
        queue: String::new(),
        step: Step::first(wish),
    };
    tokio::select! {
        connected = subscriber.talk.connect() => connected?,
        () = end.as_mut() => return Ok(()),
    }
    loop {
        let next = tokio::select! {
            next = subscriber.talk.next() => next,
            () = end.as_mut() => break,
        };
        let closed = match next {
            Next::Written => continue,
            Next::Said(Output::Closed(closed)) => Some(closed),
            Next::Lost => None,
            Next::Said(output) => {
                if subscriber.heard(output, take)? == Taken::More {
                    continue;
                }
                break;
            }
        };
        tokio::select! {
            lost = subscriber.talk.lost(closed.as_ref()) => lost?,
            () = end.as_mut() => return Ok(()),
        }
        subscriber.step = Step::first(wish);
    }
    // What it got is there, whether the broker agrees to the end or not.
    let _ = subscriber.talk.leave().await;
    Ok(())
}

fn patterns(wish: &Wish) -> Result<Vec<String>, Error> {
    let patterns = wish.filters.iter().map(|filter| {
        proto::mqtt::topic::check_filter(filter.as_bytes())
            .map_err(|error| Error::Caller(format!("the filter {filter}: {error}")))?;
        amqp091_pattern(filter).ok_or_else(|| {
            Error::Caller(format!("the filter {filter}: its pattern has over 255 bytes"))
        })
    });
    patterns.collect()
}

/// What is asked, and answered next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Whether the queue with that name is there.
    Find,
    /// That there be one.
    Make,
    /// That a pattern be bound.
    Bind(usize),
    /// That messages come.
    Consume,
    /// They come.
    Run,
}

impl Step {
    fn first(wish: &Wish) -> Self {
        if wish.queue.is_some() { Self::Find } else { Self::Make }
    }
}

struct Subscriber<'a> {
    talk: Talk<'a>,
    wish: &'a Wish,
    exchange: &'a str,
    patterns: Vec<String>,
    /// What the broker calls the queue.
    queue: String,
    step: Step,
}

impl Subscriber<'_> {
    /// Something came.
    fn heard(&mut self, output: Output, take: &mut Take<'_>) -> Result<Taken, Error> {
        match output {
            Output::Opened => {
                self.ask()?;
                Ok(Taken::More)
            }
            Output::ChannelClosed(NOT_FOUND, _) if self.step == Step::Find => {
                self.step = Step::Make;
                self.talk.client.reopen();
                Ok(Taken::More)
            }
            Output::ChannelClosed(code, text) => Err(self.refused(code, &text)),
            Output::Method(payload) => self.answered(&payload, take),
            Output::Message(came) => self.came(&came, take),
            Output::Transmit(_) | Output::WakeAt(_) | Output::Closed(_) => Ok(Taken::More),
        }
    }

    fn refused(&self, code: u16, text: &str) -> Error {
        let filter = match self.step {
            Step::Bind(at) => self.wish.filters.get(at),
            _ => self.wish.queue.as_ref(),
        };
        let what = filter.map_or_else(String::new, |filter| format!("{filter}: "));
        Error::System(format!("{what}{}", refusal(code, text)))
    }

    /// Asks for the step.
    fn ask(&mut self) -> Result<(), Error> {
        let mut retained = TableBuf::default();
        if !self.wish.no_retained {
            // Its name is short.
            let _ = retained.put(RETAIN, &Value::Bool(true));
        }
        let name = self.wish.queue.as_deref();
        let is_own = name.is_none();
        let method = match self.step {
            Step::Find | Step::Make => Method::QueueDeclare {
                queue: name.unwrap_or(""),
                passive: self.step == Step::Find,
                durable: !is_own,
                exclusive: is_own,
                auto_delete: is_own,
                no_wait: false,
                arguments: Table::default(),
            },
            Step::Bind(at) => Method::QueueBind {
                queue: &self.queue,
                exchange: self.exchange,
                routing_key: self.patterns.get(at).map_or("", String::as_str),
                no_wait: false,
                arguments: retained.as_table(),
            },
            Step::Consume => {
                let (prefetch_size, prefetch_count, global) = (0, PREFETCH, false);
                let qos = Method::BasicQos { prefetch_size, prefetch_count, global };
                self.talk.client.send(&qos).map_err(|error| Error::Caller(error.to_string()))?;
                Method::BasicConsume {
                    queue: &self.queue,
                    consumer_tag: CONSUMER,
                    no_local: false,
                    no_ack: self.wish.qos == 0,
                    exclusive: false,
                    no_wait: false,
                    arguments: Table::default(),
                }
            }
            Step::Run => return Ok(()),
        };
        self.talk.client.send(&method).map_err(|error| Error::Caller(error.to_string()))
    }

    /// A method came.
    fn answered(&mut self, payload: &Bytes, take: &mut Take<'_>) -> Result<Taken, Error> {
        let method = Method::decode(payload).map_err(|error| Error::System(error.to_string()))?;
        let next = |at: usize| {
            if at < self.patterns.len() { Step::Bind(at) } else { Step::Consume }
        };
        self.step = match (self.step, method) {
            (Step::Find | Step::Make, Method::QueueDeclareOk { queue, .. }) => {
                queue.clone_into(&mut self.queue);
                next(0)
            }
            (Step::Bind(at), Method::QueueBindOk {}) => next(at + 1),
            (Step::Consume, Method::BasicConsumeOk { .. }) => {
                self.step = Step::Run;
                return Ok(take(Event::Subscribed(Vec::new())));
            }
            (_, Method::BasicCancel { .. }) => {
                let text =
                    format!("the queue {} is gone: the broker gives nothing more", self.queue);
                return Err(Error::System(text));
            }
            (step, _) => {
                self.step = step;
                return Ok(Taken::More);
            }
        };
        self.ask()?;
        Ok(Taken::More)
    }

    /// A message came: it is acknowledged when it was handed on. One that cannot be read does not
    /// come again.
    fn came(&mut self, came: &Came, take: &mut Take<'_>) -> Result<Taken, Error> {
        let Ok(Method::BasicDeliver { delivery_tag, routing_key, .. }) =
            Method::decode(&came.method)
        else {
            return Ok(Taken::More);
        };
        let (answer, taken) = match message::decode(routing_key, &came.properties, &came.body) {
            Ok(message) => {
                let qos = message.qos.min(self.wish.qos.cast_signed());
                let ack = Method::BasicAck { delivery_tag, multiple: false };
                (ack, take(Event::Message(Message { qos, ..message })))
            }
            Err(why) => {
                let reject = Method::BasicReject { delivery_tag, requeue: false };
                (reject, take(Event::Unreadable(why)))
            }
        };
        if self.wish.qos > 0 && taken != Taken::Failed {
            self.talk.client.send(&answer).map_err(|error| Error::System(error.to_string()))?;
        }
        Ok(taken)
    }
}
