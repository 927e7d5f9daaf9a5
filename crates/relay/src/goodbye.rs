//! A gateway that shuts down: what it says of the requests that it did not take, and what the edge
//! makes of that.

use std::time::Duration;

use coding::ExchangeId;
use coding::api::Input as Code;
use proto::control::LastWord;
use proto::exchange::{Part, Role};

use crate::Relay;
use crate::api::{Cause, CauseKind};
use crate::carrier::path_of;
use crate::exchange::Exchange;
use crate::ids::CarrierId;

impl Relay {
    /// Tells the peer that nothing new is taken from here on; a gateway also tells of what it was
    /// sent before, since over a slow link it may be gone before it could refuse the rest.
    pub(crate) fn say_goodbye(&mut self, now: Duration, id: CarrierId) {
        self.code(now, Code::Flush { path: path_of(id) });
        self.send(now, id, Part::GoAway);
        // Where requests come in another order than they went, their number does not tell which.
        let counts = self.carriers.get(&id).filter(|carrier| carrier.abilities.ordered);
        if self.config.role == Role::Gateway
            && let Some(requests) = counts.map(|carrier| carrier.requests)
        {
            self.send(now, id, LastWord { requests }.part());
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
            self.dialer.says_goodbye(now, id);
            self.dialer_lost(now, id, "the gateway takes no new exchanges");
            let unsent = self.unanswered(id).filter(|exchange| !exchange.outgoing.is_head_sent());
            let unsent: Vec<ExchangeId> = unsent.map(|exchange| exchange.id).collect();
            unsent.into_iter().for_each(|id| self.wait_again(now, id));
        }
    }

    /// Edge: the gateway told how many of the carrier's requests it has taken. The others go
    /// elsewhere, or their clients hear that they may.
    pub(crate) fn last_word(&mut self, now: Duration, id: CarrierId, content: &[u8]) {
        let Some(carrier) = self.carriers.get(&id) else { return };
        let word = match LastWord::decode(content) {
            Ok(_) if self.config.role == Role::Gateway => Err("an edge has none".to_owned()),
            Ok(_) if !carrier.abilities.ordered => Err("its carrier has no order".to_owned()),
            Ok(_) if !carrier.going_away => Err("it came before GOAWAY".to_owned()),
            Ok(word) if word.requests > carrier.requests => {
                Err("it tells of more requests than were sent".to_owned())
            }
            Ok(word) => Ok(word),
            Err(error) => Err(error.to_string()),
        };
        let taken = match word {
            Ok(word) => word.requests,
            Err(reason) => return self.ignore(now, id, "last word", &reason),
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
