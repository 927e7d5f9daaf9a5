//! The books of a carrier's exchanges: which part may come next on each, and its credit.
//!
//! They keep the peer to the protocol (order of an exchange's parts, credit, number of exchanges)
//! and the caller too. Any machine can use them that keeps the order of each exchange's parts.

use std::collections::BTreeMap;

use super::{MAX_EARLY_EXCHANGES, Peer, Setup};
use crate::Error;
use crate::control::Keeping;
use crate::exchange::{Data, OutcomeState, Part, Role};

/// Greatest credit that may be outstanding on an exchange, in bytes; more is a peer's fault.
const MAX_CREDIT: u64 = 1 << 40;

/// How far one direction of an exchange has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlowState {
    /// The edge sent a QUERY: first comes the OUTCOME.
    Asked,
    /// Nothing was sent.
    Idle,
    /// The head was sent, and the body follows.
    Headed,
    /// The end was sent.
    Ended,
}

#[derive(Debug)]
struct Flow {
    sending: FlowState,
    receiving: FlowState,
    send_credit: u64,
    receive_credit: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Flows {
    setup: Setup,
    peer: Option<Peer>,
    slack: u64,
    flows: BTreeMap<u64, Flow>,
}

impl Flows {
    /// None is open. `slack`: exchanges that a gateway takes beyond what it has announced, where
    /// the end of one may come later than the beginning of the next.
    #[must_use]
    pub fn new(setup: Setup, slack: u64) -> Self {
        Self { setup, peer: None, slack, flows: BTreeMap::new() }
    }

    /// What this side announces of itself.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// What the peer has announced of itself, once it has.
    #[must_use]
    pub fn peer(&self) -> Option<&Peer> {
        self.peer.as_ref()
    }

    /// The peer announces itself. Errors: it has done so before.
    pub fn greet(&mut self, peer: Peer) -> Result<(), Error> {
        if self.peer.is_some() {
            return Err(Error::Peer { what: "a second HELLO", value: 0 });
        }
        let initial_credit = peer.initial_credit.min(MAX_CREDIT);
        self.peer = Some(Peer { initial_credit, ..peer });
        Ok(())
    }

    /// Credit left to send a body on an exchange ([`Data::credit`]); 0 for one that is not open.
    #[must_use]
    pub fn credit(&self, exchange: u64) -> u64 {
        self.flows.get(&exchange).map_or(0, |flow| flow.send_credit)
    }

    /// Whether a part may be sent by now, of a carrier that takes some ahead of the peer's HELLO:
    /// from an edge, heads of whole requests that name no codec, on whose behalf those are, and
    /// that they are given up.
    #[must_use]
    pub fn may_send_early(&self, part: &Part) -> bool {
        if self.peer.is_some() || self.setup.role == Role::Gateway {
            return self.peer.is_some();
        }
        match part {
            Part::Head(head) => head.end && head.codec == 0,
            Part::Abort(_) | Part::Control(Keeping::KIND, _) => true,
            _ => false,
        }
    }

    /// Whether a direction of an exchange is open.
    #[must_use]
    pub fn is_open(&self, exchange: u64) -> bool {
        self.flows.contains_key(&exchange)
    }

    /// Exchanges of which a direction is open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Nothing is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// The peer sent a part; `false` where it is of an exchange that is over. Errors: what breaks
    /// the protocol.
    pub fn accept(&mut self, part: &Part) -> Result<bool, Error> {
        match part {
            Part::GoAway | Part::Control(..) => Ok(true),
            Part::Head(head) => self.accept_head(head.exchange, head.end),
            Part::Query(exchange, _) => self.accept_query(*exchange),
            Part::Data(data) => {
                // Free of credit, so a peer could send them for ever.
                if data.bytes.is_empty() && !data.end {
                    let value = data.exchange;
                    return Err(Error::Peer { what: "an empty DATA that ends nothing", value });
                }
                self.accept_data(data.exchange, data.credit(), data.end)
            }
            Part::Trailers(exchange, _) => self.accept_data(*exchange, 0, true),
            Part::Credit(exchange, bytes) => self.accept_credit(*exchange, *bytes),
            Part::Abort(abort) => Ok(self.flows.remove(&abort.exchange).is_some()),
            Part::Interim(exchange, _) => self.accept_interim(*exchange),
            Part::Outcome(exchange, state) => self.accept_outcome(*exchange, *state),
        }
    }

