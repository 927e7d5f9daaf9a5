//! `[[message]]` and `[[case]]`: who sends what to whom when, and how.

use std::time::Duration;

use link::net::{
    BrokerServer, Case, Format, MAX_CASES, MAX_MESSAGES, MAX_NODES, Scenario, ScriptedMessage,
    Topics, Transport,
};

use super::node::{NAME_RULE, is_name, unknown};
use super::table::{Item, Table};
use crate::messaging::machine::Settings;
use crate::messaging::{
    DELIVERIES, Draft, FREE_TEXT, MAX_ADDRESSEES, MAX_VALIDITY_S, PRECEDENCES, RECEIPTS,
};

const KEYS: [&str; 11] = [
    "at",
    "from",
    "to",
    "precedence",
    "kind",
    "delivery",
    "receipt",
    "validity",
    "text",
    "every",
    "times",
];
/// Keys of the configuration of a node's service that a scenario may set.
const SERVICE_KEYS: [&str; 5] =
    ["attempt_timeout", "resend", "retry_first", "retry_longest", "validity"];
/// Keys of a case; those of one whose messages are published.
const CASE_KEYS: [&str; 7] = ["name", "transport", "format", "service", "broker", "server", "qos"];
const TOPIC_KEYS: [&str; 3] = ["broker", "server", "qos"];
/// Longest name of a case, in bytes.
const MAX_CASE_BYTES: usize = 60;

/// All messages in order of time.
pub(super) fn messages(root: &Table<'_, '_>, scenario: &Scenario) -> Vec<ScriptedMessage> {
    let mut messages: Vec<ScriptedMessage> = Vec::new();
    let mut latest = Duration::ZERO;
    for table in root.tables("message", MAX_MESSAGES, &KEYS) {
        let Some(message) = message(&table, scenario, &mut latest) else { continue };
        let (every, times) = repetition(&table);
        let room = MAX_MESSAGES - messages.len();
        if times > room {
            let what = format!("{} messages, repeated ones counted", messages.len() + times);
            table.refuse(what, format!("at most {MAX_MESSAGES}; leave some out"));
        }
        for index in 0..u32::try_from(times.min(room)).unwrap_or(0) {
            let at = message.at.saturating_add(every.saturating_mul(index));
            if at > scenario.duration {
                let what = format!("repetition {} is after the scenario's end", index + 1);
                table.refuse(what, "give fewer 'times', a shorter 'every' or a longer duration");
                break;
            }
            messages.push(ScriptedMessage { at, ..message.clone() });
        }
    }
    // Those of one time stay as they stand in the file.
    messages.sort_by_key(|message| message.at);
    messages
}

fn repetition(table: &Table<'_, '_>) -> (Duration, usize) {
    let every = table.get("every");
    let times = table.get("times");
    if let (None, Some(item)) | (Some(item), None) = (&every, &times) {
        item.refuse("stands alone", "give 'every' and 'times' or neither");
        return (Duration::ZERO, 1);
    }
    let least = Duration::from_millis(1);
    let day = Duration::from_secs(86_400);
    let every = every.and_then(|item| item.duration(least..=day)).unwrap_or_default();
    let times = times.and_then(|item| item.whole(1..=MAX_MESSAGES as u64)).unwrap_or(1);
    (every, usize::try_from(times).unwrap_or(1))
}

