//! How a client of CoAP gets a stream to a server: TCP, TLS over it, and a WebSocket over either
//! (RFC 8323 §8).

use std::io;
use std::net::SocketAddr;

use proto::coap::uri::Scheme;

use crate::dial::{self, Layers, Tls, WebSocket};

pub(crate) use crate::dial::Stream;

/// The protocol's name in TLS (RFC 8323 §11.7).
const ALPN: &[u8] = b"coap";
/// Where a server has its WebSocket, and the subprotocol (RFC 8323 §8.3, §11.10).
const PATH: &str = "/.well-known/coap";
const SUBPROTOCOL: &str = "coap";

/// Opens a stream of this scheme to a server at `address`, which the URI calls `host` and `port`.
pub(crate) async fn open(
    scheme: Scheme,
    address: SocketAddr,
    (host, port): (&str, u16),
) -> io::Result<Stream> {
    let is_secure = matches!(scheme, Scheme::CoapsTcp | Scheme::CoapsWs);
    let websocket = WebSocket { path: PATH.to_owned(), subprotocol: SUBPROTOCOL };
    let layers = Layers {
        tls: is_secure.then(|| Tls { protocol: Some(ALPN), ..Tls::default() }),
        websocket: scheme.is_websocket().then_some(websocket),
        proxy: None,
    };
    let name = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let is_usual = port == scheme.default_port();
    let authority = if is_usual { name } else { format!("{name}:{port}") };
    dial::open(&address.to_string(), host, &authority, &layers).await
}
