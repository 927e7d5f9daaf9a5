//! Generations on their way: what of which leaves next, until each has arrived.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::code::{Shape, repairs};
use super::packet::Symbol;
use super::{FIRST_GENERATION, MAX_AHEAD, MAX_GENERATION_BYTES, MAX_SYMBOL_BYTES};

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

/// A generation that has not arrived, as far as is known.
#[derive(Debug)]
struct Generation {
    key: Option<u64>,
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
        let share = self.shape.symbol_bytes() as f64 / MAX_SYMBOL_BYTES as f64;
        let most = self.shape.symbols();
        let repair = repairs(needed, most, path.loss, path.symbol_s * share, penalty_s);
        let spare = (coming + lacks).saturating_sub(needed);
        self.planned += lacks + repair.saturating_sub(spare);
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
    /// The last generation of each exchange, or of none, as long as one of it is open.
    last_of: BTreeMap<Option<u64>, u64>,
    /// What is not in a generation yet, and of which exchange.
    gathered: Vec<u8>,
    key: Option<u64>,
    /// Bytes of symbols that were planned and have not left, and of all that has not arrived.
    unsent: usize,
    held: usize,
}

impl Sending {
    pub(super) fn new() -> Self {
        Self {
            next: FIRST_GENERATION,
            open: BTreeMap::new(),
            last_of: BTreeMap::new(),
            gathered: Vec::new(),
            key: None,
            unsent: 0,
            held: 0,
        }
    }

    /// Frames are to go behind those of the same key; `ends`: nothing follows soon, so that it had
    /// better be there at the first try.
    pub(super) fn push(&mut self, key: Option<u64>, frames: &[u8], ends: bool, path: &Path) {
        // No frame goes beyond its generation.
        if key != self.key || self.gathered.len() + frames.len() > MAX_GENERATION_BYTES {
            self.close(false, path);
        }
        self.key = key;
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
        let (number, key) = (self.next, self.key);
        self.next += 1;
        // What all of the same exchange before it are read after, is read by then.
        let after = self.last_of.insert(key, number).unwrap_or(0);
        let symbols = shape.cut(&bytes);
        self.held += bytes.len();
        let (next, planned, under_way) = (0, 0, 0);
        let arrived = BTreeSet::new();
        let made = Generation { key, after, shape, symbols, next, planned, arrived, under_way };
        self.open.insert(number, made);
        if !ends {
            return self.plan(number, path, 0.0);
        }
        // What is before it of the same message has its repair only now, for now it is waited for.
        let is_its = |(at, one): &(&u64, &Generation)| **at == number || one.key == key;
        let all: Vec<u64> = match key {
            Some(_) => self.open.iter().filter(is_its).map(|(at, _)| *at).collect(),
            None => vec![number],
        };
        all.into_iter().for_each(|at| self.plan(at, path, path.round_s));
    }

    /// Plans what is lacking of a generation, and repair.
    fn plan(&mut self, number: u64, path: &Path, penalty_s: f64) {
        let Some(one) = self.open.get_mut(&number) else { return };
        let before = one.planned;
        one.plan(path, penalty_s);
        self.unsent += (one.planned - before) * one.shape.symbol_bytes();
    }

    /// Bytes that have not left yet. There is room for no more where the peer keeps no more apart.
    pub(super) fn unsent_bytes(&self) -> usize {
        match self.open.len() as u64 {
            MAX_AHEAD.. => usize::MAX,
            _ => self.unsent + self.gathered.len(),
        }
    }

    /// Bytes that have not arrived, as far as is known.
    pub(super) fn held_bytes(&self) -> usize {
        self.held + self.gathered.len()
    }

    /// Generations that may leave: no further ahead of the oldest than the peer keeps apart.
    fn sendable(&mut self) -> impl Iterator<Item = (&u64, &mut Generation)> {
        let oldest = self.open.keys().next().copied().unwrap_or(self.next);
        let within = self.open.range_mut(..oldest + MAX_AHEAD);
        within.filter(|(_, one)| one.next < one.planned)
    }

    /// The next symbol that fits into so many bytes; what was gathered so far may be among them.
    /// `beside` are those in the same datagram: two of a generation would get lost together.
    pub(super) fn next(
        &mut self,
        most: usize,
        beside: &[(u64, usize)],
        path: &Path,
    ) -> Option<Symbol> {
        if self.sendable().next().is_none() {
            self.close(false, path);
        }
        let is_apart = |(number, _): &(&u64, &mut Generation)| {
            !beside.iter().any(|(other, _)| other == *number)
        };
        let (number, one) = self.sendable().find(is_apart)?;
        let (generation, after, shape) = (*number, one.after, one.shape);
        let index = one.next % one.shape.symbols();
        let sample = Symbol { generation, after, shape, index, bytes: Bytes::new() };
        if sample.wire_len() + shape.symbol_bytes() > most {
            return None;
        }
        let (index, bytes) = one.take();
        self.unsent = self.unsent.saturating_sub(bytes.len());
        Some(Symbol { index, bytes, ..sample })
    }

    /// Whether anything is to leave.
    pub(super) fn is_ready(&mut self) -> bool {
        !self.gathered.is_empty() || self.sendable().next().is_some()
    }

    /// A symbol has arrived.
    pub(super) fn arrived(&mut self, (number, index): (u64, usize), path: &Path) {
        let Some(one) = self.open.get_mut(&number) else { return };
        one.under_way = one.under_way.saturating_sub(1);
        one.arrived.insert(index);
        if one.arrived.len() < one.shape.count {
            // One that had arrived before brings nothing.
            if one.lacks() > 0 {
                self.plan(number, path, path.round_s);
            }
            return;
        }
        self.held -= one.shape.length;
        self.unsent =
            self.unsent.saturating_sub((one.planned - one.next) * one.shape.symbol_bytes());
        let key = one.key;
        self.open.remove(&number);
        if !self.open.values().any(|other| other.key == key) {
            // Whatever comes next of it finds all before it read.
            self.last_of.remove(&key);
        }
    }

    /// A symbol is lost.
    pub(super) fn lost(&mut self, (number, _): (u64, usize), path: &Path) {
        let Some(one) = self.open.get_mut(&number) else { return };
        one.under_way = one.under_way.saturating_sub(1);
        if one.lacks() > 0 {
            self.plan(number, path, path.round_s);
        }
    }

    /// Nothing was heard of what is under way: a symbol more of the oldest generation goes, if all
    /// of it has left.
    pub(super) fn probe(&mut self) {
        if let Some(oldest) = self.open.values_mut().next().filter(|one| one.next == one.planned) {
            oldest.planned += 1;
            self.unsent += oldest.shape.symbol_bytes();
        }
    }
}
