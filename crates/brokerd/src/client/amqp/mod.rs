//! AMQP 1.0, over TCP or TLS: a link for each topic and each filter, whose addresses these are.

mod message;

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use proto::amqp::client::{self, Client, Input};
use proto::amqp::machine::{LinkId, Output};
use proto::amqp::performative::{
    Attach, DeliveryState, Durability, ErrorInfo, ExpiryPolicy, ReceiverSettleMode, Role,
    SenderSettleMode, Source, Target as Terminus, TargetKind, condition,
};
use proto::amqp::sasl::Credentials;
use proto::amqp::types::{Symbol, Value};
use tokio::sync::mpsc;

use super::again::Again;
use super::line::{Happening, Line};
use super::{Event, Message, Published, Settings, Target, Wish};
use crate::error::Error;
use crate::store::random;

/// Messages that a publisher has open at once; further ones wait with who makes them.
const MAX_OPEN: usize = 1000;
/// Topics that a publisher has a link for at once.
const MAX_LINKS: usize = 64;
/// Bytes that wait to be written, beyond which no further message is taken.
const MAX_UNWRITTEN_BYTES: usize = 64 << 10;
/// Messages of each filter that may be on the way to a subscriber.
const WINDOW: u32 = 100;
/// Longest message that is taken.
const MAX_MESSAGE_BYTES: usize = 256 << 20;
/// How long the broker may take to agree to the end.
const FAREWELL: Duration = Duration::from_secs(10);
/// The capability of a node that is a topic, which brokers with queues ask for.
const TOPIC: &str = "topic";

/// See [`super::publish`].
pub(super) async fn publish(
    target: &Target,
    settings: &Settings,
    mut messages: mpsc::Receiver<Message>,
) -> Result<Published, Error> {
    let mut publisher = Publisher::new(Talk::new(target, settings)?);
    let mut is_over = false;
    publisher.talk.connect().await?;
    loop {
        if is_over && publisher.published.ended() == publisher.last_key {
            publisher.talk.leave().await;
            return Ok(publisher.published);
        }
        let has_room = !is_over
            && publisher.open.len() < MAX_OPEN
            && publisher.talk.line.leaves.len() < MAX_UNWRITTEN_BYTES;
        tokio::select! {
            message = messages.recv(), if has_room => match message {
                Some(message) => publisher.take(&message),
                None => is_over = true,
            },
            output = publisher.talk.next() => if let Some(output) = output {
                publisher.heard(output).await?;
            },
        }
    }
}

/// A message without its end.
struct Open {
    link: LinkId,
    message: Bytes,
    qos: i8,
    /// It has left, over the connection that there is.
    is_sent: bool,
}

/// A link to a topic.
struct Link {
    topic: String,
    /// Its receiver settles second: what goes over it, goes exactly once.
    is_second: bool,
    credit: u32,
    /// Messages that have not left, by their keys.
    waiting: VecDeque<u64>,
}

/// Messages, and the links that they go over.
struct Publisher<'a> {
    talk: Talk<'a>,
    is_running: bool,
    published: Published,
    last_key: u64,
    // bound: MAX_OPEN.
    open: BTreeMap<u64, Open>,
    // bound: MAX_LINKS.
    links: BTreeMap<LinkId, Link>,
    last_link: u64,
}

impl<'a> Publisher<'a> {
    fn new(talk: Talk<'a>) -> Self {
        Self {
            talk,
            is_running: false,
            published: Published::default(),
            last_key: 0,
            open: BTreeMap::new(),
            links: BTreeMap::new(),
            last_link: 0,
        }
    }

    /// A message is to go.
    fn take(&mut self, message: &Message) {
        self.last_key += 1;
        let key = self.last_key;
        let made = message::encode(message).and_then(|bytes| {
            let link = self.link(&message.topic, message.qos == 2)?;
            Ok(Open { link, message: bytes, qos: message.qos, is_sent: false })
        });
        match made {
            Ok(open) => {
                let id = open.link;
                self.open.insert(key, open);
                if let Some(link) = self.links.get_mut(&id) {
                    link.waiting.push_back(key);
                }
                self.pump(id);
            }
            Err(why) => self.published.fail(why),
        }
    }

