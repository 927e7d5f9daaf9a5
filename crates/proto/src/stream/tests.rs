use std::time::Duration;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use super::*;
use crate::carrier::{Input, MAX_EARLY_EXCHANGES, Machine as _, Output, Setup};
use crate::control::Keeping;
use crate::exchange::{Abort, Data, Head, OutcomeState, Padding, Part, Role};
use crate::urgency::Urgency;
use crate::{Error, varint};

const NOW: Duration = Duration::ZERO;

fn machine(role: Role) -> Machine {
    Machine::new(Setup {
        role,
        instance: 7,
        initial_credit: 1000,
        max_exchanges: 2,
        codecs: vec![0, 1, 2],
        max_window_log: 20,
        own_bytes_per_s: None,
    })
}

fn drain(machine: &mut Machine) -> Vec<Output> {
    std::iter::from_fn(|| machine.poll_output()).collect()
}

/// Moves bytes both ways until nothing is left; returns what each side's relay was told.
fn exchange(edge: &mut Machine, gateway: &mut Machine) -> (Vec<Output>, Vec<Output>) {
    let (mut at_edge, mut at_gateway) = (Vec::new(), Vec::new());
    loop {
        let moved = carry(edge, gateway, &mut at_edge) | carry(gateway, edge, &mut at_gateway);
        if !moved {
            return (at_edge, at_gateway);
        }
    }
}

fn carry(from: &mut Machine, to: &mut Machine, reported: &mut Vec<Output>) -> bool {
    let mut moved = false;
    for output in drain(from) {
        if let Output::Bytes(bytes) = output {
            moved = true;
            to.handle_input(NOW, Input::Bytes(bytes));
        } else {
            reported.push(output);
        }
    }
    moved
}

fn connected() -> (Machine, Machine) {
    let (mut edge, mut gateway) = (machine(Role::Edge), machine(Role::Gateway));
    exchange(&mut edge, &mut gateway);
    (edge, gateway)
}

fn head(number: u64, end: bool) -> Part {
    Part::Head(Head { exchange: number, codec: 0, window_log: 0, end, head: Bytes::new() })
}

fn data(number: u64, len: usize, end: bool) -> Part {
    let bytes = Bytes::from(vec![b'x'; len]);
    Part::Data(Data {
        exchange: number,
        block_end: Some(len as u64),
        uncoded: false,
        anew: false,
        end,
        padding: None,
        bytes,
    })
}

fn fault(outputs: &[Output]) -> &Error {
    match outputs.last() {
        Some(Output::Fault(error)) => error,
        other => panic!("expected a fault, got {other:?}"),
    }
}

#[test]
fn an_exchange_there_and_back_leaves_nothing_open() {
    let (mut edge, mut gateway) = connected();
    for frame in [head(1, false), data(1, 10, true)] {
        edge.handle_input(NOW, Input::Send(frame, Urgency::DEFAULT));
    }
    let (_, reported) = exchange(&mut edge, &mut gateway);
    assert_eq!(
        reported,
        vec![Output::Received(head(1, false)), Output::Received(data(1, 10, true))]
    );
    for frame in [Part::Interim(1, 102), head(1, false), data(1, 5, false), data(1, 0, true)] {
        gateway.handle_input(NOW, Input::Send(frame, Urgency::DEFAULT));
    }
    let (reported, _) = exchange(&mut edge, &mut gateway);
    assert_eq!(reported.len(), 4);
    assert_eq!((edge.open_exchanges(), gateway.open_exchanges()), (0, 0));
}

#[test]
fn neither_side_sends_beyond_its_credit() {
    let (mut edge, mut gateway) = connected();
    edge.handle_input(NOW, Input::Send(head(1, false), Urgency::DEFAULT));
    edge.handle_input(NOW, Input::Send(data(1, 1000 - 128, false), Urgency::DEFAULT));
    exchange(&mut edge, &mut gateway);
    assert_eq!(edge.credit(1), 0);
    gateway.handle_input(NOW, Input::Send(Part::Credit(1, 300), Urgency::DEFAULT));
    exchange(&mut edge, &mut gateway);
    assert_eq!(edge.credit(1), 300);
    edge.handle_input(NOW, Input::Send(data(1, 300 - 127, false), Urgency::DEFAULT));
    assert!(matches!(fault(&drain(&mut edge)), Error::Caller { .. }));
}

