//! A client with our server at its end.

use proptest::prelude::*;

use super::super::{self as server, Server};
use super::*;
use crate::amqp091::{Properties, ReplyCode};

const NOW: Duration = Duration::from_secs(1_000);

fn settings() -> Settings {
    Settings {
        name: "reader".to_owned(),
        credentials: Credentials::Password { user: "ann".to_owned(), password: b"pw".to_vec() },
        virtual_host: "/ships".to_owned(),
        heartbeat_s: 60,
        max_message_bytes: 1 << 20,
    }
}

struct Pair {
    client: Client,
    server: Server,
    now: Duration,
    heard: Vec<Output>,
    served: Vec<server::Output>,
    wake_at: Option<Duration>,
}

impl Pair {
    fn new(settings: Settings) -> Self {
        let of_server = server::Settings {
            product: "x".to_owned(),
            version: "1".to_owned(),
            has_external: false,
            channel_max: 10,
            frame_max_bytes: MIN_FRAME_BYTES,
            heartbeat_s: 20,
            max_message_bytes: 1 << 20,
        };
        let mut pair = Self {
            client: Client::new(NOW, settings),
            server: Server::new(NOW, of_server),
            now: NOW,
            heard: Vec::new(),
            served: Vec::new(),
            wake_at: None,
        };
        pair.run();
        pair
    }

    fn open() -> Self {
        let mut pair = Self::new(settings());
        pair.server.authenticated(true);
        pair.run();
        pair.server.opened();
        pair.run();
        assert_eq!(pair.heard, [Output::Opened]);
        pair.heard.clear();
        pair.served.clear();
        pair
    }

    fn run(&mut self) {
        loop {
            let mut is_quiet = true;
            while let Some(output) = self.client.poll_output() {
                is_quiet = false;
                match output {
                    Output::Transmit(bytes) => {
                        self.server.handle_input(self.now, server::Input::Bytes(&bytes));
                    }
                    Output::WakeAt(at) => self.wake_at = Some(at),
                    other => self.heard.push(other),
                }
            }
            while let Some(output) = self.server.poll_output() {
                is_quiet = false;
                match output {
                    server::Output::Transmit(bytes) => {
                        self.client.handle_input(self.now, Input::Bytes(&bytes));
                    }
                    server::Output::WakeAt(_) => {}
                    other => self.served.push(other),
                }
            }
            if is_quiet {
                return;
            }
        }
    }

    fn heard(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.heard)
    }
}

#[test]
fn it_shows_who_it_is_and_opens_a_channel() {
    let mut pair = Pair::new(settings());
    assert_eq!(pair.served, [server::Output::Authenticate(settings().credentials)]);
    pair.server.authenticated(true);
    pair.run();
    let virtual_host = "/ships".to_owned();
    assert_eq!(pair.served.last(), Some(&server::Output::Open { virtual_host }));
    let peer = pair.server.peer();
    assert!(peer.product.starts_with("longwire ") && peer.has_cancel_notify, "{peer:?}");
    assert_eq!((peer.heartbeat_s, peer.frame_max_bytes), (20, MIN_FRAME_BYTES));
    pair.server.opened();
    pair.run();
    assert_eq!(pair.heard(), [Output::Opened]);
    pair.client.close();
    pair.run();
    assert_eq!(pair.heard(), [Output::Closed(Closed::Asked)]);
    assert_eq!(pair.served.last(), Some(&server::Output::Closed(server::Closed::Client)));
}

#[test]
fn whoever_is_not_let_in_hears_why() {
    let mut pair = Pair::new(settings());
    pair.server.authenticated(false);
    pair.run();
    let heard = pair.heard();
    let [Output::Closed(Closed::ByServer(403, text))] = heard.as_slice() else {
        panic!("{heard:?}");
    };
    assert!(text.starts_with("ACCESS_REFUSED"), "{text}");
    let mut client = Client::new(NOW, settings());
    client.handle_input(NOW, Input::Bytes(b"AMQP\0\x01\0\0"));
    let said: Vec<_> = std::iter::from_fn(|| client.poll_output()).collect();
    let refused = Closed::Refused("the server does not speak AMQP 0.9.1".to_owned());
    assert_eq!(said.last(), Some(&Output::Closed(refused)));
}

#[test]
fn messages_go_and_come_in_as_many_frames_as_they_need() {
    let mut pair = Pair::open();
    let mut properties = Vec::new();
    Properties { content_type: Some("a/b"), ..Properties::default() }
        .encode(&mut properties)
        .expect("it is short");
    let body = vec![7; 10_000];
    let publish = Method::BasicPublish {
        exchange: "amq.topic",
        routing_key: "a.b",
        mandatory: false,
        immediate: false,
    };
    pair.client.send_content(&publish, &properties, &body).expect("it fits");
    pair.run();
    let [server::Output::Publish(came)] = pair.served.as_slice() else {
        panic!("{:?}", pair.served);
    };
    assert_eq!((came.routing_key.as_str(), &came.body[..]), ("a.b", &body[..]));
    assert_eq!(&came.properties[..], properties);
    let deliver = Method::BasicDeliver {
        consumer_tag: "c",
        delivery_tag: 1,
        redelivered: false,
        exchange: "amq.topic",
        routing_key: "a.b",
    };
    pair.server.send_content(CHANNEL, &deliver, &properties, &body).expect("it fits");
    pair.server.send_content(CHANNEL, &deliver, &properties, b"").expect("it fits");
    pair.run();
    let heard = pair.heard();
    let [Output::Message(long), Output::Message(empty)] = heard.as_slice() else {
        panic!("{heard:?}");
    };
    assert_eq!(Method::decode(&long.method), Ok(deliver));
    assert_eq!((&long.body[..], &long.properties[..]), (&body[..], &properties[..]));
    assert!(empty.body.is_empty());
    let ack = Method::BasicAck { delivery_tag: 1, multiple: false };
    pair.server.send(CHANNEL, &ack);
    pair.run();
    let heard = pair.heard();
    let [Output::Method(method)] = heard.as_slice() else { panic!("{heard:?}") };
    assert_eq!(Method::decode(method), Ok(ack));
    let long = "x".repeat(256);
    let publish = Method::BasicPublish {
        exchange: "amq.topic",
        routing_key: &long,
        mandatory: false,
        immediate: false,
    };
    assert!(pair.client.send_content(&publish, &properties, &body).is_err());
    pair.run();
    assert_eq!(pair.served.len(), 1, "nothing of it is sent");
}

