//! The report of a fixed result, in which everything went wrong that can.

use record::demo::{Cell, Curve, CurvePoint, Demo, Item, Mode, Network, Service, Setting, Urgent};
use record::machine::Machine;
use record::result::{Exchange, Fetch, Lateness, Summary, Traffic};
use services::xml::{Node, Reader};

use super::html::html;
use super::terminal::table;

const KILOBYTE: u64 = 1000;

fn exchange(number: usize, elapsed_s: f64) -> Exchange {
    Exchange {
        name: format!("track {number}"),
        start_s: 0.0,
        elapsed_s,
        body_bytes: 40 * KILOBYTE,
        status: Some(200),
        error: None,
        censored: false,
        connections: 0,
    }
}

fn cell(network: &str, mode: Mode, measured: Vec<Exchange>) -> Cell {
    let good = measured.iter().filter(|one| one.succeeded()).map(|one| one.elapsed_s);
    let fetch = Fetch {
        url: "http://b:8080/".to_string(),
        api: "soap".to_string(),
        proxy: None,
        gzip: mode == Mode::Gzip,
        new_connection: false,
        congestion_control: Some("cubic".to_string()),
        started_monotonic_s: 0.0,
        processor_wait_s: None,
        retransmits: 0,
        warm_up: Vec::new(),
        summary: Summary::of(&good.collect::<Vec<_>>()),
        errors: measured.iter().filter(|one| one.error.is_some()).count(),
        censored: measured.iter().filter(|one| one.censored).count(),
        measured,
    };
    let traffic = |bytes_in| Traffic { packets_in: 9, bytes_in, ..Traffic::default() };
    Cell {
        network: network.to_string(),
        service: "soap".to_string(),
        mode,
        congestion_control: ["cubic".to_string(), "cubic".to_string()],
        fetch: Some(fetch),
        failure: None,
        up: traffic(2 * KILOBYTE),
        down: traffic(88 * KILOBYTE),
        lateness: Lateness { count: 3, p99_us: 90, bins: vec![(90, 3)], ..Lateness::default() },
        repeated: false,
    }
}

fn network(name: &str, rate_bps: u64) -> Network {
    Network {
        name: name.to_string(),
        source: "made up & <strange>".to_string(),
        settings: vec![("queue_packets".to_string(), "1000".to_string())],
        rate_bps: Some(rate_bps),
        delay_s: 0.1,
        loss: 0.01,
        cold: rate_bps < 10_000,
        items: (1..=3).map(|number| format!("track {number}")).collect(),
    }
}

fn setting() -> Setting {
    Setting {
        version: "1.2.3".to_string(),
        machine: Machine {
            kernel: "Linux 6".to_string(),
            processor: "some".to_string(),
            cores: 2,
            revision: Some("abc123".to_string()),
            date: "2026-11-21".to_string(),
            profile: "release".to_string(),
            command: "longwire demo".to_string(),
        },
        device: "tap".to_string(),
        rootless: false,
        real_time: true,
        memory_locked: true,
        stolen: Some(0.0),
        seed: 118,
        started_unix_s: 1_795_219_200,
        elapsed_s: 240.0,
        budget_s: 230.0,
        stagger_ms: 60,
        carrier: "stream".to_string(),
        encoding: "auto".to_string(),
        bound_encoding: "zstd:19".to_string(),
        url: None,
    }
}

/// On the fast network all is well. On the slow one the direct way is cut off, with gzip a fetch
/// fails, and longwire has no result at all.
fn demo() -> Demo {
    let all =
        |seconds: [f64; 3]| seconds.into_iter().zip(1..).map(|(s, n)| exchange(n, s)).collect();
    let cut = |number, elapsed_s| Exchange { censored: true, ..exchange(number, elapsed_s) };
    let failed = Exchange { error: Some("reset <by> peer".to_string()), ..exchange(3, 7.0) };
    let nothing = Cell {
        fetch: None,
        failure: Some("edge & gateway did not connect in time".to_string()),
        ..cell("slow", Mode::Longwire, Vec::new())
    };
    let item = |number: usize| Item {
        name: format!("track {number}"),
        body_bytes: 40 * KILOBYTE,
        encoded_body_bytes: 3 * KILOBYTE,
        encoded_request_bytes: 100,
    };
    Demo {
        setting: setting(),
        networks: vec![network("fast", 2_000_000), network("slow", 9_600)],
        curve: None,
        urgent: None,
        services: vec![Service { name: "soap".to_string(), items: (1..=3).map(item).collect() }],
        cells: vec![
            cell("fast", Mode::Direct, all([1.0, 2.0, 3.0])),
            cell("fast", Mode::Gzip, all([0.5, 0.6, 0.7])),
            cell("fast", Mode::Longwire, all([0.25, 0.4, 0.5])),
            cell("slow", Mode::Direct, vec![exchange(1, 31.0), cut(2, 199.0), cut(3, 0.0)]),
            cell("slow", Mode::Gzip, vec![exchange(1, 4.0), exchange(2, 5.0), failed]),
            nothing,
        ],
        lateness: Lateness { count: 3, p99_us: 90, bins: vec![(90, 3)], ..Lateness::default() },
    }
}

