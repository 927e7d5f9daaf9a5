//! The present value of each topic that has one.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use crate::filter::matches;
use crate::publication::Publication;

/// Topics looked at in one step of a walk, so that a filter that fits few of a million topics does
/// not keep others waiting.
const MAX_LOOKED_AT: usize = 1024;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Retained {
    topics: BTreeMap<Arc<str>, Arc<Publication>>,
    bytes: usize,
}

/// A step of a walk.
#[derive(Debug)]
pub(crate) enum Step {
    /// This one fits.
    Found(Arc<Publication>),
    /// None yet; go on behind this topic.
    More(Arc<str>),
    /// There is no further one.
    End,
}

impl Retained {
    /// How many topics have one.
    pub(crate) fn len(&self) -> usize {
        self.topics.len()
    }

    /// What they take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Topics that have one, in the order of their bytes.
    pub(crate) fn topics(&self) -> impl Iterator<Item = &Arc<str>> {
        self.topics.keys()
    }

    /// The present value of a topic.
    pub(crate) fn get(&self, topic: &str) -> Option<&Arc<Publication>> {
        self.topics.get(topic)
    }

    /// Sets one; what was there before comes back.
    pub(crate) fn set(&mut self, publication: Arc<Publication>) -> Option<Arc<Publication>> {
        self.bytes += publication.size_bytes();
        let old = self.topics.insert(publication.topic.clone(), publication);
        if let Some(old) = &old {
            self.bytes = self.bytes.saturating_sub(old.size_bytes());
        }
        old
    }

    /// Takes one out.
    pub(crate) fn remove(&mut self, topic: &str) -> Option<Arc<Publication>> {
        let old = self.topics.remove(topic)?;
        self.bytes = self.bytes.saturating_sub(old.size_bytes());
        Some(old)
    }

    /// The next behind a topic that a filter fits, in the order of their bytes.
    pub(crate) fn step(&self, now: Duration, filter: &str, after: Option<&Arc<str>>) -> Step {
        if !filter.contains(['+', '#']) {
            let found = after.is_none().then(|| self.topics.get(filter)).flatten();
            let found = found.filter(|publication| !publication.is_expired(now));
            return found.map_or(Step::End, |publication| Step::Found(publication.clone()));
        }
        // Topics that fit begin with the levels before the first wildcard, or are just those.
        let wild = filter.find(['+', '#']).unwrap_or(filter.len());
        let prefix = filter.get(..wild).unwrap_or_default().trim_end_matches('/');
        let start = match after {
            Some(after) => Bound::Excluded(&**after),
            None => Bound::Included(prefix),
        };
        let range = self.topics.range::<str, _>((start, Bound::Unbounded));
        for (count, (topic, publication)) in range.enumerate() {
            if !topic.starts_with(prefix) {
                return Step::End;
            }
            if matches(filter, topic) && !publication.is_expired(now) {
                return Step::Found(publication.clone());
            }
            if count >= MAX_LOOKED_AT {
                return Step::More(topic.clone());
            }
        }
        Step::End
    }

    /// Takes out those of no use any more.
    pub(crate) fn take_expired(&mut self, now: Duration) -> Vec<Arc<Publication>> {
        let expired: Vec<Arc<str>> = self
            .topics
            .iter()
            .filter(|(_, publication)| publication.is_expired(now))
            .map(|(topic, _)| topic.clone())
            .collect();
        expired.iter().filter_map(|topic| self.remove(topic)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Protocol;

    fn walk(retained: &Retained, filter: &str) -> Vec<String> {
        let (mut after, mut found) = (None, Vec::new());
        loop {
            match retained.step(Duration::ZERO, filter, after.as_ref()) {
                Step::Found(publication) => {
                    after = Some(publication.topic.clone());
                    found.push(publication.topic.to_string());
                }
                Step::More(topic) => after = Some(topic),
                Step::End => return found,
            }
        }
    }

    #[test]
    fn a_walk_finds_what_fits_in_steps() {
        let mut retained = Retained::default();
        for topic in ["a", "a/b", "a/b/c", "a b", "ab/c", "b", "$SYS/x"] {
            retained.set(Arc::new(Publication::new(Protocol::Mqtt, topic, "x")));
        }
        for number in 0..5000 {
            let topic = format!("n/{number}");
            retained.set(Arc::new(Publication::new(Protocol::Mqtt, topic, "x")));
        }
        assert_eq!(walk(&retained, "a/#"), ["a", "a/b", "a/b/c"]);
        assert_eq!(walk(&retained, "a/+"), ["a/b"]);
        assert_eq!(walk(&retained, "+/b/+"), ["a/b/c"]);
        assert_eq!(walk(&retained, "b"), ["b"]);
        assert_eq!(walk(&retained, "$SYS/#"), ["$SYS/x"]);
        assert_eq!(walk(&retained, "#").len(), 5006);
        retained.remove("a/b");
        assert_eq!(walk(&retained, "a/#"), ["a", "a/b/c"]);
        let bytes = retained.bytes();
        retained.set(Arc::new(Publication::new(Protocol::Mqtt, "b", "longer")));
        assert_eq!(retained.bytes(), bytes + 5);
    }
}
