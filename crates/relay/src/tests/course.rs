//! Behind the first block of a half: blocks flow while more are made, and go otherwise than those
//! before where that has become better.

use std::sync::Arc;

use codec::infoset::Vocabulary;
use decide::estimate::Transport;
use decide::policy::Objective;
use record::decision::{Outcome, Turn};
use record::event::Fact;

use super::*;

const EDGE: usize = 0;
const GATEWAY: usize = 1;
/// Services whose infoset is enough, and of which the fewest bytes are wanted.
const OF_INFOSET: usize = 1;
const OF_BYTES: usize = 2;
/// One whose bodies go in brotli, at levels that want most memory for small windows, or not.
const OF_BROTLI: usize = 3;
/// Most turns of a half, as the map has it.
const MOST_TURNS: usize = 6;

/// Two relays, their carrier without delay, and the codecs of their shells.
struct Pair {
    relays: [Relay; 2],
    encoders: BTreeMap<(usize, ExchangeId), Box<dyn codec::Encoder>>,
    decoders: BTreeMap<(usize, ExchangeId), Box<dyn codec::Decoder>>,
    todo: VecDeque<(usize, Input)>,
    wake: [Option<Duration>; 2],
    now: Duration,
    carrier: Option<CarrierId>,
    /// Bytes that the carrier brings from the sender before it breaks.
    left: usize,
    /// Whose body it is, and of which service.
    from: usize,
    service: usize,
    knows_anew: bool,
    /// Bytes that were encoded before the path faded.
    before: usize,
    /// Bytes that the sender may hand over.
    allowed: usize,
    /// Bytes of the body that went through an encoder, and contexts that were begun.
    encoded: usize,
    contexts: usize,
    /// Bytes of the sender on the carrier.
    carried: usize,
    /// Those of them that are no whole frame yet.
    unread: BytesMut,
    got: Vec<u8>,
    ended: bool,
    failed: bool,
    facts: Vec<Fact>,
}

impl Pair {
    fn new(from: usize, encoding: Encoding) -> Self {
        Self::with(from, encoding, true)
    }

    /// The same with a receiver that may not know of contexts that begin anew.
    fn with(from: usize, encoding: Encoding, knows_anew: bool) -> Self {
        let brotli = ["brotli:4", "brotli:5"].map(|name| codec::Options::of(name).unwrap());
        let config = |role, instance| {
            let infoset = Vocabulary::new(None).ok().map(Arc::new);
            let objective = Objective::Bytes;
            let services = vec![
                Service::default(),
                Service { infoset, ..Service::default() },
                Service { objective, ..Service::default() },
                Service { encodings: Some(brotli.to_vec()), ..Service::default() },
            ];
            let encoding = encoding.clone();
            Relay::new(Config { encoding, services, ..Config::new(role, instance) })
        };
        let mut pair = Self {
            relays: [config(Role::Edge, 1), config(Role::Gateway, 9)],
            encoders: BTreeMap::new(),
            decoders: BTreeMap::new(),
            todo: VecDeque::new(),
            wake: [None; 2],
            now: Duration::ZERO,
            carrier: None,
            left: usize::MAX,
            from,
            service: 0,
            knows_anew,
            before: 0,
            allowed: 0,
            encoded: 0,
            contexts: 0,
            carried: 0,
            unread: BytesMut::new(),
            got: Vec::new(),
            ended: false,
            failed: false,
            facts: Vec::new(),
        };
        pair.tell(EDGE, Input::Wake);
        pair
    }

    fn tell(&mut self, end: usize, input: Input) {
        self.todo.push_back((end, input));
        while let Some((end, input)) = self.todo.pop_front() {
            self.relays[end].handle_input(self.now, input);
            while let Some(output) = self.relays[end].poll_output() {
                self.output(end, output);
            }
        }
    }