#[test]
fn a_peer_that_passes_its_credit_is_refused() {
    let (mut edge, mut gateway) = connected();
    edge.handle_input(NOW, Input::Send(head(1, false), Urgency::DEFAULT));
    exchange(&mut edge, &mut gateway);
    let mut bytes = Vec::new();
    Frame::from(data(1, 1001 - 128, false)).encode(&mut bytes);
    gateway.handle_input(NOW, Input::Bytes(bytes.into()));
    let what = "the credit that DATA uses";
    let expected = Error::Limit { what, value: 1001, limit: 1000 };
    assert_eq!(fault(&drain(&mut gateway)), &expected);
    gateway.handle_input(NOW, Input::Bytes(Bytes::from_static(&[1, 1, 1])));
    assert!(drain(&mut gateway).is_empty(), "nothing comes out after a fault");
}

#[test]
fn too_many_exchanges_are_refused() {
    let (mut edge, mut gateway) = connected();
    for number in 1..=2 {
        edge.handle_input(NOW, Input::Send(head(number, false), Urgency::DEFAULT));
    }
    exchange(&mut edge, &mut gateway);
    let mut bytes = Vec::new();
    Frame::from(head(3, false)).encode(&mut bytes);
    gateway.handle_input(NOW, Input::Bytes(bytes.into()));
    assert!(matches!(fault(&drain(&mut gateway)), Error::Limit { value: 3, limit: 2, .. }));
}

#[test]
fn frames_of_an_exchange_given_up_are_ignored() {
    let (mut edge, mut gateway) = connected();
    edge.handle_input(NOW, Input::Send(head(1, true), Urgency::DEFAULT));
    exchange(&mut edge, &mut gateway);
    let abort = Part::Abort(Abort { exchange: 1, code: 2, reason: "client left".into() });
    edge.handle_input(NOW, Input::Send(abort.clone(), Urgency::DEFAULT));
    gateway.handle_input(NOW, Input::Send(head(1, false), Urgency::DEFAULT));
    gateway.handle_input(NOW, Input::Send(data(1, 10, true), Urgency::DEFAULT));
    let (at_edge, at_gateway) = exchange(&mut edge, &mut gateway);
    assert_eq!(at_edge, vec![]);
    // The gateway had finished sending, but the edge's message was over: it may still be reported.
    assert!(at_gateway.iter().all(|output| *output == Output::Received(abort.clone())));
    assert_eq!((edge.open_exchanges(), gateway.open_exchanges()), (0, 0));
}

#[test]
fn a_query_opens_a_flow_for_the_answer_only() {
    let (mut edge, mut gateway) = connected();
    edge.handle_input(NOW, Input::Send(Part::Query(9, 1), Urgency::DEFAULT));
    edge.handle_input(NOW, Input::Send(Part::Query(8, 1), Urgency::DEFAULT));
    let (_, reported) = exchange(&mut edge, &mut gateway);
    assert_eq!(reported.len(), 2);
    gateway
        .handle_input(NOW, Input::Send(Part::Outcome(9, OutcomeState::Answer), Urgency::DEFAULT));
    gateway.handle_input(NOW, Input::Send(head(9, true), Urgency::DEFAULT));
    gateway.handle_input(
        NOW,
        Input::Send(Part::Outcome(8, OutcomeState::Lost(200)), Urgency::DEFAULT),
    );
    let (reported, _) = exchange(&mut edge, &mut gateway);
    assert_eq!(reported.len(), 3);
    assert_eq!((edge.open_exchanges(), gateway.open_exchanges()), (0, 0));
}

/// What a peer sends as it likes, and what the machine makes of it.
fn reported(to: Role, parts: &[Part]) -> Vec<Output> {
    let (mut edge, mut gateway) = connected();
    edge.handle_input(NOW, Input::Send(head(1, false), Urgency::DEFAULT));
    edge.handle_input(NOW, Input::Send(Part::Query(2, 1), Urgency::DEFAULT));
    exchange(&mut edge, &mut gateway);
    let mut bytes = Vec::new();
    parts.iter().cloned().for_each(|part| Frame::from(part).encode(&mut bytes));
    let machine = if to == Role::Edge { &mut edge } else { &mut gateway };
    machine.handle_input(NOW, Input::Bytes(bytes.into()));
    drain(machine)
}

