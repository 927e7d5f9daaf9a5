//! Generations that come: restored from symbols, and read once what is before each was read; and
//! which datagrams came.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::code::Shape;
use super::packet::{Ack, MAX_RANGES, Symbol};
use super::sent::Losses;
use super::{FIRST_GENERATION, MAX_AHEAD, MAX_HELD_BYTES};
use crate::Error;

/// How long an acknowledgement waits for more to acknowledge, at most.
pub(super) const MAX_DELAY: Duration = Duration::from_millis(25);
/// Or so many times what one takes where that is longer, up to a bound.
const SLOW_TIMES: u32 = 2;
const MAX_SLOW_DELAY: Duration = Duration::from_millis(200);
/// So many datagrams are acknowledged at once.
const MAX_UNACKNOWLEDGED: u32 = 2;

/// Of a gap in the peer's numbers no more than so many count as lost: all in all of what is
/// remembered.
const MAX_COUNTED: u64 = 1000;

/// Least time between two datagrams that is told apart.
const MIN_GAP: Duration = Duration::from_micros(10);
/// So many times of it are looked at before the least says anything, and what an older one counts.
const MIN_GAPS: u32 = 4;
const FASTEST_KEPT: f64 = 0.98;

/// A generation that is not read.
#[derive(Debug)]
struct Generation {
    after: u64,
    shape: Shape,
    symbols: BTreeMap<usize, Bytes>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Receiving {
    /// All below were read.
    below: u64,
    /// Those above that were.
    read: BTreeSet<u64>,
    open: BTreeMap<u64, Generation>,
    held_bytes: usize,
    /// Numbers of datagrams that came, each range by its first.
    ranges: BTreeMap<u64, u64>,
    greatest_at: Duration,
    /// Those of the peer's datagrams that are missing in front of one that came.
    losses: Losses,
    /// Any came.
    has_any: bool,
    /// See `fastest`, and of how many gaps.
    fastest: f64,
    gaps: u32,
    /// Datagrams since the last acknowledgement that want one, and when it goes at the latest.
    unacknowledged: u32,
    ack_at: Option<Duration>,
}

impl Receiving {
    pub(super) fn new() -> Self {
        Self {
            below: FIRST_GENERATION,
            read: BTreeSet::new(),
            open: BTreeMap::new(),
            held_bytes: 0,
            ranges: BTreeMap::new(),
            greatest_at: Duration::ZERO,
            losses: Losses::default(),
            has_any: false,
            fastest: 0.0,
            gaps: 0,
            unacknowledged: 0,
            ack_at: None,
        }
    }

    fn is_read(&self, generation: u64) -> bool {
        generation < self.below || self.read.contains(&generation)
    }

    /// A datagram of this number came, which took so many bytes on the path. Whether it is the
    /// first of this number, as far as is known.
    pub(super) fn came(&mut self, now: Duration, number: u64, bytes: usize) -> bool {
        let greatest = self.ranges.last_key_value().map(|(_, last)| *last);
        if greatest.is_none_or(|greatest| number > greatest) {
            if greatest.is_some() {
                let gap = now.saturating_sub(self.greatest_at).max(MIN_GAP).as_secs_f64();
                self.fastest = (self.fastest * FASTEST_KEPT).max(bytes as f64 / gap);
                self.gaps = self.gaps.saturating_add(1);
            }
            self.greatest_at = now;
            let missing = number.saturating_sub(greatest.unwrap_or(0) + 1);
            (0..missing.min(MAX_COUNTED)).for_each(|_| self.losses.saw(true));
            self.losses.saw(false);
            self.has_any = true;
        }
        let before = self.ranges.range(..=number).next_back().map(|(first, last)| (*first, *last));
        if before.is_some_and(|(_, last)| number <= last) {
            return false;
        }
        if greatest.is_some_and(|greatest| number < greatest) {
            self.losses.was_late();
        }
        let joined = before.filter(|(_, last)| last + 1 == number);
        let first = joined.map_or(number, |(first, _)| first);
        let last = self.ranges.remove(&(number + 1)).unwrap_or(number);
        self.ranges.insert(first, last);
        while self.ranges.len() > MAX_RANGES {
            self.ranges.pop_first();
        }
        true
    }

    /// The rate of those datagrams of late that came closest together, in bytes a second: what the
    /// path from the peer carries, about, and the one to it, as far as nothing better is known.
    pub(super) fn fastest(&self) -> Option<f64> {
        (self.gaps >= MIN_GAPS).then_some(self.fastest)
    }

