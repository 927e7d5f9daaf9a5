//! `longwire history` and `longwire explain` as processes, beside one that writes; and what a pair
//! that is killed still knows.

#![allow(clippy::unwrap_used)] // Tests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use proxy::store::{History, Store, StoreSettings};
use record::decision::{
    Asked, Base, Candidate, Decision, Direction, Entry, Figure, Forbidden, Link, Outcome, Parts,
    Revision, Route, RouteCandidate, Split,
};
use record::event::Fact;

/// A store with decisions, gone at the end.
struct Kept {
    directory: PathBuf,
    /// None once it is closed.
    store: Option<Store>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn parts(bytes: u64, encode_s: f64, network_s: f64, decode_s: f64) -> Parts {
    Parts { bytes, encode_s, network_s, decode_s, wait_s: 0.0 }
}

fn decision(service: &str) -> Decision {
    let candidate =
        |encoding: &str, expected| Candidate { encoding: encoding.to_owned(), expected };
    let expected = parts(2000, 0.001, 0.600, 0.001);
    Decision {
        service: service.to_owned(),
        peer: None,
        class: "00000000000000ff".to_owned(),
        content_type: Some("text/xml".to_owned()),
        body_bytes: 10_000,
        head_share: 0.25,
        objective: "time".to_owned(),
        expected,
        candidates: vec![
            candidate("identity", parts(10_000, 0.0, 0.9, 0.0)),
            candidate("zstd:3", expected),
            candidate("xmill:5", parts(1500, 0.030, 0.580, 0.020)),
        ],
        forbidden: vec![Forbidden {
            encoding: "brotli:9".to_owned(),
            why: "the peer does not decode it".to_owned(),
        }],
        link: Link { rate_bps: Figure { value: 250e3, weight: 12.0 }, ..Link::default() },
        probe: Some("xmill:5".to_owned()),
        base: Some(Base::Dictionary { sha256: "5f".repeat(32), version: 3 }),
        edgeless: false,
        route: Some(Route {
            carrier: "burst".to_owned(),
            reason: "its answer is expected first".to_owned(),
            candidates: [("stream", 4.0), ("burst", 0.25)]
                .map(|(carrier, expected_s)| RouteCandidate {
                    carrier: carrier.to_owned(),
                    expected_s,
                })
                .into(),
        }),
    }
}

fn kept(name: &str) -> Kept {
    let directory = std::env::temp_dir().join(format!("longwire-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    let place = StoreSettings {
        directory: directory.clone(),
        history_rows: 100,
        history_bytes: 1 << 20,
        age: StoreSettings::AGE,
    };
    let mut store = Store::open(&place, "learned").unwrap();
    for (number, service) in [(1, "http://tracks.example"), (2, "http://\u{1b}[31mred.example")] {
        store.observe(Fact::Chosen {
            exchange: format!("{:016x}{number:016x}", 0xabcd),
            direction: Direction::Request,
            encoding: "zstd:3".to_owned(),
            reason: "expected to arrive soonest".to_owned(),
            decision: Some(Box::new(decision(service))),
        });
    }
    let outcome = Outcome {
        encoding: "zstd:3".to_owned(),
        body_bytes: 10_000,
        expected: parts(2000, 0.001, 0.600, 0.001),
        actual: parts(2500, 0.002, 1.300, 0.001),
        split: Split { encode_s: 0.001, decode_s: 0.0, network_s: 0.650, size_s: 0.050 },
        revisions: vec![Revision {
            at_bytes: 8000,
            encoding: "identity".to_owned(),
            reason: "no coding \u{1b}gains enough".to_owned(),
        }],
    };
    let exchange = format!("{:016x}{:016x}", 0xabcd, 1);
    store.requests().note(&exchange, || Asked {
        method: "POST".to_owned(),
        target: "http://tracks.example/\u{1b}[31m?token=[cut]".to_owned(),
        status: Some(201),
        client: "192.0.2.7".to_owned(),
        trace: Some("0af7651916cd43dd8448eb211c80319c".to_owned()),
    });
    store.observe(Fact::Outcome { exchange, direction: Direction::Request, outcome });
    assert!(store.flush());
    Kept { directory, store: Some(store) }
}

/// Where few bytes are wanted, nothing says what would have been faster.
#[test]
fn explain_weighs_by_what_was_wanted() {
    let mut kept = kept("bytes");
    let store = kept.store.as_mut().unwrap();
    let (exchange, direction) = (format!("{:016x}{:016x}", 0xabcd, 3), Direction::Request);
    let encoding = "identity".to_owned();
    let wanted = Decision { objective: "bytes".to_owned(), ..decision("http://few.example") };
    store.observe(Fact::Chosen {
        exchange: exchange.clone(),
        direction,
        encoding: encoding.clone(),
        reason: "expected to take the fewest bytes".to_owned(),
        decision: Some(Box::new(wanted)),
    });
    let actual = parts(10_000, 0.0, 9.0, 0.0);
    let (expected, split) = (parts(10_000, 0.0, 0.9, 0.0), Split::default());
    let outcome =
        Outcome { encoding, body_bytes: 10_000, expected, actual, split, revisions: Vec::new() };
    store.observe(Fact::Outcome { exchange: exchange.clone(), direction, outcome });
    assert!(store.flush());
    let why = text(&run(&kept, "explain", &[&exchange]));
    assert!(why.contains("xmill:5 was expected to take 8500 bytes fewer"), "{why}");
    assert!(!why.contains("faster"), "{why}");
}

fn run(kept: &Kept, command: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_longwire"))
        .arg(command)
        .arg("--store")
        .arg(&kept.directory)
        .args(arguments)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn history_tells_what_was_expected_and_what_came() {
    let kept = kept("history");
    let all = text(&run(&kept, "history", &[]));
    let lines: Vec<&str> = all.lines().collect();
    assert_eq!(lines.len(), 3, "{all}");
    let words: Vec<&str> = lines[1].split_whitespace().collect();
    let expected = "request http://tracks.example zstd:3 602 ms 1.30 s +701 ms +1.00 ms 0.00 us \
                    +650 ms +50.0 ms 10000 2500 \
                    201 192.0.2.7 POST http://tracks.example/?[31m?token=[cut]";
    assert!(words.join(" ").ends_with(expected), "{all}");
    assert!(lines[2].contains(" - ") && !all.contains('\u{1b}'), "{all}");

    let one = text(&run(&kept, "history", &["--service", "tracks", "--json"]));
    assert_eq!(one.lines().count(), 1);
    let entry: serde_json::Value = serde_json::from_str(&one).unwrap();
    assert_eq!(entry["outcome"]["split"]["network_s"], 0.650);
    assert_eq!(entry["request"]["status"], 201);
    assert_eq!(text(&run(&kept, "history", &["--limit", "1"])).lines().count(), 2);
    for (since, lines) in [("2 h", 3), ("2026-11-21", 3), ("2999-01-01T00:00:00Z", 1)] {
        assert_eq!(text(&run(&kept, "history", &["--since", since])).lines().count(), lines);
    }
}

#[test]
fn explain_tells_why_and_what_would_have_been() {
    let kept = kept("explain");
    let id = format!("{:016x}{:016x}", 0xABCD, 1);
    let why = text(&run(&kept, "explain", &[&id]));
    for expected in [
        "for POST http://tracks.example/?[31m?token=[cut]: 201, requester 192.0.2.7, trace",
        ", trace 0af7651916cd43dd8448eb211c80319c\n",
        "chosen: zstd:3: expected to arrive soonest",
        "  dictionary 5f5f5f5f",
        "5f5f5f5f, version 3",
        "  carrier: burst: its answer is expected first\n    burst           250 ms for",
        "    stream          4.00 s for the request and its answer\n",
        "rate       250 kbit/s (weight of 12.0 measurements)",
        "brotli:9     not allowed: the peer does not decode it",
        "revision: from byte 8000 on identity: no coding",
        "10000 bytes became 2500, 2000 were expected",
        "off by +701 ms",
        "of the error   +650 ms",
        // The model said 0.65 s for what took 1.3: what xmill needs on the network doubles as well.
        "1.21 s",
        "In hindsight xmill:5 may have been 93.0 ms faster",
    ] {
        assert!(why.contains(expected), "{expected}: {why}");
    }
    let json = text(&run(&kept, "explain", &[&id[..], "--json"]));
    let all: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(all[0]["decided"]["decision"]["objective"], "time");
    assert_eq!(all[0]["decided"]["decision"]["base"]["version"], 3);
    let hindsight = all[0]["hindsight"].as_array().unwrap();
    assert_eq!((hindsight.len(), &hindsight[1]["total_s"]), (3, &serde_json::json!(1.303)));
    let pending = text(&run(&kept, "explain", &[&format!("{:016x}{:016x}", 0xabcd, 2)]));
    assert!(pending.contains("No receipt has come") && !pending.contains('\u{1b}'), "{pending}");
}

#[test]
fn bad_use_is_one_line_and_status_2() {
    let kept = kept("bad-use");
    for (command, arguments, expected) in [
        ("history", vec!["--limit", "0"], "'0'"),
        ("history", vec!["--limit", "many"], "'many'"),
        ("history", vec!["--since", "yesterday"], "is no time like '2026-11-21 03:04'"),
        ("history", vec!["--since", "2h30"], "is no time like"),
        ("explain", vec!["xyz"], "hexadecimal"),
        ("explain", vec!["ffff"], "in no decision"),
        ("explain", vec!["0000"], "several exchanges"),
        ("explain", vec![], "<ID>"),
    ] {
        let output = run(&kept, command, &arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{command} {arguments:?}: {error}");
        assert!(error.contains(expected) && error.trim().lines().count() == 1, "{error}");
        assert!(output.stdout.is_empty());
    }
    std::fs::remove_file(kept.directory.join("longwire.sqlite")).unwrap();
    let output = run(&kept, "history", &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--store"));
}

/// What is damaged is told in a line of its own; what is not is shown.
#[test]
fn a_row_that_cannot_be_read_is_reported_and_the_others_are_shown() {
    let mut kept = kept("unreadable");
    kept.store = None;
    let path = kept.directory.join("longwire.sqlite");
    let mut bytes = std::fs::read(&path).unwrap();
    // In the JSON of the second row, escaped as it is there.
    let at = bytes.windows(10).rposition(|window| window == b"u001b[31mr").unwrap();
    bytes[at + 9] = 0xff;
    std::fs::write(&path, bytes).unwrap();
    let id = |number: u64| format!("{:016x}{number:016x}", 0xabcd);
    for json in [&[][..], &["--json"]] {
        let output = run(&kept, "history", json);
        assert_eq!(text(&output).lines().count(), if json.is_empty() { 2 } else { 1 });
        let error = String::from_utf8(output.stderr).unwrap();
        let expected = "longwire: 1 row of the history cannot be read";
        assert!(error.starts_with(expected) && error.lines().count() == 1, "{error}");
        let output = run(&kept, "explain", &[&[&id(2)[..]], json].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{error}");
        assert!(error.contains(&id(2)) && error.contains("cannot be read"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        let output = run(&kept, "explain", &[&[&id(1)[..]], json].concat());
        assert!(text(&output).contains("tracks.example") && output.stderr.is_empty());
    }
}

/// A process that is ready; killed (SIGKILL) when dropped.
struct Running(Child, String);

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_longwire"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on ").unwrap().trim_end().to_owned();
        Self(child, address)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Fetches tracks so many times through a pair that keeps a store at the gateway, waits until the
/// history has what came of it, and kills the pair.
fn fetch(service: &str, store: &Path, times: usize) -> Vec<Entry> {
    let before =
        History::open(store).map_or(0, |history| history.last("", 999).unwrap().entries.len());
    let (allow, store_name) = (format!("http://{service}"), store.to_str().unwrap());
    let listen = ["--listen", "127.0.0.1:0"];
    // On loopback nothing would be worth a coding.
    let slow = ["--rate-cap", "200 kbit/s", "--store", store_name];
    let gateway = ["gateway", "--allow", &allow];
    let gateway = Running::start(&[&gateway[..], &listen, &slow].concat());
    let edge = Running::start(&[&["edge", "--gateway", &gateway.1][..], &listen].concat());
    for time in 0..times {
        let mut stream = TcpStream::connect(&edge.1).unwrap();
        // Another principal each time: nothing has a base.
        let request = format!("GET {allow}/rest/xml/10 HTTP/1.1\r\nHost: a\r\nCookie: {time}\r\n");
        write!(stream, "{request}Connection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200"));
    }
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        let entries =
            History::open(store).unwrap().last("", 999).unwrap().entries.split_off(before);
        let whole = |entry: &Entry| entry.outcome.is_some() && entry.request.is_some();
        if entries.len() == times && entries.iter().all(whole) {
            return entries;
        }
        assert!(Instant::now() < patience, "{entries:#?}");
        std::thread::yield_now();
    }
}

#[test]
fn a_pair_that_is_killed_goes_on_with_what_it_knew() {
    let store = std::env::temp_dir().join(format!("longwire-killed-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&store);
    let service = Running::start(&["serve", "tracks", "--listen", "127.0.0.1:0"]);
    let before = fetch(&service.1, &store, 12);
    let again = fetch(&service.1, &store, 1);
    // The outcomes were learned from once and for all, not to be learned from again.
    let place = StoreSettings {
        directory: store.clone(),
        history_rows: 999,
        history_bytes: 1 << 20,
        age: StoreSettings::AGE,
    };
    let left = Store::open(&place, "learned").unwrap().take_learned();
    assert!(left.state.is_some() && left.since.len() == 1, "{}", left.since.len());
    let (first, last, restarted) = (&before[0], &before[11], &again[0]);
    // What each expected of the encoding that the last went in.
    let expected = |entry: &Entry| {
        let candidates = &entry.decision.as_ref().unwrap().candidates;
        let one = candidates.iter().find(|candidate| candidate.encoding == last.encoding);
        one.unwrap().expected.bytes as f64
    };
    let bytes = last.outcome.as_ref().unwrap().actual.bytes as f64;
    let off = [first, last, restarted].map(|entry| (expected(entry) / bytes).ln().abs());
    println!("{}: off by {off:.3?} at first, at last, and killed", last.encoding);
    assert!(off[2] < 0.05 && off[2] < off[0], "{first:#?} {restarted:#?}");
    let class = |entry: &Entry| entry.decision.as_ref().map(|known| known.class.clone());
    assert_eq!(class(restarted), class(last));
    let _ = std::fs::remove_dir_all(&store);
}

/// The dictionary that the last answer was encoded with, and its exchange; asks until there is one.
fn encoded_with_dictionary(edge: &str, url: &str, store: &Path) -> (Base, String) {
    let patience = Instant::now() + Duration::from_secs(60);
    while Instant::now() < patience {
        let mut stream = TcpStream::connect(edge).unwrap();
        write!(stream, "GET {url} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
        let entry = History::open(store).unwrap().last("", 1).unwrap().entries.pop();
        let base = entry.and_then(|entry| Some((entry.decision?.base?, entry.exchange)));
        if let Some(found) = base {
            return found;
        }
        // sleep: a dictionary crosses, and is agreed on, while nobody asks.
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("no answer was encoded with a dictionary");
}

#[test]
fn a_pair_that_is_killed_uses_its_dictionaries_again() {
    let directory = std::env::temp_dir().join(format!("longwire-again-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let service = Running::start(&["serve", "tracks", "--listen", "127.0.0.1:0"]);
    let (allow, config) = (format!("http://{}", service.1), path("pair.toml"));
    let only = format!("[[service]]\nmatch = '{allow}'\nencodings = ['zstd-dictionary']\n");
    std::fs::write(&config, only).unwrap();
    let side = |command: &[&str], listen: &str, store: &str| {
        let store = path(store);
        let all = ["--listen", listen, "--store", &store, "--config", &config];
        Running::start(&[command, &all, &["--rate-cap", "200 kbit/s"]].concat())
    };
    let pair = |listen: &str| {
        let gateway = side(&["gateway", "--allow", &allow], listen, "gateway");
        (side(&["edge", "--gateway", &gateway.1], "127.0.0.1:0", "edge"), gateway)
    };
    let (url, store) = (format!("{allow}/rest/xml/1"), directory.join("gateway"));
    let (edge, gateway) = pair("127.0.0.1:0");
    let (before, _) = encoded_with_dictionary(&edge.1, &url, &store);
    let Base::Dictionary { sha256, version: 1 } = &before else { panic!("{before:?}") };
    // The edge knows a gateway without a key by its address.
    let address = gateway.1.clone();
    drop((edge, gateway));
    let (edge, _gateway) = pair(&address);
    let (after, exchange) = encoded_with_dictionary(&edge.1, &url, &store);
    assert_eq!(after, before, "it is the same, not one that was made anew");
    let why = Command::new(env!("CARGO_BIN_EXE_longwire"))
        .args(["explain", &exchange, "--store", store.to_str().unwrap()])
        .output()
        .unwrap();
    let (why, expected) = (text(&why), format!("  dictionary {sha256}, version 1\n"));
    assert!(why.contains(&expected), "{why}");
    println!("{expected}");
    let _ = std::fs::remove_dir_all(&directory);
}
