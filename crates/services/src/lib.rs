//! The services that the papers put behind the link, and their measuring clients.
//!
//! [`tracks`] is the friendly-force service of IST-118: 22 NFFI messages as SOAP, REST with XML and
//! REST with JSON. [`benchmark`] gives the answers of the TPC-H queries, as NAM measured them.
//! [`messaging`] delivers the military messages of IST-150 from node to node.
//! [`scenario`] reads which nodes send which of them over which radios. [`registry`] finds services
//! by their kind and by the quality that was measured of them (RT-SOA). [`realtime`] is a consumer
//! on threads with priorities, and its producer (RT-SOA).
//! [`client`] fetches a list of things one after another and times each.

mod addresses;
pub mod benchmark;
pub mod client;
mod error;
pub mod http;
pub mod messaging;
mod patient;
mod processor;
mod random;
pub mod realtime;
pub mod registry;
pub mod scenario;
pub mod server;
pub mod socket;
pub mod tracks;
pub mod xml;

pub use error::Error;
