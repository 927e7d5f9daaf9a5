//! The client's side, with the other side at its end.

use proptest::prelude::*;

use super::settings;
use crate::amqp::frame::{self, Kind, Protocol};
use crate::amqp::machine::client::{self, Client};
use crate::amqp::machine::{Accepted, Connection, Input, LinkId, Output};
use crate::amqp::performative::{
    Attach, DeliveryState, ErrorInfo, Performative, ReceiverSettleMode, Role, Source, Target,
    TargetKind, condition,
};
use crate::amqp::sasl::{self, Code, Credentials, Mechanism};
use crate::amqp::types::{Symbol, Value};
use bytes::Bytes;
use std::time::Duration;

const NOW: Duration = Duration::from_secs(1_000);
const LINK: LinkId = LinkId(7);

fn of_client(credentials: Credentials) -> client::Settings {
    client::Settings {
        container_id: "reader".to_owned(),
        hostname: Some("broker.example".to_owned()),
        credentials,
        idle_timeout: Some(Duration::from_secs(60)),
        max_message_bytes: 256 << 20,
    }
}

fn nobody() -> Credentials {
    Credentials::Anonymous { trace: String::new() }
}

/// Both ends, and what each said.
struct Pair {
    client: Client,
    server: Connection,
    now: Duration,
    heard: Vec<Output>,
    served: Vec<Output>,
    wake_at: Option<Duration>,
}

impl Pair {
    fn new(credentials: Credentials, mechanisms: Vec<Mechanism>) -> Self {
        let of_server = super::Settings { mechanisms, ..settings() };
        let mut pair = Self {
            client: Client::new(of_client(credentials), NOW),
            server: Connection::new(of_server, NOW),
            now: NOW,
            heard: Vec::new(),
            served: Vec::new(),
            wake_at: None,
        };
        pair.run();
        pair
    }

    /// Open at both sides.
    fn open() -> Self {
        let mut pair = Self::new(nobody(), vec![Mechanism::Anonymous]);
        pair.server(Input::Authenticated(Code::Ok));
        pair.server(Input::Open);
        assert!(matches!(pair.heard.as_slice(), [Output::Opened(_)]), "{:?}", pair.heard);
        pair.heard.clear();
        pair.served.clear();
        pair
    }

    /// Carries bytes until neither says more.
    fn run(&mut self) {
        loop {
            let mut is_quiet = true;
            while let Some(output) = self.client.poll_output() {
                is_quiet = false;
                match output {
                    Output::Transmit(bytes) => {
                        self.server.handle_input(self.now, Input::Bytes(bytes));
                    }
                    Output::WakeAt(at) => self.wake_at = Some(at),
                    other => self.heard.push(other),
                }
            }
            while let Some(output) = self.server.poll_output() {
                is_quiet = false;
                match output {
                    Output::Transmit(bytes) => {
                        self.client.handle_input(self.now, client::Input::Bytes(bytes));
                    }
                    Output::WakeAt(_) => {}
                    other => self.served.push(other),
                }
            }
            if is_quiet {
                return;
            }
        }
    }

    fn client(&mut self, input: client::Input) {
        self.client.handle_input(self.now, input);
        self.run();
    }

    fn server(&mut self, input: Input) {
        self.server.handle_input(self.now, input);
        self.run();
    }

    /// A link that the other side takes with this window; what it is there.
    fn attach(&mut self, role: Role, rcv: ReceiverSettleMode, window: u32) -> LinkId {
        let mut attach = Attach::new("link", 0, role);
        attach.rcv_settle_mode = rcv;
        let address = Some(Value::string("a/b"));
        attach.source = Some(Source { address: address.clone(), ..Source::default() });
        let target = Target { address, ..Target::default() };
        attach.target = Some(TargetKind::Target(Box::new(target)));
        let attach = Box::new(attach);
        self.client(client::Input::Attach { link: LINK, attach, window });
        let Some(Output::Attached { link, attach }) = self.served.pop() else {
            panic!("{:?}", self.served);
        };
        let accepted = Accepted {
            link,
            source: attach.source.clone(),
            target: attach.target.clone(),
            window,
            offered_capabilities: Vec::new(),
            properties: Vec::new(),
        };
        self.server(Input::Accept(Box::new(accepted)));
        let heard = self.heard.remove(0);
        assert!(matches!(heard, Output::Attached { link: LINK, .. }), "{heard:?}");
        link
    }

    fn heard(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.heard)
    }

    fn served(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.served)
    }
}

