//! Carriers of several kinds, and such as can do less than a stream. All are streams here, of which
//! the relay is told that they can do less: it asks what they can do, and not what they are.

use proto::carrier::Abilities;
use proto::control::Drained;
use proto::kinds::Kind;

use crate::exchanges::unshared;

use super::*;

const FIRST: CarrierId = CarrierId(0);
const SECOND: CarrierId = CarrierId(1);
/// Messages go whole, and none of more than ten bytes.
const SMALL: Abilities = Abilities {
    streams: false,
    max_request_bytes: Some(10),
    max_answer_bytes: Some(10),
    ..Abilities::STREAM
};

fn config(role: Role, kinds: &[Abilities]) -> Config {
    let kind = |abilities: &Abilities| Kind { abilities: *abilities, ..Kind::STREAM };
    let encoding = Encoding::of("identity").unwrap();
    let instance = if role == Role::Edge { 1 } else { 9 };
    Config { kinds: kinds.iter().map(kind).collect(), encoding, ..Config::new(role, instance) }
}

/// What the relay wants of one carrier.
fn of(outputs: &[Output], id: CarrierId) -> Vec<Output> {
    let of_it = outputs.iter().filter_map(|output| match output {
        Output::Transmit { carrier, bytes } if *carrier == id => {
            Some(Output::Transmit { carrier: id, bytes: bytes.clone() })
        }
        _ => None,
    });
    of_it.collect()
}

/// An edge with carriers of these kinds, and the gateways at their other ends.
fn edge_with(kinds: &[Abilities]) -> (Relay, Vec<Peer>) {
    let mut relay = Relay::new(config(Role::Edge, kinds));
    relay.handle_input(ms(0), Input::Wake);
    let dialled = drain(&mut relay);
    assert_eq!(dialled.len(), kinds.len(), "{dialled:?}");
    let peers = (0..kinds.len()).map(|at| {
        let carrier = CarrierId(at as u64);
        let (mut peer, outputs) =
            connect_to(&mut relay, ms(0), carrier, Peer::new(Role::Gateway, 9));
        pongs(&mut relay, &mut peer, ms(100), carrier, &outputs);
        peer
    });
    let peers = peers.collect();
    (relay, peers)
}

/// The peer answers the probes among what the relay sent on a carrier.
fn pongs(relay: &mut Relay, peer: &mut Peer, now: Duration, id: CarrierId, outputs: &[Output]) {
    for output in of(outputs, id) {
        if let Output::Transmit { bytes, .. } = output {
            relay.handle_input(now, Input::Sent { carrier: id, bytes: bytes.len() });
            peer.0.handle_input(now, carrier::Input::Bytes(bytes));
        }
    }
    while let Some(output) = peer.0.poll_output() {
        if let carrier::Output::Bytes(bytes) = output {
            relay.handle_input(now, Input::Received { carrier: id, bytes });
        }
    }
    drain(relay);
}

/// A gateway with a carrier that can do this.
fn gateway_with(abilities: Abilities) -> (Relay, Peer) {
    connected(config(Role::Gateway, &[abilities]), 1)
}

fn puts(relay: &mut Relay, now: Duration, body: &'static [u8]) -> (ExchangeId, Vec<Output>) {
    let (exchange, _) = asks(relay, now, "PUT", false);
    relay.handle_input(now, Input::Data { exchange, bytes: Bytes::from_static(body) });
    relay.handle_input(now, Input::End { exchange, trailers: Vec::new() });
    (exchange, drain(relay))
}

/// The head of request 5, which has no body.
fn heads_of(method: &str) -> Part {
    let Head::Request(request) = request(method, &[]) else { panic!("not a request") };
    let mut head = Vec::new();
    request.encode(&mut head);
    Part::Head(HeadPart { exchange: 5, codec: 0, window_log: 0, end: true, head: head.into() })
}

#[test]
fn of_each_kind_one_is_dialled_and_what_comes_up_first_is_used() {
    let mut relay = Relay::new(config(Role::Edge, &[Abilities::STREAM; 3]));
    let (_, outputs) = asks(&mut relay, ms(0), "GET", true);
    let dialled = outputs.iter().filter_map(|output| match output {
        Output::Dial { carrier, kind } => Some((carrier.0, kind.0)),
        _ => None,
    });
    assert_eq!(dialled.collect::<Vec<_>>(), [(0, 0), (1, 1), (2, 2)]);
    let (mut peer, outputs) = connect_to(&mut relay, ms(10), SECOND, Peer::new(Role::Gateway, 9));
    assert!(matches!(&peer.takes(&of(&outputs, SECOND))[..], [Part::Head(_)]));
    let carrier = CarrierId(7);
    let kind = CarrierKind(1);
    relay.handle_input(ms(20), Input::CarrierUp { carrier, kind, peer: "peer".into() });
    assert!(matches!(drain(&mut relay)[..], [Output::Close { .. }]), "nobody dialled it");
}

