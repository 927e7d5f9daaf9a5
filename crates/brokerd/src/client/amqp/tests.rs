//! The client with a peer that is made of frames.

use std::time::Duration;

use bytes::Bytes;
use proto::amqp::frame::{self, HEADER_BYTES, Kind, Protocol};
use proto::amqp::performative::{
    Attach, Begin, Close, DeliveryState, Disposition, Flow, LinkFlow, Open, Performative, Role,
    Transfer, condition,
};
use proto::amqp::sasl;
use proto::amqp::types::Symbol;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::client::{
    Event, Identity, Message, Published, Settings, Taken, Target, Version, Wish, publish, subscribe,
};
use crate::error::Error;

fn settings() -> Settings {
    Settings {
        client_id: "one".to_owned(),
        version: Version::V5,
        clean: true,
        keep_alive: Duration::from_secs(60),
        expiry: Duration::ZERO,
        will: None,
        retry: Duration::ZERO,
        exchange: None,
    }
}

fn message(qos: i8, bytes: usize) -> Message {
    let payload = Bytes::from(vec![b'x'; bytes]);
    Message { topic: "a/b".to_owned(), payload, qos, ..Message::default() }
}

/// A peer up to its begin, whose session takes so many frames.
struct Peer {
    stream: TcpStream,
    reader: frame::Reader,
    window: u32,
    /// Transfers that came.
    frames: u32,
}

impl Peer {
    async fn accept(listener: &TcpListener, max_frame_size: u32, window: u32) -> Self {
        let (stream, _) = listener.accept().await.unwrap();
        let mut peer = Self { stream, reader: frame::Reader::default(), window, frames: 0 };
        let mut wire = Protocol::Sasl.header().to_vec();
        let mechanisms = sasl::Frame::Mechanisms(vec![Symbol::new("ANONYMOUS")]);
        for said in [mechanisms, sasl::Frame::Outcome(sasl::Code::Ok)] {
            frame::encode(&mut wire, Kind::Sasl, 0, |out| said.encode(out));
        }
        wire.extend_from_slice(&Protocol::Amqp.header());
        peer.stream.write_all(&wire).await.unwrap();
        let begin = Begin {
            remote_channel: Some(0),
            next_outgoing_id: 0,
            incoming_window: window,
            outgoing_window: 2048,
            handle_max: 255,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: Vec::new(),
        };
        let open = Open { max_frame_size, ..Open::new("peer") };
        let both = [Performative::Open(Box::new(open)), Performative::Begin(Box::new(begin))];
        peer.send(&both).await;
        peer
    }

    async fn send(&mut self, all: &[Performative]) {
        let mut wire = Vec::new();
        for one in all {
            frame::encode(&mut wire, Kind::Amqp, 0, |out| one.encode(out));
        }
        // The client may have gone.
        let _ = self.stream.write_all(&wire).await;
    }

    async fn transfer(&mut self, transfer: Transfer, message: &[u8]) {
        let mut wire = Vec::new();
        frame::encode(&mut wire, Kind::Amqp, 0, |out| {
            Performative::Transfer(Box::new(transfer)).encode(out);
            out.extend_from_slice(message);
        });
        self.stream.write_all(&wire).await.unwrap();
    }

    /// The next performative and what is behind it; `None` at the end.
    async fn next(&mut self) -> Option<(Performative, Bytes)> {
        loop {
            while self.reader.held_bytes() >= HEADER_BYTES {
                if self.reader.is_amqp() {
                    self.reader.header();
                    continue;
                }
                let Some(frame) = self.reader.frame(1 << 20).unwrap() else { break };
                if frame.kind == Kind::Amqp && !frame.body.is_empty() {
                    return Some(Performative::decode(&frame.body).unwrap());
                }
            }
            let mut room = vec![0; 64 << 10];
            match self.stream.read(&mut room).await {
                Ok(0) | Err(_) => return None,
                Ok(len) => self.reader.receive(&room[..len]),
            }
        }
    }

    fn flow(&self, link: Option<(u32, u32)>) -> Performative {
        let link = link.map(|(delivery_count, link_credit)| LinkFlow {
            handle: 0,
            delivery_count: Some(delivery_count),
            link_credit: Some(link_credit),
            available: None,
            drain: false,
        });
        Performative::Flow(Box::new(Flow {
            next_incoming_id: Some(self.frames),
            incoming_window: self.window,
            next_outgoing_id: 0,
            outgoing_window: 2048,
            link,
            echo: false,
            properties: Vec::new(),
        }))
    }

    /// Answers an attach.
    async fn attach(&mut self, theirs: &Attach, max_message_size: Option<u64>) {
        let mut attach = Attach::new(&theirs.name, 0, theirs.role.other());
        attach.source.clone_from(&theirs.source);
        attach.target.clone_from(&theirs.target);
        attach.max_message_size = max_message_size;
        attach.initial_delivery_count = Some(0);
        self.send(&[Performative::Attach(Box::new(attach))]).await;
    }

