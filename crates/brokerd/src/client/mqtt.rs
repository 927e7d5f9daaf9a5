//! MQTT 3.1, 3.1.1 and 5, over TCP, TLS or WebSocket.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use proto::mqtt::client::{self, Client, Closed, Failure, Input, Output};
use proto::mqtt::{
    ConnAck, Connect, Disconnect, Filter, Id, Options, Properties, Publish, Qos, Reason,
    RetainHandling, Text, Value, Version, Will,
};
use tokio::sync::mpsc;

use super::again::Again;
use super::line::{Line, Machine, Next, Step};
use super::pending::Pending;
use super::{Event, Message, Published, Settings, Take, Taken, Target, UNKNOWN_END, Wish};
use crate::error::Error;

/// Bytes that wait to be written, beyond which no further message is taken.
const MAX_UNWRITTEN_BYTES: usize = 64 << 10;
/// Messages on the way to this client at once, and topics that come as a number.
const RECEIVE_MAXIMUM: u32 = 1000;
const ALIASES: u32 = 64;
/// How long a broker may take to let this client in, and to answer a sign of life.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The SUBSCRIBE of a client; there is one.
const SUBSCRIBE: u64 = 0;

/// See [`super::publish`].
pub(super) async fn publish(
    target: &Target,
    settings: &Settings,
    mut messages: mpsc::Receiver<Message>,
) -> Result<Published, Error> {
    let mut talk = Talk::new(target, settings)?;
    let mut published = Published::default();
    let mut pending = Pending::new(settings.retry);
    let (mut key, mut is_over) = (0, false);
    // Those of QoS 0.
    // bound: that of `pending`.
    let mut unacknowledged = BTreeSet::new();
    talk.connect().await?;
    loop {
        while let Some(key) = pending.left(&talk.line) {
            unacknowledged.remove(&key);
            published.accepted += 1;
        }
        if is_over && pending.is_empty() {
            talk.leave().await?;
            return Ok(published);
        }
        let has_room =
            !is_over && pending.has_room() && talk.line.leaves.len() < MAX_UNWRITTEN_BYTES;
        let late_at = pending.late_at(&talk.line);
        let late = talk.line.sleep_until(late_at.unwrap_or_default());
        let now = talk.line.now();
        tokio::select! {
            message = messages.recv(), if has_room => {
                let Some(message) = message else {
                    is_over = true;
                    continue;
                };
                // Each has one end.
                key += 1;
                match publication(message, settings.version) {
                    Ok(publish) => {
                        if publish.qos == Qos::AtMostOnce {
                            unacknowledged.insert(key);
                        }
                        pending.begin(now, key, publish.payload.len());
                        talk.input(Input::Publish { key, publish });
                    }
                    Err(why) => published.fail(why),
                }
            }
            output = talk.next() => {
                let (key, end) = match output {
                    Some(Output::Published { key, reason }) if reason.is_failure() => {
                        (key, Err(format!("the broker refuses it: {}", named(reason))))
                    }
                    Some(Output::Published { key, .. }) if unacknowledged.contains(&key) => {
                        // It is among what is to be written.
                        pending.leaves_with(talk.line.appended(), key);
                        continue;
                    }
                    Some(Output::Published { key, .. }) => (key, Ok(())),
                    Some(Output::Failed { key, failure }) => (key, Err(words(&failure))),
                    Some(Output::Closed(closed)) => {
                        for key in pending.stayed() {
                            unacknowledged.remove(&key);
                            pending.end(now, key);
                            published.fail(UNKNOWN_END.to_owned());
                        }
                        talk.lost(&closed).await?;
                        continue;
                    }
                    _ => continue,
                };
                unacknowledged.remove(&key);
                pending.end(talk.line.now(), key);
                published.end(end);
            }
            () = late, if late_at.is_some() => {
                pending.late(&talk.line, &target.address)?;
                talk.input(Input::Disconnected);
            }
        }
    }
}

