//! The service side: carriers of edges come in, requests go to origins that the allow list permits.
//! Clients without an edge may have a listener of their own.

mod coap;
mod door;
mod exchange;
mod wsp;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use proto::kinds::Kind;
use relay::{Allowed, CarrierId, Head};
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::mpsc;

use crate::access::Way;
use crate::actor::{self, Actor, Handle, Inbox, Surroundings};
use crate::admin::{self, Admin};
use crate::carrier::{Carriers, Times, datagram, quic};
use crate::clock::Clocks;
use crate::config::{Fallback, GatewayConfig};
use crate::edge::{Exchanges, Reverse};
use crate::edgeless::Edgeless;
use crate::front::Front;
use crate::live::{Live, Services};
use crate::mailbox::Port;
use crate::metrics::Metrics;
use crate::origin::{Client, Coap, Owner, Reach, Rule};
use crate::parting::{Farewell, Parting};
use crate::pattern::Pattern;
use crate::renewal::{EdgeLists, Renewal};
use crate::run::{self, Running};
use crate::store::Store;
use crate::trust::Keeper;
use crate::upstream::Upstream;
use crate::{Error, Handed, Pulse, descriptors, fault, pseudonym};

use door::Door;
use exchange::Origins;

/// Most connections of clients without an edge at once; more wait to be accepted.
const MAX_EDGELESS_CONNECTIONS: usize = 1024;

/// What carriers come to, by their kinds, at one address.
struct Ports {
    /// There is one in any case: a socket for datagrams alone does not keep others off its port.
    listener: TcpListener,
    takes_streams: bool,
    datagrams: Option<UdpSocket>,
    local: SocketAddr,
}

impl Ports {
    /// The socket for datagrams is never one that was handed over: carriers get sockets of their
    /// own beside it, which only the user may have whose that one is.
    async fn bind(handed: &mut Handed, listen: SocketAddr, kinds: &[Kind]) -> Result<Self, Error> {
        let has = |name| kinds.iter().any(|kind| kind.name == name);
        let listener = run::bind(handed, "listen", listen).await?;
        let local = listener.local_addr().map_err(Error::system("ask for the bound address"))?;
        let mut datagrams = None;
        let sealed = datagram::KINDS.iter().any(|kind| has(kind.name));
        if sealed || has(quic::KIND.name) {
            datagrams = Some(run::bind_datagrams("listen", local).await?);
        }
        let takes_streams = has(Kind::STREAM.name) || has(Kind::COAP_TCP.name);
        Ok(Self { listener, takes_streams, datagrams, local })
    }

    /// Takes carriers for ever.
    fn accept(self, door: Door) -> Result<impl Future<Output = ()> + Send, Error> {
        let Self { listener, takes_streams, datagrams, .. } = self;
        let datagrams = datagrams.map(|socket| door.over_datagrams(socket)).transpose();
        let datagrams = datagrams.map_err(Error::system("set up the socket for datagrams"))?;
        Ok(async move {
            let streams = async move {
                match takes_streams {
                    true => door.accept(listener).await,
                    false => Door::refuse(listener).await,
                }
            };
            let datagrams = async move {
                if let Some(datagrams) = datagrams {
                    datagrams.receive().await;
                }
            };
            tokio::join!(streams, datagrams);
        })
    }
}

/// A gateway that is bound and does not serve yet.
pub struct Gateway {
    config: GatewayConfig,
    ports: Ports,
    admin: Option<TcpListener>,
    local_admin: Option<SocketAddr>,
    http: Option<TcpListener>,
    local_http: Option<SocketAddr>,
    coap: Option<coap::Listener>,
    coaps: Option<coap::Listener>,
    wsp: Option<wsp::Listener>,
    store: Option<Store>,
    renewal: Renewal,
    handle: Handle,
    inbox: Inbox,
}

impl Gateway {
    /// Opens the store and binds the listeners; a port in use is the caller's error.
    pub async fn bind(config: GatewayConfig) -> Result<Self, Error> {
        Self::bind_or_take(config, Handed::default()).await
    }

