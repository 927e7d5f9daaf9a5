//! Sending datagrams.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use tokio::net::UdpSocket;

/// Sockets by number.
pub(crate) type Senders = BTreeMap<u16, Rc<UdpSocket>>;

/// Sends a datagram; one that the system does not take at once is lost, as on the way.
pub(crate) fn send(senders: &Senders, listener: u16, to: SocketAddr, bytes: &[u8]) {
    let Some(socket) = senders.get(&listener) else { return };
    if let Err(error) = socket.try_send_to(bytes, to) {
        tracing::debug!(%to, %error, "a datagram was not sent");
    }
}
