//! Carriers over datagrams of CoAP as they are, between sides without keys: on loopback addresses,
//! or anywhere with `--insecure-plain`.
//!
//! Who sends is known by its address alone, as over TCP without TLS.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use proto::kinds::Kind;
use relay::{CarrierId, DialFailure, Input};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

use super::datagram::{self, MAX_WAITING};
use super::udp::{MAX_BYTES, PeerPlace, Socket};
use super::{Carriers, Ended};
use crate::actor::{Message, Queue};
use crate::metrics::Metrics;
use crate::seats::{Doing, Seat, Seats};

/// The kind of carriers that these are.
pub(crate) const KIND: Kind = Kind::COAP;
/// Times in a row that the gateway's host says that nobody is there, once somebody was.
const MAX_REFUSALS: u32 = 3;

/// The gateway's end of all of them.
pub(crate) struct Door {
    carriers: Carriers,
    socket: Arc<Socket>,
    known: Arc<Seats<String>>,
    next: Arc<AtomicU64>,
    metrics: Arc<Metrics>,
    /// Whose carrier is which: each has a place among those of all carriers.
    open: HashMap<SocketAddr, CarrierId>,
    ended: (mpsc::UnboundedSender<SocketAddr>, mpsc::UnboundedReceiver<SocketAddr>),
}

impl Door {
    /// One with this socket. `known` are the places of carriers, and `next` their next number, of
    /// all kinds.
    pub(crate) fn new(
        socket: Arc<Socket>,
        carriers: Carriers,
        (known, next): (Arc<Seats<String>>, Arc<AtomicU64>),
        metrics: Arc<Metrics>,
    ) -> Self {
        // bound: one for each carrier that there was, which has a place until it is taken.
        let ended = mpsc::unbounded_channel();
        Self { carriers, socket, known, next, metrics, open: HashMap::new(), ended }
    }

    /// A datagram came to the port.
    pub(crate) async fn came(&mut self, place: PeerPlace, datagram: &[u8]) {
        while let Ok(address) = self.ended.1.try_recv() {
            self.open.remove(&address);
        }
        let carrier = match self.open.get(&place.address) {
            Some(carrier) => *carrier,
            None => match self.begin(place, datagram).await {
                Some(carrier) => carrier,
                None => return,
            },
        };
        self.metrics.count_datagram(false, datagram.len(), place.address);
        let bytes = Bytes::copy_from_slice(datagram);
        self.carriers.handle.send(Message::Input(Input::Datagram { carrier, bytes })).await;
    }

    /// Somebody sends who has no carrier. What does not begin as one does gets no answer; what is
    /// of one that is over the machine of a new one refuses, so that the edge begins anew.
    async fn begin(&mut self, place: PeerPlace, datagram: &[u8]) -> Option<CarrierId> {
        datagram::is_coap(datagram).then_some(())?;
        // Its port is another each time that it comes back.
        let peer = place.address.ip().to_canonical().to_string();
        let Some((seat, _)) = self.known.try_take(&peer) else {
            tracing::warn!(peer, "refused a carrier: too many are connected");
            return None;
        };
        let carrier = CarrierId(self.next.fetch_add(1, Ordering::Relaxed));
        self.open.insert(place.address, carrier);
        let (queue, waiting) = mpsc::channel(MAX_WAITING);
        let (kind, address) = (KIND.name, place.address);
        tracing::info!(carrier = carrier.0, peer, %address, kind, "carrier connected");
        let queue = Queue::Datagrams(queue);
        self.carriers.handle.send(Message::CarrierUp { carrier, kind, peer, queue }).await;
        let (socket, metrics) = (Arc::clone(&self.socket), Arc::clone(&self.metrics));
        let serving =
            serve(self.carriers.clone(), (socket, metrics), carrier, (place, waiting, seat));
        let ended = self.ended.0.clone();
        tokio::spawn(async move {
            serving.await;
            // The door may have gone.
            let _ = ended.send(address);
        });
        Some(carrier)
    }
}

