//! A grid of heights over a piece of the Earth.

use super::header::Header;
use super::profile::{MAX_PROFILE_POINTS, Profile};
use crate::Error;
use crate::geo::Position;
use std::fmt;
use std::sync::Arc;

/// Most posts of a grid: a degree square in steps of one second of arc.
pub const MAX_GRID_POSTS: usize = 3_601 * 3_601;

/// The height that stands for an unknown one, as in the data of the Shuttle Radar Topography
/// Mission.
pub const HOLE: i16 = i16::MIN;

/// Metres of a degree of latitude, to choose the steps of a profile by.
const METRES_PER_DEGREE: f64 = 111_195.0;

/// Heights above sea level in whole metres at posts in rows from north to south, each from west
/// to east; between posts they are interpolated evenly. Cloning shares the heights.
#[derive(Clone, PartialEq)]
pub struct HeightGrid {
    pub(super) name: Arc<str>,
    pub(super) shape: Shape,
    pub(super) heights_m: Arc<[i16]>,
}

/// Where the posts of a grid are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shape {
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Of the first row's posts, in degrees.
    pub(super) north_deg: f64,
    /// Of the first column's posts, in degrees.
    pub(super) west_deg: f64,
    /// Degrees from row to row and from column to column.
    pub(super) step_deg: [f64; 2],
}

impl HeightGrid {
    /// Reads a grid: its heights as 16 bit integers, least significant byte first, and a text that
    /// says how they lie. Lines of the text are a key, a value and what else people want to know:
    ///
    /// ```text
    /// rows 344 (north to south)
    /// columns 403 (west to east)
    /// xmin -84.41375
    /// xmax -84.07791666666667
    /// ymin 36.44625
    /// ymax 36.73291666666667
    /// dx 0.0008333333333333334 deg
    /// dy 0.0008333333333333334 deg
    /// unit metre, int16 little endian
    /// ```
    ///
    /// x and y are degrees of longitude and latitude. The bounds are those of the posts' cells or
    /// of the posts themselves, whichever the numbers of rows and columns say. [`HOLE`] is an
    /// unknown height, and `hole VALUE` in the text names another.
    ///
    /// # Errors
    /// [`Error::File`] naming the line and key of the text, or the number of bytes that the
    /// heights must have.
    pub fn parse(name: &str, header: &str, heights: &[u8]) -> Result<Self, Error> {
        let Header { shape, hole } = Header::parse(name, header)?;
        let posts = shape.rows * shape.columns;
        if heights.len() != posts * 2 {
            return Err(Error::File {
                kind: "height grid",
                name: name.to_owned(),
                line: None,
                field: String::new(),
                what: format!(
                    "has {} bytes of heights where {} rows of {} columns of 2 bytes make {}",
                    heights.len(),
                    shape.rows,
                    shape.columns,
                    posts * 2
                ),
            });
        }
        let height = |pair: &[u8]| {
            let height_m = i16::from_le_bytes([pair[0], pair[1]]);
            if Some(height_m) == hole { HOLE } else { height_m }
        };
        let heights_m = heights.chunks_exact(2).map(height).collect();
        Ok(Self { name: name.into(), shape, heights_m })
    }

    /// The name given to [`HeightGrid::parse`].
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Rows and columns.
    #[must_use]
    pub fn size(&self) -> [usize; 2] {
        [self.shape.rows, self.shape.columns]
    }

    /// The posts in the south-west and in the north-east, at sea level.
    #[must_use]
    pub fn corners(&self) -> [Position; 2] {
        let Shape { rows, columns, north_deg, west_deg, step_deg } = self.shape;
        let south_deg = north_deg - (rows - 1) as f64 * step_deg[0];
        let east_deg = west_deg + (columns - 1) as f64 * step_deg[1];
        [
            Position { lat_deg: south_deg, lon_deg: west_deg, alt_m: 0.0 },
            Position { lat_deg: north_deg, lon_deg: east_deg, alt_m: 0.0 },
        ]
    }

