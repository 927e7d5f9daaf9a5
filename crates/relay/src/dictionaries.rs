//! Dictionaries that maintain themselves: of what a service's messages for one principal have in
//! common, made when deltas had nothing of their kind to go by, sent while the carrier is idle.
//!
//! They outlive carriers, and the relay where its shell keeps them ([`crate::lasting`]), and are
//! agreed on each carrier anew: by name, since either side may have lost them. A sender has
//! [`MAX_MAKERS`] contexts with [`MAX_SAMPLES`] of [`MAX_SAMPLE_BYTES`] each and a dictionary (3
//! MiB in all), a receiver [`MAX_HELD`] dictionaries (2 MiB).
//!
//! A peer's schema ([`crate::schemas`]) goes the same way.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use codec::dictionary::{Kept, distilled, join};
use codec::infoset::Vocabulary;
use proto::stream::Keeping;
use record::event::Fact;

use crate::Relay;
use crate::api::{CarrierId, ExchangeId, Output, Work, WorkDirection};
use crate::bases::Context;
use crate::choice::whole;
use crate::held::Held;
use crate::lasting::{name_of_held, name_of_made};
use crate::timers::Key;

/// Contexts of which samples are collected; beyond it the one longest unused goes.
const MAX_MAKERS: usize = 32;
/// Samples of a context: the latest.
const MAX_SAMPLES: usize = 16;
/// A longer message gains little by a dictionary.
pub(crate) const MAX_SAMPLE_BYTES: usize = 4 << 10;
/// Dictionaries that are being made: one, and one that waits. So there is always a context that may
/// go for another.
const MAX_TRAINING: usize = 2;
/// Messages with nothing of their kind to be told by, since a dictionary was last thought of: fewer
/// are not worth its way across.
const MIN_MISSES: u32 = 4;
/// Samples that have to be new for another try; each one in vain doubles it up to the second. No
/// fewer than there can be: what one is made of never has to outlive the relay.
const FRESH_SAMPLES: (u32, u32) = (16, 1024);
/// Dictionaries that are held for peers, of [`codec::dictionary::DISTILLED_BYTES`] each.
const MAX_HELD: usize = 128;
/// Those of one peer: none drives out all that others have sent.
const MAX_OF_A_PEER: usize = MAX_MAKERS;
/// Dictionaries of a carrier's peer that are made ready at once: one, and one that came in the
/// place of another.
const MAX_UNPACKING: u8 = 2;
/// A schema is offered so often on a carrier.
const MAX_OFFERS: u8 = 4;
/// Share of what the link is believed to carry that dictionaries may take.
const BUDGET_SHARE: f64 = 0.05;
/// How often it is looked whether the carrier is idle.
const PAUSE: Duration = Duration::from_secs(1);
/// How long an offer or a parcel waits for the peer's word before another dictionary goes: what the
/// peer has in its queue by then takes a while on a slow link.
const ANSWER_PATIENCE: Duration = Duration::from_secs(120);
/// It is told that a dictionary is in use once in so long.
const USED_PAUSE: Duration = Duration::from_secs(600);
/// Longest piece that goes at a time, and what a budget may save up.
const PART_BYTES: f64 = 1024.0;
/// A shorter piece is not worth its headers.
const MIN_PART_BYTES: f64 = 64.0;

/// A dictionary of this side's.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) kept: Arc<Kept>,
    /// Those of its context so far, with it.
    pub(crate) version: u32,
    pub(crate) parcel: Bytes,
}

/// A peer's.
#[derive(Debug)]
struct Theirs {
    kept: Arc<Kept>,
    told: Option<Duration>,
}

/// What is collected of a context.
#[derive(Debug)]
struct Maker {
    samples: VecDeque<Arc<Kept>>,
    fresh: u32,
    /// So many fresh ones are wanted for the next try.
    wanted: u32,
    misses: u32,
    made: Option<Made>,
    training: bool,
    used: u64,
    /// When it was told that its dictionary is used.
    told: Option<Duration>,
}

impl Maker {
    fn new() -> Self {
        let (samples, wanted) = (VecDeque::new(), FRESH_SAMPLES.0);
        let (made, training, told) = (None, false, None);
        Self { samples, fresh: 0, wanted, misses: 0, made, training, used: 0, told }
    }
}

