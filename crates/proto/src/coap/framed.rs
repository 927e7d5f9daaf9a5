//! Messages over reliable transports, and their signals (RFC 8323).
//!
//! Over TCP and TLS a message begins with its length; over WebSocket the frame has it. There is no
//! type and no message id, since the transport already delivers each message once.

use core::ops::Deref;

use super::packet::take_token;
use super::{Code, Message, Token};
use crate::Error;

/// Longest message that is sent to who has not announced more (RFC 8323 §5.3.1), in bytes.
pub const MAX_FIRST_MESSAGE_BYTES: u32 = 1152;
/// Longest head: one byte, four of length, code, token.
const MAX_HEAD_BYTES: usize = 14;
/// Nibbles that announce further bytes of length (RFC 8323 §3.2), and what is added to those.
const ONE_BYTE: u8 = 13;
const TWO_BYTES: u8 = 14;
const FOUR_BYTES: u8 = 15;
const ONE_BYTE_BASE: u64 = 13;
const TWO_BYTES_BASE: u64 = 269;
const FOUR_BYTES_BASE: u64 = 65_805;

/// Options of signals. Their numbers have a meaning by the code (RFC 8323 §5.2); the rules for
/// critical ones are the same.
pub mod signal {
    /// CSM: the longest message that the sender takes, in bytes (RFC 8323 §5.3.1).
    pub const MAX_MESSAGE_SIZE: u16 = 2;
    /// CSM: the sender can do block-wise transfers with BERT (RFC 8323 §5.3.2).
    pub const BLOCK_WISE_TRANSFER: u16 = 4;
    /// Ping, Pong: what came before has been processed (RFC 8323 §5.4.1).
    pub const CUSTODY: u16 = 2;
    /// Release: another address for the next connection, repeatable (RFC 8323 §5.5).
    pub const ALTERNATIVE_ADDRESS: u16 = 2;
    /// Release: seconds until the next connection is welcome (RFC 8323 §5.5).
    pub const HOLD_OFF: u16 = 4;
    /// Abort: the number of a CSM option that was not understood (RFC 8323 §5.6).
    pub const BAD_CSM_OPTION: u16 = 2;

    use super::super::Code;

    /// The critical options of a signal that are known: only those not in it are faults.
    #[must_use]
    pub fn known(code: Code) -> &'static [u16] {
        match code {
            Code::CSM => &[MAX_MESSAGE_SIZE, BLOCK_WISE_TRANSFER],
            Code::PING | Code::PONG => &[CUSTODY],
            Code::RELEASE => &[ALTERNATIVE_ADDRESS, HOLD_OFF],
            Code::ABORT => &[BAD_CSM_OPTION],
            _ => &[],
        }
    }
}

/// What a side has announced of itself (RFC 8323 §5.3). Later messages of it change only what
/// they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The longest message that it takes, in bytes.
    pub max_message_bytes: u32,
    /// Whether it can do block-wise transfers.
    pub is_block_wise: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self { max_message_bytes: MAX_FIRST_MESSAGE_BYTES, is_block_wise: false }
    }
}

impl Capabilities {
    /// Takes what a CSM says. The error has the number of a critical option that is not known; the
    /// answer is [`Code::ABORT`] with it (RFC 8323 §5.3).
    pub fn observe(&mut self, csm: &Message<'_>) -> Result<(), Error> {
        let known = signal::known(Code::CSM);
        let is_bad = |number: &u16| super::option::is_critical(*number) && !known.contains(number);
        if let Some(number) = csm.options.map(|(number, _)| number).find(is_bad) {
            return Err(Error::Peer { what: "unknown critical CSM option", value: number.into() });
        }
        if let Some(bytes) = csm.options.uint(signal::MAX_MESSAGE_SIZE) {
            self.max_message_bytes = bytes;
        }
        self.is_block_wise |= csm.options.first(signal::BLOCK_WISE_TRANSFER).is_some();
        Ok(())
    }

    /// Whether bodies may go in blocks of BERT (RFC 8323 §6): it can do block-wise transfers, and
    /// takes more than the usual message.
    #[must_use]
    pub fn is_bert(&self) -> bool {
        self.is_block_wise && self.max_message_bytes > MAX_FIRST_MESSAGE_BYTES
    }
}

/// The bytes before options and payload.
#[derive(Clone, Copy, Debug)]
pub struct HeadBytes {
    bytes: [u8; MAX_HEAD_BYTES],
    len: usize,
}

