//! Requests that go ahead of the gateway's HELLO: which do, and what becomes of them.

use std::collections::VecDeque;

use proto::carrier::MAX_EARLY_EXCHANGES;
use proto::control::Keeping;

use super::drain::drained;
use super::*;

/// An edge whose gateway has said HELLO, and whose carrier broke.
fn known(config: Config, places: u64) -> Relay {
    let mut relay = Relay::new(config);
    dials(&mut relay, ms(0));
    let gateway = Peer::with(Role::Gateway, 9, places, 100_000);
    connect_to(&mut relay, ms(0), CARRIER, gateway);
    breaks(&mut relay, ms(10), CARRIER);
    relay
}

fn edge_of_known() -> Relay {
    known(Config::new(Role::Edge, 1), 100)
}

fn breaks(relay: &mut Relay, now: Duration, carrier: CarrierId) -> Vec<Output> {
    relay.handle_input(now, Input::CarrierDown { carrier, reason: "reset".into() });
    drain(relay)
}

fn dials(relay: &mut Relay, now: Duration) -> CarrierId {
    relay.handle_input(now, Input::Wake);
    drain(relay);
    relay.dialer.next_dialled()
}

/// The carrier is up and nothing has come over it; what the relay sent.
fn up(relay: &mut Relay, now: Duration, carrier: CarrierId, peer: &str) -> Vec<Output> {
    relay.handle_input(
        now,
        Input::CarrierUp { carrier, kind: CarrierKind::FIRST, peer: peer.into() },
    );
    drain(relay)
}

/// The edge dials anew; its carrier, and what went over it ahead of the gateway's HELLO.
fn goes_early(relay: &mut Relay, now: Duration) -> (CarrierId, Vec<Part>) {
    let carrier = dials(relay, now);
    let outputs = up(relay, now, carrier, "peer");
    (carrier, Peer::new(Role::Gateway, 9).takes(&outputs))
}

/// The gateway says HELLO on a carrier that is up; it, and what the edge sends then.
fn says_hello(relay: &mut Relay, now: Duration, carrier: CarrierId, gateway: Peer) -> Peer {
    let mut gateway = gateway;
    let Some(carrier::Output::Bytes(bytes)) = gateway.0.poll_output() else { panic!("HELLO") };
    let mut hello = Vec::new();
    Frame::Hello(hello_of_edge()).encode(&mut hello);
    gateway.0.handle_input(now, carrier::Input::Bytes(hello.into()));
    gateway.0.poll_output();
    relay.handle_input(now, Input::Received { carrier, bytes });
    gateway
}

fn hello_of_edge() -> stream::Hello {
    stream::Hello {
        version_min: 1,
        version_max: 1,
        instance: 1,
        initial_credit: 100_000,
        max_exchanges: 100,
        codecs: vec![0],
        max_window_log: 20,
        anew: true,
        parallel: true,
        counts: true,
        packs: false,
    }
}

/// Numbers of the exchanges whose heads these are.
fn heads(frames: &[Part]) -> Vec<u64> {
    let head = |frame: &Part| match frame {
        Part::Head(head) => Some(head.exchange),
        _ => None,
    };
    frames.iter().filter_map(head).collect()
}

/// What a gateway that was given early requests by hand is sent.
fn frames_of(outputs: &[Output]) -> Vec<Part> {
    let mut bytes = BytesMut::new();
    for output in outputs {
        if let Output::Transmit { bytes: more, .. } = output {
            bytes.extend_from_slice(more);
        }
    }
    let frames = std::iter::from_fn(|| Frame::take(&mut bytes).unwrap());
    let parts = frames.filter_map(|frame| match frame {
        Frame::Part(part) => Some(part),
        _ => None,
    });
    parts.collect()
}

#[test]
fn a_request_follows_hello_at_once_where_the_gateway_is_known() {
    let mut relay = edge_of_known();
    let (exchange, _) = asks(&mut relay, ms(20), "GET", true);
    let (carrier, frames) = goes_early(&mut relay, ms(1000));
    assert!(matches!(&frames[..], [Part::Head(head)] if head.end && head.codec == 0), "{frames:?}");
    let mut gateway = says_hello(&mut relay, ms(1600), carrier, Peer::new(Role::Gateway, 9));
    assert!(heads(&frames_of(&drain(&mut relay))).is_empty(), "it went once");
    // The gateway's machine has the flow as soon as it reads the head.
    let mut bytes = Vec::new();
    frames.iter().cloned().for_each(|part| Frame::from(part).encode(&mut bytes));
    gateway.0.handle_input(ms(1600), carrier::Input::Bytes(bytes.into()));
    assert_eq!(gateway.takes(&[]).len(), 1);
    let answer = response_frame(exchange.number, true);
    let outputs = gateway.sends(&mut relay, ms(1600), carrier, &[answer]);
    assert!(outputs.iter().any(|output| matches!(output, Output::Head { end: true, .. })));
    assert!(relay.is_idle());
    assert!(!relay.transfer.core.timers.is_set(Key::Exchange(exchange)));
}

