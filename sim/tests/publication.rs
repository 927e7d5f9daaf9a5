//! A message that is no HTTP goes through two relays: a publication with a topic, properties and a
//! quality of service, which is written and read here and nowhere else.

#![allow(clippy::unwrap_used)] // Helpers of tests fail as tests do.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use coding::ExchangeId;
use coding::job::Contexts;
use proto::bhttp;
use proto::message::{Delivery, Message, Opening};
use record::event::{Event, Fact};
use relay::{
    CarrierId, Cause, CauseKind, Config, Head, Input, Known, LOCAL_WINDOW_BYTES, Output, Relay,
    Role,
};

/// What both ends call the kind.
const PUBLICATION: u64 = 7;
const EDGE: usize = 0;
const GATEWAY: usize = 1;

/// A publication. At most once it is taken without more; at least once it may come again.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Publication {
    topic: String,
    at_least_once: bool,
    properties: Vec<(String, String)>,
}

impl Publication {
    fn tracks(at_least_once: bool) -> Self {
        let property = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let properties = vec![property("expiry", "30"), property("source", "radar 2")];
        Self { topic: "tracks/air".to_owned(), at_least_once, properties }
    }

    fn opening(&self) -> Opening {
        let lines = self.properties.iter().map(|(name, value)| format!("{name}={value}\n"));
        Opening {
            message: Message {
                kind: PUBLICATION,
                media: "application/json".to_owned(),
                properties: lines.collect::<String>().into(),
                ..Message::default()
            },
            delivery: Delivery { repeatable: self.at_least_once, outcome_only: true },
            target: "mqtt://broker".to_owned(),
            operation: self.topic.clone(),
        }
    }

    fn read(opening: &Opening) -> Self {
        assert_eq!((opening.message.kind, &opening.target[..]), (PUBLICATION, "mqtt://broker"));
        let text = str::from_utf8(&opening.message.properties).unwrap();
        let property = |line: &str| {
            let (name, value) = line.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        };
        Self {
            topic: opening.operation.clone(),
            at_least_once: opening.delivery.repeatable,
            properties: text.lines().map(property).collect(),
        }
    }
}

