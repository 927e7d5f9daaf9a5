//! `[[medium]]`: a channel that some nodes share.

use std::time::Duration;

use link::eel::Eel;
use link::losses::{Change, Losses, NodeId};
use link::medium::{
    Access, Csma, Curve, Jamming, MAX_HEADER_BYTES, MAX_JAMMING_WINDOWS, MAX_PART, MAX_RATES,
    MAX_SLOTS, MAX_WINDOW_SLOTS, MediumConfig, PortId, Rate, Tdma,
};
use link::net::{MAX_MEDIA, MAX_NODES, NetMedium, PathLoss, Routing};
use link::prediction::MAX_LENGTH;
use link::propagation::{LogDistance, MAX_DISTANCE_M, MAX_FREQUENCY_HZ, MIN_FREQUENCY_HZ, Model};
use link::{MAX_QUEUE_BYTES, MAX_QUEUE_PACKETS};

use super::node::{self, Draft};
use super::table::{Item, Table};

const KEYS: [&str; 32] = [
    "name",
    "kind",
    "access",
    "frequency",
    "path_loss",
    "exponent",
    "reference_m",
    "reference_db",
    "shadowing_db",
    "decorrelation_m",
    "power_dbm",
    "bandwidth",
    "noise_figure_db",
    "sense_db",
    "rates",
    "preamble",
    "header",
    "mtu",
    "queue",
    "queue_packets",
    "jamming",
    "routing",
    "slot",
    "guard",
    "owners",
    "fragments",
    "aggregates",
    "backoff",
    "window_min",
    "window_max",
    "attempts",
    "ack",
];
const OF_TDMA: [&str; 4] = ["guard", "owners", "fragments", "aggregates"];
const OF_CSMA: [&str; 5] = ["backoff", "window_min", "window_max", "attempts", "ack"];
const OF_DISTANCE: [&str; 5] =
    ["exponent", "reference_m", "reference_db", "shadowing_db", "decorrelation_m"];
/// The least that a link may carry (RFC 791 §3.2).
const MIN_MTU_BYTES: u32 = 68;
/// Longest message of a protocol of routing, in bytes.
const MAX_ROUTING_BYTES: u64 = 10_000;
/// Where path losses come from an eel file.
const EEL: &str = "eel";

/// The names of all channels in their order; empty for one without.
pub(super) fn names(root: &Table<'_, '_>) -> Vec<String> {
    let Some(list) = root.need("medium") else { return Vec::new() };
    let mut names: Vec<String> = Vec::new();
    for item in list.list(MAX_MEDIA) {
        let name = item.any_table().and_then(|table| table.need("name"));
        let text = name.as_ref().and_then(Item::text).unwrap_or_default();
        if let Some(item) = name {
            if !node::is_name(text) {
                item.refuse("the channel's name is none", node::NAME_RULE);
            }
            if !text.is_empty() && names.iter().any(|known| known == text) {
                item.refuse(format!("two channels are called {text}"), "; rename one");
            }
        }
        names.push(text.to_owned());
    }
    names
}

/// All channels, each with its nodes as ports.
pub(super) fn media(
    root: &Table<'_, '_>,
    nodes: &[Draft],
    has_ground: bool,
    eel: Option<&Eel>,
) -> Vec<NetMedium> {
    let tables = root.tables("medium", MAX_MEDIA, &KEYS);
    let medium = |(index, table): (usize, &Table<'_, '_>)| {
        let members: Vec<&Draft> =
            nodes.iter().filter(|node| node.radios.contains(&index)).collect();
        Reading { table, members: &members, has_ground, eel }.medium()
    };
    tables.iter().enumerate().map(medium).collect()
}

/// `routing`: what each node sends to all, in bytes, and how often.
fn routing(item: &Item<'_, '_>) -> Option<Routing> {
    let table = item.table(&["bytes", "interval"])?;
    let bytes = table.need("bytes").and_then(|bytes| bytes.whole(1..=MAX_ROUTING_BYTES));
    let times = Duration::from_millis(100)..=MAX_LENGTH;
    let interval = table.need("interval").and_then(|interval| interval.duration(times));
    Some(Routing { bytes: u32::try_from(bytes?).ok()?, interval: interval? })
}

struct Reading<'a, 't, 's> {
    table: &'a Table<'t, 's>,
    members: &'a [&'a Draft],
    has_ground: bool,
    eel: Option<&'a Eel>,
}

