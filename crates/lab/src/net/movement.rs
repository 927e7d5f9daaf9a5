//! What changes as time passes: path losses and, from them, routes. Both are calculated before a
//! run, once for all runs of a scenario, so that runs differ in nothing but their seeds.

use std::collections::BTreeMap;
use std::time::Duration;

use link::losses::{Change, NodeId};
use link::medium::PortId;
use link::net::{Hop, Resolved, Routes};

use super::topology::HostRoute;
use crate::ferry::net::LossChange;

/// What changes at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Step {
    pub(super) at: Duration,
    pub(super) losses: Vec<LossChange>,
    /// In the order of hosts.
    pub(super) routes: Vec<HostRoute>,
}

/// The way of a message when it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Way {
    /// Places of the media that it leads over, each once, in their order.
    pub(super) crossed: Vec<usize>,
    /// 0 where there is none.
    pub(super) hops: u32,
}

/// All steps of a scenario, the first at 0, and the ways of its messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Movement {
    pub(super) steps: Vec<Step>,
    /// For each message of the script, in its order, and each of its receivers.
    pub(super) ways: Vec<Vec<(NodeId, Way)>>,
}

impl Movement {
    /// Of a scenario. Takes about a millisecond for each step of eighty nodes.
    pub(super) fn of(resolved: &Resolved) -> Self {
        let scenario = &resolved.scenario;
        let mut steps: Vec<Step> = Vec::new();
        let mut ways = vec![Vec::new(); scenario.messages.len()];
        let mut routes = Routes::default();
        let mut message = 0;
        let ports = Ports::of(resolved);
        for at in resolved.steps() {
            // The first step has what holds then, each other what is new since the one before.
            let from = match at.is_zero() {
                true => Duration::ZERO,
                false => (at - scenario.step) + Duration::from_nanos(1),
            };
            let until = at + Duration::from_nanos(1);
            let losses = (0..scenario.media.len()).flat_map(|medium| {
                let changes = resolved.changes(medium, from, until).iter();
                let ports = &ports;
                changes.filter_map(move |change| ports.loss(medium, change))
            });
            let losses: Vec<LossChange> = losses.collect();
            let mut changes = Vec::new();
            if at.is_zero() || !losses.is_empty() {
                let next = resolved.routes(at);
                changes = next.changes_since(&routes);
                routes = next;
            }
            let host = |id: NodeId| usize::from(id).saturating_sub(1);
            let route = |(from, to, hop): (NodeId, NodeId, Option<Hop>)| HostRoute {
                host: host(from),
                to: host(to),
                by: hop.map(|hop| (host(hop.next), hop.medium)),
            };
            let changed = changes.into_iter().map(route);
            // Nothing is to be removed where nothing has been yet.
            let changed = changed.filter(|route| route.by.is_some() || !at.is_zero());
            steps.push(Step { at, losses, routes: changed.collect() });
            let end = at + scenario.step;
            while let Some(one) = scenario.messages.get(message).filter(|one| one.at < end) {
                let receivers = scenario.receivers(one).into_iter();
                let found = receivers.map(|to| (to, way(&routes, one.from, to)));
                ways[message] = found.collect();
                message += 1;
            }
        }
        Self { steps, ways }
    }
}

/// The port of each node on each medium.
struct Ports(Vec<BTreeMap<NodeId, PortId>>);

impl Ports {
    fn of(resolved: &Resolved) -> Self {
        let scenario = &resolved.scenario;
        let of_medium = |medium| {
            let nodes = scenario.members(medium).map(|(node, _)| node.id);
            nodes.zip(0..).collect()
        };
        Self((0..scenario.media.len()).map(of_medium).collect())
    }

    /// A change of a path loss between ports.
    fn loss(&self, medium: usize, change: &Change) -> Option<LossChange> {
        let ports = self.0.get(medium)?;
        let (from, to) = (*ports.get(&change.from)?, *ports.get(&change.to)?);
        Some(LossChange { medium, from, to, loss_db: Some(change.loss_db) })
    }
}

fn way(routes: &Routes, from: NodeId, to: NodeId) -> Way {
    let Some(path) = routes.path(from, to) else { return Way::default() };
    let mut crossed = Vec::new();
    for hop in &path {
        if !crossed.contains(&hop.medium) {
            crossed.push(hop.medium);
        }
    }
    Way { crossed, hops: u32::try_from(path.len()).unwrap_or(u32::MAX) }
}
