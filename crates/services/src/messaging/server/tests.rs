mod coap;
mod schemas;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::route::{Found, find};
use super::{Face, Server};
use crate::client::Target;
use crate::messaging::config::{Config, Peer, Way};
use crate::messaging::forms::{Form, MAX_DOCUMENT_BYTES, SCHEMA};
use crate::messaging::machine::{Retry, Settings};
use crate::messaging::message::MESSAGE;

const MS: Duration = Duration::from_millis(1);

/// A directory of its own that is removed in the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn scratch(name: &str) -> Scratch {
    let name = format!("longwire-messaging-server-{name}-{}", std::process::id());
    Scratch(std::env::temp_dir().join(name))
}

/// A node that runs.
struct Node {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

fn config(node: &str, store: &Scratch, port: u16, peers: &[(&str, u16, Form)]) -> Config {
    let (mut nodes, mut routes) = (BTreeMap::new(), BTreeMap::new());
    for (name, port, form) in peers {
        let url = Target::parse(&format!("http://127.0.0.1:{port}")).unwrap();
        nodes.insert((*name).into(), Peer { way: Way::Http(url), form: *form });
        routes.insert((*name).into(), (*name).into());
    }
    Config {
        listen: SocketAddr::from(([127, 0, 0, 1], port)),
        peers: None,
        coap: None,
        coap_listen: None,
        coap_tcp: None,
        store: store.0.join(node),
        proxy: None,
        nodes,
        settings: Settings {
            routes,
            retry: Retry { first: 50 * MS, longest: 200 * MS, window: 4 },
            attempt_timeout: 5000 * MS,
            resend: 60_000 * MS,
            retention: 60_000 * MS,
            validity: 60_000 * MS,
            max_messages: 100,
            ..Settings::new(node, &[])
        },
    }
}

async fn start(config: Config) -> Node {
    let server = Server::bind(&config).await.unwrap();
    let address = server.addresses()[0];
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(server.run(async move { drop(stopped.await) }));
    Node { address, stop, ended }
}

impl Node {
    async fn end(self) {
        let _ = self.stop.send(());
        self.ended.await.unwrap();
    }

    /// A request as text; the status, the head and the content.
    async fn ask(&self, method: &str, path: &str, fields: &str, content: &[u8]) -> Answer {
        let length = content.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
             Content-Length: {length}\r\n{fields}\r\n"
        );
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(&[head.as_bytes(), content].concat()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, content: answer[end + 4..].to_vec() }
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", b"").await
    }

    async fn post(&self, path: &str, content: &str) -> Answer {
        self.ask("POST", path, "Content-Type: application/json\r\n", content.as_bytes()).await
    }

    /// Asks again and again until an answer is as it is wanted.
    async fn until(&self, path: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..1000 {
            let answer = self.get(path).await;
            if answer.status == 200 && is_wanted(&answer.json()) {
                return answer.json();
            }
            // sleep: between two looks at what another task does.
            tokio::time::sleep(10 * MS).await;
        }
        panic!("{path} is never as it should be: {}", self.get(path).await.text());
    }
}

struct Answer {
    status: u16,
    head: String,
    content: Vec<u8>,
}

impl Answer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.content).into_owned()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.content).unwrap_or_else(|_| panic!("{}", self.text()))
    }
}

/// A port that nothing listens at now.
async fn free_port() -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().port()
}

