//! What is known of each peer, and for how many there is room.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::round_trip::RoundTrip;
use super::seen::{Mids, Seen};
use super::settings::{Address, MAX_NEW_PEERS, MAX_PEERS};

/// What a message that waits for its slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A request of ours, or its renewal.
    Request(u64),
    /// A separate response.
    Response(u64),
    /// A notification.
    Notification(u64),
    /// A ping.
    Ping(u64),
}

/// The one message to a peer that is outstanding (RFC 7252 §4.7: NSTART is 1).
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) purpose: Purpose,
    pub(super) mid: u16,
    pub(super) bytes: Bytes,
    /// Whether it is transmitted again; else it only holds the slot for a while.
    pub(super) is_repeated: bool,
    /// When the first transmission had left.
    pub(super) left_at: Duration,
    pub(super) tries: u32,
    pub(super) timeout: Duration,
}

/// One peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) mids: Mids,
    pub(super) round_trip: RoundTrip,
    pub(super) flight: Option<Flight>,
    /// Bounded by the requests, exchanges and observations that the peer may have.
    pub(super) queue: VecDeque<Purpose>,
    pub(super) seen: Seen,
    /// Whether it has shown that it gets what is sent to its address.
    pub(super) is_validated: bool,
    /// Whether it is one of those that there is more room for.
    is_known: bool,
    used_at: Duration,
    /// How many of ours and of its own are open.
    pub(super) requests: usize,
    pub(super) exchanges: usize,
    pub(super) observations: usize,
}

impl Peer {
    fn new(now: Duration, first_mid: u16, is_known: bool) -> Self {
        Self {
            mids: Mids::new(first_mid),
            round_trip: RoundTrip::new(now),
            flight: None,
            queue: VecDeque::new(),
            seen: Seen::default(),
            is_validated: false,
            is_known,
            used_at: now,
            requests: 0,
            exchanges: 0,
            observations: 0,
        }
    }

    /// Whether it may not be forgotten. A new one may, whatever it has open: else a few forged
    /// addresses could keep all others out.
    fn is_held(&self) -> bool {
        self.requests > 0 || (self.is_known && self.exchanges + self.observations > 0)
    }
}

/// What came of [`Peers::enter`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entered<P> {
    /// It has a place, and another peer lost its own if one is named.
    Yes(Option<P>),
    /// There is no place.
    No,
}

/// All peers.
#[derive(Debug)]
pub(super) struct Peers<P> {
    peers: BTreeMap<P, Peer>,
    /// Whether it is known, when it was used last.
    by_use: BTreeSet<(bool, Duration, P)>,
    known: usize,
}

impl<P: Address> Peers<P> {
    pub(super) fn new() -> Self {
        Self { peers: BTreeMap::new(), by_use: BTreeSet::new(), known: 0 }
    }

    pub(super) fn get_mut(&mut self, peer: P) -> Option<&mut Peer> {
        self.peers.get_mut(&peer)
    }

    pub(super) fn get(&self, peer: P) -> Option<&Peer> {
        self.peers.get(&peer)
    }

    /// Notes that there is something to do with a peer; `is_known`: as this side wants it, or as it
    /// has shown that it has its address. `first_mid` is for one that is new.
    pub(super) fn enter(
        &mut self,
        now: Duration,
        peer: P,
        is_known: bool,
        first_mid: u16,
    ) -> Entered<P> {
        let before = self.peers.get(&peer).map(|place| (place.is_known, place.used_at));
        let is_known = is_known || before.is_some_and(|(is_known, _)| is_known);
        let grows = before.is_none_or(|(was_known, _)| was_known != is_known);
        let forgotten = match grows && self.is_full(is_known) {
            false => None,
            true => match self.oldest(is_known) {
                Some(oldest) => Some(oldest),
                None => return Entered::No,
            },
        };
        if let Some(forgotten) = forgotten {
            self.remove(forgotten);
        }
        if let Some((was_known, used_at)) = before {
            self.by_use.remove(&(was_known, used_at, peer));
            self.known -= usize::from(was_known);
        }
        let place = self.peers.entry(peer).or_insert_with(|| Peer::new(now, first_mid, is_known));
        (place.is_known, place.used_at) = (is_known, now);
        self.by_use.insert((is_known, now, peer));
        self.known += usize::from(is_known);
        Entered::Yes(forgotten)
    }

    fn is_full(&self, is_known: bool) -> bool {
        match is_known {
            true => self.known >= MAX_PEERS,
            false => self.peers.len() - self.known >= MAX_NEW_PEERS,
        }
    }

    /// The one that was used longest ago of those that may go.
    fn oldest(&self, is_known: bool) -> Option<P> {
        let of_kind = self.by_use.iter().filter(|(other, ..)| *other == is_known);
        let mut free = of_kind
            .filter(|(_, _, peer)| self.peers.get(peer).is_some_and(|place| !place.is_held()));
        free.next().map(|(_, _, peer)| *peer)
    }

    fn remove(&mut self, peer: P) {
        if let Some(place) = self.peers.remove(&peer) {
            self.by_use.remove(&(place.is_known, place.used_at, peer));
            self.known -= usize::from(place.is_known);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.peers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_finds_a_place_and_known_ones_keep_theirs() {
        let mut peers = Peers::<u32>::new();
        let at = |ms: u32| Duration::from_millis(ms.into());
        assert_eq!(peers.enter(at(0), 0, true, 0), Entered::Yes(None));
        for peer in 1..=u32::try_from(MAX_NEW_PEERS).unwrap() {
            assert_eq!(peers.enter(at(peer), peer, false, 0), Entered::Yes(None));
        }
        peers.get_mut(1).unwrap().exchanges = 1;
        assert_eq!(peers.enter(at(1000), 5000, false, 0), Entered::Yes(Some(1)));
        assert_eq!(peers.enter(at(1001), 2, false, 0), Entered::Yes(None));
        assert_eq!(peers.enter(at(1002), 5001, false, 0), Entered::Yes(Some(3)));
        // One that shows who it is leaves its place to others.
        assert_eq!(peers.enter(at(1003), 2, true, 0), Entered::Yes(None));
        assert_eq!(peers.enter(at(1004), 5002, false, 0), Entered::Yes(None));
        assert_eq!(peers.len(), MAX_NEW_PEERS + 2);
        assert!(peers.get(0).is_some());
    }

    #[test]
    fn known_ones_with_something_open_are_not_forgotten() {
        let mut peers = Peers::<u32>::new();
        for peer in 0..u32::try_from(MAX_PEERS).unwrap() {
            assert_eq!(peers.enter(Duration::ZERO, peer, true, 0), Entered::Yes(None));
            peers.get_mut(peer).unwrap().requests = 1;
        }
        assert_eq!(peers.enter(Duration::ZERO, 9999, true, 0), Entered::No);
        peers.get_mut(17).unwrap().requests = 0;
        assert_eq!(peers.enter(Duration::ZERO, 9999, true, 0), Entered::Yes(Some(17)));
    }
}
