//! Any bytes as frames of a WebSocket, from a client and from a server: wherever they are cut, the
//! same comes of them, and no more is kept than came.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::websocket::{Event, Peer, Reader};

const MAX_MESSAGE_BYTES: usize = 4096;

fn read(peer: Peer, pieces: &[&[u8]]) -> (Vec<Event>, bool) {
    let mut reader = Reader::new(peer, MAX_MESSAGE_BYTES);
    let (mut events, mut received) = (Vec::new(), 0);
    for piece in pieces {
        reader.receive(piece);
        received += piece.len();
        loop {
            match reader.decode() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(_) => return (events, false),
            }
        }
        assert!(reader.held_bytes() <= received);
    }
    (events, true)
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else { return };
    let peer = if first & 1 != 0 { Peer::Client } else { Peer::Server };
    let (before, behind) = rest.split_at(rest.len().min((first >> 1).into()));
    assert_eq!(read(peer, &[rest]), read(peer, &[before, behind]));
});
