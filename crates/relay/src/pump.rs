//! In what order parts leave: control first, answers sent again next, then a piece of each
//! exchange as the schedule has it. And what parts that come mean.

use std::time::Duration;

use bytes::Bytes;
use coding::ExchangeId;
use coding::api::{Abilities, Departed, Input as Code, Piece};
use proto::bhttp;
use proto::carrier::{Output as FromMachine, Peer};
use proto::control::{Allowed, ClientEnded, Drained, Hints, Keeping, Processor, Receipt};
use proto::exchange::{Data, Part, Role};
use record::event::Fact;

use crate::Relay;
use crate::api::{Cause, CauseKind, DialFailure, Output};
use crate::carrier::{self, Carrier, path_of};
use crate::config::{INITIAL_CREDIT_BYTES, MAX_BACKLOG_BYTES};
use crate::exchange::{Exchange, Stage};
use crate::ids::CarrierId;
use crate::timers::Key;

impl Relay {
    /// Lets every carrier that has something to do receive and send until nothing moves.
    pub(crate) fn pump(&mut self, now: Duration) {
        loop {
            while let Some(carrier) = self.dirty.pop_first() {
                self.fill(now, carrier);
                self.drain(now, carrier);
                self.close_if_left(now, carrier);
            }
            if !self.room_freed {
                return;
            }
            self.attach_waiting(now);
        }
    }

    /// Gives the machine parts while the carrier has room.
    fn fill(&mut self, now: Duration, id: CarrierId) {
        let Some(instance) = self.edge_instance(id) else { return };
        while let Some(carrier) = self.carriers.get_mut(&id) {
            if carrier.room_bytes() == 0 {
                return;
            }
            let Some(number) = carrier.schedule.next() else { return };
            self.stale.insert(id);
            let most = carrier.piece_bytes();
            let exchange = ExchangeId { instance, number };
            if carrier.replays.contains_key(&number) {
                self.send_replay(now, id, exchange, most);
            } else {
                self.send_next(now, id, exchange, most);
            }
        }
    }

    /// Sends one part of an answer again; the exchange goes on behind the last.
    fn send_replay(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId, most: usize) {
        let Some(state) = self.carriers.get_mut(&carrier) else { return };
        let credit = state.machine.credit(id.number);
        let Some(replay) = state.replays.get_mut(&id.number) else { return };
        let part = carrier::next_part(replay, credit, most);
        if replay.is_empty() {
            state.replays.remove(&id.number);
            self.offer(id);
        } else if part.is_some() {
            state.schedule.offer(id.number, u64::MAX);
        }
        if let Some(part) = part {
            self.send(now, carrier, part);
        }
    }

    /// Sends one part of an exchange and puts it back in the queue if it has more.
    fn send_next(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId, most: usize) {
        let Some(machine) = self.carriers.get(&carrier).map(|carrier| &carrier.machine) else {
            return;
        };
        let (credit, is_greeted) = (machine.credit(id.number), machine.peer().is_some());
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        if exchange.stage != Stage::Open(carrier) {
            return;
        }
        let Some(mut part) = exchange.outgoing.next_part(id.number, credit, most) else {
            return self.code(now, Code::Starved { exchange: id });
        };
        exchange.pad(self.config.instance, &mut part);
        let bytes = machine.wire_len(&part);
        exchange.meter.sent_wire_bytes += bytes as u64;
        exchange.moved = now;
        let departed = Departed {
            body: matches!(part, Part::Data(_)),
            block: matches!(&part, Part::Data(data) if data.block_end.is_some()),
            more: exchange.outgoing.is_ready(),
            end: exchange.outgoing.finished,
        };
        if self.config.role == Role::Gateway && !exchange.outgoing.is_bound() {
            exchange.log.push(&part, bytes);
        }
        let has_head = matches!(part, Part::Head(_));
        if has_head && self.config.role == Role::Edge {
            // From here on the request may have been forwarded.
            if is_greeted {
                self.timers.set(Key::Exchange(id), None);
            }
            if let Some(state) = self.carriers.get_mut(&carrier) {
                state.requests += 1;
                exchange.sent_as = Some((carrier, state.requests));
            }
        }
        self.send(now, carrier, part);
        if has_head {
            self.credit_ahead(now, carrier, id);
            self.code(now, Code::Led { exchange: id });
        }
        if departed.body || departed.end {
            self.code(now, Code::Departed { exchange: id, departed });
        }
        self.grant_local(id);
        self.settle_if_done(now, id);
        self.offer(id);
    }

