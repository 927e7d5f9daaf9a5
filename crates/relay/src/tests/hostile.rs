//! Peers and local sides that send what they should not.

use super::*;

fn raw(frames: &[Part]) -> Bytes {
    let mut bytes = Vec::new();
    frames.iter().cloned().for_each(|part| Frame::from(part).encode(&mut bytes));
    bytes.into()
}

/// What a relay wants after frames that came in one portion, whatever the peer's machine thinks.
fn receives(relay: &mut Relay, now: Duration, carrier: CarrierId, frames: &[Part]) -> Vec<Output> {
    relay.handle_input(now, Input::Received { carrier, bytes: raw(frames) });
    drain(relay)
}

fn is_closed(outputs: &[Output]) -> bool {
    outputs.iter().any(|output| matches!(output, Output::Close { .. }))
}

fn head_frame(number: u64, codec: u64, end: bool) -> Part {
    let Part::Head(head) = request_frame(number) else { unreachable!() };
    let window_log = if codec == 0 { 0 } else { 20 };
    Part::Head(HeadPart { codec, window_log, end, ..head })
}

fn block(number: u64, bytes: &'static [u8]) -> Data {
    let block_end = Some(bytes.len() as u64);
    let bytes = Bytes::from_static(bytes);
    Data {
        exchange: number,
        block_end,
        uncoded: true,
        anew: false,
        end: false,
        padding: None,
        bytes,
    }
}

fn abort_frame(exchange: u64, kind: CauseKind) -> Part {
    Part::Abort(Abort { exchange, code: kind.to_wire(), reason: "hostile".into() })
}

/// What is consumed of the credit comes back, all of it, however small the blocks.
#[test]
fn a_stream_of_tiny_blocks_does_not_run_out_of_credit() {
    let (mut relay, mut peer) = gateway();
    peer.sends(&mut relay, ms(0), CARRIER, &[head_frame(5, 0, false)]);
    let exchange = ExchangeId { instance: 1, number: 5 };
    relay.handle_input(ms(1), Input::Credit { exchange, bytes: 1 << 40 });
    drain(&mut relay);
    for at in 0..20_000 {
        assert!(peer.0.credit(5) > 128, "no credit left after {at} blocks");
        let frames = [Part::Data(block(5, b"1"))];
        let outputs = peer.sends(&mut relay, ms(2), CARRIER, &frames);
        peer.takes(&outputs);
        assert!(peer.0.credit(5) <= config::MAX_CREDIT_BYTES, "credit grows without end");
    }
}

/// An answer of 60,000 bytes whose carrier broke, and the edge back on another.
fn answered_and_back(edge: Peer) -> (Relay, Peer) {
    static ANSWER: [u8; 60_000] = [7; 60_000];
    let (mut relay, mut peer) = connected(
        Config { encoding: Encoding::of("identity").unwrap(), ..Config::new(Role::Gateway, 9) },
        1,
    );
    peer.sends(&mut relay, ms(0), CARRIER, &[request_frame(5)]);
    let mut outputs = answers(&mut relay, ms(5), &ANSWER);
    while let Some(Output::Transmit { bytes, .. }) =
        outputs.iter().find(|output| matches!(output, Output::Transmit { .. }))
    {
        relay.handle_input(ms(6), Input::Sent { carrier: CARRIER, bytes: bytes.len() });
        outputs = drain(&mut relay);
    }
    assert!(relay.is_idle(), "the answer is with the carrier");
    relay.handle_input(ms(10), Input::CarrierDown { carrier: CARRIER, reason: "cut".into() });
    let (peer, _) = connect_to(&mut relay, ms(20), CarrierId(1), edge);
    (relay, peer)
}

