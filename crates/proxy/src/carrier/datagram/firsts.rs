//! Which first messages are taken: each once, whatever the clocks of edges do and whoever plays one
//! back.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use super::tokens::GOOD_FOR;

/// First messages of a key with a token that are taken while tokens are good.
const MAX_ACCEPTED: usize = 64;

/// Whether a first message was made just now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fresh {
    Yes,
    No,
    /// A token would show it.
    Unknown,
}

/// First messages of a key that were accepted.
#[derive(Debug, Default)]
struct Accepted {
    latest_us: u64,
    /// When each of the last came, and its own time: as many as tokens are good for so long.
    last: VecDeque<(Instant, u64)>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Firsts {
    /// By the key of who dials.
    of: BTreeMap<[u8; 32], Accepted>,
}

impl Firsts {
    /// Whether a first message was made just now, of this key and at this time of its own: it is
    /// later than all before; or it has a token, and was not accepted with it before.
    pub(super) fn admit(
        &mut self,
        point: [u8; 32],
        at_us: u64,
        has_token: bool,
        now: Instant,
    ) -> Fresh {
        let Some(accepted) = self.of.get_mut(&point) else {
            return if has_token { Fresh::Yes } else { Fresh::Unknown };
        };
        while accepted.last.front().is_some_and(|(at, _)| now.duration_since(*at) > GOOD_FOR) {
            accepted.last.pop_front();
        }
        let is_repeated = accepted.last.iter().any(|(_, before)| *before == at_us);
        if at_us > accepted.latest_us {
            Fresh::Yes
        } else if is_repeated || accepted.last.len() >= MAX_ACCEPTED {
            Fresh::No
        } else if has_token {
            Fresh::Yes
        } else {
            Fresh::Unknown
        }
    }

    /// It is taken: not once more.
    pub(super) fn accept(&mut self, point: [u8; 32], at_us: u64, now: Instant) {
        // bound: one for each key of the peer file.
        let accepted = self.of.entry(point).or_default();
        accepted.latest_us = accepted.latest_us.max(at_us);
        accepted.last.push_back((now, at_us));
        // While there are so many none is taken that is not the latest, and by the time that there
        // are fewer no token is good that the oldest came with.
        if accepted.last.len() > MAX_ACCEPTED {
            accepted.last.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const KEY: [u8; 32] = [1; 32];
    const HOUR_US: u64 = 3_600_000_000;

    /// What becomes of a message, which is taken where it may be.
    fn came(firsts: &mut Firsts, at_us: u64, has_token: bool, now: Instant) -> Fresh {
        let fresh = firsts.admit(KEY, at_us, has_token, now);
        if fresh == Fresh::Yes {
            firsts.accept(KEY, at_us, now);
        }
        fresh
    }

    #[test]
    fn a_clock_that_jumps_costs_an_edge_a_token_and_lets_nothing_be_played_back() {
        let (mut firsts, now) = (Firsts::default(), Instant::now());
        let (noon, day) = (1000 * HOUR_US, 24 * HOUR_US);
        // Of a key of which nothing is known any message may be an old one.
        assert_eq!(came(&mut firsts, noon, false, now), Fresh::Unknown);
        assert_eq!(came(&mut firsts, noon, true, now), Fresh::Yes);
        assert_eq!(came(&mut firsts, noon + 1, false, now), Fresh::Yes);
        // A day ahead, and back: from then on the edge is asked, and let in.
        assert_eq!(came(&mut firsts, noon + day, false, now), Fresh::Yes);
        for (at, at_us) in [noon + 2, noon - HOUR_US, 0].into_iter().enumerate() {
            assert_eq!(came(&mut firsts, at_us, false, now), Fresh::Unknown, "{at}");
            assert_eq!(came(&mut firsts, at_us, true, now), Fresh::Yes, "{at}");
        }
        for at_us in [noon, noon + 1, noon + 2, noon + day, noon - HOUR_US, 0] {
            assert_eq!(came(&mut firsts, at_us, true, now), Fresh::No, "{at_us} again");
        }
        // No other key has anything of it.
        assert_eq!(firsts.admit([2; 32], noon, true, now), Fresh::Yes);
    }

    /// Its token is good for as long as GOOD_FOR: so long it must be remembered.
    #[test]
    fn none_of_many_first_messages_is_taken_once_more_while_its_token_is_good() {
        let (mut firsts, began) = (Firsts::default(), Instant::now());
        let at = |s: u64| began + Duration::from_secs(s);
        let many = MAX_ACCEPTED as u64;
        (1..=many).for_each(|one| assert_eq!(came(&mut firsts, one, true, at(0)), Fresh::Yes));
        assert_eq!(came(&mut firsts, many + 1, true, at(17)), Fresh::Yes);
        for (s, oldest) in [(17, 1), (32, 1), (33, many + 1), (48, many + 1)] {
            assert_eq!(came(&mut firsts, many + 1, true, at(s)), Fresh::No, "after {s} s");
            assert_eq!(came(&mut firsts, oldest, true, at(s)), Fresh::No, "{oldest} after {s} s");
        }
        // Whoever dials again and again takes no more memory.
        for one in 1000..2000 {
            assert_eq!(came(&mut firsts, one, true, at(60)), Fresh::Yes, "{one}");
        }
        assert!(firsts.of[&KEY].last.len() <= MAX_ACCEPTED);
        assert_eq!(came(&mut firsts, 1000, true, at(61)), Fresh::No);
    }
}
