//! Carriers that break and gateways that go: what is sent again, what is not, and who waits.

use super::*;

fn breaks(relay: &mut Relay, now: Duration, carrier: CarrierId) -> Vec<Output> {
    relay.handle_input(now, Input::CarrierDown { carrier, reason: "reset".into() });
    drain(relay)
}

/// The edge dials when it is due and gets this gateway.
fn redials(relay: &mut Relay, now: Duration, gateway: Peer) -> (CarrierId, Peer, Vec<Output>) {
    relay.handle_input(now, Input::Wake);
    let outputs = drain(relay);
    let Some(Output::Dial { carrier, .. }) =
        outputs.iter().find(|o| matches!(o, Output::Dial { .. }))
    else {
        panic!("no dial in {outputs:?}");
    };
    let carrier = *carrier;
    let (peer, outputs) = connect_to(relay, now, carrier, gateway);
    (carrier, peer, outputs)
}

/// Nothing happens but that it is looked how the transport gets on.
fn still(outputs: &[Output]) -> bool {
    outputs.iter().all(|output| matches!(output, Output::Measure { .. }))
}

fn puts_with_expectation(relay: &mut Relay, peer: &mut Peer) -> ExchangeId {
    let exchange = relay.next_exchange();
    let head = request("PUT", &[("expect", "100-continue")]);
    relay.handle_input(ms(0), local(exchange, head, false));
    assert_eq!(peer.takes(&drain(relay)).len(), 1);
    exchange
}

/// An empty PUT in its place would destroy what the client meant to replace.
#[test]
fn a_body_that_was_still_to_come_is_not_sent_as_an_empty_one() {
    let (mut relay, mut peer) = edge();
    puts_with_expectation(&mut relay, &mut peer);
    breaks(&mut relay, ms(10), CARRIER);
    let gateway = Peer::new(Role::Gateway, 10);
    let (_, mut peer, outputs) = redials(&mut relay, ms(1000), gateway);
    assert!(peer.takes(&outputs).is_empty(), "{outputs:?}");
    assert_eq!(abort(&outputs), (CauseKind::OutcomeUnknown, false));

    let (mut relay, mut peer) = edge();
    let exchange = puts_with_expectation(&mut relay, &mut peer);
    breaks(&mut relay, ms(10), CARRIER);
    let gateway = Peer::new(Role::Gateway, 9);
    let (carrier, mut peer, outputs) = redials(&mut relay, ms(1000), gateway);
    assert_eq!(peer.takes(&outputs), vec![Part::Query(exchange.number, 1)]);
    let unseen = Part::Outcome(exchange.number, OutcomeState::NotSeen);
    let outputs = peer.sends(&mut relay, ms(1100), carrier, &[unseen]);
    assert!(peer.takes(&outputs).is_empty());
    assert_eq!(abort(&outputs), (CauseKind::NotForwarded, false));
}

#[test]
fn a_request_whose_head_never_left_waits_for_the_next_carrier_with_its_body() {
    let (mut relay, mut peer) = edge();
    let (exchange, outputs) = asks(&mut relay, ms(0), "POST", false);
    assert!(peer.takes(&outputs).is_empty());
    relay.handle_input(ms(1), Input::Data { exchange, bytes: Bytes::from_static(b"half ") });
    assert!(breaks(&mut relay, ms(2), CARRIER).is_empty());
    relay.handle_input(ms(3), Input::Data { exchange, bytes: Bytes::from_static(b"done") });
    relay.handle_input(ms(3), Input::End { exchange, trailers: Vec::new() });
    let gateway = Peer::new(Role::Gateway, 10);
    let (_, mut peer, outputs) = redials(&mut relay, ms(1000), gateway);
    let frames = peer.takes(&outputs);
    let [Part::Head(_), Part::Data(data)] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!((&data.bytes[..], data.end), (&b"half done"[..], true));
}

#[test]
fn a_request_that_waits_with_body_taken_does_not_count_as_untouched() {
    let (mut relay, mut peer) = edge();
    let (exchange, outputs) = asks(&mut relay, ms(0), "POST", false);
    assert!(peer.takes(&outputs).is_empty());
    relay.handle_input(ms(1), Input::Data { exchange, bytes: Bytes::from_static(b"half ") });
    breaks(&mut relay, ms(2), CARRIER);
    relay.handle_input(ms(30_002), Input::Wake);
    assert_eq!(abort(&drain(&mut relay)), (CauseKind::GatewayUnreachable, false));
}

