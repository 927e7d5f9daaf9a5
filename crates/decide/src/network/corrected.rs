//! The model that knows the rate, corrected by what messages really took.

use super::lengths::{Lengths, MessageShape};
use super::{NetworkModel, Path, RateAware};
use crate::estimate::UNSEEN_LOSS;
use crate::regression::Recursive;
use crate::state::{Error, Persist, Reader, Writer};

/// What a measured time weighs after the next one.
const FORGETTING: f64 = 0.97;
/// How far the waiting and the sending of the model may be off at first. The rate is measured; what
/// a window waits for is not.
const SPREAD: [f64; 2] = [0.4, 0.2];
/// Scatter of times, as a share of what is expected.
const DEVIATION: f64 = 0.15;
/// A part is taken for at most so many times what the model says, and at least for the inverse:
/// outages are not what the network takes.
pub(super) const MAX_RATIO: f64 = 8.0;

/// [`RateAware`] with a learned factor for each of its two parts, so that what short messages teach
/// of waiting is not held against long ones, whose time is sending. Where packets are lost and the
/// same length takes as long each time, lengths have their own besides.
#[derive(Clone, Debug)]
pub(super) struct Corrected {
    factors: Recursive<2>,
    /// Where nobody has measured the path: what is wrong then is mostly what was expected of it.
    unmeasured: Recursive<2>,
    lengths: Lengths,
}

impl Default for Corrected {
    fn default() -> Self {
        let fresh = Recursive::new([1.0; 2], SPREAD, DEVIATION, FORGETTING);
        Self { factors: fresh.clone(), unmeasured: fresh, lengths: Lengths::new(SPREAD) }
    }
}

impl Corrected {
    /// Learns that `bytes` took `seconds` on a path that looked like `path` before.
    pub(super) fn observe(&mut self, path: &Path, bytes: f64, seconds: f64) {
        let (waiting, sending) = RateAware::parts(path, bytes);
        let all = waiting + sending;
        let ratio = seconds / all;
        if ratio.is_finite() && ratio > 0.0 {
            let ratio = ratio.clamp(1.0 / MAX_RATIO, MAX_RATIO);
            let factors = if path.measured { &mut self.factors } else { &mut self.unmeasured };
            factors.observe(&[waiting / all, sending / all], ratio);
            if path.measured {
                self.lengths.observe(MessageShape::new(path, bytes), waiting / all, ratio);
            }
        }
    }

    /// Messages that a measured path has taught, as far as they are not forgotten.
    pub(super) fn weight(&self) -> f64 {
        self.factors.weight()
    }
}

impl NetworkModel for Corrected {
    fn seconds(&self, path: &Path, bytes: f64) -> f64 {
        let (waiting, sending) = RateAware::parts(path, bytes);
        let all = waiting + sending;
        let overflows = path.measured && path.loss > UNSEEN_LOSS;
        let own =
            overflows.then(|| self.lengths.ratio(&MessageShape::new(path, bytes), waiting / all));
        if let Some(ratio) = own.flatten() {
            return ratio.clamp(1.0 / MAX_RATIO, MAX_RATIO) * all;
        }
        let factors = if path.measured { &self.factors } else { &self.unmeasured };
        let [of_waiting, of_sending] =
            factors.coefficients().map(|factor| factor.clamp(1.0 / MAX_RATIO, MAX_RATIO));
        of_waiting * waiting + of_sending * sending
    }
}

/// What was learned of no measured path is not kept.
impl Persist for Corrected {
    fn write(&self, to: &mut Writer<'_>) {
        self.factors.write(to);
        self.lengths.write(to);
    }

    fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Error> {
        self.factors.read(from)?;
        self.lengths.read(from)
    }
}
