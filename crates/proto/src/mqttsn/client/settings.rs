//! What a client is given, takes and says; its bounds.

use std::time::Duration;

use bytes::Bytes;

use super::super::{Code, Qos};

/// Requests that wait; a newer one is refused.
pub const MAX_REQUESTS: usize = 1024;
/// Publications of level 2 whose PUBREL has not come. A gateway has one outstanding
/// (MQTT-SN 1.2 §6.10); those of one that has more are forgotten in the order in which they came.
pub const MAX_UNRELEASED: usize = 64;
/// Those that are released last: a copy of one that was overtaken by its PUBREL is known as such.
pub const MAX_RELEASED: usize = 16;
/// Topics whose ids are known; those of more are not, and their publications are refused.
pub const MAX_TOPICS: usize = 4096;
/// Times that a name is registered anew because the gateway has forgotten its id.
pub const MAX_REGISTRATIONS: u32 = 4;

/// What a topic is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// Its name. One of two octets travels as it is; others get an id.
    Text(String),
    /// An id that the gateway knows beforehand (MQTT-SN 1.2 §6.7).
    Predefined(u16),
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// What a gateway publishes where a client is lost (MQTT-SN 1.2 §6.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Will {
    /// The topic.
    pub topic: String,
    /// The message.
    pub message: Bytes,
    /// The quality of service, 0 to 2.
    pub qos: Qos,
    /// Whether it is kept for later subscribers.
    pub retain: bool,
}

/// What a client is to do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who it is: 1 to 23 characters (MQTT-SN 1.2 §5.3.1).
    pub client_id: String,
    /// Whether the gateway forgets what it knows from before (MQTT-SN 1.2 §6.3).
    pub clean_session: bool,
    /// The will, if there is one.
    pub will: Option<Will>,
    /// The gateway hears of it at least so often; 0 where it need not. Whole seconds count.
    pub keep_alive: Duration,
    /// Between two transmissions of what is not answered (T_RETRY, MQTT-SN 1.2 §7.2: 10 to 15 s).
    pub retry_after: Duration,
    /// Transmissions after the first (N_RETRY, MQTT-SN 1.2 §7.2: 3 to 5).
    pub max_retries: u32,
    /// After a refusal for congestion (T_WAIT, MQTT-SN 1.2 §7.2: more than 5 minutes).
    pub wait_after_congestion: Duration,
    /// The first msg id. A client that forgets what it has sent begins elsewhere each time, so that
    /// a gateway does not take its first messages for those of before.
    pub first_msg_id: u16,
}

impl Settings {
    /// The defaults for a client of this name.
    #[must_use]
    pub fn new(client_id: &str) -> Self {
        Self {
            client_id: client_id.to_owned(),
            clean_session: true,
            will: None,
            keep_alive: Duration::from_secs(60),
            retry_after: Duration::from_secs(10),
            max_retries: 4,
            wait_after_congestion: Duration::from_secs(300),
            first_msg_id: 1,
        }
    }
}

/// What a client does of its own. One after the other, as MQTT-SN 1.2 §6.5, §6.6 and §6.9 ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Publish something.
    Publish {
        /// What it is about.
        topic: Name,
        /// The data.
        data: Bytes,
        /// The quality of service. One of −1 has no name but a short one (MQTT-SN 1.2 §6.8), and
        /// leaves at once, connected or not.
        qos: Qos,
        /// Whether it is kept for later subscribers.
        retain: bool,
    },
    /// Ask for publications.
    Subscribe {
        /// Which topics.
        filter: Name,
        /// The quality of service wanted, 0 to 2.
        qos: Qos,
    },
    /// Ask for them no more.
    Unsubscribe {
        /// Which topics.
        filter: Name,
    },
    /// Change the will, or delete it (MQTT-SN 1.2 §6.4).
    UpdateWill(Option<Will>),
}

/// What goes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A datagram of the gateway.
    Datagram(Bytes),
    /// Connect, again after a loss, or after sleep.
    Connect,
    /// Do something as soon as it can be done; ends with [`Output::Done`] or [`Output::Failed`].
    Request {
        /// The caller's number for it.
        request: u64,
        /// What.
        action: Action,
    },
    /// Sleep for so long at most; ends with [`Output::Asleep`] (MQTT-SN 1.2 §6.14).
    Sleep(Duration),
    /// Ask in sleep for what the gateway has kept; ends with [`Output::Asleep`].
    Fetch,
    /// Disconnect; ends with [`Output::Disconnected`].
    Disconnect,
    /// Time has passed.
    Wake,
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The gateway refused it.
    Refused(Code),
    /// It cannot be said in this protocol: a name, a level or a length.
    Invalid,
    /// Too many wait.
    Full,
}

/// What comes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A datagram for the gateway.
    Transmit(Bytes),
    /// The gateway has accepted the connection.
    Connected,
    /// The gateway has refused the connection.
    Refused(Code),
    /// A publication.
    Message {
        /// What it is about.
        topic: Name,
        /// The data.
        data: Bytes,
        /// The quality of service.
        qos: Qos,
        /// Whether the gateway had kept it.
        retain: bool,
    },
    /// A request is done.
    Done {
        /// The caller's number for it.
        request: u64,
        /// The level of a subscription, which may be less than what was asked for.
        granted: Option<Qos>,
    },
    /// A request has failed.
    Failed {
        /// The caller's number for it.
        request: u64,
        /// Why.
        reason: Reason,
    },
    /// The gateway knows that the client sleeps, and has sent what it kept.
    Asleep,
    /// The connection has ended, by either side.
    Disconnected,
    /// The gateway does not answer. What was requested waits for another connection.
    Lost,
    /// [`Input::Wake`] is due then.
    WakeAt(Duration),
}
