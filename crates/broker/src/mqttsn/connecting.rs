//! A client connects, with its will (MQTT-SN 1.2 §6.2, §6.3).

use std::time::Duration;

use bytes::Bytes;
use proto::mqttsn::{Code, PROTOCOL_ID, Packet, WillTopic};

use super::client::{Client, Connect, Habit};
use super::settings::MAX_CLIENT_ID_BYTES;
use super::source::Source;
use super::will::Will;
use super::{MqttSn, refuse};
use crate::core::Opening;
use crate::federation::BreachKind;
use crate::ids::{ClientKey, ConnectionId, Protocol, SessionId};
use crate::outputs::Context;
use crate::refusal::Refusal;

/// Numbers of connections from here on are given by adapters of datagrams, lower ones by the shell.
const FIRST_CONNECTION: u64 = 1 << 63;
/// The number under which the will is kept with the session; lower ones are topic ids.
pub(super) const WILL_NOTE: u32 = 1 << 16;
/// That under which is kept that the client answers publications.
pub(super) const ANSWERS_NOTE: u32 = WILL_NOTE + 1;

/// What becomes of the will that is kept with a session.
enum Choice {
    /// It stays (MQTT-SN 1.2 §6.3).
    Keep,
    /// It is this, or none.
    Set(Option<Will>),
}

impl MqttSn {
    /// A CONNECT came.
    pub(super) fn connect(
        &mut self,
        context: &mut Context<'_>,
        source: Source,
        packet: &Packet<'_>,
    ) {
        let Packet::Connect { will, clean_session, protocol_id, duration_s, client_id } = *packet
        else {
            return;
        };
        let is_name = (1..=MAX_CLIENT_ID_BYTES).contains(&client_id.len())
            && !client_id.contains(char::is_control);
        if protocol_id != PROTOCOL_ID || !is_name {
            return source.send(context.outputs, &Packet::ConnAck { code: Code::NOT_SUPPORTED });
        }
        let connect = Connect {
            name: client_id.into(),
            clean: clean_session,
            has_will: will,
            keep_alive: Duration::from_secs(duration_s.into()),
        };
        let known = self.clients.client_at(&source);
        if known.is_some_and(|client| !client.is_confirmed && client.connect == connect) {
            // Its answer was lost.
            return source.send(context.outputs, &Packet::ConnAck { code: Code::ACCEPTED });
        }
        if !self.clients.has_place(context, &source) {
            return source.send(context.outputs, &Packet::ConnAck { code: Code::CONGESTION });
        }
        if will {
            source.send(context.outputs, &Packet::WillTopicReq);
            return self.dialogues.begin(context.now, source, connect);
        }
        self.dialogues.end(context.now, &source);
        self.open(context, source, connect, Choice::Keep);
    }

    /// The topic of a will came, or that there is none.
    pub(super) fn will_topic(
        &mut self,
        context: &mut Context<'_>,
        source: &Source,
        topic: Option<&WillTopic<'_>>,
    ) {
        let Some(dialogue) = self.dialogues.get_mut(context.now, source) else {
            return self.without_dialogue(context, source, &Packet::WillTopic(topic.copied()));
        };
        match topic.filter(|topic| !topic.topic.is_empty()) {
            Some(topic) => {
                dialogue.will = Some(Will::new(topic));
                source.send(context.outputs, &Packet::WillMsgReq);
            }
            // MQTT-SN 1.2 §6.3: this is how a client deletes its will.
            None => {
                if let Some(dialogue) = self.dialogues.end(context.now, source) {
                    self.open(context, source.clone(), dialogue.connect, Choice::Set(None));
                }
            }
        }
    }

    /// The message of a will came.
    pub(super) fn will_message(
        &mut self,
        context: &mut Context<'_>,
        source: Source,
        message: &[u8],
    ) {
        let has_topic =
            self.dialogues.get_mut(context.now, &source).is_some_and(|one| one.will.is_some());
        let dialogue = has_topic.then(|| self.dialogues.end(context.now, &source)).flatten();
        let Some(dialogue) = dialogue else {
            return self.without_dialogue(context, &source, &Packet::WillMsg { message });
        };
        let message = Bytes::copy_from_slice(message);
        let will = dialogue.will.map(|will| Will { message, ..will });
        self.open(context, source, dialogue.connect, Choice::Set(will));
    }

