//! Object Security for Constrained RESTful Environments (OSCORE, RFC 8613): requests and responses
//! of CoAP that are secret and authentic from end to end, whatever proxies are between.
//!
//! Both ends [derive](Context::derive) keys from what they have agreed on before. An [`Endpoint`]
//! then protects and verifies messages, of which it knows code, options and payload
//! ([`CoapMessage`]): what proxies need not see goes into a plaintext, which is encrypted; the
//! rest is the outer message. What of the COSE object is no ciphertext is in the OSCORE option
//! ([`OscoreOption`]).
//!
//! | what may be lost | what keeps it from harm |
//! | --- | --- |
//! | the number of the last message sent | [`SenderSequence`]: a watermark in a store |
//! | the numbers of requests received | [`Replay::lost`]: the client is asked for an Echo |
//! | which notifications came | nothing: a client that starts anew registers again |
//!
//! No chance and no clock is here: the Echo value is an argument.

mod algorithm;
mod class;
mod context;
mod endpoint;
mod message;
mod option;
mod plaintext;
mod proxy_uri;
mod refusal;
mod replay;
mod sequence;
#[cfg(test)]
mod tests;

pub use algorithm::{Algorithm, MAX_ID_BYTES};
pub use class::{Class, ECHO, OBSERVE, class};
pub use context::{Context, MAX_ID_CONTEXT_BYTES, Parameters};
pub use endpoint::{Endpoint, ReceivedRequest, ResponseIv, SentRequest, Unverified, Verified};
pub use message::CoapMessage;
pub use option::{MAX_OPTION_BYTES, MAX_PARTIAL_IV, OSCORE, OscoreOption};
pub use plaintext::{MAX_OPTIONS, MAX_PLAINTEXT_BYTES};
pub use refusal::Refusal;
pub use replay::{DEFAULT_WINDOW, ECHO_BYTES, MAX_WINDOW, Replay, ReplayWindow};
pub use sequence::SenderSequence;
