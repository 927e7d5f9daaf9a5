//! `longwire serve messaging` and `longwire message` as processes: nodes that are killed lose
//! nothing, and deliver nothing twice.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(90);

fn longwire(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(args);
    command
}

/// A directory of its own that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("longwire-messages-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A node's process; killed when dropped.
struct Node {
    child: Child,
    config: PathBuf,
    address: String,
}

impl Node {
    fn start(config: &Path) -> Self {
        let args = ["serve", "messaging", "--config", config.to_str().unwrap()];
        let mut child =
            longwire(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on ").expect(&line).trim_end().to_owned();
        Self { child, config: config.to_owned(), address }
    }

    /// SIGKILL, and a new process with the same store.
    fn kill_and_start(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        *self = Self::start(&self.config.clone());
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn inbox(&self) -> Vec<Value> {
        let mut entries = Vec::new();
        let mut after = 0;
        loop {
            let (_, body) =
                ask(&self.address, "GET", &format!("/inbox?limit=1000&after={after}"), "")
                    .expect("the node answers");
            let list: Value = serde_json::from_str(&body).unwrap();
            entries.extend(list["messages"].as_array().unwrap().iter().cloned());
            if list["more"] != true {
                return entries;
            }
            after = entries.last().unwrap()["number"].as_u64().unwrap();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request over a connection of its own; none when it broke.
fn ask(address: &str, method: &str, path: &str, content: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = content.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{content}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// Ports that nothing listens at now.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// Configurations of nodes that reach each other, but for `a` and `c`, which do by `b`.
fn configs(scratch: &Scratch, extra: &str) -> Vec<PathBuf> {
    let names = ["a", "b", "c"];
    let ports: [u16; 3] = free_ports();
    let forms = ["json", "cbor", "exi"];
    let mut files = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let store = scratch.0.join(format!("{name}.store"));
        let mut text = format!(
            "node = \"{name}\"\nlisten = \"127.0.0.1:{}\"\nstore = \"{}\"\n\
             retry_first = \"20 ms\"\nretry_longest = \"200 ms\"\nattempt_timeout = \"2 s\"\n\
             {extra}[groups]\nall = [\"a\", \"b\", \"c\"]\n[nodes]\n",
            ports[at],
            store.display()
        );
        for (other, port) in names.iter().zip(ports).filter(|(other, _)| *other != name) {
            text += &match (*name, *other) {
                ("a", "c") | ("c", "a") => format!("{other} = {{ via = \"b\" }}\n"),
                _ => {
                    let form = forms[at];
                    format!(
                        "{other} = {{ url = \"http://127.0.0.1:{port}\", form = \"{form}\" }}\n"
                    )
                }
            };
        }
        let file = scratch.0.join(format!("{name}.toml"));
        std::fs::write(&file, text).unwrap();
        files.push(file);
    }
    files
}

/// Gives messages to a node until `count` are accepted; each is given again with the same id while
/// its answer does not come.
fn send_all(address: &str, node: &str, count: usize, offset: usize) {
    let begin = Instant::now();
    for at in offset..offset + count {
        let to = ["all", "a", "b", "c"][at % 4];
        let precedence = ["routine", "flash", "priority"][at % 3];
        let message = format!(
            "{{\"id\":\"{node}-{at}\",\"addressees\":[\"{to}\"],\"text\":\"Report {at}\",\
             \"precedence\":\"{precedence}\"}}"
        );
        loop {
            match ask(address, "POST", "/messages", &message) {
                Some((200 | 201, _)) => break,
                Some((status, body)) => panic!("{status}: {body}"),
                None => assert!(begin.elapsed() < PATIENCE, "{node} does not come back"),
            }
        }
    }
}

#[test]
fn nodes_that_are_killed_deliver_each_message_exactly_once() {
    let scratch = Scratch::new("kill");
    let mut nodes: Vec<Node> = configs(&scratch, "").iter().map(|file| Node::start(file)).collect();
    const COUNT: usize = 200;
    let addresses: Vec<String> = nodes.iter().map(|node| node.address.clone()).collect();
    let mut kills = 0;
    std::thread::scope(|scope| {
        let senders: Vec<_> = ["a", "b", "c"]
            .into_iter()
            .zip(&addresses)
            .map(|(node, address)| scope.spawn(move || send_all(address, node, COUNT, 0)))
            .collect();
        // Kills amid the traffic, each when the inbox of the next node has grown.
        while !senders.iter().all(|sender| sender.is_finished()) {
            let victim = kills % 3;
            let before = nodes[(victim + 1) % 3].inbox().len();
            while nodes[(victim + 1) % 3].inbox().len() < before + 20
                && !senders.iter().all(|sender| sender.is_finished())
            {
                std::thread::yield_now();
            }
            nodes[victim].kill_and_start();
            kills += 1;
        }
    });
    assert!(kills >= 3, "{kills} kills");
    // Of 200 messages of each node every fourth is for all (but itself), a, b and c.
    for (at, name) in ["a", "b", "c"].iter().enumerate() {
        let mut expected = BTreeSet::new();
        for node in ["a", "b", "c"] {
            for number in 0..COUNT {
                let to = ["all", "a", "b", "c"][number % 4];
                if to == *name || (to == "all" && node != *name) {
                    expected.insert(format!("{node}-{number}"));
                }
            }
        }
        let begin = Instant::now();
        while nodes[at].inbox().len() < expected.len() {
            assert!(
                begin.elapsed() < PATIENCE,
                "{name}: {} of {}",
                nodes[at].inbox().len(),
                expected.len()
            );
            std::thread::yield_now();
        }
        let inbox = nodes[at].inbox();
        let ids: Vec<String> =
            inbox.iter().map(|entry| entry["message"]["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(ids.len(), expected.len(), "{name} has messages twice");
        assert_eq!(ids.into_iter().collect::<BTreeSet<_>>(), expected, "{name}");
    }
    // Each originator learns of each delivery, also by receipts over b.
    for node in &nodes {
        let begin = Instant::now();
        loop {
            let (_, body) = ask(&node.address, "GET", "/outbox?limit=1000", "").unwrap();
            if !body.contains("\"waiting\"") && !body.contains("\"forwarded\"") {
                assert!(!body.contains("\"failed\"") && !body.contains("\"expired\""), "{body}");
                break;
            }
            assert!(begin.elapsed() < PATIENCE, "{body}");
            std::thread::yield_now();
        }
    }
    println!("{} messages, {kills} kills", 3 * COUNT);
}

fn message(node: &Node, args: &[&str]) -> Output {
    let url = node.url();
    let (what, rest) = args.split_first().unwrap();
    let args: Vec<&str> = [&["message", what, "--node", &url], rest].concat();
    longwire(&args).stdin(Stdio::null()).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn fault(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_person_sends_reads_and_asks() {
    let scratch = Scratch::new("person");
    let nodes: Vec<Node> = configs(&scratch, "").iter().map(|file| Node::start(file)).collect();
    let wait = ["--wait", "60 s", "--precedence", "flash", "--form", "exi", "--receipt", "read"];
    let args = [&["send", "--to", "c", "--text", "Contact\nnorth"], &wait[..]].concat();
    let sent = message(&nodes[0], &args);
    assert!(sent.status.success(), "{}", fault(&sent));
    let line = text(&sent);
    assert!(line.contains("FLASH  valid until") && line.contains("    c  delivered  "), "{line}");
    let id = line.split(' ').next().unwrap();
    let inbox = text(&message(&nodes[2], &["inbox", "--unread", "--mark-read"]));
    assert!(inbox.contains(&format!("FLASH  a > c  {id}")), "{inbox}");
    assert!(inbox.contains("    Contact\n    north\n"), "{inbox}");
    assert_eq!(text(&message(&nodes[2], &["inbox", "--unread"])), "");
    let begin = Instant::now();
    loop {
        let status = text(&message(&nodes[0], &["status", id, "--json"]));
        let status: Value = serde_json::from_str(&status).unwrap();
        if status["recipients"]["c"]["stage"] == "read" {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "{status}");
    }
    let extended = ["send", "--to", "b", "--kind", "contact-report", "--extension", "grid=32U"];
    let sent = message(&nodes[0], &[&extended[..], &["--id", "x-1", "--json"]].concat());
    assert_eq!(text(&sent), "{\"id\":\"x-1\",\"new\":true}\n", "{}", fault(&sent));
    let all = text(&message(&nodes[0], &["status"]));
    assert!(all.contains(id) && all.contains("x-1"), "{all}");
    for (what, done) in [("read", "read"), ("remove", "removed")] {
        let removed = message(&nodes[2], &[what, id, "--originator", "a", "--json"]);
        assert!(removed.status.success(), "{}", fault(&removed));
        let expected = serde_json::json!({ "id": id, done: true });
        assert_eq!(text(&removed), format!("{expected}\n"));
    }
    for (args, status, words) in [
        (&["send", "--to", "x", "--text", "y"][..], 1, "addressee 'x' does not exist at node 'a'"),
        (&["send", "--to", "b", "--text", "y", "--precedence", "urgent"], 2, "not one of flash"),
        (&["send", "--to", "b", "--text", "y", "--form", "asn1"], 2, "not one of json, xml"),
        (&["send", "--to", "b", "--text", "y", "--validity", "60 d"], 2, "a duration in"),
        (
            &["send", "--to", "b", "--text", "y", "--validity", "999 h"],
            2,
            "is not from 1 to 2592000",
        ),
        (&["send", "--to", "b 1", "--text", "y"], 2, "'b 1' is no name"),
        (&["send", "--to", "b"], 2, "'text' is missing or empty"),
        (&["send", "--text", "y"], 2, "--to"),
        (&["status", "a-9"], 1, "no message 'a-9' in the outbox"),
        (&["read", "a-9"], 1, "no message 'a-9' in the inbox of 'a'"),
        (&["read", "../x"], 2, "'../x' is no id of a message"),
        (&["inbox", "--limit", "0"], 2, "limit"),
    ] {
        let output = message(&nodes[0], args);
        let line = fault(&output);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {line}");
        assert!(line.contains(words) && line.lines().count() == 1, "{args:?}: {line}");
    }
}

#[test]
fn what_is_wrong_with_a_node_is_said_in_one_line() {
    let scratch = Scratch::new("config");
    let file = scratch.0.join("n.toml");
    let run = |text: &str, more: &[&str]| {
        std::fs::write(&file, text).unwrap();
        let args = [&["serve", "messaging", "--config", file.to_str().unwrap()], more].concat();
        longwire(&args).stdin(Stdio::null()).output().unwrap()
    };
    let good = "node = \"n\"\nlisten = \"127.0.0.1:0\"\nstore = \"STORE\"\n";
    let store = scratch.0.join("store");
    let good = good.replace("STORE", store.to_str().unwrap());
    let checked = run(&good, &["--check"]);
    assert!(checked.status.success() && !store.exists(), "{}", fault(&checked));
    for (text, words) in [
        (format!("{good}colour = 1\n"), "n.toml, line 4: unknown field `colour`"),
        (good.replace("127.0.0.1:0", "here"), "n.toml, line 2: listen: 'here'"),
        (good.replace(store.to_str().unwrap(), "/proc/none"), "cannot open the store"),
        (format!("{good}[nodes]\nb = {{}}\n"), "line 5: nodes.b: needs one of url and via"),
    ] {
        let output = run(&text, &[]);
        let line = fault(&output);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(line.contains(words) && line.lines().count() == 1, "{line}");
    }
}

/// `longwire message` with its stdout going to a pipe.
fn piped(node: &Node, args: &[&str], stdout: impl Into<Stdio>) -> Child {
    let url = node.url();
    let args = [&["message"], args, &["--node", &url]].concat();
    longwire(&args).stdin(Stdio::null()).stdout(stdout).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_pipe_that_is_closed_ends_a_command_that_marks_nothing_further() {
    let scratch = Scratch::new("pipe");
    let node = Node::start(&configs(&scratch, "")[0]);
    for text in ["one", "two"] {
        let sent = message(&node, &["send", "--to", "a", "--text", text]);
        assert!(sent.status.success(), "{}", fault(&sent));
    }
    for args in [&["inbox", "--unread", "--mark-read"][..], &["inbox", "--follow"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut child = piped(&node, args, writer);
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if begin.elapsed() > PATIENCE {
                child.kill().unwrap();
                panic!("{args:?} does not end");
            }
            std::thread::yield_now();
        };
        assert!(status.success(), "{args:?}: {status}");
    }
    assert!(node.inbox().iter().all(|entry| entry["read"].is_null()), "{:?}", node.inbox());
}

#[test]
fn a_node_that_comes_back_is_followed_further() {
    let scratch = Scratch::new("follow");
    let mut node = Node::start(&configs(&scratch, "")[0]);
    let send = |node: &Node, text: &str| {
        let sent = message(node, &["send", "--to", "a", "--text", text]);
        assert!(sent.status.success(), "{}", fault(&sent));
    };
    send(&node, "before");
    let mut child = piped(&node, &["inbox", "--follow"], Stdio::piped());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until = |text: &str| {
        let found = lines.by_ref().map(Result::unwrap).any(|line| line.trim() == text);
        assert!(found, "it ends before '{text}'");
    };
    until("before");
    node.kill_and_start();
    send(&node, "after");
    until("after");
    child.kill().unwrap();
    child.wait().unwrap();
}
