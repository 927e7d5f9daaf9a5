//! An edge that is admitted and hostile, frame by frame: what it can make a gateway ask of an
//! origin is what its allow list says, and another edge's requests are answered as ever.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use common::origin::Origin;
use common::{PATIENCE, Side, edge, gateway, get};
use proto::bhttp;
use proto::exchange::{Abort, Data, Head, Part};
use proto::stream::{Frame, Hello, MAX_VERSION, MIN_VERSION};
use relay::CauseKind;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

type Fields<'a> = &'a [(&'static str, &'a [u8])];

fn hello(instance: u64) -> Frame {
    Frame::Hello(Hello {
        version_min: MIN_VERSION,
        version_max: MAX_VERSION,
        instance,
        initial_credit: 1 << 20,
        max_exchanges: 100,
        codecs: vec![0, 1, 2],
        max_window_log: 20,
        anew: true,
        parallel: false,
        counts: false,
        packs: false,
    })
}

fn encoded(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frames.iter().for_each(|frame| frame.encode(&mut bytes));
    bytes
}

/// A carrier of which each byte is ours.
struct Hostile {
    stream: TcpStream,
    received: BytesMut,
    next: u64,
}

impl Hostile {
    async fn to(gateway: SocketAddr) -> Self {
        let stream = TcpStream::connect(gateway).await.unwrap();
        let mut hostile = Self { stream, received: BytesMut::new(), next: 1 };
        // Each is an edge of its own.
        let instance = u64::from(hostile.stream.local_addr().unwrap().port());
        hostile.send(&encoded(&[hello(instance)])).await;
        hostile
    }

    async fn send(&mut self, bytes: &[u8]) {
        // What closes the carrier may do so before all of it is sent.
        let _ = self.stream.write_all(bytes).await;
    }

    /// The next frame; `None` where the carrier is closed.
    async fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = Frame::take(&mut self.received).unwrap() {
                return Some(frame);
            }
            let reading = self.stream.read_buf(&mut self.received);
            let read = tokio::time::timeout(PATIENCE, reading).await.expect("hangs");
            if read.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    /// Asks, with what follows the head if anything does; the status that comes back, or why there
    /// is none.
    async fn asks(&mut self, request: &bhttp::Request, body: Option<&[u8]>) -> Result<u16, Abort> {
        let exchange = self.next;
        self.next += 1;
        let mut head = Vec::new();
        request.encode(&mut head);
        let end = body.is_none();
        let head = Head { exchange, codec: 0, window_log: 0, end, head: head.into() };
        let mut frames = vec![Frame::Part(Part::Head(head))];
        if let Some(body) = body {
            let bytes = Bytes::copy_from_slice(body);
            let block_end = Some(body.len() as u64);
            let (uncoded, anew, end) = (true, false, true);
            frames.push(Frame::Part(Part::Data(Data {
                exchange,
                block_end,
                uncoded,
                anew,
                end,
                padding: None,
                bytes,
            })));
        }
        self.send(&encoded(&frames)).await;
        loop {
            match self.frame().await.expect("the carrier is closed") {
                Frame::Part(Part::Head(head)) if head.exchange == exchange => {
                    return Ok(bhttp::Response::decode(&head.head).unwrap().status);
                }
                Frame::Part(Part::Abort(abort)) if abort.exchange == exchange => return Err(abort),
                _ => {}
            }
        }
    }
}

fn request(method: &str, authority: &str, path: &[u8], fields: Fields<'_>) -> bhttp::Request {
    let field = |(name, value): &(&'static str, &[u8])| {
        (Bytes::from_static(name.as_bytes()), Bytes::copy_from_slice(value))
    };
    bhttp::Request {
        method: Bytes::copy_from_slice(method.as_bytes()),
        scheme: Bytes::from_static(if method == "CONNECT" { b"" } else { b"http" }),
        authority: Bytes::copy_from_slice(authority.as_bytes()),
        path: Bytes::copy_from_slice(path),
        fields: fields.iter().map(field).collect(),
    }
}

fn is_refused(answer: &Result<u16, Abort>) -> bool {
    let kinds = [CauseKind::BadRequest, CauseKind::Forbidden, CauseKind::Corrupt];
    let Err(abort) = answer else { return false };
    assert_eq!(abort.reason.lines().count(), 1, "{abort:?}");
    let kind = usize::try_from(abort.code).ok().and_then(|at| CauseKind::ALL.get(at));
    kind.is_some_and(|kind| kinds.contains(kind))
}

