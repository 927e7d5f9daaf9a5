//! How both ends of a carrier come to hold the same messages, so that the next one can be told by
//! its difference: CONTROL of kind 3.
//!
//! The content is one byte, which of the five it is, and integers as in the frames:
//!
//! | byte | | behind it |
//! | --- | --- | --- |
//! | 1 | PRINCIPAL | exchange, number: on whose behalf the edge asks |
//! | 2 | KEEP | exchange, slot: the receiver may keep the half in that slot, once it is whole |
//! | 3 | KEPT | exchange, name of what is kept (8 bytes) |
//! | 4 | MISSING | exchange: its half names a base that is not held, or cannot be read |
//! | 5 | PLAIN | exchange, the half's body as it is |
//!
//! PRINCIPAL and KEEP come between the HEAD and the DATA of their half. A slot that is taken is
//! given up for the new one. Nobody need keep anything: only KEPT says that it is so.

use bytes::Bytes;

use super::{Frame, MAX_BLOCK_BYTES};
use crate::{Error, varint};

const WHAT: &str = "a frame about bases";

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// On whose behalf an exchange is; of one edge's instance, a number
    /// always means the same.
    Principal {
        /// The exchange.
        exchange: u64,
        /// Whose it is.
        principal: u64,
    },
    /// The half that follows may be kept.
    Keep {
        /// The exchange.
        exchange: u64,
        /// Where, below [`Keeping::SLOTS`].
        slot: u64,
    },
    /// The half is kept, and may be a base from now on.
    Kept {
        /// The exchange.
        exchange: u64,
        /// The name that deltas call it by.
        id: [u8; 8],
    },
    /// The half's base is not held.
    Missing {
        /// The exchange.
        exchange: u64,
    },
    /// The body that could not be read, as it is; at most [`MAX_BLOCK_BYTES`].
    Plain {
        /// The exchange.
        exchange: u64,
        /// The body.
        bytes: Bytes,
    },
}

impl Keeping {
    /// Kind of the CONTROL frame.
    pub const KIND: u64 = 3;
    /// Slots of each direction of a carrier.
    pub const SLOTS: u64 = 64;

    /// The frame.
    #[must_use]
    pub fn frame(&self) -> Frame {
        let mut content = Vec::new();
        let mut put = |which: u8, numbers: &[u64], rest: &[u8]| {
            content.push(which);
            numbers.iter().for_each(|number| varint::encode(*number, &mut content));
            content.extend_from_slice(rest);
        };
        match self {
            Self::Principal { exchange, principal } => put(1, &[*exchange, *principal], &[]),
            Self::Keep { exchange, slot } => put(2, &[*exchange, *slot], &[]),
            Self::Kept { exchange, id } => put(3, &[*exchange], id),
            Self::Missing { exchange } => put(4, &[*exchange], &[]),
            Self::Plain { exchange, bytes } => put(5, &[*exchange], bytes),
        }
        Frame::Control(Self::KIND, content.into())
    }

    /// Reads the content of a CONTROL frame of this kind. Errors: what a later version says, a slot
    /// or a body out of bounds, bytes missing or left over.
    pub fn decode(content: &Bytes) -> Result<Self, Error> {
        let (&which, mut rest) = content.split_first().ok_or(Error::Truncated { what: WHAT })?;
        let exchange = varint::decode(&mut rest, WHAT)?;
        let read = match which {
            1 => Self::Principal { exchange, principal: varint::decode(&mut rest, WHAT)? },
            2 => {
                let slot = varint::decode(&mut rest, WHAT)?;
                if slot >= Self::SLOTS {
                    let (value, limit) = (slot, Self::SLOTS - 1);
                    return Err(Error::Limit { what: "a slot", value, limit });
                }
                Self::Keep { exchange, slot }
            }
            3 => {
                let id = rest.split_first_chunk().ok_or(Error::Truncated { what: WHAT })?;
                rest = id.1;
                Self::Kept { exchange, id: *id.0 }
            }
            4 => Self::Missing { exchange },
            5 => {
                let (value, limit) = (rest.len() as u64, MAX_BLOCK_BYTES as u64);
                if value > limit {
                    return Err(Error::Limit { what: "a body sent again", value, limit });
                }
                let bytes = content.slice_ref(rest);
                rest = &[];
                Self::Plain { exchange, bytes }
            }
            _ => {
                let value = u64::from(which);
                return Err(Error::Peer { what: "an unknown frame about bases", value });
            }
        };
        if !rest.is_empty() {
            let value = rest.len() as u64;
            return Err(Error::Peer { what: "bytes behind a frame about bases:", value });
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn content(keeping: &Keeping) -> Bytes {
        let Frame::Control(Keeping::KIND, content) = keeping.frame() else {
            panic!("another frame");
        };
        content
    }

    #[test]
    fn what_is_out_of_bounds_is_refused() {
        let slot = content(&Keeping::Keep { exchange: 1, slot: Keeping::SLOTS });
        assert!(matches!(Keeping::decode(&slot), Err(Error::Limit { .. })));
        let bytes = vec![0; MAX_BLOCK_BYTES + 1].into();
        let plain = content(&Keeping::Plain { exchange: 1, bytes });
        assert!(matches!(Keeping::decode(&plain), Err(Error::Limit { .. })));
        for which in [0, 6, 255] {
            assert!(Keeping::decode(&Bytes::from(vec![which, 1, 1])).is_err(), "{which}");
        }
        for keeping in [
            Keeping::Principal { exchange: 9, principal: 7 },
            Keeping::Keep { exchange: 9, slot: 7 },
            Keeping::Kept { exchange: 9, id: [7; 8] },
            Keeping::Missing { exchange: 9 },
        ] {
            let whole = content(&keeping);
            for len in 0..whole.len() {
                assert!(Keeping::decode(&whole.slice(..len)).is_err(), "{keeping:?} {len}");
            }
            let longer = Bytes::from([&whole[..], &[0]].concat());
            assert!(Keeping::decode(&longer).is_err(), "{keeping:?}");
        }
    }

    proptest! {
        #[test]
        fn they_come_back(
            exchange in 0..1_u64 << 62, principal in 0..1_u64 << 62, slot in 0..Keeping::SLOTS,
            id: [u8; 8], bytes: Vec<u8>, junk: Vec<u8>,
        ) {
            for keeping in [
                Keeping::Principal { exchange, principal },
                Keeping::Keep { exchange, slot },
                Keeping::Kept { exchange, id },
                Keeping::Missing { exchange },
                Keeping::Plain { exchange, bytes: bytes.into() },
            ] {
                prop_assert_eq!(Keeping::decode(&content(&keeping)).unwrap(), keeping);
            }
            let _ = Keeping::decode(&junk.into());
        }
    }
}
