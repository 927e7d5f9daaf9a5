//! How long requests wait for the link, and which go where too many do.

use proto::control::Expires;

use super::*;

const FIRST: CarrierId = CarrierId(0);

/// A relay of an edge whose requests are of one service, handled so.
fn edge(handling: Handling, max_waiting: usize) -> Relay {
    let encoding = Encoding::of("identity").unwrap();
    let services = vec![Service {
        name: "reports".to_owned(),
        objective: decide::policy::Objective::Time,
        encodings: None,
        infoset: None,
    }];
    let handling = vec![handling];
    let config = Config { encoding, services, handling, max_waiting, ..Config::new(Role::Edge, 1) };
    let mut relay = Relay::new(config);
    relay.handle_input(ms(0), Input::Wake);
    drain(&mut relay);
    relay
}

/// A client asks for a path; what comes of it.
fn ask(
    relay: &mut Relay,
    now: Duration,
    client: &str,
    (path, fields): (&str, &[(&str, &str)]),
) -> (ExchangeId, Vec<Output>) {
    let exchange = relay.next_exchange();
    let Head::Request(mut request) = request("GET", fields) else { panic!("not a request") };
    request.path = path.to_owned().into();
    let client = Client { name: client.to_owned(), ..Client::default() };
    let from = Known { service: Some(0), client: Some(client), ..Known::default() };
    relay.handle_input(now, known(exchange, Head::Request(request), true, from));
    (exchange, drain(relay))
}

/// The causes with which exchanges ended for their clients.
fn ended(outputs: &[Output]) -> Vec<(ExchangeId, CauseKind)> {
    let abort = |output: &Output| match output {
        Output::Abort { exchange, cause, .. } => Some((*exchange, cause.kind)),
        _ => None,
    };
    outputs.iter().filter_map(abort).collect()
}

fn within(seconds: u64) -> Handling {
    Handling { lifetime: Some(Duration::from_secs(seconds)), ..Handling::default() }
}

#[test]
fn what_has_not_left_in_time_never_leaves() {
    let mut relay = edge(within(2), usize::MAX);
    let (exchange, _) = ask(&mut relay, ms(0), "a", ("/", &[]));
    relay.handle_input(ms(1999), Input::Wake);
    assert_eq!(ended(&drain(&mut relay)), []);
    relay.handle_input(ms(2000), Input::Wake);
    assert_eq!(ended(&drain(&mut relay)), [(exchange, CauseKind::Expired)]);
    // The link comes up, and there is nothing for it.
    let (mut peer, outputs) = connect_to(&mut relay, ms(2500), FIRST, Peer::new(Role::Gateway, 9));
    let parts = peer.takes(&outputs);
    assert!(!parts.iter().any(|part| matches!(part, Part::Head(_))), "{parts:?}");
}

#[test]
fn the_sooner_of_what_client_and_operator_say_counts_for_what_has_not_left() {
    for (lifetime, prefer, due) in [
        (None, "wait=3", Some(3)),
        (Some(2), "wait=3", Some(2)),
        (Some(5), "respond-async, WAIT=\"3\"; x=1", Some(3)),
        (None, "wait=0", None),
        (None, "wait", None),
        (None, "wait=-1, wait=3", None),
        (None, "handling=lenient", None),
    ] {
        let handling = lifetime.map_or_else(Handling::default, within);
        let mut relay = edge(handling, usize::MAX);
        ask(&mut relay, ms(0), "a", ("/", &[("prefer", prefer)]));
        let ends = (1..8).find(|second| {
            relay.handle_input(Duration::from_secs(*second), Input::Wake);
            !ended(&drain(&mut relay)).is_empty()
        });
        assert_eq!(ends, due, "{lifetime:?} {prefer}");
    }
}

