//! What recipients that are no peers may cost by what they say of themselves, or by how slow they
//! make themselves: each account has a share of a processor beyond what anybody gets who says
//! nothing. One that really has a slow link takes long for what was made for it, and never uses the
//! share up.

use std::collections::BTreeMap;
use std::time::Duration;

/// Seconds of a processor that an account may have at once: one long answer in the dearest coding.
const MAX_BURST_S: f64 = 1.0;
/// What comes back of it in a second.
const SHARE: f64 = 0.05;
/// Accounts with less than all of theirs, at most; more are not believed.
const MAX_ACCOUNTS: usize = 4096;

/// What an account has left, and when that was so.
#[derive(Clone, Copy, Debug)]
struct Left {
    seconds: f64,
    at: Duration,
}

impl Left {
    fn by(&self, now: Duration) -> f64 {
        let since = now.saturating_sub(self.at).as_secs_f64();
        (self.seconds + since * SHARE).min(MAX_BURST_S)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    all: BTreeMap<u64, Left>,
}

impl Accounts {
    /// Takes so many seconds of an account's share, if they are left.
    pub(crate) fn take(&mut self, now: Duration, account: u64, seconds: f64) -> bool {
        if self.all.len() >= MAX_ACCOUNTS && !self.all.contains_key(&account) {
            self.all.retain(|_, left| left.by(now) < MAX_BURST_S);
            if self.all.len() >= MAX_ACCOUNTS {
                return false;
            }
        }
        let left = self.all.get(&account).map_or(MAX_BURST_S, |left| left.by(now)) - seconds;
        // Not so for what is no number.
        let enough = left >= 0.0;
        if enough {
            self.all.insert(account, Left { seconds: left, at: now });
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(7);

    #[test]
    fn a_share_is_used_up_and_comes_back() {
        let (mut accounts, now) = (Accounts::default(), START);
        let later = |s: f64| now + Duration::from_secs_f64(s);
        assert!(accounts.take(now, 1, 0.75) && !accounts.take(now, 1, 0.5));
        assert!(accounts.take(now, 2, 0.5), "another's is whole");
        assert!(!accounts.take(later(4.0), 1, 0.5));
        assert!(accounts.take(later(6.0), 1, 0.5));
        assert!(!accounts.take(later(1e6), 1, 1.5), "never more than all of it");
        assert!(!accounts.take(now, 3, f64::NAN) && !accounts.take(now, 3, 1e300));
    }

    #[test]
    fn accounts_are_bounded_and_those_with_a_whole_share_go_first() {
        let (mut accounts, now) = (Accounts::default(), START);
        let most = MAX_ACCOUNTS as u64;
        assert!((0..most).all(|number| accounts.take(now, number, 0.5)));
        assert!(!accounts.take(now, most, 0.1));
        assert!(accounts.take(now, 0, 0.1));
        assert!(accounts.take(now + Duration::from_secs(11), most, 0.1));
        assert!(accounts.all.len() <= 2);
    }
}
