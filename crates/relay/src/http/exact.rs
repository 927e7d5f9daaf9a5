//! Why every byte of a body has to come back, by the fields of its head.

use proto::bhttp;

/// A field whose name has any of these may vouch for the bytes.
const VOUCHING: [&str; 7] = ["digest", "signature", "hmac", "checksum", "md5", "hash", "sha"];
/// What proves an identity and leaves the bytes alone (RFC 7617, RFC 6750, RFC 4559).
const SCHEMES: [&str; 4] = ["basic", "bearer", "negotiate", "ntlm"];

const SIGNED: &str = "it may be signed or encrypted";

/// The reason, if a field gives one.
pub(crate) fn reason(fields: &bhttp::Fields) -> Option<&'static str> {
    fields.iter().find_map(|(name, value)| by_field(&name.to_ascii_lowercase(), value))
}

/// Why a field wants every byte.
fn by_field(name: &[u8], value: &[u8]) -> Option<&'static str> {
    let text = || String::from_utf8_lossy(value).trim().to_ascii_lowercase();
    match name {
        b"etag" => (!text().starts_with("w/")).then_some("its ETag is of its bytes"),
        b"content-range" => Some("a part of something"),
        b"accept-ranges" => (text() != "none").then_some("its parts may be asked for"),
        b"cache-control" => text().contains("no-transform").then_some("its sender forbids changes"),
        b"authorization" => {
            let value = text();
            let scheme = value.split(' ').next().unwrap_or_default();
            (!SCHEMES.contains(&scheme)).then_some("a field may vouch for its bytes")
        }
        // RFC 9842 §2.2: it is known by the hash of its bytes.
        b"use-as-dictionary" => Some("others are told by its bytes"),
        b"content-type" => by_type(&text()),
        _ => vouches(name).then_some("a field vouches for its bytes"),
    }
}

/// Whether a name in lower case has a part that says so. It is asked of every field: most letters
/// begin none of these parts.
fn vouches(name: &[u8]) -> bool {
    let begins = |at: &usize| VOUCHING.iter().any(|part| name[*at..].starts_with(part.as_bytes()));
    let may_begin = |at: &usize| matches!(name[*at], b'd' | b's' | b'h' | b'c' | b'm');
    (0..name.len()).filter(may_begin).any(|at| begins(&at))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_vouches_by_any_part_wherever_it_stands() {
        for part in VOUCHING {
            for name in
                [part.to_owned(), format!("x-{part}"), format!("{part}-x"), format!("a{part}b")]
            {
                assert!(vouches(name.as_bytes()), "{name}");
            }
        }
        for name in ["", "host", "server", "date", "content-length", "via", "md", "accept"] {
            assert!(!vouches(name.as_bytes()), "{name}");
        }
    }
}
