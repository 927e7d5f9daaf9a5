//! A scenario of radio nets: nodes that move over ground, the channels that they share, and which
//! messages they send when. From it follow path losses, routes over hops, and what a run is known
//! by.
//!
//! All of it is data: [`Scenario`] is what a file says, once it was read and checked; resolved, it
//! is a [`Resolved`] with the path losses of each channel over time. Nodes are numbered from 1 in
//! their order, which is their number in path losses too; a channel's ports are its nodes in the
//! same order, from 0.

mod convoy;
mod facts;
mod links;
mod problem;
mod resolved;
mod routes;
mod scenario;

pub use convoy::Convoy;
pub use facts::{Fact, differences, fingerprint};
pub use links::Link;
pub use problem::{MAX_PROBLEMS, Problem, Problems};
pub use resolved::Resolved;
pub use routes::{Hop, HopCounts, Routes, TYPICAL_PACKET_BYTES};
pub use scenario::{
    BrokerServer, Case, Format, Group, MAX_CASES, MAX_GROUPS, MAX_MEDIA, MAX_MESSAGES, MAX_NODES,
    NetMedium, Node, NodeRadio, PathLoss, Routing, Scenario, ScriptedMessage, Topics, Transport,
};
