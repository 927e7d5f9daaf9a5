//! The end of a campaign on a terminal, within 100 columns.

use record::campaign::Campaign;

use super::advice::name;
use super::summary::{conditions, losses, summary};
use super::view::View;
use super::{carriers, gains};
use crate::analysis::Analysis;
use crate::format;
use crate::text::wrap;

/// So many of the cells that gain or cost most are shown.
const MAX_EXTREMES: usize = 5;

/// What came out, in short.
#[must_use]
pub fn table(campaign: &Campaign, analysis: &Analysis) -> String {
    let view = View::new(campaign, analysis);
    let mut text = String::new();
    for line in summary(&view).into_iter().chain([losses(analysis)]) {
        wrap(&line, &mut text);
    }
    for line in conditions(&campaign.setting) {
        wrap(&line, &mut text);
    }
    text += &carriers::lines(&view);
    text += &gains::lines(&view);
    if !analysis.recommendations.is_empty() {
        text += "\nrecommendations\n";
    }
    for advice in &analysis.recommendations {
        wrap(&format!("{}: {}", name(advice), advice.text), &mut text);
        if let Some(paper) = &advice.paper {
            wrap(&format!("  the paper: {paper}"), &mut text);
        }
    }
    text += &extremes(&view);
    text
}

/// The comparisons with the least and the greatest ratios.
fn extremes(view: &View<'_>) -> String {
    let all = view.analysis.comparisons.iter();
    let mut all: Vec<(f64, usize)> = all
        .filter_map(|one| Some((one.ratio.filter(|ratio| ratio.is_finite())?, one.cell)))
        .collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let line = |(ratio, index): &(f64, usize)| {
        let mut line = String::new();
        let name = &view.cell(*index).name;
        wrap(&format!("  × {} {name}", format::ratio(*ratio)), &mut line);
        line
    };
    let faster = all.iter().filter(|(ratio, _)| *ratio < 1.0).take(MAX_EXTREMES);
    let slower = all.iter().rev().filter(|(ratio, _)| *ratio > 1.0).take(MAX_EXTREMES);
    let parts = [
        ("fastest against the default", faster.map(line).collect::<String>()),
        ("slowest against the default", slower.map(line).collect::<String>()),
    ];
    let parts = parts.into_iter().filter(|(_, lines)| !lines.is_empty());
    parts.map(|(title, lines)| format!("\n{title}\n{lines}")).collect()
}
