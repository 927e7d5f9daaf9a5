//! `longwire serve tracks` and `longwire fetch tracks` as processes: what they print and how they
//! end.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Tests.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};

use record::result::Fetch;

fn longwire(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(arguments).env("RUST_LOG", "info");
    command
}

fn output(arguments: &[&str]) -> Output {
    longwire(arguments).output().unwrap()
}

/// A service as a process, killed when a test ends early.
struct Service {
    child: Child,
    address: String,
}

impl Service {
    fn start() -> Self {
        Self::with(&[])
    }

    fn with(parameters: &[&str]) -> Self {
        let mut command = longwire(&["serve", "tracks", "--listen", "127.0.0.1:0"]);
        command.args(parameters);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on ").unwrap().to_owned();
        Self { child, address }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sends a signal by its name; gives the exit status and what was logged.
    fn end(mut self, signal: &str) -> (Option<i32>, String) {
        let pid = self.child.id().to_string();
        let kill = Command::new("sh").args(["-c", &format!("kill -{signal} {pid}")]).status();
        assert!(kill.unwrap().success());
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (self.child.wait().unwrap().code(), log)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_service_logs_to_stderr_and_ends_in_order_on_either_signal() {
    for signal in ["TERM", "INT"] {
        let service = Service::start();
        let url = service.url();
        let got = output(&["fetch", "tracks", "--url", &url, "--api", "soap", "--tracks", "1"]);
        assert!(got.status.success());
        let (status, log) = service.end(signal);
        assert_eq!(status, Some(0), "after SIG{signal}: {log}");
        assert_eq!(log.matches("answered").count(), 2, "{log}");
        assert!(!log.contains('\u{1b}'), "colours in a file: {log}");
    }
}

#[test]
fn json_is_what_the_schema_says_and_the_table_names_every_track() {
    let service = Service::start();
    let url = service.url();
    let common = ["fetch", "tracks", "--url", &url, "--api", "rest-json", "--gzip", "--cold"];
    let json = output(&[&common[..], &["--json"]].concat());
    let result: Fetch = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((result.measured.len(), result.errors, result.gzip), (22, 0, true));
    let table = String::from_utf8(output(&common).stdout).unwrap();
    for exchange in &result.measured {
        let row = table.lines().find(|line| line.starts_with(&format!("{} ", exchange.name)));
        assert!(row.is_some_and(|row| row.contains(&exchange.body_bytes.to_string())), "{table}");
    }
    assert!(table.contains("22 measured: 0 errors, 0 censored, 0 segments sent again"), "{table}");
}

#[test]
fn every_parameter_is_taken_and_the_client_takes_what_comes() {
    for chunking in ["off", "on", "close"] {
        let service = Service::with(&[
            "--keep-alive-timeout=90 s",
            "--compression=forced",
            &format!("--chunking={chunking}"),
            "--send-buffer=8192 B",
            "--header-buffer=16384 B",
            "--idle-timeout=30 s",
            "--read-timeout=30 s",
            "--write-timeout=60 s",
            "--poll-timeout=1 s",
            "--tcp-buffer=256 B",
            "--nodelay=off",
        ]);
        let url = service.url();
        let fetch = ["fetch", "tracks", "--url", &url, "--api", "soap", "--json"];
        let got = output(&[&fetch[..], &["--tracks", "1,22", "--warm-up", "1"]].concat());
        let result: Fetch = serde_json::from_slice(&got.stdout).unwrap();
        assert_eq!((result.errors, result.warm_up.len(), result.measured.len()), (0, 1, 2));
        let opened: Vec<_> = result.measured.iter().map(|one| one.connections).collect();
        let each_its_own = chunking == "close";
        assert_eq!(opened, if each_its_own { [1, 1] } else { [0, 0] }, "chunking {chunking}");
        let (_, log) = service.end("TERM");
        // What the service sent for the last track is compressed though nobody asked.
        let sent = log.lines().rfind(|line| line.contains("answered")).unwrap();
        let (_, sent) = sent.rsplit_once("bytes=").unwrap();
        let sent: u64 = sent.trim().parse().unwrap();
        assert!(sent < result.measured[1].body_bytes / 2, "{log}");
    }
}

#[test]
fn a_failed_measurement_is_still_a_result_and_the_status_tells() {
    // Port 1 of the loopback interface: nothing listens there.
    let got = output(&[
        "fetch",
        "tracks",
        "--url",
        "http://127.0.0.1:1",
        "--api",
        "soap",
        "--cold",
        "--json",
        "--tracks",
        "1-3",
    ]);
    let result: Fetch = serde_json::from_slice(&got.stdout).unwrap();
    assert_eq!((got.status.code(), result.errors, result.summary), (Some(1), 3, None));
}

#[test]
fn bad_use_ends_with_2_and_says_what_to_do() {
    let service = Service::start();
    let (url, taken) = (service.url(), service.address.as_str());
    let soap = |more: &[&'static str]| {
        [&["fetch", "tracks", "--url", "http://127.0.0.1:1", "--api", "soap"], more].concat()
    };
    let cases = [
        (vec!["serve", "tracks", "--listen", taken], "choose another port"),
        (vec!["serve", "tracks", "--listen", "8080"], "127.0.0.1:8080"),
        (vec!["serve", "tracks", "--listen", "127.0.0.1:0", "--congestion", "no-such"], "modprobe"),
        (vec!["serve", "tracks", "--keep-alive-timeout", "90"], "550 ms"),
        (vec!["serve", "tracks", "--idle-timeout", "0 s"], "1 ms to 24 h"),
        (vec!["serve", "tracks", "--compression", "gzip"], "forced"),
        (vec!["serve", "tracks", "--chunking", "yes"], "close"),
        (vec!["serve", "tracks", "--send-buffer", "8192"], "15 KB"),
        (vec!["serve", "tracks", "--tcp-buffer", "8 B"], "256 B to 16 MiB"),
        (vec!["serve", "tracks", "--nodelay", "true"], "off"),
        (soap(&["--warm-up", "23"]), "from 0 to 22"),
        (soap(&["--warm-up", "1", "--cold"]), "cannot be used"),
        (vec!["fetch", "tracks", "--url", &url, "--api", "rest"], "rest-xml"),
        (vec!["fetch", "tracks", "--url", "ftp://h", "--api", "soap"], "http://host:8080"),
        (soap(&["--tracks", "0-3"]), "1 to 22"),
        (soap(&["--timeout", "5"]), "550 ms"),
        (soap(&["--budget", "0 s"]), "200 s"),
        (soap(&["--proxy", "proxy:80"]), "http://host:8080"),
        (vec!["serve", "benchmark", "--files", "no-such-place"], "interop/tpch-files"),
        (vec!["serve", "benchmark", "--files", "x", "--seed", "1"], "cannot be used"),
        (vec!["fetch", "benchmark", "--url", &url, "--class", "tiny"], "medium"),
        (vec!["fetch", "benchmark", "--url", &url, "--form", "json"], "compact"),
        (vec!["fetch", "benchmark", "--url", &url, "--queries", "23"], "1 to 22"),
        (soap(&["--congestion", "no-such"]), "modprobe"),
    ];
    for (arguments, remedy) in cases {
        let got = output(&arguments);
        let line = String::from_utf8_lossy(&got.stderr);
        assert_eq!(got.status.code(), Some(2), "{arguments:?}: {line}");
        assert!(line.contains(remedy) && got.stdout.is_empty(), "{arguments:?}: {line}");
    }
}
