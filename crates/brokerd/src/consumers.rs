//! Requests of WS-Notification to consumers.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use broker::{Post, Posted};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use proxy::dial::{Layers, Stream, Tls};

use crate::config::Config;
use crate::moving::{Moving, on_the_way};

/// Longest body of an answer that is read, in bytes.
const MAX_BODY_BYTES: usize = 4 << 20;
/// How long a consumer may take while nothing moves, besides the time that the request may be on
/// the way.
const POST_PATIENCE: Duration = Duration::from_secs(30);

/// Makes a request to a consumer, and tells what came of it.
pub(crate) async fn post(post: Post, consumers: Rc<Consumers>) -> Posted {
    let (id, url) = (post.id, post.url.clone());
    match make(post, &consumers).await {
        Ok((status, body)) => Posted { id, status: Some(status), body },
        Err(error) => {
            tracing::info!(url, %error, "a consumer was not reached");
            Posted { id, status: None, body: Bytes::new() }
        }
    }
}

async fn make(post: Post, consumers: &Consumers) -> io::Result<(u16, Bytes)> {
    let broken = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
    let uri: hyper::Uri = post.url.parse().map_err(|error| broken(&error))?;
    let is_secure = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(io::Error::other("its address is neither of http nor of https")),
    };
    let host = uri.host().ok_or_else(|| io::Error::other("no host in its address"))?;
    let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
    let late = || {
        let what = format!("nothing moves for {} s", POST_PATIENCE.as_secs());
        io::Error::new(io::ErrorKind::TimedOut, what)
    };
    let stream = consumers.dial(host, port, is_secure);
    let stream = tokio::time::timeout(POST_PATIENCE, stream).await.map_err(|_| late())??;
    let stream = Moving::new(stream);
    let clock = stream.clock();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| broken(&error))?;
    let driving = tokio::task::spawn_local(connection);
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let mut request = Request::post(target)
        .header(header::HOST, uri.authority().map_or(host, |authority| authority.as_str()))
        .header(header::CONTENT_TYPE, &post.content_type)
        .header(header::CONNECTION, "close");
    if let Some(action) = &post.soap_action {
        request = request.header("SOAPAction", action);
    }
    let patience = POST_PATIENCE + on_the_way(post.body.len());
    let request = request.body(Full::<Bytes>::from(post.body)).map_err(|error| broken(&error))?;
    let answered = async {
        let answer = sender.send_request(request).await.map_err(|error| broken(&error))?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), MAX_BODY_BYTES).collect().await;
        Ok((status, body.map(|body| body.to_bytes()).unwrap_or_default()))
    };
    let answered = clock.watch(patience, answered).await;
    driving.abort();
    answered.unwrap_or_else(|| Err(late()))
}

/// Whom the broker makes requests to: whoever subscribes names an address that he may not be able
/// to reach himself.
#[derive(Debug, Default)]
pub(crate) struct Consumers {
    /// Hosts: a name or an address, `*.domain`, or `*`. None: loopback addresses alone.
    hosts: Vec<String>,
    /// Authorities that vouch for those of https, in PEM; none: the system's.
    authorities: Option<PathBuf>,
}

impl Consumers {
    /// Those that a configuration allows.
    pub(crate) fn of(config: &Config) -> Self {
        let broker = &config.broker;
        let authorities = broker.wsn_authorities.clone();
        Self { hosts: broker.wsn_consumers.clone(), authorities }
    }

    /// A connection to a host that is allowed: by name, or as each of its addresses is loopback.
    async fn dial(&self, host: &str, port: u16, is_secure: bool) -> io::Result<Stream> {
        let bare = host.trim_matches(['[', ']']);
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host((bare, port)).await?.collect();
        let is_named = self.hosts.iter().any(|allowed| fits(allowed, bare));
        let is_own = |ip: IpAddr| ip.to_canonical().is_loopback();
        if !is_named && !addresses.iter().all(|address| is_own(address.ip())) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("{host} is no consumer that may be reached: add it to wsn_consumers"),
            ));
        }
        let authorities = self.authorities.clone();
        let tls = Tls { protocol: Some(b"http/1.1"), authorities, identity: None };
        let layers = Layers { tls: is_secure.then_some(tls), ..Layers::default() };
        let mut last = io::Error::other(format!("{host} has no address"));
        // It was these that were looked at: the name may have others next time.
        for address in addresses {
            match proxy::dial::open(&address.to_string(), bare, host, &layers).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

fn fits(allowed: &str, host: &str) -> bool {
    match allowed.strip_prefix("*.") {
        _ if allowed == "*" => true,
        Some(domain) => {
            host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.') && rest.len() > 1)
        }
        None => allowed.eq_ignore_ascii_case(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumers_are_named_by_host_domain_or_all() {
        for (allowed, host, is_fine) in [
            ("*", "a.example", true),
            ("a.example", "A.example", true),
            ("*.example", "a.example", true),
            ("*.example", "example", false),
            ("*.example", ".example", false),
            ("*.example", "badexample", false),
            ("10.0.0.1", "10.0.0.2", false),
        ] {
            assert_eq!(fits(allowed, host), is_fine, "{allowed} {host}");
        }
    }
}
