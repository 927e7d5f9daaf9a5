//! A broker that speaks WS-Notification gets any requests, and consumers answer as they like:
//! nothing panics, each request has one answer, and what is sent is well-formed.
#![no_main]

use std::time::Duration;

use broker::{Asked, Broker, Input, MqttSettings, Output, Posted, Settings, Tree, WsnSettings};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

/// Requests of one input.
const MAX_REQUESTS: usize = 32;
/// Outputs of one request.
const MAX_OUTPUTS: usize = 10_000;

/// The content of a body in an envelope of either version, with the prefixes that people use.
fn enveloped(content: &str, is_12: bool) -> String {
    let soap = if is_12 {
        "http://www.w3.org/2003/05/soap-envelope"
    } else {
        "http://schemas.xmlsoap.org/soap/envelope/"
    };
    format!(
        "<s:Envelope xmlns:s='{soap}' xmlns:n='http://docs.oasis-open.org/wsn/b-2' \
         xmlns:b='http://docs.oasis-open.org/wsn/br-2' \
         xmlns:a='http://www.w3.org/2005/08/addressing' xmlns:l='urn:longwire:topics' \
         xmlns:rp='http://docs.oasis-open.org/wsrf/rp-2'><s:Body>{content}</s:Body></s:Envelope>"
    )
}

/// Does what the broker says: consumers answer with a status; how many answers there were.
fn drain(broker: &mut Broker, now: Duration, status: Option<u16>) -> usize {
    let mut answers = 0;
    let mut posts = Vec::new();
    for _ in 0..MAX_OUTPUTS {
        match broker.poll_output() {
            Some(Output::Post(post)) => posts.push(post),
            Some(Output::Answer(answer)) => {
                let text = std::str::from_utf8(&answer.body).expect("answers are in UTF-8");
                let is_xml = answer.content_type.is_some_and(|kind| kind.contains("xml"));
                assert!(!is_xml || Tree::parse(text).is_ok(), "{text}");
                answers += 1;
            }
            Some(_) => {}
            None => match posts.pop() {
                Some(post) => {
                    let text = std::str::from_utf8(&post.body).expect("messages are in UTF-8");
                    assert!(Tree::parse(text).is_ok(), "{text}");
                    let body = Bytes::new();
                    broker.handle_input(now, Input::Posted(Posted { id: post.id, status, body }));
                }
                None => return answers,
            },
        }
    }
    answers
}

fuzz_target!(|data: &[u8]| {
    let mut broker = Broker::new(Settings::default(), MqttSettings::default());
    let mut now = Duration::from_secs(1);
    let default_topic = Some("raw".to_owned());
    broker.serve_wsn(now, WsnSettings { default_topic, ..WsnSettings::default() });
    for (at, request) in data.split(|byte| *byte == 0).take(MAX_REQUESTS).enumerate() {
        let Some((how, rest)) = request.split_first() else { continue };
        let is_12 = how & 1 > 0;
        let (target, body) = match rest.split(|byte| *byte == b'\n').next() {
            Some(line) if how & 2 > 0 => {
                let rest = rest.get(line.len() + 1..).unwrap_or(b"");
                (String::from_utf8_lossy(line).into_owned(), rest)
            }
            _ => ("/".to_owned(), rest),
        };
        let body = match std::str::from_utf8(body) {
            Ok(content) if how & 4 == 0 => enveloped(content, is_12).into_bytes(),
            _ => body.to_vec(),
        };
        let kind = if is_12 { "application/soap+xml" } else { "text/xml" };
        let asked = Asked {
            id: at as u64,
            is_get: how & 8 > 0,
            is_secure: how & 128 > 0,
            target,
            content_type: Some(kind.to_owned()),
            body: body.into(),
            user: (how & 16 > 0).then(|| "ann".into()),
        };
        broker.handle_input(now, Input::Asked(asked));
        let status = [Some(202), None, Some(500), Some(503)][usize::from(how >> 5 & 3)];
        assert_eq!(drain(&mut broker, now, status), 1);
        now += Duration::from_millis(700);
        broker.handle_input(now, Input::Wake);
        drain(&mut broker, now, status);
    }
});
