//! The model that knows the rate, corrected by what messages really took.

use super::{NetworkModel, Path, RateAware};
use crate::regression::Recursive;
use crate::state::{Error, Reader, State, Writer};

/// What a measured time weighs after the next one.
const FORGETTING: f64 = 0.97;
/// How far the model may be off at first, as a logarithm: at 4 KiB, and for 16 times as much.
const SPREAD: [f64; 2] = [0.4, 0.2];
/// Scatter of the logarithm of times.
const DEVIATION: f64 = 0.15;
/// A measured time is taken for at most so many times what the model says, and at least for the
/// inverse: outages are not what the network takes.
const MOST_RATIO: f64 = 8.0;

/// [`RateAware`] with a learned factor, and how sure that is.
#[derive(Clone, Debug)]
pub struct Corrected {
    ratio: Recursive<2>,
}

impl Default for Corrected {
    fn default() -> Self {
        Self { ratio: Recursive::new([0.0; 2], SPREAD, DEVIATION, FORGETTING) }
    }
}

fn features(bytes: f64) -> [f64; 2] {
    [1.0, (bytes.max(1.0) / 4096.0).log2() / 4.0]
}

impl Corrected {
    /// Learns that `bytes` took `seconds` on a path that looked like `path` before.
    pub fn observe(&mut self, path: &Path, bytes: f64, seconds: f64) {
        let ratio = seconds / RateAware.seconds(path, bytes);
        if ratio.is_finite() && ratio > 0.0 {
            let ratio = ratio.clamp(1.0 / MOST_RATIO, MOST_RATIO);
            self.ratio.observe(&features(bytes), ratio.ln());
        }
    }

    /// The path turned out to be another: what was learned counts for little.
    pub fn doubt(&mut self) {
        self.ratio.doubt(1.0);
    }

    /// Deviation of the logarithm of a time.
    #[must_use]
    pub fn deviation(&self, bytes: f64) -> f64 {
        self.ratio.predict(&features(bytes)).deviation
    }
}

impl NetworkModel for Corrected {
    fn seconds(&self, path: &Path, bytes: f64) -> f64 {
        let ratio = self.ratio.predict(&features(bytes)).mean;
        let most = MOST_RATIO.ln();
        RateAware.seconds(path, bytes) * ratio.clamp(-most, most).exp()
    }
}

impl State for Corrected {
    fn write(&self, to: &mut Writer<'_>) {
        self.ratio.write(to);
    }

    fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Error> {
        self.ratio.read(from)
    }
}
