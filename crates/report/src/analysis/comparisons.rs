//! Each cell with settings against its default.

use std::collections::BTreeMap;

use record::campaign::{Campaign, Cell, Way};

use super::chance::Chance;
use super::pairs::Pairs;
use super::series::{mean, mean_of_means, rank_biserial};
use super::types::Comparison;
use super::{bootstrap, holm, permutation};

/// Network, server, service and way of a cell.
type CellKey<'a> = (&'a str, &'a str, &'a str, Way);

/// All comparisons, with the number of cells that have settings but no default beside them.
pub(super) fn all(campaign: &Campaign) -> (Vec<Comparison>, usize) {
    let cells = &campaign.cells;
    let mut defaults: BTreeMap<CellKey<'_>, usize> = BTreeMap::new();
    for (index, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.settings.is_empty()) {
        defaults.entry(place(cell)).or_insert(index);
    }
    let (mut comparisons, mut alone) = (Vec::new(), 0);
    for (index, cell) in cells.iter().enumerate().filter(|(_, cell)| !cell.settings.is_empty()) {
        match default_of(cell, &defaults) {
            Some(default) => comparisons.push(one(cells, default, index)),
            None => alone += 1,
        }
    }
    correct(cells, &mut comparisons);
    (comparisons, alone)
}

fn place(cell: &Cell) -> CellKey<'_> {
    (&cell.network, &cell.server, &cell.service, cell.way)
}

/// The default of the same way. A client that offers gzip to a server that does not compress gets
/// what one gets that does not offer it, so that the direct way's default serves as well.
fn default_of(cell: &Cell, defaults: &BTreeMap<CellKey<'_>, usize>) -> Option<usize> {
    let (network, server, service, way) = place(cell);
    let other = (way == Way::Gzip).then_some((network, server, service, Way::Direct));
    let same = defaults.get(&place(cell));
    same.or_else(|| defaults.get(&other?)).copied()
}

fn one(cells: &[Cell], default: usize, index: usize) -> Comparison {
    let (Some(without), Some(cell)) = (cells.get(default), cells.get(index)) else {
        return Comparison::default();
    };
    let pairs = Pairs::of(without, cell);
    let chance = |use_for| Chance::new(&cell.name, use_for);
    let interval =
        bootstrap::interval(&[&pairs.logs], &mut chance("ratio"), |drawn| mean_of_means(drawn));
    Comparison {
        cell: index,
        default,
        pairs: pairs.logs.len(),
        bounds: pairs.bounds,
        lost: pairs.lost,
        unpaired: pairs.unpaired,
        ratio: mean(&pairs.logs).map(f64::exp),
        interval: interval.map(|(low, high)| (low.exp(), high.exp())),
        effect: rank_biserial(&pairs.logs),
        p: permutation::two_sided(&pairs.logs, &mut chance("signs")),
        p_adjusted: None,
        errors: pairs.errors,
        exchanges: pairs.exchanges,
    }
}

/// Holm within each network and server.
fn correct(cells: &[Cell], comparisons: &mut [Comparison]) {
    let mut families: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (at, comparison) in comparisons.iter().enumerate() {
        if let Some(cell) = cells.get(comparison.cell) {
            families.entry((&cell.network, &cell.server)).or_default().push(at);
        }
    }
    let p: Vec<Option<f64>> = comparisons.iter().map(|comparison| comparison.p).collect();
    for family in families.values() {
        let of_family: Vec<Option<f64>> =
            family.iter().map(|&at| p.get(at).copied().flatten()).collect();
        for (&at, adjusted) in family.iter().zip(holm::adjusted(&of_family)) {
            if let Some(comparison) = comparisons.get_mut(at) {
                comparison.p_adjusted = adjusted;
            }
        }
    }
}
