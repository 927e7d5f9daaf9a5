//! One connection of AMQP 1.0 at the side of the container that opens it: a client with one session
//! and the links that it asks for.
//!
//! It shows who it is by SASL (AMQP 1.0 Part 5 §5.3.2), opens, begins, and attaches what the caller
//! wants. What is on links, it has in common with the other side: windows, credit, messages in
//! parts, deliveries that are not settled. A connection that is over is not made again: that is a
//! new client, and no delivery outlives its link.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use super::deliveries::Limits;
use super::io::{Fault, Io, shortened};
use super::link::{Link, LinkEnd, Outgoing};
use super::session::Session;
use super::settings::{
    Counts, HANDSHAKE_TIMEOUT, LinkId, MAX_CHANNEL, MAX_FRAME_BYTES, MAX_PARTIAL_BYTES,
    MIN_IDLE_TIME_OUT_MS, Output,
};
use crate::amqp::frame::{self, Kind, MIN_MAX_FRAME_BYTES, Protocol};
use crate::amqp::performative::{
    Attach, Close, DeliveryState, End, ErrorInfo, Open, Performative, Role, condition,
};
use crate::amqp::sasl::{Code, Credentials, Frame};
use crate::amqp::types::Symbol;

/// The channel of the one session.
const CHANNEL: u16 = 0;

/// Who a client is, and what it takes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of this container.
    pub container_id: String,
    /// The host that it wants to speak to.
    pub hostname: Option<String>,
    /// How it shows who it is.
    pub credentials: Credentials,
    /// A peer that sends nothing for so long is given up; it is told half of it
    /// (AMQP 1.0 Part 2 §2.4.5). `None`: never.
    pub idle_timeout: Option<Duration>,
    /// Longest message in bytes that comes; at most [`MAX_PARTIAL_BYTES`].
    pub max_message_bytes: usize,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// Bytes of the peer.
    Bytes(Bytes),
    /// The peer sends no more.
    Eof,
    /// A link is to be. [`Output::Attached`] or [`Output::Detached`] answers. Only behind
    /// [`Output::Opened`].
    Attach {
        /// By what the caller knows the link; none before had the same.
        link: LinkId,
        /// What this side says of it; its handle is given here.
        attach: Box<Attach>,
        /// Deliveries to this side that may be under way; of no meaning where this side sends.
        window: u32,
    },
    /// A link is over.
    Detach {
        /// The link.
        link: LinkId,
        /// Whether what it kept ends with it.
        closed: bool,
    },
    /// A message goes to the peer: the link has to have credit ([`Output::Flow`]); where it has
    /// none, the delivery comes back as released.
    Deliver {
        /// The link.
        link: LinkId,
        /// What the caller calls it; no other of this link that is not settled has the same.
        delivery: u64,
        /// Whether nothing is to come back.
        settled: bool,
        /// The message.
        message: Bytes,
    },
    /// What became of a delivery of the peer.
    Outcome {
        /// The link.
        link: LinkId,
        /// Its id.
        delivery: u32,
        /// The outcome.
        state: DeliveryState,
    },
    /// A delivery to the peer, whose outcome it has said, is forgotten here.
    Settle {
        /// The link.
        link: LinkId,
        /// What the caller calls it.
        delivery: u64,
    },
    /// All that there is for a link that is drained was handed in ([`Output::Flow`]).
    Drained {
        /// The link.
        link: LinkId,
    },
    /// The connection ends: [`Output::HangUp`] comes once the peer agrees.
    Close,
    /// The time of [`Output::WakeAt`] is there.
    Wake,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The peer's protocol header is awaited.
    Header(Protocol),
    /// What the peer takes as a proof.
    Mechanisms,
    /// Whether it believes it.
    Outcome,
    /// The peer's open.
    Open,
    /// The peer's begin.
    Begin,
    /// Links may be attached.
    Running,
    /// This side has closed, and the peer has not.
    Closing,
    /// It is over.
    Closed,
}

