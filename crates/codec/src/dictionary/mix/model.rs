//! Probability of the next bit: contexts of many kinds, mixed.
//!
//! The design follows what is known from the family of PAQ and lpaq (M. Mahoney): bit histories in
//! hashed slots, maps from a history to a probability, match models, a gated mixer. The contexts
//! for structure are ours.

use super::{
    logistic::{squash, stretch},
    mixer::{Mixer, float},
    syntax::{Syntax, mix},
};

/// Hashed contexts.
const CONTEXTS: usize = 12;
/// Inputs of the mixer: two a context, two a match, one for end tags, a constant; then zeros.
const INPUTS: usize = (2 * CONTEXTS + 2 * MATCHES + 2).next_multiple_of(8);
/// Inputs of the second layer: what each set says, and zeros.
const OUTPUTS: usize = 8;
const MATCHES: usize = 2;
/// Bytes that the hash of each match model covers.
const MATCH_LENGTHS: [usize; MATCHES] = [5, 12];
/// Longest match that is counted.
const MAX_MATCH: usize = 48;
/// Mispredictions after which a match is let go.
const MISSES: u32 = 8;
const HISTORIES: usize = 128;
/// Bits that slots and places do not use.
const SLOT_DIRTY: u32 = 1 << 16;
const PLACE_DIRTY: u32 = 1 << 31;
const SETS: [usize; 3] = [64, 256, 13 * 8];

/// Probability of 16 bits and how often it was taught, in one word.
#[derive(Clone, Copy, Debug)]
struct Cell(u32);

impl Cell {
    fn new(p: i32) -> Self {
        Self(p.clamp(32, 65_504).unsigned_abs() << 16)
    }

    fn p(self) -> i32 {
        (self.0 >> 16).cast_signed()
    }

    fn teach(&mut self, bit: i32, most: u32) {
        let count = self.0 & 0xffff;
        let target = if bit == 1 { 65_535 } else { 0 };
        // 65536 / (count + 1.5)
        let step = (131_072 / (2 * count + 3)).cast_signed();
        let p = self.p() + (((target - self.p()) * (step >> 2)) >> 14);
        self.0 = p.clamp(16, 65_520).unsigned_abs() << 16 | (count + 1).min(most);
    }
}

/// Counts of zeros and ones up to 7 each, and the bit that came last.
fn history_after(history: u32, bit: i32) -> u32 {
    let (mut zeros, mut ones) = (history & 7, history >> 3 & 7);
    let (up, down) = if bit == 1 { (&mut ones, &mut zeros) } else { (&mut zeros, &mut ones) };
    *up = (*up + 1).min(7);
    // What is new says more than what is old.
    if *down > 2 {
        *down = 2 + (*down - 2) / 2;
    }
    zeros | ones << 3 | bit.unsigned_abs() << 6
}

/// What a history says before anything is known of such histories.
fn prior(history: usize) -> i32 {
    let (zeros, ones) = (history & 7, history >> 3 & 7);
    let odds = |n: usize| i32::try_from(2 * n * n + 3 * n + 1).unwrap_or(1);
    65_536 / (odds(ones) + odds(zeros)) * odds(ones)
}

/// A pointer into the history that has predicted well.
#[derive(Clone, Copy, Debug, Default)]
struct Match {
    at: usize,
    len: usize,
    misses: u32,
    /// Byte it predicts, while the bits so far agree.
    byte: Option<u8>,
    row: usize,
}

/// Everything that learns but the slots: it is small and copied.
#[derive(Clone, Debug)]
pub(super) struct Learned {
    maps: Vec<Cell>,
    match_maps: Vec<Cell>,
    tag_map: [Cell; 16],
    mixer: Mixer,
    last_mixer: Mixer,
    refine: Vec<Cell>,
}

/// A table whose changes can be undone.
#[derive(Clone, Debug)]
struct Table {
    slots: Vec<u32>,
    /// What slots were before their first change.
    journal: Vec<(u32, u32)>,
    /// Set in a slot that is in the journal; no slot has it otherwise.
    dirty: u32,
    keeps: bool,
}

impl Table {
    fn new(len: usize, dirty: u32) -> Self {
        Self { slots: vec![0; len], journal: Vec::new(), dirty, keeps: false }
    }

    fn get(&self, at: usize) -> u32 {
        self.slots[at] & !self.dirty
    }

    fn set(&mut self, at: usize, value: u32) {
        let slot = &mut self.slots[at];
        if !self.keeps {
            *slot = value;
            return;
        }
        if *slot & self.dirty == 0 {
            self.journal.push((u32::try_from(at).unwrap_or(u32::MAX), *slot));
        }
        *slot = value | self.dirty;
    }

