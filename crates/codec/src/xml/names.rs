//! Names as numbers: each distinct text is kept once.

use std::collections::BTreeMap;

use super::NAME;
use crate::Error;

/// Slots looked at before a text goes to the ordered map: with half the table free, honest texts
/// end well below; texts made to collide cost a logarithm, not the square of their number.
const PROBES: usize = 64;

/// Room kept when texts are forgotten: that of a message, for filling slots takes time too.
const KEPT_SLOTS: usize = 1 << 12;
const KEPT_BYTES: usize = 1 << 16;
/// A table of so many slots doubles when it is full; a smaller one grows fourfold.
const LARGE_SLOTS: usize = 1 << 16;
/// There is room for so many texts from the first on; most documents need no more.
pub(super) const FIRST_ENTRIES: usize = 32;
/// Up to so many texts are looked at one by one: a table would take longer to make.
const FEW: usize = 8;

/// An expanded name (Namespaces in XML 1.0 §2.1): dense, in the order of first use.
// A whole word: events with smaller fields are copied in pieces that do not match how they were
// written, and each such copy waits for the processor's store buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub(super) usize);

/// A namespace name: dense, in the order of first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UriId(pub(super) u32);

impl NameId {
    /// For a `Vec` with a place for each name.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0
    }

    #[inline]
    pub(super) fn of(id: u32) -> Self {
        Self(id as usize)
    }
}

impl UriId {
    /// No namespace.
    pub const NONE: Self = Self(0);
    /// The namespace of the prefix `xml`.
    pub const XML: Self = Self(1);
    /// The namespace of the prefix `xmlns`.
    pub const XMLNS: Self = Self(2);

    /// For a `Vec` with a place for each namespace.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An expanded name in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// The namespace's number.
    pub uri_id: UriId,
    /// The namespace's name, empty for none.
    pub uri: &'a str,
    /// The local part.
    pub local: &'a str,
}

/// All names met so far.
#[derive(Debug)]
pub struct Names {
    pub(super) uris: Interner,
    pub(super) names: Interner,
}

impl Names {
    pub(super) fn new() -> Self {
        Self { uris: Interner::few(), names: Interner::of(FIRST_ENTRIES) }
    }

    /// How many expanded names there are: ids are below.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether no name was met.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name in words; ids of another [`Names`] give an empty name or a wrong one.
    #[must_use]
    pub fn name(&self, id: NameId) -> Name<'_> {
        let uri_id = self.uri_id(id);
        let local = self.names.get(u32::try_from(id.0).unwrap_or(u32::MAX));
        Name { uri_id, uri: self.uri(uri_id), local }
    }

    /// How many namespaces there are: ids are below.
    #[must_use]
    pub fn uri_count(&self) -> usize {
        self.uris.len()
    }

    /// The number of a name's namespace.
    pub(crate) fn uri_id(&self, id: NameId) -> UriId {
        UriId(self.names.seed(u32::try_from(id.0).unwrap_or(u32::MAX)))
    }

    /// The namespace's name.
    #[must_use]
    pub fn uri(&self, id: UriId) -> &str {
        self.uris.get(id.0)
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u64,
    seed: u32,
    start: u32,
    len: u32,
}

/// Pairs of a number and a text to dense numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interner {
    arena: String,
    entries: Vec<Entry>,
    /// Half of the hash, and the number plus one; 0 is free. A power of two, at least half free;
    /// empty where there are only a few texts.
    table: Vec<(u32, u32)>,
    /// What found no place near its slot.
    overflow: BTreeMap<(u32, Box<str>), u32>,
}

impl Interner {
    /// With room for so many texts, which must be a power of two.
    pub(super) fn of(count: usize) -> Self {
        Self {
            arena: String::with_capacity(count * 16),
            entries: Vec::with_capacity(count),
            table: vec![(0, 0); count * 2],
            overflow: BTreeMap::new(),
        }
    }

