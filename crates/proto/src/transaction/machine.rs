//! One end of a carrier over a transport of requests and responses.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::asked::Asked;
use super::calls::{Call, Calls};
use super::gathered::Gathered;
use super::{Below, Event, MAX_EXCHANGES, Transport};
use crate::Error;
use crate::carrier::{self, Flows, Input, Measured, Output, Setup};
use crate::exchange::{Part, Role};
use crate::stream::{Blocks, Frame, Hello};
use crate::urgency::Urgency;

/// Credit that a gateway gives to each request from the beginning, in bytes: none that may cross
/// takes more, with what its blocks take beside their bytes.
const CREDIT_BYTES: u64 = 1 << 32;
/// Bytes of an answer that wait for transactions, whatever credit the edge gives.
const MAX_WAITING_BYTES: u64 = 256 << 10;
/// Exchanges that a gateway takes beyond what it announces: what gives one up may come later than
/// the beginning of the next.
const MAX_AHEAD: u64 = 64;
/// Answers that nobody has asked for since their transactions ended without them: an edge asks for
/// each, and of one that does not the oldest is as good as lost.
const MAX_UNASKED: usize = 32;
/// What a part has around it on the way, about: its frame, and its share of what is around that.
const AROUND_BYTES: usize = 24;

/// A payload that is being read.
#[derive(Debug)]
struct Reading {
    number: u64,
    frames: BytesMut,
    /// Of which exchange its parts are.
    exchange: Option<u64>,
    /// Gateway: it is to be answered with the others of its exchange.
    is_asked: bool,
    /// Gateway: what its own frames are answered with.
    reply: Vec<u8>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Machine<T> {
    transport: T,
    flows: Flows,
    blocks: Blocks,
    /// What is sent of exchanges, until there is a transaction for it.
    gathered: BTreeMap<u64, Gathered>,
    /// Gateway: exchanges of which something has left, so that there is room for more.
    eased: VecDeque<u64>,
    /// Edge.
    calls: Calls,
    /// Gateway.
    asked: Asked,
    /// Payloads that came: as many as transactions may be open.
    came: VecDeque<(u64, Bytes)>,
    reading: Option<Reading>,
    now: Duration,
    transport_wakes_at: Option<Duration>,
    announced_wake_at: Option<Duration>,
    /// The last output.
    end: Option<Output>,
    ended: bool,
}

impl<T: Transport> Machine<T> {
    /// A fresh end; an edge's HELLO is the first thing that it sends.
    pub(super) fn new(setup: Setup, transport: T) -> Self {
        let (role, max_exchanges) = (setup.role, setup.max_exchanges.min(MAX_EXCHANGES));
        let initial_credit = match role {
            Role::Edge => setup.initial_credit,
            Role::Gateway => CREDIT_BYTES,
        };
        let setup = Setup { initial_credit, max_exchanges, ..setup };
        let mut machine = Self {
            transport,
            flows: Flows::new(setup, MAX_AHEAD),
            blocks: Blocks::default(),
            gathered: BTreeMap::new(),
            eased: VecDeque::new(),
            calls: Calls::default(),
            asked: Asked::default(),
            came: VecDeque::new(),
            reading: None,
            now: Duration::ZERO,
            transport_wakes_at: None,
            announced_wake_at: None,
            end: None,
            ended: false,
        };
        if role == Role::Edge {
            let hello = machine.hello();
            machine.call(None, hello, true);
        }
        machine
    }

    fn role(&self) -> Role {
        self.flows.setup().role
    }

    fn hello(&self) -> Bytes {
        encoded(&Frame::Hello(Hello::of(self.flows.setup())))
    }

    fn fail(&mut self, error: Error) {
        self.finish(Output::Fault(error));
    }

    /// Nothing comes out after this.
    fn finish(&mut self, end: Output) {
        if !self.ended {
            (self.ended, self.end) = (true, Some(end));
        }
    }

    /// Edge: a transaction begins.
    fn call(&mut self, exchange: Option<u64>, payload: Bytes, asks: bool) {
        let number = self.calls.begin(Call { exchange, bytes: payload.len(), asks });
        self.transport.request(self.now, number, payload);
    }

