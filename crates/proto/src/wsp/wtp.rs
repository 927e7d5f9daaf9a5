//! PDUs of the Wireless Transaction Protocol (WAP-224-WTP-20010710-a §8), which carries requests
//! in sessions, and what does not fit a datagram.
//!
//! Only `core` is used here and nothing is allocated.

use super::reader::{Reader, Writer};
use crate::Error;

/// The bit of a transaction id that the responder's PDUs have the other way round (§8.2.6).
pub const DIRECTION: u16 = 0x8000;
/// In the first octet: items stand between the head and the data (§8.2.1).
const CONTINUE: u8 = 0x80;
/// In the first octet: this PDU was sent before (§8.2.4).
const AGAIN: u8 = 1;
/// In the first octet of an acknowledgement: the transaction id is asked about, or right (§8.3.3).
const VERIFY: u8 = 4;
/// In the fourth octet of an invoke.
const TID_NEW: u8 = 0x20;
const USER_ACKNOWLEDGES: u8 = 0x10;
/// In the first octet of an item: its length is an octet of its own (§8.5).
const LONG_ITEM: u8 = 4;
/// The item with the number of a packet (table of §8.5).
const ITEM_PSN: u8 = 3;

/// PDU types (§8.1).
mod pdu_type {
    pub(super) const INVOKE: u8 = 1;
    pub(super) const RESULT: u8 = 2;
    pub(super) const ACK: u8 = 3;
    pub(super) const ABORT: u8 = 4;
    pub(super) const SEGMENTED_INVOKE: u8 = 5;
    pub(super) const SEGMENTED_RESULT: u8 = 6;
    pub(super) const NEGATIVE_ACK: u8 = 7;
}

/// Whether what follows belongs together (§8.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trailer {
    /// More of the group follows.
    None,
    /// The message ends here (TTR).
    Message,
    /// The group ends here, and the message goes on (GTR).
    Group,
    /// The message is whole, and its sender takes no segments (both).
    Unsegmented,
}

impl Trailer {
    const ALL: [Self; 4] = [Self::None, Self::Message, Self::Group, Self::Unsegmented];

    /// From bits 2 and 1 of the first octet: GTR and TTR.
    fn of(first: u8) -> Self {
        let place = usize::from(first >> 1 & 3);
        Self::ALL.get(place).copied().unwrap_or(Self::None)
    }
}

/// The class of a transaction (§5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Nothing comes back.
    Unreliable = 0,
    /// An acknowledgement comes back.
    Reliable = 1,
    /// A result comes back: a request of WSP.
    Result = 2,
}

/// What a PDU is (§8.3, §8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// A transaction begins.
    Invoke {
        /// See there.
        class: Class,
        /// The initiator begins its transaction ids anew.
        tid_new: bool,
        /// The user of the responder acknowledges.
        user_acknowledges: bool,
        /// See there.
        trailer: Trailer,
        /// The data.
        data: &'a [u8],
    },
    /// The result of a transaction.
    Result {
        /// See there.
        trailer: Trailer,
        /// The data.
        data: &'a [u8],
    },
    /// An acknowledgement.
    Ack {
        /// From the responder: is this a new transaction? From the initiator: it is.
        verify: bool,
        /// Of a message in segments, the last packet that is acknowledged (§8.5.5).
        psn: Option<u8>,
    },
    /// The transaction is over.
    Abort {
        /// Who ended it: WTP itself, else its user.
        by_provider: bool,
        /// Why: a number of WTP's (§8.3.4) or of WSP's (WAP-230 table 35).
        reason: u8,
    },
    /// A later segment of a message.
    Segment {
        /// Of a result, else of an invoke.
        of_result: bool,
        /// The number of the packet; the invoke or result itself is 0.
        psn: u8,
        /// See there.
        trailer: Trailer,
        /// The data.
        data: &'a [u8],
    },
    /// Packets of a group did not come.
    NegativeAck {
        /// Their numbers; none: the whole group.
        missing: &'a [u8],
    },
}

