//! What the pair gains: each cell through longwire against the same one direct.

use std::collections::BTreeMap;

use record::campaign::{Campaign, Cell, PAIR_SETTINGS, Way};

use super::bootstrap;
use super::chance::Chance;
use super::pairs::Pairs;
use super::series::{mean, mean_of_means};
use super::types::Gain;

/// Everything of a cell that is not the pair's.
type CellKey<'a> = (&'a str, &'a str, &'a str, Vec<&'a (String, String)>);

/// Every cell through longwire that has a direct one beside it, in the order of the cells.
pub(super) fn all(campaign: &Campaign) -> Vec<Gain> {
    let cells = &campaign.cells;
    let mut direct: BTreeMap<CellKey<'_>, usize> = BTreeMap::new();
    for (index, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.way == Way::Direct) {
        direct.entry(place(cell)).or_insert(index);
    }
    let through = cells.iter().enumerate().filter(|(_, cell)| cell.way == Way::Longwire);
    let gains = through.filter_map(|(index, cell)| {
        let direct = *direct.get(&place(cell))?;
        Some(one(cells.get(direct)?, cell, (direct, index)))
    });
    gains.collect()
}

fn place(cell: &Cell) -> CellKey<'_> {
    let of_server = |(name, _): &&(String, String)| !PAIR_SETTINGS.contains(&name.as_str());
    let settings = cell.settings.iter().filter(of_server).collect();
    (&cell.network, &cell.server, &cell.service, settings)
}

fn one(direct: &Cell, through: &Cell, (direct_at, at): (usize, usize)) -> Gain {
    let pairs = Pairs::of(direct, through);
    let mut chance = Chance::new(&through.name, "gain");
    let interval = bootstrap::interval(&[&pairs.logs], &mut chance, |drawn| mean_of_means(drawn));
    let times = |log: f64| (-log).exp();
    Gain {
        direct: direct_at,
        cell: at,
        pairs: pairs.logs.len(),
        bounds: pairs.bounds,
        times_as_fast: mean(&pairs.logs).map(times),
        interval: interval.map(|(low, high)| (times(high), times(low))),
    }
}
