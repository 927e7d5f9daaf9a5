//! Long contents to nodes. A node puts together so many of one address at once and drops the oldest
//! for another, so that no more are under way; the others wait.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use proto::coap::transfer::MAX_UPLOADS_PER_PEER;

use crate::messaging::message::Precedence;

/// See the module. What is to be sent is a `T`.
#[derive(Debug)]
pub(super) struct Uploads<T> {
    // bound: nodes of the configuration.
    peers: BTreeMap<SocketAddr, Peer<T>>,
}

#[derive(Debug)]
struct Peer<T> {
    /// By the number of the request.
    under_way: BTreeMap<u64, Precedence>,
    // bound: what the machine sends at once.
    waiting: BTreeMap<(Precedence, u64), T>,
}

impl<T> Default for Uploads<T> {
    fn default() -> Self {
        Self { peers: BTreeMap::new() }
    }
}

impl<T> Peer<T> {
    /// The next that may go. The last place is for what is more urgent than all under way.
    fn next(&mut self) -> Option<(u64, T)> {
        let (precedence, request) = *self.waiting.first_key_value()?.0;
        let is_urgent = self.under_way.values().all(|other| precedence < *other);
        let places = MAX_UPLOADS_PER_PEER - usize::from(!is_urgent);
        if self.under_way.len() >= places {
            return None;
        }
        self.under_way.insert(request, precedence);
        self.waiting.pop_first().map(|(_, content)| (request, content))
    }
}

impl<T> Uploads<T> {
    /// Something that is to be sent when there is a place for it.
    pub(super) fn push(&mut self, peer: SocketAddr, of: Precedence, request: u64, content: T) {
        let empty = || Peer { under_way: BTreeMap::new(), waiting: BTreeMap::new() };
        self.peers.entry(peer).or_insert_with(empty).waiting.insert((of, request), content);
    }

    /// What is to be sent now.
    pub(super) fn next(&mut self) -> Option<(SocketAddr, u64, T)> {
        let mut peers = self.peers.iter_mut();
        peers.find_map(|(peer, of)| of.next().map(|(request, content)| (*peer, request, content)))
    }

    /// A request has ended, or is of no use any more.
    pub(super) fn end(&mut self, request: u64) {
        for peer in self.peers.values_mut() {
            peer.under_way.remove(&request);
            peer.waiting.retain(|(_, other), _| *other != request);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_go_at_once_than_a_node_puts_together() {
        let mut uploads = Uploads::default();
        let [one, other] = [1, 2].map(|port| SocketAddr::from(([192, 0, 2, 1], port)));
        let all = |uploads: &mut Uploads<u64>| -> Vec<u64> {
            std::iter::from_fn(|| uploads.next()).map(|(_, request, _)| request).collect()
        };
        for request in 1..=6 {
            uploads.push(one, Precedence::Routine, request, request);
        }
        uploads.push(other, Precedence::Routine, 7, 7);
        assert_eq!(all(&mut uploads), [1, 2, 3, 7]);
        uploads.push(one, Precedence::Priority, 8, 8);
        assert_eq!(all(&mut uploads), [8], "a place is left for what is more urgent");
        uploads.push(one, Precedence::Flash, 9, 9);
        assert_eq!(all(&mut uploads), [0; 0]);
        uploads.end(4);
        uploads.end(2);
        assert_eq!(all(&mut uploads), [9], "who waits is let in by urgency");
        uploads.end(1);
        assert_eq!(all(&mut uploads), [0; 0]);
        uploads.end(3);
        uploads.end(8);
        uploads.end(9);
        assert_eq!(all(&mut uploads), [5, 6]);
    }
}
