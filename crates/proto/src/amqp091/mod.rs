//! AMQP 0.9.1, with what RabbitMQ added to it: confirms, nacks, bindings between exchanges.
//!
//! The codec reads slices in place:
//!
//! - [`Frame`] is what a stream is made of; [`encode_method`] and [`encode_content`] append frames.
//! - [`Method`] is the table of all methods, both directions.
//! - [`Table`], [`Array`] and [`Value`] are field tables; [`TableBuf`] and [`ArrayBuf`] make them.
//! - [`ContentHeader`] and [`Properties`] stand before a message's body.
//! - [`ReplyCode`] says why something was refused.
//!
//! [`machine`] is the server's side of one connection: handshake, signs of life, channels, and
//! messages put together from their frames; [`client`] is the client's side, with one channel.
//!
//! ```
//! use longwire_proto::amqp091::{Frame, MIN_FRAME_BYTES, Method, encode_method};
//! let mut out = Vec::new();
//! let ack = Method::BasicAck { delivery_tag: 7, multiple: false };
//! encode_method(1, &ack, &mut out)?;
//! let (frame, len) = Frame::decode(&out, MIN_FRAME_BYTES)?.expect("it is whole");
//! assert_eq!((frame.channel, len), (1, out.len()));
//! assert_eq!(Method::decode(frame.payload)?, ack);
//! # Ok::<(), longwire_proto::Error>(())
//! ```

mod content;
mod frame;
pub mod machine;
pub mod method;
mod reply;
mod table;
#[cfg(test)]
mod tests;
mod wire;

pub use content::{ContentHeader, Properties};
pub use frame::{
    Frame, FrameKind, MIN_FRAME_BYTES, OVERHEAD_BYTES, PROTOCOL_HEADER, encode_content,
    encode_heartbeat, encode_method,
};
pub use machine::client;
pub use method::Method;
pub use reply::ReplyCode;
pub use table::{Array, ArrayBuf, Entries, MAX_NESTING, Table, TableBuf, Value, Values};
pub use wire::MAX_SHORT_BYTES;