    /// Waits for the attach of a publisher, and gives it credit.
    async fn take_link(&mut self, credit: u32, max_message_size: Option<u64>) {
        while let Some((said, _)) = self.next().await {
            if let Performative::Attach(attach) = said {
                self.attach(&attach, max_message_size).await;
                let flow = self.flow(Some((0, credit)));
                return self.send(&[flow]).await;
            }
        }
    }

    /// What comes next of messages: a transfer, with what it carries; `None` at the end, which is
    /// agreed to.
    async fn next_transfer(&mut self) -> Option<(Transfer, Bytes)> {
        while let Some((said, payload)) = self.next().await {
            match said {
                Performative::Transfer(transfer) => {
                    self.frames += 1;
                    return Some((*transfer, payload));
                }
                Performative::Close(_) => {
                    self.send(&[Performative::Close(Close::default())]).await;
                    return None;
                }
                _ => {}
            }
        }
        None
    }
}

fn accepted(delivery: u32) -> Performative {
    Performative::Disposition(Disposition {
        role: Role::Receiver,
        first: delivery,
        last: None,
        settled: true,
        state: Some(DeliveryState::Accepted),
        batchable: false,
    })
}

async fn place() -> (TcpListener, Target) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("amqp://{}", listener.local_addr().unwrap());
    let target = Target::parse(&url, Identity::default()).unwrap();
    (listener, target)
}

/// Publishes these.
async fn publishes(target: &Target, all: Vec<Message>) -> Result<Published, Error> {
    let (sender, receiver) = mpsc::channel(1);
    let sending = async move {
        for message in all {
            let _ = sender.send(message).await;
        }
    };
    let settings = settings();
    tokio::join!(publish(target, &settings, receiver), sending).0
}

fn ended(accepted: u64, failed: u64) -> Published {
    Published { accepted, failed, ..Published::default() }
}

#[tokio::test]
async fn what_nobody_acknowledges_leaves_before_the_end() {
    let (listener, target) = place().await;
    let peer = async {
        let mut peer = Peer::accept(&listener, 512, 1).await;
        peer.take_link(100, None).await;
        let (mut bytes, mut is_whole) = (0, false);
        while let Some((transfer, payload)) = peer.next_transfer().await {
            bytes += payload.len();
            is_whole = !transfer.more;
            // One frame after the other.
            let flow = peer.flow(None);
            peer.send(&[flow]).await;
        }
        (bytes, is_whole)
    };
    let (published, (bytes, is_whole)) =
        tokio::join!(publishes(&target, vec![message(0, 4096)]), peer);
    assert_eq!(published.unwrap(), ended(1, 0));
    assert!(is_whole && bytes > 4096, "{bytes}");
}

#[tokio::test]
async fn what_does_not_leave_is_bounded() {
    let (listener, target) = place().await;
    let (sender, receiver) = mpsc::channel(1);
    let (open, opened) = tokio::sync::oneshot::channel();
    let peer = async {
        let mut peer = Peer::accept(&listener, 1 << 16, 0).await;
        peer.take_link(1_000_000, None).await;
        opened.await.unwrap();
        peer.window = 2048;
        let flow = peer.flow(None);
        peer.send(&[flow]).await;
        let mut count = 0;
        while peer.next_transfer().await.is_some() {
            count += 1;
            let flow = peer.flow(None);
            peer.send(&[flow]).await;
        }
        count
    };
    let sending = async move {
        let mut taken = 0;
        // Nobody says that no more is taken.
        let moment = Duration::from_secs(1);
        while let Ok(sent) = tokio::time::timeout(moment, sender.send(message(0, 1024))).await {
            sent.unwrap();
            taken += 1;
            assert!(taken < 5_000, "it takes all there is");
        }
        open.send(()).unwrap();
        taken
    };
    let settings = settings();
    let publishing = publish(&target, &settings, receiver);
    let (published, count, taken) = tokio::join!(publishing, peer, sending);
    assert_eq!((published.unwrap(), count), (ended(taken, 0), taken));
}

#[tokio::test]
async fn credit_that_is_out_of_date_is_no_credit() {
    let (listener, target) = place().await;
    let peer = async {
        let mut peer = Peer::accept(&listener, 1 << 16, 2048).await;
        peer.take_link(3, None).await;
        let mut ids = Vec::new();
        while let Some((transfer, _)) = peer.next_transfer().await {
            ids.push(transfer.delivery_id.unwrap());
            if ids.len() % 3 == 0 {
                let count = u32::try_from(ids.len()).unwrap();
                // Two words of credit in one: that of before some came, and of after.
                let mut said = vec![peer.flow(Some((count - 2, 3))), peer.flow(Some((count, 3)))];
                said.extend(ids[ids.len() - 3..].iter().map(|id| accepted(*id)));
                peer.send(&said).await;
            }
        }
        ids.len()
    };
    let all = (0..9).map(|_| message(1, 10)).collect();
    let (published, count) = tokio::join!(publishes(&target, all), peer);
    assert_eq!((published.unwrap(), count), (ended(9, 0), 9));
}

