//! The queue before the transmitter.

use crate::Packet;
use crate::stats::Count;
use std::collections::VecDeque;
use std::time::Duration;

/// Most packets that a queue can be allowed to hold.
pub const MAX_QUEUE_PACKETS: u32 = 100_000;

/// Most bytes that a queue can be allowed to hold.
pub const MAX_QUEUE_BYTES: u64 = 256 * 1024 * 1024;

/// A packet on its way, with its number in the order of arrival at the channel.
pub(crate) struct Numbered<P> {
    pub(crate) number: u64,
    /// Whether it has already been decided that this packet is not lost.
    pub(crate) spared: bool,
    pub(crate) packet: P,
}

/// First in, first out, with tail drop.
pub(crate) struct Queue<P> {
    waiting: VecDeque<Numbered<P>>,
    now: Count,
    peak: Count,
}

impl<P: Packet> Queue<P> {
    pub(crate) fn new() -> Self {
        Self { waiting: VecDeque::new(), now: Count::default(), peak: Count::default() }
    }

    /// What waits now.
    pub(crate) fn now(&self) -> Count {
        self.now
    }

    /// The most packets and the most bytes that ever waited.
    pub(crate) fn peak(&self) -> Count {
        self.peak
    }

    /// Appends, or hands the packet back when either limit would be passed.
    pub(crate) fn push(
        &mut self,
        entry: Numbered<P>,
        packets_limit: u32,
        bytes_limit: u64,
    ) -> Result<(), Numbered<P>> {
        let after = self.now.with(&entry.packet);
        let packets_limit = u64::from(packets_limit.min(MAX_QUEUE_PACKETS));
        if after.packets > packets_limit || after.bytes > bytes_limit.min(MAX_QUEUE_BYTES) {
            return Err(entry);
        }
        self.now = after;
        self.peak.packets = self.peak.packets.max(after.packets);
        self.peak.bytes = self.peak.bytes.max(after.bytes);
        self.waiting.push_back(entry);
        Ok(())
    }

    /// Takes the packet that has waited longest.
    pub(crate) fn pop(&mut self) -> Option<Numbered<P>> {
        let entry = self.waiting.pop_front()?;
        self.now.subtract(&entry.packet);
        Some(entry)
    }
}

/// The packet being serialized.
pub(crate) struct InService<P> {
    pub(crate) entry: Numbered<P>,
    pub(crate) start: Duration,
    pub(crate) finish: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(len_bytes: usize) -> Numbered<Vec<u8>> {
        Numbered { number: 0, spared: false, packet: vec![0; len_bytes] }
    }

    #[test]
    fn either_limit_drops_the_tail() {
        let mut queue = Queue::new();
        assert!(queue.push(entry(600), 2, 1_000).is_ok());
        assert!(queue.push(entry(401), 2, 1_000).is_err(), "bytes");
        assert!(queue.push(entry(400), 2, 1_000).is_ok());
        assert!(queue.push(entry(0), 2, 1_000).is_err(), "packets");
        assert_eq!(queue.now(), Count { packets: 2, bytes: 1_000 });
        assert_eq!(queue.pop().map(|e| e.packet.len()), Some(600));
        assert_eq!(queue.now(), Count { packets: 1, bytes: 400 });
        assert_eq!(queue.peak(), Count { packets: 2, bytes: 1_000 });
    }

    #[test]
    fn no_configuration_passes_the_named_bounds() {
        let mut queue = Queue::new();
        for _ in 0..MAX_QUEUE_PACKETS {
            assert!(queue.push(entry(0), u32::MAX, u64::MAX).is_ok());
        }
        assert!(queue.push(entry(0), u32::MAX, u64::MAX).is_err());
    }
}