impl Reading<'_, '_, '_> {
    fn medium(&self) -> NetMedium {
        let table = self.table;
        let word = |key: &str, words: &[&'static str]| {
            table.get(key).map_or(words.first().copied(), |item| item.word(words)).unwrap_or("")
        };
        let is_wide = word("kind", &["wideband", "narrowband"]) != "narrowband";
        let is_tdma = word("access", &["csma", "tdma"]) == "tdma";
        let access = if is_tdma { self.tdma(is_wide) } else { self.csma(is_wide) };
        let mut config = match is_wide {
            true => MediumConfig::wideband(access),
            false => MediumConfig::narrowband(access),
        };
        self.radio(&mut config);
        let others: &[&str] = if is_tdma { &OF_CSMA } else { &OF_TDMA };
        for item in others.iter().filter_map(|key| table.get(key)) {
            let access = if is_tdma { "tdma" } else { "csma" };
            item.refuse(format!("means nothing to access = \"{access}\""), "; leave it out");
        }
        if self.members.len() < 2 {
            let what = format!("{} of the nodes are on this channel", self.members.len());
            table.refuse(what, "two at least; name it in the radios of nodes");
        } else if let Err(error) = config.check(self.ports()) {
            table.refuse(error.to_string(), "");
        }
        let frequency = |item: Item<'_, '_>| frequency(&item, MIN_FREQUENCY_HZ..=MAX_FREQUENCY_HZ);
        NetMedium {
            name: table.get("name").and_then(|item| item.text()).unwrap_or_default().to_owned(),
            kind: if is_wide { "wideband" } else { "narrowband" },
            frequency_hz: table.need("frequency").and_then(frequency).unwrap_or(300e6),
            config,
            path_loss: self.path_loss(),
            routing: table.get("routing").and_then(|item| routing(&item)),
        }
    }

    fn ports(&self) -> PortId {
        PortId::try_from(self.members.len()).unwrap_or(PortId::MAX)
    }

    fn port(&self, item: &Item<'_, '_>) -> Option<PortId> {
        let name = item.text()?;
        let place = self.members.iter().position(|member| member.name == name);
        if place.is_none() {
            let names: Vec<&str> = self.members.iter().map(|node| node.name.as_str()).collect();
            item.refuse(node::unknown("node on this channel", name, &names), "");
        }
        place.and_then(|place| PortId::try_from(place).ok())
    }

    fn tdma(&self, is_wide: bool) -> Access {
        let table = self.table;
        let (slot_ms, guard_us) = if is_wide { (10, 500) } else { (200, 10_000) };
        let part = |key: &str, usual| {
            let item = table.get(key);
            item.and_then(|item| item.duration(Duration::ZERO..=MAX_PART)).unwrap_or(usual)
        };
        let truth = |key: &str| table.get(key).and_then(|item| item.truth()).unwrap_or(true);
        let owners = match table.get("owners") {
            Some(item) => {
                let ports = |slot: Item<'_, '_>| {
                    let owners = slot.list(MAX_NODES);
                    owners.iter().filter_map(|owner| self.port(owner)).collect()
                };
                item.list(MAX_SLOTS).into_iter().map(ports).collect()
            }
            None => (0..self.ports()).map(|port| vec![port]).collect(),
        };
        Access::Tdma(Tdma {
            slot: part("slot", Duration::from_millis(slot_ms)),
            guard: part("guard", Duration::from_micros(guard_us)),
            owners,
            fragments: truth("fragments"),
            aggregates: truth("aggregates"),
        })
    }

    fn csma(&self, is_wide: bool) -> Access {
        let table = self.table;
        let mut csma = if is_wide { Csma::bianchi() } else { Csma::narrowband() };
        let whole = |key: &str, most: u32, value: &mut u32| {
            let number = table.get(key).and_then(|item| item.whole(1..=u64::from(most)));
            *value = number.and_then(|number| u32::try_from(number).ok()).unwrap_or(*value);
        };
        whole("window_min", MAX_WINDOW_SLOTS, &mut csma.window_min);
        whole("window_max", MAX_WINDOW_SLOTS, &mut csma.window_max);
        whole("attempts", 100, &mut csma.attempts);
        if let Some(bytes) = table.get("ack").and_then(|item| bytes(&item, MAX_HEADER_BYTES)) {
            csma.ack_bytes = bytes;
        }
        if let Some(slot) = table.get("slot") {
            slot.refuse("means nothing to access = \"csma\"", "; 'backoff' has its times");
        }
        if let Some(times) =
            table.get("backoff").and_then(|item| item.table(&["slot", "sifs", "difs"]))
        {
            for (key, time) in
                [("slot", &mut csma.slot), ("sifs", &mut csma.sifs), ("difs", &mut csma.difs)]
            {
                let part = times.get(key).and_then(|item| item.duration(Duration::ZERO..=MAX_PART));
                *time = part.unwrap_or(*time);
            }
        }
        Access::Csma(csma)
    }

    fn radio(&self, config: &mut MediumConfig) {
        let table = self.table;
        let number = |key: &str, range, unit, value: &mut f64| {
            *value = table.get(key).and_then(|item| item.number(range, unit)).unwrap_or(*value);
        };
        let radio = &mut config.radio;
        number("power_dbm", -100.0..=100.0, "dBm", &mut radio.power_dbm);
        number("noise_figure_db", 0.0..=100.0, "dB", &mut radio.noise_figure_db);
        number("sense_db", -100.0..=200.0, "dB", &mut radio.sense_db);
        if let Some(hz) = table.get("bandwidth").and_then(|item| frequency(&item, 1.0..=1e11)) {
            radio.bandwidth_hz = hz;
        }
        let preamble = table.get("preamble");
        if let Some(part) = preamble.and_then(|item| item.duration(Duration::ZERO..=MAX_PART)) {
            radio.preamble = part;
        }
        if let Some(header) = table.get("header").and_then(|item| bytes(&item, MAX_HEADER_BYTES)) {
            radio.header_bytes = header;
        }
        if let Some(item) = table.get("rates") {
            radio.rates = item.list(MAX_RATES).iter().filter_map(rate).collect();
        }
        if let Some(item) = table.get("mtu") {
            config.mtu = bytes(&item, 65_535);
            if config.mtu.is_some_and(|mtu| mtu < MIN_MTU_BYTES) {
                let what = format!("is under {MIN_MTU_BYTES} bytes (RFC 791 §3.2)");
                item.refuse(what, "; give at least that");
            }
        }
        let packets = table.get("queue_packets");
        let most = u64::from(MAX_QUEUE_PACKETS);
        if let Some(packets) = packets.and_then(|item| item.whole(1..=most)) {
            config.queue_packets = u32::try_from(packets).unwrap_or(MAX_QUEUE_PACKETS);
        }
        if let Some(item) = table.get("queue")
            && let Some(size) = item.unit(link::units::parse_size)
        {
            if !(1..=MAX_QUEUE_BYTES).contains(&size) {
                item.refuse(format!("is not from 1 to {MAX_QUEUE_BYTES} bytes"), "");
            }
            config.queue_bytes = size.clamp(1, MAX_QUEUE_BYTES);
        }
        if let Some(item) = table.get("jamming") {
            let windows = item.list(MAX_JAMMING_WINDOWS);
            config.jamming = windows.iter().filter_map(|window| self.jamming(window)).collect();
        }
    }

    fn jamming(&self, item: &Item<'_, '_>) -> Option<Jamming> {
        let table = item.table(&["from", "until", "level_dbm", "nodes"])?;
        let time =
            |key: &str| table.need(key).and_then(|item| item.duration(Duration::ZERO..=MAX_LENGTH));
        let (from, until) = (time("from"), time("until"));
        let level = table.need("level_dbm").and_then(|item| item.number(-200.0..=100.0, "dBm"));
        let ports = table
            .get("nodes")
            .map(|nodes| nodes.list(MAX_NODES).iter().filter_map(|node| self.port(node)).collect());
        Some(Jamming { from: from?, until: until?, level_dbm: level?, ports })
    }

    fn path_loss(&self) -> PathLoss {
        let table = self.table;
        let words = [&Model::NAMES[..], &[EEL]].concat();
        let usual = if self.has_ground { "delta-bullington" } else { "two-ray" };
        let item = table.get("path_loss");
        let word = item.as_ref().map_or(Some(usual), |item| item.word(&words)).unwrap_or(usual);
        let mut model = Model::named(word).unwrap_or(Model::TwoRay);
        let own: Vec<Item<'_, '_>> = OF_DISTANCE.iter().filter_map(|key| table.get(key)).collect();
        match &mut model {
            Model::LogDistance(settings) => self.log_distance(settings),
            _ => own.iter().for_each(|item| {
                item.refuse(format!("means nothing to path_loss = \"{word}\""), "; leave it out");
            }),
        }
        if word == EEL {
            let replayed = self.replayed(item.as_ref());
            return PathLoss::Replayed(replayed.unwrap_or_default());
        }
        if let Some(item) = item.filter(|_| model.wants_profile() && !self.has_ground) {
            let what = format!("\"{word}\" asks for heights of the ground");
            item.refuse(what, "; give [ground], or another path_loss");
        }
        for node in self.members.iter().filter(|node| node.track.is_none() && !node.is_placed) {
            let what = format!("node {} has no place", node.name);
            let remedy = "; give 'at', 'way' or 'track', or path_loss = \"eel\" here";
            table.source().note(node.line, &node.field, what, remedy);
        }
        PathLoss::Predicted(model)
    }

    fn log_distance(&self, settings: &mut LogDistance) {
        let number =
            |key: &str, range, unit| self.table.get(key).and_then(|item| item.number(range, unit));
        let set = |value: Option<f64>, place: &mut f64| *place = value.unwrap_or(*place);
        set(number("exponent", 0.0..=10.0, ""), &mut settings.exponent);
        set(number("reference_m", 0.001..=MAX_DISTANCE_M, "m"), &mut settings.reference_m);
        settings.reference_db = number("reference_db", 0.0..=300.0, "dB");
        set(number("shadowing_db", 0.0..=40.0, "dB"), &mut settings.shadowing_db);
        let decorrelation = number("decorrelation_m", 0.001..=MAX_DISTANCE_M, "m");
        set(decorrelation, &mut settings.decorrelation_m);
    }

    /// The eel file's path losses between the nodes on this channel, by their own numbers.
    fn replayed(&self, item: Option<&Item<'_, '_>>) -> Option<Losses> {
        let item = item?;
        let Some(eel) = self.eel else {
            item.refuse("there is no eel file", "; give [eel] with its file");
            return None;
        };
        let heard = eel.losses.nodes();
        let mut numbers = std::collections::BTreeMap::new();
        for node in self.members {
            match node.nem {
                Some(nem) if heard.contains(&nem) => {
                    if numbers.insert(nem, node.id).is_some() {
                        let what = format!("nem {nem} is another node's already");
                        let remedy = "; give each node a number of its own";
                        self.table.source().note(node.line, &node.field, what, remedy);
                    }
                }
                Some(nem) => {
                    let what = format!("nem {nem} is on no radio: no path loss names it");
                    let remedy = "; take another of the eel file's nodes";
                    self.table.source().note(node.line, &node.field, what, remedy);
                }
                None => {
                    let what = format!("node {} has no 'nem'", node.name);
                    let remedy = "; say which node of the eel file it is";
                    self.table.source().note(node.line, &node.field, what, remedy);
                }
            }
        }
        let number = |nem: &NodeId| numbers.get(nem).copied();
        let change = |change: &Change| {
            let (from, to) = (number(&change.from)?, number(&change.to)?);
            Some(Change { from, to, ..*change })
        };
        let losses = Losses::new(eel.losses.changes().iter().filter_map(change).collect());
        losses.map_err(|error| item.refuse(error.to_string(), "")).ok()
    }
}

