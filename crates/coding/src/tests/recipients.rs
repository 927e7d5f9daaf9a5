//! Messages for recipients that are no peers: content codings, what they may cost, and what is
//! learned of them.

use std::collections::VecDeque;

use codec::Settings;
use codec::content::Coding as Content;
use codec::dictionary::Kept;
use codec::dictionary::rfc9842::Form;
use decide::network;
use proto::profile::{Decoding, Model};
use record::decision::{self as facts, Decision, Outcome};

use super::*;
use crate::job::{Done, Encode, Try};
use crate::recipient::{Framing, Recipient};

const EVERY: [Content; 4] = Content::ALL;

fn path(rate_bps: f64, rtt_s: f64) -> network::Path {
    Estimate::new(rate_bps, Duration::from_secs_f64(rtt_s), None).path()
}

/// At the end of a link of 100 kbit/s, for which encoding always gains.
fn slow(codings: &[Content]) -> Recipient {
    Recipient {
        codings: codings.to_vec(),
        forms: Vec::new(),
        dictionary: None,
        identity: true,
        decoder: None,
        path: path(1e5, 0.1),
        link: facts::Link::default(),
        account: 1,
    }
}

fn rows(count: u32) -> Vec<u8> {
    let row = |n: u32| format!("{{\"id\":{n},\"name\":\"track {}\",\"lat\":{}}},", n * 7, n * 131);
    (0..count).flat_map(|n| row(n).into_bytes()).collect()
}

fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..bytes).map(next).collect()
}

/// A side that answers, and what came of its last answer.
struct Side {
    coding: Coding,
    now: Duration,
    number: u64,
    contexts: Contexts,
    facts: Vec<Fact>,
    framing: Framing,
    blocks: Vec<Bytes>,
    ended: bool,
    trailers: bool,
    screened: Option<Option<Arc<Kept>>>,
    encoded: usize,
    /// Seconds that encoders were said to take, where none is run.
    said_s: Option<f64>,
}

/// What an encoder leaves of JSON in per cent, and seconds that it takes for each byte, about.
fn said(options: Options) -> (usize, f64) {
    match (options.codec.number(), options.level) {
        (2, ..=1) => (30, 4e-9),
        (2, ..=3) => (25, 8e-9),
        (2, ..=9) => (21, 6e-8),
        (2, _) => (18, 5e-7),
        (3, ..=5) => (23, 4e-8),
        (3, _) => (20, 3e-7),
        _ => (24, 6e-8),
    }
}

impl Side {
    fn new(config: Config) -> Self {
        Self {
            coding: Coding::new(config),
            now: ms(1000),
            number: 0,
            contexts: Contexts::default(),
            facts: Vec::new(),
            framing: Framing::Blocks,
            blocks: Vec::new(),
            ended: false,
            trailers: false,
            screened: None,
            encoded: 0,
            said_s: None,
        }
    }

    fn run(&mut self, job: &Job) -> Input {
        self.encoded += usize::from(matches!(job, Job::Encode(_)));
        let Some(all_s) = self.said_s.as_mut() else { return run(job, &mut self.contexts) };
        let (share, byte_s) = said(job.setup().unwrap().options);
        let bytes = job.decoded_len() as f64;
        *all_s += byte_s * bytes;
        let cpu = Duration::from_secs_f64(byte_s * bytes);
        let result = Ok(Bytes::from(vec![0; job.decoded_len() * share / 100]));
        Input::Done(match job {
            Job::Encode(Encode { exchange, block, .. }) => {
                Done::Encoded { exchange: *exchange, block: *block, result, cpu }
            }
            Job::Try(Try { exchange, .. }) => Done::Tried { exchange: *exchange, result, cpu },
            other => panic!("{other:?}"),
        })
    }

    fn id(&self) -> ExchangeId {
        ExchangeId { instance: 77, number: self.number }
    }