/// Of all peers, by the scope ([`Relay::scope`]) that principals belong to.
#[derive(Debug, Default)]
pub(crate) struct Dictionaries {
    makers: BTreeMap<(u64, Context), Maker>,
    held: Held<Theirs, MAX_HELD, MAX_OF_A_PEER>,
    /// Whose dictionary is being made.
    training: BTreeMap<u64, (u64, Context)>,
    next: u64,
    clock: u64,
    /// Names of those that went for others since it was last told.
    pub(crate) gone: Vec<[u8; 32]>,
}

/// Where a dictionary stands with a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// When it was.
    Offered(Duration),
    /// So much of its parcel has gone.
    Wanted(usize),
    /// All of it has, at that time.
    Sent(Duration),
    /// The peer said nothing in [`ANSWER_PATIENCE`]. It may still.
    Silent,
    Held,
}

/// What of dictionaries, and of schemas, goes on on a carrier.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    stages: BTreeMap<[u8; 8], Stage>,
    budget: f64,
    /// Schemas of this side's services that the peer turned out not to hold, and how often.
    schemas: BTreeMap<[u8; 8], (Arc<Vocabulary>, u8)>,
    /// What the peer is sending.
    pub(crate) coming: Option<Coming>,
    /// How many that it has sent are being made ready.
    unpacking: u8,
    /// The schema of its that is being made ready.
    pub(crate) compiling: Option<Arc<Vocabulary>>,
    /// One of its was none: others are not taken.
    pub(crate) refuses_schemas: bool,
}

/// What a peer is sending.
#[derive(Debug)]
pub(crate) struct Coming {
    id: [u8; 8],
    is_schema: bool,
    bytes: usize,
    parcel: BytesMut,
}

impl Coming {
    pub(crate) fn new(id: [u8; 8], is_schema: bool, bytes: u64) -> Self {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Self { id, is_schema, bytes, parcel: BytesMut::new() }
    }
}

impl Dictionaries {
    fn maker(&mut self, scope: u64, context: &Context) -> &mut Maker {
        self.clock += 1;
        let key = (scope, context.clone());
        if self.makers.len() >= MAX_MAKERS && !self.makers.contains_key(&key) {
            let idle = self.makers.iter().filter(|(_, maker)| !maker.training);
            // Whoever comes once must not drive out what was made for others.
            let least = idle.min_by_key(|(_, maker)| (maker.made.is_some(), maker.used));
            let oldest = least.map(|(key, _)| key.clone());
            if let Some((oldest, maker)) = oldest.and_then(|key| self.makers.remove_entry(&key))
                && maker.made.is_some()
            {
                self.gone.push(name_of_made(oldest.0, &oldest.1));
            }
        }
        let maker = self.makers.entry(key).or_insert_with(Maker::new);
        maker.used = self.clock;
        maker
    }

    /// A message had nothing of its kind to be told by.
    pub(crate) fn missed(&mut self, scope: u64, context: &Context) {
        let maker = self.maker(scope, context);
        maker.misses = maker.misses.saturating_add(1);
    }

    /// The dictionary of a context, if the peer holds it.
    pub(crate) fn of(&self, scope: u64, context: &Context, shelf: &Shelf) -> Option<Made> {
        let made = self.makers.get(&(scope, context.clone()))?.made.as_ref()?;
        let held = shelf.stages.get(&made.kept.id().short()) == Some(&Stage::Held);
        held.then(|| made.clone())
    }

    /// Takes one of an earlier relay.
    pub(crate) fn restore(&mut self, scope: u64, context: &Context, made: Made) {
        self.maker(scope, context).made = Some(made);
    }

    /// What a peer's dictionary of this name is.
    pub(crate) fn find(&self, scope: u64, id: [u8; 8]) -> Option<&Arc<Kept>> {
        let of = self.held.iter().filter(|(owner, _)| *owner == scope);
        of.map(|(_, one)| &one.kept).find(|kept| kept.id().short() == id)
    }

    /// A message was told by one of this side's: the name to tell that of.
    fn used_made(&mut self, now: Duration, scope: u64, id: [u8; 8]) -> Option<[u8; 32]> {
        let is_it =
            |maker: &Maker| maker.made.as_ref().is_some_and(|it| it.kept.id().short() == id);
        let mut mine = self.makers.iter_mut().filter(|((of, _), _)| *of == scope);
        let ((_, context), maker) = mine.find(|(_, maker)| is_it(maker))?;
        is_due(&mut maker.told, now).then(|| name_of_made(scope, context))
    }

