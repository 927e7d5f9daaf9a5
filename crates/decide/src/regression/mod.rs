//! Regressions of constant size: what was observed is held as sums, never as samples.

mod cubic;
mod recursive;
#[cfg(test)]
mod tests;

pub use cubic::Cubic;
pub(crate) use recursive::MOST_FIGURE;
pub use recursive::{Prediction, Recursive};
