//! An edge, a gateway and an origin in one process, and plain ways to ask.
#![allow(dead_code)] // Each test binary uses its part.

pub(crate) mod keys;
pub(crate) mod origin;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use longwire_proxy::Resolve;
use longwire_proxy::config::{EdgeConfig, GatewayConfig, Settings};
use longwire_proxy::edge::Edge;
use longwire_proxy::gateway::Gateway;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// No step of a test takes this long; one that does has hung.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A side that runs until dropped.
pub(crate) struct Side {
    pub(crate) address: SocketAddr,
    pub(crate) admin: Option<SocketAddr>,
    /// Of a gateway, for clients without an edge.
    pub(crate) http: Option<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<Result<(), longwire_proxy::Error>>>,
}

impl Side {
    /// Asks for a shutdown; resolves when the side has ended.
    pub(crate) async fn stop(mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
        let task = self.task.take().unwrap();
        tokio::time::timeout(PATIENCE * 2, task).await.unwrap().unwrap().unwrap();
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

async fn until(stop: oneshot::Receiver<()>) {
    if stop.await.is_err() {
        std::future::pending().await
    }
}

/// Starts an edge; `settings` are keys of `[edge]`, and whole sections behind them.
pub(crate) async fn edge(settings: &str) -> Side {
    let text = format!("[edge]\nlisten = '127.0.0.1:0'\n{settings}");
    let settings = Settings::parse(&text).unwrap();
    edge_of(EdgeConfig::resolve(settings.edge, &settings.link, &settings.services).unwrap()).await
}

pub(crate) async fn edge_of(config: EdgeConfig) -> Side {
    let edge = Edge::bind(config).await.unwrap();
    let (address, admin) = (edge.local_addr(), edge.admin_addr());
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(edge.run(until(stopped), std::future::pending()));
    Side { address, admin, http: None, stop: Some(stop), task: Some(task) }
}

/// Settings of a gateway that lets every exactly named loopback address through.
pub(crate) fn gateway_config(settings: &str) -> GatewayConfig {
    let allow = if settings.contains("allow") { "" } else { "allow = ['http://127.0.0.1:*']\n" };
    let is_listen = |line: &str| line.starts_with("listen ");
    let given = settings.lines().any(is_listen);
    let listen = if given { "" } else { "listen = '127.0.0.1:0'\n" };
    let text = format!("[gateway]\n{listen}{allow}{settings}");
    let settings = Settings::parse(&text).unwrap();
    GatewayConfig::resolve(settings.gateway, &settings.link, &settings.services).unwrap()
}

pub(crate) async fn gateway(settings: &str) -> Side {
    gateway_of(gateway_config(settings)).await
}

pub(crate) async fn gateway_with(settings: &str, resolver: Arc<dyn Resolve>) -> Side {
    gateway_of(GatewayConfig { resolver, ..gateway_config(settings) }).await
}

async fn gateway_of(config: GatewayConfig) -> Side {
    let gateway = Gateway::bind(config).await.unwrap();
    let (address, admin) = (gateway.local_addr(), gateway.admin_addr());
    let http = gateway.http_addr();
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(gateway.run(until(stopped), std::future::pending()));
    Side { address, admin, http, stop: Some(stop), task: Some(task) }
}

/// An edge that reaches a gateway.
pub(crate) async fn pair(edge_settings: &str, gateway_settings: &str) -> (Side, Side) {
    let gateway = gateway(gateway_settings).await;
    let edge = edge(&format!("gateway = '{}'\n{edge_settings}", gateway.address)).await;
    (edge, gateway)
}

/// Says of every name that it is at one address.
#[derive(Debug)]
pub(crate) struct Everywhere(pub(crate) &'static str);

impl Resolve for Everywhere {
    fn resolve<'a>(
        &'a self,
        _: &'a str,
        port: u16,
    ) -> std::pin::Pin<Box<dyn Future<Output = std::io::Result<Vec<SocketAddr>>> + Send + 'a>> {
        let address = SocketAddr::new(self.0.parse().unwrap(), port);
        Box::pin(std::future::ready(Ok(vec![address])))
    }
}

/// Sends bytes, gives everything that comes until the other side closes, and whether it closed
/// in order.
pub(crate) async fn raw(address: SocketAddr, request: impl AsRef<[u8]>) -> (Vec<u8>, bool) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_ref()).await.unwrap();
    read_all(&mut stream).await
}

