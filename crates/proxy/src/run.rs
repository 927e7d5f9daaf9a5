//! What both sides do alike: binding, and ending in order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use relay::Input;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::actor::{Handle, Message};
use crate::metrics::Metrics;
use crate::{Error, Handed, socket};

/// How long it then waits for carriers to end while nothing moves on any of them.
const CARRIER_PATIENCE: Duration = Duration::from_secs(5);
/// The same though something moves: what carrier and kernel hold takes half a minute at 9.6 kbit/s.
const LAST_PATIENCE: Duration = Duration::from_secs(60);
/// Pause after an accept failed for want of descriptors or memory: at once it would fail again.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a port may be in use by a process that was told to end in this moment: it closes its
/// listeners first of all.
const PORT_PATIENCE: Duration = Duration::from_secs(2);
/// Pause between two looks at such a port.
const PORT_PAUSE: Duration = Duration::from_millis(20);

/// Binds a listener, or takes the one that was handed over; a port that stays in use is the
/// caller's error.
pub(crate) async fn bind(
    handed: &mut Handed,
    name: &str,
    address: SocketAddr,
) -> Result<TcpListener, Error> {
    if let Some(listener) = handed.listener(name, address) {
        return TcpListener::from_std(listener).map_err(taking(name));
    }
    bind_by(name, address, async || TcpListener::bind(address).await).await
}

/// The same for datagrams, where one socket is enough.
pub(crate) async fn take_datagrams(
    handed: &mut Handed,
    name: &str,
    address: SocketAddr,
) -> Result<UdpSocket, Error> {
    match handed.datagrams(name, address) {
        Some(socket) => UdpSocket::from_std(socket).map_err(taking(name)),
        None => bind_datagrams(name, address).await,
    }
}

fn taking(name: &str) -> impl FnOnce(io::Error) -> Error {
    Error::system(format!("take the socket that was handed over ({name})"))
}

/// Binds a socket for datagrams that others of this process and of its user may have beside it.
pub(crate) async fn bind_datagrams(name: &str, address: SocketAddr) -> Result<UdpSocket, Error> {
    bind_by(name, address, async || UdpSocket::from_std(socket::datagrams(address)?.into())).await
}

async fn bind_by<T>(
    name: &str,
    address: SocketAddr,
    bind: impl AsyncFn() -> io::Result<T>,
) -> Result<T, Error> {
    let until = Instant::now() + PORT_PATIENCE;
    let in_use = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
    let bound = loop {
        match bind().await {
            Err(error) if in_use(&error) && Instant::now() < until => {
                // sleep: nobody is told when a port is free.
                tokio::time::sleep(PORT_PAUSE).await;
            }
            bound => break bound,
        }
    };
    bound.map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::AddrInUse => "another process has it: name another port, or 0",
            io::ErrorKind::PermissionDenied => "ports below 1024 need privileges",
            _ => "name an address of this machine",
        };
        Error::Caller(format!("cannot listen on {address} ({name}): {error}: {remedy}"))
    })
}

/// The tasks of a side that runs.
pub(crate) struct Running {
    pub(crate) actor: Option<(JoinHandle<()>, Handle)>,
    /// Accepts clients or carriers; its listeners go with it.
    pub(crate) accepting: JoinHandle<()>,
    /// Answers clients of CoAP, and ends by itself when that is asked for.
    pub(crate) coap: Option<JoinHandle<()>>,
    /// The admin interface, with its listener.
    pub(crate) admin: Option<JoinHandle<()>>,
    /// Looks whether the peers' keys have changed.
    pub(crate) watching: JoinHandle<()>,
    /// Ends when all local connections have.
    pub(crate) connections: mpsc::Receiver<()>,
    /// Ends when all carriers have.
    pub(crate) carriers: mpsc::Receiver<()>,
    pub(crate) metrics: Arc<Metrics>,
    /// How long a shutdown waits for open exchanges.
    pub(crate) drain_timeout: Duration,
}

impl Running {
    /// Runs until `stop`, then lets what is open finish; `kill` ends everything at once.
    pub(crate) async fn until(
        mut self,
        stop: impl Future<Output = ()>,
        kill: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let mut kill = std::pin::pin!(kill);
        let broken = async {
            match &mut self.actor {
                Some((actor, _)) => drop(actor.await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop => {}
            () = &mut kill => return Ok(()),
            // It accepts as long as there is a side.
            _ = &mut self.accepting => return Err(over("accept connections")),
            () = broken => return Err(over("run the relay")),
        }
        tracing::info!("shutting down: finishing what is open");
        tokio::select! {
            () = self.finish() => {}
            () = kill => tracing::warn!("shutting down at once"),
        }
        Ok(())
    }

    /// Closes the listeners: whoever runs next may have their ports from here on.
    async fn close_listeners(&mut self) {
        self.accepting.abort();
        let _ = (&mut self.accepting).await;
        if let Some(admin) = &mut self.admin {
            admin.abort();
            let _ = admin.await;
        }
    }

    async fn finish(&mut self) {
        self.close_listeners().await;
        let done = async {
            if let Some((actor, handle)) = &mut self.actor {
                handle.send(Message::Input(Input::Shutdown)).await;
                let _ = tokio::join!(self.connections.recv(), actor);
            } else {
                self.connections.recv().await;
            }
        };
        if tokio::time::timeout(self.drain_timeout, done).await.is_err() {
            let waited = self.drain_timeout.as_secs_f64();
            tracing::warn!("giving up what is still open after {waited} s (drain_timeout)");
            if let Some((actor, _)) = &self.actor {
                actor.abort();
            }
        }
        let _ = tokio::time::timeout(LAST_PATIENCE, self.last_bytes()).await;
    }

    /// Waits for carriers to end, as long as their last bytes get on.
    async fn last_bytes(&mut self) {
        let mut before = self.metrics.under_way(None);
        while tokio::time::timeout(CARRIER_PATIENCE, self.carriers.recv()).await.is_err() {
            let now = self.metrics.under_way(None);
            if now == before {
                return;
            }
            before = now;
        }
    }
}

fn over(doing: &str) -> Error {
    let source = io::Error::other("its task ended, which is a fault of ours");
    Error::System { doing: doing.to_owned(), source }
}

/// However a side ends, it takes its tasks along.
impl Drop for Running {
    fn drop(&mut self) {
        self.accepting.abort();
        self.watching.abort();
        self.admin.iter().chain(&self.coap).for_each(JoinHandle::abort);
        if let Some((actor, _)) = &self.actor {
            actor.abort();
        }
    }
}
