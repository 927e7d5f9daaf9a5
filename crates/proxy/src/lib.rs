//! The shell of the pair: listeners, carriers, TLS, worker pool, admin, metrics.
//!
//! client → [`edge`] → mailbox → actor (which owns the relay) → carrier → the other side's
//! carrier → actor → mailbox → [`gateway`] → origin. Every hop is one call or one bounded queue:
//!
//! - a mailbox holds what one exchange's local side and the relay have for each other, as far as
//!   credit reaches;
//! - the actor takes inputs one at a time and does what the relay says;
//! - codec work runs on threads of its own.
//!
//! A gateway may also answer clients that have no edge beside them (`plain`).

mod actor;
mod admin;
mod carrier;
pub mod config;
pub mod edge;
mod error;
mod fields;
mod flow;
mod front;
pub mod gateway;
pub mod keys;
mod log;
mod mailbox;
mod memory;
mod metrics;
mod origin;
mod pattern;
mod plain;
mod run;
mod socket;
mod speed;
pub mod store;
mod tls;
mod upstream;
mod workers;

pub use carrier::Security;
pub use error::Error;
pub use memory::limit_arenas;
pub use origin::{Resolve, SystemResolver};
pub use pattern::Pattern;
pub use upstream::Upstream;

/// A number that no other process drew.
pub(crate) fn random_instance() -> Result<u64, Error> {
    use ring::rand::SecureRandom as _;
    let mut bytes = [0; 8];
    ring::rand::SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Error::system("draw a number")(std::io::Error::other("no randomness")))?;
    Ok(u64::from_ne_bytes(bytes))
}

/// How this process calls itself in Via.
pub(crate) fn pseudonym(instance: u64) -> String {
    format!("longwire-{:08x}", instance >> 32)
}
