//! Rates in virtual time, and links of the papers from end to end.

mod common;

use common::{Outcome, Probe, offer};
use longwire_link::{Channel, ChannelConfig, Direction, Input, LinkConfig, presets};
use std::time::Duration;

/// Sizes of one mix of traffic, in turn.
const SIZES: [usize; 5] = [40, 1500, 577, 1, 1280];

#[test]
fn the_rate_holds_within_a_hundredth_of_a_per_cent() {
    for rate_bps in [9_600, 250_000, 2_000_000, 100_000_000] {
        let config = ChannelConfig { rate_bps: Some(rate_bps), ..ChannelConfig::default() };
        let mut channel = Channel::new(config, 1, Direction::Ab);
        let mut outcome = Outcome::default();
        // 20 s of traffic, offered a tenth faster than it leaves, paced inside the queue, after a
        // first round at once so that the transmitter never runs dry.
        let (mut now, mut offered, mut id) = (0.0, 0, 0);
        while now < 20.0 || id < 1_000 {
            let at = Duration::from_secs_f64(now);
            outcome.run_until(&mut channel, at);
            if channel.stats().queued.packets < 900 {
                let len_bytes = SIZES[id % SIZES.len()];
                channel.handle_input(at, Input::Packet(Probe::new(id, len_bytes)));
                offered += len_bytes;
                id += 1;
            }
            if id >= SIZES.len() {
                now += 8.0 * 679.6 / rate_bps as f64 / 1.1;
            }
        }
        outcome.run_until(&mut channel, Duration::MAX);
        assert!(outcome.dropped.is_empty());
        let (first, last) = (&outcome.delivered[0], &outcome.delivered[id - 1]);
        let bits = 8 * (offered - first.1.len_bytes);
        let measured_bps = bits as f64 / (last.0 - first.0).as_secs_f64();
        let error = measured_bps / rate_bps as f64 - 1.0;
        println!("{rate_bps} bit/s: {measured_bps:.6} bit/s over {:?}", last.0 - first.0);
        assert!(error.abs() < 1e-4, "{rate_bps} bit/s: {measured_bps}");
        // No drift at all: the end is the exact quotient, rounded down to a nanosecond.
        let exact_ns = (offered as u128) * 8_000_000_000 / u128::from(rate_bps);
        assert_eq!(last.0.as_nanos(), exact_ns);
    }
}

#[test]
fn the_rate_counts_lost_packets() {
    let config = ChannelConfig { rate_bps: Some(250_000), loss: 0.2, ..ChannelConfig::default() };
    let lost = offer(config, 3, 1_000, 1_250, Duration::ZERO);
    assert_eq!(lost.delivered.len() + lost.dropped.len(), 1_000);
    let last = lost.delivered.last().unwrap();
    // 1250 bytes take 40 ms each, those before it that were lost too.
    assert_eq!(last.0, Duration::from_millis(40) * (u32::try_from(last.1.id).unwrap() + 1));
    assert!(lost.dropped.len() > 150);
}

