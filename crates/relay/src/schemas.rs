//! Schemas of peers: with them this side reads what it could not, and answers in kind where its own
//! service names none.
//!
//! A schema is offered to who could not read a message that was coded with it, and goes to who
//! wants it as dictionaries do ([`crate::dictionaries`]). Whoever gets one compiles it itself, off
//! the actor's thread, and only then says that it is held. At most [`MAX_HELD`] are, of up to
//! 8 MiB each; most take less than one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use codec::Options;
use codec::infoset::Vocabulary;
use proto::stream::Keeping;
use record::event::Fact;

use crate::Relay;
use crate::api::{CarrierId, ExchangeId, Output, Work, WorkDirection};
use crate::dictionaries::Coming;
use crate::held::Held;
use crate::lasting::name_of_schema;

/// Schemas that are held for peers.
const MAX_HELD: usize = 8;
/// Those of one peer: none drives out all that others have sent.
const MAX_OF_A_PEER: usize = 4;
/// In events.
const WHAT: &str = "schema";

/// Those of all peers.
#[derive(Debug, Default)]
pub(crate) struct Schemas(Held<Arc<Vocabulary>, MAX_HELD, MAX_OF_A_PEER>);

impl Schemas {
    /// The one of this name, whoever sent it: a name is of what is in it.
    fn any(&self, name: [u8; 8]) -> Option<&Arc<Vocabulary>> {
        self.0.iter().map(|(_, one)| one).find(|one| one.name() == Some(name))
    }

    /// The one of this name, if it is ready.
    pub(crate) fn find(&self, name: [u8; 8]) -> Option<&Arc<Vocabulary>> {
        let mut all = self.0.iter().map(|(_, one)| one);
        all.find(|one| one.name() == Some(name) && one.is_prepared())
    }

    /// A peer counts on the one of this name; `false`: it is none of what that peer sent.
    fn used(&mut self, peer: u64, name: [u8; 8]) -> bool {
        self.0.used(|owner, one| owner == peer && one.name() == Some(name)).is_some()
    }

    /// Holds one for a peer; the one that went for it, and of which peer.
    pub(crate) fn hold(
        &mut self,
        peer: u64,
        vocabulary: Arc<Vocabulary>,
    ) -> Option<(u64, Arc<Vocabulary>)> {
        self.0.hold(peer, vocabulary)
    }
}

impl Relay {
    /// The schema of this name, of a service here or of a peer's.
    pub(crate) fn schema(&self, name: [u8; 8]) -> Option<&Arc<Vocabulary>> {
        let mut own = self.config.services.iter().filter_map(|service| service.infoset.as_ref());
        own.find(|one| one.name() == Some(name)).or_else(|| self.schemas.find(name))
    }

    /// The peer could not read a message of a service: it may want its schema.
    pub(crate) fn offer_schema(&mut self, now: Duration, id: CarrierId, service: usize) {
        let service = self.config.services.get(service);
        let vocabulary = service.and_then(|service| service.infoset.as_ref());
        let Some(vocabulary) = vocabulary.filter(|one| one.parcel().is_some()) else { return };
        let Some((name, carrier)) = vocabulary.name().zip(self.carriers.get_mut(&id)) else {
            return;
        };
        carrier.shelf.lacks(name, vocabulary);
        self.greet_shelf(now, id);
    }

    /// The peer holds a schema: what could not be read before can be now.
    pub(crate) fn schema_held(&mut self, id: CarrierId, name: [u8; 8]) {
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        if !carrier.shelf.is_schema(name) {
            return;
        }
        for (at, service) in self.config.services.iter().enumerate() {
            if service.infoset.as_ref().is_some_and(|one| one.name() == Some(name)) {
                carrier.texts.read_again(at, Options::EXI_SCHEMA);
            }
        }
    }

