//! A socket of an endpoint: datagrams with the address of this side that they came to, since
//! answers leave from there (RFC 7252 §5.3.2).

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Datagrams that the kernel is asked for at once: what waits for the task is paid for by all of
/// them together.
const MAX_BATCH: usize = quinn_udp::BATCH_SIZE;
/// Room for a datagram, or for as many of one peer as the kernel joins.
const DATAGRAM_BYTES: usize = 1 << 16;

/// Whom a datagram is from, or for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// The address of this side, where that is not the kernel's to choose.
    pub(super) local: Option<IpAddr>,
    /// The session of DTLS; 0 without.
    pub(super) session: u64,
}

impl Peer {
    /// A server, to which the kernel chooses the way.
    pub(crate) fn server(address: SocketAddr) -> Self {
        Self { address, local: None, session: 0 }
    }
}

/// A datagram that came.
pub(crate) struct Received {
    pub(crate) peer: Peer,
    pub(crate) bytes: Bytes,
    /// It was sent to a group (RFC 7252 §8).
    pub(crate) is_group: bool,
}

/// See the module.
pub(crate) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    is_server: bool,
    is_connected: bool,
    /// [`DATAGRAM_BYTES`] for each of a batch, in one piece; the kernel gives what is used of it.
    room: Vec<u8>,
}

impl Socket {
    /// One that answers at the address that was asked.
    pub(crate) fn server(socket: UdpSocket) -> io::Result<Self> {
        Self::new(socket, true, false)
    }

    /// One that only hears the server at `address`, and that nobody is there.
    pub(crate) async fn client(address: SocketAddr) -> io::Result<Self> {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => ([0; 4], 0).into(),
            SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
        };
        let socket = UdpSocket::bind(any).await?;
        socket.connect(address).await?;
        Self::new(socket, false, true)
    }

    fn new(socket: UdpSocket, is_server: bool, is_connected: bool) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        // Of one server there is never much at once.
        let batch = if is_server { MAX_BATCH } else { 1 };
        let room = vec![0; batch * DATAGRAM_BYTES];
        Ok(Self { socket, state, is_server, is_connected, room })
    }

    /// Whether it has one peer, of which the network may say that it is not there.
    pub(crate) fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// The next datagrams. Errors: what the host or one on the way says of what was sent.
    pub(crate) async fn receive(&mut self) -> io::Result<Vec<Received>> {
        let Self { socket, state, is_server, room, .. } = self;
        let mut metas = [RecvMeta::default(); MAX_BATCH];
        let count = socket
            // What the network says comes without anything to be read.
            .async_io(Interest::READABLE | Interest::ERROR, || {
                let mut buffers: Vec<_> =
                    room.chunks_exact_mut(DATAGRAM_BYTES).map(IoSliceMut::new).collect();
                state.recv((&*socket).into(), &mut buffers, &mut metas)
            })
            .await?;
        let mut all = Vec::new();
        for (buffer, meta) in room.chunks_exact(DATAGRAM_BYTES).zip(metas.iter().take(count)) {
            let local = meta.dst_ip.filter(|_| *is_server);
            let is_group = local.is_some_and(|ip| ip.to_canonical().is_multicast());
            let peer = Peer { address: meta.addr, local, session: 0 };
            let bytes = buffer.get(..meta.len).unwrap_or_default();
            all.extend(bytes.chunks(meta.stride.max(1)).map(|bytes| {
                let bytes = Bytes::copy_from_slice(bytes);
                Received { peer, bytes, is_group }
            }));
        }
        Ok(all)
    }

    /// What cannot be sent is as good as lost. Errors: as of [`Socket::receive`], where it has one
    /// peer.
    pub(crate) async fn send(&self, peer: Peer, contents: &[u8]) -> io::Result<()> {
        let (destination, src_ip) = (peer.address, peer.local);
        let transmit = Transmit { destination, ecn: None, contents, segment_size: None, src_ip };
        let send = || self.state.try_send((&self.socket).into(), &transmit);
        let sent = self.socket.async_io(Interest::WRITABLE, send).await;
        if self.is_connected { sent } else { Ok(()) }
    }
}
