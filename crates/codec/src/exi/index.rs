//! Hash tables of the encoder: from content to dense numbers, without an order to depend on.

/// Multiplies and folds, eight bytes at a time; the same on every machine.
#[inline]
pub(crate) fn hash(bytes: &[u8]) -> u32 {
    hash_and_bits(bytes).0
}

/// The hash, and whether all bytes are ASCII, which takes no second look.
#[inline]
pub(crate) fn hash_and_ascii(bytes: &[u8]) -> (u32, bool) {
    let (hash, bits) = hash_and_bits(bytes);
    (hash, bits & u64::from_le_bytes([0x80; 8]) == 0)
}

/// The hash, and the union of all words.
#[inline]
fn hash_and_bits(bytes: &[u8]) -> (u32, u64) {
    let mut state = 0x9e37_79b9_7f4a_7c15 ^ bytes.len() as u64;
    let mut bits = 0;
    let (eights, rest) = bytes.as_chunks::<8>();
    for eight in eights {
        let word = u64::from_le_bytes(*eight);
        bits |= word;
        state = fold(state ^ word);
    }
    if !rest.is_empty() {
        let last = match (bytes.last_chunk::<8>(), rest.first_chunk::<4>(), rest.last_chunk()) {
            (Some(last), ..) => u64::from_le_bytes(*last),
            (None, Some(first), Some(last)) => {
                u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
            }
            _ => rest.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)),
        };
        bits |= last;
        state = fold(state ^ last);
    }
    #[expect(clippy::cast_possible_truncation, reason = "both halves are folded")]
    return ((state >> 32) as u32 ^ state as u32, bits);
}

#[inline]
fn fold(value: u64) -> u64 {
    let product = u128::from(value) * u128::from(0xd6e8_feb8_6659_fd93_u64);
    #[expect(clippy::cast_possible_truncation, reason = "both halves are folded")]
    return (product >> 64) as u64 ^ product as u64;
}

/// Slots that are looked at: a bound on what made-up collisions can cost. Behind it, content counts
/// as new.
const PROBES: usize = 64;

/// A table of so many slots doubles when it is full; a smaller one grows fourfold.
const LARGE_SLOTS: usize = 1 << 14;

/// How long a table gets that is full: in long steps while it is small, for each fills it anew.
fn grown(slots: usize) -> usize {
    (slots * if slots < LARGE_SLOTS { 4 } else { 2 }).max(64)
}

/// Whether a table that has room for `least` in any case is too long to be kept: to empty it must
/// not take longer than what filled it.
fn is_roomy(slots: usize, used: usize, least: usize) -> bool {
    slots > (used * 16).max(least * 8)
}

/// Numbers by hash; the caller compares content.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Hash and number + 1; 0 is free. A power of two long.
    slots: Vec<(u32, u32)>,
    used: usize,
}

impl Index {
    /// With room for so many numbers.
    pub(crate) fn of(count: usize) -> Self {
        Self { slots: vec![(0, 0); (count * 2).next_power_of_two()], used: 0 }
    }

    /// The number that has this hash and that `same` accepts.
    #[inline]
    pub(crate) fn find(&self, hash: u32, mut same: impl FnMut(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len().wrapping_sub(1);
        for at in (hash as usize..).take(PROBES) {
            let &(found, number) = self.slots.get(at & mask)?;
            if number == 0 {
                return None;
            }
            if found == hash && same(number - 1) {
                return Some(number - 1);
            }
        }
        None
    }

    /// Adds a number; where too many collide it is left out and will not be found.
    pub(crate) fn insert(&mut self, hash: u32, number: u32) {
        if (self.used + 1) * 2 > self.slots.len() {
            self.grow();
        }
        self.used += usize::from(Self::put(&mut self.slots, hash, number + 1));
    }

    fn put(slots: &mut [(u32, u32)], hash: u32, number: u32) -> bool {
        let mask = slots.len() - 1;
        let free = (0..PROBES).map(|i| (hash as usize + i) & mask).find(|&at| slots[at].1 == 0);
        if let Some(at) = free {
            slots[at] = (hash, number);
        }
        free.is_some()
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![(0, 0); grown(self.slots.len())];
        for &(hash, number) in self.slots.iter().filter(|slot| slot.1 != 0) {
            Self::put(&mut slots, hash, number);
        }
        self.slots = slots;
    }

    /// Takes a number out, keeping the chains of the others.
    pub(crate) fn remove(&mut self, hash: u32, number: u32) {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        for _ in 0..PROBES {
            match self.slots.get(at) {
                None | Some((_, 0)) => return,
                Some(&slot) if slot == (hash, number + 1) => return self.close_gap(at),
                Some(_) => at = (at + 1) & mask,
            }
        }
    }

    /// Moves later entries of the chain into the gap where they may stand there.
    fn close_gap(&mut self, mut gap: usize) {
        let mask = self.slots.len() - 1;
        let mut at = gap;
        self.used -= 1;
        loop {
            at = (at + 1) & mask;
            let (hash, number) = self.slots[at];
            if number == 0 {
                break;
            }
            let home = hash as usize & mask;
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(gap) & mask {
                self.slots[gap] = (hash, number);
                gap = at;
            }
        }
        self.slots[gap] = (0, 0);
    }

    /// Takes all numbers out. Room that they hardly needed is given back.
    pub(crate) fn clear(&mut self, least: usize) {
        if is_roomy(self.slots.len(), self.used, least) {
            *self = Self::of(least);
        } else {
            self.slots.fill((0, 0));
            self.used = 0;
        }
    }

    /// Bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.len() * 8
    }
}

