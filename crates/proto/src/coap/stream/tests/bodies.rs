//! Requests and responses with bodies of any size.

use super::*;

/// What the server answers: with as many bytes as Size2 says, of which the first is the method.
fn as_asked(request: &Content) -> Option<Content> {
    let len = request.uint(option::SIZE2).unwrap_or(0) as usize;
    let code = if request.code == Code::GET { Code::CONTENT } else { Code::CHANGED };
    Some(Content::new(code).with_payload(body(len, request.code.0)))
}

/// Requests of all kinds at once, in thousands of orders: each is answered once, with what it asked
/// for, and the application sees each of them once and whole.
#[test]
fn each_request_is_answered_once_and_whole() {
    const SIZES: [u64; 8] = [0, 1, 12, 13, 1024, 1100, 5000, 70_000];
    let mut largest = 0;
    for seed in 0..3000 {
        let framing = if seed % 5 == 4 { Framing::WebSocket } else { Framing::Stream };
        let mut pair = Pair::new(seed, framing, as_asked);
        let mut chance = Chance::new([seed, 77]);
        let mut size = || {
            let at = usize::try_from(chance.next(For::Factor)).unwrap_or(usize::MAX);
            // The large ones now and then: they cost most of the time.
            SIZES[at % if seed % 50 == 0 { SIZES.len() } else { 6 }]
        };
        let mut asked = Vec::new();
        let count = 1 + seed % 6;
        for request in 0..count {
            let (up, down) = (size(), size());
            largest = largest.max(up + down);
            let code = if up == 0 { Code::GET } else { Code::POST };
            let content = Content::new(code)
                .with(option::URI_PATH, format!("r{request}").as_bytes())
                .with_uint(option::SIZE2, u32::try_from(down).unwrap())
                .with_payload(body(up as usize, request as u8));
            pair.request(request, content);
            asked.push((request, code, up, down));
            if seed % 3 == 0 {
                pair.run(Duration::from_millis(seed % 70));
            }
        }
        pair.run(LONG);
        let mut responses = pair.responses();
        responses.sort();
        let expected: Vec<_> = asked
            .iter()
            .map(|(request, code, _, down)| {
                let answer = if *code == Code::GET { Code::CONTENT } else { Code::CHANGED };
                (*request, answer, body(*down as usize, code.0))
            })
            .collect();
        assert_eq!(responses, expected, "seed {seed}");
        assert_eq!(pair.others.len(), asked.len(), "seed {seed}: {:?}", pair.others);
        assert_eq!(pair.requests.len(), asked.len(), "seed {seed}");
        for (_, content) in &pair.requests {
            let path = content.first(option::URI_PATH).unwrap();
            let (request, _, up, _) = asked[usize::from(path[1] - b'0')];
            assert_eq!(content.payload, body(up as usize, request as u8), "seed {seed}");
            assert_eq!(content.first(option::BLOCK1), None);
        }
        assert!(pair.ends.iter().all(|end| !end.is_open()), "seed {seed}");
    }
    assert!(largest > 70_000);
}

/// RFC 8323 §6: blocks of BERT, as many in a message as the peer takes.
#[test]
fn bodies_go_in_blocks_of_bert() {
    for (max_message_bytes, blocks) in [(MAX_MESSAGE_BYTES, 64), (5000, 4), (1153, 1), (1152, 1)] {
        let mut by_hand = ByHand::established(None, max_message_bytes);
        let content = Content::new(Code::PUT).with_payload(body(100_000, 0));
        let mut said = by_hand.input(Input::Request { request: 1, content });
        let mut whole = Vec::new();
        loop {
            let [(token, request)] = &sent(&said)[..] else { panic!("{said:?}") };
            let block = Block::decode(request.first(option::BLOCK1).unwrap(), true).unwrap();
            assert_eq!(block.offset(), whole.len());
            let first = whole.is_empty().then_some(100_000);
            assert_eq!(request.uint(option::SIZE1), first);
            assert!(request.first(option::REQUEST_TAG).is_some());
            whole.extend_from_slice(&request.payload);
            let szx = if max_message_bytes == 1152 { 6 } else { 7 };
            assert_eq!(block.szx, szx);
            let code = if block.more { Code::CONTINUE } else { Code::CHANGED };
            if block.more {
                assert_eq!(request.payload.len(), blocks * 1024);
            }
            let answer =
                Content::new(code).with(option::BLOCK1, block.encode().unwrap().as_slice());
            said = by_hand.send(*token, &answer);
            if !block.more {
                break;
            }
        }
        assert_eq!(whole, body(100_000, 0));
        let response = |output: &Output| matches!(output, Output::Response { request: 1, .. });
        assert!(said.iter().any(response), "{said:?}");
    }
}

