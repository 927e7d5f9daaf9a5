//! `[[node]]` and `[[convoy]]`: who there is, where, and on which channels.

use std::collections::BTreeMap;
use std::time::Duration;

use link::eel::Eel;
use link::geo::Position;
use link::losses::NodeId;
use link::net::{Convoy, Group, MAX_MEDIA, MAX_NODES, NetMedium, Node, NodeRadio};
use link::prediction::MAX_LENGTH;
use link::propagation::MAX_ANTENNA_HEIGHT_M;
use link::terrain::HeightGrid;
use link::tracks::{MAX_TRACKS_BYTES, NamedTrack, Track, parse_geojson, parse_gpx};

use super::ReadFile;
use super::ground::{place, place_of, read_text};
use super::table::{Item, Table};
use crate::messaging::{is_token, shown};

/// What a name is, for messages.
pub(super) const NAME_RULE: &str =
    "give up to 64 letters, digits and ._~-, the first a letter or digit";
/// Most points of a way that stands in the file itself.
const MAX_WAY_POINTS: usize = 10_000;
/// Height of an antenna that the file does not give, in metres: a vehicle's.
const ANTENNA_M: f64 = 3.0;

const NODE_KEYS: [&str; 10] = [
    "name",
    "radios",
    "antenna_m",
    "power_dbm",
    "at",
    "way",
    "track",
    "track_name",
    "speed_mps",
    "nem",
];
const CONVOY_KEYS: [&str; 11] = [
    "name",
    "count",
    "radios",
    "leader_radios",
    "antenna_m",
    "power_dbm",
    "way",
    "gap_m",
    "speed_mps",
    "start",
    "first",
];

/// A node before the power of its channels is known.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) id: NodeId,
    pub(super) name: String,
    pub(super) track: Option<Track>,
    /// Its number in the eel file.
    pub(super) nem: Option<NodeId>,
    /// Whether the file gives it a place, sound or not.
    pub(super) is_placed: bool,
    /// Places of channels.
    pub(super) radios: Vec<usize>,
    pub(super) antenna_m: f64,
    pub(super) power_dbm: Option<f64>,
    pub(super) line: usize,
    pub(super) field: String,
}

/// Where places of nodes come from.
pub(super) struct Places<'a> {
    ground: Option<&'a HeightGrid>,
    eel: Option<&'a Eel>,
    read: ReadFile<'a>,
    /// Files of tracks that were read, by name and speed.
    files: BTreeMap<(String, u64), Vec<NamedTrack>>,
}

pub(super) fn is_name(name: &str) -> bool {
    is_token(name)
}

/// What to say of a name that nothing has.
pub(super) fn unknown(kind: &str, name: &str, known: &[&str]) -> String {
    let meant =
        link::nearest(name, known).map_or(String::new(), |one| format!(", did you mean '{one}'?"));
    format!("there is no {kind} '{}'{meant}", shown(name))
}

/// All nodes, and the groups that convoys are.
pub(super) fn nodes(
    root: &Table<'_, '_>,
    media: &[String],
    places: &mut Places<'_>,
) -> (Vec<Draft>, Vec<Group>) {
    let mut list = List { root, media, nodes: Vec::new() };
    for table in root.tables("node", MAX_NODES, &NODE_KEYS) {
        list.node(&table, places);
    }
    let mut groups = Vec::new();
    for table in root.tables("convoy", MAX_NODES, &CONVOY_KEYS) {
        let convoy = list.convoy(&table, places);
        if let (Some(convoy), Some(item)) = (&convoy, table.get("name"))
            && (list.nodes.iter().any(|node| node.name == convoy.name)
                || groups.iter().any(|group: &Group| group.name == convoy.name))
        {
            item.refuse("a node or convoy has this name too", "; rename one");
        }
        groups.extend(convoy);
    }
    if list.nodes.len() > MAX_NODES {
        let what = format!("{} nodes, those of convoys counted", list.nodes.len());
        root.refuse(what, format!("at most {MAX_NODES}; leave some out"));
        list.nodes.truncate(MAX_NODES);
    }
    if list.nodes.is_empty() {
        root.refuse("there is no node", "give [[node]] or [[convoy]]");
    }
    (list.nodes, groups)
}

/// The nodes as they are in a scenario, with the power of their channels where they have none of
/// their own.
pub(super) fn without_nem(drafts: Vec<Draft>, media: &[NetMedium]) -> Vec<Node> {
    let node = |draft: Draft| {
        let radio = |medium: usize| {
            let usual = media.get(medium).map(|net| net.config.radio.power_dbm);
            let power_dbm = draft.power_dbm.or(usual).unwrap_or_default();
            NodeRadio { medium, antenna_m: draft.antenna_m, power_dbm }
        };
        let radios = draft.radios.iter().copied().map(radio).collect();
        Node { id: draft.id, name: draft.name, track: draft.track, radios }
    };
    drafts.into_iter().map(node).collect()
}

struct List<'a, 't, 's> {
    root: &'a Table<'t, 's>,
    media: &'a [String],
    nodes: Vec<Draft>,
}