    /// A message was told by one of a peer's.
    fn used_held(&mut self, now: Duration, scope: u64, id: [u8; 8]) -> Option<[u8; 32]> {
        let one = self.held.used(|owner, one| owner == scope && one.kept.id().short() == id)?;
        is_due(&mut one.told, now).then(|| name_of_held(scope, one.kept.id()))
    }

    /// This side's and those that it holds for peers, for tests.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Kept>> {
        let made = self.makers.values().filter_map(|maker| maker.made.as_ref());
        made.map(|made| &made.kept).chain(self.held.iter().map(|(_, one)| &one.kept))
    }

    /// Those of peers are gone, for tests.
    #[cfg(test)]
    pub(crate) fn lose_held(&mut self) {
        self.held = Held::default();
    }

    /// Holds a peer's dictionary; `false`: another peer's oldest went for it.
    pub(crate) fn hold(&mut self, scope: u64, kept: Arc<Kept>) -> bool {
        let gone = self.held.hold(scope, Theirs { kept, told: None });
        let is_anothers = gone.as_ref().is_some_and(|(owner, _)| *owner != scope);
        self.gone.extend(gone.map(|(owner, one)| name_of_held(owner, one.kept.id())));
        !is_anothers
    }

    /// Dictionaries for a peer that its carrier has not heard of.
    fn unoffered<'a, 'b>(
        &'a self,
        scope: u64,
        shelf: &'b Shelf,
    ) -> impl Iterator<Item = &'a Made> + use<'a, 'b> {
        let mine = self.makers.iter().filter(move |((of, _), _)| *of == scope);
        let made = mine.filter_map(|(_, maker)| maker.made.as_ref());
        made.filter(|made| !shelf.stages.contains_key(&made.kept.id().short()))
    }

    fn parcel(&self, id: [u8; 8]) -> Option<&Bytes> {
        let mut all = self.makers.values().filter_map(|maker| maker.made.as_ref());
        all.find(|made| made.kept.id().short() == id).map(|made| &made.parcel)
    }
}

/// Whether it is to be told again, which is done then.
fn is_due(told: &mut Option<Duration>, now: Duration) -> bool {
    let due = told.is_none_or(|before| now >= before + USED_PAUSE);
    if due {
        *told = Some(now);
    }
    due
}

impl Shelf {
    /// The peer turned out not to hold a dictionary.
    pub(crate) fn lost(&mut self, id: [u8; 8]) {
        self.stages.remove(&id);
    }

    /// The peer turned out not to hold a schema: it is offered, and again where it was given up
    /// since. One that cannot be read though it is held is not offered for ever.
    pub(crate) fn lacks(&mut self, id: [u8; 8], schema: &Arc<Vocabulary>) {
        let (_, often) = self.schemas.entry(id).or_insert_with(|| (Arc::clone(schema), 0));
        *often = often.saturating_add(1);
        if *often <= MAX_OFFERS && self.stages.get(&id) == Some(&Stage::Held) {
            self.stages.remove(&id);
        }
    }

    /// Whether it is a schema that was offered.
    pub(crate) fn is_schema(&self, id: [u8; 8]) -> bool {
        self.schemas.contains_key(&id)
    }
}

impl Relay {
    /// A message of this side's was kept: it is a sample too.
    pub(crate) fn sample(&mut self, scope: u64, context: &Context, kept: &Arc<Kept>) {
        if kept.content().len() > MAX_SAMPLE_BYTES {
            return;
        }
        let busy = self.dictionaries.training.len() >= MAX_TRAINING;
        let maker = self.dictionaries.maker(scope, context);
        if maker.samples.len() >= MAX_SAMPLES {
            maker.samples.pop_front();
        }
        maker.samples.push_back(Arc::clone(kept));
        maker.fresh = maker.fresh.saturating_add(1);
        let due = maker.fresh >= maker.wanted && maker.misses >= MIN_MISSES && !maker.training;
        if !due || busy {
            return;
        }
        (maker.fresh, maker.misses, maker.training) = (0, 0, true);
        let bytes = Bytes::from(join(maker.samples.iter().map(|kept| kept.content())));
        let base = maker.made.as_ref().map(|made| Arc::clone(&made.kept));
        self.dictionaries.next += 1;
        let block = self.dictionaries.next;
        self.dictionaries.training.insert(block, (scope, context.clone()));
        self.order_alone(WorkDirection::Distil, block, bytes, base);
    }

