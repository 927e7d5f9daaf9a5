//! The workload `topics`: a client of a broker on every node, and the scenario's script as
//! publications.
//!
//! What a node sends is published to the topic `position/NODE`, with its place at that time; who is
//! addressed has subscribed to the topics of those that address him.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use link::net::{BrokerServer, Case, Format, Scenario, ScriptedMessage, Topics, Transport};
use record::net::{NetCheck, NetMessage};
use serde_json::{Value, json};
use services::tracks::NFFI_NAMESPACE;

use super::script::{self, Arrival};
use super::{Begun, Ground, Outcome, Program, Workload};
use crate::experiment::processes::READY;
use crate::net::http::ask;

/// Where a node's client listens for who publishes, on its loopback.
const CLIENT_PORT: u16 = 8097;
/// Where the broker listens, and where clients of WS-Notification do.
const MQTT_PORT: u16 = 1883;
const MQTT_SN_PORT: u16 = 1885;
const WSN_PORT: u16 = 8090;
const CONSUMER_PORT: u16 = 9000;
/// How long a client may take to answer on its own host.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long subscriptions may take, over the scenario's channels as they are at the start.
const SUBSCRIBED_PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks at who has subscribed.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Most pages of an inbox that are asked for, of [`PAGE`] messages each.
const MAX_PAGES: usize = 100;
const PAGE: usize = 1000;

/// See the module.
pub(in crate::net) struct Publications<'a> {
    scenario: &'a Scenario,
    case: &'a Case,
    topics: Topics,
    /// Of each host, the hosts whose positions it is to have.
    sources: Vec<BTreeSet<usize>>,
    /// When each message was given to its client, since 1970, and its bytes.
    given: Mutex<Vec<Option<(Duration, usize)>>>,
}

impl<'a> Publications<'a> {
    /// The script of a scenario in one of its cases.
    ///
    /// # Errors
    /// One line for a case that cannot be done.
    pub(in crate::net) fn new(scenario: &'a Scenario, case: &'a Case) -> Result<Self, String> {
        let refused = |why: &str| Err(format!("case '{}': {why}", case.name));
        let Some(topics) = case.topics else { return refused("its transport publishes nothing") };
        if !matches!(case.format, Format::Json | Format::Xml) {
            return refused("positions are published as json or xml: give one of these");
        }
        let mut sources = vec![BTreeSet::new(); scenario.nodes.len()];
        for message in &scenario.messages {
            for to in scenario.receivers(message) {
                if let Some(sources) = sources.get_mut(host(to)) {
                    sources.insert(host(message.from));
                }
            }
        }
        let given = Mutex::new(vec![None; scenario.messages.len()]);
        Ok(Self { scenario, case, topics, sources, given })
    }

    fn node(&self, host: usize) -> &str {
        self.scenario.nodes.get(host).map_or("", |node| &node.name)
    }

    /// The broker on its host, where there is one.
    fn broker(&self, ground: &Ground<'_>) -> Result<Option<Program>, String> {
        let Some(id) = self.topics.broker else { return Ok(None) };
        let host = host(id);
        let address = ground.topology.address(host).ok_or("a broker on no host")?;
        let config = ground.scratch.join("broker.conf");
        let (text, ready) = match self.topics.server {
            BrokerServer::Longwire => (longwire_config(self.case.transport, address), READY),
            BrokerServer::Mosquitto => (mosquitto_config(), "mosquitto version"),
        };
        std::fs::write(&config, text)
            .map_err(|error| format!("cannot write {}: {error}", config.display()))?;
        let command = match self.topics.server {
            BrokerServer::Longwire => ground.topology.command(host, ground.program, ground.program),
            // What it prints would else wait until there is much of it.
            BrokerServer::Mosquitto => ground.topology.command(host, ground.program, "stdbuf"),
        };
        let mut command = command.map_err(|error| error.to_string())?;
        match self.topics.server {
            BrokerServer::Longwire => command.args(["broker", "--config"]).env("RUST_LOG", "warn"),
            BrokerServer::Mosquitto => command.args(["-oL", "mosquitto", "-c"]),
        };
        command.arg(&config);
        Ok(Some(Program { host, command, ready }))
    }