/// Numbers by key.
#[derive(Debug, Default)]
pub(crate) struct KeyMap {
    /// Key, and number + 1; 0 is free. A power of two long.
    slots: Vec<(u64, u32)>,
    used: usize,
}

impl KeyMap {
    /// With room for so many keys.
    pub(crate) fn of(count: usize) -> Self {
        Self { slots: vec![(0, 0); (count * 2).next_power_of_two()], used: 0 }
    }

    #[inline]
    fn home(key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
    }

    #[inline(always)]
    pub(crate) fn get(&self, key: u64) -> Option<u32> {
        let home = Self::home(key);
        match self.slots.get(home & self.slots.len().wrapping_sub(1)) {
            Some(&(found, number)) if found == key => number.checked_sub(1),
            Some((_, 1..)) => self.get_behind(home, key),
            _ => None,
        }
    }

    fn get_behind(&self, home: usize, key: u64) -> Option<u32> {
        let mask = self.slots.len().wrapping_sub(1);
        for at in (home..).take(PROBES).skip(1) {
            let &(found, number) = self.slots.get(at & mask)?;
            if found == key {
                return number.checked_sub(1);
            }
            if number == 0 {
                return None;
            }
        }
        None
    }

    /// Adds a key; where too many collide it is left out and will not be found.
    pub(crate) fn insert(&mut self, key: u64, number: u32) {
        if (self.used + 1) * 2 > self.slots.len() {
            let mut slots = vec![(0, 0); grown(self.slots.len())];
            for &(key, number) in self.slots.iter().filter(|slot| slot.1 != 0) {
                Self::put(&mut slots, key, number);
            }
            self.slots = slots;
        }
        self.used += usize::from(Self::put(&mut self.slots, key, number + 1));
    }

    fn put(slots: &mut [(u64, u32)], key: u64, number: u32) -> bool {
        let mask = slots.len() - 1;
        let free = (Self::home(key)..).take(PROBES).find(|at| slots[at & mask].1 == 0);
        if let Some(at) = free {
            slots[at & mask] = (key, number);
        }
        free.is_some()
    }

    /// Takes all keys out. Room that they hardly needed is given back.
    pub(crate) fn clear(&mut self, least: usize) {
        if is_roomy(self.slots.len(), self.used, least) {
            *self = Self::of(least);
        } else {
            self.slots.fill((0, 0));
            self.used = 0;
        }
    }

    /// Bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<(u64, u32)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_in_and_not_what_was_taken_out() {
        let mut index = Index::default();
        let keys: Vec<u32> = (0..5000).map(|i| hash(&u32::to_le_bytes(i))).collect();
        for (number, &key) in (0..).zip(&keys) {
            index.insert(key, number);
        }
        for (number, &key) in (0u32..).zip(&keys).filter(|(number, _)| number % 3 == 0) {
            index.remove(key, number);
        }
        for (number, &key) in (0u32..).zip(&keys) {
            assert_eq!(index.find(key, |n| n == number).is_some(), number % 3 != 0, "{number}");
        }
    }

    #[test]
    fn keys_are_found_and_others_not() {
        let mut map = KeyMap::default();
        (0..5000_u32).for_each(|number| map.insert(u64::from(number) << 20, number));
        assert_eq!(map.get(0), Some(0));
        assert!((0..5000_u32).all(|number| map.get(u64::from(number) << 20) == Some(number)));
        assert!((0..5000_u64).all(|number| map.get(number << 20 | 1).is_none()));
        assert_eq!(KeyMap::default().get(0), None);
    }

    #[test]
    fn what_is_not_ascii_is_seen_wherever_it_stands() {
        for len in 0..40 {
            let mut bytes = vec![b'a'; len];
            assert!(hash_and_ascii(&bytes).1);
            for at in 0..len {
                bytes[at] = 0x80;
                assert!(!hash_and_ascii(&bytes).1, "{at} of {len}");
                bytes[at] = b'a';
            }
        }
    }

    #[test]
    fn collisions_cost_a_bounded_time() {
        let mut index = Index::default();
        (0..1000).for_each(|number| index.insert(7, number));
        let mut looked = 0;
        index.find(7, |_| {
            looked += 1;
            false
        });
        assert!(looked <= PROBES);
    }
}
