//! A client of AMQP 1.0 and a server that sends anything: any frames, bytes, inputs and times in
//! any order; nothing panics, nothing grows, nothing follows the end, and what it sends can be
//! read.
#![no_main]

use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use proto::amqp::client::{Client, Input, Settings};
use proto::amqp::frame::{self, Kind, Protocol};
use proto::amqp::machine::{LinkId, Output};
use proto::amqp::performative::{Attach, Begin, DeliveryState, Open, Performative, Role, Source};
use proto::amqp::sasl::{self, Code, Credentials};
use proto::amqp::types::Symbol;

/// Outputs of one input: each link has a few.
const MAX_OUTPUTS: usize = 100_000;

fn frame_of(kind: Kind, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut wire = Vec::new();
    frame::encode(&mut wire, kind, 0, body);
    wire
}

/// What a server says until links may be attached.
fn greeting() -> Vec<u8> {
    let begin = Begin {
        remote_channel: Some(0),
        next_outgoing_id: 0,
        incoming_window: 9,
        outgoing_window: 9,
        handle_max: 7,
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: Vec::new(),
    };
    let mechanisms = sasl::Frame::Mechanisms(vec![Symbol::new("ANONYMOUS")]);
    [
        Protocol::Sasl.header().to_vec(),
        frame_of(Kind::Sasl, |out| mechanisms.encode(out)),
        frame_of(Kind::Sasl, |out| sasl::Frame::Outcome(Code::Ok).encode(out)),
        Protocol::Amqp.header().to_vec(),
        frame_of(Kind::Amqp, |out| {
            let open = Open { max_frame_size: 512, ..Open::new("peer") };
            Performative::Open(Box::new(open)).encode(out);
        }),
        frame_of(Kind::Amqp, |out| Performative::Begin(Box::new(begin)).encode(out)),
    ]
    .concat()
}

/// A performative whose fields are bytes of the input: small values, or anything.
fn any_performative(code: u8, fields: &[u8]) -> Vec<u8> {
    let mut list = Vec::new();
    for byte in fields {
        match byte >> 5 {
            0 => list.push(0x40),
            1 => list.push(0x41 + (byte & 1)),
            2..=4 => list.extend([0x52, byte & 7]),
            5 => list.extend([0x50, byte & 1]),
            6 => list.extend([0xa0, 1, byte & 3]),
            _ => list.extend([0x00, 0x53, 0x23 + byte % 5, 0x45]),
        }
    }
    let len = u8::try_from(list.len() + 1).unwrap_or(u8::MAX);
    let count = u8::try_from(fields.len()).unwrap_or(u8::MAX);
    [vec![0, 0x53, code, 0xc0, len, count], list].concat()
}

fn input_of(what: u8, with: u8, bytes: &[u8]) -> Input {
    let link = LinkId(u64::from(with % 6));
    let name = ["a", "b"][usize::from(with & 1)];
    let role = if with & 2 == 0 { Role::Sender } else { Role::Receiver };
    match what % 12 {
        0 => Input::Bytes(Bytes::copy_from_slice(bytes)),
        1 | 2 => {
            let mut attach = Attach::new(name, with.into(), role);
            attach.initial_delivery_count = Some(with.into());
            attach.source = (with & 4 == 0).then(Source::default);
            let attach = Performative::Attach(Box::new(attach));
            Input::Bytes(frame_of(Kind::Amqp, |out| attach.encode(out)).into())
        }
        3..=5 => {
            let body = any_performative(0x10 + with % 9, bytes);
            Input::Bytes(frame_of(Kind::Amqp, |out| out.extend(body)).into())
        }
        6 | 7 => {
            let attach = Box::new(Attach::new(name, 0, role));
            Input::Attach { link, attach, window: u32::from(with >> 4) }
        }
        8 => {
            let message = Bytes::from(vec![with; usize::from(with) * 16]);
            let delivery = u64::from(with >> 4);
            Input::Deliver { link, delivery, settled: with & 8 == 0, message }
        }
        9 => {
            let state = DeliveryState::Accepted;
            Input::Outcome { link, delivery: u32::from(with >> 5), state }
        }
        10 if with & 1 == 0 => Input::Settle { link, delivery: u64::from(with >> 4) },
        10 => Input::Detach { link, closed: with & 8 == 0 },
        _ if with == 7 => Input::Close,
        _ if with == 8 => Input::Eof,
        _ if with > 200 => Input::Drained { link },
        _ => Input::Wake,
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, mut rest)) = data.split_first() else { return };
    let settings = Settings {
        container_id: "c".to_owned(),
        hostname: None,
        credentials: Credentials::Anonymous { trace: String::new() },
        idle_timeout: (first & 2 == 0).then_some(Duration::from_secs(1)),
        max_message_bytes: 4096,
    };
    let mut client = Client::new(settings, Duration::ZERO);
    let mut inputs = Vec::new();
    if first & 4 == 0 {
        inputs.push(Input::Bytes(greeting().into()));
    }
    while let Some((&[what, with, len], more)) = rest.split_first_chunk::<3>() {
        let (bytes, more) = more.split_at(more.len().min(usize::from(len % 40)));
        rest = more;
        inputs.push(input_of(what, with, bytes));
    }
    let mut now = Duration::ZERO;
    let mut reader = frame::Reader::default();
    let mut has_hung_up = false;
    for input in inputs {
        now += Duration::from_millis(20);
        client.handle_input(now, input);
        let mut outputs = 0;
        while let Some(output) = client.poll_output() {
            outputs += 1;
            assert!(outputs < MAX_OUTPUTS && !has_hung_up);
            match output {
                Output::Transmit(bytes) => reader.receive(&bytes),
                Output::HangUp => has_hung_up = true,
                _ => {}
            }
        }
        while reader.held_bytes() >= 8 {
            if reader.is_amqp() {
                reader.header();
                continue;
            }
            let frame = reader.frame(1 << 16).expect("it is a frame").expect("it is whole");
            if frame.kind == Kind::Amqp && !frame.body.is_empty() {
                Performative::decode(&frame.body).expect("it is read");
            }
        }
        assert!(client.held_bytes() < 1 << 24);
    }
});
