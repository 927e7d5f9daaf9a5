//! Messages of a WebSocket once its handshake is over (RFC 6455 §5), as far as protocols of binary
//! messages need them (RFC 8323 §4): no text, no extensions.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;

use crate::Error;

/// Longest payload of a control frame, in bytes (RFC 6455 §5.5).
pub const MAX_CONTROL_BYTES: usize = 125;
/// What is hashed behind a client's key (RFC 6455 §1.3).
pub const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;
const TWO_BYTES: u8 = 126;
const EIGHT_BYTES: u8 = 127;

/// What a frame is (RFC 6455 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// A binary message.
    Binary = 2,
    /// The end of what its sender sends.
    Close = 8,
    /// It is to be answered with a [`Opcode::Pong`] that has the same payload.
    Ping = 9,
    /// The answer.
    Pong = 10,
}

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A binary message, whole.
    Message(Bytes),
    /// To be answered with this payload.
    Ping(Bytes),
    /// Nothing follows; the status that is given, if any (RFC 6455 §7.4).
    Close(Option<u16>),
}

/// Who the peer is: a client masks what it sends, a server does not (RFC 6455 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// It opened the connection.
    Client,
    /// It accepted it.
    Server,
}

/// Puts together what a peer sends, cut anywhere.
#[derive(Debug)]
pub struct Reader {
    peer: Peer,
    max_bytes: usize,
    /// A part of a frame.
    input: Vec<u8>,
    /// The frames of a message before its last; `None` between messages.
    message: Option<Vec<u8>>,
}

/// A frame of the input.
struct Frame {
    first: u8,
    payload: Vec<u8>,
    /// Bytes that it takes.
    len: usize,
}

impl Reader {
    /// Takes messages of at most so many bytes.
    #[must_use]
    pub fn new(peer: Peer, max_bytes: usize) -> Self {
        Self { peer, max_bytes, input: Vec::new(), message: None }
    }

