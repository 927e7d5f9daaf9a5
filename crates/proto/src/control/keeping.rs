//! How both ends of a carrier come to hold the same messages, so that the next one can be
//! delta-encoded against one of them: CONTROL of kind 3.
//!
//! The content is one byte, which of them it is, and integers as in RFC 9000 §16:
//!
//! | byte | | behind it |
//! | --- | --- | --- |
//! | 1 | PRINCIPAL | exchange, number: on whose behalf the edge asks |
//! | 2 | KEEP | exchange, slot: the receiver may keep the message in that slot, once it is whole |
//! | 3 | KEPT | exchange, name of what is kept (8 bytes) |
//! | 4 | MISSING | exchange: its message names a base that is not held, or cannot be read |
//! | 5 | IDENTITY | exchange, the message's body without encoding |
//! | 6 | OFFER | name of a dictionary (32 bytes), bytes of its parcel |
//! | 7 | WANT | the name's first 8 bytes: send the parcel |
//! | 8 | PART | the same 8 bytes, the parcel's next bytes |
//! | 9 | HELD | the same 8 bytes: it is held, and may be used from now on |
//! | 10 | NAME | number, 8 bytes: by which that principal is known when the edge starts again |
//! | 11 | SCHEMA | name of a schema's grammars (8 bytes), bytes of its parcel |
//!
//! PRINCIPAL and KEEP come between the HEAD and the DATA of their message. A slot that is taken is
//! given up for the new one. Nobody need keep anything: only KEPT says that it is so.
//!
//! Instances and numbers end with the edge. One that goes on with what it had says by NAME who it
//! was before, number 0, right after HELLO, and each principal before its first PRINCIPAL of a
//! carrier. A name is a hash with a key of the edge's, so that nobody else can say it.
//!
//! A dictionary is offered again on each carrier. Its parcel is its length and a Zstandard frame
//! without magic number; one is on its way at a time, and the last one offered is the one that PART
//! goes on with.
//!
//! A schema is offered once a message encoded with it was MISSING; WANT, PART and HELD
//! then go by its name. Who reads no infosets leaves it unanswered.

use bytes::Bytes;

use crate::exchange::{MAX_BLOCK_BYTES, Part};
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
    /// The message that follows may be kept.
    Keep {
        /// The exchange.
        exchange: u64,
        /// Where, below [`Keeping::SLOTS`].
        slot: u64,
    },
    /// The message is kept, and may be a base from now on.
    Kept {
        /// The exchange.
        exchange: u64,
        /// The name that deltas call it by.
        id: [u8; 8],
    },
    /// The message's base is not held.
    Missing {
        /// The exchange.
        exchange: u64,
    },
    /// There is a dictionary.
    Offer {
        /// Its SHA-256.
        id: [u8; 32],
        /// Bytes of its parcel, at most [`Keeping::PARCEL_BYTES`].
        bytes: u64,
    },
    /// The parcel is to be sent.
    Want {
        /// First bytes of the dictionary's name.
        id: [u8; 8],
    },
    /// The parcel goes on.
    Part {
        /// First bytes of the dictionary's name.
        id: [u8; 8],
        /// What comes next of it.
        bytes: Bytes,
    },
    /// The dictionary is held.
    Held {
        /// First bytes of its name.
        id: [u8; 8],
    },
    /// There is a schema, with whose grammars a message was encoded.
    Schema {
        /// Name of the grammars.
        id: [u8; 8],
        /// Bytes of its parcel, at most [`Keeping::SCHEMA_BYTES`].
        bytes: u64,
    },
    /// What stays the same when the edge starts again.
    Name {
        /// The principal's number; 0 is the edge itself.
        principal: u64,
        /// Its name.
        name: u64,
    },
    /// The body that could not be decoded, without encoding; at most [`MAX_BLOCK_BYTES`].
    Identity {
        /// The exchange.
        exchange: u64,
        /// The body.
        bytes: Bytes,
    },
}

impl Keeping {
    /// Kind of the control part.
    pub const KIND: u64 = 3;
    /// Slots of each direction of a carrier.
    pub const SLOTS: u64 = 64;
    /// Most bytes of a dictionary's parcel, and of a part of any.
    pub const PARCEL_BYTES: u64 = 20 << 10;
    /// Most bytes of a schema's.
    pub const SCHEMA_BYTES: u64 = 128 << 10;

