//! Connecting, registering, publishing and subscribing.

use super::*;

/// MQTT-SN 1.2 §6.2, §6.3.
#[test]
fn a_client_is_asked_for_its_will_which_is_published_when_it_is_lost() {
    let mut world = World::new(settings());
    world.connects(1, "watcher", true);
    world.subscribes(1, "wills/#", Qos::One);
    let connect = connect("c", false, true);
    assert_eq!(world.hears(2, &connect), messages(&[Packet::WillTopicReq]));
    assert_eq!(world.hears(2, &connect), messages(&[Packet::WillTopicReq]), "a copy");
    assert_eq!(world.hears(2, &will_topic("wills/c")), messages(&[Packet::WillMsgReq]));
    let will = Packet::WillMsg { message: b"gone" };
    let connack = messages(&[Packet::ConnAck { code: ACCEPTED }]);
    assert_eq!(world.hears(2, &will), connack);
    assert_eq!(world.hears(2, &will), connack, "its answer was lost");
    assert_eq!(world.hears(2, &connect), connack, "a copy");
    assert_eq!(world.sessions(), 2);
    // It leaves and is back without a will of its own: the gateway has kept it.
    assert_eq!(world.hears(2, &DISCONNECT), messages(&[DISCONNECT]));
    assert_eq!(world.hears(2, &DISCONNECT), messages(&[DISCONNECT]), "its answer was lost");
    assert_eq!(world.got(1), [""; 0]);
    world.connects(2, "c", false);
    for _ in 0..3 {
        world.waits(s(29));
        world.stays(1);
    }
    world.waits(s(4));
    let register = Packet::Register { topic_id: 1, msg_id: 1, name: "wills/c" };
    assert_eq!(world.got(1), messages(&[register]));
    let given = publish(Topic::Id(1), 1, b"gone", Qos::One);
    assert_eq!(world.hears(1, &regack(1, 1)), messages(&[given]));
    world.hears(1, &puback(Topic::Id(1), 1, ACCEPTED));
    // Whoever is lost is told to connect again.
    assert_eq!(world.hears(2, &PINGREQ), messages(&[DISCONNECT]));
    // It was a retained one.
    world.connects(3, "late", true);
    let subscribe = Packet::Subscribe {
        dup: false,
        qos: Qos::Zero,
        msg_id: 5,
        filter: Filter::Name("wills/c"),
    };
    let suback = Packet::SubAck { qos: Qos::Zero, topic_id: 1, msg_id: 5, code: ACCEPTED };
    let retained = Publish {
        topic: Topic::Id(1),
        msg_id: 0,
        data: b"gone",
        qos: Qos::Zero,
        retain: true,
        dup: false,
    };
    assert_eq!(world.hears(3, &subscribe), messages(&[suback, Packet::Publish(retained)]));
    assert_eq!(world.hears_again(3, &subscribe), messages(&[suback]), "a copy brings no more");
}

impl World {
    fn hears_again(&mut self, port: u16, packet: &Packet<'_>) -> Vec<Bytes> {
        self.hears_at(LISTENER, port, again(packet));
        self.got(port)
    }
}

/// MQTT-SN 1.2 §6.3, §6.4.
#[test]
fn wills_are_changed_and_deleted() {
    let mut world = World::new(settings());
    world.connects(1, "watcher", true);
    world.subscribes(1, "#", Qos::Zero);
    let lost = |world: &mut World, port| {
        world.connects(port, "c", false);
        world.waits(s(45));
        world.stays(1);
        world.waits(s(45));
        world.stays(1);
        assert_eq!(world.hears(port, &PINGREQ), messages(&[DISCONNECT]));
        world.got(1)
    };
    world.connects(2, "c", false);
    let topic = |topic| WillTopic { topic, qos: Qos::Zero, retain: false };
    let topic_resp = |code| messages(&[Packet::WillTopicResp { code }]);
    let update = |topic| Packet::WillTopicUpd(Some(topic));
    let message_update = Packet::WillMsgUpd { message: b"m" };
    let refused = messages(&[Packet::WillMsgResp { code: Code::NOT_SUPPORTED }]);
    assert_eq!(world.hears(2, &message_update), refused, "there is no topic for it");
    assert_eq!(world.hears(2, &update(topic("w/+"))), topic_resp(Code::NOT_SUPPORTED));
    assert_eq!(world.hears(2, &update(topic("w1"))), topic_resp(ACCEPTED));
    let accepted = messages(&[Packet::WillMsgResp { code: ACCEPTED }]);
    assert_eq!(world.hears(2, &message_update), accepted);
    world.hears(2, &DISCONNECT);
    let given = publish(Topic::Short(*b"w1"), 0, b"m", Qos::Zero);
    assert_eq!(lost(&mut world, 2), messages(&[given]));
    // It was kept, and is due each time.
    assert_eq!(lost(&mut world, 3), messages(&[given]));
    world.connects(2, "c", false);
    assert_eq!(world.hears(2, &Packet::WillTopicUpd(None)), topic_resp(ACCEPTED));
    world.hears(2, &DISCONNECT);
    assert_eq!(lost(&mut world, 2), [""; 0]);
    // MQTT-SN 1.2 §6.3: a client deletes its will while it connects.
    world.connects(2, "c", false);
    world.hears(2, &update(topic("w1")));
    assert_eq!(world.hears(2, &connect("c", false, true)), messages(&[Packet::WillTopicReq]));
    let connack = messages(&[Packet::ConnAck { code: ACCEPTED }]);
    assert_eq!(world.hears(2, &Packet::WillTopic(None)), connack);
    world.hears(2, &DISCONNECT);
    assert_eq!(lost(&mut world, 2), [""; 0]);
}

