//! What the broker holds for a client, with a connection or without.

mod inflight;
mod queue;
mod subscriptions;
mod table;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::ids::{ClientKey, ConnectionId, Principal, Protocol};
use crate::publication::{Grade, Publication};

pub(crate) use inflight::{Again, Flying, Inflight, Phase};
pub(crate) use queue::Entry;
pub(crate) use subscriptions::Subscriptions;
pub(crate) use table::Sessions;
pub(crate) use waiting::{Turn, Waiting};

/// What a client wants published when it is gone without a word (MQTT 5 §3.1.2.5).
#[derive(Clone, Debug, PartialEq)]
pub struct Will {
    /// The message. Its deadline counts from when it is published.
    pub publication: Publication,
    /// How long it is of use once published.
    pub expiry: Option<Duration>,
    /// How long the client may be away before (MQTT 5 §3.1.3.2.2).
    pub delay: Duration,
}

/// When a subscriber gets what is retained (MQTT 5 §3.8.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetainHandling {
    /// Whenever it subscribes.
    #[default]
    Always,
    /// If it had no such subscription.
    IfNew,
    /// Never.
    Never,
}

/// What a client subscribes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// The filter, with `$share/group/` before it where it is shared.
    pub filter: String,
    /// The highest grade.
    pub grade: Grade,
    /// Nothing of its own.
    pub no_local: bool,
    /// The retain flag arrives as it was published.
    pub as_published: bool,
    /// When retained messages come.
    pub handling: RetainHandling,
    /// What the client calls it; 0: nothing.
    pub identifier: u32,
}

impl Subscription {
    /// A subscription to a filter as MQTT 3.1.1 has it.
    #[must_use]
    pub fn new(filter: impl Into<String>, grade: Grade) -> Self {
        Self {
            filter: filter.into(),
            grade,
            no_local: false,
            as_published: false,
            handling: RetainHandling::Always,
            identifier: 0,
        }
    }
}

/// What was granted of a subscription, by the session's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) grade: Grade,
    pub(crate) no_local: bool,
    pub(crate) as_published: bool,
    pub(crate) identifier: u32,
}

/// Retained messages that are still to be given for a filter.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) filter: Arc<str>,
    pub(crate) granted: Granted,
    /// The topic that was the last to be looked at.
    pub(crate) after: Option<Arc<str>>,
}

/// Everything of one client.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) key: ClientKey,
    pub(crate) user: Option<Arc<str>>,
    /// Whose words it publishes.
    pub(crate) principal: Principal,
    pub(crate) connection: Option<ConnectionId>,
    /// How long it is kept without a connection.
    pub(crate) expiry: Duration,
    /// It is in the store.
    pub(crate) stored: bool,
    /// Messages that the client takes without having acknowledged one.
    pub(crate) window: u16,
    pub(crate) will: Option<Box<Will>>,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) walks: Vec<Walk>,
    pub(crate) queue: Waiting,
    pub(crate) inflight: Inflight,
    /// Numbers of messages of grade 2 that the client has not released (MQTT 5 §4.3.3).
    pub(crate) inbound: BTreeSet<u16>,
    /// What its protocol keeps with it, by the protocol's numbers.
    pub(crate) notes: BTreeMap<u32, Bytes>,
    /// It stands in the list of those that have something.
    pub(crate) is_ready: bool,
    /// Its owner takes nothing for the time being.
    pub(crate) is_asleep: bool,
    /// It is an adapter's own, which sees to the rules of access of whom it gives things to.
    pub(crate) is_trusted: bool,
    /// The last number given to an entry.
    pub(crate) last_number: u64,
}

impl Session {
    /// One that holds nothing.
    pub(crate) fn new(key: ClientKey, user: Option<Arc<str>>, expiry: Duration) -> Self {
        Self {
            key,
            user,
            principal: Principal::UNSAID,
            connection: None,
            expiry,
            stored: false,
            window: u16::MAX,
            will: None,
            subscriptions: Subscriptions::default(),
            walks: Vec::new(),
            queue: Waiting::default(),
            inflight: Inflight::default(),
            inbound: BTreeSet::new(),
            notes: BTreeMap::new(),
            is_ready: false,
            is_asleep: false,
            is_trusted: false,
            last_number: 0,
        }
    }

    /// Whether something can be given to its connection now.
    pub(crate) fn has_something(&self) -> bool {
        self.inflight.has_again() || !self.walks.is_empty() || self.queue.len() > 0
    }

    /// What is the state of a topic waits for it, also of grade 0, while it has no connection; a
    /// newer state takes the place of an older one.
    pub(crate) fn keeps_state(&self) -> bool {
        self.key.protocol == Protocol::Bridge
    }

    /// The next number of an entry.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}
