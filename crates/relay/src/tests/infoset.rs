//! Messages of which the infoset is enough: what comes out, what is left alone, and what happens to
//! one that the peer cannot read.

use std::collections::VecDeque;
use std::sync::Arc;

use codec::exi::schema::Document;
use codec::infoset::{SchemaContext, made};
use codec::{Limits, Options};
use decide::estimate::Transport;
use proto::control::Keeping;
use record::event::Fact;

use super::*;

/// One of two relays, with what came to its local side.
struct End {
    relay: Relay,
    facts: Vec<Fact>,
    body: Vec<u8>,
    /// What it gave to keep.
    kept: Vec<([u8; 32], Bytes)>,
    /// How often it said that something need not be kept.
    forgotten: usize,
    /// Content-Length of the head that came.
    length: Option<usize>,
    ended: bool,
}

impl End {
    fn chosen(&self) -> &Fact {
        let is_chosen = |fact: &&Fact| matches!(fact, Fact::Chosen { .. });
        self.facts.iter().rfind(is_chosen).unwrap()
    }

    fn encoding(&self) -> &str {
        let Fact::Chosen { encoding, .. } = self.chosen() else { unreachable!() };
        encoding
    }

    /// Why an arm was not open to the last message.
    fn why_not(&self, arm: &str) -> &str {
        let Fact::Chosen { decision: Some(decision), .. } = self.chosen() else {
            panic!("{:?}", self.chosen())
        };
        let found = decision.forbidden.iter().find(|one| one.encoding == arm);
        found.map_or("open", |one| &one.why)
    }

    fn ignored(&self) -> Vec<&str> {
        let reasons = self.facts.iter().filter_map(|fact| match fact {
            Fact::Ignored { reason, .. } => Some(reason.as_str()),
            _ => None,
        });
        reasons.collect()
    }
}

/// An edge and a gateway side by side, both with one service.
struct Pair {
    ends: [End; 2],
    carrier: CarrierId,
    now: Duration,
    /// What the origin answers with, and fields of it.
    answer: Vec<u8>,
    fields: Vec<(&'static str, &'static str)>,
    media: &'static str,
    todo: VecDeque<(usize, Input)>,
    /// Blocks change on their way to the gateway.
    damages: bool,
}

const EDGE: usize = 0;
const GATEWAY: usize = 1;

fn config(role: Role, arms: &[Options], infoset: &Arc<SchemaContext>) -> Config {
    let mut config = Config::new(role, 1 + role as u64);
    config.encoding.allow_infoset();
    let (name, infoset) = ("tracks".to_owned(), Some(Arc::clone(infoset)));
    let encodings = (!arms.is_empty()).then(|| arms.to_vec());
    config.services = vec![Service { name, encodings, infoset, ..Service::default() }];
    config
}

impl Pair {
    fn new(arms: &[Options], schema_contexts: [&Arc<SchemaContext>; 2]) -> Self {
        let end = |role, infoset| {
            let (relay, facts) = (Relay::new(config(role, arms, infoset)), Vec::new());
            End {
                relay,
                facts,
                body: Vec::new(),
                kept: Vec::new(),
                forgotten: 0,
                length: None,
                ended: false,
            }
        };
        let [edge, gateway] = schema_contexts;
        let ends = [end(Role::Edge, edge), end(Role::Gateway, gateway)];
        let (answer, fields, todo) = (Vec::new(), Vec::new(), VecDeque::new());
        let (now, media, carrier) = (ms(0), "text/xml; charset=utf-8", CarrierId(0));
        let mut pair = Self { ends, carrier, now, answer, fields, media, todo, damages: false };
        pair.tell(EDGE, Input::Wake);
        pair
    }

    fn tell(&mut self, at: usize, input: Input) {
        self.todo.push_back((at, input));
        while let Some((at, input)) = self.todo.pop_front() {
            let relay = &mut self.ends[at].relay;
            relay.handle_input(self.now, input);
            let outputs: Vec<_> = std::iter::from_fn(|| relay.poll_output()).collect();
            outputs.into_iter().for_each(|output| self.output(at, output));
        }
    }

