//! What a scenario is known by: all that a run depends on, as text.

use super::scenario::{NetMedium, Scenario, ScriptedMessage};
use super::{PathLoss, Resolved};
use crate::medium::Access;
use crate::propagation::Model;
use crate::tracks::Track;
use crate::units::{format_duration, format_rate};
use std::collections::BTreeMap;

/// One thing that a run depends on: what, and how it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// As `node a1 place`.
    pub what: String,
    /// As text.
    pub value: String,
}

/// A number that tells facts from others: FNV-1a of 64 bits, which by accident no two have; it is
/// no protection against forgery.
#[must_use]
pub fn fingerprint(facts: &[Fact]) -> u64 {
    let mut hash = Hash::default();
    for Fact { what, value } in facts {
        for part in [what, value] {
            hash.add(&(part.len() as u64).to_be_bytes());
            hash.add(part.as_bytes());
        }
    }
    hash.0
}

/// Facts that differ: what, and how it is in the first and in the second; none where it is not
/// there. In order of names.
#[must_use]
pub fn differences(a: &[Fact], b: &[Fact]) -> Vec<(String, Option<String>, Option<String>)> {
    let map = |facts: &[Fact]| -> BTreeMap<String, String> {
        facts.iter().map(|fact| (fact.what.clone(), fact.value.clone())).collect()
    };
    let (a, b) = (map(a), map(b));
    let both: BTreeMap<&String, ()> = a.keys().chain(b.keys()).map(|what| (what, ())).collect();
    let differs = |what: &&String| a.get(*what) != b.get(*what);
    let row = |what: &String| (what.clone(), a.get(what).cloned(), b.get(what).cloned());
    both.into_keys().filter(differs).map(row).collect()
}

struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Names are of no other of their kind, so that no two facts have one name.
pub(super) fn facts(resolved: &Resolved) -> Vec<Fact> {
    let Scenario { title, about, duration, step, seed, ground, media, nodes, groups, .. } =
        &resolved.scenario;
    let mut facts = Vec::new();
    let mut say = |what: String, value: String| facts.push(Fact { what, value });
    say("title".to_owned(), title.clone());
    say("about".to_owned(), about.clone());
    say("duration".to_owned(), format_duration(*duration));
    say("step".to_owned(), format_duration(*step));
    say("seed".to_owned(), seed.to_string());
    let ground = ground.as_ref().map_or("none".to_owned(), |grid| {
        let ([rows, columns], [south_west, north_east]) = (grid.size(), grid.corners());
        let (least_m, greatest_m, holes) = grid.range_m();
        format!(
            "{rows} rows, {columns} columns, {},{} to {},{}, {least_m} to {greatest_m} m, {holes} \
             holes",
            south_west.lat_deg, south_west.lon_deg, north_east.lat_deg, north_east.lon_deg
        )
    });
    say("ground".to_owned(), ground);
    for (net, losses) in media.iter().zip(&resolved.losses) {
        let loss = match &net.path_loss {
            PathLoss::Predicted(model) => model_text(model),
            PathLoss::Replayed(_) => "from a file".to_owned(),
        };
        if let Some(routing) = &net.routing {
            let value = format!("{} B each {}", routing.bytes, format_duration(routing.interval));
            say(format!("channel {} routing", net.name), value);
        }
        for (what, value) in medium_facts(net) {
            say(format!("channel {} {what}", net.name), value);
        }
        say(format!("channel {} path loss", net.name), loss);
        let changes = losses.changes().len();
        let value = format!("{changes} changes, {:016x}", losses.fingerprint());
        say(format!("channel {} path losses", net.name), value);
    }
    for node in nodes {
        say(format!("node {} number", node.name), node.id.to_string());
        let place = node.track.as_ref().map_or("none".to_owned(), track_text);
        say(format!("node {} place", node.name), place);
        for radio in &node.radios {
            let channel = media.get(radio.medium).map_or("", |net| net.name.as_str());
            let value = format!("antenna {} m, {} dBm", radio.antenna_m, radio.power_dbm);
            say(format!("node {} on {channel}", node.name), value);
        }
    }
    for group in groups {
        let names = group.nodes.iter().filter_map(|id| resolved.scenario.node(*id));
        let names: Vec<&str> = names.map(|node| node.name.as_str()).collect();
        say(format!("group {}", group.name), names.join(", "));
    }
    for (index, message) in resolved.scenario.messages.iter().enumerate() {
        say(format!("message {:05}", index + 1), message_text(&resolved.scenario, message));
    }
    for (key, time) in &resolved.scenario.service {
        say(format!("service {key}"), format_duration(*time));
    }
    for case in &resolved.scenario.cases {
        let value = format!("{} {}", case.transport.name(), case.format.name());
        say(format!("case {}", case.name), value);
        if let Some(topics) = &case.topics {
            let broker = topics.broker.and_then(|id| resolved.scenario.node(id));
            let broker = broker.map_or("no broker".to_owned(), |node| {
                format!("{} on {}", topics.server.name(), node.name)
            });
            say(format!("case {} topics", case.name), format!("{broker}, QoS {}", topics.qos));
        }
        for (key, time) in &case.service {
            say(format!("case {} service {key}", case.name), format_duration(*time));
        }
    }
    facts
}

