//! What others need is given out in shares.

use super::*;

/// Connects `peer`, an edge of this instance; what the relay wants then.
fn edge_connects(
    relay: &mut Relay,
    carrier: u64,
    peer: &str,
    instance: u64,
) -> (Peer, Vec<Output>) {
    let carrier = CarrierId(carrier);
    relay.handle_input(
        ms(0),
        Input::CarrierUp { carrier, kind: CarrierKind::FIRST, peer: peer.into() },
    );
    let mut edge = Peer::new(Role::Edge, instance);
    let Some(carrier::Output::Bytes(bytes)) = edge.0.poll_output() else { panic!("no HELLO") };
    edge.takes(&drain(relay));
    relay.handle_input(ms(0), Input::Received { carrier, bytes });
    (edge, drain(relay))
}

fn closed(outputs: &[Output]) -> Vec<u64> {
    let carrier = |output: &Output| match output {
        Output::Close { carrier, .. } => Some(carrier.0),
        _ => None,
    };
    outputs.iter().filter_map(carrier).collect()
}

#[test]
fn a_peer_with_many_carriers_gives_one_up_for_another_peer() {
    let config = Config { max_carriers: 4, ..Config::new(Role::Gateway, 9) };
    let mut relay = Relay::new(config);
    let mut greedy = Vec::new();
    for at in 0..4 {
        let (edge, outputs) = edge_connects(&mut relay, at, "greedy", 100 + at);
        assert_eq!(closed(&outputs), []);
        greedy.push(edge);
    }
    // The oldest carries something: the next is idle.
    greedy[0].sends(&mut relay, ms(1), CarrierId(0), &[request_frame(1)]);
    let (_, outputs) = edge_connects(&mut relay, 4, "modest", 1);
    assert_eq!(closed(&outputs), [1]);
    // It does not come back by that.
    greedy[2].sends(&mut relay, ms(1), CarrierId(2), &[request_frame(1)]);
    greedy[3].sends(&mut relay, ms(1), CarrierId(3), &[request_frame(1)]);
    let (_, outputs) = edge_connects(&mut relay, 5, "greedy", 105);
    assert_eq!(closed(&outputs), [5], "nothing that carries goes for one of the same peer");
    let (_, outputs) = edge_connects(&mut relay, 6, "third", 2);
    assert_eq!(closed(&outputs), [3]);
    let left: Vec<u64> = relay.transfer.carriers.keys().map(|id| id.0).collect();
    assert_eq!(left, [0, 2, 4, 6]);
}

#[test]
fn of_peers_with_one_carrier_each_none_is_closed_for_another() {
    let config = Config { max_carriers: 3, ..Config::new(Role::Gateway, 9) };
    let mut relay = Relay::new(config);
    for at in 0..3 {
        edge_connects(&mut relay, at, &format!("edge {at}"), at);
    }
    let (_, outputs) = edge_connects(&mut relay, 3, "edge 3", 3);
    assert_eq!(closed(&outputs), [3]);
    // One that comes back before its old carrier is known to be dead has its place.
    let (_, outputs) = edge_connects(&mut relay, 4, "edge 1", 1);
    assert_eq!(closed(&outputs), [1]);
}

/// A gateway's end that takes as many exchanges as an edge may have.
fn wide_edge(config: Config) -> (Relay, Peer) {
    let mut relay = Relay::new(Config { role: Role::Edge, ..config });
    relay.handle_input(Duration::ZERO, Input::Wake);
    drain(&mut relay);
    let peer = Peer::with(Role::Gateway, 9, 10_000, 1 << 20);
    let (peer, _) = connect_to(&mut relay, Duration::ZERO, CARRIER, peer);
    (relay, peer)
}

fn client_asks(
    relay: &mut Relay,
    now: Duration,
    client: &str,
    method: &str,
) -> (ExchangeId, Vec<Output>) {
    let exchange = relay.next_exchange();
    let end = method != "CONNECT";
    let client = Known { client: Some(client.into()), ..Known::default() };
    relay.handle_input(now, known(exchange, request(method, &[]), end, client));
    (exchange, drain(relay))
}

fn refusal(outputs: &[Output]) -> Option<&Cause> {
    outputs.iter().find_map(|output| match output {
        Output::Abort { cause, .. } => Some(cause),
        _ => None,
    })
}

