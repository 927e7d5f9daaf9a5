//! What goes beside the exchanges of HTTP: interim responses with their fields (RFC 9110 §15.2), a
//! client that does not wait for 100, and the end of a client's connection.

use std::time::Duration;

use coding::ExchangeId;
use proto::bhttp;
use proto::control::{ClientEnded, Hints};
use proto::exchange::{Part, Role};

use crate::Relay;
use crate::api::Output;
use crate::exchange::Exchange;
use crate::ids::CarrierId;

impl Relay {
    pub(crate) fn local_interim(
        &mut self,
        now: Duration,
        id: ExchangeId,
        status: u16,
        fields: bhttp::Fields,
    ) {
        if self.config.role == Role::Edge {
            return self.stop_expecting(id);
        }
        let Some(carrier) = self.exchanges.get(&id).and_then(Exchange::carrier) else { return };
        let hints = Hints { exchange: id.number, fields };
        if let Some(part) = hints.part().filter(|_| !hints.fields.is_empty()) {
            self.send(now, carrier, part);
        }
        self.send(now, carrier, Part::Interim(id.number, status));
    }

    /// The fields of an interim response came.
    pub(crate) fn hints(&mut self, now: Duration, carrier: CarrierId, content: &[u8]) {
        let hints = match Hints::decode(content) {
            Ok(hints) if self.config.role == Role::Edge => hints,
            Ok(_) => return self.ignore(now, carrier, "hints", "an edge has none"),
            Err(error) => return self.ignore(now, carrier, "hints", &error.to_string()),
        };
        let Some(instance) = self.edge_instance(carrier) else { return };
        let id = ExchangeId { instance, number: hints.exchange };
        let exchange = self.exchanges.get_mut(&id);
        if let Some(exchange) = exchange.filter(|exchange| exchange.carrier() == Some(carrier)) {
            exchange.hints = hints.fields;
        }
    }

    pub(crate) fn peer_interim(&mut self, id: ExchangeId, status: u16) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let fields = std::mem::take(&mut exchange.hints);
        self.outputs.push_back(Output::Interim { exchange: id, status, fields });
        if status == 100 {
            self.stop_expecting(id);
        }
    }

    /// The request's body flows (RFC 9110 §10.1.1).
    fn stop_expecting(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        if std::mem::take(&mut exchange.traits.expects_continue) {
            self.grant_local(id);
        }
    }

    /// Edge: the gateway hears of the end of a client's connection. Where it cannot be reported,
    /// what it keeps ends by its own clock.
    pub(crate) fn client_ended(&mut self, now: Duration, connection: u64) {
        for carrier in self.carriers.keys().copied().collect::<Vec<_>>() {
            self.send(now, carrier, ClientEnded { connection }.part());
        }
    }

    /// Gateway: an edge reported the end of a client's connection.
    pub(crate) fn peer_client_ended(&mut self, now: Duration, carrier: CarrierId, content: &[u8]) {
        let ended = match ClientEnded::decode(content) {
            Ok(ended) if self.config.role == Role::Gateway => ended,
            Ok(_) => return self.ignore(now, carrier, "client's end", "a gateway has none"),
            Err(error) => return self.ignore(now, carrier, "client's end", &error.to_string()),
        };
        if let Some(instance) = self.edge_instance(carrier) {
            let connection = ended.connection;
            self.outputs.push_back(Output::ClientEnded { instance, connection });
        }
    }
}