/// An origin that answers at once what it read of a head, keeps its connection, and drops as much
/// behind the head as that said: so a length that is wrong shows in the next request.
async fn eager_origin() -> (Origin, Arc<Mutex<Vec<String>>>) {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    let origin = Origin::scripted(move |mut stream| {
        let seen = Arc::clone(&seen);
        async move {
            let mut all = Vec::new();
            let mut skip = 0;
            loop {
                let dropped = skip.min(all.len());
                all.drain(..dropped);
                skip -= dropped;
                let Some(end) = all.windows(4).position(|four| four == b"\r\n\r\n") else {
                    match stream.read_buf(&mut all).await {
                        Ok(1..) => continue,
                        _ => return,
                    }
                };
                let head = String::from_utf8_lossy(&all[..end]).into_owned();
                all.drain(..end + 4);
                let length = head.lines().find_map(|line| {
                    line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok()
                });
                skip = length.unwrap_or(0);
                let line = head.lines().next().unwrap().to_owned();
                let answer =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{line}", line.len());
                seen.lock().unwrap().push(head);
                if stream.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    })
    .await;
    (origin, heads)
}

/// Another edge of the same gateway.
async fn neighbour(gateway: &Side) -> Side {
    edge(&format!("gateway = '{}'", gateway.address)).await
}

/// A head whose length is another than that of what follows would make the origin take the next
/// request, of whoever it is, for a body.
#[tokio::test]
async fn a_length_that_is_not_the_bodys_puts_no_request_out_of_step() {
    let (origin, seen) = eager_origin().await;
    let gateway = gateway("").await;
    let neighbour = neighbour(&gateway).await;
    let mut hostile = Hostile::to(gateway.address).await;
    let authority = origin.address.to_string();
    let smuggled = format!("X-Pad: GET /smuggled HTTP/1.1\r\nX-More: {}\r\n", "y".repeat(200));
    let victim = async || {
        let answer = get(neighbour.address, &origin.url("/victim"), &smuggled).await;
        assert_eq!((answer.status, &*answer.text()), (200, "GET /victim HTTP/1.1"));
    };
    victim().await;
    let lengths: [Fields<'_>; 9] = [
        &[("content-length", b"26")],
        &[("content-length", b"200")],
        &[("content-length", b"5"), ("content-length", b"6")],
        &[("content-length", b"0"), ("content-length", b"26")],
        &[("content-length", b"5, 5")],
        &[("content-length", b"+26")],
        &[("content-length", b"0x1a")],
        &[("content-length", b"")],
        &[("content-length", b"99999999999999999999")],
    ];
    for fields in lengths {
        for method in ["GET", "HEAD", "POST"] {
            let ask = request(method, &authority, b"/hostile", fields);
            let answer = hostile.asks(&ask, None).await;
            assert!(is_refused(&answer), "{method} {fields:?}: {answer:?}");
        }
        victim().await;
    }
    // A body of another length is only known as it comes: its connection is not used again.
    for (length, body) in [("10", &b"short"[..]), ("2", b"abGET /smuggled HTTP/1.1\r\n\r\n")] {
        let fields = [("content-length", length.as_bytes())];
        let _ = hostile.asks(&request("POST", &authority, b"/hostile", &fields), Some(body)).await;
        victim().await;
    }
    // Fields of the framing are ours to make.
    let fields: Fields<'_> = &[("transfer-encoding", b"chunked"), ("content-length", b"3")];
    let ask = request("POST", &authority, b"/hostile", fields);
    let _ = hostile.asks(&ask, Some(b"0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n")).await;
    victim().await;
    let known = |head: &String| {
        ["GET /victim HTTP/1.1", "POST /hostile HTTP/1.1"].contains(&head.lines().next().unwrap())
    };
    assert!(seen.lock().unwrap().iter().all(known), "{seen:?}");
}

/// Paths that are none, or lead elsewhere than they begin.
const PATHS: [&[u8]; 24] = [
    b"http://internal.example/public",
    b"http://internal.example/admin",
    b"https://internal.example:1/secret",
    b"internal.example:443",
    b"/public/../admin",
    b"/public/%2e%2e/admin",
    b"/public/.%2e/admin",
    b"/public/..;/admin",
    b"/public%2f..%2fadmin",
    b"/public/..\\admin",
    b"/public//../admin",
    b"/public/%252e%252e/admin",
    b"/publicx",
    b"/PUBLIC/a",
    b"//public/a",
    b"/admin",
    b"public/a",
    b"?x=/public",
    b"*",
    b"",
    b"/public/a b",
    b"/public/a#/../../admin",
    b"/public/a\r\nx: y",
    b"/public/\x7f",
];

/// What names no host, or another than it seems to.
const AUTHORITIES: [&str; 17] = [
    "evil@HOST:PORT",
    "HOST:PORT@evil.example",
    "HOST:PORT:80",
    "HOST:0",
    "HOST:65536",
    "HOST:+PORT",
    "HOST:PORT#",
    "HOST:PORT?",
    "HOST:PORT/",
    "HOST:PORT,evil.example",
    "HOST\u{a0}:PORT",
    "%31%32%37.0.0.1:PORT",
    "2130706433:PORT",
    "0x7f000001:PORT",
    "127.1:PORT",
    "internal.example",
    "",
];

/// The gateway does not leave it to edges what is asked for, and of whom.
#[tokio::test]
async fn only_what_is_allowed_is_asked_for_whatever_the_path_and_the_host() {
    let (origin, seen) = eager_origin().await;
    let port = origin.address.port();
    let authority = origin.address.to_string();
    for allow in ["/public", ""] {
        let gateway = gateway(&format!("allow = ['http://127.0.0.1:{port}{allow}']")).await;
        let neighbour = neighbour(&gateway).await;
        let mut hostile = Hostile::to(gateway.address).await;
        for path in PATHS {
            // Without a path in the list, any that is one is allowed.
            let is_path = path.starts_with(b"/") && path.iter().all(|b| !b" #\r\x7f".contains(b));
            let answer = hostile.asks(&request("GET", &authority, path, &[]), None).await;
            let shown = path.escape_ascii();
            assert_eq!(is_refused(&answer), !allow.is_empty() || !is_path, "{shown}: {answer:?}");
        }
        for text in AUTHORITIES {
            let text = text.replace("HOST", "127.0.0.1").replace("PORT", &port.to_string());
            let answer = hostile.asks(&request("GET", &text, b"/public/a", &[]), None).await;
            assert!(is_refused(&answer), "'{text}': {answer:?}");
        }
        let mut other = request("GET", &authority, b"/public/a", &[]);
        for scheme in ["HTTP", "ftp", "", "https"] {
            other.scheme = Bytes::from_static(scheme.as_bytes());
            assert!(is_refused(&hostile.asks(&other, None).await), "scheme '{scheme}'");
        }
        // Host is that of the target, whatever the fields say.
        let fields: Fields<'_> = &[("host", b"internal.example"), ("x-a", b"1")];
        let asked = request("GET", &authority, b"/public/host", fields);
        assert_eq!(hostile.asks(&asked, None).await, Ok(200));
        assert_eq!(get(neighbour.address, &origin.url("/public/b"), "").await.status, 200);
    }
    for head in seen.lock().unwrap().iter() {
        let (line, fields) = head.split_once("\r\n").unwrap();
        assert!(line.starts_with("GET /") && line.ends_with(" HTTP/1.1"), "{head}");
        let fields = fields.to_ascii_lowercase();
        assert_eq!(fields.matches("host: ").count(), 1, "{head}");
        assert!(fields.contains(&format!("host: {authority}")), "{head}");
    }
}

/// Inside another protocol any path may be asked for: an edge that does not look gets no further.
#[tokio::test]
async fn nothing_changes_to_http_2_and_nothing_under_a_path() {
    let origin = Origin::scripted(|mut stream| async move {
        // Whoever gets here changes to whatever is asked for.
        let head = common::read_until(&mut stream, "\r\n\r\n").await;
        let upgrade = head.lines().find(|line| line.to_ascii_lowercase().starts_with("upgrade:"));
        let answer = match upgrade {
            Some(upgrade) => format!("101 Switching Protocols\r\nConnection: upgrade\r\n{upgrade}"),
            None => "200 OK\r\nContent-Length: 0".to_owned(),
        };
        let _ = stream.write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes()).await;
        let _ = stream.read(&mut [0; 64]).await;
    })
    .await;
    let port = origin.address.port();
    let authority = origin.address.to_string();
    let names: [&[u8]; 9] = [
        b"h2c",
        b"H2C",
        b"h2c\xa0",
        b"\xa0h2c",
        b"h2c, foo",
        b"websocket, h2c",
        b"\"h2c\"",
        b"h2c/1",
        b"TLS/1.0, HTTP/2.0",
    ];
    for allow in ["/public", ""] {
        let gateway = gateway(&format!("allow = ['http://127.0.0.1:{port}{allow}']")).await;
        let mut hostile = Hostile::to(gateway.address).await;
        for name in names {
            let fields = [("connection", &b"upgrade"[..]), ("upgrade", name)];
            let answer =
                hostile.asks(&request("GET", &authority, b"/public/a", &fields), None).await;
            assert!(is_refused(&answer), "{}: {answer:?}", name.escape_ascii());
        }
        assert_eq!(origin.connections.load(std::sync::atomic::Ordering::SeqCst), 0);
        if !allow.is_empty() {
            let fields: Fields<'_> = &[("connection", b"upgrade"), ("upgrade", b"websocket")];
            let ask = request("GET", &authority, b"/public/a", fields);
            let answer = hostile.asks(&ask, None).await;
            assert!(is_refused(&answer), "a tunnel under a path: {answer:?}");
            let answer = hostile.asks(&request("CONNECT", &authority, b"", &[]), None).await;
            assert!(is_refused(&answer), "a tunnel under a path: {answer:?}");
        }
        let neighbour = neighbour(&gateway).await;
        assert_eq!(get(neighbour.address, &origin.url("/public/a"), "").await.status, 200);
        origin.connections.store(0, std::sync::atomic::Ordering::SeqCst);
    }
}

/// Carriers that break every rule, one after another: each ends alone.
#[tokio::test]
async fn a_carrier_that_breaks_the_protocol_ends_alone() {
    let origin = Origin::start().await;
    let gateway = gateway("").await;
    let neighbour = neighbour(&gateway).await;
    let head = |exchange| {
        let mut head = Vec::new();
        request("POST", &origin.address.to_string(), b"/sum", &[]).encode(&mut head);
        Frame::Part(Part::Head(Head {
            exchange,
            codec: 0,
            window_log: 0,
            end: false,
            head: head.into(),
        }))
    };
    let data = |exchange, len: usize, end| {
        let bytes = Bytes::from(vec![b'x'; len]);
        let (uncoded, anew, block_end) = (true, false, Some(len as u64));
        Frame::Part(Part::Data(Data {
            exchange,
            block_end,
            uncoded,
            anew,
            end,
            padding: None,
            bytes,
        }))
    };
    let greatest = (1 << 62) - 1;
    let streams: Vec<(&str, Vec<u8>)> = vec![
        ("a second HELLO", encoded(&[hello(7)])),
        ("an answer of an edge", encoded(&[Frame::Part(Part::Interim(1, 103))])),
        ("two heads", encoded(&[head(1), head(1)])),
        ("data behind the end", encoded(&[head(1), data(1, 1, true), data(1, 1, true)])),
        ("data that ends nothing", encoded(&[head(1), data(1, 0, false)])),
        ("credit beyond measure", encoded(&[head(1), Frame::Part(Part::Credit(1, greatest))])),
        ("a frame of no type", vec![0x3f, 0]),
        ("a frame without end", vec![0x20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
        ("a block too long", vec![0x22, 9, 1, 0xc0, 0, 0, 1, 0, 0, 0, 0]),
        ("a head cut short", vec![0x10, 1, 1]),
        ("a PING with more behind it", vec![1, 2, 1, 1]),
        ("ones", vec![0xff; 5000]),
        ("zeros", vec![0; 5000]),
    ];
    for (what, bytes) in streams {
        let mut hostile = Hostile::to(gateway.address).await;
        hostile.send(&bytes).await;
        while hostile.frame().await.is_some() {}
        let answer = get(neighbour.address, &origin.url("/hello"), "").await;
        assert_eq!(answer.status, 200, "behind {what}: {}", answer.text());
    }
    // What only belongs to a later version harms nobody, nor does what is about nothing.
    let mut hostile = Hostile::to(gateway.address).await;
    let later = [vec![0x40, 0x55, 3, 1, 2, 3], vec![0xc0, 0, 0, 0, 0, 0, 1, 0, 0]].concat();
    hostile.send(&later).await;
    let control = Frame::Part(Part::Control(greatest, Bytes::from_static(b"of a later version")));
    let about_nothing = [
        control,
        Frame::Part(Part::Credit(77, 1)),
        Frame::Part(Part::Query(0, 1)),
        Frame::Part(Part::Query(greatest, greatest)),
    ];
    hostile.send(&encoded(&about_nothing)).await;
    let ask = request("GET", &origin.address.to_string(), b"/hello", &[]);
    for number in [2, greatest - 1] {
        hostile.next = number;
        assert_eq!(hostile.asks(&ask, None).await, Ok(200), "exchange {number}");
    }
}