    /// The relay sends a part; `false` where it means nothing any more. Errors: what the relay must
    /// not send.
    pub fn send(&mut self, part: &Part) -> Result<bool, Error> {
        match part {
            Part::Head(head) => self.send_head(head.exchange, head.end)?,
            Part::Query(exchange, _) => self.open(*exchange, FlowState::Ended, FlowState::Asked)?,
            Part::Data(data) => self.send_data(data)?,
            Part::Trailers(exchange, _) => self.send_piece(*exchange, 0, true)?,
            Part::Credit(exchange, bytes) => {
                // The message may have ended while the relay was still consuming it.
                let flow = self.flows.get_mut(exchange);
                let Some(flow) = flow.filter(|flow| flow.receiving != FlowState::Ended) else {
                    return Ok(false);
                };
                flow.receive_credit = flow.receive_credit.saturating_add(*bytes);
            }
            Part::Abort(abort) => return Ok(self.flows.remove(&abort.exchange).is_some()),
            Part::Interim(exchange, _) => return Ok(self.may_send_interim(*exchange)),
            Part::Outcome(exchange, state) if *state != OutcomeState::Answer => {
                self.flows.remove(exchange);
            }
            Part::Outcome(..) | Part::GoAway | Part::Control(..) => {}
        }
        Ok(true)
    }

    fn accept_head(&mut self, exchange: u64, end: bool) -> Result<bool, Error> {
        let next = if end { FlowState::Ended } else { FlowState::Headed };
        match (self.setup.role, self.flows.get_mut(&exchange)) {
            (Role::Gateway, None) => {
                self.open(exchange, FlowState::Idle, next)?;
                Ok(true)
            }
            (Role::Edge, Some(flow)) if flow.receiving == FlowState::Idle => {
                flow.receiving = next;
                self.close_if_done(exchange);
                Ok(true)
            }
            // A response to something given up meanwhile.
            (Role::Edge, None) => Ok(false),
            _ => Err(Error::Peer { what: "a HEAD out of turn on exchange", value: exchange }),
        }
    }

    fn accept_interim(&self, exchange: u64) -> Result<bool, Error> {
        match (self.setup.role, self.flows.get(&exchange)) {
            (Role::Edge, None) => Ok(false),
            (Role::Edge, Some(flow)) if flow.receiving == FlowState::Idle => Ok(true),
            _ => Err(Error::Peer { what: "an INTERIM out of turn on exchange", value: exchange }),
        }
    }

    fn accept_query(&mut self, exchange: u64) -> Result<bool, Error> {
        if self.setup.role == Role::Edge || self.flows.contains_key(&exchange) {
            return Err(Error::Peer { what: "a QUERY for an open exchange", value: exchange });
        }
        self.open(exchange, FlowState::Idle, FlowState::Ended)?;
        Ok(true)
    }

    fn accept_outcome(&mut self, exchange: u64, state: OutcomeState) -> Result<bool, Error> {
        match (self.setup.role, self.flows.get_mut(&exchange)) {
            (Role::Edge, None) => Ok(false),
            (Role::Edge, Some(flow)) if flow.receiving == FlowState::Asked => {
                flow.receiving = FlowState::Idle;
                if state != OutcomeState::Answer {
                    self.flows.remove(&exchange);
                }
                Ok(true)
            }
            _ => Err(Error::Peer { what: "an OUTCOME nobody asked for", value: exchange }),
        }
    }