    /// Where clients find the broker, or each other.
    fn url(&self, ground: &Ground<'_>) -> Result<String, String> {
        let Some(id) = self.topics.broker else {
            return Ok("mqtt-udp://255.255.255.255".to_owned());
        };
        let address = ground.topology.address(host(id)).ok_or("a broker on no host")?;
        let (scheme, port) = match self.case.transport {
            Transport::MqttSn => ("mqtt-sn", MQTT_SN_PORT),
            Transport::Wsn => ("wsn", WSN_PORT),
            _ => ("mqtt", MQTT_PORT),
        };
        Ok(format!("{scheme}://{address}:{port}"))
    }

    fn client(&self, ground: &Ground<'_>, host: usize) -> Result<Program, String> {
        let command = ground.topology.command(host, ground.program, ground.program);
        let mut command = command.map_err(|error| error.to_string())?;
        command.args(["serve", "topics", &self.url(ground)?]);
        command.args(["--listen", &format!("127.0.0.1:{CLIENT_PORT}")]);
        for source in self.sources.get(host).into_iter().flatten() {
            command.args(["--topic", &topic(self.node(*source))]);
        }
        match self.case.transport {
            Transport::Wsn => {
                let address = ground.topology.address(host).ok_or("a client on no host")?;
                command.args(["--consumer", &format!("{address}:{CONSUMER_PORT}")]);
            }
            Transport::MqttUdp => {}
            _ => {
                command.args(["--qos", &self.topics.qos.to_string(), "--id", self.node(host)]);
            }
        }
        command.env("RUST_LOG", "warn");
        Ok(Program { host, command, ready: READY })
    }

    /// What is published: the message's id, and where its sender is, written as the case says.
    fn payload(&self, number: usize, message: &ScriptedMessage) -> String {
        let sender = self.scenario.node(message.from);
        let name = sender.map_or("", |node| &node.name);
        let track = sender.and_then(|node| node.track.as_ref());
        let place = track.map(|track| track.at(message.at));
        let (lat, lon) = place.map_or((0.0, 0.0), |place| (place.lat_deg, place.lon_deg));
        let (id, at_s) = (script::id(number), message.at.as_secs_f64());
        match self.case.format {
            Format::Xml => nffi(&Report { id: &id, unit: name, at_s, lat, lon }, &message.text),
            _ => json!({
                "id": id, "unit": name, "time": at_s,
                "lat": rounded(lat), "lon": rounded(lon), "text": message.text,
            })
            .to_string(),
        }
    }

    /// All that came to a host: the ids, with when.
    fn inbox(&self, ground: &Ground<'_>, host: usize) -> Result<Vec<(String, Duration)>, String> {
        let (mut all, mut after) = (Vec::new(), 0);
        for _ in 0..MAX_PAGES {
            let path = format!("/inbox?after={after}&limit={PAGE}");
            let answer = ask((ground.topology, host), CLIENT_PORT, ("GET", &path), None, PATIENCE);
            let value = answer.and_then(|answer| answer.json());
            let value = value.map_err(|why| format!("the inbox of {}: {why}", self.node(host)))?;
            let entries = value["messages"].as_array().map_or(&[][..], Vec::as_slice);
            after = entries.last().and_then(|entry| entry["number"].as_u64()).unwrap_or(after);
            all.extend(entries.iter().filter_map(entry));
            if value["more"] != true {
                break;
            }
        }
        Ok(all)
    }

    fn has_subscribed(&self, ground: &Ground<'_>, host: usize) -> bool {
        let place = (ground.topology, host);
        let answer = ask(place, CLIENT_PORT, ("GET", "/status"), None, PATIENCE);
        let status = answer.and_then(|answer| answer.json());
        status.is_ok_and(|status| {
            status["subscribed"] == true && status["refused"].as_array().is_some_and(Vec::is_empty)
        })
    }
}

