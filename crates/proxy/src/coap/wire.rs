//! How messages of a connection lie on its stream: as they are, or in frames of a WebSocket
//! (RFC 8323 §4).

use std::io;

use bytes::Bytes;
use proto::coap::stream::{Framing, MAX_MESSAGE_BYTES};
use proto::websocket::{Event, Opcode, Peer, Reader, encode};

use crate::random_instance;

/// The frame that ends a WebSocket in order: status 1000 (RFC 6455 §7.4.1).
const NORMAL_END: [u8; 2] = 1000_u16.to_be_bytes();

/// See the module.
pub(crate) enum Wire {
    /// What is read next, where something came.
    Stream(Option<Bytes>),
    /// A client's WebSocket.
    WebSocket(Reader),
}

/// What came.
pub(crate) enum Came {
    /// Bytes of the stream, or a message.
    Bytes(Bytes),
    /// To be sent back.
    Answer(Bytes),
    /// Nothing follows.
    End,
}

impl Wire {
    /// Messages one behind the other.
    pub(crate) fn stream() -> Self {
        Self::Stream(None)
    }

    /// A WebSocket that this side opened.
    pub(crate) fn websocket() -> Self {
        let most = usize::try_from(MAX_MESSAGE_BYTES).unwrap_or(usize::MAX);
        Self::WebSocket(Reader::new(Peer::Server, most))
    }

    pub(crate) fn framing(&self) -> Framing {
        match self {
            Self::Stream(_) => Framing::Stream,
            Self::WebSocket(_) => Framing::WebSocket,
        }
    }

    /// Bytes came; before more do, [`Wire::next`] is called until it has nothing.
    pub(crate) fn receive(&mut self, bytes: Bytes) {
        match self {
            Self::Stream(next) => *next = Some(bytes),
            Self::WebSocket(reader) => reader.receive(&bytes),
        }
    }

    /// What came next. Errors: what breaks the protocol.
    pub(crate) fn next(&mut self) -> io::Result<Option<Came>> {
        match self {
            Self::Stream(next) => Ok(next.take().map(Came::Bytes)),
            Self::WebSocket(reader) => match reader.decode() {
                Ok(event) => Ok(event.map(came).transpose()?),
                Err(error) => Err(io::Error::other(format!("WebSocket: {error}"))),
            },
        }
    }

    /// A message as it is sent. The error says why it cannot be.
    pub(crate) fn encode(&self, message: &Bytes) -> Result<Bytes, &'static str> {
        match self {
            Self::Stream(_) => Ok(message.clone()),
            Self::WebSocket(_) => frame(Opcode::Binary, message),
        }
    }

    /// What is sent last.
    pub(crate) fn close(&self) -> Option<Bytes> {
        match self {
            Self::Stream(_) => None,
            Self::WebSocket(_) => frame(Opcode::Close, &NORMAL_END).ok(),
        }
    }
}

fn came(event: Event) -> io::Result<Came> {
    Ok(match event {
        Event::Message(message) => Came::Bytes(message),
        Event::Ping(payload) => {
            Came::Answer(frame(Opcode::Pong, &payload).map_err(io::Error::other)?)
        }
        Event::Close(_) => Came::End,
    })
}

/// RFC 6455 §5.3: each frame has a mask that nobody can foresee.
fn frame(opcode: Opcode, payload: &[u8]) -> Result<Bytes, &'static str> {
    let random = random_instance().map_err(|_| "the system has no randomness")?;
    let [a, b, c, d, ..] = random.to_be_bytes();
    Ok(encode(opcode, payload, Some([a, b, c, d])))
}
