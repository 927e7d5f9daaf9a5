use proptest::prelude::*;

use super::*;

fn outcome(link: LinkId, delivery: u32) -> Input {
    Input::Outcome { link, delivery, state: DeliveryState::Accepted }
}

#[test]
fn the_peer_sends_and_hears_what_became_of_it() {
    let mut rig = Rig::running();
    let link = rig.publisher("pub", 0, 10);
    rig.said();
    rig.transfer(0, 3, false, b"message");
    let [Output::Delivery(delivery)] = &rig.said()[..] else { panic!() };
    assert_eq!((delivery.delivery, delivery.settled, delivery.is_second), (3, false, false));
    assert_eq!(delivery.message, "message");
    rig.sent();
    rig.input(outcome(link, 3));
    let settled = Performative::Disposition(Disposition {
        role: Role::Receiver,
        first: 3,
        last: None,
        settled: true,
        state: Some(DeliveryState::Accepted),
        batchable: false,
    });
    assert_eq!(rig.sent(), [settled]);
    // It is settled, and that again is nothing.
    rig.input(outcome(link, 3));
    assert_eq!((rig.sent().len(), rig.connection.counts().misused), (0, 1));
    rig.transfer(0, 4, true, b"settled");
    assert!(matches!(&rig.said()[..], [Output::Delivery(it)] if it.settled));
}

#[test]
fn a_receiver_that_settles_second_waits_for_the_peer() {
    let mut rig = Rig::running();
    let mut attach = sender("pub", 0);
    attach.rcv_settle_mode = crate::amqp::performative::ReceiverSettleMode::Second;
    let link = rig.attach(attach);
    rig.accept(link, 2);
    rig.said();
    (0..2).for_each(|id| rig.transfer(0, id, false, b"x"));
    assert!(matches!(&rig.said()[..], [Output::Delivery(it), _] if it.is_second));
    rig.sent();
    (0..2).for_each(|id| rig.input(outcome(link, id)));
    let sent = rig.sent();
    let [Performative::Disposition(it), _] = &sent[..] else { panic!("{sent:?}") };
    assert!(!it.settled && it.state == Some(DeliveryState::Accepted));
    rig.peer(0, disposition(Role::Sender, 0, 1, true));
    let settled = [0, 1].map(|delivery| Output::Settled { link, delivery });
    assert_eq!(rig.said(), settled);
    // Credit comes back.
    let credits: Vec<_> = rig
        .sent()
        .iter()
        .filter_map(|it| match it {
            Performative::Flow(flow) => flow.link.as_ref()?.link_credit,
            _ => None,
        })
        .collect();
    assert_eq!(credits, [1, 2]);
}

#[test]
fn credit_follows_what_the_application_has_settled() {
    let mut rig = Rig::running();
    let link = rig.publisher("pub", 0, 4);
    let credit = |rig: &mut Rig| {
        rig.sent().iter().rev().find_map(|it| match it {
            Performative::Flow(flow) => flow.link.as_ref()?.link_credit,
            _ => None,
        })
    };
    assert_eq!(credit(&mut rig), Some(4));
    (0..4).for_each(|id| rig.transfer(0, id, false, b"x"));
    assert_eq!(credit(&mut rig), None);
    rig.input(outcome(link, 0));
    assert_eq!(credit(&mut rig), None);
    rig.input(outcome(link, 1));
    assert_eq!(credit(&mut rig), Some(2));
    // What is settled from the beginning needs no word of the application.
    rig.transfer(0, 4, true, b"x");
    rig.transfer(0, 5, true, b"x");
    assert_eq!(credit(&mut rig), Some(2));
    rig.input(Input::Window { link, window: 0 });
    assert_eq!(credit(&mut rig), Some(0));
}

#[test]
fn long_messages_come_in_parts_and_go_in_parts() {
    let mut rig = Rig::running_with(&Open { max_frame_size: 512, ..Open::new("client") });
    let link = rig.publisher("pub", 0, 10);
    rig.said();
    let message: Vec<u8> = (0..2000_u32).map(|it| it.to_le_bytes()[0]).collect();
    for (at, part) in message.chunks(700).enumerate() {
        let mut transfer = if at == 0 {
            first(0, 1, false)
        } else {
            Transfer { handle: 0, ..Transfer::default() }
        };
        transfer.more = at < 2;
        rig.peer_with(0, Performative::Transfer(Box::new(transfer)), part);
    }
    assert!(matches!(&rig.said()[..], [Output::Delivery(it)] if it.message == message));
    let sub = rig.subscriber("sub", 1, 10);
    rig.sent();
    rig.deliver(sub, 1, false, &message);
    let transfers = rig.transfers();
    assert_eq!(transfers.len(), 5);
    assert!(transfers.iter().take(4).all(|it| it.more) && !transfers[4].more);
    assert_eq!(rig.payloads.concat(), message);
    assert_eq!((link, rig.connection.held_bytes()), (LinkId(0), 0));
}

