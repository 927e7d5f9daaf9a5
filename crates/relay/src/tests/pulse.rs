//! Peers that stop answering, links that are down, gateways that are known to be unreachable.

use decide::estimate::Transport;
use proto::stream::Frame;

use super::*;

/// The peer takes what the relay sends and answers the PINGs in it.
fn pongs(relay: &mut Relay, peer: &mut Peer, now: Duration, outputs: &[Output]) -> Vec<Output> {
    for output in outputs {
        if let Output::Transmit { bytes, .. } = output {
            peer.0.handle_input(now, carrier::Input::Bytes(bytes.clone()));
        }
    }
    while let Some(output) = peer.0.poll_output() {
        if let carrier::Output::Bytes(bytes) = output {
            relay.handle_input(now, Input::Received { carrier: CARRIER, bytes });
        }
    }
    drain(relay)
}

/// The peer's kernel has all that was sent.
fn acknowledged(relay: &mut Relay, now: Duration) {
    let bytes = usize::MAX;
    relay.handle_input(now, Input::Sent { carrier: CARRIER, bytes });
}

/// An edge whose gateway has answered its first PING.
fn known() -> (Relay, Peer) {
    let encoding = Encoding::of("identity").unwrap();
    let mut relay = Relay::new(Config { encoding, ..Config::new(Role::Edge, 1) });
    relay.handle_input(ms(0), Input::Wake);
    drain(&mut relay);
    let (mut peer, outputs) = connect_to(&mut relay, ms(0), CARRIER, Peer::new(Role::Gateway, 9));
    acknowledged(&mut relay, ms(0));
    pongs(&mut relay, &mut peer, ms(100), &outputs);
    (relay, peer)
}

fn dialled(outputs: &[Output]) -> Option<CarrierId> {
    outputs.iter().find_map(|output| match output {
        Output::Dial { carrier, .. } => Some(*carrier),
        _ => None,
    })
}

/// Lets time pass in steps until something is dialled: which, and when.
fn until_dialled(relay: &mut Relay, from: u64, to: u64) -> Option<(CarrierId, u64)> {
    (from..to).step_by(50).find_map(|at| {
        relay.handle_input(ms(at), Input::Wake);
        let outputs = drain(relay);
        acknowledged(relay, ms(at));
        Some((dialled(&outputs)?, at))
    })
}

fn fails(relay: &mut Relay, at: u64, failure: DialFailure) -> Vec<Output> {
    let carrier = relay.dialer.next_dialled();
    let reason = "cannot reach the gateway: why".to_owned();
    relay.handle_input(ms(at), Input::DialFailed { carrier, failure, reason });
    drain(relay)
}

/// The first request finds a dial on its way: to begin anew would cost it a pause.
#[test]
fn a_dial_on_its_way_stays_when_somebody_comes() {
    let mut relay = Relay::new(Config::new(Role::Edge, 1));
    relay.handle_input(ms(0), Input::Wake);
    let first = dialled(&drain(&mut relay)).unwrap();
    let (_, outputs) = asks(&mut relay, ms(5), "GET", true);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Close { .. })), "{outputs:?}");
    assert_eq!((relay.dialer.next_dialled(), dialled(&outputs)), (first, None));
}

#[test]
fn a_gateway_that_hangs_is_found_while_something_waits_and_another_carrier_asks_about_it() {
    let (mut relay, mut peer) = known();
    let (exchange, outputs) = asks(&mut relay, ms(1000), "POST", true);
    peer.takes(&outputs);
    acknowledged(&mut relay, ms(1000));
    let (carrier, at) = until_dialled(&mut relay, 1050, 60_000).unwrap();
    assert!((3000..7000).contains(&at), "{at}");
    assert!(relay.standing().unwrap_err().contains("silent"));
    // Nobody answers there either, and what comes now waits.
    let (second, outputs) = asks(&mut relay, ms(at + 100), "GET", true);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Transmit { .. })));
    let (mut fresh, outputs) =
        connect_to(&mut relay, ms(at + 200), carrier, Peer::new(Role::Gateway, 9));
    let frames = fresh.takes(&outputs);
    let asked = frames.contains(&Part::Query(exchange.number, 1));
    let sent = frames.iter().any(|frame| {
        matches!(frame, Part::Head(head)
        if head.exchange == second.number)
    });
    assert!(asked && sent && relay.standing().is_ok(), "{frames:?}");
}