#[test]
fn what_costs_nothing_cannot_be_sent_for_ever() {
    let outputs = reported(Role::Gateway, &[data(1, 0, false)]);
    assert!(matches!(fault(&outputs), Error::Peer { .. }), "an empty block");
    let blocks: Vec<_> = (0..8).map(|_| data(1, 1, false)).collect();
    let outputs = reported(Role::Gateway, &blocks);
    assert_eq!(outputs.len(), 8, "1000 bytes of credit are for 7 blocks of a byte");
    assert!(matches!(fault(&outputs), Error::Limit { value: 129, limit: 97, .. }));
}

#[test]
fn frames_out_of_turn_are_faults() {
    let answer = Part::Outcome(2, OutcomeState::Answer);
    let cases: [(Role, &[Part]); 11] = [
        (Role::Gateway, &[head(1, false)]),
        (Role::Gateway, &[data(1, 1, true), data(1, 1, true)]),
        (Role::Edge, &[data(1, 1, false)]),
        (Role::Gateway, &[Part::Query(1, 1)]),
        (Role::Edge, &[head(2, true)]),
        (Role::Edge, &[answer.clone(), answer.clone()]),
        (Role::Edge, &[Part::Outcome(1, OutcomeState::NotSeen)]),
        (Role::Edge, &[Part::Interim(2, 103)]),
        (Role::Edge, &[head(1, false), Part::Interim(1, 103)]),
        (Role::Gateway, &[Part::Interim(1, 103)]),
        (Role::Gateway, &[Part::Outcome(1, OutcomeState::NotSeen)]),
    ];
    for (to, frames) in cases {
        assert!(matches!(fault(&reported(to, frames)), Error::Peer { .. }), "{frames:?}");
    }
    let outputs = reported(Role::Edge, &[answer, Part::Interim(2, 103), head(2, true)]);
    assert_eq!(outputs.len(), 3, "in turn they are taken: {outputs:?}");
}

#[test]
fn what_is_given_up_between_two_frames_is_over_for_the_second() {
    let (mut edge, mut gateway) = connected();
    edge.handle_input(NOW, Input::Send(head(1, false), Urgency::DEFAULT));
    edge.handle_input(NOW, Input::Send(data(1, 10, true), Urgency::DEFAULT));
    let Some(Output::Bytes(bytes)) = edge.poll_output() else { panic!("nothing sent") };
    gateway.handle_input(NOW, Input::Bytes(bytes));
    assert_eq!(gateway.poll_output(), Some(Output::Received(head(1, false))));
    let abort = Part::Abort(Abort { exchange: 1, code: 0, reason: String::new() });
    gateway.handle_input(NOW, Input::Send(abort, Urgency::DEFAULT));
    assert!(matches!(drain(&mut gateway)[..], [Output::Bytes(_)]));
}

#[test]
fn an_informational_response_behind_the_final_one_is_not_sent() {
    let (mut edge, mut gateway) = connected();
    edge.handle_input(NOW, Input::Send(head(1, true), Urgency::DEFAULT));
    exchange(&mut edge, &mut gateway);
    for frame in [Part::Interim(1, 102), head(1, false), Part::Interim(1, 103)] {
        gateway.handle_input(NOW, Input::Send(frame, Urgency::DEFAULT));
    }
    let (reported, _) = exchange(&mut edge, &mut gateway);
    assert_eq!(reported.len(), 2, "{reported:?}");
}

#[test]
fn pieces_keep_to_credit_and_end_the_block_with_the_last() {
    for (credit, most) in [(1, 9), (128, 9), (129, 1), (500, 4), (500, 64), (3, 2)] {
        let Part::Data(mut rest) = data(1, 10, true) else { panic!("not data") };
        let mut sum = 0;
        while let Some(piece) = rest.split_piece(credit, most) {
            assert!(piece.credit() <= credit && piece.bytes.len() <= most);
            sum += piece.bytes.len();
            assert_eq!(piece.block_end.is_some(), rest.bytes.is_empty());
            assert_eq!(piece.end, rest.bytes.is_empty());
            if piece.end {
                break;
            }
        }
        // Without credit for its end, the block's last byte stays.
        assert_eq!(sum, if credit < 129 { 9 } else { 10 }, "credit {credit}, most {most}");
    }
}