/// MQTT-SN 1.2 §6.5, §6.6.
#[test]
fn publications_of_all_levels_arrive() {
    let mut world = World::new(settings());
    world.connects(1, "sub", true);
    assert_eq!(world.subscribes(1, "a/+", Qos::Two), 0);
    world.connects(2, "pub", true);
    let id = world.registers(2, "a/b");
    assert_eq!(world.registers(2, "a/b"), id);
    let topic = Topic::Id(id);
    // Level 0 has no answer.
    assert_eq!(world.hears(2, &publish(topic, 0, b"0", Qos::Zero)), [""; 0]);
    let register = Packet::Register { topic_id: 1, msg_id: 1, name: "a/b" };
    assert_eq!(world.got(1), messages(&[register]));
    let given = |msg_id, data, qos| publish(Topic::Id(1), msg_id, data, qos);
    assert_eq!(world.hears(1, &regack(1, 1)), messages(&[given(0, b"0", Qos::Zero)]));
    // Level 1 has one.
    let answer = world.hears(2, &publish(topic, 5, b"1", Qos::One));
    assert_eq!(answer, messages(&[puback(topic, 5, ACCEPTED)]));
    assert_eq!(world.got(1), messages(&[given(1, b"1", Qos::One)]));
    // Level 2 comes once; one waits for the one before.
    let second = publish(topic, 6, b"2", Qos::Two);
    let pubrec = messages(&[Packet::PubRec { msg_id: 6 }]);
    assert_eq!(world.hears(2, &second), pubrec);
    assert_eq!(world.hears_again(2, &second), pubrec);
    let pubcomp = messages(&[Packet::PubComp { msg_id: 6 }]);
    assert_eq!(world.hears(2, &Packet::PubRel { msg_id: 6 }), pubcomp);
    assert_eq!(world.hears(2, &Packet::PubRel { msg_id: 6 }), pubcomp);
    assert_eq!(world.hears_again(2, &second), pubrec, "its PUBREL has overtaken it");
    assert_eq!(world.got(1), [""; 0]);
    let next = world.hears(1, &puback(Topic::Id(1), 1, ACCEPTED));
    assert_eq!(next, messages(&[given(2, b"2", Qos::Two)]));
    let released = messages(&[Packet::PubRel { msg_id: 2 }]);
    assert_eq!(world.hears(1, &Packet::PubRec { msg_id: 2 }), released);
    assert_eq!(world.hears(1, &Packet::PubRec { msg_id: 2 }), [""; 0]);
    assert_eq!(world.hears(1, &Packet::PubComp { msg_id: 2 }), [""; 0]);
    assert_eq!(world.hears(1, &Packet::PubRec { msg_id: 2 }), released, "of one that is gone");
    // The same msg id again is another one.
    world.hears(2, &second);
    assert_eq!(world.got(1), messages(&[given(3, b"2", Qos::Two)]));
}

