//! What goes beside exchanges of HTTP: the fields of an interim response (CONTROL of kind 16), and
//! that a client's connection has ended (CONTROL of kind 17).
//!
//! Fields come right before the INTERIM of their exchange; a peer that does not know them passes
//! the bare status on. The end of a connection is reported to a gateway that keeps connections to
//! origins for that client alone.

use bytes::Bytes;

use crate::bhttp::{Fields, MAX_HEAD_BYTES, decode_fields, encode_fields};
use crate::exchange::Part;
use crate::{Error, varint};

/// Fields of the interim response that follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hints {
    /// The exchange.
    pub exchange: u64,
    /// Fields of the interim response.
    pub fields: Fields,
}

impl Hints {
    /// Kind of the control part.
    pub const KIND: u64 = 16;

    /// As it is sent; none where the fields are too many to cross.
    #[must_use]
    pub fn part(&self) -> Option<Part> {
        let mut content = Vec::new();
        varint::encode(self.exchange, &mut content);
        encode_fields(&self.fields, &mut content);
        (content.len() <= MAX_HEAD_BYTES).then(|| Part::Control(Self::KIND, Bytes::from(content)))
    }

    /// Reads the content of a control part of this kind. Errors: no number, or fields that binary
    /// HTTP does not have.
    pub fn decode(mut content: &[u8]) -> Result<Self, Error> {
        let exchange = varint::decode(&mut content, "the exchange of an interim response")?;
        Ok(Self { exchange, fields: decode_fields(content)? })
    }
}

/// A client's connection that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientEnded {
    /// The edge's number of the connection.
    pub connection: u64,
}

impl ClientEnded {
    /// Kind of the control part.
    pub const KIND: u64 = 17;

    /// As it is sent.
    #[must_use]
    pub fn part(&self) -> Part {
        let mut content = Vec::new();
        varint::encode(self.connection, &mut content);
        Part::Control(Self::KIND, Bytes::from(content))
    }

    /// Reads the content of a control part of this kind. Errors: bytes missing or left over.
    pub fn decode(mut content: &[u8]) -> Result<Self, Error> {
        let connection = varint::decode(&mut content, "a client's connection")?;
        if content.is_empty() {
            return Ok(Self { connection });
        }
        let value = content.len() as u64;
        Err(Error::Peer { what: "bytes behind a client's connection:", value })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_come_back(number in 0..1_u64 << 62, junk: Vec<u8>) {
            let line = (Bytes::from_static(b"link"), Bytes::from_static(b"</a>; rel=preload"));
            let hints = Hints { exchange: number, fields: vec![line] };
            let Some(Part::Control(Hints::KIND, content)) = hints.part() else { unreachable!() };
            prop_assert_eq!(Hints::decode(&content).unwrap(), hints);
            let ended = ClientEnded { connection: number };
            let Part::Control(ClientEnded::KIND, content) = ended.part() else { unreachable!() };
            prop_assert_eq!(ClientEnded::decode(&content).unwrap(), ended);
            prop_assert!(ClientEnded::decode(&[&content[..], &[0]].concat()).is_err());
            let _ = (Hints::decode(&junk), ClientEnded::decode(&junk));
        }
    }
}
