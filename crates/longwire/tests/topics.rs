//! `longwire pub` and `longwire sub` against `longwire broker`, as processes.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};

const LINES: usize = 300;

fn longwire(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(args);
    command
}

/// What a command did: its status, stdout, stderr.
fn done(args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = longwire(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// A command that is to end well, and what it printed.
fn said(args: &[&str]) -> String {
    let (status, out, error) = done(args);
    assert_eq!(status, Some(0), "{args:?}: {out} {error}");
    out
}

/// A broker; killed when dropped.
struct Broker {
    child: Child,
    /// Where its listeners are, by name.
    at: BTreeMap<String, String>,
}

impl Broker {
    fn start(listeners: usize, args: &[&str]) -> Self {
        let mut command = longwire(&[&["broker", "--log", "error"], args].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let at = (0..listeners).map(|_| {
            let line = lines.next().expect("a line").unwrap();
            let rest = line.strip_prefix("listening on ").expect(&line);
            let (address, name) = rest.trim_end_matches(')').split_once(" (").expect(&line);
            (name.to_owned(), address.to_owned())
        });
        let at = at.collect();
        Self { child, at }
    }

    fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.at[scheme])
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn each_protocol_publishes_and_subscribes() {
    let zero = "127.0.0.1:0";
    let broker = Broker::start(3, &["--mqtt", zero, "--ws", zero, "--mqtt-sn", zero]);
    let (mqtt, ws, sn) = (broker.url("mqtt"), broker.url("ws"), broker.url("mqtt-sn"));
    let ways: [(&str, &[&str]); 5] = [
        (&mqtt, &[]),
        (&mqtt, &["--mqtt-version", "3.1.1"]),
        (&mqtt, &["--mqtt-version", "3.1", "-i", "old"]),
        (&ws, &[]),
        (&sn, &[]),
    ];
    for (number, (url, more)) in ways.iter().enumerate() {
        for qos in ["0", "1", "2"] {
            let topic = format!("unit/{number}/{qos}");
            let args = ["pub", url, "-t", &topic, "-m", "here", "-r", "-q", qos];
            said(&[&args[..], more].concat());
            // What is retained comes whenever one subscribes.
            for (other, more) in ways {
                let args = ["sub", other, "-t", &topic, "-v", "-C", "1", "-W", "30 s", "-q", "2"];
                assert_eq!(said(&[&args[..], more].concat()), format!("{topic} here\n"));
            }
        }
    }
    let (status, ..) = done(&["sub", &mqtt, "-t", "unit/#", "-R", "-C", "1", "-W", "1 s"]);
    assert_eq!(status, Some(1), "nothing that was not retained");
}

#[test]
fn a_session_keeps_what_comes_and_properties_arrive() {
    let broker = Broker::start(1, &["--mqtt", "127.0.0.1:0"]);
    let url = broker.url("mqtt");
    let mine = ["-i", "reader", "-c", "-q", "1", "-t", "log"];
    said(&[&["sub", &url, "-E"][..], &mine].concat());
    let more = ["--content-type", "text/plain", "-D", "k=2", "-D", "k=1", "--expiry", "1 h"];
    let args = ["pub", &url, "-t", "log", "-m", "x", "-q", "1", "--repeat", "2"];
    said(&[&args[..], &more].concat());
    let lines = said(&[&["sub", &url, "-C", "2", "-W", "30 s", "--json"][..], &mine].concat());
    let all: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(all.len(), 2, "{lines}");
    for one in all {
        assert_eq!((&one["payload"], &one["content_type"]), (&"x".into(), &"text/plain".into()));
        assert_eq!(one["properties"], serde_json::json!([["k", "2"], ["k", "1"]]));
    }
}

#[test]
fn a_broker_that_is_killed_gets_each_line() {
    let store = std::env::temp_dir().join(format!("lw-topics-{}", std::process::id()));
    let place = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let args = ["--mqtt", &place, "--store", store.to_str().unwrap()];
    let broker = Broker::start(1, &args);
    let url = broker.url("mqtt");
    let mine = ["-i", "reader", "-c", "-q", "2", "-t", "log"];
    said(&[&["sub", &url, "-E"][..], &mine].concat());
    let options = ["-t", "log", "-l", "-r", "-q", "2", "-i", "writer", "-c", "--json"];
    let mut publisher = longwire(&[&["pub", &url][..], &options].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = publisher.stdin.take().unwrap();
    for number in 0..LINES / 2 {
        writeln!(input, "{number}").unwrap();
    }
    // Something has arrived.
    said(&["sub", &url, "-t", "log", "-C", "1", "-W", "30 s"]);
    drop(broker);
    let _broker = Broker::start(1, &args);
    for number in LINES / 2..LINES {
        writeln!(input, "{number}").unwrap();
    }
    drop(input);
    let mut facts = String::new();
    publisher.stdout.take().unwrap().read_to_string(&mut facts).unwrap();
    assert!(publisher.wait().unwrap().success(), "{facts}");
    assert_eq!(facts, format!("{{\"accepted\":{LINES},\"failed\":0,\"failures\":[]}}\n"));
    let count = LINES.to_string();
    let args = ["sub", &url, "-C", &count, "-W", "30 s"];
    let lines = said(&[&args[..], &mine].concat());
    let wanted: Vec<String> = (0..LINES).map(|number| number.to_string()).collect();
    assert_eq!(lines.lines().collect::<Vec<_>>(), wanted);
    let _ = std::fs::remove_dir_all(&store);
}

#[test]
fn datagrams_without_a_broker_arrive() {
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("mqtt-udp://{free}");
    let args = ["sub", &url, "-t", "u/+", "-v", "-C", "1", "-W", "60 s"];
    let subscriber = longwire(&args).stdout(Stdio::piped()).spawn().unwrap();
    // Nobody says when somebody listens.
    let times = ["--repeat", "100000", "--repeat-delay", "50 ms"];
    let mut publisher = longwire(&[&["pub", &url, "-t", "u/1", "-m", "here"][..], &times].concat())
        .spawn()
        .unwrap();
    let output = subscriber.wait_with_output().unwrap();
    publisher.kill().unwrap();
    publisher.wait().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "u/1 here\n");
}

#[test]
fn what_cannot_be_is_said_in_one_line() {
    let broker = Broker::start(2, &["--mqtt", "127.0.0.1:0", "--mqtt-sn", "127.0.0.1:0"]);
    let (mqtt, sn) = (broker.url("mqtt"), broker.url("mqtt-sn"));
    let cases: [(&[&str], i32, &str); 8] = [
        (&["pub", "http://x", "-t", "a", "-n"], 2, "no URL of a broker"),
        (&["pub", "mqtt://a:b@c", "-t", "a", "-n"], 2, "put it into a file"),
        (&["pub", "mqtt://127.0.0.1:1", "-t", "a", "-n"], 1, "refused"),
        (&["pub", &mqtt, "-t", "a/#", "-n"], 1, "a wildcard in a topic name"),
        (&["pub", &mqtt, "-t", "a", "-n", "-q", "-1"], 1, "MQTT has 0 to 2"),
        (&["pub", &sn, "-t", "#99999", "-n"], 1, "the topic #99999"),
        (&["pub", &mqtt, "-t", "a", "-f", "/nonexistent"], 2, "/nonexistent: No such file"),
        (&["sub", &mqtt, "-t", "a/#/b"], 2, "# before the last level"),
    ];
    for (args, wanted, what) in cases {
        let (status, _, error) = done(args);
        assert_eq!(status, Some(wanted), "{args:?}: {error}");
        assert!(error.contains(what) && error.lines().count() == 1, "{args:?}: {error}");
    }
}

/// A page of the admin interface.
fn page(broker: &Broker, path: &str) -> String {
    let mut stream = TcpStream::connect(&broker.at["admin"]).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

#[test]
fn an_operator_sees_what_goes_on_and_changes_it_while_it_runs() {
    let file = std::env::temp_dir().join(format!("lw-reload-{}.toml", std::process::id()));
    let text = "[broker]\nmqtt = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n";
    std::fs::write(&file, text).unwrap();
    let broker = Broker::start(2, &["--config", file.to_str().unwrap()]);
    let url = broker.url("mqtt");
    said(&["pub", &url, "-t", "a/1", "-m", "x", "-r", "-q", "1"]);
    let metrics = page(&broker, "/metrics");
    for line in [
        "# TYPE longwire_broker_sessions_opened_total counter",
        "longwire_broker_sessions_opened_total 1",
        "longwire_broker_messages_dropped_total{reason=\"expired\"} 0",
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line}: {metrics}");
    }
    assert!(page(&broker, "/health/live").ends_with("live\n"));
    assert!(page(&broker, "/x").starts_with("HTTP/1.1 404"));
    let reload = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let pid = broker.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    };
    // A mistake changes nothing; of two signals at once one is seen, so the rule is what counts.
    reload(&format!("{text}[[access]]\nfilter = \"a/#/b\"\n"));
    reload(&format!("{text}[[access]]\naction = \"subscribe\"\nfilter = \"#\"\n"));
    let denied = || done(&["pub", &url, "-t", "a/2", "-m", "x", "-q", "1"]).0 == Some(1);
    assert!((0..1000).any(|_| denied()), "the rule holds in the end");
    assert_eq!(said(&["sub", &url, "-t", "a/1", "-C", "1", "-W", "30 s"]), "x\n");
    let _ = std::fs::remove_file(&file);
}
