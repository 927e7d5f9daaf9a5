//! `[ground]`: heights from a file, or made from a seed.

use link::geo::Position;
use link::terrain::{HeightGrid, Landscape, MAX_GRID_HEADER_BYTES, MAX_GRID_POSTS, Made};

use super::ReadFile;
use super::table::{Item, Table};

/// Most rows and columns of a grid that is made.
const MAX_SIDE: u64 = 3_601;

pub(super) fn ground(item: &Item<'_, '_>, read: ReadFile<'_>) -> Option<HeightGrid> {
    const MADE: [&str; 6] = ["made", "corner", "rows", "columns", "step_deg", "seed"];
    const FILE: [&str; 2] = ["file", "heights"];
    let is_made = item.any_table()?.get("made").is_some();
    let table = item.table(if is_made { &MADE } else { &FILE })?;
    if is_made { made(&table) } else { from_files(&table, read) }
}

fn made(table: &Table<'_, '_>) -> Option<HeightGrid> {
    let landscape = match table.get("made")?.word(&["plain", "ridge", "hills"])? {
        "plain" => Landscape::Plain,
        "hills" => Landscape::Hills,
        _ => Landscape::Ridge,
    };
    let side = |key: &str| table.need(key).and_then(|item| item.whole(2..=MAX_SIDE));
    let (rows, columns) = (side("rows"), side("columns"));
    let step_deg = table.need("step_deg").and_then(|item| item.number(1e-6..=1.0, "degrees"));
    let seed = table.get("seed").map_or(Some(1), |item| item.whole(0..=u64::from(u32::MAX)));
    let corner = table.need("corner").and_then(|item| place(&item));
    let size = [usize::try_from(rows?).ok()?, usize::try_from(columns?).ok()?];
    let made = Made { landscape, corner: corner?, size, step_deg: step_deg?, seed: seed? };
    made.grid().map_err(|error| table.refuse(error.to_string(), "")).ok()
}

/// A text that describes the grid, and beside it the heights.
fn from_files(table: &Table<'_, '_>, read: ReadFile<'_>) -> Option<HeightGrid> {
    let file = table.need("file")?;
    let name = file.text()?;
    let header = read_text(&file, name, read, MAX_GRID_HEADER_BYTES)?;
    let heights = match table.get("heights") {
        Some(item) => item.text()?.to_owned(),
        None => format!("{}.i16le", name.strip_suffix(".txt").unwrap_or(name)),
    };
    let bytes = read(&heights, MAX_GRID_POSTS * 2).map_err(|what| file.refuse(what, "")).ok()?;
    let grid = HeightGrid::parse(name, &header, &bytes);
    grid.map_err(|error| file.source().note_file(&file, &error)).ok()
}

/// A text that the scenario names.
pub(super) fn read_text(
    item: &Item<'_, '_>,
    name: &str,
    read: ReadFile<'_>,
    max_bytes: usize,
) -> Option<String> {
    let bytes = read(name, max_bytes).map_err(|what| item.refuse(what, "")).ok()?;
    let text = String::from_utf8(bytes).map_err(|_| item.refuse("the file is no UTF-8 text", ""));
    text.ok()
}

/// `[LATITUDE, LONGITUDE]` or `[LATITUDE, LONGITUDE, METRES]`.
pub(super) fn place(item: &Item<'_, '_>) -> Option<Position> {
    let members = item.list(3);
    place_of(item, &members)
}

pub(super) fn place_of(item: &Item<'_, '_>, members: &[Item<'_, '_>]) -> Option<Position> {
    let number = |member: &Item<'_, '_>, most: f64, unit| member.number(-most..=most, unit);
    let (lat_deg, lon_deg, alt_m) = match members {
        [lat, lon] => (number(lat, 90.0, "degrees"), number(lon, 180.0, "degrees"), Some(0.0)),
        [lat, lon, alt] => (
            number(lat, 90.0, "degrees"),
            number(lon, 180.0, "degrees"),
            number(alt, link::geo::MAX_ALTITUDE_M, "m"),
        ),
        _ => {
            let what = format!("{} numbers are no place", members.len());
            item.refuse(what, "give [LATITUDE, LONGITUDE] in degrees, and metres if you like");
            return None;
        }
    };
    let place = Position::new(lat_deg?, lon_deg?, alt_m?);
    place.map_err(|error| item.refuse(error.to_string(), "")).ok()
}
