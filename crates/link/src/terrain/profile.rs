//! The ground between two places.

use crate::Error;

/// Most points of a profile: 500 km in steps of 50 m.
pub const MAX_PROFILE_POINTS: usize = 10_000;

/// Longest text of a profile, in bytes. Whoever reads the file reads no more than this and one
/// byte.
pub const MAX_PROFILE_BYTES: usize = 1024 * 1024;

/// Heights above sea level from a transmitter (distance 0) to a receiver (the last point).
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    distances_m: Vec<f64>,
    heights_m: Vec<f64>,
}

impl Profile {
    /// A profile of points (distance from the transmitter, height above sea level), in metres.
    ///
    /// # Errors
    /// [`Error::Path`] for fewer than two points or more than [`MAX_PROFILE_POINTS`], a first
    /// distance that is not 0, distances that do not grow, numbers that are none.
    pub fn new(points: &[(f64, f64)]) -> Result<Self, Error> {
        let mut profile = Self::empty();
        for &(distance_m, height_m) in points {
            profile.push(distance_m, height_m).map_err(|what| Error::Path { what })?;
        }
        profile.whole().map_err(|what| Error::Path { what })
    }

    /// Reads lines `distance in km,height in m`; a first line without numbers names the columns.
    ///
    /// # Errors
    /// [`Error::File`] naming line and column, for what [`Profile::new`] refuses, a line of
    /// another form, more than [`MAX_PROFILE_BYTES`] bytes.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let refused = |line: Option<usize>, field: &str, what: String| Error::File {
            kind: "profile",
            name: name.to_owned(),
            line,
            field: field.to_owned(),
            what,
        };
        if text.len() > MAX_PROFILE_BYTES {
            let what = format!("has more than {MAX_PROFILE_BYTES} bytes: shorten it");
            return Err(refused(None, "", what));
        }
        let mut profile = Self::empty();
        for (index, line) in text.lines().enumerate() {
            let at = Some(index + 1);
            let (distance, height) = line.split_once(',').unwrap_or((line, ""));
            let number = |text: &str| text.trim().parse::<f64>().ok();
            match (number(distance), number(height)) {
                (Some(distance_km), Some(height_m)) => profile
                    .push(distance_km * 1_000.0, height_m)
                    .map_err(|what| refused(at, "", what))?,
                (None, None) if index == 0 => {}
                (None, _) if line.trim().is_empty() => {}
                (found, _) => {
                    let field = if found.is_none() { "distance" } else { "height" };
                    let shown = crate::error::quoted(line);
                    let what = format!("{shown} is no pair 'km,m' of numbers (like 0.05,803)");
                    return Err(refused(at, field, what));
                }
            }
        }
        profile.whole().map_err(|what| refused(None, "", what))
    }

    /// Metres from the first point to the last.
    #[must_use]
    pub fn length_m(&self) -> f64 {
        self.distances_m.last().copied().unwrap_or(0.0)
    }

    /// Points (distance, height above sea level) in metres.
    pub fn points(&self) -> impl ExactSizeIterator<Item = (f64, f64)> + Clone + '_ {
        self.distances_m.iter().copied().zip(self.heights_m.iter().copied())
    }

    /// Points between the two ends.
    pub(crate) fn between(&self) -> impl Iterator<Item = (f64, f64)> + Clone + '_ {
        let between = self.distances_m.len().saturating_sub(2);
        self.points().skip(1).take(between)
    }

    /// Heights above sea level of the first and the last point, in metres.
    #[must_use]
    pub fn ends_m(&self) -> [f64; 2] {
        let end = |height: Option<&f64>| height.copied().unwrap_or(0.0);
        [end(self.heights_m.first()), end(self.heights_m.last())]
    }

    fn empty() -> Self {
        Self { distances_m: Vec::new(), heights_m: Vec::new() }
    }

    fn push(&mut self, distance_m: f64, height_m: f64) -> Result<(), String> {
        if self.distances_m.len() == MAX_PROFILE_POINTS {
            return Err(format!("has more than {MAX_PROFILE_POINTS} points: take longer steps"));
        }
        if !height_m.is_finite() || height_m.abs() > crate::geo::MAX_ALTITUDE_M {
            return Err(format!("height {height_m} m is none: give metres above sea level"));
        }
        match self.distances_m.last() {
            None if distance_m != 0.0 => {
                return Err(format!("begins at {distance_m} m: the first distance must be 0"));
            }
            Some(before) if !(distance_m > *before && distance_m.is_finite()) => {
                return Err(format!("{distance_m} m comes after {before} m: distances must grow"));
            }
            _ => {}
        }
        self.distances_m.push(distance_m);
        self.heights_m.push(height_m);
        Ok(())
    }

    fn whole(self) -> Result<Self, String> {
        if self.distances_m.len() < 2 {
            return Err(format!("has {} points: give two or more", self.distances_m.len()));
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_names_of_columns_is_read() {
        let text = "Distance (km),Height (m)\n0,800\n0.05,803\n0.1, 798.5\n\n";
        let profile = Profile::parse("p", text).unwrap();
        let points: Vec<_> = profile.points().collect();
        assert_eq!(points, [(0.0, 800.0), (50.0, 803.0), (100.0, 798.5)]);
        assert_eq!(profile.ends_m(), [800.0, 798.5]);
        assert_eq!(profile.between().collect::<Vec<_>>(), [(50.0, 803.0)]);
        assert_eq!(profile.length_m(), 100.0);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, expected) in [
            ("0,1\n", "has 1 points"),
            ("0.5,1\n1,2\n", "line 1: begins at 500 m"),
            ("0,1\n0.1,2\n0.1,2\n", "line 3: 100 m comes after 100 m"),
            ("0,1\n0.1,\n", "line 2 field 'height'"),
            ("0,1\nx,4\n", "line 2 field 'distance'"),
            ("0,1\n0.1,NaN\n", "line 2: height NaN m"),
            ("0,1\ninf,2\n", "line 2: inf m comes after"),
        ] {
            let error = Profile::parse("p.csv", text).unwrap_err().to_string();
            assert!(error.contains("profile p.csv") && error.contains(expected), "{error}");
        }
        let long = vec![(0.0, 0.0); MAX_PROFILE_POINTS + 1];
        assert!(Profile::new(&long).is_err());
    }
}
