//! What an operator is told, and what becomes of a side whose log nobody takes.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.
#![allow(clippy::print_stdout)] // Tests say why they are skipped.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything here may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A side that is ready; killed when dropped.
struct Side {
    child: Child,
    address: String,
}

impl Side {
    fn start(args: &[&str], log: Stdio) -> Self {
        Self::run(Command::new(env!("CARGO_BIN_EXE_longwire")).args(args), log)
    }

    fn run(command: &mut Command, log: Stdio) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on ").expect(&line).trim_end().to_owned();
        Self { child, address }
    }

    /// The same with what it logs, as JSON; `more` may say at which level.
    fn logged(args: &[&str], more: &[&str]) -> (Self, Log) {
        Self::run_logged(Command::new(env!("CARGO_BIN_EXE_longwire")).args(args).args(more))
    }

    /// The same with a command to which options may be added.
    fn run_logged(command: &mut Command) -> (Self, Log) {
        let command = command.args(["--listen", "127.0.0.1:0", "--log-format", "json"]);
        let mut side = Self::run(command, Stdio::piped());
        let (log, lines) = (Log::default(), side.child.stderr.take().unwrap());
        let into = Arc::clone(&log.0);
        std::thread::spawn(move || {
            for line in BufReader::new(lines).lines() {
                let line = line.unwrap();
                let value: Value = serde_json::from_str(&line).expect(&line);
                // A key that stands there twice is lost with the reading.
                assert_eq!(value.to_string().len(), line.len(), "{line}");
                into.lock().unwrap().push(value);
            }
        });
        (side, log)
    }

    /// The value of a sample on the page of metrics.
    fn metric(admin: &str, sample: &str) -> f64 {
        let page = get(admin, "/metrics");
        let line = page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    /// Ends it as a service manager would; its exit status.
    fn terminate(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::yield_now();
        }
        None
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a side has logged so far.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Value>>>);

impl Log {
    fn all(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }

    /// Waits for lines with this message for which `holds`; gives all there are then.
    fn wait(&self, message: &str, holds: impl Fn(&Value) -> bool) -> Vec<Value> {
        let started = Instant::now();
        loop {
            let fits = |line: &Value| line["message"] == message && holds(line);
            let found: Vec<Value> = self.all().into_iter().filter(fits).collect();
            if !found.is_empty() {
                return found;
            }
            assert!(started.elapsed() < PATIENCE, "no '{message}' in {:#?}", self.all());
            std::thread::yield_now();
        }
    }

    /// The one line of the exchange whose target ends so.
    fn exchange(&self, target: &str) -> Value {
        let ends =
            |line: &Value| line["target"].as_str().is_some_and(|text| text.ends_with(target));
        let found = self.wait("exchange", ends);
        assert_eq!(found.len(), 1, "{found:#?}");
        found.into_iter().next().unwrap()
    }

    /// Where a side listens beside its own address.
    fn address(&self, message: &str, field: &str) -> String {
        let found = self.wait(message, |_| true);
        found[0][field].as_str().unwrap().to_owned()
    }
}

/// An origin that answers every connection's first request with the same.
fn origin() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n",
            );
        }
    });
    url
}

