//! What was in the air.

use super::PortId;
use crate::stats::Count;
use std::time::Duration;

/// Why a packet did not arrive, or a transmission was not received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Larger than the MTU, or than a slot where packets are not cut.
    Mtu,
    /// A limit of the port's queue was reached.
    Queue,
    /// Sent as often as is allowed, and not acknowledged.
    Attempts,
    /// The receiver was sending itself.
    Sending,
    /// Lost in noise: the signal was too weak.
    Weak,
    /// Lost in other transmissions.
    Interference,
    /// Lost in jamming.
    Jamming,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 7] = [
        Self::Mtu,
        Self::Queue,
        Self::Attempts,
        Self::Sending,
        Self::Weak,
        Self::Interference,
        Self::Jamming,
    ];

    /// The name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mtu => "mtu",
            Self::Queue => "queue",
            Self::Attempts => "attempts",
            Self::Sending => "sending",
            Self::Weak => "weak",
            Self::Interference => "interference",
            Self::Jamming => "jamming",
        }
    }
}

/// What a transmission carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A packet or a fragment of one.
    Packet {
        /// The packet's number at its port, in the order in which they were handed in.
        number: u64,
        /// How often it was sent before, this time counted: from 1.
        attempt: u32,
        /// Which fragment it is, from 0.
        fragment: u32,
        /// Whether it is the packet's last one.
        is_last: bool,
    },
    /// An acknowledgement.
    Acknowledgement,
}

/// A transmission that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Transmissions of a channel, in the order in which they began.
    pub number: u64,
    /// The sender.
    pub from: PortId,
    /// What it carried.
    pub content: Content,
    /// When it began.
    pub start: Duration,
    /// How long it took.
    pub airtime: Duration,
    /// Bytes after the preamble.
    pub bytes: u32,
    /// Their rate.
    pub rate_bps: u64,
    /// Of those it was meant for, who received it.
    pub received: Vec<PortId>,
    /// Of those it was meant for, who did not.
    pub missed: Vec<(PortId, Reason)>,
}

/// What one port has done since the channel was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Packets handed in.
    pub offered: Count,
    /// Packets handed out to this port.
    pub delivered: Count,
    /// Packets of this port that nobody received.
    pub dropped: Count,
    /// Packets waiting, the one under way not counted.
    pub queued: Count,
    /// The most packets and the most bytes that ever waited.
    pub queue_peak: Count,
    /// Transmissions that ended, acknowledgements counted.
    pub transmissions: u64,
    /// The time that they took.
    pub airtime: Duration,
}
