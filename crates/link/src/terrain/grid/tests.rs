use super::super::{Landscape, Made};
use super::*;
use proptest::prelude::*;

const HEADER: &str = "rows 2 (north to south)\ncolumns 3\nxmin 7\nxmax 7.2\nymin 50\nymax 50.1\n\
    dx 0.1 deg\ndy 0.1 deg\nunit metre, int16 little endian\n";

fn bytes(heights_m: &[i16]) -> Vec<u8> {
    heights_m.iter().flat_map(|height_m| height_m.to_le_bytes()).collect()
}

fn at(lat_deg: f64, lon_deg: f64) -> Position {
    Position::new(lat_deg, lon_deg, 0.0).unwrap()
}

fn small() -> HeightGrid {
    HeightGrid::parse("small", HEADER, &bytes(&[100, 200, 300, -10, HOLE, 30])).unwrap()
}

fn made(landscape: Landscape, seed: u64) -> HeightGrid {
    let corner = at(50.2, 7.0);
    Made { landscape, corner, size: [241, 241], step_deg: 1.0 / 1_200.0, seed }.grid().unwrap()
}

#[test]
fn heights_between_posts_are_interpolated() {
    let grid = small();
    assert_eq!(grid.size(), [2, 3]);
    assert_eq!(grid.range_m(), (-10, 300, 1));
    for (lat, lon, expected_m) in [
        (50.1, 7.0, 100.0),
        (50.1, 7.05, 150.0),
        (50.1, 7.2, 300.0),
        (50.0, 7.0, -10.0),
        (50.05, 7.0, 45.0),
        (50.0, 7.2, 30.0),
    ] {
        let height_m = grid.height_m(&at(lat, lon)).unwrap();
        assert!((height_m - expected_m).abs() < 1e-6, "{lat},{lon}: {height_m}");
    }
}

#[test]
fn bounds_of_cells_put_posts_in_their_middle() {
    let cells = HEADER.replace("xmin 7\n", "xmin 6.95\n").replace("xmax 7.2", "xmax 7.25");
    let cells = cells.replace("ymin 50\n", "ymin 50.15\n").replace("ymax 50.1", "ymax 49.95");
    let heights = bytes(&[100, 200, 300, -10, HOLE, 30]);
    let grid = HeightGrid::parse("small", &cells, &heights).unwrap();
    let [south_west, north_east] = grid.corners();
    for (found, expected) in [
        (south_west.lat_deg, 50.0),
        (south_west.lon_deg, 7.0),
        (north_east.lat_deg, 50.1),
        (north_east.lon_deg, 7.2),
    ] {
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }
}

#[test]
fn places_off_the_map_and_in_holes_are_refused() {
    let grid = small();
    let error = grid.height_m(&at(50.101, 7.0)).unwrap_err().to_string();
    assert!(error.contains("50.10100,7.00000 is off the map") && error.contains("50.10000"));
    let error = grid.height_m(&at(50.05, 7.1)).unwrap_err().to_string();
    assert!(error.contains("grid small has a hole in row 2, column 2"), "{error}");
    let error = grid.profile(&at(50.0, 7.0), &at(50.0, 7.2)).unwrap_err().to_string();
    assert!(error.contains("hole in row 2, column 2"), "{error}");
    let renamed = format!("{HEADER}hole 300\n");
    let heights = bytes(&[100, 200, 300, -10, 0, 30]);
    let grid = HeightGrid::parse("renamed", &renamed, &heights).unwrap();
    assert!(grid.height_m(&at(50.1, 7.2)).unwrap_err().to_string().contains("row 1, column 3"));
}

