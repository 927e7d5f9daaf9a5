//! Which filters fit a topic, found level by level: a profile may have thousands.

use std::collections::BTreeMap;

/// Filters by their levels, each with a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree {
    // bound: filters of a profile
    levels: BTreeMap<Box<str>, Tree>,
    here: Vec<usize>,
    /// Those that end in `#` here.
    below: Vec<usize>,
}

impl Tree {
    /// Adds a filter.
    pub(super) fn insert(&mut self, filter: &str, number: usize) {
        let mut at = self;
        for level in filter.split('/') {
            if level == "#" {
                at.below.push(number);
                return;
            }
            at = at.levels.entry(level.into()).or_default();
        }
        at.here.push(number);
    }

    /// The numbers of the filters that fit a topic, in their order.
    pub(super) fn find(&self, topic: &str) -> Vec<usize> {
        let mut found = Vec::new();
        let (first, rest) = topic.split_once('/').map_or((topic, None), |(a, b)| (a, Some(b)));
        // Wildcards fit no topic that is the broker's own (MQTT 5 §4.7.2).
        let is_own = topic.starts_with('$');
        if !is_own {
            found.extend(&self.below);
        }
        for level in [Some(first), (!is_own).then_some("+")].into_iter().flatten() {
            if let Some(next) = self.levels.get(level) {
                next.collect(rest, &mut found);
            }
        }
        found.sort_unstable();
        found
    }

    fn collect(&self, rest: Option<&str>, found: &mut Vec<usize>) {
        // `#` fits its parent too (MQTT 5 §4.7.1.2).
        found.extend(&self.below);
        let Some(rest) = rest else {
            found.extend(&self.here);
            return;
        };
        let (first, rest) = rest.split_once('/').map_or((rest, None), |(a, b)| (a, Some(b)));
        for level in [first, "+"] {
            if let Some(next) = self.levels.get(level) {
                next.collect(rest, found);
            }
        }
    }
}