#[test]
fn bytes_behind_a_refused_head_reach_no_other_exchange() {
    let (mut relay, mut peer) = gateway();
    peer.sends(&mut relay, ms(0), CARRIER, &[request_frame(5)]);
    relay.handle_input(ms(10), Input::CarrierDown { carrier: CARRIER, reason: "cut".into() });
    let (_, _) = connect_to(&mut relay, ms(20), CarrierId(1), Peer::new(Role::Edge, 1));
    let exchange = ExchangeId { instance: 1, number: 5 };
    relay.handle_input(ms(21), Input::Credit { exchange, bytes: 1000 });
    let frames = [head_frame(5, 0, false), Part::Data(block(5, b"more"))];
    let outputs = receives(&mut relay, ms(22), CarrierId(1), &frames);
    assert!(!outputs.iter().any(|o| matches!(o, Output::Data { .. })), "{outputs:?}");
    assert!(!is_closed(&outputs));
}

#[test]
fn who_leaves_amid_an_answer_sent_again_harms_nobody_else() {
    let (mut relay, mut peer) = answered_and_back(Peer::new(Role::Edge, 1));
    let outputs = peer.sends(&mut relay, ms(30), CarrierId(1), &[Part::Query(5, 1)]);
    let first = peer.takes(&outputs);
    assert!(matches!(first[0], Part::Outcome(5, OutcomeState::Answer)), "{first:?}");
    let abort = abort_frame(5, CauseKind::ClientGone);
    let mut outputs = peer.sends(&mut relay, ms(40), CarrierId(1), &[abort]);
    relay.handle_input(ms(50), Input::Sent { carrier: CarrierId(1), bytes: 20_000 });
    outputs.extend(drain(&mut relay));
    assert!(!is_closed(&outputs), "{outputs:?}");
    assert!(relay.transfer.carriers[&CarrierId(1)].replays.is_empty());
    let outputs = peer.sends(&mut relay, ms(60), CarrierId(1), &[request_frame(6)]);
    assert!(outputs.iter().any(|output| matches!(output, Output::Head { .. })));
}

#[test]
fn an_answer_sent_again_keeps_to_the_peers_credit() {
    let edge = Peer::with(Role::Edge, 1, 8, 1000);
    let (mut relay, mut peer) = answered_and_back(edge);
    let mut outputs = peer.sends(&mut relay, ms(30), CarrierId(1), &[Part::Query(5, 1)]);
    let (mut got, mut ended) = (0, false);
    for _ in 0..1000 {
        let sent = outputs.iter().map(|output| match output {
            Output::Transmit { bytes, .. } => bytes.len(),
            _ => 0,
        });
        let bytes = sent.sum();
        for frame in peer.takes(&outputs) {
            if let Part::Data(data) = frame {
                got += data.bytes.len();
                ended |= data.end;
            }
        }
        if ended {
            break;
        }
        relay.handle_input(ms(40), Input::Sent { carrier: CarrierId(1), bytes });
        outputs = drain(&mut relay);
        outputs.extend(peer.sends(&mut relay, ms(40), CarrierId(1), &[Part::Credit(5, 700)]));
        assert!(!is_closed(&outputs), "{outputs:?}");
    }
    assert_eq!((got, ended), (60_000, true));
}

#[test]
fn an_edge_cannot_declare_an_exchange_answered() {
    let (mut relay, mut peer) = gateway();
    let frames = [request_frame(5), abort_frame(5, CauseKind::AnsweredEarly)];
    let outputs = peer.sends(&mut relay, ms(0), CARRIER, &frames);
    assert_eq!(abort(&outputs).0, CauseKind::AnsweredEarly, "the origin's side has to hear");
    let (mut peer, _) = connect_to(&mut relay, ms(9), CarrierId(1), Peer::new(Role::Edge, 1));
    let outputs = peer.sends(&mut relay, ms(10), CarrierId(1), &[Part::Query(5, 1)]);
    assert_eq!(peer.takes(&outputs), vec![Part::Outcome(5, OutcomeState::Aborted)]);
}

#[test]
fn an_answer_that_is_called_whole_and_is_not_is_corrupt() {
    let (mut relay, mut peer) = edge();
    let (exchange, outputs) = asks(&mut relay, ms(0), "GET", true);
    peer.takes(&outputs);
    let number = exchange.number;
    let frames = [response_frame(number, false), abort_frame(number, CauseKind::AnsweredEarly)];
    let outputs = peer.sends(&mut relay, ms(1), CARRIER, &frames);
    assert_eq!(abort(&outputs).0, CauseKind::Corrupt);
}