    /// The link to a topic, which is made where there is none.
    fn link(&mut self, topic: &str, is_second: bool) -> Result<LinkId, String> {
        let is_it = |link: &Link| link.topic == topic && link.is_second == is_second;
        if let Some((id, _)) = self.links.iter().find(|(_, link)| is_it(link)) {
            return Ok(*id);
        }
        if self.links.len() >= MAX_LINKS {
            return Err(format!("{topic}: at most {MAX_LINKS} topics have a link at once"));
        }
        self.last_link += 1;
        let id = LinkId(self.last_link);
        let (topic, waiting) = (topic.to_owned(), VecDeque::new());
        self.links.insert(id, Link { topic, is_second, credit: 0, waiting });
        if self.is_running {
            self.attach(id);
        }
        Ok(id)
    }

    fn attach(&mut self, id: LinkId) {
        let Some(link) = self.links.get(&id) else { return };
        let mut attach = Attach::new(&format!("{}-{}", link.topic, id.0), 0, Role::Sender);
        attach.rcv_settle_mode = settle_mode(link.is_second);
        attach.source = Some(Source::default());
        let target = Terminus {
            address: Some(Value::string(&link.topic)),
            capabilities: vec![Symbol::new(TOPIC)],
            ..Terminus::default()
        };
        attach.target = Some(TargetKind::Target(Box::new(target)));
        self.talk.input(Input::Attach { link: id, attach: Box::new(attach), window: 0 });
    }

    /// Sends what a link's credit lets go.
    fn pump(&mut self, id: LinkId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        while link.credit > 0 {
            let Some(key) = link.waiting.pop_front() else { return };
            let Some(open) = self.open.get_mut(&key) else { continue };
            link.credit -= 1;
            let (settled, message) = (open.qos == 0, open.message.clone());
            open.is_sent = true;
            if settled {
                self.open.remove(&key);
                self.published.accepted += 1;
            }
            self.talk.input(Input::Deliver { link: id, delivery: key, settled, message });
        }
    }

    async fn heard(&mut self, output: Output) -> Result<(), Error> {
        match output {
            Output::Opened(_) => {
                self.is_running = true;
                let links: Vec<_> = self.links.keys().copied().collect();
                links.into_iter().for_each(|link| self.attach(link));
            }
            Output::Flow { link: id, credit, .. } => {
                if let Some(link) = self.links.get_mut(&id) {
                    link.credit = credit;
                }
                self.pump(id);
            }
            Output::Disposition { link, delivery, state, settled } => {
                self.outcome(link, delivery, state, settled);
            }
            Output::Detached { link, error, .. } => self.detached(link, error.as_ref()),
            Output::Closed { error, .. } => {
                self.is_running = false;
                self.talk.lost(error.as_ref()).await?;
                self.begin_again();
            }
            _ => {}
        }
        Ok(())
    }

    /// The broker says what became of a message.
    fn outcome(&mut self, link: LinkId, key: u64, state: Option<DeliveryState>, settled: bool) {
        let failure = match state {
            Some(DeliveryState::Accepted) => None,
            Some(DeliveryState::Rejected(Some(error))) => {
                Some(format!("the broker rejects it: {error}"))
            }
            Some(DeliveryState::Rejected(None)) => Some("the broker rejects it".to_owned()),
            Some(DeliveryState::Released) => {
                Some("the broker has released it: it was not taken".to_owned())
            }
            Some(DeliveryState::Modified { .. }) => {
                Some("the broker has given it back as modified: it was not taken".to_owned())
            }
            _ if !settled => return,
            _ => Some("the broker does not say what became of it".to_owned()),
        };
        if self.open.remove(&key).is_none() {
            return;
        }
        match failure {
            None => self.published.accepted += 1,
            Some(why) => self.published.fail(why),
        }
        if !settled {
            self.talk.input(Input::Settle { link, delivery: key });
        }
    }

    /// A link is refused, or ended: what was for it is not taken.
    fn detached(&mut self, id: LinkId, error: Option<&ErrorInfo>) {
        let Some(link) = self.links.remove(&id) else { return };
        let why = error.map_or_else(|| "it was detached".to_owned(), ToString::to_string);
        let keys: Vec<_> = self.open.iter().filter(|(_, open)| open.link == id).collect();
        let keys: Vec<u64> = keys.into_iter().map(|(key, _)| *key).collect();
        for key in keys {
            self.open.remove(&key);
            self.published.fail(format!("the broker refuses the link to {}: {why}", link.topic));
        }
    }