/// And the server's: what is asked for in blocks of another size comes so.
#[test]
fn a_server_sends_blocks_as_they_are_asked_for() {
    let mut by_hand = ByHand::established(None, MAX_MESSAGE_BYTES);
    let mut ask = |block: Option<Block>| {
        let mut content = get("large");
        if let Some(block) = block {
            content.push(option::BLOCK2, block.encode().unwrap().as_slice());
        }
        let mut said = by_hand.send(token(1), &content);
        let exchange = said.iter().find_map(|output| match output {
            Output::Request { exchange, .. } => Some(*exchange),
            _ => None,
        });
        if let Some(exchange) = exchange {
            let content = Content::new(Code::CONTENT).with_payload(body(100_000, 5));
            said = by_hand.input(Input::Respond { exchange, content });
        }
        let [(_, answer)] = &sent(&said)[..] else { panic!("{said:?}") };
        let block = answer.first(option::BLOCK2).map(|value| Block::decode(value, true).unwrap());
        (answer.code, block, answer.payload.clone())
    };
    let block = |num, szx| Some(Block { num, more: false, szx });
    let (code, first, payload) = ask(None);
    let bert = Block { num: 0, more: true, szx: 7 };
    assert_eq!((code, first, payload.len()), (Code::CONTENT, Some(bert), 64 << 10));
    let (_, last, payload) = ask(block(64, 7));
    assert_eq!(last, Some(Block { num: 64, more: false, szx: 7 }));
    assert_eq!(payload, body(100_000, 5).slice(64 << 10..));
    let (_, one, payload) = ask(block(3, 6));
    assert_eq!(one, Some(Block { num: 3, more: true, szx: 6 }));
    assert_eq!(payload, body(100_000, 5).slice(3072..4096));
    let (_, one, payload) = ask(block(1, 2));
    assert_eq!((one, payload.len()), (Some(Block { num: 1, more: true, szx: 2 }), 64));
    assert_eq!(ask(block(98, 7)).0, Code::BAD_REQUEST);
}

/// A peer that says nothing of blocks gets what it takes: whole, or in blocks that any peer knows.
#[test]
fn a_peer_without_blocks_gets_bodies_as_it_takes_them() {
    for (size, is_whole) in [(200_000, true), (20_000, false)] {
        let mut by_hand = ByHand::new(None);
        let csm = Content::new(Code::CSM).with_uint(signal::MAX_MESSAGE_SIZE, size);
        by_hand.send(Token::EMPTY, &csm);
        let content = Content::new(Code::PUT).with_payload(body(100_000, 0));
        let said = by_hand.input(Input::Request { request: 1, content });
        let [(_, request)] = &sent(&said)[..] else { panic!("{said:?}") };
        let len = if is_whole { 100_000 } else { 1024 };
        assert_eq!(request.payload.len(), len);
    }
}

/// RFC 8323 §5.3: what any peer takes goes at once, the rest when it has said what it takes.
#[test]
fn only_short_requests_go_before_the_csm_of_the_peer() {
    let mut by_hand = ByHand::new(None);
    let request = |request, len| {
        let content = Content::new(Code::PUT).with_payload(body(len, 0));
        Input::Request { request, content }
    };
    assert_eq!(sent(&by_hand.input(request(1, 1100))).len(), 1);
    assert_eq!(sent(&by_hand.input(request(2, 1200))).len(), 0);
    assert_eq!(sent(&by_hand.input(request(3, 60_000))).len(), 0);
    by_hand.input(Input::Cancel { request: 3 });
    // The same number again is nothing new.
    by_hand.input(request(2, 1300));
    assert_eq!(by_hand.end.counts().misused, 1);
    let csm = Content::new(Code::CSM).with_uint(signal::MAX_MESSAGE_SIZE, 70_000);
    let said = sent(&by_hand.send(Token::EMPTY, &csm));
    let [(_, second)] = &said[..] else { panic!("{said:?}") };
    assert_eq!(second.payload.len(), 1200);
}

