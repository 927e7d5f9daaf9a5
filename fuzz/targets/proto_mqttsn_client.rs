//! A client of MQTT-SN: any datagrams, inputs and times in any order; nothing panics, nothing
//! grows, and no request ends twice.
#![no_main]

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use proto::mqttsn::Qos;
use proto::mqttsn::client::{Action, Client, Input, MAX_REQUESTS, Output, Settings, Will};

/// Outputs of one input: those of all requests and a few more.
const MAX_OUTPUTS: usize = 4 * MAX_REQUESTS;

fn will(data: Bytes) -> Will {
    Will { topic: "w".to_owned(), message: data, qos: Qos::One, retain: false }
}

fuzz_target!(|data: &[u8]| {
    let Some((&[first, ..], mut rest)) = data.split_first_chunk::<1>() else { return };
    let settings = Settings {
        clean_session: first & 1 != 0,
        will: (first & 2 != 0).then(|| will(Bytes::new())),
        ..Settings::new("id")
    };
    let mut client = Client::new(settings);
    let (mut now, mut open, mut request) = (Duration::ZERO, BTreeSet::new(), 0);
    while let Some((&[what, with, len], more)) = rest.split_first_chunk::<3>() {
        let (body, more) = more.split_at(more.len().min(len.into()));
        rest = more;
        now += Duration::from_millis(u64::from(with) * 100);
        let qos = [Qos::MinusOne, Qos::Zero, Qos::One, Qos::Two][usize::from(with % 4)];
        let name = ["ab", "a/b", "c", "a/#"][usize::from(with / 4 % 4)].into();
        let data = Bytes::copy_from_slice(body);
        let input = match what % 8 {
            0 => Input::Connect,
            1 => Input::Sleep(Duration::from_secs(with.into())),
            2 => Input::Fetch,
            3 => Input::Disconnect,
            4 => Input::Wake,
            5 => {
                request += 1;
                open.insert(request);
                let action = match what / 8 % 4 {
                    0 => Action::Publish { topic: name, data, qos, retain: with & 64 != 0 },
                    1 => Action::Subscribe { filter: name, qos },
                    2 => Action::Unsubscribe { filter: name },
                    _ => Action::UpdateWill((with & 64 != 0).then(|| will(data))),
                };
                Input::Request { request, action }
            }
            _ => {
                let len = u8::try_from(body.len() + 1).unwrap_or(0);
                Input::Datagram([&[len], body].concat().into())
            }
        };
        client.handle_input(now, input);
        let mut outputs = 0;
        while let Some(output) = client.poll_output() {
            outputs += 1;
            match output {
                Output::Done { request, .. } | Output::Failed { request, .. } => {
                    assert!(open.remove(&request), "a request ended twice");
                }
                Output::WakeAt(at) => assert!(at > now),
                _ => {}
            }
        }
        assert!(outputs <= MAX_OUTPUTS);
        assert!(client.open_requests() <= MAX_REQUESTS && client.open_requests() == open.len());
    }
});
