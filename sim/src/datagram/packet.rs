//! Byte layout of the datagrams: a type, then integers as in RFC 9000 §16.
//!
//! | type | | behind it |
//! | --- | --- | --- |
//! | 1 | FRAGMENT | message, message before it or 0, place, how many there are, bytes |
//! | 2 | ACK | message and place of each fragment that came |

use bytes::Bytes;
use proto::{Error, varint};

use super::MAX_DATAGRAM_BYTES;

const FRAGMENT: u8 = 1;
const ACK: u8 = 2;
/// Bytes of a fragment's datagram before its own.
const HEADER_BYTES: usize = 1 + 4 * 8;
/// Most bytes of a fragment.
pub(super) const MAX_FRAGMENT_BYTES: usize = MAX_DATAGRAM_BYTES - HEADER_BYTES;
/// Most fragments that an ACK names: as many as fit whatever their numbers.
pub(super) const MAX_ACKS: usize = (MAX_DATAGRAM_BYTES - 1) / 16;

/// A datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Packet {
    /// A piece of a message.
    Fragment {
        /// Number of the message, from 1.
        message: u64,
        /// The message that has to be read before it; 0 for none.
        after: u64,
        /// Its place in the message.
        place: u64,
        /// How many the message has.
        count: u64,
        bytes: Bytes,
    },
    /// Fragments that came.
    Ack(Vec<(u64, u64)>),
}

impl Packet {
    pub(super) fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        match self {
            Self::Fragment { message, after, place, count, bytes } => {
                out.push(FRAGMENT);
                let numbers = [message, after, place, count];
                numbers.iter().for_each(|number| varint::encode(**number, &mut out));
                out.extend_from_slice(bytes);
            }
            Self::Ack(acks) => {
                out.push(ACK);
                for (message, place) in acks {
                    varint::encode(*message, &mut out);
                    varint::encode(*place, &mut out);
                }
            }
        }
        out.into()
    }

    pub(super) fn decode(datagram: &Bytes) -> Result<Self, Error> {
        let what = "a datagram";
        let (&kind, mut rest) = datagram.split_first().ok_or(Error::Truncated { what })?;
        let number = |rest: &mut &[u8]| varint::decode(rest, what);
        match kind {
            FRAGMENT => {
                let (message, after) = (number(&mut rest)?, number(&mut rest)?);
                let (place, count) = (number(&mut rest)?, number(&mut rest)?);
                let bytes = datagram.slice_ref(rest);
                Ok(Self::Fragment { message, after, place, count, bytes })
            }
            ACK => {
                let mut acks = Vec::new();
                while !rest.is_empty() {
                    acks.push((number(&mut rest)?, number(&mut rest)?));
                }
                Ok(Self::Ack(acks))
            }
            value => Err(Error::Peer { what: "unknown type of a datagram", value: value.into() }),
        }
    }
}
