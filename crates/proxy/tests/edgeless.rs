//! Clients that have no edge, and that know nothing of this project or only its profiles: what they
//! get from a gateway's listener for them.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use codec::Settings;
use common::origin::Origin;
use common::{
    Answer, Side, edge, eventually, gateway, get, pair, raw, read_until, send, text_like,
};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use proto::profile::{Decoding, Link, Model, Profile, encode_field};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// A gateway whose listener for edgeless clients is a forward proxy, over a link that is believed
/// slow, for which coding always gains.
async fn edgeless(settings: &str) -> (Side, SocketAddr) {
    let slow = if settings.contains("rate_cap") { "" } else { "rate_cap = '100 kbit/s'\n" };
    let gateway = gateway(&format!("http_listen = '127.0.0.1:0'\n{slow}{settings}")).await;
    let address = gateway.http.unwrap();
    (gateway, address)
}

fn decoded(answer: &Answer) -> Vec<u8> {
    let codec = match answer.head.lines().find_map(|line| line.strip_prefix("content-encoding: ")) {
        None => return answer.body.clone(),
        Some("gzip" | "deflate") => "deflate",
        Some("br") => "brotli",
        Some(other) => other,
    };
    Settings::default().decode(codec, &answer.body).unwrap()
}

fn hash(model: &Model) -> [u8; 8] {
    let mut bytes = Vec::new();
    model.encode(&mut bytes);
    let digest = ring::digest::digest(&ring::digest::SHA256, &bytes);
    *digest.as_ref().first_chunk().unwrap()
}

fn profile(per_byte_s: f32) -> Profile {
    let decoding = |codec| Decoding { codec, fixed_s: 0.0, per_byte_s };
    let model = Model { encodings: (1..=3).map(decoding).collect() };
    Profile { hash: hash(&model), model: Some(model), link: None }
}

fn field(profile: &Profile) -> String {
    format!("Accept-Encoding: gzip, br, zstd\r\nLongwire-Profile: {}\r\n", encode_field(profile))
}

async fn metric(gateway: &Side, line: &str) -> bool {
    let ask = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = Answer::parse(&raw(gateway.admin.unwrap(), ask).await.0);
    answer.text().lines().any(|other| other == line)
}

#[tokio::test]
async fn a_client_that_says_nothing_gets_content_as_it_is() {
    let origin = Origin::start().await;
    let (_gateway, edgeless) = edgeless("").await;
    for path in ["/text/30000", "/text/300000", "/stream/300000"] {
        let answer = get(edgeless, &origin.url(path), "").await;
        let len = path.rsplit('/').next().unwrap().parse().unwrap();
        assert_eq!((answer.status, &answer.body), (200, &text_like(len, 7)), "{path}");
        assert!(!answer.head.contains("content-encoding"), "{}", answer.head);
        assert!(answer.has("vary: accept-encoding"), "{}", answer.head);
        assert_eq!(answer.has(&format!("content-length: {len}")), path.starts_with("/text"));
        assert_eq!(origin.last()["accept-encoding"], "identity");
    }
}

#[tokio::test]
async fn content_comes_in_a_coding_that_the_client_takes() {
    let origin = Origin::start().await;
    let (_gateway, edgeless) = edgeless("").await;
    for (fields, expected) in [
        ("gzip", "gzip"),
        ("deflate", "deflate"),
        ("br;q=0.9, gzip;q=0.8", "br"),
        ("zstd", "zstd"),
        ("compress, gzip;q=0.001", "gzip"),
    ] {
        for path in ["/text/3000", "/text/300000", "/stream/300000"] {
            let fields = format!("Accept-Encoding: {fields}\r\n");
            let answer = get(edgeless, &origin.url(path), &fields).await;
            let len = path.rsplit('/').next().unwrap().parse().unwrap();
            assert!(answer.has(&format!("content-encoding: {expected}")), "{}", answer.head);
            assert!(answer.has("vary: accept-encoding"), "{}", answer.head);
            assert!(answer.body.len() < len / 2, "{path} {fields}: {}", answer.body.len());
            assert_eq!(decoded(&answer), text_like(len, 7), "{path} {fields}");
            let known = format!("content-length: {}", answer.body.len());
            assert_eq!(answer.has(&known), len <= 60_000, "{}", answer.head);
        }
    }
    for fields in ["gzip;q=0", "identity, gzip;q=0.5", "compress", ""] {
        let fields = format!("Accept-Encoding: {fields}\r\n");
        let answer = get(edgeless, &origin.url("/text/30000"), &fields).await;
        assert_eq!(answer.body, text_like(30_000, 7), "{fields}");
    }
    let only = "Accept-Encoding: zstd, identity;q=0\r\n";
    let answer = get(edgeless, &origin.url("/hello"), only).await;
    assert_eq!(decoded(&answer), b"hello\n");
    assert!(answer.has("content-encoding: zstd"));
}

