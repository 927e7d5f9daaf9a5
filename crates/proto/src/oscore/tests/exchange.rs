//! Requests and responses between two ends, whatever happens to them on the way.

use proptest::prelude::*;

use super::super::{
    Algorithm, Class, CoapMessage, Context, ECHO, Endpoint, OBSERVE, OSCORE, Parameters,
    ReceivedRequest, Refusal, Replay, ResponseIv, SenderSequence, Verified, class,
    message::Direction, message::merge, proxy_uri,
};

const ALGORITHMS: [Algorithm; 4] = [
    Algorithm::AesCcm16_64_128,
    Algorithm::AesCcm16_128_128,
    Algorithm::AesGcm128,
    Algorithm::ChaCha20Poly1305,
];

fn context(algorithm: Algorithm, sender_id: &[u8], recipient_id: &[u8]) -> Context {
    Context::derive(&Parameters {
        algorithm,
        master_secret: b"a secret of both ends",
        master_salt: b"salt",
        sender_id,
        recipient_id,
        id_context: Some(b"context"),
    })
    .unwrap()
}

fn end(algorithm: Algorithm, names: [&[u8]; 2], replay: Replay) -> Endpoint {
    let context = context(algorithm, names[0], names[1]);
    Endpoint::new(context, SenderSequence::unstored(), replay)
}

/// Client and server.
fn pair(algorithm: Algorithm) -> [Endpoint; 2] {
    let fresh = || Replay::fresh(32).unwrap();
    [end(algorithm, [b"c", b""], fresh()), end(algorithm, [b"", b"c"], fresh())]
}

fn accepted(verified: Result<Verified, Refusal>) -> (CoapMessage, ReceivedRequest) {
    match verified {
        Ok(Verified::New(message, request)) => (message, request),
        other => panic!("{other:?}"),
    }
}

/// Any options but OSCORE, Proxy-Uri and Observe, which change on the way.
fn message(codes: std::ops::Range<u8>) -> impl Strategy<Value = CoapMessage> {
    let number = prop_oneof![0..70_u16, 0..400_u16, any::<u16>()];
    let value = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..20),
        prop::collection::vec(any::<u8>(), 0..700),
    ];
    let options = prop::collection::vec((number, value), 0..12);
    let payload = prop::collection::vec(any::<u8>(), 0..200);
    (codes, options, payload).prop_map(|(code, mut options, payload)| {
        options.retain(|(number, _)| ![OBSERVE, OSCORE, 35].contains(number));
        options.sort_by_key(|(number, _)| *number);
        CoapMessage { code, options, payload }
    })
}

proptest! {
    #[test]
    fn what_is_verified_is_what_was_protected(
        request in message(1..32),
        response in message(64..192),
        algorithm in prop::sample::select(&ALGORITHMS[..]),
        own in any::<bool>(),
    ) {
        let [mut client, mut server] = pair(algorithm);
        let (outer, mut sent) = client.protect_request(&request).unwrap();
        prop_assert_eq!(outer.code, 2);
        prop_assert!(outer.options().all(|(number, _)| class(number) == Class::Outer));
        let (verified, mut received) = accepted(server.verify_request(&outer));
        prop_assert_eq!(verified, request);
        prop_assert_eq!(server.verify_request(&outer).unwrap_err(), Refusal::Replay);

        let iv = if own { ResponseIv::Own } else { ResponseIv::OfRequest };
        let outer = server.protect_response(&mut received, &response, iv).unwrap();
        prop_assert_eq!(outer.code, 0x44);
        prop_assert_eq!(client.verify_response(&mut sent, &outer), Ok(response));
        prop_assert_eq!(client.verify_response(&mut sent, &outer), Err(Refusal::Replay));
    }

    /// One bit of the ciphertext or of the option, in both directions.
    #[test]
    fn a_changed_message_is_never_accepted(
        request in message(1..32),
        response in message(64..192),
        algorithm in prop::sample::select(&ALGORITHMS[..]),
        bit in any::<prop::sample::Index>(),
        own in any::<bool>(),
    ) {
        // Both have a name: an option with the name of no bytes means the same as without it.
        let fresh = || Replay::fresh(32).unwrap();
        let mut client = end(algorithm, [b"c", b"s"], fresh());
        let mut server = end(algorithm, [b"s", b"c"], fresh());
        client.set_sends_id_context(own);
        let (outer, mut sent) = client.protect_request(&request).unwrap();
        for changed in [change_payload(&outer, bit), change_option(&outer, bit)] {
            prop_assert!(server.verify_request(&changed).is_err());
        }
        let (_, mut received) = accepted(server.verify_request(&outer));
        let iv = if own { ResponseIv::Own } else { ResponseIv::OfRequest };
        let outer = server.protect_response(&mut received, &response, iv).unwrap();
        for changed in [change_payload(&outer, bit), change_option(&outer, bit)] {
            prop_assert!(client.verify_response(&mut sent, &changed).is_err());
        }
        prop_assert!(client.verify_response(&mut sent, &outer).is_ok());
    }

    #[test]
    fn any_bytes_are_refused(
        code in any::<u8>(),
        option in prop::collection::vec(any::<u8>(), 0..20),
        payload in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let [mut client, mut server] = pair(Algorithm::default());
        let outer = CoapMessage::new(code, [(OSCORE, &option[..])], &payload);
        prop_assert!(server.verify_request(&outer).is_err());
        let (_, mut sent) = client.protect_request(&CoapMessage::new(1, [], &[])).unwrap();
        prop_assert!(client.verify_response(&mut sent, &outer).is_err());
    }

    #[test]
    fn any_plaintext_is_read_or_refused(
        plain in prop::collection::vec(any::<u8>(), 0..60),
        uri in "[a-z:/?&%.#@]{0,40}",
    ) {
        let outer = CoapMessage::default();
        let _ = merge(Direction::Request, &plain, &outer);
        let _ = merge(Direction::Response, &plain, &outer);
        let _ = proxy_uri::split(uri.as_bytes());
    }
}

