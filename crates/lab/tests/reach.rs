//! Whom programs on a host reach without being told of the link: everybody, groups, and hosts by
//! IPv6. They need root; without it they say so and pass. (Without root: longwire/tests/lab.rs.)

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use link::LinkConfig;
use longwire_lab::{Device, Error, Lab, LinkSpec, Options, Privilege, Side};
use record::result::Traffic;

/// How long a packet may take that must come.
const PATIENCE: Duration = Duration::from_secs(10);
const PORT: u16 = 5683;
/// Of IPv4 and UDP, of IPv6 and UDP.
const HEADERS_V4: u64 = 28;
const HEADERS_V6: u64 = 48;

fn config(settings: &[&str]) -> LinkConfig {
    let mut config = LinkConfig::default();
    config.apply(settings, |_| Err("no files".to_string())).unwrap();
    config
}

/// A lab of one link, or why the test is skipped.
fn build(device: Device, settings: &[&str]) -> Option<Lab> {
    if longwire_lab::acquire(false).ok() != Some(Privilege::Root) {
        println!("skipped: needs root");
        return None;
    }
    let options = Options { device, ..Options::default() };
    match Lab::build_with(&[LinkSpec::new("reach", config(settings), 1)], &options) {
        Ok(lab) => Some(lab),
        Err(error @ Error::Machine { .. }) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Whether the lab's hosts have IPv6, which the machine may lack.
fn has_ipv6(lab: &Lab) -> bool {
    let has = lab.host(0, Side::A).reach().v6.is_some();
    if !has {
        println!("skipped: this machine has no IPv6");
    }
    has
}

/// What a program does that knows nothing of the link: bind to everything.
fn bind(lab: &Lab, side: Side, any: impl Into<SocketAddr>) -> UdpSocket {
    let any = any.into();
    let socket = lab.host(0, side).within(|| UdpSocket::bind(any)).unwrap().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn up(lab: &Lab) -> Traffic {
    lab.stats(0).unwrap().ab.traffic
}

/// Sends from a and receives at b; says how many bytes the link counted for it.
fn cross(lab: &Lab, from: &UdpSocket, to: SocketAddr, receiver: &UdpSocket, content: &[u8]) -> u64 {
    let before = up(lab);
    from.send_to(content, to).unwrap_or_else(|error| panic!("{to}: {error}"));
    let mut buffer = [0; 3000];
    let length = receiver.recv(&mut buffer).unwrap_or_else(|error| panic!("{to}: {error}"));
    assert_eq!(&buffer[..length], content, "{to}");
    up(lab).bytes_in - before.bytes_in
}

#[test]
fn everybody_and_groups_are_reached_by_senders_that_name_no_interface() {
    const GROUPS: [Ipv4Addr; 3] =
        [Ipv4Addr::new(224, 0, 1, 187), Ipv4Addr::new(239, 1, 2, 3), Ipv4Addr::new(224, 0, 0, 251)];
    for device in [Device::Tap, Device::Veth] {
        let Some(lab) = build(device, &["delay=1 ms"]) else { continue };
        let any = (Ipv4Addr::UNSPECIFIED, 0);
        let (a, b) = (bind(&lab, Side::A, any), bind(&lab, Side::B, (any.0, PORT)));
        a.set_broadcast(true).unwrap();
        let own = u32::from(lab.host(0, Side::A).address());
        let of_network = Ipv4Addr::from(own | 3);
        for everybody in [Ipv4Addr::BROADCAST, of_network] {
            let counted = cross(&lab, &a, (everybody, PORT).into(), &b, b"discover");
            assert_eq!(counted, HEADERS_V4 + 8, "{everybody}");
        }
        for group in GROUPS {
            b.join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED).unwrap();
            cross(&lab, &a, (group, PORT).into(), &b, b"to a group");
        }
        let (_, from) = {
            a.send_to(b"from", (GROUPS[0], PORT)).unwrap();
            b.recv_from(&mut [0; 10]).unwrap()
        };
        assert_eq!(from.ip(), lab.host(0, Side::A).address(), "answers find their way");
        // And back.
        let back = bind(&lab, Side::A, (any.0, PORT));
        b.set_broadcast(true).unwrap();
        b.send_to(b"offer", (Ipv4Addr::BROADCAST, PORT)).unwrap();
        assert_eq!(back.recv(&mut [0; 10]).unwrap(), 5);
    }
}

#[test]
fn hosts_have_ipv6_with_its_groups_and_neighbours() {
    for device in [Device::Tap, Device::Veth] {
        let Some(lab) = build(device, &["delay=1 ms"]) else { continue };
        if !has_ipv6(&lab) {
            return;
        }
        let (host_a, host_b) = (lab.host(0, Side::A), lab.host(0, Side::B));
        let any = Ipv6Addr::UNSPECIFIED;
        let (a, b) = (bind(&lab, Side::A, (any, 0)), bind(&lab, Side::B, (any, PORT)));
        let to = host_b.reach().v6.unwrap();
        let counted = cross(&lab, &a, (to, PORT).into(), &b, b"unique local");
        assert_eq!(counted, HEADERS_V6 + 12);
        let scope = host_a.within(|| nix::net::if_::if_nametoindex("lw0")).unwrap().unwrap();
        let link_local = SocketAddrV6::new(host_b.link_local().unwrap(), PORT, 0, scope);
        cross(&lab, &a, link_local.into(), &b, b"link-local");
        // All nodes, CoAP's of the link and of the site, and one that anybody may have made up.
        for group in ["ff02::1", "ff02::fd", "ff05::fd", "ff1e::77"] {
            let group: Ipv6Addr = group.parse().unwrap();
            b.join_multicast_v6(&group, 0).unwrap();
            cross(&lab, &a, (group, PORT).into(), &b, b"to a group");
        }
        for (host, loopback) in [(host_a, "a"), (host_b, "b")] {
            let bound = host.within(|| TcpListener::bind((Ipv6Addr::LOCALHOST, 0))).unwrap();
            assert!(bound.is_ok(), "::1 of host {loopback}: {bound:?}");
        }
    }
}

#[test]
fn an_address_added_by_hand_is_found_by_neighbour_discovery() {
    let Some(lab) = build(Device::Auto, &["delay=1 ms"]) else { return };
    if !has_ipv6(&lab) {
        return;
    }
    let host = lab.host(0, Side::B);
    let mut segments = host.reach().v6.unwrap().segments();
    segments[7] = 0x77;
    let added = Ipv6Addr::from(segments);
    let mut ip = host.command("ip").unwrap();
    ip.args(["address", "add", &format!("{added}/128"), "dev", "lw0"]);
    match ip.status() {
        Ok(status) => assert!(status.success()),
        Err(error) => return println!("skipped: no ip command ({error})"),
    }
    let any = Ipv6Addr::UNSPECIFIED;
    let (a, b) = (bind(&lab, Side::A, (any, 0)), bind(&lab, Side::B, (any, PORT)));
    let counted = cross(&lab, &a, (added, PORT).into(), &b, b"who has it?");
    assert!(counted > HEADERS_V6 + 11, "the question crosses the link too: {counted}");
}

#[test]
fn tcp_over_ipv6_is_as_over_ipv4_and_is_recorded() {
    let spec =
        |settings| LinkSpec { record_packets: 1000, ..LinkSpec::new("six", config(settings), 1) };
    let Some(lab) = build(Device::Auto, &["delay=1 ms"]) else { return };
    if !has_ipv6(&lab) {
        return;
    }
    let link = lab.add(&spec(&["delay=1 ms"])).unwrap();
    let (a, b) = (link.host(Side::A), link.host(Side::B));
    let to = (b.reach().v6.unwrap(), PORT);
    let server = b.within(|| TcpListener::bind(to)).unwrap().unwrap();
    let client = a.within(|| TcpStream::connect(to)).unwrap().unwrap();
    let accepted = server.accept().unwrap().0;
    for stream in [&client, &accepted] {
        let control =
            nix::sys::socket::getsockopt(stream, nix::sys::socket::sockopt::TcpCongestion);
        assert_eq!(control.unwrap(), "cubic");
    }
    let record = link.record().unwrap();
    let seen = record.packets.iter().filter_map(|packet| packet.tcp.as_ref());
    assert!(seen.clone().count() >= 3, "a handshake");
    assert!(seen.clone().all(|tcp| [tcp.source_port, tcp.destination_port].contains(&PORT)));
}

#[test]
fn ipv6_keeps_to_the_mtu_and_is_off_where_that_is_too_small_for_it() {
    let Some(lab) = build(Device::Auto, &["ab.mtu=1300 B"]) else { return };
    if !has_ipv6(&lab) {
        return;
    }
    let (a, b) = (lab.host(0, Side::A), lab.host(0, Side::B));
    let any = Ipv6Addr::UNSPECIFIED;
    let (from, to) = (bind(&lab, Side::A, (any, 0)), bind(&lab, Side::B, (any, PORT)));
    let group: Ipv6Addr = "ff1e::77".parse().unwrap();
    to.join_multicast_v6(&group, 0).unwrap();
    for destination in [b.reach().v6.unwrap(), group] {
        let before = up(&lab).packets_in;
        cross(&lab, &from, (destination, PORT).into(), &to, &[7; 2000]);
        assert_eq!(up(&lab).packets_in - before, 2, "in fragments to {destination}");
    }
    assert!(up(&lab).dropped.is_empty(), "{:?}", up(&lab).dropped);
    // RFC 8200 §5: no link with a smaller one carries IPv6.
    lab.configure(0, config(&["ba.mtu=1279 B"])).unwrap();
    assert!([a, b].iter().all(|host| host.reach().v6.is_none() && host.link_local().is_none()));
    lab.configure(0, config(&["ba.mtu=600 B", "ab.mtu=600 B"])).unwrap();
    assert!(from.send_to(&[1], (group, PORT)).is_err(), "no way there");
    lab.configure(0, config(&["mtu=1280 B"])).unwrap();
    let destination = b.reach().v6.unwrap();
    cross(&lab, &from, (destination, PORT).into(), &to, b"again");
}

#[test]
fn broadcasts_and_groups_keep_to_the_mtu() {
    let any = (Ipv4Addr::UNSPECIFIED, 0);
    let group = Ipv4Addr::new(239, 1, 2, 3);
    // The kernel cuts broadcasts by the interface's MTU alone, the wider of the two directions.
    for (setting, may_broadcast) in [("mtu=600 B", true), ("ab.mtu=600 B", false)] {
        let Some(lab) = build(Device::Auto, &[setting]) else { return };
        let (a, b) = (bind(&lab, Side::A, any), bind(&lab, Side::B, (any.0, PORT)));
        a.set_broadcast(true).unwrap();
        b.join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED).unwrap();
        let of_network = Ipv4Addr::from(u32::from(lab.host(0, Side::A).address()) | 3);
        let everybody = [Ipv4Addr::BROADCAST, of_network].into_iter().filter(|_| may_broadcast);
        for destination in everybody.chain([group]) {
            let before = up(&lab).packets_in;
            cross(&lab, &a, (destination, PORT).into(), &b, &[7; 1000]);
            assert_eq!(up(&lab).packets_in - before, 2, "in fragments to {destination}");
        }
    }
}

#[test]
fn hosts_keep_quiet_though_they_have_ipv6() {
    /// A kernel that searched for routers or neighbours would have begun within this time.
    const IDLE: Duration = Duration::from_secs(3);
    for device in [Device::Tap, Device::Veth] {
        let Some(lab) = build(device, &[]) else { continue };
        // sleep: the time that passes is what is tested.
        std::thread::sleep(IDLE);
        let report = lab.stats(0).unwrap();
        for direction in [report.ab, report.ba] {
            assert_eq!(direction.traffic, Traffic::default());
            assert_eq!(direction.ignored, 0);
        }
    }
}
