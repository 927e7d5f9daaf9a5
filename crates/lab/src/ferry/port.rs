//! Where frames leave and enter a host: a TAP interface, or a packet socket on a veth pair.

use std::ffi::c_int;
use std::fs::OpenOptions;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket, sockopt};

use crate::error::{Doing, Error, Result};

const TUN: &str = "/dev/net/tun";
/// Room for frames in a packet socket: thousands of full packets; the kernel halves and caps it.
const SOCKET_BUFFER_BYTES: usize = 8 * 1024 * 1024;

nix::ioctl_write_int!(tun_set_interface, b'T', 202);
nix::ioctl_write_int!(tun_set_persistent, b'T', 203);

/// One port of the ferry; reads and writes whole Ethernet frames and never blocks.
pub(crate) struct Port {
    descriptor: OwnedFd,
    is_tap: bool,
}

/// `struct ifreq` as TUNSETIFF reads it.
#[repr(C)]
struct TapRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: i16,
    padding: [u8; 22],
}

impl Port {
    /// Whether this process may make TAP interfaces.
    pub(crate) fn tap_permitted() -> bool {
        open_tun().is_ok()
    }

    /// Makes a TAP interface in the calling thread's namespace. It is gone with this port.
    ///
    /// Without IFF_VNET_HDR the kernel hands out only whole packets with whole checksums.
    pub(crate) fn open_tap(interface: &str) -> Result<Self> {
        let remedy = "load the tun module, run as root, or use veth (--device veth)";
        let refused = |error: io::Error| Error::Machine {
            lack: format!("TAP interfaces are not permitted here ({TUN}: {error})"),
            remedy,
        };
        let descriptor = open_tun().map_err(refused)?;
        let mut name = [0; libc::IFNAMSIZ];
        for (to, from) in name[..libc::IFNAMSIZ - 1].iter_mut().zip(interface.bytes()) {
            *to = from;
        }
        // Both are bits below 2^15.
        #[allow(clippy::cast_possible_truncation)]
        let flags = (libc::IFF_TAP | libc::IFF_NO_PI) as i16;
        let request = TapRequest { name, flags, padding: [0; 22] };
        let pointer = (&raw const request).expose_provenance();
        // SAFETY: the request is laid out as `struct ifreq` and lives until the call returns.
        unsafe { tun_set_interface(descriptor.as_raw_fd(), pointer as _) }
            .map_err(|error| refused(error.into()))?;
        Ok(Self { descriptor, is_tap: true })
    }

    /// Opens a packet socket on an interface of the calling thread's namespace.
    pub(crate) fn open_socket(interface: u32) -> Result<Self> {
        let doing = || "open a packet socket".to_string();
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let descriptor = socket(AddressFamily::Packet, SockType::Raw, flags, None).doing(doing)?;
        if setsockopt(&descriptor, sockopt::RcvBufForce, &SOCKET_BUFFER_BYTES).is_err() {
            setsockopt(&descriptor, sockopt::RcvBuf, &SOCKET_BUFFER_BYTES).doing(doing)?;
        }
        // What the ferry itself sends must not come back to it; nor wait in a second queue.
        set_packet_option(&descriptor, libc::PACKET_IGNORE_OUTGOING, 1).doing(doing)?;
        set_packet_option(&descriptor, libc::PACKET_QDISC_BYPASS, 1).doing(doing)?;
        bind(&descriptor, interface).doing(doing)?;
        Ok(Self { descriptor, is_tap: false })
    }

    /// Reads one frame.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> nix::Result<usize> {
        nix::unistd::read(&self.descriptor, buffer)
    }

    /// Writes one frame.
    pub(crate) fn write(&self, frame: &[u8]) -> nix::Result<usize> {
        nix::unistd::write(&self.descriptor, frame)
    }

    /// Another descriptor of the same port, for its counters.
    pub(crate) fn try_clone(&self) -> io::Result<OwnedFd> {
        self.descriptor.try_clone()
    }

    /// Leaves the interface to its namespace, which is about to be removed. The kernel removes a
    /// namespace's interfaces together; one by one they take 20 ms each.
    pub(crate) fn abandon(self) {
        if self.is_tap {
            // SAFETY: TUNSETPERSIST takes a number. On failure the interface goes the slow way.
            let _ = unsafe { tun_set_persistent(self.descriptor.as_raw_fd(), 1) };
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Frames that a packet socket had no room for since this was last asked.
pub(crate) fn frames_lost_by_socket(socket: &OwnedFd) -> io::Result<u32> {
    /// `struct tpacket_stats`: packets, drops.
    type Statistics = [u32; 2];
    let mut statistics: Statistics = [0; 2];
    let mut length = socklen::<Statistics>();
    // SAFETY: the kernel writes at most `length` bytes to `statistics`.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &raw mut length,
        )
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(statistics[1]) }
}

fn open_tun() -> io::Result<OwnedFd> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    Ok(options.open(TUN)?.into())
}

fn set_packet_option(socket: &OwnedFd, option: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: the kernel reads one int.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            (&raw const value).cast(),
            socklen::<c_int>(),
        )
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn bind(socket: &OwnedFd, interface: u32) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid `struct sockaddr_ll`.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET).unwrap_or_default();
    address.sll_protocol = u16::try_from(libc::ETH_P_ALL).unwrap_or_default().to_be();
    address.sll_ifindex = interface.cast_signed();
    // SAFETY: the kernel reads the address, whose length is given.
    let answer = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), socklen::<libc::sockaddr_ll>())
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn socklen<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or(libc::socklen_t::MAX)
}
