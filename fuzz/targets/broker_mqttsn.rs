//! A broker whose clients speak MQTT-SN: any datagrams of a few addresses at any times; nothing
//! panics, whoever is not connected gets no more than one short answer, and sessions are bounded.
#![no_main]

use std::net::SocketAddr;
use std::time::Duration;

use broker::{
    Broker, Input, MqttSettings, MqttSnListener, MqttSnPredefined, MqttSnSettings, Output, Settings,
};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

/// Clients at once, and sessions with those of clients that have left.
const MAX_CLIENTS: usize = 3;
const MAX_SESSIONS: usize = 6;
/// Outputs of one input: what waits for all clients leaves in bursts.
const MAX_OUTPUTS: usize = 10_000;

fn made(is_durable: bool) -> Broker {
    let settings = Settings {
        durable: is_durable,
        sys_interval: Duration::ZERO,
        max_sessions: MAX_SESSIONS,
        max_queued: 50,
        ..Settings::default()
    };
    let one_way = MqttSnListener { one_way: true, ..MqttSnListener::default() };
    let predefined =
        MqttSnPredefined { all: [(3, "pre".into())].into(), ..MqttSnPredefined::default() };
    let mqtt_sn = MqttSnSettings {
        listeners: [(0, MqttSnListener::default()), (1, one_way)].into(),
        predefined,
        max_clients: MAX_CLIENTS,
        max_topics: 4,
        ..MqttSnSettings::default()
    };
    Broker::new(settings, MqttSettings::default()).with_mqtt_sn(mqtt_sn)
}

fuzz_target!(|data: &[u8]| {
    let Some((&[first, ..], mut rest)) = data.split_first_chunk::<1>() else { return };
    let mut broker = made(first & 1 != 0);
    let (mut now, mut unwritten) = (Duration::from_secs(1), None);
    while let Some((&[what, wait, len], more)) = rest.split_first_chunk::<3>() {
        let (body, more) = more.split_at(more.len().min(len.into()));
        rest = more;
        now += Duration::from_millis(u64::from(wait) * u64::from(wait));
        let was_connected = broker.core().counts().connected > 0;
        let (listener, port) = (u16::from(what == 255), u16::from(what >> 3) % 5);
        let datagram = |bytes: Bytes| {
            let from = SocketAddr::from(([10, 0, 0, 1], 1000 + port));
            Input::Datagram { listener, from, bytes }
        };
        let (mut is_datagram, mut heard) = (true, usize::from(len));
        let input = match what & 7 {
            0 => {
                is_datagram = false;
                Input::Wake
            }
            1 => match unwritten.take() {
                Some(ticket) => {
                    is_datagram = false;
                    Input::Persisted { ticket }
                }
                None => continue,
            },
            2 => datagram(Bytes::copy_from_slice(body)),
            // Chance would not find the length.
            _ => {
                heard += 1;
                let len = u8::try_from(body.len() + 1).unwrap_or(0);
                datagram([&[len], body].concat().into())
            }
        };
        broker.handle_input(now, input);
        let is_stranger = !was_connected && broker.core().counts().connected == 0;
        let (mut outputs, mut answers) = (0, 0);
        while let Some(output) = broker.poll_output() {
            outputs += 1;
            match output {
                Output::Datagram { bytes, .. } => {
                    answers += 1;
                    assert!(listener == 0 || !is_datagram, "the silence is broken");
                    if is_stranger && is_datagram {
                        assert!(answers <= 1 && bytes.len() <= heard.max(3));
                    }
                }
                Output::Persist { ticket, .. } => unwritten = Some(ticket),
                Output::Event(_) | Output::WakeAt(_) => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(outputs < MAX_OUTPUTS);
        assert!(broker.core().counts().connected <= MAX_CLIENTS as u64);
        assert!(broker.core().sizes().sessions <= MAX_SESSIONS);
    }
});
