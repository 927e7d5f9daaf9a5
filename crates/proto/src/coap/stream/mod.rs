//! One connection of CoAP over a reliable transport: TCP, TLS or a WebSocket (RFC 8323), in both
//! roles, with bodies of any size.
//!
//! Each side begins with a CSM, in which it says how long its messages may be; only then anything
//! else counts. A request that any peer takes goes at once, a longer one when the peer's CSM is
//! here. There are no message ids, nothing is repeated, and answers come in any order. Bodies that
//! take more than a message go in blocks, of BERT where the peer can (RFC 8323 §6).

mod client;
mod messages;
mod server;
mod settings;
mod signals;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::VecDeque;
use std::time::Duration;

use super::framed::MAX_FIRST_MESSAGE_BYTES;
use super::kept::Bounds;
use super::machine::{self, EXCHANGE_LIFETIME, Flow, Of, Reason};
use super::transfer::{Client, Opening, Queues, Server};
use super::{Code, Content, MAX_TOKEN_BYTES, Token};
use messages::Messages;

pub use settings::*;

/// What the parts below say to each other; the peer is the only one.
type Inner = machine::Input<()>;

/// See the module.
#[derive(Debug)]
pub struct Connection {
    messages: Messages,
    client: Client<()>,
    server: Server<()>,
    /// Bounded by what one message can do.
    queues: Queues<()>,
    outputs: VecDeque<Output>,
    /// Requests too long for a peer that has not said what it takes; at most [`MAX_REQUESTS`].
    held: VecDeque<(u64, Content, Option<Opening>)>,
    announced_wake_at: Option<Duration>,
}

