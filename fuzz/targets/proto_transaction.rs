//! The carriers over transactions of CoAP: any datagrams or bytes at either end, and any frames in
//! transactions of an edge that has said HELLO. Each ends in a fault or goes on, and nothing comes
//! out after a fault.
#![no_main]

use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use proto::carrier::{Input, Output, Setup};
use proto::coap::{Code, Header, Kind as MessageKind, Token, Writer, option};
use proto::exchange::Role;
use proto::kinds::{Carrier, Kind};
use proto::stream::{Frame, Hello};

/// Most bytes of the frames in a transaction: they go in one message.
const MAX_PAYLOAD_BYTES: usize = 1024;

fn setup(role: Role) -> Setup {
    Setup {
        role,
        instance: 1,
        initial_credit: 64 * 1024,
        max_exchanges: 8,
        codecs: vec![0, 1, 2],
        max_window_log: 20,
        own_bytes_per_s: None,
    }
}

/// Takes all that comes out; whether a fault did, now or before.
fn drain(machine: &mut Carrier, faulted: bool) -> bool {
    let mut faulted = faulted;
    while let Some(output) = machine.poll_output() {
        assert!(!faulted, "an output after the fault");
        faulted = matches!(output, Output::Fault(_) | Output::Lost(_));
    }
    faulted
}

fn hostile(kind: Kind, role: Role, input: impl Fn(Bytes) -> Input, data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else { return };
    let mut machine = (kind.make)(setup(role));
    let mut faulted = drain(&mut machine, false);
    for (at, piece) in rest.chunks(usize::from(first).max(1)).enumerate() {
        let now = Duration::from_millis(at as u64 * 300);
        machine.handle_input(now, input(Bytes::copy_from_slice(piece)));
        faulted = drain(&mut machine, faulted);
    }
}

fn post(mid: u16, payload: &[u8]) -> Option<Bytes> {
    let token = Token::new(&mid.to_be_bytes()).ok()?;
    let header = Header { kind: MessageKind::Confirmable, code: Code::POST, mid, token };
    let mut room = [0; MAX_PAYLOAD_BYTES + 64];
    let mut writer = Writer::new(&mut room, &header);
    writer.option(option::URI_PATH, b"lw").ok()?;
    writer.payload(payload).ok()?;
    let len = writer.finish().ok()?;
    Some(Bytes::copy_from_slice(&room[..len]))
}

/// Each transaction has its length in front, and how long after the one before it comes.
fn transactions(data: &[u8]) {
    let mut gateway = (Kind::COAP.make)(setup(Role::Gateway));
    let mut hello = Vec::new();
    Frame::Hello(Hello::of(&setup(Role::Edge))).encode(&mut hello);
    let (mut faulted, mut rest, mut now, mut mid) = (false, data, Duration::ZERO, 0_u16);
    let mut give = |gateway: &mut Carrier, now: Duration, payload: &[u8]| {
        mid = mid.wrapping_add(1);
        let Some(datagram) = post(mid, payload) else { return };
        gateway.handle_input(now, Input::Datagram(datagram));
        faulted = drain(gateway, faulted);
    };
    give(&mut gateway, now, &hello);
    while let Some((&[bytes, pause], behind)) = rest.split_first_chunk() {
        let (payload, behind) = behind.split_at(usize::from(bytes).min(behind.len()));
        rest = behind;
        now += Duration::from_secs(u64::from(pause));
        give(&mut gateway, now, payload);
        assert!(gateway.open_exchanges() <= 8 + 64, "more exchanges than are announced");
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else { return };
    match first % 5 {
        0 => hostile(Kind::COAP, Role::Edge, Input::Datagram, rest),
        1 => hostile(Kind::COAP, Role::Gateway, Input::Datagram, rest),
        2 => hostile(Kind::COAP_TCP, Role::Edge, Input::Bytes, rest),
        3 => hostile(Kind::COAP_TCP, Role::Gateway, Input::Bytes, rest),
        _ => transactions(rest),
    }
});
