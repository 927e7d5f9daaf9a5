//! What answers cost, as counted by what the models expect of encoders.

use std::time::{Duration, Instant};

use decide::estimate::Estimate;
use http::header::{self, HeaderMap, HeaderValue};
use proto::profile::Decoding;

use super::super::budget::Budgets;
use super::*;
use crate::seats::Source;

/// JSON of 1.39 MB, of which the first block is at hand.
const BYTES: u64 = 1_390_000;

fn head() -> Vec<u8> {
    let row = |n: u32| format!("{{\"id\":{n},\"name\":\"track {}\",\"lat\":{}}},", n * 7, n * 131);
    (0..1200).flat_map(|n| row(n).into_bytes()).collect()
}

fn path(rate_bps: f64, rtt_s: f64) -> Path {
    Estimate::new(rate_bps, Duration::from_secs_f64(rtt_s), None).path()
}

/// Seconds of a processor that so many answers are expected to take, and how many were refused.
fn cost(
    accept: &'static str,
    answers: usize,
    told: Option<(&Path, &Model)>,
    take: &dyn Fn(f64) -> bool,
) -> (f64, usize) {
    let chooser = Chooser::new(&relay::Config::new(relay::Role::Gateway, 1));
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(accept));
    let (accepted, head) = (Accepted::of(&headers), head());
    let usual = path(1e6, 0.1);
    let content_type = Some("application/json");
    let (mut seconds, mut refused) = (0.0, 0);
    for _ in 0..answers {
        let choice = chooser.choose(&Facts {
            accepted: &accepted,
            model: told.map(|(_, model)| model),
            service: None,
            class: ["http://a", "/x"],
            path: told.map_or(&usual, |(path, _)| path),
            usual: &usual,
            affords: take,
            link: told::Link::default(),
            message: Message {
                content_type,
                coded: false,
                tunnel: false,
                head: &head,
                body_bytes: Some(BYTES),
            },
            dictionary: None,
        });
        let weighed = choice.weighed.as_ref().unwrap();
        let beside = choice.beside.as_ref().map(|beside| beside.arm);
        let of = |arm| weighed.expected(arm).map_or(0.0, |one| one.expected.encode_s);
        seconds += of(choice.arm) + beside.map_or(0.0, of);
        refused += usize::from(choice.reason == USED_UP);
    }
    (seconds, refused)
}

/// A client that decodes in no time what takes longest to encode, and all else slowly.
fn steering() -> Model {
    let decoding = |codec| {
        let per_byte_s = if codec == 3 { 0.0 } else { 1e-4 };
        Decoding { codec, fixed_s: 0.0, per_byte_s }
    };
    Model { encodings: (1..=3).map(decoding).collect() }
}

#[test]
fn a_client_that_says_it_is_slow_costs_little_more_than_one_that_says_nothing() {
    let slow = path(1000.0, 600.0);
    // The attack is one: believed, it costs many times as much.
    let anybody = cost("zstd", 100, None, &|_| true).0;
    let believed = cost("zstd", 100, Some((&slow, &Model::default())), &|_| true).0;
    assert!(believed > 5.0 * anybody, "{believed} s for {anybody} s");
    for (accept, model) in [("zstd", Model::default()), ("br, zstd, gzip", steering())] {
        let anybody = cost(accept, 100, None, &|_| true).0;
        let (budgets, now) = (Budgets::default(), Instant::now());
        let client = Source::of([10, 0, 0, 1].into());
        let take = |seconds| budgets.take(now, client, seconds);
        let (bounded, refused) = cost(accept, 100, Some((&slow, &model)), &take);
        let what = format!("{accept}: {bounded} s for {anybody} s, {refused} refused");
        assert!(bounded <= anybody * 1.2 + 1.0, "{what}");
        assert!(accept != "zstd" || refused > 50, "{what}");
    }
}

#[test]
fn who_is_as_slow_as_he_says_is_believed() {
    // At 20 kbit/s even a fifth of it takes two minutes, and what it takes to code it is back.
    let (slow, model) = (path(20_000.0, 0.6), Model::default());
    let (budgets, now) = (Budgets::default(), Instant::now());
    let client = Source::of([10, 0, 0, 2].into());
    for answer in 0..20 {
        let now = now + Duration::from_secs(100 * answer);
        let take = |seconds| budgets.take(now, client, seconds);
        assert_eq!(cost("zstd", 1, Some((&slow, &model)), &take).1, 0, "answer {answer}");
    }
}
