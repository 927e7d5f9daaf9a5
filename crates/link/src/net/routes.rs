//! Routes over hops: to each node the way that takes the least airtime.

use super::Scenario;
use super::links::Link;
use crate::losses::NodeId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// IP bytes of the packet whose airtime routes are compared by.
pub const TYPICAL_PACKET_BYTES: u32 = 300;

/// The first hop of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// The neighbour that the packet is given to.
    pub next: NodeId,
    /// Place of the channel that it goes over in [`Scenario::media`].
    pub medium: usize,
}

/// What one node knows of the way to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Route {
    hop: Hop,
    /// Of the whole way, in nanoseconds.
    airtime_ns: u64,
    hops: u32,
}

/// Routes of all pairs of nodes. A link is used where both of its nodes hear each other. Of two
/// ways of the same airtime the one of fewer hops is taken, then that over the neighbour of the
/// lower number, then that over the earlier channel: the same links make the same routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    nodes: usize,
    /// By source and destination.
    table: Vec<Option<Route>>,
}

/// How many hops there are between nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HopCounts {
    /// Pairs of nodes, each way counted.
    pub pairs: u64,
    /// How many of them have a route, by its number of hops less one.
    pub by_hops: Vec<u64>,
}

impl HopCounts {
    /// Pairs with a route.
    #[must_use]
    pub fn connected(&self) -> u64 {
        self.by_hops.iter().sum()
    }

    /// The mean number of hops of those with a route; 0 where there is none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let hops = |(index, count): (usize, &u64)| (index as u64 + 1) * count;
        let total: u64 = self.by_hops.iter().enumerate().map(hops).sum();
        if total == 0 { 0.0 } else { total as f64 / self.connected() as f64 }
    }

    /// The most hops of any route; 0 where there is none.
    #[must_use]
    pub fn max(&self) -> usize {
        self.by_hops.len()
    }

    /// These and others together, as of several times.
    pub fn add(&mut self, other: &Self) {
        self.pairs += other.pairs;
        let hops = self.by_hops.len().max(other.by_hops.len());
        self.by_hops.resize(hops, 0);
        for (sum, count) in self.by_hops.iter_mut().zip(&other.by_hops) {
            *sum += count;
        }
    }
}

/// Links into each node: who may send to it, over which channel, for how long.
struct Edge {
    from: usize,
    medium: usize,
    airtime_ns: u64,
}

impl Routes {
    /// Routes over links of a scenario.
    #[must_use]
    pub fn over(scenario: &Scenario, links: &[Link]) -> Self {
        let nodes = scenario.nodes.len();
        let edges = edges(scenario, links);
        let mut table = vec![None; nodes * nodes];
        for to in 0..nodes {
            for (from, route) in towards(&edges, to).into_iter().enumerate() {
                table[from * nodes + to] = route;
            }
        }
        Self { nodes, table }
    }

    fn route(&self, from: NodeId, to: NodeId) -> Option<&Route> {
        let place = |id: NodeId| usize::from(id).checked_sub(1).filter(|at| *at < self.nodes);
        self.table.get(place(from)? * self.nodes + place(to)?)?.as_ref()
    }

    /// The first hop from one node to another; none where there is no way, or they are one.
    #[must_use]
    pub fn next(&self, from: NodeId, to: NodeId) -> Option<Hop> {
        self.route(from, to).map(|route| route.hop)
    }

    /// The number of hops from one node to another.
    #[must_use]
    pub fn hops(&self, from: NodeId, to: NodeId) -> Option<u32> {
        self.route(from, to).map(|route| route.hops)
    }

    /// All hops from one node to another.
    #[must_use]
    pub fn path(&self, from: NodeId, to: NodeId) -> Option<Vec<Hop>> {
        let mut path = Vec::new();
        let mut at = from;
        while at != to && path.len() < self.nodes {
            let hop = self.next(at, to)?;
            path.push(hop);
            at = hop.next;
        }
        (at == to && from != to).then_some(path)
    }

