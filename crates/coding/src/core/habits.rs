//! What classes of messages are like, for what a message does not tell of itself.

use std::collections::BTreeMap;

/// Classes whose usual length is remembered.
const MAX_CLASSES: usize = 1024;
/// Length to expect of a body that does not say, of a class that nobody has seen.
const UNKNOWN_BYTES: f64 = 65_536.0;
/// Share that a fast coder may leave of a body of which nothing is at hand yet.
pub(crate) const UNKNOWN_SHARE: f64 = 0.35;
/// Share of a new message in what is usual of its class.
const USUAL_GAIN: f64 = 0.25;

/// What is usual of a class.
#[derive(Clone, Copy, Debug)]
struct Usual {
    bytes: f64,
    head_share: f64,
    used: u64,
}

/// What classes are like, for what a message does not tell of itself.
#[derive(Debug, Default)]
pub(crate) struct Habits {
    classes: BTreeMap<u64, Usual>,
    clock: u64,
}

impl Habits {
    /// Bytes and share to expect of a class.
    pub(crate) fn get(&self, class: u64) -> (f64, f64) {
        let usual = self.classes.get(&class);
        usual.map_or((UNKNOWN_BYTES, UNKNOWN_SHARE), |usual| (usual.bytes, usual.head_share))
    }

    /// Class, bytes and share of each, by class.
    pub(crate) fn all(&self) -> impl ExactSizeIterator<Item = (u64, f64, f64)> {
        self.classes.iter().map(|(&class, usual)| (class, usual.bytes, usual.head_share))
    }

    pub(crate) fn note(&mut self, class: u64, bytes: f64, head_share: f64) {
        self.clock += 1;
        if self.classes.len() >= MAX_CLASSES && !self.classes.contains_key(&class) {
            let oldest = self.classes.iter().min_by_key(|(_, usual)| usual.used);
            if let Some(oldest) = oldest.map(|(&class, _)| class) {
                self.classes.remove(&oldest);
            }
        }
        let fresh = Usual { bytes, head_share, used: 0 };
        let usual = self.classes.entry(class).or_insert(fresh);
        usual.bytes += (bytes - usual.bytes) * USUAL_GAIN;
        usual.head_share += (head_share - usual.head_share) * USUAL_GAIN;
        usual.used = self.clock;
    }
}
