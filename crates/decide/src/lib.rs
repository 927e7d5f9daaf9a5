//! Observations to a choice of an arm: which encoding a message goes in.
//!
//! The crate knows nothing of codecs: an [`Arm`] is the caller's index. Everything is a function of
//! its arguments, so a choice can be replayed.

#[cfg(test)]
mod tests;

/// Bodies up to this many bytes share a packet with their head: coding them saves no packet.
pub const ONE_PACKET_BYTES: usize = 1200;
/// A trial that leaves more than this share of the bytes is not worth decoding.
const WORTHWHILE_PER_CENT: usize = 95;

/// One of the caller's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arm(pub usize);

/// How to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Always this arm, whatever the message.
    Fixed(Arm),
    /// What compresses and is over a packet is compressed.
    Auto {
        /// The arm that leaves bytes alone.
        identity: Arm,
        /// For a body that is whole in its first block: time to compress hardly counts.
        whole: Arm,
        /// For a body that goes on.
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
    /// The body ends with them.
    pub whole: bool,
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
        let (identity, whole, streaming) = match *self {
            Self::Fixed(arm) => return Choice { arm, trial: false, reason: "fixed" },
            Self::Auto { identity, whole, streaming } => (identity, whole, streaming),
        };
        let alone = |reason| Choice { arm: identity, trial: false, reason };
        if facts.tunnel {
            alone("a tunnel")
        } else if facts.coded {
            alone("coded by its sender")
        } else if facts.content_type.is_some_and(is_compressed_type) {
            alone("a compressed media type")
        } else if facts.whole && facts.first_block_bytes <= ONE_PACKET_BYTES {
            alone("within a packet")
        } else if facts.whole {
            Choice { arm: whole, trial: true, reason: "whole, over a packet" }
        } else {
            Choice { arm: streaming, trial: true, reason: "streaming" }
        }
    }

    /// Whether an arm on trial stays, after its first block.
    #[must_use]
    pub fn observe(&self, plain_bytes: usize, coded_bytes: usize) -> bool {
        coded_bytes * 100 <= plain_bytes * WORTHWHILE_PER_CENT
    }
}

/// Media types whose formats compress inside.
fn is_compressed_type(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let (top, sub) = essence.split_once('/').unwrap_or((&essence, ""));
    match top {
        "audio" | "video" => true,
        "image" => !matches!(sub, "svg+xml" | "bmp" | "x-ms-bmp" | "tiff" | "x-icon"),
        "font" => matches!(sub, "woff" | "woff2"),
        "application" => matches!(
            sub,
            "zip" | "gzip" | "zstd" | "x-7z-compressed" | "x-bzip2" | "x-xz" | "x-rar-compressed"
        ),
        _ => false,
    }
}
