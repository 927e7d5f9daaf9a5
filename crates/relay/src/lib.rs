//! The pair itself as a pure machine: request → decide → codec → proto → output.
//!
//! One [`Relay`] is an edge or a gateway. It does no work of its own: blocks to encode or decode go
//! out as [`Output::Work`], bytes as [`Output::Transmit`], and time and chance come in.
//!
//! **Drain rule.** After every [`Relay::handle_input`] call [`Relay::poll_output`] until it gives
//! `None`, and do what it says in that order. The last [`Output::WakeAt`] stands until replaced.

mod allowed;
mod along;
mod api;
mod bases;
mod carrier;
mod choice;
mod config;
mod course;
mod dialer;
mod dictionaries;
mod edge;
mod encoding;
mod exchange;
mod gateway;
mod goodbye;
mod halves;
mod held;
mod hints;
mod incoming;
mod infoset;
mod keeping;
mod lasting;
mod learned;
mod links;
mod outcomes;
mod outgoing;
mod padding;
mod privacy;
mod processor;
mod pulse;
mod pump;
mod receipts;
mod schemas;
mod shares;
#[cfg(test)]
mod tests;
mod timers;
mod trial;
mod turns;
mod waits;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

pub use api::{
    CarrierId, Cause, CauseKind, DialFailure, ExchangeId, Head, Input, Output, Work, WorkDirection,
};
pub use choice::{parts, rounded, told_parts, told_split, wanted, whole};
pub use config::{Config, INITIAL_CREDIT_BYTES, LOCAL_WINDOW_BYTES};
pub use encoding::{Encoding, Service};
pub use keeping::asker;
pub use lasting::Secret;
pub use links::{Link, figures};
pub use privacy::{Client, HOST_FIELD, forbids_keeping, is_foreign, is_of_proxy, tells_who};
pub use processor::{Speeds, name_of_model};
pub use proto::stream::{Allowed, Role};
pub use shares::is_endless;

use carrier::Carrier;
use choice::Habits;
use decide::estimate::Estimate;
use decide::policy::Policy;
use dictionaries::Dictionaries;
use exchange::Exchange;
use keeping::{Keeps, Principals};
use outcomes::Outcomes;
use proto::profile::Profile;
use proto::stream::{Abort, Frame};
use record::event::{Carried, Event, Fact};
use schemas::Schemas;
use shares::Shares;
use timers::{Key, Timers};
use trial::Shadows;
use waits::Waits;

/// One end of the pair.
#[derive(Debug)]
pub struct Relay {
    config: Config,
    outputs: VecDeque<Output>,
    timers: Timers,
    wake_at: Option<Duration>,
    carriers: BTreeMap<CarrierId, Carrier>,
    exchanges: BTreeMap<ExchangeId, Exchange>,
    outcomes: Outcomes,
    /// Carriers with something to send since the last drain.
    dirty: BTreeSet<CarrierId>,
    /// Memory reserved for what bodies go through; looks beside them are counted by themselves.
    encoder_bytes: usize,
    decoder_bytes: usize,
    /// Exchanges that wait for a decoder's memory.
    undecoded: VecDeque<ExchangeId>,
    shutting_down: bool,
    /// Gateway: edges had time to hear of the shutdown.
    lingered: bool,
    /// Edge: a place on a carrier came free since exchanges were attached.
    room_freed: bool,
    dialer: dialer::Dialer,
    next_number: u64,
    policy: Box<dyn Policy>,
    habits: Habits,
    shadows: Shadows,
    waits: Waits,
    keeps: Keeps,
    principals: Principals,
    dictionaries: Dictionaries,
    schemas: Schemas,
    shares: Shares,
    /// What peers are told of this processor; none before it was measured.
    own_profile: Option<Profile>,
    /// What is known of the paths to peers that are not connected, the longest gone first.
    paths: VecDeque<(String, Estimate)>,
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
        let mut timers = Timers::default();
        if config.role == Role::Edge {
            timers.set(Key::Dial, Some(Duration::ZERO));
        }
        Self {
            policy: config.encoding.policy(),
            habits: Habits::default(),
            shadows: Shadows::default(),
            waits: Waits::default(),
            keeps: Keeps::default(),
            principals: Principals::default(),
            dictionaries: Dictionaries::default(),
            schemas: Schemas::default(),
            shares: Shares::default(),
            own_profile: None,
            paths: VecDeque::new(),
            config,
            outputs: VecDeque::new(),
            timers,
            wake_at: None,
            carriers: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            outcomes,
            dirty: BTreeSet::new(),
            encoder_bytes: 0,
            decoder_bytes: 0,
            undecoded: VecDeque::new(),
            shutting_down: false,
            lingered: false,
            room_freed: false,
            dialer: dialer::Dialer::default(),
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
        self.exchanges.is_empty() && (!waits || self.carriers.is_empty())
    }

    /// Takes services beside those it has, whose numbers go on behind theirs; false if they are too
    /// many.
    #[must_use]
    pub fn add_services(&mut self, services: &[Service]) -> bool {
        self.config.add_services(services)
    }

