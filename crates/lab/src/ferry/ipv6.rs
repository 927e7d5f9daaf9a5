//! What the headers of an IPv6 packet say. The programs on a host may send any bytes.

/// Length of the fixed header (RFC 8200 §3).
const HEADER_BYTES: usize = 40;
/// Most headers between the fixed one and what the packet carries: the standard names seven, most
/// of them once (RFC 8200 §4.1).
const MAX_EXTENSION_HEADERS: usize = 8;
/// Numbers of headers that others may follow (RFC 8200 §4).
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;
/// Number of ICMP for IPv6, and its messages of who wants which group: RFC 2710 §3, RFC 3810 §5.2.
const ICMP: u8 = 58;
const REPORT_V1: u8 = 131;
const DONE_V1: u8 = 132;
const REPORT_V2: u8 = 143;

/// The number of the protocol that a packet carries, and its bytes, without padding of the frame;
/// none when the packet is cut short, contradicts itself or is a later fragment.
pub(super) fn payload(packet: &[u8]) -> Option<(u8, &[u8])> {
    if packet.first()? >> 4 != 6 {
        return None;
    }
    let length = usize::from(u16::from_be_bytes(packet.get(4..6)?.try_into().ok()?));
    let mut rest = packet.get(HEADER_BYTES..HEADER_BYTES + length)?;
    let mut kind = *packet.get(6)?;
    for _ in 0..MAX_EXTENSION_HEADERS {
        let header_bytes = match kind {
            HOP_BY_HOP | ROUTING | DESTINATION => (usize::from(*rest.get(1)?) + 1) * 8,
            FRAGMENT => {
                let offset = u16::from_be_bytes(rest.get(2..4)?.try_into().ok()?) >> 3;
                if offset != 0 {
                    return None;
                }
                8
            }
            _ => return Some((kind, rest)),
        };
        kind = *rest.first()?;
        rest = rest.get(header_bytes..)?;
    }
    None
}

/// Whether a packet only tells which groups of the link itself its host listens to (RFC 4291
/// §2.7): the kernel sends such reports by itself for each address that a host has, and nobody on
/// the link needs them, since such groups are never forwarded.
pub(super) fn reports_own_groups(packet: &[u8]) -> bool {
    groups(packet).is_some_and(|all| all)
}

/// Whether all groups of a report stay on the link; none when the packet is no whole report.
fn groups(packet: &[u8]) -> Option<bool> {
    let (ICMP, message) = payload(packet)? else { return None };
    match *message.first()? {
        REPORT_V1 | DONE_V1 => Some(stays_on_link(message.get(8..24)?)),
        REPORT_V2 => {
            let records = u16::from_be_bytes(message.get(6..8)?.try_into().ok()?);
            let mut rest = message.get(8..)?;
            for _ in 0..records {
                let auxiliary_bytes = usize::from(*rest.get(1)?) * 4;
                let sources = usize::from(u16::from_be_bytes(rest.get(2..4)?.try_into().ok()?));
                if !stays_on_link(rest.get(4..20)?) {
                    return Some(false);
                }
                rest = rest.get(20 + sources * 16 + auxiliary_bytes..)?;
            }
            Some(records > 0)
        }
        _ => None,
    }
}

/// Whether a group's scope is the link or less.
fn stays_on_link(group: &[u8]) -> bool {
    const LINK_LOCAL: u8 = 2;
    matches!(group, [0xff, second, ..] if second & 0x0f <= LINK_LOCAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; HEADER_BYTES];
        packet[0] = 0x60;
        packet[4..6].copy_from_slice(&u16::try_from(payload.len()).unwrap().to_be_bytes());
        packet[6] = next;
        packet.extend_from_slice(payload);
        packet
    }

    /// As Linux sends it: router alert in a hop-by-hop header, then the report.
    fn report_v2(groups: &[[u8; 2]]) -> Vec<u8> {
        let mut body = vec![ICMP, 0, 5, 2, 0, 0, 1, 0, REPORT_V2, 0, 0, 0, 0, 0, 0];
        body.push(u8::try_from(groups.len()).unwrap());
        for group in groups {
            body.extend([4, 0, 0, 0]);
            body.extend(group);
            body.extend([0; 14]);
        }
        packet(HOP_BY_HOP, &body)
    }

    #[test]
    fn what_a_packet_carries_is_found_behind_its_headers_and_before_padding() {
        assert_eq!(payload(&packet(6, &[1, 2, 3])), Some((6, &[1, 2, 3][..])));
        let padded = [packet(6, &[1, 2, 3]), vec![0; 7]].concat();
        assert_eq!(payload(&padded), Some((6, &[1, 2, 3][..])));
        let first = [17, 0, 0, 1, 0, 0, 0, 9, 5, 6];
        assert_eq!(payload(&packet(FRAGMENT, &first)), Some((17, &[5, 6][..])), "first fragment");
        let later = [17, 0, 0, 8, 0, 0, 0, 9, 5, 6];
        assert_eq!(payload(&packet(FRAGMENT, &later)), None, "later fragment");
        let many: Vec<u8> = [DESTINATION, 0, 0, 0, 0, 0, 0, 0].repeat(20);
        assert_eq!(payload(&packet(DESTINATION, &many)), None, "too many headers");
        let whole = packet(6, &[1, 2, 3]);
        assert!((0..whole.len()).all(|length| payload(&whole[..length]).is_none()));
    }

    #[test]
    fn only_reports_of_nothing_but_the_links_own_groups_are_distinguished() {
        assert!(reports_own_groups(&report_v2(&[[0xff, 2]])));
        assert!(reports_own_groups(&report_v2(&[[0xff, 2], [0xff, 0x12]])));
        assert!(!reports_own_groups(&report_v2(&[[0xff, 2], [0xff, 5]])), "one goes further");
        assert!(!reports_own_groups(&report_v2(&[])));
        let mut v1 = vec![0; 24];
        v1[0] = REPORT_V1;
        v1[8..10].copy_from_slice(&[0xff, 2]);
        assert!(reports_own_groups(&packet(ICMP, &v1)));
        v1[0] = 135;
        assert!(!reports_own_groups(&packet(ICMP, &v1)), "a question for a neighbour");
        assert!(!reports_own_groups(&packet(17, &v1)));
        let cut = report_v2(&[[0xff, 2], [0xff, 2]]);
        assert!((0..cut.len()).all(|length| !reports_own_groups(&cut[..length])));
    }

    proptest::proptest! {
        #[test]
        fn no_packet_stops_the_reader(
            next in 0_u8..64,
            rest in proptest::collection::vec(0_u8..70, 0..120),
        ) {
            let packet = packet(next, &rest);
            reports_own_groups(&packet);
            if let Some((_, payload)) = payload(&packet) {
                assert!(payload.len() <= rest.len());
            }
        }
    }
}