#[test]
fn an_answer_that_does_not_come_in_time_is_given_up_and_one_that_has_begun_is_not() {
    for begins in [false, true] {
        let mut relay = edge(within(2), usize::MAX);
        let gateway = Peer::new(Role::Gateway, 9);
        let (mut peer, outputs) = connect_to(&mut relay, ms(0), FIRST, gateway);
        peer.takes(&outputs);
        relay.handle_input(ms(50), Input::Sent { carrier: FIRST, bytes: usize::MAX });
        drain(&mut relay);
        let (exchange, outputs) = ask(&mut relay, ms(100), "a", ("/", &[]));
        let parts = peer.takes(&outputs);
        let expires = Expires { exchange: exchange.number, within: Duration::from_secs(2) }.part();
        assert!(parts.contains(&expires), "{parts:?}");
        if begins {
            peer.sends(&mut relay, ms(200), FIRST, &[response_frame(exchange.number, false)]);
        }
        relay.handle_input(ms(2100), Input::Wake);
        let outputs = drain(&mut relay);
        let parts = peer.takes(&outputs);
        let code = CauseKind::Expired.to_wire();
        let gives_up =
            parts.iter().any(|part| matches!(part, Part::Abort(one) if one.code == code));
        assert_eq!(gives_up, !begins, "{parts:?}");
        assert_eq!(ended(&outputs).len(), usize::from(!begins));
    }
}

#[test]
fn a_gateway_drops_an_answer_of_which_nothing_left_in_time() {
    for begins in [false, true] {
        let encoding = Encoding::of("identity").unwrap();
        let (mut relay, mut peer) =
            connected(Config { encoding, ..Config::new(Role::Gateway, 9) }, 1);
        let Head::Request(request) = request("GET", &[]) else { panic!("not a request") };
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        let (codec, window_log, end) = (0, 0, true);
        let head = HeadPart { exchange: 5, codec, window_log, end, head: bytes.into() };
        let expires = Expires { exchange: 5, within: Duration::from_millis(700) }.part();
        peer.sends(&mut relay, ms(100), FIRST, &[Part::Head(head), expires]);
        let exchange = ExchangeId { instance: 1, number: 5 };
        if begins {
            let answer = Head::Response(bhttp::Response { status: 200, fields: Vec::new() });
            relay.handle_input(ms(700), local(exchange, answer, false));
            let bytes = Bytes::from(vec![7; 70_000]);
            relay.handle_input(ms(701), Input::Data { exchange, bytes });
            let parts = peer.takes(&drain(&mut relay));
            assert!(parts.iter().any(|part| matches!(part, Part::Head(_))), "{parts:?}");
        }
        relay.handle_input(ms(800), Input::Wake);
        let outputs = drain(&mut relay);
        let expired: &[_] = if begins { &[] } else { &[(exchange, CauseKind::Expired)] };
        assert_eq!(ended(&outputs), expired);
    }
}

#[test]
fn of_too_many_the_new_one_is_refused_or_the_oldest_goes() {
    let handling = |overflow| Handling { overflow, ..Handling::default() };
    let mut relay = edge(handling(Overflow::Refuse), 2);
    let (_, _) = ask(&mut relay, ms(0), "a", ("/1", &[]));
    let (_, _) = ask(&mut relay, ms(1), "a", ("/2", &[]));
    let (third, outputs) = ask(&mut relay, ms(2), "a", ("/3", &[]));
    assert_eq!(ended(&outputs), [(third, CauseKind::Limit)]);
    // Others have a queue of their own.
    let (_, outputs) = ask(&mut relay, ms(3), "a", ("/4", &[("priority", "u=6")]));
    assert_eq!(ended(&outputs), []);

    let mut relay = edge(handling(Overflow::Oldest), 3);
    let [first, second, _] =
        ["/1", "/2", "/3"].map(|path| ask(&mut relay, ms(0), "a", (path, &[])).0);
    let (third, outputs) = ask(&mut relay, ms(3), "b", ("/4", &[]));
    assert_eq!(ended(&outputs), [(first, CauseKind::Limit)], "the one who has most gives way");
    let (_, outputs) = ask(&mut relay, ms(4), "a", ("/5", &[]));
    assert_eq!(ended(&outputs), [(second, CauseKind::Limit)], "and drives out no other");
    let (_, outputs) = ask(&mut relay, ms(5), "b", ("/6", &[]));
    assert_eq!(ended(&outputs), [(third, CauseKind::Limit)], "who would have more then");
}