/// What nodes and convoys have alike.
struct Common {
    radios: Vec<usize>,
    antenna_m: f64,
    power_dbm: Option<f64>,
}

impl List<'_, '_, '_> {
    fn common(&self, table: &Table<'_, '_>) -> Common {
        let antenna = |item: Item<'_, '_>| item.number(0.01..=MAX_ANTENNA_HEIGHT_M, "m");
        let antenna_m = match table.get("antenna_m") {
            Some(item) => antenna(item),
            None => self.root.get("antenna_m").map_or(Some(ANTENNA_M), antenna),
        };
        let power_dbm = table.get("power_dbm").and_then(|item| item.number(-100.0..=100.0, "dBm"));
        let radios = match table.get("radios") {
            Some(item) => {
                let radios = self.radios(&item);
                if item.list(MAX_MEDIA).is_empty() {
                    item.refuse("the node is on no radio", "name a channel at least");
                }
                radios
            }
            None => {
                table.refuse("the node is on no radio", "name a channel at least in 'radios'");
                Vec::new()
            }
        };
        Common { radios, antenna_m: antenna_m.unwrap_or(ANTENNA_M), power_dbm }
    }

    fn radios(&self, item: &Item<'_, '_>) -> Vec<usize> {
        let known: Vec<&str> = self.media.iter().map(String::as_str).collect();
        let mut radios = Vec::new();
        for member in item.list(MAX_MEDIA) {
            let Some(name) = member.text() else { continue };
            match known.iter().position(|one| *one == name && !name.is_empty()) {
                Some(place) if radios.contains(&place) => {
                    member.refuse(format!("channel {name} is named twice"), "leave one");
                }
                Some(place) => radios.push(place),
                None => member.refuse(unknown("channel", name, &known), ""),
            }
        }
        radios
    }

    fn node(&mut self, table: &Table<'_, '_>, places: &mut Places<'_>) {
        let name = table.need("name");
        let text = name.as_ref().and_then(Item::text).unwrap_or_default().to_owned();
        if let Some(item) = &name {
            self.check_name(item, &text);
        }
        let nem = table.get("nem").and_then(|item| item.whole(1..=65_534));
        let nem = nem.and_then(|nem| NodeId::try_from(nem).ok());
        let track = places.track(table, &text, nem);
        let common = self.common(table);
        self.push(text, track, nem, common, table);
    }

    fn check_name(&self, item: &Item<'_, '_>, name: &str) {
        if !is_name(name) {
            item.refuse("the node's name is none", NAME_RULE);
        } else if self.nodes.iter().any(|node| node.name == name) {
            item.refuse(format!("two nodes are called {name}"), "; rename one");
        }
    }

    fn push(
        &mut self,
        name: String,
        track: Option<Track>,
        nem: Option<NodeId>,
        common: Common,
        table: &Table<'_, '_>,
    ) {
        // Bounded by the file: what is beyond the most nodes is refused.
        let id = NodeId::try_from(self.nodes.len() + 1).unwrap_or(NodeId::MAX);
        let Common { radios, antenna_m, power_dbm } = common;
        let (line, field) = (table.line, table.name().to_owned());
        let is_placed = ["at", "way", "track"].iter().any(|key| table.get(key).is_some());
        self.nodes.push(Draft {
            id,
            name,
            track,
            nem,
            is_placed,
            radios,
            antenna_m,
            power_dbm,
            line,
            field,
        });
    }

    /// Vehicles that follow each other; they are a group of the convoy's name.
    fn convoy(&mut self, table: &Table<'_, '_>, places: &mut Places<'_>) -> Option<Group> {
        let item = table.need("name")?;
        let name = item.text()?.to_owned();
        if !is_name(&name) || name.len() > 60 {
            item.refuse("the convoy's name is none", NAME_RULE);
        }
        let most = (MAX_NODES + 1).saturating_sub(self.nodes.len()) as u64;
        let count = table.need("count").and_then(|item| item.whole(1..=most));
        let first = table.get("first").map_or(Some(1), |item| item.whole(0..=1_000_000));
        let gap_m = table.need("gap_m").and_then(|item| item.number(1.0..=100_000.0, "m"));
        let speed = table.need("speed_mps").and_then(|item| item.number(0.01..=1_000.0, "m/s"));
        let start = table
            .get("start")
            .map_or(Some(Duration::ZERO), |item| item.duration(Duration::ZERO..=MAX_LENGTH));
        let way_item = table.need("way");
        let way: Vec<Position> = way_item
            .as_ref()
            .map(|way| {
                way.list(MAX_WAY_POINTS).iter().filter_map(|one| places.place(one)).collect()
            })
            .unwrap_or_default();
        let leader = table.get("leader_radios").map(|item| self.radios(&item));
        let common = self.common(table);
        let count = usize::try_from(count?).ok()?;
        let convoy = Convoy { way, count, gap_m: gap_m?, speed_mps: speed?, start: start? };
        let tracks = convoy.tracks().map_err(|error| {
            way_item.iter().for_each(|item| item.refuse(error.to_string(), ""));
        });
        let mut members = Vec::new();
        for (index, track) in tracks.ok()?.into_iter().enumerate() {
            let member = format!("{name}{}", first? + index as u64);
            self.check_name(&item, &member);
            let mut radios = common.radios.clone();
            let more = leader.iter().flatten().filter(|_| index == 0);
            radios.extend(more.filter(|radio| !common.radios.contains(radio)));
            let common = Common { radios, ..common };
            self.push(member, Some(track), None, common, table);
            members.extend(self.nodes.last().map(|node| node.id));
        }
        Some(Group { name, nodes: members })
    }
}

