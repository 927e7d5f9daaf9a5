//! What comes next in a document: which piece of markup, which value, which word, which byte.
//!
//! One code for both directions: with a [`Coder`] that encodes, the document stands in `text`
//! already and is walked over; with one that decodes, it grows there.

#![expect(clippy::cast_possible_truncation, reason = "hashes and counts are cut on purpose")]

use super::guesses::{Chance, Followers, Guesses, Span};
use super::nibbles::Nibbles;
use super::outline::{Broken, END, NEW, Outline, PIECE, SPELLED, TEXT};
use super::pieces::{Item, PiecePosition, hash_bytes, join, next_item};
use super::range::Coder;
use super::strong::{CONTEXTS, Situation, Strong};

/// Containers: values of one path share one; others of the same hash take its place.
const CONTAINERS: usize = 1 << 10;
/// Bytes of a container after which it is decided whether mixing contexts pays there.
const TRIAL_BYTES: i32 = 256;
/// Bytes that then go without, before it is tried again.
const PLAIN_BYTES: i32 = 4096;
/// Kind of place of symbols.
const SYMBOL_PLACE: usize = 62;

/// Values of one path.
#[derive(Clone, Copy)]
struct Container {
    key: u32,
    last: Span,
    /// Whether the last value begins as a number does.
    numeric: bool,
    chances: [Chance; 5],
    /// Bytes left of the trial of mixing, or less than 0: to go without.
    trial: i32,
    /// What it began with.
    span: i32,
    gain: i32,
}

impl Container {
    const FREE: Self = Self {
        key: 0,
        last: Span { at: 0, len: 0, hash: 0 },
        numeric: false,
        chances: [Chance(30_000); 5],
        trial: TRIAL_BYTES,
        span: TRIAL_BYTES,
        gain: 0,
    };
}

impl Container {
    /// Whether a byte now decides about mixing: of a long span the last ones do.
    fn is_on_trial(&self) -> bool {
        (0..=TRIAL_BYTES).contains(&self.trial)
    }

    /// Counts a byte and what mixing gained there.
    #[inline(always)]
    fn tried(&mut self, gain: i32) {
        if self.is_on_trial() {
            self.gain += gain;
        }
        self.trial -= self.trial.signum();
        if self.trial == 0 {
            let pays = self.gain > TRIAL_BYTES * 2;
            self.span = match self.span {
                ..0 => TRIAL_BYTES,
                _ if pays => PLAIN_BYTES,
                _ => -PLAIN_BYTES,
            };
            self.trial = self.span;
            self.gain = 0;
        }
    }
}

/// All that was learned from a stream.
pub(super) struct Model {
    /// The document from `base` on.
    pub(super) text: Vec<u8>,
    /// Coded up to here, as an index into `text`.
    at: usize,
    /// Bytes that were dropped before `text`.
    base: u32,
    outline: Outline,
    /// The last symbols of structure, newest first.
    symbols: [u32; 6],
    orders: [Guesses; 3],
    chances: Vec<Chance>,
    nibbles: Nibbles,
    /// For values, where mixing pays.
    strong: Strong,
    containers: Vec<Container>,
    /// Values by the one before in their container, and by the one before in the document.
    after: Followers,
    previous: u32,
    /// The value before it.
    earlier: u32,
    /// The last value of all.
    latest: Span,
    derived: Vec<u8>,
    ends: [Chance; 2],
}

impl Model {
    /// Bytes of the tables for 2^`log` bytes, at most.
    pub(super) fn table_bytes(log: u32) -> usize {
        const FIXED: usize = 1 << 18;
        let small = 1 << log.saturating_sub(5).clamp(8, 14);
        let slots = 1 << log.saturating_sub(3).clamp(10, 15);
        Strong::table_bytes(log)
            + FIXED
            + Outline::table_bytes(log)
            + slots * 32
            + small * (3 * 8 + 16)
    }

    /// Tables for about 2^`log` bytes.
    pub(super) fn new(log: u32) -> Self {
        let small = log.saturating_sub(5).clamp(8, 14);
        Self {
            text: Vec::new(),
            at: 0,
            base: 0,
            outline: Outline::new(log),
            symbols: [0; 6],
            orders: [Guesses::new(small), Guesses::new(small), Guesses::new(small)],
            chances: vec![Chance(40_000); 3 * 2 * 16],
            strong: Strong::new(log),
            nibbles: Nibbles::new(log.saturating_sub(3).clamp(10, 15)),
            containers: vec![Container::FREE; CONTAINERS],
            after: Followers::new(small),
            previous: 0,
            earlier: 0,
            latest: Span::default(),
            derived: Vec::new(),
            ends: [Chance(600); 2],
        }
    }

