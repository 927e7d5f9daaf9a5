//! Path losses of all pairs of nodes over time: calculated once, stored, and replayed.

use crate::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

/// A node's number, as EMANE's NEM id: from 1.
pub type NodeId = u16;

/// Most changes of a scenario: 80 nodes of which each pair changes each second for 20 minutes.
pub const MAX_CHANGES: usize = 8_000_000;

/// The greatest loss that is told, in dB: beyond any radio.
pub const MAX_LOSS_DB: f64 = 1_000.0;

/// From a time on, a signal from one node to another loses so much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Since the scenario's start.
    pub at: Duration,
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// In dB; 0 is a signal that loses nothing.
    pub loss_db: f64,
}

/// Path losses of directed pairs over time. Each holds until the next one of its pair; nothing is
/// interpolated. A pair that was never named is not connected, which no loss in dB says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Losses {
    changes: Vec<Change>,
    /// Places in `changes` of each pair, in order of time.
    pairs: BTreeMap<(NodeId, NodeId), Vec<u32>>,
}

impl Losses {
    /// Losses from changes in order of time. Of two for a pair at one time the later one holds.
    ///
    /// # Errors
    /// [`Error::Path`] for a time before the one before it, a node that loses something to itself,
    /// a loss below 0 or above [`MAX_LOSS_DB`], more than [`MAX_CHANGES`] changes.
    pub fn new(changes: Vec<Change>) -> Result<Self, Error> {
        let refused = |what: String| Err(Error::Path { what });
        if changes.len() > MAX_CHANGES {
            return refused(format!("more than {MAX_CHANGES} path losses: take longer steps"));
        }
        let mut pairs: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        let mut latest = Duration::ZERO;
        for (index, change) in changes.iter().enumerate() {
            let Change { at, from, to, loss_db } = *change;
            if at < latest {
                let (at, latest) = (at.as_secs_f64(), latest.as_secs_f64());
                return refused(format!("{at} s comes after {latest} s: sort the path losses"));
            }
            if from == to {
                return refused(format!("node {from} has a path loss to itself"));
            }
            check_loss(loss_db).map_err(|what| Error::Path { what })?;
            latest = at;
            pairs.entry((from, to)).or_default().push(u32::try_from(index).unwrap_or(u32::MAX));
        }
        Ok(Self { changes, pairs })
    }

    /// All changes in order of time: the replay.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The changes from one time up to another, the latter left out.
    #[must_use]
    pub fn between(&self, from: Duration, until: Duration) -> &[Change] {
        let start = self.changes.partition_point(|change| change.at < from);
        let end = self.changes.partition_point(|change| change.at < until);
        &self.changes[start..end.max(start)]
    }

    /// The loss of a pair at a time, in dB; none where it has not been named yet.
    #[must_use]
    pub fn loss_db(&self, at: Duration, from: NodeId, to: NodeId) -> Option<f64> {
        let places = self.pairs.get(&(from, to))?;
        let change = |place: &u32| self.changes.get(*place as usize);
        let begun = places.partition_point(|place| change(place).is_some_and(|one| one.at <= at));
        change(places.get(begun.checked_sub(1)?)?).map(|one| one.loss_db)
    }

    /// Nodes that are named, by number.
    #[must_use]
    pub fn nodes(&self) -> BTreeSet<NodeId> {
        self.pairs.keys().flat_map(|(from, to)| [*from, *to]).collect()
    }

    /// The time of the last change.
    #[must_use]
    pub fn end(&self) -> Duration {
        self.changes.last().map_or(Duration::ZERO, |change| change.at)
    }

    /// A number that tells these losses from others, down to 0.001 dB and 1 ns: part of what a
    /// run is known by. It is FNV-1a of 64 bits, which no one can be made to collide by accident;
    /// it is no protection against forgery.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |bytes: &[u8]| {
            for byte in bytes {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        for Change { at, from, to, loss_db } in &self.changes {
            #[allow(clippy::cast_possible_truncation, reason = "up to a million")]
            let thousandths = (loss_db * 1_000.0).round() as i64;
            add(&at.as_nanos().to_be_bytes());
            add(&from.to_be_bytes());
            add(&to.to_be_bytes());
            add(&thousandths.to_be_bytes());
        }
        hash
    }

