//! The dashboard and the alerts that a package has: what they ask for is what a running pair and a
//! running broker tell.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.
#![allow(clippy::print_stdout)] // Tests say why they are skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything here may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

/// A process; killed when dropped.
struct Running {
    child: Child,
    lines: Vec<String>,
}

impl Running {
    /// Starts a side, and waits for so many lines of it.
    fn start(args: &[&str], lines: usize) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_longwire"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut line = || {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            line.trim_start_matches("listening on ").split_whitespace().next().unwrap().to_owned()
        };
        let lines = (0..lines).map(|_| line()).collect();
        Self { child, lines }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn get(address: &str, url: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {url} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A port that nobody has at this moment.
fn free() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// A service, the pair, and a broker, over which something has gone.
struct Site {
    _all: [Running; 4],
    admins: [String; 3],
}

impl Site {
    fn new() -> Self {
        let service = Running::start(&["serve", "tracks", "--listen", "127.0.0.1:0"], 1);
        let (url, admins) = (format!("http://{}", service.lines[0]), [free(), free(), free()]);
        let listen = ["--listen", "127.0.0.1:0", "--admin"];
        let side = |name: &str, admin: &str, more: &[&str]| {
            Running::start(&[&[name], &listen[..], &[admin], more].concat(), 1)
        };
        let gateway = side("gateway", &admins[1], &["--allow", &url]);
        let edge = side("edge", &admins[0], &["--gateway", &gateway.lines[0]]);
        for number in 0..20 {
            let answer = get(&edge.lines[0], &format!("{url}/rest/json/{}", number % 3 + 1));
            assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
        }
        let broker = ["broker", "--mqtt", "127.0.0.1:0", "--admin", &admins[2]];
        let broker = Running::start(&broker, 2);
        Self { _all: [service, gateway, edge, broker], admins }
    }
}

/// The families of metrics that a page declares, and the labels of each that has samples.
fn families(page: &str, into: &mut BTreeMap<String, BTreeSet<String>>) {
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            into.entry(rest.split(' ').next().unwrap().to_owned()).or_default();
        } else if let Some((name, rest)) = line.split_once('{') {
            let labels = rest.rsplit_once('}').unwrap().0;
            let names = labels.split("\",").filter_map(|label| Some(label.split_once('=')?.0));
            into.entry(base(name)).or_default().extend(names.map(str::to_owned));
        }
    }
}

/// The family of a sample: histograms have three kinds of these.
fn base(name: &str) -> String {
    let suffix = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
    suffix.unwrap_or(name).to_owned()
}

/// Every query of the dashboard and of the alerts, with the words that it is shown under.
fn queries() -> Vec<String> {
    let text = fs::read_to_string(packaging().join("grafana/longwire.json")).unwrap();
    let board: Value = serde_json::from_str(&text).unwrap();
    let targets = |panel: &Value| panel["targets"].as_array().cloned().unwrap_or_default();
    let all = board["panels"].as_array().unwrap().iter().flat_map(targets);
    let mut queries: Vec<_> =
        all.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    assert!(queries.len() > 40, "{queries:#?}");
    let rules = fs::read_to_string(packaging().join("prometheus/longwire.rules.yml")).unwrap();
    // An expression is on its line, or on those below it that are further in.
    let mut lines = rules.lines().peekable();
    let before = queries.len();
    while let Some(line) = lines.next() {
        let Some(expression) = line.trim().strip_prefix("expr: ") else { continue };
        let mut expression = expression.trim_start_matches(">-").to_owned();
        while let Some(line) = lines.next_if(|line| line.starts_with("          ")) {
            expression.push(' ');
            expression.push_str(line.trim());
        }
        queries.push(expression.trim().to_owned());
    }
    let alerts = rules.matches("- alert: ").count();
    assert!(alerts > 10 && queries.len() - before == alerts, "{alerts} alerts");
    queries
}

/// The words of a query outside of quotes.
fn words(query: &str) -> BTreeSet<String> {
    let outside: Vec<_> = query.split('"').step_by(2).collect();
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let text = outside.join(" ");
    text.split(|character| !is_word(character)).map(str::to_owned).collect()
}

/// What a query asks of labels: by matchers, and by grouping.
fn labels(query: &str) -> BTreeSet<String> {
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut found = BTreeSet::new();
    for (at, _) in query.match_indices(['=', '!']) {
        let before = &query[..at];
        let start = before.rfind(|character| !is_word(character)).map_or(0, |at| at + 1);
        // `> 0` and the like have no word before them.
        found.insert(before[start..].to_owned());
    }
    for group in ["by (", "without (", "ignoring ("] {
        for (at, _) in query.match_indices(group) {
            let list = query[at + group.len()..].split(')').next().unwrap();
            found.extend(list.split(", ").map(str::to_owned));
        }
    }
    found.remove("");
    found
}

