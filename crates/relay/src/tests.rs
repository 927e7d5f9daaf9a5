//! Single behaviours, step by step; the interplay under trouble is in `sim/`.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use coding::{ExchangeId, Service};
use record::event::{Event, Fact};

use crate::carriers::carrier::path_of;
use crate::exchanges::Stage;
use crate::timers::Key;
use bytes::{Bytes, BytesMut};
use coding::job::{Contexts, Decode, Done, Job};
use coding::{Encoding, MAX_PRINCIPALS, Secret, Speeds};
use proto::bhttp;
use proto::carrier::{self, Machine as _};
use proto::exchange::{Abort, Data, Head as HeadPart, OutcomeState, Part};
use proto::stream::{self, Frame, Machine};
use proto::urgency::Urgency;

use super::*;

mod allowed;
mod bases;
mod decision;
mod drain;
mod early;
mod handling;
mod hostile;
mod infoset;
mod kinds;
mod learned;
mod processor;
mod pulse;
mod recovery;
mod revision;
mod shares;
mod urgency;

const CARRIER: CarrierId = CarrierId(0);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn drain(relay: &mut Relay) -> Vec<Output> {
    std::iter::from_fn(|| relay.poll_output())
        .filter(|output| !matches!(output, Output::Event(_) | Output::WakeAt(_)))
        .collect()
}

/// The other end of a relay's carrier, spoken by hand.
struct Peer(Machine);

impl Peer {
    fn new(role: Role, instance: u64) -> Self {
        Self::with(role, instance, 8, 100_000)
    }

    fn with(role: Role, instance: u64, max_exchanges: u64, initial_credit: u64) -> Self {
        Self(Machine::new(carrier::Setup {
            role,
            instance,
            initial_credit,
            max_exchanges,
            codecs: vec![0, 1, 2],
            max_window_log: 20,
            own_bytes_per_s: None,
        }))
    }

    /// Takes what the relay transmitted; the frames in it.
    fn takes(&mut self, outputs: &[Output]) -> Vec<Part> {
        let mut frames = Vec::new();
        for output in outputs {
            if let Output::Transmit { bytes, .. } = output {
                self.0.handle_input(Duration::ZERO, carrier::Input::Bytes(bytes.clone()));
            }
        }
        while let Some(output) = self.0.poll_output() {
            match output {
                carrier::Output::Greeted
                | carrier::Output::Answered(_)
                | carrier::Output::WakeAt(_)
                | carrier::Output::Datagram(_)
                | carrier::Output::Stream(_)
                | carrier::Output::Bytes(_) => {}
                carrier::Output::Received(frame) => frames.push(frame),
                carrier::Output::Fault(error) | carrier::Output::Lost(error) => panic!("{error}"),
            }
        }
        frames
    }

    /// Sends frames; what the relay wants then.
    fn sends(
        &mut self,
        relay: &mut Relay,
        now: Duration,
        carrier: CarrierId,
        frames: &[Part],
    ) -> Vec<Output> {
        for frame in frames {
            self.0.handle_input(now, carrier::Input::Send(frame.clone(), Urgency::DEFAULT));
        }
        while let Some(output) = self.0.poll_output() {
            match output {
                carrier::Output::Bytes(bytes) => {
                    relay.handle_input(now, Input::Received { carrier, bytes });
                }
                other => panic!("{other:?}"),
            }
        }
        drain(relay)
    }
}

/// A relay with its carrier up and the HELLOs exchanged.
fn connected(config: Config, peer_instance: u64) -> (Relay, Peer) {
    let other = if config.role == Role::Edge { Role::Gateway } else { Role::Edge };
    let mut relay = Relay::new(config);
    relay.handle_input(Duration::ZERO, Input::Wake);
    drain(&mut relay);
    let peer = connect(&mut relay, Duration::ZERO, CARRIER, other, peer_instance);
    (relay, peer)
}

fn connect(
    relay: &mut Relay,
    now: Duration,
    carrier: CarrierId,
    role: Role,
    instance: u64,
) -> Peer {
    connect_to(relay, now, carrier, Peer::new(role, instance)).0
}