#[test]
fn a_place_that_comes_free_is_taken_however_it_came_free() {
    let mut relay = Relay::new(Config::new(Role::Edge, 1));
    let gateway = Peer::with(Role::Gateway, 9, 1, 100_000);
    let (carrier, mut peer, _) = redials(&mut relay, ms(0), gateway);
    let (first, outputs) = asks(&mut relay, ms(1), "GET", true);
    assert_eq!(peer.takes(&outputs).len(), 1);
    let (second, outputs) = asks(&mut relay, ms(2), "GET", true);
    assert!(peer.takes(&outputs).is_empty());
    let cause = Cause { kind: CauseKind::ClientGone, reason: "left".into() };
    relay.handle_input(ms(3), Input::Abort { exchange: first, cause });
    let frames = peer.takes(&drain(&mut relay));
    assert!(matches!(&frames[..], [Part::Abort(_), Part::Head(_)]), "{frames:?}");
    let (_, outputs) = asks(&mut relay, ms(4), "GET", true);
    assert!(peer.takes(&outputs).is_empty());
    let number = second.number;
    let refusal = Part::Abort(Abort { exchange: number, code: 2, reason: "reset".into() });
    let outputs = peer.sends(&mut relay, ms(5), carrier, &[refusal]);
    assert!(matches!(&peer.takes(&outputs)[..], [Part::Head(_)]));
}

#[test]
fn a_question_waits_for_its_place_too() {
    let (mut relay, mut peer) = edge();
    for _ in 0..2 {
        let (_, outputs) = asks(&mut relay, ms(0), "POST", true);
        peer.takes(&outputs);
    }
    breaks(&mut relay, ms(10), CARRIER);
    let gateway = Peer::with(Role::Gateway, 9, 1, 100_000);
    let (carrier, mut peer, outputs) = redials(&mut relay, ms(1000), gateway);
    assert_eq!(peer.takes(&outputs), vec![Part::Query(1, 1)]);
    let lost = Part::Outcome(1, OutcomeState::Lost(200));
    let outputs = peer.sends(&mut relay, ms(1100), carrier, &[lost]);
    assert_eq!(abort(&outputs).0, CauseKind::AnswerLost);
    assert_eq!(peer.takes(&outputs), vec![Part::Query(2, 1)]);
}

#[test]
fn a_client_that_leaves_withdraws_its_question() {
    let (mut relay, mut peer, exchange, outputs) = reconnected("POST", 9);
    assert_eq!(peer.takes(&outputs), vec![Part::Query(exchange.number, 1)]);
    let cause = Cause { kind: CauseKind::ClientGone, reason: "left".into() };
    relay.handle_input(ms(2000), Input::Abort { exchange, cause });
    let frames = peer.takes(&drain(&mut relay));
    assert!(matches!(&frames[..], [Part::Abort(_)]), "{frames:?}");
    assert!(relay.transfer.carriers.values().all(|carrier| carrier.exchanges.is_empty()));
}

#[test]
fn patience_withdraws_a_question_and_gives_back_its_place() {
    let (mut relay, mut peer, exchange, outputs) = reconnected("POST", 9);
    assert_eq!(peer.takes(&outputs), vec![Part::Query(exchange.number, 1)]);
    relay.handle_input(ms(30_010), Input::Wake);
    let outputs = drain(&mut relay);
    assert_eq!(abort(&outputs).0, CauseKind::OutcomeUnknown);
    assert!(matches!(&peer.takes(&outputs)[..], [Part::Abort(_)]));
    assert!(relay.transfer.carriers.values().all(|carrier| carrier.exchanges.is_empty()));
}

