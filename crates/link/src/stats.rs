//! What a channel has carried.

use crate::Packet;

/// Packets and their IP bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// IP bytes.
    pub bytes: u64,
}

impl Count {
    pub(crate) fn with<P: Packet>(mut self, packet: &P) -> Self {
        self.add(packet);
        self
    }

    pub(crate) fn add<P: Packet>(&mut self, packet: &P) {
        self.packets = self.packets.saturating_add(1);
        self.bytes = self.bytes.saturating_add(packet.len_bytes() as u64);
    }

    pub(crate) fn subtract<P: Packet>(&mut self, packet: &P) {
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(packet.len_bytes() as u64);
    }
}

/// Why a packet was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// Larger than the MTU; dropped on arrival.
    Mtu,
    /// A limit of the queue was reached; dropped on arrival.
    Queue,
    /// Lost, alone or in a burst: on the air, or on arrival with `loss_first`.
    Loss,
    /// Being sent while the link was out: lost on the air.
    Outage,
    /// More packets or bytes travelling than the emulator holds; lost on the air.
    Overflow,
}

impl DropReason {
    /// All reasons.
    pub const ALL: [Self; 5] = [Self::Mtu, Self::Queue, Self::Loss, Self::Outage, Self::Overflow];

    /// The name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mtu => "mtu",
            Self::Queue => "queue",
            Self::Loss => "loss",
            Self::Outage => "outage",
            Self::Overflow => "overflow",
        }
    }
}

/// What one channel has carried since it was made, and what it holds.
///
/// At any time `offered + duplicated = delivered + dropped + queued + in_service + in_flight`, in
/// packets and in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Handed in by the sender.
    pub offered: Count,
    /// Handed out to the receiver, copies included.
    pub delivered: Count,
    /// Copies made by duplication.
    pub duplicated: Count,
    /// Packets in which a bit was flipped.
    pub corrupted: u64,
    /// Packets that skipped the delay.
    pub reordered: u64,
    /// Waiting to be sent; the packet being serialized is not counted.
    pub queued: Count,
    /// The most packets and the most bytes that ever waited.
    pub queue_peak: Count,
    /// Being serialized: one packet or none.
    pub in_service: Count,
    /// Travelling, or due and not yet taken.
    pub in_flight: Count,
    pub(crate) dropped: [Count; DropReason::ALL.len()],
}

impl Stats {
    /// Dropped for one reason.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> Count {
        self.dropped[reason as usize]
    }

    /// Every reason with what was dropped for it.
    pub fn drops(&self) -> impl Iterator<Item = (DropReason, Count)> + '_ {
        DropReason::ALL.into_iter().map(|reason| (reason, self.dropped(reason)))
    }

    /// Dropped for any reason.
    #[must_use]
    pub fn dropped_total(&self) -> Count {
        self.dropped.iter().fold(Count::default(), |sum, one| Count {
            packets: sum.packets + one.packets,
            bytes: sum.bytes + one.bytes,
        })
    }
}
