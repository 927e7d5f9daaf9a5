//! The workload `message`: the messaging service on every node, and the scenario's script.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use link::net::{Case, Scenario, ScriptedMessage, Transport};
use record::calendar;
use record::net::NetCheck;
use serde_json::{Value, json};

use super::bridges::{Bridges, Reach};
use super::script::{self, Arrival};
use super::{Begun, Ground, Outcome, Program, Workload};
use crate::experiment::processes::READY;
use crate::net::http::ask;

/// Where a node's service listens for clients, on its loopback.
const CLIENT_PORT: u16 = 8090;
/// Where it listens for other nodes: over HTTP, over CoAP.
const HTTP_PORT: u16 = 8091;
const COAP_PORT: u16 = 5683;
/// How long a service may take to answer a client on its own host.
const PATIENCE: Duration = Duration::from_secs(20);
/// Messages of an inbox or outbox that are asked for at once.
const PAGE: usize = 1000;
/// Most pages: more messages than a script can have go to no node.
const MAX_PAGES: usize = 100;

/// See the module.
pub(in crate::net) struct Messages<'a> {
    scenario: &'a Scenario,
    case: &'a Case,
    /// Where the pair is, in a case over it.
    bridges: Option<Bridges>,
    /// When each message was given to its service, since 1970.
    given: Mutex<Vec<Option<Duration>>>,
    /// How many edges of how many had their gateways at the start.
    connected: Mutex<Option<(usize, usize)>>,
}

impl<'a> Messages<'a> {
    /// The script of a scenario in one of its cases.
    ///
    /// # Errors
    /// One line for a case that the service cannot do in this scenario.
    pub(in crate::net) fn new(scenario: &'a Scenario, case: &'a Case) -> Result<Self, String> {
        use Transport::{CoapTcp, CoapUdp, Http, Pair, PairBurst, PairTcp};
        const KNOWN: [Transport; 6] = [Http, CoapUdp, CoapTcp, Pair, PairTcp, PairBurst];
        let refused = |why: String| Err(format!("case '{}': {why}", case.name));
        if !KNOWN.contains(&case.transport) {
            let names = KNOWN.map(Transport::name).join(", ");
            let asked = case.transport.name();
            return refused(format!(
                "the messaging service has no {asked} yet: give one of {names}"
            ));
        }
        let is_pair = matches!(case.transport, Pair | PairBurst | PairTcp);
        let bridges = is_pair.then(|| Bridges::of(scenario));
        if let Some(lack) = bridges.as_ref().and_then(Bridges::lack) {
            return refused(format!("the pair has no place here, as {lack}: leave the case out"));
        }
        let given = Mutex::new(vec![None; scenario.messages.len()]);
        Ok(Self { scenario, case, bridges, given, connected: Mutex::new(None) })
    }

    /// The configuration of a node's service.
    fn config(&self, ground: &Ground<'_>, host: usize) -> Result<String, String> {
        let name = |host: usize| self.scenario.nodes.get(host).map_or("", |node| &node.name);
        let store = ground.scratch.join(format!("{}.store", name(host)));
        let mut text = String::new();
        let mut line = |key: &str, value: toml::Value| _ = writeln!(text, "{key} = {value}");
        line("node", name(host).into());
        line("listen", format!("127.0.0.1:{CLIENT_PORT}").into());
        line("peers", format!("0.0.0.0:{HTTP_PORT}").into());
        line("store", store.to_string_lossy().into_owned().into());
        line("form", self.case.format.name().into());
        let scheme = match self.case.transport {
            Transport::CoapUdp => Some(("coap", "coap")),
            Transport::CoapTcp => Some(("coap_tcp", "coap+tcp")),
            _ => None,
        };
        if let Some((key, _)) = scheme {
            line(key, format!("0.0.0.0:{COAP_PORT}").into());
        }
        for (key, value) in self.scenario.service_in(self.case) {
            line(&key, link::units::format_duration(value).into());
        }
        text += "[nodes]\n";
        for other in (0..self.scenario.nodes.len()).filter(|other| *other != host) {
            let address = ground.topology.address(other).ok_or("a node that is no host")?;
            let reach = self.bridges.as_ref().and_then(|bridges| bridges.reach(host, other));
            let way = match (reach, scheme) {
                (Some(Reach::Via(next)), _) => format!("via = {}", quoted(name(next))),
                (Some(Reach::Pair(port)), _) => format!("url = \"http://127.0.0.1:{port}\""),
                (_, Some((_, scheme))) => format!("url = \"{scheme}://{address}:{COAP_PORT}\""),
                (_, None) => format!("url = \"http://{address}:{HTTP_PORT}\""),
            };
            let _ = writeln!(text, "{} = {{ {way} }}", quoted(name(other)));
        }
        text += "[groups]\n";
        for group in &self.scenario.groups {
            let members = group.nodes.iter().filter_map(|id| self.scenario.node(*id));
            let members: Vec<String> = members.map(|node| quoted(&node.name)).collect();
            let _ = writeln!(text, "{} = [{}]", quoted(&group.name), members.join(", "));
        }
        Ok(text)
    }

