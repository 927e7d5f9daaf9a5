//! Fields of HTTP messages: what stays on one hop (RFC 9110 §7.6.1), and the binary form that
//! crosses the link.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use proto::bhttp::Fields;
use proto::http1::{CONNECTION_FIELD, Field, STYLE_FIELD, Style};

use relay::{Cause, CauseKind};

/// Fields of one connection, whether or not Connection lists them. Proxy-Status (RFC 9209) is not
/// one of them.
const HOP_BY_HOP: [HeaderName; 12] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-authentication-info"),
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    // Between the two sides alone.
    HeaderName::from_static(relay::HOST_FIELD),
    HeaderName::from_static(STYLE_FIELD),
    HeaderName::from_static(CONNECTION_FIELD),
];
/// Connection may not strip what the meaning or the framing of a message rests on.
const NEVER_STRIPPED: [HeaderName; 7] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::CACHE_CONTROL,
    header::AUTHORIZATION,
    header::EXPECT,
];

/// Removes what stays on one hop.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let listed: Vec<HeaderName> = tokens(headers, &header::CONNECTION)
        .filter_map(|token| token.parse().ok())
        .filter(|name| !NEVER_STRIPPED.contains(name))
        .collect();
    for name in listed.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Members of a comma-separated list, lower case.
pub(crate) fn tokens(
    headers: &HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = String> + use<> {
    let values: Vec<String> = headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|token| token.trim().to_ascii_lowercase())
        .filter(|token| !token.is_empty())
        .collect();
    values.into_iter()
}

/// The protocol a request asks to change to, if it does (RFC 9110 §7.8).
pub(crate) fn upgrade_of(headers: &HeaderMap) -> Option<HeaderValue> {
    let listed = tokens(headers, &header::CONNECTION).any(|token| token == "upgrade");
    headers.get(header::UPGRADE).filter(|_| listed).cloned()
}

/// Whether an answer changes to protocols that were offered, and to nothing else (RFC 9110 §7.8).
pub(crate) fn changes_as_offered(offered: &[HeaderValue], answer: &HeaderMap) -> bool {
    let names = |values: &mut dyn Iterator<Item = &HeaderValue>| -> Vec<String> {
        let texts = values.filter_map(|value| value.to_str().ok());
        let names = texts.flat_map(|text| text.split(',').map(str::trim));
        names.filter(|name| !name.is_empty()).map(str::to_ascii_lowercase).collect()
    };
    let offered = names(&mut offered.iter());
    let chosen = names(&mut answer.get_all(header::UPGRADE).iter());
    !chosen.is_empty() && chosen.iter().all(|name| offered.contains(name))
}

/// Of the protocols that Upgrade lists, those that clients may change to: those that a service
/// lists, else all but HTTP in another version and TLS, which are between neighbours alone.
pub(crate) fn allowed_upgrade(
    protocols: &HeaderValue,
    listed: Option<&[String]>,
) -> Option<HeaderValue> {
    let may = |name: &str| match listed {
        Some(names) => names.iter().any(|listed| listed.eq_ignore_ascii_case(name)),
        None => {
            let name = name.to_ascii_lowercase();
            let is_token = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._/".contains(&b));
            let family = name.split('/').next().unwrap_or_default();
            is_token && !matches!(family, "" | "h2" | "h2c" | "h3" | "http" | "tls")
        }
    };
    let names = protocols.to_str().ok()?.split(',').map(str::trim);
    let allowed: Vec<&str> = names.filter(|name| may(name)).collect();
    HeaderValue::from_str(&allowed.join(", ")).ok().filter(|value| !value.is_empty())
}

/// In binary form.
pub(crate) fn to_fields(headers: &HeaderMap) -> Fields {
    headers.iter().map(|(name, value)| line(name, value)).collect()
}

/// In binary form, in the order in which they were sent, and their names as they were sent; what
/// was added since follows.
pub(crate) fn to_fields_as_sent(headers: &HeaderMap, sent: &[Field]) -> (Fields, Style) {
    let mut left: Vec<_> = headers.iter().map(Some).collect();
    let (mut fields, mut names) = (Fields::new(), Vec::new());
    for field in sent {
        let named = |line: &&mut Option<(&HeaderName, &HeaderValue)>| {
            line.is_some_and(|(name, _)| field.is(name.as_str()))
        };
        if let Some((name, value)) = left.iter_mut().find(named).and_then(Option::take) {
            fields.push(line(name, value));
            names.push(field.name.clone());
        }
    }
    fields.extend(left.into_iter().flatten().map(|(name, value)| line(name, value)));
    (fields, Style { names, reason: None })
}

fn line(name: &HeaderName, value: &HeaderValue) -> (Bytes, Bytes) {
    (Bytes::copy_from_slice(name.as_ref()), Bytes::copy_from_slice(value.as_bytes()))
}

/// Fields as they were sent, in binary form.
pub(crate) fn of_http1(fields: &[Field]) -> Fields {
    let line = |field: &Field| (field.name.to_ascii_lowercase().into(), field.value.clone());
    fields.iter().map(line).collect()
}

/// Takes a field that is between the two sides alone out of a head.
pub(crate) fn take(fields: &mut Fields, name: &str) -> Option<Bytes> {
    let at = fields.iter().position(|(other, _)| other == name)?;
    let value = fields.remove(at).1;
    fields.retain(|(other, _)| other != name);
    Some(value)
}

