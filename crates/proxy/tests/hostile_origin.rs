//! Origins that send what they should not: the client is told so, nothing is taken without end, and
//! nothing of it reaches whoever asks next.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::origin::Origin;
use common::{Answer, Side, edge, get, pair, raw, read_until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What an origin without end would send.
const ENDLESS_BYTES: usize = 64 << 20;
/// What is taken of it at most; most of that is in the kernel's buffers.
const MAX_TAKEN_BYTES: usize = 16 << 20;

/// A pair, an edge alone and a listener for clients without an edge, all of little patience.
async fn ways() -> (Vec<Side>, [(&'static str, SocketAddr); 3]) {
    let times = "response_timeout = '1 s'\n";
    let (one, gateway) = pair("", &format!("{times}http_listen = '127.0.0.1:0'")).await;
    let alone = edge(times).await;
    let all =
        [("pair", one.address), ("alone", alone.address), ("edgeless", gateway.http.unwrap())];
    (vec![one, gateway, alone], all)
}

/// Says `first`, and then `more` for as long as it is taken; counts what was.
async fn endless(
    stream: &mut TcpStream,
    first: &str,
    more: &str,
    taken: &AtomicUsize,
) -> std::io::Result<()> {
    stream.write_all(first.as_bytes()).await?;
    let piece = more.repeat((16 << 10) / more.len() + 1);
    for _ in 0..ENDLESS_BYTES / piece.len() {
        stream.write_all(piece.as_bytes()).await?;
        taken.fetch_add(piece.len(), Ordering::SeqCst);
    }
    Ok(())
}

/// An origin that says `good` on a connection that it keeps, and else is as the path says.
async fn origin(taken: &Arc<AtomicUsize>) -> Origin {
    let taken = Arc::clone(taken);
    Origin::scripted(move |mut stream| {
        let taken = Arc::clone(&taken);
        async move {
            loop {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read_buf(&mut head).await {
                        Ok(1..) => {}
                        _ => return,
                    }
                }
                let head = String::from_utf8(head).unwrap();
                let path = head.split(' ').nth(1).unwrap();
                if answers(&mut stream, path, &taken).await.is_err() {
                    return;
                }
            }
        }
    })
    .await
}

async fn answers(stream: &mut TcpStream, path: &str, taken: &AtomicUsize) -> std::io::Result<()> {
    let ok = "HTTP/1.1 200 OK\r\n";
    match path {
        "/fields" => return endless(stream, ok, "X-Field: value\r\n", taken).await,
        "/field" => return endless(stream, &format!("{ok}X: "), "value", taken).await,
        "/line" => return endless(stream, "HTTP/1.1 200 ", "OK", taken).await,
        "/102" => return endless(stream, "", "HTTP/1.1 102 Processing\r\n\r\n", taken).await,
        "/100" => return endless(stream, "", "HTTP/1.1 100 Continue\r\n\r\n", taken).await,
        "/chunk" => {
            let first = format!("{ok}Transfer-Encoding: chunked\r\n\r\n5;");
            return endless(stream, &first, "extension", taken).await;
        }
        "/trailers" => {
            let first = format!("{ok}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n");
            return endless(stream, &first, "X-Field: value\r\n", taken).await;
        }
        "/trickle" => {
            for byte in ok.bytes().chain(std::iter::repeat_n(b'x', 1000)) {
                stream.write_all(&[byte]).await?;
                // sleep: that the head comes slowly is what is tested.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            return Ok(());
        }
        _ => {}
    }
    let answer = match path {
        "/good" => format!("{ok}Content-Length: 4\r\n\r\ngood"),
        "/behind" => format!("{ok}Content-Length: 2\r\n\r\nok{ok}Content-Length: 6\r\n\r\npoison"),
        "/204" => format!("HTTP/1.1 204 No Content\r\n\r\n{ok}Content-Length: 6\r\n\r\npoison"),
        "/304" => format!("HTTP/1.1 304 Not Modified\r\n\r\n{ok}Content-Length: 6\r\n\r\npoison"),
        "/both" => format!(
            "{ok}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        ),
        "/both-other" => format!(
            "{ok}Transfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        ),
        "/101" => "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
                   Upgrade: websocket\r\n\r\npoison"
            .to_owned(),
        "/status" => "HTTP/1.1 20 x\r\n\r\n".to_owned(),
        "/nul" => format!("{ok}X: a\0b\r\nContent-Length: 2\r\n\r\nok"),
        "/cr" => format!("{ok}X: a\rSet-Cookie: b\r\nContent-Length: 2\r\n\r\nok"),
        "/fold" => format!("{ok} X: 1\r\nContent-Length: 2\r\n\r\nok"),
        "/lengths" => format!("{ok}Content-Length: 2\r\nContent-Length: 3\r\n\r\nok"),
        "/coding" => format!("{ok}Transfer-Encoding: gzip\r\n\r\nok"),
        other => panic!("{other}"),
    };
    stream.write_all(answer.as_bytes()).await
}

/// Asks on a connection of its own; what comes, to its end.
async fn ask(address: SocketAddr, url: &str) -> String {
    let ask = format!("GET {url} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    String::from_utf8_lossy(&raw(address, ask).await.0).into_owned()
}

/// The final head of what came, behind interim ones.
fn status(text: &str) -> u16 {
    let finals = text.split("HTTP/1.1 ").skip(1).filter(|rest| !rest.starts_with('1'));
    finals.last().map_or(0, |rest| rest[..3].parse().unwrap())
}

#[tokio::test]
async fn answers_without_end_are_given_up() {
    let taken = Arc::new(AtomicUsize::new(0));
    let origin = origin(&taken).await;
    let (_sides, ways) = ways().await;
    for (way, address) in ways {
        for path in ["/fields", "/field", "/line", "/102", "/100", "/chunk", "/trailers"] {
            taken.store(0, Ordering::SeqCst);
            let text = ask(address, &origin.url(path)).await;
            match path {
                // The head has left: what follows breaks off.
                "/chunk" | "/trailers" => {
                    assert!(!text.ends_with("\r\n0\r\n\r\n"), "{way}, {path}: {text}");
                }
                _ => assert_eq!(status(&text), 502, "{way}, {path}: {text:.200}"),
            }
            let taken = taken.load(Ordering::SeqCst);
            assert!(taken < MAX_TAKEN_BYTES, "{way}, {path}: {taken} bytes were taken");
            let good = get(address, &origin.url("/good"), "").await;
            assert_eq!(good.text(), "good", "{way}, behind {path}");
        }
    }
}

/// A head that comes byte by byte is no answer in time.
#[tokio::test]
async fn a_head_that_trickles_is_504_in_time() {
    let origin = origin(&Arc::default()).await;
    let (_sides, ways) = ways().await;
    for (way, address) in ways {
        let text = ask(address, &origin.url("/trickle")).await;
        assert_eq!(status(&text), 504, "{way}: {text}");
        assert_eq!(get(address, &origin.url("/good"), "").await.text(), "good", "{way}");
    }
}

#[tokio::test]
async fn what_nobody_asked_for_reaches_nobody() {
    let origin = origin(&Arc::default()).await;
    let (_sides, ways) = ways().await;
    for (way, address) in ways {
        for (path, expected) in [("/behind", 200), ("/204", 204), ("/304", 304), ("/101", 502)] {
            for _ in 0..3 {
                let text = ask(address, &origin.url(path)).await;
                assert_eq!(status(&text), expected, "{way}, {path}: {text}");
                assert!(!text.contains("poison"), "{way}, {path}: {text}");
                let good = get(address, &origin.url("/good"), "").await;
                assert_eq!((good.status, &*good.text()), (200, "good"), "{way}, {path}");
            }
        }
        // A change that was asked for by one is nobody else's, on the same connection neither.
        let mut stream = TcpStream::connect(address).await.unwrap();
        for path in ["/good", "/good"] {
            let ask = format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", origin.url(path));
            stream.write_all(ask.as_bytes()).await.unwrap();
            assert!(read_until(&mut stream, "good").await.ends_with("good"), "{way}");
        }
    }
}

/// RFC 9112 §6.3: with both framings chunked counts, and the length goes no further.
#[tokio::test]
async fn an_answer_with_two_framings_comes_whole() {
    let origin = origin(&Arc::default()).await;
    let (_sides, ways) = ways().await;
    for (way, address) in ways {
        for path in ["/both", "/both-other"] {
            let answer = get(address, &origin.url(path), "").await;
            assert_eq!((answer.status, &*answer.text()), (200, "hello"), "{way}, {path}");
            assert!(!answer.has("content-length: 3") && !answer.has("content-length: 9"), "{way}");
        }
    }
}

#[tokio::test]
async fn what_is_no_answer_is_502_with_one_line() {
    let origin = origin(&Arc::default()).await;
    let (_sides, ways) = ways().await;
    for (way, address) in ways {
        for path in ["/status", "/nul", "/cr", "/fold", "/lengths", "/coding"] {
            let answer = Answer::parse(ask(address, &origin.url(path)).await.as_bytes());
            assert_eq!(answer.status, 502, "{way}, {path}: {}", answer.text());
            assert_eq!(answer.text().lines().count(), 1, "{way}, {path}: {}", answer.text());
            assert!(answer.head.contains("proxy-status: longwire; error="), "{}", answer.head);
            assert_eq!(get(address, &origin.url("/good"), "").await.text(), "good", "{way}");
        }
    }
}
