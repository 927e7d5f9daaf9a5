//! The edge's end of a carrier over UDP.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use proto::sealed::{Granted, Inside, Packet, Said, TOKEN_BYTES};
use relay::{CarrierId, DialFailure, Input};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

use super::noise::Dialling;
use super::seal::{Opener, Sealer};
use super::{CLOSES, MAX_WAITING};
use crate::actor::{Message, Queue};
use crate::carrier::udp::MAX_BYTES;
use crate::carrier::{Carriers, Ended};
use crate::keys::{Identity, PublicKey};

/// Datagrams that are sent again with a token, where the gateway asks for one.
const MAX_RECENT: usize = 4;
/// Most tokens that a gateway may ask for in a row.
const MAX_RETRIES: u32 = 2;
/// Times in a row that the gateway's host says that nobody is there, once somebody was.
const MAX_REFUSALS: u32 = 3;

/// No first message of a process has the time of another, nor an earlier one.
static LAST_US: AtomicU64 = AtomicU64::new(0);

fn said() -> Said {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
    let later = |last| Some(now.max(last + 1));
    let last = LAST_US.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later).unwrap_or(0);
    Said { version: Said::VERSION, at_us: now.max(last + 1) }
}

/// The session once the gateway's answer is here.
struct Session {
    granted: Granted,
    sealer: Sealer,
    opener: Opener,
}

/// What a datagram from the gateway came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Came {
    Datagram(Bytes),
    /// This is to be sent back.
    Challenge([u8; 8]),
    /// What left so far is to be sent again.
    Again,
    /// The gateway closes.
    Closed,
    /// It knows the connection no longer.
    Forgotten,
    Nothing,
}

/// The edge's end, without its socket.
pub(super) struct Line {
    gateway: PublicKey,
    dialling: Dialling,
    token: Option<[u8; TOKEN_BYTES]>,
    retries: u32,
    session: Option<Session>,
}

impl Line {
    pub(super) fn new(identity: &Identity, gateway: PublicKey) -> Option<Self> {
        let dialling = Dialling::new(identity, gateway, said(), None)?;
        Some(Self { gateway, dialling, token: None, retries: 0, session: None })
    }

    pub(super) fn seal(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        let sealed = &[][..];
        match &mut self.session {
            Some(Session { granted, sealer, .. }) => {
                let (connection, number) = (granted.connection, sealer.number());
                sealer.seal(Packet::Data { connection, number, sealed }.head(), datagram)
            }
            None => {
                let Dialling { message, early, .. } = &mut self.dialling;
                let (token, number) = (self.token.as_ref(), early.number());
                early.seal(Packet::First { token, message, number, sealed }.head(), datagram)
            }
        }
    }

    pub(super) fn came(&mut self, identity: &Identity, datagram: &[u8]) -> Came {
        let Ok((packet, head)) = Packet::decode(datagram) else { return Came::Nothing };
        let number = match packet {
            Packet::Answer { message, number, .. } => {
                if self.session.is_none() {
                    let Some((granted, sealer, opener)) = self.dialling.finish(message) else {
                        return Came::Nothing;
                    };
                    self.session = Some(Session { granted, sealer, opener });
                }
                number
            }
            Packet::Reply { number, .. } => number,
            Packet::Retry { beginning, token } => {
                let is_ours = self.dialling.message.starts_with(&beginning[..]);
                if self.session.is_some() || !is_ours || self.retries >= MAX_RETRIES {
                    return Came::Nothing;
                }
                let Some(new) = Dialling::new(identity, self.gateway, said(), Some(token)) else {
                    return Came::Nothing;
                };
                (self.dialling, self.token) = (new, Some(*token));
                self.retries += 1;
                return Came::Again;
            }
            Packet::Reset { token } => {
                let ours = self.session.as_ref().map(|session| session.granted.reset);
                return if ours == Some(*token) { Came::Forgotten } else { Came::Nothing };
            }
            Packet::First { .. } | Packet::Data { .. } => return Came::Nothing,
        };
        let opener = self.session.as_mut().map(|session| &mut session.opener);
        let opened = opener.and_then(|opener| opener.open(datagram, head, number).ok());
        match opened.and_then(|opened| Inside::decode(opened.datagram).ok()) {
            Some(Inside::Close) => Came::Closed,
            Some(Inside::Datagram(datagram)) => Came::Datagram(datagram),
            Some(Inside::Challenge(word)) => Came::Challenge(word),
            Some(Inside::Response(_)) | None => Came::Nothing,
        }
    }
}