    /// Where answers of late were longer than the credit that each begins with, the next one gets
    /// more with its request: over a long path it would wait a round trip for it.
    fn credit_ahead(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId) {
        if self.config.role != Role::Edge {
            return;
        }
        let longest = self.coding.longest(path_of(carrier));
        let long = longest > INITIAL_CREDIT_BYTES;
        let target = if long { self.credit_target(id) } else { INITIAL_CREDIT_BYTES };
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.incoming.opened();
        if let Some(bytes) = exchange.incoming.credit_due(target) {
            self.send(now, carrier, Part::Credit(id.number, bytes));
        }
    }

    /// Queues an exchange at its carrier if it has a part to send and is not queued.
    pub(crate) fn offer(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let Some(carrier_id) = exchange.carrier() else { return };
        let Some(carrier) = self.carriers.get_mut(&carrier_id) else { return };
        if exchange.outgoing.is_ready() {
            carrier.schedule.offer(id.number, exchange.meter.sent_wire_bytes);
            self.touch(carrier_id);
        }
    }

    /// The peer gave credit: what waited for it is scheduled.
    fn credited(&mut self, now: Duration, id: CarrierId, exchange: ExchangeId) {
        let bytes = self.carriers.get(&id).map_or(0, |one| one.machine.credit(exchange.number));
        self.code(now, Code::Credit { exchange, bytes });
        match self.carriers.get_mut(&id) {
            Some(carrier) if carrier.replays.contains_key(&exchange.number) => {
                carrier.schedule.offer(exchange.number, u64::MAX);
                self.touch(id);
            }
            _ => self.offer(exchange),
        }
    }

    /// Takes what the machine has: parts to act on, bytes to transmit, a fault.
    fn drain(&mut self, now: Duration, id: CarrierId) {
        while let Some(carrier) = self.carriers.get_mut(&id) {
            if carrier.queued > 0 && self.coding.has_waiting(path_of(id)) {
                self.code(now, Code::Leaves { path: path_of(id) });
                continue;
            }
            match carrier.machine.poll_output() {
                Some(FromMachine::Greeted) => self.greeted(now, id),
                Some(FromMachine::Received(part)) => self.received(now, id, part),
                Some(FromMachine::Answered(number)) => self.pong(now, id, number),
                Some(FromMachine::Bytes(bytes)) => self.transmit(now, id, bytes),
                Some(FromMachine::Datagram(bytes)) => {
                    carrier.datagram_left(now, bytes.len());
                    self.stale.insert(id);
                    self.outputs.push_back(Output::Datagram { carrier: id, bytes });
                    self.look_after(now, id);
                    self.bound_backlog(now, id);
                }
                Some(FromMachine::WakeAt(at)) => self.timers.set(Key::Machine(id), Some(at)),
                Some(FromMachine::Fault(error)) => {
                    let reason = format!("protocol fault: {error}");
                    self.dial_failed(now, id, DialFailure::Refused, &reason);
                    self.close_carrier(now, id, &reason);
                }
                None => {
                    // Parts of exchanges that are over were not sent.
                    carrier.queued = 0;
                    self.stale.insert(id);
                    return;
                }
            }
        }
    }