fn medium_facts(net: &NetMedium) -> Vec<(&'static str, String)> {
    let config = &net.config;
    let radio = &config.radio;
    let rate = |rate: &crate::medium::Rate| {
        format!("{} from {} dB", format_rate(rate.rate_bps), rate.from_db)
    };
    let rates: Vec<String> = radio.rates.iter().map(rate).collect();
    let access = match &config.access {
        Access::Tdma(tdma) => format!(
            "TDMA, slots of {} with a guard of {}, owners {:?}, fragments {}, aggregates {}",
            format_duration(tdma.slot),
            format_duration(tdma.guard),
            tdma.owners,
            tdma.fragments,
            tdma.aggregates
        ),
        Access::Csma(csma) => format!(
            "CSMA, slots of {}, sifs {}, difs {}, window {} to {}, {} attempts, {} B acknowledged",
            format_duration(csma.slot),
            format_duration(csma.sifs),
            format_duration(csma.difs),
            csma.window_min,
            csma.window_max,
            csma.attempts,
            csma.ack_bytes
        ),
    };
    vec![
        ("kind", net.kind.to_owned()),
        ("frequency", format!("{} Hz", net.frequency_hz)),
        ("bandwidth", format!("{} Hz", radio.bandwidth_hz)),
        ("noise figure", format!("{} dB", radio.noise_figure_db)),
        ("rates", rates.join(", ")),
        ("sense", format!("{} dB", radio.sense_db)),
        ("preamble", format_duration(radio.preamble)),
        ("header", format!("{} B", radio.header_bytes)),
        ("access", access),
        ("queue", format!("{} packets, {} B", config.queue_packets, config.queue_bytes)),
        ("mtu", config.mtu.map_or("none".to_owned(), |mtu| format!("{mtu} B"))),
        ("jamming", format!("{:?}", config.jamming)),
    ]
}

fn model_text(model: &Model) -> String {
    match model {
        Model::FreeSpace | Model::TwoRay | Model::PlaneEarth => model.name().to_owned(),
        Model::LogDistance(settings) => format!("{} {settings:?}", model.name()),
        Model::DeltaBullington(ground) => format!("{} {ground:?}", model.name()),
    }
}

/// A track's points where they are few, else their number and a hash.
fn track_text(track: &Track) -> String {
    /// Most points that are told.
    const MAX_POINTS: usize = 8;
    let point = |(at, place): &(std::time::Duration, crate::geo::Position)| {
        let crate::geo::Position { lat_deg, lon_deg, alt_m } = place;
        format!("{} {lat_deg},{lon_deg},{alt_m}", format_duration(*at))
    };
    let points: Vec<String> = track.points().iter().map(point).collect();
    if points.len() <= MAX_POINTS {
        return points.join("; ");
    }
    let mut hash = Hash::default();
    points.iter().for_each(|text| hash.add(text.as_bytes()));
    format!("{} points, {:016x}", points.len(), hash.0)
}

fn message_text(scenario: &Scenario, message: &ScriptedMessage) -> String {
    let from = scenario.node(message.from).map_or("", |node| node.name.as_str());
    let validity = message.validity.map_or("as the service says".to_owned(), format_duration);
    format!(
        "{} {from} to {}: {}, {}, {}, receipt {}, valid {validity}: {}",
        format_duration(message.at),
        message.to.join(", "),
        message.precedence,
        message.kind,
        message.delivery,
        message.receipt,
        message.text
    )
}