    /// Least and greatest known height in metres, and the number of holes.
    #[must_use]
    pub fn range_m(&self) -> (i16, i16, usize) {
        let known = || self.heights_m.iter().copied().filter(|height_m| *height_m != HOLE);
        let (least, greatest) = (known().min().unwrap_or(0), known().max().unwrap_or(0));
        (least, greatest, self.heights_m.len() - known().count())
    }

    /// Height of the ground at a place, above sea level in metres.
    ///
    /// # Errors
    /// [`Error::Path`] for a place off the grid, naming its bounds, or beside a hole, naming the
    /// row and column.
    pub fn height_m(&self, place: &Position) -> Result<f64, Error> {
        let Shape { rows, columns, north_deg, west_deg, step_deg } = self.shape;
        let y = (north_deg - place.lat_deg) / step_deg[0];
        let x = (place.lon_deg - west_deg) / step_deg[1];
        let (row, south) = self.cell(y, rows).ok_or_else(|| self.off_the_map(place))?;
        let (column, east) = self.cell(x, columns).ok_or_else(|| self.off_the_map(place))?;
        let mut height_m = 0.0;
        for (row, share_y) in [(row, 1.0 - south), (row + 1, south)] {
            for (column, share_x) in [(column, 1.0 - east), (column + 1, east)] {
                let share = share_x * share_y;
                if share > 0.0 {
                    height_m += share * f64::from(self.post(row, column, place)?);
                }
            }
        }
        Ok(height_m)
    }

    /// The ground along the way between two places, at equal steps of about the distance between
    /// posts, or longer ones where that would be more than [`MAX_PROFILE_POINTS`].
    ///
    /// # Errors
    /// Those of [`HeightGrid::height_m`], for any point of the way, and [`Error::Path`] for two
    /// places that are the same.
    pub fn profile(&self, from: &Position, to: &Position) -> Result<Profile, Error> {
        let length_m = from.ground_distance_m(to);
        let step_m = self.shape.step_deg[0] * METRES_PER_DEGREE;
        let mut steps = 1_u32;
        while f64::from(steps) * step_m < length_m && (steps as usize) < MAX_PROFILE_POINTS - 1 {
            steps += 1;
        }
        let points: Result<Vec<_>, Error> = (0..=steps)
            .map(|step| {
                let share = f64::from(step) / f64::from(steps);
                Ok((length_m * share, self.height_m(&from.towards(to, share))?))
            })
            .collect();
        Profile::new(&points?)
    }

    /// The row or column before `at`, and what of a step lies beyond it.
    fn cell(&self, at: f64, posts: usize) -> Option<(usize, f64)> {
        // A place on the last post is on the grid, also where rounding put it a hair beyond.
        const ROUNDING: f64 = 1e-9;
        let last = (posts - 1) as f64;
        let inside = (-ROUNDING..=last + ROUNDING).contains(&at);
        let at = at.clamp(0.0, last);
        inside.then(|| {
            #[allow(clippy::cast_possible_truncation, reason = "between 0 and a usize")]
            let before = at.floor() as usize;
            (before, at - at.floor())
        })
    }

    fn post(&self, row: usize, column: usize, place: &Position) -> Result<i16, Error> {
        let height_m = self.heights_m.get(row * self.shape.columns + column).copied();
        height_m.filter(|height_m| *height_m != HOLE).ok_or_else(|| Error::Path {
            what: format!(
                "height grid {} has a hole in row {}, column {}, on the way past {:.5},{:.5}: fill \
                 it or move the node",
                self.name,
                row + 1,
                column + 1,
                place.lat_deg,
                place.lon_deg
            ),
        })
    }

    fn off_the_map(&self, place: &Position) -> Error {
        let [south_west, north_east] = self.corners();
        Error::Path {
            what: format!(
                "{:.5},{:.5} is off the map: height grid {} has latitudes {:.5} to {:.5} and \
                 longitudes {:.5} to {:.5}",
                place.lat_deg,
                place.lon_deg,
                self.name,
                south_west.lat_deg,
                north_east.lat_deg,
                south_west.lon_deg,
                north_east.lon_deg
            ),
        }
    }
}

impl fmt::Debug for HeightGrid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeightGrid").field("name", &self.name).field("shape", &self.shape).finish()
    }
}

#[cfg(test)]
mod tests;
