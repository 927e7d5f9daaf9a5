use super::*;
use crate::amqp091::{PROTOCOL_HEADER, Table, TableBuf, Value, encode_heartbeat};

const S: fn(u64) -> Duration = Duration::from_secs;

fn settings() -> Settings {
    Settings {
        product: "longwire".to_owned(),
        version: "0".to_owned(),
        has_external: false,
        channel_max: 3,
        frame_max_bytes: 8192,
        heartbeat_s: 60,
        max_message_bytes: 10_000,
    }
}

/// What comes out, with methods as text.
fn drain(server: &mut Server) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(output) = server.poll_output() {
        match output {
            Output::Transmit(bytes) if bytes == PROTOCOL_HEADER[..] => seen.push("header".into()),
            Output::Transmit(bytes) => {
                let mut rest = &bytes[..];
                while let Some((frame, len)) = Frame::decode(rest, u32::MAX).unwrap() {
                    seen.push(match frame.kind {
                        FrameKind::Method => {
                            let method = Method::decode(frame.payload).unwrap();
                            let text = format!("{method:?}");
                            let name = text.split(' ').next().unwrap().to_owned();
                            match method {
                                Method::ConnectionClose { reply_code, .. }
                                | Method::ChannelClose { reply_code, .. } => {
                                    format!("{name} {} {reply_code}", frame.channel)
                                }
                                _ => format!("{name} {}", frame.channel),
                            }
                        }
                        kind => format!("{kind:?}"),
                    });
                    rest = &rest[len..];
                }
                assert!(rest.is_empty());
            }
            Output::Authenticate(credentials) => {
                let known = Credentials::Password { user: "u".into(), password: b"p".into() };
                server.authenticated(credentials == known);
                seen.push("authenticate".into());
            }
            Output::Open { virtual_host } => {
                server.opened();
                seen.push(format!("open {virtual_host}"));
            }
            Output::Method { channel, payload } => {
                let text = format!("{:?}", Method::decode(&payload).unwrap());
                seen.push(format!("got {} {channel}", text.split(' ').next().unwrap()));
            }
            Output::Publish(publish) => seen.push(format!(
                "publish {} {} {} {}",
                publish.channel,
                publish.exchange,
                publish.routing_key,
                publish.body.len()
            )),
            Output::WakeAt(at) => seen.push(format!("wake {}", at.as_secs())),
            other => seen.push(format!("{other:?}")),
        }
    }
    seen
}

fn feed(server: &mut Server, channel: u16, method: &Method<'_>) -> Vec<String> {
    let mut bytes = Vec::new();
    encode_method(channel, method, &mut bytes).unwrap();
    server.handle_input(S(1), Input::Bytes(&bytes));
    drain(server)
}

fn start_ok<'a>(mechanism: &'a str, response: &'a [u8], properties: Table<'a>) -> Method<'a> {
    Method::ConnectionStartOk { client_properties: properties, mechanism, response, locale: "" }
}

fn opened() -> Server {
    let mut server = Server::new(S(0), settings());
    server.handle_input(S(0), Input::Bytes(&PROTOCOL_HEADER));
    drain(&mut server);
    feed(&mut server, 0, &start_ok("PLAIN", b"\0u\0p", Table::default()));
    let tune = Method::ConnectionTuneOk { channel_max: 2, frame_max: 4096, heartbeat: 0 };
    feed(&mut server, 0, &tune);
    let open = feed(&mut server, 0, &Method::ConnectionOpen { virtual_host: "/" });
    assert_eq!(open, ["open /", "ConnectionOpenOk 0"]);
    assert_eq!(
        feed(&mut server, 1, &Method::ChannelOpen {}),
        ["ChannelOpened(1)", "ChannelOpenOk 1"]
    );
    server
}

const PUBLISH: Method<'static> =
    Method::BasicPublish { exchange: "x", routing_key: "k", mandatory: false, immediate: false };

fn frame(server: &mut Server, kind: FrameKind, payload: &[u8]) -> Vec<String> {
    let mut bytes = Vec::new();
    Frame { kind, channel: 1, payload }.encode(&mut bytes).unwrap();
    server.handle_input(S(1), Input::Bytes(&bytes));
    drain(server)
}

fn header(body_bytes: u64) -> Vec<u8> {
    let mut out = Vec::new();
    crate::amqp091::ContentHeader { body_bytes, properties: &[0, 0] }.encode(&mut out);
    out
}

