//! What all protocols share: sessions, who has subscribed to what, retained messages, and what
//! waits for whom.

mod closing;
mod compact;
mod federating;
mod journal;
mod notes;
mod opening;
mod publishing;
mod restoring;
mod subscribing;
mod sys;
mod taking;
mod telling;
#[cfg(test)]
mod tests;
mod waking;
mod watching;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use proto::timers::Timers;

use crate::event::Drop;
use crate::federation::Meters;
use crate::forms::{For, FormCache};
use crate::ids::{ClientKey, ConnectionId, Principals, Protocol, SessionId, Ticket};
use crate::index::Index;
use crate::publication::Publication;
use crate::retained::{Retained, Step};
use crate::rules::Passages;
use crate::session::{Session, Sessions};
use crate::settings::Settings;

pub(crate) use federating::federation_refused;
pub(crate) use journal::Journal;
pub use opening::{Opened, Opening};
pub use publishing::Accepted;
use publishing::leaves;
pub(crate) use publishing::publish_of_mesh;
pub(crate) use taking::peer_forgot;
pub use taking::{Delivery, Next, Outstanding};
use telling::Telling;
pub(crate) use telling::{
    Toward, explain, tell_dropped_for, tell_sent, tell_toward, tell_unchosen,
};
use watching::Watch;
pub(crate) use watching::{Seen, seen, set_wanted, watch};

/// Something that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deadline {
    /// A client has been away for its will's delay.
    Will(SessionId),
    /// A client has been away for so long that its session ends.
    End(SessionId),
    /// The next of what waited while a client was away may leave.
    Drain(SessionId),
    /// What has expired is looked for.
    Sweep,
    /// The topics below `$SYS` are published.
    Sys,
}

/// How much a broker holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Sessions, with a connection or without.
    pub sessions: usize,
    /// Their subscriptions.
    pub subscriptions: usize,
    /// Topics with a retained message.
    pub retained: usize,
    /// What these take.
    pub retained_bytes: usize,
    /// What waits for all sessions takes.
    pub queued_bytes: usize,
}

/// See the module. Adapters of protocols call it; whoever has something to take afterwards is in
/// [`Core::next_ready`].
#[derive(Debug)]
pub struct Core {
    settings: Settings,
    sessions: Sessions,
    index: Index,
    retained: Retained,
    passages: Passages,
    timers: Timers<Deadline>,
    ready: VecDeque<SessionId>,
    /// Changes on their way to the store, and what it had of adapters.
    pub(crate) journal: Journal,
    telling: Telling,
    /// Publications in the forms that they leave in.
    form_cache: FormCache,
    /// The number of the last publication.
    last_id: u64,
    /// Whose turn it is in groups.
    turn: usize,
    /// What waits for all sessions together.
    total_bytes: usize,
    /// When the broker began, for `$SYS`.
    started: Option<Duration>,
    is_closing: bool,
    /// What of the federation's flows has come, and what was refused.
    meters: Meters,
    /// Whose words publications are.
    pub(crate) principals: Principals,
    /// What a mesh is told, where there is one.
    watch: Option<Box<Watch>>,
}