/// An element's name and attributes.
type Element = (String, Vec<(String, String)>);

/// The report as XML: its elements and its text.
fn parse(document: &str) -> (Vec<Element>, String) {
    let document = document.strip_prefix("<!DOCTYPE html>\n").unwrap();
    let mut reader = Reader::new(document);
    let (mut elements, mut texts) = (Vec::new(), String::new());
    while let Some(node) = reader.next_node().unwrap() {
        match node {
            Node::Start { name, attributes, .. } => {
                let attributes = attributes.into_iter().map(|one| (one.name, one.value));
                elements.push((name, attributes.collect()));
            }
            Node::Text(text) => texts += &text,
            Node::End | Node::Instruction => {}
        }
    }
    (elements, texts)
}

#[test]
fn the_report_is_one_well_formed_file_that_asks_for_nothing() {
    let report = html(&demo()).unwrap();
    let (elements, _) = parse(&report);
    assert!(elements.iter().filter(|(name, _)| name == "svg").count() == 3);
    for (name, attributes) in &elements {
        assert!(!["script", "link", "img", "iframe", "object", "base"].contains(&name.as_str()));
        for (attribute, value) in attributes {
            let fetches = ["src", "href", "action", "data", "poster", "background"];
            assert!(!fetches.contains(&attribute.as_str()), "{name} {attribute}={value}");
        }
    }
    let style = report.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
    assert!(!style.contains("url(") && !style.contains("@import"), "{style}");
}

#[test]
fn what_was_cut_off_failed_or_is_missing_is_seen() {
    let (elements, text) = parse(&html(&demo()).unwrap());
    let classes = elements.iter().flat_map(|(_, attributes)| attributes);
    let classes: Vec<&str> =
        classes.filter(|(name, _)| name == "class").map(|(_, value)| value.as_str()).collect();
    assert_eq!(classes.iter().filter(|class| **class == "direct cut").count(), 1);
    assert_eq!(classes.iter().filter(|class| **class == "failed").count(), 2, "a cross");
    for expected in [
        "slow soap direct: the time budget ended: cut off after > 199 s, 1 of 3 not begun",
        "slow soap gzip: 1 of 3 failed, first: reset <by> peer",
        "slow soap longwire: no result: edge & gateway did not connect in time",
        "track 2: > 199 s, cut off",
        "> 31.0 s (1 of 3)",
        "queue_packets = 1000",
        "made up & <strange>",
        "2026-11-21 00:00:00",
        "abc123",
    ] {
        assert!(text.contains(expected), "{expected}");
    }
}

#[test]
fn the_raw_data_is_the_whole_result() {
    let (_, text) = parse(&html(&demo()).unwrap());
    let raw = &text[text.find("{\"setting\"").unwrap()..];
    let mut read = serde_json::Deserializer::from_str(raw).into_iter::<Demo>();
    assert_eq!(read.next().unwrap().unwrap(), demo());
}

#[test]
fn the_summary_names_the_best_and_the_worst_and_leaves_out_what_is_unknown() {
    let mut demo = demo();
    let (_, text) = parse(&html(&demo).unwrap());
    assert!(
        text.contains(
            "faster through longwire than direct in 1 of 2 comparisons (1 unknown or spoilt)."
        ),
        "{text}"
    );
    let best = "SOAP over fast takes 0.400 s instead of 2.00 s (5.0 times as fast)";
    assert!(text.contains(best), "{text}");
    demo.cells[5] = cell("slow", Mode::Longwire, vec![exchange(1, 62.0)]);
    let (_, text) = parse(&html(&demo).unwrap());
    let worst = "Worst: SOAP over slow takes 62.0 s instead of > 31.0 s (> 0.50 times as fast)";
    assert!(text.contains(worst), "{text}");
    demo.cells.clear();
    assert!(html(&demo).unwrap().contains("No comparison came out"));
}