#[test]
fn every_metric_of_dashboard_and_alerts_is_there() {
    let site = Site::new();
    let mut pages = BTreeMap::new();
    for admin in &site.admins {
        families(&get(admin, "/metrics"), &mut pages);
    }
    // What the scraper itself adds.
    let scraped = ["job", "instance"].map(str::to_owned);
    // Families without samples in this run: what their labels are is in the documents.
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let documents = fs::read_to_string(documents).unwrap();
    let mut asked = BTreeSet::new();
    for query in queries() {
        let words = words(&query);
        let metrics: Vec<_> = words
            .iter()
            .filter(|word| word.starts_with("longwire_") || word.starts_with("process_"))
            .map(|word| base(word))
            .collect();
        let is_ups = words.contains("up");
        assert!(!metrics.is_empty() || is_ups, "{query} asks for nothing of ours");
        let mut known: BTreeSet<String> = scraped.iter().cloned().collect();
        for metric in &metrics {
            let labels = pages.get(metric).unwrap_or_else(|| panic!("nobody tells {metric}"));
            known.extend(labels.iter().cloned());
            let row = documents.lines().find(|line| line.contains(&format!("| `{metric}`")));
            let cells = row.and_then(|row| row.split('|').nth(2)).unwrap_or_default();
            known.extend(cells.split('`').skip(1).step_by(2).map(str::to_owned));
        }
        for label in labels(&query) {
            // Reasons of drops are in every page of a broker's, limits and causes are in documents.
            assert!(known.contains(&label), "{query}: no metric in it has the label {label}");
        }
        asked.extend(metrics);
    }
    // What a dashboard must have (exchanges, bytes, choices, link, queue, regret).
    for metric in [
        "longwire_link_rate_bytes_per_second",
        "longwire_exchanges_failed_total",
        "longwire_wire_bytes_total",
        "longwire_body_bytes_total",
        "longwire_encodings_chosen_total",
        "longwire_carriers_chosen_total",
        "longwire_queue_bytes",
        "longwire_message_seconds_total",
    ] {
        assert!(asked.contains(metric), "nothing shows {metric}");
    }
}

/// Whether a program of others is there.
fn is_there(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let is_there = command.status().is_ok_and(|status| status.success());
    if !is_there {
        println!("left out: there is no {program}");
    }
    is_there
}

#[test]
fn the_alerts_are_raised_by_what_they_say() {
    if !is_there("promtool") {
        return;
    }
    for args in [["check", "rules", "longwire.rules.yml"], ["test", "rules", "longwire.test.yml"]] {
        let output = Command::new("promtool")
            .args(args)
            .current_dir(packaging().join("prometheus"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("SUCCESS"), "{text}{:?}", output.stderr);
    }
}

/// A real one, which scrapes a site.
struct Prometheus {
    child: Child,
    address: String,
    dir: PathBuf,
}

impl Prometheus {
    fn start(site: &Site) -> Self {
        let dir = std::env::temp_dir().join(format!("longwire-prometheus-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        let rules = packaging().join("prometheus/longwire.rules.yml").canonicalize().unwrap();
        let config = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [{rules:?}]\n\
             scrape_configs:\n  - job_name: longwire\n    static_configs: [{{ targets: {:?} }}]\n",
            site.admins
        );
        fs::write(dir.join("prometheus.yml"), config).unwrap();
        let address = free();
        let child = Command::new("prometheus")
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
            .arg(format!("--web.listen-address={address}"))
            .current_dir(&dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, address, dir }
    }

    /// What a query has for an answer; none while it is not up.
    fn query(&self, query: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        write!(stream, "GET /api/v1/query?query={encoded} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn a_real_prometheus_takes_every_query() {
    if !is_there("prometheus") {
        return;
    }
    let site = Site::new();
    let prometheus = Prometheus::start(&site);
    let started = Instant::now();
    let counted = |answer: &Value| answer["data"]["result"].as_array().map_or(0, Vec::len);
    // Two scrapes of each make a rate.
    let all = "count_over_time(up{job=\"longwire\"}[1m]) >= 2 and up{job=\"longwire\"} == 1";
    while prometheus.query(all).is_none_or(|answer| counted(&answer) < 3) {
        assert!(started.elapsed() < PATIENCE, "Prometheus does not scrape");
        std::thread::yield_now();
    }
    let mut with_answers = 0;
    for query in queries() {
        // What Grafana puts in.
        let query = query.replace("$job", ".*").replace("$instance", ".*");
        let query = query.replace("$__rate_interval", "1m");
        let answer = prometheus.query(&query).unwrap();
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        with_answers += usize::from(counted(&answer) > 0);
    }
    // Failures, alerts and what is divided by nothing have none here.
    assert!(with_answers > 35, "only {with_answers} queries have answers");
}
