use super::*;

#[test]
fn two_links_of_one_name_go_in_opposite_directions() {
    let mut rig = Rig::running();
    let publisher = rig.publisher("same", 0, 10);
    let subscriber = rig.subscriber("same", 1, 10);
    assert_ne!(publisher, subscriber);
    assert_eq!(rig.detached_with(), None);
    rig.transfer(0, 0, true, b"to");
    rig.deliver(subscriber, 1, true, b"from");
    assert!(rig.events.iter().any(|it| matches!(it, Output::Delivery(it) if it.message == "to")));
    assert_eq!(rig.payloads, ["from"]);
}

#[test]
fn a_link_that_is_attached_again_is_taken_over() {
    let mut rig = Rig::running();
    rig.begin(1, 10);
    let before = rig.publisher("name", 0, 10);
    rig.said();
    rig.peer(1, Performative::Attach(Box::new(sender("name", 0))));
    assert_eq!(rig.detached_with(), Some((false, "amqp:link:stolen".to_owned())));
    let said = rig.said();
    let [Output::Detached { link, by: Some(_), .. }, Output::Attached { .. }] = &said[..] else {
        panic!("{said:?}");
    };
    assert_eq!(*link, before);
}

/// As proton sends it: the new attach in front of the old link's last words.
#[test]
fn a_link_that_is_let_go_of_right_behind_is_not_stolen() {
    let mut rig = Rig::running();
    let link = rig.subscriber("name", 0, 10);
    rig.deliver(link, 1, false, b"x");
    rig.said();
    let mut wire = Vec::new();
    let flow = Flow {
        next_incoming_id: Some(1),
        incoming_window: 9,
        next_outgoing_id: 0,
        outgoing_window: 9,
        link: Some(LinkFlow {
            handle: 1,
            delivery_count: Some(0),
            link_credit: Some(5),
            ..LinkFlow::default()
        }),
        echo: false,
        properties: Vec::new(),
    };
    for performative in [
        Performative::Attach(Box::new(Attach::new("name", 1, Role::Receiver))),
        disposition(Role::Receiver, 0, 0, true),
        Performative::Detach(Detach { handle: 0, closed: false, error: None }),
        Performative::Flow(Box::new(flow)),
    ] {
        frame::encode(&mut wire, Kind::Amqp, 0, |out| performative.encode(out));
    }
    rig.bytes(&wire);
    let said = rig.said();
    let [
        Output::Disposition { delivery: 1, .. },
        Output::Detached { error: None, .. },
        Output::Attached { link, .. },
    ] = said[..]
    else {
        panic!("{said:?}");
    };
    // The credit was there before the link was taken.
    rig.accept(link, 0);
    assert_eq!(rig.said(), [Output::Flow { link, credit: 5, drain: false }]);
}

#[test]
fn a_link_is_refused_as_the_standard_has_it() {
    let mut rig = Rig::running();
    let mut attach = Attach::new("name", 7, Role::Receiver);
    attach.source = Some(Source::default());
    let link = rig.attach(attach);
    let error = ErrorInfo::new(condition::NOT_FOUND, "no such thing");
    rig.input(Input::Refuse { link, error: error.clone() });
    let [Performative::Attach(attach), Performative::Detach(detach)] = &rig.sent()[..] else {
        panic!();
    };
    assert_eq!((attach.source.as_ref(), attach.role), (None, Role::Sender));
    assert_eq!((detach.closed, detach.error.as_ref()), (true, Some(&error)));
    // What the peer sent before it read that is passed over; its detach frees the handle.
    rig.grant(7, 0, 5, false);
    let detach = Detach { handle: 7, closed: true, error: None };
    rig.peer(0, Performative::Detach(detach));
    assert_eq!((rig.ended_with(), rig.sent().len()), (None, 0));
    rig.subscriber("name", 7, 5);
    assert_eq!(rig.ended_with(), None);
}

