//! Sessions between clients and a server, in virtual time.

use std::collections::VecDeque;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::server::{MAX_HANDSHAKES_PER_SOURCE, MAX_SILENCE, MAX_STRANGERS};
use super::*;

const KEY: &str = "0123456789abcdef";
const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 5684);

fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// The keys of two clients.
fn keys() -> Keys {
    // Tests run beside each other.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("longwire-psk-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut file = OpenOptions::new();
    let file = file.write(true).create(true).truncate(true).mode(0o600).open(&path);
    let text = format!("'one' = '{KEY}'\n'other' = '0xffeeddccbbaa99887766554433221100'\n");
    file.unwrap().write_all(text.as_bytes()).unwrap();
    let keys = Keys::read(&path);
    fs::remove_file(&path).unwrap();
    keys.unwrap()
}

/// A server, and clients at ports of one or several addresses.
struct Net {
    now: Duration,
    server: Sessions,
    clients: BTreeMap<SocketAddr, Client>,
    on_the_way: VecDeque<(Option<SocketAddr>, SocketAddr, Bytes)>,
    /// What the server's endpoint gets.
    received: Vec<(Peer, Bytes)>,
    answered: Vec<(SocketAddr, Bytes)>,
    failed: Vec<(SocketAddr, String)>,
    began: Instant,
}

impl Net {
    fn new() -> Self {
        // Deadlines are counted from here, whatever time it is.
        let began = Instant::now();
        Self {
            now: Duration::ZERO,
            server: Sessions::new(began, KEYS.with(Clone::clone)).unwrap(),
            clients: BTreeMap::new(),
            on_the_way: VecDeque::new(),
            received: Vec::new(),
            answered: Vec::new(),
            failed: Vec::new(),
            began,
        }
    }

    fn client(&mut self, address: &str, identity: &str, key: &str) -> SocketAddr {
        let address: SocketAddr = address.parse().unwrap();
        let (identity, key) = keys::parse(identity, key).unwrap();
        let client = Client::new(self.began, &identity, &key).unwrap();
        self.clients.insert(address, client);
        address
    }

    fn of_client(&mut self, address: SocketAddr, out: Out) {
        let all = out.datagrams.into_iter();
        self.on_the_way.extend(all.map(|(_, bytes)| (Some(address), address, bytes)));
        self.answered.extend(out.messages.into_iter().map(|(_, bytes)| (address, bytes)));
        self.failed.extend(out.failed.map(|why| (address, why)));
    }

    fn of_server(&mut self, out: Out) {
        let all = out.datagrams.into_iter();
        self.on_the_way.extend(all.map(|(peer, bytes)| (None, peer.address, bytes)));
        self.received.extend(out.messages);
    }

    fn say(&mut self, address: SocketAddr, bytes: &[u8]) {
        let mut out = Out::default();
        let client = self.clients.get_mut(&address).unwrap();
        client.send(self.now, Peer::server(SERVER.into()), bytes, &mut out);
        self.of_client(address, out);
    }

    fn reply(&mut self, peer: Peer, bytes: &[u8]) {
        let mut out = Out::default();
        self.server.send(self.now, peer, bytes, &mut out);
        self.of_server(out);
    }

    /// The next datagram arrives.
    fn step(&mut self) -> bool {
        let Some((from, address, bytes)) = self.on_the_way.pop_front() else { return false };
        let mut out = Out::default();
        match from {
            Some(from) => {
                self.server.receive(self.now, Peer::server(from), &bytes, &mut out);
                self.of_server(out);
            }
            None => {
                if let Some(client) = self.clients.get_mut(&address) {
                    client.receive(self.now, Peer::server(SERVER.into()), &bytes, &mut out);
                    self.of_client(address, out);
                }
            }
        }
        true
    }

    fn settle(&mut self) {
        while self.step() {}
    }

    /// Everyone is woken as it wants, until then.
    fn pass(&mut self, until: Duration) {
        loop {
            self.settle();
            let wanted = self.clients.values().map(|client| client.wakes_at);
            let next = wanted.chain([self.server.wakes_at()]).flatten().min();
            let Some(at) = next.filter(|at| *at <= until) else { break };
            self.now = self.now.max(at);
            let mut out = Out::default();
            self.server.wake(self.now, &mut out);
            self.of_server(out);
            for address in self.clients.keys().copied().collect::<Vec<_>>() {
                let mut out = Out::default();
                self.clients.get_mut(&address).unwrap().wake(self.now, &mut out);
                self.of_client(address, out);
            }
        }
        self.now = until;
    }
}

thread_local! {
    static KEYS: Keys = keys();
}

#[test]
fn who_has_a_key_is_served_and_others_are_not() {
    let mut net = Net::new();
    let one = net.client("198.51.100.1:1000", "one", KEY);
    let other = net.client("198.51.100.2:1000", "other", "0xffeeddccbbaa99887766554433221100");
    let wrong = net.client("198.51.100.3:1000", "one", "0123456789abcdeX");
    let unknown = net.client("198.51.100.4:1000", "nobody", KEY);
    for (address, bytes) in [(one, b"from one"), (other, b"an other"), (wrong, b"wrongkey")] {
        net.say(address, bytes);
    }
    net.say(unknown, b"unknown!");
    net.settle();
    let received: Vec<_> =
        net.received.iter().map(|(peer, bytes)| (peer.address, bytes.as_ref())).collect();
    assert_eq!(received, [(one, &b"from one"[..]), (other, b"an other")]);
    let peers: Vec<_> = net.received.iter().map(|(peer, _)| *peer).collect();
    assert!(peers[0].session != peers[1].session && peers[0].session > 0);
    net.reply(peers[0], b"to one");
    net.settle();
    assert_eq!(net.answered, [(one, Bytes::from("to one"))]);
    // What was not let in gives up, and so does the server.
    net.pass(Duration::from_secs(50));
    let failed: Vec<_> = net.failed.iter().map(|(address, _)| *address).collect();
    assert!(failed.contains(&wrong) && failed.contains(&unknown), "{:?}", net.failed);
    assert_eq!(net.server.counts(), (0, 2));
}

