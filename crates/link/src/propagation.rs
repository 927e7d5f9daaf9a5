//! What a radio wave loses on its way: models of path loss.
//!
//! All losses are basic transmission losses between isotropic antennas, in dB; none is below 0.

mod diffraction;

use crate::Error;
use crate::nearest::nearest;
use crate::terrain::Profile;
pub use diffraction::{Diffraction, Ground, Polarization, delta_bullington, knife_edge_db};
use std::f64::consts::PI;

/// The speed of light in m/s.
pub const SPEED_OF_LIGHT_MPS: f64 = 299_792_458.0;

/// Frequencies that the models are for, in Hz: below, waves follow the ground.
pub const MIN_FREQUENCY_HZ: f64 = 1e6;

/// The highest, in Hz: above, air and rain count.
pub const MAX_FREQUENCY_HZ: f64 = 100e9;

/// Longest path, in metres: half around the Earth.
pub const MAX_DISTANCE_M: f64 = 20_100_000.0;

/// Greatest height of an antenna above the ground, in metres.
pub const MAX_ANTENNA_HEIGHT_M: f64 = 100_000.0;

/// How path loss follows from a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// Nothing but distance: Recommendation ITU-R P.525.
    FreeSpace,
    /// The ray over the ground meets the direct one: free space up to the crossover distance
    /// 4πh₁h₂/λ, beyond it [`Model::PlaneEarth`].
    TwoRay,
    /// 40 log d - 20 log h₁h₂ at any distance, as EMANE's `2ray`: heights below 1 m count as 1 m.
    PlaneEarth,
    /// A constant exponent of distance, with shadowing.
    LogDistance(LogDistance),
    /// Free space and diffraction over a profile of the ground: Recommendation ITU-R P.526 §4.5.
    DeltaBullington(Ground),
}

/// Loss that grows with a power of the distance (Rappaport, Wireless Communications, §4.9).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogDistance {
    /// The power: 2 is free space, 2.7 to 3.5 a town, 4 the ground.
    pub exponent: f64,
    /// Distance at which the loss is known, in metres; nearer, it is the same.
    pub reference_m: f64,
    /// The loss there, in dB; none for that of free space.
    pub reference_db: Option<f64>,
    /// Standard deviation of the shadowing, in dB, which is normal in dB. [`Model::loss_db`] is
    /// its mean; a prediction over a scenario draws it.
    pub shadowing_db: f64,
    /// How far a node has to go until the shadowing's correlation with itself is 1/e, in metres
    /// (Gudmundson, Electronics Letters 27, 1991).
    pub decorrelation_m: f64,
}

impl Default for LogDistance {
    /// A town: exponent 3 from free space at 1 m, shadowing of 6 dB that changes over 20 m.
    fn default() -> Self {
        Self {
            exponent: 3.0,
            reference_m: 1.0,
            reference_db: None,
            shadowing_db: 6.0,
            decorrelation_m: 20.0,
        }
    }
}

/// What a model may know of a path.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    /// Metres between the antennas.
    pub distance_m: f64,
    /// Hz.
    pub frequency_hz: f64,
    /// The transmitter's and the receiver's antenna above ground, in metres.
    pub heights_m: [f64; 2],
    /// The ground between, for models that ask for it.
    pub profile: Option<&'a Profile>,
}

