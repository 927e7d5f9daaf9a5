//! Logits of many models into one, with weights that learn.

use super::logistic::{MAX_LOGIT, squash};

/// Weights have 16 fractional bits and stay within ±10, so that products fit in 32 bits.
const MAX_WEIGHT: i32 = 10 << 16;

/// One layer: several sets of weights, of each of which one row takes part.
#[derive(Clone, Debug)]
pub(super) struct Mixer {
    inputs: usize,
    weights: Vec<i32>,
    /// First row of each set.
    bases: Vec<usize>,
    /// Chosen rows and what they said.
    chosen: Vec<(usize, i32)>,
    /// How fast weights learn.
    pace: i32,
}

impl Mixer {
    /// `sets` are numbers of rows.
    pub(super) fn new(inputs: usize, sets: &[usize], weight: i32, pace: i32) -> Self {
        let mut bases = Vec::with_capacity(sets.len());
        let mut rows = 0;
        for set in sets {
            bases.push(rows);
            rows += set;
        }
        let chosen = vec![(0, 0); sets.len()];
        Self { inputs, weights: vec![weight; rows * inputs], bases, chosen, pace }
    }

    /// What each set says with its row of `rows`, as logits into `out`.
    pub(super) fn mix(&mut self, inputs: &[i32], rows: &[usize], out: &mut [i32]) {
        let chosen = self.chosen.iter_mut().zip(&self.bases).zip(rows.iter().zip(out));
        for (((row, logit), base), (pick, out)) in chosen {
            *row = (base + pick) * self.inputs;
            let weights = &self.weights[*row..*row + self.inputs];
            let sum: i32 = inputs
                .iter()
                .zip(weights)
                .map(|(input, weight)| input.wrapping_mul(*weight) >> 8)
                .fold(0, i32::wrapping_add);
            *logit = (sum >> 8).clamp(-MAX_LOGIT, MAX_LOGIT);
            *out = *logit;
        }
    }

    /// Learns `bit`.
    pub(super) fn update(&mut self, inputs: &[i32], bit: i32) {
        for (row, logit) in &self.chosen {
            let error = (((bit << 16) - squash(*logit)) * self.pace) >> 6;
            let weights = &mut self.weights[*row..*row + self.inputs];
            for (weight, input) in weights.iter_mut().zip(inputs) {
                let change = input.wrapping_mul(error).wrapping_add(1 << 15) >> 16;
                *weight = weight.wrapping_add(change).clamp(-MAX_WEIGHT, MAX_WEIGHT);
            }
        }
    }
}