fn message(
    table: &Table<'_, '_>,
    scenario: &Scenario,
    latest: &mut Duration,
) -> Option<ScriptedMessage> {
    let at_item = table.need("at");
    let at = at_item.as_ref().and_then(|item| item.duration(Duration::ZERO..=scenario.duration));
    if let (Some(item), Some(at)) = (&at_item, at) {
        if at < *latest {
            let text = link::units::format_duration;
            let what = format!("{} comes after {}", text(at), text(*latest));
            item.refuse(what, "times must not go back; sort the messages");
        }
        *latest = at.max(*latest);
    }
    let from = table.need("from").and_then(|item| sender(&item, scenario));
    let to = table.need("to").map(|item| addressees(&item, scenario, from));
    let word = |key: &str, words: &[&'static str], usual: &str| {
        let word = table.get(key).map_or(Some(usual), |item| item.word(words));
        word.map(str::to_owned)
    };
    let precedence = word("precedence", PRECEDENCES, "routine");
    let delivery = word("delivery", DELIVERIES, "reliable");
    let usual = if delivery.as_deref() == Some("best-effort") { "none" } else { "delivered" };
    let receipt = word("receipt", RECEIPTS, usual);
    let kind = table.get("kind").map_or(Some(FREE_TEXT.to_owned()), |item| {
        let kind = item.text()?;
        if !is_name(kind) {
            item.refuse("the kind's name is none", NAME_RULE);
        }
        Some(kind.to_owned())
    });
    let longest = Duration::from_secs(MAX_VALIDITY_S);
    let validity = table.get("validity").map(|item| {
        let validity = item.duration(Duration::from_secs(1)..=longest)?;
        if validity.subsec_nanos() != 0 {
            item.refuse("is not in whole seconds", "the service tells validity in seconds");
        }
        Some(validity)
    });
    let text = table.need("text").and_then(|item| message_text(&item));
    let validity = match validity {
        Some(None) => return None,
        Some(validity) => validity,
        None => None,
    };
    Some(ScriptedMessage {
        at: at?,
        from: from?,
        to: to?,
        precedence: precedence?,
        kind: kind?,
        delivery: delivery?,
        receipt: receipt?,
        validity,
        text: text?,
    })
}

/// A text that the service takes.
fn message_text(item: &Item<'_, '_>) -> Option<String> {
    let text = item.text()?.to_owned();
    let draft = Draft { addressees: vec!["a".to_owned()], text: text.clone(), ..Draft::default() };
    if let Err(refusal) = draft.check() {
        let line = refusal.line.as_str();
        let what = line.strip_prefix("field 'text': ").unwrap_or(line);
        item.refuse(what, "");
        return None;
    }
    Some(text)
}

fn sender(item: &Item<'_, '_>, scenario: &Scenario) -> Option<u16> {
    let name = item.text()?;
    let found = scenario.node_named(name);
    if found.is_none() {
        let names: Vec<&str> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
        item.refuse(unknown("node", name, &names), "");
    }
    found
}

/// One name or a list of them, each of a node or group.
fn addressees(item: &Item<'_, '_>, scenario: &Scenario, from: Option<u16>) -> Vec<String> {
    let items = if item.is_list() { item.list(MAX_ADDRESSEES) } else { vec![item.clone()] };
    let nodes = scenario.nodes.iter().map(|node| node.name.as_str());
    let groups = scenario.groups.iter().map(|group| group.name.as_str());
    let known: Vec<&str> = nodes.chain(groups).collect();
    let mut names: Vec<String> = Vec::new();
    for member in items {
        let Some(name) = member.text() else { continue };
        match scenario.nodes_of(name) {
            None => member.refuse(unknown("node or group", name, &known), ""),
            Some(nodes) if nodes.iter().all(|node| Some(*node) == from) => {
                member.refuse("the sender is the only addressee", "name another");
            }
            Some(_) if names.iter().any(|one| one == name) => {
                member.refuse(format!("{name} is named twice"), "leave one");
            }
            Some(_) => names.push(name.to_owned()),
        }
    }
    if names.is_empty() && item.is_list() && item.list(MAX_NODES).is_empty() {
        item.refuse("nobody is addressed", "name a node or group at least");
    }
    names
}

