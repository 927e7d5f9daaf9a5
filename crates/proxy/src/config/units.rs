//! Durations and sizes as people write them.

use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error as _};

const DURATIONS: &[(&str, f64)] = &[("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0)];
const SIZES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];
const RATES: &[(&str, f64)] = &[("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)];
/// Longest duration accepted: a year says that no bound is meant.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;
/// Largest size accepted: beyond it a bound bounds nothing.
const MAX_BYTES: f64 = 1e15;

/// A duration in a configuration, like `"550 ms"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period(pub Duration);

/// A size in a configuration, like `"64 KiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

/// A rate in a configuration, like `"250 kbit/s"`; in bit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(pub f64);

impl Rate {
    /// Reads a number and one of bit/s, kbit/s, Mbit/s, Gbit/s.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bps = scaled(text, RATES, "250 kbit/s")?;
        if (1.0..=MAX_BYTES).contains(&bps) {
            Ok(Self(bps))
        } else {
            Err(format!("'{text}' is not from 1 bit/s to {MAX_BYTES} bit/s"))
        }
    }
}

impl Period {
    /// Reads a number and one of ms, s, min, h.
    pub fn parse(text: &str) -> Result<Self, String> {
        let seconds = scaled(text, DURATIONS, "550 ms")?;
        if seconds > MAX_SECONDS {
            return Err(format!("'{text}' is over the limit of {MAX_SECONDS} s"));
        }
        Ok(Self(Duration::from_secs_f64(seconds)))
    }
}

impl Size {
    /// Reads a number and one of B, KB, MB, GB, KiB, MiB, GiB.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bytes = scaled(text, SIZES, "64 KiB")?;
        if bytes > MAX_BYTES {
            return Err(format!("'{text}' is over the limit of {MAX_BYTES} B"));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to MAX_BYTES
        Ok(Self(bytes.round() as u64))
    }
}

fn scaled(text: &str, units: &[(&str, f64)], example: &str) -> Result<f64, String> {
    let text = text.trim();
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = (text[..at].trim(), text[at..].trim());
    let plain = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let number: Option<f64> = number.parse().ok().filter(|_| plain);
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    match (number, factor) {
        (Some(number), Some(factor)) => Ok(number * factor),
        _ => {
            let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            Err(format!("'{text}' is not a number and one of {names}, like '{example}'"))
        }
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_carry_their_unit() {
        assert_eq!(Period::parse("550 ms"), Ok(Period(Duration::from_millis(550))));
        assert_eq!(Period::parse("1.5min"), Ok(Period(Duration::from_secs(90))));
        assert_eq!(Size::parse("64 KiB"), Ok(Size(65_536)));
        assert_eq!(Size::parse("2 MB"), Ok(Size(2_000_000)));
        assert_eq!(Rate::parse("9.6 kbit/s"), Ok(Rate(9600.0)));
        assert!(Rate::parse("0 bit/s").is_err() && Rate::parse("5 kbit").is_err());
        for text in ["", "5", "ms", "-1 s", "1e9 s", "5 parsecs", "1..2 s", "NaN s", "1 kb"] {
            assert!(Period::parse(text).is_err(), "{text}");
            assert!(Size::parse(text).is_err(), "{text}");
        }
        assert!(Period::parse("99999 h").unwrap_err().contains("limit"));
    }
}