fn flip(bytes: &mut [u8], bit: prop::sample::Index) {
    if !bytes.is_empty() {
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

fn change_payload(message: &CoapMessage, bit: prop::sample::Index) -> CoapMessage {
    let mut message = message.clone();
    flip(&mut message.payload, bit);
    message
}

/// An empty option gets a byte.
fn change_option(message: &CoapMessage, bit: prop::sample::Index) -> CoapMessage {
    let mut message = message.clone();
    for (number, value) in &mut message.options {
        if *number == OSCORE {
            if value.is_empty() {
                value.push(1 << bit.index(8));
            } else {
                flip(value, bit);
            }
        }
    }
    message
}

#[test]
fn a_server_that_lost_its_window_asks_for_an_echo() {
    let [mut client, mut server] = pair(Algorithm::default());
    let put = CoapMessage::new(3, [(11, &b"lock"[..])], b"open");
    let old: Vec<_> = (0..3).map(|_| client.protect_request(&put).unwrap().0).collect();
    for one in &old {
        accepted(server.verify_request(one));
    }
    // The server starts anew; its numbers go on behind the watermark.
    let names: [&[u8]; 2] = [b"", b"c"];
    let lost = Replay::lost(32, [7; 8]).unwrap();
    let mut server = end(Algorithm::default(), names, lost);
    let (first, mut sent) = client.protect_request(&put).unwrap();
    let mut challenges = Vec::new();
    for one in [&old[2], &first, &old[0]] {
        let Ok(Verified::Unknown(unverified)) = server.verify_request(one) else {
            panic!("accepted or refused")
        };
        challenges.push(server.challenge(unverified).unwrap());
    }
    // With a Partial IV of the server.
    assert!(challenges.iter().all(|one| one.first(OSCORE).unwrap()[0] == 1));
    let challenge = client.verify_response(&mut sent, &challenges[1]).unwrap();
    assert_eq!(challenge, CoapMessage::new(0x81, [(ECHO, &[7; 8][..])], &[]));

    // A wrong value does not help, the right one does, and with it all older numbers are refused.
    let with = |echo: &[u8]| CoapMessage::new(3, [(11, &b"lock"[..]), (ECHO, echo)], b"open");
    let (wrong, _) = client.protect_request(&with(&[8; 8])).unwrap();
    assert!(matches!(server.verify_request(&wrong), Ok(Verified::Unknown(_))));
    let (right, _) = client.protect_request(&with(&[7; 8])).unwrap();
    let (late, _) = client.protect_request(&put).unwrap();
    assert_eq!(accepted(server.verify_request(&right)).0, with(&[7; 8]));
    for one in old.iter().chain([&first, &wrong, &right]) {
        assert_eq!(server.verify_request(one).unwrap_err(), Refusal::Replay);
    }
    accepted(server.verify_request(&late));
}

#[test]
fn notifications_are_in_order_and_accepted_once() {
    let [mut client, mut server] = pair(Algorithm::default());
    let register = CoapMessage::new(1, [(OBSERVE, &[][..]), (11, b"t")], &[]);
    let (outer, mut sent) = client.protect_request(&register).unwrap();
    assert_eq!((outer.code, outer.first(OBSERVE)), (5, Some(&[][..])));
    let (request, mut received) = accepted(server.verify_request(&outer));
    assert_eq!(request, register);

    let notification = CoapMessage::new(0x45, [(OBSERVE, &[9, 9][..])], b"21");
    let mut notify = || {
        let iv = ResponseIv::OfRequest;
        server.protect_response(&mut received, &notification, iv).unwrap()
    };
    let outers: Vec<_> = (0..4).map(|_| notify()).collect();
    assert!(outers.iter().all(|one| one.code == 0x45 && one.first(OBSERVE) == Some(&[9, 9])));
    // The nonce of the request serves once.
    assert_eq!(outers[0].first(OSCORE), Some(&[][..]));
    assert_eq!(outers[2].first(OSCORE), Some(&[1, 1][..]));
    for (at, number) in [(2, &[1][..]), (0, &[]), (3, &[2]), (1, &[])] {
        let message = client.verify_response(&mut sent, &outers[at]).unwrap();
        assert_eq!(message.first(OBSERVE), Some(number));
        assert_eq!(client.verify_response(&mut sent, &outers[at]), Err(Refusal::Replay));
    }
    // An error ends the observation.
    let error = CoapMessage::new(0x84, [], b"");
    let outer = server.protect_response(&mut received, &error, ResponseIv::OfRequest).unwrap();
    assert_eq!(client.verify_response(&mut sent, &outer), Ok(error));

    // Who did not register gets none.
    let (outer, mut sent) = client.protect_request(&CoapMessage::new(1, [], &[])).unwrap();
    let (_, mut received) = accepted(server.verify_request(&outer));
    let outer =
        server.protect_response(&mut received, &notification, ResponseIv::OfRequest).unwrap();
    assert_eq!(client.verify_response(&mut sent, &outer), Err(Refusal::NotRequested));
}

#[test]
fn responses_belong_to_their_request() {
    let [mut client, mut server] = pair(Algorithm::default());
    let get = CoapMessage::new(1, [], &[]);
    let response = CoapMessage::new(0x45, [], b"x");
    let (first, mut sent) = client.protect_request(&get).unwrap();
    let (second, mut sent_second) = client.protect_request(&get).unwrap();
    let (_, mut received) = accepted(server.verify_request(&second));
    accepted(server.verify_request(&first));
    let outer = server.protect_response(&mut received, &response, ResponseIv::Own).unwrap();
    let refused = client.verify_response(&mut sent, &outer);
    assert_eq!(refused, Err(Refusal::DecryptionFailed));
    assert_eq!(client.verify_response(&mut sent_second, &outer), Ok(response));
}

#[test]
fn outer_options_of_class_e_are_discarded() {
    let [mut client, mut server] = pair(Algorithm::default());
    let get = CoapMessage::new(1, [(3, &b"host"[..]), (11, b"a"), (16, &[3])], &[]);
    let (mut outer, _) = client.protect_request(&get).unwrap();
    // If-Match, Uri-Path, Observe and No-Response of somebody between, who also counts down.
    let added = [(1, b"e"), (11, b"b"), (OBSERVE, &[0]), (258, &[26])];
    outer.options.extend(added.map(|(number, value)| (number, value.to_vec())));
    outer.options.iter_mut().filter(|(number, _)| *number == 16).for_each(|one| one.1 = vec![2]);
    let (message, _) = accepted(server.verify_request(&outer));
    assert_eq!(message, CoapMessage::new(1, [(3, &b"host"[..]), (11, b"a"), (16, &[2])], &[]));
}

#[test]
fn a_proxy_uri_shows_scheme_and_host() {
    let [mut client, mut server] = pair(Algorithm::default());
    let uri = b"coap://example.com:61616/r%20s/?q=1&b";
    // What a Proxy-Uri takes the place of is left out.
    let get = CoapMessage::new(1, [(11, &b"old"[..]), (35, uri)], &[]);
    let (outer, _) = client.protect_request(&get).unwrap();
    assert_eq!(outer.first(35), Some(&b"coap://example.com:61616"[..]));
    let (message, _) = accepted(server.verify_request(&outer));
    let options =
        [(11, &b"r s"[..]), (11, b""), (15, b"q=1"), (15, b"b"), (35, b"coap://example.com:61616")];
    assert_eq!(message, CoapMessage::new(1, options, &[]));
    for (uri, path, query) in [
        (&b"coap://h"[..], 0, 0),
        (b"coap://h/", 0, 0),
        (b"coap://[::1]:5683/a", 1, 0),
        (b"coap://h?", 0, 1),
        (b"coap://h/a//b?x", 3, 1),
    ] {
        let parts = proxy_uri::split(uri).unwrap();
        assert_eq!((parts.path.len(), parts.query.len()), (path, query));
        assert!(uri.starts_with(parts.outer.as_bytes()));
    }
    let long = format!("coap://h/{}", "a".repeat(256));
    for wrong in
        ["", "coap:", "://h/", "coap:///a", "coap://h/#f", "coap://u@h/", "coap://h/%4", &long]
    {
        assert!(proxy_uri::split(wrong.as_bytes()).is_err(), "{wrong}");
    }
}

#[test]
fn misuse_and_foreign_messages_are_refused_by_name() {
    let [mut client, mut server] = pair(Algorithm::default());
    let empty = CoapMessage::default();
    let nested = CoapMessage::new(1, [(OSCORE, &[][..])], b"x");
    let response = CoapMessage::new(0x45, [], &[]);
    let long = CoapMessage::new(2, [], &[0; 65_534]);
    let many = CoapMessage::new(1, [(11, &b"p"[..]); 257], &[]);
    let many_of_uri = format!("coap://h?{}", "&".repeat(257));
    let many_of_uri = CoapMessage::new(1, [(35, many_of_uri.as_bytes())], &[]);
    for wrong in [&empty, &nested, &response, &long, &many, &many_of_uri] {
        assert!(client.protect_request(wrong).is_err());
    }
    // None of them has used up a number.
    assert_eq!(client.sequence_mut().peek(), 0);
    let longest = CoapMessage::new(2, [], &[0; 65_533]);
    let (outer, _) = client.protect_request(&longest).unwrap();
    assert_eq!(accepted(server.verify_request(&outer)).0, longest);

    let mut other = end(Algorithm::default(), [b"", b"d"], Replay::fresh(32).unwrap());
    assert_eq!(other.verify_request(&outer).unwrap_err(), Refusal::ContextNotFound);
    let names: [&[u8]; 2] = [b"", b"c"];
    let mut other = end(Algorithm::AesCcm16_128_128, names, Replay::fresh(32).unwrap());
    assert_eq!(other.verify_request(&outer).unwrap_err(), Refusal::DecryptionFailed);
    for (options, payload) in [
        (vec![], &b"x"[..]),
        (vec![(OSCORE, &[9, 0, b'c'][..]); 2], b"x"),
        (vec![(OSCORE, &[9, 0, b'c'][..])], b""),
        (vec![(OSCORE, &[8, b'c'][..])], b"x"),
        (vec![(OSCORE, &[1, 0][..])], b"x"),
    ] {
        let refused = server.verify_request(&CoapMessage::new(2, options, payload)).unwrap_err();
        assert!(matches!(refused, Refusal::NotDecoded(_)));
        let answer = CoapMessage::new(0x82, [(14, &[][..])], b"Failed to decode COSE");
        assert_eq!(refused.answer(), answer);
    }
    assert_eq!(Refusal::Replay.answer().payload, b"Replay detected");
    assert_eq!((Refusal::ContextNotFound.code(), Refusal::DecryptionFailed.code()), (0x81, 0x80));
}

#[test]
fn parameters_out_of_bounds_are_refused() {
    let right = Parameters {
        algorithm: Algorithm::AesGcm128,
        master_secret: b"secret",
        master_salt: &[],
        sender_id: b"123456",
        recipient_id: b"",
        id_context: None,
    };
    assert!(Context::derive(&right).is_ok());
    for wrong in [
        Parameters { sender_id: b"1234567", ..right },
        Parameters { recipient_id: b"12345678", ..right },
        Parameters { recipient_id: b"123456", ..right },
        Parameters { master_secret: b"", ..right },
        Parameters { id_context: Some(&[0; 242]), ..right },
    ] {
        assert!(Context::derive(&wrong).is_err(), "{wrong:?}");
    }
    for algorithm in ALGORITHMS {
        assert_eq!(Algorithm::of_number(algorithm.number()), Ok(algorithm));
    }
    assert!(Algorithm::of_number(2).is_err());
}

#[test]
fn signaling_messages_hide_all_their_options() {
    let [mut client, mut server] = pair(Algorithm::default());
    // 7.02 (Ping) with an option whose number is that of Uri-Host in a request.
    let ping = CoapMessage::new(0xe2, [(3, &b"x"[..]), (OBSERVE, &[1])], &[]);
    let (outer, mut sent) = client.protect_request(&ping).unwrap();
    assert_eq!((outer.code, outer.options.len()), (2, 1));
    let (message, mut received) = accepted(server.verify_request(&outer));
    assert_eq!(message, ping);
    let pong = CoapMessage::new(0xe3, [(OBSERVE, &[1][..])], &[]);
    let outer = server.protect_response(&mut received, &pong, ResponseIv::OfRequest).unwrap();
    assert_eq!((outer.code, outer.options.len()), (0x44, 1));
    assert_eq!(client.verify_response(&mut sent, &outer), Ok(pong));
}
