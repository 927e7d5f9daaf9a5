//! Bounds that several parts share.

use std::time::Duration;

/// Messages kept as bases for others, in both directions of all paths, in bytes; beyond it none
/// are.
pub(crate) const MAX_BASE_BYTES: usize = 8 << 20;
/// Principals that are told apart at once; one that was forgotten gets a new number.
pub const MAX_PRINCIPALS: usize = 1024;
/// Messages that are being made into bases at once; others are not kept.
pub(crate) const MAX_KEEPS: usize = 64;
/// A block closes after this long without input, so that event streams flow.
pub const BLOCK_PAUSE: Duration = Duration::from_millis(20);
