//! Places for connections, of which there are only so many. When all are taken and one more comes,
//! the newest gets one: of the source that has most, the connection that does least and has done so
//! for longest goes. So whoever holds places without using them keeps out nobody but itself.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Leading bits of an IPv6 address that a host's owner is given at least (RFC 6177 §2): whoever has
/// one address has all that begin so.
const OWNED_BITS: u32 = 64;

/// Where a connection comes from, as far as one owner can make addresses up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Source(IpAddr);

impl Source {
    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let owned = u128::from(address) >> OWNED_BITS << OWNED_BITS;
                Ipv6Addr::from(owned).into()
            }
            address => address,
        })
    }
}

impl Source {
    /// A number that no other source has.
    pub(crate) fn number(self) -> u64 {
        match self.0 {
            IpAddr::V4(address) => u32::from(address).into(),
            IpAddr::V6(address) => u64::try_from(u128::from(address) >> OWNED_BITS).unwrap_or(0),
        }
    }

    /// Of an address as text; what is none is a source of its own.
    pub(crate) fn of_text(address: &str) -> Self {
        Self::of(address.parse().unwrap_or(Ipv4Addr::UNSPECIFIED.into()))
    }
}

/// What a connection does, the most dispensable first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doing {
    /// Nothing came of it yet, or nothing more can come.
    Silent,
    /// It was of use and waits for the next.
    Idle,
    /// Something came of it, but not all that is needed.
    Speaking,
    /// It is served: it is never dropped for another.
    Busy,
}

struct Taken<K> {
    source: K,
    doing: Doing,
    /// Which of all changes was its last: the lowest has been so for longest.
    since: u64,
    lost: Arc<Notify>,
}

struct SeatsState<K> {
    taken: BTreeMap<u64, Taken<K>>,
    of: BTreeMap<K, usize>,
    changes: u64,
    next: u64,
}

/// See the module. `K` tells sources apart.
pub(crate) struct Seats<K> {
    most: usize,
    state: Mutex<SeatsState<K>>,
    /// A place became free, or somebody dispensable.
    changed: Notify,
}

impl<K: Clone + Ord> Seats<K> {
    /// `most` places.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let state = SeatsState { taken: BTreeMap::new(), of: BTreeMap::new(), changes: 0, next: 0 };
        Arc::new(Self { most, state: Mutex::new(state), changed: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, SeatsState<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection that has said nothing, and whether another went for it. `None`
    /// while all are served.
    pub(crate) fn try_take(self: &Arc<Self>, source: &K) -> Option<(Seat<K>, bool)> {
        let mut state = self.lock();
        let full = state.taken.len() >= self.most;
        if full {
            let goes = state.most_dispensable()?;
            if let Some(gone) = state.remove(goes) {
                gone.lost.notify_one();
            }
        }
        let (id, since, lost) = (state.next, state.changes, Arc::new(Notify::new()));
        state.next += 1;
        state.changes += 1;
        *state.of.entry(source.clone()).or_default() += 1;
        let (source, doing) = (source.clone(), Doing::Silent);
        state.taken.insert(id, Taken { source, doing, since, lost: Arc::clone(&lost) });
        Some((Seat { seats: Arc::clone(self), id, lost }, full))
    }

    /// The same, as soon as there is one.
    pub(crate) async fn take(self: &Arc<Self>, source: &K) -> (Seat<K>, bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // What changes from here on is heard of.
            changed.as_mut().enable();
            if let Some(taken) = self.try_take(source) {
                return taken;
            }
            changed.await;
        }
    }

    /// Gives up the most dispensable connection, where descriptors have run out.
    pub(crate) fn drop_one(&self) {
        let mut state = self.lock();
        let goes = state.most_dispensable();
        if let Some(gone) = goes.and_then(|goes| state.remove(goes)) {
            gone.lost.notify_one();
        }
    }
}

impl<K: Clone + Ord> SeatsState<K> {
    fn most_dispensable(&self) -> Option<u64> {
        let rank = |taken: &Taken<K>| {
            let of_source = self.of.get(&taken.source).copied().unwrap_or(0);
            (usize::MAX - of_source, taken.doing, taken.since)
        };
        let dispensable = self.taken.iter().filter(|(_, taken)| taken.doing != Doing::Busy);
        dispensable.min_by_key(|(_, taken)| rank(taken)).map(|(id, _)| *id)
    }

