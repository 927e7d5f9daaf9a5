//! What a channel holds: consumers, what they have and have not acknowledged, and what is to be
//! confirmed or committed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use proto::amqp091::machine::Publish;

use super::fault::Fault;
use super::host::QueueId;
use super::queue::Entry;
use crate::ids::Ticket;

/// Messages that a channel may have without an acknowledgement, however many it has asked for.
const MAX_UNACKED: usize = 65_535;
/// Messages and acknowledgements of a transaction.
const MAX_TRANSACTION: usize = 65_536;
/// Bytes of a transaction's messages.
const MAX_TRANSACTION_BYTES: usize = 64 << 20;

/// Who gets messages of a queue.
#[derive(Debug)]
pub(super) struct Consumer {
    pub(super) queue: QueueId,
    pub(super) no_ack: bool,
    /// Messages that it takes without having acknowledged one; 0: any number.
    pub(super) prefetch: u16,
    unacked: usize,
}

/// A message that a client has.
#[derive(Debug)]
pub(super) struct Unacked {
    pub(super) queue: QueueId,
    consumer: Option<Arc<str>>,
    pub(super) entry: Entry,
}

/// What a client says of messages that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settlement {
    pub(super) tag: u64,
    /// Of all before it too; of all where the tag is 0.
    pub(super) multiple: bool,
    pub(super) verdict: Verdict,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is done with.
    Ack,
    /// It is not wanted.
    Reject,
    /// It goes back to its queue.
    Requeue,
}

/// What is done in a transaction, in order.
#[derive(Debug)]
pub(super) enum Step {
    Publish(Publish),
    Settle(Settlement),
}

/// How a channel publishes.
#[derive(Debug, Default)]
pub(super) enum Mode {
    #[default]
    Plain,
    /// With confirms.
    Confirm(Confirms),
    /// In transactions.
    Transaction(Vec<Step>),
}

/// Messages that are to be confirmed once they are written.
#[derive(Debug, Default)]
pub(super) struct Confirms {
    last: u64,
    waiting: VecDeque<(u64, Ticket)>,
}

impl Confirms {
    /// The number of a message that came.
    pub(super) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(super) fn wait(&mut self, number: u64, ticket: Ticket) {
        self.waiting.push_back((number, ticket));
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The last number that is written with all before it, and whether it is one of several.
    pub(super) fn take(&mut self, committed: Ticket) -> Option<(u64, bool)> {
        let mut taken = None;
        while let Some((number, ticket)) = self.waiting.front()
            && *ticket <= committed
        {
            taken = Some((*number, taken.is_some()));
            self.waiting.pop_front();
        }
        taken
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Channel {
    consumers: BTreeMap<Arc<str>, Consumer>,
    unacked: BTreeMap<u64, Unacked>,
    last_tag: u64,
    last_consumer: u64,
    /// What a consumer takes that comes from now on.
    pub(super) prefetch_each: u16,
    /// What all consumers take together.
    pub(super) prefetch_all: u16,
    /// The queue that is meant where none is named.
    pub(super) last_queue: Option<Arc<str>>,
    pub(super) mode: Mode,
    transaction_bytes: usize,
}

impl Channel {
    /// A tag that none of its consumers has.
    pub(super) fn make_tag(&mut self) -> Arc<str> {
        loop {
            self.last_consumer += 1;
            let tag = format!("amq.ctag-{}", self.last_consumer);
            if !self.consumers.contains_key(tag.as_str()) {
                return tag.into();
            }
        }
    }

    pub(super) fn consumer(&self, tag: &str) -> Option<&Consumer> {
        self.consumers.get(tag)
    }

    pub(super) fn consumers(&self) -> impl Iterator<Item = (&Arc<str>, &Consumer)> {
        self.consumers.iter()
    }

    pub(super) fn add_consumer(&mut self, tag: Arc<str>, queue: QueueId, no_ack: bool) {
        let prefetch = self.prefetch_each;
        self.consumers.insert(tag, Consumer { queue, no_ack, prefetch, unacked: 0 });
    }

    pub(super) fn remove_consumer(&mut self, tag: &str) -> Option<Consumer> {
        self.consumers.remove(tag)
    }

    /// Whether a consumer takes one more message.
    pub(super) fn has_room(&self, tag: &str) -> bool {
        let Some(consumer) = self.consumers.get(tag) else { return false };
        let is_below = |count: usize, max: u16| max == 0 || count < usize::from(max);
        consumer.no_ack
            || (is_below(consumer.unacked, consumer.prefetch)
                && is_below(self.unacked.len(), self.prefetch_all)
                && self.unacked.len() < MAX_UNACKED)
    }

    /// Whether one more message may be got.
    pub(super) fn has_room_to_get(&self) -> bool {
        self.unacked.len() < MAX_UNACKED
    }

    /// The number of a message that is given.
    pub(super) fn next_tag(&mut self) -> u64 {
        self.last_tag += 1;
        self.last_tag
    }

    /// A message was given that is to be acknowledged.
    pub(super) fn hold(
        &mut self,
        tag: u64,
        queue: QueueId,
        consumer: Option<Arc<str>>,
        entry: Entry,
    ) {
        let of = consumer.as_ref().and_then(|consumer| self.consumers.get_mut(consumer));
        if let Some(of) = of {
            of.unacked += 1;
        }
        self.unacked.insert(tag, Unacked { queue, consumer, entry });
    }

    /// Takes out what is settled, in order.
    pub(super) fn settle(&mut self, settlement: &Settlement) -> Result<Vec<Unacked>, Fault> {
        let Settlement { tag, multiple, .. } = *settlement;
        let unknown = || Err(Fault::precondition(format!("unknown delivery tag {tag}")));
        let settled: Vec<Unacked> = match (multiple, tag) {
            (false, tag) => match self.unacked.remove(&tag) {
                Some(unacked) => vec![unacked],
                None => return unknown(),
            },
            (true, 0) => std::mem::take(&mut self.unacked).into_values().collect(),
            (true, tag) if tag > self.last_tag => return unknown(),
            (true, tag) => {
                let left = self.unacked.split_off(&(tag + 1));
                std::mem::replace(&mut self.unacked, left).into_values().collect()
            }
        };
        for unacked in &settled {
            let of = unacked.consumer.as_ref().and_then(|tag| self.consumers.get_mut(tag));
            if let Some(of) = of {
                of.unacked = of.unacked.saturating_sub(1);
            }
        }
        Ok(settled)
    }

    /// Adds to the transaction.
    pub(super) fn add_step(&mut self, step: Step) -> Result<(), Fault> {
        let Mode::Transaction(steps) = &mut self.mode else { return Ok(()) };
        if let Step::Publish(publish) = &step {
            self.transaction_bytes += publish.body.len() + publish.properties.len();
        }
        if steps.len() >= MAX_TRANSACTION {
            return Err(Fault::bound("steps of a transaction", MAX_TRANSACTION));
        }
        if self.transaction_bytes > MAX_TRANSACTION_BYTES {
            return Err(Fault::bound("bytes of a transaction", MAX_TRANSACTION_BYTES));
        }
        steps.push(step);
        Ok(())
    }

    /// Takes the steps of the transaction; `None` if there is no such thing on the channel.
    pub(super) fn take_steps(&mut self) -> Option<Vec<Step>> {
        let Mode::Transaction(steps) = &mut self.mode else { return None };
        self.transaction_bytes = 0;
        Some(std::mem::take(steps))
    }
}