    /// Bytes came.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Bytes of what came and is not whole.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.input.len() + self.message.as_ref().map_or(0, Vec::len)
    }

    /// What came next; `None` while it is incomplete. After an error nothing means anything, and
    /// the connection is to be ended (RFC 6455 §7.1.7).
    pub fn decode(&mut self) -> Result<Option<Event>, Error> {
        while let Some(frame) = self.frame()? {
            self.input.drain(..frame.len);
            if let Some(event) = self.take(frame)? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// The frame that the input begins with. Its length is looked at before anything is kept.
    fn frame(&self) -> Result<Option<Frame>, Error> {
        let Some((&[first, second], rest)) = self.input.split_first_chunk() else {
            return Ok(None);
        };
        if first & RESERVED != 0 {
            let value = (first & RESERVED).into();
            return Err(Error::Peer { what: "reserved bits of a WebSocket frame", value });
        }
        let is_masked = second & MASKED != 0;
        if is_masked != (self.peer == Peer::Client) {
            let what = "mask of a WebSocket frame that its sender must not leave as it is";
            return Err(Error::Peer { what, value: is_masked.into() });
        }
        let (len, least, rest) = match second & !MASKED {
            TWO_BYTES => match rest.split_first_chunk::<2>() {
                Some((len, rest)) => (u16::from_be_bytes(*len).into(), 126, rest),
                None => return Ok(None),
            },
            EIGHT_BYTES => match rest.split_first_chunk::<8>() {
                Some((len, rest)) => (u64::from_be_bytes(*len), 1 << 16, rest),
                None => return Ok(None),
            },
            len => (len.into(), 0, rest),
        };
        let len = self.checked(first, len, least)?;
        let (mask, rest) = match (is_masked, rest.split_first_chunk::<4>()) {
            (false, _) => ([0; 4], rest),
            (true, Some((mask, rest))) => (*mask, rest),
            (true, None) => return Ok(None),
        };
        let Some(payload) = rest.get(..len) else { return Ok(None) };
        let payload = masked(payload, mask);
        let len = self.input.len() - (rest.len() - len);
        Ok(Some(Frame { first, payload, len }))
    }

    fn checked(&self, first: u8, len: u64, least: u64) -> Result<usize, Error> {
        if len < least {
            // RFC 6455 §5.2: in as few bytes as it takes.
            return Err(Error::Peer { what: "length of a WebSocket frame", value: len });
        }
        let is_control = first & 8 != 0;
        let before = self.message.as_ref().map_or(0, Vec::len);
        let limit = if is_control { MAX_CONTROL_BYTES } else { self.max_bytes - before };
        if is_control && first & FIN == 0 {
            return Err(Error::Peer { what: "a control frame in pieces", value: first.into() });
        }
        let what = "WebSocket message in bytes";
        match usize::try_from(len) {
            Ok(len) if len <= limit => Ok(len),
            _ => Err(Error::Limit { what, value: len, limit: limit as u64 }),
        }
    }

    fn take(&mut self, frame: Frame) -> Result<Option<Event>, Error> {
        let Frame { first, payload, .. } = frame;
        let is_last = first & FIN != 0;
        let before = match (first & 0xf, self.message.take()) {
            (0, Some(before)) => before,
            (2, None) => Vec::new(),
            (opcode @ (8..=10), message) => {
                self.message = message;
                return Ok(control(opcode, payload));
            }
            (opcode, _) => {
                let what = "kind of a WebSocket frame that is not one of a binary message";
                return Err(Error::Peer { what, value: opcode.into() });
            }
        };
        let message = if before.is_empty() { payload } else { [before, payload].concat() };
        if is_last {
            return Ok(Some(Event::Message(message.into())));
        }
        self.message = Some(message);
        Ok(None)
    }
}

fn control(opcode: u8, payload: Vec<u8>) -> Option<Event> {
    match opcode {
        8 => {
            let status = payload.first_chunk().map(|status| u16::from_be_bytes(*status));
            Some(Event::Close(status))
        }
        9 => Some(Event::Ping(payload.into())),
        // RFC 6455 §5.5.3: one that nobody asked for means nothing.
        _ => None,
    }
}

fn masked(payload: &[u8], mask: [u8; 4]) -> Vec<u8> {
    payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect()
}

/// A frame with a whole message, or a control frame, whose payload is cut to
/// [`MAX_CONTROL_BYTES`]. A client has an unforeseeable mask for each (RFC 6455 §5.3), a server
/// none.
#[must_use]
pub fn encode(opcode: Opcode, payload: &[u8], mask: Option<[u8; 4]>) -> Bytes {
    let is_control = opcode as u8 & 8 != 0;
    let payload = match payload.get(..MAX_CONTROL_BYTES) {
        Some(cut) if is_control => cut,
        _ => payload,
    };
    let mut frame = Vec::with_capacity(payload.len() + 14);
    frame.push(FIN | opcode as u8);
    let bit = if mask.is_some() { MASKED } else { 0 };
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(len), _) if len < TWO_BYTES => frame.push(bit | len),
        (_, Ok(len)) => {
            frame.push(bit | TWO_BYTES);
            frame.extend_from_slice(&len.to_be_bytes());
        }
        _ => {
            frame.push(bit | EIGHT_BYTES);
            frame.extend_from_slice(&(payload.len() as u64).to_be_bytes());
        }
    }
    match mask {
        None => frame.extend_from_slice(payload),
        Some(mask) => {
            frame.extend_from_slice(&mask);
            frame.extend_from_slice(&masked(payload, mask));
        }
    }
    frame.into()
}

