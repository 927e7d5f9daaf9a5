//! Messages from the server (MQTT 5 §4.3, §4.6, §3.3.2.3.4).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::super::id::{Id, Ids};
use super::super::level::{Qos, Version};
use super::super::packet::{Ack, Packet, Publish};
use super::super::reason::Reason;
use super::super::refused::Refused;
use super::super::text::Text;
use super::Output;
use super::line::Line;

/// A message of QoS 2 whose PUBREL has not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The caller has it, and has not accepted it.
    HandedOut { receipt: u64 },
    /// It is accepted: PUBREC was sent, or is due when the server sends the message again.
    Accepted,
}

/// What came and is not over.
#[derive(Debug)]
pub(super) struct Receiving {
    /// Own Receive Maximum (MQTT 5 §3.1.2.11.3).
    receive_maximum: u16,
    /// Own Topic Alias Maximum (MQTT 5 §3.1.2.11.5).
    topic_alias_maximum: u16,
    aliases: BTreeMap<u16, Text>,
    /// Receipts that are to be acknowledged on this connection, in the order in which their
    /// messages came (MQTT 5 §4.6).
    owed: VecDeque<(u64, u16, Qos)>,
    /// What the caller has said of some of them.
    said: BTreeMap<u64, Reason>,
    /// Receipts that the caller has, and their messages.
    handed_out: BTreeMap<u64, (u16, Qos)>,
    /// Those of QoS 2, also of connections before this one.
    exact: BTreeMap<u16, Stage>,
    /// Identifiers that hold a place of the Receive Maximum on this connection (MQTT 5 §4.9).
    placed: BTreeSet<u16>,
    next_receipt: u64,
}

impl Receiving {
    pub(super) fn new(receive_maximum: u16, topic_alias_maximum: u16) -> Self {
        Self {
            receive_maximum,
            topic_alias_maximum,
            aliases: BTreeMap::new(),
            owed: VecDeque::new(),
            said: BTreeMap::new(),
            handed_out: BTreeMap::new(),
            exact: BTreeMap::new(),
            placed: BTreeSet::new(),
            next_receipt: 0,
        }
    }

    /// The server lets the client in; without a session it knows no message of before.
    pub(super) fn open(&mut self, has_session: bool) {
        if !has_session {
            self.exact.clear();
            self.handed_out.clear();
        }
    }

    /// The connection is gone: the server will send again what was not acknowledged. A message of
    /// QoS 1 is then another to the caller.
    pub(super) fn close(&mut self) {
        self.aliases.clear();
        self.owed.clear();
        self.said.clear();
        self.placed.clear();
        self.handed_out.retain(|_, (_, qos)| *qos == Qos::ExactlyOnce);
    }

    /// A message came.
    pub(super) fn publish(&mut self, mut publish: Publish, line: &mut Line) -> Result<(), Refused> {
        self.resolve(&mut publish)?;
        let (qos, dup) = (publish.qos, publish.dup);
        let Some(id) = publish.packet_id else {
            line.report(Output::Message { receipt: None, publish });
            return Ok(());
        };
        let is_copy = self.placed.contains(&id);
        if !is_copy && self.placed.len() >= usize::from(self.receive_maximum) {
            let what = "more messages at once than the Receive Maximum";
            return Err(Refused::with(Reason::RECEIVE_MAXIMUM_EXCEEDED, what));
        }
        self.placed.insert(id);
        let known = self.exact.get(&id).copied().filter(|_| qos == Qos::ExactlyOnce);
        match known {
            // MQTT 5 §4.3.3: the same message again.
            Some(Stage::Accepted) if is_copy => {
                line.answer(Packet::PubRec(Ack::new(id, Reason::SUCCESS)));
            }
            Some(Stage::Accepted) => {
                let receipt = self.take_receipt();
                self.owed.push_back((receipt, id, qos));
                self.said.insert(receipt, Reason::SUCCESS);
                self.acknowledge(line);
            }
            Some(Stage::HandedOut { receipt }) if !is_copy => {
                self.owed.push_back((receipt, id, qos));
            }
            Some(Stage::HandedOut { .. }) => {}
            // MQTT 3.1 §4.2 has it sent again where an answer is late; MQTT 5 §2.2.1,
            // MQTT-2.2.1-4.
            None if is_copy && !dup => {
                return Err(Refused::protocol("a packet identifier that is in use"));
            }
            None if is_copy => {}
            None => self.hand_out(id, publish, line),
        }
        Ok(())
    }

