//! Choices for clients without an edge: what a gateway's store tells of them, and what outlives the
//! process.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::net::SocketAddr;
use std::path::PathBuf;

use common::origin::Origin;
use common::{Side, eventually, gateway, get, text_like};
use longwire_proxy::store::History;
use record::decision::{Direction, Entry};

/// A directory of its own for each test, gone at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("longwire-history-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    async fn gateway(&self) -> (Side, SocketAddr) {
        let settings = "http_listen = '127.0.0.1:0'\nrate_cap = '100 kbit/s'";
        let gateway = gateway(&format!("{settings}\nstore = '{}'", self.0.display())).await;
        let address = gateway.http.unwrap();
        (gateway, address)
    }

    /// All entries, once there are so many with what came of them.
    async fn entries(&self, count: usize) -> Vec<Entry> {
        let read = || {
            let all = History::open(&self.0).unwrap().last("", 100).unwrap().entries;
            all.into_iter().filter(|entry| entry.outcome.is_some()).collect::<Vec<_>>()
        };
        eventually(|| async { read().len() >= count }).await;
        read()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn a_choice_for_a_client_without_an_edge_is_reported_with_what_came_of_it() {
    let origin = Origin::start().await;
    let scratch = Scratch::new("told");
    let (_gateway, edgeless) = scratch.gateway().await;
    let url = origin.url("/text/30000");
    let answer = get(edgeless, &url, "Accept-Encoding: gzip\r\n").await;
    assert!(answer.has("content-encoding: gzip"), "{}", answer.head);
    let read = || History::open(&scratch.0).unwrap().last("", 9).unwrap().entries;
    eventually(|| async { read().iter().any(|entry| entry.request.is_some()) }).await;
    let entries = scratch.entries(1).await;
    let entry = &entries[0];
    let asked = entry.request.clone().unwrap();
    assert_eq!((asked.method.as_str(), asked.status), ("GET", Some(200)));
    assert_eq!((asked.target, asked.client.as_str()), (url, "127.0.0.1"));
    let (decision, outcome) = (entry.decision.as_ref().unwrap(), entry.outcome.as_ref().unwrap());
    assert!(decision.edgeless && entry.direction == Direction::Response);
    assert_eq!(decision.service, format!("http://{}", origin.address));
    assert_eq!((decision.body_bytes, outcome.body_bytes), (30_000, 30_000));
    assert!(entry.encoding.starts_with("deflate:"), "{}", entry.encoding);
    assert_eq!(outcome.encoding, entry.encoding);
    assert!(decision.candidates.iter().any(|one| one.encoding == "identity"));
    let refused = |name: &str, why: &str| {
        decision.forbidden.iter().any(|one| one.encoding == name && one.why.contains(why))
    };
    assert!(refused("brotli:5", "the client does not take it"), "{:?}", decision.forbidden);
    assert!(refused("dcz:19", "the client does not take it"), "{:?}", decision.forbidden);
    let (expected, actual, split) = (outcome.expected, outcome.actual, outcome.split);
    assert_eq!(expected, decision.expected);
    assert_eq!(actual.bytes, answer.body.len() as u64);
    assert!(actual.encode_s > 0.0 && actual.network_s > 0.0);
    // Nobody tells how long the client decodes.
    assert_eq!(actual.decode_s, expected.decode_s);
    let sum = split.encode_s + split.decode_s + split.network_s + split.size_s;
    let off = actual.total_s() - expected.total_s();
    assert!((sum - off).abs() < 1e-4 * (1.0 + off.abs()), "{sum} against {off}");
}

#[tokio::test]
async fn an_answer_that_goes_as_it_is_and_one_in_blocks_are_reported_too() {
    let origin = Origin::start().await;
    let scratch = Scratch::new("blocks");
    let (_gateway, edgeless) = scratch.gateway().await;
    let mut noise = vec![0; 20_000];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut noise).unwrap();
    let gzip = "Accept-Encoding: gzip\r\n";
    let long = get(edgeless, &origin.url("/text/300000"), gzip).await;
    assert!(long.has("content-encoding: gzip"));
    let entries = scratch.entries(1).await;
    let outcome = entries[0].outcome.as_ref().unwrap();
    assert_eq!((outcome.body_bytes, outcome.actual.bytes), (300_000, long.body.len() as u64));
    // What no model is asked about is told without one.
    let url = origin.url("/echo");
    common::send(edgeless, "POST", &url, gzip, &noise).await;
    let last = || History::open(&scratch.0).unwrap().last("", 100).unwrap().entries.pop().unwrap();
    eventually(|| async { last().encoding == "identity" }).await;
    assert!(last().decision.is_none());
}

#[tokio::test]
async fn what_was_learned_of_answers_outlives_the_process() {
    let origin = Origin::start().await;
    let scratch = Scratch::new("learned");
    let url = origin.url("/text/40000");
    let gzip = "Accept-Encoding: gzip\r\n";
    let off = |entry: &Entry| {
        let outcome = entry.outcome.as_ref().unwrap();
        (outcome.expected.bytes as f64 / outcome.actual.bytes as f64).ln().abs()
    };
    let (gateway, edgeless) = scratch.gateway().await;
    for count in 1..=6 {
        let answer = get(edgeless, &url, gzip).await;
        assert_eq!(answer.status, 200);
        scratch.entries(count).await;
    }
    gateway.stop().await;
    let (gateway, edgeless) = scratch.gateway().await;
    assert!(get(edgeless, &url, gzip).await.body.len() < text_like(40_000, 7).len());
    let entries = scratch.entries(7).await;
    let (first, after) = (off(&entries[0]), off(&entries[6]));
    assert!(after < first / 2.0, "off by {first} when new, by {after} after a restart");
    gateway.stop().await;
}