/// Of a byte pipe the kernel knows whether the peer is there; of datagrams nobody does.
#[test]
fn datagrams_of_which_none_was_ever_answered_are_given_up() {
    let datagrams = Abilities { max_datagram_bytes: Some(1200), ..Abilities::STREAM };
    for (abilities, is_given_up) in [(datagrams, true), (Abilities::STREAM, false)] {
        let config = config(Role::Edge, &[abilities]);
        let peer_timeout = config.peer_timeout;
        let mut relay = Relay::new(config);
        relay.handle_input(ms(0), Input::Wake);
        drain(&mut relay);
        connect_to(&mut relay, ms(0), FIRST, Peer::new(Role::Gateway, 9));
        let mut closed_at = None;
        for at in (0..200_000).step_by(50).map(ms) {
            relay.handle_input(at, Input::Wake);
            let closes = |output: &Output| matches!(output, Output::Close { carrier: FIRST, .. });
            closed_at = closed_at.or(drain(&mut relay).iter().any(closes).then_some(at));
        }
        assert_eq!(closed_at.is_some(), is_given_up, "{abilities:?}");
        assert!(closed_at.is_none_or(|at| at <= peer_timeout + ms(1000)), "{closed_at:?}");
    }
}

#[test]
fn what_a_kind_cannot_take_goes_by_another_or_waits_for_it() {
    let (mut relay, mut peers) = edge_with(&[SMALL, Abilities::STREAM]);
    let is_by = |outputs: &[Output], peers: &mut [Peer]| {
        [(0, FIRST), (1, SECOND)].map(|(at, id): (usize, _)| {
            let parts = peers[at].takes(&of(outputs, id));
            parts.iter().filter(|part| matches!(part, Part::Head(_))).count()
        })
    };
    let (_, outputs) = asks(&mut relay, ms(200), "GET", true);
    assert_eq!(is_by(&outputs, &mut peers), [1, 0]);
    let (_, outputs) = asks(&mut relay, ms(201), "CONNECT", false);
    assert_eq!(is_by(&outputs, &mut peers), [0, 1]);
    // Its length shows only at its end.
    let (_, outputs) = puts(&mut relay, ms(202), b"more than ten bytes");
    assert_eq!(is_by(&outputs, &mut peers), [0, 1]);
    // It says so before.
    for (at, length, by) in [(203, "10", [1, 0]), (403, "11", [0, 1])] {
        let (exchange, fields) = (relay.next_exchange(), [("content-length", length)]);
        relay.handle_input(ms(at), local(exchange, request("PUT", &fields), false));
        let bytes = Bytes::from_static(b"begin");
        relay.handle_input(ms(at), Input::Data { exchange, bytes });
        relay.handle_input(ms(at + 100), Input::Wake);
        assert_eq!(is_by(&drain(&mut relay), &mut peers), by, "{length}");
    }
    relay.handle_input(ms(600), Input::CarrierDown { carrier: SECOND, reason: "cut".into() });
    drain(&mut relay);
    let (_, outputs) = asks(&mut relay, ms(601), "CONNECT", false);
    assert_eq!(is_by(&outputs, &mut peers), [0, 0]);
    let ends = outputs.iter().any(|output| matches!(output, Output::Abort { .. }));
    assert!(!ends, "it waits for the other: {outputs:?}");
}

/// Both kinds are expected to take as long: the first is taken, and the other is tried so seldom
/// that it costs nothing that counts.
#[test]
fn a_kind_that_is_passed_over_is_tried_now_and_then() {
    let (mut relay, mut peers) = edge_with(&[Abilities::STREAM; 2]);
    let mut by = Vec::new();
    for number in 0..300 {
        let at = ms(200 + 10 * number);
        let (exchange, outputs) = asks(&mut relay, at, "GET", true);
        let is_head =
            |part: &Part| matches!(part, Part::Head(head) if head.exchange == exchange.number);
        let has = [FIRST, SECOND].map(|id| {
            let parts = peers[usize::from(id == SECOND)].takes(&of(&outputs, id));
            parts.iter().any(is_head)
        });
        assert!(has[0] != has[1], "{has:?}");
        by.push(has[1]);
        let carrier = if has[1] { SECOND } else { FIRST };
        let peer = &mut peers[usize::from(has[1])];
        peer.sends(&mut relay, at, carrier, &[response_frame(exchange.number, true)]);
        relay.handle_input(at, Input::Sent { carrier, bytes: usize::MAX });
    }
    let tried: Vec<usize> = (0..by.len()).filter(|at| by[*at]).collect();
    assert!((3..=4).contains(&tried.len()) && tried[0] >= 64, "{tried:?}");
}

fn fails(relay: &mut Relay, at: u64, id: CarrierId, failure: DialFailure) -> Vec<Output> {
    let reason = format!("{failure:?}");
    relay.handle_input(ms(at), Input::DialFailed { carrier: id, failure, reason });
    drain(relay)
}

