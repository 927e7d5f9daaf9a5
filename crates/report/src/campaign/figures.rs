//! The pictures that the plan asks for: settings side by side, service by service.

use std::fmt::Write;

use record::campaign::{Figure, Way};

use super::rows::Rows;
use super::view::{Kind, View, describe, kinds, services, settings_name};
use crate::format;
use crate::text::escaped;

/// All of them.
pub(super) fn figures(view: &View<'_>) -> String {
    if view.campaign.figures.is_empty() {
        return String::new();
    }
    let mut out = "<h2 id='figures'>Figures</h2>\n".to_string();
    for figure in &view.campaign.figures {
        let title = escaped(&figure.title);
        let _ = writeln!(out, "<h3>{title}</h3>\n{}", drawn(view, figure));
    }
    out
}

fn drawn(view: &View<'_>, figure: &Figure) -> String {
    let shown = shown(view, figure);
    if shown.is_empty() {
        let network = escaped(&figure.network);
        return format!("<p class='note'>No cell of these groups was measured over {network}.</p>");
    }
    let rows = Rows {
        view,
        network: &figure.network,
        services: services(view, &shown),
        kinds: sorted(kinds(view, &shown)),
        guides: true,
        bounds: false,
    };
    let (drawing, scale) = rows.draw(&figure.title);
    let caption = escaped(&caption(view, figure, &shown, scale));
    format!("<figure>{drawing}<figcaption>{caption}</figcaption></figure>")
}

/// The cells of a figure: those of its groups, and the defaults that they differ from.
fn shown(view: &View<'_>, figure: &Figure) -> Vec<usize> {
    let in_groups = |index: &usize| {
        let groups = &view.cell(*index).groups;
        groups.iter().any(|group| figure.groups.contains(group))
    };
    let own: Vec<usize> = view.of_network(&figure.network).filter(in_groups).collect();
    let ways: Vec<(&str, Way)> = own
        .iter()
        .map(|index| (view.cell(*index).server.as_str(), view.cell(*index).way))
        .collect();
    let is_default = |index: &usize| {
        let cell = view.cell(*index);
        cell.settings.is_empty() && ways.contains(&(cell.server.as_str(), cell.way))
    };
    let defaults = view.of_network(&figure.network).filter(is_default);
    let mut all: Vec<usize> = defaults.chain(own.iter().copied()).collect();
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|index| seen.insert(*index));
    all
}

/// Defaults first, then single settings by name, then combinations; otherwise as they came.
fn sorted(mut kinds: Vec<Kind<'_>>) -> Vec<Kind<'_>> {
    let mut names: Vec<&str> = Vec::new();
    for (_, _, settings) in &kinds {
        if let [(name, _)] = settings
            && !names.contains(&name.as_str())
        {
            names.push(name);
        }
    }
    kinds.sort_by_key(|(_, _, settings)| match settings {
        [] => (0, 0),
        [(name, _)] => (1, names.iter().position(|one| one == name).unwrap_or(0)),
        _ => (2, 0),
    });
    kinds
}

fn caption(view: &View<'_>, figure: &Figure, shown: &[usize], scale: &str) -> String {
    let about = view.network(&figure.network).map_or(String::new(), describe);
    let runs: Vec<usize> = shown.iter().map(|index| view.summary(*index).runs).collect();
    let least = runs.iter().min().copied().unwrap_or(0);
    let most = runs.iter().max().copied().unwrap_or(0);
    let range = if least == most { format!("{most}") } else { format!("{least} to {most}") };
    let exchanges: usize = shown.iter().map(|index| view.summary(*index).exchanges).sum();
    let mut text = format!(
        "{} ({about}): time of an exchange, median of runs' means, {scale}. {} Bars: 95 % \
         intervals; small dots: single runs, where they are too few for one. Dotted lines: the \
         default. n = {range} runs a cell, {exchanges} exchanges in all; seed {}.",
        figure.network,
        seen(view, shown),
        view.campaign.setting.seed,
    );
    let bounds = shown.iter().filter(|index| view.summary(**index).is_bound).count();
    if bounds > 0 {
        let _ =
            write!(text, " An arrow is a lower bound: {} cut off.", format::count(bounds, "cell"));
    }
    let references = shown.iter().filter_map(|index| view.reference(*index));
    let mut notes: Vec<&str> = references.clone().map(|one| one.note.as_str()).collect();
    notes.sort_unstable();
    notes.dedup();
    if !notes.is_empty() {
        let count = format::count(references.count(), "value");
        let _ = write!(text, " The paper gives {count} (hollow): {}.", notes.join("; "));
    }
    text
}

/// What is to be seen, in a sentence or two.
fn seen(view: &View<'_>, shown: &[usize]) -> String {
    let comparisons = shown.iter().filter_map(|index| view.comparison(*index));
    let compared = comparisons.clone().filter(|one| one.interval.is_some()).count();
    if compared == 0 {
        let none = comparisons.count() == 0;
        return if none { String::new() } else { "Too few pairs to say what differs.".to_string() };
    }
    let mut clear: Vec<(f64, usize)> =
        shown.iter().filter_map(|index| Some((view.clear_ratio(*index)?, *index))).collect();
    clear.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut text = format!(
        "{} of {} differ from their defaults (their ratio's 95 % interval leaves out 1).",
        clear.len(),
        format::count(compared, "cell"),
    );
    let best = clear.first().filter(|(ratio, _)| *ratio < 1.0);
    let worst = clear.last().filter(|(ratio, _)| *ratio > 1.0);
    for (word, one) in [("Fastest", best), ("Slowest", worst)] {
        if let Some((ratio, index)) = one {
            let cell = view.cell(*index);
            let service = format::service_name(&cell.service);
            let settings = settings_name(&cell.settings);
            let ratio = format::ratio(*ratio);
            let _ = write!(text, " {word}: {service} with {settings}, × {ratio}.");
        }
    }
    text
}