fn get(edge: &str, url: &str) -> String {
    let mut stream = TcpStream::connect(edge).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {url} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Places for a log that take nothing: a full disk, a pipe whose reader is gone, and one whose
/// reader does not read.
fn places() -> Vec<(&'static str, Stdio, Option<std::io::PipeReader>)> {
    let full: File = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (gone, closed) = std::io::pipe().unwrap();
    drop(gone);
    let (silent, stuck) = std::io::pipe().unwrap();
    vec![
        ("a full disk", full.into(), None),
        ("a closed pipe", closed.into(), None),
        ("a pipe that nobody reads", stuck.into(), Some(silent)),
    ]
}

#[test]
fn a_log_that_cannot_be_written_stops_no_side() {
    for side in ["edge", "gateway"] {
        for (place, log, _kept) in places() {
            let url = origin();
            let (mut at_edge, mut at_gateway) = (Stdio::null(), Stdio::null());
            match side {
                "edge" => at_edge = log,
                _ => at_gateway = log,
            }
            let listen = ["--listen", "127.0.0.1:0", "--log", "trace"];
            let gateway = [&["gateway", "--allow", &url][..], &listen].concat();
            let gateway = Side::start(&gateway, at_gateway);
            let edge = [&["edge", "--gateway", &gateway.address][..], &listen].concat();
            let edge = Side::start(&edge, at_edge);
            // Enough lines to fill a pipe.
            for number in 0..200 {
                let answer = get(&edge.address, &format!("{url}/{number}"));
                assert!(answer.starts_with("HTTP/1.1 200 OK"), "{side}, {place}: {answer}");
            }
            assert_eq!(edge.terminate(), Some(0), "{side}, {place}");
            assert_eq!(gateway.terminate(), Some(0), "{side}, {place}");
        }
    }
}

/// Size of the file system for a store.
const DISK_KIB: u64 = 512;

/// A command of the binary with `--store` on a small file system of its own; `None`,
/// with the reason printed, where this machine does not let us mount one.
fn on_a_small_disk(folder: &str, args: &[&str]) -> Option<Command> {
    let options = format!("size={DISK_KIB}k,mode=700");
    let mount = format!("mount -t tmpfs -o {options} tmpfs \"$0\" && exec \"$@\"");
    let command = |inner: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &mount, folder]);
        command.args(inner);
        command
    };
    match command(&["true"]).output() {
        Ok(output) if output.status.success() => {
            let binary = [env!("CARGO_BIN_EXE_longwire")];
            Some(command(&[&binary, args, &["--store", folder]].concat()))
        }
        Ok(output) => {
            println!("skipped: {}", String::from_utf8_lossy(&output.stderr));
            None
        }
        Err(error) => {
            println!("skipped: unshare: {error}");
            None
        }
    }
}

#[test]
fn a_full_disk_under_the_store_stops_no_side_and_is_reported() {
    let folder = std::env::temp_dir().join(format!("longwire-full-disk-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let shown = folder.to_str().unwrap();
    let url = origin();
    for full in ["edge", "gateway"] {
        let (gateway, edge) = (["gateway", "--allow", &url], ["edge", "--gateway"]);
        let (gateway, at_gateway) = match full {
            "gateway" => match on_a_small_disk(shown, &gateway) {
                Some(mut command) => Side::run_logged(&mut command),
                None => return,
            },
            _ => Side::logged(&gateway, &[]),
        };
        let edge = [&edge[..], &[&gateway.address]].concat();
        let (edge, at_edge) = match full {
            "edge" => match on_a_small_disk(shown, &edge) {
                Some(mut command) => Side::run_logged(&mut command),
                None => return,
            },
            _ => Side::logged(&edge, &[]),
        };
        let (side, log) = if full == "edge" { (&edge, at_edge) } else { (&gateway, at_gateway) };
        assert!(get(&edge.address, &format!("{url}/before")).starts_with("HTTP/1.1 200 OK"));
        // Through the process, for the file system is there for it alone.
        let filler = format!("/proc/{}/root{shown}/filler", side.child.id());
        let mut file = File::create(&filler).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        for number in 0..50 {
            let answer = get(&edge.address, &format!("{url}/{number}"));
            assert!(answer.starts_with("HTTP/1.1 200 OK"), "{full}: {answer}");
        }
        let reported = log.wait("the store cannot be written: its history has gaps", |_| true);
        assert!(reported[0]["why"].as_str().unwrap().contains("full"), "{full}: {reported:?}");
        assert_eq!(reported.len(), 1, "{full}: once is enough: {reported:?}");
        drop(file);
        std::fs::remove_file(&filler).unwrap();
        let answer = get(&edge.address, &format!("{url}/after"));
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{full}: {answer}");
        assert_eq!(edge.terminate(), Some(0), "{full}");
        assert_eq!(gateway.terminate(), Some(0), "{full}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn bad_use_has_its_status_though_no_message_can_be_written() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    let status = command.args(["edge", "--listen", "nowhere"]).stderr(full).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

/// A service that changes protocols, streams events, or echoes inside of a tunnel.
fn service() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut head = [0; 4096];
                let read = stream.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..read]).into_owned();
                let answer = if head.contains("/events") {
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n"
                } else if head.contains("/socket") {
                    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
                     Upgrade: websocket\r\n\r\n"
                } else if head.starts_with("hello") {
                    "world"
                } else {
                    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nabcde"
                };
                let _ = stream.write_all(answer.as_bytes());
                // Until the other end closes.
                let _ = std::io::copy(&mut stream, &mut std::io::sink());
            });
        }
    });
    address
}

