//! What topics have led to lately: a place for each, which the next topic takes that falls there.

use std::sync::Arc;

use super::Hits;

/// Topics whose subscribers are remembered.
const PLACES: usize = 4096;
/// Subscribers of one topic that are remembered; longer lists are made anew each time.
const MAX_HITS: usize = 4096;
/// Longest topic that is remembered, in bytes.
const MAX_TOPIC_BYTES: usize = 256;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Known {
    places: Vec<Option<(Arc<str>, Hits)>>,
    is_used: bool,
}

impl Known {
    /// What a topic has led to.
    pub(super) fn get(&self, topic: &str) -> Option<&Hits> {
        let (known, hits) = self.places.get(place(topic))?.as_ref()?;
        (**known == *topic).then_some(hits)
    }

    /// Remembers what a topic has led to, unless that is much.
    pub(super) fn insert(&mut self, topic: &Arc<str>, hits: &Hits) {
        let is_long = topic.len() > MAX_TOPIC_BYTES || hits.own.as_slice().len() > MAX_HITS;
        if is_long || !hits.shares.is_empty() {
            return;
        }
        if self.places.is_empty() {
            self.places.resize_with(PLACES, || None);
        }
        if let Some(known) = self.places.get_mut(place(topic)) {
            *known = Some((topic.clone(), hits.clone()));
            self.is_used = true;
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_used) {
            self.places.iter_mut().for_each(|known| *known = None);
        }
    }
}

/// Where a topic falls. Topics that somebody chose so that they fall together are found anew each
/// time, which is all that comes of it: a hash that nobody foresees would cost more than it saves.
fn place(topic: &str) -> usize {
    // Odd, from the fraction of the golden ratio (Knuth, The Art of Computer Programming, 6.4).
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = topic.as_bytes().as_chunks::<8>();
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    let hash =
        words.iter().fold(topic.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let last = rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    usize::try_from(mix(hash, last) >> 52).unwrap_or_default() % PLACES
}
