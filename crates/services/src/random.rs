//! Chance from a seed: the same seed gives the same numbers on every machine and in every version.

/// SplitMix64 (Steele, Lea, Flood 2014): small, fast, and any seed is a good one.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A stream of its own for each (seed, stream) pair.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut mixed = Self(seed);
        let first = mixed.next();
        Self(first ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Uniform in `0..bound`; 0 for a bound of 0. The bias is under `bound / 2^32`.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        let high = (self.next() >> 32) * u64::from(bound);
        u32::try_from(high >> 32).unwrap_or(0)
    }

    /// Uniform between `low` and `high`.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        low + (high - low) * unit
    }

    /// True in `per_cent` of the cases.
    pub(crate) fn chance(&mut self, per_cent: u32) -> bool {
        self.below(100) < per_cent
    }

    /// One of `choices`; `None` when there are none.
    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> Option<T> {
        let bound = u32::try_from(choices.len()).unwrap_or(u32::MAX);
        choices.get(self.below(bound) as usize).copied()
    }
}
