//! CoAP over UDP (RFC 7252): the task of an endpoint, a client, and how CoAP and HTTP say the same.
//!
//! The machine is `proto::coap::transfer`. Here are its socket and its clock (`endpoint`), who
//! asks servers ([`client`], `caller`), the mapping between both protocols as pure functions
//! (`http`, RFC 7252 §10, RFC 8075), security contexts ([`oscore`], RFC 8613), sessions of DTLS
//! ([`dtls`]), and what of it is shown to people (`text`). Who answers
//! the requests of CoAP's clients is the gateway.

pub(crate) mod back;
pub(crate) mod caller;
pub mod client;
mod dial;
pub mod dtls;
pub(crate) mod endpoint;
pub(crate) mod events;
mod group;
pub(crate) mod http;
pub(crate) mod link;
pub mod oscore;
pub(crate) mod shares;
pub(crate) mod socket;
pub(crate) mod tags;
#[cfg(test)]
mod tests;
pub mod text;
pub(crate) mod wire;

pub use proto::coap::Code;
