//! The one task that owns a relay: what happens goes in, what it wants done goes out.
//!
//! Nothing here waits but for the next input. What the actor hands on is bounded elsewhere: body by
//! credit ([`crate::mailbox`]), bytes for a carrier by the relay's transmit window, work by the
//! relay's credit and codec memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use coding::ExchangeId;
use proto::carrier::Piece;
use record::event::{Event, Fact};
use relay::{Allowed, CarrierId, CarrierKind, Head, Input, Output, Relay, Role};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::access::Access;
use crate::live::Live;
use crate::log::Log;
use crate::mailbox::{Bell, Mailbox, Port, Requester};
use crate::metrics::Metrics;
use crate::pattern::{Pattern, Target};
use crate::speed;
use crate::store::{Dictionary, Store};
use crate::workers::Workers;

/// Inputs from carriers and workers that wait for the actor; beyond it they wait with them.
const MAX_MESSAGES: usize = 256;

/// What was learned is saved this long after the first outcome that is not in it. Until then it can
/// be learned anew from the history, which is written at once.
const SAVE_PAUSE: Duration = Duration::from_secs(5);

/// What the actor's surroundings send it.
pub(crate) enum Message {
    /// For the relay as it is.
    Input(Input),
    /// Edge: a client's request.
    Open(Arc<Mailbox>),
    /// A client without an edge has an answer: where what comes of it goes, and what happens first.
    ClientOpens(ExchangeId, mpsc::Sender<coding::api::Output>, Vec<coding::api::Input>),
    /// What happens to it, in order.
    Client(ExchangeId, Vec<coding::api::Input>),
    /// It is over.
    ClientGone(ExchangeId),
    /// A carrier of this kind is connected; what is sent over it goes to `queue`.
    CarrierUp { carrier: CarrierId, kind: &'static str, peer: String, queue: Queue },
    /// What happened beside the relay.
    Fact(Fact),
    /// These services too, whose numbers follow those of the ones before; false if they are too
    /// many.
    Services(Vec<coding::Service>, oneshot::Sender<bool>),
    /// Would a request get through now? If not, why.
    Standing(oneshot::Sender<Result<(), String>>),
    /// What is held now?
    Load(oneshot::Sender<relay::Load>),
    /// What is believed of the carriers' paths?
    Links(oneshot::Sender<Vec<coding::Link>>),
}

/// Where what a carrier sends goes.
pub(crate) enum Queue {
    /// Bytes, all of them.
    Bytes(mpsc::UnboundedSender<Bytes>),
    /// Bytes of streams, all of them.
    Streams(mpsc::UnboundedSender<Piece>),
    /// Datagrams, as far as there is room.
    Datagrams(mpsc::Sender<Bytes>),
}

/// The carriers, and where what they send goes.
#[derive(Default)]
struct Carriers {
    queues: BTreeMap<CarrierId, Queue>,
    /// The kinds that there are, by name, as the relay numbers them.
    kinds: Vec<&'static str>,
    /// Edge: those that are not connected yet, one of a kind.
    dialled: BTreeSet<CarrierId>,
}

impl Carriers {
    /// One of this kind is dialled; how the kind is called.
    fn dialled(&mut self, carrier: CarrierId, kind: CarrierKind) -> &'static str {
        self.dialled.insert(carrier);
        self.kinds.get(kind.0).copied().unwrap_or_default()
    }

    /// One of the kind that is called so is connected; as the relay numbers it.
    fn connected(&mut self, carrier: CarrierId, kind: &str, queue: Queue) -> CarrierKind {
        self.dialled.remove(&carrier);
        self.queues.insert(carrier, queue);
        let at = self.kinds.iter().position(|name| *name == kind);
        at.map_or(CarrierKind::FIRST, CarrierKind)
    }

    /// One has ended. Whether it was dialled in vain.
    fn ended(&mut self, carrier: CarrierId) -> bool {
        let was_dialled = self.dialled.remove(&carrier);
        self.queues.remove(&carrier).is_none() && was_dialled
    }

    /// Bytes or a datagram leave. Where the carrier has just ended its CarrierDown is on the way.
    fn send(&self, carrier: CarrierId, bytes: Bytes) {
        match self.queues.get(&carrier) {
            Some(Queue::Bytes(queue)) => drop(queue.send(bytes)),
            // One for which there is no room is as good as lost.
            Some(Queue::Datagrams(queue)) => drop(queue.try_send(bytes)),
            Some(Queue::Streams(_)) | None => {}
        }
    }