    /// Bytes leave.
    fn transmit(&mut self, now: Duration, id: CarrierId, bytes: Bytes) {
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        carrier.queued = 0;
        carrier.in_flight += bytes.len();
        carrier.transmitted += bytes.len() as u64;
        carrier.pulse.left(carrier.transmitted);
        self.stale.insert(id);
        self.outputs.push_back(Output::Transmit { carrier: id, bytes });
        self.look_after(now, id);
        self.bound_backlog(now, id);
    }

    /// Closes a carrier whose peer does not read.
    fn bound_backlog(&mut self, now: Duration, id: CarrierId) {
        let backlog = self.carriers.get(&id).map_or(0, Carrier::under_way);
        if backlog > MAX_BACKLOG_BYTES {
            let limit = "backlog of a carrier".to_owned();
            let consequence = "carrier closed".to_owned();
            self.event(now, Fact::LimitReached { limit, consequence });
            self.close_carrier(now, id, "the peer does not read");
        }
    }

    pub(crate) fn received(&mut self, now: Duration, carrier: CarrierId, part: Part) {
        let Some(instance) = self.edge_instance(carrier) else { return };
        let id = |number| ExchangeId { instance, number };
        let is_here = |number| {
            self.exchanges.get(&id(number)).and_then(Exchange::on_carrier) == Some(carrier)
        };
        if self.config.role == Role::Edge && part.exchange().is_some_and(|one| !is_here(one)) {
            // It may be over here, so that it may go by this carrier again.
            self.room_freed = true;
        }
        let Some(part) = self.hold_back(now, carrier, part) else { return };
        let here = |number| {
            self.exchanges.get(&id(number)).and_then(Exchange::on_carrier) == Some(carrier)
        };
        match part {
            Part::Head(head) => match self.config.role {
                Role::Edge if here(head.exchange) => {
                    self.response_head(now, id(head.exchange), &head);
                }
                Role::Edge => {}
                Role::Gateway => self.request_head(now, carrier, id(head.exchange), &head),
            },
            Part::Data(data) if here(data.exchange) => {
                self.peer_data(now, carrier, id(data.exchange), data);
            }
            Part::Trailers(number, trailers) if here(number) => {
                self.peer_end(now, id(number), trailers);
            }
            Part::Credit(number, _) => self.credited(now, carrier, id(number)),
            Part::Abort(abort) => {
                let exchange = id(abort.exchange);
                if here(abort.exchange) {
                    let kind = CauseKind::from_wire(abort.code);
                    self.peer_abort(now, exchange, Cause { kind, reason: abort.reason });
                } else {
                    // Of an answer that is sent again nothing else is left.
                    self.leave(now, exchange, carrier);
                }
            }
            Part::Interim(number, status) if here(number) => self.peer_interim(id(number), status),
            Part::Query(number, at) => self.query(now, carrier, id(number), at),
            Part::Outcome(number, state) => self.outcome(now, carrier, id(number), state),
            Part::GoAway => self.carrier_going_away(now, carrier),
            Part::Control(kind @ (Receipt::KIND | Keeping::KIND | Processor::KIND), content) => {
                self.code(now, Code::Control { path: path_of(carrier), kind, content });
                self.note_estimate(carrier);
            }
            Part::Control(Drained::KIND, content) => self.drained(now, carrier, &content),
            Part::Control(Hints::KIND, content) => self.hints(now, carrier, &content),
            Part::Control(Allowed::KIND, content) => self.heed_allowed(now, carrier, &content),
            Part::Control(ClientEnded::KIND, content) => {
                self.peer_client_ended(now, carrier, &content);
            }
            Part::Control(..) => {
                self.ignore(now, carrier, "control", "it is of a kind of a later version");
            }
            // Parts of exchanges that are over.
            _ => {}
        }
    }