/// What the gateway itself says by one kind needs no word of another that is silent.
#[test]
fn a_gateway_that_refuses_by_one_kind_is_not_waited_for_by_another() {
    for known in [false, true] {
        let mut relay = Relay::new(config(Role::Edge, &[Abilities::STREAM; 2]));
        relay.handle_input(ms(0), Input::Wake);
        drain(&mut relay);
        let mut first = FIRST;
        if known {
            connect_to(&mut relay, ms(0), FIRST, Peer::new(Role::Gateway, 9));
            relay.handle_input(ms(1), Input::CarrierDown { carrier: FIRST, reason: "cut".into() });
            relay.handle_input(ms(5000), Input::Wake);
            first = relay.dialer.next_dialled();
            drain(&mut relay);
        }
        asks(&mut relay, ms(5010), "GET", true);
        let outputs = fails(&mut relay, 5020, first, DialFailure::Refused);
        let ends = outputs.iter().any(|output| matches!(output, Output::Abort { .. }));
        // Whom it has never let in the other may.
        assert_eq!(ends, known, "{outputs:?}");
        if !known {
            let outputs = fails(&mut relay, 5030, SECOND, DialFailure::Silent);
            assert_eq!(abort(&outputs), (CauseKind::GatewayUnreachable, true));
        }
        let (_, outputs) = asks(&mut relay, ms(5040), "POST", false);
        let why = outputs.iter().find_map(|output| match output {
            Output::Abort { cause, .. } => Some(&cause.reason[..]),
            _ => None,
        });
        assert_eq!(why, Some("Refused"), "{outputs:?}");
    }
}

/// A firewall may say that nobody listens where nobody ever did; of a kind that was up it is true.
#[test]
fn nobody_listens_where_a_carrier_was_up_before() {
    for known in [false, true] {
        let mut relay = Relay::new(config(Role::Edge, &[Abilities::STREAM; 2]));
        relay.handle_input(ms(0), Input::Wake);
        drain(&mut relay);
        if known {
            connect_to(&mut relay, ms(0), FIRST, Peer::new(Role::Gateway, 9));
            relay.handle_input(ms(5), Input::CarrierDown { carrier: FIRST, reason: "cut".into() });
        }
        fails(&mut relay, 10, SECOND, DialFailure::Silent);
        let mut first = FIRST;
        // Longer than a gateway takes to start again.
        for at in (20..10_000).step_by(20) {
            relay.handle_input(ms(at), Input::Wake);
            let dialled = drain(&mut relay).into_iter().find_map(|output| match output {
                Output::Dial { carrier, kind: CarrierKind::FIRST } => Some(carrier),
                _ => None,
            });
            first = dialled.unwrap_or(first);
            fails(&mut relay, at + 1, first, DialFailure::Unreachable);
        }
        let (_, outputs) = asks(&mut relay, ms(10_000), "GET", true);
        let ends = outputs.iter().any(|output| matches!(output, Output::Abort { .. }));
        assert_eq!(ends, known, "{outputs:?}");
    }
}

#[test]
fn where_no_kind_takes_a_request_it_is_refused_at_once() {
    let (mut relay, _) = edge_with(&[SMALL]);
    let (_, outputs) = asks(&mut relay, ms(200), "CONNECT", false);
    assert_eq!(abort(&outputs), (CauseKind::Limit, true));
}

#[test]
fn a_kind_that_cannot_be_reached_fails_nothing_that_another_may_take() {
    let mut relay = Relay::new(config(Role::Edge, &[Abilities::STREAM; 2]));
    let (_, _) = asks(&mut relay, ms(0), "GET", true);
    let fails = |relay: &mut Relay, carrier| {
        let (failure, reason) = (DialFailure::Refused, "its key is unknown".to_owned());
        relay.handle_input(ms(10), Input::DialFailed { carrier, failure, reason });
        drain(relay)
    };
    let outputs = fails(&mut relay, FIRST);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Abort { .. })), "{outputs:?}");
    let outputs = fails(&mut relay, SECOND);
    assert_eq!(abort(&outputs), (CauseKind::GatewayUnreachable, true));
}

/// Something that a gateway may say at any time.
fn sign_of_life() -> Part {
    Allowed::of(vec!["*:80".into()]).part()
}

/// Another process has the gateway's place, and the carrier of the first kind is cut without a
/// word.
#[test]
fn what_may_be_repeated_moves_to_another_gateway_by_another_kind() {
    let mut relay = Relay::new(config(Role::Edge, &[Abilities::STREAM; 2]));
    relay.handle_input(ms(0), Input::Wake);
    drain(&mut relay);
    let (mut first, outputs) = connect_to(&mut relay, ms(0), FIRST, Peer::new(Role::Gateway, 9));
    pongs(&mut relay, &mut first, ms(100), FIRST, &outputs);
    let (get, outputs) = asks(&mut relay, ms(200), "GET", true);
    assert!(matches!(&first.takes(&of(&outputs, FIRST))[..], [Part::Head(_)]));
    let (post, outputs) = asks(&mut relay, ms(201), "POST", true);
    assert!(matches!(&first.takes(&of(&outputs, FIRST))[..], [Part::Head(_)]));
    let (mut second, outputs) =
        connect_to(&mut relay, ms(300), SECOND, Peer::new(Role::Gateway, 10));
    pongs(&mut relay, &mut second, ms(350), SECOND, &outputs);
    let mut heads = Vec::new();
    for at in (400..20_000).step_by(50) {
        relay.handle_input(ms(at), Input::Wake);
        let outputs = drain(&mut relay);
        let parts = second.takes(&of(&outputs, SECOND));
        let of_head = |part: Part| match part {
            Part::Head(head) => Some(head.exchange),
            _ => None,
        };
        heads.extend(parts.into_iter().filter_map(of_head));
    }
    assert_eq!(heads, [get.number], "and not {}, which may be carried out twice", post.number);
}

