//! The admin interface is for this machine, and nobody keeps others from it.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use common::{Answer, Side, edge, raw, read_until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// More than there are places.
const MANY: usize = 100;

async fn with_admin() -> (Side, SocketAddr) {
    let side = edge("admin = '127.0.0.1:0'").await;
    let admin = side.admin.unwrap();
    (side, admin)
}

async fn ask(admin: SocketAddr, head: &str) -> Answer {
    Answer::parse(&raw(admin, format!("{head}Connection: close\r\n\r\n")).await.0)
}

/// A page of another site whose name leads to loopback reads nothing.
#[tokio::test]
async fn only_this_machine_by_its_own_names_is_answered() {
    let (_edge, admin) = with_admin().await;
    for host in [admin.to_string(), "localhost".to_owned()] {
        let answer = ask(admin, &format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n")).await;
        assert_eq!(answer.status, 200, "{host}");
        assert!(answer.text().contains("longwire_"), "{host}");
    }
    for (head, status) in [
        ("GET /metrics HTTP/1.1\r\nHost: attacker.example\r\n", 421),
        ("GET http://attacker.example/health HTTP/1.1\r\nHost: localhost\r\n", 421),
        ("GET /health HTTP/1.1\r\nHost: localhost\r\nHost: attacker.example\r\n", 400),
        ("GET /health HTTP/1.0\r\n", 200),
        ("HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n", 200),
        ("POST /metrics HTTP/1.1\r\nHost: localhost\r\n", 405),
        ("GET / HTTP/1.1\r\nHost: localhost\r\n", 404),
    ] {
        let answer = ask(admin, head).await;
        assert_eq!(answer.status, status, "{head}");
        if status >= 400 {
            assert_eq!(answer.text().lines().count(), 1, "{head}: {}", answer.text());
        }
    }
}

/// Half heads, silence, and idle connections take places that the next one gets.
#[tokio::test]
async fn whoever_holds_connections_keeps_nobody_out() {
    let (_edge, admin) = with_admin().await;
    let head = "GET /health/live HTTP/1.1\r\nHost: localhost\r\n";
    for begin in ["", "GET /metr", head, &format!("{head}\r\n")] {
        let mut held = Vec::new();
        for _ in 0..MANY {
            let mut stream = TcpStream::connect(admin).await.unwrap();
            stream.write_all(begin.as_bytes()).await.unwrap();
            held.push(stream);
        }
        assert_eq!(ask(admin, head).await.status, 200, "{begin:?}");
        // All but a few are gone: what was held is given back.
        let mut gone = 0;
        for mut stream in held.drain(..MANY / 2) {
            let closed =
                async { while !matches!(stream.read(&mut [0; 4096]).await, Ok(0) | Err(_)) {} };
            gone += usize::from(tokio::time::timeout(common::PATIENCE, closed).await.is_ok());
        }
        assert_eq!(gone, MANY / 2, "{begin:?}");
    }
}

/// Neither half a head nor an idle connection stays though nobody else wants its place.
#[tokio::test]
async fn a_connection_has_a_clock() {
    let (_edge, admin) = with_admin().await;
    let head = "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut idle = TcpStream::connect(admin).await.unwrap();
    idle.write_all(head.as_bytes()).await.unwrap();
    read_until(&mut idle, "live\n").await;
    let mut partial = TcpStream::connect(admin).await.unwrap();
    partial.write_all(b"GET /metr").await.unwrap();
    let closed = async {
        for stream in [&mut idle, &mut partial] {
            while !matches!(stream.read(&mut [0; 4096]).await, Ok(0) | Err(_)) {}
        }
    };
    tokio::time::timeout(Duration::from_secs(20), closed).await.expect("still open");
}
