use super::*;

fn init(mechanism: &'static str, response: &'static [u8]) -> sasl::Frame {
    sasl::Frame::Init {
        mechanism: Symbol::new(mechanism),
        initial_response: Some(Bytes::from_static(response)),
        hostname: Some("host".to_owned()),
    }
}

#[test]
fn a_peer_says_who_it_is_and_opens() {
    let mut rig = Rig::new(settings());
    rig.bytes(&Protocol::Sasl.header());
    assert_eq!(rig.headers, [Protocol::Sasl.header()]);
    let names = vec![Symbol::new("PLAIN"), Symbol::new("ANONYMOUS")];
    assert_eq!(rig.sasl, [sasl::Frame::Mechanisms(names)]);
    // All at once: what follows waits for the application.
    let mut wire = Vec::new();
    frame::encode(&mut wire, Kind::Sasl, 0, |out| init("PLAIN", b"\0me\0secret").encode(out));
    wire.extend_from_slice(&Protocol::Amqp.header());
    let open = Performative::Open(Box::new(Open::new("client")));
    frame::encode(&mut wire, Kind::Amqp, 0, |out| open.encode(out));
    for byte in wire {
        rig.bytes(&[byte]);
    }
    let [Output::Authenticate { credentials, hostname }] = &rig.said()[..] else { panic!() };
    let (user, password) = ("me".to_owned(), "secret".to_owned());
    let expected = sasl::Credentials::Plain { authorize_as: String::new(), user, password };
    assert_eq!((credentials, hostname.as_deref()), (&expected, Some("host")));
    rig.input(Input::Authenticated(sasl::Code::Ok));
    assert_eq!(rig.sasl.last(), Some(&sasl::Frame::Outcome(sasl::Code::Ok)));
    assert_eq!(rig.headers, [Protocol::Sasl.header(), Protocol::Amqp.header()]);
    let [Output::Opened(open)] = &rig.said()[..] else { panic!() };
    assert_eq!(open.container_id, "client");
    assert!(rig.sent.is_empty());
    rig.input(Input::Open);
    let [Performative::Open(open)] = &rig.sent()[..] else { panic!() };
    assert_eq!((open.container_id.as_str(), open.idle_time_out_ms), ("broker", Some(30_000)));
    rig.input(Input::Close { error: None });
    assert_eq!(rig.sent(), [Performative::Close(Close::default())]);
    assert_eq!(rig.said(), [Output::Closed { error: None, by_peer: false }]);
    rig.peer(0, Performative::Close(Close::default()));
    assert_eq!(rig.said(), [Output::HangUp]);
}

#[test]
fn whoever_does_not_show_who_it_is_is_turned_away() {
    for (frame, code) in [
        (init("PLAIN", b"\0me\0wrong"), Some(sasl::Code::Auth)),
        (init("PLAIN", b"me"), None),
        (init("EXTERNAL", b""), None),
        (init("SCRAM-SHA-256", b""), None),
        (sasl::Frame::Outcome(sasl::Code::Ok), None),
    ] {
        let mut rig = Rig::new(settings());
        rig.bytes(&Protocol::Sasl.header());
        rig.peer_sasl(&frame);
        if let Some(code) = code {
            rig.input(Input::Authenticated(code));
        }
        assert_eq!(rig.sasl.last(), Some(&sasl::Frame::Outcome(sasl::Code::Auth)));
        assert_eq!(rig.events.last(), Some(&Output::HangUp), "{frame:?}");
    }
}

#[test]
fn other_protocols_read_what_is_spoken() {
    let mut strict = settings();
    strict.allows_no_sasl = false;
    for (settings, header, answer) in [
        (settings(), *b"AMQP\x00\x00\x09\x01", Protocol::Sasl),
        (settings(), *b"GET / HT", Protocol::Sasl),
        (settings(), Protocol::Tls.header(), Protocol::Sasl),
        (strict.clone(), Protocol::Amqp.header(), Protocol::Sasl),
        (Settings { mechanisms: Vec::new(), ..strict }, Protocol::Sasl.header(), Protocol::Amqp),
    ] {
        let mut rig = Rig::new(settings);
        rig.bytes(&header);
        assert_eq!(rig.headers, [answer.header()], "{header:?}");
        assert_eq!(rig.events.last(), Some(&Output::HangUp));
    }
}

