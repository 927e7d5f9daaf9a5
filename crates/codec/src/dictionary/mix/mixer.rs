//! Logits of many models into one, with weights that learn.
//!
//! Floats, for speed: additions and products of IEEE 754 are exact to the last bit on every machine
//! as long as their order is fixed, and here it is, in lanes.

use super::logistic::{MAX_LOGIT, squash};

/// Sums that run side by side.
const LANES: usize = 8;
/// What weights stay within.
const MAX_WEIGHT: f32 = 10.0;

/// One layer: several sets of weights, of each of which one row takes part.
#[derive(Clone, Debug)]
pub(super) struct Mixer {
    inputs: usize,
    weights: Vec<f32>,
    /// First row of each set.
    bases: Vec<usize>,
    /// Chosen rows and what they said.
    chosen: Vec<(usize, i32)>,
    /// What an error of one changes in the weight of an input of one.
    pace: f32,
}

impl Mixer {
    /// `inputs` is a multiple of eight, `sets` are numbers of rows; `pace` is in 2^−38.
    pub(super) fn new(inputs: usize, sets: &[usize], weight: f32, pace: u16) -> Self {
        let mut bases = Vec::with_capacity(sets.len());
        let mut rows = 0;
        for set in sets {
            bases.push(rows);
            rows += set;
        }
        let chosen = vec![(0, 0); sets.len()];
        let pace = f32::from(pace) / f32::from(1_u16 << 15) / f32::from(1_u16 << 15) / 256.0;
        Self { inputs, weights: vec![weight; rows * inputs], bases, chosen, pace }
    }

    /// What each set says with its row of `rows`, as logits into `out`.
    pub(super) fn mix(&mut self, inputs: &[f32], rows: &[usize], out: &mut [f32]) {
        let chosen = self.chosen.iter_mut().zip(&self.bases).zip(rows.iter().zip(out));
        for (((row, logit), base), (pick, out)) in chosen {
            *row = (base + pick) * self.inputs;
            let weights = &self.weights[*row..*row + self.inputs];
            let mut sums = [0.0_f32; LANES];
            for (inputs, weights) in inputs.chunks_exact(LANES).zip(weights.chunks_exact(LANES)) {
                for ((sum, input), weight) in sums.iter_mut().zip(inputs).zip(weights) {
                    *sum += input * weight;
                }
            }
            let [a, b, c, d, e, f, g, h] = sums;
            let sum = ((a + e) + (b + f)) + ((c + g) + (d + h));
            #[expect(clippy::cast_possible_truncation, reason = "saturates, and is clamped")]
            let whole = (sum as i32).clamp(-MAX_LOGIT, MAX_LOGIT);
            *logit = whole;
            *out = float(whole);
        }
    }

    /// What the first set said.
    pub(super) fn logit(&self) -> i32 {
        self.chosen.first().map_or(0, |(_, logit)| *logit)
    }

    /// Learns `bit`.
    pub(super) fn update(&mut self, inputs: &[f32], bit: i32) {
        for (row, logit) in &self.chosen {
            let step = float((bit << 16) - squash(*logit)) * self.pace;
            let weights = &mut self.weights[*row..*row + self.inputs];
            for (weight, input) in weights.iter_mut().zip(inputs) {
                *weight = (*weight + input * step).clamp(-MAX_WEIGHT, MAX_WEIGHT);
            }
        }
    }
}

/// Exact: logits and probabilities have fewer than 24 bits.
pub(super) fn float(value: i32) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "at most 17 bits")]
    let value = value as f32;
    value
}
