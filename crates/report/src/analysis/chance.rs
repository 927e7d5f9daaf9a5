//! Chance that can be repeated: the n-th number of a name is the same on every machine.

/// Odd, near 2^64 divided by the golden ratio: successive multiples of it spread evenly.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Random numbers as a function of a name and a counter (Steele, Lea, Flood: Fast splittable
/// pseudorandom number generators, 2014).
#[derive(Clone, Debug)]
pub(super) struct Chance {
    state: u64,
}

impl Chance {
    /// The sequence of a name; `use_for` keeps two uses of one name apart.
    pub(super) fn new(name: &str, use_for: &str) -> Self {
        // FNV-1a of both, with a byte between them that no text has.
        let bytes = name.bytes().chain([0xff]).chain(use_for.bytes());
        let state = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self { state }
    }

    /// 64 fair bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, each as likely but for one part in 2^40; 0 for a limit of 0.
    #[allow(clippy::cast_possible_truncation, reason = "it is below a usize")]
    pub(super) fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.bits()) * limit as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::Chance;

    #[test]
    fn a_name_has_its_sequence_and_every_number_is_as_likely() {
        let take = |name, use_for| {
            let mut chance = Chance::new(name, use_for);
            std::array::from_fn::<u64, 4, _>(|_| chance.bits())
        };
        assert_eq!(take("a", "b"), take("a", "b"));
        assert_ne!(take("a", "b"), take("ab", ""));
        let mut chance = Chance::new("dice", "");
        let mut seen = [0_u32; 6];
        (0..60_000).for_each(|_| seen[chance.below(6)] += 1);
        // Five standard deviations, each of 91.
        assert!(seen.iter().all(|count| count.abs_diff(10_000) < 456), "{seen:?}");
        assert_eq!(chance.below(0), 0);
    }
}
