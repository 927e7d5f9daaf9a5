//! Peers authenticate: pinned keys, and clear words when they do not fit.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::time::Duration;

use common::keys::{Dir, with};
use common::origin::Origin;
use common::{edge, gateway, get, raw, read_all, send, text_like};
use longwire_proxy::keys::Generated;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

#[tokio::test]
async fn sides_that_know_each_other_talk() {
    let dir = Dir::new("known");
    let (ours, theirs, other) = (dir.key("edge-1"), dir.key("gateway"), dir.key("edge-2"));
    // A peer file may list several.
    let both = dir.0.join("edges.pub");
    let list = |key: &Generated| std::fs::read_to_string(&key.public).unwrap();
    std::fs::write(&both, format!("# edges\n{}{}", list(&other), list(&ours))).unwrap();
    let admin = "admin = '127.0.0.1:0'\n";
    let gateway = gateway(&format!("{admin}{}", with(&theirs, &both))).await;
    let settings = format!("gateway = '{}'\n{}", gateway.address, with(&ours, &theirs.public));
    let edge = edge(&settings).await;
    let origin = Origin::start().await;
    let body = text_like(300_000, 1);
    assert!(send(edge.address, "POST", &origin.url("/echo"), "", &body).await.body == body);
    let ask = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let outcome = async {
        loop {
            let page = String::from_utf8(raw(gateway.admin.unwrap(), ask).await.0).unwrap();
            if page.contains("longwire_outcomes_total{service=\"http://127.0.0.1:") {
                return page;
            }
        }
    };
    let metrics = tokio::time::timeout(Duration::from_secs(20), outcome).await.unwrap();
    for name in ["carrier_rtt_seconds", "link_rate_bytes_per_second", "link_observations"] {
        let sample = format!("longwire_{name}{{peer=\"edge-1\",carrier=");
        assert!(metrics.contains(&sample), "{sample}{metrics}");
    }
}

#[tokio::test]
async fn a_gateway_with_another_key_is_not_used() {
    let dir = Dir::new("wrong-gateway");
    let (ours, theirs, expected) = (dir.key("edge"), dir.key("gateway"), dir.key("expected"));
    let gateway = gateway(&with(&theirs, &ours.public)).await;
    let keys = with(&ours, &expected.public);
    let timeout = "connect_timeout = '500 ms'\n";
    let edge = edge(&format!("gateway = '{}'\n{timeout}{keys}", gateway.address)).await;
    let answer = get(edge.address, "http://127.0.0.1:1/x", "").await;
    assert_eq!(answer.status, 504, "{}", answer.text());
}

#[tokio::test]
async fn an_edge_with_another_key_is_not_served() {
    let dir = Dir::new("wrong-edge");
    let (ours, theirs, expected) = (dir.key("edge"), dir.key("gateway"), dir.key("expected"));
    let gateway = gateway(&with(&theirs, &expected.public)).await;
    let keys = with(&ours, &theirs.public);
    let timeout = "connect_timeout = '500 ms'\n";
    let edge = edge(&format!("gateway = '{}'\n{timeout}{keys}", gateway.address)).await;
    let answer = get(edge.address, "http://127.0.0.1:1/x", "").await;
    assert!((500..600).contains(&answer.status), "{}", answer.text());
}

#[tokio::test]
async fn a_plain_client_of_a_gateway_with_keys_gets_nothing() {
    let dir = Dir::new("plain");
    let (ours, theirs) = (dir.key("edge"), dir.key("gateway"));
    let gateway = gateway(&with(&theirs, &ours.public)).await;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let (bytes, _) = read_all(&mut stream).await;
    // At most a TLS alert (RFC 8446 §6): record type 21.
    assert!(bytes.first().is_none_or(|first| *first == 21), "{bytes:?}");
}
