//! The profile of a federation, where publications come and go.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::{Core, Opening};
use crate::event::{Drop, Event};
use crate::federation::{Breach, Federation, Party, Refused};
use crate::ids::{ClientKey, Protocol, SessionId};
use crate::index::Subscriber;
use crate::publication::{Grade, Publication};
use crate::refusal::Refusal;
use crate::session::Session;

/// What the profile of the federation has refused since the start.
pub(crate) fn federation_refused(core: &Core) -> Vec<Refused> {
    core.meters.all_refused()
}

/// Who publishes; `None`: there is no federation, or it is the broker itself.
pub(super) fn party_of(core: &Core, publication: &Publication) -> Option<Party> {
    let federation = core.settings.federation.as_deref()?;
    if publication.protocol == Protocol::Broker {
        return None;
    }
    // Who needs no session is of this nation: no partner comes by such protocols.
    let session = publication.publisher.and_then(|id| core.sessions.get(id));
    let party = session.map(|it| federation.party(&it.key, it.user.as_deref()));
    Some(party.unwrap_or(Party::Own))
}

/// Who publishes without a session.
pub(super) fn party_of_user(core: &Core, user: Option<&str>) -> Option<Party> {
    let federation = core.settings.federation.as_deref()?;
    Some(federation.party_of_user(user))
}

/// Whether a session is of another partner than who comes: what waits there is not for it.
pub(super) fn is_of_another(core: &Core, id: SessionId, opening: &Opening) -> bool {
    let Some(federation) = core.settings.federation.as_deref() else { return false };
    let Some(session) = core.sessions.get(id) else { return false };
    let party = federation.party(&session.key, session.user.as_deref());
    party != federation.party(&opening.client, opening.user.as_deref())
}

/// Takes a publication as the profile has it; whether a newer one takes its place.
pub(super) fn admit(
    core: &mut Core,
    now: Duration,
    party: &Party,
    publication: &mut Publication,
) -> Result<bool, Refusal> {
    let Some(federation) = core.settings.federation.clone() else { return Ok(false) };
    federation.admit(now, party, &mut core.meters, publication).map_err(|breach| {
        tell(core, now, publication.protocol, &breach);
        Refusal::Federation(breach)
    })
}

/// Whether a client, as a user, may get what is published to a topic.
pub(super) fn may_receive(
    federation: Option<&Federation>,
) -> impl Fn(&ClientKey, Option<&str>, &str) -> bool {
    move |client, user, topic| {
        federation
            .is_none_or(|federation| federation.may_receive(&federation.party(client, user), topic))
    }
}

/// Whether what waits for a session, or is retained, may leave for it now: a profile ends, and
/// another takes its place, while messages wait.
pub(super) fn may_leave(
    federation: Option<&Federation>,
    now: Duration,
    session: &Session,
    topic: &str,
) -> bool {
    federation.is_none_or(|federation| {
        let party = federation.party(&session.key, session.user.as_deref());
        federation.may_leave(now, &party, topic)
    })
}

/// What a session has under way is not sent again where it may not leave any more.
pub(super) fn withhold(core: &mut Core, now: Duration, id: SessionId) {
    let Some(federation) = core.settings.federation.clone() else { return };
    let Some(session) = core.sessions.get(id) else { return };
    let party = federation.party(&session.key, session.user.as_deref());
    let held: Vec<(u16, Arc<Publication>, Grade)> = session
        .inflight
        .sent()
        .filter(|(_, entry)| !federation.may_leave(now, &party, &entry.publication.topic))
        .map(|(handle, entry)| (handle, entry.publication.clone(), entry.grade))
        .collect();
    for (handle, publication, grade) in held {
        if grade == Grade::ExactlyOnce {
            // Its number is freed as if the client had it: it may have, and not said so yet.
            core.tell_dropped(&publication, Some(id), Drop::Refused);
            core.received(id, handle);
        } else {
            core.finish(id, handle, true);
        }
    }
}

/// Those of a group who may get what is published to a topic: its turn comes to nobody else, who
/// would take it from all.
pub(super) fn who_may<'a>(
    core: &Core,
    members: &'a [Subscriber],
    topic: &str,
) -> Cow<'a, [Subscriber]> {
    let (access, federation) = (&core.settings.access, core.settings.federation.as_deref());
    if access.rules.is_empty() && federation.is_none() {
        return Cow::Borrowed(members);
    }
    let may_receive = may_receive(federation);
    let may = |member: &&Subscriber| {
        let Some(session) = core.sessions.get(member.session) else { return false };
        let user = session.user.as_deref();
        (session.is_trusted || access.may_receive(user, &session.key.name, topic))
            && may_receive(&session.key, user, topic)
    };
    Cow::Owned(members.iter().filter(may).copied().collect())
}

/// Whether a session may subscribe to a filter.
pub(super) fn may_subscribe(
    core: &mut Core,
    now: Duration,
    id: SessionId,
    filter: &str,
) -> Result<(), Refusal> {
    let Some(federation) = core.settings.federation.clone() else { return Ok(()) };
    let Some(session) = core.sessions.get(id) else { return Ok(()) };
    let party = federation.party(&session.key, session.user.as_deref());
    let protocol = session.key.protocol;
    federation.may_subscribe(&party, filter).map_err(|breach| {
        tell(core, now, protocol, &breach);
        Refusal::Federation(breach)
    })
}

/// Counts what was refused, and says it unless it was said just before.
fn tell(core: &mut Core, now: Duration, protocol: Protocol, breach: &Breach) {
    match core.meters.refused(now, breach) {
        Some(why) => core.tell(Event::Refused { protocol, connection: None, why }),
        None => core.telling.counts.refused += 1,
    }
}

#[cfg(test)]
mod tests;
