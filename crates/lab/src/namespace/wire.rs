//! Pairs of hosts: built and joined to the ferry's ports.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use nix::net::if_::if_nametoindex;

use super::address::Addresses;
use super::ethtool::turn_offloads_off;
use super::host::{Host, INTERFACE, Intake, Mtus, Side};
use super::netlink::{LinkChange, Netlink, VethEnd};
use super::netns::{Namespace, on_fresh_thread};
use super::tcp::TcpSettings;
use super::write_setting;
use crate::error::{Doing, Error, Result};
use crate::ferry::Port;

/// Most links of one lab at a time: each takes a block of four IPv4 addresses from 10.66.0.0 on.
pub const MAX_LINKS: usize = 8192;
/// MTU of a host where the link has no limit of its own: Ethernet's.
const DEFAULT_MTU_BYTES: u32 = 1500;
/// The largest MTU of a TAP interface: IPv4's 65,535 less the Ethernet header.
pub(super) const MAX_INTERFACE_MTU_BYTES: u32 = 65_521;
/// Packets that may wait for the ferry: it reads within microseconds, yet a burst of a whole TCP
/// window must not be lost before it meets the emulated queue.
pub(super) const INTAKE_PACKETS: u32 = 4096;
pub(super) const LOOPBACK: u32 = 1;

/// What joins a host to the ferry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// TAP where the machine permits, else veth.
    #[default]
    Auto,
    /// A TAP interface: delivers truest.
    Tap,
    /// A veth pair with a packet socket at the ferry's end: needs no device file.
    Veth,
}

impl Device {
    /// The name in results and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Tap => "tap",
            Self::Veth => "veth",
        }
    }

    /// The device that a person calls `name`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Auto, Self::Tap, Self::Veth].into_iter().find(|device| device.name() == name)
    }

    /// What will be used on this machine.
    pub(crate) fn resolve(self) -> Self {
        match self {
            Self::Auto if Port::tap_permitted() => Self::Tap,
            Self::Auto => Self::Veth,
            chosen => chosen,
        }
    }
}

/// A pair of hosts to be built.
pub(crate) struct Plan<'a> {
    /// Names for `ip netns`, when it is to have them.
    pub(crate) names: Option<[String; 2]>,
    pub(crate) config: &'a link::LinkConfig,
    /// Of host a, of host b.
    pub(crate) tcp: &'a [TcpSettings; 2],
    pub(crate) lab_id: &'a str,
}

/// A pair of hosts and the ferry's ports to them.
pub(crate) struct Wire {
    pub(crate) hosts: [Host; 2],
    pub(crate) ports: [Port; 2],
}

/// The MTUs of a link's hosts.
pub(crate) fn mtus(config: &link::LinkConfig) -> Mtus {
    let each @ [a, b] = [&config.ab, &config.ba]
        .map(|channel| channel.mtu.unwrap_or(DEFAULT_MTU_BYTES).min(MAX_INTERFACE_MTU_BYTES));
    Mtus { each, interface: a.max(b) }
}

/// Builds pairs of hosts, each on its own; several threads may at once.
pub(crate) struct Workshop {
    switch: Option<Switch>,
    built: AtomicUsize,
}

/// The ferry's namespace, where its ends of veth pairs are.
struct Switch {
    namespace: Namespace,
    netlink: Netlink,
}

pub(super) const OPENING: &str = "open a netlink socket";

impl Workshop {
    /// For hosts that are joined to the ferry by `device`, resolved.
    pub(crate) fn open(device: Device) -> Result<Self> {
        let switch = match device {
            Device::Veth => Some(on_fresh_thread(Switch::make)?),
            Device::Tap | Device::Auto => None,
        };
        Ok(Self { switch, built: AtomicUsize::new(0) })
    }

    /// Builds a pair. Its addresses are used again after [`MAX_LINKS`] others, which nobody
    /// notices: each pair is alone in its namespaces.
    pub(crate) fn build(&self, plan: &Plan<'_>) -> Result<Wire> {
        let index = self.built.fetch_add(1, Ordering::Relaxed);
        // Making a namespace moves the thread into it.
        on_fresh_thread(|| build_pair(index, plan, self.switch.as_ref()))
    }
}

