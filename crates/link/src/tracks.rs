//! Where nodes are at which time, and the files that tell it: GPX and `GeoJSON`.

mod geojson;
mod gpx;
mod json;
mod time;
mod xml;

pub use geojson::parse_geojson;
pub use gpx::parse_gpx;

use crate::Error;
use crate::geo::Position;
use std::time::Duration;

/// Longest text of a file of tracks, in bytes. Whoever reads the file reads no more than this and
/// one byte.
pub const MAX_TRACKS_BYTES: usize = 64 * 1024 * 1024;

/// Most points of a track: eleven days with one each second.
pub const MAX_TRACK_POINTS: usize = 1_000_000;

/// Most tracks of a file.
pub const MAX_TRACKS: usize = 1_024;

/// Slowest and fastest speed that is given to a track without times, in m/s.
const SPEEDS_MPS: std::ops::RangeInclusive<f64> = 0.01..=10_000.0;

/// Where one node is at which time.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    points: Vec<(Duration, Position)>,
    is_stepped: bool,
}

impl Track {
    /// A node that moves evenly from point to point.
    ///
    /// # Errors
    /// [`Error::Path`] for no point, more than [`MAX_TRACK_POINTS`], times that do not grow.
    pub fn moving(points: Vec<(Duration, Position)>) -> Result<Self, Error> {
        Self::new(points, false)
    }

    /// A node that stays at each point until the time of the next one.
    ///
    /// # Errors
    /// Those of [`Track::moving`].
    pub fn stepped(points: Vec<(Duration, Position)>) -> Result<Self, Error> {
        Self::new(points, true)
    }

    /// A node that stays where it is.
    #[must_use]
    pub fn fixed(place: Position) -> Self {
        Self { points: vec![(Duration::ZERO, place)], is_stepped: true }
    }

    fn new(points: Vec<(Duration, Position)>, is_stepped: bool) -> Result<Self, Error> {
        let refused = |what: String| Err(Error::Path { what });
        if points.is_empty() || points.len() > MAX_TRACK_POINTS {
            let count = points.len();
            return refused(format!("a track of {count} points: give 1 to {MAX_TRACK_POINTS}"));
        }
        if let Some(pair) = points.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            let (before, after) = (pair[0].0.as_secs_f64(), pair[1].0.as_secs_f64());
            return refused(format!("{after} s comes after {before} s: times must grow"));
        }
        Ok(Self { points, is_stepped })
    }

    /// The place at a time: before the first point at that one, after the last at that one.
    #[must_use]
    pub fn at(&self, time: Duration) -> Position {
        let after = self.points.partition_point(|(at, _)| *at <= time);
        let (start, from) = self.points[after.saturating_sub(1)];
        match self.points.get(after) {
            Some((end, to)) if after > 0 && !self.is_stepped => {
                let share = (time - start).as_secs_f64() / (*end - start).as_secs_f64();
                from.towards(to, share)
            }
            _ => from,
        }
    }

    /// Its points.
    #[must_use]
    pub fn points(&self) -> &[(Duration, Position)] {
        &self.points
    }
}

/// A track with the name that its file gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTrack {
    /// The name; empty where the file has none.
    pub name: String,
    /// Where it goes.
    pub track: Track,
}

/// A track as a file tells it, before all tracks of the file have one start.
struct Recorded {
    name: String,
    line: usize,
    points: Vec<(Option<Duration>, Position)>,
}

/// What one file of tracks is read with.
struct File<'a> {
    kind: &'static str,
    name: &'a str,
}

impl File<'_> {
    fn refused(&self, line: usize, field: &str, what: impl Into<String>) -> Error {
        Error::File {
            kind: self.kind,
            name: self.name.to_owned(),
            line: Some(line),
            field: field.to_owned(),
            // Names of the file may be in it: the message stays on one line.
            what: what.into().replace(char::is_control, " "),
        }
    }

    fn check_length(&self, text: &str) -> Result<(), Error> {
        if text.len() > MAX_TRACKS_BYTES {
            let what = format!("has more than {MAX_TRACKS_BYTES} bytes: split it");
            return Err(self.refused(1, "", what));
        }
        Ok(())
    }

    /// Counts times from the earliest of the file, or makes them from a speed.
    fn finish(
        &self,
        recorded: Vec<Recorded>,
        speed_mps: Option<f64>,
    ) -> Result<Vec<NamedTrack>, Error> {
        if recorded.is_empty() {
            return Err(self.refused(1, "", "has no track: give one with points"));
        }
        let times = || recorded.iter().flat_map(|one| one.points.iter().filter_map(|(at, _)| *at));
        let start = times().min().unwrap_or(Duration::ZERO);
        let finish = |one: Recorded| {
            let points = self.timed(&one, start, speed_mps)?;
            let track = Track::moving(points)
                .map_err(|error| self.refused(one.line, &one.name, error.to_string()))?;
            Ok(NamedTrack { name: one.name, track })
        };
        recorded.into_iter().map(finish).collect()
    }

    fn timed(
        &self,
        one: &Recorded,
        start: Duration,
        speed_mps: Option<f64>,
    ) -> Result<Vec<(Duration, Position)>, Error> {
        let has_time = one.points.iter().any(|(at, _)| at.is_some());
        let speed_mps = match speed_mps {
            _ if has_time || one.points.len() < 2 => None,
            Some(speed_mps) if SPEEDS_MPS.contains(&speed_mps) => Some(speed_mps),
            other => {
                let asked = other.map_or("a track without times".to_owned(), |mps| {
                    format!("a speed of {mps} m/s")
                });
                let what = format!(
                    "{asked}: give times, or a speed of {} to {} m/s",
                    SPEEDS_MPS.start(),
                    SPEEDS_MPS.end()
                );
                return Err(self.refused(one.line, &one.name, what));
            }
        };
        let (mut at, mut before) = (Duration::ZERO, None);
        let mut timed = Vec::with_capacity(one.points.len());
        for (time, place) in &one.points {
            at = match (time, speed_mps, before) {
                (Some(time), _, _) => time.saturating_sub(start),
                (None, Some(speed_mps), Some(before)) => {
                    at + Duration::from_secs_f64(place.distance_m(before) / speed_mps)
                }
                (None, _, None) if !has_time => Duration::ZERO,
                (None, _, _) => {
                    let what = format!("point {} has no time: give all or none", timed.len() + 1);
                    return Err(self.refused(one.line, &one.name, what));
                }
            };
            // Two points at one place and without times are one.
            let is_new = timed.last().is_none_or(|(last, _)| *last != at) || speed_mps.is_none();
            if is_new {
                timed.push((at, *place));
            }
            before = Some(place);
        }
        Ok(timed)
    }
}

#[cfg(test)]
mod tests;