#[test]
fn a_client_leaves_room_for_another() {
    let (mut relay, _) = wide_edge(Config { max_exchanges: 64, ..Config::new(Role::Edge, 1) });
    let mut open = 0;
    let cause = loop {
        let (_, outputs) = client_asks(&mut relay, ms(0), "192.0.2.1", "GET");
        match refusal(&outputs) {
            Some(cause) => break cause.clone(),
            None => open += 1,
        }
    };
    assert_eq!((open, cause.kind), (56, CauseKind::Limit));
    assert!(cause.reason.contains("56 of 64 exchanges (max_exchanges)"), "{}", cause.reason);
    for client in ["192.0.2.2", "192.0.2.3"] {
        let (_, outputs) = client_asks(&mut relay, ms(0), client, "GET");
        assert!(refusal(&outputs).is_none());
    }
    // A tunnel is another thing.
    assert!(refusal(&client_asks(&mut relay, ms(0), "192.0.2.1", "CONNECT").1).is_none());
}

#[test]
fn idle_tunnels_take_no_requests_place_and_yield_to_new_ones() {
    let config = Config { max_exchanges: 4, max_tunnels: 64, ..Config::new(Role::Edge, 1) };
    let (mut relay, _) = wide_edge(config);
    let mut open = Vec::new();
    for _ in 0..300 {
        let (id, outputs) = client_asks(&mut relay, ms(0), "192.0.2.1", "CONNECT");
        if refusal(&outputs).is_none() {
            open.push(id);
            // Answered.
            relay.transfer.exchanges.get_mut(&id).unwrap().status = 200;
        }
    }
    assert_eq!(open.len(), 56);
    assert_eq!(relay.load().exchanges, 56);
    assert!(refusal(&client_asks(&mut relay, ms(0), "192.0.2.2", "GET").1).is_none());
    assert!(refusal(&client_asks(&mut relay, ms(0), "192.0.2.1", "GET").1).is_none());
    assert!(refusal(&client_asks(&mut relay, ms(0), "192.0.2.2", "CONNECT").1).is_none());
    // Something passes through the first; half a minute later the second is longest idle.
    let (exchange, bytes) = (open[0], Bytes::from_static(b"x"));
    relay.handle_input(ms(9_000), Input::Data { exchange, bytes });
    drain(&mut relay);
    let (_, outputs) = client_asks(&mut relay, ms(29_000), "192.0.2.1", "CONNECT");
    assert!(refusal(&outputs).is_some_and(|cause| cause.reason.contains("max_tunnels")));
    let (new, outputs) = client_asks(&mut relay, ms(31_000), "192.0.2.1", "CONNECT");
    let ended: Vec<_> = outputs
        .iter()
        .filter_map(|output| match output {
            Output::Abort { exchange, cause, .. } => Some((*exchange, cause.kind)),
            _ => None,
        })
        .collect();
    assert!(ended == [(open[1], CauseKind::Limit)] && relay.transfer.exchanges.contains_key(&new));
}

/// A client that has all that it may have, and reads none of it, gets more once that is seen.
#[test]
fn what_a_client_does_not_read_yields_to_what_it_asks_next() {
    let (mut relay, mut peer) =
        wide_edge(Config { max_exchanges: 8, ..Config::new(Role::Edge, 1) });
    for _ in 0..7 {
        let (id, outputs) = client_asks(&mut relay, ms(0), "192.0.2.1", "GET");
        peer.takes(&outputs);
        let frames = [response_frame(id.number, false)];
        peer.sends(&mut relay, ms(1), CARRIER, &frames);
        let block = Data {
            exchange: id.number,
            block_end: Some(5),
            uncoded: true,
            anew: false,
            end: false,
            padding: None,
            bytes: Bytes::from_static(b"bytes"),
        };
        peer.sends(&mut relay, ms(1), CARRIER, &[Part::Data(block)]);
    }
    assert!(refusal(&client_asks(&mut relay, ms(9_000), "192.0.2.1", "GET").1).is_some());
    let (id, outputs) = client_asks(&mut relay, ms(10_500), "192.0.2.1", "GET");
    assert!(relay.transfer.exchanges.contains_key(&id) && refusal(&outputs).is_some());
}

