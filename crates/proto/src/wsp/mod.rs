//! The Wireless Session Protocol (WAP-230-WSP-20010705-a): requests of HTTP in few bytes.
//!
//! - [`headers`]: headers and fields of HTTP, in both directions.
//! - [`packet`]: PDUs of the connectionless service on slices, without allocation.
//! - [`status`]: status codes of replies and those of HTTP.
//!
//! ```
//! use longwire_proto::wsp::packet::{self, Method, Pdu};
//! let get = Pdu::Request { method: Method::Get, uri: b"http://a/", headers: &[0x80, 0x94], body: b"" };
//! let mut room = [0; 32];
//! let len = packet::encode(7, &get, &mut room)?;
//! assert_eq!(room[..len], *b"\x07\x40\x09http://a/\x80\x94");
//! assert_eq!(packet::decode(&room[..len])?, (7, get));
//! # Ok::<(), longwire_proto::Error>(())
//! ```

pub mod headers;
pub mod packet;
mod reader;
pub mod status;
#[cfg(test)]
mod tests;