fn fields(count: usize, len: usize) -> bhttp::Fields {
    (0..count).map(|at| (format!("x-{at}").into(), vec![b'v'; len].into())).collect()
}

#[test]
fn heads_and_trailers_that_cannot_cross_cost_only_their_exchange() {
    let (mut relay, mut peer) = edge();
    let exchange = relay.next_exchange();
    let Head::Request(request) = request("GET", &[]) else { unreachable!() };
    let head = Head::Request(bhttp::Request { fields: fields(2, 40_000), ..request });
    relay.handle_input(ms(0), local(exchange, head, true));
    let outputs = drain(&mut relay);
    assert_eq!(abort(&outputs), (CauseKind::BadRequest, true));
    assert!(peer.takes(&outputs).is_empty());
    for trailers in [fields(1, 70_000), fields(600, 1), vec![("UPPER".into(), "1".into())]] {
        let (exchange, outputs) = asks(&mut relay, ms(1), "POST", false);
        peer.takes(&outputs);
        relay.handle_input(ms(2), Input::End { exchange, trailers });
        let outputs = drain(&mut relay);
        assert_eq!(abort(&outputs).0, CauseKind::BadRequest);
        peer.takes(&outputs);
    }
    let (_, outputs) = asks(&mut relay, ms(3), "GET", true);
    assert_eq!(peer.takes(&outputs).len(), 1, "the carrier lives");

    let (mut relay, mut peer) = gateway();
    peer.sends(&mut relay, ms(0), CARRIER, &[request_frame(5)]);
    let exchange = ExchangeId { instance: 1, number: 5 };
    let head = Head::Response(bhttp::Response { status: 200, fields: fields(2, 40_000) });
    relay.handle_input(ms(1), local(exchange, head, false));
    let outputs = drain(&mut relay);
    assert!(matches!(&peer.takes(&outputs)[..], [Part::Abort(_)]));
    assert_eq!(abort(&outputs).0, CauseKind::OriginFailed);
}

/// Of a kind of a later version, or none at all.
#[test]
fn a_head_that_cannot_be_read_costs_its_exchange_and_not_the_carrier() {
    let mut later = Vec::new();
    proto::message::Opening::default().encode(&mut later);
    later[2] |= 32;
    for head in [&later[..], &[0x22, 0, 0], &[]] {
        let (mut relay, mut peer) = gateway();
        let head = HeadPart {
            exchange: 5,
            codec: 0,
            window_log: 0,
            end: true,
            head: Bytes::copy_from_slice(head),
        };
        let outputs = peer.sends(&mut relay, ms(0), CARRIER, &[Part::Head(head)]);
        assert!(!is_closed(&outputs));
        let parts = peer.takes(&outputs);
        let [Part::Abort(abort)] = &parts[..] else { panic!("{parts:?}") };
        assert_eq!(abort.code, CauseKind::BadRequest.to_wire());
        assert!(relay.is_idle());
    }
}

#[test]
fn a_codec_that_was_not_offered_opens_nothing() {
    let (mut relay, mut peer) = gateway();
    let outputs = peer.sends(&mut relay, ms(0), CARRIER, &[head_frame(5, 77, false)]);
    assert!(!outputs.iter().any(|o| matches!(o, Output::Abort { .. } | Output::Head { .. })));
    assert!(matches!(&peer.takes(&outputs)[..], [Part::Abort(_)]));
    assert!(relay.is_idle());
}

/// A decoder's memory is reserved by what the head says of its window.
#[test]
fn a_window_over_the_limit_opens_nothing_whatever_the_codec() {
    for codec in [codec::Options::of("zstd").unwrap(), codec::Options::DELTA, codec::Options::EXI] {
        for window_log in [codec::MAX_WINDOW_LOG + 1, 63, 64, 255] {
            let (mut relay, mut peer) = gateway();
            let Part::Head(head) = head_frame(5, codec.codec.number(), false) else {
                unreachable!()
            };
            let head = Part::Head(HeadPart { window_log, ..head });
            let block = block(5, b"123456789");
            let data = Part::Data(Data { uncoded: false, end: true, ..block });
            let outputs = peer.sends(&mut relay, ms(0), CARRIER, &[head, data]);
            assert!(matches!(&peer.takes(&outputs)[..], [Part::Abort(_)]), "{codec:?}");
            assert_eq!((relay.is_idle(), relay.load().codec_bytes), (true, 0), "{window_log}");
        }
    }
}

