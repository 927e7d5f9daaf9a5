//! How carriers begin and end, and how a side drains (RFC 9113 §6.8).

use std::time::Duration;

use coding::ExchangeId;
use coding::api::Input as Code;
use proto::control::Drained;
use proto::exchange::{Part, Role};
use record::event::Fact;

use super::Relay;
use crate::api::{Cause, CauseKind, DialFailure, Output};
use crate::carriers::carrier::{Carrier, path_of};
use crate::carriers::pulse::Beat;
use crate::config::MAX_BACKLOG_BYTES;
use crate::exchanges::Exchange;
use crate::ids::{CarrierId, CarrierKind};
use crate::timers::Key;
use crate::transfer::Transfer;

impl Relay {
    /// The shell has connected a carrier.
    pub(super) fn carrier_up(
        &mut self,
        now: Duration,
        carrier: CarrierId,
        kind: CarrierKind,
        peer: String,
    ) {
        let Transfer { core, carriers, coding, .. } = &mut self.transfer;
        let wanted = if core.is_edge() { self.dialer.wanted(carrier) } else { Some(kind) };
        let made = wanted.and_then(|kind| Some((kind, *core.config.kinds.get(kind.0)?)));
        let Some(made) = made else {
            let reason = "another carries on".to_owned();
            return core.outputs.push_back(Output::Close { carrier, reason });
        };
        let new = Carrier::new(&core.config, made, peer, coding.codecs().collect());
        carriers.insert(core, now, carrier, new);
        if core.is_edge() {
            self.edge().attach_early(now, carrier);
        }
    }

    /// The peer has said what it is.
    pub(super) fn greeted(&mut self, now: Duration, id: CarrierId) {
        let Transfer { core, carriers, outcomes, .. } = &mut self.transfer;
        core.timers.set(Key::Carrier(id), None);
        let Some(carrier) = carriers.get(&id) else { return };
        let Some(described) = carrier.machine.peer().cloned() else { return };
        let (peer, instance) = (carrier.peer.clone(), described.instance);
        // A name that is an address says little: who has the instance may come from another, if
        // nobody is there who had it before.
        let may_move =
            core.config.without_keys && carriers.others_of(id, instance).next().is_none();
        let is_here = |edge| carriers.values().any(|carrier| carrier.peer_instance() == Some(edge));
        let welcome = core.is_edge() || outcomes.greet(instance, &peer, may_move, is_here);
        if !welcome {
            // Else one peer could ask for the answers of another's exchanges.
            self.close_carrier(now, id, "the instance belongs to another peer");
            return;
        }
        let version = described.version;
        core.event(now, Fact::CarrierUp { peer, version });
        self.transfer.measure(now, id, false);
        let beat = {
            let Transfer { core, carriers, .. } = &mut self.transfer;
            carriers.begin_pulse(core, now, id)
        };
        self.act_on(now, id, beat);
        if self.transfer.core.shutting_down {
            self.begin_drain(now, id);
        }
        self.transfer.path_up(now, id, &described, false);
        match self.transfer.core.config.role {
            Role::Edge => {
                if let Some(oldest) = self.edge().connected(now, id, instance) {
                    self.close_carrier(now, oldest, "others have taken its place");
                }
            }
            Role::Gateway => {
                self.gateway().tell_allowed(now, id);
                for before in self.gateway().supersede(id, instance) {
                    self.close_carrier(now, before, "the edge opened another carrier");
                }
                if let Some((goes, reason)) = self.gateway().share_carriers(now, id) {
                    self.close_carrier(now, goes, &reason);
                }
            }
        }
    }

    /// It is time to look at a carrier.
    pub(super) fn beat(&mut self, now: Duration, id: CarrierId) {
        let Transfer { core, carriers, .. } = &mut self.transfer;
        let beat = carriers.beat(core, now, id);
        self.act_on(now, id, beat);
    }

    fn act_on(&mut self, now: Duration, id: CarrierId, beat: Beat) {
        match beat {
            Beat::Fine => {}
            Beat::Measure => self.transfer.measure(now, id, false),
            Beat::Stalls(since) => self.edge().carrier_stalls(now, id, since),
            Beat::Recovers => self.edge().carrier_recovers(now, id),
            Beat::Close(reason) => self.close_carrier(now, id, &reason),
        }
    }

    /// Something came from the peer.
    pub(super) fn heard(&mut self, now: Duration, id: CarrierId) {
        let Transfer { core, carriers, .. } = &mut self.transfer;
        if carriers.heard(core, now, id) {
            self.edge().carrier_recovers(now, id);
        }
    }

    /// Ends a carrier from this side.
    pub(super) fn close_carrier(&mut self, now: Duration, carrier: CarrierId, reason: &str) {
        if self.transfer.carriers.contains_key(&carrier) {
            let output = Output::Close { carrier, reason: reason.to_owned() };
            self.transfer.core.outputs.push_back(output);
            self.carrier_down(now, carrier, reason);
        }
    }

