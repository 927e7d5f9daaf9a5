//! Nodes and clients over CoAP.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;

use super::super::Server;
use super::{MS, Node, config, count, free_port, scratch, start};
use crate::messaging::config::{Config, Peer, Way};
use crate::messaging::forms::Form;
use crate::messaging::machine::Retry;

/// UDP on the way may lose datagrams: CoAP repeats them.
#[tokio::test]
async fn a_message_goes_over_coap_in_each_form() {
    for form in Form::ALL {
        let store = scratch(&format!("coap-{}", form.name()));
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let own = SocketAddr::from(([127, 0, 0, 1], 0));
        let peer = socket.local_addr().unwrap();
        drop(socket);
        let mut of_b = config("b", &store, 0, &[]);
        of_b.coap = Some(peer);
        let b = start(of_b).await;
        let mut of_a = config("a", &store, 0, &[]);
        of_a.coap = Some(own);
        of_a.nodes.insert("b".into(), Peer { way: Way::Coap(peer), form });
        messages_go(of_a, b, form).await;
    }
}

#[tokio::test]
async fn a_message_goes_over_coap_and_tcp_in_each_form() {
    for form in Form::ALL {
        let store = scratch(&format!("coap-tcp-{}", form.name()));
        let peer = SocketAddr::from(([127, 0, 0, 1], free_port().await));
        let mut of_b = config("b", &store, 0, &[]);
        of_b.coap_tcp = Some(peer);
        let b = start(of_b).await;
        let mut of_a = config("a", &store, 0, &[]);
        of_a.nodes.insert("b".into(), Peer { way: Way::CoapTcp(peer), form });
        messages_go(of_a, b, form).await;
    }
}

/// A node that is not there at first gets its message once it is; one that restarts is dialled
/// again.
#[tokio::test]
async fn a_node_that_comes_back_is_dialled_again() {
    let store = scratch("coap-tcp-again");
    let peer = SocketAddr::from(([127, 0, 0, 1], free_port().await));
    let mut of_a = config("a", &store, 0, &[]);
    of_a.nodes.insert("b".into(), Peer { way: Way::CoapTcp(peer), form: Form::Cbor });
    of_a.settings.routes.insert("b".into(), "b".into());
    let a = start(of_a).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let given = a.post("/messages", r#"{"addressees":["b"],"text":"x"}"#).await;
        ids.push(given.json()["id"].as_str().unwrap().to_owned());
        let mut of_b = config("b", &store, 0, &[]);
        of_b.coap_tcp = Some(peer);
        let b = start(of_b).await;
        let is_there = |status: &Value| status["recipients"]["b"]["stage"] == "delivered";
        for id in &ids {
            a.until(&format!("/outbox/{id}"), is_there).await;
        }
        b.end().await;
    }
    a.end().await;
}

/// A way for datagrams to a node that loses the first so many of them.
async fn lossy_way(to: SocketAddr, mut losses: usize) -> SocketAddr {
    let front = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let back = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = front.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut there, mut here, mut from) = ([0; 2048], [0; 2048], None);
        loop {
            tokio::select! {
                Ok((count, peer)) = front.recv_from(&mut there) => {
                    from = Some(peer);
                    match losses {
                        0 => drop(back.send_to(&there[..count], to).await),
                        _ => losses -= 1,
                    }
                }
                Ok((count, _)) = back.recv_from(&mut here) => {
                    if let Some(peer) = from {
                        let _ = front.send_to(&here[..count], peer).await;
                    }
                }
            }
        }
    });
    address
}

