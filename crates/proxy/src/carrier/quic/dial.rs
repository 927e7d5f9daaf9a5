//! The edge's end of a carrier over QUIC.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quinn_proto::{ClientConfig, ConnectionError, Endpoint, TransportErrorCode};
use relay::{CarrierId, DialFailure, Input, Role};
use rustls::AlertDescription;
use tokio::sync::mpsc;

use super::congestion::{Control, Seen};
use super::line::Line;
use super::wire::{Over, Wire};
use super::{FIRST_ROUND_TRIP, KIND, endpoint_config, transport};
use crate::actor::{Message, Queue};
use crate::carrier::dial::MAX_ADDRESSES;
use crate::carrier::udp::Socket;
use crate::carrier::{Carriers, Ended, datagram};
use crate::keys::{Identity, PublicKey};
use crate::tls;

/// First code of those that have an alert of TLS in them (RFC 9001 §4.8).
const CRYPTO: u64 = 0x100;

/// The peer at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::carrier) struct Met {
    name: String,
    key: Option<PublicKey>,
}

impl Carriers {
    /// Edge: a carrier over QUIC to the gateway at `address` (`HOST:PORT`), to its end.
    pub(crate) async fn dial_quic(self, carrier: CarrierId, address: String, pace: Duration) {
        let Ended { failure, reason } = match self.connect_quic(carrier, &address, pace).await {
            Ok((wire, met)) => self.quic_dialled(carrier, &address, wire, met).await,
            Err(ended) => ended,
        };
        tracing::debug!(carrier = carrier.0, reason, "carrier ended");
        let input = Input::DialFailed { carrier, failure, reason };
        self.handle.send(Message::Input(input)).await;
    }

    /// A connection that is begun, and whom it will lead to where requests may go ahead of its
    /// handshake. Where there are several addresses, each dial takes the next.
    async fn connect_quic(
        &self,
        carrier: CarrierId,
        address: &str,
        pace: Duration,
    ) -> Result<(Wire, Option<Met>), Ended> {
        let cannot = |why: &str| {
            Ended::unreachable(format!("cannot reach the gateway {address} over QUIC: {why}"))
        };
        let addresses = self.addresses(address, pace).await;
        let addresses = addresses.map_err(|error| cannot(&error.to_string()))?;
        let turn = usize::try_from(carrier.0).unwrap_or(0) % addresses.len().max(1);
        let to = *addresses.get(turn).ok_or_else(|| cannot("the name has no address"))?;
        let trust = self.trust.now();
        let no_keys = || cannot("without keys there are no carriers over QUIC");
        let identity = trust.identity().ok_or_else(no_keys)?;
        let crypto = trust.quic_client.clone().ok_or_else(no_keys)?;
        let config = endpoint_config(identity).ok_or_else(no_keys)?;
        let socket = self.quic_socket(to).await.map_err(|error| cannot(&error.to_string()))?;
        let mut endpoint = Endpoint::new(Arc::new(config), None, !socket.may_fragment(), None);
        let seen = Arc::new(Seen::default());
        let control = self.quic_control(&seen);
        let mut client = ClientConfig::new(crypto);
        let first_round_trip = pace.max(FIRST_ROUND_TRIP);
        let times = (first_round_trip, self.times.keepalive + self.times.peer);
        client.transport_config(Arc::new(transport(Role::Edge, control, times)));
        let now = Instant::now();
        // Not sent, for the name of a peer is its key's: sessions are remembered by it.
        let connected = endpoint.connect(now, client, to, &to.ip().to_canonical().to_string());
        let connected = connected.map_err(|error| cannot(&error.to_string()))?;
        let endpoint = Arc::new(Mutex::new(endpoint));
        let line = Line::new(now, connected, endpoint, Arc::clone(&seen));
        let met = self.met.lock().ok().and_then(|met| met.get(&to).cloned());
        let met = met.filter(|_| line.connection().has_0rtt());
        Ok((Wire::own(line, seen, socket, Arc::clone(&self.metrics)), met))
    }

    async fn quic_socket(&self, to: SocketAddr) -> io::Result<Socket> {
        Socket::new(datagram::connect(to).await?)
    }

    async fn quic_dialled(
        &self,
        carrier: CarrierId,
        address: &str,
        mut wire: Wire,
        met: Option<Met>,
    ) -> Ended {
        // bound: the relay's transmit window of each urgency, and its bound on a carrier's backlog.
        let (queue, mut pieces) = mpsc::unbounded_channel();
        let announce = |met: &Met| {
            let (kind, peer) = (KIND.name, met.name.clone());
            let congestion = Control::named(self.congestion.as_deref()).name();
            tracing::info!(carrier = carrier.0, peer, address, kind, congestion, "carrier begun");
            let queue = Queue::Streams(queue.clone());
            self.handle.send(Message::CarrierUp { carrier, kind, peer, queue })
        };
        // The relay gives what may go ahead of the handshake's end.
        if let Some(met) = &met {
            announce(met).await;
        }
        let met_now =
            match self.quic_meet(carrier, address, &mut wire, met.as_ref(), &mut pieces).await {
                Ok(met_now) => met_now,
                Err(ended) => return ended,
            };
        if met.is_none() {
            announce(&met_now).await;
        }
        drop(queue);
        let _guard = self.metrics.watch_transport(carrier, &met_now.name, Arc::clone(&wire.seen));
        let over = tokio::select! {
            over = self.quic_run(carrier, &mut wire, &mut pieces) => over,
            why = self.trust.lost(met_now.key) => Over::Cut(format!("cut off: {why}")),
        };
        match over {
            Over::Closing => wire.close("closed").await,
            Over::Cut(reason) => {
                wire.end(&reason).await;
                return Ended { failure: DialFailure::Refused, reason };
            }
            Over::Lost(error) => return ended_by(&error, self.trust.now().identity(), ""),
            Over::Unreachable(_) => {}
        }
        Ended::unreachable(over.to_string())
    }

