//! EMANE's Emulation Event Log: where nodes are and what their signals lose.
//!
//! A line is `time module event arguments…`, separated by spaces or tabs: the time in seconds, the
//! node as `nem:N`. `#` begins a comment, quotes hold an argument together, entries of an argument
//! are separated by commas. Lines of one time belong together; nothing is interpolated.

mod fields;

use crate::Error;
use crate::geo::Position;
use crate::losses::{Change, Losses, MAX_CHANGES, NodeId, check_loss};
use crate::nearest::nearest;
use crate::tracks::Track;
use fields::{Line, Trouble};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Longest text of an eel file, in bytes. Whoever reads the file reads no more than this and one
/// byte.
pub const MAX_EEL_BYTES: usize = 256 * 1024 * 1024;

/// Events that are read.
const READ: [&str; 3] = ["location", "pathloss", "commeffect"];

/// Events that EMANE has too and that change nothing here: they are counted.
const OTHERS: [&str; 7] = [
    "velocity",
    "orientation",
    "antennaprofile",
    "fadingselection",
    "jamming",
    "rxantenna",
    "tdmaschedule",
];

/// From a time on, what is sent from one node to another fares so: EMANE's comm effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CommEffect {
    /// Since the file's start.
    pub at: Duration,
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// Mean time on the way.
    pub latency: Duration,
    /// The time varies evenly by as much more or less.
    pub jitter: Duration,
    /// Share lost, 0 to 1.
    pub loss: f64,
    /// Share that arrives twice, 0 to 1.
    pub duplicate: f64,
    /// Rate for packets to one node, in bit/s; none for no limit.
    pub unicast_bps: Option<u64>,
    /// Rate for packets to all, in bit/s; none for no limit.
    pub broadcast_bps: Option<u64>,
}

/// What an eel file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Eel {
    /// Path losses.
    pub losses: Losses,
    /// Where nodes are: each stays at a place until the time of the next.
    pub tracks: BTreeMap<NodeId, Track>,
    /// Comm effects in order of time.
    pub effects: Vec<CommEffect>,
    /// Events of EMANE that change nothing here, with how often they came.
    pub others: BTreeMap<&'static str, usize>,
    /// Times at which something happens, with the line of the first event.
    times: Vec<(Duration, usize)>,
    name: String,
}

impl Eel {
    /// Reads an eel file; `name` stands for it in messages.
    ///
    /// # Errors
    /// [`Error::File`] naming line and field: a line with fields missing, a time that is none or
    /// before the one before, a node out of 1 to 65534, an event that EMANE does not have, a value
    /// out of range or missing, more than [`MAX_EEL_BYTES`] bytes or [`MAX_CHANGES`] entries.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let refused = |line: Option<usize>, trouble: Trouble| Error::File {
            kind: "eel",
            name: name.to_owned(),
            line,
            field: trouble.field,
            what: trouble.what,
        };
        if text.len() > MAX_EEL_BYTES {
            let what = format!("has more than {MAX_EEL_BYTES} bytes: split it");
            return Err(refused(None, Trouble::new("", what)));
        }
        let mut reading = Reading::default();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let read = Line::parse(line).and_then(|line| match line {
                Some(line) => reading.line(number, &line),
                None => Ok(()),
            });
            read.map_err(|trouble| refused(Some(number), trouble))?;
        }
        reading.finish(name).map_err(|error| refused(None, Trouble::new("", error.to_string())))
    }

    /// The name given to [`Eel::parse`].
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Nodes of any event that is read.
    #[must_use]
    pub fn nodes(&self) -> BTreeSet<NodeId> {
        let by_effect = self.effects.iter().flat_map(|effect| [effect.from, effect.to]);
        self.losses
            .nodes()
            .into_iter()
            .chain(self.tracks.keys().copied())
            .chain(by_effect)
            .collect()
    }

    /// Checks that a file that should say something at least every `step` does so.
    ///
    /// # Errors
    /// [`Error::File`] naming the first line after a longer silence, and how long that was.
    pub fn check_steps(&self, step: Duration) -> Result<(), Error> {
        let gap = self.times.windows(2).find(|pair| pair[1].0 - pair[0].0 > step);
        gap.map_or(Ok(()), |pair| {
            let ((before, _), (after, line)) = (pair[0], pair[1]);
            let what = format!(
                "nothing happens from {} s to {} s, longer than {} s: a piece of the file is \
                 missing, or the step is longer",
                before.as_secs_f64(),
                after.as_secs_f64(),
                step.as_secs_f64()
            );
            Err(self.refused(Some(line), "time", what))
        })
    }

    /// Checks that each of some nodes is on the radio: that it has a path loss, from or to it.
    ///
    /// # Errors
    /// [`Error::File`] naming the first node that has none.
    pub fn check_nodes(&self, nodes: impl IntoIterator<Item = NodeId>) -> Result<(), Error> {
        let heard = self.losses.nodes();
        match nodes.into_iter().find(|node| !heard.contains(node)) {
            Some(node) => {
                let what = "is on no radio: no path loss names it";
                Err(self.refused(None, &format!("nem:{node}"), what.to_owned()))
            }
            None => Ok(()),
        }
    }

    fn refused(&self, line: Option<usize>, field: &str, what: String) -> Error {
        Error::File { kind: "eel", name: self.name.clone(), line, field: field.to_owned(), what }
    }
}