impl Workload for Publications<'_> {
    fn programs(&self, ground: &Ground<'_>) -> Result<Vec<Program>, String> {
        let clients = (0..ground.topology.hosts()).map(|host| self.client(ground, host));
        self.broker(ground)?.map(Ok).into_iter().chain(clients).collect()
    }

    fn await_ready(&self, ground: &Ground<'_>, stop: &AtomicBool) -> Result<(), String> {
        let deadline = Instant::now() + SUBSCRIBED_PATIENCE;
        let mut waiting: Vec<usize> = (0..ground.topology.hosts()).collect();
        loop {
            waiting.retain(|host| !self.has_subscribed(ground, *host));
            let Some(first) = waiting.first() else { return Ok(()) };
            if stop.load(Ordering::Relaxed) {
                return Err("stopped".to_owned());
            }
            if Instant::now() >= deadline {
                let (name, count) = (self.node(*first), waiting.len());
                return Err(format!(
                    "{count} clients, {name} among them, have not subscribed after {} s: the \
                     broker must be within reach at the start",
                    SUBSCRIBED_PATIENCE.as_secs()
                ));
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    fn times(&self) -> Vec<Duration> {
        self.scenario.messages.iter().map(|message| message.at).collect()
    }

    fn act(&self, ground: &Ground<'_>, number: usize) -> Result<(), String> {
        let message = self.scenario.messages.get(number).ok_or("no such message")?;
        let host = host(message.from);
        let payload = self.payload(number, message);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = given.get_mut(number) {
            *slot = Some((now, payload.len()));
        }
        drop(given);
        let content_type = match (self.case.transport, self.case.format) {
            (Transport::Wsn, Format::Xml) => Value::from("application/xml"),
            _ => Value::Null,
        };
        let draft = json!({
            "topic": topic(self.node(host)), "payload": payload, "content_type": content_type,
        });
        let place = (ground.topology, host);
        let answer = ask(place, CLIENT_PORT, ("POST", "/messages"), Some(&draft), PATIENCE)?;
        answer.json().map(drop)
    }

    fn collect(
        &self,
        ground: &Ground<'_>,
        begun: &Begun,
        failed: &[(usize, String)],
    ) -> Result<Outcome, String> {
        let mut arrived: BTreeMap<(String, usize), Vec<Duration>> = BTreeMap::new();
        for host in 0..ground.topology.hosts() {
            for (id, at) in self.inbox(ground, host)? {
                arrived.entry((id, host)).or_default().push(at);
            }
        }
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let refused: BTreeSet<usize> = failed.iter().map(|(number, _)| *number).collect();
        let arrival = |number: usize, host: usize| {
            let (sent, bytes) = given.get(number).copied().flatten().unzip();
            let is_refused = refused.contains(&number) || sent.is_none();
            Arrival {
                sent,
                bytes: bytes.unwrap_or_default(),
                came: arrived.get(&(script::id(number), host)).map_or(&[][..], Vec::as_slice),
                // Nobody says what became of a publication that did not come.
                lost: if is_refused { "refused" } else { "lost" },
            }
        };
        let messages = script::outcomes(self.scenario, ground.movement, begun, arrival);
        // What the protocols promise: at QoS 1 a message may come twice.
        let checks = checks(&messages, failed, self.topics.qos == 1);
        Ok(Outcome { messages, checks })
    }
}

/// What must be true of every run.
fn checks(messages: &[NetMessage], failed: &[(usize, String)], may_double: bool) -> Vec<NetCheck> {
    let mut checks = script::checks(messages, failed);
    if may_double {
        checks.retain(|check| check.name != script::ONCE);
    }
    checks
}

/// The place of a node among the hosts.
fn host(id: u16) -> usize {
    usize::from(id).saturating_sub(1)
}

fn topic(node: &str) -> String {
    format!("position/{node}")
}

/// What a position report says.
struct Report<'a> {
    id: &'a str,
    unit: &'a str,
    at_s: f64,
    lat: f64,
    lon: f64,
}

/// A track of NFFI 1.3 with where a unit is, what it is, and a remark: about as long as those of
/// trackers are. Its transponder has the report's id for a number.
fn nffi(report: &Report<'_>, remark: &str) -> String {
    let Report { id, unit, at_s, lat, lon } = report;
    let (minute, second) = ((at_s / 60.0).floor(), at_s % 60.0);
    format!(
        "<NFFIMessage xmlns=\"{NFFI_NAMESPACE}\"><track><positionalData \
         secClassification=\"UNCLASSIFIED\"><trackSource><sourceSystem><country>NOR</country>\
         <system>LONGWIRE</system><subsystem>{unit}</subsystem></sourceSystem>\
         <transponderId>{id}</transponderId></trackSource>\
         <dateTime>2026010112{minute:02.0}{second:02.0}</dateTime><coordinates>\
         <latitude>{lat:.6}</latitude><longitude>{lon:.6}</longitude></coordinates>\
         </positionalData><identificationData><unitSymbol>SFGPUCIZ---C---</unitSymbol>\
         <unitShortName>{unit}</unitShortName></identificationData><deviceSpecificData>\
         <remarks>{}</remarks></deviceSpecificData></track></NFFIMessage>",
        escaped(remark)
    )
}

/// A place of about a metre.
fn rounded(degrees: f64) -> f64 {
    (degrees * 1e5).round() / 1e5
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The id of a position as it came, and when.
fn entry(entry: &Value) -> Option<(String, Duration)> {
    let payload = entry["payload"].as_str()?;
    let at = Duration::try_from_secs_f64(entry["arrived_unix_s"].as_f64()?).ok()?;
    let id = match payload.starts_with('{') {
        true => serde_json::from_str::<Value>(payload).ok()?["id"].as_str()?.to_owned(),
        // As it was written, or with a prefix, as a broker of WS-Notification may have it.
        false => payload.split_once("transponderId>")?.1.split_once('<')?.0.to_owned(),
    };
    Some((id, at))
}

fn longwire_config(transport: Transport, address: std::net::Ipv4Addr) -> String {
    let mut text = "[broker]\nanonymous = true\nsys_interval = \"0 s\"\nexplain = 0\n".to_owned();
    // Writing to a text cannot fail.
    let _ = match transport {
        Transport::MqttSn => {
            writeln!(text, "[[mqtt_sn]]\nlisten = \"0.0.0.0:{MQTT_SN_PORT}\"")
        }
        Transport::Wsn => writeln!(
            text,
            "wsn = \"0.0.0.0:{WSN_PORT}\"\nwsn_address = \"http://{address}:{WSN_PORT}\"\n\
             wsn_consumers = [\"*\"]"
        ),
        _ => writeln!(text, "mqtt = \"0.0.0.0:{MQTT_PORT}\""),
    };
    text
}

fn mosquitto_config() -> String {
    // The first line is that it starts; what it says of each connection would fill a pipe.
    format!(
        "listener {MQTT_PORT} 0.0.0.0\nallow_anonymous true\nset_tcp_nodelay true\n\
         log_dest stdout\nlog_timestamp false\nlog_type information\nconnection_messages false\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_in_each_form() {
        let came = |payload: &str| json!({"payload": payload, "arrived_unix_s": 1.5});
        let found = Some(("m00007".to_owned(), Duration::from_millis(1500)));
        assert_eq!(entry(&came("{\"id\":\"m00007\",\"lat\":1.0}")), found);
        let report = Report { id: "m00007", unit: "v1", at_s: 61.0, lat: 50.4, lon: 7.0 };
        let track = nffi(&report, "a<b");
        assert!(track.contains("20260101120101") && track.contains("a&lt;b"), "{track}");
        assert!((550..650).contains(&track.len()), "{}", track.len());
        assert_eq!(entry(&came(&track)), found);
        for wrong in ["", "{}", "<position/>", "transponderId=\"m00007\""] {
            assert_eq!(entry(&came(wrong)), None, "{wrong}");
        }
    }

    #[test]
    fn text_is_escaped_in_xml() {
        assert_eq!(escaped("a<b>&c"), "a&lt;b&gt;&amp;c");
    }
}
