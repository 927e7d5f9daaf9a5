use proptest::prelude::*;

use crate::coap::option::{PROXY_SCHEME, PROXY_URI, URI_HOST, URI_PATH, URI_PORT, URI_QUERY};
use crate::coap::uri::{Destination, Host, Scheme, Uri, Via, compose};
use crate::coap::{Code, Datagram, Header, Kind, Token, Writer};

type List = Vec<(u16, Vec<u8>)>;

fn split(text: &str, via: Via) -> Option<List> {
    let mut list = List::new();
    let uri = Uri::parse(text).ok()?;
    uri.options(via, |number, value| {
        list.push((number, value.to_vec()));
        Ok(())
    })
    .ok()?;
    Some(list)
}

fn join(list: &[(u16, Vec<u8>)], destination: &Destination<'_>) -> Option<String> {
    let mut room = [0; 4096];
    let header = Header { kind: Kind::Confirmable, code: Code::GET, mid: 0, token: Token::EMPTY };
    let mut writer = Writer::new(&mut room, &header);
    list.iter().for_each(|(number, value)| writer.option(*number, value).unwrap());
    let len = writer.finish().unwrap();
    let mut text = String::new();
    let options = Datagram::decode(&room[..len]).unwrap().message.options;
    compose(options, destination, &mut text).ok().map(|()| text)
}