    fn order_alone(
        &mut self,
        direction: WorkDirection,
        block: u64,
        bytes: Bytes,
        base: Option<Arc<Kept>>,
    ) {
        // Of no exchange: their numbers begin with 1.
        let exchange = ExchangeId { instance: self.config.instance, number: 0 };
        let work = Work::of_one_block(exchange, direction, block, bytes, base);
        self.outputs.push_back(Output::Work(work));
    }

    /// A dictionary was made, or would not pay.
    pub(crate) fn distil_done(
        &mut self,
        now: Duration,
        block: u64,
        result: Result<Bytes, codec::Error>,
    ) {
        let Some(key) = self.dictionaries.training.remove(&block) else { return };
        let scope = key.0;
        let Some(maker) = self.dictionaries.makers.get_mut(&key) else { return };
        maker.training = false;
        let Some((kept, parcel)) = result.ok().and_then(|bytes| distilled(&bytes)) else {
            maker.wanted = (2 * maker.wanted).min(FRESH_SAMPLES.1);
            return;
        };
        maker.wanted = FRESH_SAMPLES.0;
        let version = maker.made.as_ref().map_or(1, |before| before.version.saturating_add(1));
        let made = Made { kept: Arc::new(kept), version, parcel: parcel.into() };
        let before = maker.made.replace(made.clone());
        maker.told = Some(now);
        for carrier in self.carriers.values_mut() {
            if let Some(before) = &before {
                carrier.shelf.lost(before.kept.id().short());
            }
        }
        self.store_made(scope, &key.1, &made);
        let here = self.carriers.iter().filter(|(_, carrier)| carrier.scope == Some(scope));
        let here: Vec<_> = here.map(|(id, _)| *id).collect();
        here.into_iter().for_each(|carrier| self.greet_shelf(now, carrier));
    }

    /// Dictionaries there are, and perhaps some for the peer: it is looked in a while.
    pub(crate) fn greet_shelf(&mut self, now: Duration, id: CarrierId) {
        let Some(scope) = self.scope(id) else { return };
        let Some(carrier) = self.carriers.get(&id) else { return };
        if !carrier.knows_dictionaries() {
            return;
        }
        if let Some(at) = carrier.shelf.due(now, &self.dictionaries, scope) {
            self.timers.set_by(Key::Shelf(id), at);
        }
    }

    /// A pause is over, and has earned its share of what the link carries.
    pub(crate) fn tend_shelf(&mut self, now: Duration, id: CarrierId) {
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        let rate_bps = carrier.estimate.rate_bps().value;
        let earned = BUDGET_SHARE * PAUSE.as_secs_f64() * rate_bps / 8.0;
        carrier.shelf.budget = (carrier.shelf.budget + earned.max(0.0)).min(PART_BYTES);
        self.advance_shelf(now, id);
    }

    /// The carrier may be idle: dictionaries go on, within their budget.
    fn advance_shelf(&mut self, now: Duration, id: CarrierId) {
        let Some(scope) = self.scope(id) else { return };
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        if !carrier.knows_dictionaries() {
            return;
        }
        carrier.shelf.expire(now, &self.dictionaries);
        let idle = carrier.turns.is_empty() && carrier.in_flight == 0 && carrier.queued == 0;
        let frame = idle.then(|| carrier.shelf.next(now, &self.dictionaries, scope)).flatten();
        if let Some(frame) = frame {
            self.send(now, id, frame.frame());
        }
        self.greet_shelf(now, id);
    }

