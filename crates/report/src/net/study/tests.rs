use super::*;
use record::net::{NetAirtime, NetNode};
use record::result::Lateness;

/// A run of two platoons: a time for each message inside, then for each that crosses; none for one
/// that was lost.
fn run(case: &str, seed: u64, inside: &[Option<f64>], crossing: &[Option<f64>]) -> NetRun {
    let node = |name: &str| NetNode { name: name.to_owned(), group: name[..1].to_owned() };
    let message = |number: usize, to: &str, time: Option<f64>| NetMessage {
        number: u32::try_from(number).unwrap(),
        from: "a1".to_owned(),
        to: to.to_owned(),
        sent_s: number as f64,
        delivered_s: time.map(|time| number as f64 + time),
        lost: time.is_none().then(|| "expired".to_owned()),
        copies: u32::from(time.is_some()),
        crossed: if to == "b1" { vec![1] } else { vec![0] },
        hops: 1,
        ..NetMessage::default()
    };
    let inside = inside.iter().map(|time| ("a2", *time));
    let crossing = crossing.iter().map(|time| ("b1", *time));
    let messages = inside.chain(crossing).enumerate();
    NetRun {
        scenario: "platoons".to_owned(),
        fingerprint: "00ff".to_owned(),
        case: case.to_owned(),
        seed,
        media: vec!["wide".to_owned(), "narrow".to_owned()],
        nodes: vec![node("a1"), node("a2"), node("b1")],
        messages: messages.map(|(number, (to, time))| message(number, to, time)).collect(),
        airtime: vec![
            NetAirtime {
                medium: 1,
                node: 0,
                protocol: "udp".to_owned(),
                transmissions: 4,
                bytes: 400,
                airtime_s: 0.25 * seed as f64,
                missed: 0,
            },
            NetAirtime {
                medium: 1,
                node: 2,
                protocol: "udp".to_owned(),
                transmissions: 2,
                bytes: 100,
                airtime_s: 0.125,
                missed: 0,
            },
        ],
        ..NetRun::default()
    }
}

fn of(runs: &[NetRun]) -> Study {
    Study::of(runs, Vec::new())
}

#[test]
fn figures_are_means_over_runs() {
    let runs = [
        run("HTTP/JSON", 1, &[Some(0.5), Some(0.7), Some(0.9), None], &[Some(2.0), Some(4.0)]),
        run("HTTP/JSON", 2, &[Some(0.3), Some(0.5), Some(0.7), Some(1.1)], &[None, Some(3.0)]),
    ];
    let study = of(&runs);
    let case = &study.cases[0];
    let mean = |figure: &Option<Figure>| figure.as_ref().unwrap().mean;
    let near = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
    assert_eq!((case.all.sent, case.crossing.sent), (6.0, 2.0));
    // One of six is lost in each run, of those that cross none and one of two.
    assert!(near(mean(&case.all.lost), 1.0 / 6.0) && near(mean(&case.crossing.lost), 0.25));
    assert!(near(mean(&case.all.min_s), 0.4) && near(mean(&case.all.max_s), 3.5));
    // Medians: 0.9 of 0.5, 0.7, 0.9, 2, 4, and 0.7 of 0.3, 0.5, 0.7, 1.1, 3.
    assert!(near(mean(&case.all.median_s), 0.8) && near(mean(&case.crossing.median_s), 3.0));
    assert_eq!(case.all.reasons.get("expired"), Some(&2));
    let stretches: Vec<_> = case
        .stretches
        .iter()
        .map(|one| (one.from.as_str(), one.to.as_str(), one.media.as_str(), one.outcome.sent))
        .collect();
    assert_eq!(stretches, [("a", "a", "wide", 4.0), ("a", "b", "narrow", 2.0)]);
    let air = &case.airtime[0];
    assert_eq!((air.medium.as_str(), air.protocol.as_str()), ("narrow", "udp"));
    assert_eq!((air.transmissions, air.bytes), (6.0, 500.0));
    assert!(near(air.airtime_s.mean, 0.375 + 0.125));
    assert_eq!(case.nodes[0], ("narrow".to_owned(), "a1".to_owned(), 0.375));
    assert_eq!(case.paper.map(|paper| paper.message_bytes), Some(418));
}

