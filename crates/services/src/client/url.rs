//! The same URL over and over: for services of the user's own.

use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, HeaderMap, HeaderValue, LOCATION};

use super::{Answer, Item, Plan, Target};

/// `count` times GET of one URL. Any status of 200 to 299 is a success; content is only counted.
#[must_use]
pub fn plan(target: &Target, count: usize) -> Plan {
    let item = |number: usize| {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("*/*"))]);
        Item {
            name: format!("GET {number}"),
            method: Method::GET,
            target: target.clone(),
            headers,
            body: Bytes::new(),
            keep: false,
            check: Box::new(check),
        }
    };
    Plan { url: target.to_string(), api: "url".into(), items: (1..=count).map(item).collect() }
}

fn check(answer: &Answer) -> Result<(), String> {
    if answer.status.is_success() {
        return Ok(());
    }
    match answer.headers.get(LOCATION) {
        Some(location) if answer.status.is_redirection() => {
            let location = String::from_utf8_lossy(location.as_bytes());
            Err(format!("status {}: fetch {location} instead", answer.status))
        }
        _ => Err(format!("status {}", answer.status)),
    }
}
