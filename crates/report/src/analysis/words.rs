//! Advice in words, in the form of a table of recommendations.

use record::campaign::Way;

use super::types::{Ruling, ServiceRatio, Verdict};
use super::{SIGNIFICANT_P, permutation, rule};

/// `name=value`, joined by ` + `.
pub(super) fn setting(settings: &[(String, String)]) -> String {
    let one = |(name, value): &(String, String)| format!("{name}={value}");
    settings.iter().map(one).collect::<Vec<_>>().join(" + ")
}

/// A ratio of times: `12 % less time`.
pub(super) fn change(ratio: f64) -> String {
    let (share, word) = if ratio < 1.0 { (1.0 - ratio, "less") } else { (ratio - 1.0, "more") };
    let decimals = usize::from(share < 0.0995);
    format!("{:.decimals$} % {word} time", 100.0 * share)
}

/// `p = 0.012`, `p < 0.001`.
pub(super) fn probability(p: Option<f64>) -> String {
    match p {
        None => "no p".to_string(),
        Some(p) if p < 0.001 => "p < 0.001".to_string(),
        Some(p) => format!("p = {p:.3}"),
    }
}

/// What to use and what to avoid, way by way.
pub(super) fn advice(verdicts: &[Verdict]) -> String {
    let mut sentences = Vec::new();
    for way in Way::ALL {
        let of_way: Vec<&Verdict> = verdicts.iter().filter(|verdict| verdict.way == way).collect();
        if !of_way.is_empty() {
            sentences.push(format!("{}{}", introduction(way), of_one_way(&of_way)));
        }
    }
    sentences.join(" ")
}

fn introduction(way: Way) -> &'static str {
    match way {
        Way::Direct => "",
        Way::Gzip => "Where clients offer gzip: ",
        Way::NewConnection => "Where each exchange has a connection of its own: ",
        Way::Longwire => "Through longwire: ",
    }
}

fn of_one_way(verdicts: &[&Verdict]) -> String {
    let used = verdicts.iter().copied().filter(|verdict| verdict.verdict == Ruling::Use);
    let best = used.clone().min_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    let mut parts = Vec::new();
    if let Some(best) = best {
        parts.push(format!("Use {}.", named(best)));
        let others = alone(used, best);
        if !others.is_empty() {
            parts.push(format!("Each alone also helps: {}.", others.join(", ")));
        }
    }
    let avoided = avoided(verdicts);
    if !avoided.is_empty() {
        parts.push(format!("Avoid {}.", avoided.join(", ")));
    }
    if parts.is_empty() {
        let undecided = |verdict: &&&Verdict| verdict.verdict == Ruling::Undecided;
        let pairs = verdicts.iter().map(|verdict| verdict.pairs).max().unwrap_or(0);
        let enough = permutation::pairs_min(SIGNIFICANT_P);
        return match verdicts.iter().filter(undecided).count() {
            0 => "No setting matters: keep the defaults.".to_string(),
            _ if pairs < enough => {
                format!("Too few runs to prove anything: {pairs} a setting, at least {enough}.")
            }
            open => format!("Nothing proven: {open} of {} settings undecided.", verdicts.len()),
        };
    }
    parts.join(" ")
}

fn ratio(verdict: &Verdict) -> f64 {
    verdict.ratio.unwrap_or(f64::INFINITY)
}

/// What a setting does to each service, if the intervals of two of them (with few runs: all their
/// ratios) are apart by what matters.
pub(super) fn by_service(verdict: &Verdict) -> Option<String> {
    let intervals = verdict.services.iter().filter_map(|one| one.interval.or(one.range));
    let greatest_low = intervals.clone().map(|(low, _)| low).fold(0.0, f64::max);
    let least_high = intervals.map(|(_, high)| high).fold(f64::INFINITY, f64::min);
    let timed = || verdict.services.iter().filter_map(|one| Some((&one.service, one.ratio?)));
    let least = timed().map(|(_, ratio)| ratio).fold(f64::INFINITY, f64::min);
    let greatest = timed().map(|(_, ratio)| ratio).fold(0.0, f64::max);
    let is_apart = greatest_low > least_high && greatest > least * (1.0 + rule::MATTERS);
    let one = |(service, ratio): (&String, f64)| format!("{service} {}", change(ratio));
    is_apart.then(|| timed().map(one).collect::<Vec<_>>().join(", "))
}

/// With how much it gains, service by service where one does not gain.
fn named(verdict: &Verdict) -> String {
    let Some(ratio) = verdict.ratio else { return setting(&verdict.setting) };
    let gains = |one: &ServiceRatio| one.ratio.is_some_and(|ratio| ratio <= 1.0 - rule::MATTERS);
    let services = if verdict.services.iter().all(gains) { None } else { by_service(verdict) };
    let services = services.map_or(String::new(), |services| format!(": {services}"));
    format!("{} ({}{services})", setting(&verdict.setting), change(ratio))
}

/// Single settings that help too, with names that the best one does not have: the fastest value of
/// each. They are not added to the best, since the combination is a measurement of its own.
fn alone<'a>(used: impl Iterator<Item = &'a Verdict>, best: &Verdict) -> Vec<String> {
    let mut fastest: Vec<&Verdict> = Vec::new();
    for verdict in used {
        let [(name, _)] = &verdict.setting[..] else { continue };
        if best.setting.iter().any(|(known, _)| known == name) {
            continue;
        }
        let same = |other: &&mut &Verdict| other.setting.iter().any(|(known, _)| known == name);
        match fastest.iter_mut().find(same) {
            Some(other) if ratio(verdict) < ratio(other) => *other = verdict,
            Some(_) => {}
            None => fastest.push(verdict),
        }
    }
    fastest.into_iter().map(named).collect()
}

/// What to avoid; a combination only when none of its parts says it already.
fn avoided(verdicts: &[&Verdict]) -> Vec<String> {
    let avoid: Vec<&Verdict> =
        verdicts.iter().copied().filter(|verdict| verdict.verdict == Ruling::Avoid).collect();
    let has_part = |verdict: &Verdict| {
        avoid.iter().any(|other| {
            other.setting.len() < verdict.setting.len()
                && other.setting.iter().all(|one| verdict.setting.contains(one))
        })
    };
    let mut kinds: Vec<(&Verdict, String, Vec<&str>)> = Vec::new();
    for verdict in avoid.iter().copied().filter(|verdict| !has_part(verdict)) {
        let harm = harm(verdict);
        let same = |(first, of_first, _): &&mut (&Verdict, String, Vec<&str>)| {
            *of_first == harm && is_other_value(&first.setting, &verdict.setting)
        };
        match (kinds.iter_mut().find(same), &verdict.setting[..]) {
            (Some((.., more)), [(_, value)]) => more.push(value),
            _ => kinds.push((verdict, harm, Vec::new())),
        }
    }
    let worded = kinds.into_iter().map(|(first, harm, more)| {
        let values = more.iter().map(|value| format!(", {value}")).collect::<String>();
        format!("{}{values} ({harm})", setting(&first.setting))
    });
    worded.collect()
}

/// Two values of one setting, each alone.
fn is_other_value(first: &[(String, String)], second: &[(String, String)]) -> bool {
    matches!((first, second), ([(one, _)], [(other, _)]) if one == other)
}

fn harm(verdict: &Verdict) -> String {
    match verdict.ratio {
        Some(ratio) if !rule::fails_more(verdict) => change(ratio),
        _ => "fails more often".to_string(),
    }
}
