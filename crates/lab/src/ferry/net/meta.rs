//! What a frame of a net is: whom it is for, and what the record says of it.

use std::net::Ipv4Addr;

use link::medium::PortId;

use crate::ferry::frame::Frame;

/// What the MAC addresses of a net's interfaces begin with: locally administered, for one.
const PREFIX: [u8; 2] = [0x02, 0x4e];
/// Shortest header (RFC 791 §3.1).
const IPV4_BYTES: usize = 20;
/// Protocol numbers of IGMP, TCP and UDP.
const IGMP: u8 = 2;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Bits of the field with the fragment's offset, without the flags (RFC 791 §3.1).
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// The MAC address of a port on a segment.
pub(crate) fn mac(segment: u16, port: PortId) -> [u8; 6] {
    let ([c0, c1], [p0, p1]) = (segment.to_be_bytes(), port.to_be_bytes());
    [PREFIX[0], PREFIX[1], c0, c1, p0, p1]
}

/// Whom a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cast {
    /// One port of the segment.
    One(PortId),
    /// The members of a group (RFC 1112 §6.4).
    Group,
    /// All.
    All,
    /// No port of this segment.
    Unknown,
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketMeta {
    pub(crate) cast: Cast,
    /// The first sender's address.
    pub(crate) source: Ipv4Addr,
    /// The last receiver's, or the group's.
    pub(crate) destination: Ipv4Addr,
    /// The number of the protocol (RFC 791 §3.1).
    pub(crate) protocol: u8,
    /// Of TCP and UDP; none of later fragments.
    pub(crate) ports: Option<[u16; 2]>,
    /// It stands for what a protocol of routing would send.
    pub(crate) is_charge: bool,
}

impl PacketMeta {
    /// Of a frame on a segment; none when it carries no packet of IPv4.
    pub(super) fn of(frame: &Frame, segment: u16) -> Option<Self> {
        if frame.is_filler() {
            return Some(Self { cast: Cast::All, is_charge: true, ..Self::none() });
        }
        let packet = frame.packet();
        let header_bytes = usize::from(packet.first()? & 0x0f) * 4;
        if packet.first()? >> 4 != 4 || header_bytes < IPV4_BYTES || packet.len() < header_bytes {
            return None;
        }
        let address = |at: usize| {
            let octets: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
            Some(Ipv4Addr::from(octets))
        };
        let word = |at: usize| {
            let octets: [u8; 2] = packet.get(at..at + 2)?.try_into().ok()?;
            Some(u16::from_be_bytes(octets))
        };
        let protocol = *packet.get(9)?;
        let is_first = word(6)? & FRAGMENT_OFFSET == 0;
        let has_ports = matches!(protocol, TCP | UDP) && is_first;
        let ports = || Some([word(header_bytes)?, word(header_bytes + 2)?]);
        Some(Self {
            cast: cast(frame.as_bytes(), segment),
            source: address(12)?,
            destination: address(16)?,
            protocol,
            ports: if has_ports { ports() } else { None },
            is_charge: false,
        })
    }

    /// Whether it is a report of group membership (RFC 3376).
    pub(super) fn is_igmp(&self) -> bool {
        self.protocol == IGMP
    }

    /// Of no packet.
    fn none() -> Self {
        Self {
            cast: Cast::Unknown,
            source: Ipv4Addr::UNSPECIFIED,
            destination: Ipv4Addr::UNSPECIFIED,
            protocol: 0,
            ports: None,
            is_charge: false,
        }
    }
}

fn cast(frame: &[u8], segment: u16) -> Cast {
    let Some(Ok(to)) = frame.get(..6).map(<[u8; 6]>::try_from) else { return Cast::Unknown };
    match to {
        [0xff, 0xff, 0xff, 0xff, 0xff, 0xff] => Cast::All,
        [first, ..] if first & 1 == 1 => Cast::Group,
        [p0, p1, c0, c1, high, low]
            if [p0, p1] == PREFIX && u16::from_be_bytes([c0, c1]) == segment =>
        {
            Cast::One(PortId::from_be_bytes([high, low]))
        }
        _ => Cast::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ferry::frame::Pool;

    fn frame(to: [u8; 6], packet: &[u8]) -> Frame {
        let bytes = [&to, &[0; 6][..], &[8, 0], packet].concat();
        Pool::default().admit(&bytes).ok().unwrap()
    }

    /// A packet of UDP from 10.0.0.1 port 5000 to 10.0.0.2 port 5683.
    fn packet() -> Vec<u8> {
        let mut packet = vec![0; 30];
        packet[0] = 0x45;
        packet[9] = UDP;
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet[20..24].copy_from_slice(&[0x13, 0x88, 0x16, 0x33]);
        packet
    }

    #[test]
    fn an_address_says_which_port_of_which_segment() {
        let cast = |to| PacketMeta::of(&frame(to, &packet()), 3).unwrap().cast;
        assert_eq!(cast(mac(3, 700)), Cast::One(700));
        assert_eq!(cast(mac(4, 700)), Cast::Unknown);
        assert_eq!(cast([0xff; 6]), Cast::All);
        assert_eq!(cast([1, 0, 0x5e, 1, 2, 3]), Cast::Group);
        assert_eq!(cast([2, 0, 0, 0, 0, 1]), Cast::Unknown);
    }

    #[test]
    fn what_a_packet_is_stands_in_its_header() {
        let meta = PacketMeta::of(&frame(mac(0, 1), &packet()), 0).unwrap();
        assert_eq!(meta.source, Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(meta.destination, Ipv4Addr::new(10, 0, 0, 2));
        assert_eq!((meta.protocol, meta.ports), (UDP, Some([5000, 5683])));
        let mut later = packet();
        later[7] = 1;
        assert_eq!(PacketMeta::of(&frame(mac(0, 1), &later), 0).unwrap().ports, None);
        let mut six = packet();
        six[0] = 0x60;
        assert_eq!(PacketMeta::of(&frame(mac(0, 1), &six), 0), None);
        for length in 1..20 {
            assert_eq!(PacketMeta::of(&frame(mac(0, 1), &packet()[..length]), 0), None);
        }
        let filler = PacketMeta::of(&Pool::default().filler(50), 0).unwrap();
        assert!(filler.is_charge && filler.cast == Cast::All);
    }

    proptest::proptest! {
        #[test]
        fn no_packet_stops_the_reader(bytes in proptest::collection::vec(0_u8..80, 1..64)) {
            let _ = PacketMeta::of(&frame(mac(0, 0), &bytes), 0);
        }
    }
}