    /// The text of an eel file that reads back as these losses, times to the microsecond. A pair
    /// that is known one way only is written with the same loss back: the format has no one-way
    /// pairs.
    #[must_use]
    pub fn to_eel(&self) -> String {
        let mut text = String::new();
        let mut line = None;
        for Change { at, from, to, .. } in &self.changes {
            if from > to && self.changes_at(*at, *to, *from) {
                continue; // said with the other way
            }
            if line != Some((at, from)) {
                let end = if line.is_some() { "\n" } else { "" };
                let (seconds, micros) = (at.as_secs(), at.subsec_micros());
                let _ = write!(text, "{end}{seconds}.{micros:06} nem:{from} pathloss");
                line = Some((at, from));
            }
            let there_db = self.loss_db(*at, *from, *to).unwrap_or(MAX_LOSS_DB);
            match self.loss_db(*at, *to, *from).filter(|back_db| *back_db != there_db) {
                Some(back_db) => _ = write!(text, " nem:{to},{there_db},{back_db}"),
                None => _ = write!(text, " nem:{to},{there_db}"),
            }
        }
        if line.is_some() {
            text.push('\n');
        }
        text
    }

    /// Whether a pair changes at that very time.
    fn changes_at(&self, at: Duration, from: NodeId, to: NodeId) -> bool {
        let time = |place: &u32| self.changes.get(*place as usize).map(|change| change.at);
        let places = self.pairs.get(&(from, to)).map_or(&[][..], Vec::as_slice);
        places.binary_search_by(|place| time(place).cmp(&Some(at))).is_ok()
    }
}

pub(crate) fn check_loss(loss_db: f64) -> Result<(), String> {
    if (0.0..=MAX_LOSS_DB).contains(&loss_db) {
        return Ok(());
    }
    Err(format!("a path loss of {loss_db} dB: give 0 to {MAX_LOSS_DB} dB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(second: u64, from: NodeId, to: NodeId, loss_db: f64) -> Change {
        Change { at: Duration::from_secs(second), from, to, loss_db }
    }

    #[test]
    fn a_loss_holds_until_the_next_of_its_pair() {
        let changes = vec![change(1, 1, 2, 90.0), change(3, 2, 1, 95.5), change(5, 1, 2, 100.0)];
        let losses = Losses::new(changes).unwrap();
        let loss_db = |second, from, to| losses.loss_db(Duration::from_secs(second), from, to);
        assert_eq!(loss_db(0, 1, 2), None);
        assert_eq!((loss_db(1, 1, 2), loss_db(4, 1, 2)), (Some(90.0), Some(90.0)));
        assert_eq!((loss_db(5, 1, 2), loss_db(9, 2, 1)), (Some(100.0), Some(95.5)));
        assert_eq!(loss_db(9, 1, 3), None);
        assert_eq!(losses.nodes().into_iter().collect::<Vec<_>>(), [1, 2]);
        let second = Duration::from_secs;
        assert_eq!(losses.between(second(1), second(5)).len(), 2);
        assert_eq!(losses.between(second(5), second(1)).len(), 0);
        assert_eq!(losses.end(), second(5));
    }

    #[test]
    fn a_fingerprint_tells_losses_apart() {
        let of = |changes: Vec<Change>| Losses::new(changes).unwrap().fingerprint();
        let base = of(vec![change(1, 1, 2, 90.0)]);
        assert_eq!(base, of(vec![change(1, 1, 2, 90.000_1)]));
        for other in [
            change(2, 1, 2, 90.0),
            change(1, 2, 1, 90.0),
            change(1, 1, 3, 90.0),
            change(1, 1, 2, 90.001),
        ] {
            assert_ne!(base, of(vec![other]));
        }
    }

    #[test]
    fn what_is_no_loss_is_refused() {
        for (changes, expected) in [
            (vec![change(2, 1, 2, 1.0), change(1, 1, 2, 1.0)], "1 s comes after 2 s"),
            (vec![change(0, 4, 4, 1.0)], "node 4 has a path loss to itself"),
            (vec![change(0, 1, 2, -0.5)], "-0.5 dB"),
            (vec![change(0, 1, 2, f64::NAN)], "NaN dB"),
        ] {
            let error = Losses::new(changes).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