    fn undo(&mut self) {
        for (at, before) in self.journal.drain(..) {
            self.slots[at as usize] = before;
        }
        // What a long message took need not stay.
        self.journal.shrink_to(1 << 16);
    }

    fn bytes(&self) -> usize {
        4 * self.slots.len() + 8 * self.journal.capacity()
    }
}

/// Everything that learns, and where it is.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// For each context a table of slots: check 8, history 7, dirty 1, probability 16 bits.
    slots: Table,
    slot_bits: u32,
    /// For each match model the last place of each hash.
    places: Table,
    learned: Learned,
    state: TextState,
    pub(super) history: Vec<u8>,
}

/// What is true of one place of one text.
#[derive(Clone, Debug)]
struct TextState {
    syntax: Syntax,
    matches: [Match; MATCHES],
    expected: Option<u8>,
    hashes: [u32; CONTEXTS],
    /// Bits of the byte so far, behind a leading one.
    bits: u32,
    at: [usize; CONTEXTS],
    map_at: [usize; CONTEXTS],
    inputs: [f32; INPUTS],
    outputs: [f32; OUTPUTS],
    refine_at: usize,
    p_mixed: i32,
}

impl TextState {
    fn new() -> Self {
        Self {
            syntax: Syntax::new(),
            matches: [Match::default(); MATCHES],
            expected: None,
            hashes: [0; CONTEXTS],
            bits: 1,
            at: [0; CONTEXTS],
            map_at: [0; CONTEXTS],
            inputs: [0.0; INPUTS],
            outputs: [0.0; OUTPUTS],
            refine_at: 0,
            p_mixed: 32_768,
        }
    }
}

impl Model {
    /// Slots for a text of about `bytes`.
    pub(super) fn new(bytes: usize) -> Self {
        let slot_bits = (bytes.saturating_mul(4)).next_power_of_two().ilog2().clamp(14, 20);
        let match_map = |index: usize| {
            let (len, misses) = (index & 31, index >> 5 & 3);
            let len = i32::try_from(len).unwrap_or(0);
            Cell::new(65_536 - 65_536 / (3 + len * len) * (1 + 3 * i32::from(misses > 0)))
        };
        let refine = (0..1 << 16).map(|index| Cell::new(squash(((index & 31) - 16) * 192 + 96)));
        let maps = (0..CONTEXTS * HISTORIES).map(|index| Cell::new(prior(index % HISTORIES)));
        let learned = Learned {
            maps: maps.collect(),
            match_maps: (0..MATCHES * 128).map(|index| match_map(index % 128)).collect(),
            tag_map: [Cell::new(64_000); 16],
            mixer: Mixer::new(INPUTS, &SETS, 0.11, 24),
            last_mixer: Mixer::new(OUTPUTS, &[8], 0.25, 6),
            refine: refine.collect(),
        };
        Self {
            slots: Table::new(CONTEXTS << slot_bits, SLOT_DIRTY),
            slot_bits,
            places: Table::new(MATCHES << slot_bits, PLACE_DIRTY),
            learned,
            state: TextState::new(),
            history: Vec::new(),
        }
    }

    /// Bytes of memory that the tables take.
    pub(super) fn memory_bytes(&self) -> usize {
        let cells = self.learned.maps.len() + self.learned.refine.len();
        self.slots.bytes() + self.places.bytes() + 8 * cells + self.history.capacity()
    }

    /// From here on, [`Model::reset`] undoes, with what was learned so far.
    pub(super) fn finish_priming(&mut self) -> Learned {
        self.slots.keeps = true;
        self.places.keeps = true;
        self.state = TextState::new();
        self.learned.clone()
    }

    /// Back to the end of the priming, when the history was `len` bytes long.
    pub(super) fn reset(&mut self, learned: &Learned, len: usize) {
        self.slots.undo();
        self.places.undo();
        self.learned.clone_from(learned);
        self.history.truncate(len);
        self.state = TextState::new();
    }