    /// There is another connection: what has no end is sent again, but for what may be there and
    /// must not come twice.
    fn begin_again(&mut self) {
        let is_unknown = |open: &Open| open.is_sent && open.qos == 2;
        let unknown: Vec<_> = self.open.iter().filter(|(_, open)| is_unknown(open)).collect();
        let unknown: Vec<u64> = unknown.into_iter().map(|(key, _)| *key).collect();
        for key in unknown {
            self.open.remove(&key);
            let what = "the connection was lost: whether it arrived is not known";
            self.published.fail(what.to_owned());
        }
        for link in self.links.values_mut() {
            link.credit = 0;
            link.waiting.clear();
        }
        for (key, open) in &mut self.open {
            open.is_sent = false;
            if let Some(link) = self.links.get_mut(&open.link) {
                link.waiting.push_back(*key);
            }
        }
    }
}

/// See [`super::subscribe`].
pub(super) async fn subscribe(
    target: &Target,
    settings: &Settings,
    wish: &Wish,
    take: &mut dyn FnMut(Event) -> bool,
    mut end: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), Error> {
    let mut talk = Talk::new(target, settings)?;
    talk.connect().await?;
    let mut links = Subscriptions::default();
    loop {
        let output = tokio::select! {
            output = talk.next() => output,
            () = end.as_mut() => break,
        };
        let Some(output) = output else { continue };
        let goes_on = match output {
            Output::Opened(_) => {
                links = Subscriptions::default();
                for (link, filter) in (0..).map(LinkId).zip(&wish.filters) {
                    let attach = Box::new(receiver(settings, wish, filter));
                    talk.input(Input::Attach { link, attach, window: WINDOW });
                }
                true
            }
            Output::Attached { link, .. } => {
                links.attached.push(link);
                links.answered(wish, take)?
            }
            Output::Detached { link, error, .. } => {
                let filter = filter_of(wish, link);
                let why = error.map_or_else(|| "it was detached".to_owned(), |it| it.to_string());
                if links.attached.contains(&link) {
                    let text = format!("{filter}: the broker has ended the link: {why}");
                    return Err(Error::System(text));
                }
                links.refused.push(format!("{filter}: {why}"));
                links.answered(wish, take)?
            }
            Output::Delivery(delivery) => {
                let came = message::decode(&delivery, filter_of(wish, delivery.link));
                let goes_on = match came {
                    Ok(message) => {
                        wish.no_retained && message.retain || take(Event::Message(message))
                    }
                    Err(why) => return Err(Error::System(format!("a message: {why}"))),
                };
                if !delivery.settled {
                    let (link, delivery) = (delivery.link, delivery.delivery);
                    let state = DeliveryState::Accepted;
                    talk.input(Input::Outcome { link, delivery, state });
                }
                goes_on
            }
            Output::Closed { error, .. } => {
                tokio::select! {
                    lost = talk.lost(error.as_ref()) => lost?,
                    () = end.as_mut() => return Ok(()),
                }
                true
            }
            _ => true,
        };
        if !goes_on {
            break;
        }
    }
    talk.leave().await;
    Ok(())
}

/// What the broker has said of the links of a subscriber.
#[derive(Default)]
struct Subscriptions {
    attached: Vec<LinkId>,
    refused: Vec<String>,
}

impl Subscriptions {
    /// One more is answered; false where the caller wants no more.
    fn answered(
        &mut self,
        wish: &Wish,
        take: &mut dyn FnMut(Event) -> bool,
    ) -> Result<bool, Error> {
        if self.refused.len() == wish.filters.len() {
            let what = self.refused.join(", ");
            return Err(Error::System(format!("the broker refuses all: {what}")));
        }
        let is_last = self.attached.len() + self.refused.len() == wish.filters.len();
        Ok(!is_last || take(Event::Subscribed(std::mem::take(&mut self.refused))))
    }
}

fn filter_of(wish: &Wish, link: LinkId) -> &str {
    let at = usize::try_from(link.0).unwrap_or(usize::MAX);
    wish.filters.get(at).map_or("", String::as_str)
}

fn settle_mode(is_second: bool) -> ReceiverSettleMode {
    if is_second { ReceiverSettleMode::Second } else { ReceiverSettleMode::First }
}

/// The link of a filter. One that is kept has a terminus that outlives it (AMQP 1.0 Part 3 §3.5.5).
fn receiver(settings: &Settings, wish: &Wish, filter: &str) -> Attach {
    let mut attach = Attach::new(filter, 0, Role::Receiver);
    attach.snd_settle_mode = match wish.qos {
        0 => SenderSettleMode::Settled,
        _ => SenderSettleMode::Unsettled,
    };
    attach.rcv_settle_mode = settle_mode(wish.qos == 2);
    let mut source = Source {
        address: Some(Value::string(filter)),
        outcomes: DeliveryState::symbols(),
        capabilities: vec![Symbol::new(TOPIC)],
        ..Source::default()
    };
    if !settings.expiry.is_zero() {
        source.durable = Durability::UnsettledState;
        match u32::try_from(settings.expiry.as_secs()) {
            Ok(seconds) => {
                source.expiry_policy = ExpiryPolicy::LinkDetach;
                source.timeout_s = seconds;
            }
            Err(_) => source.expiry_policy = ExpiryPolicy::Never,
        }
    }
    attach.source = Some(source);
    attach.target = Some(TargetKind::Target(Box::default()));
    attach
}

