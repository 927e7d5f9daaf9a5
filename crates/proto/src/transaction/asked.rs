//! The transactions that a gateway has to answer.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Exchanges that were given up before they came, of which that is remembered.
const MAX_GIVEN_UP: usize = 64;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// By exchange, in the order in which they came: number, and when.
    open: BTreeMap<u64, Vec<(u64, Duration)>>,
    given_up: VecDeque<u64>,
}

impl Asked {
    /// A transaction about an exchange is to be answered.
    pub(super) fn add(&mut self, now: Duration, exchange: u64, number: u64) {
        self.open.entry(exchange).or_default().push((number, now));
    }

    /// Whether one about an exchange is.
    pub(super) fn has(&self, exchange: u64) -> bool {
        self.open.contains_key(&exchange)
    }

    /// Those of an exchange are answered now.
    pub(super) fn take(&mut self, exchange: u64) -> Vec<u64> {
        let all = self.open.remove(&exchange).unwrap_or_default();
        all.into_iter().map(|(number, _)| number).collect()
    }

    /// Those that have waited for so long are answered now.
    pub(super) fn take_older(&mut self, now: Duration, patience: Duration) -> Vec<u64> {
        let mut old = Vec::new();
        self.open.retain(|_, all| {
            all.retain(|(number, at)| {
                let is_old = now >= *at + patience;
                old.extend(is_old.then_some(*number));
                !is_old
            });
            !all.is_empty()
        });
        old
    }

    /// When the next has waited for so long.
    pub(super) fn due(&self, patience: Duration) -> Option<Duration> {
        self.open.values().flatten().map(|(_, at)| *at + patience).min()
    }

    /// An exchange that is not open is given up: perhaps it is still to come.
    pub(super) fn give_up(&mut self, exchange: u64) {
        self.given_up.push_back(exchange);
        if self.given_up.len() > MAX_GIVEN_UP {
            self.given_up.pop_front();
        }
    }

    /// Whether one that comes was given up before; it is not any more.
    pub(super) fn was_given_up(&mut self, exchange: u64) -> bool {
        let before = self.given_up.len();
        self.given_up.retain(|one| *one != exchange);
        self.given_up.len() < before
    }
}