fn taken() -> Message {
    Message { kind: PUBLICATION, ..Message::default() }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Breaks {
    Carrier,
    /// The gateway's process starts again, before its broker answers.
    Gateway,
}

/// A broker beside the gateway, a publisher beside the edge, and what became of it all.
struct Pair {
    relays: [Relay; 2],
    contexts: BTreeMap<(usize, ExchangeId), Contexts>,
    carrier: CarrierId,
    is_up: bool,
    now: Duration,
    wakes: [Option<Duration>; 2],
    todo: VecDeque<(usize, Input)>,
    /// Bytes that crossed.
    crossed: usize,
    /// What breaks when the broker has a publication whole.
    breaks: Option<Breaks>,
    /// What the broker got, by exchange: nothing may come twice.
    delivered: BTreeMap<ExchangeId, (Publication, Vec<u8>)>,
    deliveries: usize,
    /// What the broker answers with, and whether with a body.
    answer: Head,
    with_body: bool,
    /// What the publisher hears.
    heard: Vec<Result<Message, Cause>>,
    encodings: Vec<String>,
}

impl Pair {
    fn new() -> Self {
        let relays =
            [Relay::new(Config::new(Role::Edge, 1)), Relay::new(Config::new(Role::Gateway, 2))];
        let mut pair = Self {
            relays,
            contexts: BTreeMap::new(),
            carrier: CarrierId(0),
            is_up: false,
            now: Duration::ZERO,
            wakes: [None; 2],
            todo: VecDeque::new(),
            crossed: 0,
            breaks: None,
            delivered: BTreeMap::new(),
            deliveries: 0,
            answer: Head::Message(taken()),
            with_body: false,
            heard: Vec::new(),
            encodings: Vec::new(),
        };
        pair.tell(EDGE, Input::Wake);
        pair
    }

    fn tell(&mut self, at: usize, input: Input) {
        self.todo.push_back((at, input));
        while let Some((at, input)) = self.todo.pop_front() {
            self.relays[at].handle_input(self.now, input);
            while let Some(output) = self.relays[at].poll_output() {
                self.output(at, output);
            }
        }
    }

    /// Time goes on until nothing is left to wait for, or the publisher has heard.
    fn goes_on(&mut self) {
        for _ in 0..200 {
            if !self.heard.is_empty() {
                return;
            }
            let next = self.wakes.iter().flatten().min().copied();
            self.now = next.unwrap_or(self.now).max(self.now);
            for at in [EDGE, GATEWAY] {
                if self.wakes[at].take_if(|wake| *wake <= self.now).is_some() {
                    self.tell(at, Input::Wake);
                }
            }
        }
        panic!("nobody hears of it");
    }

    fn output(&mut self, at: usize, output: Output) {
        match output {
            Output::Dial { carrier, kind } => {
                (self.carrier, self.is_up) = (carrier, true);
                for at in [EDGE, GATEWAY] {
                    let peer = format!("peer of {at}");
                    self.todo.push_back((at, Input::CarrierUp { carrier, kind, peer }));
                }
            }
            Output::Transmit { carrier, bytes } if self.is_up && carrier == self.carrier => {
                self.crossed += bytes.len();
                self.todo.push_back((at, Input::Sent { carrier, bytes: bytes.len() }));
                self.todo.push_back((1 - at, Input::Received { carrier, bytes }));
            }
            Output::Job(job) => {
                let mut none = Contexts::default();
                let contexts = match job.context_of() {
                    Some(exchange) => self.contexts.entry((at, exchange)).or_default(),
                    None => &mut none,
                };
                let done = job.run(contexts).took(Duration::from_micros(50));
                self.todo.push_back((at, Input::Done(done)));
            }
            Output::Head { exchange, head: Head::Opening(opening), .. } => {
                assert_eq!(at, GATEWAY);
                self.deliveries += 1;
                self.delivered.insert(exchange, (Publication::read(&opening), Vec::new()));
                self.todo.push_back((at, Input::Credit { exchange, bytes: 1 << 20 }));
            }
            Output::Head { head: Head::Message(message), end, .. } => {
                assert_eq!((at, end), (EDGE, true));
                self.heard.push(Ok(message));
            }
            Output::Data { exchange, bytes } => {
                self.delivered.get_mut(&exchange).unwrap().1.extend_from_slice(&bytes);
            }
            Output::End { exchange, .. } if at == GATEWAY => self.takes(exchange),
            Output::Abort { cause, .. } if at == EDGE => self.heard.push(Err(cause)),
            Output::WakeAt(wake) => self.wakes[at] = Some(wake),
            Output::Event(Event { fact: Fact::Chosen { encoding, .. }, .. }) => {
                self.encodings.push(encoding);
            }
            _ => {}
        }
    }

    /// The broker has a publication whole.
    fn takes(&mut self, exchange: ExchangeId) {
        let breaks = self.breaks.take();
        if breaks.is_some() {
            self.cut();
        }
        if breaks == Some(Breaks::Gateway) {
            self.relays[GATEWAY] = Relay::new(Config::new(Role::Gateway, 3));
            return;
        }
        let input = match self.answer.clone() {
            Head::Message(message) => Input::Answer { exchange, message, end: !self.with_body },
            Head::Response(response) => Input::Response { exchange, response, end: true },
            other => panic!("{other:?}"),
        };
        self.todo.push_back((GATEWAY, input));
    }

    fn cut(&mut self) {
        self.is_up = false;
        let carrier = self.carrier;
        // What was on its way is lost.
        self.todo.retain(|(_, input)| !matches!(input, Input::Received { .. }));
        for at in [GATEWAY, EDGE] {
            let reason = "cut".to_owned();
            self.todo.push_back((at, Input::CarrierDown { carrier, reason }));
        }
    }

    fn publishes(&mut self, publication: &Publication, body: &[u8]) {
        let exchange = self.relays[EDGE].next_exchange();
        let known = Box::new(Known { client: Some("radar".into()), ..Known::default() });
        let opening = publication.opening();
        self.tell(EDGE, Input::Opening { exchange, opening, end: false, known });
        assert!(body.len() as u64 <= LOCAL_WINDOW_BYTES);
        self.tell(EDGE, Input::Data { exchange, bytes: Bytes::copy_from_slice(body) });
        self.tell(EDGE, Input::End { exchange, trailers: Vec::new() });
        self.goes_on();
    }

    fn got(&self) -> Vec<(&Publication, &[u8])> {
        self.delivered.values().map(|(publication, body)| (publication, &body[..])).collect()
    }
}

fn body() -> Vec<u8> {
    let track = |at: u32| format!("{{\"track\":{at},\"callsign\":\"Alpha {}\"}},", at * 7);
    (0..400).map(track).collect::<String>().into_bytes()
}

#[test]
fn a_publication_comes_out_as_what_it_was_and_its_publisher_hears_that_it_was_taken() {
    let mut pair = Pair::new();
    for at_least_once in [false, true] {
        let publication = Publication::tracks(at_least_once);
        pair.publishes(&publication, &body());
        assert_eq!(pair.got(), [(&publication, &body()[..])]);
        assert_eq!(std::mem::take(&mut pair.heard), [Ok(taken())]);
        pair.delivered.clear();
    }
    // Its body was encoded as any other is.
    assert!(pair.encodings.iter().any(|encoding| encoding != "identity"), "{:?}", pair.encodings);
    assert!(pair.crossed < body().len(), "{}", pair.crossed);
    assert!(pair.relays.iter().all(Relay::is_idle));
}

/// The broker has it, and the publisher hears of that over another carrier: it is not sent twice.
#[test]
fn a_carrier_that_breaks_neither_loses_nor_doubles_it() {
    for at_least_once in [false, true] {
        let mut pair = Pair::new();
        pair.breaks = Some(Breaks::Carrier);
        let publication = Publication::tracks(at_least_once);
        pair.publishes(&publication, &body());
        assert_eq!((pair.deliveries, pair.got()), (1, vec![(&publication, &body()[..])]));
        assert_eq!((pair.breaks, &pair.heard[..]), (None, &[Ok(taken())][..]));
    }
}

/// A gateway that has started again knows of nothing: what may come twice goes there, and of what
/// may not the publisher hears that nobody knows.
#[test]
fn only_what_may_come_twice_goes_to_a_gateway_that_knows_nothing() {
    for at_least_once in [false, true] {
        let mut pair = Pair::new();
        pair.breaks = Some(Breaks::Gateway);
        pair.publishes(&Publication::tracks(at_least_once), &body());
        if at_least_once {
            assert_eq!((pair.deliveries, &pair.heard[..]), (2, &[Ok(taken())][..]));
        } else {
            let [Err(cause)] = &pair.heard[..] else { panic!("{:?}", pair.heard) };
            assert_eq!((pair.deliveries, cause.kind), (1, CauseKind::OutcomeUnknown));
        }
    }
}

#[test]
fn an_answer_that_was_not_awaited_is_refused() {
    let response = bhttp::Response { status: 200, fields: Vec::new() };
    let other = Message { kind: PUBLICATION + 1, ..taken() };
    for (answer, with_body) in [
        (Head::Message(taken()), true),
        (Head::Message(other), false),
        (Head::Response(response), false),
    ] {
        let mut pair = Pair::new();
        (pair.answer, pair.with_body) = (answer, with_body);
        pair.publishes(&Publication::tracks(false), &body());
        let [Err(cause)] = &pair.heard[..] else { panic!("{:?}", pair.heard) };
        assert_eq!(cause.kind, CauseKind::OriginFailed);
        assert!(pair.relays.iter().all(Relay::is_idle));
    }
}
