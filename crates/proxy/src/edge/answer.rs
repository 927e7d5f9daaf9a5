//! What a client gets when there is no answer of an origin: a status, one line, Proxy-Status.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};
use relay::{Cause, CauseKind};

use crate::access::Refused;
use crate::flow::{AnyBody, BoxError};

/// After so many seconds what is full may have room again (RFC 9110 §10.2.3): places come back as
/// answers end.
const RETRY_AFTER_S: &str = "2";

/// An answer of our own.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// Error type of Proxy-Status (RFC 9209 §2.3).
    pub(crate) error: &'static str,
    /// One line.
    pub(crate) reason: String,
}

impl From<Cause> for Refusal {
    fn from(cause: Cause) -> Self {
        let (status, error) = match cause.kind {
            CauseKind::OriginUnreachable => (502, "destination_unavailable"),
            CauseKind::OriginFailed | CauseKind::ClientGone => (502, "http_protocol_error"),
            CauseKind::OriginTimeout | CauseKind::Expired => (504, "http_response_timeout"),
            CauseKind::Forbidden => (403, "http_request_denied"),
            CauseKind::GatewayUnreachable => (504, "connection_timeout"),
            CauseKind::NotForwarded
            | CauseKind::OutcomeUnknown
            | CauseKind::AnswerLost
            | CauseKind::AnsweredEarly
            | CauseKind::CarrierLost => (502, "connection_terminated"),
            CauseKind::Corrupt => (502, "http_response_transfer_coding"),
            CauseKind::Limit | CauseKind::Superseded => (503, "connection_limit_reached"),
            CauseKind::ShuttingDown => (503, "connection_refused"),
            CauseKind::BadRequest => (400, "http_request_error"),
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
        Self { status, error, reason: cause.reason }
    }
}

impl Refusal {
    pub(crate) fn into_response(self) -> Response<AnyBody> {
        let text = format!("longwire: {}\n", self.reason);
        let full = Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync();
        let mut response = Response::new(full);
        *response.status_mut() = self.status;
        let refused = Refused { error: self.error, reason: self.reason.clone() };
        response.extensions_mut().insert(refused);
        let headers = response.headers_mut();
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, plain);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
        }
        // A structured string (RFC 9651 §3.3.3) is printable ASCII with quotes escaped.
        let ascii = |c: char| if (' '..='~').contains(&c) { c } else { '?' };
        let details: String = self.reason.chars().map(ascii).collect();
        let details = details.replace('\\', "\\\\").replace('"', "\\\"");
        let status = format!("longwire; error={}; details=\"{details}\"", self.error);
        if let Ok(value) = HeaderValue::try_from(status) {
            headers.insert("proxy-status", value);
        }
        response
    }
}

/// A body towards a client which notes that it broke off, so that the connection is reset: a client
/// of HTTP/1.0 could not tell a close from the end.
pub(crate) struct ClientBody {
    inner: AnyBody,
    broken: Arc<AtomicBool>,
}

impl ClientBody {
    pub(crate) fn new(inner: AnyBody, broken: Arc<AtomicBool>) -> Self {
        Self { inner, broken }
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        if matches!(frame, Some(Err(_))) {
            self.broken.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_a_status_and_one_line() {
        for kind in CauseKind::ALL {
            let reason = "\r\n\u{1b}\u{85}\u{2028}\u{202e}é \"quoted\" \\".to_owned();
            let response = Refusal::from(Cause { kind, reason }).into_response();
            assert!(response.status().as_u16() >= 400);
            let status = response.headers().get("proxy-status").unwrap().to_str().unwrap();
            let details = "details=\"??????? \\\"quoted\\\" \\\\\"";
            assert!(status.ends_with(details), "{status}");
        }
    }
}
