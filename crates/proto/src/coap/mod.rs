//! The Constrained Application Protocol (RFC 7252) and what was added to it.
//!
//! The codec works on the caller's slices, uses only `core` and allocates nothing:
//!
//! - [`Datagram`] and [`Message`] read a message of UDP, [`Writer`] writes one.
//! - [`framed`] has the layouts for TCP and WebSocket and their signalling messages (RFC 8323).
//! - [`Code`], [`option`](mod@option) and [`format`](mod@format) are the registries.
//! - [`uri`] takes URIs apart into options and puts them together.
//! - [`Block`] is the value of a block option (RFC 7959, RFC 9177).
//!
//! What has an allocator:
//!
//! - [`Content`] is a message of its own.
//! - [`Assembly`] and [`slice()`] put bodies together from blocks and cut them.
//! - [`machine`] is an endpoint over datagrams: reliable messages, both roles, observations.
//! - [`transfer`] is such an endpoint for bodies of any size, whose messages [`guard`] protects; by
//!   RFC 7959, and by RFC 9177 where both ends know it.
//! - [`stream`] is a connection over a reliable transport, for bodies of any size (RFC 8323).
//!
//! ```
//! use longwire_proto::coap::{Code, Datagram, Header, Kind, Token, Writer, option};
//! let token = Token::new(&[0x20])?;
//! let header = Header { kind: Kind::Confirmable, code: Code::GET, mid: 0x7d35, token };
//! let mut room = [0; 64];
//! let mut writer = Writer::new(&mut room, &header);
//! writer.option(option::URI_PATH, b"temperature")?;
//! let len = writer.finish()?;
//! let datagram = Datagram::decode(&room[..len])?;
//! assert_eq!(datagram.mid, 0x7d35);
//! let path = datagram.message.options.first(option::URI_PATH);
//! assert_eq!(path, Some(&b"temperature"[..]));
//! # Ok::<(), longwire_proto::Error>(())
//! ```

mod block;
mod body;
mod chance;
mod code;
mod content;
pub mod format;
pub mod framed;
pub mod guard;
mod kept;
pub mod machine;
pub mod option;
mod packet;
pub mod stream;
#[cfg(test)]
mod tests;
pub mod transfer;
pub mod uri;

pub use block::{BERT, Block, MAX_NUM, MAX_SZX};
pub use body::{Assembly, MAX_BODY_BYTES, Refusal, key_of, slice, slice_within};
pub use code::Code;
pub use content::{Content, MAX_OPTIONS};
pub use packet::{Datagram, Header, Kind, MAX_TOKEN_BYTES, Message, Options, Token, Uint, Writer};