#[test]
fn beside_a_gateway_that_goes_away_the_next_is_dialled() {
    let (mut relay, mut old) = edge();
    let (first, outputs) = asks(&mut relay, ms(0), "GET", true);
    old.takes(&outputs);
    old.sends(&mut relay, ms(5), CARRIER, &[Part::GoAway]);
    let (second, outputs) = asks(&mut relay, ms(6), "GET", true);
    assert!(old.takes(&outputs).is_empty());
    let [Output::Dial { carrier, .. }] = outputs[..] else { panic!("{outputs:?}") };
    let next = Peer::new(Role::Gateway, 10);
    let (mut next, outputs) = connect_to(&mut relay, ms(9), carrier, next);
    assert!(matches!(&next.takes(&outputs)[..], [Part::Head(head)]
        if head.exchange == second.number));
    // The old one finishes what it has, then it is let go.
    let answer = response_frame(first.number, true);
    let outputs = old.sends(&mut relay, ms(20), CARRIER, &[answer]);
    assert!(outputs.iter().any(|output| matches!(output, Output::Head { end: true, .. })));
    assert!(matches!(outputs.last(), Some(Output::Close { carrier: CARRIER, .. })));
    let outputs = next.sends(&mut relay, ms(30), carrier, &[response_frame(2, true)]);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Close { .. })));
    assert!(relay.is_idle() && relay.load().carriers == 1);
}

#[test]
fn beside_the_next_gateway_nobody_waits_for_the_one_that_went() {
    for (method, repeated) in [("GET", true), ("POST", false)] {
        let (mut relay, mut old) = edge();
        let (_, outputs) = asks(&mut relay, ms(0), method, true);
        old.takes(&outputs);
        old.sends(&mut relay, ms(5), CARRIER, &[Part::GoAway]);
        let gateway = Peer::new(Role::Gateway, 10);
        let (_, mut next, _) = redials(&mut relay, ms(1000), gateway);
        let outputs = breaks(&mut relay, ms(2000), CARRIER);
        assert_eq!(next.takes(&outputs).len(), usize::from(repeated));
        if !repeated {
            assert_eq!(abort(&outputs).0, CauseKind::OutcomeUnknown);
        }
    }
}

#[test]
fn a_gateway_that_is_shutting_down_keeps_the_older_carrier() {
    let (mut relay, mut peer) = gateway();
    peer.sends(&mut relay, ms(0), CARRIER, &[request_frame(5)]);
    relay.handle_input(ms(1), Input::Shutdown);
    peer.takes(&drain(&mut relay));
    let edge = Peer::new(Role::Edge, 1);
    let (mut second, outputs) = connect_to(&mut relay, ms(2), CarrierId(1), edge);
    assert_eq!(second.takes(&outputs), drain::drained(0));
    let answer = answers(&mut relay, ms(3), b"done");
    assert_eq!(peer.takes(&answer).len(), 2, "on the carrier it came on");
}

#[test]
fn what_was_refused_unforwarded_goes_elsewhere_but_not_for_ever() {
    let (mut relay, mut peer) = edge();
    let (exchange, outputs) = asks(&mut relay, ms(0), "POST", true);
    peer.takes(&outputs);
    let refusal = |kind: CauseKind| {
        let reason = "no".to_owned();
        Part::Abort(Abort { exchange: exchange.number, code: kind.to_wire(), reason })
    };
    for _ in 0..config::MAX_RESENDS {
        let frames = [refusal(CauseKind::NotForwarded)];
        let outputs = peer.sends(&mut relay, ms(1), CARRIER, &frames);
        assert!(matches!(&peer.takes(&outputs)[..], [Part::Head(_)]));
    }
    let outputs = peer.sends(&mut relay, ms(1), CARRIER, &[refusal(CauseKind::NotForwarded)]);
    assert_eq!(abort(&outputs).0, CauseKind::GatewayUnreachable);
    assert!(relay.is_idle());

    let (mut relay, mut peer) = edge();
    let (_, outputs) = asks(&mut relay, ms(0), "POST", true);
    peer.takes(&outputs);
    let outputs = peer.sends(&mut relay, ms(1), CARRIER, &[refusal(CauseKind::Limit)]);
    assert_eq!(abort(&outputs).0, CauseKind::Limit);
}

