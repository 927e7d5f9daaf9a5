//! Hash tables of the encoder: from content to dense numbers, without an order to depend on.

/// Multiplies and folds, eight bytes at a time; the same on every machine.
#[inline]
pub(crate) fn hash(bytes: &[u8]) -> u32 {
    let mut state = 0x9e37_79b9_7f4a_7c15 ^ bytes.len() as u64;
    let mut eights = bytes.chunks_exact(8);
    for eight in &mut eights {
        state = fold(state ^ word(eight));
    }
    let rest = eights.remainder();
    if !rest.is_empty() {
        let last = if bytes.len() >= 8 {
            word(&bytes[bytes.len() - 8..])
        } else {
            rest.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
        };
        state = fold(state ^ last);
    }
    #[expect(clippy::cast_possible_truncation, reason = "both halves are folded")]
    return (state >> 32) as u32 ^ state as u32;
}

#[inline]
fn word(eight: &[u8]) -> u64 {
    <[u8; 8]>::try_from(eight).map_or(0, u64::from_le_bytes)
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

/// Numbers by hash; the caller compares content.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Hash and number + 1; 0 is free. A power of two long.
    slots: Vec<(u32, u32)>,
    used: usize,
}

impl Index {
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
        let mut slots = vec![(0, 0); (self.slots.len() * 2).max(64)];
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

    /// Bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.len() * 8
    }
}

/// Numbers by key.
#[derive(Debug, Default)]
pub(crate) struct KeyMap {
    index: Index,
    entries: Vec<(u64, u32)>,
}

impl KeyMap {
    fn hash(key: u64) -> u32 {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
    }

    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<u32> {
        let entries = &self.entries;
        let at = self.index.find(Self::hash(key), |at| entries[at as usize].0 == key)?;
        Some(entries[at as usize].1)
    }

    pub(crate) fn insert(&mut self, key: u64, number: u32) {
        if let Ok(at) = u32::try_from(self.entries.len()) {
            self.entries.push((key, number));
            self.index.insert(Self::hash(key), at);
        }
    }

    /// Bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.index.bytes() + self.entries.len() * 16
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
