//! How a side drains (RFC 9113 §6.8): a gateway reports how many requests it took, and the edge
//! sends the others elsewhere.

use std::time::Duration;

use coding::ExchangeId;
use coding::api::Input as Code;
use proto::control::Drained;
use proto::exchange::{Part, Role};

use crate::Relay;
use crate::api::{Cause, CauseKind};
use crate::carrier::path_of;
use crate::exchange::Exchange;
use crate::ids::CarrierId;

impl Relay {
    /// Announces to the peer that this side takes no new exchanges on the carrier. A gateway also
    /// reports how many requests it took: over a slow link it may be gone before it could refuse
    /// the others one by one.
    pub(crate) fn begin_drain(&mut self, now: Duration, id: CarrierId) {
        self.code(now, Code::Flush { path: path_of(id) });
        self.send(now, id, Part::GoAway);
        // Where requests come in another order than they went, their number does not tell which.
        let counts = self.carriers.get(&id).filter(|carrier| carrier.abilities.ordered);
        if self.config.role == Role::Gateway
            && let Some(requests) = counts.map(|carrier| carrier.requests)
        {
            self.send(now, id, Drained { requests }.part());
        }
    }

    /// Exchanges on a carrier, without those that an answer came for.
    pub(crate) fn unanswered(&self, carrier: CarrierId) -> impl Iterator<Item = &Exchange> {
        let on_it = move |exchange: &&Exchange| exchange.carrier() == Some(carrier);
        self.exchanges.values().filter(on_it).filter(|exchange| !exchange.incoming.headed)
    }

    /// The peer takes no new exchanges here: they get another carrier, also those that are on this
    /// one and of which nothing has left.
    pub(crate) fn carrier_going_away(&mut self, now: Duration, id: CarrierId) {
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        carrier.going_away = true;
        self.dirty.insert(id);
        self.code(now, Code::Flush { path: path_of(id) });
        if self.config.role == Role::Edge {
            self.dialer.gateway_drains(now, id);
            self.dialer_lost(now, id, "the gateway takes no new exchanges");
            let unsent = self.unanswered(id).filter(|exchange| !exchange.outgoing.is_head_sent());
            let unsent: Vec<ExchangeId> = unsent.map(|exchange| exchange.id).collect();
            unsent.into_iter().for_each(|id| self.wait_again(now, id));
        }
    }

    /// Edge: the gateway reported how many of the carrier's requests it has taken. The others are
    /// sent elsewhere, or fail with a reason that says that it is safe to repeat them.
    pub(crate) fn drained(&mut self, now: Duration, id: CarrierId, content: &[u8]) {
        let Some(carrier) = self.carriers.get(&id) else { return };
        let drained = match Drained::decode(content) {
            Ok(_) if self.config.role == Role::Gateway => Err("an edge has none".to_owned()),
            Ok(_) if !carrier.abilities.ordered => Err("its carrier has no order".to_owned()),
            Ok(_) if !carrier.going_away => Err("it came before GOAWAY".to_owned()),
            Ok(drained) if drained.requests > carrier.requests => {
                Err("it tells of more requests than were sent".to_owned())
            }
            Ok(drained) => Ok(drained),
            Err(error) => Err(error.to_string()),
        };
        let taken = match drained {
            Ok(drained) => drained.requests,
            Err(reason) => return self.ignore(now, id, "drained", &reason),
        };
        let is_late = |(on, number)| on == id && number > taken;
        let late = self.unanswered(id).filter(|exchange| exchange.sent_as.is_some_and(is_late));
        let late: Vec<ExchangeId> = late.map(|exchange| exchange.id).collect();
        for exchange in late {
            if !self.try_again(now, exchange) {
                let reason = "the gateway shut down before the request came; it is safe to repeat";
                let (kind, reason) = (CauseKind::NotForwarded, reason.to_owned());
                self.fail_local(now, exchange, Cause { kind, reason });
            }
        }
    }
}
