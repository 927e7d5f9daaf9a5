//! A client and a server whose messages OSCORE protects, and a network that changes, repeats and
//! makes up datagrams: nothing panics, no request ends twice, and what the server's application
//! sees is what the client has sent.
#![no_main]

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use proto::coap::guard::Guard;
use proto::coap::machine::{Input, Output, Settings};
use proto::coap::transfer::Transfers;
use proto::coap::{Code, Content, option};
use proto::oscore::{Algorithm, Context, Endpoint, Parameters, Replay, SenderSequence};

/// Outputs of one input: each peer and each request has a few.
const MAX_OUTPUTS: usize = 100_000;
/// Datagrams that are kept to come again.
const MAX_KEPT: usize = 64;

fn end(sender_id: &[u8], recipient_id: &[u8]) -> Option<Endpoint> {
    let context = Context::derive(&Parameters {
        algorithm: Algorithm::default(),
        master_secret: b"0123456789abcdef",
        master_salt: b"",
        sender_id,
        recipient_id,
        id_context: None,
    });
    let replay = Replay::lost(32, [0; 8]).ok()?;
    Some(Endpoint::new(context.ok()?, SenderSequence::unstored(), replay))
}

fn ends(is_challenging: bool, is_required: bool) -> Option<[Transfers<u8>; 2]> {
    let settings = |number| Settings { seed: [1, number], is_challenging, rate_bps: None };
    let server = Guard::server(vec![end(b"s", b"c")?], is_required, [3, 4]).ok()?;
    let client = Guard::client(end(b"c", b"s")?);
    Some([
        Transfers::new(&settings(1)).with_guard(client),
        Transfers::new(&settings(2)).with_guard(server),
    ])
}

fuzz_target!(|data: &[u8]| {
    let Some((&[first, ..], mut rest)) = data.split_first_chunk::<1>() else { return };
    let is_required = first & 2 != 0;
    let Some(mut ends) = ends(first & 1 != 0, is_required) else { return };
    let mut now = Duration::ZERO;
    let mut open = BTreeSet::new();
    let mut sent: Vec<(usize, Bytes)> = Vec::new();
    while let Some((&[what, with, len], more)) = rest.split_first_chunk::<3>() {
        let (bytes, more) = more.split_at(more.len().min(len.into()));
        rest = more;
        now += Duration::from_millis(u64::from(with) * 40);
        let (number, peer) = (u64::from(with), with % 4);
        let at = usize::from(with) % sent.len().max(1);
        let (end, input) = match what % 6 {
            // What was sent arrives: as it was, again, or with other bytes, from anywhere.
            0..=2 if !sent.is_empty() => {
                let (end, datagram) = match what % 6 {
                    0 => sent.remove(at),
                    _ => sent.get(at).cloned().unwrap_or_default(),
                };
                let mut datagram = datagram.to_vec();
                if what % 6 == 2 {
                    for pair in bytes.chunks_exact(2) {
                        if let Some(byte) = datagram.get_mut(usize::from(pair[0])) {
                            *byte = pair[1];
                        }
                    }
                }
                let peer = if what & 0x40 != 0 { peer } else { 0 };
                (end, Input::Datagram { peer, bytes: datagram.into(), is_group: false })
            }
            3 => {
                let size = if what & 0x80 != 0 { 3000 } else { 3 };
                let mut content = Content::new(Code(1 + with % 7)).with_payload(vec![7; size]);
                if what & 0x40 != 0 {
                    content.push_uint(option::OBSERVE, 0);
                }
                open.insert(number);
                let request =
                    Input::Request { request: number, peer: 0, content, is_confirmable: true };
                (0, request)
            }
            4 => {
                open.remove(&number);
                (0, Input::Cancel { request: number })
            }
            5 => (usize::from(what & 0x40 != 0), Input::Wake),
            _ => {
                let bytes = bytes.to_vec().into();
                (1, Input::Datagram { peer, bytes, is_group: false })
            }
        };
        let mut inputs = vec![(end, input)];
        while let Some((end, input)) = inputs.pop() {
            ends[end].handle_input(now, input);
            let mut outputs = 0;
            while let Some(output) = ends[end].poll_output() {
                outputs += 1;
                assert!(outputs < MAX_OUTPUTS);
                match output {
                    Output::Datagram { bytes, .. } => {
                        sent.push((1 - end, bytes));
                        if sent.len() > MAX_KEPT {
                            sent.remove(0);
                        }
                    }
                    Output::Request { exchange, content, .. } if end == 1 => {
                        let is_ours = content.payload.iter().all(|byte| *byte == 7);
                        assert!(is_ours || !is_required, "the server takes what nobody sent");
                        let size = usize::from(with) * 16;
                        let answer = Content::new(Code::CONTENT).with_payload(vec![8; size]);
                        let content = answer.with_uint(option::OBSERVE, 0);
                        inputs.push((1, Input::Respond { exchange, content }));
                    }
                    Output::Response { request, is_last, content } => {
                        assert!(content.payload.iter().all(|byte| *byte == 8));
                        match is_last {
                            true => assert!(open.remove(&request), "{request} was not open"),
                            false => assert!(open.contains(&request)),
                        }
                    }
                    Output::Failed { request, .. } | Output::Suppressed { request } => {
                        assert!(open.remove(&request), "{request} was not open");
                    }
                    _ => {}
                }
            }
        }
    }
});
