//! Regressions of constant size: what was observed is held as sums, never as samples.

mod covariance;
mod cubic;
mod kin;
mod recursive;
#[cfg(test)]
mod tests;

pub use cubic::Cubic;
pub use kin::{Common, Kin, Moves};
pub use recursive::{Lesson, Prediction, Recursive};

fn dot<const N: usize>(a: &[f64; N], b: &[f64; N]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add<const N: usize>(to: &mut [f64; N], more: &[f64; N]) {
    to.iter_mut().zip(more).for_each(|(to, more)| *to += more);
}