/// A PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The transaction id, with [`DIRECTION`].
    pub tid: u16,
    /// It was sent before. An abort cannot say it.
    pub again: bool,
    /// The rest.
    pub kind: Kind<'a>,
}

impl<'a> Packet<'a> {
    /// Reads a PDU. Items that are not known are passed over (§8.5).
    ///
    /// # Errors
    /// A PDU that is cut off or of another type, version or class, items beyond it, and octets
    /// behind one without data.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let reader = &mut reader;
        let first = reader.byte("the PDU type of WTP")?;
        let tid = reader.u16("a transaction id of WTP")?;
        let trailer = Trailer::of(first);
        let mut psn = None;
        let mut items = |reader: &mut Reader<'a>| match first & CONTINUE {
            0 => Ok(()),
            _ => take_items(reader, &mut psn),
        };
        let kind = match first >> 3 & 0x0f {
            pdu_type::INVOKE => {
                let flags = reader.byte("the flags of an invoke")?;
                // §8.3.1: this is version 0, which both other bits of the version say too.
                if flags >> 6 != 0 {
                    return Err(Error::Peer { what: "a version of WTP", value: flags.into() });
                }
                let class = class_of(flags)?;
                items(reader)?;
                let tid_new = flags & TID_NEW != 0;
                let user_acknowledges = flags & USER_ACKNOWLEDGES != 0;
                Kind::Invoke { class, tid_new, user_acknowledges, trailer, data: reader.rest() }
            }
            pdu_type::RESULT => {
                items(reader)?;
                Kind::Result { trailer, data: reader.rest() }
            }
            pdu_type::ACK => {
                items(reader)?;
                check_end(reader)?;
                Kind::Ack { verify: first & VERIFY != 0, psn }
            }
            pdu_type::ABORT => {
                let reason = reader.byte("the reason of an abort")?;
                items(reader)?;
                check_end(reader)?;
                return match first & 7 {
                    kind @ 0..=1 => {
                        let kind = Kind::Abort { by_provider: kind == 0, reason };
                        Ok(Self { tid, again: false, kind })
                    }
                    kind => Err(Error::Peer { what: "an abort's type", value: kind.into() }),
                };
            }
            kind @ (pdu_type::SEGMENTED_INVOKE | pdu_type::SEGMENTED_RESULT) => {
                let psn = reader.byte("the number of a packet")?;
                items(reader)?;
                let of_result = kind == pdu_type::SEGMENTED_RESULT;
                Kind::Segment { of_result, psn, trailer, data: reader.rest() }
            }
            pdu_type::NEGATIVE_ACK => {
                let count = reader.byte("the number of missing packets")?;
                let missing = reader.bytes(usize::from(count), "missing packets")?;
                items(reader)?;
                check_end(reader)?;
                Kind::NegativeAck { missing }
            }
            other => return Err(Error::Peer { what: "no PDU of WTP", value: other.into() }),
        };
        Ok(Self { tid, again: first & AGAIN != 0, kind })
    }

    /// Writes the PDU to the begin of `room` and returns how many octets it has.
    ///
    /// # Errors
    /// [`Error::Limit`] with the octets needed as its value where there is less room, and
    /// [`Error::Caller`] for more missing packets than an octet counts.
    pub fn encode(&self, room: &mut [u8]) -> Result<usize, Error> {
        let mut writer = Writer::new(room);
        let again = u8::from(self.again) * AGAIN;
        let head = |kind: u8, flags: u8| {
            let [high, low] = self.tid.to_be_bytes();
            [kind << 3 | flags, high, low]
        };
        let of_message = |trailer: Trailer| (trailer as u8) << 1 | again;
        match self.kind {
            Kind::Invoke { class, tid_new, user_acknowledges, trailer, data } => {
                writer.put(&head(pdu_type::INVOKE, of_message(trailer)));
                let tid_new = u8::from(tid_new) * TID_NEW;
                let user_acknowledges = u8::from(user_acknowledges) * USER_ACKNOWLEDGES;
                writer.put(&[tid_new | user_acknowledges | class as u8]);
                writer.put(data);
            }
            Kind::Result { trailer, data } => {
                writer.put(&head(pdu_type::RESULT, of_message(trailer)));
                writer.put(data);
            }
            Kind::Ack { verify, psn } => {
                let [first, high, low] = head(pdu_type::ACK, (u8::from(verify) * VERIFY) | again);
                match psn {
                    None => writer.put(&[first, high, low]),
                    // §8.5: an item of one octet.
                    Some(psn) => writer.put(&[first | CONTINUE, high, low, ITEM_PSN << 3 | 1, psn]),
                }
            }
            Kind::Abort { by_provider, reason } => {
                writer.put(&head(pdu_type::ABORT, u8::from(!by_provider)));
                writer.put(&[reason]);
            }
            Kind::Segment { of_result, psn, trailer, data } => {
                let kind = pdu_type::SEGMENTED_INVOKE + u8::from(of_result);
                writer.put(&head(kind, of_message(trailer)));
                writer.put(&[psn]);
                writer.put(data);
            }
            Kind::NegativeAck { missing } => {
                let what = "more than 255 missing packets";
                let count = u8::try_from(missing.len()).map_err(|_| Error::Caller { what })?;
                writer.put(&head(pdu_type::NEGATIVE_ACK, again));
                writer.put(&[count]);
                writer.put(missing);
            }
        }
        writer.finish("a PDU of WTP in bytes")
    }
}

