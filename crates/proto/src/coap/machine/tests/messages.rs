use super::*;

use Kind::{Acknowledgement as Ack, Confirmable as Con, NonConfirmable as Non, Reset};

/// RFC 7252 figure 2, 4 and 16.
#[test]
fn an_answer_goes_with_the_acknowledgement() {
    let (mut client, mut server) = (endpoint(), endpoint());
    let outputs = run(&mut client, s(0), request(5, get()));
    let (kind, code, mid) = only(&outputs);
    assert_eq!((kind, code), (Con, Code::GET));
    let outputs = run(&mut server, s(0), datagram(CLIENT, &sent(&outputs)[0]));
    let respond = Input::Respond { exchange: exchange(&outputs), content: content("22.3 C") };
    let outputs = run(&mut server, s(0), respond);
    assert_eq!(only(&outputs), (Ack, Code::CONTENT, mid));
    let outputs = run(&mut client, ms(80), datagram(SERVER, &sent(&outputs)[0]));
    let response = Output::Response { request: 5, content: content("22.3 C"), is_last: true };
    assert_eq!(outputs, [response]);
    assert_eq!(
        client.common.peers.get(SERVER).and_then(|place| place.round_trip.smoothed()),
        Some(ms(80))
    );
    // Nothing is left to be done at either end.
    assert!(run(&mut client, s(400), Input::Wake).is_empty());
    assert!(run(&mut server, s(400), Input::Wake).is_empty());
}

/// RFC 7252 figure 5 and 18, with a duplicate of each message.
#[test]
fn a_late_answer_goes_by_itself() {
    let (mut client, mut server) = (endpoint(), endpoint());
    let first = sent(&run(&mut client, s(0), request(5, get())))[0].clone();
    let number = exchange(&run(&mut server, s(0), datagram(CLIENT, &first)));
    assert!(run(&mut server, ms(100), datagram(CLIENT, &first)).is_empty());
    let ack = run(&mut server, ms(500), Input::Wake);
    assert!(matches!(only(&ack), (Ack, Code::EMPTY, _)));
    assert_eq!(run(&mut server, ms(600), datagram(CLIENT, &first)), ack);
    assert!(run(&mut client, ms(700), datagram(SERVER, &sent(&ack)[0])).is_empty());
    assert!(run(&mut client, s(100), Input::Wake).is_empty());
    let respond = Input::Respond { exchange: number, content: content("x") };
    let separate = run(&mut server, s(101), respond);
    assert!(matches!(only(&separate), (Con, Code::CONTENT, _)));
    let outputs = run(&mut client, s(101), datagram(SERVER, &sent(&separate)[0]));
    assert!(matches!(outputs[1], Output::Response { request: 5, is_last: true, .. }));
    let again = run(&mut client, s(102), datagram(SERVER, &sent(&separate)[0]));
    assert_eq!(again, outputs[..1]);
    assert!(run(&mut server, s(102), datagram(CLIENT, &sent(&again)[0])).is_empty());
    assert!(run(&mut server, s(400), Input::Wake).is_empty());
    assert_eq!((server.counts().duplicates, client.counts().duplicates), (2, 1));
}

/// RFC 7252 §4.2, §4.8: five transmissions, each wait about twice the last, then it fails.
#[test]
fn what_is_not_acknowledged_is_sent_again_and_fails() {
    let mut client = endpoint();
    let first = run(&mut client, s(0), request(5, get()));
    let mut times = vec![s(0)];
    let mut now = s(0);
    loop {
        now += ms(50);
        let outputs = run(&mut client, now, Input::Wake);
        match &outputs[..] {
            [] => {}
            [Output::Failed { request: 5, reason: Reason::TimedOut }] => break,
            outputs => {
                assert_eq!(outputs, first);
                times.push(now);
            }
        }
    }
    assert_eq!(times.len(), 5);
    let waits: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits[0] >= s(2) && waits[0] <= ms(3050), "{waits:?}");
    assert!(waits.windows(2).all(|pair| pair[1] > pair[0].mul_f64(1.4)), "{waits:?}");
    assert!(now < s(60), "{now:?}");
}

