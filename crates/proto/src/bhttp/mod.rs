//! Heads of HTTP messages in binary form (RFC 9292, known-length).
//!
//! The stream carrier sends heads and trailers apart from content, so a head here is a known-length
//! message truncated after its field section, which RFC 9292 §3.8 allows when content and trailers
//! are empty; trailers are a bare field section.

mod packet;
#[cfg(test)]
mod tests;

pub use packet::{
    Fields, MAX_FIELDS, MAX_HEAD_BYTES, Request, Response, decode_fields, encode_fields,
};
