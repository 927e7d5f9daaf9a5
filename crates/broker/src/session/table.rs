//! All sessions, by number and by whose they are.

use std::collections::BTreeMap;

use super::Session;
use crate::ids::{ClientKey, SessionId};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    slots: Vec<Option<Box<Session>>>,
    free: Vec<SessionId>,
    by_key: BTreeMap<ClientKey, SessionId>,
}

impl Sessions {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whose session it is.
    pub(crate) fn find(&self, key: &ClientKey) -> Option<SessionId> {
        self.by_key.get(key).copied()
    }

    /// A session.
    pub(crate) fn get(&self, id: SessionId) -> Option<&Session> {
        self.slots.get(id.index())?.as_deref()
    }

    /// A session, to be changed.
    pub(crate) fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.slots.get_mut(id.index())?.as_deref_mut()
    }

    /// Adds one.
    pub(crate) fn insert(&mut self, session: Session) -> SessionId {
        let key = session.key.clone();
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            SessionId(u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX))
        });
        if let Some(slot) = self.slots.get_mut(id.index()) {
            *slot = Some(Box::new(session));
        }
        self.by_key.insert(key, id);
        id
    }

    /// Takes one out.
    pub(crate) fn remove(&mut self, id: SessionId) -> Option<Box<Session>> {
        let session = self.slots.get_mut(id.index())?.take()?;
        self.by_key.remove(&session.key);
        self.free.push(id);
        Some(session)
    }

    /// All.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        self.by_key.values().filter_map(|id| self.get(*id).map(|session| (*id, session)))
    }
}
