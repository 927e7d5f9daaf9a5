//! What a server is told apart by: what it answers.

use std::fmt;

use bytes::Bytes;
use http::Response;
use http::request::Parts;

use super::Settings;

/// A service without a socket in sight.
pub(crate) trait Site: fmt::Debug + Send + Sync {
    /// How to serve it.
    fn settings(&self) -> &Settings;

    /// Whether the answer depends on the request's content.
    fn wants_body(&self, request: &Parts) -> bool;

    /// Answers one request. `body` is empty unless it was wanted.
    fn answer(&self, request: &Parts, body: &[u8]) -> Response<Bytes>;
}
