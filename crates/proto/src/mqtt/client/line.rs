//! What is to be written and reported.

use std::collections::VecDeque;

use bytes::Bytes;

use super::super::encode::{encode, encode_publish_head, encoded_len, shorten};
use super::super::level::Version;
use super::super::packet::{Packet, Publish};
use super::Output;
use crate::Error;

/// Longest payload that is copied to be written together with its head.
const MAX_COPIED_BYTES: usize = 4096;

/// What leaves the machine; the shell drains it after each input.
#[derive(Debug)]
pub(super) struct Line {
    version: Version,
    /// Whole chunks, and after them what is still gathered.
    chunks: VecDeque<Bytes>,
    gathered: Vec<u8>,
    outputs: VecDeque<Output>,
    /// Longest packet that the server takes.
    pub(super) max_packet_bytes: usize,
    /// Whether something was written since the last look.
    pub(super) has_written: bool,
}

impl Line {
    pub(super) fn new(version: Version) -> Self {
        Self {
            version,
            chunks: VecDeque::new(),
            gathered: Vec::new(),
            outputs: VecDeque::new(),
            max_packet_bytes: usize::MAX,
            has_written: false,
        }
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Reports something.
    pub(super) fn report(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    /// What leaves next: bytes first, so that a connection is closed after them.
    pub(super) fn pop(&mut self) -> Option<Output> {
        if let Some(chunk) = self.chunks.pop_front() {
            return Some(Output::Transmit(chunk));
        }
        if !self.gathered.is_empty() {
            return Some(Output::Transmit(std::mem::take(&mut self.gathered).into()));
        }
        self.outputs.pop_front()
    }

    /// Forgets what was to be written: the connection is gone.
    pub(super) fn forget(&mut self) {
        self.chunks.clear();
        self.gathered.clear();
    }

    /// Writes an answer, without its reason string and user properties where the server does not
    /// take so much. What does not fit without them either is left out: no answer of a client is
    /// so long that a server could be asked to take less. Returns whether it is written.
    pub(super) fn answer(&mut self, mut packet: Packet) -> bool {
        let is_written = shorten(&mut packet, self.version, self.max_packet_bytes)
            && encode(&packet, self.version, &mut self.gathered).is_ok();
        self.has_written |= is_written;
        is_written
    }

    /// Whether a packet has a length that the server takes (MQTT 5 §3.2.2.3.6, MQTT-3.2.2-15).
    pub(super) fn fits(&self, packet: &Packet) -> bool {
        encoded_len(packet, self.version) <= self.max_packet_bytes
    }

    /// Writes a packet.
    pub(super) fn write(&mut self, packet: &Packet) -> Result<(), Error> {
        encode(packet, self.version, &mut self.gathered)?;
        self.has_written = true;
        Ok(())
    }

    /// Writes a message; a long payload is not copied.
    pub(super) fn publish(&mut self, publish: &Publish) -> Result<(), Error> {
        encode_publish_head(publish, self.version, &mut self.gathered)?;
        self.has_written = true;
        if publish.payload.len() <= MAX_COPIED_BYTES {
            self.gathered.extend_from_slice(&publish.payload);
            return Ok(());
        }
        self.chunks.push_back(std::mem::take(&mut self.gathered).into());
        self.chunks.push_back(publish.payload.clone());
        Ok(())
    }
}