    fn take_receipt(&mut self) -> u64 {
        let receipt = self.next_receipt;
        self.next_receipt += 1;
        receipt
    }

    fn hand_out(&mut self, id: u16, publish: Publish, line: &mut Line) {
        let (receipt, qos) = (self.take_receipt(), publish.qos);
        self.owed.push_back((receipt, id, qos));
        self.handed_out.insert(receipt, (id, qos));
        if qos == Qos::ExactlyOnce {
            self.exact.insert(id, Stage::HandedOut { receipt });
        }
        line.report(Output::Message { receipt: Some(receipt), publish });
    }

    /// Puts the topic in the place of its alias, which is of this connection alone.
    fn resolve(&mut self, publish: &mut Publish) -> Result<(), Refused> {
        let Some(alias) = publish.properties.number(Id::TOPIC_ALIAS) else { return Ok(()) };
        let alias = u16::try_from(alias).unwrap_or_default();
        let invalid = |what| Refused::with(Reason::TOPIC_ALIAS_INVALID, what);
        // MQTT 5 §3.3.2.3.4, MQTT-3.3.2-10.
        if alias == 0 || alias > self.topic_alias_maximum {
            return Err(invalid("a topic alias above the Topic Alias Maximum"));
        }
        publish.properties = publish.properties.without(Ids::new(&[Id::TOPIC_ALIAS]));
        if !publish.topic.is_empty() {
            self.aliases.insert(alias, publish.topic.to_owned_bytes());
            return Ok(());
        }
        publish.topic =
            self.aliases.get(&alias).ok_or(invalid("a topic alias that is not set"))?.clone();
        Ok(())
    }

    /// The caller says what becomes of a message. One of an earlier connection is remembered where
    /// its QoS is 2; another the server sends again.
    pub(super) fn accept(&mut self, receipt: u64, reason: Reason, line: &mut Line) {
        let Some((id, qos)) = self.handed_out.remove(&receipt) else { return };
        let reason = match reason.is_of_puback() {
            true => reason,
            false if reason.is_failure() => Reason::UNSPECIFIED_ERROR,
            false => Reason::SUCCESS,
        };
        if qos == Qos::ExactlyOnce && reason.is_failure() {
            // MQTT 5 §4.3.3: such a PUBREC is the end of it.
            self.exact.remove(&id);
        } else if qos == Qos::ExactlyOnce {
            self.exact.insert(id, Stage::Accepted);
        }
        if self.placed.contains(&id) {
            self.said.insert(receipt, reason);
        }
        self.acknowledge(line);
    }

    /// Sends the answers that are due.
    fn acknowledge(&mut self, line: &mut Line) {
        // MQTT 5 §4.6, MQTT-4.6.0-2, MQTT-4.6.0-3: in the order in which they came.
        while let Some((receipt, id, qos)) = self.owed.front().copied() {
            let Some(reason) = self.said.remove(&receipt) else { return };
            self.owed.pop_front();
            let ack = Ack::new(id, reason);
            if qos == Qos::ExactlyOnce {
                line.answer(Packet::PubRec(ack));
            } else {
                line.answer(Packet::PubAck(ack));
            }
            if qos == Qos::AtLeastOnce || reason.is_failure() && line.version() == Version::V5 {
                self.placed.remove(&id);
            }
        }
    }

    /// A PUBREL came (MQTT 5 §4.3.3).
    pub(super) fn released(&mut self, id: u16, line: &mut Line) -> Result<(), Refused> {
        let reason = match self.exact.get(&id) {
            Some(Stage::Accepted) => Reason::SUCCESS,
            Some(Stage::HandedOut { .. }) => {
                return Err(Refused::protocol("a PUBREL before its PUBREC"));
            }
            None => Reason::PACKET_IDENTIFIER_NOT_FOUND,
        };
        self.exact.remove(&id);
        self.placed.remove(&id);
        line.answer(Packet::PubComp(Ack::new(id, reason)));
        Ok(())
    }
}