/// Connects a peer; it and what the relay wants then.
fn connect_to(
    relay: &mut Relay,
    now: Duration,
    carrier: CarrierId,
    mut peer: Peer,
) -> (Peer, Vec<Output>) {
    relay.handle_input(
        now,
        Input::CarrierUp { carrier, kind: CarrierKind::FIRST, peer: "peer".into() },
    );
    let hello = drain(relay);
    let Some(carrier::Output::Bytes(bytes)) = peer.0.poll_output() else { panic!("no HELLO") };
    for output in hello {
        if let Output::Transmit { bytes, .. } = output {
            peer.0.handle_input(now, carrier::Input::Bytes(bytes));
        }
    }
    // Its HELLO; what came behind that, the peer reads with what comes next.
    peer.0.poll_output();
    relay.handle_input(now, Input::Received { carrier, bytes });
    let outputs = drain(relay);
    (peer, outputs)
}

/// What a peer of before sends: its HELLO knows less.
fn without_anew(bytes: Bytes) -> Bytes {
    let mut rest = BytesMut::from(&bytes[..]);
    let Ok(Some(Frame::Hello(hello))) = Frame::take(&mut rest) else { return bytes };
    let mut out = Vec::new();
    Frame::Hello(stream::Hello { anew: false, ..hello }).encode(&mut out);
    out.extend_from_slice(&rest);
    out.into()
}

fn edge() -> (Relay, Peer) {
    connected(Config::new(Role::Edge, 1), 9)
}

fn request(method: &str, fields: &[(&str, &str)]) -> Head {
    let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    Head::Request(bhttp::Request {
        method: text(method),
        scheme: text("http"),
        authority: text("origin"),
        path: text("/"),
        fields: fields.iter().map(|(name, value)| (text(name), text(value))).collect(),
    })
}

/// What the local side says with a head.
fn local(exchange: ExchangeId, head: Head, end: bool) -> Input {
    known(exchange, head, end, Known::default())
}

/// The same, with what it knows of a request besides.
fn known(exchange: ExchangeId, head: Head, end: bool, known: Known) -> Input {
    match head {
        Head::Request(request) => Input::Request { exchange, request, end, known: Box::new(known) },
        Head::Response(response) => Input::Response { exchange, response, end },
        Head::Opening(opening) => Input::Opening { exchange, opening, end, known: Box::new(known) },
        Head::Message(message) => Input::Answer { exchange, message, end },
    }
}

fn response_frame(exchange: u64, end: bool) -> Part {
    let mut head = Vec::new();
    bhttp::Response { status: 200, fields: Vec::new() }.encode(&mut head);
    Part::Head(HeadPart { exchange, codec: 0, window_log: 0, end, head: head.into() })
}

fn asks(relay: &mut Relay, now: Duration, method: &str, end: bool) -> (ExchangeId, Vec<Output>) {
    let exchange = relay.next_exchange();
    relay.handle_input(now, local(exchange, request(method, &[]), end));
    (exchange, drain(relay))
}

/// A GET that may go another way.
fn asks_with_another_way(relay: &mut Relay, now: Duration) -> (ExchangeId, Vec<Output>) {
    let exchange = relay.next_exchange();
    let other_way = Known { other_way: true, ..Known::default() };
    relay.handle_input(now, known(exchange, request("GET", &[]), true, other_way));
    (exchange, drain(relay))
}

/// The first block that is to be decoded.
fn to_decode(outputs: &[Output]) -> Option<Decode> {
    outputs.iter().find_map(|output| match output {
        Output::Job(Job::Decode(job)) => Some(job.clone()),
        _ => None,
    })
}

/// What would have come of a block.
fn decoded(job: &Decode, plain: &[u8], cpu: Duration) -> Input {
    let (exchange, block) = (job.exchange, job.block);
    let result = Ok(Bytes::copy_from_slice(plain));
    Input::Done(Done::Decoded { exchange, block, result, cpu })
}

