//! Labs in real time. They need the right to make namespaces; without it they say so and pass.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Stdio;
use std::time::{Duration, Instant};

use link::LinkConfig;
use longwire_lab::{
    Device, Error, Host, Lab, Link, LinkSpec, Options, Privilege, Side, TcpSettings, TcpSocket,
};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, getsockopt, recv, setsockopt,
    socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};
use record::packets::{PacketEvent, PacketRecord, Toward};

/// How long an answer may take that must come.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much later than due a packet may be while other tests keep both cores busy.
const TOLERANCE: Duration = Duration::from_millis(50);
/// A machine that does something else as well is late now and then, and a link that is at fault
/// each time: so often it may be.
const TRIES: usize = 10;
const PORT: u16 = 7;
/// IPv4 and UDP headers.
const HEADERS: usize = 28;

fn config(settings: &[&str]) -> LinkConfig {
    let mut config = LinkConfig::default();
    config.apply(settings, |_| Err("no files".to_string())).unwrap();
    config
}

/// Builds a lab of links named after their numbers, or says why the test is skipped.
fn build(device: Device, configs: &[LinkConfig]) -> Option<Lab> {
    // Tests run on threads, and a process with threads gets no user namespace: what a lab does
    // without root is tested with the binary.
    if longwire_lab::acquire(false).ok() != Some(Privilege::Root) {
        println!("skipped: needs root");
        return None;
    }
    let spec = |(number, config): (usize, &LinkConfig)| {
        LinkSpec::new(format!("link{number}"), config.clone(), 1)
    };
    let specs: Vec<LinkSpec> = configs.iter().enumerate().map(spec).collect();
    let options = Options { device, ..Options::default() };
    match Lab::build_with(&specs, &options) {
        Ok(lab) => Some(lab),
        Err(error @ Error::Machine { .. }) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn udp(lab: &Lab, link: usize, side: Side) -> UdpSocket {
    let host = lab.host(link, side);
    let socket = host.within(|| UdpSocket::bind((host.address(), PORT))).unwrap().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn address(lab: &Lab, link: usize, side: Side) -> SocketAddr {
    (lab.host(link, side).address(), PORT).into()
}

/// A receiver of whole IP packets on host b, also of those that its kernel would throw away.
fn capture(lab: &Lab) -> std::os::fd::OwnedFd {
    lab.host(0, Side::B)
        .within(|| {
            let protocol = SockProtocol::EthIp;
            let flags = SockFlag::SOCK_CLOEXEC;
            let socket =
                socket(AddressFamily::Packet, SockType::Datagram, flags, protocol).unwrap();
            setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::seconds(10)).unwrap();
            socket
        })
        .unwrap()
}

#[test]
fn a_round_trip_over_satcom_takes_what_the_link_takes() {
    for device in [Device::Tap, Device::Veth] {
        let Some(lab) = build(device, &[LinkConfig::preset("satcom").unwrap()]) else { continue };
        let (a, b) = (udp(&lab, 0, Side::A), udp(&lab, 0, Side::B));
        // 128 IP bytes at 250 kbit/s and 550 ms, twice.
        let expected = 2 * (Duration::from_micros(4096) + Duration::from_millis(550));
        let mut took = Vec::new();
        while took.len() < TRIES && took.last().is_none_or(|took| *took >= expected + TOLERANCE) {
            let start = Instant::now();
            a.send_to(&[1; 100], address(&lab, 0, Side::B)).unwrap();
            let mut buffer = [0; 2000];
            let (length, from) = b.recv_from(&mut buffer).unwrap();
            assert_eq!((length, from), (100, address(&lab, 0, Side::A)));
            b.send_to(&buffer[..length], from).unwrap();
            a.recv(&mut buffer).unwrap();
            took.push(start.elapsed());
        }
        println!("{}: {took:?}, expected {expected:?}", device.name());
        assert!(took.iter().all(|took| *took >= expected), "early: {took:?}");
        assert!(took.iter().any(|took| *took < expected + TOLERANCE), "late: {took:?}");
        let tries = took.len() as u64;
        let report = lab.stats(0).unwrap();
        for direction in [&report.ab, &report.ba] {
            assert_eq!(direction.traffic.packets_in, tries);
            assert_eq!(direction.traffic.bytes_in, 128 * tries);
            assert_eq!(direction.traffic.packets_out, tries);
            assert_eq!(direction.lateness.count, tries);
            assert!(direction.traffic.dropped.is_empty());
        }
    }
}

#[test]
fn an_idle_link_carries_nothing() {
    const IDLE: Duration = Duration::from_secs(5);
    let plain = [LinkConfig::default()];
    let labs: Vec<Lab> =
        [Device::Tap, Device::Veth].into_iter().filter_map(|one| build(one, &plain)).collect();
    // A socket that listens must not announce itself either.
    let sockets: Vec<UdpSocket> = labs.iter().map(|lab| udp(lab, 0, Side::B)).collect();
    // sleep: the time that passes is what is tested.
    std::thread::sleep(IDLE);
    for lab in &labs {
        let report = lab.stats(0).unwrap();
        for direction in [report.ab, report.ba] {
            assert_eq!(direction.traffic, record::result::Traffic::default());
            assert_eq!(direction.ignored, 0, "frames other than IPv4");
        }
    }
    drop(sockets);
}

#[test]
fn a_change_keeps_what_is_queued() {
    const PACKETS: u8 = 20;
    // One packet of 1,000 IP bytes takes a second.
    let slow = config(&["rate=8 kbit/s", "queue_packets=100"]);
    let Some(lab) = build(Device::Auto, &[slow]) else { return };
    let (a, b) = (udp(&lab, 0, Side::A), udp(&lab, 0, Side::B));
    for number in 0..PACKETS {
        a.send_to(&[number; 1000 - HEADERS], address(&lab, 0, Side::B)).unwrap();
    }
    let deadline = Instant::now() + PATIENCE;
    while lab.stats(0).unwrap().ab.traffic.packets_in < u64::from(PACKETS) {
        assert!(Instant::now() < deadline, "the packets do not reach the link");
        std::thread::yield_now();
    }
    let before = lab.stats(0).unwrap().ab;
    assert_eq!(before.queued_bytes, 1000 * u64::from(PACKETS - 1), "one is being sent");
    // A queue that is now too long for its limit is kept too.
    lab.configure(0, config(&["rate=8 Mbit/s", "queue_packets=5"])).unwrap();
    let start = Instant::now();
    let mut buffer = [0; 2000];
    for number in 0..PACKETS {
        let length = b.recv(&mut buffer).unwrap();
        assert_eq!((length, buffer[0]), (1000 - HEADERS, number));
    }
    assert!(start.elapsed() < Duration::from_secs(3), "still at the old rate");
    let after = lab.stats(0).unwrap().ab;
    assert_eq!(after.traffic.packets_out, u64::from(PACKETS));
    assert!(after.traffic.dropped.is_empty());
    assert_eq!(lab.config(0).ab.queue_packets, 5);
}

#[test]
fn unmodified_tcp_uses_cubic_and_carries_every_byte() {
    for device in [Device::Tap, Device::Veth] {
        let Some(lab) = build(device, &[LinkConfig::preset("los").unwrap()]) else { continue };
        let (a, b) = (lab.host(0, Side::A), lab.host(0, Side::B));
        let server = b.within(|| TcpListener::bind((b.address(), PORT))).unwrap().unwrap();
        let content: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
        let cubic = |stream: &TcpStream| {
            getsockopt(stream, sockopt::TcpCongestion).unwrap().to_string_lossy().into_owned()
        };
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                let (mut stream, _) = server.accept().unwrap();
                stream.write_all(&content).unwrap();
                cubic(&stream)
            });
            let mut stream = a.within(|| TcpStream::connect((b.address(), PORT))).unwrap().unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            assert!(received == content, "{} bytes arrived changed", received.len());
            assert_eq!(cubic(&stream), "cubic");
            assert_eq!(sender.join().unwrap(), "cubic");
        });
        assert_eq!([a, b].map(|host| host.congestion_control()), ["cubic", "cubic"]);
        let back = lab.stats(0).unwrap().ba.traffic;
        assert!(back.bytes_in > 200_000, "headers count: {}", back.bytes_in);
        // With offloads on, packets of 64 KB would have crossed the link.
        assert!(back.packets_in >= 200_000 / 1448, "{} packets", back.packets_in);
    }
}

