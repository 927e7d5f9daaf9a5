//! A side that is told to end: it makes way for the next at once, finishes what has an end, and
//! ends what has none.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proxy::store::{Store, StoreSettings};

/// How long anything here may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a stream may go on, which is far from the default of `drain_timeout`.
const SOON: Duration = Duration::from_secs(12);
/// Bytes of the answers that have an end.
const TEXT_BYTES: usize = 40_000;

/// A side that is ready; killed when dropped.
struct Side {
    child: Child,
    address: String,
    log: Arc<Mutex<String>>,
}

impl Side {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        let mut child =
            command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (log, lines) = (Arc::<Mutex<String>>::default(), child.stderr.take().unwrap());
        let into = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in BufReader::new(lines).lines().map_while(Result::ok) {
                *into.lock().unwrap() += &format!("{line}\n");
            }
        });
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on ").expect(&line).trim_end().to_owned();
        Self { child, address, log }
    }

    /// Where it listens besides, as its log says.
    fn other_address(&self, message: &str) -> String {
        let began = Instant::now();
        loop {
            let log = self.log.lock().unwrap().clone();
            if let Some(line) = log.lines().find(|line| line.contains(message)) {
                let at = line.split("127.0.0.1:").nth(1).expect(line);
                let port: String = at.chars().take_while(char::is_ascii_digit).collect();
                return format!("127.0.0.1:{port}");
            }
            assert!(began.elapsed() < PATIENCE, "no '{message}' in {log}");
            std::thread::yield_now();
        }
    }

    fn tell_to_end(&self) {
        let mut kill = Command::new("kill");
        assert!(kill.arg(self.child.id().to_string()).status().unwrap().success());
    }

    /// Waits for its end; its exit status.
    fn ended(mut self) -> Option<i32> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
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

/// A service with text, an answer that waits for a word, events without an end, and an echo.
struct Service {
    address: String,
    /// A request for the slow answer has come.
    asked: Receiver<()>,
    /// Lets one go.
    release: Sender<()>,
}

impl Service {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let ((asks, asked), (release, released)) = (channel(), channel());
        let released = Arc::new(Mutex::new(released));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (asks, released) = (asks.clone(), Arc::clone(&released));
                std::thread::spawn(move || serve(stream.unwrap(), &asks, &released));
            }
        });
        Self { address, asked, release }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

fn serve(mut stream: TcpStream, asks: &Sender<()>, released: &Mutex<Receiver<()>>) {
    let mut head = [0; 4096];
    let read = stream.read(&mut head).unwrap_or(0);
    let head = String::from_utf8_lossy(&head[..read]).into_owned();
    if head.contains("/events") {
        let events = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                      Transfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n";
        let _ = stream.write_all(events.as_bytes());
    } else if head.starts_with("hello") {
        let _ = stream.write_all(b"world");
    } else {
        if head.contains("/slow") {
            asks.send(()).unwrap();
            released.lock().unwrap().recv().unwrap();
        }
        let text = format!("{}end\n", "some text ".repeat((TEXT_BYTES - 4) / 10));
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            text.len()
        );
        let _ = stream.write_all(format!("{head}{text}").as_bytes());
    }
    // Until the other end closes.
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
}

/// A request that is under way.
struct Asked(TcpStream);

impl Asked {
    fn new(proxy: &str, text: &str) -> Self {
        let mut stream = TcpStream::connect(proxy).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        Self(stream)
    }

