//! An edge over gateways that are asked as anybody's software would ask them: WSP and CoAP, with
//! datagrams that get lost.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::origin::Origin;
use common::{Side, edge, gateway_config, raw, send};
use longwire_proxy::gateway::Gateway;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

const SOAP: &[u8] = b"<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'>\
                      <e:Body><position>somewhere</position></e:Body></e:Envelope>";

/// A gateway for others, with its listeners for WSP and CoAP; it ends when dropped.
struct Others {
    wsp: SocketAddr,
    coap: SocketAddr,
    task: JoinHandle<Result<(), longwire_proxy::Error>>,
}

impl Drop for Others {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn others() -> Others {
    let keys = "wsp = '127.0.0.1:0'\ncoap = '127.0.0.1:0'\n";
    let gateway = Gateway::bind(gateway_config(keys)).await.unwrap();
    let (wsp, coap) = (gateway.wsp_addr().unwrap(), gateway.coap_addr().unwrap());
    let never = std::future::pending;
    Others { wsp, coap, task: tokio::spawn(gateway.run(never(), never())) }
}

/// An origin that counts requests and answers with the body that came, in XML.
async fn echoing() -> (Origin, Arc<AtomicUsize>, Arc<Mutex<String>>) {
    let (count, last) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(String::new())));
    let (counted, noted) = (Arc::clone(&count), Arc::clone(&last));
    let origin = Origin::scripted(move |mut stream| {
        let (count, last) = (Arc::clone(&counted), Arc::clone(&noted));
        async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            count.fetch_add(1, Ordering::SeqCst);
            let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
            let len = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; len.map_or(0, |len| len.parse().unwrap())];
            stream.read_exact(&mut body).await.unwrap();
            *last.lock().unwrap() = head + std::str::from_utf8(&body).unwrap();
            let len = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {len}\r\n\r\n"
            );
            stream.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
        }
    });
    (origin.await, count, last)
}