    /// What a peer says of dictionaries.
    pub(crate) fn shelf(&mut self, now: Duration, id: CarrierId, keeping: Keeping) {
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        let Some(scope) = carrier.scope else { return };
        match keeping {
            Keeping::Offer { id: name, bytes } => {
                let Some(short) = name.first_chunk().copied() else { return };
                if self.dictionaries.find(scope, short).is_some() {
                    self.send(now, id, Keeping::Held { id: short }.frame());
                    return;
                }
                carrier.shelf.coming = Some(Coming::new(short, false, bytes));
                self.send(now, id, Keeping::Want { id: short }.frame());
            }
            Keeping::Want { id: name } => {
                if let Some(stage @ (Stage::Offered(_) | Stage::Silent)) =
                    carrier.shelf.stages.get_mut(&name)
                {
                    *stage = Stage::Wanted(0);
                    self.greet_shelf(now, id);
                }
            }
            Keeping::Schema { id: name, bytes } => self.schema_offered(now, id, name, bytes),
            Keeping::Held { id: name } => {
                if let Some(stage) = carrier.shelf.stages.get_mut(&name) {
                    *stage = Stage::Held;
                    self.schema_held(id, name);
                    // Who has one mostly has the others: to ask for each takes no more than that.
                    self.advance_shelf(now, id);
                }
            }
            Keeping::Part { id: name, bytes } => {
                let shelf = &mut carrier.shelf;
                let fits = |coming: &mut Coming| {
                    coming.id == name && coming.parcel.len() + bytes.len() <= coming.bytes
                };
                let busy = shelf.unpacking >= MAX_UNPACKING;
                let is_taken = |coming: &Coming| coming.is_schema || !busy;
                let Some(mut coming) = shelf.coming.take_if(fits).filter(is_taken) else {
                    return self.ignore(now, id, "dictionary", "a part that nobody waits for");
                };
                coming.parcel.extend_from_slice(&bytes);
                if coming.parcel.len() < coming.bytes {
                    shelf.coming = Some(coming);
                } else if coming.is_schema {
                    let vocabulary = Vocabulary::of_parcel(name, coming.parcel.into());
                    self.compile(now, id, Arc::new(vocabulary));
                } else {
                    shelf.unpacking += 1;
                    let parcel = coming.parcel.freeze();
                    self.order_alone(WorkDirection::Unpack, id.0, parcel, None);
                }
            }
            _ => {}
        }
    }

    /// A message was told by a dictionary, this side's or the peer's.
    pub(crate) fn note_use(&mut self, now: Duration, id: CarrierId, name: [u8; 8], own: bool) {
        let Some(scope) = self.scope(id) else { return };
        let used = match own {
            true => self.dictionaries.used_made(now, scope, name),
            false => self.dictionaries.used_held(now, scope, name),
        };
        self.outputs.extend(used.map(|name| Output::Used { name }));
    }

    /// A peer's dictionary is whole, or was none.
    pub(crate) fn unpack_done(
        &mut self,
        now: Duration,
        block: u64,
        result: Result<Bytes, codec::Error>,
    ) {
        let id = CarrierId(block);
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        carrier.shelf.unpacking = carrier.shelf.unpacking.saturating_sub(1);
        let Some(scope) = carrier.scope else { return };
        let kept = match result {
            Ok(bytes) => Kept::prepared(&bytes),
            Err(error) => return self.ignore(now, id, "dictionary", &error.to_string()),
        };
        let Some(kept) = kept else { return };
        let short = kept.id().short();
        if self.dictionaries.find(scope, short).is_none() {
            self.store_held(scope, &kept);
            if !self.dictionaries.hold(scope, Arc::new(kept)) {
                let limit = "dictionaries of peers".to_owned();
                let consequence = "the oldest is forgotten".to_owned();
                self.event(now, Fact::LimitReached { limit, consequence });
            }
        }
        self.send(now, id, Keeping::Held { id: short }.frame());
    }
}

impl Shelf {
    /// What goes next: the rest of what the peer waits for, else another offer.
    fn next(&mut self, now: Duration, all: &Dictionaries, scope: u64) -> Option<Keeping> {
        let wanted = self.stages.iter().find_map(|(&id, stage)| match *stage {
            Stage::Wanted(at) => Some((id, at)),
            _ => None,
        });
        if let Some((id, at)) = wanted {
            let rest = self.parcel(all, id).and_then(|parcel| parcel.get(at..));
            let Some(rest) = rest else {
                // Another has come in its place.
                self.stages.remove(&id);
                return None;
            };
            let left = rest.len();
            if self.budget < MIN_PART_BYTES.min(left as f64) {
                return None;
            }
            let len = usize::try_from(whole(self.budget)).unwrap_or(0).min(left);
            let bytes = Bytes::copy_from_slice(&rest[..len]);
            self.budget -= len as f64;
            let stage = if len == left { Stage::Sent(now) } else { Stage::Wanted(at + len) };
            self.stages.insert(id, stage);
            return Some(Keeping::Part { id, bytes });
        }
        if self.waits_until().is_some() {
            return None;
        }
        if let Some((id, bytes)) = self.unoffered_schema() {
            self.stages.insert(id, Stage::Offered(now));
            return Some(Keeping::Schema { id, bytes });
        }
        let made = all.unoffered(scope, self).next()?;
        let (id, bytes) = (made.kept.id(), made.parcel.len() as u64);
        self.stages.insert(id.short(), Stage::Offered(now));
        Some(Keeping::Offer { id: id.0, bytes })
    }

