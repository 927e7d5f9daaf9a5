//! What the pair and the edge alone carry unchanged: every form of HTTP/1 that clients use.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use common::origin::{CODED, Origin};
use common::{Answer, edge, eventually, get, pair, raw, read_all, read_until, send, text_like};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const ENCODINGS: [&str; 4] = ["auto", "identity", "deflate", "zstd"];

#[tokio::test]
async fn a_forward_proxy_gives_the_answer_and_names_itself_in_via() {
    let origin = Origin::start().await;
    let (edge, _gateway) = pair("", "").await;
    let answer = get(edge.address, &origin.url("/hello?x=1"), "X-Private: a\r\n").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "hello\n"));
    assert_eq!(answer.head.matches("via: 1.1 longwire-").count(), 1);
    let seen = origin.last();
    assert_eq!(seen["host"], origin.address.to_string());
    assert_eq!(seen["accept-encoding"], "identity");
    assert_eq!(seen.get_all("via").iter().count(), 1);
    assert_eq!(seen["x-private"], "a");
    let parts = &origin.seen.lock().unwrap()[0];
    assert_eq!(parts.uri, "/hello?x=1");
    assert_eq!(parts.method, "GET");
}

#[tokio::test]
async fn fields_of_one_hop_stay_there() {
    let origin = Origin::start().await;
    let (edge, _gateway) = pair("", "").await;
    let fields = "Proxy-Connection: keep-alive\r\nX-Mine: 1\r\nKeep-Alive: 5\r\n\
                  Connection: x-mine\r\nProxy-Authorization: Basic eA==\r\n";
    let answer = get(edge.address, &origin.url("/private"), fields).await;
    let seen = origin.last();
    for name in ["proxy-connection", "x-mine", "keep-alive", "proxy-authorization", "connection"] {
        assert!(!seen.contains_key(name), "{name} reached the origin");
    }
    assert!(answer.has("x-end: 1"));
    assert!(!answer.head.contains("x-hop") && !answer.head.contains("keep-alive"));
}

#[tokio::test]
async fn identity_is_asked_for_unless_the_client_or_the_service_says_otherwise() {
    let origin = Origin::start().await;
    let service = "[[service]]\nmatch = 'http://127.0.0.1:*/text'\naccept_encoding = 'pass'";
    let (edge, _gateway) = pair("", service).await;
    for (path, fields, expected) in [
        ("/hello", "Accept-Encoding: gzip\r\n", Some("identity")),
        ("/hello", "Accept-Encoding: gzip, identity;q=0\r\n", Some("gzip, identity;q=0")),
        ("/hello", "Accept-Encoding: gzip\r\nRange: bytes=0-1\r\n", Some("gzip")),
        ("/text/9", "Accept-Encoding: br\r\n", Some("br")),
        ("/text/9", "", None),
    ] {
        get(edge.address, &origin.url(path), fields).await;
        let seen = origin.last();
        let seen = seen.get("accept-encoding").map(|value| value.to_str().unwrap());
        assert_eq!(seen, expected, "{path} {fields}");
    }
}

#[tokio::test]
async fn what_the_origin_says_of_its_content_is_not_rewritten() {
    let origin = Origin::start().await;
    for encoding in ENCODINGS {
        let settings = format!("encoding = '{encoding}'");
        let (edge, _gateway) = pair(&settings, &settings).await;
        let answer = get(edge.address, &origin.url("/coded"), "").await;
        for (name, value) in CODED {
            assert!(answer.has(&format!("{name}: {value}")), "{name}: {}", answer.head);
        }
        assert_eq!(answer.body, [0x1f, 0x8b, 8, 0, 0xff, 0, 7]);
        assert!(answer.has("content-length: 7"));
    }
}

#[tokio::test]
async fn an_edge_is_ready_while_its_carrier_is_up() {
    let (edge, gateway) = pair("admin = '127.0.0.1:0'", "admin = '127.0.0.1:0'").await;
    let status = |admin: std::net::SocketAddr, path: &'static str| async move {
        let ask = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        Answer::parse(&raw(admin, ask).await.0).status
    };
    let (admin, theirs) = (edge.admin.unwrap(), gateway.admin.unwrap());
    eventually(|| async move { status(admin, "/health").await == 200 }).await;
    assert_eq!(status(theirs, "/health/ready").await, 200);
    gateway.stop().await;
    eventually(|| async move { status(admin, "/health/ready").await == 503 }).await;
    assert_eq!(status(admin, "/health/live").await, 200);
}