    /// Codes from where it is up to `end`, an index into `text`.
    pub(super) fn code<C: Coder>(&mut self, c: &mut C, end: usize) -> Result<(), Broken> {
        while self.at < end {
            if c.is_beyond() {
                return Err(Broken::Short);
            }
            let before = self.at;
            let PiecePosition::Value(mark) = self.outline.place else {
                self.structure(c, end)?;
                if self.at == before {
                    return Err(Broken::Empty);
                }
                continue;
            };
            let rest = if C::DECODES { &[] } else { &self.text[before..end] };
            let (Item::Value(len) | Item::Piece(len)) = next_item(rest, self.outline.place);
            self.value(c, self.outline.attribute, mark, len, end)?;
            if self.at < end {
                self.outline.place = PiecePosition::Tag;
            }
        }
        Ok(())
    }

    /// A piece of markup or that text follows, and the text.
    fn structure<C: Coder>(&mut self, c: &mut C, end: usize) -> Result<(), Broken> {
        let (mut len, mut wanted) = (0, 0);
        if !C::DECODES {
            (len, wanted) = match next_item(&self.text[self.at..end], self.outline.place) {
                Item::Value(len) => (len, TEXT),
                Item::Piece(len) => {
                    (len, self.outline.symbol_of(&self.text[self.at..self.at + len]))
                }
            };
        }
        let mut symbol = self.symbol(c, wanted);
        let start = self.at;
        match symbol {
            TEXT => {
                let key = self.outline.path();
                self.value(c, key, b'<', len, end)?;
            }
            END => {
                let name = self.outline.close()?;
                if C::DECODES {
                    self.text.extend_from_slice(b"</");
                    self.text.extend_from_slice(name);
                    self.text.push(b'>');
                }
                self.at += name.len() + 3;
            }
            NEW => {
                self.spell(c, SPELLED, b'<', len, end)?;
                symbol = self.outline.learn(&self.text[start..self.at]);
            }
            _ => {
                let bytes = self.outline.pass(symbol)?;
                if C::DECODES {
                    self.text.extend_from_slice(bytes);
                }
                self.at += bytes.len();
            }
        }
        if self.at > end {
            return Err(Broken::Overlong);
        }
        self.symbols.rotate_right(1);
        self.symbols[0] = symbol as u32;
        Ok(())
    }

    /// A symbol of structure: guessed from the last ones, else by number.
    fn symbol<C: Coder>(&mut self, c: &mut C, wanted: usize) -> usize {
        let [a, b, d, e, f, g] = self.symbols;
        let path = self.outline.path();
        let low = join(a | u32::from(self.outline.place == PiecePosition::Tag) << 20, path);
        let middle = join(join(b, d), low);
        let high = join(join(join(e, f), g), middle);
        let hashes = [high, middle, low];
        let mut tried = [u32::MAX; 3];
        for (order, hash) in hashes.into_iter().enumerate() {
            let guess = self.orders[order].of(hash);
            if guess.sure == 0 || tried.contains(&guess.value) {
                continue;
            }
            tried[order] = guess.value;
            let after_miss = usize::from(tried[..order].iter().any(|&value| value != u32::MAX));
            let chance = &mut self.chances[(order * 2 + after_miss) * 16 + usize::from(guess.sure)];
            if chance.code(c, wanted as u32 == guess.value) {
                return self.note_symbol(hashes, guess.value as usize);
            }
        }
        let contexts = [
            0x77 + u32::from(self.outline.place == PiecePosition::Tag),
            join(a, 0x33),
            join(low, 0x51),
        ];
        let mut symbol = 0;
        let halves = if self.outline.pieces.len() + PIECE <= 256 { 2 } else { 4 };
        for half in (0..halves).rev() {
            let h = contexts.map(|h| join(h, symbol as u32 | half << 16));
            let nibble = self.nibbles.nibble(c, wanted >> (4 * half) & 15, h, SYMBOL_PLACE * 32);
            symbol = symbol << 4 | nibble;
        }
        self.note_symbol(hashes, symbol)
    }

    fn note_symbol(&mut self, hashes: [u32; 3], symbol: usize) -> usize {
        for (order, hash) in hashes.into_iter().enumerate() {
            self.orders[order].note(hash, symbol as u32);
        }
        symbol
    }

    fn slot(&mut self, key: u32) -> usize {
        let slot = key as usize % CONTAINERS;
        if self.containers[slot].key != key {
            self.containers[slot] = Container { key, ..Container::FREE };
        }
        slot
    }

