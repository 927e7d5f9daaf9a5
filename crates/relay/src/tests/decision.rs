//! What a message goes in, what is learned of it, and what hostile receipts cannot do.

mod windows;

use coding::job::Encode;
use decide::estimate::Transport;
use decide::policy::Objective;
use proto::control::Receipt;
use record::decision::{Decision, Outcome};
use record::event::Fact;

use super::*;

/// What the relay said happened, and the rest of what it wants.
fn reported(relay: &mut Relay) -> (Vec<Fact>, Vec<Output>) {
    let (mut facts, mut outputs) = (Vec::new(), Vec::new());
    while let Some(output) = relay.poll_output() {
        match output {
            Output::Event(event) => facts.push(event.fact),
            other => outputs.push(other),
        }
    }
    (facts, outputs)
}

/// An edge that codes as a shell would, and its peer.
pub(super) struct Side {
    pub(super) relay: Relay,
    peer: Peer,
    facts: Vec<Fact>,
    /// Who asks.
    pub(super) client: Option<Client>,
    pub(super) jobs: Vec<Job>,
    now: Duration,
    /// What its jobs wait for a thread.
    busy: Duration,
    contexts: Contexts,
    /// A head left while the first block was being encoded.
    led: bool,
    /// A field of its requests.
    note: &'static str,
}

impl Side {
    pub(super) fn new(config: Config) -> Self {
        let (relay, peer) = connected(config, 9);
        let (facts, jobs, now) = (Vec::new(), Vec::new(), ms(0));
        let (busy, contexts, led, note) = (ms(0), Contexts::default(), false, "");
        let client = None;
        Self { relay, peer, facts, client, jobs, now, busy, contexts, led, note }
    }

    /// Tells the relay, does its jobs, and hands over what it transmits.
    pub(super) fn tell(&mut self, input: Input) -> Vec<Part> {
        self.relay.handle_input(self.now, input);
        let mut frames = Vec::new();
        loop {
            let (facts, outputs) = reported(&mut self.relay);
            self.facts.extend(facts);
            if outputs.is_empty() {
                return frames;
            }
            let left = self.peer.takes(&outputs);
            let encodes = |output: &Output| matches!(output, Output::Job(Job::Encode(_)));
            self.led |= outputs.iter().any(encodes)
                && left.iter().any(|frame| matches!(frame, Part::Head(_)));
            frames.extend(left);
            for output in outputs {
                match output {
                    Output::Job(job) => self.runs(job),
                    Output::Transmit { carrier, bytes } => {
                        let bytes = bytes.len();
                        self.relay.handle_input(self.now, Input::Sent { carrier, bytes });
                    }
                    _ => {}
                }
            }
        }
    }

    fn runs(&mut self, job: Job) {
        let cpu = Duration::from_micros(200);
        let done = job.run(&mut self.contexts).took(cpu);
        if let Job::Encode(Encode { setup, .. }) = &job {
            let takes = setup.options.codec.encoder_bytes(setup.options);
            assert!(takes <= self.relay.load().codec_bytes, "{:?}", setup.options);
            if !self.busy.is_zero() {
                self.now += self.busy + cpu;
            }
        }
        self.jobs.push(job);
        self.relay.handle_input(self.now, Input::Done(done));
    }

    /// The blocks that it encoded to send them.
    fn encoded(&self) -> impl Iterator<Item = &Encode> {
        self.jobs.iter().filter_map(|job| match job {
            Job::Encode(job) => Some(job),
            _ => None,
        })
    }

    /// What bodies went through, and were tried in.
    fn options(&self) -> impl Iterator<Item = codec::Options> {
        self.jobs.iter().filter_map(|job| Some(job.setup()?.options))
    }

    /// Sends a body; the number of its exchange and the frames that left.
    pub(super) fn posts(&mut self, body: &[u8], service: Option<usize>) -> (u64, Vec<Part>) {
        self.now += ms(50);
        let exchange = self.relay.next_exchange();
        let head = request("POST", &[("content-type", "text/xml"), ("x-note", self.note)]);
        let client = self.client.clone();
        let mut frames =
            self.tell(known(exchange, head, false, Known { client, service, other_way: false }));
        for piece in body.chunks(40_000) {
            let bytes = Bytes::copy_from_slice(piece);
            frames.extend(self.tell(Input::Data { exchange, bytes }));
        }
        frames.extend(self.tell(Input::End { exchange, trailers: Vec::new() }));
        self.answers(exchange.number);
        (exchange.number, frames)
    }

