//! Where listeners are.

use std::net::SocketAddr;

/// Where a listener is, once it is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// What it speaks: the key of the configuration.
    pub name: &'static str,
    /// Its address, with the port that was found where 0 was asked for.
    pub address: SocketAddr,
}