/// A link that the peer has not answered.
#[derive(Debug)]
struct Wish {
    id: LinkId,
    name: String,
    role: Role,
    handle: u32,
    window: u32,
}

/// See the module. Its outputs are those of the other side, as far as a client has them: `Opened`
/// says that links may be attached, and `Attached` what the peer says of one.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    phase: Phase,
    reader: frame::Reader,
    io: Io,
    /// The session, with the peer's channel.
    session: Option<(u16, Session)>,
    opened: Option<Box<Open>>,
    // bound: links of the caller's.
    wishes: Vec<Wish>,
    next_handle: u32,
    /// The peer wants to hear something within this time.
    peer_idle: Option<Duration>,
    now: Duration,
    heard_at: Duration,
    sent_at: Duration,
    /// When the peer has taken too long to answer.
    deadline: Option<Duration>,
    announced_wake_at: Option<Duration>,
}

impl Client {
    /// A client whose connection has just been made.
    #[must_use]
    pub fn new(mut settings: Settings, now: Duration) -> Self {
        settings.max_message_bytes = settings.max_message_bytes.min(MAX_PARTIAL_BYTES);
        Self {
            settings,
            phase: Phase::Header(Protocol::Sasl),
            reader: frame::Reader::default(),
            io: Io {
                wire: Protocol::Sasl.header().to_vec(),
                outputs: VecDeque::new(),
                max_frame_bytes: MIN_MAX_FRAME_BYTES as usize,
                counts: Counts::default(),
                is_overlong: false,
            },
            session: None,
            opened: None,
            wishes: Vec::new(),
            next_handle: 0,
            peer_idle: None,
            now,
            heard_at: now,
            sent_at: now,
            deadline: Some(now + HANDSHAKE_TIMEOUT),
            announced_wake_at: None,
        }
    }

