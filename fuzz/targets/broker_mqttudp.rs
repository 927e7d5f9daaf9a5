//! A broker that hears and sends datagrams of MQTT/UDP: any datagrams of a few addresses at any
//! times; nothing panics, one datagram is followed by no more than one to each target, and nothing
//! breaks the silence of a listener that is to keep it.
#![no_main]

use std::net::SocketAddr;
use std::time::Duration;

use broker::{
    Broker, Input, MqttSettings, MqttUdpExit, MqttUdpListener, MqttUdpSettings,
    MqttUdpVerification, Output, Settings,
};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[first, ..], mut rest)) = data.split_first_chunk::<1>() else { return };
    let settings =
        Settings { durable: first & 1 != 0, sys_interval: Duration::ZERO, ..Settings::default() };
    let to = SocketAddr::from(([10, 0, 0, 255], 1883));
    let open = MqttUdpListener {
        exit: vec![MqttUdpExit { repeats: 2, ..MqttUdpExit::new("#") }],
        targets: vec![to],
        key: (first & 2 != 0).then(|| Bytes::from_static(b"key")),
        verification: [MqttUdpVerification::None, MqttUdpVerification::Any]
            [usize::from(first & 4 != 0)],
        sign_sha256: first & 8 != 0,
        acknowledges: first & 16 != 0,
        tells_source: first & 32 != 0,
        ..MqttUdpListener::default()
    };
    let silent = MqttUdpListener { one_way: true, ..open.clone() };
    let mqtt_udp = MqttUdpSettings {
        listeners: [(0, open), (1, silent)].into(),
        ..MqttUdpSettings::default()
    };
    let mut broker = Broker::new(settings, MqttSettings::default()).with_mqtt_udp(mqtt_udp);
    let mut now = Duration::from_secs(1);
    broker.handle_input(now, Input::Wake);
    let mut unwritten = None;
    while let Some((&[what, wait, len], more)) = rest.split_first_chunk::<3>() {
        let (body, more) = more.split_at(more.len().min(len.into()));
        rest = more;
        now += Duration::from_millis(u64::from(wait) * u64::from(wait));
        let listener = u16::from(what == 255);
        let from = SocketAddr::from(([10, 0, 0, 1], 1000 + u16::from(what >> 5)));
        let packet_type = [0x30, 0x32, 0x80, 0xc0, 0x40][usize::from(what >> 2) % 5];
        let is_datagram = what & 3 > 1;
        let input = match what & 3 {
            0 => Input::Wake,
            1 => match unwritten.take() {
                Some(ticket) => Input::Persisted { ticket },
                None => continue,
            },
            2 => Input::Datagram { listener, from, bytes: Bytes::copy_from_slice(body) },
            // Chance would not find the lengths.
            _ => {
                let number = [b'n', 4, 0, 0, 0, wait];
                let len = u8::try_from(body.len().min(127)).unwrap_or(0);
                let body = &body[..len.into()];
                let bytes = [&[packet_type, len], body, &number].concat().into();
                Input::Datagram { listener, from, bytes }
            }
        };
        broker.handle_input(now, input);
        let mut sent = 0;
        while let Some(output) = broker.poll_output() {
            match output {
                Output::Datagram { to: target, listener: by, .. } => {
                    sent += 1;
                    assert_eq!((target, by), (to, 0));
                }
                Output::Persist { ticket, .. } => unwritten = Some(ticket),
                Output::Event(_) | Output::WakeAt(_) => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(!is_datagram || sent <= 1);
    }
});
