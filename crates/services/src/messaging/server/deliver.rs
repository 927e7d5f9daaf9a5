//! Requests to other nodes over HTTP/1.1, themselves or through a forward proxy such as an edge.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::NODE_FIELD;
use super::coap::stream::Streams;
use super::coap::{Caller, Time};
use crate::client::Target;
use crate::messaging::config::{Config, Peer, Way};
use crate::messaging::forms::Form;
use crate::messaging::machine::{Parcel, Sent};
use crate::messaging::message::{Delivery, Precedence};
use crate::messaging::refusal::shown;

/// Longest content of an answer that is read, in bytes: the line of a refusal.
const MAX_ANSWER_BYTES: usize = 4096;
/// Most idle connections to one node.
const MAX_IDLE: usize = 16;
/// How long an idle connection is used again; nodes close theirs after a minute.
const IDLE_LIFE: Duration = Duration::from_secs(30);

type Connection = http1::SendRequest<Full<Bytes>>;
/// Connections that are not used, and since when.
type Idle = Vec<(Connection, Instant)>;

/// Makes requests to other nodes.
#[derive(Debug)]
pub(super) struct Deliverer {
    nodes: BTreeMap<Arc<str>, Peer>,
    proxy: Option<Target>,
    coap: Option<Caller>,
    streams: Streams,
    /// How long a connection may take to be made.
    patience: Duration,
    idle: Mutex<BTreeMap<Arc<str>, Idle>>,
}

impl Deliverer {
    pub(super) fn new(config: &Config, coap: Option<Caller>) -> Self {
        let (nodes, proxy) = (config.nodes.clone(), config.proxy.clone());
        let patience = config.settings.attempt_timeout;
        let streams = Streams::default();
        Self { nodes, proxy, coap, streams, patience, idle: Mutex::default() }
    }

    /// Gives something to a node; what came of it.
    pub(super) async fn deliver(&self, node: &Arc<str>, parcel: &Parcel, within: Duration) -> Sent {
        let Some(peer) = self.nodes.get(node) else {
            return Sent::Failed(format!("node '{node}' has no URL"));
        };
        let encoded = match parcel {
            Parcel::Message(transfer) => {
                transfer.encode(peer.form).map(|bytes| ("/transfers", bytes))
            }
            Parcel::Receipt(returning) => {
                returning.encode(peer.form).map(|bytes| ("/receipts", bytes))
            }
        };
        let time = Time { within, is_cut: within < self.patience };
        let (path, bytes) = match encoded {
            Ok(encoded) => encoded,
            Err(refusal) => return Sent::Refused(refusal.line),
        };
        let url = match (&peer.way, &self.coap) {
            (Way::Http(url), _) => url,
            (Way::Coap(address), Some(coap)) => {
                let content = (peer.form, bytes.into());
                let how = (is_confirmable(parcel), precedence(parcel), time);
                return coap.deliver(node, *address, path, content, how).await;
            }
            (Way::CoapTcp(address), _) => {
                let content = (peer.form, bytes.into());
                return self.streams.deliver(node, *address, path, content, time).await;
            }
            (Way::Coap(_), None) => return Sent::Failed("this node has no CoAP".to_owned()),
        };
        let exchange = self.exchange(node, (url, peer.form), path, bytes.into());
        match tokio::time::timeout(within, exchange).await {
            Ok(Ok(sent)) => sent,
            Ok(Err(line)) => Sent::Failed(line),
            Err(_) if time.is_cut => Sent::NotNow(late(within)),
            // A connection there is, or its own time would have ended.
            Err(_) if within > self.patience => Sent::NotNow(late(within)),
            Err(_) => Sent::Failed(late(within)),
        }
    }

    async fn exchange(
        &self,
        node: &Arc<str>,
        peer: (&Target, Form),
        path: &str,
        bytes: Bytes,
    ) -> Result<Sent, String> {
        // Doubled requests do no harm: a node knows a message by its id.
        if let Some(mut kept) = self.kept(node) {
            let request = self.request(peer, path, bytes.clone())?;
            if let Ok(response) = kept.send_request(request).await {
                return self.finish(node, kept, response).await;
            }
        }
        let whom = self.proxy.as_ref().unwrap_or(peer.0);
        let connecting = tokio::time::timeout(self.patience, connect(whom)).await;
        let mut connection = connecting.map_err(|_| late(self.patience))??;
        let response = connection.send_request(self.request(peer, path, bytes)?).await;
        let response = response.map_err(|error| format!("no answer: {error}"))?;
        self.finish(node, connection, response).await
    }

