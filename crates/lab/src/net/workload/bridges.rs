//! The pair in a net: between nodes that are on several channels and pass messages on.
//!
//! A message to a node on no channel of the sender's goes to a bridging node first, which has it
//! whole before it passes it on; between bridging nodes it goes through an edge and a gateway.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use link::net::{Scenario, Transport};

use super::{Ground, Program};
use crate::experiment::pair::{GATEWAY_PORT, Keys};
use crate::experiment::processes::READY;
use crate::net::http::ask;

/// Where a node's edges listen on its loopback: the first of so many ports.
const EDGE_PORT: u16 = 8200;

/// Where they say how they are: the first of so many ports.
const ADMIN_PORT: u16 = 8300;
/// How often an edge is asked whether it has its gateway.
const QUESTION_INTERVAL: Duration = Duration::from_millis(100);
/// How long it may take to answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// How long edges and gateways that hear each other may take to connect, over slow channels.
const CONNECT_PATIENCE: Duration = Duration::from_secs(20);

/// How a node gives messages to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Itself: they share a channel.
    Direct,
    /// Through an edge on the node's loopback, at this port.
    Pair(u16),
    /// To another node, which passes them on.
    Via(usize),
}

/// Which nodes are on which channels.
pub(super) struct Bridges {
    channels: Vec<BTreeSet<usize>>,
}

impl Bridges {
    pub(super) fn of(scenario: &Scenario) -> Self {
        let of_node = |node: &link::net::Node| node.radios.iter().map(|one| one.medium).collect();
        Self { channels: scenario.nodes.iter().map(of_node).collect() }
    }

    fn is_bridge(&self, host: usize) -> bool {
        self.channels.get(host).is_some_and(|channels| channels.len() > 1)
    }

    fn share(&self, one: usize, other: usize) -> bool {
        match (self.channels.get(one), self.channels.get(other)) {
            (Some(one), Some(other)) => !one.is_disjoint(other),
            _ => false,
        }
    }

    /// The other bridging nodes that a bridging node shares a channel with.
    fn peers(&self, host: usize) -> Vec<usize> {
        let others = (0..self.channels.len()).filter(|other| *other != host);
        others.filter(|other| self.bridge_to(host, *other)).collect()
    }

    fn bridge_to(&self, host: usize, other: usize) -> bool {
        self.is_bridge(host) && self.is_bridge(other) && self.share(host, other)
    }

    /// How one node gives messages for another.
    pub(super) fn reach(&self, from: usize, to: usize) -> Option<Reach> {
        if self.bridge_to(from, to) {
            let place = self.peers(from).iter().position(|peer| *peer == to)?;
            return Some(Reach::Pair(EDGE_PORT + u16::try_from(place).ok()?));
        }
        if self.share(from, to) {
            return Some(Reach::Direct);
        }
        if self.is_bridge(from) {
            return self.peers(from).into_iter().find(|peer| self.share(*peer, to)).map(Reach::Via);
        }
        let near = |host: &usize| self.is_bridge(*host) && self.share(from, *host);
        let mut near = (0..self.channels.len()).filter(near);
        near.find(|host| self.reach(*host, to).is_some()).map(Reach::Via)
    }

    /// Why the pair has no place in a scenario; none where it has.
    pub(super) fn lack(&self) -> Option<String> {
        let hosts = || 0..self.channels.len();
        if !hosts().any(|host| !self.peers(host).is_empty()) {
            return Some("no two nodes on several channels share one".to_owned());
        }
        let pairs = hosts().flat_map(|from| hosts().map(move |to| (from, to)));
        let lost = pairs.filter(|(from, to)| from != to);
        let lost = lost.filter(|(from, to)| self.reach(*from, *to).is_none()).count();
        (lost > 0).then(|| format!("{lost} pairs of nodes are more than one bridge apart"))
    }

