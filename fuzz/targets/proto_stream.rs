//! Any bytes from the peer: frames survive a round trip, and both ends of the machine end in a
//! fault or go on, whatever the pieces that the bytes come in.
#![no_main]

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use proto::carrier::{Input, Machine as _, Output, Setup};
use proto::exchange::Role;
use proto::stream::{Frame, Machine};

fuzz_target!(|data: &[u8]| {
    let Some((&piece_bytes, data)) = data.split_first() else { return };
    frames(data);
    for role in [Role::Edge, Role::Gateway] {
        machine(role, usize::from(piece_bytes).max(1), data);
    }
});

fn frames(data: &[u8]) {
    let mut input = BytesMut::from(data);
    while let Ok(Some(frame)) = Frame::take(&mut input) {
        let mut again = Vec::new();
        frame.encode(&mut again);
        assert_eq!(Frame::take(&mut BytesMut::from(again.as_slice())), Ok(Some(frame)));
    }
}

fn machine(role: Role, piece_bytes: usize, data: &[u8]) {
    let mut machine = Machine::new(Setup {
        role,
        instance: 1,
        initial_credit: 64 * 1024,
        max_exchanges: 8,
        codecs: vec![0, 1, 2],
        max_window_log: 20,
        own_bytes_per_s: None,
    });
    let mut faulted = false;
    // Any input decides how many frames follow; the pieces are at most that many and the hello.
    let mut now = Duration::ZERO;
    for piece in data.chunks(piece_bytes) {
        machine.handle_input(now, Input::Bytes(Bytes::copy_from_slice(piece)));
        while let Some(output) = machine.poll_output() {
            assert!(!faulted, "an output after the fault");
            faulted = matches!(output, Output::Fault(_));
        }
        assert!(machine.open_exchanges() <= 8);
        now += Duration::from_millis(1);
    }
}