impl<'a> Places<'a> {
    pub(super) fn new(
        ground: Option<&'a HeightGrid>,
        eel: Option<&'a Eel>,
        read: ReadFile<'a>,
    ) -> Self {
        Self { ground, eel, read, files: BTreeMap::new() }
    }

    /// A place that is on the map.
    fn place(&self, item: &Item<'_, '_>) -> Option<Position> {
        let place = place(item)?;
        self.on_map(item, place)
    }

    fn on_map(&self, item: &Item<'_, '_>, place: Position) -> Option<Position> {
        match self.ground.map(|ground| ground.height_m(&place)) {
            Some(Err(error)) => {
                item.refuse(error.to_string(), "");
                None
            }
            _ => Some(place),
        }
    }

    /// Where a node is: one of `at`, `way`, `track`; else its places in the eel file.
    fn track(&mut self, table: &Table<'_, '_>, name: &str, nem: Option<NodeId>) -> Option<Track> {
        let given: Vec<Item<'_, '_>> =
            ["at", "way", "track"].iter().filter_map(|key| table.get(key)).collect();
        if let [_, second, ..] = given.as_slice() {
            second.refuse("the node has a place already", "give one of 'at', 'way' and 'track'");
        }
        if table.get("track").is_none() {
            for item in ["track_name", "speed_mps"].iter().filter_map(|key| table.get(key)) {
                item.refuse("means nothing without 'track'", "; leave it out");
            }
        }
        if let Some(item) = table.get("at") {
            return self.place(&item).map(Track::fixed);
        }
        if let Some(item) = table.get("way") {
            return self.way(&item);
        }
        if let Some(item) = table.get("track") {
            return self.of_file(table, &item, name);
        }
        self.eel.and_then(|eel| eel.tracks.get(&nem?).cloned())
    }

    /// `[[SECONDS, LATITUDE, LONGITUDE], …]`.
    fn way(&self, item: &Item<'_, '_>) -> Option<Track> {
        let mut points: Vec<(Duration, Position)> = Vec::new();
        for point in item.list(MAX_WAY_POINTS) {
            let members = point.list(4);
            let Some((time, place)) = members.split_first() else {
                point.refuse("is empty", "give [SECONDS, LATITUDE, LONGITUDE]");
                continue;
            };
            let time = time.number(0.0..=MAX_LENGTH.as_secs_f64(), "s");
            let place = place_of(&point, place).and_then(|place| self.on_map(&point, place));
            let (Some(time), Some(place)) = (time.map(Duration::from_secs_f64), place) else {
                continue;
            };
            if let Some((before, _)) = points.last().filter(|(before, _)| *before >= time) {
                let what =
                    format!("{} s comes after {} s", time.as_secs_f64(), before.as_secs_f64());
                point.refuse(what, "times must grow; sort the points");
                continue;
            }
            points.push((time, place));
        }
        Track::moving(points).map_err(|error| item.refuse(error.to_string(), "")).ok()
    }

    /// A track of a GPX or GeoJSON file.
    fn of_file(&mut self, table: &Table<'_, '_>, item: &Item<'_, '_>, name: &str) -> Option<Track> {
        let file = item.text()?;
        let speed = table.get("speed_mps").map(|item| item.number(0.01..=10_000.0, "m/s"));
        let speed_mps = match speed {
            Some(None) => return None,
            Some(speed_mps) => speed_mps,
            None => None,
        };
        let key = (file.to_owned(), speed_mps.unwrap_or_default().to_bits());
        if !self.files.contains_key(&key) {
            let text = read_text(item, file, self.read, MAX_TRACKS_BYTES)?;
            let parse = if file.ends_with(".gpx") { parse_gpx } else { parse_geojson };
            let tracks = parse(file, &text, speed_mps);
            let tracks = tracks.map_err(|error| item.source().note_file(item, &error)).ok()?;
            self.files.insert(key.clone(), tracks);
        }
        let tracks = self.files.get(&key)?;
        let wanted = table.get("track_name").and_then(|item| item.text()).unwrap_or(name);
        let found = tracks.iter().find(|track| track.name == wanted);
        let track = match (found, tracks.as_slice()) {
            (Some(track), _) => &track.track,
            (None, [only]) if table.get("track_name").is_none() => &only.track,
            _ => {
                let names: Vec<&str> = tracks.iter().map(|track| track.name.as_str()).collect();
                let what = unknown("track", wanted, &names);
                item.refuse(what, "; say which by 'track_name'");
                return None;
            }
        };
        for (_, place) in track.points() {
            self.on_map(item, *place)?;
        }
        Some(track.clone())
    }
}
