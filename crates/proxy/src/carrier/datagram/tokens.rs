//! Tokens that show that somebody receives at an address, and who is given one: a first message
//! costs the gateway four multiplications on a curve, some 0.2 ms.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use proto::sealed::TOKEN_BYTES;
use ring::hmac;

use crate::carrier::looks::{Admission, Looks};

/// A token is good for one to two of these.
const PERIOD: Duration = Duration::from_secs(16);
/// No token is good for longer.
pub(super) const GOOD_FOR: Duration = Duration::from_secs(32);
/// First messages that are looked at in a second.
const MAX_LOOKS: u32 = 512;
/// Connections that are said not to be known, in a second.
const MAX_RESETS: u32 = 256;

/// See the module.
pub(super) struct Tokens {
    secret: hmac::Key,
    began: Instant,
    second: u64,
    resets: u32,
    looks: Looks,
}

impl Tokens {
    pub(super) fn new(now: Instant) -> Option<Self> {
        let random = ring::rand::SystemRandom::new();
        let secret = hmac::Key::generate(hmac::HMAC_SHA256, &random).ok()?;
        Some(Self { secret, began: now, second: 0, resets: 0, looks: Looks::new(now, MAX_LOOKS) })
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

    /// A peer has come from an address.
    pub(super) fn know(&mut self, address: SocketAddr) {
        self.looks.know(address);
    }

    /// Whether to tell one more that its connection is not known.
    pub(super) fn may_reset(&mut self, now: Instant) -> bool {
        let second = now.duration_since(self.began).as_secs();
        if second != self.second {
            (self.second, self.resets) = (second, 0);
        }
        self.resets += 1;
        self.resets <= MAX_RESETS
    }

    /// What to do with a first message from an address, and whether it has a token that is good.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        address: SocketAddr,
        token: Option<&[u8; TOKEN_BYTES]>,
    ) -> (Admission, bool) {
        let has_token = token.is_some_and(|token| self.is_good(now, address, token));
        (self.looks.admit(now, address, has_token), has_token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::looks::{AT_ONCE, MAX_OF_SOURCE};

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_token_is_good_for_its_address_and_a_while() {
        let now = Instant::now();
        let mut tokens = Tokens::new(now).unwrap();
        let (ours, other) = (at("192.0.2.1:5000"), at("192.0.2.1:5001"));
        let token = tokens.make(now, ours);
        let look = |has_token| (Admission::Look, has_token);
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
            looked_at += u32::from(tokens.admit(now, address, None).0 != Admission::Retry);
        }
        assert_eq!(looked_at, AT_ONCE);
        // Whoever receives at its address is let in, and has its share of the time.
        let later = |ms| now + Duration::from_millis(ms);
        let ours = at("198.51.100.7:4000");
        assert_eq!(tokens.admit(now, ours, None).0, Admission::Retry);
        let token = tokens.make(now, ours);
        let of_one = (10..990)
            .filter(|ms| tokens.admit(later(*ms), ours, Some(&token)) == (Admission::Look, true));
        assert_eq!(of_one.count(), MAX_OF_SOURCE as usize);
        let other = at("203.0.113.9:1");
        let token = tokens.make(now, other);
        assert_eq!(tokens.admit(later(995), other, Some(&token)), (Admission::Look, true));
    }
}
