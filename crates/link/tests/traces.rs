//! Recorded traces of other people, where they are at hand.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests may fail them")]

mod common;

use common::{Outcome, Probe};
use longwire_link::{
    Channel, ChannelConfig, Direction, Input, LinkConfig, MAX_TRACE_BYTES, OPPORTUNITY_BYTES, Trace,
};
use std::path::PathBuf;
use std::time::Duration;

fn folder() -> PathBuf {
    let root = std::env::var_os("LONGWIRE_DATA").map(PathBuf::from);
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    root.unwrap_or_else(default).join("radio_traces/mahimahi")
}

/// Name and text of every trace; none where the data is absent.
fn recordings() -> Vec<(String, String)> {
    let Ok(entries) = std::fs::read_dir(folder()) else {
        println!("skipped 1 test: no folder {}", folder().display());
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ext| ext == "up" || ext == "down"));
    paths.sort();
    let read = |path: PathBuf| {
        assert!(std::fs::metadata(&path).unwrap().len() <= MAX_TRACE_BYTES as u64);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    paths.into_iter().map(read).collect()
}

/// Keeps the queue filled with packets of `len_bytes` up to `until`; bytes delivered by then.
fn saturate(trace: &Trace, len_bytes: usize, until: Duration) -> u64 {
    let config = ChannelConfig { trace: Some(trace.clone()), ..ChannelConfig::default() };
    let mut channel = Channel::new(config, 1, Direction::Ba);
    let (mut outcome, mut now, mut id) = (Outcome::default(), Duration::ZERO, 0);
    loop {
        while channel.stats().queued.packets < 500 {
            channel.handle_input(now, Input::Packet(Probe::new(id, len_bytes)));
            id += 1;
        }
        match outcome.drain(&mut channel).filter(|at| *at <= until) {
            Some(at) => now = at,
            None => break,
        }
        channel.handle_input(now, Input::Wake);
    }
    assert!(outcome.dropped.is_empty());
    channel.stats().delivered.bytes
}

#[test]
fn recordings_deliver_at_their_mean_rate() {
    let recordings = recordings();
    for (name, text) in &recordings {
        let trace = Trace::parse(name, text).unwrap();
        let lines = text.lines().count() as u64;
        let at_once = text.lines().take_while(|line| *line == "0").count() as u64;
        for len_bytes in [OPPORTUNITY_BYTES, 1_000, 4_000] {
            // Twice through: what the first end cuts, the second start carries on. The last
            // instant is also the first of the third time.
            let delivered = saturate(&trace, len_bytes, 2 * trace.length());
            let offered = (2 * lines + at_once) * OPPORTUNITY_BYTES as u64;
            assert_eq!(delivered, offered - offered % len_bytes as u64, "{name} {len_bytes}");
        }
        let rate_bps = lines as f64 * 12_000.0 / trace.length().as_secs_f64();
        println!("{name}: {lines} opportunities in {:?}, {rate_bps:.0} bit/s", trace.length());
        assert!((trace.mean_rate_bps() as f64 - rate_bps).abs() <= 1.0);
    }
    println!("{} recordings tried", recordings.len());
}

#[test]
fn each_opportunity_delivers_at_its_own_time() {
    for (name, text) in recordings() {
        let mut link = LinkConfig::default();
        link.set_reading("trace", &name, |_| Ok(text.clone())).unwrap();
        link.set("delay", "20 ms").unwrap();
        let mut channel = Channel::new(link.ab, 1, Direction::Ab);
        let mut outcome = Outcome::default();
        for id in 0..900 {
            channel.handle_input(Duration::ZERO, Input::Packet(Probe::new(id, OPPORTUNITY_BYTES)));
        }
        outcome.run_until(&mut channel, Duration::MAX);
        let due_ms: Vec<u128> =
            outcome.delivered.iter().map(|(due, _)| due.as_millis() - 20).collect();
        let recorded: Vec<u128> =
            text.lines().take(900).map(|line| line.parse().unwrap()).collect();
        assert_eq!(due_ms, recorded, "{name}");
    }
}

#[test]
fn a_single_line_is_a_constant_rate() {
    // The format's own example: "1" is a packet each millisecond, 12 Mbit/s.
    let trace = Trace::parse("constant", "1\n").unwrap();
    assert_eq!(trace.mean_rate_bps(), 12_000_000);
    assert_eq!(saturate(&trace, 1_500, Duration::from_secs(1)), 1_500_000);
}