    fn output(&mut self, at: usize, output: Output) {
        match output {
            Output::Dial { carrier, .. } => {
                self.carrier = carrier;
                for at in [EDGE, GATEWAY] {
                    self.todo.push_back((
                        at,
                        Input::CarrierUp { carrier, kind: CarrierKind::FIRST, peer: "p".into() },
                    ));
                }
            }
            Output::Transmit { carrier, bytes } => {
                self.todo.push_back((at, Input::Sent { carrier, bytes: bytes.len() }));
                self.todo.push_back((1 - at, Input::Received { carrier, bytes }));
            }
            Output::Job(job) => {
                let done = self.runs(job);
                self.todo.push_back((at, done));
            }
            Output::Head { exchange, head, .. } => {
                let fields = match head {
                    Head::Request(request) => request.fields,
                    Head::Response(response) => response.fields,
                    other => panic!("{other:?}"),
                };
                let length = fields.iter().find(|(name, _)| name == "content-length");
                let length = length.map(|(_, value)| String::from_utf8_lossy(value).into_owned());
                self.ends[at].length = length.map(|text| text.parse().unwrap());
                if at == GATEWAY {
                    self.todo.push_back((at, Input::Service { exchange, service: 0 }));
                }
                self.todo.push_back((at, Input::Credit { exchange, bytes: 1 << 20 }));
            }
            Output::Data { bytes, .. } => self.ends[at].body.extend_from_slice(&bytes),
            Output::End { exchange, .. } => {
                self.ends[at].ended = true;
                if at == GATEWAY {
                    self.answers(exchange);
                }
            }
            Output::Abort { cause, .. } => panic!("{cause:?}"),
            Output::Event(event) => self.ends[at].facts.push(event.fact),
            Output::Store { name, bytes } => self.ends[at].kept.push((name, bytes)),
            Output::Forget { .. } => self.ends[at].forgotten += 1,
            _ => {}
        }
    }

    fn answers(&mut self, exchange: ExchangeId) {
        let length = self.answer.len().to_string();
        let media = [("content-type", self.media), ("content-length", length.as_str())];
        let fields = media.iter().chain(&self.fields);
        let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let fields = fields.map(|(name, value)| (text(name), text(value))).collect();
        let head = Head::Response(bhttp::Response { status: 200, fields });
        let bytes = self.answer.clone().into();
        for input in [
            local(exchange, head, false),
            Input::Data { exchange, bytes },
            Input::End { exchange, trailers: Vec::new() },
        ] {
            self.todo.push_back((GATEWAY, input));
        }
    }

    /// A body is one block: no context is needed again.
    fn runs(&self, mut job: Job) -> Input {
        if let Job::Decode(Decode { bytes, .. }) = &mut job
            && self.damages
        {
            bytes.truncate(bytes.len() / 2);
        }
        Input::Done(job.run(&mut Contexts::default()).took(Duration::from_micros(50)))
    }

    /// A client posts, the origin answers the same.
    fn asks(&mut self, body: &[u8]) {
        self.now += ms(50);
        self.answer = body.to_vec();
        for end in &mut self.ends {
            (end.body, end.ended, end.length) = (Vec::new(), false, None);
        }
        let exchange = self.ends[EDGE].relay.next_exchange();
        let length = body.len().to_string();
        let mut fields = vec![("content-type", self.media), ("content-length", length.as_str())];
        fields.extend(&self.fields);
        let head = request("POST", &fields);
        let service = Known { service: Some(0), ..Known::default() };
        self.tell(EDGE, known(exchange, head, false, service));
        self.tell(EDGE, Input::Credit { exchange, bytes: 1 << 20 });
        self.tell(EDGE, Input::Data { exchange, bytes: Bytes::copy_from_slice(body) });
        self.tell(EDGE, Input::End { exchange, trailers: Vec::new() });
        for end in &self.ends {
            assert!(end.ended);
            assert_eq!(end.length, Some(end.body.len()), "the head tells the body's length");
        }
    }

