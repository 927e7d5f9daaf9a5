//! PDUs of sessions and of WTP, and messages in packets.

use proptest::prelude::*;

use crate::Error;
use crate::wsp::sar::{Progress, Reassembly, Segments};
use crate::wsp::session::{Capabilities, Capability, SessionPdu, VERSION, encode_capabilities};
use crate::wsp::wtp::{Class, Kind, Packet, Packets, Trailer};

fn session_bytes(pdu: &SessionPdu<'_>) -> Vec<u8> {
    let mut room = vec![0; 1024];
    let len = pdu.encode(&mut room).unwrap();
    room.truncate(len);
    room
}

fn packet_bytes(packet: &Packet<'_>) -> Vec<u8> {
    let mut room = vec![0; 1024];
    let len = packet.encode(&mut room).unwrap();
    room.truncate(len);
    room
}

/// WAP-230 §8.2.2 and §8.3.
#[test]
fn sessions_open_and_close() {
    let all = [
        Capability::ClientSduBytes(1400),
        Capability::ServerSduBytes(0),
        Capability::Options(0x40),
        Capability::MaxMethods(1),
        Capability::Other { octets: b"x-own\0\x01" },
    ];
    let mut room = [0; 64];
    let len = encode_capabilities(&all, &mut room).unwrap();
    let bytes = b"\x03\x80\x8a\x78\x02\x81\x00\x02\x82\x40\x02\x83\x01\x07x-own\0\x01";
    assert_eq!(room[..len], bytes[..]);
    let read: Result<Vec<_>, _> = Capabilities::new(bytes).collect();
    assert_eq!(read.unwrap(), all);

    let connect =
        SessionPdu::Connect { version: VERSION, capabilities: &bytes[..4], headers: b"\x80\x94" };
    assert_eq!(session_bytes(&connect), b"\x01\x10\x04\x02\x03\x80\x8a\x78\x80\x94");
    let reply = SessionPdu::ConnectReply { session: 300, capabilities: b"", headers: b"" };
    assert_eq!(session_bytes(&reply), b"\x02\x82\x2c\x00\x00");
    let disconnect = SessionPdu::Disconnect { session: 5 };
    assert_eq!(session_bytes(&disconnect), b"\x05\x05");
    let resume = SessionPdu::Resume { session: 5, capabilities: b"", headers: b"\x80\x94" };
    assert_eq!(session_bytes(&resume), b"\x09\x05\x00\x80\x94");
    let redirect = SessionPdu::Redirect { flags: 0x80, addresses: b"\x04\x7f\x00\x00\x01" };
    for pdu in [connect, reply, disconnect, resume, redirect, SessionPdu::Suspend { session: 1 }] {
        let bytes = session_bytes(&pdu);
        assert_eq!(SessionPdu::decode(&bytes), Ok(pdu));
    }
    let push = SessionPdu::decode(b"\x07\x01\xaex").unwrap();
    assert_eq!(push, SessionPdu::ConfirmedPush { headers: b"\xae", body: b"x" });
    assert!(matches!(push.encode(&mut [0; 16]), Err(Error::Caller { .. })));
    for wrong in [&b""[..], b"\x01\x10\x05\x00a", b"\x05\x05\x00", b"\x40\x00", b"\x02\x80"] {
        assert!(SessionPdu::decode(wrong).is_err(), "{wrong:02x?}");
    }
    for wrong in [&b"\x00"[..], b"\x02\x80", b"\x01\x83", b"\x03\x83\x01\x02", b"\x05\x80"] {
        assert!(Capabilities::new(wrong).any(|one| one.is_err()), "{wrong:02x?}");
    }
}