/// `[[case]]`: the ways in which the messages are sent.
pub(super) fn cases(root: &Table<'_, '_>, scenario: &Scenario) -> Vec<Case> {
    let transports = Transport::ALL.map(Transport::name);
    let formats = Format::ALL.map(Format::name);
    let mut cases: Vec<Case> = Vec::new();
    for table in root.tables("case", MAX_CASES, &CASE_KEYS) {
        let name_item = table.need("name");
        let name = name_item.as_ref().and_then(|item| item.short(MAX_CASE_BYTES));
        if let Some(item) =
            name_item.filter(|_| cases.iter().any(|one| Some(&one.name) == name.as_ref()))
        {
            item.refuse("two cases have this name", "; rename one");
        }
        let transport = table.need("transport").and_then(|item| item.word(&transports));
        let format = table.need("format").and_then(|item| item.word(&formats));
        let transport = Transport::ALL.into_iter().find(|one| Some(one.name()) == transport);
        let format = Format::ALL.into_iter().find(|one| Some(one.name()) == format);
        if let (Some(name), Some(transport), Some(format)) = (name, transport, format) {
            let (topics, service) = (topics(&table, scenario, transport), service(&table));
            let case = Case { name, transport, format, topics, service };
            let same = cases.iter().find(|one| one.file_name() == case.file_name());
            if let (Some(same), Some(item)) = (same, table.get("name"))
                && same.name != case.name
            {
                let what = format!("results of '{}' would be in the same files", same.name);
                item.refuse(what, "; let letters and digits tell the names apart");
            }
            cases.push(case);
        }
    }
    cases
}

/// `broker`, `server` and `qos` of a case whose messages are published.
fn topics(table: &Table<'_, '_>, scenario: &Scenario, transport: Transport) -> Option<Topics> {
    if !transport.is_published() {
        for (key, item) in TOPIC_KEYS.iter().filter_map(|key| Some((key, table.get(key)?))) {
            item.refuse(
                format!("'{key}' is not of {}", transport.name()),
                "; leave it out, or give a transport that publishes: mqtt, mqtt-sn, wsn, mqtt-udp",
            );
        }
        return None;
    }
    let broker = match (transport.has_broker(), table.get("broker")) {
        (true, None) => {
            let what = format!("'broker' is missing: {} needs one", transport.name());
            table.refuse(what, "name the node that it is on");
            None
        }
        (true, Some(item)) => sender(&item, scenario),
        (false, Some(item)) => {
            item.refuse(format!("{} has no broker", transport.name()), "; leave it out");
            None
        }
        (false, None) => None,
    };
    let servers = BrokerServer::ALL.map(BrokerServer::name);
    let server = table.get("server").and_then(|item| {
        let name = item.word(&servers)?;
        let server = BrokerServer::ALL.into_iter().find(|one| one.name() == name)?;
        if server == BrokerServer::Mosquitto && transport != Transport::Mqtt {
            item.refuse(format!("mosquitto does not speak {}", transport.name()), "; give mqtt");
        }
        Some(server)
    });
    let highest = match transport {
        Transport::Mqtt | Transport::MqttSn => 2,
        _ => 0,
    };
    let qos = table.get("qos").and_then(|item| item.whole(0..=highest)).unwrap_or(0);
    let server = server.unwrap_or(BrokerServer::Longwire);
    Some(Topics { broker, server, qos: u8::try_from(qos).unwrap_or(0) })
}

/// `service` of a scenario or of a case: times that the nodes' services are set to.
pub(super) fn service(parent: &Table<'_, '_>) -> Vec<(String, Duration)> {
    let table = parent.get("service").and_then(|item| item.table(&SERVICE_KEYS));
    let Some(table) = table else { return Vec::new() };
    let range = Duration::from_millis(1)..=Duration::from_secs(MAX_VALIDITY_S);
    let time = |key: &str| {
        let item = table.get(key)?;
        let time = item.duration(range.clone())?;
        if key == "validity" && time.subsec_nanos() != 0 {
            item.refuse("is not in whole seconds", "the service tells validity in seconds");
        }
        Some((key.to_owned(), time))
    };
    let times: Vec<(String, Duration)> = SERVICE_KEYS.iter().filter_map(|key| time(key)).collect();
    let usual = Settings::new("node", &[]).retry;
    let of = |key: &str, usual| {
        times.iter().find(|(name, _)| name == key).map_or(usual, |(_, time)| *time)
    };
    let (first, longest) = (of("retry_first", usual.first), of("retry_longest", usual.longest));
    if let Some(item) = parent.get("service").filter(|_| longest < first) {
        item.refuse(
            format!("retry_longest, {longest:?}, is shorter than retry_first, {first:?}"),
            "; give a longer one",
        );
    }
    times
}