    /// The carrier is idle for so long.
    fn rests(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += ms(1000);
            self.tell(EDGE, Input::Wake);
            self.tell(GATEWAY, Input::Wake);
        }
    }

    /// The carrier breaks, and the gateway starts anew with what is kept.
    fn restarts(&mut self, config: Config) {
        let carrier = self.carrier;
        for at in [GATEWAY, EDGE] {
            self.tell(at, Input::CarrierDown { carrier, reason: "cut".into() });
        }
        let gateway = &mut self.ends[GATEWAY];
        gateway.relay = Relay::new(config);
        for (name, bytes) in &gateway.kept {
            gateway.relay.restore_dictionary(*name, bytes).unwrap();
        }
        self.now += ms(60_000);
        self.tell(EDGE, Input::Wake);
    }

    fn encodings(&self) -> [&str; 2] {
        [self.ends[EDGE].encoding(), self.ends[GATEWAY].encoding()]
    }

    fn bodies(&self) -> [&[u8]; 2] {
        [&self.ends[EDGE].body, &self.ends[GATEWAY].body]
    }
}

fn schema_context(kind: &str) -> Arc<SchemaContext> {
    let xsd = format!(
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='tracks'>\
         <xs:complexType><xs:sequence><xs:element name='track' maxOccurs='unbounded'>\
         <xs:complexType><xs:sequence><xs:element name='label' type='xs:{kind}'/></xs:sequence>\
         <xs:attribute name='id' type='xs:int'/></xs:complexType></xs:element></xs:sequence>\
         </xs:complexType></xs:element></xs:schema>"
    );
    let document = Document { location: "t.xsd", bytes: xsd.as_bytes() };
    let schema_context =
        SchemaContext::of_schema(&[document], &mut |_, _| None, &Limits::default());
    Arc::new(schema_context.unwrap())
}

fn tracks() -> Vec<u8> {
    let track = |id: u32| {
        let noise = id.wrapping_mul(2_654_435_761) >> 8;
        format!("<track  id=\"{id}\" ><label>unit {noise}</label></track>\n")
    };
    let all: String = (0..30).map(track).collect();
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<tracks>\n{all}</tracks>").into_bytes()
}

/// What comes out of a message's infoset.
fn text(schema_context: &Arc<SchemaContext>, options: Options, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    schema_context.encoder(options).encode(message, true, &mut out).unwrap();
    made(&out).unwrap().text.to_vec()
}

#[test]
fn an_equal_infoset_comes_out_with_its_own_length() {
    let schema_context = schema_context("string");
    let record = |at: u32| format!("{{ \"id\": {at}.50, \"label\": \"\\u0075nit {at}\" }}");
    let json = format!("[ {} ]", (0..60).map(record).collect::<Vec<_>>().join(" , "));
    for options in Options::INFOSET {
        let mut pair = Pair::new(&[options], [&schema_context, &schema_context]);
        let message = if options == Options::CBOR {
            pair.media = "application/json";
            json.clone().into_bytes()
        } else {
            tracks()
        };
        let expected = text(&schema_context, options, &message);
        assert_ne!(expected, message, "{}", options.label());
        for _ in 0..3 {
            pair.asks(&message);
            assert_eq!(pair.encodings(), [options.label().as_str(); 2]);
            assert_eq!(pair.bodies(), [&expected[..]; 2]);
        }
        assert!(pair.ends.iter().all(|end| end.ignored().is_empty()));
    }
}

#[test]
fn the_policy_chooses_among_them_and_learns() {
    let schema_context = schema_context("string");
    let mut pair = Pair::new(&[], [&schema_context, &schema_context]);
    for _ in 0..40 {
        pair.asks(&tracks());
    }
    let outcomes = pair.ends[EDGE].facts.iter().filter(|f| matches!(f, Fact::Outcome { .. }));
    assert!(outcomes.count() > 30, "{:?}", pair.ends[EDGE].facts);
    assert_eq!(pair.ends[EDGE].why_not("exi"), "open");
    assert_eq!(pair.ends[EDGE].why_not("cbor"), "not for this media type");
}

