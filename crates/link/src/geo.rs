//! Places on the Earth.

use crate::Error;

/// Mean radius of the Earth in metres, as a sphere (IUGG, R1).
pub const EARTH_RADIUS_M: f64 = 6_371_008.8;

/// Heights above sea level that are taken for ones, in metres: from below the deepest shore to
/// where aircraft fly.
pub const MIN_ALTITUDE_M: f64 = -1_000.0;

/// The highest, in metres.
pub const MAX_ALTITUDE_M: f64 = 100_000.0;

/// A place: degrees of latitude (north positive) and longitude (east positive), and metres above
/// sea level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// Degrees, -90 to 90.
    pub lat_deg: f64,
    /// Degrees, -180 to 180.
    pub lon_deg: f64,
    /// Metres above sea level.
    pub alt_m: f64,
}

impl Position {
    /// A place.
    ///
    /// # Errors
    /// [`Error::Path`] naming the coordinate that is none, with its range.
    pub fn new(lat_deg: f64, lon_deg: f64, alt_m: f64) -> Result<Self, Error> {
        let ranges = [
            ("latitude", lat_deg, -90.0, 90.0, "degrees"),
            ("longitude", lon_deg, -180.0, 180.0, "degrees"),
            ("altitude", alt_m, MIN_ALTITUDE_M, MAX_ALTITUDE_M, "metres"),
        ];
        for (name, value, least, greatest, unit) in ranges {
            if !(least..=greatest).contains(&value) {
                let what = format!("{name} {value} is none: give {least} to {greatest} {unit}");
                return Err(Error::Path { what });
            }
        }
        Ok(Self { lat_deg, lon_deg, alt_m })
    }

    /// Metres to another place along the great circle, heights left out (haversine formula).
    #[must_use]
    pub fn ground_distance_m(&self, other: &Self) -> f64 {
        let (lat_a, lat_b) = (self.lat_deg.to_radians(), other.lat_deg.to_radians());
        let half_lat = (lat_b - lat_a) / 2.0;
        let half_lon = (other.lon_deg - self.lon_deg).to_radians() / 2.0;
        let square = half_lat.sin().powi(2) + lat_a.cos() * lat_b.cos() * half_lon.sin().powi(2);
        2.0 * EARTH_RADIUS_M * square.clamp(0.0, 1.0).sqrt().asin()
    }

    /// Metres to another place, through the air.
    #[must_use]
    pub fn distance_m(&self, other: &Self) -> f64 {
        self.ground_distance_m(other).hypot(other.alt_m - self.alt_m)
    }

    /// The place at `share` of the way (0 here, 1 there). Coordinates are moved evenly, which over
    /// the tens of kilometres of a radio net is the great circle to within metres; across the
    /// date line the way is the long one.
    #[must_use]
    pub fn towards(&self, other: &Self, share: f64) -> Self {
        let between = |from: f64, to: f64| from + (to - from) * share;
        Self {
            lat_deg: between(self.lat_deg, other.lat_deg),
            lon_deg: between(self.lon_deg, other.lon_deg),
            alt_m: between(self.alt_m, other.alt_m),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_degree_of_a_great_circle_has_its_length() {
        let at = |lat, lon| Position::new(lat, lon, 0.0).unwrap();
        let degree_m = EARTH_RADIUS_M.to_radians();
        assert!((at(0.0, 10.0).ground_distance_m(&at(0.0, 11.0)) - degree_m).abs() < 1e-6);
        assert!((at(45.0, 7.0).ground_distance_m(&at(46.0, 7.0)) - degree_m).abs() < 1e-6);
        let north = at(60.0, 0.0).ground_distance_m(&at(60.0, 0.001));
        assert!((north - degree_m * 0.0005).abs() < 1e-6, "{north}");
        assert!((at(90.0, 0.0).ground_distance_m(&at(-90.0, 0.0)) / degree_m - 180.0).abs() < 1e-9);
    }

    #[test]
    fn height_counts_in_the_air_alone() {
        let low = Position::new(40.0, -74.0, 0.0).unwrap();
        let high = Position { alt_m: 500.0, ..low };
        assert_eq!((low.ground_distance_m(&high), low.distance_m(&high)), (0.0, 500.0));
        let half_way = low.towards(&high, 0.5);
        assert_eq!(half_way, Position { alt_m: 250.0, ..low });
    }

    #[test]
    fn what_is_no_place_is_refused_by_name() {
        for (lat, lon, alt, name) in [
            (90.1, 0.0, 0.0, "latitude 90.1"),
            (f64::NAN, 0.0, 0.0, "latitude NaN"),
            (0.0, -180.5, 0.0, "longitude -180.5"),
            (0.0, 0.0, f64::INFINITY, "altitude inf"),
        ] {
            let error = Position::new(lat, lon, alt).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
