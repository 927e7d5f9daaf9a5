//! The client with a peer that is made of methods.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use proto::amqp091::{Frame, FrameKind, Method, Table, encode_content, encode_method};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::virtual_host;
use crate::client::{
    Event, Identity, Message, Published, Settings, Taken, Target, Version, Wish, publish, subscribe,
};
use crate::error::Error;

const MAX_FRAME_BYTES: u32 = 128 << 10;

fn settings() -> Settings {
    Settings {
        client_id: String::new(),
        version: Version::V5,
        clean: true,
        keep_alive: Duration::from_secs(60),
        expiry: Duration::ZERO,
        will: None,
        retry: Duration::ZERO,
        exchange: None,
    }
}

/// A peer up to the open channel.
struct Peer {
    stream: TcpStream,
    input: BytesMut,
}

impl Peer {
    async fn accept(listener: &TcpListener) -> Self {
        let (stream, _) = listener.accept().await.unwrap();
        let mut peer = Self { stream, input: BytesMut::new() };
        let mut header = [0; 8];
        peer.stream.read_exact(&mut header).await.unwrap();
        let start = Method::ConnectionStart {
            version_major: 0,
            version_minor: 9,
            server_properties: Table::default(),
            mechanisms: b"PLAIN",
            locales: b"en_US",
        };
        peer.send(0, &start).await;
        let tune =
            Method::ConnectionTune { channel_max: 1, frame_max: MAX_FRAME_BYTES, heartbeat: 0 };
        peer.send(0, &tune).await;
        peer.send(0, &Method::ConnectionOpenOk {}).await;
        peer.send(1, &Method::ChannelOpenOk {}).await;
        peer
    }

    async fn send(&mut self, channel: u16, method: &Method<'_>) {
        let mut wire = Vec::new();
        encode_method(channel, method, &mut wire).unwrap();
        // The client may have gone.
        let _ = self.stream.write_all(&wire).await;
    }

    /// The next method; what belongs to contents is passed over.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            while let Some((frame, len)) = Frame::decode(&self.input, MAX_FRAME_BYTES).unwrap() {
                let (kind, payload) = (frame.kind, Bytes::copy_from_slice(frame.payload));
                let _ = self.input.split_to(len);
                if kind == FrameKind::Method {
                    return Some(payload);
                }
            }
            match self.stream.read_buf(&mut self.input).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Whether a method is the end, which is agreed to.
    async fn is_end(&mut self, method: &Method<'_>) -> bool {
        let is_end = matches!(method, Method::ConnectionClose { .. });
        if is_end {
            self.send(0, &Method::ConnectionCloseOk {}).await;
        }
        is_end
    }
}

async fn place() -> (TcpListener, Target) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("amqp091://{}", listener.local_addr().unwrap());
    let target = Target::parse(&url, Identity::default()).unwrap();
    (listener, target)
}

/// Publishes so many.
async fn publishes(target: &Target, qos: i8, count: usize) -> Result<Published, Error> {
    let (sender, receiver) = mpsc::channel(count);
    for _ in 0..count {
        let message = Message { topic: "a/b".to_owned(), qos, ..Message::default() };
        sender.send(message).await.unwrap();
    }
    drop(sender);
    publish(target, &settings(), receiver).await
}

#[tokio::test]
async fn a_refusal_of_what_nobody_acknowledges_is_a_failure() {
    let (listener, target) = place().await;
    let peer = async {
        let mut peer = Peer::accept(&listener).await;
        while let Some(payload) = peer.next().await {
            match Method::decode(&payload).unwrap() {
                Method::BasicPublish { .. } => {
                    let (reply_code, reply_text) = (404, "NOT_FOUND: no such exchange");
                    let (class_id, method_id) = (60, 40);
                    let close =
                        Method::ChannelClose { reply_code, reply_text, class_id, method_id };
                    peer.send(1, &close).await;
                }
                method => {
                    if peer.is_end(&method).await {
                        return;
                    }
                }
            }
        }
    };
    let (published, ()) = tokio::join!(publishes(&target, 0, 1), peer);
    let published = published.unwrap();
    assert_eq!((published.accepted, published.failed), (0, 1));
    assert!(published.failures[0].contains("404 NOT_FOUND"), "{published:?}");
}

#[tokio::test]
async fn one_confirm_may_be_of_all() {
    let (listener, target) = place().await;
    let peer = async {
        let mut peer = Peer::accept(&listener).await;
        let mut count = 0;
        while let Some(payload) = peer.next().await {
            match Method::decode(&payload).unwrap() {
                Method::BasicPublish { .. } => {
                    count += 1;
                    if count == 5 {
                        let ack = Method::BasicAck { delivery_tag: 0, multiple: true };
                        peer.send(1, &ack).await;
                    }
                }
                method => {
                    if peer.is_end(&method).await {
                        return;
                    }
                }
            }
        }
    };
    let (published, ()) = tokio::join!(publishes(&target, 1, 5), peer);
    assert_eq!(published.unwrap(), Published { accepted: 5, ..Published::default() });
}

