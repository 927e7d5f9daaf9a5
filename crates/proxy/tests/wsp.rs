//! WAP clients at a gateway: raw datagrams of connectionless WSP against real origins.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::origin::Origin;
use common::{PATIENCE, gateway_config};
use longwire_proxy::gateway::Gateway;
use longwire_proxy::wsp::{Ask, ask};
use proto::wsp::headers::{Rules, decode_with_content_type, encode, encode_content_type};
use proto::wsp::packet::{self, Method, Pdu};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UdpSocket;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A gateway that runs until it is told to stop or dropped.
struct Wap {
    wsp: SocketAddr,
    admin: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), longwire_proxy::Error>>,
}

impl Drop for Wap {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn wap(settings: &str) -> Wap {
    let keys = format!("wsp = '127.0.0.1:0'\nadmin = '127.0.0.1:0'\n{settings}");
    let gateway = Gateway::bind(gateway_config(&keys)).await.unwrap();
    let (wsp, admin) = (gateway.wsp_addr().unwrap(), gateway.admin_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async {
        if stopped.await.is_err() {
            std::future::pending().await
        }
    };
    let task = tokio::spawn(gateway.run(stopped, std::future::pending()));
    Wap { wsp, admin, stop: Some(stop), task }
}

/// An origin that counts and answers all alike, after a pause.
async fn counting(body: Vec<u8>, pause: Duration) -> (Origin, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    let origin = Origin::scripted(move |mut stream| {
        let (seen, body) = (Arc::clone(&seen), body.clone());
        async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            seen.fetch_add(1, Ordering::SeqCst);
            // What is not read resets the connection.
            let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
            let len = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body_of_request = vec![0; len.map_or(0, |len| len.parse().unwrap())];
            stream.read_exact(&mut body_of_request).await.unwrap();
            // sleep: an origin that takes its time.
            tokio::time::sleep(pause).await;
            let len = body.len();
            let media = "Content-Type: text/xml";
            let head = format!("HTTP/1.1 200 OK\r\n{media}\r\nContent-Length: {len}\r\n\r\n");
            stream.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
        }
    });
    (origin.await, count)
}

async fn client(peer: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(peer).await.unwrap();
    socket
}

fn request(tid: u8, method: Method, uri: &str, fields: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut headers = Vec::new();
    for (name, value) in fields {
        if *name == "content-type" {
            encode_content_type(Rules::DEFAULT, value.as_bytes(), &mut headers).unwrap();
        } else {
            encode(Rules::DEFAULT, name, value.as_bytes(), &mut headers).unwrap();
        }
    }
    let pdu = Pdu::Request { method, uri: uri.as_bytes(), headers: &headers, body };
    let mut room = vec![0; 70_000];
    let len = packet::encode(tid, &pdu, &mut room).unwrap();
    room.truncate(len);
    room
}

struct Reply {
    tid: u8,
    status: u8,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Reply {
    fn field(&self, name: &str) -> Option<&str> {
        let is_it = |(other, _): &&(String, String)| other.eq_ignore_ascii_case(name);
        self.fields.iter().find(is_it).map(|(_, value)| &value[..])
    }
}

async fn reply(socket: &UdpSocket) -> Reply {
    let mut room = vec![0; 70_000];
    let len = tokio::time::timeout(PATIENCE, socket.recv(&mut room)).await.unwrap().unwrap();
    let (tid, pdu) = packet::decode(&room[..len]).unwrap();
    let Pdu::Reply { status, headers, body } = pdu else { panic!("no reply: {pdu:?}") };
    let decoded = decode_with_content_type(Rules::DEFAULT, headers).unwrap();
    let text = |value: Vec<u8>| String::from_utf8(value).unwrap();
    let fields = decoded.fields.into_iter().map(|field| (field.name, text(field.value)));
    Reply { tid, status, fields: fields.collect(), body: body.to_vec() }
}

async fn exchange(socket: &UdpSocket, datagram: &[u8]) -> Reply {
    socket.send(datagram).await.unwrap();
    reply(socket).await
}

#[tokio::test]
async fn a_copy_is_answered_again_and_carried_out_once() {
    let (origin, count) = counting(b"<a/>".to_vec(), Duration::ZERO).await;
    let gateway = wap("").await;
    let socket = client(gateway.wsp).await;
    let post = request(7, Method::Post, &origin.url("/"), &[("content-type", "text/xml")], b"<q/>");
    for _ in 0..2 {
        let reply = exchange(&socket, &post).await;
        assert_eq!((reply.tid, reply.status, &reply.body[..]), (7, 0x20, &b"<a/>"[..]));
        assert_eq!(reply.field("Content-Type"), Some("text/xml"));
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
    let metrics = common::raw(gateway.admin, "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n");
    let metrics = String::from_utf8(metrics.await.0).unwrap();
    for line in [
        "longwire_wsp_requests_total 1\n",
        "longwire_wsp_repeated_replies_total 1\n",
        "longwire_responses_total{way=\"edgeless\",class=\"2xx\"} 1\n",
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
    // Another request of the same transaction id is another request.
    let get = request(7, Method::Get, &origin.url("/"), &[], b"");
    assert_eq!(exchange(&socket, &get).await.status, 0x20);
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn what_may_not_be_reached_or_does_not_fit_has_a_status() {
    let (large, asked) = counting(vec![b'x'; 66_000], Duration::ZERO).await;
    let (fits, _) = counting(vec![b'x'; 65_000], Duration::ZERO).await;
    let gateway = wap("").await;
    let socket = client(gateway.wsp).await;
    let url = large.url("/");
    for (tid, method, url, status) in [
        (1, Method::Get, "http://127.0.0.2:1/", 0x43),
        (2, Method::Get, "https://example.org/", 0x43),
        (3, Method::Get, "gopher://127.0.0.1/", 0x40),
        (4, Method::Trace, "http://127.0.0.1/", 0x61),
        (5, Method::Get, "http://127.0.0.1:1/", 0x62),
        (6, Method::Get, &url, 0x4d),
        (7, Method::Get, &fits.url("/"), 0x20),
    ] {
        let reply = exchange(&socket, &request(tid, method, url, &[], b"")).await;
        assert_eq!((reply.tid, reply.status), (tid, status), "{url}");
        if status != 0x20 {
            assert!(reply.body.starts_with(b"longwire: "), "{url}");
            assert!(reply.field("proxy-status").is_none());
        }
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // What is no request has no answer, and the next one has.
    for other in [&b"\x09"[..], b"\x09\x04\x20\x01\x80", b"\x09\x01\x10\x00\x00", b""] {
        socket.send(other).await.unwrap();
    }
    let get = request(10, Method::Head, &fits.url("/"), &[], b"");
    let head = exchange(&socket, &get).await;
    assert_eq!((head.tid, head.status), (10, 0x20));
}

#[tokio::test]
async fn a_client_of_wbxml_has_it_and_the_origin_xml() {
    let document = b"<e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\">\
                     <e:Body><m>text</m></e:Body></e:Envelope>";
    let (origin, _) = counting(document.to_vec(), Duration::ZERO).await;
    let gateway = wap("").await;
    let socket = client(gateway.wsp).await;
    let (settings, limits) = (codec::wbxml::Settings::default(), codec::Limits::default());
    let body = codec::wbxml::encode(document, &settings, &limits).unwrap();
    let media = [("content-type", "application/vnd.wap.wbxml")];
    let reply = exchange(&socket, &request(1, Method::Post, &origin.url("/"), &media, &body)).await;
    assert_eq!(reply.field("content-type"), Some("application/vnd.wap.wbxml"));
    let xml = codec::wbxml::decode(&reply.body, &settings, &limits).unwrap();
    assert!(String::from_utf8(xml).unwrap().contains("<m>text</m>"));
    let accept = [("Accept", "application/vnd.wap.wbxml")];
    let reply = exchange(&socket, &request(2, Method::Get, &origin.url("/"), &accept, b"")).await;
    assert_eq!(reply.field("content-type"), Some("application/vnd.wap.wbxml"));
    let accept = [("Accept", "application/vnd.wap.wbxml, text/xml")];
    let reply = exchange(&socket, &request(3, Method::Get, &origin.url("/"), &accept, b"")).await;
    assert_eq!((reply.field("content-type"), &reply.body[..]), (Some("text/xml"), &document[..]));
    let reply =
        exchange(&socket, &request(4, Method::Post, &origin.url("/"), &media, b"no WBXML")).await;
    assert_eq!(reply.status, 0x40);
}

#[tokio::test]
async fn no_source_has_all_places_and_what_is_open_is_answered_at_the_end() {
    let (origin, count) = counting(b"late".to_vec(), Duration::from_secs(2)).await;
    let mut gateway = wap("").await;
    let socket = client(gateway.wsp).await;
    for tid in 0..80 {
        let uri = origin.url(&format!("/{tid}"));
        socket.send(&request(tid, Method::Get, &uri, &[], b"")).await.unwrap();
    }
    // 64 at work leave as many free; beyond 64 that wait the machine takes none of one address.
    common::eventually(|| async { count.load(Ordering::SeqCst) == 64 }).await;
    let _ = gateway.stop.take().unwrap().send(());
    for _ in 0..64 {
        assert_eq!(reply(&socket).await.body, b"late");
    }
    let task = std::mem::replace(&mut gateway.task, tokio::spawn(async { Ok(()) }));
    tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn the_client_asks_again_and_reads_the_answer() {
    let origin = Origin::start().await;
    let gateway = wap("").await;
    let fields = |text: &str| vec![("Content-Type".to_owned(), text.to_owned())];
    let asked = Ask {
        method: "POST".to_owned(),
        url: origin.url("/echo"),
        fields: fields("text/xml; charset=utf-8"),
        body: b"<a/>".to_vec(),
        repeats: true,
    };
    let answer = ask(&gateway.wsp.to_string(), &asked, PATIENCE).await.unwrap().unwrap();
    assert_eq!((answer.status, answer.copies), (200, 1));
    // Nobody answers: copies leave, and the end is told.
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let waited = ask(&address, &asked, Duration::from_secs(5)).await.unwrap();
    assert!(waited.is_none());
    let mut first = vec![0; 1000];
    let mut second = vec![0; 1000];
    let (len, _) = silent.recv_from(&mut first).await.unwrap();
    let (again, _) = silent.recv_from(&mut second).await.unwrap();
    assert_eq!(first[..len], second[..again]);
}