#[test]
fn corruption_arrives_as_one_wrong_bit() {
    for device in [Device::Tap, Device::Veth] {
        let Some(lab) = build(device, &[config(&["delay=1 ms"])]) else { continue };
        let (a, capture) = (udp(&lab, 0, Side::A), capture(&lab));
        let packet = || {
            a.send_to(&[0; 500], address(&lab, 0, Side::B)).unwrap();
            let mut buffer = vec![0; 2000];
            let length = recv(capture.as_raw_fd(), &mut buffer, MsgFlags::empty()).unwrap();
            buffer.truncate(length);
            // The identification and the checksum over it may differ from packet to packet.
            buffer[4..6].fill(0);
            buffer[10..12].fill(0);
            buffer
        };
        let (sound, again) = (packet(), packet());
        assert_eq!(sound.len(), 500 + HEADERS);
        assert_eq!(sound, again);
        lab.configure(0, config(&["delay=1 ms", "corrupt=100 %"])).unwrap();
        const CORRUPTED: usize = 20;
        let wrong = |packet: Vec<u8>| -> u32 {
            packet.iter().zip(&sound).map(|(one, other)| (one ^ other).count_ones()).sum()
        };
        let wrong_bits: Vec<u32> = (0..CORRUPTED).map(|_| wrong(packet())).collect();
        // None where the bit hit one of the fields left out of the comparison.
        assert!(wrong_bits.iter().all(|bits| *bits <= 1), "{wrong_bits:?}");
        assert!(wrong_bits.iter().sum::<u32>() >= 15, "{wrong_bits:?}");
        assert_eq!(lab.stats(0).unwrap().ab.corrupted, CORRUPTED as u64);
    }
}

