//! What an operator is told, and what becomes of a side whose log nobody takes.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything here may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A side that is ready; killed when dropped.
struct Side {
    child: Child,
    address: String,
}

impl Side {
    fn start(args: &[&str], log: Stdio) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        let mut child = command.args(args).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on ").expect(&line).trim_end().to_owned();
        Self { child, address }
    }

    /// Ends it as a service manager would; its exit status.
    fn terminate(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
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

/// An origin that answers every connection's first request with the same.
fn origin() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n",
            );
        }
    });
    url
}

fn get(edge: &str, url: &str) -> String {
    let mut stream = TcpStream::connect(edge).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {url} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Places for a log that take nothing: a full disk, a pipe whose reader is gone, and one whose
/// reader does not read.
fn places() -> Vec<(&'static str, Stdio, Option<std::io::PipeReader>)> {
    let full: File = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (gone, closed) = std::io::pipe().unwrap();
    drop(gone);
    let (silent, stuck) = std::io::pipe().unwrap();
    vec![
        ("a full disk", full.into(), None),
        ("a closed pipe", closed.into(), None),
        ("a pipe that nobody reads", stuck.into(), Some(silent)),
    ]
}

#[test]
fn a_log_that_cannot_be_written_stops_no_side() {
    for side in ["edge", "gateway"] {
        for (place, log, _kept) in places() {
            let url = origin();
            let (mut at_edge, mut at_gateway) = (Stdio::null(), Stdio::null());
            match side {
                "edge" => at_edge = log,
                _ => at_gateway = log,
            }
            let listen = ["--listen", "127.0.0.1:0", "--log", "trace"];
            let gateway = [&["gateway", "--allow", &url][..], &listen].concat();
            let gateway = Side::start(&gateway, at_gateway);
            let edge = [&["edge", "--gateway", &gateway.address][..], &listen].concat();
            let edge = Side::start(&edge, at_edge);
            // Enough lines to fill a pipe.
            for number in 0..200 {
                let answer = get(&edge.address, &format!("{url}/{number}"));
                assert!(answer.starts_with("HTTP/1.1 200 OK"), "{side}, {place}: {answer}");
            }
            assert_eq!(edge.terminate(), Some(0), "{side}, {place}");
            assert_eq!(gateway.terminate(), Some(0), "{side}, {place}");
        }
    }
}

#[test]
fn bad_use_has_its_status_though_nobody_can_be_told() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    let status = command.args(["edge", "--listen", "nowhere"]).stderr(full).status().unwrap();
    assert_eq!(status.code(), Some(2));
}