#[test]
fn an_answer_is_waited_for_without_the_bound_on_connecting_once_hello_is_here() {
    let mut relay = edge_of_known();
    let (exchange, _) = asks(&mut relay, ms(20), "GET", true);
    let (carrier, _) = goes_early(&mut relay, ms(1000));
    assert!(
        relay.transfer.core.timers.is_set(Key::Exchange(exchange)),
        "it may still have to wait"
    );
    says_hello(&mut relay, ms(1600), carrier, Peer::new(Role::Gateway, 10));
    assert!(!relay.transfer.core.timers.is_set(Key::Exchange(exchange)));
}

#[test]
fn a_gateway_that_is_not_known_is_waited_for() {
    let mut first = Relay::new(Config::new(Role::Edge, 1));
    asks(&mut first, ms(0), "GET", true);
    let outputs = up(&mut first, ms(0), CARRIER, "peer");
    assert!(Peer::new(Role::Gateway, 9).takes(&outputs).is_empty(), "it never said HELLO");

    let mut relay = edge_of_known();
    asks(&mut relay, ms(20), "GET", true);
    let carrier = dials(&mut relay, ms(1000));
    let outputs = up(&mut relay, ms(1000), carrier, "another");
    assert!(Peer::new(Role::Gateway, 9).takes(&outputs).is_empty(), "another key");

    let mut relay = known(Config { without_keys: true, ..Config::new(Role::Edge, 1) }, 100);
    asks(&mut relay, ms(20), "GET", true);
    assert!(goes_early(&mut relay, ms(1000)).1.is_empty(), "no key");
}

#[test]
fn only_what_may_be_done_twice_and_is_whole_goes_early() {
    for (method, fields, end) in [
        ("POST", &[][..], true),
        ("PUT", &[], true),
        ("DELETE", &[], true),
        ("CONNECT", &[], false),
        ("GET", &[], false),
        ("GET", &[("upgrade", "websocket")], true),
        ("GET", &[("expect", "100-continue")], true),
    ] {
        let mut relay = edge_of_known();
        let exchange = relay.next_exchange();
        relay.handle_input(ms(20), local(exchange, request(method, fields), end));
        drain(&mut relay);
        let (carrier, frames) = goes_early(&mut relay, ms(1000));
        assert!(frames.is_empty(), "{method} {fields:?} went early: {frames:?}");
        says_hello(&mut relay, ms(1600), carrier, Peer::new(Role::Gateway, 9));
        let frames = frames_of(&drain(&mut relay));
        assert_eq!(heads(&frames), [exchange.number], "{method} {fields:?}");
    }
    for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
        let mut relay = edge_of_known();
        asks(&mut relay, ms(20), method, true);
        assert_eq!(heads(&goes_early(&mut relay, ms(1000)).1).len(), 1, "{method}");
    }
}

#[test]
fn who_has_another_way_waits_for_hello() {
    let mut relay = edge_of_known();
    asks_with_another_way(&mut relay, ms(20));
    assert!(goes_early(&mut relay, ms(1000)).1.is_empty());
}

#[test]
fn no_more_go_early_than_the_gateway_took_and_than_are_asked_about_soon() {
    let limit = usize::try_from(MAX_EARLY_EXCHANGES).unwrap();
    for (places, most) in [(3, 3), (100, limit)] {
        let mut relay = known(Config::new(Role::Edge, 1), places);
        let numbers: Vec<u64> =
            (0..20).map(|_| asks(&mut relay, ms(20), "GET", true).0.number).collect();
        let carrier = dials(&mut relay, ms(1000));
        let early = frames_of(&up(&mut relay, ms(1000), carrier, "peer"));
        assert_eq!(heads(&early), &numbers[..most], "the oldest");
        let gateway = Peer::with(Role::Gateway, 9, 18, 100_000);
        says_hello(&mut relay, ms(1600), carrier, gateway);
        assert_eq!(heads(&frames_of(&drain(&mut relay))), &numbers[most..18]);
    }
}

