//! A client of MQTT-SN: connection, will, topics, publications of all levels, subscriptions, sleep,
//! and transmissions until there is an answer (MQTT-SN 1.2 §6).
//!
//! One request of its own is outstanding at a time, and one connects, sleeps or leaves at a time.
//! Each is transmitted until it is answered, [`Settings::max_retries`] times at most; then the
//! gateway is taken for lost (MQTT-SN 1.2 §6.13). What was requested waits for another connection,
//! so that publications of level 1 arrive at least once and those of level 2 exactly once where the
//! session is not a clean one.

mod request;
mod settings;
#[cfg(test)]
mod tests;
mod topics;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use super::{Code, PROTOCOL_ID, Packet, Publish, Qos};
use request::{Attempt, Request, Step, encode, is_will, will_topic};
use topics::Topics;

pub use settings::*;

/// How a client stands to its gateway (MQTT-SN 1.2 §6.14, figure 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Disconnected,
    /// CONNECT, WILLTOPIC or WILLMSG is outstanding.
    Connecting,
    Active,
    /// DISCONNECT with a duration is outstanding.
    FallingAsleep,
    Asleep,
    /// PINGREQ with the client id is outstanding.
    Awake,
    /// DISCONNECT is outstanding.
    Leaving,
}

/// One client and one gateway.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    now: Duration,
    phase: Phase,
    topics: Topics,
    /// The first is the one that is outstanding; at most [`MAX_REQUESTS`].
    requests: VecDeque<Request>,
    /// The transmissions of the first request.
    exchange: Option<Attempt>,
    /// What changes the phase, or asks whether the gateway is there.
    control: Option<Attempt>,
    /// Publications of level 2 that have arrived; at most [`MAX_UNRELEASED`].
    unreleased: VecDeque<u16>,
    /// Those whose PUBREL has come last in this connection; at most [`MAX_RELEASED`].
    released: VecDeque<u16>,
    next_msg_id: u16,
    sent_at: Duration,
    outputs: VecDeque<Output>,
    announced_wake_at: Option<Duration>,
}

