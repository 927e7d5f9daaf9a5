//! Requests of this side: who waits for which response, on an endpoint that only asks.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proto::coap::machine::{Counts, Input, Output, Reason};
use proto::coap::{Code, Content};
use tokio::sync::mpsc;

use super::endpoint::{Application, Command, Endpoint, channel};
use super::socket::{Peer, Socket};
use crate::Error;
use crate::progress::Progress;

/// Responses of an observation that wait for whoever reads them; of more the newest is left out.
const MAX_WAITING: usize = 16;

/// What comes of a request.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A response, and whether none follows.
    Response(Content, bool),
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
            Reason::TooLarge => "the answer is over the limit of 1 MiB",
            Reason::Changed => "the answer changed each time that it was read",
            Reason::Misuse => "the request fits no message",
        };
        why.to_owned()
    }
}

/// Who waits for what, by the number of the request: as many as the machine has requests.
#[derive(Clone)]
struct Waiting {
    senders: Arc<Mutex<BTreeMap<u64, mpsc::Sender<Event>>>>,
    /// When somebody answered last.
    heard: Progress,
}

impl Waiting {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, mpsc::Sender<Event>>> {
        self.senders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, request: u64, event: Event, is_last: bool) {
        let mut all = self.all();
        if let Some(sender) = all.get(&request) {
            // Who does not read notifications misses some.
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
            // Nobody is asked here.
            Output::Request { exchange, .. } => {
                return Some(Input::Respond { exchange, content: Content::new(Code::NOT_FOUND) });
            }
            Output::Suppressed { .. }
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
}

/// See the module. Its task ends with it.
pub(crate) struct Caller {
    commands: mpsc::Sender<Command>,
    waiting: Waiting,
    last: AtomicU64,
}

impl Caller {
    /// One on this socket.
    pub(crate) fn start(socket: Socket) -> Result<Self, Error> {
        // Who only asks answers nobody at length.
        let endpoint = Endpoint::new(socket, true)?;
        let (commands, receiver) = channel();
        let waiting = Waiting { senders: Arc::default(), heard: Progress::new() };
        let open = waiting.clone();
        tokio::spawn(async move {
            let ended: io::Result<()> = endpoint.run(receiver, open.clone()).await;
            open.end(&ended.err().map_or_else(String::new, |error| error.to_string()));
        });
        Ok(Self { commands, waiting, last: AtomicU64::new(0) })
    }

    /// Whether its task has ended, since the network says that nobody is there.
    pub(crate) fn is_closed(&self) -> bool {
        self.commands.is_closed()
    }

    /// When somebody answered last.
    pub(crate) fn heard(&self) -> &Progress {
        &self.waiting.heard
    }

    /// Asks; the empty code is a ping.
    pub(crate) async fn ask(&self, peer: Peer, content: Content, is_confirmable: bool) -> Call {
        let request = self.last.fetch_add(1, Ordering::Relaxed);
        let (sender, events) = mpsc::channel(MAX_WAITING);
        self.waiting.all().insert(request, sender);
        let call = Call {
            request,
            events,
            commands: self.commands.clone(),
            waiting: self.waiting.clone(),
        };
        let input = match content.code {
            Code::EMPTY => Input::Ping { request, peer },
            _ => Input::Request { request, peer, content, is_confirmable },
        };
        if self.commands.send(Command::Input(input)).await.is_err() {
            self.waiting.all().remove(&request);
        }
        call
    }
}

/// A request that is open; dropped, it is of no use any more.
pub(crate) struct Call {
    request: u64,
    events: mpsc::Receiver<Event>,
    commands: mpsc::Sender<Command>,
    waiting: Waiting,
}

impl Call {
    /// What comes next; `None` behind the last.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.waiting.all().remove(&self.request).is_some() {
            // Where the queue is full the request goes on, and what comes of it is for nobody.
            let input = Input::Cancel { request: self.request };
            let _ = self.commands.try_send(Command::Input(input));
        }
    }
}
