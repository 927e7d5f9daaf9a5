//! Bodies of the peer's requests that are given out as they come.

use super::*;
use crate::coap::machine::{Flow, Of};

/// A server that gives bodies out, amid one of them: its number, and what was said to its newest
/// block, which waits for room.
fn opened() -> (ByHand, u64) {
    let mut by_hand = ByHand::established(None, 2000);
    let end = Connection::new(&settings(7, Framing::Stream)).taking_bodies();
    by_hand.end = end;
    by_hand.outputs();
    let csm = Content::new(Code::CSM).with(signal::BLOCK_WISE_TRANSFER, b"");
    by_hand.send(Token::EMPTY, &csm);
    for num in 0..64 {
        let said = by_hand.send(token(1), &block(num));
        assert_eq!(codes(&said), [(token(1), Code::CONTINUE)], "{num}");
    }
    let said = by_hand.send(token(1), &block(64));
    let Some(exchange) = said.iter().find_map(|output| match output {
        Output::Opened { exchange, .. } => Some(*exchange),
        _ => None,
    }) else {
        panic!("{said:?}")
    };
    (by_hand, exchange)
}

fn block(num: u32) -> Content {
    let value = Block { num, more: true, szx: 6 }.encode().unwrap();
    let put = Content::new(Code::PUT).with(option::URI_PATH, b"large");
    put.with(option::BLOCK1, value.as_slice()).with_payload(body(1024, num as u8))
}

fn codes(outputs: &[Output]) -> Vec<(Token, Code)> {
    sent(outputs).into_iter().map(|(token, content)| (token, content.code)).collect()
}

/// Nothing is acknowledged here: each request has an answer, and keeps no place.
#[test]
fn a_block_that_comes_again_is_answered_as_often() {
    let (mut by_hand, exchange) = opened();
    for number in 2..100 {
        let said = by_hand.send(token(number), &block(64));
        let before = (token(number - 1), Code::REQUEST_ENTITY_INCOMPLETE);
        assert_eq!(codes(&said), [before], "{number}");
    }
    let said = by_hand.send(token(200), &get("other"));
    assert!(said.iter().any(|it| matches!(it, Output::Request { .. })), "{said:?}");
    let room = Flow::Room { of: Of::Exchange(exchange), bytes: 1 };
    assert_eq!(codes(&by_hand.input(Input::Flow(room))), [(token(99), Code::CONTINUE)]);
}

/// Between two blocks of a body nothing is asked, and the connection is of use.
#[test]
fn a_connection_amid_a_body_is_open() {
    let (mut by_hand, exchange) = opened();
    assert!(by_hand.end.is_open());
    let room = Flow::Room { of: Of::Exchange(exchange), bytes: 1 };
    by_hand.input(Input::Flow(room));
    assert!(by_hand.end.is_open(), "the next block has not come");
    let content = Content::new(Code::FORBIDDEN);
    by_hand.input(Input::Respond { exchange, content });
    let said = by_hand.send(token(2), &block(65));
    assert_eq!(codes(&said), [(token(2), Code::FORBIDDEN)]);
    assert!(!by_hand.end.is_open());
}