    /// The bytes of a span, if they are still there.
    fn bytes(&self, span: Span) -> Option<&[u8]> {
        let start = span.at.checked_sub(self.base)? as usize;
        self.text.get(start..start + span.len as usize)
    }

    /// A value: one that was there before, else word by word and byte by byte.
    fn value<C: Coder>(
        &mut self,
        c: &mut C,
        key: u32,
        mark: u8,
        len: usize,
        end: usize,
    ) -> Result<(), Broken> {
        let slot = self.slot(key);
        let contexts =
            [join(key, self.previous ^ 0x5555), join(key, self.containers[slot].last.hash)];
        let candidates =
            [self.after.of(contexts[0]), self.after.of(contexts[1]), self.containers[slot].last];
        let start = self.at;
        let mut found = None;
        for i in 0..3 {
            let candidate = candidates[i];
            if candidate.len == 0 || candidates[..i].iter().any(|other| other.is(candidate)) {
                continue;
            }
            let Some(bytes) = self.bytes(candidate) else { continue };
            if bytes.len() > end - start {
                continue;
            }
            let hit = !C::DECODES && bytes.len() == len && self.text[start..].starts_with(bytes);
            if self.containers[slot].chances[i].code(c, hit) {
                found = Some(candidate);
                break;
            }
        }
        if found.is_none() && self.derive(slot) {
            let hit = !C::DECODES
                && self.derived.len() == len
                && self.text[start..].starts_with(&self.derived);
            let fits = self.derived.len() <= end - start;
            if fits && self.containers[slot].chances[3].code(c, hit) {
                if C::DECODES {
                    self.text.extend_from_slice(&self.derived);
                }
                self.at += self.derived.len();
                let span = Span {
                    at: self.base + start as u32,
                    len: self.derived.len() as u32,
                    hash: hash_bytes(&self.derived),
                };
                self.note_value(slot, contexts, span);
                return Ok(());
            }
        }
        let span = if let Some(span) = found {
            if C::DECODES {
                let from = (span.at - self.base) as usize;
                self.text.extend_from_within(from..from + span.len as usize);
            }
            self.at += span.len as usize;
            Span { at: self.base + start as u32, ..span }
        } else {
            self.spell(c, key, mark, len, end)?;
            let bytes = &self.text[start..self.at];
            Span { at: self.base + start as u32, len: bytes.len() as u32, hash: hash_bytes(bytes) }
        };
        self.note_value(slot, contexts, span);
        Ok(())
    }

    /// A value made from the last of its container and the last of all: the text of the one with
    /// the number of the other.
    fn derive(&mut self, slot: usize) -> bool {
        let (own, other) = (self.containers[slot].last, self.latest);
        if own.len == 0 || other.len == 0 || other.len > 18 || own.len > 200 {
            return false;
        }
        let (Some(own), Some(other)) = (self.bytes(own), self.bytes(other)) else { return false };
        if !other.iter().all(u8::is_ascii_digit) {
            return false;
        }
        let digits = own.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        if digits < other.len() {
            return false;
        }
        let mut derived = std::mem::take(&mut self.derived);
        derived.clear();
        if let (Some(own), Some(other)) =
            (self.bytes(self.containers[slot].last), self.bytes(self.latest))
        {
            derived.extend_from_slice(&own[..own.len() - digits]);
            derived.resize(own.len() - other.len(), b'0');
            derived.extend_from_slice(other);
        }
        self.derived = derived;
        true
    }

    fn note_value(&mut self, slot: usize, contexts: [u32; 2], span: Span) {
        let first = self.text.get((span.at - self.base) as usize).copied().unwrap_or(0);
        let container = &mut self.containers[slot];
        container.last = span;
        container.numeric = span.len > 0 && matches!(first, b'0'..=b'9' | b'-' | b'+' | b'.');
        self.earlier = self.previous;
        self.previous = span.hash;
        self.latest = span;
        for context in contexts {
            self.after.note(context, span);
        }
    }