#[test]
fn a_kind_that_is_preferred_takes_all_while_it_can() {
    let preferring = Config { prefers_first: true, ..config(Role::Edge, &[Abilities::STREAM; 2]) };
    let mut relay = Relay::new(preferring);
    relay.handle_input(ms(0), Input::Wake);
    drain(&mut relay);
    let (mut second, outputs) = connect_to(&mut relay, ms(0), SECOND, Peer::new(Role::Gateway, 9));
    pongs(&mut relay, &mut second, ms(50), SECOND, &outputs);
    let (_, outputs) = asks(&mut relay, ms(100), "GET", true);
    assert!(matches!(&second.takes(&of(&outputs, SECOND))[..], [Part::Head(_)]), "it is there");
    let (mut first, outputs) = connect_to(&mut relay, ms(200), FIRST, Peer::new(Role::Gateway, 9));
    pongs(&mut relay, &mut first, ms(250), FIRST, &outputs);
    for number in 0..200 {
        let at = ms(300 + number);
        let (exchange, outputs) = asks(&mut relay, at, "GET", true);
        let parts = first.takes(&of(&outputs, FIRST));
        assert!(matches!(&parts[..], [Part::Head(_)]), "{number}: {parts:?}");
        first.sends(&mut relay, at, FIRST, &[response_frame(exchange.number, true)]);
        relay.handle_input(at, Input::Sent { carrier: FIRST, bytes: usize::MAX });
    }
    relay.handle_input(ms(600), Input::CarrierDown { carrier: FIRST, reason: "cut".into() });
    drain(&mut relay);
    let (_, outputs) = asks(&mut relay, ms(601), "GET", true);
    let parts = second.takes(&of(&outputs, SECOND));
    assert!(parts.iter().any(|part| matches!(part, Part::Head(_))), "{parts:?}");
}

/// A PUT that went by the first of two kinds, whose carrier has stalled, and about which the
/// gateway was just asked by the second; when that was.
fn moved() -> (Relay, Vec<Peer>, ExchangeId, u64) {
    let (mut relay, mut peers) = edge_with(&[Abilities::STREAM; 2]);
    let (exchange, outputs) = puts(&mut relay, ms(200), b"once");
    assert!(matches!(&peers[0].takes(&of(&outputs, FIRST))[..], [Part::Head(_), Part::Data(_)]));
    let asked = (300..20_000).step_by(50).find(|at| {
        relay.handle_input(ms(*at), Input::Wake);
        let outputs = drain(&mut relay);
        let parts = peers[1].takes(&of(&outputs, SECOND));
        parts.contains(&Part::Query(exchange.number, 1))
    });
    (relay, peers, exchange, asked.expect("never asked over the other"))
}

/// What was sent over it may still arrive: the gateway is asked first, and the request never goes
/// there again.
#[test]
fn what_is_on_a_carrier_that_stalls_moves_to_another_kind_and_stays_there() {
    let (mut relay, mut peers, exchange, at) = moved();
    let unseen = Part::Outcome(exchange.number, OutcomeState::NotSeen);
    let outputs = peers[1].sends(&mut relay, ms(at + 1), SECOND, &[unseen]);
    let parts = peers[1].takes(&of(&outputs, SECOND));
    assert!(matches!(&parts[..], [Part::Head(_), ..]), "{parts:?}");
    // The first recovers, and the second breaks before it answers.
    let outputs = peers[0].sends(&mut relay, ms(at + 2), FIRST, &[sign_of_life()]);
    assert!(of(&outputs, FIRST).is_empty(), "{outputs:?}");
    relay.handle_input(ms(at + 3), Input::CarrierDown { carrier: SECOND, reason: "cut".into() });
    let parts = peers[0].takes(&of(&drain(&mut relay), FIRST));
    let again = |part: &Part| part.exchange() == Some(exchange.number);
    assert!(!parts.iter().any(again), "{parts:?}");
    let waits = relay.transfer.exchanges[&exchange].stage;
    assert!(matches!(waits, Stage::Ambiguous { asked: None, .. }), "{waits:?}");
}