fn count(list: &Value) -> usize {
    list["messages"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_message_goes_from_client_to_client_in_each_form() {
    for form in Form::ALL {
        let store = scratch(form.name());
        let port = free_port().await;
        let a = start(config("a", &store, 0, &[("b", port, form)])).await;
        // b is not there yet: a tries again.
        let draft = r#"{"addressees":["b"],"text":"Contact <north>","receipt":"read"}"#;
        let accepted = a.post("/messages", draft).await;
        assert_eq!(accepted.status, 201, "{}", accepted.text());
        let id = accepted.json()["id"].as_str().unwrap().to_owned();
        assert!(accepted.head.contains(&format!("location: /outbox/{id}")), "{}", accepted.head);
        assert!(accepted.head.contains("longwire-node: a"), "{}", accepted.head);
        let b = start(config("b", &store, port, &[("a", a.address.port(), form)])).await;
        let inbox = b.until("/inbox", |inbox| count(inbox) == 1).await;
        let message = &inbox["messages"][0]["message"];
        assert_eq!(
            (message["text"].as_str(), message["id"].as_str()),
            (Some("Contact <north>"), Some(&*id))
        );
        let stage = |wanted: &'static str| {
            move |status: &Value| status["recipients"]["b"]["stage"] == wanted
        };
        a.until(&format!("/outbox/{id}"), stage("delivered")).await;
        // The message in the form that is asked for.
        let accept = format!("Accept: {}\r\n", form.media_type());
        let got = b.ask("GET", &format!("/inbox/{id}"), &accept, b"").await;
        assert_eq!(got.status, 200);
        let record = form.decode(&MESSAGE, &got.content).unwrap();
        let transfer = crate::messaging::Transfer::of(record).unwrap();
        assert_eq!(transfer.message.text, "Contact <north>");
        // Read: the originator learns of it.
        assert_eq!(b.post(&format!("/inbox/{id}/read"), "").await.status, 204);
        a.until(&format!("/outbox/{id}"), stage("read")).await;
        assert_eq!(count(&b.get("/inbox?unread=true").await.json()), 0);
        assert_eq!(b.ask("DELETE", &format!("/inbox/{id}"), "", b"").await.status, 204);
        assert_eq!(b.get(&format!("/inbox/{id}")).await.status, 404);
        a.end().await;
        b.end().await;
    }
}

#[tokio::test]
async fn what_was_accepted_is_there_after_a_restart() {
    let store = scratch("restart");
    let port = free_port().await;
    let settings = || config("a", &store, 0, &[("b", port, Form::Json)]);
    let a = start(settings()).await;
    let accepted = a.post("/messages", r#"{"addressees":["a","b"],"text":"x"}"#).await;
    let id = accepted.json()["id"].as_str().unwrap().to_owned();
    a.end().await;
    let a = start(settings()).await;
    let status = a.get(&format!("/outbox/{id}")).await.json();
    assert_eq!(status["recipients"]["a"]["stage"], "delivered");
    assert_eq!(status["recipients"]["b"]["stage"], "waiting");
    assert_eq!(count(&a.get("/inbox").await.json()), 1);
    a.end().await;
}

#[tokio::test]
async fn what_is_wrong_is_refused_in_one_line() {
    let store = scratch("refused");
    let a = start(config("a", &store, 0, &[("b", 9, Form::Json)])).await;
    let json = "Content-Type: application/json\r\n";
    let good = r#"{"addressees":["b"],"text":"x"}"#;
    let long = format!(r#"{{"addressees":["b"],"text":"{}"}}"#, "x".repeat(40_000));
    let huge = " ".repeat(MAX_DOCUMENT_BYTES + 1);
    let past = r#"{"addressees":["b"],"text":"x","time":"2020-01-01T00:00:00Z"}"#;
    let forged = r#"{"addressees":["b"],"text":"x","originator":"b"}"#;
    let looped = r#"{"id":"b-1","precedence":"flash","originator":"b","addressees":["a"],
        "time":"2026-03-14T06:00:00Z","text":"x","hops":["c","a"]}"#;
    let receipt = r#"{"message":"a-9","originator":"a","addressee":"b","outcome":"read",
        "time":"TIME"}"#;
    let now = crate::messaging::time::format(
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap(),
    );
    let receipt = receipt.replace("TIME", &now);
    for (method, path, fields, content, status, words) in [
        ("POST", "/messages", "Content-Type: text/csv\r\n", good, 415, "'text/csv' is not known"),
        ("POST", "/messages", "", good, 415, "no Content-Type"),
        ("POST", "/messages", json, "{", 400, "no JSON"),
        (
            "POST",
            "/messages",
            json,
            r#"{"addressees":["x"],"text":"y"}"#,
            404,
            "'x' does not exist",
        ),
        ("POST", "/messages", json, &long, 413, "40000 bytes are over the limit of 32768"),
        ("POST", "/messages", json, &huge, 413, "over the limit of 524288 bytes"),
        ("POST", "/messages", json, past, 422, "ended at 2020-01-01T00:01:00Z"),
        ("POST", "/messages", json, forged, 403, "originator 'b' is not this node"),
        ("POST", "/transfers", json, good, 400, "field 'id' of a message is missing"),
        ("POST", "/transfers", json, looped, 508, "was at 'a' before: b > c > a"),
        ("POST", "/receipts", json, &receipt, 404, "no message 'a-9' of node 'a' is known"),
        ("GET", "/inbox/b-1", "Accept: image/png\r\n", "", 406, "accept one of application/json"),
        ("GET", "/inbox/b-1", "", "", 404, "no message 'b-1' in the inbox"),
        ("GET", "/inbox/b-1?originator=c", "", "", 404, "no message 'b-1' in the inbox"),
        ("DELETE", "/inbox/b-1?from=c", "", "", 400, "'from=c' is not known; originator is"),
        ("GET", "/outbox/b-1", "", "", 404, "no message 'b-1' in the outbox"),
        ("POST", "/inbox/b-1/read", json, "", 404, "no message 'b-1' in the inbox of 'a'"),
        ("GET", "/inbox?limit=0", "", "", 400, "limit: '0' is not from 1 to 1000"),
        ("GET", "/outbox?unread=true", "", "", 400, "parameter 'unread' is not known"),
        ("GET", "/events?after=x", "", "", 400, "after: 'x' is no number"),
        ("PUT", "/inbox", "", "", 405, "/inbox has only GET"),
        ("GET", "/nothing", "", "", 404, "no resource '/nothing' here"),
    ] {
        let answer = a.ask(method, path, fields, content.as_bytes()).await;
        let text = answer.text();
        assert_eq!(answer.status, status, "{method} {path}: {text}");
        assert!(text.contains(words) && text.trim_end().lines().count() == 1, "{path}: {text}");
    }
    let none = a.get("/outbox").await.json();
    assert_eq!(count(&none), 0, "nothing that was refused is kept");
    a.end().await;
}

#[tokio::test]
async fn clients_and_nodes_have_faces_of_their_own() {
    let store = scratch("faces");
    let mut two = config("a", &store, 0, &[]);
    two.peers = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let server = Server::bind(&two).await.unwrap();
    let [clients, peers] = server.addresses()[..] else { panic!() };
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(server.run(async move { drop(stopped.await) }));
    let mut node = Node { address: peers, stop, ended };
    assert_eq!(node.post("/messages", "{}").await.status, 404);
    assert_eq!(node.post("/transfers", "{}").await.status, 400);
    node.address = clients;
    assert_eq!(node.post("/messages", "{}").await.status, 400);
    assert_eq!(node.post("/transfers", "{}").await.status, 404);
    assert_eq!(node.get("/schemas/messaging.xsd").await.text(), SCHEMA);
    node.end().await;
    // With keys the clients' is never the nodes' too, as where those come over CoAP.
    let mut keyed = config("a", &store, 0, &[]);
    keyed.settings.keys = crate::messaging::Keys::new([("a".to_owned(), vec![7; 16])]).unwrap();
    let node = start(keyed).await;
    assert_eq!(node.post("/transfers", "{}").await.status, 404);
    assert_eq!(node.post("/messages", "{}").await.status, 400);
    node.end().await;
}

/// A seat for each, so that one more waits: of nodes it takes none from clients.
#[tokio::test]
async fn nodes_that_hold_all_connections_keep_no_client_out() {
    let store = scratch("seats");
    let mut two = config("a", &store, 0, &[]);
    two.peers = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut server = Server::bind(&two).await.unwrap();
    server.max_connections = 2;
    let [clients, peers] = server.addresses()[..] else { panic!() };
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(server.run(async move { drop(stopped.await) }));
    let node = Node { address: clients, stop, ended };
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(peers).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0, "it has a seat");
        held.push(stream);
    }
    let answer = tokio::time::timeout(5000 * MS, node.get("/inbox")).await;
    assert_eq!(answer.expect("a client waits for nodes").status, 200);
    drop(held);
    node.end().await;
}

