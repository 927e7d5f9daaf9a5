//! Requests to programs on a host: one connection each, over the host's own loopback.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use super::topology::Topology;

/// Longest answer that is read, in bytes.
const MAX_ANSWER_BYTES: u64 = 64 * 1024 * 1024;

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content: Vec<u8>,
}

impl Answer {
    /// Its content as JSON, if it is a success.
    pub(super) fn json(&self) -> Result<Value, String> {
        if !(200..300).contains(&self.status) {
            let line = String::from_utf8_lossy(&self.content);
            return Err(format!("status {}: {}", self.status, line.trim()));
        }
        serde_json::from_slice(&self.content).map_err(|error| format!("no JSON: {error}"))
    }
}

/// What a program on `host` that listens on `port` answers.
pub(super) fn ask(
    (topology, host): (&Topology, usize),
    port: u16,
    (method, path): (&str, &str),
    content: Option<&Value>,
    patience: Duration,
) -> Result<Answer, String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let connect = || TcpStream::connect_timeout(&address, patience);
    let stream = topology.within(host, connect).map_err(|error| error.to_string())?;
    let exchange = |mut stream: TcpStream| {
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        stream.write_all(&request((method, path), content))?;
        let mut answer = Vec::new();
        stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer)?;
        parse(&answer).ok_or_else(|| io::Error::other("it does not answer in HTTP"))
    };
    stream.and_then(exchange).map_err(|error| error.to_string())
}

fn request((method, path): (&str, &str), content: Option<&Value>) -> Vec<u8> {
    let content = content.map(Value::to_string).unwrap_or_default();
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    if !content.is_empty() {
        head += "Content-Type: application/json\r\n";
        head += &format!("Content-Length: {}\r\n", content.len());
    }
    [head.as_bytes(), b"\r\n", content.as_bytes()].concat()
}

/// An answer that ends with its connection, or at its length.
fn parse(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let content = &bytes[end + 4..];
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())
    };
    let content = match lines.find_map(field) {
        Some(length) => content.get(..length.ok()?)?,
        None => content,
    };
    Some(Answer { status, content: content.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_ends_its_connection() {
        let text = String::from_utf8(request(("GET", "/inbox"), None)).unwrap();
        assert_eq!(text, "GET /inbox HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let value = serde_json::json!({"id": 1});
        let text = String::from_utf8(request(("POST", "/messages"), Some(&value))).unwrap();
        assert!(text.ends_with("Content-Length: 8\r\n\r\n{\"id\":1}"), "{text}");
    }

    #[test]
    fn an_answer_is_whole_or_none() {
        let whole = b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\nx: y\r\n\r\n{}";
        let answer = parse(whole).unwrap();
        assert_eq!((answer.status, answer.content.as_slice()), (201, b"{}".as_slice()));
        assert!(answer.json().is_ok());
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), None, "{length} bytes");
        }
        let refused = parse(b"HTTP/1.1 404 Not Found\r\n\r\nno such thing\n").unwrap();
        assert_eq!(refused.json().unwrap_err(), "status 404: no such thing");
        assert_eq!(parse(b"SSH-2.0\r\n\r\n"), None);
    }
}
