//! How long an answer is still of use (CONTROL of kind 6), as its edge sees it.
//!
//! It comes behind the head of the request. An answer of which nothing has left by then need not
//! take the link any more: the edge has told its client that it came too late.

use std::time::Duration;

use bytes::Bytes;

use crate::exchange::Part;
use crate::{Error, varint};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expires {
    /// The exchange.
    pub exchange: u64,
    /// From when this comes, in whole milliseconds: the way back is left out.
    pub within: Duration,
}

impl Expires {
    /// Kind of the control part.
    pub const KIND: u64 = 6;
    /// What is longer is no bound, and is said as this.
    pub const MAX: Duration = Duration::from_secs(24 * 60 * 60);

    /// As it is sent.
    #[must_use]
    pub fn part(&self) -> Part {
        let mut content = Vec::new();
        varint::encode(self.exchange, &mut content);
        let within = self.within.min(Self::MAX).as_millis();
        varint::encode(u64::try_from(within).unwrap_or(u64::MAX), &mut content);
        Part::Control(Self::KIND, Bytes::from(content))
    }

    /// Reads the content of a control part of this kind. Errors: bytes missing or left over, or
    /// more than [`Expires::MAX`].
    pub fn decode(mut content: &[u8]) -> Result<Self, Error> {
        let exchange = varint::decode(&mut content, "the exchange of an expiry")?;
        let value = varint::decode(&mut content, "an expiry")?;
        let within = Duration::from_millis(value);
        if within > Self::MAX {
            let limit = u64::try_from(Self::MAX.as_millis()).unwrap_or(u64::MAX);
            return Err(Error::Limit { what: "an expiry in milliseconds", value, limit });
        }
        if content.is_empty() {
            return Ok(Self { exchange, within });
        }
        Err(Error::Peer { what: "bytes behind an expiry:", value: content.len() as u64 })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_comes_back(exchange in 0..1_u64 << 62, ms in 0..86_400_000_u64, junk: Vec<u8>) {
            let expires = Expires { exchange, within: Duration::from_millis(ms) };
            let Part::Control(Expires::KIND, content) = expires.part() else { unreachable!() };
            prop_assert_eq!(Expires::decode(&content).unwrap(), expires);
            prop_assert!(Expires::decode(&content[..content.len() - 1]).is_err());
            prop_assert!(Expires::decode(&[&content[..], &[0]].concat()).is_err());
            let _ = Expires::decode(&junk);
        }
    }

    #[test]
    fn what_is_longer_than_a_day_is_said_as_a_day() {
        let long = Expires { exchange: 1, within: Duration::from_secs(1_000_000) };
        let Part::Control(_, content) = long.part() else { unreachable!() };
        assert_eq!(Expires::decode(&content).unwrap().within, Expires::MAX);
    }
}
