//! Each parameter of IST-118's Table III: what it changes on the wire or what happens at its limit.
//!
//! Times are real and short. Only lower bounds of them are checked: a busy machine makes all later.

use std::io::{self, IoSlice};
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, Interest, ReadBuf, duplex,
};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Config;
use super::site::Site;
use crate::server::connection::{End, converse};
use crate::server::{Chunking, Compression, Settings, Timeouts};
use crate::tracks::soap::{self, Version};

const SEED: u64 = 5;
/// What the tests use as a timeout that is reached, and as one that is not.
const SHORT: Duration = Duration::from_millis(60);
const LONG: Duration = Duration::from_secs(60);
const GET: &str = "GET /rest/xml/22 HTTP/1.1\r\nHost: h\r\n";

/// Bytes of each read and write of the server.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<(Vec<usize>, Vec<usize>)>>);

impl Log {
    fn reads(&self) -> Vec<usize> {
        self.0.lock().unwrap().0.clone()
    }

    fn writes(&self) -> Vec<usize> {
        self.0.lock().unwrap().1.clone()
    }
}

/// The server's end of a connection without a kernel.
struct Logged(DuplexStream, Log);

impl AsyncRead for Logged {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.0).poll_read(cx, buf);
        if polled.is_ready() {
            self.1.0.lock().unwrap().0.push(buf.filled().len() - before);
        }
        polled
    }
}

impl AsyncWrite for Logged {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.0).poll_write(cx, bytes);
        if let Poll::Ready(Ok(count)) = polled {
            self.1.0.lock().unwrap().1.push(count);
        }
        polled
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let whole: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        self.poll_write(cx, &whole)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// A connection to a server with these settings, with room for `room_bytes` in between.
struct Client {
    stream: DuplexStream,
    log: Log,
    served: JoinHandle<End>,
    _running: watch::Sender<bool>,
}

impl Client {
    fn new(settings: Settings, room_bytes: usize) -> Self {
        let (stream, server) = duplex(room_bytes);
        let (log, (running, stopping)) = (Log::default(), watch::channel(false));
        let site = Arc::new(Site::new(SEED, settings));
        let peer = (Ipv4Addr::LOCALHOST, 1).into();
        let served = tokio::spawn(converse(Logged(server, log.clone()), peer, site, stopping));
        Self { stream, log, served, _running: running }
    }

    async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// What comes until the server closes.
    async fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let read = timeout(LONG, self.stream.read_to_end(&mut bytes)).await;
        read.expect("the server does not close").unwrap();
        bytes
    }

    /// A whole answer that has a length.
    async fn answer(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let lower = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
            if let Some((head, _)) = lower.split_once("\r\n\r\n") {
                let length = head.split_once("content-length: ").unwrap().1;
                let length: usize = length.lines().next().unwrap().parse().unwrap();
                if bytes.len() == head.len() + 4 + length {
                    return bytes;
                }
            }
            let read = self.stream.read_buf(&mut bytes).await.unwrap();
            assert!(read > 0, "the server closed: {lower}");
        }
    }

    async fn end(self) -> End {
        timeout(LONG, self.served).await.expect("the server goes on").unwrap()
    }
}

/// The answer to one request, with the head apart, and how it was written.
async fn ask(settings: Settings, request: &str) -> (String, Vec<u8>, Vec<usize>) {
    let mut client = Client::new(settings, 1 << 20);
    client.send(&format!("{request}Connection: close\r\n\r\n")).await;
    let answer = client.rest().await;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    (head, answer[end..].to_vec(), client.log.writes())
}

fn plain() -> Vec<u8> {
    Site::new(SEED, Settings::default()).catalogue.xml(22).unwrap().plain().to_vec()
}

fn timeouts(change: impl FnOnce(&mut Timeouts)) -> Settings {
    let mut timeouts =
        Timeouts { keep_alive: LONG, idle: LONG, read: LONG, write: LONG, poll: SHORT };
    change(&mut timeouts);
    Settings { timeouts, ..Settings::default() }
}

#[tokio::test]
async fn keep_alive_timeout_ends_a_connection_between_requests_however_long_the_poll() {
    let settings = timeouts(|of| (of.keep_alive, of.poll) = (SHORT, LONG));
    let mut client = Client::new(settings, 1 << 20);
    let start = Instant::now();
    client.send(&format!("{GET}\r\n")).await;
    client.answer().await;
    assert!(client.rest().await.is_empty());
    assert!(start.elapsed() >= SHORT, "{:?}", start.elapsed());
    assert_eq!(client.end().await, End::Clean);
}

#[tokio::test]
async fn keep_alive_timeout_does_not_run_while_an_answer_is_handed_over() {
    let mut client = Client::new(timeouts(|of| of.keep_alive = SHORT), 1024);
    client.send(&format!("{GET}\r\n")).await;
    // sleep: passing time is what is tested.
    tokio::time::sleep(SHORT * 3).await;
    let answer = client.rest().await;
    assert!(answer.ends_with(&plain()), "the answer was cut");
}