#[test]
fn a_gateway_that_shuts_down_refuses_what_was_under_way_before_it_ends() {
    let (mut relay, mut peer) = gateway();
    relay.handle_input(ms(0), Input::Shutdown);
    assert_eq!(peer.takes(&drain(&mut relay)), drain::drained(0));
    assert!(!relay.is_idle(), "the edge does not know yet");
    let outputs = peer.sends(&mut relay, ms(500), CARRIER, &[request_frame(5)]);
    assert!(matches!(&peer.takes(&outputs)[..], [Part::Abort(abort)]
        if abort.code == CauseKind::NotForwarded.to_wire()));
    relay.handle_input(ms(29_999), Input::Wake);
    assert!(still(&drain(&mut relay)) && !relay.is_idle());
    relay.handle_input(ms(30_000), Input::Wake);
    assert!(matches!(drain(&mut relay)[..], [Output::Close { carrier: CARRIER, .. }]));
    assert!(relay.is_idle());

    let (mut relay, _) = gateway();
    relay.handle_input(ms(0), Input::Shutdown);
    breaks(&mut relay, ms(700), CARRIER);
    assert!(relay.is_idle(), "the edge knows");
}

#[test]
fn while_shutting_down_the_outcome_is_still_asked_for() {
    let (mut relay, mut peer) = edge();
    let (exchange, outputs) = asks(&mut relay, ms(0), "POST", true);
    peer.takes(&outputs);
    relay.handle_input(ms(1), Input::Shutdown);
    breaks(&mut relay, ms(2), CARRIER);
    let gateway = Peer::new(Role::Gateway, 9);
    let (_, mut peer, outputs) = redials(&mut relay, ms(1000), gateway);
    assert!(peer.takes(&outputs).contains(&Part::Query(exchange.number, 1)));
}

fn heads(method: &str, fields: &[(&str, &str)], end: bool) -> Part {
    let Head::Request(request) = request(method, fields) else { unreachable!() };
    let mut head = Vec::new();
    request.encode(&mut head);
    Part::Head(HeadPart { exchange: 5, codec: 0, window_log: 0, end, head: head.into() })
}

#[test]
fn an_origin_hears_at_once_when_its_request_or_tunnel_breaks_off() {
    for frame in [heads("POST", &[], false), heads("CONNECT", &[], true)] {
        let (mut relay, mut peer) = gateway();
        peer.sends(&mut relay, ms(0), CARRIER, &[frame]);
        let outputs = breaks(&mut relay, ms(1), CARRIER);
        assert_eq!(abort(&outputs).0, CauseKind::CarrierLost);
        assert!(relay.is_idle());
    }
}

#[test]
fn the_directions_of_a_tunnel_end_apart() {
    let (mut relay, mut peer) = gateway();
    peer.sends(&mut relay, ms(0), CARRIER, &[heads("CONNECT", &[], false)]);
    let answer = answers(&mut relay, ms(3), b"bye");
    let frames = peer.takes(&answer);
    assert!(matches!(&frames[..], [Part::Head(_), Part::Data(data), ..] if data.bytes == "bye"));
    assert!(!frames.iter().any(|frame| matches!(frame, Part::Abort(_))), "{frames:?}");
    let bytes = Bytes::from_static(b"still here");
    let block_end = Some(bytes.len() as u64);
    let data = Part::Data(Data {
        exchange: 5,
        block_end,
        uncoded: true,
        anew: false,
        end: true,
        padding: None,
        bytes,
    });
    let exchange = ExchangeId { instance: 1, number: 5 };
    relay.handle_input(ms(4), Input::Credit { exchange, bytes: 100 });
    let outputs = peer.sends(&mut relay, ms(5), CARRIER, &[data]);
    assert!(matches!(&outputs[..], [Output::Data { .. }, Output::End { .. }]), "{outputs:?}");
    assert!(relay.is_idle());
}

#[test]
fn a_tunnel_that_came_whole_is_passed_on_though_its_carrier_ends() {
    let (mut relay, mut peer) = gateway();
    let bytes = Bytes::from_static(b"the last words");
    let block_end = Some(bytes.len() as u64);
    let data = Part::Data(Data {
        exchange: 5,
        block_end,
        uncoded: true,
        anew: false,
        end: true,
        padding: None,
        bytes,
    });
    peer.sends(&mut relay, ms(0), CARRIER, &[heads("CONNECT", &[], false), data]);
    answers(&mut relay, ms(3), b"bye");
    assert!(breaks(&mut relay, ms(4), CARRIER).is_empty());
    let exchange = ExchangeId { instance: 1, number: 5 };
    relay.handle_input(ms(5), Input::Credit { exchange, bytes: 100 });
    let outputs = drain(&mut relay);
    assert!(matches!(&outputs[..], [Output::Data { .. }, Output::End { .. }]), "{outputs:?}");
    assert!(relay.is_idle());
}

