//! Any frames of a member whose key is good: no panic, and what waits for others stays within its
//! bounds.
#![no_main]

use std::time::Duration;

use broker::{ConnectionId, Mesh, MeshInput, MeshMember, MeshOutput, MeshSettings};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

/// Of the protocol.
const VERSION: u8 = 2;
const MAC_BYTES: usize = 16;
const MAX_FRAME_BYTES: usize = 4096;
const MAX_QUEUED: usize = 8;

/// Every frame is its sender's.
fn mac(_: &[u8], _: &[&[u8]]) -> [u8; 32] {
    [0; 32]
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u16).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn framed(body: &[u8], tail: usize) -> Bytes {
    let len = (body.len() + tail) as u32;
    [&len.to_be_bytes()[..], body, &vec![0; tail]].concat().into()
}

fn drain(mesh: &mut Mesh, keeps: &mut u64) {
    while let Some(output) = mesh.poll_output() {
        if let MeshOutput::Keep(..) = output {
            *keeps += 1;
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let member = |name: &str| MeshMember {
        name: name.into(),
        key: Bytes::from_static(b"key"),
        dials: false,
        revoked: false,
    };
    let mut mesh = Mesh::new(MeshSettings {
        name: "a".into(),
        members: vec![member("b"), member("c")],
        mac,
        seed: [1; 32],
        life: 1,
        max_frame_bytes: MAX_FRAME_BYTES,
        max_queued: MAX_QUEUED,
        max_queued_bytes: 1 << 16,
    });
    let (mut now, mut keeps) = (Duration::from_secs(1 << 30), 0);
    let id = ConnectionId(1);
    mesh.restore(now, [], []);
    mesh.handle_input(now, MeshInput::Connected(id));
    let mut hello = vec![1, VERSION];
    text(&mut hello, "b");
    text(&mut hello, "a");
    hello.extend_from_slice(&[7; 16]);
    mesh.handle_input(now, MeshInput::Received(id, framed(&hello, 0)));
    let mut welcome = vec![3];
    let numbers = [9, 0, 0, 0, MAX_FRAME_BYTES as u64];
    numbers.iter().for_each(|number| welcome.extend_from_slice(&number.to_be_bytes()));
    mesh.handle_input(now, MeshInput::Received(id, framed(&welcome, MAC_BYTES)));
    drain(&mut mesh, &mut keeps);
    assert!(mesh.members()[0].is_linked, "it is not known");
    let mut rest = data;
    while let Some((&len, behind)) = rest.split_first() {
        let (frame, behind) = behind.split_at(behind.len().min(usize::from(len)));
        rest = behind;
        now += Duration::from_millis(u64::from(len) * 10);
        mesh.handle_input(now, MeshInput::Received(id, framed(frame, MAC_BYTES)));
        drain(&mut mesh, &mut keeps);
        mesh.handle_input(now, MeshInput::Persisted(keeps));
        if mesh.wake_at().is_some_and(|at| at <= now) {
            mesh.handle_input(now, MeshInput::Wake);
        }
        let mut publication = broker::Publication::new(broker::Protocol::Mqtt, "t", "x");
        publication.grade = broker::Grade::AtLeastOnce;
        mesh.handle_input(now, MeshInput::Published(publication.into()));
        mesh.handle_input(now, MeshInput::Writable(id));
        drain(&mut mesh, &mut keeps);
        assert!(mesh.members().iter().all(|member| member.waiting <= MAX_QUEUED));
    }
});