/// A gateway whose memory for decoders is taken by exchange 1, which does not go on.
fn without_decoders() -> Relay {
    let config = Config { codec_bytes: 1 << 20, ..Config::new(Role::Gateway, 9) };
    let (mut relay, _) = connected(config, 1);
    receives(&mut relay, ms(0), CARRIER, &coded(1));
    relay
}

/// A request whose body begins with a block to decode.
fn coded(number: u64) -> [Part; 2] {
    let data = Data { uncoded: false, ..block(number, b"coded") };
    [head_frame(number, 2, false), Part::Data(data)]
}

#[test]
fn who_waits_for_a_decoder_and_goes_leaves_nothing_behind() {
    let mut relay = without_decoders();
    receives(&mut relay, ms(1), CARRIER, &coded(2));
    for number in 3..500 {
        receives(&mut relay, ms(number), CARRIER, &coded(number));
        assert_eq!(relay.transfer.coding.waiting_decoders(), 2);
        let gone = abort_frame(number, CauseKind::ClientGone);
        receives(&mut relay, ms(number), CARRIER, &[gone]);
        assert_eq!(relay.transfer.coding.waiting_decoders(), 1);
    }
    assert_eq!(relay.load().exchanges, 2);
}

/// What needs no decoder waits for no decoder's memory, and what needs one has it, however
/// the local side takes it.
#[test]
fn what_needs_no_decoder_is_delivered_while_others_have_the_memory() {
    for credits in [&[3, 100][..], &[3, 4, 100]] {
        let mut relay = without_decoders();
        let before = relay.load().codec_bytes;
        let exchange = ExchangeId { instance: 1, number: 2 };
        let [head, coded] = coded(2);
        let plain = |bytes| Part::Data(Data { uncoded: true, ..block(2, bytes) });
        let frames = [head, plain(b"plain"), plain(b"more"), coded];
        let mut outputs = receives(&mut relay, ms(1), CARRIER, &frames);
        let mut got = Vec::new();
        for bytes in credits.iter().copied() {
            relay.handle_input(ms(2), Input::Credit { exchange, bytes });
            outputs.extend(drain(&mut relay));
        }
        for output in outputs {
            assert!(!matches!(output, Output::Job(_)), "there is no memory for it");
            if let Output::Data { bytes, .. } = output {
                got.extend_from_slice(&bytes);
            }
        }
        assert_eq!((&got[..], relay.load().codec_bytes), (&b"plainmore"[..], before));
        let gone = abort_frame(1, CauseKind::ClientGone);
        let outputs = receives(&mut relay, ms(4), CARRIER, &[gone]);
        assert!(outputs.iter().any(|output| matches!(output, Output::Job(_))));
    }
}

#[test]
fn nobody_waits_for_a_decoder_for_ever() {
    let mut relay = without_decoders();
    receives(&mut relay, ms(10), CARRIER, &coded(2));
    relay.handle_input(ms(30_009), Input::Wake);
    let outputs = drain(&mut relay);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Abort { .. })), "{outputs:?}");
    relay.handle_input(ms(30_010), Input::Wake);
    assert_eq!(abort(&drain(&mut relay)).0, CauseKind::Limit);
    // Memory that comes free in time ends the wait.
    receives(&mut relay, ms(40_000), CARRIER, &coded(3));
    receives(&mut relay, ms(40_001), CARRIER, &[abort_frame(1, CauseKind::ClientGone)]);
    relay.handle_input(ms(90_000), Input::Wake);
    assert!(!drain(&mut relay).iter().any(|output| matches!(output, Output::Abort { .. })));
    assert_eq!(relay.load().exchanges, 1);
}