    /// Checks a part of the relay's, and sends what is whole with it.
    fn send(&mut self, part: Part) -> Result<(), Error> {
        if !carrier::Machine::may_send(self, &part) {
            return Err(Error::Caller { what: "a part before the peer's HELLO" });
        }
        // What is of no exchange does not cross, nor is anything else about one.
        let Some(exchange) = part.exchange() else { return Ok(()) };
        let (is_edge, ends) = (self.role() == Role::Edge, ends(&part));
        let is_credit = matches!(part, Part::Credit(..));
        if !self.flows.send(&part)? || is_credit && !is_edge {
            return Ok(());
        }
        let is_abort = matches!(part, Part::Abort(_));
        let padding = self.blocks.sends(&part);
        let begins = !self.gathered.contains_key(&exchange);
        let gathered = self.gathered.entry(exchange).or_insert_with(|| Gathered::new(self.now));
        gathered.push(&Frame::Part(part), padding);
        match is_edge {
            true if is_abort => self.give_up(exchange, begins),
            // What is whole has left already: the gateway waits for it.
            true if ends || is_credit && begins => self.ask(exchange, is_credit),
            true => {}
            false => self.answer_if_due(exchange),
        }
        Ok(())
    }

    /// Edge: the request is whole; or it has left and there is credit for its answer, which goes
    /// beside the transaction that the answer comes with: there is one of those at most, so that
    /// the order is kept.
    fn ask(&mut self, exchange: u64, is_credit: bool) {
        let Some(gathered) = self.gathered.remove(&exchange) else { return };
        let payload = gathered.into_bytes();
        let waits = !is_credit && self.calls.is_busy(exchange);
        match waits || self.calls.is_held(exchange) {
            true => self.calls.hold(exchange, &payload),
            false => self.call(Some(exchange), payload, !is_credit),
        }
    }

    /// Edge: the exchange is given up. Where nothing of it has left, nobody need hear of that.
    fn give_up(&mut self, exchange: u64, has_left: bool) {
        let Some(gathered) = self.gathered.remove(&exchange) else { return };
        if self.calls.release(exchange).is_none() && has_left {
            self.call(Some(exchange), gathered.into_bytes(), false);
        }
    }

    /// Gateway: answers the transactions of an exchange, if there are any, and what there is of its
    /// answer need not wait.
    fn answer_if_due(&mut self, exchange: u64) {
        let is_open = self.flows.is_open(exchange);
        if !is_open {
            self.blocks.forget(exchange);
            self.drop_unasked();
        }
        let gathered = self.gathered.get_mut(&exchange);
        let is_due = gathered.as_ref().is_some_and(|gathered| gathered.due() <= self.now);
        if is_open && !is_due || !self.asked.has(exchange) {
            return;
        }
        let (answer, is_all) = gathered.map_or((Bytes::new(), true), |one| one.take(self.now));
        if is_all {
            self.gathered.remove(&exchange);
        }
        if is_open {
            self.eased.push_back(exchange);
        }
        let mut payloads = std::iter::once(answer);
        for number in self.asked.take(exchange) {
            self.transport.answer(self.now, number, payloads.next().unwrap_or_default());
        }
    }

    /// Gateway: what edges do not ask for is not kept without end.
    fn drop_unasked(&mut self) {
        let flows = &self.flows;
        let mut over = self.gathered.keys().filter(|exchange| !flows.is_open(**exchange));
        if let Some(oldest) = over.next().copied()
            && over.count() >= MAX_UNASKED
        {
            self.gathered.remove(&oldest);
        }
    }

    /// Gateway: transactions end with what waited for more, and those that have waited for long
    /// with nothing.
    fn answer_the_patient(&mut self) {
        let is_due =
            |(exchange, one): (&u64, &Gathered)| (one.due() <= self.now).then_some(*exchange);
        let due: Vec<u64> = self.gathered.iter().filter_map(is_due).collect();
        due.into_iter().for_each(|exchange| self.answer_if_due(exchange));
        for number in self.asked.take_older(self.now, T::PATIENCE) {
            self.transport.answer(self.now, number, Bytes::new());
        }
    }

    /// What the next frame says that says something.
    fn next_received(&mut self) -> Result<Option<Output>, Error> {
        loop {
            if self.reading.is_none() {
                let Some((number, payload)) = self.came.pop_front() else { return Ok(None) };
                let (frames, reply) = (BytesMut::from(&payload[..]), Vec::new());
                let (exchange, is_asked) = (None, false);
                self.reading = Some(Reading { number, frames, exchange, is_asked, reply });
            }
            let Some(reading) = &mut self.reading else { return Ok(None) };
            if let Some(frame) = Frame::take(&mut reading.frames)? {
                if let Some(output) = self.accept(frame)? {
                    return Ok(Some(output));
                }
            } else if reading.frames.is_empty() {
                self.reading.take().into_iter().for_each(|read| self.was_read(read));
            } else {
                return Err(Error::Truncated { what: "the frames of a transaction" });
            }
        }
    }

