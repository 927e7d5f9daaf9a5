//! Processes under siege: whatever clients, edges and links do, memory and descriptors stay within
//! bounds, the log stays short and in lines, and somebody else is served meanwhile.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long anything here may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Each process stays under this, in kB as the kernel counts.
const MAX_RESIDENT_KB: u64 = 160 * 1024;
/// Descriptors that may still be open behind a siege, beside those before it.
const SPARE_DESCRIPTORS: usize = 24;
/// What the log may hold of one siege, in bytes. Each exchange has its line, also one that is
/// refused, and an edge that reads nothing gets so many refused as its carrier takes answers: a
/// megabyte's worth in the gateway, and what the kernels hold, which differs from run to run.
const MAX_LOG_BYTES: usize = 1 << 20;

/// A side that is ready; killed when dropped.
struct Side {
    child: Child,
    address: String,
    log: Arc<Mutex<Vec<u8>>>,
    /// Bytes of the log that were looked at.
    checked: usize,
}

impl Side {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        let command = command.args(args).args(["--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (log, mut lines) = (Arc::<Mutex<Vec<u8>>>::default(), child.stderr.take().unwrap());
        let into = Arc::clone(&log);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = lines.read(&mut buffer) {
                into.lock().unwrap().extend_from_slice(&buffer[..read]);
            }
        });
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on ").expect(&line).trim_end().to_owned();
        Self { child, address, log, checked: 0 }
    }

    /// The most that was resident, in kB.
    fn peak_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// Waits until it has no more descriptors than this.
    fn falls_to(&self, most: usize, what: &str) {
        let began = Instant::now();
        while self.descriptors() > most {
            let now = self.descriptors();
            assert!(began.elapsed() < PATIENCE, "{what}: {now} descriptors, {most} allowed");
            std::thread::yield_now();
        }
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&self.log.lock().unwrap()).into_owned()
    }

    /// Nothing was too much, and nothing is left.
    fn check(&mut self, before: usize, what: &str) {
        self.falls_to(before + SPARE_DESCRIPTORS, what);
        let peak_kb = self.peak_kb();
        assert!(peak_kb < MAX_RESIDENT_KB, "{what}: {peak_kb} kB");
        let said = self.said();
        let more = said.len() - std::mem::replace(&mut self.checked, said.len());
        assert!(more < MAX_LOG_BYTES, "{what}: {more} bytes of log");
        assert!(!said.contains("a fault of ours"), "{what}: {said}");
        assert!(self.child.try_wait().unwrap().is_none(), "{what}: it has ended: {said}");
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Answers `/big/` without end and all else at once, each connection's first request.
fn origin() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut head = [0; 4096];
                let read = stream.read(&mut head).unwrap_or(0);
                if !head[..read].starts_with(b"GET /big/") {
                    let answer =
                        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\n";
                    let _ = stream.write_all(format!("{answer}ok\n").as_bytes());
                    return;
                }
                let head = "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n";
                let _ = stream.write_all(head.as_bytes());
                let piece = vec![b'x'; 64 << 10];
                for _ in 0..1500 {
                    if stream.write_all(&piece).is_err() {
                        return;
                    }
                }
            });
        }
    });
    url
}

/// From another address than those who besiege.
fn is_served(edge: &str, url: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        socket.connect(edge.parse().unwrap()).await.unwrap().into_std().unwrap()
    });
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {url}/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok\n"), "{answer}");
}

/// `count` connections that say this and do not read.
fn say(address: &str, count: usize, what: &str) -> Vec<TcpStream> {
    let one = |_| {
        let mut stream = TcpStream::connect(address).ok()?;
        let _ = stream.write_all(what.as_bytes());
        Some(stream)
    };
    (0..count).filter_map(one).collect()
}

