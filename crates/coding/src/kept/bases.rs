//! Messages that both ends of a path hold, as one end keeps account of them.
//!
//! What this side sent and the peer keeps is in slots that this side gives out; what the peer sent
//! is in slots that the peer gives out. Both end with the path, so that neither side ever knows
//! more than the other. Bounded by the slots ([`Keeping::SLOTS`]) of a block each, and by
//! `MAX_BASE_BYTES` for all paths together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use codec::dictionary::Kept;
use proto::control::Keeping;

/// Messages of one class that are kept at a time: what repeats resembles the last, and each is
/// bound until the receipts of its deltas are here.
const MAX_OF_A_CLASS: usize = 3;
/// Messages of one context: services have operations, each a class.
const MAX_OF_A_CONTEXT: usize = 24;
/// Bytes of deltas, before their coding, whose receipt is awaited: they may have to be sent again.
const MAX_UNCONFIRMED_BYTES: usize = 256 << 10;
/// The same, in messages.
const MAX_UNCONFIRMED: usize = 64;
/// Kinds of messages remembered that cannot be kept.
const MAX_BARREN: usize = 64;

/// Exchanges whose messages may be encoded against each other: one service, one principal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Context {
    /// As the edge names or numbers them; never two that are to be kept apart.
    pub(crate) principal: u64,
    /// Name of the service, or its target.
    pub(crate) service: String,
}

/// A message that both sides hold, as the base of the next.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    pub(crate) slot: u64,
    /// It is of the same class.
    pub(crate) alike: bool,
    pub(crate) kept: Arc<Kept>,
}

/// What is in a slot of what was sent.
#[derive(Debug)]
enum SlotState {
    /// The message of this exchange has not left yet.
    Asked(u64),
    /// It has left. What it is known by here, and at the peer.
    Left { exchange: u64, here: Option<Arc<Kept>>, there: Option<[u8; 8]> },
    /// Both hold the same.
    Held(Arc<Kept>),
}

#[derive(Debug)]
struct Slot {
    /// Whose message it is.
    exchange: u64,
    context: Context,
    class: u64,
    state: SlotState,
    /// Deltas against it whose receipt is awaited.
    users: usize,
    /// When it was given out, and when it was used last.
    given: u64,
    used: u64,
}

/// A delta on its way, which the peer may not be able to read.
#[derive(Debug)]
struct Unconfirmed {
    plain: Bytes,
    by: By,
    at: Duration,
}

/// What a message was encoded against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The message in a slot.
    Slot(u64),
    /// The dictionary of this name.
    Dictionary([u8; 8]),
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
            SlotState::Asked(of) | SlotState::Left { exchange: of, .. } => of == exchange,
            SlotState::Held(_) => false,
        }
    }

    fn bytes(&self) -> usize {
        match &self.state {
            SlotState::Held(kept) | SlotState::Left { here: Some(kept), .. } => {
                kept.content().len()
            }
            SlotState::Asked(_) | SlotState::Left { here: None, .. } => 0,
        }
    }
}