    /// The same, with sockets that were bound before for some of the addresses, or all.
    pub async fn bind_or_take(config: GatewayConfig, mut handed: Handed) -> Result<Self, Error> {
        let handed = &mut handed;
        let ports = Ports::bind(handed, config.listen, &config.relay.kinds).await?;
        let admin = match config.admin {
            Some(address) => Some(run::bind(handed, "admin", address).await?),
            None => None,
        };
        let clients = config.http.as_ref().map_or(0, |_| MAX_EDGELESS_CONNECTIONS);
        descriptors::prepare("connections of clients without an edge", clients);
        let http = match &config.http {
            Some(http) => Some(run::bind(handed, "http_listen", http.listen).await?),
            None => None,
        };
        let coap = match &config.coap {
            Some(coap) => Some(coap::Listener::bind(handed, coap).await?),
            None => None,
        };
        let coaps = match &config.coaps {
            Some(coaps) => Some(coap::Listener::bind_secure(handed, coaps).await?),
            None => None,
        };
        let wsp = wsp::Listener::bind(handed, config.wsp).await?;
        handed.finish()?;
        let address = |listener: &TcpListener| {
            listener.local_addr().map_err(Error::system("ask for the bound address"))
        };
        let local_admin = admin.as_ref().map(address).transpose()?;
        let policy = config.relay.encoding.name();
        let store = Store::of_side(config.store.as_ref(), policy).await?;
        let local_http = http.as_ref().map(address).transpose()?;
        let (handle, inbox) = actor::channel();
        let renewal = Renewal {
            keeper: Keeper::new(config.security.clone())?,
            handle: Some(handle.clone()),
            services: Services::new(config.services.clone()),
            allow: Some(Live::new(config.allow.clone())),
            edge: EdgeLists::new(Vec::new(), Vec::new()),
            arms: config.relay.encoding.arms().to_vec(),
        };
        Ok(Self {
            config,
            ports,
            admin,
            local_admin,
            http,
            local_http,
            coap,
            coaps,
            wsp,
            store,
            renewal,
            handle,
            inbox,
        })
    }

    /// Where edges may connect.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.ports.local
    }

    /// Where metrics and health are.
    #[must_use]
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.local_admin
    }

    /// Where clients without an edge may connect.
    #[must_use]
    pub fn http_addr(&self) -> Option<SocketAddr> {
        self.local_http
    }

    /// Where clients of CoAP may ask.
    #[must_use]
    pub fn coap_addr(&self) -> Option<SocketAddr> {
        self.coap.as_ref().map(coap::Listener::local_addr)
    }

    /// Where clients of CoAP may ask over DTLS.
    #[must_use]
    pub fn coaps_addr(&self) -> Option<SocketAddr> {
        self.coaps.as_ref().map(coap::Listener::local_addr)
    }

    /// Where WAP clients may send to.
    #[must_use]
    pub fn wsp_addr(&self) -> Option<SocketAddr> {
        self.wsp.as_ref().map(wsp::Listener::local_addr)
    }

    /// Tells whether it still works.
    #[must_use]
    pub fn pulse(&self) -> Pulse {
        Pulse(Some(self.handle.clone()))
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
        let mut config = self.config;
        let metrics = Metrics::new(config.build, self.store.as_ref());
        let Renewal { keeper, services, allow, .. } = self.renewal;
        config.relay.allowed = allowed(&config.allow);
        let allow = allow.unwrap_or_else(|| Live::new(config.allow.clone()));
        let servers = Arc::new(Coap::new(config.coap_cache_bytes));
        let reach = || {
            let reach = Reach::new(Arc::clone(&config.resolver), Rule::Allowed(allow.clone()));
            reach.with_coap(Arc::clone(&servers))
        };
        let (farewell, parting) = Farewell::new();
        let origins = Arc::new(origins(&config, services.clone(), reach(), &parting));
        let (kinds, max_carriers) = (config.relay.kinds.clone(), config.relay.max_carriers);
        let times = Times::new(config.relay.hello_timeout, &config.relay);
        let (handle, inbox, idle_timeout) = (self.handle, self.inbox, config.idle_timeout);
        // Requests of edges are exchanges of the relay: only clients without one are waited for.
        let (alive, connections) = mpsc::channel(1);
        let serve_coap = |listener: coap::Listener| {
            let upstream = listener.upstream.clone();
            let server = for_coap(&config, upstream, (services.clone(), reach()), &metrics);
            listener.serve(server, parting.clone(), alive.clone())
        };
        let listeners = self.coap.into_iter().chain(self.coaps);
        let coap: Vec<_> = listeners.map(serve_coap).collect::<Result<_, _>>()?;
        let (accepts, coap): (Vec<_>, Vec<_>) = coap.into_iter().unzip();
        let coap = (!coap.is_empty()).then(|| both(coap));
        if let Some(listener) = self.wsp {
            let exchanges = wsp::Exchanges::new(&config, services.clone(), reach(), &metrics);
            listener.start(exchanges, parting.clone(), alive.clone());
        }
        let http = self.http.map(|listener| {
            let services = services.clone();
            let exchanges = of_clients(&config, services, reach(), &parting, &metrics);
            let answers = Edgeless::new(exchanges, &config.relay, handle.clone())?;
            let (answers, parting) = (Arc::new(answers), parting.clone());
            let (metrics, way) = (Arc::clone(&metrics), Way::Edgeless);
            let front = Front { answers, parting, alive, metrics, way, idle_timeout };
            Ok::<_, Error>((listener, front))
        });
        let http = http.transpose()?;
        let answers = http.as_ref().map(|(_, front)| Arc::clone(&front.answers));
        let (carriers, ended) = Carriers::new(
            keeper.trusting(),
            (config.congestion, config.relay.own_bytes_per_s),
            times,
            handle.clone(),
            Arc::clone(&metrics),
        );
        let actor = Actor::new(
            config.relay,
            config.codec_threads,
            Arc::clone(&metrics),
            self.store,
            Serving { origins, answers },
            (handle.clone(), inbox),
        );
        let (shown, asked) = (Arc::clone(&metrics), Some(handle.clone()));
        let admin = Admin { metrics: shown, handle: asked, fallback: None, parting };
        let admin = admin::start(self.admin, admin);
        let door = Door::new(carriers, &kinds, max_carriers, Arc::clone(&metrics));
        let edges = self.ports.accept(door)?;
        let accepting = accept(edges, http, accepts);
        let running = Running {
            accepting: fault::spawn_core("listeners", accepting),
            coap: coap.map(|serving| fault::spawn_core("coap", serving)),
            admin,
            watching: fault::spawn_core("keys", keeper.watch()),
            actor: Some((fault::spawn_core("relay", actor.run()), handle)),
            connections,
            carriers: ended,
            metrics,
            drain_timeout: config.drain_timeout,
        };
        running.until(farewell.after(stop), kill).await
    }
}

