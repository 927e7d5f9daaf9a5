//! Fields of HTTP by which a client and a server name dictionaries (RFC 9842 §2).
//!
//! A server says of an answer that it may serve as one ([`encode_offer`], [`decode_offer`]); a
//! client that kept it names it in later requests by its SHA-256 ([`decode_available`]) and by what
//! the server called it ([`decode_id`]).

use crate::{Error, structured};

/// Name of the field of answers that may serve as a dictionary (RFC 9842 §2.1).
pub const OFFER_FIELD: &str = "use-as-dictionary";
/// Name of the field of requests with the hash of a dictionary that the client has (§2.2).
pub const AVAILABLE_FIELD: &str = "available-dictionary";
/// Name of the field of requests with what the server called it (§2.3).
pub const ID_FIELD: &str = "dictionary-id";
/// Most characters of a name (RFC 9842 §2.1.3).
pub const MAX_ID_CHARS: usize = 1024;
/// Longest value read, in bytes: every character of a name escaped, and some parameters.
const MAX_TEXT_BYTES: usize = 2 * MAX_ID_CHARS + 256;

/// The value of [`OFFER_FIELD`]: `pattern` says for which URLs, `id` how it is called here. None
/// for what is no plain path in which `*` stands for anything: other characters have a meaning in
/// URL patterns, or would have to be escaped.
#[must_use]
pub fn encode_offer(pattern: &str, id: &str) -> Option<String> {
    let is_path = pattern.starts_with('/') && !pattern.starts_with("//");
    // A segment of dots is another path once it is resolved.
    let is_dotted = pattern.split('/').any(|segment| matches!(segment, "." | ".."));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~*".contains(&byte);
    let is_name = !id.is_empty()
        && id.len() <= MAX_ID_CHARS
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (is_path && !is_dotted && is_name && pattern.bytes().all(is_plain))
        .then(|| format!("match=\"{pattern}\", id=\"{id}\""))
}

/// The pattern in [`OFFER_FIELD`], of an offer that a client may take up (RFC 9842 §2.1); it is not
/// read as a URL pattern. Errors: no dictionary, no pattern, one with a regular expression, a name
/// of more than [`MAX_ID_CHARS`], a type that is not `raw`.
pub fn decode_offer(value: &[u8]) -> Result<String, Error> {
    check_len(value)?;
    let members = structured::dictionary(value)?;
    let wrong = |what| Error::Peer { what, value: value.len() as u64 };
    let pattern = members.get(&b"match"[..]).ok_or_else(|| wrong("no pattern"))?;
    let pattern = structured::string(pattern)?;
    if pattern.is_empty() || pattern.contains('(') {
        return Err(wrong("no pattern that a client uses"));
    }
    if let Some(id) = members.get(&b"id"[..]) {
        decode_id(id)?;
    }
    let kind = members.get(&b"type"[..]).copied().unwrap_or(b"raw");
    let kind = kind.split(|byte| *byte == b';').next();
    let names = members.get(&b"match-dest"[..]).is_none_or(|names| names.starts_with(b"("));
    match kind == Some(b"raw") && names {
        true => Ok(pattern),
        false => Err(wrong("no dictionary that a client knows")),
    }
}

/// The SHA-256 in [`AVAILABLE_FIELD`]. Errors: no byte sequence, several of them, another length.
pub fn decode_available(value: &[u8]) -> Result<[u8; 32], Error> {
    check_len(value)?;
    let bytes = structured::base64(structured::byte_sequence(value)?)?;
    let wrong = || Error::Peer { what: "no SHA-256: another length", value: bytes.len() as u64 };
    bytes.as_slice().try_into().map_err(|_| wrong())
}

/// The name in [`ID_FIELD`]. Errors: no string, several of them, more than [`MAX_ID_CHARS`].
pub fn decode_id(value: &[u8]) -> Result<String, Error> {
    check_len(value)?;
    let id = structured::string(value)?;
    let (value, limit) = (id.len() as u64, MAX_ID_CHARS as u64);
    if value > limit {
        return Err(Error::Limit { what: "the length of a dictionary's name", value, limit });
    }
    Ok(id)
}