#[test]
fn exchanges_that_come_and_go_leave_nothing_at_a_carrier_that_does_not_read() {
    let (mut relay, _) = gateway();
    for number in 1..300 {
        receives(&mut relay, ms(number), CARRIER, &[head_frame(number, 0, true)]);
        let exchange = ExchangeId { instance: 1, number };
        let head = Head::Response(bhttp::Response { status: 403, fields: fields(1, 9000) });
        relay.handle_input(ms(number), local(exchange, head, true));
        drain(&mut relay);
        let gone = abort_frame(number, CauseKind::ClientGone);
        let outputs = receives(&mut relay, ms(number), CARRIER, &[gone]);
        assert!(!is_closed(&outputs));
    }
    assert!(relay.transfer.carriers[&CARRIER].schedule.is_empty() && relay.is_idle());
    assert!(relay.transfer.carriers[&CARRIER].exchanges.is_empty());
}

#[test]
fn a_peer_that_asks_and_does_not_read_is_closed() {
    let (mut relay, _) = gateway();
    let mut bytes = Vec::new();
    (0..10_000).for_each(|number| Frame::Ping(number << 40).encode(&mut bytes));
    let bytes = Bytes::from(bytes);
    let closed = (0..100).find(|_| {
        relay.handle_input(ms(1), Input::Received { carrier: CARRIER, bytes: bytes.clone() });
        is_closed(&drain(&mut relay))
    });
    let at = closed.expect("never closed");
    assert!((9..12).contains(&at), "closed at portion {at} of about 100 KB");
}

#[test]
fn a_byte_that_is_kept_does_not_hold_the_buffer_it_came_in() {
    let buffer = Bytes::from(vec![1; 65_536]);
    let data = Data { bytes: buffer.slice(..1), ..block(1, b"1") };
    let mut log = outcomes::Log::default();
    log.push(&Part::Data(data), 7);
    assert_eq!(log.parts().unwrap().len(), 1);
    assert!(buffer.is_unique());
}

#[test]
fn a_log_of_tiny_frames_ends_at_its_bound() {
    let mut log = outcomes::Log::default();
    let frames = (0..).take_while(|_| {
        log.push(&Part::Data(block(1, b"1")), 8);
        log.parts().is_some()
    });
    let most = config::RETAINED_EXCHANGE_BYTES / size_of::<Part>();
    assert!((100..most).contains(&frames.count()));
}

#[test]
fn windows_grow_within_the_memory_for_bodies() {
    static BLOCK: [u8; 60_000] = [7; 60_000];
    let config = Config { receive_bytes: 4 << 20, ..Config::new(Role::Gateway, 9) };
    let (mut relay, _) = connected(config, 1);
    for number in 1..=30 {
        receives(&mut relay, ms(number), CARRIER, &[head_frame(number, 0, false)]);
        let exchange = ExchangeId { instance: 1, number };
        relay.handle_input(ms(number), Input::Credit { exchange, bytes: 60_000 });
        drain(&mut relay);
        receives(&mut relay, ms(number), CARRIER, &[Part::Data(block(number, &BLOCK))]);
    }
    let windows: u64 = relay.transfer.exchanges.values().map(|e| e.incoming.window()).sum();
    let first = 30 * INITIAL_CREDIT_BYTES;
    assert!(windows <= first + (4 << 20), "{windows}");
    assert!(windows > first + (3 << 20), "and they do grow: {windows}");
}

#[test]
fn an_instance_is_its_peers_also_while_that_is_away() {
    let (mut relay, mut peer) = gateway();
    peer.sends(&mut relay, ms(0), CARRIER, &[request_frame(5)]);
    relay.handle_input(ms(1), Input::CarrierDown { carrier: CARRIER, reason: "cut".into() });
    drain(&mut relay);
    let carrier = CarrierId(1);
    relay.handle_input(
        ms(2),
        Input::CarrierUp { carrier, kind: CarrierKind::FIRST, peer: "somebody else".into() },
    );
    let mut other = Peer::new(Role::Edge, 1);
    let Some(carrier::Output::Bytes(bytes)) = other.0.poll_output() else { panic!("no HELLO") };
    relay.handle_input(ms(3), Input::Received { carrier, bytes });
    assert!(is_closed(&drain(&mut relay)));
}

