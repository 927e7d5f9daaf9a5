//! Who has subscribed to a topic: filters without wildcards in a map, the others in a tree of
//! levels whose texts are stored once, and what topics have led to lately.
//!
//! Finding those of a topic takes steps by its levels and by the filters that fit it; filters that
//! do not fit cost nothing.

mod known;
mod levels;
mod list;
#[cfg(test)]
mod tests;
mod tree;

// order: only looked up.
use std::collections::HashMap;
use std::sync::Arc;

use crate::ids::SessionId;
use crate::publication::Grade;
use known::Known;
use levels::Levels;
use list::List;
use tree::{NodeId, Tree};

/// A subscription, at its filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subscriber {
    /// Whose.
    pub(crate) session: SessionId,
    /// The highest grade that was granted.
    pub(crate) grade: Grade,
    /// Nothing that the same session has published (MQTT 5 §3.8.3.1).
    pub(crate) no_local: bool,
    /// The retain flag arrives as it was published (MQTT 5 §3.8.3.1).
    pub(crate) as_published: bool,
    /// What the client calls the subscription (MQTT 5 §3.8.2.1.2); 0: nothing.
    pub(crate) identifier: u32,
}

/// One of several clients that share a subscription gets a message.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    /// The subscription as clients write it: `$share/group/filter`.
    pub(crate) of: Arc<str>,
    /// Who is in it.
    pub(crate) members: Vec<Subscriber>,
}

/// All that have subscribed with one filter.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    own: List,
    /// By name of the group.
    shares: Vec<Share>,
}

/// Those that a topic leads to: by session, one entry for each filter that fits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hits {
    /// Subscriptions of one session each.
    pub(crate) own: List,
    /// Shared ones: one member of each is to get it.
    pub(crate) shares: Vec<Share>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Index {
    levels: Levels,
    tree: Tree,
    // order: only looked up, never walked.
    exact: HashMap<Arc<str>, Subscribers>,
    known: Known,
    /// Memory of the last search.
    path: Vec<Option<u32>>,
    subscriptions: usize,
}

impl Index {
    /// How many subscriptions there are.
    pub(crate) fn len(&self) -> usize {
        self.subscriptions
    }

    /// Adds a subscription, or replaces the one of the same session, group and filter.
    pub(crate) fn insert(&mut self, filter: &str, group: Option<&str>, subscriber: Subscriber) {
        self.known.clear();
        let subscribers = match self.exact.get_mut(filter) {
            Some(subscribers) => subscribers,
            None if is_exact(filter) => self.exact.entry(filter.into()).or_default(),
            None => {
                let path = self.levels.intern(filter);
                let (node, is_new) = self.tree.make(&path);
                if !is_new {
                    // The texts of its levels are counted once for each filter in the tree.
                    self.levels.release(&path);
                }
                self.tree.at_mut(node)
            }
        };
        let of = group.map(|group| format!("$share/{group}/{filter}"));
        self.subscriptions += usize::from(subscribers.insert(of.as_deref(), subscriber));
    }

    /// Takes a subscription out; whether there was one.
    pub(crate) fn remove(&mut self, filter: &str, group: Option<&str>, session: SessionId) -> bool {
        let of = group.map(|group| format!("$share/{group}/{filter}"));
        // Before, since what is shared would be copied to be changed.
        self.known.clear();
        let was = self.take(filter, of.as_deref(), session).unwrap_or(false);
        self.subscriptions -= usize::from(was);
        was
    }

    fn take(&mut self, filter: &str, of: Option<&str>, session: SessionId) -> Option<bool> {
        if is_exact(filter) {
            let subscribers = self.exact.get_mut(filter)?;
            let was = subscribers.remove(of, session);
            if subscribers.is_empty() {
                self.exact.remove(filter);
            }
            return Some(was);
        }
        let path = self.levels.find_filter(filter)?;
        let node: NodeId = self.tree.find(&path)?;
        let subscribers = self.tree.at_mut(node);
        let was = subscribers.remove(of, session);
        if was && subscribers.is_empty() {
            self.tree.prune(&path);
            self.levels.release(&path);
        }
        Some(was)
    }

    /// Who has subscribed to a topic.
    pub(crate) fn find(&mut self, topic: &Arc<str>) -> Hits {
        if let Some(hits) = self.known.get(topic) {
            return hits.clone();
        }
        let mut hits = Hits::default();
        if let Some(subscribers) = self.exact.get(topic) {
            subscribers.add_to(&mut hits);
        }
        self.path.clear();
        self.path.extend(self.levels.find_topic(topic));
        self.tree.find_all(&self.path, topic.starts_with('$'), &mut hits);
        hits.own.sort();
        self.known.insert(topic, &hits);
        hits
    }
}

impl Subscribers {
    fn insert(&mut self, of: Option<&str>, subscriber: Subscriber) -> bool {
        let list = match of {
            None => return self.own.insert(subscriber),
            Some(of) => {
                let at = match self.shares.binary_search_by(|share| (*share.of).cmp(of)) {
                    Ok(at) => at,
                    Err(at) => {
                        self.shares.insert(at, Share { of: of.into(), members: Vec::new() });
                        at
                    }
                };
                match self.shares.get_mut(at) {
                    Some(share) => &mut share.members,
                    None => return false,
                }
            }
        };
        match list.binary_search_by_key(&subscriber.session, |known| known.session) {
            Ok(at) => {
                list.get_mut(at).into_iter().for_each(|known| *known = subscriber);
                false
            }
            Err(at) => {
                list.insert(at, subscriber);
                true
            }
        }
    }

    fn remove(&mut self, of: Option<&str>, session: SessionId) -> bool {
        let Some(of) = of else { return self.own.remove(session) };
        let Ok(at) = self.shares.binary_search_by(|share| (*share.of).cmp(of)) else {
            return false;
        };
        let Some(share) = self.shares.get_mut(at) else { return false };
        let place = share.members.binary_search_by_key(&session, |known| known.session);
        let was = place.map(|place| share.members.remove(place)).is_ok();
        if share.members.is_empty() {
            self.shares.remove(at);
        }
        was
    }

    fn is_empty(&self) -> bool {
        self.own.as_slice().is_empty() && self.shares.is_empty()
    }

    fn add_to(&self, hits: &mut Hits) {
        hits.own.extend(&self.own);
        hits.shares.extend(self.shares.iter().cloned());
    }
}

/// Whether a filter fits one topic only.
fn is_exact(filter: &str) -> bool {
    !filter.contains(['+', '#'])
}