/// The carrier that had stalled brings all of the answer before the gateway's word.
#[test]
fn an_answer_that_is_whole_is_taken_whoever_was_asked_about_it() {
    let data = |end| {
        let (block_end, uncoded, anew, padding) = (Some(4), true, false, None);
        let bytes = Bytes::from_static(b"done");
        Part::Data(Data { exchange: 1, block_end, uncoded, anew, end, padding, bytes })
    };
    let (mut relay, mut peers, exchange, at) = moved();
    assert_eq!(exchange.number, 1);
    relay.handle_input(ms(at), Input::Credit { exchange, bytes: 100 });
    let answer = [response_frame(1, false), data(true)];
    let outputs = peers[0].sends(&mut relay, ms(at + 1), FIRST, &answer);
    let gets = outputs.iter().filter_map(|output| match output {
        Output::Head { .. } => Some("head"),
        Output::Data { .. } => Some("data"),
        Output::End { .. } => Some("end"),
        _ => None,
    });
    assert_eq!(gets.collect::<Vec<_>>(), ["head", "data", "end"], "{outputs:?}");
    let parts = peers[1].takes(&of(&outputs, SECOND));
    assert!(matches!(&parts[..], [Part::Abort(abort)] if abort.exchange == 1), "{parts:?}");
    assert!(relay.is_idle());

    // What is not whole waits for the gateway's word.
    let (mut relay, mut peers, exchange, at) = moved();
    relay.handle_input(ms(at), Input::Credit { exchange, bytes: 100 });
    let answer = [response_frame(1, false), data(false)];
    let outputs = peers[0].sends(&mut relay, ms(at + 1), FIRST, &answer);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Head { .. })), "{outputs:?}");
    let stays = [Part::Outcome(1, OutcomeState::Unfinished)];
    let outputs = peers[1].sends(&mut relay, ms(at + 2), SECOND, &stays);
    assert!(outputs.iter().any(|output| matches!(output, Output::Data { .. })), "{outputs:?}");
}

#[test]
fn who_gives_up_ends_what_is_open_on_the_carrier_before_too() {
    let (mut relay, mut peers, exchange, at) = moved();
    let cause = Cause { kind: CauseKind::ClientGone, reason: "enough".into() };
    relay.handle_input(ms(at + 1), Input::Abort { exchange, cause });
    let outputs = drain(&mut relay);
    for (peer, id) in peers.iter_mut().zip([FIRST, SECOND]) {
        let parts = peer.takes(&of(&outputs, id));
        assert!(matches!(&parts[..], [Part::Abort(abort)] if abort.exchange == 1), "{parts:?}");
    }
    assert!(relay.transfer.carriers.values().all(|carrier| carrier.machine.open_exchanges() == 0));
}

/// Which of them it gets to is known by the instance in the HELLO.
#[test]
fn a_gateway_that_was_not_asked_need_not_be_before_it_gets_the_request() {
    let (mut relay, mut peers, exchange, at) = moved();
    let unseen = Part::Outcome(exchange.number, OutcomeState::NotSeen);
    let outputs = peers[1].sends(&mut relay, ms(at + 1), SECOND, &[unseen]);
    peers[1].takes(&of(&outputs, SECOND));
    for (carrier, code) in [(FIRST, None), (SECOND, Some(CauseKind::NotForwarded.to_wire()))] {
        if let Some(code) = code {
            let abort = Abort { exchange: exchange.number, code, reason: "full".into() };
            peers[1].sends(&mut relay, ms(at + 2), SECOND, &[Part::GoAway, Part::Abort(abort)]);
        }
        relay.handle_input(ms(at + 3), Input::CarrierDown { carrier, reason: "cut".into() });
        drain(&mut relay);
    }
    relay.handle_input(ms(at + 4_000), Input::Wake);
    drain(&mut relay);
    let carrier = relay.dialer.next_dialled();
    let next = Peer::new(Role::Gateway, 10);
    let (mut next, outputs) = connect_to(&mut relay, ms(at + 4_001), carrier, next);
    let parts = next.takes(&of(&outputs, carrier));
    assert!(matches!(&parts[..], [Part::Head(_), ..]), "{parts:?}");
}

/// As many blocks as the credit of an answer has room for, each of two pieces, are held back.
#[test]
fn an_answer_in_many_blocks_is_held_back_and_arrives() {
    let (mut relay, mut peers, exchange, at) = moved();
    relay.handle_input(ms(at), Input::Credit { exchange, bytes: 100_000 });
    let blocks = INITIAL_CREDIT_BYTES / (proto::exchange::BLOCK_CREDIT_BYTES + 2);
    let piece = |block_end: Option<u64>, end| {
        let (uncoded, anew, padding) = (true, false, None);
        let bytes = Bytes::from_static(b"a");
        Part::Data(Data { exchange: 1, block_end, uncoded, anew, end, padding, bytes })
    };
    let block = |number| [piece(None, false), piece(Some(2), number + 1 == blocks)];
    let answer: Vec<Part> =
        std::iter::once(response_frame(1, false)).chain((0..blocks).flat_map(block)).collect();
    assert!(answer.len() > 2000);
    let outputs = peers[0].sends(&mut relay, ms(at + 1), FIRST, &answer);
    let came = outputs.iter().map(|output| match output {
        Output::Data { bytes, .. } => bytes.len() as u64,
        _ => 0,
    });
    assert_eq!(came.sum::<u64>(), 2 * blocks);
    assert!(relay.is_idle());
}

