//! Metrics and health, on a loopback address: for whoever is on this machine.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use broker::{BridgeStatus, Broker, Counts, Drop, FederationRefused, MemberStatus, Sizes};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use proxy::Handed;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::bound::Bound;
use crate::config::Config;
use crate::error::Error;
use crate::explaining;
use crate::listen;
use crate::owner::Owner;

/// Most connections at once: a few who measure, and somebody who looks.
const MAX_CONNECTIONS: usize = 16;
/// How long a head may take.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
/// How long a connection may be used. Who measures every 15 s opens one each time anyway.
const MAX_LIFE: Duration = Duration::from_secs(60);
/// Pause after an accept failed for want of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A bound listener.
pub(crate) struct Admin {
    socket: TcpListener,
    address: SocketAddr,
}

/// The address of a configuration, if it names one.
pub(crate) fn address(config: &Config) -> Result<Option<SocketAddr>, Error> {
    let Some(text) = &config.broker.admin else { return Ok(None) };
    let wrong = |what| Error::Caller(format!("admin = \"{text}\" {what}"));
    let address: SocketAddr = text.parse().map_err(|_| wrong("is no address and port"))?;
    if !address.ip().is_loopback() {
        return Err(wrong("asks nobody who he is: only a loopback address may be given"));
    }
    Ok(Some(address))
}

impl Admin {
    /// Binds the listener of a configuration, or takes it.
    pub(crate) async fn bind(config: &Config, handed: &mut Handed) -> Result<Option<Self>, Error> {
        let Some(address) = address(config)? else { return Ok(None) };
        let socket = listen::bind_or_take(handed, "admin", address).await?;
        let address = socket.local_addr().unwrap_or(address);
        Ok(Some(Self { socket, address }))
    }

    /// Where it is.
    pub(crate) fn bound(&self) -> Bound {
        Bound { name: "admin", address: self.address }
    }

