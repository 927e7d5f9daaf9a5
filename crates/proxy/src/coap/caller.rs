//! Requests of this side: who waits for which response, on an endpoint that only asks.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use proto::coap::machine::{Counts, Flow, Input, Of, Output, Reason};
use proto::coap::{Code, Content, stream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::dial::Stream;
use super::dtls::Layer;
use super::dtls::keys::Pair;
use super::endpoint::{Application, Command, Endpoint, channel};
use super::link::{self, Link};
use super::oscore::Security;
use super::socket::{Peer, Socket};
use super::wire::Wire;
use crate::Error;
use crate::progress::Progress;

/// Responses of an observation that wait for whoever reads them; of more the newest is left out.
const MAX_WAITING: usize = 16;
/// Bytes of an answer that is given out as it comes, and that nobody has taken; a message more may
/// be there over a stream.
pub(crate) const ROOM_BYTES: usize = 64 << 10;
/// As many events: each block at its smallest, and what is said beside them.
const MAX_PARTS: usize = ROOM_BYTES / 16 + MAX_WAITING;

/// How long the end of all takes at most.
const MAX_CLOSING: Duration = Duration::from_secs(4);

/// What comes of a request.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A response, and whether none follows, nor a part of this one.
    Response(Content, bool),
    /// The next part of a response's body, and whether it is the last.
    Part(Bytes, bool),
    /// There is room for so many bytes more of the request's body.
    Room(usize),
    /// A ping was answered.
    Alive,
    /// Nothing, or nothing more, and why.
    Failed(Failure),
}

/// Why nothing came.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// What the machine says.
    Reason(Reason),
    /// What the network says.
    Network(String),
}

impl Failure {
    /// In words.
    pub(crate) fn why(&self) -> String {
        let reason = match self {
            Self::Network(why) => return why.clone(),
            Self::Reason(reason) => reason,
        };
        let why = match reason {
            Reason::Full => "too many requests are open",
            Reason::TimedOut => "the server acknowledged nothing",
            Reason::NoAnswer => "no answer came",
            Reason::Reset => "the server has no use for the request (reset)",
            Reason::BadAnswer => "the answer breaks the protocol",
            Reason::TooLarge => "a body is over the limit: 1 MiB in one piece, or 2^20 blocks",
            Reason::Changed => "the answer changed while it was read",
            Reason::Misuse => "the request fits no message",
            Reason::Closed => "the server takes no further request over this connection",
            Reason::Aged => "the observation is over its age",
            Reason::Unverified => "the answer does not verify (OSCORE): is the context the same?",
            Reason::Unprotected(code) => {
                let why = "the server has no such context, or takes the request for an old one";
                return format!("an answer without protection came, {code}: {why}");
            }
        };
        why.to_owned()
    }
}

/// Who is told of each datagram: whether it was sent, and its bytes.
pub(crate) type Watch = Arc<dyn Fn(bool, usize) + Send + Sync>;

/// Who waits for what, by the number of the request: as many as the machine has requests.
#[derive(Clone)]
struct Waiting {
    open: Arc<Mutex<BTreeMap<u64, mpsc::Sender<Event>>>>,
    watch: Option<Watch>,
    /// When somebody answered last.
    heard: Progress,
}

impl Waiting {
    fn new(watch: Option<Watch>) -> Self {
        Self { open: Arc::default(), watch, heard: Progress::new() }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, mpsc::Sender<Event>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, request: u64, event: Event, is_last: bool) {
        let mut all = self.all();
        if let Some(sender) = all.get(&request) {
            // Who does not read notifications misses some; for parts of bodies there is room.
            let _ = sender.try_send(event);
        }
        if is_last {
            all.remove(&request);
        }
    }

    /// Nobody gets anything any more.
    fn end(&self, why: &str) {
        for sender in std::mem::take(&mut *self.all()).into_values() {
            let _ = sender.try_send(Event::Failed(Failure::Network(why.to_owned())));
        }
    }
}

