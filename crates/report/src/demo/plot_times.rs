//! Time per track: every fetch and the median, by network, service and way, on a log scale.

use record::demo::{Cell, Demo, Mode, Network, Time};

use super::figures::{LEFT, WIDTH, class, legend, mark, mode_name};
use super::rows::{Row, describe, item_noun, rows};
use crate::format;
use crate::svg::{Anchor, LogScale, Svg};

const LINE: f64 = 16.0;
const SERVICE_GAP: f64 = 8.0;
const HEAD: f64 = 30.0;
const FOOT: f64 = 34.0;
const LEGEND: f64 = 30.0;
/// Where the scale ends and the medians stand.
const RIGHT: f64 = WIDTH - 128.0;

/// The plot.
pub(super) fn plot(demo: &Demo) -> String {
    let rows = rows(demo);
    let per_network = demo.services.len() as f64;
    let panel = HEAD + per_network * (3.0 * LINE + SERVICE_GAP) + FOOT;
    let mut svg = Svg::new(WIDTH, LEGEND + demo.networks.len() as f64 * panel);
    let end = legend(&mut svg, LEFT, 16.0);
    svg.bar("bound", (end, 5.0), (18.0, 14.0), "bound");
    svg.line("bound-median", (end + 9.0, 5.0), (end + 9.0, 19.0));
    let bound = format!("round trip + {}", demo.setting.bound_encoding);
    svg.text(end + 24.0, 16.0, "label", Anchor::Start, &bound);
    let mut y = LEGEND;
    for network in &demo.networks {
        let scale = scale(&rows, network);
        draw_axis(&mut svg, &scale, network, item_noun(demo), (y, y + panel - FOOT));
        let of_network = rows.iter().filter(|row| std::ptr::eq(row.network, network));
        for (number, row) in of_network.enumerate() {
            let top = y + HEAD + number as f64 * (3.0 * LINE + SERVICE_GAP);
            draw_row(&mut svg, &scale, row, top);
        }
        y += panel;
    }
    svg.finish("Seconds per fetch by network, service and way, with medians and bounds")
}

/// A scale for one network.
fn scale(rows: &[Row<'_>], network: &Network) -> LogScale {
    let own = rows.iter().filter(|row| std::ptr::eq(row.network, network));
    let cells = own.clone().flat_map(|row| row.cells).flatten();
    let times = cells.flat_map(Cell::times).filter_map(Time::at_least_s);
    LogScale::around(times.chain(own.flat_map(Row::bounds_s)), LEFT, RIGHT)
}

fn draw_axis(svg: &mut Svg, scale: &LogScale, network: &Network, noun: &str, (y, end): (f64, f64)) {
    let count = network.items.len();
    let cold = if network.cold { ", cold" } else { "" };
    let about = format!("{}; {count} {noun}s{cold}", describe(network));
    svg.text(0.0, y + 16.0, "title", Anchor::Start, &network.name);
    svg.text(LEFT, y + 16.0, "label", Anchor::Start, &about);
    svg.text(WIDTH, y + 16.0, "label", Anchor::End, "median");
    for tick in scale.ticks() {
        let x = scale.at(tick);
        svg.line("grid", (x, y + HEAD - 4.0), (x, end));
        svg.text(x, end + 13.0, "tick", Anchor::Middle, &format!("{tick}"));
    }
    svg.text(RIGHT + 14.0, end + 13.0, "tick", Anchor::Start, "seconds");
}

fn draw_row(svg: &mut Svg, scale: &LogScale, row: &Row<'_>, top: f64) {
    let bottom = top + 3.0 * LINE;
    svg.text(
        0.0,
        top + 1.5 * LINE + 4.0,
        "label",
        Anchor::Start,
        format::service_name(&row.service.name),
    );
    let bounds = row.bounds_s();
    let least = bounds.iter().copied().min_by(f64::total_cmp);
    let most = bounds.iter().copied().max_by(f64::total_cmp);
    if let (Some(least), Some(most), Some(median)) = (least, most, row.bound_s()) {
        let (from, to) = (scale.at(least), scale.at(most));
        let texts = [least, median, most].map(format::seconds);
        let title = format!(
            "round trip and airtime: {} to {} s, median {} s",
            texts[0], texts[2], texts[1]
        );
        svg.bar("bound", (from, top), ((to - from).max(2.0), bottom - top), &title);
        let x = scale.at(median);
        svg.line("bound-median", (x, top), (x, bottom));
    }
    for ((mode, cell), line) in Mode::ALL.into_iter().zip(row.cells).zip(0_u8..) {
        let y = top + (f64::from(line) + 0.5) * LINE;
        svg.text(LEFT - 8.0, y + 4.0, "way", Anchor::End, mode_name(mode));
        match cell {
            Some(cell) => draw_cell(svg, scale, cell, y),
            None => svg.text(WIDTH, y + 4.0, "bad", Anchor::End, "no result"),
        }
    }
}

fn draw_cell(svg: &mut Svg, scale: &LogScale, cell: &Cell, y: f64) {
    let own = class(cell.mode);
    for exchange in cell.measured() {
        let (x, name) = (scale.at(exchange.elapsed_s), &exchange.name);
        match Time::of(exchange) {
            Time::Seconds(seconds) => {
                let title = format!("{name}: {} s", format::seconds(seconds));
                svg.mark(mark(cell.mode), &format!("{own} point"), (x, y), &title);
            }
            // Never begun: there is no place for it on the scale; the text counts it.
            Time::MoreThan(0.0) => {}
            Time::MoreThan(least) => {
                let title = format!("{name}: > {} s, cut off", format::seconds(least));
                svg.arrow(&format!("{own} cut"), (x, y), &title);
            }
            Time::Never => svg.cross("failed", (x, y)),
        }
    }
    let median = cell.median();
    if let Some(seconds) = median.at_least_s().filter(|seconds| *seconds > 0.0) {
        let x = scale.at(seconds);
        svg.line(&format!("{own} median"), (x, y - 7.0), (x, y + 7.0));
    }
    let (done, all) = (
        cell.measured().iter().filter(|exchange| exchange.succeeded()).count(),
        cell.measured().len(),
    );
    let text = match median {
        _ if cell.fetch.is_none() => "no result".to_string(),
        Time::Never => format!("failed ({done} of {all} came)"),
        _ if done < all => format!("{} s ({done} of {all})", format::time(median)),
        _ => format!("{} s", format::time(median)),
    };
    let class = if done == all && all > 0 { "value" } else { "bad" };
    svg.text(WIDTH, y + 4.0, class, Anchor::End, &text);
}
