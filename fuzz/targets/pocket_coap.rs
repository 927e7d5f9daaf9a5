//! A call over CoAP to a peer that answers anything, from anywhere, in blocks that fit or do not:
//! it ends, within its time, and with an answer only from its server.
#![no_main]

#[path = "../answers.rs"]
mod answers;

use std::time::Duration;

use answers::{Answers, PEER};
use libfuzzer_sys::fuzz_target;
use pocket::{Content, Request, coap};

fuzz_target!(|data: &[u8]| {
    if let Ok(message) = coap::Message::decode(data) {
        assert!(message.payload.len() < data.len() && message.options.count() <= data.len());
    }
    let Some((&[room, body], rest)) = data.split_first_chunk::<2>() else { return };
    let mut socket = Answers::new(rest);
    let body = vec![7; usize::from(body) * 16];
    let request = Request { uri: "/a/b", action: "", content: Content::Cbor, body: &body };
    let mut room = vec![0; usize::from(room) * 16];
    let mut client = coap::Client::new(PEER, 1);
    let patience = coap::DEFAULT_PATIENCE;
    let answer = client.call(&mut socket, Duration::ZERO, &request, &patience, &mut room);
    if let Ok(answer) = answer {
        assert!((200..800).contains(&answer.status) && socket.last_from == PEER);
        assert!(usize::from(answer.sent) <= socket.sent);
    }
});
