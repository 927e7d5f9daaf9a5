//! Any bytes as an OSCORE option, as a request and as a response: an option that is read is what
//! was written, and nothing is accepted that was not made with the keys; and any order of numbers:
//! none is accepted twice.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use proto::oscore::{
    Algorithm, CoapMessage, Context, Endpoint, MAX_WINDOW, OSCORE, OscoreOption, Parameters,
    Replay, ReplayWindow, ResponseIv, SenderSequence, Verified,
};

fn end(sender_id: &[u8], recipient_id: &[u8]) -> Endpoint {
    let context = Context::derive(&Parameters {
        algorithm: Algorithm::default(),
        master_secret: b"secret",
        master_salt: b"",
        sender_id,
        recipient_id,
        id_context: None,
    })
    .unwrap();
    Endpoint::new(context, SenderSequence::unstored(), Replay::fresh(32).unwrap())
}

fuzz_target!(|data: &[u8]| {
    if let Ok(option) = OscoreOption::decode(data) {
        assert_eq!(option.encode().unwrap(), data);
    }

    let Some((&len, rest)) = data.split_first() else { return };
    let (option, payload) = rest.split_at(usize::from(len).min(rest.len()));
    let (mut client, mut server) = (end(b"", b"s"), end(b"s", b""));
    let outer = CoapMessage::new(2, [(OSCORE, option)], payload);
    assert!(server.verify_request(&outer).is_err());

    // A request as the bytes have it: an option of every number, a path, the rest as payload.
    let number = u16::from_be_bytes([len, option.first().copied().unwrap_or(0)]);
    let request = CoapMessage::new(1, [(number, option), (11, b"p")], payload);
    if let Ok((sealed, mut sent)) = client.protect_request(&request) {
        assert!(client.verify_response(&mut sent, &outer).is_err());
        let Ok(Verified::New(opened, mut received)) = server.verify_request(&sealed) else {
            panic!("an honest request is refused")
        };
        assert_eq!(opened.payload, request.payload);
        let response = CoapMessage::new(0x45, [(number, option)], payload);
        let iv = ResponseIv::OfRequest;
        if let Ok(sealed) = server.protect_response(&mut received, &response, iv) {
            let opened = client.verify_response(&mut sent, &sealed);
            // Observe is the one that a request must have asked for.
            assert!(number == 6 || opened.is_ok_and(|opened| opened.payload == payload));
        }
    }

    let width = u32::from(len).clamp(1, MAX_WINDOW);
    let (mut window, mut read) = (ReplayWindow::new(width).unwrap(), BTreeSet::new());
    for two in rest.chunks_exact(2) {
        let number = u64::from(u16::from_be_bytes([two[0], two[1]]));
        if window.note(number) {
            assert!(read.insert(number), "{number} twice");
        }
    }
});
