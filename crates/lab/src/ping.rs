//! Round trips by ICMP echo, for machines without a program for it.

use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, connect, recv, send,
    socket,
};

use crate::error::{Doing, Error, Result};

/// Most echoes that are asked for at once.
pub const MAX_ECHOES: u16 = 1000;

/// Types of messages (RFC 792, echo).
const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;
/// What ping(8) sends too, so that both show the same over a slow link: 84 bytes with the head.
const DATA_BYTES: usize = 56;
const HEAD_BYTES: usize = 8;
/// Longer answers are none of ours.
const ANSWER_BYTES: usize = 256;

/// What to ask for.
#[derive(Clone, Copy, Debug)]
pub struct Echoes {
    /// How many, at most [`MAX_ECHOES`].
    pub count: u16,
    /// From one to the next.
    pub interval: Duration,
    /// How long the last one is waited for.
    pub patience: Duration,
}

/// The round trips to a host, in the order of the requests; none for one without an answer. To be
/// called on a host of a lab, where the raw sockets that it takes are permitted.
///
/// # Errors
/// [`Error::Caller`] for a name that does not resolve or more than [`MAX_ECHOES`],
/// [`Error::System`] when a socket is refused.
pub fn ping(host: &str, echoes: Echoes) -> Result<Vec<Option<Duration>>> {
    if !(1..=MAX_ECHOES).contains(&echoes.count) {
        return Err(Error::Caller(format!(
            "{} echoes are refused: give 1 to {MAX_ECHOES}",
            echoes.count
        )));
    }
    let socket = open(address(host)?)?;
    let id = u16::try_from(std::process::id() & 0xffff).unwrap_or_default();
    let mut sent_at: Vec<Instant> = Vec::new();
    let mut found = vec![None; usize::from(echoes.count)];
    let begun = Instant::now();
    let mut next = begun;
    loop {
        let now = Instant::now();
        let number = u16::try_from(sent_at.len()).unwrap_or(u16::MAX);
        if number < echoes.count && now >= next {
            sent_at.push(now);
            next = begun + echoes.interval * u32::from(number + 1);
            // One that does not get out is lost, as one that gets lost later.
            let _ = send(socket.as_raw_fd(), &request(id, number), MsgFlags::MSG_DONTWAIT);
            continue;
        }
        let is_last = number == echoes.count;
        let until = if is_last { sent_at.last().copied().unwrap_or(now) } else { next };
        let until = if is_last { until + echoes.patience } else { until };
        if now >= until || (is_last && found.iter().all(Option::is_some)) {
            if is_last {
                return Ok(found);
            }
            continue;
        }
        wait(&socket, until - now)?;
        let mut answer = [0; ANSWER_BYTES];
        while let Ok(length) = recv(socket.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT) {
            let place = reply(answer.get(..length).unwrap_or_default(), id).map(usize::from);
            let known = place.and_then(|at| Some((found.get_mut(at)?, sent_at.get(at)?)));
            if let Some((slot @ None, at)) = known {
                *slot = Some(at.elapsed());
            }
        }
    }
}

fn address(host: &str) -> Result<Ipv4Addr> {
    let found = (host, 0).to_socket_addrs().ok().and_then(|mut all| {
        all.find_map(|one| match one.ip() {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        })
    });
    found.ok_or_else(|| Error::Caller(format!("'{host}' has no IPv4 address here: give a or b")))
}

fn open(to: Ipv4Addr) -> Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Inet, SockType::Raw, flags, SockProtocol::Icmp)
        .doing(|| "open a socket for echoes".to_string())?;
    let [a, b, c, d] = to.octets();
    connect(socket.as_raw_fd(), &SockaddrIn::new(a, b, c, d, 0))
        .doing(|| format!("send echoes to {to}"))?;
    Ok(socket)
}

fn wait(socket: &OwnedFd, time: Duration) -> Result<()> {
    let mut watched = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    // Rounded up, so that what is waited for is due then.
    let millis = u16::try_from(time.as_millis() + 1).unwrap_or(u16::MAX);
    match poll(&mut watched, PollTimeout::from(millis)) {
        Ok(_) | Err(nix::Error::EINTR) => Ok(()),
        Err(error) => Err(error).doing(|| "wait for an echo".to_string()),
    }
}

fn request(id: u16, number: u16) -> Vec<u8> {
    let mut packet = vec![0; HEAD_BYTES + DATA_BYTES];
    packet[0] = ECHO_REQUEST;
    packet[4..6].copy_from_slice(&id.to_be_bytes());
    packet[6..8].copy_from_slice(&number.to_be_bytes());
    let sum = checksum(&packet);
    packet[2..4].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// The number of the echo that a packet with its IP head answers; none when it is no answer to us.
fn reply(packet: &[u8], id: u16) -> Option<u16> {
    // RFC 791 §3.1: the length of the head in words of four bytes.
    let head = usize::from(packet.first()? & 0xf) * 4;
    let message = packet.get(head..)?;
    let number = |at: usize| Some(u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]));
    let is_ours = *message.first()? == ECHO_REPLY && number(4)? == id;
    (is_ours && checksum(message) == 0).then(|| number(6))?
}

/// The sum of RFC 1071 §1.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| match pair {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        [high] => u32::from(*high) << 8,
        _ => 0,
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_to_our_request_is_one() {
        let mut message = request(0x1234, 7);
        assert_eq!(checksum(&message), 0);
        let framed = |message: &[u8]| [&[0x45; 20][..], message].concat();
        assert_eq!(reply(&framed(&message), 0x1234), None, "a request is no answer");
        message[0] = ECHO_REPLY;
        message[2..4].fill(0);
        let sum = checksum(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(reply(&framed(&message), 0x1234), Some(7));
        assert_eq!(reply(&framed(&message), 0x1235), None, "of another process");
        message[20] ^= 1;
        assert_eq!(reply(&framed(&message), 0x1234), None, "a flipped bit");
        for length in 0..28 {
            assert_eq!(reply(&framed(&message)[..length], 0x1234), None);
        }
    }

    #[test]
    fn too_many_echoes_are_refused() {
        let echoes = Echoes { count: 0, interval: Duration::ZERO, patience: Duration::ZERO };
        for count in [0, MAX_ECHOES + 1] {
            let message = ping("b", Echoes { count, ..echoes }).unwrap_err().to_string();
            assert!(message.contains("1 to 1000"), "{message}");
        }
    }
}
