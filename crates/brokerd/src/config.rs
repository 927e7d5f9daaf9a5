//! What a broker is told: a file in TOML, and options that override it.

mod bridge;
mod federation;
mod form;
mod mesh;
mod reading;

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use broker::{AccessRule, Action, Grade, Overflow, Rule, Rules, check_filter};
use bytes::Bytes;
use proto::urgency::Urgency;
use proxy::config::{Period, Size};
use serde::{Deserialize, Deserializer};

use crate::error::Error;

use bridge::BridgeConfig;
pub(crate) use bridge::Target;
use federation::FederationConfig;
pub(crate) use federation::succeed;
use form::FormConfig;
use mesh::MeshConfig;

/// Largest file, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// Most rules, and most rules of access.
const MAX_RULES: usize = 10_000;
/// Most publications of which is remembered what became of them.
const MAX_EXPLAINED: usize = 100_000;
/// Longest key, in bytes.
const MAX_KEY_BYTES: usize = 4096;

/// A whole configuration.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `[broker]`.
    #[serde(default)]
    pub broker: BrokerConfig,
    /// `[[rule]]`, the first that fits.
    #[serde(default, rename = "rule")]
    rules: Vec<RuleConfig>,
    /// `[[form]]`, the first that fits.
    #[serde(default, rename = "form")]
    forms: Vec<FormConfig>,
    /// `[[access]]`, the first that fits.
    #[serde(default)]
    access: Vec<AccessConfig>,
    /// `[[mqtt_sn]]`: sockets of MQTT-SN.
    #[serde(default)]
    pub mqtt_sn: Vec<MqttSnConfig>,
    /// `[[topic_id]]`: topic ids of MQTT-SN that both sides know beforehand.
    #[serde(default, rename = "topic_id")]
    topic_ids: Vec<TopicIdConfig>,
    /// `[[bridge]]`: other brokers that this one connects to.
    #[serde(default, rename = "bridge")]
    bridges: Vec<BridgeConfig>,
    /// `[mesh]`: other brokers that this one replicates with.
    mesh: Option<MeshConfig>,
    /// `[[mqtt_udp]]`: sockets of MQTT/UDP.
    #[serde(default)]
    pub mqtt_udp: Vec<MqttUdpConfig>,
    /// `[federation]`: what nations have agreed on.
    federation: Option<FederationConfig>,
}

/// `[broker]`.
// table: one field a key of the file
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BrokerConfig {
    /// Address for MQTT over TCP.
    pub mqtt: Option<String>,
    /// Address for MQTT over TLS.
    pub mqtts: Option<String>,
    /// Address for MQTT over WebSocket.
    pub ws: Option<String>,
    /// Address for MQTT over WebSocket over TLS.
    pub wss: Option<String>,
    /// Address for AMQP 1.0.
    pub amqp: Option<String>,
    /// Address for AMQP 1.0 over TLS.
    pub amqps: Option<String>,
    /// Address for AMQP 0.9.1.
    pub amqp091: Option<String>,
    /// Address for AMQP 0.9.1 over TLS.
    pub amqps091: Option<String>,
    /// Address for WS-Notification.
    pub wsn: Option<String>,
    /// Address for WS-Notification over TLS.
    pub wsns: Option<String>,
    /// Address for metrics and health, on loopback.
    pub admin: Option<String>,
    /// The URL that others reach it at, if it is not the address.
    pub wsn_address: Option<String>,
    /// Topic of notifications that name none.
    pub wsn_default_topic: Option<String>,
    /// Hosts that notifications are sent to, besides this machine.
    pub wsn_consumers: Vec<String>,
    /// Authorities that vouch for those of https, in PEM; without it the system's.
    pub wsn_authorities: Option<PathBuf>,
    /// Certificates of this broker, in PEM.
    pub certificate: Option<PathBuf>,
    /// Its private key, in PEM.
    pub private_key: Option<PathBuf>,
    /// Authorities whose certificates clients must show; their common name is then the user.
    pub client_ca: Option<PathBuf>,
    /// Users and their passwords.
    pub users: Option<PathBuf>,
    /// Clients without a name are let in, also where there are users, or where others than this
    /// machine can connect.
    pub anonymous: bool,
    /// Directory of what outlives the process.
    pub store: Option<PathBuf>,
    /// By what other brokers know this one.
    pub(crate) node: Option<String>,
    bridge_users: Option<BTreeSet<String>>,
    max_connections: Option<usize>,
    max_sessions: Option<usize>,
    max_subscriptions: Option<usize>,
    max_retained: Option<usize>,
    #[serde(deserialize_with = "size")]
    max_retained_bytes: Option<usize>,
    max_queued: Option<usize>,
    #[serde(deserialize_with = "size")]
    max_queued_bytes: Option<usize>,
    #[serde(deserialize_with = "size")]
    max_total_bytes: Option<usize>,
    max_inflight: Option<u16>,
    #[serde(deserialize_with = "size")]
    max_message_bytes: Option<usize>,
    #[serde(deserialize_with = "period")]
    max_session_expiry: Option<Duration>,
    #[serde(deserialize_with = "period")]
    max_keep_alive: Option<Duration>,
    receive_maximum: Option<u16>,
    topic_alias_maximum: Option<u16>,
    overflow: Option<OverflowConfig>,
    #[serde(rename = "drain_rate")]
    drain_pps: Option<NonZeroU32>,
    queue_grade_0: Option<bool>,
    #[serde(deserialize_with = "period")]
    sys_interval: Option<Duration>,
    #[serde(rename = "explain")]
    max_explained: Option<usize>,
    #[serde(rename = "explain_rate")]
    explained_pps: Option<NonZeroU32>,
    explain_filter: Option<String>,
}

