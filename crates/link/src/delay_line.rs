//! Packets that have left the transmitter and not yet arrived.

use crate::Packet;
use crate::stats::Count;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Most packets travelling in one direction at once: over 2 s of 1500-byte packets at 1 Gbit/s.
pub const MAX_IN_FLIGHT_PACKETS: u64 = 262_144;

/// Most bytes travelling in one direction at once: over 21 s at 100 Mbit/s.
pub const MAX_IN_FLIGHT_BYTES: u64 = 256 * 1024 * 1024;

/// Packets by the time they are due; those due together leave in the order in which they entered.
pub(crate) struct DelayLine<P> {
    heap: BinaryHeap<Flight<P>>,
    entered: u64,
    held: Count,
}

struct Flight<P> {
    due: Duration,
    entered: u64,
    packet: P,
}

impl<P: Packet> DelayLine<P> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), entered: 0, held: Count::default() }
    }

    /// Packets and bytes inside.
    pub(crate) fn held(&self) -> Count {
        self.held
    }

    /// When the next packet is due.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.heap.peek().map(|flight| flight.due)
    }

    /// Takes a packet in, or hands it back when a bound is reached.
    pub(crate) fn push(&mut self, due: Duration, packet: P) -> Result<(), P> {
        let after = self.held.with(&packet);
        if after.packets > MAX_IN_FLIGHT_PACKETS || after.bytes > MAX_IN_FLIGHT_BYTES {
            return Err(packet);
        }
        self.held = after;
        self.heap.push(Flight { due, entered: self.entered, packet });
        self.entered += 1;
        Ok(())
    }

    /// The next packet, if it is due at `now`.
    pub(crate) fn pop_due(&mut self, now: Duration) -> Option<(Duration, P)> {
        if self.next_due()? > now {
            return None;
        }
        let flight = self.heap.pop()?;
        self.held.subtract(&flight.packet);
        Some((flight.due, flight.packet))
    }
}

impl<P> Flight<P> {
    fn rank(&self) -> (Duration, u64) {
        (self.due, self.entered)
    }
}

// The heap gives its greatest first: the earliest due, then the first entered, is the greatest.
impl<P> Ord for Flight<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.rank().cmp(&self.rank())
    }
}

impl<P> PartialOrd for Flight<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Flight<P> {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl<P> Eq for Flight<P> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn packets_leave_by_due_time_then_by_entry() {
        let mut line = DelayLine::new();
        for (due_ms, name) in [(30, 1_u8), (10, 2), (30, 3), (20, 4)] {
            assert!(line.push(at(due_ms), vec![name]).is_ok());
        }
        assert_eq!(line.pop_due(at(9)), None);
        assert_eq!(line.next_due(), Some(at(10)));
        let order: Vec<u8> = std::iter::from_fn(|| line.pop_due(at(99)).map(|p| p.1[0])).collect();
        assert_eq!(order, [2, 4, 1, 3]);
        assert_eq!(line.held(), Count::default());
    }

    #[test]
    fn the_packet_past_the_bound_is_handed_back() {
        let mut line = DelayLine::new();
        for _ in 0..MAX_IN_FLIGHT_PACKETS {
            assert!(line.push(at(1), Vec::new()).is_ok());
        }
        assert!(line.push(at(1), Vec::new()).is_err());
        assert!(line.pop_due(at(1)).is_some());
        assert!(line.push(at(1), Vec::new()).is_ok());
    }
}