#[test]
fn it_shows_who_it_is_and_opens() {
    let (user, password) = ("ann".to_owned(), "pw".to_owned());
    let plain = Credentials::Plain { authorize_as: String::new(), user, password };
    let mut pair = Pair::new(plain.clone(), vec![Mechanism::Plain, Mechanism::Anonymous]);
    let asked = Output::Authenticate {
        credentials: plain.clone(),
        hostname: Some("broker.example".to_owned()),
    };
    assert_eq!(pair.served(), [asked]);
    pair.server(Input::Authenticated(Code::Ok));
    let served = pair.served();
    let [Output::Opened(open)] = served.as_slice() else { panic!("{served:?}") };
    assert_eq!(open.container_id, "reader");
    pair.server(Input::Open);
    let heard = pair.heard();
    assert!(matches!(heard.as_slice(), [Output::Opened(open)] if open.container_id == "broker"));
    pair.client(client::Input::Close);
    assert!(matches!(
        pair.heard().as_slice(),
        [Output::Closed { error: None, .. }, Output::HangUp]
    ));
    assert!(matches!(pair.served().as_slice(), [Output::Closed { error: None, by_peer: true }, _]));
}

#[test]
fn whoever_is_not_let_in_hears_why() {
    let error_of = |pair: &mut Pair| match pair.heard().as_slice() {
        [Output::Closed { error: Some(error), .. }, Output::HangUp] => error.to_string(),
        other => panic!("{other:?}"),
    };
    let mut pair = Pair::new(nobody(), vec![Mechanism::Plain]);
    assert!(error_of(&mut pair).contains("the peer takes PLAIN, not ANONYMOUS"));
    let mut pair = Pair::new(nobody(), vec![Mechanism::Anonymous]);
    pair.server(Input::Authenticated(Code::Auth));
    assert!(error_of(&mut pair).contains("does not know this user"));
    let mut pair = Pair::new(nobody(), vec![Mechanism::Anonymous]);
    pair.server(Input::Authenticated(Code::Ok));
    let error = ErrorInfo::new(condition::NOT_ALLOWED, "full");
    pair.server(Input::Close { error: Some(error) });
    assert!(error_of(&mut pair).contains("not-allowed: full"));
    let mut client = Client::new(of_client(nobody()), NOW);
    client.handle_input(NOW, client::Input::Bytes(Bytes::from_static(b"HTTP/1.1 400")));
    let said: Vec<_> = std::iter::from_fn(|| client.poll_output()).collect();
    let error = said.iter().find_map(|output| match output {
        Output::Closed { error, .. } => error.clone(),
        _ => None,
    });
    assert!(error.expect("it ends").to_string().contains("does not speak AMQP"), "{said:?}");
}

#[test]
fn what_it_sends_is_settled_as_the_peer_says() {
    let mut pair = Pair::open();
    let theirs = pair.attach(Role::Sender, ReceiverSettleMode::First, 3);
    let flow = Output::Flow { link: LINK, credit: 3, drain: false };
    assert!(pair.heard().contains(&flow));
    let long = Bytes::from(vec![7; 200_000]);
    for (delivery, settled, message) in
        [(1, false, long.clone()), (2, false, Bytes::from_static(b"x")), (3, true, long.clone())]
    {
        pair.client(client::Input::Deliver { link: LINK, delivery, settled, message });
    }
    let served = pair.served();
    let came = served.iter().map(|output| match output {
        Output::Delivery(delivery) => (delivery.delivery, delivery.settled, &delivery.message),
        other => panic!("{other:?}"),
    });
    let came = came.collect::<Vec<_>>();
    let short = Bytes::from_static(b"x");
    assert_eq!(came, [(0, false, &long), (1, false, &short), (2, true, &long)]);
    let rejected = DeliveryState::Rejected(Some(ErrorInfo::new(condition::NOT_ALLOWED, "no")));
    for (delivery, state) in [(0, rejected.clone()), (1, DeliveryState::Accepted)] {
        pair.server(Input::Outcome { link: theirs, delivery, state });
    }
    let outcomes: Vec<_> = pair
        .heard()
        .into_iter()
        .filter_map(|output| match output {
            Output::Disposition { delivery, state, settled, .. } => {
                Some((delivery, state, settled))
            }
            _ => None,
        })
        .collect();
    let wanted = [(1, Some(rejected), true), (2, Some(DeliveryState::Accepted), true)];
    assert_eq!(outcomes, wanted);
}

