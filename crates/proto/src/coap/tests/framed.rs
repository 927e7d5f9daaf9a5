use proptest::prelude::*;

use super::bytes;
use crate::Error;
use crate::coap::framed::{self, Capabilities, decode, decode_websocket, head, signal};
use crate::coap::{Code, Token, Writer, option};

/// RFC 8323 §3.2, figure 6: a GET; and signals of §5.
#[test]
fn messages_of_tcp_are_read_and_written() {
    for (hex, code, token, options, payload) in [
        ("01 43 7f", Code::VALID, "7f", vec![], &b""[..]),
        ("00 e1", Code::CSM, "", vec![], b""),
        ("40 e1 22 0480 20", Code::CSM, "", vec![(2, "0480"), (4, "")], b""),
        ("01 e2 42", Code::PING, "42", vec![], b""),
        ("11 e3 42 20", Code::PONG, "42", vec![(2, "")], b""),
        (
            "d0 01 e5 21 02 ff 426164204353 4d 206f7074",
            Code::ABORT,
            "",
            vec![(2, "02")],
            b"Bad CSM opt",
        ),
    ] {
        let wire = bytes(hex);
        let (message, used) = decode(&wire, 1152).unwrap().expect(hex);
        assert_eq!((message.code, used), (code, wire.len()), "{hex}");
        assert_eq!(message.token.as_slice(), bytes(token));
        let read: Vec<_> = message.options.map(|(n, v)| (n, v.to_vec())).collect();
        let options: Vec<(u16, Vec<u8>)> =
            options.into_iter().map(|(n, v)| (n, bytes(v))).collect();
        assert_eq!((read, message.payload), (options.clone(), payload), "{hex}");
        let mut room = [0; 64];
        let mut writer = Writer::body(&mut room);
        options.iter().for_each(|(number, value)| writer.option(*number, value).unwrap());
        writer.payload(payload).unwrap();
        let len = writer.finish().unwrap();
        let mut written = head(code, &message.token, u32::try_from(len).unwrap()).to_vec();
        written.extend_from_slice(&room[..len]);
        assert_eq!(written, wire, "{hex}");
        for end in 0..wire.len() {
            assert_eq!(decode(&wire[..end], 1152), Ok(None), "{hex} cut at {end}");
        }
    }
}

/// RFC 8323 §3.2: what the nibble 13, 14 and 15 announce.
#[test]
fn lengths_are_extended() {
    let token = Token::EMPTY;
    for (len, hex) in [
        (0, "00 45"),
        (12, "c0 45"),
        (13, "d0 00 45"),
        (268, "d0 ff 45"),
        (269, "e0 0000 45"),
        (65_804, "e0 ffff 45"),
        (65_805, "f0 00000000 45"),
        (100_000, "f0 00008593 45"),
    ] {
        assert_eq!(&*head(Code::CONTENT, &token, len), bytes(hex), "{len}");
        let mut wire = bytes(hex);
        if len > 1 {
            wire.push(0xff);
            wire.resize(wire.len() + usize::try_from(len).unwrap() - 1, b'x');
            let (message, used) = decode(&wire, u32::MAX).unwrap().unwrap();
            assert_eq!((message.payload.len() + 1, used), (len.try_into().unwrap(), wire.len()));
        }
    }
}

#[test]
fn what_is_too_long_or_broken_is_refused_at_its_head() {
    let limit = |value| Err(Error::Limit { what: "message in bytes", value, limit: 1152 });
    assert_eq!(decode(&bytes("e0 0400"), 1152), limit(0x400 + 269 + 4));
    assert_eq!(decode(&bytes("f0 ffffffff"), 1152), limit(0xffff_ffff + 65_805 + 6));
    assert!(decode(&bytes("09 45"), 1152).is_err());
    assert!(decode(&bytes("10 45 ff"), 1152).is_err());
    assert!(decode(&bytes("10 00 00"), 1152).is_err());
    assert!(decode_websocket(&bytes("10 45 ff")).is_err());
    assert!(decode_websocket(&bytes("04 45 0000")).is_err());
    assert!(decode_websocket(&bytes("00")).is_err());
}

/// RFC 8323 §4.2: the frame has the length, the message says 0.
#[test]
fn messages_of_websocket_go_to_the_end_of_the_frame() {
    let mut wire = framed::head_of_websocket(Code::CONTENT, &Token::new(&[0x4a]).unwrap()).to_vec();
    assert_eq!(wire, bytes("01 45 4a"));
    wire.extend_from_slice(b"\xffhello");
    let message = decode_websocket(&wire).unwrap();
    assert_eq!((message.code, message.payload), (Code::CONTENT, &b"hello"[..]));
    assert_eq!(message.token.as_slice(), [0x4a]);
}

#[test]
fn capabilities_are_those_that_were_announced_last() {
    let mut sender = Capabilities::default();
    assert_eq!(sender.max_message_bytes, 1152);
    let csm = |hex: &str| bytes(&format!("00 e1 {hex}"));
    sender.observe(&decode_websocket(&csm("22 0480 20")).unwrap()).unwrap();
    assert!(sender.is_block_wise && !sender.is_bert());
    sender.observe(&decode_websocket(&csm("23 010000")).unwrap()).unwrap();
    assert!(sender.is_bert() && sender.max_message_bytes == 0x1_0000);
    let unknown = Error::Peer { what: "unknown critical CSM option", value: 9 };
    assert_eq!(sender.observe(&decode_websocket(&csm("90")).unwrap()), Err(unknown));
    // An elective one that is unknown does not count.
    assert_eq!(sender.observe(&decode_websocket(&csm("81 00")).unwrap()), Ok(()));
    assert_eq!(signal::known(Code::RELEASE), [2, 4]);
    assert!(!option::is_critical(signal::HOLD_OFF));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(wire in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(Some((_, used))) = decode(&wire, 1152) {
            prop_assert!(used <= wire.len() && used >= 2);
        }
        let _ = decode_websocket(&wire);
    }
}
