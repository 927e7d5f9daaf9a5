//! A page for each cell, seen when a link leads to it: its raw series and its runs.

use std::fmt::Write;

use record::campaign::{Cell, Run};

use super::networks::anchor;
use super::rows::time;
use super::view::View;
use crate::format;
use crate::svg::{Anchor, Scale, Svg};
use crate::text::escaped;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 36.0;
const TOP: f64 = 6.0;
const BOTTOM: f64 = 116.0;
const HEIGHT: f64 = 130.0;
/// A scale is logarithmic when its values span more.
const MAX_LINEAR_SPAN: f64 = 20.0;
/// A series shows so many exchanges of a run; the analysis has all.
const MAX_EXCHANGES: usize = 200;

/// A link to a cell's page; `text` is not yet escaped.
pub(super) fn link_to(index: usize, text: &str) -> String {
    format!("<a href='#c{index}'>{}</a>", escaped(text))
}

/// All pages.
pub(super) fn cells(view: &View<'_>) -> String {
    let mut out =
        "<h2 id='cells'>Cell by cell</h2>\n<p class='note screen'>A time in a table of a \
                   network leads to the runs of its cell, which are shown here.</p>\n"
            .to_string();
    for (index, cell) in view.campaign.cells.iter().enumerate() {
        out += &page(view, index, cell);
    }
    out
}

fn page(view: &View<'_>, index: usize, cell: &Cell) -> String {
    let mut out = format!(
        "<section class='cell' id='c{index}'><h3>{}</h3>\n<p>{}. {}<a href='#{}'>{}</a></p>\n",
        escaped(&cell.name),
        escaped(&time(view, index)),
        escaped(&against(view, index)),
        anchor(view, &cell.network),
        escaped(&cell.network),
    );
    if cell.runs.iter().any(|run| !run.measured.is_empty()) {
        out += &series(cell);
    }
    out + &runs(cell) + "</section>\n"
}

/// What differs from the default, in words.
fn against(view: &View<'_>, index: usize) -> String {
    let Some(one) = view.comparison(index) else { return String::new() };
    let ratio = one.ratio.map_or("unknown".to_string(), format::ratio);
    let p = one.p_adjusted.map_or(String::new(), |p| format!(", p {}", format::probability(p)));
    let effect = one.effect.map_or(String::new(), |effect| format!(", effect {effect:.2}"));
    let interval = super::advice::interval(one.interval);
    format!(
        "Ratio to the default {ratio}{interval}{p}{effect}, {}. ",
        format::count(one.pairs, "pair")
    )
}

/// Time of each exchange by number: a line for each run, an upward tick where it was cut off, a
/// cross where it failed.
fn series(cell: &Cell) -> String {
    let exchanges = cell.runs.iter().flat_map(|run| &run.measured);
    let times: Vec<f64> = exchanges.map(|measured| measured.exchange.elapsed_s).collect();
    let most = cell.runs.iter().map(|run| run.measured.len()).max().unwrap_or(0);
    let most = most.clamp(1, MAX_EXCHANGES);
    let scale = Scale::fitting(&times, MAX_LINEAR_SPAN, BOTTOM, TOP);
    let mut svg = Svg::new(WIDTH, HEIGHT);
    let ticks = scale.ticks();
    let every = ticks.len().div_ceil(5);
    for tick in ticks.iter().step_by(every.max(1)) {
        let y = scale.at(*tick);
        svg.line("grid", (LEFT, y), (WIDTH, y));
        let text = format!("{tick:.4}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        svg.text(LEFT - 5.0, y + 4.0, "tick", Anchor::End, text);
    }
    let step = (WIDTH - LEFT) / most as f64;
    svg.text(LEFT, HEIGHT - 2.0, "tick", Anchor::Start, "exchange 1");
    svg.text(WIDTH, HEIGHT - 2.0, "tick", Anchor::End, &format!("{most}; seconds"));
    let (mut lines, mut cuts, mut errors) = (String::new(), String::new(), String::new());
    for run in &cell.runs {
        let mut letter = 'M';
        for (number, measured) in run.measured.iter().take(MAX_EXCHANGES).enumerate() {
            let x = LEFT + (number as f64 + 0.5) * step;
            let y = scale.at(measured.exchange.elapsed_s);
            let _ = match (&measured.exchange.error, measured.exchange.censored) {
                (Some(_), _) => write!(errors, "M{:.0} {:.0}l8 8m0-8l-8 8", x - 4.0, y - 4.0),
                (None, true) => write!(cuts, "M{:.0} {y:.0}l4-7l4 7z", x - 4.0),
                (None, false) => {
                    let written = write!(lines, "{letter}{x:.0} {y:.0}");
                    letter = ' ';
                    written
                }
            };
        }
    }
    put_series(&mut svg, &lines);
    for (class, steps) in [("cuts", cuts), ("errors", errors)] {
        if !steps.is_empty() {
            svg.path(class, &steps, "");
        }
    }
    format!("<figure>{}</figure>\n", svg.finish("Seconds of each exchange, a line for each run"))
}

/// The lines, and a dot at every point of them.
fn put_series(svg: &mut Svg, lines: &str) {
    if lines.is_empty() {
        return;
    }
    svg.path("series", lines, "");
    let points = lines.split(['M']).filter(|line| !line.is_empty());
    let mut steps = String::new();
    for line in points {
        let mut numbers = line.split(' ');
        while let (Some(x), Some(y)) = (numbers.next(), numbers.next()) {
            let _ = write!(steps, "M{x} {y}h0");
        }
    }
    svg.path("points", &steps, "");
}

fn runs(cell: &Cell) -> String {
    if cell.runs.is_empty() {
        return "<p class='note'>No run.</p>\n".to_string();
    }
    let mut out =
        "<table class='dense'><tr><th>run</th><th>seed</th><th>mean s</th><th>failed</th>\
                   <th>cut off</th><th>late p99 ms</th><th>waited ms</th><th>again</th><th>TCP</th>\
                   <th>attempt</th><th class='text'>remark</th></tr>\n"
            .to_string();
    for run in &cell.runs {
        out += &run_row(run);
    }
    out + "</table>\n"
}

fn run_row(run: &Run) -> String {
    let again = run.measured.iter().map(|one| one.up.retransmitted + one.down.retransmitted);
    let [a, b] = &run.congestion_control;
    let control = if a == b { a.clone() } else { format!("{a}, {b}") };
    let remark = match (&run.failure, &run.flagged) {
        (Some(why), _) => format!("failed: {why}"),
        (None, Some(why)) => format!("flagged: {why}"),
        (None, None) => String::new(),
    };
    format!(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.2}</td><td>{:.1}</td>\
         <td>{}</td><td>{}</td><td>{}</td><td class='text'>{}</td></tr>\n",
        run.repetition,
        run.seed,
        run.mean_s().map_or("–".to_string(), format::seconds),
        run.errors(),
        run.censored(),
        run.lateness.p99_us as f64 / 1000.0,
        run.processor_wait_s * 1000.0,
        again.sum::<u64>(),
        escaped(&control),
        run.attempt,
        escaped(&remark),
    )
}
