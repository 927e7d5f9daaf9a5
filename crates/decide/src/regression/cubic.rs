//! Cubic regression as NAM has it (NAM §2.1, its Figure 2): sums of powers, which add up.

use crate::state::{Error, Persist, Reader, Writer};

/// Coefficients of a cubic polynomial.
const TERMS: usize = 4;
/// Sums of powers 0 to 6.
const POWERS: usize = 2 * TERMS - 1;
/// A pivot below this share of the largest is none: the samples do not tell these terms apart.
const SMALLEST_PIVOT: f64 = 1e-9;

/// The sums of a cubic regression: constant size however many samples; those of two sets add up.
///
/// Sizes are taken in megabytes: with bytes the sixth powers lose all precision.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cubic {
    powers: [f64; POWERS],
    products: [f64; TERMS],
}

impl Cubic {
    /// Adds a sample: `value` (seconds, or megabytes) at `megabytes`.
    pub fn observe(&mut self, megabytes: f64, value: f64) {
        if !megabytes.is_finite() || !value.is_finite() {
            return;
        }
        let mut power = 1.0;
        for at in 0..POWERS {
            self.powers[at] += power;
            if let Some(product) = self.products.get_mut(at) {
                *product += power * value;
            }
            power *= megabytes;
        }
    }

    /// Adds the samples of another.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in self.powers.iter_mut().zip(other.powers) {
            *sum += more;
        }
        for (sum, more) in self.products.iter_mut().zip(other.products) {
            *sum += more;
        }
    }

    /// Samples so far.
    #[must_use]
    pub fn samples(&self) -> f64 {
        self.powers[0]
    }

    /// The coefficients `a0` to `a3`, of as many terms as the samples tell apart; `None` without a
    /// sample.
    #[must_use]
    pub fn coefficients(&self) -> Option<[f64; TERMS]> {
        (1..=TERMS).rev().find_map(|terms| self.solve(terms))
    }

    /// The value that the polynomial has at `megabytes`.
    #[must_use]
    pub fn predict(&self, megabytes: f64) -> Option<f64> {
        let coefficients = self.coefficients()?;
        Some(coefficients.iter().rev().fold(0.0, |sum, term| sum * megabytes + term))
    }

    /// Gauss's elimination with pivots from the column; `None` where a pivot vanishes.
    fn solve(&self, terms: usize) -> Option<[f64; TERMS]> {
        if self.powers[0] < terms as f64 {
            return None;
        }
        let mut rows = [[0.0; TERMS + 1]; TERMS];
        for (row, entries) in rows.iter_mut().enumerate().take(terms) {
            entries[..terms].copy_from_slice(&self.powers[row..row + terms]);
            entries[terms] = self.products[row];
        }
        for at in 0..terms {
            let best =
                (at..terms).max_by(|&a, &b| rows[a][at].abs().total_cmp(&rows[b][at].abs()))?;
            rows.swap(at, best);
            let largest = self.powers[at + at].abs();
            if rows[at][at].abs() <= SMALLEST_PIVOT * largest || rows[at][at] == 0.0 {
                return None;
            }
            let (above, below) = rows.split_at_mut(at + 1);
            for row in below.iter_mut().take(terms - at - 1) {
                let factor = row[at] / above[at][at];
                row.iter_mut().zip(above[at]).for_each(|(entry, pivot)| *entry -= factor * pivot);
            }
        }
        let mut coefficients = [0.0; TERMS];
        for at in (0..terms).rev() {
            let known: f64 = (at + 1..terms).map(|of| rows[at][of] * coefficients[of]).sum();
            coefficients[at] = (rows[at][terms] - known) / rows[at][at];
        }
        Some(coefficients)
    }
}

/// Most that a sum can be in a state: a billion samples of a gigabyte, to the sixth power.
const MAX_SUM: f64 = 1e27;

impl Persist for Cubic {
    fn write(&self, to: &mut Writer<'_>) {
        self.powers.iter().chain(&self.products).for_each(|&sum| to.f64(sum));
    }

    fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Error> {
        for sum in &mut self.powers {
            *sum = from.f64("a sum of powers", 0.0..=MAX_SUM)?;
        }
        for sum in &mut self.products {
            *sum = from.f64("a sum of products", 0.0..=MAX_SUM)?;
        }
        Ok(())
    }
}
