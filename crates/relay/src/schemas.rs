//! Schemas of peers: with them this side reads what it could not, and answers in kind where its own
//! service names none.
//!
//! A schema is offered to who could not read a message that was coded with it, and goes to who
//! wants it as dictionaries do ([`crate::dictionaries`]). Whoever gets one compiles it itself, off
//! the actor's thread, and only then says that it is held. At most [`MOST_HELD`] are, of up to
//! 8 MiB each; most take less than one.

use std::collections::VecDeque;
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
use crate::lasting::name_of_schema;

/// Schemas that are held for peers.
const MOST_HELD: usize = 8;
/// Those of one peer: none drives out all that others have sent.
const MOST_OF_A_PEER: usize = 4;
/// In events.
const WHAT: &str = "schema";

/// A peer's.
#[derive(Debug)]
struct Theirs {
    scope: u64,
    vocabulary: Arc<Vocabulary>,
}

/// Those of all peers; the one that came last stands last.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    held: VecDeque<Theirs>,
}

impl Schemas {
    /// The one of this name, whoever sent it: a name is of what is in it.
    fn any(&self, name: [u8; 8]) -> Option<&Arc<Vocabulary>> {
        self.held.iter().map(|one| &one.vocabulary).find(|one| one.name() == Some(name))
    }

    /// The one of this name, if it is ready.
    pub(crate) fn find(&self, name: [u8; 8]) -> Option<&Arc<Vocabulary>> {
        self.any(name).filter(|one| one.is_prepared())
    }

    /// Gives one up; whose it was.
    fn remove(&mut self, name: [u8; 8]) -> Option<u64> {
        let at = self.held.iter().position(|one| one.vocabulary.name() == Some(name))?;
        self.held.remove(at).map(|one| one.scope)
    }

    /// Holds a peer's; the one that went for it, and of which peer.
    pub(crate) fn hold(
        &mut self,
        scope: u64,
        vocabulary: Arc<Vocabulary>,
    ) -> Option<(u64, Arc<Vocabulary>)> {
        let theirs = |one: &Theirs| one.scope == scope;
        let of_peer = self.held.iter().filter(|one| theirs(one)).count();
        let gone = match self.held.iter().position(theirs) {
            Some(at) if of_peer >= MOST_OF_A_PEER => self.held.remove(at),
            _ if self.held.len() >= MOST_HELD => self.held.pop_front(),
            _ => None,
        };
        self.held.push_back(Theirs { scope, vocabulary });
        gone.map(|one| (one.scope, one.vocabulary))
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
        carrier.shelf.schemas.insert(name, Arc::clone(vocabulary));
        self.greet_shelf(now, id);
    }

    /// The peer holds a schema: what could not be read before can be now.
    pub(crate) fn schema_held(&mut self, id: CarrierId, name: [u8; 8]) {
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        if !carrier.shelf.schemas.contains_key(&name) {
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
        if self.schema(name).is_some() {
            self.send(now, id, Keeping::Held { id: name }.frame());
            return;
        }
        if let Some(vocabulary) = self.schemas.any(name).cloned() {
            // Of an earlier start.
            return self.compile(now, id, vocabulary);
        }
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        carrier.shelf.coming = Some(Coming::new(name, true, bytes));
        self.send(now, id, Keeping::Want { id: name }.frame());
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
        let Some((scope, name)) = carrier.scope.zip(vocabulary.name()) else { return };
        if let Err(error) = result {
            // Where it was kept, it comes anew on the next carrier.
            let of = self.schemas.remove(name);
            self.dictionaries.gone.extend(of.map(|scope| name_of_schema(scope, name)));
            return self.ignore(now, id, WHAT, &error.to_string());
        }
        if self.schemas.any(name).is_none() {
            self.store_schema(scope, &vocabulary);
            if let Some((of, gone)) = self.schemas.hold(scope, vocabulary) {
                self.dictionaries.gone.extend(gone.name().map(|name| name_of_schema(of, name)));
                let limit = "schemas of peers".to_owned();
                let consequence = "the oldest is forgotten".to_owned();
                self.event(now, Fact::LimitReached { limit, consequence });
            }
        }
        self.send(now, id, Keeping::Held { id: name }.frame());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_peer_drives_out_all_that_another_sent() {
        let mut all = Schemas::default();
        let schema = |number: u8| Arc::new(Vocabulary::of_parcel([number; 8], vec![number]));
        assert!((0..3).all(|number| all.hold(1, schema(number)).is_none()));
        assert!((3..7).all(|number| all.hold(2, schema(number)).is_none()));
        let gone = (7..100).map(|number| all.hold(2, schema(number)));
        assert!(gone.into_iter().all(|gone| gone.is_some_and(|(of, _)| of == 2)));
        assert!((0..3).all(|number| all.any([number; 8]).is_some()));
        assert!((96..100).all(|number| all.any([number; 8]).is_some()));
        assert!(all.find([99; 8]).is_none(), "it is not ready");
        // Of many peers the latest are held.
        let gone = (100..110).filter_map(|number| all.hold(number.into(), schema(number)));
        assert_eq!(gone.count(), 9);
        assert_eq!(all.held.len(), MOST_HELD);
    }
}
