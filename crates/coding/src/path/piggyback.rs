//! Control messages that nobody waits for are piggybacked on the next part that somebody does.
//!
//! A packet of its own costs more than such a message has bytes. And where the path delivers in
//! order and packets are lost, what follows would have to wait for one more of them. An answer
//! follows a request, and mostly a request an answer, so there is nearly always something to go
//! with.

use std::time::Duration;

use proto::control::{Keeping, Receipt};
use proto::exchange::Part;

/// Control messages that wait at most: so many are worth a packet.
const MAX_WAITING: usize = 32;
/// One waits for a round trip, but for no less and no longer: services and clients take some time
/// on the shortest path too, and on the longest what a receipt teaches is wanted.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(2));

/// One of them.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// What a message took, as of a point in time.
    Receipt(Receipt, Duration),
    /// Where a message is kept now.
    Kept(Keeping),
}

impl Waiting {
    /// As it leaves now: a receipt tells how long it was held.
    fn part(self, now: Duration) -> Part {
        match self {
            Self::Receipt(mut receipt, since) => {
                receipt.tail += now.saturating_sub(since);
                receipt.part()
            }
            Self::Kept(keeping) => keeping.part(),
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Piggyback {
    waiting: Vec<Waiting>,
    /// Nothing waits any more.
    flushes: bool,
}

impl Piggyback {
    /// One more waits; whether they go at once.
    pub(crate) fn push(&mut self, one: Waiting) -> bool {
        self.waiting.push(one);
        self.flushes || self.waiting.len() >= MAX_WAITING
    }

    /// Nothing waits from here on.
    pub(crate) fn flush(&mut self) {
        self.flushes = true;
    }

    /// Something waits.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Those that leave now.
    pub(crate) fn take(&mut self, now: Duration) -> Vec<Part> {
        std::mem::take(&mut self.waiting).into_iter().map(|one| one.part(now)).collect()
    }

    /// The peer does not hear where a message of this exchange is kept.
    pub(crate) fn forget_kept(&mut self, of: u64) {
        self.waiting.retain(|one| match one {
            Waiting::Kept(Keeping::Kept { exchange, .. }) => *exchange != of,
            _ => true,
        });
    }
}

/// How long one waits on a path with this round trip, in seconds.
pub(crate) fn patience(round_trip_s: f64) -> Duration {
    let (least, most) = PATIENCE;
    Duration::try_from_secs_f64(round_trip_s).unwrap_or(most).clamp(least, most)
}
