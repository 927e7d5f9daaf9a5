//! Diffraction over the ground: Recommendation ITU-R P.526-15.

use super::{SPEED_OF_LIGHT_MPS, check_frequency, check_height, check_range};
use crate::Error;
use crate::terrain::Profile;
use std::f64::consts::PI;

/// Whether the electric field is along the ground or across it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polarization {
    /// Along the ground.
    Horizontal,
    /// Across it, as with whip antennas on vehicles.
    Vertical,
}

/// What the ground and the air above it are like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ground {
    /// Effective radius of the Earth in km, which stands for the bending of waves in the air.
    pub effective_radius_km: f64,
    /// Relative permittivity.
    pub permittivity: f64,
    /// Conductivity in S/m.
    pub conductivity_spm: f64,
    /// Of both antennas.
    pub polarization: Polarization,
}

impl Default for Ground {
    /// Land (permittivity 22, 0.003 S/m), mean air (8500 km), vertical antennas.
    fn default() -> Self {
        Self {
            effective_radius_km: 8_500.0,
            permittivity: 22.0,
            conductivity_spm: 0.003,
            polarization: Polarization::Vertical,
        }
    }
}

impl Ground {
    fn check(&self) -> Result<(), Error> {
        check_range("effective radius", self.effective_radius_km, 1_000.0, 1e6, "km")?;
        check_range("permittivity", self.permittivity, 1.0, 100.0, "")?;
        check_range("conductivity", self.conductivity_spm, 0.0, 100.0, "S/m")
    }
}

/// Diffraction loss beyond free space and what it is made of, in dB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Diffraction {
    /// Bullington's loss over the actual profile.
    pub bullington_db: f64,
    /// Bullington's loss over the smooth profile.
    pub smooth_db: f64,
    /// Loss over the spherical Earth.
    pub spherical_db: f64,
    /// What they make together.
    pub total_db: f64,
}

/// Loss over a single knife edge in dB, for the parameter ν: ITU-R P.526 §4.1, equation 31, which
/// is 0 below -0.78.
#[must_use]
pub fn knife_edge_db(nu: f64) -> f64 {
    if nu > -0.78 {
        let shifted = nu - 0.1;
        6.9 + 20.0 * (shifted.hypot(1.0) + shifted).log10()
    } else {
        0.0
    }
}

/// Loss by diffraction over a profile, for antennas at the given heights above its ends: the
/// delta-Bullington method of ITU-R P.526 §4.5.
///
/// # Errors
/// [`Error::Path`] for a frequency, a height or a ground out of range.
pub fn delta_bullington(
    profile: &Profile,
    heights_m: [f64; 2],
    frequency_hz: f64,
    ground: &Ground,
) -> Result<Diffraction, Error> {
    check_frequency(frequency_hz)?;
    ground.check()?;
    for height_m in heights_m {
        check_height(height_m)?;
    }
    let [start_m, end_m] = profile.ends_m();
    let path = Flight {
        length_km: profile.length_m() / 1_000.0,
        wavelength_m: SPEED_OF_LIGHT_MPS / frequency_hz,
        frequency_mhz: frequency_hz / 1e6,
        ends_m: [start_m + heights_m[0], end_m + heights_m[1]],
        ground: *ground,
    };
    let actual = profile.between().map(|(m, height_m)| (m / 1_000.0, height_m));
    let bullington_db = path.bullington_db(actual);
    let smooth_ends_m = path.smooth_ends_m(profile);
    let over_smooth = Flight {
        ends_m: [path.ends_m[0] - smooth_ends_m[0], path.ends_m[1] - smooth_ends_m[1]],
        ..path
    };
    let smooth = profile.between().map(|(m, _)| (m / 1_000.0, 0.0));
    let smooth_db = over_smooth.bullington_db(smooth);
    let spherical_db = over_smooth.spherical_db();
    // What the sphere loses beyond what Bullington's method says of a smooth one is added.
    let total_db = bullington_db + (spherical_db - smooth_db).max(0.0);
    Ok(Diffraction { bullington_db, smooth_db, spherical_db, total_db })
}

/// A path in the units of the Recommendation: distances in km, heights in m.
#[derive(Clone, Copy)]
struct Flight {
    length_km: f64,
    wavelength_m: f64,
    frequency_mhz: f64,
    /// The antennas above sea level, or above the smooth ground.
    ends_m: [f64; 2],
    ground: Ground,
}

impl Flight {
    /// Bullington's method (§4.5), over the points between the ends.
    fn bullington_db(&self, points: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
        let Self { length_km: d, wavelength_m, ends_m: [start_m, end_m], .. } = *self;
        let curvature = 500.0 / self.ground.effective_radius_km;
        // Heights above the straight line of sea level, and how ν grows with them.
        let bulged = points.map(|(km, height_m)| (km, height_m + curvature * km * (d - km)));
        let nu_by_metre = |km: f64| (0.002 * d / (wavelength_m * km * (d - km))).sqrt();
        let line_m = |km: f64| (start_m * (d - km) + end_m * km) / d;
        let slope_from_start = greatest(bulged.clone().map(|(km, m)| (m - start_m) / km));
        let slope_of_sight = (end_m - start_m) / d;
        let edge_db = if slope_from_start < slope_of_sight {
            let nu = greatest(bulged.map(|(km, m)| (m - line_m(km)) * nu_by_metre(km)));
            knife_edge_db(nu)
        } else {
            let slope_from_end = greatest(bulged.map(|(km, m)| (m - end_m) / (d - km)));
            let to_edge_km =
                (end_m - start_m + slope_from_end * d) / (slope_from_start + slope_from_end);
            let edge_m = start_m + slope_from_start * to_edge_km;
            knife_edge_db((edge_m - line_m(to_edge_km)) * nu_by_metre(to_edge_km))
        };
        edge_db + (1.0 - (-edge_db / 6.0).exp()) * (10.0 + 0.02 * d)
    }

