//! How the length of a block is hidden on a carrier: it takes one of a few steps, and which one is
//! chance.
//!
//! Who guesses a secret right saves a byte or two, and sees that. A step alone hides it only from
//! who cannot choose the length of the rest: else a guess is put where one byte less is a step
//! less. So before it is rounded up, a length grows by a sum of two chances, which is a triangle:
//! near its ends it is rare, so that no length is distinguished from the next one by being possible
//! at all. For two lengths that differ by up to two bytes the observer gains at most a hundredth of
//! a bit ([`Padding::STEP_BYTES`]); whoever can have a hundred such messages sent gains one bit.

/// See the module: the two chances of one block, which the relay draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Padding([usize; 2]);

impl Padding {
    /// Lengths are multiples of this, in bytes. A block grows by it and a half on average, and by
    /// no more than three of them; the bits that an observer gains fall with its square.
    pub const STEP_BYTES: usize = 24;

    /// Of two numbers that nobody can foresee.
    #[must_use]
    pub fn new(random: [u16; 2]) -> Self {
        Self(random.map(|number| usize::from(number) % Self::STEP_BYTES))
    }

    /// Bytes to put behind a block that has `bytes` on a carrier, which can put no fewer than
    /// `least`.
    #[must_use]
    pub fn behind(self, bytes: usize, least: usize) -> usize {
        let Self([one, other]) = self;
        (bytes + least + one + other).next_multiple_of(Self::STEP_BYTES) - bytes
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const LEAST: usize = 4;

    /// The length that a block of so many bytes gets.
    fn padded(bytes: usize, chances: [u16; 2]) -> usize {
        bytes + Padding::new(chances).behind(bytes, LEAST)
    }

    /// How probable each length is of a block with so many bytes.
    fn law(bytes: usize) -> BTreeMap<usize, f64> {
        let mut law = BTreeMap::new();
        for a in 0..24 {
            for b in 0..24 {
                let weight = 1.0 / (Padding::STEP_BYTES * Padding::STEP_BYTES) as f64;
                *law.entry(padded(bytes, [a, b])).or_insert(0.0) += weight;
            }
        }
        law
    }

    /// Bits that one length reveals of which of two that are equally probable was padded.
    fn bits(one: usize, other: usize) -> f64 {
        let (one, other) = (law(one), law(other));
        let part =
            |p: f64, q: f64| if p > 0.0 { p / 2.0 * (2.0 * p / (p + q)).log2() } else { 0.0 };
        let all = one.keys().chain(other.keys()).copied();
        let all: std::collections::BTreeSet<_> = all.collect();
        all.iter().fold(0.0, |sum, length| {
            let p = one.get(length).copied().unwrap_or(0.0);
            let q = other.get(length).copied().unwrap_or(0.0);
            sum + part(p, q) + part(q, p)
        })
    }

    #[test]
    fn a_hundred_messages_tell_a_bit_whatever_lengths_an_attacker_chooses() {
        for saved in [1, 2] {
            let lengths = 300..300 + 4 * Padding::STEP_BYTES;
            let most = lengths.map(|length| bits(length, length + saved)).fold(0.0, f64::max);
            assert!(100.0 * most <= 1.0, "{saved} bytes: {} bits in 100 messages", 100.0 * most);
            assert!(most > 0.0, "the test can tell lengths apart");
        }
    }

    #[test]
    fn a_block_grows_by_a_step_and_a_half_and_a_few_bytes() {
        let grown = |length: usize| {
            law(length).iter().map(|(padded, p)| (*padded - length) as f64 * p).sum::<f64>()
        };
        let lengths = 300..300 + Padding::STEP_BYTES;
        let mean = lengths.clone().map(grown).sum::<f64>() / lengths.len() as f64;
        assert!((mean - 38.5).abs() < 0.1, "{mean}");
        let most = lengths.map(|length| padded(length, [23; 2]) - length).max();
        assert!(most <= Some(3 * Padding::STEP_BYTES + LEAST), "{most:?}");
    }
}
