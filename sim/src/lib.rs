//! The pair without sockets: relays, virtual pipes and a virtual clock.
//!
//! A [`World`] is a function of its seed. Clients ask, by one edge or several; origins answer, both
//! in the moods of real ones: slow, impatient, broken; carriers break, gateways restart or shut
//! down. Afterwards the world knows what every request came to, and judges whether that was right.

#![allow(clippy::expect_used)] // A test crate: what is not as expected is a finding.

mod carriers;
mod clients;
pub mod datagram;
pub mod decision;
pub mod lengths;
mod origins;
mod party;
mod pipe;
mod random;
pub mod repeated;
mod segment;
mod verdict;
mod world;

pub use party::Fate;
pub use random::Random;
pub use segment::Segment;
pub use world::{Moods, Report, World};
