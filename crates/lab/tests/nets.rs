//! Nets of several hosts in real time. They need root; without it they say so and pass.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use link::LinkConfig;
use link::medium::{Access, Csma, MediumConfig, PortId};
use longwire_lab::net::{
    Charge, HostRoute, HostSpec, LossChange, SegmentKind, SegmentSpec, To, Topology, TopologySpec,
    Transmission,
};
use longwire_lab::{Error, Privilege, TcpSettings};

/// How long something may take that must come.
const PATIENCE: Duration = Duration::from_secs(10);
const PORT: u16 = 7000;
/// A loss over which the fastest rate is good.
const NEAR_DB: f64 = 90.0;

fn spec(hosts: &[&str], charge: Option<Charge>) -> TopologySpec {
    let config = MediumConfig::wideband(Access::Csma(Csma::bianchi()));
    let host = |name: &&str| HostSpec { name: (*name).to_string(), interfaces: vec![0] };
    TopologySpec {
        name: "test".to_string(),
        hosts: hosts.iter().map(host).collect(),
        segments: vec![SegmentSpec {
            name: "wide".to_string(),
            kind: SegmentKind::Medium(Box::new(config), charge),
        }],
        seed: 1,
        tcp: TcpSettings::default(),
    }
}

/// Builds a net, or says why the test is skipped.
fn build(spec: TopologySpec) -> Option<Topology> {
    if longwire_lab::acquire(false).ok() != Some(Privilege::Root) {
        println!("skipped: needs root");
        return None;
    }
    match Topology::build(spec, &scratch()) {
        Ok(topology) => Some(topology),
        Err(error @ Error::Machine { .. }) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn scratch() -> PathBuf {
    let path = std::env::temp_dir().join(format!("longwire-nets-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn hears(pairs: &[(PortId, PortId)]) -> Vec<LossChange> {
    let both = |&(one, other): &(PortId, PortId)| [(one, other), (other, one)];
    let change = |(from, to)| LossChange { medium: 0, from, to, loss_db: Some(NEAR_DB) };
    pairs.iter().flat_map(both).map(change).collect()
}

fn socket(topology: &Topology, host: usize) -> UdpSocket {
    let bind = || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT));
    let socket = topology.within(host, bind).unwrap().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn route(host: usize, to: usize, next: usize) -> HostRoute {
    HostRoute { host, to, by: Some((next, 0)) }
}

/// What was in the air, once `enough` says so.
fn air(topology: &Topology, enough: impl Fn(&[Transmission]) -> bool) -> Vec<Transmission> {
    let deadline = Instant::now() + PATIENCE;
    let mut all = Vec::new();
    loop {
        all.extend(topology.take_air().unwrap().transmissions());
        if enough(&all) {
            return all;
        }
        assert!(Instant::now() < deadline, "{} in the air", all.len());
        std::thread::yield_now();
    }
}

fn packets(air: &[Transmission]) -> Vec<&Transmission> {
    air.iter().filter(|one| one.protocol == "udp").collect()
}

#[test]
fn the_one_in_the_middle_passes_on_what_the_ends_do_not_hear() {
    let Some(topology) = build(spec(&["a", "b", "c"], None)) else { return };
    topology.begin(hears(&[(0, 1), (1, 2)])).unwrap();
    let routes = [route(0, 1, 1), route(0, 2, 1), route(1, 0, 0), route(1, 2, 2), route(2, 0, 1)];
    topology.change_routes(&routes).unwrap();
    let (a, c) = (socket(&topology, 0), socket(&topology, 2));
    let address = |host: usize| (topology.address(host).unwrap(), PORT);
    a.send_to(&[7; 100], address(2)).unwrap();
    let mut buffer = [0; 200];
    let (length, from) = c.recv_from(&mut buffer).unwrap();
    assert_eq!((length, from), (100, address(0).into()), "from the address of a");
    c.send_to(&buffer[..50], from).unwrap();
    assert_eq!(a.recv(&mut buffer).unwrap(), 50);
    // Each of four hops with an acknowledgement of the medium.
    let air = air(&topology, |all| all.len() >= 8);
    let hops: Vec<(PortId, Vec<PortId>)> =
        packets(&air).iter().map(|one| (one.from, one.received.clone())).collect();
    assert_eq!(hops, [(0, vec![1]), (1, vec![2]), (2, vec![1]), (1, vec![0])]);
    assert_eq!(air.iter().filter(|one| one.protocol == "ack").count(), 4);
    assert_eq!(air.len(), 8, "no ARP and nothing else of the kernels' own");
    let first = packets(&air)[0];
    assert_eq!((first.to, first.source), (To::One, topology.address(0)));
    // 100 bytes, headers of IP and UDP, and that of the medium, at the fastest rate.
    assert_eq!((first.bytes, first.rate_bps), (100 + 28 + 34, 1_000_000));
    assert_eq!(first.ports, Some([PORT, PORT]));
}

#[test]
fn a_route_that_is_gone_leads_nowhere() {
    let Some(topology) = build(spec(&["a", "b"], None)) else { return };
    topology.begin(hears(&[(0, 1)])).unwrap();
    topology.change_routes(&[route(0, 1, 1)]).unwrap();
    let (a, b) = (socket(&topology, 0), socket(&topology, 1));
    let to = (topology.address(1).unwrap(), PORT);
    a.send_to(&[1], to).unwrap();
    assert_eq!(b.recv(&mut [0; 10]).unwrap(), 1);
    // Twice: one that is gone already is no error.
    for _ in 0..2 {
        topology.change_routes(&[HostRoute { host: 0, to: 1, by: None }]).unwrap();
    }
    assert_eq!(a.send_to(&[2], to).unwrap_err().kind(), ErrorKind::NetworkUnreachable);
    let unknown = HostRoute { host: 0, to: 5, by: Some((1, 0)) };
    assert!(matches!(topology.change_routes(&[unknown]), Err(Error::Caller(_))));
}

#[test]
fn a_multicast_to_five_is_in_the_air_once() {
    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
    let Some(topology) = build(spec(&["a", "b", "c", "d", "e", "f"], None)) else { return };
    topology.begin(hears(&[(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)])).unwrap();
    let members: Vec<UdpSocket> = (1..6)
        .map(|host| {
            let socket = socket(&topology, host);
            socket.join_multicast_v4(&GROUP, &topology.address(host).unwrap()).unwrap();
            socket
        })
        .collect();
    let a = socket(&topology, 0);
    a.send_to(&[9; 40], (GROUP, PORT)).unwrap();
    for member in &members {
        assert_eq!(member.recv(&mut [0; 100]).unwrap(), 40);
    }
    let air = air(&topology, |all| !all.is_empty());
    assert_eq!(air.len(), 1, "no reports of membership, no acknowledgements");
    assert_eq!((air[0].to, air[0].received.as_slice()), (To::Group(GROUP), &[1, 2, 3, 4, 5][..]));
    assert_eq!(air[0].rate_bps, 380_000, "the lowest rate");
}

#[test]
fn losses_change_while_a_net_runs() {
    let Some(topology) = build(spec(&["a", "b"], None)) else { return };
    topology.begin(hears(&[(0, 1)])).unwrap();
    topology.change_routes(&[route(0, 1, 1)]).unwrap();
    let (a, b) = (socket(&topology, 0), socket(&topology, 1));
    let to = (topology.address(1).unwrap(), PORT);
    let gone =
        [(0, 1), (1, 0)].map(|(from, to)| LossChange { medium: 0, from, to, loss_db: Some(200.0) });
    topology.change_losses(gone.to_vec()).unwrap();
    a.send_to(&[1], to).unwrap();
    // As often as is allowed, and nobody hears it.
    let attempts = 7;
    let lost = air(&topology, |all| all.len() >= attempts);
    assert!(lost.iter().all(|one| one.received.is_empty() && one.missed == [(1, "weak")]));
    topology.change_losses(hears(&[(0, 1)])).unwrap();
    a.send_to(&[2, 2], to).unwrap();
    assert_eq!(b.recv(&mut [0; 10]).unwrap(), 2);
    // What is begun anew has nothing of before.
    topology.begin(Vec::new()).unwrap();
    assert_eq!(topology.take_air().unwrap().transmissions().count(), 0);
}

#[test]
fn routing_is_charged_and_written_to_nobody() {
    let charge = Charge { bytes: 60, interval: Duration::from_millis(50) };
    let Some(topology) = build(spec(&["a", "b"], Some(charge))) else { return };
    topology.begin(hears(&[(0, 1)])).unwrap();
    let air = air(&topology, |all| all.len() >= 6);
    assert!(air.iter().all(|one| one.protocol == "routing" && one.to == To::All));
    let of = |port: PortId| air.iter().filter(move |one| one.from == port);
    assert!(of(0).count() >= 2 && of(1).count() >= 2);
    let starts: Vec<Duration> = of(0).map(|one| one.start).collect();
    let between = starts[1] - starts[0];
    assert!(between >= Duration::from_millis(40), "{between:?}");
    assert_eq!(air[0].bytes, 60 + 34);
}

#[test]
fn a_pair_is_the_smallest_topology() {
    let mut config = LinkConfig::default();
    config.ab.delay = Duration::from_millis(100);
    let Some(topology) = build(TopologySpec::pair("pair", config, 1)) else { return };
    topology.begin(Vec::new()).unwrap();
    topology.change_routes(&[route(0, 1, 1), route(1, 0, 0)]).unwrap();
    let (a, b) = (socket(&topology, 0), socket(&topology, 1));
    let start = Instant::now();
    a.send_to(&[5; 20], (topology.address(1).unwrap(), PORT)).unwrap();
    let mut buffer = [0; 50];
    let (length, from) = b.recv_from(&mut buffer).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(100));
    b.send_to(&buffer[..length], from).unwrap();
    assert_eq!(a.recv(&mut buffer).unwrap(), 20);
    let air = air(&topology, |all| all.len() >= 2);
    assert_eq!((air[0].from, air[0].bytes, air[1].from), (0, 48, 1));
}