#[test]
fn hosts_keep_to_the_mtu_also_when_it_changes() {
    for device in [Device::Tap, Device::Veth] {
        let Some(lab) = build(device, &[config(&["ab.mtu=600 B"])]) else { continue };
        let (a, b) = (udp(&lab, 0, Side::A), udp(&lab, 0, Side::B));
        let mut buffer = [0; 2000];
        let mut send = |from: &UdpSocket, to: &UdpSocket, bytes: usize| {
            from.send_to(&vec![1; bytes], to.local_addr().unwrap()).unwrap();
            assert_eq!(to.recv(&mut buffer).unwrap(), bytes, "put together again");
        };
        send(&a, &b, 1000);
        assert_eq!(lab.stats(0).unwrap().ab.traffic.packets_in, 2, "in fragments");
        send(&b, &a, 1000);
        assert_eq!(lab.stats(0).unwrap().ba.traffic.packets_in, 1, "the way back takes it whole");
        lab.configure(0, config(&["mtu=2000 B"])).unwrap();
        send(&a, &b, 1900);
        let report = lab.stats(0).unwrap();
        assert_eq!(report.ab.traffic.packets_in, 3, "whole");
        assert!(report.ab.traffic.dropped.is_empty(), "{:?}", report.ab.traffic.dropped);
    }
}

#[test]
fn many_links_keep_apart_and_are_gone_at_once() {
    const LINKS: usize = 100;
    for device in [Device::Tap, Device::Veth] {
        let Some(lab) = build(device, &vec![config(&["delay=20 ms"]); LINKS]) else { continue };
        let ends: Vec<_> =
            (0..LINKS).map(|link| (udp(&lab, link, Side::A), udp(&lab, link, Side::B))).collect();
        for (number, (a, b)) in ends.iter().enumerate() {
            a.send_to(&number.to_le_bytes(), b.local_addr().unwrap()).unwrap();
        }
        for (number, (_, b)) in ends.iter().enumerate() {
            let mut buffer = [0; 8];
            b.recv(&mut buffer).unwrap();
            assert_eq!(usize::from_le_bytes(buffer), number);
        }
        for link in 0..LINKS {
            let traffic = lab.stats(link).unwrap().ab.traffic;
            assert_eq!((traffic.packets_in, traffic.packets_out), (1, 1), "link {link}");
        }
        drop(ends);
        let start = Instant::now();
        lab.close();
        println!("{}: {LINKS} links closed in {:?}", device.name(), start.elapsed());
        // One interface at a time takes 14 to 20 ms, 3 to 4 s in all.
        assert!(start.elapsed() < Duration::from_secs(2));
    }
}

