//! Options of carriers' sockets that keep the kernel's share of the queue small, and what the
//! kernel knows of a connection.

use std::io;
use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use decide::estimate::Transport;
use socket2::{Domain, SockRef, Socket, TcpKeepalive, Type};

use crate::carrier::Times;

/// Unsent bytes the kernel holds of a carrier: what is urgent overtakes all but these.
const NOTSENT_LOWAT_BYTES: libc::c_int = 16 * 1024;
/// What the kernel may hold of a carrier from its beginning, in bytes; beyond it the buffer grows
/// as it does. Of its own accord it begins with what 38 segments take and grows when it was full:
/// the first message that finds a longer window would wait a round trip for the room.
const SEND_BUFFER_BYTES: usize = 1 << 20;
/// Whose sizes of buffers the kernel leaves alone (SO_BUF_LOCK, asm-generic/socket.h, Linux 5.14).
const SO_BUF_LOCK: libc::c_int = 72;
/// The kernel probes idle carriers only where PINGs do not: after so many times their pause, and
/// then so many times within what a dead peer is given.
const KEEPALIVE_PAUSES: u32 = 2;
const KEEPALIVE_PROBES: u32 = 3;
/// What the kernel takes for a pause, in whole seconds.
const KEEPALIVE_BOUNDS: (Duration, Duration) =
    (Duration::from_secs(1), Duration::from_secs(32_767));

/// What a kernel holds that has not left is what leaves within this part of a second, and two short
/// packets at least.
const AHEAD_OF_S: u64 = 10;
const MIN_NOTSENT_BYTES: u64 = 2400;
/// It is looked after so long whether that has left.
const MIN_PAUSE: Duration = Duration::from_millis(2);
const MAX_PAUSE: Duration = Duration::from_millis(200);
/// linux/sockios.h.
const SIOCOUTQNSD: libc::Ioctl = 0x894b;

/// On a link that nobody shares TCP's bytes leave at so much of its rate: with their heads no more
/// than the link takes, so that what waits for it waits here, where what is urgent goes first.
const PACED: u64 = 9;
const PACED_OF: u64 = 10;

/// Any port will do where nothing is sent (RFC 863).
const DISCARD_PORT: u16 = 9;

/// Sets a carrier's socket up; gives the congestion control that it really has. `own_bytes_per_s`:
/// what the link carries, where nobody shares it.
pub(crate) fn prepare_carrier(
    socket: BorrowedFd<'_>,
    (congestion, own_bytes_per_s): (Option<&str>, Option<u64>),
    times: &Times,
) -> io::Result<String> {
    let reference = SockRef::from(&socket);
    let (least, most) = KEEPALIVE_BOUNDS;
    reference.set_tcp_nodelay(true)?;
    reference.set_tcp_user_timeout(Some(times.peer))?;
    let keepalive = TcpKeepalive::new()
        .with_time(times.keepalive.saturating_mul(KEEPALIVE_PAUSES).clamp(least, most))
        .with_interval((times.peer / KEEPALIVE_PROBES).clamp(least, most))
        .with_retries(KEEPALIVE_PROBES);
    reference.set_tcp_keepalive(&keepalive)?;
    set(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, NOTSENT_LOWAT_BYTES)?;
    widen_send_buffer(socket)?;
    if let Some(rate) = own_bytes_per_s {
        let paced = u32::try_from(rate / PACED_OF * PACED).unwrap_or(u32::MAX).max(1);
        set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, paced.cast_signed())?;
    }
    if let Some(name) = congestion {
        reference.set_tcp_congestion(name.as_bytes())?;
    }
    let name = reference.tcp_congestion()?;
    let name: Vec<u8> = name.into_iter().take_while(|byte| *byte != 0).collect();
    Ok(String::from_utf8_lossy(&name).into_owned())
}

/// What the kernel is given ahead of a slow connection: what is urgent waits behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ahead {
    bytes_per_s: u64,
    /// Most that has not left.
    bytes: usize,
}

