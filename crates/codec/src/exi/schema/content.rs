//! Content models as automata: proto-grammars of particles and their normalisation
//! (EXI §8.5.4.1.5 to §8.5.4.2.2).
//!
//! The recommendation copies terms, concatenates grammars and merges non-terminals until no
//! terminal occurs twice. What comes out depends only on which events may follow which, so here a
//! particle becomes a graph of leaves and splits, and a state is the set of leaves that may follow:
//! the same productions, without the intermediate grammars.

use std::collections::BTreeMap;

use super::model::{Compositor, ElementIndex, Model, ParticleIndex, Term, Wildcard};
use super::names::{Name, Text};
use super::{Budget, substitutions::Substitutions};
use crate::Error;

/// What a production of content matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Terminal {
    Element(ElementIndex),
    In(Text),
    Any,
}

/// A non-terminal: productions in the order of their event codes, and whether EE is one.
#[derive(Clone, Debug, Default)]
pub(super) struct NonTerminal {
    pub(super) moves: Vec<(Terminal, u32)>,
    pub(super) accepts: bool,
}

type NodeIndex = u32;

/// Part of a content model.
#[derive(Clone, Debug)]
enum Node {
    /// The end of the content.
    Accept,
    /// One element; `order` is its place in the schema (EXI §8.5.4.3).
    Leaf { order: u32, particle: ParticleIndex, next: NodeIndex },
    /// Any of these.
    Split(Vec<NodeIndex>),
}

struct Graph<'a> {
    model: &'a Model,
    budget: &'a mut Budget,
    nodes: Vec<Node>,
}

impl Graph<'_> {
    fn push(&mut self, node: Node) -> Result<NodeIndex, Error> {
        let children = if let Node::Split(children) = &node { children.len() } else { 0 };
        self.budget.take(size_of::<Node>() + children * size_of::<NodeIndex>())?;
        let index = self.budget.index(self.nodes.len())?;
        self.nodes.push(node);
        Ok(index)
    }

    /// A particle that is followed by `next` (EXI §8.5.4.1.5). Copies of a term share the places
    /// of its leaves in the schema, which begin at `order`.
    fn particle(
        &mut self,
        particle: ParticleIndex,
        order: u32,
        next: NodeIndex,
    ) -> Result<NodeIndex, Error> {
        let found = self.model.particle(particle);
        let mut node = next;
        match found.max {
            None => {
                node = self.push(Node::Split(Vec::new()))?;
                let body = self.term(particle, order, node)?;
                self.nodes[node as usize] = Node::Split(vec![body, next]);
            }
            Some(max) => {
                for _ in found.min..max {
                    let body = self.term(particle, order, node)?;
                    node = self.push(Node::Split(vec![body, next]))?;
                }
            }
        }
        for _ in 0..found.min {
            node = self.term(particle, order, node)?;
        }
        Ok(node)
    }

    /// EXI §8.5.4.1.6 to §8.5.4.1.8
    fn term(
        &mut self,
        particle: ParticleIndex,
        mut order: u32,
        next: NodeIndex,
    ) -> Result<NodeIndex, Error> {
        let model = self.model;
        let Term::Group(compositor, children) = &model.particle(particle).term else {
            return self.push(Node::Leaf { order, particle, next });
        };
        // Even a group of nothing takes its time, however often it occurs.
        self.budget.take(1)?;
        if children.is_empty() {
            return Ok(next);
        }
        if *compositor == Compositor::Sequence {
            let leaves = |&child: &ParticleIndex| model.particle(child).leaves;
            order = children.iter().map(leaves).fold(order, u32::saturating_add);
            let mut node = next;
            for &child in children.iter().rev() {
                order = order.saturating_sub(model.particle(child).leaves);
                node = self.particle(child, order, node)?;
            }
            return Ok(node);
        }
        let mut branches = Vec::new();
        let split = self.push(Node::Split(Vec::new()))?;
        let all = *compositor == Compositor::All;
        for &child in children {
            // EXI §8.5.4.1.8.3: any of them, any number of times.
            branches.push(self.particle(child, order, if all { split } else { next })?);
            order = order.saturating_add(model.particle(child).leaves);
        }
        if all {
            branches.push(next);
        }
        self.budget.take(branches.len() * size_of::<NodeIndex>())?;
        self.nodes[split as usize] = Node::Split(branches);
        Ok(split)
    }
}

/// Which leaves come next, and whether the end may.
type Closure = (Vec<NodeIndex>, bool);

struct Builder<'a> {
    nodes: Vec<Node>,
    model: &'a Model,
    substitutions: &'a Substitutions,
    budget: &'a mut Budget,
    /// By node: the last closure that came by.
    visited: Vec<u32>,
    visit: u32,
    states: Vec<NonTerminal>,
    by_closure: BTreeMap<Closure, u32>,
    by_start: BTreeMap<Vec<NodeIndex>, u32>,
    open: Vec<(u32, Vec<NodeIndex>)>,
}