    fn get(proxy: &str, url: &str) -> Self {
        let head = format!("GET {url} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        Self::new(proxy, &head)
    }

    fn until(&mut self, end: &str) -> String {
        let mut came = Vec::new();
        while !came.ends_with(end.as_bytes()) {
            let mut byte = [0];
            assert_eq!(self.0.read(&mut byte).unwrap(), 1, "{:?}", String::from_utf8_lossy(&came));
            came.push(byte[0]);
        }
        String::from_utf8(came).unwrap()
    }

    /// The rest, if it ends in order.
    fn rest(mut self) -> std::io::Result<String> {
        let mut rest = String::new();
        self.0.read_to_string(&mut rest)?;
        Ok(rest)
    }

    fn assert_whole_text(self) {
        let answer = self.rest().unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK") && body.ends_with("end\n"), "{head}");
        assert_eq!(body.len(), TEXT_BYTES - (TEXT_BYTES - 4) % 10, "{head}");
    }
}

/// An event stream that has begun.
fn events(proxy: &str, service: &Service) -> Asked {
    let mut events = Asked::get(proxy, &service.url("/events"));
    events.until("data: 1\n\n");
    events
}

/// A tunnel that something has passed through.
fn tunnel(proxy: &str, service: &Service) -> Asked {
    let at = &service.address;
    let mut tunnel = Asked::new(proxy, &format!("CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n\r\n"));
    tunnel.until("\r\n\r\n");
    tunnel.0.write_all(b"hello").unwrap();
    tunnel.until("world");
    tunnel
}

/// A directory that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("longwire-drain-{}-{name}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&dir);
        Self(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A port that nobody has.
fn free() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn a_gateway_makes_way_for_the_next_which_has_its_ports_and_what_it_learned() {
    let (service, scratch) = (Service::start(), Scratch::new("gateway"));
    let (listen, admin, edgeless) = (free(), free(), free());
    let (store, http) = (scratch.0.to_str().unwrap(), service.url(""));
    let https = http.replace("http://", "https://");
    let gateway = [
        &["gateway", "--listen", &listen, "--admin", &admin, "--http-listen", &edgeless][..],
        &["--store", store, "--allow", &http, "--allow", &https],
    ]
    .concat();
    let before = Side::start(&gateway);
    let edge = Side::start(&["edge", "--listen", "127.0.0.1:0", "--gateway", &listen]);
    for _ in 0..3 {
        Asked::get(&edge.address, &service.url("/text")).assert_whole_text();
    }
    let (events, tunnel) = (events(&edge.address, &service), tunnel(&edge.address, &service));
    let slow = Asked::get(&edge.address, &service.url("/slow"));
    service.asked.recv_timeout(PATIENCE).unwrap();
    let is_ready = "GET /health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut watched = Asked::new(&admin, is_ready);
    assert!(watched.until("}").contains(" 200 OK"));

    before.tell_to_end();
    let signalled = Instant::now();
    let next = Side::start(&gateway);
    Asked::get(&edge.address, &service.url("/text")).assert_whole_text();
    assert!(signalled.elapsed() < Duration::from_secs(6), "{:?}", signalled.elapsed());
    Asked::get(&edgeless, &service.url("/text")).assert_whole_text();
    assert!(Asked::get(&admin, "/health/ready").rest().unwrap().contains(" 200 OK"));

    watched.0.write_all(is_ready.as_bytes()).unwrap();
    let standing = watched.until("}");
    assert!(standing.contains(" 503 ") && standing.contains("shutting down"), "{standing}");
    let rest = events.rest().unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "{rest:?}");
    assert!(tunnel.rest().is_err(), "a tunnel that is cut must not look whole");
    assert!(signalled.elapsed() < SOON, "{:?}", signalled.elapsed());
    // What has an end is waited for.
    service.release.send(()).unwrap();
    slow.assert_whole_text();
    assert_eq!(before.ended(), Some(0));
    let about = next.log.lock().unwrap().clone();
    assert!(!about.contains("unusable") && !about.contains("set aside"), "{about}");

    next.tell_to_end();
    assert_eq!(next.ended(), Some(0));
    let directory = scratch.0.clone();
    let place = StoreSettings {
        directory,
        history_rows: 100,
        history_bytes: 1 << 20,
        age: Duration::from_secs(86_400),
    };
    let learned = Store::open(&place, "learned").unwrap().take_learned();
    assert!(learned.state.is_some(), "{learned:?}");
    assert!(learned.since.is_empty(), "what was learned is saved before the store is let go");
}

#[test]
fn streams_end_with_their_side_on_whatever_way_they_go() {
    let service = Service::start();
    let http = service.url("");
    let https = http.replace("http://", "https://");
    let listen = ["--listen", "127.0.0.1:0"];
    let allow = ["--allow", &http, "--allow", &https, "--http-listen", "127.0.0.1:0"];
    let gateway = Side::start(&[&["gateway"][..], &listen, &allow].concat());
    let by_pair = Side::start(&[&["edge", "--gateway", &gateway.address][..], &listen].concat());
    let alone = Side::start(&[&["edge"][..], &listen].concat());
    let edgeless = gateway.other_address("listener for clients without an edge");
    let cases = [
        ("by the pair", by_pair.address.clone(), by_pair),
        ("by an edge alone", alone.address.clone(), alone),
        ("without an edge", edgeless, gateway),
    ];
    for (way, proxy, side) in cases {
        let (events, tunnel) = (events(&proxy, &service), tunnel(&proxy, &service));
        let slow = Asked::get(&proxy, &service.url("/slow"));
        service.asked.recv_timeout(PATIENCE).unwrap();
        side.tell_to_end();
        let signalled = Instant::now();
        let rest = events.rest().unwrap();
        assert!(rest.ends_with("0\r\n\r\n"), "{way}: {rest:?}");
        assert!(tunnel.rest().is_err(), "{way}: a tunnel that is cut must not look whole");
        assert!(signalled.elapsed() < SOON, "{way}: {:?}", signalled.elapsed());
        assert!(TcpStream::connect(&proxy).is_err(), "{way}: it listens still");
        service.release.send(()).unwrap();
        slow.assert_whole_text();
        assert_eq!(side.ended(), Some(0), "{way}");
    }
}

/// As a service manager does it: the next one starts when the old one is gone.
#[test]
fn a_restart_costs_requests_some_time_and_no_failure() {
    let (service, scratch) = (Service::start(), Scratch::new("restart"));
    let (listen, store) = (free(), scratch.0.to_str().unwrap());
    let http = service.url("");
    let gateway = ["gateway", "--listen", &listen, "--store", store, "--allow", &http];
    let before = Side::start(&gateway);
    let edge = Side::start(&["edge", "--listen", "127.0.0.1:0", "--gateway", &listen]);
    Asked::get(&edge.address, &service.url("/text")).assert_whole_text();
    let events = events(&edge.address, &service);
    before.tell_to_end();
    let signalled = Instant::now();
    let meanwhile = Asked::get(&edge.address, &service.url("/text"));
    assert_eq!(before.ended(), Some(0));
    assert!(signalled.elapsed() < SOON, "{:?}", signalled.elapsed());
    let behind = Asked::get(&edge.address, &service.url("/text"));
    let _next = Side::start(&gateway);
    meanwhile.assert_whole_text();
    behind.assert_whole_text();
    assert!(events.rest().unwrap().ends_with("0\r\n\r\n"));
}

#[test]
fn a_store_that_stays_another_s_is_refused_and_it_is_said_what_was_waited_for() {
    let scratch = Scratch::new("store");
    let store = scratch.0.to_str().unwrap();
    let args = ["gateway", "--listen", "127.0.0.1:0", "--allow", "http://a", "--store", store];
    let _first = Side::start(&args);
    let output = Command::new(env!("CARGO_BIN_EXE_longwire")).args(args).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("waiting for it to end") && said.contains("--store of its own"),
        "{said}"
    );
}
