//! The client side: an HTTP proxy whose requests cross the link in one carrier, go to a gateway by
//! a standard's protocol, or go directly.

mod answer;
mod exchange;
mod hosted;
mod reverse;
mod standard;
mod target;
mod who;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use relay::{CarrierId, Head};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::actor::{self, Actor, Inbox, Surroundings};
use crate::admin::{self, Admin};
use crate::carrier::{Carriers, Times, datagram, plain, quic};
use crate::clock::Clocks;
use crate::config::{EdgeConfig, EdgeGateway, StandardGateway};
use crate::front::{Answer, Connection, Front};
use crate::live::{Live, Services};
use crate::mailbox::Port;
use crate::metrics::Metrics;
use crate::origin::{Client, Reach, Rule, SystemResolver};
use crate::parting::Farewell;
use crate::pattern::Pattern;
use crate::renewal::{EdgeLists, Renewal};
use crate::run::{self, Running};
use crate::store::Store;
use crate::trust::Keeper;
use crate::upstream::Upstream;
use crate::{Error, Handed, Pulse, descriptors, fault, pseudonym};

pub(crate) use answer::{ClientBody, Refusal};
pub(crate) use exchange::Exchanges;
pub use reverse::{Forwarded, Reverse};
use standard::Standard;

/// An edge that is bound and does not serve yet.
pub struct Edge {
    config: EdgeConfig,
    listener: TcpListener,
    admin: Option<TcpListener>,
    local: SocketAddr,
    local_admin: Option<SocketAddr>,
    store: Option<Store>,
    renewal: Renewal,
    inbox: Option<Inbox>,
}

impl Edge {
    /// Opens the store and binds the listeners; a port in use is the caller's error.
    pub async fn bind(config: EdgeConfig) -> Result<Self, Error> {
        Self::bind_or_take(config, Handed::default()).await
    }

    /// The same, with sockets that were bound before for some of the addresses, or all.
    pub async fn bind_or_take(mut config: EdgeConfig, mut handed: Handed) -> Result<Self, Error> {
        let listener = run::bind(&mut handed, "listen", config.listen).await?;
        descriptors::prepare("max_connections", config.max_connections);
        let admin = match config.admin {
            Some(address) => Some(run::bind(&mut handed, "admin", address).await?),
            None => None,
        };
        handed.finish()?;
        let address = |listener: &TcpListener| {
            listener.local_addr().map_err(Error::system("ask for the bound address"))
        };
        let (local, local_admin) = (address(&listener)?, admin.as_ref().map(address).transpose()?);
        let policy = config.relay.encoding.name();
        let store = Store::of_side(config.store.as_ref(), policy).await?;
        config.relay.secret = store.as_ref().map(Store::secret).transpose()?;
        let (handle, inbox) = is_pair(&config).then(actor::channel).unzip();
        let renewal = Renewal {
            keeper: Keeper::new(config.security.clone())?,
            handle,
            services: Services::new(config.services.clone()),
            allow: None,
            edge: EdgeLists::new(config.deny.clone(), config.direct_allow.clone()),
            arms: config.relay.encoding.arms().to_vec(),
        };
        Ok(Self { config, listener, admin, local, local_admin, store, renewal, inbox })
    }