impl Model {
    /// The names of all models.
    pub const NAMES: [&'static str; 5] =
        ["free-space", "two-ray", "plane-earth", "log-distance", "delta-bullington"];

    /// The model of a name, with the settings that it begins with.
    ///
    /// # Errors
    /// [`Error::Unknown`] for another name.
    pub fn named(name: &str) -> Result<Self, Error> {
        match name {
            "free-space" => Ok(Self::FreeSpace),
            "two-ray" => Ok(Self::TwoRay),
            "plane-earth" => Ok(Self::PlaneEarth),
            "log-distance" => Ok(Self::LogDistance(LogDistance::default())),
            "delta-bullington" => Ok(Self::DeltaBullington(Ground::default())),
            _ => Err(Error::Unknown {
                kind: "model",
                name: name.to_owned(),
                nearest: nearest(name, &Self::NAMES),
                known: Self::NAMES.to_vec(),
            }),
        }
    }

    /// The model's name: `free-space`, `two-ray`, `plane-earth`, `log-distance`,
    /// `delta-bullington`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::FreeSpace => "free-space",
            Self::TwoRay => "two-ray",
            Self::PlaneEarth => "plane-earth",
            Self::LogDistance(_) => "log-distance",
            Self::DeltaBullington(_) => "delta-bullington",
        }
    }

    /// Whether the model asks for a profile of the ground.
    #[must_use]
    pub fn wants_profile(&self) -> bool {
        matches!(self, Self::DeltaBullington(_))
    }

    /// Path loss in dB.
    ///
    /// # Errors
    /// [`Error::Path`] for a distance, frequency, height or parameter out of its range, or a model
    /// that asks for a profile where there is none.
    pub fn loss_db(&self, path: &Path<'_>) -> Result<f64, Error> {
        path.check()?;
        let Path { distance_m, frequency_hz, heights_m, profile } = *path;
        let free_db = free_space_db(distance_m, frequency_hz);
        match self {
            Self::FreeSpace => Ok(free_db),
            Self::TwoRay => {
                let [a_m, b_m] = heights_m;
                let crossover_m = 4.0 * PI * a_m * b_m * frequency_hz / SPEED_OF_LIGHT_MPS;
                let is_near = distance_m <= crossover_m;
                Ok(if is_near { free_db } else { plane_earth_db(distance_m, heights_m) })
            }
            Self::PlaneEarth => Ok(plane_earth_db(distance_m, heights_m.map(|m| m.max(1.0)))),
            Self::LogDistance(settings) => {
                settings.check()?;
                let reference_m = settings.reference_m;
                let at_reference_db = settings
                    .reference_db
                    .unwrap_or_else(|| free_space_db(reference_m, frequency_hz));
                let decades = (distance_m / reference_m).max(1.0).log10();
                Ok((at_reference_db + 10.0 * settings.exponent * decades).max(0.0))
            }
            Self::DeltaBullington(ground) => {
                let profile = profile.ok_or_else(|| {
                    refused("delta-bullington needs a profile of the ground: give a height grid")
                })?;
                let diffraction = delta_bullington(profile, heights_m, frequency_hz, ground)?;
                Ok(free_db + diffraction.total_db)
            }
        }
    }
}

impl Path<'_> {
    fn check(&self) -> Result<(), Error> {
        check_range("distance", self.distance_m, 0.0, MAX_DISTANCE_M, "m")?;
        check_frequency(self.frequency_hz)?;
        for height_m in self.heights_m {
            check_height(height_m)?;
        }
        Ok(())
    }
}

impl LogDistance {
    /// Checks each setting.
    ///
    /// # Errors
    /// [`Error::Path`] naming the one that is out of range.
    pub fn check(&self) -> Result<(), Error> {
        check_range("log-distance exponent", self.exponent, 0.0, 10.0, "")?;
        check_range("log-distance reference", self.reference_m, 0.001, MAX_DISTANCE_M, "m")?;
        check_range("reference loss", self.reference_db.unwrap_or(0.0), 0.0, 300.0, "dB")?;
        check_range("shadowing", self.shadowing_db, 0.0, 40.0, "dB")?;
        check_range("decorrelation", self.decorrelation_m, 0.001, MAX_DISTANCE_M, "m")
    }
}

/// Free space: 20 log(4πdf/c), in dB, not below 0.
#[must_use]
pub fn free_space_db(distance_m: f64, frequency_hz: f64) -> f64 {
    (20.0 * (4.0 * PI * distance_m * frequency_hz / SPEED_OF_LIGHT_MPS).log10()).max(0.0)
}

/// Far over plane ground: 40 log d - 20 log h₁h₂, in dB, not below 0.
fn plane_earth_db(distance_m: f64, [a_m, b_m]: [f64; 2]) -> f64 {
    (40.0 * distance_m.log10() - 20.0 * (a_m * b_m).log10()).max(0.0)
}

pub(crate) fn check_frequency(frequency_hz: f64) -> Result<(), Error> {
    check_range("frequency", frequency_hz, MIN_FREQUENCY_HZ, MAX_FREQUENCY_HZ, "Hz")
}

pub(crate) fn check_height(height_m: f64) -> Result<(), Error> {
    check_range("antenna height", height_m, 0.01, MAX_ANTENNA_HEIGHT_M, "m above ground")
}

fn check_range(name: &str, value: f64, least: f64, greatest: f64, unit: &str) -> Result<(), Error> {
    if (least..=greatest).contains(&value) {
        return Ok(());
    }
    let range = format!("{least} to {greatest} {unit}");
    Err(refused(&format!("{name} {value} is out of range: give {}", range.trim_end())))
}

fn refused(what: &str) -> Error {
    Error::Path { what: what.to_owned() }
}

#[cfg(test)]
mod tests;
