//! Object Security for Constrained RESTful Environments (OSCORE, RFC 8613): requests and responses
//! of CoAP that are secret and authentic from end to end, whatever proxies are between.

mod algorithm;
mod context;
mod option;
mod replay;
mod sequence;
#[cfg(test)]
mod tests;

pub use algorithm::{Algorithm, MAX_ID_BYTES};
pub use context::{Context, MAX_ID_CONTEXT_BYTES, Parameters};
pub use option::{MAX_OPTION_BYTES, MAX_PARTIAL_IV, OSCORE, OscoreOption};
pub use replay::{DEFAULT_WINDOW, ECHO_BYTES, MAX_WINDOW, Replay, ReplayWindow};
pub use sequence::SenderSequence;