fn abort(outputs: &[Output]) -> (CauseKind, bool) {
    let found = outputs.iter().find_map(|output| match output {
        Output::Abort { cause, untouched, .. } => Some((cause.kind, *untouched)),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no abort in {outputs:?}"))
}

#[test]
fn a_request_without_body_leaves_at_once_in_one_frame() {
    let (mut relay, mut peer) = edge();
    let (_, outputs) = asks(&mut relay, ms(5), "GET", true);
    let frames = peer.takes(&outputs);
    assert!(matches!(&frames[..], [Part::Head(head)] if head.end && head.codec == 0));
}

#[test]
fn a_head_waits_for_its_body_but_not_for_long() {
    let (mut relay, mut peer) = edge();
    let (exchange, outputs) = asks(&mut relay, ms(0), "POST", false);
    assert!(peer.takes(&outputs).is_empty(), "the head waits for its body");
    assert!(matches!(outputs[..], [Output::Credit { bytes: LOCAL_WINDOW_BYTES, .. }]));
    relay.handle_input(ms(3), Input::Data { exchange, bytes: Bytes::from_static(b"small") });
    relay.handle_input(ms(3), Input::End { exchange, trailers: Vec::new() });
    let frames = peer.takes(&drain(&mut relay));
    assert!(matches!(&frames[..], [Part::Head(_), Part::Data(Data { end: true, .. })]));

    let (_, outputs) = asks(&mut relay, ms(100), "POST", false);
    assert!(peer.takes(&outputs).is_empty());
    relay.handle_input(ms(119), Input::Wake);
    assert!(peer.takes(&drain(&mut relay)).is_empty());
    relay.handle_input(ms(120), Input::Wake);
    let frames = peer.takes(&drain(&mut relay));
    assert!(matches!(&frames[..], [Part::Head(head)] if !head.end), "{frames:?}");
}

#[test]
fn an_event_stream_flows_in_blocks_of_20_ms() {
    let (mut relay, mut peer) = edge();
    let (exchange, _) = asks(&mut relay, ms(0), "POST", false);
    relay.handle_input(ms(20), Input::Wake);
    peer.takes(&drain(&mut relay));
    relay.handle_input(ms(30), Input::Data { exchange, bytes: Bytes::from_static(b"event 1") });
    assert!(!drain(&mut relay).iter().any(|output| matches!(output, Output::Job(_))));
    relay.handle_input(ms(50), Input::Wake);
    let outputs = drain(&mut relay);
    let job = outputs.iter().find_map(|output| match output {
        Output::Job(Job::Encode(job)) => Some(job),
        _ => None,
    });
    let job = job.expect("the block closes");
    assert_eq!((&job.bytes[..], job.last), (&b"event 1"[..], false));
}

#[test]
fn a_body_that_expects_100_is_not_asked_for_before_it() {
    let (mut relay, mut peer) = edge();
    let exchange = relay.next_exchange();
    let head = request("PUT", &[("expect", "100-continue")]);
    relay.handle_input(ms(0), local(exchange, head, false));
    let outputs = drain(&mut relay);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Credit { .. })));
    assert_eq!(peer.takes(&outputs).len(), 1, "the head goes at once");
    let outputs = peer.sends(&mut relay, ms(9), CARRIER, &[Part::Interim(1, 100)]);
    assert!(outputs.iter().any(|output| matches!(output, Output::Interim { status: 100, .. })));
    assert!(outputs.iter().any(|output| matches!(output, Output::Credit { .. })));
}

/// An answer of so many bytes to a request that has just left.
fn long_answer(relay: &mut Relay, peer: &mut Peer, id: ExchangeId, bytes: usize) {
    let exchange = id.number;
    peer.sends(relay, ms(1), CARRIER, &[response_frame(exchange, false)]);
    relay.handle_input(ms(1), Input::Credit { exchange: id, bytes: 1 << 30 });
    let piece = vec![7; 32 << 10];
    for at in 0..bytes / piece.len() {
        let data = Data {
            exchange,
            block_end: Some(piece.len() as u64),
            uncoded: false,
            anew: false,
            end: at + 1 == bytes / piece.len(),
            padding: None,
            bytes: piece.clone().into(),
        };
        let outputs = peer.sends(relay, ms(2), CARRIER, &[Part::Data(data)]);
        peer.takes(&outputs);
    }
    relay.handle_input(ms(3), Input::Wake);
    peer.takes(&drain(relay));
}