    /// Lets time pass.
    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some((at, end)) =
            [EDGE, GATEWAY].into_iter().filter_map(|end| Some((self.wake[end]?, end))).min()
            && at <= until
        {
            self.now = self.now.max(at);
            self.wake[end] = None;
            self.tell(end, Input::Wake);
        }
        self.now = until;
    }

    fn output(&mut self, end: usize, output: Output) {
        match output {
            Output::Dial { carrier } => {
                self.carrier = Some(carrier);
                for end in [EDGE, GATEWAY] {
                    self.todo.push_back((end, Input::CarrierUp { carrier, peer: "peer".into() }));
                }
            }
            Output::Transmit { carrier, bytes } => self.transmit(end, carrier, bytes),
            Output::Work(work) => self.work(end, &work),
            Output::Release { exchange } => {
                self.encoders.remove(&(end, exchange));
                self.decoders.remove(&(end, exchange));
            }
            Output::Head { exchange, .. } if end != self.from => {
                self.todo.push_back((end, Input::Credit { exchange, bytes: 1 << 40 }));
            }
            Output::Data { bytes, .. } => self.got.extend_from_slice(&bytes),
            Output::End { exchange, .. } => {
                assert_ne!(end, self.from, "no other half has a body");
                self.ended = true;
                if end == GATEWAY {
                    let head = response();
                    self.todo.push_back((end, Input::Head { exchange, head, end: true }));
                }
            }
            Output::Abort { .. } => self.failed = true,
            Output::Credit { bytes, .. } if end == self.from => {
                self.allowed += usize::try_from(bytes).unwrap();
            }
            Output::WakeAt(at) => self.wake[end] = Some(at),
            Output::Event(event) if end == self.from => self.facts.push(event.fact),
            _ => {}
        }
    }

    fn transmit(&mut self, end: usize, carrier: CarrierId, bytes: Bytes) {
        self.todo.push_back((end, Input::Sent { carrier, bytes: bytes.len() }));
        if self.carrier != Some(carrier) {
            return;
        }
        let mut bytes = bytes;
        if end == self.from {
            bytes.truncate(self.left);
            self.left -= bytes.len();
            self.carried += bytes.len();
            self.unread.extend_from_slice(&bytes);
            while let Ok(Some(frame)) = Frame::take(&mut self.unread) {
                let anew = matches!(&frame, Frame::Data(data) if data.anew);
                assert!(self.knows_anew || !anew, "who does not know it would close the carrier");
            }
        } else if !self.knows_anew {
            bytes = without_anew(bytes);
        }
        self.todo.push_back((1 - end, Input::Received { carrier, bytes }));
        if self.left == 0 {
            (self.carrier, self.left) = (None, usize::MAX);
            self.unread.clear();
            for end in [EDGE, GATEWAY] {
                self.todo.push_back((end, Input::CarrierDown { carrier, reason: "cut".into() }));
            }
        }
    }

    fn work(&mut self, end: usize, work: &Work) {
        let key = (end, work.exchange);
        self.check_memory(end, work);
        let mut out = Vec::new();
        let result = match work.direction {
            WorkDirection::Encode => {
                if work.first {
                    self.contexts += 1;
                    self.encoders.insert(key, work.encoder().unwrap());
                }
                self.encoded += work.bytes.len();
                let encoder = self.encoders.get_mut(&key).expect("a context");
                encoder.encode(&work.bytes, work.last, &mut out)
            }
            WorkDirection::Decode => {
                if work.first {
                    self.decoders.insert(key, work.decoder().unwrap());
                }
                let decoder = self.decoders.get_mut(&key).expect("a context");
                decoder.decode(&work.bytes, work.decoded_len, work.last, &mut out)
            }
            WorkDirection::Shadow => work
                .encoder()
                .and_then(|mut encoder| encoder.encode(&work.bytes, work.last, &mut out)),
            _ => work.alone().map(|bytes| out.extend_from_slice(&bytes)),
        };
        // As is expected; but what a peer tells of decoding must have been possible.
        let encode_s = decide::prior::of(&work.options.label())
            .map_or(0.0, |prior| prior.encode.seconds(work.bytes.len() as f64));
        let cpu = match work.direction {
            WorkDirection::Decode => Duration::from_micros(1),
            _ => Duration::from_secs_f64(encode_s),
        };
        let Work { exchange, direction, block, .. } = *work;
        let result = result.map(|()| out.into());
        self.todo.push_back((end, Input::Done { exchange, direction, block, result, cpu }));
    }

    /// What a context takes was reserved.
    fn check_memory(&self, end: usize, work: &Work) {
        let Work { direction, options, .. } = *work;
        let codec = options.codec().unwrap();
        let takes = match direction {
            WorkDirection::Encode => codec.encoder_bytes(options),
            WorkDirection::Decode => codec.decoder_bytes(options),
            _ => return,
        };
        let reserved = self.relays[end].load().codec_bytes;
        assert!(options.is_infoset() || takes <= reserved, "{options:?}: {takes} of {reserved}");
    }

    /// A body begins whose length may be told.
    fn begins(&mut self, length: Option<usize>) -> ExchangeId {
        let exchange = self.relays[EDGE].next_exchange();
        (self.allowed, self.ended, self.failed) = (0, false, false);
        self.got.clear();
        let length = length.map(|length| length.to_string());
        let mut fields = vec![("content-type", "text/xml")];
        fields.extend(length.as_deref().map(|length| ("content-length", length)));
        if self.from == EDGE {
            let head = request("POST", &fields);
            self.tell(EDGE, Input::Head { exchange, head, end: false });
        } else {
            let head = request("GET", &[]);
            self.tell(EDGE, Input::Head { exchange, head, end: true });
            let field =
                |(name, value): (&str, &str)| (name.to_owned().into(), value.to_owned().into());
            let fields = fields.into_iter().map(field).collect();
            let head = Head::Response(bhttp::Response { status: 200, fields });
            self.tell(GATEWAY, Input::Head { exchange, head, end: false });
        }
        self.tell(self.from, Input::Service { exchange, service: self.service });
        exchange
    }

    fn hands_over(&mut self, exchange: ExchangeId, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && !self.failed {
            let (piece, behind) = rest.split_at(rest.len().min(self.allowed));
            if piece.is_empty() {
                self.pass(ms(25));
                continue;
            }
            self.allowed -= piece.len();
            rest = behind;
            let bytes = Bytes::copy_from_slice(piece);
            self.tell(self.from, Input::Data { exchange, bytes });
        }
    }

    /// A body is sent in pieces that come a millisecond apart.
    fn sends(&mut self, body: &[u8], piece_bytes: usize, length: Option<usize>) {
        let exchange = self.begins(length);
        for piece in body.chunks(piece_bytes) {
            self.hands_over(exchange, piece);
            self.pass(ms(1));
        }
        self.ends(exchange);
    }

    fn ends(&mut self, exchange: ExchangeId) {
        if !self.failed {
            self.tell(self.from, Input::End { exchange, trailers: Vec::new() });
        }
        self.pass(ms(100));
    }

    /// All is over, whole, and nothing is left of it.
    fn check(&self, body: &[u8]) {
        assert!(self.ended && !self.failed && self.got == body, "{} bytes came", self.got.len());
        for relay in &self.relays {
            assert!(relay.is_idle());
            assert_eq!(relay.load().codec_bytes, 0);
        }
        assert!(self.encoders.is_empty() && self.decoders.is_empty());
    }

    fn outcome(&self) -> &Outcome {
        let found = self.facts.iter().rev().find_map(|fact| match fact {
            Fact::Outcome { outcome, .. } => Some(outcome),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no outcome in {:?}", self.facts))
    }

    fn turns(&self) -> &[Turn] {
        &self.outcome().turns
    }
}

fn is_turned(fact: &Fact) -> bool {
    matches!(fact, Fact::Outcome { outcome, .. } if !outcome.turns.is_empty())
}

fn response() -> Head {
    Head::Response(bhttp::Response { status: 200, fields: Vec::new() })
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..len).map(|_| next()).collect()
}

