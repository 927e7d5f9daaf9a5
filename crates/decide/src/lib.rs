//! Observations to a choice of an arm: which encoding a message goes in.
//!
//! The crate knows nothing of codecs: an [`Arm`] is the caller's index. Everything is a function of
//! its arguments, so a choice can be replayed.

pub mod arm;
mod decoders;
pub mod estimate;
pub mod fixed;
mod groups;
pub mod head;
pub mod learned;
pub mod models;
pub mod nam;
pub mod network;
pub mod outcome;
pub mod policy;
pub mod prior;
pub mod regression;
pub mod state;
#[cfg(test)]
mod tests;
pub mod triage;

pub use arm::Arm;

/// Bodies up to this many bytes share a packet with their head: coding them saves no packet.
pub const ONE_PACKET_BYTES: u64 = 1200;
