//! Ends that say what happened: of a direction, of a tunnel, of an upload, of a stream.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Tests.

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::origin::Origin;
use common::{Answer, PATIENCE, edge, pair, read_all, read_until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};

/// A pair, an edge alone and a listener for clients without an edge.
struct Ways {
    _sides: Vec<common::Side>,
    all: Vec<(&'static str, SocketAddr)>,
}

async fn ways() -> Ways {
    let (one, gateway) = pair("", "http_listen = '127.0.0.1:0'").await;
    let alone = edge("").await;
    let all =
        vec![("pair", one.address), ("alone", alone.address), ("edgeless", gateway.http.unwrap())];
    Ways { _sides: vec![one, gateway, alone], all }
}

/// Whether the other side reset the connection rather than ended it.
async fn is_reset(stream: &mut TcpStream) -> bool {
    let mut buffer = [0; 64];
    let reading = stream.read(&mut buffer);
    let read = tokio::time::timeout(PATIENCE, reading).await.expect("hangs");
    read.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
}

fn reset(stream: &TcpStream) {
    socket2::SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO)).unwrap();
}

/// RFC 9112 §9.6.
#[tokio::test]
async fn who_ends_its_direction_behind_a_request_gets_the_answer() {
    let (asked, answer) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, wait) = (Arc::clone(&asked), Arc::clone(&answer));
    let origin = Origin::scripted(move |mut stream| {
        let (tell, wait) = (Arc::clone(&tell), Arc::clone(&wait));
        async move {
            read_until(&mut stream, "\r\n\r\n").await;
            tell.notify_one();
            wait.notified().await;
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nanswer";
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    })
    .await;
    let ways = ways().await;
    for (way, address) in &ways.all {
        for version in ["1.1", "1.0"] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let ask = format!("GET {} HTTP/{version}\r\nHost: a\r\n\r\n", origin.url("/q"));
            stream.write_all(ask.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            asked.notified().await;
            answer.notify_one();
            let (bytes, orderly) = read_all(&mut stream).await;
            let text = String::from_utf8(bytes).unwrap();
            assert!(orderly && text.ends_with("answer"), "{way}, {version}: {text}");
        }
    }
}

/// Browsers and tools end a stream by ending their connection.
#[tokio::test]
async fn who_ends_its_direction_amid_an_event_stream_has_had_enough() {
    let (left, mut is_left) = mpsc::unbounded_channel();
    let origin = Origin::scripted(move |mut stream| {
        let left = left.clone();
        async move {
            read_until(&mut stream, "\r\n\r\n").await;
            let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n";
            stream.write_all(answer.as_bytes()).await.unwrap();
            let _ = stream.read(&mut [0; 64]).await;
            left.send(()).unwrap();
        }
    })
    .await;
    let ways = ways().await;
    for (way, address) in &ways.all {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let ask = format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", origin.url("/events"));
        stream.write_all(ask.as_bytes()).await.unwrap();
        read_until(&mut stream, "data: 1").await;
        stream.shutdown().await.unwrap();
        tokio::time::timeout(PATIENCE, is_left.recv()).await.expect(way).unwrap();
    }
}

#[tokio::test]
async fn a_tunnel_that_breaks_is_reset_at_the_other_end_and_one_that_ends_is_ended() {
    for breaks in [true, false] {
        let origin = Origin::scripted(move |mut stream| async move {
            read_until(&mut stream, "hello").await;
            stream.write_all(b"goodbye").await.unwrap();
            if breaks {
                reset(&stream);
            }
        })
        .await;
        let ways = ways().await;
        for (way, address) in &ways.all {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let ask = format!("CONNECT {} HTTP/1.1\r\nHost: a\r\n\r\n", origin.address);
            stream.write_all(ask.as_bytes()).await.unwrap();
            read_until(&mut stream, "\r\n\r\n").await;
            stream.write_all(b"hello").await.unwrap();
            if breaks {
                let mut all = Vec::new();
                let reading = stream.read_to_end(&mut all);
                let end = tokio::time::timeout(PATIENCE, reading).await.expect("hangs");
                assert!(end.is_err(), "{way}: an end that was none, behind {all:?}");
            } else {
                assert_eq!(read_all(&mut stream).await, (b"goodbye".to_vec(), true), "{way}");
            }
        }
    }
}

#[tokio::test]
async fn a_client_that_breaks_its_tunnel_breaks_it_at_the_origin() {
    let (seen, mut is_seen) = mpsc::unbounded_channel();
    let origin = Origin::scripted(move |mut stream| {
        let seen = seen.clone();
        async move {
            read_until(&mut stream, "hello").await;
            stream.write_all(b"here").await.unwrap();
            seen.send(is_reset(&mut stream).await).unwrap();
        }
    })
    .await;
    let ways = ways().await;
    for (way, address) in &ways.all {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let ask = format!("CONNECT {} HTTP/1.1\r\nHost: a\r\n\r\nhello", origin.address);
        stream.write_all(ask.as_bytes()).await.unwrap();
        read_until(&mut stream, "here").await;
        reset(&stream);
        drop(stream);
        assert!(is_seen.recv().await.unwrap(), "{way}: the origin saw an end in order");
    }
}