fn xml(len: usize) -> Vec<u8> {
    let row = |at: usize| {
        let (name, price) = (at * 7919 % 100_003, at * 31 % 9973);
        format!("<row><key>{at}</key><name>Customer#{name:09}</name><price>{price}</price></row>\n")
    };
    let rows = (0..=len / 40).map(row);
    let mut text = rows.collect::<String>().into_bytes();
    text.truncate(len);
    text
}

#[test]
fn what_no_longer_compresses_is_no_longer_coded() {
    for from in [EDGE, GATEWAY] {
        let (first, rest) = (1 << 20, 3 << 20);
        let body = [xml(first), noise(rest, 1)].concat();
        let mut pair = Pair::new(from, Encoding::auto());
        pair.sends(&body, 40_000, Some(body.len()));
        pair.check(&body);
        let [turn] = pair.turns() else { panic!("{:?}", pair.turns()) };
        assert_eq!(turn.encoding, "identity");
        let at = usize::try_from(turn.at_bytes).unwrap();
        assert!((first..first + (3 << 16)).contains(&at), "{turn:?}");
        assert!(pair.encoded < first + (5 << 16), "{} bytes were encoded", pair.encoded);
        assert!(pair.carried < rest + first / 2);
    }
}

#[test]
fn what_begins_to_compress_is_coded_from_there_on() {
    for length in [true, false] {
        let body = [noise(256 << 10, 2), xml(3 << 20)].concat();
        let mut pair = Pair::new(GATEWAY, Encoding::auto());
        pair.sends(&body, 40_000, length.then_some(body.len()));
        pair.check(&body);
        let turns = pair.turns();
        assert!(turns.len() == 1 && turns[0].encoding != "identity", "{turns:?}");
        assert!((256 << 10..448 << 10).contains(&turns[0].at_bytes), "{turns:?}");
        assert!(pair.carried < body.len() / 3, "{} of {}", pair.carried, body.len());
        assert_eq!(pair.contexts, 1);
    }
}

