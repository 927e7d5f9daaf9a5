//! Signals (RFC 8323 §5), and peers that break the protocol.

use super::*;

/// The code of the last message, with its first option and what is said of the end.
fn ended(said: &[Output]) -> (Code, Option<u32>, End) {
    let (_, last) = sent(said).pop().unwrap();
    assert!(!last.payload.is_empty(), "it says why");
    let Some(Output::Closed(end)) = said.last() else { panic!("{said:?}") };
    (last.code, last.uint(signal::BAD_CSM_OPTION), end.clone())
}

#[test]
fn a_connection_begins_with_a_csm() {
    let mut by_hand = ByHand::new(None);
    let said = by_hand.send(token(1), &get("a"));
    let fault = End::Broken(Fault::NoCsm(Code::GET));
    assert_eq!(ended(&said), (Code::ABORT, None, fault));
    // Nothing follows, whatever comes.
    assert_eq!(by_hand.send(Token::EMPTY, &Content::new(Code::CSM)), []);
    assert_eq!(by_hand.input(Input::Request { request: 1, content: get("a") }), []);
    assert_eq!(by_hand.wait(LONG), []);
    for code in [Code::PONG, Code::CONTENT, Code::RELEASE] {
        let mut by_hand = ByHand::new(None);
        let said = by_hand.send(Token::EMPTY, &Content::new(code));
        assert_eq!(ended(&said).2, End::Broken(Fault::NoCsm(code)));
    }
    // RFC 8323 §3.4: what is empty is nothing.
    let mut by_hand = ByHand::new(None);
    assert_eq!(by_hand.bytes(&[0, 0]), []);
    let said = by_hand.wait(CSM_TIMEOUT);
    assert_eq!(ended(&said), (Code::ABORT, None, End::Silent(CSM_TIMEOUT)));
}

#[test]
fn options_that_are_critical_and_unknown_end_it() {
    let mut by_hand = ByHand::new(None);
    let csm = Content::new(Code::CSM).with(signal::MAX_MESSAGE_SIZE, &[8, 0]).with(7, b"");
    let said = by_hand.send(Token::EMPTY, &csm);
    assert_eq!(ended(&said), (Code::ABORT, Some(7), End::Broken(Fault::BadCsm(7))));
    for (size, is_good) in [(MIN_MESSAGE_BYTES, true), (MIN_MESSAGE_BYTES - 1, false), (0, false)] {
        let mut by_hand = ByHand::new(None);
        let csm = Content::new(Code::CSM).with_uint(signal::MAX_MESSAGE_SIZE, size);
        let said = by_hand.send(Token::EMPTY, &csm);
        assert_eq!(by_hand.end.is_established(), is_good, "{size}");
        if !is_good {
            assert_eq!(ended(&said).1, Some(u32::from(signal::MAX_MESSAGE_SIZE)));
        }
    }
    for code in [Code::PING, Code::PONG, Code::RELEASE, Code::ABORT] {
        let mut by_hand = ByHand::established(None, 1152);
        let said = by_hand.send(Token::EMPTY, &Content::new(code).with(9, b"x"));
        let fault = End::Broken(Fault::BadOption(code, 9));
        assert_eq!(ended(&said), (Code::ABORT, None, fault));
    }
    // Elective ones, and signals that nobody knows, are nothing.
    let mut by_hand = ByHand::established(None, 1152);
    let csm = Content::new(Code::CSM).with(100, b"x").with_uint(signal::MAX_MESSAGE_SIZE, 5000);
    assert_eq!(sent(&by_hand.send(Token::EMPTY, &csm)), []);
    assert_eq!(sent(&by_hand.send(Token::EMPTY, &Content::new(Code::new(7, 30)))), []);
    assert_eq!(by_hand.end.counts().unsupported, 1);
    assert_eq!(by_hand.end.messages.max_message_bytes(), 5000);
}

#[test]
fn what_breaks_the_format_or_a_bound_ends_it() {
    // Reserved token length, a marker without payload, an option behind the last byte.
    for bytes in [&[0x09, 0x01][..], &[0x10, 0x01, 0xff], &[0x10, 0x01, 0x15], &[0x10, 0x00, 0x00]]
    {
        let mut by_hand = ByHand::established(None, 1152);
        let said = by_hand.bytes(bytes);
        let (code, _, end) = ended(&said);
        assert_eq!(code, Code::ABORT, "{bytes:?}");
        assert!(matches!(end, End::Broken(Fault::Format(_))), "{end:?}");
        assert_eq!(by_hand.end.counts().malformed, 1);
        assert_eq!(by_hand.end.held_bytes(), 0);
    }
    // A length is enough: nothing is kept for what will not be taken.
    let mut by_hand = ByHand::established(None, 1152);
    let said = by_hand.bytes(&[0xf0, 0xff, 0xff, 0xff, 0xff]);
    let Some(Output::Closed(End::Broken(Fault::Format(error)))) = said.last() else {
        panic!("{said:?}")
    };
    assert!(
        matches!(error, crate::Error::Limit { limit, .. } if *limit == MAX_MESSAGE_BYTES.into())
    );
}

