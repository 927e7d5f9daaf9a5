//! Schemas of peers: with them this side reads what it could not, and answers in kind where its own
//! service names none.
//!
//! A schema is offered to who could not read a message that was coded with it, and goes to who
//! wants it as dictionaries do ([`super::dictionaries`]). Whoever gets one compiles it itself, off
//! the actor's thread, and only then says that it is held. At most [`MAX_HELD`] are, of up to
//! 8 MiB each; most take less than one.

use std::sync::Arc;

use codec::infoset::SchemaContext;

use super::held::Held;

/// Schemas that are held for peers.
const MAX_HELD: usize = 8;
/// Those of one peer: none drives out all that others have sent.
const MAX_OF_A_PEER: usize = 4;

/// Those of all peers.
#[derive(Debug, Default)]
pub(crate) struct Schemas(Held<Arc<SchemaContext>, MAX_HELD, MAX_OF_A_PEER>);

impl Schemas {
    /// The one of this name, whoever sent it: a name is of what is in it.
    pub(crate) fn any(&self, name: [u8; 8]) -> Option<&Arc<SchemaContext>> {
        self.0.iter().map(|(_, one)| one).find(|one| one.name() == Some(name))
    }

    /// The one of this name, if it is ready.
    pub(crate) fn find(&self, name: [u8; 8]) -> Option<&Arc<SchemaContext>> {
        let mut all = self.0.iter().map(|(_, one)| one);
        all.find(|one| one.name() == Some(name) && one.is_prepared())
    }

    /// A peer counts on the one of this name; `false`: it is none of what that peer sent.
    pub(crate) fn used(&mut self, peer: u64, name: [u8; 8]) -> bool {
        self.0.used(|owner, one| owner == peer && one.name() == Some(name)).is_some()
    }

    /// Holds one for a peer; the one that went for it, and of which peer.
    pub(crate) fn hold(
        &mut self,
        peer: u64,
        schema_context: Arc<SchemaContext>,
    ) -> Option<(u64, Arc<SchemaContext>)> {
        self.0.hold(peer, schema_context)
    }

    /// Gives up the one of this name, which is no schema; of which peers it was.
    pub(crate) fn give_up(&mut self, name: [u8; 8]) -> Vec<u64> {
        self.0.remove(|one| one.name() == Some(name) && !one.is_prepared())
    }
}