#[test]
fn a_flooded_link_does_not_hold_up_the_others() {
    let flooded = config(&["rate=100 Mbit/s", "queue_packets=50"]);
    let calm = config(&["delay=10 ms"]);
    let Some(lab) = build(Device::Auto, &[flooded, calm.clone()]) else { return };
    let most = calm.ab.delay + TOLERANCE;
    let mut longest = Vec::new();
    while longest.len() < TRIES && longest.last().is_none_or(|longest| *longest >= most) {
        longest.push(longest_beside_a_flood(&lab));
    }
    let flood = lab.stats(0).unwrap().ab.traffic;
    println!("{} packets in, {:?}; longest {longest:?}", flood.packets_in, flood.dropped);
    assert!(flood.dropped.get("queue").is_some_and(|dropped| *dropped > 1000), "no flood");
    assert!(longest.last().is_some_and(|longest| *longest < most), "{longest:?}");
}

/// Floods link 0 for a while; the longest that a packet took over link 1 meanwhile.
fn longest_beside_a_flood(lab: &Lab) -> Duration {
    const FLOOD: Duration = Duration::from_millis(500);
    let (a, b) = (udp(lab, 1, Side::A), udp(lab, 1, Side::B));
    let flooder = udp(lab, 0, Side::A);
    let target = address(lab, 0, Side::B);
    std::thread::scope(|scope| {
        let start = Instant::now();
        scope.spawn(move || {
            while start.elapsed() < FLOOD {
                // The interface's queue may be full: that is the point.
                let _ = flooder.send_to(&[0; 1400], target);
            }
        });
        let mut longest = Duration::ZERO;
        while start.elapsed() < FLOOD {
            let sent = Instant::now();
            a.send_to(&[1], b.local_addr().unwrap()).unwrap();
            b.recv(&mut [0; 10]).unwrap();
            longest = longest.max(sent.elapsed());
        }
        longest
    })
}

#[test]
fn the_same_seed_loses_the_same_packets() {
    const PACKETS: u8 = 100;
    let lossy = config(&["loss=30 %", "delay=5 ms"]);
    let Some(lab) = build(Device::Auto, &[lossy.clone(), lossy]) else { return };
    let arrived = |link: usize| -> Vec<u8> {
        let (a, b) = (udp(&lab, link, Side::A), udp(&lab, link, Side::B));
        (0..PACKETS).for_each(|number| {
            a.send_to(&[number], b.local_addr().unwrap()).unwrap();
        });
        let deadline = Instant::now() + PATIENCE;
        let done = |report: longwire_lab::DirectionReport| {
            let lost = report.traffic.dropped.get("loss").copied().unwrap_or(0);
            report.traffic.packets_out + lost == u64::from(PACKETS)
        };
        while !done(lab.stats(link).unwrap().ab) {
            assert!(Instant::now() < deadline, "packets are neither lost nor there");
            std::thread::yield_now();
        }
        b.set_nonblocking(true).unwrap();
        let mut buffer = [0];
        std::iter::from_fn(|| b.recv(&mut buffer).ok().map(|_| buffer[0])).collect()
    };
    let (first, second) = (arrived(0), arrived(1));
    assert_eq!(first, second);
    assert!((50..=90).contains(&first.len()), "{} of {PACKETS}", first.len());
}

#[test]
fn programs_on_a_host_know_the_names_and_end_with_the_lab() {
    let Some(lab) = build(Device::Auto, &[LinkConfig::default()]) else { return };
    let host = lab.host(0, Side::A);
    let hosts = host.command("cat").unwrap().arg("/etc/hosts").output().unwrap();
    let hosts = String::from_utf8(hosts.stdout).unwrap();
    let b = lab.host(0, Side::B).address();
    assert!(hosts.contains(&format!("{} a\n{b} b\n", host.address())), "{hosts}");
    let servers = host.command("cat").unwrap().arg("/etc/resolv.conf").output().unwrap();
    assert!(servers.stdout.is_empty(), "no name server is asked");
    let outside = std::fs::read_to_string("/etc/hosts").unwrap();
    assert!(!outside.contains(&b.to_string()), "only the program sees it");

    let mut sleeper = host.command("sleep").unwrap().arg("1000").spawn().unwrap();
    // One that does not end willingly, with a child.
    let stubborn = "trap '' TERM; echo ready; sleep 1000";
    let mut stubborn =
        host.command("sh").unwrap().args(["-c", stubborn]).stdout(Stdio::piped()).spawn().unwrap();
    stubborn.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
    assert!(lab.close() >= 2);
    assert!(!sleeper.wait().unwrap().success());
    assert!(!stubborn.wait().unwrap().success());
}

