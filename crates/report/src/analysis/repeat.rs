//! Whether a second campaign gives what the first did.

use std::collections::{BTreeMap, BTreeSet};

use record::campaign::{Campaign, Cell};

use super::bootstrap::{self, MIN_VALUES};
use super::cells::time_s;
use super::chance::Chance;
use super::series::median;
use super::types::{CellRepeat, Repeatability};

/// Cell by cell, in the order of the first.
pub(super) fn compare(first: &Campaign, second: &Campaign) -> Repeatability {
    let seconds: BTreeMap<&str, &Cell> =
        second.cells.iter().map(|cell| (cell.name.as_str(), cell)).collect();
    let firsts: BTreeSet<&str> = first.cells.iter().map(|cell| cell.name.as_str()).collect();
    let mut out = Repeatability::default();
    for cell in &first.cells {
        match seconds.get(cell.name.as_str()).map(|other| one(cell, other)) {
            Some(Some(repeat)) => out.cells.push(repeat),
            Some(None) => out.too_few.push(cell.name.clone()),
            None => out.only_one.push(cell.name.clone()),
        }
    }
    let new = second.cells.iter().filter(|cell| !firsts.contains(cell.name.as_str()));
    out.only_one.extend(new.map(|cell| cell.name.clone()));
    let held = out.cells.iter().filter(|cell| cell.holds).count();
    out.share = (!out.cells.is_empty()).then(|| held as f64 / out.cells.len() as f64);
    out
}

/// None with fewer than six runs on a side.
fn one(first: &Cell, second: &Cell) -> Option<CellRepeat> {
    let times = |cell: &Cell| cell.runs.iter().filter_map(time_s).collect::<Vec<f64>>();
    let (mut before, mut after) = (times(first), times(second));
    if before.len().min(after.len()) < MIN_VALUES {
        return None;
    }
    let mut chance = Chance::new(&first.name, "repeat");
    let interval_s = bootstrap::interval(&[&before, &after], &mut chance, |drawn| match drawn {
        [before, after] => Some(median(after)? - median(before)?),
        _ => None,
    })?;
    Some(CellRepeat {
        name: first.name.clone(),
        runs: (before.len(), after.len()),
        median_s: (median(&mut before)?, median(&mut after)?),
        interval_s,
        holds: interval_s.0 <= 0.0 && 0.0 <= interval_s.1,
    })
}