fn check_len(value: &[u8]) -> Result<(), Error> {
    let (value, limit) = (value.len() as u64, MAX_TEXT_BYTES as u64);
    match value > limit {
        true => Err(Error::Limit { what: "the size of a dictionary's field", value, limit }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use proptest::prelude::*;

    use super::*;

    /// The example of RFC 9842 §2.2.
    const EXAMPLE: &str = ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:";

    #[test]
    fn a_hash_is_one_byte_sequence_of_32_bytes() {
        let hash = decode_available(EXAMPLE.as_bytes()).unwrap();
        assert_eq!((hash[0], hash[31]), (0xa5, 0x6e));
        for fine in [format!("  {EXAMPLE} "), format!("{EXAMPLE};a=1"), EXAMPLE.replace('=', "")] {
            assert_eq!(decode_available(fine.as_bytes()), Ok(hash), "{fine}");
        }
        let twice = format!("{EXAMPLE}, {EXAMPLE}");
        let long = format!("{EXAMPLE};{}", "a".repeat(MAX_TEXT_BYTES));
        let bare = EXAMPLE.trim_matches(':');
        let short = ":pZGm1Av0:";
        for wrong in ["", ":", "::", "\"a\"", "?1", bare, short, &twice, &long, &EXAMPLE[..40]] {
            assert!(decode_available(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_is_one_string() {
        for (text, id) in [
            ("\"dictionary-12345\"", "dictionary-12345"),
            (" \"a \\\"b\\\" \\\\\" ", "a \"b\" \\"),
            ("\"x\";p=\"y\"", "x"),
            ("\"\"", ""),
        ] {
            assert_eq!(decode_id(text.as_bytes()).as_deref(), Ok(id), "{text}");
        }
        let most = format!("\"{}\"", "a".repeat(MAX_ID_CHARS));
        assert_eq!(decode_id(most.as_bytes()).unwrap().len(), MAX_ID_CHARS);
        let more = format!("\"{}\"", "a".repeat(MAX_ID_CHARS + 1));
        for wrong in ["", "a", "\"a", "\"a\\", "\"\\n\"", "\"é\"", "\"a\"b", "\"a\", \"b\"", &more]
        {
            assert!(decode_id(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_offer_is_a_plain_path_with_a_name() {
        let offer = encode_offer("/tracks/*/a", "lw-1").unwrap();
        assert_eq!(offer, "match=\"/tracks/*/a\", id=\"lw-1\"");
        for pattern in [
            "",
            "tracks",
            "//other.example/",
            "/a/../b",
            "/a?b",
            "/:a",
            "/(a)",
            "/{a}",
            "/a+",
            "/%41",
        ] {
            assert_eq!(encode_offer(pattern, "lw-1"), None, "{pattern}");
        }
        assert_eq!(encode_offer("/a", "b\"c"), None);
        assert_eq!(encode_offer("/a", ""), None);
    }

    #[test]
    fn an_offer_is_one_that_a_client_may_take_up() {
        for (offer, pattern) in [
            ("match=\"/product/*\"", "/product/*"),
            (
                "id=\"a, \\\"match=\\\"\", match=\"/a,b\", match-dest=(\"document\" \"frame\")",
                "/a,b",
            ),
            ("match=\"/a\";x=1, type=raw;y , other, third;z", "/a"),
            ("match=\"/a\", match=\"/b\"", "/b"),
        ] {
            assert_eq!(decode_offer(offer.as_bytes()).as_deref(), Ok(pattern), "{offer}");
        }
        let long = format!("match=\"/a\", id=\"{}\"", "a".repeat(MAX_ID_CHARS + 1));
        for wrong in [
            "",
            "x",
            "/a",
            "match",
            "match=/a",
            "match=\"\"",
            "match=\"/a",
            "match=\"/a\",",
            "Match=\"/a\"",
            "match=\"/(a|b)\"",
            "match=\"/a\", type=other",
            "match=\"/a\", match-dest=\"document\"",
            "match=\"/a\", id=1",
            &long,
        ] {
            assert!(decode_offer(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_hash_comes_back(hash: [u8; 32]) {
            let text = format!(":{}:", STANDARD.encode(hash));
            prop_assert_eq!(decode_available(text.as_bytes()), Ok(hash));
        }

        #[test]
        fn a_name_comes_back(id in "[ -~]{0,60}") {
            let text = id.replace('\\', "\\\\").replace('"', "\\\"");
            prop_assert_eq!(decode_id(format!("\"{text}\"").as_bytes()), Ok(id));
        }

        #[test]
        fn any_bytes_are_a_value_or_an_error(
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
            text in "[:\";,\\\\a-c= ]{0,40}",
        ) {
            for value in [&bytes[..], text.as_bytes(), format!("match={text}").as_bytes()] {
                let _ = (decode_available(value), decode_offer(value));
                if let Ok(id) = decode_id(value) {
                    prop_assert!(id.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
                }
            }
        }

        #[test]
        fn any_offer_is_one_line_that_can_be_read(
            pattern in "[/a*.?\"\\\\:]{0,20}",
            id in "\\PC{0,9}",
        ) {
            if let Some(offer) = encode_offer(&pattern, &id) {
                prop_assert_eq!(decode_offer(offer.as_bytes()), Ok(pattern));
            }
        }
    }
}
