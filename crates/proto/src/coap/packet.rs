//! Messages on slices: header, token, options, payload (RFC 7252 §3).

use core::fmt;

use super::Code;
use crate::Error;

/// Longest token in bytes (RFC 7252 §3).
pub const MAX_TOKEN_BYTES: usize = 8;
/// Between options and payload.
const PAYLOAD_MARKER: u8 = 0xff;
/// Bytes of the header before the token.
const HEADER_BYTES: usize = 4;
/// The only version (RFC 7252 §3).
const VERSION: u8 = 1;
/// Greatest nibble that is the value itself; 13 and 14 announce one and two bytes, 15 is reserved.
const ONE_BYTE: u8 = 13;
const TWO_BYTES: u8 = 14;
/// What is added to the one and to the two bytes.
const ONE_BYTE_BASE: usize = 13;
const TWO_BYTES_BASE: usize = 269;
/// Longest value that an option's length can say.
const MAX_VALUE_BYTES: usize = TWO_BYTES_BASE + 0xffff;

/// Types of messages (RFC 7252 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// It is to be acknowledged.
    Confirmable = 0,
    /// It is not.
    NonConfirmable = 1,
    /// A confirmable one arrived.
    Acknowledgement = 2,
    /// A message could not be processed.
    Reset = 3,
}

const KINDS: [Kind; 4] =
    [Kind::Confirmable, Kind::NonConfirmable, Kind::Acknowledgement, Kind::Reset];

/// What matches a response with its request: 0 to 8 bytes (RFC 7252 §5.3.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Token {
    bytes: [u8; MAX_TOKEN_BYTES],
    len: u8,
}

impl Token {
    /// The token without bytes.
    pub const EMPTY: Self = Self { bytes: [0; MAX_TOKEN_BYTES], len: 0 };

    /// Refuses more than 8 bytes.
    pub fn new(token: &[u8]) -> Result<Self, Error> {
        let limit = MAX_TOKEN_BYTES as u64;
        let len = token.len() as u64;
        let what = "token in bytes";
        let mut bytes = [0; MAX_TOKEN_BYTES];
        let room = bytes.get_mut(..token.len()).ok_or(Error::Limit { what, value: len, limit })?;
        room.copy_from_slice(token);
        Ok(Self { bytes, len: u8::try_from(token.len()).unwrap_or(0) })
    }

    /// Its bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }
}

impl From<[u8; MAX_TOKEN_BYTES]> for Token {
    fn from(bytes: [u8; MAX_TOKEN_BYTES]) -> Self {
        Self { bytes, len: 8 }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.as_slice().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What stands before the options of a message over datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The type.
    pub kind: Kind,
    /// The code.
    pub code: Code,
    /// The message id, by which duplicates and acknowledgements are known (RFC 7252 §4.4).
    pub mid: u16,
    /// The token.
    pub token: Token,
}

/// What every transport carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The code.
    pub code: Code,
    /// The token.
    pub token: Token,
    /// The options, each checked.
    pub options: Options<'a>,
    /// What follows the payload marker; empty without one.
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads options and payload, which is all of `rest`.
    pub(super) fn take(code: Code, token: Token, rest: &'a [u8]) -> Result<Self, Error> {
        let mut cursor = Cursor { rest, number: 0 };
        while cursor.next()?.is_some() {}
        let end = rest.len() - cursor.rest.len();
        let options = Options { rest: rest.get(..end).unwrap_or_default(), number: 0 };
        let payload = match cursor.rest.split_first() {
            None => cursor.rest,
            // RFC 7252 §3: a marker without payload is a format error.
            Some((_, [])) => return Err(Error::Truncated { what: "a payload after its marker" }),
            Some((_, payload)) => payload,
        };
        Ok(Self { code, token, options, payload })
    }
}

/// A message over UDP or DTLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The type.
    pub kind: Kind,
    /// The message id.
    pub mid: u16,
    /// The rest.
    pub message: Message<'a>,
}

