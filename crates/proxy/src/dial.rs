//! How a client gets a stream to a server: TCP, perhaps through a proxy of HTTP, TLS over it, and a
//! WebSocket over either.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use proto::websocket::{GUID, text};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::tls;

/// How long a connection, its handshakes included, may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Name of what carries a WebSocket, in TLS (RFC 7301 §6).
const HTTP_ALPN: &[u8] = b"http/1.1";
/// Longest head of the answer to a handshake, in bytes.
const MAX_HEAD_BYTES: usize = 16 << 10;

/// What a connection lies on.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A stream to a server.
pub type Stream = Box<dyn Duplex>;

/// What is between TCP and a server's protocol.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// TLS.
    pub tls: Option<Tls>,
    /// A WebSocket over that.
    pub websocket: Option<WebSocket>,
    /// A proxy of HTTP that is asked for the connection.
    pub proxy: Option<Proxy>,
}

/// TLS with a server that an authority vouches for.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// The protocol's name in TLS (RFC 7301), where it has one.
    pub protocol: Option<&'static [u8]>,
    /// A file of authorities in PEM; without it those of this system.
    pub authorities: Option<PathBuf>,
    /// A certificate of this side and its private key, in PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Where a server has its WebSocket, and what is spoken over it (RFC 6455 §1.9).
#[derive(Clone, Debug)]
pub struct WebSocket {
    /// The path.
    pub path: String,
    /// The subprotocol.
    pub subprotocol: &'static str,
}

