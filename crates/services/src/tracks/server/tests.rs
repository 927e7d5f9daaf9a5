use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::site::Site;
use super::{Config, route};
use crate::Error;
use crate::server::Settings;
use crate::tracks::soap::{self, Version};

const SEED: u64 = 5;

/// A server in this process.
struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

fn config(listen: SocketAddr) -> Config {
    Config { listen, seed: SEED, congestion: None, settings: Settings::default() }
}

fn any_port() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn start() -> Running {
    let server = config(any_port()).bind().unwrap();
    let (stop, stopped) = oneshot::channel();
    let address = server.address();
    let task = tokio::spawn(server.run(async move {
        let _ = stopped.await;
    }));
    Running { address, stop, task }
}

/// Sends bytes and reads until the server closes.
async fn raw(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A server that refuses early may close before all is written.
    let _ = stream.write_all(request).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await;
    let _ = read.expect("the server neither answers nor closes");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Answers a request without a socket.
fn ask(request: http::request::Builder, body: &str) -> Response<Bytes> {
    let site = site();
    let (parts, ()) = request.header("host", "h:1").body(()).unwrap().into_parts();
    route::answer(site, &parts, body.as_bytes())
}

fn get(path: &str) -> http::request::Builder {
    Request::get(path)
}

fn header<'a>(response: &'a Response<Bytes>, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

fn text(response: &Response<Bytes>) -> &str {
    std::str::from_utf8(response.body()).unwrap()
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    plain
}

#[test]
fn rest_forms_have_their_types_and_lengths() {
    for (path, media) in [
        ("/rest/xml/7", "application/xml; charset=utf-8"),
        ("/rest/json/7", "application/json"),
        ("/", "text/plain; charset=utf-8"),
        ("/soap?wsdl", "text/xml; charset=utf-8"),
        ("/soap?WSDL", "text/xml; charset=utf-8"),
    ] {
        let response = ask(get(path), "");
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert_eq!(header(&response, "content-type"), media);
        assert_eq!(header(&response, "vary"), "Accept, Accept-Encoding");
        let length = response.body().len().to_string();
        assert_eq!(header(&response, "content-length"), length);
        let head = ask(Request::head(path), "");
        assert_eq!((header(&head, "content-length"), head.body().len()), (length.as_str(), 0));
        assert_eq!(header(&head, "content-type"), media);
    }
}

#[test]
fn gzip_is_used_when_asked_for_and_only_then() {
    for path in ["/rest/xml/7", "/rest/json/7", "/soap?wsdl", "/"] {
        let plain = ask(get(path), "");
        assert_eq!(header(&plain, "content-encoding"), "");
        let gzip = ask(get(path).header("accept-encoding", "deflate, gzip;q=0.5"), "");
        assert_eq!(header(&gzip, "content-encoding"), "gzip");
        assert_eq!(gunzip(gzip.body()), plain.body().as_ref());
        let refused = ask(get(path).header("accept-encoding", "gzip;q=0"), "");
        assert_eq!(header(&refused, "content-encoding"), "");
    }
    let call = soap_call(Version::Soap11).header("accept-encoding", "gzip");
    let response = ask(call, &soap::request(Version::Soap11, 3));
    assert_eq!(header(&response, "content-encoding"), "gzip");
    assert_eq!(header(&response, "vary"), "Accept-Encoding");
}

#[test]
fn what_cannot_be_answered_is_refused_with_the_status_of_the_standard() {
    let cases = [
        (get("/none"), 404),
        (get("/rest/xml/0"), 404),
        (get("/rest/xml/23"), 404),
        (get("/rest/xml/+7"), 404),
        (get("/rest/xml/7/"), 404),
        (get("/rest/json/99999999999999999999999"), 404),
        (get("/rest/json/"), 404),
        (get("/soap"), 405),
        (Request::post("/rest/xml/7"), 405),
        (Request::delete("/"), 405),
        (Request::options("/soap?wsdl"), 405),
        (Request::builder().method("BREW").uri("/"), 501),
        (get("/rest/xml/7").header("accept", "application/json"), 406),
        (get("/rest/json/7").header("accept", "application/json;q=0, */*"), 406),
        (get("/rest/json/7").header("accept-encoding", "identity;q=0"), 406),
        (get("/rest/json/7").header("host", "twice"), 400),
    ];
    for (request, status) in cases {
        let shown = format!("{request:?}");
        let response = ask(request, "");
        assert_eq!(response.status().as_u16(), status, "{shown}");
        assert_eq!(header(&response, "content-type"), "text/plain; charset=utf-8");
        assert_eq!(text(&response).lines().count(), 1, "{}", text(&response));
    }
    assert_eq!(header(&ask(get("/soap"), ""), "allow"), "POST");
    assert_eq!(header(&ask(Request::post("/"), ""), "allow"), "GET, HEAD");
}

#[test]
fn a_host_is_demanded_and_ends_up_in_the_description() {
    let wsdl = ask(get("/soap?wsdl"), "");
    assert!(text(&wsdl).contains("location=\"http://h:1/soap\""));
    let absolute = ask(get("http://other:9/soap?wsdl"), "");
    assert!(text(&absolute).contains("location=\"http://other:9/soap\""));
    let site = site();
    for host in [None, Some(""), Some("a b"), Some("\"><x"), Some("a/b")] {
        let mut request = get("/");
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let status = route::answer(site, &parts, b"").status();
        assert_eq!(status, StatusCode::BAD_REQUEST, "{host:?}");
    }
    let old = get("/").version(http::Version::HTTP_10).body(()).unwrap().into_parts().0;
    assert_eq!(route::answer(site, &old, b"").status(), StatusCode::OK);
}

fn soap_call(version: Version) -> http::request::Builder {
    let media = format!("{}; charset=utf-8", version.media_type());
    Request::post("/soap").header("content-type", media)
}

#[test]
fn soap_of_both_versions_is_answered_in_kind() {
    for version in [Version::Soap11, Version::Soap12] {
        let response = ask(soap_call(version), &soap::request(version, 7));
        assert_eq!(response.status(), StatusCode::OK);
        let media = format!("{}; charset=utf-8", version.media_type());
        assert_eq!(header(&response, "content-type"), media);
        assert!(text(&response).contains("<NFFIMessage"));
        let fault = ask(soap_call(version), &soap::request(version, 23));
        let status = if version == Version::Soap11 { 500 } else { 400 };
        assert_eq!(fault.status().as_u16(), status);
        assert_eq!(header(&fault, "content-type"), media);
        assert!(text(&fault).contains("1 to 22"), "{}", text(&fault));
    }
}

#[test]
fn soap_media_types_must_be_those_of_the_message() {
    let body = soap::request(Version::Soap11, 7);
    for media in ["application/json", "text/plain", "nonsense", "application/soap+xml"] {
        let response = ask(Request::post("/soap").header("content-type", media), &body);
        assert_eq!(response.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "{media}");
    }
    assert_eq!(ask(Request::post("/soap"), &body).status().as_u16(), 415);
    let coded = ask(soap_call(Version::Soap11).header("content-encoding", "gzip"), &body);
    assert_eq!((coded.status().as_u16(), header(&coded, "accept-encoding")), (415, "identity"));
}

#[test]
fn soap_actions_must_be_ours_or_absent() {
    let (v11, v12) = (soap::request(Version::Soap11, 7), soap::request(Version::Soap12, 7));
    for (action, status) in [(soap::ACTION, 200), ("", 200), ("urn:other", 500)] {
        for quoted in [format!("\"{action}\""), action.to_owned()] {
            let call = soap_call(Version::Soap11).header("soapaction", quoted);
            assert_eq!(ask(call, &v11).status().as_u16(), status, "{action}");
        }
    }
    for (action, status) in [(soap::ACTION, 200), ("urn:other", 400)] {
        let media = format!("application/soap+xml; action=\"{action}\"");
        let call = Request::post("/soap").header("content-type", media);
        assert_eq!(ask(call, &v12).status().as_u16(), status, "{action}");
    }
}

#[test]
fn soap_is_read_in_utf_8_and_utf_16() {
    let site = site();
    let text = soap::request(Version::Soap11, 7);
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let marked = |mark: &[u8], bytes: &[u8]| [mark, bytes].concat();
    let cases = [
        ("text/xml", marked(&[0xff, 0xfe], &little), 200),
        ("text/xml; charset=utf-16", marked(&[0xfe, 0xff], &big), 200),
        ("text/xml; charset=UTF-16LE", little.clone(), 200),
        ("text/xml; charset=utf-16", big, 200),
        ("text/xml", marked(&[0xef, 0xbb, 0xbf], text.as_bytes()), 200),
        ("text/xml; charset=us-ascii", text.clone().into_bytes(), 200),
        ("text/xml; charset=utf-8", little, 500),
        ("text/xml", vec![0xff, 0xfe, 0x00], 500),
        ("text/xml; charset=utf-8", vec![0xc3, 0x28], 500),
        ("text/xml; charset=koi8-r", text.into_bytes(), 500),
    ];
    for (media, body, status) in cases {
        let request = Request::post("/soap").header("host", "h").header("content-type", media);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        assert_eq!(route::answer(site, &parts, &body).status().as_u16(), status, "{media}");
    }
}

#[tokio::test]
async fn connections_are_kept_and_framed_by_length() {
    let server = start();
    let requests = "GET /rest/xml/1 HTTP/1.1\r\nHost: h\r\n\r\n\
                    HEAD /rest/xml/1 HTTP/1.1\r\nHost: h\r\n\r\n\
                    GET /none HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    let answers = raw(server.address, requests.as_bytes()).await.to_ascii_lowercase();
    assert_eq!(answers.matches("http/1.1 200 ok").count(), 2, "{answers}");
    assert_eq!(answers.matches("http/1.1 404 not found").count(), 1);
    assert_eq!(answers.matches("content-length: ").count(), 3);
    assert!(!answers.contains("transfer-encoding"));
    assert_eq!(answers.matches("<nffimessage").count(), 1);
}

#[tokio::test]
async fn content_is_awaited_with_100_and_refused_when_too_large() {
    let server = start();
    let body = soap::request(Version::Soap11, 7);
    let head = |length: usize| {
        format!(
            "POST /soap HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Type: text/xml\r\n\
             Expect: 100-continue\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    let answer = raw(server.address, (head(body.len()) + &body).as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK"), "{answer}");
    let answer = raw(server.address, head(65_537).as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    let chunk = format!("{:x}\r\n{}\r\n", 40_000, " ".repeat(40_000));
    let chunked = format!(
        "POST /soap HTTP/1.1\r\nHost: h\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\
         \r\n\r\n{chunk}{chunk}0\r\n\r\n"
    );
    let answer = raw(server.address, chunked.as_bytes()).await;
    assert!(answer.contains("413 Payload Too Large"), "{answer}");
    assert!(answer.contains("65536 bytes"), "{answer}");
}

#[tokio::test]
async fn hostile_bytes_end_their_connection_and_nothing_else() {
    let server = start();
    let hostile: [&[u8]; 7] = [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET  HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /soap HTTP/1.1\r\nHost: h\r\nContent-Type: text/xml\r\n\
          Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nHost : h\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ];
    for bytes in hostile {
        let answer = raw(server.address, bytes).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    let long = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(100_000));
    let answer = raw(server.address, long.as_bytes()).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    let good = "GET /rest/json/1 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    assert!(raw(server.address, good.as_bytes()).await.contains("{\"NFFIMessage\""));
}

#[tokio::test]
async fn a_request_that_breaks_off_leaves_the_server_serving() {
    let server = start();
    for part in [
        "",
        "GET /re",
        "POST /soap HTTP/1.1\r\nHost: h\r\nContent-Type: text/xml\r\n\
                 Content-Length: 100\r\n\r\n<a>",
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(part.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        let read = tokio::time::timeout(Duration::from_secs(10), read).await;
        let _ = read.expect("the server keeps half a request open");
    }
    server.stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(5), server.task).await.unwrap().unwrap();
}

#[tokio::test]
async fn stopping_ends_idle_connections_and_finishes_what_is_under_way() {
    let server = start();
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    let mut busy = TcpStream::connect(server.address).await.unwrap();
    let body = soap::request(Version::Soap11, 7);
    let head = format!(
        "POST /soap HTTP/1.1\r\nHost: h\r\nContent-Type: text/xml\r\nExpect: 100-continue\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    busy.write_all(head.as_bytes()).await.unwrap();
    let mut interim = [0; 25];
    busy.read_exact(&mut interim).await.unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    idle.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    assert!(idle.read(&mut [0; 4096]).await.unwrap() > 0);

    server.stop.send(()).unwrap();
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty() || !rest.starts_with(b"HTTP"));
    busy.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    busy.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("</soap:Envelope>"));
    tokio::time::timeout(Duration::from_secs(5), server.task).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_port_in_use_and_a_foreign_address_are_the_callers_fault() {
    let server = start();
    let taken = config(server.address).bind().unwrap_err();
    let Error::Caller(line) = &taken else { panic!("{taken:?}") };
    assert!(line.contains(&server.address.to_string()) && line.contains("another port"), "{line}");
    let elsewhere = config("192.0.2.1:80".parse().unwrap()).bind().unwrap_err();
    assert!(elsewhere.to_string().contains("an address of this machine"), "{elsewhere}");
}

#[tokio::test]
async fn congestion_control_is_set_and_read_back() {
    let with = |name: &str| Config { congestion: Some(name.into()), ..config(any_port()) };
    let line = with("no-such").bind().unwrap_err().to_string();
    assert!(line.contains("'no-such'") && line.contains("modprobe"), "{line}");
    assert_eq!(line.lines().count(), 1);
    // Linux has reno built in and lets anybody use it.
    let server = with("reno").bind().unwrap();
    let address = server.address();
    let accepted = async { server.listener().accept().await.unwrap().0 };
    let (accepted, _client) = tokio::join!(accepted, TcpStream::connect(address));
    assert_eq!(crate::socket::congestion(&accepted).as_deref(), Some("reno"));
    assert_eq!(crate::socket::retransmits(&accepted), Some(0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_request_is_answered_with_a_status_and_a_length(
        method in "[A-Z]{1,8}|GET|POST|HEAD",
        path in "/(soap|rest/xml/|rest/json/)?[ -~]{0,12}",
        media in prop::collection::vec(any::<u8>(), 0..40),
        body in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let site = site();
        let uri = path.replace(' ', "%20");
        let request = Request::builder().method(method.as_str()).uri(uri).header("host", "h");
        let request = request.header("content-type", media.as_slice()).body(());
        if let Ok(request) = request {
            let (parts, ()) = request.into_parts();
            let response = route::answer(site, &parts, &body);
            let length: usize = header(&response, "content-length").parse().unwrap();
            prop_assert!(method == "HEAD" || length == response.body().len());
            prop_assert!((200..=501).contains(&response.status().as_u16()));
        }
    }
}

/// One site for all cases: making it takes longer than asking it.
fn site() -> &'static Site {
    static SITE: std::sync::OnceLock<Site> = std::sync::OnceLock::new();
    SITE.get_or_init(|| Site::new(SEED, Settings::default()))
}