/// Over 2 Mbit/s such a head would leave ahead of its body, and says how long that is.
#[test]
fn a_head_waits_for_what_its_body_becomes() {
    let schema_context = schema_context("string");
    let mut pair = Pair::new(&[Options::EXI], [&schema_context, &schema_context]);
    let note = "as many bytes as the fields of an answer have in all, which say what server it \
                was, when, how long it may be kept, and for whom, and with what else";
    pair.fields.push(("x-note", note));
    let transport = Transport {
        rtt: ms(16),
        min_rtt: ms(10),
        delivered_bytes_per_s: 250_000,
        segments_out: 200,
        window_segments: 100,
        segment_bytes: 1448,
        ..Transport::default()
    };
    for at in [EDGE, GATEWAY] {
        pair.tell(at, Input::Transport { carrier: pair.carrier, transport });
    }
    (0..20).for_each(|_| pair.asks(&tracks()));
    assert_eq!(pair.encodings(), ["exi"; 2]);
}

#[test]
fn what_is_signed_or_vouched_for_keeps_every_byte() {
    let schema_context = schema_context("string");
    let signature = "<d:Signature xmlns:d='http://www.w3.org/2000/09/xmldsig#'/></tracks>";
    let plain = String::from_utf8(tracks()).unwrap();
    let signed = plain.replace("</tracks>", signature).into_bytes();
    let encrypted = plain.replace("<label>", "<x:EncryptedData xmlns:x='u'/><label>").into_bytes();
    let typed = plain.replace("<tracks>", "<!DOCTYPE tracks><tracks>").into_bytes();
    let plain = plain.into_bytes();
    for (message, field, why) in [
        (&signed, None, "it may be signed or encrypted"),
        (&encrypted, None, "it may be signed or encrypted"),
        (&typed, None, "it has a document type"),
        (&plain, Some(("etag", "\"1\"")), "its ETag is of its bytes"),
        (&plain, Some(("content-digest", "sha-256=:x:")), "a field vouches for its bytes"),
        (&plain, Some(("x-hub-signature-256", "x")), "a field vouches for its bytes"),
        (&plain, Some(("authorization", "AWS4 x")), "a field may vouch for its bytes"),
        (&plain, Some(("cache-control", "no-transform")), "its sender forbids changes"),
        (&plain, Some(("accept-ranges", "bytes")), "its parts may be asked for"),
        (&plain, Some(("use-as-dictionary", "match=\"/\"")), "others are told by its bytes"),
        (&vec![b' '; 70_000], None, "longer than a block, or not whole yet"),
    ] {
        let mut pair = Pair::new(&[Options::EXI], [&schema_context, &schema_context]);
        pair.fields.extend(field);
        pair.asks(message);
        assert_eq!(pair.bodies(), [&message[..]; 2], "{why}");
        assert_eq!(pair.encodings(), ["identity"; 2], "{why}");
        assert_eq!(pair.ends[EDGE].why_not("exi"), why);
    }
    for (name, value) in [("etag", "W/\"1\""), ("authorization", "Bearer x"), ("vary", "*")] {
        let mut pair = Pair::new(&[Options::EXI], [&schema_context, &schema_context]);
        pair.fields.push((name, value));
        pair.asks(&plain);
        assert_eq!(pair.encodings(), ["exi"; 2], "{name}");
    }
}

#[test]
fn what_would_not_come_back_goes_in_another_encoding() {
    let schema_context = schema_context("string");
    let zstd = Encoding::auto().meant_by(&["zstd:3".to_owned()]).unwrap();
    let mut pair =
        Pair::new(&[&[Options::EXI, Options::WBXML], &zstd[..]].concat(), [&schema_context; 2]);
    let latin = String::from_utf8(tracks()).unwrap().replace("UTF-8", "ISO-8859-1").into_bytes();
    for _ in 0..4 {
        pair.asks(&latin);
        assert_eq!(pair.bodies(), [&latin[..]; 2]);
        assert_eq!(pair.encodings(), ["zstd:3"; 2]);
    }
    let mut alone = Pair::new(&[Options::EXI], [&schema_context; 2]);
    alone.asks(&latin);
    assert_eq!((alone.bodies(), alone.encodings()), ([&latin[..]; 2], ["identity"; 2]));
}

