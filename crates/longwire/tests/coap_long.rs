//! Long bodies through `longwire coap` and `longwire gateway`, as processes: however long a body
//! is, and however slowly it is taken, their memory is level.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Many times what any process may keep of it.
const BODY_BYTES: usize = 24 << 20;
/// With such a one a process has read its code, and has its windows and buffers.
const SHORT_BYTES: usize = 2 << 20;
/// What a process may take more for the longer one, in KiB: what the allocator keeps.
const MAX_GROWTH_KIB: u64 = 4 << 10;

fn byte_at(offset: usize) -> u8 {
    u8::try_from(offset % 251).unwrap() ^ u8::try_from((offset >> 10) % 256).unwrap()
}

fn is_expected(offset: usize, bytes: &[u8]) -> bool {
    bytes.iter().enumerate().all(|(at, byte)| *byte == byte_at(offset + at))
}

/// An origin of HTTP whose resources are so long, and which says how much of what was put there was
/// as it should be.
fn origin() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || serve(stream.unwrap()));
        }
    });
    address.to_string()
}

fn serve(mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let is_put = line.starts_with("PUT ");
    let bytes = if line.contains(" /short ") { SHORT_BYTES } else { BODY_BYTES };
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).unwrap();
        assert!(!line.to_ascii_lowercase().starts_with("content-length"), "it is chunked");
    }
    if is_put {
        let text = format!("{} good", chunked(&mut reader));
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
            text.len()
        );
        stream.write_all((head + &text).as_bytes()).unwrap();
        return;
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\
         Content-Length: {bytes}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    for offset in (0..bytes).step_by(1 << 16) {
        let bytes: Vec<u8> = (offset..bytes.min(offset + (1 << 16))).map(byte_at).collect();
        // Who breaks off wants no more.
        if stream.write_all(&bytes).is_err() {
            return;
        }
    }
}

/// How many bytes of a body in chunks are as expected.
fn chunked(reader: &mut impl std::io::BufRead) -> usize {
    let mut good = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let len = usize::from_str_radix(line.trim_end(), 16).unwrap();
        let mut bytes = vec![0; len + 2];
        reader.read_exact(&mut bytes).unwrap();
        if len == 0 {
            return good;
        }
        if is_expected(good, &bytes[..len]) {
            good += len;
        }
    }
}

/// A process that is killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// The most memory that it has had, in KiB.
    fn most_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

fn longwire(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(args);
    command
}

/// A gateway, and where it listens for what its log calls so.
fn gateway(more: &[&str], name: &str) -> (Running, String) {
    let args = ["gateway", "--listen", "127.0.0.1:0", "--log-format", "json"];
    let mut command = longwire(&[&args[..], more].concat());
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut running = Running(child);
    let log = BufReader::new(running.0.stderr.take().unwrap());
    let mut lines = log.lines().map(|line| line.unwrap());
    let place = lines.find_map(|line| {
        let line: Value = serde_json::from_str(&line).ok()?;
        let place = line.get(name).or_else(|| line.get("fields")?.get(name))?;
        place.as_str().map(str::to_owned)
    });
    // Nobody waits for the log.
    std::thread::spawn(move || lines.count());
    (running, place.expect("it listens"))
}

/// A directory of its own, removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("longwire-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs `longwire coap get`; the most memory that it has had.
fn fetch(url: &str, into: &str) -> u64 {
    let args = ["coap", "get", url, "-o", into, "--timeout", "60 s"];
    let child = longwire(&args).stderr(Stdio::piped()).spawn().unwrap();
    let mut running = Running(child);
    let mut most_kib = 0;
    while running.0.try_wait().unwrap().is_none() {
        // A process that has just ended has no memory any more.
        if let Ok(status) = fs::read_to_string(format!("/proc/{}/status", running.0.id()))
            && let Some(line) = status.lines().find(|line| line.starts_with("VmHWM:"))
        {
            most_kib = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        }
        // sleep: a process says nothing of its memory.
        std::thread::sleep(Duration::from_millis(50));
    }
    let status = running.0.wait().unwrap();
    let mut said = String::new();
    running.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(status.success(), "{said}");
    most_kib
}

/// A gateway with clients of CoAP in front of an origin.
fn in_front_of_an_origin() -> (Running, String) {
    let upstream = format!("http://{}", origin());
    gateway(&["--coap", "127.0.0.1:0", "--allow", &upstream, "--coap-upstream", &upstream], "coap")
}

/// A proxy of HTTP in front of such a gateway.
fn in_front_of(coap: &str) -> (Running, String) {
    let allow = format!("coap://{coap}");
    gateway(&["--http-listen", "127.0.0.1:0", "--allow", &allow], "http")
}