#[test]
fn clients_that_come_and_go_leave_neither_memory_nor_descriptors() {
    let url = origin();
    // Each request has its line; what is more than that shows among warnings.
    let mut gateway = Side::start(&["gateway", "--allow", &url, "--log", "warn"]);
    let mut edge = Side::start(&["edge", "--gateway", &gateway.address, "--log", "warn"]);
    is_served(&edge.address, &url);
    let before = [gateway.descriptors(), edge.descriptors()];
    let ask = |path: &str| format!("GET {url}/{path} HTTP/1.1\r\nHost: a\r\n\r\n");
    let partial = format!("GET {url}/x HTTP/1.1\r\nHost: a\r\nX: {}", "y".repeat(60_000));
    let upload = format!("POST {url}/x HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\nhalf");
    let mut peaks = Vec::new();
    for _ in 0..3 {
        for (count, what) in [
            (200, ask("big/1")),
            (200, upload.clone()),
            (200, partial.clone()),
            (300, String::new()),
            (300, "GET http://a HTT".to_owned()),
        ] {
            let held = say(&edge.address, count, &what);
            is_served(&edge.address, &url);
            drop(held);
        }
        // Asked and left at once.
        for _ in 0..20 {
            drop(say(&edge.address, 50, &ask("x")));
        }
        is_served(&edge.address, &url);
        gateway.check(before[0], "gateway");
        edge.check(before[1], "edge");
        peaks.push([gateway.peak_kb(), edge.peak_kb()]);
    }
    // What the first round took is enough for the others.
    for (first, last) in peaks[0].iter().zip(peaks[2]) {
        assert!(last < first + first / 2 + 8192, "{peaks:?}");
    }
}

/// A number as frames have it (RFC 9000 §16).
fn number(value: u64) -> Vec<u8> {
    match value {
        0..0x40 => vec![value.to_be_bytes()[7]],
        0x40..0x4000 => (value | 0x4000).to_be_bytes()[6..].to_vec(),
        0x4000..0x4000_0000 => (value | 0x8000_0000).to_be_bytes()[4..].to_vec(),
        _ => (value | 0xc000_0000_0000_0000).to_be_bytes().to_vec(),
    }
}

fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    [&number(kind), &number(payload.len() as u64), payload].concat()
}

/// What an edge of this instance says first.
fn hello(instance: u64) -> Vec<u8> {
    let parameter = |id: u64, values: &[u64]| {
        let value: Vec<u8> = values.iter().flat_map(|value| number(*value)).collect();
        [number(id), number(value.len() as u64), value].concat()
    };
    let parameters =
        [parameter(1, &[1 << 20]), parameter(2, &[256]), parameter(3, &[0, 1, 2])].concat();
    frame(0, &[&[1, 1][..], &instance.to_be_bytes(), &parameters, &parameter(4, &[20])].concat())
}

/// A whole request in one frame.
fn request(exchange: u64, authority: &str, path: &str) -> Vec<u8> {
    let text = |text: &str| [&number(text.len() as u64), text.as_bytes()].concat();
    let head = [vec![0], text("GET"), text("http"), text(authority), text(path), vec![0]].concat();
    frame(0x11, &[number(exchange), vec![0], head].concat())
}

/// Sends this many of what `make` makes, whether or not it is taken, and reads nothing of what
/// comes back; gives up where the carrier is closed.
fn flood(gateway: &str, instance: u64, count: u64, make: impl Fn(u64) -> Vec<u8>) {
    let mut stream = TcpStream::connect(gateway).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    let _ = stream.write_all(&hello(instance));
    let mut at = 0;
    while at < count {
        let piece: Vec<u8> = (at..count.min(at + 1000)).flat_map(&make).collect();
        if stream.write_all(&piece).is_err() {
            return;
        }
        at += 1000;
    }
}

/// What is sent, how often, and each by its number.
type Flood<'a> = (&'a str, u64, &'a dyn Fn(u64) -> Vec<u8>);

