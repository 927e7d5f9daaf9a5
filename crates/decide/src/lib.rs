//! Observations to a choice of an arm: which encoding a message goes in.
//!
//! The crate knows nothing of codecs: an [`Arm`] is the caller's index. Everything is a function of
//! its arguments, so a choice can be replayed.

pub mod arm;
pub mod estimate;
pub mod fixed;
pub mod head;
pub mod learned;
pub mod models;
pub mod nam;
pub mod network;
pub mod outcome;
pub mod policy;
pub mod regression;
pub mod state;
#[cfg(test)]
mod tests;
pub mod triage;

pub use arm::Arm;

/// Bodies up to this many bytes share a packet with their head: coding them saves no packet.
pub const ONE_PACKET_BYTES: u64 = 1200;
/// Bodies known to be at most this long are worth more effort than an endless stream.
pub const SHORT_BODY_BYTES: u64 = 1 << 20;
/// A trial that leaves more than this share of the bytes is not worth decoding.
const WORTHWHILE_PER_CENT: usize = 95;

/// How to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Always this arm, whatever the message.
    Fixed(Arm),
    /// What compresses and is over a packet is compressed.
    Auto {
        /// The arm that leaves bytes alone.
        identity: Arm,
        /// For a body known to be short: the time to compress it hardly counts.
        short: Arm,
        /// For a body that goes on, or may.
        streaming: Arm,
    },
}

/// What is known of a message when its first block closes, or when its head can wait no longer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    /// Value of Content-Type.
    pub content_type: Option<&'a str>,
    /// The origin or client coded the content already (Content-Encoding).
    pub coded: bool,
    /// Bytes of a tunnel (CONNECT, Upgrade): mostly encrypted, always in a hurry.
    pub tunnel: bool,
    /// Bytes at hand.
    pub first_block_bytes: usize,
    /// Length of the whole body, where it is known.
    pub body_bytes: Option<u64>,
}

/// The choice and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What was chosen.
    pub arm: Arm,
    /// The result of the first block decides whether it stays; tell [`Policy::observe`].
    pub trial: bool,
    /// In a few words, for a person.
    pub reason: &'static str,
}

impl Policy {
    /// Chooses an arm for a message.
    #[must_use]
    pub fn choose(&self, facts: &Facts<'_>) -> Choice {
        let (identity, short, streaming) = match *self {
            Self::Fixed(arm) => return Choice { arm, trial: false, reason: "fixed" },
            Self::Auto { identity, short, streaming } => (identity, short, streaming),
        };
        let alone = |reason| Choice { arm: identity, trial: false, reason };
        if facts.tunnel {
            alone("a tunnel")
        } else if facts.coded {
            alone("coded by its sender")
        } else if facts.content_type.is_some_and(triage::is_compressed_type) {
            alone("a compressed media type")
        } else {
            match facts.body_bytes {
                Some(..=ONE_PACKET_BYTES) => alone("within a packet"),
                Some(..=SHORT_BODY_BYTES) => {
                    Choice { arm: short, trial: true, reason: "short, over a packet" }
                }
                _ => Choice { arm: streaming, trial: true, reason: "long or open-ended" },
            }
        }
    }

    /// Whether an arm on trial stays, after its first block.
    #[must_use]
    pub fn observe(&self, plain_bytes: usize, coded_bytes: usize) -> bool {
        coded_bytes * 100 <= plain_bytes * WORTHWHILE_PER_CENT
    }
}
