//! Clients of CoAP and an origin of HTTP: its server-sent events are notifications, and its long
//! answers come in blocks.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use common::origin::Origin;
use common::{PATIENCE, eventually, gateway_config};
use longwire_proxy::gateway::Gateway;
use proto::coap::machine::{Input, Output, Settings};
use proto::coap::transfer::Transfers;
use proto::coap::{Code, Content, option};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A gateway with a listener for clients of CoAP, until dropped.
struct Proxy {
    coap: SocketAddr,
    task: JoinHandle<Result<(), longwire_proxy::Error>>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn proxy() -> Proxy {
    let gateway = Gateway::bind(gateway_config("coap = '127.0.0.1:0'\n")).await.unwrap();
    let coap = gateway.coap_addr().unwrap();
    let task = tokio::spawn(gateway.run(std::future::pending(), std::future::pending()));
    Proxy { coap, task }
}

/// An origin that sends what it is given as a stream of events, or one answer where it is not asked
/// for events; and how many connections it has.
async fn streaming() -> (Origin, mpsc::Sender<&'static str>, Arc<Mutex<usize>>) {
    let (sender, receiver) = mpsc::channel::<&'static str>(16);
    let (receiver, open) =
        (Arc::new(tokio::sync::Mutex::new(receiver)), Arc::<Mutex<usize>>::default());
    let count = Arc::clone(&open);
    let origin = Origin::scripted(move |mut stream| {
        let (receiver, count) = (Arc::clone(&receiver), Arc::clone(&count));
        async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap().to_lowercase();
            if !head.contains("accept: text/event-stream") || head.starts_with("get /plain") {
                let answer =
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nplain";
                stream.write_all(answer.as_bytes()).await.unwrap();
                return;
            }
            *count.lock().unwrap() += 1;
            let begin = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
            stream.write_all(begin.as_bytes()).await.unwrap();
            let mut receiver = receiver.lock().await;
            let (mut reader, mut writer) = stream.split();
            let mut byte = [0];
            loop {
                tokio::select! {
                    event = receiver.recv() => match event {
                        Some("") | None => break,
                        Some(event) => writer.write_all(event.as_bytes()).await.unwrap(),
                    },
                    // The other side has gone.
                    _ = reader.read(&mut byte) => break,
                }
            }
            *count.lock().unwrap() -= 1;
        }
    });
    (origin.await, sender, open)
}

/// A client with our machine.
struct Client {
    socket: UdpSocket,
    transfers: Transfers<SocketAddr>,
    began: Instant,
    proxy: SocketAddr,
}

impl Client {
    async fn of(proxy: SocketAddr) -> Self {
        let settings = Settings { seed: [3, 4], is_challenging: false, rate_bps: None };
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        Self { socket, transfers: Transfers::new(&settings), began: Instant::now(), proxy }
    }

    /// Gives an input to the machine; the response that comes out, with whether it is the last.
    async fn give(&mut self, input: Input<SocketAddr>) -> Option<(Content, bool)> {
        self.transfers.handle_input(self.began.elapsed(), input);
        let mut response = None;
        while let Some(output) = self.transfers.poll_output() {
            match output {
                Output::Datagram { peer, bytes } => {
                    self.socket.send_to(&bytes, peer).await.unwrap();
                }
                Output::Response { content, is_last, .. } => response = Some((content, is_last)),
                Output::Failed { reason, .. } => panic!("failed: {reason:?}"),
                _ => {}
            }
        }
        response
    }

    async fn observe(&mut self, uri: &str, accept: Option<u32>) -> (Content, bool) {
        let mut content = Content::new(Code::GET)
            .with(option::PROXY_URI, uri.as_bytes())
            .with_uint(option::OBSERVE, 0);
        if let Some(accept) = accept {
            content.push_uint(option::ACCEPT, accept);
        }
        self.ask(content).await
    }

    async fn ask(&mut self, content: Content) -> (Content, bool) {
        let peer = self.proxy;
        let input = Input::Request { request: 1, peer, content, is_confirmable: true };
        match self.give(input).await {
            Some(response) => response,
            None => self.next().await,
        }
    }