/// A later version announces itself with parameters and frames that this one does not know.
#[test]
fn a_newer_peer_is_understood_and_a_too_new_one_refused() {
    let hello = |least: u64| {
        let mut payload = Vec::new();
        varint::encode(least, &mut payload);
        varint::encode(9, &mut payload);
        payload.extend(1_u64.to_be_bytes());
        for (id, value) in [(1, 50), (2, 10), (77, 5)] {
            varint::encode(id, &mut payload);
            payload.extend([1, value]);
        }
        let mut bytes = vec![0];
        varint::encode_bytes(&payload, &mut bytes);
        bytes.extend([0x40, 0x55, 3, 1, 2, 3]);
        Bytes::from(bytes)
    };
    let mut edge = machine(Role::Edge);
    edge.handle_input(NOW, Input::Bytes(hello(1)));
    let reported = drain(&mut edge);
    assert!(matches!(&reported[..], [Output::Greeted, Output::Bytes(_)]), "{reported:?}");
    assert_eq!(edge.peer().map(|peer| (peer.version, peer.max_exchanges)), Some((1, 10)));
    edge.handle_input(NOW, Input::Send(head(1, false), Urgency::DEFAULT));
    assert_eq!(edge.credit(1), 50);
    let mut edge = machine(Role::Edge);
    edge.handle_input(NOW, Input::Bytes(hello(2)));
    assert!(matches!(fault(&drain(&mut edge)), Error::Limit { value: 9, limit: 1, .. }));
}

#[test]
fn the_first_frame_must_be_hello_and_only_the_first() {
    let mut gateway = machine(Role::Gateway);
    gateway.handle_input(NOW, Input::Bytes(Bytes::from_static(&[1, 1, 5])));
    assert!(matches!(fault(&drain(&mut gateway)), Error::Peer { .. }));
    let mut edge = machine(Role::Edge);
    let Some(Output::Bytes(hello)) = edge.poll_output() else { panic!("no HELLO") };
    let mut gateway = machine(Role::Gateway);
    for _ in 0..2 {
        gateway.handle_input(NOW, Input::Bytes(hello.clone()));
    }
    let expected = Error::Peer { what: "a second HELLO", value: 0 };
    assert_eq!(fault(&drain(&mut gateway)), &expected);
}

#[test]
fn before_hello_an_edge_sends_nothing_but_whole_requests_and_takes_them_back() {
    let abort = |exchange| Part::Abort(Abort { exchange, code: 0, reason: String::new() });
    let coded = Head { exchange: 1, codec: 1, window_log: 20, end: true, head: Bytes::new() };
    let keeping = Keeping::Principal { exchange: 1, principal: 1 }.part();
    let early = [head(1, true), keeping.clone(), abort(1)];
    let late = [
        head(1, false),
        Part::Head(coded),
        data(1, 1, true),
        Part::Trailers(1, Vec::new()),
        Part::Query(1, 1),
        Part::Credit(1, 1),
        Part::GoAway,
        Part::Control(Keeping::KIND + 1, Bytes::new()),
    ];
    for (frames, may) in [(&early[..], true), (&late[..], false)] {
        for frame in frames {
            let (mut edge, gateway) = (machine(Role::Edge), machine(Role::Gateway));
            assert_eq!(edge.may_send(frame), may, "{frame:?}");
            assert!(!gateway.may_send(frame), "{frame:?}");
            edge.handle_input(NOW, Input::Send(frame.clone(), Urgency::DEFAULT));
            let is_fault = drain(&mut edge).iter().any(|one| matches!(one, Output::Fault(_)));
            assert_eq!(is_fault, !may, "{frame:?}");
        }
    }
    let (mut edge, mut gateway) = (machine(Role::Edge), machine(Role::Gateway));
    for frame in [head(1, true), keeping.clone(), head(2, true), abort(2)] {
        edge.handle_input(NOW, Input::Send(frame, Urgency::DEFAULT));
    }
    let (at_edge, at_gateway) = exchange(&mut edge, &mut gateway);
    assert!(matches!(&at_edge[..], [Output::Greeted]), "{at_edge:?}");
    let behind: Vec<_> = [head(1, true), keeping, head(2, true), abort(2)]
        .into_iter()
        .map(Output::Received)
        .collect();
    assert_eq!(at_gateway[1..], behind);
    assert_eq!((edge.open_exchanges(), gateway.open_exchanges()), (1, 1));
    gateway.handle_input(NOW, Input::Send(head(1, true), Urgency::DEFAULT));
    exchange(&mut edge, &mut gateway);
    assert_eq!((edge.open_exchanges(), gateway.open_exchanges()), (0, 0));
}

