//! The pair without sockets: two relays, a virtual pipe and a virtual clock.
//!
//! A [`World`] is a function of its seed. Clients ask, origins answer, both in the moods of real
//! ones: slow, impatient, broken; carriers break and gateways restart. Afterwards the world knows
//! what every request came to, and [`World::verdict`] says whether that was right.

#![allow(clippy::expect_used)] // A test crate: what is not as expected is a finding.

mod party;
mod pipe;
mod random;
mod world;

pub use party::Fate;
pub use random::Random;
pub use world::{Moods, Report, World};
