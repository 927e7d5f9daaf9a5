//! What a peer that is late, lies or is not there may not bring about.

use super::*;
use crate::coap::machine::{Flow, Of};

/// What was heard as the application's to answer.
fn requests(one: &One) -> Vec<&Content> {
    let content = one.others.iter().filter_map(|output| match output {
        Output::Request { content, .. } => Some(content),
        _ => None,
    });
    content.collect()
}

fn tagged(mut content: Content, tag: u8) -> Content {
    content.set(option::REQUEST_TAG, &[tag]);
    content
}

/// An application that takes its time with many bodies: none is taken for a new one.
#[test]
fn a_body_that_is_being_answered_is_not_begun_anew() {
    let mut server = One::server();
    for tag in 0..9 {
        (0..2).for_each(|num| server.hear_non(tag, &tagged(put(num, 2), tag)));
    }
    assert_eq!(requests(&server).len(), 9);
    server.hear_non(100, &tagged(put(1, 2), 0));
    server.pass(S * 4);
    assert_eq!(server.take(), [""; 0]);
    assert_eq!(requests(&server).len(), 9);
    // Nor is one that was answered before many others.
    let Output::Request { exchange, .. } = server.others.remove(0) else { panic!() };
    server.input(Input::Respond { exchange, content: Content::new(Code::CHANGED) });
    assert_eq!(server.take(), ["NON 2.04"]);
    for tag in 20..40 {
        (0..2).for_each(|num| server.hear_non(tag, &tagged(put(num, 2), tag)));
        server.respond(Content::new(Code::CHANGED));
    }
    server.take();
    server.hear_non(101, &tagged(put(1, 2), 0));
    server.pass(S * 100);
    let asks = server.take().iter().filter(|text| text.contains("4.08")).count();
    assert_eq!((asks, requests(&server).len()), (0, 8));
}

#[test]
fn another_body_with_the_same_tag_is_another_request() {
    let mut server = One::server();
    for total in [3, 4, 4] {
        (0..total).for_each(|num| server.hear_non(1, &put(num, total)));
        if total == 3 {
            server.respond(Content::new(Code::CHANGED));
        }
    }
    // The last one is the second once more.
    assert_eq!(requests(&server).len(), 1);
    server.respond(Content::new(Code::CHANGED));
    let other = |num| put(num, 4).with_payload(vec![9; if num < 3 { 1024 } else { 100 }]);
    (0..4).for_each(|num| server.hear_non(1, &other(num)));
    assert_eq!(requests(&server)[0].payload[0], 9);
}

#[test]
fn nobody_observes_by_sets() {
    let mut server = One::server();
    server.hear_non(1, &q2(get().with_uint(option::OBSERVE, 0), 0, true, 6));
    assert_eq!(requests(&server)[0].first(option::OBSERVE), None);
}

/// RFC 9177 §4.4: who asks for the first block again wants no second deed.
#[test]
fn the_first_block_that_was_lost_is_one_of_the_same_response() {
    let mut server = One::server();
    let change = Content::new(Code::POST).with(option::URI_PATH, b"path");
    server.hear_non(1, &q2(change.clone(), 0, true, 6).with_payload("small"));
    server.respond(large(3));
    assert_eq!(server.take(), numbers(0..3, 3));
    server.hear_non(2, &q2(change, 0, false, 6));
    assert_eq!((server.take(), requests(&server).len()), (numbers(0..1, 3), 0));

    let mut server = One::server();
    server.hear_non(1, &q2(get(), 0, true, 6));
    server.respond(large(3));
    server.take();
    server.hear_non(2, &q2(get(), 0, false, 6));
    assert_eq!((server.take(), requests(&server).len()), (numbers(0..1, 3), 0));
    // After a while that is a request like others.
    server.pass(S * 60);
    server.hear_non(3, &q2(get(), 0, false, 6));
    assert_eq!((server.take(), requests(&server).len()), (vec![], 1));
}

#[test]
fn blocks_that_come_again_do_not_keep_a_body() {
    let mut server = One::server();
    [0, 2].into_iter().for_each(|num| server.hear_non(1, &put(num, 3)));
    let mut asks = 0;
    for _ in 0..300 {
        server.pass(S);
        server.hear_non(2, &put(2, 3));
        asks += server.take().len();
        if server.now.as_secs() == 120 {
            assert_eq!(asks, 4);
        }
    }
}