impl Ahead {
    /// Of a connection that delivers so many bytes a second; none where the kernel's own bound is
    /// short enough ([`NOTSENT_LOWAT_BYTES`]).
    pub(crate) fn of(bytes_per_s: u64) -> Option<Self> {
        let bytes = (bytes_per_s / AHEAD_OF_S).max(MIN_NOTSENT_BYTES);
        let is_slow = bytes_per_s > 0 && bytes < NOTSENT_LOWAT_BYTES.unsigned_abs().into();
        let bytes = usize::try_from(bytes).ok().filter(|_| is_slow)?;
        Some(Self { bytes_per_s, bytes })
    }

    /// How many bytes may be written now: half of what may be there at least, for each write is a
    /// record of TLS. TCP_NOTSENT_LOWAT does not say: the kernel takes what fits the segments that
    /// it has begun, 64 KiB of them.
    ///
    /// # Errors
    /// How long it takes until so many may.
    pub(crate) fn room(self, unsent: usize) -> Result<usize, Duration> {
        let room = self.bytes.saturating_sub(unsent);
        match (self.bytes / 2).checked_sub(room) {
            None | Some(0) => Ok(room),
            Some(_) => {
                let over = (unsent - self.bytes / 2) as f64 / self.bytes_per_s as f64;
                Err(Duration::from_secs_f64(over).clamp(MIN_PAUSE, MAX_PAUSE))
            }
        }
    }
}

/// Bytes that were written to a connection and have not left once (SIOCOUTQNSD, tcp(7)).
pub(crate) fn unsent(socket: &impl AsFd) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is borrowed for the call, which writes an int to the pointer.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), SIOCOUTQNSD, &raw mut bytes) };
    if result == 0 {
        Ok(usize::try_from(bytes).unwrap_or(0))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// A socket for datagrams at an address, which others of this user may have too: a process that
/// ends keeps what its peers send to it, while the next one has the port.
pub(crate) fn datagrams(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM.nonblocking(), None)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Lets routers cut datagrams into pieces (IP_MTU_DISCOVER, ip(7)): those of carriers fit nearly
/// every path as they are, and one that takes less in a piece need not say so for them to pass.
pub(crate) fn let_fragment(socket: &impl AsFd) -> io::Result<()> {
    let local = SockRef::from(socket).local_addr()?;
    let (fd, any) = (socket.as_fd(), libc::IP_PMTUDISC_DONT);
    if local.is_ipv6() {
        set(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DONT)?;
        // A socket for both versions sends by either.
        if SockRef::from(socket).only_v6()? {
            return Ok(());
        }
    }
    set(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, any)
}

/// Whether an address is one of this machine's: the kernel sends to those from themselves.
pub(crate) fn is_own(address: IpAddr) -> bool {
    let from: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // What cannot be asked is taken for one; what no route leads to is reached by nobody.
    let Ok(socket) = UdpSocket::bind((from, 0)) else { return true };
    // Datagrams know no connection: nothing is sent.
    if socket.connect((address, DISCARD_PORT)).is_err() {
        return false;
    }
    socket.local_addr().is_ok_and(|local| local.ip() == address)
}

/// Whether the kernel knows a congestion control by this name and lets us use it.
pub(crate) fn check_congestion(name: &str) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_tcp_congestion(name.as_bytes())
}

/// Gives a socket room for a long window, and leaves it to the kernel to give more. A kernel whose
/// buffers do not grow again once they were set keeps its own.
fn widen_send_buffer(socket: BorrowedFd<'_>) -> io::Result<()> {
    let reference = SockRef::from(&socket);
    let (level, own) = (libc::SOL_SOCKET, 0);
    if set(socket, level, SO_BUF_LOCK, own).is_err()
        || reference.send_buffer_size()? >= 2 * SEND_BUFFER_BYTES
    {
        return Ok(());
    }
    reference.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    set(socket, level, SO_BUF_LOCK, own)
}

