//! What all connections of a server share.

use bytes::Bytes;
use http::Response;
use http::request::Parts;

use super::route;
use crate::server::{self, Settings};
use crate::tracks::Catalogue;

/// The files and how to serve them.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) catalogue: Catalogue,
    pub(super) settings: Settings,
}

impl Site {
    pub(super) fn new(seed: u64, settings: Settings) -> Self {
        Self { catalogue: Catalogue::new(seed), settings }
    }
}

impl server::Site for Site {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn wants_body(&self, request: &Parts) -> bool {
        route::wants_body(request)
    }

    fn answer(&self, request: &Parts, body: &[u8]) -> Response<Bytes> {
        route::answer(self, request, body)
    }
}
