//! What messages took on the way to each peer, apart: what the link of one is like says nothing of
//! another's.

use std::collections::BTreeMap;

use super::{Corrected, NetworkModel, Path};
use crate::state::{Error, Persist, Reader, Writer};

/// Peers remembered: some times as many as are connected to a gateway at once.
const MAX_PEERS: usize = 256;
/// Peers that have taught fewer messages have so many places among themselves: whoever comes once
/// must not drive out what was learned of others, nor those others keep out whoever is new.
const FEW: f64 = 4.0;
const NEW_PEERS: usize = 32;

/// A correction of the model for each [`Path::peer`].
#[derive(Clone, Debug, Default)]
pub struct Paths {
    peers: BTreeMap<u64, Peer>,
    /// Of a peer that has taught nothing.
    fresh: Corrected,
    /// Counts what was observed.
    clock: u64,
}

#[derive(Clone, Debug, Default)]
struct Peer {
    network: Corrected,
    used: u64,
}

impl Paths {
    /// Most bytes of memory that they take beside their own, whatever comes.
    #[must_use]
    pub(crate) fn most_bytes() -> usize {
        2 * MAX_PEERS * size_of::<(u64, Peer)>()
    }

    /// Learns that `bytes` took `seconds` on a path that looked like `path` before.
    pub fn observe(&mut self, path: &Path, bytes: f64, seconds: f64) {
        self.clock += 1;
        if self.peers.len() >= MAX_PEERS && !self.peers.contains_key(&path.peer) {
            let is_new = |peer: &Peer| peer.network.weight() < FEW;
            let new_goes = self.peers.values().filter(|peer| is_new(peer)).count() >= NEW_PEERS;
            let value = |peer: &Peer| (is_new(peer) != new_goes, peer.used);
            let least = self.peers.iter().min_by_key(|(_, peer)| value(peer));
            if let Some(least) = least.map(|(&least, _)| least) {
                self.peers.remove(&least);
            }
        }
        let peer = self.peers.entry(path.peer).or_default();
        peer.used = self.clock;
        peer.network.observe(path, bytes, seconds);
    }

    /// The path to a peer turned out to be another: what was learned of the one before, and of
    /// messages that went before that was noticed, says nothing of it.
    pub fn forget(&mut self, peer: u64) {
        self.peers.remove(&peer);
    }
}

impl NetworkModel for Paths {
    fn seconds(&self, path: &Path, bytes: f64) -> f64 {
        let peer = self.peers.get(&path.peer);
        let seconds = peer.map_or(&self.fresh, |peer| &peer.network).seconds(path, bytes);
        // Whatever messages took: the operator's word is the last.
        seconds.max(8.0 * path.wire_bytes(bytes) / path.cap_bps)
    }
}

/// The clock, then the peers of which something is worth keeping, in ascending order.
impl Persist for Paths {
    fn write(&self, to: &mut Writer<'_>) {
        to.u64(self.clock);
        let kept = self.peers.iter().filter(|(_, peer)| peer.network.weight() > 0.0);
        to.count(kept.clone().count());
        for (&id, peer) in kept {
            to.u64(id);
            to.u64(peer.used);
            peer.network.write(to);
        }
    }

    fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Error> {
        self.clock = from.clock()?;
        let mut before = None;
        for _ in 0..from.count("number of peers", MAX_PEERS)? {
            let (id, used) = (from.u64()?, from.u64()?);
            if before.is_some_and(|before| before >= id) || used > self.clock {
                return Err(Error::Damaged("its peers are out of order"));
            }
            before = Some(id);
            let mut network = Corrected::default();
            network.read(from)?;
            self.peers.insert(id, Peer { network, used });
        }
        Ok(())
    }
}
