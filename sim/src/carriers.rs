//! What connects the relays, and what becomes of it.

use std::time::Duration;

use bytes::Bytes;
use relay::{CarrierId, Input, Role};

use crate::pipe::Pipe;
use crate::world::{NodeId, What, World};

/// Breaks in one world: enough to try everything, few enough to end.
const MAX_BREAKS: usize = 12;

/// A carrier as the world sees it; the gateway's name for it is its place in the list.
pub(crate) struct Link {
    edge: NodeId,
    gateway: NodeId,
    /// The edge's name for it.
    carrier: CarrierId,
    edge_up: bool,
    gateway_up: bool,
    ab: Pipe,
    ba: Pipe,
}

fn name(link: usize) -> CarrierId {
    CarrierId(link as u64)
}

impl World {
    pub(crate) fn dial_done(&mut self, edge: NodeId, carrier: CarrierId) {
        if self.moods.breaks && self.random.once_in(4) {
            let reason = "refused".to_owned();
            return self.tell(edge, Input::CarrierDown { carrier, reason });
        }
        let (link, gateway) = (self.links.len(), self.gateway);
        let (ab, ba) = (Pipe::new(&mut self.random), Pipe::new(&mut self.random));
        self.links.push(Link { edge, gateway, carrier, edge_up: true, gateway_up: true, ab, ba });
        if self.moods.breaks && link < MAX_BREAKS {
            let breaks = self.some_time(40_000);
            self.at(breaks, What::LinkBreaks { link });
        }
        let peer = format!("edge {edge}");
        self.tell(gateway, Input::CarrierUp { carrier: name(link), peer });
        self.tell(edge, Input::CarrierUp { carrier, peer: "gateway".into() });
    }

    /// The link that a node knows by this name.
    fn link_of(&self, node: NodeId, carrier: CarrierId) -> Option<usize> {
        self.links.iter().enumerate().position(|(at, link)| match self.nodes[node].role {
            Role::Edge => link.edge == node && link.carrier == carrier,
            Role::Gateway => name(at) == carrier,
        })
    }

    pub(crate) fn transmit(&mut self, from: NodeId, carrier: CarrierId, bytes: Bytes) {
        let Some(at) = self.link_of(from, carrier) else { return };
        let link = &mut self.links[at];
        let (pipe, to) = match self.nodes[from].role {
            Role::Edge => (&mut link.ab, Role::Gateway),
            Role::Gateway => (&mut link.ba, Role::Edge),
        };
        let len = bytes.len();
        let (left, arrives) = pipe.carry(self.now, len, &mut self.random);
        self.at(arrives, What::Bytes { link: at, to, bytes });
        let input = Input::Sent { carrier, bytes: len };
        self.at(left, What::Tell { node: from, input });
    }

    pub(crate) fn bytes_arrive(&mut self, at: usize, to: Role, bytes: &Bytes) {
        let link = &self.links[at];
        let (node, carrier, up) = match to {
            Role::Edge => (link.edge, link.carrier, link.edge_up),
            Role::Gateway => (link.gateway, name(at), link.gateway_up),
        };
        // Bytes come in other portions than they were sent in.
        let cut = usize::try_from(self.random.below(bytes.len() as u64 + 1)).expect("small");
        for part in [bytes.slice(..cut), bytes.slice(cut..)] {
            if up {
                self.tell(node, Input::Received { carrier, bytes: part });
            }
        }
    }

    /// A relay closes a carrier: what it sent before still arrives.
    pub(crate) fn closes(&mut self, node: NodeId, carrier: CarrierId) {
        let Some(at) = self.link_of(node, carrier) else { return };
        let link = &mut self.links[at];
        match self.nodes[node].role {
            Role::Edge => {
                link.edge_up = false;
                let hears = link.ab.last_arrival().max(self.now);
                self.at(hears, What::GatewayHearsOfBreak { link: at });
            }
            Role::Gateway => {
                link.gateway_up = false;
                let hears = link.ba.last_arrival().max(self.now);
                self.at(hears, What::LinkBreaks { link: at });
            }
        }
    }

    /// The edge sees the break; what is on its way to the gateway still arrives for a while.
    pub(crate) fn link_breaks(&mut self, at: usize) {
        let link = &mut self.links[at];
        if std::mem::replace(&mut link.edge_up, false) {
            let (edge, carrier, reason) = (link.edge, link.carrier, "reset".to_owned());
            let hears = self.some_time(5000);
            self.at(hears, What::GatewayHearsOfBreak { link: at });
            self.tell(edge, Input::CarrierDown { carrier, reason });
        }
    }

    pub(crate) fn gateway_hears(&mut self, at: usize) {
        let link = &mut self.links[at];
        if std::mem::replace(&mut link.gateway_up, false) {
            let (gateway, reason) = (link.gateway, "reset".to_owned());
            self.tell(gateway, Input::CarrierDown { carrier: name(at), reason });
        }
    }

    /// The gateway dies; another takes its place.
    pub(crate) fn gateway_restarts(&mut self) {
        let dead = self.gateway;
        self.take_over();
        self.nodes[dead].alive = false;
        for at in 0..self.links.len() {
            if self.links[at].gateway == dead {
                self.links[at].gateway_up = false;
                let breaks = self.some_time(1000);
                self.at(breaks, What::LinkBreaks { link: at });
            }
        }
    }

    /// The gateway is asked to end; another takes its place at once.
    pub(crate) fn gateway_shuts_down(&mut self) {
        let old = self.gateway;
        self.take_over();
        self.nodes[old].shutting_down = true;
        self.tell(old, Input::Shutdown);
    }

    fn take_over(&mut self) {
        self.replaced = true;
        self.gateway = self.add(Role::Gateway);
    }

    /// A relay that was shut down is through: its process ends, what it sent still arrives.
    pub(crate) fn process_ends(&mut self, node: NodeId) {
        self.nodes[node].alive = false;
        for at in 0..self.links.len() {
            let link = &mut self.links[at];
            if link.gateway == node && std::mem::replace(&mut link.gateway_up, false) {
                let hears = link.ba.last_arrival().max(self.now + Duration::from_millis(1));
                self.at(hears, What::LinkBreaks { link: at });
            }
        }
    }
}
