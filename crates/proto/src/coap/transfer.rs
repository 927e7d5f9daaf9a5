//! An endpoint whose requests and responses have bodies of any size: what does not fit into a
//! datagram goes in blocks (RFC 7959), with ETag and Request-Tag (RFC 9175).
//!
//! Inputs and outputs are those of [`super::machine`], with whole bodies in them; or, with
//! [`Input::Open`], with bodies that are never here as a whole: the next block of an answer is
//! asked for when there is room for it, and that of a request is sent when its bytes have come;
//! with [`Input::Begin`] an answer to a peer goes so, of which up to [`super::MAX_BODY_BYTES`] are
//! kept for who asks for blocks out of order, and of a longer one [`MAX_BEHIND_BYTES`].
//! What was given out of an answer stays given out, so that one which becomes another on its way
//! (ETag, RFC 7959 §2.4) breaks off. With [`q_block`] bodies also go in blocks that are not
//! confirmed one by one.

mod call;
mod client;
mod flowing;
mod gathered;
mod incoming;
mod medium;
mod pending;
pub mod q_block;
mod served;
mod server;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use super::Content;
use super::guard::{Guard, Incoming};
use super::machine::{self, Address, Counts, Endpoint, Flow, Input, Of, Output, Settings};
pub(super) use client::Client;
pub use flowing::MAX_FIRST_BYTES;
pub(super) use flowing::Opening;
use gathered::Gathered;
pub(super) use medium::Medium;
pub(super) use server::Server;

pub use call::MAX_RESTARTS;
pub use incoming::MAX_WHOLE_BYTES;
pub use served::{MAX_BEHIND_BYTES, MAX_FLOWING, MAX_FLOWING_PER_PEER};
pub use server::{
    MAX_SERVED, MAX_SERVED_BYTES, MAX_SERVED_PER_PEER, MAX_UPLOAD_BYTES, MAX_UPLOADS,
    MAX_UPLOADS_PER_PEER,
};

/// What is to be done next: by the endpoint, and by the caller.
#[derive(Debug)]
pub(super) struct Queues<P> {
    pub(super) inputs: VecDeque<Input<P>>,
    pub(super) outputs: VecDeque<Output<P>>,
}

impl<P> Default for Queues<P> {
    fn default() -> Self {
        Self { inputs: VecDeque::new(), outputs: VecDeque::new() }
    }
}

/// An endpoint for whole bodies.
#[derive(Debug)]
pub struct Transfers<P> {
    endpoint: Endpoint<P>,
    guard: Guard<P>,
    is_guarded: bool,
    now: Duration,
    client: Client<P>,
    server: Server<P>,
    /// Where bodies may also go by RFC 9177, in each role.
    q_client: Option<q_block::Client<P>>,
    q_server: Option<q_block::Server<P>>,
    /// Bodies that go by RFC 9177, as a whole.
    gathered: Gathered<P>,
    /// Bounded by what one input can do.
    queues: Queues<P>,
    endpoint_wakes_at: Option<Duration>,
    announced_wake_at: Option<Duration>,
}