#[tokio::test]
async fn a_message_that_is_too_long_fails_alone() {
    let (listener, target) = place().await;
    let peer = async {
        let mut peer = Peer::accept(&listener, 1 << 16, 2048).await;
        peer.take_link(1000, Some(1000)).await;
        while let Some((transfer, payload)) = peer.next_transfer().await {
            assert!(payload.len() < 1000);
            let said = accepted(transfer.delivery_id.unwrap());
            peer.send(&[said]).await;
        }
    };
    let all = (0..101).map(|number| message(1, if number == 50 { 2000 } else { 10 })).collect();
    let (published, ()) = tokio::join!(publishes(&target, all), peer);
    let published = published.unwrap();
    assert_eq!((published.accepted, published.failed), (100, 1));
    assert!(published.failures[0].contains("the broker takes 1000"), "{published:?}");
}

#[tokio::test]
async fn a_broker_that_says_nothing_is_given_up() {
    let (listener, target) = place().await;
    let peer = async {
        let mut peer = Peer::accept(&listener, 1 << 16, 2048).await;
        peer.take_link(1000, None).await;
        let mut count = 0;
        while peer.next_transfer().await.is_some() {
            count += 1;
        }
        count
    };
    let (published, count) = tokio::join!(publishes(&target, vec![message(1, 10)]), peer);
    let error = published.unwrap_err().to_string();
    assert!(error.contains("has said nothing of 1 messages") && count == 1, "{error}");
}

/// A subscriber hears of a message that cannot be read, then of one, and could not take the third.
#[tokio::test]
async fn what_was_not_taken_is_not_acknowledged() {
    let (listener, target) = place().await;
    let peer = async {
        let mut peer = Peer::accept(&listener, 1 << 16, 2048).await;
        let mut outcomes = Vec::new();
        while let Some((said, _)) = peer.next().await {
            match said {
                Performative::Attach(attach) => peer.attach(&attach, None).await,
                Performative::Flow(_) if outcomes.is_empty() => {
                    for (id, format) in [(0, 1), (1, 0), (2, 0)] {
                        let transfer = Transfer {
                            handle: 0,
                            delivery_id: Some(id),
                            delivery_tag: Some(Bytes::copy_from_slice(&id.to_be_bytes())),
                            message_format: Some(format),
                            settled: Some(false),
                            ..Transfer::default()
                        };
                        let body = super::message::encode(&message(1, 3)).unwrap();
                        peer.transfer(transfer, &body).await;
                    }
                }
                Performative::Disposition(said) => outcomes.push((said.first, said.state)),
                Performative::Close(_) => {
                    peer.send(&[Performative::Close(Close::default())]).await;
                    break;
                }
                _ => {}
            }
        }
        outcomes
    };
    let mut heard = Vec::new();
    let mut take = |event: Event| {
        heard.push(event);
        if heard.len() == 4 { Taken::Failed } else { Taken::More }
    };
    let wish = Wish { filters: vec!["a/b".to_owned()], qos: 1, ..Wish::default() };
    let settings = settings();
    let end = std::future::pending();
    let subscribing = subscribe(&target, &settings, &wish, &mut take, end);
    let (subscribed, outcomes) = tokio::join!(subscribing, peer);
    subscribed.unwrap();
    assert!(matches!(&heard[..], [Event::Subscribed(_), Event::Unreadable(_), ..]), "{heard:?}");
    assert_eq!(heard.len(), 4);
    let [(0, Some(DeliveryState::Rejected(Some(error)))), (1, accepted)] = &outcomes[..] else {
        panic!("{outcomes:?}");
    };
    assert_eq!(error.condition, condition::DECODE_ERROR);
    assert_eq!(accepted, &Some(DeliveryState::Accepted));
}

#[tokio::test]
async fn an_end_comes_before_a_connection_does() {
    // Nobody accepts the handshake of TLS.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    for scheme in ["amqps", "amqps091", "mqtts", "wsns"] {
        let target = Target::parse(&format!("{scheme}://{address}"), Identity::default()).unwrap();
        let wish = Wish { filters: vec!["a".to_owned()], ..Wish::default() };
        let end = async {
            let _accepted = listener.accept().await.unwrap();
        };
        let settings = settings();
        let mut take = |_| Taken::More;
        subscribe(&target, &settings, &wish, &mut take, end).await.unwrap();
    }
}
