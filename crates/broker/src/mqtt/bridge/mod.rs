//! Bridges: connections that this broker makes to others, as their client (MQTT 5 §1.2 "Client").
//!
//! A bridge has a session here, like a client, that is subscribed to what goes to the other broker;
//! over its connection the packets of both directions are those of any client, with the roles
//! exchanged at its beginning: this side sends CONNECT and SUBSCRIBE. What is under way is known by
//! the session's numbers, so that it survives both the connection and the process.
//!
//! Loops are cut by the nodes that a publication has passed, which cross in a user property
//! ([`VIA`]); a broker of the same kind says its own name in CONNECT and CONNACK ([`NODE`]).

mod coding;
mod connecting;
mod link;
mod route;
#[cfg(test)]
mod tests;
mod via;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::mqtt::Version;

pub use route::Route;

pub(super) use coding::{codes, say_coding};
pub(super) use link::{End, Link, Peer};
pub(super) use route::{to_local, to_remote};
pub use via::is_node;
pub(super) use via::{Seen, add as add_via, has_passed, peer_node, say_node, take as take_via};

/// User property with the nodes that a publication has passed, separated by commas.
const VIA: &str = "lw-via";
/// User property of CONNECT and CONNACK with the name of a node.
const NODE: &str = "lw-node";

/// How a bridge is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeStatus {
    /// Its name.
    pub name: Arc<str>,
    /// The other broker has answered.
    pub is_connected: bool,
    /// Messages that wait for it.
    pub waiting: usize,
    /// Messages on the way, without an acknowledgement.
    pub under_way: usize,
}

/// A bridge, as an operator has it.
#[derive(Clone, Debug)]
pub struct Bridge {
    /// By which its session, logs and metrics know it; of no other.
    pub name: Arc<str>,
    /// 3.1.1 or 5.
    pub version: Version,
    /// What it calls itself there.
    pub client_id: String,
    /// Who it is there.
    pub user: Option<String>,
    /// What shows that.
    pub password: Option<Bytes>,
    /// How long neither side says nothing; zero: for ever.
    pub keep_alive: Duration,
    /// How long the other broker keeps its session.
    pub expiry: Duration,
    /// Messages of QoS 1 and 2 on the way at once.
    pub max_inflight: u16,
    /// How long what is sent may wait for more, so that it leaves together. What is urgent does not
    /// wait.
    pub batch: Duration,
    /// Whether both directions are compressed where the other broker is a node of this kind: what
    /// has crossed shortens what follows of the same publisher's user. Only with MQTT 5.
    pub compress: bool,
    /// What crosses it.
    pub routes: Vec<Route>,
}
