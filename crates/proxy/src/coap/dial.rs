//! How a client of CoAP gets a stream to a server: TCP, TLS over it, and a WebSocket over either
//! (RFC 8323 §8).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use proto::coap::uri::Scheme;
use proto::websocket::{GUID, text};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::tls;

/// How long a connection, its handshakes included, may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The protocol's name in TLS (RFC 8323 §11.7).
const ALPN: &[u8] = b"coap";
/// And of what carries a WebSocket (RFC 7301 §6).
const HTTP_ALPN: &[u8] = b"http/1.1";
/// Where a server has its WebSocket, and the subprotocol (RFC 8323 §8.3, §11.10).
const PATH: &str = "/.well-known/coap";
const SUBPROTOCOL: &str = "coap";
/// Longest head of the answer to the handshake, in bytes.
const MAX_HEAD_BYTES: usize = 16 << 10;

/// What a connection lies on.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A stream to a server.
pub(crate) type Stream = Box<dyn Duplex>;

/// Opens a stream of this scheme to a server at `address`, which the URI calls `host` and `port`.
pub(crate) async fn open(
    scheme: Scheme,
    address: SocketAddr,
    (host, port): (&str, u16),
) -> io::Result<Stream> {
    let opening = async {
        let stream = TcpStream::connect(address).await?;
        // Without it the connection still works.
        let _ = stream.set_nodelay(true);
        let stream = match scheme {
            Scheme::CoapsTcp => secure(stream, host, ALPN).await?,
            Scheme::CoapsWs => secure(stream, host, HTTP_ALPN).await?,
            _ => Box::new(stream) as Stream,
        };
        if !scheme.is_websocket() {
            return Ok(stream);
        }
        let name = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let is_usual = port == scheme.default_port();
        let authority = if is_usual { name } else { format!("{name}:{port}") };
        upgrade(stream, &authority).await
    };
    let late = || {
        let seconds = CONNECT_TIMEOUT.as_secs();
        io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {seconds} s"))
    };
    tokio::time::timeout(CONNECT_TIMEOUT, opening).await.unwrap_or_else(|_| Err(late()))
}

/// TLS with a server whom the authorities of this system vouch for.
async fn secure(stream: TcpStream, host: &str, protocol: &[u8]) -> io::Result<Stream> {
    let loaded = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await?;
    let mut roots = rustls::RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(loaded.certs);
    if added == 0 {
        let what = "the system has no certificates: install ca-certificates, or name a file of \
                    authorities in SSL_CERT_FILE";
        return Err(io::Error::other(what));
    }
    let mut config = rustls::ClientConfig::builder_with_provider(tls::provider())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| io::Error::other("its name is none that TLS knows"))?;
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let stream = connecting.map_err(|error| {
        io::Error::new(error.kind(), format!("TLS: {}", tls::explain_origin(&error)))
    })?;
    Ok(Box::new(stream))
}

/// The handshake of a WebSocket (RFC 6455 §4.1).
async fn upgrade(stream: Stream, authority: &str) -> io::Result<Stream> {
    let mut key = Vec::new();
    for _ in 0..2 {
        let random =
            crate::random_instance().map_err(|error| io::Error::other(error.to_string()))?;
        key.extend_from_slice(&random.to_be_bytes());
    }
    let key = text(&key);
    let request = Request::get(PATH)
        .header(header::HOST, authority)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, &key)
        .header(header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL)
        .body(Empty::<Bytes>::new())
        .map_err(io::Error::other)?;
    let mut builder = hyper::client::conn::http1::Builder::new();
    builder.max_buf_size(MAX_HEAD_BYTES);
    let broken = |error: hyper::Error| io::Error::other(format!("WebSocket: {error}"));
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // It ends when the stream is handed over, or with it.
    tokio::spawn(connection.with_upgrades());
    let response = sender.send_request(request).await.map_err(broken)?;
    check(&response, &key).map_err(|why| io::Error::other(format!("WebSocket: {why}")))?;
    let upgraded = hyper::upgrade::on(response).await.map_err(broken)?;
    Ok(Box::new(TokioIo::new(upgraded)))
}

/// Whether a server agrees to what was asked (RFC 6455 §4.1, RFC 8323 §8.3); the error says where
/// not.
fn check(response: &Response<Incoming>, key: &str) -> Result<(), String> {
    let field = |name: header::HeaderName| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().trim()
    };
    let status = response.status();
    if status != StatusCode::SWITCHING_PROTOCOLS {
        return Err(format!("the server has none at {PATH}: it answered {status}"));
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
    if field(header::SEC_WEBSOCKET_PROTOCOL) != SUBPROTOCOL {
        return Err("the server does not speak CoAP over it (subprotocol coap)".to_owned());
    }
    Ok(())
}