pub(crate) async fn read_all(stream: &mut (impl AsyncRead + Unpin)) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let reading = stream.read_to_end(&mut bytes);
    let orderly = tokio::time::timeout(PATIENCE, reading).await.expect("hangs").is_ok();
    (bytes, orderly)
}

/// Reads until `end` has come; gives all that was read.
pub(crate) async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains(end) {
        let reading = stream.read(&mut buffer);
        let len = tokio::time::timeout(PATIENCE, reading).await.expect("hangs").unwrap();
        assert!(len > 0, "closed behind {text:?}");
        text.push_str(&String::from_utf8_lossy(&buffer[..len]));
    }
    text
}

/// An answer taken apart.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// From one whole answer; a chunked body is put together.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let at = find(bytes, b"\r\n\r\n").unwrap_or_else(|| {
            panic!("no head in {:?}", String::from_utf8_lossy(bytes));
        });
        let head = String::from_utf8_lossy(&bytes[..at]).to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut body = bytes[at + 4..].to_vec();
        if head.contains("transfer-encoding: chunked") {
            body = dechunk(&body).expect("the chunked body is not whole");
        }
        Self { status, head, body }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn has(&self, line: &str) -> bool {
        self.head.lines().any(|other| other == line)
    }
}

/// `None` when the last chunk is missing.
pub(crate) fn dechunk(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let at = find(bytes, b"\r\n")?;
        let size = std::str::from_utf8(&bytes[..at]).ok()?;
        let size = usize::from_str_radix(size.split(';').next()?, 16).ok()?;
        bytes = &bytes[at + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(bytes.get(..size)?);
        bytes = bytes.get(size + 2..)?;
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// Asks a forward proxy over a connection of its own.
pub(crate) async fn get(edge: SocketAddr, url: &str, fields: &str) -> Answer {
    send(edge, "GET", url, fields, b"").await
}

/// Asks with a body of known length.
pub(crate) async fn send(
    edge: SocketAddr,
    method: &str,
    url: &str,
    fields: &str,
    body: &[u8],
) -> Answer {
    let (authority, _) =
        url.split_once("://").map_or(url, |(_, rest)| rest).split_once('/').unwrap();
    let length = match body.len() {
        0 => String::new(),
        len => format!("Content-Length: {len}\r\n"),
    };
    let head = format!(
        "{method} {url} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n{length}{fields}\r\n"
    );
    let mut stream = TcpStream::connect(edge).await.unwrap();
    let (mut reader, mut writer) = stream.split();
    let request = [head.as_bytes(), body].concat();
    let writing = async {
        // An answer may come before the whole request was taken.
        let _ = writer.write_all(&request).await;
    };
    let mut bytes = Vec::new();
    let reading = async {
        tokio::time::timeout(PATIENCE, reader.read_to_end(&mut bytes))
            .await
            .expect("hangs")
            .unwrap();
    };
    tokio::join!(writing, reading);
    Answer::parse(&bytes)
}

/// Resolves once `check` says so.
pub(crate) async fn eventually<F: Future<Output = bool>>(check: impl Fn() -> F) {
    let waiting = async {
        while !check().await {
            // sleep: between looks at a condition that nobody announces.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("never came to be");
}

/// Bytes that compress about as well as text, the same for the same seed.
pub(crate) fn text_like(len: usize, seed: u64) -> Vec<u8> {
    let words =
        ["track ", "unit ", "latitude ", "longitude ", "<pos>", "</pos>", "12.5 ", "NATO\n"];
    let mut state = seed | 1;
    let mut bytes = Vec::with_capacity(len + 16);
    while bytes.len() < len {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(words[(state >> 61) as usize].as_bytes());
    }
    bytes.truncate(len);
    bytes
}