    /// Codes bytes one by one, and the end.
    fn spell<C: Coder>(
        &mut self,
        c: &mut C,
        key: u32,
        mark: u8,
        len: usize,
        end: usize,
    ) -> Result<(), Broken> {
        let start = self.at;
        let stop = start + len;
        let slot = self.slot(key);
        let above = self.bytes(self.containers[slot].last).map_or((0, 0), |bytes| {
            ((self.containers[slot].last.at - self.base) as usize, bytes.len())
        });
        let mut same = true;
        let mut words = Words { now: 0, last: key, digits: 0 };
        let mut recent = 0;
        for &byte in &self.text[start.saturating_sub(8)..start] {
            recent = recent << 8 | u64::from(byte);
        }
        self.strong.follow(above.0, if above.1 > 0 { 1 } else { 0 });
        loop {
            let place = self.at - start;
            let over = if place < above.1 { self.text[above.0 + place] } else { 0 };
            let byte = if !C::DECODES && self.at < stop { self.text[self.at] } else { 0 };
            let column = Column { place: place.min(31) as u32, over, same, mark };
            let byte = self.letter(c, byte, slot, recent, column, &words);
            if byte == 0 && !self.ends[usize::from(key == SPELLED)].code(c, self.at < stop) {
                return Ok(());
            }
            if C::DECODES {
                if self.at >= end {
                    return Err(Broken::Overlong);
                }
                // Zeros behind the end would go on for long: what is expected costs nearly nothing.
                if c.is_beyond() {
                    return Err(Broken::Short);
                }
                self.text.push(byte);
            }
            self.at += 1;
            same &= over == byte;
            recent = recent << 8 | u64::from(byte);
            words.step(byte);
        }
    }

    /// One byte of a value in the light of those before it and above it.
    fn letter<C: Coder>(
        &mut self,
        c: &mut C,
        byte: u8,
        slot: usize,
        recent: u64,
        column: Column,
        words: &Words,
    ) -> u8 {
        let Container { key, numeric, trial, .. } = self.containers[slot];
        let Column { place, over, same, mark } = column;
        if trial < 0 {
            self.containers[slot].tried(0);
            let digits = join(key, place * 8 + words.digits.min(7));
            let low = if numeric { digits } else { join(recent as u32 & 0xFF, key) };
            return self.strong.plain_byte(c, byte, join(low, 0));
        }
        let above = join(key, place * 512 + u32::from(over) * 2 + u32::from(same));
        let last = |bytes: u32| (recent << (64 - 8 * bytes) >> (64 - 8 * bytes)) as u32;
        let Words { now, last: word, digits } = *words;
        let phrase = join(now, word);
        let mut contexts: [u32; CONTEXTS] = if numeric {
            let around = if place < 3 { self.earlier } else { self.previous };
            [
                join(key, place * 8 + digits.min(7)),
                join(last(2), key),
                join(join(key, place), around),
                join(now, key),
                above,
            ]
        } else {
            let long = if same || place < 8 { above } else { phrase };
            [join(last(1), key), last(2), last(4), now, long]
        };
        for (i, context) in contexts.iter_mut().enumerate() {
            *context = join(*context, i as u32);
        }
        let kind = if key == SPELLED { 0 } else { 1 + usize::from(numeric) };
        let (at, text) = (self.at, &self.text[..]);
        let trial = self.containers[slot].is_on_trial();
        let situation = Situation { text, at, mark, contexts, recent, trial, kind };
        let byte = self.strong.byte(c, byte, &situation);
        if key != SPELLED {
            self.containers[slot].tried(self.strong.take_gain());
        }
        byte
    }

    /// Bytes that were coded in all, as far as positions are counted.
    pub(super) fn total(&self) -> usize {
        self.base as usize + self.at
    }

    /// Begin of what was not yet taken, as an index into `text`.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Makes room between blocks: keeps the last `keep` bytes.
    pub(super) fn slide(&mut self, keep: usize) {
        let drop = self.at.saturating_sub(keep);
        self.text.drain(..drop);
        self.at -= drop;
        self.base += drop as u32;
        self.strong.forget_places();
    }
}

/// Where a byte stands in its value: how far in, what stood there in the value before, and whether
/// all was the same up to here.
#[derive(Clone, Copy)]
struct Column {
    place: u32,
    over: u8,
    same: bool,
    /// What ends the value.
    mark: u8,
}

/// Hashes of the words of a value: the one begun, and the last.
struct Words {
    now: u32,
    last: u32,
    /// Letters since the last other byte.
    digits: u32,
}

impl Words {
    /// Takes a byte.
    #[inline(always)]
    fn step(&mut self, byte: u8) {
        const K: u32 = 0x2F0B_4C47;
        if byte.is_ascii_alphanumeric() || byte >= 0x80 {
            self.digits += 1;
            self.now = (self.now ^ u32::from(byte)).wrapping_add(1).wrapping_mul(K);
            return;
        }
        self.digits = 0;
        if self.now != 0 {
            (self.last, self.now) = (self.now, 0);
        }
        self.last = (self.last ^ u32::from(byte)).wrapping_mul(K).rotate_left(5);
    }
}
