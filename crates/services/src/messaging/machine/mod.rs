//! What a node of the messaging service does, as a machine: inputs and the time go in, what is to
//! be done comes out. One owner calls it; after each input outputs are taken until none is left.
//!
//! Nothing is answered, sent on or told of before the disk has it: changes go out in batches
//! ([`Output::Persist`]), and what depends on a batch waits for [`Input::Persisted`].

mod attempts;
mod change;
mod inbox;
mod journal;
mod outbox;
mod peers;
mod receiving;
mod reports;
mod restoring;
mod sending;
mod submitting;
#[cfg(test)]
mod tests;
mod ways;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

pub use change::{Change, Ticket};
pub use inbox::{Arrived, Key};
pub use outbox::{Outgoing, Progress, Stage};
pub use peers::Retry;

use super::message::{Draft, Transfer};
use super::receipt::Returning;
use super::refusal::Refusal;
use super::signing::Keys;
use attempts::Attempts;
use inbox::Inbox;
use journal::{Journal, Next};
use outbox::Outbox;
use peers::Peers;
use reports::Reports;

/// Whoever waits for an answer, by a number of the caller's.
pub type Token = u64;

/// How a node is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of this node.
    pub node: Arc<str>,
    /// For each other node, the one that messages to it are given to: itself or one on the way.
    pub routes: BTreeMap<Arc<str>, Arc<str>>,
    /// The nodes that groups stand for.
    pub groups: BTreeMap<String, Vec<Arc<str>>>,
    /// The keys of nodes.
    pub keys: Keys,
    /// How nodes are tried.
    pub retry: Retry,
    /// How long a request to a node may take.
    pub attempt_timeout: Duration,
    /// How long a receipt is awaited before a message that another node has is sent again.
    pub resend: Duration,
    /// How long after its validity a message of this node's clients is remembered.
    pub retention: Duration,
    /// How long a message is valid whose client does not say it.
    pub validity: Duration,
    /// Most messages in the inbox, and most that go from here.
    pub max_messages: usize,
    /// Seed of the pauses between requests that fail.
    pub seed: u64,
}

/// What goes in.
#[derive(Debug)]
pub enum Input {
    /// A client gives a message.
    Submit {
        /// Who waits.
        token: Token,
        /// The message.
        draft: Box<Draft>,
    },
    /// Another node gives a message.
    Transfer {
        /// Who waits.
        token: Token,
        /// The message.
        transfer: Transfer,
    },
    /// Another node gives a receipt.
    Receipt {
        /// Who waits.
        token: Token,
        /// The receipt.
        returning: Returning,
    },
    /// A client has read a message of the inbox.
    MarkRead {
        /// Who waits.
        token: Token,
        /// Which message.
        which: Which,
    },
    /// A client takes a message out of the inbox.
    Remove {
        /// Who waits.
        token: Token,
        /// Which message.
        which: Which,
    },
    /// A request to a node has ended.
    Sent {
        /// Which.
        attempt: u64,
        /// How.
        outcome: Sent,
    },
    /// A batch of changes is on the disk.
    Persisted {
        /// Which.
        ticket: Ticket,
    },
    /// Nothing but the time.
    Wake,
}

/// A message of the inbox, as clients name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Which {
    /// Its id.
    pub id: String,
    /// Who wrote it; needed where several have given the same id.
    pub originator: Option<String>,
}

/// How a request to a node ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The node has it on its disk.
    Taken,
    /// The node will never take it; why.
    Refused(String),
    /// The node will never take it, as it has passed that node before or has passed too many, by
    /// what it says itself of its way, which nobody signs; why.
    Loop(String),
    /// It may take it later: it has no room for it, sending took too long, or nothing tells whether
    /// it was reached; why. Other things may go to it in the meantime.
    NotNow(String),
    /// The node was not reached; why. Nothing else would reach it now either.
    Failed(String),
}

impl Sent {
    /// Why it was not taken.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Taken => None,
            Self::Refused(reason)
            | Self::Loop(reason)
            | Self::NotNow(reason)
            | Self::Failed(reason) => Some(reason),
        }
    }
}