#[tokio::test]
async fn what_does_not_gain_or_must_not_change_goes_as_it_is() {
    let origin = Origin::start().await;
    let (_gateway, edgeless) = edgeless("").await;
    let gzip = "Accept-Encoding: gzip\r\n";
    let mut noise = vec![0; 100_000];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut noise).unwrap();
    let answer = send(edgeless, "POST", &origin.url("/echo"), gzip, &noise).await;
    assert!(answer.body == noise && answer.has("content-length: 100000"), "{}", answer.head);
    for (path, fields) in [
        ("/coded", gzip.to_owned()),
        ("/text/9000", format!("{gzip}Range: bytes=0-9\r\n")),
        ("/text/9000", format!("{gzip}Cache-Control: no-transform\r\n")),
        ("/hello", gzip.to_owned()),
    ] {
        let answer = get(edgeless, &origin.url(path), &fields).await;
        let direct = get(origin.address, &origin.url(path), &fields).await;
        assert_eq!(answer.body, direct.body, "{path} {fields}");
        assert_eq!(
            answer.head.contains("content-encoding"),
            direct.head.contains("content-encoding")
        );
    }
    let head = send(edgeless, "HEAD", &origin.url("/text/70000"), "", b"").await;
    assert!(head.has("content-length: 70000") && head.has("vary: accept-encoding"));
    let head = send(edgeless, "HEAD", &origin.url("/text/70000"), gzip, b"").await;
    assert!(!head.head.contains("content-length"), "{}", head.head);
    let known = format!("{gzip}If-None-Match: W/\"v1\"\r\n");
    let unchanged = get(edgeless, &origin.url("/status/304"), &known).await;
    assert!(unchanged.status == 304 && unchanged.has("etag: w/\"v1\""), "{}", unchanged.head);
    let refused = get(edgeless, "http://10.0.0.1/x", gzip).await;
    assert_eq!(refused.status, 403);
}

#[tokio::test]
async fn a_client_that_decodes_slowly_gets_content_as_it_is() {
    let origin = Origin::start().await;
    let (_gateway, edgeless) = edgeless("").await;
    let url = origin.url("/text/60000");
    // Ten thousand bytes a second, where the link carries a little more.
    let slow = get(edgeless, &url, &field(&profile(1e-4))).await;
    assert_eq!(slow.body, text_like(60_000, 7), "{}", slow.head);
    assert!(!origin.last().contains_key("longwire-profile"));
    let fast = get(edgeless, &url, &field(&profile(1e-9))).await;
    assert!(fast.head.contains("content-encoding"), "{}", fast.head);
    assert_eq!(decoded(&fast), text_like(60_000, 7));
    assert!(!slow.head.contains("wanted") && !fast.head.contains("wanted"));
}

#[tokio::test]
async fn a_link_that_the_client_says_is_fast_is_believed_until_measured() {
    let origin = Origin::start().await;
    let (_gateway, edgeless) = edgeless("rate_cap = '100 Gbit/s'").await;
    let slow = Some(Link { rate_bps: 20_000.0, rtt_s: 0.1, loss: 0.0 });
    let fast = Some(Link { rate_bps: 1e11, rtt_s: 1e-5, loss: 0.0 });
    let url = origin.url("/text/60000");
    let answer = get(edgeless, &url, &field(&Profile { link: slow, ..profile(1e-8) })).await;
    assert!(answer.head.contains("content-encoding"), "{}", answer.head);
    let answer = get(edgeless, &url, &field(&Profile { link: fast, ..profile(1e-8) })).await;
    assert!(!answer.head.contains("content-encoding"), "{}", answer.head);
}

