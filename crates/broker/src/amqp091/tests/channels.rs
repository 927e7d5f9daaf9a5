use super::*;

fn qos(prefetch_count: u16, global: bool) -> Method<'static> {
    Method::BasicQos { prefetch_size: 0, prefetch_count, global }
}

fn ack(delivery_tag: u64, multiple: bool) -> Method<'static> {
    Method::BasicAck { delivery_tag, multiple }
}

fn nack(delivery_tag: u64, multiple: bool, requeue: bool) -> Method<'static> {
    Method::BasicNack { delivery_tag, multiple, requeue }
}

/// A queue `q` with messages 0 to `count`, and a client 1.
fn filled(count: usize) -> World {
    let mut world = World::new();
    world.connect(1);
    world.ask(1, &declare("q", Table::default()));
    for number in 0..count {
        world.publish(1, ("", "q"), &number.to_string());
    }
    world
}

#[test]
fn consumers_get_as_much_as_they_asked_for() {
    let mut world = filled(5);
    world.call(1, &qos(2, false));
    world.method(1, 1, &consume("q", "c", false));
    assert_eq!(world.bodies(1), ["0", "1"]);
    world.method(1, 1, &ack(1, false));
    assert_eq!(world.bodies(1), ["2"]);
    world.method(1, 1, &ack(3, true));
    assert_eq!(world.bodies(1), ["3", "4"]);
    world.method(1, 1, &ack(0, true));
    let left = world.ask(1, &declare("q", Table::default()));
    assert!(left.contains("message_count: 0, consumer_count: 1"), "{left}");
}

#[test]
fn a_channel_bounds_all_its_consumers_together() {
    let mut world = filled(5);
    world.call(1, &qos(3, true));
    world.method(1, 1, &consume("q", "a", false));
    world.method(1, 1, &consume("q", "b", false));
    assert_eq!(world.bodies(1).len(), 3);
    world.method(1, 1, &ack(1, false));
    assert_eq!(world.bodies(1), ["3"]);
}

#[test]
fn consumers_take_turns() {
    let mut world = filled(0);
    world.connect(2);
    world.call(1, &consume("q", "a", true));
    world.call(2, &consume("q", "b", true));
    for number in 0..6 {
        world.publish(1, ("", "q"), &number.to_string());
    }
    assert_eq!(world.bodies(1), ["0", "2", "4"]);
    assert_eq!(world.bodies(2), ["1", "3", "5"]);
}

#[test]
fn what_comes_back_is_given_again_in_its_place() {
    let mut world = filled(3);
    world.call(1, &qos(3, false));
    let got = world.call(1, &consume("q", "c", false));
    assert_eq!(got[0].name(), "BasicConsumeOk");
    assert!(got[1].text.contains("redelivered: false"), "{:?}", got[1]);
    world.method(1, 1, &nack(2, true, true));
    let again = world.got(1);
    assert_eq!(again.iter().map(|got| &got.body[..]).collect::<Vec<_>>(), [b"0", b"1"]);
    assert!(again[0].text.contains("redelivered: true"), "{:?}", again[0]);
    // Without a channel it goes back too, and to others.
    world.connect(2);
    world.call(2, &consume("q", "d", false));
    world.input(Input::Lost { connection: ConnectionId(1) });
    assert_eq!(world.bodies(2), ["0", "1", "2"]);
    let recover = world.call(2, &Method::BasicRecover { requeue: true });
    assert_eq!(recover[0].name(), "BasicRecoverOk");
    assert_eq!(recover.len(), 4);
}

#[test]
fn tags_that_nobody_has_close_the_channel() {
    for method in [ack(1, false), nack(7, true, false)] {
        let mut world = filled(0);
        let closed = world.ask(1, &method);
        assert!(closed.contains("reply_code: 406"), "{closed}");
        assert_eq!(world.got(1), [], "the connection stands");
    }
    let mut world = filled(1);
    world.call(1, &Method::BasicGet { queue: "q", no_ack: false });
    assert_eq!(world.call(1, &ack(1, false)), []);
    assert!(world.ask(1, &ack(1, false)).contains("406"), "a second time");
}

#[test]
fn a_slow_client_gets_what_its_socket_takes() {
    let mut world = filled(0);
    world.call(1, &consume("q", "c", true));
    world.is_socket_open = false;
    let body = vec![b'x'; 10_000];
    for _ in 0..100 {
        world.publish_with(1, ("", "q"), false, &Properties::default(), &body);
    }
    let sent = world.sent[&1].len();
    assert!((64 << 10..100 << 10).contains(&sent), "{sent} bytes of a million");
    world.is_socket_open = true;
    world.input(Input::Sent { connection: ConnectionId(1), bytes: sent });
    assert_eq!(world.bodies(1).len(), 100);
}

#[test]
fn confirms_come_when_all_is_done_and_mandatory_messages_come_back() {
    let mut world = filled(0);
    assert_eq!(world.ask(1, &Method::ConfirmSelect { no_wait: false }), "ConfirmSelectOk");
    world.publish(1, ("", "q"), "a");
    let got = world.got(1);
    assert_eq!(got[0].text, "BasicAck { delivery_tag: 1, multiple: false }");
    let properties = Properties { message_id: Some("m"), ..Properties::default() };
    world.publish_with(1, ("", "nobody"), true, &properties, b"back");
    let got = world.got(1);
    assert_eq!(got.len(), 2);
    assert!(got[0].text.starts_with("BasicReturn { reply_code: 312"), "{}", got[0].text);
    assert_eq!(got[0].body, b"back");
    assert_eq!(got[0].properties, bytes_of(&properties));
    assert_eq!(got[1].text, "BasicAck { delivery_tag: 2, multiple: false }");
}

