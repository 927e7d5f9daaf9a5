//! What goes wrong: the client gets the right status with one clear line, or sees truncation;
//! nothing hangs.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use common::origin::Origin;
use common::{
    Answer, Everywhere, dechunk, edge, eventually, gateway, gateway_with, get, pair, raw, read_all,
    read_until, send, text_like,
};
use longwire_proxy::config::{GatewayConfig, Settings};
use longwire_proxy::gateway::Gateway;
use socket2::SockRef;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

/// One line of text, and the same words for machines.
fn assert_refused(answer: &Answer, status: u16, word: &str) {
    let text = answer.text();
    assert_eq!(answer.status, status, "{text}");
    assert!(text.starts_with("longwire: ") && text.contains(word), "{text}");
    assert_eq!(text.matches('\n').count(), 1, "{text}");
    assert!(answer.head.contains("proxy-status: longwire; error="), "{}", answer.head);
}

async fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// Reads an answer that breaks off, over a connection of its own.
async fn broken(edge: SocketAddr, url: &str, version: &str) -> (Vec<u8>, bool) {
    raw(edge, format!("GET {url} HTTP/{version}\r\nHost: a\r\nConnection: close\r\n\r\n")).await
}

#[tokio::test]
async fn a_port_in_use_is_refused_with_the_remedy() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text =
        format!("[gateway]\nlisten = '{}'\nallow = ['http://a']", taken.local_addr().unwrap());
    let settings = Settings::parse(&text).unwrap();
    let config = GatewayConfig::resolve(settings.gateway, &settings.link, &[]).unwrap();
    let error = Gateway::bind(config).await.err().unwrap();
    assert!(matches!(error, longwire_proxy::Error::Caller(_)));
    assert!(error.to_string().contains("name another port"), "{error}");
}

#[tokio::test]
async fn an_unreachable_gateway_is_504_within_the_connect_timeout() {
    let settings = format!("gateway = '{}'\nconnect_timeout = '400 ms'", free_port().await);
    let edge = edge(&settings).await;
    let before = std::time::Instant::now();
    let answer = send(edge.address, "POST", "http://127.0.0.1:1/x", "", b"body").await;
    assert_refused(&answer, 504, "could not be reached within 0.4 s");
    let elapsed = before.elapsed().as_millis();
    assert!((400..3000).contains(&elapsed), "{elapsed} ms");
}

#[tokio::test]
async fn an_unreachable_gateway_is_left_out_when_that_is_allowed() {
    let origin = Origin::start().await;
    let unreachable = format!("gateway = '{}'\nconnect_timeout = '300 ms'\n", free_port().await);
    let edge_all = edge(&format!("{unreachable}fallback = 'direct'")).await;
    let body = text_like(100_000, 1);
    let answer = send(edge_all.address, "POST", &origin.url("/echo"), "", &body).await;
    assert!(answer.status == 200 && answer.body == body);
    let service = "[[service]]\nmatch = 'http://127.0.0.1:*/hello'\nfallback = 'direct'";
    let edge_one = edge(&format!("{unreachable}{service}")).await;
    assert_eq!(get(edge_one.address, &origin.url("/hello"), "").await.status, 200);
    assert_refused(&get(edge_one.address, &origin.url("/text/1"), "").await, 504, "gateway");
}

#[tokio::test]
async fn a_gateway_that_comes_late_is_used() {
    let origin = Origin::start().await;
    // First somebody else is there, who hangs up.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let edge = edge(&format!("gateway = '{address}'")).await;
    let (asked, url) = (edge.address, origin.url("/hello"));
    let asking = tokio::spawn(async move { get(asked, &url, "").await });
    drop(listener.accept().await.unwrap());
    drop(listener);
    let _gateway = gateway(&format!("listen = '{address}'")).await;
    assert_eq!(asking.await.unwrap().text(), "hello\n");
}

