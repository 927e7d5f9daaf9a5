//! Path losses of a scenario before it runs: a model over the way of each pair, second by second.

use crate::Error;
use crate::geo::Position;
use crate::losses::{Change, Losses, MAX_CHANGES, NodeId};
use crate::propagation::{LogDistance, Model, Path};
use crate::random::{Dice, Purpose, Subject};
use crate::terrain::{HeightGrid, Profile};
use crate::tracks::Track;
use std::f64::consts::TAU;
use std::time::Duration;

/// Most nodes of a scenario.
pub const MAX_NODES: usize = 1_024;

/// Longest scenario.
pub const MAX_LENGTH: Duration = Duration::from_secs(7 * 86_400);

/// Antennas nearer to each other than this, in metres, stand at one place: without ground between.
const MIN_APART_M: f64 = 1.0;

/// Losses are kept in steps of so much of a dB.
const STEPS_PER_DB: f64 = 100.0;

/// A node's antenna.
#[derive(Clone, Debug, PartialEq)]
pub struct Antenna {
    /// The node.
    pub node: NodeId,
    /// Where it is.
    pub track: Track,
    /// Metres above ground.
    pub height_m: f64,
}

/// How path losses are predicted.
#[derive(Clone, Copy, Debug)]
pub struct Prediction<'a> {
    /// The model.
    pub model: Model,
    /// Hz.
    pub frequency_hz: f64,
    /// The ground, for models that ask for it. Over a grid a node stands on the ground, whatever
    /// altitude its track has; without one its antenna is above the altitude of its track.
    pub grid: Option<&'a HeightGrid>,
    /// Other seeds draw other shadowing.
    pub seed: u64,
}

/// What a signal loses between two places, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicted {
    /// Metres between the antennas.
    pub distance_m: f64,
    /// The ground between, where there is a grid.
    pub profile: Option<Profile>,
    /// In dB, without shadowing.
    pub loss_db: f64,
}

