//! The equivalent of NAM's Figure 7: what choosing gains over always none, always Zip and always
//! XMill.

use super::data::{GENERATED, NAM, NONE, OURS, Study, StudyCell, XMILL, ZIP};
use super::plot::{Panels, figure};
use super::table::class_name;
use crate::svg::{Anchor, LinearScale, Mark, Svg};

/// The scale ends here, in per cent, either way.
const END: f64 = 100.0;
/// A network's line.
const LINE: f64 = 15.0;
const COLUMNS: usize = 2;
const OTHERS: [(&str, &str, &str, Mark); 3] = [
    (NONE, "none", "first", Mark::Circle),
    (ZIP, "Zip", "second", Mark::Square),
    (XMILL, "XMill", "third", Mark::Diamond),
];

/// What is shown of a class: its place on each network, with a processor.
struct Panel<'s, 'a> {
    title: String,
    places: Vec<&'s StudyCell<'a>>,
    processor: f64,
}

/// The section.
pub(super) fn figure_7(study: &Study<'_>) -> String {
    let panels = panels(study);
    if panels.is_empty() {
        return String::new();
    }
    let height = |panels: &[Panel<'_, '_>]| {
        let rows = panels.iter().map(|panel| panel.places.len()).max().unwrap_or(0);
        LINE * 2.0 * rows as f64 + 8.0
    };
    let grid = Panels::new(COLUMNS, height(&panels), 22.0);
    let last = panels.chunks(COLUMNS).next_back().map_or(0.0, height);
    let mut svg = grid.svg_ending(panels.len(), last);
    legend(&mut svg);
    for (at, panel) in panels.iter().enumerate() {
        draw(&mut svg, &grid, at, panel);
    }
    let caption = "What choosing gains (NAM's Figure 7): by how much the time of all messages of a \
                   class together is below that of always none, always Zip, always XMill; to the \
                   right of 0 choosing is faster. Upper line of a network: NAM as published, \
                   hollow; lower: ours, filled. Gains and losses over 100 % stand at the edge. \
                   Means over all good runs; kernel in real time. As in the paper, longer answers \
                   are shown with slower processors.";
    "<h3>What choosing gains (NAM's Figure 7)</h3>\n".to_string()
        + &figure(&svg.finish("Improvement over fixed encodings"), caption)
}

/// As the paper pairs them: the larger the answers, the slower the processor.
fn panels<'s, 'a>(study: &'s Study<'a>) -> Vec<Panel<'s, 'a>> {
    let mut all = Vec::new();
    for (rank, class) in ["small", "medium", "large", "huge"].into_iter().enumerate() {
        let of_class = |place: &&StudyCell<'a>| {
            let usual = place.encodings.is_none() && place.network.changes.is_empty();
            usual && place.class == class
        };
        let servers: Vec<&str> = study.places.iter().filter(of_class).map(|of| of.server).collect();
        let Some(server) = servers.iter().find(|name| **name != GENERATED).or(servers.first())
        else {
            continue;
        };
        let places = || study.places.iter().filter(of_class).filter(|of| of.server == *server);
        let with_policy =
            |place: &&StudyCell<'_>| place.arms.iter().any(|arm| matches!(arm.policy, NAM | OURS));
        let mut processors: Vec<f64> = places().flat_map(StudyCell::processors).collect();
        processors.sort_by(f64::total_cmp);
        processors.dedup();
        let slowest = processors.len().saturating_sub(1);
        let Some(processor) = processors.get(rank.min(slowest)).copied() else { continue };
        let places: Vec<&StudyCell<'a>> = places().filter(with_policy).collect();
        if let Some(first) = places.first() {
            let name = class_name(first);
            let title = format!("{name}, processor {processor} times slower");
            all.push(Panel { title, places, processor });
        }
    }
    all
}

fn legend(svg: &mut Svg) {
    for (at, (_, name, class, mark)) in OTHERS.iter().enumerate() {
        let x = 130.0 + 130.0 * at as f64;
        svg.mark(*mark, class, (x, 12.0), name);
        svg.text(x + 8.0, 16.0, "tick", Anchor::Start, &format!("over always {name}"));
    }
}

fn draw(svg: &mut Svg, grid: &Panels, at: usize, panel: &Panel<'_, '_>) {
    /// Room for the networks' names.
    const NAMES: f64 = 62.0;
    let mut frame = grid.frame(at);
    frame.left += NAMES;
    frame.bottom = frame.top + LINE * 2.0 * panel.places.len() as f64 + 6.0;
    frame.title(svg, &panel.title);
    let half = (frame.right - frame.left) / 2.0;
    let middle = frame.left + half;
    let scale = LinearScale::up_to(END, 0.0, half);
    let ticks = [-100.0, -50.0, 0.0, 50.0, 100.0]
        .map(|gain: f64| (middle + gain.signum() * scale.at(gain.abs()), format!("{gain:.0} %")));
    frame.x_axis(svg, &ticks, "");
    svg.line("axis", (middle, frame.top), (middle, frame.bottom));
    for (row, place) in panel.places.iter().enumerate() {
        let y = frame.top + LINE * (2.0 * row as f64 + 1.0);
        let name = &place.network.name;
        svg.text(frame.left - 6.0, y + 4.0, "tick", Anchor::End, name);
        for (policy, shift, shape) in [(NAM, -0.45, "hollow "), (OURS, 0.45, "")] {
            for (other, other_name, class, mark) in OTHERS {
                let Some(gain) = gain(place, panel.processor, policy, other) else { continue };
                let shown = gain.clamp(-END, END);
                let x = middle + shown.signum() * scale.at(shown.abs());
                let title = format!("{name}, {policy} over {other_name}: {gain:.1} %");
                let class = format!("{shape}{class}");
                svg.mark(mark, &class, (x, y + shift * LINE), &title);
            }
        }
    }
}

/// In per cent of the other's time.
fn gain(place: &StudyCell<'_>, processor: f64, policy: &str, other: &str) -> Option<f64> {
    let total = |policy| -> Option<f64> {
        let means = place.arm(policy, processor)?.means();
        (!means.is_empty()).then(|| means.values().sum())
    };
    Some(100.0 * (1.0 - total(policy)? / total(other)?))
}
