//! What goes beside the exchanges: interim responses with their fields (RFC 9110 §15.2), the end of
//! a client's connection, what the gateway lets through, and how many requests it took before it
//! drained (RFC 9113 §6.8).

use std::sync::Arc;
use std::time::Duration;

use coding::ExchangeId;
use proto::control::{Allowed, ClientEnded, Drained, Hints};

use super::Edge;
use crate::api::{Cause, CauseKind, Output};
use crate::ids::CarrierId;

impl Edge<'_> {
    /// The fields of an interim response came.
    pub(crate) fn hints(&mut self, now: Duration, carrier: CarrierId, content: &[u8]) {
        let hints = match Hints::decode(content) {
            Ok(hints) => hints,
            Err(error) => return self.transfer.ignore(now, carrier, "hints", &error.to_string()),
        };
        let Some(instance) = self.transfer.edge_instance(carrier) else { return };
        let id = ExchangeId { instance, number: hints.exchange };
        let exchange = self.transfer.exchanges.get_mut(&id);
        if let Some(exchange) = exchange.filter(|exchange| exchange.carrier() == Some(carrier)) {
            exchange.hints = hints.fields;
        }
    }

    /// An interim response came.
    pub(crate) fn peer_interim(&mut self, id: ExchangeId, status: u16) {
        let Some(exchange) = self.transfer.exchanges.get_mut(&id) else { return };
        let fields = std::mem::take(&mut exchange.hints);
        self.transfer.core.outputs.push_back(Output::Interim { exchange: id, status, fields });
        if status == 100 {
            self.transfer.stop_expecting(id);
        }
    }

    /// The gateway hears of the end of a client's connection. Where it cannot be reported,
    /// what it keeps ends by its own clock.
    pub(crate) fn client_ended(&mut self, now: Duration, connection: u64) {
        for carrier in self.transfer.carriers.keys().copied().collect::<Vec<_>>() {
            self.transfer.send(now, carrier, ClientEnded { connection }.part());
        }
    }

    /// The gateway announced its list. One that cannot be read takes back the one before.
    pub(crate) fn heed_allowed(&mut self, now: Duration, id: CarrierId, content: &[u8]) {
        let reported = Allowed::decode(content);
        if let Some(carrier) = self.transfer.carriers.get_mut(&id) {
            let reported = reported.as_ref().ok().filter(|reported| !reported.patterns.is_empty());
            carrier.allowed = reported.cloned().map(Arc::new);
        }
        if let Err(error) = reported {
            self.transfer.ignore(now, id, "allow list", &error.to_string());
        }
    }

    /// The gateway takes no new exchanges on a carrier: they get another, also those that are on
    /// this one and of which nothing has left.
    pub(crate) fn gateway_drains(&mut self, now: Duration, id: CarrierId) {
        self.dialer.gateway_drains(now, id);
        self.dialer_lost(now, id, "the gateway takes no new exchanges");
        let unanswered = self.transfer.exchanges.unanswered(id);
        let unsent = unanswered.filter(|exchange| !exchange.outgoing.is_head_sent());
        let unsent: Vec<ExchangeId> = unsent.map(|exchange| exchange.id).collect();
        unsent.into_iter().for_each(|id| self.wait_again(now, id));
    }

    /// The gateway reported how many of the carrier's requests it has taken. The others are
    /// sent elsewhere, or fail with a reason that says that it is safe to repeat them.
    pub(crate) fn drained(&mut self, now: Duration, id: CarrierId, content: &[u8]) {
        let Some(carrier) = self.transfer.carriers.get(&id) else { return };
        let drained = match Drained::decode(content) {
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
            Err(reason) => return self.transfer.ignore(now, id, "drained", &reason),
        };
        let is_late = |(on, number)| on == id && number > taken;
        let late = self
            .transfer
            .exchanges
            .unanswered(id)
            .filter(|exchange| exchange.attempts.sent_as.is_some_and(is_late));
        let late: Vec<ExchangeId> = late.map(|exchange| exchange.id).collect();
        for exchange in late {
            if !self.try_again(now, exchange) {
                let reason = "the gateway shut down before the request came; it is safe to repeat";
                let (kind, reason) = (CauseKind::NotForwarded, reason.to_owned());
                self.transfer.fail_local(now, exchange, Cause { kind, reason });
            }
        }
    }
}