impl BrokerConfig {
    /// What does not change while it runs.
    fn fixed(&self) -> Self {
        Self {
            wsn_consumers: Vec::new(),
            wsn_authorities: None,
            certificate: None,
            private_key: None,
            client_ca: None,
            users: None,
            anonymous: false,
            max_sessions: None,
            max_subscriptions: None,
            max_retained: None,
            max_retained_bytes: None,
            max_queued: None,
            max_queued_bytes: None,
            max_total_bytes: None,
            max_inflight: None,
            max_session_expiry: None,
            max_keep_alive: None,
            overflow: None,
            drain_pps: None,
            queue_grade_0: None,
            sys_interval: None,
            max_explained: None,
            explained_pps: None,
            explain_filter: None,
            ..self.clone()
        }
    }
}

impl BrokerConfig {
    /// What is remembered of publications.
    fn explain(&self) -> Result<broker::ExplainSettings, Error> {
        let usual = broker::ExplainSettings::default();
        let max = self.max_explained.unwrap_or(usual.max);
        if max > MAX_EXPLAINED {
            let text = format!("explain = {max}: at most {MAX_EXPLAINED} publications");
            return Err(Error::Caller(text));
        }
        let filter = self.explain_filter.clone().unwrap_or(usual.filter);
        check_filter(&filter)
            .map_err(|what| Error::Caller(format!("explain_filter = \"{filter}\": {what}")))?;
        let facts_per_s = self.explained_pps.unwrap_or(usual.facts_per_s);
        Ok(broker::ExplainSettings { max, facts_per_s, filter })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OverflowConfig {
    Oldest,
    Newest,
}

/// `[[rule]]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RuleConfig {
    filter: String,
    block: bool,
    conflate: bool,
    #[serde(deserialize_with = "period")]
    thin: Option<Duration>,
    #[serde(deserialize_with = "period")]
    expiry: Option<Duration>,
    max_qos: Option<u8>,
    urgency: Option<String>,
    content_type: Option<String>,
    retain: Option<bool>,
    rename: Option<(String, String)>,
}

/// `[[access]]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct AccessConfig {
    user: Option<String>,
    action: Option<ActionConfig>,
    filter: String,
    #[serde(default = "yes")]
    allow: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ActionConfig {
    Publish,
    Subscribe,
}

/// `[[mqtt_sn]]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MqttSnConfig {
    /// Address and port.
    pub listen: String,
    /// Groups that are joined.
    #[serde(default)]
    pub groups: Vec<IpAddr>,
    gateway_id: Option<u8>,
    #[serde(default)]
    one_way: bool,
    unconnected: Option<bool>,
    #[serde(default)]
    advertise_to: Vec<SocketAddr>,
    #[serde(default, deserialize_with = "period")]
    advertise_interval: Option<Duration>,
}

