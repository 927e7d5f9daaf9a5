//! One host: a network namespace with one interface, which leads over the link.

use std::ffi::OsStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::address::{Addresses, IPV4_PREFIX, IPV6_PREFIX, LINK_LOCAL, Reach};
use super::enter::{Entrance, LAB_ID, duplicate};
use super::netlink::{InterfaceAddress, LinkChange, Netlink, Reached, Route, whole_prefix};
use super::netns::{Namespace, within};
use super::sockets::{TcpSocket, tcp_sockets};
use super::tcp::TcpSettings;
use super::write_setting;
use crate::error::{Doing, Result};
use crate::ferry::frames_lost_by_socket;

/// Congestion control of TCP connections over an emulated link unless something else is asked for,
/// whatever the machine's own default: results stay comparable from machine to machine.
pub const CONGESTION_CONTROL: &str = "cubic";
/// The name of a host's interface to the link.
pub const INTERFACE: &str = "lw0";

/// Which end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client's end in the laboratory's own experiments.
    A,
    /// The service's end.
    B,
}

impl Side {
    /// Both ends.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// The host's name inside the lab.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }

    /// The side that a person calls `name`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::BOTH.into_iter().find(|side| side.name() == name)
    }

    /// The far end.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// The smallest MTU of a link that carries IPv6 (RFC 8200 §5).
const MIN_IPV6_MTU_BYTES: u32 = 1280;

/// The longest packets of a link, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mtus {
    /// That host a sends, that host b sends.
    pub(crate) each: [u32; 2],
    /// That their interfaces take: the longer of the two.
    pub(crate) interface: u32,
}

impl Mtus {
    /// Whether both directions are wide enough for IPv6.
    fn carry_ipv6(&self) -> bool {
        self.each.iter().all(|mtu| *mtu >= MIN_IPV6_MTU_BYTES)
    }
}

/// One host of a lab.
pub struct Host {
    pub(super) side: Side,
    pub(super) namespace: Namespace,
    pub(super) own: Addresses,
    pub(super) peer: Addresses,
    /// Whether IPv6 is in force: not where the machine lacks it or an MTU is too small for it.
    pub(super) has_ipv6: AtomicBool,
    pub(super) netlink: Netlink,
    pub(super) interface: u32,
    /// As asked for.
    pub(super) tcp: TcpSettings,
    /// As read back.
    pub(super) tcp_in_force: TcpSettings,
    pub(super) intake: Intake,
    /// Packets lost on the intake, as last read.
    pub(super) lost: AtomicU64,
    pub(super) lab_id: String,
}

/// How packets get from the host to the ferry, where some may be lost when the ferry is late.
pub(super) enum Intake {
    /// Through the TAP interface's queue.
    Tap,
    /// Through a packet socket's buffer, at the far end of a veth pair.
    Socket(OwnedFd),
    /// Not at all: the kernel emulates the link.
    None,
}

impl Host {
    /// Which end it is.
    #[must_use]
    pub fn side(&self) -> Side {
        self.side
    }

