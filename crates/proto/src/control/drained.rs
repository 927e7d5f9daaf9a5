//! How many requests a gateway that drains has taken: CONTROL of kind 2.
//!
//! It follows GOAWAY. The content is one integer as in RFC 9000 §16: how many HEADs the carrier had
//! brought before; those behind them are not forwarded, and may be sent elsewhere (as RFC 9113 §6.8
//! has it, but counted: numbers of exchanges need not come in order).

use bytes::Bytes;

use crate::exchange::Part;
use crate::{Error, varint};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Requests that came on the carrier and were taken, or refused with an ABORT of their own.
    pub requests: u64,
}

impl Drained {
    /// Kind of the control part.
    pub const KIND: u64 = 2;

    /// As it is sent.
    #[must_use]
    pub fn part(&self) -> Part {
        let mut content = Vec::new();
        varint::encode(self.requests, &mut content);
        Part::Control(Self::KIND, Bytes::from(content))
    }

    /// Reads the content of a control part of this kind. Errors: bytes missing or left over.
    pub fn decode(mut content: &[u8]) -> Result<Self, Error> {
        let requests = varint::decode(&mut content, "a count of drained requests")?;
        if content.is_empty() {
            return Ok(Self { requests });
        }
        let value = content.len() as u64;
        Err(Error::Peer { what: "bytes behind the end of a count of drained requests:", value })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn drained_comes_back_and_no_other_length_does(
            requests in 0..1_u64 << 62, junk: Vec<u8>,
        ) {
            let drained = Drained { requests };
            let Part::Control(Drained::KIND, content) = drained.part() else { unreachable!() };
            prop_assert_eq!(Drained::decode(&content).unwrap(), drained);
            prop_assert!(Drained::decode(&content[1..]).ok() != Some(drained));
            prop_assert!(Drained::decode(&[&content[..], &[0]].concat()).is_err());
            prop_assert!(Drained::decode(&[]).is_err());
            let _ = Drained::decode(&junk);
        }
    }
}