#[test]
fn what_cannot_be_published_is_refused() {
    let mut world = World::new(settings());
    world.connects(2, "pub", true);
    for (topic, code) in [
        (Topic::Id(77), Code::INVALID_TOPIC_ID),
        (Topic::Predefined(4), Code::INVALID_TOPIC_ID),
        (Topic::Short([0xff, 0xff]), Code::NOT_SUPPORTED),
        (Topic::Short(*b"a#"), Code::NOT_SUPPORTED),
        (Topic::Short(*b"$a"), Code::NOT_SUPPORTED),
    ] {
        for qos in [Qos::Zero, Qos::One, Qos::Two] {
            let refused = messages(&[puback(topic, 5, code)]);
            assert_eq!(world.hears(2, &publish(topic, 5, b"x", qos)), refused, "{topic:?}");
        }
    }
    for name in ["", "a/#", "+", "a\0"] {
        let register = Packet::Register { topic_id: 0, msg_id: 5, name };
        let refused = Packet::RegAck { topic_id: 0, msg_id: 5, code: Code::NOT_SUPPORTED };
        assert_eq!(world.hears(2, &register), messages(&[refused]), "{name}");
    }
    assert_eq!(world.broker.core().counts().published, 0);
}

/// MQTT-SN 1.2 §6.7, §6.9.
#[test]
fn topics_are_said_as_the_client_knows_them() {
    let mut world = World::new(settings());
    world.connects(1, "own", true);
    let subscribe = |filter| Packet::Subscribe { dup: false, qos: Qos::One, msg_id: 5, filter };
    for (filter, topic_id) in [
        (Filter::Predefined(3), 3),
        (Filter::Predefined(4), 4),
        (Filter::Short(*b"ab"), 0),
        (Filter::Name("x/y"), 1),
        (Filter::Name("wild/#"), 0),
    ] {
        let suback = Packet::SubAck { qos: Qos::One, topic_id, msg_id: 5, code: ACCEPTED };
        assert_eq!(world.hears(1, &subscribe(filter)), messages(&[suback]), "{filter:?}");
    }
    world.connects(2, "pub", true);
    for (name, topic) in [
        ("pre/all", Topic::Predefined(3)),
        ("pre/own", Topic::Predefined(4)),
        ("ab", Topic::Short(*b"ab")),
        ("x/y", Topic::Id(1)),
    ] {
        let id = world.registers(2, name);
        world.hears(2, &publish(Topic::Id(id), 0, b"x", Qos::Zero));
        let given = publish(topic, 0, b"x", Qos::Zero);
        assert_eq!(world.got(1), messages(&[given]), "{name}");
    }
    let refused = |filter, qos, code| {
        let refused = Packet::SubAck { qos: Qos::Zero, topic_id: 0, msg_id: 5, code };
        (Packet::Subscribe { dup: false, qos, msg_id: 5, filter }, messages(&[refused]))
    };
    for (subscribe, answer) in [
        refused(Filter::Predefined(9), Qos::One, Code::INVALID_TOPIC_ID),
        refused(Filter::Name("a/#/b"), Qos::One, Code::NOT_SUPPORTED),
        refused(Filter::Name(""), Qos::One, Code::NOT_SUPPORTED),
        refused(Filter::Name("$share/g"), Qos::One, Code::NOT_SUPPORTED),
        refused(Filter::Name("a"), Qos::MinusOne, Code::NOT_SUPPORTED),
    ] {
        assert_eq!(world.hears(1, &subscribe), answer, "{subscribe:?}");
    }
    // It is no longer given what it does not want.
    let unsubscribe = Packet::Unsubscribe { msg_id: 6, filter: Filter::Predefined(3) };
    assert_eq!(world.hears(1, &unsubscribe), messages(&[Packet::UnsubAck { msg_id: 6 }]));
    world.hears(2, &publish(Topic::Predefined(3), 0, b"x", Qos::Zero));
    assert_eq!(world.got(1), [""; 0]);
}

/// MQTT-SN 1.2 §6.8.
#[test]
fn level_minus_one_needs_no_connection_and_gets_no_answer() {
    let mut world = World::new(settings());
    world.connects(1, "sub", true);
    world.subscribes(1, "pre/all", Qos::One);
    world.hears(
        1,
        &Packet::Subscribe { dup: false, qos: Qos::One, msg_id: 5, filter: Filter::Short(*b"ab") },
    );
    for listener in [LISTENER, ONE_WAY] {
        for (topic, given) in [
            (Topic::Predefined(3), Some(Topic::Id(1))),
            (Topic::Short(*b"ab"), Some(Topic::Short(*b"ab"))),
            (Topic::Predefined(4), None),
            (Topic::Id(1), None),
            (Topic::Short([0xff, 0xff]), None),
        ] {
            let unconnected = message(&publish(topic, 0, b"x", Qos::MinusOne));
            world.hears_at(listener, 9, unconnected);
            let given = given.map(|topic| message(&publish(topic, 0, b"x", Qos::Zero)));
            assert_eq!(world.got(1), Vec::from_iter(given), "{topic:?}");
            assert!(world.sent.is_empty());
        }
    }
    assert_eq!(world.sessions(), 1);
}

