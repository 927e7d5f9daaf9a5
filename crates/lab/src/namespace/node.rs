//! One host of a net: a network namespace with an interface for each medium that it is on. It has
//! one address, whichever interface is used, and passes packets of others on.

use std::ffi::OsStr;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::Command;

use nix::net::if_::if_nametoindex;

use super::enter::LAB_ID;
use super::ethtool::turn_offloads_off;
use super::netlink::{InterfaceAddress, LinkChange, Mac, Netlink, Reached, Route, RouteChange};
use super::netns::{Namespace, within};
use super::tcp::TcpSettings;
use super::wire::{INTAKE_PACKETS, LOOPBACK, MAX_INTERFACE_MTU_BYTES, OPENING, set_all};
use crate::error::{Doing, Error, Result};
use crate::ferry::Port;

/// Longest name of a host of a net: all names with their addresses are to fit into one file.
pub(crate) const MAX_NODE_NAME_BYTES: usize = 64;
/// The last of those that a host sends to all on its link by (RFC 919 §7), and the groups
/// (RFC 1112 §6.1).
const TO_MANY: [(Ipv4Addr, u8); 2] = [(Ipv4Addr::BROADCAST, 32), (Ipv4Addr::new(224, 0, 0, 0), 4)];
/// What makes a host of a net: no IPv6, no packets that it sends by itself, and those of others are
/// passed on by whatever interface they came, without a word to who sent them (RFC 1812 §5.2.7.2).
const SETTINGS: [(&str, &str); 10] = [
    ("ipv4/igmp_link_local_mcast_reports", "0"),
    ("ipv6/conf/all/disable_ipv6", "1"),
    ("ipv6/conf/default/disable_ipv6", "1"),
    ("ipv4/ip_forward", "1"),
    ("ipv4/conf/all/send_redirects", "0"),
    ("ipv4/conf/default/send_redirects", "0"),
    ("ipv4/conf/all/rp_filter", "0"),
    ("ipv4/conf/default/rp_filter", "0"),
    ("ipv4/conf/default/accept_redirects", "0"),
    ("ipv4/tcp_no_metrics_save", "1"),
];

/// A host to be built.
pub(crate) struct NodePlan<'a> {
    /// For messages.
    pub(crate) name: &'a str,
    pub(crate) address: Ipv4Addr,
    pub(crate) interfaces: &'a [Interface],
    pub(crate) tcp: &'a TcpSettings,
    pub(crate) lab_id: &'a str,
}

/// One of its interfaces.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    pub(crate) mac: Mac,
    /// Bytes of the longest packet.
    pub(crate) mtu: u32,
    /// Everybody else on the medium: nobody is ever asked for a MAC address.
    pub(crate) neighbours: Vec<(Ipv4Addr, Mac)>,
}

/// A host of a net.
pub(crate) struct Node {
    name: String,
    namespace: Namespace,
    netlink: Netlink,
    address: Ipv4Addr,
    /// The kernel's number and the MTU of each interface.
    interfaces: Vec<(u32, u32)>,
    tcp: TcpSettings,
    lab_id: String,
}

impl Node {
    /// Builds a host, and the ferry's ports to its interfaces. Moves the calling thread.
    pub(crate) fn build(plan: &NodePlan<'_>) -> Result<(Self, Vec<Port>)> {
        let namespace = Namespace::enter_new()?;
        set_all(&SETTINGS)?;
        let netlink = Netlink::open().doing(|| OPENING.to_string())?;
        let up = LinkChange { up: true, ..LinkChange::default() };
        netlink.change_link(LOOPBACK, &up).doing(|| "bring the loopback up".to_string())?;
        let mut node = Self {
            name: plan.name.to_string(),
            namespace,
            netlink,
            address: plan.address,
            interfaces: Vec::with_capacity(plan.interfaces.len()),
            tcp: plan.tcp.clone(),
            lab_id: plan.lab_id.to_string(),
        };
        let mut ports = Vec::with_capacity(plan.interfaces.len());
        for (number, interface) in plan.interfaces.iter().enumerate() {
            ports.push(node.join(number, interface)?);
        }
        Ok((node, ports))
    }

    /// Makes an interface in the calling thread's namespace.
    fn join(&mut self, number: usize, interface: &Interface) -> Result<Port> {
        let name = format!("lw{number}");
        let doing = || format!("configure interface {name} of {}", self.name);
        let port = Port::open_tap(&name)?;
        turn_offloads_off(&name).doing(doing)?;
        let index = if_nametoindex(name.as_str()).doing(doing)?;
        let mtu = interface.mtu.min(MAX_INTERFACE_MTU_BYTES);
        let change = LinkChange {
            up: true,
            mtu: Some(mtu),
            mac: Some(interface.mac),
            queue_packets: Some(INTAKE_PACKETS),
        };
        self.netlink.change_link(index, &change).doing(doing)?;
        if number == 0 {
            let address =
                InterfaceAddress { address: self.address.into(), prefix: 32, broadcast: None };
            self.netlink.add_address(index, &address).doing(doing)?;
            for (destination, prefix) in TO_MANY {
                let route = Route {
                    interface: index,
                    destination: destination.into(),
                    prefix,
                    source: Some(self.address.into()),
                    reach: Reached::Others,
                    mtu,
                    tcp: &self.tcp,
                };
                self.netlink.set_route(&route).map_err(|error| self.refused(&error))?;
            }
        }
        for (address, mac) in &interface.neighbours {
            self.netlink.add_neighbour(index, (*address).into(), *mac).doing(doing)?;
        }
        self.interfaces.push((index, mtu));
        Ok(port)
    }

    fn refused(&self, why: &dyn std::fmt::Display) -> Error {
        let (name, control) = (&self.name, &self.tcp.congestion_control);
        Error::Machine {
            lack: format!("routing on {name} with TCP {control} fails ({why})"),
            remedy: "load the kernel's module for it (modprobe tcp_cubic, tcp_bbr)",
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its address.
    pub(crate) fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Its network namespace.
    pub(crate) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The kernel's number of an interface.
    pub(crate) fn interface(&self, number: usize) -> Option<u32> {
        self.interfaces.get(number).map(|(index, _)| *index)
    }

    /// Changes routes in one batch.
    pub(crate) fn change_routes(&self, changes: &[RouteChange]) -> Result<()> {
        let mtu = self.interfaces.iter().map(|(_, mtu)| *mtu).min().unwrap_or(u32::MAX);
        self.netlink
            .change_routes(changes, self.address, (mtu, &self.tcp))
            .doing(|| format!("change routes of {}", self.name))
    }

    /// A program that will run on this host, started by `longwire`, this project's binary, with the
    /// names of a file; see [`enter_net`](super::enter_net).
    pub(crate) fn launch(
        &self,
        longwire: &Path,
        names: &Path,
        program: impl AsRef<OsStr>,
    ) -> Command {
        let network = self.namespace.as_fd().as_raw_fd();
        let network = format!("/proc/{}/fd/{network}", std::process::id());
        let mut command = Command::new(longwire);
        command.args(["lab", "enter", &network, "--names"]).arg(names).arg("--");
        command.arg(program).env(LAB_ID, &self.lab_id);
        command
    }

    /// Runs `work` on a thread of its own on this host; see [`within`].
    pub(crate) fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        within(&self.namespace, work)
    }
}
