//! Lines that have a number: those that are common in requests, and in answers. Where only the name
//! is, its value is empty.

use super::Line;

pub(super) type Table = &'static [(&'static str, &'static str)];

/// Of requests, numbered from 1.
pub(super) static REQUEST: Table = &[
    (":method", "GET"),
    (":method", "POST"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":authority", ""),
    (":path", "/"),
    ("host", ""),
    ("user-agent", ""),
    ("accept", "*/*"),
    ("content-length", ""),
    ("content-type", "text/xml; charset=utf-8"),
    ("content-type", "application/soap+xml; charset=utf-8"),
    ("content-type", "application/json"),
    ("content-type", ""),
    ("soapaction", "\"\""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-encoding", "gzip"),
    ("accept-encoding", "identity"),
    ("accept", "application/json"),
    ("connection", "keep-alive"),
    ("authorization", ""),
    ("cookie", ""),
    ("if-none-match", ""),
    ("if-modified-since", ""),
    ("cache-control", "no-cache"),
    ("pragma", "no-cache"),
    ("priority", ""),
    ("range", ""),
    ("referer", ""),
    ("origin", ""),
    (":method", "PUT"),
    (":method", "DELETE"),
    (":method", "HEAD"),
    (":method", "PATCH"),
    (":method", "OPTIONS"),
    (":method", ""),
    (":scheme", ""),
    ("accept", "text/xml, multipart/related"),
    ("accept", "application/json, text/plain, */*"),
    ("accept-encoding", "gzip, deflate, br"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("accept-language", "en-US,en;q=0.9"),
    ("content-type", "application/x-www-form-urlencoded"),
    ("content-type", "text/xml"),
    ("content-type", "application/xml"),
    ("content-type", "text/plain;charset=UTF-8"),
    ("content-encoding", "gzip"),
    ("expect", "100-continue"),
    ("traceparent", ""),
    ("x-request-id", ""),
    ("x-forwarded-for", ""),
    ("x-requested-with", "XMLHttpRequest"),
    ("upgrade-insecure-requests", "1"),
    ("sec-fetch-site", "same-origin"),
    ("sec-fetch-mode", "cors"),
    ("sec-fetch-dest", "empty"),
    ("prefer", ""),
    ("date", ""),
];

/// Of answers, numbered from 1.
pub(super) static ANSWER: Table = &[
    (":status", "200"),
    (":status", "204"),
    (":status", "304"),
    (":status", "404"),
    (":status", "500"),
    (":status", "201"),
    ("content-length", ""),
    ("date", ""),
    ("server", ""),
    ("server", "nginx"),
    ("content-type", "text/html"),
    ("content-type", "text/xml; charset=utf-8"),
    ("content-type", "text/xml;charset=utf-8"),
    ("content-type", "application/soap+xml; charset=utf-8"),
    ("content-type", "application/json"),
    ("content-type", "application/octet-stream"),
    ("content-type", ""),
    ("last-modified", ""),
    ("etag", ""),
    ("accept-ranges", "bytes"),
    ("cache-control", "no-cache"),
    ("cache-control", "no-store"),
    ("cache-control", ""),
    ("connection", "keep-alive"),
    ("vary", "Accept-Encoding"),
    ("content-encoding", "gzip"),
    ("content-encoding", ""),
    ("set-cookie", ""),
    ("location", ""),
    ("expires", ""),
    (":status", "202"),
    (":status", "206"),
    (":status", "301"),
    (":status", "302"),
    (":status", "400"),
    (":status", "401"),
    (":status", "403"),
    (":status", "503"),
    (":status", ""),
    ("content-type", "text/html; charset=utf-8"),
    ("content-type", "text/plain; charset=utf-8"),
    ("content-type", "text/plain"),
    ("content-type", "application/json; charset=utf-8"),
    ("content-type", "application/xml"),
    ("content-length", "0"),
    ("vary", ""),
    ("access-control-allow-origin", "*"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "SAMEORIGIN"),
    ("strict-transport-security", ""),
    ("pragma", "no-cache"),
    ("age", ""),
    ("allow", ""),
    ("keep-alive", ""),
    ("link", ""),
    ("retry-after", ""),
    ("www-authenticate", ""),
    ("x-powered-by", ""),
    ("x-request-id", ""),
];

/// What a table has of a line.
pub(super) enum Found {
    Whole(u64),
    Name(u64),
    Nothing,
}

pub(super) fn find(table: Table, (name, value): &Line) -> Found {
    let number = |at: usize| at as u64 + 1;
    let same_name = |(one, _): &(&str, &str)| one.as_bytes() == name;
    let whole = |one: &(&str, &str)| same_name(one) && one.1.as_bytes() == value;
    match table.iter().position(whole) {
        Some(at) => Found::Whole(number(at)),
        None => match table.iter().position(same_name) {
            Some(at) => Found::Name(number(at)),
            None => Found::Nothing,
        },
    }
}

pub(super) fn get(table: Table, number: u64) -> Option<(&'static str, &'static str)> {
    let at = usize::try_from(number.checked_sub(1)?).ok()?;
    table.get(at).copied()
}