/// Sends what the relay has for an edge, until it closes the carrier.
async fn serve(
    carriers: Carriers,
    (socket, metrics): (Arc<Socket>, Arc<Metrics>),
    carrier: CarrierId,
    (place, mut waiting, seat): (PeerPlace, mpsc::Receiver<Bytes>, Seat<String>),
) {
    seat.note(Doing::Busy);
    let sending = async {
        while let Some(datagram) = waiting.recv().await {
            metrics.count_datagram(true, datagram.len(), place.address);
            socket.send(place, &datagram).await;
        }
        "closed by this side".to_owned()
    };
    let reason = tokio::select! {
        reason = sending => reason,
        () = seat.lost() => "closed by this side at once".to_owned(),
    };
    tracing::debug!(carrier = carrier.0, reason, "carrier ended");
    carriers.handle.send(Message::Input(Input::CarrierDown { carrier, reason })).await;
}

impl Carriers {
    /// Edge: a carrier over UDP without keys to the gateway at `address` (`HOST:PORT`), to its end.
    pub(crate) async fn dial_plain(self, carrier: CarrierId, address: String, pace: Duration) {
        let Ended { failure, reason } = match self.open_plain(carrier, &address, pace).await {
            Ok(socket) => self.run_plain(carrier, &address, &socket).await,
            Err(ended) => ended,
        };
        tracing::debug!(carrier = carrier.0, reason, "carrier ended");
        let input = Input::DialFailed { carrier, failure, reason };
        self.handle.send(Message::Input(input)).await;
    }

    /// A socket to the gateway; where there are several addresses, each dial takes the next.
    async fn open_plain(
        &self,
        carrier: CarrierId,
        address: &str,
        pace: Duration,
    ) -> Result<UdpSocket, Ended> {
        let cannot = |why: &str| format!("cannot reach the gateway {address} over UDP: {why}");
        let unreachable = |why: &str| Ended::unreachable(cannot(why));
        let addresses = self.addresses(address, pace).await;
        let addresses = addresses.map_err(|error| unreachable(&error.to_string()))?;
        let at = usize::try_from(carrier.0).unwrap_or(0) % addresses.len().max(1);
        let to = *addresses.get(at).ok_or_else(|| unreachable("the name has no address"))?;
        let security = &self.trust.now().security;
        if !security.permits(to) {
            let reason = cannot(&security.refusal(to));
            return Err(Ended { failure: DialFailure::Refused, reason });
        }
        datagram::connect(to).await.map_err(|error| unreachable(&error.to_string()))
    }

    async fn run_plain(&self, carrier: CarrierId, address: &str, socket: &UdpSocket) -> Ended {
        let (queue, mut waiting) = mpsc::channel(MAX_WAITING);
        let (kind, peer) = (KIND.name, address.to_owned());
        tracing::info!(carrier = carrier.0, peer, kind, "carrier begun");
        let queue = Queue::Datagrams(queue);
        self.handle.send(Message::CarrierUp { carrier, kind, peer, queue }).await;
        let Ok(to) = socket.peer_addr() else {
            return Ended::unreachable("the socket is connected to nobody".to_owned());
        };
        let (mut heard, mut refusals) = (false, 0);
        let mut buffer = [0; MAX_BYTES];
        loop {
            tokio::select! {
                datagram = waiting.recv() => {
                    let Some(datagram) = datagram else { break };
                    self.metrics.count_datagram(true, datagram.len(), to);
                    // What cannot be sent is as good as lost.
                    let _ = socket.send(&datagram).await;
                }
                came = socket.recv(&mut buffer) => match came {
                    Ok(bytes) => {
                        (heard, refusals) = (true, 0);
                        self.metrics.count_datagram(false, bytes, to);
                        let bytes = Bytes::copy_from_slice(&buffer[..bytes]);
                        let input = Input::Datagram { carrier, bytes };
                        self.handle.send(Message::Input(input)).await;
                    }
                    Err(error) => {
                        refusals += 1;
                        // Once somebody was there, who is on the way may say so as well.
                        if !heard || refusals >= MAX_REFUSALS {
                            return Ended::unreachable(format!("UDP: {error}"));
                        }
                    }
                },
            }
        }
        Ended::unreachable("closed by this side".to_owned())
    }
}
