//! A gateway that breaks the protocol between the two: the client is never given what is not whole.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use bytes::{Bytes, BytesMut};
use common::{Answer, Side, dechunk, edge, raw};
use proto::bhttp;
use proto::exchange::{Data, Head, Part};
use proto::stream::{Frame, Hello, MAX_VERSION, MIN_VERSION};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Answers every request with the frames that `answer` makes for its number.
async fn fake_gateway(answer: fn(u64) -> Vec<u8>) -> (Side, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(carry(stream, answer));
        }
    });
    let settings = "connect_timeout = '1 s'\nresponse_timeout = '1 s'";
    let settings = format!("gateway = '{address}'\n{settings}");
    (edge(&settings).await, task)
}

async fn carry(mut stream: TcpStream, answer: fn(u64) -> Vec<u8>) {
    let hello = Frame::Hello(Hello {
        version_min: MIN_VERSION,
        version_max: MAX_VERSION,
        instance: 7,
        initial_credit: 1 << 20,
        max_exchanges: 100,
        codecs: vec![0, 1, 2],
        max_window_log: 20,
        anew: true,
        parallel: false,
        counts: false,
        packs: false,
    });
    let mut out = Vec::new();
    hello.encode(&mut out);
    stream.write_all(&out).await.unwrap();
    let mut received = BytesMut::new();
    loop {
        while let Ok(Some(frame)) = Frame::take(&mut received) {
            if let Frame::Part(Part::Head(head)) = frame {
                let _ = stream.write_all(&answer(head.exchange)).await;
            }
        }
        if stream.read_buf(&mut received).await.unwrap_or(0) == 0 {
            return;
        }
    }
}

fn head(exchange: u64, codec: u64, end: bool, fields: &[(&'static str, &'static str)]) -> Frame {
    let field = |(name, value): &(&'static str, &'static str)| {
        (Bytes::from_static(name.as_bytes()), Bytes::from_static(value.as_bytes()))
    };
    let response = bhttp::Response { status: 200, fields: fields.iter().map(field).collect() };
    let mut head = Vec::new();
    response.encode(&mut head);
    let window_log = if codec == 0 { 0 } else { 20 };
    Frame::Part(Part::Head(Head { exchange, codec, window_log, end, head: head.into() }))
}

fn data(exchange: u64, decoded_len: u64, bytes: &[u8], end: bool) -> Frame {
    let bytes = Bytes::copy_from_slice(bytes);
    Frame::Part(Part::Data(Data {
        exchange,
        block_end: Some(decoded_len),
        uncoded: false,
        anew: false,
        end,
        padding: None,
        bytes,
    }))
}

fn encoded(frames: &[Frame]) -> Vec<u8> {
    let mut out = Vec::new();
    frames.iter().for_each(|frame| frame.encode(&mut out));
    out
}

/// A block as the named codec makes it.
fn coded(name: &str, text: &[u8]) -> Vec<u8> {
    let mut encoder = codec::Options::of(name).unwrap().encoder().unwrap();
    let mut out = Vec::new();
    encoder.encode(text, true, &mut out).unwrap();
    out
}

/// Either a 502 or an answer that visibly breaks off.
async fn assert_no_clean_answer(edge: &Side) {
    let request = "GET http://127.0.0.1:1/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let (bytes, _) = raw(edge.address, request).await;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    if head.starts_with("HTTP/1.1 200") {
        if head.contains("chunked") {
            assert!(dechunk(body.as_bytes()).is_none(), "{text}");
        } else {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            assert!(body.len() < length.unwrap().parse().unwrap(), "{text}");
        }
    } else {
        assert!(head.is_empty() || head.starts_with("HTTP/1.1 50"), "{text}");
    }
}

#[tokio::test]
async fn the_fake_gateway_itself_is_understood() {
    let (edge, _task) = fake_gateway(|exchange| {
        let text = b"hello, hello, hello, hello";
        let block = coded("deflate", text);
        encoded(&[head(exchange, 1, false, &[]), data(exchange, text.len() as u64, &block, true)])
    })
    .await;
    let request = "GET http://127.0.0.1:1/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answer = Answer::parse(&raw(edge.address, request).await.0);
    assert_eq!(answer.text(), "hello, hello, hello, hello");
}

#[tokio::test]
async fn a_corrupt_block_is_never_delivered() {
    for corrupt in [
        // Bytes that no codec makes.
        (|exchange| encoded(&[head(exchange, 2, false, &[]), data(exchange, 9, &[0xff; 40], true)]))
            as fn(u64) -> Vec<u8>,
        // Cut short.
        |exchange| {
            let block = coded("zstd", &common::text_like(5000, 1));
            let partial = &block[..block.len() / 2];
            encoded(&[head(exchange, 2, false, &[]), data(exchange, 5000, partial, true)])
        },
        // Longer than it says.
        |exchange| {
            let block = coded("deflate", &[b'x'; 60_000]);
            encoded(&[head(exchange, 1, false, &[]), data(exchange, 100, &block, true)])
        },
        // Shorter than it says, behind a good block.
        |exchange| {
            let block = coded("zstd", b"hello");
            let fields = [("content-length", "10")];
            encoded(&[
                head(exchange, 0, false, &fields),
                data(exchange, 5, b"hello", false),
                data(exchange, 5, &block[..3], true),
            ])
        },
        // A block of more than the protocol's bound.
        |exchange| {
            let block = coded("zstd", &[b'x'; 100]);
            encoded(&[head(exchange, 2, false, &[]), data(exchange, 1 << 30, &block, true)])
        },
        // A codec that does not exist.
        |exchange| encoded(&[head(exchange, 999, false, &[]), data(exchange, 1, b"x", true)]),
    ] {
        let (edge, _task) = fake_gateway(corrupt).await;
        assert_no_clean_answer(&edge).await;
    }
}

#[tokio::test]
async fn heads_that_would_mislead_the_client_are_refused() {
    for bad in [
        (|exchange| encoded(&[head(exchange, 0, false, &[("x", "a\r\nset-cookie: b=c")])]))
            as fn(u64) -> Vec<u8>,
        |exchange| encoded(&[head(exchange, 0, true, &[("content-length", "10")])]),
        |exchange| {
            encoded(&[
                head(exchange, 0, false, &[("content-length", "10")]),
                data(exchange, 2, b"ab", true),
            ])
        },
        |_| b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
        |_| vec![0xff; 100],
    ] {
        let (edge, _task) = fake_gateway(bad).await;
        assert_no_clean_answer(&edge).await;
    }
}

#[tokio::test]
async fn a_body_longer_than_its_length_goes_no_further() {
    let (edge, _task) = fake_gateway(|exchange| {
        encoded(&[
            head(exchange, 0, false, &[("content-length", "2")]),
            data(exchange, 30, b"abHTTP/1.1 200 OK\r\n\r\nsmuggled", true),
        ])
    })
    .await;
    let request = "GET http://127.0.0.1:1/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let (bytes, _) = raw(edge.address, request).await;
    let text = String::from_utf8_lossy(&bytes);
    assert!(!text.contains("smuggled"), "{text}");
}
