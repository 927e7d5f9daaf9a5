//! What an edge asks directly is nothing that its client could not have asked itself; what it asks
//! the gateway is nothing that the gateway is known to refuse.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::origin::Origin;
use common::{Side, edge_of, eventually, gateway_config, get, raw, send};
use longwire_proxy::config::{EdgeConfig, Settings};
use longwire_proxy::edge::Edge;
use longwire_proxy::gateway::Gateway;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// An address of this machine that is not loopback: clients that come from it count as others.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
    socket.connect("192.0.2.1:9").ok()?;
    let own = socket.local_addr().ok().map(|address| address.ip());
    let own = own.filter(|ip| !ip.is_unspecified() && !ip.is_loopback());
    if own.is_none() {
        eprintln!("left out: this machine has no address but loopback");
    }
    own
}

/// An edge that everybody reaches.
async fn open_edge(settings: &str) -> Side {
    let text = format!("[edge]\nlisten = '0.0.0.0:0'\n{settings}");
    let settings = Settings::parse(&text).unwrap();
    edge_of(EdgeConfig::resolve(settings.edge, &settings.link, &settings.services).unwrap()).await
}

/// Status of the answer to a request with this first line.
async fn ask(edge: SocketAddr, line: &str, fields: &str) -> (u16, String) {
    let request = format!("{line} HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\n");
    let (bytes, _) = raw(edge, request).await;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (text.split(' ').nth(1).unwrap().parse().unwrap(), text)
}

#[tokio::test]
async fn a_client_elsewhere_reaches_neither_loopback_nor_the_edge_itself() {
    let Some(own) = own_address() else { return };
    let origin = Origin::start().await;
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let away = format!("gateway = '{nobody}'\nconnect_timeout = '300 ms'\nfallback = 'direct'\n");
    for settings in ["", &away] {
        let edge = open_edge(&format!("{settings}admin = '127.0.0.1:0'")).await;
        let port = edge.address.port();
        let (local, remote) =
            (SocketAddr::from(([127, 0, 0, 1], port)), SocketAddr::new(own, port));
        let admin = edge.admin.unwrap();
        // A client of this machine leaves an open connection for the next.
        assert_eq!(get(local, &origin.url("/hello"), "").await.status, 200);
        let theirs = origin.url("/hello");
        let behind = theirs.split_once("127.0.0.1").unwrap().1;
        let near = [
            format!("GET {theirs}"),
            format!("GET http://localhost{behind}"),
            format!("GET http://0.0.0.0{behind}"),
            format!("GET http://[::ffff:127.0.0.1]{behind}"),
            format!("GET http://{admin}/metrics"),
            format!("GET http://{own}:{port}/"),
            format!("CONNECT {admin}"),
            format!("CONNECT {own}:{port}"),
        ];
        for line in near {
            let (status, text) = ask(remote, &line, "").await;
            assert_eq!(status, 403, "{line}: {text}");
            assert!(text.contains("error=http_request_denied"), "{text}");
        }
        let upgrade = "Upgrade: websocket\r\nConnection: upgrade\r\n";
        let (status, text) = ask(remote, &format!("GET {}", origin.url("/upgrade")), upgrade).await;
        assert_eq!(status, 403, "{text}");
        assert_eq!(get(local, &format!("http://{admin}/metrics"), "").await.status, 200);
    }
}

#[tokio::test]
async fn what_the_operator_names_is_reached_from_everywhere() {
    let Some(own) = own_address() else { return };
    let origin = Origin::start().await;
    let url = origin.url("/hello");
    let base = url.strip_suffix("/hello").unwrap();
    let named = open_edge(&format!("direct_allow = ['{base}/hello']")).await;
    let remote = SocketAddr::new(own, named.address.port());
    assert_eq!(ask(remote, &format!("GET {url}"), "").await.0, 200);
    for edge in [remote, SocketAddr::from(([127, 0, 0, 1], named.address.port()))] {
        let (status, text) = ask(edge, &format!("GET {}", origin.url("/text/1")), "").await;
        assert!(status == 403 && text.contains("direct_allow"), "{text}");
    }
    let upstream = open_edge(&format!("upstream = '{base}'\ndirect_allow = ['http://a']")).await;
    let remote = SocketAddr::new(own, upstream.address.port());
    assert_eq!(ask(remote, "GET /hello", "").await.0, 200);
}

/// Passes bytes on between edges and a gateway, and counts those that edges send.
async fn counted(gateway: SocketAddr) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
    let counting = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((edge, _)) = listener.accept().await {
            let (mut from_edge, mut to_edge) = edge.into_split();
            let gateway = TcpStream::connect(gateway).await.unwrap();
            let (mut from_gateway, mut to_gateway) = gateway.into_split();
            let count = Arc::clone(&counting);
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while let Ok(len @ 1..) = from_edge.read(&mut buffer).await {
                    count.fetch_add(len as u64, Ordering::Relaxed);
                    if to_gateway.write_all(&buffer[..len]).await.is_err() {
                        return;
                    }
                }
            });
            tokio::spawn(async move { tokio::io::copy(&mut from_gateway, &mut to_edge).await });
        }
    });
    (address, count)
}