#[tokio::test]
async fn a_broker_that_says_nothing_is_given_up() {
    let (listener, target) = place().await;
    let peer = async {
        let mut peer = Peer::accept(&listener).await;
        while peer.next().await.is_some() {}
    };
    let (published, ()) = tokio::join!(publishes(&target, 1, 2), peer);
    let error = published.unwrap_err().to_string();
    assert!(error.contains("has said nothing of 2 messages"), "{error}");
}

#[tokio::test]
async fn a_connection_that_breaks_before_all_has_left_is_a_failure() {
    let (listener, target) = place().await;
    let (sender, receiver) = mpsc::channel(1);
    let peer = async {
        let mut peer = Peer::accept(&listener).await;
        let payload = Bytes::from(vec![b'x'; 32 << 20]);
        let message = Message { topic: "a".to_owned(), payload, ..Message::default() };
        sender.send(message).await.unwrap();
        drop(sender);
        while let Some(payload) = peer.next().await {
            if matches!(Method::decode(&payload), Ok(Method::BasicPublish { .. })) {
                // The rest of it is not read.
                return;
            }
        }
    };
    let settings = settings();
    let (published, ()) = tokio::join!(publish(&target, &settings, receiver), peer);
    assert!(published.is_err(), "{published:?}");
}

#[tokio::test]
async fn what_cannot_be_read_does_not_come_again_and_what_was_not_taken_does() {
    let (listener, target) = place().await;
    let peer = async {
        let mut peer = Peer::accept(&listener).await;
        let mut answers = Vec::new();
        while let Some(payload) = peer.next().await {
            match Method::decode(&payload).unwrap() {
                Method::QueueDeclare { .. } => {
                    let (message_count, consumer_count) = (0, 0);
                    let ok = Method::QueueDeclareOk { queue: "q", message_count, consumer_count };
                    peer.send(1, &ok).await;
                }
                Method::QueueBind { .. } => peer.send(1, &Method::QueueBindOk {}).await,
                Method::BasicQos { .. } => peer.send(1, &Method::BasicQosOk {}).await,
                Method::BasicConsume { consumer_tag, .. } => {
                    peer.send(1, &Method::BasicConsumeOk { consumer_tag }).await;
                    let mut wire = Vec::new();
                    for delivery_tag in 1..=3 {
                        let deliver = Method::BasicDeliver {
                            consumer_tag,
                            delivery_tag,
                            redelivered: false,
                            exchange: "amq.topic",
                            routing_key: "a",
                        };
                        encode_method(1, &deliver, &mut wire).unwrap();
                        // Of the first there is a flag that no property has.
                        let flags = [0, u8::from(delivery_tag == 1)];
                        encode_content(1, &flags, b"x", MAX_FRAME_BYTES, &mut wire).unwrap();
                    }
                    peer.stream.write_all(&wire).await.unwrap();
                }
                Method::BasicAck { delivery_tag, .. } => answers.push((delivery_tag, true)),
                Method::BasicReject { delivery_tag, requeue: false } => {
                    answers.push((delivery_tag, false));
                }
                method => {
                    if peer.is_end(&method).await {
                        break;
                    }
                }
            }
        }
        answers
    };
    let mut heard = Vec::new();
    let mut take = |event: Event| {
        heard.push(event);
        if heard.len() == 4 { Taken::Failed } else { Taken::More }
    };
    let wish = Wish { filters: vec!["a".to_owned()], qos: 1, ..Wish::default() };
    let settings = settings();
    let subscribing = subscribe(&target, &settings, &wish, &mut take, std::future::pending());
    let (subscribed, answers) = tokio::join!(subscribing, peer);
    subscribed.unwrap();
    assert!(matches!(&heard[..], [Event::Subscribed(_), Event::Unreadable(_), ..]), "{heard:?}");
    assert_eq!(answers, [(1, false), (2, true)]);
}

#[test]
fn virtual_hosts_are_what_stands_behind_the_slash() {
    for (path, name) in
        [("", "/"), ("/", "/"), ("/ships", "ships"), ("/%2fships", "/ships"), ("/%C3%a4", "ä")]
    {
        assert_eq!(virtual_host(path).unwrap(), name);
    }
    for path in ["/%", "/%2", "/%zz", "/%ff"] {
        assert!(virtual_host(path).is_err(), "{path}");
    }
}