    /// Bytes leave for a stream of a carrier's transport.
    fn send_piece(&self, carrier: CarrierId, piece: Piece) {
        if let Some(Queue::Streams(queue)) = self.queues.get(&carrier) {
            // Its CarrierDown is on the way.
            let _ = queue.send(piece);
        }
    }
}

/// What an actor cannot do itself.
pub(crate) trait Surroundings: Send + 'static {
    /// Edge: connect to the gateway by a carrier of this kind, under this name.
    /// An attempt to connect waits for `pace` before another begins beside it.
    fn dial(&mut self, carrier: CarrierId, kind: &'static str, pace: Duration);
    /// Gateway: serve this request.
    fn serve(&mut self, head: Head, end: bool, port: Port);
    /// Gateway: a client's connection at an edge has ended.
    fn client_ended(&mut self, _edge: u64, _connection: u64) {}
    /// Takes services that the relay has taken too.
    fn add_services(&mut self, _services: &[coding::Service]) {}
}

/// How to reach an actor.
#[derive(Clone)]
pub(crate) struct Handle {
    messages: mpsc::Sender<Message>,
    bell: Bell,
    /// Edge: what the gateway lets it reach, where that is known.
    allowed: Live<Option<Vec<Pattern>>>,
}

impl Handle {
    /// Edge: opens an exchange.
    pub(crate) async fn open(
        &self,
        head: Head,
        end: bool,
        service: Option<usize>,
        client: Requester,
        access: Option<Access>,
    ) -> Port {
        let mailbox = Mailbox::opening(head, end, service, client, self.bell.clone(), access);
        let port = mailbox.port(Role::Edge);
        self.send(Message::Open(mailbox)).await;
        port
    }

    /// Edge: whether the gateway would refuse a request for certain, by what it has told.
    pub(crate) fn is_outside(&self, target: &Target<'_>) -> bool {
        let allowed = self.allowed.get();
        allowed.as_ref().as_ref().is_some_and(|list| !list.iter().any(|one| one.may_mean(target)))
    }

    /// Waits while the actor is busy. Once it has ended, messages go nowhere: the process ends.
    pub(crate) async fn send(&self, message: Message) {
        let _ = self.messages.send(message).await;
    }

    /// An exchange of a client without an edge is over.
    pub(crate) fn client_gone(&self, exchange: ExchangeId) {
        let gone = self.messages.try_send(Message::ClientGone(exchange));
        if matches!(gone, Err(mpsc::error::TrySendError::Full(_))) {
            let _ = self.bell.send(exchange);
        }
    }

    /// Adds services; false if they are too many, or the actor has ended.
    pub(crate) async fn add_services(&self, services: Vec<coding::Service>) -> bool {
        let (sender, answer) = oneshot::channel();
        self.send(Message::Services(services, sender)).await;
        answer.await.unwrap_or(false)
    }

    /// What the relay holds now; `None` once the actor has ended.
    pub(crate) async fn load(&self) -> Option<relay::Load> {
        let (sender, answer) = oneshot::channel();
        self.send(Message::Load(sender)).await;
        answer.await.ok()
    }

    /// Whether a request would get through now, and why not.
    pub(crate) async fn standing(&self) -> Result<(), String> {
        let (sender, answer) = oneshot::channel();
        self.send(Message::Standing(sender)).await;
        answer.await.unwrap_or_else(|_| Err("it is ending".to_owned()))
    }

    /// What is believed of the carriers' paths; nothing once the actor has ended.
    pub(crate) async fn links(&self) -> Vec<coding::Link> {
        let (sender, answer) = oneshot::channel();
        self.send(Message::Links(sender)).await;
        answer.await.unwrap_or_default()
    }

    /// For threads.
    pub(crate) fn send_blocking(&self, message: Message) {
        let _ = self.messages.blocking_send(message);
    }
}

/// Whether a side still works, for whoever restarts one that does not: it asks the task that all
/// its exchanges go through.
#[derive(Clone)]
pub struct Pulse(pub(crate) Option<Handle>);

impl Pulse {
    /// Whether that task has answered; while it hangs, this waits. An edge without a gateway has
    /// none: there it is enough that this is run at all.
    pub async fn beats(&self) -> bool {
        match &self.0 {
            Some(handle) => handle.load().await.is_some(),
            None => true,
        }
    }
}