#[test]
fn who_reads_the_rest_of_a_tunnel_slowly_gets_all_of_it() {
    let to_be_read = || {
        let (mut relay, mut peer) = gateway();
        let bytes = Bytes::from(vec![7; 40]);
        let data = Data {
            exchange: 5,
            block_end: Some(40),
            uncoded: true,
            anew: false,
            end: true,
            padding: None,
            bytes,
        };
        let frames = [heads("CONNECT", &[], false), Part::Data(data)];
        peer.sends(&mut relay, ms(0), CARRIER, &frames);
        answers(&mut relay, ms(3), b"bye");
        breaks(&mut relay, ms(4), CARRIER);
        relay
    };
    let mut relay = to_be_read();
    let exchange = ExchangeId { instance: 1, number: 5 };
    let mut outputs = Vec::new();
    for at in 0..40 {
        relay.handle_input(ms(60_000 * (at + 1)), Input::Credit { exchange, bytes: 1 });
        outputs = drain(&mut relay);
        assert!(matches!(outputs[0], Output::Data { .. }), "{at}: {outputs:?}");
    }
    assert!(matches!(outputs[1..], [Output::End { .. }]), "{outputs:?}");

    // Who does not read at all is not waited for.
    let mut relay = to_be_read();
    relay.handle_input(ms(120_004), Input::Wake);
    assert_eq!(abort(&drain(&mut relay)).0, CauseKind::CarrierLost);
}

/// Its head waits for the body as ever, so that the codec is chosen by what there is.
#[test]
fn the_answer_to_a_request_that_expected_100_is_as_any() {
    let (mut relay, mut peer) = gateway();
    let head = heads("PUT", &[("expect", "100-continue")], false);
    peer.sends(&mut relay, ms(0), CARRIER, &[head]);
    let exchange = ExchangeId { instance: 1, number: 5 };
    let head = Head::Response(bhttp::Response { status: 200, fields: Vec::new() });
    relay.handle_input(ms(1), local(exchange, head, false));
    assert!(peer.takes(&drain(&mut relay)).is_empty());
}

/// As long as the carrier that it came on is there, it may still become whole.
#[test]
fn a_request_asked_about_before_it_was_whole_goes_on_where_it_came_or_is_given_up() {
    let (mut relay, mut peer) = gateway();
    let Part::Head(head) = request_frame(5) else { unreachable!() };
    let head = Part::Head(HeadPart { end: false, ..head });
    peer.sends(&mut relay, ms(0), CARRIER, &[head]);
    let edge = Peer::new(Role::Edge, 1);
    let (mut second, outputs) = connect_to(&mut relay, ms(2), CarrierId(1), edge);
    second.takes(&outputs);
    let outputs = second.sends(&mut relay, ms(3), CarrierId(1), &[Part::Query(5, 1)]);
    assert_eq!(second.takes(&outputs), vec![Part::Outcome(5, OutcomeState::Unfinished)]);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Abort { .. })));
    let outputs = breaks(&mut relay, ms(3), CARRIER);
    assert_eq!(abort(&outputs).0, CauseKind::CarrierLost);
    let outputs = second.sends(&mut relay, ms(3), CarrierId(1), &[Part::Query(5, 1)]);
    assert_eq!(second.takes(&outputs), vec![Part::Outcome(5, OutcomeState::Aborted)]);
}

