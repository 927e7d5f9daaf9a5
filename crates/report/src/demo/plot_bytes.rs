//! IP bytes on the wire per track, by network, service and way.

use record::demo::{Demo, Mode};

use super::figures::{LEFT, WIDTH, class, legend, mode_name};
use super::rows::{Row, rows};
use crate::format;
use crate::svg::{Anchor, Svg};

const LINE: f64 = 13.0;
const SERVICE_GAP: f64 = 6.0;
const NETWORK_GAP: f64 = 14.0;
const LEGEND: f64 = 30.0;
/// Where the longest bar ends.
const RIGHT: f64 = WIDTH - 80.0;

/// The plot.
pub(super) fn plot(demo: &Demo) -> String {
    let rows = rows(demo);
    let most = rows.iter().flat_map(Row::wire_bytes).flatten().fold(1.0, f64::max);
    let row_height = 3.0 * LINE + SERVICE_GAP;
    let network_height = demo.services.len() as f64 * row_height + NETWORK_GAP;
    let mut svg = Svg::new(WIDTH, LEGEND + demo.networks.len() as f64 * network_height);
    legend(&mut svg, LEFT, 16.0);
    let mut y = LEGEND;
    for network in &demo.networks {
        svg.text(0.0, y + 11.0, "title", Anchor::Start, &network.name);
        for row in rows.iter().filter(|row| std::ptr::eq(row.network, network)) {
            draw_row(&mut svg, row, y, most);
            y += row_height;
        }
        y += NETWORK_GAP;
    }
    svg.finish("Bytes on the wire per fetch by network, service and way")
}

fn draw_row(svg: &mut Svg, row: &Row<'_>, top: f64, most: f64) {
    let name = format::service_name(&row.service.name);
    svg.text(LEFT - 8.0, top + 1.5 * LINE + 4.0, "label", Anchor::End, name);
    for ((mode, bytes), line) in Mode::ALL.into_iter().zip(row.wire_bytes()).zip(0_u8..) {
        let y = top + f64::from(line) * LINE;
        let Some(bytes) = bytes else {
            svg.text(LEFT + 4.0, y + 10.0, "bad", Anchor::Start, "nothing came");
            continue;
        };
        let width = bytes / most * (RIGHT - LEFT);
        let text = format::kilobytes(bytes);
        let title = format!("{}: {text}", mode_name(mode));
        svg.bar(&format!("{} bar", class(mode)), (LEFT, y + 1.0), (width, LINE - 2.0), &title);
        svg.text(LEFT + width + 6.0, y + 10.0, "tick", Anchor::Start, &text);
    }
}