/// Sends a head, reads until `until` has come, and goes.
fn ask(proxy: &str, head: &str, then: &str, until: &str) {
    let mut stream = TcpStream::connect(proxy).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut came = Vec::new();
    let mut buffer = [0; 4096];
    let mut then = Some(then);
    while !String::from_utf8_lossy(&came).contains(until) {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "{:?}", String::from_utf8_lossy(&came));
        came.extend_from_slice(&buffer[..read]);
        if let (true, Some(then)) = (came.ends_with(b"\r\n\r\n"), then.take()) {
            stream.write_all(then.as_bytes()).unwrap();
        }
    }
}

#[test]
fn every_exchange_has_one_line_that_says_what_it_was() {
    let service = service();
    let allow = format!("http://{service}");
    let admin = ["--admin", "127.0.0.1:0"];
    let (gateway, at_gateway) = Side::logged(
        &["gateway", "--allow", &allow, "--allow", &format!("https://{service}")],
        &["--http-listen", "127.0.0.1:0", "--log", "trace"],
    );
    let (edge, at_edge) = Side::logged(&["edge", "--gateway", &gateway.address], &admin);
    let metrics = at_edge.address("admin interface", "admin");
    let proxy = &edge.address;
    let head = |method: &str, target: &str, more: &str| {
        format!("{method} {target} HTTP/1.1\r\nHost: {service}\r\n{more}\r\n")
    };

    ask(proxy, &head("GET", &format!("{allow}/x?token=s3cret&y=1"), ""), "", "abcde");
    let line = at_edge.exchange("/x?token=[cut]&y=1");
    assert_eq!(line["client"], "127.0.0.1");
    assert_eq!((&line["method"], &line["way"]), (&"GET".into(), &"pair".into()));
    assert_eq!((&line["status"], &line["cause"]), (&200.into(), &"ok".into()));
    assert_eq!((&line["answer_bytes"], &line["level"]), (&5.into(), &"INFO".into()));
    assert!(line["answer_wire_bytes"].as_u64().unwrap() > 5, "{line:#}");
    assert!(line["request_wire_bytes"].as_u64().unwrap() > 5, "{line:#}");
    assert_eq!(line["answer_encoding"], "identity");
    let same = at_gateway.exchange("/x?token=[cut]&y=1");
    for field in ["exchange", "method", "status", "way", "cause", "answer_bytes"] {
        assert_eq!(same[field], line[field], "{field}: {same:#}");
    }

    let tunnel = format!("CONNECT {service} HTTP/1.1\r\nHost: a\r\n\r\n");
    ask(proxy, &tunnel, "hello", "world");
    let line = at_edge.wait("exchange", |line| line["method"] == "CONNECT");
    assert_eq!((&line[0]["status"], &line[0]["level"]), (&200.into(), &"INFO".into()));
    assert_eq!((&line[0]["request_bytes"], &line[0]["answer_bytes"]), (&5.into(), &5.into()));
    assert!(line[0]["answer_wire_bytes"].as_u64().unwrap() > 5, "{:#}", line[0]);

    let upgrade = "Connection: upgrade\r\nUpgrade: websocket\r\n";
    ask(proxy, &head("GET", &format!("{allow}/socket"), upgrade), "", "101 Switching");
    assert_eq!(at_edge.exchange("/socket")["status"], 101);

    ask(proxy, &head("GET", &format!("{allow}/events"), ""), "", "data: 1");
    let line = at_edge.exchange("/events");
    assert_eq!((&line["status"], &line["level"]), (&200.into(), &"INFO".into()));
    assert!(line["answer_bytes"].as_u64().unwrap() > 0, "{line:#}");

    ask(proxy, &head("GET", "http://127.0.0.1:1/no", ""), "", "403 ");
    let line = at_edge.exchange("/no");
    assert_eq!((&line["status"], &line["cause"]), (&403.into(), &"http_request_denied".into()));
    assert_eq!(line["level"], "INFO");
    ask(proxy, "GET ftp://a/b HTTP/1.1\r\nHost: a\r\n\r\n", "", "400 ");
    assert_eq!(at_edge.exchange("ftp://a/b")["status"], 400);
    ask(proxy, "no request\r\n\r\n", "", "400 ");
    let line = at_edge.wait("exchange", |line| line["method"] == "");
    assert_eq!((&line[0]["status"], &line[0]["cause"]), (&400.into(), &"bad_request".into()));

    let http = at_gateway.address("listener for clients without an edge", "http");
    ask(&http, &head("GET", &format!("{allow}/edgeless"), ""), "", "abcde");
    let line = at_gateway.exchange("/edgeless");
    assert_eq!((&line["way"], &line["answer_bytes"]), (&"edgeless".into(), &5.into()));

    // None of this was a failure: what its gateway forbids an edge does not even begin.
    let count = |sample: &str| Side::metric(&metrics, sample);
    for cause in ["forbidden", "client_gone", "origin_failed", "carrier_lost"] {
        let sample = format!("longwire_exchanges_failed_total{{cause=\"{cause}\"}}");
        assert!(count(&sample) < 0.1, "{cause}");
    }
    let classes =
        |class: &str| format!("longwire_responses_total{{way=\"pair\",class=\"{class}\"}}");
    assert!((count(&classes("2xx")) - 3.0).abs() < 0.1);
    assert!((count(&classes("4xx")) - 3.0).abs() < 0.1);
    for line in at_edge.all().iter().chain(&at_gateway.all()) {
        assert!(!line.to_string().contains("s3cret"), "{line:#}");
    }
}