#[test]
fn what_no_message_holds_fails() {
    let mut by_hand = ByHand::established(None, MIN_MESSAGE_BYTES);
    let content = get(&"x".repeat(100));
    let said = by_hand.input(Input::Request { request: 1, content });
    let failed = Output::Failed { request: 1, reason: Reason::Misuse };
    assert!(said.contains(&failed), "{said:?}");
    // And an answer becomes what says so.
    let said = by_hand.send(token(1), &get("a"));
    assert!(matches!(said[0], Output::Request { exchange: 1, .. }), "{said:?}");
    let content = Content::new(Code::CREATED).with(option::LOCATION_PATH, &[b'x'; 100]);
    let said = by_hand.input(Input::Respond { exchange: 1, content });
    let [(_, answer)] = &sent(&said)[..] else { panic!("{said:?}") };
    assert_eq!(answer.code, Code::INTERNAL_SERVER_ERROR);
}

/// As many as there are places, and one more.
#[test]
fn requests_have_bounds_both_ways() {
    let mut by_hand = ByHand::established(None, MAX_MESSAGE_BYTES);
    for number in 0..=MAX_EXCHANGES {
        let said = by_hand.send(token(number as u8), &get("a"));
        let is_taken = said.iter().any(|output| matches!(output, Output::Request { .. }));
        assert_eq!(is_taken, number < MAX_EXCHANGES);
        let refused: Vec<_> = sent(&said).into_iter().map(|(_, answer)| answer.code).collect();
        let expected = [Code::SERVICE_UNAVAILABLE];
        assert_eq!(refused, expected[usize::from(is_taken)..]);
    }
    for request in 0..=MAX_REQUESTS as u64 {
        let said = by_hand.input(Input::Request { request, content: get("a") });
        let full = Output::Failed { request, reason: Reason::Full };
        assert_eq!(said.contains(&full), request == MAX_REQUESTS as u64);
    }
    let unsupported = get("a").with(9, b"oscore");
    let [(_, answer)] = &sent(&by_hand.send(token(99), &unsupported))[..] else { panic!() };
    assert_eq!(answer.code, Code::BAD_OPTION);
    let [(_, answer)] = &sent(&by_hand.send(token(99), &Content::new(Code(9))))[..] else {
        panic!()
    };
    assert_eq!(answer.code, Code::METHOD_NOT_ALLOWED);
}

/// RFC 7967, over a transport that delivers.
#[test]
fn who_wants_no_answer_gets_none() {
    let not = option::NO_SUCCESS | option::NO_CLIENT_ERROR | option::NO_SERVER_ERROR;
    for framing in [Framing::Stream, Framing::WebSocket] {
        let mut pair = Pair::new(1, framing, as_asked);
        pair.request(1, get("a").with_uint(option::NO_RESPONSE, not));
        pair.run(LONG);
        assert_eq!(pair.said(0), [Output::Suppressed { request: 1 }]);
        assert_eq!(pair.requests.len(), 1);
    }
}

/// What nobody answers in time is answered all the same.
#[test]
fn everything_has_its_time() {
    let mut pair = Pair::new(0, Framing::Stream, |_| None);
    pair.request(1, get("a"));
    pair.run(MAX_EXCHANGE_TIME + MINUTE);
    assert_eq!(pair.responses(), [(1, Code::SERVICE_UNAVAILABLE, Bytes::new())]);
    let mut by_hand = ByHand::established(None, MAX_MESSAGE_BYTES);
    by_hand.input(Input::Request { request: 1, content: get("a") });
    let mut said = Vec::new();
    for _ in 0..10 {
        said.extend(by_hand.wait(MINUTE / 2));
        said.extend(by_hand.send(Token::EMPTY, &Content::new(Code::PONG)));
    }
    said.extend(by_hand.wait(MINUTE / 2));
    let failed = Output::Failed { request: 1, reason: Reason::NoAnswer };
    assert_eq!(said.iter().filter(|it| !matches!(it, Output::WakeAt(_))).count(), 1);
    assert!(said.contains(&failed), "{said:?}");
}