    /// What is held now.
    #[must_use]
    pub fn load(&self) -> Load {
        let held =
            |exchange: &Exchange| exchange.outgoing.held_bytes() + exchange.incoming.held_bytes();
        Load {
            exchanges: self.exchanges.len(),
            carriers: self.carriers.len(),
            held_bytes: self.exchanges.values().map(held).sum(),
            codec_bytes: self.encoder_bytes + self.decoder_bytes + self.shadows.bytes(),
        }
    }

    /// Takes one input; drain [`Relay::poll_output`] afterwards. `now` never goes back.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        match input {
            Input::Head { exchange, head, end } => match head {
                Head::Request(request) => self.local_request(now, exchange, &request, end),
                Head::Response(response) => self.local_response(now, exchange, &response, end),
            },
            Input::Interim { exchange, status, fields } => {
                self.local_interim(now, exchange, status, fields);
            }
            Input::ClientEnded { connection } => self.client_ended(now, connection),
            Input::Allowed(allowed) => self.allow(now, allowed),
            Input::Data { exchange, bytes } => self.local_data(now, exchange, &bytes),
            Input::End { exchange, trailers } => self.local_end(now, exchange, trailers),
            Input::Abort { exchange, cause } => self.local_abort(now, exchange, cause),
            Input::Credit { exchange, bytes } => self.local_credit(now, exchange, bytes),
            Input::DialFailed { carrier, failure, reason } => {
                self.dial_failed(now, carrier, failure, &reason);
                self.carrier_down(now, carrier, &reason);
            }
            Input::OtherWay { exchange } => self.has_other_way(now, exchange),
            Input::Client { exchange, client } => {
                self.shares.asks(exchange, &client.name);
                self.principals.client(exchange, client);
            }
            Input::Service { exchange, service } => {
                if let Some(exchange) = self.exchanges.get_mut(&exchange) {
                    exchange.service = Some(service);
                }
            }
            Input::Speeds(speeds) => self.calibrated(now, &speeds),
            Input::Transport { carrier, transport } => {
                self.transport(now, carrier, transport);
            }
            Input::CarrierUp { carrier, peer } => self.carrier_up(now, carrier, peer),
            Input::CarrierDown { carrier, reason } => self.carrier_down(now, carrier, &reason),
            Input::Received { carrier, bytes } => {
                if let Some(carrier) = self.carriers.get_mut(&carrier) {
                    carrier.receive(now, bytes);
                }
                self.heard(now, carrier);
                self.dirty.insert(carrier);
            }
            Input::Sent { carrier, bytes } => {
                if let Some(carrier) = self.carriers.get_mut(&carrier) {
                    carrier.sent(now, bytes);
                }
                self.dirty.insert(carrier);
            }
            Input::Done { exchange, direction, block, result, cpu } => {
                self.work_done(now, exchange, (direction, block), result, cpu);
            }
            // Whoever woke us may have come early: the next instant is told again.
            Input::Wake => self.wake_at = None,
            Input::Shutdown => self.shut_down(now),
        }
        self.run_timers(now);
        self.pump(now);
        self.forget_dictionaries();
        self.publish_allowed();
        self.update_wake();
    }

    /// What there is to do, one thing at a time; `None` until the next input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn run_timers(&mut self, now: Duration) {
        while let Some(key) = self.timers.pop(now) {
            match key {
                Key::Block(exchange) => self.advance_outgoing(now, exchange),
                Key::Exchange(exchange) => self.exchange_expired(now, exchange),
                Key::Still(exchange) => self.look_at_still(now, exchange),
                Key::Decoder(exchange) => self.decoder_patience_ended(now, exchange),
                Key::Carrier(carrier) => {
                    let waited = self.config.hello_timeout.as_secs_f64();
                    let reason = format!("no HELLO within {waited} s (hello_timeout)");
                    self.dial_failed(now, carrier, DialFailure::Silent, &reason);
                    self.close_carrier(now, carrier, &reason);
                }
                Key::Pulse(carrier) => self.beat(now, carrier),
                Key::Words(carrier) => self.send_words(now, carrier),
                Key::Shelf(carrier) => self.tend_shelf(now, carrier),
                Key::Dial => self.dial(now),
                Key::Linger => {
                    self.lingered = true;
                    self.dirty.extend(self.carriers.keys());
                }
            }
        }
    }

    fn update_wake(&mut self) {
        let next = self.timers.next();
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

    fn carrier_up(&mut self, now: Duration, carrier: CarrierId, peer: String) {
        if self.config.role == Role::Edge && !self.is_wanted(carrier) {
            let reason = "another carries on".to_owned();
            return self.outputs.push_back(Output::Close { carrier, reason });
        }
        let estimate = self.path_of(&peer);
        self.carriers.insert(carrier, Carrier::new(&self.config, peer, estimate));
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
            && !exchanges.any(|exchange| exchange.moved_from == Some(id))
        {
            self.close_carrier(now, id, "it takes nothing new, and nothing is left on it");
        }
    }

    fn carrier_down(&mut self, now: Duration, id: CarrierId, reason: &str) {
        self.timers.set(Key::Carrier(id), None);
        self.timers.set(Key::Pulse(id), None);
        self.timers.set(Key::Words(id), None);
        self.timers.set(Key::Shelf(id), None);
        self.dirty.remove(&id);
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
        let Some(mut carrier) = carrier else { return };
        for exchange in self.exchanges.values_mut().filter(|one| one.moved_from == Some(id)) {
            exchange.moved_from = None;
        }
        self.keep_path(&carrier.peer, carrier.estimate.clone());
        self.give_up_receipts(std::mem::take(&mut carrier.awaited).into_values());
        let instance = match self.config.role {
            Role::Edge => Some(self.config.instance),
            Role::Gateway => carrier.peer_instance(),
        };
        let Some(instance) = instance else { return };
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

    /// Whether the peer takes blocks that begin a context anew.
    fn takes_anew(&self, carrier: CarrierId) -> bool {
        self.carriers.get(&carrier).is_some_and(Carrier::takes_anew)
    }

    fn shut_down(&mut self, now: Duration) {
        self.shutting_down = true;
        let carriers: Vec<_> = self.carriers.keys().copied().collect();
        for carrier in carriers {
            self.say_goodbye(now, carrier);
        }
        if self.config.role == Role::Gateway {
            self.timers.set(Key::Linger, Some(now + self.config.goodbye_timeout));
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

    /// Gives a frame to a carrier's machine; it leaves at the next drain.
    fn send(&mut self, now: Duration, carrier: CarrierId, frame: Frame) -> usize {
        let Some(carrier_state) = self.carriers.get_mut(&carrier) else { return 0 };
        if !carrier_state.machine.may_send(&frame) {
            return 0;
        }
        self.dirty.insert(carrier);
        // Whether the peer hears anything shows first with its HELLO.
        let may_be_answered = carrier_state.machine.peer().is_some()
            && matches!(
                frame,
                Frame::Head(_) | Frame::Data(_) | Frame::Trailers(..) | Frame::Query(_)
            );
        let bytes = carrier_state.send(now, frame);
        if may_be_answered {
            self.spoke(now, carrier);
        }
        bytes
    }

    /// Tells the local side that the exchange is over, and forgets it.
    fn fail_local(&mut self, now: Duration, id: ExchangeId, cause: Cause) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let cause = exchange.honest(cause);
        let untouched =
            exchange.stage == exchange::Stage::Waiting && exchange.outgoing.is_untouched();
        self.failed(now, id, &cause);
        self.outputs.push_back(Output::Abort { exchange: id, cause, untouched });
        self.forget(id);
    }

    /// Tells the peer that the exchange is over.
    fn fail_peer(&mut self, now: Duration, id: ExchangeId, cause: &Cause) {
        let Some(carrier) = self.exchanges.get(&id).and_then(Exchange::on_carrier) else { return };
        let abort =
            Abort { exchange: id.number, code: cause.kind.to_wire(), reason: cause.reason.clone() };
        self.send(now, carrier, Frame::Abort(abort));
    }

    /// Tells that an exchange that is held ended before its time. Who is served without an end, by
    /// a tunnel or an event stream, ends it when he has enough: that is no failure.
    fn failed(&mut self, now: Duration, id: ExchangeId, cause: &Cause) {
        let Some(held) = self.exchanges.get(&id) else { return self.refused(now, id, cause) };
        let elapsed_s = now.saturating_sub(held.started).as_secs_f64();
        let (exchange, status, carried) = (id.to_string(), held.status, held.carried());
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

    /// Drops everything held for an exchange; the caller has told whom it concerns.
    fn forget(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.remove(&id) else { return };
        self.dirty.extend(exchange.moved_from);
        self.timers.set(Key::Block(id), None);
        self.timers.set(Key::Exchange(id), None);
        self.timers.set(Key::Still(id), None);
        self.shares.leave(&exchange.place);
        self.encoder_bytes -= exchange.encoder_bytes;
        self.decoder_bytes -= exchange.decoder_bytes.unwrap_or(0);
        if exchange.has_contexts {
            self.outputs.push_back(Output::Release { exchange: id });
        }
        if self.timers.is_set(Key::Decoder(id)) {
            self.timers.set(Key::Decoder(id), None);
            self.undecoded.retain(|other| *other != id);
        }
        if let Some(place) = exchange.on_carrier() {
            self.leave(id, place);
        }
    }

    /// The exchange has no business on the carrier any more; others may have its place.
    fn leave(&mut self, id: ExchangeId, carrier: CarrierId) {
        if let Some(state) = self.carriers.get_mut(&carrier) {
            state.forget(id.number);
            self.room_freed = self.config.role == Role::Edge;
            self.dirty.insert(carrier);
        }
    }

    fn event(&mut self, now: Duration, fact: Fact) {
        self.outputs.push_back(Output::Event(Event { at_s: now.as_secs_f64(), fact }));
    }
}
