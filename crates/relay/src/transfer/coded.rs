//! What the coding is told, and what it says.

use std::time::Duration;

use coding::api as code;
use proto::exchange::{Data, Part};

use super::Transfer;
use crate::api::{Cause, CauseKind, Output};
use crate::carriers::carrier::{carrier_of, path_of};

impl Transfer {
    /// Gives the coding an input, and does what it says.
    pub(crate) fn code(&mut self, now: Duration, input: code::Input) {
        while let Some(id) = self.carriers.stale.pop_first() {
            if let Some(carrier) = self.carriers.get(&id) {
                let wire = carrier.wire();
                self.coding.handle_input(now, code::Input::Wire { path: path_of(id), wire });
            }
        }
        self.coding.handle_input(now, input);
        // What is done on the way gives it inputs too.
        if std::mem::replace(&mut self.is_coding, true) {
            return;
        }
        while let Some(output) = self.coding.poll_output() {
            self.coded(now, output);
        }
        self.is_coding = false;
    }

    fn coded(&mut self, now: Duration, output: code::Output) {
        match output {
            code::Output::Settled { exchange, .. }
            | code::Output::Block { exchange, .. }
            | code::Output::Trailers { exchange }
            | code::Output::Fault { exchange, .. }
                if !self.exchanges.contains_key(&exchange) =>
            {
                self.core.outputs.push_back(Output::Client(output));
            }
            code::Output::Screened { .. } => self.core.outputs.push_back(Output::Client(output)),
            code::Output::Settled { exchange: id, options, length, .. } => {
                let role = self.core.config.role;
                let Some(exchange) = self.exchanges.get_mut(&id) else { return };
                exchange.outgoing.settle(options);
                length.into_iter().for_each(|len| exchange.outgoing.set_length(role, len));
                self.offer(id);
            }
            code::Output::Block { exchange: id, bytes, decoded_len, coded, anew, end } => {
                let (block_end, uncoded, padding) = (Some(decoded_len as u64), !coded, None);
                let block = Data { exchange: 0, block_end, uncoded, anew, end, padding, bytes };
                let Some(exchange) = self.exchanges.get_mut(&id) else { return };
                exchange.outgoing.push_block(block);
                self.offer(id);
            }
            code::Output::Trailers { exchange: id } => {
                let Some(exchange) = self.exchanges.get_mut(&id) else { return };
                exchange.outgoing.trailers_may_go();
                self.offer(id);
            }
            code::Output::Anew { exchange: id, body } => {
                let Some(exchange) = self.exchanges.get_mut(&id) else { return };
                exchange.outgoing.anew(body);
                self.offer(id);
            }
            code::Output::Body { exchange: id, bytes } => {
                let Some(exchange) = self.exchanges.get_mut(&id) else { return };
                exchange.incoming.push_decoded(bytes);
                self.deliver(now, id);
            }
            code::Output::Consumed { exchange, bytes } => self.consumed(now, exchange, bytes),
            code::Output::Received { exchange: id } => {
                let Some(exchange) = self.exchanges.get_mut(&id) else { return };
                exchange.incoming.whole = true;
                self.end_incoming(now, id);
            }
            code::Output::Fault { exchange, fault } => {
                let kind = match fault.kind {
                    code::FaultKind::Corrupt => CauseKind::Corrupt,
                    code::FaultKind::Limit => CauseKind::Limit,
                };
                self.refuse(now, exchange, &Cause { kind, reason: fault.reason });
            }
            code::Output::Control { path, kind, content } => {
                self.send(now, carrier_of(path), Part::Control(kind, content));
            }
            code::Output::Measure { path, anyway } => {
                self.measure(now, carrier_of(path), anyway);
            }
            code::Output::Ignored { path, what, reason } => {
                self.ignore(now, carrier_of(path), what, &reason);
            }
            code::Output::Job(job) => self.core.outputs.push_back(Output::Job(job)),
            code::Output::Release { exchange } => {
                self.core.outputs.push_back(Output::Release { exchange });
            }
            code::Output::Store { name, bytes } => {
                self.core.outputs.push_back(Output::Store { name, bytes });
            }
            code::Output::Used { name } => self.core.outputs.push_back(Output::Used { name }),
            code::Output::Dropped { name } => self.core.outputs.push_back(Output::Forget { name }),
            code::Output::Event(fact) => self.core.event(now, fact),
        }
    }
}