#[test]
fn a_peer_that_is_not_welcome_reads_why() {
    let mut rig = Rig::new(settings());
    rig.bytes(&Protocol::Amqp.header());
    rig.peer(0, Performative::Open(Box::new(Open::new("client"))));
    let error = ErrorInfo::new(condition::UNAUTHORIZED_ACCESS, "not you");
    rig.input(Input::Close { error: Some(error.clone()) });
    let [Performative::Open(open), Performative::Close(close)] = &rig.sent()[..] else { panic!() };
    let failed = (Value::symbol("amqp:connection-establishment-failed"), Value::Bool(true));
    assert!(open.properties.contains(&failed));
    assert_eq!(close.error, Some(error));
}

#[test]
fn what_is_no_open_ends_the_connection() {
    for (bytes, expected) in [
        (&b"\0\0\0\x0c\x02\0\0\0\0\x53\x18\x45"[..], "amqp:illegal-state"),
        (b"\0\0\0\x0c\x02\0\0\0\0\x53\x10\x45", "amqp:decode-error"),
        (b"\0\0\0\x07\x02\0\0\0", "amqp:connection:framing-error"),
        (b"\0\0\0\x0c\x02\x01\0\0\0\x53\x10\x45", "amqp:connection:framing-error"),
    ] {
        let mut rig = Rig::new(settings());
        rig.bytes(&Protocol::Amqp.header());
        rig.bytes(bytes);
        assert_eq!(rig.closed_with().as_deref(), Some(expected));
    }
    for (open, expected) in [
        (Open { max_frame_size: 511, ..Open::new("") }, "amqp:invalid-field"),
        (Open { idle_time_out_ms: Some(5), ..Open::new("") }, "amqp:not-allowed"),
    ] {
        let mut rig = Rig::new(settings());
        rig.bytes(&Protocol::Amqp.header());
        rig.peer(0, Performative::Open(Box::new(open)));
        assert_eq!(rig.closed_with().as_deref(), Some(expected));
    }
}

#[test]
fn time_passes() {
    // Nobody takes for ever to begin.
    let mut rig = Rig::new(settings());
    rig.now = rig.wake_at.unwrap();
    rig.input(Input::Wake);
    assert_eq!(rig.said(), [Output::Closed { error: None, by_peer: false }, Output::HangUp]);
    // A peer that wants to hear something does (AMQP 1.0 Part 2 §2.4.5).
    let mut rig =
        Rig::running_with(&Open { idle_time_out_ms: Some(10_000), ..Open::new("client") });
    assert_eq!(rig.wake_at, Some(NOW + Duration::from_secs(5)));
    rig.now += Duration::from_secs(5);
    rig.input(Input::Wake);
    assert_eq!((rig.empty_frames, rig.wake_at), (1, Some(NOW + Duration::from_secs(10))));
    // One that says nothing is given up.
    rig.now = NOW + Duration::from_secs(60);
    rig.input(Input::Wake);
    assert_eq!(rig.closed_with().as_deref(), Some("amqp:resource-limit-exceeded"));
    rig.now += HANDSHAKE_TIMEOUT;
    rig.input(Input::Wake);
    assert_eq!(rig.events.last(), Some(&Output::HangUp));
    // Empty frames are a sign of life.
    let mut rig = Rig::running();
    rig.now += Duration::from_secs(59);
    rig.bytes(b"\0\0\0\x08\x02\0\0\0");
    rig.now += Duration::from_secs(59);
    rig.input(Input::Wake);
    assert_eq!(rig.closed_with(), None);
}

#[test]
fn whoever_says_too_much_too_early_is_turned_away() {
    let mut rig = Rig::new(settings());
    rig.bytes(&Protocol::Amqp.header());
    rig.peer(0, Performative::Open(Box::new(Open::new("client"))));
    rig.bytes(&vec![0; MAX_EARLY_BYTES + 1]);
    assert_eq!(rig.events.last(), Some(&Output::HangUp));
}

#[test]
fn the_end_of_the_stream_is_the_end() {
    let mut rig = Rig::running();
    rig.input(Input::Eof);
    assert_eq!(rig.said(), [Output::Closed { error: None, by_peer: true }, Output::HangUp]);
    rig.bytes(b"more");
    rig.input(Input::Wake);
    assert_eq!(rig.said(), []);
}