#[test]
fn a_message_that_does_not_go_on_ends_it() {
    let mut by_hand = ByHand::established(None, 1152);
    let whole = wire::encode(Framing::Stream, token(1), &get("abc"), 1152).unwrap();
    for at in 0..whole.len() - 1 {
        by_hand.bytes(&whole[at..=at]);
        assert_eq!(by_hand.end.held_bytes(), at + 1);
        assert_eq!(by_hand.wait(STALL_TIMEOUT / 2), []);
    }
    let said = by_hand.wait(STALL_TIMEOUT);
    assert_eq!(ended(&said), (Code::ABORT, None, End::Silent(STALL_TIMEOUT)));
}

#[test]
fn a_ping_is_answered_and_custody_when_all_before_it_is() {
    for framing in [Framing::Stream, Framing::WebSocket] {
        let mut pair = Pair::new(0, framing, |_| None);
        pair.input(0, Input::Ping { request: 1 });
        pair.run(Duration::from_secs(1));
        assert_eq!(pair.said(0), [Output::Alive { request: 1 }]);
        pair.request(2, get("slow"));
        pair.input(0, Input::Ping { request: 3 });
        pair.request(4, get("behind"));
        pair.run(Duration::from_secs(20));
        assert_eq!(pair.said(0), []);
        let (slow, _) = pair.requests[0];
        pair.input(1, Input::Respond { exchange: slow, content: Content::new(Code::CONTENT) });
        pair.run(Duration::from_secs(1));
        let said = pair.said(0);
        assert_eq!(said.len(), 2);
        assert_eq!(said[1], Output::Alive { request: 3 });
    }
    // One that asks for nothing is answered at once; many that wait have a bound.
    let mut by_hand = ByHand::established(None, 1152);
    by_hand.send(token(1), &get("a"));
    let [(other, pong)] = &sent(&by_hand.send(token(2), &Content::new(Code::PING)))[..] else {
        panic!()
    };
    assert_eq!((*other, pong.code, pong.options().count()), (token(2), Code::PONG, 0));
    let custody = Content::new(Code::PING).with(signal::CUSTODY, b"");
    for number in 0..=MAX_PINGS {
        let answers = sent(&by_hand.send(token(3), &custody)).len();
        assert_eq!(answers, usize::from(number == MAX_PINGS));
    }
    let content = Content::new(Code::CONTENT);
    let said = sent(&by_hand.input(Input::Respond { exchange: 1, content }));
    let pongs = said.iter().filter(|(_, it)| it.first(signal::CUSTODY).is_some()).count();
    assert_eq!((said.len(), pongs), (1 + MAX_PINGS, MAX_PINGS));
    by_hand.send(token(9), &Content::new(Code::PONG));
    assert_eq!(by_hand.end.counts().unmatched, 1);
    // Some peers leave the token of a Pong out.
    by_hand.input(Input::Ping { request: 5 });
    let said = by_hand.send(Token::EMPTY, &Content::new(Code::PONG));
    assert_eq!(said[0], Output::Alive { request: 5 });
}

/// RFC 8323 §5.5.
#[test]
fn a_release_lets_what_is_open_finish() {
    let mut pair = Pair::new(0, Framing::Stream, |request| {
        let is_slow = request.first(option::URI_PATH) == Some(b"slow");
        (!is_slow).then(|| Content::new(Code::CONTENT))
    });
    pair.request(1, get("slow"));
    pair.run(Duration::from_secs(1));
    pair.input(1, Input::Release { hold_off_s: Some(30) });
    // One that crosses it is refused.
    pair.request(2, get("a"));
    pair.run(Duration::from_secs(1));
    let released = Output::Released { alternatives: vec![], hold_off_s: Some(30) };
    let said = pair.said(0);
    assert!(said.contains(&released), "{said:?}");
    let refused = |output: &Output| {
        matches!(output, Output::Response { request: 2, content, .. }
        if content.code == Code::SERVICE_UNAVAILABLE)
    };
    assert!(said.iter().any(refused), "{said:?}");
    pair.request(3, get("a"));
    pair.input(0, Input::Ping { request: 4 });
    let closed = |request| Output::Failed { request, reason: Reason::Closed };
    assert_eq!(pair.said(0), [closed(3), closed(4)]);
    // A number that is in use says nothing of the request that has it.
    let misused = pair.ends[0].counts().misused;
    pair.request(1, get("a"));
    pair.input(0, Input::Ping { request: 1 });
    let (has_more, room_bytes) = (false, 1);
    pair.input(0, Input::Open { request: 1, content: get("a"), has_more, room_bytes });
    assert_eq!(pair.ends[0].counts().misused, misused + 3);
    pair.run(MINUTE);
    assert_eq!(pair.said(0), []);
    let (slow, _) = pair.requests[0];
    pair.input(1, Input::Respond { exchange: slow, content: Content::new(Code::CONTENT) });
    pair.run(Duration::from_secs(1));
    let said = pair.said(0);
    assert!(matches!(said[0], Output::Response { request: 1, .. }), "{said:?}");
    assert_eq!(said[1..], [Output::Closed(End::Released)]);
    // Who does not close is closed.
    pair.run(RELEASE_WAIT);
    assert_eq!(pair.said(1), [Output::Closed(End::Released)]);
}