#[test]
fn where_nothing_changes_nothing_turns() {
    let body = xml(2 << 20);
    let mut pair = Pair::new(GATEWAY, Encoding::auto());
    pair.sends(&body, 40_000, None);
    pair.check(&body);
    assert!(pair.turns().is_empty(), "{:?}", pair.turns());
    assert!(pair.encoded >= body.len() && pair.carried < body.len() / 3);

    let body = noise(2 << 20, 3);
    pair.sends(&body, 40_000, None);
    let before = pair.encoded;
    pair.sends(&body, 40_000, None);
    pair.check(&body);
    assert!(pair.turns().is_empty() && pair.encoded == before, "{:?}", pair.turns());
}

#[test]
fn what_changes_to_and_fro_turns_only_so_often() {
    for unit in [8_000, 64 << 10, 100_000, 300_000, 1 << 20] {
        let units = (6 << 20) / unit;
        let of = |at: usize| if at.is_multiple_of(2) { xml(unit) } else { noise(unit, at as u64) };
        let body: Vec<u8> = (0..units).flat_map(of).collect();
        let mut pair = Pair::new(GATEWAY, Encoding::auto());
        pair.sends(&body, 30_000, None);
        pair.check(&body);
        assert!(pair.turns().len() <= MOST_TURNS, "{unit}: {:?}", pair.turns());
        // Half of it compresses, and of that much is found.
        assert!(pair.carried < body.len() * 9 / 10, "{unit}: {}", pair.carried);
        assert!(pair.contexts <= 4, "what is tried at first, and one context");
    }
}

