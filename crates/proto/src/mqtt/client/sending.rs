//! Messages and wishes to the server (MQTT 5 §4.3, §4.4, §4.9).

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::super::encode::publish_len;
use super::super::id::Id;
use super::super::level::{Qos, Version};
use super::super::packet::{Ack, Packet, Publish, Subscribe, Unsubscribe};
use super::super::property::Value;
use super::super::reason::Reason;
use super::super::refused::Refused;
use super::super::text::Text;
use super::super::topic::check_name;
use super::line::Line;
use super::peer::Peer;
use super::{Failure, MAX_ALIASES, MAX_WAITING, MAX_WAITING_BYTES, Output};
use crate::Error;

/// A message of QoS 1 or 2 that has a packet identifier.
#[derive(Debug)]
struct Flight {
    id: u16,
    key: u64,
    publish: Publish,
    stage: Stage,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It is to be sent again.
    Again,
    /// PUBLISH was sent, and no answer came.
    Sent,
    /// PUBREL was sent: the server has it.
    Released,
}

/// What a packet identifier is used for.
#[derive(Clone, Copy, Debug)]
enum Use {
    /// A message, by its place in the order.
    Flight(u64),
    /// A SUBSCRIBE: its key and how many filters it has.
    Subscribe(u64, usize),
    /// An UNSUBSCRIBE, likewise.
    Unsubscribe(u64, usize),
}

/// What the client sends beside answers.
#[derive(Debug)]
pub(super) struct Sending {
    waiting: VecDeque<(u64, Publish)>,
    waiting_bytes: usize,
    /// By their place in the order of sending, in which they are sent again.
    flights: BTreeMap<u64, Flight>,
    next_order: u64,
    /// Those to be sent again, in order.
    again: VecDeque<u64>,
    ids: BTreeMap<u16, Use>,
    last_id: u16,
    /// Messages of QoS 1 and 2 that the server may count (MQTT 5 §4.9): those sent on this
    /// connection, and those of an earlier one whose PUBCOMP has not come.
    on_the_way: usize,
    /// How many it takes.
    window: usize,
    /// The server's; none without a connection.
    peer: Option<Peer>,
    aliases: BTreeMap<Text, u16>,
}