#[tokio::test]
async fn a_model_that_was_reported_once_is_known_by_its_hash() {
    let origin = Origin::start().await;
    let (_gateway, edgeless) = edgeless("").await;
    let url = origin.url("/text/60000");
    let whole = profile(1e-4);
    let short = Profile { model: None, ..whole.clone() };
    let answer = get(edgeless, &url, &field(&short)).await;
    assert!(answer.has("longwire-profile-wanted: ?1") && decoded(&answer).len() == 60_000);
    get(edgeless, &url, &field(&whole)).await;
    let answer = get(edgeless, &url, &field(&short)).await;
    assert!(!answer.head.contains("wanted") && !answer.head.contains("content-encoding"));
}

#[tokio::test]
async fn profiles_that_nobody_can_mean_are_ignored_with_an_event() {
    let origin = Origin::start().await;
    let (gateway, edgeless) = edgeless("admin = '127.0.0.1:0'").await;
    let url = origin.url("/text/30000");
    let whole = encode_field(&profile(1e-9));
    let forged = Profile { hash: [7; 8], ..profile(1e-9) };
    let slower = Profile { model: profile(-1.0).model, ..profile(1e-9) };
    let over = |rate_bps| {
        let link = Some(Link { rate_bps, rtt_s: 0.1, loss: 0.0 });
        Profile { link, ..profile(1e-9) }
    };
    let mut count = 0;
    for value in [
        "nonsense".to_owned(),
        String::new(),
        ":AAAA:".to_owned(),
        ":AgME:".to_owned(),
        format!("{whole}, {whole}"),
        format!("{whole}\r\nLongwire-Profile: {whole}"),
        encode_field(&forged),
        encode_field(&slower),
        encode_field(&over(0.0)),
        encode_field(&over(f32::INFINITY)),
        format!(":{}:", "A".repeat(5000)),
        "\u{e9}".to_owned(),
    ] {
        let fields = format!("Accept-Encoding: gzip\r\nLongwire-Profile: {value}\r\n");
        let answer = get(edgeless, &url, &fields).await;
        assert_eq!((answer.status, decoded(&answer)), (200, text_like(30_000, 7)), "{value}");
        assert!(!origin.last().contains_key("longwire-profile"));
        count += 1;
        let line = format!("longwire_ignored_total{{what=\"profile\"}} {count}");
        eventually(|| metric(&gateway, &line)).await;
    }
}

#[tokio::test]
async fn a_soap_header_block_is_heeded_and_passes_untouched() {
    let origin = Origin::start().await;
    let (gateway, edgeless) = edgeless("admin = '127.0.0.1:0'").await;
    let filler = String::from_utf8(text_like(60_000, 7)).unwrap().replace(['<', '>'], "");
    let answer = async |block: &str, envelope: &str| {
        let message = format!(
            "<e:Envelope xmlns:e=\"{envelope}\"><e:Header>{block}</e:Header>\
             <e:Body><get xmlns=\"urn:x\">{filler}</get></e:Body></e:Envelope>"
        );
        let fields = "Content-Type: text/xml\r\nAccept-Encoding: gzip\r\n";
        let answer = send(edgeless, "POST", &origin.url("/echo"), fields, message.as_bytes()).await;
        assert_eq!(decoded(&answer), message.as_bytes());
        answer.has("content-encoding: gzip")
    };
    for version in proto::profile::soap::Version::ALL {
        let soap = version.namespace();
        let block = |profile: &Profile| proto::profile::soap::encode_block(profile, version);
        assert!(answer(&block(&profile(1e-9)), soap).await);
        // Its decoder is slower than the link.
        assert!(!answer(&block(&profile(1.2e-4)), soap).await);
        assert!(answer(&block(&profile(-1.0)), soap).await);
    }
    eventually(|| metric(&gateway, "longwire_ignored_total{what=\"profile\"} 2")).await;
}