/// Without keys the name is an address: the instance goes with who has it, but from nobody who is
/// there.
#[test]
fn without_keys_an_instance_may_come_from_another_address_once_it_is_gone() {
    let config = Config { without_keys: true, ..Config::new(Role::Gateway, 9) };
    let (mut relay, mut peer) = connected(config, 1);
    peer.sends(&mut relay, ms(0), CARRIER, &[request_frame(5)]);
    let comes = |relay: &mut Relay, number: u64| {
        let (carrier, peer) = (CarrierId(number), "another address".into());
        relay
            .handle_input(ms(number), Input::CarrierUp { carrier, kind: CarrierKind::FIRST, peer });
        let mut other = Peer::new(Role::Edge, 1);
        let Some(carrier::Output::Bytes(bytes)) = other.0.poll_output() else { panic!() };
        other.takes(&drain(relay));
        relay.handle_input(ms(number), Input::Received { carrier, bytes });
        let outputs = drain(relay);
        let closed = outputs.iter().find_map(|output| match output {
            Output::Close { carrier, .. } => Some(*carrier),
            _ => None,
        });
        (other, closed)
    };
    let (_, closed) = comes(&mut relay, 1);
    assert_eq!(closed, Some(CarrierId(1)), "the one before lives");
    relay.handle_input(ms(2), Input::CarrierDown { carrier: CARRIER, reason: "cut".into() });
    drain(&mut relay);
    let (mut other, closed) = comes(&mut relay, 3);
    assert_eq!(closed, None);
    answers(&mut relay, ms(4), b"done");
    let outputs = other.sends(&mut relay, ms(5), CarrierId(3), &[Part::Query(5, 1)]);
    let frames = other.takes(&outputs);
    assert!(matches!(frames[0], Part::Outcome(5, OutcomeState::Answer)), "{frames:?}");
}

mod memory {
    use super::super::*;
    use crate::config::MAX_OUTCOMES;
    use crate::outcomes::{Log, Outcome, Outcomes};

    fn id(instance: u64, number: u64) -> ExchangeId {
        ExchangeId { instance, number }
    }

    fn answered(len: usize) -> Outcome {
        let mut log = Log::default();
        log.push(&Part::GoAway, len);
        Outcome::Answered { status: 200, log, idempotent: false, on: None }
    }

    #[test]
    fn what_is_open_is_never_forgotten_and_what_is_over_is_in_order() {
        let mut outcomes = Outcomes::new(1 << 20, false);
        assert!(
            outcomes.greet(1, "a", false, |_| false) && outcomes.greet(2, "b", false, |_| false)
        );
        outcomes.begin(id(1, 1));
        for number in 1..=2 * MAX_OUTCOMES as u64 {
            outcomes.begin(id(2, number));
            outcomes.end(id(2, number), Outcome::Aborted);
        }
        assert!(matches!(outcomes.get(id(1, 1)), Some(Outcome::Running)));
        assert!(outcomes.get(id(2, 4096)).is_none() && outcomes.was_here(id(2, 4096)));
        assert!(outcomes.may_be_forgotten(id(2, 4096)));
        assert!(outcomes.get(id(2, 4097)).is_some());
        // Numbers of others are not spent by it, nor new ones.
        assert!(!outcomes.was_here(id(1, 2)) && !outcomes.may_be_forgotten(id(1, 2)));
        assert!(!outcomes.was_here(id(2, 8193)) && !outcomes.may_be_forgotten(id(2, 8193)));
    }