/// See the module.
pub(crate) struct Actor<S: Surroundings> {
    relay: Relay,
    role: Role,
    started: Instant,
    surroundings: S,
    workers: Workers,
    metrics: Arc<Metrics>,
    store: Option<Store>,
    /// The store, once the side ends: what was learned is written, and another process may have it.
    handing_over: Option<JoinHandle<()>>,
    /// When what was learned since is saved.
    save_at: Option<Instant>,
    handle: Handle,
    inbox: Inbox,
    mailboxes: BTreeMap<ExchangeId, Arc<Mailbox>>,
    /// Where what comes of answers to clients without an edge goes.
    clients: BTreeMap<ExchangeId, mpsc::Sender<coding::api::Output>>,
    /// Lines in the log of exchanges that the relay has, by their printed id.
    accesses: BTreeMap<String, Access>,
    log: Log,
    carriers: Carriers,
    wake_at: Option<Instant>,
    shutting_down: bool,
    /// Inputs that follow from outputs: they wait until those are drained. At most one for each
    /// carrier, since the relay asks for one only so often.
    following: VecDeque<Input>,
}

/// What [`Handle`]s send into.
pub(crate) struct Inbox {
    pub(crate) messages: mpsc::Receiver<Message>,
    bells: mpsc::UnboundedReceiver<ExchangeId>,
}

/// Both ends of the way to an actor, for its surroundings are made before it.
pub(crate) fn channel() -> (Handle, Inbox) {
    let (sender, messages) = mpsc::channel(MAX_MESSAGES);
    // bound: a mailbox rings once until it is looked at, and the relay bounds open exchanges; those
    // of clients without an edge, which connections bound, ring once.
    let (bell, bells) = mpsc::unbounded_channel();
    (Handle { messages: sender, bell, allowed: Live::new(None) }, Inbox { messages, bells })
}

impl<S: Surroundings> Actor<S> {
    /// An actor that has not begun, with `threads` for codecs.
    pub(crate) fn new(
        config: relay::Config,
        threads: usize,
        metrics: Arc<Metrics>,
        store: Option<Store>,
        surroundings: S,
        (handle, inbox): (Handle, Inbox),
    ) -> Self {
        let (role, fixed) = (config.role, config.encoding.is_fixed());
        let encodings = config.encoding.arms().to_vec();
        let kinds = config.kinds.iter().map(|kind| kind.name).collect();
        warn_of_long_schemas(&config.services);
        let mut relay = Relay::new(config);
        let mut store = store;
        let refused = match &mut store {
            Some(store) => restore(&mut relay, store),
            None => Vec::new(),
        };
        if !fixed {
            speed::start(encodings, handle.clone());
        }
        let mut actor = Self {
            role,
            relay,
            started: Instant::now(),
            surroundings,
            workers: Workers::start(threads, &handle),
            metrics,
            store,
            handing_over: None,
            save_at: None,
            handle,
            inbox,
            mailboxes: BTreeMap::new(),
            clients: BTreeMap::new(),
            accesses: BTreeMap::new(),
            log: Log::default(),
            carriers: Carriers { kinds, ..Carriers::default() },
            wake_at: None,
            shutting_down: false,
            following: VecDeque::new(),
        };
        for reason in refused {
            let what = "stored dictionary".to_owned();
            actor.message(Message::Fact(Fact::Ignored { what, reason: reason.to_owned() }));
        }
        actor
    }

    /// Runs until a shutdown was asked for and no exchange is open.
    pub(crate) async fn run(mut self) {
        self.input(Input::Wake);
        while !(self.shutting_down && self.relay.is_idle() && self.mailboxes.is_empty()) {
            let (timer, save) = (until(self.wake_at), until(self.save_at));
            tokio::select! {
                Some(id) = self.inbox.bells.recv() => self.collect(id),
                Some(message) = self.inbox.messages.recv() => self.message(message),
                () = timer => {
                    self.wake_at = None;
                    self.input(Input::Wake);
                }
                () = save => self.save(),
            }
        }
        if let Some(handing_over) = self.handing_over.take() {
            let _ = handing_over.await;
        }
    }