#[test]
fn edges_that_flood_a_gateway_leave_neither_memory_nor_descriptors() {
    let url = origin();
    let mut gateway = Side::start(&["gateway", "--allow", &url]);
    let mut edge = Side::start(&["edge", "--gateway", &gateway.address]);
    is_served(&edge.address, &url);
    let before = [gateway.descriptors(), edge.descriptors()];
    let authority = url.strip_prefix("http://").unwrap();
    let floods: [Flood<'_>; 7] = [
        ("PING", 1_500_000, &|at| frame(1, &number(at))),
        ("CONTROL of a later version", 200_000, &|at| {
            frame(4, &[number(77 + at), vec![b'x'; 20]].concat())
        }),
        ("CONTROL that is broken", 200_000, &|at| {
            frame(4, &[number(at % 20), vec![0xff]].concat())
        }),
        ("QUERY", 40_000, &|at| frame(0x0b, &number(at))),
        ("refused requests", 20_000, &|at| request(at, "forbidden.example", "/")),
        ("requests that are no HTTP", 20_000, &|at| request(at, authority, "no path")),
        ("frames of later versions", 200_000, &|at| frame(0x1000 + at % 7, &[0; 30])),
    ];
    for (instance, (what, count, make)) in (100..).zip(floods) {
        flood(&gateway.address, instance, count, make);
        is_served(&edge.address, &url);
        gateway.check(before[0], what);
    }
    // One peer with every carrier that there is, and strangers who never say who they are.
    let greeted: Vec<TcpStream> = (0..100_u64)
        .filter_map(|at| {
            let mut stream = TcpStream::connect(&gateway.address).ok()?;
            stream.write_all(&hello(1000 + at)).ok().map(|()| stream)
        })
        .collect();
    let strangers = say(&gateway.address, 200, "");
    is_served(&edge.address, &url);
    // 64 carriers, 16 that close, and 64 strangers of two descriptors each.
    gateway.falls_to(before[0] + 2 * (64 + 16 + 64) + SPARE_DESCRIPTORS, "all places taken");
    drop((greeted, strangers));
    gateway.check(before[0], "carriers and strangers");
    edge.check(before[1], "edge");
}

/// Passes connections on to `to`, and while `flips` says so turns a bit in every so many bytes.
fn flipping(to: &str, flips: &Arc<AtomicBool>, seed: u64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, to) = (listener.local_addr().unwrap().to_string(), to.to_owned());
    let (flips, state) = (Arc::clone(flips), Arc::new(AtomicU64::new(seed)));
    std::thread::spawn(move || {
        for near in listener.incoming() {
            let (near, far) = (near.unwrap(), TcpStream::connect(&to).unwrap());
            let ways = [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)];
            for (mut from, mut to) in ways {
                let (flips, state) = (Arc::clone(&flips), Arc::clone(&state));
                std::thread::spawn(move || {
                    let mut buffer = [0; 4096];
                    while let Ok(read @ 1..) = from.read(&mut buffer) {
                        // Knuth's MMIX generator; its upper bits are good enough.
                        let next = |value: u64| {
                            Some(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1))
                        };
                        let random =
                            state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap();
                        let at = usize::try_from(random >> 40).unwrap() % (4 * read.max(300));
                        if flips.load(Ordering::Relaxed) && at < read {
                            buffer[at] ^= 1 << ((random >> 37) & 7);
                        }
                        if to.write_all(&buffer[..read]).is_err() {
                            break;
                        }
                    }
                    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
                });
            }
        }
    });
    address
}

/// A link without keys that changes bytes can make answers wrong, but no side ends or grows.
#[test]
fn a_link_that_flips_bits_ends_no_side() {
    let url = origin();
    for (seed, encoding) in (17..).zip(["identity", "deflate", "auto"]) {
        println!("seed {seed}");
        let mut gateway = Side::start(&["gateway", "--allow", &url, "--encoding", encoding]);
        let flips = Arc::new(AtomicBool::new(false));
        let link = flipping(&gateway.address, &flips, seed);
        let times = ["--connect-timeout", "2 s", "--response-timeout", "2 s"];
        // A frame that is never whole is believed in for ten times this.
        let silence = ["--peer-timeout", "2 s"];
        let args = ["edge", "--gateway", &link, "--encoding", encoding];
        let mut edge = Side::start(&[&args[..], &times, &silence].concat());
        is_served(&edge.address, &url);
        let before = [gateway.descriptors(), edge.descriptors()];
        flips.store(true, Ordering::Relaxed);
        let asking: Vec<_> = (0..8)
            .map(|client| {
                let (to, url) = (edge.address.clone(), url.clone());
                std::thread::spawn(move || {
                    for number in 0..12 {
                        let body = format!("{number} of {client}, ").repeat(200);
                        let mut stream = TcpStream::connect(&to).unwrap();
                        stream.set_read_timeout(Some(PATIENCE)).unwrap();
                        let _ = write!(
                            stream,
                            "POST {url}/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
                             Content-Length: {}\r\n\r\n{body}",
                            body.len()
                        );
                        // Whatever comes, it ends.
                        let _ = stream.read_to_end(&mut Vec::new());
                    }
                })
            })
            .collect();
        asking.into_iter().for_each(|client| client.join().unwrap());
        flips.store(false, Ordering::Relaxed);
        // A carrier that is out of step ends, and the next one is in step.
        let began = Instant::now();
        let served = || {
            let (to, url) = (edge.address.clone(), url.clone());
            std::thread::spawn(move || is_served(&to, &url)).join().is_ok()
        };
        while !served() {
            assert!(began.elapsed() < PATIENCE, "{encoding}: {}", edge.said());
        }
        gateway.check(before[0], encoding);
        edge.check(before[1], encoding);
    }
}