/// Carries connections to `to`, and counts what passes: towards it, and back.
fn tap(to: &str) -> (String, [Arc<AtomicU64>; 2]) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, to) = (listener.local_addr().unwrap().to_string(), to.to_owned());
    let counts: [Arc<AtomicU64>; 2] = [Arc::default(), Arc::default()];
    let counted = counts.clone();
    std::thread::spawn(move || {
        for near in listener.incoming() {
            let (near, far) = (near.unwrap(), TcpStream::connect(&to).unwrap());
            let ways = [
                (near.try_clone().unwrap(), far.try_clone().unwrap(), &counted[0]),
                (far, near, &counted[1]),
            ];
            for (mut from, mut to, count) in ways {
                let count = Arc::clone(count);
                std::thread::spawn(move || {
                    let mut buffer = [0; 16 * 1024];
                    while let Ok(read @ 1..) = from.read(&mut buffer) {
                        count.fetch_add(read as u64, Ordering::Relaxed);
                        if to.write_all(&buffer[..read]).is_err() {
                            break;
                        }
                    }
                });
            }
        }
    });
    (address, counts)
}

#[test]
fn wire_bytes_are_those_that_crossed_whatever_became_of_them() {
    let service = service();
    let allow = format!("http://{service}");
    let (gateway, _) = Side::logged(
        &["gateway", "--allow", &allow, "--allow", &format!("https://{service}")],
        &[],
    );
    let (via, counts) = tap(&gateway.address);
    let (edge, log) = Side::logged(&["edge", "--gateway", &via], &["--admin", "127.0.0.1:0"]);
    let admin = log.address("admin interface", "admin");
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
    ask(&edge.address, &get(&format!("{allow}/x")), "", "abcde");
    let tunnel = format!("CONNECT {service} HTTP/1.1\r\nHost: a\r\n\r\n");
    // What is open counts as well.
    let mut open = TcpStream::connect(&edge.address).unwrap();
    open.write_all(tunnel.as_bytes()).unwrap();
    ask(&edge.address, &tunnel, "hello", "world");
    ask(&edge.address, &get(&format!("{allow}/events")), "", "data: 1");
    ask(&edge.address, &get("http://127.0.0.1:1/refused"), "", "403 ");
    let near = |reported: f64, count: u64| (reported - count as f64).abs() <= 0.01 * count as f64;
    let started = Instant::now();
    loop {
        let reported = ["sent", "received"].map(|direction| {
            let sample = |name: &str| {
                Side::metric(&admin, &format!("longwire_{name}{{direction=\"{direction}\"}}"))
            };
            (sample("wire_bytes_total"), sample("wire_packet_bytes_total"))
        });
        let crossed = counts.clone().map(|count| count.load(Ordering::Relaxed));
        if reported.iter().zip(crossed).all(|((bytes, _), crossed)| near(*bytes, crossed)) {
            for (bytes, packet_bytes) in reported {
                assert!(bytes > 100.0 && packet_bytes > bytes + 40.0, "{reported:?}");
            }
            return;
        }
        assert!(started.elapsed() < PATIENCE, "{reported:?} {crossed:?}");
        std::thread::yield_now();
    }
}