impl Application for Waiting {
    fn take(&mut self, output: Output<Peer>, _: bool) -> Option<Input<Peer>> {
        match output {
            Output::Response { request, content, is_last } => {
                self.tell(request, Event::Response(content, is_last), is_last);
            }
            Output::Alive { request } => self.tell(request, Event::Alive, true),
            Output::Failed { request, reason } => {
                self.tell(request, Event::Failed(Failure::Reason(reason)), true);
            }
            Output::Flow(Flow::Part { of: Of::Request(request), bytes, is_last }) => {
                self.tell(request, Event::Part(bytes, is_last), is_last);
            }
            Output::Flow(Flow::Room { of: Of::Request(request), bytes }) => {
                self.tell(request, Event::Room(bytes), false);
            }
            // Nobody is asked here.
            Output::Request { exchange, .. } => {
                return Some(Input::Respond { exchange, content: Content::new(Code::NOT_FOUND) });
            }
            Output::Flow(_)
            | Output::Opened { .. }
            | Output::Suppressed { .. }
            | Output::Ended { .. }
            | Output::Datagram { .. }
            | Output::WakeAt(_) => {}
        }
        None
    }

    fn heard(&mut self) {
        self.heard.touch();
    }

    fn counted(&mut self, _: Counts) {}

    fn passed(&mut self, sent: bool, bytes: usize) {
        if let Some(watch) = &self.watch {
            watch(sent, bytes);
        }
    }
}

/// The same over a connection.
struct OverStream {
    waiting: Waiting,
    /// Where else the server wants to be asked, and when (RFC 8323 §5.5).
    released: String,
}

impl link::User for OverStream {
    fn take(&mut self, output: stream::Output) -> Option<stream::Input> {
        use stream::Output as From;
        let output = match output {
            From::Response { request, content, is_last } => {
                Output::Response { request, content, is_last }
            }
            From::Flow(flow) => Output::Flow(flow),
            From::Alive { request } => Output::Alive { request },
            From::Failed { request, reason } => Output::Failed { request, reason },
            // Nobody is asked here.
            From::Request { exchange, .. } => {
                let content = Content::new(Code::NOT_FOUND);
                return Some(stream::Input::Respond { exchange, content });
            }
            From::Released { alternatives, hold_off_s } => {
                self.released = of_release(&alternatives, hold_off_s);
                return None;
            }
            From::Opened { .. }
            | From::Suppressed { .. }
            | From::Ended { .. }
            | From::Transmit(_)
            | From::Closed(_)
            | From::WakeAt(_) => return None,
        };
        let _ = self.waiting.take(output, true);
        None
    }

    fn observe(&mut self, _: &stream::Connection, _: usize) -> Option<stream::Input> {
        // Something came, or was taken.
        self.waiting.heard.touch();
        None
    }
}

/// What a server says of the time after a connection.
fn of_release(alternatives: &[String], hold_off_s: Option<u32>) -> String {
    let mut said = hold_off_s.map_or_else(String::new, |s| format!("; come back in {s} s"));
    if let Some(first) = alternatives.first() {
        said.push_str(&format!("; ask '{}' instead", super::text::printable(first)));
    }
    said
}

/// How requests get to the task.
#[derive(Clone)]
enum Way {
    Datagrams(mpsc::Sender<Command>),
    Stream(mpsc::Sender<link::Command>),
}

impl Way {
    /// Whether it was taken.
    async fn ask(&self, request: u64, peer: Peer, content: Content, is_confirmable: bool) -> bool {
        let is_ping = content.code == Code::EMPTY;
        match self {
            Self::Datagrams(commands) => {
                let input = match is_ping {
                    true => Input::Ping { request, peer },
                    false => Input::Request { request, peer, content, is_confirmable },
                };
                commands.send(Command::Input(input)).await.is_ok()
            }
            Self::Stream(commands) => {
                let input = match is_ping {
                    true => stream::Input::Ping { request },
                    false => stream::Input::Request { request, content },
                };
                commands.send(link::Command::Input(input)).await.is_ok()
            }
        }
    }

    /// Asks, for an answer that is given out as it comes; whether that was taken.
    async fn open(&self, request: u64, peer: Peer, asked: Asked) -> bool {
        let Asked { content, is_confirmable, has_more, room_bytes } = asked;
        match self {
            Self::Datagrams(commands) => {
                let input =
                    Input::Open { request, peer, content, is_confirmable, has_more, room_bytes };
                commands.send(Command::Input(input)).await.is_ok()
            }
            Self::Stream(commands) => {
                let input = stream::Input::Open { request, content, has_more, room_bytes };
                commands.send(link::Command::Input(input)).await.is_ok()
            }
        }
    }

