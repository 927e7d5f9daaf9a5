//! `longwire lab run` and what is made of its results, as a person meets them.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A directory of a test's own, gone at its end.
struct TestDirectory(PathBuf);

impl TestDirectory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lw-run-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn plan(&self, text: &str) -> PathBuf {
        let path = self.0.join("plan.toml");
        fs::write(&path, text).unwrap();
        path
    }

    fn out(&self) -> PathBuf {
        self.0.join("out")
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn lab(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.arg("lab").args(arguments).stdin(Stdio::null());
    command
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether hosts can be made here; says so when not. Asked once: tests side by side would be in the
/// way of each other, and be skipped.
fn can_make_hosts() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(probe)
}

fn probe() -> bool {
    let place = TestDirectory::new("probe");
    let plan = place.plan(
        "title = 'x'\nrepetitions = 1\n[client]\ntracks = '1'\nwarm_up = 0\n[[network]]\n\
         name = 'los'\n[[group]]\nname = 'g'\nservices = ['soap']\n",
    );
    let output = lab(&["run", text(&plan), "--out", text(&place.out())]).output().unwrap();
    if !output.status.success() {
        println!("skipped, no hosts here: {}", said(&output));
    }
    output.status.success()
}

// Plans bear a busy machine: what is asserted does not depend on so little.
const MIXED: &str = "
title = 'mixed'
repetitions = 1
limits = { lateness = '50 ms', wait = 0.25 }
[client]
tracks = '1,2'
warm_up = 1
[[network]]
name = 'los'
[[server]]
name = 'tracks'
services = ['soap', 'crashing', 'ending']
[[server]]
name = 'own'
command = ['{longwire}', 'serve', 'tracks', '--listen', '{listen}']
ready = { http = '/rest/json/1' }
services = ['rest-json']
share = true
[[server]]
name = 'mute'
command = ['sleep', '60']
ready_timeout = '300 ms'
services = ['soap']
[[command]]
name = 'crashing'
command = ['sh', '-c', 'exec >&-; sleep 0.2; exit 7']
[[command]]
name = 'ending'
command = ['{longwire}', 'fetch', 'url', '--url', '{url}/rest/xml/1', '--count', '1']
[[group]]
name = 'ours'
[group.settings]
chunking = ['on']
[[group]]
name = 'others'
server = 'own'
repetitions = 2
[[group]]
name = 'mute'
server = 'mute'
";

#[test]
fn what_goes_wrong_is_a_result_and_the_rest_is_measured() {
    if !can_make_hosts() {
        return;
    }
    let place = TestDirectory::new("mixed");
    let plan = place.plan(MIXED);
    let output =
        lab(&["run", text(&plan), "--out", text(&place.out()), "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let facts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(facts["runs"], 9, "{facts}");
    assert_eq!(facts["failed"], 1, "{facts}");
    let runs = fs::read_to_string(place.out().join("results.csv")).unwrap();
    let line = |cell: &str| runs.lines().find(|line| line.starts_with(cell)).unwrap().to_string();
    assert!(line("los/mute/soap").contains("was not ready in time"), "{runs}");
    // Our own server and a client that only ends: figures, and congestion control on both ends.
    for cell in ["los/tracks/soap/direct/default", "los/tracks/soap/direct/chunking=on"] {
        assert!(line(cell).contains(",cubic,"), "{}", line(cell));
    }
    assert!(line("los/own/rest-json").contains("los,own,rest-json,direct"));
    let exchanges = fs::read_to_string(place.out().join("exchanges.csv")).unwrap();
    let of = |cell: &str| {
        let lines = exchanges.lines().filter(|line| line.starts_with(cell));
        lines.map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(of("los/tracks/soap/direct/default").len(), 3);
    assert!(of("los/tracks/crashing/")[0].ends_with("the client ended with exit status: 7"));
    assert!(of("los/tracks/ending/direct/default")[0].ends_with(",0,"), "{exchanges}");
    let page = fs::read_to_string(place.out().join("report.html")).unwrap();
    assert!(page.contains("mixed") && page.trim_end().ends_with("</html>"));
}

const HOPELESS: &str = "
title = 'hopeless'
repetitions = 2
[[network]]
name = 'los'
[[server]]
name = 'portal'
command = ['/nonexist', '{listen}']
services = ['page']
[[server]]
name = 'own'
command = ['{longwire}', 'serve', 'tracks', '--listen', '{listen}']
services = ['crashing']
[[command]]
name = 'page'
command = ['true']
[[command]]
name = 'crashing'
command = ['sh', '-c', 'exit 7']
[[group]]
name = 'g'
server = 'portal'
[[group]]
name = 'h'
server = 'own'
";

#[test]
fn a_campaign_without_one_good_run_ends_with_status_1_and_the_reasons() {
    if !can_make_hosts() {
        return;
    }
    let place = TestDirectory::new("hopeless");
    let plan = place.plan(HOPELESS);
    let output = lab(&["run", text(&plan), "--out", text(&place.out())]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let said = said(&output);
    assert!(said.contains("no run can be used: of 4 runs 4 failed"), "{said}");
    assert!(said.contains("2 runs: server 'portal': cannot run /nonexist"), "{said}");
    assert!(said.contains("2 runs: the client ended with exit status: 7"), "{said}");
    let exchanges = fs::read_to_string(place.out().join("exchanges.csv")).unwrap();
    let failed = exchanges.lines().filter(|line| line.ends_with("exit status: 7")).count();
    let shown = String::from_utf8_lossy(&output.stdout).replace("\n  ", " ");
    assert!(shown.contains(&format!("In all {failed} failed exchanges")), "{shown}");
    assert!(shown.contains(&format!("with {} exchanges", exchanges.lines().count() - 1)));
}

const OWN: &str = "
title = 'own'
repetitions = 2
limits = { lateness = '50 ms', wait = 0.25 }
[[network]]
name = 'wifi1'
[[server]]
name = 'portal'
command = ['{longwire}', 'serve', 'tracks', '--listen', '{listen}']
services = ['page']
[[command]]
name = 'page'
command = ['curl', '-sS', '-f', '-o', '/dev/null', '{url}/rest/xml/22']
[[group]]
name = 'g'
server = 'portal'
ways = ['direct', 'longwire']
";

#[test]
fn an_own_campaign_names_what_the_pair_gains() {
    if !Command::new("curl").arg("--version").output().is_ok_and(|done| done.status.success()) {
        println!("skipped: no curl");
        return;
    }
    if !can_make_hosts() {
        return;
    }
    let place = TestDirectory::new("own");
    let plan = place.plan(OWN);
    let output =
        lab(&["run", text(&plan), "--out", text(&place.out()), "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let facts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let gain = &facts["gains"][0];
    let number = |value: &serde_json::Value| value.as_f64().unwrap_or_else(|| panic!("{facts}"));
    assert!(number(&gain["times_as_fast"]) > 1.0, "{facts}");
    assert!(number(&gain["share_of_bytes"]) < 0.5, "{facts}");
    // A round trip of 200 ms, and the airtime of 150 KB at 2 Mbit/s, as curl got them direct.
    assert!((0.75..0.9).contains(&number(&gain["link_allows_s"])), "{facts}");
    assert!(number(&gain["direct"]["wire_bytes"]) > 20_000.0, "{facts}");
}

const FAR: &str = "
title = 'far'
repetitions = 2
limits = { lateness = '50 ms', wait = 0.25 }
[[network]]
name = 'far'
link = 'satcom'
set = ['loss=0 %']
[[server]]
name = 'portal'
command = ['{longwire}', 'serve', 'tracks', '--listen', '{listen}']
services = ['page']
share = true
[[command]]
name = 'page'
command = ['curl', '-sS', '-f', '-o', '/dev/null', '{url}/rest/json/1']
[[group]]
name = 'g'
server = 'portal'
ways = ['direct', 'longwire']
";

/// A client of a plan has no pass to warm up: had it to wait for the pair's connection, its one
/// request would take the two round trips that it takes direct.
#[test]
fn a_client_of_a_plan_finds_the_pair_connected() {
    if !Command::new("curl").arg("--version").output().is_ok_and(|done| done.status.success()) {
        println!("skipped: no curl");
        return;
    }
    if !can_make_hosts() {
        return;
    }
    let place = TestDirectory::new("far");
    let plan = place.plan(FAR);
    let output =
        lab(&["run", text(&plan), "--out", text(&place.out()), "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let facts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let times = facts["gains"][0]["times_as_fast"].as_f64().unwrap_or_else(|| panic!("{facts}"));
    assert!(times > 1.5, "{facts}");
}

const MANY: &str = "
title = 'many'
repetitions = 12
limits = { lateness = '50 ms', wait = 0.25 }
[client]
tracks = '1,2'
warm_up = 0
[[network]]
name = 'wifi1'
[[group]]
name = 'g'
services = ['rest-xml', 'rest-json']
";

#[test]
fn a_campaign_that_is_ended_goes_on_without_repeating_what_is_done() {
    if !can_make_hosts() {
        return;
    }
    let place = TestDirectory::new("resume");
    let plan = place.plan(MANY);
    let out = place.out();
    let arguments = ["run", text(&plan), "--out", text(&out), "--parallel", "2", "--json"];
    let mut first = lab(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    await_runs(&out, 2);
    let id = first.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let output = first.wait().unwrap();
    assert_eq!(output.code(), Some(130));
    let before = started(&out);
    assert!((2..24).contains(&before.len()), "{}", before.len());
    let output = lab(&arguments).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let after = started(&out);
    assert_eq!(after.len(), 24);
    assert!(before.iter().all(|run| after.contains(run)), "{before:?} {after:?}");
    // Its own results say nothing of themselves against themselves.
    let output = lab(&["compare", text(&out), text(&out), "--json"]).output().unwrap();
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // What a busy machine delayed is not compared.
    let cells = found["cells"].as_array().unwrap();
    let too_few = found["too_few_runs"].as_array().unwrap();
    assert_eq!(cells.len() + too_few.len(), 2, "{found}");
    assert!(cells.iter().all(|cell| cell["contains_0"] == true), "{found}");
    // Another plan does not go into the same place, and harms nothing.
    let other = place.plan(&MANY.replace("many", "other"));
    let output = lab(&["run", text(&other), "--out", text(&out)]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("another plan"), "{}", said(&output));
    assert_eq!(started(&out).len(), 24);
}

/// Waits until so many runs are stored.
fn await_runs(out: &Path, runs: usize) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while started(out).len() < runs {
        assert!(Instant::now() < deadline, "no {runs} runs in time");
        std::thread::yield_now();
    }
}

/// Cell, repetition and start of each run that is stored.
fn started(out: &Path) -> Vec<String> {
    let to = out.with_extension("csv");
    let exported = lab(&["export", text(out), "--to", text(&to)]).output().unwrap();
    if !exported.status.success() {
        return Vec::new();
    }
    let runs = fs::read_to_string(to.join("results.csv")).unwrap();
    let key = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        [fields[0], fields[6], fields[9]].join(" ")
    };
    runs.lines().skip(1).map(key).collect()
}

#[test]
fn bad_plans_and_bad_places_are_one_line_and_status_2() {
    let place = TestDirectory::new("bad");
    let cases = [
        ("title = 'x'\nsede = 1\n", "2: unknown key 'sede': did you mean 'seed'?"),
        ("title = 'x'\n[[network]]\nname = 'los'\n[client]\ntimeout = '3 parsecs'\n", "5: "),
        ("title = 'x'\n[[network]]\nname='los'\n[[group]]\nname='g'\nways=[]\n", "cross product"),
        ("title = 'x'\n[[network]]\nname='lso'\n[[group]]\nname='g'\n", "did you mean 'los'?"),
        ("title = ", "1: "),
    ];
    for (plan, expected) in cases {
        let path = place.plan(plan);
        let output = lab(&["run", text(&path), "--list"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        let said = said(&output);
        assert!(said.contains(expected) && said.contains("plan.toml"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    let misspelt = "title = 'x'\n[[network]]\nname = 'los'\n[[server]]\nname = 'web'\n\
        command = ['true']\nservices = ['lits']\n[[command]]\nname = 'list'\n\
        command = ['true']\n[[group]]\nname = 'g'\nserver = 'web'\n";
    let path = place.plan(misspelt);
    let output = lab(&["run", text(&path), "--out", text(&place.out())]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("did you mean 'list'?"), "{}", said(&output));
    assert!(!place.out().exists(), "refused before anything is measured");
    for command in ["report", "export"] {
        let output = lab(&[command, text(&place.0)]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains("no results.sqlite"), "{}", said(&output));
    }
    let output = lab(&["run", "/nowhere/plan.toml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

#[test]
fn the_cells_and_the_time_are_reported_beforehand() {
    let place = TestDirectory::new("list");
    let plan = place.plan(MANY);
    let output = lab(&["run", text(&plan), "--list", "--json"]).output().unwrap();
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(list["cells"].as_array().unwrap().len(), 2);
    assert_eq!(list["cells"][0]["repetitions"], 12);
    assert!(list["serial_s"].as_f64().unwrap() > list["expected_s"].as_f64().unwrap());
    let output = lab(&["run", text(&plan), "--list", "--cells", "*json*"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("1 cells, 12 runs"), "{text}");
}
