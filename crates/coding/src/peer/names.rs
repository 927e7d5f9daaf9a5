//! Names of edges and principals, by which they are known when they come again.

use codec::dictionary::Id;
use proto::control::Keeping;

use super::Peer;
use crate::kept::lasting::{NAMED, Principal, lasts, of_instance, remember};

impl Peer<'_> {
    /// The peer is connected: an edge says who it was before.
    pub(crate) fn introduce(&mut self, instance: u64) {
        if self.core.config.answers() {
            self.path.scope = Some(of_instance(&self.path.peer, instance));
        } else if self.core.config.secret.is_some()
            && self.path.knows_dictionaries()
            && let Some(name) = self.path.scope
            && !std::mem::replace(&mut self.path.names.is_introduced, true)
        {
            self.send(Keeping::Name { principal: 0, name }.part());
        }
        if !self.path.abilities.early {
            self.greet_offers();
        }
    }

    /// Edge: says by which name a principal is known, once on each path.
    pub(crate) fn introduce_principal(&mut self, who: Principal) {
        let Principal { number: principal, known_as: name } = who;
        let goes = name & NAMED != 0 && self.path.knows_dictionaries();
        if goes && remember(&mut self.path.names.of, principal, name) != Some(name) {
            self.send(Keeping::Name { principal, name }.part());
        }
    }

    /// Gateway: an edge has said a name.
    pub(crate) fn named(&mut self, principal: u64, name: u64) {
        let name = name | NAMED;
        if principal != 0 {
            remember(&mut self.path.names.of, principal, name);
            return;
        }
        if lasts(self.path.scope) {
            return self.ignore("name", "the edge has said another before");
        }
        let both = Id::of(&[self.path.peer.as_bytes(), &name.to_be_bytes()].concat());
        self.path.scope = Some(u64::from_be_bytes(both.short()) | NAMED);
        self.greet_offers();
    }
}