#[test]
fn a_gateway_that_takes_fewer_now_gets_no_more_and_nothing_twice() {
    let mut relay = edge_of_known();
    let long = "x".repeat(9_000);
    let mut numbers = Vec::new();
    for _ in 0..6 {
        let exchange = relay.next_exchange();
        let head = request("GET", &[("cookie", &long)]);
        relay.handle_input(ms(20), local(exchange, head, true));
        numbers.push(exchange.number);
    }
    drain(&mut relay);
    // The transmit window holds two of them.
    let carrier = dials(&mut relay, ms(1000));
    let outputs = up(&mut relay, ms(1000), carrier, "peer");
    assert_eq!(heads(&frames_of(&outputs)), &numbers[..2]);
    let gateway = Peer::with(Role::Gateway, 10, 1, 100_000);
    says_hello(&mut relay, ms(1600), carrier, gateway);
    relay.handle_input(ms(1600), Input::Sent { carrier, bytes: 20_000 });
    let outputs = drain(&mut relay);
    assert!(heads(&frames_of(&outputs)).is_empty(), "{outputs:?}");
    assert!(!outputs.iter().any(|output| matches!(output, Output::Close { .. })), "{outputs:?}");
    let waits = relay.transfer.exchanges.unsent().map(|one| one.id.number).collect::<Vec<_>>();
    assert_eq!(waits, &numbers[2..]);
    // The two that went may be refused; then the next has its place.
    for (at, number) in numbers.iter().enumerate() {
        let cause = Cause { kind: CauseKind::ClientGone, reason: "left".into() };
        let exchange = ExchangeId { instance: 1, number: *number };
        relay.handle_input(ms(1700), Input::Abort { exchange, cause });
        relay.handle_input(ms(1700), Input::Sent { carrier, bytes: 20_000 });
        let next: &[u64] = if at == 0 || at == 5 { &[] } else { &numbers[at + 1..at + 2] };
        assert_eq!(heads(&frames_of(&drain(&mut relay))), next, "{at}");
    }
    assert!(relay.is_idle());
}

/// What was sent early and whose carrier broke before the HELLO.
fn lost_early() -> (Relay, ExchangeId) {
    let mut relay = edge_of_known();
    let (exchange, _) = asks(&mut relay, ms(20), "GET", true);
    let (carrier, frames) = goes_early(&mut relay, ms(1000));
    assert_eq!(heads(&frames), [exchange.number]);
    let outputs = breaks(&mut relay, ms(1100), carrier);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Abort { .. })), "{outputs:?}");
    (relay, exchange)
}

#[test]
fn whichever_gateway_is_next_is_asked_about_what_went_early() {
    for instance in [9, 10] {
        let (mut relay, exchange) = lost_early();
        let (carrier, frames) = goes_early(&mut relay, ms(3000));
        assert!(frames.is_empty(), "it goes early only once: {frames:?}");
        let gateway = Peer::new(Role::Gateway, instance);
        let mut gateway = says_hello(&mut relay, ms(3600), carrier, gateway);
        let outputs = drain(&mut relay);
        let number = exchange.number;
        let asked = gateway.takes(&outputs[..]);
        assert!(asked.contains(&Part::Query(number, 1)) && heads(&asked).is_empty(), "{asked:?}");
        let unseen = Part::Outcome(number, OutcomeState::NotSeen);
        let outputs = gateway.sends(&mut relay, ms(4200), carrier, &[unseen]);
        assert_eq!(heads(&gateway.takes(&outputs)), [number]);
    }
}

#[test]
fn an_answer_to_what_went_early_is_taken_up_again() {
    let (mut relay, exchange) = lost_early();
    let (carrier, _) = goes_early(&mut relay, ms(3000));
    let mut gateway = says_hello(&mut relay, ms(3600), carrier, Peer::new(Role::Gateway, 10));
    gateway.takes(&drain(&mut relay));
    let number = exchange.number;
    let frames = [Part::Outcome(number, OutcomeState::Answer), response_frame(number, true)];
    let outputs = gateway.sends(&mut relay, ms(4200), carrier, &frames);
    assert!(outputs.iter().any(|output| matches!(output, Output::Head { end: true, .. })));
    assert!(relay.is_idle());
}

