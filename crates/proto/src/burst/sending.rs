//! Generations on their way: what of which leaves next, until each has arrived.
//!
//! The more urgent ones leave first, whatever is under way of others; among those of the same
//! urgency the older ones do. No generation leaves that is so far ahead of the oldest that the peer
//! would not keep it, so that the least urgent is not held up for ever.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::code::{Shape, repairs};
use super::packet::Symbol;
use super::sent::Which;
use super::{FIRST_GENERATION, FULL_BYTES, MAX_AHEAD, MAX_GENERATION_BYTES, MAX_SYMBOL_BYTES};
use crate::urgency::Urgency;

/// What the path is like, for how much repair is worth while.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// Most bytes of a symbol.
    pub(super) symbol_bytes: usize,
    /// Share of symbols that get lost.
    pub(super) loss: f64,
    /// Seconds that a full symbol takes to leave.
    pub(super) symbol_s: f64,
    /// Seconds until it shows that a symbol is lost, and another could be there.
    pub(super) round_s: f64,
}

/// How many times as long a wait counts for what is so urgent, against the time that repair takes
/// from the rest.
fn weight(urgency: Urgency) -> f64 {
    let above = Urgency::DEFAULT.get().saturating_sub(urgency.get());
    f64::from(1_u32 << (above + above.min(1)))
}

/// In what order frames are read: each behind those before it with the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// Behind none.
    Free,
    /// Those of no exchange.
    None,
    /// Those of one.
    Exchange(u64),
}

/// A generation that has not arrived, as far as is known.
#[derive(Debug)]
struct Generation {
    key: Key,
    urgency: Urgency,
    after: u64,
    shape: Shape,
    /// The source symbols, and the repair symbols behind them once one is to leave.
    symbols: Vec<Bytes>,
    /// Those below have left at least once.
    next: usize,
    /// Those below are to leave.
    planned: usize,
    arrived: BTreeSet<usize>,
    under_way: usize,
}

impl Generation {
    /// Symbols that it still takes, if all arrive that are under way or planned.
    fn lacks(&self) -> usize {
        let coming = self.under_way + (self.planned - self.next);
        self.shape.count.saturating_sub(self.arrived.len() + coming)
    }

    /// Plans more: what is lacking, and repair by what the path is like.
    fn plan(&mut self, path: &Path, penalty_s: f64) {
        let coming = self.under_way + (self.planned - self.next);
        let needed = self.shape.count.saturating_sub(self.arrived.len());
        let lacks = needed.saturating_sub(coming);
        // In a datagram of its own.
        let beside = (FULL_BYTES - MAX_SYMBOL_BYTES) as f64;
        let share = (self.shape.symbol_bytes() as f64 + beside) / FULL_BYTES as f64;
        let most = self.shape.symbols();
        let repair = repairs(needed, most, path.loss, path.symbol_s * share, penalty_s);
        let spare = (coming + lacks).saturating_sub(needed);
        self.planned += lacks + repair.saturating_sub(spare);
    }

    /// Is cut into symbols of no more than so many bytes, of which none has left.
    fn cut_anew(&mut self, most: usize) {
        let source: Vec<&[u8]> =
            self.symbols.iter().take(self.shape.count).map(|one| &one[..]).collect();
        let mut bytes = source.concat();
        bytes.truncate(self.shape.length);
        self.shape = Shape::new(bytes.len(), most);
        self.symbols = self.shape.cut(&bytes.into());
        (self.next, self.planned, self.under_way) = (0, 0, 0);
        self.arrived.clear();
    }

