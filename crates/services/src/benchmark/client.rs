//! The measuring client of NAM: answers of queries, one after another, over and over.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use super::{Form, RUN_QUERY};
use crate::client::{Answer, Item, Plan, Target};
use crate::http::MediaType;
use crate::tracks::soap::Version;

/// What to ask of the service at `base`: these queries (numbers from 1 to 22) in their order, again
/// from the first until there are `count`.
#[must_use]
pub fn plan(base: &Target, form: Form, queries: &[usize], count: usize) -> Plan {
    let items = queries.iter().cycle().take(count).map(|&number| item(base, form, number));
    Plan { url: base.to_string(), api: form.name().into(), items: items.collect() }
}

fn item(base: &Target, form: Form, number: usize) -> Item {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static(form.media_type()));
    let (method, path, body) = match form {
        Form::Compact | Form::Pretty => {
            (Method::GET, format!("/q/{number}/{}", form.name()), Bytes::new())
        }
        Form::Soap => {
            let media_type = HeaderValue::from_static("text/xml; charset=utf-8");
            headers.insert(CONTENT_TYPE, media_type);
            if let Ok(action) = HeaderValue::from_str(&format!("\"{}\"", RUN_QUERY.action)) {
                headers.insert(HeaderName::from_static("soapaction"), action);
            }
            let body = RUN_QUERY.request(Version::Soap11, number);
            (Method::POST, "/soap".to_owned(), Bytes::from(body))
        }
    };
    Item {
        name: format!("query {number}"),
        method,
        target: base.join(&path),
        headers,
        body,
        // Tens of megabytes: counted only.
        keep: false,
        check: Box::new(move |answer| check(form, answer)),
    }
}

fn check(form: Form, answer: &Answer) -> Result<(), String> {
    if answer.status != StatusCode::OK {
        return Err(format!("status {}", answer.status));
    }
    let content_type = answer.headers.get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = MediaType::parse(content_type).map(|media| media.essence);
    match essence.as_deref() == Some(form.media_type()) {
        true => Ok(()),
        false => Err(format!("content type '{content_type}' instead of {}", form.media_type())),
    }
}
