//! A carrier over QUIC (RFC 9000): a stream for each exchange.
//!
//! On each bidirectional stream that the edge opens are frames of [`crate::stream`]. Those of the
//! first (stream 0) are of no exchange: HELLO first, in both directions, then signs of life and
//! CONTROL. Every other stream has the frames of one exchange and the CONTROL that is about it
//! ([`crate::control::order_of`]); the exchange is that of the stream's first frame. What of an
//! exchange has no stream any more goes on stream 0.
//!
//! The gateway ends its direction of a stream once the exchange is over there: ended in both
//! directions, given up, or asked about in vain. The edge ends its own once the exchange is over
//! and the gateway has done so: until then what it sends of the exchange goes by the same stream,
//! so that its order is kept. Streams other than the first are not read before the HELLO.
//!
//! Handshake, loss and congestion are QUIC's. With 0-RTT (RFC 9001 §4.6.1) the edge's HELLO and
//! what may go ahead of the gateway's are the first flight: [`crate::stream`] says what that is.

mod machine;
#[cfg(test)]
mod tests;

pub use machine::Machine;

use crate::carrier::Abilities;

/// The stream of what is of no exchange.
pub const CONTROL_STREAM: u64 = 0;
/// Exchanges that a gateway takes beyond what it announces: the end of one may come later than the
/// beginning of the next.
pub const MAX_AHEAD: u64 = 256;

/// What carriers of this kind can do.
pub const ABILITIES: Abilities = Abilities { ordered: false, ..Abilities::STREAM };
