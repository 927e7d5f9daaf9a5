//! Edgeless clients that keep dictionaries (RFC 9842), and origins of others that give some: at the
//! listener of a gateway, and across the pair.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use codec::dictionary::Id;
use codec::dictionary::rfc9842::{self, Form};
use codec::{Limits, Settings};
use common::origin::Origin;
use common::{Answer, Side, eventually, gateway, pair, raw, read_until};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use proto::dictionary::{decode_available, decode_id};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// What answers vary with to a client that has a dictionary.
const ALL_THAT_DECIDED: [&str; 4] =
    ["accept-encoding", "sec-fetch-site", "origin", "available-dictionary"];
const ALL: &str = "gzip, br, zstd, dcb, dcz";

/// A report of tracks, other ones for each number.
fn tracks(number: u64) -> Vec<u8> {
    let mut state = number | 1;
    let mut text = format!("<tracks number=\"{number}\">\n");
    for unit in 0..30 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
        let (id, place) = ((7 * unit) ^ 0x2a, state >> 48);
        writeln!(text, "<track id=\"ALPHA-{id}\"><pos>{place}</pos><speed>12.5</speed></track>")
            .unwrap();
    }
    text.push_str("</tracks>\n");
    text.into_bytes()
}

/// An origin that knows nothing of dictionaries: `/tracks/N` with these fields; what it was asked.
async fn origin(fields: &'static str) -> (Origin, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heads = Arc::clone(&seen);
    let origin = Origin::scripted(move |mut stream| {
        let heads = Arc::clone(&heads);
        async move {
            let head = read_until(&mut stream, "\r\n\r\n").await;
            let path = head.split(' ').nth(1).unwrap();
            let number = path.rsplit('/').next().unwrap().split('?').next().unwrap();
            let body = tracks(number.parse().unwrap_or(0));
            let bodyless = head.starts_with("HEAD");
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nETag: \"v{number}\"\r\n\
                 Content-Length: {}\r\nConnection: close\r\n{fields}\r\n",
                body.len()
            );
            heads.lock().unwrap().push(head.to_ascii_lowercase());
            stream.write_all(answer.as_bytes()).await.unwrap();
            if !bodyless {
                stream.write_all(&body).await.unwrap();
            }
        }
    })
    .await;
    (origin, seen)
}

const FRESH: &str = "Cache-Control: max-age=600\r\n";

/// A gateway that is a reverse proxy for edgeless clients, over a link that is believed slow.
async fn edgeless(origin: &Origin, settings: &str) -> (Side, SocketAddr) {
    let upstream = format!("http_upstream = 'http://{}'", origin.address);
    let slow = "rate_cap = '100 kbit/s'\nadmin = '127.0.0.1:0'";
    let gateway =
        gateway(&format!("http_listen = '127.0.0.1:0'\n{upstream}\n{slow}\n{settings}")).await;
    let address = gateway.http.unwrap();
    (gateway, address)
}

/// What a client of others got.
struct Got {
    status: StatusCode,
    headers: HeaderMap,
    raw: Bytes,
}

impl Got {
    fn coding(&self) -> &str {
        self.headers.get("content-encoding").map_or("identity", |value| value.to_str().unwrap())
    }

    /// The content, by a dictionary if it takes one.
    fn content(&self, dictionary: &[u8]) -> Vec<u8> {
        let settings = Settings::default();
        let with = |form| rfc9842::decode(form, dictionary, &self.raw, &Limits::default());
        match self.coding() {
            "identity" => Ok(self.raw.to_vec()),
            "dcb" => with(Form::Dcb),
            "dcz" => with(Form::Dcz),
            "br" => settings.decode("brotli", &self.raw),
            "gzip" => settings.decode("deflate", &self.raw),
            other => settings.decode(other, &self.raw),
        }
        .unwrap()
    }

    fn vary(&self) -> Vec<String> {
        let lines = self.headers.get_all("vary").iter();
        let names = lines.flat_map(|line| line.to_str().unwrap().split(','));
        names.map(|name| name.trim().to_ascii_lowercase()).collect()
    }

    /// Pattern and name of what is offered.
    fn offer(&self) -> Option<(String, String)> {
        let value = self.headers.get("use-as-dictionary")?.to_str().unwrap();
        let (pattern, id) = value.strip_prefix("match=").unwrap().split_once(", id=").unwrap();
        let text = |quoted: &str| decode_id(quoted.as_bytes()).unwrap();
        Some((text(pattern), text(id)))
    }
}

