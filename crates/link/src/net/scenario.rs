//! What a scenario consists of.

use crate::losses::{Losses, NodeId};
use crate::medium::{MediumConfig, PortId};
use crate::propagation::Model;
use crate::terrain::HeightGrid;
use crate::tracks::Track;
use std::fmt::Debug;
use std::time::Duration;

/// Most nodes of a scenario: more hosts than one machine is to run programs on.
pub const MAX_NODES: usize = 400;

/// Most channels of a scenario.
pub const MAX_MEDIA: usize = 64;

/// Most groups of a scenario.
pub const MAX_GROUPS: usize = 256;

/// Most messages of a scenario's script.
pub const MAX_MESSAGES: usize = 20_000;

/// Most cases of a scenario.
pub const MAX_CASES: usize = 32;

/// A scenario whose values were checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What it is called.
    pub title: String,
    /// What it is about, in a few sentences.
    pub about: String,
    /// How long it lasts.
    pub duration: Duration,
    /// How often path losses and routes are calculated.
    pub step: Duration,
    /// Decides every chance: shadowing, and in a run contention and reception.
    pub seed: u64,
    /// The ground, where there is one.
    pub ground: Option<HeightGrid>,
    /// The channels.
    pub media: Vec<NetMedium>,
    /// The nodes; the first has number 1.
    pub nodes: Vec<Node>,
    /// Nodes that are addressed as one.
    pub groups: Vec<Group>,
    /// Who sends what to whom, in order of time.
    pub messages: Vec<ScriptedMessage>,
    /// How the messages are sent, one case after another.
    pub cases: Vec<Case>,
    /// Times that the nodes' services are set to, by the keys of their configuration.
    pub service: Vec<(String, Duration)>,
}

/// A channel that some nodes share.
#[derive(Clone, Debug, PartialEq)]
pub struct NetMedium {
    /// Its name, of no other channel.
    pub name: String,
    /// `wideband` or `narrowband`: what its settings began with.
    pub kind: &'static str,
    /// Hz.
    pub frequency_hz: f64,
    /// Its radios and who sends when. Ports are its nodes in the scenario's order.
    pub config: MediumConfig,
    /// Where its path losses come from.
    pub path_loss: PathLoss,
    /// What its nodes send for a protocol of routing; none for nothing.
    pub routing: Option<Routing>,
}

/// Airtime that is charged for a protocol of routing: each node of the channel sends so much to all
/// of them. The routes themselves are calculated, whatever is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routing {
    /// IP bytes.
    pub bytes: u32,
    /// How often.
    pub interval: Duration,
}

/// Where path losses come from.
#[derive(Clone, Debug, PartialEq)]
pub enum PathLoss {
    /// From a model, the places of the nodes and the ground.
    Predicted(Model),
    /// From a file, by the numbers of nodes.
    Replayed(Losses),
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its number, from 1.
    pub id: NodeId,
    /// Its name, of no other node or group.
    pub name: String,
    /// Where it is; none where all its path losses are from a file that tells no places.
    pub track: Option<Track>,
    /// Its radios, one a channel at most.
    pub radios: Vec<NodeRadio>,
}

/// A radio of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRadio {
    /// Place of the channel in [`Scenario::media`].
    pub medium: usize,
    /// The antenna's height above ground, in metres.
    pub antenna_m: f64,
    /// Output power in dBm.
    pub power_dbm: f64,
}

/// Nodes that are addressed as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name, of no node or other group.
    pub name: String,
    /// Its nodes by number, in order.
    pub nodes: Vec<NodeId>,
}

/// A message of the script. Words are those of the messaging service, as it was checked by them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptedMessage {
    /// Since the scenario's start.
    pub at: Duration,
    /// Who sends it.
    pub from: NodeId,
    /// Names of nodes and groups.
    pub to: Vec<String>,
    /// `flash`, `immediate`, `priority`, `routine`.
    pub precedence: String,
    /// `free-text` or another.
    pub kind: String,
    /// `reliable`, `best-effort`.
    pub delivery: String,
    /// `delivered`, `read`, `none`.
    pub receipt: String,
    /// How long it is worth to be delivered; none for as long as the service says.
    pub validity: Option<Duration>,
    /// What it says.
    pub text: String,
}

/// How the messages of a scenario are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its name in tables, as `HTTP/JSON`.
    pub name: String,
    /// Over what.
    pub transport: Transport,
    /// Written how.
    pub format: Format,
    /// Where and how messages are published, where the transport is of a broker or of none.
    pub topics: Option<Topics>,
    /// Times of the nodes' services that are other than [`Scenario::service`] in this case.
    pub service: Vec<(String, Duration)>,
}

impl Case {
    /// The name in the characters of a file's: small letters, digits and `-`.
    #[must_use]
    pub fn file_name(&self) -> String {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        self.name.to_lowercase().chars().map(plain).collect()
    }
}

/// How messages are published, rather than sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topics {
    /// The node with the broker; none where there is no broker.
    pub broker: Option<NodeId>,
    /// Which one it is.
    pub server: BrokerServer,
    /// Quality of service, 0 to 2.
    pub qos: u8,
}

