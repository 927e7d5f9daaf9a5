//! How long datagrams may be. The path may cut up those that are longer than it takes at once, and
//! a router or firewall on it may drop the pieces, with no ICMP message that says so: then it is
//! found by which datagrams arrive (RFC 8899 §4.3, detection of black holes).

use std::time::Duration;

use super::sent::Datagram;
use super::{FIRST_DATAGRAM_BYTES, MAX_DATAGRAM_BYTES};

/// Most bytes of a datagram that any path over IPv4 takes in one piece: of a packet of 576 bytes
/// (RFC 791 §3.1) without the heads of IPv4 and UDP, and the 24 bytes that seal it.
const SHORT_BYTES: usize = 576 - 20 - 8 - 24;
/// What makes both ends known to each other takes this of the first datagrams.
const FIRST_BESIDE_BYTES: usize = MAX_DATAGRAM_BYTES - FIRST_DATAGRAM_BYTES;
/// Long datagrams are swallowed by the path once so many in a row were lost, and so many times a
/// short one that left after a lost one arrived: an outage is such a time, but only one. By chance
/// it is so once in more than 15,000 of them at a loss of 20 %.
const MIN_LOST: u32 = 6;
const MIN_TURNS: u32 = 2;
/// Where they were swallowed before, fewer say that they still are.
const MIN_LOST_AGAIN: u32 = 2;
const MIN_TURNS_AGAIN: u32 = 1;
/// Lost ones in a row from which on a short datagram is sent along with what is overdue.
const SUSPICIOUS: u32 = 2;
/// How long datagrams stay short until long ones are tried again: at first, and at most.
const MIN_PAUSE: Duration = Duration::from_secs(60);
const MAX_PAUSE: Duration = Duration::from_secs(600);

/// See the module.
#[derive(Debug)]
pub(super) struct Lengths {
    /// Until then datagrams are short.
    short_until: Option<Duration>,
    /// How long they stay short the next time.
    pause: Duration,
    /// Long datagrams that were lost since one arrived.
    lost: u32,
    /// How often since then a short one arrived that had left after a long one that was lost and
    /// that had left after the short one before.
    turns: u32,
    /// The greatest number of a short one that arrived, and of that with the last of the turns.
    short: u64,
    turned: u64,
}

impl Lengths {
    pub(super) fn new() -> Self {
        let (short_until, pause) = (None, MIN_PAUSE);
        Self { short_until, pause, lost: 0, turns: 0, short: 0, turned: 0 }
    }

    /// Most bytes of a datagram; `is_first`: it holds what makes both ends known to each other.
    pub(super) fn most(&self, now: Duration, is_first: bool) -> usize {
        let most = match self.short_until {
            Some(until) if now < until => SHORT_BYTES,
            _ => MAX_DATAGRAM_BYTES,
        };
        if is_first { most - FIRST_BESIDE_BYTES } else { most }
    }

    /// Whether a datagram of so many bytes is one that a path may swallow for its length.
    pub(super) fn is_long(len: usize, is_first: bool) -> bool {
        len + if is_first { FIRST_BESIDE_BYTES } else { 0 } > SHORT_BYTES
    }

    /// Whether a short datagram may show that long ones are swallowed.
    pub(super) fn is_suspicious(&self) -> bool {
        self.lost >= SUSPICIOUS
    }

    /// Datagrams arrived.
    pub(super) fn arrived(&mut self, datagrams: &[Datagram]) {
        for datagram in datagrams {
            if datagram.long {
                (self.lost, self.turns) = (0, 0);
                (self.short_until, self.pause) = (None, MIN_PAUSE);
            } else {
                self.short = self.short.max(datagram.number);
            }
        }
    }

    /// Datagrams are lost. Whether those that leave have to be shorter from now on.
    pub(super) fn lost(&mut self, now: Duration, datagrams: &[Datagram]) -> bool {
        for datagram in datagrams.iter().filter(|datagram| datagram.long) {
            self.lost = self.lost.saturating_add(1);
            if datagram.number > self.turned && datagram.number < self.short {
                self.turns = self.turns.saturating_add(1);
                self.turned = self.short;
            }
        }
        let (lost, turns) = match self.short_until {
            None => (MIN_LOST, MIN_TURNS),
            Some(until) if now >= until => (MIN_LOST_AGAIN, MIN_TURNS_AGAIN),
            Some(_) => return false,
        };
        if self.lost < lost || self.turns < turns {
            return false;
        }
        (self.lost, self.turns) = (0, 0);
        self.short_until = Some(now + self.pause);
        self.pause = (self.pause * 2).min(MAX_PAUSE);
        true
    }
}