    /// Checks a frame of the peer; `None` for one that says nothing new.
    fn accept(&mut self, frame: Frame) -> Result<Option<Output>, Error> {
        let is_gateway = self.role() == Role::Gateway;
        let Some(reading) = &mut self.reading else { return Ok(None) };
        if self.flows.peer().is_none() && !matches!(frame, Frame::Hello(_)) {
            if is_gateway {
                // An edge that meant another gateway begins again when it hears of it.
                self.transport.refuse(self.now, reading.number);
            }
            return Err(Error::Peer { what: "the first frame must be HELLO", value: 0 });
        }
        match frame {
            Frame::Hello(hello) => {
                if is_gateway {
                    Frame::Hello(Hello::of(self.flows.setup())).encode(&mut reading.reply);
                }
                if let Err(error) = hello.check_versions() {
                    // By this the edge knows it too.
                    let reply = std::mem::take(&mut reading.reply).into();
                    self.transport.answer(self.now, reading.number, reply);
                    return Err(error);
                }
                self.flows.greet(hello.into_peer())?;
                Ok(Some(Output::Greeted))
            }
            Frame::Padding(_) => Ok(None),
            Frame::Ping(number) if is_gateway => {
                Frame::Pong(number).encode(&mut reading.reply);
                Ok(None)
            }
            Frame::Ping(_) => Err(Error::Peer { what: "a gateway asks nothing", value: 0 }),
            Frame::Pong(number) => Ok(Some(Output::Answered(number))),
            Frame::Part(part) => self.accept_part(part),
        }
    }

    fn accept_part(&mut self, part: Part) -> Result<Option<Output>, Error> {
        let Some(reading) = &mut self.reading else { return Ok(None) };
        // Later versions may say more.
        let Some(exchange) = part.exchange() else { return Ok(None) };
        let number = reading.number;
        let is_first = reading.exchange.is_none();
        if *reading.exchange.get_or_insert(exchange) != exchange {
            let what = "parts of another exchange in a transaction of exchange";
            return Err(Error::Peer { what, value: exchange });
        }
        match self.flows.setup().role {
            Role::Edge => {
                let about = self.calls.get(number).and_then(|call| call.exchange);
                if about != Some(exchange) {
                    let what = "an answer to another transaction than its own, of exchange";
                    return Err(Error::Peer { what, value: exchange });
                }
            }
            Role::Gateway if is_first => {
                let was_given_up = match part {
                    Part::Head(_) | Part::Query(..) => self.asked.was_given_up(exchange),
                    _ => false,
                };
                if was_given_up && matches!(part, Part::Head(_)) {
                    // It was to come before what gives it up.
                    reading.frames.clear();
                    return Ok(None);
                }
                // Credit alone is taken note of, and that is all.
                if !matches!(part, Part::Credit(_, 1..)) {
                    self.asked.add(self.now, exchange, number);
                    reading.is_asked = true;
                }
            }
            Role::Gateway => {}
        }
        let is_abort = matches!(part, Part::Abort(_));
        let means_something = self.flows.accept(&part)?;
        if is_abort {
            self.blocks.forget(exchange);
            let had_answer = self.gathered.remove(&exchange).is_some();
            if !means_something && !had_answer && self.role() == Role::Gateway {
                self.asked.give_up(exchange);
            }
        }
        Ok(means_something.then_some(Output::Received(part)))
    }

    /// All of a payload was read.
    fn was_read(&mut self, read: Reading) {
        let Reading { number, exchange, is_asked, reply, .. } = read;
        match exchange.filter(|_| is_asked) {
            _ if self.role() == Role::Edge => self.transaction_ended(number),
            Some(exchange) => self.answer_if_due(exchange),
            None => self.transport.answer(self.now, number, reply.into()),
        }
    }

    /// Edge: a transaction is over. Where its exchange is not, the edge asks on.
    fn transaction_ended(&mut self, number: u64) {
        let call = self.calls.get(number);
        self.calls.end(number);
        let Some(exchange) = call.and_then(|call| call.exchange) else { return };
        if self.calls.is_held(exchange) {
            if !self.calls.is_busy(exchange)
                && let Some(payload) = self.calls.release(exchange)
            {
                self.call(Some(exchange), payload, true);
            }
            return;
        }
        let has_left = !self.gathered.contains_key(&exchange);
        if has_left && self.flows.is_open(exchange) && !self.calls.is_asking(exchange) {
            let ask = encoded(&Frame::Part(Part::Credit(exchange, 0)));
            self.call(Some(exchange), ask, true);
        }
    }

    fn below(&mut self, below: Below) {
        self.transport.hear(self.now, below);
    }