    /// As it is sent.
    #[must_use]
    pub fn part(&self) -> Part {
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
            Self::Identity { exchange, bytes } => put(5, &[*exchange], bytes),
            Self::Offer { id, bytes } => {
                put(6, &[], id);
                varint::encode(*bytes, &mut content);
            }
            Self::Want { id } => put(7, &[], id),
            Self::Part { id, bytes } => {
                put(8, &[], id);
                content.extend_from_slice(bytes);
            }
            Self::Held { id } => put(9, &[], id),
            Self::Name { principal, name } => put(10, &[*principal], &name.to_be_bytes()),
            Self::Schema { id, bytes } => {
                put(11, &[], id);
                varint::encode(*bytes, &mut content);
            }
        }
        Part::Control(Self::KIND, content.into())
    }

    /// Reads the content of a control part of this kind. Errors: what a later version says, a slot
    /// or a body out of bounds, bytes missing or left over.
    pub fn decode(content: &Bytes) -> Result<Self, Error> {
        let (&which, mut rest) = content.split_first().ok_or(Error::Truncated { what: WHAT })?;
        let read = Self::read(which, &mut rest, content)?;
        if !rest.is_empty() {
            let value = rest.len() as u64;
            return Err(Error::Peer { what: "bytes behind a frame about bases:", value });
        }
        Ok(read)
    }

    /// Reads off the front of `rest`, which is a part of `content`.
    fn read(which: u8, rest: &mut &[u8], content: &Bytes) -> Result<Self, Error> {
        Ok(match which {
            1 => Self::Principal { exchange: number(rest)?, principal: number(rest)? },
            2 => {
                let (exchange, value) = (number(rest)?, number(rest)?);
                let slot = within("a slot", value, Self::SLOTS - 1)?;
                Self::Keep { exchange, slot }
            }
            3 => Self::Kept { exchange: number(rest)?, id: name(rest)? },
            4 => Self::Missing { exchange: number(rest)? },
            5 => {
                let exchange = number(rest)?;
                within("a body sent again", rest.len() as u64, MAX_BLOCK_BYTES as u64)?;
                Self::Identity { exchange, bytes: content.slice_ref(std::mem::take(rest)) }
            }
            6 => {
                let (id, value) = (name(rest)?, number(rest)?);
                Self::Offer { id, bytes: within("a parcel", value, Self::PARCEL_BYTES)? }
            }
            7 => Self::Want { id: name(rest)? },
            8 => {
                let id = name(rest)?;
                within("a part of a parcel", rest.len() as u64, Self::PARCEL_BYTES)?;
                Self::Part { id, bytes: content.slice_ref(std::mem::take(rest)) }
            }
            9 => Self::Held { id: name(rest)? },
            10 => {
                let (principal, name) = (number(rest)?, name(rest)?);
                Self::Name { principal, name: u64::from_be_bytes(name) }
            }
            11 => {
                let (id, value) = (name(rest)?, number(rest)?);
                Self::Schema { id, bytes: within("a schema's parcel", value, Self::SCHEMA_BYTES)? }
            }
            _ => {
                let value = u64::from(which);
                return Err(Error::Peer { what: "an unknown frame about bases", value });
            }
        })
    }
}

fn number(rest: &mut &[u8]) -> Result<u64, Error> {
    varint::decode(rest, WHAT)
}

fn name<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Error> {
    let (name, behind) = rest.split_first_chunk().ok_or(Error::Truncated { what: WHAT })?;
    *rest = behind;
    Ok(*name)
}

fn within(what: &'static str, value: u64, limit: u64) -> Result<u64, Error> {
    if value <= limit { Ok(value) } else { Err(Error::Limit { what, value, limit }) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn content(keeping: &Keeping) -> Bytes {
        let Part::Control(Keeping::KIND, content) = keeping.part() else {
            panic!("another frame");
        };
        content
    }

    #[test]
    fn what_is_out_of_bounds_is_refused() {
        let slot = content(&Keeping::Keep { exchange: 1, slot: Keeping::SLOTS });
        assert!(matches!(Keeping::decode(&slot), Err(Error::Limit { .. })));
        let bytes = vec![0; MAX_BLOCK_BYTES + 1].into();
        let body = content(&Keeping::Identity { exchange: 1, bytes });
        assert!(matches!(Keeping::decode(&body), Err(Error::Limit { .. })));
        let parcel = content(&Keeping::Offer { id: [1; 32], bytes: Keeping::PARCEL_BYTES + 1 });
        assert!(matches!(Keeping::decode(&parcel), Err(Error::Limit { .. })));
        let schema = content(&Keeping::Schema { id: [1; 8], bytes: Keeping::SCHEMA_BYTES + 1 });
        assert!(matches!(Keeping::decode(&schema), Err(Error::Limit { .. })));
        for which in [0, 12, 255] {
            assert!(Keeping::decode(&Bytes::from(vec![which, 1, 1])).is_err(), "{which}");
        }
        for keeping in [
            Keeping::Principal { exchange: 9, principal: 7 },
            Keeping::Keep { exchange: 9, slot: 7 },
            Keeping::Kept { exchange: 9, id: [7; 8] },
            Keeping::Missing { exchange: 9 },
            Keeping::Offer { id: [7; 32], bytes: 7 },
            Keeping::Want { id: [7; 8] },
            Keeping::Held { id: [7; 8] },
            Keeping::Name { principal: 7, name: 9 },
            Keeping::Schema { id: [7; 8], bytes: 7 },
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
            id: [u8; 8], name: [u8; 32], bytes: Vec<u8>, junk: Vec<u8>,
        ) {
            let bytes = Bytes::from(bytes);
            for keeping in [
                Keeping::Offer { id: name, bytes: slot },
                Keeping::Schema { id, bytes: slot },
                Keeping::Want { id },
                Keeping::Part { id, bytes: bytes.clone() },
                Keeping::Held { id },
                Keeping::Name { principal, name: u64::from_be_bytes(id) },
                Keeping::Principal { exchange, principal },
                Keeping::Keep { exchange, slot },
                Keeping::Kept { exchange, id },
                Keeping::Missing { exchange },
                Keeping::Identity { exchange, bytes },
            ] {
                prop_assert_eq!(Keeping::decode(&content(&keeping)).unwrap(), keeping);
            }
            let _ = Keeping::decode(&junk.into());
        }
    }
}