    /// A message as a client gives it.
    fn draft(&self, number: usize, message: &ScriptedMessage) -> Value {
        let mut draft = json!({
            "id": script::id(number),
            "addressees": message.to,
            "precedence": message.precedence,
            "kind": message.kind,
            "delivery": message.delivery,
            "receipt": message.receipt,
            "text": message.text,
        });
        if let Some(validity) = message.validity {
            draft["validity_s"] = validity.as_secs().into();
        }
        draft
    }
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

impl Workload for Messages<'_> {
    fn programs(&self, ground: &Ground<'_>) -> Result<Vec<Program>, String> {
        let program = |host: usize| {
            let name = self.scenario.nodes.get(host).map_or("", |node| &node.name);
            let config: PathBuf = ground.scratch.join(format!("{name}.toml"));
            std::fs::write(&config, self.config(ground, host)?)
                .map_err(|error| format!("cannot write {}: {error}", config.display()))?;
            let command = ground.topology.command(host, ground.program, ground.program);
            let mut command = command.map_err(|error| error.to_string())?;
            command.args(["serve", "messaging", "--config"]).arg(&config);
            command.env("RUST_LOG", "warn");
            Ok(Program { host, command, ready: READY })
        };
        let programs = (0..ground.topology.hosts()).map(program);
        let mut programs = programs.collect::<Result<Vec<Program>, String>>()?;
        if let Some(bridges) = &self.bridges {
            programs.extend(bridges.programs(ground, self.case.transport, HTTP_PORT)?);
        }
        Ok(programs)
    }

    fn await_ready(&self, ground: &Ground<'_>, stop: &AtomicBool) -> Result<(), String> {
        let Some(bridges) = &self.bridges else { return Ok(()) };
        let connected = bridges.await_ready(ground, stop)?;
        *self.connected.lock().unwrap_or_else(PoisonError::into_inner) = Some(connected);
        Ok(())
    }

    fn times(&self) -> Vec<Duration> {
        self.scenario.messages.iter().map(|message| message.at).collect()
    }

    fn act(&self, ground: &Ground<'_>, number: usize) -> Result<(), String> {
        let message = self.scenario.messages.get(number).ok_or("no such message")?;
        let host = usize::from(message.from).saturating_sub(1);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = given.get_mut(number) {
            *slot = Some(now);
        }
        drop(given);
        let draft = self.draft(number, message);
        let request = ("POST", "/messages");
        let answer = ask((ground.topology, host), CLIENT_PORT, request, Some(&draft), PATIENCE)?;
        answer.json().map(drop)
    }

