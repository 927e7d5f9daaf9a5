//! A gateway that belongs to a group, asked by our client of groups, over the loopback interface.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use common::gateway_config;
use common::origin::Origin;
use longwire_proxy::coap::Code;
use longwire_proxy::coap::client::{Ask, Gathering};
use longwire_proxy::gateway::Gateway;
use proto::coap::{Content, Datagram, Kind, Token, option};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// A group of nobody else's: it is for documentation (RFC 6676 §2).
const GROUP: &str = "233.252.0.1";
const ON: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Answers are spread over this (RFC 7252 §8.2).
const LEISURE: Duration = Duration::from_secs(5);

async fn member() -> (SocketAddr, JoinHandle<()>) {
    member_of(GROUP).await
}

async fn member_of(group: &str) -> (SocketAddr, JoinHandle<()>) {
    let settings = format!("coap = '127.0.0.1:0'\ncoap_multicast = ['{group}']\n");
    let gateway = Gateway::bind(gateway_config(&settings)).await.unwrap();
    let coap = gateway.coap_addr().unwrap();
    let run = gateway.run(std::future::pending(), std::future::pending());
    (coap, tokio::spawn(async move { run.await.unwrap() }))
}

#[tokio::test]
async fn who_asks_a_group_for_links_hears_of_each_member_from_its_own_address() {
    let (coap, task) = member().await;
    let url = format!("coap://{GROUP}:{}/.well-known/core", coap.port());
    let began = Instant::now();
    let asked = Gathering::begin(&Ask { url, ..Ask::default() }, Some(ON)).await.unwrap();
    let mut gathering = asked.expect("it is a group");
    let next = tokio::time::timeout(LEISURE + Duration::from_secs(3), gathering.next());
    let (from, response) = next.await.expect("no answer").unwrap();
    assert_eq!((from, response.code), (coap, Code::CONTENT));
    assert_eq!(response.payload, b"</.well-known/core>;ct=40");
    assert!(began.elapsed() <= LEISURE + Duration::from_secs(2));
    task.abort();
}

/// Neither an error nor anything that an origin would have to be asked for.
#[tokio::test]
async fn what_else_a_group_is_asked_for_has_no_answer() {
    let (coap, task) = member().await;
    let origin = Origin::start().await;
    let group: SocketAddr = format!("{GROUP}:{}", coap.port()).parse().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket2::SockRef::from(&socket).set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
    let links = |content: Content| {
        content.with(option::URI_PATH, b".well-known").with(option::URI_PATH, b"core")
    };
    let get = || Content::new(Code::GET);
    let asks = [
        (Kind::NonConfirmable, get().with(option::URI_PATH, b"elsewhere")),
        (Kind::NonConfirmable, get().with(option::PROXY_URI, origin.url("/hello").as_bytes())),
        (Kind::NonConfirmable, links(Content::new(Code::POST))),
        (Kind::NonConfirmable, links(get()).with_uint(option::ACCEPT, 50)),
        (Kind::NonConfirmable, links(get()).with(option::URI_QUERY, b"rt=nothing")),
        // RFC 7252 §8.1: what is confirmable is not for groups.
        (Kind::Confirmable, links(get())),
    ];
    for (at, (kind, content)) in asks.into_iter().enumerate() {
        let mid = u16::try_from(at).unwrap();
        let bytes = content.encode(kind, mid, Token::new(&[1]).unwrap()).unwrap();
        socket.send_to(&bytes, group).await.unwrap();
    }
    let mut room = [0; 1500];
    let quiet = tokio::time::timeout(LEISURE + Duration::from_secs(1), socket.recv(&mut room));
    if let Ok(came) = quiet.await {
        let datagram = Datagram::decode(&room[..came.unwrap()]);
        panic!("an answer: {datagram:?}");
    }
    assert_eq!(origin.seen.lock().unwrap().len(), 0);
    task.abort();
}

/// The interface may be named; one that there is not is said at once.
#[tokio::test]
async fn a_group_is_heard_on_the_interface_that_is_named() {
    let (coap, task) = member_of(&format!("{GROUP}%lo")).await;
    let url = format!("coap://{GROUP}:{}/.well-known/core", coap.port());
    let asked = Gathering::begin(&Ask { url, ..Ask::default() }, Some(ON)).await.unwrap();
    let mut gathering = asked.expect("it is a group");
    let next = tokio::time::timeout(LEISURE + Duration::from_secs(3), gathering.next());
    let (from, _) = next.await.expect("no answer").unwrap();
    assert_eq!(from, coap);
    task.abort();
    let settings = format!("coap = '127.0.0.1:0'\ncoap_multicast = ['{GROUP}%nothing-there']\n");
    let error = Gateway::bind(gateway_config(&settings)).await.err().expect("no such interface");
    assert!(error.to_string().contains("'nothing-there'"), "{error}");
}