/// A length that a link without keys has changed: what comes after is taken for the rest of a
/// frame.
#[test]
fn a_frame_that_never_ends_is_no_sign_of_life() {
    // Sooner than a PING is sent, and later than it should have been answered.
    for pause in [500, 3000] {
        let (mut relay, _) = known();
        asks(&mut relay, ms(1000), "POST", true);
        acknowledged(&mut relay, ms(1000));
        let mut bytes = Vec::new();
        Frame::Part(Part::Control(1 << 20, Bytes::from(vec![0; 60_000]))).encode(&mut bytes);
        let mut rest = bytes.iter();
        let found = (1000..2_000_000_u64).step_by(500).find_map(|at| {
            relay.handle_input(ms(at), Input::Wake);
            let outputs = drain(&mut relay);
            acknowledged(&mut relay, ms(at));
            if at % pause == 0 {
                let bytes = Bytes::copy_from_slice(&[*rest.next()?]);
                relay.handle_input(ms(at), Input::Received { carrier: CARRIER, bytes });
                drain(&mut relay);
            }
            dialled(&outputs).map(|_| at)
        });
        let frame = 600_000..610_000;
        assert!(found.is_some_and(|at| frame.contains(&at)), "{pause}: {found:?}");
    }
}

#[test]
fn a_peer_that_answers_no_ping_is_not_judged_by_that() {
    let mut relay = Relay::new(Config::new(Role::Edge, 1));
    relay.handle_input(ms(0), Input::Wake);
    drain(&mut relay);
    let (mut peer, _) = connect_to(&mut relay, ms(0), CARRIER, Peer::new(Role::Gateway, 9));
    let (exchange, outputs) = asks(&mut relay, ms(1000), "GET", true);
    peer.takes(&outputs);
    assert_eq!(until_dialled(&mut relay, 1050, 50_000), None);
    let outputs =
        peer.sends(&mut relay, ms(50_000), CARRIER, &[response_frame(exchange.number, true)]);
    assert!(outputs.iter().any(|output| matches!(output, Output::Head { .. })));
}

/// Where bytes came wrong before the first PONG of a carrier, its peer may read on for ever.
#[test]
fn a_peer_that_has_answered_before_is_judged_by_the_first_ping_of_a_carrier() {
    let (mut relay, _) = known();
    let (carrier, reason) = (CARRIER, "reset".to_owned());
    relay.handle_input(ms(1000), Input::CarrierDown { carrier, reason });
    let (second, _) = until_dialled(&mut relay, 1000, 60_000).unwrap();
    connect_to(&mut relay, ms(60_000), second, Peer::new(Role::Gateway, 9));
    let peer_timeout = Config::new(Role::Edge, 1).peer_timeout;
    let closed_at = (60_000..200_000).step_by(50).map(ms).find(|at| {
        relay.handle_input(*at, Input::Wake);
        let closes = |output: &Output| matches!(output, Output::Close { .. });
        drain(&mut relay).iter().any(closes)
    });
    assert!(closed_at.is_some_and(|at| at <= ms(61_000) + peer_timeout), "{closed_at:?}");
}

