//! How well a signal is received.

use crate::Error;

/// Most points of a curve.
pub const MAX_CURVE_POINTS: usize = 1_000;

/// How many of a number of transmissions arrive at a signal over noise and interference (SINR).
/// Longer and shorter ones follow from it as if each byte had its own fate.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// SINR in dB and the share that arrives, both growing; between points it grows evenly.
    points: Vec<(f64, f64)>,
    /// Bytes of the transmissions that the shares are of.
    bytes: u32,
}

/// The curve for 1 Mbit/s that EMANE's TDMA model comes with, for transmissions of 128 bytes, in
/// dB below its point of 99.9 %; and nothing lost from 1 dB above it on, where it tells nothing.
const EMANE: [(f64, f64); 7] = [
    (-5.0, 0.014),
    (-4.0, 0.210),
    (-3.0, 0.635),
    (-2.0, 0.907),
    (-1.0, 0.986),
    (0.0, 0.999),
    (1.0, 1.0),
];

/// Bytes of the transmissions of [`EMANE`].
const EMANE_BYTES: u32 = 128;

impl Curve {
    /// A curve through points: SINR in dB and the share of transmissions of `bytes` that arrive.
    /// Below the first point nothing arrives, from the last on that share.
    ///
    /// # Errors
    /// [`Error::Medium`] for no point or more than [`MAX_CURVE_POINTS`], points that do not grow,
    /// shares outside of 0 to 1, transmissions of no bytes.
    pub fn new(points: Vec<(f64, f64)>, bytes: u32) -> Result<Self, Error> {
        let refused = |what: &str| {
            Err(Error::Medium { field: "radio.rates.curve".to_owned(), what: what.to_owned() })
        };
        if points.is_empty() || points.len() > MAX_CURVE_POINTS || bytes == 0 {
            return refused("give 1 to 1000 points, for transmissions of at least a byte");
        }
        let is_point =
            |(sinr_db, share): &(f64, f64)| sinr_db.is_finite() && (0.0..=1.0).contains(share);
        let grows = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
        if !points.iter().all(is_point) || !points.windows(2).all(grows) {
            return refused("points must grow, in dB and in shares from 0 to 1");
        }
        Ok(Self { points, bytes })
    }

    /// EMANE's curve, moved so that 99.9 % of 128 bytes arrive at `full_db`.
    #[must_use]
    pub fn emane(full_db: f64) -> Self {
        let points = EMANE.map(|(below_db, share)| (full_db + below_db, share)).to_vec();
        Self { points, bytes: EMANE_BYTES }
    }

    /// The share of transmissions, or of pieces of one, of so many bytes that arrive.
    #[must_use]
    pub fn share(&self, sinr_db: f64, bytes: f64) -> f64 {
        self.share_of_table(sinr_db).powf(bytes / f64::from(self.bytes))
    }

    fn share_of_table(&self, sinr_db: f64) -> f64 {
        let after = self.points.partition_point(|(db, _)| *db <= sinr_db);
        let Some((before_db, before)) = after.checked_sub(1).map(|at| self.points[at]) else {
            return 0.0;
        };
        match self.points.get(after) {
            Some((after_db, next)) => {
                before + (next - before) * (sinr_db - before_db) / (after_db - before_db)
            }
            None => before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_table_and_grow_between() {
        let curve = Curve::emane(-3.0);
        for (sinr_db, share) in
            [(-8.1, 0.0), (-8.0, 0.014), (-6.5, 0.4225), (-3.0, 0.999), (-2.0, 1.0), (40.0, 1.0)]
        {
            assert!((curve.share(sinr_db, 128.0) - share).abs() < 1e-12, "{sinr_db}");
        }
        assert!((curve.share(-4.0, 256.0) - 0.986 * 0.986).abs() < 1e-12);
        assert!((curve.share(-4.0, 64.0) - 0.986_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn what_is_no_curve_is_refused() {
        for points in
            [vec![], vec![(0.0, 1.1)], vec![(0.0, 0.5), (0.0, 0.6)], vec![(0.0, 0.5), (1.0, 0.4)]]
        {
            assert!(Curve::new(points, 100).is_err());
        }
        assert!(Curve::new(vec![(0.0, 0.5)], 0).is_err());
        assert_eq!(Curve::new(vec![(0.0, 0.5)], 9).unwrap().share(0.0, 9.0), 0.5);
    }
}
