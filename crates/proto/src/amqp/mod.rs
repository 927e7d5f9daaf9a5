//! AMQP 1.0 (OASIS Standard, 29 October 2012): types, frames, performatives, messages, SASL, and
//! the machines of one connection, that of who accepts it and that of who opens it.
//!
//! - [`types`]: values in their encodings (Part 1).
//! - [`frame`]: protocol headers and frames (Part 2 §2.2, §2.3).
//! - [`performative`]: what frames say, and what is in it (Part 2 §2.7, Part 3 §3.4, §3.5).
//! - [`message`]: the sections of a message (Part 3 §3.2). The bare message stays the bytes that
//!   came.
//! - [`sasl`]: who the peer is (Part 5 §5.3).
//! - [`machine`]: one connection with its sessions and links, at the side of the container that
//!   accepts; [`client`]: at the side of the one that opens.

pub mod frame;
pub mod machine;
pub mod message;
pub mod performative;
pub mod sasl;
pub mod types;

pub use machine::client;
