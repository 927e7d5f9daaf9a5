//! `longwire demo` as a process, on real hosts joined by emulated links. Where those are not
//! permitted the tests say so and pass.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use record::demo::{Demo, Mode};

/// Long enough for compressed tracks over los in both passes, too short for plain ones.
const BUDGET: &str = "2 s";

fn longwire(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A directory of this test's own, removed at its end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let name = format!("longwire-test-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The result, or none with the reason printed where the machine does not permit labs.
fn result_of(output: &Output) -> Option<Demo> {
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(1) && said.contains("not permitted") {
        println!("skipped: {said}");
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn run(directory: &Directory, arguments: &[&str]) -> Output {
    let common = ["demo", "--json", "--networks", "los", "--budget", BUDGET, "--out"];
    longwire(&[&common[..], &[directory.path()], arguments].concat()).output().unwrap()
}

/// Every cell has a result in which nothing failed and nothing was left out.
fn check_cells(demo: &Demo, things: usize) {
    assert_eq!(demo.cells.len(), Mode::ALL.len());
    for (cell, mode) in demo.cells.iter().zip(Mode::ALL) {
        let fetch = cell.fetch.as_ref().unwrap();
        assert_eq!((cell.mode, &cell.failure), (mode, &None));
        assert_eq!((fetch.measured.len(), fetch.warm_up.len()), (things, things), "{mode:?}");
        for exchange in fetch.warm_up.iter().chain(&fetch.measured) {
            assert_eq!(exchange.error, None, "{mode:?} {}", exchange.name);
        }
        assert!(fetch.warm_up[0].succeeded(), "{mode:?}");
        assert_eq!(fetch.gzip, mode == Mode::Gzip);
        assert_eq!(fetch.proxy.is_some(), mode == Mode::Longwire);
        assert_eq!(cell.congestion_control, ["cubic", "cubic"]);
        assert!(cell.up.bytes_in > 0 && cell.down.bytes_in > 0 && cell.lateness.count > 0);
    }
    let repeated = demo.cells.iter().filter(|cell| cell.repeated).count();
    println!("cells measured once more: {repeated}");
    assert!(demo.cells.iter().all(|cell| cell.repeated || !cell.is_spoilt()));
    let bytes = |mode: Mode| demo.cells[mode as usize].wire_bytes_per_exchange().unwrap();
    println!("bytes per answer: {:?}", Mode::ALL.map(bytes));
    assert!(bytes(Mode::Longwire) < bytes(Mode::Direct));
}

#[test]
fn every_way_has_a_result_and_the_report_is_there() {
    let directory = Directory::new("demo");
    let output = run(&directory, &["--services", "rest-json"]);
    let Some(demo) = result_of(&output) else { return };
    check_cells(&demo, 22);
    assert_eq!(
        demo.setting.machine.profile,
        if cfg!(debug_assertions) { "debug" } else { "release" }
    );
    // Two megabit in two seconds are half a megabyte; two passes of plain tracks are more.
    assert!(demo.cells[0].measured().iter().any(|exchange| exchange.censored));
    let read = |name: &str| std::fs::read_to_string(directory.0.join(name)).unwrap();
    assert_eq!(serde_json::from_str::<Demo>(&read("results.json")).unwrap(), demo);
    assert!(read("report.html").contains("los rest-json direct: the time budget ended"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("measuring: 0 of 3 cells, at most 0:0"), "{said}");
}

#[test]
fn a_service_of_ones_own_is_reached_from_inside() {
    let service = &mut longwire(&["serve", "tracks", "--listen", "127.0.0.1:0"]).spawn().unwrap();
    let address = first_line(service).trim_end().replace("listening on ", "");
    let url = format!("http://localhost:{}/rest/xml/9", address.rsplit(':').next().unwrap());
    let directory = Directory::new("url");
    let output = run(&directory, &["--url", &url]);
    service.kill().unwrap();
    service.wait().unwrap();
    let Some(demo) = result_of(&output) else { return };
    assert_eq!(demo.setting.url.as_deref(), Some(url.as_str()));
    let bytes = demo.services[0].items[0].body_bytes;
    assert!(bytes > 10_000);
    check_cells(&demo, 10);
    assert!(demo.cells.iter().all(|cell| cell.measured()[0].body_bytes == bytes));
}

#[test]
fn a_signal_ends_everything_and_leaves_nothing() {
    let directory = Directory::new("signal");
    let arguments = ["demo", "--networks", "satcom", "--services", "soap", "--out"];
    let mut demo = longwire(&[&arguments[..], &[directory.path()]].concat()).spawn().unwrap();
    let mut errors = BufReader::new(demo.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("measuring") {
        if errors.read_line(&mut said).unwrap() == 0 {
            assert!(said.contains("not permitted"), "{said}");
            println!("skipped: {said}");
            demo.wait().unwrap();
            return;
        }
    }
    let mark = format!("LONGWIRE_LAB_ID=demo-{}", demo.id());
    // Three services, an edge and a gateway; clients may have yet to start.
    assert!(marked(&mark) >= 5, "servers run");
    let kill = Command::new("kill").args(["-INT", &demo.id().to_string()]).status();
    assert!(kill.unwrap().success());
    errors.read_to_string(&mut said).unwrap();
    assert_eq!(demo.wait().unwrap().code(), Some(130), "{said}");
    assert!(said.contains("interrupted"), "{said}");
    assert_eq!(marked(&mark), 0);
    let left = std::env::temp_dir().join(format!("longwire-demo-{}-0", demo.id()));
    assert!(!left.exists());
}

/// Processes that carry this mark in their environment.
fn marked(mark: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let environments = entries.filter_map(|entry| std::fs::read(entry.path().join("environ")).ok());
    let is_marked = |environment: &Vec<u8>| {
        environment.split(|byte| *byte == 0).any(|one| one == mark.as_bytes())
    };
    environments.filter(is_marked).count()
}

#[test]
fn bad_use_is_refused_in_one_line_before_anything_is_built() {
    for (arguments, why) in [
        (&["--networks", "moon"][..], "'moon'"),
        (&["--networks", "los,los"], "twice"),
        (&["--services", "smtp"], "'smtp'"),
        (&["--budget", "0 s"], "from 1 s to 1 h"),
        (&["--url", "https://example.org/"], "no http URL"),
        (&["--url", "http://b/", "--services", "soap"], "cannot be used with"),
    ] {
        let directory = Directory::new("bad");
        let common = ["demo", "--out", directory.path()];
        let output = longwire(&[&common[..], arguments].concat()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        if said.contains("not permitted") {
            println!("skipped: {said}");
            continue;
        }
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(!directory.0.exists(), "{arguments:?}");
        assert!(
            said.contains(why) && said.trim_end().lines().count() == 1,
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn a_service_that_does_not_answer_is_named_at_once() {
    let directory = Directory::new("deaf");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let output = run(&directory, &["--url", &url]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let is_expected = said.contains(&url) && said.contains("refused");
    assert!(is_expected || said.contains("not permitted"), "{said}");
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line
}