#[test]
fn a_frame_that_takes_seconds_is_not_sent_again_while_it_leaves() {
    let mut client = Endpoint::<u8>::new(&Settings { rate_bps: Some(1200), ..settings(1) });
    let put = Content::new(Code::PUT).with_payload(vec![0; 1000]);
    for peer in 0..3 {
        let (content, is_confirmable) = (put.clone(), true);
        let input = Input::Request { request: peer.into(), peer, content, is_confirmable };
        assert_eq!(sent(&run(&mut client, s(0), input)).len(), 1);
    }
    // Each takes 7 s, and so may its answer; the third leaves behind the others.
    assert!(run(&mut client, s(16), Input::Wake).is_empty());
    let again = run(&mut client, s(20), Input::Wake);
    assert!(matches!(again[..], [Output::Datagram { peer: 0, .. }]), "{again:?}");
}

/// RFC 7252 §4.7.
#[test]
fn one_message_is_outstanding_to_a_peer() {
    let (mut client, mut server) = (endpoint(), endpoint());
    let first = run(&mut client, s(0), request(1, get()));
    assert!(run(&mut client, s(0), request(2, get())).is_empty());
    let elsewhere = Input::Request { request: 3, peer: 9, content: get(), is_confirmable: true };
    assert_eq!(sent(&run(&mut client, s(0), elsewhere)).len(), 1);
    let number = exchange(&run(&mut server, s(0), datagram(CLIENT, &sent(&first)[0])));
    let respond = Input::Respond { exchange: number, content: content("x") };
    let answer = sent(&run(&mut server, s(0), respond));
    let outputs = run(&mut client, s(1), datagram(SERVER, &answer[0]));
    assert!(matches!(outputs[..], [Output::Response { request: 1, .. }, Output::Datagram { .. }]));
}

#[test]
fn a_peer_that_is_silent_leaves_room_for_others() {
    let mut client = endpoint();
    for number in 0..MAX_REQUESTS_PER_PEER as u64 {
        let outputs = run(&mut client, s(0), request(number, get()));
        assert!(!outputs.iter().any(|output| matches!(output, Output::Failed { .. })));
    }
    let full = |request| [Output::Failed { request, reason: Reason::Full }];
    assert_eq!(run(&mut client, s(0), request(9999, get())), full(9999));
    let elsewhere = Input::Request { request: 3000, peer: 9, content: get(), is_confirmable: true };
    assert_eq!(sent(&run(&mut client, s(0), elsewhere)).len(), 1);
}

/// RFC 7252 §4.7: to who may not be there no more than PROBING_RATE.
#[test]
fn requests_without_acknowledgement_wait_for_signs_of_life() {
    let mut client = endpoint();
    let non =
        |request| Input::Request { request, peer: SERVER, content: get(), is_confirmable: false };
    let bytes = sent(&run(&mut client, s(0), non(1)))[0].clone();
    assert!(run(&mut client, s(0), non(2)).is_empty());
    assert!(run(&mut client, s(bytes.len() as u64 - 1), Input::Wake).is_empty());
    assert_eq!(sent(&run(&mut client, s(bytes.len() as u64), Input::Wake)).len(), 1);
    let outputs = run(&mut client, s(1000), Input::Wake);
    let failed = |request| Output::Failed { request, reason: Reason::NoAnswer };
    assert_eq!(outputs, [failed(1), failed(2)]);
}

