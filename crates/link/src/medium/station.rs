//! What waits at one port, and what it is about to send.

use super::csma::Contention;
use super::record::{PortStats, Reason};
use super::{Destination, PortId};
use crate::Packet;
use crate::queue::{Numbered, Queue};
use std::collections::BTreeMap;
use std::time::Duration;

/// A packet with whom it is for.
pub(super) struct Outbound<P> {
    pub(super) to: Destination,
    pub(super) packet: P,
}

impl<P: Packet> Packet for Outbound<P> {
    fn len_bytes(&self) -> usize {
        self.packet.len_bytes()
    }

    fn flip_bit(&mut self, bit: usize) {
        self.packet.flip_bit(bit);
    }

    fn duplicate(&self) -> Self {
        Self { to: self.to.clone(), packet: self.packet.duplicate() }
    }
}

/// A packet that is being sent.
pub(super) struct Job<P> {
    pub(super) number: u64,
    pub(super) to: Destination,
    pub(super) packet: P,
    pub(super) attempts: u32,
    /// Bytes and fragments that were sent.
    pub(super) sent_bytes: u32,
    pub(super) fragments: u32,
    /// Who missed a fragment of it.
    pub(super) missed: BTreeMap<PortId, Reason>,
    pub(super) is_delivered: bool,
}

/// One port.
pub(super) struct Station<P> {
    pub(super) power_dbm: f64,
    pub(super) queue: Queue<Outbound<P>>,
    pub(super) job: Option<Job<P>>,
    pub(super) contention: Contention,
    /// Whether it has sent and an acknowledgement is on its way.
    pub(super) is_awaiting: bool,
    /// When it sends next, by the schedule.
    pub(super) slot_at: Option<Duration>,
    pub(super) stats: PortStats,
}

impl<P: Packet> Station<P> {
    pub(super) fn new(power_dbm: f64) -> Self {
        Self {
            power_dbm,
            queue: Queue::new(),
            job: None,
            contention: Contention::new(),
            is_awaiting: false,
            slot_at: None,
            stats: PortStats::default(),
        }
    }

    pub(super) fn has_work(&self) -> bool {
        self.job.is_some() || self.queue.now().packets > 0
    }

    /// The packet that is being sent, or else the next one.
    pub(super) fn job(&mut self) -> Option<&mut Job<P>> {
        if self.job.is_none() {
            let Numbered { number, packet, .. } = self.queue.pop()?;
            let Outbound { to, packet } = packet;
            self.job = Some(Job {
                number,
                to,
                packet,
                attempts: 0,
                sent_bytes: 0,
                fragments: 0,
                missed: BTreeMap::new(),
                is_delivered: false,
            });
        }
        self.job.as_mut()
    }
}
