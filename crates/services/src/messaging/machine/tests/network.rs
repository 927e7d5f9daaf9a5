//! Several nodes over a virtual network that loses, delays and doubles requests and whose links
//! flap, with nodes that are killed, also between what they do about one input, and start again
//! from their disk: each message whose validity is left comes to each of its recipients exactly
//! once, and no other twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::super::*;
use super::{MS, S, draft, settings};
use crate::messaging::message::{Delivery, Precedence, Wanted};
use crate::messaging::refusal::Reason;
use crate::random::Random;

/// How many seeds are run with few messages, and how many with 20 messages a second.
const SEEDS: u64 = 3000;
const DENSE_SEEDS: u64 = 40;
/// How long messages are given, in milliseconds.
const SENDING_MS: u32 = 40_000;
/// Most outputs that a node comes to after a fuse is lit before it is killed.
const MAX_FUSE: u32 = 12;
/// The network is good from then on.
const CALM: Duration = Duration::from_secs(60);
/// Everything is over by then.
const END: Duration = Duration::from_secs(400);
/// a and b are on one side, d and e on the other; c is between them.
const NODES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// What happens at a time.
enum Happening {
    Submit {
        node: usize,
        draft: Box<Draft>,
    },
    /// A parcel comes to a node; the answer goes back to the attempt of a node's life.
    Arrive {
        from: usize,
        life: u32,
        attempt: u64,
        to: usize,
        parcel: Parcel,
    },
    Answered {
        node: usize,
        life: u32,
        attempt: u64,
        outcome: Sent,
    },
    Persisted {
        node: usize,
        life: u32,
        ticket: Ticket,
    },
    Read {
        node: usize,
        id: Arc<str>,
    },
    Kill {
        node: usize,
    },
    /// It is killed after so many outputs.
    Fuse {
        node: usize,
        outputs: u32,
    },
    Start {
        node: usize,
    },
    Wake {
        node: usize,
    },
}

struct Node {
    machine: Option<Machine>,
    life: u32,
    disk: Vec<Change>,
    /// Batches that are not on the disk yet.
    batches: BTreeMap<Ticket, Vec<Change>>,
    /// Who waits for an answer to what came from another node.
    waiting: BTreeMap<Token, (usize, u32, u64)>,
    own: BTreeMap<Token, Draft>,
    last_token: Token,
    /// After how many outputs it is killed.
    fuse: Option<u32>,
}

/// A message that was accepted.
#[derive(Debug, PartialEq, Eq)]
struct Accepted {
    node: usize,
    draft: Draft,
}

struct Network {
    now: Duration,
    agenda: BTreeMap<(Duration, u64), Happening>,
    count: u64,
    nodes: Vec<Node>,
    random: Random,
    /// Of each link, how long it is up and down in turn.
    flaps: BTreeMap<(usize, usize), Duration>,
    accepted: BTreeMap<Arc<str>, Accepted>,
    /// Events of arrival, by message and node.
    announced: BTreeMap<(Arc<str>, usize), u32>,
    kills: u32,
    lost: u32,
    refused: Vec<String>,
}

fn which(id: &str) -> Which {
    Which { id: id.into(), originator: None }
}

fn index(name: &str) -> usize {
    NODES.iter().position(|node| *node == name).unwrap()
}

fn settings_of(node: usize) -> Settings {
    // Ways: a and b reach d and e by c only, and the other way round.
    let side = |node: usize| match node {
        0 | 1 => 0,
        2 => 1,
        _ => 2,
    };
    let routes = NODES.iter().enumerate().filter(|(other, _)| *other != node);
    let routes = routes.map(|(other, name)| {
        let is_near = side(node) == side(other) || side(node) == 1 || side(other) == 1;
        (Arc::from(*name), Arc::from(if is_near { name } else { "c" }))
    });
    let groups = [("all".to_owned(), NODES.iter().map(|name| Arc::from(*name)).collect())];
    Settings { routes: routes.collect(), groups: groups.into(), ..settings(NODES[node]) }
}