/// `[[topic_id]]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct TopicIdConfig {
    id: u16,
    topic: String,
    client: Option<String>,
}

/// `[[mqtt_udp]]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MqttUdpConfig {
    /// Address and port.
    pub listen: String,
    /// Groups that are joined.
    #[serde(default)]
    pub groups: Vec<IpAddr>,
    entry: Option<Vec<String>>,
    #[serde(default)]
    exit: Vec<String>,
    #[serde(default)]
    targets: Vec<SocketAddr>,
    #[serde(default)]
    repeats: u32,
    #[serde(default)]
    one_way: bool,
    key: Option<PathBuf>,
    #[serde(default)]
    verify: VerifyConfig,
    #[serde(default)]
    sign: SignConfig,
    #[serde(default)]
    acknowledges: bool,
    #[serde(default)]
    tells_source: bool,
    max_datagram_bytes: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum VerifyConfig {
    #[default]
    None,
    Any,
    Sha256,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SignConfig {
    #[default]
    None,
    Md5,
    Sha256,
}

impl MqttSnConfig {
    /// A socket at an address, with what is usual.
    #[must_use]
    pub fn at(listen: String) -> Self {
        Self { listen, ..Self::default() }
    }
}

fn yes() -> bool {
    true
}

fn period<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    let period = Period::parse(&text).map_err(serde::de::Error::custom)?;
    Ok(Some(period.0))
}

fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    let text = String::deserialize(from)?;
    let size = Size::parse(&text).map_err(serde::de::Error::custom)?;
    usize::try_from(size.0).map(Some).map_err(serde::de::Error::custom)
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong with it, with the line.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let shown = path.display();
        let unreadable = |error| Error::Caller(format!("cannot read {shown}: {error}"));
        let len = fs::metadata(path).map_err(unreadable)?.len();
        if len > MAX_FILE_BYTES {
            return Err(Error::Caller(format!(
                "{shown} has {len} bytes, over the limit of {MAX_FILE_BYTES}"
            )));
        }
        let text = fs::read_to_string(path).map_err(unreadable)?;
        Self::parse(&shown.to_string(), &text)
    }

    /// What the core is told.
    ///
    /// # Errors
    /// A value that cannot be.
    pub fn settings(&self) -> Result<broker::Settings, Error> {
        let said = &self.broker;
        let mut settings = broker::Settings::default();
        let set = |to: &mut usize, from: Option<usize>| *to = from.unwrap_or(*to);
        set(&mut settings.max_sessions, said.max_sessions);
        set(&mut settings.max_subscriptions, said.max_subscriptions);
        set(&mut settings.max_retained, said.max_retained);
        set(&mut settings.max_retained_bytes, said.max_retained_bytes);
        set(&mut settings.max_queued, said.max_queued);
        set(&mut settings.max_queued_bytes, said.max_queued_bytes);
        set(&mut settings.max_total_bytes, said.max_total_bytes);
        set(&mut settings.max_message_bytes, said.max_message_bytes);
        let set = |to: &mut Duration, from: Option<Duration>| *to = from.unwrap_or(*to);
        set(&mut settings.max_session_expiry, said.max_session_expiry);
        set(&mut settings.max_keep_alive, said.max_keep_alive);
        set(&mut settings.sys_interval, said.sys_interval);
        settings.max_inflight = said.max_inflight.unwrap_or(settings.max_inflight);
        settings.queue_grade_0 = said.queue_grade_0.unwrap_or(settings.queue_grade_0);
        settings.overflow = match said.overflow {
            Some(OverflowConfig::Newest) => Overflow::Newest,
            Some(OverflowConfig::Oldest) | None => Overflow::Oldest,
        };
        settings.drain_rate = said.drain_pps;
        settings.durable = said.store.is_some();
        settings.explain = said.explain()?;
        settings.rules = self.rules()?;
        settings.forms = form::read_all(&self.forms)?;
        settings.access.rules = self.access()?;
        settings.federation = self.profile()?;
        if settings.max_inflight == 0 {
            return Err(Error::Caller("max_inflight is 0: at least 1".to_owned()));
        }
        Ok(settings)
    }

    /// The same listeners, with whom `new` lets in.
    pub(crate) fn with_access_of(&self, new: &Self) -> Self {
        let BrokerConfig { users, anonymous, client_ca, .. } = new.broker.clone();
        let broker = BrokerConfig { users, anonymous, client_ca, ..self.broker.clone() };
        Self { broker, ..self.clone() }
    }

    /// The sections in which `new` differs by more than can be taken while it runs.
    pub(crate) fn needs_restart(&self, new: &Self) -> Vec<&'static str> {
        let parts = [
            ("[broker]", self.broker.fixed() != new.broker.fixed()),
            ("[[mqtt_sn]]", self.mqtt_sn != new.mqtt_sn),
            ("[[topic_id]]", self.topic_ids != new.topic_ids),
            ("[[bridge]]", self.bridges != new.bridges),
            ("[mesh]", self.mesh != new.mesh),
            ("[[mqtt_udp]]", self.mqtt_udp != new.mqtt_udp),
        ];
        parts.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }

    /// What MQTT is told.
    #[must_use]
    pub fn mqtt(&self) -> broker::MqttSettings {
        let mut settings = broker::MqttSettings::default();
        let said = &self.broker;
        if let Some(max) = said.max_message_bytes {
            settings.max_packet_bytes = max;
        }
        let maximum = said.receive_maximum.unwrap_or(settings.receive_maximum);
        settings.receive_maximum = maximum.max(1);
        settings.topic_alias_maximum =
            said.topic_alias_maximum.unwrap_or(settings.topic_alias_maximum);
        settings.bridge_users = said.bridge_users.clone();
        if let Some(node) = &said.node {
            settings.node = node.as_str().into();
        }
        settings
    }

    /// Bridges, and where they go.
    ///
    /// # Errors
    /// A value that cannot be, a password that cannot be read.
    pub(crate) fn bridges(&self) -> Result<(Vec<broker::Bridge>, Vec<Target>), Error> {
        let node = self.broker.node.as_deref();
        if let Some(node) = node.filter(|node| !broker::is_node(node)) {
            let text = format!("node = \"{node}\": 1 to 64 bytes without comma and colon");
            return Err(Error::Caller(text));
        }
        bridge::read_all(&self.bridges)
    }

    /// What AMQP 1.0 is told.
    #[must_use]
    pub fn amqp(&self) -> broker::AmqpSettings {
        let mut settings = broker::AmqpSettings::default();
        if let Some(max) = self.broker.max_message_bytes {
            settings.max_message_bytes = max;
        }
        settings
    }

    /// What AMQP 0.9.1 is told.
    #[must_use]
    pub fn amqp091(&self) -> broker::Amqp091Settings {
        let mut settings = broker::Amqp091Settings::default();
        if let Some(max) = self.broker.max_message_bytes {
            settings.max_message_bytes = max as u64;
        }
        settings
    }

    /// What WS-Notification is told that is reached at an address.
    #[must_use]
    pub fn wsn(&self, addresses: [String; 2], seed: u64) -> broker::WsnSettings {
        let said = &self.broker;
        let [address, secure_address] = addresses;
        broker::WsnSettings {
            address,
            secure_address,
            seed,
            default_topic: said.wsn_default_topic.clone(),
            ..broker::WsnSettings::default()
        }
    }

    /// What others reach the listeners of WS-Notification at, the one without TLS and the one with
    /// it. The address that is configured is for the one that there is; of two it is for the one
    /// of its scheme, and the other has its own: nobody who came by TLS is sent to where there is
    /// none.
    pub(crate) fn wsn_addresses(
        &self,
        plain: Option<SocketAddr>,
        secure: Option<SocketAddr>,
    ) -> [String; 2] {
        let said = self.broker.wsn_address.as_deref();
        let is_alone = plain.is_some() != secure.is_some();
        [("http", plain), ("https", secure)].map(|(scheme, at)| {
            let is_its = |said: &&str| {
                let own = said.split_once("://").map(|(scheme, _)| scheme);
                is_alone || own.is_some_and(|own| own.eq_ignore_ascii_case(scheme))
            };
            let bound = at.or(plain).or(secure).map(|at| format!("{scheme}://{at}"));
            said.filter(is_its).map(str::to_owned).or(bound).unwrap_or_default()
        })
    }

    /// Number of a socket of MQTT-SN.
    pub(crate) fn sn_number(&self, at: usize) -> u16 {
        u16::try_from(at).unwrap_or(u16::MAX)
    }

    /// Number of a socket of MQTT/UDP: behind those.
    pub(crate) fn udp_number(&self, at: usize) -> u16 {
        u16::try_from(self.mqtt_sn.len() + at).unwrap_or(u16::MAX)
    }

    /// What MQTT-SN is told.
    ///
    /// # Errors
    /// A value that cannot be.
    pub fn mqtt_sn(&self) -> Result<broker::MqttSnSettings, Error> {
        let mut settings = broker::MqttSnSettings::default();
        for (at, said) in self.mqtt_sn.iter().enumerate() {
            settings.listeners.insert(self.sn_number(at), said.read());
        }
        for said in &self.topic_ids {
            broker::check_name(&said.topic).map_err(|what| {
                Error::Caller(format!("[[topic_id]] topic = \"{}\": {what}", said.topic))
            })?;
            if said.id == 0 || said.id == u16::MAX {
                let id = said.id;
                let text = format!("[[topic_id]] id = {id}: 1 to 65,534 (MQTT-SN 1.2 §5.3.11)");
                return Err(Error::Caller(text));
            }
            let table = match &said.client {
                None => &mut settings.predefined.all,
                Some(client) => settings.predefined.clients.entry(client.clone()).or_default(),
            };
            table.insert(said.id, said.topic.as_str().into());
        }
        Ok(settings)
    }

    /// What MQTT/UDP is told, whose numbers begin with what nobody foresees.
    ///
    /// # Errors
    /// A value that cannot be, a key that cannot be read.
    pub fn mqtt_udp(&self, random: u64) -> Result<broker::MqttUdpSettings, Error> {
        let mut settings = broker::MqttUdpSettings::default();
        for (at, said) in self.mqtt_udp.iter().enumerate() {
            let first = (random >> 32 ^ random) & u64::from(u32::MAX >> 1);
            let first = u32::try_from(first).unwrap_or(1);
            settings.listeners.insert(self.udp_number(at), said.read(first)?);
        }
        Ok(settings)
    }

    /// Connections at once.
    #[must_use]
    pub fn max_connections(&self) -> usize {
        self.broker.max_connections.unwrap_or(100_000)
    }

    fn rules(&self) -> Result<Rules, Error> {
        check_count("rule", self.rules.len())?;
        let rules = self.rules.iter().map(RuleConfig::read);
        Ok(Rules { rules: rules.collect::<Result<_, _>>()? })
    }

    fn access(&self) -> Result<Vec<AccessRule>, Error> {
        check_count("access", self.access.len())?;
        let rule = |said: &AccessConfig| {
            check("access", &said.filter)?;
            Ok(AccessRule {
                user: said.user.clone(),
                action: said.action.map(|action| match action {
                    ActionConfig::Publish => Action::Publish,
                    ActionConfig::Subscribe => Action::Subscribe,
                }),
                filter: said.filter.clone(),
                allow: said.allow,
            })
        };
        self.access.iter().map(rule).collect()
    }
}

