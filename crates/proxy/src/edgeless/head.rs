//! Heads: what a request says of codings and of its class, which answers may be coded, and what
//! such an answer's head then says.

use codec::dictionary::rfc9842::Form;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, StatusCode, response};
use proto::dictionary::{AVAILABLE_FIELD, OFFER_FIELD};

use super::accept::Accepted;
use crate::fields;

/// Fields that hold for the bytes of the content as it is (RFC 9530 §2 and §3, RFC 9421 §3; the two
/// older ones are still met): who codes the content makes them untrue.
const BOUND_TO_CONTENT: [HeaderName; 5] = [
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("signature"),
];
/// Longest name of an operation that tells classes apart, in bytes.
const MAX_OPERATION_BYTES: usize = 128;

/// What a request says.
#[derive(Debug)]
pub(crate) struct Asked {
    method: Method,
    pub(crate) accepted: Accepted,
    /// The client says that it has a dictionary.
    names_dictionary: bool,
    /// It is one that is held here, and may be used.
    pub(crate) has_dictionary: bool,
    /// The client has told what it is like.
    pub(crate) tells_profile: bool,
    /// The client wants a part of the content, or nobody in between to change it.
    untouched: bool,
    /// Entity tags that the client has.
    known_tags: Vec<HeaderValue>,
    /// What is asked of the service: numbers in it are alike, for they differ from one message to
    /// the next.
    pub(crate) operation: String,
}

impl Asked {
    pub(crate) fn new(parts: &Parts) -> Self {
        let headers = &parts.headers;
        let untouched = headers.contains_key(header::RANGE)
            || parts.method == Method::CONNECT
            || forbids_transform(headers);
        let action = headers
            .get("soapaction")
            .map_or(parts.uri.path().as_bytes(), |action| action.as_bytes());
        Self {
            method: parts.method.clone(),
            accepted: Accepted::of(headers),
            names_dictionary: headers.contains_key(AVAILABLE_FIELD),
            has_dictionary: false,
            tells_profile: false,
            untouched,
            known_tags: headers.get_all(header::IF_NONE_MATCH).iter().cloned().collect(),
            operation: operation(action),
        }
    }

    /// Asks the origin for content without a coding, which can then be coded as fits best, or with
    /// a dictionary that only the origin can have given. Who may not be answered so gets what the
    /// origin has for it.
    pub(crate) fn ask_for_identity(&self, headers: &mut HeaderMap) {
        if !self.untouched && !self.accepted.forbids_identity() {
            let of_origin = self.names_dictionary && !self.has_dictionary;
            headers.insert(header::ACCEPT_ENCODING, self.accepted.for_origin(of_origin));
        }
    }

    /// Whether the client takes some coding that can be made for it.
    fn takes_coding(&self) -> bool {
        let with_dictionary =
            || [Form::Dcb, Form::Dcz].into_iter().any(|form| self.accepted.takes(form));
        self.accepted.best().next().is_some() || (self.has_dictionary && with_dictionary())
    }

    /// Whether the answer's content might be coded for another client, if not for this one, or
    /// could have been.
    fn is_negotiable(&self, parts: &response::Parts) -> bool {
        let headers = &parts.headers;
        let status = parts.status;
        !self.untouched
            && !status.is_informational()
            && !matches!(
                status,
                StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::PARTIAL_CONTENT
            )
            && !headers.contains_key(header::CONTENT_ENCODING)
            && !headers.contains_key(header::CONTENT_RANGE)
            && !forbids_transform(headers)
            && !BOUND_TO_CONTENT.iter().any(|name| headers.contains_key(name))
    }

    /// Says in the head what holds for answers that depend on Accept-Encoding, and on the fields
    /// that `decided` besides; whether this one's content may be coded.
    pub(crate) fn negotiate(&self, parts: &mut response::Parts, decided: &[HeaderName]) -> bool {
        if !self.is_negotiable(parts) {
            return false;
        }
        add_vary(&mut parts.headers, &header::ACCEPT_ENCODING);
        decided.iter().for_each(|field| add_vary(&mut parts.headers, field));
        if self.tells_profile {
            add_vary(&mut parts.headers, &HeaderName::from_static(proto::profile::FIELD));
        }
        if self.names_dictionary {
            // RFC 9842 §6.2.
            add_vary(&mut parts.headers, &HeaderName::from_static(AVAILABLE_FIELD));
        }
        if parts.status == StatusCode::NOT_MODIFIED {
            // The client knows the tag as it was given with coded content (RFC 9110 §15.4.5).
            if self.knows_weakened(&parts.headers) {
                weaken(&mut parts.headers);
            }
            return false;
        }
        let takes_coding = self.takes_coding();
        if self.method == Method::HEAD {
            if takes_coding {
                // The length that GET would tell is not known (RFC 9110 §8.6).
                parts.headers.remove(header::CONTENT_LENGTH);
            }
            return false;
        }
        takes_coding
    }

