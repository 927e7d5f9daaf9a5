//! Labs in real time. They need the right to make namespaces; without it they say so and pass.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use link::LinkConfig;
use longwire_lab::{Device, Lab, LinkSpec, Options, Privilege, Side};

const PATIENCE: Duration = Duration::from_secs(5);

fn config(settings: &[&str]) -> LinkConfig {
    let mut config = LinkConfig::default();
    config.apply(settings, |_| Err("no files".to_string())).unwrap();
    config
}

fn spec(name: &str, config: LinkConfig) -> LinkSpec {
    LinkSpec { name: name.to_string(), config, seed: 1 }
}

/// Builds a lab, or says why the test is skipped.
fn build(device: Device, specs: &[LinkSpec]) -> Option<Lab> {
    if longwire_lab::acquire(false).ok() != Some(Privilege::Root) {
        println!("skipped: needs root");
        return None;
    }
    let options = Options { device, ..Options::default() };
    match Lab::build_with(specs, &options) {
        Ok(lab) => Some(lab),
        Err(error @ longwire_lab::Error::Machine { .. }) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn udp(lab: &Lab, link: usize, side: Side) -> UdpSocket {
    let host = lab.host(link, side);
    let socket = host.within(|| UdpSocket::bind((host.address(), 7))).unwrap().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn address(lab: &Lab, link: usize, side: Side) -> SocketAddr {
    (lab.host(link, side).address(), 7).into()
}

#[test]
fn a_round_trip_over_satcom_takes_what_the_link_takes() {
    for device in [Device::Tap, Device::Veth] {
        let specs = [spec("satcom", LinkConfig::preset("satcom").unwrap())];
        let Some(lab) = build(device, &specs) else { continue };
        let (a, b) = (udp(&lab, 0, Side::A), udp(&lab, 0, Side::B));
        let start = Instant::now();
        a.send_to(&[1; 100], address(&lab, 0, Side::B)).unwrap();
        let mut buffer = [0; 2000];
        let (length, from) = b.recv_from(&mut buffer).unwrap();
        assert_eq!((length, from), (100, address(&lab, 0, Side::A)));
        b.send_to(&buffer[..length], from).unwrap();
        a.recv(&mut buffer).unwrap();
        let elapsed = start.elapsed();
        // 128 IP bytes at 250 kbit/s and 550 ms, twice.
        let expected = 2 * (Duration::from_micros(4096) + Duration::from_millis(550));
        println!("{}: {elapsed:?}, expected {expected:?}", device.name());
        assert!(elapsed >= expected, "early");
        assert!(elapsed < expected + Duration::from_millis(50), "late");
        let report = lab.stats(0).unwrap();
        for direction in [&report.ab, &report.ba] {
            println!("{:?}", direction.lateness);
            assert_eq!(direction.traffic.packets_in, 1);
            assert_eq!(direction.traffic.bytes_in, 128);
            assert_eq!(direction.traffic.packets_out, 1);
            assert_eq!(direction.lateness.count, 1);
            assert!(direction.traffic.dropped.is_empty());
        }
    }
}
