//! Pairs of hosts: built and joined to the ferry's ports.

use std::fs;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use nix::net::if_::if_nametoindex;

use super::ethtool::turn_offloads_off;
use super::host::{Host, INTERFACE, Intake, Side};
use super::netlink::{LinkChange, Mac, Netlink, VethEnd};
use super::netns::{Namespace, on_fresh_thread};
use super::tcp::TcpSettings;
use crate::error::{Doing, Error, Result};
use crate::ferry::Port;

/// Most links of one lab at a time: each takes a block of four addresses from 10.66.0.0 on.
pub const LINKS_MAX: usize = 8192;
/// MTU of a host where the link has no limit of its own: Ethernet's.
const DEFAULT_MTU_BYTES: u32 = 1500;
/// The largest MTU of a TAP interface: IPv4's 65,535 less the Ethernet header.
const INTERFACE_MTU_MAX_BYTES: u32 = 65_521;
/// Packets that may wait for the ferry: it reads within microseconds, yet a burst of a whole TCP
/// window must not be lost before it meets the emulated queue.
const INTAKE_PACKETS: u32 = 4096;
const LOOPBACK: u32 = 1;

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

/// The MTUs of a link's hosts: what a sends at most, what b sends, and the interfaces' own.
pub(crate) fn mtus(config: &link::LinkConfig) -> ([u32; 2], u32) {
    let [a, b] = [&config.ab, &config.ba]
        .map(|channel| channel.mtu.unwrap_or(DEFAULT_MTU_BYTES).min(INTERFACE_MTU_MAX_BYTES));
    ([a, b], a.max(b))
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

const OPENING: &str = "open a netlink socket";

impl Workshop {
    /// For hosts that are joined to the ferry by `device`, resolved.
    pub(crate) fn open(device: Device) -> Result<Self> {
        let switch = match device {
            Device::Veth => Some(on_fresh_thread(Switch::make)?),
            Device::Tap | Device::Auto => None,
        };
        Ok(Self { switch, built: AtomicUsize::new(0) })
    }

    /// Builds a pair. Its addresses are used again after [`LINKS_MAX`] others, which nobody
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
        quieten()?;
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
            mac: mac(address(0, side)),
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
    quieten()?;
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
        address: address(index, side),
        peer: address(index, side.other()),
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
/// IPv6, no ARP (the peer is known for good), no multicast reports.
fn configure(host: &mut Host, config: &link::LinkConfig) -> Result<()> {
    let side = host.side;
    let doing = || format!("configure the interface of host {}", side.name());
    turn_offloads_off(INTERFACE).doing(doing)?;
    let index = if_nametoindex(INTERFACE).doing(doing)?;
    host.interface = index;
    let (mtu, interface_mtu) = mtus(config);
    let change = LinkChange {
        up: true,
        mtu: Some(interface_mtu),
        mac: Some(mac(host.address)),
        queue_packets: Some(INTAKE_PACKETS),
    };
    host.netlink.change_link(index, &change).doing(doing)?;
    host.netlink.add_address(index, host.address).doing(doing)?;
    host.netlink.add_neighbour(index, host.peer, mac(host.peer)).doing(doing)?;
    host.netlink
        .set_route(&host.route(mtu[side as usize]))
        .map_err(|error| refused(host, &error))?;
    match host.netlink.route_tcp(host.peer).doing(doing)? {
        Some(in_force) if in_force == host.tcp => host.tcp_in_force = in_force,
        other => return Err(refused(host, &format_args!("the kernel holds {other:?}"))),
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
    let (near_mac, mut far_mac) = (mac(address(index, side)), mac(address(index, side)));
    far_mac[1] = 1;
    let near = VethEnd { name: INTERFACE, mac: near_mac, mtu: DEFAULT_MTU_BYTES };
    // The ferry's end lets everything through: the link decides what is too large.
    let far = VethEnd { name: &far_name, mac: far_mac, mtu: INTERFACE_MTU_MAX_BYTES };
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

/// Stops what a namespace would send by itself. Before its interfaces exist: they inherit it.
fn quieten() -> Result<()> {
    for (setting, value) in [
        ("ipv6/conf/all/disable_ipv6", "1"),
        ("ipv6/conf/default/disable_ipv6", "1"),
        ("ipv4/igmp_link_local_mcast_reports", "0"),
    ] {
        match write_setting(setting, value) {
            Ok(()) => {}
            // The kernel has no such protocol: nothing to stop.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => {
                return Err(Error::System { doing: format!("set net/{setting}"), source });
            }
        }
    }
    Ok(())
}

/// Writes a setting of the calling thread's network namespace.
fn write_setting(setting: &str, value: &str) -> std::io::Result<()> {
    fs::write(format!("/proc/sys/net/{setting}"), value)
}

/// The `index`th pair of hosts has its own block of four addresses.
fn address(index: usize, side: Side) -> Ipv4Addr {
    let base = u32::from(Ipv4Addr::new(10, 66, 0, 0));
    let offset = u32::try_from(index % LINKS_MAX).unwrap_or(u32::MAX).saturating_mul(4);
    Ipv4Addr::from(base.saturating_add(offset).saturating_add(1 + side as u32))
}

/// A locally administered MAC address that follows from the IP address.
fn mac(address: Ipv4Addr) -> Mac {
    let [o0, o1, o2, o3] = address.octets();
    [0x02, 0, o0, o1, o2, o3]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_an_address_of_its_own() {
        let mut all: Vec<Ipv4Addr> =
            (0..LINKS_MAX).flat_map(|index| Side::BOTH.map(|side| address(index, side))).collect();
        assert_eq!(all[0], Ipv4Addr::new(10, 66, 0, 1));
        assert_eq!(all[3], Ipv4Addr::new(10, 66, 0, 6));
        assert!(all.iter().all(Ipv4Addr::is_private));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 2 * LINKS_MAX);
    }

    #[test]
    fn a_host_sends_what_its_direction_takes_and_receives_what_the_other_sends() {
        let mut config = link::LinkConfig::default();
        assert_eq!(mtus(&config), ([1500, 1500], 1500));
        config.ba.mtu = Some(576);
        assert_eq!(mtus(&config), ([1500, 576], 1500));
        config.ab.mtu = Some(65_535);
        assert_eq!(mtus(&config), ([65_521, 576], 65_521));
    }
}
