//! The task that owns the machine: every input goes through it, and it does what the machine says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::mpsc::{
    Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel,
};
use tokio::sync::{Semaphore, oneshot, watch};

use super::coap::Caller;
use super::deliver::Deliverer;
use super::events::{self, Events, MAX_SUBSCRIBERS, Pieces, Subscription};
use crate::Error;
use crate::messaging::config::Config;
use crate::messaging::machine::{InboxExtent, Input, Machine, Output, Reply, Sent, Ticket, Token};
use crate::messaging::refusal::{Reason, Refusal};
use crate::messaging::store::{Opened, Store};

/// Most requests that wait to be looked at.
const MAX_COMMANDS: usize = 1024;
/// How long an answer may wait for the disk.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);
/// How long a batch may be with the disk before nothing new is taken.
const STALL_PATIENCE: Duration = Duration::from_secs(5);
/// How often subscribers get a sign of life.
const LIFE_INTERVAL: Duration = Duration::from_secs(15);
/// How long the disk is waited for in the end.
const LAST_PATIENCE: Duration = Duration::from_secs(10);

/// An answer of the machine.
type Answer = Result<Reply, Refusal>;
/// Something that is read of the machine.
type Look = Box<dyn FnOnce(&Machine) + Send>;
/// An input that has a token.
type Make = Box<dyn FnOnce(Token) -> Input + Send>;

/// What requests ask of the owner.
enum Command {
    Input(Make, oneshot::Sender<Answer>),
    Look(Look),
    Subscribe(u64, oneshot::Sender<Subscription>),
}

/// What requests have of the owner.
#[derive(Clone)]
pub(super) struct Handle {
    commands: Sender<Command>,
    /// The name of this node.
    pub(super) node: Arc<str>,
    /// What there is in the inbox.
    inbox: watch::Receiver<InboxExtent>,
    /// As many as there may be subscribers.
    seats: Arc<Semaphore>,
    /// What clients are told of the node, and of no message.
    pub(super) about: Arc<serde_json::Value>,
}

impl Handle {
    /// What there is in the inbox now.
    pub(super) fn inbox_extent(&self) -> InboxExtent {
        *self.inbox.borrow()
    }

    /// The same, as it changes.
    pub(super) fn watch_inbox(&self) -> watch::Receiver<InboxExtent> {
        self.inbox.clone()
    }

    /// Gives an input to the machine; its answer.
    pub(super) async fn input(&self, make: impl FnOnce(Token) -> Input + Send + 'static) -> Answer {
        let (tell, answer) = oneshot::channel();
        let sent = self.commands.send(Command::Input(Box::new(make), tell)).await;
        sent.map_err(|_| stopped())?;
        match tokio::time::timeout(ANSWER_PATIENCE, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(stopped()),
            Err(_) => {
                let line = "the disk has not taken it yet, and it may still go; free some room, \
                            and send it again with the same id";
                Err(Refusal::new(Reason::Full, line))
            }
        }
    }

    /// Reads something of the machine.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Machine) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let (tell, answer) = oneshot::channel();
        let look = Box::new(move |machine: &Machine| drop(tell.send(look(machine))));
        self.commands.send(Command::Look(look)).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())
    }

    /// Messages of the inbox after a number, and what comes behind them.
    pub(super) async fn subscribe(&self, after: u64) -> Result<Subscription, Refusal> {
        let (tell, answer) = oneshot::channel();
        let sent = self.commands.send(Command::Subscribe(after, tell)).await;
        sent.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())
    }

    /// The same for a connection, as long as that lasts.
    pub(super) async fn follow(&self, after: u64) -> Result<Pieces, Refusal> {
        let seat = self.seats.clone().try_acquire_owned().map_err(|_| {
            let line = "there are as many subscribers as there may be; let one end";
            Refusal::new(Reason::Full, line)
        })?;
        let subscription = self.subscribe(after).await?;
        Ok(events::feed(self.clone(), seat, subscription))
    }
}

fn stopped() -> Refusal {
    Refusal::new(Reason::Full, "this node stops; send it again when it has started")
}

fn mixed(seed: u64, byte: u8) -> u64 {
    seed.wrapping_mul(31).wrapping_add(byte.into())
}