    /// Gateways and edges of all hosts. A gateway lets edges reach the service at `port`.
    pub(super) fn programs(
        &self,
        ground: &Ground<'_>,
        transport: Transport,
        port: u16,
    ) -> Result<Vec<Program>, String> {
        let keys = Keys::make(ground.program, ground.scratch)?;
        let carrier = match transport {
            Transport::PairTcp => "stream",
            Transport::PairBurst => "burst",
            _ => "auto",
        };
        let address =
            |host: usize| ground.topology.address(host).ok_or("a node that is no host".to_owned());
        let command = |host: usize| {
            let command = ground.topology.command(host, ground.program, ground.program);
            command.map_err(|error| error.to_string())
        };
        let origin = |address: Ipv4Addr| format!("http://{address}:{port}");
        let bridges = (0..self.channels.len()).filter(|host| !self.peers(*host).is_empty());
        let bridges: Vec<usize> = bridges.collect();
        let mut programs = Vec::new();
        for host in &bridges {
            let (mut gateway, own) = (command(*host)?, address(*host)?);
            gateway.args(["gateway", "--listen", &format!("{own}:{GATEWAY_PORT}")]);
            gateway.args(["--allow", &origin(own)]);
            keys.tell_gateway(&mut gateway);
            programs.push(Program { host: *host, command: gateway, ready: READY });
        }
        for host in &bridges {
            for (place, peer) in (0..).zip(self.peers(*host)) {
                let (mut edge, peer) = (command(*host)?, address(peer)?);
                edge.args(["edge", "--listen", &format!("127.0.0.1:{}", EDGE_PORT + place)]);
                edge.args(["--upstream", &origin(peer)]);
                edge.args(["--gateway", &format!("{peer}:{GATEWAY_PORT}")]);
                edge.args(["--admin", &format!("127.0.0.1:{}", ADMIN_PORT + place)]);
                edge.args(["--carrier", carrier]);
                keys.tell_edge(&mut edge);
                programs.push(Program { host: *host, command: edge, ready: READY });
            }
        }
        Ok(programs)
    }

    /// Waits until all edges have their gateways, as a pair in use has, or for so long that those
    /// without are out of reach at the start: these connect on the way. Says how many of how many
    /// have theirs.
    pub(super) fn await_ready(
        &self,
        ground: &Ground<'_>,
        stop: &AtomicBool,
    ) -> Result<(usize, usize), String> {
        let deadline = Instant::now() + CONNECT_PATIENCE;
        let (mut connected, mut all) = (0, 0);
        for host in 0..self.channels.len() {
            for (place, _) in (0..).zip(self.peers(host)) {
                let question = ("GET", "/health/ready");
                let is_ready = || {
                    let (to, port) = ((ground.topology, host), ADMIN_PORT + place);
                    let answer = ask(to, port, question, None, ANSWER_PATIENCE);
                    answer.is_ok_and(|answer| answer.status == 200)
                };
                all += 1;
                let mut has_connected = is_ready();
                while !has_connected && Instant::now() < deadline {
                    if stop.load(Ordering::Relaxed) {
                        return Err("stopped".to_owned());
                    }
                    thread::sleep(QUESTION_INTERVAL);
                    has_connected = is_ready();
                }
                connected += usize::from(has_connected);
            }
        }
        Ok((connected, all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two platoons of three on channels 0 and 1, whose leaders share channel 2.
    fn platoons() -> Bridges {
        let channels = [&[0, 2][..], &[0], &[0], &[1, 2], &[1], &[1]];
        Bridges { channels: channels.map(|of| of.iter().copied().collect()).to_vec() }
    }

    #[test]
    fn messages_between_platoons_go_by_their_leaders() {
        let bridges = platoons();
        assert_eq!(bridges.reach(1, 2), Some(Reach::Direct));
        assert_eq!(bridges.reach(1, 0), Some(Reach::Direct));
        assert_eq!(bridges.reach(1, 4), Some(Reach::Via(0)));
        assert_eq!(bridges.reach(0, 4), Some(Reach::Via(3)));
        assert_eq!(bridges.reach(0, 3), Some(Reach::Pair(EDGE_PORT)));
        assert_eq!(bridges.reach(3, 5), Some(Reach::Direct));
        assert_eq!(bridges.lack(), None);
    }

    #[test]
    fn without_bridging_nodes_the_pair_has_no_place() {
        let channels = vec![BTreeSet::from([0]), BTreeSet::from([0])];
        let lack = Bridges { channels }.lack().unwrap();
        assert!(lack.contains("no two nodes"), "{lack}");
        let mut apart = platoons();
        apart.channels.push(BTreeSet::from([3]));
        assert!(apart.lack().unwrap().contains("12 pairs"), "{:?}", apart.lack());
    }
}
