//! Bodies that are never here as a whole, over a reliable transport.

use super::*;
use crate::coap::machine::{Flow, Of};

const OF: Of = Of::Request(1);

fn open(content: Content, has_more: bool, room_bytes: usize) -> Input {
    Input::Open { request: 1, content, has_more, room_bytes }
}

/// The bytes that there is room for, as far as these say.
fn wanted(outputs: &[Output]) -> usize {
    let room = |output: &Output| match output {
        Output::Flow(Flow::Room { of: OF, bytes }) => *bytes,
        _ => 0,
    };
    outputs.iter().map(room).sum()
}

/// RFC 8323 §6: in blocks of BERT, of which a message has as many as the peer takes.
#[test]
fn a_long_request_goes_in_blocks_of_bert_as_it_comes() {
    let whole = body(1_000_000, 3);
    let mut by_hand = ByHand::established(None, MAX_MESSAGE_BYTES);
    let content = Content::new(Code::PUT).with(option::URI_PATH, b"large");
    let content = content.with_uint(option::SIZE1, 1_000_000);
    let mut said = by_hand.input(open(content, true, 1));
    let (mut stored, mut given, mut room) = (0, 0, 0);
    loop {
        room += wanted(&said);
        // No more is here than three messages take.
        assert!(given - stored + room <= 3 * (64 << 10));
        let messages = sent(&said);
        if let [(token, request)] = &messages[..] {
            let block = Block::decode(request.first(option::BLOCK1).unwrap(), true).unwrap();
            assert_eq!((block.offset(), block.szx), (stored, 7));
            // RFC 7959 §4: how long it will be, where the caller knows, is said once.
            let size = (stored == 0).then_some(1_000_000);
            assert_eq!(request.uint(option::SIZE1), size);
            assert_eq!(request.payload, whole.slice(stored..stored + request.payload.len()));
            stored += request.payload.len();
            let code = if block.more { Code::CONTINUE } else { Code::CHANGED };
            let value = block.encode().unwrap();
            let answer = Content::new(code).with(option::BLOCK1, value.as_slice());
            said = by_hand.send(*token, &answer);
            if !block.more {
                break;
            }
            continue;
        }
        let len = room.min(5000).min(whole.len() - given);
        assert!(len > 0, "nothing goes on");
        let bytes = whole.slice(given..given + len);
        (given, room) = (given + len, room - len);
        let is_last = given == whole.len();
        said = by_hand.input(Input::Flow(Flow::Part { of: OF, bytes, is_last }));
    }
    assert_eq!(stored, whole.len());
    let is_end = |it: &Output| matches!(it, Output::Response { request: 1, is_last: true, .. });
    assert!(said.iter().any(is_end), "{said:?}");
}

/// What takes the first message of blocks of BERT for a whole body, as libcoap 4.3.1 does where
/// nothing says how long that is, gets it anew in blocks of 1024, if it may be done twice.
#[test]
fn who_knows_no_bert_gets_blocks_of_1024() {
    for (code, again) in [(Code::PUT, Some(6)), (Code::POST, None)] {
        let mut by_hand = ByHand::established(None, MAX_MESSAGE_BYTES);
        let content = Content::new(code).with_payload(body(100_000, 3));
        let said = by_hand.input(open(content, true, 1));
        let [(token, request)] = &sent(&said)[..] else { panic!("{said:?}") };
        let block = Block::decode(request.first(option::BLOCK1).unwrap(), true).unwrap();
        assert_eq!((block.num, block.more, block.szx), (0, true, 7));
        let said = by_hand.send(*token, &Content::new(Code::CREATED));
        let sent = sent(&said);
        let block = sent.first().and_then(|(_, request)| request.first(option::BLOCK1));
        let block = block.map(|block| Block::decode(block, true).unwrap());
        assert_eq!(block.map(|block| block.szx), again);
        assert_eq!(block.map(|block| (block.num, block.more)), again.map(|_| (0, true)));
        let failed = Output::Failed { request: 1, reason: Reason::BadAnswer };
        assert_eq!(said.contains(&failed), again.is_none());
        // Who does not know these either knows no blocks.
        if let [(token, request)] = &sent[..] {
            assert_eq!(request.payload, body(1024, 3));
            let said = by_hand.send(*token, &Content::new(Code::CREATED));
            assert!(said.contains(&failed), "{said:?}");
        }
    }
}

/// And of an answer no further message is asked for while there is no room.
#[test]
fn a_long_answer_is_asked_for_as_there_is_room() {
    let mut pair = Pair::new(4, Framing::Stream, |_| {
        Some(Content::new(Code::CONTENT).with_payload(body(1_000_000, 7)))
    });
    pair.input(0, open(get("large"), false, 1));
    let mut came = Vec::new();
    let mut is_whole = false;
    while !is_whole {
        pair.run(MINUTE);
        let said = pair.said(0);
        let [one] = &said[..] else { panic!("{} at {}", said.len(), came.len()) };
        let (bytes, is_last) = match one {
            Output::Response { content, is_last, .. } if came.is_empty() => {
                (&content.payload, *is_last)
            }
            Output::Flow(Flow::Part { of: OF, bytes, is_last }) => (bytes, *is_last),
            other => panic!("{other:?}"),
        };
        assert!(bytes.len() <= 64 << 10);
        came.extend_from_slice(bytes);
        is_whole = is_last;
        let room = Flow::Room { of: OF, bytes: bytes.len() };
        pair.input(0, Input::Flow(room));
    }
    assert_eq!(came, body(1_000_000, 7));
    assert_eq!(pair.requests.len(), 1);
}

/// What a body begins with waits for the peer's CSM, as all that is long does.
#[test]
fn a_request_with_a_body_waits_for_the_csm_of_the_peer() {
    let mut by_hand = ByHand::new(None);
    let content = Content::new(Code::PUT).with_payload(body(10, 0));
    let content = content.with_uint(option::SIZE1, 20);
    let said = by_hand.input(open(content, true, 1));
    assert_eq!((sent(&said).len(), wanted(&said)), (0, 0));
    let csm = Content::new(Code::CSM).with_uint(signal::MAX_MESSAGE_SIZE, MAX_MESSAGE_BYTES);
    let said = by_hand.send(Token::EMPTY, &csm.with(signal::BLOCK_WISE_TRANSFER, b""));
    assert_eq!((sent(&said).len(), wanted(&said)), (0, 3 * (64 << 10) - 10));
    let bytes = body(10, 10);
    let said = by_hand.input(Input::Flow(Flow::Part { of: OF, bytes, is_last: true }));
    let [(_, request)] = &sent(&said)[..] else { panic!("{said:?}") };
    assert_eq!((request.first(option::BLOCK1), request.payload.len()), (None, 20));
    assert_eq!(request.first(option::SIZE1), None);
}