    /// Closes a carrier that takes nothing new and that nobody needs any more.
    pub(super) fn close_if_left(&mut self, now: Duration, id: CarrierId) {
        let Transfer { core, carriers, exchanges, .. } = &self.transfer;
        let Some(carrier) = carriers.get(&id) else { return };
        let may_end = if core.is_edge() { carrier.going_away } else { self.lingered };
        if may_end
            && carrier.exchanges.is_empty()
            && carrier.replays.is_empty()
            && carrier.machine.held_bytes() == 0
            && !exchanges.values().any(|exchange| exchange.attempts.moved_from == Some(id))
        {
            self.close_carrier(now, id, "it takes nothing new, and nothing is left on it");
        }
    }

    /// Closes a carrier whose peer does not read.
    pub(super) fn bound_backlog(&mut self, now: Duration, id: CarrierId) {
        let Transfer { core, carriers, .. } = &mut self.transfer;
        let backlog = carriers.get(&id).map_or(0, Carrier::under_way);
        if backlog > MAX_BACKLOG_BYTES {
            core.limit_reached(now, "backlog of a carrier", "carrier closed");
            self.close_carrier(now, id, "the peer does not read");
        }
    }

    /// A machine found its peer, or this side, at fault.
    pub(super) fn faulty(&mut self, now: Duration, id: CarrierId, error: &proto::Error) {
        let reason = format!("protocol fault: {error}");
        self.edge().dial_failed(now, id, DialFailure::Refused, &reason);
        self.close_carrier(now, id, &reason);
    }

    /// A carrier has ended, or never began.
    pub(super) fn carrier_down(&mut self, now: Duration, id: CarrierId, reason: &str) {
        let Transfer { core, carriers, .. } = &mut self.transfer;
        let carrier = carriers.remove(core, id);
        if let Some(carrier) = &carrier {
            let orderly = carrier.going_away || core.shutting_down;
            // An edge that never got a HELLO has reached nobody.
            let known = !core.is_edge() || carrier.machine.peer().is_some();
            let peer = if known { carrier.peer.clone() } else { String::new() };
            core.event(now, Fact::CarrierDown { peer, reason: reason.to_owned(), orderly });
        }
        if core.is_edge() {
            self.edge().dialer_lost(now, id, reason);
        }
        let Some(carrier) = carrier else { return };
        let Transfer { core, carriers, exchanges, outcomes, .. } = &mut self.transfer;
        for exchange in exchanges.values_mut().filter(|one| one.attempts.moved_from == Some(id)) {
            exchange.attempts.moved_from = None;
        }
        let is_edge = core.is_edge();
        let of_edge = if is_edge { Some(core.config.instance) } else { carrier.peer_instance() };
        let is_last = |instance| carriers.others_of(id, instance).next().is_none();
        if let Some(gone) = of_edge.filter(|instance| !is_edge && is_last(*instance)) {
            outcomes.forget_questions(gone);
        }
        self.transfer.code(now, Code::Down { path: path_of(id) });
        let Some(instance) = of_edge else { return };
        for number in &carrier.exchanges {
            let exchange = ExchangeId { instance, number: *number };
            let held = self.transfer.exchanges.get(&exchange);
            if held.and_then(Exchange::on_carrier) != Some(id) {
                continue;
            }
            match is_edge {
                true => self.edge().lost_carrier(now, exchange, &carrier),
                false => self.gateway().lost_carrier(now, exchange),
            }
        }
    }

    /// The process is to end: nothing new is taken.
    pub(super) fn shut_down(&mut self, now: Duration) {
        let Transfer { core, carriers, .. } = &mut self.transfer;
        core.shutting_down = true;
        for carrier in carriers.keys().copied().collect::<Vec<_>>() {
            self.begin_drain(now, carrier);
        }
        let Transfer { core, exchanges, .. } = &mut self.transfer;
        if !core.is_edge() {
            core.timers.set(Key::Linger, Some(now + core.config.drain_timeout));
        }
        for exchange in exchanges.unsent().map(|exchange| exchange.id).collect::<Vec<_>>() {
            let reason = "shutting down before the gateway could be reached".to_owned();
            let cause = Cause { kind: CauseKind::ShuttingDown, reason };
            self.transfer.fail_local(now, exchange, cause);
        }
    }

    /// Announces to the peer that this side takes no new exchanges on the carrier. A gateway also
    /// reports how many requests it took: over a slow link it may be gone before it could refuse
    /// the others one by one.
    fn begin_drain(&mut self, now: Duration, id: CarrierId) {
        self.transfer.code(now, Code::Flush { path: path_of(id) });
        self.transfer.send(now, id, Part::GoAway);
        // Where requests come in another order than they went, their number does not tell which.
        let carrier = self.transfer.carriers.get(&id);
        let counts = carrier.filter(|carrier| carrier.abilities.ordered);
        let requests = counts.map(|carrier| carrier.requests);
        if let Some(requests) = requests.filter(|_| !self.transfer.core.is_edge()) {
            self.transfer.send(now, id, Drained { requests }.part());
        }
    }
}
