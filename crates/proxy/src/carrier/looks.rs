//! How many handshakes of strangers a port over UDP looks at: each costs some tenths of a
//! millisecond, for which what peers send has to wait, so that they are few, and spread.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant;

use crate::seats::Source;

/// Handshakes without a token that are looked at in a second, and those of one source with one.
pub(super) const MAX_STRANGERS: u32 = 64;
pub(super) const MAX_OF_SOURCE: u32 = 16;
/// Of any of these so many at once.
pub(super) const AT_ONCE: u32 = 16;
/// Sources of peers that are remembered.
const MAX_KNOWN: usize = 1024;
/// Sources that are told apart in a second; beyond it others wait for the next.
pub(super) const MAX_SOURCES: usize = 1024;

/// So many a second, spread over it.
#[derive(Debug)]
struct Spread {
    per_s: u32,
    left: f64,
    at: Instant,
}

impl Spread {
    fn new(now: Instant, per_s: u32) -> Self {
        Self { per_s, left: f64::from(AT_ONCE), at: now }
    }

    /// Whether there is one now.
    fn has(&mut self, now: Instant) -> bool {
        let more = now.saturating_duration_since(self.at).as_secs_f64() * f64::from(self.per_s);
        (self.left, self.at) = ((self.left + more).min(f64::from(AT_ONCE)), now);
        self.left >= 1.0
    }

    fn take(&mut self) {
        self.left -= 1.0;
    }
}

/// What to do with a handshake that begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Look at it.
    Look,
    /// Answer with a token.
    Retry,
    /// Nothing: there are too many.
    Drop,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Looks {
    began: Instant,
    second: u64,
    strangers: Spread,
    all: Spread,
    of: BTreeMap<Source, u32>,
    /// Sources of peers, and what is looked at of all of them.
    known: BTreeSet<Source>,
    of_known: Spread,
}

impl Looks {
    /// `per_s`: looks in a second, and as many beside them at those from sources of peers.
    pub(super) fn new(now: Instant, per_s: u32) -> Self {
        let spread = |per_s| Spread::new(now, per_s);
        let (strangers, all) = (spread(MAX_STRANGERS), spread(per_s));
        let (of, known, of_known) = (BTreeMap::new(), BTreeSet::new(), spread(per_s));
        Self { began: now, second: 0, strangers, all, of, known, of_known }
    }

    /// A peer has come from an address.
    pub(super) fn know(&mut self, address: SocketAddr) {
        if self.known.len() < MAX_KNOWN {
            self.known.insert(Source::of(address.ip()));
        }
    }

    /// What to do with a handshake from an address; `is_there`: who began it receives there.
    pub(super) fn admit(&mut self, now: Instant, address: SocketAddr, is_there: bool) -> Admission {
        let second = now.saturating_duration_since(self.began).as_secs();
        if second != self.second {
            self.second = second;
            self.of.clear();
        }
        if !is_there && !self.strangers.has(now) {
            return Admission::Retry;
        }
        let source = Source::of(address.ip());
        let is_known = is_there && self.known.contains(&source);
        // Whoever holds many addresses keeps no peer out that was here before.
        let share = if is_known { &mut self.of_known } else { &mut self.all };
        let is_new = !self.of.contains_key(&source);
        if !share.has(now) || (is_new && !is_known && self.of.len() >= MAX_SOURCES) {
            return Admission::Drop;
        }
        // Without a token the source may be anybody's.
        let of_source = self.of.entry(source).or_default();
        if is_there && *of_source >= MAX_OF_SOURCE {
            return Admission::Drop;
        }
        *of_source += u32::from(is_there);
        share.take();
        if !is_there {
            self.strangers.take();
        }
        Admission::Look
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LOOKS: u32 = 500;

    fn at(host: u32) -> SocketAddr {
        SocketAddr::from((host.to_be_bytes(), 9))
    }

    /// Of 2,000 handshakes a second, each from an address of its own, those that are looked at: in
    /// all, and the most in a hundredth of a second.
    fn looked_at(looks: &mut Looks, began: Instant, is_there: bool, seconds: u32) -> (u32, u32) {
        let (mut all, mut most) = (0, 0);
        for tick in 0..seconds * 100 {
            let now = began + Duration::from_millis(10) * tick;
            let looked = (0..20).filter(|one| {
                looks.admit(now, at(0x0a00_0000 + tick * 20 + one), is_there) == Admission::Look
            });
            let count = u32::try_from(looked.count()).unwrap();
            (all, most) = (all + count, most.max(count));
        }
        (all, most)
    }

    #[test]
    fn those_of_a_flood_that_are_looked_at_are_few_and_spread() {
        for (is_there, per_s) in [(false, MAX_STRANGERS), (true, LOOKS)] {
            let now = Instant::now();
            let mut looks = Looks::new(now, LOOKS);
            let (all, most) = looked_at(&mut looks, now, is_there, 10);
            assert!(all <= per_s * 10 + AT_ONCE && all > per_s * 9, "{is_there}: {all}");
            assert!(most <= AT_ONCE + per_s / 100, "{is_there}: {most} at once");
            assert!(looks.of.len() <= MAX_SOURCES);
        }
    }

    #[test]
    fn a_flood_from_addresses_that_are_its_own_keeps_no_known_peer_out() {
        let now = Instant::now();
        let mut looks = Looks::new(now, LOOKS);
        let ours = SocketAddr::from(([198, 51, 100, 7], 4000));
        looks.know(ours);
        for second in 0..3_u32 {
            looked_at(&mut looks, now + Duration::from_secs(1) * second, true, 1);
            let then = now + Duration::from_secs(1) * second + Duration::from_millis(999);
            assert_eq!(looks.admit(then, ours, true), Admission::Look, "{second}");
        }
        // And has its share all the same.
        let then = now + Duration::from_secs(4);
        let of_one = (0..100_u32).filter(|one| {
            let then = then + Duration::from_millis(9) * *one;
            looks.admit(then, ours, true) == Admission::Look
        });
        assert_eq!(of_one.count(), MAX_OF_SOURCE as usize);
    }
}
