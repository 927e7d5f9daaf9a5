//! What is known, and what outlives the process.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use codec::dictionary::Kept;
use decide::estimate::Estimate;
use record::decision::{Decision, Outcome, Route};

use super::Coding;
use crate::core::Core;
use crate::encoding::Service;
use crate::exchange::Exchange;
use crate::ids::{ExchangeId, PathId};
use crate::kept::lasting::{Restored, restored};
use crate::links::{self, Link};
use crate::path::Path;
use crate::sending::Known;

impl Coding {
    /// Takes services beside those it has, whose numbers go on behind theirs; false if they are too
    /// many.
    #[must_use]
    pub fn add_services(&mut self, services: &[Service]) -> bool {
        self.core.config.add_services(services)
    }

    /// Codecs that this side decodes, by number.
    pub fn codecs(&self) -> impl Iterator<Item = u64> {
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

    /// Principals that have said their names over a path: at most
    /// [`MAX_PRINCIPALS`](crate::MAX_PRINCIPALS).
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

    /// How long this side's message of an exchange takes over a path, in seconds, and at the side
    /// that asks the answer to it: the bytes that there are, or that such messages have. What other
    /// paths to the peer have shown of the link counts too. `None` where the exchange or the path
    /// is not known.
    #[must_use]
    pub fn expected_s(&self, exchange: ExchangeId, path: PathId) -> Option<f64> {
        let (one, path) = (self.exchanges.get(&exchange)?, self.paths.get(&path)?);
        let is_other = |other: &&Path| other.known.peer == path.known.peer && other.id != path.id;
        let others = self.paths.values().filter(is_other);
        Some(Known { core: &self.core, path: Some(path), one }.expected_s(others))
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

    /// Takes a dictionary or a schema that [`Output::Store`](crate::api::Output::Store) gave to
    /// keep under this name; of several the one that was used last comes last. It is used again
    /// once it is agreed with the peer anew.
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
