//! What is open, on its way: between the local side, the coding and the carriers.
//!
//! An exchange that has a carrier is moved on here, and ended here; which carrier that is, and what
//! becomes of the exchange where it breaks, is decided by the edge and the gateway.

mod bodies;
mod coded;
mod sending;

use std::time::Duration;

use coding::api::{Abilities, Input as Code};
use coding::{Coding, ExchangeId};
use decide::estimate::Transport;
use proto::carrier::Peer;
use proto::control;
use proto::exchange::{Abort, Part, Role};
use proto::urgency::Urgency;
use record::event::{Carried, Fact};

use crate::api::{Cause, CauseKind, Output};
use crate::carriers::Carriers;
use crate::carriers::carrier::{Carrier, path_of};
use crate::config::{Config, SHORT_CONTROL_BYTES};
use crate::core::Core;
use crate::exchanges::{Exchange, Exchanges, Stage};
use crate::ids::CarrierId;
use crate::outcomes::{Log, Outcome, Outcomes};
use crate::shares::Shares;
use crate::timers::Key;

/// See the module.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) core: Core,
    pub(crate) carriers: Carriers,
    pub(crate) exchanges: Exchanges,
    /// In which form messages cross.
    pub(crate) coding: Coding,
    /// What the coding says is being done.
    is_coding: bool,
    /// What the gateway remembers.
    pub(crate) outcomes: Outcomes,
    pub(crate) shares: Shares,
    /// Edge: a place on a carrier came free since exchanges were attached.
    pub(crate) room_freed: bool,
}

