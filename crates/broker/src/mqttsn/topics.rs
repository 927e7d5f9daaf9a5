//! Ids of topics, as one client and the gateway have agreed (MQTT-SN 1.2 §6.5).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use proto::mqttsn::{MAX_TOPIC_ID, MIN_TOPIC_ID};

/// A topic with an id.
#[derive(Debug)]
struct Named {
    name: Arc<str>,
    /// The client has asked for the id, and may publish by it: it is not given to another topic.
    by_client: bool,
    /// When it was used last, in the order of uses.
    used: u64,
}

/// Ids of one client's topics. They last as long as its session; which of them the client knows, a
/// new connection does not tell (MQTT-SN 1.2 §6.5: the gateway registers them again).
#[derive(Debug, Default)]
pub(super) struct Topics {
    names: BTreeMap<u16, Named>,
    ids: BTreeMap<Arc<str>, u16>,
    known: BTreeSet<u16>,
    last_id: u16,
    uses: u64,
}

/// An id that a name has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Assigned {
    pub(super) id: u16,
    /// What is kept of it with the session is to be written anew.
    pub(super) is_changed: bool,
}

impl Topics {
    /// A name has an id from before, as [`Topics::kept`] had it; whether that can be.
    pub(super) fn restore(&mut self, id: u16, kept: &[u8]) -> bool {
        let Some((by_client, name)) = kept.split_first() else { return false };
        let Ok(name) = std::str::from_utf8(name) else { return false };
        if !(MIN_TOPIC_ID..=MAX_TOPIC_ID).contains(&id) || self.ids.contains_key(name) {
            return false;
        }
        let (name, by_client): (Arc<str>, bool) = (name.into(), *by_client != 0);
        self.ids.insert(name.clone(), id);
        self.last_id = self.last_id.max(id);
        self.names.insert(id, Named { name, by_client, used: 0 });
        true
    }

    /// What is kept of an id with the session.
    pub(super) fn kept(&self, id: u16) -> Option<Bytes> {
        let Named { name, by_client, .. } = self.names.get(&id)?;
        let mut kept = Vec::with_capacity(1 + name.len());
        kept.push(u8::from(*by_client));
        kept.extend_from_slice(name.as_bytes());
        Some(kept.into())
    }

    /// The name of an id that the client publishes by, which it therefore knows; and whether that
    /// changes what is kept.
    pub(super) fn published(&mut self, id: u16) -> Option<(Arc<str>, bool)> {
        let named = self.names.get_mut(&id)?;
        let is_changed = !std::mem::replace(&mut named.by_client, true);
        self.known.insert(id);
        Some((named.name.clone(), is_changed))
    }

    /// The id of a name, if the client knows it.
    pub(super) fn known_id(&mut self, name: &str) -> Option<u16> {
        let id = self.ids.get(name).copied().filter(|id| self.known.contains(id))?;
        self.touch(id);
        Some(id)
    }

    /// Gives a name an id, unless `max` topics of which none can do without have one.
    pub(super) fn assign(
        &mut self,
        name: &Arc<str>,
        by_client: bool,
        max: usize,
    ) -> Option<Assigned> {
        if let Some(id) = self.ids.get(name).copied() {
            self.touch(id);
            let named = self.names.get_mut(&id)?;
            let is_changed = by_client && !named.by_client;
            named.by_client |= by_client;
            return Some(Assigned { id, is_changed });
        }
        let id = if self.names.len() < max { self.free_id() } else { self.oldest() }?;
        if let Some(old) = self.names.remove(&id) {
            self.ids.remove(&old.name);
            self.known.remove(&id);
        }
        self.names.insert(id, Named { name: name.clone(), by_client, used: 0 });
        self.ids.insert(name.clone(), id);
        self.touch(id);
        Some(Assigned { id, is_changed: true })
    }

    /// The client knows an id.
    pub(super) fn set_known(&mut self, id: u16) {
        if self.names.contains_key(&id) {
            self.known.insert(id);
        }
    }

    /// The client does not know an id.
    pub(super) fn forget_known(&mut self, id: u16) {
        self.known.remove(&id);
    }

    fn touch(&mut self, id: u16) {
        self.uses += 1;
        if let Some(named) = self.names.get_mut(&id) {
            named.used = self.uses;
        }
    }

    /// The next id that no name has.
    fn free_id(&mut self) -> Option<u16> {
        let from = if self.last_id >= MAX_TOPIC_ID { MIN_TOPIC_ID } else { self.last_id + 1 };
        let in_turn = (from..=MAX_TOPIC_ID).chain(MIN_TOPIC_ID..from);
        let free = in_turn.into_iter().find(|id| !self.names.contains_key(id))?;
        self.last_id = free;
        Some(free)
    }

    /// That which was used longest ago of those that the client has not asked for.
    fn oldest(&self) -> Option<u16> {
        let own = self.names.iter().filter(|(_, named)| !named.by_client);
        own.min_by_key(|(_, named)| named.used).map(|(id, _)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assign(topics: &mut Topics, name: &str, by_client: bool) -> Option<(u16, bool)> {
        let assigned = topics.assign(&name.into(), by_client, 3);
        assigned.map(|assigned| (assigned.id, assigned.is_changed))
    }

    #[test]
    fn ids_are_kept_and_only_the_gateways_are_given_again() {
        let mut topics = Topics::default();
        assert_eq!(assign(&mut topics, "a", true), Some((1, true)));
        assert_eq!(assign(&mut topics, "b", false), Some((2, true)));
        assert_eq!(assign(&mut topics, "c", false), Some((3, true)));
        assert_eq!(topics.known_id("b"), None);
        topics.set_known(2);
        assert_eq!(topics.known_id("b"), Some(2));
        assert_eq!(assign(&mut topics, "d", false), Some((3, true)), "c was used before b");
        assert_eq!(assign(&mut topics, "a", true), Some((1, false)));
        assert_eq!(topics.published(3), Some(("d".into(), true)));
        assert_eq!(topics.published(3), Some(("d".into(), false)));
        // By using it the client has shown that it holds on to it.
        assert_eq!(assign(&mut topics, "e", true), Some((2, true)));
        assert_eq!(topics.known_id("e"), None, "it knows another name for it");
        assert_eq!(assign(&mut topics, "f", true), None);
        topics.forget_known(3);
        assert_eq!(topics.known_id("d"), None);
    }

    #[test]
    fn ids_of_before_are_kept_apart_from_new_ones() {
        let mut topics = Topics::default();
        assert_eq!(assign(&mut topics, "a", true), Some((1, true)));
        let mut later = Topics::default();
        assert!(later.restore(7, &topics.kept(1).unwrap()));
        assert!(later.restore(MAX_TOPIC_ID, b"\x00b"));
        for (id, kept) in
            [(0, &b"\x00c"[..]), (0xffff, b"\x00c"), (8, b"\x01a"), (8, b""), (8, b"\x00\xff")]
        {
            assert!(!later.restore(id, kept), "{id} {kept:?}");
        }
        assert_eq!(later.known_id("a"), None);
        assert_eq!(assign(&mut later, "a", true), Some((7, false)));
        assert_eq!(assign(&mut later, "c", true), Some((1, true)));
        // Full, of those of before the gateway's own makes room.
        assert_eq!(assign(&mut later, "d", true), Some((MAX_TOPIC_ID, true)));
    }
}