/// A client of others: a new connection for each request.
async fn ask(address: SocketAddr, method: &str, uri: &str, fields: &[(&str, &str)]) -> Got {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(uri);
    if !fields.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", "a.example");
    }
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let answer = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
    let (parts, body) = answer.into_parts();
    let raw = body.collect().await.unwrap().to_bytes();
    Got { status: parts.status, headers: parts.headers, raw }
}

/// Asks until the answer comes by a dictionary: what such codings make of these answers is learned
/// beside the first of them.
async fn ask_until_encoded(address: SocketAddr, uri: &str, fields: &[(&str, &str)]) -> Got {
    let began = Instant::now();
    while began.elapsed() < common::PATIENCE {
        let answer = ask(address, "GET", uri, fields).await;
        if answer.coding().starts_with("dc") {
            return answer;
        }
    }
    panic!("no answer comes by a dictionary: {fields:?}");
}

/// The hash of a dictionary as a client tells it (RFC 9842 §2.2).
fn hash(content: &[u8]) -> String {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::from(":");
    for chunk in Id::of(content).0.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| (bits << 8) | u32::from(*byte));
        let bits = bits << (8 * (3 - chunk.len()));
        for digit in 0..=chunk.len() {
            text.push(char::from(digits[(bits >> (18 - 6 * digit)) as usize & 63]));
        }
    }
    text.push_str("=:");
    assert_eq!(decode_available(text.as_bytes()), Ok(Id::of(content).0));
    text
}

