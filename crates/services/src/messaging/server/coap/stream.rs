//! Other nodes over CoAP and TCP (RFC 8323): a connection to each that something goes to, kept for
//! a while, and those that come. There are no copies and no blocks but of what is very long.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes, BytesMut};
use proto::coap::stream::{Connection, Framing, Input, Output, Settings};
use proto::coap::{Code, Content};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::super::owner::Handle;
use super::super::{ACCEPT_PAUSE, MAX_CONNECTIONS, ended};
use super::{Answered, Call, LONG_BYTES, Lost, MAX_CALLS, Time, answer, lost, outcome, posted};
use crate::addresses::{Addresses, MAX_OF_ADDRESS};
use crate::messaging::forms::Form;
use crate::messaging::machine::Sent;
use crate::messaging::message::Precedence;

/// How long a connection is kept that nothing goes over; as of those of HTTP.
const IDLE_LIFE: Duration = Duration::from_secs(30);
/// How long one that came may be idle: who dialled it ends it first.
const IDLE_PATIENCE: Duration = Duration::from_secs(120);
/// How often a connection that does not come about is begun anew.
const CONNECT_INTERVAL: Duration = Duration::from_secs(15);
/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;
/// Bytes that wait to be written to who takes none: then the connection is given up.
const MAX_QUEUED_BYTES: usize = 16 << 20;

/// Connections to nodes, by address.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Streams {
    // bound: addresses are those of the configuration.
    to: Arc<Mutex<BTreeMap<SocketAddr, mpsc::Sender<Call>>>>,
}

impl Streams {
    /// Gives bytes to a node; what came of it.
    pub(in super::super) async fn deliver(
        &self,
        node: &str,
        peer: SocketAddr,
        path: &str,
        (form, bytes): (Form, Bytes),
        time: Time,
    ) -> Sent {
        let is_long = bytes.len() > LONG_BYTES;
        let until = Instant::now() + time.within;
        // A connection may end just as it is given something.
        for _ in 0..2 {
            let (tell, answer) = oneshot::channel();
            let content = posted(path, form, bytes.clone());
            let within = until.saturating_duration_since(Instant::now());
            let time = Time { within, ..time };
            let precedence = Precedence::Routine;
            let call = Call { peer, content, is_confirmable: true, precedence, time, tell };
            if self.way(peer).send(call).await.is_err() {
                continue;
            }
            match answer.await {
                Ok(Ok(content)) => return outcome(node, &content),
                // Something long took too long, which says nothing of the node.
                Ok(Err(lost)) => return lost.judged(!is_long && !time.is_cut),
                Err(_) => {}
            }
        }
        Sent::Failed("the connection ended".to_owned())
    }

    /// The way to the connection to a node, dialled where there is none.
    fn way(&self, peer: SocketAddr) -> mpsc::Sender<Call> {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(way) = to.get(&peer).filter(|way| !way.is_closed()) {
            return way.clone();
        }
        let (way, calls) = mpsc::channel(MAX_CALLS);
        to.insert(peer, way.clone());
        tokio::spawn(dial(peer, calls));
        way
    }
}