    fn knows_weakened(&self, headers: &HeaderMap) -> bool {
        let Some(tag) = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok()) else {
            return false;
        };
        let weak = format!("W/{tag}");
        let mut known = self.known_tags.iter().filter_map(|tags| tags.to_str().ok());
        known.any(|tags| tags.contains(&weak))
    }
}

/// The head of an answer whose content is coded so; `length` where it is known.
pub(crate) fn coded(headers: &mut HeaderMap, token: &'static str, length: Option<usize>) {
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(token));
    headers.remove(header::CONTENT_LENGTH);
    if let Some(length) = length {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    // Ranges would be of other bytes.
    headers.remove(header::ACCEPT_RANGES);
    weaken(headers);
}

/// RFC 9110 §8.8.3.3: codings of the same content may not have the same strong tag.
fn weaken(headers: &mut HeaderMap) {
    let tag = headers.get(header::ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/"));
    let weak = tag.map(|tag| HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()));
    if let Some(Ok(weak)) = weak {
        headers.insert(header::ETAG, weak);
    }
}

/// The head of an answer that may serve as a dictionary.
pub(crate) fn offered(headers: &mut HeaderMap, offer: HeaderValue) {
    headers.insert(HeaderName::from_static(OFFER_FIELD), offer);
    // Who has it already gets another answer.
    add_vary(headers, &HeaderName::from_static(AVAILABLE_FIELD));
}

/// RFC 9110 §12.5.5.
pub(crate) fn add_vary(headers: &mut HeaderMap, field: &HeaderName) {
    let reported = |name: String| name == field.as_str() || name == "*";
    if !fields::tokens(headers, &header::VARY).any(reported) {
        headers.append(header::VARY, HeaderValue::from(field.clone()));
    }
}

/// RFC 9111 §5.2.1.6 and §5.2.2.6.
fn forbids_transform(headers: &HeaderMap) -> bool {
    fields::tokens(headers, &header::CACHE_CONTROL).any(|directive| directive == "no-transform")
}

