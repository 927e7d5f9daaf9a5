//! The real-time study: the five profiles as a table beside the paper's, and as plots.

use std::fmt::Write as _;

use record::realtime::{ProfileRun, RealtimeRun, Second};

use crate::svg::{Anchor, LogScale, Svg};
use crate::text::{escaped, wrap};

/// What the paper says of a profile (its slides on internal latencies and their summary).
struct Paper {
    words: &'static str,
    maxima: &'static str,
    means: &'static str,
    determinism: u8,
    performance: u8,
}

/// Weindelmayer, Coyle and Haynes, profiles 1 to 5.
const PAPER: [Paper; 5] = [
    Paper {
        words: "RT/RT/RT",
        maxima: "300-500, under 1500",
        means: "80",
        determinism: 1,
        performance: 1,
    },
    Paper {
        words: "RT/std/RT",
        maxima: "200-700, one 2000",
        means: "70",
        determinism: 2,
        performance: 2,
    },
    Paper {
        words: "RT/RT/std",
        maxima: "1500-2000, to 7000",
        means: "700-800",
        determinism: 4,
        performance: 4,
    },
    Paper {
        words: "RT/std/std",
        maxima: "1000-2000, to 3000",
        means: "300-400",
        determinism: 3,
        performance: 3,
    },
    Paper {
        words: "std/std/std",
        maxima: "900-1100, over 10000",
        means: "600-800",
        determinism: 5,
        performance: 5,
    },
];

fn paper(profile: u8) -> Option<&'static Paper> {
    PAPER.get(usize::from(profile).checked_sub(1)?)
}

/// Ranks from 1 on by a figure, the least first; the same figure has the same rank.
fn ranks(figures: &[f64]) -> Vec<usize> {
    let below = |figure: &f64| figures.iter().filter(|other| *other < figure).count();
    figures.iter().map(|figure| 1 + below(figure)).collect()
}

fn us(value_us: f64) -> String {
    let decimals = if value_us < 99.95 { 1 } else { 0 };
    format!("{value_us:.decimals$}")
}

/// The tables, within 100 columns.
#[must_use]
pub fn realtime_text(runs: &[RealtimeRun]) -> String {
    let mut text = String::new();
    let Some(first) = runs.first() else { return text };
    let of = &first.machine;
    let line = format!(
        "{}: longwire {} ({}), {}, {}, {} cores, {}",
        first.study, first.version, of.profile, of.kernel, of.processor, of.cores, of.date
    );
    wrap(&line, &mut text);
    let lines = [
        "Times in microseconds of entities: T0 sent, T1 handed over by the engine, T2 stored.",
        "Ranks of determinism are by p99.9 of T2-T1, of performance by its mean; in parentheses \
         the paper's.",
    ];
    lines.iter().for_each(|line| wrap(line, &mut text));
    for run in runs {
        phase_text(run, &mut text);
    }
    text
}

fn phase_text(run: &RealtimeRun, text: &mut String) {
    let loads = match run.loads.is_empty() {
        true => String::new(),
        false => format!(", {} on core {}", run.loads.join(", "), run.core),
    };
    text.push('\n');
    let line = format!(
        "{}: {} s, {} messages a second of {} entities{loads}; {:.1} % of processor time stolen",
        run.phase, run.duration_s, run.rate_per_s, run.entities, run.busy.stolen_percent
    );
    wrap(&line, text);
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "  {:<14}{:>8}{:>8}{:>9}{:>10}{:>8}{:>10}{:>11}{:>7}{:>7}{:>6}",
        "T2-T1",
        "mean",
        "p99",
        "p99.9",
        "max",
        ">300",
        "T1-T0 p99",
        "T2-T0 max",
        "uneven",
        "determ",
        "perf"
    );
    let determinism =
        ranks(&run.profiles.iter().map(|one| one.internal.p999_us).collect::<Vec<_>>());
    let performance =
        ranks(&run.profiles.iter().map(|one| one.internal.mean_us).collect::<Vec<_>>());
    for (at, one) in run.profiles.iter().enumerate() {
        let paper = paper(one.profile);
        let words = paper.map_or("", |paper| paper.words);
        let rank = |ours: &[usize], theirs: fn(&Paper) -> u8| {
            let ours = ours.get(at).copied().unwrap_or(0);
            format!("{ours} ({})", paper.map_or(0, theirs))
        };
        let _ = writeln!(
            text,
            "  {:<14}{:>8}{:>8}{:>9}{:>10}{:>8}{:>10}{:>11}{:>7}{:>7}{:>6}",
            format!("{} {words}", one.profile),
            us(one.internal.mean_us),
            us(one.internal.p99_us),
            us(one.internal.p999_us),
            us(one.internal.max_us),
            one.internal.over_300_us,
            us(one.before.p99_us),
            us(one.whole.max_us),
            one.uneven_s,
            rank(&determinism, |paper| paper.determinism),
            rank(&performance, |paper| paper.performance),
        );
    }
    for one in &run.profiles {
        remarks(one, text);
    }
    beside(run, text);
}