#[test]
fn a_client_comes_byte_by_byte() {
    let mut server = Server::new(S(0), settings());
    let mut seen = Vec::new();
    for byte in PROTOCOL_HEADER {
        server.handle_input(S(0), Input::Bytes(&[byte]));
        seen.extend(drain(&mut server));
    }
    assert_eq!(seen, ["wake 20", "ConnectionStart 0"]);
    let mut login = TableBuf::default();
    login.put("LOGIN", &Value::Text(b"u")).unwrap();
    login.put("PASSWORD", &Value::Text(b"p")).unwrap();
    let method = start_ok("AMQPLAIN", login.as_table().as_bytes(), Table::default());
    assert_eq!(feed(&mut server, 0, &method), ["authenticate", "ConnectionTune 0"]);
}

#[test]
fn other_protocols_get_our_header() {
    for begin in [&b"AMQP\x00\x01\x00\x00"[..], b"GET / HTTP/1.1\r\n", b"AMQP\x01\x01\x00\x0a"] {
        let mut server = Server::new(S(0), settings());
        server.handle_input(S(0), Input::Bytes(begin));
        assert_eq!(drain(&mut server), ["header", "Closed(Protocol)"]);
        assert_eq!(server.poll_output(), None);
    }
}

#[test]
fn strangers_learn_only_what_they_understand() {
    let mut capabilities = TableBuf::default();
    capabilities.put("authentication_failure_close", &Value::Bool(true)).unwrap();
    let mut properties = TableBuf::default();
    properties.put("capabilities", &Value::Table(capabilities.as_table())).unwrap();
    for (mechanism, properties, first) in [
        ("PLAIN", Table::default(), "Closed"),
        ("EXTERNAL", Table::default(), "Closed"),
        ("PLAIN", properties.as_table(), "ConnectionClose 0 403"),
    ] {
        let mut server = Server::new(S(0), settings());
        server.handle_input(S(0), Input::Bytes(&PROTOCOL_HEADER));
        drain(&mut server);
        let seen = feed(&mut server, 0, &start_ok(mechanism, b"\0u\0wrong", properties));
        let seen: Vec<_> = seen.iter().filter(|seen| *seen != "authenticate").collect();
        assert!(seen[0].starts_with(first), "{seen:?}");
    }
}

#[test]
fn more_than_was_offered_is_not_allowed() {
    for (channel_max, frame_max) in [(4, 0), (0, 8193), (0, 4095)] {
        let mut server = Server::new(S(0), settings());
        server.handle_input(S(0), Input::Bytes(&PROTOCOL_HEADER));
        drain(&mut server);
        feed(&mut server, 0, &start_ok("PLAIN", b"\0u\0p", Table::default()));
        let tune = Method::ConnectionTuneOk { channel_max, frame_max, heartbeat: 0 };
        assert_eq!(feed(&mut server, 0, &tune)[0], "ConnectionClose 0 530");
    }
    let mut server = opened();
    assert_eq!(feed(&mut server, 3, &Method::ChannelOpen {})[0], "ConnectionClose 0 530");
}

#[test]
fn messages_are_put_together() {
    let mut server = opened();
    feed(&mut server, 1, &PUBLISH);
    assert_eq!(frame(&mut server, FrameKind::Header, &header(5)), [""; 0]);
    assert_eq!(frame(&mut server, FrameKind::Body, b"ab"), [""; 0]);
    assert_eq!(frame(&mut server, FrameKind::Body, b"cde"), ["publish 1 x k 5"]);
    feed(&mut server, 1, &PUBLISH);
    assert_eq!(frame(&mut server, FrameKind::Header, &header(0)), ["publish 1 x k 0"]);
    assert_eq!(server.held_bytes, 0);
}

#[test]
fn what_has_no_place_ends_the_connection() {
    let ack = Method::BasicAck { delivery_tag: 1, multiple: false };
    let mut server = opened();
    feed(&mut server, 1, &PUBLISH);
    assert_eq!(feed(&mut server, 1, &ack)[0], "ConnectionClose 0 505");
    assert_eq!(feed(&mut server, 1, &ack), [""; 0], "nothing is read any more");
    let closed = feed(&mut server, 0, &Method::ConnectionCloseOk {});
    assert!(closed[0].starts_with("Closed(Server(UnexpectedFrame"), "{closed:?}");

    assert_eq!(frame(&mut opened(), FrameKind::Body, b"x")[0], "ConnectionClose 0 505");
    assert_eq!(frame(&mut opened(), FrameKind::Header, &header(1))[0], "ConnectionClose 0 505");
    assert_eq!(feed(&mut opened(), 2, &ack)[0], "ConnectionClose 0 504");
    assert_eq!(feed(&mut opened(), 1, &Method::ChannelOpen {})[0], "ConnectionClose 0 504");
    assert_eq!(feed(&mut opened(), 0, &ack)[0], "ConnectionClose 0 503");
    assert_eq!(feed(&mut opened(), 1, &Method::BasicQosOk {}), ["got BasicQosOk 1"]);
    let unknown = frame(&mut opened(), FrameKind::Method, &[0, 70, 0, 10]);
    assert_eq!(unknown[0], "ConnectionClose 0 540");
    let short = frame(&mut opened(), FrameKind::Method, &[0, 60, 0, 80, 1]);
    assert_eq!(short[0], "ConnectionClose 0 502");
    let mut server = opened();
    server.handle_input(S(1), Input::Bytes(&[9]));
    let seen = drain(&mut server);
    assert_eq!(seen[0], "ConnectionClose 0 501");
    assert!(seen[1].starts_with("Closed(Server(FrameError"), "{seen:?}");
}