/// RFC 8132 §2.1 makes FETCH safe; the place of its body is one of a few all the same.
#[test]
fn a_body_in_blocks_has_no_place_for_a_forged_address() {
    let settings = Settings { seed: [1, 2], is_challenging: true, rate_bps: None };
    let mut server = One::of(Transfers::new(&settings).answering_q_block([0, 2]), CLIENT);
    let fetch = Content::new(Code::FETCH).with(option::URI_PATH, b"path");
    let fetch = q(fetch, option::BLOCK1, 0, true, 0).with_payload(vec![0; 16]);
    server.hear_non(1, &fetch);
    assert_eq!(server.take(), ["NON 4.01"]);
}

/// An origin that takes a minute is asked once, whatever the client asks meanwhile.
#[test]
fn who_asks_again_while_the_answer_is_made_gets_it_once() {
    let mut server = One::server();
    for token in [0xf0, 0xf1, 0xf2] {
        server.hear_non(token, &q2(get(), 0, true, 6));
        server.pass(S * 8);
    }
    assert_eq!((server.take(), requests(&server).len()), (vec![], 1));
    server.respond(large(4));
    assert_eq!(server.take(), numbers(0..4, 4));
    assert_eq!(server.heads.last().unwrap().1, Token::new(&[0xf0]).unwrap());
    // Two requests at once are two.
    (0xe0..0xe2).for_each(|token| server.hear_non(token, &q2(get(), 0, true, 6)));
    assert_eq!(requests(&server).len(), 2);

    // And a client whose request is not known to have arrived repeats that one alone.
    let mut client = One::client();
    client.ask(get());
    client.pass(S * 40);
    assert!(client.take().iter().all(|text| text == "CON 0.01 QB2:0/1/1024"));
}

#[test]
fn a_storm_of_requests_for_few_blocks_has_a_pause() {
    let mut server = One::server();
    for token in 0..100 {
        server.hear_non(token, &q2(get(), 0, true, 6));
        server.respond(large(10));
    }
    assert_eq!(server.take().len(), 40);
    server.pass(S * 60);
    assert_eq!(server.take().len(), 10);
}

/// RFC 9177 §4.3: a reset says that nobody is there for it.
#[test]
fn a_reset_ends_what_it_is_an_answer_to() {
    let mut server = One::server();
    [0, 2].into_iter().for_each(|num| server.hear_non(1, &put(num, 3)));
    server.pass(NON_RECEIVE_TIMEOUT);
    assert_eq!(server.take(), ["NON 4.08 [1]"]);
    let reset = Content::new(Code::EMPTY);
    let (mid, _) = *server.heads.last().unwrap();
    server.hear(Kind::Reset, mid, Token::EMPTY, &reset);
    server.pass(S * 300);
    assert_eq!(server.take(), [""; 0]);

    server.hear_non(2, &q2(get(), 0, true, 6));
    server.respond(large(40));
    assert_eq!(server.take().len(), 10);
    let (mid, _) = *server.heads.last().unwrap();
    server.hear(Kind::Reset, mid, Token::EMPTY, &reset);
    server.pass(S * 300);
    assert_eq!((server.take(), server.others.len()), (vec![], 0));
    assert_eq!(server.end.counts().misused, 0);

    let mut client = One::client();
    client.ask(get());
    let main = client.heads.len() - 1;
    client.answer(main, &part(0, 30, b"e"));
    client.input(Input::Cancel { request: 1 });
    client.take();
    client.answer(main, &part(1, 30, b"e"));
    assert_eq!(client.take(), ["RST 0.00"]);
}

#[test]
fn a_call_has_an_end_whatever_the_server_says() {
    let mut client = One::client();
    client.ask(get());
    let main = client.heads.len() - 1;
    client.answer(main, &part(0, 3, b"e"));
    client.answer(main, &Content::new(Code::NOT_FOUND));
    client.pass(S * 1000);
    assert_eq!(client.others, [failed(Reason::NoAnswer)]);

    let mut client = One::client();
    client.ask(post(3 * 1024));
    for _ in 0..1000 {
        client.pass(S);
        if client.others.is_empty() {
            let mut more = Content::new(Code::CONTINUE);
            put_q1(&mut more, 2);
            client.answer(client.heads.len() - 1, &more);
        }
    }
    assert_eq!(client.others, [failed(Reason::NoAnswer)]);
}