/// See [`super::subscribe`].
pub(super) async fn subscribe(
    target: &Target,
    settings: &Settings,
    wish: &Wish,
    take: &mut Take<'_>,
    mut end: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), Error> {
    let filters = filters(wish)?;
    let mut talk = Talk::new(target, settings)?;
    tokio::select! {
        connected = talk.connect() => connected?,
        () = end.as_mut() => return Ok(()),
    }
    loop {
        let output = tokio::select! {
            output = talk.next() => output,
            () = end.as_mut() => break,
        };
        let Some(output) = output else { continue };
        let taken = match output {
            Output::Open(_) => {
                let (filters, properties) = (filters.clone(), Properties::NONE);
                talk.input(Input::Subscribe { key: SUBSCRIBE, filters, properties });
                Taken::More
            }
            Output::Subscribed { ack, .. } => {
                let answers = wish.filters.iter().zip(&ack.reasons);
                let refused = answers.filter(|(_, reason)| reason.is_failure());
                let refused: Vec<_> = refused
                    .map(|(filter, reason)| format!("{filter}: {}", named(*reason)))
                    .collect();
                if refused.len() == wish.filters.len() {
                    let _ = talk.leave().await;
                    let what = refused.join(", ");
                    return Err(Error::System(format!("the broker refuses all: {what}")));
                }
                take(Event::Subscribed(refused))
            }
            Output::Message { receipt, publish } => {
                let is_passed_over = wish.no_retained && publish.retain;
                let taken = match is_passed_over {
                    true => Taken::More,
                    false => take(Event::Message(message(publish))),
                };
                // What was not taken comes again when the session goes on.
                if let Some(receipt) = receipt.filter(|_| taken != Taken::Failed) {
                    talk.input(Input::Accept { receipt, reason: Reason::SUCCESS });
                }
                taken
            }
            Output::Failed { failure: Failure::Unconnected, .. } => Taken::More,
            Output::Failed { failure, .. } => return Err(Error::Caller(words(&failure))),
            Output::Closed(closed) => {
                tokio::select! {
                    lost = talk.lost(&closed) => lost?,
                    () = end.as_mut() => return Ok(()),
                }
                Taken::More
            }
            _ => Taken::More,
        };
        if taken != Taken::More {
            break;
        }
    }
    // What it got is there, whether the broker hears that it leaves or not.
    let _ = talk.leave().await;
    Ok(())
}

impl Machine for Client {
    type Said = Output;

    fn poll(&mut self) -> Option<Step<Output>> {
        Some(match self.poll_output()? {
            Output::Transmit(bytes) => Step::Transmit(bytes),
            Output::WakeAt(at) => Step::WakeAt(at),
            other => Step::Said(other),
        })
    }

    fn received(&mut self, now: Duration, bytes: Bytes) {
        self.handle_input(now, Input::Bytes(bytes));
    }

    fn woken(&mut self, now: Duration) {
        self.handle_input(now, Input::Wake);
    }
}

/// A client, and its connection where there is one.
struct Talk<'a> {
    target: &'a Target,
    client: Client,
    line: Line<'a>,
    again: Again,
    has_been_open: bool,
}

impl<'a> Talk<'a> {
    fn new(target: &'a Target, settings: &Settings) -> Result<Self, Error> {
        let of_client = client::Settings {
            connect: connect(target, settings).map_err(Error::Caller)?,
            max_packet_bytes: client::MAX_PACKET_BYTES,
            max_in_flight: u16::MAX,
            answer_timeout: ANSWER_TIMEOUT,
        };
        let client = Client::new(of_client)
            .map_err(|error| Error::Caller(format!("no CONNECT: {error}")))?;
        Ok(Self {
            target,
            client,
            line: Line::new(target),
            again: Again::new(settings.retry),
            has_been_open: false,
        })
    }

    fn input(&mut self, input: Input) {
        self.client.handle_input(self.line.now(), input);
    }

    /// Connects, once.
    async fn connect(&mut self) -> Result<(), Error> {
        self.line.connect().await?;
        self.input(Input::Connected);
        Ok(())
    }

    /// What the client says next; `None` when what was to be written has left, so that there is
    /// room for more. May be dropped while it waits.
    async fn next(&mut self) -> Option<Output> {
        loop {
            match self.line.next(&mut self.client).await {
                Next::Said(output) => {
                    if matches!(output, Output::Open(_)) {
                        self.has_been_open = true;
                        self.again.connected();
                    }
                    return Some(output);
                }
                Next::Written => return None,
                Next::Lost => self.input(Input::Disconnected),
            }
        }
    }