/// The paper's figures, and what the core did besides.
fn beside(run: &RealtimeRun, text: &mut String) {
    for one in &run.profiles {
        if let Some(paper) = paper(one.profile) {
            let line = format!(
                "  the paper, {}: means {} us, maxima {} us, without contention",
                one.profile, paper.means, paper.maxima
            );
            wrap(&line, text);
        }
    }
    match &run.holes {
        None => wrap("  holes of the core: not watched", text),
        Some(holes) => {
            let line = format!(
                "  holes of core {} in {:.0} s that were watched: {} over 50 us, {} over 300 us, \
                 longest {} us",
                run.core,
                holes.watched_s,
                holes.over_50_us,
                holes.over_300_us,
                us(holes.max_us)
            );
            wrap(&line, text);
        }
    }
}

/// What a reader must know of a profile before its figures.
fn remarks(one: &ProfileRun, text: &mut String) {
    let number = one.profile;
    if !one.is_as_asked {
        let why = one.refused.first().map_or("", String::as_str);
        wrap(&format!("  profile {number} was NOT real-time as asked: {why}"), text);
    }
    if one.accepted < one.due || one.processed < one.accepted {
        let line = format!(
            "  profile {number}: {} messages due, {} accepted, {} processed",
            one.due, one.accepted, one.processed
        );
        wrap(&line, text);
    }
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 40.0;
/// Most points of a line: of more seconds, each stands for several.
const MAX_POINTS: usize = 400;

/// A line of a plot: its class, its name, its points.
struct Line {
    class: String,
    name: String,
    points: Vec<(f64, f64)>,
}

/// A page with the tables and the plots.
#[must_use]
pub fn realtime_page(runs: &[RealtimeRun]) -> String {
    let mut page = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Real time</title>\
         <style>\nbody { font: 15px sans-serif; margin: 2em auto; max-width: 62em; }\n\
         pre { overflow-x: auto; font-size: 12px; }\nsvg { width: 100%; height: auto; }\n\
         .label { font-size: 13px; } .tick { font-size: 11px; fill: #555; }\n\
         .grid { stroke: #ddd; } .axis { stroke: #333; }\npath { fill: none; stroke-width: 1.3; }\n\
         .p1 { stroke: #0b6; } .p2 { stroke: #06c; } .p3 { stroke: #c60; } .p4 { stroke: #a0a; }\n\
         .p5 { stroke: #c00; } .mean { stroke-dasharray: 4 3; }\n\
         text.p1 { fill: #0b6; } text.p2 { fill: #06c; } text.p3 { fill: #c60; }\n\
         text.p4 { fill: #a0a; } text.p5 { fill: #c00; } text { stroke: none; }\n\
         </style></head><body>\n<h1>Real time</h1>\n",
    );
    let _ = writeln!(page, "<pre>{}</pre>", escaped(&realtime_text(runs)));
    for run in runs {
        let _ = writeln!(page, "<h2>{}</h2>", escaped(&run.phase));
        for one in &run.profiles {
            page.push_str(&series(run, one));
        }
        page.push_str(&whole(run));
        page.push_str(&compared(run));
        page.push_str(&distributions(run));
    }
    page.push_str("</body></html>\n");
    page
}

/// By second, or several, the greatest of a figure.
fn thinned(seconds: &[Second], figure: fn(&Second) -> f64) -> Vec<(f64, f64)> {
    let step = seconds.len().div_ceil(MAX_POINTS).max(1);
    let most = |some: &[Second]| {
        let at_s = some.first().map_or(0, |second| second.at_s);
        let most = some.iter().map(figure).fold(0.0, f64::max);
        (at_s as f64, most)
    };
    seconds.chunks(step).map(most).filter(|(_, most)| *most > 0.0).collect()
}

fn line(one: &ProfileRun, kind: &str, figure: fn(&Second) -> f64) -> Line {
    let number = one.profile;
    Line {
        class: format!("p{number} {kind}"),
        name: format!("{number} {kind}"),
        points: thinned(&one.seconds, figure),
    }
}

fn series(run: &RealtimeRun, one: &ProfileRun) -> String {
    let lines = [
        line(one, "max", |second| second.internal_max_us),
        line(one, "mean", |second| second.internal_mean_us),
    ];
    let words = paper(one.profile).map_or("", |paper| paper.words);
    let title = format!("profile {} ({words}): T2-T1 by second, us", one.profile);
    plot(&title, "s", &lines, run.duration_s as f64)
}

fn whole(run: &RealtimeRun) -> String {
    let lines: Vec<Line> =
        run.profiles.iter().map(|one| line(one, "max", |second| second.whole_max_us)).collect();
    plot("T2-T0 by second, the greatest, us", "s", &lines, run.duration_s as f64)
}

fn compared(run: &RealtimeRun) -> String {
    let both = run.profiles.iter().filter(|one| matches!(one.profile, 1 | 5));
    let lines: Vec<Line> = both
        .flat_map(|one| {
            [
                line(one, "max", |second| second.internal_max_us),
                line(one, "mean", |second| second.internal_mean_us),
            ]
        })
        .collect();
    plot("profile 1 against 5: T2-T1 by second, us", "s", &lines, run.duration_s as f64)
}

/// The share of seconds behind the warm-up whose greatest T2-T1 is not above a value.
fn distributions(run: &RealtimeRun) -> String {
    let lines: Vec<Line> = run
        .profiles
        .iter()
        .map(|one| {
            let kept = one.seconds.iter().filter(|second| second.at_s >= one.warm_up_s);
            let mut maxima: Vec<f64> =
                kept.map(|second| second.internal_max_us).filter(|max| *max > 0.0).collect();
            maxima.sort_by(f64::total_cmp);
            let step = maxima.len().div_ceil(MAX_POINTS).max(1);
            let count = maxima.len().max(1) as f64;
            let points = maxima.iter().enumerate();
            let points = points.map(|(at, max)| (100.0 * (at + 1) as f64 / count, *max));
            Line {
                class: format!("p{}", one.profile),
                name: one.profile.to_string(),
                points: points.step_by(step).collect(),
            }
        })
        .collect();
    plot(
        "greatest T2-T1 of a second: us not exceeded in so many per cent of seconds",
        "%",
        &lines,
        100.0,
    )
}

fn plot(title: &str, unit: &str, lines: &[Line], most_x: f64) -> String {
    let mut svg = Svg::new(WIDTH, TOP + HEIGHT + BOTTOM);
    let (right, bottom) = (WIDTH - RIGHT, TOP + HEIGHT);
    let values = lines.iter().flat_map(|line| line.points.iter().map(|(_, y)| *y));
    let scale = LogScale::around(values, bottom, TOP);
    let x_at = |x: f64| LEFT + (x / most_x.max(1.0)).clamp(0.0, 1.0) * (right - LEFT);
    for tick in scale.ticks() {
        let y = scale.at(tick);
        svg.line("grid", (LEFT, y), (right, y));
        svg.text(LEFT - 6.0, y + 4.0, "tick", Anchor::End, &format!("{tick}"));
    }
    for part in 0..=4_u32 {
        let x = most_x * f64::from(part) / 4.0;
        svg.text(x_at(x), bottom + 16.0, "tick", Anchor::Middle, &format!("{x:.0} {unit}"));
    }
    svg.line("axis", (LEFT, bottom), (right, bottom));
    svg.text(LEFT, TOP - 10.0, "label", Anchor::Start, title);
    for (at, line) in lines.iter().enumerate() {
        let mut steps = String::new();
        for (x, y) in &line.points {
            let letter = if steps.is_empty() { 'M' } else { 'L' };
            let _ = write!(steps, "{letter}{:.1} {:.1}", x_at(*x), scale.at(*y));
        }
        svg.path(&line.class, &steps, &line.name);
        let x = right - 70.0 * (lines.len() - at) as f64 + 60.0;
        svg.text(x, bottom + 32.0, &line.class, Anchor::End, &line.name);
    }
    svg.finish(title)
}

#[cfg(test)]
mod tests {
    use record::realtime::{Holes, Spread};
    use services::xml::Reader;

    use super::*;

    fn run() -> RealtimeRun {
        let profile = |profile: u8, mean_us: f64, p999_us: f64| ProfileRun {
            profile,
            is_as_asked: profile != 2,
            refused: vec!["not permitted".to_owned()],
            due: 100,
            accepted: if profile == 5 { 99 } else { 100 },
            processed: if profile == 5 { 99 } else { 100 },
            internal: Spread { mean_us, p999_us, ..Spread::default() },
            seconds: (0..1000)
                .map(|at_s| Second {
                    at_s,
                    entities: 100,
                    internal_mean_us: mean_us,
                    internal_max_us: p999_us + at_s as f64,
                    whole_mean_us: 200.0,
                    whole_max_us: 900.0,
                })
                .collect(),
            ..ProfileRun::default()
        };
        RealtimeRun {
            study: "realtime".to_owned(),
            phase: "with <contention>".to_owned(),
            loads: vec!["spin".to_owned()],
            duration_s: 1000,
            rate_per_s: 20.0,
            entities: 5,
            holes: Some(Holes { watched_s: 9.0, over_50_us: 3, over_300_us: 1, max_us: 412.4 }),
            profiles: vec![
                profile(1, 14.0, 70.0),
                profile(2, 13.0, 90.0),
                profile(5, 300.0, 60_000.0),
            ],
            ..RealtimeRun::default()
        }
    }

    #[test]
    fn ranks_stand_beside_the_papers() {
        let text = realtime_text(&[run()]);
        let row = |begin: &str| text.lines().find(|line| line.starts_with(begin)).unwrap();
        let ends = |begin: &str| row(begin).split_whitespace().rev().take(4).collect::<Vec<_>>();
        assert_eq!(ends("  1 RT/RT/RT"), ["(1)", "2", "(1)", "1"]);
        assert_eq!(ends("  2 RT/std/RT"), ["(2)", "1", "(2)", "2"]);
        assert_eq!(ends("  5 std/std/std"), ["(5)", "3", "(5)", "3"]);
        assert!(text.contains("profile 2 was NOT real-time as asked: not permitted"), "{text}");
        assert!(text.contains("profile 5: 100 messages due, 99 accepted"), "{text}");
        assert!(text.contains("1 over 300 us, longest 412 us"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert_eq!(ranks(&[2.0, 1.0, 2.0]), [2, 1, 2]);
        assert_eq!(realtime_text(&[]), "");
    }

    #[test]
    fn the_plots_are_well_formed_and_bounded() {
        let page = realtime_page(&[run()]);
        assert_eq!(page.matches("<svg").count(), 3 + 3, "a series each, and three of all");
        for part in page.split("<svg").skip(1) {
            let svg = format!("<svg{}", part.split_once("</svg>").unwrap().0) + "</svg>";
            Reader::new(&svg).check_rest().unwrap();
            assert!(svg.matches('L').count() < 6 * MAX_POINTS);
        }
        assert!(page.contains("with &lt;contention&gt;"));
    }
}
