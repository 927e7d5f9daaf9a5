//! Strangers, and those who want too much.

use super::*;

fn each() -> Vec<Packet<'static>> {
    let filter = Filter::Name("a/#");
    let mut all = vec![
        Packet::Register { topic_id: 0, msg_id: 1, name: "a" },
        regack(1, 1),
        puback(Topic::Id(1), 1, ACCEPTED),
        Packet::PubRec { msg_id: 1 },
        Packet::PubRel { msg_id: 1 },
        Packet::PubComp { msg_id: 1 },
        Packet::Subscribe { dup: false, qos: Qos::One, msg_id: 1, filter },
        Packet::SubAck { qos: Qos::One, topic_id: 1, msg_id: 1, code: ACCEPTED },
        Packet::Unsubscribe { msg_id: 1, filter },
        Packet::UnsubAck { msg_id: 1 },
        PINGREQ,
        Packet::PingReq { client_id: "c" },
        Packet::PingResp,
        DISCONNECT,
        Packet::Disconnect { duration_s: Some(600) },
        Packet::WillTopicReq,
        Packet::WillMsgReq,
        Packet::WillTopicUpd(None),
        Packet::WillMsgUpd { message: b"x" },
        Packet::WillTopicResp { code: ACCEPTED },
        Packet::WillMsgResp { code: ACCEPTED },
        Packet::ConnAck { code: ACCEPTED },
        Packet::WillMsg { message: b"x" },
        Packet::WillTopic(None),
        will_topic("w"),
        Packet::Advertise { gateway_id: 1, duration_s: 1 },
        Packet::GwInfo { gateway_id: 1, address: b"" },
        Packet::SearchGw { radius: 1 },
    ];
    all.extend(
        [Qos::Zero, Qos::One, Qos::Two].map(|qos| publish(Topic::Short(*b"ab"), 1, b"x", qos)),
    );
    all
}

#[test]
fn strangers_get_one_short_answer_at_most_and_leave_no_trace() {
    let mut world = World::new(settings());
    for packet in each() {
        let got = world.hears(5, &packet);
        match &got[..] {
            [] => {}
            [one] => assert!(one.len() <= message(&packet).len().max(2), "{packet:?}"),
            more => panic!("{packet:?} is answered by {more:?}"),
        }
        world.hears_at(ONE_WAY, 5, message(&packet));
        assert!(world.sent.is_empty(), "{packet:?}");
    }
    // Two gateways would answer each other for ever.
    assert_eq!(world.hears(5, &DISCONNECT), [""; 0]);
    world.hears_at(ONE_WAY, 5, message(&connect("c", true, false)));
    assert!(world.sent.is_empty());
    assert_eq!((world.sessions(), world.wake_at), (0, world.broker.core().wake_at()));
    assert_eq!(world.broker.core().counts().published, 0);
    for bytes in
        [&b""[..], b"\x02", b"\xff\x16", b"\x03\xfe\x00", b"\x02\x03", b"\x03\xfe\x00\x02\x16"]
    {
        world.hears_at(LISTENER, 5, Bytes::copy_from_slice(bytes));
    }
    // What came through a forwarder is answered through it.
    assert_eq!(world.got(5), [&b"\x03\xfe\x00\x02\x18"[..]]);
}

#[test]
fn names_that_are_none_are_refused() {
    let mut world = World::new(settings());
    let refused = messages(&[Packet::ConnAck { code: Code::NOT_SUPPORTED }]);
    let long = "x".repeat(129);
    for name in ["", "a\0", "a\nb", &long] {
        assert_eq!(world.hears(5, &connect(name, true, false)), refused);
    }
    let other = Packet::Connect {
        will: false,
        clean_session: true,
        protocol_id: 2,
        duration_s: 60,
        client_id: "c",
    };
    assert_eq!(world.hears(5, &other), refused);
    assert_eq!(world.sessions(), 0);
    world.connects(5, &long[..128], true);
}

#[test]
fn one_address_has_no_more_than_its_share() {
    let mut world = World::new(Settings { max_clients_per_address: 2, ..settings() });
    world.connects(1, "one", true);
    world.connects(2, "two", true);
    let refused = messages(&[Packet::ConnAck { code: Code::CONGESTION }]);
    assert_eq!(world.hears(3, &connect("three", true, false)), refused);
    let from = SocketAddr::from(([10, 0, 0, 2], 3));
    let bytes = message(&connect("three", true, false));
    world.input(Input::Datagram { listener: LISTENER, from, bytes });
    assert_eq!(world.sessions(), 3);
    // Who connects again takes no more.
    world.hears(2, &PINGREQ);
    world.connects(2, "two", true);
    world.hears(1, &DISCONNECT);
    world.connects(3, "four", true);
}

