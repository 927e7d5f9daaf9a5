//! The pair itself as a pure machine: request → decide → codec → proto → output.
//!
//! One [`Relay`] is an edge or a gateway. It does no work of its own: blocks to encode or decode go
//! out as [`Output::Job`], bytes as [`Output::Transmit`], and time and chance come in.
//!
//! **Drain rule.** After every [`Relay::handle_input`] call [`Relay::poll_output`] until it gives
//! `None`, and do what it says in that order. The last [`Output::WakeAt`] stands until replaced.

mod allowed;
mod api;
mod bodies;
mod carrier;
mod config;
mod dialer;
mod drain;
mod edge;
mod exchange;
mod gateway;
mod http;
mod ids;
mod incoming;
mod kind;
mod measure;
mod opening;
mod outcomes;
mod outgoing;
mod padding;
mod pulse;
mod pump;
mod schedule;
mod shares;
#[cfg(test)]
mod tests;
mod timers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

pub use api::{Cause, CauseKind, DialFailure, Head, Input, Known, Output};
pub use config::{Config, INITIAL_CREDIT_BYTES, LOCAL_WINDOW_BYTES};
pub use http::is_endless;
pub use http::privacy::{
    Client, HOST_FIELD, forbids_keeping, is_cross_site, is_of_proxy, tells_who,
};
pub use http::requester::requester;
pub use ids::{CarrierId, CarrierKind};
pub use proto::control::Allowed;
pub use proto::exchange::Role;

use carrier::{Carrier, path_of};
use coding::api::Input as Code;
use coding::{Coding, ExchangeId, Link, Service};
use exchange::{Exchange, Stage};
use outcomes::Outcomes;
use proto::exchange::{Abort, Part};
use proto::timers::Timers;
use record::decision::{Decision, Outcome};
use record::event::{Carried, Event, Fact};
use shares::Shares;
use timers::Key;

/// One end of the pair.
#[derive(Debug)]
pub struct Relay {
    config: Config,
    outputs: VecDeque<Output>,
    timers: Timers<Key>,
    wake_at: Option<Duration>,
    carriers: BTreeMap<CarrierId, Carrier>,
    exchanges: BTreeMap<ExchangeId, Exchange>,
    /// Those that wait for a carrier, or for the question about them to go: whoever looks for them
    /// need not look at all.
    waiting: BTreeSet<ExchangeId>,
    outcomes: Outcomes,
    /// Carriers with something to send since the last drain.
    dirty: BTreeSet<CarrierId>,
    /// In which form messages cross.
    coding: Coding,
    /// What the coding says is being done.
    is_coding: bool,
    /// Carriers that have carried something since that was reported to the coding.
    stale: BTreeSet<CarrierId>,
    shutting_down: bool,
    /// Gateway: edges had time to hear of the shutdown.
    lingered: bool,
    /// Edge: a place on a carrier came free since exchanges were attached.
    room_freed: bool,
    dialer: dialer::Dialer,
    next_number: u64,
    shares: Shares,
    /// Edge: the list that the shell knows of.
    published: Option<Arc<Allowed>>,
}

/// What a relay holds now, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Exchanges open.
    pub exchanges: usize,
    /// Carriers connected.
    pub carriers: usize,
    /// Body bytes held in both directions.
    pub held_bytes: usize,
    /// Memory reserved for codec contexts, in bytes.
    pub codec_bytes: usize,
}

