//! What is written is read back; what is not ours is refused.

use record::campaign::{Flight, Share};
use record::decision::{Direction, Entry};
use record::packets::{PacketEvent, TcpHeader, Toward};
use record::result::{Exchange, Lateness, Traffic};

use std::time::Duration;

use super::*;
use crate::campaign::plan::Choice;
use crate::experiment::scratch::Scratch;

const PLAN: &str = "title = 'x'\n[[network]]\nname = 'los'\n[[group]]\nname = 'g'\n\
                    services = ['soap']\n[group.settings]\nchunking = ['on']\n";

fn plan(text: &str) -> Plan {
    Plan::parse(text.to_string(), &Choice::default()).unwrap()
}

fn measured(name: &str) -> Measured {
    let exchange = Exchange {
        name: name.to_string(),
        start_s: 0.25,
        elapsed_s: 1.5,
        body_bytes: 1000,
        status: Some(200),
        error: None,
        censored: false,
        connections: 1,
    };
    let up = Share { packets: 3, bytes: 400, retransmitted: 1 };
    let down = Share { packets: 4, bytes: 5000, retransmitted: 0 };
    Measured { exchange, up, down, flights: 2 }
}

fn run() -> Run {
    let tcp = TcpHeader {
        source_port: 1,
        destination_port: 2,
        sequence: u32::MAX,
        acknowledgement: 4,
        payload: 5,
        flags: 24,
        window: 7,
    };
    let packet = PacketEvent {
        toward: Toward::Client,
        offered: Duration::from_nanos(5_000_000_001),
        delivered: Some(Duration::from_secs(6)),
        due: None,
        dropped: None,
        duplicate: false,
        bytes: 45,
        tcp: Some(tcp),
    };
    let flight = Flight {
        exchange: "track 2".to_string(),
        start_s: 5.0,
        elapsed_s: 1.5,
        packets: vec![packet],
    };
    Run {
        repetition: 2,
        attempt: 3,
        seed: u64::MAX - 1,
        started_unix_s: 1.75e9,
        elapsed_s: 3.5,
        parallel: 17,
        warm_up: vec![measured("track 1")],
        measured: vec![measured("track 2"), measured("track, \"3\"")],
        up: Traffic {
            packets_in: 5,
            dropped: [("loss".to_string(), 1)].into(),
            ..Traffic::default()
        },
        lateness: Lateness { count: 9, p99_us: 80, bins: vec![(80, 9)], ..Lateness::default() },
        processor_wait_s: 0.001,
        congestion_control: ["cubic".to_string(), "bbr".to_string()],
        flagged: Some("late".to_string()),
        flight: Some(flight),
        decisions: vec![Entry {
            unix_s: 1.75e9,
            exchange: "ff".to_string(),
            direction: Direction::Response,
            encoding: "zstd:3".to_string(),
            reason: "least time".to_string(),
            decision: None,
            outcome: None,
            request: None,
        }],
        ..Run::default()
    }
}

fn frame() -> Frame {
    Frame {
        setting: Setting { title: "x".to_string(), seed: 3, ..Setting::default() },
        networks: Vec::new(),
        references: Vec::new(),
        advice: Vec::new(),
        figures: Vec::new(),
    }
}

#[test]
fn a_run_is_read_back_as_it_was_written() {
    let scratch = Scratch::new().unwrap();
    let mut store = Store::open(scratch.path(), &plan(PLAN), "1.2.3").unwrap();
    store.put_frame(&frame()).unwrap();
    store.put_run(1, &run()).unwrap();
    let campaign = store.campaign().unwrap();
    assert_eq!(campaign.cells.len(), 2);
    assert_eq!(campaign.cells[1].variant(), "chunking=on");
    assert_eq!(campaign.cells[1].runs, [run()]);
    assert_eq!(campaign.setting.seed, 3);
}

/// What is read a cell at a time is what is read at once.
#[test]
fn figures_are_those_of_the_whole_campaign() {
    let scratch = Scratch::new().unwrap();
    let mut store = Store::open(scratch.path(), &plan(PLAN), "1").unwrap();
    store.put_frame(&frame()).unwrap();
    let mut mixed = Run { flagged: None, decisions: Vec::new(), repetition: 1, ..run() };
    mixed.measured[0].exchange.error = Some("refused".to_string());
    let mut never = measured("track 4");
    (never.exchange.censored, never.exchange.elapsed_s) = (true, 0.0);
    mixed.measured.push(never);
    store.put_run(0, &mixed).unwrap();
    let failed = Run { repetition: 2, failure: Some("no".to_string()), ..Run::default() };
    store.put_run(0, &failed).unwrap();
    store.put_run(1, &Run { decisions: Vec::new(), ..run() }).unwrap();
    let (whole, figures) = (store.campaign().unwrap(), store.figures().unwrap());
    assert_eq!(figures.len(), whole.cells.len());
    for (place, (of, cell)) in figures.iter().zip(&whole.cells).enumerate() {
        assert_eq!((&of.cell.name, of.runs.len()), (&cell.name, cell.runs.len()));
        for (run, full) in of.runs.iter().zip(&cell.runs) {
            assert_eq!(run.mean_s, full.mean_s());
            assert_eq!(run.errors, full.errors() as u64);
            assert_eq!(run.censored, full.censored() as u64);
            assert_eq!(run.exchanges, full.measured.len() as u64);
            assert_eq!(run.failure, full.failure);
        }
        assert_eq!(store.cell(place).unwrap().as_ref(), Some(cell));
    }
    assert_eq!(figures[0].runs[0].errors, 1);
    assert_eq!(figures[0].runs[0].wire_bytes, 3 * 5400);
    assert_eq!(figures[0].times_s(), [1.5]);
    assert_eq!(store.cell(2).unwrap(), None);
    let overview = store.overview().unwrap();
    let counts = [overview.cells, overview.done, overview.flagged, overview.failed];
    assert_eq!(counts, [2, 3, 1, 1]);
}