#[test]
fn a_text_that_does_not_fit_is_refused_by_line_and_key() {
    let heights = bytes(&[0; 6]);
    for (from, to, expected) in [
        ("rows 2", "rows two", "line 1 field 'rows': 'two' is no number"),
        ("rows 2", "rows 1.5", "field 'rows': 1.5 is no number of posts"),
        ("columns 3", "columns 4", "field 'columns': 4 do not fill the bounds"),
        ("dx 0.1", "dx 0", "field 'dx': 0 is no step"),
        ("xmin 7\n", "xmin 700\n", "field 'xmin': 700 is no coordinate"),
        ("xmin 7\n", "", "field 'xmin': is missing"),
        ("xmin 7\n", "xmin 7\nxmin 7\n", "line 4 field 'xmin': stands twice"),
        ("unit metre", "unit foot", "field 'unit': only 'metre"),
        ("unit", "units", "field 'units': known are rows"),
        ("rows 2", "rows 4000", "field 'rows': 4000 do not fill"),
    ] {
        let text = HEADER.replacen(from, to, 1);
        let error = HeightGrid::parse("g.txt", &text, &heights).unwrap_err().to_string();
        assert!(error.contains("height grid g.txt") && error.contains(expected), "{error}");
    }
    let error = HeightGrid::parse("g", HEADER, &heights[..11]).unwrap_err().to_string();
    assert!(error.contains("has 11 bytes") && error.contains("make 12"), "{error}");
}

#[test]
fn a_profile_is_cut_at_equal_steps() {
    let grid = made(Landscape::Ridge, 1);
    let (south, north) = (at(50.01, 7.1), at(50.19, 7.1));
    let profile = grid.profile(&south, &north).unwrap();
    let length_m = south.ground_distance_m(&north);
    assert!((profile.length_m() - length_m).abs() < 1e-6);
    let points: Vec<_> = profile.points().collect();
    let step_m = points[1].0;
    assert!((80.0..=93.0).contains(&step_m), "{step_m}");
    assert!(points.windows(2).all(|pair| (pair[1].0 - pair[0].0 - step_m).abs() < 1e-6));
    let top_m = points.iter().map(|(_, height_m)| *height_m).fold(0.0, f64::max);
    assert!((370.0..430.0).contains(&top_m), "{top_m}");
    let same = grid.profile(&south, &south).unwrap_err().to_string();
    assert!(same.contains("distances must grow"), "{same}");
}

#[test]
fn land_is_made_again_from_its_seed() {
    let plain = made(Landscape::Plain, 7);
    assert_eq!(plain, made(Landscape::Plain, 7));
    assert_ne!(plain.heights_m, made(Landscape::Plain, 8).heights_m);
    let (least, greatest, holes) = plain.range_m();
    assert!(least > 70 && greatest < 130 && least < greatest && holes == 0);
    let too_many = Made {
        landscape: Landscape::Plain,
        corner: at(50.0, 7.0),
        size: [usize::MAX, 2],
        step_deg: 0.001,
        seed: 1,
    };
    assert!(too_many.grid().is_err());
    assert!(Made { size: [200_000, 2], ..too_many }.grid().is_err(), "off the map");
}

proptest! {
    /// Any text and any bytes give a grid or an error of one line, never a panic.
    #[test]
    fn hostile_grids_are_refused(
        header in ".*",
        heights in any::<Vec<u8>>(),
        edit in 0..200_usize,
    ) {
        let mut text = HEADER.to_owned();
        text.replace_range(edit.min(text.len())..text.len(), &header);
        for text in [header.as_str(), text.as_str()] {
            if let Err(error) = HeightGrid::parse("x", text, &heights) {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }
    }

    /// No height between posts is outside of the range of all posts.
    #[test]
    fn heights_stay_in_range(south in 0.0..=1.0_f64, east in 0.0..=1.0_f64) {
        let grid = made(Landscape::Ridge, 3);
        let [south_west, north_east] = grid.corners();
        let place = Position {
            lat_deg: south_west.lat_deg + south * (north_east.lat_deg - south_west.lat_deg),
            lon_deg: south_west.lon_deg + east * (north_east.lon_deg - south_west.lon_deg),
            alt_m: 0.0,
        };
        let height_m = grid.height_m(&place).unwrap();
        let (least, greatest, _) = grid.range_m();
        prop_assert!(height_m >= f64::from(least) - 1e-6);
        prop_assert!(height_m <= f64::from(greatest) + 1e-6);
    }
}
