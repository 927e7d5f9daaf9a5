//! Byte layout of sealed datagrams. Numbers are big-endian.
//!
//! | type | | behind it |
//! | --- | --- | --- |
//! | 0x04 | FIRST | first message, number, sealed |
//! | 0x05 | FIRST | token, first message, number, sealed |
//! | 0x06 | DATA | connection, number, sealed |
//! | 0x07 | ANSWER | second message, number, sealed |
//! | 0x08 | REPLY | number, sealed |
//! | 0x09 | RETRY | the beginning of the first message that it is about, token |
//! | 0x0a | RESET | the reset token of the connection |
//!
//! What is before the sealed part goes into its authentication. The contents of the first message
//! are [`Said`]; those of the second are [`Granted`].

use bytes::Bytes;

use crate::Error;

/// What authenticates sealed bytes (RFC 8439 §2.8).
pub const TAG_BYTES: usize = 16;
/// A token of [`Packet::Retry`].
pub const TOKEN_BYTES: usize = 17;
/// A key of X25519.
const KEY_BYTES: usize = 32;
/// The first message: an ephemeral key, the sealed key of who dials, and what it says, sealed.
pub const FIRST_MESSAGE_BYTES: usize = KEY_BYTES + (KEY_BYTES + TAG_BYTES) + SAID_BYTES + TAG_BYTES;
/// The second: an ephemeral key, and what is granted, sealed.
pub const SECOND_MESSAGE_BYTES: usize = KEY_BYTES + GRANTED_BYTES + TAG_BYTES;
/// How a connection is named.
pub const CONNECTION_BYTES: usize = 4;
/// What shows that a connection is known no longer.
pub const RESET_BYTES: usize = 16;
const GRANTED_BYTES: usize = CONNECTION_BYTES + RESET_BYTES;
const NUMBER_BYTES: usize = 3;
const SAID_BYTES: usize = 9;
/// So much of a first message tells it from others.
const BEGINNING_BYTES: usize = 8;

// A port may be QUIC's too, and STUN's, DTLS' or RTP's: these are of nobody (RFC 9443 §3).
const FIRST: u8 = 0x04;
const FIRST_WITH_TOKEN: u8 = 0x05;
const DATA: u8 = 0x06;
const ANSWER: u8 = 0x07;
const REPLY: u8 = 0x08;
const RETRY: u8 = 0x09;
const RESET: u8 = 0x0a;
const CHALLENGE: u8 = 0x01;
const RESPONSE: u8 = 0x02;
/// What all of it is, where it cannot be read.
const WHAT: &str = "a sealed datagram";

/// What who dials says of itself in the first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    /// Version of this protocol; the only one is 1.
    pub version: u8,
    /// Its clock, in microseconds since 1970: later with each first message that it makes.
    pub at_us: u64,
}

impl Said {
    /// The version that is spoken here.
    pub const VERSION: u8 = 1;

    /// As it is sent.
    #[must_use]
    pub fn encode(self) -> [u8; SAID_BYTES] {
        let mut out = [self.version; SAID_BYTES];
        out[1..].copy_from_slice(&self.at_us.to_be_bytes());
        out
    }

    /// Reads it.
    ///
    /// # Errors
    /// Another length or version.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let [version, at_us @ ..] = bytes else { return Err(Error::Truncated { what: WHAT }) };
        if *version != Self::VERSION {
            let (value, limit) = (u64::from(*version), u64::from(Self::VERSION));
            return Err(Error::Limit { what: "the version of sealed datagrams", value, limit });
        }
        let at_us = at_us.try_into().map_err(|_| Error::Truncated { what: WHAT })?;
        Ok(Self { version: *version, at_us: u64::from_be_bytes(at_us) })
    }
}

/// What who is dialled says in the second message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// How later datagrams name the connection.
    pub connection: [u8; CONNECTION_BYTES],
    /// Who sends this was dialled, and knows the connection no longer (as RFC 9000 §10.3 has it).
    pub reset: [u8; RESET_BYTES],
}

