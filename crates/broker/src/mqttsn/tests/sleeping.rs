//! Clients that sleep (MQTT-SN 1.2 §6.14).

use super::*;

const SLEEP: Packet<'static> = Packet::Disconnect { duration_s: Some(600) };
const AWAKE: Packet<'static> = Packet::PingReq { client_id: "sub" };

fn asleep() -> World {
    let mut world = World::new(settings());
    world.connects(1, "sub", true);
    world.subscribes(1, "ab", Qos::Two);
    world.hears(
        1,
        &Packet::Subscribe { dup: false, qos: Qos::One, msg_id: 5, filter: Filter::Short(*b"cd") },
    );
    world.connects(2, "pub", true);
    assert_eq!(world.hears(1, &SLEEP), messages(&[DISCONNECT]));
    world
}

fn given(msg_id: u16, data: &'static [u8], qos: Qos) -> Packet<'static> {
    publish(Topic::Id(1), msg_id, data, qos)
}

#[test]
fn what_waited_comes_once_when_the_client_asks() {
    let mut world = asleep();
    let topic = Topic::Short(*b"ab");
    for (data, qos) in [(b"0", Qos::Zero), (b"1", Qos::One), (b"2", Qos::Two)] {
        world.hears(2, &publish(topic, 7, data, qos));
    }
    assert_eq!(world.got(1), [""; 0]);
    assert_eq!(world.hears(1, &PINGREQ), messages(&[Packet::PingResp]), "only a sign of life");
    let first = messages(&[given(0, b"0", Qos::Zero), given(1, b"1", Qos::One)]);
    assert_eq!(world.hears(1, &AWAKE), first);
    assert_eq!(world.hears(1, &AWAKE), [""; 0], "it is being answered");
    let second = messages(&[given(2, b"2", Qos::Two)]);
    assert_eq!(world.hears(1, &puback(Topic::Id(1), 1, ACCEPTED)), second);
    // What comes now is for the next time.
    world.hears(2, &publish(topic, 8, b"3", Qos::One));
    let released = messages(&[Packet::PubRel { msg_id: 2 }]);
    assert_eq!(world.hears(1, &Packet::PubRec { msg_id: 2 }), released);
    let end = messages(&[Packet::PingResp]);
    assert_eq!(world.hears(1, &Packet::PubComp { msg_id: 2 }), end);
    assert_eq!(world.hears(1, &AWAKE), messages(&[given(3, b"3", Qos::One)]));
    assert_eq!(world.hears(1, &puback(Topic::Id(1), 3, ACCEPTED)), end);
    assert_eq!(world.hears(1, &AWAKE), end);
    // Awake for good.
    world.connects(1, "sub", false);
    world.hears(2, &publish(Topic::Short(*b"cd"), 0, b"4", Qos::Zero));
    assert_eq!(world.got(1), messages(&[publish(Topic::Short(*b"cd"), 0, b"4", Qos::Zero)]));
}

#[test]
fn what_was_under_way_is_sent_again_after_sleep() {
    let mut world = World::new(settings());
    world.connects(1, "sub", true);
    world.subscribes(1, "ab", Qos::Two);
    world.connects(2, "pub", true);
    world.hears(2, &publish(Topic::Short(*b"ab"), 7, b"2", Qos::Two));
    let second = given(1, b"2", Qos::Two);
    assert_eq!(world.got(1), messages(&[second]));
    world.hears(1, &SLEEP);
    world.waits(s(100));
    assert_eq!(world.got(1), [""; 0], "nobody listens");
    assert_eq!(world.hears(1, &AWAKE), [again(&second)]);
    // Its answer is lost, and the client is asleep again: nothing is lost by that.
    world.waits(s(600));
    assert_eq!(world.got(1).len(), 4);
    assert_eq!(world.hears(1, &AWAKE), [again(&second)]);
    world.hears(1, &Packet::PubRec { msg_id: 1 });
    let end = messages(&[Packet::PingResp]);
    assert_eq!(world.hears(1, &Packet::PubComp { msg_id: 1 }), end);
}

#[test]
fn who_sleeps_too_long_is_lost() {
    let mut world = World::new(settings());
    world.connects(2, "watcher", true);
    world.subscribes(2, "gone", Qos::Zero);
    world.hears(1, &connect("sub", false, true));
    world.hears(1, &will_topic("gone"));
    world.hears(1, &Packet::WillMsg { message: b"x" });
    world.hears(1, &SLEEP);
    let pings = |world: &mut World, times| {
        for _ in 0..times {
            world.waits(s(50));
            world.stays(2);
        }
        world.got(2).len()
    };
    assert_eq!(pings(&mut world, 17), 0);
    assert_eq!(world.hears(1, &AWAKE), messages(&[Packet::PingResp]));
    assert_eq!(pings(&mut world, 17), 0, "it has shown that it is there");
    assert_eq!(pings(&mut world, 2), 1, "its will");
    assert_eq!(world.hears(1, &AWAKE), messages(&[DISCONNECT]));
    // One that wakes up from sleep for good is not lost.
    world.connects(1, "sub", false);
    world.hears(1, &SLEEP);
    world.connects(1, "sub", false);
    world.hears(1, &DISCONNECT);
    assert_eq!(world.got(2), [""; 0]);
    assert_eq!(world.broker.core().counts().connected, 1);
}

#[test]
fn a_sleeper_that_leaves_is_gone() {
    let mut world = asleep();
    assert_eq!(world.hears(1, &DISCONNECT), messages(&[DISCONNECT]));
    assert_eq!(world.hears(1, &AWAKE), messages(&[DISCONNECT]));
    assert_eq!(world.sessions(), 1);
}

/// What has to be in the store before it leaves comes within one awakening too.
#[test]
fn a_sleeper_waits_for_the_store() {
    let mut world = World::with(settings(), true);
    world.connects(1, "sub", false);
    world.subscribes(1, "ab", Qos::Two);
    world.connects(2, "pub", true);
    world.hears(1, &SLEEP);
    for (msg_id, data) in [(1, b"1"), (2, b"2")] {
        world.hears(2, &publish(Topic::Short(*b"ab"), msg_id, data, Qos::Two));
    }
    world.writes_at_once = false;
    assert_eq!(world.hears(1, &AWAKE), [""; 0]);
    for (msg_id, data) in [(1, b"1"), (2, b"2")] {
        world.write();
        assert_eq!(world.got(1), messages(&[given(msg_id, data, Qos::Two)]));
        assert_eq!(world.hears(1, &Packet::PubRec { msg_id }), [""; 0]);
        world.write();
        assert_eq!(world.got(1), messages(&[Packet::PubRel { msg_id }]));
        let end = world.hears(1, &Packet::PubComp { msg_id });
        let expected: &[Packet<'_>] = if msg_id == 1 { &[] } else { &[Packet::PingResp] };
        assert_eq!(end, messages(expected));
    }
}