    /// Probability, of 16 bits, that the next bit is one.
    pub(super) fn p(&mut self) -> u32 {
        let mut hits = 0;
        for context in 0..CONTEXTS {
            hits += self.context_input(context);
        }
        let longest = self.match_inputs();
        self.tag_input();
        let state = &mut self.state;
        state.inputs[INPUTS - 1] = 256.0;
        let place = state.syntax.place();
        let rows = [longest, state.bits as usize, hits * 8 + place];
        self.learned.mixer.mix(&state.inputs, &rows, &mut state.outputs);
        let mut out = [0.0];
        self.learned.last_mixer.mix(&state.outputs, &[place], &mut out);
        let logit = self.learned.last_mixer.logit();
        state.p_mixed = squash(logit);
        // Refinement: what came of such a probability behind such a byte.
        let last = u32::from(self.history.last().copied().unwrap_or(0));
        let bucket = ((logit + 3072) / 192).clamp(0, 31).unsigned_abs();
        let context = mix(last + 1, state.bits) >> 21 & 0x7ff;
        state.refine_at = (context << 5 | bucket) as usize;
        let refined = self.learned.refine[state.refine_at].p();
        let p = (3 * state.p_mixed + refined) >> 2;
        p.clamp(1, 65_535).unsigned_abs()
    }

    /// The two inputs of a context; 1 if it was seen before.
    fn context_input(&mut self, context: usize) -> usize {
        let state = &mut self.state;
        let hash = mix(state.hashes[context], state.bits.wrapping_mul(0x2545_f491));
        let at = (context << self.slot_bits) + (hash >> (32 - self.slot_bits)) as usize;
        let check = hash & 0xff;
        let mut slot = self.slots.get(at);
        if slot >> 24 != check {
            slot = check << 24 | 0x8000;
        }
        state.at[context] = at;
        let history = (slot >> 17 & 0x7f) as usize;
        state.map_at[context] = context * HISTORIES + history;
        let inputs = &mut state.inputs[2 * context..2 * context + 2];
        if history == 0 {
            inputs.fill(0.0);
            return 0;
        }
        let direct = ((slot & 0xffff).cast_signed()).clamp(64, 65_472);
        let mapped = self.learned.maps[state.map_at[context]].p();
        inputs[0] = float(stretch(direct));
        inputs[1] = float(stretch(mapped));
        1
    }

    /// Inputs of the match models; a row of the mixer for the longest.
    fn match_inputs(&mut self) -> usize {
        let state = &mut self.state;
        let mut row = 0;
        for (which, found) in state.matches.iter_mut().enumerate() {
            let inputs = &mut state.inputs[2 * CONTEXTS + 2 * which..][..2];
            let agrees = found.byte.filter(|byte| agrees(*byte, state.bits));
            let Some(byte) = agrees else {
                found.byte = None;
                inputs.fill(0.0);
                continue;
            };
            let len = if found.len < 16 { found.len } else { (12 + found.len / 4).min(31) };
            found.row = which * 128 + (found.misses.min(3) as usize) * 32 + len;
            let p = self.learned.match_maps[found.row].p();
            let sign = if next_bit(byte, state.bits) == 1 { 1 } else { -1 };
            inputs[0] = float(sign * stretch(p));
            inputs[1] = float(sign * i32::try_from(len * 24).unwrap_or(0));
            row = row.max(1 + (len / 2).min(14) + 16 * found.misses.min(3) as usize);
        }
        row.min(63)
    }

    fn tag_input(&mut self) {
        let state = &mut self.state;
        let input = &mut state.inputs[INPUTS - 2];
        state.expected = state.expected.filter(|byte| agrees(*byte, state.bits));
        *input = state.expected.map_or(0.0, |byte| {
            let p = self.learned.tag_map[state.syntax.expected_len.min(15) as usize].p();
            float(if next_bit(byte, state.bits) == 1 { stretch(p) } else { -stretch(p) })
        });
    }

    /// Learns the bit that came.
    pub(super) fn update(&mut self, bit: u32) {
        let bit = (bit & 1).cast_signed();
        self.learned.mixer.update(&self.state.inputs, bit);
        self.learned.last_mixer.update(&self.state.outputs, bit);
        self.learned.refine[self.state.refine_at].teach(bit, 255);
        for context in 0..CONTEXTS {
            let at = self.state.at[context];
            let hash = mix(self.state.hashes[context], self.state.bits.wrapping_mul(0x2545_f491));
            let check = hash & 0xff;
            let mut slot = self.slots.get(at);
            if slot >> 24 != check {
                slot = check << 24 | 0x8000;
            }
            let history = slot >> 17 & 0x7f;
            if history != 0 {
                self.learned.maps[self.state.map_at[context]].teach(bit, 255);
            }
            let seen = (history & 7) + (history >> 3 & 7);
            let p = (slot & 0xffff).cast_signed();
            let target = if bit == 1 { 65_535 } else { 0 };
            let step = 65_536 / (2 * seen.min(12).cast_signed() + 3);
            let p = p + (((target - p) * (step >> 1)) >> 14);
            let p = p.clamp(16, 65_519).unsigned_abs();
            self.slots.set(at, check << 24 | history_after(history, bit) << 17 | p);
        }
        self.update_matches(bit);
        self.state.bits = self.state.bits << 1 | bit.unsigned_abs();
        if self.state.bits > 0xff {
            self.next_byte();
        }
    }