/// Connects to a node with the first call, and serves calls until the connection ends.
async fn dial(peer: SocketAddr, mut calls: mpsc::Receiver<Call>) {
    let Some(first) = calls.recv().await else { return };
    let until = |call: &Call| Instant::now() + call.time.within;
    // bound: as many as the machine has requests at once to one node.
    let mut held = vec![(until(&first), first)];
    let mut connecting = std::pin::pin!(TcpStream::connect(peer));
    let mut renewed_at = Instant::now();
    let why = loop {
        let Some(due) = held.iter().map(|(until, _)| *until).min() else {
            // Whoever comes next dials anew.
            return;
        };
        tokio::select! {
            connected = connecting.as_mut() => match connected.map(|it| Link::new(it, IDLE_LIFE)) {
                Ok(Ok(mut link)) => {
                    for (until, mut call) in held {
                        call.time.within = until.saturating_duration_since(Instant::now());
                        link.call(call);
                    }
                    return link.run(None, Some(calls)).await;
                }
                Ok(Err(line)) => break line,
                Err(error) => break format!("cannot connect to {peer}: {error}"),
            },
            Some(call) = calls.recv() => held.push((until(&call), call)),
            // The kernel asks ever more seldom; the link may be back long since.
            () = tokio::time::sleep_until((renewed_at + CONNECT_INTERVAL).into()) => {
                renewed_at = Instant::now();
                connecting.set(TcpStream::connect(peer));
            }
            () = tokio::time::sleep_until(due.into()) => {
                let now = Instant::now();
                let whole = held.iter().find(|(until, call)| *until <= now && !call.time.is_cut);
                if let Some((_, call)) = whole {
                    break format!("no connection within {} ms", call.time.within.as_millis());
                }
                // Others have more time.
                for (_, call) in held.extract_if(.., |(until, _)| *until <= now) {
                    let _ = call.tell.send(Err(Lost::Late));
                }
            }
        }
    };
    calls.close();
    for (_, call) in held {
        let _ = call.tell.send(Err(Lost::Broken(why.clone())));
    }
    // Others that waited for the same connection.
    while let Some(call) = calls.recv().await {
        let _ = call.tell.send(Err(Lost::Broken(why.clone())));
    }
}