#[test]
fn after_long_answers_the_next_need_not_wait_for_credit() {
    let credit = |frames: &[Part]| match frames {
        [Part::Head(_), Part::Credit(_, bytes), ..] => Some(*bytes),
        [Part::Head(_), ..] => None,
        other => panic!("{other:?}"),
    };
    let (mut relay, mut peer) = edge();
    let (first, outputs) = asks(&mut relay, ms(0), "GET", true);
    assert_eq!(credit(&peer.takes(&outputs)), None);
    long_answer(&mut relay, &mut peer, first, 96 << 10);
    let (second, outputs) = asks(&mut relay, ms(4), "GET", true);
    assert_eq!(credit(&peer.takes(&outputs)), None, "what came was within the credit");
    long_answer(&mut relay, &mut peer, second, 1 << 20);
    let (third, outputs) = asks(&mut relay, ms(5), "GET", true);
    let ahead = credit(&peer.takes(&outputs)).expect("no credit ahead");
    assert_eq!(INITIAL_CREDIT_BYTES + ahead, config::MAX_CREDIT_BYTES);
    // The memory for answers is not promised twice.
    let (_, outputs) = asks(&mut relay, ms(5), "GET", true);
    let more = credit(&peer.takes(&outputs)).expect("no credit ahead");
    assert!(2 * INITIAL_CREDIT_BYTES + ahead + more <= relay.transfer.core.config.receive_bytes);
    long_answer(&mut relay, &mut peer, third, 64 << 10);
    for _ in 0..100 {
        let (next, outputs) = asks(&mut relay, ms(6), "GET", true);
        peer.takes(&outputs);
        long_answer(&mut relay, &mut peer, next, 32 << 10);
    }
    let (_, outputs) = asks(&mut relay, ms(7), "GET", true);
    assert_eq!(credit(&peer.takes(&outputs)), None, "short answers for long");
}

/// The next may go as it is, and would wait for credit where the last did not have to.
#[test]
fn answers_are_long_that_came_in_few_bytes() {
    let (mut relay, mut peer) = edge();
    let (id, outputs) = asks(&mut relay, ms(0), "GET", true);
    peer.takes(&outputs);
    let Part::Head(head) = response_frame(id.number, false) else { unreachable!() };
    let head = Part::Head(HeadPart { codec: 2, window_log: 17, ..head });
    peer.sends(&mut relay, ms(1), CARRIER, &[head]);
    relay.handle_input(ms(1), Input::Credit { exchange: id, bytes: 1 << 30 });
    let plain = Bytes::from(vec![7; 64 << 10]);
    for at in 1..=8 {
        let (block_end, end) = (Some(plain.len() as u64), at == 8);
        let (uncoded, anew, bytes) = (false, false, Bytes::from_static(b"all in all sevens"));
        let data =
            Data { exchange: id.number, block_end, uncoded, anew, end, padding: None, bytes };
        let outputs = peer.sends(&mut relay, ms(2), CARRIER, &[Part::Data(data)]);
        let done = decoded(&to_decode(&outputs).expect("a block to decode"), &plain, ms(0));
        relay.handle_input(ms(2), done);
        peer.takes(&drain(&mut relay));
    }
    let (_, outputs) = asks(&mut relay, ms(4), "GET", true);
    assert!(matches!(peer.takes(&outputs)[..], [Part::Head(_), Part::Credit(..), ..]));
}