    /// Share of the peer's datagrams that do not arrive; none before any came.
    pub(super) fn loss(&self) -> Option<f64> {
        self.has_any.then(|| self.losses.share())
    }

    /// The peer knows which came of those up to this number: later ones alone are acknowledged
    /// (RFC 9000 §13.2.4).
    pub(super) fn confirmed(&mut self, number: u64) {
        while self.ranges.len() > 1
            && self.ranges.first_key_value().is_some_and(|(_, last)| *last <= number)
        {
            self.ranges.pop_first();
        }
    }

    /// What came wants an acknowledgement: `at_once` where nothing else is waited for; one takes so
    /// long on the path.
    pub(super) fn wants_ack(&mut self, now: Duration, at_once: bool, takes: Duration) {
        self.unacknowledged += 1;
        // Where it takes long, more waits for it.
        let slow = Some(takes.saturating_mul(SLOW_TIMES)).filter(|delay| *delay > MAX_DELAY);
        let is_second = slow.is_none() && self.unacknowledged >= MAX_UNACKNOWLEDGED;
        let delay = slow.unwrap_or(MAX_DELAY).min(MAX_SLOW_DELAY);
        let at = if at_once || is_second { now } else { now + delay };
        self.ack_at = Some(self.ack_at.map_or(at, |before| before.min(at)));
    }

    /// When an acknowledgement goes, if nothing goes before that it can go with.
    pub(super) fn ack_at(&self) -> Option<Duration> {
        self.ack_at
    }

    /// What to acknowledge, where something came since that was done.
    pub(super) fn take_ack(&mut self, now: Duration) -> Option<Ack> {
        self.ack_at.take()?;
        self.unacknowledged = 0;
        let ranges = self.ranges.iter().rev().map(|(first, last)| (*first, *last)).collect();
        Some(Ack { delay: now.saturating_sub(self.greatest_at), ranges })
    }

    /// A symbol came, perhaps again. Errors: what no sender of ours sends.
    pub(super) fn push(&mut self, symbol: Symbol) -> Result<(), Error> {
        let Symbol { generation, after, shape, index, bytes } = symbol;
        if self.is_read(generation) {
            return Ok(());
        }
        if generation >= self.below + MAX_AHEAD {
            let limit = self.below + MAX_AHEAD - 1;
            let what = "the number of a generation";
            return Err(Error::Limit { what, value: generation, limit });
        }
        let new = || Generation { after, shape, symbols: BTreeMap::new() };
        let open = self.open.entry(generation).or_insert_with(new);
        if (open.after, open.shape.length) != (after, shape.length) {
            return Err(Error::Peer { what: "two shapes of generation", value: generation });
        }
        if open.symbols.len() == open.shape.count || shape.count < open.shape.count {
            return Ok(());
        }
        if shape.count > open.shape.count {
            // The path took none that were as long: the peer has cut it anew.
            self.held_bytes -= open.symbols.values().map(Bytes::len).sum::<usize>();
            open.symbols.clear();
            open.shape = shape;
        }
        if open.symbols.contains_key(&index) {
            return Ok(());
        }
        self.held_bytes += bytes.len();
        // A copy: the symbol shares the buffer that its datagram came in.
        open.symbols.insert(index, Bytes::copy_from_slice(&bytes));
        if self.held_bytes > MAX_HELD_BYTES {
            let (value, limit) = (self.held_bytes as u64, MAX_HELD_BYTES as u64);
            return Err(Error::Limit { what: "the bytes of unread generations", value, limit });
        }
        Ok(())
    }

    /// The next generation that is whole and has its turn.
    pub(super) fn next(&mut self) -> Result<Option<BytesMut>, Error> {
        let may = |(number, one): &(&u64, &Generation)| {
            let whole = one.symbols.len() == one.shape.count;
            let greeted = **number == FIRST_GENERATION || self.is_read(FIRST_GENERATION);
            whole && greeted && (one.after == 0 || self.is_read(one.after))
        };
        let Some(number) = self.open.iter().find(may).map(|(number, _)| *number) else {
            return Ok(None);
        };
        let Some(one) = self.open.remove(&number) else { return Ok(None) };
        self.held_bytes -= one.symbols.values().map(Bytes::len).sum::<usize>();
        self.read.insert(number);
        while self.read.remove(&self.below) {
            self.below += 1;
        }
        one.shape.restore(one.symbols.iter().map(|(index, bytes)| (*index, bytes))).map(Some)
    }
}