fn assert_level(processes: &[(&Running, u64)]) {
    for (process, before) in processes {
        // The kernel's count is not exact, and may be less than it was.
        let grown = process.most_kib().saturating_sub(*before);
        assert!(grown < MAX_GROWTH_KIB, "it has grown by {grown} KiB");
    }
}

/// A client of CoAP, over UDP and TCP, gets a long answer of an origin of HTTP.
#[test]
fn a_long_answer_passes_a_gateway_and_its_client() {
    let scratch = Scratch::new("coap-long");
    let (gateway, place) = in_front_of_an_origin();
    let path = scratch.0.join("body");
    let into = path.to_str().unwrap();
    let schemes = ["coap", "coap+tcp"];
    for scheme in schemes {
        fetch(&format!("{scheme}://{place}/short"), into);
    }
    let before = gateway.most_kib();
    for scheme in schemes {
        let most = fetch(&format!("{scheme}://{place}/long"), into);
        let body = fs::read(&path).unwrap();
        assert!(body.len() == BODY_BYTES && is_expected(0, &body), "{scheme}");
        assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 1, "nothing else is left there");
        // With its code, less than the body alone.
        assert!(most < BODY_BYTES as u64 >> 10, "a client has had {most} KiB");
    }
    assert_level(&[(&gateway, before)]);
}

/// And puts one there, of a file that is read as it is sent.
#[test]
fn a_long_file_passes_a_client_and_its_gateway() {
    let scratch = Scratch::new("coap-put");
    let (gateway, place) = in_front_of_an_origin();
    let file = scratch.0.join("body");
    let put = |scheme: &str, bytes: usize| {
        fs::write(&file, (0..bytes).map(byte_at).collect::<Vec<_>>()).unwrap();
        let url = format!("{scheme}://{place}/long");
        let args = ["coap", "put", &url, "-f", file.to_str().unwrap(), "--timeout", "60 s"];
        let output = longwire(&args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{scheme}: {said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{bytes} good"), "{scheme}");
    };
    let schemes = ["coap", "coap+tcp"];
    for scheme in schemes {
        put(scheme, SHORT_BYTES);
    }
    let before = gateway.most_kib();
    for scheme in schemes {
        put(scheme, BODY_BYTES);
    }
    assert_level(&[(&gateway, before)]);
}

/// Puts so many bytes by HTTP; what is said to that.
fn put_by_http(http: &str, coap: &str, bytes: usize) -> String {
    let mut stream = TcpStream::connect(http).unwrap();
    let head = format!(
        "PUT /hc/coap://{coap}/long HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\
         Content-Length: {bytes}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    for offset in (0..bytes).step_by(1 << 16) {
        let bytes: Vec<u8> = (offset..bytes.min(offset + (1 << 16))).map(byte_at).collect();
        stream.write_all(&bytes).unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A client of HTTP puts a long body on a server of CoAP.
#[test]
fn a_long_request_of_http_reaches_a_coap_origin() {
    let (server, coap) = in_front_of_an_origin();
    let (proxy, http) = in_front_of(&coap);
    put_by_http(&http, &coap, SHORT_BYTES);
    let before = [server.most_kib(), proxy.most_kib()];
    let answer = put_by_http(&http, &coap, BODY_BYTES);
    assert!(answer.contains(&format!("{BODY_BYTES} good")), "{answer}");
    assert_level(&[(&server, before[0]), (&proxy, before[1])]);
}

/// Gets a body by HTTP, of which nothing is read for so long; how long it is.
fn get_by_http(http: &str, coap: &str, path: &str, pause: Duration) -> usize {
    let mut stream = TcpStream::connect(http).unwrap();
    let head = format!("GET /hc/coap://{coap}{path} HTTP/1.0\r\nHost: {http}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.contains(" 200 "), "{line}");
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).unwrap();
    }
    // sleep: what nobody reads is to have time to pile up.
    std::thread::sleep(pause);
    let (mut came, mut room) = (0, vec![0; 1 << 16]);
    loop {
        let len = reader.read(&mut room).unwrap();
        if len == 0 {
            return came;
        }
        assert!(is_expected(came, &room[..len]), "at {came}");
        came += len;
    }
}

/// A client of HTTP gets a long answer of a server of CoAP, and takes its time.
#[test]
fn a_long_answer_of_a_coap_origin_waits_for_its_reader() {
    let (server, coap) = in_front_of_an_origin();
    let (proxy, http) = in_front_of(&coap);
    assert_eq!(get_by_http(&http, &coap, "/short", Duration::ZERO), SHORT_BYTES);
    let before = [server.most_kib(), proxy.most_kib()];
    let came = get_by_http(&http, &coap, "/long", Duration::from_secs(3));
    assert_eq!(came, BODY_BYTES);
    assert_level(&[(&server, before[0]), (&proxy, before[1])]);
}
