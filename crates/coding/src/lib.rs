//! In which form messages cross: a machine that knows no HTTP and no carrier. Of what
//! crosses it knows the contents of control parts, and how long a block may be.
//!
//! An exchange has two messages: this side sends one and the peer the other. Of each the machine is
//! told what is known ([`About`](api::About), [`Message`](api::Message)) and handed the body; it
//! hands back blocks, and the bodies of what came.
//!
//! ```text
//!              Message, Body, End            Block, Settled
//!   exchange ─────────────────────► sending ─────────────────► path
//!            ◄───────────────────── receiving ◄───────────────
//!              Body, Received                Piece, Expect
//!                         │  ▲
//!                     Job ▼  │ Done      (a worker's thread)
//! ```
//!
//! `sending` chooses an encoding (the policy is a contextual bandit of [`decide`]), tries it on the
//! first block, and revises it at the ends of blocks; it encodes against messages and dictionaries
//! that both ends hold. What both hold is agreed with control messages, which `peer` writes and
//! reads. `core` is what all share: the policy and what is learned, the memory of codecs.
//!
//! **Drain rule.** After every [`Coding::handle_input`] call [`Coding::poll_output`] until it gives
//! `None`, and do what it says in that order. [`Coding::wake_at`] says when [`Input::Wake`] is due.

pub mod api;
mod bounds;
mod config;
mod core;
mod encoding;
mod exchange;
mod ids;
pub mod job;
mod kept;
mod links;
mod path;
mod peer;
mod receiving;
pub mod recipient;
mod reported;
mod sending;
mod speeds;
#[cfg(test)]
mod tests;
mod times;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use bounds::{BLOCK_PAUSE, MAX_PRINCIPALS};
pub use config::Config;
pub use encoding::{Encoding, Service};
pub use exchange::receiving::MAX_CONTEXTS;
pub use ids::{ExchangeId, PathId};
pub use kept::lasting::Secret;
pub use links::{Link, figures};
pub use speeds::{Speeds, name_of_model};

use bytes::Bytes;
use codec::dictionary::{Distilled, Kept};
use decide::estimate::Estimate;
use decide::policy::Observation;
use proto::control::{Keeping, Processor, Receipt};

use api::{Abilities, Input, Output};
use core::{Core, Key};
use exchange::{Exchange, Stands};
use job::{Done, Prepared};
use kept::lasting::{Restored, of_instance, restored};
use kept::pending::{Keep, Whose};
use path::Path;
use path::gone::Gone;
use peer::{Peer, arms_of};
use receiving::Receiver;
use record::decision::{Decision, Outcome, Route};
use sending::Sender;
use speeds::profile;

/// See the module.
#[derive(Debug)]
pub struct Coding {
    pub(crate) core: Core,
    pub(crate) exchanges: BTreeMap<ExchangeId, Exchange>,
    pub(crate) paths: BTreeMap<PathId, Path>,
    /// What is known of the paths to peers that are not connected.
    gone: Gone,
}