#[test]
fn a_newer_request_takes_the_place_of_one_that_asks_the_same() {
    let handling = Handling { overflow: Overflow::Superseded, ..Handling::default() };
    let mut relay = edge(handling, usize::MAX);
    let (first, _) = ask(&mut relay, ms(0), "a", ("/position", &[]));
    let (_, outputs) = ask(&mut relay, ms(1), "b", ("/position", &[]));
    assert_eq!(ended(&outputs), [], "another client's");
    let (_, outputs) = ask(&mut relay, ms(2), "a", ("/other", &[]));
    assert_eq!(ended(&outputs), []);
    let (_, outputs) = ask(&mut relay, ms(3), "a", ("/position", &[]));
    assert_eq!(ended(&outputs), [(first, CauseKind::Superseded)]);
    // What has left is not called back.
    let (mut peer, outputs) = connect_to(&mut relay, ms(4), FIRST, Peer::new(Role::Gateway, 9));
    let heads = peer.takes(&outputs).iter().filter(|part| matches!(part, Part::Head(_))).count();
    assert_eq!(heads, 3);
    let (_, outputs) = ask(&mut relay, ms(5), "a", ("/position", &[]));
    assert_eq!(ended(&outputs), []);
}

#[test]
fn a_clients_own_patience_ends_nothing_that_has_left() {
    let mut relay = edge(Handling::default(), usize::MAX);
    let gateway = Peer::new(Role::Gateway, 9);
    let (mut peer, outputs) = connect_to(&mut relay, ms(0), FIRST, gateway);
    peer.takes(&outputs);
    relay.handle_input(ms(50), Input::Sent { carrier: FIRST, bytes: usize::MAX });
    drain(&mut relay);
    let fields = [("prefer", "respond-async, wait=2")];
    let (_, outputs) = ask(&mut relay, ms(100), "a", ("/job", &fields));
    let parts = peer.takes(&outputs);
    assert!(matches!(&parts[..], [Part::Head(_)]), "and the gateway hears of no end: {parts:?}");
    relay.handle_input(ms(9000), Input::Wake);
    assert_eq!(ended(&drain(&mut relay)), []);
}

#[test]
fn nothing_goes_for_one_that_has_no_place_and_one_superseded_leaves_its_own() {
    let handling = Handling { overflow: Overflow::Superseded, ..Handling::default() };
    let mut relay = edge(handling, usize::MAX);
    let most = relay.transfer.core.config.max_exchanges;
    // As many as one client may have, of which one reports its position.
    let (position, _) = ask(&mut relay, ms(0), "a", ("/position", &[]));
    let mut number = 0;
    loop {
        let path = format!("/{number}");
        let (id, outputs) = ask(&mut relay, ms(1), "a", (&path, &[]));
        if ended(&outputs) == [(id, CauseKind::Limit)] {
            break;
        }
        number += 1;
        assert!(number <= most, "a client has all places");
    }
    let (_, outputs) = ask(&mut relay, ms(2), "a", ("/position", &[]));
    assert_eq!(ended(&outputs), [(position, CauseKind::Superseded)]);
}

#[test]
fn what_could_not_be_back_in_time_does_not_leave() {
    let mut relay = edge(within(2), usize::MAX);
    let gateway = Peer::new(Role::Gateway, 9);
    let (mut peer, outputs) = connect_to(&mut relay, ms(0), FIRST, gateway);
    peer.takes(&outputs);
    relay.handle_input(ms(50), Input::Sent { carrier: FIRST, bytes: usize::MAX });
    let long = Duration::from_secs(3);
    let transport = decide::estimate::Transport { rtt: long, min_rtt: long, ..Default::default() };
    relay.handle_input(ms(60), Input::Transport { carrier: FIRST, transport });
    drain(&mut relay);
    let (exchange, outputs) = ask(&mut relay, ms(100), "a", ("/", &[]));
    assert_eq!(peer.takes(&outputs), []);
    relay.handle_input(ms(100), Input::Wake);
    assert_eq!(ended(&drain(&mut relay)), [(exchange, CauseKind::Expired)]);
}