fn at(host: Host<'_>, port: u16) -> Destination<'_> {
    Destination { scheme: Scheme::Coap, host, port }
}

fn list(options: &[(u16, &str)]) -> List {
    options.iter().map(|(number, text)| (*number, text.as_bytes().to_vec())).collect()
}

/// RFC 7252 appendix B.
#[test]
fn examples_of_the_rfc_are_composed() {
    let six = at(Host::Ip("2001:db8::2:1".parse().unwrap()), 5683);
    assert_eq!(join(&[], &six).unwrap(), "coap://[2001:db8::2:1]/");
    let named = list(&[(URI_HOST, "example.net")]);
    assert_eq!(join(&named, &six).unwrap(), "coap://example.net/");
    let path = list(&[(URI_HOST, "example.net"), (URI_PATH, ".well-known"), (URI_PATH, "core")]);
    assert_eq!(join(&path, &six).unwrap(), "coap://example.net/.well-known/core");
    let idn = list(&[(URI_HOST, "xn--18j4d.example"), (URI_PATH, "こんにちは")]);
    let encoded = "coap://xn--18j4d.example/%E3%81%93%E3%82%93%E3%81%AB%E3%81%A1%E3%81%AF";
    assert_eq!(join(&idn, &six).unwrap(), encoded);
    let odd = list(&[
        (URI_PATH, ""),
        (URI_PATH, "/"),
        (URI_PATH, ""),
        (URI_PATH, ""),
        (URI_QUERY, "//"),
        (URI_QUERY, "?&"),
    ]);
    let four = at(Host::Ip("198.51.100.1".parse().unwrap()), 61616);
    let text = "coap://198.51.100.1:61616//%2F//?%2F%2F&?%26";
    assert_eq!(join(&odd, &four).unwrap(), text.replace("?%2F%2F", "?//"));
    assert_eq!(split(text, Via::Origin), Some(odd));
}

/// RFC 7252 §6.3: three ways to write one URI.
#[test]
fn equal_uris_have_equal_options() {
    let one = split("coap://example.com:5683/~sensors/temp.xml", Via::Origin);
    let options = [(URI_HOST, "example.com"), (URI_PATH, "~sensors"), (URI_PATH, "temp.xml")];
    assert_eq!(one, Some(list(&options)));
    assert_eq!(split("coap://EXAMPLE.com/%7Esensors/temp.xml", Via::Origin), one);
    assert_eq!(split("coap://EXAMPLE.com:/%7esensors/temp.xml", Via::Origin), one);
}

#[test]
fn dot_segments_go_and_a_bare_slash_is_nothing() {
    let path = |text: &str| {
        let options = split(&format!("coap://[::1]{text}"), Via::Origin)?;
        Some(options.iter().map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect())
            .map(|segments: Vec<String>| segments.join("|"))
    };
    for (text, segments) in [
        ("", ""),
        ("/", ""),
        ("/a", "a"),
        ("/a/", "a|"),
        ("//", "|"),
        ("/a/./b", "a|b"),
        ("/a/../b", "b"),
        ("/a/b/..", "a|"),
        ("/a/..", ""),
        ("/..", ""),
        ("/../../a/b/c/../..", "a|"),
        ("/a//../b", "a|b"),
    ] {
        assert_eq!(path(text).as_deref(), Some(segments), "{text}");
    }
    assert_eq!(path("/%2e%2E/a"), None);
}

#[test]
fn a_proxy_is_given_scheme_host_and_port() {
    let options = split("coaps+tcp://[2001:DB8::1]/x?y", Via::Proxy).unwrap();
    let mut expected = list(&[
        (URI_HOST, "[2001:db8::1]"),
        (URI_PATH, "x"),
        (URI_QUERY, "y"),
        (PROXY_SCHEME, "coaps+tcp"),
    ]);
    expected.insert(1, (URI_PORT, vec![0x16, 0x34]));
    assert_eq!(options, expected);
    let proxy = at(Host::Name("proxy"), 5683);
    assert_eq!(join(&options, &proxy).unwrap(), "coaps+tcp://[2001:db8::1]/x?y");
    let whole = list(&[(URI_HOST, "other"), (PROXY_URI, "http://h/p")]);
    assert_eq!(join(&whole, &proxy).unwrap(), "http://h/p");
    let scheme = list(&[(URI_HOST, "h"), (PROXY_SCHEME, "http")]);
    assert_eq!(join(&scheme, &proxy).unwrap(), "http://h:5683/");
}

#[test]
fn what_is_no_uri_of_coap_is_refused() {
    for text in [
        "",
        "coap:",
        "coap://",
        "coap:///a",
        "http://h/",
        "coap://h/#f",
        "coap://u@h/",
        "coap://h:65536/",
        "coap://h:+1/",
        "coap://[::1/",
        "coap://[::1]x/",
        "coap://[fe80::1%25eth0]/",
        "coap://h/%4",
        "coap://h/%zz",
        "coap://h/%ff",
        "coap://h /",
    ] {
        assert_eq!(split(text, Via::Origin), None, "{text}");
    }
    let long = format!("coap://h/{}", "a".repeat(256));
    assert_eq!(split(&long, Via::Origin), None);
    let bad = list(&[(URI_HOST, "[x]")]);
    assert_eq!(join(&bad, &at(Host::Name("h"), 1)), None);
    assert_eq!(join(&list(&[(URI_PATH, "..")]), &at(Host::Name("h"), 1)), None);
}

#[test]
fn schemes_have_their_ports() {
    for (name, port) in [
        ("coap", 5683),
        ("COAPS", 5684),
        ("coap+tcp", 5683),
        ("coaps+tcp", 5684),
        ("coap+ws", 80),
        ("coaps+ws", 443),
    ] {
        let text = format!("{name}://h");
        assert_eq!(Uri::parse(&text).unwrap().port, port);
    }
}

proptest! {
    /// Options of any text make a URI of which they come back.
    #[test]
    fn options_come_back(
        path in proptest::collection::vec("\\PC{0,20}", 0..5),
        query in proptest::collection::vec("\\PC{0,20}", 0..4),
        port in 1_u16..,
    ) {
        prop_assume!(path.iter().all(|segment| segment != "." && segment != ".."));
        // A path that is one empty segment is the one without any (RFC 7252 §6.4).
        prop_assume!(path.len() != 1 || !path[0].is_empty());
        let path = path.iter().map(|text| (URI_PATH, text.as_bytes().to_vec()));
        let query = query.iter().map(|text| (URI_QUERY, text.as_bytes().to_vec()));
        let options: List = path.chain(query).collect();
        let host = at(Host::Ip("192.0.2.1".parse().unwrap()), port);
        let text = join(&options, &host).unwrap();
        prop_assume!(text.len() <= 1034);
        prop_assert_eq!(split(&text, Via::Origin), Some(options));
        prop_assert_eq!(Uri::parse(&text).unwrap().port, port);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(coap://)?\\PC{0,40}") {
        let _ = split(&text, Via::Proxy);
    }
}