    fn collect(
        &self,
        ground: &Ground<'_>,
        begun: &Begun,
        failed: &[(usize, String)],
    ) -> Result<Outcome, String> {
        let hosts = ground.topology.hosts();
        let mut arrived: BTreeMap<(String, usize), Vec<Duration>> = BTreeMap::new();
        let mut stages: BTreeMap<(String, usize), String> = BTreeMap::new();
        for host in 0..hosts {
            for entry in list(ground, host, "inbox")? {
                let (Some(id), Some(at)) =
                    (entry["message"]["id"].as_str(), entry["arrived"].as_str().and_then(time))
                else {
                    continue;
                };
                arrived.entry((id.to_owned(), host)).or_default().push(at);
            }
            for entry in list(ground, host, "outbox")? {
                let Some(id) = entry["id"].as_str() else { continue };
                for (node, progress) in entry["recipients"].as_object().into_iter().flatten() {
                    let stage = progress["stage"].as_str().unwrap_or_default().to_owned();
                    if let Some(to) = self.scenario.node_named(node) {
                        let to = usize::from(to).saturating_sub(1);
                        stages.insert((id.to_owned(), to), stage);
                    }
                }
            }
        }
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let refused: BTreeSet<usize> = failed.iter().map(|(number, _)| *number).collect();
        let arrival = |number: usize, host: usize| {
            let message = self.scenario.messages.get(number);
            let (sent, key) = (given.get(number).copied().flatten(), (script::id(number), host));
            let is_refused = refused.contains(&number) || sent.is_none();
            Arrival {
                sent,
                bytes: message.map_or(0, |message| message.text.len()),
                came: arrived.get(&key).map_or(&[][..], Vec::as_slice),
                lost: lost(stages.get(&key).map(String::as_str), is_refused),
            }
        };
        let messages = script::outcomes(self.scenario, ground.movement, begun, arrival);
        let mut checks = script::checks(&messages, failed);
        if let Some((connected, all)) =
            *self.connected.lock().unwrap_or_else(PoisonError::into_inner)
        {
            checks.push(NetCheck {
                name: "edges and gateways that hear each other at the start are connected then"
                    .to_owned(),
                holds: true,
                found: format!("{connected} of {all}"),
            });
        }
        Ok(Outcome { messages, checks })
    }
}

/// Why a message did not come.
fn lost(stage: Option<&str>, is_refused: bool) -> &'static str {
    match stage {
        _ if is_refused => "refused",
        Some("expired") => "expired",
        Some("failed") => "failed",
        _ => "late",
    }
}

/// All of a node's inbox or outbox.
fn list(ground: &Ground<'_>, host: usize, which: &str) -> Result<Vec<Value>, String> {
    let mut all = Vec::new();
    let mut after = 0;
    for _ in 0..MAX_PAGES {
        let path = format!("/{which}?after={after}&limit={PAGE}");
        let place = (ground.topology, host);
        let answer = ask(place, CLIENT_PORT, ("GET", &path), None, PATIENCE);
        let answer = answer.and_then(|answer| answer.json());
        let mut value = answer.map_err(|why| {
            let name = ground.resolved.scenario.nodes.get(host).map_or("", |node| &node.name);
            format!("the {which} of {name}: {why}")
        })?;
        let Some(entries) = value["messages"].as_array_mut() else { break };
        after = entries.last().and_then(|entry| entry["number"].as_u64()).unwrap_or(after);
        all.append(entries);
        if value["more"] != true {
            break;
        }
    }
    Ok(all)
}

/// A time of RFC 3339 in UTC, with milliseconds or without, since 1970.
fn time(text: &str) -> Option<Duration> {
    let text = text.strip_suffix('Z')?;
    let (whole, ms) = text.split_once('.').unwrap_or((text, "0"));
    let seconds = calendar::parse(whole)?;
    Some(Duration::from_secs(seconds) + Duration::from_millis(ms.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_service_are_read_to_the_millisecond() {
        let at = time("1970-01-02T00:00:01.250Z").unwrap();
        assert_eq!(at, Duration::from_millis(86_401_250));
        assert_eq!(time("1970-01-02T00:00:01Z").unwrap(), Duration::from_secs(86_401));
        assert_eq!((time("1970-01-02T00:00:01"), time("x")), (None, None));
    }

    #[test]
    fn why_a_message_did_not_come_is_the_services_word() {
        assert_eq!(lost(Some("expired"), false), "expired");
        assert_eq!(lost(Some("failed"), false), "failed");
        assert_eq!(lost(Some("waiting"), false), "late");
        assert_eq!(lost(None, true), "refused");
    }
}