/// What the papers and standards say: rate up and down in bit/s, one-way delay in microseconds,
/// loss, and the queue in packets or bytes.
type Row = (&'static str, u64, u64, u64, f64, Queue);

#[derive(Clone, Copy)]
enum Queue {
    Packets(u32),
    Bytes(u64),
    /// From a to b, from b to a.
    Each(u64, u64),
}

#[rustfmt::skip]
const ROWS: [Row; 20] = [
    ("satcom",               250_000,     250_000, 550_000, 0.0,  Queue::Packets(1_000)),
    ("los",                2_000_000,   2_000_000,   5_000, 0.0,  Queue::Packets(1_000)),
    ("wifi1",              2_000_000,   2_000_000, 100_000, 0.01, Queue::Packets(1_000)),
    ("wifi2",              2_000_000,   2_000_000, 100_000, 0.20, Queue::Packets(1_000)),
    ("wifi3",              2_000_000,   2_000_000, 100_000, 0.05, Queue::Packets(1_000)),
    ("cnr",                    9_600,       9_600, 100_000, 0.01, Queue::Packets(1_000)),
    ("tactical1",              9_800,       9_800, 100_000, 0.01, Queue::Bytes(15_000)),
    ("tactical2",              9_800,       9_800, 100_000, 0.10, Queue::Bytes(15_000)),
    ("nam-sc",            93_000_000,  93_000_000,   3_500, 0.0,  Queue::Bytes(1_162_500)),
    ("nam-t1",             1_100_000,   1_100_000,  45_000, 0.0,  Queue::Bytes(15_000)),
    ("nam-us",            91_500_000,  91_500_000,  45_000, 0.0,  Queue::Bytes(1_143_750)),
    ("nam-transatlantic", 93_500_000,  93_500_000,  89_000, 0.0,  Queue::Bytes(2_080_375)),
    ("nam-lan",          400_000_000, 400_000_000,     150, 0.0,  Queue::Bytes(5_000_000)),
    ("modem56",               33_600,      56_000,  75_000, 0.0,  Queue::Bytes(15_000)),
    ("gprs",                  20_000,      40_000, 350_000, 0.0,  Queue::Bytes(15_000)),
    ("geo",                2_000_000,   2_000_000, 279_000, 0.0,  Queue::Bytes(139_500)),
    ("edge",                  59_200,     236_800, 150_000, 0.0,  Queue::Bytes(15_000)),
    ("hf-9600",                9_600,       9_600, 2_160_000, 0.0, Queue::Bytes(15_000)),
    ("leo",               10_000_000,  50_000_000,  12_885, 0.0,  Queue::Each(125_000, 625_000)),
    ("adsl",                 640_000,   6_144_000,  20_000, 0.0,  Queue::Each(15_000, 76_800)),
];

#[test]
fn presets_are_as_their_sources_say() {
    assert_eq!(presets().len(), ROWS.len());
    for (preset, (name, up_bps, down_bps, delay_us, loss, queue)) in presets().iter().zip(ROWS) {
        assert_eq!(preset.name, name);
        assert!(!preset.source.is_empty());
        let (queue_packets, queue_bytes) = match queue {
            Queue::Packets(packets) => (packets, [longwire_link::MAX_QUEUE_BYTES; 2]),
            Queue::Bytes(bytes) => (longwire_link::MAX_QUEUE_PACKETS, [bytes; 2]),
            Queue::Each(up, down) => (longwire_link::MAX_QUEUE_PACKETS, [up, down]),
        };
        let expected = |rate_bps, queue_bytes| ChannelConfig {
            rate_bps: Some(rate_bps),
            delay: Duration::from_micros(delay_us),
            loss,
            queue_packets,
            queue_bytes,
            ..ChannelConfig::default()
        };
        let link = LinkConfig {
            ab: expected(up_bps, queue_bytes[0]),
            ba: expected(down_bps, queue_bytes[1]),
        };
        assert_eq!(preset.config, link, "{name}");
        assert_eq!(LinkConfig::preset(name), Ok(link));
    }
}

#[test]
fn a_round_trip_costs_each_preset_its_delay_twice() {
    for preset in presets() {
        let mut outcome = Outcome::default();
        let (mut now, mut airtime) = (Duration::ZERO, Duration::ZERO);
        for direction in Direction::BOTH {
            let config = ChannelConfig { loss: 0.0, ..preset.config.direction(direction).clone() };
            airtime += Duration::from_secs_f64(8.0 * 100.0 / config.rate_bps.unwrap() as f64);
            let mut channel = Channel::new(config, 1, direction);
            channel.handle_input(now, Input::Packet(Probe::new(0, 100)));
            outcome.run_until(&mut channel, Duration::MAX);
            now = outcome.delivered.last().unwrap().0;
        }
        let travel = preset.config.ab.delay + preset.config.ba.delay;
        let difference = now.abs_diff(travel + airtime);
        assert!(difference < Duration::from_nanos(4), "{}: {now:?}", preset.name);
    }
}
