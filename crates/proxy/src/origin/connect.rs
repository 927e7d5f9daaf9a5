//! From a target to a connection: allow list, name resolution, allow list again, connect.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use relay::{Cause, CauseKind};
use rustls_pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::address::is_public;
use super::failures::Failures;
use crate::http1::Shared;
use crate::live::Live;
use crate::pattern::{Pattern, Target};

/// Bound on resolving a name, on connecting, and on the TLS handshake, each.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an address is tried alone before the next one is tried beside it (RFC 8305 §5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
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
    allow: Option<Live<Vec<Pattern>>>,
    /// Made with the first request for https: the system's roots take a while to read.
    tls: OnceCell<TlsConnector>,
    failures: Failures,
}

impl Reach {
    pub(crate) fn new(resolver: Arc<dyn Resolve>, allow: Option<Live<Vec<Pattern>>>) -> Self {
        Self { resolver, allow, tls: OnceCell::new(), failures: Failures::default() }
    }

    /// Whether a target may be asked for at all, before its name is resolved. `Ok(true)`: at any
    /// address, for its host is named exactly.
    pub(crate) fn check(&self, target: &Target<'_>) -> Result<bool, Cause> {
        let Some(allow) = &self.allow else { return Ok(true) };
        let allow = allow.get();
        let mut matching = allow.iter().filter(|pattern| pattern.matches(target)).peekable();
        if matching.peek().is_none() {
            let (host, port) = (target.host, target.port);
            let reason = format!("'{host}' port {port} is outside the gateway's allow list");
            return Err(Cause { kind: CauseKind::Forbidden, reason });
        }
        Ok(matching.any(Pattern::names_host))
    }

    /// A TCP connection to an address of the target that is allowed.
    pub(crate) async fn connect(&self, target: &Target<'_>) -> Result<Shared, Cause> {
        let anywhere = self.check(target)?;
        let addresses = self.addresses(target, anywhere).await?;
        match self.race(addresses).await {
            Ok(stream) => {
                // Without these options the connection still works.
                let socket = SockRef::from(&stream);
                let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_IDLE);
                let _ = socket.set_tcp_nodelay(true);
                let _ = socket.set_tcp_keepalive(&keepalive);
                Ok(Shared::new(stream))
            }
            Err(Some(error)) if error.kind() == io::ErrorKind::TimedOut => {
                let waited = CONNECT_TIMEOUT.as_secs();
                Err(unreachable(target, &format!("no connection within {waited} s")))
            }
            Err(Some(error)) => Err(unreachable(target, &error.to_string())),
            Err(None) => Err(unreachable(target, "its name has no address")),
        }
    }

    /// The first connection that is made to any of some addresses: each is tried a little after the
    /// one before, or at once when that has failed (RFC 8305 §5).
    async fn race(&self, addresses: Vec<SocketAddr>) -> Result<TcpStream, Option<io::Error>> {
        let mut waiting = self.failures.order(addresses).into_iter().take(MAX_ADDRESSES);
        let mut attempts = JoinSet::new();
        let mut last = None;
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let mut tried = Vec::new();
        loop {
            let next = waiting.next();
            if let Some(address) = next {
                tried.push(address);
                attempts.spawn(async move { (address, TcpStream::connect(address).await) });
            }
            let patience = if next.is_some() { Instant::now() + ATTEMPT_DELAY } else { deadline };
            let attempt =
                tokio::time::timeout_at(patience.min(deadline).into(), attempts.join_next());
            match attempt.await {
                Ok(Some(Ok((address, Ok(stream))))) => {
                    // Those that had more time and made nothing of it come last from now on.
                    self.failures.note(tried.into_iter().take_while(|other| *other != address));
                    self.failures.forget(address);
                    return Ok(stream);
                }
                Ok(Some(Ok((address, Err(error))))) => {
                    self.failures.note([address]);
                    last = Some(error);
                }
                Ok(Some(Err(_))) => {}
                Ok(None) if next.is_none() => return Err(last),
                Err(_) if Instant::now() >= deadline => {
                    self.failures.note(tried);
                    return Err(Some(io::ErrorKind::TimedOut.into()));
                }
                Ok(None) | Err(_) => {}
            }
        }
    }

    /// As [`Reach::connect`], under TLS for https.
    pub(crate) async fn open(
        &self,
        target: &Target<'_>,
    ) -> Result<(Box<dyn Stream>, Shared), Cause> {
        let socket = self.connect(target).await?;
        let stream = socket.clone();
        if target.scheme != Some("https") {
            return Ok((Box::new(stream), socket));
        }
        let connector = self.tls.get_or_try_init(native_tls).await?;
        let name = ServerName::try_from(target.host.to_owned())
            .map_err(|_| unreachable(target, "its name is none that TLS knows"))?;
        match tokio::time::timeout(CONNECT_TIMEOUT, connector.connect(name, stream)).await {
            Ok(Ok(stream)) => Ok((Box::new(stream), socket)),
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
