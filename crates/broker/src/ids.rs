//! By what things are known.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Users and bridges whose publications are compressed; those of others are not.
const MAX_PRINCIPALS: usize = 10_000;

/// A connection of a client, or what stands for one; the shell gives the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// A client's session; the number is given again when a session has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(crate) u32);

impl SessionId {
    /// Where it is in a table.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A protocol that publications come and go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// MQTT 3.1, 3.1.1 and 5.
    Mqtt,
    /// MQTT-SN 1.2.
    MqttSn,
    /// MQTT/UDP.
    MqttUdp,
    /// AMQP 1.0.
    Amqp,
    /// AMQP 0.9.1.
    Amqp091,
    /// WS-Notification 1.3.
    Wsn,
    /// A bridge of this broker to another.
    Bridge,
    /// Members of a mesh.
    Mesh,
    /// The broker itself.
    Broker,
}

impl Protocol {
    /// Every one, with the name that events, the store and metrics use.
    pub const NAMES: [(Self, &'static str); 9] = [
        (Self::Mqtt, "mqtt"),
        (Self::MqttSn, "mqtt-sn"),
        (Self::MqttUdp, "mqtt-udp"),
        (Self::Amqp, "amqp"),
        (Self::Amqp091, "amqp091"),
        (Self::Wsn, "wsn"),
        (Self::Bridge, "bridge"),
        (Self::Mesh, "mesh"),
        (Self::Broker, "broker"),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(protocol, _)| *protocol == self).map_or("", |(_, name)| name)
    }

    /// The one that has a name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(protocol, _)| *protocol)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who a session is of: a name within a protocol, so that the same name in two protocols is two
/// clients.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientKey {
    /// The protocol.
    pub protocol: Protocol,
    /// The client identifier, container and link, or what the protocol has.
    pub name: Arc<str>,
}

impl fmt::Display for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.protocol, self.name)
    }
}

/// A number that grows with what has been written to the store: what was given a ticket is safe
/// when [`crate::Input::Persisted`] has said that number or a greater one. 0 is safe at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Somebody whose publications may shorten one another where they are compressed together: what is
/// compressed with what somebody else has said would tell its length to who watches an encrypted
/// link. A number of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Principal(u64);

impl Principal {
    /// It is to be found out by the publisher's session.
    pub const UNSAID: Self = Self(0);
    /// Nobody knows; not the same as any other.
    pub const UNKNOWN: Self = Self(1);

    /// Whether publications of it may be compressed together.
    pub(crate) fn is_known(self) -> bool {
        self > Self::UNKNOWN
    }
}

/// The numbers of principals.
#[derive(Debug)]
pub(crate) struct Principals {
    last: u64,
    // bound: users of the configuration, and bridges
    known: BTreeMap<(bool, Option<Arc<str>>), Principal>,
}

impl Default for Principals {
    fn default() -> Self {
        Self { last: Principal::UNKNOWN.0, known: BTreeMap::new() }
    }
}

impl Principals {
    /// One that nobody has had.
    pub(crate) fn add(&mut self) -> Principal {
        self.last += 1;
        Principal(self.last)
    }

    /// The one of who has a session: its user, all who have none together; a bridge's own.
    pub(crate) fn of(&mut self, client: &ClientKey, user: Option<&Arc<str>>) -> Principal {
        let key = match client.protocol {
            Protocol::Bridge => (true, Some(client.name.clone())),
            _ => (false, user.cloned()),
        };
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        if self.known.len() >= MAX_PRINCIPALS {
            return Principal::UNKNOWN;
        }
        let principal = self.add();
        self.known.insert(key, principal);
        principal
    }
}