/// Credit is the flow's, and a flow over another carrier has none of what was given ahead.
#[test]
fn credit_given_ahead_is_not_missed_where_the_answer_comes_over_another_carrier() {
    let (mut relay, mut peer) = edge();
    let (first, outputs) = asks(&mut relay, ms(0), "GET", true);
    peer.takes(&outputs);
    long_answer(&mut relay, &mut peer, first, 1 << 20);
    let (exchange, outputs) = asks(&mut relay, ms(5), "POST", true);
    assert!(matches!(peer.takes(&outputs)[..], [Part::Head(_), Part::Credit(..), ..]));
    relay.handle_input(ms(10), Input::CarrierDown { carrier: CARRIER, reason: "reset".into() });
    relay.handle_input(ms(1000), Input::Wake);
    let [Output::Dial { carrier, .. }] = drain(&mut relay)[..] else { panic!("no dial") };
    let gateway = Peer::new(Role::Gateway, 9);
    let (mut peer, outputs) = connect_to(&mut relay, ms(1100), carrier, gateway);
    assert_eq!(peer.takes(&outputs), vec![Part::Query(exchange.number, 1)]);
    let number = exchange.number;
    let frames = [Part::Outcome(number, OutcomeState::Answer), response_frame(number, false)];
    peer.sends(&mut relay, ms(2000), carrier, &frames);
    relay.handle_input(ms(2000), Input::Credit { exchange, bytes: 1 << 30 });
    let data = Data {
        exchange: number,
        block_end: Some(64 << 10),
        uncoded: false,
        anew: false,
        end: false,
        padding: None,
        bytes: vec![7; 64 << 10].into(),
    };
    let outputs = peer.sends(&mut relay, ms(2001), carrier, &[Part::Data(data)]);
    assert!(matches!(peer.takes(&outputs)[..], [Part::Credit(_, bytes)] if bytes > 0));
}

#[test]
fn an_unreachable_gateway_is_reported_in_time_and_the_body_untouched() {
    let mut relay = Relay::new(Config::new(Role::Edge, 1));
    let (_, outputs) = asks(&mut relay, ms(0), "POST", false);
    let [Output::Dial { carrier, .. }] = outputs[..] else { panic!("{outputs:?}") };
    relay.handle_input(ms(10), Input::CarrierDown { carrier, reason: "refused".into() });
    assert!(drain(&mut relay).is_empty());
    relay.handle_input(ms(1000), Input::Wake);
    assert!(matches!(drain(&mut relay)[..], [Output::Dial { .. }]), "dials again after a pause");
    relay.handle_input(ms(29_999), Input::Wake);
    assert!(drain(&mut relay).is_empty());
    relay.handle_input(ms(30_000), Input::Wake);
    assert_eq!(abort(&drain(&mut relay)), (CauseKind::GatewayUnreachable, true));
    assert!(relay.is_idle());
}

/// The edge lost its carrier after the request had gone and comes back to the same gateway.
fn reconnected(method: &str, gateway: u64) -> (Relay, Peer, ExchangeId, Vec<Output>) {
    let (mut relay, mut peer) = edge();
    let (exchange, outputs) = asks(&mut relay, ms(0), method, true);
    assert_eq!(peer.takes(&outputs).len(), 1);
    relay.handle_input(ms(10), Input::CarrierDown { carrier: CARRIER, reason: "reset".into() });
    assert!(drain(&mut relay).is_empty(), "the client waits");
    relay.handle_input(ms(1000), Input::Wake);
    let [Output::Dial { carrier, .. }] = drain(&mut relay)[..] else { panic!("no dial") };
    let gateway = Peer::new(Role::Gateway, gateway);
    let (peer, outputs) = connect_to(&mut relay, ms(1100), carrier, gateway);
    (relay, peer, exchange, outputs)
}

#[test]
fn after_a_broken_carrier_the_gateway_is_asked_and_its_answer_passed_on() {
    let (mut relay, mut peer, exchange, outputs) = reconnected("POST", 9);
    assert_eq!(peer.takes(&outputs), vec![Part::Query(exchange.number, 1)]);
    let number = exchange.number;
    let frames = [Part::Outcome(number, OutcomeState::Answer), response_frame(number, true)];
    let outputs = peer.sends(&mut relay, ms(2000), CarrierId(1), &frames);
    assert!(outputs.iter().any(|output| matches!(output, Output::Head { end: true, .. })));
    assert!(relay.is_idle());
}