    /// The next response.
    async fn next(&mut self) -> (Content, bool) {
        let mut room = vec![0; 1 << 16];
        let waiting = async {
            loop {
                let (len, peer) = self.socket.recv_from(&mut room).await.unwrap();
                let bytes = room[..len].to_vec().into();
                let input = Input::Datagram { peer, bytes, is_group: false };
                if let Some(response) = self.give(input).await {
                    return response;
                }
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.expect("nothing comes")
    }
}

fn shown(response: &(Content, bool)) -> (Code, &[u8], bool) {
    (response.0.code, &response.0.payload, response.1)
}

#[tokio::test]
async fn events_are_notifications_until_the_stream_ends() {
    let (origin, events, _) = streaming().await;
    let proxy = proxy().await;
    let mut client = Client::of(proxy.coap).await;
    events.send("id: 1\ndata: 20 C\n\n").await.unwrap();
    let first = client.observe(&origin.url("/t"), None).await;
    assert_eq!(shown(&first), (Code::CONTENT, &b"20 C"[..], false));
    assert_eq!(first.0.uint(option::CONTENT_FORMAT), Some(0));
    assert!(first.0.first(option::OBSERVE).is_some());
    events.send(": alive\n\ndata: 21 C\n\n").await.unwrap();
    assert_eq!(shown(&client.next().await), (Code::CONTENT, &b"21 C"[..], false));
    events.send("event: base64\ndata: /wA=\n\n").await.unwrap();
    let binary = client.next().await;
    assert_eq!(shown(&binary), (Code::CONTENT, &[0xff, 0][..], false));
    assert_eq!(binary.0.uint(option::CONTENT_FORMAT), Some(42));
    events.send("").await.unwrap();
    let last = client.next().await;
    assert_eq!((last.0.code, last.1), (Code::SERVICE_UNAVAILABLE, true));
}

#[tokio::test]
async fn who_hears_no_more_costs_no_connection() {
    let (origin, events, open) = streaming().await;
    let proxy = proxy().await;
    let mut client = Client::of(proxy.coap).await;
    // Nothing has come: the state is empty, and its change is told.
    let first = client.observe(&origin.url("/t"), Some(0)).await;
    assert_eq!(shown(&first), (Code::CONTENT, &b""[..], false));
    events.send("data: a\n\n").await.unwrap();
    assert_eq!(shown(&client.next().await), (Code::CONTENT, &b"a"[..], false));
    assert_eq!(*open.lock().unwrap(), 1);
    client.give(Input::Cancel { request: 1 }).await;
    // What is forgotten is reset when it comes.
    events.send("data: b\n\n").await.unwrap();
    let mut room = vec![0; 1 << 16];
    let (len, peer) = client.socket.recv_from(&mut room).await.unwrap();
    let bytes = room[..len].to_vec().into();
    client.give(Input::Datagram { peer, bytes, is_group: false }).await;
    eventually(|| async { *open.lock().unwrap() == 0 }).await;
}

#[tokio::test]
async fn what_is_no_stream_is_answered_once() {
    let (origin, _events, _) = streaming().await;
    let proxy = proxy().await;
    for (path, accept) in [("/plain", None), ("/t", Some(60))] {
        let mut client = Client::of(proxy.coap).await;
        let first = client.observe(&origin.url(path), accept).await;
        let code = if accept.is_none() { Code::CONTENT } else { Code::NOT_ACCEPTABLE };
        assert_eq!((first.0.code, first.1), (code, true), "{path}");
    }
}

/// RFC 7959 §2.4: blocks are put together by their tag. What is fetched once more may have other
/// bytes under the same weak one.
#[tokio::test]
async fn a_weak_tag_does_not_stand_for_the_bytes_of_a_long_answer() {
    for (tag, is_same) in [("\"x\"", true), ("W/\"x\"", false)] {
        let origin = Origin::scripted(move |mut stream| async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let head = format!("HTTP/1.1 200 OK\r\nETag: {tag}\r\nContent-Length: 100000\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&[b'x'; 100_000]).await.unwrap();
        });
        let (origin, proxy) = (origin.await, proxy().await);
        let mut tags = Vec::new();
        for _ in 0..2 {
            let url = origin.url("/long");
            let get = Content::new(Code::GET).with(option::PROXY_URI, url.as_bytes());
            let (content, is_last) = Client::of(proxy.coap).await.ask(get).await;
            assert_eq!(
                (content.code, content.payload.len(), is_last),
                (Code::CONTENT, 100_000, true)
            );
            tags.push(content.first(option::ETAG).map(<[u8]>::to_vec).expect("a tag"));
        }
        assert_eq!(tags[0] == tags[1], is_same, "{tag}");
    }
}
