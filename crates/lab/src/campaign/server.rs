//! Servers of a run: whether they serve, what their sockets are like.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::namespace::Host;

/// How often a condition on a host is looked at.
const QUESTION_INTERVAL: Duration = Duration::from_millis(100);
/// How long a server may take to answer one question.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// Longest first line of an answer.
const MAX_LINE_BYTES: u64 = 1000;

/// Waits until a GET on the host's own port and path answers with a status below 400.
pub(super) fn await_http(
    host: &Host,
    (port, path): (u16, &str),
    has_ended: impl Fn() -> bool + Send + Sync,
    deadline: Instant,
) -> Result<(), String> {
    let wait = move || loop {
        let last = match status(port, path) {
            Ok(status) if status < 400 => return Ok(()),
            Ok(status) => format!("{path} answers with status {status}"),
            Err(error) => error.to_string(),
        };
        if has_ended() {
            return Err("it ended before it was ready".to_string());
        }
        if Instant::now() >= deadline {
            return Err(format!("it was not ready in time: {last}"));
        }
        thread::sleep(QUESTION_INTERVAL);
    };
    host.within(wait).map_err(|error| error.to_string())?
}

fn status(port: u16, path: &str) -> io::Result<u16> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_PATIENCE)?;
    stream.set_read_timeout(Some(ANSWER_PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n")?;
    let mut line = String::new();
    let limited = io::Read::take(stream, MAX_LINE_BYTES);
    BufReader::new(limited).read_line(&mut line)?;
    let code = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    code.ok_or_else(|| io::Error::other("it does not answer in HTTP"))
}

/// Waits until no connection of an earlier run is left on a server's port.
pub(super) fn await_quiet(host: &Host, port: u16, deadline: Instant) -> Result<(), String> {
    loop {
        let sockets = host.tcp_sockets().map_err(|error| error.to_string())?;
        let is_over = |state| matches!(state, "listen" | "time-wait");
        let of_runs = sockets.iter().filter(|socket| socket.local_port == port);
        if of_runs.into_iter().all(|socket| is_over(socket.state)) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err("connections of the run before did not end".to_string());
        }
        thread::sleep(QUESTION_INTERVAL);
    }
}

/// Congestion control of a connection that was made to a port of the host.
pub(super) fn congestion(host: &Host, port: u16) -> Option<String> {
    let sockets = host.tcp_sockets().ok()?.into_iter();
    let mut of_run = sockets.filter(|socket| socket.local_port == port && socket.remote_port != 0);
    of_run.find_map(|socket| socket.congestion_control)
}
