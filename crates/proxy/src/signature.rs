//! Signatures that cover fields of a request: what they cover is left as it was sent.

use http::header::{self, HeaderMap, HeaderName};

/// HTTP Message Signatures (RFC 9421 §4.1).
const SIGNATURE_INPUT: HeaderName = HeaderName::from_static("signature-input");
/// The field that the gateway would write itself.
const CODING: &str = "accept-encoding";

/// Whether a signature covers Accept-Encoding: of AWS (SigV4 and its kin, also in the query), of
/// drafts before RFC 9421 (`headers="..."`), or of RFC 9421.
pub(crate) fn covers_coding(headers: &HeaderMap) -> bool {
    let names = |value: &str| value.to_ascii_lowercase().contains(CODING);
    let texts = |name: &HeaderName| {
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).any(names)
    };
    texts(&SIGNATURE_INPUT)
        || texts(&HeaderName::from_static("signature"))
        || texts(&header::AUTHORIZATION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_over_the_coding_is_seen() {
        let with = |name: &'static str, value: &'static str| {
            let value = header::HeaderValue::from_static(value);
            HeaderMap::from_iter([(HeaderName::from_static(name), value)])
        };
        for (name, value) in [
            (
                "authorization",
                "AWS4-HMAC-SHA256 Credential=a, SignedHeaders=accept-encoding;host, Signature=0",
            ),
            ("authorization", "Signature keyId=\"a\",headers=\"date Accept-Encoding\""),
            ("signature-input", "sig1=(\"@method\" \"accept-encoding\");created=1"),
        ] {
            assert!(covers_coding(&with(name, value)), "{value}");
        }
        for (name, value) in [
            ("authorization", "AWS4-HMAC-SHA256 Credential=a, SignedHeaders=host, Signature=0"),
            ("signature-input", "sig1=(\"@method\");created=1"),
            ("authorization", "Bearer abc"),
            ("accept-encoding", "gzip"),
        ] {
            assert!(!covers_coding(&with(name, value)), "{value}");
        }
    }
}