impl HeadBytes {
    fn put(&mut self, bytes: &[u8]) {
        if let Some(room) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            room.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }
}

impl Deref for HeadBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&self.bytes)
    }
}

/// The head of a message over TCP or TLS, before `body_bytes` of options, marker and payload as
/// [`super::Writer::body`] writes them (RFC 8323 §3.2).
#[must_use]
pub fn head(code: Code, token: &Token, body_bytes: u32) -> HeadBytes {
    let mut head = HeadBytes { bytes: [0; MAX_HEAD_BYTES], len: 0 };
    let body = u64::from(body_bytes);
    let token = token.as_slice();
    let token_nibble = u8::try_from(token.len()).unwrap_or(0);
    let (nibble, base, count) = match body {
        0..ONE_BYTE_BASE => (u8::try_from(body).unwrap_or(0), 0, 0),
        ONE_BYTE_BASE..TWO_BYTES_BASE => (ONE_BYTE, ONE_BYTE_BASE, 1),
        TWO_BYTES_BASE..FOUR_BYTES_BASE => (TWO_BYTES, TWO_BYTES_BASE, 2),
        _ => (FOUR_BYTES, FOUR_BYTES_BASE, 4),
    };
    head.put(&[nibble << 4 | token_nibble]);
    let above = (body - base).to_be_bytes();
    head.put(above.get(above.len() - count..).unwrap_or_default());
    head.put(&[code.0]);
    head.put(token);
    head
}

/// The same for WebSocket, where the length is always 0 (RFC 8323 §4.2).
#[must_use]
pub fn head_of_websocket(code: Code, token: &Token) -> HeadBytes {
    head(code, token, 0)
}

/// The message that a stream begins with, and its bytes; `None` while it is incomplete.
///
/// `max_message_bytes` is what this side has announced: a longer message is refused as soon as its
/// length is known. After an error nothing on the stream means anything (RFC 8323 §5.6).
pub fn decode(input: &[u8], max_message_bytes: u32) -> Result<Option<(Message<'_>, usize)>, Error> {
    let Some((&first, rest)) = input.split_first() else { return Ok(None) };
    let (base, count) = match first >> 4 {
        ONE_BYTE => (ONE_BYTE_BASE, 1),
        TWO_BYTES => (TWO_BYTES_BASE, 2),
        FOUR_BYTES => (FOUR_BYTES_BASE, 4),
        nibble => (nibble.into(), 0),
    };
    let Some((more, rest)) = rest.split_at_checked(count) else { return Ok(None) };
    let body = more.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)) + base;
    let token_bytes = first & 0xf;
    // RFC 8323 §5.3.1: the limit is of the whole message.
    let value = body + 2 + count as u64 + u64::from(token_bytes);
    let limit = u64::from(max_message_bytes);
    if value > limit {
        return Err(Error::Limit { what: "message in bytes", value, limit });
    }
    if token_bytes > 8 {
        return Err(Error::Peer { what: "reserved token length", value: token_bytes.into() });
    }
    let len = usize::try_from(value).unwrap_or(usize::MAX);
    let Some(message) = input.get(..len) else { return Ok(None) };
    let Some((&code, rest)) = rest.split_first() else { return Ok(None) };
    let body_end = rest.len() - (input.len() - message.len());
    let (token, body) = take_token(token_bytes, rest.get(..body_end).unwrap_or_default())?;
    Ok(Some((checked(code, token, body)?, len)))
}

/// The message of a binary frame of WebSocket (RFC 8323 §4.2).
pub fn decode_websocket(frame: &[u8]) -> Result<Message<'_>, Error> {
    let truncated = Error::Truncated { what: "a CoAP header" };
    let (&[first, code], rest) = frame.split_first_chunk().ok_or(truncated)?;
    if first >> 4 != 0 {
        return Err(Error::Peer {
            what: "length in a WebSocket frame",
            value: (first >> 4).into(),
        });
    }
    let (token, body) = take_token(first & 0xf, rest)?;
    checked(code, token, body)
}

fn checked(code: u8, token: Token, body: &[u8]) -> Result<Message<'_>, Error> {
    let message = Message::take(Code(code), token, body)?;
    // RFC 8323 §3.4: an empty message carries nothing and is ignored, but it has no body.
    if message.code == Code::EMPTY && !body.is_empty() {
        return Err(Error::Peer { what: "bytes in an empty message", value: body.len() as u64 });
    }
    Ok(message)
}
