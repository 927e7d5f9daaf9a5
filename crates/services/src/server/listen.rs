//! Listening sockets: accepting, a bound on how many connections, an orderly end.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Site;
use super::connection::serve;
use crate::{Error, socket};

/// Most connections at once; more wait in the listen queue.
const MAX_CONNECTIONS: usize = 1024;
/// Connections that the kernel keeps for us until we accept them.
const LISTEN_BACKLOG: i32 = 1024;
/// How long exchanges under way may take to end once the server is asked to stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after `accept` failed for want of descriptors or memory, which only time gives back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    site: Arc<dyn Site>,
    congestion: Option<String>,
}

impl Server {
    /// Listens at `address` (port 0 takes any free one) with a TCP congestion control, or the
    /// system's own. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Caller`] when a setting is out of its range, the address cannot be had or the
    /// congestion control not be set.
    pub(crate) fn bind(
        address: SocketAddr,
        congestion: Option<String>,
        site: Arc<dyn Site>,
    ) -> Result<Self, Error> {
        site.settings().check()?;
        let listener = listen(address, congestion.as_deref())?;
        let listener = listener.and_then(TcpListener::from_std);
        let named = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = named.map_err(|error| cannot_listen(address, &error))?;
        Ok(Self { listener, address, site, congestion })
    }

    /// Where it listens, with the real port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` ends, then lets exchanges under way finish for at most ten seconds.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let (stopping, watcher) = watch::channel(false);
        let mut connections = JoinSet::new();
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    match accepted {
                        Ok((stream, peer)) => {
                            tracing::debug!(%peer, "connection accepted");
                            self.prepare(&stream);
                            let site = Arc::clone(&self.site);
                            connections.spawn(serve(stream, peer, site, watcher.clone()));
                        }
                        Err(error) => {
                            tracing::warn!(%error, "accept failed");
                            tokio::time::sleep(ACCEPT_PAUSE).await;
                        }
                    }
                }
            }
        }
        drop(self.listener);
        let _ = stopping.send(true);
        let drained = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_TIMEOUT, drained).await.is_err() {
            tracing::warn!(left = connections.len(), "stopped with exchanges under way");
        }
    }

    #[cfg(test)]
    pub(crate) fn listener(&self) -> &TcpListener {
        &self.listener
    }

    pub(crate) fn prepare(&self, stream: &TcpStream) {
        if let Err(error) = stream.set_nodelay(self.site.settings().nodelay) {
            tracing::warn!(%error, "TCP_NODELAY not set");
        }
        // Inherited from the listening socket, unless a route says otherwise.
        if let Some(name) = &self.congestion
            && socket::congestion(stream).as_ref() != Some(name)
            && let Err(error) = socket::set_congestion(stream, name)
        {
            tracing::warn!(%error, "congestion control not set");
        }
    }
}

/// A listening socket. The outer result tells of the congestion control.
fn listen(
    address: SocketAddr,
    congestion: Option<&str>,
) -> Result<io::Result<std::net::TcpListener>, Error> {
    let open = || {
        let domain = Domain::for_address(address);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    let socket: Socket = match open() {
        Ok(socket) => socket,
        Err(error) => return Ok(Err(error)),
    };
    if let Some(name) = congestion {
        socket::set_congestion(&socket, name)?;
    }
    let bound = socket.bind(&address.into()).and_then(|()| socket.listen(LISTEN_BACKLOG));
    Ok(bound.map(|()| socket.into()))
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> Error {
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => "stop what listens there or choose another port (0: any)",
        io::ErrorKind::PermissionDenied => "choose a port of 1024 or more",
        io::ErrorKind::AddrNotAvailable => "choose an address of this machine",
        _ => "choose another address",
    };
    Error::Caller(format!("cannot listen on {address}: {error}; {remedy}"))
}
