//! Clients of HTTP and servers of CoAP: through an edge and a gateway, and through a gateway alone.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{Answer, Side, edge, gateway, get, pair, raw, read_until, send, text_like};
use proto::coap::machine::{Flow, Input, Output, Settings};
use proto::coap::transfer::Transfers;
use proto::coap::{Code, Content, option};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// What of `/slow` is not ready at once comes so much later.
const LATE: Duration = Duration::from_secs(3);

/// A server of CoAP that runs until dropped, with our machine.
struct Server {
    address: SocketAddr,
    /// The requests that came, in order.
    seen: Arc<Mutex<Vec<Content>>>,
    /// States of `/state`, for who observes it.
    states: mpsc::Sender<Content>,
    /// How many observe it.
    observers: tokio::sync::watch::Receiver<usize>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What is there.
struct Resources {
    stored: BTreeMap<Vec<u8>, Content>,
    /// What is observed.
    state: Content,
}

fn path(content: &Content) -> String {
    let parts = content.all(option::URI_PATH).map(|part| String::from_utf8_lossy(part));
    parts.collect::<Vec<_>>().join("/")
}

impl Resources {
    /// `None`: it is never answered.
    fn answer(&mut self, request: &Content) -> Option<Content> {
        let content = Content::new(Code::CONTENT);
        let path = path(request);
        Some(match (request.code, &path[..]) {
            (_, "silent") => return None,
            (Code::GET, "hello") => content
                .with_uint(option::CONTENT_FORMAT, 0)
                .with_uint(option::MAX_AGE, 30)
                .with_payload("hello"),
            (Code::GET, "tagged") => {
                let valid = request.all(option::ETAG).any(|tag| tag == [0xab, 1]);
                let content = if valid { Content::new(Code::VALID) } else { content };
                let body = if valid { &b""[..] } else { b"tagged" };
                content.with(option::ETAG, &[0xab, 1]).with_payload(body)
            }
            (Code::GET, "large") => {
                content.with_uint(option::CONTENT_FORMAT, 42).with_payload(text_like(100_000, 3))
            }
            (Code::GET, "long") => content.with_payload(text_like(3 << 20, 9)),
            (Code::GET, "slow") => content.with_payload(text_like(70_000, 4)),
            (Code::GET, "strange") => {
                content.with_uint(option::CONTENT_FORMAT, 65_000).with_payload("x")
            }
            (Code::GET, "state") => {
                let is_observed = request.uint(option::OBSERVE) == Some(0);
                let state = self.state.clone();
                if is_observed { state.with_uint(option::OBSERVE, 0) } else { state }
            }
            (Code::GET, ".well-known/core") => {
                content.with_uint(option::CONTENT_FORMAT, 40).with_payload("</hello>,</state>;obs")
            }
            (Code::GET, _) => match self.stored.get(path.as_bytes()) {
                Some(stored) => stored.clone(),
                None => Content::new(Code::NOT_FOUND).with_payload("no such thing"),
            },
            (Code::PUT, "small") => {
                Content::new(Code::REQUEST_ENTITY_TOO_LARGE).with_uint(option::SIZE1, 10)
            }
            (Code::PUT, _) => {
                let stored = content.with_payload(request.payload.clone());
                let is_new = self.stored.insert(path.into_bytes(), stored).is_none();
                Content::new(if is_new { Code::CREATED } else { Code::CHANGED })
            }
            (Code::POST, _) => Content::new(Code::CREATED)
                .with(option::LOCATION_PATH, b"made")
                .with(option::LOCATION_PATH, b"7"),
            (Code::FETCH, _) => content.with_payload(request.payload.clone()),
            (Code::DELETE, _) => {
                self.stored.remove(path.as_bytes());
                Content::new(Code::DELETED)
            }
            _ => Content::new(Code::METHOD_NOT_ALLOWED),
        })
    }
}

impl Server {
    async fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (states, received) = mpsc::channel(16);
        let (count, observers) = tokio::sync::watch::channel(0);
        let task = tokio::spawn(serve(socket, Arc::clone(&seen), received, count));
        Self { address, seen, states, observers, task }
    }

    fn url(&self, path: &str) -> String {
        format!("coap://{}{path}", self.address)
    }

    fn hosted(&self, path: &str) -> String {
        format!("/hc/coap://{}{path}", self.address)
    }

    fn last(&self) -> Content {
        self.seen.lock().unwrap().last().unwrap().clone()
    }

    fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    fn allow(&self) -> String {
        format!("allow = ['coap://{}']", self.address)
    }
}

async fn serve(
    socket: UdpSocket,
    seen: Arc<Mutex<Vec<Content>>>,
    mut states: mpsc::Receiver<Content>,
    count: tokio::sync::watch::Sender<usize>,
) {
    let settings = Settings { seed: [1, 2], is_challenging: false, rate_bps: None };
    let (mut transfers, began) = (Transfers::<SocketAddr>::new(&settings), Instant::now());
    let state = Content::new(Code::CONTENT).with_payload("first");
    let mut resources = Resources { stored: BTreeMap::new(), state };
    let mut observers = Vec::new();
    let (mut wake_at, mut late) = (None, None);
    let mut room = vec![0; 1 << 16];
    loop {
        let far = Duration::from_secs(3600);
        let due = began + wake_at.unwrap_or(far);
        let late_at = late.map_or(began + far, |(at, _)| at);
        let input = tokio::select! {
            received = socket.recv_from(&mut room) => {
                // The kernel says that a client has gone.
                let Ok((len, peer)) = received else { continue };
                let bytes = room[..len].to_vec().into();
                vec![Input::Datagram { peer, bytes, is_group: false }]
            }
            Some(state) = states.recv() => {
                resources.state = state.clone();
                let notify = |exchange: &u64| {
                    Input::Notify { exchange: *exchange, content: state.clone() }
                };
                observers.iter().map(notify).collect()
            }
            () = tokio::time::sleep_until(due.into()) => {
                wake_at = None;
                vec![Input::Wake]
            }
            () = tokio::time::sleep_until(late_at.into()) => {
                let part = |(_, of)| Flow::Part { of, bytes: "late".into(), is_last: true };
                late.take().map(part).into_iter().map(Input::Flow).collect()
            }
        };
        let mut inputs = input;
        while let Some(input) = inputs.pop() {
            transfers.handle_input(began.elapsed(), input);
            while let Some(output) = transfers.poll_output() {
                match output {
                    Output::Datagram { peer, bytes } => {
                        let _ = socket.send_to(&bytes, peer).await;
                    }
                    Output::WakeAt(at) => wake_at = Some(at),
                    Output::Request { exchange, content: request, .. } => {
                        seen.lock().unwrap().push(request.clone());
                        let Some(content) = resources.answer(&request) else { continue };
                        if content.first(option::OBSERVE).is_some() {
                            observers.push(exchange);
                        }
                        inputs.push(match path(&request) == "slow" {
                            true => Input::Begin { exchange, content },
                            false => Input::Respond { exchange, content },
                        });
                    }
                    Output::Flow(Flow::Room { of, .. }) => late = Some((Instant::now() + LATE, of)),
                    Output::Ended { exchange } => observers.retain(|other| *other != exchange),
                    _ => {}
                }
            }
        }
        count.send_replace(observers.len());
    }
}

async fn through_a_pair(server: &Server) -> (Side, Side) {
    pair("", &server.allow()).await
}

/// Asks for a path of the edge itself.
async fn own(side: SocketAddr, method: &str, path: &str, fields: &str, body: &str) -> Answer {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {side}\r\nConnection: close\r\n\
         Content-Length: {length}\r\n{fields}\r\n{body}"
    );
    Answer::parse(&raw(side, head).await.0)
}

#[tokio::test]
async fn a_whole_url_names_a_resource_of_coap() {
    let server = Server::start().await;
    let (edge, _gateway) = through_a_pair(&server).await;
    let answer = get(edge.address, &server.url("/hello?a=1&b"), "Accept: text/plain\r\n").await;
    assert_eq!((answer.status, &*answer.text()), (200, "hello"), "{}", answer.head);
    assert!(answer.has("content-type: text/plain; charset=utf-8"), "{}", answer.head);
    assert!(answer.has("cache-control: max-age=30"), "{}", answer.head);
    let request = server.last();
    assert_eq!(request.uint(option::ACCEPT), Some(0));
    assert_eq!(request.uint(option::HOP_LIMIT), Some(16));
    let query: Vec<_> = request.all(option::URI_QUERY).collect();
    assert_eq!(query, [&b"a=1"[..], b"b"]);
    let strange = get(edge.address, &server.url("/strange"), "").await;
    assert!(strange.has("content-type: application/coap-payload;cf=65000"), "{}", strange.head);
    let missing = get(edge.address, &server.url("/nothing"), "").await;
    assert_eq!((missing.status, &*missing.text()), (404, "no such thing"));
    let head = send(edge.address, "HEAD", &server.url("/hello"), "", b"").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert!(head.has("content-length: 5"), "{}", head.head);
    let links = get(edge.address, &server.url("/.well-known/core"), "").await;
    assert_eq!(links.text(), "</hello>,</state>;obs");
    assert!(links.has("content-type: application/link-format"), "{}", links.head);
}