/// What is held back of an answer is bounded, whatever it is made of.
#[test]
fn an_answer_in_countless_pieces_is_not_held_back_for_ever() {
    let (mut relay, mut peers, exchange, at) = moved();
    let piece = || {
        let (block_end, uncoded, anew, end, padding) = (None, true, false, false, None);
        let bytes = Bytes::from_static(b"a");
        Part::Data(Data { exchange: 1, block_end, uncoded, anew, end, padding, bytes })
    };
    let outputs = peers[0].sends(&mut relay, ms(at + 1), FIRST, &[response_frame(1, false)]);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Abort { .. })));
    let pieces: Vec<Part> = std::iter::repeat_with(piece).take(20_000).collect();
    let outputs = peers[0].sends(&mut relay, ms(at + 1), FIRST, &pieces);
    assert_eq!(abort(&outputs).0, CauseKind::Limit);
    assert!(relay.transfer.exchanges.get(&exchange).is_none());
}

/// A client that gives up makes room for one that waits, wherever its exchange was.
#[test]
fn a_place_on_the_carrier_before_comes_free_too() {
    let mut relay = Relay::new(config(Role::Edge, &[Abilities::STREAM; 2]));
    relay.handle_input(ms(0), Input::Wake);
    drain(&mut relay);
    let mut peers: Vec<Peer> = [FIRST, SECOND]
        .into_iter()
        .map(|carrier| {
            let peer = Peer::with(Role::Gateway, 9, 1, 1 << 20);
            let (mut peer, outputs) = connect_to(&mut relay, ms(0), carrier, peer);
            pongs(&mut relay, &mut peer, ms(100), carrier, &outputs);
            peer
        })
        .collect();
    // Both have no room any more, and a third waits.
    let (first, outputs) = puts(&mut relay, ms(200), b"once");
    let is_first = matches!(&peers[0].takes(&of(&outputs, FIRST))[..], [Part::Head(_), ..]);
    assert!(is_first, "{outputs:?}");
    asks(&mut relay, ms(200), "GET", true);
    let (third, outputs) = asks(&mut relay, ms(200), "GET", true);
    assert!(of(&outputs, FIRST).is_empty() && of(&outputs, SECOND).is_empty());
    // The first carrier stalls, and recovers.
    let stalls = (300..20_000).step_by(50).find(|at| {
        relay.handle_input(ms(*at), Input::Wake);
        drain(&mut relay);
        matches!(relay.transfer.exchanges[&first].stage, Stage::Ambiguous { asked: None, .. })
    });
    let at = stalls.expect("never moved");
    peers[0].sends(&mut relay, ms(at + 1), FIRST, &[sign_of_life()]);
    let cause = Cause { kind: CauseKind::ClientGone, reason: "enough".into() };
    relay.handle_input(ms(at + 2), Input::Abort { exchange: first, cause });
    let parts = peers[0].takes(&of(&drain(&mut relay), FIRST));
    let is_third = |part: &Part| matches!(part, Part::Head(head) if head.exchange == third.number);
    assert!(parts.iter().any(is_third), "{parts:?}");
}

/// An edge that has all of the answer ends the exchange where it asked about it.
#[test]
fn an_origin_gets_the_rest_of_a_request_whose_answer_has_come() {
    let (mut relay, mut peer) = gateway_with(Abilities::STREAM);
    let Part::Head(head) = request_frame(5) else { panic!() };
    let head = Part::Head(HeadPart { end: false, ..head });
    let (block_end, uncoded, anew, end, padding) = (Some(4), true, false, true, None);
    let bytes = Bytes::from_static(b"rest");
    let body = Part::Data(Data { exchange: 5, block_end, uncoded, anew, end, padding, bytes });
    peer.sends(&mut relay, ms(0), CARRIER, &[head, body]);
    let outputs = answers(&mut relay, ms(1), b"done");
    peer.takes(&outputs);
    assert!(!relay.is_idle(), "its origin has not read it");
    let code = CauseKind::ClientGone.to_wire();
    let abort = Abort { exchange: 5, code, reason: "its answer has come elsewhere".into() };
    let outputs = peer.sends(&mut relay, ms(2), CARRIER, &[Part::Abort(abort)]);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Abort { .. })), "{outputs:?}");
    let exchange = ExchangeId { instance: 1, number: 5 };
    relay.handle_input(ms(3), Input::Credit { exchange, bytes: 100 });
    let outputs = drain(&mut relay);
    assert!(outputs.iter().any(|output| matches!(output, Output::Data { .. })), "{outputs:?}");
    assert!(outputs.iter().any(|output| matches!(output, Output::End { .. })));
    assert!(relay.is_idle());
}

