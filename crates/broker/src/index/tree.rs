//! Filters with wildcards, by their levels.

use std::collections::BTreeMap;

use super::levels::Level;
use super::{Hits, Subscribers};

/// A node of the tree.
pub(super) type NodeId = u32;

const ROOT: NodeId = 0;

/// A filter ends here, or goes on.
#[derive(Debug, Default)]
struct Node {
    /// By the text of the next level.
    next: BTreeMap<u32, NodeId>,
    /// Behind `+` and `#`; 0, which is the root, where there is nothing.
    any: NodeId,
    rest: NodeId,
    here: Subscribers,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    free: Vec<NodeId>,
}

impl Node {
    fn get(&self, level: Level) -> Option<NodeId> {
        let next = match level {
            Level::Text(text) => self.next.get(&text).copied()?,
            Level::Any => self.any,
            Level::Rest => self.rest,
        };
        (next != ROOT).then_some(next)
    }

    fn set(&mut self, level: Level, next: NodeId) {
        match level {
            Level::Any => self.any = next,
            Level::Rest => self.rest = next,
            Level::Text(text) if next == ROOT => {
                self.next.remove(&text);
            }
            Level::Text(text) => {
                self.next.insert(text, next);
            }
        }
    }

    fn leads_nowhere(&self) -> bool {
        self.next.is_empty() && self.any == ROOT && self.rest == ROOT
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self { nodes: vec![Node::default()], free: Vec::new() }
    }
}

impl Tree {
    /// The node of a filter, made if there is none; whether it had no subscriber.
    pub(super) fn make(&mut self, path: &[Level]) -> (NodeId, bool) {
        let mut node = ROOT;
        for level in path {
            node = match self.next(node, *level) {
                Some(next) => next,
                None => self.add(node, *level),
            };
        }
        let is_new = self.nodes.get(node as usize).is_none_or(|node| node.here.is_empty());
        (node, is_new)
    }

    /// The node of a filter.
    pub(super) fn find(&self, path: &[Level]) -> Option<NodeId> {
        path.iter().try_fold(ROOT, |node, level| self.next(node, *level))
    }

    /// Those that have subscribed at a node.
    pub(super) fn at_mut(&mut self, node: NodeId) -> &mut Subscribers {
        // The index is of a node that `make` or `find` has given just before.
        let at = (node as usize).min(self.nodes.len() - 1);
        &mut self.nodes[at].here
    }

    /// Takes out the nodes of a path that lead to nobody any more.
    pub(super) fn prune(&mut self, path: &[Level]) {
        let mut way = vec![ROOT];
        for level in path {
            let Some(next) = way.last().and_then(|node| self.next(*node, *level)) else { return };
            way.push(next);
        }
        for (at, level) in path.iter().enumerate().rev() {
            let (Some(parent), Some(child)) = (way.get(at), way.get(at + 1)) else { return };
            let is_unused = self
                .nodes
                .get(*child as usize)
                .is_some_and(|node| node.leads_nowhere() && node.here.is_empty());
            if !is_unused {
                return;
            }
            if let Some(node) = self.nodes.get_mut(*parent as usize) {
                node.set(*level, ROOT);
            }
            self.free.push(*child);
        }
    }

    /// Adds all whose filter fits a topic of these levels.
    pub(super) fn find_all(&self, topic: &[Option<u32>], is_special: bool, hits: &mut Hits) {
        let mut open: Vec<(NodeId, usize)> = Vec::new();
        // Only a node that goes on in two ways needs the list.
        let mut next = Some((ROOT, 0_usize));
        while let Some((node, depth)) = next.take().or_else(|| open.pop()) {
            let Some(node) = self.nodes.get(node as usize) else { continue };
            let wild = !(is_special && depth == 0);
            if wild && node.rest != ROOT {
                self.add_at(node.rest, hits);
            }
            let Some(level) = topic.get(depth) else {
                node.here.add_to(hits);
                continue;
            };
            next = level.and_then(|level| node.next.get(&level)).map(|text| (*text, depth + 1));
            if wild && node.any != ROOT {
                open.extend(next.replace((node.any, depth + 1)));
            }
        }
    }

    /// How many nodes are in use, the root among them.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    fn add_at(&self, node: NodeId, hits: &mut Hits) {
        if let Some(node) = self.nodes.get(node as usize) {
            node.here.add_to(hits);
        }
    }

    fn next(&self, node: NodeId, level: Level) -> Option<NodeId> {
        self.nodes.get(node as usize)?.get(level)
    }

    fn add(&mut self, parent: NodeId, level: Level) -> NodeId {
        let child = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(Node::default());
            u32::try_from(self.nodes.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(node) = self.nodes.get_mut(parent as usize) {
            node.set(level, child);
        }
        child
    }
}
