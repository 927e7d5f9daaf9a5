//! A gateway that ends while its last bytes are on their way over a slow link.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::time::Duration;

use bytes::BytesMut;
use common::gateway;
use common::origin::Origin;
use proto::bhttp;
use proto::exchange::{Head, Part};
use proto::stream::{Frame, Hello, MAX_VERSION, MIN_VERSION};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

/// HELLO of an edge, and its request for a path of an origin.
fn asks(origin: &Origin, path: &str) -> Vec<u8> {
    let mut head = Vec::new();
    let authority = origin.address.to_string();
    let request = bhttp::Request {
        method: "GET".into(),
        scheme: "http".into(),
        authority: authority.into(),
        path: path.to_owned().into(),
        fields: Vec::new(),
    };
    request.encode(&mut head);
    let hello = Hello {
        version_min: MIN_VERSION,
        version_max: MAX_VERSION,
        instance: 7,
        initial_credit: 1 << 20,
        max_exchanges: 100,
        codecs: vec![0],
        max_window_log: 20,
        anew: true,
        parallel: false,
        counts: false,
        packs: false,
    };
    let head = Head { exchange: 1, codec: 0, window_log: 0, end: true, head: head.into() };
    let mut out = Vec::new();
    [Frame::Hello(hello), Frame::Part(Part::Head(head))]
        .iter()
        .for_each(|frame| frame.encode(&mut out));
    out
}

/// What an edge says meanwhile meets an end that has gone, which resets the connection, and with it
/// what was on its way.
#[tokio::test]
async fn a_gateway_that_ends_waits_for_its_last_bytes_while_they_get_on() {
    const LEN: usize = 24_000;
    let origin = Origin::start().await;
    let gateway = gateway("connect_timeout = '500 ms'\nencoding = 'identity'").await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(2048).unwrap();
    let mut stream = socket.connect(gateway.address).await.unwrap();
    stream.write_all(&asks(&origin, &format!("/text/{LEN}"))).await.unwrap();
    let (mut received, mut stopping) = (BytesMut::new(), None);
    let (mut gateway, mut body, mut ping) = (Some(gateway), 0, Vec::new());
    Frame::Ping(1).encode(&mut ping);
    loop {
        let mut piece = [0; 1000];
        let len = stream.read(&mut piece).await.expect("a reset");
        if len == 0 {
            break;
        }
        received.extend_from_slice(&piece[..len]);
        while let Some(frame) = Frame::take(&mut received).unwrap() {
            match frame {
                Frame::Part(Part::Head(_)) => {
                    stopping = gateway.take().map(|gateway| tokio::spawn(gateway.stop()));
                }
                Frame::Part(Part::Data(data)) => body += data.bytes.len(),
                _ => {}
            }
        }
        let over = stopping.as_ref().is_some_and(tokio::task::JoinHandle::is_finished);
        assert!(!over || body > LEN / 2, "the process would have ended at {body} bytes");
        // sleep: a slow link is what this is about.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let _ = stream.write_all(&ping).await;
    }
    assert_eq!(body, LEN);
    stopping.expect("an answer").await.unwrap();
}