#[test]
fn a_host_whose_interface_is_gone_holds_nothing_up() {
    let Some(lab) = build(Device::Auto, &vec![config(&["delay=10 ms"]); 2]) else { return };
    let broken = lab.host(0, Side::B);
    let removed = broken
        .command("ip")
        .unwrap()
        .args(["link", "delete", "dev", longwire_lab::INTERFACE])
        .status();
    if !removed.is_ok_and(|status| status.success()) {
        println!("skipped: no ip command");
        return;
    }
    let (a, mut buffer) = (udp(&lab, 0, Side::A), [0; 10]);
    a.send_to(&[1; 10], (broken.address(), PORT)).unwrap();
    // The other link goes on.
    let (other, far) = (udp(&lab, 1, Side::A), udp(&lab, 1, Side::B));
    other.send_to(&[2; 10], address(&lab, 1, Side::B)).unwrap();
    far.recv(&mut buffer).unwrap();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let traffic = lab.stats(0).unwrap().ab.traffic;
        if traffic.dropped.get("refused") == Some(&1) {
            assert_eq!((traffic.packets_in, traffic.packets_out), (1, 0));
            break;
        }
        assert!(Instant::now() < deadline, "{traffic:?}");
        std::thread::yield_now();
    }
}

#[test]
fn sockets_tell_what_is_in_force_at_both_ends() {
    let reno = TcpSettings { congestion_control: "reno".to_string(), initial_window: Some(3) };
    for device in [Device::Tap, Device::Veth] {
        let Some(lab) = build(device, &[]) else { continue };
        let spec = LinkSpec {
            tcp: [TcpSettings::default(), reno.clone()],
            record_packets: 1000,
            ..LinkSpec::new("mixed", config(&["delay=100 ms"]), 1)
        };
        let link = lab.add(&spec).unwrap();
        let (a, b) = (link.host(Side::A), link.host(Side::B));
        assert_eq!((a.congestion_control(), a.initial_window()), ("cubic", None));
        assert_eq!((b.congestion_control(), b.initial_window()), ("reno", Some(3)));
        let server = b.within(|| TcpListener::bind((b.address(), PORT))).unwrap().unwrap();
        let mut client = a.within(|| TcpStream::connect((b.address(), PORT))).unwrap().unwrap();
        let (mut served, from) = server.accept().unwrap();
        served.write_all(&[1; 20_000]).unwrap();
        client.read_exact(&mut [0; 20_000]).unwrap();
        let of = |host: &Host, state: &str| -> Vec<TcpSocket> {
            let all = host.tcp_sockets().unwrap();
            all.into_iter().filter(|socket| socket.state == state).collect()
        };
        let [on_a] = of(a, "established").try_into().unwrap();
        let [on_b] = of(b, "established").try_into().unwrap();
        assert_eq!((on_a.local_port, on_a.remote_port), (from.port(), PORT));
        assert_eq!((on_b.local_port, on_b.remote_port), (PORT, from.port()));
        assert_eq!(on_a.congestion_control.as_deref(), Some("cubic"));
        assert_eq!(on_b.congestion_control.as_deref(), Some("reno"));
        assert!(on_b.segments_out >= 14, "{on_b:?}");
        assert_eq!(of(b, "listen")[0].local_port, PORT);
        assert_eq!(of(a, "listen"), []);
        let first_flight = first_flight(&link.record().unwrap(), Duration::from_millis(100));
        assert_eq!(first_flight, 3, "segments before the first acknowledgement");
    }
}

/// Data segments that a client's connection got within `time` after the first of them left.
fn first_flight(record: &PacketRecord, time: Duration) -> usize {
    let data = |event: &&PacketEvent| {
        event.toward == Toward::Client && event.tcp.is_some_and(|header| header.payload > 0)
    };
    let data: Vec<&PacketEvent> = record.packets.iter().filter(data).collect();
    data.iter().filter(|event| event.offered < data[0].offered + time).count()
}

#[test]
fn a_congestion_control_that_the_kernel_lacks_is_refused_in_one_line() {
    let Some(lab) = build(Device::Auto, &[]) else { return };
    let lacking = TcpSettings { congestion_control: "nosuch".to_string(), initial_window: None };
    let spec =
        LinkSpec { tcp: [TcpSettings::default(), lacking], ..LinkSpec::new("x", config(&[]), 1) };
    let message = lab.add(&spec).err().unwrap().to_string();
    assert!(message.contains("TCP nosuch") && message.contains("modprobe"), "{message}");
    assert!(!message.contains('\n'), "{message}");
}

