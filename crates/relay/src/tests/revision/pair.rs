//! An edge and a gateway that do what shells do, and bodies for them.

use std::sync::Arc;

use codec::infoset::SchemaContext;
use coding::job::Setup;
use decide::policy::Objective;
use record::decision::{Outcome, Revision};

use super::*;

/// Two relays, their carrier without delay, and the codecs of their shells.
pub(super) struct Pair {
    pub(super) relays: [Relay; 2],
    contexts: BTreeMap<(usize, ExchangeId), Contexts>,
    todo: VecDeque<(usize, Input)>,
    wake: [Option<Duration>; 2],
    now: Duration,
    pub(super) carrier: Option<CarrierId>,
    /// Bytes that the carrier brings from the sender before it breaks.
    pub(super) left: usize,
    /// Whose body it is, and of which service.
    pub(super) from: usize,
    pub(super) service: usize,
    knows_anew: bool,
    /// Encoders take so many times as long as is expected of them.
    pub(super) slower: f64,
    /// Bytes that were encoded before the path faded.
    pub(super) before: usize,
    /// Bytes that the sender may hand over.
    allowed: usize,
    /// Bytes of the body that went through an encoder, and contexts that were begun.
    pub(super) encoded: usize,
    pub(super) began: usize,
    /// Bytes of the sender on the carrier.
    pub(super) carried: usize,
    /// Those of them that are no whole frame yet.
    unread: BytesMut,
    pub(super) got: Vec<u8>,
    pub(super) ended: bool,
    pub(super) failed: bool,
    pub(super) facts: Vec<Fact>,
    /// What the sender's transport tells when it is asked; each time it has sent some more.
    pub(super) counters: Option<Transport>,
}

impl Pair {
    pub(super) fn new(from: usize, encoding: Encoding) -> Self {
        Self::with(from, encoding, true)
    }

    /// The same with a receiver that may not know of contexts that begin anew.
    pub(super) fn with(from: usize, encoding: Encoding, knows_anew: bool) -> Self {
        let options = |name| codec::Options::of(name).unwrap();
        let (brotli, zstd) = (["brotli:4", "brotli:5"].map(options), [options("zstd:1")]);
        let config = |role, instance| {
            let infoset = Some(Arc::new(SchemaContext::without_schema()));
            let objective = Objective::Bytes;
            let services = vec![
                Service::default(),
                Service { infoset, ..Service::default() },
                Service { objective, ..Service::default() },
                Service { encodings: Some(brotli.to_vec()), ..Service::default() },
                Service { encodings: Some(zstd.to_vec()), ..Service::default() },
            ];
            let encoding = encoding.clone();
            Relay::new(Config { encoding, services, ..Config::new(role, instance) })
        };
        let mut pair = Self {
            relays: [config(Role::Edge, 1), config(Role::Gateway, 9)],
            contexts: BTreeMap::new(),
            todo: VecDeque::new(),
            wake: [None; 2],
            now: Duration::ZERO,
            carrier: None,
            left: usize::MAX,
            from,
            service: 0,
            knows_anew,
            slower: 1.0,
            before: 0,
            allowed: 0,
            encoded: 0,
            began: 0,
            carried: 0,
            unread: BytesMut::new(),
            got: Vec::new(),
            ended: false,
            failed: false,
            facts: Vec::new(),
            counters: None,
        };
        pair.tell(EDGE, Input::Wake);
        pair
    }

