//! The task that owns the client's machine and its socket: requests, datagrams and the clock go in,
//! datagrams and replies come out.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use proto::wsp::client::{Client, Failure, Input, Output};
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot};

use super::super::line::Carrying;
use crate::socket;

/// Requests that wait for the task: who has one more waits.
const MAX_COMMANDS: usize = 64;
/// Most bytes of a datagram over UDP.
const MAX_DATAGRAM_BYTES: usize = 65_535;

/// Why no reply came.
#[derive(Clone, Debug)]
pub(super) enum Failed {
    /// What the machine says.
    Machine(Failure),
    /// What the network says.
    Network(String),
    /// The edge waits no longer.
    Late(Duration),
}

type Reply = oneshot::Sender<Result<Bytes, Failed>>;

enum Command {
    Ask { key: u64, pdu: Bytes, again: bool, reply: Reply },
    Cancel { key: u64 },
}

/// Who is told of each datagram: whether it was sent, and its bytes.
pub(super) type Watch = Box<dyn Fn(bool, usize) + Send + Sync>;

/// See the module. The task ends with it, or with what the network says of the gateway.
pub(super) struct Caller {
    commands: mpsc::Sender<Command>,
    last: AtomicU64,
}

impl Carrying for Caller {
    fn is_open(&self) -> bool {
        !self.commands.is_closed()
    }
}

impl Caller {
    /// Opens a socket towards the gateway.
    pub(super) async fn open(
        peer: SocketAddr,
        rate_bps: Option<u64>,
        watch: Watch,
    ) -> io::Result<Self> {
        let any = match peer {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let socket = UdpSocket::bind(any).await?;
        socket.connect(peer).await?;
        socket::let_fragment(&socket)?;
        let seed = crate::random_instance().map_err(io::Error::other)?;
        let (commands, receiver) = mpsc::channel(MAX_COMMANDS);
        let task = Task {
            socket,
            peer,
            machine: Client::new(seed),
            epoch: Instant::now(),
            wake_at: None,
            waiting: BTreeMap::new(),
            watch,
        };
        tokio::spawn(task.run(rate_bps, receiver));
        Ok(Self { commands, last: AtomicU64::new(0) })
    }

    /// Sends the PDU of a request, and copies of it where these may leave. Dropped, it asks no
    /// more.
    pub(super) async fn ask(&self, pdu: Bytes, again: bool) -> Result<Bytes, Failed> {
        let key = self.last.fetch_add(1, Ordering::Relaxed);
        let (reply, replied) = oneshot::channel();
        let gone = || Failed::Network("the line broke".to_owned());
        let command = Command::Ask { key, pdu, again, reply };
        self.commands.send(command).await.map_err(|_| gone())?;
        let mut cancel = Cancel { key, commands: &self.commands, is_open: true };
        let result = replied.await;
        cancel.is_open = false;
        result.unwrap_or_else(|_| Err(gone()))
    }
}

/// Says that nobody waits for a reply any more.
struct Cancel<'a> {
    key: u64,
    commands: &'a mpsc::Sender<Command>,
    is_open: bool,
}

impl Drop for Cancel<'_> {
    fn drop(&mut self) {
        if self.is_open {
            // Where the queue is full the request goes on, and its reply is for nobody.
            let _ = self.commands.try_send(Command::Cancel { key: self.key });
        }
    }
}

struct Task {
    socket: UdpSocket,
    peer: SocketAddr,
    machine: Client,
    epoch: Instant,
    wake_at: Option<Duration>,
    /// As many as the machine has requests.
    waiting: BTreeMap<u64, Reply>,
    watch: Watch,
}

impl Task {
    async fn run(mut self, rate_bps: Option<u64>, mut commands: mpsc::Receiver<Command>) {
        let result = match self.handle(Input::Rate(rate_bps)).await {
            Ok(()) => self.serve(&mut commands).await,
            Err(error) => Err(error),
        };
        let Err(error) = result else { return };
        // What comes from here on finds the line closed.
        commands.close();
        let failed = Failed::Network(error.to_string());
        for reply in std::mem::take(&mut self.waiting).into_values() {
            let _ = reply.send(Err(failed.clone()));
        }
        while let Some(command) = commands.recv().await {
            if let Command::Ask { reply, .. } = command {
                let _ = reply.send(Err(failed.clone()));
            }
        }
    }

    /// Until nobody has anything to ask. Errors: what the network says of the gateway.
    async fn serve(&mut self, commands: &mut mpsc::Receiver<Command>) -> io::Result<()> {
        let mut buffer = vec![0; MAX_DATAGRAM_BYTES];
        loop {
            let due = self.wake_at.map(|at| (self.epoch + at).into());
            let wake = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let input = tokio::select! {
                received = self.socket.recv(&mut buffer) => {
                    let len = received?;
                    (self.watch)(false, len);
                    let datagram = Bytes::copy_from_slice(buffer.get(..len).unwrap_or_default());
                    Input::Datagram { peer: self.peer, datagram }
                }
                command = commands.recv() => match command {
                    None => return Ok(()),
                    Some(Command::Cancel { key }) => {
                        self.waiting.remove(&key);
                        Input::Cancel { key }
                    }
                    Some(Command::Ask { key, pdu, again, reply }) => {
                        self.waiting.insert(key, reply);
                        Input::Request { key, peer: self.peer, pdu, again }
                    }
                },
                () = wake => {
                    self.wake_at = None;
                    Input::Wake
                }
            };
            self.handle(input).await?;
        }
    }

    async fn handle(&mut self, input: Input) -> io::Result<()> {
        self.machine.handle_input(self.epoch.elapsed(), input);
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Transmit { datagram, .. } => {
                    (self.watch)(true, datagram.len());
                    self.socket.send(&datagram).await?;
                }
                Output::Reply { key, pdu } => self.tell(key, Ok(pdu)),
                Output::Failed { key, failure } => self.tell(key, Err(Failed::Machine(failure))),
                // Nobody asked for what a gateway pushes.
                Output::Push { .. } => {}
                Output::WakeAt(at) => self.wake_at = Some(at),
            }
        }
        Ok(())
    }

    fn tell(&mut self, key: u64, result: Result<Bytes, Failed>) {
        if let Some(reply) = self.waiting.remove(&key) {
            let _ = reply.send(result);
        }
    }
}