impl Sending {
    pub(super) fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            flights: BTreeMap::new(),
            next_order: 0,
            again: VecDeque::new(),
            ids: BTreeMap::new(),
            last_id: 0,
            on_the_way: 0,
            window: 0,
            peer: None,
            aliases: BTreeMap::new(),
        }
    }

    /// Messages that have no end yet.
    pub(super) fn open_messages(&self) -> usize {
        self.waiting.len() + self.flights.len()
    }

    /// Takes a message that was checked.
    pub(super) fn publish(&mut self, key: u64, publish: Publish, line: &mut Line) {
        if let (Qos::AtMostOnce, Some(peer)) = (publish.qos, self.peer) {
            return self.send(key, publish, peer, line);
        }
        let len = bytes_of(&publish);
        if self.waiting.len() >= MAX_WAITING || self.waiting_bytes + len > MAX_WAITING_BYTES {
            return line.report(Output::Failed { key, failure: Failure::Full });
        }
        self.waiting_bytes += len;
        self.waiting.push_back((key, publish));
        self.pump(line);
    }

    /// The server lets the client in. Where it has the session, what it did not acknowledge is sent
    /// again, in order (MQTT 5 §4.4, MQTT-4.4.0-1); where it has none, messages of QoS 1 are new
    /// ones, and what became of those of QoS 2 is not known (§3.2.2.1.1, MQTT-3.2.2-5).
    pub(super) fn open(
        &mut self,
        peer: Peer,
        has_session: bool,
        max_in_flight: u16,
        line: &mut Line,
    ) {
        self.window = peer.receive_maximum.min(max_in_flight).max(1).into();
        self.on_the_way = 0;
        self.peer = Some(peer);
        if has_session {
            self.resume(line);
        } else {
            self.begin_anew(line);
        }
        self.pump(line);
        // Those of QoS 0 need no place: they wait for none.
        let is_now = |(_, publish): &(u64, Publish)| publish.qos == Qos::AtMostOnce;
        let (now, later) = std::mem::take(&mut self.waiting).into_iter().partition(is_now);
        self.waiting = later;
        for (key, publish) in now {
            self.waiting_bytes -= bytes_of(&publish);
            self.send(key, publish, peer, line);
        }
    }

    /// Each PUBREL again, for which no place is needed, and then each PUBLISH.
    fn resume(&mut self, line: &mut Line) {
        for (order, flight) in &mut self.flights {
            if flight.stage == Stage::Released {
                line.answer(Packet::PubRel(Ack::new(flight.id, Reason::SUCCESS)));
                self.on_the_way += 1;
            } else {
                flight.stage = Stage::Again;
                self.again.push_back(*order);
            }
        }
    }

    fn begin_anew(&mut self, line: &mut Line) {
        self.ids.clear();
        for (_, Flight { key, mut publish, stage, .. }) in
            std::mem::take(&mut self.flights).into_iter().rev()
        {
            if publish.qos == Qos::AtLeastOnce {
                publish.packet_id = None;
                publish.dup = false;
                self.waiting_bytes += bytes_of(&publish);
                self.waiting.push_front((key, publish));
            } else if stage == Stage::Released {
                // MQTT 5 §4.3.3: with its PUBREC the server has taken the message over.
                line.report(Output::Published { key, reason: Reason::SUCCESS });
            } else {
                line.report(Output::Failed { key, failure: Failure::SessionLost });
            }
        }
    }

    /// The connection is gone: so are the answers to wishes, and the aliases (§3.3.2.3.4).
    pub(super) fn close(&mut self, line: &mut Line) {
        self.peer = None;
        self.aliases.clear();
        self.again.clear();
        self.ids.retain(|_, used| {
            if let Use::Subscribe(key, _) | Use::Unsubscribe(key, _) = *used {
                line.report(Output::Failed { key, failure: Failure::Unconnected });
                return false;
            }
            true
        });
    }

    /// Sends what there is a place for.
    fn pump(&mut self, line: &mut Line) {
        let Some(peer) = self.peer else { return };
        while self.on_the_way < self.window
            && let Some(order) = self.again.pop_front()
        {
            self.send_again(order, peer, line);
        }
        // New ones after them: each quality stays in order (MQTT 5 §4.6, MQTT-4.6.0-6).
        while self.on_the_way < self.window && self.ids.len() < usize::from(u16::MAX) {
            let Some((key, publish)) = self.waiting.pop_front() else { return };
            self.waiting_bytes -= bytes_of(&publish);
            self.send(key, publish, peer, line);
        }
    }

    /// Sends a message for which there is a place, or reports why it cannot be sent.
    fn send(&mut self, key: u64, publish: Publish, peer: Peer, line: &mut Line) {
        if let Err(failure) = self.send_new(key, publish, peer, line) {
            line.report(Output::Failed { key, failure });
        }
    }

    /// A message again, with DUP (MQTT 5 §3.3.1.1, MQTT-3.3.1-1).
    fn send_again(&mut self, order: u64, peer: Peer, line: &mut Line) {
        let flight = self.flights.get_mut(&order).filter(|flight| flight.stage == Stage::Again);
        let Some(flight) = flight else { return };
        flight.stage = Stage::Sent;
        flight.publish.dup = true;
        let (key, id) = (flight.key, flight.id);
        if let Err(failure) = write(&flight.publish, &mut self.aliases, peer, line) {
            self.flights.remove(&order);
            self.ids.remove(&id);
            return line.report(Output::Failed { key, failure });
        }
        self.on_the_way += 1;
    }

    fn send_new(
        &mut self,
        key: u64,
        mut publish: Publish,
        peer: Peer,
        line: &mut Line,
    ) -> Result<(), Failure> {
        publish.dup = false;
        publish.packet_id = None;
        if publish.qos == Qos::AtMostOnce {
            write(&publish, &mut self.aliases, peer, line)?;
            line.report(Output::Published { key, reason: Reason::SUCCESS });
            return Ok(());
        }
        let id = self.free_id().ok_or(Failure::Full)?;
        publish.packet_id = Some(id);
        write(&publish, &mut self.aliases, peer, line)?;
        self.on_the_way += 1;
        let order = self.next_order;
        self.next_order += 1;
        self.last_id = id;
        self.ids.insert(id, Use::Flight(order));
        self.flights.insert(order, Flight { id, key, publish, stage: Stage::Sent });
        Ok(())
    }

    /// The next packet identifier that nothing uses (MQTT 5 §2.2.1, MQTT-2.2.1-3).
    fn free_id(&self) -> Option<u16> {
        let after = (self.last_id.saturating_add(1)..=u16::MAX).chain(1..=self.last_id);
        after.into_iter().find(|id| *id != 0 && !self.ids.contains_key(id))
    }

    /// A SUBSCRIBE.
    pub(super) fn subscribe(
        &mut self,
        key: u64,
        mut subscribe: Subscribe,
        line: &mut Line,
    ) -> Result<(), Failure> {
        let peer = self.peer.ok_or(Failure::Unconnected)?;
        peer.subscribes(&subscribe.filters, &subscribe.properties)?;
        subscribe.id = self.free_id().ok_or(Failure::Full)?;
        let (id, used) = (subscribe.id, Use::Subscribe(key, subscribe.filters.len()));
        self.wish(id, used, &Packet::Subscribe(subscribe), line)
    }

    /// An UNSUBSCRIBE.
    pub(super) fn unsubscribe(
        &mut self,
        key: u64,
        mut unsubscribe: Unsubscribe,
        line: &mut Line,
    ) -> Result<(), Failure> {
        if self.peer.is_none() {
            return Err(Failure::Unconnected);
        }
        unsubscribe.id = self.free_id().ok_or(Failure::Full)?;
        let (id, used) = (unsubscribe.id, Use::Unsubscribe(key, unsubscribe.filters.len()));
        self.wish(id, used, &Packet::Unsubscribe(unsubscribe), line)
    }

    fn wish(
        &mut self,
        id: u16,
        used: Use,
        packet: &Packet,
        line: &mut Line,
    ) -> Result<(), Failure> {
        if !line.fits(packet) {
            return Err(Failure::TooLarge);
        }
        line.write(packet).map_err(Failure::Invalid)?;
        self.last_id = id;
        self.ids.insert(id, used);
        Ok(())
    }

    /// The key of the SUBSCRIBE that is answered with so many reason codes; an answer to none is
    /// ignored.
    pub(super) fn subscribed(&mut self, id: u16, count: usize) -> Result<Option<u64>, Refused> {
        let Some(Use::Subscribe(key, filters)) = self.ids.get(&id).copied() else {
            return Ok(None);
        };
        self.ids.remove(&id);
        // MQTT 5 §3.8.4, MQTT-3.8.4-6.
        if filters != count {
            return Err(Refused::protocol("a SUBACK without a reason code for each filter"));
        }
        Ok(Some(key))
    }

    /// The key of the UNSUBSCRIBE that is answered, in MQTT 5 with so many reason codes.
    pub(super) fn unsubscribed(
        &mut self,
        id: u16,
        count: Option<usize>,
    ) -> Result<Option<u64>, Refused> {
        let Some(Use::Unsubscribe(key, filters)) = self.ids.get(&id).copied() else {
            return Ok(None);
        };
        self.ids.remove(&id);
        // MQTT 5 §3.11.3, MQTT-3.11.3-1.
        if count.is_some_and(|count| count != filters) {
            return Err(Refused::protocol("an UNSUBACK without a reason code for each filter"));
        }
        Ok(Some(key))
    }

    /// A PUBACK, PUBREC or PUBCOMP came (MQTT 5 §4.3). One for what is over, such as a copy of an
    /// answer, does nothing.
    pub(super) fn acknowledged(&mut self, packet: &Packet, line: &mut Line) -> Result<(), Refused> {
        let (ack, qos) = match packet {
            Packet::PubAck(ack) => (ack, Qos::AtLeastOnce),
            Packet::PubRec(ack) | Packet::PubComp(ack) => (ack, Qos::ExactlyOnce),
            _ => return Ok(()),
        };
        let (is_rec, is_comp) =
            (matches!(packet, Packet::PubRec(_)), matches!(packet, Packet::PubComp(_)));
        let used = self.ids.get(&ack.id).copied();
        let order = if let Some(Use::Flight(order)) = used { order } else { u64::MAX };
        let Some(flight) = self.flights.get_mut(&order) else {
            if is_rec {
                // MQTT 5 §3.6.2.1; before MQTT 5 it is the way to have the server forget it.
                let reason = Reason::PACKET_IDENTIFIER_NOT_FOUND;
                line.answer(Packet::PubRel(Ack::new(ack.id, reason)));
            }
            return Ok(());
        };
        if flight.publish.qos != qos {
            return Err(Refused::protocol("an answer that belongs to another QoS"));
        }
        let was_counted = flight.stage != Stage::Again;
        if is_rec && !ack.reason.is_failure() {
            flight.stage = Stage::Released;
            self.on_the_way += usize::from(!was_counted);
            // MQTT 5 §4.3.3: the server has the message now.
            flight.publish.payload = Bytes::new();
            line.answer(Packet::PubRel(Ack::new(ack.id, Reason::SUCCESS)));
            return Ok(());
        }
        if is_comp && flight.stage != Stage::Released {
            return Err(Refused::protocol("a PUBCOMP without a PUBREL"));
        }
        let key = flight.key;
        self.flights.remove(&order);
        self.ids.remove(&ack.id);
        self.on_the_way -= usize::from(was_counted);
        // That the server no longer knows the identifier at the end is no failure of the message.
        let reason = if is_comp { Reason::SUCCESS } else { ack.reason };
        line.report(Output::Published { key, reason });
        self.pump(line);
        Ok(())
    }
}

