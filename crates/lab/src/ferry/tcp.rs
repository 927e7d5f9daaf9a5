//! What a packet's TCP header says. The programs on a host may send any bytes.

use record::packets::TcpHeader;

use super::ipv6;

/// Shortest headers (RFC 791 §3.1, RFC 9293 §3.1).
const IPV4_BYTES: usize = 20;
const TCP_BYTES: usize = 20;
/// Protocol number of TCP.
const TCP: u8 = 6;
/// Bits of the field with the fragment's offset, without the flags (RFC 791 §3.1).
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// The TCP header of an IP packet; none when it is no TCP, is cut short, contradicts itself or is a
/// later fragment.
pub(super) fn decode(packet: &[u8]) -> Option<TcpHeader> {
    let segment = match packet.first()? >> 4 {
        6 => match ipv6::payload(packet)? {
            (TCP, segment) => segment,
            _ => return None,
        },
        _ => ipv4_segment(packet)?,
    };
    let data_offset = usize::from(*segment.get(12)? >> 4) * 4;
    if data_offset < TCP_BYTES {
        return None;
    }
    Some(TcpHeader {
        source_port: u16_at(segment, 0)?,
        destination_port: u16_at(segment, 2)?,
        sequence: u32_at(segment, 4)?,
        acknowledgement: u32_at(segment, 8)?,
        payload: u16::try_from(segment.len().checked_sub(data_offset)?).ok()?,
        flags: *segment.get(13)?,
        window: u16_at(segment, 14)?,
    })
}

/// What an IPv4 packet carries when that is TCP.
fn ipv4_segment(packet: &[u8]) -> Option<&[u8]> {
    let first = *packet.first()?;
    let header_bytes = usize::from(first & 0x0f) * 4;
    let total_bytes = usize::from(u16_at(packet, 2)?);
    let is_whole = header_bytes >= IPV4_BYTES && total_bytes <= packet.len();
    if first >> 4 != 4 || !is_whole || *packet.get(9)? != TCP {
        return None;
    }
    if u16_at(packet, 6)? & FRAGMENT_OFFSET != 0 {
        return None;
    }
    // What follows the packet in its frame is padding.
    packet.get(header_bytes..total_bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet with 4 bytes of options in each header and `payload` bytes.
    fn packet(payload: u8) -> Vec<u8> {
        let mut packet = vec![0; 24 + 24 + usize::from(payload)];
        packet[0] = 0x46;
        packet[3] = 48 + payload;
        packet[6] = 0x40;
        packet[9] = TCP;
        packet[24..48].copy_from_slice(&[
            0x1f, 0x90, 0xc0, 0x01, 1, 2, 3, 4, 5, 6, 7, 8, 0x60, 0x18, 0x01, 0x00, 0, 0, 0, 0, 1,
            1, 1, 0,
        ]);
        packet
    }

    fn header(payload: u16) -> TcpHeader {
        TcpHeader {
            source_port: 8080,
            destination_port: 49153,
            sequence: 0x0102_0304,
            acknowledgement: 0x0506_0708,
            payload,
            flags: 0x18,
            window: 256,
        }
    }

    #[test]
    fn a_header_is_read_behind_options_and_before_padding() {
        assert_eq!(decode(&packet(10)), Some(header(10)));
        let padded = [packet(0), vec![0; 6]].concat();
        assert_eq!(decode(&padded), Some(header(0)));
    }

    #[test]
    fn a_header_is_read_from_ipv6_too() {
        let segment = &packet(10)[24..];
        let mut outer = vec![0; 40];
        outer[0] = 0x60;
        outer[5] = u8::try_from(segment.len()).unwrap();
        outer[6] = TCP;
        let whole = [outer.as_slice(), segment].concat();
        assert_eq!(decode(&whole), Some(header(10)));
        outer[6] = 17;
        assert_eq!(decode(&[outer.as_slice(), segment].concat()), None, "UDP");
    }

    #[test]
    fn what_is_not_a_whole_header_is_none() {
        let changed = |at: usize, value: u8| {
            let mut packet = packet(10);
            packet[at] = value;
            decode(&packet)
        };
        assert_eq!(changed(0, 0x66), None, "version");
        assert_eq!(changed(0, 0x44), None, "header too short");
        assert_eq!(changed(9, 17), None, "UDP");
        assert_eq!(changed(7, 1), None, "a later fragment");
        assert_eq!(changed(3, 59), None, "longer than it is");
        assert_eq!(changed(3, 40), None, "ends in the header");
        assert_eq!(changed(36, 0x40), None, "data offset too short");
        assert_eq!(changed(36, 0xf0), None, "data offset beyond the end");
        for length in 0..58 {
            assert_eq!(decode(&packet(10)[..length]), None, "{length} bytes");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_packet_stops_the_reader(
            start in 0x40_u8..0x50,
            rest in proptest::collection::vec(0_u8..70, 0..80),
        ) {
            let packet = [&[start], rest.as_slice()].concat();
            if let Some(header) = decode(&packet) {
                assert!(usize::from(header.payload) <= packet.len() - IPV4_BYTES - TCP_BYTES);
            }
        }
    }
}
