//! The gateway's port. Who connects is a stranger until its key is known and its HELLO is here:
//! strangers have a few places of their own, for seconds, and the newest always finds one
//! ([`crate::seats`]). Only then is it a carrier, for which there are other places.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use proto::kinds::Kind;
use relay::CarrierId;
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use crate::carrier::udp::Port;
use crate::carrier::{Carriers, datagram, plain, quic};
use crate::metrics::Metrics;
use crate::rarely::Rarely;
use crate::refusals::Refusals;
use crate::run;
use crate::seats::{Seat, Seats, Source};

/// Most connections of strangers at once: as many as there are carriers by default, since after an
/// outage all edges come back together. Each has two descriptors.
const MAX_STRANGERS: usize = 64;
/// Carriers that close have places beside those that are open.
const MAX_CLOSING: usize = 16;
/// How metrics call the bound on strangers.
const STRANGERS: &str = "strangers at the gateway's port";

/// See the module.
#[derive(Clone)]
pub(crate) struct Door {
    carriers: Carriers,
    /// The kinds of carriers that are taken.
    kinds: Arc<[Kind]>,
    strangers: Arc<Seats<Source>>,
    known: Arc<Seats<String>>,
    next: Arc<AtomicU64>,
    refusals: Arc<Refusals>,
    drops: Arc<Rarely>,
    metrics: Arc<Metrics>,
}

impl Door {
    pub(crate) fn new(
        carriers: Carriers,
        kinds: &[Kind],
        max_carriers: usize,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            carriers,
            kinds: kinds.into(),
            strangers: Seats::new(MAX_STRANGERS),
            known: Seats::new(max_carriers + MAX_CLOSING),
            next: Arc::default(),
            refusals: Arc::default(),
            drops: Arc::default(),
            metrics,
        }
    }

    /// The same port for carriers over datagrams: their places are those of all.
    pub(crate) fn over_datagrams(&self, socket: UdpSocket) -> io::Result<Port> {
        let has = |kind: Kind| self.kinds.iter().any(|one| one.name == kind.name);
        let shared = || {
            let places = (Arc::clone(&self.known), Arc::clone(&self.next));
            let (refusals, metrics) = (Arc::clone(&self.refusals), Arc::clone(&self.metrics));
            (self.carriers.clone(), places, refusals, metrics)
        };
        let burst = |socket| {
            let (carriers, places, refusals, metrics) = shared();
            let kinds: Vec<_> = self.kinds.iter().map(|kind| kind.name).collect();
            let takes = (carriers, kinds);
            let door = datagram::KINDS
                .into_iter()
                .any(has)
                .then(|| datagram::Door::new(socket, takes, places, refusals, metrics));
            door.transpose()
        };
        let quic = |socket| {
            let (carriers, places, refusals, metrics) = shared();
            let door = has(quic::KIND)
                .then(|| quic::Door::new(socket, carriers, places, refusals, metrics));
            door.transpose()
        };
        let plain = |socket| {
            let (carriers, places, _, metrics) = shared();
            let is_plain = has(plain::KIND) && !carriers.has_keys();
            is_plain.then(|| plain::Door::new(socket, carriers, places, metrics))
        };
        Port::new(socket, burst, quic, plain)
    }

    /// Closes what comes, for ever: carriers of this kind are not taken.
    pub(crate) async fn refuse(listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((_, address)) => tracing::debug!(%address, "refused a carrier over TCP"),
                // sleep: nobody is told when there are descriptors again.
                Err(_) => tokio::time::sleep(run::ACCEPT_PAUSE).await,
            }
        }
    }

    /// Accepts for ever.
    pub(crate) async fn accept(self, listener: TcpListener) {
        loop {
            let (stream, address) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a carrier");
                    self.strangers.drop_one();
                    tokio::time::sleep(run::ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let (seat, dropped) = self.strangers.take(&Source::of(address.ip())).await;
            if dropped {
                self.metrics.count_limit(STRANGERS);
                if let Some(times) = self.drops.note(Instant::now()) {
                    let most = MAX_STRANGERS;
                    let what = "dropped connections that had not said who they are";
                    tracing::warn!(times, most, newest = %address.ip(), "{what}");
                }
            }
            tokio::spawn(self.clone().meet(stream, address, seat));
        }
    }

    async fn meet(self, stream: TcpStream, address: SocketAddr, seat: Seat<Source>) {
        let greeted = tokio::select! {
            greeted = self.carriers.greet(&seat, address, stream) => greeted,
            // It is counted where its place went to another.
            () = seat.lost() => return,
        };
        drop(seat);
        match greeted {
            Ok(greeted) if !self.kinds.iter().any(|kind| kind.name == greeted.kind()) => {
                tracing::warn!(%address, kind = greeted.kind(), "refused a carrier of this kind");
            }
            Ok(greeted) => {
                let carrier = CarrierId(self.next.fetch_add(1, Ordering::Relaxed));
                self.carriers.serve(carrier, greeted, &self.known).await;
            }
            Err(why) => {
                if let Some(suppressed) = self.refusals.tell(address.ip(), Instant::now()) {
                    tracing::warn!(%address, why, suppressed, "refused a carrier");
                }
            }
        }
    }
}