    /// The next symbol: its index and bytes. All that there are leave before one leaves again.
    fn take(&mut self) -> (usize, Bytes) {
        if self.next >= self.shape.count && self.symbols.len() == self.shape.count {
            let repair = self.shape.repair_of(&self.symbols);
            self.symbols.extend(repair);
        }
        let index = self.next % self.symbols.len().max(1);
        self.next += 1;
        self.under_way += 1;
        (index, self.symbols.get(index).cloned().unwrap_or_default())
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Sending {
    next: u64,
    open: BTreeMap<u64, Generation>,
    /// Those of which something is to leave, in the order in which it does.
    ready: BTreeSet<(Urgency, u64)>,
    /// The last generation of each key, as long as one of it is open.
    last_of: BTreeMap<Key, u64>,
    /// What is not in a generation yet, and of which key and urgency.
    gathered: Vec<u8>,
    key: Key,
    urgency: Urgency,
    /// Bytes of symbols that were planned and have not left, by urgency.
    unsent: [usize; Urgency::COUNT],
    /// Bytes of all that has not arrived.
    held: usize,
}

impl Sending {
    pub(super) fn new() -> Self {
        Self {
            next: FIRST_GENERATION,
            open: BTreeMap::new(),
            ready: BTreeSet::new(),
            last_of: BTreeMap::new(),
            gathered: Vec::new(),
            key: Key::Free,
            urgency: Urgency::DEFAULT,
            unsent: [0; Urgency::COUNT],
            held: 0,
        }
    }

    /// Frames are to go behind those of the same key; `ends`: nothing follows soon, so that it had
    /// better be there at the first try.
    pub(super) fn push(
        &mut self,
        (key, urgency): (Key, Urgency),
        frames: &[u8],
        ends: bool,
        path: &Path,
    ) {
        // No frame goes beyond its generation.
        let is_full = self.gathered.len() + frames.len() > MAX_GENERATION_BYTES;
        if (key, urgency) != (self.key, self.urgency) || is_full {
            self.close(false, path);
        }
        (self.key, self.urgency) = (key, urgency);
        self.gathered.extend_from_slice(frames);
        if ends {
            self.close(true, path);
        }
    }

    /// What was gathered becomes a generation; `ends` as above.
    pub(super) fn close(&mut self, ends: bool, path: &Path) {
        if self.gathered.is_empty() {
            return;
        }
        let bytes = Bytes::from(std::mem::take(&mut self.gathered));
        let shape = Shape::new(bytes.len(), path.symbol_bytes);
        let (number, key, urgency) = (self.next, self.key, self.urgency);
        self.next += 1;
        // What all of the same key before it are read after, is read by then.
        let after = match key {
            Key::Free => 0,
            key => self.last_of.insert(key, number).unwrap_or(0),
        };
        let symbols = shape.cut(&bytes);
        self.held += bytes.len();
        let (next, planned, under_way) = (0, 0, 0);
        let arrived = BTreeSet::new();
        self.open.insert(
            number,
            Generation { key, urgency, after, shape, symbols, next, planned, arrived, under_way },
        );
        if !ends {
            return self.plan(number, path, 0.0);
        }
        // What is before it of the same message has its repair only now, for now it is waited for.
        let is_its = |(at, one): &(&u64, &Generation)| **at == number || one.key == key;
        let all: Vec<u64> = match key {
            Key::Exchange(_) => self.open.iter().filter(is_its).map(|(at, _)| *at).collect(),
            Key::None | Key::Free => vec![number],
        };
        all.into_iter().for_each(|at| self.plan(at, path, path.round_s));
    }

    /// Plans what is lacking of a generation, and repair.
    fn plan(&mut self, number: u64, path: &Path, penalty_s: f64) {
        let Some(one) = self.open.get_mut(&number) else { return };
        let before = one.planned;
        let weight = match one.key {
            Key::Exchange(_) => weight(one.urgency),
            Key::None | Key::Free => 1.0,
        };
        one.plan(path, penalty_s * weight);
        let more = (one.planned - before) * one.shape.symbol_bytes();
        self.unsent[usize::from(one.urgency.get())] += more;
        self.note(number);
    }

    /// Something is to leave of a generation, or nothing more.
    fn note(&mut self, number: u64) {
        let Some(one) = self.open.get(&number) else { return };
        match one.next < one.planned {
            true => self.ready.insert((one.urgency, number)),
            false => self.ready.remove(&(one.urgency, number)),
        };
    }

    /// Bytes that have not left yet, and do so before what is as urgent as this. There is room for
    /// no more where the peer keeps no more apart.
    pub(super) fn unsent_bytes(&self, urgency: Urgency) -> usize {
        let gathered = if self.urgency <= urgency { self.gathered.len() } else { 0 };
        match self.open.len() as u64 {
            MAX_AHEAD.. => usize::MAX,
            _ => self.unsent[..=usize::from(urgency.get())].iter().sum::<usize>() + gathered,
        }
    }

    /// So many bytes less are to leave.
    fn sent(&mut self, urgency: Urgency, bytes: usize) {
        let unsent = &mut self.unsent[usize::from(urgency.get())];
        *unsent = unsent.saturating_sub(bytes);
    }

    /// Bytes that have not arrived, as far as is known.
    pub(super) fn held_bytes(&self) -> usize {
        self.held + self.gathered.len()
    }

    /// Generations that may leave: no further ahead of the oldest than the peer keeps apart.
    fn sendable(&self) -> impl Iterator<Item = (Urgency, u64)> {
        let oldest = self.open.keys().next().copied().unwrap_or(self.next);
        self.ready.iter().filter(move |(_, number)| *number < oldest + MAX_AHEAD).copied()
    }

    /// The next symbol that fits into so many bytes; what was gathered so far may be among them.
    /// `beside` are those in the same datagram: two of a generation would get lost together.
    pub(super) fn next(&mut self, most: usize, beside: &[Which], path: &Path) -> Option<Symbol> {
        if self.sendable().next().is_none_or(|(urgency, _)| self.urgency < urgency) {
            self.close(false, path);
        }
        let is_apart =
            |(_, number): &(Urgency, u64)| !beside.iter().any(|one| one.generation == *number);
        let (_, generation) = self.sendable().find(is_apart)?;
        let one = self.open.get_mut(&generation)?;
        let (after, shape) = (one.after, one.shape);
        let index = one.next % one.shape.symbols();
        let sample = Symbol { generation, after, shape, index, bytes: Bytes::new() };
        if sample.wire_len() + shape.symbol_bytes() > most {
            return None;
        }
        let (index, bytes) = one.take();
        let urgency = one.urgency;
        self.sent(urgency, bytes.len());
        self.note(generation);
        Some(Symbol { index, bytes, ..sample })
    }

    /// Whether anything is to leave.
    pub(super) fn is_ready(&self) -> bool {
        !self.gathered.is_empty() || self.sendable().next().is_some()
    }

    /// A symbol has arrived.
    pub(super) fn arrived(&mut self, symbol: Which, path: &Path) {
        let Which { generation: number, index, .. } = symbol;
        let Some(one) = self.of(symbol) else { return };
        one.under_way = one.under_way.saturating_sub(1);
        one.arrived.insert(index);
        if one.arrived.len() < one.shape.count {
            // One that had arrived before brings nothing.
            if one.lacks() > 0 {
                self.plan(number, path, path.round_s);
            }
            return;
        }
        let spare = (one.planned - one.next) * one.shape.symbol_bytes();
        let (key, urgency, length) = (one.key, one.urgency, one.shape.length);
        self.held -= length;
        self.sent(urgency, spare);
        self.ready.remove(&(urgency, number));
        self.open.remove(&number);
        if !self.open.values().any(|other| other.key == key) {
            // Whatever comes next of it finds all before it read.
            self.last_of.remove(&key);
        }
    }

    /// A symbol is lost.
    pub(super) fn lost(&mut self, symbol: Which, path: &Path) {
        let Some(one) = self.of(symbol) else { return };
        one.under_way = one.under_way.saturating_sub(1);
        if one.lacks() > 0 {
            self.plan(symbol.generation, path, path.round_s);
        }
    }

    /// The generation of a symbol, unless it has arrived or was cut anew since.
    fn of(&mut self, symbol: Which) -> Option<&mut Generation> {
        let one = self.open.get_mut(&symbol.generation)?;
        (one.shape.count == symbol.count).then_some(one)
    }

    /// The path takes no symbols that are longer than `path` has them: what has not arrived is cut
    /// anew, and leaves again.
    pub(super) fn shorten(&mut self, path: &Path) {
        let is_long = |(_, one): &(&u64, &Generation)| one.shape.symbol_bytes() > path.symbol_bytes;
        let long: Vec<u64> = self.open.iter().filter(is_long).map(|(at, _)| *at).collect();
        for number in long {
            let Some(one) = self.open.get_mut(&number) else { continue };
            let spare = (one.planned - one.next) * one.shape.symbol_bytes();
            let urgency = one.urgency;
            one.cut_anew(path.symbol_bytes);
            self.sent(urgency, spare);
            self.plan(number, path, path.round_s);
        }
    }

    /// Nothing was heard of what is under way: a symbol more of the oldest generation goes, if all
    /// of it has left.
    pub(super) fn probe(&mut self) {
        let oldest = self.open.iter_mut().next().filter(|(_, one)| one.next == one.planned);
        if let Some((number, oldest)) = oldest {
            oldest.planned += 1;
            self.unsent[usize::from(oldest.urgency.get())] += oldest.shape.symbol_bytes();
            let number = *number;
            self.note(number);
        }
    }
}