    /// A copy of what ended a dialogue whose answer was lost, or nothing that was asked for.
    fn without_dialogue(&self, context: &mut Context<'_>, source: &Source, packet: &Packet<'_>) {
        match self.clients.client_at(source) {
            Some(client) if !client.is_confirmed && client.connect.has_will => {
                source.send(context.outputs, &Packet::ConnAck { code: Code::ACCEPTED });
            }
            Some(_) => {}
            None => self.stranger(context, source, packet),
        }
    }

    fn open(&mut self, context: &mut Context<'_>, source: Source, connect: Connect, will: Choice) {
        let name = connect.name.clone();
        let code = match self.enter(context, source.clone(), connect, will) {
            Ok(()) => Code::ACCEPTED,
            Err(refusal) => {
                refuse(context, None, format!("{name} was not let in: {refusal}"));
                code(&refusal)
            }
        };
        source.send(context.outputs, &Packet::ConnAck { code });
    }

    fn enter(
        &mut self,
        context: &mut Context<'_>,
        source: Source,
        connect: Connect,
        will: Choice,
    ) -> Result<(), Refusal> {
        let client = ClientKey { protocol: Protocol::MqttSn, name: connect.name.clone() };
        if let Some(session) = context.core.find(&client) {
            // Who comes again, from sleep or from elsewhere, is not lost.
            let _ = context.core.set_will(session, None);
        }
        self.last_connection += 1;
        let id = ConnectionId(FIRST_CONNECTION + self.last_connection);
        let opening = Opening {
            client,
            connection: id,
            user: None,
            clean: connect.clean,
            expiry: if connect.clean {
                Duration::ZERO
            } else {
                self.clients.settings.session_expiry
            },
            // MQTT-SN 1.2 §6.10: one at a time.
            window: 1,
            will: match &will {
                Choice::Set(will) => will.as_ref().map(Will::of_session),
                Choice::Keep => None,
            },
        };
        let opened = context.core.open(context.now, opening)?;
        if let Some(old) = opened.displaced.and_then(|displaced| self.clients.forget(displaced))
            && old.source != source
        {
            old.source.send(context.outputs, &Packet::Disconnect { duration_s: None });
        }
        if let Some(other) = self.clients.at(&source) {
            self.clients.lose(context, other, "another client is at its address");
        }
        self.gone.retain(|gone| *gone != source);
        let mut client = Client::new(context.now, source, connect, opened.session, opened.present);
        self.recall(context, &mut client, will);
        let patience = client.patience(context.core.settings().max_keep_alive);
        self.clients.insert(id, client, patience);
        Ok(())
    }

    /// What is kept with the session is known again: topic ids, habits, and the will unless there
    /// is another.
    fn recall(&self, context: &mut Context<'_>, client: &mut Client, will: Choice) {
        let session = client.session;
        let mut kept = None;
        for (number, value) in context.core.notes(session) {
            match u16::try_from(number) {
                Ok(id) => {
                    client.topics.restore(id, value);
                }
                Err(_) if number == WILL_NOTE => kept = Will::decode(value),
                Err(_) if number == ANSWERS_NOTE => client.habit = Habit::Answers,
                Err(_) => {}
            }
        }
        match will {
            Choice::Set(will) => keep_will(context, session, will.as_ref()),
            Choice::Keep => {
                let will = kept.map(|will| will.of_session());
                // What was allowed before may not be any more.
                if let Err(refusal) = context.core.set_will(session, will) {
                    let why = format!("the will of {}: {refusal}", client.connect.name);
                    refuse(context, None, why);
                }
            }
        }
    }
}

/// Keeps a will with the session, or none.
pub(super) fn keep_will(context: &mut Context<'_>, session: SessionId, will: Option<&Will>) {
    context.core.note(session, WILL_NOTE, will.map(Will::encode));
}

/// How a refusal is said (MQTT-SN 1.2 §5.3.10).
pub(super) fn code(refusal: &Refusal) -> Code {
    match refusal {
        Refusal::Quota { .. } | Refusal::Closing => Code::CONGESTION,
        Refusal::Federation(breach) if breach.kind == BreachKind::Rate => Code::CONGESTION,
        Refusal::NotAuthorized
        | Refusal::Federation(_)
        | Refusal::TopicName { .. }
        | Refusal::TopicFilter { .. }
        | Refusal::TooLarge { .. } => Code::NOT_SUPPORTED,
    }
}
