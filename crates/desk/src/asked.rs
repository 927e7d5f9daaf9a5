//! Requests.

use http::Method;
use serde_json::Value;

/// A request that was admitted.
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) last_event: Option<String>,
    pub(crate) body: Value,
}

impl Asked {
    /// HEAD asks what GET would.
    pub(crate) fn method(&self) -> &str {
        if self.method == Method::HEAD { "GET" } else { self.method.as_str() }
    }
}
