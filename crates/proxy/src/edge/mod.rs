//! The client side: an HTTP proxy whose requests cross the link in one carrier, or go directly.

mod answer;
mod exchange;
mod target;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use relay::{CarrierId, Head};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};

use crate::actor::{self, Actor, Surroundings};
use crate::admin::{self, Admin};
use crate::carrier::Carriers;
use crate::config::EdgeConfig;
use crate::mailbox::Port;
use crate::metrics::Metrics;
use crate::origin::{Client, Reach, SystemResolver};
use crate::run::{self, Running};
use crate::store::Store;
use crate::{Error, pseudonym};

use exchange::Exchanges;

/// Largest head of a request, in bytes; as much as may cross the link.
const MAX_HEAD_BYTES: usize = proto::bhttp::MAX_HEAD_BYTES;
/// Most fields of a request.
const MAX_FIELDS: usize = proto::bhttp::MAX_FIELDS;
/// How long a client may take to send a head, or let its connection idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// Idle time before the kernel asks whether a client is still there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);

/// An edge that is bound and does not serve yet.
pub struct Edge {
    config: EdgeConfig,
    listener: TcpListener,
    admin: Option<TcpListener>,
    local: SocketAddr,
    local_admin: Option<SocketAddr>,
    store: Option<Store>,
}

impl Edge {
    /// Opens the store and binds the listeners; a port in use is the caller's error.
    pub async fn bind(config: EdgeConfig) -> Result<Self, Error> {
        let listener = run::bind("listen", config.listen).await?;
        let admin = match config.admin {
            Some(address) => Some(run::bind("admin", address).await?),
            None => None,
        };
        let address = |listener: &TcpListener| {
            listener.local_addr().map_err(Error::system("ask for the bound address"))
        };
        let (local, local_admin) = (address(&listener)?, admin.as_ref().map(address).transpose()?);
        let policy = config.relay.encoding.name();
        let store = config.store.as_ref().map(|place| Store::open(place, policy)).transpose()?;
        Ok(Self { config, listener, admin, local, local_admin, store })
    }

    /// Where clients may connect.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Where metrics and health are.
    #[must_use]
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.local_admin
    }

    /// Serves until `stop`, then finishes what is open; `kill` ends at once.
    pub async fn run(
        self,
        stop: impl Future<Output = ()>,
        kill: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let config = self.config;
        let metrics = Arc::new(Metrics::default());
        let name = pseudonym(config.relay.instance);
        let (mut actor, mut pair) = (None, None);
        let (_, mut carriers) = mpsc::channel(1);
        if let Some(gateway) = config.gateway {
            let timeout = config.relay.connect_timeout;
            let (handle, inbox) = actor::channel();
            let (dialler, ended) = Carriers::new(
                config.security,
                config.congestion,
                timeout,
                handle.clone(),
                Arc::clone(&metrics),
            )?;
            let new = Actor::new(
                config.relay,
                config.codec_threads,
                Arc::clone(&metrics),
                self.store,
                Dialling { carriers: dialler, gateway },
                (handle.clone(), inbox),
            );
            carriers = ended;
            actor = Some((tokio::spawn(new.run()), handle.clone()));
            pair = Some(handle);
        }
        if let Some(listener) = self.admin {
            let (needs_carrier, handle) = (pair.is_some(), pair.clone());
            let admin = Admin { metrics: Arc::clone(&metrics), handle, needs_carrier };
            tokio::spawn(admin::serve(listener, admin));
        }
        let reach = Reach::new(Arc::new(SystemResolver), None);
        let exchanges = Arc::new(Exchanges {
            pair,
            direct: Client::new(reach, config.response_timeout),
            upstream: config.upstream,
            fallback: config.fallback,
            services: config.services,
            pseudonym: name,
            response_timeout: config.response_timeout,
            metrics,
        });
        let (closing, closed) = watch::channel(false);
        let (alive, connections) = mpsc::channel(1);
        let front = Front { exchanges, closed, alive };
        let running = Running {
            accepting: tokio::spawn(accept(self.listener, front, config.max_connections)),
            actor,
            connections,
            carriers,
        };
        let stop = async {
            stop.await;
            // Connections that idle close at once, others behind their answer.
            let _ = closing.send(true);
        };
        running.until(stop, kill).await
    }
}

/// What each client's connection needs.
#[derive(Clone)]
struct Front {
    exchanges: Arc<Exchanges>,
    closed: watch::Receiver<bool>,
    alive: mpsc::Sender<()>,
}

async fn accept(listener: TcpListener, front: Front, most: usize) {
    let permits = Arc::new(Semaphore::new(most));
    // With all permits out, clients wait in the listener's backlog.
    while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
        let stream = loop {
            match listener.accept().await {
                Ok((stream, _)) => break stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a client");
                    tokio::time::sleep(run::ACCEPT_PAUSE).await;
                }
            }
        };
        let front = front.clone();
        tokio::spawn(async move {
            serve(stream, front).await;
            drop(permit);
        });
    }
}

/// Serves one client's connection to its end.
async fn serve(stream: TcpStream, front: Front) {
    let Front { exchanges, mut closed, alive } = front;
    // Without these options answers are only slower, and the dead stay longer.
    let _ = stream.set_nodelay(true);
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_IDLE);
    let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
    // A second descriptor: hyper owns the first when the connection has to be reset.
    let Ok(socket) = stream.as_fd().try_clone_to_owned() else { return };
    let broken = Arc::new(AtomicBool::new(false));
    let service = service_fn(|request| {
        let (exchanges, broken) = (Arc::clone(&exchanges), Arc::clone(&broken));
        let alive = alive.clone();
        async move { Ok::<_, Infallible>(exchanges.serve(request, broken, alive).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_header_size(MAX_HEAD_BYTES)
        .max_headers(MAX_FIELDS)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = async { drop(closed.wait_for(|closed| *closed).await) } => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a client's connection ended");
        if broken.load(Ordering::Relaxed) {
            // The client must not take what it has for the whole.
            let _ = SockRef::from(&socket).set_linger(Some(Duration::ZERO));
        }
    }
}

/// What the actor of an edge cannot do itself.
struct Dialling {
    carriers: Carriers,
    gateway: String,
}

impl Surroundings for Dialling {
    fn dial(&mut self, carrier: CarrierId) {
        tokio::spawn(self.carriers.clone().dial(carrier, self.gateway.clone()));
    }

    fn serve(&mut self, _: Head, _: bool, port: Port) {
        // A relay in the role of an edge opens no exchanges; dropping the port ends this one.
        tracing::error!("an edge was asked to serve");
        drop(port);
    }
}