impl Sent {
    /// Bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Messages that are held.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Kept>> {
        self.slots.values().filter_map(|slot| match &slot.state {
            SlotState::Held(kept) | SlotState::Left { here: Some(kept), .. } => Some(kept),
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
            SlotState::Held(kept) if one.context == *context => Some((slot, one, kept)),
            _ => None,
        });
        let (slot, one, kept) = held.max_by_key(|(_, one, _)| (one.class == class, one.given))?;
        Some(Base { slot, alike: one.class == class, kept: Arc::clone(kept) })
    }

    /// Whether a delta of so many bytes may still go before its receipt.
    pub(crate) fn may_send(&self, bytes: usize) -> bool {
        self.unconfirmed.len() < MAX_UNCONFIRMED
            && self.unconfirmed_bytes + bytes <= MAX_UNCONFIRMED_BYTES
    }

    /// Whether a message of this context and class could not be kept.
    pub(crate) fn is_barren(&self, context: &Context, class: u64) -> bool {
        self.barren.iter().any(|(of, barren)| (of, *barren) == (context, class))
    }

    /// A slot for the message of an exchange; what was in it is given up. None is free where all
    /// are bound.
    pub(crate) fn give(&mut self, exchange: u64, context: Context, class: u64) -> Option<u64> {
        if self.is_barren(&context, class) {
            return None;
        }
        // Sent again on the same carrier, it may have had one.
        let before = self.slots.iter().find(|(_, slot)| slot.is_of(exchange)).map(|(&at, _)| at);
        before.into_iter().for_each(|at| self.free(at));
        let count = |only: bool| {
            let alike = |one: &&Slot| one.context == context && (!only || one.class == class);
            self.slots.values().filter(alike).count()
        };
        // Where a class or context has all that it may have, its own oldest goes.
        let (of_class, of_context) =
            (count(true) >= MAX_OF_A_CLASS, count(false) >= MAX_OF_A_CONTEXT);
        let goes = |one: &Slot| {
            let bound = one.users > 0 || matches!(one.state, SlotState::Asked(_));
            !bound
                && (!of_class || one.class == class)
                && (!(of_class || of_context) || one.context == context)
        };
        let oldest = || {
            let idle = self.slots.iter().filter(|(_, one)| goes(one));
            idle.min_by_key(|(_, one)| one.used).map(|(&slot, _)| slot)
        };
        let free = (0..Keeping::SLOTS).find(|slot| !self.slots.contains_key(slot));
        let slot = free.filter(|_| !of_class && !of_context).or_else(oldest)?;
        self.clock += 1;
        self.free(slot);
        let state = SlotState::Asked(exchange);
        let (given, used) = (self.clock, self.clock);
        let users = 0;
        self.slots.insert(slot, Slot { exchange, context, class, state, users, given, used });
        Some(slot)
    }

    /// The message in a slot has left.
    pub(crate) fn left(&mut self, slot: u64) {
        if let Some(slot) = self.slots.get_mut(&slot)
            && let SlotState::Asked(exchange) = slot.state
        {
            slot.state = SlotState::Left { exchange, here: None, there: None };
        }
    }

    /// The message of an exchange is not kept here.
    pub(crate) fn give_up(&mut self, exchange: u64) {
        let of = |slot: &Slot| match slot.state {
            SlotState::Left { exchange: of, .. } => of == exchange,
            SlotState::Asked(_) | SlotState::Held(_) => false,
        };
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
            SlotState::Left { exchange: of, here, .. } if *of == exchange && here.is_none() => {
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
        let kind = (context.clone(), class);
        self.is_no_use(kind);
        self.free(at);
        Ok(())
    }

    fn is_no_use(&mut self, kind: (Context, u64)) {
        if self.barren.len() >= MAX_BARREN {
            self.barren.remove(0);
        }
        self.barren.push(kind);
    }

    /// Nobody may keep an exchange's message, as its answer says: others like it are not tried.
    pub(crate) fn disown(&mut self, exchange: u64) {
        let found = self.slots.iter().find(|(_, slot)| slot.exchange == exchange);
        let Some((at, kind)) = found.map(|(&at, slot)| (at, (slot.context.clone(), slot.class)))
        else {
            return;
        };
        self.is_no_use(kind);
        self.free(at);
    }

    /// The peer keeps the message of an exchange by this name.
    pub(crate) fn confirmed(&mut self, exchange: u64, id: [u8; 8]) -> Result<(), &'static str> {
        let found = self.slots.iter_mut().find_map(|(&at, slot)| match &mut slot.state {
            SlotState::Left { exchange: of, there, .. } if *of == exchange => Some((at, there)),
            _ => None,
        });
        // Its slot may have gone to another meanwhile.
        let Some((at, there)) = found else { return Ok(()) };
        *there = Some(id);
        self.settle(at)
    }

    fn settle(&mut self, at: u64) -> Result<(), &'static str> {
        let Some(slot) = self.slots.get_mut(&at) else { return Ok(()) };
        let SlotState::Left { here: Some(here), there: Some(there), .. } = &slot.state else {
            return Ok(());
        };
        if here.id().short() == *there {
            slot.state = SlotState::Held(Arc::clone(here));
            return Ok(());
        }
        self.free(at);
        Err("it keeps another message than was sent")
    }

    /// A message leaves that is encoded against another, or with a dictionary.
    pub(crate) fn delta(&mut self, at: Duration, exchange: u64, by: By, plain: Bytes) {
        self.arrived(exchange);
        self.clock += 1;
        if let By::Slot(slot) = by
            && let Some(slot) = self.slots.get_mut(&slot)
        {
            slot.users += 1;
            slot.used = self.clock;
        }
        self.unconfirmed_bytes += plain.len();
        self.unconfirmed.insert(exchange, Unconfirmed { plain, by, at });
    }

    /// A delta has arrived, or is given up.
    pub(crate) fn arrived(&mut self, exchange: u64) -> Option<Bytes> {
        let Unconfirmed { plain, by, .. } = self.unconfirmed.remove(&exchange)?;
        self.unconfirmed_bytes -= plain.len();
        if let By::Slot(slot) = by
            && let Some(slot) = self.slots.get_mut(&slot)
        {
            slot.users = slot.users.saturating_sub(1);
        }
        Some(plain)
    }

    /// The peer could not read a delta: its base is of no use, and its body is to be sent.
    pub(crate) fn missing(&mut self, exchange: u64) -> Option<(Bytes, By)> {
        let by = self.unconfirmed.get(&exchange)?.by;
        if let By::Slot(slot) = by {
            self.free(slot);
        }
        self.arrived(exchange).zip(Some(by))
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
        self.slots.retain(|_, slot| !matches!(slot.state, SlotState::Asked(of) if of == exchange));
    }
}