    /// Where clients may connect.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Where metrics and health are.
    #[must_use]
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.local_admin
    }

    /// Tells whether it still works.
    #[must_use]
    pub fn pulse(&self) -> Pulse {
        Pulse(self.renewal.handle.clone())
    }

    /// Who takes new settings while it serves.
    #[must_use]
    pub fn renewal(&self) -> Renewal {
        self.renewal.clone()
    }

    /// Serves until `stop`, then finishes what is open; `kill` ends at once.
    pub async fn run(
        self,
        stop: impl Future<Output = ()>,
        kill: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let config = self.config;
        let metrics = Metrics::new(config.build, self.store.as_ref());
        let name = pseudonym(config.relay.instance);
        let idle_timeout = config.idle_timeout;
        let clocks = Clocks { idle: idle_timeout, endless: config.relay.tunnel_timeout };
        let (farewell, parting) = Farewell::new();
        let (mut actor, mut pair) = (None, None);
        let (_, mut carriers) = mpsc::channel(1);
        let Renewal { keeper, handle, services, edge: lists, .. } = self.renewal;
        let (gateway, standard) = either(config.gateway);
        if let (Some(gateway), Some(handle), Some(inbox)) = (gateway, handle, self.inbox) {
            let times = Times::new(config.dial_timeout, &config.relay);
            let (dialler, ended) = Carriers::new(
                keeper.trusting(),
                (config.congestion, config.relay.own_bytes_per_s),
                times,
                handle.clone(),
                Arc::clone(&metrics),
            );
            let new = Actor::new(
                config.relay,
                config.codec_threads,
                Arc::clone(&metrics),
                self.store,
                Dialling { carriers: dialler, gateway },
                (handle.clone(), inbox),
            );
            carriers = ended;
            actor = Some((fault::spawn_core("relay", new.run()), handle.clone()));
            pair = Some(handle);
        } else {
            // Nothing is learned where nothing goes over the pair.
            drop(self.store);
        }
        let fallback = Some(config.fallback).filter(|_| pair.is_some());
        let (shown, handle) = (Arc::clone(&metrics), pair.clone());
        let admin = Admin { metrics: shown, handle, fallback, parting: parting.clone() };
        let admin = admin::start(self.admin, admin);
        let standard =
            standard.map(|gateway| Standard::new(gateway, config.response_timeout, &metrics));
        let exchanges = Arc::new(Exchanges {
            pair,
            standard,
            direct: direct(lists.direct_allow, config.upstream.as_ref(), config.response_timeout),
            upstream: config.upstream,
            reverse: config.reverse,
            fallback: config.fallback,
            services,
            pseudonym: name,
            response_timeout: config.response_timeout,
            clocks,
            parting: parting.clone(),
            deny: lists.deny,
            metrics: Arc::clone(&metrics),
        });
        let (alive, connections) = mpsc::channel(1);
        let (way, answers, counted) = (exchanges.way(), exchanges, Arc::clone(&metrics));
        let front = Front { answers, parting, alive, metrics: counted, way, idle_timeout };
        let clients = front.accept(self.listener, config.max_connections);
        let running = Running {
            accepting: fault::spawn_core("clients", clients),
            coap: None,
            admin,
            watching: fault::spawn_core("keys", keeper.watch()),
            actor,
            connections,
            carriers,
            metrics,
            drain_timeout: config.drain_timeout,
        };
        running.until(farewell.after(stop), kill).await
    }
}

impl Answer for Exchanges {
    fn styles(&self) -> bool {
        self.services.are_some_exact()
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        connection: Arc<Connection>,
    ) -> Response<ClientBody> {
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        self.serve(request, &connection).await
    }

    async fn ended(&self, connection: &Connection) {
        self.ended(connection).await;
    }
}

/// Whether the other side is longwire's.
fn is_pair(config: &EdgeConfig) -> bool {
    matches!(config.gateway, Some(EdgeGateway::Pair(_)))
}

/// The gateway as one of longwire's own, or as one that is asked by a standard's protocol.
fn either(gateway: Option<EdgeGateway>) -> (Option<String>, Option<StandardGateway>) {
    match gateway {
        Some(EdgeGateway::Pair(gateway)) => (Some(gateway), None),
        Some(EdgeGateway::Standard(gateway)) => (None, Some(gateway)),
        None => (None, None),
    }
}

/// Who asks origins without a gateway.
fn direct(
    allow: Live<Vec<Pattern>>,
    upstream: Option<&Upstream>,
    response_timeout: Duration,
) -> Client {
    let rule = upstream.map_or(Rule::Direct(allow), |_| Rule::Upstream);
    Client::new(Reach::new(Arc::new(SystemResolver), rule), response_timeout)
}

/// What the actor of an edge cannot do itself.
struct Dialling {
    carriers: Carriers,
    gateway: String,
}

impl Surroundings for Dialling {
    fn dial(&mut self, carrier: CarrierId, kind: &'static str, pace: Duration) {
        let (carriers, gateway) = (self.carriers.clone(), self.gateway.clone());
        if kind == plain::KIND.name && !carriers.has_keys() {
            tokio::spawn(carriers.dial_plain(carrier, gateway, pace));
        } else if datagram::KINDS.iter().any(|one| one.name == kind) {
            tokio::spawn(carriers.dial_datagrams((carrier, kind), gateway, pace));
        } else if kind == quic::KIND.name {
            tokio::spawn(carriers.dial_quic(carrier, gateway, pace));
        } else {
            tokio::spawn(carriers.dial((carrier, kind), gateway, pace));
        }
    }

    fn serve(&mut self, _: Head, _: bool, port: Port) {
        // A relay in the role of an edge opens no exchanges; dropping the port ends this one.
        tracing::error!("an edge was asked to serve");
        drop(port);
    }
}