    #[test]
    fn who_asks_about_ever_more_spends_its_own_numbers() {
        let mut outcomes = Outcomes::new(1 << 20, false);
        assert!(
            outcomes.greet(1, "a", false, |_| false) && outcomes.greet(2, "b", false, |_| false)
        );
        assert!(outcomes.ask(id(2, 1), CarrierId(1), 1));
        for number in 1..=MAX_OUTCOMES as u64 + 9 {
            assert!(outcomes.ask(id(1, number), CarrierId(2), 1));
        }
        assert!(outcomes.was_here(id(1, 9)) && outcomes.may_be_forgotten(id(1, 9)));
        assert!(!outcomes.was_here(id(1, 10)) && outcomes.is_asked_elsewhere(id(1, 10), CARRIER));
        assert!(!outcomes.was_here(id(2, 1)) && outcomes.is_asked_elsewhere(id(2, 1), CARRIER));
        outcomes.forget_questions(1);
        assert!(!outcomes.is_asked_elsewhere(id(1, 10), CARRIER));
        assert!(outcomes.is_asked_elsewhere(id(2, 1), CARRIER));
    }

    #[test]
    fn a_flood_of_edges_makes_nobody_believe_that_a_request_never_came() {
        let mut outcomes = Outcomes::new(1 << 20, false);
        assert!(outcomes.greet(1, "a", false, |_| false));
        outcomes.begin(id(1, 1));
        outcomes.end(id(1, 1), answered(100));
        for instance in 2..=MAX_OUTCOMES as u64 + 1 {
            assert!(outcomes.greet(instance, &format!("peer {instance}"), false, |_| false));
        }
        assert!(outcomes.greet(1, "a", false, |_| false));
        assert!(outcomes.get(id(1, 1)).is_none() && outcomes.may_be_forgotten(id(1, 1)));
        assert!(!outcomes.was_here(id(1, 2)), "and yet it is served");
        assert!(!outcomes.greet(1, "b", false, |_| false), "an instance is its peer's");
    }

    #[test]
    fn a_peer_with_ever_more_edges_loses_its_own() {
        let mut outcomes = Outcomes::new(1 << 20, false);
        assert!(outcomes.greet(1, "a", false, |_| false));
        outcomes.begin(id(1, 1));
        outcomes.end(id(1, 1), answered(100));
        for instance in 10..=2 * MAX_OUTCOMES as u64 {
            assert!(outcomes.greet(instance, "flood", false, |_| false));
        }
        assert!(matches!(outcomes.get(id(1, 1)), Some(Outcome::Answered { .. })));
        assert!(!outcomes.may_be_forgotten(id(1, 2)), "the edge is known");
        assert!(outcomes.greet(2, "a", false, |_| false), "and so is its peer");
        assert!(!outcomes.may_be_forgotten(id(2, 1)));
        assert!(outcomes.greet(3, "new", false, |_| false), "it may have been the flood's before");
        assert!(outcomes.may_be_forgotten(id(3, 1)));
        assert!(outcomes.greet(10, "flood", false, |_| false));
        assert!(outcomes.may_be_forgotten(id(10, 1)), "of the flood's own something was");
    }

    /// A peer that was forgotten with all its edges comes back with them.
    #[test]
    fn what_was_forgotten_stays_so_for_all_edges_of_a_peer() {
        let mut outcomes = Outcomes::new(1 << 20, false);
        for instance in [1, 2] {
            assert!(outcomes.greet(instance, "a", false, |_| false));
            outcomes.begin(id(instance, 1));
            outcomes.end(id(instance, 1), answered(100));
        }
        for instance in 10..=MAX_OUTCOMES as u64 + 10 {
            assert!(outcomes.greet(instance, &format!("peer {instance}"), false, |_| false));
        }
        for instance in [1, 2] {
            assert!(outcomes.greet(instance, "a", false, |_| false));
            assert!(outcomes.get(id(instance, 1)).is_none());
            assert!(outcomes.may_be_forgotten(id(instance, 1)), "{instance}");
        }
    }

    /// Without keys it may come back under any name, also under one that is known.
    #[test]
    fn what_was_forgotten_stays_so_under_another_name() {
        let mut outcomes = Outcomes::new(1 << 20, true);
        for (instance, name) in [(1, "v1"), (3, "v2")] {
            assert!(outcomes.greet(instance, name, true, |_| false));
        }
        outcomes.begin(id(1, 1));
        outcomes.end(id(1, 1), answered(100));
        let is_here = |instance| instance == 3;
        for instance in 10..=MAX_OUTCOMES as u64 + 10 {
            assert!(outcomes.greet(instance, &format!("peer {instance}"), true, is_here));
        }
        assert!(outcomes.greet(1, "v2", true, is_here));
        assert!(outcomes.get(id(1, 1)).is_none() && outcomes.may_be_forgotten(id(1, 1)));
    }