#[test]
fn the_table_fits_a_terminal_and_says_what_went_wrong() {
    let mut demo = demo();
    let text = table(&demo);
    println!("{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_string();
    let fields: Vec<_> = line("fast").split_whitespace().map(str::to_string).collect();
    assert_eq!(
        fields,
        ["fast", "soap", "2.00", "0.600", "0.400", "5.0", "1.5", "30.0", "30.0", "30.0", "0.213"]
    );
    assert!(line("slow").contains("> 31.0") && line("slow").contains("failed"), "{text}");
    assert!(text.contains("no result: edge & gateway did not connect in time"));
    demo.setting.real_time = false;
    demo.setting.rootless = true;
    demo.setting.device = "veth".to_string();
    demo.setting.machine.profile = "debug".to_string();
    demo.setting.stolen = Some(0.05);
    let text = table(&demo);
    for expected in ["Not root", "veth", "Without real-time priority", "debug build", "5.0 %"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn what_a_busy_machine_spoilt_is_marked_and_concludes_nothing() {
    let mut demo = demo();
    assert!(!table(&demo).contains("not to be trusted"));
    // As much as a campaign bears.
    demo.cells[1].lateness.p99_us = 500;
    assert!(!table(&demo).contains("not to be trusted"));
    demo.cells[1].lateness.p99_us = 2100;
    let text = table(&demo).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("1 of 6 cells, marked with *, are not to be trusted"), "{text}");
    assert!(text.contains("fast soap gzip, 2.1 ms"), "{text}");
    assert!(text.contains("0.600*"), "{text}");
    assert!(!text.contains("SOAP over fast takes"), "{text}");
    assert!(!text.contains("once more"), "{text}");
    demo.cells[0].repeated = true;
    demo.cells[1].repeated = true;
    let text = table(&demo).split_whitespace().collect::<Vec<_>>().join(" ");
    let note = "2 of 6 cells were measured once more, as the machine was too busy the first time: \
                1 of them are sound now";
    assert!(text.contains(note), "{text}");
    demo.cells[1].lateness.p99_us = 90;
    demo.cells[2].fetch.as_mut().unwrap().processor_wait_s = Some(0.2);
    assert!(table(&demo).contains("0.400*"), "the client waited for a processor");
}

#[test]
fn one_url_again_and_again_is_said_to_go_as_deltas() {
    let mut demo = demo();
    demo.setting.url = Some("http://portal.example/".to_string());
    demo.networks.truncate(1);
    let text = table(&demo).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("as a delta of an earlier one"), "{text}");
    assert!(text.contains("The first answer took 0.250 s instead of 1.00 s over fast"), "{text}");
    // The gzip cell sent as many bytes as the direct one.
    assert!(text.contains("it does not compress") && !text.contains("use gzip already"), "{text}");
    assert!(text.contains("bound: one round trip and the airtime") && !text.contains("physical"));
}

#[test]
fn means_and_tails_stand_beside_medians() {
    let demo = demo();
    let (_, text) = parse(&html(&demo).unwrap());
    assert!(text.contains("In the tail"));
    let table = table(&demo);
    let line = table.lines().filter(|line| line.starts_with("fast")).nth(1).unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    // Mean and 95th percentile of each way, and how many times faster than gzip.
    assert_eq!(words[2..], ["2.00", "0.600", "0.383", "3.00", "0.700", "0.500", "1.6", "1.4"]);
}

#[test]
fn times_by_loss_are_said_and_drawn_with_the_networks_own() {
    let mut demo = demo();
    demo.networks[0].loss = 0.2;
    let cells = |gzip, longwire| {
        let all = |seconds| vec![exchange(1, seconds)];
        vec![cell("fast", Mode::Gzip, all(gzip)), cell("fast", Mode::Longwire, all(longwire))]
    };
    let points = vec![
        CurvePoint { loss: 0.0, cells: cells(0.3, 0.2) },
        CurvePoint { loss: 0.3, cells: cells(9.0, 0.9) },
    ];
    let (network, service) = ("fast".to_string(), "soap".to_string());
    demo.curve = Some(Curve { network, service, points });
    let text = table(&demo).split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "0 %: 0.300 (0.300) and 0.200 (0.200); 20 %: 0.600 (0.700) and 0.400 (0.500); \
                    30 %: 9.00 (9.00) and 0.900 (0.900)";
    assert!(text.contains(expected), "{text}");
    let (_, text) = parse(&html(&demo).unwrap());
    assert!(text.contains("Time by loss") && text.contains("longwire, 95th percentile"));
}

#[test]
fn what_is_urgent_stands_beside_bulk_in_words_and_as_a_table() {
    let mut demo = demo();
    let all = |seconds: [f64; 3]| seconds.map(|seconds| exchange(1, seconds)).to_vec();
    let cells = vec![
        cell("slow", Mode::Gzip, all([20.0, 30.0, 40.0])),
        cell("slow", Mode::Longwire, all([1.0, 1.5, 2.0])),
    ];
    let (network, bulk) = ("slow".to_string(), "soap".to_string());
    demo.urgent = Some(Urgent { network, bulk, bulk_clients: 4, cells });
    let text = table(&demo).split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "A flash message while 4 clients of SOAP fill the link of slow, median (95th \
                    percentile, longest): with gzip 30.0 s (40.0 s, 40.0 s); with longwire 1.50 s \
                    (2.00 s, 2.00 s).";
    assert!(text.contains(expected), "{text}");
    let (_, text) = parse(&html(&demo).unwrap());
    assert!(text.contains("A flash message beside bulk"), "{text}");
}