impl MqttSnConfig {
    fn read(&self) -> broker::MqttSnListener {
        let usual = broker::MqttSnListener::default();
        broker::MqttSnListener {
            gateway_id: self.gateway_id.unwrap_or(usual.gateway_id),
            one_way: self.one_way,
            unconnected: self.unconnected.unwrap_or(usual.unconnected),
            advertise_to: self.advertise_to.clone(),
            advertise_interval: self.advertise_interval.unwrap_or(usual.advertise_interval),
        }
    }
}

impl MqttUdpConfig {
    /// Whether only what is signed is believed.
    pub(crate) fn is_strict(&self) -> bool {
        self.key.is_some() && !matches!(self.verify, VerifyConfig::None)
    }

    fn read(&self, first_number: u32) -> Result<broker::MqttUdpListener, Error> {
        let usual = broker::MqttUdpListener::default();
        for filter in self.entry.iter().flatten().chain(&self.exit) {
            check("mqtt_udp", filter)?;
        }
        let key = self.key.as_deref().map(read_key).transpose()?;
        if key.is_none() && (self.sign != SignConfig::None || self.verify != VerifyConfig::None) {
            let text = "[[mqtt_udp]] signatures need a key: key = \"FILE\"";
            return Err(Error::Caller(text.to_owned()));
        }
        let repeats = self.repeats;
        let exit = |filter: &String| broker::MqttUdpExit {
            repeats,
            ..broker::MqttUdpExit::new(filter.as_str())
        };
        Ok(broker::MqttUdpListener {
            entry: self.entry.clone().unwrap_or(usual.entry),
            exit: self.exit.iter().map(exit).collect(),
            targets: self.targets.clone(),
            one_way: self.one_way,
            key,
            verification: match self.verify {
                VerifyConfig::None => broker::MqttUdpVerification::None,
                VerifyConfig::Any => broker::MqttUdpVerification::Any,
                VerifyConfig::Sha256 => broker::MqttUdpVerification::Sha256,
            },
            sign_md5: self.sign == SignConfig::Md5,
            sign_sha256: self.sign == SignConfig::Sha256,
            acknowledges: self.acknowledges,
            tells_source: self.tells_source,
            max_datagram_bytes: self.max_datagram_bytes.unwrap_or(usual.max_datagram_bytes),
            first_number,
        })
    }
}

