//! HTTP/1 on sockets: what stands between a connection and the library that speaks HTTP.
//!
//! Each head passes [`proto::http1`] on its way in, so that the framing is decided once, what has
//! to be repaired is repaired, and what is refused is refused with a reason. On its way out it gets
//! back what the library's types do not hold: the target as it was sent, the case of field names,
//! the reason phrase, interim responses.

mod line;
mod shared;
mod talk;

pub(crate) use line::{Line, LineStream};
pub(crate) use shared::Shared;
pub(crate) use talk::{Asked, OnInterim, Talk, TalkStream};