fn class_of(flags: u8) -> Result<Class, Error> {
    match flags & 3 {
        0 => Ok(Class::Unreliable),
        1 => Ok(Class::Reliable),
        2 => Ok(Class::Result),
        class => Err(Error::Peer { what: "a class of transactions", value: class.into() }),
    }
}

/// Takes items up to the last (§8.5) and what the one with a packet's number says.
fn take_items(reader: &mut Reader<'_>, psn: &mut Option<u8>) -> Result<(), Error> {
    loop {
        let first = reader.byte("an item")?;
        let len = match first & LONG_ITEM {
            0 => first & 3,
            _ => reader.byte("an item's length")?,
        };
        let octets = reader.bytes(usize::from(len), "an item's octets")?;
        if first >> 3 & 0x0f == ITEM_PSN {
            *psn = octets.first().copied();
        }
        if first & CONTINUE == 0 {
            return Ok(());
        }
    }
}

fn check_end(reader: &Reader<'_>) -> Result<(), Error> {
    if reader.is_empty() {
        return Ok(());
    }
    let value = reader.rest().len() as u64;
    Err(Error::Peer { what: "octets behind a PDU of WTP", value })
}

/// The PDUs of a datagram, which may be concatenated (§8.6), as an iterator over their octets;
/// behind an error there is nothing more.
#[derive(Clone, Copy, Debug)]
pub struct Packets<'a> {
    reader: Reader<'a>,
    concatenated: bool,
}

impl<'a> Packets<'a> {
    /// Those in `datagram`.
    #[must_use]
    pub fn new(datagram: &'a [u8]) -> Self {
        match datagram.split_first() {
            Some((0, rest)) => Self { reader: Reader::new(rest), concatenated: true },
            _ => Self { reader: Reader::new(datagram), concatenated: false },
        }
    }

    /// A PDU behind its length of one octet, or of two where the first has the high bit.
    fn counted(&mut self) -> Result<&'a [u8], Error> {
        let first = self.reader.byte("the length of a PDU")?;
        let len = match first {
            0..0x80 => usize::from(first),
            _ => {
                let low = self.reader.byte("the length of a PDU")?;
                usize::from(first & 0x7f) << 8 | usize::from(low)
            }
        };
        self.reader.bytes(len, "a concatenated PDU")
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<&'a [u8], Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let packet = if self.concatenated { self.counted() } else { Ok(self.reader.rest()) };
        if !self.concatenated || packet.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(packet)
    }
}
