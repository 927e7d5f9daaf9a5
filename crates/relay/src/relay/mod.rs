//! The relay as its shell sees it: what goes in, what comes out, and to which part each input goes.

mod ends;
mod parts;

use std::sync::Arc;
use std::time::Duration;

use coding::api::Input as Code;
use coding::{ExchangeId, Link, Service};
use proto::control::Allowed;
use proto::exchange::Role;
use record::decision::{Decision, Outcome};

use crate::api::{DialFailure, Input, Output};
use crate::config::Config;
use crate::dialer::Dialer;
use crate::edge::Edge;
use crate::exchanges::Exchange;
use crate::gateway::Gateway;
use crate::ids::CarrierKind;
use crate::places::Places;
use crate::queues::Queues;
use crate::timers::Key;
use crate::transfer::Transfer;

/// One end of the pair.
#[derive(Debug)]
pub struct Relay {
    pub(crate) transfer: Transfer,
    /// Edge: what is dialled.
    pub(crate) dialer: Dialer,
    wake_at: Option<Duration>,
    /// Gateway: edges had time to hear of the shutdown.
    lingered: bool,
    pub(crate) next_number: u64,
    /// Edge: the list that the shell knows of.
    pub(crate) published: Option<Arc<Allowed>>,
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
        let dialer = Dialer::new(config.kinds.len());
        let mut transfer = Transfer::new(config);
        if transfer.core.is_edge() {
            for kind in dialer.kinds() {
                transfer.core.timers.set(Key::Dial(kind), Some(Duration::ZERO));
            }
        }
        let (wake_at, lingered, next_number, published) = (None, false, 1, None);
        Self { transfer, dialer, wake_at, lingered, next_number, published }
    }

    /// Edge: the id of the next request.
    pub fn next_exchange(&mut self) -> ExchangeId {
        let number = self.next_number;
        self.next_number += 1;
        ExchangeId { instance: self.transfer.core.config.instance, number }
    }

    /// No exchange is open: after a shutdown, the process may end. A gateway that is shutting down
    /// also waits, within bounds, until its edges have closed their carriers: requests may be under
    /// way that it has to refuse, lest their outcome is unknown.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let Transfer { core, carriers, exchanges, coding, .. } = &self.transfer;
        let waits = core.shutting_down && !core.is_edge();
        coding.is_idle() && exchanges.is_empty() && (!waits || carriers.is_empty())
    }

    /// Takes services beside those it has, whose numbers go on behind theirs; false if they are too
    /// many.
    #[must_use]
    pub fn add_services(&mut self, services: &[Service]) -> bool {
        self.transfer.coding.add_services(services)
    }

    /// What is held now.
    #[must_use]
    pub fn load(&self) -> Load {
        let Transfer { carriers, exchanges, coding, .. } = &self.transfer;
        let held = |one: &Exchange| {
            one.outgoing.held_bytes() + one.incoming.held_bytes() + coding.held_bytes(one.id)
        };
        Load {
            exchanges: exchanges.len(),
            carriers: carriers.len(),
            held_bytes: exchanges.values().map(held).sum(),
            codec_bytes: coding.codec_bytes(),
        }
    }

    /// What is believed of the paths of all carriers that are connected.
    #[must_use]
    pub fn links(&self) -> Vec<Link> {
        self.transfer.coding.links()
    }

    /// What was learned, for [`Relay::restore`]; nothing where the choice is fixed.
    #[must_use]
    pub fn learned(&self) -> Vec<u8> {
        self.transfer.coding.learned()
    }

    /// Takes what a relay with this policy had learned, over these encodings or others.
    ///
    /// # Errors
    /// What is no such state; nothing is taken of it.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), decide::state::Error> {
        self.transfer.coding.restore(bytes)
    }

    /// What was learned of clients without an edge, for [`Relay::restore_clients`]; nothing where
    /// the choice is fixed, or where there were none.
    #[must_use]
    pub fn learned_of_clients(&self) -> Vec<u8> {
        self.transfer.coding.learned_of_clients()
    }

    /// Takes what was learned of such clients, over these encodings or others.
    ///
    /// # Errors
    /// What is no such state; nothing is taken of it.
    pub fn restore_clients(&mut self, bytes: &[u8]) -> Result<(), decide::state::Error> {
        self.transfer.coding.restore_clients(bytes)
    }

    /// Learns from a decision of an earlier process and its outcome, as it had; what it says of the
    /// network is left out: that is measured anew.
    pub fn learn_from(&mut self, decision: &Decision, outcome: &Outcome) {
        self.transfer.coding.learn_from(decision, outcome);
    }

    /// Takes a dictionary or a schema that [`Output::Store`] gave to keep under this name; of
    /// several the one that was used last comes last. It is used again once it is agreed with the
    /// peer anew.
    ///
    /// # Errors
    /// What is no such thing, or another's; nothing is taken of it.
    pub fn restore_dictionary(&mut self, name: [u8; 32], bytes: &[u8]) -> Result<(), &'static str> {
        self.transfer.coding.restore_dictionary(name, bytes)
    }

    /// Name of the peer on whose carrier an exchange is.
    #[must_use]
    pub fn peer_of(&self, id: ExchangeId) -> Option<&str> {
        let carrier = self.transfer.exchanges.get(&id)?.carrier()?;
        self.transfer.carriers.get(&carrier).map(|carrier| &carrier.peer[..])
    }

    /// Edge: how long an attempt to connect by a carrier of a kind waits before another begins
    /// beside it.
    #[must_use]
    pub fn dial_pace(&self, kind: CarrierKind) -> Duration {
        self.dialer.pace(kind, self.transfer.exchanges.is_empty())
    }

    /// Whether a request would get through now, as far as is known; why not.
    ///
    /// # Errors
    /// One line for a person.
    pub fn standing(&self) -> Result<(), String> {
        let Transfer { core, carriers, .. } = &self.transfer;
        if core.shutting_down {
            return Err("it is shutting down".to_owned());
        }
        if core.is_edge() { self.dialer.standing(carriers) } else { Ok(()) }
    }

    /// Takes one input; drain [`Relay::poll_output`] afterwards. `now` never goes back.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        match input {
            Input::Request { exchange, request, end, known } => {
                self.edge().local_request(now, exchange, &request, end, *known);
            }
            Input::Opening { exchange, opening, end, known } => {
                self.edge().local_opening(now, exchange, &opening, end, *known);
            }
            Input::Response { exchange, response, end } => {
                self.gateway().local_response(now, exchange, &response, end);
            }
            Input::Answer { exchange, message, end } => {
                self.gateway().local_answer(now, exchange, &message, end);
            }
            Input::Interim { exchange, .. } if self.transfer.core.is_edge() => {
                self.transfer.stop_expecting(exchange);
            }
            Input::Interim { exchange, status, fields } => {
                self.gateway().local_interim(now, exchange, status, fields);
            }
            Input::ClientEnded { connection } => self.edge().client_ended(now, connection),
            Input::Allowed(allowed) => self.gateway().allow(now, allowed),
            Input::Data { exchange, bytes } => self.transfer.local_data(now, exchange, bytes),
            Input::End { exchange, trailers } => self.transfer.local_end(now, exchange, trailers),
            Input::Abort { exchange, cause } => self.transfer.local_abort(now, exchange, &cause),
            Input::Credit { exchange, bytes } => self.transfer.local_credit(now, exchange, bytes),
            Input::DialFailed { carrier, failure, reason } => {
                self.edge().dial_failed(now, carrier, failure, &reason);
                self.carrier_down(now, carrier, &reason);
            }
            Input::Service { exchange, service } => {
                self.transfer.code(now, Code::Service { exchange, service });
            }
            Input::Speeds(speeds) => self.transfer.code(now, Code::Speeds(speeds)),
            Input::Transport { carrier, transport } => {
                self.transfer.transport(now, carrier, transport);
            }
            Input::CarrierUp { carrier, kind, peer } => self.carrier_up(now, carrier, kind, peer),
            Input::CarrierDown { carrier, reason } => self.carrier_down(now, carrier, &reason),
            Input::Received { carrier, bytes } => {
                self.transfer.carriers.receive(now, carrier, bytes);
                self.heard(now, carrier);
            }
            Input::Datagram { carrier, bytes } => {
                if self.transfer.carriers.receive_datagram(now, carrier, bytes) {
                    self.heard(now, carrier);
                }
            }
            Input::Stream { carrier, stream, bytes, fin } => {
                self.transfer.carriers.receive_piece(now, carrier, (stream, bytes, fin));
                self.heard(now, carrier);
            }
            Input::StreamSent { carrier, urgency, bytes } => {
                self.transfer.carriers.piece_sent(now, carrier, urgency, bytes);
            }
            Input::Sent { carrier, bytes } => self.transfer.carriers.sent(now, carrier, bytes),
            Input::Done(done) => {
                let exchange = done.exchange();
                self.transfer.code(now, Code::Done(done));
                exchange.into_iter().for_each(|exchange| self.transfer.grant_local(exchange));
            }
            Input::Client(input) => self.transfer.code(now, *input),
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
        self.transfer.core.outputs.pop_front()
    }

    /// What concerns an edge.
    fn edge(&mut self) -> Edge<'_> {
        Edge { transfer: &mut self.transfer, dialer: &mut self.dialer }
    }

    /// What concerns a gateway.
    fn gateway(&mut self) -> Gateway<'_> {
        Gateway { transfer: &mut self.transfer }
    }

    fn run_timers(&mut self, now: Duration) {
        if self.transfer.coding.wake_at().is_some_and(|at| at <= now) {
            self.transfer.code(now, Code::Wake);
        }
        while let Some(key) = self.transfer.core.timers.pop(now) {
            match key {
                Key::Exchange(exchange) => match self.transfer.core.config.role {
                    Role::Edge => self.edge().patience_ended(now, exchange),
                    Role::Gateway => self.gateway().retention_ended(now, exchange),
                },
                Key::Still(exchange) => {
                    Places::new(&mut self.transfer).look_at_still(now, exchange);
                }
                Key::Expiry(exchange) => Queues::new(&mut self.transfer).expire(now, exchange),
                Key::Carrier(carrier) => {
                    let waited = self.transfer.core.config.hello_timeout.as_secs_f64();
                    let reason = format!("no HELLO within {waited} s (hello_timeout)");
                    self.edge().dial_failed(now, carrier, DialFailure::Silent, &reason);
                    self.close_carrier(now, carrier, &reason);
                }
                Key::Pulse(carrier) => self.beat(now, carrier),
                Key::Machine(carrier) => self.transfer.carriers.wake(now, carrier),
                Key::Dial(kind) => self.edge().dial(now, kind),
                Key::Linger => {
                    self.lingered = true;
                    let Transfer { carriers, .. } = &mut self.transfer;
                    carriers.keys().copied().collect::<Vec<_>>().into_iter().for_each(|id| {
                        carriers.dirty.insert(id);
                    });
                }
            }
        }
    }

    fn update_wake(&mut self) {
        let Transfer { core, coding, .. } = &mut self.transfer;
        let next = core.timers.next().into_iter().chain(coding.wake_at()).min();
        if next != self.wake_at {
            self.wake_at = next;
            if let Some(at) = next {
                core.outputs.push_back(Output::WakeAt(at));
            }
        }
    }

    /// Edge: reports to the shell the list of the gateway that new requests go to; nothing as long
    /// as they go to none, for the next may let through what this one does not.
    fn publish_allowed(&mut self) {
        let carriers = &self.transfer.carriers;
        let mut usable = self.dialer.usable(carriers);
        let reported = usable.find_map(|id| carriers.get(&id)?.allowed.clone());
        let is_known = match (&reported, &self.published) {
            (Some(reported), Some(known)) => Arc::ptr_eq(reported, known),
            (reported, known) => reported.is_none() && known.is_none(),
        };
        if !is_known {
            self.published.clone_from(&reported);
            self.transfer.core.outputs.push_back(Output::Allowed(reported));
        }
    }
}
