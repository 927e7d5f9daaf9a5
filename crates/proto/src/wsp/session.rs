//! PDUs that open and close a session (WAP-230 §8.2.2), and its capabilities (§8.3).
//!
//! Only `core` is used here and nothing is allocated.

use super::packet::pdu_type;
use super::reader::{Reader, Writer, uintvar};
use crate::Error;

/// The version of the protocol, 1.0: the major part in the upper four bits.
pub const VERSION: u8 = 0x10;

/// A PDU of a session's beginning or end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionPdu<'a> {
    /// A client opens a session (§8.2.2.1).
    Connect {
        /// See [`VERSION`].
        version: u8,
        /// What it asks for: see [`Capabilities`].
        capabilities: &'a [u8],
        /// Headers of the session, without a content type.
        headers: &'a [u8],
    },
    /// A server has opened it (§8.2.2.2).
    ConnectReply {
        /// By which the server knows the session.
        session: u32,
        /// What it grants.
        capabilities: &'a [u8],
        /// Headers of the session, without a content type.
        headers: &'a [u8],
    },
    /// A server refuses a session and names others (§8.2.2.3).
    Redirect {
        /// The highest bit: for good; the next: the security session may be used again.
        flags: u8,
        /// Addresses, as bearers write them.
        addresses: &'a [u8],
    },
    /// The session ends (§8.2.2.4).
    Disconnect {
        /// As in [`SessionPdu::ConnectReply`].
        session: u32,
    },
    /// The session rests (§8.2.5.1).
    Suspend {
        /// As in [`SessionPdu::ConnectReply`].
        session: u32,
    },
    /// The session goes on, perhaps from another address (§8.2.5.2).
    Resume {
        /// As in [`SessionPdu::ConnectReply`].
        session: u32,
        /// What the client asks for.
        capabilities: &'a [u8],
        /// Headers of the session, without a content type.
        headers: &'a [u8],
    },
    /// A push that the client has to confirm (§8.2.4.2). It is read to be refused.
    ConfirmedPush {
        /// The content type and the headers behind it.
        headers: &'a [u8],
        /// The data.
        body: &'a [u8],
    },
}

impl<'a> SessionPdu<'a> {
    /// Reads a PDU, which stands in a transaction of WTP.
    ///
    /// # Errors
    /// A PDU that is cut off or of another type, and octets behind one that has an end.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let reader = &mut reader;
        let pdu = match reader.byte("the PDU type")? {
            pdu_type::CONNECT => {
                let version = reader.byte("the version")?;
                let (capabilities, headers) = lists(reader)?;
                Self::Connect { version, capabilities, headers }
            }
            pdu_type::CONNECT_REPLY => {
                let session = reader.uintvar("a session")?;
                let (capabilities, headers) = lists(reader)?;
                Self::ConnectReply { session, capabilities, headers }
            }
            pdu_type::REDIRECT => {
                let flags = reader.byte("the flags")?;
                return Ok(Self::Redirect { flags, addresses: reader.rest() });
            }
            pdu_type::DISCONNECT => Self::Disconnect { session: reader.uintvar("a session")? },
            pdu_type::SUSPEND => Self::Suspend { session: reader.uintvar("a session")? },
            pdu_type::RESUME => {
                let session = reader.uintvar("a session")?;
                let capabilities = reader.counted("capabilities")?;
                return Ok(Self::Resume { session, capabilities, headers: reader.rest() });
            }
            pdu_type::CONFIRMED_PUSH => {
                let headers = reader.counted("the headers of a push")?;
                return Ok(Self::ConfirmedPush { headers, body: reader.rest() });
            }
            other => return Err(Error::Peer { what: "no PDU of a session", value: other.into() }),
        };
        if !reader.is_empty() {
            let value = reader.rest().len() as u64;
            return Err(Error::Peer { what: "octets behind a PDU of a session", value });
        }
        Ok(pdu)
    }

    /// Writes the PDU to the begin of `room` and returns how many octets it has.
    ///
    /// # Errors
    /// [`Error::Limit`] with the octets needed as its value where there is less room, and
    /// [`Error::Caller`] for a confirmed push, which nobody here sends.
    pub fn encode(&self, room: &mut [u8]) -> Result<usize, Error> {
        let mut writer = Writer::new(room);
        match *self {
            Self::Connect { version, capabilities, headers } => {
                writer.put(&[pdu_type::CONNECT, version]);
                put_lists(&mut writer, capabilities, headers)?;
            }
            Self::ConnectReply { session, capabilities, headers } => {
                writer.put(&[pdu_type::CONNECT_REPLY]);
                writer.uintvar(session);
                put_lists(&mut writer, capabilities, headers)?;
            }
            Self::Redirect { flags, addresses } => {
                writer.put(&[pdu_type::REDIRECT, flags]);
                writer.put(addresses);
            }
            Self::Disconnect { session } => {
                writer.put(&[pdu_type::DISCONNECT]);
                writer.uintvar(session);
            }
            Self::Suspend { session } => {
                writer.put(&[pdu_type::SUSPEND]);
                writer.uintvar(session);
            }
            Self::Resume { session, capabilities, headers } => {
                writer.put(&[pdu_type::RESUME]);
                writer.uintvar(session);
                writer.len(capabilities.len())?;
                writer.put(capabilities);
                writer.put(headers);
            }
            Self::ConfirmedPush { .. } => {
                return Err(Error::Caller { what: "a confirmed push, which is not sent" });
            }
        }
        writer.finish("a PDU of a session in bytes")
    }
}

