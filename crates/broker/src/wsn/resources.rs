//! What has an address of its own: subscriptions, pull points and registrations.

use std::collections::VecDeque;
use std::sync::Arc;

/// A resource by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    Subscription(u64),
    PullPoint(u64),
    Registration(u64),
}

impl Resource {
    /// The segment of paths that says the kind, and the number.
    pub(super) fn parts(self) -> (&'static str, u64) {
        match self {
            Self::Subscription(id) => ("subscription", id),
            Self::PullPoint(id) => ("pullpoint", id),
            Self::Registration(id) => ("registration", id),
        }
    }

    pub(super) fn of_parts(kind: &str, id: u64) -> Option<Self> {
        match kind {
            "subscription" => Some(Self::Subscription(id)),
            "pullpoint" => Some(Self::PullPoint(id)),
            "registration" => Some(Self::Registration(id)),
            _ => None,
        }
    }
}

/// Messages that were sent to a pull point and not asked for, at most.
pub(super) const MAX_DIRECT: usize = 1000;
/// Their bytes at most.
pub(super) const MAX_DIRECT_BYTES: usize = 4 << 20;

/// A pull point: what its subscriptions have is in their sessions.
#[derive(Debug, Default)]
pub(super) struct PullPoint {
    pub(super) user: Option<Arc<str>>,
    /// What others than this broker have sent to it: whole elements NotificationMessage.
    pub(super) direct: VecDeque<String>,
    pub(super) direct_bytes: usize,
    /// The subscription that was asked last.
    pub(super) last: u64,
}

impl PullPoint {
    /// Takes a message; at the bounds what has waited longest makes room.
    pub(super) fn push(&mut self, message: String) {
        self.direct_bytes += message.len();
        self.direct.push_back(message);
        while self.direct.len() > MAX_DIRECT || self.direct_bytes > MAX_DIRECT_BYTES {
            if self.pop().is_none() {
                return;
            }
        }
    }

    pub(super) fn pop(&mut self) -> Option<String> {
        let message = self.direct.pop_front()?;
        self.direct_bytes = self.direct_bytes.saturating_sub(message.len());
        Some(message)
    }
}

/// What of an address cannot be told from other addresses.
pub(super) fn token(seed: u64, id: u64) -> u64 {
    // Two rounds of the finalizer of SplitMix64, with the seed between them.
    let mix = |value: u64| {
        let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ value >> 31
    };
    mix(mix(id.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed).wrapping_add(seed.rotate_left(32)))
}