impl Network {
    fn new(seed: u64, messages: usize) -> Self {
        let node = |_| Node {
            machine: None,
            life: 0,
            disk: Vec::new(),
            batches: BTreeMap::new(),
            waiting: BTreeMap::new(),
            own: BTreeMap::new(),
            last_token: 0,
            fuse: None,
        };
        let mut network = Self {
            now: Duration::from_secs(1_773_468_000),
            agenda: BTreeMap::new(),
            count: 0,
            nodes: (0..NODES.len()).map(node).collect(),
            random: Random::new(seed, 7),
            flaps: BTreeMap::new(),
            accepted: BTreeMap::new(),
            announced: BTreeMap::new(),
            kills: 0,
            lost: 0,
            refused: Vec::new(),
        };
        for node in 0..NODES.len() {
            network.plan(Duration::ZERO, Happening::Start { node });
            for _ in 0..network.random.below(3) {
                let at = network.random.below(50_000) * MS;
                let outputs = network.random.below(MAX_FUSE);
                network.plan(
                    at,
                    match outputs {
                        0 => Happening::Kill { node },
                        outputs => Happening::Fuse { node, outputs },
                    },
                );
            }
            for other in 0..node {
                let period = (500 + network.random.below(9500)) * MS;
                network.flaps.insert((other, node), period);
            }
        }
        for number in 0..messages {
            let at = network.random.below(SENDING_MS) * MS;
            let node = network.random.below(5) as usize;
            let id = Some(format!("{}-m{number}", NODES[node]));
            let draft = Draft { id, ..network.some_draft() };
            network.plan(100 * MS + at, Happening::Submit { node, draft: draft.into() });
        }
        network
    }

    fn some_draft(&mut self) -> Draft {
        let mut addressees = BTreeSet::new();
        for _ in 0..=self.random.below(2) {
            addressees.insert(self.random.pick(&["a", "b", "c", "d", "e", "all"]).unwrap());
        }
        let addressees: Vec<&str> = addressees.into_iter().collect();
        let precedence = match self.random.below(4) {
            0 => Precedence::Flash,
            1 => Precedence::Priority,
            _ => Precedence::Routine,
        };
        let receipt = match self.random.below(3) {
            0 => Some(Wanted::Read),
            1 => Some(Wanted::Nothing),
            _ => None,
        };
        let delivery = match self.random.below(8) {
            0 => Delivery::BestEffort,
            _ => Delivery::Reliable,
        };
        let validity = match self.random.below(8) {
            0 => Some((1 + self.random.below(30)) * S),
            _ => None,
        };
        Draft { precedence, receipt, delivery, validity, ..draft(&addressees) }
    }

    fn plan(&mut self, after: Duration, happening: Happening) {
        self.count += 1;
        self.agenda.insert((self.now + after, self.count), happening);
    }

    fn input(&mut self, node: usize, input: Input) {
        let now = self.now;
        let Some(machine) = self.nodes[node].machine.as_mut() else { return };
        machine.handle_input(now, input);
        loop {
            let Some(machine) = self.nodes[node].machine.as_mut() else { return };
            let Some(output) = machine.poll_output() else { return };
            self.output(node, output);
            let fuse = &mut self.nodes[node].fuse;
            *fuse = fuse.map(|outputs| outputs - 1);
            if *fuse == Some(0) {
                *fuse = None;
                return self.kill(node);
            }
        }
    }

    fn output(&mut self, node: usize, output: Output) {
        let life = self.nodes[node].life;
        match output {
            Output::Answer { token, answer } => self.answered(node, token, answer),
            Output::Send { attempt, peer, parcel, within } => {
                let to = index(&peer);
                let is_bad = self.is_bad();
                // Lost on the way there, or only late, or doubled.
                if is_bad && (self.random.chance(40) || self.is_down(node, to)) {
                    self.lost += 1;
                    let outcome = Sent::Failed("no answer".to_owned());
                    self.plan(within, Happening::Answered { node, life, attempt, outcome });
                    return;
                }
                let copies = if is_bad && self.random.chance(10) { 2 } else { 1 };
                for _ in 0..copies {
                    let delay = self.random.below(800) * MS;
                    let parcel = parcel.clone();
                    self.plan(delay, Happening::Arrive { from: node, life, attempt, to, parcel });
                }
                let outcome = Sent::Failed("late".to_owned());
                self.plan(within, Happening::Answered { node, life, attempt, outcome });
            }
            Output::Persist { ticket, changes } => {
                self.nodes[node].batches.insert(ticket, changes);
                let delay = self.random.below(20) * MS;
                self.plan(delay, Happening::Persisted { node, life, ticket });
            }
            Output::Event(Event::Arrived(arrived)) => {
                *self.announced.entry((arrived.message.id.clone(), node)).or_default() += 1;
                let id = arrived.message.id.clone();
                let delay = self.random.below(5000) * MS;
                self.plan(delay, Happening::Read { node, id });
            }
            Output::Event(Event::Progress { .. }) => {}
            Output::WakeAt(at) => {
                if let Some(at) = at {
                    self.plan(at.saturating_sub(self.now), Happening::Wake { node });
                }
            }
        }
    }

    fn is_down(&self, one: usize, other: usize) -> bool {
        let period = self.flaps[&(one.min(other), one.max(other))];
        !(self.now.as_millis() / period.as_millis()).is_multiple_of(2)
    }

    fn is_bad(&self) -> bool {
        self.now < Duration::from_secs(1_773_468_000) + CALM
    }