/// 9.6 kbit/s: a packet takes more than a second, what the kernel holds half a minute.
#[test]
fn a_slow_link_with_a_full_queue_raises_no_alarm_and_one_that_stands_does() {
    let (mut relay, mut peer) = known();
    let transport = Transport { rtt: ms(900), ..Transport::default() };
    relay.handle_input(ms(500), Input::Transport { carrier: CARRIER, transport });
    let (exchange, _) = asks(&mut relay, ms(1000), "POST", false);
    let bytes = Bytes::from(vec![7; 60_000]);
    relay.handle_input(ms(1000), Input::Data { exchange, bytes });
    relay.handle_input(ms(1000), Input::End { exchange, trailers: Vec::new() });
    let mut dials = Vec::new();
    let (mut kernel, mut acknowledged) = (0_u64, 0_u64);
    for at in (1000..90_000_u64).step_by(50) {
        let mut outputs = drain(&mut relay);
        relay.handle_input(ms(at), Input::Wake);
        outputs.extend(drain(&mut relay));
        dials.extend(dialled(&outputs).map(|_| at));
        for output in &outputs {
            if let Output::Transmit { bytes, .. } = output {
                kernel += bytes.len() as u64;
                let bytes = bytes.len();
                relay.handle_input(ms(at), Input::Sent { carrier: CARRIER, bytes });
            }
        }
        peer.takes(&outputs);
        // The link carries 1.2 bytes a millisecond, for forty seconds.
        if at < 40_000 {
            acknowledged = kernel.min((at - 1000) * 12 / 10 / 1448 * 1448);
        }
        let backlog_bytes = kernel - acknowledged;
        let transport = Transport { backlog_bytes, rtt: ms(900), ..Transport::default() };
        relay.handle_input(ms(at), Input::Transport { carrier: CARRIER, transport });
    }
    assert!(dials.first().is_some_and(|at| (42_000..60_000).contains(at)), "{dials:?}");
}

#[test]
fn a_carrier_that_goes_on_after_all_is_used_again() {
    let (mut relay, mut peer) = known();
    let (exchange, outputs) = asks(&mut relay, ms(1000), "GET", true);
    peer.takes(&outputs);
    let (fresh, at) = until_dialled(&mut relay, 1050, 60_000).unwrap();
    let outputs = peer.sends(&mut relay, ms(at + 10), CARRIER, &[response_frame(1, true)]);
    assert!(outputs.iter().any(|output| matches!(output, Output::Head { exchange: of, .. }
        if *of == exchange)));
    assert!(outputs.iter().any(|output| matches!(output, Output::Close { carrier, .. }
        if *carrier == fresh)));
    let (_, outputs) = asks(&mut relay, ms(at + 20), "GET", true);
    assert_eq!(peer.takes(&outputs).len(), 1);
    // The dial comes through all the same: nobody wants it any more.
    relay.handle_input(
        ms(at + 30),
        Input::CarrierUp { carrier: fresh, kind: CarrierKind::FIRST, peer: "peer".into() },
    );
    assert!(matches!(drain(&mut relay)[..], [Output::Close { carrier, .. }] if carrier == fresh));
}

#[test]
fn idle_carriers_are_looked_after_at_a_slow_pace_by_both_sides() {
    for role in [Role::Edge, Role::Gateway] {
        let (mut relay, mut peer) = match role {
            Role::Edge => known(),
            Role::Gateway => {
                let mut relay = Relay::new(Config::new(role, 9));
                let peer = Peer::new(Role::Edge, 1);
                let (mut peer, outputs) = connect_to(&mut relay, ms(0), CARRIER, peer);
                pongs(&mut relay, &mut peer, ms(100), &outputs);
                (relay, peer)
            }
        };
        let (mut pings, mut closed) = (Vec::new(), None);
        for at in (1000..400_000_u64).step_by(100) {
            relay.handle_input(ms(at), Input::Wake);
            let outputs = drain(&mut relay);
            acknowledged(&mut relay, ms(at));
            if outputs.iter().any(|output| matches!(output, Output::Transmit { .. })) {
                pings.push(at);
                if at < 200_000 {
                    pongs(&mut relay, &mut peer, ms(at + 50), &outputs);
                }
            }
            let close = outputs.iter().any(|output| matches!(output, Output::Close { .. }));
            closed = closed.or(close.then_some(at));
        }
        assert!(pings.len() <= 5, "{role:?} {pings:?}");
        assert!(closed.is_some_and(|at| (240_000..360_000).contains(&at)), "{role:?} {closed:?}");
    }
}

