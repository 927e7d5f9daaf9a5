//! Any bytes as a height grid, a profile, an eel file, a file of tracks: what is read can be used,
//! and what is not is refused in one line.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use link::Error;
use link::eel::Eel;
use link::geo::Position;
use link::propagation::{Ground, delta_bullington};
use link::terrain::{HeightGrid, Profile};
use link::tracks::{NamedTrack, parse_geojson, parse_gpx};

fuzz_target!(|data: &[u8]| {
    let Some((&kind, data)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(data);
    let read = match kind % 5 {
        0 => grid(data),
        1 => Profile::parse("f", &text).and_then(|profile| {
            let loss = delta_bullington(&profile, [1.0, 30.0], 300e6, &Ground::default())?;
            assert!(loss.total_db >= 0.0, "{loss:?}");
            Ok(())
        }),
        2 => Eel::parse("f", &text).map(|eel| {
            let stored = eel.losses.to_eel();
            assert!(Eel::parse("stored", &stored).is_ok());
            let _ = eel.check_steps(Duration::from_secs(1));
            for track in eel.tracks.values() {
                let _ = track.at(Duration::from_secs(1));
            }
        }),
        3 => parse_gpx("f", &text, Some(5.0)).map(|tracks| follow(&tracks)),
        _ => parse_geojson("f", &text, Some(5.0)).map(|tracks| follow(&tracks)),
    };
    if let Err(error) = read {
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
});

/// A header, a zero byte, and the heights.
fn grid(data: &[u8]) -> Result<(), Error> {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let header = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let grid = HeightGrid::parse("f", &header, parts.next().unwrap_or_default())?;
    let [south_west, north_east] = grid.corners();
    let _ = grid.height_m(&south_west)?;
    let _ = grid.profile(&south_west, &north_east)?;
    Ok(())
}

fn follow(tracks: &[NamedTrack]) {
    for NamedTrack { track, .. } in tracks {
        for seconds in [0, 1, 1_000] {
            let Position { lat_deg, lon_deg, .. } = track.at(Duration::from_secs(seconds));
            assert!(lat_deg.abs() <= 90.0 && lon_deg.abs() <= 180.0);
        }
    }
}