async fn ignored(gateway: &Side) -> u64 {
    let ask = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let text = Answer::parse(&raw(gateway.admin.unwrap(), ask).await.0).text();
    let name = "longwire_ignored_total{what=\"dictionary\"} ";
    text.lines().find_map(|line| line.strip_prefix(name)?.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn an_answer_that_a_client_keeps_makes_the_next_ones_short() {
    let (origin, seen) = origin(FRESH).await;
    let (gateway, edgeless) = edgeless(&origin, "").await;
    let first = ask(edgeless, "GET", "/tracks/1", &[("accept-encoding", "gzip, br, zstd")]).await;
    let kept = first.content(b"");
    assert_eq!((first.status, &kept), (StatusCode::OK, &tracks(1)));
    let (pattern, id) = first.offer().expect("no offer");
    assert_eq!(pattern, "/tracks/*");
    let hash = hash(&kept);
    let held = [("available-dictionary", &*hash), ("dictionary-id", &format!("\"{id}\""))];
    for (codings, expected) in
        [(ALL, &["dcb", "dcz"][..]), ("gzip, dcz", &["dcz"]), ("dcb", &["dcb"])]
    {
        let fields = [held[0], held[1], ("accept-encoding", codings)];
        let answer = ask_until_encoded(edgeless, "/tracks/22", &fields).await;
        assert!(expected.contains(&answer.coding()), "{codings}: {:?}", answer.headers);
        assert_eq!(answer.content(&kept), tracks(22));
        let gzip = ask(edgeless, "GET", "/tracks/22", &[("accept-encoding", "gzip")]).await;
        let (short, long) = (answer.raw.len(), gzip.raw.len());
        assert!(short * 4 < long * 3, "{codings}: {short} against {long}");
        let both = ALL_THAT_DECIDED;
        assert_eq!(answer.vary(), both);
        assert_eq!(answer.headers["etag"], "W/\"v22\"");
        assert_eq!(answer.headers["content-length"], short.to_string());
        assert!(answer.offer().is_none(), "it has one");
    }
    // The name is optional, and nothing that is relied on (RFC 9842 §2.1.3).
    let other = ("dictionary-id", "\"other\"");
    for fields in [vec![held[0]], vec![held[0], other]] {
        let fields = [fields, vec![("accept-encoding", ALL)]].concat();
        let answer = ask_until_encoded(edgeless, "/tracks/23", &fields).await;
        assert_eq!(answer.content(&kept), tracks(23));
    }
    assert!(seen.lock().unwrap().iter().all(|head| head.contains("accept-encoding: identity")));
    assert_eq!(ignored(&gateway).await, 0);
}

#[tokio::test]
async fn a_dictionary_crosses_to_no_other_client_and_no_other_service() {
    let (origin, _) = origin(FRESH).await;
    let (gateway, edgeless) = edgeless(&origin, "").await;
    let alice = ("authorization", "Basic YWxpY2U6eA==");
    let offered = ask(edgeless, "GET", "/tracks/1", &[alice, ("accept-encoding", "gzip")]).await;
    let (_, id) = offered.offer().expect("no offer");
    let (hash, id) = (hash(&tracks(1)), format!("\"{id}\""));
    let held =
        [("accept-encoding", ALL), ("available-dictionary", &*hash), ("dictionary-id", &*id)];
    let fine = ask_until_encoded(edgeless, "/tracks/2", &[&held[..], &[alice]].concat()).await;
    assert_eq!(fine.content(&tracks(1)), tracks(2));
    let mut expected = ignored(&gateway).await;
    for other in [
        ("authorization", "Basic bWFsbG9yeTp4"),
        ("cookie", "session=1"),
        ("forwarded", "for=192.0.2.7;proto=https"),
        ("host", "b.example"),
        ("x-other", "nobody"),
    ] {
        let answer = ask(edgeless, "GET", "/tracks/2", &[&held[..], &[other]].concat()).await;
        assert!(!answer.coding().starts_with("dc"), "{other:?}: {:?}", answer.headers);
        assert_eq!(answer.content(b""), tracks(2));
        expected += 1;
        eventually(|| async { ignored(&gateway).await == expected }).await;
    }
}

#[tokio::test]
async fn fields_that_nobody_can_mean_are_ignored_with_an_event() {
    let (origin, _) = origin(FRESH).await;
    let (gateway, edgeless) = edgeless(&origin, "").await;
    ask(edgeless, "GET", "/tracks/1", &[("accept-encoding", "gzip")]).await;
    let hash = hash(&tracks(1));
    let (twice, long) = (format!("{hash}, {hash}"), format!(":{}:", "A".repeat(9000)));
    let mut expected = ignored(&gateway).await;
    for fields in [
        vec![("available-dictionary", "nonsense")],
        vec![("available-dictionary", "")],
        vec![("available-dictionary", ":AAAA:")],
        vec![("available-dictionary", &*twice)],
        vec![("available-dictionary", &*long)],
        vec![("available-dictionary", &*hash), ("available-dictionary", &*hash)],
        vec![("available-dictionary", &*hash), ("dictionary-id", "no string")],
        // Another hash under our name.
        vec![
            ("available-dictionary", ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:"),
            ("dictionary-id", "\"longwire-0123456789abcdef\""),
        ],
    ] {
        let fields = [fields, vec![("accept-encoding", ALL)]].concat();
        let answer = ask(edgeless, "GET", "/tracks/2", &fields).await;
        assert_eq!((answer.status, answer.content(b"")), (StatusCode::OK, tracks(2)));
        expected += 1;
        eventually(|| async { ignored(&gateway).await == expected }).await;
    }
}

#[tokio::test]
async fn what_may_not_be_a_dictionary_is_not_offered() {
    for fields in [
        "",
        "Cache-Control: no-store\r\n",
        "Cache-Control: max-age=60, private\r\n",
        "Cache-Control: max-age=60, no-transform\r\n",
        "Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n",
        "Cache-Control: max-age=60\r\nVary: *\r\n",
    ] {
        let (origin, _) = origin(fields).await;
        let (_gateway, edgeless) = edgeless(&origin, "").await;
        let answer = ask(edgeless, "GET", "/tracks/1", &[("accept-encoding", "gzip")]).await;
        assert_eq!((answer.offer(), answer.content(b"")), (None, tracks(1)), "{fields}");
    }
    let (origin, _) = origin(FRESH).await;
    let (_gateway, address) = edgeless(&origin, "").await;
    let gzip = ("accept-encoding", "gzip");
    for (method, path, fields) in [
        ("HEAD", "/tracks/1", vec![gzip]),
        ("POST", "/tracks/1", vec![gzip]),
        ("GET", "/tr%61cks/1", vec![gzip]),
        ("GET", "/tracks:x/1", vec![gzip]),
        ("GET", "/tracks/1", vec![]),
        ("GET", "/tracks/1", vec![gzip, ("range", "bytes=0-9")]),
        ("GET", "/tracks/1", vec![gzip, ("x-forwarded-proto", "http")]),
        (
            "GET",
            "/tracks/1",
            vec![gzip, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "cors")],
        ),
    ] {
        let answer = ask(address, method, path, &fields).await;
        assert!(answer.offer().is_none(), "{method} {path} {fields:?}");
    }
    assert!(ask(address, "GET", "/tracks/1", &[gzip]).await.offer().is_some());
    // Where the choice is not learned there is none for dictionaries either.
    let (_gateway, fixed) = edgeless(&origin, "encoding = 'zstd:3'").await;
    assert!(ask(fixed, "GET", "/tracks/1", &[("accept-encoding", "zstd")]).await.offer().is_none());
}

/// An origin that has given dictionaries of its own: what it says, byte for byte.
async fn origin_with_dictionaries(seen: Arc<Mutex<Vec<String>>>) -> Origin {
    Origin::scripted(move |mut stream| {
        let seen = Arc::clone(&seen);
        async move {
            let head = read_until(&mut stream, "\r\n\r\n").await.to_ascii_lowercase();
            let coded = coded_by_origin();
            let has = head.contains("available-dictionary") && head.contains("dcz");
            let (body, fields) = match has {
                true => (coded, "Content-Encoding: dcz\r\n"),
                false => (tracks(1), ""),
            };
            seen.lock().unwrap().push(head);
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n{fields}{FRESH}\
                 Use-As-Dictionary: match=\"/tracks/*\", match-dest=(\"\"), id=\"own 1\"\r\n\
                 Vary: Accept-Encoding, Available-Dictionary\r\nETag: \"own\"\r\n\
                 Content-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.write_all(&body).await.unwrap();
        }
    })
    .await
}

fn coded_by_origin() -> Vec<u8> {
    rfc9842::encode(Form::Dcz, &tracks(1), &tracks(2), None, &Limits::default()).unwrap()
}

#[tokio::test]
async fn an_origins_own_dictionaries_pass_untouched() {
    let seen = Arc::default();
    let origin = origin_with_dictionaries(Arc::clone(&seen)).await;
    let (_gateway, reverse) = edgeless(&origin, "").await;
    let (edge, _gateway) = pair("", "").await;
    let url = origin.url("/tracks/2");
    for (address, uri) in [(reverse, "/tracks/2"), (edge.address, &*url)] {
        let own = "match=\"/tracks/*\", match-dest=(\"\"), id=\"own 1\"";
        let first = ask(address, "GET", uri, &[("accept-encoding", "gzip, zstd")]).await;
        assert_eq!(first.content(b""), tracks(1));
        assert_eq!(first.headers["use-as-dictionary"], own);
        let hash = hash(&tracks(1));
        let held = [
            ("accept-encoding", ALL),
            ("available-dictionary", &*hash),
            ("dictionary-id", "\"own 1\""),
        ];
        let answer = ask(address, "GET", uri, &held).await;
        let head = seen.lock().unwrap().last().unwrap().clone();
        for line in [
            "accept-encoding: dcb, dcz".to_owned(),
            format!("available-dictionary: {hash}").to_ascii_lowercase(),
            "dictionary-id: \"own 1\"".to_owned(),
        ] {
            assert!(head.lines().any(|other| other == line), "{line} is not in {head}");
        }
        assert_eq!(answer.raw, coded_by_origin(), "{uri}");
        assert_eq!(answer.content(&tracks(1)), tracks(2));
        assert_eq!(answer.headers["use-as-dictionary"], own);
        assert_eq!(answer.headers["etag"], "\"own\"");
        assert_eq!(answer.vary(), ["accept-encoding", "available-dictionary"]);
    }
}

#[tokio::test]
async fn parts_and_answers_that_must_not_change_take_no_dictionary() {
    let (origin, _) = origin("Cache-Control: max-age=60\r\n").await;
    let (_gateway, edgeless) = edgeless(&origin, "").await;
    ask(edgeless, "GET", "/tracks/1", &[("accept-encoding", "gzip")]).await;
    let hash = hash(&tracks(1));
    let held = [("accept-encoding", ALL), ("available-dictionary", &*hash)];
    for more in [
        ("range", "bytes=0-9"),
        ("cache-control", "no-transform"),
        ("x-forwarded-proto", "http"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let fields = [&held[..], &[more, ("sec-fetch-mode", "no-cors")]].concat();
        let answer = ask(edgeless, "GET", "/tracks/2", &fields).await;
        assert!(!answer.coding().starts_with("dc"), "{more:?}: {:?}", answer.headers);
        assert_eq!(answer.content(b""), tracks(2));
    }
    let head = ask(edgeless, "HEAD", "/tracks/2", &held).await;
    assert!(head.raw.is_empty() && !head.headers.contains_key("content-length"));
    assert_eq!(head.vary(), ALL_THAT_DECIDED);
}
