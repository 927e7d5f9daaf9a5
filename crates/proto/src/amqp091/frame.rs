//! Frames (AMQP 0.9.1 §4.2.3) and the protocol header (AMQP 0.9.1 §4.2.2).

use super::content::ContentHeader;
use super::method::Method;
use crate::Error;

/// What a client begins with, and a server answers to what it does not speak.
pub const PROTOCOL_HEADER: [u8; 8] = *b"AMQP\x00\x00\x09\x01";
/// The least that everybody takes of a frame, in bytes (AMQP 0.9.1 §1.2).
pub const MIN_FRAME_BYTES: u32 = 4096;
/// Bytes of a frame before its payload and behind.
pub const OVERHEAD_BYTES: u32 = 8;
const HEAD_BYTES: usize = 7;
const FRAME_END: u8 = 0xce;
/// Bytes of the frame of a content header besides its properties.
const HEADER_BYTES: u64 = 20;

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A [`Method`].
    Method,
    /// A [`ContentHeader`].
    Header,
    /// A part of a message's body.
    Body,
    /// Nothing: a sign of life.
    Heartbeat,
}

impl FrameKind {
    fn number(self) -> u8 {
        match self {
            Self::Method => 1,
            Self::Header => 2,
            Self::Body => 3,
            Self::Heartbeat => 8,
        }
    }
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What it carries.
    pub kind: FrameKind,
    /// The channel; 0 is the connection itself.
    pub channel: u16,
    /// What is between head and end.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame that a stream begins with, and its bytes; `None` while it is incomplete.
    ///
    /// `max_frame_bytes` is what was agreed, with head and end: a longer frame is refused as soon
    /// as its length is known. After an error nothing on the stream means anything.
    pub fn decode(input: &'a [u8], max_frame_bytes: u32) -> Result<Option<(Self, usize)>, Error> {
        let Some((&first, _)) = input.split_first() else { return Ok(None) };
        let kind = match first {
            1 => FrameKind::Method,
            2 => FrameKind::Header,
            3 => FrameKind::Body,
            8 => FrameKind::Heartbeat,
            other => {
                return Err(Error::Peer { what: "type of an AMQP frame", value: other.into() });
            }
        };
        let Some((&[_, c1, c0, l3, l2, l1, l0], rest)) = input.split_first_chunk::<HEAD_BYTES>()
        else {
            return Ok(None);
        };
        let channel = u16::from_be_bytes([c1, c0]);
        let len = u32::from_be_bytes([l3, l2, l1, l0]);
        let (value, limit) = (u64::from(len) + u64::from(OVERHEAD_BYTES), max_frame_bytes.into());
        if value > limit {
            return Err(Error::Limit { what: "AMQP frame in bytes", value, limit });
        }
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let Some((payload, rest)) = rest.split_at_checked(len) else { return Ok(None) };
        let Some(&end) = rest.first() else { return Ok(None) };
        if end != FRAME_END {
            return Err(Error::Peer { what: "end of an AMQP frame", value: end.into() });
        }
        // AMQP 0.9.1 §4.2.7: signs of life are of the connection and empty.
        if kind == FrameKind::Heartbeat && (channel != 0 || len != 0) {
            return Err(Error::Peer { what: "channel of a heartbeat", value: channel.into() });
        }
        Ok(Some((Self { kind, channel, payload }, HEAD_BYTES + len + 1)))
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        frame(self.kind, self.channel, out, |out| {
            out.extend_from_slice(self.payload);
            Ok(())
        })
    }
}

/// Appends a frame whose payload `write` appends; after an error nothing has been.
fn frame(
    kind: FrameKind,
    channel: u16,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    let before = out.len();
    out.push(kind.number());
    out.extend(channel.to_be_bytes());
    out.extend([0; 4]);
    let written = write(out).and_then(|()| {
        let len = out.len().saturating_sub(before + HEAD_BYTES);
        u32::try_from(len).map_err(|_| Error::Caller { what: "a frame has at most 4 GiB" })
    });
    match written {
        Ok(len) => {
            if let Some(room) = out.get_mut(before + 3..before + HEAD_BYTES) {
                room.copy_from_slice(&len.to_be_bytes());
            }
            out.push(FRAME_END);
            Ok(())
        }
        Err(error) => {
            out.truncate(before);
            Err(error)
        }
    }
}

/// Appends the frame of a method.
pub fn encode_method(channel: u16, method: &Method<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    frame(FrameKind::Method, channel, out, |out| method.encode(out))
}

/// Appends the frames of a message's content, behind its method: a header and as many bodies as
/// `max_frame_bytes` makes of `body` (AMQP 0.9.1 §4.2.6.2), none if it is empty. Properties that do
/// not fit one frame are refused, and nothing is appended.
pub fn encode_content(
    channel: u16,
    properties: &[u8],
    body: &[u8],
    max_frame_bytes: u32,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let header = ContentHeader { body_bytes: body.len() as u64, properties };
    let (value, limit) = (properties.len() as u64 + HEADER_BYTES, max_frame_bytes.into());
    if value > limit {
        // AMQP 0.9.1 §4.2.6.1: a header is one frame.
        return Err(Error::Limit { what: "content header of AMQP in bytes", value, limit });
    }
    frame(FrameKind::Header, channel, out, |out| {
        header.encode(out);
        Ok(())
    })?;
    let room = max_frame_bytes.max(MIN_FRAME_BYTES) - OVERHEAD_BYTES;
    for payload in body.chunks(usize::try_from(room).unwrap_or(usize::MAX)) {
        Frame { kind: FrameKind::Body, channel, payload }.encode(out)?;
    }
    Ok(())
}

/// Appends a sign of life.
pub fn encode_heartbeat(out: &mut Vec<u8>) {
    out.extend([FrameKind::Heartbeat.number(), 0, 0, 0, 0, 0, 0, FRAME_END]);
}