    /// A step of a body. Where the task has ended, the events say so.
    async fn flow(&self, flow: Flow) {
        match self {
            Self::Datagrams(commands) => {
                let _ = commands.send(Command::Input(Input::Flow(flow))).await;
            }
            Self::Stream(commands) => {
                let input = stream::Input::Flow(flow);
                let _ = commands.send(link::Command::Input(input)).await;
            }
        }
    }

    async fn cancel(&self, request: u64) {
        match self {
            Self::Datagrams(commands) => {
                let _ = commands.send(Command::Input(Input::Cancel { request })).await;
            }
            Self::Stream(commands) => {
                let input = stream::Input::Cancel { request };
                let _ = commands.send(link::Command::Input(input)).await;
            }
        }
    }

    /// Whether it could be said at once that a request is of no use any more.
    fn has_cancelled(&self, request: u64) -> bool {
        match self {
            Self::Datagrams(commands) => {
                commands.try_send(Command::Input(Input::Cancel { request })).is_ok()
            }
            Self::Stream(commands) => {
                let input = stream::Input::Cancel { request };
                commands.try_send(link::Command::Input(input)).is_ok()
            }
        }
    }
}

/// See the module. Its task ends with it.
pub(crate) struct Caller {
    way: Way,
    waiting: Waiting,
    last: AtomicU64,
    task: JoinHandle<()>,
}

impl Caller {
    /// One on this socket, where somebody is told of each datagram.
    pub(crate) fn watched(socket: Socket, watch: Watch) -> Result<Self, Error> {
        // Who only asks answers nobody at length.
        Ok(Self::run(Endpoint::new(socket, true)?, Waiting::new(Some(watch))))
    }

    /// One on this socket, whose requests may be protected by OSCORE, or go over DTLS with an
    /// identity and key. `offers_q_block`: and by RFC 9177 where a server knows it, which OSCORE
    /// does without.
    pub(crate) fn start(
        socket: Socket,
        security: Option<Security>,
        psk: Option<&Pair>,
        offers_q_block: bool,
    ) -> Result<Self, Error> {
        let mut endpoint = Endpoint::new(socket, true)?;
        if offers_q_block {
            endpoint = endpoint.offering_q_block()?;
        }
        if let Some(security) = security {
            endpoint = endpoint.secured(security);
        }
        if let Some((identity, key)) = psk {
            endpoint = endpoint.over(|began| Layer::client(began, identity, key))?;
        }
        Ok(Self::run(endpoint, Waiting::new(None)))
    }

    fn run(endpoint: Endpoint, waiting: Waiting) -> Self {
        let (commands, receiver) = channel();
        let open = waiting.clone();
        let task = tokio::spawn(async move {
            let ended: io::Result<()> = endpoint.run(receiver, open.clone()).await;
            open.end(&ended.err().map_or_else(String::new, |error| error.to_string()));
        });
        Self { way: Way::Datagrams(commands), waiting, last: AtomicU64::new(0), task }
    }

    /// One over this stream, or over the WebSocket that it is.
    pub(crate) fn over(stream: Stream, is_websocket: bool) -> Result<Self, Error> {
        let wire = if is_websocket { Wire::websocket() } else { Wire::stream() };
        let link = Link::new(stream, wire, None, false)?;
        let (commands, receiver) = link::channel();
        let waiting = Waiting::new(None);
        let mut user = OverStream { waiting: waiting.clone(), released: String::new() };
        let task = tokio::spawn(async move {
            let why = match link.run(receiver, &mut user).await {
                Ok(end) => end.as_ref().map_or_else(String::new, link::why) + &user.released,
                Err(error) => crate::tls::words(&error),
            };
            user.waiting.end(&why);
        });
        Ok(Self { way: Way::Stream(commands), waiting, last: AtomicU64::new(0), task })
    }

    /// Whether the task still takes requests: the network has not said that nobody is there.
    pub(crate) fn is_open(&self) -> bool {
        match &self.way {
            Way::Datagrams(commands) => !commands.is_closed(),
            Way::Stream(commands) => !commands.is_closed(),
        }
    }

