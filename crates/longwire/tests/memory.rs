//! Large bodies through two processes: every byte as it was sent, in bounded memory.
//!
//! The measurement of the documentation is the ignored test, in a release build:
//! `cargo test --release -p longwire --test memory -- --ignored --nocapture`.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.
#![allow(clippy::print_stdout)] // The measurement prints its figures.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Bodies at once.
const BODIES: usize = 16;
/// What each process has to itself stays under this, in kB as the kernel counts: 32 MiB of
/// `codec_memory` and 8 MiB of `body_memory`, 4 MiB for encoders that are tried, and what the
/// process and its allocator hold besides. The bodies of a direction are more.
const MAX_OWN_KB: u64 = 56 * 1024;
const ENCODINGS: [&str; 4] = ["identity", "deflate", "zstd", "auto"];
/// Bodies repeat after this many bytes, far beyond every codec's window.
const PERIOD_BYTES: usize = 4 << 20;

/// Text that compresses about as well as messages do.
fn text() -> &'static [u8] {
    static TEXT: OnceLock<Vec<u8>> = OnceLock::new();
    TEXT.get_or_init(|| {
        let words = ["<track>", "</track>", "latitude", " unit='", "' ", "NATO", "\n", "speed"];
        let (mut state, mut text) = (1_u64, Vec::with_capacity(PERIOD_BYTES + 64));
        while text.len() < PERIOD_BYTES {
            // Knuth's MMIX generator; its upper bits are good enough.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let word = words[usize::try_from(state >> 61).unwrap()];
            write!(text, "{word}{}", (state >> 40) % 1000).unwrap();
        }
        text.truncate(PERIOD_BYTES);
        text
    })
}

/// Writes body number `number`.
fn write_body(mut to: impl Write, number: usize, len: usize) -> std::io::Result<()> {
    let (mut at, mut left) = (number * 1000, len);
    while left > 0 {
        let rest = &text()[at % PERIOD_BYTES..];
        let piece = &rest[..rest.len().min(left).min(64 * 1024)];
        to.write_all(piece)?;
        at += piece.len();
        left -= piece.len();
    }
    Ok(())
}

/// Reads body number `number` and compares it byte for byte.
fn check_body(mut from: impl Read, number: usize, len: usize) {
    let (mut at, mut left) = (number * 1000, len);
    let mut buffer = vec![0; 64 * 1024];
    while left > 0 {
        let most = buffer.len().min(left).min(PERIOD_BYTES - at % PERIOD_BYTES);
        let read = from.read(&mut buffer[..most]).unwrap();
        assert!(read > 0, "body {number} ends {left} bytes early");
        let expected = &text()[at % PERIOD_BYTES..][..read];
        assert!(buffer[..read] == *expected, "body {number} differs {left} bytes from its end");
        at += read;
        left -= read;
    }
}

/// Reads a head; gives its first line and Content-Length.
fn read_head(from: &mut impl std::io::BufRead) -> (String, usize) {
    let (mut first, mut length) = (String::new(), 0);
    from.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        if line.trim_end().is_empty() {
            return (first, length);
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
}

/// An origin: GET gives the body whose number is the path, of `len` bytes; POST checks it.
fn origin(len: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut reader = BufReader::new(&stream);
                let (first, length) = read_head(&mut reader);
                let number = first.split(['/', ' ']).nth(2).unwrap().parse().unwrap();
                let mut writer = &stream;
                if first.starts_with("GET") {
                    write!(writer, "HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n").unwrap();
                    write_body(writer, number, len).unwrap();
                } else {
                    check_body(reader, number, length);
                    writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
                }
            });
        }
    });
    address
}

/// A process of the pair; killed when dropped.
struct Side {
    child: Child,
    address: String,
}

impl Side {
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_longwire"))
            .args(args)
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on ").expect(&line).to_owned();
        Self { child, address }
    }

    /// The most that was resident, in kB, and of that what no file backs. Pages of the program are
    /// shared by all its processes, and the kernel counts those around the ones that are used.
    fn peak_kb(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let kb = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().trim_end_matches(" kB").parse().unwrap()
        };
        let all = kb("VmHWM:");
        (all, all.saturating_sub(kb("RssFile:")))
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn exchange(edge: &str, origin: SocketAddr, number: usize, upload: Option<usize>, len: usize) {
    let stream = TcpStream::connect(edge).unwrap();
    let mut writer = &stream;
    let (method, length) =
        upload.map_or(("GET", String::new()), |len| ("POST", format!("Content-Length: {len}\r\n")));
    write!(
        writer,
        "{method} http://{origin}/{number} HTTP/1.1\r\nHost: {origin}\r\n\
         Content-Type: text/xml\r\nConnection: close\r\n{length}\r\n"
    )
    .unwrap();
    if let Some(len) = upload {
        write_body(writer, number, len).unwrap();
    }
    let mut reader = BufReader::new(&stream);
    let (first, length) = read_head(&mut reader);
    assert!(first.contains(" 200 "), "{first}");
    if upload.is_none() {
        assert_eq!(length, len);
        check_body(reader, number, len);
    }
}

/// Carries [`BODIES`] bodies of `len` bytes at once each way and gives what it took.
fn carry(encoding: &str, upload: bool, len: usize) {
    let origin = origin(len);
    let allow = format!("http://{origin}");
    let gateway = Side::start(&["gateway", "--allow", &allow, "--encoding", encoding]);
    let edge = Side::start(&["edge", "--gateway", &gateway.address, "--encoding", encoding]);
    let before = Instant::now();
    let to = Arc::new(edge.address.clone());
    let clients: Vec<_> = (0..BODIES)
        .map(|number| {
            let to = Arc::clone(&to);
            let upload = upload.then_some(len);
            std::thread::spawn(move || exchange(&to, origin, number, upload, len))
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    let ((edge_kb, edge_own_kb), (gateway_kb, gateway_own_kb)) =
        (edge.peak_kb(), gateway.peak_kb());
    let mb = |kb: u64| kb as f64 / 1024.0;
    let way = if upload { "to the service" } else { "to the client" };
    println!(
        "{BODIES} bodies of {len} bytes {way}, {encoding}: {:.1} s; peak resident: edge {:.1} MB, \
         gateway {:.1} MB; without the program's file: edge {:.1} MB, gateway {:.1} MB",
        before.elapsed().as_secs_f64(),
        mb(edge_kb),
        mb(gateway_kb),
        mb(edge_own_kb),
        mb(gateway_own_kb)
    );
    assert!(edge_own_kb < MAX_OWN_KB, "edge: {edge_own_kb} kB");
    assert!(gateway_own_kb < MAX_OWN_KB, "gateway: {gateway_own_kb} kB");
}

#[test]
fn bodies_at_once_stay_whole_and_within_memory() {
    for encoding in ENCODINGS {
        carry(encoding, false, 4_000_000);
        carry(encoding, true, 4_000_000);
    }
}

#[test]
#[ignore = "64 GB through the pair: minutes, in a release build"]
fn bodies_of_500_mb_at_once_stay_whole_and_within_memory() {
    for encoding in ENCODINGS {
        carry(encoding, false, 500_000_000);
        carry(encoding, true, 500_000_000);
    }
}