impl Relay {
    /// An idle relay. An edge dials at its first input.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let outcomes = Outcomes::new(config.retained_bytes);
        let dialer = dialer::Dialer::new(config.kinds.len());
        let mut timers = Timers::<Key>::default();
        if config.role == Role::Edge {
            let kinds = (0..config.kinds.len()).map(CarrierKind);
            kinds.for_each(|kind| timers.set(Key::Dial(kind), Some(Duration::ZERO)));
        }
        Self {
            coding: Coding::new(config.coding()),
            is_coding: false,
            stale: BTreeSet::new(),
            shares: Shares::default(),
            config,
            outputs: VecDeque::new(),
            timers,
            wake_at: None,
            carriers: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            waiting: BTreeSet::new(),
            outcomes,
            dirty: BTreeSet::new(),
            shutting_down: false,
            lingered: false,
            room_freed: false,
            dialer,
            next_number: 1,
            published: None,
        }
    }

    /// Edge: the id of the next request.
    pub fn next_exchange(&mut self) -> ExchangeId {
        let number = self.next_number;
        self.next_number += 1;
        ExchangeId { instance: self.config.instance, number }
    }

    /// No exchange is open: after a shutdown, the process may end. A gateway that is shutting down
    /// also waits, within bounds, until its edges have closed their carriers: requests may be under
    /// way that it has to refuse, lest their outcome is unknown.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let waits = self.shutting_down && self.config.role == Role::Gateway;
        self.coding.is_idle() && self.exchanges.is_empty() && (!waits || self.carriers.is_empty())
    }

    /// Takes services beside those it has, whose numbers go on behind theirs; false if they are too
    /// many.
    #[must_use]
    pub fn add_services(&mut self, services: &[Service]) -> bool {
        self.coding.add_services(services)
    }

    /// What is held now.
    #[must_use]
    pub fn load(&self) -> Load {
        let held = |one: &Exchange| {
            let coding = self.coding.held_bytes(one.id);
            one.outgoing.held_bytes() + one.incoming.held_bytes() + coding
        };
        Load {
            exchanges: self.exchanges.len(),
            carriers: self.carriers.len(),
            held_bytes: self.exchanges.values().map(held).sum(),
            codec_bytes: self.coding.codec_bytes(),
        }
    }

    /// Takes one input; drain [`Relay::poll_output`] afterwards. `now` never goes back.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        match input {
            Input::Request { exchange, request, end, known } => {
                self.local_request(now, exchange, &request, end, *known);
            }
            Input::Opening { exchange, opening, end, known } => {
                self.local_opening(now, exchange, &opening, end, *known);
            }
            Input::Response { exchange, response, end } => {
                self.local_response(now, exchange, &response, end);
            }
            Input::Answer { exchange, message, end } => {
                self.local_answer(now, exchange, &message, end);
            }
            Input::Interim { exchange, status, fields } => {
                self.local_interim(now, exchange, status, fields);
            }
            Input::ClientEnded { connection } => self.client_ended(now, connection),
            Input::Allowed(allowed) => self.allow(now, allowed),
            Input::Data { exchange, bytes } => self.local_data(now, exchange, bytes),
            Input::End { exchange, trailers } => self.local_end(now, exchange, trailers),
            Input::Abort { exchange, cause } => self.local_abort(now, exchange, cause),
            Input::Credit { exchange, bytes } => self.local_credit(now, exchange, bytes),
            Input::DialFailed { carrier, failure, reason } => {
                self.dial_failed(now, carrier, failure, &reason);
                self.carrier_down(now, carrier, &reason);
            }
            Input::Service { exchange, service } => {
                self.code(now, Code::Service { exchange, service });
            }
            Input::Speeds(speeds) => self.code(now, Code::Speeds(speeds)),
            Input::Transport { carrier, transport } => {
                self.transport(now, carrier, transport);
            }
            Input::CarrierUp { carrier, kind, peer } => self.carrier_up(now, carrier, kind, peer),
            Input::CarrierDown { carrier, reason } => self.carrier_down(now, carrier, &reason),
            Input::Received { carrier, bytes } => {
                if let Some(carrier) = self.carriers.get_mut(&carrier) {
                    carrier.receive(now, bytes);
                }
                self.heard(now, carrier);
                self.touch(carrier);
            }
            Input::Datagram { carrier, bytes } => {
                let state = self.carriers.get_mut(&carrier);
                if state.is_some_and(|state| state.receive_datagram(now, bytes)) {
                    self.heard(now, carrier);
                    self.touch(carrier);
                }
            }
            Input::Sent { carrier, bytes } => {
                if let Some(carrier) = self.carriers.get_mut(&carrier) {
                    carrier.sent(now, bytes);
                }
                self.touch(carrier);
            }
            Input::Done(done) => {
                let exchange = done.exchange();
                self.code(now, Code::Done(done));
                exchange.into_iter().for_each(|exchange| self.grant_local(exchange));
            }
            Input::Client(input) => self.code(now, *input),
            // Whoever woke us may have come early: the next instant is told again.
            Input::Wake => self.wake_at = None,
            Input::Shutdown => self.shut_down(now),
        }
        self.run_timers(now);
        self.pump(now);
        self.publish_allowed();
        self.update_wake();
    }

    /// What there is to do, one thing at a time; `None` until the next input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn run_timers(&mut self, now: Duration) {
        if self.coding.wake_at().is_some_and(|at| at <= now) {
            self.code(now, Code::Wake);
        }
        while let Some(key) = self.timers.pop(now) {
            match key {
                Key::Exchange(exchange) => self.exchange_expired(now, exchange),
                Key::Still(exchange) => self.look_at_still(now, exchange),
                Key::Carrier(carrier) => {
                    let waited = self.config.hello_timeout.as_secs_f64();
                    let reason = format!("no HELLO within {waited} s (hello_timeout)");
                    self.dial_failed(now, carrier, DialFailure::Silent, &reason);
                    self.close_carrier(now, carrier, &reason);
                }
                Key::Pulse(carrier) => self.beat(now, carrier),
                Key::Machine(id) => {
                    self.carriers.get_mut(&id).into_iter().for_each(|carrier| carrier.wake(now));
                    self.touch(id);
                }
                Key::Dial(kind) => self.dial(now, kind),
                Key::Linger => {
                    self.lingered = true;
                    self.dirty.extend(self.carriers.keys());
                }
            }
        }
    }

    fn update_wake(&mut self) {
        let next = self.timers.next().into_iter().chain(self.coding.wake_at()).min();
        if next != self.wake_at {
            self.wake_at = next;
            if let Some(at) = next {
                self.outputs.push_back(Output::WakeAt(at));
            }
        }
    }

    fn exchange_expired(&mut self, now: Duration, exchange: ExchangeId) {
        match self.config.role {
            Role::Edge => self.edge_patience_ended(now, exchange),
            Role::Gateway => self.gateway_retention_ended(now, exchange),
        }
    }

    fn carrier_up(&mut self, now: Duration, carrier: CarrierId, kind: CarrierKind, peer: String) {
        let wanted = match self.config.role {
            Role::Edge => self.wanted(carrier),
            Role::Gateway => Some(kind),
        };
        let made = wanted.and_then(|kind| Some((kind, *self.config.kinds.get(kind.0)?)));
        let Some(made) = made else {
            let reason = "another carries on".to_owned();
            return self.outputs.push_back(Output::Close { carrier, reason });
        };
        let codecs = self.coding.codecs().collect();
        let state = Carrier::new(&self.config, made, peer, codecs);
        self.carriers.insert(carrier, state);
        self.timers.set(Key::Carrier(carrier), Some(now + self.config.hello_timeout));
        self.dirty.insert(carrier);
        if self.config.role == Role::Edge {
            self.attach_early(now, carrier);
        }
    }

    /// Ends a carrier from this side.
    fn close_carrier(&mut self, now: Duration, carrier: CarrierId, reason: &str) {
        if self.carriers.contains_key(&carrier) {
            self.outputs.push_back(Output::Close { carrier, reason: reason.to_owned() });
            self.carrier_down(now, carrier, reason);
        }
    }

    /// Closes a carrier that takes nothing new and that nobody needs any more.
    fn close_if_left(&mut self, now: Duration, id: CarrierId) {
        let Some(carrier) = self.carriers.get(&id) else { return };
        let may_end = match self.config.role {
            Role::Edge => carrier.going_away,
            Role::Gateway => self.lingered,
        };
        let mut exchanges = self.exchanges.values();
        if may_end
            && carrier.exchanges.is_empty()
            && carrier.replays.is_empty()
            && carrier.machine.held_bytes() == 0
            && !exchanges.any(|exchange| exchange.moved_from == Some(id))
        {
            self.close_carrier(now, id, "it takes nothing new, and nothing is left on it");
        }
    }

    fn carrier_down(&mut self, now: Duration, id: CarrierId, reason: &str) {
        self.timers.set(Key::Carrier(id), None);
        self.timers.set(Key::Pulse(id), None);
        self.timers.set(Key::Machine(id), None);
        self.dirty.remove(&id);
        self.stale.remove(&id);
        let carrier = self.carriers.remove(&id);
        if let Some(carrier) = &carrier {
            let orderly = carrier.going_away || self.shutting_down;
            // An edge that never got a HELLO has reached nobody.
            let known = self.config.role == Role::Gateway || carrier.machine.peer().is_some();
            let peer = if known { carrier.peer.clone() } else { String::new() };
            let reason = reason.to_owned();
            self.event(now, Fact::CarrierDown { peer, reason, orderly });
        }
        if self.config.role == Role::Edge {
            self.dialer_lost(now, id, reason);
        }
        let Some(carrier) = carrier else { return };
        for exchange in self.exchanges.values_mut().filter(|one| one.moved_from == Some(id)) {
            exchange.moved_from = None;
        }
        self.code(now, Code::Down { path: path_of(id) });
        let instance = match self.config.role {
            Role::Edge => Some(self.config.instance),
            Role::Gateway => carrier.peer_instance(),
        };
        let Some(instance) = instance else { return };
        if self.config.role == Role::Gateway && self.others_of(id, instance).next().is_none() {
            self.outcomes.forget_questions(instance);
        }
        for number in &carrier.exchanges {
            let exchange = ExchangeId { instance, number: *number };
            if self.exchanges.get(&exchange).and_then(Exchange::on_carrier) != Some(id) {
                continue;
            }
            match self.config.role {
                Role::Edge => self.edge_lost_carrier(now, exchange, &carrier),
                Role::Gateway => self.gateway_lost_carrier(now, exchange),
            }
        }
    }

    /// The instance of the edge at the other end of, or at this end of, a carrier.
    fn edge_instance(&self, carrier: CarrierId) -> Option<u64> {
        match self.config.role {
            Role::Edge => Some(self.config.instance),
            Role::Gateway => self.carriers.get(&carrier)?.peer_instance(),
        }
    }

    /// Other carriers with the same instance at the other end.
    fn others_of(&self, carrier: CarrierId, instance: u64) -> impl Iterator<Item = CarrierId> {
        let all = self.carriers.iter().filter(move |(id, _)| **id != carrier);
        all.filter(move |(_, state)| state.peer_instance() == Some(instance)).map(|(id, _)| *id)
    }

    /// What is believed of the paths of all carriers that are connected.
    #[must_use]
    pub fn links(&self) -> Vec<Link> {
        self.coding.links()
    }

    /// What was learned, for [`Relay::restore`]; nothing where the choice is fixed.
    #[must_use]
    pub fn learned(&self) -> Vec<u8> {
        self.coding.learned()
    }

    /// Takes what a relay with this policy had learned, over these encodings or others.
    ///
    /// # Errors
    /// What is no such state; nothing is taken of it.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), decide::state::Error> {
        self.coding.restore(bytes)
    }

    /// What was learned of clients without an edge, for [`Relay::restore_clients`]; nothing where
    /// the choice is fixed, or where there were none.
    #[must_use]
    pub fn learned_of_clients(&self) -> Vec<u8> {
        self.coding.learned_of_clients()
    }

    /// Takes what was learned of such clients, over these encodings or others.
    ///
    /// # Errors
    /// What is no such state; nothing is taken of it.
    pub fn restore_clients(&mut self, bytes: &[u8]) -> Result<(), decide::state::Error> {
        self.coding.restore_clients(bytes)
    }

    /// Learns from a decision of an earlier process and its outcome, as it had; what it says of the
    /// network is left out: that is measured anew.
    pub fn learn_from(&mut self, decision: &Decision, outcome: &Outcome) {
        self.coding.learn_from(decision, outcome);
    }

    /// Takes a dictionary or a schema that [`Output::Store`] gave to keep under this name; of
    /// several the one that was used last comes last. It is used again once it is agreed with the
    /// peer anew.
    ///
    /// # Errors
    /// What is no such thing, or another's; nothing is taken of it.
    pub fn restore_dictionary(&mut self, name: [u8; 32], bytes: &[u8]) -> Result<(), &'static str> {
        self.coding.restore_dictionary(name, bytes)
    }

    /// Whether the peer takes blocks that begin a context anew.
    fn takes_anew(&self, carrier: CarrierId) -> bool {
        self.carriers.get(&carrier).is_some_and(Carrier::takes_anew)
    }

    fn shut_down(&mut self, now: Duration) {
        self.shutting_down = true;
        let carriers: Vec<_> = self.carriers.keys().copied().collect();
        for carrier in carriers {
            self.begin_drain(now, carrier);
        }
        if self.config.role == Role::Gateway {
            self.timers.set(Key::Linger, Some(now + self.config.drain_timeout));
        }
        let waiting: Vec<_> = self.waiting_exchanges().collect();
        for exchange in waiting {
            let reason = "shutting down before the gateway could be reached".to_owned();
            self.fail_local(now, exchange, Cause { kind: CauseKind::ShuttingDown, reason });
        }
    }

    /// Name of the peer on whose carrier an exchange is.
    #[must_use]
    pub fn peer_of(&self, id: ExchangeId) -> Option<&str> {
        let carrier = self.exchanges.get(&id)?.carrier()?;
        self.carriers.get(&carrier).map(|carrier| &carrier.peer[..])
    }

    /// Gives a part to a carrier's machine; it leaves at the next drain.
    fn send(&mut self, now: Duration, carrier: CarrierId, part: Part) -> usize {
        let Some(carrier_state) = self.carriers.get_mut(&carrier) else { return 0 };
        let crosses = part.exchange().is_some() || carrier_state.has_control(self.config.role);
        if !crosses || !carrier_state.machine.may_send(&part) {
            return 0;
        }
        self.dirty.insert(carrier);
        self.stale.insert(carrier);
        // Whether the peer hears anything shows first with its HELLO.
        let may_be_answered = carrier_state.machine.peer().is_some()
            && matches!(part, Part::Head(_) | Part::Data(_) | Part::Trailers(..) | Part::Query(..));
        let bytes = carrier_state.send(now, part);
        if may_be_answered {
            self.spoke(now, carrier);
        }
        bytes
    }

    /// Tells the local side that the exchange is over, and forgets it.
    fn fail_local(&mut self, now: Duration, id: ExchangeId, cause: Cause) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let cause = exchange.honest(cause);
        let untouched = exchange.stage == Stage::Waiting && exchange.outgoing.is_untouched();
        self.failed(now, id, &cause);
        self.outputs.push_back(Output::Abort { exchange: id, cause, untouched });
        self.forget(now, id);
    }

    /// Tells the peer that the exchange is over.
    fn fail_peer(&mut self, now: Duration, id: ExchangeId, cause: &Cause) {
        let Some(carrier) = self.exchanges.get(&id).and_then(Exchange::on_carrier) else { return };
        let abort =
            Abort { exchange: id.number, code: cause.kind.to_wire(), reason: cause.reason.clone() };
        self.send(now, carrier, Part::Abort(abort));
    }

    /// Tells that an exchange that is held ended before its time. Who is served without an end, by
    /// a tunnel or an event stream, ends it when he has enough: that is no failure.
    fn failed(&mut self, now: Duration, id: ExchangeId, cause: &Cause) {
        let Some(held) = self.exchanges.get(&id) else { return self.refused(now, id, cause) };
        let elapsed_s = now.saturating_sub(held.started).as_secs_f64();
        let (exchange, status, carried) = (id.to_string(), held.status, self.carried(id));
        self.event(
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
    fn refused(&mut self, now: Duration, id: ExchangeId, cause: &Cause) {
        let (exchange, reason) = (id.to_string(), cause.reason.clone());
        let (cause, carried) = (cause.kind.name().to_owned(), Carried::default());
        let (elapsed_s, status) = (0.0, 0);
        self.event(now, Fact::Failed { exchange, cause, reason, elapsed_s, status, carried });
    }

    /// Drops everything held for an exchange; the caller has informed whom it concerns.
    fn forget(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.remove(&id) else { return };
        self.waiting.remove(&id);
        self.code(now, Code::Forget { exchange: id });
        self.dirty.extend(exchange.moved_from);
        self.timers.set(Key::Exchange(id), None);
        self.timers.set(Key::Still(id), None);
        self.shares.leave(&exchange.place);
        if let Some(place) = exchange.on_carrier() {
            self.leave(now, id, place);
        }
        if self.config.role == Role::Edge {
            self.end_flows(now, id);
        }
    }

    /// Edge: whatever is still open of an exchange, on a carrier that it was on before, is wanted
    /// no more.
    fn end_flows(&mut self, now: Duration, id: ExchangeId) {
        let number = id.number;
        let open = self.carriers.iter().filter(|(_, one)| one.machine.is_open(number));
        for carrier in open.map(|(id, _)| *id).collect::<Vec<_>>() {
            let (code, reason) = (CauseKind::ClientGone.to_wire(), "it is over".to_owned());
            self.send(now, carrier, Part::Abort(Abort { exchange: number, code, reason }));
        }
    }

    /// What passed in an exchange.
    fn carried(&self, id: ExchangeId) -> Carried {
        let one = self.exchanges.get(&id);
        one.map_or_else(Carried::default, |one| one.carried(self.coding.cpu(id)))
    }

    /// An exchange stands there towards its carrier from here on.
    fn set_stage(&mut self, now: Duration, id: ExchangeId, stage: Stage) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.stage = stage;
        if stage.waits() {
            self.waiting.insert(id);
        } else {
            self.waiting.remove(&id);
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

    fn stage_of(&self, id: ExchangeId) -> Option<Stage> {
        self.exchanges.get(&id).map(|exchange| exchange.stage)
    }

    /// Something moved, or may move, on a carrier.
    fn touch(&mut self, carrier: CarrierId) {
        self.dirty.insert(carrier);
        self.stale.insert(carrier);
    }

    /// The exchange has no business on the carrier any more; others may have its place.
    fn leave(&mut self, now: Duration, id: ExchangeId, carrier: CarrierId) {
        if let Some(state) = self.carriers.get_mut(&carrier) {
            state.forget(id.number);
            self.room_freed = self.config.role == Role::Edge;
            self.touch(carrier);
            self.code(now, Code::Leave { exchange: id, path: path_of(carrier) });
        }
    }

    fn event(&mut self, now: Duration, fact: Fact) {
        self.outputs.push_back(Output::Event(Event { at_s: now.as_secs_f64(), fact }));
    }
}