/// An edge that breaks the rules may say that it repeats what must not be repeated.
#[test]
fn what_may_be_sent_again_after_it_was_given_up_is_never_a_post() {
    for between in [None, Some("GET")] {
        let config = Config { max_exchanges: 1, ..Config::new(Role::Gateway, 9) };
        let (mut relay, mut peer) = connected(config, 1);
        let forwarded = |outputs: &[Output]| {
            outputs.iter().filter(|output| matches!(output, Output::Head { .. })).count()
        };
        let outputs = peer.sends(&mut relay, ms(0), CARRIER, &[heads("POST", &[], false)]);
        assert_eq!(forwarded(&outputs), 1);
        breaks(&mut relay, ms(1), CARRIER);
        let edge = Peer::new(Role::Edge, 1);
        let (mut second, outputs) = connect_to(&mut relay, ms(2), CarrierId(1), edge);
        second.takes(&outputs);
        let outputs = second.sends(&mut relay, ms(3), CarrierId(1), &[Part::Query(5, 1)]);
        assert_eq!(second.takes(&outputs), vec![Part::Outcome(5, OutcomeState::Aborted)]);
        if let Some(method) = between {
            // The only place is another's: it is refused, and nothing is forgotten by that.
            let Part::Head(other) = heads("GET", &[], true) else { unreachable!() };
            let other = Part::Head(HeadPart { exchange: 6, ..other });
            second.sends(&mut relay, ms(4), CarrierId(1), &[other]);
            let again = heads(method, &[], true);
            let outputs = second.sends(&mut relay, ms(5), CarrierId(1), &[again]);
            assert_eq!(forwarded(&outputs), 0);
            second.takes(&outputs);
            let gone = Abort { exchange: 6, code: 0, reason: String::new() };
            second.sends(&mut relay, ms(6), CarrierId(1), &[Part::Abort(gone)]);
        }
        let again = heads("POST", &[], true);
        let outputs = second.sends(&mut relay, ms(7), CarrierId(1), &[again]);
        assert_eq!(forwarded(&outputs), 0, "{between:?}");
    }
}

#[test]
fn who_wakes_the_relay_early_is_given_the_time_again() {
    let mut relay = Relay::new(Config::new(Role::Gateway, 9));
    relay.handle_input(
        ms(0),
        Input::CarrierUp { carrier: CARRIER, kind: CarrierKind::FIRST, peer: "peer".into() },
    );
    let wakes = |relay: &mut Relay| {
        std::iter::from_fn(|| relay.poll_output()).any(|o| {
            matches!(o, Output::WakeAt(at)
            if at == ms(10_000))
        })
    };
    assert!(wakes(&mut relay));
    relay.handle_input(ms(9_999), Input::Wake);
    assert!(wakes(&mut relay));
}

#[test]
fn what_goes_uncoded_does_not_wait_for_more() {
    let (mut relay, mut peer) = edge();
    let (exchange, outputs) = asks(&mut relay, ms(0), "CONNECT", false);
    assert_eq!(peer.takes(&outputs).len(), 1, "the head of a tunnel goes at once");
    relay.handle_input(ms(5), Input::Data { exchange, bytes: Bytes::from_static(b"hello") });
    let frames = peer.takes(&drain(&mut relay));
    assert!(matches!(&frames[..], [Part::Data(data)] if data.bytes == "hello"), "{frames:?}");
}

#[test]
fn an_encoder_that_does_not_pay_gives_back_its_memory() {
    let (mut relay, mut peer) = edge();
    let (exchange, outputs) = asks(&mut relay, ms(0), "POST", false);
    peer.takes(&outputs);
    let noise: Vec<u8> =
        (0..70_000_u32).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
    relay.handle_input(ms(1), Input::Data { exchange, bytes: noise.into() });
    let outputs = drain(&mut relay);
    assert!(relay.load().codec_bytes > 0);
    // Nothing gets shorter.
    let done = |job: &Job| match job {
        Job::Encode(job) => {
            let (exchange, block, result) = (job.exchange, job.block, Ok(job.bytes.clone()));
            Done::Encoded { exchange, block, result, cpu: ms(1) }
        }
        Job::Try(job) => {
            let (exchange, result) = (job.exchange, Ok(job.bytes.clone()));
            Done::Tried { exchange, result, cpu: ms(1) }
        }
        other => panic!("{other:?}"),
    };
    let (mut jobs, mut others) = (VecDeque::new(), Vec::new());
    let mut sort = |outputs: Vec<Output>, jobs: &mut VecDeque<Job>| {
        for output in outputs {
            match output {
                Output::Job(job) => jobs.push_back(job),
                other => others.push(other),
            }
        }
    };
    sort(outputs, &mut jobs);
    let first = jobs.front();
    assert!(matches!(first, Some(Job::Encode(_))), "what is sent comes before probes: {first:?}");
    while let Some(job) = jobs.pop_front() {
        relay.handle_input(ms(2), Input::Done(done(&job)));
        sort(drain(&mut relay), &mut jobs);
    }
    let outputs = others;
    assert!(outputs.iter().any(|output| matches!(output, Output::Release { .. })));
    assert_eq!(relay.load().codec_bytes, 0);
    // The head may name a codec for what may come.
    assert!(matches!(&peer.takes(&outputs)[..], [Part::Head(_), Part::Data(data), ..]
        if data.uncoded));
}