#[test]
fn a_peer_detaches_and_attaches_again() {
    let mut rig = Rig::running();
    let link = rig.subscriber("name", 0, 5);
    rig.said();
    let detach = |closed| Performative::Detach(Detach { handle: 0, closed, error: None });
    rig.sent();
    rig.peer(0, detach(false));
    assert_eq!(rig.sent(), [detach(false)]);
    let by = Some(ExpiryPolicy::LinkDetach);
    assert_eq!(rig.said(), [Output::Detached { link, by, error: None }]);
    // Without a source: it asks for what it had (AMQP 1.0 Part 2 §2.6.3).
    let again = rig.attach(Attach::new("name", 0, Role::Receiver));
    assert_ne!(again, link);
    // Before the application has said a word it is gone again.
    rig.peer(0, detach(true));
    let sent = rig.sent();
    let [Performative::Attach(_), Performative::Detach(_)] = &sent[..] else { panic!("{sent:?}") };
    rig.said();
    rig.accept(again, 0);
    rig.input(Input::Detach { link: again, closed: true, error: None });
    assert_eq!((rig.sent(), rig.said()), (vec![], vec![]));
}

#[test]
fn sessions_end_with_their_links() {
    let mut rig = Rig::running();
    let link = rig.publisher("name", 0, 10);
    rig.said();
    rig.sent();
    rig.peer(0, Performative::End(End::default()));
    let by = Some(ExpiryPolicy::SessionEnd);
    assert_eq!(rig.said(), [Output::Detached { link, by, error: None }]);
    assert_eq!(rig.sent(), [Performative::End(End::default())]);
    rig.begin(0, 5);
    assert!(matches!(rig.sent()[..], [Performative::Begin(_)]));
}

#[test]
fn what_a_peer_must_not_do_ends_what_it_was_done_to() {
    type Act = fn(&mut Rig);
    let cases: [(&str, Act); 13] = [
        ("end amqp:session:unattached-handle", |rig| rig.transfer(9, 0, true, b"")),
        ("end amqp:session:unattached-handle", |rig| rig.grant(9, 0, 1, false)),
        ("end amqp:session:handle-in-use", |rig| {
            rig.peer(0, Performative::Attach(Box::new(sender("other", 0))));
        }),
        ("close amqp:connection:framing-error", |rig| {
            rig.peer(0, Performative::Attach(Box::new(sender("other", MAX_HANDLE + 1))));
        }),
        ("end amqp:resource-limit-exceeded", |rig| {
            let name = "n".repeat(MAX_NAME_BYTES + 1);
            rig.peer(0, Performative::Attach(Box::new(sender(&name, 3))));
        }),
        ("close amqp:connection:framing-error", |rig| rig.begin(MAX_CHANNEL + 1, 1)),
        ("close amqp:not-allowed", |rig| rig.begin(0, 1)),
        ("close amqp:illegal-state", |rig| rig.peer(7, Performative::End(End::default()))),
        ("close amqp:illegal-state", |rig| {
            rig.peer(0, Performative::Open(Box::new(Open::new("again"))));
        }),
        ("detach amqp:link:transfer-limit-exceeded", |rig| {
            (0..3).for_each(|id| rig.transfer(0, id, false, b"x"));
        }),
        ("end amqp:not-allowed", |rig| {
            rig.subscriber("sub", 1, 5);
            rig.transfer(1, 0, true, b"x");
        }),
        ("end amqp:invalid-field", |rig| {
            rig.peer(0, Performative::Transfer(Box::default()));
        }),
        ("end amqp:invalid-field", |rig| {
            rig.transfer(0, 5, false, b"x");
            rig.transfer(0, 5, false, b"x");
        }),
    ];
    for (expected, act) in cases {
        let mut rig = Rig::running();
        rig.publisher("pub", 0, 2);
        act(&mut rig);
        let closed = rig.closed_with().map(|it| format!("close {it}"));
        let ended = rig.ended_with().map(|it| format!("end {it}"));
        let detached = rig.detached_with().map(|(_, it)| format!("detach {it}"));
        assert_eq!(closed.or(ended).or(detached).as_deref(), Some(expected));
        // What was under way is passed over.
        if expected.starts_with("end") {
            rig.transfer(0, 9, true, b"late");
            rig.peer(0, Performative::End(End::default()));
            rig.begin(0, 5);
            assert_eq!(rig.closed_with(), None, "{expected}");
        }
    }
}

#[test]
fn a_frame_that_the_peer_does_not_take_is_not_sent() {
    let mut rig = Rig::running_with(&Open { max_frame_size: 512, ..Open::new("client") });
    let link = rig.attach(sender(&"n".repeat(600), 0));
    rig.accept(link, 1);
    assert_eq!(rig.closed_with().as_deref(), Some("amqp:frame-size-too-small"));
}