#[test]
fn the_split_of_a_half_that_turned_adds_up() {
    let body = [xml(300_000), noise(900_000, 4)].concat();
    let mut pair = Pair::new(GATEWAY, Encoding::auto());
    pair.sends(&body, 40_000, None);
    let outcome = pair.outcome();
    assert_eq!(outcome.body_bytes, body.len() as u64);
    assert!(!outcome.turns.is_empty() && outcome.encoding != "identity");
    let (error, split) = (outcome.actual.total_s() - outcome.expected.total_s(), &outcome.split);
    let sum = split.encode_s + split.decode_s + split.network_s + split.size_s;
    // Parts are rounded, the split is not.
    let scale = outcome.expected.total_s() + outcome.actual.total_s();
    assert!((error - sum).abs() < 1e-4 * scale, "{error} {sum}");
}

/// A mixture teaches of no encoding how it does on either part.
#[test]
fn a_half_that_turned_teaches_nothing_of_its_encoding() {
    let mut pair = Pair::new(GATEWAY, Encoding::auto());
    // The carrier takes no time, and that would be learned.
    pair.service = OF_BYTES;
    let plain = xml(800_000);
    let mixed = [xml(400_000), noise(400_000, 5)].concat();
    (0..12).for_each(|_| pair.sends(&plain, 40_000, Some(plain.len())));
    for _ in 0..4 {
        pair.sends(&mixed, 40_000, Some(mixed.len()));
        assert!(!pair.turns().is_empty(), "{:?}", pair.outcome());
    }
    pair.sends(&plain, 40_000, Some(plain.len()));
    let outcome = pair.outcome();
    let ratio = outcome.expected.bytes as f64 / outcome.actual.bytes as f64;
    assert!((0.5..2.0).contains(&ratio), "{outcome:?}");
}

/// A body begins on a path of so many bytes a second, with so many bytes, and the path fades.
fn faded(pair: &mut Pair, body: &[u8], bytes_per_s: u64, first: usize) {
    let carrier = pair.carrier.unwrap();
    let fast = Transport {
        rtt: Duration::from_micros(20),
        min_rtt: Duration::from_micros(20),
        delivered_bytes_per_s: bytes_per_s,
        window_segments: 4000,
        segment_bytes: 1448,
        ..Transport::default()
    };
    pair.tell(pair.from, Input::Transport { carrier, transport: fast });
    let exchange = pair.begins(None);
    let (fair, faded) = body.split_at(1 << 20);
    let (first, fair) = fair.split_at(first);
    pair.hands_over(exchange, first);
    pair.pass(config::BLOCK_PAUSE);
    pair.hands_over(exchange, fair);
    pair.before = pair.encoded;
    for at in 1..=8 {
        let slow = Transport {
            rtt: ms(400 + u64::from(at)),
            min_rtt: ms(20),
            delivered_bytes_per_s: 30_000,
            segments_out: 100 * at,
            window_segments: 100,
            ..fast
        };
        pair.tell(pair.from, Input::Transport { carrier, transport: slow });
    }
    pair.hands_over(exchange, faded);
    pair.ends(exchange);
    pair.check(body);
}

#[test]
fn a_fade_amid_a_body_makes_it_worth_coding() {
    let mut pair = Pair::new(GATEWAY, Encoding::auto());
    faded(&mut pair, &xml(4 << 20), 20 << 30, 0);
    assert_eq!(pair.before, 0, "nothing gains on such a path");
    assert!(!pair.turns().is_empty() && pair.encoded > 2 << 20, "{:?}", pair.turns());
}

#[test]
fn operators_who_fix_an_encoding_get_it_for_every_block() {
    let body = [xml(300_000), noise(300_000, 6)].concat();
    for name in ["zstd:3", "nam"] {
        let mut pair = Pair::new(GATEWAY, Encoding::of(name).unwrap());
        (0..3).for_each(|_| pair.sends(&body, 40_000, None));
        pair.check(&body);
        if name != "nam" {
            assert_eq!(pair.encoded, 3 * body.len());
        }
        assert!(!pair.facts.iter().any(is_turned));
    }
}

