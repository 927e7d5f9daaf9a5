//! Requests that wait at an edge for the link, by urgency: which of them goes where too many wait,
//! and that an answer that is of no use any more does not take the link.

use std::time::Duration;

use coding::ExchangeId;
use proto::urgency::Urgency;

use crate::api::{Cause, CauseKind};
use crate::exchanges::Exchange;
use crate::handling::{Overflow, Wait};
use crate::shares::ExchangePlace;
use crate::transfer::Transfer;

/// Whether a request waits of which nothing has left.
fn waits(exchange: &Exchange) -> bool {
    !exchange.outgoing.is_head_sent() && !exchange.traits.tunnel
}

/// See the module.
pub(crate) struct Queues<'a> {
    transfer: &'a mut Transfer,
}

impl<'a> Queues<'a> {
    pub(crate) fn new(transfer: &'a mut Transfer) -> Self {
        Self { transfer }
    }

    /// Edge: makes room in the queue of an urgency for one more request, which has this place.
    ///
    /// # Errors
    /// There is none: why, in one sentence.
    pub(crate) fn make_room(
        &mut self,
        now: Duration,
        urgency: Urgency,
        wait: &Wait,
        place: &ExchangePlace,
    ) -> Result<(), String> {
        if wait.overflow == Overflow::Superseded {
            self.supersede(now, wait);
        }
        let most = self.transfer.core.config.max_waiting;
        let of_it = |one: &&Exchange| waits(one) && one.traits.urgency == urgency;
        let waiting: Vec<&Exchange> = self.transfer.exchanges.values().filter(of_it).collect();
        if waiting.len() < most {
            return Ok(());
        }
        let of =
            |place: &ExchangePlace| waiting.iter().filter(|one| one.place.is_of(place)).count();
        let has = of(place);
        let may_go = waiting.iter().filter(|one| one.wait.overflow == Overflow::Oldest);
        // Nobody drives out who has less.
        let may_go = may_go.filter(|one| one.place.is_of(place) || of(&one.place) > has + 1);
        let goes = may_go.max_by_key(|one| (of(&one.place), std::cmp::Reverse(one.id.number)));
        let goes = goes.map(|one| one.id).filter(|_| wait.overflow == Overflow::Oldest);
        let reason = format!("{most} requests of urgency {urgency} wait already (max_waiting)");
        self.transfer.core.limit_reached(now, "max_waiting", "a request gets 503");
        let Some(goes) = goes else { return Err(format!("{reason}; try later")) };
        let reason = format!("{reason}, and this is the oldest of its client's (overflow)");
        self.transfer.fail_local(now, goes, Cause { kind: CauseKind::Limit, reason });
        Ok(())
    }

    /// Edge: of those that wait, one that asks the same goes.
    fn supersede(&mut self, now: Duration, wait: &Wait) {
        let same = |one: &&Exchange| waits(one) && one.wait.subject == wait.subject;
        let older =
            self.transfer.exchanges.values().filter(same).map(|one| one.id).collect::<Vec<_>>();
        for id in older.into_iter().filter(|_| wait.subject.is_some()) {
            let reason = "a newer request that asks the same has taken its place (overflow)";
            let (kind, reason) = (CauseKind::Superseded, reason.to_owned());
            self.transfer.fail_local(now, id, Cause { kind, reason });
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
        let waited = now.saturating_sub(exchange.started).as_secs_f64();
        let where_it_was = match (is_edge, exchange.outgoing.is_head_sent()) {
            (true, false) => "the request had not left",
            (true, true) => "no answer had come",
            (false, _) => "no answer had left",
        };
        let reason = format!("{where_it_was} after {waited:.1} s, when it was of no use any more");
        self.transfer.refuse(now, id, &Cause { kind: CauseKind::Expired, reason });
    }
}
