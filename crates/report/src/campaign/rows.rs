//! The plot of times that the figures and the pages of networks share: a row for each kind of cell,
//! the services side by side in it.

use super::view::{Kind, View, kind_name, settings_name};
use crate::format;
use crate::svg::{Anchor, Mark, Scale, Svg};

pub(super) const WIDTH: f64 = 960.0;
/// Room at the right for what went wrong.
const RIGHT: f64 = WIDTH - 92.0;
/// A line of a row: one service.
const LINE: f64 = 8.5;
/// Between rows.
const GAP: f64 = 4.5;
/// The line above rows that differ in the same setting.
const HEADING: f64 = 19.0;
const LEGEND: f64 = 26.0;
const FOOT: f64 = 34.0;
/// Names of rows get so much room: pixels per letter, and bounds.
const LETTER: f64 = 6.9;
const LETTER_SMALL: f64 = 5.8;
const MIN_NAME: f64 = 90.0;
const MAX_NAME: f64 = 350.0;
const MAX_NAME_LETTERS: usize = 48;
/// A scale is logarithmic when its values span more.
const MAX_LINEAR_SPAN: f64 = 10.0;

/// A picture of rows.
pub(super) struct Rows<'v, 'a> {
    pub(super) view: &'v View<'a>,
    pub(super) network: &'a str,
    pub(super) services: Vec<&'a str>,
    pub(super) kinds: Vec<Kind<'a>>,
    /// A line for each service where its default stands, to see what differs.
    pub(super) guides: bool,
    /// What the link allows.
    pub(super) bounds: bool,
}

/// One row as it is drawn.
enum Line<'a> {
    Heading(String),
    Row(Kind<'a>, String),
}

