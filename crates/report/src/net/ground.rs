//! The ground on a map: shading as if the light came from the north-west, and contours.

use std::fmt::Write as _;

use link::terrain::HeightGrid;

use super::view::View;
use crate::svg::Svg;

/// Pixels from sample to sample.
const STEP: f64 = 4.0;
/// Shades from dark to light.
const SHADES: usize = 9;
/// Tints from low to high ground: red, green, blue.
const TINTS: [[f64; 3]; 5] = [
    [196.0, 214.0, 178.0],
    [216.0, 224.0, 188.0],
    [234.0, 228.0, 196.0],
    [232.0, 214.0, 180.0],
    [240.0, 234.0, 224.0],
];
/// Contours on a map, about.
const CONTOURS: f64 = 12.0;
/// Each so many contours one is bold.
const BOLD: i64 = 5;

/// Heights at points of a map, in rows from the top; none off the grid and at holes.
struct Samples {
    rows: usize,
    columns: usize,
    heights_m: Vec<Option<f64>>,
}

impl Samples {
    fn new(view: &View, grid: &HeightGrid) -> Self {
        let count = |pixels: f64| {
            let mut count = 1_u16;
            while f64::from(count) * STEP < pixels && count < 1_000 {
                count += 1;
            }
            usize::from(count) + 1
        };
        let (rows, columns) = (count(view.height), count(view.width));
        let height = |at: usize| {
            let (row, column) = ((at / columns) as f64, (at % columns) as f64);
            let x = view.left + (column * STEP).min(view.width);
            let y = view.top + (row * STEP).min(view.height);
            grid.height_m(&view.place(x, y)?).ok()
        };
        Self { rows, columns, heights_m: (0..rows * columns).map(height).collect() }
    }

    fn at(&self, row: usize, column: usize) -> Option<f64> {
        self.heights_m.get(row * self.columns + column).copied().flatten()
    }

    /// The corners of a cell: north-west, north-east, south-west, south-east.
    fn cell(&self, row: usize, column: usize) -> Option<[f64; 4]> {
        Some([
            self.at(row, column)?,
            self.at(row, column + 1)?,
            self.at(row + 1, column)?,
            self.at(row + 1, column + 1)?,
        ])
    }

    fn range_m(&self) -> Option<(f64, f64)> {
        let known = || self.heights_m.iter().flatten().copied();
        let (least, most) = (known().reduce(f64::min)?, known().reduce(f64::max)?);
        Some((least, most))
    }
}

/// Draws the ground; returns the distance of contours in metres, none where there is no ground.
pub(super) fn draw(svg: &mut Svg, view: &View, grid: &HeightGrid) -> Option<f64> {
    let samples = Samples::new(view, grid);
    let (least_m, most_m) = samples.range_m()?;
    shade(svg, view, &samples, (least_m, most_m));
    let interval_m = interval(most_m - least_m);
    contours(svg, view, &samples, interval_m);
    Some(interval_m)
}

/// 1, 2 or 5 times a power of ten, of which a range has about as many as there are contours.
fn interval(range_m: f64) -> f64 {
    let rough = (range_m / CONTOURS).max(0.1);
    let power = 10_f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
    steps.into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power)
}

/// Cells of one shade and tint next to each other in a row are one stroke.
fn shade(svg: &mut Svg, view: &View, samples: &Samples, (least_m, most_m): (f64, f64)) {
    let slope_scale = steepness(view, samples);
    let mut strokes = vec![String::new(); SHADES * TINTS.len()];
    for row in 0..samples.rows.saturating_sub(1) {
        let y = view.top + row as f64 * STEP + STEP / 2.0;
        let kind = |column: usize| -> Option<usize> {
            let [nw, ne, sw, se] = samples.cell(row, column)?;
            let east = ((ne + se) - (nw + sw)) / 2.0 * slope_scale;
            let south = ((sw + se) - (nw + ne)) / 2.0 * slope_scale;
            let height = ((nw + ne + sw + se) / 4.0 - least_m) / (most_m - least_m).max(1.0);
            Some(place(height, TINTS.len()) * SHADES + place(light(east, south), SHADES))
        };
        let mut column = 0;
        while column + 1 < samples.columns {
            let start = column;
            let one = kind(start);
            while column + 1 < samples.columns && kind(column) == one {
                column += 1;
            }
            let Some(stroke) = one.and_then(|one| strokes.get_mut(one)) else { continue };
            let x = view.left + start as f64 * STEP;
            let length = ((column - start) as f64 * STEP).min(view.left + view.width - x);
            // Writing to a string cannot fail.
            let _ = write!(stroke, "M{x:.0} {y:.1}h{length:.0}");
        }
    }
    let mut style = String::new();
    for (index, steps) in strokes.iter().enumerate().filter(|(_, steps)| !steps.is_empty()) {
        let [red, green, blue] = TINTS[index / SHADES];
        // From 0.76 to 1.06 of the tint.
        let share = 0.76 + 0.30 * (index % SHADES) as f64 / (SHADES - 1) as f64;
        let [red, green, blue] = [red, green, blue].map(|part| (part * share).min(255.0));
        let _ = writeln!(style, "svg .r{index} {{ stroke: rgb({red:.0},{green:.0},{blue:.0}); }}");
        svg.path(&format!("relief r{index}"), steps, "");
    }
    let width = STEP + 0.6;
    let _ = writeln!(style, "svg .relief {{ fill: none; stroke-width: {width}; }}");
    svg.style(&style);
}

