//! Who owns the broker: every input goes through it, and it does what the broker says.

use std::cell::{Cell, Ref, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use broker::{Answer, Broker, ConnectionId, Input, MqttSettings, Output, Protocol};
use bytes::{Bytes, BytesMut};
use tokio::sync::{Notify, oneshot};
use tokio_rustls::TlsAcceptor;

use crate::bound::Bound;
use crate::config::{Config, succeed};
use crate::consumers::{self, Consumers};
use crate::dials::Dials;
use crate::error::Error;
use crate::link::Link;
use crate::senders::{self, Senders};
use crate::store::{self, Store};
use crate::users::Users;
use crate::{log, tls};

/// How long clients may take to be told that the broker ends.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// A place among the connections, given back when it is dropped.
pub(crate) struct Seat {
    owner: Rc<Owner>,
    address: IpAddr,
}

/// See the module.
pub(crate) struct Owner {
    broker: RefCell<Broker>,
    /// Where connections are read to, one at a time.
    pub(crate) room: RefCell<BytesMut>,
    /// Inputs that came of outputs.
    inputs: RefCell<VecDeque<Input>>,
    is_busy: Cell<bool>,
    links: RefCell<BTreeMap<ConnectionId, Rc<Link>>>,
    seats: RefCell<BTreeMap<IpAddr, usize>>,
    seated: Cell<usize>,
    max_connections: usize,
    last_id: Cell<u64>,
    started: Instant,
    started_at: Duration,
    wake_at: Cell<Option<Duration>>,
    wake: Notify,
    /// A connection has gone.
    left: Notify,
    /// Bridges that are to be connected.
    pub(crate) dials: Dials,
    store: Option<Store>,
    senders: RefCell<Senders>,
    /// Requests of HTTP that wait for their answer.
    asked: RefCell<BTreeMap<u64, oneshot::Sender<Answer>>>,
    current: RefCell<Current>,
}

/// What the configuration says that may change while the broker runs.
struct Current {
    users: Users,
    /// What TLS is accepted by, where a listener has it.
    tls: Option<TlsAcceptor>,
    consumers: Rc<Consumers>,
}

impl Current {
    fn new(config: &Config) -> Result<Self, Error> {
        Ok(Self {
            users: Users::load(config)?,
            tls: tls::acceptor(config)?,
            consumers: Rc::new(Consumers::of(config)),
        })
    }
}

impl Owner {
    /// A broker as it is configured, with what its store has.
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let started_at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let started_at = started_at.unwrap_or_default();
        let (bridges, _) = config.bridges()?;
        let mut mqtt = MqttSettings { bridges, birth: store::random()?, ..config.mqtt() };
        if config.broker.node.is_none() {
            // Two of one name would take each other's publications for their own.
            mqtt.node = format!("{:x}", store::random()?).into();
        }
        let settings = config.settings()?;
        config.keep_profile()?;
        let mut broker = Broker::new(settings, mqtt)
            .with_amqp(config.amqp())
            .with_amqp091(config.amqp091())
            .with_mqtt_sn(config.mqtt_sn()?)
            .with_mqtt_udp(config.mqtt_udp(store::random()?)?);
        if let Some((settings, _)) = config.mesh()? {
            broker = broker.with_mesh(settings);
        }
        let store = match &config.broker.store {
            None => None,
            Some(directory) => {
                let (store, changes) = Store::open(directory)?;
                let unknown = broker.restore(started_at, changes);
                let sizes = broker.core().sizes();
                tracing::info!(
                    sessions = sizes.sessions,
                    retained = sizes.retained,
                    unknown,
                    "the store was read"
                );
                Some(store)
            }
        };
        Ok(Self {
            broker: RefCell::new(broker),
            room: RefCell::default(),
            inputs: RefCell::default(),
            is_busy: Cell::new(false),
            links: RefCell::default(),
            seats: RefCell::default(),
            seated: Cell::new(0),
            max_connections: config.max_connections(),
            last_id: Cell::new(0),
            started: Instant::now(),
            started_at,
            wake_at: Cell::new(None),
            wake: Notify::new(),
            left: Notify::new(),
            dials: Dials::default(),
            store,
            senders: RefCell::default(),
            asked: RefCell::default(),
            current: RefCell::new(Current::new(config)?),
        })
    }

    /// Takes what can be taken of a configuration that has changed and is good; the rest is said.
    /// A profile that is not signed, or older, keeps nothing else from being taken: users that are
    /// let in no more, certificates, rules. The one that runs stays then.
    ///
    /// # Errors
    /// What cannot be read; all stays as it was.
    pub(crate) fn reload(&self, config: &Config, needs_restart: &[&str]) -> Result<(), Error> {
        let mut settings = config.without_profile().settings()?;
        let mut current = Current::new(config)?;
        let running = self.broker.borrow().core().settings().federation.clone();
        let profile = config.profile().and_then(|it| succeed(running.as_deref(), it));
        let profile = profile.and_then(|it| config.keep_profile().map(|()| it));
        settings.federation = match profile {
            Ok(profile) => profile,
            Err(error) if running.as_deref().is_some_and(|it| config.has_no_partner_but(it)) => {
                tracing::error!(%error, "the profile was not read again: the one before holds on");
                running
            }
            Err(error) => return Err(error),
        };
        current.tls = current.tls.or_else(|| self.acceptor());
        self.current.replace(current);
        self.broker.borrow_mut().set_settings(settings);
        tracing::info!(
            needs_restart = needs_restart.join(", "),
            "read again: rules, forms, access, profile, limits, users, certificates, consumers"
        );
        Ok(())
    }

    /// The broker itself, to look at.
    pub(crate) fn broker(&self) -> Ref<'_, Broker> {
        self.broker.borrow()
    }

    /// Connections of streams.
    pub(crate) fn connections(&self) -> usize {
        self.seated.get()
    }

    /// What TLS is accepted by now.
    pub(crate) fn acceptor(&self) -> Option<TlsAcceptor> {
        self.current.borrow().tls.clone()
    }

    /// The sockets that datagrams are sent by.
    pub(crate) fn send_by(&self, senders: Senders) {
        *self.senders.borrow_mut() = senders;
    }

    /// Speaks WS-Notification, if there is a listener for it.
    pub(crate) fn serve_wsn(&self, config: &Config, bound: &[Bound]) -> Result<(), Error> {
        let at = |name| bound.iter().find(|bound| bound.name == name).map(|bound| bound.address);
        let (plain, secure) = (at("wsn"), at("wsns"));
        if plain.is_none() && secure.is_none() {
            return Ok(());
        }
        let addresses = config.wsn_addresses(plain, secure);
        let seed = match &config.broker.store {
            Some(directory) => store::seed(directory)?,
            None => store::random()?,
        };
        let settings = config.wsn(addresses, seed);
        self.broker.borrow_mut().serve_wsn(self.now(), settings);
        Ok(())
    }

    /// Whom the credentials of a request show (RFC 7617).
    pub(crate) async fn user(&self, field: Option<&str>) -> Result<Option<Arc<str>>, ()> {
        let basic = field.and_then(|field| field.strip_prefix("Basic "));
        let decoded = basic.and_then(|basic| STANDARD.decode(basic.trim()).ok());
        let text = decoded.and_then(|decoded| String::from_utf8(decoded).ok());
        let (user, password) = match text.as_deref().and_then(|text| text.split_once(':')) {
            Some((user, password)) => {
                (Some(user.to_owned()), Some(Bytes::from(password.as_bytes().to_vec())))
            }
            None => (None, None),
        };
        let check = self.current.borrow().users.check(user, password);
        match check.at_once() {
            Ok(user) => user,
            Err(check) => check.run().await,
        }
    }

    /// The number of a request, and where its answer comes.
    pub(crate) fn expect_answer(&self) -> (u64, oneshot::Receiver<Answer>) {
        let id = self.last_id.get() + 1;
        self.last_id.set(id);
        let (sender, receiver) = oneshot::channel();
        self.asked.borrow_mut().insert(id, sender);
        (id, receiver)
    }

    /// Nobody waits for an answer any more.
    pub(crate) fn forget_answer(&self, id: u64) {
        self.asked.borrow_mut().remove(&id);
    }

    /// The time, which never goes back and goes on over a restart.
    fn now(&self) -> Duration {
        self.started_at + self.started.elapsed()
    }

    /// The first thing that is due.
    pub(crate) fn start(self: &Rc<Self>) {
        if let Some(store) = &self.store {
            let owner = Rc::downgrade(self);
            let done = store.done();
            tokio::task::spawn_local(async move {
                while let Some(ticket) = done.next().await {
                    let Some(owner) = owner.upgrade() else { return };
                    owner.input(Input::Persisted { ticket });
                }
            });
        }
        self.input(Input::Wake);
    }

    /// Hands an input in, and does what comes of it.
    pub(crate) fn input(self: &Rc<Self>, input: Input) {
        self.inputs.borrow_mut().push_back(input);
        if self.is_busy.replace(true) {
            return;
        }
        loop {
            let next = self.inputs.borrow_mut().pop_front();
            let Some(next) = next else { break };
            self.broker.borrow_mut().handle_input(self.now(), next);
            loop {
                let output = self.broker.borrow_mut().poll_output();
                let Some(output) = output else { break };
                self.act(output);
            }
        }
        self.is_busy.set(false);
    }

    fn act(self: &Rc<Self>, output: Output) {
        match output {
            Output::Transmit { connection, bytes } => {
                if let Some(link) = self.links.borrow().get(&connection) {
                    link.push(bytes);
                }
            }
            Output::Close { connection } => {
                if let Some(link) = self.links.borrow().get(&connection) {
                    link.close();
                }
            }
            Output::Login(login) => {
                let owner = self.clone();
                let check = self.current.borrow().users.check(login.user, login.password);
                let connection = login.connection;
                match check.at_once() {
                    Ok(user) => {
                        self.inputs.borrow_mut().push_back(Input::Known { connection, user });
                    }
                    Err(check) => {
                        tokio::task::spawn_local(async move {
                            let user = check.run().await;
                            owner.input(Input::Known { connection, user });
                        });
                    }
                }
            }
            Output::Persist { ticket, changes } => match &self.store {
                Some(store) if !changes.is_empty() => store.write(ticket, changes),
                _ => self.inputs.borrow_mut().push_back(Input::Persisted { ticket }),
            },
            Output::Dial { bridge } => {
                self.dials.add(bridge);
            }
            Output::WakeAt(at) => {
                self.wake_at.set(at);
                self.wake.notify_one();
            }
            Output::Event(event) => log::event(&event),
            Output::Datagram { listener, to, bytes } => {
                senders::send(&self.senders.borrow(), listener, to, &bytes);
            }
            Output::Answer(answer) => {
                if let Some(asked) = self.asked.borrow_mut().remove(&answer.id) {
                    // Whoever asked may have gone.
                    let _ = asked.send(answer);
                }
            }
            Output::Post(post) => {
                let (owner, consumers) = (self.clone(), self.current.borrow().consumers.clone());
                tokio::task::spawn_local(async move {
                    let posted = consumers::post(post, consumers).await;
                    owner.input(Input::Posted(posted));
                });
            }
        }
    }

    /// Wakes the broker when it is due, for ever.
    pub(crate) async fn keep_time(self: Rc<Self>) {
        loop {
            let changed = self.wake.notified();
            let Some(at) = self.wake_at.get() else {
                changed.await;
                continue;
            };
            // sleep: until the time that the broker has named.
            let due = tokio::time::sleep(at.saturating_sub(self.now()));
            tokio::select! {
                () = due => self.input(Input::Wake),
                () = changed => {}
            }
        }
    }

    /// A place for a connection from an address; `None` where there is none: they are all taken, or
    /// the address has more than its share of what is left.
    pub(crate) fn seat(self: &Rc<Self>, peer: SocketAddr) -> Option<Seat> {
        let address = peer.ip();
        let mut seats = self.seats.borrow_mut();
        let own = seats.get(&address).copied().unwrap_or(0);
        let free = self.max_connections.saturating_sub(self.seated.get());
        // Alone, an address may have nearly all; among others it leaves some free.
        if free == 0 || own > free.saturating_mul(7) {
            tracing::warn!(%peer, own, free, "a connection was refused: max_connections");
            return None;
        }
        seats.insert(address, own + 1);
        self.seated.set(self.seated.get() + 1);
        Some(Seat { owner: self.clone(), address })
    }

    /// There is a connection.
    pub(crate) fn connect(
        self: &Rc<Self>,
        protocol: Protocol,
        certified: Option<Arc<str>>,
        peer: SocketAddr,
    ) -> Rc<Link> {
        let link = self.link();
        let id = link.id;
        tracing::debug!(%peer, connection = id.0, %protocol, "a connection");
        self.input(Input::Connected { connection: id, protocol, certified });
        link
    }

    /// A connection that the broker does not know yet.
    pub(crate) fn link(&self) -> Rc<Link> {
        let id = ConnectionId(self.last_id.get() + 1);
        self.last_id.set(id.0);
        let link = Rc::new(Link::new(id));
        self.links.borrow_mut().insert(id, link.clone());
        link
    }

    /// It is gone, or nothing more comes over it.
    pub(crate) fn lose(self: &Rc<Self>, link: &Link) {
        self.links.borrow_mut().remove(&link.id);
        self.input(Input::Lost { connection: link.id });
    }

    /// Tells clients that the broker ends, and waits for that and for the store.
    pub(crate) async fn finish(self: &Rc<Self>) {
        self.input(Input::Close);
        let gone = async {
            while self.seated.get() > 0 {
                self.left.notified().await;
            }
        };
        let _ = tokio::time::timeout(LAST_PATIENCE, gone).await;
        if let Some(store) = &self.store {
            store.finish().await;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.owner.seats.borrow_mut();
        if let Some(own) = seats.get_mut(&self.address) {
            *own -= 1;
            if *own == 0 {
                seats.remove(&self.address);
            }
        }
        self.owner.seated.set(self.owner.seated.get() - 1);
        self.owner.left.notify_one();
    }
}
