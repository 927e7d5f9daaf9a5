//! What adapters keep with a session, and wills that change.

use std::sync::Arc;

use bytes::Bytes;

use super::Core;
use super::publishing::check_publish;
use crate::change::Change;
use crate::ids::{ClientKey, Protocol, SessionId};
use crate::refusal::Refusal;
use crate::session::{Session, Will};

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
            let (protocol, key) = (session.key.protocol, record(&session.key.name, number));
            self.journal.add(Change::Kept { protocol, key, value });
        }
    }

    /// What is kept with a session, by number.
    pub fn notes(&self, id: SessionId) -> impl Iterator<Item = (u32, &Bytes)> {
        let notes = self.sessions.get(id).into_iter().flat_map(|session| &session.notes);
        notes.map(|(number, value)| (*number, value))
    }

    /// Takes what the store has kept with the sessions of a protocol that keeps nothing else.
    /// Returns how many records were of none; these are kept no more.
    pub fn restore_notes(&mut self, protocol: Protocol) -> usize {
        let mut unknown = 0;
        for (key, value) in self.journal.take_kept(protocol) {
            let number = key.split_once(' ').and_then(|(number, name)| {
                let client = ClientKey { protocol, name: name.into() };
                Some((number.parse().ok()?, self.sessions.find(&client)?))
            });
            match number.and_then(|(number, id)| Some((number, self.sessions.get_mut(id)?))) {
                Some((number, session)) => {
                    session.notes.insert(number, value);
                }
                None => {
                    unknown += 1;
                    self.journal.keep(protocol, key, None);
                }
            }
        }
        unknown
    }

    /// Replaces what is published when a client with a connection is gone without a word.
    ///
    /// # Errors
    /// What the will's topic may be refused for; the one before then stands.
    pub fn set_will(&mut self, id: SessionId, will: Option<Will>) -> Result<(), Refusal> {
        let Some(session) = self.sessions.get(id) else { return Err(Refusal::Closing) };
        if let Some(will) = &will {
            let (user, name) = (session.user.as_deref(), &session.key.name);
            check_publish(self, Some((user, name)), &will.publication)?;
        }
        if let Some(session) = self.sessions.get_mut(id) {
            session.will = will.map(Box::new);
        }
        Ok(())
    }
}

/// What was kept with a session that has ended is kept no more.
pub(super) fn forget_notes(core: &mut Core, session: &Session) {
    for number in session.notes.keys() {
        core.journal.keep(session.key.protocol, record(&session.key.name, *number), None);
    }
}

/// What a note is called in the store.
fn record(client: &str, number: u32) -> Arc<str> {
    format!("{number} {client}").into()
}
