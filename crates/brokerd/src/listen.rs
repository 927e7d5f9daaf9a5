//! Listeners, and who they let in.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use broker::Protocol;
use proxy::Handed;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};

use crate::bound::Bound;
use crate::config::Config;
use crate::connection;
use crate::error::Error;
use crate::owner::{Owner, Seat};
use crate::{http, tls, websocket};

/// How long TLS and the handshake of a WebSocket may take.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);
/// Pause after an accept failed for want of descriptors or memory: at once it would fail again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// A connection over which nothing comes is asked after so long whether it is still there, and then
/// every so often; without answer it is gone after two and a half minutes.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(60);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_RETRIES: u32 = 3;

/// What is around the protocol.
#[derive(Clone)]
struct Wrapping {
    tls: bool,
    websocket: bool,
    http: bool,
}

impl Wrapping {
    fn is_none(&self) -> bool {
        !self.tls && !self.websocket && !self.http
    }
}

/// A bound listener.
pub(crate) struct Listener {
    name: &'static str,
    socket: TcpListener,
    address: SocketAddr,
    protocol: Protocol,
    wrapping: Wrapping,
}

/// A listener that is wanted.
struct Wanted {
    name: &'static str,
    address: SocketAddr,
    protocol: Protocol,
    wrapping: Wrapping,
}

/// Whether the listeners of a configuration could be, with the files that they need.
pub(crate) fn check(config: &Config) -> Result<(), Error> {
    tls::acceptor(config)?;
    wanted(config).map(drop)
}

/// Binds all listeners of a configuration, or takes those that were handed over.
pub(crate) async fn bind(config: &Config, handed: &mut Handed) -> Result<Vec<Listener>, Error> {
    let mut listeners = Vec::new();
    for Wanted { name, address, protocol, wrapping } in wanted(config)? {
        let socket = bind_or_take(handed, name, address).await?;
        let address = socket.local_addr().unwrap_or(address);
        listeners.push(Listener { name, socket, address, protocol, wrapping });
    }
    Ok(listeners)
}

/// Binds one listener, or takes it.
pub(crate) async fn bind_or_take(
    handed: &mut Handed,
    name: &str,
    address: SocketAddr,
) -> Result<TcpListener, Error> {
    let socket = match handed.listener(name, address) {
        Some(socket) => TcpListener::from_std(socket),
        None => TcpListener::bind(address).await,
    };
    let failed = |error| Error::Caller(format!("cannot listen on {address} ({name}): {error}"));
    socket.map_err(failed)
}

