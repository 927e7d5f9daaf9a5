//! The socket of connectionless WSP and the machine behind it: one task owns both.
//!
//! Who sends a datagram is not known: an address can be made up. So clients of WSP have places of
//! their own, which edges and clients of HTTP do not need, and of these no source has more than are
//! free.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use proto::wsp::packet::{self, Pdu};
use proto::wsp::server::{Input, Output, Server as Machine};
use record::event::Fact;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinError, JoinSet};

use super::exchange::Exchanges;
use crate::parting::Parting;
use crate::rarely::Rarely;
use crate::seats::Source;
use crate::{Error, Handed, fault, run, socket};

/// Requests that are carried out at once: each may hold a datagram and the document that it is in
/// XML, 300 kB.
const MAX_AT_WORK: usize = 128;
/// Most bytes of a datagram over UDP.
const MAX_DATAGRAM_BYTES: usize = 65_535;
/// Pause after the socket could not be read.
const RECEIVE_PAUSE: Duration = Duration::from_millis(10);
/// How metrics call the bound on requests at once, and that on requests that are known.
const AT_WORK: &str = "wsp_requests";
const KNOWN: &str = "wsp_known_requests";

/// A socket that nobody reads yet.
pub(crate) struct Listener {
    socket: UdpSocket,
    local: SocketAddr,
}

impl Listener {
    /// Binds one where an address is given; a port in use is the caller's error.
    pub(crate) async fn bind(
        handed: &mut Handed,
        address: Option<SocketAddr>,
    ) -> Result<Option<Self>, Error> {
        let Some(address) = address else { return Ok(None) };
        let socket = run::take_datagrams(handed, "wsp", address).await?;
        let local = socket.local_addr().map_err(Error::system("ask for the bound address"))?;
        // A reply has up to 64 kB: WSP without sessions knows no other way to cut it.
        socket::let_fragment(&socket).map_err(Error::system("set up the socket for WSP"))?;
        Ok(Some(Self { socket, local }))
    }

    /// Its address.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Starts a task that serves until the side ends, and then what is open; `alive` is held until
    /// its end.
    pub(crate) fn start(self, exchanges: Exchanges, parting: Parting, alive: mpsc::Sender<()>) {
        let server = Server {
            socket: Some(self.socket),
            local: self.local,
            machine: Machine::new(),
            exchanges: Arc::new(exchanges),
            work: JoinSet::new(),
            open: BTreeMap::new(),
            epoch: Instant::now(),
            wake_at: None,
            refused: 0,
            rare: Rare::default(),
        };
        let serving = async move {
            let _alive = alive;
            server.run(parting).await;
        };
        fault::spawn_core("wsp", serving);
    }
}

/// Lines of the log that strangers can cause.
#[derive(Default)]
struct Rare {
    ignored: Rarely,
    refused: Rarely,
}

/// A request that is carried out.
struct Open {
    source: Source,
    task: AbortHandle,
    /// It has one of [`MAX_AT_WORK`] places.
    place: bool,
}

/// What the task waited for.
enum Event {
    /// The side ends; `false`: it has done so without a word.
    Ends(bool),
    Datagram(io::Result<(usize, SocketAddr)>),
    Done(Result<(u64, Bytes), JoinError>),
    Due,
}

struct Server {
    /// None: the side ends, and nothing new is taken.
    socket: Option<UdpSocket>,
    local: SocketAddr,
    machine: Machine,
    exchanges: Arc<Exchanges>,
    work: JoinSet<(u64, Bytes)>,
    /// By the machine's number, which has a bound on how many there are.
    open: BTreeMap<u64, Open>,
    epoch: Instant,
    wake_at: Option<Duration>,
    /// Of the machine, as far as they are counted.
    refused: u64,
    rare: Rare,
}

impl Server {
    async fn run(mut self, mut parting: Parting) {
        let mut buffer = vec![0; MAX_DATAGRAM_BYTES];
        while self.socket.is_some() || !self.open.is_empty() {
            match self.event(&mut parting, &mut buffer).await {
                Event::Ends(true) => self.socket = None,
                Event::Ends(false) => return,
                Event::Datagram(Ok((len, peer))) => {
                    let datagram = buffer.get(..len).unwrap_or_default();
                    self.datagram(peer, Bytes::copy_from_slice(datagram)).await;
                }
                // sleep: what the host says of its memory passes, but not at once.
                Event::Datagram(Err(_)) => tokio::time::sleep(RECEIVE_PAUSE).await,
                Event::Done(done) => self.done(done).await,
                Event::Due => {
                    self.wake_at = None;
                    self.handle(Input::Wake).await;
                }
            }
        }
    }

