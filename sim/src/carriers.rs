//! What connects the relays, and what becomes of it.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use proto::carrier::Piece;
use proto::exchange::Part;
use proto::kinds::Kind;
use proto::stream::Frame;
use relay::{CarrierId, CarrierKind, DialFailure, Input, Role};

use crate::pipe::Pipe;
use crate::segment::Segment;
use crate::world::{NodeId, What, World};

/// Breaks in one world: enough to try everything, few enough to end.
const MAX_BREAKS: usize = 12;

/// Within which carriers break, and where that is to be about their beginning, in milliseconds.
const MAX_BREAK_MS: (u64, u64) = (40_000, 3_000);

/// How long an edge's shell tries to connect.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// How long QUIC waits for any sign of its peer.
const SILENCE: Duration = Duration::from_secs(15);

/// A carrier as the world sees it; the gateway's name for it is its place in the list.
pub(crate) struct Link {
    edge: NodeId,
    gateway: NodeId,
    /// The edge's name for it.
    carrier: CarrierId,
    edge_up: bool,
    gateway_up: bool,
    /// Something came to the edge.
    greeted: bool,
    /// Streams over datagrams.
    is_quic: bool,
    /// Frames over bytes.
    is_stream: bool,
    ab: Pipe,
    ba: Pipe,
}

impl Link {
    /// No datagram gets through: QUIC sends again until one does, and gives up after a while. Which
    /// break, and when.
    pub(crate) fn silenced(
        links: &mut [Self],
        from: Duration,
        until: Duration,
    ) -> Vec<(Duration, usize)> {
        let ends = from + SILENCE;
        let mut broken = Vec::new();
        for (at, link) in links.iter_mut().enumerate().filter(|(_, link)| link.is_quic) {
            link.ab.goes_down(from, until.min(ends));
            link.ba.goes_down(from, until.min(ends));
            broken.extend((ends < until).then_some((ends, at)));
        }
        broken
    }
}

/// Requests that whole frames begin.
fn requests(bytes: &[u8]) -> u64 {
    let mut bytes = BytesMut::from(bytes);
    let frames = std::iter::from_fn(|| Frame::take(&mut bytes).expect("frames of ours"));
    frames.map(|frame| u64::from(matches!(frame, Frame::Part(Part::Head(_))))).sum()
}

fn name(link: usize) -> CarrierId {
    CarrierId(link as u64)
}

impl World {
    pub(crate) fn dial_done(&mut self, edge: NodeId, carrier: CarrierId, kind: CarrierKind) {
        if self.moods.breaks && self.random.once_in(4) {
            let reason = "refused".to_owned();
            return self.tell(edge, Input::CarrierDown { carrier, reason });
        }
        if let Some((_, until)) =
            self.outage.filter(|(from, until)| (*from..*until).contains(&self.now))
        {
            return self.dial_meets_outage((edge, carrier, kind), until);
        }
        let kind_of = self.kinds.get(kind.0);
        let is_quic = kind_of.is_some_and(|kind| kind.name == Kind::QUIC.name);
        let is_stream = kind_of.is_some_and(|kind| kind.name == Kind::STREAM.name);
        if let Some(until) = self.blocked.and_then(|it| it.until(self.now)).filter(|_| is_quic) {
            return self.dial_meets_outage((edge, carrier, kind), until);
        }
        if self.moods.swaps && self.links.len() < MAX_BREAKS && self.random.once_in(2) {
            self.gateway_restarts();
        }
        let (at, gateway) = (self.links.len(), self.gateway);
        let (mut ab, mut ba) = (Pipe::new(&mut self.random), Pipe::new(&mut self.random));
        if let Some((from, until)) = self.outage {
            ab.goes_down(from, until);
            ba.goes_down(from, until);
        }
        let (edge_up, gateway_up, greeted) = (true, true, false);
        let link = Link {
            edge,
            gateway,
            carrier,
            edge_up,
            gateway_up,
            greeted,
            is_quic,
            is_stream,
            ab,
            ba,
        };
        self.links.push(link);
        if self.moods.breaks && at < MAX_BREAKS {
            let (usual, soon) = MAX_BREAK_MS;
            let breaks = self.some_time(if self.moods.swaps { soon } else { usual });
            self.at(breaks, What::LinkBreaks { link: at });
        }
        let peer = format!("edge {edge}");
        self.tell(gateway, Input::CarrierUp { carrier: name(at), kind, peer });
        self.tell(edge, Input::CarrierUp { carrier, kind, peer: "gateway".into() });
    }

    /// The shell tries again and again for a while; who comes through then does so soon.
    fn dial_meets_outage(
        &mut self,
        (edge, carrier, kind): (NodeId, CarrierId, CarrierKind),
        until: Duration,
    ) {
        let gives_up = self.now + DIAL_TIMEOUT;
        if until < gives_up {
            let done = until + Duration::from_millis(self.random.below(2000));
            return self.at(done, What::DialDone { edge, carrier, kind });
        }
        let (failure, reason) = (DialFailure::Silent, "no answer".to_owned());
        let input = Input::DialFailed { carrier, failure, reason };
        self.at(gives_up, What::Tell { node: edge, input });
    }