/// RFC 7252 §4.2, §4.3, §5.4.1.
#[test]
fn what_makes_no_sense_is_reset_or_ignored() {
    let mut server = endpoint();
    let mut reply = |bytes: &[u8]| {
        let input = datagram(CLIENT, &Bytes::copy_from_slice(bytes));
        let outputs = run(&mut server, s(0), input);
        assert!(outputs.iter().all(|output| matches!(output, Output::Datagram { .. })));
        sent(&outputs).first().map(|bytes| (bytes.len(), only(&outputs)))
    };
    let reset = |mid| Some((4, (Reset, Code::EMPTY, mid)));
    assert_eq!(reply(&message(Con, Code::EMPTY, 1, b"", &[])), reset(1));
    assert_eq!(reply(b"\x40\x01\x00\x02\xff"), reset(2));
    assert_eq!(reply(b"\x50\x01\x00\x02\xff"), None);
    assert_eq!(reply(b"\x80\x01\x00\x02"), None);
    assert_eq!(reply(b""), None);
    assert_eq!(reply(&message(Con, Code::new(1, 1), 3, b"", &[])), reset(3));
    assert_eq!(reply(&message(Con, Code::CSM, 4, b"", &[])), reset(4));
    assert_eq!(reply(&message(Con, Code::CONTENT, 5, b"", &[])), reset(5));
    assert_eq!(reply(&message(Non, Code::CONTENT, 6, b"", &[])), None);
    assert_eq!(reply(&message(Non, Code::CONTENT, 6, b"", &[(6, b"\x01")])), reset(6));
    assert_eq!(reply(&message(Ack, Code::CONTENT, 7, b"", &[])), None);
    assert_eq!(reply(&message(Ack, Code::GET, 7, b"", &[])), None);
    assert_eq!(reply(&message(Reset, Code::EMPTY, 7, b"", &[])), None);
    let (len, what) = reply(&message(Con, Code::GET, 8, b"t", &[(9, b"")])).unwrap();
    assert_eq!((len, what), (4 + 1 + 1 + 8, (Ack, Code::BAD_OPTION, 8)));
    assert_eq!(reply(&message(Non, Code::GET, 9, b"t", &[(9, b"")])), None);
    let (_, what) = reply(&message(Con, Code::new(0, 8), 10, b"t", &[])).unwrap();
    assert_eq!(what, (Ack, Code::METHOD_NOT_ALLOWED, 10));
}

/// RFC 7252 §5.3.2: token and message id must both match, and the peer.
#[test]
fn answers_to_something_else_are_not_taken() {
    let mut client = endpoint();
    let outputs = run(&mut client, s(0), request(5, get()));
    let bytes = sent(&outputs)[0].clone();
    let request = Datagram::decode(&bytes).unwrap();
    let (mid, token) = (request.mid, request.message.token);
    let token = token.as_slice();
    let ack = |mid, token| message(Ack, Code::CONTENT, mid, token, &[]);
    assert!(run(&mut client, s(0), datagram(SERVER, &ack(mid ^ 1, token))).is_empty());
    assert!(run(&mut client, s(0), datagram(SERVER, &ack(mid, b"other"))).is_empty());
    assert!(run(&mut client, s(0), datagram(9, &ack(mid, token))).is_empty());
    assert_eq!(client.counts().unmatched, 3);
    let bad = message(Ack, Code::CONTENT, mid, token, &[(9, b"")]);
    let failed = Output::Failed { request: 5, reason: Reason::BadAnswer };
    assert_eq!(run(&mut client, s(0), datagram(SERVER, &bad)), [failed]);
}

#[test]
fn a_reset_ends_a_request_and_answers_a_ping() {
    let mut client = endpoint();
    let (_, _, mid) = only(&run(&mut client, s(0), request(5, get())));
    let reset = message(Reset, Code::EMPTY, mid, b"", &[]);
    let failed = Output::Failed { request: 5, reason: Reason::Reset };
    assert_eq!(run(&mut client, s(0), datagram(SERVER, &reset)), [failed]);
    let outputs = run(&mut client, s(1), Input::Ping { request: 6, peer: SERVER });
    let (kind, code, mid) = only(&outputs);
    assert_eq!((kind, code), (Con, Code::EMPTY));
    let reset = message(Reset, Code::EMPTY, mid, b"", &[]);
    assert_eq!(run(&mut client, s(2), datagram(SERVER, &reset)), [Output::Alive { request: 6 }]);
}

/// RFC 7967 §2.
#[test]
fn answers_that_are_not_wanted_are_not_sent() {
    let (mut client, mut server) = (endpoint(), endpoint());
    let quiet = get().with_uint(option::NO_RESPONSE, 26);
    let first = sent(&run(&mut client, s(0), request(5, quiet)))[0].clone();
    let number = exchange(&run(&mut server, s(0), datagram(CLIENT, &first)));
    let respond = Input::Respond { exchange: number, content: content("x") };
    let ack = run(&mut server, s(0), respond);
    assert!(matches!(only(&ack), (Ack, Code::EMPTY, _)));
    let outputs = run(&mut client, s(0), datagram(SERVER, &sent(&ack)[0]));
    assert_eq!(outputs, [Output::Suppressed { request: 5 }]);
}

