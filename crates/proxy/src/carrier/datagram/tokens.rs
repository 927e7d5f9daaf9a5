//! Tokens that show that somebody receives at an address, and how much is done for whom does not
//! have one: a first message costs the gateway four multiplications on a curve, some 0.2 ms.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use proto::sealed::TOKEN_BYTES;
use ring::hmac;

use crate::seats::Source;

/// A token is good for one to two of these.
const PERIOD: Duration = Duration::from_secs(16);
/// No token is good for longer.
pub(super) const GOOD_FOR: Duration = Duration::from_secs(32);
/// First messages that are looked at in a second: without a token, with one, and of one source.
const MAX_STRANGERS: u32 = 64;
const MAX_LOOKS: u32 = 512;
const MAX_OF_SOURCE: u32 = 16;
/// Connections that are said not to be known, in a second.
const MAX_RESETS: u32 = 256;
/// The same of sources from which a peer has come before.
const MAX_OF_KNOWN: u32 = 512;
/// Sources of peers that are remembered.
const MAX_KNOWN: usize = 1024;
/// Sources that are told apart in a second; beyond it others wait for the next.
const MAX_SOURCES: usize = 1024;

/// See the module.
pub(super) struct Tokens {
    secret: hmac::Key,
    began: Instant,
    second: u64,
    strangers: u32,
    looked_at: u32,
    resets: u32,
    of: BTreeMap<Source, u32>,
    /// Sources of peers, and first messages of all of them in this second.
    known: BTreeSet<Source>,
    of_known: u32,
}

/// What to do with a first message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Look at it; whether it has a token that is good.
    Look {
        /// As above.
        has_token: bool,
    },
    /// Answer with a token.
    Retry,
    /// Nothing: there are too many.
    Drop,
}

impl Tokens {
    pub(super) fn new(now: Instant) -> Option<Self> {
        let random = ring::rand::SystemRandom::new();
        let secret = hmac::Key::generate(hmac::HMAC_SHA256, &random).ok()?;
        let of = BTreeMap::new();
        let (second, strangers, looked_at, resets) = (0, 0, 0, 0);
        let (known, of_known) = (BTreeSet::new(), 0);
        Some(Self { secret, began: now, second, strangers, looked_at, resets, of, known, of_known })
    }

    fn turn(&self, now: Instant) -> u64 {
        now.duration_since(self.began).as_secs() / PERIOD.as_secs()
    }

    fn of_turn(&self, address: SocketAddr, turn: u64) -> [u8; TOKEN_BYTES] {
        let what = format!("{address} {turn}");
        let tag = hmac::sign(&self.secret, what.as_bytes());
        let mut token = [0; TOKEN_BYTES];
        token[0] = turn.to_be_bytes()[7];
        token[1..].copy_from_slice(&tag.as_ref()[..TOKEN_BYTES - 1]);
        token
    }

    /// A token for an address.
    pub(super) fn make(&self, now: Instant, address: SocketAddr) -> [u8; TOKEN_BYTES] {
        self.of_turn(address, self.turn(now))
    }

    fn is_good(&self, now: Instant, address: SocketAddr, token: &[u8; TOKEN_BYTES]) -> bool {
        let turn = self.turn(now);
        let tried = [Some(turn), turn.checked_sub(1)];
        let tried = tried.into_iter().flatten().find(|one| one.to_be_bytes()[7] == token[0]);
        let expected = tried.map(|turn| self.of_turn(address, turn));
        // What is compared is no secret of anybody who can measure how long it takes: the tag is
        // made for each address anew.
        expected.is_some_and(|expected| {
            let differs = expected.iter().zip(token).fold(0, |sum, (a, b)| sum | (a ^ b));
            differs == 0
        })
    }

    fn look_at_clock(&mut self, now: Instant) {
        let second = now.duration_since(self.began).as_secs();
        if second != self.second {
            (self.second, self.strangers, self.looked_at, self.resets) = (second, 0, 0, 0);
            self.of_known = 0;
            self.of.clear();
        }
    }

