//! What adapters keep with a session, and wills that change.

use bytes::Bytes;

use super::Core;
use crate::change::Change;
use crate::ids::{ClientKey, SessionId};
use crate::refusal::Refusal;
use crate::session::Will;

impl Core {
    /// The session of a client, with a connection or without.
    #[must_use]
    pub fn find(&self, client: &ClientKey) -> Option<SessionId> {
        self.sessions.find(client)
    }

    /// Keeps something with a session under a number, or, `None`, forgets it. It lasts as long as
    /// the session and is in the store where that is; what it means is the protocol's, which also
    /// bounds how much it is.
    pub fn note(&mut self, id: SessionId, number: u32, value: Option<Bytes>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let before = match value.clone() {
            Some(value) => session.notes.insert(number, value),
            None => session.notes.remove(&number),
        };
        if before != value && session.stored {
            let client = session.key.clone();
            self.journal.add(Change::Noted { client, number, value });
        }
    }

    /// What is kept with a session, by number.
    pub fn notes(&self, id: SessionId) -> impl Iterator<Item = (u32, &Bytes)> {
        let notes = self.sessions.get(id).into_iter().flat_map(|session| &session.notes);
        notes.map(|(number, value)| (*number, value))
    }

    /// Replaces what is published when a client with a connection is gone without a word.
    ///
    /// # Errors
    /// What the will's topic may be refused for; the one before then stands.
    pub fn set_will(&mut self, id: SessionId, will: Option<Will>) -> Result<(), Refusal> {
        let Some(session) = self.sessions.get(id) else { return Err(Refusal::Closing) };
        if let Some(will) = &will {
            let (user, name) = (session.user.as_deref(), &session.key.name);
            self.check_publish(user, name, &will.publication)?;
        }
        if let Some(session) = self.sessions.get_mut(id) {
            session.will = will.map(Box::new);
        }
        Ok(())
    }
}
