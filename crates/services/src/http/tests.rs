use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;

use super::{Coding, MediaType, accepts_media, choose_coding};

fn headers(name: HeaderName, lines: &[&str]) -> HeaderMap {
    let value = |line: &&str| (name.clone(), HeaderValue::from_str(line).unwrap());
    let mut headers = HeaderMap::new();
    for (name, value) in lines.iter().map(value) {
        headers.append(name, value);
    }
    headers
}

fn coding(line: &str) -> Option<Coding> {
    choose_coding(&headers(ACCEPT_ENCODING, &[line]))
}

#[test]
fn gzip_only_when_the_client_likes_it_at_least_as_well() {
    assert_eq!(choose_coding(&HeaderMap::new()), Some(Coding::Identity));
    assert_eq!(coding("gzip"), Some(Coding::Gzip));
    assert_eq!(coding("x-gzip"), Some(Coding::Gzip));
    assert_eq!(coding("GZIP"), Some(Coding::Gzip));
    assert_eq!(coding("deflate, gzip;q=0.5, br"), Some(Coding::Gzip));
    assert_eq!(coding("*"), Some(Coding::Gzip));
    assert_eq!(coding("gzip;q=0.5, identity"), Some(Coding::Identity));
    assert_eq!(coding("gzip;q=1.0, identity; q=0.5, *;q=0"), Some(Coding::Gzip));
    assert_eq!(coding("gzip;q=0"), Some(Coding::Identity));
    assert_eq!(coding("gzip;q=0.000, *"), Some(Coding::Identity));
    assert_eq!(coding("*;q=0.2, gzip;q=0"), Some(Coding::Identity));
    assert_eq!(coding("deflate"), Some(Coding::Identity));
    assert_eq!(coding(""), Some(Coding::Identity));
}

#[test]
fn no_coding_when_both_are_excluded() {
    assert_eq!(coding("identity;q=0"), None);
    assert_eq!(coding("*;q=0"), None);
    assert_eq!(coding("deflate, identity;q=0"), None);
    assert_eq!(coding("identity;q=0, gzip"), Some(Coding::Gzip));
    assert_eq!(coding("*;q=0, gzip"), Some(Coding::Gzip));
    assert_eq!(coding("*;q=0, identity"), Some(Coding::Identity));
}

#[test]
fn lines_of_one_field_are_one_list() {
    let lines = headers(ACCEPT_ENCODING, &["deflate", "gzip;q=0.1"]);
    assert_eq!(choose_coding(&lines), Some(Coding::Gzip));
}

#[test]
fn a_malformed_weight_excludes() {
    for weight in ["2", "1.5", "-1", "0.1234", "x", "", "1e0", ".5"] {
        let line = format!("gzip;q={weight}");
        assert_eq!(coding(&line), Some(Coding::Identity), "{line}");
    }
}

#[test]
fn the_most_specific_range_decides() {
    let accepts = |line, media| accepts_media(&headers(ACCEPT, &[line]), media);
    assert!(accepts_media(&HeaderMap::new(), "application/json"));
    assert!(accepts("application/json", "application/json"));
    assert!(accepts("Application/JSON;charset=utf-8;q=0.3", "application/json"));
    assert!(accepts("text/html, application/*;q=0.1", "application/json"));
    assert!(accepts("*/*;q=0.01", "application/json"));
    assert!(!accepts("text/html", "application/json"));
    assert!(!accepts("application/json;q=0, */*", "application/json"));
    assert!(!accepts("application/*;q=0, */*", "application/json"));
    assert!(!accepts("text/*", "application/json"));
}

#[test]
fn media_types_parse_with_quoted_parameters() {
    let media = MediaType::parse("Application/SOAP+xml ; charset=UTF-8; action=\"a;b\\\"c\"");
    let media = media.unwrap();
    assert_eq!(media.essence, "application/soap+xml");
    assert_eq!(media.parameter("charset"), Some("UTF-8"));
    assert_eq!(media.parameter("action"), Some("a;b\"c"));
    assert_eq!(media.parameter("boundary"), None);
    assert_eq!(MediaType::parse("text/xml;").unwrap().essence, "text/xml");
}

#[test]
fn malformed_media_types_are_refused() {
    let many = format!("text/xml{}", ";a=b".repeat(17));
    let malformed = [
        "",
        "text",
        "text/",
        "/xml",
        "te xt/xml",
        "text/xml; charset",
        "text/xml; charset=",
        "text/xml; a=\"b",
        "text/xml; a=\"b\"c",
        "text/xml; =b",
        "text/xml; a=b c",
        &many,
    ];
    for text in malformed {
        assert_eq!(MediaType::parse(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_negotiated_without_panic(line in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(value) = HeaderValue::from_bytes(&line) {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, value.clone());
            headers.insert(ACCEPT, value);
            let _ = choose_coding(&headers);
            let _ = accepts_media(&headers, "application/xml");
        }
        if let Ok(text) = std::str::from_utf8(&line) {
            let _ = MediaType::parse(text);
        }
    }

    #[test]
    fn what_a_media_type_says_is_found_again(
        value in "[ -~]{0,20}", name in "[a-z]{1,8}",
    ) {
        let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
        let media = MediaType::parse(&format!("text/xml; {name}=\"{quoted}\"")).unwrap();
        prop_assert_eq!(media.parameter(&name), Some(value.as_str()));
    }
}
