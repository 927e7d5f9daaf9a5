//! The Wireless Session Protocol (WAP-230-WSP-20010705-a): requests of HTTP in few bytes.
//!
//! - [`headers`]: headers and fields of HTTP, in both directions.
//! - [`packet`]: PDUs of the connectionless service on slices, without allocation.
//! - [`client`], [`server`]: the machines of the connectionless service: copies of what is lost,
//!   and no request carried out twice.
//! - [`session`]: PDUs that open and close a session, and its capabilities.
//! - [`wtp`]: PDUs of the transactions below a session (WAP-224).
//! - [`sar`]: messages of such transactions that do not fit a datagram.
//! - [`status`]: status codes of replies and those of HTTP.
//!
//! ```
//! use longwire_proto::wsp::packet::{self, Method, Pdu};
//! let (uri, headers) = (b"http://a/", [0x80, 0x94]);
//! let get = Pdu::Request { method: Method::Get, uri, headers: &headers, body: b"" };
//! let mut room = [0; 32];
//! let len = packet::encode(7, &get, &mut room)?;
//! assert_eq!(room[..len], *b"\x07\x40\x09http://a/\x80\x94");
//! assert_eq!(packet::decode(&room[..len])?, (7, get));
//! # Ok::<(), longwire_proto::Error>(())
//! ```

pub mod client;
pub mod headers;
pub mod packet;
mod patience;
mod reader;
pub mod sar;
pub mod server;
pub mod session;
mod settings;
pub mod status;
#[cfg(test)]
mod tests;
mod tids;
pub mod wtp;

pub use settings::MAX_PDU_BYTES;