/// The gateway was asked before the early request came there, and had it before it was sent again.
#[test]
fn what_comes_late_over_its_first_carrier_is_asked_about_again() {
    let (mut relay, exchange) = lost_early();
    let (carrier, _) = goes_early(&mut relay, ms(3000));
    let mut gateway = says_hello(&mut relay, ms(3600), carrier, Peer::new(Role::Gateway, 10));
    gateway.takes(&drain(&mut relay));
    let number = exchange.number;
    let unseen = Part::Outcome(number, OutcomeState::NotSeen);
    let outputs = gateway.sends(&mut relay, ms(4200), carrier, std::slice::from_ref(&unseen));
    assert_eq!(heads(&gateway.takes(&outputs)).len(), 1);
    let (code, reason) = (CauseKind::OutcomeUnknown.to_wire(), "was here".to_owned());
    let refusal = Part::Abort(Abort { exchange: number, code, reason });
    let mut outputs = gateway.sends(&mut relay, ms(4300), carrier, std::slice::from_ref(&refusal));
    assert_eq!(gateway.takes(&outputs), [Part::Query(number, 2)]);
    // Not for ever, if it says now this and now that.
    let words = [unseen, refusal].into_iter().cycle().take(usize::from(config::MAX_RESENDS));
    for word in words {
        if relay.is_idle() {
            break;
        }
        outputs = gateway.sends(&mut relay, ms(4400), carrier, &[word]);
        gateway.takes(&outputs);
    }
    assert_eq!(abort(&outputs).0, CauseKind::OutcomeUnknown);
    assert!(relay.is_idle());
}

#[test]
fn what_went_early_and_failed_is_not_said_to_be_safe_to_repeat() {
    // Nobody could be asked.
    let (mut relay, _) = lost_early();
    relay.handle_input(ms(31_100), Input::Wake);
    assert_eq!(abort(&drain(&mut relay)), (CauseKind::OutcomeUnknown, false));

    // The next gateway has never seen it and does not take it.
    let (mut relay, exchange) = lost_early();
    let (carrier, _) = goes_early(&mut relay, ms(3000));
    let mut gateway = says_hello(&mut relay, ms(3600), carrier, Peer::new(Role::Gateway, 10));
    gateway.takes(&drain(&mut relay));
    let number = exchange.number;
    let unseen = Part::Outcome(number, OutcomeState::NotSeen);
    let outputs = gateway.sends(&mut relay, ms(4200), carrier, &[unseen]);
    gateway.takes(&outputs);
    let (code, reason) = (CauseKind::Limit.to_wire(), "full".to_owned());
    let refusal = Part::Abort(Abort { exchange: number, code, reason });
    let outputs = gateway.sends(&mut relay, ms(4300), carrier, &[refusal]);
    assert_eq!(abort(&outputs).0, CauseKind::OutcomeUnknown);
}

#[test]
fn a_gateway_that_refuses_a_carrier_keeps_nobody_waiting_who_went_early() {
    let mut relay = edge_of_known();
    asks(&mut relay, ms(20), "GET", true);
    let (carrier, _) = goes_early(&mut relay, ms(1000));
    let (failure, reason) = (DialFailure::Refused, "not wanted".to_owned());
    relay.handle_input(ms(1100), Input::DialFailed { carrier, failure, reason });
    assert_eq!(abort(&drain(&mut relay)).0, CauseKind::OutcomeUnknown);
    assert!(relay.is_idle());
}

#[test]
fn patience_and_a_client_that_leaves_take_back_what_went_early() {
    let config = Config { connect_timeout: ms(3000), ..Config::new(Role::Edge, 1) };
    let mut relay = known(config, 100);
    asks(&mut relay, ms(20), "GET", true);
    goes_early(&mut relay, ms(1000));
    relay.handle_input(ms(3020), Input::Wake);
    let outputs = drain(&mut relay);
    assert_eq!(abort(&outputs).0, CauseKind::OutcomeUnknown);
    assert!(matches!(&frames_of(&outputs)[..], [Part::Abort(_)]), "{outputs:?}");
    assert!(relay.is_idle());

    let mut relay = edge_of_known();
    let (exchange, _) = asks(&mut relay, ms(20), "GET", true);
    let (carrier, _) = goes_early(&mut relay, ms(1000));
    let cause = Cause { kind: CauseKind::ClientGone, reason: "left".into() };
    relay.handle_input(ms(1100), Input::Abort { exchange, cause });
    assert!(matches!(&frames_of(&drain(&mut relay))[..], [Part::Abort(_)]));
    // A late answer is nobody's.
    says_hello(&mut relay, ms(1600), carrier, Peer::new(Role::Gateway, 9));
    let mut answer = Vec::new();
    Frame::from(response_frame(exchange.number, true)).encode(&mut answer);
    relay.handle_input(ms(1700), Input::Received { carrier, bytes: answer.into() });
    let outputs = drain(&mut relay);
    assert!(!outputs.iter().any(|o| matches!(o, Output::Head { .. } | Output::Close { .. })));
}

