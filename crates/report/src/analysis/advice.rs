//! What a network's measurements say about a server's settings, all services together.

use std::collections::BTreeMap;

use record::campaign::{Campaign, Cell, Way};

use super::chance::Chance;
use super::pairs::Pairs;
use super::rule;
use super::series::mean_of_means;
use super::types::{Comparison, NetworkAdvice, PartTest, Ruling, ServiceRatio, Verdict};
use super::{bootstrap, holm, permutation, words};

/// Of fewer pairs the least and the greatest ratio say nothing.
const MIN_RANGE_PAIRS: usize = 3;

/// Settings as a cell has them.
type Settings = [(String, String)];

/// The cells of one setting on one way, service by service.
struct Group<'a> {
    way: Way,
    setting: &'a Settings,
    /// (default, setting).
    cells: Vec<(&'a Cell, &'a Cell)>,
}

/// Network after network, in the campaign's order.
pub(super) fn all(campaign: &Campaign, comparisons: &[Comparison]) -> Vec<NetworkAdvice> {
    let position = |name: &str| campaign.networks.iter().position(|network| network.name == name);
    let mut families: BTreeMap<(usize, &str, &str), Vec<Group<'_>>> = BTreeMap::new();
    for comparison in comparisons {
        let cell = |index: usize| campaign.cells.get(index);
        let (Some(default), Some(cell)) = (cell(comparison.default), cell(comparison.cell)) else {
            continue;
        };
        // What is not among the networks comes last.
        let at = position(&cell.network).unwrap_or(usize::MAX);
        let family = families.entry((at, &cell.network, &cell.server)).or_default();
        join(family, default, cell);
    }
    let advised = families.iter().map(|((_, network, server), groups)| {
        let verdicts = verdicts(&format!("{network}/{server}"), groups);
        let paper = campaign.advice.iter().find(|advice| advice.network == *network);
        NetworkAdvice {
            network: (*network).to_string(),
            server: (*server).to_string(),
            paper: paper.map(|advice| advice.text.clone()),
            text: words::advice(&verdicts),
            verdicts,
        }
    });
    advised.collect()
}

fn join<'a>(family: &mut Vec<Group<'a>>, default: &'a Cell, cell: &'a Cell) {
    let same = |group: &&mut Group<'_>| group.way == cell.way && group.setting == cell.settings;
    match family.iter_mut().find(same) {
        Some(group) => group.cells.push((default, cell)),
        None => family.push(Group {
            way: cell.way,
            setting: &cell.settings,
            cells: vec![(default, cell)],
        }),
    }
}