#[tokio::test]
async fn large_bodies_go_both_ways() {
    let server = Server::start().await;
    let (edge, _gateway) = through_a_pair(&server).await;
    let large = get(edge.address, &server.url("/large"), "").await;
    assert_eq!((large.status, large.body), (200, text_like(100_000, 3)));
    // How long it is nobody says before it is there.
    let length = |answer: &Answer| {
        let mut lines = answer.head.lines();
        lines.find_map(|line| line.strip_prefix("content-length: ").map(str::to_owned))
    };
    let long = get(edge.address, &server.url("/long"), "").await;
    assert_eq!(length(&long), None);
    assert_eq!((long.status, long.body), (200, text_like(3 << 20, 9)));
    let head = send(edge.address, "HEAD", &server.url("/long"), "", b"").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(length(&head), None);
    let body = text_like(50_000, 5);
    let binary = "Content-Type: application/octet-stream\r\n";
    let made = send(edge.address, "PUT", &server.url("/up"), binary, &body).await;
    assert_eq!((made.status, made.body.len()), (201, 0));
    assert_eq!(server.last().uint(option::CONTENT_FORMAT), Some(42));
    let back = get(edge.address, &server.url("/up"), "").await;
    assert_eq!(back.body, body);
    // How long a short one is is known.
    assert_eq!(length(&back).as_deref(), Some("50000"));
    let changed = send(edge.address, "PUT", &server.url("/up"), "", b"short").await;
    assert_eq!(changed.status, 204);
    let fetched = send(edge.address, "QUERY", &server.url("/up"), "", b"7").await;
    assert_eq!((fetched.status, &*fetched.text()), (200, "7"));
    let gone = send(edge.address, "DELETE", &server.url("/up"), "", b"").await;
    assert_eq!(gone.status, 204);
    let too_large = vec![b'x'; (1 << 20) + 1];
    let refused = send(edge.address, "PUT", &server.url("/up"), "", &too_large).await;
    assert_eq!(refused.status, 413, "{}", refused.text());
    let small = send(edge.address, "PUT", &server.url("/small"), "", b"more than ten").await;
    assert_eq!(small.status, 413);
    assert_eq!(small.text(), "the server takes bodies of up to 10 bytes\n");
}

/// How long a server of CoAP may be silent its protocol says, and no clock for origins of HTTP.
#[tokio::test]
async fn a_body_waits_for_its_next_block_as_long_as_coap_does() {
    let server = Server::start().await;
    let settings = format!("idle_timeout = '1 s'\n{}", server.allow());
    let (edge, _gateway) = pair("", &settings).await;
    let slow = get(edge.address, &server.url("/slow"), "").await;
    assert_eq!((slow.status, slow.body), (200, [&text_like(70_000, 4)[..], b"late"].concat()));
}

#[tokio::test]
async fn conditions_are_met_by_the_server() {
    let server = Server::start().await;
    let (edge, _gateway) = through_a_pair(&server).await;
    let url = server.url("/tagged");
    let first = get(edge.address, &url, "").await;
    assert!(first.has("etag: \"ab01\""), "{}", first.head);
    let again = get(edge.address, &url, "If-None-Match: \"ab01\"\r\n").await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    assert!(again.has("etag: \"ab01\""), "{}", again.head);
    let other = get(edge.address, &url, "If-None-Match: \"cd\"\r\n").await;
    assert_eq!((other.status, &*other.text()), (200, "tagged"));
    let put = send(edge.address, "PUT", &server.url("/x"), "If-Match: \"ab01\"\r\n", b"x").await;
    assert_eq!(put.status, 201);
    assert_eq!(server.last().first(option::IF_MATCH), Some(&[0xab, 1][..]));
    let count = server.count();
    let put = send(edge.address, "PUT", &server.url("/x"), "If-Match: \"else\"\r\n", b"x").await;
    assert_eq!((put.status, server.count()), (412, count));
}

