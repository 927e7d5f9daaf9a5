//! What is transmitted, as packets of a link.

use bytes::Bytes;
use link::Packet;

/// Payload of a full segment, and its headers: IPv4, TCP with timestamps.
const SEGMENT_BYTES: usize = 1448;
const HEADER_BYTES: usize = 52;

/// A segment of TCP by its payload, on a link that corrupts nothing.
#[derive(Clone, Debug)]
pub struct Segment(pub Bytes);

impl Segment {
    /// The segments that so many bytes leave in.
    pub fn of(bytes: &Bytes) -> impl Iterator<Item = Self> {
        let starts = (0..bytes.len()).step_by(SEGMENT_BYTES);
        starts.map(|at| Self(bytes.slice(at..bytes.len().min(at + SEGMENT_BYTES))))
    }
}

impl Packet for Segment {
    fn len_bytes(&self) -> usize {
        self.0.len() + HEADER_BYTES
    }

    fn flip_bit(&mut self, _: usize) {}

    fn duplicate(&self) -> Self {
        self.clone()
    }
}