/// A broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokerServer {
    /// That of longwire.
    Longwire,
    /// Mosquitto, of MQTT.
    Mosquitto,
}

impl BrokerServer {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Longwire, Self::Mosquitto];

    /// Its name in files and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Longwire => "longwire",
            Self::Mosquitto => "mosquitto",
        }
    }
}

/// What carries messages from node to node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// HTTP over TCP.
    Http,
    /// HTTP through a pair of longwire over TCP.
    PairTcp,
    /// HTTP through a pair of longwire over burst.
    PairBurst,
    /// HTTP through a pair of longwire that chooses its carrier.
    Pair,
    /// CoAP over UDP, confirmable.
    CoapUdp,
    /// CoAP over UDP with OSCORE.
    CoapOscore,
    /// CoAP over TCP.
    CoapTcp,
    /// CoAP over UDP, to groups by multicast.
    CoapMulticast,
    /// MQTT, published to a broker.
    Mqtt,
    /// MQTT-SN over UDP, published to a broker that is its gateway, too.
    MqttSn,
    /// WS-Notification over HTTP, published to a broker.
    Wsn,
    /// MQTT/UDP, published to whoever listens.
    MqttUdp,
}

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// JSON.
    Json,
    /// XML.
    Xml,
    /// CBOR.
    Cbor,
    /// EXI.
    Exi,
}

impl Transport {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Http,
        Self::PairTcp,
        Self::PairBurst,
        Self::Pair,
        Self::CoapUdp,
        Self::CoapOscore,
        Self::CoapTcp,
        Self::CoapMulticast,
        Self::Mqtt,
        Self::MqttSn,
        Self::Wsn,
        Self::MqttUdp,
    ];

    /// Its name in files and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::PairTcp => "pair-tcp",
            Self::PairBurst => "pair-burst",
            Self::Pair => "pair",
            Self::CoapUdp => "coap-udp",
            Self::CoapOscore => "coap-oscore",
            Self::CoapTcp => "coap-tcp",
            Self::CoapMulticast => "coap-multicast",
            Self::Mqtt => "mqtt",
            Self::MqttSn => "mqtt-sn",
            Self::Wsn => "wsn",
            Self::MqttUdp => "mqtt-udp",
        }
    }

    /// Whether messages are published to a broker.
    #[must_use]
    pub fn has_broker(self) -> bool {
        matches!(self, Self::Mqtt | Self::MqttSn | Self::Wsn)
    }

    /// Whether messages are published, to a broker or to whoever listens.
    #[must_use]
    pub fn is_published(self) -> bool {
        self.has_broker() || self == Self::MqttUdp
    }
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Json, Self::Xml, Self::Cbor, Self::Exi];

    /// Its name in files and results: as of the messaging service's forms.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Xml => "xml",
            Self::Cbor => "cbor",
            Self::Exi => "exi",
        }
    }
}

impl Scenario {
    /// A node by its number.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(usize::from(id).checked_sub(1)?)
    }

    /// A node's number by its name.
    #[must_use]
    pub fn node_named(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().find(|node| node.name == name).map(|node| node.id)
    }

    /// The nodes that a name stands for: a node's itself, a group's nodes; none for another name.
    #[must_use]
    pub fn nodes_of(&self, name: &str) -> Option<Vec<NodeId>> {
        let group = || self.groups.iter().find(|group| group.name == name);
        let node = self.node_named(name).map(|id| vec![id]);
        node.or_else(|| group().map(|group| group.nodes.clone()))
    }

    /// Who a message is for: the nodes of its addressees, each once, its sender left out.
    #[must_use]
    pub fn receivers(&self, message: &ScriptedMessage) -> Vec<NodeId> {
        let named = message.to.iter().filter_map(|name| self.nodes_of(name)).flatten();
        let mut nodes: Vec<NodeId> = named.filter(|node| *node != message.from).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// The nodes on a channel in the order of its ports, with their radios.
    pub fn members(&self, medium: usize) -> impl Iterator<Item = (&Node, &NodeRadio)> {
        self.nodes.iter().filter_map(move |node| {
            let radio = node.radios.iter().find(|radio| radio.medium == medium)?;
            Some((node, radio))
        })
    }

    /// A node's port on a channel.
    #[must_use]
    pub fn port(&self, medium: usize, node: NodeId) -> Option<PortId> {
        let place = self.members(medium).position(|(member, _)| member.id == node)?;
        PortId::try_from(place).ok()
    }

    /// Times that the nodes' services are set to in a case, by the keys of their configuration.
    #[must_use]
    pub fn service_in(&self, case: &Case) -> Vec<(String, Duration)> {
        let is_other = |key: &String| case.service.iter().any(|(other, _)| other == key);
        let usual = self.service.iter().filter(|(key, _)| !is_other(key));
        usual.chain(&case.service).cloned().collect()
    }

    /// The first group in the file that a node is in: which results name.
    #[must_use]
    pub fn group_of(&self, node: NodeId) -> Option<&Group> {
        self.groups.iter().find(|group| group.nodes.contains(&node))
    }
}