    /// The peer answers, so that the exchange is over.
    fn answers(&mut self, exchange: u64) {
        self.peer_sends(&[response_frame(exchange, true)]);
    }

    /// The peer sends frames of an exchange, in their order; what leaves for it.
    fn peer_sends(&mut self, frames: &[Part]) -> Vec<Part> {
        for frame in frames {
            self.peer
                .0
                .handle_input(self.now, carrier::Input::Send(frame.clone(), Urgency::DEFAULT));
        }
        let mut left = Vec::new();
        while let Some(output) = self.peer.0.poll_output() {
            let carrier::Output::Bytes(bytes) = output else { panic!("{output:?}") };
            left.extend(self.tell(Input::Received { carrier: CARRIER, bytes }));
        }
        left
    }

    /// The peer sends a frame.
    fn hears(&mut self, frame: Part) {
        let mut bytes = Vec::new();
        Frame::from(frame).encode(&mut bytes);
        self.tell(Input::Received { carrier: CARRIER, bytes: bytes.into() });
    }

    fn outcomes(&self) -> Vec<&Outcome> {
        let outcomes = self.facts.iter().filter_map(|fact| match fact {
            Fact::Outcome { outcome, .. } => Some(outcome),
            _ => None,
        });
        outcomes.collect()
    }

    fn ignored(&self) -> usize {
        self.facts.iter().filter(|fact| matches!(fact, Fact::Ignored { .. })).count()
    }

    /// The last choice: encoding and what it rests on.
    fn chosen(&self) -> (&str, Option<&Decision>) {
        let chosen = self.facts.iter().rev().find_map(|fact| match fact {
            Fact::Chosen { encoding, decision, .. } => Some((&encoding[..], decision.as_deref())),
            _ => None,
        });
        chosen.expect("a choice")
    }
}

fn xml(rows: u32) -> Vec<u8> {
    let row = |at: u32| format!("<row><key>{at}</key><name>Customer#{:09}</name></row>\n", at * 7);
    (0..rows).map(row).collect::<String>().into_bytes()
}

fn auto() -> Config {
    Config::new(Role::Edge, 1)
}

fn body_bytes(frames: &[Part]) -> usize {
    let sizes = frames.iter().map(|frame| match frame {
        Part::Data(data) => data.bytes.len(),
        _ => 0,
    });
    sizes.sum()
}

#[test]
fn a_receipt_makes_an_outcome_whose_errors_add_up() {
    let mut side = Side::new(auto());
    let (exchange, frames) = side.posts(&xml(500), None);
    assert!(body_bytes(&frames) < xml(500).len() / 3);
    side.now += ms(180);
    let decode = Duration::from_micros(300);
    side.hears(Receipt { exchange, decode, tail: decode, ..Receipt::default() }.part());
    let [outcome] = side.outcomes()[..] else { panic!("{:?}", side.facts) };
    assert_eq!(outcome.actual.bytes, body_bytes(&frames) as u64);
    assert_eq!(outcome.body_bytes, xml(500).len() as u64);
    // Half of the first guess of the round trip is the receipt's own way.
    assert!((outcome.actual.network_s - (0.180 - 0.0003 - 0.050)).abs() < 1e-9, "{outcome:?}");
    let error = outcome.actual.total_s() - outcome.expected.total_s();
    let split = &outcome.split;
    let sum = split.encode_s + split.decode_s + split.network_s + split.size_s;
    // Parts are rounded, the split is not.
    assert!((error - sum).abs() < 1e-4 * outcome.expected.total_s(), "{error} {sum}");
    // A second one tells nothing.
    side.hears(Receipt { exchange, ..Receipt::default() }.part());
    assert_eq!((side.outcomes().len(), side.ignored()), (1, 0));
}