#[test]
fn exactly_once_is_settled_by_the_sender_last() {
    let mut pair = Pair::open();
    let theirs = pair.attach(Role::Sender, ReceiverSettleMode::Second, 3);
    pair.heard();
    let message = Bytes::from_static(b"x");
    pair.client(client::Input::Deliver { link: LINK, delivery: 9, settled: false, message });
    assert!(matches!(&pair.served()[..], [Output::Delivery(it)] if it.is_second));
    let state = DeliveryState::Accepted;
    pair.server(Input::Outcome { link: theirs, delivery: 0, state: state.clone() });
    let settled = false;
    let said = Output::Disposition { link: LINK, delivery: 9, state: Some(state), settled };
    assert_eq!(pair.heard(), [said]);
    pair.client(client::Input::Settle { link: LINK, delivery: 9 });
    assert_eq!(pair.served(), [Output::Settled { link: theirs, delivery: 0 }]);
}

#[test]
fn it_gets_as_much_as_it_takes() {
    let mut pair = Pair::open();
    let theirs = pair.attach(Role::Receiver, ReceiverSettleMode::First, 4);
    let served = pair.served();
    assert!(served.contains(&Output::Flow { link: theirs, credit: 4, drain: false }), "{served:?}");
    for delivery in 0..5 {
        let message = Bytes::from(vec![b'0' + u8::try_from(delivery).unwrap(); 70_000]);
        pair.server(Input::Deliver { link: theirs, delivery, settled: false, message });
    }
    let ids = |pair: &mut Pair| -> Vec<_> {
        let heard = pair.heard().into_iter();
        heard
            .filter_map(|output| match output {
                Output::Delivery(delivery) => Some(delivery.delivery),
                _ => None,
            })
            .collect()
    };
    assert_eq!(ids(&mut pair), [0, 1, 2, 3]);
    let released = |output: &Output| matches!(output, Output::Disposition { delivery: 4, .. });
    assert!(pair.served().iter().any(released), "there was no credit for the fifth");
    for delivery in 0..2 {
        let state = DeliveryState::Accepted;
        pair.client(client::Input::Outcome { link: LINK, delivery, state });
    }
    let more = |output: &Output| matches!(output, Output::Flow { credit: 2, .. });
    assert!(pair.served().iter().any(more), "half of them is settled");
}

#[test]
fn a_link_that_is_refused_is_detached_with_the_reason() {
    let mut pair = Pair::open();
    let mut attach = Attach::new("link", 0, Role::Receiver);
    attach.source = Some(Source::default());
    let attach = Box::new(attach);
    pair.client(client::Input::Attach { link: LINK, attach, window: 1 });
    let served = pair.served();
    let [Output::Attached { link, .. }] = served.as_slice() else { panic!("{served:?}") };
    let error = ErrorInfo::new(condition::NOT_FOUND, "no such node");
    pair.server(Input::Refuse { link: *link, error });
    let heard = pair.heard();
    let [Output::Detached { link: LINK, by: None, error: Some(error) }] = heard.as_slice() else {
        panic!("{heard:?}");
    };
    assert_eq!(error.to_string(), "amqp:not-found: no such node");
}

#[test]
fn silence_ends_it_and_it_is_never_silent_for_long() {
    let mut pair = Pair::open();
    let wake_at = pair.wake_at.expect("it has times to keep");
    assert!(wake_at <= NOW + Duration::from_secs(15), "half of what the peer wants");
    pair.now = wake_at;
    pair.client.handle_input(wake_at, client::Input::Wake);
    let empty = b"\0\0\0\x08\x02\0\0\0";
    assert_eq!(pair.client.poll_output(), Some(Output::Transmit(Bytes::from_static(empty))));
    pair.client.handle_input(NOW + Duration::from_secs(61), client::Input::Wake);
    let said: Vec<_> = std::iter::from_fn(|| pair.client.poll_output()).collect();
    let is_end = |output: &Output| matches!(output, Output::Closed { by_peer: false, .. });
    assert!(said.iter().any(is_end), "{said:?}");
}

