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

/// Asks from another address of the loopback.
async fn get_from(source: &str, edge: SocketAddr, url: &str) -> Answer {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(format!("{source}:0").parse().unwrap()).unwrap();
    let mut stream = socket.connect(edge).await.unwrap();
    let ask = format!("GET {url} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(ask.as_bytes()).await.unwrap();
    Answer::parse(&common::read_all(&mut stream).await.0)
}

/// Answers `/small`; of others the head and a part, and then nothing.
async fn stalling_origin() -> Origin {
    Origin::scripted(|mut stream| async move {
        let head = read_until(&mut stream, "\r\n\r\n").await;
        if head.contains("/small") {
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n";
            return stream.write_all(answer.as_bytes()).await.unwrap();
        }
        let events = head.contains("/events");
        let media = if events { "text/event-stream" } else { "text/plain" };
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Type: {media}\r\n\r\ndata: 1\n\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
        let _ = stream.read(&mut [0; 64]).await;
    })
    .await
}

async fn limit_of(side: &common::Side, name: &str) -> u64 {
    let ask = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    let page = String::from_utf8(common::raw(side.admin.unwrap(), ask).await.0).unwrap();
    let line = page.lines().find(|line| line.contains(&format!("limit=\"{name}\"")));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

#[tokio::test]
async fn readers_that_do_not_read_leave_another_client_unharmed_and_end() {
    let origin = Origin::start().await;
    let settings = "max_exchanges = 32\nidle_timeout = '2 s'\nadmin = '127.0.0.1:0'";
    // The gateway has no more places than the edge, and others of other edges.
    let (edge, _gateway) = common::pair(settings, "max_exchanges = 32").await;
    let ask = format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", origin.url("/text/30000000"));
    let mut readers = Vec::new();
    for _ in 0..40 {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stream = socket.connect(edge.address).await.unwrap();
        stream.write_all(ask.as_bytes()).await.unwrap();
        readers.push(stream);
    }
    common::eventually(|| async { limit_of(&edge, "max_exchanges").await >= 12 }).await;
    for _ in 0..10 {
        let answer = get_from("127.0.0.2", edge.address, &origin.url("/hello")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    // One more of the same client has to wait, and is told how long and why.
    let answer = get(edge.address, &origin.url("/hello"), "").await;
    assert!(answer.status == 503 && answer.has("retry-after: 2"), "{}", answer.head);
    assert!(answer.text().contains("this client has 28 of 32 exchanges (max_exchanges)"));
    common::eventually(|| async { limit_of(&edge, "idle_timeout").await == 28 }).await;
    assert_eq!(get(edge.address, &origin.url("/hello"), "").await.status, 200);
}

#[tokio::test]
async fn an_origin_that_stands_still_amid_its_answer_ends_the_exchange() {
    let origin = stalling_origin().await;
    let (pair, gateway) =
        common::pair("", "idle_timeout = '1 s'\nhttp_listen = '127.0.0.1:0'").await;
    let alone = edge("idle_timeout = '1 s'").await;
    for address in [pair.address, alone.address, gateway.http.unwrap()] {
        let ask = format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", origin.url("/half"));
        let (bytes, _) = common::raw(address, ask).await;
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("data: 1") && !text.contains("0\r\n\r\n"), "{text}");
    }
    // Events may take their time.
    for address in [pair.address, alone.address, gateway.http.unwrap()] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let ask = format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", origin.url("/events"));
        stream.write_all(ask.as_bytes()).await.unwrap();
        read_until(&mut stream, "data: 1").await;
        let mut rest = [0; 4096];
        let reading = async { while stream.read(&mut rest).await.unwrap() > 0 {} };
        let waited = Duration::from_millis(1500);
        assert!(tokio::time::timeout(waited, reading).await.is_err(), "an event stream ended");
    }
}

#[tokio::test]
async fn a_client_that_stands_still_amid_its_request_is_reported() {
    let origin = Origin::start().await;
    let (pair, _gateway) = common::pair("idle_timeout = '1 s'", "").await;
    let alone = edge("idle_timeout = '1 s'").await;
    for address in [pair.address, alone.address] {
        let ask = format!(
            "POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf",
            origin.url("/sum")
        );
        let answer = Answer::parse(&common::raw(address, ask).await.0);
        assert!(matches!(answer.status, 408 | 502), "{}", answer.head);
        let why = "the client sent nothing of its request for 1 s";
        assert!(answer.text().contains(why), "{}", answer.text());
    }
}

/// A head has a time as a whole: a byte now and then does not make it longer.
#[tokio::test]
async fn a_head_that_does_not_end_in_time_ends_its_connection() {
    let origin = Origin::start().await;
    let (pair, _gateway) = common::pair("idle_timeout = '1 s'", "").await;
    let alone = edge("idle_timeout = '1 s'").await;
    for address in [pair.address, alone.address] {
        let mut silent = connected(address, 1, b"GET http://a/ HTTP/1.1\r\nHos").await;
        assert!(is_closed(&mut silent[0]).await, "half a head");
        let (mut read, mut write) = TcpStream::connect(address).await.unwrap().into_split();
        write.write_all(b"GET http://a/ HTTP/1.1\r\nX: ").await.unwrap();
        let trickling = tokio::spawn(async move {
            let mut every = tokio::time::interval(Duration::from_millis(50));
            while write.write_all(b"x").await.is_ok() {
                every.tick().await;
            }
        });
        let end = tokio::time::timeout(common::PATIENCE, read.read(&mut [0; 64])).await;
        assert!(matches!(end.expect("it goes on"), Ok(0) | Err(_)), "a head byte by byte");
        tokio::time::timeout(common::PATIENCE, trickling).await.unwrap().unwrap();
        assert_eq!(get(address, &origin.url("/hello"), "").await.status, 200);
    }
}

/// An upload that moves, however slowly, is not ended; all that one client may have of them leaves
/// room for another, and each arrives whole.
#[tokio::test]
async fn uploads_that_trickle_keep_their_share_and_arrive_whole() {
    let origin = Origin::start().await;
    let settings = "max_exchanges = 16\nidle_timeout = '1 s'";
    let (edge, _gateway) = common::pair(settings, "max_exchanges = 16").await;
    const PIECES: usize = 30;
    let ask = format!(
        "POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: {PIECES}\r\nConnection: close\r\n\r\n",
        origin.url("/echo")
    );
    let mut uploads = tokio::task::JoinSet::new();
    for stream in connected(edge.address, 24, ask.as_bytes()).await {
        uploads.spawn(async move {
            let (mut read, mut write) = stream.into_split();
            let writing = async {
                let mut every = tokio::time::interval(Duration::from_millis(100));
                for _ in 0..PIECES {
                    every.tick().await;
                    if write.write_all(b"x").await.is_err() {
                        return;
                    }
                }
            };
            let (answer, ()) = tokio::join!(common::read_all(&mut read), writing);
            Answer::parse(&answer.0)
        });
    }
    let mut whole = 0;
    while let Some(answer) = uploads.join_next().await {
        if whole == 0 {
            let other = get_from("127.0.0.2", edge.address, &origin.url("/hello")).await;
            assert_eq!(other.status, 200, "{}", other.text());
        }
        let answer = answer.unwrap();
        assert!(matches!(answer.status, 200 | 503), "{}", answer.head);
        whole += usize::from(answer.status == 200 && answer.text() == "x".repeat(PIECES));
        let cut = answer.status == 200 && answer.text() != "x".repeat(PIECES);
        assert!(!cut, "an upload was cut: {}", answer.text());
    }
    assert!(whole >= 8, "{whole} of 24 uploads arrived");
}

async fn tunnels(edge: SocketAddr, target: SocketAddr, count: usize) -> Vec<TcpStream> {
    let ask = format!("CONNECT {target} HTTP/1.1\r\nHost: a\r\n\r\n");
    connected(edge, count, ask.as_bytes()).await
}

#[tokio::test]
async fn idle_tunnels_leave_requests_unharmed_and_end() {
    let origin = Origin::start().await;
    let settings = "max_exchanges = 8\nmax_tunnels = 64\ntunnel_timeout = '3 s'";
    let (edge, _gateway) = common::pair(settings, "").await;
    let mut all = tunnels(edge.address, origin.address, 80).await;
    let mut got = Vec::new();
    for stream in &mut all {
        let head = read_until(stream, "\r\n\r\n").await;
        got.push(Answer::parse(head.as_bytes()).status);
    }
    assert_eq!(got.iter().filter(|status| **status == 200).count(), 56);
    assert_eq!(got.iter().filter(|status| **status == 503).count(), 24);
    for source in ["127.0.0.1", "127.0.0.2"] {
        let answer = get_from(source, edge.address, &origin.url("/hello")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    assert!(is_closed(&mut all[0]).await, "nothing passed for as long as may be");
    let mut again = tunnels(edge.address, origin.address, 1).await;
    assert!(read_until(&mut again[0], "\r\n\r\n").await.contains(" 200 "));
}

#[tokio::test]
async fn what_is_denied_at_the_edge_crosses_no_link() {
    let origin = Origin::start().await;
    let port = origin.address.port();
    let deny = format!("deny = ['http://127.0.0.1:{port}/hello']");
    let (pair, _gateway) = common::pair(&deny, "").await;
    let alone = edge(&deny).await;
    for address in [pair.address, alone.address] {
        for path in
            ["/hello", "/hello/more", "/text/1/../../hello", "/text%2f..%2fhello", "//hello"]
        {
            let answer = get(address, &origin.url(path), "").await;
            assert!(answer.status == 403 && answer.text().contains("(deny '"), "{path}");
        }
        let answer = get(address, &origin.url("/text/3"), "").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let connect =
            format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let answer = Answer::parse(&common::raw(address, connect).await.0);
        assert_eq!(answer.status, 403);
        // Nor by another protocol in which any path may be asked for.
        let fields = "Connection: close, upgrade\r\nUpgrade: websocket\r\n";
        let answer = get(address, &origin.url("/socket"), fields).await;
        assert!(answer.status == 403 && answer.text().contains("(deny '"), "{}", answer.head);
    }
    assert_eq!(origin.seen.lock().unwrap().len(), 2);
}