/// From binary form; what no HTTP/1.1 message may hold is the peer's fault.
pub(crate) fn to_headers(fields: &Fields) -> Result<HeaderMap, Cause> {
    let mut headers = HeaderMap::with_capacity(fields.len());
    for (name, value) in fields {
        let wrong = |what: &str| {
            let reason = format!("a field from the other side has a {what} that HTTP forbids");
            Cause { kind: CauseKind::Corrupt, reason }
        };
        let name = HeaderName::from_bytes(name).map_err(|_| wrong("name"))?;
        let value = HeaderValue::from_maybe_shared(value.clone()).map_err(|_| wrong("value"))?;
        headers.try_append(name, value).map_err(|_| wrong("number"))?;
    }
    Ok(headers)
}

/// Appends this hop to Via (RFC 9110 §7.6.3).
pub(crate) fn add_via(headers: &mut HeaderMap, version: http::Version, pseudonym: &str) {
    let version = if version == http::Version::HTTP_10 { "1.0" } else { "1.1" };
    if let Ok(value) = HeaderValue::try_from(format!("{version} {pseudonym}")) {
        headers.append(header::VIA, value);
    }
}

/// Whether a message has been here before.
pub(crate) fn has_passed(headers: &HeaderMap, pseudonym: &str) -> bool {
    tokens(headers, &header::VIA).any(|hop| {
        hop.split_whitespace().nth(1).is_some_and(|name| name.eq_ignore_ascii_case(pseudonym))
    })
}

/// What an intermediary makes of Max-Forwards in OPTIONS and TRACE (RFC 9110 §7.6.2): one less, or
/// `false` where the message may not go further.
pub(crate) fn count_forward(method: &http::Method, headers: &mut HeaderMap) -> bool {
    if *method != http::Method::OPTIONS && *method != http::Method::TRACE {
        return true;
    }
    let value = headers.get(header::MAX_FORWARDS).and_then(|value| value.to_str().ok());
    match value.and_then(|value| value.parse::<u64>().ok()) {
        Some(0) => false,
        Some(left) => {
            headers.insert(header::MAX_FORWARDS, HeaderValue::from(left - 1));
            true
        }
        None => true,
    }
}

/// Value of Content-Length; messages with contradicting ones have been refused.
pub(crate) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn a_change_is_to_what_was_offered() {
        let offered =
            [HeaderValue::from_static("websocket, chat/2"), HeaderValue::from_static("x")];
        for (answer, right) in [
            (&[("upgrade", "WebSocket")][..], true),
            (&[("upgrade", "chat/2"), ("upgrade", "x")], true),
            (&[("upgrade", "chat")], false),
            (&[("upgrade", "websocket, other")], false),
            (&[("upgrade", " ")], false),
            (&[], false),
        ] {
            assert_eq!(changes_as_offered(&offered, &headers(answer)), right, "{answer:?}");
        }
    }

    #[test]
    fn only_fields_of_the_connection_are_removed() {
        let mut map = headers(&[
            ("connection", "keep-alive, X-Private, content-length"),
            ("keep-alive", "timeout=5"),
            ("x-private", "1"),
            ("te", "trailers"),
            ("proxy-authorization", "Basic eDp5"),
            ("proxy-status", "a; error=dns_error"),
            ("content-length", "5"),
            ("trailer", "x-sum"),
            ("etag", "\"a\""),
        ]);
        remove_hop_by_hop(&mut map);
        let mut left: Vec<&str> = map.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-length", "etag", "proxy-status", "trailer"]);
    }

    #[test]
    fn an_upgrade_must_be_listed_in_connection() {
        assert!(upgrade_of(&headers(&[("upgrade", "websocket")])).is_none());
        let asked = headers(&[("upgrade", "websocket"), ("connection", "Upgrade")]);
        assert_eq!(upgrade_of(&asked).unwrap(), "websocket");
    }

    #[test]
    fn http_and_tls_are_nothing_to_change_to_unasked() {
        let allowed = |names: &'static str, listed: Option<&[String]>| {
            let value = allowed_upgrade(&HeaderValue::from_static(names), listed)?;
            Some(value.to_str().unwrap().to_owned())
        };
        assert_eq!(allowed("h2c, WebSocket, chat/1", None).unwrap(), "WebSocket, chat/1");
        for names in ["h2c", "H2C, h2", "h2c/1", "\"h2c\"", "TLS/1.0, HTTP/2.0", ""] {
            assert_eq!(allowed(names, None), None, "{names}");
        }
        let listed = ["chat".to_owned()];
        assert_eq!(allowed("websocket, CHAT", Some(&listed)).unwrap(), "CHAT");
    }

    #[test]
    fn fields_keep_their_order_and_repetition_in_binary_form() {
        let map = headers(&[("set-cookie", "a=1"), ("set-cookie", "b=2"), ("vary", "accept")]);
        let fields = to_fields(&map);
        assert_eq!(fields.len(), 3);
        assert_eq!(to_headers(&fields).unwrap(), map);
        let bad = vec![(Bytes::from_static(b"a"), Bytes::from_static(b"x\r\nb: c"))];
        assert_eq!(to_headers(&bad).unwrap_err().kind, CauseKind::Corrupt);
    }

    #[test]
    fn a_loop_shows_in_via() {
        let mut map = headers(&[("via", "1.0 fred, 1.1 p.example (x)")]);
        assert!(!has_passed(&map, "longwire-1"));
        add_via(&mut map, http::Version::HTTP_11, "longwire-1");
        assert!(has_passed(&map, "longwire-1") && has_passed(&map, "fred"));
    }
}