fn read_key(path: &Path) -> Result<Bytes, Error> {
    let shown = path.display();
    let key = fs::read(path)
        .map_err(|error| Error::Caller(format!("cannot read the key {shown}: {error}")))?;
    let key = key.trim_ascii_end();
    match key.len() {
        0 => Err(Error::Caller(format!("the key {shown} is empty"))),
        MAX_KEY_BYTES.. => Err(Error::Caller(format!(
            "the key {shown} has {} bytes, over the limit of {MAX_KEY_BYTES}",
            key.len()
        ))),
        _ => Ok(Bytes::copy_from_slice(key)),
    }
}

impl RuleConfig {
    fn read(&self) -> Result<Rule, Error> {
        check("rule", &self.filter)?;
        let wrong = |what: String| Error::Caller(format!("[[rule]] {}: {what}", self.filter));
        let max_grade = match self.max_qos {
            None => None,
            Some(qos) => Some(Grade::new(qos).ok_or_else(|| wrong(format!("max_qos {qos}")))?),
        };
        let urgency = self.urgency.as_deref().map(Urgency::parse).transpose().map_err(wrong)?;
        Ok(Rule {
            filter: self.filter.clone(),
            block: self.block,
            conflate: self.conflate,
            thin: self.thin,
            expiry: self.expiry,
            max_grade,
            urgency,
            content_type: self.content_type.clone(),
            retain: self.retain,
            rename: self.rename.clone(),
        })
    }
}

fn check(section: &str, filter: &str) -> Result<(), Error> {
    check_filter(filter)
        .map_err(|what| Error::Caller(format!("[[{section}]] filter = \"{filter}\": {what}")))
}