#[test]
fn transactions_are_done_as_one() {
    let mut world = filled(1);
    assert_eq!(world.ask(1, &Method::TxSelect {}), "TxSelectOk");
    world.call(1, &Method::BasicGet { queue: "q", no_ack: false });
    world.publish(1, ("", "q"), "in");
    world.method(1, 1, &ack(1, false));
    assert_eq!(world.got(1), []);
    assert!(world.get(1, "q").is_none(), "it is not there yet");
    assert_eq!(world.ask(1, &Method::TxCommit {}), "TxCommitOk");
    assert_eq!(world.get(1, "q").unwrap().body, b"in");
    world.publish(1, ("", "q"), "out");
    assert_eq!(world.ask(1, &Method::TxRollback {}), "TxRollbackOk");
    assert_eq!(world.ask(1, &Method::TxCommit {}), "TxCommitOk");
    assert!(world.get(1, "q").is_none());
    assert!(world.ask(1, &Method::ConfirmSelect { no_wait: false }).contains("406"));
    assert!(filled(0).ask(1, &Method::TxCommit {}).contains("406"));
}

#[test]
fn what_is_not_done_here_is_said() {
    let immediate =
        Method::BasicPublish { exchange: "", routing_key: "q", mandatory: false, immediate: true };
    let mut world = filled(0);
    let mut out = Vec::new();
    encode_method(1, &immediate, &mut out).unwrap();
    encode_content(1, &[0, 0], b"", FRAME_BYTES, &mut out).unwrap();
    world.bytes(1, &out);
    assert!(world.got(1)[0].text.contains("ConnectionClose { reply_code: 540"));
    for method in [
        Method::ChannelFlow { active: false },
        Method::BasicRecover { requeue: false },
        Method::BasicQos { prefetch_size: 1, prefetch_count: 0, global: false },
    ] {
        let refused = filled(0).ask(1, &method);
        assert!(refused.starts_with("ConnectionClose { reply_code: 540"), "{refused}");
    }
    let misplaced = filled(0).ask(1, &Method::BasicQosOk {});
    assert!(misplaced.starts_with("ConnectionClose { reply_code: 503"), "{misplaced}");
}

#[test]
fn consumers_learn_that_their_queue_has_gone() {
    let mut world = filled(0);
    world.connect(2);
    world.call(2, &consume("q", "c", false));
    let delete =
        Method::QueueDelete { queue: "q", if_unused: true, if_empty: false, no_wait: false };
    assert!(world.ask(1, &delete).contains("reply_code: 406"));
    world.connect(3);
    let delete =
        Method::QueueDelete { queue: "q", if_unused: false, if_empty: false, no_wait: false };
    assert!(world.ask(3, &delete).contains("QueueDeleteOk"));
    assert_eq!(world.got(2)[0].text, "BasicCancel { consumer_tag: \"c\", no_wait: true }");
    let cancel = Method::BasicCancel { consumer_tag: "c", no_wait: false };
    assert!(world.ask(2, &cancel).starts_with("BasicCancelOk"), "it is gone already");
}

#[test]
fn a_consumer_may_want_to_be_alone() {
    let alone = |tag| Method::BasicConsume {
        queue: "q",
        consumer_tag: tag,
        no_local: false,
        no_ack: true,
        exclusive: true,
        no_wait: false,
        arguments: Table::default(),
    };
    let mut world = filled(0);
    assert!(world.ask(1, &alone("a")).starts_with("BasicConsumeOk"));
    world.connect(2);
    assert!(world.ask(2, &consume("q", "b", true)).contains("reply_code: 403"));
    world.call(1, &Method::BasicCancel { consumer_tag: "a", no_wait: false });
    world.method(2, 1, &Method::ChannelCloseOk {});
    world.call(2, &Method::ChannelOpen {});
    assert!(world.ask(2, &consume("q", "b", true)).starts_with("BasicConsumeOk"));
    assert!(world.ask(2, &consume("q", "b", true)).contains("reply_code: 530"), "the same tag");
}

#[test]
fn strangers_stay_outside() {
    let mut world = World::new();
    let (connection, protocol) = (ConnectionId(1), Protocol::Amqp091);
    world.input(Input::Connected { connection, protocol, certified: None });
    world.bytes(1, &PROTOCOL_HEADER);
    let start = Method::ConnectionStartOk {
        client_properties: Table::default(),
        mechanism: "PLAIN",
        response: b"\0u\0wrong",
        locale: "",
    };
    world.method(1, 0, &start);
    assert_eq!(world.closed, [1]);
    assert_eq!(world.refused(), ["not known"]);
    world.input(Input::Connected { connection, protocol, certified: Some("cn".into()) });
    world.bytes(1, &PROTOCOL_HEADER);
    let start = Method::ConnectionStartOk {
        client_properties: Table::default(),
        mechanism: "EXTERNAL",
        response: b"",
        locale: "",
    };
    world.method(1, 0, &start);
    assert_eq!(world.got(1).last().unwrap().name(), "ConnectionTune");
}

#[test]
fn the_broker_says_that_it_ends() {
    let mut world = filled(0);
    world.input(Input::Close);
    assert!(world.got(1)[0].text.starts_with("ConnectionClose { reply_code: 320"));
    world.method(1, 0, &Method::ConnectionCloseOk {});
    assert_eq!(world.closed, [1]);
}