#[test]
fn where_the_gateway_refuses_who_waits_hears_so_at_once_and_who_comes_later_too() {
    let mut relay = Relay::new(Config::new(Role::Edge, 1));
    let (_, outputs) = asks(&mut relay, ms(0), "GET", true);
    assert!(dialled(&outputs).is_some());
    assert_eq!(
        abort(&fails(&mut relay, 5, DialFailure::Refused)),
        (CauseKind::GatewayUnreachable, true)
    );
    let (_, outputs) = asks(&mut relay, ms(10), "POST", false);
    let Some(Output::Abort { cause, untouched: true, .. }) = outputs.first() else {
        panic!("{outputs:?}");
    };
    assert_eq!(cause.reason, "cannot reach the gateway: why");
    // It is dialled again, but not with each request.
    let (_, at) = until_dialled(&mut relay, 50, 60_000).unwrap();
    assert!(at >= 250, "{at}");
}

#[test]
fn where_nobody_listens_a_little_patience_comes_first_and_then_none() {
    let mut relay = Relay::new(Config::new(Role::Edge, 1));
    asks(&mut relay, ms(0), "GET", true);
    let mut at = 0;
    while at < 2000 {
        assert!(
            !fails(&mut relay, at, DialFailure::Unreachable)
                .iter()
                .any(|output| matches!(output, Output::Abort { .. })),
            "{at}"
        );
        at = until_dialled(&mut relay, at + 50, 60_000).unwrap().1;
    }
    assert!(at < 4000, "{at}");
    assert!(abort(&fails(&mut relay, at, DialFailure::Unreachable)).1);
    let (_, outputs) = asks(&mut relay, ms(at + 10), "GET", true);
    assert!(abort(&outputs).1);
    // One that is there ends it.
    let (carrier, at) = until_dialled(&mut relay, at + 50, 60_000).unwrap();
    connect(&mut relay, ms(at), carrier, Role::Gateway, 9);
    assert!(relay.standing().is_ok());
    let (_, outputs) = asks(&mut relay, ms(at + 1), "GET", true);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Abort { .. })));
}

#[test]
fn where_the_gateway_is_silent_requests_wait_unless_they_have_another_way() {
    let mut relay = Relay::new(Config::new(Role::Edge, 1));
    asks(&mut relay, ms(0), "GET", true);
    assert!(
        fails(&mut relay, 10_000, DialFailure::Silent)
            .iter()
            .all(|output| !matches!(output, Output::Abort { .. }))
    );
    let (_, outputs) = asks(&mut relay, ms(10_100), "GET", true);
    assert!(outputs.iter().all(|output| !matches!(output, Output::Abort { .. })));
    let (_, outputs) = asks_with_another_way(&mut relay, ms(10_100));
    assert_eq!(abort(&outputs), (CauseKind::GatewayUnreachable, true));
    // Who comes long after it fell silent waits no longer than a carrier takes.
    relay.handle_input(ms(60_000), Input::Wake);
    drain(&mut relay);
    asks(&mut relay, ms(60_100), "GET", true);
    relay.handle_input(ms(60_900), Input::Wake);
    assert!(drain(&mut relay).iter().all(|output| !matches!(output, Output::Abort { .. })));
    relay.handle_input(ms(64_000), Input::Wake);
    assert!(abort(&drain(&mut relay)).1);
}

/// A body is kept until the answer begins: what never came to the gateway is sent again.
#[test]
fn a_short_body_that_went_into_an_outage_is_sent_again_and_a_long_one_stays_where_it_was() {
    for (len, again) in [(500, true), (100_000, false)] {
        let (mut relay, mut peer) = known();
        let (exchange, _) = asks(&mut relay, ms(1000), "POST", false);
        let body = Bytes::from(vec![b'x'; len]);
        relay.handle_input(ms(1000), Input::Data { exchange, bytes: body.clone() });
        relay.handle_input(ms(1000), Input::End { exchange, trailers: Vec::new() });
        peer.takes(&drain(&mut relay));
        let (carrier, at) = until_dialled(&mut relay, 1050, 60_000).unwrap();
        let gateway = Peer::new(Role::Gateway, 9);
        let (mut fresh, outputs) = connect_to(&mut relay, ms(at), carrier, gateway);
        let asked = fresh.takes(&outputs).contains(&Part::Query(exchange.number, 1));
        assert_eq!(asked, again);
        if again {
            let unseen = Part::Outcome(exchange.number, OutcomeState::NotSeen);
            let outputs = fresh.sends(&mut relay, ms(at + 10), carrier, &[unseen]);
            let frames = fresh.takes(&outputs);
            let [Part::Head(_), Part::Data(data), ..] = &frames[..] else { panic!("{frames:?}") };
            assert!(data.end && data.bytes == body);
        }
    }
}

