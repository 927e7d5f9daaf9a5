//! longwire's own carrier protocol over one ordered, reliable byte pipe (TCP or TLS).
//!
//! Exchanges are multiplexed. A frame is `type, length, payload`, integers as in RFC 9000 §16:
//!
//! | type | frame | payload |
//! | --- | --- | --- |
//! | 0x00 | HELLO | versions from and to, instance (8 bytes), parameters |
//! | 0x01 | PING | opaque number, echoed |
//! | 0x02 | PONG | the number |
//! | 0x03 | GOAWAY | nothing: no new exchanges, please |
//! | 0x04 | CONTROL | kind, bytes: profiles, dictionaries, acknowledgements |
//! | 0x08 | CREDIT | exchange, further bytes of DATA that may be sent |
//! | 0x09 | ABORT | exchange, code, reason in UTF-8 |
//! | 0x0a | INTERIM | exchange, status 100 to 199 |
//! | 0x0b | QUERY | exchange, number if the gateway counts: what became of it? |
//! | 0x0c | OUTCOME | exchange, state, status |
//! | 0x0d | TRAILERS | exchange, field section; ends the message |
//! | 0x10 + e | HEAD | exchange, codec, window unless identity, binary HTTP or [`crate::message`] |
//! | 0x20 + e + b + u + a | DATA | exchange, decoded length if b, piece of a block |
//! | 0x40 | PADDING | zeros, which say nothing: skipped by every receiver |
//! | 0x41 and up | later versions' | skipped by a receiver that does not know them |
//!
//! Bits: e = 1, the message ends; b = 2, the block ends; u = 4, the block went uncoded; a = 8, the
//! codec begins anew with the block: only if the receiver's HELLO has the parameter 5. A parameter
//! of HELLO is an id, a length and a value. A QUERY opens a flow that carries only the answer.
//! A PING is answered at once with a PONG, also amid a shutdown.
//!
//! An edge may open a carrier parallel to one that has stalled. If both HELLOs have parameter 6,
//! the older stays for what is on it and is not asked about; else the gateway closes it. Once a
//! QUERY about an exchange was answered, its HEAD is not taken any more on another carrier; and
//! where the OUTCOME was that the answer is lost or the request aborted, an edge to which that does
//! no harm may send the request again, with its number, on the carrier where it asked.
//!
//! A QUERY may come late, behind one about the same exchange on another carrier. If both HELLOs
//! have the parameter 7, an edge numbers its questions about an exchange from 1, whichever carriers
//! they go by: one with a lower number than the last is answered with an ABORT and changes nothing.
//! Without numbers, the carrier that said HELLO later is the one that asked later.
//!
//! Both sides send HELLO first and speak the greatest version both know. Unknown parameters are
//! ignored, so old and new interoperate.
//!
//! A gateway reads what follows an edge's HELLO, whether or not its own has arrived there. So an
//! edge that has had a HELLO of the gateway with this key, and knows which versions it speaks, may
//! send requests right behind its own: safe ones (RFC 9110 §9.2.1) that were not sent before, each
//! whole with a HEAD of codec 0, no more of them than that HELLO allowed and 16 at most. With them
//! go CONTROL of kind 3 that says on whose behalf they are, and ABORT of those that are given up.
//! All else waits for the gateway's HELLO, for it may have another instance now, which holds
//! nothing of what was said before. Where no HELLO comes the edge does not know whom the requests
//! reached: it asks the next gateway about each, whatever its instance.
//!
//! DATA of an exchange stays within the credit its receiver gave: the initial one of HELLO, then
//! CREDIT frames, counted in bytes of pieces and 128 more for each end of a block that has bytes; a
//! receiver leaves room for one whole block at least. DATA without bytes only ends it. INTERIM
//! comes before the response's HEAD, and OUTCOME before anything else on a flow that a QUERY
//! opened.
//!
//! Contents of CONTROL are those of [`crate::control`], by kind: 1 is a receipt, 2 how many
//! requests a gateway that drains took, 3 about what both ends hold, 4 how fast a side decodes, 16
//! the fields of the INTERIM that follows, 17 the end of a client's connection, and 18 what an edge
//! may reach. Kinds that a receiver does not know are ignored, and nothing waits for a receipt.
//! Without a content of kind 2 each request that came too late is refused by its own ABORT, if that
//! gets there in time.
//!
//! A codec that holds a message back until its end does not fit: each block comes out of its codec
//! whole, with its decoded length, in one context for all the message's blocks. xmill does too, a
//! column of values for each block; its window is the one of HEAD at most. Blocks that go uncoded
//! pass by the context, wherever in the message, which may begin and end with such.
//!
//! The codec `delta` tells a message by its difference from one that the receiver has said it
//! holds. Such a message is a single block, the last of its body, and begins with one byte and the
//! name of its base (8 bytes). A receiver that does not hold it says MISSING and gets the body as
//! it is.

mod blocks;
mod machine;
mod packet;
#[cfg(test)]
mod tests;

pub use blocks::Blocks;
pub use machine::Machine;
pub use packet::{
    Frame, Hello, MAX_PADDING_BYTES, MAX_PAYLOAD_BYTES, MAX_VERSION, MIN_PADDING_BYTES, MIN_VERSION,
};
