//! The machine itself: which part of the client an input or a packet is for.

use std::time::Duration;

use bytes::BytesMut;

use super::super::decode::take;
use super::super::id::Id;
use super::super::level::Version;
use super::super::packet::{
    Auth, ConnAck, Connect, Disconnect, Filter, Packet, Subscribe, Unsubscribe,
};
use super::super::property::{Properties, Value};
use super::super::reason::Reason;
use super::super::refused::Refused;
use super::super::text::Text;
use super::super::topic;
use super::alive::{Alive, Sign};
use super::line::Line;
use super::peer::Peer;
use super::receiving::Receiving;
use super::sending::{Sending, check};
use super::{Closed, Failure, Input, Output, Settings};
use crate::Error;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Closed,
    /// CONNECT was sent.
    Connecting,
    Open,
}

/// A client; see the module.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    link: Link,
    /// What came and is no whole packet yet.
    input: BytesMut,
    line: Line,
    alive: Alive,
    sending: Sending,
    receiving: Receiving,
    /// Whether a server has let it in before.
    has_been_open: bool,
    announced_wake_at: Option<Duration>,
}

impl Client {
    /// A client without a connection.
    ///
    /// # Errors
    ///
    /// [`Error`] where the CONNECT of the settings cannot be written.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let version = settings.connect.version;
        let properties = &settings.connect.properties;
        let own = |id, default| {
            let number = properties.number(id).filter(|_| version == Version::V5);
            number.map_or(default, |number| u16::try_from(number).unwrap_or(u16::MAX))
        };
        let receive_maximum = own(Id::RECEIVE_MAXIMUM, u16::MAX);
        let receiving = Receiving::new(receive_maximum, own(Id::TOPIC_ALIAS_MAXIMUM, 0));
        if let Some(will) = &settings.connect.will {
            topic::check_name(will.topic.as_bytes())
                .map_err(|_| Error::Caller { what: "a will whose topic is none" })?;
        }
        let client = Self {
            settings,
            link: Link::Closed,
            input: BytesMut::new(),
            line: Line::new(version),
            alive: Alive::default(),
            sending: Sending::new(),
            receiving,
            has_been_open: false,
            announced_wake_at: None,
        };
        let connect = Packet::Connect(Box::new(client.connect_packet()?));
        super::super::encode::encode(&connect, version, &mut Vec::new())?;
        Ok(client)
    }

    /// Whether the server has let it in and the connection stands.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.link == Link::Open
    }

    /// Messages to the server that have no end yet.
    #[must_use]
    pub fn open_messages(&self) -> usize {
        self.sending.open_messages()
    }

    /// Tells the client what happened.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        self.announced_wake_at = self.announced_wake_at.filter(|at| now < *at);
        match input {
            Input::Connected => self.connect(now),
            Input::Bytes(bytes) => self.read(now, &bytes),
            Input::Disconnected => self.close(Closed::Broken),
            Input::Publish { key, publish } => match check(&publish) {
                Ok(()) => self.sending.publish(key, publish, &mut self.line),
                Err(failure) => self.line.report(Output::Failed { key, failure }),
            },
            Input::Subscribe { key, filters, properties } => {
                self.subscribe(key, filters, properties);
            }
            Input::Unsubscribe { key, filters, properties } => {
                self.unsubscribe(key, filters, properties);
            }
            Input::Accept { receipt, reason } => {
                self.receiving.accept(receipt, reason, &mut self.line);
            }
            Input::Authenticate(auth) => self.authenticate(auth),
            Input::Disconnect(disconnect) => self.disconnect(disconnect),
            Input::Wake => {}
        }
        if std::mem::take(&mut self.line.has_written) {
            self.alive.sent(now);
        }
        self.check_alive(now);
    }

    /// What is to be done next; `None` when there is nothing more.
    pub fn poll_output(&mut self) -> Option<Output> {
        if let Some(output) = self.line.pop() {
            return Some(output);
        }
        if self.link == Link::Closed {
            return None;
        }
        let wake_at = self.alive.next().filter(|at| self.announced_wake_at != Some(*at))?;
        self.announced_wake_at = Some(wake_at);
        Some(Output::WakeAt(wake_at))
    }

    fn check_alive(&mut self, now: Duration) {
        if self.link == Link::Closed {
            return;
        }
        match self.alive.check(now) {
            Sign::Nothing => {}
            Sign::Ping => {
                self.line.answer(Packet::PingReq);
                self.line.has_written = false;
                self.alive.sent(now);
            }
            Sign::Dead => self.close(Closed::Unanswered),
        }
    }

    /// The CONNECT of the next connection.
    fn connect_packet(&self) -> Result<Connect, Error> {
        let mut connect = self.settings.connect.clone();
        let properties = &connect.properties;
        if connect.version == Version::V5 {
            let expiry_s = properties.number(Id::SESSION_EXPIRY_INTERVAL).unwrap_or(0);
            connect.clean_start &= !self.has_been_open || expiry_s == 0;
            let bytes = u32::try_from(self.settings.max_packet_bytes).unwrap_or(u32::MAX);
            if !properties.has(Id::MAXIMUM_PACKET_SIZE) {
                connect.properties.push(Id::MAXIMUM_PACKET_SIZE, Value::Number(bytes))?;
            }
        }
        Ok(connect)
    }

    fn connect(&mut self, now: Duration) {
        self.close(Closed::Broken);
        self.line.forget();
        // It was tried when the client was made; a longer identifier that the server assigned is
        // a string like any other.
        let Ok(connect) = self.connect_packet() else { return };
        self.line.max_packet_bytes = usize::MAX;
        self.link = Link::Connecting;
        self.alive = Alive::begin(now, self.settings.answer_timeout);
        self.line.answer(Packet::Connect(Box::new(connect)));
    }

    fn read(&mut self, now: Duration, bytes: &[u8]) {
        if self.link == Link::Closed {
            return;
        }
        self.alive.heard(now);
        self.input.extend_from_slice(bytes);
        let version = self.line.version();
        while self.link != Link::Closed {
            let taken = take(version, &mut self.input, self.settings.max_packet_bytes);
            let done = match taken {
                Ok(Some(packet)) => self.packet(packet),
                Ok(None) => break,
                Err(refused) => Err(refused),
            };
            if let Err(refused) = done {
                self.refuse(refused);
            }
        }
    }

    /// A packet came.
    fn packet(&mut self, packet: Packet) -> Result<(), Refused> {
        let is_open = self.link == Link::Open;
        let line = &mut self.line;
        match packet {
            Packet::ConnAck(connack) if !is_open => self.connack(connack),
            Packet::Auth(auth) => {
                line.report(Output::Authenticate(auth));
                Ok(())
            }
            Packet::Disconnect(disconnect) => {
                self.close(Closed::ByServer(disconnect));
                Ok(())
            }
            Packet::Publish(publish) if is_open => self.receiving.publish(publish, line),
            Packet::PubAck(_) | Packet::PubRec(_) | Packet::PubComp(_) if is_open => {
                self.sending.acknowledged(&packet, line)
            }
            Packet::PubRel(ack) if is_open => self.receiving.released(ack.id, line),
            Packet::SubAck(ack) if is_open => {
                if let Some(key) = self.sending.subscribed(ack.id, ack.reasons.len())? {
                    line.report(Output::Subscribed { key, ack });
                }
                Ok(())
            }
            Packet::UnsubAck(ack) if is_open => {
                let count = (line.version() == Version::V5).then_some(ack.reasons.len());
                if let Some(key) = self.sending.unsubscribed(ack.id, count)? {
                    line.report(Output::Unsubscribed { key, ack });
                }
                Ok(())
            }
            Packet::PingResp if is_open => Ok(()),
            _ => Err(Refused::protocol("a packet that a server may not send now")),
        }
    }

    /// MQTT 5 §3.2.
    fn connack(&mut self, connack: ConnAck) -> Result<(), Refused> {
        if connack.reason.is_failure() {
            self.close(Closed::Unwelcome(connack));
            return Ok(());
        }
        let was_clean = self.connect_packet().is_ok_and(|connect| connect.clean_start);
        // MQTT 5 §3.2.2.1.1, MQTT-3.2.2-4.
        if was_clean && connack.session_present {
            return Err(Refused::protocol("a session though none was wanted"));
        }
        let is_v31 = self.line.version() == Version::V31;
        let has_session = connack.session_present || is_v31 && !was_clean;
        let properties = &connack.properties;
        // MQTT 5 §3.2.2.3.14, MQTT-3.2.2-21.
        let keep_alive_s = properties.number(Id::SERVER_KEEP_ALIVE);
        let keep_alive_s = keep_alive_s.and_then(|seconds| u16::try_from(seconds).ok());
        self.alive.open(keep_alive_s.unwrap_or(self.settings.connect.keep_alive_s));
        // MQTT 5 §3.2.2.3.7: the next connection has it too.
        if let Some(id) = properties.text(Id::ASSIGNED_CLIENT_IDENTIFIER) {
            self.settings.connect.client_id = Text::try_from(id)?;
        }
        let peer = Peer::new(&connack);
        self.link = Link::Open;
        self.has_been_open = true;
        self.line.max_packet_bytes = peer.max_packet_bytes;
        self.line.report(Output::Open(connack));
        self.receiving.open(has_session);
        self.sending.open(peer, has_session, self.settings.max_in_flight, &mut self.line);
        Ok(())
    }

    /// The server sent what it may not send (MQTT 5 §4.13).
    fn refuse(&mut self, refused: Refused) {
        if self.line.version() == Version::V5 {
            self.line.answer(Packet::Disconnect(Disconnect::new(refused.disconnect_reason())));
        }
        self.close(Closed::Refused(refused));
    }

    fn close(&mut self, why: Closed) {
        if self.link == Link::Closed {
            return;
        }
        if why == Closed::Broken {
            self.line.forget();
        }
        self.link = Link::Closed;
        self.input = BytesMut::new();
        self.sending.close(&mut self.line);
        self.receiving.close();
        self.line.report(Output::Closed(why));
    }

    fn subscribe(&mut self, key: u64, filters: Vec<Filter>, properties: Properties) {
        let subscribe = Subscribe { id: 0, filters, properties };
        if let Err(failure) = self.sending.subscribe(key, subscribe, &mut self.line) {
            self.line.report(Output::Failed { key, failure });
        }
    }

    fn unsubscribe(&mut self, key: u64, filters: Vec<Text>, properties: Properties) {
        let invalid = filters.iter().find_map(|filter| topic::parts(filter.as_bytes()).err());
        let unsubscribe = Unsubscribe { id: 0, filters, properties };
        let done = match invalid {
            Some(refused) => Err(Failure::InvalidTopic(refused)),
            None => self.sending.unsubscribe(key, unsubscribe, &mut self.line),
        };
        if let Err(failure) = done {
            self.line.report(Output::Failed { key, failure });
        }
    }

    /// MQTT 5 §4.12; what cannot be written ends the connection.
    fn authenticate(&mut self, auth: Auth) {
        if self.link != Link::Closed
            && let Err(error) = self.line.write(&Packet::Auth(auth))
        {
            self.close(Closed::Invalid(error));
        }
    }

    /// MQTT 5 §3.14. Before MQTT 5 the will is published where no DISCONNECT came.
    fn disconnect(&mut self, disconnect: Disconnect) {
        if self.link == Link::Closed {
            return;
        }
        let wants_will = disconnect.reason == Reason::DISCONNECT_WITH_WILL;
        let is_said = self.line.version() == Version::V5 || !wants_will;
        if is_said && !self.line.answer(Packet::Disconnect(disconnect)) {
            // What cannot be said is left out: the will must not be published.
            self.line.answer(Packet::Disconnect(Disconnect::default()));
        }
        self.close(Closed::Asked);
    }
}
