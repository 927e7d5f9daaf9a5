//! Answers of HTTP: whole ones and streams of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use serde_json::Value;

use super::events::Pieces;
use crate::messaging::forms::Form;
use crate::messaging::refusal::{Reason, Refusal};

/// The content of an answer.
pub(super) enum Content {
    /// All of it.
    Whole(Option<Bytes>),
    /// Events as they come.
    Events(Pieces),
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => {
                events.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Events(_) => SizeHint::default(),
        }
    }
}

/// An answer without content.
pub(super) fn empty(status: StatusCode) -> Response<Content> {
    let mut response = Response::new(Content::Whole(None));
    *response.status_mut() = status;
    response
}

/// An answer with content.
pub(super) fn with_type(
    status: StatusCode,
    media_type: &'static str,
    bytes: impl Into<Bytes>,
) -> Response<Content> {
    let bytes = bytes.into();
    let bytes = (!bytes.is_empty()).then_some(bytes);
    let mut response = Response::new(Content::Whole(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// An answer with JSON.
pub(super) fn json(status: StatusCode, value: &Value) -> Response<Content> {
    with_type(status, Form::Json.media_type(), format!("{value}\n"))
}

/// A message that was accepted.
pub(super) fn accepted(id: &str, is_new: bool) -> Response<Content> {
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = json(status, &serde_json::json!({ "id": id }));
    // An id has no character that a URL would need escaped.
    if let Ok(location) = HeaderValue::from_str(&format!("/outbox/{id}")) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// A stream of events.
pub(super) fn events(pieces: Pieces) -> Response<Content> {
    let mut response = Response::new(Content::Events(pieces));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A refusal: its line for a person.
pub(super) fn refusal(refusal: &Refusal, allow: Option<&str>) -> Response<Content> {
    let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::BAD_REQUEST);
    let line = format!("{}\n", refusal.line);
    let mut response = with_type(status, "text/plain; charset=utf-8", line);
    let headers = response.headers_mut();
    if refusal.reason == Reason::Full {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
    }
    if let Some(allow) = allow.and_then(|allow| HeaderValue::from_str(allow).ok()) {
        headers.insert(ALLOW, allow);
    }
    response
}