#[test]
fn bodies_are_bounded() {
    let mut server = opened();
    feed(&mut server, 1, &PUBLISH);
    let seen = frame(&mut server, FrameKind::Header, &header(10_001));
    assert_eq!(seen, ["ChannelClosed(1)", "ChannelClose 1 311"]);
    assert_eq!(frame(&mut server, FrameKind::Body, b"more"), [""; 0], "thrown away");
    let mut server = opened();
    feed(&mut server, 1, &PUBLISH);
    frame(&mut server, FrameKind::Header, &header(3));
    assert_eq!(frame(&mut server, FrameKind::Body, b"abcd")[0], "ConnectionClose 0 501");
}

#[test]
fn a_channel_is_closed_by_either_or_both() {
    let close = Method::ChannelClose { reply_code: 200, reply_text: "", class_id: 0, method_id: 0 };
    let mut server = opened();
    assert_eq!(feed(&mut server, 1, &close), ["ChannelClosed(1)", "ChannelCloseOk 1"]);
    feed(&mut server, 1, &Method::ChannelOpen {});
    server.close_channel(1, ReplyCode::NotFound, "no such thing", (50, 10));
    assert_eq!(drain(&mut server), ["ChannelClosed(1)", "ChannelClose 1 404"]);
    assert!(!server.is_open(1));
    let declare = Method::QueuePurge { queue: "q", no_wait: false };
    assert_eq!(feed(&mut server, 1, &declare), [""; 0]);
    // The client had closed it as well, before it saw that.
    assert_eq!(feed(&mut server, 1, &close), ["ChannelCloseOk 1"]);
    assert_eq!(feed(&mut server, 1, &Method::ChannelCloseOk {}), [""; 0]);
    let again = feed(&mut server, 1, &Method::ChannelOpen {});
    assert_eq!(again, ["ChannelOpened(1)", "ChannelOpenOk 1"]);
}

#[test]
fn who_says_nothing_is_gone() {
    let mut server = Server::new(S(0), settings());
    assert_eq!(drain(&mut server), ["wake 20"]);
    server.handle_input(S(20), Input::Wake);
    assert_eq!(drain(&mut server), ["Closed(Silent)"]);

    let mut server = Server::new(S(0), settings());
    server.handle_input(S(0), Input::Bytes(&PROTOCOL_HEADER));
    drain(&mut server);
    feed(&mut server, 0, &start_ok("PLAIN", b"\0u\0p", Table::default()));
    let tune = Method::ConnectionTuneOk { channel_max: 0, frame_max: 0, heartbeat: 10 };
    feed(&mut server, 0, &tune);
    let open = feed(&mut server, 0, &Method::ConnectionOpen { virtual_host: "/" });
    assert_eq!(open, ["open /", "ConnectionOpenOk 0"]);
    // At 6 a sign of life of ours, and so on; at 21 the client has said nothing for 20 seconds.
    server.handle_input(S(6), Input::Wake);
    assert_eq!(drain(&mut server), ["Heartbeat", "wake 11"]);
    let mut sign = Vec::new();
    encode_heartbeat(&mut sign);
    server.handle_input(S(7), Input::Bytes(&sign));
    server.handle_input(S(11), Input::Wake);
    assert_eq!(drain(&mut server), ["Heartbeat", "wake 16"]);
    server.handle_input(S(27), Input::Wake);
    assert_eq!(drain(&mut server), ["Closed(Silent)"]);
}

#[test]
fn an_end_in_good_order() {
    let close =
        Method::ConnectionClose { reply_code: 200, reply_text: "", class_id: 0, method_id: 0 };
    let mut server = opened();
    assert_eq!(feed(&mut server, 0, &close), ["ConnectionCloseOk 0", "Closed(Client)"]);
    let mut server = opened();
    server.close(ReplyCode::ConnectionForced, "the broker ends", (0, 0));
    let seen = drain(&mut server);
    assert_eq!(seen, ["ConnectionClose 0 320", "wake 6"]);
    assert!(server.poll_output().is_none());
    server.handle_input(S(6), Input::Wake);
    assert!(drain(&mut server)[0].starts_with("Closed(Server(ConnectionForced"));
}
