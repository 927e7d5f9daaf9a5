//! Deltas against messages that both ends hold: whose they are, which are kept, and what is done
//! when one turns out to be missing.
//!
//! A message leaves as ever, with the word that it may be kept. The peer cuts out what is secret,
//! keeps the rest, and says by which name; this side does the same. From then on the next message
//! of the same service and principal can be told by its difference from it. Who cannot read a delta
//! gets the body as it is, for that is kept until the receipt is here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use codec::dictionary::{Id, Kept};
use codec::{Options, secrets};
use decide::triage::SHORTEST_BYTES;
use proto::bhttp;
use proto::stream::{Keeping, MAX_BLOCK_BYTES, Role};
use record::decision as facts;
use record::event::Fact;

use crate::Relay;
use crate::along::Word;
use crate::api::{CarrierId, Cause, CauseKind, ExchangeId, Output, Work, WorkDirection};
use crate::bases::{Base, By, Context};
use crate::config::{MAX_BASE_BYTES, MAX_KEEPS, MAX_PRINCIPALS};
use crate::dictionaries::{MAX_SAMPLE_BYTES, Made};
use crate::exchange::Exchange;
use crate::lasting::{Principal, lasts};
use crate::privacy::{Client, proves, tells_who};
use crate::receipts::Arrival;
use crate::timers::Key;

/// What an exchange has to do with messages that both ends hold.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Edge: who asks, as far as the shell and the head tell.
    asker: Option<Id>,
    /// On whose behalf it is; none where that cannot be told.
    principal: Option<Principal>,
    /// Where `base` and `slot` are good for anything.
    carrier: Option<CarrierId>,
    /// What the outgoing half can be told by: a message, a dictionary.
    pub(crate) base: Option<Base>,
    dictionary: Option<Made>,
    /// Of whose dictionary it may become a part.
    context: Option<Context>,
    /// Where the peer may keep the outgoing half.
    slot: Option<u64>,
    /// The outgoing half's body, where it may be kept, or has gone as the peer may not read it.
    plain: Option<Bytes>,
    /// The outgoing half went by what the carrier's ends hold, or as an infoset.
    went: bool,
    /// What it was told by.
    by: Option<By>,
    /// Where the incoming half may be kept, or is.
    incoming: Option<u64>,
    kept_in: Option<u64>,
    /// The outgoing half as a sample, once its answer forbids nobody to keep it.
    sample: Option<(Context, Arc<Kept>)>,
}

impl Held {
    /// The half's body, where it has gone by what the carrier's ends hold, or as an infoset: on
    /// another carrier that alone may be of no use.
    pub(crate) fn delta(&self) -> Option<&Bytes> {
        self.plain.as_ref().filter(|_| self.went)
    }

    /// What an encoding tells the outgoing half by.
    pub(crate) fn base_of(&self, options: Options) -> Option<Arc<Kept>> {
        match options.codec {
            codec if codec == Options::DELTA.codec => {
                self.base.as_ref().map(|base| Arc::clone(&base.kept))
            }
            codec if codec == Options::DICTIONARY.codec => {
                self.dictionary.as_ref().map(|made| Arc::clone(&made.kept))
            }
            _ => None,
        }
    }

    /// What [`Held::base_of`] is called where decisions are told.
    pub(crate) fn fact_of(&self, options: Options) -> Option<facts::Base> {
        match options.codec {
            codec if codec == Options::DELTA.codec => self.base.as_ref().map(|base| {
                let sha256 = base.kept.id().to_string();
                facts::Base::Message { sha256 }
            }),
            codec if codec == Options::DICTIONARY.codec => self.dictionary.as_ref().map(|made| {
                let (sha256, version) = (made.kept.id().to_string(), made.version);
                facts::Base::Dictionary { sha256, version }
            }),
            _ => None,
        }
    }

    /// All of the outgoing half is in this block.
    pub(crate) fn note_body(&mut self, body: &Bytes) {
        let is_told = self.base.is_some() || self.dictionary.is_some();
        if is_told || self.slot.is_some() || self.context.is_some() {
            self.plain = Some(body.clone());
        }
    }

