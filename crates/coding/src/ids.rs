//! What exchanges and paths are called.

use std::fmt;

use codec::dictionary;

/// An exchange's 128-bit id: the edge's instance and a number that it counts up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId {
    /// Drawn at random when the edge started.
    pub instance: u64,
    /// Counted up from 1 by the edge.
    pub number: u64,
}

/// In hexadecimal, as events and a person have it, the same at both ends: eight digits for the edge
/// and eight or more for the number. The edge's are of a hash, for without keys who has the
/// instance is that edge.
impl fmt::Display for ExchangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash =
            dictionary::Id::of(&[b"exchange".as_slice(), &self.instance.to_be_bytes()].concat());
        let [a, b, c, d, ..] = hash.short();
        write!(f, "{a:02x}{b:02x}{c:02x}{d:02x}{:08x}", self.number)
    }
}

/// A path to a peer for as long as the peer stays connected over it; never used twice. What both
/// ends hold (bases of deltas, names of dictionaries) is agreed on each path anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u64);
