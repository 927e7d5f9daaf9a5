//! The TCP sockets of a network namespace, as the kernel tells of them (sock_diag(7)).

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, setsockopt, socket,
    sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

use super::message::{Request, answers, attribute, text, u32_at};

/// Most sockets told of: a host of the laboratory has some dozens.
pub const MAX_TCP_SOCKETS: usize = 16 * 1024;
/// The kernel answers at once; after this many seconds something is wrong with the machine.
const ANSWER_TIMEOUT_S: i64 = 5;
/// The kernel makes no larger parts of an answer.
const ANSWER_BYTES: usize = 64 * 1024;
/// `SOCK_DIAG_BY_FAMILY`.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// Length of `struct inet_diag_req_v2` and of `struct inet_diag_msg`.
const REQUEST_BYTES: usize = 56;
const SOCKET_BYTES: usize = 72;
/// `INET_DIAG_INFO`, with a `struct tcp_info`, and `INET_DIAG_CONG`, with a name.
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
/// Places of `tcpi_total_retrans` and `tcpi_segs_out` in `struct tcp_info`.
const TOTAL_RETRANS_AT: usize = 100;
const SEGS_OUT_AT: usize = 136;
/// The kernel's states from 1 on (net/tcp_states.h), named as in RFC 9293 §3.3.2.
const STATES: [&str; 12] = [
    "established",
    "syn-sent",
    "syn-received",
    "fin-wait-1",
    "fin-wait-2",
    "time-wait",
    "closed",
    "close-wait",
    "last-ack",
    "listen",
    "closing",
    "syn-received",
];

/// One TCP socket of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSocket {
    /// Port on this host.
    pub local_port: u16,
    /// Port on the other; 0 for one that listens.
    pub remote_port: u16,
    /// In lower case with hyphens, as RFC 9293 §3.3.2 names it: `established`, `listen`.
    pub state: &'static str,
    /// The congestion control in force; none for what is only remembered, as in `time-wait`.
    pub congestion_control: Option<String>,
    /// Segments sent again since the connection began.
    pub retransmits: u32,
    /// Segments sent since the connection began, those sent again too.
    pub segments_out: u32,
}

/// All TCP sockets of the calling thread's namespace, up to [`MAX_TCP_SOCKETS`].
pub(super) fn tcp_sockets() -> io::Result<Vec<TcpSocket>> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let protocol = SockProtocol::NetlinkSockDiag;
    let netlink = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
    setsockopt(&netlink, sockopt::ReceiveTimeout, &TimeVal::seconds(ANSWER_TIMEOUT_S))?;
    let mut found = Vec::new();
    // A server that listens for both versions has IPv6 sockets also for connections over IPv4.
    for (sequence, family) in (1..).zip([libc::AF_INET, libc::AF_INET6]) {
        ask(&netlink, family, sequence)?;
        read(&netlink, sequence, &mut found)?;
    }
    Ok(found)
}

fn ask(netlink: &OwnedFd, family: c_int, sequence: u32) -> io::Result<()> {
    // struct inet_diag_req_v2: family, protocol, extensions, padding, states, the socket.
    let mut fixed = [0; REQUEST_BYTES];
    fixed[0] = u8::try_from(family).unwrap_or_default();
    fixed[1] = u8::try_from(libc::IPPROTO_TCP).unwrap_or_default();
    fixed[2] = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);
    fixed[4..8].fill(0xff);
    let request = Request::new(SOCK_DIAG_BY_FAMILY, libc::NLM_F_DUMP, &fixed);
    send(netlink.as_raw_fd(), &request.finish(sequence), MsgFlags::empty())?;
    Ok(())
}

/// Reads to the end of an answer.
fn read(netlink: &OwnedFd, sequence: u32, found: &mut Vec<TcpSocket>) -> io::Result<()> {
    let mut buffer = vec![0; ANSWER_BYTES];
    loop {
        let length = recv(netlink.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        let mine = |answer: &super::message::Answer<'_>| answer.sequence == sequence;
        for answer in answers(&buffer[..length]).filter(mine) {
            match c_int::from(answer.kind) {
                libc::NLMSG_DONE => return Ok(()),
                libc::NLMSG_ERROR => {
                    let code = u32_at(answer.body, 0).unwrap_or_default().cast_signed();
                    return Err(io::Error::from_raw_os_error(code.wrapping_neg()));
                }
                _ if found.len() >= MAX_TCP_SOCKETS => {
                    let most = format!("a host has more than {MAX_TCP_SOCKETS} TCP sockets");
                    return Err(io::Error::other(most));
                }
                _ => found.extend(decode(answer.body)),
            }
        }
    }
}

/// One socket; none when the message is cut short.
fn decode(body: &[u8]) -> Option<TcpSocket> {
    // struct inet_diag_msg: family, state, timer, retransmissions under way, and the socket, which
    // begins with the ports.
    let [_, state, _, _, local_0, local_1, remote_0, remote_1] = *body.first_chunk()?;
    body.get(..SOCKET_BYTES)?;
    let info = attribute(body, SOCKET_BYTES, INET_DIAG_INFO).unwrap_or_default();
    let name = attribute(body, SOCKET_BYTES, INET_DIAG_CONG).map(text);
    let state = usize::from(state).checked_sub(1).and_then(|state| STATES.get(state));
    Some(TcpSocket {
        local_port: u16::from_be_bytes([local_0, local_1]),
        remote_port: u16::from_be_bytes([remote_0, remote_1]),
        state: state.copied().unwrap_or("unknown"),
        congestion_control: name.filter(|name| !name.is_empty()),
        retransmits: u32_at(info, TOTAL_RETRANS_AT).unwrap_or_default(),
        segments_out: u32_at(info, SEGS_OUT_AT).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_read_and_a_cut_one_is_not() {
        let mut request = Request::new(SOCK_DIAG_BY_FAMILY, 0, &[0; SOCKET_BYTES]);
        let mut info = vec![0; 200];
        info[TOTAL_RETRANS_AT] = 3;
        info[SEGS_OUT_AT] = 99;
        request.attribute(INET_DIAG_INFO, &info);
        request.text(INET_DIAG_CONG, "reno");
        let message = request.finish(1);
        let mut body = answers(&message).next().unwrap().body.to_vec();
        body[1] = 1;
        body[4..8].copy_from_slice(&[0x1f, 0x90, 0xc0, 0x01]);
        let expected = TcpSocket {
            local_port: 8080,
            remote_port: 49153,
            state: "established",
            congestion_control: Some("reno".to_string()),
            retransmits: 3,
            segments_out: 99,
        };
        assert_eq!(decode(&body), Some(expected));
        assert_eq!(decode(&body[..SOCKET_BYTES - 1]), None);
        assert_eq!(decode(&body[..SOCKET_BYTES]).unwrap().congestion_control, None);
        body[1] = 200;
        assert_eq!(decode(&body).unwrap().state, "unknown");
    }
}