/// A window of 2,000 segments is of no use where the peer takes 100 kB before it was heard.
#[test]
fn credit_bounds_the_window() {
    let mut side = Side::new(auto());
    let transport =
        Transport { window_segments: 2000, segment_bytes: 1448, ..Transport::default() };
    side.tell(Input::Transport { carrier: CARRIER, transport });
    let exchange = side.relay.next_exchange();
    let head = request("POST", &[("content-type", "text/xml")]);
    side.tell(local(exchange, head, false));
    let body: Bytes = xml(3000).into();
    side.tell(Input::Data { exchange, bytes: body.slice(..100_000) });
    side.tell(Input::Data { exchange, bytes: body.slice(100_000..) });
    let reported = side.chosen().1.expect("it was weighed").link.window_packets;
    assert!((reported - 100_000.0 / 1448.0).abs() < 0.1, "{reported}");
}

/// The round trip that is believed may be too long; all the same nothing held the message back.
#[test]
fn what_arrives_sooner_than_a_round_trip_was_not_held_back() {
    let mut side = Side::new(auto());
    let rate = |side: &Side| side.relay.links()[0].figures.rate_bps;
    side.tell(counters(0));
    let (exchange, frames) = side.posts(&xml(100), None);
    let bytes = body_bytes(&frames) as u64;
    assert!(side.relay.links()[0].figures.rtt_s.value > 0.02);
    side.now += ms(10);
    side.hears(Receipt { exchange, bytes, spread: ms(2), ..Receipt::default() }.part());
    assert_eq!((side.ignored(), rate(&side).weight), (0, 0.0));
    // Its receipt took no longer than it did itself.
    let actual = side.outcomes()[0].actual;
    assert!((0.004_9..0.010_1).contains(&actual.network_s), "{actual:?}");
    side.tell(counters(0));
    assert!(rate(&side).weight > 0.0);
}

/// Counters that tell of no rate and no round trip.
fn counters(retransmitted: u32) -> Input {
    Input::Transport { carrier: CARRIER, transport: quiet(retransmitted) }
}

/// The same with a window that holds all.
fn wide(retransmitted: u32) -> Input {
    let transport = Transport { window_segments: 1000, ..quiet(retransmitted) };
    Input::Transport { carrier: CARRIER, transport }
}

fn quiet(retransmitted: u32) -> Transport {
    Transport {
        retransmitted,
        segments_out: 200 + retransmitted,
        window_segments: 5,
        segment_bytes: 1448,
        ..Transport::default()
    }
}

/// Of a message whose first packet was lost all comes at once when that is there.
#[test]
fn what_waited_for_a_lost_packet_is_no_rate_of_the_link() {
    for again in [0, 1] {
        let mut side = Side::new(auto());
        side.tell(counters(0));
        let (exchange, frames) = side.posts(&xml(6000), None);
        let bytes = body_bytes(&frames) as u64 * 9 / 10;
        side.now += ms(300);
        let spread = Duration::from_micros(50);
        side.hears(Receipt { exchange, bytes, spread, ..Receipt::default() }.part());
        side.tell(counters(again));
        let rate = side.relay.links()[0].figures.rate_bps;
        assert_eq!((side.ignored(), rate.weight > 0.0), (0, again == 0), "{rate:?}");
    }
}

/// A short one that was sent again took a timeout, which is none of the link's time.
#[test]
fn what_was_sent_again_is_no_time_of_a_packet() {
    for again in [0, 1] {
        let mut side = Side::new(auto());
        side.tell(counters(0));
        let (exchange, _) = side.posts(&xml(60), None);
        side.now += ms(300);
        side.hears(Receipt { exchange, ..Receipt::default() }.part());
        side.tell(counters(again));
        let rate = side.relay.links()[0].figures.rate_bps;
        assert_eq!((side.ignored(), rate.weight > 0.0), (0, again == 0), "{rate:?}");
    }
}