impl<'a> Datagram<'a> {
    /// Reads a whole datagram. Whatever breaks the format is an error; what to do then, silence or
    /// a reset, depends on [`Datagram::peek`] (RFC 7252 §4.2, §4.3).
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        let truncated = Error::Truncated { what: "a CoAP header" };
        let (head, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(truncated)?;
        let [first, code, high, low] = *head;
        if first >> 6 != VERSION {
            return Err(Error::Peer { what: "CoAP version", value: u64::from(first >> 6) });
        }
        let (token, rest) = take_token(first & 0xf, rest)?;
        let code = Code(code);
        // RFC 7252 §4.1: nothing follows the message id of an empty message.
        if code == Code::EMPTY && bytes.len() > HEADER_BYTES {
            return Err(Error::Peer { what: "bytes in an empty message", value: first.into() });
        }
        let message = Message::take(code, token, rest)?;
        let kind = kind_of(first);
        Ok(Self { kind, mid: u16::from_be_bytes([high, low]), message })
    }

    /// The type and the message id of what may be no well-formed message; `None` where it is no
    /// message of this version at all, to which nobody answers (RFC 7252 §3).
    #[must_use]
    pub fn peek(bytes: &[u8]) -> Option<(Kind, u16)> {
        let [first, _, high, low] = *bytes.first_chunk::<HEADER_BYTES>()?;
        (first >> 6 == VERSION).then(|| (kind_of(first), u16::from_be_bytes([high, low])))
    }
}

fn kind_of(first: u8) -> Kind {
    KINDS[usize::from(first >> 4 & 3)]
}

/// The token of the length that a header says, and what follows it.
pub(super) fn take_token(len: u8, bytes: &[u8]) -> Result<(Token, &[u8]), Error> {
    // RFC 7252 §3: 9 to 15 are reserved.
    if usize::from(len) > MAX_TOKEN_BYTES {
        return Err(Error::Peer { what: "reserved token length", value: len.into() });
    }
    let what = "a token";
    let (token, rest) =
        bytes.split_at_checked(usize::from(len)).ok_or(Error::Truncated { what })?;
    Ok((Token::new(token)?, rest))
}

/// Where in the options a reader is.
struct Cursor<'a> {
    rest: &'a [u8],
    number: u16,
}

impl<'a> Cursor<'a> {
    /// The next option; `None` at the end or before a payload marker, which stays.
    fn next(&mut self) -> Result<Option<(u16, &'a [u8])>, Error> {
        let Some((&first, rest)) = self.rest.split_first() else { return Ok(None) };
        if first == PAYLOAD_MARKER {
            return Ok(None);
        }
        let (delta, rest) = extended(first >> 4, rest)?;
        let (len, rest) = extended(first & 0xf, rest)?;
        let number = usize::from(self.number) + delta;
        let what = "option number";
        let number =
            u16::try_from(number).map_err(|_| Error::Peer { what, value: number as u64 })?;
        let what = "an option's value";
        let (value, rest) = rest.split_at_checked(len).ok_or(Error::Truncated { what })?;
        (self.rest, self.number) = (rest, number);
        Ok(Some((number, value)))
    }
}

/// A delta or a length (RFC 7252 §3.1).
fn extended(nibble: u8, bytes: &[u8]) -> Result<(usize, &[u8]), Error> {
    let truncated = Error::Truncated { what: "an option's extended delta or length" };
    match nibble {
        ONE_BYTE => {
            let (byte, rest) = bytes.split_first().ok_or(truncated)?;
            Ok((usize::from(*byte) + ONE_BYTE_BASE, rest))
        }
        TWO_BYTES => {
            let (two, rest) = bytes.split_first_chunk::<2>().ok_or(truncated)?;
            Ok((usize::from(u16::from_be_bytes(*two)) + TWO_BYTES_BASE, rest))
        }
        0..ONE_BYTE => Ok((usize::from(nibble), bytes)),
        _ => Err(Error::Peer { what: "reserved option delta or length", value: nibble.into() }),
    }
}

/// The options of a message, in order: each number with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Options<'a> {
    rest: &'a [u8],
    number: u16,
}

impl<'a> Options<'a> {
    /// The value of the first option with this number.
    #[must_use]
    pub fn first(self, number: u16) -> Option<&'a [u8]> {
        self.all(number).next()
    }

    /// The values of all options with this number.
    pub fn all(self, number: u16) -> impl Iterator<Item = &'a [u8]> {
        self.filter(move |(other, _)| *other == number).map(|(_, value)| value)
    }

    /// The first option with this number as a number in network order; `None` also where the value
    /// has more than four bytes.
    #[must_use]
    pub fn uint(self, number: u16) -> Option<u32> {
        self.first(number).and_then(super::option::uint)
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let mut cursor = Cursor { rest: self.rest, number: self.number };
        // What was checked once has no error.
        let next = cursor.next().ok().flatten();
        (self.rest, self.number) = (cursor.rest, cursor.number);
        next
    }
}