/// What is in no line of a log: it would begin another, move the cursor or turn the text around.
fn is_forged(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() && c != '\n' || turns
}

#[test]
fn nothing_that_others_say_forges_a_line_of_the_log() {
    let url = origin();
    let authority = url.strip_prefix("http://").unwrap();
    let nasty = "\r\nERROR forged\u{1b}[31m\u{85}\u{9b}31m\u{2028}\u{202e}\u{2066}\u{7f}\tx";
    for format in ["text", "json"] {
        let log = ["--log", "trace", "--log-format", format];
        let gateway = Side::start(&[&["gateway", "--allow", &url][..], &log].concat());
        let edge = Side::start(&[&["edge", "--gateway", &gateway.address][..], &log].concat());
        // By an edge.
        let bad = |exchange| {
            let reason = [&number(exchange), &number(0)[..], nasty.as_bytes()].concat();
            [
                request(exchange, authority, &format!("/{nasty}")),
                request(exchange + 1, &format!("{nasty}{authority}"), "/x"),
                request(exchange + 2, authority, "/x"),
                frame(9, &[reason].concat()),
            ]
            .concat()
        };
        for instance in 1..4_u64 {
            flood(&gateway.address, instance, 3, |at| bad(10 * at));
        }
        // By a gateway: its reasons, to an edge that tells its client.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let hostile = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.write_all(&hello(9));
                let mut came = [0; 4096];
                while let Ok(1..) = stream.read(&mut came) {
                    for exchange in 0..8 {
                        let number = [number(exchange), number(4), nasty.into()].concat();
                        let _ = stream.write_all(&frame(9, &number));
                    }
                }
            }
        });
        let args = ["edge", "--gateway", &hostile, "--response-timeout", "2 s"];
        let misled = Side::start(&[&args[..], &log].concat());
        // By clients.
        for to in [&edge.address, &misled.address] {
            for ask in [
                format!("GET {url}/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
                format!("GET {url}/{} HTTP/1.1\r\nHost: a\r\n\r\n", nasty.replace('\r', "")),
                format!("GET {url}/\u{85}\u{2028}\u{202e} HTTP/1.1\r\nHost: \u{202e}\r\n\r\n"),
                format!("G\u{1b}T {url}/x HTTP/1.1\r\nHost: a\r\n\r\n"),
                format!("{nasty} {url}/x HTTP/1.1\r\nHost: a\r\n\r\n"),
            ] {
                let mut stream = TcpStream::connect(to).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let _ = stream.write_all(ask.as_bytes());
                let _ = stream.shutdown(Shutdown::Write);
                let mut answer = Vec::new();
                let _ = stream.read_to_end(&mut answer);
                let answer = String::from_utf8_lossy(&answer).into_owned();
                let head = answer.split("\r\n\r\n").next().unwrap().replace("\r\n", "\n");
                assert!(!head.contains(is_forged), "{head:?}");
                assert!(!head.lines().any(|line| line.starts_with("ERROR")), "{head:?}");
            }
        }
        for side in [gateway, edge, misled] {
            let said = side.said();
            let forged = |line: &&str| line.contains(is_forged) || line.starts_with("ERROR");
            let line = said.lines().find(forged);
            assert_eq!(line, None, "{format}");
        }
    }
}