    /// What the outgoing half goes in is final.
    pub(crate) fn settle(&mut self, options: Options) {
        let slot = self.base.as_ref().map(|base| By::Slot(base.slot));
        let made = self.dictionary.as_ref();
        let name = made.map(|made| By::Dictionary(made.kept.id().short()));
        self.by = match options.codec {
            codec if codec == Options::DELTA.codec => slot,
            codec if codec == Options::DICTIONARY.codec => name,
            _ => None,
        };
        self.went = options.wants_base() || options.is_infoset();
    }

    /// The outgoing half's body is another text, which says the same.
    pub(crate) fn adopt(&mut self, text: &Bytes) {
        self.plain = Some(text.clone());
    }

    pub(crate) fn set_asker(&mut self, asker: Option<Id>) {
        self.asker = asker;
    }

    /// The outgoing half goes anew.
    pub(crate) fn rewind(&mut self) {
        let Self { asker, principal, incoming, kept_in, .. } = *self;
        *self = Self { asker, principal, incoming, kept_in, ..Self::default() };
    }
}

/// Who asks, in numbers: told apart within [`MAX_PRINCIPALS`].
#[derive(Debug, Default)]
pub(crate) struct Principals {
    known: BTreeMap<Id, (u64, u64)>,
    /// Counts up; a number never means another.
    next: u64,
    clock: u64,
    /// Who sends the next request.
    client: Option<(ExchangeId, Client)>,
}

impl Principals {
    pub(crate) fn client(&mut self, exchange: ExchangeId, client: Client) {
        self.client = Some((exchange, client));
    }

    /// Who sends this request, by the shell's word; none where it did not say.
    pub(crate) fn take_client(&mut self, exchange: ExchangeId) -> Option<Client> {
        self.client.take().filter(|(of, _)| *of == exchange).map(|(_, client)| client)
    }

    fn number(&mut self, principal: Id) -> u64 {
        self.clock += 1;
        if self.known.len() >= MAX_PRINCIPALS && !self.known.contains_key(&principal) {
            let oldest = self.known.iter().min_by_key(|(_, (_, used))| used);
            if let Some(oldest) = oldest.map(|(&id, _)| id) {
                self.known.remove(&oldest);
            }
        }
        let next = &mut self.next;
        let fresh = || {
            *next += 1;
            (*next, 0)
        };
        let (number, used) = self.known.entry(principal).or_insert_with(fresh);
        *used = self.clock;
        *number
    }
}

/// Who asks: the shell's name of a client, and what the head of its request says of that
/// ([`tells_who`]). Who shows other credentials is another, and one who may be several counts as
/// several.
#[must_use]
pub fn asker(client: &Client, request: &bhttp::Request) -> Id {
    let mut all = Id::of(client.name.as_bytes()).0.to_vec();
    let fields = request.fields.iter().filter(|(name, _)| {
        let is_none = |one: &String| name.eq_ignore_ascii_case(one.as_bytes());
        tells_who(name) && !client.impersonal.iter().any(is_none)
    });
    let fields = fields.map(|(name, value)| (&name[..], &value[..]));
    let proofs = fields.chain(parameters(&request.path).filter(|(name, _)| proves(name)));
    let user = request.authority.rsplitn(2, |byte| *byte == b'@').nth(1);
    let user = user.map(|user| (&b"@"[..], user));
    for (name, value) in proofs.chain(user) {
        for part in [name, value] {
            all.extend_from_slice(&(part.len() as u64).to_be_bytes());
            all.extend_from_slice(part);
        }
    }
    Id::of(&all)
}

/// The parameters of a path's query.
fn parameters(path: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let query = path.splitn(2, |byte| *byte == b'?').nth(1).unwrap_or_default();
    query.split(|byte| matches!(byte, b'&' | b';')).map(|pair| {
        let equals = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        pair.split_at(equals)
    })
}

/// Messages that are being made into bases.
#[derive(Debug, Default)]
pub(crate) struct Keeps {
    open: BTreeMap<u64, Keep>,
    next: u64,
}