/// The automaton of a particle; state 0 is where it begins.
pub(super) fn automaton(
    model: &Model,
    substitutions: &Substitutions,
    particle: ParticleIndex,
    budget: &mut Budget,
) -> Result<Vec<NonTerminal>, Error> {
    let mut graph = Graph { model, budget, nodes: Vec::new() };
    let accept = graph.push(Node::Accept)?;
    let start = graph.particle(particle, 0, accept)?;
    let nodes = graph.nodes;
    let mut builder = Builder {
        visited: vec![0; nodes.len()],
        visit: 0,
        nodes,
        model,
        substitutions,
        budget,
        states: Vec::new(),
        by_closure: BTreeMap::new(),
        by_start: BTreeMap::new(),
        open: Vec::new(),
    };
    builder.state(vec![start])?;
    while let Some((state, leaves)) = builder.open.pop() {
        builder.states[state as usize].moves = builder.moves(&leaves)?;
    }
    Ok(builder.states)
}

impl Builder<'_> {
    /// The state behind some nodes; all with the same leaves ahead are one.
    fn state(&mut self, start: Vec<NodeIndex>) -> Result<u32, Error> {
        if let Some(&known) = self.by_start.get(&start) {
            return Ok(known);
        }
        let closure = self.closure(&start)?;
        let state = match self.by_closure.get(&closure) {
            Some(&known) => known,
            None => {
                let new = self.budget.index(self.states.len())?;
                self.budget.take(size_of::<NonTerminal>() + closure.0.len() * 8)?;
                self.states.push(NonTerminal { moves: Vec::new(), accepts: closure.1 });
                self.open.push((new, closure.0.clone()));
                self.by_closure.insert(closure, new);
                new
            }
        };
        self.by_start.insert(start, state);
        Ok(state)
    }

    fn closure(&mut self, start: &[NodeIndex]) -> Result<Closure, Error> {
        self.visit = self.visit.wrapping_add(1);
        let (mut leaves, mut accepts) = (Vec::new(), false);
        let mut open = start.to_vec();
        while let Some(at) = open.pop() {
            let seen = &mut self.visited[at as usize];
            if *seen == self.visit {
                continue;
            }
            *seen = self.visit;
            match &self.nodes[at as usize] {
                Node::Accept => accepts = true,
                Node::Leaf { .. } => leaves.push(at),
                Node::Split(branches) => open.extend_from_slice(branches),
            }
            self.budget.work(1)?;
        }
        leaves.sort_unstable_by_key(|&leaf| (self.order(leaf), leaf));
        Ok((leaves, accepts))
    }

    fn order(&self, leaf: NodeIndex) -> u32 {
        match self.nodes[leaf as usize] {
            Node::Leaf { order, .. } => order,
            _ => u32::MAX,
        }
    }

    /// Productions of a state: SE(qname) in schema order, SE(uri:*), SE(*) (EXI §8.5.4.3).
    fn moves(&mut self, leaves: &[NodeIndex]) -> Result<Vec<(Terminal, u32)>, Error> {
        let mut terminals: Vec<(Terminal, Vec<NodeIndex>)> = Vec::new();
        let mut by_name: BTreeMap<Name, usize> = BTreeMap::new();
        let mut wild: BTreeMap<Terminal, usize> = BTreeMap::new();
        for &leaf in leaves {
            let Node::Leaf { particle, next, .. } = self.nodes[leaf as usize] else { continue };
            let model = self.model;
            let single;
            let found: &mut dyn Iterator<Item = Terminal> = match &model.particle(particle).term {
                Term::Element(element) => {
                    single = self.substitutions.of(*element);
                    &mut single.iter().map(|&element| Terminal::Element(element))
                }
                Term::Wildcard(Wildcard::Set(uris)) => {
                    &mut uris.iter().map(|&uri| Terminal::In(uri))
                }
                _ => &mut [Terminal::Any].into_iter(),
            };
            for terminal in found {
                self.budget.work(1)?;
                let slot = match terminal {
                    Terminal::Element(element) => {
                        by_name.entry(model.elements[element as usize].name)
                    }
                    wildcard => {
                        // Kept apart, since a name and a wildcard are never the same terminal.
                        let at = *wild.entry(wildcard).or_insert(terminals.len());
                        if at == terminals.len() {
                            terminals.push((terminal, Vec::new()));
                        }
                        terminals[at].1.push(next);
                        continue;
                    }
                };
                let at = *slot.or_insert(terminals.len());
                if at == terminals.len() {
                    terminals.push((terminal, Vec::new()));
                }
                terminals[at].1.push(next);
            }
        }
        terminals.sort_by_key(|(terminal, _)| match terminal {
            Terminal::Element(_) => 0,
            Terminal::In(_) => 1,
            Terminal::Any => 2,
        });
        let mut moves = Vec::with_capacity(terminals.len());
        for (terminal, mut next) in terminals {
            next.sort_unstable();
            next.dedup();
            moves.push((terminal, self.state(next)?));
        }
        self.budget.take(moves.len() * size_of::<(Terminal, u32)>())?;
        Ok(moves)
    }
}