    /// With room for a few texts.
    pub(super) fn few() -> Self {
        Self {
            arena: String::with_capacity(FEW * 32),
            entries: Vec::with_capacity(FEW),
            ..Self::default()
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Forgets all texts and keeps the room for as many, up to a bound.
    pub(crate) fn clear(&mut self) {
        if self.table.len() > KEPT_SLOTS || self.arena.len() > KEPT_BYTES {
            *self = Self::default();
            return;
        }
        self.arena.clear();
        self.entries.clear();
        self.table.fill((0, 0));
        self.overflow.clear();
    }

    /// Bytes that it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.arena.len() + 48 * self.entries.len()
    }

    pub(crate) fn seed(&self, id: u32) -> u32 {
        self.entries.get(id as usize).map_or(0, |entry| entry.seed)
    }

    pub(crate) fn get(&self, id: u32) -> &str {
        self.entries.get(id as usize).map_or("", |entry| {
            &self.arena[entry.start as usize..(entry.start + entry.len) as usize]
        })
    }

    fn is(&self, entry: &Entry, seed: u32, text: &str) -> bool {
        let span = entry.start as usize..(entry.start + entry.len) as usize;
        // Nothing is not compared: vectors that load nothing from nowhere can be very slow.
        let same = || text.is_empty() || self.arena.as_bytes()[span] == *text.as_bytes();
        entry.seed == seed && entry.len as usize == text.len() && same()
    }

    /// The number of a text met before.
    #[inline]
    pub(crate) fn find(&self, seed: u32, text: &str) -> Option<u32> {
        if self.entries.is_empty() {
            return None;
        }
        self.search(hash(seed, text.as_bytes()), seed, text)
    }

    /// As [`Self::find`], with the text's [`hash`].
    #[inline]
    pub(super) fn search(&self, hash: u64, seed: u32, text: &str) -> Option<u32> {
        if self.table.is_empty() {
            let same = |entry: &Entry| entry.hash == hash && self.is(entry, seed, text);
            return (0..).zip(&self.entries).find(|(_, entry)| same(entry)).map(|(id, _)| id);
        }
        let mask = self.table.len().wrapping_sub(1);
        for slot in (slot(hash)..).take(PROBES) {
            let (half, id) = *self.table.get(slot & mask)?;
            if id == 0 {
                break;
            }
            if half == upper(hash)
                && let Some(entry) = self.entries.get(id as usize - 1)
                && self.is(entry, seed, text)
            {
                return Some(id - 1);
            }
        }
        if self.overflow.is_empty() {
            return None;
        }
        self.overflow.get(&(seed, text.into())).copied()
    }

    /// The number of a text, a new one if it was not met before.
    pub(crate) fn intern(&mut self, seed: u32, text: &str) -> Result<u32, Error> {
        let hash = hash(seed, text.as_bytes());
        match self.search(hash, seed, text) {
            Some(id) => Ok(id),
            None => self.add(hash, seed, text),
        }
    }

    /// The number of a text that [`Interner::search`] did not find.
    pub(super) fn add(&mut self, hash: u64, seed: u32, text: &str) -> Result<u32, Error> {
        let full = || Error::Limit { codec: NAME, what: "names of 4 GiB".to_owned() };
        let id = u32::try_from(self.entries.len() + 1).map_err(|_| full())? - 1;
        let start = u32::try_from(self.arena.len()).map_err(|_| full())?;
        u32::try_from(self.arena.len() + text.len()).map_err(|_| full())?;
        let len = u32::try_from(text.len()).map_err(|_| full())?;
        self.arena.push_str(text);
        self.entries.push(Entry { hash, seed, start, len });
        if self.table.is_empty() && self.entries.len() <= FEW {
            return Ok(id);
        }
        if self.entries.len() * 2 > self.table.len() {
            self.grow();
        } else {
            self.place(id);
        }
        Ok(id)
    }

    fn grow(&mut self) {
        // In long steps while it is small, for each step places all texts again.
        let factor = if self.table.len() < LARGE_SLOTS { 4 } else { 2 };
        let len = (self.table.len() * factor).max(64);
        self.table.clear();
        self.table.resize(len, (0, 0));
        self.overflow.clear();
        for id in (0..).take(self.entries.len()) {
            self.place(id);
        }
    }

    fn place(&mut self, id: u32) {
        let Some(&Entry { hash, seed, .. }) = self.entries.get(id as usize) else { return };
        let mask = self.table.len() - 1;
        let free = (slot(hash)..).take(PROBES).find(|slot| self.table[slot & mask].1 == 0);
        if let Some(slot) = free {
            self.table[slot & mask] = (upper(hash), id + 1);
        } else {
            let key = (seed, self.get(id).into());
            self.overflow.insert(key, id);
        }
    }
}

#[inline]
fn upper(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[inline]
fn slot(hash: u64) -> usize {
    (hash & 0xffff_ffff) as usize
}

/// Eight bytes at a step through a widening product; quick, not secret: see [`PROBES`].
#[inline]
pub(super) fn hash(seed: u32, bytes: &[u8]) -> u64 {
    let mut state = u64::from(seed) ^ ((bytes.len() as u64) << 32) ^ 0x243f_6a88_85a3_08d3;
    let mut rest = bytes;
    while let Some((word, behind)) = rest.split_first_chunk::<8>() {
        state = fold(state ^ u64::from_le_bytes(*word));
        rest = behind;
    }
    let tail = match (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
        }
        _ => rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    fold(state ^ tail)
}

#[expect(clippy::cast_possible_truncation, reason = "both halves of the product are mixed")]
#[inline]
fn fold(word: u64) -> u64 {
    let product = u128::from(word) * 0x9e37_79b9_7f4a_7c15;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_get_dense_numbers_and_keep_them() {
        let mut interner = Interner::default();
        for round in 0..2 {
            for number in 0..5000_u32 {
                let text = format!("name-{number}");
                assert_eq!(interner.intern(number % 3, &text).unwrap(), number, "round {round}");
                assert_eq!(interner.get(number), text);
            }
        }
        assert_ne!(interner.intern(1, "name-0").unwrap(), 0);
        assert_eq!(interner.find(9, "name-0"), None);
    }

    #[test]
    fn colliding_texts_are_found_in_the_ordered_map() {
        let mut interner = Interner::of(FIRST_ENTRIES);
        interner.intern(0, "first").unwrap();
        // A table that looks full everywhere sends each text to the map.
        interner.table.fill((0, 1));
        let ids: Vec<_> = (0..20).map(|n| interner.intern(0, &format!("n{n}")).unwrap()).collect();
        assert_eq!(interner.overflow.len(), 20);
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(interner.find(0, &format!("n{n}")), Some(*id));
        }
    }
}
