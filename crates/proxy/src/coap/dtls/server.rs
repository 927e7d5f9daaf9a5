//! The sessions of a server.
//!
//! | who | how many | who goes when there is no room |
//! | --- | --- | --- |
//! | has said hello | [`MAX_STRANGERS`] | the oldest of them |
//! | has returned the cookie | [`MAX_HANDSHAKES`], [`MAX_HANDSHAKES_PER_SOURCE`] | the newest |
//! | has shown a key | [`MAX_SESSIONS`], [`MAX_SESSIONS_PER_SOURCE`] | who was silent longest |
//!
//! An open session stays until another one from the same address has shown a key (RFC 6347 §4.2.8).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dimpl::{Config, Dtls};
use proto::timers::Timers;

use super::super::socket::Peer;
use super::keys::Keys;
use super::{
    ALERT, CLIENT_HELLO, HANDSHAKE, MAX_HANDSHAKE, Out, Said, advance, config, is_open, message_of,
};
use crate::Error;
use crate::seats::Source;

/// Handshakes of who has not yet shown that he has his address.
pub(super) const MAX_STRANGERS: usize = 64;
/// Handshakes of who has.
pub(super) const MAX_HANDSHAKES: usize = 128;
/// Those of one source.
pub(super) const MAX_HANDSHAKES_PER_SOURCE: usize = 16;
/// Sessions: as many as the endpoint has peers.
pub(super) const MAX_SESSIONS: usize = proto::coap::machine::MAX_PEERS;
/// Those of one source.
pub(super) const MAX_SESSIONS_PER_SOURCE: usize = MAX_SESSIONS / 4;
/// A session in which nothing comes for so long is over.
pub(super) const MAX_SILENCE: Duration = Duration::from_secs(3600);

/// A deadline that has passed is asked for no sooner again.
const MIN_PAUSE: Duration = Duration::from_millis(1);

/// Whence datagrams come, and where they came to.
type SessionPlace = (SocketAddr, Option<IpAddr>);

/// What has a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Handshake(SessionPlace),
    Session(SessionPlace),
    Silence(SessionPlace),
}

/// A handshake.
struct Handshake {
    dtls: Dtls,
    number: u64,
    began_at: Duration,
    /// It has returned the cookie.
    is_verified: bool,
}

struct Session {
    dtls: Dtls,
    number: u64,
    heard_at: Duration,
}

/// See the module.
pub(crate) struct Sessions {
    config: Arc<Config>,
    began: Instant,
    handshakes: BTreeMap<SessionPlace, Handshake>,
    open: BTreeMap<SessionPlace, Session>,
    timers: Timers<Timer>,
    last: u64,
}

fn source(place: &SessionPlace) -> Source {
    Source::of(place.0.ip().to_canonical())
}

impl Sessions {
    pub(super) fn new(began: Instant, keys: Keys) -> Result<Self, Error> {
        let config =
            config(|base| base.use_server_cookie(true).with_psk_server(None, Arc::new(keys)))?;
        Ok(Self {
            config,
            began,
            handshakes: BTreeMap::new(),
            open: BTreeMap::new(),
            timers: Timers::default(),
            last: 0,
        })
    }

    pub(super) fn wakes_at(&self) -> Option<Duration> {
        self.timers.next()
    }

    pub(super) fn receive(&mut self, now: Duration, peer: Peer, bytes: &[u8], out: &mut Out) {
        let place = (peer.address, peer.local);
        let (kind, is_open) = (bytes.first().copied().unwrap_or(0), is_open(bytes));
        let is_hello = is_open && kind == HANDSHAKE && message_of(bytes) == CLIENT_HELLO;
        // Anybody can send such an alert.
        if is_open && kind == ALERT {
            return;
        }
        if !is_hello && self.open.contains_key(&place) {
            let packet = |dtls: &mut Dtls| dtls.handle_packet(bytes);
            self.advance(now, peer, packet, out);
        }
        if is_hello && !self.handshakes.contains_key(&place) {
            self.begin(now, place);
        }
        if self.handshakes.contains_key(&place) {
            self.shake(now, peer, |dtls| dtls.handle_packet(bytes), out);
        }
    }

    /// A place for a handshake with who may have forged his address.
    fn begin(&mut self, now: Duration, place: SessionPlace) {
        let strangers = self.handshakes.iter().filter(|(_, it)| !it.is_verified);
        let oldest = strangers.clone().min_by_key(|(_, it)| it.number).map(|(place, _)| *place);
        if strangers.count() >= MAX_STRANGERS
            && let Some(oldest) = oldest
        {
            self.give_up(oldest);
        }
        self.last += 1;
        let dtls = Dtls::new_12_psk(Arc::clone(&self.config), self.began + now);
        let number = self.last;
        let handshake = Handshake { dtls, number, began_at: now, is_verified: false };
        self.handshakes.insert(place, handshake);
    }

    fn give_up(&mut self, place: SessionPlace) {
        self.handshakes.remove(&place);
        self.timers.set(Timer::Handshake(place), None);
    }

    fn end(&mut self, place: SessionPlace) {
        self.open.remove(&place);
        self.timers.set(Timer::Session(place), None);
        self.timers.set(Timer::Silence(place), None);
    }