#[test]
fn a_carrier_has_no_pulse_before_hello() {
    let mut relay = edge_of_known();
    let (exchange, _) = asks(&mut relay, ms(20), "GET", true);
    let (carrier, _) = goes_early(&mut relay, ms(1000));
    relay.handle_input(ms(1001), Input::Credit { exchange, bytes: 1 << 20 });
    for at in (2..100).map(|tenth| ms(1000 + 100 * tenth)) {
        relay.handle_input(at, Input::Wake);
        let outputs = drain(&mut relay);
        assert!(frames_of(&outputs).is_empty(), "{at:?}: {outputs:?}");
    }
    assert!(!relay.transfer.core.timers.is_set(Key::Pulse(carrier)));
    // Its credit is what the gateway believes it to be.
    assert_eq!(relay.transfer.exchanges[&exchange].incoming.window(), INITIAL_CREDIT_BYTES);
    relay.handle_input(ms(11_000), Input::Wake);
    let outputs = drain(&mut relay);
    assert!(outputs.iter().any(|output| matches!(output, Output::Close { .. })), "{outputs:?}");
}

#[test]
fn what_a_gateway_did_not_take_since_it_shuts_down_goes_to_the_next() {
    let mut relay = edge_of_known();
    let (exchange, _) = asks(&mut relay, ms(20), "GET", true);
    let (carrier, _) = goes_early(&mut relay, ms(1000));
    let mut gateway = says_hello(&mut relay, ms(1600), carrier, Peer::new(Role::Gateway, 9));
    gateway.takes(&drain(&mut relay));
    gateway.sends(&mut relay, ms(1600), carrier, &drained(0));
    let (_, frames) = goes_early(&mut relay, ms(3000));
    assert!(frames.is_empty(), "it was sent before");
    let carrier = relay.dialer.next_dialled();
    says_hello(&mut relay, ms(3600), carrier, Peer::new(Role::Gateway, 10));
    assert_eq!(heads(&frames_of(&drain(&mut relay))), [exchange.number]);
}

/// So that the answer is kept for those that follow.
#[test]
fn on_whose_behalf_it_is_goes_with_it() {
    let secret = Some(Secret::new([7; 32]));
    let mut relay = Relay::new(Config { secret, ..Config::new(Role::Edge, 1) });
    dials(&mut relay, ms(0));
    let gateway = || {
        Peer(Machine::new(carrier::Setup {
            role: Role::Gateway,
            instance: 9,
            initial_credit: 100_000,
            max_exchanges: 8,
            codecs: vec![
                0,
                codec::Options::DELTA.codec.number(),
                codec::Options::DICTIONARY.codec.number(),
            ],
            max_window_log: 20,
            own_bytes_per_s: None,
        }))
    };
    connect_to(&mut relay, ms(0), CARRIER, gateway());
    breaks(&mut relay, ms(10), CARRIER);
    let exchange = relay.next_exchange();
    let client = Known { client: Some("client".into()), ..Known::default() };
    let head = request("GET", &[]);
    relay.handle_input(ms(20), super::known(exchange, head, true, client));
    drain(&mut relay);
    let (carrier, frames) = goes_early(&mut relay, ms(1000));
    let said = |frames: &[Part]| {
        let keeping = frames.iter().filter_map(|frame| match frame {
            Part::Control(Keeping::KIND, content) => Keeping::decode(content).ok(),
            _ => None,
        });
        let count = |is: fn(&Keeping) -> bool| keeping.clone().filter(is).count();
        (
            count(|one| matches!(one, Keeping::Name { principal: 0, .. })),
            count(|one| matches!(one, Keeping::Name { principal: 1.., .. })),
            count(|one| matches!(one, Keeping::Principal { .. })),
        )
    };
    assert_eq!((heads(&frames).len(), said(&frames)), (1, (1, 1, 1)), "{frames:?}");
    says_hello(&mut relay, ms(1600), carrier, gateway());
    assert_eq!(said(&frames_of(&drain(&mut relay))), (0, 0, 0), "once is enough");
}