impl<P: Address> Transfers<P> {
    /// Nothing sent, nobody known.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            endpoint: Endpoint::new(settings),
            guard: Guard::none(),
            is_guarded: false,
            now: Duration::ZERO,
            client: Client::new(settings.seed),
            server: Server::new(settings.seed),
            q_client: None,
            q_server: None,
            gathered: Gathered::default(),
            queues: Queues::default(),
            endpoint_wakes_at: None,
            announced_wake_at: None,
        }
    }

    /// The same, where peers that ask with Q-Block1 and Q-Block2 (RFC 9177) are answered so.
    /// `seed` is unforeseeable, and another one for each run. Without effect behind
    /// [`Transfers::with_guard`].
    #[must_use]
    pub fn answering_q_block(mut self, seed: [u64; 2]) -> Self {
        if !self.is_guarded {
            self.endpoint.takes_q_block = true;
            self.q_server = Some(q_block::Server::new(seed));
        }
        self
    }

    /// The same, where bodies of peers' requests that are longer than [`MAX_WHOLE_BYTES`] are given
    /// out as they come, from an [`Output::Opened`] on. Of those that go by RFC 9177 each is whole.
    #[must_use]
    pub fn taking_bodies(mut self) -> Self {
        self.server.take_bodies();
        self
    }

    /// The same, whose requests go with Q-Block1 and Q-Block2 (RFC 9177) to servers that know them.
    /// `seed` and guard as in [`Transfers::answering_q_block`].
    #[must_use]
    pub fn offering_q_block(mut self, seed: [u64; 2]) -> Self {
        if !self.is_guarded {
            self.endpoint.offers_q_block = true;
            self.q_client = Some(q_block::Client::new(seed));
        }
        self
    }

    /// The same, with messages that are protected; these have blocks of RFC 7959 alone.
    #[must_use]
    pub fn with_guard(mut self, guard: Guard<P>) -> Self {
        (self.is_guarded, self.q_client, self.q_server) = (true, None, None);
        (self.endpoint.takes_q_block, self.endpoint.offers_q_block) = (false, false);
        if guard.is_server() {
            self.endpoint.leaves_protected = true;
        }
        self.guard = guard;
        self
    }

    /// What protects messages, to see what is to be stored and to say that it is.
    pub fn guard_mut(&mut self) -> &mut Guard<P> {
        &mut self.guard
    }

    /// What went wrong so far, by messages.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let (mut counts, (refused, challenged)) = (self.endpoint.counts(), self.guard.counts());
        counts.refused += refused + self.q_server.as_ref().map_or(0, q_block::Server::refused);
        counts.challenged += challenged;
        counts
    }

    /// Whether a peer has shown that it has its address, or need not.
    #[must_use]
    pub fn is_trusted(&self, peer: P) -> bool {
        self.endpoint.is_trusted(peer)
    }

    /// What a peer takes to acknowledge a message, smoothed, where that is known.
    #[must_use]
    pub fn round_trip(&self, peer: P) -> Option<Duration> {
        machine::round_trip(&self.endpoint, peer)
    }

    /// Whether the peer is known to have a request of ours whole, or it is not open.
    #[must_use]
    pub fn is_delivered(&self, request: u64) -> bool {
        if let Some(client) = self.q_client.as_ref().filter(|client| client.has(request)) {
            return client.is_delivered(request);
        }
        match self.client.sending(request) {
            Some(part) => machine::is_delivered(&self.endpoint, part),
            None => !self.client.is_uploading(request),
        }
    }

    /// Bytes of bodies that are kept here: of those that are never here as a whole, of those that
    /// come and are not whole yet, and of what peers have not fetched yet. Not with them is what is
    /// in a message under way, and what goes by RFC 9177.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.client.held_bytes() + self.server.held_bytes()
    }

    /// Whether a peer is being told that it is observed no more.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.endpoint.is_leaving()
    }

    /// Takes what happened at `now`, which does not go back. Bodies have any size up to what
    /// 2^20 blocks hold; of what peers send, up to [`super::MAX_BODY_BYTES`].
    pub fn handle_input(&mut self, now: Duration, input: Input<P>) {
        self.now = self.now.max(now);
        let wakes = |at: &Duration| self.now < *at;
        self.announced_wake_at = self.announced_wake_at.filter(wakes);
        self.endpoint_wakes_at = self.endpoint_wakes_at.filter(wakes);
        self.server.expire(self.now, &mut self.queues);
        if let Some(server) = &mut self.q_server {
            server.wake(self.now, &mut self.queues);
        }
        if let Some(client) = &mut self.q_client {
            let endpoint = &self.endpoint;
            let is_delivered = |part| machine::is_delivered(endpoint, part);
            client.wake(self.now, is_delivered, &mut self.queues);
        }
        self.give(input);
        self.drain();
        let endpoint = &self.endpoint;
        self.gathered.expire(|exchange| endpoint.is_open(exchange), &mut self.queues);
    }

    /// An input of the caller's.
    fn give(&mut self, input: Input<P>) {
        let queues = &mut self.queues;
        match input {
            Input::Request { request, peer, content, is_confirmable } => {
                self.request((request, peer), content, is_confirmable);
            }
            Input::Unpaced { request, peer, content } => match &self.q_client {
                // A number that is in use already is ignored.
                Some(client) if client.has(request) => {}
                // What is protected goes as any other: the guard knows no request without a pace.
                _ if self.is_guarded => self.client.start(request, peer, content, false, queues),
                _ => self.client.start_unpaced(request, peer, content, queues),
            },
            Input::Open { request, peer, content, is_confirmable, has_more, room_bytes } => {
                // A number that is in use already is ignored.
                if !self.q_client.as_ref().is_some_and(|client| client.has(request)) {
                    let opening = Opening { has_more, room_bytes };
                    self.client.open(request, peer, (content, is_confirmable), opening, queues);
                }
            }
            Input::Begin { exchange, content } => self.begin(exchange, content),
            Input::Flow(flow) => self.flow(flow),
            Input::Ping { request, peer } => match &self.q_client {
                // A number that is in use already is ignored.
                Some(client) if client.has(request) => {}
                _ => self.client.ping(request, peer, queues),
            },
            Input::Cancel { request } => match &mut self.q_client {
                Some(client) if client.has(request) => client.cancel(request, queues),
                _ => self.client.cancel(request, queues),
            },
            Input::Respond { exchange, content } => match &mut self.q_server {
                Some(server) if server.requester(exchange).is_some() => {
                    server.respond(self.now, exchange, content, queues);
                }
                _ => self.server.respond(self.now, exchange, content, queues),
            },
            Input::Challenge { exchange } => {
                self.server.forget(exchange);
                if let Some(server) = &mut self.q_server {
                    server.forget(exchange);
                }
                queues.inputs.push_back(Input::Challenge { exchange });
            }
            Input::Notify { exchange, content } => {
                self.server.notify(self.now, exchange, content, queues);
            }
            other => queues.inputs.push_back(other),
        }
    }

    /// An answer with the beginning of its body.
    fn begin(&mut self, exchange: u64, content: Content) {
        let queues = &mut self.queues;
        let quick = self.q_server.as_mut().and_then(|it| Some((it.requester(exchange)?, it)));
        let Some((peer, server)) = quick else {
            return self.server.begin_flow(self.now, exchange, content, queues);
        };
        let answered = self.gathered.begin(self.now, (exchange, peer), content, queues);
        if let Some((exchange, content)) = answered {
            server.respond(self.now, exchange, content, queues);
        }
    }

    /// A step of a body.
    fn flow(&mut self, flow: Flow) {
        let queues = &mut self.queues;
        let (Flow::Part { of, .. } | Flow::Room { of, .. } | Flow::Broken { of }) = flow;
        match of {
            Of::Request(_) => self.client.flow(flow, queues),
            Of::Exchange(exchange) if self.gathered.has(exchange) => {
                let whole = self.gathered.flow(exchange, flow, queues);
                if let Some((content, server)) = whole.zip(self.q_server.as_mut()) {
                    server.respond(self.now, exchange, content, queues);
                }
            }
            Of::Exchange(_) => self.server.flow(self.now, flow, queues),
        }
    }

    fn request(&mut self, (request, peer): (u64, P), content: Content, is_confirmable: bool) {
        let queues = &mut self.queues;
        match &mut self.q_client {
            // A number that is in use already is ignored by either.
            Some(client) if client.has(request) => {}
            Some(client) if !self.client.has(request) && client.admits(peer, &content) => {
                client.start(self.now, (request, peer), (content, is_confirmable), queues);
            }
            _ => self.client.start(request, peer, content, is_confirmable, queues),
        }
    }

    /// Gives the endpoint what waits for it, until there is nothing.
    fn drain(&mut self) {
        loop {
            while let Some((request, peer, content, is_confirmable)) =
                self.q_client.as_mut().and_then(q_block::Client::fallen)
            {
                self.client.start(request, peer, content, is_confirmable, &mut self.queues);
            }
            let Some(input) = self.queues.inputs.pop_front() else { break };
            let answered = match &input {
                Input::Respond { exchange, .. } => Some(*exchange),
                _ => None,
            };
            match self.guard.outgoing(input) {
                Ok(input) => self.endpoint.handle_input(self.now, input),
                Err(output) => self.take(output),
            }
            if let Some(exchange) = answered {
                self.server.answered(exchange, self.endpoint.is_observed(exchange));
            }
            while let Some(output) = self.endpoint.poll_output() {
                self.unguard(output);
            }
        }
        let left_at = machine::left_at(&self.endpoint).max(self.now);
        if let Some(client) = &mut self.q_client {
            client.rest(left_at);
        }
        if let Some(server) = &mut self.q_server {
            server.rest(left_at);
        }
    }

    /// The next thing to do; `None` when there is nothing until the next input.
    pub fn poll_output(&mut self) -> Option<Output<P>> {
        if let Some(output) = self.queues.outputs.pop_front() {
            return Some(output);
        }
        let wakes_at = [
            self.endpoint_wakes_at,
            self.server.wakes_at(),
            self.q_client.as_ref().and_then(q_block::Client::wakes_at),
            self.q_server.as_ref().and_then(q_block::Server::wakes_at),
        ];
        let wake_at = wakes_at.into_iter().flatten().min();
        let wake_at = wake_at.filter(|at| self.announced_wake_at != Some(*at))?;
        self.announced_wake_at = Some(wake_at);
        Some(Output::WakeAt(wake_at))
    }

    /// Takes the protection off what comes of the endpoint.
    fn unguard(&mut self, output: Output<P>) {
        let Output::Request { exchange, peer, content } = output else {
            let (output, inputs) = self.guard.answered(output);
            // The guard has protected them: they pass it by.
            for input in inputs {
                self.endpoint.handle_input(self.now, input);
            }
            return output.into_iter().for_each(|output| self.take(output));
        };
        let endpoint = &self.endpoint;
        let is_open = |exchange| endpoint.is_open(exchange) || endpoint.is_observed(exchange);
        self.guard.make_room(is_open);
        let is_trusted = endpoint.is_trusted(peer);
        let answer = match self.guard.requested(exchange, (peer, is_trusted), content) {
            Incoming::Plain(content) => return self.requested(exchange, peer, content, None),
            Incoming::Verified { context, content, is_validated } => {
                if is_validated {
                    self.endpoint.validate(peer);
                }
                return self.requested(exchange, peer, content, Some(context));
            }
            Incoming::Answered(answer) => answer,
        };
        self.endpoint.handle_input(self.now, Input::Respond { exchange, content: answer });
    }

    /// A request of a peer, with the context that has protected it.
    fn requested(&mut self, exchange: u64, peer: P, content: Content, context: Option<usize>) {
        let endpoint = &self.endpoint;
        if let Some(server) =
            self.q_server.as_mut().filter(|_| q_block::Server::<P>::admits(&content))
        {
            server.make_room(|exchange| endpoint.is_open(exchange));
            let is_confirmable = machine::is_confirmable(endpoint, exchange);
            let request = (exchange, peer, is_confirmable);
            return server.requested(self.now, request, content, &mut self.queues);
        }
        self.server.make_room(|exchange| endpoint.is_open(exchange));
        let request = (exchange, peer, context);
        self.server.requested(self.now, request, content, &mut self.queues);
    }

    fn take(&mut self, output: Output<P>) {
        let queues = &mut self.queues;
        match output {
            Output::Request { exchange, peer, content } => {
                self.requested(exchange, peer, content, None);
            }
            Output::Response { request, content, is_last } => match &mut self.q_client {
                Some(client) if q_block::is_part(request) => {
                    client.answered(self.now, request, (content, is_last), queues);
                }
                _ => self.client.answered(request, content, is_last, queues),
            },
            Output::Failed { request, reason } => match &mut self.q_client {
                Some(client) if q_block::is_part(request) => {
                    client.failed((request, reason), self.now, queues);
                }
                _ => self.client.failed(request, reason, queues),
            },
            Output::Suppressed { request } => {
                let suppressed = |request| Output::Suppressed { request };
                self.client.settle(request, suppressed, queues);
            }
            Output::Alive { request } => {
                self.client.settle(request, |request| Output::Alive { request }, queues);
            }
            Output::Ended { exchange } => {
                if self.q_server.as_mut().is_some_and(|server| server.was_reset(exchange)) {
                    return;
                }
                self.guard.ended(exchange);
                self.server.ended(exchange);
                queues.outputs.push_back(Output::Ended { exchange });
            }
            Output::WakeAt(at) => self.endpoint_wakes_at = Some(at),
            output @ (Output::Datagram { .. } | Output::Flow(_) | Output::Opened { .. }) => {
                queues.outputs.push_back(output);
            }
        }
    }
}
