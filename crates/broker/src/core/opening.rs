//! A client comes.

use std::sync::Arc;
use std::time::Duration;

use super::closing::publish_will;
use super::publishing::{check_publish, leaves};
use super::{Core, Deadline, federating};
use crate::change::Change;
use crate::event::{Drop, Event};
use crate::ids::{ClientKey, ConnectionId, Protocol, SessionId};
use crate::refusal::Refusal;
use crate::session::{Session, Will};

/// How long a session is kept that has no end of its own.
const NEVER: Duration = Duration::from_secs(u32::MAX as u64);

/// Who comes, and what for.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Who.
    pub client: ClientKey,
    /// By which connection.
    pub connection: ConnectionId,
    /// The user that it has shown to be.
    pub user: Option<Arc<str>>,
    /// What it left is of no interest to it.
    pub clean: bool,
    /// How long its session is to be kept when the connection has ended; at most the setting.
    pub expiry: Duration,
    /// Messages of grade 1 and 2 that it takes without having acknowledged one; at most the
    /// setting.
    pub window: u16,
    /// What is published when it is gone without a word.
    pub will: Option<Will>,
}

/// It has a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The session.
    pub session: SessionId,
    /// It is the one that the client left.
    pub present: bool,
    /// How long it is kept, where that is not what was asked.
    pub expiry: Duration,
    /// A connection that had it and has it no more; its adapter is to end it.
    pub displaced: Option<ConnectionId>,
}

impl Core {
    /// Gives a client its session.
    ///
    /// # Errors
    /// [`Refusal::Quota`] for sessions, [`Refusal::Closing`], what a will's topic may be refused
    /// for, and [`Refusal::NotAuthorized`] if the session is of another partner of the federation.
    pub fn open(&mut self, now: Duration, opening: Opening) -> Result<Opened, Refusal> {
        if self.is_closing {
            return Err(Refusal::Closing);
        }
        if let Some(will) = &opening.will {
            let (user, name) = (opening.user.as_deref(), &opening.client.name);
            check_publish(self, Some((user, name)), &will.publication)?;
        }
        let found = self.sessions.find(&opening.client);
        if found.is_none() && self.sessions.len() >= self.settings.max_sessions {
            let limit = self.settings.max_sessions as u64;
            return Err(Refusal::Quota { what: "max_sessions", limit });
        }
        if found.is_some_and(|id| federating::is_of_another(self, id, &opening)) {
            return Err(Refusal::NotAuthorized);
        }
        // What the operator has set up stays.
        let is_own = opening.client.protocol == Protocol::Bridge;
        let max = if is_own { NEVER } else { self.settings.max_session_expiry };
        let expiry = opening.expiry.min(max);
        let displaced = found.and_then(|id| displace(self, now, id, opening.clean));
        let kept = found.filter(|_| !opening.clean);
        if let (Some(id), true) = (found, opening.clean) {
            self.end(now, id);
        }
        let id = kept.unwrap_or_else(|| {
            let user = opening.user.clone();
            self.sessions.insert(Session::new(opening.client.clone(), user, expiry))
        });
        attach(self, id, &opening, expiry);
        federating::withhold(self, now, id);
        set_aside(self, now, id);
        self.timers.set(Deadline::End(id), None);
        self.timers.set(Deadline::Will(id), None);
        self.telling.counts.connected += 1;
        self.telling.counts.opened += 1;
        let (client, connection) = (opening.client, opening.connection);
        self.tell(Event::Opened { client, connection, resumed: kept.is_some() });
        self.poke(id);
        Ok(Opened { session: id, present: kept.is_some(), expiry, displaced })
    }
}

/// Takes a session from the connection that it has, if it has one, and sees to its will: it is
/// published unless the client is back within the will's delay (MQTT 5 §3.1.3.2.2).
fn displace(core: &mut Core, now: Duration, id: SessionId, clean: bool) -> Option<ConnectionId> {
    let session = core.sessions.get_mut(id)?;
    let displaced = session.connection.take();
    let is_due = |will: &Will| clean || will.delay.is_zero();
    let will = session.will.take().filter(|will| is_due(will));
    if displaced.is_some() {
        core.telling.counts.connected = core.telling.counts.connected.saturating_sub(1);
    }
    if let Some(will) = will {
        publish_will(core, now, id, *will);
    }
    displaced
}

/// What waits leaves slowly, where the operator wants that. Clients of other protocols ask for what
/// waits, and are told that there is no more once they have it.
fn set_aside(core: &mut Core, now: Duration, id: SessionId) {
    let Some(interval) = core.settings.drain_interval() else { return };
    let Some(session) = core.sessions.get_mut(id) else { return };
    if !matches!(session.key.protocol, Protocol::Mqtt | Protocol::Bridge) {
        return;
    }
    for superseded in session.queue.set_aside(now, interval) {
        leaves(core, id, &superseded, Drop::Superseded);
    }
}

fn attach(core: &mut Core, id: SessionId, opening: &Opening, expiry: Duration) {
    let max = core.settings.max_inflight.max(1);
    let is_durable = core.journal.is_durable() && !expiry.is_zero();
    let principal = core.principals.of(&opening.client, opening.user.as_ref());
    let Some(session) = core.sessions.get_mut(id) else { return };
    let changed = session.expiry != expiry || !session.stored || session.user != opening.user;
    session.connection = Some(opening.connection);
    session.user = opening.user.clone();
    session.principal = principal;
    session.is_asleep = false;
    session.window = opening.window.clamp(1, max);
    session.will = opening.will.clone().map(Box::new);
    session.inflight.repeat();
    session.expiry = expiry;
    if is_durable && changed {
        session.stored = true;
        let client = session.key.clone();
        let user = session.user.clone();
        core.journal.add(Change::Session { client, user, expiry });
    }
}