#[test]
fn what_a_link_takes_counts_what_it_has() {
    let mut pair = Pair::open();
    let theirs = pair.attach(Role::Sender, ReceiverSettleMode::First, 3);
    pair.heard();
    assert_eq!((pair.client.available(LINK), pair.client.queued(LINK)), (3, Some(0)));
    let message = Bytes::from_static(b"x");
    pair.client(client::Input::Deliver { link: LINK, delivery: 1, settled: false, message });
    assert_eq!(pair.client.available(LINK), 2);
    // Credit that was given before the delivery came there is no more than it was.
    pair.server(Input::Window { link: theirs, window: 9 });
    assert_eq!(pair.client.available(LINK), 8);
    assert_eq!((pair.client.available(LinkId(8)), pair.client.queued(LinkId(8))), (0, None));
    pair.client(client::Input::Close);
    assert_eq!((pair.client.available(LINK), pair.client.queued(LINK)), (0, None));
}

#[test]
fn it_takes_long_messages_in_parts() {
    let mut pair = Pair::open();
    let theirs = pair.attach(Role::Receiver, ReceiverSettleMode::First, 4);
    let message = Bytes::from(vec![7; 40 << 20]);
    let came = message.clone();
    pair.server(Input::Deliver { link: theirs, delivery: 0, settled: false, message });
    let heard = pair.heard();
    assert!(matches!(&heard[..], [Output::Delivery(it)] if it.message == came), "it comes whole");
}

#[test]
fn a_link_that_is_drained_says_so() {
    let mut pair = Pair::open();
    pair.attach(Role::Sender, ReceiverSettleMode::First, 3);
    pair.heard();
    let flow = super::Flow {
        next_incoming_id: Some(0),
        incoming_window: 10,
        next_outgoing_id: 0,
        outgoing_window: 10,
        link: Some(super::LinkFlow {
            handle: 0,
            delivery_count: Some(0),
            link_credit: Some(3),
            available: None,
            drain: true,
        }),
        echo: false,
        properties: Vec::new(),
    };
    let mut wire = Vec::new();
    let flow = Performative::Flow(Box::new(flow));
    frame::encode(&mut wire, Kind::Amqp, 0, |out| flow.encode(out));
    pair.client(client::Input::Bytes(wire.into()));
    assert_eq!(pair.heard(), [Output::Flow { link: LINK, credit: 3, drain: true }]);
    pair.client.handle_input(NOW, client::Input::Drained { link: LINK });
    assert_eq!(pair.client.available(LINK), 0, "what was left of the credit is used up");
}

/// The answers of a server up to its begin, so that chance gets further.
fn greeting() -> Vec<u8> {
    let mut wire = Protocol::Sasl.header().to_vec();
    let frames =
        [sasl::Frame::Mechanisms(vec![Symbol::new("ANONYMOUS")]), sasl::Frame::Outcome(Code::Ok)];
    for said in frames {
        frame::encode(&mut wire, Kind::Sasl, 0, |out| said.encode(out));
    }
    wire.extend_from_slice(&Protocol::Amqp.header());
    let open = super::Open::new("server");
    let begin = super::Session::begin_of(Some(0));
    for said in [Performative::Open(Box::new(open)), Performative::Begin(Box::new(begin))] {
        frame::encode(&mut wire, Kind::Amqp, 0, |out| said.encode(out));
    }
    wire
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_bytes_make_it_panic(
        whole in any::<bool>(),
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..8),
        bodies in prop::collection::vec(
            (0x10_u8..0x19, prop::collection::vec(0_u8..4, 0..8)), 0..6),
    ) {
        let mut client = Client::new(of_client(nobody()), NOW);
        let mut wires = Vec::new();
        if whole {
            wires.push(greeting());
            for (code, fields) in bodies {
                let mut wire = Vec::new();
                frame::encode(&mut wire, Kind::Amqp, 0, |out| {
                    let len = u8::try_from(fields.len() * 2 + 1).unwrap_or(u8::MAX);
                    let count = u8::try_from(fields.len()).unwrap_or(u8::MAX);
                    out.extend([0, 0x53, code, 0xc0, len, count]);
                    out.extend(fields.iter().flat_map(|value| [0x52, *value]));
                });
                wires.push(wire);
            }
        }
        wires.extend(pieces);
        let mut has_ended = false;
        for wire in wires {
            client.handle_input(NOW, client::Input::Bytes(wire.into()));
            while let Some(output) = client.poll_output() {
                prop_assert!(!has_ended, "nothing follows the end: {output:?}");
                has_ended = output == Output::HangUp;
                if matches!(output, Output::Opened(_)) {
                    let attach = Box::new(Attach::new("l", 0, Role::Receiver));
                    let link = LINK;
                    client.handle_input(NOW, client::Input::Attach { link, attach, window: 5 });
                }
            }
        }
        prop_assert!(client.held_bytes() < 1 << 16);
    }
}
