//! Any bytes as what happens to a broker: connections that come, say anything, lose what was sent,
//! and go; logins, the store, time. No panic, no growth, and outputs only for who is there.
#![no_main]

use std::collections::BTreeMap;
use std::time::Duration;

use broker::{Broker, ConnectionId, Input, MqttSettings, Output, Protocol, Settings};
use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;

/// Connections at once.
const MAX_CONNECTIONS: u64 = 4;
/// Bytes that one connection is given in answer to one input: what it may have unsent, and a
/// packet.
const MAX_GIVEN_BYTES: usize = 256 << 10;

fuzz_target!(|data: &[u8]| {
    let settings = Settings {
        max_sessions: 8,
        max_subscriptions: 16,
        max_retained: 16,
        max_retained_bytes: 64 << 10,
        max_queued: 32,
        max_queued_bytes: 64 << 10,
        max_total_bytes: 128 << 10,
        durable: data.first().is_some_and(|byte| byte & 1 == 1),
        ..Settings::default()
    };
    let mut mqtt = MqttSettings::default();
    (mqtt.max_packet_bytes, mqtt.receive_maximum) = (4096, 8);
    let mut broker = Broker::new(settings.clone(), mqtt);
    let mut now = Duration::from_secs(1 << 30);
    let mut open: BTreeMap<ConnectionId, usize> = BTreeMap::new();
    let (mut last, mut tickets, mut logins) = (0_u64, Vec::new(), Vec::new());
    let mut rest = data;
    while let [action, len, after @ ..] = rest {
        let (bytes, after) = after.split_at(after.len().min(usize::from(*len)));
        rest = after;
        let back = u64::from(action >> 3) % MAX_CONNECTIONS;
        let connection = ConnectionId(last.saturating_sub(back));
        let input = match action & 7 {
            0 if (open.len() as u64) < MAX_CONNECTIONS => {
                last += 1;
                open.insert(ConnectionId(last), 0);
                let (connection, protocol) = (ConnectionId(last), Protocol::Mqtt);
                Input::Connected { connection, protocol, certified: None }
            }
            0 | 1 => {
                let Some(unsent) = open.get_mut(&connection) else { continue };
                Input::Sent { connection, bytes: std::mem::take(unsent) }
            }
            2 | 3 => Input::Received { connection, bytes: BytesMut::from(bytes) },
            4 => {
                open.remove(&connection);
                Input::Lost { connection }
            }
            5 => match tickets.pop() {
                Some(ticket) => Input::Persisted { ticket },
                None => Input::Wake,
            },
            6 => {
                now += Duration::from_millis(u64::from(*len) * u64::from(*len));
                Input::Wake
            }
            _ => {
                let Some(connection) = logins.pop() else { continue };
                let user = if *len == 0 { Err(()) } else { Ok(None) };
                Input::Known { connection, user }
            }
        };
        broker.handle_input(now, input);
        let mut given = 0;
        while let Some(output) = broker.poll_output() {
            match output {
                Output::Transmit { connection, bytes } => {
                    let Some(unsent) = open.get_mut(&connection) else {
                        panic!("bytes for a connection that is gone");
                    };
                    *unsent += bytes.len();
                    given += bytes.len();
                }
                Output::Close { connection } => {
                    open.remove(&connection);
                }
                Output::Login(login) => logins.push(login.connection),
                Output::Persist { ticket, .. } => tickets.push(ticket),
                _ => {}
            }
        }
        assert!(given <= MAX_GIVEN_BYTES * (1 + open.len()), "{given} bytes for one input");
        let core = broker.core();
        assert!(core.sizes().sessions <= settings.max_sessions);
        assert!(core.sizes().retained <= settings.max_retained + 32);
        assert!(core.sizes().retained_bytes <= settings.max_retained_bytes + (64 << 10));
    }
});
