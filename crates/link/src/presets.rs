//! Links by name, each with where its figures come from.

use crate::config::NETEM_QUEUE_PACKETS;
use crate::nearest::nearest;
use crate::queue::{MAX_QUEUE_BYTES, MAX_QUEUE_PACKETS};
use crate::{ChannelConfig, Error, LinkConfig};
use std::time::Duration;

/// A link by name.
#[derive(Debug)]
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// Where its figures come from, for help texts.
    pub source: &'static str,
    /// What it is like. Host a is the client's side: its uplink is a to b.
    pub config: LinkConfig,
}

/// All presets, in the order of help texts.
#[must_use]
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

impl LinkConfig {
    /// The link of a preset.
    ///
    /// # Errors
    /// [`Error::Unknown`] with the nearest known name.
    pub fn preset(name: &str) -> Result<Self, Error> {
        let found = presets().iter().find(|preset| preset.name == name);
        found.map(|preset| preset.config.clone()).ok_or_else(|| {
            let known: Vec<&'static str> = presets().iter().map(|preset| preset.name).collect();
            Error::Unknown {
                kind: "preset",
                name: name.to_owned(),
                nearest: nearest(name, &known),
                known,
            }
        })
    }
}

const IST_118: &str = "IST-118 (Johnsen et al.), table of networks; queue: netem's default";
const IST_150: &str = "IST-150 (Jansen et al.), section IV, federated setups";
const NAM: &str = "NAM (Ghandeharizadeh et al.), network classes: midpoints, half the round trip";
const V90: &str = "ITU-T V.90: 33.6 kbit/s up, 56 kbit/s down; a delay of 75 ms is assumed";
const RFC_3481: &str =
    "RFC 3481 §2.1, §2.2: 2.5G at its fastest; a round trip of 700 ms is assumed";
const RFC_2488: &str =
    "RFC 2488 §2: one geostationary hop at the edge of view; a rate of 2 Mbit/s is assumed";
const EDGE: &str = "3GPP TS 43.064: MCS-9, 59.2 kbit/s a slot; 3GPP TS 45.002: class 10, one slot \
                    up and four down; a round trip of 300 ms is assumed";
const HF: &str = "MIL-STD-188-110 appendix C (STANAG 4539): 9600 bit/s, the short interleaver's \
                  1.08 s at both ends; full duplex without loss is assumed";
const LEO: &str = "3GPP TR 38.821: 600 km, transparent payload, round trip up to 25.77 ms; \
                   10 Mbit/s up, 50 Mbit/s down and no handover are assumed";
const ADSL: &str = "ITU-T G.992.1: 640 kbit/s up, 6.144 Mbit/s down, overhead of cells left out; \
                    20 ms of interleaving are assumed";

const KBPS: u64 = 1_000;
const MBPS: u64 = 1_000_000;

/// One line per link: name, rate, one-way delay in microseconds, loss, source.
#[rustfmt::skip]
static PRESETS: [Preset; 20] = [
    netem("satcom",            250 * KBPS, 550_000, 0.0,  IST_118),
    netem("los",                 2 * MBPS,   5_000, 0.0,  IST_118),
    netem("wifi1",               2 * MBPS, 100_000, 0.01, IST_118),
    netem("wifi2",               2 * MBPS, 100_000, 0.20, IST_118),
    netem("wifi3",               2 * MBPS, 100_000, 0.05, IST_118),
    netem("cnr",                    9_600, 100_000, 0.01, IST_118),
    sized("tactical1",              9_800, 100_000, 0.01, IST_150),
    sized("tactical2",              9_800, 100_000, 0.10, IST_150),
    sized("nam-sc",             93 * MBPS,   3_500, 0.0,  NAM),
    sized("nam-t1",           1100 * KBPS,  45_000, 0.0,  NAM),
    sized("nam-us",          91_500 * KBPS, 45_000, 0.0,  NAM),
    sized("nam-transatlantic", 93_500 * KBPS, 89_000, 0.0, NAM),
    sized("nam-lan",           400 * MBPS,     150, 0.0,  NAM),
    asymmetric("modem56",    33_600, 56 * KBPS,  75_000, V90),
    asymmetric("gprs",    20 * KBPS, 40 * KBPS, 350_000, RFC_3481),
    sized("geo",                 2 * MBPS, 279_000, 0.0,  RFC_2488),
    asymmetric("edge",   59_200, 236_800, 150_000, EDGE),
    sized("hf-9600",                9_600, 2_160_000, 0.0, HF),
    asymmetric("leo", 10 * MBPS, 50 * MBPS, 12_885, LEO),
    asymmetric("adsl", 640 * KBPS, 6_144 * KBPS, 20_000, ADSL),
];

/// Symmetric, with netem's default queue in packets.
const fn netem(
    name: &'static str,
    rate_bps: u64,
    delay_us: u64,
    loss: f64,
    source: &'static str,
) -> Preset {
    let queue = (NETEM_QUEUE_PACKETS, MAX_QUEUE_BYTES);
    let ab = channel(rate_bps, delay_us, loss, queue);
    let ba = channel(rate_bps, delay_us, loss, queue);
    Preset { name, source, config: LinkConfig { ab, ba } }
}

/// Symmetric, with a queue in bytes that fits the link.
const fn sized(
    name: &'static str,
    rate_bps: u64,
    delay_us: u64,
    loss: f64,
    source: &'static str,
) -> Preset {
    let queue = fitting_queue(rate_bps, delay_us);
    let ab = channel(rate_bps, delay_us, loss, queue);
    let ba = channel(rate_bps, delay_us, loss, queue);
    Preset { name, source, config: LinkConfig { ab, ba } }
}

/// Up from a to b and down from b to a, without loss, with queues that fit the link.
const fn asymmetric(
    name: &'static str,
    up_bps: u64,
    down_bps: u64,
    delay_us: u64,
    source: &'static str,
) -> Preset {
    let ab = channel(up_bps, delay_us, 0.0, fitting_queue(up_bps, delay_us));
    let ba = channel(down_bps, delay_us, 0.0, fitting_queue(down_bps, delay_us));
    Preset { name, source, config: LinkConfig { ab, ba } }
}

const fn channel(rate_bps: u64, delay_us: u64, loss: f64, queue: (u32, u64)) -> ChannelConfig {
    let mut config = ChannelConfig::PLAIN;
    config.rate_bps = Some(rate_bps);
    config.delay = Duration::from_micros(delay_us);
    config.loss = loss;
    (config.queue_packets, config.queue_bytes) = queue;
    config
}

/// The larger of 15 KB and what the link sends in a round trip, which counts as 100 ms at least.
const fn fitting_queue(rate_bps: u64, delay_us: u64) -> (u32, u64) {
    let round_trip_us = if 2 * delay_us > 100_000 { 2 * delay_us } else { 100_000 };
    let product_bytes = rate_bps * round_trip_us / 8_000_000;
    (MAX_QUEUE_PACKETS, if product_bytes > 15_000 { product_bytes } else { 15_000 })
}
