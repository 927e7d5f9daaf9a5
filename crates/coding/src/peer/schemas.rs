//! Schemas on their way to the peer and from it.

use std::sync::Arc;

use codec::Options;
use codec::infoset::SchemaContext;
use proto::control::Keeping;

use super::Peer;
use crate::api::Output;
use crate::core::Core;
use crate::job::{Job, Prepare};
use crate::kept::lasting::{self, name_of_schema};
use crate::path::offers::Coming;

/// In events.
const WHAT: &str = "schema";

/// The schema of this name, of a service here or of a peer's.
pub(crate) fn find(core: &Core, name: [u8; 8]) -> Option<&Arc<SchemaContext>> {
    let mut own = core.config.services.iter().filter_map(|service| service.infoset.as_ref());
    own.find(|one| one.name() == Some(name)).or_else(|| core.schemas.find(name))
}

impl Peer<'_> {
    /// The peer could not read a message of a service: it may want its schema.
    pub(super) fn offer_schema(&mut self, service: usize) {
        let service = self.core.config.services.get(service);
        let schema_context = service.and_then(|service| service.infoset.as_ref());
        let Some(schema_context) = schema_context.filter(|one| one.parcel().is_some()) else {
            return;
        };
        let Some(name) = schema_context.name() else { return };
        self.path.offers.lacks(name, schema_context);
        self.greet_offers();
    }

    /// The peer holds a schema: what could not be read before can be now.
    pub(super) fn schema_held(&mut self, name: [u8; 8]) {
        if !self.path.offers.is_schema(name) {
            return;
        }
        for (at, service) in self.core.config.services.iter().enumerate() {
            if service.infoset.as_ref().is_some_and(|one| one.name() == Some(name)) {
                self.path.texts.read_again(at, Options::EXI_SCHEMA);
            }
        }
    }

    /// The peer has a schema, and encoded a message with it.
    pub(super) fn schema_offered(&mut self, name: [u8; 8], bytes: u64) {
        if !self.core.config.services.iter().any(|service| service.infoset.is_some()) {
            return self.ignore(WHAT, "no service here is set to fidelity 'infoset'");
        }
        let held = find(self.core, name).or_else(|| self.core.schemas.any(name)).cloned();
        match held {
            Some(schema_context) if schema_context.is_prepared() => {
                self.have_schema(&schema_context)
            }
            // Of an earlier start.
            Some(schema_context) => self.compile(schema_context),
            None if self.path.offers.refuses_schemas => {
                self.ignore(WHAT, "one of the peer's was none before");
            }
            None => {
                self.path.offers.coming = Some(Coming::new(name, true, bytes));
                self.send(Keeping::Want { id: name }.part());
            }
        }
    }

    /// A schema that the peer has is held here: that of a service, or one that some peer sent,
    /// which is held for this one too from now on.
    fn have_schema(&mut self, schema_context: &Arc<SchemaContext>) {
        let Some(name) = schema_context.name() else { return };
        let peer = self.path.known.peer;
        if self.core.schemas.used(peer, name) {
            self.core.outputs.push_back(Output::Used { name: name_of_schema(peer, name) });
        } else if self.core.schemas.any(name).is_some() {
            self.keep_schema(schema_context);
        }
        self.send(Keeping::Held { id: name }.part());
    }

    fn keep_schema(&mut self, schema_context: &Arc<SchemaContext>) {
        let peer = self.path.known.peer;
        if let Some((name, bytes)) = lasting::schema(peer, schema_context) {
            self.core.store(name, bytes);
        }
        let gone = self.core.schemas.hold(peer, Arc::clone(schema_context));
        let Some((owner, gone)) = gone else { return };
        let name = gone.name().map(|name| name_of_schema(owner, name));
        self.core.dictionaries.gone.extend(name);
        if owner != peer {
            let consequence = "the one longest unused is forgotten";
            self.core.limit_reached("schemas of peers", consequence);
        }
    }

    /// Has a schema of the peer's made ready.
    pub(super) fn compile(&mut self, schema_context: Arc<SchemaContext>) {
        if self.path.offers.compiling.is_some() {
            return self.ignore(WHAT, "another of the peer's is being made ready");
        }
        self.path.offers.compiling = Some(Arc::clone(&schema_context));
        let path = self.path.id;
        self.core.job(Job::Prepare(Prepare::Schema { path, schema_context }));
    }

    /// A schema of the peer's is ready, or was none.
    pub(crate) fn compiled(&mut self, result: Result<(), codec::Error>) {
        let Some(schema_context) = self.path.offers.compiling.take() else { return };
        let Some(name) = schema_context.name() else { return };
        if let Err(error) = result {
            // Where it was kept, it comes anew on the next path.
            self.path.offers.refuses_schemas = true;
            let owners = self.core.schemas.give_up(name);
            let keys = owners.into_iter().map(|owner| name_of_schema(owner, name));
            self.core.dictionaries.gone.extend(keys);
            return self.ignore(WHAT, &error.to_string());
        }
        if self.core.schemas.any(name).is_none() {
            self.keep_schema(&schema_context);
        }
        self.have_schema(&schema_context);
    }
}