#[test]
fn addresses_of_a_release_have_a_bound() {
    let mut by_hand = ByHand::established(None, 1152);
    by_hand.input(Input::Request { request: 1, content: get("a") });
    let mut release = Content::new(Code::RELEASE);
    for number in 0..20 {
        let address = format!("host{number}.example:5683");
        release.push(signal::ALTERNATIVE_ADDRESS, address.as_bytes());
    }
    let said = by_hand.send(Token::EMPTY, &release);
    let Some(Output::Released { alternatives, hold_off_s: None }) = said.first() else {
        panic!("{said:?}")
    };
    assert_eq!(alternatives.len(), MAX_ALTERNATIVES);
    assert_eq!(alternatives[0], "host0.example:5683");
    let said = by_hand.send(Token::EMPTY, &release);
    assert!(!said.iter().any(|it| matches!(it, Output::Released { .. })));
}

/// RFC 8323 §5.6.
#[test]
fn an_abort_ends_it() {
    let mut by_hand = ByHand::established(None, 1152);
    by_hand.input(Input::Request { request: 1, content: get("a") });
    let abort = Content::new(Code::ABORT).with_uint(signal::BAD_CSM_OPTION, 4);
    let said = by_hand.send(Token::EMPTY, &abort.with_payload("x".repeat(1000)));
    let diagnostic = "x".repeat(MAX_DIAGNOSTIC_BYTES);
    let aborted = End::Aborted { bad_csm_option: Some(4), diagnostic };
    assert_eq!(said, [Output::Closed(aborted)]);
}

#[test]
fn a_connection_is_given_up_with_a_word() {
    let mut by_hand = ByHand::established(None, 1152);
    by_hand.input(Input::Request { request: 1, content: get("a") });
    let said = by_hand.input(Input::Abort { why: "no room" });
    assert_eq!(ended(&said), (Code::ABORT, None, End::GivenUp("no room")));
    assert_eq!(sent(&said)[0].1.payload, "no room");
}

#[test]
fn a_connection_without_use_is_released() {
    let idle = MINUTE * 3;
    let mut by_hand = ByHand::established(Some(idle), 1152);
    by_hand.send(token(1), &get("a"));
    assert_eq!(by_hand.wait(idle), []);
    by_hand.input(Input::Respond { exchange: 1, content: Content::new(Code::CONTENT) });
    by_hand.wait(idle / 2);
    by_hand.send(token(2), &Content::new(Code::PING));
    assert_eq!(by_hand.wait(idle / 2), []);
    let said = by_hand.wait(idle / 2);
    let codes: Vec<_> = sent(&said).into_iter().map(|(_, it)| it.code).collect();
    assert_eq!(codes, [Code::RELEASE]);
    assert_eq!(by_hand.wait(RELEASE_WAIT), [Output::Closed(End::Released)]);
}

/// Who has said all that it will still gets its answers.
#[test]
fn what_was_asked_before_the_end_is_answered() {
    let mut by_hand = ByHand::established(None, 1152);
    by_hand.send(token(1), &get("a"));
    assert_eq!(by_hand.input(Input::Eof), []);
    let content = Content::new(Code::CONTENT);
    let said = by_hand.input(Input::Respond { exchange: 1, content });
    assert_eq!(sent(&said).len(), 1);
    assert_eq!(said.last(), Some(&Output::Closed(End::Eof)));
    let mut by_hand = ByHand::established(None, 1152);
    by_hand.input(Input::Request { request: 1, content: get("a") });
    assert_eq!(by_hand.input(Input::Eof), [Output::Closed(End::Eof)]);
}

/// RFC 8323 §4.2.
#[test]
fn a_websocket_has_a_message_in_each_of_its_own() {
    for frame in [&b""[..], &[0x00], &[0x10, 0xe1], &vec![0; MAX_MESSAGE_BYTES as usize + 1]] {
        let mut end = Connection::new(&settings(1, Framing::WebSocket));
        let first: Vec<_> = std::iter::from_fn(|| end.poll_output()).collect();
        let Output::Transmit(csm) = &first[0] else { panic!("{first:?}") };
        assert_eq!(csm[..2], [0x00, 0xe1]);
        end.handle_input(Duration::ZERO, Input::Bytes(Bytes::copy_from_slice(frame)));
        let said: Vec<_> = std::iter::from_fn(|| end.poll_output()).collect();
        let Some(Output::Closed(End::Broken(Fault::Format(_)))) = said.last() else {
            panic!("{said:?}")
        };
    }
}
