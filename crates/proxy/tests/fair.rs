//! Nobody holds what others need: strangers, silent clients, readers that do not read.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use common::origin::Origin;
use common::{Answer, edge, gateway, get, read_until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Connections that say `first` and nothing more. Those that are closed are opened again, a
/// hundred a second.
fn besieged(address: SocketAddr, count: usize, first: &'static [u8]) -> tokio::task::JoinSet<()> {
    let mut all = tokio::task::JoinSet::new();
    let renewed = tokio::time::interval(Duration::from_millis(10));
    let renewed = Arc::new(tokio::sync::Mutex::new(renewed));
    for _ in 0..count {
        let renewed = Arc::clone(&renewed);
        all.spawn(async move {
            loop {
                renewed.lock().await.tick().await;
                let Ok(mut stream) = TcpStream::connect(address).await else { continue };
                let _ = stream.write_all(first).await;
                let _ = stream.read(&mut [0; 64]).await;
            }
        });
    }
    all
}

async fn connected(address: SocketAddr, count: usize, first: &[u8]) -> Vec<TcpStream> {
    let mut all = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(first).await.unwrap();
        all.push(stream);
    }
    all
}

async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut buffer = [0; 64];
    let read = tokio::time::timeout(common::PATIENCE, stream.read(&mut buffer)).await;
    matches!(read.expect("it stays open"), Ok(0) | Err(_))
}

#[tokio::test]
async fn strangers_keep_no_edge_from_a_gateway() {
    let origin = Origin::start().await;
    for first in [&b""[..], b"\0", b"\x16\x03\x01"] {
        let gateway = gateway("max_carriers = 2").await;
        let siege = besieged(gateway.address, 200, first);
        let edge =
            edge(&format!("gateway = '{}'\nconnect_timeout = '15 s'", gateway.address)).await;
        for _ in 0..3 {
            let answer = get(edge.address, &origin.url("/hello"), "").await;
            assert_eq!(answer.status, 200, "besieged with {first:?}: {}", answer.text());
        }
        drop(siege);
    }
}

/// Who says nothing is put out in seconds, though nobody wants its place.
#[tokio::test]
async fn a_stranger_has_seconds() {
    let gateway = gateway("").await;
    let mut silent = TcpStream::connect(gateway.address).await.unwrap();
    assert!(is_closed(&mut silent).await);
}

#[tokio::test]
async fn clients_that_idle_yield_to_those_that_ask() {
    let origin = Origin::start().await;
    let edge = edge("max_connections = 8").await;
    let mut silent = connected(edge.address, 8, b"").await;
    assert_eq!(get(edge.address, &origin.url("/hello"), "").await.status, 200);
    assert!(is_closed(&mut silent[0]).await, "the longest silent goes first");
    // Half a head is no more than nothing.
    let slow = connected(edge.address, 20, b"GET / HTTP/1.1\r\nHos").await;
    assert_eq!(get(edge.address, &origin.url("/hello"), "").await.status, 200);
    drop(slow);
    // A connection that was of use stays while others never were.
    let mut kept = TcpStream::connect(edge.address).await.unwrap();
    let ask = format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", origin.url("/hello"));
    for _ in 0..3 {
        kept.write_all(ask.as_bytes()).await.unwrap();
        let head = read_until(&mut kept, "\r\n\r\n").await;
        assert_eq!(Answer::parse(head.as_bytes()).status, 200);
        let _silent = connected(edge.address, 20, b"").await;
    }
}

/// As many as are served at once are served to their end; one more waits.
#[tokio::test]
async fn a_client_that_is_served_is_not_dropped_for_another() {
    let origin = Origin::start().await;
    let edge = edge("max_connections = 2").await;
    let ask = format!(
        "POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhe",
        origin.url("/echo")
    );
    let mut served = connected(edge.address, 2, ask.as_bytes()).await;
    common::eventually(|| async { origin.seen.lock().unwrap().len() == 2 }).await;
    let third = tokio::spawn({
        let (address, url) = (edge.address, origin.url("/hello"));
        async move { get(address, &url, "").await.status }
    });
    // sleep: that something does not come to pass is seen by its not coming.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!third.is_finished());
    for client in &mut served {
        client.write_all(b"llo").await.unwrap();
        let (bytes, _) = common::read_all(client).await;
        assert_eq!(Answer::parse(&bytes).text(), "hello");
    }
    assert_eq!(third.await.unwrap(), 200);
}
