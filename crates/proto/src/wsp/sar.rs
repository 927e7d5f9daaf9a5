//! Segmentation and reassembly of WTP (WAP-224 §7.14): messages that do not fit a datagram.
//!
//! A message is cut into packets, and these go in groups: a group is acknowledged as a whole, and
//! what of it did not come is named.

use std::collections::BTreeMap;

use super::wtp::Trailer;
use crate::Error;

/// Most packets of a message: their numbers have an octet.
pub const MAX_PACKETS: usize = 256;
/// Packets that are sent before the receiver has to acknowledge: what a slow link holds.
const MAX_GROUP_PACKETS: usize = 8;

/// A packet of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Its number: 0 goes as the invoke or result itself, the others as segments.
    pub psn: u8,
    /// Whether a group or the message ends with it.
    pub trailer: Trailer,
    /// The data.
    pub data: &'a [u8],
}

/// A message, cut into packets of equal length.
#[derive(Clone, Copy, Debug)]
pub struct Segments<'a> {
    message: &'a [u8],
    packet_bytes: usize,
    last: usize,
}

impl<'a> Segments<'a> {
    /// Cuts `message` into packets of `packet_bytes` of data; one that is empty is one packet.
    ///
    /// # Errors
    /// [`Error::Caller`] for packets without data, [`Error::Limit`] for more than [`MAX_PACKETS`].
    pub fn new(message: &'a [u8], packet_bytes: usize) -> Result<Self, Error> {
        if packet_bytes == 0 {
            return Err(Error::Caller { what: "packets without data" });
        }
        let packets = message.len().div_ceil(packet_bytes).max(1);
        if packets > MAX_PACKETS {
            let (value, limit) = (packets as u64, MAX_PACKETS as u64);
            return Err(Error::Limit { what: "packets of a message", value, limit });
        }
        Ok(Self { message, packet_bytes, last: packets - 1 })
    }

    /// The packet of a number, to send it again; `None` behind the last.
    #[must_use]
    pub fn get(&self, psn: u8) -> Option<Segment<'a>> {
        let place = usize::from(psn);
        if place > self.last {
            return None;
        }
        let from = place * self.packet_bytes;
        let to = (from + self.packet_bytes).min(self.message.len());
        let ends_group = place % MAX_GROUP_PACKETS == MAX_GROUP_PACKETS - 1;
        let trailer = match place == self.last {
            true => Trailer::Message,
            false if ends_group => Trailer::Group,
            false => Trailer::None,
        };
        Some(Segment { psn, trailer, data: self.message.get(from..to)? })
    }

    /// The packets of the group that begins at a number: at 0, or behind the one that was
    /// acknowledged.
    pub fn group(&self, first: u8) -> impl Iterator<Item = Segment<'a>> {
        let segments = *self;
        let mut next = Some(first);
        core::iter::from_fn(move || {
            let segment = segments.get(next?)?;
            next = match segment.trailer {
                Trailer::None => segment.psn.checked_add(1),
                _ => None,
            };
            Some(segment)
        })
    }
}

/// What is to be done after a packet came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More of the group is on the way.
    More,
    /// The group is whole: it is to be acknowledged with this number.
    Acknowledge(u8),
    /// The end of the group is there, but these packets are not: they are to be named.
    Missing(Vec<u8>),
    /// The message is whole; its last packet, with this number, is to be acknowledged.
    Whole {
        /// The number.
        psn: u8,
        /// The message.
        message: Vec<u8>,
    },
}

/// A message that comes in packets, in any order and more than once.
#[derive(Clone, Debug)]
pub struct Reassembly {
    packets: BTreeMap<u8, Vec<u8>>,
    bytes: usize,
    max_bytes: usize,
    /// The first packet of the group that is not whole yet.
    group_from: u16,
    /// The last one of it, once that is known.
    group_to: Option<u8>,
    /// The last one of the message, once that is known.
    last: Option<u8>,
    whole: bool,
}

impl Reassembly {
    /// A message of at most `max_bytes`, of which nothing came yet.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self {
            packets: BTreeMap::new(),
            bytes: 0,
            max_bytes,
            group_from: 0,
            group_to: None,
            last: None,
            whole: false,
        }
    }

    /// Bytes that came and are held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.bytes
    }

    /// Takes a packet.
    ///
    /// # Errors
    /// [`Error::Limit`] for a message over its bound; [`Error::Peer`] for a packet behind the last
    /// one, or a second end. The message is then of no use any more.
    pub fn push(&mut self, segment: Segment<'_>) -> Result<Progress, Error> {
        let Segment { psn, trailer, data } = segment;
        if self.whole {
            // Its acknowledgement was lost: it is said again.
            return Ok(Progress::Acknowledge(self.last.unwrap_or(psn)));
        }
        if self.last.is_some_and(|last| psn > last) {
            return Err(Error::Peer { what: "a packet behind the last", value: psn.into() });
        }
        if matches!(trailer, Trailer::Message | Trailer::Unsegmented) {
            let greatest = self.packets.last_key_value().map_or(0, |(psn, _)| *psn);
            let is_other = self.last.is_some_and(|last| last != psn);
            if is_other || greatest > psn {
                return Err(Error::Peer { what: "a message with two ends", value: psn.into() });
            }
            self.last = Some(psn);
        }
        if !self.packets.contains_key(&psn) {
            let bytes = self.bytes.saturating_add(data.len());
            if bytes > self.max_bytes {
                let (value, limit) = (bytes as u64, self.max_bytes as u64);
                return Err(Error::Limit { what: "a message in packets in bytes", value, limit });
            }
            self.bytes = bytes;
            self.packets.insert(psn, data.to_vec());
        }
        if u16::from(psn) < self.group_from {
            // An old group's end: its acknowledgement was lost. Others of it say nothing.
            let ended = trailer != Trailer::None;
            return Ok(if ended { Progress::Acknowledge(psn) } else { Progress::More });
        }
        if trailer != Trailer::None && self.group_to.is_none_or(|to| psn < to) {
            self.group_to = Some(psn);
        }
        Ok(self.progress())
    }

    fn progress(&mut self) -> Progress {
        let Some(to) = self.group_to else { return Progress::More };
        let from = u8::try_from(self.group_from).unwrap_or(u8::MAX);
        let missing: Vec<u8> = (from..=to).filter(|psn| !self.packets.contains_key(psn)).collect();
        if !missing.is_empty() {
            return Progress::Missing(missing);
        }
        self.group_from = u16::from(to) + 1;
        self.group_to = None;
        if self.last != Some(to) {
            return Progress::Acknowledge(to);
        }
        self.whole = true;
        let packets = core::mem::take(&mut self.packets);
        self.bytes = 0;
        Progress::Whole { psn: to, message: packets.into_values().flatten().collect() }
    }
}