#[tokio::test]
async fn what_the_gateway_will_refuse_does_not_cross_the_link() {
    let origin = Origin::start().await;
    let url = origin.url("/hello");
    let base = url.strip_suffix("/hello").unwrap();
    let allow = |path: &str| format!("allow = ['{base}{path}', 'http://*.example:81']");
    let gateway = Gateway::bind(gateway_config(&allow("/hello"))).await.unwrap();
    let renewal = gateway.renewal();
    let (link, count) = counted(gateway.local_addr()).await;
    tokio::spawn(gateway.run(std::future::pending(), std::future::pending()));
    let edge = common::edge(&format!("gateway = '{link}'")).await;
    assert_eq!(get(edge.address, &url, "").await.status, 200);
    let crosses = async |method: &str, url: &str, body: &[u8]| {
        let before = count.load(Ordering::Relaxed);
        let answer = send(edge.address, method, url, "", body).await;
        (answer, count.load(Ordering::Relaxed) - before)
    };
    // The edge asks as long as it has not been told: the words are the same.
    let theirs = "longwire: 'other.example' port 80 is outside the gateway's allow list\n";
    eventually(async || {
        let (answer, bytes) = crosses("GET", "http://other.example/", b"").await;
        assert_eq!((answer.status, &*answer.text()), (403, theirs));
        bytes == 0
    })
    .await;
    let (answer, bytes) = crosses("POST", &origin.url("/echo"), &[b'x'; 1 << 20]).await;
    assert_eq!((answer.status, bytes), (403, 0));
    assert!(answer.head.contains("proxy-status: longwire; error=http_request_denied"));
    let request = "CONNECT other.example:443 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let (bytes, _) = raw(edge.address, request).await;
    assert!(String::from_utf8_lossy(&bytes).starts_with("HTTP/1.1 403"));
    // What may be meant goes across, and the gateway says what it thinks of the address.
    let (answer, bytes) = crosses("GET", "http://none.example:81/", b"").await;
    assert!(answer.status >= 400 && bytes > 0, "{}", answer.text());
    assert_eq!(get(edge.address, &url, "").await.status, 200);
    // A list that has changed is told again.
    renewal.take(gateway_config(&allow("/echo")).news(true, false)).await.unwrap();
    let echo = origin.url("/echo");
    eventually(async || send(edge.address, "POST", &echo, "", b"x").await.status == 200).await;
    let (answer, bytes) = crosses("GET", &url, b"").await;
    assert_eq!((answer.status, bytes), (403, 0));
    // One that is too long to be told takes back what was.
    let many: Vec<String> = (0..200).map(|n| format!("'http://host-{n}.example'")).collect();
    let many = format!("allow = [{}]", many.join(", "));
    renewal.take(gateway_config(&many).news(true, false)).await.unwrap();
    eventually(async || crosses("GET", "http://host-1.example/", b"").await.1 > 0).await;
}

#[tokio::test]
async fn an_edges_own_lists_hold_from_now_on() {
    let origin = Origin::start().await;
    let config = |keys: &str| {
        let settings = Settings::parse(&format!("[edge]\nlisten = '127.0.0.1:0'\n{keys}")).unwrap();
        EdgeConfig::resolve(settings.edge, &settings.link, &settings.services).unwrap()
    };
    let edge = Edge::bind(config("")).await.unwrap();
    let (address, renewal) = (edge.local_addr(), edge.renewal());
    tokio::spawn(edge.run(std::future::pending(), std::future::pending()));
    let url = origin.url("/hello");
    let base = url.strip_suffix("/hello").unwrap();
    let status = async || get(address, &url, "").await.status;
    assert_eq!(status().await, 200);
    for (keys, taken, expected) in [
        (format!("deny = ['{base}/hello']"), "deny (1 patterns)", 403),
        (format!("direct_allow = ['{base}/text']"), "deny (0 patterns)", 403),
        (format!("direct_allow = ['{base}/hello']"), "direct_allow (1 patterns)", 200),
        (String::new(), "direct_allow (0 patterns)", 200),
    ] {
        let renewed = renewal.take(config(&keys).news(false)).await.unwrap();
        assert_eq!(renewed.taken[0], taken);
        assert_eq!(status().await, expected, "{keys}");
    }
    let renewed = renewal.take(config("").news(false)).await.unwrap();
    assert!(renewed.taken.is_empty(), "{renewed:?}");
}