/// A session that was left is found again: ids, subscriptions, and what was published meanwhile.
#[test]
fn a_client_comes_back_to_its_session() {
    let mut world = World::new(settings());
    world.connects(1, "sub", false);
    let id = world.subscribes(1, "a/b", Qos::One);
    world.connects(2, "pub", true);
    let topic = Topic::Id(world.registers(2, "a/b"));
    world.hears(1, &DISCONNECT);
    world.hears(2, &publish(topic, 1, b"1", Qos::One));
    assert_eq!(world.got(1), [""; 0]);
    // At another address, where nobody was known.
    world.connects(3, "sub", false);
    // MQTT-SN 1.2 §6.5: what the client knows is not known.
    let register = Packet::Register { topic_id: id, msg_id: 1, name: "a/b" };
    assert_eq!(world.got(3), messages(&[register]));
    let given = publish(Topic::Id(id), 1, b"1", Qos::One);
    assert_eq!(world.hears(3, &regack(id, 1)), messages(&[given]));
    // It never left, and is at yet another one: the one before is told, and gets no more.
    world.connects(4, "sub", false);
    assert_eq!(world.got(3), messages(&[DISCONNECT]));
    assert_eq!(world.got(4), messages(&[register]));
    assert_eq!(world.hears(4, &regack(id, 1)), [again(&given)]);
    assert_eq!(world.hears(3, &PINGREQ), messages(&[DISCONNECT]));
    // By what it publishes under an id of before it shows that it knows it.
    world.connects(4, "sub", false);
    assert_eq!(world.got(4), messages(&[register]));
    world.connects(5, "sub", true);
    assert_eq!(world.got(4), messages(&[DISCONNECT]));
    assert_eq!(world.got(5), [""; 0], "a clean session has nothing");
    world.hears(2, &publish(topic, 2, b"2", Qos::One));
    assert_eq!(world.got(5), [""; 0]);
}

/// MQTT-SN 1.2 §5.5.
#[test]
fn clients_behind_forwarders_are_known_apart() {
    let mut world = World::new(settings());
    let forwarded = |node: &[u8], packet: &Packet<'_>| {
        let inner = message(packet);
        let outer = proto::mqttsn::Forwarded { radius: 0, node, message: &inner };
        let mut room = vec![0; outer.encoded_len()];
        outer.encode(&mut room).unwrap();
        Bytes::from(room)
    };
    let connack = Packet::ConnAck { code: ACCEPTED };
    for (node, name) in [(&b"\x01"[..], "one"), (b"\x02\x03", "two")] {
        world.hears_at(LISTENER, 1, forwarded(node, &connect(name, true, false)));
        assert_eq!(world.got(1), [forwarded(node, &connack)]);
    }
    world.connects(1, "forwarder", true);
    assert_eq!(world.sessions(), 3);
    let filter = Filter::Short(*b"ab");
    let subscribe = Packet::Subscribe { dup: false, qos: Qos::One, msg_id: 5, filter };
    world.hears_at(LISTENER, 1, forwarded(b"\x02\x03", &subscribe));
    world.got(1);
    let published = publish(Topic::Short(*b"ab"), 1, b"x", Qos::One);
    world.hears_at(LISTENER, 1, forwarded(b"\x01", &published));
    let (answer, given) = (puback(Topic::Short(*b"ab"), 1, ACCEPTED), published);
    let expected = [forwarded(b"\x01", &answer), forwarded(b"\x02\x03", &given)];
    assert_eq!(world.got(1), expected);
    world.hears_at(LISTENER, 1, forwarded(b"\x09", &Packet::SearchGw { radius: 1 }));
    let info = Packet::GwInfo { gateway_id: 1, address: b"" };
    assert_eq!(world.got(1), [forwarded(b"\x09", &info)]);
}