    /// The smooth ground below both ends (§4.5), above sea level.
    fn smooth_ends_m(&self, profile: &Profile) -> [f64; 2] {
        let d = self.length_km;
        let points = || profile.points().map(|(m, height_m)| (m / 1_000.0, height_m));
        let (mut first, mut second) = (0.0, 0.0);
        for ((km_a, a), (km_b, b)) in points().zip(points().skip(1)) {
            first += (km_b - km_a) * (b + a);
            second += (km_b - km_a) * (b * (2.0 * km_b + km_a) + a * (km_b + 2.0 * km_a));
        }
        let mut ends_m = [(2.0 * first * d - second) / (d * d), (second - first * d) / (d * d)];
        let [start_m, end_m] = self.ends_m;
        let between = || profile.between().map(|(m, height_m)| (m / 1_000.0, height_m));
        let above = || between().map(|(km, m)| (km, m - (start_m * (d - km) + end_m * km) / d));
        let obstruction_m = greatest(above().map(|(_, m)| m));
        if obstruction_m > 0.0 {
            let by_start = greatest(above().map(|(km, m)| m / km));
            let by_end = greatest(above().map(|(km, m)| m / (d - km)));
            ends_m[0] -= obstruction_m * by_start / (by_start + by_end);
            ends_m[1] -= obstruction_m * by_end / (by_start + by_end);
        }
        let [ground_start_m, ground_end_m] = profile.ends_m();
        [ends_m[0].min(ground_start_m), ends_m[1].min(ground_end_m)]
    }

    /// §3.2: over the spherical Earth at any distance; the antennas are above smooth ground.
    fn spherical_db(&self) -> f64 {
        let Self { length_km: d, ends_m: [a_m, b_m], .. } = *self;
        let radius_km = self.ground.effective_radius_km;
        let horizon_km = (2.0 * radius_km).sqrt() * ((0.001 * a_m).sqrt() + (0.001 * b_m).sqrt());
        if d >= horizon_km {
            return self.beyond_horizon_db(radius_km);
        }
        // The least clearance of the curved Earth between the antennas.
        let c = (a_m - b_m) / (a_m + b_m);
        let m = 250.0 * d * d / (radius_km * (a_m + b_m));
        let angle = (1.5 * c * (3.0 * m / (m + 1.0).powi(3)).sqrt()).clamp(-1.0, 1.0).acos();
        let b = 2.0 * ((m + 1.0) / (3.0 * m)).sqrt() * ((PI + angle) / 3.0).cos();
        let near_km = d / 2.0 * (1.0 + b);
        let far_km = d - near_km;
        let over = |height_m: f64, km: f64| height_m - 500.0 * km * km / radius_km;
        let clearance_m = (over(a_m, near_km) * far_km + over(b_m, far_km) * near_km) / d;
        let required_m = 17.456 * (near_km * far_km * self.wavelength_m / d).sqrt();
        if clearance_m > required_m {
            return 0.0;
        }
        // The radius at which this would be the horizon, and what remains.
        let modified_km = 500.0 * (d / (a_m.sqrt() + b_m.sqrt())).powi(2);
        let at_horizon_db = self.beyond_horizon_db(modified_km);
        ((1.0 - clearance_m / required_m) * at_horizon_db).max(0.0)
    }

    /// §3.1.1: the first term of the residue series, for a radius of the Earth.
    fn beyond_horizon_db(&self, radius_km: f64) -> f64 {
        let Self { length_km, frequency_mhz: f, ends_m, .. } = *self;
        let Ground { permittivity, conductivity_spm, polarization, .. } = self.ground;
        let loss = 18_000.0 * conductivity_spm / f;
        let horizontal = 0.36
            * (radius_km * f).powf(-1.0 / 3.0)
            * ((permittivity - 1.0).powi(2) + loss.powi(2)).powf(-0.25);
        let k = match polarization {
            Polarization::Horizontal => horizontal,
            Polarization::Vertical => horizontal * permittivity.hypot(loss),
        };
        let beta =
            (1.0 + 1.6 * k.powi(2) + 0.67 * k.powi(4)) / (1.0 + 4.5 * k.powi(2) + 1.53 * k.powi(4));
        let x = 2.188 * beta * f.powf(1.0 / 3.0) * radius_km.powf(-2.0 / 3.0) * length_km;
        let distance_db = if x >= 1.6 {
            11.0 + 10.0 * x.log10() - 17.6 * x
        } else {
            -20.0 * x.log10() - 5.6488 * x.powf(1.425)
        };
        let gain_db = |height_m: f64| {
            let y = 9.575e-3 * beta * f.powf(2.0 / 3.0) * radius_km.powf(-1.0 / 3.0) * height_m;
            let by = beta * y;
            let gain_db = if by > 2.0 {
                17.6 * (by - 1.1).sqrt() - 5.0 * (by - 1.1).log10() - 8.0
            } else {
                20.0 * (by + 0.1 * by.powi(3)).log10()
            };
            gain_db.max(2.0 + 20.0 * k.log10())
        };
        -distance_db - gain_db(ends_m[0]) - gain_db(ends_m[1])
    }
}

/// The greatest of some numbers; negative infinity of none.
fn greatest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::NEG_INFINITY, f64::max)
}
