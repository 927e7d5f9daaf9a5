//! The nodes that a publication has passed.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use proto::mqtt::{Id, Ids, Properties, Value};

use super::{End, NODE, Peer, VIA};
use crate::publication::{MAX_HOPS, Publication};

/// Longest name of a node, and longest place of a list, in bytes.
const MAX_NODE_BYTES: usize = 64;
const MAX_PLACE_BYTES: usize = 128;
/// Publications that are remembered by where they came in.
const MAX_SEEN: usize = 10_000;

/// The node at the other end, where it is one.
pub(in crate::mqtt) fn peer_node(properties: &Properties) -> Option<Peer> {
    let (_, mark) = properties.user().find(|(name, _)| *name == NODE)?;
    let (node, born) = mark.split_once(':')?;
    let is_one = is_node(node) && u64::from_str_radix(born, 16).is_ok();
    is_one.then(|| Peer { node: node.into(), mark: mark.into() })
}

/// Whether a text may be the name of a node: nothing that separates them, and short.
#[must_use]
pub fn is_node(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NODE_BYTES && !text.contains([',', ':'])
}

/// Says the name of this node, and when it began, in a CONNECT or CONNACK.
pub(in crate::mqtt) fn say_node(properties: &mut Properties, node: &str, born_s: u64) {
    let mark = format!("{node}:{born_s:x}");
    let _ = properties.push(Id::USER_PROPERTY, Value::Pair(NODE, &mark));
}

/// Takes the nodes that a PUBLISH has passed out of its properties.
pub(in crate::mqtt) fn take(properties: &mut Properties, end: Option<&End>) -> Vec<String> {
    let Some((_, list)) = properties.user().find(|(name, _)| *name == VIA) else {
        return Vec::new();
    };
    // A longer place is none of a node's making; cut, it is as good to know it again.
    let place = |text: &str| text.chars().take(MAX_PLACE_BYTES).collect();
    let peer = end.and_then(|end| end.peer.as_ref());
    let via = match (list.strip_prefix(':'), peer) {
        (Some(number), Some(peer)) => vec![place(&format!("{}.{number}", peer.mark))],
        _ => list.split(',').take(MAX_HOPS + 1).map(place).collect(),
    };
    let mut rest = properties.without(Ids::new(&[Id::USER_PROPERTY]));
    for (name, value) in properties.user().filter(|(name, _)| *name != VIA) {
        // It was there before.
        let _ = rest.push(Id::USER_PROPERTY, Value::Pair(name, value));
    }
    *properties = rest;
    via
}

/// Adds this node to those that a publication has passed, for a PUBLISH. `false` where it is not to
/// be sent: the peer has had it, or it has passed too many.
pub(in crate::mqtt) fn add(
    publication: &Publication,
    end: &End,
    properties: &mut Properties,
) -> bool {
    let passed = publication.details.as_ref().map_or(&[][..], |details| &details.via);
    let had = |peer: &Peer| has_passed(passed, &peer.node);
    if passed.len() >= MAX_HOPS || end.peer.as_ref().is_some_and(had) {
        return false;
    }
    let own = match passed {
        // Where it comes in: what tells it from all others of this node, whose mark the peer has.
        [] if end.peer.is_some() => format!(":{:x}", publication.id),
        [] => format!("{}:{:x}.{:x}", end.node, end.born_s, publication.id),
        _ => [&*passed.join(","), ",", &*end.node].concat(),
    };
    properties.push(Id::USER_PROPERTY, Value::Pair(VIA, &own)).is_ok()
}

/// Whether a node is among those that a publication has passed.
pub(in crate::mqtt) fn has_passed(via: &[String], node: &str) -> bool {
    via.iter().any(|one| one.split(':').next() == Some(node))
}

/// What has come lately, by where it came in: of what comes by several ways one is enough.
#[derive(Debug, Default)]
pub(in crate::mqtt) struct Seen {
    known: BTreeSet<Arc<str>>,
    order: VecDeque<Arc<str>>,
}

impl Seen {
    /// Whether it has come before.
    pub(in crate::mqtt) fn has(&self, via: &[String]) -> bool {
        via.first().is_some_and(|origin| self.known.contains(&**origin))
    }

    /// It has come.
    pub(in crate::mqtt) fn add(&mut self, via: &[String]) {
        let Some(origin) = via.first().filter(|origin| origin.contains(':')) else { return };
        let origin: Arc<str> = origin.as_str().into();
        if !self.known.insert(origin.clone()) {
            return;
        }
        self.order.push_back(origin);
        if self.order.len() > MAX_SEEN
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Protocol;

    #[test]
    fn the_nodes_of_a_publication_cross_in_one_property() {
        let peer = |node: &str| Peer { node: node.into(), mark: format!("{node}:10").into() };
        let end = |node: &str, other: &str| End {
            node: node.into(),
            peer: Some(peer(other)),
            bridge: None,
            pinged: false,
            is_believed: true,
            born_s: 0x10,
        };
        let mut publication = Publication::new(Protocol::Mqtt, "t", "x");
        publication.id = 0xff;
        let mut properties = Properties::NONE;
        properties.push(Id::USER_PROPERTY, Value::Pair("k", "v")).unwrap();
        assert!(add(&publication, &end("a", "b"), &mut properties));
        let via = take(&mut properties, Some(&end("b", "a")));
        assert_eq!(via, ["a:10.ff"]);
        assert_eq!(properties.user().collect::<Vec<_>>(), [("k", "v")]);
        publication.details_mut().via = via;
        assert!(add(&publication, &end("b", "c"), &mut properties));
        assert_eq!(take(&mut properties, Some(&end("c", "b"))), ["a:10.ff", "b"]);
        let mut properties = Properties::NONE;
        let mut own = publication.clone();
        own.details_mut().via = Vec::new();
        let unknown = End { peer: None, ..end("a", "b") };
        assert!(add(&own, &unknown, &mut properties));
        assert_eq!(take(&mut properties, Some(&unknown)), ["a:10.ff"], "others hear all of it");
        assert!(!add(&publication, &end("b", "a"), &mut properties), "back to where it was");
        publication.details_mut().via = vec!["x".to_owned(); MAX_HOPS];
        assert!(!add(&publication, &end("b", "c"), &mut properties), "it has passed too many");
    }

    #[test]
    fn what_has_come_is_remembered_and_not_without_end() {
        let mut seen = Seen::default();
        let via = |number: usize| vec![format!("n:{number}"), "m".to_owned()];
        assert!(!seen.has(&via(0)));
        for number in 0..=MAX_SEEN {
            seen.add(&via(number));
            seen.add(&via(number));
            assert!(seen.has(&via(number)));
        }
        assert!(!seen.has(&via(0)));
        assert_eq!((seen.known.len(), seen.order.len()), (MAX_SEEN, MAX_SEEN));
    }
}
