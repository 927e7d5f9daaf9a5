//! What is remembered of one publication.

use std::fmt;
use std::time::Duration;

use record::publication::{Ended, Progress, Publication as Facts, Receiver, Sent as SentFacts};

use super::{Before, Query, Sent};
use crate::filter::matches;
use crate::ids::ClientKey;
use crate::publication::{Grade, Publication};

/// Receivers of one publication; of others is known how many they are.
const MAX_RECEIVERS: usize = 100;
/// Of these, those that it is not for: they must not take the places of those who get it.
const MAX_PASSED_OVER: usize = 10;
/// Longest text that a client can make long, in bytes.
const MAX_TEXT_BYTES: usize = 256;

/// See the module.
#[derive(Debug)]
pub(super) struct Trail {
    facts: Facts,
    at: Duration,
    /// Who the receivers are, in their order.
    clients: Vec<ClientKey>,
    /// How many of them it is not for.
    passed_over: usize,
    /// Where the receiver is that was told of last: the next is mostly behind it.
    cursor: usize,
    text_bytes: usize,
}

impl Trail {
    pub(super) fn new(
        now: Duration,
        publication: &Publication,
        publisher: Option<&ClientKey>,
        before: Option<Before>,
    ) -> Self {
        let details = publication.details.as_deref();
        let grade = publication.grade.get();
        let mut facts = Facts {
            id: publication.id,
            unix_s: now.as_secs_f64(),
            topic: publication.topic.to_string(),
            protocol: publication.protocol.name().to_owned(),
            publisher: publisher.map(|key| short(&key.to_string())),
            qos: grade,
            retain: publication.retain,
            urgency: publication.urgency.get(),
            expiry_s: publication
                .deadline
                .map(|deadline| deadline.saturating_sub(now).as_secs_f64()),
            bytes: publication.payload.len() as u64,
            content_type: details.and_then(|it| it.content_type.as_deref()).map(short),
            hops: details.map_or_else(Vec::new, |it| it.via.clone()),
            ..Facts::default()
        };
        if let Some(before) = before {
            facts.published_to =
                (before.topic != publication.topic).then(|| before.topic.to_string());
            facts.published_qos = (before.grade != publication.grade).then_some(before.grade.get());
            facts.rule = before.rule;
        }
        let texts = [&facts.published_to, &facts.publisher, &facts.content_type, &facts.rule];
        let text_bytes = facts.topic.len()
            + texts.iter().map(|text| text.as_ref().map_or(0, String::len)).sum::<usize>()
            + facts.hops.iter().map(|hop| size_of::<String>() + hop.len()).sum::<usize>();
        Self { facts, at: now, clients: Vec::new(), passed_over: 0, cursor: 0, text_bytes }
    }

    pub(super) fn id(&self) -> u64 {
        self.facts.id
    }

