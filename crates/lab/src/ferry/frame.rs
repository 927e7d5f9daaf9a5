//! Ethernet frames with recycled buffers.

use std::cell::RefCell;
use std::mem;
use std::rc::Rc;

use super::recorder::Place;

/// Length of an Ethernet header; the rest is the IP packet, which is what the link carries.
const HEADER_BYTES: usize = 14;
/// Longest frame that any port may hand in: the largest IPv4 packet behind an Ethernet header.
pub(super) const FRAME_BYTES_MAX: usize = HEADER_BYTES + 65_535;
/// Most empty buffers kept for later: what 200 links with full queues set free at once beyond
/// this goes back to the allocator.
const FREE_BUFFERS_MAX: usize = 16 * 1024;
/// Buffers that have grown beyond this are not kept.
const FREE_BUFFER_BYTES_MAX: usize = 4096;

/// Buffers that are free to be used again.
#[derive(Clone, Default)]
pub(super) struct Pool {
    free: Rc<RefCell<Vec<Vec<u8>>>>,
}

/// A frame that carries an IPv4 packet.
pub(super) struct Frame {
    bytes: Vec<u8>,
    pool: Pool,
    /// Where it stands in its link's record.
    pub(super) entry: Place,
}

impl Pool {
    /// Keeps a frame as read from a port; `None` when it carries something else than IPv4.
    pub(super) fn admit(&self, read: &[u8]) -> Option<Frame> {
        const IPV4: [u8; 2] = [0x08, 0x00];
        if read.len() <= HEADER_BYTES || read[HEADER_BYTES - 2..HEADER_BYTES] != IPV4 {
            return None;
        }
        Some(self.copy(read))
    }

    fn copy(&self, content: &[u8]) -> Frame {
        let mut bytes = self.free.borrow_mut().pop().unwrap_or_default();
        bytes.extend_from_slice(content);
        Frame { bytes, pool: self.clone(), entry: Place::NONE }
    }
}

impl Frame {
    /// The whole frame, header included.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The IP packet in it.
    pub(super) fn packet(&self) -> &[u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }
}

impl link::Packet for Frame {
    fn len_bytes(&self) -> usize {
        self.bytes.len() - HEADER_BYTES
    }

    fn flip_bit(&mut self, bit: usize) {
        if let Some(byte) = self.bytes.get_mut(HEADER_BYTES + bit / 8) {
            *byte ^= 0x80 >> (bit % 8);
        }
    }

    fn duplicate(&self) -> Self {
        let mut copy = self.pool.copy(&self.bytes);
        copy.entry = self.entry.copy();
        copy
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        let mut free = self.pool.free.borrow_mut();
        if free.len() < FREE_BUFFERS_MAX && self.bytes.capacity() <= FREE_BUFFER_BYTES_MAX {
            let mut bytes = mem::take(&mut self.bytes);
            bytes.clear();
            free.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use link::Packet;

    fn ipv4(packet: &[u8]) -> Vec<u8> {
        [&[0; 12], [8, 0].as_slice(), packet].concat()
    }

    #[test]
    fn only_ipv4_passes_and_counts_without_its_ethernet_header() {
        let pool = Pool::default();
        assert_eq!(pool.admit(&ipv4(&[7; 20])).unwrap().len_bytes(), 20);
        let mut arp = ipv4(&[7; 28]);
        arp[13] = 6;
        assert!(pool.admit(&arp).is_none());
        assert!(pool.admit(&ipv4(&[])).is_none(), "no packet in it");
        assert!(pool.admit(&[]).is_none());
    }

    #[test]
    fn a_flipped_bit_is_one_of_the_packet() {
        let pool = Pool::default();
        let mut frame = pool.admit(&ipv4(&[0; 20])).unwrap();
        frame.flip_bit(0);
        frame.flip_bit(159);
        assert_eq!(frame.as_bytes()[14], 0x80);
        assert_eq!(frame.as_bytes()[33], 1);
        assert_eq!(frame.as_bytes().iter().map(|byte| byte.count_ones()).sum::<u32>(), 3);
    }

    #[test]
    fn buffers_are_used_again_and_come_back_empty() {
        let pool = Pool::default();
        let frame = pool.admit(&ipv4(&[1; 100])).unwrap();
        let place = frame.as_bytes().as_ptr();
        drop(frame);
        let frame = pool.admit(&ipv4(&[2; 50])).unwrap();
        assert_eq!(frame.as_bytes().as_ptr(), place);
        assert_eq!(frame.as_bytes(), ipv4(&[2; 50]));
        let copy = frame.duplicate();
        assert_eq!(copy.as_bytes(), frame.as_bytes());
        assert_ne!(copy.as_bytes().as_ptr(), frame.as_bytes().as_ptr());
    }
}