/// A peer tells of several messages in one packet: each is learned from, and the counters are read
/// once for all.
#[test]
fn of_receipts_that_come_together_none_is_lost() {
    let mut side = Side::new(auto());
    side.tell(counters(0));
    let (long, frames) = side.posts(&xml(6000), None);
    let (short, _) = side.posts(&xml(60), None);
    side.now += ms(1);
    let sent = body_bytes(&frames) as u64 * 9 / 10;
    let (bytes, spread) = (sent, ms(30));
    let mut together = Vec::new();
    let longer = Receipt { exchange: long, bytes, spread, ..Receipt::default() };
    Frame::from(longer.part()).encode(&mut together);
    let shorter = Receipt { exchange: short, ..Receipt::default() };
    Frame::from(shorter.part()).encode(&mut together);
    let bytes = together.into();
    side.relay.handle_input(side.now, Input::Received { carrier: CARRIER, bytes });
    let (_, outputs) = reported(&mut side.relay);
    let measures = |output: &&Output| matches!(output, Output::Measure { .. });
    assert_eq!(outputs.iter().filter(measures).count(), 1);
    side.tell(counters(0));
    let rate = side.relay.links()[0].figures.rate_bps.value * 0.03 / 8.0;
    assert!((rate / sent as f64 - 1.0).abs() < 0.05, "{rate} of {sent}");
}

/// A message held up on its way was so in its train and in its time: that is one witness, and a
/// slower link takes two.
#[test]
fn a_message_says_once_that_the_link_is_slower() {
    let mut side = Side::new(auto());
    side.tell(wide(0));
    let sends = |side: &mut Side, took: u64| {
        let (exchange, frames) = side.posts(&xml(6000), None);
        let bytes = body_bytes(&frames) as u64 * 9 / 10;
        side.now += ms(100 + took);
        side.hears(Receipt { exchange, bytes, spread: ms(took), ..Receipt::default() }.part());
        side.tell(wide(0));
        side.relay.links()[0].figures.rate_bps.value
    };
    let known = sends(&mut side, 2);
    assert!(sends(&mut side, 60) > 0.9 * known);
    assert!(sends(&mut side, 60) < 0.1 * known);
    assert_eq!(side.ignored(), 0);
}

/// A queue that overflowed lost many of a message that the window did not hold, which was fast all
/// the same: so it is not by chance that packets are lost.
#[test]
fn a_burst_of_losses_is_distinguished_from_chance_for_long_messages_too() {
    let mut side = Side::new(auto());
    side.tell(counters(0));
    let (exchange, frames) = side.posts(&xml(12_000), None);
    assert!(body_bytes(&frames) > 5 * 1448, "more than the window");
    side.now += ms(120);
    side.hears(Receipt { exchange, ..Receipt::default() }.part());
    side.tell(counters(100));
    let loss = side.relay.links()[0].figures.loss.value;
    assert!(loss < 0.1, "{loss}");
}

/// Over 2 Mbit/s the head of a short message takes as long as its encoder. Over 93 Mbit/s nothing
/// is gained, over 9.6 kbit/s a packet more costs 43 ms, and a short head takes hardly longer than
/// that packet. Who wants few bytes has no use for it.
#[test]
fn where_it_gains_the_head_leaves_while_the_first_block_is_made() {
    let (soon, short) = (Objective::Time, Objective::Bytes);
    let long = "as many bytes as the fields of an answer have in all, which say what server it \
                was, when, how long it may be kept, and for whom, and with what else";
    let cases = [
        (250_000, soon, long, true),
        (11_600_000, soon, long, false),
        (1_200, soon, long, false),
        (250_000, soon, "", false),
        (250_000, short, long, false),
        (250_000, Objective::Deadline(9.0), long, false),
    ];
    for (bytes_per_s, objective, note, leads) in cases {
        let services = vec![Service { objective, ..Service::default() }];
        let mut side = Side::new(Config { services, ..auto() });
        side.note = note;
        let (rtt, min_rtt) = (ms(16), ms(10));
        let transport = Transport {
            rtt,
            min_rtt,
            delivered_bytes_per_s: bytes_per_s,
            segments_out: 200,
            window_segments: 100,
            segment_bytes: 1448,
            ..Transport::default()
        };
        side.tell(Input::Transport { carrier: CARRIER, transport });
        side.posts(&xml(60), Some(0));
        assert!(!side.led, "what its encoder makes of it is not known");
        (0..20).for_each(|_| drop(side.posts(&xml(60), Some(0))));
        let (_, frames) = side.posts(&xml(60), Some(0));
        assert!(body_bytes(&frames) < xml(60).len() / 2);
        assert_eq!(side.led, leads, "{bytes_per_s}");
    }
}