#[test]
fn a_short_message_passes_the_long_ones() {
    let config =
        Config { encoding: Encoding::of("identity").unwrap(), ..Config::new(Role::Edge, 1) };
    let mut relay = Relay::new(config);
    let gateway = Peer::with(Role::Gateway, 9, 32, 1 << 20);
    let (carrier, mut peer, _) = redials(&mut relay, ms(0), gateway);
    let mut in_flight = Vec::new();
    for _ in 0..16 {
        let (exchange, outputs) = asks(&mut relay, ms(1), "POST", false);
        in_flight.extend(outputs);
        let bytes = Bytes::from(vec![7; 100_000]);
        relay.handle_input(ms(1), Input::Data { exchange, bytes });
        in_flight.extend(drain(&mut relay));
    }
    let mut next = |relay: &mut Relay, peer: &mut Peer| {
        let bytes = in_flight.iter().map(|output| match output {
            Output::Transmit { bytes, .. } => bytes.len(),
            _ => 0,
        });
        let bytes = bytes.sum();
        let frames = peer.takes(&std::mem::take(&mut in_flight));
        relay.handle_input(ms(2), Input::Sent { carrier, bytes });
        in_flight = drain(relay);
        frames
    };
    for _ in 0..40 {
        assert!(!next(&mut relay, &mut peer).is_empty(), "all are under way");
    }
    let (small, _) = asks(&mut relay, ms(3), "GET", true);
    next(&mut relay, &mut peer);
    let frames = next(&mut relay, &mut peer);
    let before = frames
        .iter()
        .position(|frame| matches!(frame, Part::Head(head) if head.exchange == small.number));
    assert!(before.is_some_and(|pieces| pieces <= 1), "{before:?} pieces went first");
}

/// An edge that does not take blocks with which a context begins anew asks for an answer that has
/// such: it hears that the answer is lost, and keeps its carrier.
#[test]
fn an_answer_that_began_anew_is_not_sent_to_who_cannot_read_it() {
    for (over, knows) in [(false, false), (false, true), (true, false), (true, true)] {
        let (mut relay, mut peer) = gateway();
        peer.sends(&mut relay, ms(0), CARRIER, &[request_frame(5)]);
        let exchange = ExchangeId { instance: 1, number: 5 };
        let mut log = outcomes::Log::default();
        let bytes = Bytes::from_static(b"coded");
        let (block_end, uncoded, anew, end) = (Some(9), false, true, over);
        log.push(&response_frame(5, false), 50);
        log.push(
            &Part::Data(Data { exchange: 5, block_end, uncoded, anew, end, padding: None, bytes }),
            10,
        );
        relay.handle_input(ms(1), Input::CarrierDown { carrier: CARRIER, reason: "cut".into() });
        if over {
            relay.transfer.note_answer(exchange, 200, log);
            relay.transfer.forget(ms(1), exchange);
        } else {
            let exchange = relay.transfer.exchanges.get_mut(&exchange).unwrap();
            (exchange.status, exchange.log) = (200, log);
        }
        drain(&mut relay);
        let mut peer = Peer::new(Role::Edge, 1);
        let Some(carrier::Output::Bytes(hello)) = peer.0.poll_output() else { panic!() };
        relay.handle_input(
            ms(2),
            Input::CarrierUp {
                carrier: CarrierId(1),
                kind: CarrierKind::FIRST,
                peer: "peer".into(),
            },
        );
        peer.takes(&drain(&mut relay));
        let hello = if knows { hello } else { without_anew(hello) };
        relay.handle_input(ms(3), Input::Received { carrier: CarrierId(1), bytes: hello });
        peer.takes(&drain(&mut relay));
        let outputs = peer.sends(&mut relay, ms(4), CarrierId(1), &[Part::Query(5, 1)]);
        let frames = peer.takes(&outputs);
        let state = match &frames[..] {
            [Part::Outcome(5, state), rest @ ..] => {
                assert_eq!(rest.len(), if knows { 2 } else { 0 }, "{frames:?}");
                state
            }
            _ => panic!("{frames:?}"),
        };
        assert_eq!(*state == OutcomeState::Answer, knows, "{frames:?}");
    }
}