#[test]
fn another_schema_at_the_peer_is_an_event_and_the_text_comes() {
    let [mine, other] = ["string", "token"].map(schema_context);
    let arms = [Options::EXI_SCHEMA, Options::EXI];
    let mut pair = Pair::new(&[arms[0]], [&mine, &other]);
    pair.asks(&tracks());
    assert_eq!(pair.encodings(), ["exi-schema"; 2]);
    for (at, schema_context) in [(GATEWAY, &mine), (EDGE, &other)] {
        assert_eq!(pair.ends[at].body, text(schema_context, arms[0], &tracks()));
        let ignored = pair.ends[at].ignored();
        assert_eq!(ignored.len(), 2, "asked, and was asked: {ignored:?}");
        assert!(ignored.iter().any(|why| why.contains("schema is not held here")), "{ignored:?}");
        assert!(ignored.iter().any(|why| why.contains("exi-schema of tracks")), "{ignored:?}");
    }
    for _ in 0..2 {
        pair.asks(&tracks());
        assert_eq!(pair.encodings(), ["identity"; 2]);
        assert_eq!(pair.ends[EDGE].why_not("exi-schema"), "the peer could not read it");
        assert_eq!(pair.ends[EDGE].ignored().len(), 2, "told once");
    }
    // The gateway may come back with the right ones.
    pair.restarts(config(Role::Gateway, &[arms[0]], &mine));
    pair.asks(&tracks());
    assert_eq!(pair.encodings(), ["exi-schema"; 2]);
    assert_eq!(pair.ends[GATEWAY].body, text(&mine, arms[0], &tracks()));
}

fn without_schema() -> Arc<SchemaContext> {
    Arc::new(SchemaContext::without_schema())
}

#[test]
fn a_schema_goes_to_the_side_that_has_none_and_serves_both_ways() {
    let (mine, none) = (schema_context("string"), without_schema());
    let expected = text(&mine, Options::EXI_SCHEMA, &tracks());
    for (schema_contexts, first) in
        [([&mine, &none], ["exi-schema", "identity"]), ([&none, &mine], ["identity", "exi-schema"])]
    {
        let mut pair = Pair::new(&[Options::EXI_SCHEMA], schema_contexts);
        pair.asks(&tracks());
        assert_eq!(pair.encodings(), first);
        // What is asked for once goes otherwise until the peer has what it takes.
        pair.asks(&tracks());
        assert_eq!(pair.encodings(), ["identity"; 2]);
        let reported = pair.ends.each_ref().map(|end| end.ignored().len());
        pair.rests(20);
        // The edge learns from the answer what its service is made of.
        (0..2).for_each(|_| pair.asks(&tracks()));
        assert_eq!((pair.encodings(), pair.bodies()), (["exi-schema"; 2], [&expected[..]; 2]));
        assert_eq!(pair.ends.each_ref().map(|end| end.ignored().len()), reported);
    }
}

#[test]
fn sides_with_other_schemas_tell_each_other_theirs() {
    let [mine, other] = ["string", "token"].map(schema_context);
    let mut pair = Pair::new(&[Options::EXI_SCHEMA], [&mine, &other]);
    pair.asks(&tracks());
    pair.rests(20);
    pair.asks(&tracks());
    assert_eq!(pair.encodings(), ["exi-schema"; 2]);
    for (at, schema_context) in [(GATEWAY, &mine), (EDGE, &other)] {
        assert_eq!(pair.ends[at].body, text(schema_context, Options::EXI_SCHEMA, &tracks()));
    }
}