/// What comes out.
#[derive(Debug)]
pub enum Output {
    /// An answer to whoever waits.
    Answer {
        /// Who.
        token: Token,
        /// The answer.
        answer: Result<Reply, Refusal>,
    },
    /// A request is to be made to a node.
    Send {
        /// Its number, to be said when it has ended.
        attempt: u64,
        /// Which node.
        peer: Arc<str>,
        /// What it is given.
        parcel: Parcel,
        /// How long it may take.
        within: Duration,
    },
    /// Changes are to be written to the disk, all or none.
    Persist {
        /// The number of the batch, to be said when it is there.
        ticket: Ticket,
        /// The changes in their order.
        changes: Vec<Change>,
    },
    /// Something that clients may want to know at once.
    Event(Event),
    /// When to come again with [`Input::Wake`]; `None`: not before something else comes.
    WakeAt(Option<Duration>),
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The message is on the disk.
    Accepted {
        /// Its id.
        id: Arc<str>,
        /// Whether it was not known before.
        is_new: bool,
    },
    /// What a node gave is on the disk, now or before.
    Taken,
    /// It is done.
    Done,
}

/// What a node is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parcel {
    /// A message.
    Message(Transfer),
    /// A receipt.
    Receipt(Returning),
}

/// What clients may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message has come.
    Arrived(Arrived),
    /// A message of this node's is further with a recipient.
    Progress {
        /// Which message.
        id: Arc<str>,
        /// Which recipient.
        node: Arc<str>,
        /// How far.
        progress: Progress,
    },
}

/// What is done when the disk has a batch.
#[derive(Debug)]
enum Deferred {
    Answer(Token, Result<Reply, Refusal>),
    Event(Event),
    /// A message is sent to those of its recipients that wait.
    Send(u64),
    /// A receipt is sent.
    Report(u64),
}

/// How much there is of what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Messages in the inbox.
    pub inbox: usize,
    /// Messages that go or went from here.
    pub outbox: usize,
    /// Receipts to send.
    pub receipts: usize,
    /// Things that wait for a node.
    pub waiting: usize,
}

/// How much there is in the inbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InboxExtent {
    /// The greatest number that clients are notified of.
    pub last: u64,
    /// How many messages nobody has read.
    pub unread: usize,
}

/// A node. See the module.
#[derive(Debug)]
pub struct Machine {
    settings: Settings,
    inbox: Inbox,
    outbox: Outbox,
    reports: Reports,
    peers: Peers,
    attempts: Attempts,
    journal: Journal<Deferred>,
    outputs: VecDeque<Output>,
    last_number: u64,
    /// The last number that the disk has, or is given.
    kept_number: u64,
    /// What the last id was made of: milliseconds since 1970, or one more than the one before.
    last_name: u64,
    wake_at: Option<Duration>,
}