    /// A peer has come from an address.
    pub(super) fn know(&mut self, address: SocketAddr) {
        if self.known.len() < MAX_KNOWN {
            self.known.insert(Source::of(address.ip()));
        }
    }

    /// Whether to tell one more that its connection is not known.
    pub(super) fn may_reset(&mut self, now: Instant) -> bool {
        self.look_at_clock(now);
        self.resets += 1;
        self.resets <= MAX_RESETS
    }

    /// What to do with a first message from an address.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        address: SocketAddr,
        token: Option<&[u8; TOKEN_BYTES]>,
    ) -> Admission {
        self.look_at_clock(now);
        let has_token = token.is_some_and(|token| self.is_good(now, address, token));
        if !has_token && self.strangers >= MAX_STRANGERS {
            return Admission::Retry;
        }
        let source = Source::of(address.ip());
        if has_token && self.known.contains(&source) {
            // Whoever holds many addresses keeps no peer out that was here before.
            self.of_known += 1;
            let most = if self.of_known <= MAX_OF_KNOWN { MAX_OF_SOURCE } else { 0 };
            let of_source = self.of.entry(source).or_default();
            *of_source += 1;
            let is_less = *of_source <= most;
            return if is_less { Admission::Look { has_token } } else { Admission::Drop };
        }
        let is_new = !self.of.contains_key(&source);
        if self.looked_at >= MAX_LOOKS || (is_new && self.of.len() >= MAX_SOURCES) {
            return Admission::Drop;
        }
        let of_source = self.of.entry(source).or_default();
        // Without a token the source may be anybody's.
        if has_token && *of_source >= MAX_OF_SOURCE {
            return Admission::Drop;
        }
        *of_source += u32::from(has_token);
        self.strangers += u32::from(!has_token);
        self.looked_at += 1;
        Admission::Look { has_token }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_token_is_good_for_its_address_and_a_while() {
        let now = Instant::now();
        let mut tokens = Tokens::new(now).unwrap();
        let (ours, other) = (at("192.0.2.1:5000"), at("192.0.2.1:5001"));
        let token = tokens.make(now, ours);
        let look = |has_token| Admission::Look { has_token };
        assert_eq!(tokens.admit(now, ours, Some(&token)), look(true));
        assert_eq!(tokens.admit(now, other, Some(&token)), look(false));
        assert_eq!(tokens.admit(now + PERIOD, ours, Some(&token)), look(true));
        assert_eq!(tokens.admit(now + PERIOD * 2, ours, Some(&token)), look(false));
        let mut forged = token;
        forged[5] ^= 1;
        assert_eq!(tokens.admit(now, ours, Some(&forged)), look(false));
        let others = Tokens::new(now).unwrap().make(now, ours);
        assert_eq!(tokens.admit(now, ours, Some(&others)), look(false));
    }

    #[test]
    fn a_flood_from_made_up_addresses_costs_little_and_keeps_nobody_out() {
        let now = Instant::now();
        let mut tokens = Tokens::new(now).unwrap();
        let mut looked_at = 0;
        for host in 0..100_000_u32 {
            let address = SocketAddr::from((host.to_be_bytes(), 9));
            looked_at += u32::from(tokens.admit(now, address, None) != Admission::Retry);
        }
        assert_eq!(looked_at, MAX_STRANGERS);
        let ours = at("198.51.100.7:4000");
        assert_eq!(tokens.admit(now, ours, None), Admission::Retry);
        let token = tokens.make(now, ours);
        assert_eq!(tokens.admit(now, ours, Some(&token)), Admission::Look { has_token: true });
        // Whoever has an address has its share of the time.
        let of_one = (0..1000).filter(|_| tokens.admit(now, ours, Some(&token)) != Admission::Drop);
        assert_eq!(of_one.count(), 15);
        let other = at("203.0.113.9:1");
        let token = tokens.make(now, other);
        assert_eq!(tokens.admit(now, other, Some(&token)), Admission::Look { has_token: true });
        assert!(tokens.of.len() <= MAX_SOURCES);
    }
}
