//! Recursive least squares with exponential forgetting.

use super::covariance::Covariance;
use super::{add, dot};
use crate::state::{Error, Persist, Reader, Writer};

/// A residual is taken for at most this many standard deviations: one stall of the machine must not
/// undo what a hundred messages taught.
const MAX_DEVIATIONS: f64 = 5.0;
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
#[derive(Clone, Debug, PartialEq)]
pub struct Recursive<const N: usize> {
    coefficients: [f64; N],
    /// In units of the observations' variance.
    covariance: Covariance<N>,
    forgetting: f64,
    /// Variance of the residuals.
    variance: f64,
    /// Observations, as far as they are not forgotten.
    weight: f64,
}

/// What an observation taught a regression, for others that go with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lesson<const N: usize> {
    /// The features, as far as its own observations had not told of them before.
    pub(super) free: [f64; N],
    /// Their variance when nothing was seen.
    pub(super) began: f64,
    /// By how much its coefficients moved.
    moved: [f64; N],
    /// The same over the variances that they began with.
    pub(super) moved_over_start: [f64; N],
}

impl<const N: usize> Lesson<N> {
    /// Such a share of how much its coefficients moved.
    #[must_use]
    pub fn moved(&self, share: f64) -> [f64; N] {
        self.moved.map(|moved| share * moved)
    }
}

impl<const N: usize> Recursive<N> {
    /// A regression that expects `coefficients`, each off by about `spread`, and observations that
    /// scatter by `deviation`.
    #[must_use]
    pub fn new(coefficients: [f64; N], spread: [f64; N], deviation: f64, forgetting: f64) -> Self {
        let variance = deviation * deviation;
        let covariance = Covariance::new(spread.map(|spread| spread * spread / variance));
        Self { coefficients, covariance, forgetting, variance, weight: 0.0 }
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

    pub(super) fn start(&self) -> &[f64; N] {
        self.covariance.start()
    }

    pub(super) fn forgetting(&self) -> f64 {
        self.forgetting
    }

    /// The value to be expected at `features`.
    #[must_use]
    pub fn predict(&self, features: &[f64; N]) -> Prediction {
        self.predict_with(features, self.covariance.along_start(features))
    }

    /// The same where the variance of what it began with is another by now.
    pub(super) fn predict_with(&self, features: &[f64; N], start: f64) -> Prediction {
        let (own, began) = (self.covariance.along(features), self.covariance.along_start(features));
        // What its own observations told, and what was known without them.
        let unsure = if start < began && own > 0.0 {
            1.0 / ((1.0 / own - 1.0 / began).max(0.0) + 1.0 / start)
        } else {
            own
        };
        Prediction {
            mean: dot(&self.coefficients, features),
            deviation: (self.variance * (1.0 + unsure)).sqrt(),
            unsure: (self.variance * unsure).sqrt(),
        }
    }

    /// Learns a value. What is not a number is left out.
    pub fn observe(&mut self, features: &[f64; N], value: f64) -> Option<Lesson<N>> {
        if !value.is_finite() || features.iter().any(|feature| !feature.is_finite()) {
            return None;
        }
        let along = self.covariance.times(features);
        let own = dot(features, &along).max(0.0);
        let residual = value - dot(&self.coefficients, features);
        let bound = MAX_DEVIATIONS * (self.variance * (1.0 + own)).sqrt();
        let known = self.weight >= FEW;
        let residual = if known { residual.clamp(-bound, bound) } else { residual };
        let scale = 1.0 / (self.forgetting + own);
        let moved = along.map(|along| along * scale * residual);
        add(&mut self.coefficients, &moved);
        self.covariance.shrink(&along, scale);
        self.covariance.forget(self.forgetting);
        self.weight = self.weight * self.forgetting + 1.0;
        // A residual from unsure coefficients says less of the observations' own scatter.
        let scatter = residual * residual / (1.0 + own);
        self.variance += (scatter - self.variance) / (self.weight + FEW);
        self.variance = self.variance.max(f64::EPSILON);
        let free = self.covariance.over_start(&along);
        let began = self.covariance.along_start(&free);
        Some(Lesson { free, began, moved, moved_over_start: self.covariance.over_start(&moved) })
    }

    /// What was expected of it has moved by so much: as far as its own observations have not told,
    /// it moves too.
    pub fn follow(&mut self, moved: &[f64; N]) {
        let shares = self.covariance.over_start(moved);
        let own = self.covariance.times(&shares);
        // Forgetting lets a covariance grow beyond its beginning where nothing is seen: what moves
        // there moves no further than the others.
        let (most, length) = (dot(moved, &shares), dot(&own, &self.covariance.over_start(&own)));
        let factor = if length > most { (most / length).sqrt() } else { 1.0 };
        add(&mut self.coefficients, &own.map(|own| own * factor));
    }
}

/// Most that a coefficient, or the variance of residuals, can be in a state.
pub(super) const MAX_FIGURE: f64 = 1e6;
/// Coefficients, covariance, variance and weight. What it forgets is the program's.
impl<const N: usize> Persist for Recursive<N> {
    fn write(&self, to: &mut Writer<'_>) {
        self.coefficients.iter().for_each(|&figure| to.f64(figure));
        self.covariance.write(to);
        to.f64(self.variance);
        to.f64(self.weight);
    }

    fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Error> {
        for figure in &mut self.coefficients {
            *figure = from.f64("a coefficient", -MAX_FIGURE..=MAX_FIGURE)?;
        }
        self.covariance.read(from)?;
        self.variance = from.f64("a variance", f64::EPSILON..=MAX_FIGURE)?;
        self.weight = from.f64("a weight", 0.0..=1.0 / (1.0 - self.forgetting) + 1.0)?;
        Ok(())
    }
}
