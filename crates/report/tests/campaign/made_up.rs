//! A campaign of the full size with plausible figures that nobody measured.

use std::time::Duration;

use record::campaign::{
    Advice, Campaign, Cell, Figure, Flight, Measured, Network, Reference, Run, Setting, Share, Way,
};
use record::machine::Machine;
use record::packets::{PacketEvent, TcpHeader, Toward};
use record::result::{Exchange, Lateness, Traffic};

pub(crate) const SERVICES: [(&str, u64); 3] =
    [("soap", 43_000), ("rest-xml", 21_000), ("rest-json", 9_000)];
const EXCHANGES: u32 = 22;
const ACK: u8 = 16;
const SYN: u8 = 2;

/// Name, bit/s, delay, loss.
const NETWORKS: [(&str, u64, f64, f64); 6] = [
    ("satcom", 250_000, 0.55, 0.0),
    ("los", 2_000_000, 0.005, 0.0),
    ("wifi1", 2_000_000, 0.1, 0.01),
    ("wifi2", 2_000_000, 0.1, 0.05),
    ("cnr", 9_600, 0.1, 0.01),
    ("wifi3", 2_000_000, 0.1, 0.2),
];

/// Setting, values with the effect of each on the time, group.
type Varied = (&'static str, &'static [(&'static str, f64)], &'static str);

const SETTINGS: [Varied; 12] = [
    ("keep_alive_timeout", &[("90s", 1.0), ("30s", 1.0), ("15s", 1.01)], "timeouts"),
    ("idle_timeout", &[("30s", 1.0), ("60s", 1.0)], "timeouts"),
    ("read_timeout", &[("30s", 1.0), ("60s", 1.0)], "timeouts"),
    ("write_timeout", &[("30s", 1.0), ("60s", 1.0)], "timeouts"),
    ("poll_timeout", &[("30s", 1.0), ("60s", 1.0)], "timeouts"),
    ("send_buffer", &[("8192B", 1.08), ("16384B", 1.02)], "buffers"),
    ("header_buffer", &[("8192B", 1.0), ("16384B", 1.0)], "buffers"),
    ("tcp_buffer", &[("256B", 3.1), ("1024B", 1.9), ("8192B", 1.0), ("16384B", 1.0)], "buffers"),
    ("chunking", &[("on", 0.93), ("close", 1.4)], "forms"),
    ("compression", &[("on", 1.0), ("forced", 0.35)], "forms"),
    ("nodelay", &[("off", 1.05)], "forms"),
    ("congestion", &[("reno", 1.01), ("bbr", 0.9)], "kernel"),
];

/// Chance of our own: a counter and a mixer.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The whole, with so many runs of each cell.
pub(crate) fn campaign(runs: u32) -> Campaign {
    let networks: Vec<Network> = NETWORKS.iter().map(network).collect();
    let mut cells = Vec::new();
    for network in &networks {
        for (service, bytes) in SERVICES {
            let extra = [
                (Way::Gzip, "tracks", 0.45),
                (Way::Longwire, "tracks", 0.2),
                (Way::Direct, "glassfish", 1.15),
            ];
            let mut put = |way, server: &str, settings: &[(&str, &str)], effect, group: &str| {
                cells.push(cell(
                    network,
                    (service, bytes),
                    (way, server),
                    settings,
                    effect,
                    group,
                    runs,
                ));
            };
            put(Way::Direct, "tracks", &[], 1.0, "default");
            for (way, server, effect) in extra {
                put(way, server, &[], effect, "ways");
            }
            for (name, values, group) in SETTINGS {
                for (value, effect) in values {
                    put(Way::Direct, "tracks", &[(name, value)], *effect, group);
                }
            }
            let combinations: [&[(&str, &str)]; 4] = [
                &[("chunking", "on"), ("compression", "on")],
                &[("chunking", "on"), ("nodelay", "off")],
                &[("compression", "on"), ("nodelay", "off")],
                &[("chunking", "on"), ("compression", "forced"), ("nodelay", "off")],
            ];
            for (settings, effect) in combinations.into_iter().zip([0.94, 0.97, 1.04, 0.36]) {
                put(Way::Direct, "tracks", settings, effect, "forms");
            }
        }
    }
    Campaign {
        setting: setting(),
        references: references(),
        advice: advice(),
        figures: figures(),
        networks,
        cells,
    }
}

fn network((name, rate_bps, delay_s, loss): &(&str, u64, f64, f64)) -> Network {
    Network {
        name: (*name).to_string(),
        source: "made up".to_string(),
        settings: vec![
            ("rate".to_string(), format!("{rate_bps}")),
            ("queue_packets".to_string(), "1000".to_string()),
        ],
        rate_bps: Some(*rate_bps),
        delay_s: *delay_s,
        loss: *loss,
        changes: Vec::new(),
    }
}

#[allow(clippy::too_many_arguments)]
fn cell(
    network: &Network,
    (service, bytes): (&str, u64),
    (way, server): (Way, &str),
    settings: &[(&str, &str)],
    effect: f64,
    group: &str,
    runs: u32,
) -> Cell {
    let own = |(name, value): &(&str, &str)| ((*name).to_string(), (*value).to_string());
    let mut cell = Cell {
        name: String::new(),
        network: network.name.clone(),
        server: server.to_string(),
        service: service.to_string(),
        way,
        settings: settings.iter().map(own).collect(),
        groups: vec![group.to_string()],
        runs: Vec::new(),
    };
    let Cell { network: link, server, service, .. } = &cell;
    cell.name = format!("{link}/{server}/{service}/{}/{}", way.name(), cell.variant());
    let name_sum: u64 = cell.name.bytes().map(u64::from).sum();
    for repetition in 1..=runs {
        let mut chance = Chance(u64::from(repetition) * 1_000_003 + name_sum);
        cell.runs.push(run(network, bytes, effect, repetition, &mut chance));
    }
    cell
}

/// Round trips of a slow start from ten segments, and the airtime.
fn plain_s(network: &Network, bytes: u64) -> f64 {
    let segments = bytes as f64 / 1448.0;
    let trips = (1.0 + segments / 10.0).log2().ceil().max(1.0) + 0.2;
    2.0 * network.delay_s * trips + 8.0 * bytes as f64 / network.rate_bps.unwrap_or(1) as f64
}

fn run(network: &Network, bytes: u64, effect: f64, repetition: u32, chance: &mut Chance) -> Run {
    let mut measured = Vec::new();
    let mut start_s = 0.0;
    for number in 1..=EXCHANGES {
        let share = 0.3 + 1.4 * f64::from(number) / f64::from(EXCHANGES);
        let body_bytes = (bytes as f64 * share) as u64;
        let spike =
            if chance.next() < network.loss * 4.0 { 1.5 + 2.0 * chance.next() } else { 1.0 };
        let noise = 1.0 + 0.06 * (chance.next() - 0.5);
        let elapsed_s = plain_s(network, body_bytes) * effect * noise * spike;
        measured.push(exchange(network, number, body_bytes, (start_s, elapsed_s), chance));
        start_s += elapsed_s;
    }
    let flight = (repetition == 1).then(|| flight(network, bytes, effect));
    let flagged = (chance.next() < 0.004).then(|| "lateness p99 0.9 ms, over 0.5 ms".to_string());
    let failure = (chance.next() < 0.003).then(|| "service not ready after 30 s".to_string());
    if failure.is_some() {
        measured.clear();
    }
    Run {
        repetition,
        attempt: if chance.next() < 0.03 { 2 } else { 1 },
        seed: 118_000 + u64::from(repetition),
        started_unix_s: 1_795_219_200.0,
        elapsed_s: start_s,
        parallel: 250,
        warm_up: Vec::new(),
        decisions: Vec::new(),
        measured,
        up: Traffic::default(),
        down: Traffic::default(),
        lateness: Lateness {
            count: 900,
            p50_us: 20,
            p99_us: 60 + (200.0 * chance.next()) as u64,
            p999_us: 300,
            max_us: 700,
            bins: vec![(20, 500), (60, 390), (300, 9), (700, 1)],
        },
        processor_wait_s: 0.004 * chance.next(),
        congestion_control: ["cubic".to_string(), "cubic".to_string()],
        flagged,
        failure,
        flight,
    }
}

/// As the results have it: fields that come later have their defaults.
fn blank() -> Exchange {
    serde_json::from_value(serde_json::json!({
        "name": "", "start_s": 0.0, "elapsed_s": 0.0, "body_bytes": 0, "status": 200,
        "error": null, "censored": false,
    }))
    .unwrap()
}

fn exchange(
    network: &Network,
    number: u32,
    body_bytes: u64,
    (start_s, elapsed_s): (f64, f64),
    chance: &mut Chance,
) -> Measured {
    let packets = body_bytes.div_ceil(1448) + 2;
    let failed = network.loss > 0.1 && chance.next() < 0.03;
    let censored = network.loss > 0.1 && !failed && chance.next() < 0.02;
    let error = failed.then(|| "connection reset by the service".to_string());
    let exchange = Exchange {
        name: format!("track {number}"),
        start_s,
        elapsed_s,
        body_bytes,
        error,
        censored,
        ..blank()
    };
    let again = (packets as f64 * network.loss * chance.next() * 2.0) as u64;
    Measured {
        exchange,
        up: Share { packets: packets / 2 + 1, bytes: 500 + 52 * packets / 2, retransmitted: 0 },
        down: Share {
            packets: packets + again,
            bytes: body_bytes + 52 * packets,
            retransmitted: again,
        },
        flights: 3,
    }
}

/// A slow start on a new connection; the eighth data segment is lost where the link loses.
fn flight(network: &Network, bytes: u64, effect: f64) -> Flight {
    let start_s = 1000.0;
    let mut packets = Vec::new();
    let (delay_s, bps) = (network.delay_s, network.rate_bps.unwrap_or(1) as f64);
    let mut put = |toward, at_s: f64, arrives_s: Option<f64>, sequence, payload: u16, flags| {
        packets.push(packet(
            toward,
            start_s + at_s,
            arrives_s.map(|s| start_s + s),
            sequence,
            payload,
            flags,
        ));
    };
    put(Toward::Service, 0.0, Some(delay_s), 0, 0, SYN);
    put(Toward::Client, delay_s, Some(2.0 * delay_s), 0, 0, SYN | ACK);
    put(Toward::Service, 2.0 * delay_s, Some(3.0 * delay_s), 1, 0, ACK);
    put(Toward::Service, 2.0 * delay_s, Some(3.0 * delay_s + 0.001), 1, 400, ACK);
    let segments = (bytes as f64 * effect.min(2.0) / 1448.0).ceil() as u32;
    let (mut now_s, mut sent, mut window) = (3.0 * delay_s + 0.004, 0, 10);
    let mut last_s = now_s;
    while sent < segments {
        let mut free_s = now_s;
        for number in sent..(sent + window).min(segments) {
            free_s += 8.0 * 1500.0 / bps;
            let lost = network.loss > 0.0 && number == 8;
            let sequence = 1 + number * 1448;
            put(Toward::Client, now_s, (!lost).then_some(free_s + delay_s), sequence, 1448, ACK);
            last_s = free_s + delay_s;
            if number % 2 == 1 {
                put(Toward::Service, last_s, Some(last_s + delay_s), 401, 0, ACK);
            }
            if lost {
                let again_s = last_s + delay_s + 8.0 * 1500.0 / bps;
                put(Toward::Client, again_s, Some(again_s + delay_s), sequence, 1448, ACK);
                last_s = again_s + delay_s;
            }
        }
        sent += window;
        window *= 2;
        now_s = last_s.max(now_s) + delay_s;
    }
    Flight { exchange: "track 11".to_string(), start_s, elapsed_s: last_s - 0.0 + 0.002, packets }
}

fn packet(
    toward: Toward,
    offered_s: f64,
    delivered_s: Option<f64>,
    sequence: u32,
    payload: u16,
    flags: u8,
) -> PacketEvent {
    let (source_port, destination_port) =
        if toward == Toward::Service { (40_000, 8080) } else { (8080, 40_000) };
    PacketEvent {
        toward,
        offered: Duration::from_secs_f64(offered_s),
        delivered: delivered_s.map(Duration::from_secs_f64),
        due: delivered_s.map(Duration::from_secs_f64),
        dropped: delivered_s.is_none().then(|| "loss".to_string()),
        duplicate: false,
        bytes: u32::from(payload) + 52,
        tcp: Some(TcpHeader {
            source_port,
            destination_port,
            sequence,
            acknowledgement: 0,
            payload,
            flags,
            window: 500,
        }),
    }
}

fn setting() -> Setting {
    let default =
        |name: &str, value: &str| ("tracks".to_string(), name.to_string(), value.to_string());
    Setting {
        title: "A made-up study of full size".to_string(),
        about: "Nobody measured these figures: they show what a report looks like.".to_string(),
        version: "1.2.3".to_string(),
        real_time: true,
        device: "tap".to_string(),
        machine: Machine { profile: "release".to_string(), ..Machine::default() },
        seed: 118,
        started_unix_s: 1_795_219_200,
        elapsed_s: 5400.0,
        sessions: 1,
        parallel_peak: 320,
        stolen: Some(0.0),
        timeout_s: 300.0,
        lateness_limit_us: 500,
        wait_share_limit: 0.02,
        defaults: vec![
            default("keep_alive_timeout", "180s"),
            default("send_buffer", "32768B"),
            default("tcp_buffer", "32768B"),
            default("chunking", "off"),
            default("compression", "off"),
            default("nodelay", "on"),
        ],
        ..Setting::default()
    }
}

fn references() -> Vec<Reference> {
    let mut all = Vec::new();
    for (network, seconds) in [("satcom", 3.9), ("los", 0.25), ("wifi1", 0.9), ("cnr", 28.0)] {
        for ((service, _), share) in SERVICES.into_iter().zip([1.0, 0.6, 0.35]) {
            for variant in ["default", "chunking=on", "nodelay=off"] {
                all.push(Reference {
                    cell: format!("{network}/tracks/{service}/direct/{variant}"),
                    seconds: seconds * share,
                    note: "read off a figure, give or take 3 %".to_string(),
                });
            }
        }
    }
    all
}

fn advice() -> Vec<Advice> {
    let one =
        |network: &str, text: &str| Advice { network: network.to_string(), text: text.to_string() };
    vec![
        one("satcom", "Use chunks & <batching>"),
        one("wifi1", "Use chunks"),
        one("cnr", "Use chunks; avoid batching"),
    ]
}

fn figures() -> Vec<Figure> {
    let mut all = Vec::new();
    for group in ["timeouts", "buffers", "forms"] {
        for (network, ..) in NETWORKS.iter().take(5) {
            all.push(Figure {
                title: format!("{network}: {group}"),
                network: (*network).to_string(),
                groups: vec![group.to_string()],
            });
        }
    }
    all
}