/// WAP-224 §8.3 and §8.4.
#[test]
fn transactions_have_the_layout_of_the_clauses() {
    let invoke = |trailer, data| Kind::Invoke {
        class: Class::Result,
        tid_new: false,
        user_acknowledges: true,
        trailer,
        data,
    };
    let segment = Kind::Segment { of_result: true, psn: 2, trailer: Trailer::Group, data: b"d" };
    let cases: [(u16, bool, Kind<'_>, &[u8]); 9] = [
        (1, false, invoke(Trailer::Message, b"\x01"), b"\x0a\x00\x01\x12\x01"),
        (0x8001, true, Kind::Result { trailer: Trailer::None, data: b"ab" }, b"\x11\x80\x01ab"),
        (2, false, Kind::Ack { verify: false, psn: None }, b"\x18\x00\x02"),
        (2, true, Kind::Ack { verify: true, psn: None }, b"\x1d\x00\x02"),
        (2, false, Kind::Ack { verify: false, psn: Some(7) }, b"\x98\x00\x02\x19\x07"),
        (3, false, Kind::Abort { by_provider: true, reason: 4 }, b"\x20\x00\x03\x04"),
        (3, false, Kind::Abort { by_provider: false, reason: 0xe0 }, b"\x21\x00\x03\xe0"),
        (0x8004, false, segment, b"\x34\x80\x04\x02d"),
        (5, false, Kind::NegativeAck { missing: &[1, 3] }, b"\x38\x00\x05\x02\x01\x03"),
    ];
    for (tid, again, kind, bytes) in cases {
        let packet = Packet { tid, again, kind };
        assert_eq!(packet_bytes(&packet), bytes, "{packet:?}");
        assert_eq!(Packet::decode(bytes), Ok(packet));
    }
    // Items that nobody knows, short and long, are passed over.
    let data = Packet::decode(b"\x92\x00\x01\x89\xaa\x0c\x02\xbb\xccdata").unwrap();
    assert_eq!(data.kind, Kind::Result { trailer: Trailer::Message, data: b"data" });
    let wrong = [
        &b""[..],
        b"\x0a\x00",
        b"\x0a\x00\x01\x13",
        b"\x0a\x00\x01\x52",
        b"\x18\x00\x02\x00",
        b"\x22\x00\x03\x04",
        b"\x38\x00\x05\x03\x01",
        b"\x92\x00\x01\x8c\xff",
        b"\x40\x00\x01",
    ];
    for bytes in wrong {
        assert!(Packet::decode(bytes).is_err(), "{bytes:02x?}");
    }
}

#[test]
fn datagrams_may_have_many_packets() {
    let one: Vec<_> = Packets::new(b"\x18\x00\x02").collect();
    assert_eq!(one, [Ok(&b"\x18\x00\x02"[..])]);
    let two: Vec<_> = Packets::new(b"\x00\x03\x18\x00\x02\x80\x04\x20\x00\x03\x04").collect();
    assert_eq!(two, [Ok(&b"\x18\x00\x02"[..]), Ok(&b"\x20\x00\x03\x04"[..])]);
    let cut: Vec<_> = Packets::new(b"\x00\x03\x18\x00").collect();
    assert!(matches!(cut[..], [Err(Error::Truncated { .. })]));
}

#[test]
fn groups_are_acknowledged_and_what_is_missing_is_named() {
    let message: Vec<u8> = (0..=255).cycle().take(1000).collect();
    let segments = Segments::new(&message, 100).unwrap();
    let mut reassembly = Reassembly::new(1000);
    let first: Vec<_> = segments.group(0).collect();
    assert_eq!(first.len(), 8);
    for segment in &first {
        if segment.psn != 3 && segment.psn != 5 {
            let progress = reassembly.push(*segment).unwrap();
            let is_last = segment.psn == 7;
            assert_eq!(progress == Progress::Missing(vec![3, 5]), is_last);
        }
    }
    assert_eq!(reassembly.push(first[3]), Ok(Progress::Missing(vec![5])));
    assert_eq!(reassembly.push(first[5]), Ok(Progress::Acknowledge(7)));
    // The acknowledgement was lost.
    assert_eq!(reassembly.push(first[7]), Ok(Progress::Acknowledge(7)));
    assert_eq!(reassembly.push(first[0]), Ok(Progress::More));
    let last: Vec<_> = segments.group(8).collect();
    assert_eq!(last.len(), 2);
    assert_eq!(reassembly.push(last[1]), Ok(Progress::Missing(vec![8])));
    assert_eq!(reassembly.push(last[0]), Ok(Progress::Whole { psn: 9, message: message.clone() }));
    assert_eq!(reassembly.push(last[1]), Ok(Progress::Acknowledge(9)));
    assert_eq!(reassembly.held_bytes(), 0);
}

#[test]
fn messages_are_bounded() {
    assert!(matches!(Segments::new(&[0; 257], 1), Err(Error::Limit { .. })));
    assert!(matches!(Segments::new(&[0; 1], 0), Err(Error::Caller { .. })));
    let message = [0; 30];
    let segments = Segments::new(&message, 10).unwrap();
    let mut reassembly = Reassembly::new(29);
    assert_eq!(reassembly.push(segments.get(0).unwrap()), Ok(Progress::More));
    assert_eq!(reassembly.push(segments.get(1).unwrap()), Ok(Progress::More));
    assert!(matches!(reassembly.push(segments.get(2).unwrap()), Err(Error::Limit { .. })));
    assert_eq!(segments.get(3), None);
    let empty = Segments::new(&[], 10).unwrap();
    let whole = Progress::Whole { psn: 0, message: Vec::new() };
    assert_eq!(Reassembly::new(0).push(empty.get(0).unwrap()), Ok(whole));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        if let Ok(pdu) = SessionPdu::decode(&bytes)
            && !matches!(pdu, SessionPdu::ConfirmedPush { .. })
        {
            let again = session_bytes(&pdu);
            prop_assert_eq!(SessionPdu::decode(&again), Ok(pdu));
        }
        prop_assert!(Capabilities::new(&bytes).count() <= bytes.len());
        for packet in Packets::new(&bytes).flatten() {
            if let Ok(packet) = Packet::decode(packet) {
                let again = packet_bytes(&packet);
                prop_assert_eq!(Packet::decode(&again), Ok(packet));
            }
        }
    }

    /// In any order, some more than once, and with what is missing sent again, all comes.
    #[test]
    fn messages_come_whole(
        message in proptest::collection::vec(any::<u8>(), 0..3000),
        packet_bytes in 12..400_usize,
        lost in any::<u64>(),
    ) {
        let segments = Segments::new(&message, packet_bytes).unwrap();
        let mut reassembly = Reassembly::new(message.len());
        let (mut next, mut step, mut result) = (0_u8, 0_u32, None);
        while result.is_none() {
            let mut waiting: Vec<_> = segments.group(next).collect();
            if lost & 1 == 1 {
                waiting.reverse();
            }
            while let Some(segment) = waiting.pop() {
                step += 1;
                prop_assert!(step < 2000);
                if lost.rotate_right(step * 7) & 3 == 1 && step < 1000 {
                    // The sender's timer sends it again.
                    waiting.insert(0, segment);
                    continue;
                }
                match reassembly.push(segment).unwrap() {
                    Progress::More | Progress::Missing(_) => {}
                    Progress::Acknowledge(psn) => next = psn + 1,
                    Progress::Whole { message, .. } => result = Some(message),
                }
            }
        }
        prop_assert_eq!(result, Some(message));
    }
}
