//! Heads and framing of HTTP/1 messages (RFC 9112), read once and strictly, so that every part
//! behind it sees one length, one coding and one host.
//!
//! [`RequestHead::parse`] and [`ResponseHead::parse`] take a whole head as it came, refuse what no
//! recipient may guess at, repair what an intermediary must repair, and give the fields with
//! Content-Length and Transfer-Encoding normalised: at most one of the two is left, and it is
//! true. [`Body`] follows a body to its end by that framing. [`Style`] holds what binary HTTP does
//! not carry: the case of field names and the reason phrase.

mod body;
mod fault;
mod head;
mod request;
mod response;
mod style;
#[cfg(test)]
mod tests;

pub use body::{Body, Scan};
pub use fault::Fault;
pub use head::{Field, MAX_HEAD_BYTES, MAX_STRICT_FIELDS, end_of_head};
pub use request::{MAX_TARGET_BYTES, RequestHead, escape_target};
pub use response::ResponseHead;
pub use style::{CONNECTION_FIELD, STYLE_FIELD, Style};

/// How the end of a message's body is found (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Nothing follows the head.
    None,
    /// So many bytes follow.
    Length(u64),
    /// Chunks follow.
    Chunked,
    /// Everything up to the end of the connection (responses only).
    UntilClose,
}