    fn message(&mut self, message: Message) {
        match message {
            Message::Input(input) => {
                if matches!(input, Input::Shutdown) {
                    self.shutting_down = true;
                    self.hand_over();
                }
                if let Input::CarrierDown { carrier, reason }
                | Input::DialFailed { carrier, reason, .. } = &input
                {
                    self.ended(*carrier, reason);
                }
                self.input(input);
            }
            Message::Open(mailbox) => {
                let id = self.relay.next_exchange();
                mailbox.name(id);
                if let Some(access) = mailbox.access() {
                    let name = id.to_string();
                    access.named(&name);
                    self.accesses.insert(name, access.clone());
                }
                self.mailboxes.insert(id, mailbox);
                self.collect(id);
            }
            Message::ClientOpens(id, outputs, inputs) => {
                // Who has gone meanwhile was not told of yet.
                if !outputs.is_closed() {
                    self.clients.insert(id, outputs);
                    self.client(id, inputs);
                }
            }
            Message::Client(id, inputs) => self.client(id, inputs),
            Message::ClientGone(id) => self.client_gone(id),
            Message::CarrierUp { carrier, kind, peer, queue } => {
                let kind = self.carriers.connected(carrier, kind, queue);
                self.input(Input::CarrierUp { carrier, kind, peer });
            }
            Message::Fact(fact) => {
                self.event(Event { at_s: self.started.elapsed().as_secs_f64(), fact });
            }
            // Who asked may have gone.
            Message::Services(services, answer) => {
                let added = self.relay.add_services(&services);
                if added {
                    self.surroundings.add_services(&services);
                }
                let _ = answer.send(added);
            }
            Message::Standing(answer) => drop(answer.send(self.relay.standing())),
            Message::Load(answer) => drop(answer.send(self.relay.load())),
            Message::Links(answer) => drop(answer.send(self.relay.links())),
        }
    }

    /// Something happens to an answer for a client without an edge.
    fn client(&mut self, id: ExchangeId, inputs: Vec<coding::api::Input>) {
        if self.clients.contains_key(&id) {
            let inputs = inputs.into_iter().map(Box::new).map(Input::Client);
            inputs.for_each(|input| self.input(input));
        }
    }

    /// It is over, whatever came of it.
    fn client_gone(&mut self, exchange: ExchangeId) {
        if self.clients.remove(&exchange).is_some() {
            self.input(Input::Client(Box::new(coding::api::Input::Forget { exchange })));
        }
    }

    /// A carrier ended, or a dial failed.
    fn ended(&mut self, carrier: CarrierId, reason: &str) {
        if self.carriers.ended(carrier) {
            self.log.unreachable(reason);
        }
    }

    /// Takes what the local side of an exchange has put in.
    fn collect(&mut self, id: ExchangeId) {
        let Some(mailbox) = self.mailboxes.get(&id).cloned() else { return self.client_gone(id) };
        let mut inputs = Vec::new();
        mailbox.collect(id, &mut inputs);
        for input in inputs {
            if let Input::Data { bytes, .. } = &input {
                self.metrics.count_body(true, bytes.len());
            }
            self.input(input);
        }
        self.forget_if_over(id);
    }

    fn input(&mut self, input: Input) {
        self.following.push_back(input);
        while let Some(input) = self.following.pop_front() {
            let now = self.started.elapsed();
            self.relay.handle_input(now, input);
            while let Some(output) = self.relay.poll_output() {
                self.output(output);
            }
        }
    }

