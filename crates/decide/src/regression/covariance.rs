//! How unsure coefficients are.

use super::dot;
use crate::state::{Error, Persist, Reader, Writer};

/// A covariance of coefficients that were unsure apart from each other when nothing was seen.
///
/// It is bounded by its trace, so that a feature that never varies does not make it grow without
/// end ("covariance wind-up").
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Covariance<const N: usize> {
    entries: [[f64; N]; N],
    /// Its diagonal before anything was seen, whose sum bounds the trace.
    start: [f64; N],
}

impl<const N: usize> Covariance<N> {
    pub(super) fn new(start: [f64; N]) -> Self {
        let mut entries = [[0.0; N]; N];
        entries.iter_mut().enumerate().for_each(|(at, row)| row[at] = start[at]);
        Self { entries, start }
    }

    pub(super) fn start(&self) -> &[f64; N] {
        &self.start
    }

    pub(super) fn times(&self, features: &[f64; N]) -> [f64; N] {
        let mut product = [0.0; N];
        for (entry, row) in product.iter_mut().zip(&self.entries) {
            *entry = dot(row, features);
        }
        product
    }

    /// Variance along features.
    pub(super) fn along(&self, features: &[f64; N]) -> f64 {
        dot(features, &self.times(features)).max(0.0)
    }

    /// The same when nothing was seen.
    pub(super) fn along_start(&self, features: &[f64; N]) -> f64 {
        features.iter().zip(&self.start).map(|(of, start)| of * of * start).sum()
    }

    /// Each over its variance when nothing was seen.
    pub(super) fn over_start(&self, of: &[f64; N]) -> [f64; N] {
        let mut of = *of;
        of.iter_mut().zip(&self.start).for_each(|(of, start)| *of /= start);
        of
    }

    /// Takes away what an observation showed of a direction.
    pub(super) fn shrink(&mut self, direction: &[f64; N], scale: f64) {
        for (row, by) in self.entries.iter_mut().zip(direction) {
            row.iter_mut().zip(direction).for_each(|(entry, and)| *entry -= by * and * scale);
        }
    }

    /// Of what was seen so much is left.
    pub(super) fn forget(&mut self, forgetting: f64) {
        let trace: f64 = (0..N).map(|at| self.entries[at][at]).sum();
        let factor = (self.most_trace() / trace.max(f64::MIN_POSITIVE)).min(1.0 / forgetting);
        self.entries.iter_mut().flatten().for_each(|entry| *entry *= factor);
    }

    fn most_trace(&self) -> f64 {
        self.start.iter().sum()
    }
}

/// By this share of its trace a covariance may be off one without a negative direction: rounding.
const ROUNDING: f64 = 1e-6;

/// The upper triangle: it is symmetric. What it began with is the program's.
impl<const N: usize> Persist for Covariance<N> {
    fn write(&self, to: &mut Writer<'_>) {
        for (row, entries) in self.entries.iter().enumerate() {
            entries[row..].iter().for_each(|&figure| to.f64(figure));
        }
    }

    fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Error> {
        let most = (1.0 + ROUNDING) * self.most_trace();
        for row in 0..N {
            for column in row..N {
                let least = if row == column { 0.0 } else { -most };
                let figure = from.f64("a covariance", least..=most)?;
                self.entries[row][column] = figure;
                self.entries[column][row] = figure;
            }
        }
        if !is_covariance(self.entries, ROUNDING * self.most_trace()) {
            return Err(Error::Damaged("a covariance with a negative direction"));
        }
        Ok(())
    }
}

/// Whether a symmetric matrix, with a little added to its diagonal, has no negative direction
/// (Cholesky): learning with another would go astray without end.
fn is_covariance<const N: usize>(mut matrix: [[f64; N]; N], little: f64) -> bool {
    for (at, row) in matrix.iter_mut().enumerate() {
        row[at] += little;
    }
    for at in 0..N {
        let pivot = matrix[at][at];
        if pivot <= 0.0 {
            return false;
        }
        let above = matrix[at];
        for row in &mut matrix[at + 1..] {
            let factor = row[at] / pivot;
            row.iter_mut().zip(above).for_each(|(entry, of)| *entry -= factor * of);
        }
    }
    true
}