impl Granted {
    /// As it is sent.
    #[must_use]
    pub fn encode(self) -> [u8; GRANTED_BYTES] {
        let mut out = [0; GRANTED_BYTES];
        out[..CONNECTION_BYTES].copy_from_slice(&self.connection);
        out[CONNECTION_BYTES..].copy_from_slice(&self.reset);
        out
    }

    /// Reads it.
    ///
    /// # Errors
    /// Another length.
    pub fn decode(mut bytes: &[u8]) -> Result<Self, Error> {
        let granted = Self { connection: *take(&mut bytes)?, reset: *take(&mut bytes)? };
        match bytes.len() {
            0 => Ok(granted),
            more => Err(Error::Peer { what: "bytes behind a reset token", value: more as u64 }),
        }
    }
}

/// What is sealed in a datagram: one of the carrier's machine, none of which begins with 0, or a
/// word between the two ends.
///
/// | bytes | |
/// | --- | --- |
/// | none | the carrier closes |
/// | 0x00 0x01, 8 bytes | CHALLENGE: who receives this is to send it back (RFC 9000 §8.2) |
/// | 0x00 0x02, 8 bytes | RESPONSE |
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inside {
    /// For the machine.
    Datagram(Bytes),
    /// The carrier closes.
    Close,
    /// See above.
    Challenge([u8; 8]),
    /// See above.
    Response([u8; 8]),
}

impl Inside {
    /// As it is sealed.
    #[must_use]
    pub fn encode(self) -> Bytes {
        let word = |kind, content: [u8; 8]| [&[0, kind][..], &content].concat().into();
        match self {
            Self::Datagram(bytes) => bytes,
            Self::Close => Bytes::new(),
            Self::Challenge(content) => word(CHALLENGE, content),
            Self::Response(content) => word(RESPONSE, content),
        }
    }

    /// Reads what was sealed.
    ///
    /// # Errors
    /// A word that nobody knows, or of another length.
    pub fn decode(bytes: Bytes) -> Result<Self, Error> {
        let mut rest = match &bytes[..] {
            [] => return Ok(Self::Close),
            [0, rest @ ..] => rest,
            _ => return Ok(Self::Datagram(bytes)),
        };
        let [kind] = *take(&mut rest)?;
        let content = *take(&mut rest)?;
        match (kind, rest) {
            (CHALLENGE, []) => Ok(Self::Challenge(content)),
            (RESPONSE, []) => Ok(Self::Response(content)),
            _ => Err(Error::Peer { what: "an unknown word in a datagram", value: u64::from(kind) }),
        }
    }
}

/// Bytes before the sealed part, which are authenticated with it.
pub type HeadBytes = Vec<u8>;

/// A datagram as it is on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// From who dials, before the answer is here.
    First {
        /// What it was given, if it was.
        token: Option<&'a [u8; TOKEN_BYTES]>,
        /// The handshake's first message.
        message: &'a [u8; FIRST_MESSAGE_BYTES],
        /// The last 24 bits of the datagram's number.
        number: u32,
        /// What is sealed.
        sealed: &'a [u8],
    },
    /// From who dials, from then on.
    Data {
        /// As the second message has named it.
        connection: [u8; CONNECTION_BYTES],
        /// As above.
        number: u32,
        /// What is sealed.
        sealed: &'a [u8],
    },
    /// From who is dialled, before it has seen that the answer is there.
    Answer {
        /// The handshake's second message.
        message: &'a [u8; SECOND_MESSAGE_BYTES],
        /// As above.
        number: u32,
        /// What is sealed.
        sealed: &'a [u8],
    },
    /// From who is dialled, from then on.
    Reply {
        /// As above.
        number: u32,
        /// What is sealed.
        sealed: &'a [u8],
    },
    /// From who is dialled: begin again with this token.
    Retry {
        /// How the first message begins that it is about.
        beginning: &'a [u8; BEGINNING_BYTES],
        /// The token.
        token: &'a [u8; TOKEN_BYTES],
    },
    /// From who is dialled: the connection is known no longer.
    Reset {
        /// See [`Granted::reset`].
        token: &'a [u8; RESET_BYTES],
    },
}

