//! What an operator sets for MQTT-SN.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Longest client id that is taken, in bytes. The standard has 23 characters (MQTT-SN 1.2 §5.3.1);
/// clients that are not so small have more.
pub(super) const MAX_CLIENT_ID_BYTES: usize = 128;

/// One of the shell's sockets.
#[derive(Clone, Debug)]
pub struct Listener {
    /// The gateway's id, as SEARCHGW and ADVERTISE tell it.
    pub gateway_id: u8,
    /// Nothing is ever sent: only publications of level −1 are taken (radio silence).
    pub one_way: bool,
    /// Publications of level −1 are taken, for which nobody shows who he is (MQTT-SN 1.2 §6.8).
    pub unconnected: bool,
    /// To whom the gateway says from time to time that it is there (MQTT-SN 1.2 §6.1).
    pub advertise_to: Vec<SocketAddr>,
    /// How often (T_ADV, MQTT-SN 1.2 §7.2: more than 15 minutes).
    pub advertise_interval: Duration,
}

impl Default for Listener {
    fn default() -> Self {
        Self {
            gateway_id: 1,
            one_way: false,
            unconnected: true,
            advertise_to: Vec::new(),
            advertise_interval: Duration::from_secs(900),
        }
    }
}

/// Topic ids that both sides know beforehand (MQTT-SN 1.2 §6.7).
#[derive(Clone, Debug, Default)]
pub struct Predefined {
    /// Those of all clients.
    pub all: BTreeMap<u16, Arc<str>>,
    /// Those of one client, by its id; they come before those of all.
    pub clients: BTreeMap<String, BTreeMap<u16, Arc<str>>>,
}

impl Predefined {
    /// The name of an id; of a client that is not known only those of all.
    pub(super) fn name(&self, client: Option<&str>, id: u16) -> Option<&Arc<str>> {
        let own = client.and_then(|client| self.clients.get(client)?.get(&id));
        own.or_else(|| self.all.get(&id))
    }

    /// The id of a name.
    pub(super) fn id(&self, client: &str, name: &str) -> Option<u16> {
        let find = |table: &BTreeMap<u16, Arc<str>>| {
            table.iter().find(|(_, known)| &***known == name).map(|(id, _)| *id)
        };
        let own = self.clients.get(client);
        own.and_then(find).or_else(|| {
            // What is one's own under the same id is another topic.
            find(&self.all).filter(|id| own.is_none_or(|own| !own.contains_key(id)))
        })
    }
}

/// What an operator sets for MQTT-SN.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The sockets, by the numbers that the shell has for them.
    pub listeners: BTreeMap<u16, Listener>,
    /// Topic ids that both sides know beforehand.
    pub predefined: Predefined,
    /// Between two transmissions of what a client does not answer (T_RETRY, MQTT-SN 1.2 §7.2: 10 to
    /// 15 s).
    pub retry_after: Duration,
    /// Transmissions after the first (N_RETRY, MQTT-SN 1.2 §7.2: 3 to 5).
    pub max_retries: u32,
    /// What a client has refused for congestion is sent again after this.
    pub wait_after_congestion: Duration,
    /// How long a session is kept that is not a clean one.
    pub session_expiry: Duration,
    /// How long a client may sleep at most.
    pub max_sleep: Duration,
    /// Clients at once. Of those that have said no more than CONNECT the oldest makes room.
    pub max_clients: usize,
    /// Those of one address, with all nodes behind a forwarder there.
    pub max_clients_per_address: usize,
    /// Topic ids of one client.
    pub max_topics: usize,
    /// Longest datagram to a client, in bytes.
    pub max_datagram_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listeners: BTreeMap::new(),
            predefined: Predefined::default(),
            retry_after: Duration::from_secs(10),
            max_retries: 4,
            wait_after_congestion: Duration::from_secs(60),
            session_expiry: Duration::from_secs(24 * 3600),
            max_sleep: Duration::from_secs(18 * 3600),
            max_clients: 10_000,
            max_clients_per_address: 1000,
            max_topics: 1024,
            max_datagram_bytes: 1472,
        }
    }
}
