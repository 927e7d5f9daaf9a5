//! The SASL layer (AMQP 1.0 Part 5 §5.3), with the mechanisms PLAIN
//! (RFC 4616), ANONYMOUS (RFC 4505) and EXTERNAL (RFC 4422 appendix A), none of which has a
//! challenge.

use std::fmt;

use bytes::Bytes;

use super::performative::descriptor;
use super::types::{Array, Fields, FieldsWriter, Reader, Symbol, Value, required};
use crate::Error;

/// Longest text of credentials in bytes: RFC 4616 §2 lets each of three have 255 characters.
pub const MAX_CREDENTIALS_BYTES: usize = 4 << 10;

/// How a peer says who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// With a name and a password.
    Plain,
    /// It does not.
    Anonymous,
    /// What carries the connection knows, such as TLS by a certificate.
    External,
}

impl Mechanism {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::Anonymous => "ANONYMOUS",
            Self::External => "EXTERNAL",
        }
    }

    fn of(name: &str) -> Option<Self> {
        [Self::Plain, Self::Anonymous, Self::External].into_iter().find(|it| it.name() == name)
    }
}

/// What a peer says of who it is.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// RFC 4616 §2.
    Plain {
        /// As whom it wants to act; empty: as itself.
        authorize_as: String,
        /// Its name.
        user: String,
        /// Its password.
        password: String,
    },
    /// RFC 4505 §2.
    Anonymous {
        /// Anything for the operator to read.
        trace: String,
    },
    /// RFC 4422 appendix A.
    External {
        /// As whom it wants to act; empty: as itself.
        authorize_as: String,
    },
}

impl Credentials {
    /// The mechanism, and the first response by which a client says them.
    #[must_use]
    pub fn response(&self) -> (Mechanism, Bytes) {
        match self {
            Self::Plain { authorize_as, user, password } => {
                let text = format!("{authorize_as}\0{user}\0{password}");
                (Mechanism::Plain, text.into())
            }
            Self::Anonymous { trace } => (Mechanism::Anonymous, trace.clone().into()),
            Self::External { authorize_as } => (Mechanism::External, authorize_as.clone().into()),
        }
    }
}

impl fmt::Debug for Credentials {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain { user, .. } => write!(f, "Plain({user:?})"),
            Self::Anonymous { trace } => write!(f, "Anonymous({trace:?})"),
            Self::External { authorize_as } => write!(f, "External({authorize_as:?})"),
        }
    }
}

/// What came of it (AMQP 1.0 Part 5 §5.3.3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The peer is who it says.
    Ok,
    /// It is not known, or its credentials are wrong.
    Auth,
    /// This side failed.
    System,
    /// This side failed, and will.
    SystemPermanent,
    /// This side failed, and may not later.
    SystemTemporary,
}

/// A frame of the SASL layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Mechanisms that the server knows (§5.3.3.1).
    Mechanisms(Vec<Symbol>),
    /// What the client chose, and the first response (§5.3.3.2).
    Init {
        /// The mechanism's name.
        mechanism: Symbol,
        /// What belongs to the mechanism.
        initial_response: Option<Bytes>,
        /// The host that the client wants to speak to.
        hostname: Option<String>,
    },
    /// What the server asks (§5.3.3.3).
    Challenge(Bytes),
    /// What the client says to that (§5.3.3.4).
    Response(Bytes),
    /// What came of it (§5.3.3.5).
    Outcome(Code),
}

const MECHANISMS: u64 = 0x40;
const INIT: u64 = 0x41;
const CHALLENGE: u64 = 0x42;
const RESPONSE: u64 = 0x43;
const OUTCOME: u64 = 0x44;

const CODES: [Code; 5] =
    [Code::Ok, Code::Auth, Code::System, Code::SystemPermanent, Code::SystemTemporary];

impl Frame {
    /// What is in a frame.
    pub fn decode(body: &[u8]) -> Result<Self, Error> {
        let reader = &mut Reader::new(body);
        let what = "descriptor of a frame of SASL";
        let code = descriptor(reader, what)?;
        let mut fields = Fields::open(reader, "a field of a frame of SASL")?;
        let frame = match code {
            MECHANISMS => Self::Mechanisms(fields.symbols()?),
            INIT => Self::Init {
                mechanism: required(fields.symbol()?, "sasl-init without mechanism")?,
                initial_response: fields.binary()?,
                hostname: fields.string()?,
            },
            CHALLENGE => Self::Challenge(required(fields.binary()?, "empty sasl-challenge")?),
            RESPONSE => Self::Response(required(fields.binary()?, "empty sasl-response")?),
            OUTCOME => {
                let code = required(fields.ubyte()?, "sasl-outcome without code")?;
                let known = CODES.get(usize::from(code)).copied();
                // Data of a mechanism that ends with them; none here has any.
                fields.binary()?;
                let value = code.into();
                Self::Outcome(known.ok_or(Error::Peer { what: "sasl-code", value })?)
            }
            value => return Err(Error::Peer { what, value }),
        };
        fields.finish()?;
        reader.finish("bytes behind a frame of SASL")?;
        Ok(frame)
    }

    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let fields = &mut FieldsWriter::default();
        match self {
            Self::Mechanisms(names) => {
                // Always an array: some clients take no single symbol.
                let array = Value::Array(Array::of_symbols(names));
                fields.value(Some(&array)).finish(MECHANISMS, out);
            }
            Self::Init { mechanism, initial_response, hostname } => fields
                .symbol(Some(mechanism))
                .binary(initial_response.as_deref())
                .string(hostname.as_deref())
                .finish(INIT, out),
            Self::Challenge(bytes) => fields.binary(Some(bytes)).finish(CHALLENGE, out),
            Self::Response(bytes) => fields.binary(Some(bytes)).finish(RESPONSE, out),
            Self::Outcome(code) => {
                let number = CODES.iter().position(|known| known == code).unwrap_or_default();
                fields.ubyte(u8::try_from(number).ok()).finish(OUTCOME, out);
            }
        }
    }
}