fn lists<'a>(reader: &mut Reader<'a>) -> Result<(&'a [u8], &'a [u8]), Error> {
    let capabilities_len = reader.len("the length of the capabilities")?;
    let headers_len = reader.len("the length of the headers")?;
    let capabilities = reader.bytes(capabilities_len, "capabilities")?;
    Ok((capabilities, reader.bytes(headers_len, "the headers of a session")?))
}

fn put_lists(writer: &mut Writer<'_>, capabilities: &[u8], headers: &[u8]) -> Result<(), Error> {
    writer.len(capabilities.len())?;
    writer.len(headers.len())?;
    writer.put(capabilities);
    writer.put(headers);
    Ok(())
}

/// Numbers of capabilities (table 37).
mod number {
    pub(super) const CLIENT_SDU: u8 = 0;
    pub(super) const SERVER_SDU: u8 = 1;
    pub(super) const OPTIONS: u8 = 2;
    pub(super) const METHOD_MOR: u8 = 3;
    pub(super) const PUSH_MOR: u8 = 4;
    pub(super) const CLIENT_MESSAGE: u8 = 8;
    pub(super) const SERVER_MESSAGE: u8 = 9;
}

/// One of a session's capabilities (§8.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability<'a> {
    /// Most octets of a PDU that the client takes; 0 is no bound.
    ClientSduBytes(u32),
    /// Most octets of a PDU that the server takes; 0 is no bound.
    ServerSduBytes(u32),
    /// Flags of what is used: confirmed pushes 0x80, pushes 0x40, suspending 0x20, data with
    /// acknowledgements 0x10, large data 0x08.
    Options(u8),
    /// Most methods that are open at once.
    MaxMethods(u8),
    /// Most confirmed pushes that are open at once.
    MaxPushes(u8),
    /// Most octets of a message that the client takes; 0 is no bound.
    ClientMessageBytes(u32),
    /// Most octets of a message that the server takes; 0 is no bound.
    ServerMessageBytes(u32),
    /// Any other, which is to be refused by its absence in the reply (§8.3.1): extended methods,
    /// code pages, aliases.
    Other {
        /// The identifier, of one octet with the high bit set or text with its terminator, and
        /// what follows it.
        octets: &'a [u8],
    },
}

impl Capability<'_> {
    fn write(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        let mut buffer = [0; 5];
        let (number, value): (u8, &[u8]) = match self {
            Self::ClientSduBytes(bytes) => (number::CLIENT_SDU, uintvar(*bytes, &mut buffer)),
            Self::ServerSduBytes(bytes) => (number::SERVER_SDU, uintvar(*bytes, &mut buffer)),
            Self::Options(flags) => (number::OPTIONS, core::slice::from_ref(flags)),
            Self::MaxMethods(most) => (number::METHOD_MOR, core::slice::from_ref(most)),
            Self::MaxPushes(most) => (number::PUSH_MOR, core::slice::from_ref(most)),
            Self::ClientMessageBytes(bytes) => {
                (number::CLIENT_MESSAGE, uintvar(*bytes, &mut buffer))
            }
            Self::ServerMessageBytes(bytes) => {
                (number::SERVER_MESSAGE, uintvar(*bytes, &mut buffer))
            }
            Self::Other { octets } => {
                writer.len(octets.len())?;
                writer.put(octets);
                return Ok(());
            }
        };
        writer.len(1 + value.len())?;
        writer.put(&[number | 0x80]);
        writer.put(value);
        Ok(())
    }
}

/// Writes capabilities to the begin of `room` and returns how many octets they have.
///
/// # Errors
/// [`Error::Limit`] with the octets needed as its value where there is less room.
pub fn encode_capabilities(all: &[Capability<'_>], room: &mut [u8]) -> Result<usize, Error> {
    let mut writer = Writer::new(room);
    all.iter().try_for_each(|capability| capability.write(&mut writer))?;
    writer.finish("capabilities in bytes")
}

/// Capabilities, as an iterator; behind an error there is nothing more.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities<'a> {
    reader: Reader<'a>,
}

impl<'a> Capabilities<'a> {
    /// Those in `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { reader: Reader::new(bytes) }
    }

    fn capability(&mut self) -> Result<Capability<'a>, Error> {
        let octets = self.reader.counted("a capability")?;
        let mut reader = Reader::new(octets);
        let first = reader.byte("the identifier of a capability")?;
        let capability = match first.wrapping_sub(0x80) {
            number::CLIENT_SDU => Capability::ClientSduBytes(reader.uintvar("a size")?),
            number::SERVER_SDU => Capability::ServerSduBytes(reader.uintvar("a size")?),
            number::OPTIONS => Capability::Options(reader.byte("options")?),
            number::METHOD_MOR => Capability::MaxMethods(reader.byte("a number of methods")?),
            number::PUSH_MOR => Capability::MaxPushes(reader.byte("a number of pushes")?),
            number::CLIENT_MESSAGE => Capability::ClientMessageBytes(reader.uintvar("a size")?),
            number::SERVER_MESSAGE => Capability::ServerMessageBytes(reader.uintvar("a size")?),
            _ => return Ok(Capability::Other { octets }),
        };
        // Options may get more octets some day (§8.3.2.3).
        if !reader.is_empty() && !matches!(capability, Capability::Options(_)) {
            return Err(Error::Peer { what: "octets behind a capability", value: first.into() });
        }
        Ok(capability)
    }
}

impl<'a> Iterator for Capabilities<'a> {
    type Item = Result<Capability<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let capability = self.capability();
        if capability.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(capability)
    }
}