    /// The peer has said what it is.
    fn greeted(&mut self, now: Duration, id: CarrierId) {
        self.timers.set(Key::Carrier(id), None);
        let Some(carrier) = self.carriers.get(&id) else { return };
        let Some(described) = carrier.machine.peer().cloned() else { return };
        let (peer, instance) = (carrier.peer.clone(), described.instance);
        // A name that is an address says little: who has the instance may come from another, if
        // nobody is there who had it before.
        let may_move = self.config.without_keys && self.others_of(id, instance).next().is_none();
        let carriers = &self.carriers;
        let is_here = |edge| carriers.values().any(|carrier| carrier.peer_instance() == Some(edge));
        let welcome = self.config.role == Role::Edge
            || self.outcomes.greet(instance, &peer, may_move, is_here);
        if !welcome {
            // Else one peer could ask for the answers of another's exchanges.
            self.close_carrier(now, id, "the instance belongs to another peer");
            return;
        }
        let version = described.version;
        self.event(now, Fact::CarrierUp { peer, version });
        self.measure(now, id, false);
        self.begin_pulse(now, id);
        if self.shutting_down {
            self.begin_drain(now, id);
        }
        self.path_up(now, id, &described, false);
        match self.config.role {
            Role::Edge => self.edge_connected(now, id, instance),
            Role::Gateway => {
                self.tell_allowed(now, id);
                self.supersede(now, id, instance);
                self.share_carriers(now, id);
            }
        }
    }

    /// The coding hears of a peer, by what it said on the carrier; `early`: by what it said last.
    pub(crate) fn path_up(&mut self, now: Duration, id: CarrierId, peer: &Peer, early: bool) {
        let Some(carrier) = self.carriers.get(&id) else { return };
        // Whether a codec needs nothing that both ends have to agree on first.
        let stands_alone = |codec: &u64| {
            let options = self.config.codecs.options(*codec, 0);
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
        self.stale.insert(id);
        self.code(now, Code::Up { path, peer, instance, abilities });
        self.note_estimate(id);
        if self.shutting_down {
            self.code(now, Code::Flush { path });
        }
    }

    fn peer_data(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId, data: Data) {
        let received = self.carriers.get(&carrier).map_or(0, |carrier| carrier.received);
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.moved = now;
        exchange.meter.received_wire_bytes += data.bytes.len() as u64 + 6;
        if data.end {
            exchange.incoming.end(Vec::new());
        }
        let Data { block_end, uncoded, anew, end, bytes, .. } = data;
        let piece = Piece { block_end, uncoded, anew, end, bytes };
        self.code(now, Code::Piece { exchange: id, piece, received });
    }

    fn peer_end(&mut self, now: Duration, id: ExchangeId, trailers: bhttp::Fields) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.incoming.end(trailers);
        self.code(now, Code::PeerEnd { exchange: id });
    }

    fn peer_abort(&mut self, now: Duration, id: ExchangeId, cause: Cause) {
        if !self.exchanges.contains_key(&id) {
            return;
        }
        match self.config.role {
            Role::Edge if cause.kind == CauseKind::AnsweredEarly => {
                if self.has_all(id) {
                    self.stop(now, id);
                    self.settle_if_done(now, id);
                    return;
                }
                // No failure by its name, so the client must not hear of it by that.
                let reason = "the gateway says that an answer is whole which is not".to_owned();
                return self.fail_local(now, id, Cause { kind: CauseKind::Corrupt, reason });
            }
            Role::Edge => {
                let goes_on = match cause.kind {
                    CauseKind::NotForwarded => self.try_again(now, id),
                    CauseKind::OutcomeUnknown => self.ask_again(now, id),
                    _ => false,
                };
                if goes_on {
                    return;
                }
            }
            Role::Gateway => self.note_abort(id),
        }
        self.fail_local(now, id, cause);
    }

    /// The peer sent what this side cannot take: both sides are told.
    pub(crate) fn refuse(&mut self, now: Duration, id: ExchangeId, cause: &Cause) {
        self.fail_peer(now, id, cause);
        if self.config.role == Role::Gateway {
            self.note_abort(id);
        }
        self.fail_local(now, id, cause.clone());
    }
}