/// RFC 9110 §15.2: interim responses are passed on, with their fields.
#[tokio::test]
async fn hints_come_before_the_answer_with_their_fields() {
    let origin = Origin::scripted(|mut stream| async move {
        read_until(&mut stream, "\r\n\r\n").await;
        let hints = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n";
        stream.write_all(hints.as_bytes()).await.unwrap();
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
        stream.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    let ways = ways().await;
    for (way, address) in &ways.all {
        let ask =
            format!("GET {} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", origin.url("/"));
        let text = String::from_utf8(common::raw(*address, ask).await.0).unwrap();
        let (hints, answer) = text.split_once("\r\n\r\n").unwrap();
        let lower = hints.to_ascii_lowercase();
        assert!(lower.starts_with("http/1.1 103"), "{way}: {text}");
        assert!(lower.contains("link: </style.css>; rel=preload"), "{way}: {text}");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"), "{way}: {text}");
    }
}

/// An answer that comes early is delivered; a success is one only for what the origin has.
#[tokio::test]
async fn an_upload_goes_on_behind_an_early_success_and_ends_with_an_early_refusal() {
    let (took, mut taken) = mpsc::unbounded_channel();
    let origin = Origin::scripted(move |mut stream| {
        let took = took.clone();
        async move {
            let head = read_until(&mut stream, "\r\n\r\n").await;
            if head.contains("/refuse") {
                let answer = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\n\
                              Connection: close\r\n\r\nlarge";
                return stream.write_all(answer.as_bytes()).await.unwrap();
            }
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
            stream.write_all(answer.as_bytes()).await.unwrap();
            let mut more = head.split("\r\n\r\n").nth(1).unwrap().len();
            let mut buffer = vec![0; 16384];
            while more < 300_000 {
                match stream.read(&mut buffer).await {
                    Ok(len @ 1..) => more += len,
                    _ => break,
                }
            }
            took.send(more).unwrap();
        }
    })
    .await;
    let ways = ways().await;
    for (way, address) in &ways.all {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let ask = format!(
            "POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n",
            origin.url("/take")
        );
        stream.write_all(ask.as_bytes()).await.unwrap();
        let answer = read_until(&mut stream, "ok").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{way}: {answer}");
        stream.write_all(&vec![b'x'; 300_000]).await.unwrap();
        assert_eq!(taken.recv().await.unwrap(), 300_000, "{way}");

        let ask = ask.replace("/take", "/refuse");
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(ask.as_bytes()).await.unwrap();
        let answer = read_until(&mut stream, "large").await;
        let answer = Answer::parse(answer.as_bytes());
        assert!(answer.status == 413 && answer.has("connection: close"), "{way}: {}", answer.head);
        // The rest of the upload is not waited for, and does not reset the answer away.
        let _ = stream.write_all(&vec![b'x'; 300_000]).await;
    }
}

/// NTLM (MS-NLMP, RFC 4559 §6) authenticates the connection: each client has its own to the origin,
/// and that ends with it.
#[tokio::test]
async fn a_connection_that_a_client_authenticated_is_its_own_across_the_link() {
    let count = Arc::new(AtomicUsize::new(0));
    let (ended, mut ends) = mpsc::unbounded_channel();
    let origin = Origin::scripted(move |mut stream| {
        let (number, ended) = (count.fetch_add(1, Ordering::SeqCst), ended.clone());
        async move {
            let mut user = "nobody".to_owned();
            let mut step = 0;
            loop {
                let mut head = String::new();
                let mut buffer = [0; 4096];
                while !head.contains("\r\n\r\n") {
                    match stream.read(&mut buffer).await {
                        Ok(len @ 1..) => head.push_str(&String::from_utf8_lossy(&buffer[..len])),
                        _ => return ended.send((number, user)).unwrap(),
                    }
                }
                let field = head
                    .lines()
                    .find(|line| line.to_ascii_lowercase().starts_with("authorization: ntlm "));
                let token = field.map(|line| line.rsplit(' ').next().unwrap().to_owned());
                let answer = match (step, token) {
                    (0, None) if user == "nobody" => "401 Unauthorized\r\nWWW-Authenticate: NTLM",
                    (0, Some(_)) => {
                        step = 1;
                        "401 Unauthorized\r\nWWW-Authenticate: NTLM challenge"
                    }
                    (1, Some(token)) => {
                        (step, user) = (2, token);
                        "200 OK"
                    }
                    _ => "200 OK",
                };
                let text =
                    format!("HTTP/1.1 {answer}\r\nContent-Length: {}\r\n\r\n{user}", user.len());
                if stream.write_all(text.as_bytes()).await.is_err() {
                    return ended.send((number, user)).unwrap();
                }
            }
        }
    })
    .await;
    let ways = ways().await;
    for (way, address) in &ways.all {
        let mut clients = Vec::new();
        for user in ["alice", "bob"] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let mut asks = async |token: &str, user: &str| {
                let field = match token {
                    "" => String::new(),
                    token => format!("Authorization: NTLM {token}\r\n"),
                };
                let ask = format!("GET {} HTTP/1.1\r\nHost: a\r\n{field}\r\n", origin.url("/who"));
                stream.write_all(ask.as_bytes()).await.unwrap();
                let answer = read_until(&mut stream, user).await;
                Answer::parse(answer.as_bytes()).status
            };
            assert_eq!(asks("", "nobody").await, 401, "{way}");
            assert_eq!(asks("hello", "nobody").await, 401, "{way}");
            assert_eq!(asks(user, user).await, 200, "{way}");
            // Logged in, without a word more.
            assert_eq!(asks("", user).await, 200, "{way}");
            clients.push(stream);
        }
        let stranger = common::get(*address, &origin.url("/who"), "").await;
        assert_eq!((stranger.status, stranger.text().as_str()), (401, "nobody"), "{way}");
        drop(clients);
        let mut users = Vec::new();
        while users.len() < 2 {
            let (_, user) = tokio::time::timeout(PATIENCE, ends.recv()).await.expect(way).unwrap();
            users.extend(Some(user).filter(|user| user != "nobody"));
        }
        users.sort();
        assert_eq!(users, ["alice", "bob"], "{way}");
    }
}
