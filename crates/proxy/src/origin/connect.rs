//! From a target to a connection: allow list, name resolution, allow list again, connect.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use relay::{Cause, CauseKind};
use rustls_pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;

use super::address::is_public;
use crate::pattern::{Pattern, Target};

/// Bound on resolving a name, on connecting, and on the TLS handshake, each.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;
/// Idle time before the kernel asks whether the other end is still there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);

/// From a name to addresses.
pub trait Resolve: fmt::Debug + Send + Sync {
    /// Addresses of `host` (a name, or an address as text) with `port`.
    fn resolve<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;
}

/// As the system does it.
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

/// A byte stream to an origin.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// What may be reached, and how.
pub(crate) struct Reach {
    resolver: Arc<dyn Resolve>,
    /// None: everything, for an edge that goes directly as its clients would.
    allow: Option<Vec<Pattern>>,
    /// Made with the first request for https: the system's roots take a while to read.
    tls: OnceCell<TlsConnector>,
}

impl Reach {
    pub(crate) fn new(resolver: Arc<dyn Resolve>, allow: Option<Vec<Pattern>>) -> Self {
        Self { resolver, allow, tls: OnceCell::new() }
    }

    /// Whether a target may be asked for at all, before its name is resolved. `Ok(true)`: at any
    /// address, for its host is named exactly.
    pub(crate) fn check(&self, target: &Target<'_>) -> Result<bool, Cause> {
        let Some(allow) = &self.allow else { return Ok(true) };
        let mut matching = allow.iter().filter(|pattern| pattern.matches(target)).peekable();
        if matching.peek().is_none() {
            let (host, port) = (target.host, target.port);
            let reason = format!("'{host}' port {port} is outside the gateway's allow list");
            return Err(Cause { kind: CauseKind::Forbidden, reason });
        }
        Ok(matching.any(Pattern::names_host))
    }

    /// A TCP connection to an address of the target that is allowed.
    pub(crate) async fn connect(&self, target: &Target<'_>) -> Result<TcpStream, Cause> {
        let anywhere = self.check(target)?;
        let addresses = self.addresses(target, anywhere).await?;
        let mut last = None;
        for address in addresses.into_iter().take(MAX_ADDRESSES) {
            let attempt = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await;
            match attempt.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(stream) => {
                    // Without these options the connection still works.
                    let socket = SockRef::from(&stream);
                    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_IDLE);
                    let _ = socket.set_tcp_nodelay(true);
                    let _ = socket.set_tcp_keepalive(&keepalive);
                    return Ok(stream);
                }
                Err(error) => last = Some(error),
            }
        }
        Err(match last {
            Some(error) if error.kind() == io::ErrorKind::TimedOut => {
                let waited = CONNECT_TIMEOUT.as_secs();
                unreachable(target, &format!("no connection within {waited} s"))
            }
            Some(error) => unreachable(target, &error.to_string()),
            None => unreachable(target, "its name has no address"),
        })
    }

    /// As [`Reach::connect`], under TLS for https.
    pub(crate) async fn open(&self, target: &Target<'_>) -> Result<Box<dyn Stream>, Cause> {
        let stream = self.connect(target).await?;
        if target.scheme != Some("https") {
            return Ok(Box::new(stream));
        }
        let connector = self.tls.get_or_try_init(native_tls).await?;
        let name = ServerName::try_from(target.host.to_owned())
            .map_err(|_| unreachable(target, "its name is none that TLS knows"))?;
        match tokio::time::timeout(CONNECT_TIMEOUT, connector.connect(name, stream)).await {
            Ok(Ok(stream)) => Ok(Box::new(stream)),
            Ok(Err(error)) => Err(unreachable(target, &format!("TLS: {error}"))),
            Err(_) => Err(unreachable(target, "TLS: no answer")),
        }
    }

    async fn addresses(
        &self,
        target: &Target<'_>,
        anywhere: bool,
    ) -> Result<Vec<SocketAddr>, Cause> {
        let resolve = self.resolver.resolve(target.host, target.port);
        let addresses = tokio::time::timeout(CONNECT_TIMEOUT, resolve)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(|error| unreachable(target, &format!("resolving its name: {error}")))?;
        let (permitted, others): (Vec<_>, Vec<_>) =
            addresses.into_iter().partition(|address| anywhere || is_public(address.ip()));
        if let (true, Some(address)) = (permitted.is_empty(), others.first()) {
            let (host, ip) = (target.host, address.ip());
            let reason = format!(
                "'{host}' is at {ip}, which is not public: such hosts must be named exactly in the \
                 gateway's allow list"
            );
            return Err(Cause { kind: CauseKind::Forbidden, reason });
        }
        Ok(permitted)
    }
}

fn unreachable(target: &Target<'_>, why: &str) -> Cause {
    let (host, port) = (target.host, target.port);
    let reason = format!("cannot reach '{host}' port {port}: {why}");
    Cause { kind: CauseKind::OriginUnreachable, reason }
}

/// A client of the system's certificate authorities.
async fn native_tls() -> Result<TlsConnector, Cause> {
    let broken = |reason: String| Cause { kind: CauseKind::OriginUnreachable, reason };
    let loaded = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs)
        .await
        .map_err(|error| broken(format!("cannot read the system's certificates: {error}")))?;
    let mut roots = rustls::RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(loaded.certs);
    if added == 0 {
        return Err(broken("the system has no certificates: install ca-certificates".to_owned()));
    }
    let mut config = rustls::ClientConfig::builder_with_provider(crate::tls::provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| broken(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
