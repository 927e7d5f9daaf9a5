//! What a client tells a server about itself, so that the server can choose an encoding for it: how
//! fast it decodes, and how it sees its link. The idea is of NAM (Network-Adaptive Middleware): the
//! client keeps what is known of the client, so that a server needs no state of each.
//!
//! The packet, integers as in RFC 9000 §16, times and rates as the upper half of an IEEE 754 single
//! (about three digits):
//!
//! | part | bytes |
//! | --- | --- |
//! | version | 1 for this one |
//! | flags | 1: a model follows; 2: a link follows |
//! | hash | 8: the first of SHA-256 of the model, from the number of encodings on |
//! | model | number of encodings; for each a codec's number, fixed time (2), time a byte (2) |
//! | link | bit/s (2), seconds of a round trip (2), share of packets lost (2) |
//!
//! Codecs have the numbers that they have on the carrier, in ascending order. Times are seconds to
//! decode: whatever the length, and for each byte that comes out.
//!
//! With three encodings and a link that is 32 bytes. A client that has told its model once need
//! send only the hash: 10 bytes. The hash names a model and nothing else: who receives both
//! compares them, so that nobody can put a model under the name of another.
//!
//! Where it stands:
//!
//! - field of an HTTP request [`FIELD`]: an item of structured fields (RFC 9651 §3.3), a byte
//!   sequence; parameters are ignored;
//! - field of an answer [`WANTED_FIELD`]: a boolean; true asks for the whole packet, for the model
//!   of the hash is not known;
//! - between the pair: CONTROL of kind 4 ([`crate::control::Processor`]), for a peer that asks;
//! - header block of SOAP 1.1 and 1.2 ([`soap`]), never to be understood by force;
//! - CoAP: the bytes fit an opaque option as they are. A number is not claimed yet; it would be
//!   elective, safe to forward and no part of a cache key (RFC 7252 §5.4.6), such as 65052 of those
//!   for experiments (§12.2).

mod packet;
pub mod soap;
#[cfg(test)]
mod tests;
mod text;

pub use packet::{
    Decoding, Link, MAX_BYTES, MAX_ENCODINGS, MAX_PER_BYTE_S, MAX_SECONDS, Model, Packet, Profile,
    VERSION,
};
pub use text::{FIELD, MAX_TEXT_BYTES, WANTED_FIELD, decode_field, encode_field};
