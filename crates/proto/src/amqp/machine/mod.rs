//! One connection of AMQP 1.0 at the side of the container that accepts: bytes, time and what the
//! application wants come in; bytes, events and when to wake go out.
//!
//! It negotiates (AMQP 1.0 Part 2 §2.2, Part 5 §5.3.2), opens, answers sessions of the peer, keeps
//! the windows of sessions and the credit of links, puts messages together and takes them apart,
//! and knows which deliveries are not settled. It begins nothing of its own: links are the peer's.
//! [`client`] is the other side, on the same sessions and links.
//!
//! Of what is resumed (Part 2 §2.6.13) it knows nothing: no delivery outlives its link. A peer that
//! sends one again reads in the attach that nothing of it is here, and what it then sends as
//! resumed is passed over.

pub mod client;
mod deliveries;
mod handshake;
mod io;
mod link;
mod session;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::frame::{self, Kind, MIN_MAX_FRAME_BYTES};
use super::performative::{
    Attach, Begin, Close, End, ErrorInfo, ExpiryPolicy, Performative, condition,
};
use crate::Error;
use deliveries::Limits;
use handshake::Phase;
use io::{Fault, Io, shortened};
use link::{Link, LinkEnd, Outgoing};
use session::Session;

pub use settings::*;

/// See the module.
#[derive(Debug)]
pub struct Connection {
    settings: Settings,
    phase: Phase,
    reader: frame::Reader,
    io: Io,
    /// By the peer's channel.
    sessions: BTreeMap<u16, Session>,
    /// The peer's channels of links.
    channels: BTreeMap<LinkId, u16>,
    next_link: u64,
    /// Links whose names others have, and these, until it is seen whether the peer lets go of them.
    contested: Vec<(LinkId, LinkId)>,
    /// The greatest channel that the peer takes.
    channel_max: u16,
    /// The peer wants to hear something within this time.
    peer_idle: Option<Duration>,
    now: Duration,
    heard_at: Duration,
    sent_at: Duration,
    /// When a handshake has taken too long.
    deadline: Option<Duration>,
    announced_wake_at: Option<Duration>,
}

