//! Measurements that tests must not make, since they need minutes or an idle machine.
//!
//! [`fidelity`] shows how true emulated links are, by kernel timestamps outside of the ferry;
//! [`codec_exi`] how our EXI compares with the reference implementation; [`pair`] what edge and
//! gateway cost and hold.

pub mod codec_exi;
pub mod fidelity;
pub mod machine;
pub mod markdown;
pub mod pair;
pub mod probe;
pub mod progress;
mod random;
pub mod statistics;