impl Carriers {
    /// Edge: a carrier of this kind over UDP to the gateway at `address` (`HOST:PORT`), to its end.
    pub(crate) async fn dial_datagrams(
        self,
        (carrier, kind): (CarrierId, &'static str),
        address: String,
        pace: Duration,
    ) {
        let Ended { failure, reason } = match self.open_line(carrier, &address, pace).await {
            Ok((socket, peer, line, key)) => tokio::select! {
                ended = self.run_line((carrier, kind), &socket, peer, line) => ended,
                why = self.trust.lost(Some(key)) => {
                    Ended { failure: DialFailure::Refused, reason: format!("cut off: {why}") }
                }
            },
            Err(ended) => ended,
        };
        tracing::debug!(carrier = carrier.0, reason, "carrier ended");
        let input = Input::DialFailed { carrier, failure, reason };
        self.handle.send(Message::Input(input)).await;
    }

    /// A socket to the gateway, and the handshake begun. Where there are several addresses or keys
    /// that may be the gateway's, each dial takes the next.
    async fn open_line(
        &self,
        carrier: CarrierId,
        address: &str,
        pace: Duration,
    ) -> Result<(UdpSocket, String, Line, PublicKey), Ended> {
        let cannot = |why: &str| format!("cannot reach the gateway {address} over UDP: {why}");
        let unreachable = |why: &str| Ended::unreachable(cannot(why));
        let addresses = self.addresses(address, pace).await;
        let addresses = addresses.map_err(|error| unreachable(&error.to_string()))?;
        let turn = |count: usize| usize::try_from(carrier.0).unwrap_or(0) % count.max(1);
        let to = addresses.get(turn(addresses.len()));
        let to = *to.ok_or_else(|| unreachable("the name has no address"))?;
        let trust = self.trust.now();
        let Some(identity) = trust.identity() else {
            return Err(unreachable("without keys there are no carriers over UDP"));
        };
        let keys: Vec<_> = identity.admitted().collect();
        let no_key = || unreachable("no key of a gateway is in our --peer file");
        let (name, key) = *keys.get(turn(keys.len())).ok_or_else(no_key)?;
        let line = Line::new(identity, key).ok_or_else(|| {
            unreachable(&format!("the key of '{name}' cannot be used for X25519"))
        })?;
        let socket = connect(to).await.map_err(|error| unreachable(&error.to_string()))?;
        Ok((socket, name.to_owned(), line, key))
    }

    async fn run_line(
        &self,
        (carrier, kind): (CarrierId, &'static str),
        socket: &UdpSocket,
        peer: String,
        mut line: Line,
    ) -> Ended {
        let (queue, mut waiting) = mpsc::channel(MAX_WAITING);
        tracing::info!(carrier = carrier.0, peer, kind, "carrier begun");
        let queue = Queue::Datagrams(queue);
        self.handle.send(Message::CarrierUp { carrier, kind, peer, queue }).await;
        let mut recent: VecDeque<Bytes> = VecDeque::new();
        let mut refusals = 0;
        let mut buffer = [0; MAX_BYTES];
        loop {
            tokio::select! {
                datagram = waiting.recv() => {
                    let Some(datagram) = datagram else { break };
                    self.send(socket, line.seal(&datagram)).await;
                    if line.session.is_none() {
                        recent.push_back(datagram);
                        recent.truncate(MAX_RECENT);
                    }
                }
                came = socket.recv(&mut buffer) => match came {
                    Ok(bytes) => {
                        let trust = self.trust.now();
                        let Some(identity) = trust.identity() else { break };
                        let came = line.came(identity, &buffer[..bytes]);
                        if came != Came::Nothing {
                            refusals = 0;
                            let from = socket.peer_addr().ok();
                            let count = |from| self.metrics.count_datagram(false, bytes, from);
                            from.into_iter().for_each(count);
                        }
                        match came {
                            Came::Datagram(bytes) => {
                                recent.clear();
                                let input = Input::Datagram { carrier, bytes };
                                self.handle.send(Message::Input(input)).await;
                            }
                            Came::Again => for datagram in &recent {
                                self.send(socket, line.seal(datagram)).await;
                            },
                            Came::Challenge(word) => {
                                let response = Inside::Response(word).encode();
                                self.send(socket, line.seal(&response)).await;
                            }
                            Came::Closed => {
                                return Ended::unreachable("closed by the other side".to_owned());
                            }
                            Came::Forgotten => {
                                let why = "the gateway has started again, or moved";
                                return Ended::unreachable(why.to_owned());
                            }
                            Came::Nothing => self.metrics.count_refused("unread"),
                        }
                    }
                    Err(error) => {
                        refusals += 1;
                        // Once somebody was there, who is on the way may say so as well.
                        if line.session.is_none() || refusals >= MAX_REFUSALS {
                            return Ended::unreachable(format!("UDP: {error}"));
                        }
                    }
                },
            }
        }
        for _ in 0..CLOSES {
            self.send(socket, line.seal(&Inside::Close.encode())).await;
        }
        Ended::unreachable("closed by this side".to_owned())
    }

    /// What cannot be sent is as good as lost.
    async fn send(&self, socket: &UdpSocket, sealed: Option<Vec<u8>>) {
        if let (Some(sealed), Ok(to)) = (sealed, socket.peer_addr()) {
            self.metrics.count_datagram(true, sealed.len(), to);
            let _ = socket.send(&sealed).await;
        }
    }
}

pub(in crate::carrier) async fn connect(to: SocketAddr) -> io::Result<UdpSocket> {
    let from: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(from).await?;
    socket.connect(to).await?;
    Ok(socket)
}
