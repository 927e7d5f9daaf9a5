//! One client that is connected, and what it is being sent.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::mqttsn::{Topic, set_dup};

use super::settings::Predefined;
use super::source::Source;
use super::topics::Topics;
use crate::core::Delivery;
use crate::ids::{SessionId, Ticket};

/// How a client stands to the gateway (MQTT-SN 1.2 §6.14, figure 4). One that is disconnected or
/// lost is none here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It gets what is published.
    Active,
    /// What is published waits.
    Asleep,
    /// It gets what waited when it asked, of which so much is left.
    Awake {
        /// Publications.
        left: usize,
    },
}

/// Whether a client answers publications of level 1 and 2, in this connection or in those of its
/// session before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Habit {
    /// It has had no occasion.
    Unknown,
    /// It has.
    Answers,
    /// It was there and did not. Nothing waits for its answers.
    Silent,
}

/// What a client asked for with CONNECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Connect {
    pub(super) name: Arc<str>,
    pub(super) clean: bool,
    pub(super) has_will: bool,
    pub(super) keep_alive: Duration,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) source: Source,
    pub(super) connect: Connect,
    pub(super) session: SessionId,
    /// Its session is one that it left.
    pub(super) present: bool,
    pub(super) phase: Phase,
    /// For how long it said that it would sleep.
    pub(super) sleep: Duration,
    /// When it connected.
    pub(super) since: Duration,
    /// When something came last.
    pub(super) heard: Duration,
    /// It has said more than CONNECT.
    pub(super) is_confirmed: bool,
    pub(super) topics: Topics,
    /// What it has not answered: one at a time (MQTT-SN 1.2 §6.10).
    pub(super) flight: Option<Flight>,
    /// Answers that wait for the store, in order.
    pub(super) held: VecDeque<(Ticket, Bytes)>,
    pub(super) habit: Habit,
    /// Its publications of level 2 that it has not released, in the order in which they came.
    pub(super) unreleased: VecDeque<u16>,
    /// Those that it has released last.
    pub(super) released: VecDeque<u16>,
    last_msg_id: u16,
}

/// What a client is to answer.
#[derive(Debug)]
pub(super) enum Step {
    /// A topic gets its id before the publication leaves.
    Register { topic_id: u16, delivery: Delivery },
    /// A publication of level 1 or 2.
    Publish { topic: Topic, delivery: Delivery },
    /// The msg id of one of level 2 is free.
    Release,
}

/// A message that is sent until it is answered.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) step: Step,
    pub(super) msg_id: u16,
    pub(super) message: Bytes,
    /// It leaves when this is written; 0 when it has left.
    pub(super) after: Ticket,
    pub(super) tries_left: u32,
    /// How often all tries were used up.
    pub(super) series: u32,
    /// When it left first.
    pub(super) first: Duration,
    /// When the first of these tries was.
    pub(super) since: Duration,
    /// How often the client has said that it does not know what it is about.
    pub(super) refusals: u32,
}

impl Flight {
    /// One that leaves at once; what it may be sent for is the gateway's.
    pub(super) fn new(step: Step, msg_id: u16, message: Bytes) -> Self {
        Self {
            step,
            msg_id,
            message,
            after: Ticket(0),
            tries_left: 0,
            series: 0,
            first: Duration::ZERO,
            since: Duration::ZERO,
            refusals: 0,
        }
    }

    /// It is sent once more.
    pub(super) fn mark_dup(&mut self) {
        let mut message = self.message.to_vec();
        set_dup(&mut message);
        self.message = message.into();
    }
}

impl Client {
    pub(super) fn new(
        now: Duration,
        source: Source,
        connect: Connect,
        session: SessionId,
        present: bool,
    ) -> Self {
        Self {
            source,
            connect,
            session,
            present,
            phase: Phase::Active,
            sleep: Duration::ZERO,
            since: now,
            heard: now,
            is_confirmed: false,
            topics: Topics::default(),
            flight: None,
            held: VecDeque::new(),
            habit: Habit::Unknown,
            unreleased: VecDeque::new(),
            released: VecDeque::new(),
            last_msg_id: 0,
        }
    }

    /// How long nothing may come: one and a half times what the client said, as MQTT has it
    /// (MQTT-SN 1.2 §6.11, §6.14); `longest` of one that said nothing.
    pub(super) fn patience(&self, longest: Duration) -> Duration {
        let period = match self.phase {
            Phase::Active if self.connect.keep_alive.is_zero() => longest,
            Phase::Active => self.connect.keep_alive,
            Phase::Asleep | Phase::Awake { .. } => self.sleep,
        };
        period.saturating_add(period / 2)
    }

    /// A msg id for a REGISTER; 0 is none (MQTT-SN 1.2 §5.3.7).
    pub(super) fn next_msg_id(&mut self) -> u16 {
        self.last_msg_id = self.last_msg_id.checked_add(1).unwrap_or(1);
        self.last_msg_id
    }

    /// How a name is said to the client; `None` where it has to be registered first. With
    /// `by_id` the client knows of no other way.
    pub(super) fn topic(
        &mut self,
        predefined: &Predefined,
        name: &Arc<str>,
        by_id: bool,
    ) -> Option<Topic> {
        if let Some(id) = self.topics.known_id(name) {
            return Some(Topic::Id(id));
        }
        if by_id {
            return None;
        }
        let short = || name.as_bytes().try_into().ok().map(Topic::Short);
        predefined.id(&self.connect.name, name).map(Topic::Predefined).or_else(short)
    }

    /// How long the session is to be kept, where that is not what was said: one of whom nothing is
    /// known but its CONNECT, which anybody may have sent, leaves nothing.
    pub(super) fn expiry(&self) -> Option<Duration> {
        (!self.is_confirmed && !self.present).then_some(Duration::ZERO)
    }
}