fn put_q1(content: &mut Content, num: u32) {
    let block = Block { num, more: true, szx: 6 };
    content.push(option::Q_BLOCK1, block.encode().unwrap().as_slice());
}

#[test]
fn blocks_that_no_tag_holds_together_are_asked_for_by_others() {
    let mut client = One::client();
    client.ask(get());
    client.take();
    let main = client.heads.len() - 1;
    let mut bare = part(0, 3, b"e");
    bare.remove(option::ETAG);
    client.answer(main, &bare);
    assert_eq!(client.take(), ["CON 0.01"]);

    let mut client = One::client();
    client.ask(get());
    client.take();
    client.answer(client.heads.len() - 1, &Content::new(Code::BAD_OPTION));
    assert_eq!((client.take(), client.others.len()), (vec!["CON 0.01".to_owned()], 0));
}

/// A request whose answer is to be in blocks of RFC 9177; its number.
fn asked(one: &mut One, token: u8) -> u64 {
    let get = Content::new(Code::GET).with(option::URI_PATH, &[token]);
    one.hear_non(token, &q2(get, 0, true, 6));
    let Some(Output::Request { exchange, .. }) = one.others.pop() else {
        panic!("a request: {:?}", one.others)
    };
    exchange
}

fn begin(one: &mut One, exchange: u64, bytes: usize) {
    let content = Content::new(Code::CONTENT).with_payload(body(bytes, 7));
    one.input(Input::Begin { exchange, content });
}

fn of(exchange: u64) -> Of {
    Of::Exchange(exchange)
}

/// The bytes that there is room for of a body.
fn room(one: &mut One) -> usize {
    match one.others.pop() {
        Some(Output::Flow(Flow::Room { bytes, .. })) => bytes,
        other => panic!("{other:?}"),
    }
}

/// What trickles has its time, and each peer its share of the places.
#[test]
fn a_body_that_is_gathered_has_a_share_and_an_end() {
    let mut server = One::server();
    let share: Vec<_> = (0..4).map(|token| asked(&mut server, token)).collect();
    for exchange in share.iter().copied() {
        begin(&mut server, exchange, 10);
        assert!(room(&mut server) > 0);
    }
    let more = asked(&mut server, 4);
    begin(&mut server, more, 10);
    assert_eq!(server.others, [Output::Flow(Flow::Broken { of: of(more) })]);
    assert_eq!(server.take(), ["NON 5.03"]);
    server.others.clear();
    // Each of these goes on now and then, and to no end.
    for _ in 0..250 {
        for exchange in share.iter().copied() {
            let bytes = Bytes::from_static(b"x");
            let part = Flow::Part { of: of(exchange), bytes, is_last: false };
            server.input(Input::Flow(part));
        }
        server.pass(S);
    }
    let broken = |exchange: &u64| Output::Flow(Flow::Broken { of: of(*exchange) });
    assert_eq!(server.others, share.iter().map(broken).collect::<Vec<_>>());
    server.others.clear();
    let exchange = asked(&mut server, 5);
    begin(&mut server, exchange, 10);
    assert!(room(&mut server) > 0);
}

/// The longest body that may be is no longer than that.
#[test]
fn a_body_of_the_greatest_length_is_gathered() {
    for (begun, over) in [(10, 0), (MAX_BODY_BYTES, 0), (10, 1), (MAX_BODY_BYTES + 1, 0)] {
        let mut server = One::server();
        let exchange = asked(&mut server, 1);
        begin(&mut server, exchange, begun);
        if begun > MAX_BODY_BYTES {
            assert_eq!(server.take(), ["NON 5.00"]);
            continue;
        }
        let most = room(&mut server);
        let bytes = body(most.min(MAX_BODY_BYTES + over - begun), 7);
        let part = |bytes, is_last| Input::Flow(Flow::Part { of: of(exchange), bytes, is_last });
        server.input(part(bytes, false));
        if over > 0 {
            assert_eq!(server.others, [Output::Flow(Flow::Broken { of: of(exchange) })]);
            assert_eq!(server.take(), ["NON 5.00"]);
            continue;
        }
        assert_eq!(server.take(), [""; 0]);
        server.input(part(Bytes::new(), true));
        assert_eq!(server.take()[0], "NON 2.05 QB2:0/1/1024", "{begun}");
    }
}