fn operation(text: &[u8]) -> String {
    let mut kept = Vec::new();
    for &byte in text.iter().take(MAX_OPERATION_BYTES) {
        match byte {
            b'0'..=b'9' if kept.last() == Some(&b'0') => {}
            b'0'..=b'9' => kept.push(b'0'),
            _ => kept.push(byte),
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};

    use super::*;

    fn asked(lines: &[(&str, &str)]) -> Asked {
        let mut request = Request::builder().uri("/tracks/12/a3?key=secret");
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        Asked::new(&request.body(()).unwrap().into_parts().0)
    }

    fn answer(status: u16, lines: &[(&str, &str)]) -> response::Parts {
        let mut response = Response::builder().status(status);
        for (name, value) in lines {
            response = response.header(*name, *value);
        }
        response.body(()).unwrap().into_parts().0
    }

    #[test]
    fn what_must_not_change_is_left_alone() {
        let gzip = ("accept-encoding", "gzip");
        assert!(asked(&[gzip]).negotiate(&mut answer(200, &[]), &[]));
        assert!(asked(&[gzip]).negotiate(&mut answer(404, &[]), &[]));
        for (request, status, response) in [
            (&[gzip, ("range", "bytes=0-1")][..], 200, &[][..]),
            (&[gzip, ("cache-control", "no-transform")], 200, &[]),
            (&[gzip], 200, &[("cache-control", "max-age=3, No-Transform")]),
            (&[gzip], 200, &[("content-encoding", "br")]),
            (&[gzip], 200, &[("content-digest", "sha-256=:AA==:")]),
            (&[gzip], 200, &[("signature", "sig=:AA==:")]),
            (&[gzip], 206, &[("content-range", "bytes 0-1/2")]),
            (&[gzip], 204, &[]),
        ] {
            let mut parts = answer(status, response);
            let before = parts.headers.clone();
            assert!(
                !asked(request).negotiate(&mut parts, &[]),
                "{request:?} {status} {response:?}"
            );
            assert_eq!(parts.headers, before);
        }
        let mut plain = answer(200, &[("content-length", "9")]);
        assert!(!asked(&[]).negotiate(&mut plain, &[]));
        assert_eq!(plain.headers["vary"], "accept-encoding");
        assert_eq!(plain.headers["content-length"], "9");
    }

    #[test]
    fn coded_content_has_a_weak_tag_and_no_length_of_other_bytes() {
        let lines = [("etag", "\"v1\""), ("content-length", "900"), ("accept-ranges", "bytes")];
        let mut parts = answer(200, &lines);
        coded(&mut parts.headers, "br", None);
        assert_eq!(parts.headers["etag"], "W/\"v1\"");
        assert_eq!(parts.headers["content-encoding"], "br");
        assert_eq!(parts.headers.len(), 2);
        coded(&mut parts.headers, "gzip", Some(70));
        assert_eq!(parts.headers["etag"], "W/\"v1\"");
        assert_eq!(parts.headers["content-length"], "70");
    }

    #[test]
    fn a_tag_that_was_weakened_stays_so_when_nothing_changed() {
        let tagged = || answer(304, &[("etag", "\"v1\"")]);
        let known = asked(&[("accept-encoding", "br"), ("if-none-match", "\"v0\", W/\"v1\"")]);
        let mut parts = tagged();
        assert!(!known.negotiate(&mut parts, &[]));
        assert_eq!(
            (&parts.headers["etag"], &parts.headers["vary"]),
            (&HeaderValue::from_static("W/\"v1\""), &HeaderValue::from_static("accept-encoding"),)
        );
        let strong = asked(&[("accept-encoding", "br"), ("if-none-match", "\"v1\"")]);
        let mut parts = tagged();
        assert!(!strong.negotiate(&mut parts, &[]));
        assert_eq!(parts.headers["etag"], "\"v1\"");
    }

    #[test]
    fn vary_names_the_field_once() {
        for (before, after) in [
            ("Accept-Encoding", vec!["Accept-Encoding"]),
            ("*", vec!["*"]),
            ("accept, origin", vec!["accept, origin", "accept-encoding"]),
        ] {
            let mut parts = answer(200, &[("vary", before)]);
            asked(&[]).negotiate(&mut parts, &[]);
            let values: Vec<_> = parts.headers.get_all("vary").iter().collect();
            assert_eq!(values, after);
        }
    }

    #[test]
    fn vary_names_all_that_decided() {
        let decided = [HeaderName::from_static("sec-fetch-site"), header::ORIGIN];
        let mut parts = answer(200, &[("vary", "Origin")]);
        let asked = Asked { tells_profile: true, ..asked(&[("accept-encoding", "gzip")]) };
        assert!(asked.negotiate(&mut parts, &decided));
        let vary: Vec<_> = fields::tokens(&parts.headers, &header::VARY).collect();
        assert_eq!(vary, ["origin", "accept-encoding", "sec-fetch-site", "longwire-profile"]);
    }

    #[test]
    fn an_answer_that_hangs_on_a_dictionary_says_so() {
        let available = ("available-dictionary", "?0");
        let mut parts = answer(200, &[]);
        assert!(asked(&[("accept-encoding", "gzip, dcb"), available]).negotiate(&mut parts, &[]));
        let vary = |parts: &response::Parts| {
            fields::tokens(&parts.headers, &header::VARY).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(vary(&parts), "accept-encoding, available-dictionary");
        // Nothing else is taken: with the dictionary there is a coding, without there is none.
        let only = [("accept-encoding", "dcz"), available];
        assert!(!asked(&only).negotiate(&mut answer(200, &[]), &[]));
        assert!(
            Asked { has_dictionary: true, ..asked(&only) }.negotiate(&mut answer(200, &[]), &[])
        );
        let mut parts = answer(200, &[("vary", "accept-encoding")]);
        offered(&mut parts.headers, HeaderValue::from_static("match=\"/a\""));
        assert_eq!(vary(&parts), "accept-encoding, available-dictionary");
        assert_eq!(parts.headers["use-as-dictionary"], "match=\"/a\"");
    }

    #[test]
    fn the_origin_is_asked_for_its_own_dictionary_alone() {
        let available = ("available-dictionary", ":AA==:");
        let ask = |asked: Asked| {
            let mut headers = HeaderMap::new();
            asked.ask_for_identity(&mut headers);
            headers[header::ACCEPT_ENCODING].clone()
        };
        let lines = [("accept-encoding", "gzip, dcb, dcz"), available];
        assert_eq!(ask(asked(&lines)), "dcb, dcz");
        assert_eq!(ask(Asked { has_dictionary: true, ..asked(&lines) }), "identity");
        assert_eq!(ask(asked(&lines[..1])), "identity");
    }

    #[test]
    fn operations_that_differ_in_numbers_are_one() {
        assert_eq!(asked(&[]).operation, "/tracks/0/a0");
        assert_eq!(asked(&[("soapaction", "\"urn:get25\"")]).operation, "\"urn:get0\"");
    }
}