/// What was not sent of a request is let go when the carrier breaks on which it was asked about:
/// then it cannot go on where it came from, and nobody waits for that.
#[test]
fn what_was_asked_about_in_vain_does_not_go_on_where_it_came_from() {
    let (mut relay, mut peer) = known();
    let (exchange, _) = asks(&mut relay, ms(1000), "POST", false);
    relay.handle_input(ms(1000), Input::Data { exchange, bytes: vec![b'x'; 500].into() });
    relay.handle_input(ms(1000), Input::End { exchange, trailers: Vec::new() });
    peer.takes(&drain(&mut relay));
    let (carrier, at) = until_dialled(&mut relay, 1050, 60_000).unwrap();
    let gateway = || Peer::new(Role::Gateway, 9);
    let (mut fresh, outputs) = connect_to(&mut relay, ms(at), carrier, gateway());
    assert!(fresh.takes(&outputs).contains(&Part::Query(exchange.number, 1)));
    relay.handle_input(ms(at + 10), Input::CarrierDown { carrier, reason: "reset".into() });
    drain(&mut relay);
    let (carrier, at) = until_dialled(&mut relay, at + 20, at + 60_000).unwrap();
    let (mut fresh, outputs) = connect_to(&mut relay, ms(at), carrier, gateway());
    assert!(fresh.takes(&outputs).contains(&Part::Query(exchange.number, 2)));
    let unfinished = Part::Outcome(exchange.number, OutcomeState::Unfinished);
    let outputs = fresh.sends(&mut relay, ms(at + 10), carrier, &[unfinished]);
    assert_eq!(abort(&outputs).0, CauseKind::OutcomeUnknown);
}

/// What is late on the old carrier must not be forwarded: the edge was told that it never came.
#[test]
fn beside_another_carrier_a_request_that_was_asked_about_is_not_taken_late() {
    let config = Config { max_exchanges: 8, ..Config::new(Role::Gateway, 9) };
    let (mut relay, mut old) = connected(config, 1);
    let fresh = CarrierId(1);
    let (mut peer, _) = connect_to(&mut relay, ms(1), fresh, Peer::new(Role::Edge, 1));
    assert_eq!(relay.load().carriers, 2, "the older carrier stays");
    let outputs = peer.sends(&mut relay, ms(2), fresh, &[Part::Query(5, 1)]);
    assert_eq!(peer.takes(&outputs), vec![Part::Outcome(5, OutcomeState::NotSeen)]);
    let late = request_frame(5);
    let outputs = old.sends(&mut relay, ms(3), CARRIER, std::slice::from_ref(&late));
    assert!(!outputs.iter().any(|output| matches!(output, Output::Head { .. })), "{outputs:?}");
    let outputs = peer.sends(&mut relay, ms(4), fresh, &[late]);
    assert!(outputs.iter().any(|output| matches!(output, Output::Head { .. })), "{outputs:?}");
}

/// The count of a gateway that drains is of requests that came over that carrier: one that was sent
/// on another, and was only asked about here, is not among them, and must not be sent again.
#[test]
fn what_a_carrier_drained_says_nothing_of_what_was_sent_on_another() {
    let (mut relay, mut peer) = known();
    let (first, outputs) = asks(&mut relay, ms(1000), "GET", true);
    peer.takes(&outputs);
    peer.sends(&mut relay, ms(1050), CARRIER, &[response_frame(first.number, true)]);
    let (exchange, outputs) = asks(&mut relay, ms(1100), "POST", true);
    peer.takes(&outputs);
    acknowledged(&mut relay, ms(1100));
    let (carrier, at) = until_dialled(&mut relay, 1150, 60_000).unwrap();
    let (mut fresh, outputs) = connect_to(&mut relay, ms(at), carrier, Peer::new(Role::Gateway, 9));
    assert!(fresh.takes(&outputs).contains(&Part::Query(exchange.number, 1)));
    relay.handle_input(ms(at + 1), Input::CarrierDown { carrier: CARRIER, reason: "reset".into() });
    let here = Part::Outcome(exchange.number, OutcomeState::Answer);
    fresh.sends(&mut relay, ms(at + 2), carrier, &[here]);
    let outputs = fresh.sends(&mut relay, ms(at + 3), carrier, &drain::drained(0));
    let is_wrong = |output: &Output| matches!(output, Output::Abort { .. } | Output::Dial { .. });
    assert!(!outputs.iter().any(is_wrong), "{outputs:?}");
    let answer = [response_frame(exchange.number, true)];
    let outputs = fresh.sends(&mut relay, ms(at + 4), carrier, &answer);
    assert!(outputs.iter().any(|output| matches!(output, Output::Head { .. })), "{outputs:?}");
}