impl Switch {
    fn make() -> Result<Self> {
        let namespace = Namespace::enter_new()?;
        // The ferry's ends of veth pairs have no addresses and send nothing.
        set_all(&[("ipv6/conf/all/disable_ipv6", "1"), ("ipv6/conf/default/disable_ipv6", "1")])?;
        let netlink = Netlink::open().doing(|| OPENING.to_string())?;
        Ok(Self { namespace, netlink })
    }
}

fn build_pair(index: usize, plan: &Plan<'_>, switch: Option<&Switch>) -> Result<Wire> {
    let (a, port_a) = build_host(index, Side::A, plan, switch)?;
    let (b, port_b) = build_host(index, Side::B, plan, switch)?;
    Ok(Wire { hosts: [a, b], ports: [port_a, port_b] })
}

fn build_host(
    index: usize,
    side: Side,
    plan: &Plan<'_>,
    switch: Option<&Switch>,
) -> Result<(Host, Port)> {
    let (namespace, netlink) = furnish(side, plan)?;
    let (port, intake) = match switch {
        None => (Port::open_tap(INTERFACE)?, Intake::Tap),
        Some(switch) => join_by_veth(index, side, &namespace, &netlink, switch)?,
    };
    Ok((settle(index, side, plan, (namespace, netlink), intake)?, port))
}

/// Builds a pair whose interfaces are the two ends of one veth pair, with no ferry between.
pub(crate) fn build_joined(plan: &Plan<'_>) -> Result<[Host; 2]> {
    on_fresh_thread(|| {
        let b = furnish(Side::B, plan)?;
        let a = furnish(Side::A, plan)?;
        let [near, far] = Side::BOTH.map(|side| VethEnd {
            name: INTERFACE,
            mac: Addresses::new(0, side).mac(),
            mtu: DEFAULT_MTU_BYTES,
        });
        a.1.create_veth(&near, &far, &b.0).doing(|| "join two hosts by a veth pair".to_string())?;
        let a = settle(0, Side::A, plan, a, Intake::None)?;
        b.0.enter()?;
        Ok([a, settle(0, Side::B, plan, b, Intake::None)?])
    })
}

/// A namespace, entered, that sends nothing by itself and has no interface yet but its loopback.
fn furnish(side: Side, plan: &Plan<'_>) -> Result<(Namespace, Netlink)> {
    let mut namespace = Namespace::enter_new()?;
    if let Some(names) = &plan.names {
        namespace.publish(&names[side as usize])?;
    }
    set_all(&QUIET)?;
    write_setting("ipv4/tcp_no_metrics_save", "1").doing(|| "stop metrics".to_string())?;
    // Refused in most namespaces; the route then decides alone.
    let tcp = &plan.tcp[side as usize];
    let _ = write_setting("ipv4/tcp_congestion_control", &tcp.congestion_control);
    let netlink = Netlink::open().doing(|| OPENING.to_string())?;
    let up = LinkChange { up: true, ..LinkChange::default() };
    netlink.change_link(LOOPBACK, &up).doing(|| "bring the loopback up".to_string())?;
    Ok((namespace, netlink))
}

/// Makes a host of a namespace with its interface.
fn settle(
    index: usize,
    side: Side,
    plan: &Plan<'_>,
    (namespace, netlink): (Namespace, Netlink),
    intake: Intake,
) -> Result<Host> {
    let tcp = &plan.tcp[side as usize];
    let mut host = Host {
        side,
        own: Addresses::new(index, side),
        peer: Addresses::new(index, side.other()),
        has_ipv6: AtomicBool::new(false),
        namespace,
        netlink,
        interface: 0,
        tcp: tcp.clone(),
        tcp_in_force: tcp.clone(),
        intake,
        lost: AtomicU64::new(0),
        lab_id: plan.lab_id.to_string(),
    };
    configure(&mut host, plan.config)?;
    Ok(host)
}

