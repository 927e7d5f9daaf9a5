//! PDUs of the connectionless service, and of methods and pushes in a session (WAP-230 §8.2).
//!
//! Only `core` is used here and nothing is allocated.

use super::reader::{Reader, Writer};
use crate::Error;

/// PDU types (WAP-230 table 34) that are no methods.
pub(super) mod pdu_type {
    pub(in crate::wsp) const CONNECT: u8 = 0x01;
    pub(in crate::wsp) const CONNECT_REPLY: u8 = 0x02;
    pub(in crate::wsp) const REDIRECT: u8 = 0x03;
    pub(in crate::wsp) const REPLY: u8 = 0x04;
    pub(in crate::wsp) const DISCONNECT: u8 = 0x05;
    pub(in crate::wsp) const PUSH: u8 = 0x06;
    pub(in crate::wsp) const CONFIRMED_PUSH: u8 = 0x07;
    pub(in crate::wsp) const SUSPEND: u8 = 0x08;
    pub(in crate::wsp) const RESUME: u8 = 0x09;
}

/// Methods that have a PDU type of their own (WAP-230 table 34).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Method {
    /// GET.
    Get = 0x40,
    /// OPTIONS.
    Options = 0x41,
    /// HEAD.
    Head = 0x42,
    /// DELETE.
    Delete = 0x43,
    /// TRACE.
    Trace = 0x44,
    /// POST.
    Post = 0x60,
    /// PUT.
    Put = 0x61,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Get, Self::Options, Self::Head, Self::Delete, Self::Trace, Self::Post, Self::Put];

    /// The method of a PDU type.
    #[must_use]
    pub fn of_type(pdu_type: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|method| *method as u8 == pdu_type)
    }

    /// The method of a name as HTTP has it, which knows case (RFC 9110 §9.1).
    #[must_use]
    pub fn of_name(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name().as_bytes() == name)
    }

    /// The name as HTTP has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Options => "OPTIONS",
            Self::Head => "HEAD",
            Self::Delete => "DELETE",
            Self::Trace => "TRACE",
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }

    /// Whether its PDU has the layout of Post (WAP-230 §8.2.3.2), with a content type and data.
    #[must_use]
    pub const fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put)
    }

    /// Whether a request may be carried out any number of times (RFC 9110 §9.2.1, safe).
    #[must_use]
    pub const fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Options | Self::Head | Self::Trace)
    }
}

/// A PDU behind its transaction id. What `headers` holds is read by [`super::headers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pdu<'a> {
    /// A request (WAP-230 §8.2.3.1, §8.2.3.2).
    Request {
        /// What is to be done.
        method: Method,
        /// The absolute URI.
        uri: &'a [u8],
        /// Of a method with a body, the content type stands before the headers.
        headers: &'a [u8],
        /// The data; empty where the method has no body.
        body: &'a [u8],
    },
    /// The answer to a request (WAP-230 §8.2.3.3).
    Reply {
        /// See [`super::status`].
        status: u8,
        /// The content type and the headers behind it.
        headers: &'a [u8],
        /// The data.
        body: &'a [u8],
    },
    /// What a server sends unasked (WAP-230 §8.2.4.1).
    Push {
        /// The content type and the headers behind it.
        headers: &'a [u8],
        /// The data.
        body: &'a [u8],
    },
}

impl<'a> Pdu<'a> {
    /// Reads a PDU that stands behind its transaction id, or in a transaction of WTP.
    ///
    /// # Errors
    /// A PDU that is cut off, lengths beyond it, or a type that is no method, reply or push. A
    /// confirmed push and an extended method need a session (WAP-230 §8.2.2, §8.2.4.2), and are
    /// refused too.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        match reader.byte("the PDU type")? {
            pdu_type::REPLY => {
                let status = reader.byte("the status")?;
                let headers = reader.counted("the headers of a reply")?;
                Ok(Self::Reply { status, headers, body: reader.rest() })
            }
            pdu_type::PUSH => {
                let headers = reader.counted("the headers of a push")?;
                Ok(Self::Push { headers, body: reader.rest() })
            }
            other => {
                let unknown = Error::Peer { what: "no PDU without a session", value: other.into() };
                let method = Method::of_type(other).ok_or(unknown)?;
                Self::request(method, reader)
            }
        }
    }

    fn request(method: Method, mut reader: Reader<'a>) -> Result<Self, Error> {
        let uri_len = reader.len("the length of the URI")?;
        if !method.has_body() {
            let uri = reader.bytes(uri_len, "the URI")?;
            return Ok(Self::Request { method, uri, headers: reader.rest(), body: &[] });
        }
        let headers_len = reader.len("the length of the headers")?;
        let uri = reader.bytes(uri_len, "the URI")?;
        let headers = reader.bytes(headers_len, "the headers of a request")?;
        Ok(Self::Request { method, uri, headers, body: reader.rest() })
    }

    /// Writes the PDU to the begin of `room` and returns how many octets it has.
    ///
    /// # Errors
    /// [`Error::Limit`] with the octets needed as its value where there is less room, and
    /// [`Error::Caller`] for a body of a method that has none.
    pub fn encode(&self, room: &mut [u8]) -> Result<usize, Error> {
        let mut writer = Writer::new(room);
        self.write(&mut writer)?;
        writer.finish("a PDU in bytes")
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        match *self {
            Self::Request { method, uri, headers, body } => {
                writer.put(&[method as u8]);
                writer.len(uri.len())?;
                if method.has_body() {
                    writer.len(headers.len())?;
                } else if !body.is_empty() {
                    return Err(Error::Caller { what: "a body with a method that has none" });
                }
                writer.put(uri);
                writer.put(headers);
                writer.put(body);
            }
            Self::Reply { status, headers, body } => {
                writer.put(&[pdu_type::REPLY, status]);
                writer.len(headers.len())?;
                writer.put(headers);
                writer.put(body);
            }
            Self::Push { headers, body } => {
                writer.put(&[pdu_type::PUSH]);
                writer.len(headers.len())?;
                writer.put(headers);
                writer.put(body);
            }
        }
        Ok(())
    }
}

/// Reads a datagram of the connectionless service: the transaction id and the PDU behind it
/// (WAP-230 §8.2.1).
///
/// # Errors
/// Those of [`Pdu::decode`].
pub fn decode(datagram: &[u8]) -> Result<(u8, Pdu<'_>), Error> {
    let (tid, pdu) =
        datagram.split_first().ok_or(Error::Truncated { what: "the transaction id" })?;
    Ok((*tid, Pdu::decode(pdu)?))
}

/// Writes a datagram of the connectionless service to the begin of `room` and returns how many
/// octets it has.
///
/// # Errors
/// Those of [`Pdu::encode`].
pub fn encode(tid: u8, pdu: &Pdu<'_>, room: &mut [u8]) -> Result<usize, Error> {
    let mut writer = Writer::new(room);
    writer.put(&[tid]);
    pdu.write(&mut writer)?;
    writer.finish("a datagram of WSP in bytes")
}
