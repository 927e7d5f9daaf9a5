//! What clients may cost by what they say of themselves, or by how slow they make themselves: each
//! has a share of a processor beyond what anybody gets who says nothing. One who really has a slow
//! link takes long for what was made for it, and never uses the share up.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::seats::Source;

/// Seconds of a processor that a client may have at once: one long answer in the dearest coding.
const BURST_S: f64 = 1.0;
/// What comes back of it in a second.
const SHARE: f64 = 0.05;
/// Clients with less than all of theirs, at most; more are not believed.
const MAX_CLIENTS: usize = 4096;

/// What a client has left, and when that was so.
struct Left {
    seconds: f64,
    at: Instant,
}

impl Left {
    fn by(&self, now: Instant) -> f64 {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        (self.seconds + since * SHARE).min(BURST_S)
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Budgets {
    clients: Mutex<BTreeMap<Source, Left>>,
}

impl Budgets {
    /// Takes so many seconds of a client's share, if they are left.
    pub(crate) fn take(&self, now: Instant, client: Source, seconds: f64) -> bool {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= MAX_CLIENTS && !clients.contains_key(&client) {
            clients.retain(|_, left| left.by(now) < BURST_S);
            if clients.len() >= MAX_CLIENTS {
                return false;
            }
        }
        let left = clients.get(&client).map_or(BURST_S, |left| left.by(now)) - seconds;
        // Not so for what is no number.
        let enough = left >= 0.0;
        if enough {
            clients.insert(client, Left { seconds: left, at: now });
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::Duration;

    use super::*;

    fn client(number: u32) -> Source {
        Source::of(IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + number)))
    }

    #[test]
    fn a_share_is_used_up_and_comes_back() {
        let (budgets, now) = (Budgets::default(), Instant::now());
        let later = |s: f64| now + Duration::from_secs_f64(s);
        assert!(budgets.take(now, client(1), 0.75) && !budgets.take(now, client(1), 0.5));
        assert!(budgets.take(now, client(2), 0.5), "another's is whole");
        assert!(!budgets.take(later(4.0), client(1), 0.5));
        assert!(budgets.take(later(6.0), client(1), 0.5));
        assert!(!budgets.take(later(1e6), client(1), 1.5), "never more than all of it");
        assert!(!budgets.take(now, client(3), f64::NAN) && !budgets.take(now, client(3), 1e300));
    }

    #[test]
    fn clients_are_bounded_and_those_with_a_whole_share_go_first() {
        let (budgets, now) = (Budgets::default(), Instant::now());
        let most = u32::try_from(MAX_CLIENTS).unwrap();
        assert!((0..most).all(|number| budgets.take(now, client(number), 0.5)));
        assert!(!budgets.take(now, client(most), 0.1));
        assert!(budgets.take(now, client(0), 0.1));
        let later = now + Duration::from_secs(11);
        assert!(budgets.take(later, client(most), 0.1));
        assert!(budgets.clients.lock().unwrap().len() <= 2);
    }
}
