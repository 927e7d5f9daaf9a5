//! The text that says how the heights of a grid lie.

use super::grid::{HOLE, MAX_GRID_POSTS, Shape};
use crate::Error;

/// Longest text of a header, in bytes. Whoever reads the file reads no more than this and one
/// byte.
pub const MAX_GRID_HEADER_BYTES: usize = 64 * 1024;

/// What the bounds may be off the steps, in steps: they are written in decimals.
const MAX_ROUNDING_STEPS: f64 = 0.01;

/// Keys of numbers; `rows` and `columns` are whole ones.
const KEYS: [&str; 8] = ["rows", "columns", "xmin", "xmax", "ymin", "ymax", "dx", "dy"];

/// A header that was read.
pub(super) struct Header {
    pub(super) shape: Shape,
    pub(super) hole: Option<i16>,
}

impl Header {
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let refused = |line: Option<usize>, field: &str, what: String| Error::File {
            kind: "height grid",
            name: name.to_owned(),
            line,
            field: field.to_owned(),
            what,
        };
        if text.len() > MAX_GRID_HEADER_BYTES {
            let what = format!("its text has more than {MAX_GRID_HEADER_BYTES} bytes");
            return Err(refused(None, "", what));
        }
        let mut values = [None; KEYS.len()];
        let mut hole = Some(HOLE);
        for (index, line) in text.lines().enumerate() {
            let mut words = line.split_whitespace();
            let (Some(key), value) = (words.next(), words.next().unwrap_or("")) else { continue };
            let at = Some(index + 1);
            let no_number = |what: &str| {
                refused(at, key, format!("{} is no {what}", crate::error::quoted(value)))
            };
            if let Some(place) = KEYS.iter().position(|known| *known == key) {
                if values[place].is_some() {
                    return Err(refused(at, key, "stands twice: leave one".to_owned()));
                }
                let number: f64 = value.parse().map_err(|_| no_number("number"))?;
                values[place] = Some(number);
            } else if key == "hole" {
                hole = Some(value.parse().map_err(|_| no_number("height in whole metres"))?);
            } else if key == "unit" {
                let rest: Vec<&str> = line.split_whitespace().skip(1).collect();
                if rest.join(" ") != "metre, int16 little endian" {
                    let what = "only 'metre, int16 little endian' is read".to_owned();
                    return Err(refused(at, key, what));
                }
            } else {
                let known = format!("known are {}, hole, unit", KEYS.join(", "));
                return Err(refused(at, key, known));
            }
        }
        let mut all = [0.0; KEYS.len()];
        for ((value, key), one) in values.iter().zip(KEYS).zip(&mut all) {
            *one = value.ok_or_else(|| refused(None, key, "is missing".to_owned()))?;
        }
        shape(all).map(|shape| Self { shape, hole }).map_err(|(key, what)| refused(None, key, what))
    }
}

/// Key and complaint on failure.
fn shape(values: [f64; KEYS.len()]) -> Result<Shape, (&'static str, String)> {
    let [rows, columns, x_a, x_b, y_a, y_b, dx, dy] = values;
    let (rows, columns) = (whole("rows", rows)?, whole("columns", columns)?);
    if rows * columns > MAX_GRID_POSTS {
        let what = format!("{rows} rows of {columns} columns pass {MAX_GRID_POSTS} posts: cut it");
        return Err(("rows", what));
    }
    for (key, step) in [("dx", dx), ("dy", dy)] {
        if !(1e-6..=10.0).contains(&step) {
            return Err((key, format!("{step} is no step: give 0.000001 to 10 degrees")));
        }
    }
    for (key, value, limit) in
        [("xmin", x_a, 180.0), ("xmax", x_b, 180.0), ("ymin", y_a, 90.0), ("ymax", y_b, 90.0)]
    {
        if !(-limit..=limit).contains(&value) {
            return Err((key, format!("{value} is no coordinate: give up to {limit} degrees")));
        }
    }
    // Rows go from north to south, whichever end is called the least.
    let margin_x = margin("columns", columns, (x_b - x_a).abs() / dx)? * dx;
    let margin_y = margin("rows", rows, (y_b - y_a).abs() / dy)? * dy;
    Ok(Shape {
        rows,
        columns,
        north_deg: y_a.max(y_b) - margin_y,
        west_deg: x_a.min(x_b) + margin_x,
        step_deg: [dy, dx],
    })
}

fn whole(key: &'static str, value: f64) -> Result<usize, (&'static str, String)> {
    if value.fract() != 0.0 || !(2.0..=MAX_GRID_POSTS as f64).contains(&value) {
        return Err((key, format!("{value} is no number of posts: give a whole number from 2")));
    }
    #[allow(clippy::cast_possible_truncation, reason = "a whole number within a usize")]
    Ok(value as usize)
}

/// Steps from a bound to the first post: half of one where the bounds are those of cells.
fn margin(key: &'static str, posts: usize, steps: f64) -> Result<f64, (&'static str, String)> {
    let is_near = |wanted: usize| (steps - wanted as f64).abs() < MAX_ROUNDING_STEPS;
    if is_near(posts) {
        Ok(0.5)
    } else if is_near(posts - 1) {
        Ok(0.0)
    } else {
        let what = format!("{posts} do not fill the bounds, which are {steps:.2} steps apart");
        Err((key, what))
    }
}
