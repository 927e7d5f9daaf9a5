use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn what_was_written_is_read(
        token in any::<[u8; TOKEN_BYTES]>(),
        fill in any::<u8>(),
        number in 0..1_u32 << 24,
        sealed in prop::collection::vec(any::<u8>(), TAG_BYTES..50),
    ) {
        let (message, second) = (&[fill; FIRST_MESSAGE_BYTES], &[fill; SECOND_MESSAGE_BYTES]);
        let connection = [fill; CONNECTION_BYTES];
        let (sealed, beginning) = (&sealed[..], &[fill; 8]);
        for packet in [
            Packet::First { token: None, message, number, sealed },
            Packet::First { token: Some(&token), message, number, sealed },
            Packet::Data { connection, number, sealed },
            Packet::Answer { message: second, number, sealed },
            Packet::Reply { number, sealed },
            Packet::Retry { beginning, token: &token },
            Packet::Reset { token: &[fill; RESET_BYTES] },
        ] {
            let mut datagram = packet.head();
            let head = datagram.len();
            if !matches!(packet, Packet::Retry { .. } | Packet::Reset { .. }) {
                datagram.extend_from_slice(sealed);
            }
            prop_assert_eq!(Packet::decode(&datagram), Ok((packet, head)));
            for cut in 0..head + TAG_BYTES.min(datagram.len() - head) {
                prop_assert!(Packet::decode(&datagram[..cut]).is_err());
            }
        }
    }

    #[test]
    fn whatever_comes_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok((packet, head)) = Packet::decode(&bytes) {
            prop_assert_eq!(packet.head(), &bytes[..head]);
        }
    }

    /// Beside a set of all numbers, as far as the window is wide.
    #[test]
    fn no_number_is_read_twice(
        steps in prop::collection::vec((any::<bool>(), 0..3000_u64), 1..200),
    ) {
        let (mut window, mut read) = (Window::default(), BTreeSet::new());
        let mut greatest = (1 << 24) - 1000;
        for (ahead, step) in steps {
            let number: u64 = if ahead { greatest + step } else { greatest.saturating_sub(step) };
            let bits = u32::try_from(number & 0xff_ffff).unwrap();
            if read.is_empty() {
                greatest = number;
                window.note(number);
            } else {
                prop_assert_eq!(window.number(bits), number);
                let was_read = window.is_read(number);
                prop_assert!(was_read || !read.contains(&number));
                prop_assert!(!was_read || read.contains(&number) || number + 1000 < greatest);
                if was_read {
                    continue;
                }
                prop_assert_eq!(window.note(number), number > greatest);
            }
            read.insert(number);
            greatest = greatest.max(number);
        }
    }
}

#[test]
fn what_is_said_is_read_and_no_other_version() {
    let said = Said { version: Said::VERSION, at_us: 1_800_000_000_000_000 };
    let bytes = said.encode();
    assert_eq!(Said::decode(&bytes), Ok(said));
    assert!(Said::decode(&bytes[1..]).is_err() && Said::decode(&[]).is_err());
    assert!(Said::decode(&[&[2][..], &bytes[1..]].concat()).is_err());
    for inside in [
        Inside::Close,
        Inside::Challenge([3; 8]),
        Inside::Response([4; 8]),
        Inside::Datagram(vec![1, 0, 1].into()),
    ] {
        assert_eq!(Inside::decode(inside.clone().encode()), Ok(inside));
    }
    for wrong in [&[0][..], &[0, 1], &[0, 3, 0, 0, 0, 0, 0, 0, 0, 0], &[0; 11]] {
        assert!(Inside::decode(wrong.to_vec().into()).is_err(), "{wrong:?}");
    }
    let granted = Granted { connection: [1, 2, 3, 4], reset: [9; RESET_BYTES] };
    let bytes = granted.encode();
    assert_eq!(Granted::decode(&bytes), Ok(granted));
    assert!(Granted::decode(&bytes[1..]).is_err());
    assert!(Granted::decode(&[&bytes[..], &[0]].concat()).is_err());
}