    /// The link carries so many bit/s, as far as it is known.
    pub(crate) async fn set_rate_bps(&self, rate_bps: Option<u64>) {
        // A stream has a clock of its own. Where the task has ended there is nothing to be set.
        if let Way::Datagrams(commands) = &self.way {
            let _ = commands.send(Command::Input(Input::Rate(rate_bps))).await;
        }
    }

    /// When somebody answered last.
    pub(crate) fn heard(&self) -> &Progress {
        &self.waiting.heard
    }

    /// Ends in good order: a server that is observed no more is told so, and sessions are closed.
    pub(crate) async fn close(self) {
        match self.way {
            Way::Datagrams(commands) => drop(commands.send(Command::End).await),
            Way::Stream(commands) => drop(commands.send(link::Command::End).await),
        }
        // Whoever does not hear of it finds out.
        let _ = tokio::time::timeout(MAX_CLOSING, self.task).await;
    }

    /// Asks; the empty code is a ping.
    pub(crate) async fn ask(&self, peer: Peer, content: Content, is_confirmable: bool) -> Call {
        let call = self.call(MAX_WAITING, false);
        if !self.way.ask(call.request, peer, content, is_confirmable).await {
            self.waiting.all().remove(&call.request);
        }
        call
    }

    /// Asks, for an answer whose body is given out as it comes, with a body that may go on:
    /// [`Event::Room`] says for how much of it there is room.
    pub(crate) async fn open(&self, peer: Peer, asked: Asked) -> Call {
        let call = self.call(MAX_PARTS, true);
        if !self.way.open(call.request, peer, asked).await {
            self.waiting.all().remove(&call.request);
        }
        call
    }

    /// One with room for so many events.
    fn call(&self, most: usize, is_flowing: bool) -> Call {
        let request = self.last.fetch_add(1, Ordering::Relaxed);
        let (sender, events) = mpsc::channel(most);
        self.waiting.all().insert(request, sender);
        let (way, waiting) = (self.way.clone(), self.waiting.clone());
        Call { request, events, way, waiting, is_flowing, taken_bytes: 0 }
    }
}

/// What is asked, where bodies are never here as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// With the beginning of its body.
    pub(crate) content: Content,
    pub(crate) is_confirmable: bool,
    /// Whether that goes on.
    pub(crate) has_more: bool,
    /// Bytes of the answer that there is room for at first, at most [`ROOM_BYTES`].
    pub(crate) room_bytes: usize,
}

/// A request that is open; dropped, it is of no use any more.
pub(crate) struct Call {
    request: u64,
    events: mpsc::Receiver<Event>,
    way: Way,
    waiting: Waiting,
    /// Whether bodies are given out as they come.
    is_flowing: bool,
    /// Of parts that were given out, and for which there is room again.
    taken_bytes: usize,
}

impl Call {
    /// What comes next; `None` behind the last. Who asks has taken what came before. A call that
    /// is dropped before it is ready has lost nothing.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        if self.taken_bytes > 0 {
            let (of, bytes) = (Of::Request(self.request), self.taken_bytes);
            self.way.flow(Flow::Room { of, bytes }).await;
            self.taken_bytes = 0;
        }
        let event = self.events.recv().await;
        self.taken_bytes = match &event {
            _ if !self.is_flowing => 0,
            Some(Event::Response(content, false)) => content.payload.len(),
            Some(Event::Part(bytes, false)) => bytes.len(),
            _ => 0,
        };
        event
    }

    /// What resolves when nobody has answered for so long, from now on.
    pub(crate) fn silence(&self, patience: Duration) -> impl Future<Output = ()> + use<> {
        let heard = self.waiting.heard.clone();
        async move {
            // sleep: however long it is since something was heard, it was not waited for before.
            tokio::time::sleep(patience).await;
            heard.stalled(patience).await;
        }
    }

    /// More of the request's body, for which there was room.
    pub(crate) async fn give(&self, bytes: Bytes, is_last: bool) {
        self.way.flow(Flow::Part { of: Of::Request(self.request), bytes, is_last }).await;
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let is_open = self.waiting.all().remove(&self.request).is_some();
        if !is_open || self.way.has_cancelled(self.request) {
            return;
        }
        // A body that nobody takes would keep its place for ever.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (way, request) = (self.way.clone(), self.request);
            runtime.spawn(async move { way.cancel(request).await });
        }
    }
}