#[tokio::test]
async fn what_is_not_allowed_is_not_asked() {
    let server = Server::start().await;
    let port = server.address.port();
    // Only what names the scheme means it.
    for allow in ["*://127.0.0.1:*", "http://127.0.0.1:*", "coap://127.0.0.1:9"] {
        let (edge, _gateway) = pair("", &format!("allow = ['{allow}']")).await;
        assert_eq!(get(edge.address, &server.url("/hello"), "").await.status, 403, "{allow}");
    }
    let allow = format!("allow = ['coap://127.0.0.1:{port}/hello']");
    let (edge, _gateway) = pair("", &allow).await;
    assert_eq!(get(edge.address, &server.url("/hello"), "").await.status, 200);
    for path in ["/tagged", "/hello/../tagged", "/hello%2f..%2ftagged", "/"] {
        assert_eq!(get(edge.address, &server.url(path), "").await.status, 403, "{path}");
    }
    // Names are resolved before they are believed.
    let resolver = Arc::new(common::Everywhere("127.0.0.1"));
    let allow = format!("allow = ['coap://*.example:{port}']");
    let gateway = common::gateway_with(&allow, resolver).await;
    let edge = common::edge(&format!("gateway = '{}'", gateway.address)).await;
    let named = get(edge.address, &format!("coap://a.example:{port}/hello"), "").await;
    assert_eq!(named.status, 403, "{}", named.text());
    // Only the one that was allowed.
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn who_is_not_there_is_reported_at_once_and_who_is_silent_in_time() {
    let server = Server::start().await;
    let nobody = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let allow = format!(
        "response_timeout = '1 s'\nallow = ['coap://{nobody}', 'coap://{}']",
        server.address
    );
    let (edge, _gateway) = pair("", &allow).await;
    let answer = get(edge.address, &format!("coap://{nobody}/"), "").await;
    assert_eq!(answer.status, 502, "{}", answer.text());
    let answer = get(edge.address, &server.url("/silent"), "").await;
    assert_eq!(answer.status, 504, "{}", answer.text());
    // The server is asked on over the same socket.
    assert_eq!(get(edge.address, &server.url("/hello"), "").await.status, 200);
}

#[tokio::test]
async fn a_path_of_the_proxy_names_a_resource_of_coap() {
    let server = Server::start().await;
    let (edge, _gateway) = through_a_pair(&server).await;
    let answer = own(edge.address, "GET", &server.hosted("/hello?x"), "", "").await;
    assert_eq!((answer.status, &*answer.text()), (200, "hello"), "{}", answer.text());
    let made = own(edge.address, "POST", &server.hosted("/things"), "", "x").await;
    let location = format!("location: {}", server.hosted("/made/7"));
    assert!(made.status == 201 && made.has(&location), "{}", made.head);
    let links = own(edge.address, "GET", "/.well-known/core?rt=core.hc", "", "").await;
    assert_eq!((links.status, &*links.text()), (200, "</hc/>;rt=\"core.hc\""));
    let other_site = "Origin: http://evil.example\r\n";
    let refused = own(edge.address, "POST", &server.hosted("/x"), other_site, "x").await;
    assert_eq!(refused.status, 403);
    let wrong = own(edge.address, "GET", "/hc/hello", "", "").await;
    assert_eq!(wrong.status, 400);
    // A whole URL leads back as a whole.
    let made = send(edge.address, "POST", &server.url("/things"), "", b"x").await;
    assert!(made.has("location: /made/7"), "{}", made.head);
}

#[tokio::test]
async fn a_reverse_proxy_has_an_upstream_of_coap() {
    let server = Server::start().await;
    let gateway = gateway(&server.allow()).await;
    let settings = format!("gateway = '{}'\nupstream = '{}'", gateway.address, server.url(""));
    let edge = edge(&settings).await;
    let answer = own(edge.address, "GET", "/hello", "", "").await;
    assert_eq!((answer.status, &*answer.text()), (200, "hello"));
    let made = own(edge.address, "POST", "/things", "", "x").await;
    assert!(made.has("location: /made/7"), "{}", made.head);
    // Its paths are the service's.
    assert_eq!(own(edge.address, "GET", &server.hosted("/hello"), "", "").await.status, 404);
    let settings = format!(
        "http_listen = '127.0.0.1:0'\nhttp_upstream = '{}'\n{}",
        server.url("/up"),
        server.allow()
    );
    let gateway = common::gateway(&settings).await;
    let http = gateway.http.unwrap();
    assert_eq!(own(http, "PUT", "/x", "", "stored").await.status, 201);
    assert_eq!(path(&server.last()), "up/x");
    assert_eq!(own(http, "GET", "/x", "", "").await.text(), "stored");
}

async fn events(side: SocketAddr, target: &str, fields: &str) -> TcpStream {
    let mut stream = TcpStream::connect(side).await.unwrap();
    let head = format!(
        "GET {target} HTTP/1.1\r\nHost: {side}\r\nAccept: text/event-stream\r\n{fields}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn what_is_observed_comes_as_events() {
    let server = Server::start().await;
    let (edge, _gateway) = through_a_pair(&server).await;
    let mut observers = server.observers.clone();
    let mut stream = events(edge.address, &server.hosted("/state"), "").await;
    let begin = read_until(&mut stream, "first\n\n").await;
    assert!(begin.to_lowercase().contains("content-type: text/event-stream"), "{begin}");
    assert!(begin.contains("id: 0\ndata: first\n\n"), "{begin}");
    let state = |text: &'static str| Content::new(Code::CONTENT).with_payload(text);
    server.states.send(state("second\nline").with(option::ETAG, &[7])).await.unwrap();
    let text = read_until(&mut stream, "line\n\n").await;
    assert!(text.contains("-07\ndata: second\ndata: line\n\n"), "{text}");
    let binary = Content::new(Code::CONTENT).with_payload(vec![0xff, 0]);
    server.states.send(binary).await.unwrap();
    let text = read_until(&mut stream, "/wA=\n\n").await;
    assert!(text.contains("event: base64\n"), "{text}");
    assert_eq!(*observers.borrow(), 1);
    // Who has gone hears no more: the next notification is reset.
    drop(stream);
    let ended = async {
        while *observers.borrow_and_update() > 0 {
            server.states.send(state("unheard")).await.unwrap();
            let _ = tokio::time::timeout(Duration::from_millis(200), observers.changed()).await;
        }
    };
    tokio::time::timeout(common::PATIENCE, ended).await.expect("it is observed still");
}

#[tokio::test]
async fn events_end_with_what_the_server_refuses() {
    let server = Server::start().await;
    let (edge, _gateway) = through_a_pair(&server).await;
    let mut stream = events(edge.address, &server.url("/state"), "Connection: close\r\n").await;
    read_until(&mut stream, "first\n\n").await;
    let gone = Content::new(Code::NOT_FOUND).with_payload("gone");
    server.states.send(gone).await.unwrap();
    let (rest, orderly) = common::read_all(&mut stream).await;
    let rest = String::from_utf8(rest).unwrap();
    assert!(orderly && rest.contains("event: coap-error\ndata: 4.04 gone\n\n"), "{rest}");
    assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
    // What cannot be observed is one event, and a time after which to ask again.
    let once = get(edge.address, &server.url("/hello"), "Accept: text/event-stream\r\n").await;
    assert_eq!(once.text(), "retry: 30000\ndata: hello\n\n");
    let missing = get(edge.address, &server.url("/nothing"), "Accept: text/event-stream\r\n").await;
    assert_eq!((missing.status, &*missing.text()), (404, "no such thing"));
}

#[tokio::test]
async fn what_is_fresh_is_not_asked_for_where_there_is_room() {
    let server = Server::start().await;
    let settings = format!("coap_cache = '1 MiB'\n{}", server.allow());
    let (edge, _gateway) = pair("", &settings).await;
    for _ in 0..2 {
        assert_eq!(get(edge.address, &server.url("/hello"), "").await.text(), "hello");
    }
    assert_eq!(server.count(), 1);
    let again = get(edge.address, &server.url("/hello"), "Cache-Control: no-cache\r\n").await;
    assert_eq!((&*again.text(), server.count()), ("hello", 2));
    // What is asked about by its tag is answered whole to who has not got it.
    get(edge.address, &server.url("/tagged"), "").await;
    let again = get(edge.address, &server.url("/tagged"), "Cache-Control: no-cache\r\n").await;
    assert_eq!((again.status, &*again.text()), (200, "tagged"));
    assert_eq!(server.last().first(option::ETAG), Some(&[0xab, 1][..]));
    let had = get(edge.address, &server.url("/tagged"), "If-None-Match: \"ab01\"\r\n").await;
    assert_eq!((had.status, server.count()), (304, 4));
    // A change is a reason to ask.
    send(edge.address, "PUT", &server.url("/hello"), "", b"x").await;
    get(edge.address, &server.url("/hello"), "").await;
    assert_eq!(server.count(), 6);
}