impl<'a> Rows<'_, 'a> {
    /// The drawing and the name of its scale.
    pub(super) fn draw(&self, label: &str) -> (String, &'static str) {
        let lines = self.lines();
        let widths = lines.iter().map(|line| match line {
            Line::Heading(text) => LETTER_SMALL * text.chars().count() as f64,
            Line::Row(_, name) => LETTER * name.chars().count() as f64,
        });
        let left = (widths.fold(0.0, f64::max) + 16.0).clamp(MIN_NAME, MAX_NAME);
        let scale = Scale::fitting(&self.values(), MAX_LINEAR_SPAN, left, RIGHT);
        let heights = lines.iter().map(|line| self.height(line));
        let bottom = LEGEND + heights.sum::<f64>();
        let mut svg = Svg::new(WIDTH, bottom + FOOT);
        self.legend(&mut svg, left);
        axis(&mut svg, &scale, (LEGEND, bottom + 4.0));
        if self.guides {
            self.draw_guides(&mut svg, &scale, bottom);
        }
        let mut y = LEGEND;
        for line in &lines {
            match line {
                Line::Heading(text) => {
                    svg.text(0.0, y + HEADING - 5.0, "tick", Anchor::Start, text);
                }
                Line::Row(kind, name) => self.draw_row(&mut svg, &scale, *kind, name, (left, y)),
            }
            y += self.height(line);
        }
        (svg.finish(label), scale.name())
    }

    fn height(&self, line: &Line<'_>) -> f64 {
        match line {
            Line::Heading(_) => HEADING,
            Line::Row(..) => LINE * self.services.len().max(2) as f64 + GAP,
        }
    }

    /// Rows with a heading where several in a row vary the same setting.
    fn lines(&self) -> Vec<Line<'a>> {
        let mut lines = Vec::new();
        let mut last: Option<(&str, &str)> = None;
        for kind in &self.kinds {
            let (server, _, settings) = *kind;
            let single = match settings {
                [(name, _)] => Some((server, name.as_str())),
                _ => None,
            };
            if let Some((server, name)) = single.filter(|_| last != single) {
                lines.push(Line::Heading(self.heading(server, name)));
            } else if single.is_none() && last.is_some() {
                lines.push(Line::Heading(String::new()));
            }
            last = single;
            let name = match settings {
                [(_, value)] => {
                    let (server, way) = (kind.0, kind.1);
                    let prefix = kind_name((server, way, &[]));
                    let prefix = prefix.strip_suffix("default").unwrap_or(&prefix).trim();
                    [prefix, value].join(" ").trim().to_string()
                }
                _ => kind_name(*kind),
            };
            lines.push(Line::Row(*kind, name));
        }
        lines
    }

    fn heading(&self, server: &str, setting: &str) -> String {
        let defaults = &self.view.campaign.setting.defaults;
        let default =
            defaults.iter().find(|(of, name, _)| (of.as_str(), name.as_str()) == (server, setting));
        match default {
            Some((_, name, value)) => format!("{name} (default {value})"),
            None => setting.to_string(),
        }
    }

    fn cells(&self) -> impl Iterator<Item = usize> {
        let pairs =
            self.kinds.iter().flat_map(|kind| self.services.iter().map(move |one| (kind, one)));
        pairs.filter_map(|(kind, service)| self.view.find(self.network, service, *kind))
    }

    fn values(&self) -> Vec<f64> {
        let mut values = Vec::new();
        for index in self.cells() {
            let summary = self.view.summary(index);
            values.extend(summary.median_s);
            match summary.interval_s {
                Some((low_s, high_s)) => values.extend([low_s, high_s]),
                None => values.extend(&summary.runs_s),
            }
            values.extend(self.view.reference(index).map(|reference| reference.seconds));
            values.extend(self.view.bound_s(index).filter(|_| self.bounds));
        }
        values
    }

    fn legend(&self, svg: &mut Svg, left: f64) {
        let mut x = left;
        let mut put = |svg: &mut Svg, text: &str| {
            svg.text(x + 9.0, 14.0, "label", Anchor::Start, text);
            let at = x;
            x += 34.0 + LETTER * text.chars().count() as f64;
            at
        };
        for (place, service) in self.services.iter().enumerate() {
            let at = put(svg, format::service_name(service));
            svg.mark(mark(place), class(place), (at, 10.0), "");
        }
        if self.cells().any(|index| self.view.reference(index).is_some()) {
            let at = put(svg, "hollow: the paper's");
            svg.mark(Mark::Circle, "hollow", (at, 10.0), "");
        }
        if self.bounds {
            let at = put(svg, "what the link allows");
            svg.line("bound-line", (at, 4.0), (at, 16.0));
        }
    }

    fn draw_guides(&self, svg: &mut Svg, scale: &Scale, bottom: f64) {
        let Some(first) = self.kinds.first() else { return };
        for (place, service) in self.services.iter().enumerate() {
            let index = self.view.find(self.network, service, *first);
            let median_s = index.and_then(|index| self.view.summary(index).median_s);
            if let Some(x) = median_s.map(|median_s| scale.at(median_s)) {
                svg.line(&format!("guide {}", class(place)), (x, LEGEND), (x, bottom));
            }
        }
    }

    fn draw_row(
        &self,
        svg: &mut Svg,
        scale: &Scale,
        kind: Kind<'_>,
        name: &str,
        (left, top): (f64, f64),
    ) {
        let middle = top + LINE * self.services.len().max(2) as f64 / 2.0;
        let short = shortened(name);
        svg.text(left - 10.0, middle + 5.0, "label", Anchor::End, &short);
        let mut wrong = Vec::new();
        for (place, service) in self.services.iter().enumerate() {
            let Some(index) = self.view.find(self.network, service, kind) else { continue };
            let y = top + (place as f64 + 0.75) * LINE;
            self.draw_cell(svg, scale, index, (place, y));
            wrong.extend(troubles(self.view, index).then_some((place, index)));
        }
        for (place, index) in wrong {
            let y = top + (place as f64 + 0.75) * LINE;
            let summary = self.view.summary(index);
            if summary.errors + summary.censored + summary.failed > 0 {
                svg.cross("failed", (RIGHT + 14.0, y));
            }
            let text = trouble(summary.errors, summary.censored, summary.failed, summary.flagged);
            svg.text(RIGHT + 24.0, y + 3.5, "tiny", Anchor::Start, &text);
        }
    }

    fn draw_cell(&self, svg: &mut Svg, scale: &Scale, index: usize, (place, y): (usize, f64)) {
        let (summary, own) = (self.view.summary(index), class(place));
        if let Some(bound_s) = self.view.bound_s(index).filter(|_| self.bounds) {
            let x = scale.at(bound_s);
            svg.line("bound-line", (x, y - 5.0), (x, y + 5.0));
        }
        match summary.interval_s {
            Some((low_s, high_s)) => {
                svg.line(&format!("whisker {own}"), (scale.at(low_s), y), (scale.at(high_s), y));
            }
            None => {
                let steps: String = dots(summary.runs_s.iter().map(|run_s| (scale.at(*run_s), y)));
                svg.path(&format!("raw {own}"), &steps, "");
            }
        }
        if let Some(reference) = self.view.reference(index) {
            let title = format!("{} s: {}", format::seconds(reference.seconds), reference.note);
            svg.mark(
                mark(place),
                &format!("hollow {own}"),
                (scale.at(reference.seconds), y),
                &title,
            );
        }
        let Some(median_s) = summary.median_s else { return };
        let title = format!("{}: {}", self.view.cell(index).name, time(self.view, index));
        let at = (scale.at(median_s), y);
        match summary.is_bound {
            true => svg.arrow(&format!("{own} cut"), at, &title),
            false => svg.mark(mark(place), own, at, &title),
        }
    }
}

