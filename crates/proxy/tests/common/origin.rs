//! Origins for tests: a well-behaved one with a few paths, and scripted ones.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>;

/// An origin that runs until dropped.
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    /// Heads of the requests that came, in order.
    pub(crate) seen: Arc<Mutex<Vec<http::request::Parts>>>,
    /// Connections accepted.
    pub(crate) connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Origin {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn last(&self) -> HeaderMap {
        self.seen.lock().unwrap().last().unwrap().headers.clone()
    }

    /// `/echo` gives the body back, `/sum` its length, `/text/N` N bytes of text with a length,
    /// `/stream/N` the same without, `/trailers`, `/status/N`, `/coded`,
    /// and `/hello` else.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let (heads, count) = (Arc::clone(&seen), Arc::clone(&connections));
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                let heads = Arc::clone(&heads);
                let service = service_fn(move |request| serve(request, Arc::clone(&heads)));
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .with_upgrades();
                tokio::spawn(connection);
            }
        });
        Self { address, seen, connections, task }
    }

    /// An origin whose every connection is handled by `script`.
    pub(crate) async fn scripted<F, Fut>(script: F) -> Self
    where
        F: Fn(TcpStream) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(script(stream));
            }
        });
        Self { address, seen: Arc::default(), connections, task }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Fields of `/coded`, which nobody in between may change.
pub(crate) const CODED: [(&str, &str); 6] = [
    ("content-encoding", "gzip"),
    ("etag", "\"strong\""),
    ("vary", "accept-encoding"),
    ("content-range", "bytes 0-6/70"),
    ("digest", "sha-256=abc"),
    ("cache-control", "max-age=5"),
];

fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

fn frames(list: Vec<Frame<Bytes>>) -> Body {
    Frames(list.into()).boxed_unsync()
}

/// Frames that are all there.
struct Frames(VecDeque<Frame<Bytes>>);

impl hyper::body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}

async fn serve(
    mut request: Request<Incoming>,
    seen: Arc<Mutex<Vec<http::request::Parts>>>,
) -> Result<Response<Body>, hyper::Error> {
    let upgrade = hyper::upgrade::on(&mut request);
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let websocket = parts.headers.get("upgrade").is_some_and(|value| value == "websocket");
    let content_type = parts.headers.get("content-type").cloned();
    seen.lock().unwrap().push(parts);
    let (first, argument) = path[1..].split_once('/').unwrap_or((&path[1..], ""));
    let number = || argument.parse::<usize>().unwrap();
    let mut response = Response::new(full("hello\n"));
    match first {
        "echo" => {
            let whole = body.collect().await?;
            let trailers = whole.trailers().cloned();
            let bytes = whole.to_bytes();
            if let Some(trailers) = trailers {
                let list = vec![Frame::data(bytes), Frame::trailers(trailers)];
                *response.body_mut() = frames(list);
                response.headers_mut().insert("trailer", "x-sum".parse().unwrap());
            } else {
                *response.body_mut() = full(bytes);
            }
            if let Some(value) = content_type {
                response.headers_mut().insert("content-type", value);
            }
        }
        "sum" => {
            let len = body.collect().await?.to_bytes().len();
            *response.body_mut() = full(len.to_string());
        }
        "text" => *response.body_mut() = full(super::text_like(number(), 7)),
        "stream" => {
            let text = super::text_like(number(), 7);
            let pieces = text.chunks(10_000).map(|piece| Frame::data(piece.to_vec().into()));
            *response.body_mut() = frames(pieces.collect());
        }
        "status" => {
            *response.status_mut() = argument.parse().unwrap();
            if argument == "204" || argument == "304" {
                *response.body_mut() = full("");
            }
            response.headers_mut().insert("etag", "\"v1\"".parse().unwrap());
        }
        "socket" if websocket => {
            tokio::spawn(async move {
                let mut stream = TokioIo::new(upgrade.await.unwrap());
                let (mut reader, mut writer) = tokio::io::split(&mut stream);
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
                let _ = writer.shutdown().await;
            });
            *response.status_mut() = http::StatusCode::SWITCHING_PROTOCOLS;
            *response.body_mut() = full("");
            let headers = response.headers_mut();
            headers.insert("upgrade", "websocket".parse().unwrap());
            headers.insert("connection", "Upgrade".parse().unwrap());
            headers.insert("sec-websocket-accept", "abc=".parse().unwrap());
        }
        "coded" => {
            *response.body_mut() = full(vec![0x1f, 0x8b, 8, 0, 0xff, 0, 7]);
            let headers = response.headers_mut();
            for (name, value) in CODED {
                headers.insert(name, value.parse().unwrap());
            }
        }
        "private" => {
            let headers = response.headers_mut();
            headers.insert("connection", "x-hop".parse().unwrap());
            headers.insert("x-hop", "1".parse().unwrap());
            headers.insert("keep-alive", "timeout=9".parse().unwrap());
            headers.insert("x-end", "1".parse().unwrap());
        }
        _ => {}
    }
    Ok(response)
}
