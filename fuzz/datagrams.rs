//! Any datagrams at one end of a carrier over datagrams, and a pair of ends between which a script
//! loses, doubles and holds back: each ends in a fault or goes on, and what comes is what was sent,
//! once.

use std::time::Duration;

use bytes::Bytes;
use proto::carrier::{Input, Output, Setup};
use proto::exchange::{Head, Part, Role};
use proto::kinds::{Carrier, Kind};
use proto::urgency::Urgency;

/// The first byte says which of the two, and how long the datagrams are.
pub fn any(kind: Kind, data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else { return };
    if first.is_multiple_of(2) {
        hostile(kind, usize::from(first).max(1), rest);
    } else {
        pair(kind, rest);
    }
}

fn end(kind: Kind, role: Role) -> Carrier {
    (kind.make)(Setup {
        role,
        instance: 1,
        initial_credit: 64 * 1024,
        max_exchanges: 8,
        codecs: vec![0, 1, 2],
        max_window_log: 20,
        own_bytes_per_s: None,
    })
}

fn hostile(kind: Kind, piece_bytes: usize, data: &[u8]) {
    for role in [Role::Edge, Role::Gateway] {
        let (mut machine, mut faulted) = (end(kind, role), false);
        for (at, piece) in data.chunks(piece_bytes).enumerate() {
            let now = Duration::from_millis(at as u64 * 300);
            machine.handle_input(now, Input::Datagram(Bytes::copy_from_slice(piece)));
            while let Some(output) = machine.poll_output() {
                assert!(!faulted, "an output after the fault");
                faulted = matches!(output, Output::Fault(_));
            }
        }
    }
}

/// Datagrams on their way to one end.
type Way = Vec<Bytes>;

fn drain(machine: &mut Carrier, way: &mut Way) -> Vec<Part> {
    let mut parts = Vec::new();
    while let Some(output) = machine.poll_output() {
        match output {
            Output::Datagram(datagram) => way.push(datagram),
            Output::Received(part) => parts.push(part),
            Output::Fault(error) => panic!("{error}"),
            _ => {}
        }
    }
    parts
}

fn pair(kind: Kind, script: &[u8]) {
    let (mut edge, mut gateway) = (end(kind, Role::Edge), end(kind, Role::Gateway));
    let (mut to_edge, mut to_gateway) = (Way::new(), Way::new());
    let (mut sent, mut came, mut now) = (Vec::new(), Vec::new(), Duration::ZERO);
    // At the end nothing is lost.
    for step in script.iter().copied().chain([0; 400]) {
        now += Duration::from_millis(50);
        let exchange = sent.len() as u64 + 1;
        if step == 255 && edge.peer().is_some() && exchange <= 8 {
            let head = vec![7; exchange as usize * 900].into();
            let head = Head { exchange, codec: 0, window_log: 0, end: true, head };
            sent.push(Part::Head(head.clone()));
            edge.handle_input(now, Input::Send(Part::Head(head), Urgency::DEFAULT));
        }
        for (machine, way) in [(&mut edge, &mut to_edge), (&mut gateway, &mut to_gateway)] {
            machine.handle_input(now, Input::Wake);
            if way.is_empty() {
                continue;
            }
            let datagram = way.remove(usize::from(step / 4) % way.len());
            if step % 4 == 1 {
                continue;
            }
            if step % 4 == 2 {
                way.push(datagram.clone());
            }
            machine.handle_input(now, Input::Datagram(datagram));
        }
        assert!(drain(&mut edge, &mut to_gateway).is_empty());
        came.extend(drain(&mut gateway, &mut to_edge));
    }
    // Between exchanges there is no order.
    came.sort_by_key(Part::exchange);
    assert!(came.windows(2).all(|two| two[0].exchange() < two[1].exchange()), "one came twice");
    assert!(came.iter().all(|part| sent.contains(part)), "one was changed");
}
