//! Recursive least squares with exponential forgetting.

use crate::state::{Error, Reader, State, Writer};

/// A residual is taken for at most this many standard deviations: one stall of the machine must not
/// undo what a hundred messages taught.
const MOST_DEVIATIONS: f64 = 5.0;
/// Observations before residuals are cut: the deviation is not known before.
const FEW: f64 = 4.0;

/// What a regression says of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The expected value.
    pub mean: f64,
    /// Its standard deviation: that of the observations and that of the coefficients.
    pub deviation: f64,
    /// That of the coefficients alone: what more observations would take away.
    pub unsure: f64,
}

/// A linear regression over `N` features that forgets: of an observation `k` steps ago
/// `forgetting^k` is left.
///
/// The covariance is bounded by its trace, so that a feature that never varies does not make it
/// grow without end ("covariance wind-up").
#[derive(Clone, Debug, PartialEq)]
pub struct Recursive<const N: usize> {
    coefficients: [f64; N],
    covariance: [[f64; N]; N],
    forgetting: f64,
    /// Variance of the residuals.
    variance: f64,
    /// Observations, as far as they are not forgotten.
    weight: f64,
    /// Bound of the covariance's trace.
    trace: f64,
}

impl<const N: usize> Recursive<N> {
    /// A regression that expects `coefficients`, each off by about `spread`, and observations that
    /// scatter by `deviation`.
    #[must_use]
    pub fn new(coefficients: [f64; N], spread: [f64; N], deviation: f64, forgetting: f64) -> Self {
        let variance = deviation * deviation;
        let mut covariance = [[0.0; N]; N];
        let mut trace = 0.0;
        for (at, spread) in spread.iter().enumerate() {
            // In units of the observations' variance.
            covariance[at][at] = spread * spread / variance;
            trace += covariance[at][at];
        }
        Self { coefficients, covariance, forgetting, variance, weight: 0.0, trace }
    }

    /// The coefficients as they are.
    #[must_use]
    pub fn coefficients(&self) -> &[f64; N] {
        &self.coefficients
    }

    /// Observations that count, at most `1 / (1 − forgetting)`.
    #[must_use]
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// The value to be expected at `features`.
    #[must_use]
    pub fn predict(&self, features: &[f64; N]) -> Prediction {
        let gain = self.times(features);
        let own = dot(features, &gain).max(0.0);
        Prediction {
            mean: dot(&self.coefficients, features),
            deviation: (self.variance * (1.0 + own)).sqrt(),
            unsure: (self.variance * own).sqrt(),
        }
    }

    /// Learns a value. What is not a number is left out.
    pub fn observe(&mut self, features: &[f64; N], value: f64) {
        if !value.is_finite() || features.iter().any(|feature| !feature.is_finite()) {
            return;
        }
        let along = self.times(features);
        let own = dot(features, &along).max(0.0);
        let residual = value - dot(&self.coefficients, features);
        let bound = MOST_DEVIATIONS * (self.variance * (1.0 + own)).sqrt();
        let known = self.weight >= FEW;
        let residual = if known { residual.clamp(-bound, bound) } else { residual };
        let scale = 1.0 / (self.forgetting + own);
        for (coefficient, along) in self.coefficients.iter_mut().zip(&along) {
            *coefficient += along * scale * residual;
        }
        self.shrink(&along, scale);
        self.weight = self.weight * self.forgetting + 1.0;
        // A residual from unsure coefficients says less of the observations' own scatter.
        let scatter = residual * residual / (1.0 + own);
        self.variance += (scatter - self.variance) / (self.weight + FEW);
        self.variance = self.variance.max(f64::EPSILON);
    }

    fn shrink(&mut self, along: &[f64; N], scale: f64) {
        let mut trace = 0.0;
        for row in 0..N {
            for column in 0..N {
                let entry = &mut self.covariance[row][column];
                *entry = (*entry - along[row] * along[column] * scale) / self.forgetting;
            }
            trace += self.covariance[row][row];
        }
        if trace > self.trace {
            let factor = self.trace / trace;
            self.covariance.iter_mut().flatten().for_each(|entry| *entry *= factor);
        }
    }

    fn times(&self, features: &[f64; N]) -> [f64; N] {
        let mut product = [0.0; N];
        for (entry, row) in product.iter_mut().zip(&self.covariance) {
            *entry = dot(row, features);
        }
        product
    }
}

fn dot<const N: usize>(a: &[f64; N], b: &[f64; N]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Most that a coefficient, or the variance of residuals, can be in a state.
pub(crate) const MOST_FIGURE: f64 = 1e6;
/// By this share of its trace a covariance may be off one without a negative direction: rounding.
const ROUNDING: f64 = 1e-6;

/// Coefficients, the covariance's upper triangle (it is symmetric), variance and weight. What the
/// program says of it (forgetting, bound of the trace) is the program's.
impl<const N: usize> State for Recursive<N> {
    fn write(&self, to: &mut Writer<'_>) {
        self.coefficients.iter().for_each(|&figure| to.f64(figure));
        for (row, entries) in self.covariance.iter().enumerate() {
            entries[row..].iter().for_each(|&figure| to.f64(figure));
        }
        to.f64(self.variance);
        to.f64(self.weight);
    }

    fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Error> {
        for figure in &mut self.coefficients {
            *figure = from.f64("a coefficient", -MOST_FIGURE..=MOST_FIGURE)?;
        }
        let most = (1.0 + ROUNDING) * self.trace;
        for row in 0..N {
            for column in row..N {
                let least = if row == column { 0.0 } else { -most };
                let figure = from.f64("a covariance", least..=most)?;
                self.covariance[row][column] = figure;
                self.covariance[column][row] = figure;
            }
        }
        if !is_covariance(self.covariance, ROUNDING * self.trace) {
            return Err(Error::Damaged("a covariance with a negative direction"));
        }
        self.variance = from.f64("a variance", f64::EPSILON..=MOST_FIGURE)?;
        self.weight = from.f64("a weight", 0.0..=1.0 / (1.0 - self.forgetting) + 1.0)?;
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