    fn answered(&mut self, node: usize, token: Token, answer: Result<Reply, Refusal>) {
        if let Some(draft) = self.nodes[node].own.remove(&token) {
            match answer {
                Ok(Reply::Accepted { id, .. }) => {
                    let before = self.accepted.insert(id, Accepted { node, draft });
                    assert!(before.is_none(), "{before:?}");
                }
                Ok(other) => panic!("{other:?}"),
                // A group of nobody but the node itself.
                Err(refusal) => assert_eq!(refusal.reason, Reason::Malformed, "{refusal}"),
            }
            return;
        }
        let Some((from, life, attempt)) = self.nodes[node].waiting.remove(&token) else { return };
        let outcome = match answer {
            Ok(_) => Sent::Taken,
            Err(Refusal { reason: Reason::Expired, line }) => Sent::Refused(line),
            Err(refusal) => {
                self.refused.push(refusal.line.clone());
                Sent::Refused(refusal.line)
            }
        };
        // The answer may be lost; then the time that the request had tells.
        if self.is_bad() && (self.random.chance(30) || self.is_down(node, from)) {
            self.lost += 1;
            return;
        }
        let delay = self.random.below(800) * MS;
        self.plan(delay, Happening::Answered { node: from, life, attempt, outcome });
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Submit { node, draft } => {
                if self.nodes[node].machine.is_none() {
                    return self.plan(S, Happening::Submit { node, draft });
                }
                let token = self.token(node);
                self.nodes[node].own.insert(token, (*draft).clone());
                self.input(node, Input::Submit { token, draft });
            }
            Happening::Arrive { from, life, attempt, to, parcel } => {
                if self.nodes[to].machine.is_none() {
                    return;
                }
                let token = self.token(to);
                self.nodes[to].waiting.insert(token, (from, life, attempt));
                let input = match parcel {
                    Parcel::Message(transfer) => Input::Transfer { token, transfer },
                    Parcel::Receipt(returning) => Input::Receipt { token, returning },
                };
                self.input(to, input);
            }
            Happening::Answered { node, life, attempt, outcome } => {
                if self.nodes[node].life == life {
                    self.input(node, Input::Sent { attempt, outcome });
                }
            }
            Happening::Persisted { node, life, ticket } => {
                if self.nodes[node].life != life {
                    return;
                }
                let changes = self.nodes[node].batches.remove(&ticket).unwrap_or_default();
                self.nodes[node].disk.extend(changes);
                self.input(node, Input::Persisted { ticket });
            }
            Happening::Read { node, id } => {
                let token = self.token(node);
                let which = which(&id);
                self.input(node, Input::MarkRead { token, which });
            }
            Happening::Kill { node } => self.kill(node),
            Happening::Fuse { node, outputs } => self.nodes[node].fuse = Some(outputs),
            Happening::Start { node } => {
                if self.nodes[node].machine.is_some() {
                    return;
                }
                let mut machine = Machine::new(settings_of(node));
                machine.restore(self.now, self.nodes[node].disk.clone());
                self.nodes[node].machine = Some(machine);
                self.input(node, Input::Wake);
            }
            Happening::Wake { node } => self.input(node, Input::Wake),
        }
    }

    fn kill(&mut self, node: usize) {
        if self.nodes[node].machine.take().is_none() {
            return;
        }
        self.kills += 1;
        let there = &mut self.nodes[node];
        there.life += 1;
        // The batch that was being written may be on the disk, though nobody was told.
        let batches = std::mem::take(&mut there.batches);
        there.waiting.clear();
        there.fuse = None;
        // Clients that had no answer give their messages again.
        for draft in std::mem::take(&mut there.own).into_values() {
            self.plan(S, Happening::Submit { node, draft: draft.into() });
        }
        if self.random.chance(50) {
            self.nodes[node].disk.extend(batches.into_values().flatten());
        }
        let pause = self.random.below(8000) * MS;
        self.plan(pause, Happening::Start { node });
    }

    fn token(&mut self, node: usize) -> Token {
        self.nodes[node].last_token += 1;
        self.nodes[node].last_token
    }

    fn run(&mut self) {
        let end = self.now + END;
        while let Some(((at, _), happening)) = self.agenda.pop_first() {
            if at > end {
                break;
            }
            self.now = at;
            self.happen(happening);
        }
    }

    fn check(&self, seed: u64) {
        let counts: Vec<BTreeMap<Arc<str>, usize>> = self.nodes.iter().map(counts).collect();
        for (id, Accepted { node, draft }) in &self.accepted {
            let mut recipients: BTreeSet<usize> = BTreeSet::new();
            for name in &draft.addressees {
                match name.as_str() {
                    "all" => recipients.extend((0..NODES.len()).filter(|other| other != node)),
                    name => drop(recipients.insert(index(name))),
                }
            }
            // Some end before they come; what is tried once may be lost.
            let may_be_lost = draft.validity.is_some() || draft.delivery == Delivery::BestEffort;
            for (at, counts) in counts.iter().enumerate() {
                let times = counts.get(id).copied().unwrap_or(0);
                let most = usize::from(recipients.contains(&at));
                let is_good = times == most || may_be_lost && times < most;
                assert!(is_good, "seed {seed}: {id} is {times} times at {}", NODES[at]);
                let announced = self.announced.get(&(id.clone(), at)).copied().unwrap_or(0);
                // A kill between the disk and the event leaves it untold, never told twice.
                assert!(announced as usize <= times, "seed {seed}: {id} told {announced} times");
            }
            self.check_status(seed, id, *node, &recipients);
        }
        for node in &self.nodes {
            let machine = node.machine.as_ref().unwrap();
            let sizes = machine.sizes();
            assert_eq!((sizes.waiting, sizes.receipts), (0, 0), "seed {seed}");
            let own = machine.outbox(0).count();
            assert_eq!(sizes.outbox, own, "seed {seed}: messages of others are kept");
            assert!(machine.attempts.is_empty(), "seed {seed}");
        }
    }

    fn check_status(&self, seed: u64, id: &str, node: usize, recipients: &BTreeSet<usize>) {
        let machine = self.nodes[node].machine.as_ref().unwrap();
        let entry = machine.find_outgoing(id).unwrap();
        assert_eq!(entry.recipients.len(), recipients.len());
        for (name, progress) in &entry.recipients {
            let at = self.nodes[index(name)].machine.as_ref().unwrap();
            let arrived = at.find_arrived(&which(id)).ok();
            let stage = progress.stage;
            let is_good = match arrived {
                Some(arrived) => match (entry.message.receipt, stage) {
                    (Wanted::Read, Stage::Read) => arrived.read.is_some(),
                    // The answer or the receipt came too late, or was lost with best effort.
                    (_, Stage::Expired | Stage::Failed) => {
                        entry.message.validity < 3600 * S
                            || entry.message.delivery == Delivery::BestEffort
                    }
                    (Wanted::Read, Stage::Delivered) => arrived.read.is_none(),
                    (Wanted::Delivered, Stage::Delivered) => true,
                    (Wanted::Nothing, Stage::Delivered | Stage::Forwarded) => true,
                    _ => false,
                },
                // It was lost behind a node that had it.
                None if stage == Stage::Forwarded => entry.message.receipt == Wanted::Nothing,
                None => matches!(stage, Stage::Expired | Stage::Failed),
            };
            assert!(is_good, "seed {seed}: {id} at {name} is {stage:?}: {arrived:?}");
        }
    }
}

