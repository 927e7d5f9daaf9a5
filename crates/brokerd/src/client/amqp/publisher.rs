//! Messages over a link for each topic.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use proto::amqp::client::Input;
use proto::amqp::machine::{LinkId, Output};
use proto::amqp::performative::{
    Attach, DeliveryState, ErrorInfo, Role, Source, Target as Terminus, TargetKind,
};
use proto::amqp::types::{Symbol, Value};
use tokio::sync::mpsc;

use super::{TOPIC, Talk, message, settle_mode};
use crate::client::pending::Pending;
use crate::client::{Message, Published, Settings, Target, UNKNOWN_END};
use crate::error::Error;

/// Topics that a publisher has a link for at once.
const MAX_LINKS: usize = 64;
/// Bytes that wait to be written, beyond which no further message is taken.
const MAX_UNWRITTEN_BYTES: usize = 64 << 10;

/// See [`crate::client::publish`].
pub(in crate::client) async fn publish(
    target: &Target,
    settings: &Settings,
    mut messages: mpsc::Receiver<Message>,
) -> Result<Published, Error> {
    let mut publisher = Publisher::new(Talk::new(target, settings)?, settings);
    let mut is_over = false;
    publisher.talk.connect().await?;
    loop {
        publisher.pump();
        let is_written = publisher.talk.unwritten_bytes() == 0;
        // What leaves last can be refused, too, as long as the connection is there.
        if is_over && publisher.pending.is_empty() && is_written {
            publisher.talk.leave().await?;
            return Ok(publisher.published);
        }
        let has_room = !is_over
            && publisher.pending.has_room()
            && publisher.talk.unwritten_bytes() < MAX_UNWRITTEN_BYTES;
        let late_at = publisher.pending.late_at(&publisher.talk.line);
        let late = publisher.talk.line.sleep_until(late_at.unwrap_or_default());
        tokio::select! {
            message = messages.recv(), if has_room => match message {
                Some(message) => publisher.take(&message),
                None => is_over = true,
            },
            output = publisher.talk.next() => {
                publisher.count_left();
                if let Some(output) = output {
                    publisher.heard(output).await?;
                }
            }
            () = late, if late_at.is_some() => {
                publisher.pending.late(&publisher.talk.line, &target.address)?;
                publisher.talk.input(Input::Eof);
            }
        }
    }
}

/// A message without its end.
struct Open {
    link: LinkId,
    message: Bytes,
    qos: i8,
    /// It has left, or begun to, over the connection that there is.
    is_sent: bool,
}

/// A link to a topic.
struct Link {
    topic: String,
    /// Its receiver settles second: what goes over it, goes exactly once.
    is_second: bool,
    /// Longest message that the broker takes, as far as it has said so (AMQP 1.0 Part 2 §2.7.3).
    max_bytes: u64,
    /// Messages that have not left, by their keys.
    waiting: VecDeque<u64>,
    /// Those that the machine has, the oldest first, which may have left.
    given: VecDeque<u64>,
    /// The broker wants its credit back.
    is_draining: bool,
}

/// Messages, and the links that they go over.
struct Publisher<'a> {
    talk: Talk<'a>,
    is_running: bool,
    published: Published,
    pending: Pending,
    last_key: u64,
    // bound: that of `pending`.
    open: BTreeMap<u64, Open>,
    // bound: MAX_LINKS.
    links: BTreeMap<LinkId, Link>,
    last_link: u64,
}

