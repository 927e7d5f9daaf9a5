//! The few requests to the kernel's network configuration that the laboratory needs.
//!
//! A socket speaks for the namespace it was opened in, from whichever thread it is used.

use std::ffi::c_int;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, setsockopt, socket,
    sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

use super::message::{Answer, Request, answers, attribute, text, u32_at, u64_at};
use super::tcp::TcpSettings;

/// The kernel answers at once; after this many seconds something is wrong with the machine.
const ANSWER_TIMEOUT_S: i64 = 5;
/// More than the largest answer to the requests made here.
const ANSWER_BYTES: usize = 64 * 1024;
/// Length of `struct ifinfomsg`.
const LINK_FIXED_BYTES: usize = 16;
/// Length of `struct rtmsg`.
const ROUTE_FIXED_BYTES: usize = 12;
/// `RTAX_MTU`: the longest packet over a route.
const RTAX_MTU: u16 = 2;
/// `RTAX_INITCWND`: the segments that a connection over a route begins with.
const RTAX_INITCWND: u16 = 11;
/// `RTAX_CC_ALGO`: the congestion control of connections that use a route.
const RTAX_CC_ALGO: u16 = 16;
/// `VETH_INFO_PEER`.
const VETH_INFO_PEER: u16 = 1;

/// A MAC address.
pub(crate) type Mac = [u8; 6];

/// A netlink socket of one network namespace.
pub(crate) struct Netlink {
    socket: OwnedFd,
    /// Number of the latest request. Held during an exchange: threads must not take each other's
    /// answers.
    sequence: Mutex<u32>,
}

/// What a host's route over the link says about it.
pub(crate) struct Route<'a> {
    pub(crate) interface: u32,
    pub(crate) destination: IpAddr,
    pub(crate) prefix: u8,
    /// The address that packets are sent from unless their program says another.
    pub(crate) source: Option<IpAddr>,
    pub(crate) reach: Reached,
    /// Bytes of the longest packet.
    pub(crate) mtu: u32,
    /// Of TCP connections over the route, whatever program opens them and whatever the default is.
    pub(crate) tcp: &'a TcpSettings,
}

/// A route of a host of a net that is other than it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteChange {
    pub(crate) destination: Ipv4Addr,
    /// The neighbour that it goes by, and the interface; none where there is no way any more.
    pub(crate) by: Option<(Ipv4Addr, u32)>,
}

/// Whom a route leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// Others on the link.
    Others,
    /// Groups of IPv6: takes the place of the kernel's own route in the table that is asked first,
    /// which knows no MTU but the interface's.
    Groups,
    /// The host itself by IPv6: the kernel adds such a route some time after the address.
    Itself,
}

impl Reached {
    /// The table, the scope, the type, and the priority of such a route; 0 is the kernel's choice.
    fn kind(self) -> (u8, u8, u8, u32) {
        /// `IP6_RT_PRIO_ADDRCONF`: of the kernel's own route to groups.
        const GROUPS_PRIORITY: u32 = 256;
        /// Behind the kernel's own, which has 0.
        const ITSELF_PRIORITY: u32 = 1;
        let any = libc::RT_SCOPE_UNIVERSE;
        match self {
            Self::Others => (libc::RT_TABLE_MAIN, libc::RT_SCOPE_LINK, libc::RTN_UNICAST, 0),
            Self::Groups => (libc::RT_TABLE_LOCAL, any, libc::RTN_MULTICAST, GROUPS_PRIORITY),
            Self::Itself => (libc::RT_TABLE_LOCAL, any, libc::RTN_LOCAL, ITSELF_PRIORITY),
        }
    }
}

/// An address that an interface gets.
pub(crate) struct InterfaceAddress {
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
    pub(crate) broadcast: Option<Ipv4Addr>,
}

/// What is to change on an interface.
#[derive(Default)]
pub(crate) struct LinkChange {
    pub(crate) up: bool,
    pub(crate) mtu: Option<u32>,
    pub(crate) mac: Option<Mac>,
    pub(crate) queue_packets: Option<u32>,
}

/// One end of a veth pair to be made.
pub(crate) struct VethEnd<'a> {
    pub(crate) name: &'a str,
    pub(crate) mac: Mac,
    pub(crate) mtu: u32,
}

