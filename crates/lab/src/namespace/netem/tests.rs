use super::*;
use crate::namespace::message::{answers, attribute, u32_at};
use crate::namespace::{Plan, TcpSettings, build_joined};
use link::LinkConfig;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

fn channel(settings: &[&str]) -> ChannelConfig {
    let mut link = LinkConfig::default();
    link.apply(settings, |_| Ok("1\n2\n".to_string())).unwrap();
    link.ab
}

fn words(values: &[u32]) -> Vec<u8> {
    bytes(values)
}

#[test]
fn a_request_is_laid_out_byte_by_byte() {
    let config = channel(&["delay=100 ms", "rate=2 Mbit/s", "loss=50 %", "loss_first=true"]);
    let message = request(3, &Netem::new(&config, 7).unwrap()).finish(9);
    let header = |length: u16, kind: u16| [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    let expected = [
        // struct nlmsghdr: length, RTM_NEWQDISC with REQUEST | ACK | REPLACE | CREATE, 9, 0.
        132_u32.to_ne_bytes().to_vec(),
        header(36, 0x1 | 0x4 | 0x100 | 0x400),
        words(&[9, 0]),
        // struct tcmsg: AF_UNSPEC, index, handle, parent TC_H_ROOT, info.
        words(&[0, 3, 0, u32::MAX, 0]),
        // TCA_KIND, padded to four bytes.
        header(10, 1),
        b"netem\0\0\0".to_vec(),
        // TCA_OPTIONS: struct tc_netem_qopt, times in 64 ns.
        header(84, 2),
        words(&[1_562_500, 1000, 0x8000_0000, 0, 0, 0]),
        // TCA_NETEM_LATENCY64, JITTER64, PRNG_SEED.
        header(12, 10),
        100_000_000_u64.to_ne_bytes().to_vec(),
        header(12, 11),
        0_u64.to_ne_bytes().to_vec(),
        header(12, 14),
        7_u64.to_ne_bytes().to_vec(),
        // TCA_NETEM_RATE: byte/s, less the Ethernet header, no cells.
        header(20, 6),
        words(&[250_000, (-14_i32).cast_unsigned(), 0, 0]),
    ]
    .concat();
    assert_eq!(message.len(), 16 + 20 + 12 + 84);
    assert_eq!(message, expected);
}

fn found(config: &ChannelConfig, kind: u16) -> Option<Vec<u8>> {
    let message = request(3, &Netem::new(config, 7).unwrap()).finish(9);
    let answer = answers(&message).next().unwrap();
    let options = attribute(answer.body, 20, libc::TCA_OPTIONS).unwrap();
    attribute(options, FIXED_BYTES, kind).map(<[u8]>::to_vec)
}

#[test]
fn every_setting_has_its_place() {
    let config = channel(&[
        "delay=100 ms",
        "duplicate=100 %",
        "corrupt=25 %",
        "reorder=50 %",
        "queue_packets=12",
        "burst_loss=p=1 %, r=30 %, bad=100 %, good=0 %",
        "loss_first=true",
    ]);
    let netem = Netem::new(&config, 7).unwrap();
    assert_eq!(netem.fixed.to_vec(), words(&[1_562_500, 12, 0, 1, u32::MAX, 0]));
    assert_eq!(found(&config, CORRUPT), Some(words(&[0x4000_0000, 0])));
    assert_eq!(found(&config, REORDER), Some(words(&[0x8000_0000, 0])));
    assert_eq!(found(&config, RATE_KIND), None);
    let loss = found(&config, LOSS).unwrap();
    let model = attribute(&loss, 0, LOSS_GILBERT_ELLIOTT).unwrap();
    assert_eq!(model, words(&[42_949_673, 1_288_490_189, 0, 0]));
}

#[test]
fn a_rate_beyond_32_bits_of_bytes_is_sent_twice() {
    let config = channel(&["rate=100 Gbit/s"]);
    assert_eq!(found(&config, RATE_KIND).and_then(|rate| u32_at(&rate, 0)), Some(u32::MAX));
    assert_eq!(found(&config, RATE64_KIND), Some(12_500_000_000_u64.to_ne_bytes().to_vec()));
    assert_eq!(found(&channel(&["rate=9.6 kbit/s"]), RATE64_KIND), None);
}

#[test]
fn tables_have_the_shape_that_the_link_has() {
    for shape in ["normal", "pareto", "paretonormal"] {
        let distribution = format!("distribution={shape}");
        let config = channel(&["delay=100 ms", "jitter=10 ms", &distribution]);
        let table: Vec<f64> = found(&config, DELAY_DIST)
            .unwrap()
            .chunks_exact(2)
            .map(|entry| f64::from(i16::from_ne_bytes([entry[0], entry[1]])) / 8192.0 * 2.0)
            .collect();
        assert_eq!(table.len(), 4096);
        assert!(table.is_sorted() && table[4095] < 8.0 - 1.0, "not cut at the table's edge");
        let mean = table.iter().sum::<f64>() / 4096.0;
        let deviation = (table.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / 4096.0).sqrt();
        assert!(mean.abs() < 1e-3 && (deviation - 1.0).abs() < 2e-3, "{shape} {mean} {deviation}");
        // Twice the jitter, for half the offsets.
        assert_eq!(found(&config, JITTER64), Some(20_000_000_u64.to_ne_bytes().to_vec()));
    }
    let even = channel(&["delay=100 ms", "jitter=10 ms"]);
    assert_eq!(found(&even, DELAY_DIST), None);
    assert_eq!(found(&even, JITTER64), Some(10_000_000_u64.to_ne_bytes().to_vec()));
}

#[test]
fn what_netem_cannot_do_is_refused_in_one_line() {
    for (settings, expected) in [
        (&["trace=x"][..], "trace = x"),
        (&["outages=1 s..2 s"], "outages = 1 s..2 s"),
        (&["delay=1 s", "jitter=1 ms", "jitter_correlation=25 %"], "jitter_correlation = 25 %"),
        (&["loss=1 %", "loss_correlation=5 %"], "loss_correlation = 5 %"),
        (&["loss=1 %", "burst_loss=p=1 %, r=9 %", "loss_first=true"], "one kind of loss"),
        (&["loss=1 %"], "set loss_first to true"),
        (&["queue_bytes=15 KB"], "queue_bytes = 15 KB: its queue counts packets"),
        (&["queue_packets=0"], "give 1 or more"),
        (&["rate=9.601 kbit/s"], "multiple of 8 bit/s"),
        (&["delay=9 s", "jitter=2.1 s"], "at most 2 s"),
    ] {
        let message = Netem::new(&channel(settings), 1).unwrap_err().to_string();
        assert!(message.contains(expected) && !message.contains('\n'), "{message}");
        assert!(message.contains("--emulator ferry"), "{message}");
    }
}

#[test]
fn hosts_joined_by_the_kernel_reach_each_other_and_netem_delays_them() {
    let mut config = LinkConfig::default();
    config.set("delay", "50 ms").unwrap();
    let tcp = [TcpSettings::default(), TcpSettings::default()];
    let plan = Plan { names: None, config: &config, tcp: &tcp, lab_id: "" };
    let [a, b] = match build_joined(&plan) {
        Ok(hosts) => hosts,
        Err(error) => return println!("skipped: {error}"),
    };
    let connect = || -> Duration {
        let listener = b.within(|| TcpListener::bind((b.address(), 0)).unwrap()).unwrap();
        let target = listener.local_addr().unwrap();
        let start = Instant::now();
        a.within(|| TcpStream::connect(target).unwrap()).unwrap();
        start.elapsed()
    };
    connect();
    if let Err(error) = try_netem().unwrap() {
        return println!("joined; skipped for lack of netem: {error}");
    }
    for (host, channel) in [(&a, &config.ab), (&b, &config.ba)] {
        host.emulate(&Netem::new(channel, 1).unwrap()).unwrap();
    }
    assert!(connect() >= Duration::from_millis(100));
    // A change of what is there already.
    a.emulate(&Netem::new(&ChannelConfig::default(), 1).unwrap()).unwrap();
    let took = connect();
    assert!(took >= Duration::from_millis(50), "{took:?}");
}