#[test]
fn a_schema_outlives_who_got_it() {
    let (mine, none) = (schema_context("string"), without_schema());
    let mut pair = Pair::new(&[Options::EXI_SCHEMA], [&mine, &none]);
    pair.asks(&tracks());
    pair.rests(20);
    assert_eq!(pair.ends[GATEWAY].kept.len(), 1);
    pair.restarts(config(Role::Gateway, &[Options::EXI_SCHEMA], &none));
    pair.asks(&tracks());
    assert_eq!(pair.encodings(), ["exi-schema", "identity"], "it is not ready before it is asked");
    pair.rests(2);
    pair.asks(&tracks());
    assert_eq!(pair.encodings(), ["exi-schema"; 2]);
    assert_eq!(pair.ends[GATEWAY].kept.len(), 1, "nothing had to come again");
    let relay = &mut pair.ends[GATEWAY].relay;
    let (name, bytes) = &pair.ends[GATEWAY].kept[0];
    let other = [&bytes[..10], &[7; 8], &bytes[18..]].concat();
    assert_eq!(relay.restore_dictionary(*name, &other), Err("it has the name of another"));
    assert_eq!(relay.restore_dictionary(*name, &bytes[..18]), Err("a schema has no such length"));
    assert_eq!(relay.restore_dictionary(*name, &bytes[..12]), Err("it ends early"));
}

/// What a later version compiles may be another.
#[test]
fn a_kept_schema_that_is_another_by_now_comes_anew() {
    let (mine, none) = (schema_context("string"), without_schema());
    let mut pair = Pair::new(&[Options::EXI_SCHEMA], [&mine, &none]);
    pair.asks(&tracks());
    pair.rests(20);
    let (_, bytes) = &mut pair.ends[GATEWAY].kept[0];
    let other = schema_context("token");
    *bytes = [&bytes[..18], other.parcel().unwrap()].concat().into();
    pair.restarts(config(Role::Gateway, &[Options::EXI_SCHEMA], &none));
    pair.asks(&tracks());
    pair.rests(2);
    let ignored = pair.ends[GATEWAY].ignored();
    assert!(ignored.last().unwrap().contains("name of another"), "{ignored:?}");
    assert_eq!(pair.ends[GATEWAY].forgotten, 1);
    pair.ends[GATEWAY].kept.clear();
    pair.restarts(config(Role::Gateway, &[Options::EXI_SCHEMA], &none));
    pair.asks(&tracks());
    pair.rests(20);
    pair.asks(&tracks());
    assert_eq!(pair.encodings(), ["exi-schema"; 2]);
}

#[test]
fn an_absurd_schema_is_ignored() {
    let none = without_schema();
    let parcel = schema_context("string").parcel().unwrap().to_vec();
    let offer = |id, bytes: usize| Keeping::Schema { id, bytes: bytes as u64 };
    let part = |id, bytes: &[u8]| Keeping::Part { id, bytes: Bytes::copy_from_slice(bytes) };
    for (allowed, said, why) in [
        (false, vec![offer([1; 8], 9)], "no service here is set"),
        (true, vec![part([1; 8], b"x")], "nobody waits for"),
        (true, vec![offer([1; 8], 1), part([1; 8], b"xy")], "nobody waits for"),
        (true, vec![offer([1; 8], 1), part([2; 8], b"x")], "nobody waits for"),
        (true, vec![offer([1; 8], 4), part([1; 8], b"junk")], "cannot be unpacked"),
        (true, vec![offer([1; 8], parcel.len()), part([1; 8], &parcel)], "name of another"),
        (
            true,
            vec![offer([1; 8], 4), part([1; 8], b"junk"), offer([2; 8], parcel.len())],
            "was none before",
        ),
    ] {
        let mut config = config(Role::Edge, &[], &none);
        if !allowed {
            config.services.clear();
        }
        let (mut relay, mut peer) = connected(config, 9);
        let frames: Vec<_> = said.iter().map(Keeping::part).collect();
        let mut reasons = Vec::new();
        let mut take = |relay: &mut Relay| {
            let outputs: Vec<_> = std::iter::from_fn(|| relay.poll_output()).collect();
            for output in &outputs {
                if let Output::Event(Event { fact: Fact::Ignored { reason, .. }, .. }) = output {
                    reasons.push(reason.clone());
                }
            }
            outputs
        };
        for frame in frames {
            peer.0.handle_input(ms(5), carrier::Input::Send(frame, Urgency::DEFAULT));
            while let Some(output) = peer.0.poll_output() {
                if let carrier::Output::Bytes(bytes) = output {
                    relay.handle_input(ms(5), Input::Received { carrier: CARRIER, bytes });
                }
            }
            let mut outputs = take(&mut relay);
            while let Some(job) = outputs.iter().find_map(|output| match output {
                Output::Job(job) => Some(job.clone()),
                _ => None,
            }) {
                relay.handle_input(ms(6), Input::Done(job.run(&mut Contexts::default())));
                outputs = take(&mut relay);
            }
            let reported = peer.takes(&outputs);
            let held = reported.iter().any(|frame| match frame {
                Part::Control(Keeping::KIND, content) => {
                    matches!(Keeping::decode(content), Ok(Keeping::Held { .. }))
                }
                _ => false,
            });
            assert!(!held, "{said:?}");
        }
        assert!(reasons.iter().any(|reason| reason.contains(why)), "{said:?}: {reasons:?}");
    }
}

