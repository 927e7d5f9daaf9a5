//! A study made up so that what comes out is known.

use record::campaign::{Campaign, Cell, Measured, Network, Run, Setting, Share, Way};
use record::decision::{Decision, Direction, Entry, Outcome, Parts, Split};
use record::result::Exchange;

use super::chapter;
use super::data::{NAM, OURS, Study};
use super::regret::Oracle;

/// The messages with their lengths.
const MESSAGES: [(&str, u64); 2] = [("query 12", 728), ("query 13", 5035)];
/// Seconds of both with each policy.
const POLICIES: [(&str, [f64; 2]); 5] = [
    ("identity", [1.0, 4.0]),
    ("deflate:6", [2.0, 2.0]),
    ("xmill:1", [3.0, 3.0]),
    (NAM, [1.5, 3.0]),
    (OURS, [1.0, 2.2]),
];

fn exchange((name, body_bytes): (&str, u64), elapsed_s: f64) -> Measured {
    let exchange = Exchange {
        name: name.to_string(),
        start_s: 0.0,
        elapsed_s,
        body_bytes,
        status: Some(200),
        error: None,
        censored: false,
        connections: 0,
    };
    Measured { exchange, up: Share::default(), down: Share::default(), flights: 1 }
}

fn entry(encoding: &str, unix_s: f64, body_bytes: u64) -> Entry {
    let expected = Parts { bytes: 100, encode_s: 0.1, network_s: 0.8, decode_s: 0.1, wait_s: 0.0 };
    let actual = Parts { bytes: 110, encode_s: 0.1, network_s: 1.6, decode_s: 0.1, wait_s: 0.0 };
    let split = Split { network_s: 0.7, size_s: 0.1, ..Split::default() };
    let decision = Decision {
        service: "http://b".into(),
        peer: None,
        class: "ff".into(),
        content_type: None,
        body_bytes,
        head_share: 0.2,
        objective: "time".into(),
        expected,
        candidates: Vec::new(),
        forbidden: Vec::new(),
        link: record::decision::Link::default(),
        probe: None,
        base: None,
        edgeless: false,
        route: None,
    };
    Entry {
        unix_s,
        exchange: "00".into(),
        direction: Direction::Response,
        encoding: encoding.into(),
        reason: "least".into(),
        decision: Some(decision),
        outcome: Some(Outcome {
            encoding: encoding.into(),
            body_bytes,
            expected,
            actual,
            split,
            revisions: Vec::new(),
        }),
        request: None,
    }
}

/// The oracle's luck changes: in even runs everything takes twice as long.
fn run(repetition: u32, policy: &str, times: [f64; 2]) -> Run {
    let slow = if repetition.is_multiple_of(2) { 2.0 } else { 1.0 };
    let encoding = if policy == OURS { "zstd:3" } else { "deflate:6" };
    Run {
        repetition,
        attempt: 1,
        seed: u64::from(repetition),
        measured: [0, 1].map(|at| exchange(MESSAGES[at], slow * times[at])).to_vec(),
        warm_up: vec![exchange(MESSAGES[0], 1.0)],
        decisions: [728, 728, 5035]
            .into_iter()
            .zip(0..)
            .map(|(bytes, at)| entry(encoding, f64::from(at), bytes))
            .collect(),
        ..Run::default()
    }
}

fn campaign(runs: u32) -> Campaign {
    let network = Network {
        name: "far".to_string(),
        source: String::new(),
        settings: Vec::new(),
        rate_bps: Some(1_000_000),
        delay_s: 0.1,
        loss: 0.0,
        changes: Vec::new(),
    };
    let cell = |(policy, times): &(&str, [f64; 2])| Cell {
        name: format!("far/tpch/medium/longwire/policy={policy}"),
        network: "far".to_string(),
        server: "tpch".to_string(),
        service: "medium".to_string(),
        way: Way::Longwire,
        settings: vec![("policy".to_string(), (*policy).to_string())],
        groups: vec!["medium".to_string()],
        runs: (1..=runs).map(|repetition| run(repetition, policy, *times)).collect(),
    };
    Campaign {
        setting: Setting {
            defaults: vec![("tpch".to_string(), "processor".to_string(), "1".to_string())],
            ..Setting::default()
        },
        networks: vec![network],
        cells: POLICIES.iter().map(cell).collect(),
        references: Vec::new(),
        advice: Vec::new(),
        figures: Vec::new(),
    }
}

