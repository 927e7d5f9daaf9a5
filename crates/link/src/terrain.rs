//! Heights of the ground: profiles along a path, and the grids that they are cut from.

mod grid;
mod header;
mod made;
mod profile;

pub use grid::{HOLE, HeightGrid, MAX_GRID_POSTS};
pub use header::MAX_GRID_HEADER_BYTES;
pub use made::{Landscape, Made};
pub use profile::{MAX_PROFILE_BYTES, MAX_PROFILE_POINTS, Profile};
