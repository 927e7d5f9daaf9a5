//! What was in the air, as everybody else knows it.

use std::net::Ipv4Addr;
use std::time::Duration;

use link::medium::PortId;

use crate::ferry::net::{AirEntry, Cast, PacketMeta};

/// Numbers of protocols (RFC 791 §3.1).
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Whom a transmission was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// One host.
    One,
    /// A group, by its address.
    Group(Ipv4Addr),
    /// All that hear it.
    All,
}

/// A transmission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// The segment's place in the topology.
    pub segment: usize,
    /// The sender's port.
    pub from: PortId,
    /// Whom it was for.
    pub to: To,
    /// `tcp`, `udp`, `icmp`, `routing` for what is charged, `ack` for an acknowledgement of the
    /// medium, `other`.
    pub protocol: &'static str,
    /// The address that the packet came from first.
    pub source: Option<Ipv4Addr>,
    /// Ports of TCP and UDP.
    pub ports: Option<[u16; 2]>,
    /// When it began, since the net's beginning.
    pub start: Duration,
    /// How long it took.
    pub airtime: Duration,
    /// Bytes after the preamble.
    pub bytes: u32,
    /// Their rate; 0 on a plain link without a limit.
    pub rate_bps: u64,
    /// How often the packet was in the air, this time counted; 0 for an acknowledgement.
    pub attempt: u32,
    /// Which fragment of the packet it was, from 0.
    pub fragment: u32,
    /// Ports that received it.
    pub received: Vec<PortId>,
    /// Ports that it was for and that did not, each with the reason.
    pub missed: Vec<(PortId, &'static str)>,
}

/// What was in the air, in the order in which it ended.
pub struct AirEntries {
    chunks: Vec<Vec<AirEntry>>,
}

impl AirEntries {
    pub(super) fn new(chunks: Vec<Vec<AirEntry>>) -> Self {
        Self { chunks }
    }

    /// All transmissions.
    pub fn transmissions(self) -> impl Iterator<Item = Transmission> {
        self.chunks.into_iter().flatten().map(Transmission::from)
    }
}

impl From<AirEntry> for Transmission {
    fn from(entry: AirEntry) -> Self {
        let to = match entry.meta {
            Some(PacketMeta { cast: Cast::Group, destination, .. }) => To::Group(destination),
            Some(PacketMeta { cast: Cast::All, .. }) => To::All,
            _ => To::One,
        };
        let is_packet = |meta: &PacketMeta| !meta.is_charge;
        Self {
            segment: entry.segment,
            from: entry.from,
            to,
            protocol: protocol(&entry),
            source: entry.meta.filter(is_packet).map(|meta| meta.source),
            ports: entry.meta.and_then(|meta| meta.ports),
            start: entry.start,
            airtime: entry.airtime,
            bytes: entry.bytes,
            rate_bps: entry.rate_bps,
            attempt: entry.attempt,
            fragment: entry.fragment,
            received: entry.received,
            missed: entry.missed,
        }
    }
}

fn protocol(entry: &AirEntry) -> &'static str {
    match &entry.meta {
        None if entry.attempt == 0 => "ack",
        None => "other",
        Some(meta) if meta.is_charge => "routing",
        Some(meta) => match meta.protocol {
            ICMP => "icmp",
            TCP => "tcp",
            UDP => "udp",
            _ => "other",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transmission_says_whom_it_was_for_and_what_it_was() {
        let meta = PacketMeta {
            cast: Cast::Group,
            source: Ipv4Addr::new(10, 64, 0, 1),
            destination: Ipv4Addr::new(239, 1, 2, 3),
            protocol: UDP,
            ports: Some([5000, 5683]),
            is_charge: false,
        };
        let entry = |meta, attempt| AirEntry {
            segment: 1,
            from: 2,
            meta,
            start: Duration::from_secs(1),
            airtime: Duration::from_millis(2),
            bytes: 100,
            rate_bps: 380_000,
            attempt,
            fragment: 0,
            received: vec![0],
            missed: vec![(1, "weak")],
        };
        let of = |meta, attempt| Transmission::from(entry(meta, attempt));
        let group = of(Some(meta), 1);
        assert_eq!(group.to, To::Group(meta.destination));
        assert_eq!((group.protocol, group.ports), ("udp", meta.ports));
        let charge = of(Some(PacketMeta { is_charge: true, cast: Cast::All, ..meta }), 1);
        assert_eq!((charge.protocol, charge.to, charge.source), ("routing", To::All, None));
        assert_eq!((of(None, 0).protocol, of(None, 0).to), ("ack", To::One));
        assert_eq!(of(Some(PacketMeta { protocol: ICMP, ..meta }), 1).protocol, "icmp");
    }
}