/// Sets an option that is a number.
fn set(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let len = libc::socklen_t::try_from(size_of::<libc::c_int>()).map_err(io::Error::other)?;
    // SAFETY: the descriptor is borrowed for the call, the pointer is to an int of that length.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), len)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Counters of a connection as the kernel has them, in the layout of linux/tcp.h (`struct
/// tcp_info`), which only grows at its end: an older kernel leaves the rest zero.
// table: the kernel's layout, one field a counter
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawTcpInfo {
    /// State, ca_state, retransmits, probes, backoff, options, two of window scales, and the bit
    /// tcpi_delivery_rate_app_limited, the lowest of the last.
    bytes: [u8; 8],
    rto: u32,
    ato: u32,
    snd_mss: u32,
    rcv_mss: u32,
    unacked: u32,
    /// Sacked, lost, retrans, fackets.
    _segments: [u32; 4],
    last_data_sent_ms: u32,
    /// Three more times, pmtu, rcv_ssthresh.
    _skipped: [u32; 5],
    rtt_us: u32,
    rttvar_us: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt_us: u32,
    rcv_space: u32,
    total_retrans: u32,
    /// Two pacing rates.
    _rates: [u64; 2],
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt_us: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivered_bytes_per_s: u64,
    /// Busy, limited by the receiver's window, limited by the sender's buffer.
    _times: [u64; 3],
    delivered: u32,
    delivered_ce: u32,
    bytes_sent: u64,
    bytes_retrans: u64,
    dsack_dups: u32,
    reord_seen: u32,
    _rcv_ooopack: u32,
    snd_wnd: u32,
}

/// Traffic of a connection in one direction, from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// What was written to the socket and sent, or read from it or to be: each byte once.
    pub(crate) bytes: u64,
    /// What the network carried: packets with headers of TCP and IP, and what was sent again (of
    /// what came again the kernel does not tell).
    pub(crate) packet_bytes: u64,
}

/// Both directions of a connection: sent, and received.
pub(crate) fn traffic(socket: &impl AsFd) -> io::Result<[Traffic; 2]> {
    /// TCP without options; the option of time stamps, padded (RFC 7323 §3.2).
    const TCP_BYTES: u64 = 20;
    const TIMESTAMPS_BYTES: u64 = 12;
    /// What the first packet of each direction has of options beyond that: the segment's size,
    /// selective acknowledgement, the window's scale.
    const FIRST_BYTES: u64 = 8;
    /// TCPI_OPT_TIMESTAMPS (linux/tcp.h).
    const TIMESTAMPS: u8 = 1;
    let info = raw_tcp_info(socket)?;
    let reference = SockRef::from(socket);
    let to = reference.peer_addr()?;
    let mapped = to.as_socket_ipv6().is_some_and(|to| to.ip().to_ipv4_mapped().is_none());
    let ip_bytes = if mapped { 40 } else { 20 };
    let stamps = if info.bytes[5] & TIMESTAMPS != 0 { TIMESTAMPS_BYTES } else { 0 };
    let packets =
        |segments: u32| u64::from(segments) * (ip_bytes + TCP_BYTES + stamps) + FIRST_BYTES;
    Ok([
        Traffic {
            bytes: info.bytes_sent.saturating_sub(info.bytes_retrans),
            packet_bytes: info.bytes_sent + packets(info.segs_out),
        },
        Traffic {
            bytes: info.bytes_received,
            packet_bytes: info.bytes_received + packets(info.segs_in),
        },
    ])
}

fn raw_tcp_info(socket: &impl AsFd) -> io::Result<RawTcpInfo> {
    let mut info = RawTcpInfo::default();
    let mut len = libc::socklen_t::try_from(size_of::<RawTcpInfo>()).map_err(io::Error::other)?;
    // SAFETY: the descriptor is borrowed for the call, the pointers are to a structure of `len`
    // bytes and to that length; the kernel writes at most `len` bytes.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut len,
        )
    };
    if result == 0 { Ok(info) } else { Err(io::Error::last_os_error()) }
}

/// Bytes that the other side's kernel has acknowledged.
pub(crate) fn acknowledged(socket: &impl AsFd) -> io::Result<u64> {
    raw_tcp_info(socket).map(|info| info.bytes_acked)
}

