//! Why every byte of a body has to come back, by the fields of its head.

use proto::bhttp;

/// A field whose name has any of these may vouch for the bytes.
const VOUCHING: [&str; 7] = ["digest", "signature", "hmac", "checksum", "md5", "hash", "sha"];
/// What proves an identity and leaves the bytes alone (RFC 7617, RFC 6750, RFC 4559).
const SCHEMES: [&str; 4] = ["basic", "bearer", "negotiate", "ntlm"];

const SIGNED: &str = "it may be signed or encrypted";

/// The reason, if a field gives one.
pub(crate) fn reason(fields: &bhttp::Fields) -> Option<&'static str> {
    fields.iter().find_map(|(name, value)| {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        by_field(&name, String::from_utf8_lossy(value).trim())
    })
}

/// Why a field wants every byte.
fn by_field(name: &str, value: &str) -> Option<&'static str> {
    let value = value.to_ascii_lowercase();
    match name {
        "etag" => (!value.starts_with("w/")).then_some("its ETag is of its bytes"),
        "content-range" => Some("a part of something"),
        "accept-ranges" => (value != "none").then_some("its parts may be asked for"),
        "cache-control" => value.contains("no-transform").then_some("its sender forbids changes"),
        "authorization" => {
            let scheme = value.split(' ').next().unwrap_or_default();
            (!SCHEMES.contains(&scheme)).then_some("a field may vouch for its bytes")
        }
        // RFC 9842 §2.2: it is known by the hash of its bytes.
        "use-as-dictionary" => Some("others are told by its bytes"),
        "content-type" => by_type(&value),
        _ => VOUCHING
            .iter()
            .any(|part| name.contains(part))
            .then_some("a field vouches for its bytes"),
    }
}

fn by_type(value: &str) -> Option<&'static str> {
    let mut parts = value.split(';').map(str::trim);
    if parts.next().is_some_and(|media| media.contains("jose")) {
        return Some(SIGNED);
    }
    let charset = parts.find_map(|part| part.strip_prefix("charset="));
    let is_other = charset.is_some_and(|charset| charset.trim_matches('"') != "utf-8");
    is_other.then_some("its text is not in UTF-8")
}
