//! Halves of which the infoset is enough: when that may be, what the peer does with one that it
//! cannot read, and what this side keeps for that.
//!
//! The sender decodes what it encodes, so that it knows the text that will come out ([`made`]).
//! From then on that text is the body: its length is what the head says, it is what others are told
//! by, and what the peer gets if it asks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use codec::Options;
use codec::infoset::{self, Marks, Vocabulary, made};
use decide::Arm;
use proto::bhttp;
use proto::stream::{Keeping, MAX_BLOCK_BYTES, Role};
use record::event::Fact;

use crate::Relay;
use crate::api::{CarrierId, Cause, CauseKind, ExchangeId};
use crate::choice::{Fit, SHORT};
use crate::exchange::Exchange;
use crate::timers::Key;

/// Bytes of texts whose receipt is awaited, for each carrier: they may have to be sent.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// The same, in messages.
const MAX_TEXTS: usize = 64;
/// In events.
const WHAT: &str = "infoset";
/// A field whose name has any of these may vouch for the bytes.
const VOUCHING: [&str; 7] = ["digest", "signature", "hmac", "checksum", "md5", "hash", "sha"];
/// What proves an identity and leaves the bytes alone (RFC 7617, RFC 6750, RFC 4559).
const SCHEMES: [&str; 4] = ["basic", "bearer", "negotiate", "ntlm"];

const LONG: &str = "longer than a block, or not whole yet";
const SIGNED: &str = "it may be signed or encrypted";
const NOT_SAME: &str = "its infoset would not come back";

/// Why every byte of the outgoing half has to come back, where it has to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exact {
    fields: Option<&'static str>,
    body: Option<&'static str>,
    /// It has comments, which WBXML has not.
    comments: bool,
}

impl Exact {
    /// Notes what the head says.
    pub(crate) fn note_fields(&mut self, fields: &bhttp::Fields) {
        self.fields = fields.iter().find_map(|(name, value)| {
            let name = String::from_utf8_lossy(name).to_ascii_lowercase();
            by_field(&name, String::from_utf8_lossy(value).trim())
        });
    }

    /// Notes what is at hand of the body, which may be all of it.
    fn note_body(&mut self, body: &[u8], whole: bool) {
        if !whole || body.len() > MAX_BLOCK_BYTES {
            self.body = Some(LONG);
            return;
        }
        let Marks { signed, doctype, comment } = Marks::of(body);
        self.comments = comment;
        let doctype = doctype.then_some("it has a document type");
        self.body = signed.then_some(SIGNED).or(doctype);
    }
}

/// Why a field wants every byte.
fn by_field(name: &str, value: &str) -> Option<&'static str> {
    let value = value.to_ascii_lowercase();
    match name {
        "etag" => (!value.starts_with("w/")).then_some("its ETag is of its bytes"),
        "content-range" => Some("a part of something"),
        "accept-ranges" => (value != "none").then_some("its parts may be asked for"),
        "cache-control" => value.contains("no-transform").then_some("its sender forbids changes"),
        "authorization" => {
            let scheme = value.split(' ').next().unwrap_or_default();
            (!SCHEMES.contains(&scheme)).then_some("a field may vouch for its bytes")
        }
        // RFC 9842 §2.2: it is known by the hash of its bytes.
        "use-as-dictionary" => Some("others are told by its bytes"),
        "content-type" => by_type(&value),
        _ => VOUCHING
            .iter()
            .any(|part| name.contains(part))
            .then_some("a field vouches for its bytes"),
    }
}

fn by_type(value: &str) -> Option<&'static str> {
    let mut parts = value.split(';').map(str::trim);
    if parts.next().is_some_and(|media| media.contains("jose")) {
        return Some(SIGNED);
    }
    let charset = parts.find_map(|part| part.strip_prefix("charset="));
    let is_other = charset.is_some_and(|charset| charset.trim_matches('"') != "utf-8");
    is_other.then_some("its text is not in UTF-8")
}

