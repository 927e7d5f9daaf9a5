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
//! A gateway may also answer clients that have no edge beside them (`edgeless`), and those of WAP
//! ([`wsp`]).

mod access;
mod actor;
pub mod admin;
mod alarm;
mod carrier;
mod clock;
pub mod coap;
pub mod config;
mod descriptors;
pub mod dial;
pub mod edge;
mod edgeless;
mod envelope;
mod error;
pub mod fault;
mod fields;
mod flow;
mod front;
pub mod gateway;
mod handed;
mod http1;
pub mod keys;
mod live;
mod log;
mod mailbox;
mod memory;
mod metrics;
mod origin;
mod parting;
mod pattern;
mod progress;
mod rarely;
mod refusals;
mod renewal;
mod run;
mod seats;
mod signature;
mod socket;
mod speed;
pub mod store;
mod strict;
mod tls;
mod trust;
mod upstream;
mod wbxml;
mod workers;
pub mod wsp;

pub use actor::Pulse;
pub use carrier::Security;
pub use error::Error;
pub use handed::Handed;
pub use memory::limit_arenas;
pub use metrics::Build;
pub use origin::{Resolve, SystemResolver};
pub use pattern::Pattern;
pub use renewal::{News, Renewal, Renewed};
pub use upstream::Upstream;

use codec::dictionary::Id;

/// A number that no other process drew.
pub(crate) fn random_instance() -> Result<u64, Error> {
    use ring::rand::SecureRandom as _;
    let mut bytes = [0; 8];
    ring::rand::SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Error::system("draw a number")(std::io::Error::other("no randomness")))?;
    Ok(u64::from_ne_bytes(bytes))
}

/// How this process calls itself in Via: a hash, for the instance is the relays' alone.
pub(crate) fn pseudonym(instance: u64) -> String {
    let hash = Id::of(&[b"Via".as_slice(), &instance.to_be_bytes()].concat());
    let [a, b, c, d, ..] = hash.short();
    format!("longwire-{a:02x}{b:02x}{c:02x}{d:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pseudonym_says_nothing_of_the_instance() {
        let instance = 0x0123_4567_89ab_cdef;
        assert_eq!(pseudonym(instance), pseudonym(instance));
        assert_ne!(pseudonym(instance), pseudonym(instance + 1));
        let name = pseudonym(instance);
        assert!(!name.contains("01234567") && !name.contains("89abcdef"), "{name}");
    }
}