/// What a message costs while it waits.
fn bytes_of(publish: &Publish) -> usize {
    let properties = publish.properties.encoded_len();
    size_of::<(u64, Publish)>() + publish.topic.len() + publish.payload.len() + properties
}

/// Writes a message, by an alias of its topic where that is shorter.
fn write(
    publish: &Publish,
    aliases: &mut BTreeMap<Text, u16>,
    peer: Peer,
    line: &mut Line,
) -> Result<(), Failure> {
    peer.takes(publish)?;
    let aliased = if line.version() == Version::V5 { alias(publish, aliases, peer) } else { None };
    let sent = aliased.as_ref().unwrap_or(publish);
    if publish_len(sent, line.version()) > line.max_packet_bytes {
        return Err(Failure::TooLarge);
    }
    line.publish(sent).map_err(Failure::Invalid)?;
    if let Some(number) = sent.properties.number(Id::TOPIC_ALIAS) {
        let number = u16::try_from(number).unwrap_or_default();
        aliases.entry(publish.topic.to_owned_bytes()).or_insert(number);
    }
    Ok(())
}

/// The message with an alias (MQTT 5 §3.3.2.3.4): of a topic that has one it is in the topic's
/// place, of another it is set where there is one left. A topic no longer than the property stays.
fn alias(publish: &Publish, aliases: &BTreeMap<Text, u16>, peer: Peer) -> Option<Publish> {
    const PROPERTY_BYTES: usize = 3;
    if publish.topic.len() <= PROPERTY_BYTES {
        return None;
    }
    let known = aliases.get(&publish.topic).copied();
    let count = u16::try_from(aliases.len()).unwrap_or(u16::MAX);
    let is_left = count < peer.topic_alias_maximum.min(MAX_ALIASES);
    let number = known.or_else(|| is_left.then_some(count + 1))?;
    let mut sent = publish.clone();
    sent.properties.push(Id::TOPIC_ALIAS, Value::Number(number.into())).ok()?;
    if known.is_some() {
        sent.topic = Text::EMPTY;
    }
    Some(sent)
}

/// Whether a message may be published at all.
pub(super) fn check(publish: &Publish) -> Result<(), Failure> {
    check_name(publish.topic.as_bytes()).map_err(Failure::InvalidTopic)?;
    // MQTT 5 §3.3.4, MQTT-3.3.4-6.
    if publish.properties.has(Id::TOPIC_ALIAS)
        || publish.properties.has(Id::SUBSCRIPTION_IDENTIFIER)
    {
        let what = "a topic alias or subscription identifier in a message of the caller's";
        return Err(Failure::Invalid(Error::Caller { what }));
    }
    Ok(())
}
