//! A scenario with its path losses.

use super::facts::{Fact, facts, fingerprint};
use super::links::{Link, links};
use super::routes::{HopCounts, Routes};
use super::{PathLoss, Scenario};
use crate::losses::{Losses, NodeId};
use crate::prediction::{Antenna, Prediction};
use crate::{Error, losses};
use std::time::Duration;

/// A scenario with the path losses of each channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The scenario.
    pub scenario: Scenario,
    /// By channel; nodes by their numbers.
    pub losses: Vec<Losses>,
}

impl Scenario {
    /// Calculates the path losses of all channels.
    ///
    /// # Errors
    /// [`Error::Path`] naming the nodes and the time, for what [`Prediction::losses`] refuses: a
    /// node that comes off the map or past a hole; and for a node without a place on a channel
    /// whose losses are predicted.
    pub fn resolve(self) -> Result<Resolved, Error> {
        let losses = (0..self.media.len()).map(|medium| self.losses(medium));
        let losses = losses.collect::<Result<_, Error>>()?;
        Ok(Resolved { scenario: self, losses })
    }

    fn losses(&self, medium: usize) -> Result<Losses, Error> {
        let Some(net) = self.media.get(medium) else { return Ok(Losses::default()) };
        let model = match &net.path_loss {
            PathLoss::Replayed(losses) => return Ok(losses.clone()),
            PathLoss::Predicted(model) => *model,
        };
        let antenna = |(node, radio): (&super::Node, &super::NodeRadio)| {
            let track = node.track.clone().ok_or_else(|| Error::Path {
                what: format!(
                    "node {} has no place, which channel {} asks for: give one",
                    node.name, net.name
                ),
            })?;
            Ok(Antenna { node: node.id, track, height_m: radio.antenna_m })
        };
        let antennas = self.members(medium).map(antenna).collect::<Result<Vec<_>, Error>>()?;
        let prediction = Prediction {
            model,
            frequency_hz: net.frequency_hz,
            grid: self.ground.as_ref(),
            seed: self.seed.wrapping_add(medium as u64),
        };
        prediction.losses(&antennas, self.duration, self.step).map_err(|error| Error::Path {
            what: self.with_names(&format!("channel {}: {error}", net.name)),
        })
    }

    /// Numbers of nodes in a message of the prediction, followed by names.
    fn with_names(&self, what: &str) -> String {
        let number = |rest: &str| -> Option<NodeId> {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        };
        let Some((before, rest)) = what.split_once("nodes ") else { return what.to_owned() };
        let Some((a, after)) = rest.split_once(" and ") else { return what.to_owned() };
        let names = [number(a), number(after)].map(|id| id.and_then(|id| self.node(id)));
        match names {
            [Some(a), Some(b)] => {
                let after = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
                format!("{before}nodes {} and {}{after}", a.name, b.name)
            }
            _ => what.to_owned(),
        }
    }
}

impl Resolved {
    /// Who hears whom at a time, by channel, sender and receiver.
    #[must_use]
    pub fn links(&self, at: Duration) -> Vec<Link> {
        links(&self.scenario, &self.losses, at)
    }

    /// Routes at a time.
    #[must_use]
    pub fn routes(&self, at: Duration) -> Routes {
        Routes::over(&self.scenario, &self.links(at))
    }

    /// The times at which routes are calculated: each step from 0 to the end.
    pub fn steps(&self) -> impl Iterator<Item = Duration> + use<> {
        let (step, duration) = (self.scenario.step, self.scenario.duration);
        (0_u32..)
            .map_while(move |index| step.checked_mul(index))
            .take_while(move |at| *at <= duration)
    }

    /// Hops of all pairs over all steps, each with its time.
    pub fn hops(&self) -> impl Iterator<Item = (Duration, HopCounts)> + '_ {
        self.steps().map(|at| (at, self.routes(at).hop_counts()))
    }

    /// All that a run depends on, by name and in order.
    #[must_use]
    pub fn facts(&self) -> Vec<Fact> {
        facts(self)
    }

    /// A number that tells this scenario from others: of [`Resolved::facts`].
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        fingerprint(&self.facts())
    }

    /// The changes of a channel's path losses from one time up to another.
    #[must_use]
    pub fn changes(&self, medium: usize, from: Duration, until: Duration) -> &[losses::Change] {
        self.losses.get(medium).map_or(&[], |losses| losses.between(from, until))
    }
}

#[cfg(test)]
mod tests;