fn check_count(section: &str, count: usize) -> Result<(), Error> {
    if count > MAX_RULES {
        let text = format!("{count} [[{section}]]: at most {MAX_RULES}");
        return Err(Error::Caller(text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_all_of_it() {
        let text = r#"
            [broker]
            mqtt = "127.0.0.1:1883"
            max_queued_bytes = "2 MiB"
            max_session_expiry = "7 d"
            overflow = "newest"
            [[rule]]
            filter = "track/#"
            conflate = true
            expiry = "60 s"
            urgency = "flash"
            rename = ["track/", "nato/nor/"]
            [[access]]
            user = "ann"
            action = "publish"
            filter = "unit/%u/#"
        "#;
        let config: Config = toml::from_str(text).unwrap();
        let settings = config.settings().unwrap();
        assert_eq!(settings.max_queued_bytes, 2 << 20);
        assert_eq!(settings.max_session_expiry, Duration::from_secs(7 * 86_400));
        assert_eq!(settings.overflow, Overflow::Newest);
        assert_eq!(settings.rules.rules[0].urgency, Some(Urgency::FIRST));
        assert!(settings.access.rules[0].allow);
    }

    /// docs/broker.md has every key, and its defaults are these.
    #[test]
    fn the_documented_file_is_read() {
        let text = include_str!("../../../docs/broker.md");
        let (_, sample) = text.split_once("```toml\n").unwrap();
        let (sample, _) = sample.split_once("```").unwrap();
        let config: Config = toml::from_str(sample).unwrap();
        let said = config.settings().unwrap();
        let plain = Config::default().settings().unwrap();
        let without = |settings: &broker::Settings| broker::Settings {
            access: broker::Access::default(),
            rules: Rules::default(),
            forms: Vec::new(),
            durable: false,
            drain_rate: None,
            ..settings.clone()
        };
        assert_eq!(said.drain_rate.map(NonZeroU32::get), Some(50));
        assert_eq!(format!("{:?}", without(&said)), format!("{:?}", without(&plain)));
        let mut mqtt = config.mqtt();
        assert_eq!(&*mqtt.node, "ship-7");
        assert!(mqtt.bridge_users.take().unwrap().contains("headquarters"));
        mqtt.node = Config::default().mqtt().node;
        assert_eq!(format!("{mqtt:?}"), format!("{:?}", Config::default().mqtt()));
        assert_eq!(config.max_connections(), Config::default().max_connections());
        let parts = (&config.broker, &config.rules[0], &config.access[0], &config.forms[0]);
        let keys = format!("{parts:?}");
        assert!(!keys.contains("None"), "a key is missing: {keys}");
        let (_, sockets) = text.split_once("```toml\n[[mqtt_sn]]").unwrap();
        let (sockets, _) = sockets.split_once("```").unwrap();
        let config: Config = toml::from_str(&format!("[[mqtt_sn]]{sockets}")).unwrap();
        assert_eq!(config.mqtt_sn().unwrap().listeners.len(), 1);
        let (_, bridges) = text.split_once("```toml\n[[bridge]]").unwrap();
        let (bridges, _) = bridges.split_once("```").unwrap();
        // The file is not there.
        let bridges = bridges.replace("password_file", "# ");
        let documented: Config = toml::from_str(&format!("[[bridge]]{bridges}")).unwrap();
        let (bridges, targets) = documented.bridges().unwrap();
        assert_eq!(bridges[0].routes[0].remote_filter(), "nato/nor/+/track");
        assert_eq!(targets[0].address, "hq.example:1883");
        assert!(config.mqtt_udp[0].is_strict());
        let keys = format!("{:?}{:?}", config.mqtt_sn[0], config.topic_ids[0]);
        assert!(!keys.contains("None"), "a key is missing: {keys}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, said) in [
            ("[broker]\nmqqt = \"x\"", "mqqt"),
            ("[broker]\nmax_queued_bytes = \"5\"", "no unit"),
            ("[broker]\ndrain_rate = 0", "nonzero"),
            ("[[access]]\naction = \"publish\"", "filter"),
        ] {
            let error = toml::from_str::<Config>(text).unwrap_err();
            assert!(error.message().contains(said), "{error}");
        }
        let config: Config = toml::from_str("[[rule]]\nfilter = \"a/#/b\"").unwrap();
        assert!(config.settings().unwrap_err().to_string().contains("last level"));
        let config: Config = toml::from_str("[[rule]]\nfilter = \"a\"\nmax_qos = 3").unwrap();
        assert!(config.settings().unwrap_err().to_string().contains("max_qos 3"));
    }
}