fn axis(svg: &mut Svg, scale: &Scale, (top, bottom): (f64, f64)) {
    for tick in scale.ticks() {
        let x = scale.at(tick);
        svg.line("grid", (x, top), (x, bottom));
        let rounded = format!("{tick:.6}");
        let text = rounded.trim_end_matches('0').trim_end_matches('.');
        svg.text(x, bottom + 13.0, "tick", Anchor::Middle, text);
    }
    svg.text(RIGHT + 22.0, bottom + 13.0, "tick", Anchor::Start, "seconds");
}

/// The class that gives a service its colour, by its place.
pub(super) fn class(place: usize) -> &'static str {
    ["first", "second", "third", "other"][place.min(3)]
}

/// The shape of a service's points, by its place.
pub(super) fn mark(place: usize) -> Mark {
    [Mark::Circle, Mark::Square, Mark::Diamond, Mark::Triangle][place.min(3)]
}

/// Dots as a path that is drawn with round ends.
pub(super) fn dots(points: impl Iterator<Item = (f64, f64)>) -> String {
    points.map(|(x, y)| format!("M{x:.0} {y:.0}h0")).collect()
}

/// The median with its interval, in words.
pub(super) fn time(view: &View<'_>, index: usize) -> String {
    let summary = view.summary(index);
    let Some(median_s) = summary.median_s else { return "no result".to_string() };
    let more = if summary.is_bound { "> " } else { "" };
    let interval = summary.interval_s.map_or(String::new(), |(low_s, high_s)| {
        format!(" ({}–{})", format::seconds(low_s), format::seconds(high_s))
    });
    format!(
        "{more}{} s{interval}, {}",
        format::seconds(median_s),
        format::count(summary.runs, "run")
    )
}

fn troubles(view: &View<'_>, index: usize) -> bool {
    let summary = view.summary(index);
    let silent = summary.median_s.is_none() && summary.failed + summary.flagged == 0;
    silent || summary.errors + summary.censored + summary.failed + summary.flagged > 0
}

/// What went wrong, as short as it gets.
fn trouble(errors: usize, censored: usize, failed: usize, flagged: usize) -> String {
    let parts = [(errors, "err"), (censored, "cut"), (failed, "run"), (flagged, "flag")];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let text = parts.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(" ");
    if text.is_empty() { "no run".to_string() } else { text }
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= MAX_NAME_LETTERS {
        return name.to_string();
    }
    name.chars().take(MAX_NAME_LETTERS - 1).chain(['…']).collect()
}

/// Settings of a kind for a table's first column.
pub(super) fn settings_or_default(settings: &[(String, String)]) -> String {
    if settings.is_empty() { "default".to_string() } else { settings_name(settings) }
}
