//! Ethernet frames with recycled buffers.

use std::cell::RefCell;
use std::mem;
use std::rc::Rc;

use super::ipv6::reports_own_groups;
use super::recorder::RecordPosition;

/// Length of an Ethernet header; the rest is the IP packet, which is what the link carries.
const HEADER_BYTES: usize = 14;
/// Longest frame that any port may hand in: the largest IP packet, which is one of IPv6 without
/// the jumbo option (RFC 8200 §3), behind an Ethernet header.
pub(super) const MAX_FRAME_BYTES: usize = HEADER_BYTES + 40 + 65_535;
/// Type of a frame that only takes the air: one for experiments (IEEE 802 §9.2.4).
const FILLER: [u8; 2] = [0x88, 0xb5];
/// Most empty buffers kept for later: what 200 links with full queues set free at once beyond
/// this goes back to the allocator.
const MAX_FREE_BUFFERS: usize = 16 * 1024;
/// Buffers that have grown beyond this are not kept.
const MAX_FREE_BUFFER_BYTES: usize = 4096;

/// Buffers that are free to be used again.
#[derive(Clone, Default)]
pub(super) struct Pool {
    free: Rc<RefCell<Vec<Vec<u8>>>>,
}

/// A frame that carries an IP packet.
pub(super) struct Frame {
    bytes: Vec<u8>,
    pool: Pool,
    /// Where it stands in its link's record.
    pub(super) entry: RecordPosition,
}

/// Why a frame does not get onto the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It carries something else than IP.
    Foreign,
    /// It is the kernel's report of the groups of its own IPv6 addresses.
    OwnReport,
}

impl Pool {
    /// Keeps a frame as read from a port, if the link carries it.
    pub(super) fn admit(&self, read: &[u8]) -> Result<Frame, Unfit> {
        /// Types of frames (RFC 894, RFC 2464 §3).
        const IPV4: [u8; 2] = [0x08, 0x00];
        const IPV6: [u8; 2] = [0x86, 0xdd];
        let Some((header, packet)) = read.split_at_checked(HEADER_BYTES) else {
            return Err(Unfit::Foreign);
        };
        if packet.is_empty() || !(header.ends_with(&IPV4) || header.ends_with(&IPV6)) {
            return Err(Unfit::Foreign);
        }
        if header.ends_with(&IPV6) && reports_own_groups(packet) {
            return Err(Unfit::OwnReport);
        }
        Ok(self.copy(read))
    }

    /// A frame of `bytes` zero bytes behind its header, which takes the air as if it were a packet
    /// and is written to nobody.
    pub(super) fn filler(&self, bytes: usize) -> Frame {
        let mut frame = self.copy(&[0xff; 6]);
        frame.bytes.extend_from_slice(&[0; 6]);
        frame.bytes.extend_from_slice(&FILLER);
        frame.bytes.resize(HEADER_BYTES + bytes, 0);
        frame
    }

    fn copy(&self, content: &[u8]) -> Frame {
        let mut bytes = self.free.borrow_mut().pop().unwrap_or_default();
        bytes.extend_from_slice(content);
        Frame { bytes, pool: self.clone(), entry: RecordPosition::NONE }
    }
}

impl Frame {
    /// The whole frame, header included.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether it is a [filler](Pool::filler).
    pub(super) fn is_filler(&self) -> bool {
        self.bytes.get(..HEADER_BYTES).is_some_and(|header| header.ends_with(&FILLER))
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
        if free.len() < MAX_FREE_BUFFERS && self.bytes.capacity() <= MAX_FREE_BUFFER_BYTES {
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
    fn only_ip_passes_and_counts_without_its_ethernet_header() {
        let pool = Pool::default();
        assert_eq!(pool.admit(&ipv4(&[7; 20])).ok().unwrap().len_bytes(), 20);
        let mut ipv6 = ipv4(&[7; 50]);
        ipv6[12..14].copy_from_slice(&[0x86, 0xdd]);
        assert_eq!(pool.admit(&ipv6).ok().unwrap().len_bytes(), 50);
        let refused = |frame: &[u8]| pool.admit(frame).err();
        let mut arp = ipv4(&[7; 28]);
        arp[13] = 6;
        assert_eq!(refused(&arp), Some(Unfit::Foreign));
        assert_eq!(refused(&ipv4(&[])), Some(Unfit::Foreign), "no packet in it");
        assert_eq!(refused(&[]), Some(Unfit::Foreign));
    }

    #[test]
    fn a_filler_has_the_length_of_a_packet_and_is_none() {
        let pool = Pool::default();
        let filler = pool.filler(60);
        assert_eq!((filler.len_bytes(), filler.is_filler()), (60, true));
        assert!(!pool.admit(&ipv4(&[0; 60])).ok().unwrap().is_filler());
    }

    #[test]
    fn a_flipped_bit_is_one_of_the_packet() {
        let pool = Pool::default();
        let mut frame = pool.admit(&ipv4(&[0; 20])).ok().unwrap();
        frame.flip_bit(0);
        frame.flip_bit(159);
        assert_eq!(frame.as_bytes()[14], 0x80);
        assert_eq!(frame.as_bytes()[33], 1);
        assert_eq!(frame.as_bytes().iter().map(|byte| byte.count_ones()).sum::<u32>(), 3);
    }

    #[test]
    fn buffers_are_used_again_and_come_back_empty() {
        let pool = Pool::default();
        let frame = pool.admit(&ipv4(&[1; 100])).ok().unwrap();
        let place = frame.as_bytes().as_ptr();
        drop(frame);
        let frame = pool.admit(&ipv4(&[2; 50])).ok().unwrap();
        assert_eq!(frame.as_bytes().as_ptr(), place);
        assert_eq!(frame.as_bytes(), ipv4(&[2; 50]));
        let copy = frame.duplicate();
        assert_eq!(copy.as_bytes(), frame.as_bytes());
        assert_ne!(copy.as_bytes().as_ptr(), frame.as_bytes().as_ptr());
    }
}