    fn output(&mut self, output: Output) {
        if let Output::Data { bytes, .. } = &output {
            self.metrics.count_body(false, bytes.len());
        }
        match output {
            Output::Dial { carrier, kind } => {
                let name = self.carriers.dialled(carrier, kind);
                self.surroundings.dial(carrier, name, self.relay.dial_pace(kind));
            }
            Output::Datagram { carrier, bytes } | Output::Transmit { carrier, bytes } => {
                self.carriers.send(carrier, bytes);
            }
            Output::Stream { carrier, piece } => self.carriers.send_piece(carrier, piece),
            Output::Measure { carrier } => {
                let transport = self.metrics.transport(carrier);
                let input = transport.map(|transport| Input::Transport { carrier, transport });
                self.following.extend(input);
            }
            // Dropping the queue lets the carrier's task write what is left, then close.
            Output::Close { carrier, reason } => {
                tracing::debug!(carrier = carrier.0, reason, "closing a carrier");
                self.carriers.queues.remove(&carrier);
            }
            Output::Job(job) => self.workers.push(job),
            Output::Release { exchange } => self.workers.release(exchange),
            Output::ClientEnded { instance, connection } => {
                self.surroundings.client_ended(instance, connection);
            }
            Output::Allowed(list) => self.handle.allowed.set(list.as_deref().and_then(patterns)),
            Output::Head { exchange, head, end } if self.role == Role::Gateway => {
                let bell = self.handle.bell.clone();
                let peer = self.relay.peer_of(exchange).unwrap_or_default();
                let access = Access::at_gateway(&self.metrics, peer, exchange, &head);
                self.accesses.insert(exchange.to_string(), access.clone());
                let mailbox = Mailbox::opened(exchange, end, bell, Some(access));
                let port = mailbox.port(Role::Gateway);
                self.mailboxes.insert(exchange, mailbox);
                self.surroundings.serve(head, end, port);
            }
            Output::Head { exchange, .. }
            | Output::Interim { exchange, .. }
            | Output::Data { exchange, .. }
            | Output::End { exchange, .. }
            | Output::Abort { exchange, .. }
            | Output::Credit { exchange, .. } => {
                if let Some(mailbox) = self.mailboxes.get(&exchange) {
                    mailbox.deliver(output);
                    self.forget_if_over(exchange);
                }
            }
            Output::Store { name, bytes } => {
                if let Some(store) = &mut self.store {
                    store.keep_dictionary(name, bytes);
                }
            }
            Output::Used { name } => {
                if let Some(store) = &mut self.store {
                    store.touch_dictionary(name);
                }
            }
            Output::Forget { name } => {
                if let Some(store) = &mut self.store {
                    store.forget_dictionary(name);
                }
            }
            Output::Client(output) => {
                if let Some(outputs) = output.exchange().and_then(|id| self.clients.get(&id)) {
                    // There is room for all that comes of one; its task may have gone.
                    let _ = outputs.try_send(output);
                }
            }
            Output::WakeAt(at) => self.wake_at = Some(self.started + at),
            Output::Event(event) => self.event(event),
        }
    }

    fn event(&mut self, event: Event) {
        self.log.event(&event);
        self.metrics.observe(&event.fact);
        self.note(&event.fact);
        if let Some(store) = &mut self.store {
            if matches!(event.fact, Fact::Outcome { .. }) {
                self.save_at.get_or_insert_with(|| Instant::now() + SAVE_PAUSE);
            }
            store.observe(event.fact);
        }
    }

    /// Adds a fact to the line of its exchange, and lets go of it with the last.
    fn note(&mut self, fact: &Fact) {
        match fact {
            Fact::Chosen { exchange, .. } => {
                self.accesses.get(exchange).into_iter().for_each(|access| access.fact(fact));
            }
            Fact::Finished { exchange, .. } | Fact::Failed { exchange, .. } => {
                let access = self.accesses.remove(exchange);
                access.into_iter().for_each(|access| access.fact(fact));
            }
            _ => {}
        }
    }

    fn forget_if_over(&mut self, id: ExchangeId) {
        if self.mailboxes.get(&id).is_some_and(|mailbox| mailbox.is_over()) {
            self.mailboxes.remove(&id);
        }
    }
}

impl<S: Surroundings> Actor<S> {
    /// Saves what was learned since it was last saved.
    fn save(&mut self) {
        if let (Some(_), Some(store)) = (self.save_at.take(), &mut self.store) {
            save(&self.relay, store);
        }
    }

    /// Writes what was learned and lets go of the store, for whoever runs next has to begin with it
    /// while this side finishes what is open. What is learned until then is not kept.
    fn hand_over(&mut self) {
        self.save();
        if let Some(store) = self.store.take() {
            // It waits for the disk.
            self.handing_over = Some(tokio::task::spawn_blocking(move || drop(store)));
        }
    }
}

/// However it ends, what was learned is kept.
impl<S: Surroundings> Drop for Actor<S> {
    fn drop(&mut self) {
        self.save();
    }
}

