//! Numbers that look random and follow from a seed.

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Exponential with mean 1: the gaps of packets that know nothing of each other.
    pub(crate) fn exponential(&mut self) -> f64 {
        // In (0, 1], so that its logarithm is finite.
        let unit = ((self.bits() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        -unit.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_the_mean_and_the_spread_of_an_exponential() {
        let mut random = Random::new(5);
        let gaps: Vec<f64> = (0..100_000).map(|_| random.exponential()).collect();
        let mean = gaps.iter().sum::<f64>() / 100_000.0;
        // Four standard errors.
        assert!((mean - 1.0).abs() < 4.0 / 100_000_f64.sqrt(), "{mean}");
        let above_two = gaps.iter().filter(|gap| **gap > 2.0).count() as f64 / 100_000.0;
        assert!((above_two - (-2.0_f64).exp()).abs() < 0.005, "{above_two}");
    }
}
