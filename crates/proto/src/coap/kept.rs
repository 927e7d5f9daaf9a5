//! What is kept of bodies between requests, by peer and key: bounded, and what was longest unused
//! goes first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What takes memory.
pub(super) trait Held {
    /// How many bytes.
    fn held_bytes(&self) -> usize;
}

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) entries: usize,
    pub(super) entries_per_peer: usize,
    pub(super) bytes: usize,
    /// So long after its last use.
    pub(super) lifetime: Duration,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    used_at: Duration,
    bytes: usize,
}

type Key = Vec<u8>;

#[derive(Debug)]
pub(super) struct Kept<P, V> {
    bounds: Bounds,
    entries: BTreeMap<(P, Key), Entry<V>>,
    by_use: BTreeSet<(Duration, P, Key)>,
    bytes: usize,
}

impl<P: Copy + Ord, V: Held> Kept<P, V> {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, entries: BTreeMap::new(), by_use: BTreeSet::new(), bytes: 0 }
    }

    /// How much is kept.
    pub(super) fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Bytes of all that is kept.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What is kept there.
    pub(super) fn get(&self, peer: P, key: &[u8]) -> Option<&V> {
        self.entries.get(&(peer, key.to_vec())).map(|entry| &entry.value)
    }

    /// Takes out what is kept there.
    pub(super) fn take(&mut self, peer: P, key: &[u8]) -> Option<V> {
        let whole = (peer, key.to_vec());
        let entry = self.entries.remove(&whole)?;
        self.by_use.remove(&(entry.used_at, peer, whole.1));
        self.bytes -= entry.bytes;
        Some(entry.value)
    }

    /// Keeps a value in place of what was there. Others go for it where there is no room, those of
    /// the same peer first.
    pub(super) fn put(&mut self, now: Duration, peer: P, key: &[u8], value: V) {
        drop(self.take(peer, key));
        self.expire(now);
        let bytes = value.held_bytes() + key.len();
        let of_peer = self.entries.range((peer, Key::new())..).take_while(|it| it.0.0 == peer);
        if of_peer.count() >= self.bounds.entries_per_peer {
            let oldest = self.by_use.iter().find(|(_, other, _)| *other == peer).cloned();
            self.drop_one(oldest);
        }
        while !self.entries.is_empty()
            && (self.entries.len() >= self.bounds.entries || self.bytes + bytes > self.bounds.bytes)
        {
            let oldest = self.by_use.first().cloned();
            self.drop_one(oldest);
        }
        self.by_use.insert((now, peer, key.to_vec()));
        self.bytes += bytes;
        self.entries.insert((peer, key.to_vec()), Entry { value, used_at: now, bytes });
    }

    fn drop_one(&mut self, one: Option<(Duration, P, Key)>) {
        if let Some((_, peer, key)) = one {
            drop(self.take(peer, &key));
        }
    }

    /// Drops what was unused for too long.
    pub(super) fn expire(&mut self, now: Duration) {
        while let Some((used_at, ..)) = self.by_use.first()
            && *used_at + self.bounds.lifetime <= now
        {
            let oldest = self.by_use.first().cloned();
            self.drop_one(oldest);
        }
    }

    /// When something is unused for too long.
    pub(super) fn expires_at(&self) -> Option<Duration> {
        self.by_use.first().map(|(used_at, ..)| *used_at + self.bounds.lifetime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Held for usize {
        fn held_bytes(&self) -> usize {
            *self
        }
    }

    #[test]
    fn what_was_longest_unused_goes() {
        let s = Duration::from_secs;
        let bounds = Bounds { entries: 4, entries_per_peer: 2, bytes: 100, lifetime: s(10) };
        let mut kept = Kept::<u8, usize>::new(bounds);
        kept.put(s(0), 1, b"a", 10);
        kept.put(s(1), 2, b"a", 10);
        kept.put(s(2), 1, b"b", 10);
        kept.put(s(3), 1, b"c", 10);
        assert_eq!(kept.take(1, b"a"), None);
        assert_eq!((kept.bytes, kept.expires_at()), (33, Some(s(11))));
        kept.put(s(4), 3, b"a", 90);
        assert_eq!((kept.entries.len(), kept.bytes), (1, 91));
        kept.put(s(5), 3, b"a", 500);
        assert_eq!(kept.take(3, b"a"), Some(500));
        assert_eq!((kept.entries.len(), kept.by_use.len(), kept.bytes), (0, 0, 0));
        kept.put(s(6), 1, b"a", 1);
        kept.expire(s(15));
        assert_eq!(kept.entries.len(), 1);
        kept.expire(s(16));
        assert_eq!((kept.entries.len(), kept.expires_at()), (0, None));
    }
}
