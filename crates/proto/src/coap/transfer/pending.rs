//! What is known of a peer's request until it is answered.

use crate::coap::Block;

/// A request that the application answers.
#[derive(Debug)]
pub(super) struct Pending<P> {
    pub(super) peer: P,
    /// What requests for blocks of one body have in common.
    pub(super) key: Vec<u8>,
    /// The last block of its own body.
    pub(super) block1: Option<Block>,
    /// The block of the answer that it asks for.
    pub(super) block2: Option<Block>,
}
