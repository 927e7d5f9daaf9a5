//! Packets as the ferry saw them: what a time-of-flight picture is drawn from.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Everything recorded of one link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacketRecord {
    /// In the order in which they were offered.
    pub packets: Vec<PacketEvent>,
    /// Packets beyond the bound, only counted.
    pub unrecorded: u64,
}

/// The way of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Toward {
    /// From client to service: a to b.
    Service,
    /// From service to client: b to a.
    Client,
}

/// One packet. Times are on CLOCK_MONOTONIC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PacketEvent {
    /// Which way it went.
    pub toward: Toward,
    /// When the sender offered it to the link.
    pub offered: Duration,
    /// When it was written to the receiver; none for one that was dropped or has not arrived.
    pub delivered: Option<Duration>,
    /// When it was due there: what it is later is the ferry's lateness.
    #[serde(default)]
    pub due: Option<Duration>,
    /// Why it was dropped: a reason of the link, or `refused` by the receiver's interface.
    pub dropped: Option<String>,
    /// A second one that the link made of a packet; it is offered when that was.
    #[serde(default)]
    pub duplicate: bool,
    /// IP bytes.
    pub bytes: u32,
    /// What its TCP header says; none for other packets.
    pub tcp: Option<TcpHeader>,
}

/// Of a TCP header (RFC 9293 §3.1) what a picture needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpHeader {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Bytes of content.
    pub payload: u16,
    /// FIN 1, SYN 2, RST 4, PSH 8, ACK 16.
    pub flags: u8,
    /// Receive window as in the header, unscaled.
    pub window: u16,
}

/// Flag of the segment that begins a connection (RFC 9293 §3.1).
const SYN: u8 = 2;

impl TcpHeader {
    /// The sequence number after this segment's content, where the next new one begins.
    fn end(&self) -> u32 {
        self.sequence
            .wrapping_add(self.payload.into())
            .wrapping_add(u32::from(self.flags & SYN != 0))
    }
}

impl PacketEvent {
    /// The header of a segment with content that a sender offered.
    fn data(&self) -> Option<TcpHeader> {
        self.tcp.filter(|header| header.payload > 0 && !self.duplicate)
    }
}

/// The packets that were offered to a link in a stretch of time, as those of one exchange.
#[derive(Clone, Debug)]
pub struct Window<'a> {
    record: &'a PacketRecord,
    time: Range<Duration>,
}

/// What one direction carried in a [`Window`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Packets offered to the link; copies that the link made are not among them.
    pub packets: u64,
    /// Their IP bytes.
    pub bytes: u64,
    /// TCP segments with content that begin before the end of what had been offered on their
    /// connection, in the window or earlier in the record: sent again, wholly or in part.
    pub retransmitted: u64,
    /// Bytes of TCP's content among them that had not been offered before.
    pub content_bytes: u64,
}

impl<'a> Window<'a> {
    /// From the start of `time` to before its end, on CLOCK_MONOTONIC.
    #[must_use]
    pub fn of(record: &'a PacketRecord, time: Range<Duration>) -> Self {
        Self { record, time }
    }

    /// Its packets, in the order of the record.
    pub fn packets(&self) -> impl Iterator<Item = &'a PacketEvent> + use<'a> {
        let time = self.time.clone();
        self.record.packets.iter().filter(move |event| time.contains(&event.offered))
    }

    /// What went one way.
    #[must_use]
    pub fn sum(&self, toward: Toward) -> Sum {
        let mut sum = Sum::default();
        let mut ends: BTreeMap<(u16, u16), u32> = BTreeMap::new();
        let earlier = |event: &&PacketEvent| event.offered < self.time.end;
        let offered = self.record.packets.iter().filter(earlier);
        for event in offered.filter(|event| event.toward == toward && !event.duplicate) {
            let new = event.tcp.map(|header| new_content(&mut ends, &header));
            let is_again = new.zip(event.tcp).is_some_and(|(new, tcp)| new < tcp.payload);
            if self.time.contains(&event.offered) {
                sum.packets += 1;
                sum.bytes += u64::from(event.bytes);
                sum.retransmitted += u64::from(is_again);
                sum.content_bytes += u64::from(new.unwrap_or_default());
            }
        }
        sum
    }

    /// How many bursts of content came towards the client: the round trips of the link that an
    /// exchange took, but for those that open a connection.
    ///
    /// A burst begins with the first segment with content that the service offers, with one
    /// offered at least half a `round_trip` after the one before it (the service had to wait), and
    /// with one before which content arrived that the client offered when everything so far had
    /// reached it (it asked again). What the client says while content is still under way to it,
    /// as credit for more, begins none.
    #[must_use]
    pub fn flights(&self, round_trip: Duration) -> u32 {
        let pause = round_trip / 2;
        let mut flights = 0;
        let mut latest: Option<Duration> = None;
        let (mut received, mut asked_again) = (Duration::ZERO, None);
        for event in self.packets().filter(|event| event.data().is_some()) {
            if event.toward == Toward::Service {
                if asked_again.is_none() && event.offered >= received {
                    asked_again = event.delivered;
                }
                continue;
            }
            let waited = |before| !pause.is_zero() && event.offered.saturating_sub(before) >= pause;
            let answers = asked_again.is_some_and(|arrived| arrived <= event.offered);
            if latest.is_none_or(waited) || answers {
                flights += 1;
                asked_again = None;
            }
            latest = Some(event.offered);
            received = received.max(event.delivered.unwrap_or_default());
        }
        flights
    }
}

/// Bytes of a segment's content that were not offered before, fewer than all when it is sent again;
/// keeps where each connection has got to.
fn new_content(ends: &mut BTreeMap<(u16, u16), u32>, header: &TcpHeader) -> u16 {
    let connection = (header.source_port, header.destination_port);
    // Ports are used again: with a new connection the numbers begin anew.
    let known = ends.get(&connection).copied().filter(|_| header.flags & SYN == 0);
    // Numbers go round: half of them lie before any one (RFC 9293 §3.4).
    let after = |one: u32, other: u32| {
        u32::try_from(one.wrapping_sub(other).cast_signed()).unwrap_or_default()
    };
    let end = header.end();
    let new = known.map_or(u32::MAX, |known| after(end, known));
    if new > 0 {
        ends.insert(connection, end);
    }
    header.payload.min(u16::try_from(new).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests;
