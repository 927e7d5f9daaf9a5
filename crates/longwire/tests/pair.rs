//! `longwire edge`, `gateway` and `keygen` as processes.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

fn longwire(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(args);
    command
}

fn run(args: &[&str]) -> Output {
    longwire(args).output().unwrap()
}

/// Bad use: status 2 and one line that holds `expected`.
fn assert_bad_use(args: &[&str], expected: &str) {
    let output = run(args);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{args:?}: {text}");
    assert!(text.starts_with("longwire: ") && text.contains(expected), "{args:?}: {text}");
    assert!(output.stdout.is_empty());
}

/// A process that is ready; killed when dropped.
struct Running {
    child: Child,
    address: String,
}

impl Running {
    fn start(args: &[&str]) -> Self {
        let mut child =
            longwire(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on ").expect(&line).trim_end().to_owned();
        Self { child, address }
    }

    fn signal(&self) {
        let status = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(status.success());
    }

    /// Ends it as a service manager would.
    fn terminate(mut self) -> Option<i32> {
        self.signal();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("longwire-pair-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir(&dir).unwrap();
        Self(dir)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn get(edge: &str, url: &str) -> String {
    let mut stream = TcpStream::connect(edge).unwrap();
    write!(stream, "GET {url} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_client_reaches_a_service_through_two_processes_with_keys() {
    ["stream", "burst", "auto"].into_iter().for_each(over);
}

/// The same over this carrier.
fn over(carrier: &str) {
    let scratch = Scratch::new(&format!("keys-{carrier}"));
    for name in ["edge", "gateway"] {
        let output = run(&["keygen", &scratch.path(name), "--name", name]);
        assert!(output.status.success());
        assert!(String::from_utf8(output.stdout).unwrap().contains("fingerprint"));
        let mode = std::fs::metadata(scratch.path(&format!("{name}/longwire.key"))).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    }
    let service = Running::start(&["serve", "tracks", "--listen", "127.0.0.1:0"]);
    let allow = format!("http://{}", service.address);
    let (gateway_key, gateway_pub) =
        (scratch.path("gateway/longwire.key"), scratch.path("gateway/longwire.pub"));
    let (edge_key, edge_pub) =
        (scratch.path("edge/longwire.key"), scratch.path("edge/longwire.pub"));
    let keys = ["--key", &gateway_key, "--peer", &edge_pub];
    let listen = ["--listen", "127.0.0.1:0", "--carrier", carrier];
    let gateway = Running::start(&[&["gateway", "--allow", &allow][..], &listen, &keys].concat());
    let keys = ["--key", &edge_key, "--peer", &gateway_pub];
    let to = ["edge", "--gateway", &gateway.address];
    let edge = Running::start(&[&to[..], &listen, &keys].concat());
    let answer = get(&edge.address, &format!("{allow}/rest/xml/1"));
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("<NFFIMessage"), "{answer}");
    assert_eq!(edge.terminate(), Some(0));
    assert_eq!(gateway.terminate(), Some(0));
}

#[test]
fn a_second_signal_ends_a_side_at_once() {
    // An origin that accepts and never answers keeps an exchange open.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let gateway = Running::start(&["gateway", "--listen", "127.0.0.1:0", "--allow", &url]);
    let to = ["edge", "--listen", "127.0.0.1:0", "--gateway", &gateway.address];
    let mut edge = Running::start(&to);
    let mut client = TcpStream::connect(&edge.address).unwrap();
    write!(client, "GET {url}/x HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let (_origin, _) = silent.accept().unwrap();
    edge.signal();
    // The listener closes with the first signal.
    while TcpStream::connect(&edge.address).is_ok() {
        std::thread::yield_now();
    }
    assert!(edge.child.try_wait().unwrap().is_none(), "it did not wait for the open exchange");
    let before = std::time::Instant::now();
    edge.signal();
    assert_eq!(edge.child.wait().unwrap().code(), Some(0));
    assert!(before.elapsed().as_secs() < 10);
}

#[test]
fn bad_use_is_one_line_and_status_2() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().to_string();
    let scratch = Scratch::new("use");
    let (config, key) = (scratch.path("c.toml"), scratch.path("k"));
    std::fs::write(&config, "[edge]\nlisten = '127.0.0.1:0'\ngatway = 'x'\n").unwrap();
    std::fs::write(&key, "").unwrap();
    let edge = ["edge", "--listen", "127.0.0.1:0"];
    let gateway = ["gateway", "--listen", "127.0.0.1:0"];
    for (args, expected) in [
        (vec!["edge", "--listen", &port], "name another port"),
        (vec!["gateway", "--listen", &port, "--allow", "http://a"], "name another port"),
        (vec!["edge"], "--listen"),
        (vec!["gateway", "--listen", "127.0.0.1:0"], "--allow"),
        (vec!["gateway", "--listen", "0.0.0.0:0", "--allow", "http://a"], "--insecure-plain"),
        (vec!["edge", "--config", &config], "c.toml:3: unknown key 'gatway': did you mean"),
        (vec!["edge", "--config", "/no/such/file"], "cannot read /no/such/file"),
        ([&edge[..], &["--encoding", "lzma"]].concat(), "unknown codec 'lzma'"),
        ([&edge[..], &["--gateway", "192.0.2.1:1"]].concat(), "--insecure-plain"),
        ([&edge[..], &["--key", &key, "--peer", &key]].concat(), "chmod 600"),
        ([&edge[..], &["--key", &key]].concat(), "--peer"),
        ([&edge[..], &["--connect-timeout", "5"]].concat(), "like '550 ms'"),
        ([&edge[..], &["--log", "loud"]].concat(), "one of error, warn"),
        ([&edge[..], &["--log-format", "xml"]].concat(), "one of text, json"),
        ([&edge[..], &["--gatway", "x"]].concat(), "--gateway"),
        ([&gateway[..], &["--plain", "127.0.0.1:0"]].concat(), "'--http-listen'"),
        ([&gateway[..], &["--plain=127.0.0.1:0"]].concat(), "'--http-listen'"),
        ([&gateway[..], &["--plain-upstream", "http://a"]].concat(), "'--http-upstream'"),
        ([&gateway[..], &["--plain-anywhere"]].concat(), "'--http-anywhere'"),
        ([&gateway[..], &["--allow", "a"]].concat(), "SCHEME://HOST"),
        (vec!["keygen", "/dev/null", "--name", "a b"], "'a b' is no name"),
    ] {
        assert_bad_use(&args, expected);
    }
}

#[test]
fn a_log_in_json_holds_no_secret() {
    let service = Running::start(&["serve", "tracks", "--listen", "127.0.0.1:0"]);
    let allow = format!("http://{}", service.address);
    let gateway = Running::start(&["gateway", "--listen", "127.0.0.1:0", "--allow", &allow]);
    let mut child = longwire(&["edge", "--listen", "127.0.0.1:0", "--log", "trace"])
        .args(["--log-format", "json", "--gateway", &gateway.address])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim_end().strip_prefix("listening on ").unwrap().to_owned();
    let url = format!("http://{}/rest/xml/1?token=s3cret-query", service.address);
    let mut stream = TcpStream::connect(&address).unwrap();
    write!(
        stream,
        "GET {url} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
         Authorization: Bearer s3cret-field\r\n\r\n"
    )
    .unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    let status = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(status.success() && child.wait().unwrap().success());
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(log.contains("\"message\":\"exchange finished\"") && log.contains(&allow), "{log}");
    for line in log.lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect(line);
        assert!(value.get("level").is_some());
    }
    assert!(!log.contains("s3cret"), "{log}");
}

/// A process whose log can be read, and which can be sent signals.
struct Logged {
    running: Running,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Logged {
    fn start(args: &[&str]) -> Self {
        let mut child =
            longwire(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on ").expect(&line).trim_end().to_owned();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
        });
        Self { running: Running { child, address }, lines }
    }

    fn hang_up(&self) {
        let id = self.running.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    }

    /// The next line of the log that holds this.
    fn line(&self, what: &str) -> String {
        let patience = std::time::Duration::from_secs(20);
        loop {
            let line = self.lines.recv_timeout(patience).expect(what);
            if line.contains(what) {
                return line;
            }
        }
    }
}

#[test]
fn a_hangup_reads_settings_again_and_ends_nothing() {
    let scratch = Scratch::new("hangup");
    let (config, store) = (scratch.path("c.toml"), scratch.path("store"));
    let write = |text: &str| std::fs::write(&config, text).unwrap();
    let first = "[gateway]\nlisten = '127.0.0.1:0'\nallow = ['http://127.0.0.1:1']\n";
    write(first);
    let gateway = Logged::start(&["gateway", "--config", &config, "--store", &store]);
    gateway.hang_up();
    assert!(gateway.line("read again").contains("nothing new"));
    write(&format!("{}max_exchanges = 3\n[log]\nlevel = 'debug'\n", first.replace(":1'", ":2'")));
    gateway.hang_up();
    let line = gateway.line("read again");
    let taken = "taken: allow (1 patterns), log level (debug); needs a restart: max_exchanges";
    assert!(line.contains(taken), "{line}");
    for broken in ["[gateway]\nlisten = 7", "[gateway]\n", "nonsense"] {
        write(broken);
        gateway.hang_up();
        let line = gateway.line("read again");
        assert!(line.contains("ERROR") && line.contains("are not taken"), "{line}");
    }
    // Without a file there is only the key to look at, and here not even that.
    let edge =
        Logged::start(&["edge", "--listen", "127.0.0.1:0", "--gateway", &gateway.running.address]);
    edge.hang_up();
    assert!(edge.line("read again").contains("nothing new"));
    assert_eq!(edge.running.terminate(), Some(0));
    assert_eq!(gateway.running.terminate(), Some(0));
}