/// Blocks that leave as a slow encoder makes them, over a path far longer than its pauses.
#[test]
fn what_waited_for_its_encoder_is_no_rate_of_the_link() {
    let mut side = Side::new(auto());
    side.busy = ms(14);
    let (exchange, frames) = side.posts(&xml(6000), None);
    let blocks = side.encoded().count() as u64;
    assert!(blocks > 3, "{blocks}");
    side.now += ms(2000);
    let (bytes, spread) = (body_bytes(&frames) as u64 * 3 / 4, ms(14 * (blocks - 1)));
    side.hears(Receipt { exchange, bytes, spread, ..Receipt::default() }.part());
    assert_eq!(side.ignored(), 0);
    side.busy = ms(0);
    side.posts(&xml(6000), None);
    let rate = side.chosen().1.expect("it was weighed").link.rate_bps;
    assert!(rate.weight == 0.0, "{rate:?}");
}

#[test]
fn absurd_receipts_are_ignored_with_an_event_and_teach_nothing() {
    let s = Duration::from_secs;
    let absurd = [
        Receipt { bytes: 1 << 29, spread: ms(1), ..Receipt::default() },
        Receipt { bytes: 2000, spread: s(0), ..Receipt::default() },
        Receipt { bytes: 2000, spread: s(1000), ..Receipt::default() },
        Receipt { tail: s(60), ..Receipt::default() },
        Receipt { decode: s(60), ..Receipt::default() },
    ];
    for receipt in absurd {
        let mut side = Side::new(auto());
        let (exchange, _) = side.posts(&xml(500), None);
        side.now += ms(80);
        side.hears(Receipt { exchange, ..receipt }.part());
        assert_eq!((side.outcomes().len(), side.ignored()), (0, 1), "{receipt:?}");
        let (_, frames) = side.posts(&xml(500), None);
        assert!(body_bytes(&frames) > 0, "the next message gets through");
    }
}

#[test]
fn what_is_no_receipt_harms_nobody_and_does_not_flood_the_log() {
    let mut side = Side::new(auto());
    side.posts(&xml(500), None);
    for at in 0..1000_u32 {
        let junk: Vec<u8> = (0..at % 40).map(|byte| (byte * 37 + at).to_le_bytes()[0]).collect();
        side.hears(Part::Control(Receipt::KIND, junk.into()));
        // Of exchanges that never were.
        let receipt = Receipt { exchange: 1 << 40, ..Receipt::default() };
        side.hears(receipt.part());
        side.hears(Part::Control(77, Bytes::from_static(b"of a later version")));
    }
    assert!((1..=16).contains(&side.ignored()), "{}", side.ignored());
    assert!(side.outcomes().is_empty());
    assert!(side.posts(&xml(500), None).1.iter().any(|f| matches!(f, Part::Data(_))));
}

#[test]
fn without_receipts_sizes_are_learned_all_the_same() {
    let mut side = Side::new(auto());
    let mut errors = Vec::new();
    for _ in 0..12 {
        let (_, frames) = side.posts(&xml(900), None);
        let (_, decision) = side.chosen();
        let expected = decision.expect("weighed").expected.bytes as f64;
        errors.push((expected / body_bytes(&frames) as f64).ln().abs());
    }
    assert!(errors[11] < 0.1 && errors[11] < errors[0], "{errors:?}");
}

