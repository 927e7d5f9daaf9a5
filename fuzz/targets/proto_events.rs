//! Reader of server-sent events: any stream in any pieces gives the same events, within bounds, and
//! each of them is read again as it was written.

#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::events::{Event, MAX_NAME_BYTES, Reader};

const MOST: usize = 4096;

fn read(mut stream: &[u8], piece: usize) -> (Vec<Event>, bool) {
    let (mut reader, mut events) = (Reader::new(MOST), Vec::new());
    while !stream.is_empty() {
        let (mut bytes, rest) = stream.split_at(piece.min(stream.len()));
        stream = rest;
        loop {
            match reader.take(&mut bytes) {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(_) => return (events, false),
            }
        }
        assert!(bytes.is_empty());
    }
    (events, true)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, stream) = (usize::from(input.0) + 1, input.1);
    let (events, _) = read(stream, usize::MAX);
    let (pieces, _) = read(stream, piece);
    // A line that is too long is found sooner in larger pieces, and never later.
    assert!(pieces.starts_with(&events) || events.starts_with(&pieces));
    for event in events {
        assert!(event.data.len() <= MOST && event.name.len() <= MAX_NAME_BYTES);
        let mut text = String::new();
        event.write(&mut text);
        if text.len() < MOST {
            let (again, is_whole) = read(text.as_bytes(), piece);
            assert!(is_whole);
            assert_eq!(again, [event]);
        }
    }
});
