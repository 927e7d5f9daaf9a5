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

/// The listeners of a broker that speaks all that goes over a stream or has a connection.
const ALL: [&str; 12] = [
    "--mqtt",
    ZERO,
    "--ws",
    ZERO,
    "--mqtt-sn",
    ZERO,
    "--amqp",
    ZERO,
    "--amqp091",
    ZERO,
    "--wsn",
    ZERO,
];
const ZERO: &str = "127.0.0.1:0";

#[test]
fn each_protocol_publishes_and_subscribes() {
    let broker = Broker::start(6, &ALL);
    let [mqtt, ws, sn, amqp, amqp091, wsn] =
        ["mqtt", "ws", "mqtt-sn", "amqp", "amqp091", "wsn"].map(|scheme| broker.url(scheme));
    // With the QoS that it publishes and subscribes by; WS-Notification retains nothing.
    let ways: [(&str, &[&str], &[&str], &str); 8] = [
        (&mqtt, &[], &["0", "1", "2"], "2"),
        (&mqtt, &["--mqtt-version", "3.1.1"], &["0", "1", "2"], "2"),
        (&mqtt, &["--mqtt-version", "3.1", "-i", "old"], &["0", "1", "2"], "2"),
        (&ws, &[], &["0", "1", "2"], "2"),
        (&sn, &[], &["0", "1", "2"], "2"),
        (&amqp, &[], &["0", "1", "2"], "2"),
        (&amqp091, &[], &["0", "1"], "1"),
        (&wsn, &[], &[], "1"),
    ];
    for (number, (url, more, qualities, _)) in ways.iter().enumerate() {
        for qos in *qualities {
            let topic = format!("unit.{number}/{qos}");
            let args = ["pub", url, "-t", &topic, "-m", "here", "-r", "-q", qos];
            said(&[&args[..], more].concat());
            // What is retained comes whenever one subscribes.
            for (other, more, _, most) in ways {
                let args = ["sub", other, "-t", &topic, "-v", "-C", "1", "-W", "30 s", "-q", most];
                let got = said(&[&args[..], more].concat());
                assert_eq!(got, format!("{topic} here\n"), "{url} {other}");
            }
        }
    }
    let wildcards = ["-t", "unit.6/+", "-v", "-C", "2", "-W", "30 s"];
    for url in [&amqp, &amqp091, &wsn] {
        let lines = said(&[&["sub", url][..], &wildcards].concat());
        let mut lines: Vec<_> = lines.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["unit.6/0 here", "unit.6/1 here"], "{url}");
    }
    for url in [&mqtt, &amqp091] {
        let args = ["sub", url, "-t", "unit.0/#", "-R", "-C", "1", "-W", "1 s"];
        assert_eq!(done(&args).0, Some(1), "nothing that was not retained: {url}");
    }
}

