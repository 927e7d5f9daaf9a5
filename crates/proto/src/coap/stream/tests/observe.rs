//! Observations over a connection (RFC 7641, RFC 8323 §7).

use super::*;

fn agreed(_: &Content) -> Option<Content> {
    Some(Content::new(Code::CONTENT).with(option::OBSERVE, b"").with_payload("first"))
}

fn notification(text: &str) -> Content {
    Content::new(Code::CONTENT).with_payload(text.to_owned())
}

/// Every notification arrives, in order, whatever its size; then it is taken back.
#[test]
fn who_observes_learns_each_state_in_order() {
    for seed in 0..500 {
        let framing = if seed % 4 == 3 { Framing::WebSocket } else { Framing::Stream };
        let mut pair = Pair::new(seed, framing, agreed);
        pair.request(5, get("clock").with(option::OBSERVE, b""));
        pair.run(Duration::from_secs(3));
        let exchange = pair.requests[0].0;
        let mut expected = vec![Bytes::from("first")];
        for number in 0..10_u8 {
            // One that takes several messages is fetched while the next may come.
            let len = if number == 4 && seed % 10 == 0 { 80_000 } else { 10 };
            let content = Content::new(Code::CONTENT).with_payload(body(len, number));
            pair.input(1, Input::Notify { exchange, content });
            pair.run(Duration::from_secs(if len > 10 { 60 } else { 1 }));
            expected.push(body(len, number));
        }
        let got: Vec<_> = pair.responses().into_iter().map(|(_, _, body)| body).collect();
        assert_eq!(got, expected, "seed {seed}");
        pair.others.clear();
        pair.input(0, Input::Cancel { request: 5 });
        pair.run(Duration::from_secs(3));
        assert_eq!(pair.said(1), [Output::Ended { exchange }], "seed {seed}");
        let last = &pair.requests.last().unwrap().1;
        assert_eq!(last.uint(option::OBSERVE), Some(1));
        // What was on its way is for nobody.
        pair.input(1, Input::Notify { exchange, content: notification("late") });
        assert_eq!(pair.ends[1].counts().misused, 1);
        pair.run(MINUTE);
        assert_eq!(pair.responses(), []);
        assert!(!pair.ends[1].is_open() && !pair.ends[0].is_open());
    }
}

#[test]
fn an_error_ends_it_and_so_does_the_connection() {
    let mut pair = Pair::new(0, Framing::Stream, agreed);
    pair.request(5, get("clock").with(option::OBSERVE, b""));
    pair.run(MINUTE);
    let exchange = pair.requests[0].0;
    pair.input(1, Input::Notify { exchange, content: Content::new(Code::NOT_FOUND) });
    pair.run(Duration::from_secs(1));
    let said = pair.said(0);
    let [_, Output::Response { content, is_last: true, .. }] = &said[..] else {
        panic!("{said:?}")
    };
    assert_eq!(content.code, Code::NOT_FOUND);
    assert_eq!(content.first(option::OBSERVE), None);
    assert_eq!(pair.said(1), [Output::Ended { exchange }]);
}

#[test]
fn observations_have_a_bound_and_are_renewed_by_token() {
    let mut by_hand = ByHand::established(None, MAX_MESSAGE_BYTES);
    let mut ask = |byte: u8| {
        let said = by_hand.send(token(byte), &get("a").with(option::OBSERVE, b""));
        let Some(Output::Request { exchange, .. }) = said.first() else { panic!("{said:?}") };
        let exchange = *exchange;
        let answer = notification("x").with(option::OBSERVE, b"");
        let said = by_hand.input(Input::Respond { exchange, content: answer });
        let ended = said.iter().filter(|it| matches!(it, Output::Ended { .. })).count();
        (sent(&said)[0].1.uint(option::OBSERVE), ended)
    };
    for byte in 0..MAX_OBSERVATIONS as u8 {
        assert_eq!(ask(byte), (Some(0), 0));
    }
    assert_eq!(ask(200), (None, 1), "no room");
    assert_eq!(ask(3), (Some(1), 1), "the same again");
}

/// While something is observed a peer that is gone is found (RFC 8323 §5.4).
#[test]
fn a_silent_peer_is_asked_and_given_up() {
    let mut by_hand = ByHand::established(None, MAX_MESSAGE_BYTES);
    let content = get("a").with(option::OBSERVE, b"");
    let said = by_hand.input(Input::Request { request: 1, content });
    let token = sent(&said)[0].0;
    let answer = notification("x").with(option::OBSERVE, b"");
    by_hand.send(token, &answer);
    for _ in 0..3 {
        let said = by_hand.wait(PING_AFTER);
        let codes: Vec<_> = sent(&said).into_iter().map(|(_, it)| it.code).collect();
        assert_eq!(codes, [Code::PING]);
        by_hand.send(Token::EMPTY, &Content::new(Code::PONG));
    }
    assert_eq!(by_hand.end.counts(), Counts::default());
    by_hand.wait(PING_AFTER);
    let said = by_hand.wait(SILENCE_TIMEOUT);
    let codes: Vec<_> = sent(&said).into_iter().map(|(_, it)| it.code).collect();
    assert_eq!(codes, [Code::ABORT]);
    assert_eq!(said.last(), Some(&Output::Closed(End::Silent(SILENCE_TIMEOUT))));
}
