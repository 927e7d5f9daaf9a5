//! Places for exchanges: whether there is one, which exchange makes room for another, and which has
//! had its place for too long.

use std::time::Duration;

use coding::ExchangeId;

use crate::api::{Cause, CauseKind};
use crate::exchanges::{Exchange, Stage};
use crate::shares::{Class, ExchangePlace, Full};
use crate::timers::Key;
use crate::transfer::Transfer;

/// A clock that is looked at so late has leapt, or its machine has slept.
const MAX_LATE: Duration = Duration::from_secs(60);

/// See the module.
pub(crate) struct Places<'a> {
    transfer: &'a mut Transfer,
}

impl<'a> Places<'a> {
    pub(crate) fn new(transfer: &'a mut Transfer) -> Self {
        Self { transfer }
    }

    /// The exchange has its place, and a clock.
    pub(crate) fn take(&mut self, now: Duration, id: ExchangeId, place: ExchangePlace) {
        self.transfer.shares.enter(&place);
        if let Some(exchange) = self.transfer.exchanges.get_mut(&id) {
            exchange.place = place;
        }
        self.look_at_still(now, id);
    }

    /// Makes room for one more where that can be; else why there is none, in one sentence.
    pub(crate) fn find_room(&mut self, now: Duration, place: &ExchangePlace) -> Result<(), String> {
        let (most, setting, what) = match place.class {
            Class::Passing => {
                (self.transfer.core.config.max_exchanges, "max_exchanges", "exchanges")
            }
            Class::Standing => {
                (self.transfer.core.config.max_tunnels, "max_tunnels", "tunnels and event streams")
            }
        };
        let mut fits = self.transfer.shares.check(place, most);
        while fits.is_err() {
            let Some(goes) = self.dispensable(now, place) else { break };
            self.give_up_for_another(now, goes, setting);
            fits = self.transfer.shares.check(place, most);
        }
        let who = if self.transfer.core.is_edge() { "client" } else { "edge" };
        let reason = match fits {
            Ok(()) => return Ok(()),
            Err(Full::ForAll) => {
                format!("{most} {what} are open, as many as may be ({setting}); try later")
            }
            Err(Full::ForThese) => {
                let has = self.transfer.shares.has(place);
                let rest = "and the rest is for others; try later";
                format!("this {who} has {has} of {most} {what} ({setting}), {rest}")
            }
        };
        self.transfer.core.limit_reached(now, setting, "a request gets 503");
        Err(reason)
    }

    /// What may go for one more: the oldest answer whose edge is gone, else what is longest still.
    /// It is the same holder's, or that of one who has more.
    fn dispensable(&self, now: Duration, place: &ExchangePlace) -> Option<ExchangeId> {
        let same_class =
            || self.transfer.exchanges.values().filter(|one| one.place.class == place.class);
        let of = |holder: &ExchangePlace| {
            let its = || same_class().filter(|one| one.place.is_of(holder));
            let detached = its().filter(|one| one.stage == Stage::Detached);
            let still = its().filter(|one| one.is_dispensable(now));
            let longest = || still.min_by_key(|one| one.took.max(one.moved));
            detached.min_by_key(|one| one.started).or_else(longest).map(|one| one.id)
        };
        let of_greediest = || {
            let may_go = |one: &&Exchange| one.stage == Stage::Detached || one.is_dispensable(now);
            let has = |one: &&Exchange| self.transfer.shares.has(&one.place);
            let one = same_class().filter(may_go).max_by_key(has)?;
            of(&one.place).filter(|_| has(&one) > self.transfer.shares.has(place) + 1)
        };
        of(place).or_else(of_greediest)
    }

    fn give_up_for_another(&mut self, now: Duration, id: ExchangeId, setting: &str) {
        let Some(exchange) = self.transfer.exchanges.get(&id) else { return };
        let (kind, reason) = if exchange.stage == Stage::Detached {
            let reason = "the edge did not come back before others wanted the place".to_owned();
            (CauseKind::CarrierLost, format!("{reason} ({setting})"))
        } else {
            let still = now.saturating_sub(exchange.took).as_secs();
            let reason = format!("nobody took or gave for {still} s, and another wants the place");
            (CauseKind::Limit, format!("{reason} ({setting})"))
        };
        self.transfer.refuse(now, id, &Cause { kind, reason });
    }

    /// The head of an answer tells whether it has an end of its own. One that has none takes a
    /// place among its like, if there is one.
    pub(crate) fn note_answer(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.transfer.exchanges.get_mut(&id).filter(|one| one.endless) else {
            return;
        };
        let standing = exchange.place.standing();
        if self.transfer.shares.check(&standing, self.transfer.core.config.max_tunnels).is_ok() {
            self.transfer.shares.leave(&exchange.place);
            self.transfer.shares.enter(&standing);
            exchange.place = standing;
        }
        self.look_at_still(now, id);
    }

    /// Ends an exchange through which nothing has passed for as long as that may be, else looks
    /// again when that could be.
    pub(crate) fn look_at_still(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.transfer.exchanges.get(&id) else { return };
        let tunnel = exchange.traits.tunnel || exchange.endless;
        let bound = if tunnel {
            self.transfer.core.config.tunnel_timeout
        } else {
            self.transfer.core.config.still_timeout
        };
        let due = exchange.took.max(exchange.moved) + bound;
        if now < due || now > due + MAX_LATE {
            // Who is woken so late has slept with its machine: the time begins anew.
            let due = if now < due { due } else { now + bound };
            return self.transfer.core.timers.set(Key::Still(id), Some(due));
        }
        let limit = if tunnel { "tunnel_timeout" } else { "still_timeout" };
        self.transfer.core.limit_reached(now, limit, "exchange ended");
        let setting = if tunnel { " (tunnel_timeout)" } else { "" };
        let reason = format!("nothing passed for {} s{setting}", bound.as_secs_f64());
        self.transfer.refuse(now, id, &Cause { kind: CauseKind::OriginTimeout, reason });
    }
}
