//! What topics have led to lately: a place for each, which the next topic takes that falls there.
//! A topic gets its place the second time, since many come only once.

use std::sync::Arc;

use super::Hits;

/// Topics whose subscribers are remembered.
const PLACES: usize = 4096;
/// Subscribers of one topic that are remembered; longer lists are made anew each time.
const MAX_HITS: usize = 4096;
/// Longest topic that is remembered, in bytes.
const MAX_TOPIC_BYTES: usize = 256;
/// Set in a mark whose place is taken.
const TAKEN: u64 = 1;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// By place, the hash of the topic that fell there last; together they stay near the processor.
    marks: Vec<u64>,
    places: Vec<Option<(Arc<str>, Hits)>>,
    is_used: bool,
}

impl Known {
    /// What a topic has led to.
    pub(super) fn get(&self, topic: &str) -> Option<&Hits> {
        let hash = hash(topic);
        if *self.marks.get(place(hash))? != hash | TAKEN {
            return None;
        }
        let (known, hits) = self.places.get(place(hash))?.as_ref()?;
        (**known == *topic).then_some(hits)
    }

    /// Remembers what a topic has led to, unless that is much.
    pub(super) fn insert(&mut self, topic: &Arc<str>, hits: &Hits) {
        let is_long = topic.len() > MAX_TOPIC_BYTES || hits.own.as_slice().len() > MAX_HITS;
        if is_long || !hits.shares.is_empty() {
            return;
        }
        if self.marks.is_empty() {
            self.marks.resize(PLACES, 0);
            self.places.resize_with(PLACES, || None);
        }
        let hash = hash(topic);
        let at = place(hash);
        let (Some(mark), Some(known)) = (self.marks.get_mut(at), self.places.get_mut(at)) else {
            return;
        };
        if *mark & !TAKEN == hash {
            *known = Some((topic.clone(), hits.clone()));
            *mark |= TAKEN;
            self.is_used = true;
            return;
        }
        if *mark & TAKEN != 0 {
            *known = None;
        }
        *mark = hash;
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_used) {
            self.marks.iter_mut().for_each(|mark| *mark &= !TAKEN);
            self.places.iter_mut().for_each(|known| *known = None);
        }
    }
}

/// A number that topics seldom have in common, without [`TAKEN`]. Topics that somebody chose so
/// that they fall together are found anew each time, which is all that comes of it: a hash that
/// nobody foresees would cost more than it saves.
fn hash(topic: &str) -> u64 {
    // Odd, from the fraction of the golden ratio (Knuth, The Art of Computer Programming, 6.4).
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = topic.as_bytes().as_chunks::<8>();
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    let hash =
        words.iter().fold(topic.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let last = rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    mix(hash, last) & !TAKEN
}

/// Where a topic of some hash falls.
fn place(hash: u64) -> usize {
    usize::try_from(hash >> 52).unwrap_or_default() % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_known_the_second_time_until_all_are_forgotten() {
        let mut known = Known::default();
        let topics: Vec<Arc<str>> = (0..3 * PLACES).map(|one| format!("a/{one}").into()).collect();
        let hits = Hits::default();
        for (round, is_known) in [(0, false), (1, false), (2, true), (3, true)] {
            for topic in topics.iter().take(10) {
                assert_eq!(known.get(topic).is_some(), is_known, "{topic} {round}");
                known.insert(topic, &hits);
            }
        }
        for topic in topics.iter().chain(&topics) {
            known.insert(topic, &hits);
        }
        assert_eq!((known.places.len(), known.marks.len()), (PLACES, PLACES));
        known.insert(&topics[7], &hits);
        known.insert(&topics[7], &hits);
        assert!(known.get(&topics[7]).is_some());
        known.clear();
        assert!(known.get(&topics[7]).is_none());
        known.insert(&topics[7], &hits);
        assert!(known.get(&topics[7]).is_some(), "that it comes often is not forgotten");
    }
}