/// Whatever the body is made of and wherever the carrier breaks: all of it, or its beginning and a
/// failure.
#[test]
fn bodies_of_all_sorts_come_whole_or_are_told_to_be_lost() {
    let mut turned = 0;
    for seed in 0..60_u64 {
        let mut numbers = noise(64, seed + 100).into_iter().map(usize::from);
        let mut number = || numbers.next().unwrap();
        let parts = 1 + number() % 6;
        let part =
            |at: usize, len| if at.is_multiple_of(2) { xml(len) } else { noise(len, at as u64) };
        let begins = number() % 2;
        let body: Vec<u8> =
            (0..parts).flat_map(|at| part(at + begins, 1000 + number() * 700)).collect();
        let length = (number() % 2 == 0).then_some(body.len());
        let piece_bytes = 500 + number() * 300;
        let mut pair = Pair::new(number() % 2, Encoding::auto());
        let cut = number() % 3 == 0;
        if cut {
            pair.left = 50 + number() * number() * 3;
        }
        pair.sends(&body, piece_bytes, length);
        pair.pass(Duration::from_secs(300));
        if cut && !pair.ended {
            assert!(pair.failed, "seed {seed}: neither whole nor told");
            assert!(body.starts_with(&pair.got), "seed {seed}");
            assert!(pair.relays.iter().all(|relay| relay.load().codec_bytes == 0), "seed {seed}");
            continue;
        }
        pair.check(&body);
        turned += usize::from(pair.facts.iter().any(is_turned));
    }
    assert!(turned > 5, "{turned} turned");
}

/// The service makes a little, and waits: what it has made is there before it makes more, whatever
/// the codec would like to keep back.
#[test]
fn what_is_made_so_far_arrives_before_more_is_made() {
    let all = ["identity", "deflate:9", "zstd:19", "brotli:9", "xmill:5", "nam", "auto", "infoset"];
    for name in all {
        for from in [EDGE, GATEWAY] {
            let service = if name == "infoset" { OF_INFOSET } else { 0 };
            let mut encoding = Encoding::of(if service > 0 { "auto" } else { name }).unwrap();
            encoding.allow_infoset();
            let mut pair = Pair::new(from, encoding);
            let body = xml(40_000);
            pair.service = service;
            let exchange = pair.begins(None);
            for made in (4_000..=body.len()).step_by(4_000) {
                pair.hands_over(exchange, &body[made - 4_000..made]);
                // The pause after which a block closes, and no longer.
                pair.pass(config::BLOCK_PAUSE);
                assert_eq!(pair.got.len(), made, "{name}");
                assert!(!pair.ended);
                pair.pass(ms(3000));
            }
            pair.ends(exchange);
            pair.check(&body);
        }
    }
}

#[test]
fn a_fade_amid_a_coded_body_makes_it_worth_coding_more() {
    for (from, anew) in [(EDGE, true), (EDGE, false), (GATEWAY, true), (GATEWAY, false)] {
        let mut pair = Pair::with(from, Encoding::auto(), anew);
        faded(&mut pair, &xml(3 << 20), 40 << 20, 0);
        assert!(pair.before > 0, "it is coded from the beginning");
        let [first, ..] = pair.turns() else {
            assert!(!anew, "{:?}", pair.outcome());
            continue;
        };
        assert!(anew && first.encoding != "identity", "{:?}", pair.outcome());
        let codec = |label: &str| label.split(':').next().map(str::to_owned);
        assert_eq!(codec(&first.encoding), codec(&pair.outcome().encoding));
    }
}

/// The head of a body of unknown length names a small window, and what goes on behind it has that
/// one: levels whose memory does not suffice for it are not gone on in.
#[test]
fn what_goes_on_otherwise_has_the_memory_that_it_takes() {
    let mut pair = Pair::new(GATEWAY, Encoding::auto());
    pair.service = OF_BROTLI;
    faded(&mut pair, &xml(3 << 20), 20 << 30, 4000);
    assert!(pair.encoded > 0, "{:?}", pair.turns());
}

