//! DTLS 1.2 with pre-shared keys (RFC 6347, RFC 4279, RFC 7252 §9.1.3.1) below an endpoint:
//! datagrams and times go in, messages and datagrams come out. The machine of each session is
//! `dimpl`; here is which session a datagram belongs to, and for how many there is room.
//!
//! The one cipher suite is `TLS_PSK_WITH_AES_128_CCM_8`, which RFC 7252 asks of all. A session is
//! a peer of its own to the endpoint: what one principal has open at an address is not for the
//! next one there (RFC 7252 §9.1.1).

pub mod keys;
mod server;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dimpl::crypto::{Dtls12CipherSuite, rust_crypto};
use dimpl::{Config, ConfigBuilder, Dtls, Output, PskResolver};

use super::socket::Peer;
use crate::{Error, fault};
use keys::Keys;
pub(crate) use server::Sessions;

/// Largest datagram that is made, in bytes: a message of CoAP as RFC 7252 §4.6 wants it fits a
/// packet of 1280 bytes, and one with a long URI is cut by IP.
const MAX_DATAGRAM_BYTES: usize = 4096;
/// What a record adds to a message: header, explicit nonce and tag (RFC 6347 §4.1, RFC 6655 §3).
const AROUND_RECORD_BYTES: usize = 13 + 8 + 8;
/// Longest message.
const MAX_MESSAGE_BYTES: usize = MAX_DATAGRAM_BYTES - AROUND_RECORD_BYTES;
/// Room for what a session says at once.
const ROOM_BYTES: usize = 1 << 14;
/// Outputs of a session after one input, of which there are few.
const MAX_OUTPUTS: usize = 256;
/// A handshake takes no longer.
const MAX_HANDSHAKE: Duration = Duration::from_secs(40);
/// Datagrams of a handshake that wait for an earlier one.
const MAX_WAITING: usize = 16;

/// Kinds of records (RFC 5246 §6.2.1), and of messages of a handshake (§7.4, RFC 6347 §4.3.2).
const HANDSHAKE: u8 = 22;
const ALERT: u8 = 21;
const CLIENT_HELLO: u8 = 1;
const HELLO_VERIFY_REQUEST: u8 = 3;

/// What comes out.
#[derive(Debug, Default)]
pub(super) struct Out {
    /// To be sent.
    pub(super) datagrams: Vec<(Peer, Bytes)>,
    /// For the endpoint.
    pub(super) messages: Vec<(Peer, Bytes)>,
    /// A client's only session is over, and why.
    pub(super) failed: Option<String>,
}

/// All sessions of an endpoint.
pub(crate) enum Layer {
    /// That of a client.
    Client(Box<Client>),
    /// Those of a server.
    Server(Box<Sessions>),
}

impl Layer {
    /// A session with the server that a client's socket is connected to.
    pub(crate) fn client(began: Instant, identity: &[u8], key: &[u8]) -> Result<Self, Error> {
        Client::new(began, identity, key).map(|client| Self::Client(Box::new(client)))
    }

    /// Sessions with whoever has one of these keys.
    pub(crate) fn server(began: Instant, keys: Keys) -> Result<Self, Error> {
        Sessions::new(began, keys).map(|sessions| Self::Server(Box::new(sessions)))
    }

    /// Takes a datagram.
    pub(super) fn receive(&mut self, now: Duration, peer: Peer, bytes: &[u8], out: &mut Out) {
        match self {
            Self::Client(client) => client.receive(now, peer, bytes, out),
            Self::Server(sessions) => sessions.receive(now, peer, bytes, out),
        }
    }

    /// Sends a message. One that is too long, or to who has no session, is lost.
    pub(super) fn send(&mut self, now: Duration, peer: Peer, bytes: &[u8], out: &mut Out) {
        if bytes.len() > MAX_MESSAGE_BYTES {
            return;
        }
        match self {
            Self::Client(client) => client.send(now, peer, bytes, out),
            Self::Server(sessions) => sessions.send(now, peer, bytes, out),
        }
    }

