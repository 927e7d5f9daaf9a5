//! Messages that both ends of a carrier hold, as one end keeps account of them.
//!
//! What this side sent and the peer keeps is in slots that this side gives out; what the peer sent
//! is in slots that the peer gives out. Both end with the carrier, so that neither side ever knows
//! more than the other. Bounded by the slots ([`Keeping::SLOTS`]) of a block each, and by
//! [`crate::Config::base_bytes`] for all carriers together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use codec::dictionary::Kept;
use proto::stream::Keeping;

/// Messages of one context that are kept at a time: what repeats resembles the last, and each is
/// bound until the receipts of those that were told by it are here.
const MOST_OF_A_CONTEXT: usize = 4;
/// Bytes of deltas, before their coding, whose receipt is awaited: they may have to be sent again.
const MOST_UNCONFIRMED_BYTES: usize = 256 << 10;
/// The same, in messages.
const MOST_UNCONFIRMED: usize = 64;
/// Kinds of messages remembered that cannot be kept.
const MOST_BARREN: usize = 64;

/// Those whose messages may be told by each other's: one service, one principal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Context {
    /// As the edge numbers them; never two that are to be kept apart.
    pub(crate) principal: u64,
    /// Name of the service, or its target.
    pub(crate) service: String,
}

/// A message that both sides hold, for one that is to be told by it.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    pub(crate) slot: u64,
    pub(crate) kept: Arc<Kept>,
}

/// What is in a slot of what was sent.
#[derive(Debug)]
enum State {
    /// The message of this exchange has not left yet.
    Asked(u64),
    /// It has left. What it is known by here, and at the peer.
    Left { exchange: u64, here: Option<Arc<Kept>>, there: Option<[u8; 8]> },
    /// Both hold the same.
    Held(Arc<Kept>),
}

#[derive(Debug)]
struct Slot {
    context: Context,
    class: u64,
    state: State,
    /// Deltas told by it whose receipt is awaited.
    users: usize,
    /// When it was given out or used.
    used: u64,
}

/// A delta on its way, which the peer may not be able to read.
#[derive(Debug)]
struct Unconfirmed {
    plain: Bytes,
    slot: u64,
    at: Duration,
}

/// What this side sent over a carrier.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    slots: BTreeMap<u64, Slot>,
    unconfirmed: BTreeMap<u64, Unconfirmed>,
    unconfirmed_bytes: usize,
    /// Contexts and classes of which a message could not be kept.
    barren: Vec<(Context, u64)>,
    bytes: usize,
    clock: u64,
}

impl Slot {
    /// Whether it is still to become the message of an exchange.
    fn is_of(&self, exchange: u64) -> bool {
        match self.state {
            State::Asked(of) | State::Left { exchange: of, .. } => of == exchange,
            State::Held(_) => false,
        }
    }

    fn bytes(&self) -> usize {
        match &self.state {
            State::Held(kept) | State::Left { here: Some(kept), .. } => kept.content().len(),
            State::Asked(_) | State::Left { here: None, .. } => 0,
        }
    }
}

