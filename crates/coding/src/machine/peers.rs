//! What becomes known of peers and by them: what both ends hold, and who is connected.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use codec::dictionary::{Distilled, Kept};
use decide::policy::Observation;
use proto::control::{Keeping, Processor, Receipt};

use super::Coding;
use crate::api::{Abilities, Output};
use crate::core::Key;
use crate::exchange::Exchange;
use crate::ids::{ExchangeId, PathId};
use crate::kept::lasting::{made, of_instance};
use crate::kept::pending::Whose;
use crate::path::Path;
use crate::peer::{Peer, arms_of};
use crate::receiving::Receiver;
use crate::speeds::{Speeds, profile};

impl Coding {
    /// A message was made into a base: it is a sample too, a request's once its answer is there.
    pub(super) fn kept(&mut self, now: Duration, number: u64, result: Result<Kept, codec::Error>) {
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
    /// A dictionary was made, or would not pay.
    pub(super) fn trained(
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
        let kept = made(trained.scope, &trained.context, &trained.made);
        if let Some((name, bytes)) = kept {
            self.core.store(name, bytes);
        }
        for path in self.paths.values_mut() {
            if path.scope == Some(trained.scope) {
                Peer { now, core: &mut self.core, path }.greet_offers();
            }
        }
    }

    pub(super) fn up(
        &mut self,
        now: Duration,
        id: PathId,
        (peer, kind, instance): (String, &'static str, u64),
        abilities: Abilities,
    ) {
        if let Some(path) = self.paths.get_mut(&id) {
            // What was believed of it is known now.
            path.abilities = abilities;
            return self.greet(now, id, instance);
        }
        let config = &self.core.config;
        let mut estimate = self.gone.take(&peer, kind).unwrap_or_else(|| config.estimate());
        estimate.reconnected();
        let scope = config.asks().then(|| match &config.secret {
            Some(secret) => secret.of_edge(&peer),
            None => of_instance("", config.instance),
        });
        let edge = if config.asks() { config.instance } else { instance };
        self.paths.insert(id, Path::new(id, (peer, kind, edge), abilities, estimate, scope));
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

    pub(super) fn down(&mut self, id: PathId) {
        let Some(path) = self.paths.remove(&id) else { return };
        self.core.timers.set(Key::Piggyback(id), None);
        self.core.timers.set(Key::Offers(id), None);
        path.uncount_bases(&mut self.core.base_bytes);
        self.gone.keep(path.peer, path.known.kind, path.measured.estimate);
        // Their receipts will not come.
        for mut awaited in path.awaited.into_values() {
            awaited.learn(&mut *self.core.policy, None);
        }
    }

    /// A control message of a peer's.
    pub(super) fn control(&mut self, now: Duration, path: PathId, kind: u64, content: &Bytes) {
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
    pub(super) fn calibrated(&mut self, now: Duration, all: &[Speeds]) {
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