impl<'a> Publisher<'a> {
    fn new(talk: Talk<'a>, settings: &Settings) -> Self {
        Self {
            talk,
            is_running: false,
            published: Published::default(),
            pending: Pending::new(settings.retry),
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
                self.pending.begin(self.talk.line.now(), key, open.message.len());
                self.open.insert(key, open);
                if let Some(link) = self.links.get_mut(&id) {
                    link.waiting.push_back(key);
                }
            }
            Err(why) => self.published.fail(why),
        }
    }

    /// A message has its end.
    fn end(&mut self, key: u64, end: Result<(), String>) {
        self.open.remove(&key);
        if self.pending.end(self.talk.line.now(), key) {
            self.published.end(end);
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
        let link = Link {
            topic: topic.to_owned(),
            is_second,
            max_bytes: u64::MAX,
            waiting: VecDeque::new(),
            given: VecDeque::new(),
            is_draining: false,
        };
        self.links.insert(id, link);
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

    /// Sends what the links take now, and counts what has left of what nobody acknowledges.
    fn pump(&mut self) {
        while let Some(key) = self.pending.left(&self.talk.line) {
            self.open.remove(&key);
            self.published.accepted += 1;
        }
        let links: Vec<_> = self.links.keys().copied().collect();
        for id in links {
            while self.talk.unwritten_bytes() < MAX_UNWRITTEN_BYTES
                && self.talk.client.available(id) > 0
                && self.send(id)
            {}
            if let Some(link) = self.links.get_mut(&id)
                && link.is_draining
                && link.waiting.is_empty()
            {
                link.is_draining = false;
                self.talk.input(Input::Drained { link: id });
            }
        }
    }

    /// Hands the next message of a link to the machine; whether there was one.
    fn send(&mut self, id: LinkId) -> bool {
        let Some(link) = self.links.get_mut(&id) else { return false };
        let Some(key) = link.waiting.pop_front() else { return false };
        let Some(open) = self.open.get_mut(&key) else { return true };
        let (max, bytes) = (link.max_bytes, open.message.len());
        if bytes as u64 > max {
            let what = format!("it has {bytes} bytes: the broker takes {max} (max-message-size)");
            self.end(key, Err(what));
            return true;
        }
        link.given.push_back(key);
        open.is_sent = true;
        let (settled, message) = (open.qos == 0, open.message.clone());
        self.talk.input(Input::Deliver { link: id, delivery: key, settled, message });
        true
    }

    /// What the machine has no more, is among the bytes that are to be written: it has just said
    /// all that it had.
    fn count_left(&mut self) {
        let end = self.talk.line.appended();
        for (id, link) in &mut self.links {
            let Some(queued) = self.talk.client.queued(*id) else { continue };
            while link.given.len() > queued
                && let Some(key) = link.given.pop_front()
            {
                if self.open.get(&key).is_some_and(|open| open.qos == 0) {
                    self.pending.leaves_with(end, key);
                }
            }
        }
    }

    async fn heard(&mut self, output: Output) -> Result<(), Error> {
        match output {
            Output::Opened(_) => {
                self.is_running = true;
                let links: Vec<_> = self.links.keys().copied().collect();
                links.into_iter().for_each(|link| self.attach(link));
            }
            Output::Attached { link, attach } => {
                if let Some(link) = self.links.get_mut(&link) {
                    // Zero is none, too.
                    let max = attach.max_message_size.filter(|max| *max > 0);
                    link.max_bytes = max.unwrap_or(u64::MAX);
                }
            }
            Output::Flow { link, credit, drain } => {
                if let Some(link) = self.links.get_mut(&link) {
                    link.is_draining = drain;
                }
                if credit > 0 {
                    self.pending.heard(self.talk.line.now());
                }
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
        let end = match state {
            Some(DeliveryState::Accepted) => Ok(()),
            Some(DeliveryState::Rejected(Some(error))) => {
                Err(format!("the broker rejects it: {error}"))
            }
            Some(DeliveryState::Rejected(None)) => Err("the broker rejects it".to_owned()),
            Some(DeliveryState::Released) => {
                Err("the broker has released it: it was not taken".to_owned())
            }
            Some(DeliveryState::Modified { .. }) => {
                Err("the broker has given it back as modified: it was not taken".to_owned())
            }
            _ if !settled => return,
            _ => Err("the broker does not say what became of it".to_owned()),
        };
        if !self.open.contains_key(&key) {
            return;
        }
        self.end(key, end);
        if !settled {
            self.talk.input(Input::Settle { link, delivery: key });
        }
    }

    /// A link is refused, or ended: what was for it is not taken, as far as it is known.
    fn detached(&mut self, id: LinkId, error: Option<&ErrorInfo>) {
        let Some(link) = self.links.remove(&id) else { return };
        let topic = &link.topic;
        let why = error.map_or_else(|| "it was detached".to_owned(), ToString::to_string);
        let of_link = self.open.iter().filter(|(_, open)| open.link == id);
        let open: Vec<_> = of_link.map(|(key, open)| (*key, open.is_sent)).collect();
        if open.is_empty() && error.is_some() {
            self.published.fail_late(format!("the broker ends the link to {topic}: {why}"));
        }
        for (key, is_sent) in open {
            let what = match is_sent {
                false => format!("the broker refuses the link to {topic}: {why}"),
                true => format!(
                    "the broker ends the link to {topic}, whether it arrived is not known: {why}"
                ),
            };
            self.end(key, Err(what));
        }
    }

    /// There is another connection: what has no end is sent again, but for what may be there and
    /// must not come twice.
    fn begin_again(&mut self) {
        self.pending.stayed();
        let is_unknown = |open: &Open| open.is_sent && open.qos != 1;
        let unknown: Vec<_> = self.open.iter().filter(|(_, open)| is_unknown(open)).collect();
        let unknown: Vec<u64> = unknown.into_iter().map(|(key, _)| *key).collect();
        for key in unknown {
            self.end(key, Err(UNKNOWN_END.to_owned()));
        }
        for link in self.links.values_mut() {
            link.waiting.clear();
            link.given.clear();
            link.is_draining = false;
        }
        for (key, open) in &mut self.open {
            open.is_sent = false;
            if let Some(link) = self.links.get_mut(&open.link) {
                link.waiting.push_back(*key);
            }
        }
    }
}