#[tokio::test]
async fn a_stream_comes_as_it_is_made() {
    let origin = Origin::scripted(|mut stream| async move {
        read_until(&mut stream, "\r\n\r\n").await;
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let event = format!("data: {}\n\n", "a".repeat(90));
        let chunk = format!("{head}{:x}\r\n{event}\r\n", event.len());
        stream.write_all(chunk.as_bytes()).await.unwrap();
        // Nothing more comes, and no end: what was made has to be there all the same.
        std::future::pending::<()>().await;
    })
    .await;
    let (_gateway, edgeless) = edgeless("").await;
    let mut stream = TcpStream::connect(edgeless).await.unwrap();
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n",
        origin.url("/events")
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let reading = tokio::io::AsyncReadExt::read(&mut stream, &mut buffer);
        let len = tokio::time::timeout(common::PATIENCE, reading).await.expect("hangs").unwrap();
        assert!(len > 0, "closed behind {:?}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&buffer[..len]);
        let Some(at) = bytes.windows(2).position(|pair| pair == [0x1f, 0x8b]) else { continue };
        let mut back = Vec::new();
        let mut decoder = Settings::default().decoder("deflate").unwrap();
        decoder.decode(&bytes[at..], false, &mut back).unwrap();
        if back.starts_with(b"data: ") && back.len() == 98 {
            break;
        }
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_does_not_look_whole() {
    let origin = Origin::scripted(|mut stream| async move {
        read_until(&mut stream, "\r\n\r\n").await;
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&text_like(200_000, 3)).await.unwrap();
    })
    .await;
    let (_gateway, edgeless) = edgeless("").await;
    let url = origin.url("/x");
    let ask = format!("GET {url} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    let (bytes, _) = raw(edgeless, ask).await;
    assert!(!bytes.ends_with(b"0\r\n\r\n"));
    let old = format!("GET {url} HTTP/1.0\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    let (_, orderly) = raw(edgeless, old).await;
    assert!(!orderly, "a client of HTTP/1.0 sees no end but the close");
}

#[tokio::test]
async fn a_service_that_calls_others_is_client_and_server_at_once() {
    let far = Origin::start().await;
    let gateway_of_pair = gateway("").await;
    let edge = edge(&format!("gateway = '{}'", gateway_of_pair.address)).await;
    let (through, url) = (edge.address, far.url("/text/40000"));
    // Unmodified: it asks another service by a proxy, and answers with what it got.
    let near = Origin::scripted(move |mut stream| {
        let url = url.clone();
        async move {
            read_until(&mut stream, "\r\n\r\n").await;
            let inner = get(through, &url, "").await;
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
                inner.body.len()
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&inner.body).await.unwrap();
        }
    })
    .await;
    let (_gateway, edgeless) = edgeless("").await;
    let answer = get(edgeless, &near.url("/chain"), "Accept-Encoding: br\r\n").await;
    assert!(answer.has("content-encoding: br"), "{}", answer.head);
    assert_eq!(decoded(&answer), text_like(40_000, 7));
}

/// Answers a SOAP message with the same, and asks for a model, as services that know profiles do.
fn knows_profiles(message: &str) -> String {
    let body = &message[message.find("<e:").unwrap()..];
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nLongwire-Profile-Wanted: ?1\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn profiles_cross_a_chain_of_pairs_both_ways_untouched() {
    const END: &str = "</e:Envelope>";
    let seen = Arc::new(Mutex::new(String::new()));
    let far = {
        let seen = Arc::clone(&seen);
        Origin::scripted(move |mut stream| {
            let seen = Arc::clone(&seen);
            async move {
                let message = read_until(&mut stream, END).await;
                seen.lock().unwrap().clone_from(&message);
                stream.write_all(knows_profiles(&message).as_bytes()).await.unwrap();
            }
        })
        .await
    };
    let (second, _far_gateway) = pair("", "").await;
    let (through, url) = (second.address, far.url("/far"));
    let value = encode_field(&profile(1e-9));
    let fields = format!("Content-Type: text/xml\r\nLongwire-Profile: {value}\r\n");
    let line = format!("longwire-profile: {value}");
    let has =
        |message: &str| message.lines().any(|other| other.trim_end().eq_ignore_ascii_case(&line));
    let asked = fields.clone();
    let near = Origin::scripted(move |mut stream| {
        let (url, fields) = (url.clone(), asked.clone());
        async move {
            let message = read_until(&mut stream, END).await;
            let body = &message[message.find("<e:").unwrap()..];
            let inner = send(through, "POST", &url, &fields, body.as_bytes()).await;
            assert!(inner.has("longwire-profile-wanted: ?1"), "{}", inner.head);
            // What it heard and what it got, so that the client sees both.
            let body = format!("{}{}", inner.text(), message.replace("<e:", "<f:"));
            stream.write_all(knows_profiles(&body).as_bytes()).await.unwrap();
        }
    })
    .await;
    let (first, _near_gateway) = pair("", "").await;
    let version = proto::profile::soap::Version::ALL[0];
    let block = proto::profile::soap::encode_block(&profile(1e-9), version);
    let soap = version.namespace();
    let filler = String::from_utf8(text_like(30_000, 7)).unwrap().replace(['<', '>'], "");
    let message = format!(
        "<e:Envelope xmlns:e=\"{soap}\"><e:Header>{block}</e:Header>\
         <e:Body><get xmlns=\"urn:x\">{filler}</get></e:Body></e:Envelope>"
    );
    let url = near.url("/near");
    let answer = send(first.address, "POST", &url, &fields, message.as_bytes()).await;
    assert!(answer.has("longwire-profile-wanted: ?1"), "{}", answer.head);
    assert!(answer.text().starts_with(&message), "the answer of the far service");
    assert!(has(&answer.text()[message.len()..]), "what the near service heard");
    let seen = seen.lock().unwrap();
    assert!(has(&seen) && seen.ends_with(&message), "what the far service heard");
}

#[tokio::test]
async fn a_reverse_proxy_and_a_client_of_others() {
    let origin = Origin::start().await;
    let upstream = format!("http_upstream = 'http://{}/text'", origin.address);
    let (_gateway, edgeless) = edgeless(&upstream).await;
    let stream = TcpStream::connect(edgeless).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for (len, coding) in [(500_000, "gzip"), (20_000, "zstd"), (90, "br"), (0, "gzip")] {
        let request = http::Request::builder()
            .uri(format!("/{len}"))
            .header("host", "a")
            .header("accept-encoding", coding)
            .body(Empty::<Bytes>::new())
            .unwrap();
        let answer = sender.send_request(request).await.unwrap();
        let coded = answer.headers().get("content-encoding").cloned();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let codec = match coding {
            "gzip" => "deflate",
            "br" => "brotli",
            other => other,
        };
        let body = match coded {
            Some(_) => Settings::default().decode(codec, &body).unwrap(),
            None => body.to_vec(),
        };
        assert_eq!(body, text_like(len, 7), "{len} {coding}");
    }
}

#[tokio::test]
async fn curl_reads_what_it_gets() {
    let origin = Origin::start().await;
    let (_gateway, edgeless) = edgeless("").await;
    for (flags, len) in [(&["--compressed"][..], 300_000), (&[], 300_000), (&["--compressed"], 50)]
    {
        let output = tokio::process::Command::new("curl")
            .args(["--silent", "--show-error", "--max-time", "20", "--noproxy", ""])
            .args(["--proxy", &format!("http://{edgeless}"), &origin.url(&format!("/text/{len}"))])
            .args(flags)
            .output()
            .await;
        let Ok(output) = output else { return println!("left out: there is no curl here") };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.stdout, text_like(len, 7), "{flags:?}");
    }
}

#[tokio::test]
async fn the_listener_ends_in_order() {
    let origin = Origin::start().await;
    let (gateway, edgeless) = edgeless("").await;
    get(edgeless, &origin.url("/hello"), "").await;
    let idle = TcpStream::connect(edgeless).await.unwrap();
    let before = std::time::Instant::now();
    gateway.stop().await;
    assert!(before.elapsed() < common::PATIENCE, "it waited for a client that idles");
    drop(idle);
    assert!(TcpStream::connect(edgeless).await.is_err());
}