    /// What went wrong so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.io.counts
    }

    /// Bytes that are kept because the peer has not sent or not taken the rest.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let links = self.session.iter().flat_map(|(_, session)| session.links.values());
        let of_links: usize = links.map(Link::held_bytes).sum();
        of_links + self.reader.held_bytes() + self.io.wire.len()
    }

    /// Bytes that are to go and were not handed out: a connection that is closed before drops those
    /// of messages.
    #[must_use]
    pub fn unsent_bytes(&self) -> usize {
        let links = self.session.iter().flat_map(|(_, session)| session.links.values());
        let of_links: usize = links.map(Link::unsent_bytes).sum();
        of_links + self.io.wire.len()
    }

    /// Messages that a link takes now, which counts those that wait for the session's window.
    #[must_use]
    pub fn available(&self, link: LinkId) -> u32 {
        self.session.as_ref().map_or(0, |(_, session)| session.available(link))
    }

    /// Messages for a link that are not wholly sent, the oldest being the next to go; `None` where
    /// there is no such link any more.
    #[must_use]
    pub fn queued(&self, link: LinkId) -> Option<usize> {
        self.session.as_ref().and_then(|(_, session)| session.queued(link))
    }

    /// Takes what happened at `now`, which does not go back. Then [`Client::poll_output`] is to be
    /// called until it has nothing.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        self.now = self.now.max(now);
        self.announced_wake_at = self.announced_wake_at.filter(|at| self.now < *at);
        if self.phase == Phase::Closed {
            return;
        }
        match input {
            Input::Bytes(bytes) => {
                self.heard_at = self.now;
                self.reader.receive(&bytes);
                self.step_all();
            }
            Input::Eof => self.finish(None, true),
            Input::Close => self.close(None, false),
            Input::Wake => {}
            input if self.phase == Phase::Running => self.command(input),
            _ => self.io.misused(),
        }
        self.keep_times();
        if std::mem::take(&mut self.io.is_overlong) && self.phase == Phase::Running {
            let what = "a frame of this side is longer than max-frame-size";
            self.close(Some(ErrorInfo::new(condition::FRAME_SIZE_TOO_SMALL, what)), false);
        }
    }

    /// The next thing to do; `None` when there is nothing until the next input.
    pub fn poll_output(&mut self) -> Option<Output> {
        if !self.io.wire.is_empty() {
            self.sent_at = self.now;
            return Some(Output::Transmit(std::mem::take(&mut self.io.wire).into()));
        }
        if let Some(output) = self.io.outputs.pop_front() {
            return Some(output);
        }
        let wake_at = self.wakes_at().filter(|at| self.announced_wake_at != Some(*at))?;
        self.announced_wake_at = Some(wake_at);
        Some(Output::WakeAt(wake_at))
    }

    /// When something is due that nobody else makes happen.
    fn wakes_at(&self) -> Option<Duration> {
        if self.phase == Phase::Closed {
            return None;
        }
        let is_running = self.phase == Phase::Running;
        let of = |since: Duration, wait: Option<Duration>| {
            wait.filter(|_| is_running).map(|wait| since + wait)
        };
        let silent = of(self.heard_at, self.settings.idle_timeout);
        let quiet = of(self.sent_at, self.peer_idle.map(|idle| idle / 2));
        [self.deadline, silent, quiet].into_iter().flatten().min()
    }

    /// Does what is due.
    fn keep_times(&mut self) {
        if self.deadline.is_some_and(|at| at <= self.now) {
            let what = "the peer does not answer";
            let error = ErrorInfo::new(condition::RESOURCE_LIMIT_EXCEEDED, what);
            return self.finish(Some(error), false);
        }
        if self.phase != Phase::Running {
            return;
        }
        let is_past = |since: Duration, wait: Duration| since + wait <= self.now;
        if self.settings.idle_timeout.is_some_and(|idle| is_past(self.heard_at, idle)) {
            let what = "nothing came within idle-time-out";
            let error = ErrorInfo::new(condition::RESOURCE_LIMIT_EXCEEDED, what);
            return self.finish(Some(error), false);
        }
        let is_quiet = self.peer_idle.is_some_and(|idle| is_past(self.sent_at, idle / 2));
        if is_quiet && self.io.wire.is_empty() {
            // AMQP 1.0 Part 2 §2.4.5: an empty frame.
            frame::encode(&mut self.io.wire, Kind::Amqp, 0, |_| ());
        }
    }

    /// What is whole of what came.
    fn step_all(&mut self) {
        loop {
            match self.step() {
                Ok(true) => {}
                Ok(false) => return,
                // A second one, while the peer's close is awaited, ends it.
                Err(error) => self.close(Some(error), true),
            }
        }
    }

    /// Takes the next header or frame; whether there was one.
    fn step(&mut self) -> Result<bool, ErrorInfo> {
        if self.phase == Phase::Closed {
            return Ok(false);
        }
        if let Phase::Header(expected) = self.phase {
            let refused = |what: &str| Err(ErrorInfo::new(condition::NOT_IMPLEMENTED, what));
            if !self.reader.is_amqp() {
                return refused("the peer does not speak AMQP");
            }
            let Some(header) = self.reader.header() else { return Ok(false) };
            return match Protocol::of(header) {
                Some(protocol) if protocol == expected => {
                    self.phase = match expected {
                        Protocol::Sasl => Phase::Mechanisms,
                        _ => Phase::Open,
                    };
                    Ok(true)
                }
                Some(_) => refused("the peer takes no SASL layer, or another one"),
                None => refused("the peer speaks another version of AMQP"),
            };
        }
        match self.reader.frame(MAX_FRAME_BYTES) {
            Ok(None) => Ok(false),
            Ok(Some(frame)) => self.frame(&frame).map(|()| true),
            Err(error) => Err(ErrorInfo::new(condition::FRAMING_ERROR, error.to_string())),
        }
    }

    fn frame(&mut self, frame: &frame::Frame) -> Result<(), ErrorInfo> {
        let framing = |what: &str| ErrorInfo::new(condition::FRAMING_ERROR, what);
        if matches!(self.phase, Phase::Mechanisms | Phase::Outcome) {
            let frame = match frame.kind {
                Kind::Sasl => Frame::decode(&frame.body).map_err(|error| error.to_string()),
                Kind::Amqp => Err("frame of AMQP in the SASL layer".to_owned()),
            };
            return self.sasl(frame.map_err(|what| framing(&what))?);
        }
        if frame.kind != Kind::Amqp {
            return Err(framing("frame of SASL"));
        }
        if frame.body.is_empty() {
            return Ok(());
        }
        let (performative, payload) = Performative::decode(&frame.body)
            .map_err(|error| ErrorInfo::new(condition::DECODE_ERROR, error.to_string()))?;
        self.take(frame.channel, performative, payload)
    }

    /// What the peer says of who this is.
    fn sasl(&mut self, frame: Frame) -> Result<(), ErrorInfo> {
        let refused = |what: String| Err(ErrorInfo::new(condition::UNAUTHORIZED_ACCESS, what));
        match (self.phase, frame) {
            (Phase::Mechanisms, Frame::Mechanisms(offered)) => {
                let (mechanism, response) = self.settings.credentials.response();
                let name = mechanism.name();
                if !offered.iter().any(|it| it.as_str() == name) {
                    let names: Vec<_> = offered.iter().map(Symbol::as_str).collect();
                    return refused(format!("the peer takes {}, not {name}", names.join(", ")));
                }
                let init = Frame::Init {
                    mechanism: Symbol::new(name),
                    initial_response: Some(response),
                    hostname: self.settings.hostname.clone(),
                };
                frame::encode(&mut self.io.wire, Kind::Sasl, 0, |out| init.encode(out));
                self.phase = Phase::Outcome;
                Ok(())
            }
            (Phase::Outcome, Frame::Outcome(Code::Ok)) => {
                self.io.wire.extend_from_slice(&Protocol::Amqp.header());
                self.send_open();
                self.phase = Phase::Header(Protocol::Amqp);
                Ok(())
            }
            (Phase::Outcome, Frame::Outcome(Code::Auth)) => {
                refused("the peer does not know this user, or not by this password".to_owned())
            }
            (Phase::Outcome, Frame::Outcome(_)) => {
                let what = "the peer cannot find out who this is";
                Err(ErrorInfo::new(condition::INTERNAL_ERROR, what))
            }
            _ => refused("a frame of SASL that has no place here".to_owned()),
        }
    }

    fn send_open(&mut self) {
        let mut open = Open::new(&self.settings.container_id);
        open.hostname.clone_from(&self.settings.hostname);
        open.max_frame_size = MAX_FRAME_BYTES;
        open.channel_max = MAX_CHANNEL;
        let announced = self.settings.idle_timeout.map(|idle| idle.as_millis() / 2);
        open.idle_time_out_ms = announced.and_then(|idle| u32::try_from(idle).ok());
        self.io.send(0, &Performative::Open(Box::new(open)));
    }

    /// A frame behind the protocol header.
    fn take(
        &mut self,
        channel: u16,
        performative: Performative,
        payload: Bytes,
    ) -> Result<(), ErrorInfo> {
        match (self.phase, performative) {
            // AMQP 1.0 Part 2 §2.4.6: whatever comes before the peer's close is passed over.
            (Phase::Closing, Performative::Close(_)) => self.finish(None, false),
            (Phase::Closing, _) => {}
            (_, Performative::Close(close)) => {
                self.io.send(0, &Performative::Close(Close::default()));
                self.finish(close.error, true);
            }
            (Phase::Open, Performative::Open(open)) => self.peer_opened(open)?,
            (Phase::Begin, Performative::Begin(begin)) if begin.remote_channel == Some(CHANNEL) => {
                self.session = Some((channel, Session::new(&begin, CHANNEL)));
                self.phase = Phase::Running;
                self.deadline = None;
                self.io.outputs.extend(self.opened.take().map(Output::Opened));
            }
            (Phase::Running, Performative::End(end)) => {
                self.io.send(CHANNEL, &Performative::End(End::default()));
                let what = "the peer has ended the session";
                let error = ErrorInfo::new(condition::ILLEGAL_STATE, what);
                return Err(end.error.unwrap_or(error));
            }
            (Phase::Running, performative) => {
                return self.in_session(channel, performative, payload);
            }
            _ => {
                let what = "a performative that has no place here";
                return Err(ErrorInfo::new(condition::ILLEGAL_STATE, what));
            }
        }
        Ok(())
    }

    fn peer_opened(&mut self, open: Box<Open>) -> Result<(), ErrorInfo> {
        let invalid = |what: &str| Err(ErrorInfo::new(condition::INVALID_FIELD, what));
        if open.max_frame_size < MIN_MAX_FRAME_BYTES {
            return invalid("max-frame-size below 512");
        }
        let longest = open.max_frame_size.min(MAX_FRAME_BYTES);
        self.io.max_frame_bytes = usize::try_from(longest).unwrap_or(usize::MAX);
        // AMQP 1.0 Part 2 §2.4.5: zero is as well none.
        let idle = open.idle_time_out_ms.filter(|idle| *idle > 0);
        if idle.is_some_and(|idle| idle < MIN_IDLE_TIME_OUT_MS) {
            return invalid("idle-time-out is too short");
        }
        self.peer_idle = idle.map(|idle| Duration::from_millis(idle.into()));
        self.io.send(CHANNEL, &Performative::Begin(Box::new(Session::begin_of(None))));
        self.opened = Some(open);
        self.phase = Phase::Begin;
        Ok(())
    }

    fn in_session(
        &mut self,
        channel: u16,
        performative: Performative,
        payload: Bytes,
    ) -> Result<(), ErrorInfo> {
        let limits = match &performative {
            Performative::Transfer(transfer) => self.limits(transfer.handle),
            _ => self.limits(0),
        };
        let io = &mut self.io;
        let Some((theirs, session)) = self.session.as_mut().filter(|(of, _)| *of == channel) else {
            let what = "a frame on a channel without a session";
            return Err(ErrorInfo::new(condition::ILLEGAL_STATE, what));
        };
        debug_assert_eq!(*theirs, channel);
        let done = match performative {
            Performative::Attach(attach) => return self.attached(*attach),
            Performative::Flow(flow) => session.flow(*flow, io),
            Performative::Transfer(transfer) => session.transfer(&transfer, payload, limits, io),
            Performative::Disposition(disposition) => session.disposition(disposition, io),
            Performative::Detach(detach) => session.detached(detach, io),
            Performative::Open(_)
            | Performative::Begin(_)
            | Performative::End(_)
            | Performative::Close(_) => {
                let what = "a second open or begin";
                Err(Fault::connection(condition::ILLEGAL_STATE, what))
            }
        };
        match done {
            Ok(()) => Ok(()),
            Err(Fault::Link(handle, error)) => {
                if let Some(link) = session.links.get(&handle).map(|link| link.id) {
                    session.detach(link, true, Some(error.clone()), io);
                    io.say(Output::Detached { link, by: None, error: Some(error) });
                }
                Ok(())
            }
            Err(Fault::Connection(error) | Fault::Session(error)) => Err(error),
        }
    }

    /// What a message over the link of a handle may have: the links' others count, it does not.
    fn limits(&self, handle: u32) -> Limits {
        let used = self.session.as_ref().map_or(0, |(_, session)| session.partial_beside(handle));
        Limits {
            max_message_bytes: self.settings.max_message_bytes,
            max_partial_bytes: MAX_PARTIAL_BYTES.saturating_sub(used),
        }
    }

    /// The peer's end of a link that this side wants.
    fn attached(&mut self, attach: Attach) -> Result<(), ErrorInfo> {
        let is_it = |wish: &Wish| wish.name == attach.name && wish.role == attach.role.other();
        let Some(at) = self.wishes.iter().position(is_it) else {
            let what = "an attach that answers nothing";
            return Err(ErrorInfo::new(condition::NOT_ALLOWED, what));
        };
        let wish = self.wishes.swap_remove(at);
        if self.wishes.is_empty() {
            self.deadline = None;
        }
        let Some((_, session)) = &mut self.session else { return Ok(()) };
        session.attach(attach.clone(), wish.id).map_err(|fault| match fault {
            Fault::Connection(error) | Fault::Session(error) | Fault::Link(_, error) => error,
        })?;
        let Some(link) = session.link(wish.id) else { return Ok(()) };
        link.handle = Some(wish.handle);
        link.is_announced = true;
        // AMQP 1.0 Part 2 §2.6.3: without its terminus the peer says that there is no link, and
        // why in a detach.
        let is_there = match link.end {
            LinkEnd::Sending(_) => attach.target.is_some(),
            LinkEnd::Receiving(_) => attach.source.is_some(),
        };
        if is_there {
            self.io.say(Output::Attached { link: wish.id, attach: Box::new(attach) });
            session.set_window(wish.id, wish.window, &mut self.io);
        }
        Ok(())
    }

    /// What the caller wants of links.
    fn command(&mut self, input: Input) {
        let io = &mut self.io;
        let Some((_, session)) = &mut self.session else { return io.misused() };
        match input {
            Input::Attach { link, attach, window } => self.attach(link, *attach, window),
            Input::Detach { link, closed } => session.detach(link, closed, None, io),
            Input::Deliver { link, delivery, settled, message } => {
                session.deliver(link, Outgoing { delivery, settled, message, sent: None }, io);
            }
            Input::Outcome { link, delivery, state } => session.outcome(link, delivery, state, io),
            Input::Settle { link, delivery } => session.settle(link, delivery, io),
            Input::Drained { link } => session.drained(link, io),
            _ => io.misused(),
        }
    }

    fn attach(&mut self, id: LinkId, mut attach: Attach, window: u32) {
        let (handle, name, role) = (self.next_handle, attach.name.clone(), attach.role);
        let is_over = self.session.as_ref().is_none_or(|(_, session)| !session.takes(handle));
        if is_over {
            let what = "more links than handle-max of the peer";
            let error = Some(ErrorInfo::new(condition::RESOURCE_LIMIT_EXCEEDED, what));
            return self.io.say(Output::Detached { link: id, by: None, error });
        }
        self.next_handle += 1;
        attach.handle = handle;
        match role {
            Role::Sender => attach.initial_delivery_count = Some(0),
            Role::Receiver => {
                attach.max_message_size = u64::try_from(self.settings.max_message_bytes).ok();
            }
        }
        self.io.send(CHANNEL, &Performative::Attach(Box::new(attach)));
        self.wishes.push(Wish { id, name, role, handle, window });
        self.deadline.get_or_insert(self.now + HANDSHAKE_TIMEOUT);
    }

    /// This side ends the connection, where there is one that can be ended in words.
    fn close(&mut self, error: Option<ErrorInfo>, by_peer: bool) {
        match self.phase {
            Phase::Open | Phase::Begin | Phase::Running => {}
            _ => return self.finish(error, by_peer),
        }
        let close = Close { error: shortened(error.clone()) };
        self.io.send(0, &Performative::Close(close));
        self.io.is_overlong = false;
        self.phase = Phase::Closing;
        self.session = None;
        self.wishes.clear();
        self.deadline = Some(self.now + HANDSHAKE_TIMEOUT);
        self.io.say(Output::Closed { error, by_peer });
    }

    /// Nothing comes and nothing goes any more.
    fn finish(&mut self, error: Option<ErrorInfo>, by_peer: bool) {
        match self.phase {
            Phase::Closed => return,
            Phase::Closing => {}
            _ => self.io.say(Output::Closed { error, by_peer }),
        }
        self.phase = Phase::Closed;
        self.session = None;
        self.wishes.clear();
        self.io.say(Output::HangUp);
    }
}
