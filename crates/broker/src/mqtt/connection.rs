//! One connection.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use proto::mqtt::{Connect, Packet, Reason, Version, encode, shorten};

use super::MAX_CONNECT_WAIT;
use super::bridge::{Bridge, End};
use crate::coded::Uncoder;
use crate::ids::{ConnectionId, SessionId, Ticket};
use crate::outputs::Context;

/// How far a connection is.
#[derive(Debug)]
pub(super) enum Phase {
    /// Nothing was said.
    Waiting,
    /// The client has said who it is, and whether that is so is being found out.
    Login(Box<Connect>),
    /// It is a bridge of this broker, which has said who it is.
    Greeting(u16),
    /// It has its session.
    Open(Box<Open>),
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) phase: Phase,
    /// Bytes of packets that are not whole, or have to wait.
    pub(super) input: BytesMut,
    /// They have memory of their own, not of what was read.
    pub(super) is_input_own: bool,
    /// What has to be decoded before, from some time on.
    pub(super) coded: Option<Box<Uncoder>>,
    /// When something came last.
    pub(super) heard: Duration,
    /// Who the client's certificate says it is.
    pub(super) certified: Option<Arc<str>>,
    /// That of a bridge until it has its session.
    pub(super) greeting_version: Version,
}

/// A connection with a session.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) session: SessionId,
    pub(super) version: Version,
    /// Whether the client has said, before MQTT 5, that it is a bridge of another broker.
    pub(super) is_bridge: bool,
    /// Longest packet that the client takes.
    pub(super) max_bytes: usize,
    /// How long the session is kept, as was asked at the beginning.
    pub(super) expiry: Duration,
    pub(super) keep_alive: Option<Duration>,
    /// Topics that the client sends as a number.
    pub(super) aliases: BTreeMap<u16, Arc<str>>,
    /// Topics that the client takes as a number, and how many it takes (MQTT 5 §3.1.2.11.5).
    pub(super) numbered: BTreeMap<Arc<str>, u16>,
    pub(super) max_numbered: u16,
    /// Acknowledgements that wait for the store, in order.
    pub(super) held: VecDeque<(Ticket, Packet)>,
    /// What it has as a bridge between brokers, of this one or the other.
    pub(super) end: Option<Box<End>>,
}

impl Connection {
    pub(super) fn new(certified: Option<Arc<str>>) -> Self {
        Self {
            phase: Phase::Waiting,
            input: BytesMut::new(),
            is_input_own: true,
            coded: None,
            heard: Duration::ZERO,
            certified,
            greeting_version: Version::V311,
        }
    }

    /// Bytes have come.
    pub(super) fn feed(&mut self, bytes: BytesMut) {
        if let Some(coded) = &mut self.coded {
            coded.feed(&bytes);
        } else if self.input.is_empty() {
            self.input = bytes;
            self.is_input_own = false;
        } else {
            self.input.extend_from_slice(&bytes);
        }
    }

    /// What comes behind the last packet is coded.
    pub(super) fn begin_coded(&mut self) {
        let rest = std::mem::take(&mut self.input);
        self.coded = Some(Box::new(Uncoder::new(BytesMut::from(&*rest))));
        self.is_input_own = true;
    }

    /// What is left of the input has memory of its own: it may be a few bytes of what was read for
    /// all connections, which they would keep.
    pub(super) fn settle_input(&mut self) {
        if self.input.is_empty() {
            self.input = BytesMut::new();
        } else if !self.is_input_own {
            self.input = BytesMut::from(&*self.input);
            self.is_input_own = true;
        }
    }

    /// The version, or the newest until one was said.
    pub(super) fn version(&self) -> Version {
        match &self.phase {
            Phase::Open(open) => open.version,
            Phase::Login(connect) => connect.version,
            Phase::Waiting | Phase::Greeting(_) => self.greeting_version,
        }
    }

    /// How long nothing may come: one and a half times the keep alive (MQTT 5 §3.1.2.10).
    pub(super) fn patience(&self) -> Duration {
        match &self.phase {
            Phase::Open(open) => open
                .keep_alive
                .map_or(Duration::MAX, |keep_alive| keep_alive.saturating_add(keep_alive / 2)),
            _ => MAX_CONNECT_WAIT,
        }
    }
}

impl Open {
    /// Sends a packet, unless it is longer than the client takes (MQTT 5 §3.1.2.11.4).
    pub(super) fn send(&self, context: &mut Context<'_>, id: ConnectionId, mut packet: Packet) {
        if !shorten(&mut packet, self.version, self.max_bytes) {
            return;
        }
        if let Some(out) = context.outputs.writer(id) {
            // What this side makes can be said, by construction.
            let _ = encode(&packet, self.version, out);
        }
    }

    /// Sends an acknowledgement once the store has what it is for, behind those before it.
    pub(super) fn acknowledge(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        ticket: Ticket,
        packet: Packet,
    ) {
        if self.held.is_empty() && ticket <= context.core.journal.done() {
            self.send(context, id, packet);
        } else {
            self.held.push_back((ticket, packet));
        }
    }

    /// Sends what waits no more; what is behind the CONNACK may be coded.
    pub(super) fn flush(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        done: Ticket,
        is_coded: bool,
    ) {
        if self.is_greeting()
            && let Some((_, packet)) = self.held.pop_front_if(|(ticket, _)| *ticket <= done)
        {
            self.send(context, id, packet);
            if is_coded {
                context.outputs.code(id);
            }
            // What waits for this client has waited for that.
            context.core.poke(self.session);
        }
        if self.is_greeting() {
            return;
        }
        while self.held.front().is_some_and(|(ticket, _)| *ticket <= done) {
            if let Some((_, packet)) = self.held.pop_front() {
                self.send(context, id, packet);
            }
        }
    }

    /// The bridge of this broker that it is, if it is one.
    pub(super) fn bridge(&self) -> Option<&Bridge> {
        Some(&self.end.as_ref()?.bridge.as_ref()?.1)
    }

    /// Whether this side is the client.
    pub(super) fn is_bridge(&self) -> bool {
        self.bridge().is_some()
    }

    /// The reason of a DISCONNECT; some are of a server alone (MQTT 5 §3.14.2.1).
    pub(super) fn may_say(&self, reason: Reason) -> Reason {
        match reason {
            _ if !self.is_bridge() => reason,
            Reason::SERVER_SHUTTING_DOWN => Reason::NORMAL_DISCONNECTION,
            Reason::MALFORMED_PACKET
            | Reason::PROTOCOL_ERROR
            | Reason::TOPIC_NAME_INVALID
            | Reason::RECEIVE_MAXIMUM_EXCEEDED
            | Reason::TOPIC_ALIAS_INVALID
            | Reason::PACKET_TOO_LARGE
            | Reason::QUOTA_EXCEEDED => reason,
            _ => Reason::UNSPECIFIED_ERROR,
        }
    }

    /// Whether the CONNACK waits: nothing comes before it.
    pub(super) fn is_greeting(&self) -> bool {
        matches!(self.held.front(), Some((_, Packet::ConnAck(_))))
    }

    /// Answers that wait, but for the CONNACK.
    pub(super) fn unanswered(&self) -> usize {
        self.held.len() - usize::from(self.is_greeting())
    }

    /// Whether an acknowledgement waits.
    pub(super) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }
}