#[tokio::test]
async fn compression_is_never_by_request_or_forced() {
    let asked = format!("{GET}Accept-Encoding: gzip\r\n");
    let refused = format!("{GET}Accept-Encoding: gzip;q=0\r\n");
    for (compression, request, coded) in [
        (Compression::Off, &asked, false),
        (Compression::ByRequest, &GET.to_owned(), false),
        (Compression::ByRequest, &asked, true),
        (Compression::Forced, &GET.to_owned(), true),
        (Compression::Forced, &refused, true),
    ] {
        let settings = Settings { compression, ..Settings::default() };
        let (head, content, _) = ask(settings, request).await;
        assert_eq!(head.contains("content-encoding: gzip"), coded, "{compression:?}: {head}");
        assert_eq!(content.len() < plain().len() / 2, coded);
        let varies = compression == Compression::ByRequest;
        assert_eq!(head.contains("accept-encoding"), varies, "{compression:?}: {head}");
    }
}

#[tokio::test]
async fn chunking_frames_each_send_buffer_and_writes_it_at_once() {
    let settings =
        Settings { chunking: Chunking::On, send_buffer_bytes: 8192, ..Settings::default() };
    let (head, framed, writes) = ask(settings, GET).await;
    assert!(head.contains("transfer-encoding: chunked") && !head.contains("content-length"));
    let (mut rest, mut content, mut expected) = (&framed[..], Vec::new(), Vec::new());
    loop {
        let line = rest.windows(2).position(|two| two == b"\r\n").unwrap();
        let size = std::str::from_utf8(&rest[..line]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        content.extend_from_slice(&rest[line + 2..line + 2 + size]);
        expected.push(line + 2 + size + 2);
        assert!(size == 8192 || content.len() == plain().len(), "a chunk of {size}");
        rest = &rest[line + 2 + size + 2..];
    }
    assert_eq!(rest, b"0\r\n\r\n");
    assert!(content == plain());
    // The head goes with the first chunk, the last chunk with the end.
    expected[0] += head.len();
    *expected.last_mut().unwrap() += 5;
    assert_eq!(writes, expected);

    let (head, content, _) = ask(settings, "GET /rest/xml/22 HTTP/1.0\r\n").await;
    assert!(!head.contains("chunked") && content == plain(), "HTTP/1.0 has no chunks: {head}");
}

#[tokio::test]
async fn the_end_of_the_connection_can_end_an_answer() {
    let settings = Settings { chunking: Chunking::Close, ..Settings::default() };
    let mut client = Client::new(settings, 1 << 20);
    client.send(&format!("{GET}\r\n")).await;
    let answer = client.rest().await;
    assert!(answer.ends_with(&[b"\r\n\r\n", &plain()[..]].concat()));
    let head = String::from_utf8_lossy(&answer[..answer.len() - plain().len()]);
    let head = head.to_ascii_lowercase();
    assert!(!head.contains("content-length") && !head.contains("transfer-encoding"), "{head}");
    assert!(head.contains("connection: close"), "{head}");
}

#[tokio::test]
async fn send_buffer_is_the_content_of_one_write() {
    let length = plain().len();
    for send_buffer_bytes in [256, 8192, 32768, 1 << 20] {
        let settings = Settings { send_buffer_bytes, ..Settings::default() };
        let (head, content, mut writes) = ask(settings, GET).await;
        assert!(content == plain());
        writes[0] -= head.len();
        assert_eq!(writes.len(), length.div_ceil(send_buffer_bytes));
        let (last, full) = writes.split_last().unwrap();
        assert!(full.iter().all(|&count| count == send_buffer_bytes), "{writes:?}");
        assert_eq!(*last, length - full.len() * send_buffer_bytes);
    }
}

#[tokio::test]
async fn header_buffer_bounds_the_head_of_a_request() {
    for (header_buffer_bytes, head_bytes, status) in [
        (256, 200, "200 ok"),
        (256, 300, "431 "),
        (8192, 300, "200 ok"),
        (8192, 8300, "431 "),
        (16384, 8300, "200 ok"),
    ] {
        let settings = Settings { header_buffer_bytes, ..Settings::default() };
        let rest = "Connection: close\r\n\r\n".len() + GET.len() + "X: \r\n".len();
        let request = format!("{GET}X: {}\r\n", "x".repeat(head_bytes - rest));
        let (head, ..) = ask(settings, &request).await;
        let line = head.lines().next().unwrap();
        assert!(line.starts_with(&format!("http/1.1 {status}")), "{header_buffer_bytes}: {line}");
    }
}

#[tokio::test]
async fn tcp_buffer_bounds_each_read() {
    for tcp_buffer_bytes in [256, 512, 32768] {
        let settings = Settings { tcp_buffer_bytes, ..Settings::default() };
        let mut client = Client::new(settings, 1 << 20);
        client.send(&format!("{GET}X: {}\r\n\r\n", "x".repeat(2000))).await;
        client.answer().await;
        let reads = client.log.reads();
        let largest = reads.iter().copied().max().unwrap();
        assert_eq!(largest, tcp_buffer_bytes.min(GET.len() + 2007), "{reads:?}");
    }
}

#[tokio::test]
async fn idle_timeout_ends_a_connection_on_which_nothing_moves() {
    for begun in ["", "GET / HT"] {
        let mut client = Client::new(timeouts(|of| of.idle = SHORT), 1024);
        client.send(begun).await;
        assert!(client.rest().await.is_empty());
        assert_eq!(client.end().await, End::Clean);
    }
}

#[tokio::test]
async fn read_timeout_ends_a_head_and_answers_content_that_does_not_go_on() {
    let settings = timeouts(|of| of.read = SHORT);
    let start = Instant::now();
    let mut client = Client::new(settings, 1 << 20);
    client.send("GET / HT").await;
    assert!(client.rest().await.is_empty());
    assert!(start.elapsed() >= SHORT);

    let body = soap::request(Version::Soap11, 7);
    let mut client = Client::new(settings, 1 << 20);
    let head = format!(
        "POST /soap HTTP/1.1\r\nHost: h\r\nContent-Type: text/xml\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    client.send(&(head + &body[..10])).await;
    let answer = String::from_utf8(client.rest().await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    assert_eq!(client.end().await, End::Clean);
}

#[tokio::test]
async fn write_timeout_cuts_an_answer_that_nobody_takes() {
    let mut client = Client::new(timeouts(|of| of.write = SHORT), 1024);
    let start = Instant::now();
    client.send(&format!("{GET}\r\n")).await;
    let Client { served, stream, .. } = client;
    let end = timeout(LONG, served).await.expect("the server waits for ever").unwrap();
    assert_eq!(end, End::MidAnswer);
    assert!(start.elapsed() >= SHORT);
    drop(stream);
}

#[tokio::test]
async fn a_cut_answer_ends_with_a_reset() {
    let server = config(timeouts(|of| of.write = SHORT)).bind().unwrap();
    let address = server.address();
    let task = tokio::spawn(server.run(std::future::pending()));
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(65_536).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    // More answers (25 MB) than the kernel holds for a client that reads none. The requests are few
    // enough that the server reads all: unread ones would have any end be a reset.
    let requests = format!("{GET}\r\n").repeat(180);
    assert!(requests.len() < 8192);
    stream.write_all(requests.as_bytes()).await.unwrap();
    let ended = timeout(LONG, stream.ready(Interest::ERROR)).await;
    ended.expect("no end, or a clean one").unwrap();
    let error = stream.take_error().unwrap().expect("no error");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    task.abort();
}

#[tokio::test]
async fn poll_timeout_is_how_late_the_others_may_be_noticed() {
    let poll = SHORT * 5;
    let settings = timeouts(|of| (of.idle, of.read, of.poll) = (SHORT, SHORT, poll));
    let start = Instant::now();
    let mut client = Client::new(settings, 1024);
    assert!(client.rest().await.is_empty());
    assert!(start.elapsed() >= poll, "looked at after {:?}", start.elapsed());
}

#[tokio::test]
async fn nodelay_is_set_or_left_off_as_asked() {
    for nodelay in [true, false] {
        let settings = Settings { nodelay, ..Settings::default() };
        let server = config(settings).bind().unwrap();
        let address = server.address();
        let accepted = async { server.listener().accept().await.unwrap().0 };
        let (accepted, _client) = tokio::join!(accepted, TcpStream::connect(address));
        accepted.set_nodelay(!nodelay).unwrap();
        server.prepare(&accepted);
        assert_eq!(accepted.nodelay().unwrap(), nodelay);
    }
}

#[tokio::test]
async fn settings_out_of_range_are_refused_with_the_range() {
    let refused = |settings: Settings| {
        let line = config(settings).bind().unwrap_err().to_string();
        assert_eq!(line.lines().count(), 1, "{line}");
        line
    };
    for (settings, name) in [
        (timeouts(|of| of.keep_alive = Duration::ZERO), "keep-alive timeout 0ns"),
        (timeouts(|of| of.idle = Duration::from_micros(999)), "idle timeout 999µs"),
        (timeouts(|of| of.read = Duration::from_secs(86_401)), "read timeout 86401s"),
        (timeouts(|of| of.write = Duration::MAX), "write timeout"),
        (timeouts(|of| of.poll = Duration::ZERO), "poll timeout"),
    ] {
        let line = refused(settings);
        assert!(line.contains(name) && line.contains("1 ms to 24 h"), "{line}");
    }
    let usual = Settings::default();
    for (settings, name) in [
        (Settings { send_buffer_bytes: 255, ..usual }, "send buffer of 255 B"),
        (Settings { header_buffer_bytes: 0, ..usual }, "header buffer of 0 B"),
        (Settings { tcp_buffer_bytes: usize::MAX, ..usual }, "TCP buffer"),
    ] {
        let line = refused(settings);
        assert!(line.contains(name) && line.contains("256 B to 16 MiB"), "{line}");
    }
}

fn config(settings: Settings) -> Config {
    Config { listen: (Ipv4Addr::LOCALHOST, 0).into(), seed: SEED, congestion: None, settings }
}