/// Texts on their way to a peer, which may ask for them; and what it could not read.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    open: BTreeMap<u64, Text>,
    bytes: usize,
    /// By service, codec and level; until the carrier is new.
    unread: BTreeSet<(usize, u64, i8)>,
    /// The schema that the peer has for a service, where none is named here: what it sent last.
    adopted: BTreeMap<usize, [u8; 8]>,
}

#[derive(Debug)]
struct Text {
    text: Bytes,
    at: Duration,
    service: usize,
    options: Options,
}

impl Texts {
    fn has_room(&self, bytes: usize) -> bool {
        self.open.len() < MAX_TEXTS && self.bytes + bytes <= MAX_TEXT_BYTES
    }

    fn is_read(&self, service: usize, options: Options) -> bool {
        !self.unread.contains(&(service, options.codec, options.level))
    }

    /// The peer has got what it lacked.
    pub(crate) fn read_again(&mut self, service: usize, options: Options) {
        self.unread.remove(&(service, options.codec, options.level));
    }

    /// A half has left.
    fn left(&mut self, exchange: u64, text: Text) {
        self.arrived(exchange);
        self.bytes += text.text.len();
        self.open.insert(exchange, text);
    }

    /// A half has arrived, or is given up.
    pub(crate) fn arrived(&mut self, exchange: u64) {
        self.take(exchange);
    }

    fn take(&mut self, exchange: u64) -> Option<Text> {
        let text = self.open.remove(&exchange)?;
        self.bytes -= text.text.len();
        Some(text)
    }

    /// Halves that left before `since` are not waited for any more.
    fn expire(&mut self, since: Duration) {
        let late = self.open.iter().filter(|(_, one)| one.at < since);
        for exchange in late.map(|(&exchange, _)| exchange).collect::<Vec<_>>() {
            self.arrived(exchange);
        }
    }
}

/// An encoded block, and the text that comes out of it where that is another than went in.
pub(crate) type Coded = (Bytes, Option<Bytes>);

impl Relay {
    /// Looks whether the outgoing half's infoset is enough.
    pub(crate) fn consider_infoset(&mut self, now: Duration, id: ExchangeId) {
        self.adopt_schema(id);
        let Some(exchange) = self.exchanges.get(&id) else { return };
        if self.vocabulary(exchange).is_none() {
            return;
        }
        let carrier = exchange.carrier();
        let patience = 2 * self.config.body_timeout;
        if let Some(state) = carrier.and_then(|id| self.carriers.get_mut(&id)) {
            state.texts.expire(now.saturating_sub(patience));
        }
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let (body, whole) = exchange.outgoing.at_hand();
        let whole = whole && !exchange.outgoing.has_trailers();
        exchange.exact.note_body(body, whole);
    }

    /// What the messages of the exchange's service are made of, where their infoset is enough: with
    /// the schema that is named for it, else with what the peer sent.
    pub(crate) fn vocabulary(&self, exchange: &Exchange) -> Option<&Arc<Vocabulary>> {
        let own = self.service(exchange)?.infoset.as_ref()?;
        let adopted = || {
            let carrier = self.carriers.get(&exchange.carrier()?)?;
            self.schemas.find(*carrier.texts.adopted.get(&exchange.service?)?)
        };
        if own.name().is_some() { Some(own) } else { adopted().or(Some(own)) }
    }

    /// The peer knows the schema that its half came with: what goes back may go with it too.
    fn adopt_schema(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let name = exchange.incoming.vocabulary.as_ref().and_then(|one| one.name());
        let found = exchange.carrier().zip(exchange.service).zip(name);
        let Some(((carrier, service), name)) = found else { return };
        if let Some(carrier) = self.carriers.get_mut(&carrier) {
            carrier.texts.adopted.insert(service, name);
        }
    }