/// What is announced to edges of the allow list.
pub(crate) fn allowed(allow: &[Pattern]) -> Allowed {
    Allowed::of(allow.iter().map(ToString::to_string).collect())
}

/// What serves the requests of edges.
fn origins(config: &GatewayConfig, services: Services, reach: Reach, parting: &Parting) -> Origins {
    Origins {
        client: Client::new(reach, config.response_timeout),
        services,
        pseudonym: pseudonym(config.relay.instance),
        clocks: Clocks { idle: config.idle_timeout, endless: config.relay.tunnel_timeout },
        parting: parting.clone(),
    }
}

/// Exchanges of clients without an edge.
fn of_clients(
    config: &GatewayConfig,
    services: Services,
    reach: Reach,
    parting: &Parting,
    metrics: &Arc<Metrics>,
) -> Exchanges {
    Exchanges {
        pair: None,
        standard: None,
        direct: Client::new(reach, config.response_timeout),
        upstream: config.http.as_ref().and_then(|http| http.upstream.clone()),
        reverse: Reverse::default(),
        fallback: Fallback::None,
        services,
        pseudonym: pseudonym(config.relay.instance),
        response_timeout: config.response_timeout,
        clocks: Clocks { idle: config.idle_timeout, endless: config.relay.tunnel_timeout },
        parting: parting.clone(),
        deny: Live::new(Vec::new()),
        metrics: Arc::clone(metrics),
    }
}

/// Takes connections for ever.
async fn accept(
    edges: impl Future<Output = ()>,
    http: Option<(TcpListener, Front<Edgeless>)>,
    coap: Vec<impl Future<Output = ()>>,
) {
    let clients = async {
        if let Some((listener, front)) = http {
            front.accept(listener, MAX_EDGELESS_CONNECTIONS).await;
        }
    };
    tokio::join!(edges, clients, both(coap));
}

/// What there is for CoAP, of which there are at most two: in the open, and over DTLS.
async fn both(all: Vec<impl Future<Output = ()>>) {
    let mut all = all.into_iter();
    let (one, other) = (all.next(), all.next());
    let done = async |future: Option<_>| {
        if let Some(future) = future {
            future.await;
        }
    };
    tokio::join!(done(one), done(other));
}

/// What answers clients of CoAP.
fn for_coap(
    config: &GatewayConfig,
    upstream: Option<Upstream>,
    (services, reach): (Services, Reach),
    metrics: &Arc<Metrics>,
) -> coap::Server {
    let client = Client::new(reach, config.response_timeout);
    let clocks = Clocks { idle: config.idle_timeout, endless: config.relay.tunnel_timeout };
    let names = (pseudonym(config.relay.instance), clocks);
    coap::Server::new(client, upstream, services, names, Arc::clone(metrics))
}

/// What the actor of a gateway cannot do itself.
struct Serving {
    origins: Arc<Origins>,
    /// Who answers clients without an edge.
    answers: Option<Arc<Edgeless>>,
}

impl Surroundings for Serving {
    fn dial(&mut self, carrier: CarrierId, _: &str, _: Duration) {
        // A relay in the role of a gateway waits for carriers.
        tracing::error!(carrier = carrier.0, "a gateway was asked to dial");
    }

    fn serve(&mut self, head: Head, end: bool, port: Port) {
        tokio::spawn(Arc::clone(&self.origins).serve(head, end, port));
    }

    fn client_ended(&mut self, edge: u64, connection: u64) {
        self.origins.client.client_ended(Owner { edge, connection });
    }

    fn add_services(&mut self, services: &[coding::Service]) {
        if let Some(answers) = &self.answers {
            answers.add_services(services);
        }
    }
}