#[test]
fn messages_that_are_too_long_or_never_end_are_refused() {
    let mut rig = Rig::running();
    rig.publisher("pub", 0, 10);
    let part = vec![7; 60_000];
    for at in 0..20 {
        let mut transfer = first(0, 0, false);
        transfer.more = true;
        if at > 0 {
            transfer.delivery_tag = None;
        }
        rig.peer_with(0, Performative::Transfer(Box::new(transfer)), &part);
    }
    let expected = (true, "amqp:link:message-size-exceeded".to_owned());
    assert_eq!(rig.detached_with(), Some(expected));
    assert_eq!(rig.connection.held_bytes(), 0);
    // Many that never end.
    let mut rig = Rig::running();
    for handle in 0..80 {
        rig.publisher(&format!("pub{handle}"), handle, 10);
        for at in 0..17 {
            let mut transfer = first(handle, handle, false);
            transfer.more = true;
            transfer.delivery_tag = transfer.delivery_tag.filter(|_| at == 0);
            rig.peer_with(0, Performative::Transfer(Box::new(transfer)), &part);
        }
    }
    assert!(rig.connection.held_bytes() <= MAX_PARTIAL_BYTES + part.len());
    assert_eq!(rig.detached_with().unwrap().1, "amqp:resource-limit-exceeded");
}

#[test]
fn what_is_aborted_or_resumed_is_passed_over() {
    let mut rig = Rig::running();
    rig.publisher("pub", 0, 10);
    rig.said();
    let begun = Transfer { more: true, ..first(0, 0, false) };
    rig.peer_with(0, Performative::Transfer(Box::new(begun)), b"begin");
    let aborted = Transfer { aborted: true, ..Transfer::default() };
    rig.peer_with(0, Performative::Transfer(Box::new(aborted)), b"rest");
    let resumed = Transfer { resume: true, ..first(0, 1, false) };
    rig.peer_with(0, Performative::Transfer(Box::new(resumed)), b"again");
    assert_eq!(rig.said(), []);
    let counts = rig.connection.counts();
    assert_eq!((counts.aborted, counts.resumed), (1, 1));
    rig.transfer(0, 2, false, b"new");
    assert!(matches!(&rig.said()[..], [Output::Delivery(it)] if it.message == "new"));
}

#[test]
fn the_peer_gets_what_it_has_credit_for() {
    let mut rig = Rig::running();
    let link = rig.subscriber("sub", 0, 2);
    assert_eq!(rig.said().last(), Some(&Output::Flow { link, credit: 2, drain: false }));
    rig.sent();
    (0..3).for_each(|delivery| rig.deliver(link, delivery, false, b"x"));
    assert_eq!(rig.transfers().len(), 2);
    let state = Some(DeliveryState::Released);
    let back = Output::Disposition { link, delivery: 2, state, settled: true };
    assert_eq!(rig.said(), [back]);
    // AMQP 1.0 Part 2 §2.6.7: what it grants counts from what it has seen.
    rig.grant(0, 1, 2, false);
    assert_eq!(rig.said(), [Output::Flow { link, credit: 1, drain: false }]);
    rig.peer(0, disposition(Role::Receiver, 0, 1, true));
    let state = || Some(DeliveryState::Accepted);
    let all = [0, 1].map(|delivery| Output::Disposition {
        link,
        delivery,
        state: state(),
        settled: true,
    });
    assert_eq!(rig.said(), all);
    // Both sides may settle, the peer first saying what became of it.
    rig.deliver(link, 7, false, b"y");
    rig.peer(0, disposition(Role::Receiver, 2, 2, false));
    let said = Output::Disposition { link, delivery: 7, state: state(), settled: false };
    assert_eq!(rig.said(), [said]);
    rig.sent();
    rig.input(Input::Settle { link, delivery: 7 });
    assert!(matches!(&rig.sent()[..], [Performative::Disposition(it)]
        if it.settled && it.role == Role::Sender && it.first == 2));
}

#[test]
fn the_window_of_the_session_holds_back() {
    let mut rig = Rig::running();
    let link = rig.subscriber("sub", 0, 100);
    rig.flow(1, None);
    rig.sent();
    (0..5).for_each(|delivery| rig.deliver(link, delivery, true, b"x"));
    assert_eq!(rig.transfers().len(), 1);
    assert!(rig.connection.held_bytes() > 0);
    rig.flow(2, None);
    assert_eq!(rig.transfers().len(), 2);
    rig.flow(u32::MAX, None);
    assert_eq!(rig.transfers().len(), 2);
    // Links take their places in order.
    let other = rig.subscriber("other", 1, 100);
    rig.flow(0, None);
    (10..13).for_each(|delivery| rig.deliver(link, delivery, true, b"x"));
    (10..13).for_each(|delivery| rig.deliver(other, delivery, true, b"x"));
    rig.sent();
    rig.flow(4, None);
    let handles: Vec<_> = rig.transfers().iter().map(|it| it.handle).collect();
    assert_eq!(handles, [0, 1, 0, 1]);
}