impl<'a> Packet<'a> {
    /// Writes what is before the sealed part: all of it but for that.
    #[must_use]
    pub fn head(&self) -> HeadBytes {
        let mut out = Vec::new();
        match self {
            Self::First { token, message, number, .. } => {
                out.push(if token.is_some() { FIRST_WITH_TOKEN } else { FIRST });
                token.iter().for_each(|token| out.extend_from_slice(&token[..]));
                out.extend_from_slice(&message[..]);
                put_number(*number, &mut out);
            }
            Self::Data { connection, number, .. } => {
                out.push(DATA);
                out.extend_from_slice(connection);
                put_number(*number, &mut out);
            }
            Self::Answer { message, number, .. } => {
                out.push(ANSWER);
                out.extend_from_slice(&message[..]);
                put_number(*number, &mut out);
            }
            Self::Reply { number, .. } => {
                out.push(REPLY);
                put_number(*number, &mut out);
            }
            Self::Retry { beginning, token } => {
                out.push(RETRY);
                out.extend_from_slice(&beginning[..]);
                out.extend_from_slice(&token[..]);
            }
            Self::Reset { token } => {
                out.push(RESET);
                out.extend_from_slice(&token[..]);
            }
        }
        out
    }

    /// Reads a datagram: what it is, and how many of its bytes are before the sealed part.
    ///
    /// # Errors
    /// An unknown type, or less than belongs to it.
    pub fn decode(datagram: &'a [u8]) -> Result<(Self, usize), Error> {
        let (kind, mut rest) = datagram.split_first().ok_or(Error::Truncated { what: WHAT })?;
        let whole = datagram.len();
        let packet = match *kind {
            FIRST | FIRST_WITH_TOKEN => {
                let token = if *kind == FIRST { None } else { Some(take(&mut rest)?) };
                let message = take(&mut rest)?;
                Self::First { token, message, number: take_number(&mut rest)?, sealed: rest }
            }
            DATA => {
                let connection = *take(&mut rest)?;
                Self::Data { connection, number: take_number(&mut rest)?, sealed: rest }
            }
            ANSWER => {
                let message = take(&mut rest)?;
                Self::Answer { message, number: take_number(&mut rest)?, sealed: rest }
            }
            REPLY => Self::Reply { number: take_number(&mut rest)?, sealed: rest },
            RETRY | RESET => {
                let packet = match *kind {
                    RETRY => Self::Retry { beginning: take(&mut rest)?, token: take(&mut rest)? },
                    _ => Self::Reset { token: take(&mut rest)? },
                };
                if !rest.is_empty() {
                    let value = rest.len() as u64;
                    return Err(Error::Peer { what: "bytes behind a token", value });
                }
                return Ok((packet, whole));
            }
            kind => {
                let (what, value) = ("the type of a sealed datagram", u64::from(kind));
                return Err(Error::Peer { what, value });
            }
        };
        if rest.len() < TAG_BYTES {
            return Err(Error::Truncated { what: WHAT });
        }
        Ok((packet, whole - rest.len()))
    }
}

fn put_number(number: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_be_bytes()[1..]);
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Result<&'a [u8; N], Error> {
    let (first, behind) = rest.split_first_chunk().ok_or(Error::Truncated { what: WHAT })?;
    *rest = behind;
    Ok(first)
}

fn take_number(rest: &mut &[u8]) -> Result<u32, Error> {
    let [a, b, c]: [u8; NUMBER_BYTES] = *take(rest)?;
    Ok(u32::from_be_bytes([0, a, b, c]))
}