#[tokio::test]
async fn an_edge_without_a_key_comes_back_after_its_carrier_broke() {
    let (origin, gateway) = (Origin::start().await, gateway("").await);
    let between = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let edge = edge(&format!("gateway = '{}'", between.local_addr().unwrap())).await;
    let url = origin.url("/hello");
    for turn in 0..3 {
        // Each time from another port; cut behind the answer.
        let carrying = async {
            let (mut near, _) = between.accept().await.unwrap();
            let mut far = TcpStream::connect(gateway.address).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
        };
        tokio::select! {
            answer = get(edge.address, &url, "") => {
                assert_eq!(answer.status, 200, "turn {turn}: {}", answer.text());
            }
            () = carrying => panic!("turn {turn}: the gateway refused the carrier"),
        }
    }
}

/// An answer's head and first bytes come, the rest when the gate opens.
async fn gated(framing: &'static str, gate: Arc<tokio::sync::Notify>) -> Origin {
    Origin::scripted(move |mut stream: TcpStream| {
        let gate = Arc::clone(&gate);
        async move {
            read_until(&mut stream, "\r\n\r\n").await;
            let head = format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            let first: &[u8] =
                if framing.contains("chunked") { b"5\r\nfirst\r\n" } else { b"first" };
            stream.write_all(first).await.unwrap();
            gate.notified().await;
        }
    })
    .await
}

#[tokio::test]
async fn a_gateway_that_dies_amid_an_answer_shows_as_truncation() {
    for framing in ["Content-Length: 1000", "Transfer-Encoding: chunked"] {
        let origin = gated(framing, Arc::default()).await;
        let (edge, gateway) = pair("connect_timeout = '500 ms'", "").await;
        let mut stream = TcpStream::connect(edge.address).await.unwrap();
        let request = format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", origin.url("/x"));
        stream.write_all(request.as_bytes()).await.unwrap();
        read_until(&mut stream, "first").await;
        drop(gateway);
        let (rest, _) = read_all(&mut stream).await;
        assert!(!rest.ends_with(b"0\r\n\r\n"), "a clean end: {rest:?}");
    }
}

#[tokio::test]
async fn a_client_of_http_1_0_sees_a_reset_instead_of_an_end() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let origin = gated("Transfer-Encoding: chunked", Arc::clone(&gate)).await;
    let (edge, _gateway) = pair("", "").await;
    let mut stream = TcpStream::connect(edge.address).await.unwrap();
    let request = format!("GET {} HTTP/1.0\r\n\r\n", origin.url("/x"));
    stream.write_all(request.as_bytes()).await.unwrap();
    read_until(&mut stream, "first").await;
    gate.notify_one();
    let (_, orderly) = read_all(&mut stream).await;
    assert!(!orderly, "the connection ended as if the answer were whole");
}

#[tokio::test]
async fn an_origin_that_breaks_off_before_its_answer_is_502() {
    for reset in [true, false] {
        let origin = Origin::scripted(move |mut stream: TcpStream| async move {
            read_until(&mut stream, "\r\n\r\n").await;
            if reset {
                SockRef::from(&stream).set_linger(Some(std::time::Duration::ZERO)).unwrap();
            }
        })
        .await;
        let (edge, _gateway) = pair("", "").await;
        let alone = common::edge("").await;
        for address in [edge.address, alone.address] {
            let answer = send(address, "POST", &origin.url("/x"), "", b"body").await;
            assert_refused(&answer, 502, "the origin");
        }
        assert_eq!(origin.connections.load(Ordering::SeqCst), 2, "a POST was sent twice");
    }
}

