//! Events read ahead where all of a stream is there: what every call costs is paid once for many.

use super::{Core, ENDED, Fault, Item, Reader, Span};

/// Events that are read ahead at most, and bytes of their own texts after which no other is.
const EVENTS: usize = 64;
const BYTES: usize = 4096;

/// Events as they are read, and what was not handed out of them.
#[derive(Debug)]
pub(super) struct Ahead {
    /// Events with their values. They are written here at once: to copy an event just made would
    /// wait for its parts to be in memory.
    events: Box<[(Item, Span); EVENTS]>,
    /// How many there are.
    count: usize,
    /// How many there may be in this batch.
    most: usize,
    /// How many of them were handed out.
    taken: usize,
    /// What comes behind them.
    fault: Option<Fault>,
    /// The texts of these events for who wants strings, once one was looked at.
    strings: String,
}

impl Ahead {
    pub(super) fn new() -> Self {
        Self {
            events: Box::new([(Item::End, Span::default()); EVENTS]),
            count: 0,
            most: EVENTS,
            taken: 0,
            fault: None,
            strings: String::new(),
        }
    }

    pub(super) fn reset(&mut self) {
        self.strings.clear();
        self.strings.shrink_to(super::KEPT_BYTES);
        (self.count, self.taken, self.fault) = (0, 0, None);
    }

    /// Forgets all events.
    #[inline]
    pub(super) fn clear(&mut self) {
        (self.count, self.taken) = (0, 0);
    }

    /// The texts that strings were made of are gone.
    #[inline]
    pub(super) fn forget_strings(&mut self) {
        self.strings.clear();
    }

    /// Adds an event.
    #[inline(always)]
    pub(super) fn push(&mut self, item: Item, value: Span) {
        if let Some(place) = self.events.get_mut(self.count) {
            *place = (item, value);
            self.count += 1;
        }
    }

    /// The next event is the last of its batch: who writes it may refuse it, and says where.
    pub(super) fn stop(&mut self) {
        self.most = 0;
    }

    /// Hands out the newest event.
    #[inline]
    pub(super) fn skip(&mut self) {
        self.taken = self.count;
    }

    #[inline(always)]
    fn at(&self, count: usize) -> &(Item, Span) {
        &self.events[count.wrapping_sub(1) % EVENTS]
    }

    /// The event that was handed out last.
    #[inline(always)]
    pub(super) fn last(&self) -> &(Item, Span) {
        self.at(self.taken)
    }

    /// The event that was read last.
    pub(super) fn newest(&self) -> Item {
        self.at(self.count).0
    }

    /// Makes strings of `texts`, those of all events, if they are not.
    #[inline]
    pub(super) fn look(&mut self, span: Span, texts: &[u8]) {
        if self.str(span).is_none() {
            self.strings.clear();
            self.strings.push_str(std::str::from_utf8(texts).unwrap_or_default());
        }
    }

    /// An event's own text, if it was looked at.
    #[inline]
    pub(super) fn str(&self, span: Span) -> Option<&str> {
        self.strings.get(span.range())
    }
}

impl Core {
    /// Hands out the next event that was read ahead; see [`Core::item`].
    #[inline(always)]
    pub(crate) fn take(&mut self) -> bool {
        let more = self.ahead.taken < self.ahead.count;
        self.ahead.taken += usize::from(more);
        more
    }

    /// Whether events can be read ahead: there is one set of tables, and values stand where they
    /// belong.
    pub(crate) fn may_read_ahead(&self) -> bool {
        self.plan.is_none() && !self.options.self_contained
    }

    /// Reads events for [`Core::take`], where all of the stream is there; or says why there are
    /// none.
    #[inline(never)]
    pub(crate) fn read_ahead(&mut self, from: &mut Reader) -> Result<(), Fault> {
        if let Some(fault) = self.ahead.fault {
            return Err(fault);
        }
        self.check()?;
        self.tables.values.forget();
        self.scratch.clear();
        self.ahead.forget_strings();
        self.ahead.clear();
        self.ahead.most = EVENTS;
        while self.ahead.count < self.ahead.most
            && self.scratch.len() <= BYTES
            && self.rule != ENDED
        {
            let begin = from.at;
            if let Err(fault) = self.event(from) {
                // What was read behind the end was zeros: no reason to complain about it.
                self.ahead.fault = Some(if from.over() { Fault::Short } else { fault });
                from.at = begin;
                break;
            }
        }
        match self.ahead.fault {
            Some(fault) if self.ahead.count == 0 => Err(fault),
            _ => Ok(()),
        }
    }
}