#[test]
fn a_message_that_came_is_acknowledged_once_it_is_decoded() {
    let (mut relay, mut peer) = gateway();
    let Head::Request(head) = request("POST", &[]) else { unreachable!() };
    let mut encoded = Vec::new();
    head.encode(&mut encoded);
    let head = HeadPart { exchange: 5, codec: 2, window_log: 17, end: false, head: encoded.into() };
    let mut coded = Vec::new();
    let options = codec::Options { window_log: 17, ..codec::Options::of("zstd").unwrap() };
    options.encoder().unwrap().encode(&xml(100), true, &mut coded).unwrap();
    let len = xml(100).len();
    let data = Data {
        exchange: 5,
        block_end: Some(len as u64),
        uncoded: false,
        anew: false,
        end: true,
        padding: None,
        bytes: coded.into(),
    };
    let outputs = peer.sends(&mut relay, ms(10), CARRIER, &[Part::Head(head), Part::Data(data)]);
    let job = to_decode(&outputs).expect("a block to decode");
    assert!(job.first && job.last);
    assert!(!peer.takes(&outputs).iter().any(|frame| matches!(frame, Part::Control(..))));
    relay.handle_input(ms(13), decoded(&job, &xml(100), ms(2)));
    relay.handle_input(ms(14), Input::Credit { exchange: job.exchange, bytes: 1 << 20 });
    assert!(peer.takes(&drain(&mut relay)).is_empty(), "it leaves with the answer");
    let frames = peer.takes(&answers(&mut relay, ms(30), b"done"));
    let [Part::Head(_), Part::Data(_), Part::Control(Receipt::KIND, content)] = &frames[..] else {
        panic!("{frames:?}")
    };
    let receipt = Receipt::decode(content).unwrap();
    // How long it waited for the answer is part of its tail.
    let expected = Receipt { exchange: 5, decode: ms(2), tail: ms(20), ..Receipt::default() };
    assert_eq!(receipt, expected);
    relay.handle_input(ms(9000), Input::Wake);
    assert!(peer.takes(&drain(&mut relay)).is_empty(), "only once");
}

#[test]
fn of_messages_that_fit_in_a_packet_the_first_are_reported_and_then_ever_fewer() {
    let mut side = Side::new(auto());
    let mut reported = Vec::new();
    for nth in 1..=40 {
        let id = side.relay.next_exchange();
        let head = request("GET", &[]);
        side.tell(local(id, head, true));
        side.tell(Input::Credit { exchange: id, bytes: 1 << 20 });
        let exchange = id.number;
        let (block_end, bytes) = (Some(400), Bytes::from_static(&[b'a'; 400]));
        let (uncoded, anew, end) = (false, false, true);
        let data =
            Part::Data(Data { exchange, block_end, uncoded, anew, end, padding: None, bytes });
        side.peer_sends(&[response_frame(exchange, false), data]);
        // Nobody asks again: what is to be said leaves alone.
        side.now += ms(9000);
        for frame in side.tell(Input::Wake) {
            let Part::Control(Receipt::KIND, content) = frame else { panic!("{frame:?}") };
            assert_eq!(Receipt::decode(&content).unwrap().exchange, exchange);
            reported.push(nth);
        }
    }
    assert_eq!(reported, [1, 2, 3, 4, 5, 6, 7, 8, 16, 32]);
}

#[test]
fn what_an_operator_or_a_peer_forbids_is_never_taken() {
    let mut config = auto();
    let only = config.encoding.meant_by(&["deflate:9".to_owned()]).unwrap();
    let service = |encodings| Service { encodings: Some(encodings), ..Service::default() };
    config.services = vec![service(only), service(Vec::new())];
    let mut side = Side::new(config);
    for _ in 0..20 {
        side.posts(&xml(500), Some(0));
    }
    assert!(side.options().next().is_some());
    assert!(side.options().all(|options| options.label() == "deflate:9"));
    side.jobs.clear();
    side.posts(&xml(500), Some(1));
    let (encoding, decision) = side.chosen();
    let forbidden = &decision.expect("weighed").forbidden;
    assert_eq!((encoding, side.jobs.len()), ("identity", 0));
    assert!(forbidden.iter().all(|one| one.why.contains("service")), "{forbidden:?}");
    // The peer of these tests has no brotli and no xmill.
    let mut side = Side::new(auto());
    for _ in 0..30 {
        side.posts(&xml(500), None);
    }
    assert!(side.options().all(|options| options.codec.number() <= 2));
}

