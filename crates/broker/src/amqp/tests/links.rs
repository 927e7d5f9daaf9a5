use proptest::prelude::*;
use proto::amqp::sasl;

use super::*;

#[test]
fn a_message_is_taken_when_the_store_has_it() {
    let mut rig = Rig::new();
    rig.connect(1, "subscriber");
    rig.subscribe(1, 0, durable("a/+"));
    rig.connect(2, "publisher");
    assert_eq!(refused(&rig.publisher(2, 0, target("a/b"))), None);
    rig.writes_at_once = false;
    rig.publish(2, 0, 7, false, &data("x"));
    assert_eq!(rig.outcomes(2), []);
    rig.written();
    assert_eq!(rig.outcomes(2), [DeliveryState::Accepted]);
    let messages = rig.messages(1);
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].0.settled, Some(false));
    // Nobody waits for what nothing is kept of.
    rig.publish(2, 0, 8, true, &data("y"));
    assert_eq!(rig.messages(1).len(), 1);
}

#[test]
fn a_durable_subscription_is_there_when_its_container_is_back() {
    let mut rig = Rig::new();
    rig.connect(1, "container");
    rig.subscribe(1, 0, durable("a/#"));
    rig.connect(2, "publisher");
    rig.publisher(2, 0, target("a/b"));
    rig.publish(2, 0, 0, false, &data("first"));
    assert_eq!(rig.messages(1).len(), 1);
    // It was not settled: it comes again, and that is said.
    rig.input(Input::Lost { connection: ConnectionId(1) });
    rig.publish(2, 0, 1, false, &data("second"));
    rig.connect(3, "container");
    let mut attach = Attach::new("link0", 5, Role::Receiver);
    attach.source = None;
    rig.attach(3, attach);
    rig.grant(3, 5, 0, 10);
    let sent = rig.sent(3);
    let Some((Performative::Attach(attach), _)) = sent.first() else { panic!("{sent:?}") };
    let answer = attach.source.as_ref().unwrap();
    assert_eq!(answer.address, Some(Value::string("a/#")));
    let payloads: Vec<_> = sent.iter().map(|(_, payload)| payload).collect();
    assert!(payloads[1].ends_with(b"first") && payloads[2].ends_with(b"second"));
    assert!(payloads[1].starts_with(b"\x00\x53\x70\xc0\x07\x05\x41\x40\x40\x40\x52\x01"));
    // Settled as released it comes again as well; as rejected it does not.
    rig.settle(3, 0, DeliveryState::Released);
    assert_eq!(rig.messages(3).len(), 1);
    rig.settle(3, 1, DeliveryState::Rejected(None));
    rig.settle(3, 2, DeliveryState::Accepted);
    // Over another connection of the container it is taken from this one.
    rig.connect(4, "container");
    rig.subscribe(4, 0, durable("a/#"));
    let stolen = rig.sent(3).into_iter().find_map(|(it, _)| match it {
        Performative::Detach(it) => it.error.map(|error| error.condition.as_str().to_owned()),
        _ => None,
    });
    assert_eq!(stolen.as_deref(), Some("amqp:link:stolen"));
    // Closing its link ends it.
    rig.send(4, Performative::Detach(Detach { handle: 0, closed: true, error: None }), b"");
    rig.connect(5, "container");
    rig.attach(5, Attach::new("link0", 0, Role::Receiver));
    let sent: Vec<_> = rig.sent(5).into_iter().map(|(it, _)| it).collect();
    assert_eq!(refused(&sent).as_deref(), Some("amqp:not-found"));
}