impl Connection {
    /// One that was just established; the time begins at zero, where [`Connection::poll_output`]
    /// already has the first message.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let lifetime = EXCHANGE_LIFETIME;
        let bounds =
            |entries, bytes| Bounds { entries, entries_per_peer: entries, bytes, lifetime };
        let uploads = bounds(MAX_UPLOADS, MAX_UPLOAD_BYTES);
        let served = bounds(MAX_SERVED, MAX_SERVED_BYTES);
        let mut connection = Self {
            messages: Messages::new(settings.framing, settings.idle),
            client: Client::new(settings.seed),
            server: Server::bounded(settings.seed, uploads, served),
            queues: Queues::default(),
            outputs: VecDeque::new(),
            held: VecDeque::new(),
            announced_wake_at: None,
        };
        connection.adapt();
        connection.drain();
        connection
    }

    /// The same, where bodies of the peer's requests that are longer than
    /// [`super::transfer::MAX_WHOLE_BYTES`] are given out as they come.
    #[must_use]
    pub fn taking_bodies(mut self) -> Self {
        self.server.take_bodies();
        self
    }

    /// What went wrong so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.messages.counts
    }

    /// Whether the peer has said what it takes.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.messages.peer.is_some()
    }

    /// Whether a request of either side has no answer yet, the body of one of the peer's goes on,
    /// or something is observed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let Messages { calls, exchanges, observations, .. } = &self.messages;
        let is_idle = calls.is_empty() && exchanges.is_empty() && observations.is_empty();
        !is_idle || !self.held.is_empty() || self.server.has_incoming()
    }

    /// Bytes that are kept because of what the peer sent and asked for: parts of messages and of
    /// bodies, and what it has not fetched yet.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.messages.held_bytes() + self.server.held_bytes()
    }

    /// Takes what happened at `now`, which does not go back. Then [`Connection::poll_output`] is to
    /// be called until it has nothing.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        self.messages.now = self.messages.now.max(now);
        let now = self.messages.now;
        self.announced_wake_at = self.announced_wake_at.filter(|at| now < *at);
        if self.messages.progress.is_closed {
            return;
        }
        self.server.expire(now, &mut self.queues);
        if let Input::Request { request, .. }
        | Input::Open { request, .. }
        | Input::Ping { request } = input
            && self.has(request)
        {
            // Whatever were said of it would be taken for the end of the one that is open.
            self.messages.counts.misused += 1;
            return;
        }
        match input {
            Input::Bytes(bytes) => {
                self.messages.receive(&bytes);
                while !self.messages.progress.is_closed && self.messages.step() {
                    self.drain();
                    // What ends it ends it here, wherever the stream is cut.
                    self.messages.settle();
                    self.drain();
                }
            }
            Input::Eof => self.messages.progress.is_eof = true,
            Input::Request { request, content } => self.request(request, content, None),
            Input::Open { request, content, has_more, room_bytes } => {
                self.request(request, content, Some(Opening { has_more, room_bytes }));
            }
            Input::Begin { exchange, content } => {
                self.server.begin_flow(now, exchange, content, &mut self.queues);
            }
            Input::Flow(flow) => {
                let (Flow::Part { of, .. } | Flow::Room { of, .. } | Flow::Broken { of }) = flow;
                match of {
                    Of::Request(_) => self.client.flow(flow, &mut self.queues),
                    Of::Exchange(_) => self.server.flow(now, flow, &mut self.queues),
                }
            }
            Input::Ping { request } if self.messages.progress.was_released => {
                self.outputs.push_back(Output::Failed { request, reason: Reason::Closed });
            }
            Input::Ping { request } => self.client.ping(request, (), &mut self.queues),
            Input::Cancel { request } => {
                self.held.retain(|(other, ..)| *other != request);
                self.client.cancel(request, &mut self.queues);
            }
            Input::Respond { exchange, content } => {
                self.server.respond(now, exchange, content, &mut self.queues);
            }
            Input::Notify { exchange, content } => {
                self.server.notify(now, exchange, content, &mut self.queues);
            }
            Input::Release { hold_off_s } => self.messages.release(hold_off_s),
            Input::Abort { why } => self.messages.leave(why),
            Input::Wake => {}
        }
        self.drain();
        self.messages.settle();
        self.drain();
    }

    /// The next thing to do; `None` when there is nothing until the next input.
    pub fn poll_output(&mut self) -> Option<Output> {
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        if self.messages.progress.is_closed {
            return None;
        }
        let times = [self.messages.timers.next(), self.server.wakes_at()];
        let wake_at = times.into_iter().flatten().min();
        let wake_at = wake_at.filter(|at| self.announced_wake_at != Some(*at))?;
        self.announced_wake_at = Some(wake_at);
        Some(Output::WakeAt(wake_at))
    }

    /// Whether a request or a ping of this number has no end yet.
    fn has(&self, request: u64) -> bool {
        self.client.has(request) || self.held.iter().any(|(other, ..)| *other == request)
    }

    /// RFC 8323 §5.3.1: before it has said more, a peer takes so many bytes.
    fn request(&mut self, request: u64, content: Content, opening: Option<Opening>) {
        let Messages { peer, framing, progress, .. } = &self.messages;
        if progress.was_released {
            let failed = Output::Failed { request, reason: Reason::Closed };
            return self.outputs.push_back(failed);
        }
        // With the longest token.
        let most = u64::from(MAX_FIRST_MESSAGE_BYTES) - MAX_TOKEN_BYTES as u64;
        let has_more = opening.is_some_and(|opening| opening.has_more);
        let is_short = || !has_more && wire::encode(*framing, Token::EMPTY, &content, most).is_ok();
        if peer.is_some() || is_short() {
            return self.start(request, content, opening);
        }
        if self.held.len() >= MAX_REQUESTS {
            self.outputs.push_back(Output::Failed { request, reason: Reason::Full });
        } else {
            self.held.push_back((request, content, opening));
        }
    }

    fn start(&mut self, request: u64, content: Content, opening: Option<Opening>) {
        let queues = &mut self.queues;
        match opening {
            None => self.client.start(request, (), content, true, queues),
            Some(opening) => self.client.open(request, (), (content, true), opening, queues),
        }
    }

    /// Takes over what the peer has said of itself.
    fn adapt(&mut self) {
        let medium = self.messages.medium();
        self.client.set_medium(medium);
        self.server.set_medium(medium);
        if self.messages.peer.is_some() {
            for (request, content, opening) in std::mem::take(&mut self.held) {
                self.start(request, content, opening);
            }
        }
    }

    /// Does what the parts have for each other until nothing is left.
    fn drain(&mut self) {
        loop {
            self.adapt();
            // What comes of an output is said before the next, which may be the end.
            if let Some(output) = self.queues.outputs.pop_front() {
                self.outputs.extend(shown(output));
            } else if let Some(output) = self.messages.outputs.pop_front() {
                self.take(output);
            } else if let Some(input) = self.queues.inputs.pop_front() {
                self.give(input);
            } else {
                return;
            }
        }
    }

    /// What the messages say, to those who know bodies.
    fn take(&mut self, output: Output) {
        let (now, queues) = (self.messages.now, &mut self.queues);
        match output {
            Output::Request { exchange, content } => {
                let open = &self.messages.exchanges;
                self.server.make_room(|exchange| open.contains_key(&exchange));
                self.server.requested(now, (exchange, (), None), content, queues);
            }
            Output::Response { request, content, is_last } => {
                self.client.answered(request, content, is_last, queues);
            }
            Output::Failed { request, reason } => self.client.failed(request, reason, queues),
            Output::Suppressed { request } => {
                let suppressed = |request| machine::Output::Suppressed { request };
                self.client.settle(request, suppressed, queues);
            }
            Output::Alive { request } => {
                self.client.settle(request, |request| machine::Output::Alive { request }, queues);
            }
            Output::Ended { exchange } => {
                self.server.ended(exchange);
                self.outputs.push_back(Output::Ended { exchange });
            }
            output @ (Output::Transmit(_)
            | Output::Flow(_)
            | Output::Opened { .. }
            | Output::Released { .. }
            | Output::Closed(_)
            | Output::WakeAt(_)) => {
                self.outputs.push_back(output);
            }
        }
    }

    /// What those who know bodies want to send.
    fn give(&mut self, input: Inner) {
        let messages = &mut self.messages;
        match input {
            _ if messages.progress.is_closed => {}
            Inner::Request { request, content, .. } => messages.call(request, content),
            Inner::Ping { request, .. } => messages.ping(request),
            Inner::Cancel { request } => messages.cancel(request),
            Inner::Respond { exchange, content } => {
                messages.respond(exchange, content);
                self.server.answered(exchange, messages.is_observed(exchange));
            }
            Inner::Notify { exchange, content } => messages.notify(exchange, content),
            // Its peer hears no acknowledgement that would say so.
            Inner::Drop { exchange } => {
                let content = Content::new(Code::REQUEST_ENTITY_INCOMPLETE);
                messages.respond(exchange, content);
            }
            // There is nothing of these over a reliable transport.
            Inner::Datagram { .. }
            | Inner::Challenge { .. }
            | Inner::Unpaced { .. }
            | Inner::Open { .. }
            | Inner::Begin { .. }
            | Inner::Flow(_)
            | Inner::Further { .. }
            | Inner::Rate(_)
            | Inner::Wake => {}
        }
    }
}

/// The same as an output of a connection.
fn shown(output: machine::Output<()>) -> Option<Output> {
    Some(match output {
        machine::Output::Request { exchange, content, .. } => Output::Request { exchange, content },
        machine::Output::Response { request, content, is_last } => {
            Output::Response { request, content, is_last }
        }
        machine::Output::Flow(flow) => Output::Flow(flow),
        machine::Output::Opened { exchange, content, .. } => Output::Opened { exchange, content },
        machine::Output::Suppressed { request } => Output::Suppressed { request },
        machine::Output::Alive { request } => Output::Alive { request },
        machine::Output::Failed { request, reason } => Output::Failed { request, reason },
        machine::Output::Ended { exchange } => Output::Ended { exchange },
        machine::Output::Datagram { .. } | machine::Output::WakeAt(_) => return None,
    })
}