/// A proxy that is asked by CONNECT (RFC 9110 §9.3.6).
#[derive(Clone, Debug)]
pub struct Proxy {
    /// Where it is: host and port.
    pub authority: String,
    /// Fields of the request besides Host.
    pub fields: Vec<(&'static str, String)>,
}

/// Opens a stream to a server. `address` is what it is reached by, a host or an address with its
/// port; `name` is what it calls itself in TLS, and `authority` in HTTP.
///
/// # Errors
/// What cannot be reached, or does not agree, in words for whoever runs this side.
pub async fn open(
    address: &str,
    name: &str,
    authority: &str,
    layers: &Layers,
) -> io::Result<Stream> {
    let opening = async {
        let stream = match &layers.proxy {
            None => Box::new(connect(address).await?) as Stream,
            Some(proxy) => tunnel(proxy, address).await?,
        };
        let stream = match &layers.tls {
            None => stream,
            Some(tls) => secure(stream, name, tls, layers.websocket.is_some()).await?,
        };
        match &layers.websocket {
            None => Ok(stream),
            Some(websocket) => upgrade(stream, authority, websocket).await,
        }
    };
    let late = || {
        let seconds = CONNECT_TIMEOUT.as_secs();
        io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {seconds} s"))
    };
    tokio::time::timeout(CONNECT_TIMEOUT, opening).await.unwrap_or_else(|_| Err(late()))
}

async fn connect(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // Without it the connection still works.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// A connection that a proxy makes.
async fn tunnel(proxy: &Proxy, address: &str) -> io::Result<Stream> {
    let to = &proxy.authority;
    let unreached = |error: io::Error| {
        io::Error::new(error.kind(), format!("the proxy {to} is not reached: {error}"))
    };
    let stream = connect(to).await.map_err(unreached)?;
    let mut request = Request::connect(address).header(header::HOST, address);
    for (name, value) in &proxy.fields {
        request = request.header(*name, value);
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(io::Error::other)?;
    let response = ask(Box::new(stream), request, "the proxy").await?;
    let status = response.status();
    if !status.is_success() {
        let text = format!("the proxy {to} makes no connection to {address}: it answered {status}");
        return Err(io::Error::new(io::ErrorKind::ConnectionRefused, text));
    }
    take_over(response, "the proxy").await
}

/// Sends a request after which the connection is no longer HTTP's.
async fn ask(
    stream: Stream,
    request: Request<Empty<Bytes>>,
    whom: &str,
) -> io::Result<Response<Incoming>> {
    let mut builder = hyper::client::conn::http1::Builder::new();
    builder.max_buf_size(MAX_HEAD_BYTES);
    let broken = |error: hyper::Error| io::Error::other(format!("{whom}: {error}"));
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // It ends when the stream is handed over, or with it.
    tokio::spawn(connection.with_upgrades());
    sender.send_request(request).await.map_err(broken)
}

async fn take_over(response: Response<Incoming>, whom: &str) -> io::Result<Stream> {
    let upgraded = hyper::upgrade::on(response).await;
    let upgraded = upgraded.map_err(|error| io::Error::other(format!("{whom}: {error}")))?;
    Ok(Box::new(TokioIo::new(upgraded)))
}

async fn secure(stream: Stream, name: &str, layer: &Tls, carries_http: bool) -> io::Result<Stream> {
    let mut config = client_config(layer.clone()).await?;
    let protocol = if carries_http { Some(HTTP_ALPN) } else { layer.protocol };
    config.alpn_protocols = protocol.into_iter().map(<[u8]>::to_vec).collect();
    let name = ServerName::try_from(name.to_owned())
        .map_err(|_| io::Error::other("its name is none that TLS knows"))?;
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let stream = connecting.map_err(|error| {
        io::Error::new(error.kind(), format!("TLS: {}", tls::explain_origin(&error)))
    })?;
    Ok(Box::new(stream))
}

/// Reading the authorities takes a while.
async fn client_config(layer: Tls) -> io::Result<rustls::ClientConfig> {
    let reading = move || {
        let builder = rustls::ClientConfig::builder_with_provider(tls::provider())
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(authorities(&layer)?);
        let Some((chain, key)) = &layer.identity else { return Ok(builder.with_no_client_auth()) };
        let key = PrivateKeyDer::from_pem_file(key)
            .map_err(|error| io::Error::other(format!("{}: {error}", key.display())))?;
        builder.with_client_auth_cert(certificates(chain)?, key).map_err(io::Error::other)
    };
    tokio::task::spawn_blocking(reading).await?
}

fn authorities(layer: &Tls) -> io::Result<rustls::RootCertStore> {
    let mut roots = rustls::RootCertStore::empty();
    if let Some(file) = &layer.authorities {
        for authority in certificates(file)? {
            roots.add(authority).map_err(io::Error::other)?;
        }
        return Ok(roots);
    }
    let loaded = rustls_native_certs::load_native_certs();
    let (added, _) = roots.add_parsable_certificates(loaded.certs);
    if added == 0 {
        let what = "the system has no certificates: install ca-certificates, or name a file of \
                    authorities in SSL_CERT_FILE";
        return Err(io::Error::other(what));
    }
    Ok(roots)
}

fn certificates(file: &std::path::Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let wrong = |what: &str| io::Error::other(format!("{}: {what}", file.display()));
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    let found = found.map_err(|error| wrong(&error.to_string()))?;
    if found.is_empty() { Err(wrong("no certificate in PEM")) } else { Ok(found) }
}

/// The handshake of a WebSocket (RFC 6455 §4.1).
async fn upgrade(stream: Stream, authority: &str, layer: &WebSocket) -> io::Result<Stream> {
    let mut key = Vec::new();
    for _ in 0..2 {
        let random =
            crate::random_instance().map_err(|error| io::Error::other(error.to_string()))?;
        key.extend_from_slice(&random.to_be_bytes());
    }
    let key = text(&key);
    let request = Request::get(&layer.path)
        .header(header::HOST, authority)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, &key)
        .header(header::SEC_WEBSOCKET_PROTOCOL, layer.subprotocol)
        .body(Empty::<Bytes>::new())
        .map_err(io::Error::other)?;
    let response = ask(stream, request, "WebSocket").await?;
    check(&response, &key, layer).map_err(|why| io::Error::other(format!("WebSocket: {why}")))?;
    take_over(response, "WebSocket").await
}

/// Whether a server agrees to what was asked (RFC 6455 §4.1); the error says where not.
fn check(response: &Response<Incoming>, key: &str, layer: &WebSocket) -> Result<(), String> {
    let field = |name: header::HeaderName| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().trim()
    };
    let status = response.status();
    if status != StatusCode::SWITCHING_PROTOCOLS {
        return Err(format!("the server has none at {}: it answered {status}", layer.path));
    }
    let upgrade = field(header::UPGRADE);
    let hash = ring::digest::digest(
        &ring::digest::SHA1_FOR_LEGACY_USE_ONLY,
        [key, GUID].concat().as_bytes(),
    );
    let is_answer = field(header::SEC_WEBSOCKET_ACCEPT) == text(hash.as_ref());
    if !upgrade.eq_ignore_ascii_case("websocket") || !is_answer {
        return Err("what answers is no WebSocket".to_owned());
    }
    let subprotocol = layer.subprotocol;
    if field(header::SEC_WEBSOCKET_PROTOCOL) != subprotocol {
        return Err(format!("the server does not speak the subprotocol {subprotocol} over it"));
    }
    Ok(())
}