/// `{ rate = "500 kbit/s", from_db = 8 }`.
fn rate(item: &Item<'_, '_>) -> Option<Rate> {
    let table = item.table(&["rate", "from_db"])?;
    let rate_bps = table.need("rate").and_then(|item| item.unit(link::units::parse_rate));
    let from_db = table.need("from_db").and_then(|item| item.number(-100.0..=100.0, "dB"));
    let (rate_bps, from_db) = (rate_bps?, from_db?);
    Some(Rate { rate_bps, from_db, curve: Curve::emane(from_db) })
}

fn bytes(item: &Item<'_, '_>, most: u32) -> Option<u32> {
    let size = item.unit(link::units::parse_size)?;
    let bytes = u32::try_from(size).ok().filter(|bytes| (1..=most).contains(bytes));
    if bytes.is_none() {
        item.refuse(format!("{size} B is out of range"), format!("give 1 to {most} B"));
    }
    bytes
}

/// `300 MHz`, `25 kHz`.
fn frequency(item: &Item<'_, '_>, range: std::ops::RangeInclusive<f64>) -> Option<f64> {
    const UNITS: [(&str, f64); 4] = [("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9), ("Hz", 1.0)];
    let text = item.text()?;
    let read = UNITS.iter().find_map(|(unit, hz)| {
        let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        Some(number * hz).filter(|hz| range.contains(hz))
    });
    if read.is_none() {
        let shown = crate::messaging::shown(text);
        let limit = format!("give {} to {} Hz, as \"300 MHz\"", range.start(), range.end());
        item.refuse(format!("\"{shown}\" is no such frequency"), limit);
    }
    read
}