    /// Accepts for ever.
    pub(crate) async fn run(self, owner: Rc<Owner>) {
        let seats = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            match self.socket.accept().await {
                Ok((stream, _)) => {
                    // Who comes when all places are taken may come again.
                    let Ok(seat) = seats.clone().try_acquire_owned() else { continue };
                    let owner = owner.clone();
                    tokio::task::spawn_local(async move {
                        // What is left of it then has been used for long enough.
                        let _ = tokio::time::timeout(MAX_LIFE, serve(&owner, stream)).await;
                        drop(seat);
                    });
                }
                Err(error) => {
                    tracing::warn!(listener = "admin", %error, "a connection was not accepted");
                    // sleep: nobody is told when there are descriptors again.
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

async fn serve(owner: &Rc<Owner>, stream: TcpStream) {
    let service = service_fn(|request: Request<Incoming>| async move {
        Ok::<_, std::convert::Infallible>(answer(owner, &request))
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = served.await {
        tracing::debug!(%error, "a connection to the admin interface broke");
    }
}

fn answer<B>(owner: &Owner, request: &Request<B>) -> Response<Full<Bytes>> {
    if let Err((status, why)) = proxy::admin::check_host(request.uri(), request.headers()) {
        return typed(status, "text/plain", why.to_owned());
    }
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    match request.uri().path() {
        _ if !is_read => {
            let text = "only GET and HEAD\n".to_owned();
            let mut answer = typed(StatusCode::METHOD_NOT_ALLOWED, "text/plain", text);
            answer
                .headers_mut()
                .insert(header::ALLOW, header::HeaderValue::from_static("GET, HEAD"));
            answer
        }
        "/metrics" => typed(StatusCode::OK, "text/plain; version=0.0.4", page(owner)),
        explaining::PATH => explained(owner, request.uri().query().unwrap_or_default()),
        "/health" | "/health/live" | "/health/ready" => {
            typed(StatusCode::OK, "text/plain", "live\n".to_owned())
        }
        _ => {
            let text =
                "there are /metrics, /publications, /health/live, /health/ready\n".to_owned();
            typed(StatusCode::NOT_FOUND, "text/plain", text)
        }
    }
}

/// What became of publications, as an array of objects.
fn explained(owner: &Owner, query: &str) -> Response<Full<Bytes>> {
    let query = match explaining::read(query) {
        Ok(query) => query,
        Err(why) => return typed(StatusCode::BAD_REQUEST, "text/plain", why + "\n"),
    };
    let found = owner.broker().explain(&query);
    match serde_json::to_string(&found) {
        Ok(text) => typed(StatusCode::OK, "application/json", text),
        Err(error) => typed(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", format!("{error}\n")),
    }
}

fn typed(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::from(text));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    // It is of the moment.
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    answer
}

/// All metrics in the text format of Prometheus.
fn page(owner: &Owner) -> String {
    let broker = owner.broker();
    let (counts, sizes) = (broker.core().counts(), broker.core().sizes());
    let mut page = String::new();
    for (name, kind, help, value) in plain(&counts, &sizes, owner.connections()) {
        put(&mut page, name, kind, help, &[(String::new(), value)]);
    }
    let dropped: Vec<_> = Drop::NAMES
        .iter()
        .zip(counts.dropped)
        .map(|((_, name), count)| (format!("{{reason=\"{name}\"}}"), count))
        .collect();
    let help = "Publications that ended without delivery.";
    put(&mut page, "messages_dropped_total", "counter", help, &dropped);
    put_members(&mut page, &broker.members());
    put_federation(&mut page, &broker);
    let bridges = broker.bridges();
    if bridges.is_empty() {
        return page;
    }
    let of = |value: fn(&BridgeStatus) -> u64| -> Vec<(String, u64)> {
        bridges.iter().map(|bridge| (label(&bridge.name), value(bridge))).collect()
    };
    let help = "Whether the other broker has let the bridge in.";
    put(&mut page, "bridge_connected", "gauge", help, &of(|one| u64::from(one.is_connected)));
    let help = "Messages that wait for a bridge.";
    put(&mut page, "bridge_waiting_messages", "gauge", help, &of(|one| one.waiting as u64));
    let help = "Messages on the way over a bridge, without an acknowledgement.";
    put(&mut page, "bridge_inflight_messages", "gauge", help, &of(|one| one.under_way as u64));
    page
}

/// How it is with the members of a mesh.
fn put_members(page: &mut String, members: &[MemberStatus]) {
    let all: [Of; 7] = [
        ("mesh_linked", "gauge", "Whether a member is here.", |one| u64::from(one.is_linked)),
        ("mesh_waiting_messages", "gauge", "Publications for a member.", |one| one.waiting as u64),
        ("mesh_waiting_bytes", "gauge", "What these take.", |one| one.waiting_bytes as u64),
        ("mesh_sent_bytes_total", "counter", "Bytes to a member.", |one| one.sent_bytes),
        ("mesh_received_bytes_total", "counter", "Bytes from a member.", |one| one.received_bytes),
        ("mesh_dropped_total", "counter", "Publications that it will not get.", |one| one.dropped),
        ("mesh_repairs_total", "counter", "All states were sent to it again.", |one| one.repairs),
    ];
    for (name, kind, help, value) in all.iter().filter(|_| !members.is_empty()) {
        let values: Vec<_> =
            members.iter().map(|one| (label_of("member", &one.name), value(one))).collect();
        put(page, name, kind, help, &values);
    }
}

type Of = (&'static str, &'static str, &'static str, fn(&MemberStatus) -> u64);

/// What the profile of a federation has refused, if there is one. Its names need no escapes.
fn put_federation(page: &mut String, broker: &Broker) {
    let Some(federation) = &broker.core().settings().federation else { return };
    let labels = format!("{{profile=\"{}\",partner=\"{}\"}}", federation.profile, federation.own);
    let help = "Version of the profile that is applied.";
    put(page, "federation_version", "gauge", help, &[(labels, federation.version)]);
    let refused: Vec<_> = broker
        .federation_refused()
        .into_iter()
        .map(|refused| {
            let FederationRefused { partner, flow, kind, count } = refused;
            let reason = kind.name();
            let labels = format!("{{partner=\"{partner}\",flow=\"{flow}\",reason=\"{reason}\"}}");
            (labels, count)
        })
        .collect();
    let help = "What the profile of the federation has refused.";
    put(page, "federation_refused_total", "counter", help, &refused);
}

/// A bridge's label, as the text format escapes it.
fn label(name: &str) -> String {
    label_of("bridge", name)
}

fn label_of(of: &str, name: &str) -> String {
    let name = name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{{{of}=\"{name}\"}}")
}

type Plain = (&'static str, &'static str, &'static str, u64);

fn plain(counts: &Counts, sizes: &Sizes, connections: usize) -> [Plain; 13] {
    let of = |number: usize| number as u64;
    [
        ("connections", "gauge", "Connections of streams.", of(connections)),
        ("clients_connected", "gauge", "Sessions with a connection.", counts.connected),
        ("sessions", "gauge", "Sessions, with a connection or without.", of(sizes.sessions)),
        ("subscriptions", "gauge", "Subscriptions of all sessions.", of(sizes.subscriptions)),
        ("retained_messages", "gauge", "Topics with a retained message.", of(sizes.retained)),
        ("retained_bytes", "gauge", "What retained messages take.", of(sizes.retained_bytes)),
        ("queued_bytes", "gauge", "What waits for sessions takes.", of(sizes.queued_bytes)),
        ("sessions_opened_total", "counter", "Connections that got a session.", counts.opened),
        ("messages_received_total", "counter", "Publications taken.", counts.published),
        ("received_bytes_total", "counter", "Their payloads.", counts.published_bytes),
        ("messages_sent_total", "counter", "Publications given to clients.", counts.delivered),
        ("sent_bytes_total", "counter", "Their payloads.", counts.delivered_bytes),
        ("requests_refused_total", "counter", "Requests that were refused.", counts.refused),
    ]
}

fn put(page: &mut String, name: &str, kind: &str, help: &str, values: &[(String, u64)]) {
    let _ = writeln!(page, "# HELP longwire_broker_{name} {help}");
    let _ = writeln!(page, "# TYPE longwire_broker_{name} {kind}");
    for (labels, value) in values {
        let _ = writeln!(page, "longwire_broker_{name}{labels} {value}");
    }
}
