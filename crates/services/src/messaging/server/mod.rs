//! The service of a node: its listeners, the task that owns the machine, requests to other nodes.

mod answer;
mod coap;
mod deliver;
mod documents;
mod events;
mod http;
mod owner;
mod route;
mod sizes;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::config::Config;
use crate::Error;
use crate::addresses::{Addresses, MAX_OF_ADDRESS};
use owner::{Handle, Owner};
pub use sizes::{Size, short_message, sizes};

/// Most connections to a listener at once; more wait in its queue.
const MAX_CONNECTIONS: usize = 1024;
/// How long exchanges under way may take to end once the service is asked to stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after `accept` failed for want of descriptors or memory, which only time gives back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A field of each answer, with the node's name: who asks knows by it that a node has answered, and
/// which, and no proxy or other server in its place.
pub(crate) const NODE_FIELD: ::http::HeaderName = ::http::HeaderName::from_static("longwire-node");

/// Whom a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    /// Clients of this node.
    Clients,
    /// Other nodes.
    Peers,
    /// Both.
    Both,
}

/// A service that listens.
pub struct Server {
    owner: Owner,
    handle: Handle,
    listeners: Vec<(TcpListener, SocketAddr, Face)>,
    /// For nodes, and for clients.
    coap: Option<(coap::Face, SocketAddr)>,
    coap_listen: Option<(coap::Face, SocketAddr)>,
    coap_tcp: Option<(TcpListener, SocketAddr)>,
    /// Most connections to each listener.
    max_connections: usize,
}

impl Server {
    /// Opens the store and listens. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Caller`] where an address cannot be had or the store not be opened.
    pub async fn bind(config: &Config) -> Result<Self, Error> {
        // With keys nothing of another node's comes to where clients write in this one's name.
        let has_keys = config.settings.keys.is_needed();
        let face = if has_keys { Face::Clients } else { Face::Both };
        let mut wanted = vec![(config.listen, face)];
        if let Some(peers) = config.peers {
            wanted = vec![(config.listen, Face::Clients), (peers, Face::Peers)];
        }
        let mut listeners = Vec::new();
        for (address, face) in wanted {
            let (listener, address) = listen(address).await?;
            listeners.push((listener, address, face));
        }
        let mut coap_tcp = None;
        if let Some(address) = config.coap_tcp {
            coap_tcp = Some(listen(address).await?);
        }
        let (mut coap, mut caller) = (None, None);
        if let Some(address) = config.coap {
            let (face, way, address) = coap::bind(address, coap::Serves::Nodes).await?;
            (coap, caller) = (Some((face, address)), Some(way));
        }
        let mut coap_listen = None;
        if let Some(address) = config.coap_listen {
            let (face, _, address) = coap::bind(address, coap::Serves::Clients).await?;
            coap_listen = Some((face, address));
        }
        let (owner, handle) = Owner::open(config, caller)?;
        let max_connections = MAX_CONNECTIONS;
        Ok(Self { owner, handle, listeners, coap, coap_listen, coap_tcp, max_connections })
    }

    /// Where it listens: for clients first, then for nodes, over CoAP last, that of TCP behind that
    /// of UDP, and for clients over CoAP behind those.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let listeners = self.listeners.iter().map(|(_, address, _)| *address);
        let coap = self.coap.as_ref().map(|(_, address)| *address);
        let coap_tcp = self.coap_tcp.as_ref().map(|(_, address)| *address);
        let coap_listen = self.coap_listen.as_ref().map(|(_, address)| *address);
        listeners.chain(coap).chain(coap_tcp).chain(coap_listen).collect()
    }

    /// Serves until `stop` ends, then lets exchanges under way finish for a while and waits for the
    /// disk.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let (stopping, watcher) = watch::channel(false);
        let owner = tokio::spawn(self.owner.run(watcher.clone()));
        let mut accepting = JoinSet::new();
        for (listener, _, face) in self.listeners {
            // Each has its own: nodes take none from clients.
            let seats = Arc::new(tokio::sync::Semaphore::new(self.max_connections));
            let (handle, watcher) = (self.handle.clone(), watcher.clone());
            accepting.spawn(accept(listener, face, handle, seats, watcher));
        }
        for (face, _) in self.coap.into_iter().chain(self.coap_listen) {
            accepting.spawn(face.run(self.handle.clone(), watcher.clone()));
        }
        if let Some((listener, _)) = self.coap_tcp {
            accepting.spawn(coap::stream::serve(listener, self.handle.clone(), watcher.clone()));
        }
        drop((self.handle, watcher));
        stop.await;
        let _ = stopping.send(true);
        let drained = async { while accepting.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_TIMEOUT, drained).await.is_err() {
            tracing::warn!("stopped with exchanges under way");
        }
        accepting.shutdown().await;
        // All that was accepted is on the disk: nothing was answered before.
        let _ = owner.await;
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let refused = |error: std::io::Error| {
        let remedy = "choose another address or port (0: any)";
        Error::Caller(format!("cannot listen on {address}: {error}; {remedy}"))
    };
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    Ok((listener, address))
}

async fn accept(
    listener: TcpListener,
    face: Face,
    handle: Handle,
    seats: Arc<tokio::sync::Semaphore>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let mut addresses = Addresses::default();
    let watcher = stopping.clone();
    loop {
        let Ok(seat) = seats.clone().acquire_owned().await else { return };
        tokio::select! {
            true = ended(&mut stopping) => break,
            accepted = listener.accept() => match accepted {
                Ok((_, peer)) if !addresses.take(peer.ip()) => {
                    tracing::warn!(%peer, "closed: its address has {MAX_OF_ADDRESS} connections");
                }
                Ok((stream, peer)) => {
                    let _ = stream.set_nodelay(true);
                    let (handle, stopping) = (handle.clone(), watcher.clone());
                    connections.spawn(async move {
                        http::serve(stream, peer, face, handle, stopping).await;
                        drop(seat);
                        peer.ip()
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(ended) = connections.join_next(), if !connections.is_empty() => {
                if let Ok(address) = ended {
                    addresses.give_back(address);
                }
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Waits until the service is to stop, or is gone.
async fn ended(stopping: &mut watch::Receiver<bool>) -> bool {
    let _ = stopping.wait_for(|&stopping| stopping).await;
    true
}
