//! A gateway that shuts down, and which requests it has not taken.

use proto::control::Drained;

use super::*;

pub(super) fn drained(requests: u64) -> [Part; 2] {
    [Part::GoAway, Drained { requests }.part()]
}

fn ignored(relay: &mut Relay, carrier: CarrierId, frames: &[Part]) -> Vec<String> {
    let mut bytes = Vec::new();
    frames.iter().cloned().for_each(|part| Frame::from(part).encode(&mut bytes));
    relay.handle_input(ms(9), Input::Received { carrier, bytes: bytes.into() });
    let outputs = std::iter::from_fn(|| relay.poll_output());
    let reported = outputs.filter_map(|output| match output {
        Output::Event(Event { fact: Fact::Ignored { what, reason }, .. }) => {
            assert_eq!(what, "drained");
            Some(reason)
        }
        Output::Abort { .. } | Output::Close { .. } => panic!("{output:?}"),
        _ => None,
    });
    reported.collect()
}

/// The edge after two requests, of which the gateway says that it took the first.
fn one_taken(method: &str, end: bool) -> (Relay, Vec<Output>, CarrierId) {
    let (mut relay, mut old) = edge();
    let (_, outputs) = asks(&mut relay, ms(0), "POST", true);
    assert_eq!(old.takes(&outputs).len(), 1);
    let (_, outputs) = asks(&mut relay, ms(1), method, end);
    assert_eq!(old.takes(&outputs).len(), 1);
    let outputs = old.sends(&mut relay, ms(100), CARRIER, &drained(1));
    relay.handle_input(ms(1000), Input::Wake);
    let later = drain(&mut relay);
    let dial = outputs.iter().chain(&later).find_map(|output| match output {
        Output::Dial { carrier, .. } => Some(*carrier),
        _ => None,
    });
    (relay, outputs, dial.unwrap())
}

#[test]
fn a_gateway_that_shuts_down_tells_how_many_requests_it_took() {
    let (mut relay, mut peer) = gateway();
    // Exchanges need not come in the order of their numbers.
    peer.sends(&mut relay, ms(0), CARRIER, &[request_frame(7), request_frame(5)]);
    relay.handle_input(ms(1), Input::Shutdown);
    assert_eq!(peer.takes(&drain(&mut relay)), drained(2));
    let outputs = peer.sends(&mut relay, ms(2), CARRIER, &[request_frame(6)]);
    assert!(matches!(&peer.takes(&outputs)[..], [Part::Abort(abort)]
        if abort.code == CauseKind::NotForwarded.to_wire()));
    relay.handle_input(ms(3), Input::Shutdown);
    assert_eq!(peer.takes(&drain(&mut relay)), drained(2), "what came later was not taken");
}

#[test]
fn what_a_gateway_did_not_take_goes_to_the_next_and_is_not_unknown() {
    let (mut relay, outputs, carrier) = one_taken("POST", true);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Abort { .. })), "{outputs:?}");
    let (mut next, outputs) =
        connect_to(&mut relay, ms(1001), carrier, Peer::new(Role::Gateway, 10));
    assert!(matches!(&next.takes(&outputs)[..], [Part::Head(head)] if head.exchange == 2));
    // Of the one that it took nobody can tell if its answer does not come.
    relay.handle_input(ms(2000), Input::CarrierDown { carrier: CARRIER, reason: "reset".into() });
    let outputs = drain(&mut relay);
    assert_eq!(abort(&outputs).0, CauseKind::OutcomeUnknown);
    let answer = [response_frame(2, true)];
    let outputs = next.sends(&mut relay, ms(2001), carrier, &answer);
    assert!(outputs.iter().any(|output| matches!(output, Output::Head { end: true, .. })));
}

#[test]
fn what_cannot_be_sent_again_is_said_to_be_safe_to_repeat() {
    let (relay, outputs, _) = one_taken("CONNECT", false);
    assert_eq!(abort(&outputs), (CauseKind::NotForwarded, false));
    assert_eq!(relay.load().exchanges, 1);
}

#[test]
fn a_request_of_which_nothing_has_left_moves_with_its_body() {
    let (mut relay, mut old) = edge();
    let (exchange, outputs) = asks(&mut relay, ms(0), "POST", false);
    relay.handle_input(ms(1), Input::Data { exchange, bytes: "half ".into() });
    assert!(old.takes(&outputs).is_empty() && old.takes(&drain(&mut relay)).is_empty());
    let outputs = old.sends(&mut relay, ms(2), CARRIER, &[Part::GoAway]);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Abort { .. })));
    relay.handle_input(ms(3), Input::Data { exchange, bytes: "done".into() });
    relay.handle_input(ms(3), Input::End { exchange, trailers: Vec::new() });
    assert!(old.takes(&drain(&mut relay)).is_empty(), "the old gateway would refuse it");
    relay.handle_input(ms(1000), Input::Wake);
    let outputs = drain(&mut relay);
    let Some(Output::Dial { carrier, .. }) = outputs.first() else { panic!("{outputs:?}") };
    let (mut next, outputs) =
        connect_to(&mut relay, ms(1001), *carrier, Peer::new(Role::Gateway, 10));
    let frames = next.takes(&outputs);
    let [Part::Head(_), Part::Data(data)] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!((&data.bytes[..], data.end), (&b"half done"[..], true));
}