#[test]
fn what_is_not_allowed_is_refused_with_its_condition() {
    let mut rig = Rig::new();
    rig.connect(1, "c");
    let queue = Source { capabilities: vec![Symbol::new("queue")], ..source("q") };
    let filter = |value| Source { filter: vec![(Value::symbol("f"), value)], ..source("a") };
    let selector = |text| {
        let descriptor = Value::symbol("apache.org:selector-filter:string");
        filter(Value::described(descriptor, Value::string(text)))
    };
    let unknown = filter(Value::described(Value::symbol("other"), Value::Null));
    let numbered = Source { address: Some(Value::Uint(5)), ..Source::default() };
    for (source, condition) in [
        (source("a/#/b"), "amqp:invalid-field"),
        (source(""), "amqp:invalid-field"),
        (queue, "amqp:not-implemented"),
        (unknown, "amqp:not-implemented"),
        (filter(Value::Null), "amqp:invalid-field"),
        (selector("n >"), "amqp:invalid-field"),
        (numbered, "amqp:invalid-field"),
    ] {
        let sent = rig.subscribe(1, 0, source);
        assert_eq!(refused(&sent).as_deref(), Some(condition));
        rig.send(1, Performative::Detach(Detach { handle: 0, closed: true, error: None }), b"");
    }
    for (target, condition) in [
        (target("a/+"), "amqp:invalid-field"),
        (target("$SYS/x"), "amqp:unauthorized-access"),
        (TargetKind::Coordinator(Vec::new()), "amqp:not-implemented"),
    ] {
        let sent = rig.publisher(1, 1, target);
        assert_eq!(refused(&sent).as_deref(), Some(condition));
        rig.send(1, Performative::Detach(Detach { handle: 1, closed: true, error: None }), b"");
    }
    let anonymous = TargetKind::Target(Box::default());
    assert_eq!(refused(&rig.publisher(1, 2, anonymous)), None);
    rig.publish(1, 2, 0, false, &data("nowhere"));
    rig.publish(1, 2, 1, false, b"no message");
    let outcomes = rig.outcomes(1);
    let conditions = outcomes.iter().map(|it| match it {
        DeliveryState::Rejected(Some(error)) => error.condition.as_str(),
        _ => "",
    });
    assert!(conditions.eq(["amqp:invalid-field", "amqp:decode-error"]), "{outcomes:?}");
    assert_eq!(rig.refused.len(), 12);
}

#[test]
fn somebody_who_is_not_known_is_not_let_in() {
    for (password, is_in) in [("right", true), ("wrong", false)] {
        let mut rig = Rig::new();
        rig.clients.insert(1, Client::default());
        let (connection, protocol) = (ConnectionId(1), Protocol::Amqp);
        rig.input(Input::Connected { connection, protocol, certified: None });
        let mut wire = Header::Sasl.header().to_vec();
        let init = sasl::Frame::Init {
            mechanism: Symbol::new("PLAIN"),
            initial_response: Some(Bytes::from(format!("\0me\0{password}"))),
            hostname: None,
        };
        frame::encode(&mut wire, Kind::Sasl, 0, |out| init.encode(out));
        // What the broker says of SASL is no performative: it is read by nobody here.
        rig.clients.clear();
        rig.bytes(1, &wire);
        let is_closed = rig.clients.get(&1).is_some_and(|client| client.is_closed);
        assert_eq!(is_closed, !is_in);
    }
}

#[test]
fn a_broker_that_ends_says_so() {
    let mut rig = Rig::new();
    rig.connect(1, "c");
    rig.subscribe(1, 0, source("a"));
    rig.input(Input::Close);
    let sent = rig.sent(1);
    let Some((Performative::Close(close), _)) = sent.last() else { panic!("{sent:?}") };
    let condition = close.error.as_ref().unwrap().condition.as_str();
    assert_eq!(condition, "amqp:connection:forced");
    rig.send(1, Performative::Close(Close::default()), b"");
    assert!(rig.clients[&1].is_closed);
}

#[test]
fn credit_and_room_hold_back() {
    let mut rig = Rig::with(Settings::default());
    rig.connect(1, "subscriber");
    rig.subscribe(1, 0, source("a"));
    rig.grant(1, 0, 0, 2);
    rig.connect(2, "publisher");
    rig.publisher(2, 0, target("a"));
    (0..5).for_each(|id| rig.publish(2, 0, id, false, &data("x")));
    assert_eq!(rig.messages(1).len(), 2);
    rig.grant(1, 0, 2, 10);
    assert_eq!(rig.messages(1).len(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_messages_and_sources_are_taken_or_refused(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..6),
        address in "[a-c/+#$.:]{0,12}",
        annotations in any::<bool>(),
    ) {
        let mut rig = Rig::new();
        rig.connect(1, "c");
        rig.subscribe(1, 0, durable(&address));
        rig.subscribe(1, 1, source("#"));
        rig.publisher(1, 2, target("a/b"));
        for (id, message) in (0..).zip(&messages) {
            let head = if annotations { &b"\x00\x53\x72"[..] } else { b"" };
            rig.publish(1, 2, id, id % 2 == 0, &[head, message].concat());
            rig.settle(1, id, DeliveryState::Released);
        }
    }
}