#[tokio::test]
async fn a_reverse_proxy_puts_every_request_under_its_upstream() {
    let origin = Origin::start().await;
    let upstream = format!("upstream = 'http://{}/text/'", origin.address);
    let (edge, _gateway) = pair(&upstream, "").await;
    let request = "GET /12 HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
    let answer = Answer::parse(&raw(edge.address, request).await.0);
    assert_eq!(answer.body, text_like(12, 7));
    assert_eq!(origin.last()["host"], origin.address.to_string());
    let connect =
        raw(edge.address, "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nConnection: close\r\n\r\n").await;
    assert_eq!(Answer::parse(&connect.0).status, 405);
}

/// More fields than the library's parser has room for, both ways.
#[tokio::test]
async fn heads_of_three_hundred_fields_arrive_whole() {
    let fields: String = (0..300).map(|at| format!("X-{at}: {at}\r\n")).collect();
    let answer = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 3\r\nX-Last: 1\r\n\r\nok\n");
    let heads = Arc::<Mutex<Vec<String>>>::default();
    let origin = {
        let heads = Arc::clone(&heads);
        Origin::scripted(move |mut stream| {
            let (heads, answer) = (Arc::clone(&heads), answer.clone());
            async move {
                let head = read_until(&mut stream, "\r\n\r\n").await;
                heads.lock().unwrap().push(head);
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        })
        .await
    };
    let (pair, _gateway) = pair("", "").await;
    let alone = edge("").await;
    let numbers = |head: &str| -> BTreeSet<usize> {
        let names = head.lines().filter_map(|line| Some(line.split_once(": ")?.0));
        names
            .filter_map(|name| name.to_ascii_lowercase().strip_prefix("x-")?.parse().ok())
            .collect()
    };
    for address in [pair.address, alone.address] {
        let extra = format!("{fields}Connection: close\r\n");
        let answer = get(address, &origin.url("/many"), &extra).await;
        assert!(answer.status == 200 && answer.has("x-last: 1"), "{}", answer.head);
        assert_eq!(numbers(&answer.head), (0..300).collect());
        let asked = heads.lock().unwrap().pop().unwrap();
        assert_eq!(numbers(&asked), (0..300).collect());
    }
}

#[tokio::test]
async fn answers_without_a_body_are_framed_so() {
    let origin = Origin::start().await;
    let (edge, _gateway) = pair("", "").await;
    let head = send(edge.address, "HEAD", &origin.url("/text/70000"), "", b"").await;
    assert!(head.has("content-length: 70000") && head.body.is_empty());
    for (status, etag) in [(204, true), (304, true), (404, true)] {
        let answer = get(edge.address, &origin.url(&format!("/status/{status}")), "").await;
        assert_eq!((answer.status, answer.has("etag: \"v1\"")), (status, etag));
        assert_eq!(answer.body.is_empty(), status != 404);
    }
    // One connection carries them all: none leaves bytes behind.
    let mut stream = TcpStream::connect(edge.address).await.unwrap();
    for (method, path, end) in [
        ("HEAD", "/text/5000", "\r\n\r\n"),
        ("GET", "/status/204", "\r\n\r\n"),
        ("GET", "/status/304", "\r\n\r\n"),
        ("GET", "/hello", "hello\n"),
    ] {
        let url = origin.url(path);
        let request = format!("{method} {url} HTTP/1.1\r\nHost: {}\r\n\r\n", origin.address);
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_until(&mut stream, end).await;
        assert!(answer.starts_with("HTTP/1.1 ") && answer.ends_with(end), "{answer}");
    }
}

#[tokio::test]
async fn bodies_go_both_ways_in_every_framing_and_encoding() {
    let origin = Origin::start().await;
    for encoding in ENCODINGS {
        let settings = format!("encoding = '{encoding}'");
        let (edge, _gateway) = pair(&settings, &settings).await;
        for len in [0, 1, 1200, 65_536, 65_537, 300_000] {
            let body = text_like(len, 3);
            let echo = send(edge.address, "POST", &origin.url("/echo"), "", &body).await;
            assert!(echo.body == body, "{encoding}: {len} bytes of known length");
            let stream = get(edge.address, &origin.url(&format!("/stream/{len}")), "").await;
            assert!(stream.body == text_like(len, 7), "{encoding}: {len} bytes, chunked");
        }
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Transfer-Encoding: chunked\r\n\r\n",
            origin.url("/echo"),
            origin.address
        );
        let request = format!("{head}5\r\nhello\r\n7;x=y\r\n, world\r\n0\r\n\r\n");
        let answer = Answer::parse(&raw(edge.address, request).await.0);
        assert_eq!(answer.text(), "hello, world");
        assert_eq!(origin.last()["transfer-encoding"], "chunked");
    }
}

