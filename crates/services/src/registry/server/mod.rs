//! The registry as it listens: HTTP with all three faces, CoAP with one.

mod coap;
mod http;
mod pairs;
mod route;
mod shared;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::config::Config;
use crate::Error;
use crate::addresses::{Addresses, MAX_OF_ADDRESS};
use shared::Shared;

/// Most connections at once; more wait in the listener's queue.
const MAX_CONNECTIONS: usize = 1024;
/// How long exchanges under way may take to end once the registry is asked to stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after `accept` failed for want of descriptors or memory, which only time gives back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A registry that listens.
pub struct Server {
    shared: Arc<Shared>,
    listener: TcpListener,
    address: SocketAddr,
    coap: Option<(coap::Face, SocketAddr)>,
}

impl Server {
    /// Opens the store and listens. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Caller`] where an address cannot be had, the store not be opened or the file of
    /// users not be read.
    pub async fn bind(config: &Config) -> Result<Self, Error> {
        let refused = |error: std::io::Error| {
            let remedy = "choose another address or port (0: any)";
            Error::Caller(format!("cannot listen on {}: {error}; {remedy}", config.listen))
        };
        let listener = TcpListener::bind(config.listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let coap = match config.coap {
            Some(address) => Some(coap::bind(address).await?),
            None => None,
        };
        let shared = Arc::new(Shared::open(config)?);
        Ok(Self { shared, listener, address, coap })
    }

    /// Where it listens: for HTTP, then for CoAP.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let coap = self.coap.as_ref().map(|(_, address)| *address);
        std::iter::once(self.address).chain(coap).collect()
    }

    /// Serves until `stop` ends, then lets exchanges under way finish for a while and waits for the
    /// disk.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let (stopping, watcher) = watch::channel(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(self.shared.clone().expire(watcher.clone()));
        if let Some((face, _)) = self.coap {
            tasks.spawn(face.run(self.shared.clone(), watcher.clone()));
        }
        tasks.spawn(accept(self.listener, self.shared.clone(), watcher));
        stop.await;
        let _ = stopping.send(true);
        let drained = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_TIMEOUT, drained).await.is_err() {
            tracing::warn!("stopped with exchanges under way");
        }
        tasks.shutdown().await;
        // What was answered is on the disk; what waits for it goes there now.
        let _ = tokio::task::spawn_blocking(move || self.shared.finish()).await;
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, mut stopping: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    let mut addresses = Addresses::default();
    let seats = Arc::new(Semaphore::new(MAX_CONNECTIONS));
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
                    let (shared, stopping) = (shared.clone(), watcher.clone());
                    connections.spawn(async move {
                        http::serve(stream, peer, shared, stopping).await;
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

/// Waits until the registry is to stop, or is gone.
async fn ended(stopping: &mut watch::Receiver<bool>) -> bool {
    let _ = stopping.wait_for(|&stopping| stopping).await;
    true
}