impl Core {
    /// A broker that holds nothing.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            journal: Journal::new(settings.durable),
            settings,
            sessions: Sessions::default(),
            index: Index::default(),
            retained: Retained::default(),
            passages: Passages::default(),
            timers: Timers::default(),
            ready: VecDeque::new(),
            telling: Telling::default(),
            form_cache: FormCache::default(),
            last_id: 0,
            principals: Principals::default(),
            turn: 0,
            total_bytes: 0,
            started: None,
            is_closing: false,
            watch: None,
            meters: Meters::default(),
        }
    }

    /// What the operator has set.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Takes settings that changed; what is there already stays, also over new bounds.
    pub fn set_settings(&mut self, settings: Settings) {
        if settings.federation != self.settings.federation {
            self.meters.renumber();
        }
        self.settings = Settings { durable: self.settings.durable, ..settings };
        self.form_cache.clear();
        self.telling.trails.keep(self.settings.explain.max);
        let interval = self.settings.drain_interval();
        let has_backlog =
            |(id, session): (SessionId, &Session)| session.queue.has_backlog().then_some(id);
        let all: Vec<SessionId> = self.sessions.iter().filter_map(has_backlog).collect();
        for id in all {
            let Some(session) = self.sessions.get_mut(id) else { continue };
            for old in session.queue.hasten(interval) {
                leaves(self, id, &old, Drop::Superseded);
            }
            self.poke(id);
        }
    }

    /// How much it holds.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        Sizes {
            sessions: self.sessions.len(),
            subscriptions: self.index.len(),
            retained: self.retained.len(),
            retained_bytes: self.retained.bytes(),
            queued_bytes: self.total_bytes,
        }
    }

    /// The retained message of a topic, if it is of use.
    #[must_use]
    pub fn retained_at(&self, now: Duration, topic: &str) -> Option<&Arc<Publication>> {
        self.retained.get(topic).filter(|publication| !publication.is_expired(now))
    }

    /// The topics that have a retained message, in the order of their bytes.
    pub fn retained_topics(&self) -> impl Iterator<Item = &Arc<str>> {
        self.retained.topics()
    }

    /// Messages that wait for a session and how many are under way to it.
    #[must_use]
    pub fn waiting(&self, session: SessionId) -> (usize, usize) {
        let session = self.sessions.get(session);
        session.map_or((0, 0), |session| (session.queue.len(), session.inflight.len()))
    }

    /// The sessions of a protocol's clients, and whose they are.
    pub fn sessions_of(&self, protocol: Protocol) -> impl Iterator<Item = (SessionId, &ClientKey)> {
        let all = self.sessions.iter().map(|(id, session)| (id, &session.key));
        all.filter(move |(_, key)| key.protocol == protocol)
    }

    /// Whose a session is.
    #[must_use]
    pub fn client(&self, session: SessionId) -> Option<&ClientKey> {
        self.sessions.get(session).map(|session| &session.key)
    }

    /// The user that a session was opened as.
    #[must_use]
    pub fn user(&self, session: SessionId) -> Option<&Arc<str>> {
        self.sessions.get(session)?.user.as_ref()
    }

    /// The next connection whose session has something to take. It comes again when there is
    /// something after [`Core::take`] had said that there is nothing, or by [`Core::poke`].
    pub fn next_ready(&mut self) -> Option<(SessionId, ConnectionId)> {
        while let Some(id) = self.ready.pop_front() {
            let Some(session) = self.sessions.get_mut(id) else { continue };
            session.is_ready = false;
            if let Some(connection) = session.connection
                && !session.is_asleep
            {
                return Some((id, connection));
            }
        }
        None
    }

    /// Puts a session into the list of those that have something, if it has.
    pub fn poke(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if !session.is_ready
            && session.connection.is_some()
            && !session.is_asleep
            && session.has_something()
        {
            session.is_ready = true;
            self.ready.push_back(id);
        }
    }

    /// Whether the client takes nothing for the time being, though it is there (MQTT-SN 1.2 §6.14).
    /// What is published for it waits, of every grade.
    pub fn set_asleep(&mut self, id: SessionId, is_asleep: bool) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.is_asleep = is_asleep;
        }
        self.poke(id);
    }

    /// Nothing new is taken from now on.
    pub fn set_closing(&mut self) {
        self.is_closing = true;
    }

    /// Changes up to a ticket have been written.
    pub fn persisted(&mut self, ticket: Ticket) {
        self.journal.committed(ticket);
        for id in self.journal.take_blocked() {
            self.poke(id);
        }
    }

    /// Retained messages of the topics that a filter fits, at most so many: for those who have no
    /// session that would get them as it takes.
    #[must_use]
    pub fn retained_for(&self, now: Duration, filter: &str, max: usize) -> Vec<Arc<Publication>> {
        let (mut found, mut after) = (Vec::new(), None);
        while found.len() < max {
            match self.retained.step(now, filter, after.as_ref()) {
                Step::Found(publication) => {
                    after = Some(publication.topic.clone());
                    found.push(publication);
                }
                Step::More(topic) => after = Some(topic),
                Step::End => break,
            }
        }
        found
    }

    /// When something is due.
    #[must_use]
    pub fn wake_at(&self) -> Option<Duration> {
        self.timers.next()
    }
}

pub(super) fn session_of(
    core: &mut Core,
    id: SessionId,
    connection: ConnectionId,
) -> Option<&mut Session> {
    core.sessions.get_mut(id).filter(|session| session.connection == Some(connection))
}

/// The time, by which everything about publications is remembered that follows.
pub(crate) fn set_now(core: &mut Core, now: Duration) {
    core.telling.trails.set_now(now);
    core.form_cache.set_now(now);
}

/// A publication in the form in which it leaves for somebody who has no session.
pub(crate) fn convert(
    core: &mut Core,
    receiver: For<'_>,
    publication: &Arc<Publication>,
) -> Arc<Publication> {
    let converted = core.form_cache.convert(&core.settings.forms, receiver, publication);
    converted.map_or_else(|| publication.clone(), |converted| converted.publication)
}

/// The same for who has a session and gets it beside that.
pub(crate) fn convert_for(
    core: &mut Core,
    id: SessionId,
    publication: &Arc<Publication>,
) -> Arc<Publication> {
    let Some(session) = core.sessions.get(id) else { return publication.clone() };
    let receiver = For::client(&session.key, session.user.as_deref());
    let converted = core.form_cache.convert(&core.settings.forms, receiver, publication);
    converted.map_or_else(|| publication.clone(), |converted| converted.publication)
}
