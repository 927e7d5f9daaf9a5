//! Protocol headers and frames (AMQP 1.0 Part 2 §2.2, §2.3).

use bytes::{Buf, Bytes, BytesMut};

use crate::Error;

/// Bytes of a protocol header, and of a frame's header without an extended one.
pub const HEADER_BYTES: usize = 8;
/// Every peer takes frames of so many bytes (AMQP 1.0 Part 2 §2.7.1, MIN-MAX-FRAME-SIZE).
pub const MIN_MAX_FRAME_BYTES: u32 = 512;

/// What a connection speaks from here on: the protocol id of a header of version 1.0.0
/// (AMQP 1.0 Part 2 §2.2, Part 5 §5.2.1, §5.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// AMQP itself.
    Amqp,
    /// TLS on this connection.
    Tls,
    /// A SASL layer.
    Sasl,
}

impl Protocol {
    /// The header.
    #[must_use]
    pub const fn header(self) -> [u8; HEADER_BYTES] {
        let id = match self {
            Self::Amqp => 0,
            Self::Tls => 2,
            Self::Sasl => 3,
        };
        [b'A', b'M', b'Q', b'P', id, 1, 0, 0]
    }

    /// Of a header; `None` for another protocol or version.
    #[must_use]
    pub fn of(header: [u8; HEADER_BYTES]) -> Option<Self> {
        [Self::Amqp, Self::Tls, Self::Sasl].into_iter().find(|it| it.header() == header)
    }
}

/// The type of a frame (AMQP 1.0 Part 2 §2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// With a performative (§2.3.2).
    Amqp,
    /// Of the SASL layer (Part 5 §5.3.1).
    Sasl,
}

/// One frame of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its type.
    pub kind: Kind,
    /// The channel; it means nothing in frames of SASL.
    pub channel: u16,
    /// A performative and its payload; nothing in a frame that only shows that somebody is there.
    pub body: Bytes,
}

/// Puts frames together from the bytes of a connection. After an error nothing means anything.
#[derive(Debug, Default)]
pub struct Reader {
    input: BytesMut,
}

impl Reader {
    /// Bytes came.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Bytes of what came and is not read.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.input.len()
    }

    /// A protocol header, where one is due; `None` while it is incomplete.
    pub fn header(&mut self) -> Option<[u8; HEADER_BYTES]> {
        let header = *self.input.first_chunk()?;
        self.input.advance(HEADER_BYTES);
        Some(header)
    }

    /// Whether what came can still become a protocol header of any version of AMQP.
    #[must_use]
    pub fn is_amqp(&self) -> bool {
        self.input.iter().zip(b"AMQP").all(|(byte, expected)| byte == expected)
    }

    /// The next frame of at most so many bytes; `None` while it is incomplete.
    pub fn frame(&mut self, max_bytes: u32) -> Result<Option<Frame>, Error> {
        let Some(header) = self.input.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let [a, b, c, d, data_offset, kind, channel @ ..] = *header;
        let size = u32::from_be_bytes([a, b, c, d]);
        if size > max_bytes {
            let (value, limit) = (size.into(), max_bytes.into());
            return Err(Error::Limit { what: "size of a frame in bytes", value, limit });
        }
        // AMQP 1.0 Part 2 §2.3.1: in units of four bytes, the eight of this header among them.
        let offset = usize::from(data_offset) * 4;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if offset < HEADER_BYTES || offset > size {
            return Err(Error::Peer { what: "data offset of a frame", value: data_offset.into() });
        }
        let kind = match kind {
            0 => Kind::Amqp,
            1 => Kind::Sasl,
            kind => return Err(Error::Peer { what: "type of a frame", value: kind.into() }),
        };
        if self.input.len() < size {
            return Ok(None);
        }
        let mut body = self.input.split_to(size).freeze();
        body.advance(offset);
        Ok(Some(Frame { kind, channel: u16::from_be_bytes(channel), body }))
    }
}

/// Appends a frame: `body` appends what is in it.
pub fn encode(out: &mut Vec<u8>, kind: Kind, channel: u16, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    let kind = if kind == Kind::Amqp { 0 } else { 1 };
    out.extend_from_slice(&[0, 0, 0, 0, 2, kind]);
    out.extend_from_slice(&channel.to_be_bytes());
    body(out);
    // What is written is made here, and never has 4 GiB.
    let size = u32::try_from(out.len() - start).unwrap_or(u32::MAX).to_be_bytes();
    if let Some(place) = out.get_mut(start..start + size.len()) {
        place.copy_from_slice(&size);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headers_are_those_of_the_standard() {
        assert_eq!(&Protocol::Amqp.header(), b"AMQP\x00\x01\x00\x00");
        assert_eq!(&Protocol::Tls.header(), b"AMQP\x02\x01\x00\x00");
        assert_eq!(&Protocol::Sasl.header(), b"AMQP\x03\x01\x00\x00");
        assert_eq!(Protocol::of(*b"AMQP\x03\x01\x00\x00"), Some(Protocol::Sasl));
        assert_eq!(Protocol::of(*b"AMQP\x00\x00\x09\x01"), None);
    }

    #[test]
    fn frames_that_break_the_rules_are_refused() {
        let read = |bytes: &[u8]| {
            let mut reader = Reader::default();
            reader.receive(bytes);
            reader.frame(512)
        };
        assert_eq!(read(&[0, 0, 0, 8, 2, 0, 0]), Ok(None));
        let empty = Frame { kind: Kind::Amqp, channel: 7, body: Bytes::new() };
        assert_eq!(read(&[0, 0, 0, 8, 2, 0, 0, 7]), Ok(Some(empty.clone())));
        // An extended header is passed over.
        assert_eq!(read(&[0, 0, 0, 12, 3, 0, 0, 7, 1, 2, 3, 4]), Ok(Some(empty)));
        for bytes in [
            [0, 0, 0, 7, 2, 0, 0, 0],
            [0, 0, 0, 8, 1, 0, 0, 0],
            [0, 0, 0, 8, 3, 0, 0, 0],
            [0, 0, 0, 8, 2, 2, 0, 0],
            [0, 0, 2, 1, 2, 0, 0, 0],
        ] {
            assert!(read(&bytes).is_err(), "{bytes:x?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn frames_come_back_wherever_they_are_cut(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..5),
            step in 1_usize..40,
        ) {
            let mut wire = Vec::new();
            for body in &bodies {
                encode(&mut wire, Kind::Amqp, 3, |out| out.extend_from_slice(body));
            }
            let mut reader = Reader::default();
            let mut all = Vec::new();
            for piece in wire.chunks(step) {
                reader.receive(piece);
                while let Some(frame) = reader.frame(512)? {
                    all.push(frame.body.to_vec());
                }
            }
            prop_assert_eq!(all, bodies);
            prop_assert_eq!(reader.held_bytes(), 0);
        }
    }
}
