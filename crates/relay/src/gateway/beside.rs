//! What goes beside the exchanges: interim responses with their fields (RFC 9110 §15.2), the end of
//! a client's connection, and what edges may reach.

use std::time::Duration;

use coding::ExchangeId;
use proto::bhttp;
use proto::control::{Allowed, ClientEnded, Expires, Hints, Urgent};
use proto::exchange::Part;

use super::Gateway;
use crate::api::Output;
use crate::exchanges::Exchange;
use crate::ids::CarrierId;
use crate::timers::Key;

impl Gateway<'_> {
    /// The origin has an interim response.
    pub(crate) fn local_interim(
        &mut self,
        now: Duration,
        id: ExchangeId,
        status: u16,
        fields: bhttp::Fields,
    ) {
        let Some(carrier) = self.transfer.exchanges.get(&id).and_then(Exchange::carrier) else {
            return;
        };
        let hints = Hints { exchange: id.number, fields };
        if let Some(part) = hints.part().filter(|_| !hints.fields.is_empty()) {
            self.transfer.send(now, carrier, part);
        }
        self.transfer.send(now, carrier, Part::Interim(id.number, status));
    }

    /// An edge reported the end of a client's connection.
    pub(crate) fn peer_client_ended(&mut self, now: Duration, carrier: CarrierId, content: &[u8]) {
        let ended = match ClientEnded::decode(content) {
            Ok(ended) => ended,
            Err(error) => {
                return self.transfer.ignore(now, carrier, "client's end", &error.to_string());
            }
        };
        if let Some(instance) = self.transfer.edge_instance(carrier) {
            let connection = ended.connection;
            self.transfer.core.outputs.push_back(Output::ClientEnded { instance, connection });
        }
    }

    /// An edge says how urgent an answer is.
    pub(crate) fn peer_urgency(&mut self, now: Duration, carrier: CarrierId, content: &[u8]) {
        let urgent = match Urgent::decode(content) {
            Ok(urgent) => urgent,
            Err(error) => {
                return self.transfer.ignore(now, carrier, "urgency", &error.to_string());
            }
        };
        let Some(instance) = self.transfer.edge_instance(carrier) else { return };
        let id = ExchangeId { instance, number: urgent.exchange };
        let exchange = self.transfer.exchanges.get_mut(&id);
        if let Some(exchange) = exchange.filter(|one| one.on_carrier() == Some(carrier)) {
            exchange.traits.urgency = urgent.urgency;
            self.transfer.offer(id);
        }
    }

    /// An edge says how long an answer is of use.
    pub(crate) fn peer_expiry(&mut self, now: Duration, carrier: CarrierId, content: &[u8]) {
        let expires = match Expires::decode(content) {
            Ok(expires) => expires,
            Err(error) => {
                return self.transfer.ignore(now, carrier, "expiry", &error.to_string());
            }
        };
        let Some(instance) = self.transfer.edge_instance(carrier) else { return };
        let id = ExchangeId { instance, number: expires.exchange };
        let exchange = self.transfer.exchanges.get_mut(&id);
        let of_it = |one: &&mut Exchange| one.on_carrier() == Some(carrier) && !one.traits.tunnel;
        if let Some(exchange) = exchange.filter(of_it) {
            let deadline = now + expires.within;
            exchange.wait.deadline = Some(deadline);
            self.transfer.core.timers.set(Key::Expiry(id), Some(deadline));
            self.transfer.offer(id);
        }
    }

    /// Another list holds from now on.
    pub(crate) fn allow(&mut self, now: Duration, allowed: Allowed) {
        if allowed == self.transfer.core.config.allowed {
            return;
        }
        self.transfer.core.config.allowed = allowed;
        for id in self.transfer.carriers.keys().copied().collect::<Vec<_>>() {
            self.transfer.send(now, id, self.transfer.core.config.allowed.part());
        }
    }

    /// An edge has said HELLO.
    pub(crate) fn tell_allowed(&mut self, now: Duration, id: CarrierId) {
        if !self.transfer.core.config.allowed.patterns.is_empty() {
            self.transfer.send(now, id, self.transfer.core.config.allowed.part());
        }
    }
}
