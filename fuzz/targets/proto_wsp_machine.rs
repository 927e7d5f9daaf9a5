//! Any bytes as what happens to a client and a server of WSP, each with datagrams of the other and
//! of anybody: no panic, no growth, and each request ends once.
#![no_main]

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use proto::wsp::client::{self, Client, MAX_REQUESTS};
use proto::wsp::server::{self, MAX_KNOWN, Server};

/// Outputs of one input: those of all requests and a few more.
const MAX_OUTPUTS: usize = 4 * MAX_REQUESTS;

fn address(port: u8) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], u16::from(port & 3)))
}

fuzz_target!(|data: &[u8]| {
    let (mut client, mut server) = (Client::new(data.len() as u64), Server::new());
    let (mut now, mut key) = (Duration::ZERO, 0);
    let (mut open, mut ids) = (BTreeSet::new(), Vec::new());
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    for chunk in data.chunks(12) {
        let (head, bytes) = chunk.split_at(chunk.len().min(3));
        let [action, peer, step] = [0, 1, 2].map(|at| head.get(at).copied().unwrap_or(0));
        now += Duration::from_millis(u64::from(step) * u64::from(step) * 4);
        let (peer, bytes) = (address(peer), bytes.to_vec());
        match action & 7 {
            0 | 1 => {
                key += 1;
                open.insert(key);
                let pdu = [&[0x60, 1, 0, b'u'], &bytes[..]].concat().into();
                let again = action & 8 == 0;
                client.handle_input(now, client::Input::Request { key, peer, pdu, again });
            }
            2 => client.handle_input(now, client::Input::Datagram { peer, datagram: bytes.into() }),
            3 => server.handle_input(now, server::Input::Datagram { peer, datagram: bytes.into() }),
            4 => {
                if let Some((peer, datagram)) = to_server.pop() {
                    server.handle_input(now, server::Input::Datagram { peer, datagram });
                }
            }
            5 => {
                if let Some((peer, datagram)) = to_client.pop() {
                    client.handle_input(now, client::Input::Datagram { peer, datagram });
                }
            }
            6 => {
                let id = ids.pop().unwrap_or(1);
                let pdu = [&[4, 0x20, 0], &bytes[..]].concat().into();
                server.handle_input(now, server::Input::Reply { id, pdu });
            }
            _ => {
                let cancelled = u64::from(step);
                client.handle_input(now, client::Input::Cancel { key: cancelled });
                open.remove(&cancelled);
                client.handle_input(now, client::Input::Rate(Some(u64::from(action) * 100)));
                server.handle_input(now, server::Input::Wake);
            }
        }
        let mut outputs = 0;
        while let Some(output) = client.poll_output() {
            outputs += 1;
            match output {
                client::Output::Transmit { peer, datagram } => to_server.push((peer, datagram)),
                client::Output::Reply { key, .. } | client::Output::Failed { key, .. } => {
                    assert!(open.remove(&key), "a request ended twice");
                }
                client::Output::Push { .. } => {}
                client::Output::WakeAt(at) => assert!(at > now),
            }
        }
        while let Some(output) = server.poll_output() {
            outputs += 1;
            match output {
                server::Output::Transmit { peer, datagram } => to_client.push((peer, datagram)),
                server::Output::Request { id, .. } => ids.push(id),
                server::Output::Expired { .. } => {}
                server::Output::WakeAt(at) => assert!(at > now),
            }
        }
        assert!(outputs <= MAX_OUTPUTS);
        assert!(client.open_requests() <= MAX_REQUESTS && open.len() == client.open_requests());
        assert!(server.known_requests() <= MAX_KNOWN);
    }
});