    /// Goes on with a handshake.
    fn shake(
        &mut self,
        now: Duration,
        peer: Peer,
        input: impl FnOnce(&mut Dtls) -> Result<(), dimpl::Error>,
        out: &mut Out,
    ) {
        let place = (peer.address, peer.local);
        let at = self.began + now;
        let Some(shaking) = self.handshakes.get_mut(&place) else { return };
        let (outcome, said) = advance(&mut shaking.dtls, at, input);
        let was_verified = shaking.is_verified;
        shaking.is_verified |= said.is_past_cookie;
        let (number, latest) = (shaking.number, shaking.began_at + MAX_HANDSHAKE);
        if !was_verified && said.is_past_cookie && !self.has_room(&place) {
            return self.give_up(place);
        }
        let next = self.say(Peer { session: number, ..peer }, said, out);
        // One that has not returned the cookie waits no longer than one that has.
        if outcome.is_err() || next.is_closed || now >= latest {
            return self.give_up(place);
        }
        let at = next.at.map_or(latest, |at| at.min(latest)).max(now + MIN_PAUSE);
        self.timers.set(Timer::Handshake(place), Some(at));
        if next.is_connected {
            self.connect(now, place);
        }
    }

    /// Whether there is room for one more handshake behind the cookie, this one included.
    fn has_room(&self, place: &SessionPlace) -> bool {
        let verified = self.handshakes.iter().filter(|(_, it)| it.is_verified);
        let of_source =
            verified.clone().filter(|(other, _)| source(other) == source(place)).count();
        verified.count() <= MAX_HANDSHAKES && of_source <= MAX_HANDSHAKES_PER_SOURCE
    }

    /// The peer has shown a key.
    fn connect(&mut self, now: Duration, place: SessionPlace) {
        let Some(Handshake { dtls, number, .. }) = self.handshakes.remove(&place) else { return };
        self.timers.set(Timer::Handshake(place), None);
        self.end(place);
        let of_source = self.open.keys().filter(|other| source(other) == source(&place)).count();
        let is_full = self.open.len() >= MAX_SESSIONS;
        if is_full || of_source >= MAX_SESSIONS_PER_SOURCE {
            let all = self.open.iter();
            let mine = all.filter(|(it, _)| {
                of_source < MAX_SESSIONS_PER_SOURCE || source(it) == source(&place)
            });
            let silent = mine.min_by_key(|(_, session)| session.heard_at).map(|(it, _)| *it);
            silent.into_iter().for_each(|silent| self.end(silent));
        }
        self.open.insert(place, Session { dtls, number, heard_at: now });
        self.timers.set(Timer::Silence(place), Some(now + MAX_SILENCE));
        self.timers.set(Timer::Session(place), Some(now));
    }

    /// Goes on with a session.
    fn advance(
        &mut self,
        now: Duration,
        peer: Peer,
        input: impl FnOnce(&mut Dtls) -> Result<(), dimpl::Error>,
        out: &mut Out,
    ) {
        let place = (peer.address, peer.local);
        let at = self.began + now;
        let Some(session) = self.open.get_mut(&place) else { return };
        let (outcome, said) = advance(&mut session.dtls, at, input);
        if !said.messages.is_empty() {
            session.heard_at = now;
            self.timers.set(Timer::Silence(place), Some(now + MAX_SILENCE));
        }
        let peer = Peer { session: session.number, ..peer };
        let next = self.say(peer, said, out);
        let at = next.at.map(|at| at.max(now + MIN_PAUSE));
        match outcome.is_err() || next.is_closed {
            true => self.end(place),
            false => self.timers.set(Timer::Session(place), at),
        }
    }

    fn say(&self, peer: Peer, said: Said, out: &mut Out) -> Next {
        out.datagrams.extend(said.datagrams.into_iter().map(|bytes| (peer, bytes)));
        out.messages.extend(said.messages.into_iter().map(|bytes| (peer, bytes)));
        let at = said.wakes_at.map(|at| at.saturating_duration_since(self.began));
        Next { at, is_closed: said.is_closed, is_connected: said.is_connected }
    }

    pub(super) fn send(&mut self, now: Duration, peer: Peer, bytes: &[u8], out: &mut Out) {
        let session = self.open.get(&(peer.address, peer.local));
        if session.is_some_and(|session| session.number == peer.session) {
            self.advance(now, peer, |dtls| dtls.send_application_data(bytes).map(drop), out);
        }
    }

    pub(super) fn wake(&mut self, now: Duration, out: &mut Out) {
        while let Some(timer) = self.timers.pop(now) {
            let peer = |(address, local): SessionPlace| Peer { address, local, session: 0 };
            match timer {
                Timer::Handshake(place) => {
                    self.shake(now, peer(place), |_| Ok(()), out);
                }
                Timer::Session(place) => self.advance(now, peer(place), |_| Ok(()), out),
                Timer::Silence(place) => {
                    self.advance(now, peer(place), Dtls::close, out);
                    self.end(place);
                }
            }
        }
    }

    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.handshakes.len(), self.open.len())
    }
}

/// What follows what a session has said.
struct Next {
    at: Option<Duration>,
    is_closed: bool,
    is_connected: bool,
}