#[test]
fn a_request_that_never_came_is_sent_again_and_no_other() {
    let (mut relay, mut peer, exchange, outputs) = reconnected("POST", 9);
    peer.takes(&outputs);
    let frames = [Part::Outcome(exchange.number, OutcomeState::NotSeen)];
    let outputs = peer.sends(&mut relay, ms(2000), CarrierId(1), &frames);
    assert!(matches!(&peer.takes(&outputs)[..], [Part::Head(head)] if head.end));

    let states = [
        (OutcomeState::Lost(200), CauseKind::AnswerLost),
        (OutcomeState::Aborted, CauseKind::OutcomeUnknown),
        (OutcomeState::Forgotten, CauseKind::OutcomeUnknown),
    ];
    for (state, cause) in states {
        let (mut relay, mut peer, exchange, outputs) = reconnected("POST", 9);
        peer.takes(&outputs);
        let frames = [Part::Outcome(exchange.number, state)];
        let outputs = peer.sends(&mut relay, ms(2000), CarrierId(1), &frames);
        assert_eq!(abort(&outputs).0, cause);
        assert!(peer.takes(&outputs).is_empty() && relay.is_idle());
    }
}

#[test]
fn a_restarted_gateway_gets_only_what_is_harmless_to_repeat() {
    let (_, mut peer, _, outputs) = reconnected("GET", 10);
    assert!(matches!(&peer.takes(&outputs)[..], [Part::Head(_)]));
    let (relay, mut peer, _, outputs) = reconnected("POST", 10);
    assert_eq!(abort(&outputs).0, CauseKind::OutcomeUnknown);
    assert!(peer.takes(&outputs).is_empty() && relay.is_idle());
}

fn gateway() -> (Relay, Peer) {
    connected(Config::new(Role::Gateway, 9), 1)
}

fn request_frame(number: u64) -> Part {
    let Head::Request(request) = request("POST", &[]) else { unreachable!() };
    let mut head = Vec::new();
    request.encode(&mut head);
    let (exchange, head) = (number, head.into());
    Part::Head(HeadPart { exchange, codec: 0, window_log: 0, end: true, head })
}

fn answers(relay: &mut Relay, now: Duration, body: &'static [u8]) -> Vec<Output> {
    let exchange = ExchangeId { instance: 1, number: 5 };
    let response = bhttp::Response { status: 201, fields: Vec::new() };
    let head = Head::Response(response);
    relay.handle_input(now, local(exchange, head, false));
    relay.handle_input(now, Input::Data { exchange, bytes: Bytes::from_static(body) });
    relay.handle_input(now, Input::End { exchange, trailers: Vec::new() });
    drain(relay)
}

#[test]
fn a_request_is_forwarded_once_however_often_it_comes() {
    let (mut relay, mut peer) = gateway();
    let outputs = peer.sends(&mut relay, ms(0), CARRIER, &[request_frame(5)]);
    assert!(outputs.iter().any(|output| matches!(output, Output::Head { end: true, .. })));
    let answer = answers(&mut relay, ms(10), b"done");
    assert_eq!(peer.takes(&answer).len(), 2);
    let outputs = peer.sends(&mut relay, ms(20), CARRIER, &[request_frame(5)]);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Head { .. })));
    let frames = peer.takes(&outputs);
    assert!(matches!(&frames[..], [Part::Abort(_)]), "{frames:?}");
}

#[test]
fn an_answer_whose_carrier_broke_is_kept_and_sent_again() {
    for answered_before_break in [true, false] {
        let (mut relay, mut peer) = gateway();
        peer.sends(&mut relay, ms(0), CARRIER, &[request_frame(5)]);
        if answered_before_break {
            answers(&mut relay, ms(5), b"done");
        }
        relay.handle_input(ms(10), Input::CarrierDown { carrier: CARRIER, reason: "cut".into() });
        if !answered_before_break {
            answers(&mut relay, ms(15), b"done");
        }
        let mut peer = connect(&mut relay, ms(20), CarrierId(1), Role::Edge, 1);
        let outputs = peer.sends(&mut relay, ms(30), CarrierId(1), &[Part::Query(5, 1)]);
        let frames = peer.takes(&outputs);
        let [Part::Outcome(5, OutcomeState::Answer), Part::Head(_), Part::Data(data)] = &frames[..]
        else {
            panic!("{frames:?}");
        };
        assert_eq!((&data.bytes[..], data.end), (&b"done"[..], true));
        assert!(relay.is_idle());
    }
}