impl Netlink {
    /// Opens a socket in the calling thread's network namespace.
    pub(crate) fn open() -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let protocol = SockProtocol::NetlinkRoute;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
        setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::seconds(ANSWER_TIMEOUT_S))?;
        Ok(Self { socket, sequence: Mutex::new(0) })
    }

    /// Changes an interface.
    pub(crate) fn change_link(&self, index: u32, change: &LinkChange) -> io::Result<()> {
        let flags = if change.up { libc::IFF_UP.cast_unsigned() } else { 0 };
        let fixed = link_fixed(index, flags, flags);
        let mut request = Request::new(libc::RTM_NEWLINK, libc::NLM_F_ACK, &fixed);
        if let Some(mtu) = change.mtu {
            request.attribute(libc::IFLA_MTU, &mtu.to_ne_bytes());
        }
        if let Some(mac) = change.mac {
            request.attribute(libc::IFLA_ADDRESS, &mac);
        }
        if let Some(packets) = change.queue_packets {
            request.attribute(libc::IFLA_TXQLEN, &packets.to_ne_bytes());
        }
        self.exchange(request, |_| ())
    }

    /// Makes a veth pair: `here` in this namespace, `there` in `namespace`.
    pub(crate) fn create_veth(
        &self,
        here: &VethEnd<'_>,
        there: &VethEnd<'_>,
        namespace: &impl AsRawFd,
    ) -> io::Result<()> {
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let mut request = Request::new(libc::RTM_NEWLINK, flags, &link_fixed(0, 0, 0));
        describe(&mut request, here);
        let info = request.open(libc::IFLA_LINKINFO);
        request.text(libc::IFLA_INFO_KIND, "veth");
        let data = request.open(libc::IFLA_INFO_DATA);
        let peer = request.open(VETH_INFO_PEER);
        request.raw(&link_fixed(0, 0, 0));
        describe(&mut request, there);
        request.attribute(libc::IFLA_NET_NS_FD, &namespace.as_raw_fd().to_ne_bytes());
        request.close(peer);
        request.close(data);
        request.close(info);
        self.exchange(request, |_| ())
    }

    /// Gives an interface an address, without the route that the kernel would add by itself and
    /// without asking others first whether it is theirs (RFC 4862 §5.4).
    pub(crate) fn add_address(&self, index: u32, given: &InterfaceAddress) -> io::Result<()> {
        let scope = match given.address {
            IpAddr::V6(address) if address.is_unicast_link_local() => libc::RT_SCOPE_LINK,
            _ => libc::RT_SCOPE_UNIVERSE,
        };
        // struct ifaddrmsg: family, prefix length, flags, scope, index.
        let mut fixed = [family(given.address), given.prefix, 0, scope, 0, 0, 0, 0];
        fixed[4..8].copy_from_slice(&index.to_ne_bytes());
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        let mut request = Request::new(libc::RTM_NEWADDR, flags, &fixed);
        request.address(libc::IFA_LOCAL, given.address);
        request.address(libc::IFA_ADDRESS, given.address);
        if let Some(broadcast) = given.broadcast {
            request.address(libc::IFA_BROADCAST, broadcast.into());
        }
        let mut flags = libc::IFA_F_NOPREFIXROUTE;
        if given.address.is_ipv6() {
            flags |= libc::IFA_F_NODAD;
        }
        request.attribute(libc::IFA_FLAGS, &flags.to_ne_bytes());
        self.exchange(request, |_| ())
    }

    /// Makes the peer's MAC address known for good, so that nobody is ever asked for it.
    pub(crate) fn add_neighbour(&self, index: u32, peer: IpAddr, mac: Mac) -> io::Result<()> {
        // struct ndmsg: family, padding, index, state, flags, type.
        let mut fixed = [0; 12];
        fixed[0] = family(peer);
        fixed[4..8].copy_from_slice(&index.to_ne_bytes());
        fixed[8..10].copy_from_slice(&libc::NUD_PERMANENT.to_ne_bytes());
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        let mut request = Request::new(libc::RTM_NEWNEIGH, flags, &fixed);
        request.address(libc::NDA_DST, peer);
        request.attribute(libc::NDA_LLADDR, &mac);
        self.exchange(request, |_| ())
    }

    /// Routes some addresses through an interface.
    pub(crate) fn set_route(&self, route: &Route<'_>) -> io::Result<()> {
        let (table, scope, kind, priority) = route.reach.kind();
        // struct rtmsg: family, lengths of destination and source, tos, table, protocol, scope,
        // type, flags.
        let mut fixed = [0; ROUTE_FIXED_BYTES];
        fixed[0] = family(route.destination);
        fixed[1] = route.prefix;
        fixed[4] = table;
        fixed[5] = libc::RTPROT_STATIC;
        fixed[6] = scope;
        fixed[7] = kind;
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        let mut request = Request::new(libc::RTM_NEWROUTE, flags, &fixed);
        request.address(libc::RTA_DST, route.destination);
        if let Some(source) = route.source {
            request.address(libc::RTA_PREFSRC, source);
        }
        request.attribute(libc::RTA_OIF, &route.interface.to_ne_bytes());
        if priority != 0 {
            request.attribute(libc::RTA_PRIORITY, &priority.to_ne_bytes());
        }
        let metrics = request.open(libc::RTA_METRICS);
        request.attribute(RTAX_MTU, &route.mtu.to_ne_bytes());
        if route.reach == Reached::Others {
            if let Some(segments) = route.tcp.initial_window {
                request.attribute(RTAX_INITCWND, &segments.to_ne_bytes());
            }
            request.text(RTAX_CC_ALGO, &route.tcp.congestion_control);
        }
        request.close(metrics);
        self.exchange(request, |_| ())
    }

    /// Changes routes to hosts of a net, many requests in one message to the kernel. All are tried;
    /// the error is the first one. Packets go out with the address `source`.
    pub(crate) fn change_routes(
        &self,
        changes: &[RouteChange],
        source: Ipv4Addr,
        (mtu, tcp): (u32, &TcpSettings),
    ) -> io::Result<()> {
        /// What the kernel's answers to one message have room for.
        const MAX_BATCH: usize = 64;
        let mut latest = self.sequence.lock().unwrap_or_else(PoisonError::into_inner);
        let mut failure = None;
        for batch in changes.chunks(MAX_BATCH) {
            let first = latest.wrapping_add(1);
            let mut message = Vec::new();
            for change in batch {
                *latest = latest.wrapping_add(1);
                let request = net_route(change, source, mtu, tcp);
                message.extend_from_slice(&request.finish(*latest));
            }
            send(self.socket.as_raw_fd(), &message, MsgFlags::empty())?;
            self.await_all(first, batch.len(), &mut failure)?;
        }
        failure.map_or(Ok(()), Err)
    }

    /// Reads the acknowledgements of `count` requests from the number `first` on.
    fn await_all(
        &self,
        first: u32,
        count: usize,
        failure: &mut Option<io::Error>,
    ) -> io::Result<()> {
        let mut buffer = vec![0; ANSWER_BYTES];
        let mut left = count;
        while left > 0 {
            let length = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
            let ours = answers(&buffer[..length]).filter(|answer| {
                (answer.sequence.wrapping_sub(first) as usize) < count
                    && c_int::from(answer.kind) == libc::NLMSG_ERROR
            });
            for answer in ours {
                left = left.saturating_sub(1);
                match u32_at(answer.body, 0).map(u32::cast_signed) {
                    // One that is to go and is not there is as good as gone.
                    Some(0) => {}
                    Some(code) if code == -libc::ESRCH => {}
                    Some(code) => {
                        failure.get_or_insert(io::Error::from_raw_os_error(code.wrapping_neg()));
                    }
                    None => return Err(io::Error::from(io::ErrorKind::InvalidData)),
                }
            }
        }
        Ok(())
    }

    /// What the kernel holds for TCP connections over the route to `peer`.
    pub(crate) fn route_tcp(&self, peer: IpAddr) -> io::Result<Option<TcpSettings>> {
        let mut fixed = [0; ROUTE_FIXED_BYTES];
        fixed[0] = family(peer);
        fixed[1] = whole_prefix(peer);
        let mut request = Request::new(libc::RTM_GETROUTE, 0, &fixed);
        request.address(libc::RTA_DST, peer);
        self.exchange(request, |answer| {
            let metrics = attribute(answer.body, ROUTE_FIXED_BYTES, libc::RTA_METRICS)?;
            let initial_window =
                attribute(metrics, 0, RTAX_INITCWND).and_then(|value| u32_at(value, 0));
            let name = attribute(metrics, 0, RTAX_CC_ALGO)?;
            Some(TcpSettings { congestion_control: text(name), initial_window })
        })
    }

    /// Packets that the interface dropped because its reader did not take them in time.
    pub(crate) fn dropped_on_send(&self, index: u32) -> io::Result<u64> {
        /// Place of `tx_dropped` in `struct rtnl_link_stats64`.
        const TX_DROPPED_AT: usize = 7 * 8;
        let request = Request::new(libc::RTM_GETLINK, 0, &link_fixed(index, 0, 0));
        let dropped = self.exchange(request, |answer| {
            let stats = attribute(answer.body, LINK_FIXED_BYTES, libc::IFLA_STATS64)?;
            u64_at(stats, TX_DROPPED_AT)
        })?;
        dropped.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }

    /// Sends a request and reads to its acknowledgement or its answer.
    pub(super) fn exchange<T: Default>(
        &self,
        request: Request,
        read: impl FnOnce(&Answer<'_>) -> T,
    ) -> io::Result<T> {
        let mut latest = self.sequence.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = latest.wrapping_add(1);
        let sequence = *latest;
        send(self.socket.as_raw_fd(), &request.finish(sequence), MsgFlags::empty())?;
        let mut buffer = vec![0; ANSWER_BYTES];
        // What remains of an earlier exchange that timed out is passed over.
        loop {
            let length = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
            let mut messages = answers(&buffer[..length]);
            if let Some(answer) = messages.find(|answer| answer.sequence == sequence) {
                if c_int::from(answer.kind) != libc::NLMSG_ERROR {
                    return Ok(read(&answer));
                }
                return match u32_at(answer.body, 0).map(u32::cast_signed) {
                    Some(0) => Ok(T::default()),
                    Some(code) => Err(io::Error::from_raw_os_error(code.wrapping_neg())),
                    None => Err(io::Error::from(io::ErrorKind::InvalidData)),
                };
            }
        }
    }
}