    /// A peer has a schema, and coded a message with it.
    pub(crate) fn schema_offered(
        &mut self,
        now: Duration,
        id: CarrierId,
        name: [u8; 8],
        bytes: u64,
    ) {
        if !self.config.services.iter().any(|service| service.infoset.is_some()) {
            return self.ignore(now, id, WHAT, "no service here is set to fidelity 'infoset'");
        }
        let held = self.schema(name).or_else(|| self.schemas.any(name)).cloned();
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        match held {
            Some(vocabulary) if vocabulary.is_prepared() => self.have_schema(now, id, &vocabulary),
            // Of an earlier start.
            Some(vocabulary) => self.compile(now, id, vocabulary),
            None if carrier.shelf.refuses_schemas => {
                self.ignore(now, id, WHAT, "one of the peer's was none before");
            }
            None => {
                carrier.shelf.coming = Some(Coming::new(name, true, bytes));
                self.send(now, id, Keeping::Want { id: name }.frame());
            }
        }
    }

    /// A schema that a peer has is held here: that of a service, or one that some peer sent, which
    /// is held for this one too from now on.
    fn have_schema(&mut self, now: Duration, id: CarrierId, vocabulary: &Arc<Vocabulary>) {
        let Some(name) = vocabulary.name() else { return };
        let Some(peer) = self.carriers.get(&id).map(|carrier| carrier.peer_id) else { return };
        let key = name_of_schema(peer, name);
        if self.schemas.used(peer, name) {
            self.outputs.push_back(Output::Used { name: key });
        } else if self.schemas.any(name).is_some() {
            self.keep_schema(now, peer, vocabulary);
        }
        self.send(now, id, Keeping::Held { id: name }.frame());
    }

    fn keep_schema(&mut self, now: Duration, peer: u64, vocabulary: &Arc<Vocabulary>) {
        self.store_schema(peer, vocabulary);
        let Some((owner, gone)) = self.schemas.hold(peer, Arc::clone(vocabulary)) else { return };
        self.dictionaries.gone.extend(gone.name().map(|name| name_of_schema(owner, name)));
        if owner != peer {
            let limit = "schemas of peers".to_owned();
            let consequence = "the one longest unused is forgotten".to_owned();
            self.event(now, Fact::LimitReached { limit, consequence });
        }
    }

    /// Has a peer's schema made ready.
    pub(crate) fn compile(&mut self, now: Duration, id: CarrierId, vocabulary: Arc<Vocabulary>) {
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        if carrier.shelf.compiling.is_some() {
            return self.ignore(now, id, WHAT, "another of the peer's is being made ready");
        }
        carrier.shelf.compiling = Some(Arc::clone(&vocabulary));
        let exchange = ExchangeId { instance: self.config.instance, number: 0 };
        let (direction, bytes) = (WorkDirection::Compile, Bytes::new());
        let work = Work::of_one_block(exchange, direction, id.0, bytes, None);
        let vocabulary = Some(vocabulary);
        self.outputs.push_back(Output::Work(Work { vocabulary, ..work }));
    }

    /// A peer's schema is ready, or was none.
    pub(crate) fn compile_done(
        &mut self,
        now: Duration,
        block: u64,
        result: Result<Bytes, codec::Error>,
    ) {
        let id = CarrierId(block);
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        let Some(vocabulary) = carrier.shelf.compiling.take() else { return };
        let (peer, Some(name)) = (carrier.peer_id, vocabulary.name()) else { return };
        if let Err(error) = result {
            // Where it was kept, it comes anew on the next carrier.
            carrier.shelf.refuses_schemas = true;
            let owners =
                self.schemas.0.remove(|one| one.name() == Some(name) && !one.is_prepared());
            let keys = owners.into_iter().map(|owner| name_of_schema(owner, name));
            self.dictionaries.gone.extend(keys);
            return self.ignore(now, id, WHAT, &error.to_string());
        }
        if self.schemas.any(name).is_none() {
            self.keep_schema(now, peer, &vocabulary);
        }
        self.have_schema(now, id, &vocabulary);
    }
}