/// MQTT-SN 1.2 §6.1.
#[test]
fn gateways_are_found() {
    let to = address(99);
    let advertising = Listener {
        gateway_id: 9,
        advertise_to: vec![to],
        advertise_interval: s(900),
        ..Listener::default()
    };
    let mut settings = settings();
    settings.listeners.insert(LISTENER, advertising);
    let mut world = World::new(settings);
    let advertise = messages(&[Packet::Advertise { gateway_id: 9, duration_s: 900 }]);
    assert_eq!(world.got(99), advertise);
    world.waits(s(899));
    assert_eq!(world.got(99), [""; 0]);
    world.waits(s(1));
    assert_eq!(world.got(99), advertise);
    let info = messages(&[Packet::GwInfo { gateway_id: 9, address: b"" }]);
    assert_eq!(world.hears(5, &Packet::SearchGw { radius: 1 }), info);
    assert_eq!(world.hears(5, &Packet::GwInfo { gateway_id: 2, address: b"" }), [""; 0]);
    assert_eq!(world.hears(5, &Packet::Advertise { gateway_id: 2, duration_s: 9 }), [""; 0]);
}

/// What was acknowledged is in the store, and comes back from it.
#[test]
fn nothing_is_acknowledged_before_the_store_has_it() {
    let mut world = World::with(settings(), true);
    world.connects(1, "sub", false);
    let id = world.subscribes(1, "a/b", Qos::Two);
    world.hears(1, &DISCONNECT);
    world.connects(2, "pub", false);
    let topic = Topic::Id(world.registers(2, "a/b"));
    let topic_upd = WillTopic { topic: "w", qos: Qos::One, retain: false };
    world.hears(2, &Packet::WillTopicUpd(Some(topic_upd)));
    world.writes_at_once = false;
    assert_eq!(world.hears(2, &publish(topic, 1, b"1", Qos::One)), [""; 0]);
    world.write();
    assert_eq!(world.got(2), messages(&[puback(topic, 1, ACCEPTED)]));
    assert_eq!(world.hears(2, &publish(topic, 2, b"2", Qos::Two)), [""; 0]);
    // Answers keep their order.
    world.hears(2, &publish(topic, 3, b"3", Qos::One));
    world.write();
    world.write();
    let pubrec = Packet::PubRec { msg_id: 2 };
    assert_eq!(world.got(2), messages(&[pubrec, puback(topic, 3, ACCEPTED)]));
    let stored = std::mem::take(&mut world.stored);
    let mut later = World::with(settings(), true);
    assert_eq!(later.broker.restore(later.now, stored.clone()), 0);
    // A copy of what was taken before the end is known as one, and the id still is.
    later.connects(2, "pub", false);
    later.hears_at(LISTENER, 2, again(&publish(topic, 2, b"2", Qos::Two)));
    assert_eq!(later.got(2), messages(&[pubrec]));
    later.connects(1, "sub", false);
    let register = Packet::Register { topic_id: id, msg_id: 1, name: "a/b" };
    assert_eq!(later.got(1), messages(&[register]));
    let mut got = later.hears(1, &regack(id, 1));
    for (handle, data, qos) in [(1, b"1", Qos::One), (2, b"2", Qos::Two), (3, b"3", Qos::One)] {
        let given = publish(Topic::Id(id), handle, data, qos);
        assert_eq!(got, messages(&[given]));
        got = match qos {
            Qos::Two => {
                // PUBREL waits for the store too.
                later.writes_at_once = false;
                assert_eq!(later.hears(1, &Packet::PubRec { msg_id: handle }), [""; 0]);
                later.write();
                later.writes_at_once = true;
                assert_eq!(later.got(1), messages(&[Packet::PubRel { msg_id: handle }]));
                later.hears(1, &Packet::PubComp { msg_id: handle })
            }
            _ => later.hears(1, &puback(Topic::Id(id), handle, ACCEPTED)),
        };
    }
    assert_eq!(got, [""; 0]);
    // The will was kept with the session.
    later.connects(3, "watcher", true);
    later.subscribes(3, "w", Qos::Zero);
    later.waits(s(60));
    later.stays(3);
    later.waits(s(31));
    assert_eq!(later.got(3), messages(&[publish(Topic::Id(1), 0, b"", Qos::Zero)]));
    // What is kept ends with the session.
    later.connects(1, "sub", true);
    let mut kept = std::collections::BTreeSet::new();
    for change in stored.into_iter().chain(later.stored) {
        match change {
            Change::Kept { key, value: Some(_), .. } => kept.insert(key),
            Change::Kept { key, value: None, .. } => kept.remove(&key),
            _ => false,
        };
    }
    let kept: Vec<&str> = kept.iter().map(|key| &**key).collect();
    assert_eq!(kept, ["1 pub", "65536 pub"]);
}