    /// The connection is over: makes another.
    ///
    /// # Errors
    /// Where there is none to be had, or the broker does not want this client.
    async fn lost(&mut self, closed: &Closed) -> Result<(), Error> {
        self.line.drop();
        let is_final = match closed {
            Closed::Broken | Closed::Unanswered => false,
            // It ends, it moves, or it has enough to do.
            Closed::ByServer(Disconnect { reason, .. }) => !matches!(
                *reason,
                Reason::SERVER_SHUTTING_DOWN | Reason::SERVER_BUSY | Reason::KEEP_ALIVE_TIMEOUT
            ),
            // It ends, or has enough to do.
            Closed::Unwelcome(ConnAck { reason, .. }) => !matches!(
                *reason,
                Reason::SERVER_UNAVAILABLE
                    | Reason::SERVER_BUSY
                    | Reason::SERVER_SHUTTING_DOWN
                    | Reason::QUOTA_EXCEEDED
                    | Reason::CONNECTION_RATE_EXCEEDED
            ),
            _ => true,
        };
        let mut why = Error::System(format!("{}: {}", self.target.address, ended(closed)));
        if is_final || !self.has_been_open {
            return Err(why);
        }
        while let Some(pause) = self.again.pause(self.line.now()) {
            tokio::time::sleep(pause).await;
            match self.connect().await {
                Ok(()) => return Ok(()),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// Says that it leaves, once all is written.
    ///
    /// # Errors
    /// Where bytes could not be written.
    async fn leave(&mut self) -> Result<(), Error> {
        let reason = Reason::NORMAL_DISCONNECTION;
        self.input(Input::Disconnect(Disconnect { reason, properties: Properties::NONE }));
        while let Some(output) = self.client.poll_output() {
            if let Output::Transmit(bytes) = output {
                self.line.write(&bytes);
            }
        }
        self.line.finish().await
    }
}

/// The CONNECT.
fn connect(target: &Target, settings: &Settings) -> Result<Connect, String> {
    let is_5 = settings.version == Version::V5;
    let mut properties = Properties::NONE;
    if is_5 {
        let expiry = u32::try_from(settings.expiry.as_secs()).unwrap_or(u32::MAX);
        for (id, number) in [
            (Id::SESSION_EXPIRY_INTERVAL, expiry),
            (Id::RECEIVE_MAXIMUM, RECEIVE_MAXIMUM),
            (Id::TOPIC_ALIAS_MAXIMUM, ALIASES),
        ] {
            let pushed = properties.push(id, Value::Number(number));
            pushed.map_err(|error| error.to_string())?;
        }
    }
    let will = settings.will.clone().map(|will| {
        let Publish { topic, payload, qos, retain, properties, .. } =
            publication(will, settings.version)?;
        Ok::<_, String>(Will { topic, payload, qos, retain, properties })
    });
    let keep_alive = settings.keep_alive_s();
    Ok(Connect {
        version: settings.version,
        is_bridge: false,
        client_id: text(&settings.client_id)?,
        clean_start: settings.clean,
        keep_alive_s: u16::try_from(keep_alive)
            .map_err(|_| format!("a keep-alive of {keep_alive} s: at most {} s", u16::MAX))?,
        username: target.user.as_deref().map(text).transpose()?,
        password: target.password.clone().map(Bytes::from),
        will: will.transpose()?,
        properties,
    })
}

fn filters(wish: &Wish) -> Result<Vec<Filter>, Error> {
    let qos = Qos::from_bits(wish.qos)
        .ok_or_else(|| Error::Caller(format!("QoS {}: 0 to 2", wish.qos)))?;
    let retain_handling =
        if wish.no_retained { RetainHandling::DoNotSend } else { RetainHandling::Send };
    let options = Options { retain_handling, ..Options::new(qos) };
    let filters = wish.filters.iter().map(|filter| {
        proto::mqtt::topic::parts(filter.as_bytes())
            .map_err(|error| Error::Caller(format!("the filter {filter}: {error}")))?;
        Ok(Filter { filter: text(filter).map_err(Error::Caller)?, options })
    });
    filters.collect()
}

fn text(text: &str) -> Result<Text, String> {
    text.parse().map_err(|error| format!("\"{text}\": {error}"))
}

/// A message as this protocol says it; before MQTT 5 it has no properties.
fn publication(message: Message, version: Version) -> Result<Publish, String> {
    let qos = u8::try_from(message.qos).ok().and_then(Qos::from_bits);
    let qos = qos.ok_or_else(|| format!("QoS {}: MQTT has 0 to 2", message.qos))?;
    let mut properties = Properties::NONE;
    if version == Version::V5 {
        properties = of_message(&message).map_err(|error| error.to_string())?;
    }
    let topic = text(&message.topic)?;
    let publish = Publish::new(topic, message.payload);
    Ok(Publish { qos, retain: message.retain, properties, ..publish })
}

fn of_message(message: &Message) -> Result<Properties, proto::Error> {
    let mut properties = Properties::NONE;
    if let Some(expiry) = message.expiry {
        let seconds = u32::try_from(expiry.as_secs()).unwrap_or(u32::MAX);
        properties.push(Id::MESSAGE_EXPIRY_INTERVAL, Value::Number(seconds))?;
    }
    let texts =
        [(Id::CONTENT_TYPE, &message.content_type), (Id::RESPONSE_TOPIC, &message.reply_to)];
    for (id, text) in texts {
        if let Some(text) = text {
            properties.push(id, Value::Text(text))?;
        }
    }
    if let Some(correlation) = &message.correlation {
        properties.push(Id::CORRELATION_DATA, Value::Binary(correlation))?;
    }
    for (name, value) in &message.properties {
        properties.push(Id::USER_PROPERTY, Value::Pair(name, value))?;
    }
    Ok(properties)
}

fn message(publish: Publish) -> Message {
    let properties = &publish.properties;
    let own = |text: Option<&str>| text.map(str::to_owned);
    Message {
        qos: publish.qos.bits().cast_signed(),
        retain: publish.retain,
        content_type: own(properties.text(Id::CONTENT_TYPE)),
        reply_to: own(properties.text(Id::RESPONSE_TOPIC)),
        correlation: properties.binary(Id::CORRELATION_DATA).map(Bytes::copy_from_slice),
        expiry: properties
            .number(Id::MESSAGE_EXPIRY_INTERVAL)
            .map(|seconds| Duration::from_secs(u64::from(seconds))),
        properties: properties
            .user()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        topic: publish.topic.as_str().to_owned(),
        payload: publish.payload,
    }
}

/// A reason in words.
fn named(reason: Reason) -> String {
    reason.name().map_or_else(|| format!("reason 0x{:02X}", reason.0), str::to_owned)
}

fn words(failure: &Failure) -> String {
    match failure {
        Failure::Full => "too many messages wait".to_owned(),
        Failure::Invalid(error) => format!("it cannot be sent: {error}"),
        Failure::InvalidTopic(error) => format!("its topic: {error}"),
        Failure::TooLarge => "it has more bytes than the broker takes".to_owned(),
        Failure::Unsupported(reason) => {
            format!("the broker does not take such: {}", named(*reason))
        }
        Failure::Unconnected => "the connection is lost".to_owned(),
        Failure::SessionLost => {
            "the broker has lost the session: whether it arrived is not known".to_owned()
        }
    }
}

fn ended(closed: &Closed) -> String {
    match closed {
        Closed::Asked => "the connection was ended".to_owned(),
        Closed::Broken => "the connection is broken".to_owned(),
        Closed::Unwelcome(ConnAck { reason, properties, .. }) => {
            let more = properties
                .text(Id::REASON_STRING)
                .map_or_else(String::new, |text| format!(" ({text})"));
            format!("the broker does not let this client in: {}{more}", named(*reason))
        }
        Closed::ByServer(Disconnect { reason, .. }) => {
            format!("the broker has ended the connection: {}", named(*reason))
        }
        Closed::Refused(error) => format!("the broker sent what it may not send: {error}"),
        Closed::Unanswered => "the broker does not answer".to_owned(),
        Closed::Invalid(error) => format!("an authentication cannot be written: {error}"),
    }
}