#[test]
fn what_is_lost_is_said_again() {
    for lost in 0..8 {
        let mut net = Net::new();
        let one = net.client("198.51.100.1:1000", "one", KEY);
        net.say(one, b"a message");
        for _ in 0..lost {
            net.step();
        }
        net.on_the_way.pop_front();
        net.pass(Duration::from_secs(35));
        // A message itself is for the endpoint to repeat.
        net.say(one, b"a message");
        net.settle();
        assert!(!net.received.is_empty(), "{lost}: {:?}", net.failed);
    }
}

/// RFC 6347 §4.2.1: before the cookie comes back little is sent, and no place of others is taken.
#[test]
fn forged_hellos_take_no_places_and_get_no_more_than_they_sent() {
    let mut net = Net::new();
    let one = net.client("198.51.100.1:1000", "one", KEY);
    net.say(one, b"a message");
    let hello = net.on_the_way.front().unwrap().2.clone();
    net.settle();
    assert_eq!(net.server.counts(), (0, 1));
    for number in 0..1000_u16 {
        let from = SocketAddr::from(([203, 0, 113, (number % 250) as u8], 1000 + number));
        let mut out = Out::default();
        net.server.receive(ms(1), Peer::server(from), &hello, &mut out);
        let sent: usize = out.datagrams.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(sent <= hello.len(), "{sent} of {}", hello.len());
    }
    assert_eq!(net.server.counts(), (MAX_STRANGERS, 1));
    // The session goes on, and so does one from the same address that shows a key.
    net.say(one, b"another");
    net.settle();
    assert_eq!(net.received.len(), 2);
    net.pass(Duration::from_secs(60));
    assert_eq!(net.server.counts(), (0, 1));
}

/// RFC 6347 §4.2.8.
#[test]
fn a_new_session_takes_the_place_of_the_old_one_when_it_has_shown_a_key() {
    let mut net = Net::new();
    let at = net.client("198.51.100.1:1000", "one", KEY);
    net.say(at, b"the first");
    net.settle();
    let before = net.received[0].0;
    net.client("198.51.100.1:1000", "other", "0xffeeddccbbaa99887766554433221100");
    net.say(at, b"the second");
    net.settle();
    let after = net.received[1].0;
    assert!(before.address == after.address && before.session != after.session);
    // What the endpoint had for the one is not for the other.
    net.reply(before, b"secret");
    assert!(net.on_the_way.is_empty());
    assert_eq!(net.server.counts(), (0, 1));
}

#[test]
fn one_source_has_a_share_of_the_handshakes() {
    let mut net = Net::new();
    let count = MAX_HANDSHAKES_PER_SOURCE + 10;
    for number in 0..count {
        let address = format!("198.51.100.1:{}", 1000 + number);
        let address = net.client(&address, "one", KEY);
        net.say(address, b"x");
        // Hello, cookie, hello: and then the client is silent.
        (0..3).for_each(|_| assert!(net.step()));
        net.on_the_way.clear();
        net.clients.clear();
    }
    assert_eq!(net.server.counts(), (MAX_HANDSHAKES_PER_SOURCE, 0));
    let near = net.client("198.51.100.2:1000", "one", KEY);
    net.say(near, b"served");
    net.settle();
    assert_eq!(net.received.len(), 1);
    net.pass(Duration::from_secs(60));
    assert_eq!(net.server.counts(), (0, 1));
}

#[test]
fn a_session_in_which_nothing_comes_ends() {
    let mut net = Net::new();
    let one = net.client("198.51.100.1:1000", "one", KEY);
    net.say(one, b"a message");
    net.pass(MAX_SILENCE + Duration::from_secs(1));
    assert_eq!(net.server.counts(), (0, 0));
    assert!(net.failed[0].1.contains("closed"), "{:?}", net.failed);
}

/// Any bytes, and what was sent with some others in it.
#[test]
fn what_is_no_record_harms_nobody() {
    let mut net = Net::new();
    let one = net.client("198.51.100.1:1000", "one", KEY);
    net.say(one, b"a message");
    let hello = net.on_the_way.front().unwrap().2.to_vec();
    net.settle();
    let from = Peer::server(one);
    for at in 0..hello.len() {
        for value in [0, 1, 0xff] {
            let mut changed = hello.clone();
            changed[at] = value;
            net.server.receive(ms(5), from, &changed, &mut Out::default());
            net.server.receive(ms(5), from, &changed[..at], &mut Out::default());
        }
    }
    net.say(one, b"another");
    net.settle();
    assert_eq!(net.received.len(), 2);
}

#[test]
fn keys_have_their_bounds() {
    for (identity, key, why) in [
        ("", KEY, "an identity of 0 bytes"),
        ("a", "short", "a key of 5 bytes: give 16 to 64"),
        ("a", "0x0102", "a key of 2 bytes"),
        ("a", "0xno hex", "no hex"),
    ] {
        let what = keys::parse(identity, key).unwrap_err();
        assert!(what.contains(why), "{what}");
    }
}

#[test]
fn a_panic_in_a_session_costs_that_one() {
    let now = Instant::now();
    let mut client = Client::new(now, b"one", KEY.as_bytes()).unwrap();
    let (outcome, said) = advance(&mut client.dtls, now, |_| panic!("as if"));
    assert!(outcome.is_err() && said.is_closed);
}
