//! A request to all that hear a group (RFC 7252 §8): one datagram, and whatever answers come.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use proto::coap::{Code, Content, Datagram, Kind, Token};
use socket2::{Domain, Socket, Type};
use tokio::net::UdpSocket;

use crate::Error;

/// Longest datagram that is read.
const MAX_BYTES: usize = 1 << 16;
/// Peers whose messages are told from their copies; of more nothing is shown.
const MAX_PEERS: usize = 4096;

/// A request to a group that answers are gathered of.
pub(crate) struct Gathering {
    socket: UdpSocket,
    token: Token,
    /// Messages that have come: from whom, and their ids.
    seen: BTreeSet<(SocketAddr, u16)>,
}

impl Gathering {
    /// Asks all that hear `group`, once and without acknowledgement (RFC 7252 §8.1), over the
    /// interface with the address `on`, or over the one that the kernel chooses.
    pub(crate) async fn begin(
        content: &Content,
        group: SocketAddr,
        on: Option<IpAddr>,
    ) -> Result<Self, Error> {
        let failed = || Error::system(format!("cannot ask the group {group}"));
        let token = Token::from(crate::random_instance()?.to_be_bytes());
        let [first, second, ..] = crate::random_instance()?.to_be_bytes();
        let mid = u16::from_be_bytes([first, second]);
        let bytes = content.encode(Kind::NonConfirmable, mid, token);
        let bytes = bytes.map_err(|error| Error::Caller(error.to_string()))?;
        let socket = open(group, on).map_err(failed())?;
        socket.send_to(&bytes, group).await.map_err(failed())?;
        Ok(Self { socket, token, seen: BTreeSet::new() })
    }

    /// The next answer and whose it is. Any address may answer; what counts is the token
    /// (RFC 7252 §8.2). Errors: what the host says of the socket.
    pub(crate) async fn next(&mut self) -> io::Result<(SocketAddr, Content)> {
        let mut room = vec![0; MAX_BYTES];
        loop {
            let (bytes, from) = self.socket.recv_from(&mut room).await?;
            let Ok(datagram) = Datagram::decode(&room[..bytes]) else { continue };
            let message = &datagram.message;
            let is_answer = message.code.is_response() && message.token == self.token;
            let may_be_seen = self.seen.len() < MAX_PEERS;
            if !is_answer || !may_be_seen || !self.seen.insert((from, datagram.mid)) {
                continue;
            }
            self.acknowledge(&datagram, from).await;
            if let Ok(content) = Content::try_from(&datagram) {
                return Ok((from, content));
            }
        }
    }

    /// An answer may be confirmable.
    async fn acknowledge(&self, datagram: &Datagram<'_>, to: SocketAddr) {
        if datagram.kind == Kind::Confirmable {
            let empty = Content::new(Code::EMPTY);
            let acknowledgement = empty.encode(Kind::Acknowledgement, datagram.mid, Token::EMPTY);
            if let Ok(bytes) = acknowledgement {
                // It comes again where this is lost.
                let _ = self.socket.send_to(&bytes, to).await;
            }
        }
    }
}

fn open(group: SocketAddr, on: Option<IpAddr>) -> io::Result<UdpSocket> {
    let any: IpAddr = match group {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = Socket::new(Domain::for_address(group), Type::DGRAM.nonblocking(), None)?;
    // From an address of the interface, by which answers come back.
    socket.bind(&SocketAddr::new(on.unwrap_or(any), 0).into())?;
    if let Some(IpAddr::V4(on)) = on {
        socket.set_multicast_if_v4(&on)?;
    }
    UdpSocket::from_std(socket.into())
}
