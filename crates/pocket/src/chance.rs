//! Numbers of chance from a seed of the caller's.

/// A generator of 32 bits (xorshift). It spreads retransmissions and makes transaction ids hard to
/// hit by chance; it keeps nobody off who can read the datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance(u32);

impl Chance {
    pub(crate) fn new(seed: u32) -> Self {
        // The generator stands still at zero.
        Self(if seed == 0 { 0x9e37_79b9 } else { seed })
    }

    pub(crate) fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }
}