    pub(super) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        let one = size_of::<Receiver>() + size_of::<ClientKey>();
        let ended = self.facts.ended.as_ref();
        let ended_bytes =
            ended.map_or(0, |it| it.why.len() + it.detail.as_ref().map_or(0, String::len));
        size_of::<Self>() + self.text_bytes + ended_bytes + self.clients.len() * one
    }

    pub(super) fn fits(&self, query: &Query) -> bool {
        let Facts { id, topic, published_to, hops, .. } = &self.facts;
        query.id.is_none_or(|wanted| wanted == *id)
            && query.origin.as_ref().is_none_or(|origin| hops.first() == Some(origin))
            && query.topic.as_ref().is_none_or(|filter| {
                matches(filter, topic)
                    || published_to.as_ref().is_some_and(|to| matches(filter, to))
            })
    }

    /// It waits for a receiver, whom it may be on the way to already.
    pub(super) fn waits(&mut self, now: Duration, client: &ClientKey, grade: Grade, retain: bool) {
        if self.find(client).is_none() && !self.add(now, client, grade, retain) {
            self.facts.unlisted += 1;
        }
    }

    /// It is not for a session though a subscription of it fits. Whether the session is listed.
    pub(super) fn passes_over(
        &mut self,
        now: Duration,
        client: &ClientKey,
        grade: Grade,
        why: (&'static str, &'static str),
    ) -> bool {
        if self.find(client).is_none() {
            let has_room = self.passed_over < MAX_PASSED_OVER;
            if !has_room || !self.add(now, client, grade, false) {
                self.facts.passed_over += 1;
                return false;
            }
            self.passed_over += 1;
        }
        self.ended(now, Some(client), why.0, format_args!("{}", why.1));
        true
    }

    /// Adds a receiver; whether there is room.
    fn add(&mut self, now: Duration, client: &ClientKey, grade: Grade, retain: bool) -> bool {
        if self.clients.len() >= MAX_RECEIVERS {
            return false;
        }
        let receiver = Receiver {
            client: short(&client.to_string()),
            qos: grade.get(),
            retain,
            after_s: self.after_s(now),
            ..Receiver::default()
        };
        // A name is not cut, and may be here alone when its session has ended.
        self.text_bytes += receiver.client.len() + client.name.len();
        self.facts.receivers.push(receiver);
        self.clients.push(client.clone());
        self.facts.ended = None;
        true
    }

    /// A receiver gets it, who may have come after it was retained.
    pub(super) fn given(
        &mut self,
        now: Duration,
        publication: &Publication,
        client: &ClientKey,
        (grade, retain): (Grade, bool),
        unchanged: Option<&str>,
    ) {
        if self.find(client).is_none() {
            self.add(now, client, grade, retain);
        }
        let content_type =
            publication.details.as_deref().and_then(|details| details.content_type.as_deref());
        let sent = SentFacts {
            protocol: client.protocol.name().to_owned(),
            payload_bytes: publication.payload.len() as u64,
            content_type: content_type.map(short),
            form: publication.coded.map(|form| form.name().to_owned()),
            unchanged: unchanged.map(short),
            ..SentFacts::default()
        };
        let after_s = self.after_s(now);
        self.with(client, |receiver| {
            receiver.progress = Progress::Sent;
            receiver.after_s = after_s;
            receiver.times = receiver.times.saturating_add(1);
            receiver.ended = None;
            receiver.sent = Some(sent);
        });
    }

    pub(super) fn sent(&mut self, now: Duration, client: &ClientKey, sent: Sent) {
        let after_s = self.after_s(now);
        self.with(client, |receiver| {
            receiver.progress = Progress::Sent;
            receiver.after_s = after_s;
            let facts = receiver.sent.get_or_insert_default();
            sent.protocol.clone_into(&mut facts.protocol);
            facts.to = sent.to.as_deref().map(short);
            facts.message_bytes = sent.message_bytes.map(|bytes| bytes as u64);
            facts.hops = sent.hops;
        });
    }

    pub(super) fn returned(&mut self, now: Duration, client: &ClientKey) {
        let after_s = self.after_s(now);
        self.with(client, |receiver| {
            receiver.progress = Progress::Waiting;
            receiver.after_s = after_s;
        });
    }

    /// What was not sent has not been acknowledged: it was only taken off the list.
    pub(super) fn acknowledged(&mut self, now: Duration, client: &ClientKey) {
        let after_s = self.after_s(now);
        self.with(client, |receiver| {
            if receiver.progress == Progress::Sent {
                receiver.progress = Progress::Acknowledged;
                receiver.after_s = after_s;
            }
        });
    }

    pub(super) fn ended(
        &mut self,
        now: Duration,
        client: Option<&ClientKey>,
        why: &'static str,
        detail: fmt::Arguments<'_>,
    ) {
        let detail = match detail.as_str() {
            Some("") => None,
            _ => Some(short(&detail.to_string())),
        };
        let ended = Some(Ended { why: why.to_owned(), detail });
        let Some(client) = client else {
            self.facts.ended = ended;
            return;
        };
        let after_s = self.after_s(now);
        self.with(client, |receiver| {
            receiver.progress = Progress::Dropped;
            receiver.after_s = after_s;
            receiver.ended = ended;
        });
    }

    pub(super) fn unwanted(&mut self) {
        if self.clients.is_empty() && self.facts.ended.is_none() {
            let why = "no-subscriber".to_owned();
            self.facts.ended = Some(Ended { why, detail: None });
        }
    }

    fn after_s(&self, now: Duration) -> f64 {
        now.saturating_sub(self.at).as_secs_f64()
    }

    /// Changes what is known of a receiver, if anything is.
    fn with(&mut self, client: &ClientKey, change: impl FnOnce(&mut Receiver)) {
        let Some(at) = self.find(client) else { return };
        let Some(receiver) = self.facts.receivers.get_mut(at) else { return };
        let before = text_bytes(receiver);
        change(receiver);
        self.text_bytes = (self.text_bytes + text_bytes(receiver)).saturating_sub(before);
    }

    fn find(&mut self, client: &ClientKey) -> Option<usize> {
        let len = self.clients.len();
        let at = (0..len)
            .map(|step| (self.cursor + step) % len)
            .find(|at| self.clients.get(*at) == Some(client))?;
        self.cursor = at;
        Some(at)
    }
}

/// Memory of the texts that are told of a receiver.
fn text_bytes(receiver: &Receiver) -> usize {
    let of = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let ended = receiver.ended.as_ref().map_or(0, |it| it.why.len() + of(&it.detail));
    let sent = receiver.sent.as_ref().map_or(0, |it| {
        let hops = it.hops.iter().map(|hop| size_of::<String>() + hop.len()).sum::<usize>();
        it.protocol.len() + of(&it.to) + of(&it.content_type) + of(&it.unchanged) + hops
    });
    receiver.client.len() + ended + sent
}

/// A text of at most [`MAX_TEXT_BYTES`], cut where it is longer.
fn short(text: &str) -> String {
    text.get(..text.floor_char_boundary(MAX_TEXT_BYTES)).unwrap_or_default().to_owned()
}
