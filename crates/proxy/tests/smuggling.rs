//! What a client sends so that two sides read it differently: an origin gets one request or none,
//! of the client that asked for it, where the allow list lets it.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use common::origin::Origin;
use common::{Answer, Everywhere, Side, edge, gateway_with, get, pair, raw, read_until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A pair, an edge alone and a listener for clients without an edge.
async fn ways() -> (Vec<Side>, [(&'static str, SocketAddr); 3]) {
    let (one, gateway) = pair("", "http_listen = '127.0.0.1:0'").await;
    let alone = edge("").await;
    let all =
        [("pair", one.address), ("alone", alone.address), ("edgeless", gateway.http.unwrap())];
    (vec![one, gateway, alone], all)
}

/// What came on an origin's connections: each request's line, whether its framing was clean, and
/// its body.
type Seen = Arc<Mutex<Vec<(String, String, Vec<u8>)>>>;

/// A body that ends where the head says; `None` until it is whole.
fn body_of(head: &str, rest: &[u8]) -> Option<(Vec<u8>, usize)> {
    let head = head.to_ascii_lowercase();
    let value = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    if value("transfer-encoding: ").is_some() {
        let at = rest.windows(5).position(|five| five == b"0\r\n\r\n")?;
        return Some((common::dechunk(&rest[..at + 5])?, at + 5));
    }
    let length = value("content-length: ").map_or(0, |value| value.parse().unwrap());
    rest.get(..length).map(|body| (body.to_vec(), length))
}

/// An origin that reads strictly what it is told, and keeps it.
async fn strict_origin() -> (Origin, Seen) {
    let all = Seen::default();
    let seen = Arc::clone(&all);
    let origin = Origin::scripted(move |mut stream| {
        let seen = Arc::clone(&seen);
        async move {
            let mut came = Vec::new();
            loop {
                let end = came.windows(4).position(|four| four == b"\r\n\r\n");
                let whole = end.and_then(|end| {
                    let head = String::from_utf8_lossy(&came[..end]).into_owned();
                    body_of(&head, &came[end + 4..]).map(|(body, len)| (head, body, end + 4 + len))
                });
                if let Some((head, body, used)) = whole {
                    came.drain(..used);
                    let (line, fields) = head.split_once("\r\n").unwrap();
                    seen.lock().unwrap().push((line.to_owned(), format!("\r\n{fields}"), body));
                    let begin = match line.contains("/moved") {
                        true => "302 Found\r\nLocation: /admin",
                        false => "200 OK",
                    };
                    let answer = format!("HTTP/1.1 {begin}\r\nContent-Length: 3\r\n\r\nok\n");
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                } else if stream.read_buf(&mut came).await.unwrap_or(0) == 0 {
                    return;
                }
            }
        }
    })
    .await;
    (origin, all)
}

/// Fields that frame a body, or seem to; `@` stands for a request that nobody is to see, `#` for
/// its length, `&` for that as a chunk has it. Behind the empty line comes what would be a body.
const FRAMINGS: [&str; 40] = [
    "Content-Length: #\r\nContent-Length: 0\r\n\r\n@",
    "Content-Length: 0\r\nContent-Length: #\r\n\r\n@",
    "Content-Length: 0, #\r\n\r\n@",
    "Content-Length: #, #\r\n\r\n@",
    "Content-Length: +#\r\n\r\n@",
    "Content-Length: -1\r\n\r\n@",
    "Content-Length: 0x20\r\n\r\n@",
    "Content-Length: \r\n\r\n@",
    "Content-Length: 00000000000000000000000000000\r\n\r\n",
    "Content-Length: 18446744073709551616\r\n\r\n@",
    "Content-Length: # \r\n\r\n@",
    "Content-Length:\t#\r\n\r\n@",
    "Content-Length : #\r\n\r\n@",
    "Content-Length\r\n: #\r\n\r\n@",
    "X: 1\r\n Content-Length: #\r\n\r\n@",
    "X: 1\rContent-Length: #\r\n\r\n@",
    "X: 1\0\r\nContent-Length: #\r\n\r\n@",
    "\0Content-Length: #\r\n\r\n@",
    "Content-Length: #\nTransfer-Encoding: chunked\n\n0\r\n\r\n@",
    "Content-Length: #\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n@",
    "Transfer-Encoding: chunked\r\nContent-Length: #\r\n\r\n0\r\n\r\n@",
    "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n&\r\n@\r\n0\r\n\r\n",
    "Transfer-Encoding: xchunked\r\nContent-Length: #\r\n\r\n@",
    "Transfer-Encoding: identity\r\nContent-Length: #\r\n\r\n@",
    "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n@",
    "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n@",
    "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n@",
    "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n@",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n@",
    "Transfer-Encoding: \r\nContent-Length: #\r\n\r\n@",
    "Transfer-Encoding\r\n : chunked\r\n\r\n0\r\n\r\n@",
    "Transfer_Encoding: chunked\r\nContent-Length: #\r\n\r\n@",
    "Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n@",
    "Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n@",
    "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n@",
    "Transfer-Encoding: chunked\r\n\r\n0\n\n@",
    "Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n@",
    "Transfer-Encoding: chunked\r\n\r\n0;\nx\r\n\r\n@",
    "Transfer-Encoding: chunked\r\n\r\n;\r\n\r\n@",
    "Connection: content-length\r\nContent-Length: #\r\n\r\n@",
];

/// The proxy reads what it passes on, and passes on what it read: no framing makes two requests of
/// one, neither at the origin nor for the next client on its connection.
#[tokio::test]
async fn no_framing_makes_two_requests_of_one() {
    let (origin, seen) = strict_origin().await;
    let (_sides, ways) = ways().await;
    let hidden = format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", origin.url("/smuggled"));
    for framing in FRAMINGS {
        let text = framing
            .replace('#', &hidden.len().to_string())
            .replace('&', &format!("{:x}", hidden.len()))
            .replace('@', &hidden);
        for (way, address) in ways {
            for version in ["1.1", "1.0"] {
                let head = format!("POST {} HTTP/{version}\r\nHost: a\r\n", origin.url("/x"));
                let mut stream = TcpStream::connect(address).await.unwrap();
                let _ = stream.write_all(format!("{head}{text}").as_bytes()).await;
                let _ = stream.shutdown().await;
                let (bytes, _) = common::read_all(&mut stream).await;
                let answers = String::from_utf8_lossy(&bytes).matches("HTTP/1.1 ").count();
                assert!(answers <= 1, "{way}, {version}, {framing:?}: {answers} answers");
                let next = get(address, &origin.url("/next"), "").await;
                assert_eq!((next.status, &*next.text()), (200, "ok\n"), "{way}, {framing:?}");
            }
        }
    }
    for (line, fields, _) in seen.lock().unwrap().iter() {
        assert!(["POST /x HTTP/1.1", "GET /next HTTP/1.1"].contains(&&**line), "{line}");
        let fields = fields.to_ascii_lowercase();
        let framings = ["\r\ncontent-length:", "\r\ntransfer-encoding:"];
        let count: usize = framings.iter().map(|name| fields.matches(name).count()).sum();
        assert!(count <= 1 && !fields.contains('\0'), "{line}: {fields}");
    }
}

/// RFC 9112 §7.1: a client's own fault is told as one.
#[tokio::test]
async fn a_chunk_that_is_none_is_the_clients_fault() {
    let (origin, _) = strict_origin().await;
    let (_sides, ways) = ways().await;
    for (way, address) in ways {
        for chunk in ["zz\r\n", "5\r\nhelloX", "0x5\r\nhello\r\n", "0\r\nX\0: 1\r\n\r\n"] {
            let head = format!("POST {} HTTP/1.1\r\nHost: a\r\n", origin.url("/x"));
            let ask = format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunk}");
            let answer = Answer::parse(&raw(address, ask).await.0);
            assert_eq!(answer.status, 400, "{way}, {chunk:?}: {}", answer.text());
            assert_eq!(answer.text().lines().count(), 1, "{way}, {chunk:?}");
        }
        assert_eq!(get(address, &origin.url("/next"), "").await.status, 200, "{way}");
    }
}

/// Methods that seldom have a body keep the one that they have.
#[tokio::test]
async fn a_body_in_chunks_goes_with_any_method() {
    let (origin, seen) = strict_origin().await;
    let (_sides, ways) = ways().await;
    for (way, address) in ways {
        for method in ["GET", "HEAD", "DELETE", "OPTIONS", "POST"] {
            let head = format!("{method} {} HTTP/1.1\r\nHost: a\r\n", origin.url("/body"));
            let fields = "Connection: close\r\nTransfer-Encoding: chunked\r\n";
            let ask = format!("{head}{fields}\r\n5\r\nhello\r\n0\r\n\r\n");
            let answer = Answer::parse(&raw(address, ask).await.0);
            assert_eq!(answer.status, 200, "{way}, {method}");
            let (line, _, body) = seen.lock().unwrap().pop().unwrap();
            assert!(line.starts_with(method) && body == b"hello", "{way}, {line}: {body:?}");
        }
    }
}

/// What follows a request to change protocols is a tunnel's or a request like any other.
#[tokio::test]
async fn bytes_behind_a_refused_change_of_protocols_are_in_step() {
    let (origin, seen) = strict_origin().await;
    let port = origin.address.port();
    let allow = format!("allow = ['http://127.0.0.1:{port}']\nhttp_listen = '127.0.0.1:0'");
    let (one, gateway) = pair("", &allow).await;
    let alone = edge("").await;
    let ask = |path: &str, fields: &str| {
        format!("GET {} HTTP/1.1\r\nHost: a\r\n{fields}\r\n", origin.url(path))
    };
    let change = ask("/change", "Connection: upgrade\r\nUpgrade: websocket\r\n");
    for address in [one.address, alone.address, gateway.http.unwrap()] {
        for (behind, statuses) in [
            (ask("/behind", "Connection: close\r\n"), &["200", "200"][..]),
            ("\u{1}\u{5}hello\r\n\r\n".to_owned(), &["200", "400"]),
            ("CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), &["200", "40"]),
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(format!("{change}{behind}").as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            let (bytes, _) = common::read_all(&mut stream).await;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let came: Vec<&str> = text.split("HTTP/1.1 ").skip(1).collect();
            if behind.starts_with("CONNECT") && address == alone.address {
                // It has no list, and nobody listens there.
                assert!(came.len() == 2 && came[1].starts_with("502"), "{text}");
                continue;
            }
            assert_eq!(came.len(), statuses.len(), "{behind:?}: {text}");
            let fits = came.iter().zip(statuses).all(|(got, status)| got.starts_with(status));
            assert!(fits, "{behind:?}: {text}");
        }
    }
    for (line, ..) in seen.lock().unwrap().iter() {
        assert!(["GET /change HTTP/1.1", "GET /behind HTTP/1.1"].contains(&&**line), "{line}");
    }
}

/// Authorities of which none is allowed; `P` is the port of the origin, and every name that there
/// is leads to it.
const ELSEWHERE: [&str; 26] = [
    "user@127.0.0.1:P",
    "127.0.0.1:P@evil.example",
    "2130706433:P",
    "127.1:P",
    "0x7f.1:P",
    "0x7f000001:P",
    "017700000001:P",
    "127.0.0.1%00:P",
    "%31%32%37.0.0.1:P",
    "%6cocalhost:P",
    "localhost:P",
    "LOCALHOST.:P",
    "locaIhost:P",
    "xn--ocalhost:P",
    "localhost.localdomain:P",
    "127.0.0.1:0",
    "127.0.0.1:65536",
    "127.0.0.1:P:80",
    "127.0.0.1:+P",
    "127.0.0.1",
    "[::1]:P",
    "[::1%25lo]:P",
    "[::]:P",
    "0.0.0.0:P",
    "169.254.169.254",
    "metadata.google.internal",
];

/// Paths that are not under `/public`, however a server reads them.
const OUTSIDE: [&str; 10] = [
    "/admin",
    "/public/../admin",
    "/public/%2e%2e/admin",
    "/public/.%2e/admin",
    "/public/..;/admin",
    "/public/%2e%2e%2fadmin",
    "//public/a",
    "/publicx",
    "/public%2fa",
    "/Public/a",
];

/// The list names a path of one host, and besides public addresses: however the target is spelt,
/// nothing else is asked, by the pair or for a client without an edge.
#[tokio::test]
async fn no_spelling_gets_past_the_allow_list() {
    let (origin, seen) = strict_origin().await;
    let port = origin.address.port();
    let settings = format!(
        "allow = ['http://127.0.0.1:{port}/public', 'http://*:*']\nhttp_listen = '127.0.0.1:0'\n\
         admin = '127.0.0.1:0'"
    );
    let gateway = gateway_with(&settings, Arc::new(Everywhere("127.0.0.1"))).await;
    let edge = edge(&format!("gateway = '{}'", gateway.address)).await;
    let edgeless = gateway.http.unwrap();
    let base = format!("http://127.0.0.1:{port}");
    let mut targets: Vec<String> = Vec::new();
    for authority in ELSEWHERE {
        let authority = authority.replace('P', &port.to_string());
        targets.push(format!("GET http://{authority}/public/a"));
    }
    targets.extend(OUTSIDE.map(|path| format!("GET {base}{path}")));
    for there in [origin.address, gateway.admin.unwrap(), gateway.address, edgeless, edge.address] {
        targets.push(format!("CONNECT {there}"));
    }
    targets.push(format!("CONNECT localhost:{port}"));
    targets.push(format!("GET https://127.0.0.1:{port}/public/a"));
    targets.push(format!("GET ftp://127.0.0.1:{port}/public/a"));
    targets.push(format!("GET http://{}/metrics", gateway.admin.unwrap()));
    for address in [edge.address, edgeless] {
        for target in &targets {
            let ask = format!("{target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            let answer = Answer::parse(&raw(address, ask).await.0);
            assert!(matches!(answer.status, 400 | 403), "{target}: {}", answer.head);
            assert_eq!(answer.text().lines().count(), 1, "{target}: {}", answer.text());
        }
        assert!(seen.lock().unwrap().is_empty(), "{seen:?}");
        // What is allowed is asked under the target's name, not under that of Host; where it leads
        // to is the client's affair.
        for (target, fields, status) in [
            ("/public/a", "X: 1\r\n", 200),
            ("/public/a?b=/../..", "X: 1\r\n", 200),
            ("/public/moved", "X: 1\r\n", 302),
            ("/public/h2c", "Connection: upgrade, http2-settings\r\nUpgrade: h2c\r\n", 200),
            ("/public/h2c", "Connection: upgrade\r\nUpgrade: h2c, h2\r\n", 200),
            ("/public/h2c", "Connection: upgrade\r\nUpgrade: \"h2c\"\r\n", 200),
            ("/public/h2c", "Connection: upgrade\r\nUpgrade: h2c\u{a0}\r\n", 200),
            ("/public/ws", "Connection: upgrade\r\nUpgrade: websocket\r\n", 403),
        ] {
            let ask = format!("GET {base}{target} HTTP/1.1\r\nHost: evil.example\r\n{fields}");
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(format!("{ask}\r\n").as_bytes()).await.unwrap();
            let answer = read_until(&mut stream, "\r\n\r\n").await;
            assert_eq!(Answer::parse(answer.as_bytes()).status, status, "{target}, {fields}");
        }
        for (line, fields, _) in seen.lock().unwrap().drain(..) {
            let fields = fields.to_ascii_lowercase();
            assert!(line.starts_with("GET /public/"), "{line}");
            assert!(fields.contains(&format!("\r\nhost: 127.0.0.1:{port}")), "{fields}");
            assert!(!fields.contains("\r\nupgrade") && !fields.contains("evil"), "{fields}");
        }
    }
}