#[test]
fn a_link_is_drained() {
    let mut rig = Rig::running();
    let link = rig.subscriber("sub", 0, 0);
    rig.said();
    rig.grant(0, 0, 10, true);
    assert_eq!(rig.said(), [Output::Flow { link, credit: 10, drain: true }]);
    rig.sent();
    rig.deliver(link, 0, true, b"x");
    rig.input(Input::Drained { link });
    let sent = rig.sent();
    let [Performative::Transfer(_), Performative::Flow(flow)] = &sent[..] else { panic!() };
    let flow = flow.link.as_ref().unwrap();
    assert_eq!((flow.delivery_count, flow.link_credit, flow.drain), (Some(10), Some(0), true));
    rig.grant(0, 10, 1, false);
    rig.deliver(link, 1, true, b"y");
    assert_eq!(rig.transfers().len(), 1);
}

#[test]
fn an_echo_is_answered() {
    let mut rig = Rig::running();
    rig.subscriber("sub", 0, 3);
    rig.sent();
    let flow = Flow {
        next_incoming_id: Some(0),
        incoming_window: 9,
        next_outgoing_id: 0,
        outgoing_window: 9,
        link: None,
        echo: true,
        properties: Vec::new(),
    };
    rig.peer(0, Performative::Flow(Box::new(flow)));
    assert!(matches!(&rig.sent()[..], [Performative::Flow(it)] if it.link.is_none() && !it.echo));
}

#[test]
fn the_incoming_window_is_kept() {
    let mut rig = Rig::running();
    rig.publisher("pub", 0, 1_000_000);
    let is_flow = |it: &Performative| matches!(it, Performative::Flow(it) if it.link.is_none());
    rig.sent();
    for id in 0..3000 {
        rig.transfer(0, id, true, b"x");
    }
    assert_eq!(rig.ended_with(), None);
    assert!(rig.sent().iter().any(is_flow));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever comes, nothing panics and memory stays bounded.
    #[test]
    fn any_frames_are_taken_or_refused(
        frames in prop::collection::vec(
            (0_u16..3, 0x10_u8..0x19, prop::collection::vec(any::<u8>(), 0..30)), 1..20),
        raw in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut rig = Rig::running();
        let publisher = rig.publisher("pub", 0, 3);
        rig.subscriber("sub", 1, 3);
        for (channel, code, fields) in frames {
            let mut wire = Vec::new();
            frame::encode(&mut wire, Kind::Amqp, channel, |out| {
                out.extend_from_slice(&[0, 0x53, code, 0xc0]);
                out.push(u8::try_from(fields.len() + 1).unwrap());
                out.push(u8::try_from(fields.len()).unwrap());
                // Single bytes that are values: null, true, false, zeros.
                out.extend(fields.iter().map(|byte| 0x40 + byte % 5));
            });
            rig.bytes(&wire);
            rig.input(outcome(publisher, 0));
        }
        rig.bytes(&raw);
        prop_assert!(rig.connection.held_bytes() < 1 << 20);
    }
}

#[test]
fn a_message_counts_once_towards_what_is_not_whole() {
    let settings = Settings { max_message_bytes: 256 << 20, ..settings() };
    let mut rig = Rig::running_by(settings, &Open::new("client"));
    rig.publisher("pub", 0, 10);
    // No more is announced than comes.
    let announced = rig.sent().iter().find_map(|it| match it {
        Performative::Attach(attach) => attach.max_message_size,
        _ => None,
    });
    assert_eq!(announced, u64::try_from(MAX_PARTIAL_BYTES).ok());
    rig.said();
    let (part, parts) = (vec![7; 60 << 10], 700);
    for at in 0..parts {
        let mut transfer = first(0, 0, false);
        transfer.more = at + 1 < parts;
        transfer.delivery_tag = transfer.delivery_tag.filter(|_| at == 0);
        rig.peer_with(0, Performative::Transfer(Box::new(transfer)), &part);
    }
    let said = rig.said();
    let [Output::Delivery(delivery)] = &said[..] else { panic!("{:?}", rig.detached_with()) };
    assert_eq!(delivery.message.len(), parts * part.len());
}

#[test]
fn a_credit_of_all_numbers_is_one() {
    let mut rig = Rig::running();
    let link = rig.subscriber("sub", 1, 10);
    rig.deliver(link, 1, true, b"x");
    rig.said();
    rig.grant(1, 0, u32::MAX, false);
    let credits: Vec<_> = rig
        .said()
        .into_iter()
        .filter_map(|output| match output {
            Output::Flow { credit, .. } => Some(credit),
            _ => None,
        })
        .collect();
    assert_eq!(credits, [u32::MAX - 1], "one of them is under way");
}