    /// All links carry nothing for a while.
    pub(crate) fn links_go_down(&mut self) {
        let (from, until) = (self.now, self.now + self.for_a_while());
        self.outage = Some((from, until));
        for link in &mut self.links {
            link.ab.goes_down(from, until);
            link.ba.goes_down(from, until);
        }
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
        if link.edge == from && !link.greeted && link.is_stream {
            self.ahead += requests(&bytes);
        }
        let (pipe, to) = match self.nodes[from].role {
            Role::Edge => (&mut link.ab, Role::Gateway),
            Role::Gateway => (&mut link.ba, Role::Edge),
        };
        let mut reported = Vec::new();
        for Segment(bytes) in Segment::of(&bytes) {
            let len = bytes.len();
            let (left, arrives) = pipe.carry(self.now, len, &mut self.random);
            reported.push((arrives, What::Bytes { link: at, to, bytes }));
            let input = Input::Sent { carrier, bytes: len };
            reported.push((left, What::Tell { node: from, input }));
        }
        for (when, what) in reported {
            self.at(when, what);
        }
    }

    /// Bytes go on one of many streams; they may pass those of others.
    pub(crate) fn send_piece(&mut self, from: NodeId, carrier: CarrierId, piece: &Piece) {
        let Some(at) = self.link_of(from, carrier) else { return };
        let link = &mut self.links[at];
        let (pipe, to) = match self.nodes[from].role {
            Role::Edge => (&mut link.ab, Role::Gateway),
            Role::Gateway => (&mut link.ba, Role::Edge),
        };
        let Piece { stream, urgency, fin, bytes } = piece;
        let mut segments: Vec<Bytes> = Segment::of(bytes).map(|Segment(bytes)| bytes).collect();
        if segments.is_empty() {
            segments.push(Bytes::new());
        }
        let mut reported = Vec::new();
        let last = segments.len() - 1;
        for (place, bytes) in segments.into_iter().enumerate() {
            let (len, fin) = (bytes.len(), *fin && place == last);
            let (left, arrives) = pipe.carry_piece(self.now, *stream, len, &mut self.random);
            reported.push((arrives, What::Piece { link: at, to, stream: *stream, bytes, fin }));
            let input = Input::StreamSent { carrier, urgency: *urgency, bytes: len };
            reported.push((left, What::Tell { node: from, input }));
        }
        for (when, what) in reported {
            self.at(when, what);
        }
    }

    pub(crate) fn piece_arrives(
        &mut self,
        at: usize,
        to: Role,
        (stream, bytes, fin): (u64, Bytes, bool),
    ) {
        let link = &mut self.links[at];
        link.greeted |= to == Role::Edge;
        let (node, carrier, up) = match to {
            Role::Edge => (link.edge, link.carrier, link.edge_up),
            Role::Gateway => (link.gateway, name(at), link.gateway_up),
        };
        if up {
            self.tell(node, Input::Stream { carrier, stream, bytes, fin });
        }
    }

    /// A datagram is lost, or arrives once or twice, before others or behind them.
    pub(crate) fn send_datagram(&mut self, from: NodeId, carrier: CarrierId, bytes: &Bytes) {
        if self.blocked.is_some_and(|it| it.until(self.now).is_some()) {
            return;
        }
        let Some(at) = self.link_of(from, carrier) else { return };
        let link = &mut self.links[at];
        let (pipe, to) = match self.nodes[from].role {
            Role::Edge => (&mut link.ab, Role::Gateway),
            Role::Gateway => (&mut link.ba, Role::Edge),
        };
        for arrives in pipe.carry_datagram(self.now, bytes.len(), &mut self.random) {
            self.at(arrives, What::Datagram { link: at, to, bytes: bytes.clone() });
        }
    }

    pub(crate) fn datagram_arrives(&mut self, at: usize, to: Role, bytes: Bytes) {
        let link = &self.links[at];
        let (node, carrier, up) = match to {
            Role::Edge => (link.edge, link.carrier, link.edge_up),
            Role::Gateway => (link.gateway, name(at), link.gateway_up),
        };
        if up {
            self.datagrams += 1;
            self.tell(node, Input::Datagram { carrier, bytes });
        }
    }

    /// Bytes of a carrier that the other end has not acknowledged.
    pub(crate) fn under_way(&mut self, from: NodeId, carrier: CarrierId) -> u64 {
        let (now, role) = (self.now, self.nodes[from].role);
        let Some(at) = self.link_of(from, carrier) else { return 0 };
        let link = &mut self.links[at];
        match role {
            Role::Edge => link.ab.under_way(now),
            Role::Gateway => link.ba.under_way(now),
        }
    }

    pub(crate) fn bytes_arrive(&mut self, at: usize, to: Role, bytes: &Bytes) {
        let link = &mut self.links[at];
        link.greeted |= to == Role::Edge;
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
