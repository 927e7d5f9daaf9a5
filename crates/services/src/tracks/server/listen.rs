//! Sockets around the service: accepting, bounds on what a peer may take, an orderly end.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::route::{answer, plain, wants_body};
use crate::tracks::Catalogue;
use crate::{Error, socket};

/// Most connections at once; more wait in the listen queue.
const MAX_CONNECTIONS: usize = 1024;
/// Connections that the kernel keeps for us until we accept them.
const LISTEN_BACKLOG: i32 = 1024;
/// Largest request content, in bytes; a GetTrack message has about 250.
const MAX_REQUEST_BYTES: usize = 64 * 1024;
/// Largest request head, in bytes.
const MAX_HEAD_BYTES: usize = 32 * 1024;
/// How long a connection may idle, or take to send a request's head (IST-118's default).
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(180);
/// How long a request's content may take (IST-118's default).
const READ_TIMEOUT: Duration = Duration::from_secs(120);
/// How long exchanges under way may take to end once the server is asked to stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after `accept` failed for want of descriptors or memory, which only time gives back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address and port to listen at; port 0 takes any free one.
    pub listen: SocketAddr,
    /// Seed of the files.
    pub seed: u64,
    /// TCP congestion control; the system's own when none.
    pub congestion: Option<String>,
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    catalogue: Arc<Catalogue>,
    congestion: Option<String>,
}

impl Server {
    /// Listens and makes the files. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Caller`] when the address cannot be had or the congestion control not be set.
    pub fn bind(config: Config) -> Result<Self, Error> {
        let listener = listen(&config)?;
        let listener = listener.and_then(TcpListener::from_std);
        let named = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = named.map_err(|error| cannot_listen(config.listen, &error))?;
        let catalogue = Arc::new(Catalogue::new(config.seed));
        Ok(Self { listener, address, catalogue, congestion: config.congestion })
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
                            let catalogue = Arc::clone(&self.catalogue);
                            connections.spawn(serve(stream, peer, catalogue, watcher.clone()));
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
    pub(super) fn listener(&self) -> &TcpListener {
        &self.listener
    }

    fn prepare(&self, stream: &TcpStream) {
        if let Err(error) = stream.set_nodelay(true) {
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
fn listen(config: &Config) -> Result<io::Result<std::net::TcpListener>, Error> {
    let open = || {
        let domain = Domain::for_address(config.listen);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    let socket: Socket = match open() {
        Ok(socket) => socket,
        Err(error) => return Ok(Err(error)),
    };
    if let Some(name) = &config.congestion {
        socket::set_congestion(&socket, name)?;
    }
    let bound = socket.bind(&config.listen.into()).and_then(|()| socket.listen(LISTEN_BACKLOG));
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

async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    catalogue: Arc<Catalogue>,
    mut stopping: watch::Receiver<bool>,
) {
    let service = service_fn(move |request| {
        let catalogue = Arc::clone(&catalogue);
        async move { Ok::<_, Infallible>(handle(&catalogue, peer, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(KEEP_ALIVE_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // An error means that the server is gone: the end as well.
    let stopped = async { stopping.wait_for(|&stopping| stopping).await.is_ok() };
    let result = tokio::select! {
        result = connection.as_mut() => result,
        _ = stopped => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%peer, %error, "connection ended");
    }
}

async fn handle(
    catalogue: &Catalogue,
    peer: SocketAddr,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let content = if wants_body(&parts) { read(body).await } else { Ok(Bytes::new()) };
    let response = match content {
        Ok(content) => answer(catalogue, &parts, &content),
        Err(refusal) => *refusal,
    };
    let (status, method, target) = (response.status().as_u16(), &parts.method, &parts.uri);
    let bytes = response.body().len();
    tracing::info!(%peer, %method, %target, status, bytes, "answered");
    response.map(Full::new)
}

/// The request's content within its bounds, or the answer that refuses it and ends the connection.
async fn read(body: Incoming) -> Result<Bytes, Box<Response<Bytes>>> {
    let refuse = |status, line: &str| {
        let mut response = plain(status, line);
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        Box::new(response)
    };
    let too_large = || {
        let line = format!("request content over {MAX_REQUEST_BYTES} bytes; send a shorter one");
        refuse(StatusCode::PAYLOAD_TOO_LARGE, &line)
    };
    if body.size_hint().lower() > MAX_REQUEST_BYTES as u64 {
        return Err(too_large());
    }
    let collected = Limited::new(body, MAX_REQUEST_BYTES).collect();
    match tokio::time::timeout(READ_TIMEOUT, collected).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => {
            Err(refuse(StatusCode::BAD_REQUEST, "the request's content ended early; send it whole"))
        }
        Err(_) => {
            let line = "the request's content took too long; send it sooner";
            Err(refuse(StatusCode::REQUEST_TIMEOUT, line))
        }
    }
}