    fn kept(&self, node: &Arc<str>) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let connections = idle.get_mut(node)?;
        while let Some((connection, since)) = connections.pop() {
            if since.elapsed() < IDLE_LIFE && connection.is_ready() {
                return Some(connection);
            }
        }
        None
    }

    fn keep(&self, node: &Arc<str>, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let connections = idle.entry(node.clone()).or_default();
        if connections.len() < MAX_IDLE {
            connections.push((connection, Instant::now()));
        }
    }

    fn request(
        &self,
        (url, form): (&Target, Form),
        path: &str,
        bytes: Bytes,
    ) -> Result<Request<Full<Bytes>>, String> {
        post(url, self.proxy.is_some(), form, path, bytes)
    }

    async fn finish(
        &self,
        node: &Arc<str>,
        connection: Connection,
        response: Response<Incoming>,
    ) -> Result<Sent, String> {
        let status = response.status();
        let field = response.headers().get(NODE_FIELD);
        let named = field.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let content = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
        let line = match content {
            Ok(content) => {
                self.keep(node, connection);
                String::from_utf8_lossy(&content.to_bytes()).trim().replace(['\r', '\n'], " ")
            }
            Err(_) => String::new(),
        };
        outcome(node, status, named.as_deref(), &line)
    }
}

/// A request that gives bytes to a node.
pub(super) fn post(
    url: &Target,
    is_proxied: bool,
    form: Form,
    path: &str,
    bytes: Bytes,
) -> Result<Request<Full<Bytes>>, String> {
    let target = url.join(path);
    // RFC 9112 §3.2.2: a proxy gets the whole URL.
    let uri = if is_proxied { target.to_string() } else { target.path().to_owned() };
    let media_type = HeaderValue::from_static(form.media_type());
    Request::post(uri)
        .header(HOST, target.authority())
        .header(CONTENT_TYPE, media_type)
        .body(Full::new(bytes))
        .map_err(|error| format!("no request can be made: {error}"))
}

fn late(within: Duration) -> String {
    format!("no answer within {} ms", within.as_millis())
}

/// Whether a request is repeated until the node has it (RFC 7252 §4.2): not of best effort.
fn is_confirmable(parcel: &Parcel) -> bool {
    match parcel {
        Parcel::Message(transfer) => transfer.message.delivery == Delivery::Reliable,
        Parcel::Receipt(_) => true,
    }
}

fn precedence(parcel: &Parcel) -> Precedence {
    match parcel {
        Parcel::Message(transfer) => transfer.message.precedence,
        Parcel::Receipt(returning) => returning.receipt.precedence,
    }
}

/// What an answer means. Only the node itself can take a message or refuse it for good: whoever
/// else answers, such as a proxy on the way, says no more than that the node was not reached.
fn outcome(
    node: &str,
    status: StatusCode,
    named: Option<&str>,
    line: &str,
) -> Result<Sent, String> {
    match named {
        None => return Err(format!("status {status} of somebody else: {}", shown(line))),
        Some(other) if other != node => {
            let other = shown(other);
            return Err(format!("the URL leads to node '{other}'; correct it"));
        }
        Some(_) => {}
    }
    match status {
        _ if status.is_success() => Ok(Sent::Taken),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
            Ok(Sent::NotNow(line.to_owned()))
        }
        StatusCode::LOOP_DETECTED => Ok(Sent::Loop(line.to_owned())),
        _ if status.is_client_error() => Ok(Sent::Refused(line.to_owned())),
        _ => Ok(Sent::NotNow(format!("status {status}: {line}"))),
    }
}

async fn connect(target: &Target) -> Result<Connection, String> {
    let (host, port) = (target.host(), target.port());
    let stream = TcpStream::connect((host, port)).await;
    let stream = stream.map_err(|error| format!("cannot connect to {host}:{port}: {error}"))?;
    let _ = stream.set_nodelay(true);
    let opened = http1::handshake(TokioIo::new(stream)).await;
    let (connection, driver) = opened.map_err(|error| error.to_string())?;
    // Its errors reach whoever waits for the answer; it ends with the connection.
    tokio::spawn(async move {
        let _ = driver.await;
    });
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_node_itself_takes_or_refuses() {
        let of =
            |status: u16, named| outcome("b", StatusCode::from_u16(status).unwrap(), named, "line");
        assert_eq!(of(204, Some("b")), Ok(Sent::Taken));
        assert_eq!(of(508, Some("b")), Ok(Sent::Loop("line".to_owned())));
        for status in [400, 403, 404, 409, 413, 415, 422] {
            assert_eq!(of(status, Some("b")), Ok(Sent::Refused("line".to_owned())), "{status}");
        }
        for status in [408, 429, 500, 503, 504] {
            assert!(matches!(of(status, Some("b")), Ok(Sent::NotNow(_))), "{status}");
        }
        for status in [200, 204, 400, 403, 404, 502] {
            assert!(of(status, None).is_err(), "{status} of a proxy");
            assert!(of(status, Some("c")).is_err(), "{status} of another node");
        }
    }
}
