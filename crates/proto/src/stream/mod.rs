//! longwire's own carrier protocol over one ordered, reliable byte pipe (TCP or TLS).
//!
//! Exchanges are multiplexed. A frame is `type, length, payload`, integers as in RFC 9000 §16:
//!
//! | type | frame | payload |
//! | --- | --- | --- |
//! | 0x00 | HELLO | least and greatest version, instance (8 bytes), parameters (id, length, value) |
//! | 0x01 | PING | opaque number, echoed |
//! | 0x02 | PONG | the number |
//! | 0x03 | GOAWAY | nothing: no new exchanges, please |
//! | 0x04 | CONTROL | kind, bytes: profiles, dictionaries and their acknowledgements |
//! | 0x08 | CREDIT | exchange, further bytes of DATA the sender of this frame will take |
//! | 0x09 | ABORT | exchange, code, reason in UTF-8 |
//! | 0x0a | INTERIM | exchange, status 100 to 199 |
//! | 0x0b | QUERY | exchange: what became of it? Opens a flow that carries only the answer |
//! | 0x0c | OUTCOME | exchange, state, status |
//! | 0x0d | TRAILERS | exchange, field section; ends the half |
//! | 0x10–0x11 | HEAD | exchange, codec, window (absent for identity), binary HTTP; bit 0: ends the half |
//! | 0x20–0x27 | DATA | exchange, a piece of a block; bit 0: ends the half, bit 1: ends the block, then the block's decoded length comes before the piece; bit 2: the block went as it was, uncoded |
//! | 0x40– | later versions' | skipped by a receiver that does not know them |
//!
//! Both sides send HELLO first and speak the greatest version both know. Unknown parameters are
//! ignored, so old and new interoperate. DATA of an exchange stays within the credit its receiver
//! gave: the initial one of HELLO, then CREDIT frames, counted in bytes of pieces.

mod machine;
mod packet;
#[cfg(test)]
mod tests;

pub use machine::{Config, Input, Machine, Output, Role};
pub use packet::{
    Abort, Data, Frame, Head, Hello, MAX_BLOCK_BYTES, MAX_PAYLOAD_BYTES, OutcomeState, VERSION_MAX,
    VERSION_MIN,
};