impl Connection {
    /// One that a peer has just established.
    #[must_use]
    pub fn new(mut settings: Settings, now: Duration) -> Self {
        settings.max_message_bytes = settings.max_message_bytes.min(MAX_PARTIAL_BYTES);
        Self {
            settings,
            phase: Phase::Header { is_behind_sasl: false },
            reader: frame::Reader::default(),
            io: Io {
                wire: Vec::new(),
                outputs: VecDeque::new(),
                max_frame_bytes: MIN_MAX_FRAME_BYTES as usize,
                counts: Counts::default(),
                is_overlong: false,
            },
            sessions: BTreeMap::new(),
            channels: BTreeMap::new(),
            next_link: 0,
            contested: Vec::new(),
            channel_max: 0,
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
        let links = self.sessions.values().flat_map(|session| session.links.values());
        let of_links: usize = links.map(Link::held_bytes).sum();
        of_links + self.reader.held_bytes() + self.io.wire.len()
    }

    /// Whether messages for a link wait for its session's window or for its credit. When none does
    /// any more, [`Output::Flow`] says so.
    #[must_use]
    pub fn is_backed_up(&self, link: LinkId) -> bool {
        let session = self.channels.get(&link).and_then(|channel| self.sessions.get(channel));
        session.is_some_and(|session| session.is_backed_up(link))
    }

    /// Takes what happened at `now`, which does not go back. Then [`Connection::poll_output`] is to
    /// be called until it has nothing.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        self.now = self.now.max(now);
        self.announced_wake_at = self.announced_wake_at.filter(|at| self.now < *at);
        if matches!(self.phase, Phase::Closed) {
            return;
        }
        match input {
            Input::Bytes(bytes) => {
                self.heard_at = self.now;
                self.reader.receive(&bytes);
                self.step_all();
                self.settle_contests();
            }
            Input::Eof => self.finish(None, true),
            Input::Authenticated(code) => {
                self.authenticated(code);
                self.step_all();
            }
            Input::Open => {
                self.open();
                self.step_all();
            }
            Input::Close { error } => self.close(error, false),
            Input::Wake => {}
            input if matches!(self.phase, Phase::Running) => self.command(input),
            _ => self.io.misused(),
        }
        self.keep_times();
        if std::mem::take(&mut self.io.is_overlong) && matches!(self.phase, Phase::Running) {
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
        if matches!(self.phase, Phase::Closed) {
            return None;
        }
        let is_running = matches!(self.phase, Phase::Running);
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
            return self.finish(None, false);
        }
        if !matches!(self.phase, Phase::Running) {
            return;
        }
        let is_past = |since: Duration, wait: Duration| since + wait <= self.now;
        if self.settings.idle_timeout.is_some_and(|idle| is_past(self.heard_at, idle)) {
            let what = "nothing came within idle-time-out";
            return self
                .close(Some(ErrorInfo::new(condition::RESOURCE_LIMIT_EXCEEDED, what)), true);
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
                Ok(false) => break,
                Err(Fault::Connection(error)) => self.close(Some(error), true),
                Err(Fault::Session(_) | Fault::Link(..)) => {}
            }
        }
        if self.phase.is_waiting() && self.reader.held_bytes() > MAX_EARLY_BYTES {
            self.finish(None, true);
        }
    }

    /// Takes the next header or frame; whether there was one.
    fn step(&mut self) -> Result<bool, Fault> {
        match &self.phase {
            Phase::Header { is_behind_sasl } => {
                let is_behind_sasl = *is_behind_sasl;
                if !self.reader.is_amqp() {
                    self.refuse_header();
                    return Ok(false);
                }
                let Some(header) = self.reader.header() else { return Ok(false) };
                self.header(header, is_behind_sasl);
                Ok(true)
            }
            Phase::Authenticating | Phase::Opening | Phase::Closed => Ok(false),
            Phase::Sasl | Phase::Open | Phase::Running | Phase::Closing => {
                // Frames before the opens may have 512 bytes (AMQP 1.0 Part 2 §2.4.1, Part 5
                // §5.3.1); longer ones are no reason to turn a client away.
                match self.reader.frame(MAX_FRAME_BYTES) {
                    Ok(None) => Ok(false),
                    Ok(Some(frame)) => self.frame(&frame).map(|()| true),
                    Err(error) => Err(framing(&error)),
                }
            }
        }
    }

    fn frame(&mut self, frame: &frame::Frame) -> Result<(), Fault> {
        if matches!(self.phase, Phase::Sasl) {
            self.sasl(frame);
            return Ok(());
        }
        if frame.kind != Kind::Amqp {
            return Err(Fault::connection(condition::FRAMING_ERROR, "frame of SASL"));
        }
        if frame.body.is_empty() {
            return Ok(());
        }
        let decoded = Performative::decode(&frame.body).map_err(|error| {
            Fault::Connection(ErrorInfo::new(condition::DECODE_ERROR, error.to_string()))
        });
        match (&self.phase, decoded?) {
            // AMQP 1.0 Part 2 §2.4.6: whatever comes before the peer's close is passed over.
            (Phase::Closing, (Performative::Close(_), _)) => {
                self.finish(None, false);
                Ok(())
            }
            (Phase::Closing, _) => Ok(()),
            (Phase::Open, (Performative::Open(open), _)) => self.peer_opened(open),
            (Phase::Running, (performative, payload)) => {
                self.dispatch(frame.channel, performative, payload)
            }
            _ => Err(Fault::connection(condition::ILLEGAL_STATE, "a performative before open")),
        }
    }

    /// A frame of a connection that is open at both sides.
    fn dispatch(
        &mut self,
        channel: u16,
        performative: Performative,
        payload: Bytes,
    ) -> Result<(), Fault> {
        let fault = match performative {
            Performative::Open(_) => {
                return Err(Fault::connection(condition::ILLEGAL_STATE, "a second open"));
            }
            Performative::Close(close) => {
                self.io.send(0, &Performative::Close(Close::default()));
                self.finish(close.error, true);
                return Ok(());
            }
            Performative::Begin(begin) => return self.begin(channel, &begin),
            Performative::End(end) => return self.ended(channel, end),
            performative => match self.in_session(channel, performative, payload) {
                Ok(()) => return Ok(()),
                Err(fault) => fault,
            },
        };
        match fault {
            Fault::Session(error) => self.end(channel, error),
            Fault::Link(handle, error) => {
                if let Some(session) = self.sessions.get_mut(&channel)
                    && let Some(link) = session.links.get(&handle).map(|link| link.id)
                {
                    session.detach(link, true, Some(error.clone()), &mut self.io);
                    let error = Some(error);
                    self.io.say(Output::Detached { link, by: None, error });
                }
            }
            fault @ Fault::Connection(_) => return Err(fault),
        }
        Ok(())
    }

    fn in_session(
        &mut self,
        channel: u16,
        performative: Performative,
        payload: Bytes,
    ) -> Result<(), Fault> {
        let others = self.sessions.iter().filter(|(other, _)| **other != channel);
        let partial = |session: &Session| session.links.values().map(Link::partial_bytes).sum();
        let others: usize = match &performative {
            Performative::Transfer(transfer) if transfer.more => {
                others.map(|(_, session)| -> usize { partial(session) }).sum()
            }
            _ => 0,
        };
        let Some(session) = self.sessions.get_mut(&channel) else {
            let what = "a frame on a channel without a session";
            return Err(Fault::connection(condition::ILLEGAL_STATE, what));
        };
        if session.is_ending {
            return Ok(());
        }
        let io = &mut self.io;
        match performative {
            Performative::Attach(attach) => self.attach(channel, attach),
            Performative::Flow(flow) => session.flow(*flow, io),
            Performative::Transfer(transfer) => {
                let mine = if transfer.more { session.partial_beside(transfer.handle) } else { 0 };
                let used = others + mine;
                let limits = Limits {
                    max_message_bytes: self.settings.max_message_bytes,
                    max_partial_bytes: MAX_PARTIAL_BYTES.saturating_sub(used),
                };
                session.transfer(&transfer, payload, limits, io)
            }
            Performative::Disposition(disposition) => session.disposition(disposition, io),
            Performative::Detach(detach) => {
                let link = session.links.get(&detach.handle).map(|link| link.id);
                session.detached(detach, io)?;
                if let Some(link) = link {
                    self.channels.remove(&link);
                }
                Ok(())
            }
            Performative::Open(_)
            | Performative::Begin(_)
            | Performative::End(_)
            | Performative::Close(_) => Ok(()),
        }
    }

    fn begin(&mut self, channel: u16, begin: &Begin) -> Result<(), Fault> {
        if channel > MAX_CHANNEL {
            // AMQP 1.0 Part 2 §2.7.1.
            return Err(Fault::connection(condition::FRAMING_ERROR, "channel over channel-max"));
        }
        if begin.remote_channel.is_some() || self.sessions.contains_key(&channel) {
            let what = "begin on a channel that is in use, or in answer to nothing";
            return Err(Fault::connection(condition::NOT_ALLOWED, what));
        }
        let is_used = |ours: &u16| self.sessions.values().any(|session| session.channel == *ours);
        let free = (0..=self.channel_max.min(MAX_CHANNEL)).find(|ours| !is_used(ours));
        let what = "more sessions than channel-max of the peer";
        let ours = free.ok_or(Fault::connection(condition::RESOURCE_LIMIT_EXCEEDED, what))?;
        self.sessions.insert(channel, Session::begin(begin, channel, ours, &mut self.io));
        Ok(())
    }

    fn attach(&mut self, channel: u16, attach: Box<Attach>) -> Result<(), Fault> {
        let id = LinkId(self.next_link);
        if self.channels.len() >= MAX_LINKS {
            let what = "links of a connection";
            return Err(Fault::session(condition::RESOURCE_LIMIT_EXCEEDED, what));
        }
        let (name, role) = (&attach.name, attach.role);
        let find = |session: &Session| session.find(name, role);
        let before = self.sessions.values().find_map(find);
        let Some(session) = self.sessions.get_mut(&channel) else { return Ok(()) };
        session.attach(*attach, id)?;
        self.next_link += 1;
        self.channels.insert(id, channel);
        match before {
            Some(before) => self.contested.push((id, before)),
            None => self.say_attached(id),
        }
        Ok(())
    }

    /// Tells the application of a link that the peer attaches, if it still does.
    fn say_attached(&mut self, id: LinkId) {
        let channel = self.channels.get(&id);
        let session = channel.and_then(|channel| self.sessions.get_mut(channel));
        if let Some(link) = session.and_then(|session| session.link(id)) {
            link.is_announced = true;
            let attach = Box::new(link.attach.clone());
            self.io.say(Output::Attached { link: id, attach });
        }
    }

    /// A link that is attached already, in whichever session, is taken from there
    /// (AMQP 1.0 Part 2 §2.8.18): unless the peer has let go of it right behind, as proton does
    /// where its user detaches a link and attaches it again.
    fn settle_contests(&mut self) {
        for (id, link) in std::mem::take(&mut self.contested) {
            let channel = self.channels.get(&link);
            let session = channel.and_then(|channel| self.sessions.get_mut(channel));
            if session.is_some_and(|session| session.holds(link)) {
                let what = "the link was attached elsewhere";
                let error = Some(ErrorInfo::new(condition::STOLEN, what));
                self.detach(link, false, error.clone());
                let by = Some(ExpiryPolicy::LinkDetach);
                self.io.say(Output::Detached { link, by, error });
            }
            self.say_attached(id);
        }
    }

    /// Ends a session of the peer with an error.
    fn end(&mut self, channel: u16, error: ErrorInfo) {
        let Some(session) = self.sessions.get_mut(&channel) else { return };
        session.is_ending = true;
        session.say_detached(Some(&error), &mut self.io);
        self.channels.retain(|_, of| *of != channel);
        let end = End { error: shortened(Some(error)) };
        self.io.send(session.channel, &Performative::End(end));
    }

    /// The peer ends a session, or answers an end.
    fn ended(&mut self, channel: u16, end: End) -> Result<(), Fault> {
        let Some(mut session) = self.sessions.remove(&channel) else {
            let what = "end on a channel without a session";
            return Err(Fault::connection(condition::ILLEGAL_STATE, what));
        };
        session.say_detached(end.error.as_ref(), &mut self.io);
        self.channels.retain(|_, of| *of != channel);
        if !session.is_ending {
            self.io.send(session.channel, &Performative::End(End::default()));
        }
        Ok(())
    }

    /// What the application wants of a link.
    fn command(&mut self, input: Input) {
        let link = match &input {
            Input::Accept(accepted) => accepted.link,
            Input::Refuse { link, .. }
            | Input::Detach { link, .. }
            | Input::Deliver { link, .. }
            | Input::Outcome { link, .. }
            | Input::Settle { link, .. }
            | Input::Window { link, .. }
            | Input::Drained { link } => *link,
            _ => return self.io.misused(),
        };
        let channel = self.channels.get(&link);
        let Some(session) = channel.and_then(|channel| self.sessions.get_mut(channel)) else {
            // The peer was faster: the link is gone, as the application hears.
            return;
        };
        let io = &mut self.io;
        match input {
            Input::Accept(accepted) => self.accept(*accepted),
            Input::Refuse { error, .. } => session.refuse(link, error, io),
            Input::Detach { closed, error, .. } => self.detach(link, closed, error),
            Input::Deliver { delivery, settled, message, .. } => {
                session.deliver(link, Outgoing { delivery, settled, message, sent: None }, io);
            }
            Input::Outcome { delivery, state, .. } => session.outcome(link, delivery, state, io),
            Input::Settle { delivery, .. } => session.settle(link, delivery, io),
            Input::Window { window, .. } => session.set_window(link, window, io),
            Input::Drained { .. } => session.drained(link, io),
            _ => {}
        }
    }

    fn detach(&mut self, link: LinkId, closed: bool, error: Option<ErrorInfo>) {
        let channel = self.channels.get(&link);
        if let Some(session) = channel.and_then(|channel| self.sessions.get_mut(channel)) {
            if session.link(link).is_some_and(|link| link.handle.is_none()) {
                session.refuse_attach(link, &mut self.io);
            }
            session.detach(link, closed, error, &mut self.io);
        }
    }

    /// The application takes a link.
    fn accept(&mut self, accepted: Accepted) {
        let Accepted { link: id, source, target, window, .. } = accepted;
        let Some(&channel) = self.channels.get(&id) else { return };
        let Some(session) = self.sessions.get_mut(&channel) else { return };
        if session.link(id).is_none_or(|link| link.handle.is_some()) {
            return self.io.misused();
        }
        let Some(handle) = session.take_handle(id) else {
            let what = "more links than handle-max of the peer";
            return self.end(channel, ErrorInfo::new(condition::RESOURCE_LIMIT_EXCEEDED, what));
        };
        let Some(link) = session.link(id) else { return };
        let theirs = &link.attach;
        let mut attach = Attach::new(&theirs.name, handle, theirs.role.other());
        attach.snd_settle_mode = theirs.snd_settle_mode;
        attach.rcv_settle_mode = theirs.rcv_settle_mode;
        attach.source = source;
        attach.target = target;
        attach.offered_capabilities = accepted.offered_capabilities;
        attach.properties = accepted.properties;
        match &link.end {
            LinkEnd::Sending(_) => attach.initial_delivery_count = Some(0),
            LinkEnd::Receiving(_) => {
                attach.max_message_size = u64::try_from(self.settings.max_message_bytes).ok();
            }
        }
        self.io.send(session.channel, &Performative::Attach(Box::new(attach)));
        session.set_window(id, window, &mut self.io);
        session.say_credit(id, &mut self.io);
    }

    /// This side ends the connection: the peer's close is awaited.
    fn close(&mut self, error: Option<ErrorInfo>, by_peer: bool) {
        match self.phase {
            Phase::Closing | Phase::Closed => return self.finish(None, by_peer),
            Phase::Open | Phase::Opening => self.send_open(error.is_some()),
            Phase::Running => {}
            // There is nothing yet in which an error could be said.
            _ => return self.finish(error, by_peer),
        }
        let close = Close { error: shortened(error.clone()) };
        self.io.send(0, &Performative::Close(close));
        self.io.is_overlong = false;
        self.phase = Phase::Closing;
        self.sessions.clear();
        self.channels.clear();
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
        self.sessions.clear();
        self.channels.clear();
        self.io.say(Output::HangUp);
    }
}

fn framing(error: &Error) -> Fault {
    Fault::Connection(ErrorInfo::new(condition::FRAMING_ERROR, error.to_string()))
}
