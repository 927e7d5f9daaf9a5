//! Sockets that tell when packets left and arrived (SO_TIMESTAMPING of socket(7)).

use std::io::{ErrorKind, IoSliceMut};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lab::Host;
use nix::errno::Errno;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, Timestamping};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrIn, TimestampingFlag, Timestamps, recvmsg, setsockopt,
};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

use super::{Arrival, MAX_PACKET_BYTES};

/// RFC 863: what comes here is thrown away; nothing else listens in a host of our own.
const PORT: u16 = 9;
/// Room that a socket asks for: what arrives while the collector waits for a core.
const SOCKET_BUFFER_BYTES: usize = 8 * 1024 * 1024;
/// How long the kernel may take to start stamping what arrives.
const STAMP_PATIENCE: Duration = Duration::from_secs(2);

/// The time of the clock that the kernel stamps with.
pub(super) fn now_ns() -> Result<u64> {
    Ok(nanoseconds(clock_gettime(ClockId::CLOCK_REALTIME)?))
}

fn nanoseconds(time: TimeSpec) -> u64 {
    u64::try_from(Duration::from(time).as_nanos()).unwrap_or(u64::MAX)
}

/// Asks for a large buffer, beyond the machine's limit where that is permitted.
pub(super) fn enlarge_buffer(socket: &impl AsFd, bytes: usize) -> Result<()> {
    // The kernel counts its own overhead too, several times that of a short packet.
    let bytes = bytes.saturating_mul(4).clamp(SOCKET_BUFFER_BYTES, 16 * SOCKET_BUFFER_BYTES);
    if setsockopt(socket, RcvBufForce, &bytes).is_err() {
        setsockopt(socket, RcvBuf, &bytes).context("enlarge a socket's buffer")?;
    }
    Ok(())
}

/// The sending end of a flow.
pub(super) struct Sender {
    socket: UdpSocket,
}

impl Sender {
    pub(super) fn open(host: &Host, to: Ipv4Addr, stamped: bool) -> Result<Self> {
        let socket = host
            .within(|| UdpSocket::bind((host.address(), 0)))?
            .context("open the sending socket")?;
        socket.connect((to, PORT)).context("address the receiver")?;
        if stamped {
            // Packets are numbered from here on; the stamp comes without the packet.
            let flags = TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE
                | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
                | TimestampingFlag::SOF_TIMESTAMPING_OPT_ID
                | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY;
            setsockopt(&socket, Timestamping, &flags).context("ask for transmit timestamps")?;
        }
        enlarge_buffer(&socket, 0)?;
        Ok(Self { socket })
    }

    pub(super) fn send(&self, payload: &[u8]) -> Result<()> {
        let sent = self.socket.send(payload).context("send a probe")?;
        if sent != payload.len() {
            bail!("{sent} of {} B were sent", payload.len());
        }
        Ok(())
    }

    pub(super) fn as_socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// The next packet's number and when it left; none for now.
    pub(super) fn next_stamp(&self) -> Result<Option<(usize, u64)>> {
        let mut space = nix::cmsg_space!(Timestamps, libc::sock_extended_err, libc::sockaddr_in);
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let mut nothing = [];
        let descriptor = self.socket.as_raw_fd();
        let message = match recvmsg::<SockaddrIn>(descriptor, &mut nothing, Some(&mut space), flags)
        {
            Err(Errno::EAGAIN) => return Ok(None),
            other => other.context("read a transmit timestamp")?,
        };
        let (mut number, mut left_ns) = (None, None);
        for control in message.cmsgs()? {
            match control {
                ControlMessageOwned::ScmTimestampsns(stamps) => left_ns = made(stamps),
                ControlMessageOwned::Ipv4RecvErr(error, _)
                    if error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING =>
                {
                    number = Some(error.ee_data as usize);
                }
                ControlMessageOwned::Ipv4RecvErr(error, _) => {
                    let errno = Errno::from_raw(error.ee_errno.cast_signed());
                    bail!("the network refuses a probe: {errno}");
                }
                _ => {}
            }
        }
        number.zip(left_ns).map(Some).context("a transmit timestamp without a number or a time")
    }
}

/// The receiving end of a flow.
pub(super) struct Receiver {
    socket: UdpSocket,
}

impl Receiver {
    pub(super) fn open(host: &Host, bytes: usize) -> Result<Self> {
        let socket = host
            .within(|| UdpSocket::bind((host.address(), PORT)))?
            .context("open the receiving socket")?;
        Self::prepare(socket, bytes)
    }

    fn prepare(socket: UdpSocket, bytes: usize) -> Result<Self> {
        socket.set_nonblocking(true)?;
        enlarge_buffer(&socket, bytes)?;
        // Without SO_TIMESTAMPNS the kernel does not make up what it lacks when it is read.
        let flags = TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
            | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE;
        setsockopt(&socket, Timestamping, &flags).context("ask for receive timestamps")?;
        Ok(Self { socket })
    }

    pub(super) fn as_socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// The next datagram; none for now.
    pub(super) fn next_arrival(&self) -> Result<Option<Arrival>> {
        let mut payload = [0; MAX_PACKET_BYTES];
        let mut space = nix::cmsg_space!(Timestamps);
        let mut slices = [IoSliceMut::new(&mut payload)];
        let descriptor = self.socket.as_raw_fd();
        let flags = MsgFlags::empty();
        let message = match recvmsg::<SockaddrIn>(descriptor, &mut slices, Some(&mut space), flags)
        {
            Err(Errno::EAGAIN) => return Ok(None),
            other => other.context("receive a probe")?,
        };
        let mut at_ns = None;
        for control in message.cmsgs()? {
            if let ControlMessageOwned::ScmTimestampsns(stamps) = control {
                at_ns = made(stamps);
            }
        }
        let number = payload.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        Ok(Some(Arrival { number: number as usize, at_ns }))
    }
}

/// The software timestamp, if there is one.
fn made(stamps: Timestamps) -> Option<u64> {
    let ns = nanoseconds(stamps.system);
    (ns > 0).then_some(ns)
}

/// The kernel starts to stamp what arrives a little after the first socket asks for it. Waits for
/// that on the loopback of a host, so that no packet of this goes over a link.
pub(super) fn await_receive_stamps(host: &Host) -> Result<()> {
    let socket = host.within(|| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)))??;
    let to = socket.local_addr()?;
    let receiver = Receiver::prepare(socket, 0)?;
    let deadline = Instant::now() + STAMP_PATIENCE;
    while Instant::now() < deadline {
        match receiver.socket.send_to(&[0; 4], to) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error.into()),
            _ => {}
        }
        // Loopback delivers within the call.
        if receiver.next_arrival()?.is_some_and(|arrival| arrival.at_ns.is_some()) {
            return Ok(());
        }
    }
    bail!("the kernel makes no receive timestamps (SOF_TIMESTAMPING_RX_SOFTWARE)")
}