/// What heights are multiplied by, so that slopes of the map are as steep as they can be told
/// apart: hills of a plain too.
fn steepness(view: &View, samples: &Samples) -> f64 {
    let mut squares = (0.0, 0_u32);
    for row in 0..samples.rows.saturating_sub(1) {
        for column in 0..samples.columns.saturating_sub(1) {
            if let Some([nw, ne, sw, _]) = samples.cell(row, column) {
                squares = (squares.0 + (ne - nw).powi(2) + (sw - nw).powi(2), squares.1 + 2);
            }
        }
    }
    let typical = (squares.0 / f64::from(squares.1.max(1))).sqrt();
    // Never so much that noise of decimetres looks like hills.
    let true_scale = 1.0 / view.metres(STEP).unwrap_or(1.0).max(1e-6);
    (0.45 / typical.max(1e-6)).min(60.0 * true_scale)
}

/// How bright a slope is, 0 to 1, with the light 45° high in the north-west.
fn light(east: f64, south: f64) -> f64 {
    let up = (1.0 + east * east + south * south).sqrt();
    let towards =
        (1.0 + (east + south) / std::f64::consts::SQRT_2) / (up * std::f64::consts::SQRT_2);
    (0.5 + (towards - std::f64::consts::FRAC_1_SQRT_2) * 1.1).clamp(0.0, 1.0)
}

/// Which of so many equal parts of 0 to 1 a share is in.
fn place(share: f64, parts: usize) -> usize {
    (1..parts).filter(|part| share >= *part as f64 / parts as f64).count()
}

/// Lines of equal height: for each cell the pieces by which they cross it (marching squares).
fn contours(svg: &mut Svg, view: &View, samples: &Samples, interval_m: f64) {
    let mut lines = [String::new(), String::new()];
    for row in 0..samples.rows.saturating_sub(1) {
        for column in 0..samples.columns.saturating_sub(1) {
            let Some(corners) = samples.cell(row, column) else { continue };
            let least = corners.into_iter().fold(f64::INFINITY, f64::min);
            let most = corners.into_iter().fold(f64::NEG_INFINITY, f64::max);
            let mut level = (least / interval_m).ceil();
            while level * interval_m < most {
                #[allow(clippy::cast_possible_truncation, reason = "a few thousand metres")]
                let is_bold = (level as i64).rem_euclid(BOLD) == 0;
                let corner = (view.left + column as f64 * STEP, view.top + row as f64 * STEP);
                // On a level that is a corner's own height lines would end in it.
                let crossings = crossings(corners, level * interval_m + 1e-7);
                for pair in crossings.chunks_exact(2) {
                    let point = |(x, y): (f64, f64)| (corner.0 + x * STEP, corner.1 + y * STEP);
                    let ((x1, y1), (x2, y2)) = (point(pair[0]), point(pair[1]));
                    let line = &mut lines[usize::from(is_bold)];
                    let _ = write!(line, "M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}");
                }
                level += 1.0;
            }
        }
    }
    for (steps, class) in lines.iter().zip(["contour", "contour bold"]) {
        if !steps.is_empty() {
            svg.path(class, steps, "");
        }
    }
}

/// Where a level crosses the edges of a cell, in pairs, in shares of its sides.
fn crossings([nw, ne, sw, se]: [f64; 4], level_m: f64) -> Vec<(f64, f64)> {
    let share = |a: f64, b: f64| {
        ((a < level_m) != (b < level_m)).then(|| ((level_m - a) / (b - a)).clamp(0.0, 1.0))
    };
    let north = share(nw, ne).map(|share| (share, 0.0));
    let east = share(ne, se).map(|share| (1.0, share));
    let south = share(sw, se).map(|share| (share, 1.0));
    let west = share(nw, sw).map(|share| (0.0, share));
    match (north, east, south, west) {
        // A saddle: its middle says which corners belong together.
        (Some(north), Some(east), Some(south), Some(west)) => {
            let is_high = (nw + ne + sw + se) / 4.0 >= level_m;
            if is_high == (nw >= level_m) {
                vec![north, east, south, west]
            } else {
                vec![north, west, south, east]
            }
        }
        (north, east, south, west) => [north, east, south, west].into_iter().flatten().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contours_cross_cells_where_their_height_is() {
        let share = |pairs: Vec<(f64, f64)>| pairs;
        // A slope to the east: one line from north to south.
        assert_eq!(share(crossings([0.0, 10.0, 0.0, 10.0], 2.5)), [(0.25, 0.0), (0.25, 1.0)]);
        // A corner.
        assert_eq!(crossings([10.0, 0.0, 0.0, 0.0], 5.0), [(0.5, 0.0), (0.0, 0.5)]);
        // A saddle has two lines, a plain none.
        assert_eq!(crossings([10.0, 0.0, 0.0, 10.0], 5.0).len(), 4);
        assert_eq!(crossings([3.0; 4], 5.0), []);
    }

    #[test]
    fn intervals_are_round_and_few() {
        for range_m in [0.0, 3.0, 24.0, 97.0, 310.0, 2_000.0] {
            let interval_m = interval(range_m);
            assert!(range_m / interval_m <= 12.0, "{range_m}: {interval_m}");
        }
        assert_eq!((interval(90.0), interval(310.0)), (10.0, 50.0));
    }

    #[test]
    fn light_comes_from_the_north_west() {
        // Ground that rises to the south-east faces the light.
        assert!(light(0.5, 0.5) > light(0.0, 0.0) && light(0.0, 0.0) > light(-0.5, -0.5));
        assert!((light(0.0, 0.0) - 0.5).abs() < 1e-9);
        assert_eq!((place(0.0, 5), place(0.99, 5), place(1.0, 5), place(0.5, 2)), (0, 4, 4, 1));
    }
}