    /// A schema that the peer has not heard of, and bytes of its parcel.
    fn unoffered_schema(&self) -> Option<([u8; 8], u64)> {
        let mut others = self.schemas.iter().filter(|(id, _)| !self.stages.contains_key(*id));
        others.find_map(|(&id, (one, _))| Some((id, one.parcel()?.len() as u64)))
    }

    fn parcel<'a>(&'a self, all: &'a Dictionaries, id: [u8; 8]) -> Option<&'a [u8]> {
        match self.schemas.get(&id) {
            Some((schema, _)) => schema.parcel(),
            None => all.parcel(id).map(|parcel| &parcel[..]),
        }
    }

    /// One at a time: what was offered or sent is answered first, within a bound.
    fn waits_until(&self) -> Option<Duration> {
        let ends = self.stages.values().filter_map(|stage| stage.waits_until());
        ends.max()
    }

    /// What has gone for another is not told of, and what the peer did not answer in time is not
    /// waited for any more.
    fn expire(&mut self, now: Duration, all: &Dictionaries) {
        let schemas = &self.schemas;
        self.stages.retain(|id, _| schemas.contains_key(id) || all.parcel(*id).is_some());
        for stage in self.stages.values_mut() {
            if stage.waits_until().is_some_and(|until| until <= now) {
                *stage = Stage::Silent;
            }
        }
    }

    /// When there is something to do next.
    fn due(&self, now: Duration, all: &Dictionaries, scope: u64) -> Option<Duration> {
        let goes_on = self.stages.values().any(|stage| matches!(stage, Stage::Wanted(_)));
        if goes_on {
            return Some(now + PAUSE);
        }
        let more = self.unoffered_schema().is_some() || all.unoffered(scope, self).next().is_some();
        more.then(|| self.waits_until().unwrap_or(now + PAUSE))
    }
}

impl Stage {
    fn waits_until(self) -> Option<Duration> {
        match self {
            Self::Offered(since) | Self::Sent(since) => Some(since + ANSWER_PATIENCE),
            Self::Wanted(_) | Self::Silent | Self::Held => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proto::stream::Role;

    use super::*;
    use crate::Config;

    fn kept(number: u64) -> Arc<Kept> {
        Arc::new(Kept::new(number.to_be_bytes().repeat(9)))
    }

    #[test]
    fn what_another_peer_sent_goes_only_for_many() {
        let mut all = Dictionaries::default();
        assert!((0..300).all(|number| all.hold(1, kept(number))));
        assert_eq!((all.held.iter().count(), all.gone.len()), (MAX_OF_A_PEER, 268));
        assert!(all.find(1, kept(299).id().short()).is_some());
        assert!(all.find(2, kept(299).id().short()).is_none(), "it is nobody else's");
        assert!(!(2..300).all(|peer| all.hold(peer, kept(1))));
        assert_eq!(all.held.iter().count(), MAX_HELD);
    }

    #[test]
    fn many_contexts_at_once_are_neither_all_collected_nor_all_made() {
        let mut relay = Relay::new(Config::new(Role::Edge, 1));
        for principal in 0..200 {
            let context = Context { principal, service: "http://origin".to_owned() };
            for number in 0..40 {
                relay.dictionaries.missed(1, &context);
                relay.sample(1, &context, &kept(number));
            }
        }
        assert_eq!(relay.dictionaries.makers.len(), MAX_MAKERS);
        let outputs = std::iter::from_fn(|| relay.poll_output());
        let work = outputs.filter(|output| matches!(output, Output::Work(_))).count();
        assert_eq!(work, MAX_TRAINING);
    }
}
