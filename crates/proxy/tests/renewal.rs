//! A side takes keys, the allow list and services while it runs, and nobody else notices.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use common::keys::{Dir, with};
use common::origin::Origin;
use common::{edge, eventually, gateway_config, get, send};
use longwire_proxy::config::GatewayConfig;
use longwire_proxy::gateway::Gateway;
use longwire_proxy::keys::Generated;
use longwire_proxy::{Error, Renewal, Renewed};

/// A gateway that runs as long as the test, its address, and who gives it new settings.
async fn start(config: GatewayConfig) -> (String, Renewal) {
    let gateway = Gateway::bind(config).await.unwrap();
    let (address, renewal) = (gateway.local_addr().to_string(), gateway.renewal());
    tokio::spawn(gateway.run(std::future::pending(), std::future::pending()));
    (address, renewal)
}

async fn take(renewal: &Renewal, settings: &str) -> Result<Renewed, Error> {
    renewal.take(gateway_config(settings).news(true, true)).await
}

/// Without a signal too: the file is looked at by itself.
#[tokio::test]
async fn a_peer_that_is_taken_off_the_file_is_cut_off_and_one_that_comes_to_it_let_in() {
    let dir = Dir::new("peers");
    let (first, second, theirs) = (dir.key("first"), dir.key("second"), dir.key("gateway"));
    let edges = dir.0.join("edges.pub");
    let line = |key: &Generated| std::fs::read_to_string(&key.public).unwrap();
    std::fs::write(&edges, line(&first)).unwrap();
    let (gateway, renewal) = start(gateway_config(&with(&theirs, &edges))).await;
    let of = async |key: &Generated| {
        let times = "connect_timeout = '300 ms'\n";
        edge(&format!("gateway = '{gateway}'\n{times}{}", with(key, &theirs.public))).await
    };
    let (one, other) = (of(&first).await, of(&second).await);
    let origin = Origin::start().await;
    let url = origin.url("/echo");
    let status = async |edge: std::net::SocketAddr| send(edge, "GET", &url, "", b"").await.status;
    assert_eq!(status(one.address).await, 200);
    assert_ne!(status(other.address).await, 200);
    // Half a file, as an editor may leave it for a moment, changes nothing.
    std::fs::write(&edges, "first ed25519:12").unwrap();
    let bad = renewal.take(gateway_config(&with(&theirs, &first.public)).news(false, false)).await;
    assert!(bad.unwrap().taken[0].starts_with("keys ("));
    assert_eq!(status(one.address).await, 200);
    // Back to the file that is watched, with the other edge in it.
    std::fs::write(&edges, line(&second)).unwrap();
    let renewed = take(&renewal, &with(&theirs, &edges)).await.unwrap();
    assert_eq!(renewed.taken[0], "keys (1 peers added, 1 removed)");
    eventually(async || status(one.address).await != 200).await;
    eventually(async || status(other.address).await == 200).await;
    // And now by the file alone.
    std::fs::write(&edges, line(&first)).unwrap();
    eventually(async || status(one.address).await == 200).await;
    eventually(async || status(other.address).await != 200).await;
}

#[tokio::test]
async fn the_allow_list_and_services_hold_from_now_on() {
    let origin = Origin::start().await;
    let url = origin.url("/echo");
    let (gateway, renewal) = start(gateway_config("allow = ['http://127.0.0.1:1']")).await;
    let edge = edge(&format!("gateway = '{gateway}'")).await;
    assert_eq!(get(edge.address, &url, "").await.status, 403);
    let renewed = take(&renewal, "").await.unwrap();
    assert_eq!(renewed.taken, ["allow (1 patterns)", "services (0)"]);
    // The edge hears of it over the link.
    eventually(async || get(edge.address, &url, "").await.status == 200).await;
    // What the origin is asked to send tells which service a request belongs to.
    let asked = async || send(edge.address, "POST", &url, "Accept-Encoding: gzip\r\n", b"x").await;
    let service = |kind: &str| {
        format!("[[service]]\nmatch = 'http://127.0.0.1:*'\naccept_encoding = '{kind}'\n")
    };
    let coding = |origin: &Origin| origin.last().get("accept-encoding").cloned();
    assert_eq!(asked().await.status, 200);
    assert!(coding(&origin).is_none_or(|coding| coding != "gzip"));
    take(&renewal, &service("pass")).await.unwrap();
    assert_eq!(asked().await.status, 200);
    assert_eq!(coding(&origin).unwrap(), "gzip");
    let other = format!("{}encodings = ['brotli:11']\n", service("identity"));
    let renewed = take(&renewal, &other).await.unwrap();
    assert!(renewed.left[0].contains("'brotli:11' is not among"), "{renewed:?}");
    assert_eq!(asked().await.status, 200);
    assert_eq!(coding(&origin).unwrap(), "gzip");
    take(&renewal, "allow = ['http://127.0.0.1:1']").await.unwrap();
    assert_eq!(get(edge.address, &url, "").await.status, 403);
}