    fn accept_data(&mut self, exchange: u64, value: u64, end: bool) -> Result<bool, Error> {
        let Some(flow) = self.flows.get_mut(&exchange) else { return Ok(false) };
        if flow.receiving != FlowState::Headed {
            return Err(Error::Peer { what: "DATA outside head and end", value: exchange });
        }
        let limit = flow.receive_credit;
        flow.receive_credit = limit.checked_sub(value).ok_or(Error::Limit {
            what: "the credit that DATA uses",
            value,
            limit,
        })?;
        if end {
            flow.receiving = FlowState::Ended;
            self.close_if_done(exchange);
        }
        Ok(true)
    }

    fn accept_credit(&mut self, exchange: u64, value: u64) -> Result<bool, Error> {
        let Some(flow) = self.flows.get_mut(&exchange) else { return Ok(false) };
        flow.send_credit = flow.send_credit.saturating_add(value);
        if flow.send_credit > MAX_CREDIT {
            return Err(Error::Limit { what: "the credit", value, limit: MAX_CREDIT });
        }
        Ok(true)
    }

    fn open(
        &mut self,
        exchange: u64,
        sending: FlowState,
        receiving: FlowState,
    ) -> Result<(), Error> {
        let limit = match (self.setup.role, &self.peer) {
            (Role::Edge, Some(peer)) => peer.max_exchanges,
            (Role::Edge, None) => MAX_EARLY_EXCHANGES,
            (Role::Gateway, _) => self.setup.max_exchanges.saturating_add(self.slack),
        };
        if self.flows.len() as u64 >= limit {
            let value = self.flows.len() as u64 + 1;
            return Err(Error::Limit { what: "the number of open exchanges", value, limit });
        }
        let send_credit = self.peer.as_ref().map_or(0, |peer| peer.initial_credit);
        let receive_credit = self.setup.initial_credit;
        let flow = Flow { sending, receiving, send_credit, receive_credit };
        self.flows.insert(exchange, flow);
        Ok(())
    }

    fn close_if_done(&mut self, exchange: u64) {
        if let Some(flow) = self.flows.get(&exchange)
            && flow.sending == FlowState::Ended
            && flow.receiving == FlowState::Ended
        {
            self.flows.remove(&exchange);
        }
    }

    fn send_head(&mut self, exchange: u64, end: bool) -> Result<(), Error> {
        let next = if end { FlowState::Ended } else { FlowState::Headed };
        match (self.setup.role, self.flows.get_mut(&exchange)) {
            (Role::Edge, None) => self.open(exchange, next, FlowState::Idle),
            (Role::Gateway, Some(flow)) if flow.sending == FlowState::Idle => {
                flow.sending = next;
                self.close_if_done(exchange);
                Ok(())
            }
            _ => Err(Error::Caller { what: "a HEAD on an exchange that is not waiting for one" }),
        }
    }

    /// Not behind the final head: the interim response came too late.
    fn may_send_interim(&self, exchange: u64) -> bool {
        self.flows.get(&exchange).is_some_and(|flow| flow.sending == FlowState::Idle)
    }

    fn send_data(&mut self, data: &Data) -> Result<(), Error> {
        if data.bytes.is_empty() && !data.end {
            return Err(Error::Caller { what: "an empty DATA that ends nothing" });
        }
        self.send_piece(data.exchange, data.credit(), data.end)
    }

    fn send_piece(&mut self, exchange: u64, credit: u64, end: bool) -> Result<(), Error> {
        let flow = self
            .flows
            .get_mut(&exchange)
            .filter(|flow| flow.sending == FlowState::Headed)
            .ok_or(Error::Caller { what: "DATA outside head and end" })?;
        flow.send_credit = flow
            .send_credit
            .checked_sub(credit)
            .ok_or(Error::Caller { what: "DATA beyond the peer's credit" })?;
        if end {
            flow.sending = FlowState::Ended;
            self.close_if_done(exchange);
        }
        Ok(())
    }
}