/// A gateway that has a request over the first carrier, and two more carriers of the same edge; the
/// edge asked on the second, which stalls, and then on the third. It numbers its questions or not.
fn asked_twice(sent: bool, numbered: bool) -> (Relay, [Peer; 2], Vec<Output>) {
    let (mut relay, mut peer) = gateway();
    if sent {
        peer.sends(&mut relay, ms(0), CARRIER, &[request_frame(5)]);
    }
    let second = connect(&mut relay, ms(1), CarrierId(1), Role::Edge, 1);
    let mut third = connect(&mut relay, ms(2), CarrierId(2), Role::Edge, 1);
    let question = Part::Query(5, if numbered { 2 } else { 0 });
    let outputs = third.sends(&mut relay, ms(3), CarrierId(2), &[question]);
    (relay, [second, third], to(&outputs, CarrierId(2)))
}

/// What goes over one carrier.
fn to(outputs: &[Output], id: CarrierId) -> Vec<Output> {
    let of_it = outputs.iter().filter_map(|output| match output {
        Output::Transmit { carrier, bytes } if *carrier == id => {
            Some(Output::Transmit { carrier: id, bytes: bytes.clone() })
        }
        _ => None,
    });
    of_it.collect()
}

fn asks_late(relay: &mut Relay, second: &mut Peer, numbered: bool) {
    let question = Part::Query(5, u64::from(numbered));
    let outputs = second.sends(relay, ms(4), CarrierId(1), &[question]);
    let parts = second.takes(&outputs);
    assert!(
        matches!(&parts[..], [Part::Abort(abort)]
        if abort.code == CauseKind::OutcomeUnknown.to_wire()),
        "{parts:?}"
    );
}

#[test]
fn a_question_that_comes_late_takes_no_exchange_away() {
    for numbered in [true, false] {
        let (mut relay, [mut second, mut third], outputs) = asked_twice(true, numbered);
        assert_eq!(third.takes(&outputs), vec![Part::Outcome(5, OutcomeState::Answer)]);
        asks_late(&mut relay, &mut second, numbered);
        let answer = answers(&mut relay, ms(5), b"done");
        let parts = third.takes(&to(&answer, CarrierId(2)));
        assert!(matches!(&parts[..], [Part::Head(_), Part::Data(_)]), "{parts:?}");
    }
}

#[test]
fn a_question_that_comes_late_bars_no_request_of_a_later_carrier() {
    for numbered in [true, false] {
        let (mut relay, [mut second, mut third], outputs) = asked_twice(false, numbered);
        assert_eq!(third.takes(&outputs), vec![Part::Outcome(5, OutcomeState::NotSeen)]);
        asks_late(&mut relay, &mut second, numbered);
        let outputs = third.sends(&mut relay, ms(5), CarrierId(2), &[request_frame(5)]);
        assert!(outputs.iter().any(|output| matches!(output, Output::Head { end: true, .. })));
    }
}

/// Whichever carriers they go by, the greater number came later.
#[test]
fn a_later_question_is_heeded_on_an_older_carrier() {
    let (mut relay, [mut second, _], _) = asked_twice(true, true);
    let outputs = second.sends(&mut relay, ms(4), CarrierId(1), &[Part::Query(5, 3)]);
    let outcome = second.takes(&to(&outputs, CarrierId(1)));
    assert_eq!(outcome, vec![Part::Outcome(5, OutcomeState::Answer)]);
    let answer = answers(&mut relay, ms(5), b"done");
    assert_eq!(second.takes(&to(&answer, CarrierId(1))).len(), 2);
}