/// See the module.
pub(super) struct Owner {
    machine: Machine,
    store: Store,
    written: UnboundedReceiver<Ticket>,
    commands: Receiver<Command>,
    sent: UnboundedReceiver<(u64, Sent)>,
    tell_sent: UnboundedSender<(u64, Sent)>,
    deliverer: Arc<Deliverer>,
    answers: BTreeMap<Token, oneshot::Sender<Answer>>,
    events: Events,
    inbox: watch::Sender<InboxExtent>,
    last_token: Token,
    /// Batches that are not on the disk yet.
    writing: usize,
    wake_at: Option<Duration>,
    clock: Clock,
    /// Since when a batch is with the disk.
    written_since: Option<Instant>,
}

/// Why nothing new is taken while the disk has not had a batch for long: nothing that is refused so
/// reaches the machine, which keeps no more than it had.
fn stalled(since: Option<Instant>, now: Instant) -> Option<Refusal> {
    let waited = now.saturating_duration_since(since?);
    (waited > STALL_PATIENCE).then(|| {
        let seconds = waited.as_secs();
        let line = format!(
            "the disk has taken nothing for {seconds} s; free some room, and send it again"
        );
        Refusal::new(Reason::Full, line)
    })
}

/// The time since 1970 as the machine has it: the system's, which may stand while the system
/// sleeps and be set, but never going back. Where the system's is set back, this one goes on at
/// half its pace until that has caught up: what waits for a time is not kept waiting by as much.
#[derive(Debug)]
struct Clock {
    last: Duration,
    looked: Instant,
}

impl Clock {
    fn new() -> Self {
        Self { last: Duration::ZERO, looked: Instant::now() }
    }

    fn now(&mut self) -> Duration {
        let system = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let looked = Instant::now();
        let passed = looked.saturating_duration_since(self.looked);
        self.looked = looked;
        self.at(system.unwrap_or_default(), passed)
    }

    /// The time when the system's clock shows `system`, and so much has passed since the last look.
    fn at(&mut self, system: Duration, passed: Duration) -> Duration {
        self.last = system.max(self.last + passed / 2);
        self.last
    }
}

impl Owner {
    /// A node as it is configured, with what its store has.
    pub(super) fn open(config: &Config, coap: Option<Caller>) -> Result<(Self, Handle), Error> {
        let mut settings = config.settings.clone();
        let mut clock = Clock::new();
        let started_at = clock.now();
        // Nodes that start together should not try together.
        settings.seed = settings.node.bytes().fold(started_at.subsec_nanos().into(), mixed);
        let node = settings.node.clone();
        let about = serde_json::json!({
            "node": &*node,
            "nodes": settings.routes.keys().map(|name| &**name).collect::<Vec<_>>(),
            "groups": settings.groups.iter().map(|(name, members)| {
                let members: Vec<&str> = members.iter().map(|member| &**member).collect();
                (name.clone(), members.into())
            }).collect::<serde_json::Map<_, _>>(),
            "validity_s": settings.validity.as_secs(),
        });
        let Opened { store, changes, done } = Store::open(&config.store, &node)?;
        let mut machine = Machine::new(settings);
        machine.restore(started_at, changes);
        let sizes = machine.sizes();
        tracing::info!(inbox = sizes.inbox, outbox = sizes.outbox, "the store was read");
        let (sender, commands) = channel(MAX_COMMANDS);
        let (tell_inbox, inbox) = watch::channel(machine.inbox_extent());
        // bound: requests to nodes at once, of which each node has its window.
        let (tell_sent, sent) = unbounded_channel();
        let owner = Self {
            machine,
            store,
            written: done,
            commands,
            sent,
            tell_sent,
            deliverer: Arc::new(Deliverer::new(config, coap)),
            answers: BTreeMap::new(),
            events: Events::default(),
            inbox: tell_inbox,
            last_token: 0,
            writing: 0,
            wake_at: None,
            clock,
            written_since: None,
        };
        let seats = Arc::new(Semaphore::new(MAX_SUBSCRIBERS));
        Ok((owner, Handle { commands: sender, node, inbox, seats, about: Arc::new(about) }))
    }

    /// Runs the machine until it is to stop and the disk has what was given to it.
    pub(super) async fn run(mut self, mut stopping: watch::Receiver<bool>) {
        self.input(Input::Wake);
        let mut life = tokio::time::interval(LIFE_INTERVAL);
        loop {
            let now = self.clock.now();
            let pause = self.wake_at.map_or(LIFE_INTERVAL, |at| at.saturating_sub(now));
            // The clock may be set, and stands for sleeps of this process: it is looked at often.
            let wake = tokio::time::sleep(pause.min(LIFE_INTERVAL));
            tokio::select! {
                biased;
                Some(ticket) = self.written.recv() => self.persisted(ticket),
                Some((attempt, outcome)) = self.sent.recv() => {
                    self.input(Input::Sent { attempt, outcome });
                }
                command = self.commands.recv() => match command {
                    Some(command) => self.command(command),
                    None => break,
                },
                _ = stopping.wait_for(|stopping| *stopping) => break,
                _ = life.tick() => {
                    self.events.life();
                    self.input(Input::Wake);
                }
                () = wake => self.input(Input::Wake),
            }
        }
        self.finish().await;
    }

