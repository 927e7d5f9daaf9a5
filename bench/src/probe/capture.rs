//! Packets as they reach a host, before its kernel judges them.

use std::os::fd::{AsRawFd, OwnedFd};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, socket};

use super::MAX_PACKET_BYTES;
use super::socket::enlarge_buffer;

const IP_HEADER_BYTES: usize = 20;

/// Opens a packet socket for IPv4 in the calling thread's namespace, with room for `bytes`.
pub(super) fn open(bytes: usize) -> Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let family = AddressFamily::Packet;
    let socket = socket(family, SockType::Datagram, flags, SockProtocol::EthIp)
        .context("open a packet socket")?;
    enlarge_buffer(&socket, bytes)?;
    Ok(socket)
}

/// The next packet, IP header first; none for now.
pub(super) fn next_packet(socket: &OwnedFd) -> Result<Option<Vec<u8>>> {
    let mut buffer = vec![0; MAX_PACKET_BYTES];
    match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
        Err(Errno::EAGAIN) => Ok(None),
        Err(error) => Err(error).context("capture a packet"),
        Ok(length) => {
            buffer.truncate(length);
            Ok(Some(buffer))
        }
    }
}

/// Whether both checksums of an IPv4 packet without options that carries UDP are right. One flipped
/// bit, wherever it is, makes one of them wrong (RFC 1071 §2).
#[must_use]
pub fn is_intact(packet: &[u8]) -> bool {
    let Some((header, datagram)) = packet.split_at_checked(IP_HEADER_BYTES) else { return false };
    let Ok(length) = u16::try_from(datagram.len()) else { return false };
    // RFC 768: both addresses, the protocol and the length come before the datagram.
    let pseudo = [&header[12..20], &[0, header[9]], &length.to_be_bytes()].concat();
    sum(header, 0) == 0xffff && sum(datagram, sum(&pseudo, 0)) == 0xffff
}

/// The sum of RFC 1071 §1, going on from `start`.
fn sum(bytes: &[u8], start: u32) -> u32 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | pair.get(1).copied().map_or(0, u32::from);
    bytes.chunks(2).map(word).fold(start, |sum, word| {
        let sum = sum + word;
        (sum & 0xffff) + (sum >> 16)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet with right checksums.
    fn packet() -> Vec<u8> {
        let mut packet = vec![
            0x45, 0, 0, 36, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 66, 0, 1, 10, 66, 0, 2, 0x12, 0x34, 0,
            9, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8,
        ];
        let header = !sum(&packet[..20], 0) & 0xffff;
        packet[10..12].copy_from_slice(&u16::try_from(header).unwrap().to_be_bytes());
        let pseudo = [&packet[12..20], &[0, 17, 0, 16]].concat();
        let datagram = !sum(&packet[20..], sum(&pseudo, 0)) & 0xffff;
        packet[26..28].copy_from_slice(&u16::try_from(datagram).unwrap().to_be_bytes());
        packet
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        assert!(is_intact(&packet()));
        for bit in 0..packet().len() * 8 {
            let mut flipped = packet();
            flipped[bit / 8] ^= 0x80 >> (bit % 8);
            assert!(!is_intact(&flipped), "bit {bit}");
        }
    }

    #[test]
    fn what_is_cut_short_is_not_intact() {
        for length in 0..packet().len() {
            assert!(!is_intact(&packet()[..length]), "{length} B");
        }
    }
}