impl Sent {
    /// Bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Messages that are held, for tests.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Kept>> {
        self.slots.values().filter_map(|slot| match &slot.state {
            State::Held(kept) | State::Left { here: Some(kept), .. } => Some(kept),
            _ => None,
        })
    }

    /// Gives up a slot.
    fn free(&mut self, slot: u64) {
        self.bytes -= self.slots.remove(&slot).map_or(0, |slot| slot.bytes());
    }

    /// The message to tell the next one of this context and class by: the last of its class, else
    /// the last of all.
    pub(crate) fn base(&self, context: &Context, class: u64) -> Option<Base> {
        let held = self.slots.iter().filter_map(|(&slot, one)| match &one.state {
            State::Held(kept) if one.context == *context => Some((slot, one, kept)),
            _ => None,
        });
        let (slot, _, kept) = held.max_by_key(|(_, one, _)| (one.class == class, one.used))?;
        Some(Base { slot, kept: Arc::clone(kept) })
    }

    /// Whether a delta of so many bytes may still go before its receipt.
    pub(crate) fn may_send(&self, bytes: usize) -> bool {
        self.unconfirmed.len() < MOST_UNCONFIRMED
            && self.unconfirmed_bytes + bytes <= MOST_UNCONFIRMED_BYTES
    }

    /// A slot for the message of an exchange; what was in it is given up. None is free where all
    /// are bound.
    pub(crate) fn give(&mut self, exchange: u64, context: Context, class: u64) -> Option<u64> {
        if self.barren.iter().any(|(of, barren)| (of, *barren) == (&context, class)) {
            return None;
        }
        // Sent again on the same carrier, it may have had one.
        let before = self.slots.iter().find(|(_, slot)| slot.is_of(exchange)).map(|(&at, _)| at);
        before.into_iter().for_each(|at| self.free(at));
        let of_context = self.slots.values().filter(|slot| slot.context == context).count();
        let free = (0..Keeping::SLOTS).find(|slot| !self.slots.contains_key(slot));
        let oldest = || {
            let idle = self.slots.iter().filter(|(_, slot)| {
                let bound = slot.users > 0 || matches!(slot.state, State::Asked(_));
                !bound && (of_context < MOST_OF_A_CONTEXT || slot.context == context)
            });
            idle.min_by_key(|(_, slot)| slot.used).map(|(&slot, _)| slot)
        };
        let slot = free.filter(|_| of_context < MOST_OF_A_CONTEXT).or_else(oldest)?;
        self.clock += 1;
        self.free(slot);
        let state = State::Asked(exchange);
        self.slots.insert(slot, Slot { context, class, state, users: 0, used: self.clock });
        Some(slot)
    }

    /// The message in a slot has left.
    pub(crate) fn left(&mut self, slot: u64) {
        if let Some(slot) = self.slots.get_mut(&slot)
            && let State::Asked(exchange) = slot.state
        {
            slot.state = State::Left { exchange, here: None, there: None };
        }
    }

    /// The message of an exchange is not kept here.
    pub(crate) fn give_up(&mut self, exchange: u64) {
        let of =
            |slot: &Slot| matches!(slot.state, State::Left { exchange: of, .. } if of == exchange);
        let found = self.slots.iter().find(|(_, slot)| of(slot)).map(|(&at, _)| at);
        found.into_iter().for_each(|at| self.free(at));
    }

    /// What is kept here of the message of an exchange; `None` where it cannot be.
    pub(crate) fn kept(
        &mut self,
        exchange: u64,
        kept: Option<Arc<Kept>>,
    ) -> Result<(), &'static str> {
        let found = self.slots.iter_mut().find_map(|(&at, slot)| match &mut slot.state {
            State::Left { exchange: of, here, .. } if *of == exchange && here.is_none() => {
                Some((at, here, (&slot.context, slot.class)))
            }
            _ => None,
        });
        let Some((at, here, (context, class))) = found else { return Ok(()) };
        if let Some(kept) = kept {
            self.bytes += kept.content().len();
            *here = Some(kept);
            return self.settle(at);
        }
        if self.barren.len() >= MOST_BARREN {
            self.barren.remove(0);
        }
        self.barren.push((context.clone(), class));
        self.free(at);
        Ok(())
    }

    /// The peer keeps the message of an exchange by this name.
    pub(crate) fn confirmed(&mut self, exchange: u64, id: [u8; 8]) -> Result<(), &'static str> {
        let found = self.slots.iter_mut().find_map(|(&at, slot)| match &mut slot.state {
            State::Left { exchange: of, there, .. } if *of == exchange => Some((at, there)),
            _ => None,
        });
        // Its slot may have gone to another meanwhile.
        let Some((at, there)) = found else { return Ok(()) };
        *there = Some(id);
        self.settle(at)
    }

    fn settle(&mut self, at: u64) -> Result<(), &'static str> {
        let Some(slot) = self.slots.get_mut(&at) else { return Ok(()) };
        let State::Left { here: Some(here), there: Some(there), .. } = &slot.state else {
            return Ok(());
        };
        if here.id().short() == *there {
            slot.state = State::Held(Arc::clone(here));
            return Ok(());
        }
        self.free(at);
        Err("it keeps another message than was sent")
    }

    /// A delta leaves that is told by a slot's message.
    pub(crate) fn delta(&mut self, at: Duration, exchange: u64, slot: u64, plain: Bytes) {
        self.arrived(exchange);
        self.clock += 1;
        if let Some(slot) = self.slots.get_mut(&slot) {
            slot.users += 1;
            slot.used = self.clock;
        }
        self.unconfirmed_bytes += plain.len();
        self.unconfirmed.insert(exchange, Unconfirmed { plain, slot, at });
    }

    /// A delta has arrived, or is given up.
    pub(crate) fn arrived(&mut self, exchange: u64) -> Option<Bytes> {
        let Unconfirmed { plain, slot, .. } = self.unconfirmed.remove(&exchange)?;
        self.unconfirmed_bytes -= plain.len();
        if let Some(slot) = self.slots.get_mut(&slot) {
            slot.users = slot.users.saturating_sub(1);
        }
        Some(plain)
    }

    /// The peer could not read a delta: its base is of no use, and its body is to be sent.
    pub(crate) fn missing(&mut self, exchange: u64) -> Option<Bytes> {
        let slot = self.unconfirmed.get(&exchange)?.slot;
        self.free(slot);
        self.arrived(exchange)
    }

    /// Deltas that left before `since` are not waited for any more.
    pub(crate) fn expire(&mut self, since: Duration) {
        let late = self.unconfirmed.iter().filter(|(_, one)| one.at < since);
        for exchange in late.map(|(&exchange, _)| exchange).collect::<Vec<_>>() {
            self.arrived(exchange);
        }
    }

    /// An exchange is over: what it had not sent yet will not come.
    pub(crate) fn forget(&mut self, exchange: u64) {
        self.slots.retain(|_, slot| !matches!(slot.state, State::Asked(of) if of == exchange));
    }
}

/// What the peer sent over a carrier, in its slots.
#[derive(Debug, Default)]
pub(crate) struct Received {
    slots: BTreeMap<u64, Arc<Kept>>,
    bytes: usize,
}

impl Received {
    /// Keeps a message in a slot, in place of what was there.
    pub(crate) fn keep(&mut self, slot: u64, kept: Arc<Kept>) {
        self.free(slot);
        self.bytes += kept.content().len();
        self.slots.insert(slot, kept);
    }

    /// Gives up what is in a slot.
    pub(crate) fn free(&mut self, slot: u64) {
        self.bytes -= self.slots.remove(&slot).map_or(0, |kept| kept.content().len());
    }

    /// Messages that are held, for tests.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Kept>> {
        self.slots.values()
    }

    /// The message of this name.
    pub(crate) fn find(&self, id: [u8; 8]) -> Option<&Arc<Kept>> {
        self.slots.values().find(|kept| kept.id().short() == id)
    }

    /// Bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
