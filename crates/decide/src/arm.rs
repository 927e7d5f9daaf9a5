//! The arms: what a message can go in, and what is expected of each before it was seen at work.

/// One of the caller's options: an index into what it gave at the start. The first leaves bytes
/// alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arm(pub usize);

impl Arm {
    /// The arm that leaves bytes alone.
    pub const IDENTITY: Self = Self(0);
}

/// Speed of one direction of a codec on one processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Seconds whatever the length.
    pub fixed_s: f64,
    /// Seconds for each decoded byte.
    pub per_byte_s: f64,
}

impl Speed {
    /// No time at all.
    pub const NONE: Self = Self { fixed_s: 0.0, per_byte_s: 0.0 };

    /// Seconds for so many decoded bytes.
    #[must_use]
    pub fn seconds(&self, bytes: f64) -> f64 {
        self.fixed_s + self.per_byte_s * bytes
    }

    /// Of a processor that takes so many times as long.
    #[must_use]
    pub fn times(self, slower: f64) -> Self {
        Self { fixed_s: slower * self.fixed_s, per_byte_s: slower * self.per_byte_s }
    }
}

/// What is expected of an arm before it was seen at work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// Coefficients of the logarithm of the share that is left; see [`size_features`], of whose
    /// last nothing is expected.
    pub size: [f64; 4],
    /// Bytes that it adds to a message that does not compress at all.
    pub overhead_bytes: f64,
    /// Encoding, as measured at the start of the process that encodes.
    pub encode: Speed,
    /// Decoding, as measured at the start of the process that decodes.
    pub decode: Speed,
    /// Those of one family search and code alike: one tells more of the others than of the rest.
    pub family: &'static str,
}

impl Prior {
    /// Of the arm that leaves bytes alone.
    pub const IDENTITY: Self = Self {
        size: [0.0; 4],
        overhead_bytes: 0.0,
        encode: Speed::NONE,
        decode: Speed::NONE,
        family: "",
    };

    /// Whether messages before tell most of one that is encoded so.
    pub(crate) fn is_based(&self) -> bool {
        self.family == BASED
    }

    /// Whether decoding does what encoding does, and takes as long: measured speeds do not tell,
    /// which of fast codecs are mostly the making of a context.
    pub(crate) fn is_symmetric(&self) -> bool {
        self.family == SYMMETRIC
    }
}

/// Family of the encodings that want a base.
pub(crate) const BASED: &str = "based";
/// Family of the encodings whose decoder models each byte as the encoder does: where one is slower
/// or faster than expected, so is the other (off 22 messages, logarithms over the priors of XMill
/// at level 9: slope 1.0, correlation 0.98).
pub(crate) const SYMMETRIC: &str = "xmill9";

/// Heads beyond which nobody knows beforehand how a message compresses for being longer: some
/// codecs look back no further, and messages that repeat themselves do so for ever.
const MAX_HEADS: f64 = 16.0;
/// Times that length from which on it makes no difference.
const MAX_BEYOND: f64 = 4096.0;
/// Of [`size_features`].
pub(crate) const SIZE_FEATURES: usize = 5;

/// Features of the logarithm of the share that is left of a message: 1, `l`, `l·L`, `L`, `M`, where
/// `l` is the logarithm of the share that a fast coder leaves of the head, `L` that of how many
/// heads the message is long, up to a bound, and `M` that of how many times as long as this bound
/// it is. The product matters: what compresses well does so the better the longer it is.
#[must_use]
pub fn size_features(bytes: f64, head_share: f64) -> [f64; SIZE_FEATURES] {
    let little = head_share.clamp(0.01, 1.0).ln();
    let heads = bytes / crate::head::HEAD_BYTES as f64;
    let long = heads.clamp(1.0, MAX_HEADS).ln();
    let beyond = (heads / MAX_HEADS).clamp(1.0, MAX_BEYOND).ln();
    [1.0, little, little * long, long, beyond]
}

/// Features of the logarithm of a time over what the prior expects.
#[must_use]
pub fn time_features(bytes: f64, share: f64) -> [f64; 3] {
    [1.0, ((bytes + 500.0) / 10_000.0).ln(), share.clamp(1e-4, 2.0).ln()]
}