impl Prediction<'_> {
    /// Path loss between two antennas, each at a place and a height above ground in metres.
    ///
    /// # Errors
    /// Those of [`Model::loss_db`] and [`HeightGrid::profile`].
    pub fn pair(&self, a: (Position, f64), b: (Position, f64)) -> Result<Predicted, Error> {
        let ground_m = a.0.ground_distance_m(&b.0);
        let profile = match self.grid {
            Some(grid) if ground_m >= MIN_APART_M => Some(grid.profile(&a.0, &b.0)?),
            Some(grid) => grid.height_m(&a.0).map(|_| None)?,
            None => None,
        };
        let bases_m = profile.as_ref().map_or([a.0.alt_m, b.0.alt_m], Profile::ends_m);
        let is_one_place = self.grid.is_some() && profile.is_none();
        let climb_m = if is_one_place { 0.0 } else { bases_m[1] - bases_m[0] } + b.1 - a.1;
        let distance_m = ground_m.hypot(climb_m);
        let path = Path {
            distance_m,
            frequency_hz: self.frequency_hz,
            heights_m: [a.1, b.1],
            profile: profile.as_ref(),
        };
        // At one place there is no ground between.
        let model = if is_one_place { Model::FreeSpace } else { self.model };
        let loss_db = model.loss_db(&path)?;
        Ok(Predicted { distance_m, profile, loss_db })
    }

    /// Path losses of all pairs at each `step` from 0 to `length`. A loss that stays the same to
    /// 0.01 dB makes no change. The two ways of a pair lose the same.
    ///
    /// # Errors
    /// [`Error::Path`] naming the nodes and the time, for what [`Prediction::pair`] refuses; for
    /// more than [`MAX_NODES`] nodes, a node that is named twice, a step of nothing, a scenario
    /// longer than [`MAX_LENGTH`] or with more than [`MAX_CHANGES`] changes.
    pub fn losses(
        &self,
        antennas: &[Antenna],
        length: Duration,
        step: Duration,
    ) -> Result<Losses, Error> {
        check(antennas, length, step)?;
        let mut pairs: Vec<Pair<'_>> = antennas
            .iter()
            .enumerate()
            .flat_map(|(index, a)| antennas[index + 1..].iter().map(move |b| Pair::new(a, b)))
            .collect();
        let mut changes = Vec::new();
        let (mut at, mut index) = (Duration::ZERO, 0_u64);
        while at <= length {
            for pair in &mut pairs {
                let moment = Moment { at, index };
                let Some(loss_db) = self.step(pair, &moment)? else { continue };
                let (from, to) = (pair.a.node, pair.b.node);
                changes.push(Change { at, from, to, loss_db });
                changes.push(Change { at, from: to, to: from, loss_db });
            }
            if changes.len() > MAX_CHANGES {
                let what = format!("more than {MAX_CHANGES} changes: take a longer step");
                return Err(Error::Path { what });
            }
            (at, index) = (at + step, index + 1);
        }
        Losses::new(changes)
    }

    /// The loss of a pair where it differs from the step before.
    fn step(&self, pair: &mut Pair<'_>, moment: &Moment) -> Result<Option<f64>, Error> {
        let places = [pair.a.track.at(moment.at), pair.b.track.at(moment.at)];
        if pair.places == Some(places) {
            return Ok(None);
        }
        let [a, b] = [(places[0], pair.a.height_m), (places[1], pair.b.height_m)];
        let predicted = self.pair(a, b).map_err(|error| Error::Path {
            what: format!(
                "nodes {} and {} at {} s: {error}",
                pair.a.node,
                pair.b.node,
                moment.at.as_secs_f64()
            ),
        })?;
        let mut loss_db = predicted.loss_db;
        if let Model::LogDistance(settings) = &self.model {
            loss_db += self.shadowing_db(pair, places, moment.index, settings);
        }
        pair.places = Some(places);
        let loss_db = ((loss_db * STEPS_PER_DB).round() / STEPS_PER_DB).max(0.0);
        let is_new = pair.loss_db != Some(loss_db);
        pair.loss_db = Some(loss_db);
        Ok(is_new.then_some(loss_db))
    }

    /// Shadowing that follows from that of the step before, the more the less the two have moved:
    /// Gudmundson's model.
    fn shadowing_db(
        &self,
        pair: &mut Pair<'_>,
        places: [Position; 2],
        index: u64,
        settings: &LogDistance,
    ) -> f64 {
        let dice = Dice::for_seed(self.seed);
        let nodes = u64::from(pair.a.node) << 16 | u64::from(pair.b.node);
        let subject = Subject { number: nodes << 32 ^ index, is_copy: false };
        let radius = (-2.0 * (1.0 - dice.unit(subject, Purpose::ShadowingRadius)).ln()).sqrt();
        let normal = radius * (TAU * dice.unit(subject, Purpose::ShadowingAngle)).cos();
        pair.shadowing = match pair.places {
            None => normal,
            Some(before) => {
                let moved_m: f64 =
                    before.iter().zip(&places).map(|(old, new)| old.distance_m(new)).sum();
                let kept = (-moved_m / settings.decorrelation_m).exp();
                kept * pair.shadowing + (1.0 - kept * kept).sqrt() * normal
            }
        };
        pair.shadowing * settings.shadowing_db
    }
}

/// A pair on its way through the steps.
struct Pair<'a> {
    a: &'a Antenna,
    b: &'a Antenna,
    places: Option<[Position; 2]>,
    loss_db: Option<f64>,
    /// In standard deviations.
    shadowing: f64,
}

impl<'a> Pair<'a> {
    fn new(a: &'a Antenna, b: &'a Antenna) -> Self {
        // In order of numbers, so that the order in which nodes are named changes no chance.
        let (a, b) = if a.node < b.node { (a, b) } else { (b, a) };
        Self { a, b, places: None, loss_db: None, shadowing: 0.0 }
    }
}

struct Moment {
    at: Duration,
    index: u64,
}

fn check(antennas: &[Antenna], length: Duration, step: Duration) -> Result<(), Error> {
    let refused = |what: String| Err(Error::Path { what });
    if antennas.len() > MAX_NODES {
        return refused(format!("{} nodes: at most {MAX_NODES} are had", antennas.len()));
    }
    if step.is_zero() || length > MAX_LENGTH {
        return refused(format!(
            "steps of {} s over {} s: give a step above 0 and at most {} s",
            step.as_secs_f64(),
            length.as_secs_f64(),
            MAX_LENGTH.as_secs()
        ));
    }
    let mut nodes: Vec<NodeId> = antennas.iter().map(|antenna| antenna.node).collect();
    nodes.sort_unstable();
    match nodes.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => refused(format!("node {} is named twice: leave one", pair[0])),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
