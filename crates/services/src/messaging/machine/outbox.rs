//! Messages that go from this node: its clients' and those that it passes on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::inbox::Key;
use super::peers::Item;
use crate::messaging::message::{Delivery, Message, Wanted};

/// How far a message is with one recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It is to be sent.
    Waiting,
    /// A node on the way has it.
    Forwarded,
    /// The recipient's node has it.
    Delivered,
    /// Somebody there has read it.
    Read,
    /// It cannot be delivered.
    Failed,
    /// Its validity was over first.
    Expired,
}

impl Stage {
    /// All, in their order.
    pub const ALL: [Self; 6] =
        [Self::Waiting, Self::Forwarded, Self::Delivered, Self::Read, Self::Failed, Self::Expired];

    /// Its word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Forwarded => "forwarded",
            Self::Delivered => "delivered",
            Self::Read => "read",
            Self::Failed => "failed",
            Self::Expired => "expired",
        }
    }

    /// By its word.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.name() == text)
    }
}

/// A stage, since when, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The stage.
    pub stage: Stage,
    /// Since when, since 1970.
    pub at: Duration,
    /// Why it failed.
    pub reason: Option<String>,
}

impl Progress {
    pub(super) fn new(stage: Stage, at: Duration) -> Self {
        Self { stage, at, reason: None }
    }
}

/// A message that goes from here.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Its number at this node: later messages have greater ones.
    pub number: u64,
    /// The message.
    pub message: Arc<Message>,
    /// The nodes that it has passed.
    pub hops: Vec<String>,
    /// When this node accepted it, since 1970.
    pub accepted: Duration,
    /// How far it is with each recipient.
    pub recipients: BTreeMap<Arc<str>, Progress>,
    /// Pause until it is sent again to recipients that have sent no receipt.
    pub(super) resend: Duration,
    /// When the machine has to do something about it.
    alarm: Option<Duration>,
}

impl Outgoing {
    pub(super) fn new(
        number: u64,
        accepted: Duration,
        message: Arc<Message>,
        hops: Vec<String>,
        resend: Duration,
    ) -> Self {
        let recipients = BTreeMap::new();
        Self { number, message, hops, accepted, recipients, resend, alarm: None }
    }

    /// As something that goes to nodes.
    pub(super) fn item(&self) -> Item {
        let Message { precedence, delivery, .. } = *self.message;
        Item { precedence, number: self.number, is_once: delivery == Delivery::BestEffort }
    }

    /// Whether nothing is to be sent or awaited any more.
    pub(super) fn is_settled(&self) -> bool {
        !self.recipients.values().any(|progress| self.is_open(progress.stage))
    }

    /// Whether it may still be sent to who is at a stage, or a receipt is to come of him.
    #[must_use]
    pub fn is_open(&self, stage: Stage) -> bool {
        match stage {
            Stage::Waiting => true,
            Stage::Forwarded => self.message.receipt != Wanted::Nothing,
            _ => false,
        }
    }

    fn has_failed(&self) -> bool {
        self.recipients.values().any(|progress| progress.stage == Stage::Failed)
    }

    pub(super) fn has_waiting(&self) -> bool {
        self.recipients.values().any(|progress| progress.stage == Stage::Waiting)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    entries: BTreeMap<u64, Outgoing>,
    by_key: BTreeMap<Key, u64>,
    alarms: BTreeSet<(Duration, u64)>,
    /// Of which nothing is awaited: whether it has failed somewhere, where it may be sent again,
    /// and its number.
    settled: BTreeSet<(bool, u64)>,
}

impl Outbox {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, number: u64) -> Option<&Outgoing> {
        self.entries.get(&number)
    }

    pub(super) fn find(&self, key: &Key) -> Option<&Outgoing> {
        self.entries.get(self.by_key.get(key)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Outgoing> {
        self.entries.values()
    }

    /// Those whose numbers are above `after`.
    pub(super) fn after(&self, after: u64) -> impl Iterator<Item = &Outgoing> {
        self.entries.range(after.saturating_add(1)..).map(|(_, entry)| entry)
    }

    pub(super) fn insert(&mut self, entry: Outgoing) {
        self.by_key.insert(Key::from(&*entry.message), entry.number);
        self.entries.insert(entry.number, entry);
    }

    /// Changes the progress of a recipient; false where there is none such.
    pub(super) fn put(&mut self, number: u64, node: &Arc<str>, progress: Progress) -> bool {
        let Some(entry) = self.entries.get_mut(&number) else { return false };
        entry.recipients.insert(node.clone(), progress);
        for has_failed in [false, true] {
            self.settled.remove(&(has_failed, number));
        }
        if entry.is_settled() {
            self.settled.insert((entry.has_failed(), number));
        }
        true
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Outgoing> {
        let entry = self.entries.remove(&number)?;
        self.by_key.remove(&Key::from(&*entry.message));
        self.settled.remove(&(entry.has_failed(), number));
        if let Some(at) = entry.alarm {
            self.alarms.remove(&(at, number));
        }
        Some(entry)
    }

    /// The oldest of which nothing is awaited, those that have failed last: what makes room.
    pub(super) fn oldest_settled(&self) -> Option<u64> {
        self.settled.first().map(|(_, number)| *number)
    }

    /// Doubles the pause until a message is sent again.
    pub(super) fn lengthen(&mut self, number: u64) {
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.resend = entry.resend.saturating_mul(2);
        }
    }

    /// Sets when something is due about a message.
    pub(super) fn alarm(&mut self, number: u64, at: Duration) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        if let Some(before) = entry.alarm.replace(at) {
            self.alarms.remove(&(before, number));
        }
        self.alarms.insert((at, number));
    }

    /// The next message about which something is due.
    pub(super) fn next_due(&mut self, now: Duration) -> Option<u64> {
        let (at, number) = *self.alarms.first().filter(|(at, _)| *at <= now)?;
        self.alarms.remove(&(at, number));
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.alarm = None;
        }
        Some(number)
    }

    /// When something is due next.
    pub(super) fn wake_at(&self) -> Option<Duration> {
        self.alarms.first().map(|(at, _)| *at)
    }
}
