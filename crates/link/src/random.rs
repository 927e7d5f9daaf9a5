//! Chance as a function: of the seed, the direction, the packet's number and what is being decided.

use crate::Direction;

/// What a random number is for. Each purpose has numbers of its own, so that changing one setting
/// of a channel leaves every other decision as it was.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Loss,
    BurstLoss,
    BurstTurn,
    Duplicate,
    Reorder,
    JitterRadius,
    JitterAngle,
    Corrupt,
    CorruptBit,
    LossRepeat,
    Relief,
    ShadowingRadius,
    ShadowingAngle,
    Backoff,
    Reception,
}

/// Whom a decision concerns: a packet, or the copy that duplication made of it.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) number: u64,
    pub(crate) is_copy: bool,
}

/// Random numbers of one direction of a link, drawn in any order.
#[derive(Clone, Copy)]
pub(crate) struct Dice {
    key: u64,
}

impl Dice {
    pub(crate) fn new(seed: u64, direction: Direction) -> Self {
        let side = match direction {
            Direction::Ab => 1,
            Direction::Ba => 2,
        };
        Self { key: mix(mix(seed) ^ side) }
    }

    /// Random numbers of something that has no direction: a landscape, a shared channel.
    pub(crate) fn for_seed(seed: u64) -> Self {
        Self { key: mix(mix(seed) ^ 3) }
    }

    /// 64 random bits.
    pub(crate) fn bits(&self, subject: Subject, purpose: Purpose) -> u64 {
        let packet = mix(self.key.wrapping_add(subject.number.wrapping_mul(GOLDEN_GAMMA)));
        mix(packet ^ ((purpose as u64) << 1 | u64::from(subject.is_copy)))
    }

    /// Uniform in [0, 1), with 53 random bits.
    pub(crate) fn unit(&self, subject: Subject, purpose: Purpose) -> f64 {
        (self.bits(subject, purpose) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with probability `share`: never at 0, always at 1.
    pub(crate) fn chance(&self, subject: Subject, purpose: Purpose, share: f64) -> bool {
        share > 0.0 && self.unit(subject, purpose) < share
    }

    /// Uniform in [0, limit); 0 if `limit` is 0.
    pub(crate) fn below(&self, subject: Subject, purpose: Purpose, limit: u64) -> u64 {
        scale(self.bits(subject, purpose), limit)
    }
}

/// The odd number nearest to 2^64 over the golden ratio: SplitMix64's increment.
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's finalizer (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
/// 2014, with Stafford's constants): a bijection in which each input bit moves each output bit.
fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(GOLDEN_GAMMA);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `bits / 2^64 * limit`, rounded down.
fn scale(bits: u64, limit: u64) -> u64 {
    let product = u128::from(bits) * u128::from(limit);
    u64::try_from(product >> 64).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(number: u64) -> Subject {
        Subject { number, is_copy: false }
    }

    #[test]
    fn numbers_differ_by_seed_direction_packet_purpose_and_copy() {
        let dice = Dice::new(1, Direction::Ab);
        let base = dice.bits(subject(5), Purpose::Loss);
        let others = [
            Dice::new(2, Direction::Ab).bits(subject(5), Purpose::Loss),
            Dice::new(1, Direction::Ba).bits(subject(5), Purpose::Loss),
            dice.bits(subject(6), Purpose::Loss),
            dice.bits(subject(5), Purpose::Duplicate),
            dice.bits(Subject { number: 5, is_copy: true }, Purpose::Loss),
        ];
        assert!(others.iter().all(|other| *other != base));
        assert_eq!(base, Dice::new(1, Direction::Ab).bits(subject(5), Purpose::Loss));
    }

    #[test]
    fn every_bit_is_set_half_the_time() {
        let dice = Dice::new(3, Direction::Ab);
        let draws = 20_000_u32;
        for bit in 0..64 {
            let set = (0..u64::from(draws))
                .filter(|n| dice.bits(subject(*n), Purpose::Corrupt) >> bit & 1 == 1)
                .count();
            // Six standard deviations of a binomial: false alarm below 1e-7 over 64 bits.
            let deviation = (set as f64 - f64::from(draws) / 2.0).abs();
            assert!(deviation < 6.0 * f64::from(draws).sqrt() / 2.0, "bit {bit}: {set}");
        }
    }

    #[test]
    fn shares_of_nothing_and_all_are_certain() {
        let dice = Dice::new(4, Direction::Ba);
        for number in 0..10_000 {
            assert!(!dice.chance(subject(number), Purpose::Loss, 0.0));
            assert!(!dice.chance(subject(number), Purpose::Loss, f64::NAN));
            assert!(dice.chance(subject(number), Purpose::Loss, 1.0));
            assert!(dice.below(subject(number), Purpose::CorruptBit, 7) < 7);
        }
        assert_eq!(dice.below(subject(0), Purpose::CorruptBit, 0), 0);
    }
}