    #[test]
    fn what_a_busy_peer_leaves_behind_takes_no_place_of_another() {
        let mut outcomes = Outcomes::new(64_000, false);
        for (instance, peer) in [(1, "quiet"), (2, "busy"), (3, "busy")] {
            assert!(outcomes.greet(instance, peer, false, |_| true));
        }
        for number in 1..=20 {
            outcomes.begin(id(1, number));
            outcomes.end(id(1, number), answered(1000));
        }
        for number in 1..=2 * MAX_OUTCOMES as u64 {
            let exchange = id(2 + number % 2, number);
            outcomes.begin(exchange);
            outcomes.end(exchange, answered(1000));
        }
        for number in 1..=20 {
            let Some(Outcome::Answered { log, .. }) = outcomes.get(id(1, number)) else {
                panic!("{number} is forgotten")
            };
            assert!(log.parts().is_some(), "{number}");
        }
        assert!(outcomes.was_here(id(3, 1)) && outcomes.get(id(3, 1)).is_none());
        // A peer alone may have all that others do not want.
        let known = |number: &u64| outcomes.get(id(2 + number % 2, *number)).is_some();
        let rest = (1..=2 * MAX_OUTCOMES as u64).filter(known).count();
        assert_eq!(rest, MAX_OUTCOMES - 20);
    }

    #[test]
    fn an_edge_that_moves_takes_along_what_is_known_of_it() {
        let mut outcomes = Outcomes::new(1 << 20, false);
        assert!(outcomes.greet(1, "before", false, |_| false));
        assert!(outcomes.greet(2, "before", false, |_| false));
        for exchange in [id(1, 1), id(2, 1), id(1, 2)] {
            outcomes.begin(exchange);
            outcomes.end(exchange, answered(1000));
        }
        assert!(outcomes.greet(1, "after", true, |_| false));
        for number in 1..=2 * MAX_OUTCOMES as u64 {
            outcomes.begin(id(1, number + 2));
            outcomes.end(id(1, number + 2), Outcome::Aborted);
        }
        assert!(outcomes.get(id(2, 1)).is_some(), "it is another's");
        assert!(outcomes.get(id(1, 2)).is_none() && outcomes.was_here(id(1, 2)));
        outcomes.revive(id(2, 1));
        assert!(outcomes.get(id(2, 1)).is_none());
    }

    #[test]
    fn a_flood_of_edges_takes_the_place_of_none_that_is_here() {
        let mut outcomes = Outcomes::new(1 << 20, false);
        let is_here = |instance| instance == 1;
        assert!(outcomes.greet(1, "a", false, is_here));
        assert!(outcomes.ask(id(1, 1), CarrierId(1), 1));
        for instance in 2..=2 * MAX_OUTCOMES as u64 {
            assert!(outcomes.greet(instance, "flood", false, is_here));
        }
        assert!(outcomes.is_asked_elsewhere(id(1, 1), CARRIER));
        assert!(!outcomes.may_be_forgotten(id(1, 1)));
    }

    #[test]
    fn answers_kept_stay_within_their_bytes_the_newest_longest() {
        let mut outcomes = Outcomes::new(10_000, false);
        outcomes.greet(1, "a", false, |_| false);
        for number in 1..=100 {
            outcomes.begin(id(1, number));
            outcomes.end(id(1, number), answered(1000));
            outcomes.end(id(1, number), answered(1000));
        }
        let kept = |number| match outcomes.get(id(1, number)) {
            Some(Outcome::Answered { log, status: 200, .. }) => log.parts().is_some(),
            other => panic!("{other:?}"),
        };
        let least = (1..=100).find(|number| kept(*number)).unwrap();
        assert!((least..=100).all(kept) && (91..94).contains(&least), "{least}");
    }
}
