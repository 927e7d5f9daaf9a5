//! Offloads of interfaces, by the ioctl that every kernel has (ethtool(8), `struct ethtool_value`).

use std::ffi::{c_char, c_ulong};
use std::io;
use std::os::fd::AsRawFd;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// What is turned off: name, command to ask, command to set.
///
/// Left on, a veth pair carries packets with half a checksum and segments of 64 KB: no packet of
/// the link would be what a real one carries, and corruption would go unseen.
const OFFLOADS: [(&str, u32, u32); 5] = [
    ("tx checksums", 0x16, 0x17),
    ("rx checksums", 0x14, 0x15),
    ("tso", 0x1e, 0x1f),
    ("gso", 0x23, 0x24),
    ("gro", 0x2b, 0x2c),
];

#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

#[repr(C)]
struct InterfaceRequest {
    name: [c_char; libc::IFNAMSIZ],
    data: *mut Value,
    padding: [u8; 16],
}

/// Turns all offloads of an interface of the calling thread's namespace off, and makes sure.
///
/// # Errors
/// Names the offload that stays on.
pub(super) fn turn_offloads_off(interface: &str) -> io::Result<()> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    for (offload, ask, set) in OFFLOADS {
        // What an interface does not have cannot be set; what counts is what it says after.
        let refusal = command(&socket, interface, set, 0).err();
        match command(&socket, interface, ask, 0) {
            Ok(0) => {}
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
            Ok(_) => {
                let why = refusal.map_or_else(String::new, |error| format!(": {error}"));
                return Err(io::Error::other(format!("{offload} stay on{why}")));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn command(socket: &impl AsRawFd, interface: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = Value { command, data };
    let mut name = [0; libc::IFNAMSIZ];
    for (to, from) in name[..libc::IFNAMSIZ - 1].iter_mut().zip(interface.bytes()) {
        *to = from.cast_signed();
    }
    let mut request = InterfaceRequest { name, data: &raw mut value, padding: [0; 16] };
    const SIOCETHTOOL: c_ulong = 0x8946;
    // SAFETY: the request is laid out as `struct ifreq` and points to a `struct ethtool_value`;
    // both live until the call returns, and these commands read and write eight bytes of it.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(value.data) }
}