#[test]
fn before_hello_the_number_of_exchanges_has_a_bound_and_behind_it_that_of_hello() {
    let mut edge = machine(Role::Edge);
    (1..=MAX_EARLY_EXCHANGES).for_each(|number| {
        edge.handle_input(NOW, Input::Send(head(number, true), Urgency::DEFAULT));
    });
    assert!(matches!(&drain(&mut edge)[..], [Output::Bytes(_)]));
    let mut more = machine(Role::Edge);
    (0..=MAX_EARLY_EXCHANGES).for_each(|number| {
        more.handle_input(NOW, Input::Send(head(number, true), Urgency::DEFAULT));
    });
    assert!(matches!(fault(&drain(&mut more)), Error::Limit { value: 17, limit: 16, .. }));
    // It takes two: those that are open stay, and no more begin.
    let mut gateway = machine(Role::Gateway);
    let Some(Output::Bytes(hello)) = gateway.poll_output() else { panic!("no HELLO") };
    edge.handle_input(NOW, Input::Bytes(hello));
    assert_eq!(drain(&mut edge).len(), 1);
    assert_eq!(edge.open_exchanges(), 16);
    edge.handle_input(NOW, Input::Send(head(17, true), Urgency::DEFAULT));
    assert!(matches!(fault(&drain(&mut edge)), Error::Limit { value: 17, limit: 2, .. }));
}

#[test]
fn a_frame_too_long_is_refused_before_it_is_held() {
    let mut bytes = BytesMut::from(&[0x20_u8][..]);
    let mut len = Vec::new();
    varint::encode(MAX_PAYLOAD_BYTES as u64 + 1, &mut len);
    bytes.extend_from_slice(&len);
    assert!(matches!(Frame::take(&mut bytes), Err(Error::Limit { .. })));
}

#[test]
fn a_reason_that_is_not_text_stays_within_its_bound() {
    let mut bytes = vec![0x09];
    varint::encode_bytes(&[&[1, 2][..], &[0xff; 300]].concat(), &mut bytes);
    let frame = Frame::take(&mut BytesMut::from(&bytes[..])).unwrap().unwrap();
    let mut again = Vec::new();
    frame.encode(&mut again);
    assert_eq!(Frame::take(&mut BytesMut::from(&again[..])), Ok(Some(frame.clone())));
    assert!(
        matches!(frame, Frame::Part(Part::Abort(abort)) if abort.reason.len() == 198),
        "66 times U+FFFD"
    );
}

/// A reason is for logs and people: it begins no line of its own and turns no text around.
#[test]
fn a_reason_stays_in_its_line() {
    let nasty =
        "a\r\nb\u{1b}[31m\u{85}\u{9b}\u{7f}\u{2028}\u{202e}\u{2066}\u{200f}\u{61c}\tc\u{e9}";
    let mut bytes = vec![0x09];
    varint::encode_bytes(&[&[1, 2][..], nasty.as_bytes()].concat(), &mut bytes);
    let frame = Frame::take(&mut BytesMut::from(&bytes[..])).unwrap().unwrap();
    assert!(
        matches!(&frame, Frame::Part(Part::Abort(abort)) if abort.reason == "ab[31mc\u{e9}"),
        "{frame:?}"
    );
}

#[test]
fn a_probe_is_answered_with_its_number() {
    let (mut edge, mut gateway) = connected();
    edge.handle_input(NOW, Input::Probe(5));
    let (at_edge, at_gateway) = exchange(&mut edge, &mut gateway);
    assert_eq!((at_edge, at_gateway), (vec![Output::Answered(5)], vec![]));
    let mut early = machine(Role::Edge);
    early.handle_input(NOW, Input::Probe(5));
    assert!(drain(&mut early).iter().any(|one| matches!(one, Output::Fault(_))));
}

/// Whatever the pieces, and what else is sent between them.
#[test]
fn a_block_whose_length_must_not_tell_is_padded_to_a_step() {
    let sent = |len: usize, cut: usize, padding: Option<Padding>| {
        let (mut edge, mut gateway) = connected();
        edge.handle_input(NOW, Input::Send(head(1, false), Urgency::DEFAULT));
        exchange(&mut edge, &mut gateway);
        let Part::Data(whole) = data(1, len, true) else { unreachable!() };
        let mut rest = Data { padding, ..whole };
        let first = rest.split_piece(u64::MAX, cut);
        let (mut expected, mut sum) = (0, 0);
        for piece in first.into_iter().chain((!rest.bytes.is_empty()).then_some(rest)) {
            let part = Part::Data(piece);
            expected += edge.wire_len(&part);
            edge.handle_input(NOW, Input::Send(part, Urgency::DEFAULT));
            for output in drain(&mut edge) {
                let Output::Bytes(bytes) = output else { panic!("{output:?}") };
                sum += bytes.len();
                gateway.handle_input(NOW, Input::Bytes(bytes));
            }
        }
        assert!(expected.abs_diff(sum) < 8, "{expected} for {sum}");
        assert!(matches!(drain(&mut gateway)[..], [Output::Received(_), ..]), "no fault");
        sum
    };
    for len in 1..200 {
        for cut in [1, len / 2 + 1, len] {
            let padded = sent(len, cut, Some(Padding::new([7, 3])));
            assert_eq!(padded % Padding::STEP_BYTES, 0, "{len} cut at {cut}");
            assert!(padded >= sent(len, cut, None) + 14, "{len} cut at {cut}");
        }
    }
}

