//! One host: a network namespace with one interface, which leads over the link.

use std::ffi::OsStr;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use super::enter::{Entrance, LAB_ID, duplicate};
use super::netlink::{LinkChange, Netlink, Route};
use super::netns::{Namespace, within};
use super::sockets::{TcpSocket, tcp_sockets};
use super::tcp::TcpSettings;
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

/// One host of a lab.
pub struct Host {
    pub(super) side: Side,
    pub(super) namespace: Namespace,
    pub(super) address: Ipv4Addr,
    pub(super) peer: Ipv4Addr,
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
        self.address
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
    /// [`TCP_SOCKETS_MAX`](super::TCP_SOCKETS_MAX).
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
        let (a, b) = match self.side {
            Side::A => (self.address, self.peer),
            Side::B => (self.peer, self.address),
        };
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
        let (a, b) = match self.side {
            Side::A => (self.address, self.peer),
            Side::B => (self.peer, self.address),
        };
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
    /// receives at most `interface_mtu`.
    pub(crate) fn fit(&self, mtu: u32, interface_mtu: u32) -> Result<()> {
        let doing = || format!("set the mtu of host {} to {mtu} B", self.side.name());
        let change = LinkChange { mtu: Some(interface_mtu), ..LinkChange::default() };
        self.netlink.change_link(self.interface, &change).doing(doing)?;
        self.netlink.set_route(&self.route(mtu)).doing(doing)
    }

    /// The way over the link, for packets of up to `mtu` bytes.
    pub(super) fn route(&self, mtu: u32) -> Route<'_> {
        let (interface, peer, source) = (self.interface, self.peer, self.address);
        Route { interface, peer, source, mtu, tcp: &self.tcp }
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
