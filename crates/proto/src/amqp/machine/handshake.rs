//! How a connection begins: protocol headers, SASL, open (AMQP 1.0 Part 2 §2.2, §2.4.1, Part 5
//! §5.3.2).

use std::time::Duration;

use super::Connection;
use super::io::Fault;
use super::settings::{MAX_CHANNEL, MAX_FRAME_BYTES, MIN_IDLE_TIME_OUT_MS, Output, Settings};
use crate::amqp::frame::{self, HEADER_BYTES, Kind, MIN_MAX_FRAME_BYTES, Protocol};
use crate::amqp::performative::{ErrorInfo, Open, Performative, condition};
use crate::amqp::sasl::{Code, Frame, Mechanism, credentials};
use crate::amqp::types::{Symbol, Value};

/// How far a connection is.
#[derive(Debug)]
pub(super) enum Phase {
    /// A protocol header is awaited.
    Header {
        /// Whether the peer is known already.
        is_behind_sasl: bool,
    },
    /// The peer's choice of a mechanism is awaited.
    Sasl,
    /// The application is to say whether the peer is who it says.
    Authenticating,
    /// The peer's open is awaited.
    Open,
    /// The application is to say whether the peer is welcome.
    Opening,
    /// Both sides have opened.
    Running,
    /// This side has closed, and the peer has not.
    Closing,
    /// It is over.
    Closed,
}

impl Phase {
    /// Whether nothing goes on before the application has said something.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self, Self::Authenticating | Self::Opening)
    }
}

impl Connection {
    /// The protocol header that the peer begins with.
    pub(super) fn header(&mut self, header: [u8; HEADER_BYTES], is_behind_sasl: bool) {
        let has_sasl = !self.settings.mechanisms.is_empty();
        let allows_plain = is_behind_sasl || !has_sasl || self.settings.allows_no_sasl;
        match Protocol::of(header) {
            Some(Protocol::Amqp) if allows_plain => {
                self.io.wire.extend_from_slice(&Protocol::Amqp.header());
                self.phase = Phase::Open;
            }
            Some(Protocol::Sasl) if has_sasl && !is_behind_sasl => {
                self.io.wire.extend_from_slice(&Protocol::Sasl.header());
                let name = |it: &Mechanism| Symbol::new(it.name());
                let names = self.settings.mechanisms.iter().map(name).collect();
                self.send_sasl(&Frame::Mechanisms(names));
                self.phase = Phase::Sasl;
            }
            _ => self.refuse_header(),
        }
    }

    /// AMQP 1.0 Part 2 §2.2: whoever speaks something else is told what is spoken here.
    pub(super) fn refuse_header(&mut self) {
        let has_sasl = !self.settings.mechanisms.is_empty();
        let needs_sasl = has_sasl && matches!(self.phase, Phase::Header { is_behind_sasl: false });
        let protocol = if needs_sasl { Protocol::Sasl } else { Protocol::Amqp };
        self.io.wire.extend_from_slice(&protocol.header());
        let what = "a protocol header that is not of AMQP 1.0 as it is spoken here";
        self.finish(Some(ErrorInfo::new(condition::NOT_IMPLEMENTED, what)), true);
    }

    fn send_sasl(&mut self, frame: &Frame) {
        frame::encode(&mut self.io.wire, Kind::Sasl, 0, |out| frame.encode(out));
    }

    /// A frame where the peer's choice of a mechanism is awaited.
    pub(super) fn sasl(&mut self, frame: &frame::Frame) {
        let known = match (frame.kind, Frame::decode(&frame.body)) {
            (Kind::Sasl, Ok(Frame::Init { mechanism, initial_response, hostname })) => {
                let is_offered = |it: &Mechanism| it.name() == mechanism.as_str();
                let is_offered = self.settings.mechanisms.iter().any(is_offered);
                let response = initial_response.unwrap_or_default();
                let known = credentials(&mechanism, &response).ok().flatten();
                known.filter(|_| is_offered).map(|known| (known, hostname))
            }
            _ => None,
        };
        match known {
            Some((credentials, hostname)) => {
                self.phase = Phase::Authenticating;
                self.io.say(Output::Authenticate { credentials, hostname });
            }
            None => self.outcome(Code::Auth),
        }
    }

    /// The application has said whether the peer is who it says.
    pub(super) fn authenticated(&mut self, code: Code) {
        if matches!(self.phase, Phase::Authenticating) {
            self.outcome(code);
        } else {
            self.io.misused();
        }
    }

    fn outcome(&mut self, code: Code) {
        self.send_sasl(&Frame::Outcome(code));
        if code == Code::Ok {
            self.phase = Phase::Header { is_behind_sasl: true };
        } else {
            let what = "the peer did not show who it is";
            self.finish(Some(ErrorInfo::new(condition::UNAUTHORIZED_ACCESS, what)), true);
        }
    }

    /// The peer's open.
    pub(super) fn peer_opened(&mut self, open: Box<Open>) -> Result<(), Fault> {
        if open.max_frame_size < MIN_MAX_FRAME_BYTES {
            let what = "max-frame-size below 512";
            return Err(Fault::connection(condition::INVALID_FIELD, what));
        }
        let longest = open.max_frame_size.min(MAX_FRAME_BYTES);
        self.io.max_frame_bytes = usize::try_from(longest).unwrap_or(usize::MAX);
        self.channel_max = open.channel_max;
        // AMQP 1.0 Part 2 §2.4.5: zero is as well none.
        let idle = open.idle_time_out_ms.filter(|idle| *idle > 0);
        if idle.is_some_and(|idle| idle < MIN_IDLE_TIME_OUT_MS) {
            return Err(Fault::connection(condition::NOT_ALLOWED, "idle-time-out is too short"));
        }
        self.peer_idle = idle.map(|idle| Duration::from_millis(idle.into()));
        self.phase = Phase::Opening;
        self.io.say(Output::Opened(open));
        Ok(())
    }

    /// The application takes the peer.
    pub(super) fn open(&mut self) {
        if matches!(self.phase, Phase::Opening) {
            self.send_open(false);
            self.phase = Phase::Running;
            self.deadline = None;
            self.heard_at = self.now;
        } else {
            self.io.misused();
        }
    }

    /// This side's open; where a close follows it says so, which clients of JMS understand.
    pub(super) fn send_open(&mut self, is_refusal: bool) {
        let Settings { container_id, idle_timeout, offered_capabilities, properties, .. } =
            &self.settings;
        let mut open = Open::new(container_id);
        open.max_frame_size = MAX_FRAME_BYTES;
        open.channel_max = MAX_CHANNEL;
        // AMQP 1.0 Part 2 §2.4.5: half of the time, as what was sent may be late.
        let announced = idle_timeout.map(|idle| idle.as_millis() / 2);
        open.idle_time_out_ms = announced.and_then(|idle| u32::try_from(idle).ok());
        open.offered_capabilities.clone_from(offered_capabilities);
        open.properties.clone_from(properties);
        if is_refusal {
            let key = Value::symbol("amqp:connection-establishment-failed");
            open.properties.push((key, Value::Bool(true)));
        }
        self.io.send(0, &Performative::Open(Box::new(open)));
    }
}