#[test]
fn the_operators_cap_bounds_what_is_believed() {
    let mut side = Side::new(Config { rate_cap_bps: Some(9600.0), ..auto() });
    let transport = Transport {
        rtt: ms(1),
        min_rtt: ms(1),
        delivered_bytes_per_s: 1 << 30,
        window_segments: 10,
        segment_bytes: 1448,
        ..Transport::default()
    };
    assert_eq!(side.relay.links()[0].figures.rtt_s.weight, 0.0, "nothing is measured");
    side.tell(Input::Transport { carrier: CARRIER, transport });
    side.posts(&xml(500), None);
    let link = side.chosen().1.expect("weighed").link;
    assert!((link.rate_bps.value - 9600.0).abs() < 1e-6, "{link:?}");
    let links = side.relay.links();
    let [reported] = &links[..] else { panic!("{links:?}") };
    assert_eq!(
        (reported.path, &reported.peer[..], reported.figures),
        (path_of(CARRIER), "peer", link)
    );
    assert_eq!((reported.figures.rtt_s.value, reported.figures.rtt_s.weight), (0.001, 1.0));
    // Messages that are there at once change nothing of it.
    for _ in 0..40 {
        let (exchange, _) = side.posts(&xml(500), None);
        side.now += ms(5);
        side.hears(Receipt { exchange, ..Receipt::default() }.part());
    }
    let decision = side.chosen().1.expect("weighed");
    assert_eq!(decision.peer.as_deref(), Some("peer"));
    for candidate in &decision.candidates {
        let least_s = 8.0 * candidate.expected.bytes as f64 / 9600.0;
        assert!(candidate.expected.network_s > 0.99 * least_s, "{candidate:?}");
    }
}

#[test]
fn a_first_encoding_that_disappoints_is_followed_by_another_in_a_context_of_its_own() {
    // Letters at random: less than half is left by none, and weak coders see nothing in it.
    let mut state = 1_u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + state.to_le_bytes()[3] % 26
    };
    let mut tried = 0;
    let mut side = Side::new(auto());
    for _ in 0..6 {
        // Begins like XML that compresses well.
        let mut body = xml(80);
        body.extend((0..50_000).map(|_| letter()));
        side.jobs.clear();
        side.posts(&body, None);
        assert!(side.encoded().all(|job| job.first), "each try begins a context");
        assert!(side.encoded().count() <= 3);
        tried = tried.max(side.encoded().count());
    }
    assert!(tried >= 1);
}

/// Long bodies repeat themselves: of the first block far more is left than of them, and that it is
/// so is no surprise.
#[test]
fn a_first_block_that_is_as_it_always_was_does_not_disappoint() {
    let mut side = Side::new(auto());
    let body = vec![&xml(1200)[..]; 40].concat();
    (0..3).for_each(|_| drop(side.posts(&body, None)));
    for _ in 0..3 {
        side.jobs.clear();
        side.posts(&body, None);
        let tries = side.encoded().filter(|job| job.first);
        let tries: Vec<_> = tries.map(|job| job.setup.options.label()).collect();
        assert_eq!(tries.len(), 1, "{tries:?}");
    }
}

#[test]
fn what_only_teaches_takes_a_bounded_share() {
    let mut side = Side::new(auto());
    for _ in 0..200 {
        side.posts(&xml(300), None);
    }
    let probes = side.jobs.iter().filter(|job| matches!(job, Job::Try(_))).count();
    // Each takes 0.2 ms here, and nothing was earned: messages left at once.
    assert!((1..=140).contains(&probes), "{probes}");
}

