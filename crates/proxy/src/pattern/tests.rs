use proptest::prelude::*;

use super::*;

fn allows(pattern: &str, url: &str) -> bool {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = split_authority(authority).unwrap();
    let connect = scheme == "connect";
    let target = Target {
        scheme: (!connect).then_some(scheme),
        host: host.trim_matches(['[', ']']),
        port: port.map_or_else(|| standard_port(scheme), |port| port.parse().unwrap()),
        path: (!connect).then_some(path),
    };
    Pattern::parse(pattern).unwrap().matches(&target)
}

#[test]
fn hosts_are_matched_whole() {
    assert!(allows("http://tracks.example", "http://TRACKS.example./x"));
    assert!(!allows("http://tracks.example", "http://evil-tracks.example"));
    assert!(!allows("http://tracks.example", "http://tracks.example.evil"));
    assert!(allows("http://*.example", "http://a.b.example"));
    assert!(!allows("http://*.example", "http://example"));
    assert!(!allows("http://*.example", "http://evilexample"));
    assert!(allows("http://*", "http://192.0.2.1"));
    assert!(allows("http://[::1]:80", "http://[0:0:0:0:0:0:0:1]"));
    assert!(allows("http://127.0.0.1", "http://[::ffff:127.0.0.1]"));
    assert!(!allows("http://*.0.0.1", "http://127.0.0.1"));
}

#[test]
fn schemes_and_ports_count() {
    assert!(!allows("http://a", "https://a:80"));
    assert!(allows("*://a", "https://a") && allows("*://a", "http://a"));
    assert!(!allows("*://a", "http://a:8080"));
    assert!(allows("http://a:*", "http://a:8080"));
    assert!(!allows("http://a:81", "http://a"));
}

#[test]
fn connect_needs_an_entry_without_a_path() {
    assert!(allows("https://a", "connect://a:443"));
    assert!(allows("http://a:8080", "connect://a:8080"));
    assert!(!allows("https://a/x", "connect://a:443"));
    assert!(!allows("https://a", "connect://a:22"));
}

#[test]
fn a_path_prefix_cannot_be_escaped() {
    let under = |path: &str| allows("http://a/api/v1", &format!("http://a{path}"));
    for path in ["/api/v1", "/api/v1/", "/api/v1/x?y=/../..", "/%61pi/v1/z"] {
        assert!(under(path), "{path}");
    }
    for path in [
        "/",
        "/api",
        "/api/v10",
        "/api/v1/../../admin",
        "/api/v1/%2e%2e/admin",
        "/api/v1/..;x/b",
        "/api//v1",
        "/api/v1//../..",
        "/api/v1/..%2fadmin",
        "/api/v1/%5c..",
        "/api/v1/%",
        "/api/v1/%252e%252e/x",
        "/x/../api/v1",
        "/api/v1/./x",
    ] {
        assert!(!under(path), "{path}");
    }
}

#[test]
fn what_is_no_pattern_is_refused_with_its_form() {
    for text in [
        "tracks.example",
        "ftp://a",
        "http://",
        "http://a:",
        "http://a:x",
        "http://a:0",
        "http://a b",
        "http://u@a",
        "http://a?x",
        "http://a/../b",
        "http://*a.example",
        "http://[::1",
    ] {
        let error = Pattern::parse(text).expect_err(text);
        assert!(error.contains("SCHEME://HOST"), "{error}");
    }
}

prop_compose! {
    fn patterns()(
        scheme in prop::sample::select(vec!["http", "https", "*"]),
        host in prop::sample::select(vec!["*", "*.a", "a", "b.a", "127.0.0.1", "[::1]"]),
        port in prop::sample::select(vec!["", ":*", ":80", ":443", ":81"]),
        path in prop::sample::select(vec!["", "/", "/x", "/x/y", "/%41"]),
    ) -> Pattern {
        Pattern::parse(&format!("{scheme}://{host}{port}{path}")).unwrap()
    }
}

proptest! {
    /// What an edge refuses by the gateway's list, the gateway would refuse.
    #[test]
    fn what_none_may_mean_none_matches(
        list in prop::collection::vec(patterns(), 0..4),
        scheme in prop::sample::select(vec![None, Some("http"), Some("https")]),
        host in prop::sample::select(
            vec!["a", "A.", "b.a", "c.b.a", "127.0.0.1", "[::1]", "::ffff:127.0.0.1", "ba", "1"],
        ),
        port in prop::sample::select(vec![80_u16, 81, 443, 8080]),
        path in "(/[xyA%.;?#2ef5c-]{0,6}){0,4}",
    ) {
        let path = scheme.map(|_| &*path);
        let target = Target { scheme, host, port, path };
        let matches = list.iter().any(|pattern| pattern.matches(&target));
        let may_be = list.iter().any(|pattern| pattern.may_mean(&target));
        prop_assert!(may_be || !matches);
        // And where every server reads the path alike, neither more nor less.
        let is_plain = |path: &str| segments(path.split(['?', '#']).next().unwrap()).is_some();
        let plain = path.is_none_or(is_plain);
        if plain && (path.is_some() || list.iter().all(|pattern| pattern.path.is_empty())) {
            prop_assert_eq!(may_be, matches);
        }
    }
}
