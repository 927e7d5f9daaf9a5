//! Cycles among the arrows between modules.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::unit::{Position, Unit};

/// Modules each of which leads to each other.
pub(crate) struct Cycle {
    pub(crate) modules: BTreeSet<String>,
    /// A shortest way round, with the place of each step.
    pub(crate) way: Vec<(String, Position)>,
}

/// The cycles of a crate, the longest first.
pub(crate) fn cycles(unit: &Unit) -> Vec<Cycle> {
    let arrows = unit.arrows();
    let mut reached: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for (from, _) in arrows.keys() {
        reached.entry(from).or_insert_with(|| steps(&arrows, from));
    }
    let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|to_| to_.contains_key(to));
    let mut cycles: Vec<Cycle> = Vec::new();
    for &start in reached.keys() {
        if !reaches(start, start) || cycles.iter().any(|cycle| cycle.modules.contains(start)) {
            continue;
        }
        let inside =
            reached.keys().filter(|&&other| reaches(start, other) && reaches(other, start));
        let modules: BTreeSet<String> = inside.map(|&module| module.to_owned()).collect();
        let ways = modules
            .iter()
            .filter_map(|from| reached.get(from.as_str()).map(|steps| way(from, steps, &arrows)));
        let way = ways.min_by_key(Vec::len).unwrap_or_default();
        cycles.push(Cycle { modules, way });
    }
    cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.modules.len()));
    cycles
}

/// Every module that `from` leads to, with the one before it on a shortest way.
fn steps<'a>(
    arrows: &'a BTreeMap<(String, String), Position>,
    from: &'a str,
) -> BTreeMap<&'a str, &'a str> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut next = VecDeque::from([from]);
    while let Some(module) = next.pop_front() {
        for (at, to) in arrows.keys().filter(|(at, _)| at == module) {
            if !before.contains_key(to.as_str()) {
                before.insert(to, at);
                next.push_back(to);
            }
        }
    }
    before
}

/// From `start` back to itself: each module, and where it names the next.
fn way(
    start: &str,
    steps: &BTreeMap<&str, &str>,
    arrows: &BTreeMap<(String, String), Position>,
) -> Vec<(String, Position)> {
    let mut way = Vec::new();
    let mut to = start;
    while let Some(&from) = steps.get(to) {
        if let Some(place) = arrows.get(&(from.to_owned(), to.to_owned())) {
            way.push((from.to_owned(), place.clone()));
        }
        to = from;
        if to == start {
            break;
        }
    }
    way.reverse();
    way
}
