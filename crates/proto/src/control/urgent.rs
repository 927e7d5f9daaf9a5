//! How urgent an exchange is (CONTROL of kind 5), as its edge decides.
//!
//! It comes behind the head of the request, where the request's own field `Priority` does not say
//! the same: the answer goes by it.

use bytes::Bytes;

use crate::exchange::Part;
use crate::urgency::Urgency;
use crate::{Error, varint};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Urgent {
    /// The exchange.
    pub exchange: u64,
    /// Its urgency.
    pub urgency: Urgency,
}

impl Urgent {
    /// Kind of the control part.
    pub const KIND: u64 = 5;

    /// As it is sent.
    #[must_use]
    pub fn part(&self) -> Part {
        let mut content = Vec::new();
        varint::encode(self.exchange, &mut content);
        varint::encode(self.urgency.get().into(), &mut content);
        Part::Control(Self::KIND, Bytes::from(content))
    }

    /// Reads the content of a control part of this kind. Errors: bytes missing or left over, or no
    /// urgency.
    pub fn decode(mut content: &[u8]) -> Result<Self, Error> {
        let exchange = varint::decode(&mut content, "the exchange of an urgency")?;
        let value = varint::decode(&mut content, "an urgency")?;
        let limit = Urgency::COUNT as u64 - 1;
        let what = "an urgency";
        let urgency = Urgency::new(value).ok_or(Error::Limit { what, value, limit })?;
        if content.is_empty() {
            return Ok(Self { exchange, urgency });
        }
        Err(Error::Peer { what: "bytes behind an urgency:", value: content.len() as u64 })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_comes_back(exchange in 0..1_u64 << 62, value in 0..8_u64, junk: Vec<u8>) {
            let urgent = Urgent { exchange, urgency: Urgency::new(value).unwrap() };
            let Part::Control(Urgent::KIND, content) = urgent.part() else { unreachable!() };
            prop_assert_eq!(Urgent::decode(&content).unwrap(), urgent);
            prop_assert!(Urgent::decode(&content[..content.len() - 1]).is_err());
            prop_assert!(Urgent::decode(&[&content[..], &[0]].concat()).is_err());
            let beyond = [&content[..content.len() - 1], &[8]].concat();
            prop_assert!(Urgent::decode(&beyond).is_err());
            let _ = Urgent::decode(&junk);
        }
    }
}
