//! What the services and clients ask of a TCP socket beyond reading and writing.

use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};

use socket2::SockRef;

use crate::Error;

/// Sets the congestion control of a socket and reads back that it holds. Connections accepted from
/// a listening socket inherit its own.
///
/// # Errors
/// [`Error::Caller`] naming the control, those that the machine allows and the remedy.
pub fn set_congestion(socket: &impl AsFd, name: &str) -> Result<(), Error> {
    let refused = |why: String| {
        let allowed = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
        let allowed = allowed.unwrap_or_default();
        let allowed = allowed.trim();
        Error::Caller(format!(
            "congestion control '{name}' cannot be set ({why}); allowed here: {allowed}; for \
             another run 'modprobe tcp_{name}' as root and add it to \
             net.ipv4.tcp_allowed_congestion_control"
        ))
    };
    let set = SockRef::from(socket).set_tcp_congestion(name.as_bytes());
    set.map_err(|error| refused(error.to_string()))?;
    match congestion(socket) {
        Some(read) if read == name => Ok(()),
        read => Err(refused(format!("it reads back as '{}'", read.unwrap_or_default()))),
    }
}

/// The congestion control of a socket; `None` where the system does not tell.
#[must_use]
pub fn congestion(socket: &impl AsFd) -> Option<String> {
    let name = SockRef::from(socket).tcp_congestion().ok()?;
    let name = name.split(|&byte| byte == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// How many segments a TCP socket sent again since it exists (`tcpi_total_retrans`); `None` where
/// the system does not tell.
#[must_use]
pub fn retransmits(socket: &impl AsFd) -> Option<u64> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).ok()?;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed; the kernel writes at most
    // `length` bytes into `info`, which has that size, and tells in `length` how many.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let needed = std::mem::offset_of!(libc::tcp_info, tcpi_total_retrans) + size_of::<u32>();
    if result != 0 || (length as usize) < needed {
        return None;
    }
    // SAFETY: `tcp_info` is made of integers, so that all zeroes are valid, and the kernel wrote
    // over some of them.
    let info = unsafe { info.assume_init() };
    Some(u64::from(info.tcpi_total_retrans))
}