    /// Time has passed.
    pub(super) fn wake(&mut self, now: Duration, out: &mut Out) {
        match self {
            Self::Client(client) => client.wake(now, out),
            Self::Server(sessions) => sessions.wake(now, out),
        }
    }

    /// When to call [`Layer::wake`].
    pub(super) fn wakes_at(&self) -> Option<Duration> {
        match self {
            Self::Client(client) => client.wakes_at,
            Self::Server(sessions) => sessions.wakes_at(),
        }
    }

    /// Closes the session of a client.
    pub(super) fn close(&mut self, now: Duration, out: &mut Out) {
        if let Self::Client(client) = self {
            client.close(now, out);
        }
    }
}

fn config(of: impl FnOnce(ConfigBuilder) -> ConfigBuilder) -> Result<Arc<Config>, Error> {
    let base = Config::builder()
        .mtu(MAX_DATAGRAM_BYTES)
        .max_queue_rx(MAX_WAITING)
        .handshake_timeout(MAX_HANDSHAKE)
        .dtls12_cipher_suites(&[Dtls12CipherSuite::PSK_AES128_CCM_8])
        .dtls13_cipher_suites(&[])
        .with_crypto_provider(rust_crypto::default_provider());
    let built = of(base).build();
    built.map(Arc::new).map_err(|error| Error::Caller(format!("DTLS: {error}")))
}

/// What a session has said after an input.
#[derive(Default)]
struct Said {
    datagrams: Vec<Bytes>,
    messages: Vec<Bytes>,
    is_connected: bool,
    is_closed: bool,
    /// It sent something of a handshake that asks for no cookie.
    is_past_cookie: bool,
    wakes_at: Option<Instant>,
}

/// Lets time pass in a session, gives it an input, and drains it. Where it panics, which a peer may
/// have brought about, that costs the one session: it is over.
fn advance(
    dtls: &mut Dtls,
    at: Instant,
    input: impl FnOnce(&mut Dtls) -> Result<(), dimpl::Error>,
) -> (Result<(), String>, Said) {
    let work = || {
        let outcome = dtls.handle_timeout(at).and_then(|()| input(dtls));
        (outcome.map_err(|error| error.to_string()), drain(dtls))
    };
    fault::contain(work).unwrap_or_else(|| {
        let said = Said { is_closed: true, ..Said::default() };
        (Err("a fault in it, which the log has".to_owned()), said)
    })
}

/// Drains a session.
fn drain(dtls: &mut Dtls) -> Said {
    let (mut said, mut room) = (Said::default(), vec![0; ROOM_BYTES]);
    for _ in 0..MAX_OUTPUTS {
        match dtls.poll_output(&mut room) {
            Output::Packet(bytes) => {
                let is_handshake = bytes.first() == Some(&HANDSHAKE);
                said.is_past_cookie |= is_handshake && message_of(bytes) != HELLO_VERIFY_REQUEST;
                said.datagrams.push(Bytes::copy_from_slice(bytes));
            }
            Output::ApplicationData(bytes) => said.messages.push(Bytes::copy_from_slice(bytes)),
            Output::Connected => said.is_connected = true,
            Output::CloseNotify => said.is_closed = true,
            Output::Timeout(at) => {
                said.wakes_at = Some(at);
                break;
            }
            // No record has more than 2^14 bytes (RFC 5246 §6.2.1).
            Output::BufferTooSmall { .. } => {
                said.is_closed = true;
                break;
            }
            _ => {}
        }
    }
    said
}

/// The kind of the first message of a handshake in a datagram.
fn message_of(datagram: &[u8]) -> u8 {
    datagram.get(13).copied().unwrap_or(0)
}

/// Whether the first record of a datagram is not encrypted.
fn is_open(datagram: &[u8]) -> bool {
    datagram.get(3..5) == Some(&[0, 0])
}