/// What the gateway took on a carrier that broke counts on no other.
#[test]
fn a_request_that_was_asked_about_stays_where_it_was_found() {
    let (mut relay, mut peer, exchange, outputs) = reconnected("POST", 9);
    assert_eq!(peer.takes(&outputs), vec![Part::Query(exchange.number, 1)]);
    let [goaway, none] = drained(0);
    let found = Part::Outcome(exchange.number, OutcomeState::Answer);
    let outputs = peer.sends(&mut relay, ms(2000), CarrierId(1), &[found, goaway, none]);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Dial { .. })), "{outputs:?}");
    let answer = [response_frame(exchange.number, true)];
    let outputs = peer.sends(&mut relay, ms(2001), CarrierId(1), &answer);
    assert!(outputs.iter().any(|output| matches!(output, Output::Head { end: true, .. })));
}

#[test]
fn a_count_of_drained_requests_that_cannot_be_true_is_ignored() {
    let (mut relay, mut old) = edge();
    let (first, outputs) = asks(&mut relay, ms(0), "GET", true);
    old.takes(&outputs);
    let [goaway, none] = drained(0);
    assert_eq!(ignored(&mut relay, CARRIER, &[none]).len(), 1, "before GOAWAY");
    let junk = Part::Control(Drained::KIND, Bytes::from_static(b"\x01more"));
    let [_, two] = drained(2);
    assert_eq!(ignored(&mut relay, CARRIER, &[goaway, two, junk]).len(), 2);
    let answer = response_frame(first.number, false);
    assert!(ignored(&mut relay, CARRIER, std::slice::from_ref(&answer)).is_empty());
    // It has taken what it answers, whatever it says.
    let [_, none] = drained(0);
    assert!(ignored(&mut relay, CARRIER, &[none]).is_empty());
    assert_eq!(relay.load().exchanges, 1);

    let (mut relay, _) = gateway();
    assert_eq!(ignored(&mut relay, CARRIER, &drained(0)).len(), 1, "of an edge");
}

/// One that was sent twice, lest its first gateway died over it, may have been carried out.
#[test]
fn a_repetition_that_is_refused_is_not_said_to_be_safe() {
    let (mut relay, mut next, exchange, outputs) = reconnected("GET", 10);
    assert!(matches!(&next.takes(&outputs)[..], [Part::Head(_)]));
    let code = CauseKind::Limit.to_wire();
    let refusal = Part::Abort(Abort { exchange: exchange.number, code, reason: "full".into() });
    let outputs = next.sends(&mut relay, ms(1100), CarrierId(1), &[refusal]);
    assert_eq!(abort(&outputs).0, CauseKind::OutcomeUnknown);
}

/// A service manager waits for the end of the old gateway before it starts the next.
#[test]
fn who_has_no_other_way_waits_for_the_next_gateway_but_not_for_long() {
    let (mut relay, mut old) = edge();
    old.sends(&mut relay, ms(1000), CARRIER, &drained(0));
    let (waits, mut outputs) = asks(&mut relay, ms(1100), "POST", true);
    assert!(old.takes(&outputs).is_empty());
    let aborted = |outputs: &[Output]| {
        let aborts = outputs.iter().filter_map(|output| match output {
            Output::Abort { exchange, cause, .. } => Some((*exchange, cause.kind)),
            _ => None,
        });
        aborts.collect::<Vec<_>>()
    };
    let mut other = None;
    for at in (1100..20_000_u64).step_by(50) {
        relay.handle_input(ms(at), Input::Wake);
        outputs.extend(drain(&mut relay));
        if at == 5000 {
            let (exchange, more) = asks_with_another_way(&mut relay, ms(at));
            assert_eq!(aborted(&more), [(exchange, CauseKind::GatewayUnreachable)]);
            let others = more.into_iter().filter(|one| !matches!(one, Output::Abort { .. }));
            outputs.extend(others);
            other = Some(exchange);
        }
        if outputs.iter().any(|output| matches!(output, Output::Dial { .. })) {
            let (carrier, reason) = (relay.dialer.next_dialled(), "nobody listens".to_owned());
            let failure = DialFailure::Unreachable;
            relay.handle_input(ms(at), Input::DialFailed { carrier, failure, reason });
            outputs.extend(drain(&mut relay));
        }
        let found = aborted(&std::mem::take(&mut outputs));
        if !found.is_empty() {
            assert_eq!(found, [(waits, CauseKind::GatewayUnreachable)]);
            assert!(other.is_some() && (11_000..12_500).contains(&at), "{at}");
            return;
        }
    }
    panic!("it waits on");
}
