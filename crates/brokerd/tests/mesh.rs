//! Three brokers as processes of their own, with stores, sockets and keys: one is killed and comes
//! back. Each process is this program again, with a member in its environment.

#![allow(clippy::unwrap_used)] // Tests.

use std::collections::VecDeque;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use longwire_brokerd::{Config, Handed, Order, serve};

/// The configuration of the member that this process is to be.
const MEMBER: &str = "LONGWIRE_TEST_MESH_MEMBER";
/// How long anything may take on a busy machine.
const MAX_WAIT: Duration = Duration::from_secs(90);
const NAMES: [&str; 3] = ["alpha", "bravo", "charlie"];

/// Not a test, but what the processes run.
#[test]
fn a_member_serves_until_it_is_killed() {
    let Some(path) = std::env::var_os(MEMBER) else { return };
    let config = Config::load(Path::new(&path)).unwrap();
    serve(&config, Handed::default(), |_| {}, std::future::pending::<Order>).unwrap();
}

/// Members that end with it.
struct Mesh {
    directory: PathBuf,
    clients: [SocketAddr; 3],
    processes: [Option<Child>; 3],
}

impl Drop for Mesh {
    fn drop(&mut self) {
        (0..NAMES.len()).for_each(|at| self.kill(at));
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Addresses that were free just now.
fn free<const N: usize>() -> [SocketAddr; N] {
    let all = [(); N].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    all.map(|socket| socket.local_addr().unwrap())
}

impl Mesh {
    fn start() -> Self {
        let name = format!("longwire-mesh-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let [one, two, three, four, five, six] = free();
        let (members, clients) = ([one, two, three], [four, five, six]);
        for (at, name) in NAMES.iter().enumerate() {
            let shown = directory.display();
            let mut text = format!(
                "[broker]\nmqtt = \"{}\"\nstore = \"{shown}/{name}\"\n[mesh]\nname = \"{name}\"\n\
                 listen = \"{}\"\n",
                clients[at], members[at],
            );
            for (other, member) in NAMES.iter().enumerate().filter(|(other, _)| *other != at) {
                let (low, high) = (at.min(other), at.max(other));
                let key = format!("{shown}/key-{low}-{high}");
                fs::write(&key, format!("a key of {low} and {high} that is long\n")).unwrap();
                text += &format!(
                    "[[mesh.member]]\nname = \"{member}\"\nkey = \"{key}\"\nurl = \"mesh://{}\"\n",
                    members[other],
                );
            }
            fs::write(directory.join(format!("{name}.toml")), text).unwrap();
        }
        let mut mesh = Self { directory, clients, processes: [None, None, None] };
        (0..NAMES.len()).for_each(|at| mesh.run(at));
        mesh
    }

    fn run(&mut self, at: usize) {
        let process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_member_serves_until_it_is_killed"])
            .env(MEMBER, self.directory.join(format!("{}.toml", NAMES[at])))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        self.processes[at] = Some(process);
    }

    /// As if the power were gone.
    fn kill(&mut self, at: usize) {
        if let Some(mut process) = self.processes[at].take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

/// A client of MQTT 3.1.1, just good enough.
struct Client {
    stream: TcpStream,
    last_id: u16,
    /// What came before what was waited for: publications may (MQTT 3.1.1 §3.8.4).
    early: VecDeque<(u8, Vec<u8>)>,
}

impl Client {
    /// Once the broker is there.
    fn connect(to: SocketAddr, name: &str, is_clean: bool) -> Self {
        let until = Instant::now() + MAX_WAIT;
        let stream = loop {
            match TcpStream::connect(to) {
                Ok(stream) => break stream,
                Err(error) => assert!(Instant::now() < until, "{to}: {error}"),
            }
            // sleep: a process says nothing before its listener is there.
            std::thread::sleep(Duration::from_millis(50));
        };
        stream.set_read_timeout(Some(MAX_WAIT)).unwrap();
        let mut client = Self { stream, last_id: 0, early: VecDeque::new() };
        let flags = if is_clean { 2 } else { 0 };
        let mut body = b"\0\x04MQTT\x04".to_vec();
        body.extend([flags, 0, 0, 0, u8::try_from(name.len()).unwrap()]);
        body.extend(name.as_bytes());
        client.send(0x10, &body);
        assert_eq!(client.receive().0, 0x20);
        client
    }

    fn send(&mut self, kind: u8, body: &[u8]) {
        let len = u8::try_from(body.len()).unwrap();
        assert!(len < 0x80);
        self.stream.write_all(&[&[kind, len], body].concat()).unwrap();
    }

    fn receive(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 2];
        self.stream.read_exact(&mut head).unwrap();
        let mut body = vec![0; usize::from(head[1])];
        self.stream.read_exact(&mut body).unwrap();
        (head[0], body)
    }

    /// The next packet of a kind; others wait for whoever wants them.
    fn await_kind(&mut self, wanted: u8) -> Vec<u8> {
        loop {
            let (kind, body) = self.receive();
            if kind == wanted {
                return body;
            }
            self.early.push_back((kind, body));
        }
    }

    fn id(&mut self) -> [u8; 2] {
        self.last_id += 1;
        self.last_id.to_be_bytes()
    }

    fn subscribe(&mut self, filter: &str) {
        let mut body = self.id().to_vec();
        body.extend([0, u8::try_from(filter.len()).unwrap()]);
        body.extend(filter.as_bytes());
        body.push(2);
        self.send(0x82, &body);
        self.await_kind(0x90);
    }

    /// Publishes at QoS 2, until that is over.
    fn publish(&mut self, topic: &str, payload: &str, retain: bool) {
        let mut body = vec![0, u8::try_from(topic.len()).unwrap()];
        body.extend(topic.as_bytes());
        let id = self.id();
        body.extend(id);
        body.extend(payload.as_bytes());
        self.send(0x34 | u8::from(retain), &body);
        assert_eq!(self.await_kind(0x50), id);
        self.send(0x62, &id);
        assert_eq!(self.await_kind(0x70), id);
    }

    /// The next publication.
    fn next(&mut self) -> (String, String) {
        loop {
            let early = self.early.pop_front();
            let (kind, body) = early.unwrap_or_else(|| self.receive());
            match kind >> 4 {
                3 => {
                    let len = usize::from(body[1]);
                    let topic = String::from_utf8(body[2..2 + len].to_vec()).unwrap();
                    let qos = kind >> 1 & 3;
                    let rest = if qos > 0 { 4 + len } else { 2 + len };
                    let payload = String::from_utf8(body[rest..].to_vec()).unwrap();
                    if qos == 2 {
                        self.send(0x50, &body[2 + len..4 + len]);
                    }
                    return (topic, payload);
                }
                6 => self.send(0x70, &body),
                _ => {}
            }
        }
    }
}

/// Until something that one publishes reaches the other.
fn meet(from: &mut Client, to: &mut Client, topic: &str) {
    // Retained, so that it arrives however early it is said.
    from.publish(topic, "here", true);
    while to.next().0 != topic {}
}

#[test]
fn three_brokers_replicate_and_one_that_was_killed_catches_up() {
    if std::env::var_os(MEMBER).is_some() {
        return;
    }
    let mut mesh = Mesh::start();
    let [mut alpha, mut bravo] =
        [0, 1].map(|at| Client::connect(mesh.clients[at], NAMES[at], true));
    let mut charlie = Client::connect(mesh.clients[2], "charlie", false);
    bravo.subscribe("#");
    charlie.subscribe("#");
    meet(&mut alpha, &mut bravo, "ready/b");
    meet(&mut alpha, &mut charlie, "ready/c");
    alpha.publish("event", "1", false);
    assert_eq!(charlie.next(), ("event".into(), "1".into()));
    // What is known of charlie's interest is known at alpha, as this went there by it.
    mesh.kill(2);
    drop(charlie);
    for number in 2..=20 {
        alpha.publish("event", &number.to_string(), false);
        alpha.publish("state", &number.to_string(), true);
    }
    mesh.run(2);
    let mut charlie = Client::connect(mesh.clients[2], "charlie", false);
    let (mut events, mut states) = (Vec::new(), Vec::new());
    while events.len() < 19 || states.last().is_none_or(|last| last != "20") {
        let (topic, payload) = charlie.next();
        match topic.as_str() {
            // What it had when it was killed may not have been known to its broker.
            "event" if payload != "1" => events.push(payload),
            "state" => states.push(payload),
            _ => {}
        }
    }
    let expected: Vec<String> = (2..=20).map(|number| number.to_string()).collect();
    assert_eq!(events, expected, "each once, in order");
    assert!(states.is_sorted_by_key(|text| text.parse::<u32>().unwrap()), "{states:?}");
    // The one that wrote them is gone for good: the others have the state, and serve on.
    mesh.kill(0);
    let mut late = Client::connect(mesh.clients[2], "late", true);
    late.subscribe("state");
    assert_eq!(late.next(), ("state".into(), "20".into()));
    late.publish("event", "21", false);
    while bravo.next() != ("event".into(), "21".into()) {}
}