    /// What the transport has to say that is for the caller.
    fn poll_transport(&mut self) -> Option<Output> {
        loop {
            match self.transport.next_event()? {
                Event::Came { number, payload } => {
                    self.came.push_back((number, payload));
                    return None;
                }
                Event::Foreign(number) => self.transport.refuse(self.now, number),
                Event::Failed(error) => self.fail(error),
                Event::Lost(error) => self.finish(Output::Lost(error)),
                Event::Bytes(bytes) => return Some(Output::Bytes(bytes)),
                Event::Datagram(bytes) => return Some(Output::Datagram(bytes)),
                Event::WakeAt(at) => self.transport_wakes_at = Some(at),
            }
        }
    }
}

impl<T: Transport> carrier::Machine for Machine<T> {
    fn handle_input(&mut self, now: Duration, input: Input) {
        if self.ended {
            return;
        }
        self.now = self.now.max(now);
        self.announced_wake_at = self.announced_wake_at.filter(|at| self.now < *at);
        self.transport_wakes_at = self.transport_wakes_at.filter(|at| self.now < *at);
        let done = match input {
            Input::Datagram(bytes) => {
                self.below(Below::Datagram(bytes));
                Ok(())
            }
            Input::Bytes(bytes) => {
                self.below(Below::Bytes(bytes));
                Ok(())
            }
            Input::Wake => {
                self.below(Below::Wake);
                Ok(())
            }
            Input::Send(part, _) => self.send(part),
            Input::Probe(number) if self.role() == Role::Edge && self.flows.peer().is_some() => {
                self.call(None, encoded(&Frame::Ping(number)), true);
                Ok(())
            }
            Input::Probe(_) => Err(Error::Caller { what: "a probe that cannot be sent" }),
            Input::Stream { .. } => Err(Error::Caller { what: "a stream of many" }),
        };
        if self.role() == Role::Gateway {
            self.answer_the_patient();
        }
        if let Err(error) = done {
            self.fail(error);
        }
    }

    /// Frames are read as they are asked for, so that what the caller sends in between (an ABORT)
    /// counts at once.
    fn poll_output(&mut self) -> Option<Output> {
        if self.ended && self.end.is_none() {
            return None;
        }
        loop {
            if let Some(exchange) = self.eased.pop_front().filter(|_| !self.ended) {
                return Some(Output::Received(Part::Credit(exchange, 0)));
            }
            if !self.ended {
                match self.next_received() {
                    Ok(Some(output)) => return Some(output),
                    Ok(None) => {}
                    Err(error) => self.fail(error),
                }
            }
            // What says why leaves before the end.
            match self.poll_transport() {
                Some(output) => return Some(output),
                None if self.came.is_empty() || self.ended => break,
                None => {}
            }
        }
        if let Some(end) = self.end.take() {
            return Some(end);
        }
        let asked = |(exchange, _): &(&u64, &Gathered)| self.asked.has(**exchange);
        let due = self.gathered.iter().filter(asked).map(|(_, gathered)| gathered.due()).min();
        let times = [self.transport_wakes_at, self.asked.due(T::PATIENCE), due];
        let wake_at = times.into_iter().flatten().min();
        let wake_at = wake_at.filter(|at| self.announced_wake_at != Some(*at))?;
        self.announced_wake_at = Some(wake_at);
        Some(Output::WakeAt(wake_at))
    }

    fn flows(&self) -> &Flows {
        &self.flows
    }

    fn may_send(&self, _: &Part) -> bool {
        self.flows.peer().is_some()
    }

    fn credit(&self, exchange: u64) -> u64 {
        let waits = self.gathered.get(&exchange).map_or(0, Gathered::bytes) as u64;
        match self.role() {
            Role::Edge => self.flows.credit(exchange),
            Role::Gateway => {
                self.flows.credit(exchange).min(MAX_WAITING_BYTES.saturating_sub(waits))
            }
        }
    }

    fn wire_len(&self, part: &Part) -> usize {
        AROUND_BYTES + part.content_len() + self.blocks.padding_of(part)
    }

    /// What is not whole yet waits for nothing but its rest.
    fn held_bytes(&self) -> usize {
        self.calls.bytes(|number| !self.transport.is_delivered(number))
    }

    fn unsent_bytes(&self, _: Urgency) -> usize {
        self.held_bytes()
    }

    fn measured(&self) -> Option<Measured> {
        self.transport.measured()
    }
}

/// Whether a part of an edge's ends what it says of an exchange.
fn ends(part: &Part) -> bool {
    match part {
        Part::Head(head) => head.end,
        Part::Data(data) => data.end,
        Part::Trailers(..) | Part::Query(..) | Part::Abort(_) => true,
        _ => false,
    }
}

fn encoded(frame: &Frame) -> Bytes {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    bytes.into()
}
