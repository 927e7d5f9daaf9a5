//! Bindings of a topic exchange, as a tree of words: finding those that a key fits takes steps by
//! its words and by the patterns that fit it, not by all that there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Target, Targets};

/// Any number of words (AMQP 0.9.1 §3.1.3.3).
const ANY: &str = "#";
/// One word.
const ONE: &str = "*";

#[derive(Debug, Default)]
struct Node {
    children: BTreeMap<Arc<str>, usize>,
    targets: Targets,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Words {
    nodes: Vec<Node>,
    free: Vec<usize>,
}

impl Default for Words {
    fn default() -> Self {
        Self { nodes: vec![Node::default()], free: Vec::new() }
    }
}

impl Words {
    /// The targets of a pattern, which is added.
    pub(super) fn make(&mut self, pattern: &str) -> Option<&mut Targets> {
        let mut at = 0;
        for word in words(pattern) {
            let known = self.nodes.get(at)?.children.get(word).copied();
            at = match known {
                Some(child) => child,
                None => {
                    let child = self.free.pop().unwrap_or_else(|| {
                        self.nodes.push(Node::default());
                        self.nodes.len() - 1
                    });
                    self.nodes.get_mut(at)?.children.insert(word.into(), child);
                    child
                }
            };
        }
        self.nodes.get_mut(at).map(|node| &mut node.targets)
    }

    /// Changes the targets of a pattern, which is taken out if none are left.
    pub(super) fn change(&mut self, pattern: &str, change: impl FnOnce(&mut Targets)) {
        let (mut at, mut path) = (0, Vec::new());
        for word in words(pattern) {
            let child = self.nodes.get(at).and_then(|node| node.children.get(word).copied());
            let Some(child) = child else { return };
            path.push((at, word));
            at = child;
        }
        let Some(node) = self.nodes.get_mut(at) else { return };
        change(&mut node.targets);
        while let Some((parent, word)) = path.pop() {
            let is_empty = self
                .nodes
                .get(at)
                .is_some_and(|node| node.targets.is_empty() && node.children.is_empty());
            if !is_empty {
                return;
            }
            if let Some(parent) = self.nodes.get_mut(parent) {
                parent.children.remove(word);
            }
            self.free.push(at);
            at = parent;
        }
    }

    /// Calls for the targets of each pattern that fits a key.
    pub(super) fn find(&self, key: &str, mut found: impl FnMut(&Targets)) {
        // Where patterns may be after each word; of a node whose word is `#` it stays itself.
        let (mut here, mut next) = (Vec::new(), Vec::new());
        self.arrive(0, &mut here);
        for word in key.split('.') {
            for &(at, is_any) in &here {
                let Some(node) = self.nodes.get(at) else { continue };
                if is_any {
                    self.arrive_any(at, &mut next);
                }
                for word in [word, ONE] {
                    // A word that is `#` itself fits as any other, not as what stands for many.
                    let child = (word != ANY).then(|| node.children.get(word)).flatten();
                    child.into_iter().for_each(|child| self.arrive(*child, &mut next));
                }
            }
            next.sort_unstable();
            next.dedup();
            here.clear();
            std::mem::swap(&mut here, &mut next);
        }
        here.sort_unstable();
        here.dedup_by_key(|(at, _)| *at);
        for (at, _) in here {
            self.nodes.get(at).into_iter().for_each(|node| found(&node.targets));
        }
    }

    fn arrive(&self, at: usize, next: &mut Vec<(usize, bool)>) {
        next.push((at, false));
        let any = self.nodes.get(at).and_then(|node| node.children.get(ANY));
        any.into_iter().for_each(|any| self.arrive_any(*any, next));
    }

    fn arrive_any(&self, at: usize, next: &mut Vec<(usize, bool)>) {
        next.push((at, true));
        // Patterns have no second `#` behind one, so that this ends here.
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }
}

/// One pattern of a binding.
#[derive(Debug)]
pub(in crate::amqp091) struct Pattern(Words);

impl Pattern {
    pub(in crate::amqp091) fn new(pattern: &str) -> Self {
        let mut words = Words::default();
        if let Some(targets) = words.make(pattern) {
            targets.insert(Target::Queue("".into()), 1);
        }
        Self(words)
    }

    pub(in crate::amqp091) fn fits(&self, key: &str) -> bool {
        let mut fits = false;
        self.0.find(key, |targets| fits |= !targets.is_empty());
        fits
    }
}

/// The words of a pattern, where several `#` in a row are one.
fn words(pattern: &str) -> impl Iterator<Item = &str> {
    let mut before = "";
    pattern.split('.').filter(move |word| {
        let is_again = *word == ANY && before == ANY;
        before = word;
        !is_again
    })
}

/// Whether a pattern fits a key: the same without a tree.
#[cfg(test)]
pub(in crate::amqp091) fn is_match(pattern: &str, key: &str) -> bool {
    fn fits(pattern: &[&str], key: &[&str]) -> bool {
        match (pattern.split_first(), key.split_first()) {
            (None, None) => true,
            (Some((&ANY, rest)), _) if fits(rest, key) => true,
            (Some((&ANY, _)), Some((_, key))) => fits(pattern, key),
            (Some((&word, pattern)), Some((&other, key))) if word == ONE || word == other => {
                fits(pattern, key)
            }
            _ => false,
        }
    }
    let pattern: Vec<&str> = pattern.split('.').collect();
    let key: Vec<&str> = key.split('.').collect();
    fits(&pattern, &key)
}