/// A peer that begins contexts without end, and one whose body goes on in another.
#[test]
fn contexts_begin_anew_only_so_often() {
    let block = || {
        let mut bytes = Vec::new();
        let options = codec::Options { window_log: 17, ..codec::Options::of("zstd").unwrap() };
        options.encoder().unwrap().encode(b"12345", false, &mut bytes).unwrap();
        bytes
    };
    let (mut relay, mut peer) = gateway();
    let Frame::Head(head) = request_frame(5) else { unreachable!() };
    let head = Frame::Head(stream::Head { codec: 2, window_log: 17, end: false, ..head });
    peer.sends(&mut relay, ms(0), CARRIER, &[head]);
    let (mut began, mut refused) = (0, None);
    for at in 0..1000 {
        let (block_end, end) = (Some(5), false);
        let data =
            Data { exchange: 5, block_end, uncoded: false, anew: true, end, bytes: block().into() };
        let outputs = peer.sends(&mut relay, ms(2), CARRIER, &[Frame::Data(data)]);
        for output in &outputs {
            assert!(!matches!(output, Output::Close { .. }), "only the exchange");
            let Output::Work(work) = output else { continue };
            began += usize::from(work.first);
            let Work { exchange, direction, block, .. } = *work;
            let (result, cpu) = (Ok(Bytes::from_static(b"12345")), ms(0));
            relay.handle_input(ms(2), Input::Done { exchange, direction, block, result, cpu });
        }
        if outputs.iter().any(|output| matches!(output, Output::Abort { .. })) {
            refused = Some(at);
            break;
        }
        relay.handle_input(
            ms(2),
            Input::Credit { exchange: ExchangeId { instance: 1, number: 5 }, bytes: 10 },
        );
        peer.takes(&drain(&mut relay));
    }
    assert_eq!((began, refused), (incoming::MOST_CONTEXTS, Some(incoming::MOST_CONTEXTS)));
    assert_eq!((relay.load().codec_bytes, relay.is_idle()), (0, true));
}

/// A peer that codes every other block of many tiny ones: one context, and memory for one.
#[test]
fn blocks_coded_and_not_by_turns_take_one_context() {
    let (mut relay, mut peer) = gateway();
    let Frame::Head(head) = request_frame(5) else { unreachable!() };
    let head = Frame::Head(stream::Head { codec: 2, window_log: 17, end: false, ..head });
    peer.sends(&mut relay, ms(0), CARRIER, &[head]);
    let exchange = ExchangeId { instance: 1, number: 5 };
    relay.handle_input(ms(1), Input::Credit { exchange, bytes: 1 << 40 });
    drain(&mut relay);
    let options = codec::Options { window_log: 17, ..codec::Options::of("zstd").unwrap() };
    let mut encoder = options.encoder().unwrap();
    let (mut began, mut got, mut most) = (0, 0, 0);
    for at in 0..20_000 {
        let (uncoded, mut bytes) = (at % 2 == 0, b"12345".to_vec());
        if !uncoded {
            bytes.clear();
            encoder.encode(b"12345", false, &mut bytes).unwrap();
        }
        let (block_end, end, bytes) = (Some(5), false, bytes.into());
        let data = Data { exchange: 5, block_end, uncoded, anew: false, end, bytes };
        let outputs = peer.sends(&mut relay, ms(2), CARRIER, &[Frame::Data(data)]);
        let mut todo = VecDeque::from(outputs);
        while let Some(output) = todo.pop_front() {
            match &output {
                Output::Work(work) => {
                    began += usize::from(work.first);
                    let Work { exchange, direction, block, .. } = *work;
                    let (result, cpu) = (Ok(Bytes::from_static(b"12345")), ms(0));
                    let done = Input::Done { exchange, direction, block, result, cpu };
                    relay.handle_input(ms(2), done);
                    todo.extend(drain(&mut relay));
                }
                Output::Data { bytes, .. } => got += bytes.len(),
                _ => {}
            }
            peer.takes(&[output]);
        }
        most = most.max(relay.load().codec_bytes);
    }
    assert_eq!((began, got), (1, 100_000));
    let one = options.codec().unwrap().decoder_bytes(options);
    assert_eq!(most, one);
}
