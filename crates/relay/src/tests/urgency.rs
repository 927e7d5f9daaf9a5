//! Who says how urgent an exchange is, and what leaves first by that.

use coding::Service;
use decide::policy::Objective;
use proto::control::Urgent;
use proto::urgency::Urgency;

use super::*;

fn urgency(value: u64) -> Urgency {
    Urgency::new(value).unwrap()
}

/// What an edge tells its gateway of the urgency of a request with this field `Priority`.
fn announced(config: Config, service: Option<usize>, priority: Option<&str>) -> Option<Urgency> {
    let (mut relay, mut peer) = connected(config, 9);
    let exchange = relay.next_exchange();
    let fields: Vec<_> = priority.iter().map(|value| ("priority", *value)).collect();
    let from = Known { service, ..Known::default() };
    relay.handle_input(ms(0), known(exchange, request("GET", &fields), true, from));
    let parts = peer.takes(&drain(&mut relay));
    let head = parts.iter().position(|part| matches!(part, Part::Head(_))).unwrap();
    parts.iter().enumerate().find_map(|(at, part)| match part {
        Part::Control(Urgent::KIND, content) => {
            let urgent = Urgent::decode(content).unwrap();
            assert!(at > head && urgent.exchange == exchange.number, "{parts:?}");
            Some(urgent.urgency)
        }
        _ => None,
    })
}

#[test]
fn whoever_runs_the_edge_decides_and_whoever_asks_may_go_behind_others() {
    let edge = || Config::new(Role::Edge, 1);
    for (priority, announces) in [(None, None), (Some("u=0"), None), (Some("u=6"), None)] {
        // What the gateway reads in the field is what the edge believes.
        assert_eq!(announced(edge(), None, priority), announces, "{priority:?}");
    }
    let believing = || Config { urgent_clients: true, ..edge() };
    assert_eq!(announced(believing(), None, Some("u=0, i")), Some(urgency(0)));
    assert_eq!(announced(believing(), None, Some("u=5")), None);
    let service = Service {
        name: "alarms".to_owned(),
        objective: Objective::Time,
        encodings: None,
        infoset: None,
    };
    let with = |urgency| {
        let handling = vec![Handling { urgency, ..Handling::default() }];
        Config { services: vec![service.clone()], handling, ..edge() }
    };
    assert_eq!(announced(with(Some(urgency(0))), Some(0), None), Some(urgency(0)));
    assert_eq!(announced(with(Some(urgency(1))), Some(0), Some("u=7")), Some(urgency(1)));
    assert_eq!(announced(with(None), Some(0), Some("u=1")), None);
}

/// Exchanges of the data that leaves, in order.
fn leaves(peer: &mut Peer, outputs: &[Output]) -> Vec<u64> {
    let data = |part: Part| match part {
        Part::Data(data) => Some(data.exchange),
        _ => None,
    };
    peer.takes(outputs).into_iter().filter_map(data).collect()
}

#[test]
fn an_urgent_answer_goes_before_the_rest_of_a_long_one() {
    let encoding = Encoding::of("identity").unwrap();
    let config = Config { encoding, ..Config::new(Role::Gateway, 9) };
    for (value, first) in [(0, 2), (7, 1)] {
        let (mut relay, mut peer) = connected(config.clone(), 1);
        let mut asked = Vec::new();
        let Head::Request(asks) = request("GET", &[]) else { panic!("not a request") };
        asks.encode(&mut asked);
        let head = |exchange| {
            let head = asked.clone().into();
            Part::Head(HeadPart { exchange, codec: 0, window_log: 0, end: true, head })
        };
        let urgent = Urgent { exchange: 2, urgency: urgency(value) }.part();
        peer.sends(&mut relay, ms(0), CARRIER, &[head(1), head(2), urgent]);
        let id = |number| ExchangeId { instance: 1, number };
        let mut answers = |number, bytes: usize| {
            let response = bhttp::Response { status: 200, fields: Vec::new() };
            let exchange = id(number);
            relay.handle_input(ms(0), local(exchange, Head::Response(response), false));
            let bytes = Bytes::from(vec![7; bytes]);
            relay.handle_input(ms(0), Input::Data { exchange, bytes });
            relay.handle_input(ms(0), Input::End { exchange, trailers: Vec::new() });
            drain(&mut relay)
        };
        // The carrier is full with the first.
        let before = answers(1, 60_000);
        assert!(leaves(&mut peer, &before).iter().all(|number| *number == 1));
        assert_eq!(leaves(&mut peer, &answers(2, 6_000)), []);
        let bytes = 3000;
        relay.handle_input(ms(1), Input::Sent { carrier: CARRIER, bytes });
        let after = leaves(&mut peer, &drain(&mut relay));
        assert_eq!(after.first(), Some(&first), "{value}: {after:?}");
        relay.handle_input(ms(2), Input::Sent { carrier: CARRIER, bytes: usize::MAX });
        drain(&mut relay);
    }
}

#[test]
fn what_is_no_urgency_changes_nothing() {
    let (mut relay, mut peer) = connected(Config::new(Role::Gateway, 9), 1);
    let beyond = Part::Control(Urgent::KIND, Bytes::from_static(&[1, 8]));
    let of_none = Urgent { exchange: 77, urgency: urgency(0) }.part();
    peer.sends(&mut relay, ms(0), CARRIER, &[beyond, of_none]);
    assert!(relay.is_idle() && relay.transfer.carriers.contains_key(&CARRIER));
}