    async fn event(&mut self, parting: &mut Parting, buffer: &mut [u8]) -> Event {
        let due = self.wake_at.map(|at| tokio::time::Instant::from_std(self.epoch + at));
        let socket = self.socket.as_ref();
        let receive = async {
            match socket {
                Some(socket) => socket.recv_from(buffer).await,
                None => std::future::pending().await,
            }
        };
        let wake = async {
            match due {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            said = parting.said(), if socket.is_some() => Event::Ends(said.is_some()),
            Some(done) = self.work.join_next() => Event::Done(done),
            () = wake => Event::Due,
            received = receive => Event::Datagram(received),
        }
    }

    async fn datagram(&mut self, peer: SocketAddr, datagram: Bytes) {
        if !matches!(packet::decode(&datagram), Ok((_, Pdu::Request { .. }))) {
            let (what, reason) = ("wsp_datagram", "it is no request of connectionless WSP");
            let fact = Fact::Ignored { what: what.to_owned(), reason: reason.to_owned() };
            self.exchanges.metrics().observe(&fact);
            if let Some(times) = self.rare.ignored.note(Instant::now()) {
                tracing::info!(%peer, times, "a datagram is left out: {reason}");
            }
            return;
        }
        self.handle(Input::Datagram { peer, datagram }).await;
        let refused = self.machine.refused_requests();
        if refused > self.refused {
            self.refused = refused;
            self.exchanges.metrics().count_limit(KNOWN);
            if let Some(times) = self.rare.refused.note(Instant::now()) {
                let why = "a request is not taken: its client has too many that are known";
                tracing::warn!(%peer, times, "{why}");
            }
        }
    }

    /// A request has been carried out, or its task has ended by a fault of ours.
    async fn done(&mut self, done: Result<(u64, Bytes), JoinError>) {
        let (id, pdu) = match done {
            Ok(done) => done,
            Err(error) => {
                let is_it = |(_, open): &(&u64, &Open)| open.task.id() == error.id();
                let Some((id, _)) = self.open.iter().find(is_it) else { return };
                // The machine has a reply in place of what is none.
                (*id, Bytes::new())
            }
        };
        self.open.remove(&id);
        self.handle(Input::Reply { id, pdu }).await;
    }

    /// Hands an input in and does what comes out.
    async fn handle(&mut self, input: Input) {
        let is_copy = matches!(input, Input::Datagram { .. });
        self.machine.handle_input(self.epoch.elapsed(), input);
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Request { id, peer, pdu } => self.begin(id, peer, pdu),
                Output::Transmit { peer, datagram } => {
                    if is_copy {
                        self.exchanges.metrics().count_wsp_repeat();
                    }
                    self.transmit(peer, &datagram).await;
                }
                Output::Expired { id } => {
                    if let Some(open) = self.open.remove(&id) {
                        open.task.abort();
                    }
                }
                Output::WakeAt(at) => self.wake_at = Some(at),
            }
        }
    }

    fn begin(&mut self, id: u64, peer: SocketAddr, pdu: Bytes) {
        let source = Source::of(peer.ip());
        let at_work = self.open.values().filter(|open| open.place);
        let (mut all, mut own) = (0, 0);
        for open in at_work {
            all += 1;
            own += usize::from(open.source == source);
        }
        // Who has as many as are free gets no more: alone half of all, and others find some.
        let place = own < MAX_AT_WORK.saturating_sub(all);
        if !place {
            self.exchanges.metrics().count_limit(AT_WORK);
        }
        self.exchanges.metrics().count_wsp_request();
        let answering = Arc::clone(&self.exchanges).answer(peer.ip(), pdu, place);
        let task = self.work.spawn(async move { (id, answering.await) });
        self.open.insert(id, Open { source, task, place });
    }

    /// What cannot be sent is as good as lost: its client asks again.
    async fn transmit(&self, peer: SocketAddr, datagram: &[u8]) {
        let sent = match &self.socket {
            Some(socket) => socket.send_to(datagram, peer).await,
            None => self.send_late(peer, datagram).await,
        };
        if let Err(error) = sent {
            tracing::debug!(%peer, %error, "a reply of WSP did not leave");
        }
    }

    /// Sends from the same port while the next process has it: by a socket that hears this peer
    /// alone, and for a moment.
    async fn send_late(&self, peer: SocketAddr, datagram: &[u8]) -> io::Result<usize> {
        let socket = socket::datagrams(self.local)?;
        socket.connect(&peer.into())?;
        socket::let_fragment(&socket)?;
        UdpSocket::from_std(socket.into())?.send(datagram).await
    }
}