#[derive(Debug)]
struct Keep {
    carrier: CarrierId,
    exchange: u64,
    way: Way,
    /// Nobody may keep it, as was heard meanwhile.
    barred: bool,
}

impl Keeps {
    /// What is being made of an exchange's messages is not kept.
    fn bar(&mut self, carrier: CarrierId, exchange: u64) {
        let open = self.open.values_mut();
        let of_exchange = open.filter(|keep| (keep.carrier, keep.exchange) == (carrier, exchange));
        of_exchange.for_each(|keep| keep.barred = true);
    }
}

/// Whose message it is.
#[derive(Debug)]
enum Way {
    /// This side's, of whose dictionary it may become a part.
    Sent(Option<Context>),
    /// The peer's, for this slot; its receipt waits, so that both go together.
    Received(u64, Box<Arrival>),
}

impl Relay {
    /// Looks what the outgoing half may be told by, and whether others may be told by it.
    pub(crate) fn consider_bases(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.held.rewind();
        let Some(carrier) = exchange.carrier() else { return };
        let arms = self.config.encoding.arms();
        let state = self.carriers.get(&carrier);
        let knows = state.is_some_and(|state| state.may_know(Options::DELTA));
        let has_arm = arms.iter().any(|arm| arm.wants_base());
        let forbidden = exchange.guard.forbids_bases();
        if !knows || exchange.traits.tunnel || !has_arm || forbidden {
            return;
        }
        let (body, whole) = exchange.outgoing.at_hand();
        let media = exchange.content_type.as_deref().unwrap_or_default();
        let readable = whole && !exchange.coded && secrets::is_readable(media);
        if self.config.role == Role::Edge {
            let named = match whole && body.is_empty() {
                true => Some(Vec::new()),
                false => readable.then(|| secrets::claims(body).ok()).flatten(),
            };
            let principal = exchange.held.asker.zip(named);
            let id = principal.map(|(asker, named)| Id::of(&[&asker.0[..], &named].concat()));
            let secret = self.config.secret.as_ref();
            exchange.held.principal = id.map(|id| {
                let number = self.principals.number(id);
                let known_as = secret.map_or(number, |secret| secret.of_principal(id));
                Principal { number, known_as }
            });
        }
        let bytes = body.len();
        let fits = (SHORTEST_BYTES..=MAX_BLOCK_BYTES as u64).contains(&(bytes as u64));
        let alone = readable && fits && !exchange.outgoing.has_trailers();
        let Some(principal) = exchange.held.principal.filter(|_| alone) else { return };
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let (class, service) = (self.class(exchange), self.service_name(exchange).to_owned());
        let (deltas, dictionaries) = (
            self.may_go_in(exchange, Options::DELTA),
            self.may_go_in(exchange, Options::DICTIONARY),
        );
        let context = Context { principal: principal.known_as, service };
        let has_room = self.base_bytes() + bytes <= MAX_BASE_BYTES;
        let patience = 2 * self.config.body_timeout;
        let Some(state) = self.carriers.get_mut(&carrier) else { return };
        let dictionaries = dictionaries && state.knows_dictionaries();
        let sent = &mut state.sent;
        let barren = sent.is_barren(&context, class);
        let is_sample = dictionaries && bytes <= MAX_SAMPLE_BYTES && !barren;
        sent.expire(now.saturating_sub(patience));
        let may_send = sent.may_send(bytes);
        let base = sent.base(&context, class).filter(|_| may_send && deltas);
        let may_keep = has_room && deltas;
        let slot = may_keep.then(|| sent.give(id.number, context.clone(), class)).flatten();
        let dictionary = self.dictionary(carrier, &context).filter(|_| may_send && dictionaries);
        if is_sample
            && !base.as_ref().is_some_and(|base| base.alike)
            && let Some(scope) = self.scope(carrier)
        {
            self.dictionaries.missed(scope, &context);
        }
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            let held = &mut exchange.held;
            (held.carrier, held.base, held.slot) = (Some(carrier), base, slot);
            (held.dictionary, held.context) = (dictionary, Some(context).filter(|_| is_sample));
        }
    }

    /// Whether an encoding is among those of the exchange's service.
    fn may_go_in(&self, exchange: &Exchange, options: Options) -> bool {
        let only = self.service(exchange).and_then(|service| service.encodings.as_deref());
        only.unwrap_or(self.config.encoding.arms()).contains(&options)
    }

    /// The dictionary that a carrier's peer holds for a context.
    fn dictionary(&self, carrier: CarrierId, context: &Context) -> Option<Made> {
        let carrier = self.carriers.get(&carrier)?;
        self.dictionaries.of(carrier.scope?, context, &carrier.shelf)
    }

    /// A half that was made ready for another carrier goes without what that one had.
    pub(crate) fn leave_bases(&mut self, carrier: CarrierId, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        if exchange.held.carrier.is_none_or(|of| of == carrier) {
            return;
        }
        if let Some(body) = exchange.held.delta().cloned() {
            exchange.outgoing.anew(body);
            (exchange.choice, exchange.departure) = (None, None);
        }
        exchange.held.rewind();
    }

    /// Bytes of all bases.
    fn base_bytes(&self) -> usize {
        let carriers = self.carriers.values();
        carriers.map(|carrier| carrier.sent.bytes() + carrier.kept.bytes()).sum()
    }

    /// The head of a half has been sent: what is to be said of its keeping.
    pub(crate) fn announce_bases(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId) {
        let Some(held) = self.exchanges.get(&id).map(|exchange| &exchange.held) else { return };
        let (exchange, slot) = (id.number, held.slot);
        let principal = held.principal.filter(|_| self.config.role == Role::Edge);
        let delta = held.delta().cloned().zip(held.by);
        if let (Some((body, by)), Some(state)) = (delta, self.carriers.get_mut(&carrier)) {
            state.sent.delta(now, exchange, by, body);
            if let By::Dictionary(name) = by {
                self.note_use(now, carrier, name, true);
            }
        }
        if let Some(who) = principal {
            self.introduce_principal(now, carrier, who);
            let principal = who.number;
            self.send(now, carrier, Keeping::Principal { exchange, principal }.frame());
        }
        if let Some(slot) = slot {
            self.send(now, carrier, Keeping::Keep { exchange, slot }.frame());
        }
    }

    /// The answer's head is known. Where nobody may keep the answer, nobody keeps its request
    /// either (RFC 9111 §5.2.2.5), nor others of its kind.
    pub(crate) fn heed_answer(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let (sample, slot) = (exchange.held.sample.take(), exchange.held.kept_in.take());
        let Some(carrier) = exchange.carrier() else { return };
        if !exchange.guard.marked {
            if let Some(((context, kept), scope)) = sample.zip(self.scope(carrier)) {
                self.sample(scope, &context, &kept);
            }
            return;
        }
        exchange.incoming.keeps = false;
        exchange.held.incoming = None;
        self.keeps.bar(carrier, id.number);
        let Some(state) = self.carriers.get_mut(&carrier) else { return };
        state.words.retain(|word| !word.is_kept(id.number));
        state.sent.disown(id.number);
        slot.into_iter().for_each(|slot| state.kept.disown(slot, id.number));
    }

    /// All of a half has been sent: what is kept of it is made.
    pub(crate) fn keep_sent(&mut self, carrier: CarrierId, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let (slot, context) = (exchange.held.slot.take(), exchange.held.context.take());
        let Some(body) = exchange.held.plain.clone() else { return };
        let Some(state) = self.carriers.get_mut(&carrier) else { return };
        match slot {
            Some(slot) => state.sent.left(slot),
            None if context.is_none() => return,
            None => {}
        }
        let way = Way::Sent(context);
        let keep = Keep { carrier, exchange: id.number, way, barred: false };
        if !self.order_keep(id, body, keep)
            && let Some(state) = self.carriers.get_mut(&carrier)
        {
            state.sent.give_up(id.number);
        }
    }

    /// A half is whole and may be kept; `false`: it is not, and its receipt is due.
    pub(crate) fn keep_received(&mut self, id: ExchangeId) -> bool {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return false };
        let Some(slot) = exchange.held.incoming.take() else { return false };
        let (body, carrier) = (exchange.incoming.take_body(), exchange.carrier());
        let (Some(body), Some(carrier)) = (body, carrier) else { return false };
        let way = Way::Received(slot, Box::new(exchange.arrival));
        let keep = Keep { carrier, exchange: id.number, way, barred: false };
        let ordered = self.order_keep(id, body, keep);
        if let Some(exchange) = self.exchanges.get_mut(&id).filter(|_| ordered) {
            exchange.arrival.told();
            exchange.held.kept_in = Some(slot);
        }
        ordered
    }

    fn order_keep(&mut self, exchange: ExchangeId, bytes: Bytes, keep: Keep) -> bool {
        if self.keeps.open.len() >= MAX_KEEPS || bytes.len() > MAX_BLOCK_BYTES {
            return false;
        }
        self.keeps.next += 1;
        let block = self.keeps.next;
        self.keeps.open.insert(block, keep);
        let work = Work::of_one_block(exchange, WorkDirection::Keep, block, bytes, None);
        self.outputs.push_back(Output::Work(work));
        true
    }

    pub(crate) fn keep_done(
        &mut self,
        now: Duration,
        number: u64,
        result: Result<Bytes, codec::Error>,
    ) {
        let Some(keep) = self.keeps.open.remove(&number) else { return };
        let Keep { carrier, exchange, way, barred } = keep;
        let kept = result.ok().and_then(|bytes| Kept::prepared(&bytes)).map(Arc::new);
        let kept = kept.filter(|kept| !kept.content().is_empty() && !barred);
        let bytes = kept.as_ref().map_or(0, |kept| kept.content().len());
        let has_room = self.base_bytes() + bytes <= MAX_BASE_BYTES;
        let Some(state) = self.carriers.get_mut(&carrier) else { return };
        match way {
            // The next may find room.
            Way::Sent(_) if !has_room => state.sent.give_up(exchange),
            Way::Sent(context) => {
                let sample = context.zip(kept.clone());
                if let Err(why) = state.sent.kept(exchange, kept) {
                    self.ignore(now, carrier, "base", why);
                }
                if let Some(sample) = sample {
                    self.sample_of(carrier, exchange, sample);
                }
            }
            Way::Received(slot, mut arrival) => {
                state.kept.free(slot);
                if let Some(receipt) = arrival.receipt(now, exchange, &mut state.short) {
                    self.send_along(now, carrier, Word::Receipt(receipt, now));
                }
                let Some(kept) = kept.filter(|_| has_room) else { return };
                let id = kept.id().short();
                if let Some(state) = self.carriers.get_mut(&carrier) {
                    state.kept.keep(slot, exchange, kept);
                }
                self.send_along(now, carrier, Word::Kept(Keeping::Kept { exchange, id }));
            }
        }
    }

    /// A message of this side's is kept: it is a sample too, a request's once its answer is there.
    fn sample_of(&mut self, carrier: CarrierId, number: u64, sample: (Context, Arc<Kept>)) {
        let Some(instance) = self.edge_instance(carrier) else { return };
        let exchange = self.exchanges.get_mut(&ExchangeId { instance, number });
        let waits = |exchange: &&mut Exchange| !exchange.incoming.headed;
        if self.config.role == Role::Edge
            && let Some(exchange) = exchange.filter(waits)
        {
            exchange.held.sample = Some(sample);
        } else if let Some(scope) = self.scope(carrier) {
            self.sample(scope, &sample.0, &sample.1);
        }
    }

    /// What a peer says of bases.
    pub(crate) fn keeping(&mut self, now: Duration, carrier: CarrierId, content: &Bytes) {
        let keeping = match Keeping::decode(content) {
            Ok(keeping) => keeping,
            Err(error) => return self.ignore(now, carrier, "base", &error.to_string()),
        };
        let Some(instance) = self.edge_instance(carrier) else { return };
        let Some(state) = self.carriers.get_mut(&carrier) else { return };
        let id = |number| ExchangeId { instance, number };
        match keeping {
            Keeping::Principal { exchange, principal: number } => {
                let name = state.names.get(&number).copied();
                // Where all else lasts, a number would be another's after a restart.
                let known_as = name.or_else(|| (!lasts(state.scope)).then_some(number));
                if self.config.role == Role::Gateway
                    && let Some(exchange) = self.on_carrier(carrier, id(exchange))
                {
                    let principal = known_as.map(|known_as| Principal { number, known_as });
                    exchange.held.principal = principal;
                }
            }
            Keeping::Name { principal, name } if self.config.role == Role::Gateway => {
                self.named(now, carrier, principal, name);
            }
            Keeping::Keep { exchange, slot } => {
                if let Some(exchange) = self.on_carrier(carrier, id(exchange))
                    && !exchange.incoming.has_body()
                {
                    exchange.incoming.keeps = true;
                    exchange.held.incoming = Some(slot);
                }
            }
            Keeping::Kept { exchange, id } => {
                if let Err(why) = state.sent.confirmed(exchange, id) {
                    self.ignore(now, carrier, "base", why);
                }
            }
            Keeping::Missing { exchange } => match state.sent.missing(exchange) {
                Some((bytes, by)) => {
                    if let By::Dictionary(id) = by {
                        state.shelf.lost(id);
                    }
                    self.send(now, carrier, Keeping::Plain { exchange, bytes }.frame());
                    self.greet_shelf(now, carrier);
                }
                None => self.text_missing(now, carrier, exchange),
            },
            Keeping::Plain { exchange, bytes } => {
                let id = id(exchange);
                let Some(exchange) = self.on_carrier(carrier, id) else { return };
                match exchange.incoming.push_plain(bytes) {
                    Ok(true) => {
                        self.timers.set(Key::Decoder(id), None);
                        self.advance_incoming(now, id);
                    }
                    Ok(false) => self.ignore(now, carrier, "base", "nobody asked for this body"),
                    Err(cause) => self.refuse(now, id, &cause),
                }
            }
            of_dictionaries => self.shelf(now, carrier, of_dictionaries),
        }
    }

    fn on_carrier(&mut self, carrier: CarrierId, id: ExchangeId) -> Option<&mut Exchange> {
        self.exchanges.get_mut(&id).filter(|exchange| exchange.on_carrier() == Some(carrier))
    }

    /// A block came of a half that goes as a delta: its base is found, or its body asked for.
    pub(crate) fn find_base(
        &mut self,
        now: Duration,
        carrier: CarrierId,
        id: ExchangeId,
    ) -> Result<(), Cause> {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return Ok(()) };
        if !exchange.incoming.options.wants_base() || exchange.incoming.is_awaiting_plain() {
            return Ok(());
        }
        let Some(name) = exchange.incoming.named_base()? else { return Ok(()) };
        let Some(state) = self.carriers.get(&carrier) else { return Ok(()) };
        let message = state.kept.find(name);
        let of_peer = |scope| self.dictionaries.find(scope, name);
        let base = message.or_else(|| state.scope.and_then(of_peer));
        exchange.incoming.base = base.cloned();
        if message.is_none() && base.is_some() {
            self.note_use(now, carrier, name, false);
        } else if base.is_none() {
            exchange.incoming.await_plain();
            let patience = now + self.config.body_timeout;
            self.timers.set(Key::Decoder(id), Some(patience));
            self.send(now, carrier, Keeping::Missing { exchange: id.number }.frame());
            let reason = "its base is not held here: asked for it as it is".to_owned();
            self.event(now, Fact::Ignored { what: "delta".to_owned(), reason });
        }
        Ok(())
    }

    /// A body that had been asked for did not come.
    pub(crate) fn plain_patience_ended(&mut self, now: Duration, id: ExchangeId) {
        let waited = self.config.body_timeout.as_secs_f64();
        let reason = format!("a body that cannot be read here did not come as it is in {waited} s");
        self.refuse(now, id, &Cause { kind: CauseKind::Corrupt, reason });
    }
}