    fn update_matches(&mut self, bit: i32) {
        let state = &mut self.state;
        for found in &mut state.matches {
            if let Some(byte) = found.byte {
                let right = next_bit(byte, state.bits) == bit;
                self.learned.match_maps[found.row].teach(i32::from(right), 400);
            }
        }
        if let Some(byte) = state.expected {
            let right = next_bit(byte, state.bits) == bit;
            let at = state.syntax.expected_len.min(15) as usize;
            self.learned.tag_map[at].teach(i32::from(right), 255);
        }
    }

    /// Contexts of the byte that comes, behind a whole one.
    fn next_byte(&mut self) {
        #[expect(clippy::cast_possible_truncation, reason = "the leading one falls off")]
        let byte = self.state.bits as u8;
        self.state.bits = 1;
        let at = self.history.len();
        self.history.push(byte);
        let predicted = self.state.syntax.expected(&self.history);
        self.state.syntax.update(byte, at);
        self.state.syntax.follow(byte, predicted);
        self.state.expected = self.state.syntax.expected(&self.history);
        self.find_matches(byte);
        self.state.hashes = contexts(&self.state.syntax, &self.history);
    }

    fn find_matches(&mut self, byte: u8) {
        for (which, length) in MATCH_LENGTHS.iter().enumerate() {
            let len = self.history.len();
            let mut found = self.state.matches[which];
            if found.at > 0 {
                if self.history[found.at] == byte {
                    found.len = (found.len + 1).min(MAX_MATCH);
                    found.misses -= u32::from(found.len >= 16 && found.misses > 0);
                } else {
                    found.len = 0;
                    found.misses += 1;
                }
                found.at += 1;
                if found.misses > MISSES {
                    found = Match::default();
                }
            }
            if let Some(recent) = self.history.get(len.wrapping_sub(*length)..) {
                let hash = recent.iter().fold(0, |hash, byte| mix(hash, u32::from(*byte) + 1));
                let place = (which << self.slot_bits) + (hash >> (32 - self.slot_bits)) as usize;
                let candidate = self.places.get(place) as usize;
                if candidate > 0 && (found.at == 0 || found.len < *length) {
                    let common = self.common(candidate, len);
                    if common >= *length && common > found.len {
                        found = Match { at: candidate, len: common, ..Match::default() };
                    }
                }
                self.places.set(place, u32::try_from(len).unwrap_or(0));
            }
            found.byte = if found.at > 0 { self.history.get(found.at).copied() } else { None };
            self.state.matches[which] = found;
        }
    }

    /// Bytes before `a` and `b` that are the same.
    fn common(&self, a: usize, b: usize) -> usize {
        let (a, b) = (&self.history[..a], &self.history[..b]);
        a.iter().rev().zip(b.iter().rev()).take(MAX_MATCH).take_while(|(a, b)| a == b).count()
    }
}

fn agrees(byte: u8, bits: u32) -> bool {
    let count = bits.ilog2();
    (u32::from(byte) | 0x100) >> (8 - count) == bits
}

fn next_bit(byte: u8, bits: u32) -> i32 {
    let count = bits.ilog2();
    i32::from(byte >> (7 - count) & 1)
}

fn contexts(syntax: &Syntax, history: &[u8]) -> [u32; CONTEXTS] {
    let mut hashes = [0; CONTEXTS];
    let mut hash = 0;
    let mut slot = 0;
    for (order, byte) in (1_u32..=8).zip(history.iter().rev()) {
        hash = mix(hash, u32::from(*byte) + 1);
        if order != 7 {
            hashes[slot] = mix(hash, order);
            slot += 1;
        }
    }
    let last = u32::from(history.last().copied().unwrap_or(0));
    hashes[7] = mix(mix(syntax.word, last), 0x71);
    hashes[8] = mix(mix(syntax.word, syntax.last_word), last ^ 0x7200);
    hashes[9] = mix(mix(syntax.field, syntax.value), 0x73);
    hashes[10] = mix(mix(syntax.sibling, syntax.element()), syntax.value ^ 0x74);
    hashes[11] = mix(mix(syntax.column.min(255), syntax.last_indent), syntax.depth() << 8 | last);
    hashes
}