/// One UDP packet there and back.
fn echo(link: &Link) {
    let bind = |side: Side| {
        let host = link.host(side);
        let socket = host.within(|| UdpSocket::bind((host.address(), PORT))).unwrap().unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    };
    let (a, b) = (bind(Side::A), bind(Side::B));
    let mut buffer = [0; 8];
    a.send_to(&[7; 8], b.local_addr().unwrap()).unwrap();
    let (_, from) = b.recv_from(&mut buffer).unwrap();
    b.send_to(&buffer, from).unwrap();
    a.recv(&mut buffer).unwrap();
    assert_eq!(buffer, [7; 8]);
}

#[test]
fn links_that_come_and_go_leave_nothing_and_carry_their_own() {
    const THREADS: usize = 6;
    const ROUNDS: usize = 20;
    for device in [Device::Tap, Device::Veth] {
        let Some(lab) = build(device, &[config(&["delay=1 ms"])]) else { continue };
        let rounds = |thread: usize, lab: &Lab| {
            for round in 0..ROUNDS {
                let spec = LinkSpec {
                    record_packets: 1,
                    ..LinkSpec::new(format!("t{thread}-{round}"), config(&["delay=2 ms"]), 1)
                };
                let link = lab.add(&spec).unwrap();
                echo(&link);
                let report = link.stats().unwrap();
                assert_eq!(report.name, spec.name);
                let packets = [&report.ab, &report.ba].map(|one| one.traffic.packets_out);
                assert_eq!(packets, [1, 1], "{report:?}");
                let record = link.record().unwrap();
                assert_eq!((record.packets.len(), record.unrecorded), (1, 1));
                let event = &record.packets[0];
                assert_eq!((event.toward, event.bytes), (Toward::Service, 36));
                assert_eq!(event.due.unwrap() - event.offered, Duration::from_millis(2));
                assert!(event.delivered >= event.due);
            }
        };
        let start = Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (lab, rounds) = (&lab, &rounds);
                scope.spawn(move || rounds(thread, lab));
            }
        });
        println!("{}: {} links in {:?}", device.name(), THREADS * ROUNDS, start.elapsed());
        // The one that was there all the time is as it was.
        let (a, b) = (udp(&lab, 0, Side::A), udp(&lab, 0, Side::B));
        a.send_to(&[1], b.local_addr().unwrap()).unwrap();
        b.recv(&mut [0; 2]).unwrap();
        assert_eq!(lab.stats(0).unwrap().ab.traffic.packets_in, 1);
    }
}

#[test]
fn a_renewed_link_is_as_a_new_one() {
    const PACKETS: u8 = 100;
    let Some(lab) = build(Device::Auto, &[]) else { return };
    let lossy = config(&["ab.loss=30 %", "delay=5 ms"]);
    let spec = |seed| LinkSpec { record_packets: 1000, ..LinkSpec::new("r", lossy.clone(), seed) };
    // Which packets were lost, by their places.
    let lost = |link: &Link| -> Vec<bool> {
        let [a, b] = Side::BOTH.map(|side| link.host(side));
        let socket = a.within(|| UdpSocket::bind((a.address(), 0))).unwrap().unwrap();
        for number in 0..PACKETS {
            socket.send_to(&[number], (b.address(), PORT)).unwrap();
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            // The host answers that nobody listens: other packets than these.
            let record = link.record().unwrap();
            let sent = record.packets.iter().filter(|event| event.toward == Toward::Service);
            let known: Vec<&PacketEvent> =
                sent.filter(|event| event.delivered.is_some() || event.dropped.is_some()).collect();
            if known.len() == usize::from(PACKETS) {
                let stats = link.stats().unwrap().ab.traffic;
                assert_eq!(stats.packets_in, u64::from(PACKETS));
                return known.iter().map(|event| event.dropped.is_some()).collect();
            }
            assert!(Instant::now() < deadline, "{} packets", known.len());
            std::thread::yield_now();
        }
    };
    let first = lab.add(&spec(1)).unwrap();
    let of_seed_1 = lost(&first);
    first.renew(2).unwrap();
    let of_seed_2 = lost(&first);
    assert_ne!(of_seed_1, of_seed_2);
    assert_eq!(first.stats().unwrap().seed, 2);
    assert_eq!(lost(&lab.add(&spec(2)).unwrap()), of_seed_2);
    first.renew(1).unwrap();
    assert_eq!(lost(&first), of_seed_1);
}