    /// Its address on the link.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.own.v4
    }

    /// The other host's address on the link.
    #[must_use]
    pub fn peer(&self) -> Ipv4Addr {
        self.peer.v4
    }

    /// Its addresses on the link that other hosts reach.
    #[must_use]
    pub fn reach(&self) -> Reach {
        Reach { v4: self.own.v4, v6: self.if_ipv6(self.own.v6) }
    }

    /// Its link-local IPv6 address, where there is IPv6.
    #[must_use]
    pub fn link_local(&self) -> Option<Ipv6Addr> {
        self.if_ipv6(self.own.link_local)
    }

    fn if_ipv6(&self, address: Ipv6Addr) -> Option<Ipv6Addr> {
        self.has_ipv6.load(Ordering::Relaxed).then_some(address)
    }

    /// Where host a is reached, and host b.
    fn reach_of_both(&self) -> [Reach; 2] {
        let other = Reach { v4: self.peer.v4, v6: self.if_ipv6(self.peer.v6) };
        match self.side {
            Side::A => [self.reach(), other],
            Side::B => [other, self.reach()],
        }
    }

    /// Its network namespace.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Congestion control of TCP connections over the link, as read back from the kernel.
    #[must_use]
    pub fn congestion_control(&self) -> &str {
        &self.tcp_in_force.congestion_control
    }

    /// Segments that TCP connections over the link begin with, as read back from the kernel; none
    /// when it is the kernel's own.
    #[must_use]
    pub fn initial_window(&self) -> Option<u32> {
        self.tcp_in_force.initial_window
    }

    /// The TCP sockets that programs have on this host now, whoever opened them, up to
    /// [`MAX_TCP_SOCKETS`](super::MAX_TCP_SOCKETS).
    ///
    /// # Errors
    /// When there are more, and when the kernel lacks sock_diag(7) for TCP.
    pub fn tcp_sockets(&self) -> Result<Vec<TcpSocket>> {
        let doing = || format!("list the TCP sockets of host {}", self.side.name());
        self.within(tcp_sockets)?.doing(doing)
    }

    /// A program that will run on this host. There the names `a` and `b` resolve, and no other
    /// name is looked up over a network. It is ended when the lab is closed.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        let network = duplicate(&self.namespace).doing(|| "keep a namespace open".to_string())?;
        let [a, b] = self.reach_of_both();
        let mut command = Entrance::new(None, network, a, b).command(program);
        command.env(LAB_ID, &self.lab_id);
        Ok(command)
    }

    /// A program that will run on this host, started by `longwire`, this project's binary: it
    /// enters the host and becomes the program. Other than [`command`](Self::command) it does not
    /// copy this process first, which would make the ferry wait for every page that it writes to.
    ///
    /// The program ends with the thread that starts it, and may write no large file; see
    /// [`enter`](super::enter()).
    pub(crate) fn launch(&self, longwire: &Path, program: impl AsRef<OsStr>) -> Command {
        let network = self.namespace.as_fd().as_raw_fd();
        let network = format!("/proc/{}/fd/{network}", std::process::id());
        let [a, b] = self.reach_of_both();
        let mut command = Command::new(longwire);
        command.args(["lab", "enter", &network, &a.to_string(), &b.to_string(), "--"]);
        command.arg(program).env(LAB_ID, &self.lab_id);
        command
    }

    /// Runs `work` on a thread of its own on this host; see [`within`].
    ///
    /// # Errors
    /// When the namespace cannot be entered.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        within(&self.namespace, work)
    }

    /// Fits the host to a link: packets that it sends are at most `mtu` bytes long, those that it
    /// receives at most `interface_mtu`, and it has IPv6 where the link can have it.
    pub(crate) fn fit(&self, mtus: &Mtus) -> Result<()> {
        let mtu = mtus.each[self.side as usize];
        let doing = || format!("set the mtu of host {} to {mtu} B", self.side.name());
        let change = LinkChange { mtu: Some(mtus.interface), ..LinkChange::default() };
        self.netlink.change_link(self.interface, &change).doing(doing)?;
        self.route_ipv4(mtu).doing(doing)?;
        self.fit_ipv6(mtus).doing(doing)
    }

    /// Gives the interface its IPv4 address and says where the other host is.
    pub(super) fn address_ipv4(&self) -> io::Result<()> {
        let address = InterfaceAddress {
            address: self.own.v4.into(),
            prefix: IPV4_PREFIX,
            broadcast: Some(self.own.broadcast()),
        };
        self.netlink.add_address(self.interface, &address)?;
        self.netlink.add_neighbour(self.interface, self.peer.v4.into(), self.peer.mac())
    }

    /// The ways over the link for IPv4: to the other host, to everybody by the limited broadcast
    /// address (RFC 919 §7), and to groups (RFC 1112 §6.1), so that a program that names no
    /// interface reaches them. For the network's broadcast address the kernel has a route.
    pub(super) fn route_ipv4(&self, mtu: u32) -> io::Result<()> {
        const GROUPS: (Ipv4Addr, u8) = (Ipv4Addr::new(224, 0, 0, 0), 4);
        let one = |address: Ipv4Addr| (address, whole_prefix(address.into()));
        for (destination, prefix) in [one(self.peer.v4), one(Ipv4Addr::BROADCAST), GROUPS] {
            let (to, source) = ((destination.into(), prefix), Some(self.own.v4.into()));
            self.netlink.set_route(&self.route(Reached::Others, to, source, mtu))?;
        }
        Ok(())
    }

    /// Turns IPv6 on or off as the link's MTUs permit, with addresses, the other host's MAC
    /// address, and the ways to hosts and groups.
    pub(super) fn fit_ipv6(&self, mtus: &Mtus) -> io::Result<()> {
        let wanted = mtus.carry_ipv6();
        let setting = format!("ipv6/conf/{INTERFACE}/disable_ipv6");
        let value = if wanted { "0" } else { "1" };
        let switched = self.within(|| write_setting(&setting, value)).map_err(io::Error::other)?;
        let is_on = match switched {
            Ok(()) => wanted,
            // The kernel has no IPv6, on this machine or with this MTU.
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        self.has_ipv6.store(is_on, Ordering::Relaxed);
        if !is_on {
            return Ok(());
        }
        for address in [self.own.link_local, self.own.v6] {
            let address =
                InterfaceAddress { address: address.into(), prefix: IPV6_PREFIX, broadcast: None };
            self.netlink.add_address(self.interface, &address)?;
            let itself = (address.address, whole_prefix(address.address));
            let route = self.route(Reached::Itself, itself, None, mtus.interface);
            self.netlink.set_route(&route)?;
        }
        for peer in [self.peer.link_local, self.peer.v6] {
            self.netlink.add_neighbour(self.interface, peer.into(), self.peer.mac())?;
        }
        let groups = (IpAddr::from(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0)), 8);
        let own = Some(self.own.v6.into());
        let mtu = mtus.each[self.side as usize];
        for (reach, to, source) in [
            (Reached::Others, (LINK_LOCAL.into(), IPV6_PREFIX), None),
            (Reached::Others, (self.own.network().into(), IPV6_PREFIX), own),
            (Reached::Groups, groups, None),
        ] {
            self.netlink.set_route(&self.route(reach, to, source, mtu))?;
        }
        Ok(())
    }

    /// A way over the link, for packets of up to `mtu` bytes.
    fn route(
        &self,
        reach: Reached,
        (destination, prefix): (IpAddr, u8),
        source: Option<IpAddr>,
        mtu: u32,
    ) -> Route<'_> {
        let interface = self.interface;
        Route { interface, destination, prefix, source, reach, mtu, tcp: &self.tcp }
    }

    /// Packets lost because the ferry did not fetch them in time, since the host was made.
    pub(crate) fn lost_on_intake(&self) -> Result<u64> {
        let lost = match &self.intake {
            Intake::Tap => self.netlink.dropped_on_send(self.interface).map(|total| {
                self.lost.store(total, Ordering::Relaxed);
            }),
            Intake::None => Ok(()),
            // This count starts again with each reading.
            Intake::Socket(socket) => frames_lost_by_socket(socket).map(|more| {
                self.lost.fetch_add(more.into(), Ordering::Relaxed);
            }),
        };
        match lost {
            // Somebody on the host has removed its interface: what was known last stands.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
            other => other.doing(|| format!("count the losses of host {}", self.side.name())),
        }?;
        Ok(self.lost.load(Ordering::Relaxed))
    }
}