/// The only key of a client.
struct One(Vec<u8>);

impl PskResolver for One {
    fn resolve(&self, _: &[u8]) -> Option<Vec<u8>> {
        Some(self.0.clone())
    }
}

/// The session of a client.
pub(crate) struct Client {
    dtls: Dtls,
    began: Instant,
    is_connected: bool,
    /// The handshake has begun.
    is_begun: bool,
    is_over: bool,
    wakes_at: Option<Duration>,
    /// Messages that wait for the handshake, the newest of each id alone: a repetition of one that
    /// waits says nothing new.
    waiting: BTreeMap<[u8; 4], Bytes>,
    peer: Option<Peer>,
}

/// Messages that wait for a handshake; more are lost, and repeated.
const MAX_WAITING_MESSAGES: usize = 64;

impl Client {
    fn new(began: Instant, identity: &[u8], key: &[u8]) -> Result<Self, Error> {
        let config =
            config(|base| base.with_psk_client(identity.to_vec(), Arc::new(One(key.to_vec()))))?;
        let mut dtls = Dtls::new_12_psk(config, began);
        dtls.set_active(true);
        Ok(Self {
            dtls,
            began,
            is_connected: false,
            is_begun: false,
            is_over: false,
            wakes_at: None,
            waiting: BTreeMap::new(),
            peer: None,
        })
    }

    fn receive(&mut self, now: Duration, peer: Peer, bytes: &[u8], out: &mut Out) {
        self.step(now, peer, |dtls| dtls.handle_packet(bytes), out);
    }

    fn send(&mut self, now: Duration, peer: Peer, bytes: &[u8], out: &mut Out) {
        self.peer = Some(peer);
        if self.is_connected {
            return self.step(now, peer, |dtls| dtls.send_application_data(bytes).map(drop), out);
        }
        if let Some(head) = bytes.first_chunk::<4>()
            && self.waiting.len() < MAX_WAITING_MESSAGES
        {
            self.waiting.insert(*head, Bytes::copy_from_slice(bytes));
        }
        if !self.is_begun {
            self.is_begun = true;
            self.step(now, peer, |_| Ok(()), out);
        }
    }

    fn wake(&mut self, now: Duration, out: &mut Out) {
        if let Some(peer) = self.peer.filter(|_| self.wakes_at.is_some_and(|at| at <= now)) {
            self.step(now, peer, |_| Ok(()), out);
        }
    }

    fn close(&mut self, now: Duration, out: &mut Out) {
        if let Some(peer) = self.peer.filter(|_| self.is_connected && !self.is_over) {
            self.step(now, peer, Dtls::close, out);
            out.failed = None;
        }
    }

    fn step(
        &mut self,
        now: Duration,
        peer: Peer,
        input: impl FnOnce(&mut Dtls) -> Result<(), dimpl::Error>,
        out: &mut Out,
    ) {
        if self.is_over {
            return;
        }
        let (outcome, said) = advance(&mut self.dtls, self.began + now, input);
        out.datagrams.extend(said.datagrams.into_iter().map(|bytes| (peer, bytes)));
        out.messages.extend(said.messages.into_iter().map(|bytes| (peer, bytes)));
        self.wakes_at = said.wakes_at.map(|at| at.saturating_duration_since(self.began));
        if outcome.is_err() || said.is_closed {
            self.is_over = true;
            self.wakes_at = None;
            out.failed = Some(match (outcome, self.is_connected) {
                (Err(error), false) => {
                    format!("no DTLS session: {error}; does the server know this identity and key?")
                }
                (Err(error), true) => format!("the DTLS session broke: {error}"),
                (Ok(()), _) => "the server closed the DTLS session".to_owned(),
            });
        }
        if said.is_connected {
            self.is_connected = true;
            for bytes in std::mem::take(&mut self.waiting).into_values() {
                self.send(now, peer, &bytes, out);
            }
        }
    }
}
