//! Media types that codecs apply to, as [`Properties::media`](crate::Properties) lists them.

/// XML, by the names it goes under (RFC 7303 §9).
pub const XML: &[&str] = &["application/xml", "text/xml", "*+xml"];
/// JSON, by the names it goes under (RFC 8259 §11, RFC 6839 §3.1).
pub const JSON: &[&str] = &["application/json", "*+json"];
/// Any bytes.
pub const ANY: &[&str] = &["*/*"];
