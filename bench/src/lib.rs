//! Measurements that tests must not make, since they need minutes or an idle machine.
//!
//! [`fidelity`] shows how true emulated links are, by kernel timestamps outside of the ferry.

pub mod fidelity;
pub mod machine;
pub mod markdown;
pub mod probe;
pub mod progress;
mod random;
pub mod statistics;