#[test]
fn finished_runs_are_known_and_a_failed_one_is_to_be_done_again() {
    let scratch = Scratch::new().unwrap();
    let mut store = Store::open(scratch.path(), &plan(PLAN), "1").unwrap();
    store.put_run(1, &run()).unwrap();
    let failed = Run { repetition: 1, failure: Some("no".to_string()), ..Run::default() };
    store.put_run(0, &failed).unwrap();
    drop(store);
    let mut store = Store::open(scratch.path(), &plan(PLAN), "1").unwrap();
    assert_eq!(store.finished(false).unwrap(), BTreeSet::from([(1, 2)]));
    // That one is flagged.
    assert_eq!(store.finished(true).unwrap(), BTreeSet::new());
    // In place of the failed one, not besides it.
    store.put_run(0, &Run { repetition: 1, ..Run::default() }).unwrap();
    store.put_frame(&frame()).unwrap();
    assert_eq!(store.campaign().unwrap().cells[0].runs.len(), 1);
    assert_eq!(store.finished(false).unwrap().len(), 2);
}

#[test]
fn results_of_another_plan_seed_or_version_are_refused_and_kept() {
    let scratch = Scratch::new().unwrap();
    let mut store = Store::open(scratch.path(), &plan(PLAN), "1").unwrap();
    store.put_run(1, &run()).unwrap();
    drop(store);
    let refused = |plan: &Plan| {
        let message = Store::open(scratch.path(), plan, "1").err().unwrap().to_string();
        assert!(!message.contains('\n') && message.contains("--out"), "{message}");
        message
    };
    let other = plan(&PLAN.replace("'on'", "'close'"));
    assert!(refused(&other).contains("another plan"));
    let seed = Choice { seed: Some(99), ..Choice::default() };
    let seed = Plan::parse(PLAN.to_string(), &seed).unwrap();
    assert!(refused(&seed).contains("another plan"));
    let path = scratch.path().join(FILE_NAME);
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
    assert!(refused(&plan(PLAN)).contains("schema version 2"));
    connection.pragma_update(None, "user_version", SCHEMA_VERSION).unwrap();
    drop(connection);
    let store = Store::open(scratch.path(), &plan(PLAN), "1").unwrap();
    assert_eq!(store.finished(false).unwrap().len(), 1);
}

#[test]
fn a_second_campaign_in_the_same_place_is_refused() {
    let scratch = Scratch::new().unwrap();
    let first = Store::open(scratch.path(), &plan(PLAN), "1").unwrap();
    let message = Store::open(scratch.path(), &plan(PLAN), "1").err().unwrap().to_string();
    assert!(message.contains("under way") && message.contains("--out"), "{message}");
    assert!(Store::open_existing(scratch.path()).is_ok());
    drop(first);
    assert!(Store::open(scratch.path(), &plan(PLAN), "1").is_ok());
}

#[test]
fn what_is_no_database_or_not_there_is_refused() {
    let scratch = Scratch::new().unwrap();
    let message = Store::open_existing(scratch.path()).err().unwrap().to_string();
    assert!(message.contains("no results.sqlite"), "{message}");
    std::fs::write(scratch.path().join(FILE_NAME), "no database, but some text in its place")
        .unwrap();
    let message = Store::open_existing(scratch.path()).err().unwrap().to_string();
    assert!(message.contains("no results file") && !message.contains('\n'), "{message}");
    assert!(Store::open(scratch.path(), &plan(PLAN), "1").is_err());
}

#[test]
fn a_full_disk_is_said_in_one_line_and_what_is_finished_stays() {
    let scratch = Scratch::new().unwrap();
    let mut store = Store::open(scratch.path(), &plan(PLAN), "1").unwrap();
    store.put_run(1, &run()).unwrap();
    // As many pages as there are: the next one does not fit, as on a full disk.
    let pages: i64 =
        store.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    store.connection.pragma_update(None, "max_page_count", pages).unwrap();
    let large = Run {
        repetition: 1,
        measured: (0..5000).map(|number| measured(&format!("track {number}"))).collect(),
        ..Run::default()
    };
    let message = store.put_run(0, &large).unwrap_err().to_string();
    assert!(message.contains("make room") && !message.contains('\n'), "{message}");
    assert_eq!(store.finished(false).unwrap(), BTreeSet::from([(1, 2)]));
}
