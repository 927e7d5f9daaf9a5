//! Metrics and health, on a loopback address.
//!
//! Whoever is on this machine may ask, and nobody is asked who he is. So a page of another site
//! that a browser shows here must not be able to read it under a name of its own that leads to
//! loopback, and connections hold no more than a few places, for seconds.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::actor::Handle;
use crate::config::Fallback;
use crate::fault;
use crate::metrics::Metrics;
use crate::parting::Parting;
use crate::rarely::Rarely;
use crate::run;
use crate::seats::{Doing, Seat, Seats};
use crate::upstream::host_and_port;

/// Most connections at once: a few who measure, and somebody who looks.
const MAX_CONNECTIONS: usize = 16;
/// How metrics call that bound.
const CONNECTIONS: &str = "connections to the admin interface";
/// How long a head may take, and a connection idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may be used. Who measures every 15 s opens one each time anyway.
const MAX_LIFE: Duration = Duration::from_secs(60);
/// How long an answer may take beyond that.
const LAST_PATIENCE: Duration = Duration::from_secs(10);
/// Largest head of a request; the least that the library takes.
const MAX_HEAD_BYTES: usize = 8 << 10;

/// What the pages are made of.
#[derive(Clone)]
pub(crate) struct Admin {
    pub(crate) metrics: Arc<Metrics>,
    /// None: an edge without a gateway.
    pub(crate) handle: Option<Handle>,
    /// An edge's way while the gateway cannot be reached; none where there is no gateway.
    pub(crate) fallback: Option<Fallback>,
    pub(crate) parting: Parting,
}

/// Starts to serve, where there is a listener. What is asked already goes on when that ends.
pub(crate) fn start(listener: Option<TcpListener>, admin: Admin) -> Option<JoinHandle<()>> {
    listener.map(|listener| fault::spawn_core("admin", serve(listener, admin)))
}

/// Serves for ever.
async fn serve(listener: TcpListener, admin: Admin) {
    let (seats, failures) = (Seats::new(MAX_CONNECTIONS), Rarely::default());
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                if let Some(times) = failures.note(Instant::now()) {
                    let what = "cannot accept a connection to the admin interface";
                    tracing::warn!(times, %error, "{what}");
                }
                seats.drop_one();
                tokio::time::sleep(run::ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (seat, dropped) = seats.take(&()).await;
        if dropped {
            admin.metrics.count_limit(CONNECTIONS);
        }
        tokio::spawn(admin.clone().converse(stream, seat));
    }
}

impl Admin {
    async fn converse(self, stream: TcpStream, seat: Seat<()>) {
        let (admin, seat) = (&self, &seat);
        let service = service_fn(|request: Request<Incoming>| async move {
            // It is never busy: one that takes nothing must yield too.
            seat.note(Doing::Speaking);
            let answer = admin.answer(&request).await;
            seat.note(Doing::Idle);
            Ok::<_, Infallible>(answer)
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(MAX_HEAD_BYTES);
        let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            _ = connection.as_mut() => return,
            () = seat.lost() => return,
            () = tokio::time::sleep(MAX_LIFE) => connection.as_mut().graceful_shutdown(),
        }
        tokio::select! {
            _ = connection => {}
            () = seat.lost() => {}
            () = tokio::time::sleep(LAST_PATIENCE) => {}
        }
    }

    async fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        if let Err((status, why)) = check_host(request.uri(), request.headers()) {
            return text(status, why);
        }
        let path = request.uri().path();
        if !["/metrics", "/health", "/health/live", "/health/ready"].contains(&path) {
            return text(
                StatusCode::NOT_FOUND,
                "there are /metrics, /health/live, /health/ready\n",
            );
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
            refusal.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refusal;
        }
        match path {
            "/metrics" => self.metrics().await,
            "/health/live" => text(StatusCode::OK, "live\n"),
            _ => self.health().await,
        }
    }

    async fn load(&self) -> Option<relay::Load> {
        match &self.handle {
            Some(handle) => handle.load().await,
            None => Some(relay::Load::default()),
        }
    }