#[tokio::test]
async fn an_origin_that_breaks_off_amid_its_answer_shows_as_truncation() {
    for (framing, version) in
        [("Content-Length: 1000", "1.1"), ("Transfer-Encoding: chunked", "1.1")]
    {
        let origin = Origin::scripted(move |mut stream: TcpStream| async move {
            read_until(&mut stream, "\r\n\r\n").await;
            let body = if framing.contains("chunked") { "5\r\nfirst\r\n" } else { "first" };
            let answer = format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).await.unwrap();
        })
        .await;
        let (edge, _gateway) = pair("", "").await;
        let alone = common::edge("").await;
        for address in [edge.address, alone.address] {
            let (bytes, _) = broken(address, &origin.url("/x"), version).await;
            let text = String::from_utf8_lossy(&bytes);
            // Truncation, or, when nothing had been sent yet, an honest 502.
            if text.starts_with("HTTP/1.1 200") {
                let body = text.split_once("\r\n\r\n").unwrap().1;
                assert!(body.len() < 1000 && dechunk(body.as_bytes()).is_none(), "{text}");
            } else {
                assert!(text.starts_with("HTTP/1.1 502"), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn an_origin_that_does_not_speak_http_is_502() {
    let origin = Origin::scripted(|mut stream: TcpStream| async move {
        read_until(&mut stream, "\r\n\r\n").await;
        stream.write_all(b"220 smtp ready\r\n\r\n").await.unwrap();
    })
    .await;
    let (edge, _gateway) = pair("", "").await;
    assert_refused(&get(edge.address, &origin.url("/x"), "").await, 502, "not HTTP/1");
}

#[tokio::test]
async fn a_silent_origin_is_504() {
    let origin = Origin::scripted(|mut stream: TcpStream| async move {
        read_all(&mut stream).await;
    })
    .await;
    let (edge, _gateway) = pair("", "response_timeout = '300 ms'").await;
    let answer = get(edge.address, &origin.url("/x"), "").await;
    assert_refused(&answer, 504, "did not answer within 0.3 s");
}

#[tokio::test]
async fn an_origin_that_is_not_there_is_502() {
    let (edge, _gateway) = pair("", "").await;
    let url = format!("http://{}/x", free_port().await);
    assert_refused(&get(edge.address, &url, "").await, 502, "cannot reach");
}

#[tokio::test]
async fn a_connection_closed_while_idle_costs_a_repeatable_request_nothing() {
    // Each connection serves one request and then closes without having said so.
    let origin = Origin::scripted(|mut stream: TcpStream| async move {
        read_until(&mut stream, "\r\n\r\n").await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
        // Not before the next request is on its way.
        let _ = stream.readable().await;
    })
    .await;
    let (edge, _gateway) = pair("", "").await;
    for _ in 0..3 {
        assert_eq!(get(edge.address, &origin.url("/x"), "").await.text(), "ok");
    }
}

#[tokio::test]
async fn targets_outside_the_allow_list_are_403() {
    let origin = Origin::start().await;
    let port = origin.address.port();
    let allow = format!("allow = ['http://127.0.0.1:{port}/text', 'https://127.0.0.1:9']");
    let (edge, _gateway) = pair("", &allow).await;
    assert_eq!(get(edge.address, &origin.url("/text/1"), "").await.status, 200);
    for path in ["/hello", "/text/../hello", "/text/%2e%2e/hello", "/textual", "/text/..%2fhello"] {
        assert_refused(&get(edge.address, &origin.url(path), "").await, 403, "allow list");
    }
    for target in ["127.0.0.1:22".to_owned(), format!("127.0.0.1:{port}")] {
        let request =
            format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n");
        let answer = Answer::parse(&raw(edge.address, request).await.0);
        assert_refused(&answer, 403, "allow list");
    }
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: a\r\nConnection: close, upgrade\r\nUpgrade: websocket\r\n\r\n",
        origin.url("/socket")
    );
    assert_refused(&Answer::parse(&raw(edge.address, request).await.0), 403, "allow list");
    assert_eq!(origin.seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_wildcard_never_reaches_an_address_that_is_not_public() {
    let origin = Origin::start().await;
    let port = origin.address.port();
    for address in ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "fe80::1"] {
        let allow = format!("allow = ['http://*.example:{port}', 'http://inside.test:{port}']");
        let gateway = gateway_with(&allow, Arc::new(Everywhere(address))).await;
        let edge = edge(&format!("gateway = '{}'", gateway.address)).await;
        let wild = get(edge.address, &format!("http://sneaky.example:{port}/hello"), "").await;
        assert_refused(&wild, 403, "not public");
        let target = format!("sneaky.example:{port}");
        let request =
            format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n");
        let tunnel = Answer::parse(&raw(edge.address, request).await.0);
        assert_refused(&tunnel, 403, "not public");
        if address.ends_with("127.0.0.1") {
            // Named exactly, it may be anywhere.
            let named = get(edge.address, &format!("http://inside.test:{port}/hello"), "").await;
            assert_eq!(named.status, 200);
        }
    }
}

#[tokio::test]
async fn a_body_over_its_bound_is_413() {
    let origin = Origin::start().await;
    let service = "[[service]]\nmatch = 'http://127.0.0.1:*'\nmax_body = '1 KB'";
    let (edge, _gateway) = pair(service, "").await;
    let url = origin.url("/sum");
    let fine = send(edge.address, "POST", &url, "", &[b'x'; 1000]).await;
    assert_eq!(fine.text(), "1000");
    assert_refused(&send(edge.address, "POST", &url, "", &[b'x'; 1001]).await, 413, "max_body");
    let chunked = format!(
        "POST {url} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
         3e9\r\n{}\r\n0\r\n\r\n",
        "x".repeat(1001)
    );
    assert_refused(&Answer::parse(&raw(edge.address, chunked).await.0), 413, "1000 bytes");
}

#[tokio::test]
async fn requests_that_could_be_read_two_ways_or_are_too_large_are_refused() {
    let origin = Origin::start().await;
    let (edge, _gateway) = pair("", "").await;
    let url = origin.url("/echo");
    let with = |fields: &str| format!("POST {url} HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n");
    for (request, status) in [
        (with("Content-Length: 5\r\nContent-Length: 6"), "400"),
        (with("Transfer-Encoding: gzip"), "400"),
        (with("Content-Length: -1"), "400"),
        (with(&format!("X-Long: {}", "a".repeat(70_000))), "431"),
        (with(&"A: b\r\n".repeat(600)), "431"),
        ("GET /x HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), "400"),
        ("nonsense\r\n\r\n".to_owned(), "400"),
    ] {
        let mut stream = TcpStream::connect(edge.address).await.unwrap();
        // The edge may answer before it has read everything.
        let _ = stream.write_all(request.as_bytes()).await;
        let answer = read_until(&mut stream, "\r\n\r\n").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request:.80}: {answer}");
    }
    // RFC 9112 §6.1: with both, chunked counts and the length goes no further.
    let both = with("Content-Length: 100\r\nTransfer-Encoding: chunked\r\nConnection: close");
    let (bytes, _) = raw(edge.address, format!("{both}2\r\nab\r\n0\r\n\r\n")).await;
    let text = String::from_utf8_lossy(&bytes);
    if text.starts_with("HTTP/1.1 200") {
        let seen = origin.last();
        assert!(!seen.contains_key("content-length"), "{seen:?}");
    } else {
        assert!(text.starts_with("HTTP/1.1 400"), "{text}");
    }
}

#[tokio::test]
async fn a_loop_is_noticed() {
    // An edge without a gateway that is asked for itself.
    let alone = edge("").await;
    let url = format!("http://{}/x", alone.address);
    let inner = get(alone.address, &url, "").await;
    assert_eq!(inner.status, 400, "{}", inner.text());
    let through = edge(&format!("upstream = 'http://{}'", alone.address)).await;
    let _ = through;
    let address = free_port().await;
    let settings = format!("upstream = 'http://{address}'");
    let text = format!("[edge]\nlisten = '{address}'\n{settings}");
    let settings = Settings::parse(&text).unwrap();
    let config = longwire_proxy::config::EdgeConfig::resolve(
        settings.edge,
        &settings.link,
        &settings.services,
    )
    .unwrap();
    let looped = common::edge_of(config).await;
    let request = "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answer = Answer::parse(&raw(looped.address, request).await.0);
    assert_refused(&answer, 508, "loop");
}

#[tokio::test]
async fn a_request_whose_client_breaks_off_reaches_no_end_at_the_origin() {
    let (tell, mut reported) = tokio::sync::mpsc::unbounded_channel();
    let origin = Origin::scripted(move |mut stream: TcpStream| {
        let tell = tell.clone();
        async move {
            let (bytes, _) = read_all(&mut stream).await;
            tell.send(bytes).unwrap();
        }
    })
    .await;
    let (edge, _gateway) = pair("", "").await;
    let mut stream = TcpStream::connect(edge.address).await.unwrap();
    let request = format!(
        "POST {} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        origin.url("/x")
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    eventually(|| async { origin.connections.load(Ordering::SeqCst) == 1 }).await;
    drop(stream);
    let bytes =
        tokio::time::timeout(common::PATIENCE, reported.recv()).await.expect("hangs").unwrap();
    assert!(!bytes.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&bytes));
}