#[test]
fn nobody_gets_another_peers_answer() {
    let (mut relay, mut peer) = gateway();
    peer.sends(&mut relay, ms(0), CARRIER, &[request_frame(5)]);
    let mut other = Peer::new(Role::Edge, 1);
    let carrier = CarrierId(1);
    relay.handle_input(
        ms(1),
        Input::CarrierUp { carrier, kind: CarrierKind::FIRST, peer: "somebody else".into() },
    );
    drain(&mut relay);
    let Some(carrier::Output::Bytes(bytes)) = other.0.poll_output() else { panic!("no HELLO") };
    relay.handle_input(ms(2), Input::Received { carrier, bytes });
    let outputs = drain(&mut relay);
    assert!(matches!(&outputs[..], [Output::Close { carrier: CarrierId(1), .. }]), "{outputs:?}");
}

#[test]
fn what_cannot_be_decoded_ends_the_exchange_and_not_the_carrier() {
    let (mut relay, mut peer) = edge();
    let (exchange, outputs) = asks(&mut relay, ms(0), "GET", true);
    peer.takes(&outputs);
    let mut head = Vec::new();
    bhttp::Response { status: 200, fields: Vec::new() }.encode(&mut head);
    let number = exchange.number;
    let head =
        HeadPart { exchange: number, codec: 2, window_log: 20, end: false, head: head.into() };
    let bytes = Bytes::from_static(b"not zstd");
    let data = Data {
        exchange: number,
        block_end: Some(100),
        uncoded: false,
        anew: false,
        end: true,
        padding: None,
        bytes,
    };
    let outputs = peer.sends(&mut relay, ms(5), CARRIER, &[Part::Head(head), Part::Data(data)]);
    let job = to_decode(&outputs).expect("a block to decode");
    assert_eq!(job.decoded_len, 100);
    let done = job.run(&mut None, &mut Vec::new());
    assert!(!done.is_ok());
    relay.handle_input(ms(6), Input::Done(done));
    let outputs = drain(&mut relay);
    assert_eq!(abort(&outputs).0, CauseKind::Corrupt);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Close { .. })));
    assert!(relay.is_idle());
}

#[test]
fn a_protocol_fault_closes_the_carrier_and_the_client_hears() {
    let (mut relay, mut peer) = edge();
    let (exchange, outputs) = asks(&mut relay, ms(0), "GET", true);
    peer.takes(&outputs);
    peer.sends(&mut relay, ms(1), CARRIER, &[response_frame(exchange.number, false)]);
    let bytes = Bytes::from_static(&[0x3f, 0]);
    relay.handle_input(ms(2), Input::Received { carrier: CARRIER, bytes });
    let outputs = drain(&mut relay);
    assert!(outputs.iter().any(|output| matches!(output, Output::Close { .. })));
    assert_eq!(abort(&outputs).0, CauseKind::CarrierLost);
}

#[test]
fn a_carrier_without_hello_is_given_up() {
    let mut relay = Relay::new(Config::new(Role::Gateway, 9));
    relay.handle_input(
        ms(0),
        Input::CarrierUp { carrier: CARRIER, kind: CarrierKind::FIRST, peer: "peer".into() },
    );
    drain(&mut relay);
    relay.handle_input(ms(30_000), Input::Wake);
    assert!(drain(&mut relay).iter().any(|output| matches!(output, Output::Close { .. })));
}

#[test]
fn after_a_shutdown_nothing_new_begins_and_the_open_ends() {
    let (mut relay, mut peer) = edge();
    let (exchange, outputs) = asks(&mut relay, ms(0), "GET", true);
    peer.takes(&outputs);
    relay.handle_input(ms(1), Input::Shutdown);
    assert_eq!(peer.takes(&drain(&mut relay)), vec![Part::GoAway]);
    let (_, outputs) = asks(&mut relay, ms(2), "GET", true);
    assert_eq!(abort(&outputs), (CauseKind::ShuttingDown, true));
    assert!(!relay.is_idle());
    peer.sends(&mut relay, ms(3), CARRIER, &[response_frame(exchange.number, true)]);
    assert!(relay.is_idle());
}