/// What the initial response of a mechanism says. `None` where the mechanism is not one of these.
pub fn credentials(mechanism: &Symbol, response: &[u8]) -> Result<Option<Credentials>, Error> {
    let Some(mechanism) = Mechanism::of(mechanism.as_str()) else { return Ok(None) };
    let (value, limit) = (response.len() as u64, MAX_CREDENTIALS_BYTES as u64);
    if response.len() > MAX_CREDENTIALS_BYTES {
        return Err(Error::Limit { what: "credentials in bytes", value, limit });
    }
    let what = "credentials that are not of their mechanism, of so many bytes";
    let text = std::str::from_utf8(response).map_err(|_| Error::Peer { what, value })?;
    let credentials = match mechanism {
        Mechanism::Anonymous => Credentials::Anonymous { trace: text.to_owned() },
        Mechanism::External => Credentials::External { authorize_as: text.to_owned() },
        Mechanism::Plain => {
            let mut parts = text.split('\0').map(str::to_owned);
            match (parts.next(), parts.next(), parts.next(), parts.next()) {
                (Some(authorize_as), Some(user), Some(password), None) if !user.is_empty() => {
                    Credentials::Plain { authorize_as, user, password }
                }
                _ => return Err(Error::Peer { what, value }),
            }
        }
    };
    Ok(Some(credentials))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back() {
        let all = [
            Frame::Mechanisms(vec![Symbol::new("PLAIN"), Symbol::new("ANONYMOUS")]),
            Frame::Mechanisms(vec![Symbol::new("PLAIN")]),
            Frame::Init {
                mechanism: Symbol::new("PLAIN"),
                initial_response: Some(Bytes::from_static(b"\0me\0secret")),
                hostname: Some("a".to_owned()),
            },
            Frame::Challenge(Bytes::from_static(b"x")),
            Frame::Response(Bytes::from_static(b"y")),
            Frame::Outcome(Code::Auth),
        ];
        for frame in all {
            let mut wire = Vec::new();
            frame.encode(&mut wire);
            assert_eq!(Frame::decode(&wire), Ok(frame));
        }
    }

    /// As clients send it: one symbol by itself, and a descriptor with a name.
    #[test]
    fn other_encodings_are_read() {
        let wire = b"\x00\xa3\x14amqp:sasl-init:list\xc0\x0b\x01\xa3\x08EXTERNAL";
        let mut wire = wire.to_vec();
        wire[2] = 19;
        let frame = Frame::decode(&wire);
        let Ok(Frame::Init { mechanism, initial_response: None, hostname: None }) = frame else {
            panic!("{frame:?}");
        };
        assert_eq!(mechanism.as_str(), "EXTERNAL");
    }

    #[test]
    fn credentials_are_those_of_their_rfc() {
        let plain = |text: &str| credentials(&Symbol::new("PLAIN"), text.as_bytes());
        let Ok(Some(Credentials::Plain { authorize_as, user, password })) =
            plain("Ursel\0Kurt\0xipj3plmq")
        else {
            panic!("the example of RFC 4616 §4");
        };
        assert_eq!([&*authorize_as, &*user, &*password], ["Ursel", "Kurt", "xipj3plmq"]);
        assert!(plain("a\0b").is_err() && plain("\0\0b").is_err() && plain("a\0b\0c\0d").is_err());
        let trace = credentials(&Symbol::new("ANONYMOUS"), b"sirhc");
        assert_eq!(trace, Ok(Some(Credentials::Anonymous { trace: "sirhc".to_owned() })));
        assert_eq!(credentials(&Symbol::new("GSSAPI"), b""), Ok(None));
        let shown = format!("{:?}", plain("\0Kurt\0xipj3plmq"));
        assert!(shown.contains("Kurt") && !shown.contains("xipj"), "{shown}");
    }
}