/// What was sent last before a link went down shows that it is down, though nobody waits: then a
/// carrier is there, or under way, when somebody does.
#[test]
fn what_is_not_acknowledged_is_looked_after_though_nobody_waits() {
    let (mut relay, mut peer) = known();
    let transport = Transport { rtt: ms(900), ..Transport::default() };
    relay.handle_input(ms(500), Input::Transport { carrier: CARRIER, transport });
    let (exchange, outputs) = asks(&mut relay, ms(1000), "GET", true);
    peer.takes(&outputs);
    peer.sends(&mut relay, ms(2000), CARRIER, &[response_frame(exchange.number, true)]);
    assert_eq!(relay.load().exchanges, 0);
    // The transport keeps something, and tries again ever more rarely.
    let mut found = None;
    for at in (2000..20_000_u64).step_by(50) {
        relay.handle_input(ms(at), Input::Wake);
        let outputs = drain(&mut relay);
        if let Some(carrier) = dialled(&outputs) {
            found = Some((carrier, at));
            break;
        }
        let timeouts = u32::from(at > 4000) + u32::from(at > 6000);
        for output in &outputs {
            if matches!(output, Output::Measure { .. }) {
                let transport =
                    Transport { rtt: ms(900), timeouts, backlog_bytes: 60, ..Transport::default() };
                relay.handle_input(ms(at), Input::Transport { carrier: CARRIER, transport });
            }
        }
    }
    let (slow, at) = found.unwrap();
    assert!((6000..9000).contains(&at), "{at}");
    assert_eq!(relay.dial_pace(CarrierKind::FIRST), Duration::from_secs(3));
    // Somebody comes: attempts follow each other at once, and more closely.
    let (_, outputs) = asks(&mut relay, ms(at + 100), "GET", true);
    let closed =
        |output: &Output| matches!(output, Output::Close { carrier, .. } if *carrier == slow);
    relay.handle_input(ms(at + 400), Input::Wake);
    let later = drain(&mut relay);
    assert!(outputs.iter().any(closed), "{outputs:?}");
    assert!(dialled(&outputs).or(dialled(&later)).is_some_and(|other| other != slow));
    assert_eq!(relay.dial_pace(CarrierKind::FIRST), Duration::from_millis(250));
}

/// A request that may be repeated, and whose gateway was killed before it could be asked about it.
#[test]
fn a_request_with_another_way_does_not_wait_for_word_of_a_dead_gateway() {
    let (mut relay, mut peer) = known();
    let (_, outputs) = asks_with_another_way(&mut relay, ms(1000));
    peer.takes(&outputs);
    relay.handle_input(ms(1500), Input::CarrierDown { carrier: CARRIER, reason: "gone".into() });
    let mut at = 1500;
    let reported = loop {
        at += 100;
        assert!(at < 6000, "it waits for a word");
        relay.handle_input(ms(at), Input::Wake);
        let outputs = drain(&mut relay);
        if dialled(&outputs).is_some() {
            let outputs = fails(&mut relay, at + 20, DialFailure::Unreachable);
            if outputs.iter().any(|output| matches!(output, Output::Abort { .. })) {
                break abort(&outputs);
            }
        }
    };
    assert_eq!(reported, (CauseKind::GatewayUnreachable, true));
}