#[test]
fn intervals_are_given_from_six_runs_on() {
    let runs = |count: u64| -> Vec<NetRun> {
        let time = |seed: u64| Some(0.5 + 0.01 * seed as f64);
        (1..=count).map(|seed| run("burst", seed, &[time(seed)], &[time(seed)])).collect()
    };
    let figure = |count| of(&runs(count)).cases[0].all.median_s.unwrap();
    assert_eq!(figure(5).interval, None);
    let ten = figure(10);
    let (from, to) = ten.interval.unwrap();
    // Ten even values of which the deviation is 0.03: Student's interval is 0.0217 each way.
    assert!(from < ten.mean && ten.mean < to && (0.03..0.055).contains(&(to - from)), "{ten:?}");
    assert_eq!(figure(10), ten, "the same runs make the same interval");
    assert!(of(&runs(5)).remarks.iter().any(|remark| remark.contains("from 6 runs")));
    assert!(of(&runs(10)).remarks.is_empty());
}

#[test]
fn cases_stand_in_the_paper_s_order_and_other_scenarios_are_left_out() {
    let names = ["burst/JSON", "CoAP/UDP/JSON", "HTTP/EXI", "HTTP/JSON"];
    let mut runs: Vec<NetRun> = names.iter().map(|name| run(name, 1, &[Some(1.0)], &[])).collect();
    let other = NetRun { fingerprint: "1".to_owned(), ..run("HTTP/CBOR", 1, &[], &[]) };
    runs.push(other);
    let study = of(&runs);
    let found: Vec<&str> = study.cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(found, ["HTTP/JSON", "HTTP/EXI", "CoAP/UDP/JSON", "burst/JSON"]);
    assert_eq!((study.others, study.fingerprint.as_str()), (1, "00ff"));
    assert_eq!(study.cases[3].paper, None);
}

#[test]
fn what_is_odd_is_said() {
    let mut runs =
        vec![run("a", 1, &[Some(1.0)], &[]), run("a", 2, &[Some(1.0)], &[]), run("b", 1, &[], &[])];
    runs[0].lateness = Some(Lateness { count: 1, p99_us: 6_000, ..Lateness::default() });
    runs[1].messages[0].copies = 2;
    runs[2].unrecorded = 7;
    let remarks = of(&runs).remarks.join("\n");
    for part in [
        "In 1 run a packet",
        "a: 1 messages were delivered more than once",
        "7 transmissions",
        "different numbers",
    ] {
        assert!(remarks.contains(part), "{part}: {remarks}");
    }
}

#[test]
fn text_page_and_json_have_the_paper_s_figures_beside_ours() {
    let sizes = vec![SizeRow { case: "HTTP/JSON".to_owned(), message_bytes: 301, ip_bytes: 353 }];
    let runs = [
        run("HTTP/JSON", 1, &[Some(0.5)], &[None]),
        run("<pair>", 1, &[Some(0.25)], &[Some(0.33)]),
    ];
    let study = Study::of(&runs, sizes);
    let text = study_text(&study);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    for part in ["301     418     353", "50.0 % (6.2)", "100.0 % (35.3)", "0.500 (0.720)"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = study_page(&study);
    for part in ["<td>418</td>", "<td>6.19 %</td>", "<td>1.36</td>", "&lt;pair&gt;", "expired 1"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let json = study_json(&study);
    assert_eq!(json["cases"][0]["paper"]["crossing"]["median_s"], 1.36);
    assert_eq!(json["cases"][0]["crossing"]["lost"]["mean"], 1.0);
    assert_eq!(json["sizes"][0]["paper_bytes"], 418);
    assert_eq!(json["cases"][1]["paper"], serde_json::Value::Null);
}

#[test]
fn no_runs_make_an_empty_study() {
    let study = of(&[]);
    assert!(study.cases.is_empty() && study_page(&study).contains("0 runs"));
    assert!(study_text(&study).contains("0 runs"));
}

#[test]
fn the_load_is_all_bits_in_the_air_by_the_time_of_the_run() {
    let mut one = run("MQTT", 1, &[Some(1.0)], &[]);
    one.elapsed_s = 2.0;
    let study = of(&[one]);
    // 500 bytes in two seconds.
    assert_eq!(study.cases[0].load_bps.unwrap().mean, 2000.0);
    let text = study_text(&study);
    assert!(text.contains("2.0") && !text.contains("Table III"), "{text}");
}

#[test]
fn the_95th_percentile_is_by_nearest_rank() {
    let times: Vec<f64> = (1..=20).map(f64::from).collect();
    assert_eq!(percentile_95(&times), Some(19.0));
    assert_eq!((percentile_95(&times[..1]), percentile_95(&[])), (Some(1.0), None));
}
