//! What is told of what happens: events, counts, and what became of single publications.

use std::collections::VecDeque;
use std::fmt;

use record::publication::Publication as Facts;

use super::Core;
use crate::event::{Counts, Drop, Event};
use crate::explain::{Query, Sent, Trails};
use crate::ids::{ClientKey, SessionId};
use crate::publication::Publication;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Telling {
    pub(super) events: VecDeque<Event>,
    pub(super) counts: Counts,
    pub(super) trails: Trails,
}

impl Telling {
    /// Counts and tells that a publication has ended without delivery, to a client or, without one,
    /// to all.
    pub(super) fn dropped(
        &mut self,
        publication: &Publication,
        client: Option<ClientKey>,
        why: Drop,
        detail: fmt::Arguments<'_>,
    ) {
        if let Some(count) = self.counts.dropped.get_mut(why.index()) {
            *count += 1;
        }
        if publication.is_followed {
            self.trails.dropped(publication.id, client.as_ref(), why, detail);
        }
        let (id, topic) = (publication.id, publication.topic.clone());
        self.events.push_back(Event::Dropped { id, topic, client, why });
    }
}

impl Core {
    /// The next thing that happened.
    pub fn next_event(&mut self) -> Option<Event> {
        self.telling.events.pop_front()
    }

    /// What has been counted.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.telling.counts
    }

    /// Something happened in an adapter.
    pub fn tell(&mut self, event: Event) {
        if matches!(event, Event::Refused { .. }) {
            self.telling.counts.refused += 1;
        }
        self.telling.events.push_back(event);
    }

    /// A publication that an adapter cannot bring to a client.
    pub fn tell_dropped(&mut self, publication: &Publication, id: Option<SessionId>, why: Drop) {
        tell_dropped_for(self, publication, id, why, format_args!(""));
    }
}

/// The same as [`Core::tell_dropped`] with what was met and what is allowed, for who asks later.
pub(crate) fn tell_dropped_for(
    core: &mut Core,
    publication: &Publication,
    id: Option<SessionId>,
    why: Drop,
    detail: fmt::Arguments<'_>,
) {
    let client = id.and_then(|id| core.sessions.get(id)).map(|session| session.key.clone());
    let is_numbered = publication.id > 0;
    if is_numbered || !core.telling.trails.follows(&core.settings.explain, &publication.topic) {
        return core.telling.dropped(publication, client, why, detail);
    }
    // It never got as far as a number, but is remembered under one.
    core.last_id += 1;
    let mut publication = publication.clone();
    publication.id = core.last_id;
    let trails = &mut core.telling.trails;
    trails.begin(&core.settings.explain, &publication, client.as_ref(), None);
    trails.dropped(publication.id, None, why, detail);
    core.telling.dropped(&publication, client, why, format_args!(""));
}

/// A subscriber does not want a publication that its subscription fits, for what it has asked
/// besides: that is no drop.
pub(crate) fn tell_unchosen(
    core: &mut Core,
    publication: &Publication,
    id: SessionId,
    why: &'static str,
) {
    if let Some(session) = core.sessions.get(id).filter(|_| publication.is_followed) {
        let key = Some(&session.key);
        core.telling.trails.ended(publication.id, key, why, format_args!(""));
    }
}

/// In which form an adapter has sent a publication that is followed.
pub(crate) fn tell_sent(core: &mut Core, publication: &Publication, id: SessionId, sent: Sent) {
    if let Some(session) = core.sessions.get(id).filter(|_| publication.is_followed) {
        core.telling.trails.sent(publication.id, &session.key, sent);
    }
}

/// How far a publication has come on its way to who has no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Toward {
    /// It waits.
    Waits,
    /// It was given.
    Given,
    /// It is there.
    Acknowledged,
    /// It ends.
    Dropped(Drop),
}

/// What becomes of a publication on its way to who has no session.
pub(crate) fn tell_toward(
    core: &mut Core,
    publication: &Publication,
    client: &ClientKey,
    toward: Toward,
) {
    let (trails, id) = (&mut core.telling.trails, publication.id);
    match toward {
        Toward::Dropped(why) => {
            core.telling.dropped(publication, Some(client.clone()), why, format_args!(""));
        }
        _ if !publication.is_followed => {}
        Toward::Waits => trails.waits(id, client, publication.grade, publication.retain),
        Toward::Given => {
            let how = (publication.grade, publication.retain);
            trails.given(publication, client, how, None);
        }
        Toward::Acknowledged => trails.acknowledged(id, client),
    }
}

/// What became of publications that somebody asks for, as far as they were followed, in the order
/// in which they came.
pub(crate) fn explain(core: &Core, query: &Query) -> Vec<Facts> {
    core.telling.trails.find(query)
}

#[cfg(test)]
mod tests;
