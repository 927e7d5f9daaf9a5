//! Carriers over UDP where somebody on the path, or beside it, forges datagrams, cuts them off and
//! plays them back, or moves an edge to other ports: what was accepted is carried out once, what is
//! not read is counted, and nobody is kept out.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::origin::Origin;
use common::{Answer, Side, edge, eventually, gateway, keys, raw, send, text_like};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

/// Most bytes of a datagram that is passed on.
const MAX_BYTES: usize = 2048;
/// Kinds of carriers over UDP.
const KINDS: [&str; 2] = ["burst", "quic"];

/// What somebody on the path does, beside passing datagrams on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Nothing,
    /// Adds to each, from where the edge is and from elsewhere: before it copies with a bit turned,
    /// cut off, and with the end of another; and behind it one as it is.
    Forges,
    /// After so many datagrams the edge is seen at another port, and none reaches the one before.
    Moves(usize),
}

/// A path between one edge and the gateway.
struct Path {
    address: SocketAddr,
    /// What was added.
    forged: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

/// Datagrams that nobody sent, made of the `count`th; `before` is another.
fn forgeries(datagram: &[u8], before: &[u8], count: usize) -> Vec<Vec<u8>> {
    let mut turned = datagram.to_vec();
    let at = (count * 7) % turned.len();
    turned[at] ^= 1 << (count % 8);
    let cut = datagram[..(count * 13) % datagram.len()].to_vec();
    let middle = datagram.len().min(before.len()) / 2;
    let mixed = [&datagram[..middle], &before[middle..]].concat();
    vec![turned, cut, mixed]
}

impl Path {
    async fn start(gateway: SocketAddr, does: Does) -> Self {
        let front = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let address = front.local_addr().unwrap();
        let forged = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        let added = Arc::clone(&forged);
        tasks.spawn(async move {
            let elsewhere = socket(gateway).await;
            let edge = Arc::new(Mutex::new(None));
            let mut back = Arc::new(socket(gateway).await);
            let mut returns = JoinSet::new();
            let is_forging = does == Does::Forges;
            let go_back = |back: &Arc<UdpSocket>| {
                let way = (Arc::clone(back), Arc::clone(&front), Arc::clone(&edge));
                go_back(way, is_forging.then(|| Arc::clone(&added)))
            };
            returns.spawn(go_back(&back));
            let (mut room, mut before) = ([0; MAX_BYTES], vec![0; 64]);
            for count in 1.. {
                let (len, from) = front.recv_from(&mut room).await.unwrap();
                *edge.lock().unwrap() = Some(from);
                if let Does::Moves(after) = does
                    && count % after == 0
                {
                    returns.abort_all();
                    back = Arc::new(socket(gateway).await);
                    returns.spawn(go_back(&back));
                }
                let datagram = &room[..len];
                for socket in [&elsewhere, &*back].into_iter().filter(|_| is_forging) {
                    for datagram in forgeries(datagram, &before, count) {
                        socket.send(&datagram).await.unwrap();
                        added.fetch_add(1, Ordering::Relaxed);
                    }
                }
                back.send(datagram).await.unwrap();
                for socket in [&elsewhere, &*back].into_iter().filter(|_| is_forging) {
                    socket.send(datagram).await.unwrap();
                    added.fetch_add(1, Ordering::Relaxed);
                }
                before = datagram.to_vec();
            }
        });
        Self { address, forged, _tasks: tasks }
    }
}

async fn socket(gateway: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(gateway).await.unwrap();
    socket
}

/// Passes what the gateway sends on to the edge.
async fn go_back(
    (back, front, edge): (Arc<UdpSocket>, Arc<UdpSocket>, Arc<Mutex<Option<SocketAddr>>>),
    forged: Option<Arc<AtomicUsize>>,
) {
    let (mut room, mut before) = ([0; MAX_BYTES], vec![0; 64]);
    for count in 1.. {
        let Ok(len) = back.recv(&mut room).await else { continue };
        let Some(to) = *edge.lock().unwrap() else { continue };
        let datagram = &room[..len];
        let added = match &forged {
            Some(_) => forgeries(datagram, &before, count),
            None => Vec::new(),
        };
        for one in added.iter().map(Vec::as_slice).chain([datagram]) {
            front.send_to(one, to).await.unwrap();
        }
        if let Some(forged) = &forged {
            front.send_to(datagram, to).await.unwrap();
            forged.fetch_add(added.len() + 1, Ordering::Relaxed);
        }
        before = datagram.to_vec();
    }
}

/// A gateway, and an edge that reaches it over such a path by carriers of a kind.
struct Ground {
    origin: Origin,
    gateway: Side,
    edge: Side,
    path: Path,
    _dir: keys::Dir,
}

impl Ground {
    async fn new(name: &str, kind: &str, does: Does) -> Self {
        let origin = Origin::start().await;
        let dir = keys::Dir::new(&format!("hostile-datagrams-{name}-{kind}"));
        let (ours, theirs) = (dir.key("edge"), dir.key("gateway"));
        let admin = "admin = '127.0.0.1:0'\n";
        let gateway = gateway(&format!("{admin}{}", keys::with(&theirs, &ours.public))).await;
        let path = Path::start(gateway.address, does).await;
        let to = format!("gateway = '{}'\ncarrier = '{kind}'\n", path.address);
        let edge = edge(&format!("{to}{admin}{}", keys::with(&ours, &theirs.public))).await;
        Self { origin, gateway, edge, path, _dir: dir }
    }