/// A file on its way to an [`Eel`].
#[derive(Default)]
struct Reading {
    changes: Vec<Change>,
    places: BTreeMap<NodeId, Vec<(Duration, Position)>>,
    effects: Vec<CommEffect>,
    others: BTreeMap<&'static str, usize>,
    times: Vec<(Duration, usize)>,
    entries: usize,
}

impl Reading {
    fn line(&mut self, number: usize, line: &Line) -> Result<(), Trouble> {
        match self.times.last() {
            Some((latest, _)) if line.at < *latest => {
                let (at, latest) = (line.at.as_secs_f64(), latest.as_secs_f64());
                let what = format!("{at} s comes after {latest} s: sort the lines");
                return Err(Trouble::new("time", what));
            }
            Some((latest, _)) if line.at == *latest => {}
            _ => self.times.push((line.at, number)),
        }
        self.entries += line.arguments.len();
        if self.entries > MAX_CHANGES {
            let what = format!("more than {MAX_CHANGES} entries: take longer steps");
            return Err(Trouble::new("", what));
        }
        match line.event.as_str() {
            "location" => self.location(line),
            "pathloss" => self.path_losses(line),
            "commeffect" => self.comm_effects(line),
            event => {
                let known = OTHERS.iter().find(|known| **known == event).ok_or_else(|| {
                    let known: Vec<&str> = READ.iter().chain(&OTHERS).copied().collect();
                    let meant = nearest(event, &known)
                        .map_or(String::new(), |name| format!("did you mean '{name}'? "));
                    Trouble::new("event", format!("{meant}known are {}", known.join(", ")))
                })?;
                *self.others.entry(known).or_default() += 1;
                Ok(())
            }
        }
    }

    /// `location gps lat,lon,alt`.
    fn location(&mut self, line: &Line) -> Result<(), Trouble> {
        let [kind, coordinates] = line.arguments.as_slice() else {
            let what = "give 'gps LATITUDE,LONGITUDE,METRES'".to_owned();
            return Err(Trouble::new("location", what));
        };
        if kind != "gps" {
            let what = format!("{} is not 'gps'", crate::error::quoted(kind));
            return Err(Trouble::new("location", what));
        }
        let [lat_deg, lon_deg, alt_m] = fields::numbers("location gps", coordinates)?;
        let place = Position::new(lat_deg, lon_deg, alt_m)
            .map_err(|error| Trouble::new("location gps", error.to_string()))?;
        let places = self.places.entry(line.node).or_default();
        // Of two places at one time the later one holds.
        places.pop_if(|(at, _)| *at == line.at);
        places.push((line.at, place));
        Ok(())
    }

    /// `pathloss nem:D,dB[,dB back] …`.
    fn path_losses(&mut self, line: &Line) -> Result<(), Trouble> {
        for entry in fields::entries("pathloss", line)? {
            let values = fields::values(&entry.field, &entry.values, 1, 2)?;
            for loss_db in &values {
                check_loss(*loss_db).map_err(|what| Trouble::new(&entry.field, what))?;
            }
            let (there_db, back_db) = (values[0], values.get(1).copied().unwrap_or(values[0]));
            let (at, from, to) = (line.at, line.node, entry.node);
            self.changes.push(Change { at, from, to, loss_db: there_db });
            self.changes.push(Change { at, from: to, to: from, loss_db: back_db });
        }
        Ok(())
    }

    /// `commeffect nem:D,latency s,jitter s,loss %,duplicates %,unicast bit/s,broadcast bit/s …`.
    fn comm_effects(&mut self, line: &Line) -> Result<(), Trouble> {
        for entry in fields::entries("commeffect", line)? {
            let values = fields::values(&entry.field, &entry.values, 6, 6)?;
            let within = |index: usize, name: &str, greatest: f64| {
                let value = values[index];
                let what = format!("{name} {value} is out of range: give 0 to {greatest}");
                let is_in = (0.0..=greatest).contains(&value);
                is_in.then_some(value).ok_or_else(|| Trouble::new(&entry.field, what))
            };
            #[allow(clippy::cast_possible_truncation, reason = "checked to be below 1e12")]
            let rate = |bps: f64| (bps >= 1.0).then_some(bps as u64);
            self.effects.push(CommEffect {
                at: line.at,
                from: line.node,
                to: entry.node,
                latency: Duration::from_secs_f64(within(0, "latency", 3_600.0)?),
                jitter: Duration::from_secs_f64(within(1, "jitter", 3_600.0)?),
                loss: within(2, "loss", 100.0)? / 100.0,
                duplicate: within(3, "share of duplicates", 100.0)? / 100.0,
                unicast_bps: rate(within(4, "unicast rate", 1e12)?),
                broadcast_bps: rate(within(5, "broadcast rate", 1e12)?),
            });
        }
        Ok(())
    }

    fn finish(self, name: &str) -> Result<Eel, Error> {
        let tracks =
            self.places.into_iter().map(|(node, places)| Ok((node, Track::stepped(places)?)));
        Ok(Eel {
            losses: Losses::new(self.changes)?,
            tracks: tracks.collect::<Result<_, Error>>()?,
            effects: self.effects,
            others: self.others,
            times: self.times,
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