impl Coding {
    /// A machine that has learned nothing.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            core: Core::new(config),
            exchanges: BTreeMap::new(),
            paths: BTreeMap::new(),
            gone: Gone::default(),
        }
    }

    /// Takes one input; drain [`Coding::poll_output`] afterwards. `now` never goes back.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        match input {
            Input::Open { .. }
            | Input::Message { .. }
            | Input::Service { .. }
            | Input::Body { .. }
            | Input::End { .. }
            | Input::Attach { .. }
            | Input::Detach { .. }
            | Input::Credit { .. }
            | Input::Led { .. }
            | Input::Departed { .. }
            | Input::Starved { .. }
            | Input::Rewind { .. }
            | Input::Anew { .. }
            | Input::Stop { .. }
            | Input::Answered { .. }
            | Input::Arrived { .. }
            | Input::Screen { .. }
            | Input::Forget { .. } => self.sending_input(now, input),
            Input::Expect { exchange, options, end } => {
                self.receive(now, exchange, |one| one.expect(options, end));
            }
            Input::Piece { exchange, piece, received } => {
                self.receive(now, exchange, |one| one.piece(&piece, received));
            }
            Input::PeerEnd { exchange } => self.receive(now, exchange, |one| one.end()),
            Input::Delivered { exchange, all } => {
                self.receive(now, exchange, |one| one.delivered(all));
            }
            Input::Done(done) => self.done(now, done),
            Input::Up { path, peer, instance, abilities } => {
                self.up(now, path, (peer, instance), abilities);
            }
            Input::Down { path } => self.down(path),
            Input::Leave { exchange, path } => {
                self.with_peer(now, path, |peer| peer.path.sent.forget(exchange.number));
            }
            Input::Wire { path, wire } => {
                if let Some(path) = self.paths.get_mut(&path) {
                    path.wire = wire;
                }
            }
            Input::Transport { path, transport } => {
                self.with_peer(now, path, |peer| peer.transport(transport));
            }
            Input::Control { path, kind, content } => self.control(now, path, kind, &content),
            Input::Leaves { path } => self.with_peer(now, path, |peer| peer.send_waiting()),
            Input::Flush { path } => self.with_peer(now, path, |peer| peer.flush()),
            Input::Speeds(all) => self.calibrated(now, &all),
            Input::Wake => {}
        }
        self.run_timers(now);
        self.retry_undecoded(now);
        self.core.drop_gone();
    }

    /// What there is to do, one thing at a time; `None` until the next input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.core.outputs.pop_front()
    }

    /// When [`Input::Wake`] is due.
    #[must_use]
    pub fn wake_at(&self) -> Option<Duration> {
        self.core.timers.next()
    }

    fn sending_input(&mut self, now: Duration, input: Input) {
        match input {
            Input::Open { exchange, about } => {
                self.exchanges.insert(exchange, Exchange::new(exchange, about));
            }
            Input::Message { exchange, message } => self.send(now, exchange, |sender| {
                if message.recipient.is_some() {
                    sender.one.stands = Stands::Away;
                }
                sender.one.exact.said = message.exact;
                sender.one.sending.begin(now, message);
                sender.advance();
            }),
            Input::Service { exchange, service } => {
                if let Some(one) = self.exchanges.get_mut(&exchange) {
                    one.about.service = Some(service);
                }
            }
            Input::Body { exchange, bytes } => self.send(now, exchange, |sender| {
                sender.one.sending.push(now, &bytes);
                sender.advance();
            }),
            Input::End { exchange, trailers } => self.send(now, exchange, |sender| {
                sender.one.sending.end(trailers);
                sender.advance();
            }),
            Input::Attach { exchange, path } => {
                if self.exchanges.get(&exchange).is_some_and(Exchange::has_recipient) {
                    return;
                }
                // Of a path that is gone, or not there yet, nothing is known.
                if let Some(one) = self.exchanges.get_mut(&exchange) {
                    one.stands = Stands::On(path);
                }
                self.send(now, exchange, |sender| {
                    sender.attached(path);
                    sender.advance();
                });
            }
            Input::Detach { exchange, waits } => {
                if let Some(one) = self.exchanges.get_mut(&exchange) {
                    one.stands = if waits { Stands::Waits } else { Stands::Away };
                }
                self.send(now, exchange, |sender| sender.advance());
            }
            Input::Credit { exchange, bytes } => {
                if let Some(one) = self.exchanges.get_mut(&exchange) {
                    one.credit = bytes;
                }
            }
            Input::Led { exchange } => self.send(now, exchange, |sender| sender.led()),
            Input::Departed { exchange, departed } => self.send(now, exchange, |sender| {
                sender.departed(departed);
                if departed.end {
                    sender.gone();
                }
                sender.advance();
            }),
            Input::Starved { exchange } => self.send(now, exchange, |sender| sender.starved()),
            Input::Rewind { exchange, body } => self.send(now, exchange, |sender| {
                sender.one.sending.rewind(&body);
                sender.one.rewind();
            }),
            Input::Anew { exchange } => self.send(now, exchange, |sender| sender.go_anew()),
            Input::Stop { exchange } => self.send(now, exchange, |sender| {
                sender.one.sending.stop();
                sender.one.rewind();
                sender.advance();
            }),
            Input::Answered { exchange, private } => {
                self.send(now, exchange, |sender| sender.answered(private));
            }
            Input::Arrived { exchange, bytes, network } => {
                self.send(now, exchange, |sender| sender.arrived(bytes, network));
            }
            Input::Screen { exchange, bytes } => self.screen(exchange, bytes),
            Input::Forget { exchange } => self.forget(exchange),
            _ => {}
        }
    }

    /// Does something with an exchange that is known and the path that it goes over.
    fn send(&mut self, now: Duration, exchange: ExchangeId, act: impl FnOnce(&mut Sender<'_>)) {
        let Some(one) = self.exchanges.get_mut(&exchange) else { return };
        let path = one.path().and_then(|path| self.paths.get_mut(&path));
        let mut sender = Sender { now, core: &mut self.core, path, one };
        act(&mut sender);
        if let Sender { core, path: Some(path), .. } = sender {
            path.count_bases(&mut core.base_bytes);
        }
    }

    fn receive(
        &mut self,
        now: Duration,
        exchange: ExchangeId,
        act: impl FnOnce(&mut Receiver<'_>),
    ) {
        let Some(one) = self.exchanges.get_mut(&exchange) else { return };
        let path = one.path().and_then(|path| self.paths.get_mut(&path));
        let mut receiver = Receiver { now, core: &mut self.core, path, one };
        act(&mut receiver);
        if let Receiver { core, path: Some(path), .. } = receiver {
            path.count_bases(&mut core.base_bytes);
        }
    }

    /// An exchange with its path, for tests.
    #[cfg(test)]
    pub(crate) fn sender(&mut self, exchange: ExchangeId) -> Option<Sender<'_>> {
        let one = self.exchanges.get_mut(&exchange)?;
        let path = one.path().and_then(|path| self.paths.get_mut(&path));
        Some(Sender { now: Duration::ZERO, core: &mut self.core, path, one })
    }

    pub(crate) fn with_peer(
        &mut self,
        now: Duration,
        path: PathId,
        act: impl FnOnce(&mut Peer<'_>),
    ) {
        let Some(path) = self.paths.get_mut(&path) else { return };
        act(&mut Peer { now, core: &mut self.core, path });
        path.count_bases(&mut self.core.base_bytes);
    }

    fn run_timers(&mut self, now: Duration) {
        while let Some(key) = self.core.timers.pop(now) {
            match key {
                Key::Block(exchange) => self.send(now, exchange, |sender| sender.advance()),
                Key::Decoder(exchange) => self.receive(now, exchange, |one| one.patience_ended()),
                Key::Piggyback(path) => self.with_peer(now, path, |peer| peer.send_waiting()),
                Key::Offers(path) => self.with_peer(now, path, |peer| peer.tend_offers()),
            }
        }
    }

    /// Memory may have come free for bodies that wait to be decoded.
    fn retry_undecoded(&mut self, now: Duration) {
        while let Some(&exchange) = self.core.undecoded.front() {
            let mut may = true;
            self.receive(now, exchange, |receiver| may = receiver.reserve_decoder());
            if !may {
                return;
            }
            self.core.undecoded.pop_front();
            // Who goes on shows that waiting is worth while.
            let patience = Some(now + self.core.config.body_timeout);
            for &waiting in &self.core.undecoded {
                self.core.timers.set(Key::Decoder(waiting), patience);
            }
            self.receive(now, exchange, |one| one.advance());
        }
    }

    fn forget(&mut self, id: ExchangeId) {
        let Some(one) = self.exchanges.remove(&id) else { return };
        self.core.timers.set(Key::Block(id), None);
        self.core.give_encoder_back(&one, one.encoder_bytes);
        self.core.decoder_bytes -= one.decoder_bytes.unwrap_or(0);
        if one.has_contexts {
            self.core.outputs.push_back(Output::Release { exchange: id });
        }
        if self.core.timers.is_set(Key::Decoder(id)) {
            self.core.timers.set(Key::Decoder(id), None);
            self.core.undecoded.retain(|other| *other != id);
        }
    }

    fn done(&mut self, now: Duration, done: Done) {
        match done {
            Done::Encoded { exchange, block, result, cpu } => {
                self.send(now, exchange, |sender| sender.encoded(block, result, cpu));
            }
            Done::Decoded { exchange, block, result, cpu } => {
                self.receive(now, exchange, |receiver| receiver.decoded(block, result, cpu));
            }
            Done::Tried { exchange, result, cpu } => {
                let Some(probe) = self.core.probes.open.remove(&exchange) else { return };
                let one = self.exchanges.get_mut(&exchange);
                sending::probed(&mut self.core, &probe, one, result, cpu);
            }
            Done::Prepared(prepared) => self.prepared(now, prepared),
        }
    }

    fn prepared(&mut self, now: Duration, prepared: Prepared) {
        match prepared {
            Prepared::Base { number, result } => self.kept(now, number, result),
            Prepared::Dictionary { number, result } => self.trained(now, number, result),
            Prepared::Parcel { path, result } => {
                self.with_peer(now, path, |peer| peer.unpacked(result));
            }
            Prepared::Schema { path, result } => {
                self.with_peer(now, path, |peer| peer.compiled(result));
            }
        }
    }

    /// A message was made into a base: it is a sample too, a request's once its answer is there.
    fn kept(&mut self, now: Duration, number: u64, result: Result<Kept, codec::Error>) {
        let Some(keep) = self.core.keeps.take(number) else { return };
        if let Whose::Screened(bytes) = keep.whose {
            let kept = result.ok().filter(|kept| kept.content().len() == bytes).map(Arc::new);
            let exchange = keep.exchange;
            return self.core.outputs.push_back(Output::Screened { exchange, kept });
        }
        let (path, exchange) = (keep.path, keep.exchange);
        let asks = self.core.config.asks();
        let one = self.exchanges.get_mut(&exchange);
        let waits = one.filter(|one| asks && !one.receiving.is_headed());
        let Some(path) = self.paths.get_mut(&path) else { return };
        let mut peer = Peer { now, core: &mut self.core, path };
        if let Some(sample) = peer.kept(keep, result) {
            match waits {
                Some(one) => one.held.sample = Some(sample),
                None => peer.sample(&sample.0, &sample.1),
            }
        }
        path.count_bases(&mut self.core.base_bytes);
    }

    /// Has content read for secrets, and hashed.
    fn screen(&mut self, exchange: ExchangeId, bytes: Bytes) {
        let whose = Whose::Screened(bytes.len());
        // It is of no path.
        let keep = Keep { path: PathId(0), exchange, whose, barred: false };
        match self.core.keeps.order(bytes, keep) {
            Some(job) => self.core.job(job),
            None => self.core.outputs.push_back(Output::Screened { exchange, kept: None }),
        }
    }

    /// A dictionary was made, or would not pay.
    fn trained(
        &mut self,
        now: Duration,
        number: u64,
        result: Result<Option<Distilled>, codec::Error>,
    ) {
        let trained = self.core.dictionaries.trained(now, number, result);
        let Some(trained) = trained else { return };
        if let Some(before) = trained.before {
            self.paths.values_mut().for_each(|path| path.offers.lost(before));
        }
        let kept = kept::lasting::made(trained.scope, &trained.context, &trained.made);
        if let Some((name, bytes)) = kept {
            self.core.store(name, bytes);
        }
        for path in self.paths.values_mut() {
            if path.scope == Some(trained.scope) {
                Peer { now, core: &mut self.core, path }.greet_offers();
            }
        }
    }

    fn up(
        &mut self,
        now: Duration,
        id: PathId,
        (peer, instance): (String, u64),
        abilities: Abilities,
    ) {
        if let Some(path) = self.paths.get_mut(&id) {
            // What was believed of it is known now.
            path.abilities = abilities;
            return self.greet(now, id, instance);
        }
        let config = &self.core.config;
        let mut estimate = self.gone.take(&peer).unwrap_or_else(|| config.estimate());
        estimate.reconnected();
        let scope = config.asks().then(|| match &config.secret {
            Some(secret) => secret.of_edge(&peer),
            None => of_instance("", config.instance),
        });
        let edge = if config.asks() { config.instance } else { instance };
        self.paths.insert(id, Path::new(id, (peer, edge), abilities, estimate, scope));
        self.greet(now, id, instance);
    }

    /// What is said to a peer that is connected.
    fn greet(&mut self, now: Duration, id: PathId, instance: u64) {
        self.with_peer(now, id, |peer| {
            peer.introduce(instance);
            if !peer.path.abilities.early {
                peer.ask_processor();
            }
        });
    }

    fn down(&mut self, id: PathId) {
        let Some(path) = self.paths.remove(&id) else { return };
        self.core.timers.set(Key::Piggyback(id), None);
        self.core.timers.set(Key::Offers(id), None);
        path.uncount_bases(&mut self.core.base_bytes);
        self.gone.keep(path.peer, path.measured.estimate);
        // Their receipts will not come.
        for mut awaited in path.awaited.into_values() {
            awaited.learn(&mut *self.core.policy, None);
        }
    }

    /// A control message of a peer's.
    fn control(&mut self, now: Duration, path: PathId, kind: u64, content: &Bytes) {
        match kind {
            Receipt::KIND => self.with_peer(now, path, |peer| peer.receipt(content)),
            Processor::KIND => self.with_peer(now, path, |peer| peer.processor(content)),
            Keeping::KIND => match Keeping::decode(content) {
                Ok(keeping) => self.keeping(now, path, keeping),
                Err(error) => {
                    self.with_peer(now, path, |peer| peer.ignore("base", &error.to_string()));
                }
            },
            _ => {}
        }
    }

    /// What a peer says of bases and dictionaries.
    fn keeping(&mut self, now: Duration, path: PathId, keeping: Keeping) {
        match keeping {
            Keeping::Principal { exchange, principal } => {
                self.of_peer(now, path, exchange, |one| one.of_principal(principal));
            }
            Keeping::Keep { exchange, slot } => {
                self.of_peer(now, path, exchange, |one| one.may_be_kept(slot));
            }
            Keeping::Identity { exchange, bytes } => {
                self.of_peer(now, path, exchange, |one| one.identity(&bytes));
            }
            Keeping::Name { principal, name } => {
                if self.core.config.answers() {
                    self.with_peer(now, path, |peer| peer.named(principal, name));
                }
            }
            Keeping::Kept { exchange, id } => {
                self.with_peer(now, path, |peer| peer.confirmed(exchange, id));
            }
            Keeping::Missing { exchange } => {
                self.with_peer(now, path, |peer| peer.missing(exchange));
            }
            of_dictionaries => self.with_peer(now, path, |peer| peer.offered(of_dictionaries)),
        }
    }

    /// Does something with an exchange that a peer names, if it goes over the peer's path.
    fn of_peer(
        &mut self,
        now: Duration,
        path: PathId,
        number: u64,
        act: impl FnOnce(&mut Receiver<'_>),
    ) {
        let Some(instance) = self.paths.get(&path).map(|path| path.edge) else { return };
        let exchange = ExchangeId { instance, number };
        if self.exchanges.get(&exchange).and_then(Exchange::path) == Some(path) {
            self.receive(now, exchange, act);
        }
    }

    /// This side has measured itself: its policy hears of it, and peers that wait for it.
    fn calibrated(&mut self, now: Duration, all: &[Speeds]) {
        for speeds in all {
            for arm in arms_of(&self.core, |options| *options == speeds.options) {
                let (encode, decode) = (Some(speeds.encode), Some(speeds.decode));
                self.core.observe(&Observation::Speed { arm, encode, decode });
            }
        }
        self.core.own_profile = profile(all);
        for path in self.paths.values_mut() {
            let mut peer = Peer { now, core: &mut self.core, path };
            peer.tell_processor();
            peer.ask_processor();
        }
    }
}

/// What is known, and what outlives the process.
impl Coding {
    /// Takes services beside those it has, whose numbers go on behind theirs; false if they are too
    /// many.
    #[must_use]
    pub fn add_services(&mut self, services: &[Service]) -> bool {
        self.core.config.add_services(services)
    }

    /// Codecs that this side decodes, by number.
    pub fn codecs(&self) -> impl Iterator<Item = u64> + use<> {
        self.core.config.codecs()
    }

    /// Memory reserved for codec contexts, in bytes.
    #[must_use]
    pub fn codec_bytes(&self) -> usize {
        self.core.encoder_bytes + self.core.decoder_bytes + self.core.probes.bytes()
    }

    /// Body bytes held for an exchange.
    #[must_use]
    pub fn held_bytes(&self, exchange: ExchangeId) -> usize {
        let held = |one: &Exchange| one.sending.held_bytes() + one.receiving.held_bytes();
        self.exchanges.get(&exchange).map_or(0, held)
    }

    /// Processor time of an exchange's blocks.
    #[must_use]
    pub fn cpu(&self, exchange: ExchangeId) -> Duration {
        self.exchanges.get(&exchange).map_or(Duration::ZERO, |one| one.cpu)
    }

    /// The body of this side's message, where it has gone by what both ends of its path hold, or as
    /// an infoset: on another path that alone may be of no use.
    #[must_use]
    pub fn delta(&self, exchange: ExchangeId) -> Option<Bytes> {
        self.exchanges.get(&exchange)?.held.delta().cloned()
    }

    /// The next block of this side's message begins a new context in place of another.
    #[must_use]
    pub fn begins_anew(&self, exchange: ExchangeId) -> bool {
        self.exchanges.get(&exchange).is_some_and(|one| one.sending.begins_anew())
    }

    /// The body of the peer's message could not be read, and was asked for as it is.
    #[must_use]
    pub fn awaits_identity(&self, exchange: ExchangeId) -> bool {
        let one = self.exchanges.get(&exchange);
        one.is_some_and(|one| one.receiving.is_awaiting_identity())
    }

    /// Messages that are held as bases for a path, those that this side sent and those that came.
    /// Secrets are not in them.
    pub fn bases(&self, path: PathId) -> impl Iterator<Item = &Kept> {
        let path = self.paths.get(&path).into_iter();
        path.flat_map(|path| path.sent.all().chain(path.kept.all())).map(Arc::as_ref)
    }

    /// Dictionaries that are held, those of this side's messages and those of peers'.
    pub fn dictionaries(&self) -> impl Iterator<Item = &Kept> {
        self.core.dictionaries.all().map(Arc::as_ref)
    }

    /// Principals that have said their names over a path: at most [`MAX_PRINCIPALS`].
    #[must_use]
    pub fn principals(&self, path: PathId) -> usize {
        self.paths.get(&path).map_or(0, |path| path.names.of.len())
    }

    /// Exchanges that wait for memory to decode their messages with.
    #[must_use]
    pub fn waiting_decoders(&self) -> usize {
        self.core.undecoded.len()
    }

    /// Memory of what the policy has learned, in bytes.
    #[must_use]
    pub fn learned_bytes(&self) -> usize {
        self.core.policy.state_bytes()
    }

    /// Control messages wait to be piggybacked on the path's next frame.
    #[must_use]
    pub fn has_waiting(&self, path: PathId) -> bool {
        self.paths.get(&path).is_some_and(|path| path.piggyback.is_waiting())
    }

    /// Bytes of the longest body that came of late over a path, decoded.
    #[must_use]
    pub fn longest(&self, path: PathId) -> u64 {
        self.paths.get(&path).map_or(0, |path| path.longest)
    }

    /// How long this side's message of an exchange takes over a path, in seconds: the bytes that
    /// there are, or that such messages have. `None` where either is not known.
    #[must_use]
    pub fn expected_s(&self, exchange: ExchangeId, path: PathId) -> Option<f64> {
        let (one, path) = (self.exchanges.get(&exchange)?, self.paths.get(&path)?);
        Some(sending::expected_s(&self.core, one, path))
    }

    /// Why an exchange goes over the path that it will be attached to, where there were several.
    pub fn note_route(&mut self, exchange: ExchangeId, route: Option<Route>) {
        if let Some(one) = self.exchanges.get_mut(&exchange) {
            one.route = route.map(Box::new);
        }
    }

    /// What is believed of a path.
    #[must_use]
    pub fn estimate(&self, path: PathId) -> Option<&Estimate> {
        self.paths.get(&path).map(Path::estimate)
    }

    /// What is believed of the paths to all peers that are connected.
    #[must_use]
    pub fn links(&self) -> Vec<Link> {
        self.paths.values().map(links::link).collect()
    }

    /// What was learned, for [`Coding::restore`]; nothing where the choice is fixed.
    #[must_use]
    pub fn learned(&self) -> Vec<u8> {
        self.core.learned()
    }

    /// Takes what this policy had learned, over these encodings or others.
    ///
    /// # Errors
    /// What is no such state; nothing is taken of it.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), decide::state::Error> {
        self.core.restore(bytes)
    }

    /// What was learned of recipients that are no peers, for [`Coding::restore_clients`]; nothing
    /// where the choice is fixed, or where there were none.
    #[must_use]
    pub fn learned_of_clients(&self) -> Vec<u8> {
        self.core.clients.learned(&self.core.config.encoding)
    }

    /// Takes what was learned of such recipients, over these encodings or others.
    ///
    /// # Errors
    /// What is no such state; nothing is taken of it.
    pub fn restore_clients(&mut self, bytes: &[u8]) -> Result<(), decide::state::Error> {
        let Core { clients, config, .. } = &mut self.core;
        clients.restore(&config.encoding, bytes)
    }

    /// No exchange is open.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.exchanges.is_empty()
    }

    /// Learns from a decision of an earlier process and its outcome, as it had.
    pub fn learn_from(&mut self, decision: &Decision, outcome: &Outcome) {
        self.core.learn_from(decision, outcome);
    }

    /// Takes a dictionary or a schema that [`Output::Store`] gave to keep under this name; of
    /// several the one that was used last comes last. It is used again once it is agreed with the
    /// peer anew.
    ///
    /// # Errors
    /// What is no such thing, or another's; nothing is taken of it.
    pub fn restore_dictionary(&mut self, name: [u8; 32], bytes: &[u8]) -> Result<(), &'static str> {
        match restored(name, bytes)? {
            Restored::Made(scope, context, made) => {
                self.core.dictionaries.restore(scope, &context, made);
            }
            Restored::Held(scope, kept) => {
                self.core.dictionaries.hold(scope, kept);
            }
            Restored::Schema(peer, schema) => {
                self.core.schemas.hold(peer, schema);
            }
        }
        Ok(())
    }
}