    /// Messages of several lengths in either direction: each is answered, and carried out once.
    async fn exchanges(&self, count: usize) {
        for at in 0..count {
            let bytes = [0, 1, 600, 3000, 20_000, 60_000][at % 6];
            let before = self.origin.seen.lock().unwrap().len();
            let body = text_like(bytes, at as u64);
            let url = self.origin.url(&format!("/echo?{at}"));
            let answer = send(self.edge.address, "POST", &url, "", &body).await;
            assert_eq!((answer.status, answer.body.len()), (200, bytes), "{at}: {}", answer.text());
            assert!(answer.body == body, "{at}: another body");
            assert_eq!(self.origin.seen.lock().unwrap().len(), before + 1, "{at}");
        }
    }
}

/// A counter of a side; all of its labels, or that with one.
async fn counted(side: &Side, name: &str) -> usize {
    let ask = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = Answer::parse(&raw(side.admin.unwrap(), ask).await.0).text();
    let of = |line: &str| {
        let (key, value) = line.strip_prefix("longwire_")?.rsplit_once(' ')?;
        let is_it = key == name || key.split_once('{').is_some_and(|(key, _)| key == name);
        is_it.then(|| value.parse::<usize>().unwrap())
    };
    answer.lines().filter_map(of).sum::<usize>()
}

#[tokio::test]
async fn what_others_make_of_datagrams_is_counted_and_ends_nothing() {
    for kind in KINDS {
        let ground = Ground::new("forged", kind, Does::Forges).await;
        ground.exchanges(24).await;
        for side in [&ground.edge, &ground.gateway] {
            assert_eq!(counted(side, "carriers_up_total").await, 1, "{kind}");
            assert_eq!(counted(side, "carriers_down_total").await, 0, "{kind}");
        }
        let forged = ground.path.forged.load(Ordering::Relaxed);
        let refused = counted(&ground.gateway, "datagrams_refused_total").await;
        println!("{kind}: {forged} made, {refused} refused at the gateway");
        assert!(forged > 500 && refused > 0, "{kind}: {forged} {refused}");
        if kind == "burst" {
            for why in ["repeated", "forged", "unreadable"] {
                let name = format!("datagrams_refused_total{{why=\"{why}\"}}");
                let of_why = counted(&ground.gateway, &name).await;
                assert!(of_why > forged / 40, "{why}: {of_why} of {forged}");
            }
            // Every one that was made is refused, on one side or the other.
            let here = counted(&ground.edge, "datagrams_refused_total").await;
            assert!(here + refused > forged * 9 / 10, "{here} and {refused} of {forged}");
        }
    }
}

#[tokio::test]
async fn an_edge_whose_ports_change_keeps_its_carrier() {
    for kind in KINDS {
        let ground = Ground::new("moved", kind, Does::Moves(60)).await;
        ground.exchanges(24).await;
        for side in [&ground.edge, &ground.gateway] {
            assert_eq!(counted(side, "carriers_up_total").await, 1, "{kind}");
            assert_eq!(counted(side, "carriers_down_total").await, 0, "{kind}");
        }
    }
}

/// First messages of nobody, from thousands of addresses, while an edge is served.
#[tokio::test]
async fn handshakes_of_nobody_from_thousands_of_addresses_are_counted_and_keep_nobody_out() {
    const ADDRESSES: u32 = 3000;
    const FIRST_BYTES: usize = 130;
    let ground = Ground::new("flood", "burst", Does::Nothing).await;
    ground.exchanges(1).await;
    let to = ground.gateway.address;
    let flood = tokio::spawn(async move {
        for at in 0..ADDRESSES {
            let from = Ipv4Addr::from_bits(Ipv4Addr::LOCALHOST.to_bits() + (at << 8));
            let stranger = UdpSocket::bind((from, 0)).await.unwrap();
            let mut first = text_like(FIRST_BYTES, u64::from(at));
            first[0] = 4;
            stranger.send_to(&first, to).await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    ground.exchanges(12).await;
    flood.await.unwrap();
    // Each has been looked at and refused, or asked for a token: none is left out.
    eventually(|| async {
        counted(&ground.gateway, "datagrams_refused_total").await >= ADDRESSES as usize * 9 / 10
    })
    .await;
    ground.exchanges(6).await;
    assert_eq!(counted(&ground.gateway, "carriers_up_total").await, 1);
    assert_eq!(counted(&ground.gateway, "carriers_down_total").await, 0);
}
