//! What was in the air, written by a net's thread.

use std::mem;
use std::time::Duration;

use link::medium::PortId;

use super::MAX_AIR_ENTRIES;
use super::meta::PacketMeta;

/// Entries of a chunk: memory comes in pieces, and nothing is moved as it grows.
const CHUNK_ENTRIES: usize = 256;

/// One transmission. Times count from the beginning of the net.
#[derive(Clone, Debug)]
pub(crate) struct AirEntry {
    /// The medium or link, by its place.
    pub(crate) segment: usize,
    /// The sender's port.
    pub(crate) from: PortId,
    /// What was sent; none for an acknowledgement of the medium.
    pub(crate) meta: Option<PacketMeta>,
    pub(crate) start: Duration,
    pub(crate) airtime: Duration,
    pub(crate) bytes: u32,
    pub(crate) rate_bps: u64,
    pub(crate) attempt: u32,
    pub(crate) fragment: u32,
    pub(crate) received: Vec<PortId>,
    pub(crate) missed: Vec<(PortId, &'static str)>,
}

/// Transmissions up to a bound, and the number of those beyond.
#[derive(Default)]
pub(super) struct AirRecorder {
    chunks: Vec<Vec<AirEntry>>,
    entries: usize,
    unrecorded: u64,
}

impl AirRecorder {
    pub(super) fn push(&mut self, entry: AirEntry) {
        if self.entries >= MAX_AIR_ENTRIES {
            self.unrecorded += 1;
            return;
        }
        self.entries += 1;
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK_ENTRIES => chunk.push(entry),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK_ENTRIES);
                chunk.push(entry);
                self.chunks.push(chunk);
            }
        }
    }

    /// Everything so far; the bound is that of what is kept from now on.
    pub(super) fn take(&mut self) -> Vec<Vec<AirEntry>> {
        self.entries = 0;
        mem::take(&mut self.chunks)
    }

    pub(super) fn unrecorded(&self) -> u64 {
        self.unrecorded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_gone_and_what_is_beyond_the_bound_is_counted() {
        let entry = AirEntry {
            segment: 0,
            from: 0,
            meta: None,
            start: Duration::ZERO,
            airtime: Duration::ZERO,
            bytes: 0,
            rate_bps: 1,
            attempt: 0,
            fragment: 0,
            received: Vec::new(),
            missed: Vec::new(),
        };
        let mut recorder = AirRecorder::default();
        (0..MAX_AIR_ENTRIES + 3).for_each(|_| recorder.push(entry.clone()));
        assert_eq!(recorder.unrecorded(), 3);
        assert_eq!(recorder.take().iter().map(Vec::len).sum::<usize>(), MAX_AIR_ENTRIES);
        assert!(recorder.take().is_empty());
        recorder.push(entry);
        assert_eq!(recorder.take().len(), 1);
    }
}