#[test]
fn of_those_who_said_no_more_than_connect_the_oldest_makes_room() {
    let mut world = World::new(Settings { max_clients: 3, ..settings() });
    world.connects(1, "real", true);
    world.hears(1, &PINGREQ);
    world.connects(2, "ghost", false);
    world.waits(s(1));
    world.connects(3, "shadow", false);
    world.connects(4, "late", false);
    assert_eq!(world.hears(2, &PINGREQ), messages(&[DISCONNECT]));
    assert_eq!(world.sessions(), 3, "a session of which nothing else is known is not kept");
    for port in [3, 4] {
        world.hears(port, &PINGREQ);
    }
    let refused = messages(&[Packet::ConnAck { code: Code::CONGESTION }]);
    assert_eq!(world.hears(5, &connect("too late", false, false)), refused);
}

#[test]
fn another_client_at_an_address_takes_the_place_of_the_one_there() {
    let mut world = World::new(settings());
    world.connects(1, "one", true);
    world.connects(1, "two", true);
    assert_eq!(world.sessions(), 1);
    assert_eq!(world.hears(1, &PINGREQ), messages(&[Packet::PingResp]));
}

#[test]
fn topics_of_a_client_are_bounded() {
    let mut world = World::new(Settings { max_topics: 2, ..settings() });
    world.connects(1, "c", true);
    world.subscribes(1, "wild/#", Qos::Zero);
    world.registers(1, "a/a");
    world.connects(2, "pub", true);
    for (number, name) in [(1, "wild/1"), (2, "wild/2"), (3, "wild/1")] {
        let id = world.registers(2, name);
        world.hears(2, &publish(Topic::Id(id), 0, b"x", Qos::Zero));
        // The id that was used longest ago is said to be another topic's.
        let register = Packet::Register { topic_id: 2, msg_id: number, name };
        assert_eq!(world.got(1), messages(&[register]));
        let given = publish(Topic::Id(2), 0, b"x", Qos::Zero);
        assert_eq!(world.hears(1, &regack(2, number)), messages(&[given]));
        if number == 2 {
            world.hears(2, &DISCONNECT);
            world.connects(2, "pub", true);
        }
    }
    world.registers(1, "b/b");
    let full = Packet::RegAck { topic_id: 0, msg_id: 5, code: Code::CONGESTION };
    let register = Packet::Register { topic_id: 0, msg_id: 5, name: "c/c" };
    assert_eq!(world.hears(1, &register), messages(&[full]));
    let id = world.registers(2, "wild/3");
    world.hears(2, &publish(Topic::Id(id), 0, b"x", Qos::Zero));
    assert_eq!(world.got(1), [""; 0]);
    assert_eq!(world.drops(), [Drop::Unmappable]);
}

#[test]
fn what_no_datagram_holds_is_not_sent() {
    let mut world = World::new(Settings { max_datagram_bytes: 100, ..settings() });
    world.connects(1, "sub", true);
    world.subscribes(1, "ab", Qos::One);
    world.connects(2, "pub", true);
    for (len, qos) in [(93, Qos::One), (94, Qos::One), (94, Qos::Zero)] {
        let data = vec![7; len];
        let (topic, msg_id) = (Topic::Short(*b"ab"), 1);
        let packet = Publish { topic, msg_id, data: &data, qos, retain: false, dup: false };
        world.hears(2, &Packet::Publish(packet));
        assert_eq!(world.got(1).len(), usize::from(len == 93));
        world.hears(1, &puback(Topic::Id(1), 1, ACCEPTED));
    }
    assert_eq!(world.drops(), [Drop::TooLarge, Drop::TooLarge]);
}

/// A client gets what waits in bursts that buffers on the way hold.
#[test]
fn publications_of_level_0_leave_in_bursts() {
    let mut world = World::new(settings());
    world.connects(2, "pub", true);
    for number in 0..200_u8 {
        let name = [b'a' + number / 16, b'a' + number % 16];
        let publish = Publish {
            topic: Topic::Short(name),
            msg_id: 0,
            data: b"x",
            qos: Qos::Zero,
            retain: true,
            dup: false,
        };
        world.hears(2, &Packet::Publish(publish));
    }
    world.connects(1, "sub", true);
    let filter = Filter::Name("#");
    let subscribe = Packet::Subscribe { dup: false, qos: Qos::One, msg_id: 1, filter };
    let mut got = world.hears(1, &subscribe).len() - 1;
    assert_eq!(got, 64);
    for expected in [128, 192, 200] {
        world.waits(Duration::from_millis(10));
        got += world.got(1).len();
        assert_eq!(got, expected);
    }
}

#[test]
fn the_end_of_the_broker_is_said() {
    let mut world = World::new(settings());
    world.connects(1, "one", true);
    world.connects(2, "two", false);
    world.input(Input::Close);
    assert_eq!(world.got(1), messages(&[DISCONNECT]));
    assert_eq!(world.got(2), messages(&[DISCONNECT]));
    let refused = messages(&[Packet::ConnAck { code: Code::CONGESTION }]);
    assert_eq!(world.hears(3, &connect("three", true, false)), refused);
}