    fn remove(&mut self, id: u64) -> Option<Taken<K>> {
        let taken = self.taken.remove(&id)?;
        if let Some(count) = self.of.get_mut(&taken.source) {
            *count -= 1;
            if *count == 0 {
                self.of.remove(&taken.source);
            }
        }
        Some(taken)
    }
}

/// A place, free again when it is dropped.
pub(crate) struct Seat<K: Clone + Ord> {
    seats: Arc<Seats<K>>,
    id: u64,
    lost: Arc<Notify>,
}

impl<K: Clone + Ord> Seat<K> {
    /// Tells what the connection does now.
    pub(crate) fn note(&self, doing: Doing) {
        let mut state = self.seats.lock();
        let changes = state.changes;
        state.changes += 1;
        if let Some(taken) = state.taken.get_mut(&self.id).filter(|taken| taken.doing != doing) {
            let was_busy = taken.doing == Doing::Busy;
            (taken.doing, taken.since) = (doing, changes);
            if was_busy {
                self.seats.changed.notify_one();
            }
        }
    }

    /// Resolves when the place went to another.
    pub(crate) async fn lost(&self) {
        self.lost.notified().await;
    }
}

impl<K: Clone + Ord> Drop for Seat<K> {
    fn drop(&mut self) {
        self.seats.lock().remove(self.id);
        self.seats.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn is_lost<K: Clone + Ord>(seat: &Seat<K>) -> bool {
        let mut lost = tokio_test_poll(seat.lost());
        lost.take().is_some()
    }

    /// Polls once.
    fn tokio_test_poll(future: impl Future<Output = ()>) -> Option<()> {
        let mut future = std::pin::pin!(future);
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        match future.as_mut().poll(&mut cx) {
            std::task::Poll::Ready(()) => Some(()),
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn an_owner_of_many_addresses_is_one_source() {
        let of = |text: &str| Source::of(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.7"), of("192.0.2.7"));
        assert_ne!(of("192.0.2.8"), of("192.0.2.7"));
    }

    #[test]
    fn the_newest_gets_the_place_of_what_is_longest_silent() {
        let seats = Seats::new(3);
        let (first, _) = seats.try_take(&1).unwrap();
        let (second, _) = seats.try_take(&1).unwrap();
        let (third, dropped) = seats.try_take(&1).unwrap();
        assert!(!dropped);
        first.note(Doing::Speaking);
        let (fourth, dropped) = seats.try_take(&1).unwrap();
        assert!(dropped && is_lost(&second) && !is_lost(&first) && !is_lost(&third));
        third.note(Doing::Busy);
        fourth.note(Doing::Busy);
        // What has begun to speak goes where nothing else can.
        let (fifth, _) = seats.try_take(&1).unwrap();
        assert!(is_lost(&first) && !is_lost(&third) && !is_lost(&fourth));
        fifth.note(Doing::Busy);
        assert!(seats.try_take(&1).is_none(), "what is served stays");
        fourth.note(Doing::Idle);
        assert!(seats.try_take(&1).is_some());
        assert!(is_lost(&fourth));
    }

    /// Two hundred connections renewed without end, each in the class that is dropped last: the one
    /// of another source stays until it is known.
    #[test]
    fn a_source_drives_out_none_but_its_own() {
        let seats = Seats::new(64);
        let theirs: Vec<_> = (0..200)
            .map(|_| {
                let (seat, _) = seats.try_take(&"many").unwrap();
                seat.note(Doing::Speaking);
                seat
            })
            .collect();
        let (ours, dropped) = seats.try_take(&"one").unwrap();
        assert!(dropped && theirs.iter().filter(|seat| is_lost(seat)).count() == 137);
        for _ in 0..10_000 {
            let (seat, _) = seats.try_take(&"many").unwrap();
            seat.note(Doing::Speaking);
            std::mem::forget(seat);
        }
        assert!(!is_lost(&ours));
    }

    #[test]
    fn places_come_back() {
        let seats = Seats::new(2);
        for _ in 0..100 {
            drop((seats.try_take(&1).unwrap(), seats.try_take(&2).unwrap()));
        }
        let state = seats.lock();
        assert!(state.taken.is_empty() && state.of.is_empty());
    }

    #[tokio::test]
    async fn whoever_waits_gets_the_next_place() {
        let seats = Seats::new(1);
        let (busy, _) = seats.try_take(&1).unwrap();
        busy.note(Doing::Busy);
        let waiting = tokio::spawn({
            let seats = Arc::clone(&seats);
            async move { drop(seats.take(&2).await) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(busy);
        tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("hangs").unwrap();
    }
}