#[tokio::test]
async fn trailers_pass_both_ways() {
    let origin = Origin::start().await;
    for with_gateway in [true, false] {
        let (edge, _gateway) = if with_gateway {
            let (edge, gateway) = pair("", "").await;
            (edge, Some(gateway))
        } else {
            (edge("").await, None)
        };
        let request = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nTE: trailers\r\nConnection: close, TE\r\n\
             Transfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n2\r\nab\r\n0\r\nX-Sum: 9\r\n\r\n",
            origin.url("/echo"),
            origin.address
        );
        let (bytes, orderly) = raw(edge.address, request).await;
        let text = String::from_utf8(bytes).unwrap().to_ascii_lowercase();
        assert!(orderly && text.ends_with("2\r\nab\r\n0\r\nx-sum: 9\r\n\r\n"), "{text}");
        assert_eq!(origin.last()["te"], "trailers");
    }
}

/// RFC 9110 §6.5.1: they may be discarded; nothing else of the message may suffer.
#[tokio::test]
async fn trailers_that_nobody_announced_end_at_the_first_side() {
    let origin = Origin::scripted(|mut stream| async move {
        let request = read_until(&mut stream, "\r\n0\r\n\r\n").await;
        assert!(!request.to_ascii_lowercase().contains("x-sum"), "{request}");
        let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                      2\r\ncd\r\n0\r\nX-Sum: 8\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    let (edge, _gateway) = pair("", "").await;
    let request = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nTE: trailers\r\nConnection: close, TE\r\n\
         Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX-Sum: 9\r\n\r\n",
        origin.url("/"),
        origin.address
    );
    let (bytes, orderly) = raw(edge.address, request).await;
    let text = String::from_utf8(bytes).unwrap().to_ascii_lowercase();
    assert!(orderly && text.starts_with("http/1.1 200"), "{text}");
    assert!(text.ends_with("2\r\ncd\r\n0\r\n\r\n"), "{text}");
}

#[tokio::test]
async fn clients_of_http_1_0_get_a_body_that_ends_with_the_connection() {
    let origin = Origin::start().await;
    let (edge, _gateway) = pair("", "").await;
    let request = format!("GET {} HTTP/1.0\r\n\r\n", origin.url("/stream/100000"));
    let (bytes, orderly) = raw(edge.address, request).await;
    let answer = Answer::parse(&bytes);
    assert!(orderly && !answer.head.contains("chunked"), "{}", answer.head);
    assert!(answer.body == text_like(100_000, 7));
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order_over_one_origin_connection() {
    let origin = Origin::start().await;
    let (edge, _gateway) = pair("", "").await;
    let one = |path: &str, close: &str| {
        let url = origin.url(path);
        format!("GET {url} HTTP/1.1\r\nHost: {}\r\n{close}\r\n", origin.address)
    };
    let all = [one("/text/3000", ""), one("/hello", ""), one("/text/11", "Connection: close\r\n")]
        .concat();
    let (bytes, _) = raw(edge.address, all).await;
    let text = String::from_utf8(bytes).unwrap();
    let (first, rest) = text.split_once("hello\n").unwrap();
    assert!(first.contains(std::str::from_utf8(&text_like(3000, 7)).unwrap()));
    assert!(rest.ends_with(std::str::from_utf8(&text_like(11, 7)).unwrap()));
    assert_eq!(origin.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn no_body_flows_before_the_origin_wants_it() {
    let origin = Origin::start().await;
    let (edge, _gateway) = pair("", "").await;
    let mut stream = TcpStream::connect(edge.address).await.unwrap();
    let head = |path: &str| {
        format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
            origin.url(path),
            origin.address
        )
    };
    stream.write_all(head("/echo").as_bytes()).await.unwrap();
    let interim = read_until(&mut stream, "\r\n\r\n").await;
    assert!(interim.starts_with("HTTP/1.1 100 "), "{interim}");
    stream.write_all(b"hello").await.unwrap();
    assert!(read_until(&mut stream, "hello").await.contains("200 OK"));

    // An origin that refuses at once: the client sees no 100.
    let strict = Origin::scripted(|mut stream: TcpStream| async move {
        let request = read_until(&mut stream, "\r\n\r\n").await;
        assert!(request.to_ascii_lowercase().contains("expect: 100-continue"));
        let refusal = b"HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(refusal).await.unwrap();
        let (rest, _) = read_all(&mut stream).await;
        assert!(rest.is_empty(), "a body came: {rest:?}");
    })
    .await;
    let mut stream = TcpStream::connect(edge.address).await.unwrap();
    let url = strict.url("/x");
    let head = format!(
        "POST {url} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = read_until(&mut stream, "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 417 "), "{answer}");
}

/// An echo behind CONNECT: bytes both ways, and a direction that ends before the other.
async fn check_tunnel(edge: std::net::SocketAddr) {
    let echo = Origin::scripted(|mut stream: TcpStream| async move {
        let (mut reader, mut writer) = stream.split();
        tokio::io::copy(&mut reader, &mut writer).await.unwrap();
        writer.write_all(b"bye").await.unwrap();
    })
    .await;
    let mut stream = TcpStream::connect(edge).await.unwrap();
    let target = echo.address;
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = read_until(&mut stream, "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let sent = text_like(400_000, 5);
    let (mut reader, mut writer) = stream.split();
    let writing = async {
        writer.write_all(&sent).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let mut got = Vec::new();
    let reading = async { reader.read_to_end(&mut got).await.unwrap() };
    tokio::join!(writing, reading);
    assert!(got[..sent.len()] == sent && got[sent.len()..] == *b"bye");
}

#[tokio::test]
async fn connect_makes_a_tunnel() {
    let (edge, _gateway) = pair("", "").await;
    check_tunnel(edge.address).await;
}

#[tokio::test]
async fn connect_makes_a_tunnel_without_a_gateway() {
    check_tunnel(edge("").await.address).await;
}

#[tokio::test]
async fn upgrade_changes_the_protocol_end_to_end() {
    let origin = Origin::start().await;
    for with_gateway in [true, false] {
        let (edge, _gateway) = if with_gateway {
            let (edge, gateway) = pair("", "").await;
            (edge, Some(gateway))
        } else {
            (edge("").await, None)
        };
        let mut stream = TcpStream::connect(edge.address).await.unwrap();
        let request = |path: &str| {
            format!(
                "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
                origin.url(path),
                origin.address
            )
        };
        // Refused by an ordinary answer, on the same connection.
        stream.write_all(request("/hello").as_bytes()).await.unwrap();
        let refused = read_until(&mut stream, "hello\n").await;
        assert!(refused.starts_with("HTTP/1.1 200 "), "{refused}");
        stream.write_all(request("/socket").as_bytes()).await.unwrap();
        let answer = read_until(&mut stream, "\r\n\r\n").await.to_ascii_lowercase();
        assert!(answer.starts_with("http/1.1 101 "), "{answer}");
        for line in ["upgrade: websocket", "connection: upgrade", "sec-websocket-accept: abc="] {
            assert!(answer.contains(&format!("\r\n{line}\r\n")), "{answer}");
        }
        for word in ["one", "two"] {
            stream.write_all(word.as_bytes()).await.unwrap();
            assert_eq!(read_until(&mut stream, word).await, word);
        }
    }
}

#[tokio::test]
async fn an_edge_alone_serves_directly() {
    let origin = Origin::start().await;
    let edge = edge("").await;
    let body = text_like(200_000, 3);
    let echo = send(edge.address, "PUT", &origin.url("/echo"), "X-A: 1\r\n", &body).await;
    assert!(echo.body == body);
    let seen = origin.last();
    assert!(!seen.contains_key("accept-encoding") && seen.contains_key("via"));
    assert_eq!(seen["host"], origin.address.to_string());
}

#[tokio::test]
async fn a_hundred_exchanges_at_once_share_the_carrier() {
    let origin = Origin::start().await;
    let (edge, _gateway) = pair("", "").await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..100 {
        let (address, url) = (edge.address, origin.url("/echo"));
        tasks.spawn(async move {
            let body = text_like(1000 * number + 1, number as u64);
            assert!(send(address, "POST", &url, "", &body).await.body == body, "{number}");
        });
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
}

#[tokio::test]
async fn a_slow_reader_holds_only_its_own_answer() {
    let origin = Origin::start().await;
    let (edge, _gateway) = pair("admin = '127.0.0.1:0'", "").await;
    let mut slow = TcpStream::connect(edge.address).await.unwrap();
    let len = 20_000_000;
    let url = origin.url(&format!("/text/{len}"));
    let request = format!("GET {url} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    slow.write_all(request.as_bytes()).await.unwrap();
    read_until(&mut slow, "\r\n\r\n").await;
    // Others pass, and what is held for the slow one stays within the bound.
    for _ in 0..20 {
        assert_eq!(get(edge.address, &origin.url("/hello"), "").await.text(), "hello\n");
    }
    let admin = edge.admin.unwrap();
    let metrics =
        raw(admin, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.0;
    let metrics = String::from_utf8(metrics).unwrap();
    let held = metrics.lines().find_map(|line| line.strip_prefix("longwire_queue_bytes ")).unwrap();
    assert!(held.parse::<u64>().unwrap() <= 3 << 20, "{held} bytes are held");
    let (rest, orderly) = read_all(&mut slow).await;
    let expected = text_like(len, 7);
    assert!(orderly && expected.ends_with(&rest) && rest.len() > len - 100_000, "{}", rest.len());
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_request_along() {
    // The origin never answers; it sees the connection close.
    let (tell, mut reported) = tokio::sync::mpsc::unbounded_channel();
    let origin = Origin::scripted(move |mut stream: TcpStream| {
        let tell = tell.clone();
        async move {
            read_until(&mut stream, "\r\n\r\n").await;
            tell.send("asked").unwrap();
            let _ = read_all(&mut stream).await;
            tell.send("closed").unwrap();
        }
    })
    .await;
    let (edge, _gateway) = pair("admin = '127.0.0.1:0'", "").await;
    let mut stream = TcpStream::connect(edge.address).await.unwrap();
    let request = format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", origin.url("/never"));
    stream.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(reported.recv().await, Some("asked"));
    drop(stream);
    let closed = tokio::time::timeout(common::PATIENCE, reported.recv()).await.expect("hangs");
    assert_eq!(closed, Some("closed"));
    let admin = edge.admin.unwrap();
    eventually(|| async move {
        let health =
            raw(admin, "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                .await;
        Answer::parse(&health.0).text().contains("\"open_exchanges\":0")
    })
    .await;
}

#[tokio::test]
async fn what_is_open_finishes_before_a_shutdown() {
    let (go, mut gone) = tokio::sync::mpsc::unbounded_channel::<()>();
    let gate = Arc::new(tokio::sync::Notify::new());
    let waiting = Arc::clone(&gate);
    let origin = Origin::scripted(move |mut stream: TcpStream| {
        let (go, waiting) = (go.clone(), Arc::clone(&waiting));
        async move {
            read_until(&mut stream, "\r\n\r\n").await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab").await.unwrap();
            go.send(()).unwrap();
            waiting.notified().await;
            stream.write_all(b"cd").await.unwrap();
        }
    })
    .await;
    let (edge, gateway) = pair("", "").await;
    let address = edge.address;
    let url = origin.url("/slow");
    let asking = tokio::spawn(async move { get(address, &url, "").await });
    gone.recv().await.unwrap();
    let stopping = tokio::spawn(async move {
        edge.stop().await;
        gateway.stop().await;
    });
    // The listener closes at once while the exchange goes on.
    eventually(|| async move { TcpStream::connect(address).await.is_err() }).await;
    gate.notify_one();
    assert_eq!(asking.await.unwrap().text(), "abcd");
    stopping.await.unwrap();
}