/// A subscriber that runs, and a publisher that goes on until the subscriber has what it wants.
fn until_it_arrives(subscribe: &[&str], publish: &[&str]) -> String {
    let subscriber = longwire(subscribe).stdout(Stdio::piped()).spawn().unwrap();
    // Nobody says when somebody listens.
    let times = ["--repeat", "100000", "--repeat-delay", "50 ms"];
    let mut publisher = longwire(&[publish, &times].concat()).spawn().unwrap();
    let output = subscriber.wait_with_output().unwrap();
    publisher.kill().unwrap();
    publisher.wait().unwrap();
    assert!(output.status.success(), "{subscribe:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn notifications_are_posted_or_fetched() {
    let broker = Broker::start(2, &["--wsn", ZERO, "--mqtt", ZERO]);
    let (wsn, mqtt) = (broker.url("wsn"), broker.url("mqtt"));
    let published = ["pub", &wsn, "-t", "a/b", "-m", "<x>1</x>", "-D", "k=v"];
    for more in [&[][..], &["--listen", ZERO], &["--pull", "50 ms"]] {
        for filter in ["a/b", "a/+", "#"] {
            let args = ["sub", &wsn, "-t", filter, "-C", "1", "-W", "60 s", "--json"];
            let line = until_it_arrives(&[&args[..], more].concat(), &published);
            let facts: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert_eq!(facts["topic"], "a/b", "{line}");
            assert_eq!((&facts["payload"], &facts["qos"]), (&"<x>1</x>".into(), &1.into()));
            assert_eq!(facts["content_type"], "application/xml");
        }
    }
    // Text and bytes of others come as they were.
    let args = ["sub", &wsn, "-t", "t", "-C", "1", "-W", "60 s"];
    let text = ["pub", &mqtt, "-t", "t", "-m", "no <xml", "--content-type", "text/plain"];
    assert_eq!(until_it_arrives(&args, &text), "no <xml\n");
}

#[test]
fn what_is_said_beside_a_message_arrives_by_each_protocol_that_has_it() {
    let broker = Broker::start(6, &ALL);
    let urls = ["mqtt", "amqp", "amqp091"].map(|scheme| broker.url(scheme));
    for from in &urls {
        for to in &urls {
            let topic = format!("p/{}", from.split(':').next().unwrap());
            let more = [
                "--content-type",
                "text/x",
                "--response-topic",
                "answers/7",
                "-D",
                "k=2",
                "-D",
                "k=1",
                "--expiry",
                "1 h",
                "-r",
                "-q",
                "1",
            ];
            said(&[&["pub", from, "-t", &topic, "-m", "x"][..], &more].concat());
            let line = said(&["sub", to, "-t", &topic, "-C", "1", "-W", "30 s", "--json"]);
            let facts: serde_json::Value = serde_json::from_str(&line).unwrap();
            for (name, value) in [
                ("topic", serde_json::json!(topic)),
                ("payload", "x".into()),
                ("retain", true.into()),
                ("content_type", "text/x".into()),
                ("reply_to", "answers/7".into()),
                ("properties", serde_json::json!([["k", "2"], ["k", "1"]])),
            ] {
                assert_eq!(facts[name], value, "{from} {to} {name}: {line}");
            }
            assert!((3500..=3600).contains(&facts["expiry_s"].as_u64().unwrap()), "{line}");
        }
    }
}

#[test]
fn subscriptions_that_are_kept_have_what_came_meanwhile() {
    let broker = Broker::start(6, &ALL);
    let (amqp, amqp091) = (broker.url("amqp"), broker.url("amqp091"));
    let kept: [(&str, &[&str]); 2] = [
        (&amqp, &["-t", "k/+", "-i", "reader", "-c", "-q", "1"]),
        (&amqp091, &["-t", "k/+", "--queue", "work", "-q", "1"]),
    ];
    for (url, mine) in kept {
        said(&[&["sub", url, "-E"][..], mine].concat());
    }
    said(&["pub", &amqp, "-t", "k/1", "-m", "x", "-q", "1", "--repeat", "3"]);
    for (url, mine) in kept {
        let lines = said(&[&["sub", url, "-C", "3", "-W", "30 s"][..], mine].concat());
        assert_eq!(lines, "x\nx\nx\n", "{url}");
        let none = done(&[&["sub", url, "-C", "1", "-W", "1 s"][..], mine].concat());
        assert_eq!(none.0, Some(1), "each was acknowledged: {none:?}");
    }
    // A queue alone, without a filter.
    said(&["pub", &amqp, "-t", "k/2", "-m", "y", "-q", "1"]);
    let line = said(&["sub", &amqp091, "--queue", "work", "-q", "1", "-C", "1", "-v"]);
    assert_eq!(line, "k/2 y\n");
}

#[test]
fn what_was_not_printed_is_not_acknowledged() {
    let broker = Broker::start(6, &ALL);
    let [mqtt, amqp, amqp091] = ["mqtt", "amqp", "amqp091"].map(|scheme| broker.url(scheme));
    let kept: [(&str, &[&str]); 3] = [
        (&mqtt, &["-t", "n/mqtt", "-i", "reader", "-c", "-q", "1"]),
        (&amqp, &["-t", "n/amqp", "-i", "reader", "-c", "-q", "1"]),
        (&amqp091, &["-t", "n/amqp091", "--queue", "work", "-q", "1"]),
    ];
    for (url, mine) in kept {
        said(&[&["sub", url, "-E"][..], mine].concat());
        let publish = |text| said(&["pub", &mqtt, "-t", mine[1], "-m", text, "-q", "1"]);
        publish("1");
        let mut reader =
            longwire(&[&["sub", url][..], mine].concat()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(reader.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "1", "{url}");
        // As `head -1` does.
        drop(lines);
        publish("2");
        publish("3");
        assert!(reader.wait().unwrap().success(), "{url}");
        let rest = said(&[&["sub", url, "-C", "2", "-W", "30 s"][..], mine].concat());
        assert_eq!(rest, "2\n3\n", "{url}");
    }
}

#[test]
fn a_pull_point_that_is_seldom_asked_lasts() {
    let broker = Broker::start(1, &["--wsn", ZERO]);
    let wsn = broker.url("wsn");
    let published = ["pub", &wsn, "-t", "a", "-m", "x"];
    let times = ["--repeat", "100000", "--repeat-delay", "500 ms"];
    let mut publisher = longwire(&[&published[..], &times].concat()).spawn().unwrap();
    // Subscriptions last for three seconds, unless they are renewed.
    let lines = said(&[
        "sub",
        &wsn,
        "-t",
        "a",
        "--keep-alive",
        "1 s",
        "--pull",
        "5 s",
        "-C",
        "12",
        "-W",
        "120 s",
    ]);
    assert_eq!(lines, "x\n".repeat(12));
    publisher.kill().unwrap();
    publisher.wait().unwrap();
}

#[test]
fn subscriptions_that_a_broker_forgets_are_made_anew() {
    for more in [&["--pull", "200 ms"][..], &[]] {
        let place = TcpListener::bind(ZERO).unwrap().local_addr().unwrap().to_string();
        // It has no store.
        let broker = Broker::start(1, &["--wsn", &place]);
        let url = format!("wsn://{place}");
        let mine = ["sub", &url, "-t", "a", "-t", "b", "--keep-alive", "1 s", "-W", "120 s"];
        let mut reader = longwire(&[&mine[..], more].concat()).stdout(Stdio::piped()).spawn();
        let reader = reader.as_mut().unwrap();
        let mut seen = BufReader::new(reader.stdout.take().unwrap()).lines();
        let publishes = |topic: &str, text: &str| {
            let times = ["--repeat", "100000", "--repeat-delay", "100 ms"];
            let args = ["pub", &url, "-t", topic, "-m", text];
            longwire(&[&args[..], &times].concat()).spawn().unwrap()
        };
        let mut sees = |topic: &str, text: &str| {
            let mut publisher = publishes(topic, text);
            assert!(seen.any(|line| line.unwrap() == text), "{more:?}");
            publisher.kill().unwrap();
            publisher.wait().unwrap();
        };
        sees("a", "1");
        drop(broker);
        let _broker = Broker::start(1, &["--wsn", &place]);
        sees("a", "2");
        sees("b", "3");
        reader.kill().unwrap();
        reader.wait().unwrap();
    }
}

#[test]
fn messages_longer_than_what_is_written_at_once_do_not_stall() {
    let broker = Broker::start(6, &ALL);
    let mqtt = broker.url("mqtt");
    let limit = std::time::Duration::from_secs(60);
    let line = "x".repeat(200_000);
    for (scheme, more) in [
        ("mqtt", &["--keep-alive", "10 min"][..]),
        ("amqp", &["--keep-alive", "10 min"]),
        ("amqp091", &["--keep-alive", "10 min"]),
        ("wsn", &[]),
    ] {
        let url = broker.url(scheme);
        let mine = ["-i", scheme, "-c", "-q", "1", "-t", scheme];
        said(&[&["sub", &mqtt, "-E"][..], &mine].concat());
        let args = [&["pub", &url, "-t", scheme, "-l"][..], more].concat();
        let started = std::time::Instant::now();
        let mut publisher = longwire(&args).stdin(Stdio::piped()).spawn().unwrap();
        let mut input = publisher.stdin.take().unwrap();
        for _ in 0..20 {
            writeln!(input, "{line}").unwrap();
        }
        drop(input);
        assert!(publisher.wait().unwrap().success(), "{scheme}");
        // Nothing is heard of a broker for minutes: it goes on when what it wrote has left.
        assert!(started.elapsed() < limit, "{scheme}: {:?}", started.elapsed());
        // Of QoS 0 nothing waits for a session that is away.
        if scheme == "wsn" {
            let args = [&["sub", &mqtt, "-C", "20", "-W", "30 s"][..], &mine].concat();
            assert_eq!(said(&args).len(), 20 * 200_001, "{scheme}");
        }
    }
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
fn a_broker_that_is_killed_gets_what_other_protocols_publish() {
    for scheme in ["amqp", "amqp091", "wsn"] {
        let name = format!("lw-topics-{scheme}-{}", std::process::id());
        let store = std::env::temp_dir().join(name);
        let free = || TcpListener::bind(ZERO).unwrap().local_addr().unwrap().to_string();
        let (place, mqtt) = (free(), free());
        let listener = format!("--{scheme}");
        let stored = store.to_str().unwrap();
        let args = ["--mqtt", &mqtt, &listener, &place, "--store", stored];
        let broker = Broker::start(2, &args);
        let (url, reader) = (format!("{scheme}://{place}"), format!("mqtt://{mqtt}"));
        let mine = ["-i", "reader", "-c", "-q", "1", "-t", "log", "-R"];
        said(&["pub", &reader, "-t", "log", "-m", "first", "-r", "-q", "1"]);
        said(&[&["sub", &reader, "-E"][..], &mine].concat());
        // A subscriber of the protocol's own, that comes back.
        let watching = ["sub", &url, "-t", "log", "-q", "1", "-C", "100000", "-W", "60 s"];
        let mut watcher = longwire(&watching).stdout(Stdio::piped()).spawn().unwrap();
        let mut seen = BufReader::new(watcher.stdout.take().unwrap()).lines();
        assert_eq!(seen.next().unwrap().unwrap(), "first", "{scheme}: it is there");
        let mut publisher = longwire(&["pub", &url, "-t", "log", "-l", "-q", "1", "--json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = publisher.stdin.take().unwrap();
        for number in 0..LINES / 2 {
            writeln!(input, "{number}").unwrap();
        }
        said(&[&["sub", &reader, "-C", "1", "-W", "30 s"][..], &mine].concat());
        drop(broker);
        let _broker = Broker::start(2, &args);
        for number in LINES / 2..LINES {
            writeln!(input, "{number}").unwrap();
        }
        drop(input);
        let mut facts = String::new();
        publisher.stdout.take().unwrap().read_to_string(&mut facts).unwrap();
        assert!(publisher.wait().unwrap().success(), "{facts}");
        assert_eq!(facts, format!("{{\"accepted\":{LINES},\"failed\":0,\"failures\":[]}}\n"));
        // At least once, so some may come twice.
        said(&["pub", &reader, "-t", "log", "-m", "end", "-q", "1"]);
        let mut all = std::collections::BTreeSet::new();
        let mut reading = longwire(&[&["sub", &reader, "-W", "60 s"][..], &mine].concat())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        for line in BufReader::new(reading.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            if line == "end" {
                break;
            }
            all.insert(line.parse::<usize>().unwrap());
        }
        reading.kill().unwrap();
        reading.wait().unwrap();
        // The first one went to who has looked whether something arrives.
        assert!(all.len() >= LINES - 1, "{scheme}: {} of {LINES}", all.len());
        // The watcher hears of what is published behind the restart.
        let after = ["pub", &reader, "-t", "log", "-m", "after", "--repeat", "100000"];
        let later = longwire(&[&after[..], &["--repeat-delay", "50 ms"]].concat()).spawn().unwrap();
        assert!(seen.any(|line| line.unwrap() == "after"), "{scheme}");
        for mut process in [later, watcher] {
            process.kill().unwrap();
            process.wait().unwrap();
        }
        let _ = std::fs::remove_dir_all(&store);
    }
}

#[test]
fn what_a_broker_refuses_is_a_failure_by_name() {
    let file = std::env::temp_dir().join(format!("lw-refuse-{}.toml", std::process::id()));
    let rule = |filter: &str| format!("[[access]]\nfilter = \"{filter}\"\n");
    let access = rule("ok/#") + &rule("amqp091/#");
    std::fs::write(&file, access).unwrap();
    let broker = Broker::start(6, &[&["--config", file.to_str().unwrap()][..], &ALL].concat());
    for (scheme, what) in [
        ("mqtt", "the broker refuses it: "),
        ("amqp", "amqp:unauthorized-access"),
        ("amqp091", "403 ACCESS_REFUSED"),
        ("wsn", "the broker refuses it: "),
    ] {
        let url = broker.url(scheme);
        let args = ["pub", &url, "-t", "no/1", "-m", "x", "-q", "1", "--repeat", "2", "--json"];
        let (status, out, error) = done(&args);
        assert_eq!(status, Some(1), "{scheme}: {out} {error}");
        assert!(error.contains(what) && error.lines().count() == 2, "{scheme}: {error}");
        let facts: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&facts["accepted"], &facts["failed"]), (&0.into(), &2.into()), "{scheme}");
        said(&["pub", &url, "-t", "ok/1", "-m", "x", "-q", "1"]);
        let (status, _, error) = done(&["sub", &url, "-t", "no/1", "-W", "10 s"]);
        assert_eq!(status, Some(1), "{scheme}: {error}");
        assert!(error.contains("no/1") && error.lines().count() == 1, "{scheme}: {error}");
    }
    let amqp091 = broker.url("amqp091");
    let to_nobody = ["pub", &amqp091, "-t", "ok/1", "-m", "x"];
    for (exchange, qos, what) in [
        ("none", "1", "404 NOT_FOUND"),
        ("none", "0", "404 NOT_FOUND"),
        ("amq.direct", "1", "312 NO_ROUTE"),
    ] {
        let args = [&to_nobody[..], &["--exchange", exchange, "-q", qos]].concat();
        let (status, _, error) = done(&args);
        assert_eq!(status, Some(1), "{exchange}: {error}");
        assert!(error.contains(what) && error.lines().count() == 1, "{exchange}: {error}");
    }
    let _ = std::fs::remove_file(&file);
}

#[test]
fn datagrams_without_a_broker_arrive() {
    let free = std::net::UdpSocket::bind(ZERO).unwrap().local_addr().unwrap();
    let url = format!("mqtt-udp://{free}");
    let args = ["sub", &url, "-t", "u/+", "-v", "-C", "1", "-W", "60 s"];
    let line = until_it_arrives(&args, &["pub", &url, "-t", "u/1", "-m", "here"]);
    assert_eq!(line, "u/1 here\n");
}

#[test]
fn what_cannot_be_is_said_in_one_line() {
    let broker = Broker::start(6, &ALL);
    let (mqtt, sn, wsn) = (broker.url("mqtt"), broker.url("mqtt-sn"), broker.url("wsn"));
    let (amqp, amqp091) = (broker.url("amqp"), broker.url("amqp091"));
    let cases: [(&[&str], i32, &str); 28] = [
        (
            &["pub", &amqp, "-t", "a", "-n", "--password-file", "/dev/null"],
            2,
            "--password-file: AMQP 1.0 has passwords of users alone: give --user",
        ),
        (&["pub", "http://x", "-t", "a", "-n"], 2, "no URL of a broker"),
        (&["pub", "mqtt://a:b@c", "-t", "a", "-n"], 2, "put it into a file"),
        (&["pub", "mqtt://127.0.0.1:1", "-t", "a", "-n"], 1, "refused"),
        (&["pub", &mqtt, "-t", "a/#", "-n"], 1, "a wildcard in a topic name"),
        (&["pub", &mqtt, "-t", "a", "-n", "-q", "-1"], 2, "--qos -1: MQTT 5 has 0 to 2"),
        (&["pub", &amqp091, "-t", "a", "-n", "-q", "2"], 2, "--qos 2: AMQP 0.9.1 has 0 to 1"),
        (&["pub", &wsn, "-t", "a", "-n", "-q", "0"], 2, "--qos 0: WS-Notification has 1 alone"),
        (&["sub", "mqtt-udp://127.0.0.1", "-t", "a", "-q", "1"], 2, "MQTT/UDP has 0 alone"),
        (&["pub", "mqtt-udp://127.0.0.1", "-t", "a", "-n", "-r"], 2, "--retain: MQTT/UDP has"),
        (&["pub", "mqtt-udp://127.0.0.1", "-t", "a", "-n", "-k", "5 s"], 2, "--keep-alive: MQTT/"),
        (
            &["pub", &mqtt, "-V", "3.1.1", "-t", "a", "-n", "--expiry", "1 s"],
            2,
            "--expiry: MQTT 3.",
        ),
        (&["pub", &mqtt, "-V", "3.1.1", "-t", "a", "-n", "-D", "a=b"], 2, "--user-property: MQTT"),
        (&["sub", &mqtt, "-V", "3.1.1", "-t", "a", "-x", "1 s"], 2, "MQTT 5 and AMQP 1.0 have"),
        (&["sub", &sn, "-t", "a", "--proxy", "http://x:1"], 2, "--proxy: MQTT-SN has no such"),
        (&["sub", &sn, "-t", "a", "-u", "ann"], 2, "--user: MQTT-SN has no such"),
        (&["sub", &sn, "-t", "a", "-V", "5"], 2, "--mqtt-version: MQTT-SN has no such"),
        (&["sub", &amqp, "-t", "a", "--will-topic", "w"], 2, "--will-topic: AMQP 1.0 has no such"),
        (&["sub", &amqp, "-t", "a", "--queue", "q"], 2, "--queue: AMQP 1.0 has no such thing"),
        (&["sub", &amqp091, "-t", "a", "-i", "x", "-c"], 2, "--keep-session: AMQP 0.9.1 has"),
        (&["sub", &mqtt, "-t", "a", "--pull"], 2, "WS-Notification has"),
        (&["sub", &wsn, "-t", "a", "-i", "x"], 2, "--id: WS-Notification has no such"),
        (&["pub", &amqp091, "-t", &"%".repeat(90), "-n"], 1, "over 255 bytes"),
        (&["pub", &mqtt.replace("mqtt", "amqp"), "-t", "a", "-n"], 1, "127.0.0.1:"),
        (&["pub", &mqtt.replace("mqtt", "amqp091"), "-t", "a", "-n"], 1, "127.0.0.1:"),
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