/// The listeners of streams that there may be: their keys, addresses and protocols.
fn addresses(config: &Config) -> [(&'static str, Option<&String>, Protocol); 12] {
    let said = &config.broker;
    let [mesh, meshs] = config.mesh_addresses();
    [
        ("mqtt", said.mqtt.as_ref(), Protocol::Mqtt),
        ("mqtts", said.mqtts.as_ref(), Protocol::Mqtt),
        ("ws", said.ws.as_ref(), Protocol::Mqtt),
        ("wss", said.wss.as_ref(), Protocol::Mqtt),
        ("amqp", said.amqp.as_ref(), Protocol::Amqp),
        ("amqps", said.amqps.as_ref(), Protocol::Amqp),
        ("amqp091", said.amqp091.as_ref(), Protocol::Amqp091),
        ("amqps091", said.amqps091.as_ref(), Protocol::Amqp091),
        ("wsn", said.wsn.as_ref(), Protocol::Wsn),
        ("wsns", said.wsns.as_ref(), Protocol::Wsn),
        // Whoever is there shows it by its key.
        ("mesh", mesh, Protocol::Mesh),
        ("meshs", meshs, Protocol::Mesh),
    ]
}

fn wanted(config: &Config) -> Result<Vec<Wanted>, Error> {
    let mut all = Vec::new();
    for (name, address, protocol) in addresses(config) {
        let Some(address) = address else { continue };
        let address: SocketAddr = address
            .parse()
            .map_err(|_| Error::Caller(format!("{name} = \"{address}\" is no address and port")))?;
        check_reach(config, name, address)?;
        let tls = is_secure(name);
        let http = protocol == Protocol::Wsn;
        let wrapping = Wrapping { tls, websocket: name.starts_with("ws") && !http, http };
        all.push(Wanted { name, address, protocol, wrapping });
    }
    if all.is_empty() && config.mqtt_sn.is_empty() && config.mqtt_udp.is_empty() {
        let text = "nothing to listen on: name an address, such as --mqtt 127.0.0.1:1883";
        return Err(Error::Caller(text.to_owned()));
    }
    Ok(all)
}

/// Whether a listener has TLS.
fn is_secure(name: &str) -> bool {
    matches!(name, "mqtts" | "wss" | "amqps" | "amqps091" | "wsns" | "meshs")
}

/// Whoever is not known reaches a broker from its own machine only, unless the operator says more.
fn check_reach(config: &Config, name: &str, address: SocketAddr) -> Result<(), Error> {
    let said = &config.broker;
    let is_member = matches!(name, "mesh" | "meshs");
    let is_known =
        is_member || said.users.is_some() || (is_secure(name) && said.client_ca.is_some());
    if address.ip().is_loopback() || is_known || said.anonymous {
        return Ok(());
    }
    Err(Error::Caller(format!(
        "{name} = \"{address}\" lets in whoever reaches it: name users (--users FILE), or allow \
         that (--anonymous)"
    )))
}

impl Listener {
    /// Where it is.
    pub(crate) fn bound(&self) -> Bound {
        Bound { name: self.name, address: self.address }
    }

    /// Serves a connection that was accepted, in a task of its own.
    fn start(&self, mut stream: TcpStream, seat: Seat, owner: &Rc<Owner>, peer: SocketAddr) {
        if let Err(error) = prepare(&stream) {
            tracing::debug!(%peer, %error, "a connection was gone at once");
            return;
        }
        let (owner, protocol) = (owner.clone(), self.protocol);
        if self.wrapping.is_none() {
            // Most are these; their tasks have no room for what the others need.
            tokio::task::spawn_local(async move {
                let (reader, writer) = stream.split();
                connection::run(&owner, reader, writer, protocol, None, peer).await;
                drop(seat);
            });
            return;
        }
        let wrapping = self.wrapping.clone();
        tokio::task::spawn_local(async move {
            serve(&owner, stream, protocol, wrapping, peer).await;
            drop(seat);
        });
    }

    /// Accepts for ever.
    pub(crate) async fn run(self, owner: Rc<Owner>) {
        loop {
            match self.socket.accept().await {
                Ok((stream, peer)) => {
                    let Some(seat) = owner.seat(peer) else { continue };
                    self.start(stream, seat, &owner, peer);
                }
                Err(error) => {
                    tracing::warn!(listener = self.name, %error, "a connection was not accepted");
                    // sleep: nobody is told when there are descriptors again.
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Serves a connection with something around its protocol.
async fn serve(
    owner: &Rc<Owner>,
    stream: TcpStream,
    protocol: Protocol,
    wrapping: Wrapping,
    peer: SocketAddr,
) {
    if !wrapping.tls {
        if wrapping.http {
            return http::run(owner, stream, false, peer).await;
        }
        return websocket::run(owner, stream, protocol, None, peer).await;
    }
    let Some(tls) = owner.acceptor() else { return };
    let accepted = tokio::time::timeout(HANDSHAKE_PATIENCE, tls.accept(stream)).await;
    let stream = match accepted {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::info!(%peer, %error, "TLS failed");
            return;
        }
        Err(_) => {
            tracing::info!(%peer, "TLS took over {} s", HANDSHAKE_PATIENCE.as_secs());
            return;
        }
    };
    if wrapping.http {
        return http::run(owner, stream, true, peer).await;
    }
    let certified = tls::common_name(stream.get_ref().1.peer_certificates());
    if wrapping.websocket {
        return websocket::run(owner, stream, protocol, certified, peer).await;
    }
    let (reader, writer) = tokio::io::split(stream);
    connection::run(owner, reader, writer, protocol, certified, peer).await;
}

fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    // A publication and its acknowledgement are small: each is worth a packet of its own.
    stream.set_nodelay(true)?;
    let keep_alive = TcpKeepalive::new()
        .with_time(KEEP_ALIVE_AFTER)
        .with_interval(KEEP_ALIVE_INTERVAL)
        .with_retries(KEEP_ALIVE_RETRIES);
    SockRef::from(stream).set_tcp_keepalive(&keep_alive)
}