/// What the peer sent over a carrier, in its slots.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// With whose it is.
    slots: BTreeMap<u64, (u64, Arc<Kept>)>,
    bytes: usize,
}

impl Received {
    /// Keeps a message in a slot, in place of what was there.
    pub(crate) fn keep(&mut self, slot: u64, exchange: u64, kept: Arc<Kept>) {
        self.free(slot);
        self.bytes += kept.content().len();
        self.slots.insert(slot, (exchange, kept));
    }

    /// Gives up what is in a slot, if it is of this exchange.
    pub(crate) fn disown(&mut self, slot: u64, exchange: u64) {
        if self.slots.get(&slot).is_some_and(|(of, _)| *of == exchange) {
            self.free(slot);
        }
    }

    /// Gives up what is in a slot.
    pub(crate) fn free(&mut self, slot: u64) {
        self.bytes -= self.slots.remove(&slot).map_or(0, |(_, kept)| kept.content().len());
    }

    /// Messages that are held.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Kept>> {
        self.slots.values().map(|(_, kept)| kept)
    }

    /// The message of this name.
    pub(crate) fn find(&self, id: [u8; 8]) -> Option<&Arc<Kept>> {
        self.slots.values().map(|(_, kept)| kept).find(|kept| kept.id().short() == id)
    }

    /// Bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(principal: u64) -> Context {
        Context { principal, service: "http://origin".to_owned() }
    }

    fn kept(text: &str) -> Arc<Kept> {
        Arc::new(Kept::new(text.as_bytes()))
    }

    /// A message that both ends hold; its slot.
    fn holds(sent: &mut Sent, exchange: u64, principal: u64, class: u64) -> u64 {
        let slot = sent.give(exchange, context(principal), class).unwrap();
        sent.left(slot);
        let kept = kept(&format!("message {exchange}"));
        sent.confirmed(exchange, kept.id().short()).unwrap();
        sent.kept(exchange, Some(kept)).unwrap();
        slot
    }

    fn base(sent: &Sent, principal: u64, class: u64) -> Option<String> {
        let base = sent.base(&context(principal), class)?;
        Some(String::from_utf8_lossy(base.kept.content()).into_owned())
    }

    #[test]
    fn the_last_of_the_class_is_taken_else_the_last_of_the_service() {
        let mut sent = Sent::default();
        assert_eq!(base(&sent, 1, 1), None);
        holds(&mut sent, 1, 1, 1);
        holds(&mut sent, 2, 1, 2);
        assert_eq!(base(&sent, 1, 1).as_deref(), Some("message 1"));
        assert_eq!(base(&sent, 1, 3).as_deref(), Some("message 2"));
        assert_eq!(base(&sent, 2, 1), None);
        // Though the one before is in use.
        sent.delta(Duration::ZERO, 9, By::Slot(0), Bytes::new());
        assert_eq!(base(&sent, 1, 3).as_deref(), Some("message 2"));
        // Nothing is a base before both say so, or if they say different things.
        let slot = sent.give(3, context(2), 1).unwrap();
        sent.left(slot);
        assert_eq!(sent.confirmed(3, [7; 8]), Ok(()));
        assert_eq!(base(&sent, 2, 1), None);
        assert!(sent.kept(3, Some(kept("another"))).is_err());
        assert_eq!(base(&sent, 2, 1), None);
    }

    #[test]
    fn one_class_does_not_drive_out_the_others() {
        let mut sent = Sent::default();
        for class in 0..10 {
            holds(&mut sent, class + 1, 1, class);
        }
        for exchange in 100..200 {
            holds(&mut sent, exchange, 1, 0);
        }
        assert_eq!(base(&sent, 1, 9).as_deref(), Some("message 10"));
        assert_eq!(base(&sent, 1, 0).as_deref(), Some("message 199"));
        // Nor does one context.
        holds(&mut sent, 300, 2, 0);
        for exchange in 400..800 {
            holds(&mut sent, exchange, 1, exchange);
        }
        assert_eq!(base(&sent, 2, 0).as_deref(), Some("message 300"));
        assert!(sent.slots.len() <= 64);
        assert_eq!(sent.bytes(), sent.all().map(|kept| kept.content().len()).sum::<usize>());
    }

    #[test]
    fn what_is_in_use_is_not_given_up() {
        let mut sent = Sent::default();
        let slots: Vec<u64> = (1..=3).map(|exchange| holds(&mut sent, exchange, 1, 0)).collect();
        for (&slot, exchange) in slots.iter().zip(11..) {
            sent.delta(Duration::ZERO, exchange, By::Slot(slot), Bytes::from_static(b"plain"));
        }
        assert_eq!(sent.give(20, context(1), 0), None);
        assert_eq!(sent.arrived(12).as_deref(), Some(&b"plain"[..]));
        assert_eq!(sent.give(20, context(1), 0), Some(slots[1]));
        // One that has not left binds its slot until its exchange is over.
        assert_eq!(sent.give(21, context(1), 0), None);
        sent.forget(20);
        assert_eq!(sent.give(21, context(1), 0), Some(slots[1]));
        // Who does not tell of deltas binds no more than so much, and not for ever.
        for exchange in 100..200 {
            if sent.may_send(8 << 10) {
                sent.delta(Duration::ZERO, exchange, By::Slot(63), vec![0; 8 << 10].into());
            }
        }
        assert!(!sent.may_send(8 << 10));
        sent.expire(Duration::from_secs(1));
        assert!(sent.may_send(8 << 10));
    }

    #[test]
    fn a_context_that_cannot_be_kept_is_not_asked_for_again() {
        let mut sent = Sent::default();
        let slot = sent.give(1, context(1), 0).unwrap();
        sent.left(slot);
        sent.kept(1, None).unwrap();
        assert!(sent.is_barren(&context(1), 0) && !sent.is_barren(&context(2), 0));
        assert_eq!(sent.give(2, context(1), 0), None);
        assert!(sent.give(3, context(2), 0).is_some());
    }
}