/// RFC 9175 §2.4, and a client that answers the challenge by itself.
#[test]
fn large_answers_go_to_who_has_its_address() {
    let mut client = endpoint();
    let mut server = Endpoint::<u8>::new(&Settings { is_challenging: true, ..settings(2) });
    let large = Content::new(Code::CONTENT).with_payload(vec![0; 500]);
    let first = sent(&run(&mut client, s(0), request(5, get())))[0].clone();
    let number = exchange(&run(&mut server, s(0), datagram(CLIENT, &first)));
    let respond = |exchange| Input::Respond { exchange, content: large.clone() };
    let challenge = run(&mut server, s(0), respond(number));
    assert!(matches!(only(&challenge), (Ack, Code::UNAUTHORIZED, _)));
    let challenge = sent(&challenge)[0].clone();
    assert!(challenge.len() <= 3 * first.len());
    let second = sent(&run(&mut client, s(1), datagram(SERVER, &challenge)))[0].clone();
    // From another address the same value is worth nothing.
    let number = exchange(&run(&mut server, s(1), datagram(9, &second)));
    assert!(matches!(only(&run(&mut server, s(1), respond(number))), (_, Code::UNAUTHORIZED, _)));
    let number = exchange(&run(&mut server, s(1), datagram(CLIENT, &second)));
    let answer = run(&mut server, s(1), respond(number));
    assert!(matches!(only(&answer), (Ack, Code::CONTENT, _)));
    let outputs = run(&mut client, s(1), datagram(SERVER, &sent(&answer)[0]));
    assert!(matches!(outputs[..], [Output::Response { request: 5, is_last: true, .. }]));
    assert_eq!(server.counts().challenged, 2);
}

#[test]
fn nothing_is_changed_for_who_may_not_have_its_address() {
    let mut server = Endpoint::<u8>::new(&Settings { is_challenging: true, ..settings(2) });
    let post = message(Con, Code::POST, 1, b"t", &[]);
    let outputs = run(&mut server, s(0), datagram(CLIENT, &post));
    assert_eq!(only(&outputs), (Ack, Code::UNAUTHORIZED, 1));
    assert_eq!(outputs.len(), 1);
    let observe = message(Con, Code::GET, 2, b"t", &[(6, b"")]);
    let outputs = run(&mut server, s(0), datagram(CLIENT, &observe));
    assert_eq!(only(&outputs), (Ack, Code::UNAUTHORIZED, 2));
}

/// RFC 7252 §8.1, §8.2.
#[test]
fn a_group_is_answered_late_or_not_at_all() {
    let mut server = endpoint();
    let from_group = |server: &mut Endpoint<u8>, bytes: Bytes| {
        run(server, s(0), Input::Datagram { peer: CLIENT, bytes, is_group: true })
    };
    assert!(from_group(&mut server, message(Con, Code::GET, 1, b"t", &[])).is_empty());
    assert!(from_group(&mut server, message(Non, Code::new(0, 9), 2, b"t", &[])).is_empty());
    assert!(from_group(&mut server, Bytes::from_static(b"\x40\x01\x00\x02\xff")).is_empty());
    for (mid, code) in [(3, Code::NOT_FOUND), (4, Code::CONTENT)] {
        let number = exchange(&from_group(&mut server, message(Non, Code::GET, mid, b"t", &[])));
        let respond =
            Input::Respond { exchange: number, content: Content::new(code).with_payload("text") };
        assert!(run(&mut server, s(0), respond).is_empty());
    }
    let outputs = run(&mut server, LEISURE, Input::Wake);
    assert!(matches!(only(&outputs), (Non, Code::CONTENT, _)));
}

