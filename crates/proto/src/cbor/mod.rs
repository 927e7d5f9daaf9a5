//! Concise Binary Object Representation (RFC 8949): data items on the caller's slices.
//!
//! Only `core` is used here and nothing is allocated. [`Encoder`] writes items into a [`Sink`],
//! each head in its shortest form; [`Decoder`] is an iterator over the items of a slice that checks
//! that they are well-formed (RFC 8949 §5.3.1) and, on request, core deterministic (§4.2.1).
//!
//! ```
//! use longwire_proto::cbor::{Decoder, Encoder, Item, Slice};
//! let mut room = [0; 16];
//! let mut encoder = Encoder::new(Slice::new(&mut room));
//! encoder.array(2)?;
//! encoder.text("ab")?;
//! encoder.float(1.5)?;
//! let len = encoder.into_sink().len();
//! assert_eq!(room[..len], [0x82, 0x62, b'a', b'b', 0xf9, 0x3e, 0x00]);
//! let items: Result<Vec<_>, _> = Decoder::<8>::new(&room[..len]).collect();
//! assert_eq!(items?, [Item::Array(Some(2)), Item::Text("ab"), Item::Half(0x3e00)]);
//! # Ok::<(), longwire_proto::Error>(())
//! ```

mod decode;
mod diagnostic;
mod encode;
mod float;
mod head;
#[cfg(test)]
mod tests;

pub use decode::{Decoder, Item, check, check_deterministic};
pub use diagnostic::Diagnostic;
pub use encode::{Encoder, Sink, Slice};
pub use float::{Shortest, double_of_half, shortest};
pub use head::{Head, Major, head};

/// Simple value of `false` (RFC 8949 §3.3, table 4).
pub const FALSE: u8 = 20;
/// Simple value of `true`.
pub const TRUE: u8 = 21;
/// Simple value of `null`.
pub const NULL: u8 = 22;
/// Simple value of `undefined`.
pub const UNDEFINED: u8 = 23;

/// Tag of an unsigned bignum (RFC 8949 §3.4.3).
pub const TAG_BIGNUM: u64 = 2;
/// Tag of a negative bignum.
pub const TAG_NEGATIVE_BIGNUM: u64 = 3;
/// Tag of a decimal fraction (RFC 8949 §3.4.4).
pub const TAG_DECIMAL: u64 = 4;
/// Tag that says nothing but that this is CBOR (RFC 8949 §3.4.6).
pub const TAG_SELF_DESCRIBED: u64 = 55_799;