    /// Carries on, also where the edge's own address becomes another.
    async fn quic_run(
        &self,
        carrier: CarrierId,
        wire: &mut Wire,
        pieces: &mut mpsc::UnboundedReceiver<proto::carrier::Piece>,
    ) -> Over {
        loop {
            let Err(over) = wire.run(self, carrier, pieces, false).await else { continue };
            let Over::Unreachable(error) = &over else { return over };
            if error.kind() == io::ErrorKind::ConnectionRefused {
                return over;
            }
            let to = wire.line.connection().remote_address();
            // Where there is no other way now, there may be one again.
            wire.move_to(self.quic_socket(to).await.ok());
        }
    }

    /// Waits for the end of the handshake, in time: who is at the other end. With `expected`, the
    /// relay's first bytes go ahead of it.
    async fn quic_meet(
        &self,
        carrier: CarrierId,
        address: &str,
        wire: &mut Wire,
        expected: Option<&Met>,
        pieces: &mut mpsc::UnboundedReceiver<proto::carrier::Piece>,
    ) -> Result<Met, Ended> {
        let limit = self.times.dial;
        let meeting = wire.run(self, carrier, pieces, true);
        let trust = self.trust.now();
        let whom = format!("no QUIC with the gateway {address}: ");
        match tokio::time::timeout(limit, meeting).await {
            Ok(Ok(())) => {}
            Ok(Err(Over::Lost(error))) => return Err(ended_by(&error, trust.identity(), &whom)),
            Ok(Err(Over::Unreachable(error))) => {
                return Err(Ended::unreachable(format!("{whom}{error}")));
            }
            Ok(Err(over)) => return Err(Ended::unreachable(over.to_string())),
            Err(_) => {
                let waited = limit.as_secs_f64();
                let reason = format!("{whom}no answer within {waited} s (dial_timeout)");
                return Err(Ended { failure: DialFailure::Silent, reason });
            }
        }
        let certificates = wire.line.peer();
        let certificates = certificates.as_deref();
        let name = trust.identity().map(|identity| tls::peer_name(identity, certificates));
        let met = Met { name: name.unwrap_or_default(), key: tls::peer_key(certificates) };
        if expected.is_some_and(|expected| *expected != met) {
            wire.end("another gateway").await;
            let reason = format!("{whom}another gateway answered, '{}'", met.name);
            return Err(Ended::unreachable(reason));
        }
        if let Ok(mut known) = self.met.lock() {
            if known.len() >= MAX_ADDRESSES {
                known.clear();
            }
            known.insert(wire.line.connection().remote_address(), met.clone());
        }
        Ok(met)
    }
}

/// How a carrier ended, where the transport says why; `whom` begins the sentence.
fn ended_by(error: &ConnectionError, identity: Option<&Identity>, whom: &str) -> Ended {
    let refused =
        |why: String| Ended { failure: DialFailure::Refused, reason: format!("{whom}{why}") };
    match error {
        ConnectionError::ConnectionClosed(closed) if alert(closed.error_code).is_some() => {
            let alert = alert(closed.error_code).unwrap_or(AlertDescription::InternalError);
            let error = rustls::Error::AlertReceived(alert);
            let error = io::Error::new(io::ErrorKind::InvalidData, error);
            refused(tls::explain(&error, identity))
        }
        ConnectionError::TransportError(error) if alert(error.code).is_some() => {
            let why = identity.map(|identity| identity.key.fingerprint()).unwrap_or_default();
            refused(format!("{UNTRUSTED}: {}; our own is {why}", error.reason))
        }
        ConnectionError::VersionMismatch => {
            refused("it speaks no version of QUIC of ours".to_owned())
        }
        ConnectionError::ApplicationClosed(_) => {
            Ended::unreachable("closed by the other side".to_owned())
        }
        ConnectionError::Reset => {
            Ended::unreachable("the gateway has started again, or moved".to_owned())
        }
        ConnectionError::TimedOut => {
            let reason = format!("{whom}nothing came for too long");
            Ended { failure: DialFailure::Silent, reason }
        }
        other => Ended::unreachable(format!("{whom}{other}")),
    }
}

/// Said where this side does not take the gateway's key.
const UNTRUSTED: &str = "the gateway's key is not taken";

/// The alert of TLS in a code, if it is one.
fn alert(code: TransportErrorCode) -> Option<AlertDescription> {
    let code = u64::from(code);
    let alert = code.checked_sub(CRYPTO).and_then(|alert| u8::try_from(alert).ok())?;
    Some(AlertDescription::from(alert))
}