/// XML that repeats itself for ever leaves a tenth of what its first block does, in all of them: of
/// one that was seen at the first block alone as much is expected.
#[test]
fn what_was_seen_of_a_first_block_is_expected_of_as_long_a_body_as_what_was_sent_shows() {
    let mut side = Side::new(auto());
    let mut body = xml(1500);
    body.extend(b"<row><key>1</key><name>Customer#000000007</name></row>\n".repeat(15_000));
    for _ in 0..20 {
        let (exchange, _) = side.posts(&body, None);
        side.now += ms(400);
        let receipt = Receipt { exchange, tail: ms(1), decode: ms(4), ..Receipt::default() };
        side.hears(receipt.part());
    }
    let looked = |label: &str| {
        let probe = |fact: &Fact| match fact {
            Fact::Chosen { decision: Some(decision), .. } => decision.probe.clone(),
            _ => None,
        };
        side.facts.iter().filter_map(probe).any(|probe| probe == label)
    };
    let (sent, decision) = side.chosen();
    let candidates = &decision.expect("it was weighed").candidates;
    let mut compared = 0;
    for one in candidates.iter().filter(|one| one.encoding != sent && looked(&one.encoding)) {
        let options = side.relay.transfer.core.config.encoding.arms().iter();
        let options = *options.clone().find(|options| options.label() == one.encoding).unwrap();
        let mut coder = options.encoder_on(None).unwrap();
        let mut coded = Vec::new();
        coder.encode(&body, true, &mut coded).unwrap();
        let off = one.expected.bytes as f64 / coded.len() as f64;
        assert!((0.5..2.0).contains(&off), "{}: {off}", one.encoding);
        compared += 1;
    }
    assert!(compared > 0, "{candidates:?}");
}

#[test]
fn where_encoders_are_waited_for_nothing_is_coded_for_a_while() {
    let mut side = Side::new(auto());
    side.posts(&xml(500), None);
    assert_ne!(side.chosen().0, "identity");
    (side.busy, side.facts) = (ms(5000), Vec::new());
    let (exchange, _) = side.posts(&xml(500), None);
    side.now += ms(80);
    side.hears(Receipt { exchange, tail: ms(1), decode: ms(1), ..Receipt::default() }.part());
    let [outcome] = side.outcomes()[..] else { panic!("{:?}", side.facts) };
    assert_eq!((outcome.actual.wait_s, outcome.expected.wait_s), (5.0, 0.0));
    let sum = outcome.split.encode_s + outcome.split.network_s + outcome.split.decode_s;
    let error = outcome.actual.total_s() - outcome.expected.total_s() - outcome.split.size_s;
    assert!((error - sum).abs() < 1e-3, "{outcome:?}");

    side.posts(&xml(500), None);
    let (encoding, decision) = side.chosen();
    assert_eq!(encoding, "identity");
    let candidates = &decision.expect("it was weighed").candidates;
    let waits = |one: &record::decision::Candidate| one.expected.wait_s;
    assert!(candidates.iter().all(|one| (waits(one) > 1.0) == (one.encoding != "identity")));
    // Whether that is so still only a coding shows.
    side.now += ms(60_000);
    side.busy = ms(0);
    side.posts(&xml(500), None);
    assert_ne!(side.chosen().0, "identity");
}

/// docs/configuration.md names it.
#[test]
fn what_is_learned_of_all_encodings_takes_at_most_eight_megabytes() {
    let mut config = auto();
    config.encoding.allow_infoset();
    let side = Side::new(config);
    let (bytes, arms) = (
        side.relay.transfer.coding.learned_bytes(),
        side.relay.transfer.core.config.encoding.arms().len(),
    );
    assert!((6_000_000..8_000_000).contains(&bytes) && arms > 15, "{arms} arms: {bytes}");
}

/// What another peer takes to decode, learned from the history, is no matter of this one's.
#[test]
fn what_one_peer_takes_to_decode_is_not_expected_of_another() {
    let mut side = Side::new(auto());
    let took = Duration::from_micros(300);
    for _ in 0..5 {
        let (exchange, _) = side.posts(&xml(500), None);
        side.now += ms(100);
        side.hears(Receipt { exchange, decode: took, tail: took, ..Receipt::default() }.part());
    }
    let outcome = side.outcomes().last().copied().cloned().expect("told");
    let decision = side.chosen().1.expect("weighed").clone();
    let mut slow = outcome.clone();
    slow.actual.decode_s = 2.0;
    let other = Decision { peer: Some("other".to_owned()), ..decision };
    (0..10).for_each(|_| side.relay.learn_from(&other, &slow));
    side.posts(&xml(500), None);
    let candidates = &side.chosen().1.expect("weighed").candidates;
    let same = candidates.iter().find(|one| one.encoding == outcome.encoding).expect("open");
    assert!(same.expected.decode_s < 10.0 * took.as_secs_f64(), "{same:?}");
}