    async fn metrics(&self) -> Response<Full<Bytes>> {
        let load = self.load().await.unwrap_or_default();
        let links = match &self.handle {
            Some(handle) => handle.links().await,
            None => Vec::new(),
        };
        let page = self.metrics.render(load, &links);
        typed(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", page)
    }

    /// 200 when a request would get through to the other side, else 503 and why not.
    async fn health(&self) -> Response<Full<Bytes>> {
        let standing = match &self.handle {
            _ if self.parting.is_said() => Err("it is shutting down".to_owned()),
            Some(handle) => handle.standing().await,
            None => Ok(()),
        };
        let load = self.load().await.unwrap_or_default();
        let status =
            if standing.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let mut body = serde_json::json!({
            "live": true,
            "ready": standing.is_ok(),
            "carriers": load.carriers,
            "open_exchanges": load.exchanges,
        });
        if let Err(why) = standing {
            body["why"] = why.into();
        }
        if let Some(fallback) = self.fallback {
            body["fallback"] = fallback.name().into();
        }
        typed(status, "application/json", body.to_string())
    }
}

/// Whom a request is meant for has to be this machine, by an address or by the name that everybody
/// has for it (RFC 6761 §6.3). A browser sends what stands in its page's address (RFC 9110 §7.2).
///
/// # Errors
/// The status and the line of the refusal.
pub fn check_host(uri: &Uri, headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err((
            StatusCode::BAD_REQUEST,
            "two Host fields: send one (RFC 9112 section 3.2)\n",
        ));
    }
    let named = host.map(|host| host.to_str().unwrap_or("?"));
    let all = [named, uri.authority().map(http::uri::Authority::as_str)];
    if all.into_iter().flatten().all(is_this_machine) {
        return Ok(());
    }
    let why = "this host is not served here: ask by a loopback address or as localhost\n";
    Err((StatusCode::MISDIRECTED_REQUEST, why))
}

fn is_this_machine(authority: &str) -> bool {
    let Some((host, _)) = host_and_port(authority, "http") else { return false };
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let address: Option<IpAddr> = host.parse().ok();
    name == "localhost"
        || name.ends_with(".localhost")
        || address.is_some_and(|address| address.to_canonical().is_loopback())
}

fn text(status: StatusCode, line: &'static str) -> Response<Full<Bytes>> {
    typed(status, "text/plain; charset=utf-8", line)
}

fn typed(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    // It is of the moment, and nobody else's.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_answered() {
        let status = |uri: &str, hosts: &[&str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, HeaderValue::from_str(host).unwrap());
            }
            check_host(&uri.parse().unwrap(), &headers).map_err(|(status, _)| status.as_u16())
        };
        for host in [
            "127.0.0.1",
            "127.0.0.1:9100",
            "127.8.9.1",
            "[::1]:9100",
            "[::1]",
            "[::ffff:127.0.0.1]:9100",
            "localhost",
            "LOCALHOST:9100",
            "localhost.:9100",
            "edge.localhost:9100",
        ] {
            assert_eq!(status("/metrics", &[host]), Ok(()), "{host}");
        }
        for host in [
            "attacker.example",
            "attacker.example:9100",
            "localhost.attacker.example",
            "127.0.0.1.attacker.example",
            "notlocalhost",
            "0.0.0.0:9100",
            "[::]:9100",
            "192.0.2.1",
            "2130706433",
            "user@127.0.0.1",
            "127.0.0.1:",
            "127.0.0.1, attacker.example",
            "",
        ] {
            assert_eq!(status("/metrics", &[host]), Err(421), "{host}");
        }
        // HTTP/1.0 has none; an address in the target counts too (RFC 9112 §3.2.2).
        assert_eq!(status("/metrics", &[]), Ok(()));
        assert_eq!(status("http://attacker.example/metrics", &["localhost"]), Err(421));
        assert_eq!(status("http://localhost:1/metrics", &["localhost:1"]), Ok(()));
        assert_eq!(status("/metrics", &["localhost", "localhost"]), Err(400));
    }
}
