//! A call over WSP to a peer that answers anything, from anywhere: it ends, within its time, and
//! with an answer only from its gateway.
#![no_main]

#[path = "../answers.rs"]
mod answers;

use std::time::Duration;

use answers::{Answers, PEER};
use libfuzzer_sys::fuzz_target;
use pocket::{Content, Request, wsp};

fuzz_target!(|data: &[u8]| {
    let _ = wsp::Reply::decode(data);
    let Some((&[room, repeats], rest)) = data.split_first_chunk::<2>() else { return };
    let mut socket = Answers::new(rest);
    let request = Request { uri: "http://a/", action: "b", content: Content::Xml, body: b"<a/>" };
    let settings = wsp::Settings { repeats: repeats & 1 != 0, ..wsp::Settings::DEFAULT };
    let mut room = vec![0; usize::from(room) * 4];
    let mut client = wsp::Client::new(PEER, 1);
    let answer = client.call(&mut socket, Duration::ZERO, &request, &settings, &mut room);
    if let Ok(answer) = answer {
        assert!((100..600).contains(&answer.status) && socket.last_from == PEER);
    }
    assert!(socket.sent <= 5);
});