/// The verdicts of one family: the tests of each kind are corrected together.
fn verdicts(family: &str, groups: &[Group<'_>]) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = groups.iter().map(|group| measured(family, group)).collect();
    correct(&mut verdicts, |verdict| verdict.p, |verdict| &mut verdict.p_adjusted);
    let errors_p = |verdict: &Verdict| verdict.errors_p_adjusted;
    correct(&mut verdicts, errors_p, |verdict| &mut verdict.errors_p_adjusted);
    let parts: Vec<Option<PartTest>> =
        groups.iter().map(|group| against_part(family, group, groups, &verdicts)).collect();
    let p: Vec<Option<f64>> =
        parts.iter().map(|part| part.as_ref().map(|part| part.p_adjusted)).collect();
    for ((verdict, part), p_adjusted) in verdicts.iter_mut().zip(parts).zip(holm::adjusted(&p)) {
        verdict.part =
            part.map(|part| PartTest { p_adjusted: p_adjusted.unwrap_or(part.p_adjusted), ..part });
        (verdict.verdict, verdict.why) = rule::decide(verdict);
        if let Some(services) = words::by_service(verdict) {
            verdict.why += &format!(" It depends on the service: {services}.");
        }
    }
    verdicts
}

/// Holm over all verdicts, from one field to another.
fn correct(
    verdicts: &mut [Verdict],
    from: impl Fn(&Verdict) -> Option<f64>,
    to: impl Fn(&mut Verdict) -> &mut Option<f64>,
) {
    let p: Vec<Option<f64>> = verdicts.iter().map(from).collect();
    for (verdict, adjusted) in verdicts.iter_mut().zip(holm::adjusted(&p)) {
        *to(verdict) = adjusted;
    }
}

/// What was measured of a setting; p values not yet corrected, and nothing decided.
fn measured(family: &str, group: &Group<'_>) -> Verdict {
    let services: Vec<Pairs> =
        group.cells.iter().map(|(default, cell)| Pairs::of(default, cell)).collect();
    let pooled = Pairs::pooled(&services);
    let name = format!("{family}/{}/{}", group.way.name(), words::setting(group.setting));
    let chance = |use_for| Chance::new(&name, use_for);
    let strata = strata(&services);
    let interval = bootstrap::interval(&strata, &mut chance("ratio"), |drawn| mean_of_means(drawn));
    let errors_p = pooled.errors_p(&mut chance("errors"));
    Verdict {
        way: group.way,
        setting: group.setting.to_vec(),
        services: by_service(&name, group, &services),
        verdict: Ruling::Undecided,
        ratio: mean_of_means(&strata).map(f64::exp),
        interval: interval.map(|(low, high)| (low.exp(), high.exp())),
        p: permutation::two_sided(&weighted(&strata), &mut chance("signs")),
        p_adjusted: None,
        pairs: pooled.logs.len(),
        bounds: pooled.bounds,
        lost: pooled.lost,
        unpaired: pooled.unpaired,
        errors: pooled.errors,
        exchanges: pooled.exchanges,
        errors_p_adjusted: errors_p.map(|(exchanges, _)| exchanges),
        errors_runs_p: errors_p.map(|(_, runs)| runs),
        part: None,
        why: String::new(),
    }
}

fn by_service(name: &str, group: &Group<'_>, services: &[Pairs]) -> Vec<ServiceRatio> {
    let one = |((_, cell), pairs): (&(&Cell, &Cell), &Pairs)| {
        let mut chance = Chance::new(&format!("{name}/{}", cell.service), "ratio");
        let strata = [&pairs.logs[..]];
        let interval = bootstrap::interval(&strata, &mut chance, |drawn| mean_of_means(drawn));
        ServiceRatio {
            service: cell.service.clone(),
            ratio: mean_of_means(&strata).map(f64::exp),
            interval: interval.map(|(low, high)| (low.exp(), high.exp())),
            range: (pairs.logs.len() >= MIN_RANGE_PAIRS).then(|| range(&pairs.logs)),
        }
    };
    group.cells.iter().zip(services).map(one).collect()
}

fn range(logs: &[f64]) -> (f64, f64) {
    let low = logs.iter().copied().fold(f64::INFINITY, f64::min);
    let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (low.exp(), high.exp())
}

/// The logarithms of each service that has any.
fn strata(services: &[Pairs]) -> Vec<&[f64]> {
    services.iter().map(|pairs| &pairs.logs[..]).filter(|logs| !logs.is_empty()).collect()
}

/// Terms whose sum is the mean of the means of the strata.
fn weighted(strata: &[&[f64]]) -> Vec<f64> {
    let of_stratum = |logs: &&[f64]| {
        let weight = 1.0 / (strata.len() * logs.len()) as f64;
        logs.iter().map(|log| weight * log).collect::<Vec<f64>>()
    };
    strata.iter().flat_map(of_stratum).collect()
}

/// A combination against the fastest of its measured parts; its p not yet corrected.
fn against_part(
    family: &str,
    group: &Group<'_>,
    groups: &[Group<'_>],
    verdicts: &[Verdict],
) -> Option<PartTest> {
    let is_part = |other: &Group<'_>| {
        other.way == group.way
            && other.setting.len() < group.setting.len()
            && other.setting.iter().all(|one| group.setting.contains(one))
    };
    let timed = groups.iter().zip(verdicts).filter(|(other, _)| is_part(other));
    let (best, _) = timed
        .filter_map(|(other, verdict)| Some((other, verdict.ratio?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    let services: Vec<Pairs> = group
        .cells
        .iter()
        .filter_map(|(_, cell)| {
            let (_, part) = best.cells.iter().find(|(_, part)| part.service == cell.service)?;
            Some(Pairs::of(part, cell))
        })
        .collect();
    let strata = strata(&services);
    let name = format!("{family}/{}/{}", group.way.name(), words::setting(group.setting));
    Some(PartTest {
        setting: best.setting.to_vec(),
        pairs: strata.iter().map(|logs| logs.len()).sum(),
        ratio: mean_of_means(&strata)?.exp(),
        p_adjusted: permutation::two_sided(&weighted(&strata), &mut Chance::new(&name, "part"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_the_same_weight_in_the_test_as_in_the_ratio() {
        let strata: [&[f64]; 2] = [&[0.1, 0.2, 0.3, 0.4], &[-0.9]];
        let sum: f64 = weighted(&strata).iter().sum();
        assert!((sum - mean_of_means(&strata).unwrap()).abs() < 1e-12);
        assert!((sum - (0.25 - 0.9) / 2.0).abs() < 1e-12);
    }
}