#[test]
fn a_channel_that_the_server_closes_is_opened_again() {
    let mut pair = Pair::open();
    pair.server.close_channel(CHANNEL, ReplyCode::NotFound, "no exchange", (60, 40));
    pair.run();
    let closed = Output::ChannelClosed(404, "NOT_FOUND - no exchange".to_owned());
    assert_eq!(pair.heard(), [closed]);
    assert!(!pair.client.is_open());
    pair.client.reopen();
    pair.run();
    assert_eq!(pair.heard(), [Output::Opened]);
    pair.client.close();
    pair.server.close_channel(CHANNEL, ReplyCode::NotFound, "no exchange", (60, 40));
    pair.run();
    let closed = Output::ChannelClosed(404, "NOT_FOUND - no exchange".to_owned());
    assert_eq!(pair.heard(), [closed, Output::Closed(Closed::Asked)], "said before the end");
    let mut pair = Pair::open();
    pair.server.close(ReplyCode::ConnectionForced, "the end", (0, 0));
    pair.run();
    let text = "CONNECTION_FORCED - the end".to_owned();
    assert_eq!(pair.heard(), [Output::Closed(Closed::ByServer(320, text))]);
}

#[test]
fn silence_ends_it_and_it_is_never_silent_for_long() {
    let mut pair = Pair::open();
    let wake_at = pair.wake_at.expect("it has times to keep");
    assert!(wake_at <= NOW + Duration::from_secs(20), "{wake_at:?}");
    let half = NOW + Duration::from_secs(10);
    pair.client.handle_input(half, Input::Wake);
    let sign = Output::Transmit(Bytes::from_static(b"\x08\0\0\0\0\0\0\xce"));
    assert_eq!(pair.client.poll_output(), Some(sign));
    pair.client.handle_input(NOW + Duration::from_secs(40), Input::Wake);
    let said: Vec<_> = std::iter::from_fn(|| pair.client.poll_output()).collect();
    assert_eq!(said.last(), Some(&Output::Closed(Closed::Silent)));
    let mut client = Client::new(NOW, settings());
    client.handle_input(NOW + Duration::from_secs(20), Input::Wake);
    let said: Vec<_> = std::iter::from_fn(|| client.poll_output()).collect();
    assert_eq!(said.last(), Some(&Output::Closed(Closed::Silent)), "the handshake has a limit");
}

/// What a server sends up to an open channel.
fn greeting() -> Vec<u8> {
    let mut wire = Vec::new();
    for (channel, method) in [
        (
            0,
            Method::ConnectionStart {
                version_major: 0,
                version_minor: 9,
                server_properties: Table::default(),
                mechanisms: b"PLAIN",
                locales: b"en_US",
            },
        ),
        (0, Method::ConnectionTune { channel_max: 0, frame_max: 0, heartbeat: 0 }),
        (0, Method::ConnectionOpenOk {}),
        (CHANNEL, Method::ChannelOpenOk {}),
        (
            CHANNEL,
            Method::BasicDeliver {
                consumer_tag: "",
                delivery_tag: 1,
                redelivered: false,
                exchange: "",
                routing_key: "",
            },
        ),
    ] {
        encode_method(channel, &method, &mut wire).expect("it fits");
    }
    wire
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_bytes_make_it_panic(
        whole in any::<bool>(),
        frames in prop::collection::vec(
            (1_u8..4, 0_u16..3, prop::collection::vec(any::<u8>(), 0..40)), 0..6),
        noise in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut client = Client::new(NOW, settings());
        let mut wires = if whole { vec![greeting()] } else { Vec::new() };
        for (kind, channel, payload) in frames {
            let len = u32::try_from(payload.len()).unwrap_or(0);
            let mut wire = vec![kind];
            wire.extend(channel.to_be_bytes());
            wire.extend(len.to_be_bytes());
            wire.extend(payload);
            wire.push(0xce);
            wires.push(wire);
        }
        wires.push(noise);
        let mut has_ended = false;
        for wire in wires {
            client.handle_input(NOW, Input::Bytes(&wire));
            while let Some(output) = client.poll_output() {
                prop_assert!(!has_ended, "nothing follows the end: {output:?}");
                has_ended = matches!(output, Output::Closed(_));
            }
        }
        prop_assert!(client.held_bytes() < 1 << 17);
    }
}