#[test]
fn a_damaged_infoset_is_asked_for_and_the_arm_left_alone() {
    let schema_context = schema_context("string");
    let mut pair = Pair::new(&[Options::EXI], [&schema_context; 2]);
    pair.damages = true;
    pair.asks(&tracks());
    assert_eq!(pair.encodings(), ["exi"; 2]);
    assert_eq!(pair.bodies(), [&text(&schema_context, Options::EXI, &tracks())[..]; 2]);
    assert!(pair.ends.iter().all(|end| end.ignored().len() == 2));
    pair.asks(&tracks());
    assert_eq!((pair.encodings(), pair.bodies()), (["identity"; 2], [&tracks()[..]; 2]));
}

#[test]
fn a_hostile_infoset_ends_its_exchange_alone() {
    let schema_context = schema_context("string");
    let unknown = [&[2_u8][..], &[7; 8], b"junk"].concat();
    for allowed in [true, false] {
        for (coded, asks_first) in [(&b"\0junk"[..], false), (&unknown, true), (b"\xff", true)] {
            let mut config = config(Role::Edge, &[], &schema_context);
            if !allowed {
                config.services.clear();
            }
            let (mut relay, mut peer) = connected(config, 9);
            let (exchange, outputs) = asks(&mut relay, ms(0), "GET", true);
            peer.takes(&outputs);
            let number = exchange.number;
            let Part::Head(mut head) = response_frame(number, false) else { unreachable!() };
            (head.codec, head.window_log) = (Options::EXI.codec.number(), 15);
            let bytes = Bytes::copy_from_slice(coded);
            let data = Data {
                exchange: number,
                block_end: Some(100),
                uncoded: false,
                anew: false,
                end: true,
                padding: None,
                bytes,
            };
            let frames = [Part::Head(head), Part::Data(data)];
            let mut outputs = peer.sends(&mut relay, ms(5), CARRIER, &frames);
            let job = to_decode(&outputs);
            assert_eq!(job.is_none(), asks_first || !allowed);
            if let Some(job) = job {
                let done = job.run(&mut None, &mut Vec::new());
                assert!(!done.is_ok());
                relay.handle_input(ms(6), Input::Done(done));
                outputs = drain(&mut relay);
            }
            let asked = peer.takes(&outputs);
            assert!(asked.contains(&Keeping::Missing { exchange: number }.part()), "{asked:?}");
            relay.handle_input(ms(31_000), Input::Wake);
            let outputs = drain(&mut relay);
            assert_eq!(abort(&outputs).0, CauseKind::Corrupt);
            assert!(relay.is_idle());
        }
    }
}
