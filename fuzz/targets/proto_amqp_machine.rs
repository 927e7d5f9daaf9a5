//! A connection of AMQP 1.0: any frames, inputs and times in any order; nothing panics, nothing
//! grows, and what it sends are frames that a peer can read.
#![no_main]

use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use proto::amqp::frame::{self, Kind, Protocol};
use proto::amqp::machine::{Accepted, Connection, Input, LinkId, Output, Settings};
use proto::amqp::performative::{Attach, DeliveryState, Open, Performative, Role, Source};
use proto::amqp::sasl::{Code, Mechanism};

/// Outputs of one input: each session and each link has a few.
const MAX_OUTPUTS: usize = 100_000;

fn frame_of(channel: u16, performative: &Performative, payload: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    frame::encode(&mut wire, Kind::Amqp, channel, |out| {
        performative.encode(out);
        out.extend_from_slice(payload);
    });
    wire
}

/// A performative whose fields are bytes of the input: small values, or anything.
fn any_performative(code: u8, fields: &[u8]) -> Vec<u8> {
    let mut body = vec![0, 0x53, code, 0xc0];
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
    body.push(u8::try_from(list.len() + 1).unwrap_or(u8::MAX));
    body.push(u8::try_from(fields.len()).unwrap_or(u8::MAX));
    body.extend(list);
    body
}

fn input_of(what: u8, with: u8, bytes: &[u8]) -> Input {
    let link = LinkId(u64::from(with % 6));
    let (delivery, channel) = (u64::from(with >> 4), u16::from(with & 1));
    match what % 16 {
        0 => Input::Bytes(Bytes::copy_from_slice(bytes)),
        1 => {
            let role = if with & 2 == 0 { Role::Sender } else { Role::Receiver };
            let mut attach = Attach::new(["a", "b"][usize::from(with & 1)], with.into(), role);
            attach.initial_delivery_count = Some(with.into());
            attach.source = (with & 4 == 0).then(Source::default);
            Input::Bytes(frame_of(channel, &Performative::Attach(Box::new(attach)), b"").into())
        }
        2..=5 => {
            let mut wire = Vec::new();
            frame::encode(&mut wire, Kind::Amqp, channel, |out| {
                out.extend(any_performative(0x10 + with % 9, bytes));
            });
            Input::Bytes(wire.into())
        }
        6 | 7 => Input::Accept(Box::new(Accepted {
            link,
            source: None,
            target: None,
            window: with.into(),
            offered_capabilities: Vec::new(),
            properties: Vec::new(),
        })),
        8 => Input::Refuse {
            link,
            error: proto::amqp::performative::ErrorInfo::new(
                proto::amqp::performative::condition::NOT_FOUND,
                "words",
            ),
        },
        9 => Input::Detach { link, closed: with & 8 == 0, error: None },
        10 | 11 => {
            let message = Bytes::from(vec![with; usize::from(with) * 16]);
            Input::Deliver { link, delivery, settled: with & 8 == 0, message }
        }
        12 => {
            let delivery = u32::from(with >> 5);
            Input::Outcome { link, delivery, state: DeliveryState::Accepted }
        }
        13 => Input::Settle { link, delivery },
        14 => Input::Drained { link },
        _ if with == 7 => Input::Close { error: None },
        _ => Input::Window { link, window: with.into() },
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&[first, ..], mut rest)) = data.split_first_chunk::<1>() else { return };
    let settings = Settings {
        container_id: "c".to_owned(),
        mechanisms: vec![Mechanism::Plain],
        allows_no_sasl: first & 1 == 0,
        idle_timeout: (first & 2 == 0).then_some(Duration::from_secs(1)),
        max_message_bytes: 4096,
        offered_capabilities: Vec::new(),
        properties: Vec::new(),
    };
    let mut connection = Connection::new(settings, Duration::ZERO);
    let mut inputs = Vec::new();
    if first & 4 == 0 {
        let open = Open { max_frame_size: 512, ..Open::new("peer") };
        let wire =
            [&Protocol::Amqp.header()[..], &frame_of(0, &Performative::Open(Box::new(open)), b"")]
                .concat();
        let begin = b"\0\0\0\x14\x02\0\0\0\0\x53\x11\xc0\x07\x04\x40\x43\x52\x09\x52\x09";
        let begin = [begin.as_slice(), b""].concat();
        inputs.extend([Input::Bytes(wire.into()), Input::Open, Input::Bytes(begin.into())]);
    }
    while let Some((&[what, with, len], more)) = rest.split_first_chunk::<3>() {
        let (bytes, more) = more.split_at(more.len().min(usize::from(len % 40)));
        rest = more;
        inputs.push(if what == 255 {
            Input::Authenticated(Code::Ok)
        } else {
            input_of(what, with, bytes)
        });
    }
    let mut now = Duration::ZERO;
    let mut reader = frame::Reader::default();
    let mut has_hung_up = false;
    for input in inputs {
        now += Duration::from_millis(20);
        connection.handle_input(now, input);
        let mut outputs = 0;
        while let Some(output) = connection.poll_output() {
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
        assert!(connection.held_bytes() < 1 << 24);
    }
});