#[test]
fn the_page_of_metrics_is_as_its_readers_want_it() {
    let service = service();
    let (gateway, at_gateway) = Side::logged(
        &["gateway", "--allow", &format!("http://{service}")],
        &["--admin", "127.0.0.1:0"],
    );
    let (edge, at_edge) =
        Side::logged(&["edge", "--gateway", &gateway.address], &["--admin", "127.0.0.1:0"]);
    let head = format!("GET http://{service}/x HTTP/1.1\r\nHost: a\r\n\r\n");
    ask(&edge.address, &head, "", "abcde");
    at_edge.exchange("/x");
    for log in [at_edge, at_gateway] {
        let page = get(&log.address("admin interface", "admin"), "/metrics");
        let (_, text) = page.split_once("\r\n\r\n").unwrap();
        let build = concat!("longwire_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"");
        assert!(text.contains(build), "{text}");
        assert!(text.contains("longwire_responses_total{way=\"pair\",class=\"2xx\"} 1\n"));
        let promtool = std::env::var_os("PROMTOOL").unwrap_or_else(|| "promtool".into());
        let mut check = Command::new(promtool);
        let check = check.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut child) = check.stderr(Stdio::piped()).spawn() else {
            return println!("skipped: no promtool here; apt install prometheus");
        };
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    }
}

#[test]
fn the_first_line_says_what_runs_and_what_to_beware_of() {
    let (_edge, log) = Side::logged(&["edge"], &[]);
    let first = &log.wait("edge starts", |_| true)[0];
    assert_eq!(first["version"], env!("CARGO_PKG_VERSION"));
    assert!(first["listen"].as_str().unwrap().starts_with("127.0.0.1:"), "{first:#}");
    let is_warning = |line: &Value| line["level"] == "WARN";
    let warned = |log: &Log, part: &str| {
        let lines = log.all();
        lines.iter().any(|line| is_warning(line) && line.to_string().contains(part))
    };
    // What is logged before the ready line is there soon behind it.
    let started = Instant::now();
    while !warned(&log, "no gateway is named") {
        assert!(started.elapsed() < PATIENCE, "{:#?}", log.all());
        std::thread::yield_now();
    }
    assert!(!warned(&log, "is not loopback"));
    let mut side = Command::new(env!("CARGO_BIN_EXE_longwire"));
    let args = ["edge", "--listen", "0.0.0.0:0", "--gateway", "127.0.0.1:1", "--log", "warn"];
    let mut child = side.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let _ = child.kill();
    let _ = child.wait();
    assert!(line.contains("WARN") && line.contains("is not loopback"), "{line}");
}