/// A request that sets or removes a route to a host of a net.
fn net_route(change: &RouteChange, source: Ipv4Addr, mtu: u32, tcp: &TcpSettings) -> Request {
    /// `RTNH_F_ONLINK`: the neighbour is on the link, whatever addresses say.
    const ONLINK: u32 = 4;
    let mut fixed = [0; ROUTE_FIXED_BYTES];
    fixed[0] = family(change.destination.into());
    fixed[1] = whole_prefix(change.destination.into());
    fixed[4] = libc::RT_TABLE_MAIN;
    fixed[5] = libc::RTPROT_STATIC;
    fixed[6] = libc::RT_SCOPE_UNIVERSE;
    fixed[7] = libc::RTN_UNICAST;
    let Some((by, interface)) = change.by else {
        fixed[6] = libc::RT_SCOPE_NOWHERE;
        let mut request = Request::new(libc::RTM_DELROUTE, libc::NLM_F_ACK, &fixed);
        request.address(libc::RTA_DST, change.destination.into());
        return request;
    };
    fixed[8..12].copy_from_slice(&ONLINK.to_ne_bytes());
    let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    let mut request = Request::new(libc::RTM_NEWROUTE, flags, &fixed);
    request.address(libc::RTA_DST, change.destination.into());
    request.address(libc::RTA_GATEWAY, by.into());
    request.address(libc::RTA_PREFSRC, source.into());
    request.attribute(libc::RTA_OIF, &interface.to_ne_bytes());
    let metrics = request.open(libc::RTA_METRICS);
    request.attribute(RTAX_MTU, &mtu.to_ne_bytes());
    if let Some(segments) = tcp.initial_window {
        request.attribute(RTAX_INITCWND, &segments.to_ne_bytes());
    }
    request.text(RTAX_CC_ALGO, &tcp.congestion_control);
    request.close(metrics);
    request
}

fn family(address: IpAddr) -> u8 {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    u8::try_from(family).unwrap_or_default()
}

/// Prefix length of one address.
pub(crate) fn whole_prefix(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// `struct ifinfomsg`: family, padding, type, index, flags, mask of the flags to change.
fn link_fixed(index: u32, flags: u32, change: u32) -> [u8; LINK_FIXED_BYTES] {
    let mut fixed = [0; LINK_FIXED_BYTES];
    fixed[4..8].copy_from_slice(&index.to_ne_bytes());
    fixed[8..12].copy_from_slice(&flags.to_ne_bytes());
    fixed[12..16].copy_from_slice(&change.to_ne_bytes());
    fixed
}

fn describe(request: &mut Request, end: &VethEnd<'_>) {
    request.text(libc::IFLA_IFNAME, end.name);
    request.attribute(libc::IFLA_ADDRESS, &end.mac);
    request.attribute(libc::IFLA_MTU, &end.mtu.to_ne_bytes());
}