/// Best effort costs nothing but itself: not the node, nor what is tried again.
#[tokio::test]
async fn a_datagram_of_best_effort_that_is_lost_holds_up_nothing_else() {
    let store = scratch("coap-lost");
    let own = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut of_b = config("b", &store, 0, &[]);
    of_b.coap = Some(own);
    let server = Server::bind(&of_b).await.unwrap();
    let [clients, coap] = server.addresses()[..] else { panic!() };
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(server.run(async move { drop(stopped.await) }));
    let b = Node { address: clients, stop, ended };
    let peer = lossy_way(coap, 1).await;
    let mut of_a = config("a", &store, 0, &[]);
    of_a.coap = Some(own);
    of_a.nodes.insert("b".into(), Peer { way: Way::Coap(peer), form: Form::Cbor });
    of_a.settings.routes.insert("b".into(), "b".into());
    of_a.settings.attempt_timeout = 1000 * MS;
    let a = start(of_a).await;
    let draft = |more: &str| format!(r#"{{"addressees":["b"],"text":"Contact north"{more}}}"#);
    let lost = a.post("/messages", &draft(r#","delivery":"best-effort""#)).await.json();
    // It has left once it is the only one that waits for nothing.
    a.until("/node", |node| node["waiting"] == 0).await;
    let flash = a.post("/messages", &draft(r#","precedence":"flash""#)).await.json();
    let path = |of: &Value| format!("/outbox/{}", of["id"].as_str().unwrap());
    let (lost, flash) = (path(&lost), path(&flash));
    let is =
        |stage: &'static str| move |status: &Value| status["recipients"]["b"]["stage"] == stage;
    let delivered = tokio::time::timeout(5000 * MS, a.until(&flash, is("delivered")));
    delivered.await.expect("it waits for what is lost");
    a.until(&lost, is("failed")).await;
    assert_eq!(count(&b.get("/inbox").await.json()), 1);
    a.end().await;
    b.end().await;
}

/// A node puts together the blocks of four contents of one address at once.
#[tokio::test]
async fn many_long_messages_at_once_over_coap_destroy_none_of_each_other() {
    let store = scratch("coap-long");
    let own = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut of_b = config("b", &store, 0, &[]);
    of_b.coap = Some(own);
    let server = Server::bind(&of_b).await.unwrap();
    let [clients, coap] = server.addresses()[..] else { panic!() };
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(server.run(async move { drop(stopped.await) }));
    let b = Node { address: clients, stop, ended };
    let mut of_a = config("a", &store, 0, &[]);
    of_a.coap = Some(own);
    of_a.nodes.insert("b".into(), Peer { way: Way::Coap(coap), form: Form::Cbor });
    of_a.settings.routes.insert("b".into(), "b".into());
    of_a.settings.retry = Retry { first: 600_000 * MS, longest: 600_000 * MS, window: 16 };
    let a = start(of_a).await;
    let draft = format!(r#"{{"addressees":["b"],"text":"{}"}}"#, "x".repeat(20_000));
    for _ in 0..12 {
        a.post("/messages", &draft).await;
    }
    // One that fails is tried again after minutes only.
    b.until("/node", |node| node["inbox"] == 12).await;
    a.end().await;
    b.end().await;
}

/// Who invents an address may have others flooded there.
#[tokio::test]
async fn an_answer_over_coap_is_not_much_longer_than_its_request() {
    let store = scratch("coap-short");
    let names: Vec<String> = (0..12).map(|at| format!("{}{at}", "n".repeat(50))).collect();
    let names: Vec<(&str, u16, Form)> =
        names.iter().map(|name| (name.as_str(), 9, Form::Json)).collect();
    let mut of_b = config("b", &store, 0, &names);
    of_b.coap = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let server = Server::bind(&of_b).await.unwrap();
    let coap = server.addresses()[1];
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(server.run(async move { drop(stopped.await) }));
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut transfer = crate::messaging::short_message();
    transfer.recipients = vec!["nobody".to_owned()];
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    std::sync::Arc::make_mut(&mut transfer.message).time = Duration::from_secs(now.as_secs());
    let content = transfer.encode(Form::Cbor).unwrap();
    let request = super::super::coap::posted("/transfers", Form::Cbor, content.into());
    let kind = proto::coap::Kind::NonConfirmable;
    let request = request.encode(kind, 7, proto::coap::Token::EMPTY).unwrap();
    socket.send_to(&request, coap).await.unwrap();
    let mut room = [0; 2048];
    let (count, _) = socket.recv_from(&mut room).await.unwrap();
    let line = String::from_utf8_lossy(&room[..count]).into_owned();
    assert!(line.contains("b: addressee 'nobody' does not exist at node 'b'"), "{line}");
    assert!(count <= 3 * request.len(), "{count} bytes for {}", request.len());
    let _ = stop.send(());
    ended.await.unwrap();
}

/// A server that answers nothing for a while, over each protocol.
#[tokio::test]
async fn a_request_that_its_message_s_validity_cuts_short_says_nothing_of_the_node() {
    use super::super::deliver::Deliverer;
    use crate::messaging::machine::{Parcel, Sent};
    let store = scratch("cut");
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let deaf = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (tcp, udp) = (silent.local_addr().unwrap(), deaf.local_addr().unwrap());
    let mut of_a = config("a", &store, 0, &[("http", tcp.port(), Form::Json)]);
    of_a.settings.attempt_timeout = 400 * MS;
    for (name, way) in [("udp", Way::Coap(udp)), ("tcp", Way::CoapTcp(tcp))] {
        of_a.nodes.insert(name.into(), Peer { way, form: Form::Json });
    }
    let own = SocketAddr::from(([127, 0, 0, 1], 0));
    let (face, caller, _) =
        super::super::coap::bind(own, super::super::coap::Serves::Nodes).await.unwrap();
    let (_owner, handle) = super::super::owner::Owner::open(&of_a, None).unwrap();
    let (_stop, stopping) = tokio::sync::watch::channel(false);
    let serving = tokio::spawn(face.run(handle, stopping));
    let deliverer = Deliverer::new(&of_a, Some(caller));
    let parcel = Parcel::Message(crate::messaging::short_message());
    for name in ["http", "udp", "tcp"] {
        let cut = deliverer.deliver(&name.into(), &parcel, 50 * MS).await;
        assert!(matches!(cut, Sent::NotNow(_)), "{name}: {cut:?}");
        let whole = deliverer.deliver(&name.into(), &parcel, 400 * MS).await;
        assert!(matches!(whole, Sent::Failed(_)), "{name}: {whole:?}");
    }
    serving.abort();
}

/// From a to b, of any length; and to z, which b does not know.
async fn messages_go(mut of_a: Config, b: Node, form: Form) {
    of_a.settings.routes.insert("b".into(), "b".into());
    of_a.settings.routes.insert("z".into(), "b".into());
    let a = start(of_a).await;
    // The longest text goes in blocks over UDP.
    for text in ["Contact".to_owned(), "<".repeat(32 * 1024)] {
        let draft = format!(r#"{{"addressees":["b"],"text":"{text}"}}"#);
        let id = a.post("/messages", &draft).await.json()["id"].as_str().unwrap().to_owned();
        let is_there = |status: &Value| status["recipients"]["b"]["stage"] == "delivered";
        a.until(&format!("/outbox/{id}"), is_there).await;
        let got = b.get(&format!("/inbox/{id}")).await.json();
        assert!(got["text"] == *text, "{}", form.name());
    }
    // b knows no z, and says so.
    let lost = a.post("/messages", r#"{"addressees":["z"],"text":"x"}"#).await;
    let id = lost.json()["id"].as_str().unwrap().to_owned();
    let is_lost = |status: &Value| status["recipients"]["z"]["stage"] == "failed";
    let status = a.until(&format!("/outbox/{id}"), is_lost).await;
    let reason = status["recipients"]["z"]["reason"].as_str().unwrap();
    assert!(reason.contains("addressee 'z' does not exist at node 'b'"), "{reason}");
    a.end().await;
    b.end().await;
}

/// A request of a client, confirmable, with its number as token.
fn asked(number: u8, content: &proto::coap::Content) -> Vec<u8> {
    let token = proto::coap::Token::from([number; 8]);
    content.encode(proto::coap::Kind::Confirmable, number.into(), token).unwrap().to_vec()
}

#[tokio::test]
async fn a_client_over_coap_gives_reads_and_observes() {
    use proto::coap::{Code, Content, Datagram, Kind, format, option};
    let store = scratch("coap-client");
    let mut of_a = config("a", &store, 0, &[]);
    of_a.coap_listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let server = Server::bind(&of_a).await.unwrap();
    let coap = server.addresses()[1];
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(server.run(async move { drop(stopped.await) }));
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(coap).await.unwrap();
    // The next answer with a token; what is confirmable is acknowledged.
    let next = async |number: u8| loop {
        let mut room = [0; 2048];
        let count = tokio::time::timeout(9000 * MS, socket.recv(&mut room)).await.unwrap().unwrap();
        let bytes = bytes::Bytes::copy_from_slice(&room[..count]);
        let datagram = Datagram::decode(&bytes).unwrap();
        if datagram.kind == Kind::Confirmable {
            let [high, low] = datagram.mid.to_be_bytes();
            socket.send(&[0x60, 0, high, low]).await.unwrap();
        }
        if datagram.message.token == proto::coap::Token::from([number; 8]) {
            break Content::try_from(&datagram).unwrap();
        }
    };
    let state = |content: &Content| -> (u64, u64) {
        let value: Value = serde_json::from_slice(&content.payload).unwrap();
        (value["last"].as_u64().unwrap(), value["unread"].as_u64().unwrap())
    };
    let inbox = || Content::new(Code::GET).with(option::URI_PATH, b"inbox");
    socket.send(&asked(1, &inbox().with_uint(option::OBSERVE, 0))).await.unwrap();
    let first = next(1).await;
    assert_eq!((state(&first), first.first(option::OBSERVE).is_some()), ((0, 0), true));
    let draft = Content::new(Code::POST)
        .with(option::URI_PATH, b"messages")
        .with_uint(option::CONTENT_FORMAT, format::JSON.into())
        .with_payload(&br#"{"id":"a-1","addressees":["a"],"text":"Contact"}"#[..]);
    socket.send(&asked(2, &draft)).await.unwrap();
    let notified = next(1).await;
    assert_eq!(state(&notified).1, 1, "{notified:?}");
    let one = |code| inbox_one(code, b"a-1");
    let accept = one(Code::GET).with_uint(option::ACCEPT, format::CBOR.into());
    socket.send(&asked(3, &accept)).await.unwrap();
    let got = next(3).await;
    let record = Form::Cbor.decode(&crate::messaging::message::MESSAGE, &got.payload).unwrap();
    assert_eq!(crate::messaging::Transfer::of(record).unwrap().message.text, "Contact");
    for (number, request, code) in [
        (4, one(Code::POST).with(option::URI_PATH, b"read"), Code::CHANGED),
        (5, one(Code::DELETE).with(option::URI_QUERY, b"originator=b"), Code::NOT_FOUND),
        (6, one(Code::DELETE).with(option::URI_QUERY, b"originator=a"), Code::DELETED),
        (7, one(Code::PUT), Code::METHOD_NOT_ALLOWED),
        (8, Content::new(Code::POST).with(option::URI_PATH, b"transfers"), Code::NOT_FOUND),
        (9, inbox().with(option::URI_QUERY, b"limit=0"), Code::BAD_REQUEST),
    ] {
        socket.send(&asked(number, &request)).await.unwrap();
        assert_eq!(next(number).await.code, code, "{number}");
    }
    let outbox = Content::new(Code::GET).with(option::URI_PATH, b"outbox");
    socket.send(&asked(10, &outbox.with(option::URI_PATH, b"a-1"))).await.unwrap();
    let status: Value = serde_json::from_slice(&next(10).await.payload).unwrap();
    assert_eq!(status["recipients"]["a"]["stage"], "delivered");
    let _ = stop.send(());
    ended.await.unwrap();
}

fn inbox_one(code: proto::coap::Code, id: &[u8]) -> proto::coap::Content {
    use proto::coap::{Content, option};
    Content::new(code).with(option::URI_PATH, b"inbox").with(option::URI_PATH, id)
}