/// The shortest bytes of a number (RFC 7252 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uint([u8; 4]);

impl Uint {
    /// The bytes of `value`.
    #[must_use]
    pub fn new(value: u32) -> Self {
        Self(value.to_be_bytes())
    }

    /// Without leading zeros; empty for 0.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        let zeros = self.0.iter().take_while(|byte| **byte == 0).count();
        self.0.get(zeros..).unwrap_or_default()
    }
}

/// Writes a message, or what follows a token, into a slice of the caller's.
///
/// Options come in the order of their numbers and before the payload. What does not fit is counted
/// all the same, so that [`Writer::finish`] can say how much room is needed.
#[derive(Debug)]
pub struct Writer<'a> {
    room: &'a mut [u8],
    len: usize,
    number: u16,
    has_payload: bool,
}

impl<'a> Writer<'a> {
    /// A message over UDP or DTLS.
    pub fn new(room: &'a mut [u8], header: &Header) -> Self {
        let mut writer = Self::body(room);
        let token = header.token.as_slice();
        let first = VERSION << 6 | (header.kind as u8) << 4 | header.token.len;
        let [high, low] = header.mid.to_be_bytes();
        writer.put(&[first, header.code.0, high, low]);
        writer.put(token);
        writer
    }

    /// Only options and payload: what follows the head of [`super::framed`].
    pub fn body(room: &'a mut [u8]) -> Self {
        Self { room, len: 0, number: 0, has_payload: false }
    }

    fn put(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        if let Some(room) = self.room.get_mut(self.len..end) {
            room.copy_from_slice(bytes);
        }
        self.len = end;
    }

    /// An option. Refuses one whose number is below that of the one before, one behind the
    /// payload, and a value that no length can say.
    pub fn option(&mut self, number: u16, value: &[u8]) -> Result<(), Error> {
        let what = match number.checked_sub(self.number) {
            _ if self.has_payload => "an option behind the payload",
            _ if value.len() > MAX_VALUE_BYTES => "an option's value over 65,804 bytes",
            None => "options out of order",
            Some(delta) => {
                let (delta, delta_more) = nibble(delta.into());
                let (len, len_more) = nibble(value.len());
                self.put(&[delta << 4 | len]);
                self.put(delta_more.as_slice());
                self.put(len_more.as_slice());
                self.put(value);
                self.number = number;
                return Ok(());
            }
        };
        Err(Error::Caller { what })
    }

    /// An option that is a number.
    pub fn uint(&mut self, number: u16, value: u32) -> Result<(), Error> {
        self.option(number, Uint::new(value).as_slice())
    }

    /// The payload, after which nothing comes. An empty one writes nothing (RFC 7252 §3).
    pub fn payload(&mut self, payload: &[u8]) -> Result<(), Error> {
        if self.has_payload {
            return Err(Error::Caller { what: "a second payload" });
        }
        if !payload.is_empty() {
            self.put(&[PAYLOAD_MARKER]);
            self.put(payload);
        }
        self.has_payload = true;
        Ok(())
    }

    /// Bytes of what was written, or would have been.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The length, if it fit; the error has the length that is needed.
    pub fn finish(self) -> Result<usize, Error> {
        if self.len > self.room.len() {
            let (value, limit) = (self.len as u64, self.room.len() as u64);
            return Err(Error::Limit { what: "encoded message in bytes", value, limit });
        }
        Ok(self.len)
    }
}

/// Bytes behind a nibble.
struct More([u8; 2], usize);

impl More {
    fn as_slice(&self) -> &[u8] {
        self.0.get(2 - self.1..).unwrap_or_default()
    }
}

/// A delta or a length as nibble and further bytes; `value` is at most `MAX_VALUE_BYTES`.
fn nibble(value: usize) -> (u8, More) {
    let bytes = |above: usize| u16::try_from(above).unwrap_or(u16::MAX).to_be_bytes();
    match value.checked_sub(TWO_BYTES_BASE) {
        Some(above) => (TWO_BYTES, More(bytes(above), 2)),
        None => match value.checked_sub(ONE_BYTE_BASE) {
            Some(above) => (ONE_BYTE, More(bytes(above), 1)),
            None => (u8::try_from(value).unwrap_or(0), More([0; 2], 0)),
        },
    }
}
