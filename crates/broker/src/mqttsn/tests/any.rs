//! Whatever comes, in any order.

use proptest::prelude::*;

use super::*;

/// Bodies of messages that have a meaning often enough.
fn any_message() -> impl Strategy<Value = Bytes> {
    let body = proptest::collection::vec(prop_oneof![0..6_u8, any::<u8>(), Just(b'a')], 0..8);
    let named = prop_oneof![
        Just(message(&connect("a", true, false))),
        Just(message(&connect("a", false, true))),
        Just(message(&connect("b", false, false))),
        Just(message(&will_topic("a/b"))),
        Just(message(&Packet::WillMsg { message: b"x" })),
        Just(message(&Packet::Register { topic_id: 0, msg_id: 1, name: "a/b" })),
        Just(message(&Packet::PingReq { client_id: "a" })),
        Just(message(&Packet::Disconnect { duration_s: Some(5) })),
        Just(message(&Packet::Subscribe {
            dup: false,
            qos: Qos::Two,
            msg_id: 1,
            filter: Filter::Name("#"),
        })),
        (1..4_u16, 0..4_u8, 0..4_u16).prop_map(|(id, qos, msg_id)| {
            let qos = [Qos::MinusOne, Qos::Zero, Qos::One, Qos::Two][usize::from(qos)];
            message(&publish(Topic::Id(id), msg_id, b"x", qos))
        }),
    ];
    prop_oneof![
        (0..0x1e_u8, body).prop_map(|(msg_type, body)| {
            let len = u8::try_from(body.len() + 2).unwrap();
            [&[len, msg_type], &body[..]].concat().into()
        }),
        named,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Nothing panics, strangers get no more than an answer, and time always goes on.
    #[test]
    fn no_datagrams_make_it_panic(
        durable in any::<bool>(),
        script in proptest::collection::vec((any_message(), 0..4_u16, 0..30_u64, 0..3_u8), 0..100)
    ) {
        let tight = Settings { max_clients: 3, max_topics: 3, ..settings() };
        let mut world = World::with(tight, durable);
        for (bytes, port, wait_s, how) in script {
            let before = world.broker.core().counts().connected;
            match how {
                0 => world.waits(s(wait_s)),
                1 => world.hears_at(ONE_WAY, port, bytes.clone()),
                _ => world.hears_at(LISTENER, port, bytes.clone()),
            }
            prop_assert!(world.wake_at.is_none_or(|at| at > world.now) || how != 0);
            prop_assert!(world.sessions() <= 3 + 2);
            if how > 0 && before + world.broker.core().counts().connected == 0 {
                prop_assert!(world.sent.len() <= 1);
                let longest = bytes.len().max(3);
                prop_assert!(world.sent.iter().all(|(_, _, sent)| sent.len() <= longest));
            }
            world.sent.clear();
            world.events.clear();
        }
    }
}
