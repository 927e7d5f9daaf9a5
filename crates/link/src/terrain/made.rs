//! Grids made from a seed, for tests and scenarios that must need no data.

use super::grid::{HeightGrid, MAX_GRID_POSTS, Shape};
use crate::Error;
use crate::geo::Position;
use crate::random::{Dice, Purpose, Subject};

/// What kind of land is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landscape {
    /// 100 m above the sea, rolling by some metres.
    Plain,
    /// A ridge of 300 m from west to east through the middle of the plain.
    Ridge,
    /// Hills of up to 150 m over valleys.
    Hills,
}

/// A grid to be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Made {
    /// What kind of land.
    pub landscape: Landscape,
    /// Where the first row and column meet: the north-west corner.
    pub corner: Position,
    /// Rows and columns.
    pub size: [usize; 2],
    /// Degrees between rows and between columns.
    pub step_deg: f64,
    /// Other seeds make other hills.
    pub seed: u64,
}

/// Posts between the points of the coarsest layer of hills.
const COARSEST_POSTS: usize = 64;
/// Layers of hills, each half as wide and half as high as the one before.
const LAYERS: u32 = 5;
/// Metres from the lowest to the highest point of the coarsest layer.
const ROLLING_M: f64 = 24.0;
const PLAIN_M: f64 = 100.0;
const RIDGE_M: f64 = 300.0;
/// How much higher hills are than the plain's rolling.
const HILLS: f64 = 6.0;

impl Made {
    /// Makes the grid: the same one each time.
    ///
    /// # Errors
    /// [`Error::Path`] for fewer than two rows or columns, more than [`MAX_GRID_POSTS`] posts, a
    /// step out of range or a grid that passes the edges of the map.
    pub fn grid(&self) -> Result<HeightGrid, Error> {
        let [rows, columns] = self.size;
        let is_small = rows.checked_mul(columns).is_some_and(|posts| posts <= MAX_GRID_POSTS);
        let refused = |what: String| Err(Error::Path { what });
        if rows < 2 || columns < 2 || !is_small {
            return refused(format!(
                "a grid of {rows} rows and {columns} columns: give 2 or more of each, at most \
                 {MAX_GRID_POSTS} posts"
            ));
        }
        let south_deg = self.corner.lat_deg - (rows - 1) as f64 * self.step_deg;
        let east_deg = self.corner.lon_deg + (columns - 1) as f64 * self.step_deg;
        if !(1e-6..=1.0).contains(&self.step_deg) || south_deg < -90.0 || east_deg > 180.0 {
            return refused(format!(
                "a grid in steps of {} degrees that ends at {south_deg},{east_deg}: give 0.000001 \
                 to 1 degree and stay on the map",
                self.step_deg
            ));
        }
        let shape = Shape {
            rows,
            columns,
            north_deg: self.corner.lat_deg,
            west_deg: self.corner.lon_deg,
            step_deg: [self.step_deg; 2],
        };
        let heights_m =
            (0..rows * columns).map(|post| self.height_m(post / columns, post % columns)).collect();
        let name = format!("made from seed {}", self.seed).into();
        Ok(HeightGrid { name, shape, heights_m })
    }

    fn height_m(&self, row: usize, column: usize) -> i16 {
        let base_m = match self.landscape {
            Landscape::Plain | Landscape::Hills => PLAIN_M,
            Landscape::Ridge => {
                // A hill that falls with the square of the distance from the middle row.
                let rows = self.size[0] as f64;
                let off = (row as f64 - (rows - 1.0) / 2.0) / (rows / 10.0);
                PLAIN_M + RIDGE_M / (1.0 + off * off)
            }
        };
        let rolling_m: f64 = (0..LAYERS)
            .map(|layer| {
                let posts = (COARSEST_POSTS >> layer).max(1);
                self.layer(layer, posts, row, column) * ROLLING_M / f64::from(1_u32 << layer)
            })
            .sum();
        #[allow(clippy::cast_possible_truncation, reason = "a few hundred metres")]
        let height_m = (base_m + rolling_m * self.steepness()).round() as i16;
        height_m
    }

    fn steepness(&self) -> f64 {
        if self.landscape == Landscape::Hills { HILLS } else { 1.0 }
    }

    /// Random heights from -0.5 to 0.5 at every `posts`-th post, evenly between them.
    fn layer(&self, layer: u32, posts: usize, row: usize, column: usize) -> f64 {
        let dice = Dice::for_seed(self.seed);
        let at = |row: usize, column: usize| {
            let number = (row as u64) << 32 ^ (column as u64) << 8 ^ u64::from(layer);
            dice.unit(Subject { number, is_copy: false }, Purpose::Relief) - 0.5
        };
        let (row_before, column_before) = (row / posts, column / posts);
        let south = (row % posts) as f64 / posts as f64;
        let east = (column % posts) as f64 / posts as f64;
        let along = |row| at(row, column_before) * (1.0 - east) + at(row, column_before + 1) * east;
        along(row_before) * (1.0 - south) + along(row_before + 1) * south
    }
}