#[test]
fn clients_leave_descriptors_to_the_carrier() {
    let url = origin();
    let start = |listen: &str| {
        Side::start(&["gateway", "--allow", &url, "--listen", listen], Stdio::null())
    };
    let gateway = start("127.0.0.1:0");
    let at = gateway.address.clone();
    let longwire = env!("CARGO_BIN_EXE_longwire");
    let edge = format!(
        "ulimit -n 96; exec '{longwire}' edge --listen 127.0.0.1:0 --gateway {at} --log-format json"
    );
    let mut command = Command::new("sh");
    let mut child =
        command.args(["-c", &edge]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut until = |parts: [&str; 2]| {
        let mut all = Vec::new();
        for line in lines.by_ref() {
            if parts.iter().all(|part| line.contains(part)) {
                return line;
            }
            all.push(line);
        }
        panic!("no {parts:?} in {all:#?}");
    };
    let mut ready = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
    let address = ready.strip_prefix("listening on ").unwrap().trim_end().to_owned();
    let edge = Side { child, address };
    let fits = until(["WARN", "does not fit"]);
    assert!(fits.contains("max_connections"), "{fits}");
    until(["INFO", "carrier up"]);
    let idle: Vec<_> = (0..200).filter_map(|_| TcpStream::connect(&edge.address).ok()).collect();
    until(["WARN", "nearly all file descriptors are in use"]);
    drop(gateway);
    let _gateway = start(&at);
    until(["INFO", "carrier up"]);
    drop(idle);
    assert!(get(&edge.address, &url).starts_with("HTTP/1.1 200 OK"));
}

#[test]
fn warnings_are_what_somebody_has_to_look_after() {
    let service = service();
    let allow = format!("http://{service}");
    let tunnel = format!("https://{service}");
    let (gateway, at_gateway) =
        Side::logged(&["gateway", "--allow", &allow, "--allow", &tunnel], &[]);
    let (edge, at_edge) = Side::logged(&["edge", "--gateway", &gateway.address], &[]);
    let connect = format!("CONNECT {service} HTTP/1.1\r\nHost: a\r\n\r\n");
    ask(&edge.address, &connect, "hello", "world");
    let events = format!("GET {allow}/events HTTP/1.1\r\nHost: a\r\n\r\n");
    ask(&edge.address, &events, "", "data: 1");
    at_edge.exchange("/events");
    let warnings = |log: &Log| -> Vec<Value> {
        log.all().into_iter().filter(|line| line["level"] != "INFO").collect()
    };
    // Nothing went wrong, also where the edge ends in order.
    assert_eq!(edge.terminate(), Some(0));
    at_gateway.wait("carrier closed", |_| true);
    assert_eq!((warnings(&at_edge), warnings(&at_gateway)), (vec![], vec![]));
    let (_edge, at_edge) = Side::logged(&["edge", "--gateway", &gateway.address], &[]);
    at_edge.wait("carrier up", |_| true);
    // A gateway that dies is one.
    drop(gateway);
    let down = at_edge.wait("carrier down", |_| true);
    assert_eq!(down[0]["level"], "WARN", "{down:#?}");
}

#[test]
fn a_gateway_that_is_away_is_reported_once_and_when_it_is_back() {
    let url = origin();
    let place = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = place.local_addr().unwrap().to_string();
    drop(place);
    let (_edge, log) = Side::logged(&["edge", "--gateway", &at], &["--log", "debug"]);
    let started = Instant::now();
    let attempts = |level: &str| {
        let reported =
            |line: &&Value| line["message"] == "gateway unreachable" && line["level"] == level;
        log.all().iter().filter(reported).count()
    };
    while attempts("DEBUG") < 3 {
        assert!(started.elapsed() < PATIENCE, "{:#?}", log.all());
        std::thread::yield_now();
    }
    assert_eq!(attempts("WARN"), 1);
    let _gateway = Side::start(&["gateway", "--allow", &url, "--listen", &at], Stdio::null());
    let up = log.wait("carrier up", |_| true);
    assert!(up[0]["attempts"].as_u64().unwrap() >= 4, "{up:#?}");
}

/// An origin that gives back the head that it got.
fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            let length = head.len();
            let answer =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).and_then(|()| stream.write_all(&head));
        }
    });
    url
}

#[test]
fn a_trace_passes_the_pair_and_both_logs_have_its_id() {
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    let (url, vendor) = (echo(), "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
    let (gateway, at_gateway) = Side::logged(&["gateway", "--allow", &url], &[]);
    let (edge, at_edge) = Side::logged(&["edge", "--gateway", &gateway.address], &[]);
    let ask = |path: &str, fields: &str| {
        let mut stream = TcpStream::connect(&edge.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {url}{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.to_ascii_lowercase()
    };
    let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
    let answer = ask("/good", &format!("Traceparent: {parent}\r\nTracestate: {vendor}\r\n"));
    for field in [format!("traceparent: {parent}\r\n"), format!("tracestate: {vendor}\r\n")] {
        assert!(answer.contains(&field.to_ascii_lowercase()), "{answer}");
    }
    // What is none passes too, and is not in the log.
    let answer = ask("/bad", "traceparent: 00-0-0-0\r\n");
    assert!(answer.contains("traceparent: 00-0-0-0\r\n"), "{answer}");
    ask("/none", "");
    for log in [at_edge, at_gateway] {
        assert_eq!(log.exchange("/good")["trace"], TRACE);
        assert!(log.exchange("/bad").get("trace").is_none());
        assert!(log.exchange("/none").get("trace").is_none());
    }
}
