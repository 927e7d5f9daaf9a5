//! Answers, and what each of them says to the browser.

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use serde_json::Value;
use web::assets::Asset;
use web::page;

use crate::body::Content;
use crate::problem::Problem;

/// An answer without the fields that all have.
pub(crate) struct Answer {
    status: StatusCode,
    kind: &'static str,
    content: Content,
    pub(crate) extra: Vec<(HeaderName, HeaderValue)>,
}

impl Answer {
    pub(crate) fn new(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Self {
        Self { status, kind, content: Content::Whole(Some(text.into())), extra: Vec::new() }
    }

    pub(crate) fn json(facts: &Value) -> Self {
        Self::new(StatusCode::OK, "application/json", facts.to_string())
    }

    pub(crate) fn html(text: String) -> Self {
        Self::new(StatusCode::OK, "text/html; charset=utf-8", text)
    }

    /// A file to be saved under a name.
    pub(crate) fn file(kind: &'static str, text: String, name: &'static str) -> Self {
        let mut answer = Self::new(StatusCode::OK, kind, text);
        if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
            answer.extra.push((header::CONTENT_DISPOSITION, value));
        }
        answer
    }

    /// A page that was made elsewhere and has its style in itself: nothing in it runs, and it has
    /// no part in this origin.
    pub(crate) fn report(text: Vec<u8>) -> Self {
        const POLICY: &str =
            "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:";
        let mut answer = Self::new(StatusCode::OK, "text/html; charset=utf-8", text);
        answer.extra.push((header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)));
        answer
    }

    pub(crate) fn stream(content: Content) -> Self {
        let kind = "text/event-stream";
        Self { status: StatusCode::OK, kind, content, extra: Vec::new() }
    }

    pub(crate) fn asset(asset: &'static Asset) -> Self {
        let mut answer = Self::new(StatusCode::OK, asset.kind, asset.bytes);
        let forever = HeaderValue::from_static("private, max-age=31536000, immutable");
        answer.extra.push((header::CACHE_CONTROL, forever));
        answer
    }

    pub(crate) fn problem(problem: &Problem) -> Self {
        let text = problem.to_json().to_string();
        Self::new(problem.status, "application/problem+json", text)
    }

    pub(crate) fn refusal(problem: &Problem) -> Self {
        let title = problem.status.canonical_reason().unwrap_or("Refused");
        let html = page::refusal(title, &problem.detail);
        Self { status: problem.status, ..Self::html(html) }
    }

    pub(crate) fn into_response(self) -> Response<Content> {
        let mut response = Response::new(self.content);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        for (name, value) in FIELDS {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        for (name, value) in self.extra {
            headers.insert(name, value);
        }
        response
    }
}

/// What each answer says to the browser: nothing from elsewhere, nothing to elsewhere, in nobody
/// else's frame or window, kept by nobody.
const FIELDS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    ("cache-control", "no-store"),
];