#[test]
fn one_peer_has_its_share_of_exchanges() {
    let mut server = endpoint();
    for mid in 0..u16::try_from(MAX_EXCHANGES_PER_PEER).unwrap() {
        let bytes = message(Con, Code::GET, mid, &mid.to_be_bytes(), &[]);
        exchange(&run(&mut server, s(0), datagram(CLIENT, &bytes)));
    }
    let more = message(Con, Code::GET, 999, b"t", &[]);
    let outputs = run(&mut server, s(0), datagram(CLIENT, &more));
    assert_eq!(only(&outputs), (Ack, Code::SERVICE_UNAVAILABLE, 999));
    exchange(&run(&mut server, s(0), datagram(9, &more)));
    // Who gets no answer from the application is not left without one.
    let outputs = run(&mut server, MAX_EXCHANGE_TIME, Input::Wake);
    let late =
        sent(&outputs).iter().filter(|bytes| bytes[1] == Code::SERVICE_UNAVAILABLE.0).count();
    assert_eq!(late, 2);
}

#[test]
fn requests_that_are_too_long_or_have_too_many_options_are_refused() {
    let mut server = endpoint();
    let put = Content::new(Code::PUT).with_payload(vec![0; MAX_REQUEST_BYTES]);
    let bytes = put.encode(Con, 1, Token::EMPTY).unwrap();
    let outputs = run(&mut server, s(0), datagram(CLIENT, &bytes));
    assert_eq!(only(&outputs), (Ack, Code::REQUEST_ENTITY_TOO_LARGE, 1));
    let mut bytes = b"\x40\x01\x00\x02\xb0".to_vec();
    bytes.resize(bytes.len() + 256, 0);
    let outputs = run(&mut server, s(0), datagram(CLIENT, &bytes.into()));
    assert_eq!(only(&outputs), (Ack, Code::BAD_REQUEST, 2));
}

/// Forged addresses take the places of each other, not of who has shown its own.
#[test]
fn a_flood_of_new_peers_does_no_harm_to_a_known_one() {
    let settings = Settings { is_challenging: true, ..settings(2) };
    let (mut client, mut server) =
        (Endpoint::<u32>::new(&settings), Endpoint::<u32>::new(&settings));
    let mut now = s(0);
    let drain = |end: &mut Endpoint<u32>, now, input| -> Vec<Output<u32>> {
        end.handle_input(now, input);
        let outputs = std::iter::from_fn(|| end.poll_output());
        // What is said to the forged ones does not matter.
        let is_noise = |output: &Output<u32>| match output {
            Output::WakeAt(_) => true,
            Output::Datagram { peer, .. } => (1..3000).contains(peer),
            _ => false,
        };
        outputs.filter(|output| !is_noise(output)).collect()
    };
    let bytes_of = |outputs: &[Output<u32>]| match outputs {
        [Output::Datagram { bytes, .. }, ..] => bytes.clone(),
        other => panic!("{other:?}"),
    };
    let post = Content::new(Code::POST);
    for round in 0..3 {
        let (content, is_confirmable) = (post.clone(), true);
        let input = Input::Request { request: round, peer: 0, content, is_confirmable };
        let mut bytes = bytes_of(&drain(&mut client, now, input));
        // The first is challenged, and flooded meanwhile.
        for step in 0.. {
            for forged in 1..3000_u32 {
                let bytes = message(Con, Code::GET, 1, b"t", &[]);
                let input = Input::Datagram { peer: forged, bytes, is_group: false };
                drain(&mut server, now, input);
            }
            now += s(1);
            let input = Input::Datagram { peer: 9999, bytes, is_group: false };
            let mut outputs = drain(&mut server, now, input);
            if let [Output::Request { exchange, .. }] = outputs[..] {
                let content = Content::new(Code::CHANGED);
                outputs = drain(&mut server, now, Input::Respond { exchange, content });
            }
            let input = Input::Datagram { peer: 0, bytes: bytes_of(&outputs), is_group: false };
            let outputs = drain(&mut client, now, input);
            if let [Output::Response { content, .. }] = &outputs[..] {
                assert_eq!((content.code, step), (Code::CHANGED, u64::from(round == 0)));
                break;
            }
            bytes = bytes_of(&outputs);
        }
    }
    assert!(server.counts().refused == 0 && server.counts().challenged == 1);
}