    /// What is other than it was: (source, destination, first hop), none where there is none any
    /// more; in order of sources and destinations. Routes of another number of nodes, as of none at
    /// the start, are other altogether.
    #[must_use]
    pub fn changes_since(&self, before: &Self) -> Vec<(NodeId, NodeId, Option<Hop>)> {
        let ids = || (0..self.nodes).filter_map(|at| NodeId::try_from(at + 1).ok());
        let pairs = ids().flat_map(|from| ids().map(move |to| (from, to)));
        let change = |(from, to)| {
            let hop = self.next(from, to);
            (hop != before.next(from, to)).then_some((from, to, hop))
        };
        pairs.filter_map(change).collect()
    }

    /// How many hops there are between nodes.
    #[must_use]
    pub fn hop_counts(&self) -> HopCounts {
        let nodes = self.nodes as u64;
        let mut counts = HopCounts { pairs: nodes * nodes.saturating_sub(1), by_hops: Vec::new() };
        for route in self.table.iter().flatten() {
            let hops = route.hops as usize;
            if counts.by_hops.len() < hops {
                counts.by_hops.resize(hops, 0);
            }
            if let Some(count) = hops.checked_sub(1).and_then(|at| counts.by_hops.get_mut(at)) {
                *count += 1;
            }
        }
        counts
    }
}

/// Links that go both ways, by receiver.
fn edges(scenario: &Scenario, links: &[Link]) -> Vec<Vec<Edge>> {
    let key = |link: &Link| (link.medium, link.from, link.to);
    let known: BTreeMap<_, _> = links.iter().map(|link| (key(link), link.rate_bps)).collect();
    let mut edges: Vec<Vec<Edge>> = scenario.nodes.iter().map(|_| Vec::new()).collect();
    for ((medium, from, to), rate_bps) in &known {
        let Some(net) = scenario.media.get(*medium) else { continue };
        if !known.contains_key(&(*medium, *to, *from)) {
            continue;
        }
        let radio = &net.config.radio;
        let bytes = u64::from(TYPICAL_PACKET_BYTES) + u64::from(radio.header_bytes);
        let nanos = radio.airtime(*rate_bps, bytes).as_nanos();
        let airtime_ns = u64::try_from(nanos).unwrap_or(u64::MAX).max(1);
        let (from, to) = (usize::from(*from).wrapping_sub(1), usize::from(*to).wrapping_sub(1));
        if let Some(into) = edges.get_mut(to).filter(|_| from < scenario.nodes.len()) {
            into.push(Edge { from, medium: *medium, airtime_ns });
        }
    }
    edges
}

/// Routes of all nodes to one: Dijkstra's algorithm from that one backwards.
fn towards(edges: &[Vec<Edge>], to: usize) -> Vec<Option<Route>> {
    let id = |place: usize| NodeId::try_from(place + 1).unwrap_or(NodeId::MAX);
    let mut routes: Vec<Option<Route>> = vec![None; edges.len()];
    let mut settled = vec![false; edges.len()];
    let mut open = BinaryHeap::from([Reverse((0_u64, 0_u32, to))]);
    while let Some(Reverse((airtime_ns, hops, at))) = open.pop() {
        if std::mem::replace(&mut settled[at], true) {
            continue;
        }
        for edge in &edges[at] {
            if settled[edge.from] || edge.from == to {
                continue;
            }
            let airtime_ns = airtime_ns.saturating_add(edge.airtime_ns);
            let hop = Hop { next: id(at), medium: edge.medium };
            let found = Route { hop, airtime_ns, hops: hops + 1 };
            let rank = |route: &Route| (route.airtime_ns, route.hops, route.hop);
            let slot = &mut routes[edge.from];
            if slot.as_ref().is_none_or(|known| rank(&found) < rank(known)) {
                *slot = Some(found);
                open.push(Reverse((airtime_ns, hops + 1, edge.from)));
            }
        }
    }
    routes
}

#[cfg(test)]
mod tests;