impl Transfer {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            coding: Coding::new(config.coding()),
            is_coding: false,
            outcomes: Outcomes::new(config.retained_bytes, config.without_keys),
            core: Core::new(config),
            carriers: Carriers::default(),
            exchanges: Exchanges::default(),
            shares: Shares::default(),
            room_freed: false,
        }
    }

    /// The instance of the edge at the other end of, or at this end of, a carrier.
    pub(crate) fn edge_instance(&self, carrier: CarrierId) -> Option<u64> {
        match self.core.config.role {
            Role::Edge => Some(self.core.config.instance),
            Role::Gateway => self.carriers.get(&carrier)?.peer_instance(),
        }
    }

    /// Whether the peer takes blocks that begin a context anew.
    pub(crate) fn takes_anew(&self, carrier: CarrierId) -> bool {
        self.carriers.get(&carrier).is_some_and(Carrier::takes_anew)
    }

    /// Gives a part to a carrier's machine; it leaves when the machine is drained next.
    pub(crate) fn send(&mut self, now: Duration, carrier: CarrierId, part: Part) {
        let urgency = self.urgency_of(carrier, &part);
        self.carriers.send(&mut self.core, now, carrier, part, urgency);
    }

    /// What is of an exchange is as urgent as that; what is of none goes first where it is short.
    fn urgency_of(&self, carrier: CarrierId, part: &Part) -> Urgency {
        let Some(number) = control::order_of(part) else {
            let is_short = part.content_len() <= SHORT_CONTROL_BYTES;
            return if is_short { Urgency::FIRST } else { Urgency::DEFAULT };
        };
        let id = self.edge_instance(carrier).map(|instance| ExchangeId { instance, number });
        let exchange = id.and_then(|id| self.exchanges.get(&id));
        exchange.map(|exchange| exchange.traits.urgency).unwrap_or_default()
    }

    /// Asks for the transport's counters, unless they were read just now.
    pub(crate) fn measure(&mut self, now: Duration, id: CarrierId, anyway: bool) {
        if let Some(transport) = self.carriers.measure(&mut self.core, now, id, anyway) {
            self.transport(now, id, transport);
        }
    }

    /// The transport's counters are here.
    pub(crate) fn transport(&mut self, now: Duration, id: CarrierId, transport: Transport) {
        if self.carriers.take_counters(&mut self.core, now, id, transport) {
            self.code(now, Code::Transport { path: path_of(id), transport });
            self.note_estimate(id);
        }
    }

    /// What is believed of a carrier's path may have changed.
    pub(crate) fn note_estimate(&mut self, id: CarrierId) {
        let found = self.carriers.get_mut(&id).zip(self.coding.estimate(path_of(id)));
        if let Some((carrier, estimate)) = found {
            carrier.note_estimate(estimate);
        }
    }

    /// What a peer sent is not used.
    pub(crate) fn ignore(&mut self, now: Duration, id: CarrierId, what: &str, reason: &str) {
        self.carriers.ignore(&mut self.core, now, id, what, reason);
    }

    /// The coding hears of a peer, by what it said on the carrier; `early`: by what it said last.
    pub(crate) fn path_up(&mut self, now: Duration, id: CarrierId, peer: &Peer, early: bool) {
        let Some(carrier) = self.carriers.get(&id) else { return };
        // Whether a codec needs nothing that both ends have to agree on first.
        let stands_alone = |codec: &u64| {
            let options = self.core.config.codecs.options(*codec, 0);
            options.is_ok_and(codec::Options::stands_alone)
        };
        let abilities = Abilities {
            codecs: match carrier.may_agree() {
                true => peer.codecs.clone(),
                false => peer.codecs.iter().copied().filter(stands_alone).collect(),
            },
            max_window_log: peer.max_window_log,
            renews: peer.anew,
            initial_credit: peer.initial_credit,
            early,
        };
        let (path, instance, peer) = (path_of(id), peer.instance, carrier.peer.clone());
        let kind = self.core.config.kinds.get(carrier.kind.0).map_or("", |kind| kind.name);
        self.carriers.stale.insert(id);
        self.code(now, Code::Up { path, peer, kind, instance, abilities });
        self.note_estimate(id);
        if self.core.shutting_down {
            self.code(now, Code::Flush { path });
        }
    }

    /// An exchange stands there towards its carrier from here on.
    pub(crate) fn set_stage(&mut self, now: Duration, id: ExchangeId, stage: Stage) {
        if !self.exchanges.set_stage(id, stage) {
            return;
        }
        let exchange = id;
        let input = match stage {
            Stage::Open(carrier) => Code::Attach { exchange, path: path_of(carrier) },
            Stage::Waiting => Code::Detach { exchange, waits: true },
            Stage::Ambiguous { .. } | Stage::Detached => Code::Detach { exchange, waits: false },
        };
        self.code(now, input);
        self.grant_local(id);
        self.offer(id);
    }

    /// How long the exchange may be as it is towards its carrier.
    pub(crate) fn set_deadline(&mut self, id: ExchangeId, at: Option<Duration>) {
        self.core.timers.set(Key::Exchange(id), at);
    }

    /// The exchange has no business on the carrier any more; others may have its place.
    pub(crate) fn leave(&mut self, now: Duration, id: ExchangeId, carrier: CarrierId) {
        if let Some(state) = self.carriers.get_mut(&carrier) {
            state.forget(id.number);
            self.room_freed = self.core.is_edge();
            self.carriers.touch(carrier);
            self.code(now, Code::Leave { exchange: id, path: path_of(carrier) });
        }
    }

    /// Nothing more of the request is sent.
    pub(crate) fn stop(&mut self, now: Duration, id: ExchangeId) {
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.outgoing.stop();
            self.code(now, Code::Stop { exchange: id });
        }
    }

    /// What passed in an exchange.
    pub(crate) fn carried(&self, id: ExchangeId) -> Carried {
        let one = self.exchanges.get(&id);
        one.map_or_else(Carried::default, |one| one.carried(self.coding.cpu(id)))
    }

    /// Tells the local side that the exchange is over, and forgets it.
    pub(crate) fn fail_local(&mut self, now: Duration, id: ExchangeId, cause: Cause) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let cause = exchange.honest(cause);
        let untouched = exchange.stage == Stage::Waiting && exchange.outgoing.is_untouched();
        self.failed(now, id, &cause);
        self.core.outputs.push_back(Output::Abort { exchange: id, cause, untouched });
        self.forget(now, id);
    }

    /// Tells the peer that the exchange is over.
    pub(crate) fn fail_peer(&mut self, now: Duration, id: ExchangeId, cause: &Cause) {
        let Some(carrier) = self.exchanges.get(&id).and_then(Exchange::on_carrier) else { return };
        let abort =
            Abort { exchange: id.number, code: cause.kind.to_wire(), reason: cause.reason.clone() };
        self.send(now, carrier, Part::Abort(abort));
    }

    /// The peer sent what this side cannot take: both sides are told.
    pub(crate) fn refuse(&mut self, now: Duration, id: ExchangeId, cause: &Cause) {
        self.fail_peer(now, id, cause);
        if !self.core.is_edge() {
            self.note_abort(id);
        }
        self.fail_local(now, id, cause.clone());
    }

    /// Tells that an exchange that is held ended before its time. Who is served without an end, by
    /// a tunnel or an event stream, ends it when he has enough: that is no failure.
    pub(crate) fn failed(&mut self, now: Duration, id: ExchangeId, cause: &Cause) {
        let Some(held) = self.exchanges.get(&id) else { return self.refused(now, id, cause) };
        let elapsed_s = now.saturating_sub(held.started).as_secs_f64();
        let (exchange, status, carried) = (id.to_string(), held.status, self.carried(id));
        self.core.event(
            now,
            match cause.kind {
                CauseKind::ClientGone if held.is_ended_by_client() => {
                    Fact::Finished { exchange, status, elapsed_s, carried }
                }
                kind => {
                    let (cause, reason) = (kind.name().to_owned(), cause.reason.clone());
                    Fact::Failed { exchange, cause, reason, elapsed_s, status, carried }
                }
            },
        );
    }

    /// The same of one that never was.
    pub(crate) fn refused(&mut self, now: Duration, id: ExchangeId, cause: &Cause) {
        let (exchange, reason) = (id.to_string(), cause.reason.clone());
        let (cause, carried) = (cause.kind.name().to_owned(), Carried::default());
        let (elapsed_s, status) = (0.0, 0);
        self.core.event(now, Fact::Failed { exchange, cause, reason, elapsed_s, status, carried });
    }

    /// Drops everything held for an exchange; the caller has informed whom it concerns.
    pub(crate) fn forget(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.remove(&id) else { return };
        self.code(now, Code::Forget { exchange: id });
        self.carriers.dirty.extend(exchange.attempts.moved_from);
        self.set_deadline(id, None);
        self.core.timers.set(Key::Still(id), None);
        self.core.timers.set(Key::Expiry(id), None);
        self.shares.leave(&exchange.place);
        if let Some(place) = exchange.on_carrier() {
            self.leave(now, id, place);
        }
        if self.core.is_edge() {
            self.end_flows(now, id);
        }
    }

    /// Edge: whatever is still open of an exchange, on a carrier that it was on before, is wanted
    /// no more.
    pub(crate) fn end_flows(&mut self, now: Duration, id: ExchangeId) {
        let number = id.number;
        let open = self.carriers.iter().filter(|(_, one)| one.machine.is_open(number));
        for carrier in open.map(|(id, _)| *id).collect::<Vec<_>>() {
            // Others may have its place there.
            self.room_freed = true;
            let (code, reason) = (CauseKind::ClientGone.to_wire(), "it is over".to_owned());
            self.send(now, carrier, Part::Abort(Abort { exchange: number, code, reason }));
        }
    }

    /// Remembers that an exchange was given up: carried out with its status if it had one.
    pub(crate) fn note_abort(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let whole = self.has_all(id);
        let status = exchange.status;
        let outcome = if whole && status != 0 {
            let mut log = Log::default();
            log.give_up();
            Outcome::Answered { status, log, idempotent: exchange.traits.idempotent, on: None }
        } else {
            Outcome::Aborted
        };
        self.outcomes.end(id, outcome);
    }

    pub(crate) fn note_answer(&mut self, id: ExchangeId, status: u16, log: Log) {
        let exchange = self.exchanges.get(&id);
        let idempotent = exchange.is_some_and(|one| one.traits.idempotent);
        let on = exchange.and_then(Exchange::on_carrier);
        self.outcomes.end(id, Outcome::Answered { status, log, idempotent, on });
    }
}