/// Serves nodes that connect until it is to stop.
pub(in super::super) async fn serve(
    listener: TcpListener,
    handle: Handle,
    mut stopping: watch::Receiver<bool>,
) {
    let seats = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut addresses = Addresses::default();
    loop {
        let Ok(seat) = seats.clone().acquire_owned().await else { return };
        tokio::select! {
            true = ended(&mut stopping) => return,
            accepted = listener.accept() => match accepted {
                Ok((_, peer)) if !addresses.take(peer.ip()) => {
                    tracing::warn!(%peer, "closed: its address has {MAX_OF_ADDRESS} connections");
                }
                Ok((stream, peer)) => {
                    let handle = handle.clone();
                    connections.spawn(async move {
                        if let Ok(link) = Link::new(stream, IDLE_PATIENCE) {
                            link.run(Some(handle), None).await;
                        }
                        drop(seat);
                        peer.ip()
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(over) = connections.join_next(), if !connections.is_empty() => {
                if let Ok(address) = over {
                    addresses.give_back(address);
                }
            }
        }
    }
}

/// A connection and what waits on it.
struct Link {
    stream: TcpStream,
    connection: Connection,
    began: Instant,
    wake_at: Option<Duration>,
    queue: BytesMut,
    /// Who waits for answers, until when, and whether the time is cut.
    waiting: BTreeMap<u64, (Duration, bool, oneshot::Sender<Answered>)>,
    last_request: u64,
    /// Since when nothing has waited.
    idle_since: Duration,
    idle_life: Duration,
    is_over: bool,
}

impl Link {
    fn new(stream: TcpStream, idle_life: Duration) -> Result<Self, String> {
        let _ = stream.set_nodelay(true);
        let mut bytes = [0; 16];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|_| "the system has no random numbers".to_owned())?;
        let (high, low) = bytes.split_at(8);
        let word = |half: &[u8]| half.iter().fold(0, |word: u64, one| word << 8 | u64::from(*one));
        let seed = [word(high), word(low)];
        let settings = Settings { seed, framing: Framing::Stream, idle: None };
        Ok(Self {
            stream,
            connection: Connection::new(&settings),
            began: Instant::now(),
            wake_at: None,
            queue: BytesMut::new(),
            waiting: BTreeMap::new(),
            last_request: 0,
            idle_since: Duration::ZERO,
            idle_life,
            is_over: false,
        })
    }

    /// Until it ends, is idle for too long, or a call has no answer in all the time that calls
    /// have: then what is in it would only hold up what follows. Without a handle requests of the
    /// peer find nothing.
    async fn run(mut self, handle: Option<Handle>, mut calls: Option<mpsc::Receiver<Call>>) {
        let (answered, mut answers) = mpsc::channel::<(u64, Content)>(MAX_CALLS);
        let mut room = BytesMut::with_capacity(READ_BYTES);
        let serve = |exchange, content: Content| {
            let (handle, answered) = (handle.clone(), answered.clone());
            tokio::spawn(async move {
                let content = match &handle {
                    // Who has connected has his address.
                    Some(handle) => answer(handle, &content, usize::MAX).await,
                    None => Content::new(Code::NOT_FOUND),
                };
                let _ = answered.send((exchange, content)).await;
            });
        };
        self.input(Input::Wake, &serve);
        while !self.is_over {
            let due = self.began + self.due();
            let has_bytes = !self.queue.is_empty();
            let call = async {
                match &mut calls {
                    Some(calls) => calls.recv().await,
                    None => std::future::pending().await,
                }
            };
            let (mut reader, mut writer) = self.stream.split();
            tokio::select! {
                read = reader.read_buf(&mut room) => match read {
                    Ok(0) | Err(_) => self.is_over = true,
                    Ok(_) => {
                        let bytes = room.split().freeze();
                        room.reserve(READ_BYTES);
                        self.input(Input::Bytes(bytes), &serve);
                    }
                },
                written = writer.write(&self.queue), if has_bytes => match written {
                    Ok(count) => self.queue.advance(count),
                    Err(_) => self.is_over = true,
                },
                Some((exchange, content)) = answers.recv() => {
                    self.input(Input::Respond { exchange, content }, &serve);
                }
                call = call => match call {
                    Some(call) => {
                        self.call(call);
                        self.input(Input::Wake, &serve);
                    }
                    None => self.is_over = true,
                },
                () = tokio::time::sleep_until(due.into()) => self.expire(&serve),
            }
        }
        let why = "the connection ended";
        for (_, _, tell) in self.waiting.into_values() {
            let _ = tell.send(Err(Lost::Broken(why.to_owned())));
        }
    }

    fn due(&self) -> Duration {
        let waits = self.waiting.values().map(|(until, ..)| *until);
        let idle = self.waiting.is_empty().then(|| self.idle_since + self.idle_life);
        let due = waits.chain(self.wake_at).chain(idle).min();
        due.unwrap_or(self.idle_since + self.idle_life)
    }

    fn call(&mut self, call: Call) {
        self.last_request += 1;
        let request = self.last_request;
        let now = self.began.elapsed();
        let Time { within, is_cut } = call.time;
        self.waiting.insert(request, (now + within, is_cut, call.tell));
        self.connection.handle_input(now, Input::Request { request, content: call.content });
    }

    fn expire(&mut self, serve: &impl Fn(u64, Content)) {
        let now = self.began.elapsed();
        let over: Vec<_> = self.waiting.extract_if(.., |_, (until, ..)| *until <= now).collect();
        let is_late = over.iter().any(|(_, (_, is_cut, _))| !is_cut);
        for (request, (_, _, tell)) in over {
            let _ = tell.send(Err(Lost::Late));
            self.input(Input::Cancel { request }, serve);
        }
        let is_idle = self.waiting.is_empty() && now >= self.idle_since + self.idle_life;
        self.is_over |= is_late || is_idle;
        self.input(Input::Wake, serve);
    }

    fn input(&mut self, input: Input, serve: &impl Fn(u64, Content)) {
        let now = self.began.elapsed();
        if !matches!(input, Input::Wake) {
            self.idle_since = now;
        }
        self.wake_at = self.wake_at.filter(|at| *at > now);
        self.connection.handle_input(now, input);
        while let Some(output) = self.connection.poll_output() {
            match output {
                Output::Transmit(bytes) => self.queue.extend_from_slice(&bytes),
                Output::Request { exchange, content } => serve(exchange, content),
                Output::Response { request, content, .. } => self.tell(request, Ok(content)),
                Output::Failed { request, reason } => self.tell(request, Err(lost(reason))),
                // It takes no further request; who has one dials another.
                Output::Released { .. } | Output::Closed(_) => self.is_over = true,
                // Bodies are whole here.
                Output::Flow(_)
                | Output::Opened { .. }
                | Output::Suppressed { .. }
                | Output::Alive { .. }
                | Output::Ended { .. } => {}
                Output::WakeAt(at) => self.wake_at = Some(at),
            }
        }
        self.is_over |= self.queue.len() > MAX_QUEUED_BYTES;
    }

    fn tell(&mut self, request: u64, answer: Answered) {
        if let Some((.., tell)) = self.waiting.remove(&request) {
            let _ = tell.send(answer);
        }
    }
}
