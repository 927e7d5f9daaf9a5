//! Options of carriers' sockets that keep the kernel's share of the queue small, and what the
//! kernel knows of a connection.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// Unsent bytes the kernel holds of a carrier: what is urgent overtakes all but these.
const NOTSENT_LOWAT_BYTES: libc::c_int = 16 * 1024;
/// Unacknowledged for this long, a carrier is dead. Slow links take seconds per packet.
const USER_TIMEOUT: Duration = Duration::from_secs(60);
/// Idle time before the kernel probes; with three probes 20 s apart.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);

/// Sets a carrier's socket up; gives the congestion control that it really has.
pub(crate) fn prepare_carrier(
    socket: BorrowedFd<'_>,
    congestion: Option<&str>,
) -> io::Result<String> {
    let reference = SockRef::from(&socket);
    reference.set_tcp_nodelay(true)?;
    reference.set_tcp_user_timeout(Some(USER_TIMEOUT))?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(3);
    reference.set_tcp_keepalive(&keepalive)?;
    set_notsent_lowat(socket)?;
    if let Some(name) = congestion {
        reference.set_tcp_congestion(name.as_bytes())?;
    }
    let name = reference.tcp_congestion()?;
    let name: Vec<u8> = name.into_iter().take_while(|byte| *byte != 0).collect();
    Ok(String::from_utf8_lossy(&name).into_owned())
}

/// Whether the kernel knows a congestion control by this name and lets us use it.
pub(crate) fn check_congestion(name: &str) -> io::Result<()> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    socket.set_tcp_congestion(name.as_bytes())
}

fn set_notsent_lowat(socket: BorrowedFd<'_>) -> io::Result<()> {
    let value = NOTSENT_LOWAT_BYTES;
    let len = libc::socklen_t::try_from(size_of::<libc::c_int>()).map_err(io::Error::other)?;
    // SAFETY: the descriptor is borrowed for the call, the pointer is to an int of that length.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_NOTSENT_LOWAT,
            (&raw const value).cast(),
            len,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What the kernel knows of a connection (tcp(7), TCP_INFO).
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpInfo {
    /// Smoothed round trip.
    pub(crate) rtt: Duration,
    /// Segments sent again since the connection was made.
    pub(crate) retransmits: u64,
}

/// Asks the kernel.
pub(crate) fn tcp_info(socket: &impl AsFd) -> io::Result<TcpInfo> {
    // SAFETY: tcp_info is plain integers, for which all zeroes is a value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut len =
        libc::socklen_t::try_from(size_of::<libc::tcp_info>()).map_err(io::Error::other)?;
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
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let rtt = Duration::from_micros(u64::from(info.tcpi_rtt));
    Ok(TcpInfo { rtt, retransmits: u64::from(info.tcpi_total_retrans) })
}
