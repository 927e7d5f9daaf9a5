mod lossy;
mod messages;
mod observe;

use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::coap::{Header, Writer};

const CLIENT: u8 = 1;
const SERVER: u8 = 2;

const fn s(s: u64) -> Duration {
    Duration::from_secs(s)
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn settings(seed: u64) -> Settings {
    Settings { seed: [seed, 7], is_challenging: false, rate_bps: None }
}

fn endpoint() -> Endpoint<u8> {
    Endpoint::new(&settings(1))
}

fn drain(endpoint: &mut Endpoint<u8>) -> Vec<Output<u8>> {
    std::iter::from_fn(|| endpoint.poll_output()).collect()
}

/// What comes out of an input, without when to wake.
fn run(endpoint: &mut Endpoint<u8>, now: Duration, input: Input<u8>) -> Vec<Output<u8>> {
    endpoint.handle_input(now, input);
    let mut outputs = drain(endpoint);
    outputs.retain(|output| !matches!(output, Output::WakeAt(_)));
    outputs
}

fn datagram(peer: u8, bytes: &Bytes) -> Input<u8> {
    Input::Datagram { peer, bytes: bytes.clone(), is_group: false }
}

fn request(request: u64, content: Content) -> Input<u8> {
    Input::Request { request, peer: SERVER, content, is_confirmable: true }
}

fn get() -> Content {
    Content::new(Code::GET).with(option::URI_PATH, b"t")
}

fn content(text: &'static str) -> Content {
    Content::new(Code::CONTENT).with_payload(text)
}

/// A message as a peer would write it.
fn message(kind: Kind, code: Code, mid: u16, token: &[u8], options: &[(u16, &[u8])]) -> Bytes {
    let mut room = [0; 256];
    let header = Header { kind, code, mid, token: Token::new(token).unwrap() };
    let mut writer = Writer::new(&mut room, &header);
    options.iter().for_each(|(number, value)| writer.option(*number, value).unwrap());
    let len = writer.finish().unwrap();
    Bytes::copy_from_slice(&room[..len])
}

/// The datagrams among outputs.
fn sent(outputs: &[Output<u8>]) -> Vec<Bytes> {
    let bytes = |output: &Output<u8>| match output {
        Output::Datagram { bytes, .. } => Some(bytes.clone()),
        _ => None,
    };
    outputs.iter().filter_map(bytes).collect()
}

/// Kind, code and message id of the only datagram.
fn only(outputs: &[Output<u8>]) -> (Kind, Code, u16) {
    let sent = sent(outputs);
    assert_eq!(sent.len(), 1, "{outputs:?}");
    let datagram = Datagram::decode(&sent[0]).unwrap();
    (datagram.kind, datagram.message.code, datagram.mid)
}

/// The number of the only request among outputs.
fn exchange(outputs: &[Output<u8>]) -> u64 {
    let number = |output: &Output<u8>| match output {
        Output::Request { exchange, .. } => Some(*exchange),
        _ => None,
    };
    let all: Vec<u64> = outputs.iter().filter_map(number).collect();
    assert_eq!(all.len(), 1, "{outputs:?}");
    all[0]
}