impl Machine {
    /// A node that has no messages.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let peers = Peers::new(settings.retry, settings.seed);
        Self {
            settings,
            inbox: Inbox::default(),
            outbox: Outbox::default(),
            reports: Reports::default(),
            peers,
            attempts: Attempts::default(),
            journal: Journal::new(),
            outputs: VecDeque::new(),
            last_number: 0,
            kept_number: 0,
            last_name: 0,
            wake_at: None,
        }
    }

    /// Takes an input. `now` is since 1970 and never goes back.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        match input {
            Input::Submit { token, draft } => {
                let answer = self.submit(now, *draft);
                self.answer(token, answer);
            }
            Input::Transfer { token, transfer } => {
                let answer = self.receive(now, transfer).map(|()| Reply::Taken);
                self.answer(token, answer);
            }
            Input::Receipt { token, returning } => {
                let answer = self.receive_receipt(now, returning).map(|()| Reply::Taken);
                self.answer(token, answer);
            }
            Input::MarkRead { token, which } => {
                let answer = self.mark_read(now, &which).map(|()| Reply::Done);
                self.answer(token, answer);
            }
            Input::Remove { token, which } => {
                let answer = self.remove(now, &which).map(|()| Reply::Done);
                self.answer(token, answer);
            }
            Input::Sent { attempt, outcome } => self.sent(now, attempt, outcome),
            Input::Persisted { ticket } => {
                let after = self.journal.persisted(ticket);
                self.act(now, after);
            }
            Input::Wake => {}
        }
        self.expire(now);
        self.send_ready(now);
        self.flush(now);
        let wake_at = self.next_wake(now);
        if wake_at != self.wake_at {
            self.wake_at = wake_at;
            self.outputs.push_back(Output::WakeAt(wake_at));
        }
    }

    /// The next thing to do; `None` when there is nothing until the next input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// How much there is in the inbox, as far as the disk has it.
    #[must_use]
    pub fn inbox_extent(&self) -> InboxExtent {
        InboxExtent { last: self.inbox.announced(), unread: self.inbox.unread_count() }
    }

    /// Messages of the inbox with numbers above `after`, in their order, that the disk has.
    pub fn inbox(&self, after: u64) -> impl Iterator<Item = &Arrived> {
        self.inbox.after(after)
    }

    /// Of these the ones that nobody has read.
    pub fn unread(&self, after: u64) -> impl Iterator<Item = &Arrived> {
        self.inbox.unread_after(after)
    }

    /// A message of the inbox that the disk has.
    ///
    /// # Errors
    /// [`super::Reason::Unknown`] where there is none, [`super::Reason::Conflict`] where several
    /// originators gave its id and none is named.
    pub fn find_arrived(&self, which: &Which) -> Result<&Arrived, Refusal> {
        let entry = self.settings.find(&self.inbox, which)?;
        match entry.number <= self.inbox.announced() {
            true => Ok(entry),
            false => Err(self.settings.not_here(&which.id)),
        }
    }

    /// Messages of this node's clients with numbers above `after`, in their order.
    pub fn outbox(&self, after: u64) -> impl Iterator<Item = &Outgoing> {
        self.outbox.after(after).filter(|entry| self.settings.is_own(entry))
    }

    /// A message of this node's clients.
    #[must_use]
    pub fn find_outgoing(&self, id: &str) -> Option<&Outgoing> {
        self.outbox.find(&Key::new(&self.settings.node, id))
    }

    /// How much there is of what.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        Sizes {
            inbox: self.inbox.len(),
            outbox: self.outbox.len(),
            receipts: self.reports.len(),
            waiting: self.peers.waiting(),
        }
    }

    fn answer(&mut self, token: Token, answer: Result<Reply, Refusal>) {
        match answer {
            // A refusal depends on nothing that was written.
            Err(_) => self.outputs.push_back(Output::Answer { token, answer }),
            Ok(_) => self.journal.after(Deferred::Answer(token, answer)),
        }
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Gives out what has to be written, and does what waits for nothing.
    fn flush(&mut self, now: Duration) {
        if self.last_number != self.kept_number && !self.journal.is_writing() {
            self.kept_number = self.last_number;
            let (number, name) = (self.last_number, self.last_name);
            self.journal.change(Change::Given { number, name });
        }
        loop {
            match self.journal.next() {
                Next::Write(ticket, changes) => {
                    self.outputs.push_back(Output::Persist { ticket, changes });
                    return;
                }
                Next::Now(after) => self.act(now, after),
                Next::Nothing => return,
            }
        }
    }

    fn act(&mut self, now: Duration, after: Vec<Deferred>) {
        for deferred in after {
            match deferred {
                Deferred::Answer(token, answer) => {
                    self.outputs.push_back(Output::Answer { token, answer });
                }
                Deferred::Event(event) => {
                    if let Event::Arrived(arrived) = &event {
                        self.inbox.tell(arrived.number);
                    }
                    self.outputs.push_back(Output::Event(event));
                }
                Deferred::Send(number) => self.enqueue(number),
                Deferred::Report(number) => self.enqueue_report(number),
            }
        }
        self.send_ready(now);
    }

    fn next_wake(&self, now: Duration) -> Option<Duration> {
        let times = [
            self.inbox.wake_at(),
            self.outbox.wake_at(),
            self.reports.wake_at(),
            self.peers.wake_at(now),
        ];
        times.into_iter().flatten().min()
    }
}
