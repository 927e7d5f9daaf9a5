//! What was chosen, message by message.

use record::campaign::Run;

use super::data::{Arm, GENERATED, NAM, OURS, Study, StudyCell};
use super::plot::{Frame, Panels, figure};
use super::table::class_name;
use crate::svg::{Anchor, LinearScale, Svg};

/// A line of the picture: one encoding.
const LINE: f64 = 12.0;
/// Names of encodings.
const NAMES: f64 = 14.0;
/// Above a picture by time: the names of its links.
const LINKS: f64 = 14.0;
/// Upright lines nearer than this have their names on either side.
const NEAR: f64 = 40.0;
/// The class that is shown: it holds answers of many lengths.
const CLASS: &str = "medium";

/// A run with where it was.
struct Shown<'s, 'a> {
    title: String,
    place: &'s StudyCell<'a>,
    run: &'a Run,
}

/// The section.
pub(super) fn choices(study: &Study<'_>) -> String {
    let changes = |place: &StudyCell<'_>| !place.network.changes.is_empty();
    let changing = shown(study, |place, _| changes(place));
    let steady = shown(study, |place, arm| {
        let one_of = arm.processor == 1.0 || arm.processor == 16.0;
        !changes(place) && place.class == CLASS && arm.policy == OURS && one_of
    });
    let mut out = String::new();
    if !changing.is_empty() {
        out += "<h3>Choices while the link changes</h3>\n";
        out += &picture(&changing, 1, true);
    }
    if !steady.is_empty() {
        out += "<h3>Choices on links that stay</h3>\n";
        out += &picture(&steady, 2, false);
    }
    out
}

/// The first run of each policy that chooses, where it is wanted.
fn shown<'s, 'a>(
    study: &'s Study<'a>,
    wanted: impl Fn(&StudyCell<'_>, &Arm<'_>) -> bool,
) -> Vec<Shown<'s, 'a>> {
    let chosen = |arm: &Arm<'_>| matches!(arm.policy, OURS | NAM);
    let arms = study
        .arms()
        .filter(|(place, arm)| chosen(arm) && place.server != GENERATED && wanted(place, arm));
    let of_arm = |(place, arm): (&'s StudyCell<'a>, &Arm<'a>)| {
        let run = arm.cell.good_runs().find(|run| !run.decisions.is_empty())?;
        let (network, class) = (&place.network.name, class_name(place));
        let policy = if arm.policy == OURS { "ours" } else { "NAM" };
        let title = format!("{network}, {class}, processor {}, {policy}", arm.processor);
        Some(Shown { title, place, run })
    };
    arms.filter_map(of_arm).collect()
}

fn picture(all: &[Shown<'_, '_>], columns: usize, by_time: bool) -> String {
    let mut encodings: Vec<&str> = Vec::new();
    for entry in all.iter().flat_map(|one| &one.run.decisions) {
        if !encodings.contains(&entry.encoding.as_str()) {
            encodings.push(&entry.encoding);
        }
    }
    encodings.sort_by_key(|name| rank(name));
    let links = if by_time { LINKS } else { 0.0 };
    let grid = Panels::new(columns, links + LINE * encodings.len() as f64, 0.0);
    let mut svg = grid.svg(all.len());
    for (at, one) in all.iter().enumerate() {
        let mut frame = grid.frame(at);
        frame.left += NAMES;
        frame.title(&mut svg, &one.title);
        frame.top += links;
        draw(&mut svg, frame, one, &encodings, by_time);
    }
    let what = match by_time {
        true => "by the time since the first; upright lines: the link becomes another, named above",
        false => "in their order; the first are the warm-up, up to the upright line",
    };
    let caption = format!(
        "What was chosen for the answers of the first good run, {what}. The larger the mark, the \
         longer the answer. Kernel in real time."
    );
    figure(&svg.finish("Choices, message by message"), &caption)
}

/// As it is first, then by family and level.
fn rank(name: &str) -> (usize, &str, u32) {
    let (family, level) = name.split_once(':').unwrap_or((name, "0"));
    let order = ["identity", "zstd", "deflate", "brotli", "xmill"];
    let place = order.iter().position(|one| *one == family).unwrap_or(order.len());
    (place, family, level.parse().unwrap_or(0))
}

fn draw(svg: &mut Svg, frame: Frame, one: &Shown<'_, '_>, encodings: &[&str], by_time: bool) {
    let decisions = &one.run.decisions;
    let Some(first) = decisions.first() else { return };
    let at = |number: usize| match by_time {
        true => decisions.get(number).map_or(0.0, |entry| entry.unix_s - first.unix_s),
        false => number as f64,
    };
    let x = LinearScale::up_to(at(decisions.len() - 1), frame.left, frame.right);
    let ticks = x.ticks().into_iter().map(|tick| (x.at(tick), format!("{tick:.0}")));
    frame.x_axis(svg, &ticks.collect::<Vec<_>>(), if by_time { "seconds" } else { "message" });
    let y = |encoding: usize| frame.top + LINE * (encoding as f64 + 0.5);
    for (number, name) in encodings.iter().enumerate() {
        svg.text(frame.left - 6.0, y(number) + 4.0, "tick", Anchor::End, name);
    }
    if by_time {
        // The client's clock began a little before the first decision.
        let begun_s = first.unix_s - one.run.started_unix_s;
        let changes = one.place.network.changes.iter();
        let changes =
            changes.map(|(at_s, link)| (x.at(at_s - begun_s).max(frame.left), link.as_str()));
        link_names(svg, frame, &changes.filter(|(x, _)| *x < frame.right).collect::<Vec<_>>());
    } else {
        let x = x.at(one.run.warm_up.len() as f64 - 0.5);
        svg.line("axis", (x, frame.top), (x, frame.bottom));
    }
    for (number, entry) in decisions.iter().enumerate() {
        let Some(line) = encodings.iter().position(|name| *name == entry.encoding) else {
            continue;
        };
        let bytes = entry.decision.as_ref().map_or(0, |decision| decision.body_bytes);
        // From a point at 100 bytes to a line's height at a megabyte.
        let side = 2.0 + 2.0 * (bytes.max(100) as f64 / 100.0).log10().min(4.0);
        let title = format!("{}: {bytes} bytes, {}", entry.encoding, entry.reason);
        let corner = (x.at(at(number)) - side / 2.0, y(line) - side / 2.0);
        svg.bar("longwire point", corner, (side, side), &title);
    }
}

/// Where the link becomes another, and which; on the left what it is at first.
fn link_names(svg: &mut Svg, frame: Frame, changes: &[(f64, &str)]) {
    for (number, (x, link)) in changes.iter().enumerate() {
        let next = changes.get(number + 1).map_or(frame.right, |(next, _)| *next);
        let (shift, anchor) = match next - x < NEAR {
            true => (-4.0, Anchor::End),
            false => (4.0, Anchor::Start),
        };
        svg.line("axis", (*x, frame.top - LINKS), (*x, frame.bottom));
        svg.text(x + shift, frame.top - 4.0, "tick", anchor, link);
    }
}
