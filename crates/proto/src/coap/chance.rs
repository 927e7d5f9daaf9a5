//! Numbers that nobody without the seed can foresee, and that a seed repeats: tokens, message ids,
//! random factors, values of Echo.

use std::hash::{Hash, Hasher};
use std::time::Duration;

/// A keyed function of whatever is hashed: SipHash-2-4.
#[derive(Clone, Debug)]
struct Keyed {
    v: [u64; 4],
    tail: u64,
    len: u64,
}

impl Keyed {
    fn new(key: [u64; 2]) -> Self {
        let [a, b] = key;
        let v = [
            a ^ 0x736f_6d65_7073_6575,
            b ^ 0x646f_7261_6e64_6f6d,
            a ^ 0x6c79_6765_6e65_7261,
            b ^ 0x7465_6462_7974_6573,
        ];
        Self { v, tail: 0, len: 0 }
    }

    fn round(&mut self) {
        let [a, b, c, d] = &mut self.v;
        *a = a.wrapping_add(*b);
        *c = c.wrapping_add(*d);
        *b = b.rotate_left(13) ^ *a;
        *d = d.rotate_left(16) ^ *c;
        *a = a.rotate_left(32);
        *c = c.wrapping_add(*b);
        *a = a.wrapping_add(*d);
        *b = b.rotate_left(17) ^ *c;
        *d = d.rotate_left(21) ^ *a;
        *c = c.rotate_left(32);
    }

    fn block(&mut self, word: u64) {
        self.v[3] ^= word;
        self.round();
        self.round();
        self.v[0] ^= word;
    }
}

impl Hasher for Keyed {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.tail |= u64::from(*byte) << (8 * (self.len % 8));
            self.len += 1;
            if self.len.is_multiple_of(8) {
                let word = std::mem::take(&mut self.tail);
                self.block(word);
            }
        }
    }

    fn finish(&self) -> u64 {
        let mut last = self.clone();
        last.block(self.tail | (self.len & 0xff) << 56);
        last.v[2] ^= 0xff;
        (0..4).for_each(|_| last.round());
        last.v.iter().fold(0, |sum, word| sum ^ word)
    }
}

/// What a number is for, so that one for one thing tells nothing of another.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum For {
    Token,
    MessageId,
    Factor,
    Echo,
    OscoreEcho,
    ETag,
    RequestTag,
    Block,
}

/// The numbers of one endpoint.
#[derive(Debug)]
pub(super) struct Chance {
    key: [u64; 2],
    count: u64,
}

impl Chance {
    pub(super) fn new(key: [u64; 2]) -> Self {
        Self { key, count: 0 }
    }

    /// The number that belongs to `value`.
    pub(super) fn of(&self, what: For, value: &impl Hash) -> u64 {
        let mut keyed = Keyed::new(self.key);
        keyed.write(&[what as u8]);
        value.hash(&mut keyed);
        keyed.finish()
    }

    /// A number that there was not before.
    pub(super) fn next(&mut self, what: For) -> u64 {
        self.count += 1;
        self.of(what, &self.count.to_le_bytes())
    }

    /// Between `least` and `greatest`.
    pub(super) fn between(&mut self, least: Duration, greatest: Duration) -> Duration {
        let share = (self.next(For::Factor) >> 11) as f64 / (1_u64 << 53) as f64;
        least + greatest.saturating_sub(least).mul_f64(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last vector but some of the reference: key 00..0f, input 00..0e.
    #[test]
    fn the_function_is_siphash() {
        let mut keyed = Keyed::new([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        keyed.write(&(0..15).collect::<Vec<u8>>());
        assert_eq!(keyed.finish(), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn numbers_lie_where_they_should() {
        let mut chance = Chance::new([1, 2]);
        let (least, greatest) = (Duration::from_secs(2), Duration::from_secs(3));
        let all: Vec<_> = (0..100).map(|_| chance.between(least, greatest)).collect();
        assert!(all.iter().all(|one| (least..=greatest).contains(one)));
        assert!(all.iter().any(|one| *one > Duration::from_millis(2900)));
        assert!(all.iter().any(|one| *one < Duration::from_millis(2100)));
    }
}