#[tokio::test]
async fn a_message_that_is_gone_need_not_be_marked() {
    let store = scratch("gone");
    let a = start(config("a", &store, 0, &[])).await;
    let url = Target::parse(&format!("http://{}", a.address)).unwrap();
    let client = crate::messaging::client::Client { url, timeout: 5000 * MS };
    let id = a.post("/messages", r#"{"addressees":["a"],"text":"x"}"#).await;
    let id = id.json()["id"].as_str().unwrap().to_owned();
    assert!(client.mark_read_if_there(&id, None).await.unwrap());
    client.remove(&id, Some("a")).await.unwrap();
    assert!(!client.mark_read_if_there(&id, None).await.unwrap());
    a.end().await;
    assert!(client.mark_read_if_there(&id, None).await.is_err(), "nobody says that it is gone");
}

#[tokio::test]
async fn subscribers_get_what_was_and_what_comes() {
    let store = scratch("events");
    let a = start(config("a", &store, 0, &[])).await;
    let send = |text: &str| format!(r#"{{"addressees":["a"],"text":"{text}"}}"#);
    a.post("/messages", &send("one")).await;
    let mut stream = TcpStream::connect(a.address).await.unwrap();
    stream.write_all(b"GET /events?after=0 HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut seen = String::new();
    let mut room = [0; 4096];
    let mut is_sent = false;
    while !(seen.contains("\"two\"") && seen.contains("event: status")) {
        let count = stream.read(&mut room).await.unwrap();
        assert!(count > 0, "{seen}");
        seen.push_str(std::str::from_utf8(&room[..count]).unwrap());
        if seen.contains("\"one\"") && !is_sent {
            is_sent = true;
            a.post("/messages", &send("two")).await;
        }
    }
    assert!(seen.contains("content-type: text/event-stream"), "{seen}");
    assert_eq!(seen.matches("event: message").count(), 2, "{seen}");
    let ids: Vec<u64> = seen
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .map(|id| id.parse().unwrap())
        .collect();
    assert!(ids.len() == 2 && ids[0] < ids[1], "{seen}");
    // Who comes back says which he has.
    let mut again = TcpStream::connect(a.address).await.unwrap();
    let head = format!("GET /events HTTP/1.1\r\nHost: x\r\nLast-Event-ID: {}\r\n\r\n", ids[0]);
    again.write_all(head.as_bytes()).await.unwrap();
    let mut seen = String::new();
    while !seen.contains("\"two\"") {
        let count = again.read(&mut room).await.unwrap();
        assert!(count > 0, "{seen}");
        seen.push_str(std::str::from_utf8(&room[..count]).unwrap());
    }
    assert!(!seen.contains("\"one\""), "{seen}");
    // Who gets nothing at first knows the number to come back with all the same.
    let mut third = TcpStream::connect(a.address).await.unwrap();
    let head = format!("GET /events?after={} HTTP/1.1\r\nHost: x\r\n\r\n", ids[1]);
    third.write_all(head.as_bytes()).await.unwrap();
    let mut seen = String::new();
    while !seen.contains(&format!("\nid: {}\n\n", ids[1])) {
        let count = third.read(&mut room).await.unwrap();
        assert!(count > 0, "{seen}");
        seen.push_str(std::str::from_utf8(&room[..count]).unwrap());
    }
    a.end().await;
    // The end of the service ends the stream.
    while stream.read(&mut room).await.unwrap() > 0 {}
}

/// More than the owner hands out at once, and one that comes behind them.
#[tokio::test]
async fn a_long_inbox_is_replayed_in_one_stream() {
    let store = scratch("replay");
    let mut config = config("a", &store, 0, &[]);
    config.settings.max_messages = 1000;
    let a = start(config).await;
    let text = "x".repeat(16 * 1024);
    let draft = format!(r#"{{"addressees":["a"],"text":"{text}"}}"#);
    const COUNT: usize = 300;
    for _ in 0..COUNT {
        assert_eq!(a.post("/messages", &draft).await.status, 201);
    }
    let list = a.get("/inbox?limit=1000").await.json();
    assert!((200..COUNT).contains(&count(&list)) && list["more"] == true, "{}", count(&list));
    let mut stream = TcpStream::connect(a.address).await.unwrap();
    stream.write_all(b"GET /events?after=0 HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let (mut seen, mut room) = (String::new(), vec![0; 64 * 1024]);
    let mut is_sent = false;
    while seen.matches("event: message").count() < COUNT + 1 {
        if seen.matches("event: message").count() == COUNT && !is_sent {
            is_sent = true;
            a.post("/messages", r#"{"addressees":["a"],"text":"the last"}"#).await;
        }
        let count = stream.read(&mut room).await.unwrap();
        assert!(count > 0, "the stream ends early");
        seen = seen.replace(&text, "");
        seen.push_str(std::str::from_utf8(&room[..count]).unwrap());
    }
    let ids = seen.lines().filter_map(|line| line.strip_prefix("id: "));
    let ids: Vec<u64> = ids.map(|id| id.parse().unwrap()).collect();
    assert!(ids.is_sorted() && ids.len() == COUNT + 1);
    a.end().await;
}

#[test]
fn routes_are_found_by_face_method_and_path() {
    use super::route::Does;
    let get = http::Method::GET;
    assert_eq!(find(Face::Both, &get, "/inbox/a-1"), Found::Route(Does::ShowArrived, "a-1"));
    assert_eq!(find(Face::Clients, &get, "/inbox/a/read"), Found::OtherMethods(vec!["POST"]));
    let methods = Found::OtherMethods(vec!["GET", "DELETE"]);
    assert_eq!(find(Face::Both, &http::Method::PUT, "/inbox/a"), methods);
    for path in ["/inbox/", "/inbox/a/b", "/inboxes", "", "/inbox//read"] {
        assert_eq!(find(Face::Both, &get, path), Found::Nothing, "{path}");
    }
    assert_eq!(find(Face::Peers, &get, "/inbox"), Found::Nothing);
}
