//! From a target to a connection: who may reach it, name resolution, which of its addresses.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
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

use super::Coap;
use super::address::{is_near, is_public};
use super::failures::Failures;
use crate::http1::Shared;
use crate::live::Live;
use crate::pattern::{Pattern, Target};
use crate::socket;
use crate::tls;

/// Bound on resolving a name, on connecting, and on the TLS handshake, each.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an address is tried alone before the next one is tried beside it (RFC 8305 §5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// Most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;
/// Idle time before the kernel asks whether the other end is still there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);

/// What a target may be outside of.
pub(crate) const ALLOW_LIST: &str = "the gateway's allow list";
const DIRECT_LIST: &str = "direct_allow, what this edge may ask itself";

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

/// Whose requests may go where.
pub(crate) enum Rule {
    /// What a list names, whoever asks: at public addresses, and at any where the host is named.
    Allowed(Live<Vec<Pattern>>),
    /// What clients could reach themselves, and of that what a list names unless it is empty. Where
    /// the list names the host, it may be at an address that they could not reach.
    Direct(Live<Vec<Pattern>>),
    /// Everything: requests go where the operator has said.
    Upstream,
}

/// Where a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientAt {
    /// On this machine: it reaches what this process does.
    Here,
    Elsewhere,
}

impl ClientAt {
    /// By the address that its connection comes from.
    pub(crate) fn of(address: &str) -> Self {
        let address = address.parse::<IpAddr>().map(|address| address.to_canonical());
        if address.is_ok_and(|address| address.is_loopback()) {
            Self::Here
        } else {
            Self::Elsewhere
        }
    }
}

/// At which addresses a host may be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    Any,
    /// Not at those of this machine, nor at those that mean another machine to each that uses them.
    NotHere,
    Public,
}

impl Scope {
    fn permits(self, address: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::NotHere => !is_near(address) && !socket::is_own(address.to_canonical()),
            Self::Public => is_public(address),
        }
    }

    /// Why an address is refused, and the remedy.
    fn refusal(self, host: &str, address: IpAddr) -> String {
        match self {
            Self::Any | Self::Public => format!(
                "'{host}' is at {address}, which is not public: such hosts must be named exactly \
                 in the gateway's allow list"
            ),
            Self::NotHere => format!(
                "'{host}' is at {address}, which this edge asks directly for clients of its own \
                 machine only: name the host in direct_allow to permit it"
            ),
        }
    }
}

/// What may be reached, and how.
pub(crate) struct Reach {
    resolver: Arc<dyn Resolve>,
    rule: Rule,
    /// Made with the first request for https: the system's roots take a while to read.
    tls: OnceCell<TlsConnector>,
    failures: Failures,
    coap: Arc<Coap>,
}

impl Reach {
    pub(crate) fn new(resolver: Arc<dyn Resolve>, rule: Rule) -> Self {
        let coap = Arc::new(Coap::new(0));
        Self { resolver, rule, tls: OnceCell::new(), failures: Failures::default(), coap }
    }

    /// The same, with what asks servers of CoAP for others too.
    pub(crate) fn with_coap(self, coap: Arc<Coap>) -> Self {
        Self { coap, ..self }
    }

    /// What asks servers of CoAP.
    pub(crate) fn coap(&self) -> &Coap {
        &self.coap
    }

    /// Whether a client may ask for a target at all, before its name is resolved, and at which
    /// addresses.
    pub(crate) fn check(&self, target: &Target<'_>, client: ClientAt) -> Result<Scope, Cause> {
        let own = if client == ClientAt::Here { Scope::Any } else { Scope::NotHere };
        let (named, else_within, list) = match &self.rule {
            Rule::Allowed(allow) => (is_named(&allow.get(), target), Scope::Public, ALLOW_LIST),
            Rule::Direct(allow) => match &allow.get()[..] {
                [] => return Ok(own),
                allow => (is_named(allow, target), own, DIRECT_LIST),
            },
            Rule::Upstream => return Ok(Scope::Any),
        };
        let named = named.ok_or_else(|| outside(target, list))?;
        Ok(if named { Scope::Any } else { else_within })
    }

    /// A TCP connection to an address of the target that is allowed.
    pub(crate) async fn connect(
        &self,
        target: &Target<'_>,
        client: ClientAt,
    ) -> Result<Shared, Cause> {
        let scope = self.check(target, client)?;
        let addresses = self.addresses(target, scope).await?;
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

    /// Addresses of the target that are allowed, each of one host, for datagrams.
    pub(crate) async fn datagrams(
        &self,
        target: &Target<'_>,
        client: ClientAt,
    ) -> Result<Vec<SocketAddr>, Cause> {
        let scope = self.check(target, client)?;
        let mut addresses = self.addresses(target, scope).await?;
        let is_group = |ip: IpAddr| match ip.to_canonical() {
            IpAddr::V4(ip) => ip.is_multicast() || ip.is_broadcast(),
            IpAddr::V6(ip) => ip.is_multicast(),
        };
        addresses.retain(|address| !is_group(address.ip()));
        match addresses.is_empty() {
            true => Err(unreachable(target, "its name has no address of one host")),
            false => Ok(addresses),
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
        client: ClientAt,
    ) -> Result<(Box<dyn Stream>, Shared), Cause> {
        let socket = self.connect(target, client).await?;
        let stream = socket.clone();
        if target.scheme != Some("https") {
            return Ok((Box::new(stream), socket));
        }
        let connector = self.tls.get_or_try_init(native_tls).await?;
        let name = ServerName::try_from(target.host.to_owned())
            .map_err(|_| unreachable(target, "its name is none that TLS knows"))?;
        match tokio::time::timeout(CONNECT_TIMEOUT, connector.connect(name, stream)).await {
            Ok(Ok(stream)) => Ok((Box::new(stream), socket)),
            Ok(Err(error)) => {
                Err(unreachable(target, &format!("TLS: {}", tls::explain_origin(&error))))
            }
            Err(_) => Err(unreachable(target, "TLS: no answer")),
        }
    }

    async fn addresses(&self, target: &Target<'_>, scope: Scope) -> Result<Vec<SocketAddr>, Cause> {
        let resolve = self.resolver.resolve(target.host, target.port);
        let addresses = tokio::time::timeout(CONNECT_TIMEOUT, resolve)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(|error| unreachable(target, &format!("resolving its name: {error}")))?;
        let (permitted, others): (Vec<_>, Vec<_>) =
            addresses.into_iter().partition(|address| scope.permits(address.ip()));
        if let (true, Some(address)) = (permitted.is_empty(), others.first()) {
            let reason = scope.refusal(target.host, address.ip());
            return Err(Cause { kind: CauseKind::Forbidden, reason });
        }
        Ok(permitted)
    }
}

/// The refusal of what a list does not name.
pub(crate) fn outside(target: &Target<'_>, list: &str) -> Cause {
    let (host, port) = (target.host, target.port);
    let reason = format!("'{host}' port {port} is outside {list}");
    Cause { kind: CauseKind::Forbidden, reason }
}

/// Whether a list names a target at all, and its host exactly.
fn is_named(allow: &[Pattern], target: &Target<'_>) -> Option<bool> {
    let mut matching = allow.iter().filter(|pattern| pattern.matches(target)).peekable();
    matching.peek()?;
    Some(matching.any(Pattern::names_host))
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
    let mut config = rustls::ClientConfig::builder_with_provider(tls::provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| broken(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests;