/// What the kernel knows of a connection (tcp(7), TCP_INFO).
pub(crate) fn tcp_info(socket: &impl AsFd) -> io::Result<Transport> {
    let info = raw_tcp_info(socket)?;
    let micros = |value: u32| Duration::from_micros(u64::from(value));
    let unacknowledged = u64::from(info.unacked) * u64::from(info.snd_mss);
    Ok(Transport {
        rtt: micros(info.rtt_us),
        min_rtt: micros(info.min_rtt_us),
        delivered_bytes_per_s: info.delivered_bytes_per_s,
        app_limited: info.bytes[7] & 1 == 1,
        segments_out: info.data_segs_out,
        bytes_out: info.bytes_sent,
        retransmitted: info.total_retrans,
        timeouts: u32::from(info.bytes[4]),
        duplicates: info.dsack_dups,
        window_segments: info.snd_cwnd,
        threshold_segments: info.snd_ssthresh,
        receiver_window_bytes: info.snd_wnd,
        segment_bytes: info.snd_mss,
        backlog_bytes: unacknowledged + u64::from(info.notsent_bytes),
        idle: Duration::from_millis(u64::from(info.last_data_sent_ms)),
        repairs: false,
        lockstep: false,
        incoming_loss_ppm: None,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn a_slow_connection_is_given_little_ahead() {
        assert_eq!((Ahead::of(0), Ahead::of(1 << 20)), (None, None));
        let slow = Ahead::of(1200).unwrap();
        assert_eq!((slow.room(0), slow.room(1200)), (Ok(2400), Ok(1200)));
        assert_eq!((slow.room(1201), slow.room(9000)), (Err(MIN_PAUSE), Err(MAX_PAUSE)));
        let faster = Ahead::of(50_000).unwrap();
        assert_eq!((faster.room(0), faster.room(2500)), (Ok(5000), Ok(2500)));
        assert_eq!(faster.room(5000), Err(Duration::from_millis(50)));
    }

    /// A locked buffer would hold a longer window back for good, its own a first one.
    #[test]
    fn a_carriers_buffer_begins_wide_and_is_left_to_grow() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None);
        let socket = socket.unwrap();
        if set(socket.as_fd(), libc::SOL_SOCKET, SO_BUF_LOCK, 0).is_err() {
            return println!("skipped: this kernel's buffers do not grow once they were set");
        }
        let own = socket.send_buffer_size().unwrap();
        let second = Duration::from_secs(1);
        let times = Times { dial: second, peer: second, keepalive: second };
        prepare_carrier(socket.as_fd(), (None, None), &times).unwrap();
        let most = std::fs::read_to_string("/proc/sys/net/core/wmem_max").unwrap();
        let most: usize = most.trim().parse().unwrap();
        let wide = SEND_BUFFER_BYTES.min(most);
        assert!(socket.send_buffer_size().unwrap() >= wide.max(own), "{own} {most}");
        assert_eq!(is_locked(&socket), 0);
    }

    fn is_locked(socket: &impl AsFd) -> libc::c_int {
        let mut value: libc::c_int = -1;
        let mut len = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap();
        // SAFETY: the descriptor is borrowed for the call, the pointers are to an int and to its
        // length.
        let result = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::SOL_SOCKET,
                SO_BUF_LOCK,
                (&raw mut value).cast(),
                &raw mut len,
            )
        };
        assert_eq!(result, 0);
        value
    }

    #[test]
    fn the_kernels_counters_are_read_where_they_are() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let sent = vec![7; 200_000];
        let reader = std::thread::spawn(move || {
            let mut all = vec![0; 200_000];
            server.read_exact(&mut all).unwrap();
            server.write_all(b"!").unwrap();
            server
        });
        client.write_all(&sent).unwrap();
        client.read_exact(&mut [0]).unwrap();
        let info = tcp_info(&client).unwrap();
        drop(reader.join().unwrap());
        assert!(info.rtt > Duration::ZERO && info.rtt < Duration::from_secs(1), "{info:?}");
        assert!(info.min_rtt > Duration::ZERO && info.min_rtt <= info.rtt * 4, "{info:?}");
        assert!((500..70_000).contains(&info.segment_bytes), "{info:?}");
        assert!(info.receiver_window_bytes == 0 || info.receiver_window_bytes > 10_000, "{info:?}");
        assert!(info.window_segments >= 2 && info.window_segments < 100_000, "{info:?}");
        // Segments of the loopback are long, and offloading may join some.
        assert!((1..=400).contains(&info.segments_out), "{info:?}");
        assert!((200_000..400_000).contains(&info.bytes_out), "{info:?}");
        assert!(info.delivered_bytes_per_s > 100_000, "{info:?}");
        assert!(info.retransmitted <= info.segments_out && info.duplicates == 0, "{info:?}");
        assert_eq!(info.backlog_bytes, 0, "{info:?}");
    }
}