/// Passes datagrams of one client to a port and back, loses some of those that come back, and keeps
/// what came from the client.
struct Tap {
    address: SocketAddr,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
    task: JoinHandle<()>,
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Tap {
    async fn before(gateway: SocketAddr, mut lose: usize) -> Self {
        let outer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let inner = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        inner.connect(gateway).await.unwrap();
        let (address, sent) = (outer.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let kept = Arc::clone(&sent);
        let task = tokio::spawn(async move {
            let (mut there, mut back) = (vec![0; 70_000], vec![0; 70_000]);
            let mut client = None;
            loop {
                tokio::select! {
                    came = outer.recv_from(&mut there) => {
                        let (len, from) = came.unwrap();
                        client = Some(from);
                        kept.lock().unwrap().push(there[..len].to_vec());
                        inner.send(&there[..len]).await.unwrap();
                    }
                    came = inner.recv(&mut back) => {
                        let len = came.unwrap();
                        if lose > 0 {
                            lose -= 1;
                        } else {
                            outer.send_to(&back[..len], client.unwrap()).await.unwrap();
                        }
                    }
                }
            }
        });
        Self { address, sent, task }
    }

    fn sent(&self) -> Vec<Vec<u8>> {
        self.sent.lock().unwrap().clone()
    }
}

async fn edge_to(scheme: &str, gateway: SocketAddr, settings: &str) -> Side {
    edge(&format!("gateway = '{scheme}://{gateway}'\nadmin = '127.0.0.1:0'\n{settings}")).await
}

async fn post(edge: &Side, origin: &Origin) -> common::Answer {
    let fields = "Content-Type: text/xml\r\nSOAPAction: \"urn:a\"\r\n";
    send(edge.address, "POST", &origin.url("/soap"), fields, SOAP).await
}

#[tokio::test]
async fn by_wsp_a_lost_answer_is_asked_for_again_only_where_that_is_known_to_do_no_harm() {
    let ((origin, count, last), others) = (echoing().await, others().await);
    let tap = Tap::before(others.wsp, 1).await;
    let first = edge_to("wsp", tap.address, "wsp_repeat = true\n").await;
    let answer = post(&first, &origin).await;
    assert_eq!((answer.status, &answer.body[..]), (200, SOAP), "{}", answer.head);
    let sent = tap.sent();
    assert_eq!((sent.len(), count.load(Ordering::SeqCst)), (2, 1));
    assert_eq!(sent[0], sent[1]);
    assert!(last.lock().unwrap().contains("soapaction: \"urn:a\"\r\n"));
    let metrics = raw(first.admin.unwrap(), "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n");
    let metrics = String::from_utf8(metrics.await.0).unwrap();
    assert!(metrics.contains("longwire_responses_total{way=\"wsp\",class=\"2xx\"} 1\n"));
    let bytes = sent.iter().map(Vec::len).sum::<usize>();
    assert!(metrics.contains(&format!("wire_bytes_total{{direction=\"sent\"}} {bytes}\n")));

    let tap = Tap::before(others.wsp, 1).await;
    let second = edge_to("wsp", tap.address, "response_timeout = '4 s'\n").await;
    let answer = post(&second, &origin).await;
    // Longer than until the first copy would leave.
    assert_eq!((answer.status, tap.sent().len()), (504, 1), "{}", answer.text());
    assert_eq!(count.load(Ordering::SeqCst), 2);
    assert!(answer.text().contains("wsp_repeat"), "{}", answer.text());
}

#[tokio::test]
async fn by_coap_a_lost_answer_comes_again_and_the_request_is_carried_out_once() {
    let ((origin, count, last), others) = (echoing().await, others().await);
    let tap = Tap::before(others.coap, 1).await;
    let edge = edge_to("coap", tap.address, "").await;
    let answer = post(&edge, &origin).await;
    assert_eq!((answer.status, &answer.body[..]), (200, SOAP), "{}", answer.head);
    assert!(answer.has("content-type: application/xml"), "{}", answer.head);
    assert_eq!((tap.sent().len(), count.load(Ordering::SeqCst)), (2, 1));
    let last = last.lock().unwrap();
    assert!(last.contains("content-type: text/xml\r\n") && !last.contains("soapaction"));
}

#[tokio::test]
async fn by_wsp_xml_crosses_as_wbxml_where_that_is_set() {
    let ((origin, _, last), others) = (echoing().await, others().await);
    let tap = Tap::before(others.wsp, 0).await;
    let edge = edge_to("wsp", tap.address, "wsp_wbxml = true\n").await;
    let answer = post(&edge, &origin).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.has("content-type: text/xml; charset=utf-8"), "{}", answer.head);
    assert!(answer.text().contains(">somewhere</"), "{}", answer.text());
    let last = last.lock().unwrap();
    assert!(last.contains(">somewhere</") && last.contains("content-type: text/xml"), "{last}");
    let sent = tap.sent();
    let holds = |what: &[u8]| sent[0].windows(what.len()).any(|window| window == what);
    assert!(holds(b"somewhere") && !holds(b"</") && sent[0].len() < SOAP.len() + 60);
}

#[tokio::test]
async fn what_a_way_cannot_do_is_said_in_one_line() {
    let ((origin, count, _), others) = (echoing().await, others().await);
    let wsp = edge_to("wsp", others.wsp, "body_memory = '1 MiB'\n").await;
    let coap = edge_to("coap", others.coap, "").await;
    let url = origin.url("/");
    let upgrade = "Connection: upgrade\r\nUpgrade: websocket\r\n";
    let (over, way_over) = (vec![b'a'; 65_500], vec![b'a'; (1 << 20) + 1]);
    for (edge, method, fields, body, status, why) in [
        (&wsp, "PATCH", "", &b"x"[..], 501, "PATCH cannot be said by wsp"),
        (&wsp, "GET", "", b"x", 501, "GET has no body in WSP"),
        (&wsp, "GET", upgrade, b"", 501, "makes no tunnel"),
        (&wsp, "POST", "", &over, 413, "over the limit of 65506"),
        (&wsp, "POST", "", &way_over, 413, "over the limit of 65506"),
        (&coap, "OPTIONS", "", b"", 501, "OPTIONS cannot be said by coap"),
        (&coap, "GET", upgrade, b"", 501, "makes no tunnel"),
        (&coap, "POST", "", &way_over, 413, "over the limit of 1048576"),
    ] {
        let answer = send(edge.address, method, &url, fields, body).await;
        assert_eq!(answer.status, status, "{method} {fields}: {}", answer.text());
        assert!(answer.text().contains(why), "{}", answer.text());
        assert_eq!(answer.text().lines().count(), 1, "{}", answer.text());
    }
    let tunnel =
        raw(coap.address, "CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .await
            .0;
    assert!(tunnel.starts_with(b"HTTP/1.1 501 "), "{}", String::from_utf8_lossy(&tunnel));
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn open_requests_have_a_bound_and_an_absent_gateway_is_504_at_once() {
    // A socket that answers nothing.
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    for scheme in ["wsp", "coap"] {
        let edge = edge_to(scheme, address, "max_exchanges = 1\nresponse_timeout = '2 s'\n").await;
        let address = edge.address;
        let first =
            tokio::spawn(async move { send(address, "GET", "http://a.example/", "", b"").await });
        let mut buffer = [0; 2048];
        silent.recv(&mut buffer).await.unwrap();
        let second = send(edge.address, "GET", "http://a.example/", "", b"").await;
        assert_eq!(second.status, 503, "{}", second.text());
        assert!(second.text().contains("max_exchanges"), "{}", second.text());
        let first = first.await.unwrap();
        assert_eq!(first.status, 504, "{}", first.text());
        assert!(first.text().contains("response_timeout"), "{}", first.text());
    }
    drop(silent);
    for scheme in ["wsp", "coap"] {
        let edge = edge_to(scheme, address, "").await;
        for _ in 0..2 {
            let answer = send(edge.address, "GET", "http://a.example/", "", b"").await;
            assert_eq!(answer.status, 504, "{}", answer.text());
        }
    }
}