    /// Answers what is accepted already, and waits for the disk.
    async fn finish(mut self) {
        self.events.end();
        let last = async {
            while self.writing > 0 {
                let Some(ticket) = self.written.recv().await else { break };
                self.persisted(ticket);
            }
        };
        if tokio::time::timeout(LAST_PATIENCE, last).await.is_err() {
            tracing::warn!("stopped before the disk had everything");
        }
        self.store.finish().await;
    }

    fn persisted(&mut self, ticket: Ticket) {
        self.writing = self.writing.saturating_sub(1);
        self.written_since = None;
        self.input(Input::Persisted { ticket });
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Input(make, tell) => {
                if let Some(refusal) = stalled(self.written_since, Instant::now()) {
                    let _ = tell.send(Err(refusal));
                    return;
                }
                self.last_token += 1;
                self.answers.insert(self.last_token, tell);
                self.input(make(self.last_token));
            }
            Command::Look(look) => look(&self.machine),
            Command::Subscribe(after, tell) => {
                let _ = tell.send(self.events.subscribe(after, &self.machine));
            }
        }
    }

    fn input(&mut self, input: Input) {
        let now = self.clock.now();
        self.machine.handle_input(now, input);
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Answer { token, answer } => {
                    if let Some(tell) = self.answers.remove(&token) {
                        // Who asked may have gone.
                        let _ = tell.send(answer);
                    }
                }
                Output::Send { attempt, peer, parcel, within } => {
                    let (deliverer, tell) = (self.deliverer.clone(), self.tell_sent.clone());
                    tokio::spawn(async move {
                        let outcome = deliverer.deliver(&peer, &parcel, within).await;
                        if let Some(reason) = outcome.reason() {
                            tracing::info!(%peer, reason, "not delivered");
                        }
                        let _ = tell.send((attempt, outcome));
                    });
                }
                Output::Persist { ticket, changes } => {
                    self.writing += 1;
                    self.written_since = Some(Instant::now());
                    self.store.write(ticket, changes);
                }
                Output::Event(event) => self.events.publish(event),
                Output::WakeAt(at) => self.wake_at = at,
            }
        }
        let extent = self.machine.inbox_extent();
        self.inbox.send_if_modified(|before| std::mem::replace(before, extent) != extent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_follows_the_system_and_never_goes_back() {
        let mut clock = Clock::new();
        let seconds = Duration::from_secs;
        let system = [100, 101, 5000, 4990, 5001];
        let shown = system.map(|at| clock.at(seconds(at), Duration::ZERO));
        assert_eq!(shown, [100, 101, 5000, 5000, 5001].map(seconds));
        assert!(clock.now() > seconds(1_700_000_000), "it is the system's");
    }

    #[test]
    fn the_clock_goes_on_where_the_system_is_set_back_until_that_has_caught_up() {
        let mut clock = Clock::new();
        let seconds = Duration::from_secs;
        assert_eq!(clock.at(seconds(5000), seconds(1)), seconds(5000));
        assert_eq!(clock.at(seconds(100), Duration::ZERO), seconds(5000));
        assert_eq!(clock.at(seconds(110), seconds(10)), seconds(5005));
        // Ten seconds ahead: the system has it back after twenty.
        let mut clock = Clock::new();
        clock.at(seconds(110), Duration::ZERO);
        let shown = (101..=130).map(|at| clock.at(seconds(at), seconds(1)));
        let shown: Vec<Duration> = shown.collect();
        assert!(shown.is_sorted() && shown[9] == seconds(115), "{shown:?}");
        assert_eq!((shown[19], shown[29]), (seconds(120), seconds(130)));
    }

    #[test]
    fn nothing_new_is_taken_while_the_disk_takes_nothing() {
        let since = Instant::now();
        let after = |seconds| stalled(Some(since), since + Duration::from_secs(seconds));
        assert_eq!((after(0), after(5)), (None, None));
        let refusal = after(6).unwrap();
        assert_eq!(refusal.status(), 503);
        assert!(refusal.line.contains("taken nothing for 6 s"), "{refusal}");
        assert_eq!(stalled(None, since + Duration::from_secs(60)), None);
    }
}