/// A client, and its connection where there is one.
struct Talk<'a> {
    target: &'a Target,
    of_client: client::Settings,
    client: Client,
    line: Line<'a>,
    again: Again,
    has_been_open: bool,
}

impl<'a> Talk<'a> {
    fn new(target: &'a Target, settings: &Settings) -> Result<Self, Error> {
        let container_id = match settings.client_id.as_str() {
            "" => format!("longwire-{:016x}", random()?),
            id => id.to_owned(),
        };
        let keep_alive = Some(settings.keep_alive).filter(|time| !time.is_zero());
        let of_client = client::Settings {
            container_id,
            hostname: Some(target.host.clone()),
            credentials: credentials(target)?,
            // The peer is told half of it.
            idle_timeout: keep_alive.map(|time| time.saturating_mul(2)),
            max_message_bytes: MAX_MESSAGE_BYTES,
        };
        Ok(Self {
            target,
            client: Client::new(of_client.clone(), Duration::ZERO),
            of_client,
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
        self.client = Client::new(self.of_client.clone(), self.line.now());
        Ok(())
    }

    /// What the client says next; `None` when what was to be written has left, so that there is
    /// room for more. May be dropped while it waits.
    async fn next(&mut self) -> Option<Output> {
        loop {
            while let Some(output) = self.client.poll_output() {
                match output {
                    Output::Transmit(bytes) => self.line.leaves.extend_from_slice(&bytes),
                    Output::WakeAt(at) => self.line.wake_at = Some(at),
                    other => {
                        if matches!(other, Output::Opened(_)) {
                            self.has_been_open = true;
                            self.again.connected();
                        }
                        return Some(other);
                    }
                }
            }
            let input = match self.line.happening().await {
                Happening::Bytes(bytes) => Input::Bytes(bytes),
                Happening::Wake => Input::Wake,
                Happening::Written => return None,
                Happening::Lost => Input::Eof,
            };
            self.input(input);
        }
    }

    /// The connection is over: makes another.
    ///
    /// # Errors
    /// Where there is none to be had, or the broker does not want this client.
    async fn lost(&mut self, error: Option<&ErrorInfo>) -> Result<(), Error> {
        self.line.drop();
        // It ends, it has enough to do, or nothing came for long.
        let is_passing = error.is_none_or(|error| {
            [
                condition::CONNECTION_FORCED,
                condition::RESOURCE_LIMIT_EXCEEDED,
                condition::INTERNAL_ERROR,
            ]
            .contains(&error.condition)
        });
        let what = error.map_or_else(|| "the connection is broken".to_owned(), ToString::to_string);
        let mut why = Error::System(format!("{}: {what}", self.target.address));
        if !is_passing || !self.has_been_open {
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

    /// Says that it leaves, once all is written. Whether the broker still hears of it changes
    /// nothing any more.
    async fn leave(&mut self) {
        self.input(Input::Close);
        let left = async { while self.next().await != Some(Output::HangUp) {} };
        if tokio::time::timeout(FAREWELL, left).await.is_ok() {
            let _ = self.line.finish().await;
        }
    }
}

/// By a user, by the certificate of TLS, or not at all.
fn credentials(target: &Target) -> Result<Credentials, Error> {
    let has_certificate = target.layers.tls.as_ref().is_some_and(|tls| tls.identity.is_some());
    let Some(user) = target.user.clone() else {
        return Ok(if has_certificate {
            Credentials::External { authorize_as: String::new() }
        } else {
            Credentials::Anonymous { trace: String::new() }
        });
    };
    let password = target.password.clone().unwrap_or_default();
    let password = String::from_utf8(password)
        .map_err(|_| Error::Caller("a password of AMQP is text in UTF-8".to_owned()))?;
    if user.contains('\0') || password.contains('\0') {
        let text = "neither a user nor a password has a zero in it";
        return Err(Error::Caller(text.to_owned()));
    }
    Ok(Credentials::Plain { authorize_as: String::new(), user, password })
}
