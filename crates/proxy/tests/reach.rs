//! What an edge asks directly is nothing that its client could not have asked itself.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::net::{IpAddr, SocketAddr, UdpSocket};

use common::origin::Origin;
use common::{Side, edge_of, get, raw};
use longwire_proxy::config::{EdgeConfig, Settings};
use tokio::net::TcpListener;

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
    edge_of(EdgeConfig::resolve(settings.edge, &settings.services).unwrap()).await
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
