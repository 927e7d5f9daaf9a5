//! Messages of CoAP on slices (RFC 7252 §3), as far as a client of one call at a time needs them.

use crate::Error;
use crate::input::Input;
use crate::out::Out;

/// Types of messages (RFC 7252 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// To be acknowledged.
    Confirmable = 0,
    /// Not to be acknowledged.
    NonConfirmable = 1,
    /// Acknowledges a confirmable one.
    Acknowledgement = 2,
    /// Could not be processed.
    Reset = 3,
}

/// Numbers of options (RFC 7252 §5.10, RFC 7959 §6, RFC 9175 §6).
pub(super) mod option {
    pub(in crate::coap) const ETAG: u16 = 4;
    pub(in crate::coap) const URI_PATH: u16 = 11;
    pub(in crate::coap) const CONTENT_FORMAT: u16 = 12;
    pub(in crate::coap) const ACCEPT: u16 = 17;
    pub(in crate::coap) const BLOCK2: u16 = 23;
    pub(in crate::coap) const BLOCK1: u16 = 27;
    pub(in crate::coap) const PROXY_URI: u16 = 35;
    pub(in crate::coap) const ECHO: u16 = 252;
}

/// The only version, in the first byte.
const VERSION: u8 = 1 << 6;
/// Between options and payload.
const MARKER: u8 = 0xff;
/// Longest token.
const MAX_TOKEN_BYTES: u8 = 8;

/// A message on a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The type.
    pub kind: Kind,
    /// The code: three bits of class and five of detail.
    pub code: u8,
    /// The message id.
    pub mid: u16,
    /// The token.
    pub token: &'a [u8],
    /// The options, each checked.
    pub options: Options<'a>,
    /// What follows the marker; empty without one.
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads a whole datagram.
    ///
    /// # Errors
    /// [`Error::Truncated`] and [`Error::Malformed`].
    pub fn decode(datagram: &'a [u8]) -> Result<Self, Error> {
        let mut input = Input::new(datagram);
        let first = input.byte()?;
        let code = input.byte()?;
        let mid = u16::from_be_bytes([input.byte()?, input.byte()?]);
        let token_len = first & 0x0f;
        if first & 0xc0 != VERSION || token_len > MAX_TOKEN_BYTES {
            return Err(Error::Malformed);
        }
        let kind = match first >> 4 & 3 {
            0 => Kind::Confirmable,
            1 => Kind::NonConfirmable,
            2 => Kind::Acknowledgement,
            _ => Kind::Reset,
        };
        let token = input.bytes(usize::from(token_len))?;
        let options = Options { rest: input, number: 0 };
        let mut behind = options;
        while behind.advance()?.is_some() {}
        let mut rest = behind.rest;
        // RFC 7252 §4.1: an empty message is its header alone.
        if code == 0 && datagram.len() > 4 {
            return Err(Error::Malformed);
        }
        if !rest.is_empty() {
            rest.byte()?;
            if rest.is_empty() {
                return Err(Error::Malformed);
            }
        }
        Ok(Self { kind, code, mid, token, options, payload: rest.rest() })
    }
}

/// The options of a message, in order: each number with its value.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    rest: Input<'a>,
    number: u16,
}

impl PartialEq for Options<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number && self.rest.rest() == other.rest.rest()
    }
}

impl Eq for Options<'_> {}

impl<'a> Options<'a> {
    fn advance(&mut self) -> Result<Option<(u16, &'a [u8])>, Error> {
        match self.rest.peek() {
            None | Some(MARKER) => return Ok(None),
            Some(_) => {}
        }
        let mut rest = self.rest;
        let first = rest.byte()?;
        let delta = extended(first >> 4, &mut rest)?;
        let len = extended(first & 0x0f, &mut rest)?;
        let number = u32::from(self.number) + delta;
        let number = u16::try_from(number).map_err(|_| Error::Malformed)?;
        let value = rest.bytes(usize::try_from(len).map_err(|_| Error::Malformed)?)?;
        (self.rest, self.number) = (rest, number);
        Ok(Some((number, value)))
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        // What was checked once has no error.
        self.advance().ok().flatten()
    }
}

/// A delta or a length (RFC 7252 §3.1).
fn extended(nibble: u8, rest: &mut Input<'_>) -> Result<u32, Error> {
    match nibble {
        13 => Ok(13 + u32::from(rest.byte()?)),
        14 => Ok(269 + u32::from(u16::from_be_bytes([rest.byte()?, rest.byte()?]))),
        15 => Err(Error::Malformed),
        _ => Ok(u32::from(nibble)),
    }
}

/// A number in as many bytes as it needs (RFC 7252 §3.2); `None` over four of them.
pub(super) fn uint(value: &[u8]) -> Option<u32> {
    (value.len() <= 4).then(|| value.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// Writes a message into a slice, options in the order of their numbers.
pub(super) struct Writer<'a> {
    out: Out<'a>,
    number: u16,
}

impl<'a> Writer<'a> {
    /// Begins a message.
    pub(super) fn new(
        room: &'a mut [u8],
        kind: Kind,
        code: u8,
        mid: u16,
        token: &[u8],
    ) -> Result<Self, Error> {
        let mut out = Out::new(room);
        let [high, low] = mid.to_be_bytes();
        let token_len = token.len().to_le_bytes()[0] & 0x0f;
        out.put(&[VERSION | (kind as u8) << 4 | token_len, code, high, low])?;
        out.put(token)?;
        Ok(Self { out, number: 0 })
    }

    /// An option, whose number is not below that of the one before.
    pub(super) fn option(&mut self, number: u16, value: &[u8]) -> Result<(), Error> {
        let (delta, delta_more, delta_len) = nibble(usize::from(number - self.number))?;
        let (len, len_more, len_len) = nibble(value.len())?;
        self.number = number;
        self.out.byte(delta << 4 | len)?;
        self.out.put(delta_more.get(2 - delta_len..).unwrap_or_default())?;
        self.out.put(len_more.get(2 - len_len..).unwrap_or_default())?;
        self.out.put(value)
    }

    /// An option that is a number.
    pub(super) fn uint(&mut self, number: u16, value: u32) -> Result<(), Error> {
        let bytes = value.to_be_bytes();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        self.option(number, bytes.get(zeros..).unwrap_or_default())
    }

    /// The end of the message, with its payload; returns the length.
    pub(super) fn payload(mut self, payload: &[u8]) -> Result<usize, Error> {
        if !payload.is_empty() {
            self.out.byte(MARKER)?;
            self.out.put(payload)?;
        }
        Ok(self.out.len())
    }
}

/// A delta or a length as nibble and the last bytes of two.
fn nibble(value: usize) -> Result<(u8, [u8; 2], usize), Error> {
    let bytes = |above: usize| u16::try_from(above).map(u16::to_be_bytes);
    let more = |nibble, above: usize, len| {
        bytes(above).map(|bytes| (nibble, bytes, len)).map_err(|_| Error::Misuse)
    };
    match value {
        0..13 => Ok((value.to_le_bytes()[0], [0; 2], 0)),
        13..269 => more(13, value - 13, 1),
        _ => more(14, value - 269, 2),
    }
}