/// Takes up what a store has of an earlier process. Why dictionaries of it are set aside.
fn restore(relay: &mut Relay, store: &mut Store) -> Vec<&'static str> {
    let learned = store.take_learned();
    if let Some(Err(error)) = learned.clients.as_ref().map(|state| relay.restore_clients(state)) {
        tracing::warn!(%error, "what was learned of clients is not taken up");
    }
    if let Some(Err(error)) = learned.state.as_ref().map(|state| relay.restore(state)) {
        tracing::warn!(%error, "what was learned is not taken up");
    }
    for entry in &learned.since {
        if let (Some(decision), Some(outcome)) = (&entry.decision, &entry.outcome) {
            relay.learn_from(decision, outcome);
        }
    }
    // A process that is always killed early must not have ever more to learn again.
    if !learned.since.is_empty() {
        save(relay, store);
    }
    let mut refused = vec!["it is damaged: set aside"; learned.damaged];
    for Dictionary { name, bytes } in learned.dictionaries {
        if let Err(why) = relay.restore_dictionary(name, &bytes) {
            store.set_dictionary_aside(name, why);
            refused.push(why);
        }
    }
    refused
}

/// A list as it was announced; none where a later version knows patterns that are none here.
fn patterns(list: &Allowed) -> Option<Vec<Pattern>> {
    list.patterns.iter().map(|pattern| Pattern::parse(pattern).ok()).collect()
}

fn warn_of_long_schemas(services: &[coding::Service]) {
    for service in services {
        let schema = service.infoset.as_ref().filter(|one| one.name().is_some());
        if schema.is_some_and(|one| one.parcel().is_none()) {
            let name = &service.name;
            tracing::warn!(name, "its schemas are too long to cross: name them at both sides");
        }
    }
}

fn save(relay: &Relay, store: &mut Store) {
    let learned = relay.learned();
    if !learned.is_empty() {
        store.save_both(learned, relay.learned_of_clients());
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::StoreSettings;

    fn facts(edgeless: bool) -> [Fact; 2] {
        let parts = json!({ "bytes": 900, "encode_s": 0.1, "network_s": 0.2, "decode_s": 0.3 });
        let figure = json!({ "value": 0.5, "weight": 1.0 });
        let decision = json!({
            "service": "http://a", "class": "ff", "body_bytes": 9000, "head_share": 0.5,
            "objective": "time", "expected": parts, "candidates": [], "forbidden": [],
            "link": {
                "rate_bps": figure, "rtt_s": figure, "loss": figure, "queueing_s": 0.0,
            },
            "foreign": edgeless,
        });
        let split = json!({ "encode_s": 0.0, "decode_s": 0.0, "network_s": 0.0, "size_s": 0.0 });
        let fact = |value: serde_json::Value| serde_json::from_value(value).unwrap();
        [
            fact(json!({
                "event": "chosen", "exchange": "01", "direction": "response",
                "encoding": "deflate:6", "reason": "", "decision": decision,
            })),
            fact(json!({
                "event": "outcome", "exchange": "01", "direction": "response",
                "encoding": "deflate:6", "body_bytes": 9000, "expected": parts, "actual": parts,
                "split": split,
            })),
        ]
    }

    #[test]
    fn what_clients_without_an_edge_got_teaches_what_they_get_and_nothing_to_the_pair() {
        let directory = std::env::temp_dir().join(format!("longwire-actor-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        let place = StoreSettings {
            directory: directory.clone(),
            history_rows: 9,
            history_bytes: 1 << 20,
            age: StoreSettings::AGE,
        };
        for edgeless in [true, false] {
            let mut store = Store::open(&place, "learned").unwrap();
            facts(edgeless).into_iter().for_each(|fact| store.observe(fact));
            drop(store);
            let mut store = Store::open(&place, "learned").unwrap();
            let mut relay = Relay::new(relay::Config::new(Role::Gateway, 7));
            let before = (relay.learned(), relay.learned_of_clients());
            restore(&mut relay, &mut store);
            assert_eq!(relay.learned() == before.0, edgeless);
            assert_eq!(relay.learned_of_clients() == before.1, !edgeless);
            drop(store);
            let saved = Store::open(&place, "learned").unwrap().take_learned();
            let of_clients = saved.clients.clone().unwrap_or_default();
            assert_eq!(of_clients, relay.learned_of_clients());
            assert!(saved.state == Some(relay.learned()) && saved.since.is_empty());
            // Whoever runs next takes it up.
            let mut next = Relay::new(relay::Config::new(Role::Gateway, 8));
            assert_eq!(next.restore_clients(&of_clients).is_ok(), edgeless);
            let _ = std::fs::remove_dir_all(&directory);
        }
    }
}