#[test]
fn regret_is_against_the_fastest_of_each_message_in_the_other_runs() {
    let campaign = campaign(4);
    let study = Study::of(&campaign).unwrap();
    let place = &study.places[0];
    let oracle = Oracle::of(place, 1.0).unwrap();
    let of = |policy| oracle.judge(&place.arm(policy, 1.0).unwrap()).unwrap();
    // The first as it is, the second with deflate; and with all messages in one encoding, deflate.
    assert!((of(OURS).relative - 0.05).abs() < 1e-9, "{:?}", of(OURS));
    assert!((of(OURS).behind - (3.2 / 4.0 - 1.0)).abs() < 1e-9, "{:?}", of(OURS));
    assert!((of(NAM).relative - 0.5).abs() < 1e-9, "{:?}", of(NAM));
    assert_eq!(oracle.best_fixed(), "deflate:6");
    assert!((oracle.mean_s() - 1.5 * 1.5).abs() < 1e-9, "{}", oracle.mean_s());
    assert!(of(NAM).behind_low.unwrap() < of(NAM).behind + 1e-9);
}

#[test]
fn one_run_is_no_oracle() {
    let campaign = campaign(1);
    let study = Study::of(&campaign).unwrap();
    assert!(Oracle::of(&study.places[0], 1.0).is_none());
    assert!(chapter(&campaign).contains("No cell has runs enough"));
}

#[test]
fn the_chapter_has_its_tables_and_pictures_and_only_for_studies_of_policies() {
    let mut campaign = campaign(4);
    let text = chapter(&campaign);
    for part in [
        "Ours: mean regret 5.0 % over 1 cell",
        "NAM as published: mean regret 50.0 %",
        "Improvement over fixed encodings",
        "Predicted against actual",
        "100 %, × 1.80",
        "Choices on links that stay",
        "Model error by size",
        "query 12, here</td><td>728</td><td>110</td><td>6.6</td><td>100</td><td>100</td>",
        "query 12, the paper</td><td>929</td>",
        "Time of codecs by processor",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    campaign.networks[0].changes = vec![(0.0, "afar".to_string()), (1.5, "near".to_string())];
    let text = chapter(&campaign);
    assert!(text.contains("Choices while the link changes"));
    assert!(text.contains(">afar<") && text.contains(">near<"), "{text}");
    campaign.networks[0].changes.clear();
    // One ended without an outcome, another failed: left out, not fatal.
    campaign.cells[4].runs[0].decisions[2].outcome = None;
    campaign.cells[4].runs[1].measured.clear();
    campaign.cells[3].runs.clear();
    assert!(chapter(&campaign).contains("Ours: mean regret"));
    campaign.cells.iter_mut().for_each(|cell| cell.settings.clear());
    assert_eq!(chapter(&campaign), "");
}

#[test]
fn links_for_the_simulator_do_not_count_and_other_encodings_stand_apart() {
    let mut campaign = campaign(2);
    campaign.networks[0].loss = 0.2;
    let text = chapter(&campaign);
    assert!(text.contains("No cell counts") && text.contains("far *"), "{text}");
    campaign.networks[0].loss = 0.0;
    let mut more = campaign.cells[4].clone();
    more.settings.push(("encodings".to_string(), "all".to_string()));
    more.runs.iter_mut().for_each(|run| run.measured.clear());
    campaign.cells.push(more);
    let text = chapter(&campaign);
    assert!(text.contains("Ours: mean regret 5.0 % over 1 cell"), "{text}");
    assert!(text.contains("medium, encodings: all, processor 1"), "{text}");
}

#[test]
fn classes_of_several_servers_are_distinguished() {
    let mut campaign = campaign(2);
    assert!(chapter(&campaign).contains("<td class='text'>medium</td>"));
    let others = campaign.cells.clone();
    campaign.cells.extend(others.into_iter().map(|mut cell| {
        cell.server = "mixed-q02".to_string();
        cell
    }));
    let text = chapter(&campaign);
    for name in ["medium, tpch", "medium, mixed-q02"] {
        // By class, and among the cells.
        assert!(text.contains(&format!("<tr><td>{name}</td><td>1</td>")), "{text}");
        assert!(text.contains(&format!("<td class='text'>{name}</td>")), "{text}");
    }
}
