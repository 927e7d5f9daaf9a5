//! One TCP connection with HTTP/1.1 on it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::task::JoinHandle;

use super::Target;
use crate::{Error, socket};

/// Most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

/// An open connection.
pub(super) struct Connection {
    /// Where requests go in.
    pub(super) sender: http1::SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
    /// Whom it leads to.
    peer: Target,
    /// The same socket once more: hyper owns the other.
    socket: OwnedFd,
}

impl Connection {
    /// Connects to the first address that answers. The error is one line.
    pub(super) async fn open(target: &Target, congestion: Option<&str>) -> Result<Self, String> {
        let stream = connect(target, congestion).await.map_err(|error| {
            format!("cannot connect to {}:{}: {error}", target.host(), target.port())
        })?;
        let socket = stream.set_nodelay(true).and_then(|()| stream.as_fd().try_clone_to_owned());
        let socket = socket.map_err(|error| format!("cannot prepare the socket: {error}"))?;
        let opened = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = opened.map_err(|error| error.to_string())?;
        // Its errors reach whoever waits for the answer.
        let driver = tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Self { sender, driver, peer: target.clone(), socket })
    }

    /// Whether the next request to `target` may use it: it leads there, and the server has neither
    /// closed it nor said anything unasked.
    pub(super) async fn is_usable(&mut self, target: &Target) -> bool {
        let quiet = {
            let peeked = SockRef::from(&self.socket).peek(&mut [std::mem::MaybeUninit::uninit()]);
            matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
        };
        quiet && self.peer.authority() == target.authority() && self.sender.ready().await.is_ok()
    }

    /// Segments sent again so far.
    pub(super) fn retransmits(&self) -> u64 {
        socket::retransmits(&self.socket).unwrap_or(0)
    }

    /// The congestion control in force.
    pub(super) fn congestion(&self) -> Option<String> {
        socket::congestion(&self.socket)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Whether sockets of this machine can be given a congestion control.
pub(super) fn try_congestion(name: &str) -> Result<(), Error> {
    let socket = TcpSocket::new_v4();
    let socket = socket.map_err(|error| Error::Caller(format!("cannot open a socket: {error}")))?;
    socket::set_congestion(&socket, name)
}

async fn connect(target: &Target, congestion: Option<&str>) -> io::Result<TcpStream> {
    let none = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let mut last_error = none();
    let addresses = lookup_host((target.host(), target.port())).await?;
    for address in addresses.take(MAX_ADDRESSES) {
        match connect_to(address, congestion).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

async fn connect_to(address: SocketAddr, congestion: Option<&str>) -> io::Result<TcpStream> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if let Some(name) = congestion {
        socket::set_congestion(&socket, name).map_err(io::Error::other)?;
    }
    socket.connect(address).await
}