#[test]
fn padding_takes_any_length_and_says_nothing() {
    for bytes in (MIN_PADDING_BYTES..300).chain([MAX_PADDING_BYTES]) {
        let mut encoded = Vec::new();
        Frame::Padding(bytes).encode(&mut encoded);
        assert_eq!(encoded.len(), bytes);
        Frame::from(Part::GoAway).encode(&mut encoded);
        let mut buffer = BytesMut::from(&encoded[..]);
        assert_eq!(Frame::take(&mut buffer), Ok(Some(Part::GoAway.into())));
        assert!(buffer.is_empty());
    }
}

fn any_part() -> impl Strategy<Value = Part> {
    let number = 0..varint::MAX;
    let bytes = proptest::collection::vec(any::<u8>(), 0..50).prop_map(Bytes::from);
    prop_oneof![
        Just(Part::GoAway),
        (number.clone(), bytes.clone()).prop_map(|(kind, bytes)| Part::Control(kind, bytes)),
        (number.clone(), number.clone()).prop_map(|(a, b)| Part::Credit(a, b)),
        (number.clone(), 100_u16..200).prop_map(|(a, b)| Part::Interim(a, b)),
        (number.clone(), number.clone()).prop_map(|(exchange, at)| Part::Query(exchange, at)),
        (number.clone(), 200_u16..600).prop_map(|(a, b)| Part::Outcome(a, OutcomeState::Lost(b))),
        (number.clone(), number.clone(), "[ -~]{0,50}")
            .prop_map(|(exchange, code, reason)| { Part::Abort(Abort { exchange, code, reason }) }),
        (number.clone(), 0..9_u64, any::<bool>(), bytes.clone()).prop_map(|(n, codec, end, b)| {
            let window_log = if codec == 0 { 0 } else { 20 };
            Part::Head(Head { exchange: n, codec, window_log, end, head: b })
        }),
        (number, proptest::option::of(0..65_536_u64), any::<[bool; 3]>(), bytes).prop_map(
            |(exchange, block_end, [uncoded, anew, end], bytes)| {
                let anew = anew && !uncoded;
                let end = end && block_end.is_some();
                Part::Data(Data { exchange, block_end, uncoded, anew, end, padding: None, bytes })
            }
        ),
    ]
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let number = 0..varint::MAX;
    prop_oneof![
        1 => number.clone().prop_map(Frame::Ping),
        1 => number.prop_map(Frame::Pong),
        8 => any_part().prop_map(Frame::Part),
    ]
}

proptest! {
    #[test]
    fn frames_round_trip_in_any_cut(
        frames in proptest::collection::vec(any_frame(), 0..8), cut in 1..40_usize,
    ) {
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.encode(&mut bytes));
        let (mut buffer, mut back) = (BytesMut::new(), Vec::new());
        for chunk in bytes.chunks(cut) {
            buffer.extend_from_slice(chunk);
            while let Some(frame) = Frame::take(&mut buffer).unwrap() {
                back.push(frame);
            }
        }
        prop_assert_eq!(back, frames);
        prop_assert!(buffer.is_empty());
    }

    #[test]
    fn no_input_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), gateway: bool) {
        let mut machine = machine(if gateway { Role::Gateway } else { Role::Edge });
        let mut hello = Vec::new();
        Frame::Hello(Hello {
            version_min: 1, version_max: 1, instance: 1, initial_credit: 9,
            max_exchanges: 9, codecs: vec![], max_window_log: 9,
            anew: true, parallel: true, counts: true, packs: true,
        }).encode(&mut hello);
        machine.handle_input(NOW, Input::Bytes(hello.into()));
        machine.handle_input(NOW, Input::Bytes(bytes.into()));
        drain(&mut machine);
    }
}