/// Sets a host's interface up so that nothing but its own programs' packets goes over the link: no
/// ARP and no question for a neighbour (the peer is known for good).
fn configure(host: &mut Host, config: &link::LinkConfig) -> Result<()> {
    let side = host.side;
    let doing = || format!("configure the interface of host {}", side.name());
    turn_offloads_off(INTERFACE).doing(doing)?;
    let index = if_nametoindex(INTERFACE).doing(doing)?;
    host.interface = index;
    let mtus = mtus(config);
    let change = LinkChange {
        up: true,
        mtu: Some(mtus.interface),
        mac: Some(host.own.mac()),
        queue_packets: Some(INTAKE_PACKETS),
    };
    host.netlink.change_link(index, &change).doing(doing)?;
    host.address_ipv4().doing(doing)?;
    host.route_ipv4(mtus.each[side as usize]).map_err(|error| refused(host, &error))?;
    host.fit_ipv6(&mtus).doing(doing)?;
    let peers = [Some(host.peer.v4.into()), host.reach().v6.map(|_| host.peer.v6.into())];
    for peer in peers.into_iter().flatten() {
        match host.netlink.route_tcp(peer).doing(doing)? {
            Some(in_force) if in_force == host.tcp => host.tcp_in_force = in_force,
            other => return Err(refused(host, &format_args!("the kernel holds {other:?}"))),
        }
    }
    Ok(())
}

fn refused(host: &Host, why: &dyn std::fmt::Display) -> Error {
    let name = &host.tcp.congestion_control;
    Error::Machine {
        lack: format!("routing over the link with TCP {name} fails ({why})"),
        remedy: "load the kernel's module for it (modprobe tcp_cubic, tcp_bbr) or choose another",
    }
}

/// Joins the calling thread's namespace to the ferry's and comes back.
fn join_by_veth(
    index: usize,
    side: Side,
    namespace: &Namespace,
    netlink: &Netlink,
    switch: &Switch,
) -> Result<(Port, Intake)> {
    let far_name = format!("{}{index}", side.name());
    let doing = || format!("join host {far_name} by a veth pair");
    let near_mac = Addresses::new(index, side).mac();
    let mut far_mac = near_mac;
    far_mac[1] = 1;
    let near = VethEnd { name: INTERFACE, mac: near_mac, mtu: DEFAULT_MTU_BYTES };
    // The ferry's end lets everything through: the link decides what is too large.
    let far = VethEnd { name: &far_name, mac: far_mac, mtu: MAX_INTERFACE_MTU_BYTES };
    netlink.create_veth(&near, &far, &switch.namespace).doing(doing)?;
    switch.namespace.enter()?;
    turn_offloads_off(&far_name).doing(doing)?;
    let far_index = if_nametoindex(far_name.as_str()).doing(doing)?;
    let port = Port::open_socket(far_index)?;
    let up = LinkChange { up: true, ..LinkChange::default() };
    switch.netlink.change_link(far_index, &up).doing(doing)?;
    let socket = port.try_clone().doing(doing)?;
    namespace.enter()?;
    Ok((port, Intake::Socket(socket)))
}

/// What stops a host from sending by itself, and lets it have IPv6 whatever the machine's default
/// is. Written before its interfaces exist, which inherit it: no reports of groups that stay on the
/// link, no search for others with the same address (RFC 4862 §5.4) or for routers (RFC 4861
/// §6.3.7), and no IPv6 addresses but those that it is given.
const QUIET: [(&str, &str); 7] = [
    ("ipv4/igmp_link_local_mcast_reports", "0"),
    ("ipv6/conf/all/disable_ipv6", "0"),
    ("ipv6/conf/default/disable_ipv6", "0"),
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv6/conf/default/dad_transmits", "0"),
    ("ipv6/conf/default/router_solicitations", "0"),
    // IN6_ADDR_GEN_MODE_NONE.
    ("ipv6/conf/default/addr_gen_mode", "1"),
];

/// Writes settings of the calling thread's network namespace.
pub(super) fn set_all(settings: &[(&str, &str)]) -> Result<()> {
    for (setting, value) in settings {
        match write_setting(setting, value) {
            Ok(()) => {}
            // The kernel has no such protocol: nothing to set.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => {
                return Err(Error::System { doing: format!("set net/{setting}"), source });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_sends_what_its_direction_takes_and_receives_what_the_other_sends() {
        let mut config = link::LinkConfig::default();
        assert_eq!(mtus(&config), Mtus { each: [1500, 1500], interface: 1500 });
        config.ba.mtu = Some(576);
        assert_eq!(mtus(&config), Mtus { each: [1500, 576], interface: 1500 });
        config.ab.mtu = Some(65_535);
        assert_eq!(mtus(&config), Mtus { each: [65_521, 576], interface: 65_521 });
    }
}
