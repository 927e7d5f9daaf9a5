//! Federation profiles: what nations have agreed on that their brokers exchange, as a file that
//! each of them signs and each broker applies. `docs/federation.md` has the format, the canonical
//! form that is signed, and what a broker refuses by it.
//!
//! - [`parse`] reads a profile and says all that is wrong with it, by line;
//! - [`Profile::canonical`] is its canonical form, [`Profile::digest`] the digest of that;
//! - [`sign`] and [`Profile::standing`] sign it and say who has;
//! - [`differences`] says who gains and loses what by another version;
//! - [`Profile::federation`] is what a broker applies, [`configuration()`] the rest of its
//!   configuration.

mod calendar;
mod check;
mod configuration;
mod diff;
mod document;
mod fault;
mod key;
mod places;
mod profile;
mod reader;
#[cfg(test)]
mod tests;

pub use configuration::{Options, configuration, dialled_by, dials};
pub use diff::{Difference, differences};
pub use document::{MAX_PROFILE_BYTES, parse};
pub use fault::{Fault, Faults};
pub use key::{Key, keys_of};
pub use profile::{
    MAX_FLOWS, MAX_PARTNERS, MAX_STREAMS, Partner, Profile, Revoked, Signature, Signer, Standing,
    sign,
};