    /// Whether an arm that gives an infoset back may be taken, of a half with so much memory left.
    pub(crate) fn fit_infoset(&self, exchange: &Exchange, options: Options, left: usize) -> Fit {
        let Some((service, vocabulary)) = exchange.service.zip(self.vocabulary(exchange)) else {
            return Fit::Refused("the service wants every byte back");
        };
        if let Some(why) = exchange.exact.fields.or(exchange.exact.body) {
            return Fit::Refused(why);
        }
        if options == Options::WBXML && exchange.exact.comments {
            return Fit::Refused("it has comments");
        }
        if options == Options::EXI_SCHEMA && vocabulary.name().is_none() {
            return Fit::Refused("the service has no schemas");
        }
        let carrier = exchange.carrier().and_then(|id| self.carriers.get(&id));
        let Some(carrier) = carrier.filter(|carrier| carrier.knows_bases()) else {
            return Fit::Refused("the peer cannot decode it");
        };
        if !carrier.texts.is_read(service, options) {
            return Fit::Refused("the peer could not read it");
        }
        let (body, _) = exchange.outgoing.at_hand();
        if !carrier.texts.has_room(body.len()) {
            return Fit::Refused("too much waits for its receipt");
        }
        match infoset::MEMORY_BYTES <= left {
            true => Fit::Open { options, bytes: infoset::MEMORY_BYTES },
            false => Fit::Refused(SHORT),
        }
    }

    /// What came of encoding a half's only block. What would not come back the same goes byte for
    /// byte, and is taken for one that gained nothing.
    pub(crate) fn faithful(
        &mut self,
        id: ExchangeId,
        plain: &Bytes,
        result: Result<Bytes, codec::Error>,
    ) -> Result<Coded, codec::Error> {
        let choice = self.exchanges.get_mut(&id).and_then(|one| one.choice.as_mut());
        let Some(choice) = choice.filter(|choice| choice.options.is_infoset()) else {
            return result.map(|coded| (coded, None));
        };
        let bytes = result.unwrap_or_default();
        Ok(if let Some(found) = made(&bytes) {
            (bytes.slice_ref(found.coded), Some(bytes.slice_ref(found.text)))
        } else {
            choice.exact = true;
            choice.reason = NOT_SAME;
            (plain.clone(), None)
        })
    }

    /// The length that teaches of a block that nobody sends; an infoset that would not come back
    /// gains nothing.
    pub(crate) fn shadow_len(
        &self,
        arm: Arm,
        plain_len: usize,
        result: Result<Bytes, codec::Error>,
    ) -> Result<usize, codec::Error> {
        let options = self.config.encoding.arms().get(arm.0);
        if !options.is_some_and(|options| options.is_infoset()) {
            return result.map(|coded| coded.len());
        }
        let coded = result.unwrap_or_default();
        Ok(made(&coded).map_or(plain_len, |made| made.coded.len()))
    }

    /// The arms that are closed to a half whose every byte has to come back.
    pub(crate) fn infoset_arms(&self) -> impl Iterator<Item = Arm> {
        let arms = self.config.encoding.arms().iter().enumerate();
        arms.filter(|(_, options)| options.is_infoset()).map(|(at, _)| Arm(at))
    }

    /// The head of a half has been sent: its text is kept until it has arrived.
    pub(crate) fn announce_text(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        // The level tells with a schema from without.
        let options = exchange.choice.as_ref().map(|choice| choice.options);
        let Some(options) = options.filter(|options| options.is_infoset()) else { return };
        let Some((text, service)) = exchange.held.delta().cloned().zip(exchange.service) else {
            return;
        };
        if let Some(state) = self.carriers.get_mut(&carrier) {
            state.texts.left(id.number, Text { text, at: now, service, options });
        }
    }

