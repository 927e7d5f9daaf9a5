//! Addresses that could not be reached of late: others of their name are tried before them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a failure counts: routes come and go.
const MAX_AGE: Duration = Duration::from_secs(600);
/// Most addresses that are remembered; beyond it the oldest goes.
const MAX_FAILURES: usize = 256;

/// See the module.
#[derive(Default)]
pub(crate) struct Failures {
    since: Mutex<BTreeMap<SocketAddr, Instant>>,
}

impl Failures {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Instant>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Addresses in the order in which to try them: by turns of both families (RFC 8305 §4), those
    /// that failed of late behind the others.
    pub(crate) fn order(&self, addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
        let mut known = self.lock();
        let now = Instant::now();
        known.retain(|_, since| now.duration_since(*since) < MAX_AGE);
        let (failed, fine): (Vec<_>, Vec<_>) =
            addresses.into_iter().partition(|address| known.contains_key(address));
        let mut ordered = by_turns(fine);
        ordered.extend(by_turns(failed));
        ordered
    }

    /// Addresses that could not be reached.
    pub(crate) fn note(&self, addresses: impl IntoIterator<Item = SocketAddr>) {
        let mut known = self.lock();
        for address in addresses {
            known.insert(address, Instant::now());
            while known.len() > MAX_FAILURES {
                let oldest = known.iter().min_by_key(|(_, since)| **since).map(|(one, _)| *one);
                oldest.map(|oldest| known.remove(&oldest));
            }
        }
    }

    /// An address that was reached.
    pub(crate) fn forget(&self, address: SocketAddr) {
        self.lock().remove(&address);
    }
}

/// The first family by turns with the other.
fn by_turns(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let mut ordered = Vec::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    loop {
        let (one, other) = (first.next(), second.next());
        if one.is_none() && other.is_none() {
            return ordered;
        }
        ordered.extend(one.into_iter().chain(other));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns_and_failures_come_last() {
        let at = |text: &str| -> SocketAddr { text.parse().unwrap() };
        let names = ["[2001:db8::1]:1", "[2001:db8::2]:1", "192.0.2.1:1", "192.0.2.2:1"];
        let addresses: Vec<SocketAddr> = names.iter().map(|name| at(name)).collect();
        let failures = Failures::default();
        let ordered = failures.order(addresses.clone());
        assert_eq!(ordered, [addresses[0], addresses[2], addresses[1], addresses[3]]);
        failures.note([addresses[0]]);
        assert_eq!(failures.order(addresses.clone())[3], addresses[0]);
        failures.forget(addresses[0]);
        assert_eq!(failures.order(addresses.clone())[0], addresses[0]);
        failures.note((0..1000).map(|port| SocketAddr::new([192, 0, 2, 9].into(), port)));
        assert_eq!(failures.lock().len(), MAX_FAILURES);
    }
}
