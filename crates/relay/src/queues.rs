//! Requests that wait at an edge for the link, by urgency: which of them goes where too many wait,
//! and that an answer that is of no use any more does not take the link.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use coding::ExchangeId;
use proto::urgency::Urgency;

use crate::api::{Cause, CauseKind};
use crate::exchanges::Exchange;
use crate::handling::{Overflow, Wait};
use crate::shares::ExchangePlace;
use crate::timers::Key;
use crate::transfer::Transfer;

/// Whether a request waits of which nothing has left.
fn waits(exchange: &Exchange) -> bool {
    let has_left = exchange.outgoing.is_head_sent() || exchange.attempts.repeated;
    !has_left && !exchange.traits.tunnel
}

/// Requests that go for one more, and why.
#[derive(Debug, Default)]
pub(crate) struct Goes {
    ids: Vec<ExchangeId>,
    cause: Option<Cause>,
    /// One of them leaves its place to the new one, which is the same client's.
    pub(crate) leaves_place: bool,
}

/// See the module.
pub(crate) struct Queues<'a> {
    transfer: &'a mut Transfer,
}

impl<'a> Queues<'a> {
    pub(crate) fn new(transfer: &'a mut Transfer) -> Self {
        Self { transfer }
    }

    /// Edge: which go from the queue of an urgency for one more request, which has this place.
    ///
    /// # Errors
    /// There is no room: why, in one sentence.
    pub(crate) fn choose(
        &mut self,
        now: Duration,
        urgency: Urgency,
        wait: &Wait,
        place: &ExchangePlace,
    ) -> Result<Goes, String> {
        let most = self.transfer.core.config.max_waiting;
        let same = self.superseded(wait);
        let exchanges = &self.transfer.exchanges;
        let of_it = |one: &&Exchange| waits(one) && one.traits.urgency == urgency;
        let of_it = |one: &&Exchange| of_it(one) && !same.contains(&one.id);
        let waiting: Vec<&Exchange> = match most {
            usize::MAX => Vec::new(),
            _ => exchanges.values().filter(of_it).collect(),
        };
        let mine = |id: &ExchangeId| exchanges.get(id).is_some_and(|one| one.place.is_of(place));
        if waiting.len() < most {
            let leaves_place = same.iter().any(mine);
            let reason = "a newer request that asks the same has taken its place (overflow)";
            let cause = Cause { kind: CauseKind::Superseded, reason: reason.to_owned() };
            return Ok(Goes { ids: same, cause: Some(cause), leaves_place });
        }
        let goes = oldest(&waiting, place).filter(|_| wait.overflow == Overflow::Oldest);
        let leaves_place = goes.is_some_and(|id| mine(&id));
        let reason = format!("{most} requests of urgency {urgency} wait already (max_waiting)");
        self.transfer.core.limit_reached(now, "max_waiting", "a request gets 503");
        let Some(goes) = goes else { return Err(format!("{reason}; try later")) };
        let reason = format!("{reason}, and this is the oldest of its client's (overflow)");
        let cause = Cause { kind: CauseKind::Limit, reason };
        Ok(Goes { ids: vec![goes], cause: Some(cause), leaves_place })
    }

    /// Edge: those that wait and ask the same as one more, which takes their place.
    fn superseded(&self, wait: &Wait) -> Vec<ExchangeId> {
        if wait.overflow != Overflow::Superseded || wait.subject.is_none() {
            return Vec::new();
        }
        let same = |one: &&Exchange| waits(one) && one.wait.subject == wait.subject;
        self.transfer.exchanges.values().filter(same).map(|one| one.id).collect()
    }

    /// They go.
    pub(crate) fn give_up(&mut self, now: Duration, goes: Goes) {
        let Some(cause) = goes.cause else { return };
        for id in goes.ids {
            self.transfer.fail_local(now, id, cause.clone());
        }
    }

    /// An answer is of no use any more, unless it has begun.
    pub(crate) fn expire(&mut self, now: Duration, id: ExchangeId) {
        let is_edge = self.transfer.core.is_edge();
        let Some(exchange) = self.transfer.exchanges.get(&id) else { return };
        let has_begun =
            if is_edge { exchange.incoming.headed } else { exchange.outgoing.is_head_sent() };
        if has_begun {
            return;
        }
        // Its client may wait for an answer to what has left, as long as that is of use.
        let may_come = is_edge && !waits(exchange);
        if let Some(deadline) = exchange.wait.deadline.filter(|at| may_come && now < *at) {
            return self.transfer.core.timers.set(Key::Expiry(id), Some(deadline));
        }
        if may_come && exchange.wait.deadline.is_none() {
            return;
        }
        let waited = now.saturating_sub(exchange.started).as_secs_f64();
        let where_it_was = match (is_edge, may_come) {
            (true, false) => "the request had not left",
            (true, true) => "no answer had come",
            (false, _) => "no answer had left",
        };
        let reason = format!("{where_it_was} after {waited:.1} s, when it was of no use any more");
        self.transfer.refuse(now, id, &Cause { kind: CauseKind::Expired, reason });
    }
}

/// The oldest that waits, of the client that has most of them and lets them go; one who has this
/// place drives out nobody who has less.
fn oldest(waiting: &[&Exchange], place: &ExchangePlace) -> Option<ExchangeId> {
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for one in waiting {
        *counts.entry(one.place.owner()).or_default() += 1;
    }
    let of = |one: &Exchange| counts.get(&one.place.owner()).copied().unwrap_or(0);
    let has = counts.get(&place.owner()).copied().unwrap_or(0);
    let lets = |one: &&&Exchange| one.wait.overflow == Overflow::Oldest;
    let may = |one: &&&Exchange| one.place.is_of(place) || of(one) > has + 1;
    let goes = waiting.iter().filter(lets).filter(may);
    goes.max_by_key(|one| (of(one), Reverse(one.id.number))).map(|one| one.id)
}