/// How many times each message is in an inbox.
fn counts(node: &Node) -> BTreeMap<Arc<str>, usize> {
    let mut counts = BTreeMap::new();
    for entry in node.machine.as_ref().unwrap().inbox(0) {
        *counts.entry(entry.message.id.clone()).or_default() += 1;
    }
    counts
}

/// Runs seeds with so many messages each; how many there were, kills, and what was lost.
fn run_seeds(seeds: u64, messages: usize) -> (usize, u32, u32) {
    let (mut accepted, mut kills, mut lost, mut deliveries) = (0, 0, 0, 0);
    for seed in 0..seeds {
        let mut network = Network::new(seed, messages);
        network.run();
        assert!(network.refused.is_empty(), "seed {seed}: {:?}", network.refused);
        network.check(seed);
        accepted += network.accepted.len();
        deliveries += network.announced.len();
        kills += network.kills;
        lost += network.lost;
    }
    println!(
        "{seeds} seeds: {accepted} messages, {deliveries} deliveries, {kills} kills, {lost} lost"
    );
    assert!(deliveries > accepted);
    (accepted, kills, lost)
}

#[test]
fn each_message_comes_exactly_once_over_a_bad_network_with_kills() {
    let (accepted, kills, lost) = run_seeds(SEEDS, 12);
    // The test has tested something.
    assert!(accepted > 24_000 && kills > 3000 && lost > 15_000);
}

#[test]
fn the_same_at_twenty_messages_a_second() {
    let (accepted, kills, lost) = run_seeds(DENSE_SEEDS, 20 * SENDING_MS as usize / 1000);
    assert!(accepted > 28_000 && kills > 100 && lost > 10_000);
}

#[test]
fn one_seed_gives_one_run() {
    let run = || {
        let mut network = Network::new(3, 12);
        network.run();
        (network.now, network.count, network.accepted, network.announced)
    };
    assert_eq!(run(), run());
}