#[test]
fn an_event_stream_takes_a_place_among_tunnels() {
    let config = Config { max_exchanges: 2, max_tunnels: 8, ..Config::new(Role::Edge, 1) };
    let (mut relay, mut peer) = wide_edge(config);
    for at in 0..7 {
        let (id, outputs) = client_asks(&mut relay, ms(at), "192.0.2.1", "GET");
        assert!(refusal(&outputs).is_none(), "{at}");
        peer.takes(&outputs);
        let mut head = Vec::new();
        let fields =
            vec![("content-type".into(), Bytes::from_static(b"Text/Event-Stream; charset=utf-8"))];
        bhttp::Response { status: 200, fields }.encode(&mut head);
        let head = HeadPart {
            exchange: id.number,
            codec: 0,
            window_log: 0,
            end: false,
            head: head.into(),
        };
        peer.sends(&mut relay, ms(at), CARRIER, &[Part::Head(head)]);
    }
    assert_eq!((relay.transfer.shares.passing(), relay.load().exchanges), (0, 7));
    // All of them end, with a reason, when no event has come for as long as may be.
    relay.handle_input(Duration::from_secs(29 * 60), Input::Wake);
    assert_eq!((drain(&mut relay).len(), relay.load().exchanges), (0, 7));
    relay.handle_input(Duration::from_secs(30 * 60 + 1), Input::Wake);
    let outputs = drain(&mut relay);
    let reason = &refusal(&outputs).unwrap().reason;
    assert!(reason.contains("nothing passed for 1800 s (tunnel_timeout)"), "{reason}");
    assert_eq!(relay.load().exchanges, 0);
}

#[test]
fn nothing_stays_that_stands_still() {
    let config = Config { still_timeout: ms(10_000), ..Config::new(Role::Gateway, 9) };
    let mut relay = Relay::new(config);
    let (mut edge, _) = edge_connects(&mut relay, 0, "edge", 1);
    edge.sends(&mut relay, ms(0), CARRIER, &[request_frame(1)]);
    edge.sends(&mut relay, ms(6_000), CARRIER, &[request_frame(2)]);
    relay.handle_input(ms(10_000), Input::Wake);
    let outputs = drain(&mut relay);
    assert_eq!(relay.load().exchanges, 1);
    assert!(matches!(&edge.takes(&outputs)[..], [Part::Abort(abort)] if abort.exchange == 1));
}

#[test]
fn answers_whose_edge_is_gone_make_room_for_edges_that_are_there() {
    let config = Config { max_exchanges: 16, ..Config::new(Role::Gateway, 9) };
    let mut relay = Relay::new(config);
    let (mut gone, _) = edge_connects(&mut relay, 0, "gone", 1);
    let asked: Vec<Part> = (1..=16).map(request_frame).collect();
    let outputs = gone.sends(&mut relay, ms(0), CarrierId(0), &asked);
    let refused = |frame: &&Part| matches!(frame, Part::Abort(_));
    assert_eq!(gone.takes(&outputs).iter().filter(refused).count(), 1, "it may have 15 of 16");
    let (mut edge, _) = edge_connects(&mut relay, 1, "edge", 2);
    let outputs = edge.sends(&mut relay, ms(1), CarrierId(1), &[request_frame(1)]);
    assert_eq!(edge.takes(&outputs).iter().filter(refused).count(), 0);
    let outputs = edge.sends(&mut relay, ms(2), CarrierId(1), &[request_frame(2)]);
    assert_eq!(edge.takes(&outputs).iter().filter(refused).count(), 1, "all of them live");
    let reason = "cut".to_owned();
    relay.handle_input(ms(3), Input::CarrierDown { carrier: CarrierId(0), reason });
    drain(&mut relay);
    // Another has fewer than the one that is gone.
    let outputs = edge.sends(&mut relay, ms(4), CarrierId(1), &[request_frame(3)]);
    assert_eq!(edge.takes(&outputs).iter().filter(refused).count(), 0);
    let oldest = ExchangeId { instance: 1, number: 1 };
    assert!(
        outputs.iter().any(|output| {
            matches!(output, Output::Abort { exchange, .. } if *exchange == oldest)
        })
    );
    // Whoever comes back for it hears that it is lost, and of the others gets the answers.
    let (mut back, _) = edge_connects(&mut relay, 2, "gone", 1);
    let outputs =
        back.sends(&mut relay, ms(5), CarrierId(2), &[Part::Query(1, 1), Part::Query(3, 1)]);
    let frames = back.takes(&outputs);
    assert!(
        matches!(
            frames[..],
            [Part::Outcome(1, OutcomeState::Aborted), Part::Outcome(3, OutcomeState::Answer)]
        ),
        "{frames:?}"
    );
}
