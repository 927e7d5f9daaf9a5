//! Requests of a client, and what of them waits for an answer.

use std::time::Duration;

use bytes::Bytes;

use super::super::{Filter, Packet, Publish, Qos, Topic, WillTopic, set_dup};
use super::settings::{Action, Name, Will};
use crate::Error;

/// A message that is transmitted until it is answered.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) bytes: Vec<u8>,
    pub(super) tries_left: u32,
    pub(super) at: Duration,
}

impl Attempt {
    /// The message once more, if there is a try left.
    pub(super) fn again(&mut self, at: Duration) -> Option<Bytes> {
        self.tries_left = self.tries_left.checked_sub(1)?;
        set_dup(&mut self.bytes);
        self.at = at;
        Some(Bytes::copy_from_slice(&self.bytes))
    }
}

/// What a request does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// An id for the topic.
    Register,
    /// The publication, the subscription, or its end.
    Send,
    /// PUBREL.
    Release,
    /// The will's topic.
    WillTopic,
    /// The will's message.
    WillMessage,
}

/// A request that is not done.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) number: u64,
    pub(super) action: Action,
    pub(super) step: Step,
    /// The same for all transmissions, so that the gateway knows a copy.
    pub(super) msg_id: u16,
    pub(super) was_sent: bool,
    pub(super) registrations: u32,
}

impl Request {
    pub(super) fn new(number: u64, action: Action, msg_id: u16) -> Self {
        let step = match action {
            Action::UpdateWill(_) => Step::WillTopic,
            _ => Step::Send,
        };
        Self { number, action, step, msg_id, was_sent: false, registrations: 0 }
    }

    /// The message of the step; `ids` says the id of a name. Without one the step is to register.
    pub(super) fn encode(&mut self, ids: impl Fn(&str) -> Option<u16>) -> Result<Vec<u8>, Error> {
        let msg_id = self.msg_id;
        if self.step == Step::Release {
            return encode(&Packet::PubRel { msg_id });
        }
        match &self.action {
            Action::Publish { topic, data, qos, retain } => {
                let Some(topic) = topic_of(topic, ids) else {
                    let Name::Text(name) = topic else { return Err(invalid()) };
                    self.step = Step::Register;
                    return encode(&Packet::Register { topic_id: 0, msg_id, name });
                };
                self.step = Step::Send;
                let (qos, retain) = (*qos, *retain);
                let msg_id = if qos > Qos::Zero { msg_id } else { 0 };
                let dup = self.was_sent;
                encode(&Packet::Publish(Publish { topic, msg_id, data, qos, retain, dup }))
            }
            Action::Subscribe { filter, qos } => {
                let (filter, dup) = (filter_of(filter), self.was_sent);
                encode(&Packet::Subscribe { dup, qos: *qos, msg_id, filter })
            }
            Action::Unsubscribe { filter } => {
                encode(&Packet::Unsubscribe { msg_id, filter: filter_of(filter) })
            }
            Action::UpdateWill(will) if self.step == Step::WillTopic => {
                encode(&Packet::WillTopicUpd(will.as_ref().map(will_topic)))
            }
            Action::UpdateWill(will) => {
                let message = will.as_ref().map_or(&[][..], |will| &will.message);
                encode(&Packet::WillMsgUpd { message })
            }
        }
    }

    /// Whether a request may be made at all.
    pub(super) fn is_valid(&self) -> bool {
        match &self.action {
            Action::Publish { topic, qos, .. } => {
                let is_known = topic_of(topic, |_| None).is_some();
                is_name(topic) && (is_known || *qos != Qos::MinusOne)
            }
            Action::Subscribe { filter, qos } => *qos != Qos::MinusOne && is_filter(filter),
            Action::Unsubscribe { filter } => is_filter(filter),
            Action::UpdateWill(will) => will.as_ref().is_none_or(is_will),
        }
    }
}

/// Whether a will can be said.
pub(super) fn is_will(will: &Will) -> bool {
    will.qos != Qos::MinusOne && is_name(&Name::Text(will.topic.clone()))
}

fn is_name(name: &Name) -> bool {
    match name {
        Name::Text(text) => !text.is_empty() && !text.contains(['+', '#', '\0']),
        Name::Predefined(_) => true,
    }
}

fn is_filter(name: &Name) -> bool {
    !matches!(name, Name::Text(text) if text.is_empty())
}

pub(super) fn invalid() -> Error {
    Error::Caller { what: "a topic that has no id" }
}

/// The message in octets.
pub(super) fn encode(packet: &Packet<'_>) -> Result<Vec<u8>, Error> {
    let mut room = vec![0; packet.encoded_len()];
    packet.encode(&mut room)?;
    Ok(room)
}

pub(super) fn will_topic(will: &Will) -> WillTopic<'_> {
    WillTopic { topic: &will.topic, qos: will.qos, retain: will.retain }
}

/// A name of two octets needs no id (MQTT-SN 1.2 §6.7).
fn short(text: &str) -> Option<[u8; 2]> {
    text.as_bytes().try_into().ok().filter(|_| !text.contains(['+', '#']))
}

fn topic_of(name: &Name, ids: impl Fn(&str) -> Option<u16>) -> Option<Topic> {
    match name {
        Name::Predefined(id) => Some(Topic::Predefined(*id)),
        Name::Text(text) => short(text).map(Topic::Short).or_else(|| ids(text).map(Topic::Id)),
    }
}

fn filter_of(name: &Name) -> Filter<'_> {
    match name {
        Name::Predefined(id) => Filter::Predefined(*id),
        Name::Text(text) => short(text).map_or(Filter::Name(text), Filter::Short),
    }
}