    fn tell(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            self.coding.handle_input(self.now, input);
            while let Some(output) = self.coding.poll_output() {
                match output {
                    Output::Job(job) => inputs.push_back(self.run(&job)),
                    Output::Settled { framing, .. } => self.framing = framing,
                    Output::Block { exchange, bytes, end, .. } => {
                        self.blocks.push(bytes);
                        self.ended |= end;
                        let departed = Departed { body: true, block: true, more: !end, end };
                        inputs.push_back(Input::Departed { exchange, departed });
                    }
                    Output::Trailers { .. } => self.trailers = true,
                    Output::Screened { kept, .. } => self.screened = Some(kept),
                    Output::Event(fact) => self.facts.push(fact),
                    Output::Release { .. } => {}
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    fn begin(&mut self, to: Recipient, length: Option<u64>) {
        self.number += 1;
        (self.framing, self.ended, self.trailers) = (Framing::Blocks, false, false);
        self.blocks.clear();
        self.encoded = 0;
        let (target, operation) = ("http://a".to_owned(), "/x".to_owned());
        let (exchange, about) = (self.id(), About { target, operation, ..About::default() });
        self.tell(Input::Open { exchange, about });
        let media = Some("application/json".to_owned());
        let recipient = Some(Arc::new(to));
        let message = Message { media, length, recipient, ..Message::default() };
        self.tell(Input::Message { exchange, message });
    }

    fn body(&mut self, piece: &[u8]) {
        let (exchange, bytes) = (self.id(), Bytes::copy_from_slice(piece));
        self.tell(Input::Body { exchange, bytes });
    }

    fn passes(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.coding.wake_at().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.tell(Input::Wake);
        }
        self.now = until;
    }

    /// Answers with a body in pieces of 10,000 bytes.
    fn answers(&mut self, to: Recipient, body: &[u8]) {
        self.begin(to, Some(body.len() as u64));
        body.chunks(10_000).for_each(|piece| self.body(piece));
        let exchange = self.id();
        self.tell(Input::End { exchange, trailers: false });
    }

    /// Over a link of 100 kbit/s.
    fn arrives(&mut self) {
        let (exchange, bytes) = (self.id(), self.sent().len() as u64);
        let network = Duration::from_secs_f64(8.0 * bytes as f64 / 1e5);
        self.tell(Input::Arrived { exchange, bytes, network });
    }

    fn forget(&mut self) {
        let exchange = self.id();
        self.tell(Input::Forget { exchange });
    }

    fn sent(&self) -> Vec<u8> {
        self.blocks.concat()
    }

    /// What the recipient makes of it.
    fn decoded(&self) -> Vec<u8> {
        let codec = match self.framing.token() {
            None => return self.sent(),
            Some("gzip" | "deflate") => "deflate",
            Some("br") => "brotli",
            Some(other) => other,
        };
        Settings::default().decode(codec, &self.sent()).unwrap()
    }

    fn chosen(&self) -> (&str, &str, Option<&Decision>) {
        let chosen = self.facts.iter().rev().find_map(|fact| match fact {
            Fact::Chosen { encoding, reason, decision, .. } => {
                Some((encoding.as_str(), reason.as_str(), decision.as_deref()))
            }
            _ => None,
        });
        chosen.unwrap()
    }

    fn outcomes(&self) -> Vec<&Outcome> {
        let outcomes = self.facts.iter().filter_map(|fact| match fact {
            Fact::Outcome { outcome, .. } => Some(outcome),
            _ => None,
        });
        outcomes.collect()
    }
}

fn side() -> Side {
    Side::new(config(GATEWAY))
}

#[test]
fn a_body_comes_in_a_coding_that_is_taken_and_comes_back_the_same() {
    for coding in EVERY {
        for body in [rows(20), rows(1000), rows(9000)] {
            let mut side = side();
            side.answers(slow(&[coding]), &body);
            assert_eq!(side.framing, Framing::Content(coding));
            assert!(side.ended && side.sent().len() < body.len() / 2, "{coding:?}");
            assert_eq!(side.decoded(), body, "{coding:?}");
            side.forget();
            assert!(side.coding.is_idle() && side.coding.codec_bytes() == 0);
        }
    }
    let mut side = side();
    side.answers(slow(&[]), &rows(9000));
    assert_eq!((side.framing, side.sent()), (Framing::Blocks, rows(9000)));
    let (_, _, decision) = side.chosen();
    let why = |name: &str| {
        let all = &decision.unwrap().forbidden;
        all.iter().find(|one| one.encoding == name).map(|one| one.why.as_str())
    };
    assert_eq!(why("dcz:19"), Some("the client does not take it"));
    assert_eq!(why("xmill:5"), Some("the client does not take it"));
}

#[test]
fn events_come_as_they_are_made_and_the_end_alone_ends_the_coding() {
    for (coding, trailers) in EVERY.into_iter().zip([false, true, false, true]) {
        let mut side = side();
        side.begin(slow(&[coding]), None);
        let mut body = Vec::new();
        for event in 0..4_u32 {
            let event = rows(40 + event);
            side.body(&event);
            body.extend(event);
            side.passes(BLOCK_PAUSE);
        }
        assert_eq!((side.blocks.len(), side.ended), (4, false));
        let exchange = side.id();
        side.tell(Input::End { exchange, trailers });
        assert!(side.ended && side.trailers == trailers);
        assert_eq!((side.blocks.len(), side.decoded()), (5, body), "{coding:?}");
    }
}

#[test]
fn what_was_begun_in_a_coding_goes_on_in_it() {
    // What follows the rows would go as it is to a peer.
    let body = [rows(9000), noise(600_000)].concat();
    for coding in EVERY {
        let mut side = side();
        side.answers(slow(&[coding]), &body);
        assert_eq!((side.framing, side.decoded() == body), (Framing::Content(coding), true));
        assert!(side.encoded >= side.blocks.len(), "all of it went through a context");
    }
    let mut side = side();
    side.answers(slow(&EVERY), &noise(100_000));
    assert_eq!((side.framing, side.sent()), (Framing::Blocks, noise(100_000)));
}

#[test]
fn who_takes_nothing_as_it_is_gets_a_coding_whatever_it_gains() {
    for body in [Vec::new(), b"{}".to_vec(), noise(100_000)] {
        for coding in EVERY {
            let mut side = side();
            side.answers(Recipient { identity: false, ..slow(&[coding]) }, &body);
            assert_eq!(side.framing, Framing::Content(coding), "{} bytes", body.len());
            assert_eq!(side.decoded(), body);
        }
    }
}

#[test]
fn a_dictionary_is_used_for_what_is_whole_and_taken() {
    let (before, body) = (rows(300), [rows(290), b"{}".to_vec()].concat());
    let kept = Arc::new(Kept::new(before.clone()));
    for (form, label) in [(Form::Dcb, "dcb:10"), (Form::Dcz, "dcz:19")] {
        let dictionary = Some(Arc::clone(&kept));
        let to = || Recipient { forms: vec![form], dictionary: dictionary.clone(), ..slow(&EVERY) };
        let mut side = side();
        // What such a coding makes of these bodies is learned beside the first of them.
        for _ in 0..20 {
            side.answers(to(), &body);
            if side.framing == Framing::Dictionary(form) {
                break;
            }
            side.arrives();
            side.forget();
        }
        assert_eq!(side.framing, Framing::Dictionary(form), "{:?}", side.facts);
        assert!(side.sent().len() < 200, "{} bytes", side.sent().len());
        let settings = Settings { dictionary: dictionary.clone(), ..Settings::default() };
        assert_eq!(settings.decode(form.name(), &side.sent()).unwrap(), body);
        let (encoding, _, decision) = side.chosen();
        let sha256 = kept.id().to_string();
        assert_eq!(encoding, label);
        assert_eq!(decision.unwrap().base, Some(facts::Base::Message { sha256 }));
        // Not where more may come.
        side.begin(to(), None);
        side.body(&body);
        side.passes(BLOCK_PAUSE);
        assert!(matches!(side.framing, Framing::Content(_)), "{:?}", side.framing);
    }
}

#[test]
fn a_recipient_that_says_it_decodes_slowly_is_believed() {
    let reported = |per_byte_s| {
        let decoding = |codec| Decoding { codec, fixed_s: 0.0, per_byte_s };
        Some(Arc::new(Model { encodings: (1..=3).map(decoding).collect() }))
    };
    let mut side = side();
    side.answers(Recipient { decoder: reported(1e-4), ..slow(&EVERY) }, &rows(1000));
    assert_eq!(side.framing, Framing::Blocks);
    side.answers(Recipient { decoder: reported(1e-9), ..slow(&EVERY) }, &rows(1000));
    assert!(matches!(side.framing, Framing::Content(_)));
}

/// Seconds of a processor that so many answers of a block take, and how many of them are refused
/// what the recipient says it is worth; `pause` apart.
fn cost(to: &Recipient, answers: usize, pause: Duration) -> (f64, usize) {
    let (mut side, body) = (Side { said_s: Some(0.0), ..side() }, rows(1200));
    let mut refused = 0;
    for _ in 0..answers {
        side.answers(to.clone(), &body);
        refused += usize::from(side.chosen().1.contains("share of the processor"));
        side.forget();
        side.passes(pause);
    }
    (side.said_s.unwrap(), refused)
}

#[test]
fn a_client_that_says_it_is_slow_costs_little_more_than_one_that_says_nothing() {
    let steering = |codec| {
        let per_byte_s = if codec == 3 { 0.0 } else { 1e-4 };
        Decoding { codec, fixed_s: 0.0, per_byte_s }
    };
    let steering = Model { encodings: (1..=3).map(steering).collect() };
    for (codings, decoder) in [(&[Content::Zstd][..], None), (&EVERY[..], Some(steering))] {
        let anybody = Recipient { path: path(1e6, 0.1), ..slow(codings) };
        let attack = Recipient {
            path: path(1000.0, 600.0),
            decoder: decoder.map(Arc::new),
            ..anybody.clone()
        };
        let usual = cost(&anybody, 200, ms(0)).0;
        let (bounded, refused) = cost(&attack, 200, ms(0));
        let what = format!("{codings:?}: {bounded} s for {usual} s, {refused} refused");
        assert!(bounded <= usual * 1.2 + 1.5, "{what}");
        assert!(codings.len() > 1 || refused > 100, "{what}");
    }
}

#[test]
fn who_is_as_slow_as_he_says_is_believed() {
    // At 20 kbit/s even a fifth of it takes five seconds, and what it takes to code it is back.
    let to = Recipient { path: path(20_000.0, 0.6), ..slow(&[Content::Zstd]) };
    assert_eq!(cost(&to, 100, Duration::from_secs(5)).1, 0);
}

#[test]
fn what_clients_get_is_learned_apart_and_taken_up_again() {
    let mut side = side();
    let peers = side.coding.learned();
    assert!(side.coding.learned_of_clients().is_empty());
    for count in 1..=6 {
        side.answers(slow(&[Content::Zstd]), &rows(1000));
        side.arrives();
        side.forget();
        assert_eq!(side.outcomes().len(), count);
    }
    let off = |outcome: &Outcome| {
        (outcome.expected.bytes as f64 / outcome.actual.bytes as f64).ln().abs()
    };
    let all = side.outcomes();
    let first = off(all[0]);
    assert!(off(all[5]) < first / 2.0, "{} after {first}", off(all[5]));
    let last = all[5];
    let bytes = side.sent().len() as u64;
    assert_eq!(last.actual.bytes, bytes);
    assert!((last.actual.network_s - 8e-5 * bytes as f64).abs() < 1e-6);
    assert_eq!(last.actual.decode_s, last.expected.decode_s, "nobody tells");
    assert_eq!(side.coding.learned(), peers, "nothing of the pair's");
    let (_, _, decision) = side.chosen();
    assert!(decision.unwrap().edgeless && decision.unwrap().peer.is_none());
    let decisions = side.facts.iter().filter_map(|fact| match fact {
        Fact::Chosen { decision, .. } => decision.as_deref(),
        _ => None,
    });
    let state = side.coding.learned_of_clients();
    for by_state in [true, false] {
        let mut next = self::side();
        if by_state {
            next.coding.restore_clients(&state).unwrap();
        } else {
            let all = decisions.clone().zip(&all);
            all.for_each(|(decision, outcome)| next.coding.learn_from(decision, outcome));
        }
        next.answers(slow(&[Content::Zstd]), &rows(1000));
        next.arrives();
        assert!(off(next.outcomes()[0]) < first / 2.0, "by its state: {by_state}");
    }
}

#[test]
fn answers_that_go_past_the_machine_are_reported_too() {
    let mut side = side();
    let fast = Recipient { path: path(1e10, 1e-4), ..slow(&[Content::Brotli]) };
    side.begin(fast, Some(3_000_000));
    side.body(&rows(1000));
    side.passes(BLOCK_PAUSE);
    assert_eq!(side.framing, Framing::Blocks);
    let exchange = side.id();
    side.tell(Input::Arrived { exchange, bytes: 3_000_000, network: ms(20) });
    let [outcome] = side.outcomes()[..] else { panic!("{:?}", side.facts) };
    assert_eq!((outcome.body_bytes, outcome.actual.bytes), (3_000_000, 3_000_000));
}

#[test]
fn clients_leave_half_the_memory_of_encoders_to_the_pair() {
    let mut side = side();
    let all = config(GATEWAY).codec_bytes;
    for _ in 0..200 {
        // Each holds its encoder, for more is to come.
        side.begin(Recipient { account: side.number, ..slow(&[Content::Brotli]) }, Some(9 << 20));
        side.body(&rows(1200));
        side.passes(BLOCK_PAUSE);
        assert!(side.coding.codec_bytes() <= all / 2);
    }
    assert!(side.coding.codec_bytes() > all / 4, "{}", side.coding.codec_bytes());
    for number in 1..=200 {
        let exchange = ExchangeId { instance: 77, number };
        side.tell(Input::Forget { exchange });
    }
    assert_eq!(side.coding.codec_bytes(), 0);
}

#[test]
fn content_with_a_secret_in_it_is_distinguished_from_other() {
    let mut side = side();
    for (content, free) in [
        ("<a>1</a>", true),
        ("<a><Security>x</Security></a>", false),
        ("{\"a\": 1, \"password\": \"x\"}", false),
        ("{\"session_id\": \"x\"}", false),
        ("<a>Cookie: x</a>", false),
        ("neither", false),
    ] {
        let (exchange, bytes) = (side.id(), Bytes::from_static(content.as_bytes()));
        side.tell(Input::Screen { exchange, bytes });
        let kept = side.screened.take().unwrap();
        assert_eq!(kept.is_some(), free, "{content}");
        let id = kept.map(|kept| kept.id());
        assert_eq!(id, free.then(|| Id::of(content.as_bytes())));
    }
}