#[test]
fn a_gateway_serves_what_is_right_behind_hello_and_only_whom_it_knows() {
    let together = |instance: u64| {
        let mut edge = Peer::new(Role::Edge, instance);
        let Some(carrier::Output::Bytes(hello)) = edge.0.poll_output() else { panic!("HELLO") };
        let mut bytes = hello.to_vec();
        Frame::from(request_frame(1)).encode(&mut bytes);
        Bytes::from(bytes)
    };
    let is_served = |outputs: &[Output]| outputs.iter().any(|o| matches!(o, Output::Head { .. }));
    let mut relay = Relay::new(Config::new(Role::Gateway, 9));
    up(&mut relay, ms(0), CARRIER, "edge");
    relay.handle_input(ms(0), Input::Received { carrier: CARRIER, bytes: together(1) });
    assert!(is_served(&drain(&mut relay)));
    // Another's instance: closed, and nothing behind its HELLO counts.
    let carrier = CarrierId(1);
    up(&mut relay, ms(1), carrier, "stranger");
    relay.handle_input(ms(1), Input::Received { carrier, bytes: together(1) });
    let outputs = drain(&mut relay);
    assert!(!is_served(&outputs), "{outputs:?}");
    assert!(outputs.iter().any(|output| matches!(output, Output::Close { .. })), "{outputs:?}");
}

/// Two relays with so long a way between them: when the client has its answer's head, counted in
/// ways since the carrier came up.
fn ways(edge: &mut Relay, gateway: &mut Relay, name: u64, method: &str) -> u64 {
    let (carrier, way) = (CarrierId(name), 300);
    let begun = 10_000 * (name + 1);
    edge.handle_input(ms(begun), Input::Wake);
    drain(edge);
    let (exchange, _) = asks(edge, ms(begun), method, true);
    edge.handle_input(ms(begun + 1000), Input::Wake);
    drain(edge);
    let mut now = begun + 2000;
    let up = |peer: &str| Input::CarrierUp { carrier, kind: CarrierKind::FIRST, peer: peer.into() };
    edge.handle_input(ms(now), up("gateway"));
    // The gateway knows of it with the first bytes.
    gateway.handle_input(ms(now + way), up("edge"));
    let mut under_way: VecDeque<(u64, Role, Bytes)> = VecDeque::new();
    loop {
        for output in drain(edge) {
            match output {
                Output::Head { .. } => return (now - begun - 2000) / way,
                Output::Transmit { bytes, .. } => {
                    under_way.push_back((now + way, Role::Gateway, bytes));
                }
                _ => {}
            }
        }
        for output in drain(gateway) {
            match output {
                Output::Head { .. } => {
                    let head = bhttp::Response { status: 200, fields: Vec::new() };
                    let head = Head::Response(head);
                    gateway.handle_input(ms(now), local(exchange, head, true));
                    under_way.extend(drain(gateway).into_iter().filter_map(
                        |output| match output {
                            Output::Transmit { bytes, .. } => Some((now + way, Role::Edge, bytes)),
                            _ => None,
                        },
                    ));
                }
                Output::Transmit { bytes, .. } => {
                    // Its HELLO, made when it heard of the carrier.
                    let left = now.max(begun + 2000 + way);
                    under_way.push_back((left + way, Role::Edge, bytes));
                }
                _ => {}
            }
        }
        let (at, to, bytes) = under_way.pop_front().expect("nothing is under way");
        now = now.max(at);
        let to = if to == Role::Edge { &mut *edge } else { &mut *gateway };
        to.handle_input(ms(now), Input::Received { carrier, bytes });
    }
}

#[test]
fn behind_a_dial_the_answer_comes_a_round_trip_sooner() {
    let mut edge = Relay::new(Config::new(Role::Edge, 1));
    let mut gateway = Relay::new(Config::new(Role::Gateway, 9));
    let mut carrier = 0;
    let mut takes = |method: &str| {
        let ways = ways(&mut edge, &mut gateway, carrier, method);
        let reason = || "closed".to_owned();
        let (name, now) = (CarrierId(carrier), ms(10_000 * (carrier + 1) + 5000));
        edge.handle_input(now, Input::CarrierDown { carrier: name, reason: reason() });
        gateway.handle_input(now, Input::CarrierDown { carrier: name, reason: reason() });
        drain(&mut edge);
        drain(&mut gateway);
        carrier += 1;
        ways
    };
    assert_eq!(takes("GET"), 4, "of a gateway that nobody knows");
    assert_eq!(takes("GET"), 2);
    assert_eq!(takes("POST"), 4);
    assert_eq!(takes("GET"), 2);
}