/// The text of 16 bytes as a client's key, or of the 20 of a SHA-1 hash as the answer to it
/// (RFC 6455 §4.1, §4.2.2).
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(peer: Peer, bytes: &[u8]) -> Result<Vec<Event>, Error> {
        let mut reader = Reader::new(peer, 300);
        reader.receive(bytes);
        let mut all = Vec::new();
        while let Some(event) = reader.decode()? {
            all.push(event);
        }
        Ok(all)
    }

    /// RFC 6455 §5.7, with binary in place of text.
    #[test]
    fn the_examples_of_the_rfc_are_read() {
        let hello = Event::Message(Bytes::from_static(b"Hello"));
        let single = [0x82, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f];
        assert_eq!(read(Peer::Server, &single), Ok(vec![hello.clone()]));
        assert_eq!(encode(Opcode::Binary, b"Hello", None), single[..]);
        let masked = [0x82, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        assert_eq!(read(Peer::Client, &masked), Ok(vec![hello.clone()]));
        assert_eq!(encode(Opcode::Binary, b"Hello", Some([0x37, 0xfa, 0x21, 0x3d])), masked[..]);
        let pieces = [0x02, 0x03, 0x48, 0x65, 0x6c, 0x89, 0x00, 0x80, 0x02, 0x6c, 0x6f];
        let ping = Event::Ping(Bytes::new());
        assert_eq!(read(Peer::Server, &pieces), Ok(vec![ping, hello]));
        let close = [0x88, 0x02, 0x03, 0xe8];
        assert_eq!(read(Peer::Server, &close), Ok(vec![Event::Close(Some(1000))]));
        // RFC 6455 §1.3.
        assert_eq!(text(b"the sample nonce"), "dGhlIHNhbXBsZSBub25jZQ==");
    }

    #[test]
    fn what_breaks_the_rules_is_refused() {
        for bytes in [
            &[0xc2, 0x00][..],               // a reserved bit
            &[0x82, 0x80, 1, 2, 3, 4],       // a server that masks
            &[0x81, 0x01, 0x61],             // text
            &[0x80, 0x01, 0x61],             // goes on with nothing
            &[0x02, 0x01, 0x61, 0x82, 0x00], // begins anew amid a message
            &[0x09, 0x00],                   // a ping in pieces
            &[0x89, 126, 0, 126],            // a ping over 125 bytes
            &[0x82, 126, 0, 125],            // a length in more bytes than it takes
            &[0x82, 126, 1, 45],             // over the bound of 300
            &[0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0],
            &[0x83, 0x00], // reserved kinds
            &[0x8b, 0x00],
        ] {
            assert!(read(Peer::Server, bytes).is_err(), "{bytes:x?}");
        }
        assert!(read(Peer::Client, &[0x82, 0x00]).is_err(), "a client that masks nothing");
        // The bound is of the message, not of each frame.
        let piece = |first: u8| [&[first, 126, 0, 200][..], &[7; 200]].concat();
        assert!(read(Peer::Server, &[piece(0x02), piece(0x80)].concat()).is_err());
    }

    proptest! {
        #[test]
        fn messages_come_back_wherever_they_are_cut(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..4),
            mask: Option<[u8; 4]>,
            step in 1_usize..50,
        ) {
            let peer = if mask.is_some() { Peer::Client } else { Peer::Server };
            let frame = |message: &Vec<u8>| encode(Opcode::Binary, message, mask).to_vec();
            let wire: Vec<u8> = messages.iter().flat_map(frame).collect();
            let mut reader = Reader::new(peer, 300);
            let mut all = Vec::new();
            for piece in wire.chunks(step) {
                reader.receive(piece);
                while let Some(event) = reader.decode()? {
                    all.push(event);
                }
            }
            let message = |it: Vec<u8>| Event::Message(it.into());
            let expected: Vec<_> = messages.into_iter().map(message).collect();
            prop_assert_eq!(all, expected);
            prop_assert_eq!(reader.held_bytes(), 0);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            for peer in [Peer::Client, Peer::Server] {
                if let Ok(events) = read(peer, &bytes) {
                    for event in events {
                        let len = match event {
                            Event::Message(bytes) | Event::Ping(bytes) => bytes.len(),
                            Event::Close(_) => 0,
                        };
                        prop_assert!(len <= bytes.len().min(300));
                    }
                }
            }
        }
    }
}