/// It goes on over the carrier that takes it, where that is still there; else it is lost.
#[test]
fn an_answer_too_long_for_the_carrier_it_is_asked_for_by_does_not_move_there() {
    static LONG: [u8; 70 << 10] = [7; 70 << 10];
    let all = [(false, true), (false, false), (true, true), (true, false)];
    for (is_over, is_there) in all {
        for (method, body) in [("POST", &b"more than ten bytes"[..]), ("GET", &LONG)] {
            let kinds = [Abilities::STREAM, SMALL];
            let mut relay = Relay::new(config(Role::Gateway, &kinds));
            let mut peer = connect(&mut relay, ms(0), FIRST, Role::Edge, 1);
            peer.sends(&mut relay, ms(1), FIRST, &[heads_of(method)]);
            let exchange = ExchangeId { instance: 1, number: 5 };
            let response = bhttp::Response { status: 200, fields: Vec::new() };
            relay.handle_input(ms(2), Input::Response { exchange, response, end: false });
            relay.handle_input(ms(2), Input::Data { exchange, bytes: Bytes::from_static(body) });
            if is_over {
                relay.handle_input(ms(2), Input::End { exchange, trailers: Vec::new() });
            }
            peer.takes(&drain(&mut relay));
            let kind = CarrierKind(1);
            relay.handle_input(
                ms(3),
                Input::CarrierUp { carrier: SECOND, kind, peer: "peer".into() },
            );
            let mut small = Peer::new(Role::Edge, 1);
            let Some(carrier::Output::Bytes(bytes)) = small.0.poll_output() else { panic!() };
            small.takes(&drain(&mut relay));
            relay.handle_input(ms(3), Input::Received { carrier: SECOND, bytes });
            small.takes(&of(&drain(&mut relay), SECOND));
            if !is_there {
                let reason = "cut".to_owned();
                relay.handle_input(ms(4), Input::CarrierDown { carrier: FIRST, reason });
                drain(&mut relay);
            }
            let outputs = small.sends(&mut relay, ms(5), SECOND, &[Part::Query(5, 1)]);
            let parts = small.takes(&of(&outputs, SECOND));
            let state = if is_there { OutcomeState::Unfinished } else { OutcomeState::Lost(200) };
            let case = format!("{method}, over: {is_over}, there: {is_there}");
            assert_eq!(parts, [Part::Outcome(5, state)], "{case}");
        }
    }
}

#[test]
fn without_order_no_number_of_requests_is_reported_and_none_is_believed() {
    let unordered = Abilities { ordered: false, ..Abilities::STREAM };
    let (mut relay, mut peer) = gateway_with(unordered);
    peer.sends(&mut relay, ms(0), CARRIER, &[request_frame(7)]);
    relay.handle_input(ms(1), Input::Shutdown);
    assert_eq!(peer.takes(&drain(&mut relay)), [Part::GoAway]);

    let (mut relay, mut peers) = edge_with(&[unordered]);
    let (exchange, outputs) = asks(&mut relay, ms(200), "POST", true);
    peers[0].takes(&outputs);
    let goaway = [Part::GoAway, Drained { requests: 0 }.part()];
    peers[0].sends(&mut relay, ms(300), FIRST, &goaway);
    assert_eq!(
        relay.transfer.exchanges[&exchange].stage,
        Stage::Open(FIRST),
        "it may have been taken"
    );
}

#[test]
fn a_gateway_that_may_not_speak_first_says_nothing_of_its_own() {
    let quiet = Abilities { gateway_first: false, ..Abilities::STREAM };
    let allowed = Allowed::of(vec!["*:80".into()]);
    let mut relay = Relay::new(Config { allowed, ..config(Role::Gateway, &[quiet]) });
    let (mut peer, outputs) = connect_to(&mut relay, ms(0), CARRIER, Peer::new(Role::Edge, 1));
    let speaks = |outputs: &[Output]| outputs.iter().any(|o| matches!(o, Output::Transmit { .. }));
    assert!(!speaks(&outputs), "{outputs:?}");
    relay.handle_input(ms(1), Input::Shutdown);
    assert!(!speaks(&drain(&mut relay)));
    let outputs = peer.sends(&mut relay, ms(2), CARRIER, &[request_frame(5)]);
    assert!(matches!(&peer.takes(&outputs)[..], [Part::Abort(abort)]
        if abort.code == CauseKind::NotForwarded.to_wire()));

    // An edge that says nothing at all is given up all the same.
    let (mut relay, _) = gateway_with(quiet);
    let bound = relay.transfer.core.config.keepalive + relay.transfer.core.config.peer_timeout;
    relay.handle_input(bound - ms(1), Input::Wake);
    assert!(drain(&mut relay).is_empty());
    relay.handle_input(bound, Input::Wake);
    assert!(matches!(drain(&mut relay)[..], [Output::Close { .. }]));
}