    /// The peer could not read a half: its text is what it gets, and others go otherwise.
    pub(crate) fn text_missing(&mut self, now: Duration, carrier: CarrierId, exchange: u64) {
        let Some(state) = self.carriers.get_mut(&carrier) else { return };
        let Some(Text { text: bytes, service, options, .. }) = state.texts.take(exchange) else {
            return;
        };
        let is_new = state.texts.unread.insert((service, options.codec, options.level));
        self.send(now, carrier, Keeping::Plain { exchange, bytes }.frame());
        if is_new {
            let name = self.config.services.get(service).map_or("", |service| &service.name);
            let reason = format!(
                "the peer cannot read {} of {name}: not taken until it can",
                options.label()
            );
            self.event(now, Fact::Ignored { what: WHAT.to_owned(), reason });
            if options == Options::EXI_SCHEMA {
                self.offer_schema(now, carrier, service);
            }
        }
    }

    /// A block came of a half that goes as an infoset: what it takes to read it is found, or its
    /// text asked for.
    pub(crate) fn find_vocabulary(&mut self, now: Duration, id: ExchangeId) -> Result<(), Cause> {
        let Some(exchange) = self.exchanges.get(&id) else { return Ok(()) };
        if exchange.incoming.is_awaiting_plain() {
            return Ok(());
        }
        let Some(block) = exchange.incoming.whole_infoset()? else { return Ok(()) };
        let named = infoset::schema_of(exchange.incoming.options, block);
        let Ok(named) = named else {
            return self.ask_text(now, id, "it does not say what it was made with");
        };
        let any = || self.config.services.iter().find_map(|service| service.infoset.as_ref());
        let found = match named {
            // What others sent is for who reads infosets alone.
            Some(name) => any().and_then(|_| self.schema(name)),
            None => any(),
        };
        let found = found.cloned();
        let Some(vocabulary) = found else {
            let why = match named {
                Some(_) => "its schema is not held here",
                None => "no service here is set to fidelity 'infoset'",
            };
            return self.ask_text(now, id, why);
        };
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.incoming.vocabulary = Some(vocabulary);
        }
        self.adopt_schema(id);
        Ok(())
    }

    /// Asks for the text of a half that cannot be read.
    pub(crate) fn ask_text(
        &mut self,
        now: Duration,
        id: ExchangeId,
        why: &str,
    ) -> Result<(), Cause> {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return Ok(()) };
        exchange.incoming.await_plain();
        let Some(carrier) = exchange.carrier().filter(|_| exchange.incoming.is_awaiting_plain())
        else {
            let reason = format!("an infoset that cannot be read: {why}");
            return Err(Cause { kind: CauseKind::Corrupt, reason });
        };
        let patience = now + self.config.body_timeout;
        self.timers.set(Key::Decoder(id), Some(patience));
        self.send(now, carrier, Keeping::Missing { exchange: id.number }.frame());
        self.ignore(now, carrier, WHAT, &format!("{why}: asked for its text"));
        Ok(())
    }
}

impl Exchange {
    /// The outgoing half's body is this text from now on.
    pub(crate) fn adopt(&mut self, role: Role, text: &Bytes) {
        self.held.adopt(text);
        self.outgoing.set_length(role, text.len());
    }
}

/// The head with the length of another body, where it says a length.
pub(crate) fn with_length(role: Role, head: &Bytes, len: usize) -> Option<Bytes> {
    let mut out = Vec::new();
    let adjust = |fields: &mut bhttp::Fields| {
        let lengths = fields.iter_mut().filter(|(name, _)| name == "content-length");
        lengths.for_each(|(_, value)| *value = len.to_string().into());
    };
    match role {
        Role::Edge => {
            let mut request = bhttp::Request::decode(head).ok()?;
            adjust(&mut request.fields);
            request.encode(&mut out);
        }
        Role::Gateway => {
            let mut response = bhttp::Response::decode(head).ok()?;
            adjust(&mut response.fields);
            response.encode(&mut out);
        }
    }
    Some(out.into())
}
