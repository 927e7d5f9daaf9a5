//! What is not answered (MQTT-SN 1.2 §6.13).

use super::*;

fn pair() -> World {
    let mut world = World::new(settings());
    world.connects(1, "sub", false);
    world.subscribes(1, "ab", Qos::Two);
    world.connects(2, "pub", true);
    world
}

fn published(world: &mut World, data: &'static [u8], qos: Qos) {
    world.hears(2, &publish(Topic::Short(*b"ab"), 7, data, qos));
}

fn given(msg_id: u16, data: &'static [u8], qos: Qos) -> Packet<'static> {
    publish(Topic::Id(1), msg_id, data, qos)
}

#[test]
fn a_client_that_does_not_answer_is_lost_and_its_messages_wait() {
    let mut world = pair();
    published(&mut world, b"0", Qos::One);
    world.hears(1, &puback(Topic::Id(1), 1, ACCEPTED));
    published(&mut world, b"1", Qos::One);
    let first = given(2, b"1", Qos::One);
    assert_eq!(world.got(1), messages(&[first]));
    for _ in 0..4 {
        world.waits(s(10));
        assert_eq!(world.got(1), [again(&first)]);
        world.stays(2);
    }
    world.waits(s(10));
    assert_eq!(world.got(1), messages(&[DISCONNECT]));
    published(&mut world, b"2", Qos::One);
    assert_eq!(world.got(1), [""; 0]);
    assert_eq!(world.hears(1, &PINGREQ), messages(&[DISCONNECT]));
    world.connects(1, "sub", false);
    let register = Packet::Register { topic_id: 1, msg_id: 1, name: "ab" };
    let known = match &world.got(1)[..] {
        // A name of two octets needs no id.
        [one] if *one == again(&publish(Topic::Short(*b"ab"), 2, b"1", Qos::One)) => true,
        other => panic!("{other:?} is not {register:?}"),
    };
    assert!(known);
    let second = publish(Topic::Short(*b"ab"), 3, b"2", Qos::One);
    assert_eq!(world.hears(1, &puback(Topic::Short(*b"ab"), 2, ACCEPTED)), messages(&[second]));
    assert_eq!(world.drops(), []);
}

/// `mqtt_sn_sub` of `mqtt-sn-12` is such a one: it takes publications of level 1 and is silent.
#[test]
fn a_client_that_never_answers_keeps_nobody_waiting() {
    let mut world = pair();
    for data in [b"1", b"2", b"3"] {
        published(&mut world, data, Qos::One);
    }
    for _ in 0..10 {
        assert_eq!(world.got(1).len(), 1);
        world.waits(s(10));
        world.stays(1);
        world.stays(2);
    }
    // The others follow at once, and so do those to come.
    let others = [given(2, b"2", Qos::One), given(3, b"3", Qos::One)];
    assert_eq!(world.got(1), messages(&others));
    published(&mut world, b"4", Qos::Two);
    assert_eq!(world.got(1), messages(&[given(4, b"4", Qos::Two)]));
    published(&mut world, b"5", Qos::One);
    assert_eq!(world.got(1), messages(&[given(5, b"5", Qos::One)]));
    assert_eq!(world.drops(), [Drop::Refused], "one was not answered and is told of");
    // As soon as it does, it is one like others.
    world.hears(1, &puback(Topic::Id(1), 5, ACCEPTED));
    published(&mut world, b"6", Qos::One);
    published(&mut world, b"7", Qos::One);
    assert_eq!(world.got(1), messages(&[given(6, b"6", Qos::One)]));
}

/// Whoever says nothing has until the end of its keep-alive, and is sent to when it says something.
#[test]
fn a_client_that_is_quiet_is_not_taken_for_one_that_is_silent() {
    let settings = Settings { retry_after: s(1), max_retries: 1, ..settings() };
    let mut world = World::new(settings);
    world.connects(1, "sub", false);
    world.subscribes(1, "ab", Qos::Two);
    world.connects(2, "pub", true);
    published(&mut world, b"1", Qos::One);
    published(&mut world, b"2", Qos::One);
    let first = given(1, b"1", Qos::One);
    assert_eq!(world.got(1).len(), 1);
    world.waits(s(50));
    assert_eq!(world.got(1), vec![again(&first); 3]);
    let pong = message(&Packet::PingResp);
    assert_eq!(world.hears(1, &PINGREQ), [pong, again(&first)]);
    // Now it is known to be there, and not to answer.
    world.waits(s(2));
    assert_eq!(world.got(1), [again(&first), message(&given(2, b"2", Qos::One))]);
    assert_eq!(world.drops(), [Drop::Refused]);
    // It is lost as others are, at the end of what it said.
    world.waits(s(87));
    assert_eq!(world.hears(2, &PINGREQ), messages(&[DISCONNECT]), "as long as the other");
    assert_eq!(world.broker.core().counts().connected, 1);
    world.waits(s(1));
    assert_eq!(world.broker.core().counts().connected, 0);
}

#[test]
fn a_client_that_answers_is_not_taken_for_one_that_does_not() {
    let mut world = pair();
    published(&mut world, b"1", Qos::One);
    world.hears(1, &puback(Topic::Id(1), 1, ACCEPTED));
    published(&mut world, b"2", Qos::One);
    world.got(1);
    for _ in 0..14 {
        world.waits(s(10));
        assert_eq!(world.got(1).len(), 1);
        world.stays(1);
        world.stays(2);
    }
    world.waits(s(10));
    // It is sent away, to connect and get it again.
    assert_eq!(world.got(1), messages(&[DISCONNECT]));
    assert_eq!(world.drops(), []);
    world.connects(1, "sub", false);
    assert_eq!(world.got(1).len(), 1);
}

/// MQTT-SN 1.2 §6.10.
#[test]
fn refusals_of_clients_are_heeded() {
    let mut world = pair();
    let topic = Topic::Id(1);
    published(&mut world, b"1", Qos::Two);
    published(&mut world, b"2", Qos::One);
    world.got(1);
    // It has forgotten the id.
    let register = Packet::Register { topic_id: 1, msg_id: 1, name: "ab" };
    let invalid = puback(topic, 1, Code::INVALID_TOPIC_ID);
    assert_eq!(world.hears(1, &invalid), messages(&[register]));
    assert_eq!(world.hears(1, &regack(1, 9)), [""; 0], "of another one");
    let first = given(1, b"1", Qos::Two);
    assert_eq!(world.hears(1, &regack(1, 1)), messages(&[first]));
    // It has no room, for now.
    assert_eq!(world.hears(1, &puback(topic, 1, Code::CONGESTION)), [""; 0]);
    for _ in 0..2 {
        world.waits(s(29));
        world.stays(1);
        assert_eq!(world.got(1), [""; 0]);
    }
    world.waits(s(2));
    world.stays(2);
    assert_eq!(world.got(1), [again(&first)]);
    // It does not want it.
    let second = given(2, b"2", Qos::One);
    assert_eq!(world.hears(1, &puback(topic, 1, Code::NOT_SUPPORTED)), messages(&[second]));
    // It will not learn the id.
    for number in 2..4 {
        let register = Packet::Register { topic_id: 1, msg_id: number, name: "ab" };
        let invalid = puback(topic, 2, Code::INVALID_TOPIC_ID);
        assert_eq!(world.hears(1, &invalid), messages(&[register]));
        world.hears(1, &regack(1, number));
    }
    let register = Packet::Register { topic_id: 1, msg_id: 4, name: "ab" };
    let invalid = puback(topic, 2, Code::INVALID_TOPIC_ID);
    assert_eq!(world.hears(1, &invalid), messages(&[register]));
    let refused = Packet::RegAck { topic_id: 1, msg_id: 4, code: Code::NOT_SUPPORTED };
    assert_eq!(world.hears(1, &refused), [""; 0]);
    assert_eq!(world.drops(), [Drop::Refused, Drop::Refused]);
    // Of a publication of level 0 nothing is repeated, but the next one is preceded by its id.
    published(&mut world, b"3", Qos::Zero);
    let short = publish(Topic::Short(*b"ab"), 0, b"3", Qos::Zero);
    assert_eq!(world.got(1), messages(&[short]));
}