#[test]
fn an_answer_that_its_carrier_does_not_take_is_refused() {
    for (body, endless) in [(&b"more than ten bytes"[..], false), (b"an event", true)] {
        let (mut relay, mut peer) = gateway_with(SMALL);
        peer.sends(&mut relay, ms(0), CARRIER, &[request_frame(5)]);
        let exchange = ExchangeId { instance: 1, number: 5 };
        let media = if endless { "text/event-stream" } else { "text/plain" };
        let fields = vec![("content-type".into(), media.into())];
        let response = bhttp::Response { status: 200, fields };
        relay.handle_input(ms(1), Input::Response { exchange, response, end: false });
        relay.handle_input(ms(1), Input::Data { exchange, bytes: Bytes::from_static(body) });
        let outputs = drain(&mut relay);
        assert_eq!(abort(&outputs).0, CauseKind::Limit, "{media}");
        let parts = peer.takes(&outputs);
        assert!(matches!(parts.last(), Some(Part::Abort(_))), "{media}: {parts:?}");
        assert!(relay.is_idle());
    }
}

#[test]
fn a_kind_that_takes_nothing_early_gets_nothing_early() {
    let late = Abilities { early: false, ..Abilities::STREAM };
    for (abilities, parts) in [(Abilities::STREAM, 1), (late, 0)] {
        let (mut relay, _) = edge_with(&[abilities]);
        relay.handle_input(ms(200), Input::CarrierDown { carrier: FIRST, reason: "cut".into() });
        asks(&mut relay, ms(201), "GET", true);
        relay.handle_input(ms(1000), Input::Wake);
        let carrier = relay.dialer.next_dialled();
        drain(&mut relay);
        let kind = CarrierKind::FIRST;
        relay.handle_input(ms(1001), Input::CarrierUp { carrier, kind, peer: "peer".into() });
        let outputs = drain(&mut relay);
        assert_eq!(Peer::new(Role::Gateway, 9).takes(&outputs).len(), parts);
    }
}

#[test]
fn a_datagram_where_there_are_none_says_nothing() {
    let (mut relay, _) = edge();
    let bytes = Bytes::from_static(b"astray");
    relay.handle_input(ms(1), Input::Datagram { carrier: CARRIER, bytes });
    assert!(drain(&mut relay).is_empty());
}

/// An answer may be encoded against one before, which this side offered where it sent the request.
#[test]
fn a_packed_answer_is_read_though_its_exchange_has_moved() {
    let (mut relay, mut peers) = edge_with(&[Abilities::STREAM; 2]);
    let sharing = unshared();
    let sharing = proto::heads::Sharing { whole: false, fleeting: false, ..sharing };
    let answer = |gateway: &mut proto::heads::Gateway, exchange: u64, date: &'static str| {
        let field = |name: &'static str, value: &'static str| (name.into(), value.into());
        let fields = vec![field("server", "one of a long name/1.2.3"), field("date", date)];
        let mut head = Vec::new();
        bhttp::Response { status: 200, fields }.encode(&mut head);
        let head = gateway.pack(exchange, &head.into(), &sharing);
        Part::Head(HeadPart { exchange, codec: 0, window_log: 0, end: true, head })
    };
    let asks = |relay: &mut Relay, at| {
        let exchange = relay.next_exchange();
        let client = Some("a client".into());
        let known_of = Known { client, ..Known::default() };
        relay.handle_input(ms(at), known(exchange, request("PUT", &[]), true, known_of));
        (exchange, drain(relay))
    };
    let carriers = [FIRST, SECOND];
    let mut gateways = [(); 2].map(|()| proto::heads::Gateway::default());
    let (mut at, mut gone_twice) = (200, None);
    while gone_twice.is_none() {
        assert!(at < 300, "it never goes by the same carrier again");
        let (exchange, outputs) = asks(&mut relay, at);
        for (on, peer) in peers.iter_mut().enumerate() {
            for part in peer.takes(&of(&outputs, carriers[on])) {
                let Part::Head(head) = part else { continue };
                gateways[on].unpack(exchange.number, &head.head).unwrap();
                if head.head[0] == 0x35 || head.head[0] == 0x34 {
                    gone_twice = Some((exchange, on));
                    continue;
                }
                let date = "Fri, 27 Nov 2026 11:20:00 GMT";
                let came = answer(&mut gateways[on], exchange.number, date);
                peer.sends(&mut relay, ms(at + 5), carriers[on], &[came]);
            }
        }
        at += 10;
    }
    let Some((second, on)) = gone_twice else { return };
    let other = 1 - on;
    let is_asked = (300..20_000).step_by(50).any(|at| {
        relay.handle_input(ms(at), Input::Wake);
        let outputs = drain(&mut relay);
        peers[other].takes(&of(&outputs, carriers[other])).contains(&Part::Query(second.number, 1))
    });
    assert!(is_asked, "never asked over the other");
    let came = answer(&mut gateways[on], second.number, "Fri, 27 Nov 2026 11:21:00 GMT");
    let Part::Head(HeadPart { head, .. }) = &came else { panic!("{came:?}") };
    assert!(head.len() < 10, "it has a base: {head:?}");
    let outputs = peers[on].sends(&mut relay, ms(20_001), carriers[on], &[came]);
    let is_answered = outputs.iter().any(|output| matches!(output, Output::Head { .. }));
    assert!(is_answered, "{outputs:?}");
}