    pub(super) fn tell(&mut self, end: usize, input: Input) {
        self.todo.push_back((end, input));
        while let Some((end, input)) = self.todo.pop_front() {
            self.relays[end].handle_input(self.now, input);
            while let Some(output) = self.relays[end].poll_output() {
                self.output(end, output);
            }
        }
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, time: Duration) {
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
            Output::Dial { carrier, .. } => {
                self.carrier = Some(carrier);
                for end in [EDGE, GATEWAY] {
                    self.todo.push_back((
                        end,
                        Input::CarrierUp { carrier, kind: CarrierKind::FIRST, peer: "peer".into() },
                    ));
                }
            }
            Output::Transmit { carrier, bytes } => self.transmit(end, carrier, bytes),
            Output::Job(job) => self.runs(end, &job),
            Output::Release { exchange } => {
                self.contexts.remove(&(end, exchange));
            }
            Output::Head { exchange, .. } if end != self.from => {
                self.todo.push_back((end, Input::Credit { exchange, bytes: 1 << 40 }));
            }
            Output::Data { bytes, .. } => self.got.extend_from_slice(&bytes),
            Output::End { exchange, .. } => {
                assert_ne!(end, self.from, "no other message has a body");
                self.ended = true;
                if end == GATEWAY {
                    let head = response();
                    self.todo.push_back((end, local(exchange, head, true)));
                }
            }
            Output::Abort { .. } => self.failed = true,
            Output::Credit { bytes, .. } if end == self.from => {
                self.allowed += usize::try_from(bytes).unwrap();
            }
            Output::WakeAt(at) => self.wake[end] = Some(at),
            Output::Measure { carrier } if end == self.from => {
                let Some(transport) = &mut self.counters else { return };
                transport.rtt += ms(1);
                transport.segments_out += 100;
                self.todo.push_back((end, Input::Transport { carrier, transport: *transport }));
            }
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
                let anew = matches!(&frame, Frame::Part(Part::Data(data)) if data.anew);
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

    fn runs(&mut self, end: usize, job: &Job) {
        self.check_memory(end, job);
        if let Job::Encode(job) = job {
            self.began += usize::from(job.first);
            self.encoded += job.bytes.len();
        }
        let mut none = Contexts::default();
        let contexts = match job.context_of() {
            Some(exchange) => self.contexts.entry((end, exchange)).or_default(),
            None => &mut none,
        };
        let done = job.run(contexts);
        // As is expected; but what a peer tells of decoding must have been possible.
        let label = job.setup().map_or_else(String::new, |setup| setup.options.label());
        let encode_s = decide::prior::of(&label)
            .map_or(0.0, |prior| prior.encode.seconds(job.decoded_len() as f64));
        let cpu = match job {
            Job::Decode(_) => Duration::from_micros(1),
            _ => Duration::from_secs_f64(self.slower * encode_s),
        };
        self.todo.push_back((end, Input::Done(done.took(cpu))));
    }

    /// What a context takes was reserved.
    fn check_memory(&self, end: usize, job: &Job) {
        let Some(Setup { options, .. }) = job.setup() else { return };
        let codec = options.codec;
        let takes = match job {
            Job::Encode(_) => codec.encoder_bytes(*options),
            Job::Decode(_) => codec.decoder_bytes(*options),
            _ => return,
        };
        let reserved = self.relays[end].load().codec_bytes;
        assert!(options.is_infoset() || takes <= reserved, "{options:?}: {takes} of {reserved}");
    }

    /// A body begins whose length may be told.
    pub(super) fn begins(&mut self, length: Option<usize>) -> ExchangeId {
        let exchange = self.relays[EDGE].next_exchange();
        (self.allowed, self.ended, self.failed) = (0, false, false);
        self.got.clear();
        let length = length.map(|length| length.to_string());
        let mut fields = vec![("content-type", "text/xml")];
        fields.extend(length.as_deref().map(|length| ("content-length", length)));
        if self.from == EDGE {
            let head = request("POST", &fields);
            let service = Known { service: Some(self.service), ..Known::default() };
            self.tell(EDGE, known(exchange, head, false, service));
        } else {
            let head = request("GET", &[]);
            self.tell(EDGE, local(exchange, head, true));
            let field =
                |(name, value): (&str, &str)| (name.to_owned().into(), value.to_owned().into());
            let fields = fields.into_iter().map(field).collect();
            let head = Head::Response(bhttp::Response { status: 200, fields });
            self.tell(GATEWAY, local(exchange, head, false));
            self.tell(GATEWAY, Input::Service { exchange, service: self.service });
        }
        exchange
    }

    pub(super) fn hands_over(&mut self, exchange: ExchangeId, bytes: &[u8]) {
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
    pub(super) fn sends(&mut self, body: &[u8], piece_bytes: usize, length: Option<usize>) {
        let exchange = self.begins(length);
        for piece in body.chunks(piece_bytes) {
            self.hands_over(exchange, piece);
            self.pass(ms(1));
        }
        self.ends(exchange);
    }

    pub(super) fn ends(&mut self, exchange: ExchangeId) {
        if !self.failed {
            self.tell(self.from, Input::End { exchange, trailers: Vec::new() });
        }
        self.pass(ms(100));
    }

    /// All is over, whole, and nothing is left of it.
    pub(super) fn check(&self, body: &[u8]) {
        assert!(self.ended && !self.failed && self.got == body, "{} bytes came", self.got.len());
        for relay in &self.relays {
            assert!(relay.is_idle());
            assert_eq!(relay.load().codec_bytes, 0);
        }
        assert!(self.contexts.is_empty());
    }

    pub(super) fn outcome(&self) -> &Outcome {
        let found = self.facts.iter().rev().find_map(|fact| match fact {
            Fact::Outcome { outcome, .. } => Some(outcome),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no outcome in {:?}", self.facts))
    }

    pub(super) fn revisions(&self) -> &[Revision] {
        &self.outcome().revisions
    }
}

fn response() -> Head {
    Head::Response(bhttp::Response { status: 200, fields: Vec::new() })
}

pub(super) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..len).map(|_| next()).collect()
}

pub(super) fn xml(len: usize) -> Vec<u8> {
    let row = |at: usize| {
        let (name, price) = (at * 7919 % 100_003, at * 31 % 9973);
        format!("<row><key>{at}</key><name>Customer#{name:09}</name><price>{price}</price></row>\n")
    };
    let rows = (0..=len / 40).map(row);
    let mut text = rows.collect::<String>().into_bytes();
    text.truncate(len);
    text
}
