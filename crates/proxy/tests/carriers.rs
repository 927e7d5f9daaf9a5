//! Carriers over CoAP, through sockets: exchanges go by nothing else, since something on the way
//! lets nothing else pass, and each is carried out once.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::origin::Origin;
use common::{edge, gateway, get, keys, send, text_like};
use proto::coap::{Code, Datagram, option};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;

/// Most bytes of a datagram that is passed on.
const MAX_BYTES: usize = 2048;

/// A port that passes datagrams on to the gateway and back, but for some; nobody listens there for
/// connections.
struct Datagrams {
    address: SocketAddr,
    /// What edges sent.
    seen: Arc<Mutex<Vec<Vec<u8>>>>,
    _tasks: JoinSet<()>,
}

impl Datagrams {
    /// Of so many datagrams one is lost.
    async fn start(gateway: SocketAddr, one_lost_of: usize) -> Self {
        let front = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let address = front.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (count, log) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&seen));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut backs: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
            let mut returns = JoinSet::new();
            let mut room = [0; MAX_BYTES];
            loop {
                let (len, from) = front.recv_from(&mut room).await.unwrap();
                log.lock().unwrap().push(room[..len].to_vec());
                if let Entry::Vacant(vacant) = backs.entry(from) {
                    let back = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
                    back.connect(gateway).await.unwrap();
                    vacant.insert(Arc::clone(&back));
                    let (front, count) = (Arc::clone(&front), Arc::clone(&count));
                    returns.spawn(async move {
                        let mut room = [0; MAX_BYTES];
                        while let Ok(len) = back.recv(&mut room).await {
                            if !is_lost(&count, one_lost_of) {
                                front.send_to(&room[..len], from).await.unwrap();
                            }
                        }
                    });
                }
                if !is_lost(&count, one_lost_of) {
                    backs[&from].send(&room[..len]).await.unwrap();
                }
            }
        });
        Self { address, seen, _tasks: tasks }
    }
}

fn is_lost(count: &AtomicUsize, one_of: usize) -> bool {
    count.fetch_add(1, Ordering::Relaxed) % one_of == one_of - 1
}

/// A port that passes connections of CoAP on to the gateway, and closes others.
async fn connections(gateway: SocketAddr) -> (SocketAddr, JoinSet<()>) {
    const CSM: u8 = Code::CSM.0;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut passed = JoinSet::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            passed.spawn(async move {
                let mut first = [0; 2];
                if stream.read_exact(&mut first).await.is_ok() && first[1] == CSM {
                    let mut back = TcpStream::connect(gateway).await.unwrap();
                    back.write_all(&first).await.unwrap();
                    let _ = copy_bidirectional(&mut stream, &mut back).await;
                }
            });
        }
    });
    (address, tasks)
}

/// Messages of many lengths, each carried out once.
async fn exchanges(edge: SocketAddr, origin: &Origin) {
    let before = origin.seen.lock().unwrap().len();
    for (at, bytes) in [0, 1, 600, 3000, 20_000, 60_000].into_iter().enumerate() {
        let body = text_like(bytes, 7);
        let answer = send(edge, "POST", &origin.url(&format!("/echo?{at}")), "", &body).await;
        assert_eq!((answer.status, answer.body.len()), (200, bytes), "{bytes} bytes");
        assert!(answer.body == body, "{bytes} bytes");
    }
    // An answer has no bound.
    for path in ["/text/200000", "/stream/150000"] {
        let answer = get(edge, &origin.url(path), "").await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.body.len() >= 150_000, "{path}");
    }
    let seen = origin.seen.lock().unwrap();
    let urls = seen[before..].iter().map(|head| head.uri.to_string());
    let mut once: Vec<String> = urls.collect();
    let count = once.len();
    once.sort();
    once.dedup();
    assert_eq!((count, once.len()), (8, 8), "{once:?}");
}

#[tokio::test]
async fn without_keys_each_exchange_is_a_request_of_coap_whatever_gets_lost() {
    let origin = Origin::start().await;
    let gateway = gateway("carrier = 'coap'\n").await;
    let way = Datagrams::start(gateway.address, 20).await;
    let edge = edge(&format!("gateway = '{}'\ncarrier = 'coap'\n", way.address)).await;
    exchanges(edge.address, &origin).await;
    let seen = way.seen.lock().unwrap();
    for datagram in seen.iter() {
        let message = Datagram::decode(datagram).unwrap().message;
        let is_ours = message.options.first(option::URI_PATH) == Some(&b"lw"[..]);
        assert!(message.code == Code::EMPTY || message.code == Code::POST && is_ours);
    }
}

#[tokio::test]
async fn with_keys_its_datagrams_are_sealed() {
    let origin = Origin::start().await;
    let dir = keys::Dir::new("carriers-coap");
    let (ours, theirs) = (dir.key("edge"), dir.key("gateway"));
    let to_edge = keys::with(&theirs, &ours.public);
    // It takes whatever edges come with.
    let gateway = gateway(&to_edge).await;
    let way = Datagrams::start(gateway.address, 20).await;
    let to_gateway = keys::with(&ours, &theirs.public);
    let settings = format!("gateway = '{}'\ncarrier = 'coap'\n{to_gateway}", way.address);
    let edge = edge(&settings).await;
    exchanges(edge.address, &origin).await;
    let seen = way.seen.lock().unwrap();
    let has_path = |datagram: &Vec<u8>| datagram.windows(2).filter(|two| two == b"lw").count();
    assert!(seen.iter().map(has_path).sum::<usize>() < seen.len() / 4, "it can be read");
}

#[tokio::test]
async fn over_a_connection_each_exchange_is_a_request_too() {
    let origin = Origin::start().await;
    let gateway = gateway("carrier = 'coap+tcp'\n").await;
    let (address, _tasks) = connections(gateway.address).await;
    let edge = edge(&format!("gateway = '{address}'\ncarrier = 'coap+tcp'\n")).await;
    exchanges(edge.address, &origin).await;
}

/// A gateway that starts again knows nothing of the carrier, says so, and gets another.
#[tokio::test]
async fn a_gateway_that_starts_again_is_met_again() {
    let origin = Origin::start().await;
    let settings = "carrier = 'coap'\n";
    let first = gateway(settings).await;
    let way = Datagrams::start(first.address, usize::MAX).await;
    let edge = edge(&format!("gateway = '{}'\ncarrier = 'coap'\n", way.address)).await;
    assert_eq!(get(edge.address, &origin.url("/hello"), "").await.status, 200);
    let again = format!("listen = '{}'\n{settings}", first.address);
    first.stop().await;
    let _second = gateway(&again).await;
    assert_eq!(get(edge.address, &origin.url("/hello"), "").await.status, 200);
}
