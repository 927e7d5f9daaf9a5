//! Sockets of carriers over UDP, with what the kernel says of datagrams beside their bytes.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::{datagram, plain, quic};
use crate::socket;

/// Most bytes of a datagram that are read: no link between takes more in a piece.
pub(super) const MAX_BYTES: usize = 1500;
/// Bytes that the kernel keeps of datagrams that wait to be read, if it gives as much.
const RECEIVE_BUFFER_BYTES: usize = 2 << 20;
/// Pause after a socket could not be read.
const RECEIVE_PAUSE: Duration = Duration::from_millis(10);

/// Where the other side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerPlace {
    pub(super) address: SocketAddr,
    /// To which of this side's addresses it sends.
    pub(super) to: Option<IpAddr>,
}

/// A datagram that came.
pub(crate) struct Datagram {
    pub(super) place: PeerPlace,
    pub(super) ecn: Option<EcnCodepoint>,
    pub(super) bytes: Vec<u8>,
}

/// See the module.
pub(crate) struct Socket {
    pub(super) socket: UdpSocket,
    state: UdpSocketState,
}

impl Socket {
    pub(super) fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        // What it gives is what it has.
        let _ = state.set_recv_buffer_size((&socket).into(), RECEIVE_BUFFER_BYTES);
        socket::let_fragment(&socket)?;
        Ok(Self { socket, state })
    }

    /// One that only hears who is at `place`, at the port of `local`: of sockets at the same port
    /// the kernel prefers it for what comes from there.
    pub(super) fn beside(local: SocketAddr, place: PeerPlace) -> io::Result<Self> {
        // Of a socket for both versions of IP, addresses of the older come as such and mapped: who
        // is there is sent to as before.
        let like_local = |ip: IpAddr| match (local, ip.to_canonical()) {
            (SocketAddr::V6(_), IpAddr::V4(ip)) => ip.to_ipv6_mapped().into(),
            (_, ip) => ip,
        };
        let to = SocketAddr::new(like_local(place.to.unwrap_or(local.ip())), local.port());
        let mut from = place.address;
        from.set_ip(like_local(from.ip()));
        let socket = socket::datagrams(to)?;
        socket.connect(&from.into())?;
        Self::new(UdpSocket::from_std(socket.into())?)
    }

    /// Whether a router may cut datagrams into pieces on the way.
    pub(super) fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    /// Datagrams of one length that leave at once.
    pub(super) fn max_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Room for what [`Socket::receive`] gets at once, in so many buffers.
    pub(super) fn room(&self, buffers: usize) -> Vec<Vec<u8>> {
        vec![vec![0; MAX_BYTES * self.state.gro_segments()]; buffers.min(BATCH_SIZE)]
    }

    /// The next datagrams. Errors: what the host or one on the way says of what was sent; where
    /// that is of many, it ends nothing ([`Socket::receive`]).
    pub(super) async fn try_receive(&self, room: &mut [Vec<u8>]) -> io::Result<Vec<Datagram>> {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let receive = || {
            let mut buffers: Vec<_> =
                room.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
            self.state.recv((&self.socket).into(), &mut buffers, &mut metas)
        };
        let count = self.socket.async_io(Interest::READABLE, receive).await?;
        let mut all = Vec::new();
        for (buffer, meta) in room.iter().zip(&metas[..count]) {
            let place = PeerPlace { address: meta.addr, to: meta.dst_ip };
            let each = buffer[..meta.len].chunks(meta.stride.max(1));
            let datagram = |bytes: &[u8]| Datagram { place, ecn: meta.ecn, bytes: bytes.to_vec() };
            all.extend(each.map(datagram));
        }
        Ok(all)
    }

    /// The same for a socket that many send to.
    pub(super) async fn receive(&self, room: &mut [Vec<u8>]) -> Vec<Datagram> {
        match self.try_receive(room).await {
            Ok(all) => all,
            Err(_) => {
                // sleep: what a host on the way says of one edge ends nothing, nor comes at once.
                tokio::time::sleep(RECEIVE_PAUSE).await;
                Vec::new()
            }
        }
    }

    /// What cannot be sent is as good as lost.
    pub(super) async fn send(&self, place: PeerPlace, contents: &[u8]) {
        let (destination, src_ip) = (place.address, place.to);
        let transmit = Transmit { destination, ecn: None, contents, segment_size: None, src_ip };
        let _ = self.transmit(&transmit).await;
    }

    /// Sends datagrams of one length. Errors: as of [`Socket::try_receive`].
    pub(super) async fn transmit(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let send = || self.state.try_send((&self.socket).into(), transmit);
        self.socket.async_io(Interest::WRITABLE, send).await
    }
}

/// Whether a datagram is one of QUIC version 1: its first two bits are not 0 (RFC 9000 §17). Those
/// of sealed datagrams are ([`proto::sealed`]).
fn is_quic(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & 0xc0 != 0)
}

/// A gateway's port for carriers over UDP, of all kinds that there are.
pub(crate) struct Port {
    socket: Arc<Socket>,
    burst: Option<datagram::Door>,
    quic: Option<quic::Door>,
    plain: Option<plain::Door>,
}

impl Port {
    /// One with this socket, and what makes the doors of its kinds.
    pub(crate) fn new(
        socket: UdpSocket,
        burst: impl FnOnce(Arc<Socket>) -> io::Result<Option<datagram::Door>>,
        quic: impl FnOnce(Arc<Socket>) -> io::Result<Option<quic::Door>>,
        plain: impl FnOnce(Arc<Socket>) -> Option<plain::Door>,
    ) -> io::Result<Self> {
        let socket = Arc::new(Socket::new(socket)?);
        let (burst, quic) = (burst(Arc::clone(&socket))?, quic(Arc::clone(&socket))?);
        let plain = plain(Arc::clone(&socket));
        Ok(Self { socket, burst, quic, plain })
    }

    /// Receives for ever.
    pub(crate) async fn receive(mut self) {
        let mut room = self.socket.room(BATCH_SIZE);
        loop {
            for datagram in self.socket.receive(&mut room).await {
                // Without keys there is nothing else.
                if let Some(plain) = &mut self.plain {
                    plain.came(datagram.place, &datagram.bytes).await;
                    continue;
                }
                match (is_quic(&datagram.bytes), &mut self.quic, &mut self.burst) {
                    (true, Some(quic), _) => quic.came(datagram).await,
                    (false, _, Some(burst)) => burst.came(datagram.place, &datagram.bytes).await,
                    _ => {}
                }
            }
        }
    }
}