impl Client {
    /// One that has not connected yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            next_msg_id: settings.first_msg_id.max(1),
            settings,
            now: Duration::ZERO,
            phase: Phase::Disconnected,
            topics: Topics::default(),
            requests: VecDeque::new(),
            exchange: None,
            control: None,
            unreleased: VecDeque::new(),
            released: VecDeque::new(),
            sent_at: Duration::ZERO,
            outputs: VecDeque::new(),
            announced_wake_at: None,
        }
    }

    /// Whether requests can leave.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.phase == Phase::Active
    }

    /// Requests that are not done.
    #[must_use]
    pub fn open_requests(&self) -> usize {
        self.requests.len()
    }

    /// Takes what happened at `now`, which does not go back. Then [`Client::poll_output`] is to be
    /// called until it has nothing.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        self.now = self.now.max(now);
        self.announced_wake_at = self.announced_wake_at.filter(|at| self.now < *at);
        match input {
            Input::Datagram(bytes) => self.received(&bytes),
            Input::Connect => self.connect(),
            Input::Request { request, action } => self.request(request, action),
            Input::Sleep(duration) => self.sleep(duration),
            Input::Fetch if self.phase == Phase::Asleep => {
                self.phase = Phase::Awake;
                let client_id = self.settings.client_id.clone();
                self.control(&Packet::PingReq { client_id: &client_id });
            }
            Input::Disconnect if self.phase != Phase::Disconnected => {
                self.pause(Phase::Leaving);
                self.control(&Packet::Disconnect { duration_s: None });
            }
            Input::Fetch | Input::Disconnect | Input::Wake => {}
        }
        self.transmit_again();
        self.keep_alive();
    }

    /// The next thing to do; `None` when there is nothing until the next input.
    pub fn poll_output(&mut self) -> Option<Output> {
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        let wake_at = self.wake_at().filter(|at| self.announced_wake_at != Some(*at))?;
        self.announced_wake_at = Some(wake_at);
        Some(Output::WakeAt(wake_at))
    }

    fn wake_at(&self) -> Option<Duration> {
        let attempts = [&self.exchange, &self.control].map(|one| one.as_ref().map(|one| one.at));
        attempts.into_iter().chain([self.ping_at()]).flatten().min()
    }

    /// When the gateway is to hear of us: early enough that a transmission may be lost
    /// (MQTT-SN 1.2 §6.11).
    fn ping_at(&self) -> Option<Duration> {
        let is_due = self.phase == Phase::Active && self.control.is_none();
        let period = self.settings.keep_alive.mul_f64(2.0 / 3.0);
        (is_due && !period.is_zero()).then(|| self.sent_at + period)
    }

    fn keep_alive(&mut self) {
        if self.ping_at().is_some_and(|at| at <= self.now) {
            self.control(&Packet::PingReq { client_id: "" });
        }
    }

    fn transmit(&mut self, bytes: Bytes) {
        self.sent_at = self.now;
        self.outputs.push_back(Output::Transmit(bytes));
    }

    fn send(&mut self, packet: &Packet<'_>) {
        if let Ok(bytes) = encode(packet) {
            self.transmit(bytes.into());
        }
    }

    fn attempt(&mut self, bytes: Vec<u8>) -> Attempt {
        self.transmit(Bytes::copy_from_slice(&bytes));
        let at = self.now + self.settings.retry_after;
        Attempt { bytes, tries_left: self.settings.max_retries, at }
    }

    fn control(&mut self, packet: &Packet<'_>) {
        if let Ok(bytes) = encode(packet) {
            self.control = Some(self.attempt(bytes));
        }
    }

    /// What is not answered leaves again, or the gateway is lost (MQTT-SN 1.2 §6.13).
    fn transmit_again(&mut self) {
        let (now, next_at) = (self.now, self.now + self.settings.retry_after);
        for is_control in [true, false] {
            let attempt = if is_control { &mut self.control } else { &mut self.exchange };
            let Some(attempt) = attempt.as_mut().filter(|attempt| attempt.at <= now) else {
                continue;
            };
            match attempt.again(next_at) {
                Some(bytes) => self.transmit(bytes),
                None => return self.lose(),
            }
        }
    }

    fn lose(&mut self) {
        let output = match self.phase {
            Phase::Leaving => Output::Disconnected,
            _ => Output::Lost,
        };
        self.pause(Phase::Disconnected);
        self.outputs.push_back(output);
    }

    /// Nothing is outstanding any more.
    fn pause(&mut self, phase: Phase) {
        (self.phase, self.control, self.exchange) = (phase, None, None);
    }

    fn connect(&mut self) {
        if matches!(self.phase, Phase::Connecting | Phase::Active) {
            return;
        }
        self.pause(Phase::Connecting);
        let Settings { client_id, clean_session, will, keep_alive, .. } = &self.settings;
        let connect = Packet::Connect {
            will: will.as_ref().is_some_and(is_will),
            clean_session: *clean_session,
            protocol_id: PROTOCOL_ID,
            duration_s: seconds(*keep_alive),
            client_id,
        };
        if let Ok(bytes) = encode(&connect) {
            self.control = Some(self.attempt(bytes));
        }
    }

    fn connected(&mut self, code: Code) {
        if self.phase != Phase::Connecting {
            return;
        }
        if !code.is_accepted() {
            self.pause(Phase::Disconnected);
            return self.outputs.push_back(Output::Refused(code));
        }
        // MQTT-SN 1.2 §6.3.
        if self.settings.clean_session {
            self.topics = Topics::default();
            self.unreleased.clear();
        }
        self.released.clear();
        self.pause(Phase::Active);
        self.outputs.push_back(Output::Connected);
        self.proceed();
    }

    fn sleep(&mut self, duration: Duration) {
        if !matches!(self.phase, Phase::Active | Phase::Asleep | Phase::Awake) {
            return;
        }
        self.pause(Phase::FallingAsleep);
        self.control(&Packet::Disconnect { duration_s: Some(seconds(duration).max(1)) });
    }

    /// A DISCONNECT of the gateway: an answer, or the end (MQTT-SN 1.2 §6.12, §6.14).
    fn disconnected(&mut self) {
        match self.phase {
            // Copies of an answer that has come say nothing new.
            Phase::Disconnected | Phase::Connecting | Phase::Asleep => {}
            Phase::FallingAsleep => self.asleep(),
            Phase::Active | Phase::Awake | Phase::Leaving => {
                self.pause(Phase::Disconnected);
                self.outputs.push_back(Output::Disconnected);
            }
        }
    }

    fn asleep(&mut self) {
        self.pause(Phase::Asleep);
        self.outputs.push_back(Output::Asleep);
    }

    fn received(&mut self, bytes: &Bytes) {
        let Ok(packet) = Packet::decode(bytes) else { return };
        match packet {
            Packet::ConnAck { code } => self.connected(code),
            Packet::WillTopicReq | Packet::WillMsgReq => self.say_will(&packet),
            Packet::Disconnect { .. } => self.disconnected(),
            _ if matches!(self.phase, Phase::Disconnected | Phase::Connecting) => {}
            Packet::Publish(publish) => self.published(&publish, bytes),
            Packet::PubRel { msg_id } => self.release(msg_id),
            Packet::Register { topic_id, msg_id, name } => {
                let code = self.topics.set(name, topic_id);
                self.send(&Packet::RegAck { topic_id, msg_id, code });
            }
            Packet::PingReq { .. } => self.send(&Packet::PingResp),
            Packet::PingResp if self.phase == Phase::Awake => self.asleep(),
            Packet::PingResp if self.phase == Phase::Active => self.control = None,
            _ => self.answered(&packet),
        }
    }

    fn say_will(&mut self, asked: &Packet<'_>) {
        let Some(will) = self.settings.will.clone().filter(is_will) else { return };
        if self.phase == Phase::Connecting {
            self.control(&match asked {
                Packet::WillTopicReq => Packet::WillTopic(Some(will_topic(&will))),
                _ => Packet::WillMsg { message: &will.message },
            });
        }
    }

    /// A publication of the gateway (MQTT-SN 1.2 §6.10).
    fn published(&mut self, publish: &Publish<'_>, bytes: &Bytes) {
        let Publish { topic, msg_id, data, qos, retain, dup } = *publish;
        let topic_id = topic.value();
        let name = match self.topics.name(topic) {
            Ok(name) => name,
            Err(code) => return self.send(&Packet::PubAck { topic_id, msg_id, code }),
        };
        let is_copy = self.unreleased.contains(&msg_id) || (dup && self.released.contains(&msg_id));
        let is_new = qos != Qos::Two || !is_copy;
        if is_new {
            let data = bytes.slice_ref(data);
            self.outputs.push_back(Output::Message { topic: name, data, qos, retain });
        }
        match qos {
            Qos::MinusOne | Qos::Zero => {}
            Qos::One => {
                self.send(&Packet::PubAck { topic_id, msg_id, code: Code::ACCEPTED });
            }
            Qos::Two => {
                if is_new {
                    if self.unreleased.len() >= MAX_UNRELEASED {
                        self.unreleased.pop_front();
                    }
                    self.unreleased.push_back(msg_id);
                }
                self.send(&Packet::PubRec { msg_id });
            }
        }
    }

    fn release(&mut self, msg_id: u16) {
        if let Some(at) = self.unreleased.iter().position(|other| *other == msg_id) {
            self.unreleased.remove(at);
            if self.released.len() >= MAX_RELEASED {
                self.released.pop_front();
            }
            self.released.push_back(msg_id);
        }
        self.send(&Packet::PubComp { msg_id });
    }

    fn request(&mut self, number: u64, action: Action) {
        let request = Request::new(number, action, self.next_msg_id);
        let reason = match () {
            () if !request.is_valid() => Some(Reason::Invalid),
            () if self.requests.len() >= MAX_REQUESTS => Some(Reason::Full),
            () => None,
        };
        if let Some(reason) = reason {
            return self.outputs.push_back(Output::Failed { request: number, reason });
        }
        // 0 says that there is none (MQTT-SN 1.2 §5.3.7).
        self.next_msg_id = self.next_msg_id.checked_add(1).unwrap_or(1);
        if matches!(request.action, Action::Publish { qos: Qos::MinusOne, .. }) {
            return self.send_at_once(request);
        }
        self.requests.push_back(request);
        self.proceed();
    }

    /// MQTT-SN 1.2 §6.8: a publication that needs no connection.
    fn send_at_once(&mut self, mut request: Request) {
        let request_number = request.number;
        match request.encode(|_| None) {
            Ok(bytes) => {
                self.transmit(bytes.into());
                self.outputs.push_back(Output::Done { request: request_number, granted: None });
            }
            Err(_) => self.fail(request_number, Reason::Invalid),
        }
    }

    fn fail(&mut self, request: u64, reason: Reason) {
        self.outputs.push_back(Output::Failed { request, reason });
    }

    /// The next step of the first request leaves, unless one is outstanding.
    fn proceed(&mut self) {
        while self.phase == Phase::Active && self.exchange.is_none() {
            let Some(request) = self.requests.front_mut() else { return };
            let encoded = request.encode(|name| self.topics.id(name));
            let number = request.number;
            let is_unanswered = request.step == Step::Send
                && matches!(request.action, Action::Publish { qos: Qos::Zero, .. });
            request.was_sent |= request.step == Step::Send;
            match encoded {
                Ok(bytes) if is_unanswered => {
                    self.transmit(bytes.into());
                    self.done(None);
                }
                Ok(bytes) => self.exchange = Some(self.attempt(bytes)),
                Err(_) => {
                    self.requests.pop_front();
                    self.fail(number, Reason::Invalid);
                }
            }
        }
    }

    /// The first request is done.
    fn done(&mut self, granted: Option<Qos>) {
        self.exchange = None;
        if let Some(Request { number, .. }) = self.requests.pop_front() {
            self.outputs.push_back(Output::Done { request: number, granted });
        }
        self.proceed();
    }

    /// The first request goes on with another step.
    fn step(&mut self, step: Step) {
        if let Some(request) = self.requests.front_mut() {
            request.step = step;
        }
        self.exchange = None;
        self.proceed();
    }

    /// The step that is outstanding, what it is of, and its msg id.
    fn outstanding(&self) -> Option<(Step, &Action, u16)> {
        let request = self.exchange.as_ref().and(self.requests.front())?;
        Some((request.step, &request.action, request.msg_id))
    }

    /// The answer to a step, if it is one.
    fn answered(&mut self, packet: &Packet<'_>) {
        if let Packet::PubAck { topic_id, msg_id: 0, code: Code::INVALID_TOPIC_ID } = *packet {
            // MQTT-SN 1.2 §6.6: what was published at level 0 is lost, the next is registered.
            return self.topics.forget(topic_id);
        }
        let Some((step, action, msg_id)) = self.outstanding() else { return };
        let is_publication =
            |wanted| matches!(action, Action::Publish { qos, .. } if *qos == wanted);
        match *packet {
            Packet::RegAck { topic_id, msg_id: of, code }
                if (step, msg_id) == (Step::Register, of) =>
            {
                self.registered(topic_id, code);
            }
            Packet::PubAck { topic_id, msg_id: of, code } if (step, msg_id) == (Step::Send, of) => {
                match code {
                    Code::ACCEPTED if is_publication(Qos::One) => self.done(None),
                    Code::ACCEPTED => {}
                    Code::INVALID_TOPIC_ID => self.register_again(topic_id),
                    code => self.refused(code),
                }
            }
            Packet::PubRec { msg_id: of }
                if (step, msg_id) == (Step::Send, of) && is_publication(Qos::Two) =>
            {
                self.step(Step::Release);
            }
            Packet::PubComp { msg_id: of } if (step, msg_id) == (Step::Release, of) => {
                self.done(None);
            }
            Packet::SubAck { qos, topic_id, msg_id: of, code } if msg_id == of => {
                self.subscribed(topic_id, qos, code);
            }
            Packet::UnsubAck { msg_id: of }
                if msg_id == of && matches!(action, Action::Unsubscribe { .. }) =>
            {
                self.done(None);
            }
            Packet::WillTopicResp { code } if step == Step::WillTopic => match (code, action) {
                (Code::ACCEPTED, Action::UpdateWill(Some(_))) => self.step(Step::WillMessage),
                (Code::ACCEPTED, _) => self.done(None),
                (code, _) => self.refused(code),
            },
            Packet::WillMsgResp { code } if step == Step::WillMessage => match code {
                Code::ACCEPTED => self.done(None),
                code => self.refused(code),
            },
            _ => {}
        }
    }

    fn registered(&mut self, topic_id: u16, code: Code) {
        let Some((_, Action::Publish { topic: Name::Text(name), .. }, _)) = self.outstanding()
        else {
            return;
        };
        if !code.is_accepted() {
            return self.refused(code);
        }
        let name = name.clone();
        match self.topics.set(&name, topic_id) {
            Code::ACCEPTED => self.step(Step::Send),
            code => self.refused(code),
        }
    }

    /// MQTT-SN 1.2 §6.6: the gateway does not know the id; the name is registered once more.
    fn register_again(&mut self, topic_id: u16) {
        self.topics.forget(topic_id);
        let Some(request) = self.requests.front_mut() else { return };
        request.registrations += 1;
        match request.registrations {
            ..=MAX_REGISTRATIONS
                if matches!(request.action, Action::Publish { topic: Name::Text(_), .. }) =>
            {
                self.step(Step::Send);
            }
            _ => self.refused(Code::INVALID_TOPIC_ID),
        }
    }

    fn subscribed(&mut self, topic_id: u16, qos: Qos, code: Code) {
        let Some((_, Action::Subscribe { filter, .. }, _)) = self.outstanding() else { return };
        if !code.is_accepted() {
            return self.refused(code);
        }
        // 0 where the filter has wildcards: the gateway registers what it publishes.
        if let (Name::Text(name), 1..) = (filter.clone(), topic_id) {
            let _ = self.topics.set(&name, topic_id);
        }
        self.done(Some(qos));
    }

    /// The first request is refused: for good, or for now.
    fn refused(&mut self, code: Code) {
        let at = self.now + self.settings.wait_after_congestion;
        if let (Code::CONGESTION, Some(attempt)) = (code, &mut self.exchange) {
            (attempt.at, attempt.tries_left) = (at, self.settings.max_retries);
            return;
        }
        self.exchange = None;
        if let Some(Request { number, .. }) = self.requests.pop_front() {
            self.fail(number, Reason::Refused(code));
        }
        self.proceed();
    }
}

/// Whole seconds, as many as the field Duration can say.
fn seconds(duration: Duration) -> u16 {
    u16::try_from(duration.as_secs()).unwrap_or(u16::MAX)
}
